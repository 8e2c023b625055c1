//! What was understood of a job file, as the TOML file that `rdsk load` takes, with what was ignored as comments.

use super::FioLoad;
use crate::job_words::JobWords;
use std::fmt::Write as _;

impl FioLoad {
    /// The load as TOML.
    ///
    /// # Errors
    /// When TOML has no words for a job.
    pub fn to_toml(&self) -> Result<String, toml::ser::Error> {
        let mut text = format!("# {}, as rdsk understands it.\n", self.name);
        let parts = self.notes.iter().filter(|note| !note.starts_with("job "));
        parts.for_each(|note| comment(&mut text, "note", note));
        text.push_str("repeat = false\n");
        for (phase, (jobs, remarks)) in (1..).zip(self.phases.iter().zip(&self.remarks)) {
            for (job, remarks) in jobs.iter().zip(remarks) {
                write!(text, "\n# {}\n", remarks.place).expect("a String takes everything");
                remarks.ignored.iter().for_each(|option| comment(&mut text, "ignored", option));
                remarks.notes.iter().for_each(|note| comment(&mut text, "note", note));
                text.push_str("[[job]]\n");
                text.push_str(&toml::to_string(&JobWords::of(job, phase))?);
            }
        }
        Ok(text)
    }
}

/// A line that begins with `#`, whatever stands in the text.
fn comment(text: &mut String, kind: &str, what: &str) {
    let plain: String = what.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    writeln!(text, "# {kind}: {plain}").expect("a String takes everything");
}
