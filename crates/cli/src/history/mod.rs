//! The history on the command line: where it is, keeping what is measured, and `rdsk list` and `rdsk delete`. What it holds is
//! up to `store`.

mod delete;
mod fallback;
mod keep;
mod list;
mod moment;
mod options;
mod pick;
mod place;
mod problem;
mod summary;

pub(crate) use keep::{Keeper, Written, keep_finished, keep_imported};
pub(crate) use pick::{Picked, pick};
pub(crate) use place::{Place, choose};
pub(crate) use summary::{DELETE, LIST};

use crate::{exit, out, panic_hook};
use options::{Asked, Parsed};
use std::ffi::OsString;

/// Where the kernel tells which processes live.
const PROC: &str = "/proc";

/// Runs a command line, whose first word is `list` or `delete`.
pub(crate) fn run(words: &[OsString]) -> u8 {
    let done = match options::parse(words) {
        Ok(Parsed::Text(text)) => out::data(&text),
        Ok(Parsed::Asked(Asked::List(options))) => {
            panic_hook::catch(|| list::list(&options)).and_then(|done| done)
        }
        Ok(Parsed::Asked(Asked::Delete(options))) => {
            panic_hook::catch(|| delete::delete(&options)).and_then(|done| done)
        }
        Err(problem) => Err(problem),
    };
    done.map_or_else(|problem| out::failure(&problem), |()| exit::DONE)
}
