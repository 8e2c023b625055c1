//! What of a Record has no column, as JSON in one of two forms: a *quick* one, for cells of a run that goes on, whose saving must not
//! take time, and a *small* one, for a run that has ended, so that a default run takes less than 200 kB. The first bytes say which.

use crate::columns;
use flate2::Compression;
use flate2::read::ZlibDecoder;
use flate2::write::ZlibEncoder;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::io::{self, BufWriter, Read};

/// A damaged document must not take all memory: no Record with 500 000 positions and ten passes is near this.
const MAX_JSON_BYTES: u64 = 4 << 30;
/// A value that takes more than this as quick document, such as the passes over hundreds of thousands of positions, stays so: the
/// small form is made in memory, at a megabyte per second.
const MAX_SMALL_BYTES: usize = 1 << 20;

/// What a document of the small form may hold: each of its bytes can take ninety in memory while it is unfolded, and a default run
/// has a tenth of this. A value that takes more stays quick, too.
const MAX_PLAIN_BYTES: usize = 16 << 20;

/// How a document of the small form begins (RFC 8878, 3.1.1); one of the quick form begins otherwise (RFC 1950, 2.2).
const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// Beyond this level a document gets no smaller (measured on 2026-11-22).
const ZSTD_LEVEL: i32 = 19;

/// The document of a value in the quick form, or why it has none.
pub(crate) fn pack(value: &impl Serialize) -> Result<Vec<u8>, String> {
    packed(value).map_err(|error| error.to_string())
}

fn packed(value: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut packed = BufWriter::new(ZlibEncoder::new(Vec::new(), Compression::default()));
    serde_json::to_writer(&mut packed, value)?;
    packed.into_inner().map_err(io::IntoInnerError::into_error)?.finish()
}

/// The document of a value in the small form, unless it is too large for that, or why it has none.
pub(crate) fn pack_small(value: &impl Serialize) -> Result<Vec<u8>, String> {
    let quick = pack(value)?;
    if quick.len() > MAX_SMALL_BYTES {
        return Ok(quick);
    }
    let mut value = serde_json::to_value(value).map_err(|error| error.to_string())?;
    // A value that the form cannot hold, which no Record is, stays as it is.
    let Some(histograms) = columns::fold(&mut value, columns::MOST) else { return Ok(quick) };
    let plain = plain(&value, &histograms).map_err(|error| error.to_string())?;
    if plain.len() > MAX_PLAIN_BYTES {
        return Ok(quick);
    }
    zstd::bulk::compress(&plain, ZSTD_LEVEL).map_err(|error| error.to_string())
}

/// JSON, a zero byte, which no JSON has, and the bytes of the histograms.
fn plain(value: &Value, histograms: &[u8]) -> serde_json::Result<Vec<u8>> {
    let mut plain = serde_json::to_vec(value)?;
    plain.push(0);
    plain.extend_from_slice(histograms);
    Ok(plain)
}

/// The value of a document of either form, or why it cannot be read.
pub(crate) fn unpack<T: DeserializeOwned>(packed: &[u8]) -> Result<T, String> {
    if packed.starts_with(&ZSTD_MAGIC) {
        return unpack_small(packed);
    }
    let text = limited(ZlibDecoder::new(packed), MAX_JSON_BYTES)?;
    serde_json::from_slice(&text).map_err(|error| error.to_string())
}

fn unpack_small<T: DeserializeOwned>(packed: &[u8]) -> Result<T, String> {
    let plain = zstd::Decoder::with_buffer(packed).map_err(|error| error.to_string())?;
    let plain = limited(plain, MAX_PLAIN_BYTES as u64)?;
    let end = plain.iter().position(|&byte| byte == 0).ok_or("it has no end")?;
    let mut value: Value = serde_json::from_slice(&plain[..end]).map_err(|error| error.to_string())?;
    columns::unfold(&mut value, &plain[end + 1..], columns::MOST)?;
    serde_json::from_value(value).map_err(|error| error.to_string())
}

fn limited(from: impl Read, most_bytes: u64) -> Result<Vec<u8>, String> {
    let mut text = Vec::new();
    from.take(most_bytes + 1).read_to_end(&mut text).map_err(|error| error.to_string())?;
    if text.len() as u64 > most_bytes { Err("it is larger than that of any run".into()) } else { Ok(text) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_packed_comes_back_and_damage_is_an_error() {
        let value = vec!["x".repeat(1000), "é\u{1b}\0".into()];
        for packed in [pack(&value).unwrap(), pack_small(&value).unwrap()] {
            assert!(packed.len() < 100, "{}", packed.len());
            assert_eq!(unpack::<Vec<String>>(&packed), Ok(value.clone()));
            assert!(unpack::<Vec<String>>(&packed[..10]).is_err());
            assert!(unpack::<Vec<String>>(&packed[..packed.len() - 5]).is_err());
        }
        assert!(unpack::<Vec<String>>(b"plain").is_err());
        assert!(unpack::<Vec<String>>(&zstd::bulk::compress(b"[]", 1).unwrap()).is_err());
    }

    #[test]
    fn what_is_too_large_for_the_small_form_stays_quick() {
        // Digits without a pattern take some 3.5 bits each.
        let mut number = 1_u64;
        let mut next = || {
            number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            number
        };
        let value: Vec<u64> = (0..300_000).map(|_| next()).collect();
        let packed = pack_small(&value).unwrap();
        assert!(packed.len() > MAX_SMALL_BYTES && !packed.starts_with(&ZSTD_MAGIC));
        assert_eq!(unpack::<Vec<u64>>(&packed), Ok(value));
    }

    #[test]
    fn a_few_bytes_that_unpack_to_very_many_are_refused() {
        let bomb = |text: String| zstd::bulk::compress(&[text.as_bytes(), &[0]].concat(), 1).unwrap();
        let zeros = vec!["0"; 2_000_000].join(",");
        let rows = bomb(format!("{{\"cells\":{{\"#\":2000000,\"a\":[{zeros}]}}}}"));
        let text = bomb(format!("\"{}\"", "x".repeat(MAX_PLAIN_BYTES)));
        for (packed, why) in [(rows, "longer than those of any run"), (text, "larger than that of any run")] {
            assert!(packed.len() < 4096, "{}", packed.len());
            let error = unpack::<Value>(&packed).unwrap_err();
            assert!(error.contains(why), "{error}");
        }
    }

    #[test]
    fn a_large_value_comes_back_in_the_form_that_takes_it() {
        let rows: Vec<Value> =
            (0..20_000).map(|number| serde_json::json!({ "number": number, "other": number % 7 })).collect();
        let packed = pack_small(&rows).unwrap();
        assert!(packed.starts_with(&ZSTD_MAGIC), "it is small");
        assert_eq!(unpack::<Vec<Value>>(&packed), Ok(rows));
        let text = "x".repeat(MAX_PLAIN_BYTES);
        let packed = pack_small(&text).unwrap();
        assert!(packed.len() < MAX_SMALL_BYTES && !packed.starts_with(&ZSTD_MAGIC), "its text is too long");
        assert_eq!(unpack::<String>(&packed), Ok(text));
    }
}
