//! What of a Record has no column: JSON, compressed by zlib, so that a default run takes less than 200 kB.

use flate2::Compression;
use flate2::read::ZlibDecoder;
use flate2::write::ZlibEncoder;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::{BufWriter, Read as _, Write as _};

/// A damaged document must not take all memory: no cell of 500 000 positions and ten passes is near this.
const MAX_JSON_BYTES: u64 = 4 << 30;

/// The document of a value, or why it has none.
pub(crate) fn pack(value: &impl Serialize) -> Result<Vec<u8>, String> {
    let mut packed = BufWriter::new(ZlibEncoder::new(Vec::new(), Compression::default()));
    serde_json::to_writer(&mut packed, value).map_err(|error| error.to_string())?;
    packed.flush().map_err(|error| error.to_string())?;
    let packed = packed.into_inner().map_err(|error| error.to_string())?;
    packed.finish().map_err(|error| error.to_string())
}

/// The value of a document, or why it cannot be read.
pub(crate) fn unpack<T: DeserializeOwned>(packed: &[u8]) -> Result<T, String> {
    let mut text = Vec::new();
    ZlibDecoder::new(packed)
        .take(MAX_JSON_BYTES)
        .read_to_end(&mut text)
        .map_err(|error| error.to_string())?;
    serde_json::from_slice(&text).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_packed_comes_back_and_damage_is_an_error() {
        let value = vec!["x".repeat(1000), "é\u{1b}".into()];
        let packed = pack(&value).unwrap();
        assert!(packed.len() < 100, "{}", packed.len());
        assert_eq!(unpack::<Vec<String>>(&packed), Ok(value));
        assert!(unpack::<Vec<String>>(&packed[..10]).is_err());
        assert!(unpack::<Vec<String>>(b"plain").is_err());
    }
}
