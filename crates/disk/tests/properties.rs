//! What must hold of the models under any figures and any stream of requests: time runs forward, one server gives no more
//! than its rate, caches hide no more than they hold, Little's law, sequential is not slower than random.

use crate::common::{active_mean, call, shuffled, waiting_mean};
use proptest::prelude::*;
use rdsk_disk::{
    ArrayParams, Device, DeviceParams, DiskParams, Host, HostParams, LunParams, Op, Operation, RaidLevel,
    RamParams, Request, Route, SsdParams, SystemParams, WriteCacheParams, ZoneParams, load,
};
use rdsk_stats::rng::SplitMix64;

const SECTOR: u64 = 512;

/// Any zones: cylinders and sectors per track.
fn zones() -> impl Strategy<Value = Vec<ZoneParams>> {
    let zone = (10_u64..400, 20_u64..2000)
        .prop_map(|(cylinders, sectors_per_track)| ZoneParams { cylinders, sectors_per_track });
    prop::collection::vec(zone, 1..8)
}

/// Any disk without a write cache and without read-ahead.
fn disk() -> impl Strategy<Value = DiskParams> {
    let times = (0_u64..1_500_000, 300_000_u64..2_500_000, 0_u64..8_000_000, 0_u64..15_000_000);
    (zones(), 3600_u32..15_001, 1_u64..9, times, 0_u64..300_000, 1e6..1e9).prop_map(
        |(zones, rpm, heads, (head_switch_ns, seek_track_ns, more, most), command_ns, rate)| {
            let sectors: u64 = zones.iter().map(|zone| zone.cylinders * heads * zone.sectors_per_track).sum();
            DiskParams {
                capacity_bytes: sectors * SECTOR,
                partition_start_bytes: 0,
                physical_sector_bytes: SECTOR,
                rpm: f64::from(rpm),
                heads,
                zones,
                head_switch_ns,
                seek_track_ns,
                seek_average_ns: seek_track_ns + more,
                seek_full_ns: seek_track_ns + more + most,
                command_ns,
                interface_bytes_per_s: rate,
                read_ahead_bytes: 0,
                read_segments: 4,
                write_cache: None,
            }
        },
    )
}

/// Any disk with any caches.
fn cached_disk() -> impl Strategy<Value = DiskParams> {
    let order = prop::sample::select(vec![rdsk_disk::DestageOrder::Fifo, rdsk_disk::DestageOrder::Nearest]);
    let cache = (0_u64..4000, 1_usize..40, order, 0_u64..30_000_000, 0_u64..1000).prop_map(
        |(sectors, extents, order, delay_ns, segment)| WriteCacheParams {
            bytes: sectors * SECTOR,
            extents,
            order,
            delay_ns,
            segment_bytes: segment * SECTOR,
        },
    );
    (disk(), prop::option::of(cache), 0_u64..2000, 0_u32..8).prop_map(|(disk, cache, ahead, physical)| {
        let physical_sector_bytes = SECTOR << physical;
        DiskParams {
            write_cache: cache,
            read_ahead_bytes: ahead * SECTOR,
            physical_sector_bytes,
            partition_start_bytes: SECTOR,
            capacity_bytes: (disk.capacity_bytes - SECTOR) / physical_sector_bytes * physical_sector_bytes
                - 8192,
            ..disk
        }
    })
}

fn ram() -> impl Strategy<Value = RamParams> {
    (0_u64..100_000, 0_u64..100_000, 1e6..1e10, 1e6..1e10, 1_usize..9, 0_u64..10_000_000).prop_map(
        |(read, write, read_rate, write_rate, servers, buffer)| RamParams {
            capacity_bytes: 1 << 30,
            read_command_ns: read,
            write_command_ns: write,
            read_bytes_per_s: read_rate,
            write_bytes_per_s: write_rate,
            servers,
            write_buffer_bytes: buffer,
        },
    )
}

