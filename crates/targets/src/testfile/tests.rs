//! The size of a test file, without creating one.

use super::*;

const GIB: u64 = 1 << 30;
const TIB: u64 = 1 << 40;

fn size(free_bytes: u64, size: TestFileSize) -> Result<u64, TargetError> {
    let room = may_use(free_bytes, 100 * GIB, None);
    plan(Path::new("/d"), room, room, size)
}

fn adaptive(max_bytes: u64) -> TestFileSize {
    TestFileSize::Adaptive { max_bytes, max_elapsed_ns: 1 }
}

#[test]
fn a_tenth_of_the_filesystem_stays_free() {
    assert_eq!(size(50 * GIB, TestFileSize::Fixed(40 * GIB)).unwrap(), 40 * GIB);
    let error = size(50 * GIB, TestFileSize::Fixed(40 * GIB + 1)).unwrap_err();
    assert!(matches!(error, TargetError::TooLarge { free_bytes, .. } if free_bytes == 40 * GIB));
    assert!(size(9 * GIB, TestFileSize::Fixed(1)).is_err(), "the tenth is gone already");
    assert!(size(u64::MAX, TestFileSize::Fixed(u64::MAX)).is_err());
}

/// A tenth of 10 TiB is 1 TiB, which no filesystem needs to go on.
#[test]
fn of_a_large_filesystem_sixteen_gibibytes_stay_free() {
    assert_eq!(may_use(900 * GIB, 10 * TIB, None), 884 * GIB);
    assert_eq!(may_use(16 * GIB, 10 * TIB, None), 0);
    assert_eq!(may_use(100 * GIB, 160 * GIB, None), 84 * GIB, "there both are the same");
    assert_eq!(may_use(100 * GIB, 150 * GIB, None), 85 * GIB);
    assert_eq!(may_use(900 * GIB, 10 * TIB, Some(3 * GIB)), 3 * GIB);
}

#[test]
fn adaptive_sizes_fit_in_whole_mebibytes() {
    assert_eq!(size(50 * GIB, adaptive(GIB)).unwrap(), GIB);
    assert_eq!(size(10 * GIB + 20 * MIB + 5, adaptive(GIB)).unwrap(), 20 * MIB);
    assert_eq!(size(50 * GIB, adaptive(100_000)).unwrap(), 100_000);
    assert_eq!(size(50 * GIB, adaptive(2 * MIB + 1)).unwrap(), 2 * MIB);
    let error = size(10 * GIB + MIB - 1, adaptive(GIB)).unwrap_err();
    assert!(matches!(error, TargetError::TooLarge { wanted_bytes: MIB, .. }));
    assert!(size(50 * GIB, TestFileSize::Fixed(0)).is_err());
}

/// What is overwritten goes to another place first.
#[test]
fn an_adaptive_size_leaves_room_for_what_overwriting_takes() {
    let size = |size, is_rewritten, rewriting| {
        let place = Place::Directory {
            path: "/d".into(),
            dev: 1,
            free_bytes: 50 * GIB,
            total_bytes: 100 * GIB,
            pool_spare_bytes: None,
            rewriting,
        };
        let directory = Examined::new(Target::default(), "/d".into(), place, crate::uses::InUse::default());
        plan_test_file(&directory, size, 2, is_rewritten).unwrap()
    };
    let large = adaptive(TIB);
    assert_eq!(size(large, true, Rewriting::Copies), 10 * GIB);
    assert_eq!(size(large, false, Rewriting::Copies), 20 * GIB);
    assert_eq!(size(large, true, Rewriting::InPlace), 20 * GIB);
    assert_eq!(size(TestFileSize::Fixed(20 * GIB), true, Rewriting::Copies), 20 * GIB, "as requested");
}

#[test]
fn a_thin_pool_below_may_allow_less_than_its_filesystem() {
    assert_eq!(may_use(50 * GIB, 100 * GIB, Some(3 * GIB)), 3 * GIB);
    assert_eq!(may_use(50 * GIB, 100 * GIB, Some(300 * GIB)), 40 * GIB);
    assert_eq!(may_use(50 * GIB, 100 * GIB, Some(0)), 0);
}
