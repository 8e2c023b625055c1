//! Truth: speed by position. What `rdsk zones` finds on disks whose zones, bands and clocks are known: models in virtual
//! time, and a real loop device over a disk that behaves as programmed.

use crate::support::zoned_disk::{BLOCK, ENDS, NEEDS, PLACES, RATES, read, real_zones, three_zones};
use crate::support::{LONG, MIB, rdsk, record_of};
use rdsk_analysis::zones::{Cause, Zones};
use rdsk_model::Record;
use rdsk_testkit::attempts::{ensure, first_right, same};
use rdsk_testkit::cli::{self, Ended};
use rdsk_testkit::{requires, wait_until};
use std::io::Write as _;

fn codes(record: &Record) -> Vec<&str> {
    record.findings.iter().map(|finding| finding.code.as_str()).collect()
}

/// The model of the report's disk, read as the report did it: every block, one behind the other.
#[test]
fn the_reports_disk_falls_with_position_has_bands_at_one_mebibyte_only_and_is_never_saturated() {
    let (record, of_sizes) = read(record_of(rdsk(&[
        &"zones", &"sim:freebsd-wd800jd", &"--bs", &"1M,5M", &"--order", &"ascending", &"--full", &"--runs",
        &"1",
    ])));
    let [small, large] = &of_sizes[..] else { panic!("two block sizes") };
    let latency_bands = small.latency_bands.as_ref().expect("bands at 1 MiB");
    assert!(
        matches!(latency_bands.cause, Cause::MissedRevolution { revolution_ns } if (revolution_ns - 60e9 / 7200.0).abs() < 1.0)
    );
    assert!(
        latency_bands.bands.iter().any(|band| (band.offset_ns / (60e9 / 7200.0) - 1.0).abs() < 0.04),
        "{latency_bands:?}"
    );
    assert_eq!(large.latency_bands, None);
    for zones in &of_sizes {
        assert!(zones.zones.len() >= 8, "{:?}", zones.zones);
        let busy = zones.busy_share.expect("a model counts");
        assert!((0.7..0.96).contains(&busy), "{busy}");
    }
    // The figures of the model's eight zones, from the outside in.
    assert_eq!(large.zones.len(), 8);
    assert!(
        large.zones.windows(2).all(|pair| pair[1].bytes_per_s < pair[0].bytes_per_s),
        "{:?}",
        large.zones
    );
    let ratio = large.outer_bytes_per_s.unwrap() / large.inner_bytes_per_s.unwrap();
    assert!((1.6..2.1).contains(&ratio), "{ratio}");
    assert!(small.median_bytes_per_s < large.median_bytes_per_s);
    let finding_codes = codes(&record);
    assert!(
        finding_codes.contains(&"latency-bands") && finding_codes.contains(&"speed-by-position"),
        "{finding_codes:?}"
    );
}

#[test]
fn shuffled_positions_give_a_smear_and_no_bands_and_the_advice_is_five_mebibytes() {
    let (_, of_sizes) = read(record_of(rdsk(&[&"zones", &"sim:freebsd-wd800jd", &"--order", &"shuffled"])));
    assert_eq!(of_sizes.iter().map(|one| one.block_bytes / MIB).collect::<Vec<_>>(), [1, 5, 10, 20]);
    assert!(
        of_sizes.iter().all(|one| one.latency_bands.is_none() && one.drift.is_none() && one.passes == 10)
    );
    assert_eq!(of_sizes.iter().map(Zones::is_tight).collect::<Vec<_>>(), [false, true, true, true]);
    let scatter: Vec<f64> = of_sizes.iter().map(|zones| zones.scatter.expect("ten passes")).collect();
    assert!(scatter.windows(2).all(|pair| pair[1] < pair[0]), "{scatter:?}");
    let page = cli::run(
        {
            let mut command = cli::rdsk(env!("CARGO_BIN_EXE_rdsk"));
            command.args(["zones", "sim:freebsd-wd800jd", "--order", "shuffled", "--ascii"]);
            command
        },
        LONG,
    );
    assert!(page.stdout.contains("(random 20M reads, QD1, 8 zones)"), "{}", page.stdout);
    assert!(page.stdout.contains("Use blocks of at least 5M: at 1M, "), "{}", page.stdout);
    assert!(page.stdout.is_ascii() && page.stdout.lines().all(|line| line.len() <= 80), "{}", page.stdout);
}

