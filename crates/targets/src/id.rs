//! Ids of Records and of test files: unique without a register of them, and in the order in which they were made.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::time::{SystemTime, UNIX_EPOCH};
use ulid::Ulid;

/// A new id: the time in milliseconds since 1970 and 80 random bits.
///
/// The bits are those with which the standard library keys its hash maps, so that no crate of random numbers is built for one
/// number per run; two hashes under different random keys are as independent as the keys.
pub fn new_id() -> Ulid {
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let word = || u128::from(RandomState::new().build_hasher().finish());
    let random = word() << 64 | word();
    Ulid::from_parts(u64::try_from(since_1970.as_millis()).unwrap_or(u64::MAX), random)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn ids_differ_in_their_random_bits_and_have_the_time() {
        let ids: BTreeSet<u128> = (0..1000).map(|_| new_id().random()).collect();
        assert_eq!(ids.len(), 1000);
        // Each of the 80 bits is set in some and clear in others.
        let (set, clear) = ids.iter().fold((0, 0), |(set, clear), id| (set | id, clear | !id));
        let bits = (1_u128 << 80) - 1;
        assert_eq!((set & bits, clear & bits), (bits, bits));
        let earlier = new_id();
        std::thread::sleep(std::time::Duration::from_millis(2));
        assert!(earlier < new_id());
    }
}
