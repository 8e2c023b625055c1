use super::*;
use crate::document::load as read_toml;
use rdsk_model::{Arrivals, BlockShare, Flush, FlushCall, IoPath, OffsetRule, Rate, StreamRange};

fn parse(text: &str) -> Result<JobFile, FioError> {
    let around = Surroundings {
        variable: &|_| None,
        read: &|_| Err(std::io::Error::other("there is no such file")),
        page_bytes: 4096,
        memory_mib: 1024,
        processors: 2,
    };
    JobFile::parse("job.fio", text, &around)
}

fn load_on(text: &str, target: FioTarget) -> FioLoad {
    parse(text).and_then(|file| file.load(target)).unwrap_or_else(|why| panic!("{text}: {why}"))
}

/// On a device of 1 GiB.
fn load(text: &str) -> FioLoad {
    load_on(text, FioTarget::Device(1 << 30))
}

fn job(settings: &str) -> LoadJob {
    load(&format!("[a]\nfilename=/dev/x\n{settings}")).phases.remove(0).remove(0)
}

/// Why these lines, the first of which is line 2, are refused.
fn refusal(settings: &str) -> String {
    let text = format!("[a]\n{settings}");
    let file = parse(&text).and_then(|file| file.load(FioTarget::Directory).map(drop));
    file.expect_err(settings).to_string()
}

#[test]
fn defaults_are_those_of_fio() {
    let job = job("");
    let reads = job.reads.as_ref().unwrap();
    assert_eq!(
        (reads.blocks.as_slice(), &reads.offsets),
        (&[BlockShare::fixed(4096)][..], &OffsetRule::Sequential)
    );
    assert_eq!((job.path, job.queue_depth, job.streams, job.writes), (IoPath::Buffered, 1, 1, None));
    assert_eq!((job.span_bytes, job.max_bytes, job.lasts_ns), (1 << 30, Some(1 << 30), None));
}

#[test]
fn sizes_and_offsets_are_those_of_fio() {
    let sides = |settings: &str| {
        let job = job(settings);
        (job.reads.unwrap(), job.writes.unwrap())
    };
    let (reads, writes) = sides("rw=randrw\nbs=,8k\nrwmixwrite=30\ndirect=1");
    assert_eq!((reads.min_bytes(), writes.min_bytes()), (4096, 8192));
    let (reads, writes) = sides("rw=randrw\nbsrange=4k-16k/1k:2k\nnorandommap");
    assert_eq!((reads.min_bytes(), reads.max_bytes(), writes.min_bytes()), (4096, 16_384, 1024));
    let (reads, writes) = sides("rw=randrw\nbs=1k\nbssplit=4k/60:64k/:1m/0,2k\nrandom_distribution=zipf:1.2");
    let weights = |blocks: &[BlockShare]| blocks.iter().map(|share| share.weight).collect::<Vec<_>>();
    assert_eq!(weights(&reads.blocks), [60.0, 20.0, 20.0]);
    assert_eq!((weights(&writes.blocks), writes.min_bytes()), (vec![100.0], 2048));
    assert_eq!(reads.offsets, OffsetRule::Zipf { theta: 1.2 });
    let rule = |settings: &str| job(&format!("rw=randread\n{settings}")).reads.unwrap().offsets;
    assert_eq!(rule(""), OffsetRule::Once, "each block once is what fio does");
    assert_eq!(rule("norandommap"), OffsetRule::Uniform);
    assert_eq!(rule("norandommap=0"), OffsetRule::Once);
    assert_eq!(rule("bsrange=4k-8k"), OffsetRule::Uniform, "with a note");
    assert_eq!(rule("random_distribution=pareto"), OffsetRule::Pareto { skew: 0.2 });
    let zoned = rule("random_distribution=zoned:50/5:30/15:20/");
    let OffsetRule::Zoned { zones } = zoned else { panic!("{zoned:?}") };
    assert_eq!(zones.last().map(|zone| (zone.access_percent, zone.span_percent)), Some((20.0, 80.0)));
}

