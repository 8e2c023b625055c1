//! Bytes moved and queue depth over time, in slots of equal width. The number of slots is limited: when the series is full,
//! neighbouring slots are folded and the width doubles. Folding and joining keep the number of bytes exact.

/// The largest number of slots; at 50 ms the first folding comes after 3.4 minutes.
pub const MAX_SLOTS: usize = 4096;

/// One slot. Every slot but the last covers the whole width.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Slot {
    /// Observed time.
    pub covered_ns: u64,
    /// Bytes moved in it.
    pub bytes: u64,
    /// Depth times time, so that folding keeps the mean: requests × nanoseconds.
    pub depth_ns: u64,
}

impl Slot {
    /// Mean depth, rounded to whole requests.
    fn in_flight(&self) -> u64 {
        self.depth_ns.saturating_add(self.covered_ns / 2).checked_div(self.covered_ns).unwrap_or(0)
    }
}

/// Consecutive slots from the first observed instant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Series {
    width_ns: u64,
    slots: Vec<Slot>,
}

impl Series {
    /// An empty series with slots of `width_ns`, at least 1.
    pub fn new(width_ns: u64) -> Self {
        Self { width_ns: width_ns.max(1), slots: Vec::new() }
    }

    /// Width of a slot.
    pub fn width_ns(&self) -> u64 {
        self.width_ns
    }

    /// The slots, oldest first.
    pub fn slots(&self) -> &[Slot] {
        &self.slots
    }

    /// Adds what happened in the next `duration_ns`. A late sample covers several slots; its bytes are spread
    /// evenly over them, because the time at which they moved is unknown.
    pub fn push(&mut self, duration_ns: u64, bytes: u64, in_flight: u64) {
        if duration_ns == 0 {
            // The interval is empty, so the bytes belong to the current slot.
            if let Some(last) = self.slots.last_mut() {
                last.bytes = last.bytes.saturating_add(bytes);
            } else if bytes > 0 {
                self.slots.push(Slot { bytes, ..Slot::default() });
            }
            return;
        }
        self.widen_for(duration_ns);
        let (mut time_left, mut bytes_left) = (duration_ns, bytes);
        while time_left > 0 {
            let width_ns = self.width_ns;
            let slot = self.open_slot();
            let taken_ns = time_left.min(width_ns - slot.covered_ns);
            let share = u128::from(bytes_left) * u128::from(taken_ns) / u128::from(time_left);
            let share = u64::try_from(share).expect("a share is at most the whole");
            slot.covered_ns += taken_ns;
            slot.bytes = slot.bytes.saturating_add(share);
            slot.depth_ns = slot.depth_ns.saturating_add(in_flight.saturating_mul(taken_ns));
            time_left -= taken_ns;
            bytes_left -= share;
        }
    }

    /// Continues this series with another one, as if its time followed without a gap.
    pub fn append(&mut self, more: &Self) {
        for slot in &more.slots {
            self.push(slot.covered_ns, slot.bytes, slot.in_flight());
        }
    }

    /// Bytes moved per slot.
    pub fn bytes(&self) -> Vec<u64> {
        self.slots.iter().map(|slot| slot.bytes).collect()
    }

    /// Mean depth per slot, rounded to whole requests.
    pub fn in_flight(&self) -> Vec<u64> {
        self.slots.iter().map(Slot::in_flight).collect()
    }

    /// The last slot if it has room, otherwise a new one. The caller ensures that there is room for it.
    fn open_slot(&mut self) -> &mut Slot {
        if self.slots.last().is_none_or(|slot| slot.covered_ns >= self.width_ns) {
            self.slots.push(Slot::default());
        }
        self.slots.last_mut().expect("a slot was pushed just now if there was none")
    }

