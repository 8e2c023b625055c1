//! Finds the run that a word means: an id, the beginning of one, `last`, or a label.

use crate::error::StoreError;
use crate::list::{Filter, RunLine};
use crate::open::History;

/// The fewest characters that may stand for an id: the first of them are the same for weeks.
const MIN_PREFIX: usize = 4;
/// How many runs an ambiguous word is answered with, at most.
const MOST_NAMED: u32 = 5;

/// What a word means.
#[derive(Clone, Debug, PartialEq)]
pub enum Found {
    /// This run.
    Run(Box<RunLine>),
    /// The beginning of several ids; the newest of them.
    Several(Vec<RunLine>),
    /// Nothing.
    Nothing,
}

impl History {
    /// The run that a word means. The label of several runs means the newest of them, and an id comes before a label.
    ///
    /// # Errors
    /// Those of the database.
    pub fn find(&self, word: &str) -> Result<Found, StoreError> {
        if let Some(run) = self.lines_where("id = ?1", &word.to_uppercase(), 1)?.pop() {
            return Ok(Found::Run(Box::new(run)));
        }
        if word == "last" {
            let newest = self.list(&Filter { limit: Some(1), ..Filter::default() })?;
            return Ok(one(newest));
        }
        // An id has letters and digits only, none of which means anything in a pattern.
        if word.len() >= MIN_PREFIX && word.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
            let pattern = format!("{}*", word.to_uppercase());
            let begin_so = self.lines_where("id GLOB ?1", &pattern, MOST_NAMED)?;
            match begin_so.len() {
                0 => {}
                1 => return Ok(one(begin_so)),
                _ => return Ok(Found::Several(begin_so)),
            }
        }
        self.lines_where("label = ?1", word, 1).map(one)
    }
}

fn one(mut lines: Vec<RunLine>) -> Found {
    lines.pop().map_or(Found::Nothing, |run| Found::Run(Box::new(run)))
}
