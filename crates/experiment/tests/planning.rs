//! What the experiments plan from options and facts alone.

use rdsk_experiment::{PlanError, PlanOptions, max_streams, plan};
use rdsk_model::{
    CacheState, Device, EngineKind, Experiment, Extent, Filesystem, IoPath, LoadJob, Op, Pattern, Plan, Sync,
    Target, TargetKind,
};
use std::collections::BTreeSet;

const ALL: [Experiment; 4] = [Experiment::Headline, Experiment::Paths, Experiment::Stream, Experiment::Align];

fn target(size_bytes: u64) -> Target {
    Target {
        name: "t".into(),
        kind: TargetKind::File,
        path: Some("/t".into()),
        size_bytes,
        made_by_rdsk: true,
        direct_io: Some(true),
        direct_align_bytes: Some(512),
        nowait: Some(true),
        dontcache: Some(true),
        ..Target::default()
    }
}

fn planned(experiments: &[Experiment], target: &Target, writable: bool, options: &PlanOptions) -> Plan {
    plan(experiments, std::slice::from_ref(target), &[writable], Some(1e9), options, 48_000_000_000)
        .expect("the targets of the tests hold a plan")
}

#[test]
fn a_whole_run_asks_every_question_once() {
    let plan = planned(&ALL, &target(1 << 30), true, &PlanOptions::default());
    let ids: BTreeSet<&str> = plan.cells.iter().map(|cell| cell.id.as_str()).collect();
    assert_eq!(ids.len(), plan.cells.len(), "ids are unique");
    for id in [
        "headline/read/sequential",
        "headline/read/random-qd1",
        "headline/read/random-qd32",
        "headline/write/durable",
        "paths/read/direct",
        "paths/read/buffered",
        "paths/read/cached",
        "paths/write/buffered",
        "stream/write/direct-dsync",
        "align/write/uncached-buffered/512",
        "align/write/uncached-direct/4096+512",
    ] {
        assert!(ids.contains(id), "{id} is missing from {ids:?}");
    }
    assert!(plan.cells.iter().all(|cell| cell.not_applicable.is_none()));
}

#[test]
fn the_most_streams_are_those_of_the_plan() {
    for counts in [None, Some(vec![2]), Some(vec![3, 5, 4])] {
        let job = |name: &str, streams| LoadJob { streams, ..LoadJob::random_reads(name, 0) };
        let phases = vec![vec![job("a", 2), job("b", 3)], vec![job("c", 4)]];
        let options = PlanOptions { stream_counts: counts, phases, ..PlanOptions::default() };
        for &experiment in Experiment::PLANNED {
            let plan = planned(&[experiment], &target(1 << 30), true, &options);
            let most = plan.cells.iter().map(|cell| cell.workload.streams).max();
            assert_eq!(most, Some(max_streams(&[experiment], &options)), "{experiment} {options:?}");
        }
    }
}

#[test]
fn nothing_reaches_outside_the_target() {
    for size_bytes in [1_u64, 511, 4096, 100_000, 1 << 20, (1 << 30) + 777] {
        let Ok(plan) = plan(&ALL, &[target(size_bytes)], &[true], None, &PlanOptions::default(), 1) else {
            panic!("{size_bytes} bytes hold at least a block of one byte");
        };
        for cell in plan.cells.iter().filter(|cell| cell.not_applicable.is_none()) {
            let workload = &cell.workload;
            assert!(workload.offset_bytes + workload.span_bytes <= size_bytes, "{} on {size_bytes}", cell.id);
            assert!(
                workload.span_bytes >= workload.block_bytes + workload.shift_bytes,
                "{} on {size_bytes}",
                cell.id
            );
        }
    }
}

#[test]
fn a_target_that_may_not_be_written_is_only_read() {
    let plan = planned(&ALL, &target(1 << 30), false, &PlanOptions::default());
    assert!(plan.cells.iter().all(|cell| cell.workload.op == Op::Read));
    let none = plan_of_writes_on_read_only();
    assert!(matches!(none, Err(PlanError::Nothing(_))));
}

fn plan_of_writes_on_read_only() -> Result<Plan, PlanError> {
    let options = PlanOptions { ops: Some(vec![Op::Write]), ..PlanOptions::default() };
    plan(&ALL, &[target(1 << 30)], &[false], None, &options, 1)
}