    /// Doubles the width until the elapsed time plus `duration_ns` fits into [`MAX_SLOTS`].
    fn widen_for(&mut self, duration_ns: u64) {
        let last_ns = self.slots.last().map_or(0, |slot| slot.covered_ns);
        let full_ns = self.slots.len().saturating_sub(1) as u128 * u128::from(self.width_ns);
        let wanted_ns = full_ns + u128::from(last_ns) + u128::from(duration_ns);
        while wanted_ns.div_ceil(u128::from(self.width_ns)) > MAX_SLOTS as u128 {
            let Some(width_ns) = self.width_ns.checked_mul(2) else { return };
            self.width_ns = width_ns;
            self.slots = self.slots.chunks(2).map(fold).collect();
        }
    }
}

fn fold(pair: &[Slot]) -> Slot {
    pair.iter().fold(Slot::default(), |sum, slot| Slot {
        covered_ns: sum.covered_ns + slot.covered_ns,
        bytes: sum.bytes.saturating_add(slot.bytes),
        depth_ns: sum.depth_ns.saturating_add(slot.depth_ns),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn late_samples_are_spread_over_their_time() {
        let mut series = Series::new(100);
        series.push(100, 10, 1);
        series.push(250, 100, 4);
        assert_eq!(series.bytes(), [10, 40, 40, 20]);
        assert_eq!(series.in_flight(), [1, 4, 4, 4]);
        assert_eq!(series.slots()[3].covered_ns, 50, "the last slot is half full");
        series.push(50, 30, 0);
        assert_eq!(series.bytes(), [10, 40, 40, 50]);
        assert_eq!(series.in_flight(), [1, 4, 4, 2]);
    }

    #[test]
    fn a_full_series_folds_and_keeps_its_bytes() {
        let mut series = Series::new(10);
        for _ in 0..MAX_SLOTS {
            series.push(10, 3, 2);
        }
        assert_eq!((series.width_ns(), series.slots().len()), (10, MAX_SLOTS));
        series.push(10, 3, 2);
        assert_eq!((series.width_ns(), series.slots().len()), (20, MAX_SLOTS / 2 + 1));
        assert_eq!(series.bytes().iter().sum::<u64>(), 3 * (MAX_SLOTS as u64 + 1));
        assert!(series.in_flight().iter().all(|&depth| depth == 2));
    }

    #[test]
    fn a_sample_after_a_long_sleep_is_bounded_too() {
        let mut series = Series::new(50_000_000);
        series.push(u64::MAX / 2, u64::MAX, 1);
        assert!(series.slots().len() <= MAX_SLOTS);
        assert_eq!(series.bytes().iter().sum::<u64>(), u64::MAX);
    }

    #[test]
    fn short_visits_fill_slots_together() {
        let mut sum = Series::new(100);
        for _ in 0..10 {
            let mut visit = Series::new(100);
            visit.push(30, 7, 1);
            sum.append(&visit);
        }
        assert_eq!(sum.slots().len(), 3);
        assert_eq!(sum.bytes().iter().sum::<u64>(), 70);
    }

    proptest! {
        #[test]
        fn bytes_and_time_are_kept(
            pushes in proptest::collection::vec((0u64..1_000, 0u64..1_000_000, 0u64..100), 0..200),
            width_ns in 1u64..400,
        ) {
            let mut series = Series::new(width_ns);
            let mut other = Series::new(17);
            for (index, &(duration_ns, bytes, in_flight)) in pushes.iter().enumerate() {
                if index % 2 == 0 { &mut series } else { &mut other }.push(duration_ns, bytes, in_flight);
            }
            series.append(&other);
            let bytes: u64 = pushes.iter().map(|push| push.1).sum();
            let time_ns: u64 = pushes.iter().map(|push| push.0).sum();
            prop_assert_eq!(series.bytes().iter().sum::<u64>(), bytes);
            prop_assert_eq!(series.slots().iter().map(|slot| slot.covered_ns).sum::<u64>(), time_ns);
            prop_assert!(series.slots().len() <= MAX_SLOTS);
            let whole = series.slots().len().saturating_sub(1);
            prop_assert!(series.slots()[..whole].iter().all(|slot| slot.covered_ns == series.width_ns()));
            let peak = pushes.iter().map(|push| push.2).max().unwrap_or(0);
            prop_assert!(series.in_flight().iter().all(|&depth| depth <= peak));
        }
    }
}
