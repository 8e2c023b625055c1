//! The history on the command line: where it is, keeping what is measured, and `rdsk list` and `rdsk delete`. What it holds is
//! up to `store`.

mod delete;
mod fallback;
mod keep;
mod list;
mod moment;
mod names;
mod options;
mod pick;
mod place;
mod problem;

pub(crate) use keep::{Keeper, Written, keep_finished, keep_imported};
pub(crate) use names::{labels, names};
pub(crate) use options::{delete_command, list_command};
pub(crate) use pick::{Picked, pick};
pub(crate) use place::{Place, choose, file, pass_on};

use crate::{exit, out, own_command};
use rdsk_units::printable;
use std::ffi::OsString;

/// Where the kernel tells which processes live.
const PROC: &str = "/proc";

/// The command line that shows a run of this history, by its id or as much of it as names it.
fn show_command(id: &str) -> String {
    let id = printable(id);
    let history = place::named().map_or_else(String::new, |file| format!(" --history {}", out::word(file)));
    format!("rdsk show {id}{history}")
}

/// Runs a command line whose first word is `list`.
pub(crate) fn list(words: &[OsString]) -> u8 {
    own_command::run(options::list(words), |options| list::list(options).map(|()| exit::DONE))
}

/// Runs a command line whose first word is `delete`.
pub(crate) fn delete(words: &[OsString]) -> u8 {
    own_command::run(options::delete(words), |options| delete::delete(options).map(|()| exit::DONE))
}
