//! Job files of fio: what is understood, what is refused, and against fio itself on one disk, whose log says what each of them asked for.
#![allow(clippy::unwrap_used, reason = "a failing helper fails its test")]

use crate::support::{LONG, identity, programmed, rdsk, record_of, settle};
use rdsk_testkit::attempts::{ensure, first_right};
use rdsk_testkit::cli::{self, Run};
use rdsk_testkit::fusedisk::Op;
use rdsk_testkit::same_io::{SeenIo, by_popularity, chi_square, chi_square_of_two};
use rdsk_testkit::{Behaviour, FuseDisk, LoopDevice, Need, requires};
use std::path::Path;
use std::process::Command;

/// No other program reads so much at once.
const UNIT: u64 = 28 << 10;

fn job_file(directory: &Path, text: &str) -> String {
    let path = directory.join("job.fio");
    std::fs::write(&path, text).unwrap();
    path.to_str().expect("its name is ASCII").to_owned()
}

fn run(words: &[&str]) -> Run {
    let mut line = cli::rdsk(env!("CARGO_BIN_EXE_rdsk"));
    line.args(words);
    cli::run(line, LONG)
}

#[test]
fn what_is_shown_runs_as_the_job_file_does() {
    let directory = tempfile::tempdir().unwrap();
    let text = "[global]\nsize=4m\nbs=4k\ndirect=1\n[log]\nrw=write\nfsync=8\n[mix]\nstonewall\nrw=randrw\nrwmixread=70\nnumjobs=2\n";
    let file = job_file(directory.path(), text);
    let shown = run(&["load", "--fio", &file, "--showcmd", "sim:ssd-slc"]);
    assert_eq!(shown.status_code, Some(0), "{}", shown.stderr);
    let toml = directory.path().join("same.toml");
    std::fs::write(&toml, &shown.stdout).unwrap();
    let record = |words: &[&str]| {
        let mut line = cli::rdsk(env!("CARGO_BIN_EXE_rdsk"));
        line.arg("load").args(words).args(["sim:ssd-slc", "--no-history", "-q", "--json", "-"]);
        record_of(line)
    };
    let (ours, theirs) = (record(&["--fio", &file]), record(&[toml.to_str().unwrap()]));
    for (ours, theirs) in [0, 1].map(|phase| (&ours["cells"][phase], &theirs["cells"][phase])) {
        assert_eq!(ours["result"]["jobs"], theirs["result"]["jobs"]);
        assert_eq!(ours["result"]["visits"].as_array().map(Vec::len), Some(1), "each phase runs once");
    }
    let job = |phase: usize| &ours["cells"][phase]["result"]["jobs"][0];
    assert_eq!((&job(0)["writes"]["ops"], &job(0)["flushes"]["ops"]), (&1024.into(), &128.into()));
    let bytes = |kind: &str| job(1)[kind]["bytes"].as_u64().unwrap();
    assert_eq!(bytes("reads") + bytes("writes"), 8 << 20, "two clones");
    assert!(
        ours["plan"]["notes"].to_string().contains("parts of one file")
            || ours["notes"].to_string().contains("parts of one file")
    );
}

#[test]
fn jobs_that_run_once_say_whether_they_came_to_their_end() {
    let directory = tempfile::tempdir().unwrap();
    let ended = |text: &str, budget: &[&str]| {
        let file = job_file(directory.path(), text);
        let mut line = cli::rdsk(env!("CARGO_BIN_EXE_rdsk"));
        line.args(["load", "--fio", &file, "sim:ssd-slc", "--no-history", "-q", "--json", "-"]).args(budget);
        let record = record_of(line);
        let result = &record["cells"][0]["result"];
        (result["stop"].as_str().unwrap().to_owned(), result["why"].as_str().unwrap().to_owned())
    };
    let whole = ("complete".to_owned(), "its jobs ran once, to their end".to_owned());
    let cut = ("budget".to_owned(), "its jobs ran once, and the time was over before their end".to_owned());
    let timed = "[a]\nrw=randread\nsize=64m\nruntime=2\ntime_based\n";
    assert_eq!(ended("[a]\nrw=randread\nsize=4m\n", &[]), whole);
    assert_eq!(ended(timed, &[]), whole);
    assert_eq!(ended(timed, &["--budget", "1s"]), cut);
    assert_eq!(ended("[a]\nrw=randread\nsize=100g\n", &["--budget", "1s"]), cut);
}

