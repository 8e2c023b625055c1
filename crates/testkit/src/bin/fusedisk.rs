//! The disk of known behaviour as a program, for measurements by other programs: it serves one file, and a loop device over it,
//! until it is asked to stop. It touches no disk of the machine.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program for people at a terminal")]

use clap::Parser;
use rdsk_testkit::fusedisk::{Behaviour, Cost, FuseDisk, Zone};
use rdsk_units::{Bytes, Nanos};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::io;
use std::ops::Range;
use std::process::ExitCode;

/// A disk of known behaviour behind /dev/fuse.
///
/// Prints the file and, with --loop, the loop device. SIGINT, SIGTERM and SIGHUP end it.
#[derive(Debug, Parser)]
#[command(name = "fusedisk")]
struct Arguments {
    /// Size, such as 1G
    #[arg(long, value_name = "SIZE", default_value = "64M", value_parser = size)]
    capacity: u64,
    /// A range with a cost of its own, one request at a time: bytes per second (0-16M=50MB/s) or time per request (16M-32M=2ms)
    #[arg(long, value_name = "RANGE=RATE|TIME", value_parser = zone)]
    zone: Vec<Zone>,
    /// Attach a loop device with direct I/O
    #[arg(long = "loop")]
    with_loop: bool,
}

fn main() -> ExitCode {
    match serve(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn serve(arguments: &Arguments) -> io::Result<()> {
    // Before anything is mounted, so that no signal can leave a mount behind.
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])?;
    let behaviour = Behaviour { zones: arguments.zone.clone(), ..Behaviour::default() };
    let disk = FuseDisk::builder().device(behaviour).capacity(arguments.capacity).mount()?;
    println!("{}", disk.file().display());
    let device = if arguments.with_loop { Some(disk.loop_device()?) } else { None };
    if let Some(device) = &device {
        println!("{}", device.path().display());
    }
    signals.forever().next();
    Ok(())
}

fn size(text: &str) -> Result<u64, String> {
    Bytes::parse(text).map(|bytes| bytes.0).map_err(|error| format!("{error} ({})", error.hint()))
}

fn time(text: &str) -> Result<u64, String> {
    Nanos::parse(text).map(|nanos| nanos.0).map_err(|error| format!("{error} ({})", error.hint()))
}

fn pair<'text>(text: &'text str, separator: char, form: &str) -> Result<(&'text str, &'text str), String> {
    text.split_once(separator).ok_or_else(|| format!("is not of the form {form}"))
}

fn range(text: &str) -> Result<Range<u64>, String> {
    let (first, end) = pair(text, '-', "FIRST-END, such as 0-16M")?;
    let range = size(first)?..size(end)?;
    if range.is_empty() { Err("is empty: its end is not behind its first byte".into()) } else { Ok(range) }
}

fn zone(text: &str) -> Result<Zone, String> {
    let (place, cost) = pair(text, '=', "RANGE=RATE or RANGE=TIME")?;
    let cost = match cost.strip_suffix("/s") {
        Some(bytes) => match size(bytes)? {
            0 => return Err("a rate of 0 never ends".into()),
            bytes => Cost::Rate(bytes as f64),
        },
        None => Cost::Latency(time(cost)?),
    };
    Ok(Zone { range: range(place)?, cost })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments(words: &str) -> Result<Arguments, clap::Error> {
        Arguments::try_parse_from(std::iter::once("fusedisk").chain(words.split_whitespace()))
    }

    #[test]
    fn words_become_zones() {
        let zones = arguments("--zone 0-16M=50MB/s --zone 16M-32M=2ms").unwrap().zone;
        let expected = Behaviour::default().zone_rate(0..16 << 20, 5e7);
        assert_eq!(zones, expected.zone_latency(16 << 20..32 << 20, 2_000_000).zones);
    }

    #[test]
    fn nonsense_is_refused() {
        for words in
            ["--zone 0-16M", "--zone 0-16M=0MB/s", "--zone 16M-0=1ms", "--zone 5=1ms", "--capacity many"]
        {
            assert!(arguments(words).is_err(), "{words}");
        }
    }
}
