//! `--resume`: which Record a run goes on with, and which command line that means. Whether it can go on with it is up to
//! `experiment`.

use crate::cli_args::CliArgs;
use crate::parse::{Parsed, parse};
use crate::record_file;
use crate::subcommand::MEASURING;
use rdsk_model::{OUTPUT_FLAGS, Problem, ProblemKind, Record};
use rdsk_units::printable;
use std::ffi::OsString;

/// The arguments that count, and the Record that the run goes on with, if any.
///
/// # Errors
/// When the Record cannot be found or read, or its command line does not say what to measure.
pub(crate) fn resumed(args: &CliArgs) -> Result<(CliArgs, Option<Box<Record>>), Problem> {
    let Some(word) = &args.resume else { return Ok((args.clone(), None)) };
    let earlier = record_file::named(word, "--resume", "no-resume")?;
    // With flags of output alone, the command line of the earlier run counts.
    let is_of_output = |flag: &&str| OUTPUT_FLAGS.iter().any(|known| known.name == *flag);
    let says_what = !args.targets.is_empty() || !args.given.iter().all(is_of_output);
    let mut args = if says_what { args.clone() } else { replayed(args, &earlier)? };
    // A new test file is as large as the one that is gone.
    if args.size_bytes.is_none() {
        let made = earlier.targets.iter().find(|target| target.made_by_rdsk);
        args.size_bytes = made.map(|target| target.size_bytes);
    }
    Ok((args, Some(Box::new(earlier))))
}

/// The arguments of the earlier run, with the output that is wanted now.
fn replayed(args: &CliArgs, earlier: &Record) -> Result<CliArgs, Problem> {
    let id = printable(&earlier.id);
    let unclear = |why: String| {
        let hint = "name the target and the flags of that run beside --resume";
        Problem::new(ProblemKind::Usage, "no-resume", format!("run {id} cannot go on by itself: {why}"), hint)
    };
    let words: Vec<OsString> = earlier.command.iter().map(OsString::from).collect();
    let then = match parse(&words) {
        Ok(Parsed::Args(then)) if MEASURING.contains(&then.subcommand) => *then,
        _ => return Err(unclear("its command line is not understood".into())),
    };
    if then.subcommand != args.subcommand {
        return Err(unclear(format!("it is one of rdsk {}", then.subcommand.name)));
    }
    if then.resume.is_some() {
        return Err(unclear("it went on with another run".into()));
    }
    // Permission to overwrite something is given once, not for ever.
    if then.has("overwrite") || then.has("destroy") {
        return Err(unclear("it was allowed to write to its target".into()));
    }
    Ok(CliArgs {
        resume: args.resume.clone(),
        history: args.history.clone(),
        json: args.json.clone(),
        forms: args.forms.clone(),
        compactness: args.compactness,
        run_mode: args.run_mode,
        label: args.label.clone().or(then.label),
        verbosity: args.verbosity,
        detail: args.detail,
        color: args.color,
        charset: args.charset,
        ..then
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flags::testing::parsed;
    use rdsk_experiment::failed_record;

    fn record(command: &str) -> Record {
        let words = command.split(' ').map(str::to_owned).collect();
        failed_record(words, Some("then".into()), Problem::plain(ProblemKind::Interrupted, "x", "x"))
    }

    #[test]
    fn the_command_line_of_the_earlier_run_counts_with_the_output_of_now() {
        let now = parsed(&["run", "--resume", "last", "--quiet"]).unwrap();
        let args =
            replayed(&now, &record("rdsk run sim:wd2500 --budget 7s --label then --json old.json")).unwrap();
        assert_eq!((args.targets, args.options.budget_ns), (vec!["sim:wd2500".to_owned()], 7_000_000_000));
        assert_eq!((args.label.as_deref(), args.json), (Some("then"), None));
        assert_eq!(args.verbosity, now.verbosity);
    }

    #[test]
    fn a_command_line_that_would_not_mean_the_same_is_not_repeated() {
        let now = parsed(&["run", "--resume", "last"]).unwrap();
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
