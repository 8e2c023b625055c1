//! Which parts of a file `nocache` drops, as the copy goes on and at its end: sums and ranges only. They are those of GNU dd 9.1, as
//! strace shows them, with its oddity: where blocks do not fill 128 KiB, those of the output run ahead of what was written.

use rustix::io::Errno;
use std::num::NonZeroU64;

/// Bytes that are gathered before the page cache is told to drop them.
pub(crate) const DROP_BYTES: u64 = 128 << 10;

/// What was transferred, and the page cache was not told to drop.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Gathered {
    pub(crate) bytes: u64,
    pub(crate) stands: Stands,
    /// Whether the last range reaches to the end of the file, whatever was copied of it.
    pub(crate) is_to_end: bool,
    /// The end of the next range as dd counts it for the output, once it has looked where that stands.
    pub(crate) output_end: Option<Result<u64, Errno>>,
}

/// Where an end of a copy stands when its ranges are computed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Stands {
    /// The input: at the offset that the copy counts.
    #[default]
    AtOffset,
    /// The output: where the kernel says, the first time; from then on as far as dd counts.
    AsCounted,
}

/// A part of a file; without a length up to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Range {
    pub(crate) from: u64,
    pub(crate) length: Option<NonZeroU64>,
}

/// So many bytes that end so many before the end; nothing where that is before the file.
pub(crate) fn part(end: u64, bytes: u64, after: u64) -> Option<Range> {
    let from = end.checked_sub(bytes)?.checked_sub(after)?;
    Some(Range { from, length: NonZeroU64::new(bytes) })
}

/// From the page in which the last bytes begin to the end of the file.
pub(crate) fn rest(end: u64, bytes: u64) -> Option<Range> {
    let from = end.checked_sub(bytes)?;
    let page = rustix::param::page_size() as u64;
    Some(Range { from: from - from % page, length: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_end_where_the_copy_stands() {
        let range = |from, length| Some(Range { from, length: NonZeroU64::new(length) });
        assert_eq!(part(150_000, 131_072, 18_928), range(0, 131_072));
        assert_eq!(part(0, 131_072, 73_728), None, "as of /dev/null, which stays at 0");
        assert_eq!(rest(5000, 0), range(5000 - 5000 % rustix::param::page_size() as u64, 0));
        assert_eq!(rest(100, 200), None);
    }
}
