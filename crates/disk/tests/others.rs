//! Systems that the reports name or describe without a table: what is said of them holds.

use crate::common::{call, dd, host, near, streams};
use rdsk_disk::{HostError, Operation, Route, Stability};

const KIB: u64 = 1024;
const MIB: u64 = 1024 * KIB;

/// "On single writes, performance was 50-60% better than the STK across the dd block sizes"; single reads differ little or
/// not at all.
#[test]
fn the_ram_san_writes_faster_than_the_storagetek_and_reads_alike() {
    for size in [16, 32, 64, 128, 256, 512, 1024, 2048] {
        let rate = |name, operation| streams(&mut host(name), operation, Route::Direct, size * KIB, 1);
        let ahead = |operation| rate("tms-ramsan", operation) / rate("stk-d173", operation);
        let (writes, reads) = (ahead(Operation::Write), ahead(Operation::Read));
        assert!((1.5..=1.6).contains(&writes), "{size} KiB: writes {writes}");
        assert!((0.95..=1.05).contains(&reads), "{size} KiB: reads {reads}");
    }
}

/// "The performance is similar as above internal disk testing result", and durable writes get "much better performance".
#[test]
fn a_hardware_raid_0_is_as_fast_as_its_disk_and_makes_durable_writes_cheap() {
    let rate = |name, route, count| {
        let seen = dd(name, Operation::Write, route, 16 * KIB, count);
        seen.all.write_bytes as f64 / seen.wall_s / 1e6
    };
    near("block", rate("linux-10k-raid0", Route::Buffered, 655_360), 160.0, 0.1);
    near("raw", rate("linux-10k-raid0", Route::Direct, 655_360), 160.0, 0.1);
    let durable_s = |name| {
        let mut host = host(name);
        for block in 0..1000 {
            let durable = rdsk_disk::Call {
                stability: Stability::Durable,
                ..call(Operation::Write, Route::Direct, block * 16 * KIB, 16 * KIB)
            };
            host.run(durable).expect("whole sectors");
        }
        host.now_ns() as f64 / 1e9
    };
    let (alone, raid) = (durable_s("linux-10k"), durable_s("linux-10k-raid0"));
    assert!(raid < alone / 20.0, "{alone} s on the disk, {raid} s on the volume");
}

#[test]
fn every_disk_of_the_freebsd_report_is_faster_outside_than_inside() {
    for name in [
        "freebsd-bigfoot", "freebsd-diamondmax9", "freebsd-st38421", "freebsd-twa-single",
        "freebsd-wd2500yd", "freebsd-wd800-gmirror",
    ] {
        for operation in [Operation::Read, Operation::Write] {
            let mut host = host(name);
            let capacity_bytes = host.capacity_bytes(0) / MIB * MIB;
            let mut took_ns = |first: u64| {
                let mut sum_ns = 0;
                for block in 0..20 {
                    let done = host.run(call(operation, Route::Direct, first + block * 5 * MIB, 5 * MIB));
                    let done = done.expect("whole sectors");
                    sum_ns += done.end_ns - done.start_ns;
                }
                sum_ns as f64
            };
            let (outer, inner) = (took_ns(0), took_ns(capacity_bytes - 100 * MIB));
            assert!((1.1..2.5).contains(&(inner / outer)), "{name} {operation:?}: {}", inner / outer);
        }
    }
}

/// "I'm guessing that on newer disks that have 4096 byte sectors, the I/O will need to be 4 k aligned."
#[test]
fn a_disk_of_4096_byte_sectors_takes_no_less_past_the_cache() {
    let mut host = host("wd2500-4kn");
    for bytes in [512, 2048] {
        let refused = host.run(call(Operation::Write, Route::Direct, 0, bytes)).expect_err("too small");
        assert_eq!(refused, HostError::Misaligned { offset_bytes: 0, bytes, sector_bytes: 4096 });
        host.run(call(Operation::Write, Route::Buffered, 0, bytes)).expect("the page cache takes any");
    }
    host.run(call(Operation::Write, Route::Direct, 8192, 4096)).expect("a whole sector");
}

#[test]
fn a_system_without_direct_io_refuses_it() {
    let mut host = host("solaris-zfs");
    let refused = host.run(call(Operation::Write, Route::Direct, 0, 131_072));
    assert_eq!(refused, Err(HostError::NoDirect));
    assert!(host.run(call(Operation::Write, Route::Buffered, 0, 131_072)).is_ok());
}
