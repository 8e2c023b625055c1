//! Simulated targets through the real binary: the same commands, findings and exit codes as on a real one, and the same
//! Record for the same seed.

use crate::support::{LONG, cell, count, figure, finding_on, findings, rdsk, record_of};
use rdsk_testkit::cli::{self, Ended};
use serde_json::Value;
use std::ffi::OsStr;
use std::io::Write as _;

/// A Record without what differs from run to run: its id and its times on the wall.
fn without_times(mut record: Value) -> Value {
    for key in ["id", "started_at", "elapsed_ns"] {
        record[key].take();
    }
    record
}

#[test]
fn the_same_seed_gives_the_same_record_byte_for_byte() {
    let go = |seed: &str| {
        let line = rdsk(&[&"run", &"sim:wd2500", &"--budget", &"5s", &"--seed", &seed]);
        serde_json::to_string(&without_times(record_of(line))).unwrap()
    };
    let first = go("7");
    assert_eq!(first, go("7"));
    assert_ne!(first.replace("\"--seed\",\"7\"", ""), go("8").replace("\"--seed\",\"8\"", ""));
}

#[test]
fn a_simulated_run_says_that_it_is_one_and_takes_virtual_time() {
    let began = std::time::Instant::now();
    let record = record_of(rdsk(&[&"run", &"sim:freebsd-wd800jd", &"--budget", &"2m"]));
    let real_ns = began.elapsed().as_nanos() as f64;
    assert_eq!(record["observer"]["source"], "sim");
    assert_eq!(record["host"]["clock"]["source"], "virtual");
    assert_eq!(record["targets"][0]["kind"], "sim");
    let virtual_ns = figure(&record, "/simulated_ns");
    assert!(virtual_ns > 60e9 && real_ns < virtual_ns / 2.0, "{virtual_ns} virtual, {real_ns} real");
    for cell in record["cells"].as_array().unwrap() {
        assert_ne!(cell["verdict"]["code"], "unverified", "{}", cell["id"]);
    }
}

/// `--end-fsync` adds one cell, whose rate is that until stable; the flush is in its time, not after it.
#[test]
fn an_fsync_at_the_end_gives_the_rate_of_the_disk() {
    let line: &[&dyn AsRef<std::ffi::OsStr>] =
        &[&"stream", &"sim:wd2500", &"--rw", &"write", &"--budget", &"20s"];
    let ids = |record: &Value| -> Vec<String> {
        record["cells"].as_array().unwrap().iter().map(|cell| cell["id"].as_str().unwrap().into()).collect()
    };
    let without = record_of(rdsk(line));
    let with = record_of(rdsk(&[line, &[&"--end-fsync"]].concat()));
    let added: Vec<_> = ids(&with).into_iter().filter(|id| !ids(&without).contains(id)).collect();
    assert_eq!(added, ["stream/write/fsync"]);
    let synced = cell(&with, "stream/write/fsync");
    let (elapsed, stable) = (figure(synced, "/result/elapsed_ns"), figure(synced, "/result/to_stable_ns"));
    assert!(figure(synced, "/result/to_return_ns") < elapsed / 2.0, "writes return from memory");
    assert!(elapsed > stable * 0.99, "{elapsed} of {stable} ns until stable");
    let plain = cell(&with, "stream/write/buffered");
    let rate = |cell: &Value| figure(cell, "/result/bytes_per_s/mean");
    assert!(rate(plain) > 2.0 * rate(synced), "{} without fsync, {} with", rate(plain), rate(synced));
    assert_eq!(synced["verdict"]["code"], "device");
    record_of(rdsk(&[&"stream", &"sim:wd2500", &"--end-fsync", &"--bytes", &"10M", &"--rw", &"read,write"]));
}

/// The host counts every request, waiting ones apart, and reports each size.
#[test]
fn the_evidence_is_the_hosts_own() {
    let record = record_of(rdsk(&[&"paths", &"sim:hpux-k460", &"--bytes", &"10M", &"--rw", &"read,write"]));
    let block = cell(&record, "paths/write/buffered");
    let device = &block["evidence"]["device"][0];
    let passes = block["result"]["visits"].as_array().unwrap().len() as u64;
    assert_eq!(count(device, "/writes"), 2560 * passes, "4 KiB buffers, none merged");
    assert_eq!(count(device, "/reads_caused_by_writes"), 2560 * passes);
    let sizes = block["evidence"]["requests"].as_array().unwrap();
    assert!(sizes.iter().all(|one| one["bytes"] == 4096), "{sizes:?}");
    let raw = cell(&record, "paths/read/direct");
    assert_eq!(count(&raw["evidence"]["device"][0], "/reads"), 40 * passes, "256 KiB each");
}