#[test]
fn depth_path_flushes_and_times_are_those_of_fio() {
    let queued = job("ioengine=libaio\niodepth=16\ndirect=1\nrw=randread");
    assert_eq!((queued.queue_depth, queued.path), (16, IoPath::Direct));
    assert_eq!(job("ioengine=libaio\niodepth=16").queue_depth, 1, "io_submit waits for the page cache");
    assert_eq!(job("ioengine=io_uring\niodepth=16\nbuffered=1").queue_depth, 16);
    assert_eq!(job("iodepth=16\ndirect=1").queue_depth, 1, "psync");
    assert_eq!(job("iodepth=16\ndirect=1\nio_submit_mode=offload").queue_depth, 16);
    assert!(
        queued.path == IoPath::Direct && !queued.advised && job("").advised && !job("fadvise_hint=0").advised
    );
    assert_eq!(job("direct=1\nbuffered=1").path, IoPath::Buffered, "the last of them counts");
    let log = job("rw=write\nfdatasync=4\nsync=1\nthinktime=5\nthinktime_blocks=8\nstartdelay=2\nruntime=1m");
    assert_eq!(log.flush, Some(Flush { every: 4, call: FlushCall::Fdatasync }));
    assert!(log.dsync, "on a device both are the same");
    assert_eq!((log.think_ns, log.think_every, log.delay_ns), (5000, 8, 2_000_000_000));
    assert_eq!((log.lasts_ns, log.max_bytes), (Some(60_000_000_000), Some(1 << 30)), "what ends first");
    let rated = job("rw=randread\nrate=1m\nbs=4k\nnumjobs=2\nrate_process=poisson");
    assert_eq!(rated.rate, Some(Rate { per_s: 256.0, arrivals: Arrivals::Poisson }), "of each clone");
    assert_eq!(
        job("rate_iops=100,50").rate.map(|rate| (rate.per_s, rate.arrivals)),
        Some((100.0, Arrivals::Constant))
    );
    assert_eq!(job("fsync=1\nbuffer_pattern=x").flush, None, "a job that only reads flushes nothing");
}

#[test]
fn bytes_and_spans_are_those_of_fio() {
    let of = |settings: &str| {
        let job = job(settings);
        (job.offset_bytes, job.span_bytes, job.max_bytes)
    };
    assert_eq!(of("size=10000\nloops=3"), (0, 10_000, Some(3 * 8192)));
    assert_eq!(of("size=1m\nio_size=5m\noffset=1m"), (1 << 20, 1 << 20, Some(5 << 20)));
    assert_eq!(of("size=1m\nnumber_ios=3\nbs=8k"), (0, 1 << 20, Some(24_576)));
    assert_eq!(of("size=25%\noffset=50%"), (512 << 20, 256 << 20, Some(256 << 20)));
    assert_eq!(of("size=75%\noffset=50%"), (512 << 20, 512 << 20, Some(512 << 20)));
    assert_eq!(of("filesize=2m\nsize=1m"), (0, 2 << 20, Some(1 << 20)));
    assert_eq!(of("size=1m\ntime_based\nruntime=5"), (0, 1 << 20, None));
    let clones =
        |settings: &str| load(&format!("[a]\nfilename=/dev/x\nnumjobs=3\n{settings}")).phases.remove(0);
    let shared = clones("size=1m");
    assert_eq!((shared.len(), shared[0].streams, shared[0].range), (1, 3, StreamRange::Shared));
    let apart = clones("size=1m\noffset_increment=1m");
    assert_eq!((apart[0].streams, apart[0].span_bytes, apart[0].range), (3, 3 << 20, StreamRange::Disjoint));
    assert_eq!(apart[0].max_bytes, Some(1 << 20), "of each stream");
    let gaps = clones("size=1m\noffset_increment=2m");
    let begins: Vec<u64> = gaps.iter().map(|job| job.offset_bytes).collect();
    assert_eq!((begins, gaps[2].name.as_str()), (vec![0, 2 << 20, 4 << 20], "a.2"));
}

#[test]
fn what_a_sequence_leaves_out_and_the_ramp_are_those_of_fio() {
    let of = |settings: &str| {
        let job = job(settings);
        (job.reads.unwrap().offsets, job.max_bytes)
    };
    let skips = |skip_bytes| OffsetRule::Skips { skip_bytes };
    assert_eq!(
        of("rw=read:4k\nsize=64k"),
        (skips(4096), Some(32 << 10)),
        "to the end of its part, and no further"
    );
    assert_eq!(of("rw=read:8k\nsize=64k"), (skips(8192), Some(24 << 10)), "at 0, 12, 24, 36, 48 and 60 KiB");
    assert_eq!(of("rw=read:4k").1, Some(1 << 30), "round the whole device");
    assert_eq!(of("rw=read:-8k\nsize=64k"), (skips(-8192), Some(64 << 10)), "round its part");
    assert_eq!(of("rw=read:0\nsize=64k"), (OffsetRule::Sequential, Some(64 << 10)));
    let file = load_on("[a]\nrw=write:4k\nsize=64k\n", FioTarget::Directory);
    assert_eq!(file.phases[0][0].max_bytes, Some(64 << 10), "round the whole file");
    let ramped = job("ramp_time=3\nruntime=5\ntime_based\nsize=1m");
    assert_eq!((ramped.ramp_ns, ramped.lasts_ns), (3_000_000_000, Some(5_000_000_000)));
}

