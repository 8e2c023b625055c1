//! Random numbers for offsets and data: small, fast, the same on every machine for the same seed. Not for cryptography.

/// wyrand: one 64 × 64 → 128 bit multiplication per number, state of 64 bits; passes BigCrush (Wang Yi, wyhash).
#[derive(Clone, Copy, Debug)]
pub(crate) struct WyRand(u64);

impl WyRand {
    pub(crate) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    #[inline]
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0xa076_1d64_78bd_642f);
        fold(self.0, self.0 ^ 0xe703_7ed1_a0b4_28db)
    }

    /// A number from 0 up to, without, 1: every multiple of 2^-53 with the same probability.
    #[inline]
    #[allow(clippy::cast_precision_loss, reason = "53 bits are what the mantissa holds")]
    pub(crate) fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// A number below `bound`, by multiplication and shift. For bounds below 2^40 no number is favoured by more than
    /// one part in 2^24, far below what any run could detect.
    #[inline]
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        multiply_shift(self.next(), bound)
    }
}

/// Combines two numbers into one that depends on every bit of both.
#[inline]
pub(crate) fn mix(left: u64, right: u64) -> u64 {
    let once = fold(left ^ 0x9e37_79b9_7f4a_7c15, right ^ 0xd1b5_4a32_d192_ed03);
    fold(once ^ left, 0x8ebc_6af0_9c88_c6e3)
}

/// The upper half of a product: `value / 2^64 × bound`.
#[inline]
pub(crate) fn multiply_shift(value: u64, bound: u64) -> u64 {
    ((u128::from(value) * u128::from(bound)) >> 64) as u64
}

#[inline]
#[expect(clippy::cast_possible_truncation, reason = "the two halves of the product are what is wanted")]
fn fold(left: u64, right: u64) -> u64 {
    let product = u128::from(left) * u128::from(right);
    (product >> 64) as u64 ^ product as u64
}

/// A bijection of `0 .. len`: a Feistel network over the next even number of bits, walked until the value falls below
/// `len`, which takes fewer than four steps on average.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Permutation {
    len: u64,
    half_bits: u32,
    key: u64,
}

impl Permutation {
    pub(crate) fn new(len: u64, key: u64) -> Self {
        let bits = u64::BITS - len.saturating_sub(1).leading_zeros();
        Self { len, half_bits: bits.div_ceil(2).max(1), key }
    }

    /// What `index` maps to; `index` must be below the length.
    #[inline]
    pub(crate) fn apply(&self, index: u64) -> u64 {
        debug_assert!(index < self.len);
        let mut value = index;
        loop {
            value = self.rounds(value);
            if value < self.len {
                return value;
            }
        }
    }

    #[inline]
    fn rounds(&self, value: u64) -> u64 {
        let mask = (1u64 << self.half_bits) - 1;
        let (mut left, mut right) = (value >> self.half_bits, value & mask);
        for round in 0..4u64 {
            (left, right) = (right, left ^ (mix(self.key.wrapping_add(round), right) & mask));
        }
        left << self.half_bits | right
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permutations_hit_everything_once() {
        for len in [1u64, 2, 3, 5, 64, 65, 1000, 4097] {
            for key in [0, 1, u64::MAX] {
                let permutation = Permutation::new(len, key);
                let mut hit = vec![false; usize::try_from(len).unwrap()];
                for index in 0..len {
                    let position = usize::try_from(permutation.apply(index)).unwrap();
                    assert!(!std::mem::replace(&mut hit[position], true), "len {len} key {key}");
                }
            }
        }
    }

    #[test]
    fn permutations_are_not_the_identity_and_differ_by_key() {
        let one: Vec<u64> = (0..100).map(|index| Permutation::new(100, 1).apply(index)).collect();
        let two: Vec<u64> = (0..100).map(|index| Permutation::new(100, 2).apply(index)).collect();
        assert_ne!(one, two);
        let fixed = one.iter().zip(0..).filter(|&(&value, index)| value == index).count();
        assert!(fixed < 10, "{fixed} of 100 stay where they are");
    }

    #[test]
    fn numbers_below_a_bound_are_uniform() {
        let mut random = WyRand::new(42);
        let mut counts = [0u32; 100];
        for _ in 0..100_000 {
            counts[usize::try_from(random.below(100)).unwrap()] += 1;
        }
        let chi_square: f64 = counts.iter().map(|&count| (f64::from(count) - 1000.0).powi(2) / 1000.0).sum();
        // 99 degrees of freedom: the 0.9999 quantile is 161.
        assert!(chi_square < 161.0, "{chi_square}");
    }
}