/// The boundaries of a model with two zones are those of its file.
#[test]
fn boundaries_are_those_of_the_model() {
    let (_, of_sizes) =
        read(record_of(rdsk(&[&"zones", &"sim:solaris-zfs", &"--bs", &"20M", &"--runs", &"5"])));
    let shown = cli::json(&cli::run(rdsk(&[&"sim", &"show", &"solaris-zfs"]), LONG));
    let text = shown["toml"].as_str().expect("it shows its figures");
    let figures = |key: &str| -> Vec<f64> {
        let lines = text.lines().filter_map(|line| line.trim().split_once(" = "));
        lines
            .filter(|(name, _)| *name == key)
            .filter_map(|(_, value)| value.split_whitespace().next()?.replace('_', "").parse().ok())
            .collect()
    };
    let (cylinders, sectors) = (figures("cylinders"), figures("sectors_per_track"));
    let heads = figures("heads")[0];
    assert_eq!((cylinders.len(), sectors.len()), (2, 2), "{text}");
    let boundary = cylinders[0] * heads * sectors[0] * 512.0;
    let [outer, inner] = &of_sizes[0].zones[..] else { panic!("{:?}", of_sizes[0].zones) };
    let step = of_sizes[0].positions[1].offset_bytes as f64;
    assert!(
        boundary >= outer.begin_bytes as f64 && boundary <= inner.begin_bytes as f64 + step,
        "{boundary}"
    );
    assert!(outer.end_bytes as f64 <= boundary + step, "{boundary} {outer:?}");
}

/// A clock that moves in steps of 1 ms makes bands of its own; one of 1 µs makes none.
#[test]
fn bands_of_a_coarse_clock_are_called_so_and_go_with_it() {
    for (resolution_ns, cause) in [(1_000_000, Some(Cause::Clock { resolution_ns: 1_000_000 })), (1000, None)]
    {
        let mut file = tempfile::Builder::new().suffix(".toml").tempfile().unwrap();
        write!(file, "extends = \"tms-ramsan\"\nhost.clock_resolution_ns = {resolution_ns}\n").unwrap();
        let target = format!("sim:{}", file.path().display());
        for bs in ["64k", "256k"] {
            let (_, of_sizes) = read(record_of(rdsk(&[&"zones", &target, &"--bs", &bs])));
            let band_cause = of_sizes[0].latency_bands.as_ref().map(|latency_bands| latency_bands.cause);
            assert_eq!(
                band_cause, cause,
                "{bs} with a clock of {resolution_ns} ns: {:?}",
                of_sizes[0].latency_bands
            );
        }
    }
}

#[test]
fn a_disk_that_becomes_slower_differs_between_its_passes() {
    let (record, _) = read(record_of(rdsk(&[&"zones", &"sim:slowdown", &"--bs", &"5M", &"--runs", &"8"])));
    assert!(codes(&record).contains(&"passes-differ"), "{:?}", codes(&record));
}