/// Any device, arrays of arrays not among them.
fn device() -> impl Strategy<Value = DeviceParams> {
    let ssd =
        (1_u64..64, 1_usize..20, 0_u64..100_000, 0_u64..10_000_000).prop_map(|(page, dies, read, slc)| {
            DeviceParams::Ssd(SsdParams {
                capacity_bytes: 1 << 30,
                page_bytes: page * SECTOR,
                dies,
                read_ns: read,
                program_ns: 900_000,
                command_ns: 8_000,
                interface_bytes_per_s: 1e9,
                slc_bytes: slc,
                slc_program_ns: 200_000,
                slc_drain_bytes_per_s: 1e7,
                gc_every_bytes: 1 << 20,
                gc_ns: 5_000_000,
            })
        });
    let levels =
        prop::sample::select(vec![RaidLevel::Raid0, RaidLevel::Raid1, RaidLevel::Raid5, RaidLevel::Raid6]);
    let array = (levels, 4_usize..9, 1_u64..300, cached_disk(), 0_u64..4_000_000, 0_u64..2).prop_map(
        |(level, members, chunk, disk, write_back_bytes, gathers)| {
            DeviceParams::Array(ArrayParams {
                level,
                members,
                chunk_bytes: chunk * SECTOR,
                command_ns: 10_000,
                interface_bytes_per_s: 1e9,
                write_back_bytes,
                gather_ns: gathers * 30_000_000 * u64::from(write_back_bytes > 0),
                member: Box::new(DeviceParams::Disk(disk)),
            })
        },
    );
    prop_oneof![cached_disk().prop_map(DeviceParams::Disk), ram().prop_map(DeviceParams::Ram), ssd, array]
}

/// (gap before the arrival in ns, what, where as a share of the device in 2^32, size in sectors)
type Asked = (u64, u8, u32, u64);

fn stream() -> impl Strategy<Value = Vec<Asked>> {
    prop::collection::vec((0_u64..10_000_000, 0_u8..6, any::<u32>(), 1_u64..600), 1..50)
}

fn request(capacity_bytes: u64, (_, what, place, sectors): Asked) -> Request {
    let bytes = (sectors * SECTOR).min(capacity_bytes);
    let last = (capacity_bytes - bytes) / SECTOR;
    let offset_bytes = last * u64::from(place) / (1 << 32) * SECTOR;
    match what {
        0 | 1 => Request::read(offset_bytes, bytes),
        2 | 3 => Request::write(offset_bytes, bytes),
        4 => Request { force: rdsk_disk::Force::Media, ..Request::write(offset_bytes, bytes) },
        _ => Request::flush(),
    }
}

