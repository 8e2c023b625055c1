//! The sentence for each kind of copy, from Records whose counters are known.

use super::{Analysis, Style, copies};
use rdsk_finding::fixtures::{self, copies as made, kept_in_memory, read_from_memory, with};
use rdsk_model::{
    CellRecord, Copy, EndKind, Experiment, IoPath, Op, Problem, ProblemKind, Record, Status, Sync, Target,
};

const S: u64 = 1_000_000_000;
const BLOCKS: u64 = 4096;
const BLOCK_BYTES: u64 = 16 << 10;

/// 64 MiB written by a copy, until they return.
fn writes(path: IoPath, elapsed_ns: u64) -> CellRecord {
    with(fixtures::cell("dd/write", Op::Write, path, BLOCK_BYTES, BLOCKS, elapsed_ns), |cell| {
        cell.experiment = Experiment::Dd;
    })
}

fn reads(path: IoPath) -> CellRecord {
    with(fixtures::cell("dd/read", Op::Read, path, BLOCK_BYTES, BLOCKS, S), |cell| {
        cell.experiment = Experiment::Dd;
    })
}

fn record(target: Target, cells: Vec<CellRecord>, copy: Copy) -> Record {
    Record { copies: vec![copy], ..fixtures::record(vec![target], cells) }
}

