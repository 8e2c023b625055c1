//! What is written neither compresses nor repeats: nothing of it comes a second time within what a compressor looks back by,
//! and no two sectors are equal. Otherwise a disk that compresses stores a part of it, and is called as much too fast.
#![allow(clippy::unwrap_used, reason = "a failing helper fails its test")]

use crate::common::{file_of, job, ops, random, visit, writing};
use rdsk_model::{EngineKind, IoPath, Op, Pattern, Workload};
use rdsk_testkit::{Need, requires};
use std::collections::HashSet;

const BLOCK: u64 = 16 << 10;
const SPAN: u64 = 1 << 20;

/// How many of the bytes begin eight bytes that came before, at any place: what a compressor whose window is all of it saves.
fn repeated(content: &[u8]) -> usize {
    let mut seen = HashSet::with_capacity(content.len());
    content.windows(8).filter(|&word| !seen.insert(u64::from_le_bytes(word.try_into().unwrap()))).count()
}

#[test]
fn repeats_are_found_wherever_they_are() {
    let block: Vec<u8> =
        (0..4096u32).flat_map(|number| number.wrapping_mul(2_654_435_761).to_le_bytes()).collect();
    assert_eq!(repeated(&block), 0);
    let twice = [&block[..], b"odd", &block[..]].concat();
    assert_eq!(repeated(&twice), block.len() - 7);
}

#[test]
fn what_is_written_does_not_repeat() {
    if !requires(&[Need::IoUring]) {
        return;
    }
    for (engine, queue_depth) in [(EngineKind::Sync, 1), (EngineKind::Threads, 8), (EngineKind::Uring, 8)] {
        let (_directory, path) = file_of(SPAN);
        let claims = [writing(&path)];
        let workload = Workload {
            op: Op::Write,
            pattern: Pattern::Sequential,
            path: IoPath::Buffered,
            block_bytes: BLOCK,
            align_bytes: BLOCK,
            ..random(SPAN, engine, queue_depth)
        };
        let (_, run, _) = visit(&job(&workload, &claims, ops(SPAN / BLOCK)));
        assert_eq!(run.bytes, SPAN, "{engine}");
        let content = std::fs::read(&path).unwrap();
        let repeated = repeated(&content);
        assert!(repeated < content.len() / 20, "{engine}: {repeated} of {} bytes repeat", content.len());
        let sectors: HashSet<&[u8]> = content.chunks_exact(512).collect();
        assert_eq!(sectors.len(), content.len() / 512, "{engine}");
    }
}

/// An array that stores equal blocks once would store the second target's as the first one's, and be called as much too fast.
#[test]
fn two_targets_get_no_sector_alike() {
    if !requires(&[Need::IoUring]) {
        return;
    }
    for (engine, queue_depth) in [(EngineKind::Sync, 1), (EngineKind::Threads, 8), (EngineKind::Uring, 8)] {
        let files = [file_of(SPAN), file_of(SPAN)];
        let claims = [writing(&files[0].1), writing(&files[1].1)];
        for target in [0, 1] {
            let workload = Workload {
                op: Op::Write,
                pattern: Pattern::Sequential,
                path: IoPath::Buffered,
                targets: vec![target],
                seed: 5,
                ..random(SPAN, engine, queue_depth)
            };
            let (_, run, _) = visit(&job(&workload, &claims, ops(SPAN / workload.block_bytes)));
            assert_eq!(run.bytes, SPAN, "{engine}");
        }
        let [first, second] = files.each_ref().map(|(_, path)| std::fs::read(path).unwrap());
        let sectors: HashSet<&[u8]> = first.chunks_exact(512).collect();
        let alike = second.chunks_exact(512).filter(|sector| sectors.contains(sector)).count();
        assert_eq!(alike, 0, "{engine}");
        // What lies between the stamps of a block is not that of the other one, wherever it was taken from.
        let words: HashSet<&[u8]> = first.chunks_exact(8).collect();
        let same = second.chunks_exact(8).filter(|word| words.contains(word)).count();
        assert!(same < second.len() / 8 / 20, "{engine}: {same} words");
    }
}