#[test]
fn paths_cells_differ_only_in_path() {
    let plan = planned(&[Experiment::Paths], &target(1 << 30), true, &PlanOptions::default());
    for op in ["read", "write"] {
        let find =
            |column: &str| plan.cells.iter().find(|cell| cell.id == format!("paths/{op}/{column}")).unwrap();
        assert!(find("direct").workload.differs_only_in_path(&find("buffered").workload));
        assert_eq!(find("direct").extent, Extent::Passes { bytes: 100 << 20 });
        assert_eq!(find("buffered").workload.cache, CacheState::Cold);
    }
}

#[test]
fn deep_cells_use_the_ring_unless_told_otherwise() {
    let deep = |options: &PlanOptions| {
        let plan = planned(&[Experiment::Headline], &target(1 << 30), true, options);
        plan.cells.into_iter().find(|cell| cell.id.contains("random-qd32")).unwrap()
    };
    assert_eq!(deep(&PlanOptions::default()).workload.engine, EngineKind::Uring);
    let on_sync = deep(&PlanOptions { engine: Some(EngineKind::Sync), ..PlanOptions::default() });
    assert!(on_sync.not_applicable.is_some(), "one blocking call at a time cannot hold 32 in flight");
}

#[test]
fn a_filesystem_without_direct_io_says_so_and_measures_the_rest() {
    let tmpfs = Target { direct_io: Some(false), ..target(1 << 30) };
    let plan = planned(&ALL, &tmpfs, true, &PlanOptions::default());
    for cell in &plan.cells {
        assert_eq!(cell.not_applicable.is_some(), cell.workload.path == IoPath::Direct, "{}", cell.id);
    }
    assert!(
        plan.cells.iter().any(|cell| cell.id == "headline/read/sequential" && cell.not_applicable.is_none())
    );
}

/// The third path is asked by the questions about paths when they are asked alone; the turns of a whole run belong to what
/// are requested first.
#[test]
fn dontcache_is_asked_alone_only() {
    let is_third = |cell: &&rdsk_model::Cell| cell.workload.path == IoPath::DontCache;
    let whole = planned(&ALL, &target(1 << 30), true, &PlanOptions::default());
    assert_eq!(whole.cells.iter().filter(is_third).count(), 0);
    for (experiment, count) in
        [(Experiment::Paths, 2), (Experiment::Stream, 2), (Experiment::Align, 11), (Experiment::Scale, 0)]
    {
        let plan = planned(&[experiment], &target(1 << 30), true, &PlanOptions::default());
        let cells: Vec<_> = plan.cells.iter().filter(is_third).collect();
        assert_eq!(cells.len(), count, "{experiment}");
        for cell in cells {
            assert!(cell.id.contains("dontcache") && cell.not_applicable.is_none(), "{}", cell.id);
            // The kernel drops only the pages that the call brought in.
            assert_eq!(cell.workload.cache, CacheState::Cold, "{}", cell.id);
            let buffered = cell.id.replace("dontcache", "buffered");
            let twin = plan.cells.iter().find(|other| other.id == buffered).expect("it has a twin");
            assert!(cell.workload.differs_only_in_path(&twin.workload), "{}", cell.id);
            assert_eq!(cell.extent, twin.extent, "{}", cell.id);
        }
    }
}

/// Else the headline of an encrypted file, or of a filesystem without direct I/O, is that of memory.
#[test]
fn a_headline_without_direct_io_reads_from_a_cold_cache() {
    let without = Target { direct_io: Some(false), ..target(1 << 30) };
    let plan = planned(&[Experiment::Headline], &without, true, &PlanOptions::default());
    let mut reads = 0;
    for cell in &plan.cells {
        let is_read = cell.workload.op == Op::Read;
        reads += usize::from(is_read);
        assert_eq!((cell.workload.path, &cell.not_applicable), (IoPath::Buffered, &None), "{}", cell.id);
        assert_eq!(cell.workload.cache == CacheState::Cold, is_read, "{}", cell.id);
    }
    assert!(reads > 0);
    let paths = planned(&[Experiment::Paths], &without, true, &PlanOptions::default());
    let direct = paths.cells.iter().find(|cell| cell.id == "paths/read/direct");
    let why = direct.and_then(|cell| cell.not_applicable.as_deref()).unwrap_or_default();
    assert!(why.starts_with("direct I/O is not supported for this file"), "{why}");
}

