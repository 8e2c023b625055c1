//! The command line of rdsk: flags, wiring, exit codes. It is the only crate that prints, and it measures nothing itself.

mod cli_args;
mod compare;
mod dd;
mod exchange;
mod exit;
mod flags;
mod flush_clock;
mod forwarding;
mod history;
mod html_page;
mod info;
mod input_file;
mod interrupt;
mod json_file;
mod measure;
mod out;
mod panic_hook;
mod parse;
mod progress;
mod record_file;
mod resume;
mod screen;
mod show;
mod sim;
mod subcommand;
mod watch;

use crate::json_file::Sink;
use crate::parse::Parsed;
use crate::subcommand::{INFO, SHOW, SIM};
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
    if words.get(1).is_some_and(|word| word == "dd") {
        return ExitCode::from(dd::run(&words[2..], command(&words)));
    }
    // dd leaves no file behind that a signal would leave, and ends as dd does.
    interrupt::survive_file_limits();
    if words.get(1).is_some_and(|word| word == "watch") {
        return ExitCode::from(watch::run(&words[1..]));
    }
    if words.get(1).is_some_and(|word| word == "list" || word == "delete") {
        return ExitCode::from(history::run(&words[1..]));
    }
    if words.get(1).is_some_and(|word| word == "compare") {
        return ExitCode::from(compare::run(&words[1..]));
    }
    if let Some(code) = words.get(1).and_then(|word| exchange::run(word, &words[1..])) {
        return ExitCode::from(code);
    }
    if words.get(1).is_some_and(|word| word == "report") {
        return ExitCode::from(html_page::run(&words[1..]));
    }
    let code = match parse::parse(&words) {
        Ok(Parsed::Text(text)) => {
            out::data(&text).map_or_else(|problem| out::failure(&problem), |()| exit::DONE)
        }
        Ok(Parsed::Args(args)) if args.subcommand == &INFO => info::show(&args),
        Ok(Parsed::Args(args)) if args.subcommand == &SIM => sim::show(&args),
        Ok(Parsed::Args(args)) if args.subcommand == &SHOW => show::show(&args, command(&words)),
        Ok(Parsed::Args(args)) => measure::measure(&args, command(&words)),
        Err(problem) => misused(&problem, &words),
    };
    ExitCode::from(code)
}

/// Reports a usage error, in the document too if one was requested.
fn misused(problem: &Problem, words: &[OsString]) -> u8 {
    if let Some(place) = parse::json_place(words)
        && let Ok(sink) = Sink::prepare(&place, &[])
    {
        let document = match parse::subcommand_of(words) {
            Some(subcommand) if subcommand == &INFO => info::document(&[], Some(problem)),
            _ => {
                let record = rdsk_experiment::failed_record(command(words), None, problem.clone());
                rdsk_report::json(&record, rdsk_report::Compactness::Full)
            }
        };
        // The usage error matters more than a document that could not be written.
        let _ = sink.write(&document);
    }
    out::failure(problem)
}

/// The command line as text, for the Record.
fn command(words: &[OsString]) -> Vec<String> {
    words.iter().map(|word| word.to_string_lossy().into_owned()).collect()
}
