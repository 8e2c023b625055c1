//! Section 4's system, tested by itself: a store of memory behind one, two and three controllers.

use crate::common::{host, streams};
use rdsk_disk::{Operation, Route};

const SYSTEMS: [&str; 3] = ["tms-ramsan", "tms-ramsan-2", "tms-ramsan-3"];
const BLOCKS: [u64; 8] = [16 << 10, 32 << 10, 64 << 10, 128 << 10, 256 << 10, 512 << 10, 1 << 20, 2 << 20];

fn rate(name: &str, operation: Operation, block_bytes: u64, count: usize) -> f64 {
    streams(&mut host(name), operation, Route::Direct, block_bytes, count)
}

#[test]
fn writes_are_ahead_of_reads() {
    for name in SYSTEMS {
        for block_bytes in BLOCKS {
            for (count, least, most) in [(1, 1.27, 1.33), (3, 1.07, 1.41), (10, 1.07, 1.41)] {
                let read = rate(name, Operation::Read, block_bytes, count);
                let write = rate(name, Operation::Write, block_bytes, count);
                println!(
                    "{name} {block_bytes} x{count}: read {read:.0} write {write:.0} ratio {:.3}",
                    write / read
                );
                assert!(
                    (least..=most).contains(&(write / read)),
                    "{name} {block_bytes} x{count}: {}",
                    write / read
                );
            }
        }
    }
}

#[test]
fn larger_blocks_and_more_controllers_are_faster() {
    for operation in [Operation::Read, Operation::Write] {
        for pair in BLOCKS.windows(2) {
            assert!(rate(SYSTEMS[0], operation, pair[1], 1) >= rate(SYSTEMS[0], operation, pair[0], 1));
        }
        for block_bytes in BLOCKS {
            let [one, two, three] = SYSTEMS.map(|name| rate(name, operation, block_bytes, 3));
            assert!(
                two > one * 1.05 && three > two * 1.05,
                "{operation:?} {block_bytes}: {one} {two} {three}"
            );
        }
    }
}
