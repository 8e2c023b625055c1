//! The history on the command line: where it is, keeping what is measured, and finding it again. What it holds is up to `store`.

mod keep;
pub(crate) mod moment;
mod pick;
mod place;
pub(crate) mod problem;

pub(crate) use keep::{Keeper, Written, keep_finished, keep_imported};
pub(crate) use pick::{Picked, labels, names, open, pick};
pub(crate) use place::{Place, choose, file, pass_on, place};

use crate::out;
use rdsk_units::printable;

/// Where the kernel says which processes live.
const PROC: &str = "/proc";
/// The first characters of an id are its time in milliseconds, and distinguish runs.
pub(crate) const ID_CHARACTERS: usize = 10;

/// The command line that shows a run of this history, by its id or as much of it as names it.
fn show_command(id: &str) -> String {
    let id = printable(id);
    let history = place::named().map_or_else(String::new, |file| format!(" --history {}", out::word(file)));
    format!("rdsk show {id}{history}")
}
