//! What is said of commands whose I/O is known.

use super::*;
use rdsk_finding::fixtures::bios::{bio, request};
use rdsk_model::{Bio, BlockActivity, CommandFlush, Op, ProcessCalls, Verdict, VerdictCode, WatchInterval};
use rdsk_stats::Histogram;

fn growth(read_kib: u64, write_kib: u64) -> DiskStat {
    DiskStat {
        read_ios: read_kib / 4,
        read_sectors: read_kib * 2,
        write_ios: write_kib.div_ceil(512),
        write_sectors: write_kib * 2,
        io_ticks_ms: 12,
        flush_ios: Some(0),
        ..DiskStat::default()
    }
}

fn small_writes() -> CommandRun {
    let mut latency = Histogram::new();
    (0..258).for_each(|_| latency.record(20_000));
    let block = BlockActivity {
        bios: vec![
            bio(Op::Read, "child", Some("write"), 256, 4096),
            bio(Op::Write, "child", Some("close"), 256, 4096),
        ],
        requests: vec![request(Op::Read, 4096, 256), request(Op::Write, 512 << 10, 2)],
        merges: 254,
        deepest: Some(2),
        latency,
        ..BlockActivity::default()
    };
    let device =
        WatchedDevice { block: Some(block), ..WatchedDevice::by_counters("loop0", Ok(growth(1024, 1024))) };
    CommandRun {
        words: "dd if=/dev/zero of=/dev/loop0 bs=512 count=2048".split(' ').map(String::from).collect(),
        end: "exit code 0".into(),
        elapsed_ns: 14_200_000,
        calls: Some(ProcessCalls {
            reads: 2056,
            read_bytes: 1_052_000,
            writes: 2051,
            written_bytes: 1_048_700,
        }),
        whole: WatchInterval { interval_ns: 30_000_000, devices: vec![device] },
        ..CommandRun::default()
    }
}

#[test]
fn small_writes_to_a_device() {
    insta::assert_snapshot!("command-small-writes", command_io(&small_writes(), Style::default()));
    let narrow = command_io(&small_writes(), Style { width: 40, ..Style::default() });
    assert!(narrow.lines().all(|line| line.chars().count() <= 40), "{narrow}");
}

