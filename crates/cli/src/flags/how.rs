//! Flags that say how the I/O is issued: depth, threads, engine, processors, seed.

use super::{Flag, listed, many, one, value, valued};
use crate::cli_args::CliArgs;
use crate::subcommand::Subcommand;
use clap::{Arg, ArgMatches};

/// Deepest queue of one stream; devices take at most a few thousand requests (NVMe: 65 536 by its standard, 1023 in
/// Linux's default).
const MAX_DEPTH: u32 = 4096;

/// Most threads.
const MAX_STREAMS: u32 = 1024;

/// `--iodepth`
pub(super) struct Iodepth;

impl Flag for Iodepth {
    fn name(&self) -> &'static str {
        "iodepth"
    }
    fn subcommands(&self) -> &'static [Subcommand] {
        &[Subcommand::Run, Subcommand::Stream]
    }
    fn arg(&self) -> Arg {
        valued(self.name(), "N", "I/Os in flight: of the headline's deep cells (32), of a direct stream (1)")
            .value_parser(|text: &str| value::count(text, MAX_DEPTH))
    }
    fn read(&self, matches: &ArgMatches, args: &mut CliArgs) {
        args.options.queue_depth = one(matches, self.name());
    }
}

/// `--streams`
pub(super) struct Streams;

impl Flag for Streams {
    fn name(&self) -> &'static str {
        "streams"
    }
    fn subcommands(&self) -> &'static [Subcommand] {
        &[Subcommand::Stream, Subcommand::Scale]
    }
    fn arg(&self) -> Arg {
        listed(
            self.name(),
            "N,...",
            "Threads that issue I/O, each on its own part [default: 1; of scale: 1,3,10]",
        )
        .value_parser(|text: &str| value::count(text, MAX_STREAMS))
    }
    fn read(&self, matches: &ArgMatches, args: &mut CliArgs) {
        args.options.stream_counts = many(matches, self.name());
    }
}

/// `--engine`
pub(super) struct Engine;

impl Flag for Engine {
    fn name(&self) -> &'static str {
        "engine"
    }
    fn subcommands(&self) -> &'static [Subcommand] {
        Subcommand::WITH_ENGINES
    }
    fn arg(&self) -> Arg {
        valued(
            self.name(),
            "ENGINE",
            "Who issues the I/O: sync, threads, aio or io_uring [default: sync for one in flight, io_uring for more]",
        )
        .value_parser(|text: &str| value::engine(text))
    }
    fn read(&self, matches: &ArgMatches, args: &mut CliArgs) {
        args.options.engine = one(matches, self.name());
    }
}

/// `--pin`
pub(super) struct Pin;

impl Flag for Pin {
    fn name(&self) -> &'static str {
        "pin"
    }
    fn subcommands(&self) -> &'static [Subcommand] {
        Subcommand::MEASURING
    }
    fn arg(&self) -> Arg {
        valued(self.name(), "CPULIST", "Processors for the streams, one after the other, such as 0-3,8")
            .value_parser(|text: &str| value::cpu_list(text))
    }
    fn read(&self, matches: &ArgMatches, args: &mut CliArgs) {
        if let Some(cpus) = one(matches, self.name()) {
            args.options.pin_cpus = cpus;
        }
    }
}

/// `--seed`
pub(super) struct Seed;

impl Flag for Seed {
    fn name(&self) -> &'static str {
        "seed"
    }
    fn subcommands(&self) -> &'static [Subcommand] {
        Subcommand::MEASURING
    }
    fn arg(&self) -> Arg {
        valued(self.name(), "N", "Seed of offsets and data; the same seed, the same offsets [default: 1]")
            .value_parser(|text: &str| value::whole(text))
    }
    fn read(&self, matches: &ArgMatches, args: &mut CliArgs) {
        if let Some(seed) = one(matches, self.name()) {
            args.options.seed = seed;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{parsed, refuses};
    use rdsk_model::EngineKind;

    const BAD_COUNTS: &[&str] =
        &["", "0", "-1", "1.5", "4k", "99999999999999999999", "5000", "many", "--json"];

    #[test]
    fn iodepth() {
        assert_eq!(parsed(&["run", "--iodepth", "128"]).unwrap().options.queue_depth, Some(128));
        refuses("run", "--iodepth", BAD_COUNTS);
    }

    #[test]
    fn streams() {
        assert_eq!(parsed(&["stream", "--streams", "10"]).unwrap().options.stream_counts, Some(vec![10]));
        refuses("stream", "--streams", BAD_COUNTS);
    }

    #[test]
    fn engine() {
        assert_eq!(parsed(&["run", "--engine", "uring"]).unwrap().options.engine, Some(EngineKind::Uring));
        assert_eq!(parsed(&["align", "--engine", "sync"]).unwrap().options.engine, Some(EngineKind::Sync));
        for (word, engine) in
            [("aio", EngineKind::Aio), ("threads", EngineKind::Threads), ("io_uring", EngineKind::Uring)]
        {
            assert_eq!(parsed(&["run", "--engine", word]).unwrap().options.engine, Some(engine));
        }
        refuses("run", "--engine", &["", "sim", "libaio", "-1", "0"]);
    }

    #[test]
    fn pin() {
        assert_eq!(parsed(&["stream", "--pin", "0"]).unwrap().options.pin_cpus, [0]);
        refuses("stream", "--pin", &["", "-1", "x", "3-1", "0,", "8000", "99999999999999999999"]);
    }

    #[test]
    fn seed() {
        assert_eq!(parsed(&["run", "--seed", "0"]).unwrap().options.seed, 0);
        refuses("run", "--seed", &["", "-1", "x", "1.5", "99999999999999999999"]);
    }
}
