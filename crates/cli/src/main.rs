//! The command line of rdsk: grammar, wiring, exit codes. It is the only crate that prints, and it measures nothing itself.
#![allow(rustdoc::broken_intra_doc_links, reason = "help has defaults in brackets, as clap writes them")]

mod cli_args;
mod commands;
mod compare;
mod completion;
mod dd;
mod exchange;
mod exit;
mod flush_clock;
mod forwarding;
mod grammar;
mod history;
mod html_page;
mod info;
mod interrupt;
mod json_file;
mod man_page;
mod measure;
mod measuring;
mod out;
mod output_args;
mod panic_hook;
mod progress;
mod ranks;
mod record_file;
mod same_place;
mod screen;
mod usage;
mod value;
mod watch;

use std::ffi::OsString;
use std::process::ExitCode;

fn main() -> ExitCode {
    rdsk_sys::memory::give_back_freed();
    panic_hook::install();
    if let Err(error) = rdsk_sys::start::restore_closed() {
        return ExitCode::from(out::failure(&out::unusable(&error)));
    }
    let words: Vec<OsString> = std::env::args_os().collect();
    let command = words.get(1).and_then(|word| word.to_str());
    if command == Some(commands::COMPLETE) {
        commands::complete(&words[2..]);
        return ExitCode::SUCCESS;
    }
    #[cfg(feature = "mpi")]
    if command == Some(ranks::GUARD) {
        ranks::guard();
        return ExitCode::SUCCESS;
    }
    // The output of a copy and that of a watched command are not ours; what is ours there, `out` keeps from devices.
    if !matches!(command, Some("dd" | "watch"))
        && let Err(problem) = out::check_streams()
    {
        return ExitCode::from(out::failure(&problem));
    }
    // dd leaves no file behind that a signal would leave, and ends as dd does.
    if command != Some("dd") {
        interrupt::survive_file_limits();
    }
    ExitCode::from(commands::run(&words))
}
