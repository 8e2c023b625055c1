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
    /// The run that a word means: an id, the beginning of one, or a label, in this order; the label of several runs
    /// means the newest of them. What begins several ids means none of them, and may be a label.
    ///
    /// # Errors
    /// Those of the database.
    pub fn find(&self, word: &str) -> Result<Found, StoreError> {
        if let Some(run) = self.lines_where("id = ?1", &word.to_uppercase(), 1)?.pop() {
            return Ok(Found::Run(Box::new(run)));
        }
        if word == "last" {
            let newest = self.list(&Filter { limit: Some(1), ..Filter::default() })?;
            return Ok(only(newest));
        }
        let begin_so = self.begin_with(word)?;
        if begin_so.len() == 1 {
            return Ok(only(begin_so));
        }
        let labelled = self.lines_where("label = ?1", word, 1)?;
        let is_ambiguous = labelled.is_empty() && !begin_so.is_empty();
        Ok(if is_ambiguous { Found::Several(begin_so) } else { only(labelled) })
    }

    /// The newest runs whose ids begin with a word that is long enough.
    fn begin_with(&self, word: &str) -> Result<Vec<RunLine>, StoreError> {
        // An id has letters and digits only, none of which means anything in a pattern.
        if word.len() < MIN_PREFIX || !word.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
            return Ok(Vec::new());
        }
        self.lines_where("id GLOB ?1", &format!("{}*", word.to_uppercase()), MOST_NAMED)
    }
}

fn only(mut lines: Vec<RunLine>) -> Found {
    lines.pop().map_or(Found::Nothing, |run| Found::Run(Box::new(run)))
}