#[test]
fn what_a_ramp_does_is_in_no_figure() {
    let directory = tempfile::tempdir().unwrap();
    let text = "[a]\nsize=64m\nrw=randread\ndirect=1\nrate_iops=1000\nramp_time=1\nruntime=2\ntime_based\n";
    let file = job_file(directory.path(), text);
    let record = |words: &[&str]| {
        let mut line = cli::rdsk(env!("CARGO_BIN_EXE_rdsk"));
        line.arg("load").args(words).args(["sim:ssd-slc", "--no-history", "-q", "--json", "-"]);
        record_of(line)
    };
    let of_file = record(&["--fio", &file]);
    let result = &of_file["cells"][0]["result"];
    assert_eq!((&result["warmup_ns"], &result["warmup_ops"]), (&1_000_000_000u64.into(), &1000.into()));
    let job = &result["jobs"][0];
    assert_eq!((&job["elapsed_ns"], &job["rate"]["due"]), (&2_000_000_000u64.into(), &2000.into()));
    assert_eq!((&result["ops"], &job["reads"]["ops"]), (&3000.into(), &2000.into()));
    let rate = result["ops_per_s"]["mean"].as_f64().unwrap();
    assert!((rate - 1000.0).abs() < 10.0, "{rate}");
    // Of repeats, the first has it.
    let words = ["--rate", "1000", "--arrivals", "constant", "--ramp", "2s", "--budget", "60s"];
    let repeated = record(&words);
    let result = &repeated["cells"][0]["result"];
    let (ops, due) = (result["ops"].as_u64().unwrap(), result["jobs"][0]["rate"]["due"].as_u64().unwrap());
    assert_eq!(ops - due, 2000, "{ops} {due}");
    assert!(result["visits"].as_array().is_some_and(|visits| visits.len() > 1));
    let mut long = vec!["load"];
    long.extend(words.map(|word| if word == "2s" { "20s" } else { word }));
    long.extend(["sim:ssd-slc", "--no-history", "-q"]);
    let refused = run(&long);
    assert!(refused.stdout.contains("leaves too little of repeats of 10"), "{}", refused.stdout);
}

#[test]
fn what_cannot_be_is_a_usage_error_that_names_its_line() {
    let directory = tempfile::tempdir().unwrap();
    let file = job_file(directory.path(), "[a]\nss=bw\n[b]\nioengine=null\n");
    let refused = run(&["load", "--fio", &file]);
    assert_eq!(refused.status_code, Some(2));
    for words in
        ["job.fio:2: ss=bw: rdsk does not look for a steady state", "job.fio:4: ioengine=null: this engine"]
    {
        assert!(refused.stderr.contains(words), "{words}: {}", refused.stderr);
    }
    for (words, expected) in [
        (vec!["load", "--fio", &file, "--rw", "read"], "flags of a job conflict"),
        (vec!["load", "--showcmd"], "--fio"),
        (vec!["load", "--fio", "./nowhere.fio"], "cannot read ./nowhere.fio"),
    ] {
        let refused = run(&words);
        assert_eq!(refused.status_code, Some(2), "{words:?}: {}", refused.stderr);
        assert!(refused.stderr.contains(expected), "{words:?}: {}", refused.stderr);
    }
}

#[test]
fn an_existing_file_is_only_overwritten_where_that_is_allowed() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    std::fs::write(&data, vec![7; 1 << 20]).unwrap();
    let text = format!("[a]\nrw=write\nsize=64k\nfilename={}\n", data.display());
    let file = job_file(directory.path(), &text);
    let refused = run(&["load", "--fio", &file, "--no-history", "-q"]);
    assert_eq!(refused.status_code, Some(3), "{}", refused.stderr);
    assert!(std::fs::read(&data).unwrap().iter().all(|&byte| byte == 7));
    let longer = job_file(directory.path(), &text.replace("64k", "2m"));
    let refused = run(&["load", "--fio", &longer, "--overwrite", "--no-history", "-q"]);
    assert!(
        refused.stdout.contains("has 1 MiB here of the 2 MiB that it uses"),
        "{}{}",
        refused.stdout,
        refused.stderr
    );
    assert!(std::fs::read(&data).unwrap().iter().all(|&byte| byte == 7));
}

/// A disk, and what each program asked of it for one job file.
struct Bench {
    disk: FuseDisk,
    device: LoopDevice,
    directory: tempfile::TempDir,
}

impl Bench {
    fn new() -> Self {
        let (disk, device) = programmed(Behaviour::default());
        Self { disk, device, directory: tempfile::tempdir().unwrap() }
    }

    /// What rdsk asked for, and fio; `merged` where the kernel may merge requests, which then all have the unit's size.
    fn both(&self, settings: &str, merged: Option<u64>) -> (SeenIo, SeenIo) {
        let path = self.device.path().display().to_string();
        let file = job_file(self.directory.path(), &format!("[job]\nfilename={path}\ndirect=1\n{settings}"));
        let has_reads = !settings.contains("rw=write") && !settings.contains("rw=randwrite");
        let has_writes = settings.contains("write") || settings.contains("rw=randrw");
        // Before it writes, rdsk looks at what the disk holds; the reads up to the first write are not compared.
        let seen = || {
            let log = self.disk.log();
            let begin =
                log.iter().position(|served| served.op == Op::Write).filter(|_| has_writes).unwrap_or(0);
            SeenIo::of(&log[begin..], if has_reads { UNIT } else { u64::MAX }, merged)
        };
        settle(&self.disk);
        self.disk.clear_log();
        let fio = Command::new("fio").arg(&file).output().expect("requires() found fio");
        assert!(fio.status.success(), "{}", String::from_utf8_lossy(&fio.stderr));
        settle(&self.disk);
        let theirs = seen();
        self.disk.clear_log();
        let identity = identity(&self.device);
        let mut words: Vec<&dyn AsRef<std::ffi::OsStr>> =
            vec![&"load", &"--fio", &file, &"--seed", &"1", &"--no-history"];
        if has_writes {
            words.extend::<[&dyn AsRef<std::ffi::OsStr>; 2]>([&"--destroy", &identity]);
        }
        record_of(rdsk(&words));
        settle(&self.disk);
        (seen(), theirs)
    }