#[test]
fn slow_downs_full_caches_and_stalls_are_found_and_named() {
    // Precise long before a minute; the precision asked for lets the cells go on.
    let long = |target: &str, op: &str, runtime: &str| {
        record_of(rdsk(&[
            &"stream", &target, &"--rw", &op, &"--bs", &"1M", &"--runtime", &runtime, &"--precision",
            &"0.01%",
        ]))
    };
    let slow = long("sim:slowdown", "read", "4m");
    let named = findings(&slow, "slows-down");
    assert_eq!(named.len(), 1, "{}", slow["findings"]);
    // With buffers of 4 KiB, its host would turn over two million of them in each pass.
    let flash = own_system("ssd-slc", "[host]\nbuffer_bytes = 262144\n");
    let target = format!("sim:{}", flash.path().display());
    let full = record_of(rdsk(&[&"paths", &target, &"--rw", &"write", &"--bytes", &"10G"]));
    let named = finding_on(&full, "write-cache-full", "paths/write/direct");
    assert!(named["title"].as_str().unwrap().contains("8.0"), "its size is 8 GiB: {named}");
    let stalls = long("sim:stalls", "read", "4m");
    let named = finding_on(&stalls, "stalls", "stream/read/direct");
    assert!(named["text"].as_str().unwrap().contains("every 30"), "{named}");
    for steady in ["sim:linux-disk", "sim:tms-ramsan"] {
        let record = long(steady, "read", "2m");
        for code in ["slows-down", "stalls", "write-cache-full"] {
            assert!(findings(&record, code).is_empty(), "{steady}: {}", record["findings"]);
        }
    }
}

/// Virtual time that goes on for years is neither kept in memory nor waited for.
#[test]
fn extreme_figures_take_seconds_and_little_memory() {
    let directory = tempfile::tempdir().unwrap();
    for (name, change) in [
        ("stalls", "[[luns]]\n[luns.faults.stall]\nevery_ns = 2_000_000_000\nlasts_ns = 1_999_999_999\n"),
        ("slow", "[[luns]]\n[luns.faults.slow_down]\nafter_ns = 1\nfactor = 1000000.0\n"),
        ("copies", "[host.cost]\nbyte_ns = 4294967296.0\n"),
    ] {
        let path = directory.path().join(format!("{name}.toml"));
        std::fs::write(&path, format!("extends = \"linux-disk\"\n{change}")).unwrap();
        for verb in ["paths", "stream", "zones", "align"] {
            let mut command = std::process::Command::new("prlimit");
            command.arg("--as=2000000000").arg(env!("CARGO_BIN_EXE_rdsk"));
            command.arg(verb).arg(format!("sim:{}", path.display())).args(["--budget", "3s", "--quiet"]);
            let run = cli::run(command, LONG);
            assert_eq!(run.ended, Ended::Exited(0), "{name} {verb}: {}", run.stderr);
        }
    }
}

