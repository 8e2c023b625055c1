//! The answer of `rdsk dd` below dd's lines: the right sentence for every kind of input and output, and every figure of it in
//! the Record, which keeps the contract.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod documents;
mod ends;
mod flush;
mod progress;

use crate::common::{self, SOON, scratch};
use crate::support::checked_run::contract::complaints;
use rdsk_model::{Bio, Copy, Op, ProblemKind, Record, StableBy, VerdictCode};
use rdsk_testkit::attempts::{ensure, first_right, same};
use rdsk_testkit::cli::{self, Run};
use rdsk_testkit::{DirectIo, LoopDevice, Need, requires};
use rdsk_units::{Bytes, Nanos};
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

/// Of as many attempts one has to be without an event that the kernel passed over.
const ATTEMPTS: usize = 10;

/// One command line, its output, and its Record.
struct Answer {
    run: Run,
    record: Record,
}

impl Answer {
    /// What stands below dd's own three lines, in one line.
    fn text(&self) -> String {
        self.run.stderr.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    fn says(&self, words: &str) -> &Self {
        assert!(self.text().contains(words), "{words}:\n{}", self.run.stderr);
        self
    }

    /// The words of what BPF counted of a cell, or those of sysfs without it. What the programs missed is the machine's, and not always
    /// said: then the words have another number, or, of more than 1 %, are those of sysfs, and another attempt is to be made.
    fn says_by(&self, cell: &str, bpf: &str, sysfs: &str) -> Result<(), String> {
        let cell = self.record.cell(cell).unwrap();
        let (lost, words) = match &cell.evidence.bpf {
            Some(counts) => (counts.lost, bpf),
            None => (0, sysfs),
        };
        ensure(lost == 0 && self.text().contains(words), || {
            format!("{lost} lost, {words}:\n{}", self.run.stderr)
        })
    }

    /// Whether no other program's bios were counted.
    fn is_alone(&self) -> bool {
        !self.text().contains("of other processes") && !self.text().contains("the kernel's threads")
    }

    fn copy(&self) -> &Copy {
        &self.record.copies[0]
    }

    fn verdict(&self, cell: &str) -> VerdictCode {
        let cell = self.record.cell(cell).unwrap_or_else(|| panic!("no {cell}:\n{}", self.run.stderr));
        cell.verdict.as_ref().unwrap().code
    }
}

fn asked(place: &Path, options: &[&str], line: &str) -> Answer {
    let document = place.join("record.json");
    let document = document.to_str().unwrap();
    let mut command = common::command(["dd", "--json", document]);
    command.args(options).args(line.split(' ')).current_dir(place);
    let run = cli::run(command, SOON);
    let text = std::fs::read_to_string(document).unwrap_or_else(|error| panic!("{error}: {}", run.stderr));
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(complaints(&value), [""; 0], "{}", run.stderr);
    let record: Record = serde_json::from_value(value).unwrap();
    for line in run.stderr.lines() {
        assert!(line.chars().count() <= 80, "{line}");
    }
    Answer { run, record }
}

fn answer(place: &Path, line: &str) -> Answer {
    let answer = asked(place, &[], line);
    assert_eq!(answer.run.status_code, Some(0), "{}", answer.run.stderr);
    answer
}

/// A file whose data is on the disk.
fn written(path: &Path, bytes: usize) {
    let content: Vec<u8> = (0..251).cycle().take(bytes).collect();
    let mut file = std::fs::File::create(path).unwrap();
    file.write_all(&content).unwrap();
    file.sync_all().unwrap();
}

/// The report's first line. A writer that syncs, or a kernel short of memory, may write the data out before dd is done, and then
/// another attempt counts.
#[test]
fn zeros_to_a_file_measure_the_page_cache() {
    let place = scratch();
    let answers: Vec<Answer> =
        (0..5).map(|_| answer(place.path(), "if=/dev/zero of=out bs=16k count=4096")).collect();
    let of_memory = answers.iter().find(|answer| answer.verdict("dd/write") == VerdictCode::PageCache);
    let Some(answer) = of_memory else { panic!("{}", answers[0].run.stderr) };
    let run = &answer.copy().runs[0];
    assert_eq!((run.written_bytes, run.full_blocks_in, run.full_blocks_out), (64 << 20, 4096, 4096));
    assert_eq!(run.stable_by, StableBy::Rdsk);
    let later = run.to_stable_ns.unwrap() - run.to_close_ns;
    answer
        .says("4096+0 records out 67108864 bytes (67 MB, 64 MiB) copied, ")
        .says(&format!(": 64 MiB returned in {}, and reached ", Nanos(run.to_close_ns)))
        .says(&format!(" {} later", Nanos(later)))
        .says("add conv=fdatasync or oflag=direct.")
        .says(&format!("time {}: ", Nanos(run.to_close_ns)))
        .says("input /dev/zero: no storage")
        .says("output out on ")
        .says("4,096 writes of 16 KiB");
    assert!(answer.record.cell("dd/read").is_none(), "/dev/zero is no target");
}

#[test]
fn a_flush_that_the_operands_ask_for_is_in_the_time() {
    let place = scratch();
    for line in [
        "bs=16k count=1024 conv=fdatasync",
        "bs=64k count=10 oflag=dsync",
        "bs=1M count=16 oflag=direct,dsync",
    ] {
        let answer = answer(place.path(), &format!("if=/dev/zero of=out {line}"));
        let run = &answer.copy().runs[0];
        assert_eq!((run.stable_by, run.to_stable_ns), (StableBy::Operands, Some(run.to_close_ns)), "{line}");
        assert_ne!(answer.verdict("dd/write"), VerdictCode::PageCache, "{line}: {}", answer.text());
        answer.says("the data was stable then, as the operands ask");
    }
}

/// The report's other lines, on a disk whose file is on a disk.
#[test]
fn reads_of_a_device_show_its_requests() {
    if !requires(&[Need::Root, Need::Loop]) {
        return;
    }
    let place = scratch();
    let file = place.path().join("image");
    written(&file, 32 << 20);
    let is_told = |block: &str, count: u64| {
        // A new device has nothing in memory.
        let device = LoopDevice::builder().over(&file).direct_io(DirectIo::On).create().unwrap();
        let answer = answer(
            place.path(),
            &format!("if={} of=/dev/null bs={block} count={count}", device.path().display()),
        );
        let cell = answer.record.cell("dd/read").unwrap();
        assert_eq!((cell.result.bytes, cell.result.ops), (Some(32 << 20), Some(count)), "{block}");
        let own = &cell.evidence.device[0];
        assert_eq!(own.name, device.name());
        // Who looks for a disk may have read a part of it before.
        ensure(own.read_bytes >= Some(32 << 20), || format!("{block}: {own:?}"))?;
        let code = answer.verdict("dd/read");
        if code == VerdictCode::Device {
            answer.says(&format!("This measured {}, read through the page cache: reads of ", device.name()));
        }
        assert_ne!(code, VerdictCode::PageCache, "{block}: {}", answer.text());
        let size = Bytes(cell.workload.block_bytes);
        answer.says(&format!("{count} reads of {size}")).says("output /dev/null: no storage");
        // BPF shows each size, where it can be had; sysfs only how many there were.
        answer.says_by("dd/read", "requests: ", &format!(" {} request", own.reads.unwrap()))
    };
    for (block, count) in [("128k", 256_u64), ("256k", 128), ("1024k", 32)] {
        first_right(ATTEMPTS, || is_told(block, count));
    }
}

/// With its privilege, BPF says what the calls of dd's own loop became: the reads inside write(2), and what close(2) wrote. On some
/// machines the kernel passes over an event now and then, and who looks for a disk holds the device open; then another attempt
/// counts.
#[test]
fn what_the_calls_became_is_counted_by_bpf() {
    if !requires(&[Need::Root, Need::Loop, Need::Bpf]) {
        return;
    }
    let place = scratch();
    first_right(ATTEMPTS, || {
        // A new device has nothing in memory.
        let device = LoopDevice::builder().size(16 << 20).direct_io(DirectIo::Off).create().unwrap();
        let identity = device.backing_path().display().to_string();
        let line = format!("if=/dev/zero of={} bs=512 count=2048 conv=notrunc", device.path().display());
        let answer = asked(place.path(), &["--destroy", &identity], &line);
        let evidence = &answer.record.cell("dd/write").unwrap().evidence;
        let calls_of = |op: Op, call: &str| -> u64 {
            let is_one =
                |bio: &&Bio| (bio.op, bio.syscall.as_deref(), bio.task.as_str()) == (op, Some(call), "this");
            evidence.bios.iter().filter(is_one).map(|bio| bio.count).sum()
        };
        let counts = [calls_of(Op::Read, "write"), calls_of(Op::Write, "close")];
        assert!(counts.iter().all(|&count| count <= 256), "{:?}", evidence.bios);
        let bpf = evidence.bpf.as_ref().unwrap();
        let its = bpf.checks.iter().find(|check| check.device == device.name()).unwrap();
        let times = (bpf.observed_ns, bpf.timed_ns);
        same("observed and timed", &times, &(bpf.visits_ns, Some(bpf.visits_ns)))?;
        same("reads inside write(2), writes inside close(2)", &counts, &[256, 256])?;
        let is_whole = bpf.lost == 0 && its.bpf == its.sysfs && answer.is_alone();
        ensure(is_whole, || format!("{bpf:?}\n{}", answer.run.stderr))?;
        let depth = evidence.device[0].in_flight_max;
        ensure(depth.is_some_and(|depth| depth > 0), || format!("{depth:?} in flight"))?;
        for words in [
            "2,048 writes of 512 B became 256 bios of 4 KiB by close(2); requests: ",
            "one write in 8.00 first reads 4 KiB",
        ] {
            ensure(answer.text().contains(words), || format!("{words}:\n{}", answer.run.stderr))?;
        }
        Ok(())
    });
}

#[test]
fn a_cached_input_measures_memory() {
    let place = scratch();
    written(&place.path().join("in"), 4 << 20);
    // The kernel may take pages back between the two.
    let answers: Vec<Answer> = (0..5).map(|_| answer(place.path(), "if=in of=/dev/null bs=64k")).collect();
    let of_memory = answers.iter().find(|answer| answer.verdict("dd/read") == VerdictCode::PageCache);
    let Some(answer) = of_memory else { panic!("{}", answers[0].run.stderr) };
    answer.says("This measured the page cache: ").says("add iflag=direct, or drop");
}

#[test]
fn ends_that_are_no_storage_are_named() {
    let place = scratch();
    let answer = answer(place.path(), "if=/dev/zero of=/dev/null bs=64k count=16");
    answer.says("No disk took part: from /dev/zero to /dev/null only the processor works.");
    assert!(answer.record.cells.is_empty() && answer.record.targets.is_empty());
    answer_of_random(place.path());
    let nothing = asked(place.path(), &[], "if=/dev/null of=out bs=64k");
    nothing.says("Nothing was copied, so nothing was measured.");
}

fn answer_of_random(place: &Path) {
    let answer = answer(place, "if=/dev/urandom of=/dev/null bs=64k count=64");
    answer
        .says("No disk took part: this measured the random generator and /dev/null; the reads took longer.");
}

#[test]
fn a_pipe_is_named_and_gets_dds_bytes() {
    let place = scratch();
    written(&place.path().join("in"), 1 << 20);
    let mut first = common::command(["dd", "if=in", "bs=64k"]);
    let mut first =
        first.current_dir(place.path()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut second = common::command(["dd", "bs=64k", "iflag=fullblock", "of=out"]);
    second.stdin(first.stdout.take().unwrap()).current_dir(place.path());
    let second = second.output().unwrap();
    let first = first.wait_with_output().unwrap();
    let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        said(&first.stderr).contains("output standard output, a pipe: no storage"),
        "{}",
        said(&first.stderr)
    );
    assert!(
        said(&second.stderr).contains("input standard input, a pipe: no storage"),
        "{}",
        said(&second.stderr)
    );
    assert!(
        std::fs::read(place.path().join("in")).unwrap() == std::fs::read(place.path().join("out")).unwrap()
    );
}

#[test]
fn a_filesystem_in_memory_is_no_disk() {
    let place = scratch();
    let shared = tempfile::tempdir_in("/dev/shm").unwrap();
    let file = shared.path().join("out");
    let answer = answer(place.path(), &format!("if=/dev/zero of={} bs=64k count=16", file.display()));
    assert_eq!(answer.verdict("dd/write"), VerdictCode::PageCache);
    answer.says("The output is kept in memory by tmpfs: no disk was written.");
}

#[test]
fn a_sparse_input_measures_no_disk() {
    let place = scratch();
    std::fs::File::create(place.path().join("in")).unwrap().set_len(8 << 20).unwrap();
    let answer = answer(place.path(), "if=in of=/dev/null bs=1M iflag=direct");
    assert_eq!(answer.verdict("dd/read"), VerdictCode::Hole);
    answer.says("This measured no disk: ");
}

#[test]
fn parts_of_pages_show_the_reads_that_they_cause() {
    if !requires(&[Need::Root, Need::Loop]) {
        return;
    }
    let place = scratch();
    let file = place.path().join("image");
    written(&file, 8 << 20);
    first_right(ATTEMPTS, || {
        // A new device has nothing in memory.
        let device = LoopDevice::builder().over(&file).direct_io(DirectIo::On).create().unwrap();
        let line = format!("if=/dev/zero of={} bs=512 count=2048", device.path().display());
        let answer = asked(place.path(), &["--destroy", file.to_str().unwrap()], &line);
        assert_eq!(answer.run.status_code, Some(0), "{}", answer.run.stderr);
        // 1 MiB in 256 pages, each read once.
        let (bpf, sysfs) =
            ("one write in 8.00 first reads 4 KiB", "1 MiB read because of writes of part of a page");
        answer.says_by("dd/write", bpf, sysfs)
    });
}

#[test]
fn nothing_is_explained_unless_it_is_wanted() {
    let place = scratch();
    for line in
        ["--explain=off if=/dev/zero of=out bs=1M count=4", "if=/dev/zero of=out bs=1M count=4 status=none"]
    {
        let mut command = common::command(["dd"]);
        let run = cli::run(
            {
                command.args(line.split(' ')).current_dir(place.path());
                command
            },
            SOON,
        );
        let lines = if line.contains("none") { 0 } else { 3 };
        assert_eq!(run.stderr.lines().count(), lines, "{}", run.stderr);
    }
    let quiet = asked(place.path(), &["--explain", "off"], "if=/dev/zero of=out bs=1M count=4");
    assert_eq!(quiet.run.stderr.lines().count(), 3, "{}", quiet.run.stderr);
    assert_eq!((quiet.copy().runs[0].to_stable_ns, quiet.copy().runs[0].stable_by), (None, StableBy::Nobody));
}

/// A program that reads the Record must show a refusal, which has written nothing, from a disk that failed.
#[test]
fn a_refusal_is_in_the_record_with_its_code_and_hint() {
    let place = scratch();
    let refused = asked(place.path(), &["--history", "h.db"], "if=/dev/zero of=h.db count=1");
    assert_eq!(refused.run.status_code, Some(1));
    let error = refused.record.error.as_ref().unwrap();
    assert_eq!((error.kind, error.code.as_str()), (ProblemKind::Refused, "target-is-history"));
    let hint = error.hint.as_ref().unwrap();
    assert_eq!(refused.run.stderr, format!("error: {}\nhint: {hint}\n", error.message));
    assert!(!place.path().join("h.db").exists());
    if !requires(&[Need::Root, Need::Loop]) {
        return;
    }
    let device = LoopDevice::builder().size(1 << 20).create().unwrap();
    let output = format!("of={}", device.path().display());
    let run = common::rdsk(["dd", "--json", "-", "if=/dev/zero", &output, "count=1"]);
    assert_eq!(run.status_code, Some(1), "{}", run.stderr);
    let error = &common::record(cli::json(&run))["error"];
    assert_eq!(error["kind"], "refused", "{error}");
    assert!(error["hint"].is_string() && error["code"] != "copy-failed", "{error}");
}

#[test]
fn a_copy_that_fails_has_a_record_that_says_so() {
    let place = scratch();
    let missing = asked(place.path(), &[], "if=nothing of=out");
    assert_eq!(missing.run.status_code, Some(1));
    assert_eq!(missing.run.stderr, "rdsk dd: cannot open nothing: No such file or directory\n");
    assert_eq!(missing.record.error.as_ref().unwrap().code, "copy-failed");
    let full = asked(place.path(), &[], "if=/dev/zero of=/dev/full bs=4k count=3");
    assert_eq!(full.run.status_code, Some(1));
    full.says("rdsk dd: error writing /dev/full: No space left on device");
    assert!(!full.copy().runs[0].is_complete);
}

#[test]
fn repeated_runs_are_summed_up() {
    let place = scratch();
    written(&place.path().join("in"), 2 << 20);
    let answer = asked(place.path(), &["--repeat", "4"], "if=in of=/dev/null bs=64k");
    assert_eq!(answer.run.status_code, Some(0), "{}", answer.run.stderr);
    assert_eq!(answer.copy().runs.len(), 4);
    assert!(!answer.text().contains("records in"), "the counts of each run are left out");
    answer.says("runs 4: ").says(" on average (σ ");
    let cell = answer.record.cell("dd/read").unwrap();
    assert_eq!((cell.result.visits.len(), cell.result.bytes), (4, Some(8 << 20)));
    let refused = cli::run(common::command(["dd", "--repeat", "2", "of=out"]), SOON);
    assert_eq!(refused.status_code, Some(1));
    assert!(refused.stderr.contains("need if= and of="), "{}", refused.stderr);
}

#[test]
fn runs_that_cannot_be_alike_are_refused_in_words() {
    let place = scratch();
    written(&place.path().join("in"), 4096);
    for (line, why) in [
        ("--repeat 2 if=in of=out oflag=append conv=notrunc", "oflag=append"),
        ("--compare bs=1k if=in of=out oflag=append conv=notrunc", "oflag=append"),
        ("--repeat 2 if=in of=out conv=excl", "conv=excl"),
        ("--compare conv=excl if=in of=out", "conv=excl"),
    ] {
        let mut command = common::command(["dd"]);
        command.args(line.split(' ')).current_dir(place.path());
        let run = cli::run(command, SOON);
        assert_eq!(run.status_code, Some(1), "{line}: {}", run.stderr);
        assert!(run.stderr.contains(&format!("do not go with {why}")), "{line}: {}", run.stderr);
        common::holds_only(place.path(), &["in"]);
    }
    written(&place.path().join("out"), 100);
    let once = answer(place.path(), "if=in of=out oflag=append conv=notrunc bs=4k");
    let workload = &once.record.cell("dd/write").unwrap().workload;
    assert_eq!((once.copy().runs.len(), workload.offset_bytes), (1, 100));
    assert!(
        !once.text().contains("oflag=direct"),
        "direct I/O does not take this place: {}",
        once.run.stderr
    );
}

/// What the user left in memory stays there.
#[test]
fn an_input_that_is_not_on_the_disk_is_not_written_out() {
    let place = scratch();
    let file = place.path().join("in");
    let dirty = || {
        let file = std::fs::File::open(&file).unwrap();
        rdsk_sys::cache::cachestat(&file, 0, 0).ok().and_then(|stat| stat.dirty)
    };
    // The kernel writes pages out by itself now and then, and then another attempt counts; and ext4 does it for what was truncated.
    let stays = (0..10).any(|_| {
        let _ = std::fs::remove_file(&file);
        std::fs::write(&file, vec![7; 1 << 20]).unwrap();
        let before = dirty();
        asked(place.path(), &["--explain=off"], "if=in of=/dev/null bs=64k");
        before.is_none() || (before > Some(0) && dirty() == before)
    });
    assert!(stays);
}

/// The program that waits for a pipe waits in its reads.
#[test]
fn the_wait_for_a_pipe_is_time_of_the_reads() {
    let place = scratch();
    let document = place.path().join("record.json");
    let mut command = common::command(["dd", "--json", document.to_str().unwrap(), "of=out", "bs=1k"]);
    let mut child =
        command.current_dir(place.path()).stdin(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut pipe = child.stdin.take().unwrap();
    pipe.write_all(&[7; 1000]).unwrap();
    let out = place.path().join("out");
    assert!(rdsk_testkit::wait_until(SOON, || out.metadata().is_ok_and(|facts| facts.len() == 1000)));
    // The file has its length before write(2) returns, and only then the next read begins.
    let sleeps = || {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap_or_default();
        stat.contains(") S ")
    };
    let pause = std::time::Duration::from_millis(10);
    assert!(rdsk_testkit::wait_until(SOON, || {
        let slept = sleeps();
        std::thread::sleep(pause);
        slept && sleeps()
    }));
    let silence = std::time::Duration::from_millis(300);
    std::thread::sleep(silence);
    drop(pipe);
    assert!(child.wait().unwrap().success());
    let record: Record = serde_json::from_str(&std::fs::read_to_string(&document).unwrap()).unwrap();
    let run = &record.copies[0].runs[0];
    let read_ns = run.read_ns.unwrap();
    assert!(u128::from(read_ns) >= silence.as_nanos(), "{run:?}");
    assert!(read_ns <= run.to_return_ns, "{run:?}");
}

/// A Record that is shown again says how long the file is that was written, not what it was before.
#[test]
fn a_record_that_is_shown_knows_the_length_of_the_output() {
    let place = scratch();
    answer(place.path(), "if=/dev/zero of=out bs=64k count=16");
    let mut command = common::command(["show", "record.json"]);
    let run = cli::run(
        {
            command.current_dir(place.path());
            command
        },
        SOON,
    );
    assert_eq!(run.status_code, Some(0), "{}", run.stderr);
    assert!(run.stdout.contains("out: a file of 1 MiB (1,048,576 bytes)"), "{}", run.stdout);
}

#[test]
fn two_lines_are_run_in_turn_and_compared() {
    let place = scratch();
    written(&place.path().join("in"), 8 << 20);
    let answer =
        asked(place.path(), &["--compare", "iflag=direct", "--repeat", "4"], "if=in of=/dev/null bs=64k");
    assert_eq!(answer.run.status_code, Some(0), "{}", answer.run.stderr);
    let [first, second] = &answer.record.copies[..] else { panic!("{}", answer.run.stderr) };
    assert_eq!(second.operands, ["if=in", "of=/dev/null", "bs=64k", "iflag=direct"]);
    let starts = |copy: &Copy| copy.runs.iter().map(|run| run.start_ns).collect::<Vec<_>>();
    let (starts_first, two) = (starts(first), starts(second));
    // A B B A A B B A.
    assert!(
        starts_first[0] < two[0]
            && two[0] < two[1]
            && two[1] < starts_first[1]
            && starts_first[1] < starts_first[2]
            && starts_first[2] < two[2]
    );
    // Tests that run beside this one may disturb the disk.
    let code = answer.verdict("dd/2/read");
    assert_ne!(code, VerdictCode::PageCache, "{}", answer.text());
    answer.says("1 against 2").says(" as fast as ").says(&format!("those of 2 {code}"));
}

#[test]
fn the_help_stands_by_itself() {
    for line in [&["dd", "--help"][..], &["dd", "if=x", "--help"]] {
        let run = common::rdsk(line);
        assert_eq!((run.status_code, run.stderr.as_str()), (Some(0), ""));
        assert!(run.stdout.starts_with("Copy as dd does"), "{}", run.stdout);
    }
    let run = Command::new(env!("CARGO_BIN_EXE_rdsk")).arg("--help").output().unwrap();
    assert!(String::from_utf8_lossy(&run.stdout).contains("\n  dd      "));
}