#[test]
fn files_of_a_job_are_parts_of_one_where_that_is_the_same() {
    let of = |settings: &str| {
        let load = load_on(&format!("[a]\nsize=64k\nnrfiles=4\n{settings}\n"), FioTarget::Directory);
        (load.phases[0][0].span_bytes, load.phases[0][0].max_bytes, load.notes.join(" "))
    };
    let whole = Some(64 << 10);
    assert_eq!(of("rw=write\nfile_service_type=sequential"), (64 << 10, whole, String::new()));
    let (span_bytes, max_bytes, notes) = of("rw=randread\nfile_service_type=random");
    assert_eq!((span_bytes, max_bytes), (64 << 10, whole));
    assert!(notes.contains("its 4 files are drawn over all of them"), "{notes}");
    let named = load("[a]\nfilename=/dev/x\nnrfiles=4\nrw=read\n");
    assert_eq!(named.phases[0][0].span_bytes, 1 << 30, "a name is one file, whatever their number");
}

#[test]
fn blocks_may_be_aligned_otherwise_and_ranges_be_uneven() {
    let mix = job("rw=randrw\nbs=4k\nba=16k,4k");
    let (reads, writes) = (mix.reads.unwrap(), mix.writes.unwrap());
    assert_eq!((reads.align_bytes, writes.align_bytes), (Some(16_384), None));
    assert_eq!(
        (reads.offsets, writes.offsets),
        (OffsetRule::Uniform, OffsetRule::Uniform),
        "no block is marked"
    );
    assert_eq!(job("rw=read\nba=16k").reads.unwrap().align_bytes, None, "sequences have no alignment");
    let zoned = job("rw=randread\nbs=512\nba=4k\nrandom_distribution=zoned:50/5:50/95").reads.unwrap();
    assert!(
        zoned.align_bytes == Some(4096) && matches!(zoned.offsets, OffsetRule::Zoned { .. }),
        "{zoned:?}"
    );
    // v from 3 to 13 KiB, cut to multiples of 3 KiB and to 10 KiB.
    let blocks = job("rw=randread\nbsrange=3k-10k").reads.unwrap().blocks;
    let shares: Vec<(u64, u64, f64)> =
        blocks.iter().map(|share| (share.min_bytes, share.max_bytes, share.weight)).collect();
    assert_eq!(shares, [(3072, 9216, 0.9), (10_240, 10_240, 0.1)]);
}

#[test]
fn walls_make_phases_and_files_parts_of_one() {
    let text = "[global]\nsize=1m\n[a]\nrw=write\n[b]\nrw=randread\n[a]\nstonewall\nnew_group\nrw=read\n[c]\nrw=write\noverwrite=1\n";
    let load = load_on(text, FioTarget::Directory);
    let names: Vec<Vec<&str>> =
        load.phases.iter().map(|jobs| jobs.iter().map(|job| job.name.as_str()).collect()).collect();
    assert_eq!(names, [vec!["a", "b"], vec!["a-2", "c"]]);
    // The file of both jobs called a is one, so that its writes are not the last word on its space.
    let places: Vec<(u64, bool)> =
        load.phases.iter().flatten().map(|job| (job.offset_bytes, job.fresh_space)).collect();
    assert_eq!(places, [(0, false), (1 << 20, false), (0, false), (2 << 20, false)]);
    assert!(load.notes.iter().any(|note| note.contains("parts of one file")));
    let fresh = load_on("[a]\nrw=write\nsize=1m\nnumjobs=2\n", FioTarget::Directory);
    assert_eq!((fresh.phases[0][0].fresh_space, fresh.phases[0][0].streams), (true, 2));
    assert!(!load_on("[a]\nrw=write\nsize=1m\n", FioTarget::File(1 << 20)).phases[0][0].fresh_space);
    assert!(!load_on("[a]\nrw=write\nsize=1m\nloops=2", FioTarget::Directory).phases[0][0].fresh_space);
}