#[test]
fn a_target_without_dontcache_says_why_and_measures_the_rest() {
    let filesystem = |kind: &str| Filesystem { kind: kind.into(), options: String::new() };
    let needs = "RWF_DONTCACHE needs Linux 6.14 or later and a filesystem that supports it";
    for (kind, on, expected) in [
        (TargetKind::File, Some("tmpfs"), format!("the kernel refuses it on tmpfs (EOPNOTSUPP): {needs}")),
        (TargetKind::File, None, format!("the kernel refuses it on this filesystem (EOPNOTSUPP): {needs}")),
        (TargetKind::Block, None, format!("the kernel refuses it on a block device (EOPNOTSUPP): {needs}")),
        (TargetKind::Sim, None, "the simulated host has no RWF_DONTCACHE".into()),
    ] {
        let without =
            Target { kind, filesystem: on.map(filesystem), dontcache: Some(false), ..target(1 << 30) };
        for experiment in [Experiment::Paths, Experiment::Stream, Experiment::Align] {
            let plan = planned(&[experiment], &without, true, &PlanOptions::default());
            let with = planned(
                &[experiment],
                &Target { dontcache: None, ..without.clone() },
                true,
                &PlanOptions::default(),
            );
            for (cell, tried) in plan.cells.iter().zip(&with.cells) {
                let expected = (cell.workload.path == IoPath::DontCache).then_some(&expected);
                assert_eq!(cell.not_applicable.as_ref(), expected, "{}", cell.id);
                assert_eq!(tried.not_applicable, None, "who was not asked is tried");
            }
        }
    }
}

/// Cells that no simulated host runs must not give the others more time than they had.
#[test]
fn a_path_that_no_model_has_takes_no_virtual_time() {
    let sim = Target { kind: TargetKind::Sim, dontcache: Some(false), ..target(1 << 30) };
    let plan = planned(&[Experiment::Align], &sim, true, &PlanOptions::default());
    let running = plan.cells.iter().filter(|cell| cell.not_applicable.is_none()).count() as u64;
    assert_eq!(plan.budget_ns, running * 120_000_000_000);
}

#[test]
fn runtime_replaces_the_share_of_the_budget() {
    let options = PlanOptions { runtime_ns: Some(1_000_000_000), ..PlanOptions::default() };
    let plan = planned(&[Experiment::Stream], &target(1 << 30), true, &options);
    assert_eq!(plan.budget_ns, plan.cells.len() as u64 * 1_000_000_000);
    assert!((0..plan.cells.len()).all(|index| plan.share_ns(index) == 1_000_000_000));
}

#[test]
fn stream_options_reach_the_cells() {
    let options = PlanOptions {
        queue_depth: Some(32),
        stream_counts: Some(vec![2]),
        block_bytes: Some(vec![4096, 8192]),
        ..PlanOptions::default()
    };
    let plan = planned(&[Experiment::Stream], &target(1 << 30), true, &options);
    let direct = plan.cells.iter().find(|cell| cell.id == "stream/read/direct/4k").unwrap();
    assert_eq!((direct.workload.queue_depth, direct.workload.streams), (32, 2));
    assert_eq!(direct.workload.engine, EngineKind::Uring);
    let dsync = plan.cells.iter().find(|cell| cell.id == "stream/write/dsync/8k").unwrap();
    assert_eq!((dsync.workload.sync, dsync.workload.queue_depth), (Sync::Dsync, 1));
}

/// Else a cache below could answer the one path and not the other, and random I/O would have other seeks.
#[test]
fn the_paths_of_a_stream_are_over_the_same_span() {
    let device = Target { kind: TargetKind::Block, ..target(100 << 30) };
    for (pattern, span_bytes) in [(Pattern::Sequential, 100 << 30), (Pattern::Random, 1 << 30)] {
        let options = PlanOptions { pattern, ..PlanOptions::default() };
        let plan = planned(&[Experiment::Stream], &device, true, &options);
        assert!(plan.cells.len() >= 8);
        for cell in &plan.cells {
            assert_eq!(cell.workload.span_bytes, span_bytes, "{pattern}: {}", cell.id);
        }
    }
}