/// What a busy machine cannot change: every position is read once in each pass, as the disk's log says, none is quicker than
/// its zone is programmed, and what is late is not late for the clock. How close the figures come is in timing/zones.rs.
#[test]
fn positions_of_a_real_device_are_those_of_its_log_and_none_is_quicker_than_its_zone() {
    if !requires(&NEEDS) {
        return;
    }
    let (disk, device) = three_zones(None);
    disk.clear_log();
    let (record, zones) = real_zones(&device, 4);
    assert_eq!((zones.passes, zones.positions.len() as u64), (4, PLACES));
    let cell = &record.cells[0];
    assert_eq!(cell.result.bytes, Some(4 * PLACES * BLOCK));
    let offsets = &cell.workload.points.as_ref().expect("a cell of zones has positions").offset_bytes;
    let log = disk.log();
    for &offset in offsets {
        let reads = log.iter().filter(|served| (served.offset_bytes, served.bytes) == (offset, BLOCK));
        assert!(reads.count() >= 4, "{offset} was not read in every pass");
    }
    for pass in &cell.result.points {
        let mut order = pass.order.clone();
        order.sort_unstable();
        assert!(order.into_iter().eq(0..u32::try_from(PLACES).unwrap()), "{:?}", pass.order);
        for (&place, &latency_ns) in pass.order.iter().zip(&pass.latency_ns) {
            let offset = offsets[place as usize];
            let fastest = RATES.into_iter().zip(ENDS).find(|(_, end)| offset + BLOCK <= *end).unwrap().0;
            // A block over a boundary has a part in the slower zone too.
            let fastest = if ENDS.iter().any(|end| (offset + 1..offset + BLOCK).contains(end)) {
                RATES[0]
            } else {
                fastest
            };
            let least_ns = BLOCK as f64 / fastest * 1e9;
            assert!(
                latency_ns as f64 >= least_ns.floor(),
                "{latency_ns} ns at {offset}, {least_ns} are programmed"
            );
        }
    }
    if let Some(latency_bands) = &zones.latency_bands {
        assert!(!matches!(latency_bands.cause, Cause::Clock { .. }), "{latency_bands:?}");
    }
}

/// A budget cuts several passes short; all of them are gone on with, and nothing that was measured is lost or counted twice.
#[test]
fn passes_that_a_budget_cut_short_are_all_continued() {
    let kept = tempfile::Builder::new().suffix(".json").tempfile().unwrap();
    let arguments: [&dyn AsRef<std::ffi::OsStr>; 9] =
        [&"zones", &"sim:wd2500", &"--bs", &"5M", &"--points", &"50", &"--runs", &"4", &"--seed"];
    let short = [&arguments[..], &[&"7", &"--budget", &"8s"]].concat();
    let (partial, _) = read(record_of(rdsk(&short)));
    let points = &partial.cells[0].result.points;
    assert!(points.iter().filter(|run| run.order.len() < 50).count() > 1, "several are cut short");
    std::fs::write(kept.path(), serde_json::to_string(&partial).unwrap()).unwrap();
    let (whole, _) = read(record_of(rdsk(&[&arguments[..], &[&"7"]].concat())));
    let (continued, of_sizes) =
        read(record_of(rdsk(&[&arguments[..], &[&"7", &"--resume", &kept.path()]].concat())));
    assert_eq!(of_sizes[0].passes, 4);
    for (pass, reference) in continued.cells[0].result.points.iter().zip(&whole.cells[0].result.points) {
        assert_eq!(pass.order, reference.order, "the order is that of a run that was never cut short");
    }
    for (pass, earlier) in continued.cells[0].result.points.iter().zip(points) {
        assert_eq!(pass.latency_ns[..earlier.latency_ns.len()], earlier.latency_ns);
    }
    let cell = &continued.cells[0];
    assert_eq!(cell.result.bytes, Some(4 * 50 * 5 * MIB));
    assert_eq!(cell.evidence.device[0].read_bytes, cell.result.bytes, "each byte is counted once");
    assert_eq!(cell.verdict.as_ref().map(|verdict| verdict.code), Some(rdsk_model::VerdictCode::Device));
    // Nothing is left to do then.
    let complete = record_of(rdsk(&[&arguments[..], &[&"7"]].concat()));
    std::fs::write(kept.path(), complete.to_string()).unwrap();
    let refused = cli::run(rdsk(&[&arguments[..], &[&"7", &"--resume", &kept.path()]].concat()), LONG);
    assert_eq!(refused.ended, Ended::Exited(2), "{}", refused.stderr);
    assert!(refused.stderr.contains("no sweep is missing"), "{}", refused.stderr);
    // But more passes than it has.
    let mut more = arguments;
    more[7] = &"5";
    let (more, of_sizes) = read(record_of(rdsk(&[&more[..], &[&"7", &"--resume", &kept.path()]].concat())));
    assert_eq!((of_sizes[0].passes, more.cells[0].result.points.len()), (5, 5));
}

