//! Sections 1 and 2 of the reports: dd on block and raw devices. The tables must come out of the systems' figures.

use crate::common::{active_mean, call, dd, host, near, waiting_mean};
use rdsk_disk::{Host, Op, Operation, Route, Stability, parse};

mod hpux {
    use super::*;

    const BLOCK: u64 = 1 << 20;

    #[test]
    fn the_four_cells() {
        for (what, operation, route, wanted) in [
            ("read raw", Operation::Read, Route::Direct, 15.06),
            ("read block", Operation::Read, Route::Buffered, 20.60),
            ("write raw", Operation::Write, Route::Direct, 18.40),
            ("write block", Operation::Write, Route::Buffered, 442.58),
        ] {
            near(what, dd("hpux-k460", operation, route, BLOCK, 100).wall_s, wanted, 0.05);
        }
    }

    #[test]
    fn buffers_are_neither_merged_nor_read_ahead() {
        let block = dd("hpux-k460", Operation::Read, Route::Buffered, BLOCK, 10).all;
        assert_eq!(block.sizes.into_iter().collect::<Vec<_>>(), [((Op::Read, 4096), 2560)]);
        assert_eq!((block.read_merges, block.queue_max), (0, 1), "each read is synchronous");
        let raw = dd("hpux-k460", Operation::Read, Route::Direct, BLOCK, 10).all;
        assert_eq!(raw.sizes.into_iter().collect::<Vec<_>>(), [((Op::Read, 262_144), 40)]);
        assert_eq!((raw.splits, raw.queue_max), (30, 1));
    }

    #[test]
    fn a_block_write_reads_each_buffer_first() {
        let seen = dd("hpux-k460", Operation::Write, Route::Buffered, BLOCK, 10).all;
        assert_eq!((seen.reads, seen.writes, seen.reads_caused_by_writes), (2560, 2560, 2560));
        assert_eq!(seen.write_merges, 0);
        let raw = dd("hpux-k460", Operation::Write, Route::Direct, BLOCK, 10).all;
        assert_eq!((raw.reads, raw.writes), (0, 40));
    }

    #[test]
    fn the_last_close_flushes_and_invalidates() {
        let mut host = host("linux-disk");
        host.run(call(Operation::Write, Route::Buffered, 0, BLOCK)).expect("whole");
        assert_eq!((host.dirty_bytes(0), host.cached_bytes(0, 0, BLOCK)), (BLOCK, BLOCK));
        let returned_ns = host.now_ns();
        host.run(call(Operation::Close, Route::Buffered, 0, 0)).expect("never refused");
        assert_eq!((host.dirty_bytes(0), host.cached_bytes(0, 0, BLOCK)), (0, 0));
        assert_eq!(host.counters(0).write_bytes, BLOCK);
        assert!(host.now_ns() > returned_ns + 5_000_000, "the close took the time of the disk");
    }

    #[test]
    fn larger_buffers_help_the_block_device_and_larger_requests_the_raw_one() {
        let wall = |name, operation, route| dd(name, operation, route, BLOCK, 20).wall_s;
        for operation in [Operation::Read, Operation::Write] {
            let (old, new) = (
                wall("hpux-k460", operation, Route::Buffered),
                wall("hpux-k460-8k", operation, Route::Buffered),
            );
            assert!(new < old * 0.9, "{operation:?}: {old} s with 4 KB, {new} s with 8 KB");
            let raw = wall("hpux-k460-1m", operation, Route::Direct);
            assert!(raw <= wall("hpux-k460", operation, Route::Direct) * 1.001);
            assert!(raw < new, "raw is faster still");
        }
        let seen = dd("hpux-k460-8k", Operation::Write, Route::Buffered, BLOCK, 10).all;
        assert_eq!((seen.reads, seen.writes), (1280, 1280));
        let seen = dd("hpux-k460-1m", Operation::Write, Route::Direct, BLOCK, 10).all;
        assert_eq!((seen.writes, seen.splits), (10, 0));
    }
}

mod iostat {
    use super::*;

    #[test]
    fn solaris_block() {
        let seen = dd("solaris-san", Operation::Write, Route::Buffered, 16384, 60_000).steady;
        let s = seen.at_ns as f64 / 1e9;
        near("w/s", seen.writes as f64 / s, 13006.1, 0.1);
        near("MB/s", seen.write_bytes as f64 / s / 1_048_576.0, 101.6, 0.1);
        near("wait", waiting_mean(&seen), 133.5, 0.1);
        near("actv", active_mean(&seen), 256.4, 0.1);
        near("wsvc ms", seen.waiting_ns as f64 / seen.writes as f64 / 1e6, 10.3, 0.1);
        near("asvc ms", seen.active_ns as f64 / seen.writes as f64 / 1e6, 19.7, 0.1);
        near("%w", seen.wait_busy_ns as f64 / seen.at_ns as f64 * 100.0, 100.0, 0.01);
        near("%b", seen.busy_ns as f64 / seen.at_ns as f64 * 100.0, 100.0, 0.01);
    }

    #[test]
    fn solaris_raw() {
        let seen = dd("solaris-san", Operation::Write, Route::Direct, 16384, 20_000).steady;
        let s = seen.at_ns as f64 / 1e9;
        near("w/s", seen.writes as f64 / s, 2805.0, 0.1);
        near("MB/s", seen.write_bytes as f64 / s / 1_048_576.0, 43.8, 0.1);
        near("actv", active_mean(&seen), 0.9, 0.1);
        near("asvc ms", seen.active_ns as f64 / seen.writes as f64 / 1e6, 0.3, 0.1);
        near("%b", seen.busy_ns as f64 / seen.at_ns as f64 * 100.0, 87.0, 0.1);
        assert_eq!(seen.queue_max, 1);
    }