#[test]
fn too_small_and_beyond_the_end_are_said() {
    let options = PlanOptions { block_bytes: Some(vec![1 << 20]), ..PlanOptions::default() };
    let small = plan(&[Experiment::Paths], &[target(4096)], &[true], None, &options, 1);
    assert_eq!(small.unwrap_err().to_string(), "t has 4096 bytes, less than one block of 1048576 bytes");
    let behind = PlanOptions { offset_bytes: (1 << 30) - 4096, ..options };
    let small = plan(&[Experiment::Paths], &[target(1 << 30)], &[true], None, &behind, 1);
    assert_eq!(
        small.unwrap_err().to_string(),
        "t has 4096 bytes behind --offset 1048572 KiB, less than one block of 1048576 bytes"
    );
    let beyond = PlanOptions { offset_bytes: 8192, ..PlanOptions::default() };
    let error = plan(&[Experiment::Stream], &[target(4096)], &[true], None, &beyond, 1).unwrap_err();
    assert!(matches!(error, PlanError::OffsetBeyondEnd { offset_bytes: 8192, .. }));
}

/// A length that was requested is never cut. The streams of `scale` start over instead.
#[test]
fn a_pass_that_does_not_fit_is_refused_with_both_sizes() {
    let options = |pass_bytes| PlanOptions { pass_bytes: Some(pass_bytes), ..PlanOptions::default() };
    let small = target(1 << 30);
    for experiment in [Experiment::Paths, Experiment::Stream, Experiment::Align] {
        let fits = planned(&[experiment], &small, true, &options(1 << 30));
        assert!(fits.cells.iter().all(|cell| cell.workload.span_bytes == 1 << 30));
        let error = |options: &PlanOptions| {
            plan(&[experiment], std::slice::from_ref(&small), &[true], None, options, 1)
                .unwrap_err()
                .to_string()
        };
        let long = error(&options((1 << 30) + 1));
        assert_eq!(
            long, "--bytes 1,073,741,825 bytes is more than t holds: 1 GiB (1,073,741,824 bytes)",
            "{experiment:?}"
        );
        let behind = error(&PlanOptions { offset_bytes: 1 << 20, ..options(1 << 30) });
        assert_eq!(
            behind,
            "--bytes 1 GiB (1,073,741,824 bytes) from --offset 1 MiB is more than t holds: 1 GiB (1,073,741,824 bytes)"
        );
    }
    let scale = planned(&[Experiment::Scale], &small, false, &options(4 << 30));
    let whole = |cell: &rdsk_model::Cell| u64::from(cell.workload.streams) * (4 << 30);
    assert!(scale.cells.iter().all(|cell| cell.extent == Extent::Pass { bytes: whole(cell) }));
}

/// Long ramps leave fewer rounds, and a plan that can compare nothing says why and what would help.
#[test]
fn scale_has_the_rounds_that_its_ramps_leave() {
    const SECOND: u64 = 1_000_000_000;
    let plan = |stagger_s: u64, runtime_s: Option<u64>| {
        let options = PlanOptions {
            block_bytes: Some(vec![4096, 1 << 20]),
            stream_counts: Some(vec![1, 2]),
            stagger_ns: Some(stagger_s * SECOND),
            runtime_ns: runtime_s.map(|seconds| seconds * SECOND),
            ..PlanOptions::default()
        };
        // Two cells of two streams: each round waits twice.
        planned(&[Experiment::Scale], &target(1 << 30), false, &options)
    };
    // Half of 48 s may be ramps.
    for (stagger_s, rounds) in [(0, 6), (1, 6), (3, 4), (4, 3), (5, 2), (20, 1)] {
        assert_eq!(plan(stagger_s, None).rounds, rounds, "{stagger_s} s");
    }
    // Four cells of 10 s have as long for their ramps as for themselves.
    for (stagger_s, rounds) in [(3, 6), (5, 4), (15, 1)] {
        let plan = plan(stagger_s, Some(10));
        assert_eq!(
            (plan.rounds, plan.budget_ns),
            (rounds, (40 + 2 * stagger_s * u64::from(rounds)) * SECOND)
        );
    }
    let notes = |stagger_s| plan(stagger_s, None).notes.join(" ");
    assert!(!notes(4).contains("repeats"), "{}", notes(4));
    assert!(notes(5).contains("2 of the 3 repeats that a comparison needs"), "{}", notes(5));
    assert!(notes(20).contains("takes 40.0 s in each; --stagger 0s"), "{}", notes(20));
}

