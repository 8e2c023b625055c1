//! What of a Record has no column, as JSON compressed by zlib: of a whole run, or of a cell while its run goes on.

use flate2::Compression;
use flate2::read::ZlibDecoder;
use flate2::write::ZlibEncoder;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::{self, BufWriter, Read};

/// A damaged document must not take all memory: no Record with 500 000 positions and ten passes is near this.
const MAX_JSON_BYTES: u64 = 4 << 30;
/// How a document began that rdsk kept until 2026-11-27 (RFC 8878, 3.1.1); today's begin otherwise (RFC 1950, 2.2).
const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// The document of a value, or why it has none.
pub(crate) fn pack(value: &impl Serialize) -> Result<Vec<u8>, String> {
    packed(value).map_err(|error| error.to_string())
}

fn packed(value: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut packed = BufWriter::new(ZlibEncoder::new(Vec::new(), Compression::default()));
    serde_json::to_writer(&mut packed, value)?;
    packed.into_inner().map_err(io::IntoInnerError::into_error)?.finish()
}

/// The value of a document, or why it cannot be read.
pub(crate) fn unpack<T: DeserializeOwned>(packed: &[u8]) -> Result<T, String> {
    if packed.starts_with(&ZSTD_MAGIC) {
        return Err("an older rdsk compressed it by zstd, which this one does not read; \
                    `rdsk export` of that rdsk writes it as JSON, which `rdsk import` takes in"
            .into());
    }
    let mut text = Vec::new();
    let mut limited = ZlibDecoder::new(packed).take(MAX_JSON_BYTES + 1);
    limited.read_to_end(&mut text).map_err(|error| error.to_string())?;
    if text.len() as u64 > MAX_JSON_BYTES {
        return Err("it is larger than that of any run".into());
    }
    serde_json::from_slice(&text).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_packed_comes_back_and_damage_is_an_error() {
        let value = vec!["x".repeat(1000), "é\u{1b}\0".into()];
        let packed = pack(&value).unwrap();
        assert!(packed.len() < 100, "{}", packed.len());
        assert_eq!(unpack::<Vec<String>>(&packed), Ok(value));
        assert!(unpack::<Vec<String>>(&packed[..10]).is_err());
        assert!(unpack::<Vec<String>>(&packed[..packed.len() - 5]).is_err());
        assert!(unpack::<Vec<String>>(b"plain").is_err());
        assert!(unpack::<Vec<String>>(&ZSTD_MAGIC).unwrap_err().contains("zstd"));
    }
}
