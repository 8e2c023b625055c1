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
    let Some(usual_ns) = cell.result.latency_ns.as_ref().and_then(|latency| latency.p50) else {
        return Vec::new();
    };
    // What the disk takes without rests at that time, where it has become slower over the run.
    let beside = cell.result.after_idle.iter().filter(|one| one.rest_ns == 0).flat_map(|one| &one.latency_ns);
    let usual_ns = beside.copied().max().unwrap_or(0).max(usual_ns).max(1) as f64;
    let mut rests: Vec<&AfterIdle> = cell.result.after_idle.iter().filter(|one| one.rest_ns > 0).collect();
    rests.sort_by_key(|one| one.rest_ns);
    let mut found: Vec<Waking> = Vec::new();
    for one in rests {
        let all: Vec<f64> = one.latency_ns.iter().map(|&ns| ns as f64).collect();
        let Some(latency_ns) = median(&all) else { continue };
        let is_longer = latency_ns >= MIN_FACTOR * usual_ns
            && latency_ns >= usual_ns + MIN_LONGER_NS
            && all.iter().all(|ns| *ns >= MIN_FACTOR_OF_EACH * usual_ns)
            && all.len() >= 2;
        let is_another = found.last().is_none_or(|last| latency_ns >= ANOTHER * last.latency_ns);
        if is_longer && is_another {
            found.push(Waking { rest_ns: one.rest_ns, latency_ns, usual_ns, reads: all.len() });
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{self, with};
    use rdsk_model::{IoPath, Op};

    #[test]
    fn a_disk_that_sleeps_is_seen_and_one_that_does_not_is_not() {
        let of = |rests: &[(u64, [u64; 3])]| {
            let cell =
                with(fixtures::cell("r", Op::Read, IoPath::Direct, 4096, 1000, 1_000_000_000), |cell| {
                    cell.result.latency_ns.as_mut().unwrap().p50 = Some(371_000);
                    let rest = |&(rest_ms, latency_us): &(u64, [u64; 3])| AfterIdle {
                        rest_ns: rest_ms * 1_000_000,
                        latency_ns: latency_us.map(|us| 1000 * us).to_vec(),
                    };
                    cell.result.after_idle = rests.iter().map(rest).collect();
                });
            after_idle(&cell)
                .into_iter()
                .map(|one| (one.rest_ns / 1_000_000, one.latency_ns))
                .collect::<Vec<_>>()
        };
        let asleep = [40_300, 40_400, 40_500];
        assert_eq!(of(&[(500, asleep), (1000, asleep)]), [(500, 40_400_000.0)]);
        assert_eq!(of(&[(500, [370, 380, 390]), (1000, asleep)]), [(1000, 40_400_000.0)]);
        assert_eq!(of(&[(500, [900, 900, 901]), (1000, asleep)]).len(), 2);
        assert_eq!(of(&[(500, [370, 380, 390]), (1000, [420, 400, 440])]), []);
        assert_eq!(of(&[(500, [370, 40_000, 40_000])]), [], "one of them was as quick as usual");
        assert_eq!(of(&[]), []);
        let slower = |rests: &[(u64, [u64; 3])]| of(&[rests, &[(0, [35_000; 3])]].concat());
        assert_eq!(slower(&[(500, asleep)]), [], "it takes as long without rests by now");
    }
}