/// In ascending order, a Record of a version whose passes all began at the first position is refused for that reason.
#[test]
fn a_record_whose_passes_began_elsewhere_is_refused_for_that() {
    let kept = tempfile::Builder::new().suffix(".json").tempfile().unwrap();
    let line =
        ["zones", "sim:wd2500", "--bs", "5M", "--points", "12", "--runs", "2", "--seed", "7", "--order"];
    let words: Vec<&dyn AsRef<std::ffi::OsStr>> = line.iter().map(|word| word as _).collect();
    let ascending: [&dyn AsRef<std::ffi::OsStr>; 1] = [&"ascending"];
    let mut record = record_of(rdsk(&[&words[..], &ascending].concat()));
    for cell in record["cells"].as_array_mut().unwrap() {
        assert_eq!(
            cell["workload"]["points"].as_object_mut().unwrap().remove("moves_start"),
            Some(true.into())
        );
    }
    std::fs::write(kept.path(), record.to_string()).unwrap();
    let resumed = |order: &dyn AsRef<std::ffi::OsStr>| {
        cli::run(rdsk(&[&words[..], &[order, &"--resume", &kept.path()]].concat()), LONG)
    };
    let refused = resumed(&"ascending");
    assert_eq!(refused.ended, Ended::Exited(2), "{}", refused.stderr);
    assert!(refused.stderr.contains("all begin at the first position"), "{}", refused.stderr);
    assert!(resumed(&"shuffled").stderr.contains("no sweep over the same positions"));
}

/// Interrupted with its points kept, and continued: every place once per pass, as without the interruption.
#[test]
fn an_interrupted_run_keeps_its_points_and_is_continued() {
    if !requires(&NEEDS) {
        return;
    }
    let (disk, device) = three_zones(None);
    let kept = tempfile::Builder::new().suffix(".json").tempfile().unwrap();
    let arguments = ["--bs", "64k", "--points", "41", "--runs", "4"];
    let interrupted = || {
        let mut command = cli::rdsk(env!("CARGO_BIN_EXE_rdsk"));
        command.arg("zones").arg(device.path()).args(arguments).arg("--json").arg(kept.path());
        disk.clear_log();
        let mut child = command.stdout(std::process::Stdio::null()).spawn().unwrap();
        // Somewhere in its first passes of 41 blocks; examining the device reads a little too.
        assert!(wait_until(LONG, || disk.counts().read_bytes > 60 * BLOCK), "it reads: {:?}", disk.counts());
        let pid = rustix::process::Pid::from_child(&child);
        rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
        child.wait().unwrap().code()
    };
    // One that was done before the signal came shows nothing.
    let partial = first_right(10, || {
        let code = interrupted();
        let partial: Record = serde_json::from_reader(std::fs::File::open(kept.path()).unwrap()).unwrap();
        same("exit code", &code, &Some(130))?;
        // One that does not stop within five seconds is given up without its cells.
        let cell = partial.cells.first().ok_or_else(|| format!("no cell: {:?}", partial.error))?;
        let before: usize = cell.result.points.iter().map(|run| run.order.len()).sum();
        ensure((1..164).contains(&before), || format!("{before} points were kept"))?;
        Ok(partial)
    });
    let (whole, of_sizes) = read(record_of(rdsk(&[
        &"zones",
        &device.path(),
        &"--bs",
        &"64k",
        &"--points",
        &"41",
        &"--runs",
        &"4",
        &"--resume",
        &kept.path(),
    ])));
    assert_eq!(of_sizes[0].passes, 4);
    // What was counted in both parts is held against the bytes of both.
    let verdict = whole.cells[0].verdict.as_ref().map(|verdict| verdict.code);
    assert_eq!(verdict, Some(rdsk_model::VerdictCode::Device), "{:?}", whole.cells[0].verdict);
    let points = &whole.cells[0].result.points;
    for run in points {
        let mut order = run.order.clone();
        order.sort_unstable();
        assert_eq!(order, (0..41).collect::<Vec<u32>>());
    }
    // What was measured before is there as it was.
    for (run, earlier) in points.iter().zip(&partial.cells[0].result.points) {
        assert_eq!(run.latency_ns[..earlier.latency_ns.len()], earlier.latency_ns);
    }
    let foreign = cli::run(rdsk(&[&"zones", &"sim:wd2500", &"--resume", &kept.path()]), LONG);
    assert_eq!(foreign.ended, Ended::Exited(2), "{}", foreign.stderr);
}
