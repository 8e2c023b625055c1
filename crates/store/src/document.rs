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

/// Why a document cannot be made or read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DocumentError {
    /// It does not unpack.
    #[error(transparent)]
    Packing(#[from] io::Error),
    /// It is no JSON of this value.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    #[error(
        "an older rdsk compressed it by zstd, which this one does not read; `rdsk export` of that rdsk writes it as JSON, which \
         `rdsk import` takes in"
    )]
    Zstd,
    #[error("it is larger than that of any run")]
    TooLarge,
}

/// The document of a value.
pub(crate) fn pack(value: &impl Serialize) -> Result<Vec<u8>, DocumentError> {
    let mut packed = BufWriter::new(ZlibEncoder::new(Vec::new(), Compression::default()));
    serde_json::to_writer(&mut packed, value)?;
    Ok(packed.into_inner().map_err(io::IntoInnerError::into_error)?.finish()?)
}

/// The value of a document.
pub(crate) fn unpack<T: DeserializeOwned>(packed: &[u8]) -> Result<T, DocumentError> {
    if packed.starts_with(&ZSTD_MAGIC) {
        return Err(DocumentError::Zstd);
    }
    let mut text = Vec::new();
    let mut limited = ZlibDecoder::new(packed).take(MAX_JSON_BYTES + 1);
    limited.read_to_end(&mut text)?;
    if text.len() as u64 > MAX_JSON_BYTES {
        return Err(DocumentError::TooLarge);
    }
    Ok(serde_json::from_slice(&text)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_packed_comes_back_and_damage_is_an_error() {
        let value = vec!["x".repeat(1000), "é\u{1b}\0".into()];
        let packed = pack(&value).unwrap();
        assert!(packed.len() < 100, "{}", packed.len());
        assert_eq!(unpack::<Vec<String>>(&packed).unwrap(), value);
        assert!(unpack::<Vec<String>>(&packed[..10]).is_err());
        assert!(unpack::<Vec<String>>(&packed[..packed.len() - 5]).is_err());
        assert!(unpack::<Vec<String>>(b"plain").is_err());
        assert!(unpack::<Vec<String>>(&ZSTD_MAGIC).unwrap_err().to_string().contains("zstd"));
    }
}
