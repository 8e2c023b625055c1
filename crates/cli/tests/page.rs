//! The short page of `rdsk run`: one screen for every simulated system and for real targets, each line of it held against
//! the Record of the same run; and `rdsk show`, which draws the same page from the file.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]
#![allow(clippy::print_stderr, reason = "a test that was disturbed says so")]

use crate::common::{self, command, error_and_hint, rdsk};
use crate::support::{one_speed, short_page};
use rdsk_model::{Record, VerdictCode};
use rdsk_testkit::cli::{self, Run};
use rdsk_testkit::{Behaviour, BlkioThrottle, FuseDisk, Limits, LoopDevice, Need, requires};
use std::fs;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

/// The document has a short name, which is the same in the last line of every page.
fn run_into(file: &Path, words: &[&str]) -> (Run, Record) {
    let name = file.file_name().unwrap().to_str().unwrap();
    let mut line = command([&["run"], words, &["-q", "--json", name]].concat());
    line.current_dir(file.parent().unwrap());
    finished(line, file)
}

fn finished(line: Command, file: &Path) -> (Run, Record) {
    let run = cli::run(line, common::SOON);
    assert_eq!(run.status_code, Some(0), "{}: {}", run.command, run.stderr);
    let record = serde_json::from_slice(&fs::read(file).unwrap()).unwrap();
    (run, record)
}

/// The page without its last line, which says where the rest is.
fn body(page: &str) -> &str {
    page.trim_end().rsplit_once('\n').map_or("", |(body, _)| body)
}

/// The page without what another version would change.
fn unversioned(page: &str) -> String {
    page.replacen(env!("CARGO_PKG_VERSION"), "VERSION", 1)
}

/// What decides on systems whose figure is not what it seems: the code of the finding that is the first bullet.
const DECIDES: [(&str, &str); 3] =
    [("stalls", "stalls"), ("ssd-slc", "burst-writes"), ("raid5-cache", "burst-writes")];

/// The rates of `rdsk list`, in MiB/s: those of the headline of the page, which are the disk's one speed.
fn is_listed(file: &Path, record: &Record) {
    let directory = tempfile::tempdir().unwrap();
    let history = directory.path().join("h.db");
    let history = history.to_str().unwrap();
    let import = rdsk(["import", file.to_str().unwrap(), "--history", history]);
    assert_eq!(import.status_code, Some(0), "{}", import.stderr);
    let list = rdsk(["list", "--json", "--history", history]);
    let list: serde_json::Value = serde_json::from_str(&list.stdout).unwrap();
    for op in ["read", "write"] {
        let id = format!("headline/{op}/sequential");
        let cell = record.cells.iter().find(|cell| cell.id == id).unwrap();
        if !rdsk_analysis::metrics::has_verdict(cell, VerdictCode::Device) {
            continue;
        }
        let shown = list["runs"][0][format!("{op}_bytes_per_s")].as_f64();
        assert_eq!(shown, cell.result.bytes_per_s.map(|rate| rate.mean), "{id}");
    }
}

/// What gives no steady rate in a minute: caches that fill, stalls, a disk so slow that three repeats of eight I/Os fit, and one whose
/// eight interleaved streams run at 6.7, 8.5 or 10.2 MiB/s, each for minutes.
const UNSTEADY: [&str; 5] =
    ["freebsd-bigfoot", "freebsd-st38421", "linux-10k-raid0", "raid5-cache", "stalls"];

/// A steady disk has a steady figure, however few I/Os fit into a repeat.
fn has_narrow_margins(name: &str, page: &str, record: &Record) {
    let is_sequential = |cell: &&rdsk_model::CellRecord| {
        cell.id.starts_with("headline/") && cell.id.split('/').any(|part| part == "sequential")
    };
    for cell in record.cells.iter().filter(is_sequential) {
        if UNSTEADY.contains(&name) || !rdsk_analysis::metrics::has_verdict(cell, VerdictCode::Device) {
            continue;
        }
        let margin = cell.result.bytes_per_s.and_then(|rate| rate.margin()).unwrap();
        assert!(margin < 0.1, "{name}, {}: {margin}\n{page}", cell.id);
    }
}