    /// The same, as often as another program's reads may disturb it.
    fn alike(&self, settings: &str, merged: Option<u64>) -> (SeenIo, SeenIo) {
        first_right(3, || {
            let (ours, theirs) = self.both(settings, merged);
            let differences = ours.differences(&theirs, 0.02);
            ensure(differences.is_empty(), || format!("{settings}: {}", differences.join(", ")))?;
            Ok((ours, theirs))
        })
    }
}

/// Each job ends with its bytes, and the seeds of both programs are fixed, so that their requests are the same each time.
#[test]
fn the_disk_sees_what_it_sees_of_fio() {
    if !requires(&[Need::Root, Need::Fuse, Need::Loop, Need::IoUring, Need::Tool("fio")]) {
        return;
    }
    let bench = Bench::new();
    let (ours, theirs) = bench.alike("rw=write\nbs=64k\nsize=8m\noffset=1m\nfsync=16\n", Some(64 << 10));
    assert!(ours.writes == theirs.writes, "one after the other, at the same places");
    assert_eq!(ours.writes.len(), 128);
    for skips in [
        "rw=write:64k\nbs=64k\nsize=8m\n",
        "rw=read:56k\nbs=28k\nsize=7m\noffset=28m\n",
        "rw=read:-56k\nbs=28k\nsize=7168k\n",
    ] {
        let (ours, theirs) = bench.alike(skips, None);
        assert!((&ours.reads, &ours.writes) == (&theirs.reads, &theirs.writes), "{skips}");
        assert!(ours.reads.len() + ours.writes.len() > 60, "{skips}");
    }
    let (ours, theirs) = bench.alike("rw=randwrite\nbs=4k\nba=12k\nsize=12m\n", None);
    let is_aligned =
        |seen: &SeenIo| seen.writes.iter().all(|(offset, bytes)| offset % 12_288 == 0 && *bytes == 4096);
    assert!(is_aligned(&ours) && is_aligned(&theirs));
    // The ramp is a part of what is moved.
    let (ours, _) =
        bench.alike("rw=randread\nbs=28k\nsize=14m\nrate_iops=2000\nramp_time=100ms\n", Some(UNIT));
    assert_eq!(ours.reads.len(), 512);
    let (ours, theirs) = bench.alike("rw=randread\nbs=28k\nsize=56m\n", Some(UNIT));
    let sorted = |seen: &SeenIo| {
        let mut places = seen.reads.clone();
        places.sort_unstable();
        places
    };
    assert_eq!((ours.reads.len(), theirs.reads.len()), (2048, 2048));
    assert!(sorted(&ours) == sorted(&theirs), "each block once");
    assert!(ours.reads != sorted(&ours), "in no order");
    let mix =
        "rw=randrw\nbs=28k\nsize=56m\nio_size=112m\nrwmixread=70\nnorandommap\nioengine=libaio\niodepth=4\n";
    let (ours, _) = bench.alike(mix, Some(UNIT));
    let requests = ours.reads.len() + ours.writes.len();
    assert!((4050..=4096).contains(&requests), "{requests}, without the first reads");
    let mut uses = [0u64; 64];
    for (offset_bytes, _) in ours.reads.iter().chain(&ours.writes) {
        uses[usize::try_from(offset_bytes / (56 << 20 >> 6)).unwrap()] += 1;
    }
    let (statistic, limit) = chi_square(&uses, &[1.0; 64]);
    assert!(statistic < limit, "{statistic} of {limit}: {uses:?}");
    let (ours, theirs) =
        bench.alike("rw=randwrite\nbssplit=4k/60:16k/40\nsize=48m\nio_size=128m\nnorandommap\n", None);
    let of = |seen: &SeenIo, bytes| seen.writes.iter().filter(|(_, size)| *size == bytes).count() as u64;
    let sizes = |seen: &SeenIo| [of(seen, 4 << 10), of(seen, 16 << 10)];
    let others = ours.writes.len() as u64 - sizes(&ours).iter().sum::<u64>();
    assert!(others <= 1, "only the last one is cut: {others}");
    let (statistic, limit) = chi_square_of_two(&sizes(&ours), &sizes(&theirs));
    assert!(statistic < limit, "{statistic} of {limit}");
    let zipf = "rw=randread\nbs=28k\nsize=28m\nio_size=112m\nrandom_distribution=zipf:1.2\n";
    let (ours, theirs) = bench.alike(zipf, Some(UNIT));
    let (ours, theirs) = (by_popularity(&ours.reads), by_popularity(&theirs.reads));
    let (statistic, limit) = chi_square_of_two(&ours, &theirs);
    assert!(statistic < limit, "{statistic} of {limit}: {ours:?}, {theirs:?}");
}