#[test]
fn the_target_is_the_one_that_the_file_names() {
    let place = |text: &str| parse(text).and_then(|file| file.place());
    assert_eq!(place("[a]\nfilename=/dev/sdx\nnumjobs=2"), Ok(FioPlace::Named("/dev/sdx".into())));
    assert_eq!(place("[a]\ndirectory=/mnt\nfilename=x"), Ok(FioPlace::Named("/mnt/x".into())));
    assert_eq!(place("[a]\nsize=1m\n[b]\nsize=1m"), Ok(FioPlace::Directory(".".into())));
    assert_eq!(place("[global]\ndirectory=/mnt\n[a]\nsize=1m"), Ok(FioPlace::Directory("/mnt".into())));
    let apart = place("[a]\ndirectory=/mnt\n[b]\nfilename=/tmp/x").unwrap_err().to_string();
    assert!(apart.starts_with("job.fio:4: filename=/tmp/x: the jobs of a load are on one target"), "{apart}");
    let devices = parse("[a]\nfilename=/dev/sda\n[b]\nfilename=/dev/sdb").unwrap();
    let why = devices.load(FioTarget::Device(1 << 30)).unwrap_err().to_string();
    assert!(why.starts_with("job.fio:2: filename=/dev/sda: jobs on several devices"), "{why}");
}

#[test]
fn what_cannot_be_is_refused_by_its_line() {
    for (settings, expected) in [
        ("rw=trim\ntrim_percentage=5", "job.fio:3: trim_percentage=5: rdsk does not check"),
        ("size=1m\nrw=randread:8", "job.fio:3: rw=randread:8: rdsk draws"),
        ("size=1m\nrw=read:4k\nbsrange=4k-8k", "between requests of several sizes"),
        ("size=1m\nrw=read:-8k\noffset=1m", "goes backwards from an offset"),
        ("size=1m\nrw=rw:4k\noffset=1m", "ends where its part of the file does"),
        (
            "size=1m\nramp_time=1s\n[b]\nsize=1m",
            "job.fio:1: ramp_time: jobs that run at once have the same ramp",
        ),
        ("size=1m\nramp_time=1s\nstartdelay=1", "begins late and has a ramp"),
        ("rw=randread\nrandom_distribution=normal:5", "fio spreads this over the whole file"),
        ("rw=write\nverify=md5", "job.fio:3: verify=md5: rdsk does not check"),
        ("ioengine=null\nnonsense=1", "job.fio:2: ioengine=null: this engine does no I/O of a disk"),
        ("ioengine=mine", "is none that rdsk knows"),
        ("nonsense=1", "job.fio:2: nonsense=1: is no option of fio 3.42"),
        ("iodepth", "job.fio:2: iodepth: has no value"),
        ("iodepth=4k", "is no whole number"),
        ("direct=yes", "is 0 or 1"),
        ("time_based", "needs a runtime"),
        ("size=50%", "percentages need a target"),
        ("rw=read", "job.fio:1: [a]: needs a size"),
        ("filename=x:y", "several files of a job"),
        ("nrfiles=4", "needs a size that divides"),
        ("nrfiles=4\nsize=10k", "needs a size that divides"),
        ("nrfiles=4\nsize=64k", "job.fio:2: nrfiles=4: files in turns are no one sequence"),
        ("rw=randread\nnrfiles=4\nsize=64k\nrandom_distribution=zipf", "offsets are drawn over all files"),
        (
            "rw=randread\nnrfiles=4\nsize=64k\nfile_service_type=sequential",
            "offsets are drawn over all files",
        ),
        ("rw=randrw\nsize=1m\nrate=,1m", "one direction has a rate and the other has none"),
        ("rate=1m\nbsrange=4k-8k", "a rate of requests of several sizes"),
        ("rw=write\nsize=1m\nsync=1", "job.fio:4: sync=1: with O_SYNC"),
        ("rw=write\nfsync=1\nfdatasync=1", "job.fio:4: fdatasync=1: stands beside fsync"),
        ("bssplit=4k/60:8k/60", "do not make 100"),
        ("rw=randread\nrandom_distribution=pareto:0.9", "Pareto skew"),
        ("zonemode=zbd", "the zones of a device"),
        ("thinktime=5\nioengine=io_uring\niodepth=2", "job.fio:2: thinktime=5: rdsk rests between"),
        ("rw=randread\nba=8k\nrandom_distribution=zipf", "places of this distribution"),
        ("latency_target=5ms", "job.fio:2: latency_target=5ms: rdsk does not change or end"),
    ] {
        let why = refusal(settings);
        assert!(why.contains(expected), "{settings}: {why}");
    }
    let all = refusal("ioengine=libaio\nss=bw\nverify_only\nzonemode=zbd\n[b]\nss=bw");
    assert_eq!(all.lines().count(), 4, "all of them at once: {all}");
    let global = parse("[global]\nprofile=x\n[a]\n[b]").unwrap_err().to_string();
    assert_eq!(global.lines().count(), 1, "once for all jobs: {global}");
    assert!(parse("[global]\nrw=read").unwrap_err().to_string().contains("has no job"));
}

