//! The command line of rdsk: flags, wiring, exit codes. It is the only room that prints, and it measures nothing itself.

mod args;
mod broken;
mod exit;
mod failure;
mod flags;
mod flush_clock;
mod info;
mod interrupt;
mod json_file;
mod measure;
mod out;
mod progress;
mod sim;
mod verb;
mod wanted;

use crate::args::Parsed;
use crate::json_file::Sink;
use crate::verb::Verb;
use rdsk_model::Problem;
use std::ffi::OsString;
use std::process::ExitCode;

fn main() -> ExitCode {
    rdsk_sys::memory::give_back_freed();
    broken::install();
    interrupt::survive_file_limits();
    let words: Vec<OsString> = std::env::args_os().collect();
    let code = match args::parse(&words) {
        Ok(Parsed::Text(text)) => match out::data(&text) {
            Ok(_) => exit::DONE,
            Err(problem) => {
                out::problem(&problem);
                exit::of(problem.kind)
            }
        },
        Ok(Parsed::Wanted(wanted)) => match wanted.verb {
            Verb::Info => info::show(&wanted),
            Verb::Sim => sim::show(&wanted),
            _ => measure::measure(&wanted, command(&words)),
        },
        Err(problem) => misused(&problem, &words),
    };
    ExitCode::from(code)
}

/// A command line that makes no sense: says why, in the document too where one was asked for.
fn misused(problem: &Problem, words: &[OsString]) -> u8 {
    if let Some(place) = args::json_place(words)
        && let Ok(sink) = Sink::prepare(&place, &[])
    {
        let document = match args::verb(words) {
            Some(Verb::Info) => info::document(&[], Some(problem)),
            _ => {
                let record = failure::failed_record(command(words), None, problem.clone());
                rdsk_report::json(&record, rdsk_report::Compactness::Full)
            }
        };
        // The mistake is what to tell; that its document found no place is of less weight.
        let _ = sink.write(&document);
    }
    out::problem(problem);
    exit::of(problem.kind)
}

/// The command line as text, for the Record.
fn command(words: &[OsString]) -> Vec<String> {
    words.iter().map(|word| word.to_string_lossy().into_owned()).collect()
}
