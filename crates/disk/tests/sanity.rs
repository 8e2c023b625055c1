//! What must hold of every model whatever it is asked: time, rates, Little's law, queue limits, sameness.

use crate::common::{self, active_mean, call, host, streams, waiting_mean};
use proptest::prelude::*;
use rdsk_disk::{Device, DeviceParams, Host, NAMES, Op, Operation, Request, Route, Stability, load};
use rdsk_stats::rng::SplitMix64;

const SECTOR: u64 = 512;

fn device(name: &str) -> Device {
    Device::of_lun(&load(name).expect("built in").params.luns[0], 1)
}

/// (gap before arrival in µs, what, offset in sectors of the first GiB, size in sectors)
fn requests() -> impl Strategy<Value = Vec<(u64, u8, u64, u64)>> {
    prop::collection::vec((0_u64..20_000, 0_u8..5, 0_u64..2_000_000, 1_u64..2048), 1..60)
}

fn request((_, what, first, sectors): (u64, u8, u64, u64)) -> Request {
    match what {
        0 | 1 => Request::read(first * SECTOR, sectors * SECTOR),
        2 | 3 => Request::write(first * SECTOR, sectors * SECTOR),
        _ => Request::flush(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn nothing_completes_before_it_arrived_and_the_same_comes_again(list in requests(), which in 0..NAMES.len()) {
        let (mut once, mut again) = (device(NAMES[which]), device(NAMES[which]));
        let mut now_ns = 0;
        for asked in list {
            now_ns += asked.0 * 1000;
            let done = once.submit(now_ns, request(asked));
            prop_assert!(done.start_ns >= now_ns && done.end_ns >= done.start_ns, "{done:?} at {now_ns}");
            prop_assert_eq!(done, again.submit(now_ns, request(asked)));
        }
    }

    #[test]
    fn a_single_server_never_exceeds_its_rate(list in requests()) {
        for name in ["linux-disk", "linux-disk-nocache", "hpux-k460", "wd2500"] {
            let DeviceParams::Disk(disk) = &load(name).expect("built in").params.luns[0].device.clone() else {
                panic!("these are disks");
            };
            let mut server = device(name);
            let (mut bytes, mut last_ns) = (0, 0);
            for asked in &list {
                let done = server.submit(0, request(*asked));
                prop_assert!(done.end_ns >= last_ns, "one after the other");
                last_ns = done.end_ns;
                bytes += if request(*asked).op == Op::Flush { 0 } else { request(*asked).bytes };
                let least_ns = bytes as f64 / disk.interface_bytes_per_s * 1e9;
                prop_assert!(last_ns as f64 >= least_ns, "{bytes} bytes in {last_ns} ns");
            }
        }
    }

    #[test]
    fn a_queue_limit_is_never_passed(list in requests(), active in 1_usize..8, limit in 1_usize..20, batch in 0_usize..8) {
        let mut system = load("linux-disk").expect("built in").params;
        system.host.active_limit = active;
        system.host.queue_limit = limit;
        system.host.queue_batch = batch;
        system.host.write_behind_bytes = 0;
        let mut host = Host::new(&system, 1);
        let mut ids = 0;
        for (gap, what, first, sectors) in list {
            let operation = if what < 2 { Operation::Read } else { Operation::Write };
            let route = if what % 2 == 0 { Route::Buffered } else { Route::Direct };
            let now_ns = host.now_ns() + gap * 100;
            host.submit(now_ns, call(operation, route, first * SECTOR, sectors * SECTOR)).expect("whole sectors");
            ids += 1;
            let (waiting, at_device) = host.queue(0);
            prop_assert!(at_device <= active && waiting + at_device <= limit + batch);
        }
        let mut done = 0;
        while host.next_ns().is_some() {
            done += host.advance_one().len();
        }
        done += host.advance(host.now_ns()).len();
        prop_assert!(done <= ids);
        let seen = host.counters(0);
        prop_assert!(seen.active_max <= active && seen.queue_max <= limit + batch, "{seen:?}");
        prop_assert_eq!((host.queue(0), host.dirty_bytes(0)), ((0, 0), 0));
    }

    #[test]
    fn sequential_is_never_slower_than_random(seed: u64, blocks in 10_u64..60) {
        for name in ["hpux-k460", "linux-disk", "linux-disk-nocache", "wd2500", "freebsd-wd800jd"] {
            // Synchronous writes without a cache are the exception: in order they lose a whole turn each, scattered half of one.
            let uncached = ["hpux-k460", "linux-disk-nocache"].contains(&name);
            for op in [Op::Read, Op::Write].into_iter().filter(|&op| op == Op::Read || !uncached) {
                let took = |offsets: Vec<u64>| {
                    let (mut disk, mut now_ns) = (device(name), 0);
                    for block in offsets {
                        let asked = Request { op, ..Request::read(block * 65_536, 65_536) };
                        now_ns = disk.submit(now_ns, asked).end_ns;
                    }
                    disk.submit(now_ns, Request::flush()).end_ns
                };
                let mut random = SplitMix64::new(seed);
                let scattered = (0..blocks).map(|_| random.below(60_000)).collect();
                prop_assert!(took((0..blocks).collect()) <= took(scattered), "{name} {op:?}");
            }
        }
    }
}

#[test]
fn littles_law_holds_in_steady_state() {
    for (name, count) in [("tms-ramsan", 10), ("linux-disk", 4), ("hpux-k460", 6), ("ssd-slc", 32)] {
        let mut host = host(name);
        let rate = streams(&mut host, Operation::Read, Route::Direct, 65_536, count);
        let luns = host.paths().luns();
        let seen: Vec<_> = (0..luns).map(|lun| host.counters(lun)).collect();
        let in_queue: f64 = seen.iter().map(|lun| waiting_mean(lun) + active_mean(lun)).sum();
        let requests: u64 = seen.iter().map(|lun| lun.reads).sum();
        let spent_ns: u128 = seen.iter().map(|lun| lun.waiting_ns + lun.active_ns).sum();
        let latency_s = spent_ns as f64 / requests as f64 / 1e9;
        let by_law = rate / 65_536.0 * latency_s;
        assert!(
            (in_queue / by_law - 1.0).abs() < 0.01,
            "{name}: {in_queue} in the queue, {by_law} by the law"
        );
        // Each stream is either in a call's processor time or has its one request in the queue.
        let host_s = host.params().cost.direct_call_ns / 1e9;
        let streams_by_law = rate / 65_536.0 * (latency_s + host_s);
        assert!(
            (streams_by_law / count as f64 - 1.0).abs() < 0.01,
            "{name}: {streams_by_law} of {count} streams"
        );
    }
}

/// What an array loses because its members wait for each other's reads: no more than its documentation says.
#[test]
fn small_writes_on_an_array_come_near_what_its_members_can_do() {
    const WRITES: u64 = 1000;
    for (name, touched, least) in [("raid5", 2, 0.55), ("raid6", 3, 0.65)] {
        let params = load(name).expect("built in").params;
        let DeviceParams::Array(array) = &params.luns[0].device else { panic!("it is an array") };
        let mut random = SplitMix64::new(1);
        // Each member reads and writes for itself, one after the other.
        let mut members: Vec<Device> = (0..5).map(|seed| Device::new(&array.member, seed)).collect();
        let mut ends_ns = [0; 5];
        for n in 0..usize::try_from(WRITES * touched).expect("a count") {
            let at = random.below(members[0].capacity_bytes() / 4096) * 4096;
            for asked in [Request::read(at, 4096), Request::write(at, 4096)] {
                ends_ns[n % 5] = members[n % 5].submit(ends_ns[n % 5], asked).end_ns;
            }
        }
        let alone_ns = *ends_ns.iter().max().expect("five");
        let mut host = Host::new(&params, 1);
        let places = host.capacity_bytes(0) / 4096;
        for _ in 0..WRITES {
            let at = random.below(places) * 4096;
            host.submit(0, call(Operation::Write, Route::Direct, at, 4096)).expect("whole sectors");
        }
        while host.next_ns().is_some() {
            host.advance_one();
        }
        let share = alone_ns as f64 / host.now_ns() as f64;
        assert!((least..=1.0).contains(&share), "{name}: {share}");
    }
}

#[test]
fn the_same_seed_gives_the_same_run_and_another_turns_the_platter() {
    let run = |seed| {
        let mut host = Host::new(&load("wd2500").expect("built in").params, seed);
        let mut random = SplitMix64::new(5);
        let ends: Vec<u64> = (0..200)
            .map(|_| {
                let at = random.below(10_000) * 4096;
                host.run(call(Operation::Read, Route::Direct, at, 4096)).expect("whole sectors").end_ns
            })
            .collect();
        (ends, host.counters(0))
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1).0, run(2).0);
}

#[test]
fn what_was_not_flushed_is_lost_with_the_power() {
    let DeviceParams::Disk(params) = load("linux-disk").expect("built in").params.luns[0].device.clone()
    else {
        panic!("it is a disk");
    };
    let mut disk = rdsk_disk::Disk::new(&params, 1);
    let now_ns = disk.submit(0, Request::write(0, 4096)).end_ns;
    let now_ns = disk.submit(now_ns, Request::flush()).end_ns;
    let now_ns = disk.submit(now_ns, Request::write(8192, 4096)).end_ns;
    assert_eq!(disk.volatile(now_ns), [rdsk_disk::Extent { first: 16, end: 24 }]);
    let now_ns = disk.submit(now_ns, Request::flush()).end_ns;
    assert!(disk.volatile(now_ns).is_empty());
    // What the arm is writing at that moment is not on the media either.
    let now_ns = disk.submit(now_ns, Request::write(1 << 20, 65_536)).end_ns;
    let idle_ns = now_ns + params.write_cache.expect("it has one").delay_ns;
    assert_eq!(disk.volatile(idle_ns + 1000), [rdsk_disk::Extent { first: 2048, end: 2176 }]);
    assert!(disk.volatile(idle_ns + 100_000_000).is_empty(), "some turns later it is");
}

#[test]
fn a_sync_leaves_nothing_dirty_and_flushes_once() {
    let mut host = host("linux-disk");
    host.run(call(Operation::Write, Route::Buffered, 0, 1 << 20)).expect("any size");
    host.run(call(Operation::Sync, Route::Buffered, 0, 0)).expect("never refused");
    let seen = host.counters(0);
    assert_eq!((seen.write_bytes, seen.flushes, host.dirty_bytes(0)), (1 << 20, 1, 0));
    let durable =
        rdsk_disk::Call { stability: Stability::Durable, ..call(Operation::Write, Route::Buffered, 0, 4096) };
    host.run(durable).expect("any size");
    assert_eq!((host.counters(0).flushes, host.dirty_bytes(0)), (2, 0));
}

#[test]
fn errors_reach_the_call_and_only_the_one_that_touches_them() {
    let text =
        "extends = \"linux-disk\"\n[[luns]]\n[[luns.faults.errors]]\noffset_bytes = 8192\nbytes = 512\n";
    let mut host = Host::new(&rdsk_disk::parse("mine", text).expect("possible").params, 1);
    for route in [Route::Buffered, Route::Direct] {
        let good = host.run(call(Operation::Read, route, 1 << 20, 4096)).expect("whole sectors");
        assert_eq!(good.outcome, Ok(()), "{route:?}");
        let bad = host.run(call(Operation::Read, route, 8192, 4096)).expect("whole sectors");
        assert!(bad.outcome.is_err(), "{route:?}");
    }
    let written = host.run(call(Operation::Write, Route::Buffered, 8192, 4096)).expect("whole sectors");
    assert_eq!(written.outcome, Ok(()), "it is in the cache");
    let synced =
        |host: &mut Host| host.run(call(Operation::Sync, Route::Buffered, 0, 0)).expect("never refused");
    assert!(synced(&mut host).outcome.is_err(), "the sync tells");
    assert_eq!(synced(&mut host).outcome, Ok(()), "once");
}

#[test]
fn a_sequential_buffered_reader_gets_read_ahead_and_the_disks_rate() {
    let mut host = host("linux-disk");
    for block in 0..4000 {
        host.run(call(Operation::Read, Route::Buffered, block * 16384, 16384)).expect("any size");
    }
    let buffered = host.counters(0);
    let rate = |bytes: u64, ns: u64| bytes as f64 / ns as f64;
    let buffered_rate = rate(buffered.read_bytes, buffered.at_ns);
    let mut host = common::host("linux-disk");
    for block in 0..64 {
        host.run(call(Operation::Read, Route::Direct, block << 20, 1 << 20)).expect("whole sectors");
    }
    let direct = host.counters(0);
    let direct_rate = rate(direct.read_bytes, direct.at_ns);
    assert!(buffered_rate > 0.85 * direct_rate, "{buffered_rate} {direct_rate} bytes per ns");
    assert!(buffered.read_bytes / buffered.reads >= 32_768, "{:?}", buffered.sizes);
    // A random reader gets what it asked for and no more.
    let mut random = SplitMix64::new(1);
    let mut host = common::host("linux-disk");
    for _ in 0..100 {
        let at = (1 + random.below(1_000_000)) * 8192;
        host.run(call(Operation::Read, Route::Buffered, at, 4096)).expect("any size");
    }
    assert_eq!((host.counters(0).reads, host.counters(0).read_bytes), (100, 409_600));
}
