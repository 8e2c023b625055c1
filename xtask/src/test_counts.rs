//! Counts tests from the output of test programs, and combines them with the skips that tests noted. It runs nothing.

use std::collections::BTreeSet;

/// The counts that test programs printed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct TestCounts {
    /// Tests that ran to their end, those included that skipped themselves.
    pub(crate) passed: u64,
    /// Tests that failed.
    pub(crate) failed: u64,
    /// Tests marked `#[ignore]`.
    pub(crate) ignored: u64,
    /// Tests that were announced, `running 7 tests`.
    pub(crate) announced: u64,
    /// Results that were printed, one for each test program.
    pub(crate) results: u64,
    /// Names of the failed ones, as printed, behind those of their programs once [`Self::add`] has put several together.
    pub(crate) failures: Vec<String>,
}

impl TestCounts {
    /// Parses one line of a test program's output.
    pub(crate) fn line(&mut self, line: &str) {
        let line = line.trim();
        if let Some(rest) = line.strip_prefix("test result:") {
            self.passed += number_before(rest, " passed");
            self.failed += number_before(rest, " failed");
            self.ignored += number_before(rest, " ignored");
            self.results += 1;
        } else if let Some(rest) = line.strip_prefix("running ")
            && (line.ends_with(" tests") || line.ends_with(" test"))
        {
            self.announced +=
                rest.split(' ').next().and_then(|digits| digits.parse::<u64>().ok()).unwrap_or(0);
        } else if let Some(name) =
            line.strip_prefix("test ").and_then(|rest| rest.strip_suffix(" ... FAILED"))
        {
            self.failures.push(name.to_owned());
        }
    }

    /// Adds what a test program counted. Its failed tests get its name, and one that failed without naming a test, since it died,
    /// hung or was never built, counts as one failed test: that is a failure, not silence.
    pub(crate) fn add(&mut self, program: &str, its: &Self, failure: Option<&str>) {
        self.passed += its.passed;
        self.failed += its.failed;
        self.ignored += its.ignored;
        self.failures.extend(its.failures.iter().map(|name| format!("{program}: {name}")));
        if let Some(why) = failure
            && its.failed == 0
        {
            self.failed += 1;
            self.failures.push(format!("{program}: {why}"));
        }
    }

    /// What contradicts a program that says it succeeded: no result at all, announced tests without a result, or failed ones.
    pub(crate) fn contradiction(&self) -> Option<String> {
        let told = self.passed + self.failed + self.ignored;
        if self.results == 0 {
            Some("it ended without a result".into())
        } else if self.failed > 0 {
            Some(format!("it succeeded, and tells of {} failed tests", self.failed))
        } else {
            (told < self.announced)
                .then(|| format!("it announced {} tests and tells of {told}", self.announced))
        }
    }

    /// Passed, failed and skipped as users understand it: a test that skipped itself did not pass. `skips` are the lines
    /// that tests noted: `SKIPPED NAME: reason`.
    pub(crate) fn totals(&self, skips: &[String]) -> String {
        // One test may note several needs; it is one skipped test.
        let names: BTreeSet<&str> =
            skips.iter().map(|line| line.split(": ").next().unwrap_or(line)).collect();
        let aloud = u64::try_from(names.len()).expect("a count of lines fits").min(self.passed);
        let (passed, skipped) = (self.passed - aloud, self.ignored + aloud);
        format!("{passed} passed, {} failed, {skipped} skipped", self.failed)
    }
}

fn number_before(text: &str, word: &str) -> u64 {
    let before = text.split(word).next().filter(|before| before.len() < text.len());
    before
        .and_then(|before| before.rsplit([' ', ';']).next())
        .and_then(|digits| digits.parse().ok())
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(lines: &[&str]) -> TestCounts {
        let mut counts = TestCounts::default();
        lines.iter().for_each(|line| counts.line(line));
        counts
    }

    #[test]
    fn results_of_all_programs_are_added() {
        let found = counts(&[
            "running 7 tests",
            "test a::b ... ok",
            "test a::c ... FAILED",
            "test result: FAILED. 4 passed; 1 failed; 2 ignored; 0 measured; 0 filtered out; finished in 0.10s",
            "test result: ok. 10 passed; 0 failed; 0 ignored; 0 measured; 3 filtered out",
        ]);
        assert_eq!((found.passed, found.failed, found.ignored), (14, 1, 2));
        assert_eq!((found.announced, found.results), (7, 2));
        assert_eq!(found.failures, vec!["a::c"]);
    }

    #[test]
    fn a_test_that_skipped_itself_did_not_pass() {
        let found = counts(&["test result: ok. 5 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out"]);
        let skips = ["SKIPPED a: needs root: no".to_owned(), "SKIPPED a: needs fio: no".to_owned()];
        assert_eq!(found.totals(&skips), "4 passed, 0 failed, 2 skipped");
        assert_eq!(found.totals(&[]), "5 passed, 0 failed, 1 skipped");
    }

    #[test]
    fn programs_are_added_under_their_names() {
        let mut all = TestCounts::default();
        let good = counts(&["test result: ok. 5 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out"]);
        let bad = counts(&[
            "test a::b ... FAILED",
            "test result: FAILED. 2 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out",
        ]);
        all.add("one", &good, None);
        all.add("two", &bad, Some("exit status: 101"));
        // It died before it could say what failed.
        all.add("three", &counts(&["test a::c ... ok"]), Some("signal: 9"));
        assert_eq!((all.passed, all.failed, all.ignored), (7, 2, 1));
        assert_eq!(all.failures, ["two: a::b", "three: signal: 9"]);
    }

    #[test]
    fn a_success_without_its_results_is_none() {
        let whole = ["running 2 tests", "test result: ok. 1 passed; 0 failed; 1 ignored; 0 measured"];
        assert_eq!(counts(&whole).contradiction(), None);
        assert_eq!(counts(&whole[1..]).contradiction(), None);
        assert_eq!(counts(&whole[..1]).contradiction().unwrap(), "it ended without a result");
        let cut = ["running 2 tests", "running 1 test", whole[1]];
        assert_eq!(counts(&cut).contradiction().unwrap(), "it announced 3 tests and tells of 2");
        let failed = ["test result: FAILED. 1 passed; 1 failed; 0 ignored"];
        assert_eq!(counts(&failed).contradiction().unwrap(), "it succeeded, and tells of 1 failed tests");
    }

    #[test]
    fn other_lines_count_nothing() {
        assert_eq!(
            counts(&["5 passed; 1 failed", "test result", "", "note: test result: 3 passed"]),
            TestCounts::default()
        );
    }
}
