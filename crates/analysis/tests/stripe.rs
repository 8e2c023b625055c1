//! Geometries of simulated arrays, recovered from the latencies of a sweep; and devices without a stripe, in which none
//! is seen. The inference is given offsets, sizes and times only.

use rdsk_analysis::stripe::{Agreement, Geometry, Sample, SweepOptions, compare_with_sysfs, infer, sweep};
use rdsk_disk::{
    ArrayParams, Device, DeviceParams, DiskParams, Force, RaidLevel, RamParams, Request, SsdParams,
    ZoneParams,
};
use rdsk_model::Op;
use rdsk_stats::rng::SplitMix64;

const KIB: u64 = 1024;
/// Confidence from which on an answer must not be wrong.
const HIGH: f64 = 0.9;

/// A number below `bound`.
fn below(rng: &mut SplitMix64, bound: u64) -> u64 {
    rng.next_u64() % bound
}

fn one_of<T: Copy>(rng: &mut SplitMix64, items: &[T]) -> T {
    items[usize::try_from(below(rng, items.len() as u64)).expect("an index of the slice")]
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Noise {
    None,
    /// ±2 %, and one of a hundred 2 to 10 times as long.
    Ordinary,
}

fn disk() -> DiskParams {
    DiskParams {
        capacity_bytes: 80_026_361_856,
        partition_start_bytes: 0,
        physical_sector_bytes: 512,
        rpm: 7200.0,
        heads: 2,
        zones: vec![
            ZoneParams { cylinders: 50_000, sectors_per_track: 1100 },
            ZoneParams { cylinders: 45_000, sectors_per_track: 650 },
        ],
        head_switch_ns: 900_000,
        seek_track_ns: 1_200_000,
        seek_average_ns: 8_900_000,
        seek_full_ns: 21_000_000,
        command_ns: 100_000,
        interface_bytes_per_s: 230e6,
        read_ahead_bytes: 262_144,
        read_segments: 8,
        write_cache: None,
    }
}

/// A disk of other tracks: up to six heads, eight zones.
fn zoned_disk(rng: &mut SplitMix64) -> DiskParams {
    let zones = (0..8)
        .map(|zone| ZoneParams { cylinders: 20_000, sectors_per_track: 1400 - zone * 90 + below(rng, 50) })
        .collect();
    DiskParams { heads: 1 + below(rng, 6), zones, ..disk() }
}

fn ssd(rng: &mut SplitMix64) -> SsdParams {
    SsdParams {
        capacity_bytes: 256 << 30,
        page_bytes: (4 * KIB) << below(rng, 4),
        dies: one_of(rng, &[1, 2, 3, 4, 6, 8, 16, 24, 32, 48, 64, 128]),
        read_ns: 60_000,
        program_ns: 900_000,
        command_ns: 8_000,
        interface_bytes_per_s: 3.5e9,
        slc_bytes: below(rng, 8) << 28,
        slc_program_ns: 200_000,
        slc_drain_bytes_per_s: 1e8,
        gc_every_bytes: 1 << (26 + below(rng, 5)),
        gc_ns: 20_000_000,
    }
}

fn fast_member() -> DeviceParams {
    DeviceParams::Ram(RamParams {
        capacity_bytes: 1 << 30,
        read_command_ns: 200_000,
        write_command_ns: 200_000,
        read_bytes_per_s: 2e8,
        write_bytes_per_s: 2e8,
        servers: 1,
        write_buffer_bytes: 0,
    })
}

/// RAID 0, 5 or 6 of 3 to 12 members, chunks of 16 KiB to 1 MiB.
fn geometry(rng: &mut SplitMix64, member: DeviceParams) -> ArrayParams {
    let level = one_of(rng, &[RaidLevel::Raid0, RaidLevel::Raid5, RaidLevel::Raid6]);
    let least = if level == RaidLevel::Raid6 { 4 } else { 3 };
    ArrayParams {
        level,
        members: usize::try_from(least + below(rng, 13 - least)).expect("at most 12"),
        chunk_bytes: (16 * KIB) << below(rng, 7),
        command_ns: 10_000,
        interface_bytes_per_s: 2e9,
        write_back_bytes: 0,
        gather_ns: 0,
        member: Box::new(member),
    }
}

fn stripe_bytes(params: &ArrayParams) -> u64 {
    params.chunk_bytes * params.data_members() as u64
}

/// One request after the other, with a little time between; what lies before `start_bytes` is another partition.
fn measure(
    device: &mut Device,
    options: &SweepOptions,
    (op, noise, start_bytes): (Op, Noise, u64),
) -> Vec<Sample> {
    let mut now_ns = 0;
    let mut rng = SplitMix64::new(options.seed);
    let mut take = |probe: rdsk_analysis::stripe::Probe| {
        now_ns += 20_000 + below(&mut rng, 10_000);
        let at = start_bytes + probe.offset_bytes;
        let request = match op {
            Op::Read => Request::read(at, probe.bytes),
            Op::Write => Request { force: Force::Media, ..Request::write(at, probe.bytes) },
        };
        let done = device.submit(now_ns, request);
        assert_eq!(done.outcome, Ok(()));
        let latency_ns = (done.end_ns - now_ns) as f64;
        now_ns = done.end_ns;
        let mut factor = 1.0;
        if noise == Noise::Ordinary {
            factor += 0.02 * (2.0 * rng.uniform() - 1.0);
            factor *= if below(&mut rng, 100) == 0 { 2.0 + 8.0 * rng.uniform() } else { 1.0 };
        }
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "seconds at most")]
        let latency_ns = (latency_ns * factor) as u64;
        Sample { offset_bytes: probe.offset_bytes, bytes: probe.bytes, latency_ns }
    };
    sweep(options).into_iter().map(&mut take).collect()
}