fn host(device: DeviceParams, change: impl FnOnce(&mut HostParams)) -> Host {
    let system = load("linux-disk").expect("built in").params;
    let mut system = SystemParams {
        luns: vec![LunParams { controller: None, device, faults: None }],
        controllers: Vec::new(),
        ..system
    };
    change(&mut system.host);
    Host::new(&system, 1)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn nothing_ends_before_it_arrived(params in device(), list in stream()) {
        let mut device = Device::new(&params, 7);
        let mut now_ns = 0;
        for asked in list {
            now_ns += asked.0;
            let done = device.submit(now_ns, request(device.capacity_bytes(), asked));
            prop_assert!(done.start_ns >= now_ns && done.end_ns >= done.start_ns, "{done:?} at {now_ns}");
            prop_assert_eq!(done.outcome, Ok(()));
        }
    }

    /// However it is asked, a disk moves no more than its interface, and from its media no more than its densest track; a
    /// server of memory takes its time for every byte.
    #[test]
    fn one_server_never_exceeds_its_rate(params in disk(), memory in ram(), list in stream()) {
        let capacity_bytes = params.capacity_bytes;
        let track = params.zones.iter().map(|zone| zone.sectors_per_track).max().unwrap_or(0) * SECTOR;
        let media = track as f64 * params.rpm / 60.0;
        let mut disk = Device::new(&DeviceParams::Disk(params.clone()), 3);
        let (mut bytes, mut end_ns, mut commands) = (0, 0, 0);
        for asked in &list {
            let asked = request(capacity_bytes, *asked);
            let done = disk.submit(0, asked);
            prop_assert!(done.end_ns >= end_ns, "one after the other");
            end_ns = done.end_ns;
            commands += params.command_ns;
            bytes += asked.bytes;
            // Nothing is kept or read ahead, so every byte crosses the media and the interface.
            let least_ns = (bytes as f64 / media.min(params.interface_bytes_per_s) * 1e9).max(commands as f64);
            prop_assert!(end_ns as f64 >= least_ns * 0.999_999, "{bytes} bytes in {end_ns} ns");
        }
        let one = RamParams { servers: 1, write_buffer_bytes: 0, ..memory };
        let mut ram = Device::new(&DeviceParams::Ram(one.clone()), 3);
        let (mut least_ns, mut end_ns) = (0.0, 0);
        for asked in &list {
            let asked = request(one.capacity_bytes, *asked);
            end_ns = ram.submit(0, asked).end_ns.max(end_ns);
            least_ns += match asked.op {
                Op::Read => one.read_command_ns as f64 + asked.bytes as f64 / one.read_bytes_per_s * 1e9,
                Op::Write => one.write_command_ns as f64 + asked.bytes as f64 / one.write_bytes_per_s * 1e9,
                Op::Flush => 0.0,
            };
            prop_assert!(end_ns as f64 >= least_ns * 0.999_999);
        }
    }

    /// Buffered writes do not make a store faster in the long run either.
    #[test]
    fn a_write_buffer_hides_no_more_than_it_holds(memory in ram(), sizes in prop::collection::vec(1_u64..2000, 1..80)) {
        let one = RamParams { servers: 1, ..memory };
        let mut ram = Device::new(&DeviceParams::Ram(one.clone()), 3);
        let (mut now_ns, mut bytes) = (0, 0);
        for sectors in sizes {
            bytes += sectors * SECTOR;
            now_ns = ram.submit(now_ns, Request::write(0, sectors * SECTOR)).end_ns;
            let outside = bytes.saturating_sub(one.write_buffer_bytes);
            prop_assert!(now_ns as f64 >= outside as f64 / one.write_bytes_per_s * 1e9 - 1.0);
        }
        let all_ns = ram.submit(now_ns, Request::flush()).end_ns;
        prop_assert!(all_ns as f64 >= bytes as f64 / one.write_bytes_per_s * 1e9 - 1.0, "a flush waits for all of it");
    }

    /// Nor does a write cache make a disk faster in the long run.
    #[test]
    fn a_write_cache_hides_no_more_than_it_holds(params in cached_disk(), sectors in 1_u64..300, gap_ns in 0_u64..2_000_000) {
        let track = params.zones.iter().map(|zone| zone.sectors_per_track).max().unwrap_or(0) * SECTOR;
        let media = track as f64 * params.rpm / 60.0;
        let held = params.write_cache.map_or(0, |cache| cache.bytes);
        let mut disk = Device::new(&DeviceParams::Disk(params.clone()), 3);
        let block = sectors * SECTOR;
        let (mut now_ns, mut bytes) = (0, 0);
        for n in 0..(params.capacity_bytes / block).min(100) {
            bytes += block;
            now_ns = disk.submit(now_ns + gap_ns, Request::write(n * block, block)).end_ns;
            let least_ns = bytes.saturating_sub(held) as f64 / media * 1e9;
            prop_assert!(now_ns as f64 >= least_ns * 0.999_999, "{bytes} bytes in {now_ns} ns");
        }
        let all_ns = disk.submit(now_ns, Request::flush()).end_ns;
        prop_assert!(all_ns as f64 >= bytes as f64 / media * 1e9 * 0.999_999, "a flush waits for all of it");
    }

    /// Reading all blocks of a range in order takes no longer than in any other order, but for the first position: from a
    /// disk that loses nothing between two commands, and from one that does and reads ahead.
    #[test]
    fn sequential_is_not_slower_than_random(params in disk(), sectors in 1_u64..600, seed: u64, loses: bool) {
        let track = params.zones.iter().map(|zone| zone.sectors_per_track).max().unwrap_or(0) * SECTOR;
        let media = track as f64 * params.rpm / 60.0;
        // Losing at most what the disk reads ahead meanwhile, over an interface that is no bottleneck.
        let params = DiskParams {
            command_ns: if loses { params.command_ns } else { 0 },
            interface_bytes_per_s: if loses { 10.0 * media } else { 1e15 },
            read_ahead_bytes: if loses { 4 * (sectors * SECTOR + track) } else { 0 },
            ..params
        };
        let block = sectors * SECTOR;
        let blocks = (params.capacity_bytes / block).min(60);
        let revolution_ns = 60e9 / params.rpm;
        let took = |order: &[u64]| {
            let mut disk = Device::new(&DeviceParams::Disk(params.clone()), seed);
            order.iter().fold(0, |now_ns, at| disk.submit(now_ns, Request::read(at * block, block)).end_ns) as f64
        };
        let in_order: Vec<u64> = (0..blocks).collect();
        let (sequential_ns, random_ns) = (took(&in_order), took(&shuffled(&mut SplitMix64::new(seed), blocks)));
        prop_assert!(
            sequential_ns <= random_ns + 2.0 * revolution_ns + params.seek_full_ns as f64,
            "{sequential_ns} {random_ns}"
        );
    }

    /// Little's law: mean number in the queue is rate times mean latency, and every stream has one request or computes.
    #[test]
    fn littles_law(params in device(), depth in 1_usize..20, active in 1_usize..9, sectors in 1_u64..64, seed: u64) {
        let mut host = host(params, |host| host.active_limit = active);
        let (bytes, capacity_bytes) = (sectors * SECTOR, host.capacity_bytes(0));
        let mut random = SplitMix64::new(seed);
        let mut next = || {
            let offset_bytes = random.below((capacity_bytes - bytes) / SECTOR) * SECTOR;
            call(Operation::Read, Route::Direct, offset_bytes, bytes)
        };
        for _ in 0..depth {
            host.submit(0, next()).expect("whole sectors");
        }
        let (mut returned, mut in_calls_ns) = (0_u64, 0_u128);
        while returned < 4000 {
            for done in host.advance_one() {
                returned += 1;
                in_calls_ns += u128::from(done.end_ns - done.start_ns);
                host.submit(host.now_ns(), next()).expect("whole sectors");
            }
        }
        let seen = host.counters(0);
        let elapsed_ns = seen.at_ns as f64;
        let rate = returned as f64 / elapsed_ns;
        let by_law = rate * (in_calls_ns as f64 / returned as f64);
        prop_assert!((by_law / depth as f64 - 1.0).abs() < 0.01, "{by_law} of {depth} streams");
        let in_queue = waiting_mean(&seen) + active_mean(&seen);
        let latency_ns = seen.read_ns as f64 / seen.reads as f64;
        let by_law = seen.reads as f64 / elapsed_ns * latency_ns;
        prop_assert!((in_queue / by_law - 1.0).abs() < 0.01, "{in_queue} in the queue, {by_law} by the law");
        prop_assert!(in_queue <= depth as f64 && seen.active_max <= active);
    }

    /// Neither the queue nor the device ever has more than its limit, whatever kinds of calls come together.
    #[test]
    fn limits_are_never_passed(
        params in device(), list in stream(),
        (active, limit, batch, pieces) in (1_usize..8, 1_usize..20, 0_usize..8, 1_usize..40),
        (merge, cut, ahead) in (1_u64..64, 1_u64..64, 0_u64..64),
    ) {
        let mut host = host(params, |host| {
            host.active_limit = active;
            host.queue_limit = limit;
            host.queue_batch = batch;
            host.direct_in_flight = pieces;
            host.merge_bytes = merge * host.buffer_bytes;
            host.direct_request_bytes = cut * SECTOR;
            host.read_ahead_bytes = ahead * host.buffer_bytes;
            host.write_behind_bytes = 0;
        });
        let (mut made, mut returned) = (0, 0);
        for (n, asked) in list.iter().enumerate() {
            let at = request(host.capacity_bytes(0), *asked);
            let operation = match at.op {
                Op::Read => Operation::Read,
                Op::Write => Operation::Write,
                Op::Flush => Operation::Sync,
            };
            let route = if n % 2 == 0 { Route::Buffered } else { Route::Direct };
            let now_ns = host.now_ns() + asked.0 / 10;
            returned += host.advance(now_ns).len();
            host.submit(now_ns, call(operation, route, at.offset_bytes, at.bytes)).expect("whole sectors");
            made += 1;
            let (waiting, at_device) = host.queue(0);
            prop_assert!(at_device <= active && waiting + at_device <= limit + batch);
        }
        while host.next_ns().is_some() {
            returned += host.advance_one().len();
        }
        prop_assert_eq!(returned, made, "every call returns once");
        let seen = host.counters(0);
        prop_assert!(seen.active_max <= active && seen.queue_max <= limit + batch, "{seen:?}");
        prop_assert_eq!((host.queue(0), host.dirty_bytes(0)), ((0, 0), 0));
    }
}
