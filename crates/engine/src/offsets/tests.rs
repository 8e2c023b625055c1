//! Properties of the offsets.

use super::*;
use proptest::prelude::*;
use rdsk_model::IoPath;
use std::collections::HashSet;

fn workload(pattern: Pattern, cache: CacheState) -> impl Strategy<Value = Workload> {
    (
        prop_oneof![1u64..10_000, Just(512), Just(4096), Just(16384)],
        prop_oneof![Just(1u64), Just(27), Just(512), Just(4096), Just(65536)],
        prop_oneof![Just(0u64), Just(1), Just(512)],
        0u64..200_000,
        1u64..3_000_000,
        1u32..5,
        1usize..3,
        any::<u64>(),
    )
        .prop_map(
            move |(
                block_bytes,
                align_bytes,
                shift_bytes,
                offset_bytes,
                span_bytes,
                streams,
                targets,
                seed,
            )| {
                Workload {
                    pattern,
                    cache,
                    path: IoPath::Buffered,
                    block_bytes,
                    align_bytes,
                    shift_bytes,
                    offset_bytes,
                    span_bytes,
                    streams,
                    targets: (0..u32::try_from(targets).unwrap()).collect(),
                    seed,
                    ..Workload::sequential_read(span_bytes)
                }
            },
        )
}

fn offsets_of(workload: &Workload, visit: u32, stream: u32) -> Result<Offsets, EngineError> {
    Offsets::new(workload, visit, stream, rdsk_sys::cache::page_size())
}

/// Pages that an I/O touches.
fn pages(workload: &Workload, offset: u64) -> impl Iterator<Item = u64> {
    let page = rdsk_sys::cache::page_size();
    offset / page..=(offset + workload.block_bytes - 1) / page
}

fn assert_allowed(workload: &Workload, offset: u64) {
    let end = workload.offset_bytes + workload.span_bytes;
    assert!(
        offset >= workload.offset_bytes && offset + workload.block_bytes <= end,
        "{offset} leaves the span"
    );
    assert_eq!(
        offset % workload.align_bytes,
        workload.shift_bytes % workload.align_bytes,
        "{offset} is not aligned"
    );
}

proptest! {
    #[test]
    fn sequential_parts_are_disjoint_and_cover_the_capacity(
        workload in workload(Pattern::Sequential, CacheState::Any)
    ) {
        let mut seen = HashSet::new();
        for stream in 0..workload.streams {
            let Ok(mut offsets) = offsets_of(&workload, 3, stream) else {
                prop_assert!(capacity(&workload) < u64::from(workload.streams) * 2);
                return Ok(());
            };
            let target = placement_of(&workload, stream).unwrap().target_position;
            let cycle = offsets.cycle();
            let mut first = None;
            for _ in 0..cycle {
                let offset = offsets.next_offset();
                assert_allowed(&workload, offset);
                let step = workload.block_bytes.next_multiple_of(workload.align_bytes);
                prop_assert!(seen.insert((target, offset / step, offset)));
                first.get_or_insert(offset);
            }
            prop_assert_eq!(offsets.next_offset(), first.unwrap(), "the pass starts again");
        }
        prop_assert_eq!(u64::try_from(seen.len()).unwrap(), capacity(&workload));
    }

    #[test]
    fn uniform_offsets_are_allowed(workload in workload(Pattern::Random, CacheState::Any)) {
        for stream in 0..workload.streams {
            let Ok(mut offsets) = offsets_of(&workload, 0, stream) else { return Ok(()) };
            (0..100).for_each(|_| assert_allowed(&workload, offsets.next_offset()));
        }
    }

    #[test]
    fn no_page_is_touched_twice_in_a_cycle(workload in workload(Pattern::Random, CacheState::Cold)) {
        let mut touched = HashSet::new();
        let mut ops = 0;
        for stream in 0..workload.streams {
            let Ok(mut offsets) = offsets_of(&workload, 1, stream) else { return Ok(()) };
            let target = placement_of(&workload, stream).unwrap().target_position;
            for _ in 0..offsets.cycle() {
                let offset = offsets.next_offset();
                assert_allowed(&workload, offset);
                for page in pages(&workload, offset) {
                    prop_assert!(touched.insert((target, page)), "page {} of {:?} twice", page, workload);
                }
                ops += 1;
            }
        }
        prop_assert_eq!(ops, capacity(&workload));
    }

    #[test]
    fn the_same_seed_gives_the_same_offsets(workload in workload(Pattern::Random, CacheState::Warm)) {
        let draw = |workload: &Workload, visit| -> Option<Vec<u64>> {
            let mut offsets = offsets_of(workload, visit, 0).ok()?;
            Some((0..200).map(|_| offsets.next_offset()).collect())
        };
        let other_engine = Workload { engine: rdsk_model::EngineKind::Uring, queue_depth: 32, ..workload.clone() };
        prop_assert_eq!(draw(&workload, 5), draw(&other_engine, 5));
        if capacity(&workload) > 1000 {
            prop_assert_ne!(draw(&workload, 5), draw(&workload, 6), "visits draw different offsets");
        }
    }
}

