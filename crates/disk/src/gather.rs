//! What a controller's protected cache holds back: the parts of stripes that were written, until the rest of the stripe comes
//! or they have waited long enough. It knows no members and takes no time.

use crate::request::Request;
use std::collections::VecDeque;

/// Most stripes of which something is held: the lines that a controller's directory has.
pub(crate) const MAX_HELD: usize = 4096;

/// The part of a request that lies in one stripe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    /// Which stripe.
    pub(crate) stripe: u64,
    /// First byte within the stripe's data.
    pub(crate) first: u64,
    /// The byte after the last.
    pub(crate) end: u64,
}

/// The parts of a request, by stripe.
pub(crate) fn parts(request: Request, stripe_bytes: u64) -> Vec<Part> {
    let stripes = request.offset_bytes / stripe_bytes..request.end_bytes().div_ceil(stripe_bytes);
    let part = |stripe: u64| Part {
        stripe,
        first: request.offset_bytes.saturating_sub(stripe * stripe_bytes),
        end: (request.end_bytes() - stripe * stripe_bytes).min(stripe_bytes),
    };
    stripes.map(part).collect()
}

/// A stripe of which something is held.
#[derive(Clone, Debug)]
struct Held {
    stripe: u64,
    /// When its first part came, in ns.
    since_ns: u64,
    /// What is held of it: first byte and the byte after the last, by position; none touch each other.
    ranges: Vec<(u64, u64)>,
}

/// The stripes that are held back, the oldest first.
#[derive(Clone, Debug, Default)]
pub(crate) struct Gather {
    held: VecDeque<Held>,
    bytes: u64,
}

impl Gather {
    /// Bytes held.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Stripes of which something is held.
    pub(crate) fn stripes(&self) -> usize {
        self.held.len()
    }

    /// Holds a part that came at `now_ns`; what was there is overwritten.
    pub(crate) fn add(&mut self, now_ns: u64, part: Part) {
        let place = self.held.iter().position(|held| held.stripe == part.stripe);
        let at = place.unwrap_or_else(|| {
            self.held.push_back(Held { stripe: part.stripe, since_ns: now_ns, ranges: Vec::new() });
            self.held.len() - 1
        });
        let held = &mut self.held[at];
        let before = held.bytes();
        let (mut first, mut end) = (part.first, part.end);
        held.ranges.retain(|&(from, to)| {
            let touches = from <= end && first <= to;
            if touches {
                (first, end) = (first.min(from), end.max(to));
            }
            !touches
        });
        let place = held.ranges.partition_point(|&(from, _)| from < first);
        held.ranges.insert(place, (first, end));
        self.bytes += self.held[at].bytes() - before;
    }

    /// Takes out a stripe if all of its `stripe_bytes` are held.
    pub(crate) fn take_whole(&mut self, stripe: u64, stripe_bytes: u64) -> Option<Part> {
        let is_whole = |held: &Held| held.stripe == stripe && held.ranges == [(0, stripe_bytes)];
        let at = self.held.iter().position(is_whole)?;
        self.take(at).first().copied()
    }

    /// Takes out what is held of a stripe.
    pub(crate) fn take_stripe(&mut self, stripe: u64) -> Vec<Part> {
        let at = self.held.iter().position(|held| held.stripe == stripe);
        at.map_or_else(Vec::new, |at| self.take(at))
    }

    /// Takes out the stripe that has waited longest.
    pub(crate) fn take_oldest(&mut self) -> Vec<Part> {
        self.take(0)
    }

    /// Since when the oldest stripe waits; `None` if nothing is held.
    pub(crate) fn oldest_ns(&self) -> Option<u64> {
        self.held.front().map(|held| held.since_ns)
    }

    /// Whether all of a part is held.
    pub(crate) fn holds(&self, part: Part) -> bool {
        let mut held =
            self.held.iter().filter(|held| held.stripe == part.stripe).flat_map(|held| &held.ranges);
        held.any(|&(first, end)| first <= part.first && part.end <= end)
    }

    fn take(&mut self, at: usize) -> Vec<Part> {
        let Some(held) = self.held.remove(at) else { return Vec::new() };
        self.bytes -= held.bytes();
        let part = |&(first, end): &(u64, u64)| Part { stripe: held.stripe, first, end };
        held.ranges.iter().map(part).collect()
    }
}

impl Held {
    fn bytes(&self) -> u64 {
        self.ranges.iter().map(|(first, end)| end - first).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(stripe: u64, first: u64, end: u64) -> Part {
        Part { stripe, first, end }
    }

    #[test]
    fn parts_join_until_the_stripe_is_whole() {
        let mut gather = Gather::default();
        gather.add(5, part(7, 0, 10));
        gather.add(6, part(7, 20, 30));
        gather.add(6, part(3, 0, 4));
        assert_eq!((gather.bytes(), gather.take_whole(7, 30)), (24, None));
        assert!(
            gather.holds(part(7, 22, 30)) && !gather.holds(part(7, 8, 22)) && !gather.holds(part(8, 0, 1))
        );
        gather.add(7, part(7, 8, 21));
        assert_eq!((gather.bytes(), gather.take_whole(7, 30)), (34, Some(part(7, 0, 30))));
        assert_eq!((gather.bytes(), gather.oldest_ns()), (4, Some(6)));
    }

    #[test]
    fn the_oldest_goes_first_with_all_that_is_held_of_it() {
        let mut gather = Gather::default();
        gather.add(1, part(2, 8, 16));
        gather.add(2, part(9, 0, 8));
        gather.add(3, part(2, 0, 4));
        gather.add(4, part(2, 9, 10));
        assert_eq!(gather.bytes(), 20, "written again is held once");
        assert_eq!(gather.take_oldest(), [part(2, 0, 4), part(2, 8, 16)]);
        assert_eq!(gather.take_stripe(9), [part(9, 0, 8)]);
        assert_eq!((gather.take_oldest(), gather.bytes(), gather.oldest_ns()), (Vec::new(), 0, None));
    }
}
