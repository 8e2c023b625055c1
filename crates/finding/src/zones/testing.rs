//! Invented cells of `zones`, for tests of what is read out of them.

use crate::fixtures::{cell, disk, record};
use rdsk_model::{CellRecord, Experiment, IoPath, Op, PointRun, Points, Record};

pub(crate) const MS: u64 = 1_000_000;

/// A small generator (splitmix64, Steele et al. 2014), so that a seed gives the same noise everywhere.
pub(crate) struct Noise(pub(crate) u64);

impl Noise {
    pub(crate) fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// A cell of passes whose latencies at a place, in ns, are made by `latency(place, pass, number of the I/O)`.
pub(crate) fn made(
    places: u32,
    passes: u32,
    mut latency: impl FnMut(u32, u32, u32) -> u64,
) -> (Record, CellRecord) {
    let mut one = cell("zones/read/1M", Op::Read, IoPath::Direct, 1 << 20, 10, 1_000_000);
    one.experiment = Experiment::Zones;
    one.workload.points = Some(Points {
        offset_bytes: (0..u64::from(places)).map(|place| place << 30).collect(),
        block_bytes: Vec::new(),
    });
    let mut number = 0;
    one.result.points = (0..passes)
        .map(|pass| {
            // A stride that shares no factor with the number of places visits each once.
            let order: Vec<u32> = (0..places).map(|index| (index * 7 + pass) % places).collect();
            let latency_ns = order
                .iter()
                .map(|&place| {
                    number += 1;
                    latency(place, pass, number)
                })
                .collect();
            PointRun { order, latency_ns, ..PointRun::default() }
        })
        .collect();
    let inside: u64 = one.result.points.iter().flat_map(|run| &run.latency_ns).sum();
    one.result.ops = Some(u64::from(places * passes));
    one.result.elapsed_ns = Some(inside + 1000 * u64::from(places * passes));
    one.verdict = None;
    (record(vec![disk()], vec![one.clone()]), one)
}