fn answer(params: &DeviceParams, seed: u64, noise: Noise, probes: usize) -> Geometry {
    let mut device = Device::new(params, seed);
    let options = SweepOptions { probes, ..SweepOptions::new(device.capacity_bytes(), 4096, seed) };
    let samples = measure(&mut device, &options, (Op::Write, noise, 0));
    infer(Op::Write, &samples)
}

/// What became of a series of geometries, and the series as a table.
#[derive(Default)]
struct Survey {
    right: usize,
    surely_wrong: usize,
    parity_wrong: usize,
    table: String,
}

fn survey(count: u64, noise: Noise, probes: usize, member: &DeviceParams) -> Survey {
    let mut rng = SplitMix64::new(4);
    let mut survey = Survey::default();
    for seed in 0..count {
        let params = geometry(&mut rng, member.clone());
        let inferred = answer(&DeviceParams::Array(params.clone()), seed, noise, probes);
        let (chunk, stripe) = (params.chunk_bytes, stripe_bytes(&params));
        let is =
            |figure: Option<rdsk_analysis::stripe::Figure>, bytes| figure.is_some_and(|f| f.bytes == bytes);
        let is_surely_not = |figure: Option<rdsk_analysis::stripe::Figure>, bytes| {
            figure.is_some_and(|f| f.bytes != bytes && f.confidence >= HIGH)
        };
        let is_right = is(inferred.chunk, chunk) && is(inferred.stripe, stripe);
        survey.right += usize::from(is_right);
        survey.surely_wrong += usize::from(
            is_surely_not(inferred.chunk, chunk)
                || is_surely_not(inferred.stripe, stripe)
                || inferred.none_confidence >= HIGH,
        );
        survey.parity_wrong +=
            usize::from(is_right && inferred.parity.is_some_and(|p| p == (params.level == RaidLevel::Raid0)));
        let words = |figure: Option<rdsk_analysis::stripe::Figure>| {
            figure.map_or("none".to_owned(), |f| format!("{} ({:.3})", f.bytes / KIB, f.confidence))
        };
        survey.table += &format!(
            "{:?} {:>2} members, chunk {:>4} KiB, stripe {:>5} KiB: {} / {} {}\n",
            params.level,
            params.members,
            chunk / KIB,
            stripe / KIB,
            words(inferred.chunk),
            words(inferred.stripe),
            if is_right { "" } else { "<<<" }
        );
    }
    survey
}

#[test]
fn forty_geometries_are_recovered() {
    let inferred = survey(40, Noise::None, 1500, &DeviceParams::Disk(disk()));
    assert!(
        inferred.right >= 38 && inferred.surely_wrong == 0 && inferred.parity_wrong == 0,
        "\n{}",
        inferred.table
    );
}

#[test]
fn forty_geometries_are_recovered_from_noise() {
    let inferred = survey(40, Noise::Ordinary, 1500, &DeviceParams::Disk(disk()));
    assert!(
        inferred.right >= 38 && inferred.surely_wrong == 0 && inferred.parity_wrong == 0,
        "\n{}",
        inferred.table
    );
}

#[test]
fn arrays_of_fast_members_need_fewer_requests() {
    let inferred = survey(20, Noise::Ordinary, 800, &fast_member());
    assert!(
        inferred.right >= 19 && inferred.surely_wrong == 0 && inferred.parity_wrong == 0,
        "\n{}",
        inferred.table
    );
}

fn assert_no_stripe(params: &DeviceParams, seed: u64) -> Geometry {
    let noise = if seed.is_multiple_of(2) { Noise::None } else { Noise::Ordinary };
    let inferred = answer(params, seed, noise, 1500);
    assert_eq!(
        (inferred.chunk, inferred.stripe, inferred.parity),
        (None, None, None),
        "{seed} {params:?} {inferred:#?}"
    );
    assert!(inferred.none_confidence >= 0.5 && !inferred.evidence.is_empty(), "{inferred:#?}");
    assert!(inferred.advice.starts_with("no stripe was seen"), "{}", inferred.advice);
    inferred
}

