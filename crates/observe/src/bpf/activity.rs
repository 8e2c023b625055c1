//! What the programs counted of a device, in the words of `model`: requests by size, bios by call and task. It judges nothing.

use crate::bpf::check::{counts_of, is_empty};
use crate::bpf::layout::BlockOp;
use crate::bpf::snapshot::{Counted, DeviceCounted};
use rdsk_model::{Bio, BlockActivity, Op, Request};
use syscalls::Sysno;

/// What the programs counted of a device, which carries this target. What they missed is another question.
pub(crate) fn activity_of(counted: &Counted, index: usize, target: u32, name: &str) -> BlockActivity {
    let its: &DeviceCounted = &counted.devices[index];
    let durable = counted.requests.iter().filter(|(kind, _)| kind.device == index && kind.flags.is_fua());
    BlockActivity {
        interval_ns: counted.interval_ns,
        requests: requests_of(counted, index, target, name),
        flushes: counted.issued(index, BlockOp::Flush),
        discards: counted.issued(index, BlockOp::Discard),
        write_zeroes: counted.issued(index, BlockOp::WriteZeroes),
        fua: durable.map(|(_, count)| count).sum(),
        latency: its.latency.clone(),
        depth_ns: its.depth_ns,
        deepest: Some(its.deepest),
        splits: its.splits,
        merges: its.merged_bios.saturating_add(its.merged_requests),
        bios: bios_of(counted, index, target, name),
        lost: its.lost,
    }
}

/// Read and write requests by exact size; those that must be durable are counted apart.
fn requests_of(counted: &Counted, index: usize, target: u32, name: &str) -> Vec<Request> {
    let mut requests = Vec::new();
    for (kind, count) in counts_of(counted, index) {
        let Some(op) = direction(kind.op).filter(|_| !is_empty(kind)) else { continue };
        let request = Request {
            target,
            device: name.to_owned(),
            op,
            bytes: kind.bytes.into(),
            fua: kind.flags.is_fua(),
            count,
        };
        request.add_to(&mut requests);
    }
    requests
}

/// Reading and writing bios by system call and task; those without data, which only ask for a flush, are marked, since
/// the flush is a request of its own. Those that may be repeated because they must not wait are counted apart, and so is read-ahead.
fn bios_of(counted: &Counted, index: usize, target: u32, name: &str) -> Vec<Bio> {
    let mut bios = Vec::new();
    for (origin, &[count, bytes]) in counted.bios.iter().filter(|(origin, _)| origin.device == index) {
        let Some(op) = direction(origin.op) else { continue };
        let bio = Bio {
            target,
            device: name.to_owned(),
            op,
            syscall: origin.system_call.map(system_call_name),
            task: origin.task.word().to_owned(),
            nowait: origin.flags.is_nowait(),
            read_ahead: origin.flags.is_read_ahead(),
            flush: origin.flags.is_preflush() && bytes == 0,
            count,
            bytes,
        };
        bio.add_to(&mut bios);
    }
    bios
}

fn direction(op: BlockOp) -> Option<Op> {
    match op {
        BlockOp::Read => Some(Op::Read),
        BlockOp::Write => Some(Op::Write),
        BlockOp::Flush | BlockOp::Discard | BlockOp::WriteZeroes | BlockOp::Other(_) => None,
    }
}

/// The name of a system call of this architecture; its number where it is not known.
pub fn system_call_name(number: u32) -> String {
    let call = Sysno::new(number as usize);
    call.map_or_else(|| number.to_string(), |call| call.name().to_owned())
}
