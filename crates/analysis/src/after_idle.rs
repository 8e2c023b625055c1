//! Reads after rests beside reads that follow each other: what a disk that goes to sleep costs. It says nothing where they take about as
//! long.

use rdsk_model::{AfterIdle, CellRecord};
use rdsk_stats::median;

/// How many times as long reads after a rest take at least, in the middle and each of them, and how much longer: processors that
/// rest take some µs themselves.
const MIN_FACTOR: f64 = 1.5;
const MIN_FACTOR_OF_EACH: f64 = 1.2;
const MIN_LONGER_NS: f64 = 100_000.0;
/// A longer rest is another figure from this factor on.
const ANOTHER: f64 = 1.2;

/// What reads take after a rest.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Waking {
    /// Time without I/O before each.
    pub rest_ns: u64,
    /// Their median latency.
    pub latency_ns: f64,
    /// The median latency of reads without rests.
    pub usual_ns: f64,
    /// How many there were.
    pub reads: usize,
}

/// The shortest rest after which reads of a cell take clearly longer, and each longer one after which they take longer still.
pub fn after_idle(cell: &CellRecord) -> Vec<Waking> {
    let Some(latency) = cell.result.latency_ns.as_ref() else { return Vec::new() };
    let Some(usual_ns) = latency.p50 else { return Vec::new() };
    // Three reads of a disk with platters may all take half a turn more than its median. Each of them is longer than nine of ten
    // reads without rests by chance once in a thousand runs.
    let Some(long_ns) = latency.p90.or(latency.max) else { return Vec::new() };
    // What the disk takes without rests at that time, where it has become slower over the run.
    let beside =
        cell.result.after_idle.iter().filter(|rest| rest.rest_ns == 0).flat_map(|rest| &rest.latency_ns);
    let usual_ns = beside.copied().max().unwrap_or(0).max(usual_ns).max(1) as f64;
    let mut rests: Vec<&AfterIdle> = cell.result.after_idle.iter().filter(|rest| rest.rest_ns > 0).collect();
    rests.sort_by_key(|rest| rest.rest_ns);
    let mut wakings: Vec<Waking> = Vec::new();
    for rest in rests {
        let latencies_ns: Vec<f64> = rest.latency_ns.iter().map(|&ns| ns as f64).collect();
        let Some(latency_ns) = median(&latencies_ns) else { continue };
        let is_longer = latency_ns >= MIN_FACTOR * usual_ns
            && latency_ns >= usual_ns + MIN_LONGER_NS
            && latencies_ns.iter().all(|ns| *ns >= MIN_FACTOR_OF_EACH * usual_ns && *ns > long_ns as f64)
            && latencies_ns.len() >= 2;
        let is_another = wakings.last().is_none_or(|last| latency_ns >= ANOTHER * last.latency_ns);
        if is_longer && is_another {
            wakings.push(Waking { rest_ns: rest.rest_ns, latency_ns, usual_ns, reads: latencies_ns.len() });
        }
    }
    wakings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{self, with};
    use rdsk_model::{IoPath, Op};

    #[test]
    fn a_disk_that_sleeps_is_seen_and_one_that_does_not_is_not() {
        let with_p90 = |p90_us: u64, rests: &[(u64, [u64; 3])]| {
            let cell =
                with(fixtures::cell("r", Op::Read, IoPath::Direct, 4096, 1000, 1_000_000_000), |cell| {
                    let latency = cell.result.latency_ns.as_mut().unwrap();
                    (latency.p50, latency.p90) = (Some(371_000), Some(1000 * p90_us));
                    let rest = |&(rest_ms, latency_us): &(u64, [u64; 3])| AfterIdle {
                        rest_ns: rest_ms * 1_000_000,
                        latency_ns: latency_us.map(|us| 1000 * us).to_vec(),
                    };
                    cell.result.after_idle = rests.iter().map(rest).collect();
                });
            after_idle(&cell)
                .into_iter()
                .map(|waking| (waking.rest_ns / 1_000_000, waking.latency_ns))
                .collect::<Vec<_>>()
        };
        let wakings_after = |rests: &[(u64, [u64; 3])]| with_p90(375, rests);
        let asleep = [40_300, 40_400, 40_500];
        assert_eq!(wakings_after(&[(500, asleep), (1000, asleep)]), [(500, 40_400_000.0)]);
        assert_eq!(wakings_after(&[(500, [370, 380, 390]), (1000, asleep)]), [(1000, 40_400_000.0)]);
        assert_eq!(wakings_after(&[(500, [900, 900, 901]), (1000, asleep)]).len(), 2);
        assert_eq!(wakings_after(&[(500, [370, 380, 390]), (1000, [420, 400, 440])]), []);
        assert_eq!(wakings_after(&[(500, [370, 40_000, 40_000])]), [], "one of them was as quick as usual");
        assert_eq!(wakings_after(&[]), []);
        assert_eq!(
            with_p90(40_350, &[(500, asleep)]),
            [],
            "a tenth of the reads takes as long as one of them"
        );
        let slower = |rests: &[(u64, [u64; 3])]| wakings_after(&[rests, &[(0, [35_000; 3])]].concat());
        assert_eq!(slower(&[(500, asleep)]), [], "it takes as long without rests by now");
    }
}