#[test]
fn a_disk_has_no_stripe() {
    let sure = (0..20)
        .filter(|&seed| assert_no_stripe(&DeviceParams::Disk(disk()), seed).none_confidence >= HIGH)
        .count();
    assert!(sure >= 18, "sure of {sure} disks of 20");
}

#[test]
fn tracks_and_zones_are_no_stripe() {
    let mut rng = SplitMix64::new(77);
    for seed in 0..20 {
        assert_no_stripe(&DeviceParams::Disk(zoned_disk(&mut rng)), seed);
    }
}

#[test]
fn pages_and_dies_of_flash_are_no_stripe() {
    let mut rng = SplitMix64::new(78);
    for seed in 0..20 {
        assert_no_stripe(&DeviceParams::Ssd(ssd(&mut rng)), seed);
    }
}

#[test]
fn a_stripe_that_does_not_begin_with_the_partition() {
    let (chunk_bytes, start_bytes) = (64 * KIB, 1024 * KIB);
    for (members, seed) in [(4, 1), (6, 2), (8, 3)] {
        let params = ArrayParams {
            level: RaidLevel::Raid5,
            members,
            chunk_bytes,
            ..geometry(&mut SplitMix64::new(1), DeviceParams::Disk(disk()))
        };
        let mut device = Device::new(&DeviceParams::Array(params.clone()), seed);
        let options = SweepOptions::new(device.capacity_bytes() - start_bytes, 4096, seed);
        let samples = measure(&mut device, &options, (Op::Write, Noise::None, start_bytes));
        let inferred = infer(Op::Write, &samples);
        let stripe = stripe_bytes(&params);
        assert_eq!(inferred.chunk.unwrap().bytes, chunk_bytes, "{inferred:#?}");
        let figure = inferred.stripe.unwrap();
        assert!(figure.bytes == stripe || figure.confidence < HIGH, "{members}: {inferred:#?}");
        let first = (stripe - start_bytes % stripe) % stripe;
        assert!(inferred.start_offset_bytes.is_none_or(|start| start == first), "{first}: {inferred:#?}");
    }
}

#[test]
fn reads_tell_the_chunk_and_are_not_sure_of_the_stripe() {
    let mut rng = SplitMix64::new(9);
    let mut right = 0;
    for seed in 0..6 {
        let params = geometry(&mut rng, DeviceParams::Disk(disk()));
        let mut device = Device::new(&DeviceParams::Array(params.clone()), seed);
        let options = SweepOptions::new(device.capacity_bytes(), 4096, seed);
        let samples = measure(&mut device, &options, (Op::Read, Noise::None, 0));
        let inferred = infer(Op::Read, &samples);
        right += usize::from(inferred.chunk.is_some_and(|chunk| chunk.bytes == params.chunk_bytes));
        assert!(inferred.stripe.is_none_or(|stripe| stripe.confidence <= 0.5), "{inferred:#?}");
        assert_eq!(inferred.parity, None);
    }
    assert!(right >= 5, "{right} of 6 chunks");
}

#[test]
fn the_page_has_its_curves_and_the_advice_follows_the_stripe() {
    let params = ArrayParams {
        level: RaidLevel::Raid5,
        members: 5,
        chunk_bytes: 64 * KIB,
        ..geometry(&mut SplitMix64::new(1), DeviceParams::Disk(disk()))
    };
    let inferred = answer(&DeviceParams::Array(params), 5, Noise::None, 1500);
    assert_eq!((inferred.parity, inferred.start_offset_bytes), (Some(true), Some(0)), "{inferred:#?}");
    assert!(
        inferred.advice.starts_with("write multiples of 256 KiB at multiples of 256 KiB:"),
        "{}",
        inferred.advice
    );
    let whole = inferred.sizes.iter().find(|point| point.bytes == 256 * KIB).unwrap();
    assert!(whole.aligned_median_ns.unwrap() < 0.8 * whole.other_median_ns.unwrap(), "{:#?}", inferred.sizes);
    assert_eq!(inferred.boundary_profile.len(), 11);
    assert!(
        inferred.boundary_profile.iter().all(|step| step.count >= 10),
        "{:#?}",
        inferred.boundary_profile
    );
    let sizes = (inferred.chunk.map(|figure| figure.bytes), inferred.stripe.map(|figure| figure.bytes));
    let (agreement, _) = compare_with_sysfs(sizes, 512, 64 * KIB, 256 * KIB);
    assert_eq!(agreement, Agreement::Agrees);
    assert_eq!(compare_with_sysfs(sizes, 512, 128 * KIB, 256 * KIB).0, Agreement::Differs);
}

#[test]
fn too_few_samples_tell_nothing() {
    let params = DeviceParams::Array(geometry(&mut SplitMix64::new(1), fast_member()));
    let inferred = answer(&params, 1, Noise::None, 60);
    assert_eq!((inferred.chunk, inferred.stripe), (None, None));
    assert!(inferred.none_confidence < 0.5, "too few samples are no evidence that there is no stripe");
    assert_eq!(infer(Op::Write, &[]).chunk, None);
}