/// Every fourth system, so that four tests share the processors.
fn systems(part: usize) {
    let directory = tempfile::tempdir().unwrap();
    for name in rdsk_disk::NAMES.iter().skip(part).step_by(4) {
        let file = directory.path().join(format!("{name}.json"));
        let target = format!("sim:{name}");
        let (run, record) = run_into(&file, &[&target, "--budget", "60s", "--seed", "1"]);
        short_page::check(&run.stdout, &record);
        has_narrow_margins(name, &run.stdout, &record);
        let details = rdsk(["show", file.to_str().unwrap(), "--details"]);
        one_speed::check(&run.stdout, &details.stdout, &record);
        if record.targets.len() == 1 {
            is_listed(&file, &record);
        }
        if let Some((_, code)) = DECIDES.iter().find(|(system, _)| system == name) {
            let first = short_page::first_bullet(&run.stdout, &record);
            assert_eq!(first.as_deref(), Some(*code), "{}", run.stdout);
        }
        insta::assert_snapshot!(format!("run-{name}"), unversioned(&run.stdout));
        let again = rdsk(["show", file.to_str().unwrap()]);
        assert_eq!(
            again.stdout,
            format!("{}\nDetails: the same command with --details\n", body(&run.stdout)),
            "{}",
            again.stderr
        );
        if *name == "linux-disk" {
            let document = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/output.md");
            let shown = fs::read_to_string(document).unwrap();
            assert!(
                shown.contains(body(&run.stdout)),
                "docs/output.md does not show the page as it is now:\n{}",
                run.stdout
            );
        }
    }
}

#[test]
fn every_system_is_one_screen_1() {
    systems(0);
}

#[test]
fn every_system_is_one_screen_2() {
    systems(1);
}

#[test]
fn every_system_is_one_screen_3() {
    systems(2);
}

#[test]
fn every_system_is_one_screen_4() {
    systems(3);
}

/// The array empties its cache for minutes before it answers the reads of a repeat: their rate is that of a wait.
#[test]
fn a_repeat_that_waits_first_is_a_stall() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("r.json");
    let words = ["sim:raid5-cache", "--only", "headline", "--budget", "60s", "--seed", "1"];
    let (run, record) = run_into(&file, &words);
    short_page::check(&run.stdout, &record);
    assert_eq!(short_page::first_bullet(&run.stdout, &record).as_deref(), Some("stalls"), "{}", run.stdout);
}

/// A file that was never written reads as zeros from memory: that decides.
#[test]
fn of_unallocated_blocks_the_first_bullet_says_so() {
    let place = common::scratch();
    let target = place.path().join("hole");
    fs::File::create(&target).unwrap().set_len(64 << 20).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("r.json");
    let words = [target.to_str().unwrap(), "--rw", "read", "--only", "headline", "--budget", "3s"];
    let (run, record) = run_into(&file, &words);
    let first = short_page::first_bullet(&run.stdout, &record).unwrap_or_default();
    assert_eq!(first, "hole-read", "{}", run.stdout);
}

/// A run of the reads of the headline.
const READS: [&str; 6] = ["--rw", "read", "--only", "headline", "--budget", "4s"];

/// A limit of 64 reads per second is far below what a device in memory does, whatever else the machine does.
#[test]
fn of_a_throttled_device_the_first_bullet_says_so() {
    if !requires(&[Need::Root, Need::Loop, Need::BlkioThrottle]) {
        return;
    }
    let device = LoopDevice::builder().size(64 << 20).in_memory().create().unwrap();
    let limits = Limits { read_iops: Some(64), ..Limits::default() };
    let throttle = BlkioThrottle::new(device.major_minor(), limits).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("r.json");
    let target = device.path().to_str().unwrap();
    let words = [&["run", target], &READS[..], &["-q", "--json", file.to_str().unwrap()]].concat();
    first_bullet_is("throttled", || finished(throttle.command(command(&words)), &file));
}

