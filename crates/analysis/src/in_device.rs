//! How much of an I/O's time its request was in the device: of cells with one direct I/O at a time. It judges nothing.

use crate::block_io::BlockIo;
use crate::metrics;
use rdsk_model::{CellRecord, IoPath, Sync};

/// How far the number of requests may be from the number of I/Os for each I/O to count as one request.
const ONE_EACH: f64 = 0.05;

/// How long an I/O took, and how much of that its request was in the device.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct InDevice {
    /// Mean time of the call, in ns.
    pub call_ns: f64,
    /// Mean time from the issuing of the request to its completion, in ns.
    pub device_ns: f64,
}

impl InDevice {
    /// Time of an I/O before its request was given to the device and after it was done.
    pub fn outside_ns(&self) -> f64 {
        (self.call_ns - self.device_ns).max(0.0)
    }
}

/// Both times of a cell with one direct I/O at a time, each of them one request; `None` for all other cells, where the two cannot
/// be compared: requests overlap, wait for each other or are flushes.
pub(crate) fn in_device(cell: &CellRecord, block_io: &BlockIo<'_>) -> Option<InDevice> {
    let workload = &cell.workload;
    let is_simple = workload.path == IoPath::Direct
        && workload.sync == Sync::None
        && workload.targets.len() == 1
        && metrics::wanted_depth(workload) == 1;
    let device = cell.evidence.device_of(*workload.targets.first().filter(|_| is_simple)?)?;
    // The latencies are those of the target's own device, of all its requests.
    let is_own = matches!(block_io.devices[..], [counted] if std::ptr::eq(counted, device));
    let latency = cell.evidence.device_latency_ns.as_ref().filter(|_| is_own)?;
    let calls = block_io.calls() as f64;
    let is_near = |count: u64| (count as f64 / calls - 1.0).abs() <= ONE_EACH;
    let is_one_each = calls > 0.0 && is_near(latency.count) && is_near(block_io.requests(workload.op).count);
    let call_ns =
        cell.result.latency_ns.as_ref()?.mean.filter(|_| is_one_each)? * block_io.slower_than_all()?;
    Some(InDevice { call_ns, device_ns: latency.mean? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::bios::{bio, counted, request};
    use crate::fixtures::{self, with};
    use rdsk_model::Op;

    fn in_device(cell: &CellRecord) -> Option<InDevice> {
        super::in_device(cell, &crate::block_io::counted(cell)?)
    }

    #[test]
    fn the_two_times_are_compared_where_each_io_is_one_request() {
        let cell = |requests: u64| {
            let cell = fixtures::cell("r", Op::Read, IoPath::Direct, 4096, 1000, 4_000_000_000);
            let cell = counted(
                cell,
                vec![bio(Op::Read, "this", Some("pread64"), 1000, 4096)],
                vec![request(Op::Read, 4096, requests)],
            );
            with(cell, |cell| {
                cell.evidence.device_latency_ns = Some(fixtures::latency(requests, 1_000_000));
            })
        };
        let times = in_device(&cell(1000)).unwrap();
        assert!((times.call_ns - 4e6).abs() < 1.0 && (times.outside_ns() - 3e6).abs() < 1.0, "{times:?}");
        assert!(in_device(&cell(1100)).is_none(), "others' requests are among them");
        let deep = with(cell(1000), |cell| cell.workload.queue_depth = 2);
        assert!(in_device(&deep).is_none());
        let durable = with(cell(1000), |cell| cell.workload.sync = Sync::Dsync);
        assert!(in_device(&durable).is_none());
        // `ops` has the I/Os of the warm-up already, and the programs time each of them once.
        let warmed = with(cell(1000), |cell| {
            (cell.result.warmup_ns, cell.result.warmup_ops) = (Some(500_000_000), Some(200));
        });
        assert!(in_device(&warmed).is_some());
    }

    /// The device is timed in one visit, and the calls in both: those of that visit took as much longer as its I/Os did.
    #[test]
    fn the_call_is_that_of_the_visits_that_were_timed() {
        let cell = fixtures::cell("r", Op::Read, IoPath::Direct, 4096, 1000, 4_000_000_000);
        let bios = vec![bio(Op::Read, "this", Some("pread64"), 100, 4096)];
        let cell = counted(cell, bios, vec![request(Op::Read, 4096, 100)]);
        let visits = [(100, 600_000_000), (900, 3_400_000_000)];
        let cell = with(fixtures::bios::followed(cell, &visits, &[0]), |cell| {
            cell.evidence.device_latency_ns = Some(fixtures::latency(100, 5_000_000));
        });
        let times = in_device(&cell).unwrap();
        assert!((times.call_ns - 6e6).abs() < 1.0 && (times.outside_ns() - 1e6).abs() < 1.0, "{times:?}");
    }
}
