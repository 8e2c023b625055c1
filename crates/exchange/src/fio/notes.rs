//! What a reader of fio's figures would take for something else, in sentences, each with the jobs that it is about.

use rdsk_analysis::groups::by_key;
use rdsk_analysis::words::few;
use std::collections::HashSet;

/// Jobs that are named before the others are only counted.
const MAX_NAMED: usize = 4;

/// Sentences as they come up, and the job that each is about.
#[derive(Debug, Default)]
pub(super) struct Notes {
    notes: Vec<(String, String)>,
}

impl Notes {
    pub(super) fn add(&mut self, job: &str, text: impl Into<String>) {
        self.notes.push((text.into(), job.to_owned()));
    }

    /// Each sentence once, behind the names of its jobs, each of which may have several parts.
    pub(super) fn sentences(self) -> Vec<String> {
        let mut once = HashSet::new();
        let distinct = self.notes.into_iter().filter(|note| once.insert(note.clone()));
        by_key(distinct)
            .into_iter()
            .map(|(text, jobs)| format!("{}: {text}", few(&jobs, MAX_NAMED, "other")))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::Notes;

    #[test]
    fn a_sentence_stands_once_for_all_its_jobs() {
        let mut notes = Notes::default();
        for job in ["a", "b", "c", "d", "e", "f"] {
            notes.add(job, "same");
        }
        notes.add("b", "same");
        notes.add("b", "other");
        assert_eq!(notes.sentences(), ["a, b, c, d and 2 others: same", "b: other"]);
    }
}