/// Whether the first bullet of a page is this finding. Programs that use the processors meanwhile are another reason why figures are
/// not the device's: an attempt with another bullet is void if they were busy for half of its time.
fn first_bullet_is(code: &str, run: impl Fn() -> (Run, Record)) {
    let mut wrong = None;
    for _ in 0..5 {
        let before = processor_ticks();
        let (run, record) = run();
        let [idle, all] = [0, 1].map(|at| processor_ticks()[at] - before[at]);
        let first = short_page::first_bullet(&run.stdout, &record).unwrap_or_default();
        if first == code {
            return;
        }
        eprintln!("{first}, with {idle} of {all} ticks idle: {}", run.stdout);
        wrong = wrong.or((idle * 2 >= all).then_some(first));
    }
    assert_eq!(wrong, None, "{code} was expected, and the processors were free");
    eprintln!("skipped: other programs used the processors");
}

/// Ticks of the processors without work, and all.
fn processor_ticks() -> [u64; 2] {
    let stat = fs::read_to_string("/proc/stat").unwrap();
    let ticks: Vec<u64> =
        stat.lines().next().unwrap().split_whitespace().skip(1).map(|word| word.parse().unwrap()).collect();
    [ticks[3] + ticks[4], ticks.iter().sum()]
}

/// Direct reads at one place, one after the other, until the flag is raised; the disk answers one request at a time, so that each of
/// these takes a turn of ours.
fn reads_of_others(device: &Path, stop: &AtomicBool) {
    let flags = i32::try_from(rustix::fs::OFlags::DIRECT.bits()).unwrap();
    let file = fs::OpenOptions::new().read(true).custom_flags(flags).open(device).unwrap();
    let mut memory = vec![0_u8; 8192];
    let skip = memory.as_ptr().align_offset(4096);
    while !stop.load(Ordering::Relaxed) {
        file.read_exact_at(&mut memory[skip..skip + 4096], 1 << 20).unwrap();
    }
}

/// Whatever happens, the readers end.
struct StopAtEnd<'a>(&'a AtomicBool);

impl Drop for StopAtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Four readers share a disk that answers one request at a time with the program: most of its time is theirs.
#[test]
fn beside_other_readers_the_first_bullet_says_so() {
    if !requires(&[Need::Root, Need::Loop, Need::Fuse]) {
        return;
    }
    let behaviour = Behaviour::single(2_000_000);
    let disk = FuseDisk::builder().capacity(64 << 20).device(behaviour).mount().unwrap();
    let device = disk.loop_device().unwrap();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("r.json");
    let words = [&[device.path().to_str().unwrap()], &READS[..]].concat();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let _stop_at_end = StopAtEnd(&stop);
        for _ in 0..4 {
            scope.spawn(|| reads_of_others(device.path(), &stop));
        }
        first_bullet_is("disturbed", || run_into(&file, &words));
    });
}

/// Real figures differ from run to run, but every line is that of the Record.
#[test]
fn a_directory_and_a_loop_device_are_one_screen() {
    let directory = tempfile::tempdir().unwrap();
    let place = common::scratch();
    let file = directory.path().join("directory.json");
    let short = ["--budget", "6s", "--size", "64M"];
    let (run, record) = run_into(&file, &[&[place.path().to_str().unwrap()], &short[..]].concat());
    short_page::check(&run.stdout, &record);
    if !requires(&[Need::Root, Need::Loop]) {
        return;
    }
    let device = LoopDevice::builder().size(64 << 20).create().unwrap();
    let file = directory.path().join("loop.json");
    let (run, record) = run_into(&file, &[device.path().to_str().unwrap(), "--budget", "4s"]);
    short_page::check(&run.stdout, &record);
}

