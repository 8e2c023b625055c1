//! The content of a disk's cache: segments filled by read-ahead, and writes that are not on the media yet. It moves no heads
//! and knows no time except the read stream's anchor.

use std::collections::VecDeque;

/// A range of sectors, `first` included, `end` not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extent {
    /// First sector.
    pub first: u64,
    /// The sector after the last.
    pub end: u64,
}

impl Extent {
    /// Number of sectors.
    pub fn sectors(&self) -> u64 {
        self.end - self.first
    }

    /// Whether all of `other` lies in it.
    pub fn contains(&self, other: &Extent) -> bool {
        self.first <= other.first && other.end <= self.end
    }

    /// Whether they share a sector.
    pub fn overlaps(&self, other: &Extent) -> bool {
        self.first < other.end && other.first < self.end
    }
}

/// The current read stream: the head passed `anchor` at `anchor_ns` and continues up to `limit`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReadStream {
    pub(crate) first: u64,
    pub(crate) anchor: u64,
    pub(crate) anchor_ns: f64,
    pub(crate) limit: u64,
}

/// A piece on its way from the cache to the media.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct InFlightWrite {
    pub(crate) piece: Extent,
    pub(crate) end_ns: f64,
}

/// Read segments that are complete, the newest last.
#[derive(Clone, Debug, Default)]
pub(crate) struct Segments {
    kept: VecDeque<Extent>,
    most: usize,
}

impl Segments {
    pub(crate) fn new(most: usize) -> Segments {
        Segments { kept: VecDeque::new(), most }
    }

    pub(crate) fn hold(&self, wanted: &Extent) -> bool {
        self.kept.iter().any(|extent| extent.contains(wanted))
    }

    pub(crate) fn keep(&mut self, extent: Extent) {
        if extent.first >= extent.end || self.most == 0 {
            return;
        }
        if self.kept.len() == self.most {
            self.kept.pop_front();
        }
        self.kept.push_back(extent);
    }

    /// Drops what a write made stale.
    pub(crate) fn forget(&mut self, written: &Extent) {
        self.kept.retain(|extent| !extent.overlaps(written));
    }
}

/// Writes that are not on the media yet, in the order they came; neighbours are joined.
#[derive(Clone, Debug, Default)]
pub(crate) struct Dirty {
    pub(crate) extents: VecDeque<Extent>,
    pub(crate) sectors: u64,
}

impl Dirty {
    pub(crate) fn overlaps(&self, range: &Extent) -> bool {
        self.extents.iter().any(|extent| extent.overlaps(range))
    }

    pub(crate) fn contains(&self, range: &Extent) -> bool {
        self.extents.iter().any(|extent| extent.contains(range))
    }

    /// Sectors of the run that ends at `first` or goes beyond it.
    pub(crate) fn run_before(&self, first: u64) -> u64 {
        let reaches = |extent: &&Extent| extent.first < first && first <= extent.end;
        self.extents.iter().find(reaches).map_or(0, Extent::sectors)
    }

    /// Whether the range would join or replace an extent, and so need none of its own.
    pub(crate) fn joins(&self, range: &Extent) -> bool {
        self.extents.iter().any(|extent| extent.end == range.first || extent.contains(range))
    }

    pub(crate) fn add(&mut self, range: Extent) {
        if self.contains(&range) {
            return;
        }
        self.remove(&range);
        match self.extents.iter_mut().find(|extent| extent.end == range.first) {
            Some(extent) => extent.end = range.end,
            None => self.extents.push_back(range),
        }
        self.sectors += range.sectors();
    }

    /// Removes what overlaps; the rest of an extent stays.
    pub(crate) fn remove(&mut self, range: &Extent) {
        if !self.overlaps(range) {
            return;
        }
        let mut left = VecDeque::with_capacity(self.extents.len() + 1);
        for extent in self.extents.drain(..) {
            let before = Extent { first: extent.first, end: extent.end.min(range.first) };
            let after = Extent { first: extent.first.max(range.end), end: extent.end };
            left.extend([before, after].into_iter().filter(|part| part.first < part.end));
        }
        self.extents = left;
        self.sectors = self.extents.iter().map(Extent::sectors).sum();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dirty_ranges_join_split_and_count() {
        let mut dirty = Dirty::default();
        dirty.add(Extent { first: 0, end: 8 });
        dirty.add(Extent { first: 8, end: 16 });
        dirty.add(Extent { first: 100, end: 108 });
        assert_eq!((dirty.extents.len(), dirty.sectors), (2, 24));
        dirty.add(Extent { first: 2, end: 4 });
        assert_eq!(dirty.sectors, 24, "written again is not dirtier");
        dirty.remove(&Extent { first: 4, end: 6 });
        assert_eq!((dirty.extents.len(), dirty.sectors), (3, 22));
        assert!(!dirty.contains(&Extent { first: 3, end: 7 }));
        assert!(dirty.overlaps(&Extent { first: 3, end: 7 }));
    }

    #[test]
    fn the_oldest_segment_goes_first() {
        let mut segments = Segments::new(2);
        for first in [0, 10, 20] {
            segments.keep(Extent { first, end: first + 10 });
        }
        assert!(!segments.hold(&Extent { first: 0, end: 1 }));
        assert!(segments.hold(&Extent { first: 12, end: 20 }));
        segments.forget(&Extent { first: 15, end: 16 });
        assert!(!segments.hold(&Extent { first: 12, end: 13 }));
    }
}