#[test]
fn wrong_names_texts_and_figures_are_usage_errors_with_line_key_and_reason() {
    let own = |text: &str| {
        let mut file = tempfile::Builder::new().suffix(".toml").tempfile().expect("a scratch file");
        file.write_all(text.as_bytes()).unwrap();
        file
    };
    let files: Vec<_> = [
        ("extends = \"wd2500\"\n[host]\nbuffer_bytes = -4096\n", "line 3: host.buffer_bytes"),
        (
            "extends = \"wd2500\"\n[[luns]]\n[luns.device.disk]\ninterface_bytes_per_s = 0\n",
            "line 4: luns[0]",
        ),
        (
            "extends = \"wd2500\"\n[[luns]]\n[[luns.device.disk.zones]]\ncylinders = 1\n",
            "line 3: luns[0].device.disk.zones",
        ),
        ("extends = \"wd2500\"\n[[luns]]\ndevice.disk.rpm = nan\n", "line 3: luns[0].device.disk.rpm"),
        ("[host\n", "line 1"),
    ]
    .into_iter()
    .map(|(text, place)| (own(text), place))
    .collect();
    for (file, place) in &files {
        let name = format!("sim:{}", file.path().display());
        let run = cli::run(rdsk(&[&"paths", &name]), LONG);
        assert_eq!(run.status_code, Some(2), "{}", run.stderr);
        let error = run.stderr.lines().next().unwrap_or_default();
        assert!(error.starts_with("error: ") && error.contains(place), "{place}: {error}");
        assert!(run.stderr.lines().nth(1).is_some_and(|line| line.starts_with("hint: ")), "{}", run.stderr);
    }
    for line in [
        &["paths", "sim:nosuch"][..],
        &["paths", "sim:"],
        &["paths", "sim:./nosuch.toml"],
        &["paths", "sim:wd2500/1"],
        &["paths", "sim:wd2500", "--engine", "uring"],
        &["paths", "sim:wd2500", "."],
    ] {
        let words: Vec<&dyn AsRef<std::ffi::OsStr>> =
            line.iter().map(|word| word as &dyn AsRef<std::ffi::OsStr>).collect();
        let run = cli::run(rdsk(&words), LONG);
        assert_eq!(run.status_code, Some(2), "{line:?}: {}", run.stderr);
        assert!(run.stderr.contains("\nhint: "), "{line:?}: {}", run.stderr);
    }
}

/// What a command prints.
fn page(words: &[&dyn AsRef<OsStr>]) -> cli::Run {
    let mut command = cli::rdsk(env!("CARGO_BIN_EXE_rdsk"));
    command.args(words.iter().map(AsRef::as_ref));
    cli::run(command, LONG)
}

/// The words of a command line.
fn words<'a>(line: &'a [&str]) -> Vec<&'a dyn AsRef<OsStr>> {
    line.iter().map(|word| word as &dyn AsRef<OsStr>).collect()
}