/// The answer in one line.
fn told(record: &Record) -> String {
    let text = copies(&Analysis::of(record), Style::default());
    for line in text.lines() {
        assert!(line.chars().count() <= 80, "{line}");
    }
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn from_file(runs: &[u64]) -> Copy {
    let mut copy = made::to_file(runs);
    std::mem::swap(&mut copy.input.name, &mut copy.output.name);
    (copy.input.kind, copy.input.target) = (EndKind::File, Some(0));
    (copy.output.kind, copy.output.target, copy.output.name) = (EndKind::Null, None, "/dev/null".into());
    for run in &mut copy.runs {
        run.to_stable_ns = None;
    }
    copy
}

#[test]
fn writes_that_stopped_in_memory() {
    let cell = kept_in_memory(writes(IoPath::Buffered, S), S, 8 * S);
    let text = told(&record(fixtures::file(), vec![cell.clone()], made::to_file(&[S])));
    let sentence = "rdsk This measured the page cache: 64 MiB returned in 1.00 s, and reached sda 7.00 s later (8.00 MiB/s until \
                    then); add conv=fdatasync or oflag=direct.";
    assert!(text.starts_with(sentence), "{text}");
    assert!(text.contains("time 1.00 s: read 100 ms (10.0%), write 800 ms (80.0%), dd itself 99"), "{text}");
    assert!(
        text.contains(
            "; stable 7.00 s later, by an fdatasync of rdsk; opening both ends took 10.0 ms before"
        ),
        "{text}"
    );
    let soon = kept_in_memory(writes(IoPath::Buffered, S), S, S + S / 20);
    let mut copy = made::to_file(&[S]);
    copy.runs[0].to_stable_ns = Some(S + S / 20);
    let text = told(&record(fixtures::file(), vec![soon], copy));
    assert!(
        text.starts_with("rdsk This measured the page cache in part: 64 MiB returned in 1.00 s, and"),
        "{text}"
    );
    // Direct I/O does not take blocks of 1000 bytes.
    let odd = with(cell, |cell| cell.workload.block_bytes = 1000);
    let text = told(&record(fixtures::file(), vec![odd], made::to_file(&[S])));
    assert!(text.contains("; add conv=fdatasync. "), "{text}");
}

/// `dd bs=10` and `bs=512` into the page cache (2026-11): 0.62 µs a call, whatever the disk.
#[test]
fn small_blocks_measure_the_cost_of_a_call() {
    let small = |block_bytes: u64, busy_ms: u64| {
        let cell = with(kept_in_memory(writes(IoPath::Buffered, S), S, 2 * S), |cell| {
            cell.workload.block_bytes = block_bytes;
            cell.result.ops = Some(1_000_000);
            let device = &mut cell.evidence.device[0];
            device.busy_ns = Some(busy_ms * 1_000_000);
            if let Some(counted) = &mut device.diskstat {
                counted.io_ticks_ms = busy_ms;
            }
        });
        told(&record(fixtures::file(), vec![cell], made::to_file(&[S])))
    };
    let text = small(10, 0);
    let sentence =
        "rdsk This measured the cost of a call: a write of 10 B took 800 ns, whatever the device; raise bs.";
    assert!(text.starts_with(sentence), "{text}");
    assert!(small(4096, 0).starts_with("rdsk This measured the page cache"), "{}", small(4096, 0));
    // A device that worked all the time may have held the calls back.
    assert!(small(512, 900).starts_with("rdsk This measured the page cache"), "{}", small(512, 900));
}

#[test]
fn writes_that_reached_the_device() {
    let say = |cell: CellRecord, later_ns: u64| {
        let mut copy = made::to_file(&[S]);
        copy.runs[0].to_stable_ns = Some(S + later_ns);
        let cell = with(cell, |cell| cell.result.to_stable_ns = Some(S + later_ns));
        told(&record(fixtures::file(), vec![cell], copy))
    };
    let direct = say(writes(IoPath::Direct, S), S / 100);
    assert!(
        direct.starts_with("rdsk This measured sda: direct writes of 16 KiB, one at a time, each about "),
        "{direct}"
    );
    assert!(!direct.contains("flush of its cache"), "{direct}");
    let flushed = say(writes(IoPath::Direct, S), S);
    assert!(
        flushed.contains("; the flush of its cache took 1.00 s more (32.0 MiB/s until on disk)."),
        "{flushed}"
    );
    let at_end = with(writes(IoPath::Buffered, S), |cell| cell.workload.sync = Sync::FsyncAtEnd);
    assert!(say(at_end, 0).starts_with("rdsk This measured sda: the flush at the end is in the time."));
    // A copy that Ctrl-C ended had no flush.
    let mut cut = made::to_file(&[S]);
    cut.runs[0].is_complete = false;
    let unflushed = with(writes(IoPath::Buffered, S), |cell| cell.workload.sync = Sync::FsyncAtEnd);
    let mut record = record(fixtures::file(), vec![unflushed], cut);
    record.status = Status::Interrupted;
    let said = told(&record);
    assert!(
        said.contains("when the copy ended, before the flush at its end; ")
            && said.contains(" The copy was cut short: these are the figures until then."),
        "{said}"
    );
    let durable = with(writes(IoPath::Direct, S), |cell| cell.workload.sync = Sync::Dsync);
    assert!(say(durable, 0).starts_with("rdsk This measured sda: every write was stable when it returned."));
}

#[test]
fn reads_from_memory_and_from_the_device() {
    let cached =
        told(&record(fixtures::file(), vec![read_from_memory(reads(IoPath::Buffered))], from_file(&[S])));
    let sentence = "rdsk This measured the page cache: none of the 64 MiB that were read came from sda; add iflag=direct, or \
                    drop the input's pages before with iflag=nocache count=0.";
    assert!(cached.starts_with(sentence), "{cached}");
    let buffered = told(&record(fixtures::file(), vec![reads(IoPath::Buffered)], from_file(&[S])));
    assert!(
        buffered.starts_with("rdsk This measured sda, read through the page cache: reads of 16 KiB were "),
        "{buffered}"
    );
    let direct = told(&record(fixtures::file(), vec![reads(IoPath::Direct)], from_file(&[S])));
    assert!(direct.starts_with("rdsk This measured sda: direct reads of 16 KiB, one at a time"), "{direct}");
}

#[test]
fn repeated_reads_say_whether_the_first_found_the_input_too() {
    let say = |cached_runs: u64| {
        let cell = with(fixtures::in_visits(read_from_memory(reads(IoPath::Buffered)), 4), |cell| {
            let of_one = cell.result.bytes.unwrap() / 4;
            cell.evidence.page_cache.as_mut().unwrap().before.cached_bytes = Some(cached_runs * of_one);
        });
        told(&record(fixtures::file(), vec![cell], from_file(&[S, S / 2, S / 2, S / 2])))
    };
    assert!(say(3).contains("beware from the second run on the input was in the page cache"), "{}", say(3));
    assert!(say(4).contains("beware the input was in the page cache before every run"), "{}", say(4));
    assert!(!say(0).contains("beware"), "{}", say(0));
    assert!(say(4).contains("none of the 16 MiB that were read came from sda"), "{}", say(4));
    assert!(say(4).contains("runs 3: 500 ms ±"), "{}", say(4));
    assert!(
        say(4).contains("first run 1 took 1.00 s, 2.00x as long, and is not in the mean beware"),
        "{}",
        say(4)
    );
}

#[test]
fn a_filesystem_in_memory_is_named() {
    let mut target = fixtures::file();
    target.device = None;
    target.filesystem.as_mut().unwrap().kind = "tmpfs".into();
    let cell = fixtures::without_counters(kept_in_memory(writes(IoPath::Buffered, S), S, S));
    let text = told(&record(target, vec![cell], made::to_file(&[S])));
    assert!(text.starts_with("rdsk The output is kept in memory by tmpfs: no disk was written."), "{text}");
}

#[test]
fn requests_of_others_are_not_the_copys() {
    let cell = with(writes(IoPath::Direct, S), |cell| {
        cell.result.to_stable_ns = Some(S);
        let device = &mut cell.evidence.device[0];
        (device.writes, device.write_bytes) = (Some(2 * BLOCKS), Some(128 << 20));
    });
    let say = |cell: CellRecord| told(&record(fixtures::file(), vec![cell], made::to_file(&[S])));
    let text = say(cell.clone());
    let words = "4,096 writes of 16 KiB; its device did 8,192 requests of 16 KiB on average, those of others among them";
    assert!(text.contains(words), "{text}");
    assert!(
        say(writes(IoPath::Direct, S)).contains("4,096 writes of 16 KiB became 4,096 requests of 16 KiB")
    );
    let unknown = with(cell, |cell| {
        let device = &mut cell.evidence.device[0];
        (device.writes, device.write_bytes, device.reads, device.read_bytes) = (None, None, None, None);
    });
    assert!(say(unknown).contains("4,096 writes of 16 KiB; what its device counted may be the other end's"));
}

#[test]
fn a_copy_that_failed_says_so() {
    let mut copy = made::to_file(&[S]);
    copy.runs[0].is_complete = false;
    let text = told(&record(fixtures::file(), vec![writes(IoPath::Direct, S)], copy.clone()));
    assert!(text.contains("The copy failed: these are the figures until then."), "{text}");
    copy.runs[0].written_bytes = 0;
    let text = told(&record(fixtures::file(), Vec::new(), copy));
    assert_eq!(text, "rdsk Nothing was copied, so nothing was measured.");
}

#[test]
fn an_input_that_sets_the_pace_is_named() {
    let mut copy = made::to_file(&[S]);
    (copy.input.kind, copy.input.name) = (EndKind::Pipe, "standard input".into());
    (copy.runs[0].read_ns, copy.runs[0].write_ns) = (Some(S / 10 * 9), Some(S / 20));
    let cell = with(writes(IoPath::Direct, S), |cell| cell.result.to_stable_ns = Some(S));
    let text = told(&record(fixtures::file(), vec![cell], copy));
    assert!(
        text.contains("90.0% of the time went into reading from a pipe: the output may be faster."),
        "{text}"
    );
    assert!(text.contains("input standard input, a pipe: no storage"), "{text}");
}

#[test]
fn times_of_calls_that_are_not_known_are_said_to_be_so() {
    let mut copy = made::to_file(&[S]);
    (copy.runs[0].read_ns, copy.runs[0].write_ns) = (None, None);
    let text = told(&record(fixtures::file(), vec![writes(IoPath::Direct, S)], copy));
    assert!(text.contains("read and write are not known, because the processor's counter"), "{text}");
    assert!(!text.contains("write 0") && !text.contains("dd itself"), "{text}");
}

#[test]
fn two_lines_are_compared() {
    let quick: Vec<u64> = [10, 12, 11, 10, 13, 11].map(|tenths| tenths * S / 20).to_vec();
    let slow: Vec<u64> = quick.iter().map(|ns| 2 * ns).collect();
    let cell = |id: &str| {
        with(reads(IoPath::Direct), |cell| {
            cell.id = id.into();
        })
    };
    let mut record = record(fixtures::file(), vec![cell("dd/1/read"), cell("dd/2/read")], from_file(&slow));
    record.copies.push(from_file(&quick));
    record.copies[1].operands.push("iflag=direct".into());
    let text = told(&record);
    assert!(
        text.contains("done 2 is 2.00x as fast as 1 in 6 pairs. The 95% interval is 2.00 to 2.00."),
        "{text}"
    );
    record.copies.swap(0, 1);
    assert!(told(&record).contains("done 1 is 2.00x as fast as 2 in 6 pairs."), "{}", told(&record));
    record.copies.swap(0, 1);
    assert!(text.contains("why the reads of 1 are device, those of 2 device"), "{text}");
    record.copies[1].runs = record.copies[0].runs.clone();
    assert!(
        told(&record).contains("done no difference was found: 2 is 1.00x as fast as 1 in 6 pairs"),
        "{}",
        told(&record)
    );
}

#[test]
fn the_whole_page_has_the_answer_too() {
    let cell = kept_in_memory(writes(IoPath::Buffered, S), S, 8 * S);
    let record = record(fixtures::file(), vec![cell], made::to_file(&[S]));
    let page = crate::tests::text(&record, Style::default());
    assert!(page.contains("DD: what the copy measured\nrdsk    This measured the page cache"), "{page}");
    let nothing =
        Record { cells: Vec::new(), targets: Vec::new(), copies: vec![made::to_file(&[])], ..record };
    assert!(
        crate::tests::text(&nothing, Style::default())
            .contains("Nothing was copied, so nothing was measured.")
    );
}

/// What a device does meanwhile is the copy's only as far as the kernel charged it to the copy.
#[test]
fn requests_are_the_copys_as_far_as_the_kernel_charged_them() {
    let cached = read_from_memory(reads(IoPath::Buffered));
    let of = |reads: u64, own: Option<u64>| {
        let cell = with(cached.clone(), |cell| {
            let device = &mut cell.evidence.device[0];
            (device.reads, device.read_bytes) = (Some(reads), Some(reads * 4096));
            cell.evidence.process.read_bytes = own;
        });
        told(&record(fixtures::file(), vec![cell], from_file(&[S])))
    };
    for (reads, own, words) in [
        (0, Some(0), "4,096 reads of 16 KiB, and no request to the device"),
        (10, Some(0), "and no request to the device, which did 10 requests of 4 KiB on average for others"),
        (10, Some(40_960), "4,096 reads of 16 KiB became 10 requests of 4 KiB on average"),
        (10, Some(4096), "its device did 10 requests of 4 KiB on average, those of others among them"),
        (10, None, "its device did 10 requests of 4 KiB on average, which others may have asked for"),
    ] {
        let text = of(reads, own);
        assert!(text.contains(words), "{words}: {text}");
    }
}

/// A server of FUSE reads for the copy, and no process is charged for that here.
#[test]
fn requests_of_a_server_are_not_called_those_of_others() {
    let of = |own: u64| {
        let cell = with(reads(IoPath::Buffered), |cell| {
            cell.evidence.process.read_bytes = Some(0);
            cell.evidence.device[0].read_bytes = Some(own << 20);
        });
        let mut target = fixtures::file();
        target.filesystem.as_mut().unwrap().kind = "fuseblk".into();
        told(&record(target, vec![cell], from_file(&[S])))
    };
    for (mib, words) in [
        (64, "4,096 reads of 16 KiB became 4,096 requests of 16 KiB on average"),
        (100, "its device did 4,096 requests of 25 KiB on average, which others may have asked for"),
        (20, "4,096 requests of 5 KiB on average, which others may have asked for"),
    ] {
        let text = of(mib);
        assert!(text.contains(words), "{words}: {text}");
    }
    assert!(of(64).contains("This measured sda, read through the page cache"), "{}", of(64));
    assert!(of(20).contains("sda delivered only 20"), "{}", of(20));
}

/// The block layer counts requests that fail as it counts others, so its counters alone would say that all was written.
#[test]
fn a_flush_that_failed_is_told_before_what_the_device_counted() {
    let mut record = record(
        fixtures::file(),
        vec![kept_in_memory(writes(IoPath::Buffered, S), S, 8 * S)],
        made::to_file(&[S]),
    );
    let message = "flushing out failed: Input/output error; not all of it is on the device";
    record.error = Some(Problem::plain(ProblemKind::Io, "flush-failed", message));
    let text = told(&record);
    let wanted =
        format!("rdsk Data was lost: {message}. What a device counted holds requests that failed, too. ");
    assert!(text.starts_with(&wanted), "{text}");
}

#[test]
fn a_run_that_was_cut_short_leaves_the_others() {
    let mut copy = made::to_file(&[S, S, S / 3]);
    (copy.runs[2].is_complete, copy.runs[2].to_stable_ns) = (false, None);
    let text =
        told(&record(fixtures::file(), vec![kept_in_memory(writes(IoPath::Buffered, S), S, 8 * S)], copy));
    assert!(text.contains("runs 2: 1.00 s"), "{text}");
    assert!(text.contains("The last run was cut short: these are the times of those before it."), "{text}");
}

/// Beyond the end of a device that was removed, reads return nothing, and dd ends well.
#[test]
fn a_device_that_left_is_told_before_its_figure() {
    let mut record = record(fixtures::file(), vec![reads(IoPath::Direct)], from_file(&[S]));
    let complete = told(&record);
    assert!(!complete.contains("Not all was copied"), "{complete}");
    record.error = Some(Problem::plain(ProblemKind::Io, "gone", "sda is gone, and the copy ends there"));
    let text = told(&record);
    assert!(text.starts_with("rdsk Not all was copied: sda is gone, and the copy ends there. "), "{text}");
}
