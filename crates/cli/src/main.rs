//! The command line of rdsk: flags, wiring, exit codes. It is the only crate that prints, and it measures nothing itself.

mod cli_args;
mod compare;
mod completion;
mod dd;
mod exchange;
mod exit;
mod flags;
mod flush_clock;
mod for_shells;
mod forwarding;
mod history;
mod html_page;
mod info;
mod input_file;
mod interrupt;
mod json_file;
mod man_page;
mod measure;
mod out;
mod own_command;
mod panic_hook;
mod parse;
mod progress;
mod record_file;
mod resume;
mod same_place;
mod schema;
mod screen;
mod show;
mod sim;
mod subcommand;
mod watch;

use crate::json_file::Sink;
use crate::parse::Parsed;
use crate::subcommand::{INFO, OwnCommand, SHOW, SIM};
use rdsk_model::Problem;
use std::ffi::OsString;
use std::process::ExitCode;

fn main() -> ExitCode {
    rdsk_sys::memory::give_back_freed();
    panic_hook::install();
    if let Err(error) = rdsk_sys::start::restore_closed() {
        return ExitCode::from(out::failure(&out::unusable(&error)));
    }
    let words: Vec<OsString> = std::env::args_os().collect();
    if words.get(1).is_some_and(|word| word == for_shells::COMPLETE) {
        return ExitCode::from(for_shells::complete(&words[2..]));
    }
    let own = words.get(1).and_then(|word| OwnCommand::named(word));
    // The output of a copy and that of a watched command are not ours; what is ours there, `out` keeps from devices.
    if !matches!(own, Some(OwnCommand::Dd | OwnCommand::Watch))
        && let Err(problem) = out::check_streams()
    {
        return ExitCode::from(out::failure(&problem));
    }
    // dd leaves no file behind that a signal would leave, and ends as dd does.
    if own != Some(OwnCommand::Dd) {
        interrupt::survive_file_limits();
    }
    let its_words = words.get(1..).unwrap_or_default();
    ExitCode::from(match own {
        Some(OwnCommand::List) => history::list(its_words),
        Some(OwnCommand::Compare) => compare::run(its_words),
        Some(OwnCommand::Report) => html_page::run(its_words),
        Some(OwnCommand::Export) => exchange::export(its_words),
        Some(OwnCommand::Import) => exchange::import(its_words),
        Some(OwnCommand::Delete) => history::delete(its_words),
        Some(OwnCommand::Dd) => dd::run(its_words, command(&words)),
        Some(OwnCommand::Watch) => watch::run(its_words),
        Some(OwnCommand::Schema) => schema::run(its_words),
        Some(OwnCommand::Completions) => for_shells::completions(its_words),
        Some(OwnCommand::Man) => for_shells::man(its_words),
        None => run(&words),
    })
}

/// Runs a command line whose flags are those of `flags`, or one of no command.
fn run(words: &[OsString]) -> u8 {
    match parse::parse(words) {
        Ok(Parsed::Text(text)) => {
            out::data(&text).map_or_else(|problem| out::failure(&problem), |()| exit::DONE)
        }
        Ok(Parsed::Args(args)) if args.subcommand == &INFO => info::show(&args),
        Ok(Parsed::Args(args)) if args.subcommand == &SIM => sim::show(&args),
        Ok(Parsed::Args(args)) if args.subcommand == &SHOW => show::show(&args, command(words)),
        Ok(Parsed::Args(args)) => measure::measure(&args, command(words)),
        Err(problem) => misused(&problem, words),
    }
}

/// Reports a usage error, in the document too if one was requested.
fn misused(problem: &Problem, words: &[OsString]) -> u8 {
    if let Some(place) = parse::json_place(words)
        && let Ok(sink) = Sink::prepare(&place, &[])
    {
        json_file::output_failure(Some(&sink), || match parse::subcommand_of(words) {
            Some(subcommand) if subcommand == &INFO => info::document(&[], Some(problem)),
            _ => {
                let record = rdsk_experiment::failed_record(command(words), None, problem.clone());
                rdsk_report::json(&record, rdsk_report::Compactness::Full)
            }
        });
    }
    out::failure(problem)
}

/// The command line as text, for the Record.
fn command(words: &[OsString]) -> Vec<String> {
    words.iter().map(|word| word.to_string_lossy().into_owned()).collect()
}