#[test]
fn several_targets_have_cells_of_their_own() {
    let two = [target(1 << 30), Target { index: 1, ..target(1 << 30) }];
    let plan = plan(&[Experiment::Paths], &two, &[true, false], None, &PlanOptions::default(), 1).unwrap();
    assert!(plan.cells.iter().any(|cell| cell.id == "paths/write/direct@0"));
    assert!(!plan.cells.iter().any(|cell| cell.id == "paths/write/direct@1"));
    assert!(plan.cells.iter().any(|cell| cell.id == "paths/read/direct@1" && cell.workload.targets == [1]));
}

/// A virtual device may report that it is rotational; its plan is not shortened for that.
#[test]
fn a_virtual_device_is_not_taken_for_a_rotational_one() {
    let target_of = |name: &str| {
        let device = Device { name: name.into(), rotational: Some(true), ..Device::default() };
        let target = Target { device: Some(device), made_by_rdsk: false, ..target(100 << 30) };
        let options = PlanOptions::default();
        plan(&[Experiment::Zones], &[target], &[false], None, &options, 60_000_000_000).unwrap()
    };
    let (rotational, virtio) = (target_of("sda"), target_of("vda"));
    assert!(rotational.rounds < virtio.rounds || rotational.cells.len() < virtio.cells.len());
    assert!(rotational.notes.iter().any(|note| note.contains("shortened")), "{:?}", rotational.notes);
}

/// What a shortened plan says of itself is what it plans: a target of 96 MiB holds 96 blocks of 1 MiB and no 200 positions.
#[test]
fn a_shortened_plan_of_zones_says_how_many_positions_there_are() {
    let options = PlanOptions::default();
    let disk = Target { made_by_rdsk: false, ..target(96 << 20) };
    let plan = plan(&[Experiment::Zones], &[disk], &[false], Some(1e9), &options, 1_000_000_000).unwrap();
    let places = plan.cells.iter().filter_map(|cell| Some(cell.workload.points.as_ref()?.len())).max();
    assert_eq!(places, Some(96));
    let note = plan.notes.iter().find(|note| note.contains("shortened")).expect("it says so");
    assert!(note.contains(" 96 positions and ") && note.contains("instead of 10, 96 and 4;"), "{note}");
}

/// What was requested is not said to be left out.
#[test]
fn a_shortened_plan_of_scale_names_what_it_shortened() {
    let note = |options: &PlanOptions| {
        let plan = planned(&[Experiment::Scale], &target(1 << 30), false, options);
        plan.notes.iter().find(|note| note.contains("shortened")).cloned().unwrap_or_default()
    };
    let asked = PlanOptions { block_bytes: Some(vec![4096, 65_536]), ..PlanOptions::default() };
    let starts = note(&asked);
    assert!(starts.contains("(in full: streams started 5.00 s apart); --stagger or"), "{starts}");
    assert!(!starts.contains("block sizes"), "{starts}");
    let both =
        PlanOptions { budget_source: rdsk_experiment::BudgetSource::Requested, ..PlanOptions::default() };
    let plan = plan(&[Experiment::Scale], &[target(1 << 30)], &[false], None, &both, 3_000_000_000).unwrap();
    let in_full =
        "(in full: 8 block sizes, streams started 5.00 s apart); --bs, --stagger or a larger --budget";
    assert!(plan.notes.iter().any(|note| note.contains(in_full)), "{:?}", plan.notes);
}

/// What one cell has read may lie in a cache that is not seen when the next one draws the same offsets.
#[test]
fn no_two_cells_draw_the_same_offsets() {
    let seeds = |seed: Option<u64>| -> Vec<u64> {
        let options = PlanOptions { seed, ..PlanOptions::default() };
        let plan = planned(&ALL, &target(1 << 30), true, &options);
        plan.cells.iter().map(|cell| cell.workload.seed).collect()
    };
    let first = seeds(Some(1));
    assert_eq!(first.iter().collect::<BTreeSet<_>>().len(), first.len());
    assert!(first.iter().all(|&seed| seed < 1 << 53), "every reader of JSON keeps them");
    assert_eq!((seeds(Some(1)), seeds(None)), (first.clone(), first.clone()));
    assert!(seeds(Some(2)).iter().all(|seed| !first.contains(seed)));
}

