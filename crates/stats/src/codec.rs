//! The HdrHistogram V2 encoding of our fixed layout, and nothing more general: a histogram that came in a
//! file is not trusted to say how much memory it wants.
//!
//! Format (HdrHistogram's Java and Rust sources, V2 without compression): a big-endian header of 40 bytes:
//! cookie, payload length, normalizing offset, significant digits (u32 each), lowest and highest value (u64),
//! ratio (f64); then the counts as zig-zag LEB128 of at most nine bytes, a negative number standing for that
//! many empty buckets.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// The shortest latency that is distinguished; a zero is counted here.
pub(crate) const MIN_NS: u64 = 1;
/// The longest latency that is distinguished, 1000 s; anything longer is counted here.
pub(crate) const MAX_NS: u64 = 1_000_000_000_000;
const COOKIE: u32 = 0x1c84_9313;
const SIGNIFICANT_DIGITS: u32 = 2;
const HEADER_BYTES: usize = 40;

/// Why a text is not one of our histograms.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HistogramError {
    /// The text is not base64.
    #[error("the histogram is not base64")]
    Base64(#[from] base64::DecodeError),
    /// The bytes are not an uncompressed HdrHistogram V2.
    #[error("the histogram is not in HdrHistogram V2 encoding")]
    NotV2,
    /// An HdrHistogram of another range or precision than 1 ns … 1000 s in two digits.
    #[error("the histogram has another layout than 1 ns to 1000 s in two digits")]
    OtherLayout,
    /// The bytes contradict themselves; what is wrong.
    #[error("the histogram is damaged: {what}")]
    #[allow(missing_docs, reason = "the field is what the message says")]
    Damaged { what: &'static str },
}

impl HistogramError {
    /// What to do about it, one line, without a full stop.
    pub fn hint(&self) -> String {
        match self {
            HistogramError::OtherLayout => "only histograms that rdsk itself wrote can be read".to_owned(),
            _ => "the file was cut or changed; take it again from where it was recorded".to_owned(),
        }
    }
}

/// Encodes the counts of all buckets.
pub(crate) fn encode(counts: &[u64]) -> String {
    let used = counts.iter().rposition(|&count| count > 0).map_or(0, |last| last + 1);
    let mut payload = Vec::new();
    for run in counts[..used].chunk_by(|a, b| *a == 0 && *b == 0) {
        let number = match (run[0], run.len()) {
            (0, zeros) if zeros > 1 => -i64::try_from(zeros).expect("there are a few thousand buckets"),
            // The format has 63 bits; as many values take 292 years at one per nanosecond.
            (count, _) => i64::try_from(count).unwrap_or(i64::MAX),
        };
        write_varint(zig_zag(number), &mut payload);
    }
    if payload.is_empty() {
        // Other libraries write the first bucket even when there is nothing in it.
        payload.push(0);
    }
    let length = u32::try_from(payload.len()).expect("nine bytes for each of a few thousand buckets");
    let mut bytes = header(length).to_vec();
    bytes.extend_from_slice(&payload);
    STANDARD.encode(bytes)
}

/// Decodes into `counts`, which must be all zero.
pub(crate) fn decode(text: &str, counts: &mut [u64]) -> Result<(), HistogramError> {
    let bytes = STANDARD.decode(text)?;
    let Some((head, mut payload)) = bytes.split_at_checked(HEADER_BYTES) else {
        return Err(HistogramError::NotV2);
    };
    if !head.starts_with(&COOKIE.to_be_bytes()) {
        return Err(HistogramError::NotV2);
    }
    let length = u32::try_from(payload.len()).map_err(|_| HistogramError::Damaged { what: "length" })?;
    let expected = header(length);
    if head[4..8] != expected[4..8] {
        return Err(HistogramError::Damaged { what: "length" });
    }
    if head != expected {
        return Err(HistogramError::OtherLayout);
    }
    let mut index = 0_usize;
    while !payload.is_empty() {
        let number = un_zig_zag(read_varint(&mut payload)?);
        let buckets = match u64::try_from(number) {
            Ok(count) => {
                let bucket =
                    counts.get_mut(index).ok_or(HistogramError::Damaged { what: "too many buckets" })?;
                *bucket = count;
                1
            }
            Err(_) => usize::try_from(number.unsigned_abs()).unwrap_or(usize::MAX),
        };
        index = index.saturating_add(buckets);
        if index > counts.len() {
            return Err(HistogramError::Damaged { what: "too many buckets" });
        }
    }
    Ok(())
}

fn header(payload_length: u32) -> [u8; HEADER_BYTES] {
    let mut header = [0; HEADER_BYTES];
    header[0..4].copy_from_slice(&COOKIE.to_be_bytes());
    header[4..8].copy_from_slice(&payload_length.to_be_bytes());
    // Bytes 8 to 12 are the normalizing offset, which is zero.
    header[12..16].copy_from_slice(&SIGNIFICANT_DIGITS.to_be_bytes());
    header[16..24].copy_from_slice(&MIN_NS.to_be_bytes());
    header[24..32].copy_from_slice(&MAX_NS.to_be_bytes());
    header[32..40].copy_from_slice(&1.0_f64.to_be_bytes());
    header
}

fn zig_zag(number: i64) -> u64 {
    ((number << 1) ^ (number >> 63)).cast_unsigned()
}

fn un_zig_zag(number: u64) -> i64 {
    (number >> 1).cast_signed() ^ -(number & 1).cast_signed()
}

/// Seven bits a byte from the lowest, the top bit saying that more follow; the ninth byte has eight bits and
/// is last.
fn write_varint(mut number: u64, bytes: &mut Vec<u8>) {
    for _ in 0..8 {
        let low = u8::try_from(number & 0x7f).expect("seven bits");
        number >>= 7;
        if number == 0 {
            bytes.push(low);
            return;
        }
        bytes.push(low | 0x80);
    }
    bytes.push(u8::try_from(number).expect("eight bytes of seven bits leave eight bits"));
}

fn read_varint(bytes: &mut &[u8]) -> Result<u64, HistogramError> {
    let mut number = 0;
    for place in 0..9 {
        let (&byte, rest) = bytes.split_first().ok_or(HistogramError::Damaged { what: "cut in a number" })?;
        *bytes = rest;
        if place == 8 {
            return Ok(number | u64::from(byte) << 56);
        }
        number |= u64::from(byte & 0x7f) << (7 * place);
        if byte < 0x80 {
            break;
        }
    }
    Ok(number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Histogram;
    use crate::histogram::BUCKETS;
    use hdrhistogram::serialization::{Deserializer, Serializer, V2Serializer};
    use proptest::prelude::*;

    type Theirs = hdrhistogram::Histogram<u64>;

    #[test]
    fn the_general_library_reads_and_writes_the_same_bytes() {
        let mut ours = Histogram::new();
        let mut theirs = Theirs::new_with_bounds(MIN_NS, MAX_NS, 2).unwrap();
        for step in 0..2000_u64 {
            let ns = step * step * step * 117 + 1;
            for _ in 0..=step % 300 {
                ours.record(ns);
                theirs.record(ns).unwrap();
            }
        }
        let mut bytes = Vec::new();
        V2Serializer::new().serialize(&theirs, &mut bytes).unwrap();
        assert_eq!(ours.to_base64(), STANDARD.encode(&bytes));

        let read: Theirs =
            Deserializer::new().deserialize(&mut &STANDARD.decode(ours.to_base64()).unwrap()[..]).unwrap();
        assert_eq!(read, theirs);
    }

    #[test]
    fn an_empty_histogram_is_readable_by_the_general_library() {
        let bytes = STANDARD.decode(Histogram::new().to_base64()).unwrap();
        let read: Theirs = Deserializer::new().deserialize(&mut &bytes[..]).unwrap();
        assert_eq!(read.len(), 0);
    }

    #[test]
    fn other_things_are_refused() {
        let with_payload = |payload: &[u8]| {
            let head = header(u32::try_from(payload.len()).unwrap());
            STANDARD.encode([&head[..], payload].concat())
        };
        let mut other_layout = header(1).to_vec();
        other_layout[15] = 3;
        other_layout.push(0);
        let mut long = header(1_000_000).to_vec();
        long.push(0);
        let all_skipped = [0xff; 9];
        let cases = [
            ("§".to_owned(), "the histogram is not base64"),
            (String::new(), "the histogram is not in HdrHistogram V2 encoding"),
            (STANDARD.encode([7; 50]), "the histogram is not in HdrHistogram V2 encoding"),
            (
                STANDARD.encode(other_layout),
                "the histogram has another layout than 1 ns to 1000 s in two digits",
            ),
            (STANDARD.encode(long), "the histogram is damaged: length"),
            (with_payload(&[0x80]), "the histogram is damaged: cut in a number"),
            (with_payload(&all_skipped), "the histogram is damaged: too many buckets"),
            (with_payload(&[2; BUCKETS + 1]), "the histogram is damaged: too many buckets"),
            (
                with_payload(&[&[0xfe][..], &[0xff; 8], &[0xfe], &[0xff; 8], &[0xfe], &[0xff; 8]].concat()),
                "the histogram is damaged: count",
            ),
        ];
        for (text, message) in cases {
            let error = Histogram::from_base64(&text).unwrap_err();
            assert_eq!(error.to_string(), message);
            assert!(!error.hint().is_empty());
        }
    }

    proptest! {
        #[test]
        fn varints_round_trip(number: i64) {
            let mut bytes = Vec::new();
            write_varint(zig_zag(number), &mut bytes);
            prop_assert!(bytes.len() <= 9);
            let mut rest = &bytes[..];
            prop_assert_eq!(read_varint(&mut rest).map(un_zig_zag), Ok(number));
            prop_assert!(rest.is_empty());
        }

        #[test]
        fn no_payload_panics(payload in prop::collection::vec(any::<u8>(), 0..200)) {
            let head = header(u32::try_from(payload.len()).unwrap());
            let text = STANDARD.encode([&head[..], &payload].concat());
            if let Ok(histogram) = Histogram::from_base64(&text) {
                prop_assert!(histogram.quantile_unchecked(0.5).is_some() || histogram.count() == 0);
            }
        }
    }
}
