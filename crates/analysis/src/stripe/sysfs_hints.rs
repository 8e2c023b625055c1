//! Whether the kernel's hints agree with the measurement. It reads no sysfs; it is given the figures.

use crate::words::bytes;

/// How a measurement and the kernel's hints relate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Agreement {
    /// Both name the same sizes, as far as both name any.
    Agrees,
    /// They name different sizes.
    Differs,
    /// The kernel names a stripe and none was seen.
    NotSeen,
    /// A stripe was seen of which the kernel says nothing.
    NotHinted,
    /// Neither knows of a stripe.
    NoStripe,
}

/// An optimum from here on is no full stripe: with members of 16 MiB less a sector it is 256 MiB at least.
const MIXED_BYTES: u64 = 64 << 20;

/// Compares a chunk and a full stripe, however they were found, with `queue/minimum_io_size` (the chunk, for Linux's arrays)
/// and `queue/optimal_io_size` (the full stripe; 0 when unknown), all in bytes, and says it in a sentence. A minimum of no
/// more than 4096 bytes, or of the device's physical block, is no hint of a chunk.
pub fn compare_with_sysfs(
    (chunk, stripe): (Option<u64>, Option<u64>),
    physical_block_bytes: u64,
    minimum_io_bytes: u64,
    optimal_io_bytes: u64,
) -> (Agreement, String) {
    // Every device states its physical block as the smallest I/O, and some SSDs have large ones; only an array states more.
    let hinted_chunk = Some(minimum_io_bytes).filter(|&hint| hint > physical_block_bytes.max(4096));
    // The kernel takes the least common multiple of the stripe and an optimum of the members, for which SAS controllers say 16 MiB less one
    // sector (16773120): that is the stripe of no array.
    let is_stripe = |&hint: &u64| hint > 0 && hint < MIXED_BYTES && hinted_chunk.is_some();
    let hinted_stripe = Some(optimal_io_bytes).filter(is_stripe);
    let name = |size: Option<u64>| size.map_or_else(|| "none".to_owned(), bytes);
    let hints = format!(
        "the kernel's hints (minimum_io_size {minimum_io_bytes}, optimal_io_size {optimal_io_bytes})"
    );
    let seen = format!("chunk {}, full stripe {}", name(chunk), name(stripe));
    match (hinted_chunk.is_some(), chunk.is_some()) {
        (false, false) => (Agreement::NoStripe, format!("no stripe was seen, and {hints} name none")),
        (true, false) => {
            (Agreement::NotSeen, format!("no stripe was seen, but {hints} name chunk {}", name(hinted_chunk)))
        }
        (false, true) => (Agreement::NotHinted, format!("measured {seen}; {hints} name none")),
        (true, true) => {
            let differs =
                |hint: Option<u64>, seen: Option<u64>| matches!((hint, seen), (Some(a), Some(b)) if a != b);
            if differs(hinted_chunk, chunk) || differs(hinted_stripe, stripe) {
                let hinted = format!("chunk {}, full stripe {}", name(hinted_chunk), name(hinted_stripe));
                (Agreement::Differs, format!("measured {seen}; {hints} differ: {hinted}"))
            } else {
                (Agreement::Agrees, format!("measured {seen}; {hints} agree"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_relation_has_its_name() {
        let (k64, k256) = (Some(65_536), Some(262_144));
        for (chunk, stripe, minimum, optimal, expected) in [
            (k64, k256, 65_536, 262_144, Agreement::Agrees),
            (k64, None, 65_536, 262_144, Agreement::Agrees),
            (k64, k256, 65_536, 0, Agreement::Agrees),
            (k64, k256, 65_536, 1_073_479_680, Agreement::Agrees),
            (k64, k256, 65_536, 196_608, Agreement::Differs),
            (k64, k256, 131_072, 262_144, Agreement::Differs),
            (None, None, 65_536, 262_144, Agreement::NotSeen),
            (k64, k256, 512, 0, Agreement::NotHinted),
            (k64, k256, 4096, 1_310_720, Agreement::NotHinted),
            (None, None, 512, 0, Agreement::NoStripe),
        ] {
            let (agreement, text) = compare_with_sysfs((chunk, stripe), 512, minimum, optimal);
            assert_eq!(agreement, expected, "{text}");
            assert!(text.contains(&minimum.to_string()), "{text}");
        }
    }

    #[test]
    fn a_large_physical_block_is_no_chunk() {
        let (agreement, text) = compare_with_sysfs((None, None), 16_384, 16_384, 0);
        assert_eq!(agreement, Agreement::NoStripe, "{text}");
        let (agreement, text) = compare_with_sysfs((None, None), 16_384, 65_536, 0);
        assert_eq!(agreement, Agreement::NotSeen, "{text}");
    }
}