#[test]
fn reads_and_writes_of_a_rate_each_are_two_jobs() {
    let text = "[mix]\nrw=randrw\nsize=12m\nbs=4k,8k\nfsync=4\nnorandommap\nrate_iops=100,25\nrate_process=poisson\nnumjobs=2\n";
    let load = load_on(text, FioTarget::Directory);
    let [reads, writes] = &load.phases[0][..] else { panic!("{:?}", load.phases) };
    assert_eq!((reads.name.as_str(), writes.name.as_str()), ("mix-reads", "mix-writes"));
    let rate = |per_s| Some(Rate { per_s, arrivals: Arrivals::Poisson });
    assert_eq!((reads.rate, writes.rate, reads.streams), (rate(100.0), rate(25.0), 2), "of each clone");
    assert!(
        reads.writes.is_none() && writes.reads.is_none() && reads.flush.is_none() && writes.flush.is_some()
    );
    // 400 KiB of reads per second and 200 KiB of writes.
    assert_eq!((reads.max_bytes, writes.max_bytes), (Some(8 << 20), Some(4 << 20)));
    let by_bytes = load_on("[m]\nrw=rw\nsize=8m\nrate=1m,512k\nbs=64k\n", FioTarget::Directory);
    let per_s: Vec<f64> = by_bytes.phases[0].iter().map(|job| job.rate.unwrap().per_s).collect();
    assert_eq!(per_s, [16.0, 8.0]);
}

#[test]
fn trims_are_understood_with_their_sizes() {
    let only = |settings: &str| {
        let load = load_on(&format!("[a]\nsize=8m\n{settings}\n"), FioTarget::Directory);
        load.phases[0][0].clone()
    };
    let trims = only("rw=randtrim\nbs=4k,8k,16k\nnorandommap");
    assert_eq!((trims.reads, trims.writes, trims.trim_percent), (None, None, 100));
    let of_trims = trims.trims.unwrap();
    assert_eq!((of_trims.min_bytes(), of_trims.offsets), (16 << 10, OffsetRule::Uniform));
    let both = only("rw=trimwrite\nbs=64k");
    assert!(both.trims_before_writes && both.trims.is_none() && both.reads.is_none());
    assert_eq!(both.writes.unwrap().offsets, OffsetRule::Sequential);
}

#[test]
fn the_listing_is_read_as_the_same_load() {
    let text = "[global]\nsize=8m\ngroup_reporting\nbs=4k\n[seq write]\nrw=write\nfsync=32\n[mix \"q\"]\nstonewall\nrw=randrw\nrwmixread=70\n\
                numjobs=3\nthinktime=1ms\n[t]\nrw=randtrimwrite\n[u]\nrw=trim\nbs=64k\n[z]\nrw=randread\nrandom_distribution=zoned:60/10:40/90\nbssplit=4k/60:64k/40\nruntime=3\ntime_based\n\
                ioengine=io_uring\niodepth=8\ndirect=1\n[p]\nrate_iops=100\noffset=4k\n";
    let load = load_on(text, FioTarget::Directory);
    let toml = load.to_toml().unwrap();
    let again = read_toml(&toml).unwrap_or_else(|why| panic!("{toml}{why}"));
    assert_eq!((again.phases, again.is_repeated), (load.phases, false));
    for line in [
        "# job.fio, as rdsk understands it.",
        "# note: the files of these jobs are parts of one file here",
        "# job.fio:8",
        "# ignored: group_reporting (concerns fio's own reports and logs)",
        "name = 'mix \"q\"'",
    ] {
        assert!(toml.lines().any(|other| other == line), "{line}: {toml}");
    }
}