/// What is read inside a write is the rest of a page only where the counts leave nothing else: a filesystem reads its own blocks
/// there, too.
#[test]
fn reads_of_a_filesystem_are_not_called_parts_of_pages() {
    let told = |read: Bio, calls: Option<ProcessCalls>| {
        let mut run = small_writes();
        run.whole.devices[0].block.as_mut().unwrap().bios[0] = read;
        run.calls = calls;
        command_io(&run, Style::default()).split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let calls = |writes: u64, each: u64| {
        Some(ProcessCalls { reads: 0, read_bytes: 0, writes, written_bytes: writes * each })
    };
    let read = |count: u64, bytes: u64| bio(Op::Read, "child", Some("write"), count, bytes);
    let of_parts = "Each write of about 512 B fills a part of a page, so the kernel read the page first: 256 reads inside";
    assert!(told(read(256, 4096), calls(2048, 512)).contains(of_parts));
    for (read, calls) in [
        (read(256, 4096), calls(256, 4096)),
        (read(256, 4096), calls(4, 1 << 20)),
        (read(256, 4096), calls(8192, 512)),
        (read(256, 512), calls(2048, 512)),
        (read(256, 4096), None),
    ] {
        let text = told(read, calls);
        assert!(!text.contains("fills"), "{text}");
        assert!(
            text.contains(
                "256 reads inside write(2): the kernel needed them for these writes, for pages that change only in part or for the \
                 filesystem's own blocks."
            ),
            "{text}"
        );
    }
    assert!(
        told(read(1, 4096), calls(4, 1 << 20)).contains("1 read inside write(2): the kernel needed it for")
    );
}

#[test]
fn without_bpf_and_without_a_device() {
    let mut run = small_writes();
    run.whole.devices[0].block = None;
    run.after = WatchInterval {
        interval_ns: 1,
        devices: vec![WatchedDevice::by_counters("loop0", Ok(growth(0, 512)))],
    };
    run.whole.devices.push(WatchedDevice::by_counters("sdb", Err(Uncounted::Vanished)));
    run.why_no_bpf = Some("no permission for BPF".into());
    insta::assert_snapshot!("command-sysfs", command_io(&run, Style::default()));
    run.whole.devices.clear();
    run.dirty_left_bytes = Some(1 << 20);
    insta::assert_snapshot!("command-memory", command_io(&run, Style::default()));
}

#[test]
fn what_is_not_the_commands_is_said() {
    let mut run = small_writes();
    let block = run.whole.devices[0].block.as_mut().unwrap();
    block.bios = vec![
        bio(Op::Write, "child", Some("pwrite64"), 4, 1 << 20),
        bio(Op::Write, "kernel", None, 2, 4096),
        Bio { bytes: 12_289, ..bio(Op::Read, "other", Some("read"), 3, 4096) },
    ];
    (block.splits, block.merges, block.lost, block.flushes) = (4, 0, 1, 1);
    let theirs = BlockActivity {
        bios: vec![bio(Op::Read, "other", Some("read"), 1, 4096)],
        ..BlockActivity::default()
    };
    let of = |name: &str| WatchedDevice::by_counters(name, Ok(growth(4, 0)));
    run.whole.devices.push(WatchedDevice { block: Some(theirs), ..of("sdc") });
    let why = Some("it was set up, or removed, after counting began".into());
    run.whole.devices.push(WatchedDevice { why_no_block: why, ..of("loop9") });
    run.unfollowed = 1;
    insta::assert_snapshot!("command-others", command_io(&run, Style::default()));
}

fn told(run: &CommandRun) -> String {
    command_io(run, Style { width: 120, ..Style::default() })
}

#[test]
fn a_device_whose_counters_prove_nothing_is_not_taken_for_idle() {
    let mut run = small_writes();
    let device = &mut run.whole.devices[0];
    device.growth =
        Err(Uncounted::Unknown("queue/iostats of loop0 is 0, and its counters stood still".into()));
    let both = told(&run);
    assert!(
        both.contains("loop0: queue/iostats of loop0 is 0")
            && both.contains("256 reads of 4 KiB from write(2)"),
        "{both}"
    );
    run.whole.devices[0].block = Some(BlockActivity { discards: 2, ..BlockActivity::default() });
    assert!(told(&run).contains("2 discards"), "{}", told(&run));
    run.whole.devices[0].block = Some(BlockActivity::default());
    assert!(told(&run).contains("No watched device did anything"), "the programs saw that it was idle");
    run.whole.devices[0].block = None;
    let alone = told(&run);
    assert!(
        alone.contains("loop0: queue/iostats of loop0 is 0") && !alone.contains("No watched device"),
        "{alone}"
    );
}

#[test]
fn what_only_the_kernel_counted_is_shown_with_why() {
    let mut run = small_writes();
    let why = Some("bios of NVMe multipath devices do not name them when they end".into());
    run.whole.devices = vec![WatchedDevice {
        why_no_block: why,
        ..WatchedDevice::by_counters("nvme0n1", Ok(growth(0, 1 << 20)))
    }];
    let text = told(&run);
    for part in [
        "nvme0n1: 0 B read, 1 GiB written",
        "0 reads and 2,048 writes completed",
        "Who used it is not known: bios of",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
    assert!(!text.contains("No watched device"), "{text}");
}

#[test]
fn discards_are_shown_where_there_are_some() {
    let mut run = small_writes();
    assert!(!told(&run).contains("discard"));
    let device = &mut run.whole.devices[0];
    let counted = DiskStat { discard_ios: Some(3), discard_sectors: Some(6 << 11), ..DiskStat::default() };
    (device.growth, device.block) = (Ok(counted), None);
    let text = told(&run);
    assert!(text.contains("0 B read, 0 B written, 6 MiB discarded"), "{text}");
    assert!(text.contains("0 reads, 0 writes and 3 discards completed, 0 merged"), "{text}");
}

#[test]
fn zeroes_that_the_device_writes_by_itself_are_named() {
    let mut run = small_writes();
    assert!(!told(&run).contains("write-zeroes"));
    let block = run.whole.devices[0].block.as_mut().unwrap();
    *block = BlockActivity { discards: 1, write_zeroes: 2, ..BlockActivity::default() };
    assert!(told(&run).contains("0 splits, 1 discard, 2 write-zeroes requests"), "{}", told(&run));
}

#[test]
fn no_word_of_the_command_reaches_the_screen_as_it_is() {
    let run = CommandRun { words: vec!["x\u{1b}[2J".into()], ..small_writes() };
    assert!(!command_io(&run, Style::default()).contains('\u{1b}'));
}

#[test]
fn the_verdict_and_the_flush_are_sentences() {
    let verdict = Verdict {
        code: VerdictCode::PageCache,
        device_share: None,
        text: "memory took the data: sda had written 0% of 64 MiB at the return".into(),
    };
    let mut run = CommandRun { verdicts: vec![CommandVerdict { op: Op::Write, verdict }], ..small_writes() };
    let flush = CommandFlush { took_ns: Some(312_000_000), places: vec!["/srv\u{1b}".into()], error: None };
    let mut shown = |flush: CommandFlush| {
        run.flush = Some(flush);
        command_io(&run, Style::default()).split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let text = shown(flush.clone());
    assert!(text.contains("The writes: page-cache: memory took the data: sda had written 0%"), "{text}");
    assert!(text.contains("On disk 312 ms after the command's end (flushed: /srv\\x1b)."), "{text}");
    let text = shown(CommandFlush { took_ns: None, ..flush.clone() });
    assert!(text.contains("was cut short"), "{text}");
    let text =
        shown(CommandFlush { error: Some("flushing /srv failed: Input/output error".into()), ..flush });
    assert!(text.contains("Data was lost: flushing /srv failed"), "{text}");
}
