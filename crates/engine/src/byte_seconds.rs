//! The bytes that moved in each second of a stream, each request's spread evenly over its time. It reads no clock.
//!
//! An example: a write of 4 MiB that takes from 0.5 s to 2.5 s counts 1 MiB in the first second, 2 MiB in the second, and 1 MiB in the
//! third. A stall of two seconds leaves at least one whole second with nothing but the part of the request that waits.

use std::ops::Range;

const SECOND_NS: u64 = 1_000_000_000;

/// Bytes by second, from the start of the stream.
#[derive(Clone, Debug, Default)]
pub(crate) struct ByteSeconds(Vec<u64>);

impl ByteSeconds {
    /// Counts a request that ended at a time and took so long.
    #[inline]
    pub(crate) fn add(&mut self, end_ns: u64, took_ns: u64, bytes: u64) {
        let last = end_ns / SECOND_NS;
        if took_ns <= end_ns % SECOND_NS {
            *self.second(last) += bytes;
        } else {
            self.spread(end_ns.saturating_sub(took_ns), end_ns, bytes);
        }
    }

    /// The bytes of a request that ran in more than one second.
    #[cold]
    fn spread(&mut self, begin_ns: u64, end_ns: u64, bytes: u64) {
        let took_ns = (end_ns - begin_ns).max(1);
        let up_to = |at_ns: u64| {
            let part = u128::from(bytes) * u128::from(at_ns - begin_ns) / u128::from(took_ns);
            u64::try_from(part).unwrap_or(bytes)
        };
        let mut before = 0;
        for second in begin_ns / SECOND_NS..=end_ns / SECOND_NS {
            let until = up_to(end_ns.min((second + 1) * SECOND_NS));
            *self.second(second) += until - before;
            before = until;
        }
    }

    fn second(&mut self, number: u64) -> &mut u64 {
        let index = usize::try_from(number).unwrap_or(usize::MAX);
        if self.0.len() <= index {
            self.0.resize(index + 1, 0);
        }
        &mut self.0[index]
    }

    /// Adds what another stream of the same job moved.
    pub(crate) fn merge(&mut self, other: &Self) {
        self.0.resize(self.0.len().max(other.0.len()), 0);
        self.0.iter_mut().zip(&other.0).for_each(|(mine, theirs)| *mine += theirs);
    }

    /// The fewest bytes of a whole second of a stream that ran so long, and paused in no part of that second; `None` where there is none.
    pub(crate) fn least(&self, ran_ns: u64, pauses: &[Range<u64>]) -> Option<u64> {
        let is_whole = |&second: &u64| {
            let (begin_ns, end_ns) = (second * SECOND_NS, (second + 1) * SECOND_NS);
            pauses.iter().all(|pause| pause.end <= begin_ns || end_ns <= pause.start)
        };
        let bytes = |second| usize::try_from(second).ok().and_then(|index| self.0.get(index).copied());
        (0..ran_ns / SECOND_NS).filter(is_whole).map(|second| bytes(second).unwrap_or(0)).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_counts_in_the_seconds_in_which_it_ran() {
        const MS: u64 = 1_000_000;
        let mut seconds = ByteSeconds::default();
        seconds.add(500 * MS, 500 * MS, 3 << 20);
        seconds.add(2500 * MS, 2000 * MS, 4 << 20);
        assert_eq!(seconds.0, [4 << 20, 2 << 20, 1 << 20]);
        assert_eq!(seconds.least(2500 * MS, &[]), Some(2 << 20), "the third is no whole second");
        assert_eq!(seconds.least(4000 * MS, &[]), Some(0), "nothing moved in the fourth");
        assert_eq!(seconds.least(999 * MS, &[]), None);
        assert_eq!(
            seconds.least(4000 * MS, std::slice::from_ref(&(3100 * MS..3900 * MS))),
            Some(1 << 20),
            "nor does a pause count"
        );
        let mut other = ByteSeconds::default();
        other.add(1100 * MS, 10 * MS, 7);
        other.merge(&seconds);
        assert_eq!(other.least(2000 * MS, &[]), Some((2 << 20) + 7));
    }
}
