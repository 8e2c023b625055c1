//! Records in other forms and from other programs: `rdsk export`, `rdsk import`, and the flags of other commands that write such
//! forms. It looks at no target.

mod export;
mod import;
mod options;
mod outputs;

pub(crate) use options::{FORMATS, export_command, import_command};
pub(crate) use outputs::Outputs;

use crate::{exit, own_command};
use std::ffi::OsString;

/// Runs a command line whose first word is `export`.
pub(crate) fn export(words: &[OsString]) -> u8 {
    own_command::run(options::export(words), |options| export::export(options).map(|()| exit::DONE))
}

/// Runs a command line whose first word is `import`.
pub(crate) fn import(words: &[OsString]) -> u8 {
    own_command::run(options::import(words), |options| import::import(options).map(|()| exit::DONE))
}