#[test]
fn uniform_offsets_are_uniform() {
    let workload = Workload {
        pattern: Pattern::Random,
        block_bytes: 4096,
        align_bytes: 4096,
        ..Workload::sequential_read(64 * 4096)
    };
    for seed in 0..20 {
        let mut offsets = offsets_of(&Workload { seed, ..workload.clone() }, 0, 0).unwrap();
        let mut counts = [0u32; 64];
        (0..64_000).for_each(|_| counts[usize::try_from(offsets.next_offset() / 4096).unwrap()] += 1);
        let chi_square: f64 = counts.iter().map(|&count| (f64::from(count) - 1000.0).powi(2) / 1000.0).sum();
        // 63 degrees of freedom: the 0.99999 quantile is 122.
        assert!(chi_square < 122.0, "seed {seed}: {chi_square}");
    }
}

#[test]
fn a_shift_across_pages_makes_units_of_two_pages() {
    let workload = Workload {
        pattern: Pattern::Random,
        cache: CacheState::Cold,
        path: IoPath::Buffered,
        block_bytes: 4096,
        align_bytes: 4096,
        shift_bytes: 512,
        ..Workload::sequential_read(64 * 4096)
    };
    assert_eq!(capacity(&workload), 32);
    assert!(ends_with_cycle(&workload));
    assert!(!ends_with_cycle(&Workload { path: IoPath::Direct, ..workload }));
}

#[test]
fn small_blocks_take_every_position_in_their_page() {
    let workload = Workload {
        pattern: Pattern::Random,
        cache: CacheState::Cold,
        block_bytes: 512,
        align_bytes: 512,
        ..Workload::sequential_read(4096 * 4096)
    };
    let mut offsets = offsets_of(&workload, 0, 0).unwrap();
    let mut positions = [0u32; 8];
    (0..4096).for_each(|_| positions[usize::try_from(offsets.next_offset() % 4096 / 512).unwrap()] += 1);
    assert!(positions.iter().all(|&count| count > 400), "{positions:?}");
}

#[test]
fn the_shorter_last_block_follows_the_pass() {
    let workload = Workload::sequential_read((3 << 20) + 1000);
    let mut offsets = offsets_of(&workload, 0, 0).unwrap();
    (0..3).for_each(|_| _ = offsets.next_offset());
    assert_eq!(offsets.tail_offset(1000), 3 << 20);
    let mut offsets = offsets_of(&workload, 0, 0).unwrap();
    assert_eq!((offsets.next_offset(), offsets.tail_offset(1000)), (0, 1 << 20));
    assert_eq!(offsets_of(&workload, 0, 0).unwrap().tail_offset(1000), 0);
}

#[test]
fn spans_without_room_are_errors() {
    let workload = Workload::sequential_read(1000);
    assert!(matches!(offsets_of(&workload, 0, 0), Err(EngineError::Span { .. })));
    assert_eq!(capacity(&workload), 0);
    let crowded = Workload { streams: 3, ..Workload::sequential_read(2 << 20) };
    assert!(matches!(offsets_of(&crowded, 0, 0), Err(EngineError::Span { .. })));
    let invalid = Workload { block_bytes: 0, ..Workload::sequential_read(1000) };
    assert!(matches!(offsets_of(&invalid, 0, 0), Err(EngineError::Workload(_))));
}

#[test]
fn a_sequence_that_begins_elsewhere_goes_round_its_part() {
    let workload = Workload {
        streams: 2,
        offset_bytes: 1 << 20,
        block_bytes: 4096,
        align_bytes: 4096,
        ..Workload::sequential_read(16 << 12)
    };
    let drawn = |stream: u32, begin_bytes: u64| -> Vec<u64> {
        let mut offsets = offsets_of(&workload, 0, stream).unwrap().beginning_at(begin_bytes);
        (0..8).map(|_| (offsets.next_offset() - (1 << 20)) / 4096).collect()
    };
    assert_eq!(drawn(0, 0), [0, 1, 2, 3, 4, 5, 6, 7]);
    assert_eq!(drawn(0, 5 * 4096), [5, 6, 7, 0, 1, 2, 3, 4]);
    assert_eq!(drawn(1, 5 * 4096 + 17), [13, 14, 15, 8, 9, 10, 11, 12]);
    assert_eq!(drawn(1, 27 * 8 * 4096), drawn(1, 0));
}

#[test]
fn what_a_sequence_goes_through_begins_where_it_begins() {
    let workload = Workload {
        streams: 2,
        offset_bytes: 1 << 20,
        shift_bytes: 4096,
        block_bytes: 16 << 10,
        align_bytes: 16 << 10,
        ..Workload::sequential_read(9 << 14)
    };
    let goes_through = |stream: u32, begin_bytes: u64, bytes: u64| {
        let offsets = offsets_of(&workload, 0, stream).unwrap().beginning_at(begin_bytes);
        let Offsets::Sequential(sequence) = offsets else { unreachable!("it is a sequence") };
        sequence.stretch(bytes)
    };
    let first = (1 << 20) + 4096;
    let whole = Stretch { offset_bytes: first, span_bytes: 4 << 14, begin_bytes: 0, read_bytes: 0 };
    assert_eq!(goes_through(0, 0, 100), whole);
    let later = Stretch { begin_bytes: 3 << 14, read_bytes: 2 << 14, ..whole };
    assert_eq!(goes_through(0, (3 << 14) + 512, 2 << 14), later);
    assert_eq!(goes_through(1, 7 << 14, 2 << 14), Stretch { offset_bytes: first + (4 << 14), ..later });
}