/// A page, its lines joined.
fn words_of(line: &str) -> String {
    page(&words(&line.split(' ').collect::<Vec<_>>())).stdout.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A budget in which no pass is whole: the cell says so in its row and in the Record, and gives no time for a pass.
#[test]
fn a_cell_without_a_whole_pass_says_so() {
    for (line, rows) in [
        ("paths sim:hpux-k460 --rw read --budget 5s", &["whole sweeps none none – 3"][..]),
        (
            "stream sim:hpux-k460 --rw read --bytes 100M --budget 5s",
            &["buffered 4.86 ±2.4% 3.19 ms – – cut short", "2.62 ms – – cut short"],
        ),
    ] {
        let text = words_of(line);
        for row in rows {
            assert!(text.contains(row), "{line}: no {row:?} in {text}");
        }
        assert!(text.contains("no sweep of 100 MiB is complete: the longest has "), "{line}: {text}");
        let record = record_of(rdsk(&words(&line.split(' ').collect::<Vec<_>>())));
        let cells = record["cells"].as_array().unwrap();
        let is_cold =
            |cell: &&Value| cell["workload"]["cache"] != "warm" && cell["result"]["stop"] != "not_applicable";
        for cell in cells.iter().filter(is_cold) {
            assert_eq!(cell["result"]["stop"], "budget", "{}", cell["id"]);
            assert_eq!(count(cell, "/result/pass_bytes"), 100 << 20);
            assert!(count(cell, "/result/visits/0/bytes") < 100 << 20, "{}", cell["id"]);
        }
    }
    let whole = words_of("paths sim:hpux-k460 --rw read");
    assert!(whole.contains("whole sweeps 6 6 – 6") && !whole.contains("cut short"), "{whole}");
}

/// Two targets on one page are compared cell by cell: one that is a tenth slower, and two that are alike.
#[test]
fn several_targets_are_compared_on_the_page() {
    let directory = tempfile::tempdir().unwrap();
    let system = |name: &str, text: &str| {
        let path = directory.path().join(format!("{name}.toml"));
        std::fs::write(&path, format!("extends = \"linux-disk\"\n{text}")).unwrap();
        format!("sim:{}", path.display())
    };
    let first = system("first", "");
    let twin = system("twin", "");
    let slower = system("slower", "[[luns]]\n[luns.faults.slow_down]\nafter_ns = 1\nfactor = 1.1111\n");
    for (question, cells) in [
        ("paths", &["read direct", "read buffered", "write direct", "write buffered"][..]),
        (
            "run --details --budget 60s --only headline",
            &["read sequential", "read random-qd1", "write sequential"],
        ),
    ] {
        let alike = words_of(&format!("{question} {first} {twin}"));
        assert!(alike.contains(&format!("{twin} against {first}, 95% interval over the repeats")), "{alike}");
        assert!(!alike.contains(&format!(" {twin} is ")), "{alike}");
        let apart = words_of(&format!("{question} {first} {slower}"));
        for cell in cells {
            let ok = [format!("{cell}: equally fast ("), format!("{cell}: no difference found (")];
            assert!(ok.iter().any(|words| alike.contains(words)), "{cell}: {alike}");
            let matches = (88..=92).any(|hundredths| {
                apart.contains(&format!("{cell}: {slower} is 0.{hundredths}")) // and more digits
            });
            assert!(matches, "{cell}: {apart}");
        }
    }
}

/// Two statements of one page agree.
#[test]
fn the_pages_of_simulated_systems_do_not_contradict_themselves() {
    let zones = words_of("zones sim:freebsd-wd800jd --bs 1M,5M --order ascending --full --runs 2");
    assert!(zones.contains("5M reads, QD1, 8 zones)") && !zones.contains("must be fast between"), "{zones}");
    assert!(zones.contains("must be fast into the first 12."), "{zones}");
    assert!(zones.contains("% + bands "), "a scatter without its bands: {zones}");
    let both = words_of("zones sim:freebsd-wd800jd sim:freebsd-wd2500yd");
    for name in ["sim:freebsd-wd800jd", "sim:freebsd-wd2500yd"] {
        assert!(
            both.contains(&format!(" {name} 1.78x from start to end: "))
                && both.contains(&format!("> {name}: ")),
            "{both}"
        );
    }
    assert_eq!(both.matches("Use blocks of at least 5M: ").count(), 2, "{both}");
    let stream = words_of("stream sim:linux-disk-nocache --rw write --budget 10s");
    assert!(stream.contains("no flush") && stream.contains("write through cache"), "{stream}");
    assert!(!stream.contains("durable-write-cost"), "sync writes take no longer there: {stream}");
    let paths = words_of("paths sim:hpux-k460 --rw write --bytes 10M");
    assert!(paths.contains("read 10 MiB first in each repeat."), "{paths}");
    let zfs = record_of(rdsk(&[&"paths", &"sim:solaris-zfs"]));
    let direct = cell(&zfs, "paths/read/direct");
    assert_eq!(direct["result"]["stop"], "not_applicable", "{direct}");
    assert!(direct["result"]["why"].as_str().unwrap().contains("direct I/O is not supported"), "{direct}");
    let align = words_of("align sim:wd2500 sim:wd2500-4kn --rw write --budget 20s");
    for (name, bytes) in [("sim:wd2500", "512 B"), ("sim:wd2500-4kn", "4 KiB")] {
        let advice = format!("Advice: {name}: use sizes and offsets that are multiples of {bytes} ");
        assert!(align.contains(&advice), "{advice}: {align}");
    }
}

/// Beside every figure of every system stands where it is from, those of the systems that it extends among them; a figure of
/// one's own without a mark is counted.
#[test]
fn the_mark_of_every_figure_is_shown_beside_it() {
    let marks = ["from the report", "from a data sheet", "typical", "fitted to \""];
    for name in rdsk_disk::NAMES {
        let run = page(&[&"sim", &"show", name]);
        let (_, figures) = run.stdout.split_once("where each is from:").expect("the text has them");
        let is_figure = |line: &&str| {
            let first = line.split(' ').next().unwrap_or_default();
            line.contains(" = ") && !["#", "about", "report", "extends"].contains(&first)
        };
        let lines: Vec<&str> = figures.lines().filter(is_figure).collect();
        assert!(lines.len() > 25, "{name}: {} figures", lines.len());
        for line in lines {
            let comment = line.split_once(" # ").map_or("", |(_, comment)| comment);
            assert!(marks.iter().any(|mark| comment.starts_with(mark)), "{name}: {line}");
        }
        let shown = cli::json(&cli::run(rdsk(&[&"sim", &"show", name]), LONG));
        let figures = shown["figures"].as_array().unwrap();
        assert!(figures.iter().all(|figure| figure["from"].is_string()), "{name}");
    }
    let mut own = tempfile::Builder::new().suffix(".toml").tempfile().expect("a scratch file");
    own.write_all(b"extends = \"wd2500\"\nhost.cost.byte_ns = 1 # a guess\n").unwrap();
    let run = page(&[&"sim", &"show", &own.path()]);
    assert!(
        run.stdout.contains(", 1 unmarked\n") && run.stdout.contains("byte_ns = 1 # a guess\n"),
        "{}",
        run.stdout
    );
}

/// One line for each system, which fits on a terminal.
#[test]
fn the_list_has_a_line_for_each_system() {
    let run = page(&[&"sim", &"list"]);
    assert!(run.stdout.lines().all(|line| line.chars().count() <= 80 && line.trim_end() == line));
    let lines: Vec<(&str, &str)> =
        run.stdout.lines().filter_map(|line| line.strip_prefix(' ')?.split_once(' ')).collect();
    for name in rdsk_disk::NAMES {
        let about = lines.iter().find(|(first, _)| first == name).map(|(_, about)| about.trim());
        assert!(about.is_some_and(|about| about.len() > 20), "{name}: {}", run.stdout);
    }
    assert_eq!(lines.len(), rdsk_disk::NAMES.len(), "{}", run.stdout);
}

/// What `sim show` prints is a file that runs: its Record has the same values as that of the built-in system.
#[test]
fn what_is_shown_of_a_system_runs_as_it_is() {
    let directory = tempfile::tempdir().unwrap();
    for name in rdsk_disk::NAMES {
        let path = directory.path().join(format!("{name}.toml"));
        std::fs::write(&path, page(&[&"sim", &"show", name]).stdout).unwrap();
        let record = |target: &str| {
            // Writes of the headline go on until their rate has settled, which takes a controller with a cache many virtual minutes.
            let lines = [("headline,paths", "read"), ("paths", "write")].map(|(experiments, op)| {
                let mut command = rdsk(&[&"run", &target, &"--only", &experiments]);
                command.args(["--rw", op, "--budget", "5s"]);
                let mut record = without_times(record_of(command));
                record["command"].take();
                // The name of the system is that of its LUNs, too.
                serde_json::to_string(&record).unwrap().replace(&path.display().to_string(), name)
            });
            lines.concat()
        };
        let (expected, copied) = (record(&format!("sim:{name}")), record(&format!("sim:{}", path.display())));
        let differs = expected.bytes().zip(copied.bytes()).position(|(first, other)| first != other);
        let place = differs.unwrap_or(expected.len().min(copied.len())).saturating_sub(80);
        let near = |text: &str| text.chars().skip(place).take(160).collect::<String>();
        assert!(expected == copied, "{name}: {}\n{}", near(&expected), near(&copied));
    }
}

/// A file of one's own needs to know every key; the page has those of all built-in systems and of their faults.
#[test]
fn the_page_on_own_systems_names_every_key() {
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/sim.md")).unwrap();
    let run = cli::run(rdsk(&[&"sim", &"list"]), LONG);
    let names = cli::json(&run);
    let names = names.as_array().unwrap();
    assert!(names.len() > 15);
    for name in names {
        let name = name["name"].as_str().unwrap();
        let shown = cli::json(&cli::run(rdsk(&[&"sim", &"show", &name]), LONG));
        let text = shown["toml"].as_str().unwrap().to_owned();
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let Some((key, _)) = line.split_once(" = ") else { continue };
            let key = key.rsplit('.').next().unwrap_or(key).trim();
            assert!(page.contains(&format!("`{key}`")), "docs/sim.md does not explain {key} of {name}");
        }
    }
}

