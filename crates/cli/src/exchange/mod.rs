//! Records in other forms and from other programs: `rdsk export`, `rdsk import`, and the flags of other commands that write such
//! forms. It looks at no target.

mod export;
mod import;
mod options;
mod outputs;
mod summary;

pub(crate) use outputs::Outputs;
pub(crate) use summary::{EXPORT, IMPORT};

use crate::{exit, out, panic_hook};
use options::Parsed;
use std::ffi::{OsStr, OsString};

/// Runs a command line whose first word is `export` or `import`; `None` for any other one.
pub(crate) fn run(word: &OsStr, words: &[OsString]) -> Option<u8> {
    let parsed = match word.to_str()? {
        "export" => options::parse_export(words),
        "import" => options::parse_import(words),
        _ => return None,
    };
    let done = parsed.and_then(|parsed| {
        panic_hook::catch(|| match parsed {
            Parsed::Text(text) => out::data(&text),
            Parsed::Export(options) => export::export(&options),
            Parsed::Import(options) => import::import(&options),
        })
        .and_then(|done| done)
    });
    Some(done.map_or_else(|problem| out::failure(&problem), |()| exit::DONE))
}
