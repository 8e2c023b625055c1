//! The workspace's seeded generator of pseudo-random numbers: simulations and tests draw the same on every machine. It is no
//! source of secrets, and reads no entropy.

/// What is added to the state for each number.
const GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

/// `SplitMix64` (G. L. Steele, D. Lea and C. H. Flood, "Fast splittable pseudorandom number generators", 2014): one addition
/// and three xor-shifts per number, state of 64 bits. The same seed gives the same sequence.
///
/// ```
/// use rdsk_stats::rng::SplitMix64;
/// // The first output for this seed, as published with the algorithm's reference code.
/// assert_eq!(SplitMix64::new(1_234_567).next_u64(), 6_457_827_717_110_365_317);
/// ```
#[derive(Clone, Debug)]
pub struct SplitMix64(u64);

impl SplitMix64 {
    /// The sequence of a seed.
    pub const fn new(seed: u64) -> SplitMix64 {
        SplitMix64(seed)
    }

    /// The sequence of a seed from its number `index` on, counted from 0.
    pub const fn from_index(seed: u64, index: u64) -> SplitMix64 {
        SplitMix64(seed.wrapping_add(index.wrapping_mul(GAMMA)))
    }

    /// The next number; every value is as likely as any other.
    pub fn next_u64(&mut self) -> u64 {
        let z = self.mixed();
        z ^ (z >> 31)
    }

    /// A number from 0 to `bound` − 1, each as likely as any other to one part in 2^64 / `bound`; 0 for a bound of 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next_u64()) * u128::from(bound)) >> 64) as u64
    }

    /// Uniform in [0, 1), a multiple of 2^-53.
    pub fn uniform(&mut self) -> f64 {
        fraction(self.next_u64())
    }

    /// Like [`Self::uniform`], without the generator's last xor-shift: the same to one part in 2^31. The simulated hosts
    /// draw this way, and their figures are to stay the same to the nanosecond.
    pub fn uniform_unfolded(&mut self) -> f64 {
        fraction(self.mixed())
    }

    /// Standard normal (Box and Muller 1958).
    pub fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.uniform()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.uniform()).cos()
    }

    /// Puts the items into a random order, each order as likely as any other (Fisher and Yates 1938).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            let other = usize::try_from(self.below(last as u64 + 1)).expect("an index of the slice");
            items.swap(last, other);
        }
    }

    fn mixed(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(GAMMA);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb)
    }
}

/// The upper 53 bits as a number in [0, 1).
fn fraction(bits: u64) -> f64 {
    (bits >> 11) as f64 / (1_u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::SplitMix64;

    /// Recorded sequences (2026-11-22): simulations and tests across the workspace rest on them.
    #[test]
    fn a_seed_gives_the_same_numbers_for_ever() {
        let mut rng = SplitMix64::new(1_234_567);
        assert_eq!([rng.next_u64(), rng.next_u64()], [6_457_827_717_110_365_317, 3_203_168_211_198_807_973]);
        assert_eq!(SplitMix64::from_index(1_234_567, 1).next_u64(), 3_203_168_211_198_807_973);
        let mut rng = SplitMix64::new(7);
        let uniform: Vec<f64> = (0..3).map(|_| rng.uniform()).collect();
        let below: Vec<u64> = (0..5).map(|_| rng.below(1000)).collect();
        let mut order: Vec<u32> = (0..8).collect();
        rng.shuffle(&mut order);
        assert_eq!(uniform, [0.3898297483912715, 0.01678829452815611, 0.9007606806068834]);
        assert_eq!(below, [582, 452, 249, 467, 328]);
        assert_eq!(order, [5, 7, 6, 3, 4, 0, 2, 1]);
    }

    #[test]
    fn bounds_hold() {
        let mut rng = SplitMix64::new(1);
        assert_eq!(rng.below(0), 0);
        let (mut folded, mut unfolded) = (rng.clone(), rng.clone());
        assert!((folded.uniform() - unfolded.uniform_unfolded()).abs() < 1e-9);
        assert!((0..1000).all(|_| rng.below(3) < 3 && (0.0..1.0).contains(&rng.uniform())));
    }
}