/// A system of one's own: a built-in one with these changes.
fn own_system(base: &str, changes: &str) -> tempfile::NamedTempFile {
    let mut file = tempfile::Builder::new().suffix(".toml").tempfile().expect("a scratch file");
    write!(file, "extends = \"{base}\"\n{changes}\n").expect("room for a few lines");
    file
}

/// 128 MiB of memory that answers a request at a time, with these faults.
fn memory_with(faults: &str) -> tempfile::NamedTempFile {
    let size = "[[luns]]\n[luns.device.ram]\ncapacity_bytes = 134217728";
    own_system("tms-ramsan", &format!("{size}\n[luns.faults]\n{faults}"))
}

/// In virtual time the first access of each MiB costs exactly what the model says, and explains what changes over time and position.
#[test]
fn the_first_access_of_a_place_is_told_from_later_ones() {
    let answer_of = |faults: &str, line: &[&str]| {
        let file = memory_with(faults);
        let target = format!("sim:{}", file.path().display());
        let (verb, more) = line.split_first().unwrap();
        let mut command = rdsk(&[verb, &target]);
        command.args(more);
        record_of(command)
    };
    let first = "first_access = { place_bytes = 1048576, costs_ns = 20000000 }";
    let thin = "first_access = { place_bytes = 1048576, costs_ns = 20000000, of = \"writes\" }";
    let reads = ["run", "--only", "headline,zones", "--rw", "read", "--budget", "20s"];
    let writes = ["run", "--only", "headline", "--rw", "write", "--budget", "20s"];
    let others = [
        "drift", "slow-start", "slows-down", "stalls", "passes-differ", "latency-bands", "speed-by-position",
    ];
    for (faults, line, told) in [
        (first, &reads[..], 1),
        (first, &writes, 1),
        (thin, &writes, 1),
        (thin, &reads, 0),
        ("", &reads, 0),
        ("", &writes, 0),
    ] {
        let record = answer_of(faults, line);
        assert_eq!(
            findings(&record, "first-access").len(),
            told,
            "{faults} {line:?}: {}",
            record["findings"]
        );
        for code in others {
            assert!(findings(&record, code).is_empty(), "{faults} {line:?}: {}", record["findings"]);
        }
        let cell = cell(&record, &format!("headline/{}/random-qd1", line[4]));
        for visit in cell["result"]["visits"].as_array().unwrap() {
            let (Some(first_ns), Some(later_ns)) =
                (visit["first"]["p50_ns"].as_f64(), visit["first"]["later_p50_ns"].as_f64())
            else {
                continue;
            };
            let costs_ns = if told == 1 { 20e6 } else { 0.0 };
            // A bucket of the histogram is 0.8 % wide.
            assert!((first_ns - later_ns - costs_ns).abs() < 0.01 * first_ns, "{first_ns} and {later_ns}");
        }
    }
}

