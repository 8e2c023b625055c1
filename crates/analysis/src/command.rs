//! What the I/O of a command became on one device, by the system calls that carried it: sums over bios and requests, from which
//! a page makes its tree and its sentences. It words nothing.

use rdsk_model::{Bio, BlockGrowth, Op, ProcessCalls, is_write_call};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Calls that submit reads and writes alike: what is written inside them was to be written, but what is read inside them says nothing
/// of a write.
const SUBMISSIONS: [&str; 2] = ["io_uring_enter", "io_submit"];
/// Calls that make earlier writes durable, or write out what is left.
const FLUSHES: [&str; 9] =
    ["fsync", "fdatasync", "sync", "syncfs", "sync_file_range", "msync", "close", "exit_group", "umount2"];

/// Whose I/O it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Whose {
    /// The command's, or that of what it started.
    Command,
    /// The kernel's own threads': writeback, a loop device's worker.
    Kernel,
    /// Another process's.
    Other,
}

/// Bios of one origin and direction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// Whose.
    pub whose: Whose,
    /// The command's system call; `None` where it made none, and for all others.
    pub call: Option<String>,
    /// Direction.
    pub op: Op,
    /// Whether they fail where they would wait; such bios are submitted once more, without this mark.
    pub nowait: bool,
    /// How many.
    pub count: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// The bios of a device that carry data, by origin: the command's first, reads before writes, then by number. What only asks for a
/// flush is left out; the flush is a request of its own.
pub fn origins(block: &BlockGrowth) -> Vec<Origin> {
    let mut sums: BTreeMap<(Whose, Option<&str>, bool, bool), [u64; 2]> = BTreeMap::new();
    for bio in block.bios.iter().filter(|bio| bio.bytes > 0) {
        let whose = whose(bio);
        let call = bio.syscall.as_deref().filter(|_| whose == Whose::Command);
        let key = (whose, call, bio.op == Op::Write, bio.nowait);
        let sum = sums.entry(key).or_default();
        *sum = [sum[0].saturating_add(bio.count), sum[1].saturating_add(bio.bytes)];
    }
    let mut found: Vec<Origin> = sums
        .into_iter()
        .map(|((whose, call, is_write, nowait), [count, bytes])| Origin {
            whose,
            call: call.map(str::to_owned),
            op: if is_write { Op::Write } else { Op::Read },
            nowait,
            count,
            bytes,
        })
        .collect();
    found.sort_by_key(|origin| (origin.whose, origin.op == Op::Write, Reverse(origin.count)));
    found
}

fn whose(bio: &Bio) -> Whose {
    match bio.task.as_str() {
        "this" | "child" => Whose::Command,
        "kernel" => Whose::Kernel,
        _ => Whose::Other,
    }
}

/// The command's reads inside calls that do nothing but write: the kernel needed the rest of what they changed.
pub fn reads_in_writes(origins: &[Origin]) -> Vec<&Origin> {
    of_command(origins, Op::Read).filter(|origin| is_write(origin)).collect()
}

/// The command's writes inside calls that write or submit writes: they were direct, or durable at once.
pub fn writes_in_writes(origins: &[Origin]) -> Vec<&Origin> {
    let writes = of_command(origins, Op::Write);
    writes.filter(|origin| is_write(origin) || is_one_of(origin, &SUBMISSIONS)).collect()
}

/// The command's writes inside calls that only write out what earlier ones left in memory.
pub fn writes_in_flushes(origins: &[Origin]) -> Vec<&Origin> {
    of_command(origins, Op::Write).filter(|origin| is_one_of(origin, &FLUSHES)).collect()
}

fn of_command(origins: &[Origin], op: Op) -> impl Iterator<Item = &Origin> {
    origins.iter().filter(move |origin| origin.whose == Whose::Command && origin.op == op)
}

fn is_write(origin: &Origin) -> bool {
    origin.call.as_deref().is_some_and(is_write_call)
}

fn is_one_of(origin: &Origin, calls: &[&str]) -> bool {
    origin.call.as_deref().is_some_and(|call| calls.contains(&call))
}

/// The command's bios that read ahead of what was asked for: count and bytes.
pub fn read_ahead(block: &BlockGrowth) -> [u64; 2] {
    let ahead = block.bios.iter().filter(|bio| bio.read_ahead && whose(bio) == Whose::Command);
    ahead.fold([0; 2], |[count, bytes], bio| {
        [count.saturating_add(bio.count), bytes.saturating_add(bio.bytes)]
    })
}