/// Several targets are one screen as well, compared with the first.
#[test]
fn several_targets_are_one_screen() {
    let directory = tempfile::tempdir().unwrap();
    let names = ["sim:linux-disk", "sim:linux-10k", "sim:wd2500", "sim:raid5", "sim:hpux-k460"];
    for count in [2, 3, 5] {
        let file = directory.path().join(format!("{count}.json"));
        let (run, record) = run_into(&file, &[&names[..count], &["--budget", "60s", "--seed", "1"]].concat());
        short_page::check(&run.stdout, &record);
        let lead = if count > 2 { "sim:linux-10k against sim:linux-disk: " } else { "" };
        // Five targets share a minute, which leaves each too few repeats.
        let said = if count < 5 { "sim:linux-10k is faster" } else { "No test of " };
        let sentence = format!(" {lead}{said}");
        let page = run.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(page.contains(&sentence), "{sentence}: {}", run.stdout);
        insta::assert_snapshot!(format!("targets-{count}"), unversioned(&run.stdout));
    }
}

#[test]
fn details_are_the_screens_of_all_questions() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("r.json");
    let path = file.to_str().unwrap();
    let target = ["sim:linux-disk", "--budget", "20s", "--seed", "1"];
    let (run, record) = run_into(&file, &[&target[..], &["--details"]].concat());
    for heading in ["HEADLINE: ", "PATHS: ", "STREAM: ", "ALIGN: ", "ZONES: ", "SCALE: ", "FINDINGS "] {
        assert!(run.stdout.lines().any(|line| line.starts_with(heading)), "{heading}{}", run.stdout);
    }
    let again = rdsk(["show", path, "--details"]);
    assert_eq!(again.stdout, run.stdout, "{}", again.stderr);
    short_page::check(&rdsk(["show", path]).stdout, &record);
}

/// A single question is shown on its own screen, and the Record can be written again.
#[test]
fn a_single_question_is_shown_on_its_own_screen() {
    let directory = tempfile::tempdir().unwrap();
    let (file, copy) = (directory.path().join("p.json"), directory.path().join("copy.json"));
    let (path, small) = (file.to_str().unwrap(), copy.to_str().unwrap());
    let run = rdsk(["paths", "sim:linux-disk", "--seed", "1", "-q", "--json", path]);
    assert_eq!(run.status_code, Some(0), "{}", run.stderr);
    let again = rdsk(["show", path, "--json", small, "--json-compact"]);
    assert_eq!((again.status_code, body(&again.stdout)), (Some(0), body(&run.stdout)), "{}", again.stderr);
    assert!(run.stdout.ends_with("p.json --details\n"), "{}", run.stdout);
    assert!(again.stdout.ends_with("\nDetails: the same command with --details\n"), "{}", again.stdout);
    let (whole, compact) = (fs::read(&file).unwrap(), fs::read(&copy).unwrap());
    assert!(compact.len() < whole.len());
    assert_eq!(rdsk(["show", small]).stdout.lines().next(), run.stdout.lines().next());
    let document = rdsk(["show", path, "--json", "-"]);
    assert_eq!(document.stdout.as_bytes(), whole, "{}", document.stderr);
}

#[test]
fn what_is_no_record_is_refused_in_words() {
    let directory = tempfile::tempdir().unwrap();
    let other = directory.path().join("other.json");
    fs::write(&other, "{\"schema\": \"rdsk.plan/1\"}").unwrap();
    let missing = directory.path().join("missing.json");
    let plan = other.to_str().unwrap();
    for line in [
        &["show"][..],
        &["show", plan, plan],
        &["show", missing.to_str().unwrap()],
        &["show", plan],
        &["show", directory.path().to_str().unwrap()],
    ] {
        let run = rdsk(line);
        assert_eq!((run.status_code, run.stdout.as_str()), (Some(2), ""), "{line:?}");
        error_and_hint(&run);
    }
    let run = rdsk(["show", plan, "--json", "-"]);
    assert_eq!(run.status_code, Some(2));
    assert_eq!(common::record(cli::json(&run))["error"]["code"], "no-record");
    let onto_itself = rdsk(["show", plan, "--json", plan]);
    assert_eq!(onto_itself.status_code, Some(2), "{}", onto_itself.stderr);
    assert_eq!(fs::read_to_string(&other).unwrap(), "{\"schema\": \"rdsk.plan/1\"}");
}