/// In virtual time a disk that sleeps takes exactly so much longer after a rest, and one that does not has no line.
#[test]
fn a_disk_that_sleeps_shows_its_latency_after_idle() {
    for (faults, wakes_in_ns) in
        [("sleep = { after_ns = 300000000, wakes_in_ns = 40000000 }", 40_000_000), ("", 0)]
    {
        let file = memory_with(faults);
        let target = format!("sim:{}", file.path().display());
        let line: [&dyn AsRef<OsStr>; 6] = [&"run", &target, &"--only", &"headline", &"--rw", &"read"];
        let record = record_of(rdsk(&line));
        let cell = cell(&record, "headline/read/random-qd1");
        let usual_ns = count(cell, "/result/latency_ns/min");
        let rests = cell["result"]["after_idle"].as_array().unwrap();
        let rests = rests.iter().filter(|rest| rest["rest_ns"] != 0);
        let latencies = rests.flat_map(|rest| rest["latency_ns"].as_array().unwrap());
        let latencies: Vec<u64> = latencies.map(|ns| ns.as_u64().unwrap()).collect();
        assert_eq!(latencies, vec![usual_ns + wakes_in_ns; 6]);
        let mut command = cli::rdsk(env!("CARGO_BIN_EXE_rdsk"));
        command.args(["run", &target, "--only", "headline", "--rw", "read", "--details"]);
        let page = cli::run(command, LONG).stdout;
        assert_eq!(page.contains("after 500 ms of rest"), wakes_in_ns > 0, "{page}");
    }
}
