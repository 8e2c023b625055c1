//! The content of a test file: incompressible, without repetition, the same for the same seed. Not for secrets.

use rdsk_stats::rng::SplitMix64;

/// Bytes of one number of the generator.
const WORD_BYTES: usize = 8;

/// Fills `buffer` with the bytes that belong at `offset` (a multiple of 8) of the file of `seed`. Word n is the n-th number of
/// the seed's sequence, which repeats after 2^64 words.
pub(crate) fn fill(seed: u64, offset: u64, buffer: &mut [u8]) {
    let mut rng = SplitMix64::from_index(seed, offset / 8);
    for word in buffer.chunks_mut(WORD_BYTES) {
        let bytes = rng.next_u64().to_le_bytes();
        word.copy_from_slice(&bytes[..word.len()]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn it_is_splitmix() {
        // The first outputs for seed 1234567, as published with the algorithm's reference code.
        let mut buffer = [0; 16];
        fill(1_234_567, 0, &mut buffer);
        assert_eq!(buffer[..8], 6_457_827_717_110_365_317_u64.to_le_bytes());
        assert_eq!(buffer[8..], 3_203_168_211_198_807_973_u64.to_le_bytes());
    }

    #[test]
    fn any_part_is_the_same_and_no_block_repeats() {
        let mut whole = vec![0; 1 << 20];
        fill(7, 0, &mut whole);
        let mut part = vec![0; 4096];
        fill(7, 512 * 1024, &mut part);
        assert_eq!(part, whole[512 * 1024..][..4096]);
        let blocks: HashSet<&[u8]> = whole.chunks(512).collect();
        assert_eq!(blocks.len(), 2048);
        let ones: u32 = whole.iter().map(|byte| byte.count_ones()).sum();
        let share = f64::from(ones) / f64::from(8 << 20);
        assert!((share - 0.5).abs() < 0.002, "{share}");
    }
}
