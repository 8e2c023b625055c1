//! The result of a scenario in the guest, parsed from its files. It only decides whether the script reached its end.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;

/// A command that a scenario ran by `call`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// The name that the script gave it.
    pub name: String,
    /// Its exit code; above 128 for a signal.
    pub code: i32,
    /// Standard output; invalid UTF-8 is replaced.
    pub stdout: String,
    /// Standard error, likewise.
    pub stderr: String,
    /// How long it took, in the guest's time.
    pub took: Duration,
}

impl Call {
    /// Standard output as a JSON document, which keeps its schema.
    ///
    /// # Panics
    /// If it is not one; the message holds all output.
    pub fn json(&self) -> Value {
        crate::schema::assert_kept(&self.stdout);
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|error| panic!("no JSON ({error}) from {}", self.said()))
    }

    /// All of its output, for messages.
    pub fn said(&self) -> String {
        format!("{} (code {}): {}{}", self.name, self.code, self.stdout, self.stderr)
    }
}

/// The output of one scenario.
#[derive(Clone, Debug)]
pub struct ScenarioOutcome {
    name: String,
    code: i32,
    took: Duration,
    files: BTreeMap<String, Vec<u8>>,
}

impl ScenarioOutcome {
    pub(crate) fn new(name: &str, code: i32, took: Duration, files: BTreeMap<String, Vec<u8>>) -> Self {
        Self { name: name.into(), code, took, files }
    }

    /// How long the script took, in the guest's time.
    pub fn took(&self) -> Duration {
        self.took
    }

    /// Why the script did not reach its end, with its last commands; `None` if it did.
    pub fn failure(&self) -> Option<String> {
        let why = if self.files.contains_key("late") {
            "its time was over".to_owned()
        } else if self.code != 0 {
            format!("a command of it failed with code {}", self.code)
        } else {
            return None;
        };
        let log = self.text("log");
        let lines: Vec<&str> = log.lines().collect();
        let last = lines[lines.len().saturating_sub(25)..].join("\n");
        let calls: Vec<String> = self.calls().iter().map(Call::said).collect();
        Some(format!(
            "{}: {why}; its last commands:\n{last}\n{}\nstdout: {}\nthe guest's kernel:\n{}",
            self.name,
            calls.join("\n"),
            self.text("stdout"),
            self.text("dmesg"),
        ))
    }

    /// Returns itself if the script reached its end.
    ///
    /// # Panics
    /// If it did not: a failed set-up is never a pass.
    pub fn expect_done(self) -> Self {
        if let Some(failure) = self.failure() {
            panic!("{failure}");
        }
        self
    }

    /// What the guest could not remove after the script; empty if it is clean.
    pub fn unclean(&self) -> String {
        self.text("unclean").trim().to_owned()
    }

    /// Standard output of the script.
    pub fn stdout(&self) -> String {
        self.text("stdout")
    }

    /// Its commands as it ran them (`set -x`), with their standard error.
    pub fn log(&self) -> String {
        self.text("log")
    }

    /// Every call, in order.
    ///
    /// # Panics
    /// If the guest's list of calls cannot be parsed.
    pub fn calls(&self) -> Vec<Call> {
        let list = self.text("calls");
        list.lines()
            .map(|line| self.parse_call(line).unwrap_or_else(|| panic!("no line of a call: {line:?}")))
            .collect()
    }

    /// The call of this name.
    ///
    /// # Panics
    /// If the script made no such call.
    pub fn call(&self, name: &str) -> Call {
        let call = self.calls().into_iter().find(|call| call.name == name);
        call.unwrap_or_else(|| panic!("{} made no call {name}\n{}", self.name, self.log()))
    }

    /// A value that the script returned with `fact`.
    ///
    /// # Panics
    /// If it returned none of this name.
    pub fn fact(&self, name: &str) -> String {
        let key = format!("{name}.fact");
        assert!(self.files.contains_key(&key), "{} told no {name}\n{}", self.name, self.log());
        self.text(&key).trim().to_owned()
    }

    /// A file that the script left in `$OUT`.
    pub fn file(&self, name: &str) -> Option<&[u8]> {
        self.files.get(name).map(Vec::as_slice)
    }

    fn parse_call(&self, line: &str) -> Option<Call> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [name, code, start, end] = words[..] else { return None };
        let took = end.parse::<f64>().ok()? - start.parse::<f64>().ok()?;
        Some(Call {
            name: name.into(),
            code: code.parse().ok()?,
            stdout: self.text(&format!("{name}.out")),
            stderr: self.text(&format!("{name}.err")),
            took: Duration::try_from_secs_f64(took).ok()?,
        })
    }

    fn text(&self, name: &str) -> String {
        String::from_utf8_lossy(self.file(name).unwrap_or_default()).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(code: i32, files: &[(&str, &str)]) -> ScenarioOutcome {
        let files = files.iter().map(|(name, text)| ((*name).to_owned(), text.as_bytes().to_vec())).collect();
        ScenarioOutcome::new("row", code, Duration::ZERO, files)
    }

    #[test]
    fn calls_and_facts_are_taken_apart() {
        let files = [
            ("calls", "one 3 10.50 11.25\ntwo 0 11.25 11.30\n"),
            ("one.out", "{\"a\": 1}"),
            ("one.err", "error: no\n"),
            ("before.fact", "12ab\n"),
        ];
        let outcome = outcome(0, &files).expect_done();
        let one = outcome.call("one");
        assert_eq!((one.code, one.took, one.stderr.as_str()), (3, Duration::from_millis(750), "error: no\n"));
        assert_eq!(one.json()["a"], 1);
        assert_eq!(outcome.call("two").stdout, "");
        assert_eq!(outcome.fact("before"), "12ab");
        assert_eq!(outcome.unclean(), "");
    }

    #[test]
    #[should_panic(expected = "mkfs: woe")]
    fn a_set_up_that_fails_is_no_pass() {
        let _ = outcome(1, &[("log", "+ mkfs\nmkfs: woe\n")]).expect_done();
    }

    #[test]
    #[should_panic(expected = "its time was over")]
    fn neither_is_one_that_hangs() {
        let _ = outcome(0, &[("late", "")]).expect_done();
    }

    #[test]
    #[should_panic(expected = "made no call two")]
    fn a_call_that_was_not_made_is_no_pass() {
        let _ = outcome(0, &[("calls", "one 3 10.50 11.25\n")]).call("two");
    }
}