    #[test]
    fn linux_block() {
        let seen = dd("linux-disk", Operation::Write, Route::Buffered, 16384, 262_144).steady;
        let s = seen.at_ns as f64 / 1e9;
        near("w/s", seen.writes as f64 / s, 115.0, 0.1);
        near("wkB/s", seen.write_bytes as f64 / s / 1024.0, 57868.0, 0.1);
        near("wrqm/s", seen.write_merges as f64 / s, 14098.0, 0.1);
        near("avgrq-sz", seen.write_bytes as f64 / 512.0 / seen.writes as f64, 1006.4, 0.1);
        near("avgqu-sz", waiting_mean(&seen) + active_mean(&seen), 140.86, 0.1);
        near("await ms", (seen.waiting_ns + seen.active_ns) as f64 / seen.writes as f64 / 1e6, 1325.4, 0.1);
        near("svctm ms", seen.busy_ns as f64 / seen.writes as f64 / 1e6, 8.70, 0.1);
        near("%util", seen.busy_ns as f64 / seen.at_ns as f64 * 100.0, 100.0, 0.01);
    }

    #[test]
    fn linux_raw() {
        let seen = dd("linux-disk", Operation::Write, Route::Direct, 8192, 40_000).steady;
        let s = seen.at_ns as f64 / 1e9;
        near("w/s", seen.writes as f64 / s, 3645.0, 0.1);
        near("wkB/s", seen.write_bytes as f64 / s / 1024.0, 29160.0, 0.1);
        near("avgrq-sz", seen.write_bytes as f64 / 512.0 / seen.writes as f64, 16.0, 0.0);
        near("avgqu-sz", waiting_mean(&seen) + active_mean(&seen), 0.63, 0.1);
        near("await ms", (seen.waiting_ns + seen.active_ns) as f64 / seen.writes as f64 / 1e6, 0.18, 0.1);
        near("svctm ms", seen.busy_ns as f64 / seen.writes as f64 / 1e6, 0.17, 0.1);
        near("%util", seen.busy_ns as f64 / seen.at_ns as f64 * 100.0, 62.9, 0.1);
        assert_eq!((seen.queue_max, seen.write_merges), (1, 0));
    }

    #[test]
    fn solaris_zfs() {
        let seen = dd("solaris-zfs", Operation::Write, Route::Buffered, 16384, 327_680).steady;
        let s = seen.at_ns as f64 / 1e9;
        near("w/s", seen.writes as f64 / s, 154.0, 0.1);
        near("MB/s", seen.write_bytes as f64 / s / 1_048_576.0, 154.0, 0.1);
        near("actv", active_mean(&seen), 10.0, 0.1);
        near("asvc ms", seen.active_ns as f64 / seen.writes as f64 / 1e6, 64.7, 0.1);
        assert_eq!(seen.waiting_ns, 0);
    }

    #[test]
    fn a_10k_disk_with_its_cache_on_and_off() {
        let rate = |name, route, count| {
            let seen = dd(name, Operation::Write, route, 16384, count);
            seen.all.write_bytes as f64 / seen.wall_s / 1e6
        };
        near("block", rate("linux-10k", Route::Buffered, 655_360), 160.0, 0.1);
        near("raw, on", rate("linux-10k", Route::Direct, 100_000), 160.0, 0.1);
        near("raw, off", rate("linux-10k-nocache", Route::Direct, 2000), 1.3, 0.1);
        near("7200 rpm raw, off", rate("linux-disk-nocache", Route::Direct, 2000), 1.3, 1.0);
    }

    /// One turn because the next block begins where the last ended, one more where physical sectors are cut.
    #[test]
    fn turns_lost_by_writes_past_the_cache() {
        let turns = |start_bytes: u64, physical_bytes: u64| {
            let text = format!(
                "extends = \"linux-10k-nocache\"\n[[luns]]\n[luns.device.disk]\n\
                 partition_start_bytes = {start_bytes}\nphysical_sector_bytes = {physical_bytes}\n"
            );
            let mut host = Host::new(&parse("mine", &text).expect("possible").params, 1);
            for block in 0..500 {
                host.run(call(Operation::Write, Route::Direct, block * 16384, 16384)).expect("whole");
            }
            host.now_ns() as f64 / 500.0 / 6e6
        };
        near("aligned, 512 bytes", turns(0, 512), 1.0, 0.05);
        near("sector 63, 512 bytes", turns(32_256, 512), 1.0, 0.05);
        near("aligned, 4 KiB", turns(1 << 20, 4096), 1.0, 0.05);
        near("sector 63, 4 KiB", turns(32_256, 4096), 2.0, 0.05);
    }

    #[test]
    fn durable_writes_go_back_to_the_media_whatever_the_cache() {
        let per_write_ms = |stability| {
            let mut host = host("linux-disk");
            for block in 0..200 {
                let call = rdsk_disk::Call {
                    stability,
                    ..call(Operation::Write, Route::Direct, block * 16384, 16384)
                };
                host.run(call).expect("whole");
            }
            (host.now_ns() as f64 / 200e6, host.counters(0).flushes)
        };
        let (cached_ms, none) = per_write_ms(Stability::Any);
        let (durable_ms, flushes) = per_write_ms(Stability::Durable);
        assert_eq!((none, flushes), (0, 200));
        assert!(cached_ms < 0.4 && durable_ms > 8.3, "{cached_ms} ms, {durable_ms} ms");
    }
}
