//! The bytes that a test file is made of: incompressible, nowhere repeated, and the same for the same seed. No randomness
//! for secrets.

/// Bytes that one step gives.
const WORD_BYTES: usize = 8;

/// Fills `buffer` with the bytes that belong at `offset` (a multiple of 8) of the file of `seed`. Word n is SplitMix64's
/// n-th output (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, 2014), which repeats after 2^64 words.
pub(crate) fn fill(seed: u64, offset: u64, buffer: &mut [u8]) {
    const GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut state = seed.wrapping_add((offset / 8).wrapping_mul(GAMMA));
    for word in buffer.chunks_mut(WORD_BYTES) {
        state = state.wrapping_add(GAMMA);
        let bytes = mix(state).to_le_bytes();
        word.copy_from_slice(&bytes[..word.len()]);
    }
}

fn mix(mut value: u64) -> u64 {
    value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
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