/// Two disks are read at the same places, so that their difference is theirs; of one LUN, no path reads what another has read.
#[test]
fn only_paths_of_one_lun_draw_offsets_of_their_own() {
    let on = |index: u32, name: &str, serial: &str| {
        let device = Device { name: name.into(), serial: Some(serial.into()), ..Device::default() };
        let kind = TargetKind::Block;
        Target { index, kind, device: Some(device), stack: vec![name.into()], ..target(1 << 30) }
    };
    let targets = [on(0, "sda", "L1"), on(1, "sdb", "L2"), on(2, "sdc", "L1"), on(3, "sdd", "L1")];
    let experiments = [Experiment::Headline, Experiment::Stream];
    let options = PlanOptions::default();
    let plan = plan(&experiments, &targets, &[true; 4], None, &options, 60_000_000_000).unwrap();
    let seeds = |seed: u32| -> Vec<u64> {
        let its = plan.cells.iter().filter(|cell| cell.workload.targets == [seed]);
        its.map(|cell| cell.workload.seed).collect()
    };
    assert_eq!(seeds(0), seeds(1));
    let of_one: BTreeSet<u64> = [0, 2, 3].into_iter().flat_map(seeds).collect();
    assert_eq!(of_one.len(), 3 * seeds(0).len());
}

/// An offset that is no multiple of the block takes no block from a pass.
#[test]
fn a_pass_fits_behind_any_offset() {
    for (offset_bytes, block_bytes) in
        [(4096, 1 << 20), (8192, 4096), (1 << 30, 10 << 20), (3 << 20, 1 << 20)]
    {
        let options =
            PlanOptions { offset_bytes, block_bytes: Some(vec![block_bytes]), ..PlanOptions::default() };
        let plan = planned(&[Experiment::Paths, Experiment::Stream], &target(4 << 30), true, &options);
        let passes = plan.cells.iter().filter_map(|cell| match cell.extent {
            Extent::Pass { bytes } | Extent::Passes { bytes } => Some((cell, bytes)),
            _ => None,
        });
        let mut count = 0;
        for (cell, bytes) in passes {
            count += 1;
            let holds = rdsk_engine::capacity(&cell.workload) * block_bytes;
            assert!(
                holds >= bytes - bytes % block_bytes,
                "{} at {offset_bytes}: {holds} of {bytes}",
                cell.id
            );
        }
        assert!(count > 0);
    }
}

/// Wherever the span begins, no I/O lies off the pages of the target unless that is what is asked.
#[test]
fn no_offset_puts_blocks_off_their_pages() {
    for offset_bytes in [512, 1000, 2048, 100_000_000_000] {
        let options = PlanOptions {
            offset_bytes,
            block_bytes: Some(vec![4096, 1 << 20]),
            pattern: rdsk_model::Pattern::Random,
            ..PlanOptions::default()
        };
        let large = target(200_000_000_000);
        let mut cells = planned(&[Experiment::Stream], &large, true, &options).cells;
        let options = PlanOptions { pattern: rdsk_model::Pattern::Sequential, ..options };
        cells.extend(planned(&[Experiment::Paths, Experiment::Stream], &large, true, &options).cells);
        for cell in &cells {
            assert!(cell.workload.shift_bytes.is_multiple_of(4096), "{} at {offset_bytes}", cell.id);
            let is_random = cell.workload.pattern == rdsk_model::Pattern::Random;
            assert!(!is_random || cell.workload.shift_bytes == 0, "{} at {offset_bytes}", cell.id);
        }
    }
}

/// One stream on each target by itself, and the others on both in equal numbers; what is requested stays.
#[test]
fn several_targets_have_as_many_streams_each() {
    let both = [target(1 << 30), Target { index: 1, ..target(1 << 30) }];
    let planned = |streams: Option<Vec<u32>>| {
        let options = PlanOptions { stream_counts: streams, ..PlanOptions::default() };
        let plan = plan(&[Experiment::Scale], &both, &[false; 2], None, &options, 60_000_000_000).unwrap();
        let first = plan.cells[0].workload.block_bytes;
        let of_size = plan.cells.into_iter().filter(|cell| cell.workload.block_bytes == first);
        of_size.map(|cell| (cell.id, cell.workload.streams, cell.workload.targets)).collect::<Vec<_>>()
    };
    let cell = |name: &str, streams: u32, targets: &[u32]| {
        (format!("scale/read/16k/{name}"), streams, targets.to_vec())
    };
    assert_eq!(
        planned(None),
        [cell("1@0", 1, &[0]), cell("1@1", 1, &[1]), cell("4", 4, &[0, 1]), cell("10", 10, &[0, 1])]
    );
    assert_eq!(planned(Some(vec![3])), [cell("3", 3, &[0, 1])]);
}
