//! The times of a copy without those in which this process did not run: it was stopped, or the machine was. Sums over readings of the
//! clock only.

use rdsk_dd::Calls;
use rdsk_engine::Gap;
use rdsk_model::OwnGap;
use rdsk_stats::Histogram;

/// When a copy began, and the pauses since then.
pub(super) struct Pauses {
    began_ns: u64,
    gaps: Vec<Gap>,
}

impl Pauses {
    /// The gaps are known to a beat. Where one lies in a call, this process ran before that and after it.
    pub(super) fn new(began_ns: u64, mut gaps: Vec<Gap>, ends: [&Calls; 2]) -> Self {
        for gap in &mut gaps {
            let mut long = ends.iter().flat_map(|calls| &calls.long);
            if let Some(call) = long.find(|call| call.begin_ns < gap.end_ns && call.end_ns > gap.begin_ns) {
                gap.begin_ns = gap.begin_ns.max(call.begin_ns);
                gap.end_ns = gap.end_ns.min(call.end_ns);
            }
        }
        Self { began_ns, gaps }
    }

    /// How long this process ran between two readings of the clock.
    pub(super) fn between(&self, begin_ns: u64, end_ns: u64) -> u64 {
        let overlap = |gap: &Gap| gap.end_ns.min(end_ns).saturating_sub(gap.begin_ns.max(begin_ns));
        end_ns.saturating_sub(begin_ns).saturating_sub(self.gaps.iter().map(overlap).sum())
    }

    /// The same since the copy began.
    pub(super) fn since_start(&self, at_ns: u64) -> u64 {
        self.between(self.began_ns, at_ns)
    }

    /// The time in the calls of one end.
    pub(super) fn in_calls(&self, calls: &Calls) -> u64 {
        calls.spent_ns + calls.long.iter().map(|call| self.between(call.begin_ns, call.end_ns)).sum::<u64>()
    }

    /// How long each call took that moved bytes. Of one in whose time there was a pause that is not known.
    pub(super) fn latencies(&self, calls: &Calls) -> Histogram {
        let mut latencies = calls.latency_ns.clone();
        for call in calls.long.iter().filter(|call| call.has_moved) {
            let ns = call.end_ns - call.begin_ns;
            if self.between(call.begin_ns, call.end_ns) == ns {
                latencies.record(ns);
            }
        }
        latencies
    }

    /// As a visit has them.
    pub(super) fn as_gaps(&self) -> Vec<OwnGap> {
        let gap = |gap: &Gap| OwnGap {
            at_ns: self.since_start(gap.begin_ns),
            lasts_ns: gap.end_ns - gap.begin_ns + gap.asleep_ns,
        };
        self.gaps.iter().map(gap).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rdsk_dd::LongCall;

    const S: u64 = 1_000_000_000;

    #[test]
    fn a_pause_is_no_time_of_the_copy() {
        let gap = |begin_ns, end_ns| Gap { begin_ns, end_ns, asleep_ns: 0 };
        let long = |begin_ns, end_ns| LongCall { begin_ns, end_ns, has_moved: true };
        // One was under way when the process was stopped, and one took so long by itself.
        let calls = Calls {
            spent_ns: 7,
            long: vec![long(12 * S - 5, 17 * S), long(10 * S, 11 * S)],
            ..Calls::default()
        };
        // The last beat before the stop came earlier than the call, and the first one after it later.
        let gaps = vec![gap(12 * S - 100, 17 * S + 100), gap(18 * S, 19 * S)];
        let pauses = Pauses::new(10 * S, gaps, [&calls, &Calls::default()]);
        assert_eq!((pauses.since_start(11 * S), pauses.since_start(14 * S)), (S, 2 * S - 5));
        assert_eq!(pauses.since_start(20 * S), 4 * S - 5);
        assert_eq!(pauses.in_calls(&calls), 7 + S);
        assert_eq!(pauses.latencies(&calls).count(), 1);
        let gaps = pauses.as_gaps();
        assert_eq!((gaps[0].at_ns, gaps[0].lasts_ns), (2 * S - 5, 5 * S + 5));
        assert_eq!((gaps[1].at_ns, gaps[1].lasts_ns), (3 * S - 5, S));
    }
}