/// Requests of one direction by exact size, the most frequent first: size and number.
pub fn sizes(block: &BlockGrowth, op: Op) -> Vec<(u64, u64)> {
    let mut sums: BTreeMap<u64, u64> = BTreeMap::new();
    for request in block.requests.iter().filter(|request| request.op == op && request.bytes > 0) {
        *sums.entry(request.bytes).or_default() += request.count;
    }
    let mut sizes: Vec<(u64, u64)> = sums.into_iter().collect();
    sizes.sort_by_key(|&(bytes, count)| (Reverse(count), Reverse(bytes)));
    sizes
}

/// Requests of one direction that carried data.
pub fn requests(block: &BlockGrowth, op: Op) -> u64 {
    sizes(block, op).iter().map(|(_, count)| count).sum()
}

/// The mean size of a process's writing calls; `None` where it made none.
pub fn write_bytes_each(calls: &ProcessCalls) -> Option<f64> {
    (calls.writes > 0).then(|| calls.written_bytes as f64 / calls.writes as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::bios::{bio, request};

    fn small_writes() -> BlockGrowth {
        BlockGrowth {
            bios: vec![
                bio(Op::Write, "kernel", None, 3, 4096),
                bio(Op::Write, "child", Some("close"), 256, 4096),
                bio(Op::Read, "child", Some("write"), 256, 4096),
                bio(Op::Read, "other", Some("read"), 1, 4096),
                Bio { flush: true, ..bio(Op::Write, "child", Some("fsync"), 1, 0) },
            ],
            requests: vec![
                request(Op::Write, 512 << 10, 2),
                request(Op::Write, 0, 5),
                request(Op::Read, 4096, 256),
                request(Op::Read, 8192, 256),
            ],
            ..BlockGrowth::default()
        }
    }

    #[test]
    fn bios_are_told_apart_by_whose_they_are_and_what_carried_them() {
        let block = small_writes();
        let origins = origins(&block);
        let whose: Vec<Whose> = origins.iter().map(|origin| origin.whose).collect();
        assert_eq!(whose, [Whose::Command, Whose::Command, Whose::Kernel, Whose::Other]);
        assert_eq!(origins[3].call, None, "what others called is not told");
        assert_eq!(read_ahead(&block), [0, 0]);
        let mut ahead = block.clone();
        ahead.bios.iter_mut().for_each(|bio| bio.read_ahead = bio.op == Op::Read);
        assert_eq!(read_ahead(&ahead), [256, 1 << 20]);
        let [read] = reads_in_writes(&origins)[..] else { panic!("{origins:?}") };
        assert_eq!((read.count, read.bytes), (256, 1 << 20));
        let [left] = writes_in_flushes(&origins)[..] else { panic!("{origins:?}") };
        assert_eq!((left.call.as_deref(), left.count), (Some("close"), 256));
        assert!(writes_in_writes(&origins).is_empty());
    }

    #[test]
    fn a_call_that_submits_both_directions_says_nothing_of_its_reads() {
        for call in ["io_uring_enter", "io_submit"] {
            let bios = [Op::Read, Op::Write].map(|op| bio(op, "child", Some(call), 8, 4096)).to_vec();
            let origins = origins(&BlockGrowth { bios, ..BlockGrowth::default() });
            assert!(reads_in_writes(&origins).is_empty(), "{call}");
            let [written] = writes_in_writes(&origins)[..] else { panic!("{call}: {origins:?}") };
            assert_eq!((written.op, written.count), (Op::Write, 8), "{call}");
        }
    }

    #[test]
    fn what_must_not_wait_is_told_apart() {
        let plain = bio(Op::Read, "child", Some("io_uring_enter"), 7, 4096);
        let nowait = Bio { nowait: true, ..plain.clone() };
        let block = BlockGrowth { bios: vec![plain, nowait], ..BlockGrowth::default() };
        let marks: Vec<bool> = origins(&block).iter().map(|origin| origin.nowait).collect();
        assert_eq!(marks, [false, true]);
    }

    #[test]
    fn sizes_are_exact_and_the_most_frequent_comes_first() {
        let block = small_writes();
        assert_eq!(sizes(&block, Op::Write), [(512 << 10, 2)]);
        assert_eq!(sizes(&block, Op::Read), [(8192, 256), (4096, 256)]);
        assert_eq!((requests(&block, Op::Read), requests(&block, Op::Write)), (512, 2));
        let calls = ProcessCalls { writes: 2048, written_bytes: 1 << 20, ..ProcessCalls::default() };
        assert_eq!(write_bytes_each(&calls), Some(512.0));
        assert_eq!(write_bytes_each(&ProcessCalls::default()), None);
    }
}
