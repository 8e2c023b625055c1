//! `--resume`: which Record a run goes on with, and which command line that means. Whether it can go on with it is up to
//! `experiment`.

use crate::grammar::Parsed;
use crate::measuring::{self, Measurement};
use crate::record_file;
use rdsk_model::{Problem, ProblemKind, Record};
use rdsk_units::printable;
use std::ffi::OsString;

/// The arguments that count, and the Record that the run goes on with, if any.
///
/// # Errors
/// When the Record cannot be found or read, or its command line does not say what to measure.
pub(crate) fn resumed(asked: &Measurement) -> Result<(Measurement, Option<Box<Record>>), Problem> {
    let Some(word) = &asked.common.run.resume else { return Ok((asked.clone(), None)) };
    let earlier = record_file::named(word, "--resume", "no-resume")?;
    // With flags of output alone, the command line of the earlier run counts.
    let mut asked = if asked.says_what { asked.clone() } else { replayed(asked, &earlier)? };
    // A new test file is as large as the one that is gone.
    if asked.common.size.is_none() {
        let made = earlier.targets.iter().find(|target| target.made_by_rdsk);
        asked.common.size = made.map(|target| target.size_bytes);
    }
    Ok((asked, Some(Box::new(earlier))))
}

/// What the earlier run measured, with the output that is wanted now.
fn replayed(now: &Measurement, earlier: &Record) -> Result<Measurement, Problem> {
    let id = printable(&earlier.id);
    let unclear = |why: String| {
        let hint = "name the target and the flags of that run beside --resume";
        Problem::new(ProblemKind::Usage, "no-resume", format!("run {id} cannot go on by itself: {why}"), hint)
    };
    let words: Vec<OsString> = earlier.command.iter().map(OsString::from).collect();
    let mut then = match measuring::parse(&words) {
        Ok(Parsed::Line(then, _)) => then,
        _ => return Err(unclear("its command line is not understood".into())),
    };
    if then.command != now.command {
        return Err(unclear(format!("it is one of rdsk {}", then.command)));
    }
    if then.common.run.resume.is_some() {
        return Err(unclear("it went on with another run".into()));
    }
    // Permission to overwrite something is given once, not for ever.
    if then.common.may_overwrite() {
        return Err(unclear("it was allowed to write to its target".into()));
    }
    let label = then.common.run.label.take();
    then.common.output = now.common.output.clone();
    then.common.run = now.common.run.clone();
    then.common.run.label = then.common.run.label.or(label);
    Ok(Measurement { detail: now.detail, says_what: now.says_what, ..then })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rdsk_experiment::failed_record;

    fn parsed(line: &str) -> Measurement {
        let words: Vec<OsString> = line.split(' ').map(Into::into).collect();
        let Parsed::Line(asked, _) = measuring::parse(&words).unwrap() else { panic!("{line}") };
        asked
    }

    fn record(command: &str) -> Record {
        let words = command.split(' ').map(str::to_owned).collect();
        failed_record(words, Some("then".into()), Problem::plain(ProblemKind::Interrupted, "x", "x"))
    }

    #[test]
    fn the_command_line_of_the_earlier_run_counts_with_the_output_of_now() {
        let now = parsed("rdsk run --resume last --quiet");
        let asked =
            replayed(&now, &record("rdsk run sim:wd2500 --budget 7s --label then --json old.json")).unwrap();
        assert!(!now.says_what && parsed("rdsk run --resume last --seed 1").says_what);
        let common = asked.common;
        assert_eq!(
            (&common.targets[..], asked.options.budget_ns),
            (&["sim:wd2500".to_owned()][..], 7_000_000_000)
        );
        assert_eq!((common.run.label.as_deref(), common.output.json()), (Some("then"), None));
        assert_eq!(common.verbosity(), now.common.verbosity());
    }

    #[test]
    fn a_command_line_that_would_not_mean_the_same_is_not_repeated() {
        let now = parsed("rdsk run --resume last");
        for (command, why) in [
            ("rdsk zones sim:wd2500", "rdsk zones"),
            ("rdsk run --resume 01ABCDEF", "another run"),
            ("rdsk run /dev/sdb --destroy X", "allowed to write"),
            ("rdsk run file --overwrite", "allowed to write"),
            ("rdsk dd if=a of=b", "not understood"),
            ("rdsk run --nonsense", "not understood"),
        ] {
            let problem = replayed(&now, &record(command)).unwrap_err();
            assert!(problem.message.contains(why) && problem.hint.is_some(), "{command}: {problem}");
        }
    }
}