/// A Record of another version would be read as if its fields meant what they mean here.
#[test]
fn a_record_of_another_schema_is_refused_by_every_command() {
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let (ours, theirs, far) = (file("ours.json"), file("theirs.json"), file("far.json"));
    let run = rdsk(["run", "sim:wd2500", "--only", "headline", "--budget=5s", "--json", &ours]);
    assert_eq!(run.status_code, Some(0), "{}", run.stderr);
    let text = fs::read_to_string(&ours).unwrap();
    let other = text.replacen("\"rdsk.record/2\"", "\"rdsk.record/3\"", 1);
    assert_ne!(text, other);
    fs::write(&theirs, other).unwrap();
    fs::write(&far, "{\"schema\": \"rdsk.record/9\", \"what\": \"ever\"}").unwrap();
    for (named, schema) in [(&theirs, "rdsk.record/3"), (&far, "rdsk.record/9")] {
        let why = format!(
            "{named}: its schema is {schema}, and this version reads rdsk.record/1 and rdsk.record/2"
        );
        let page = file("page.html");
        for line in [
            &["show", named][..],
            &["compare", &ours, named],
            &["report", named, "-o", &page],
            &["export", named, "--format", "csv"],
            &["zones", "sim:wd2500", "--resume", named],
        ] {
            let run = rdsk(line);
            assert_eq!((run.status_code, run.stdout.as_str()), (Some(2), ""), "{line:?}: {}", run.stderr);
            let (error, _) = error_and_hint(&run);
            assert!(error.ends_with(&why), "{line:?}: {error}");
        }
        assert!(!std::path::Path::new(&page).exists());
    }
}

/// A pipe is 80 columns wide and plain, unless the environment or a flag says otherwise.
#[test]
fn width_and_colour_follow_the_environment() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("r.json");
    let path = file.to_str().unwrap();
    let (plain, _) = run_into(&file, &["sim:linux-disk", "--only", "headline,paths", "--budget", "10s"]);
    let show = |variables: &[(&str, &str)], flags: &[&str]| {
        let mut line = command([&["show", path], flags].concat());
        for name in ["COLUMNS", "NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE"] {
            line.env_remove(name);
        }
        line.envs(variables.iter().copied());
        let run = cli::run(line, common::SOON);
        assert_eq!(run.status_code, Some(0), "{}", run.stderr);
        run.stdout
    };
    assert_eq!(body(&show(&[], &[])), body(&plain.stdout));
    let widest = |text: &str| text.lines().map(|line| line.chars().count()).max().unwrap();
    assert!(widest(&plain.stdout) <= 80);
    assert!(widest(&show(&[("COLUMNS", "60")], &[])) <= 60);
    assert!((81..=120).contains(&widest(&show(&[("COLUMNS", "200")], &[]))));
    let escape = "\u{1b}[";
    assert!(!show(&[("NO_COLOR", "1")], &[]).contains(escape));
    assert!(show(&[], &["--color", "always"]).contains(escape));
    assert!(!show(&[("CLICOLOR_FORCE", "1")], &["--color", "never"]).contains(escape));
    if !requires(&[Need::Tool("script")]) {
        return;
    }
    let on_terminal = |variables: &str| {
        let line = format!("env -u NO_COLOR -u CI {variables} {} show {path}", env!("CARGO_BIN_EXE_rdsk"));
        let mut script = cli::rdsk("script");
        script.args(["-qec", &line, "/dev/null"]).env("TERM", "xterm");
        cli::run(script, common::SOON).stdout
    };
    assert!(on_terminal("").contains(escape));
    assert!(!on_terminal("NO_COLOR=1").contains(escape));
    assert!(!on_terminal("TERM=dumb").contains(escape));
}
