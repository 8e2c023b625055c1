//! Flags of the questions about places and streams: how many positions and passes, in which order, how streams start.

use super::{Flag, one, switch, value, valued};
use crate::cli_args::CliArgs;
use crate::subcommand::Subcommand;
use clap::{Arg, ArgMatches};
use rdsk_experiment::{PositionOrder, Positions};
use rdsk_model::StreamRange;
use rdsk_units::Nanos;
use std::path::PathBuf;

/// Most positions: with ten passes a Record of more is no document any more.
const MAX_POINTS: u32 = 500_000;
/// Most passes.
const MAX_RUNS: u32 = 10_000;
/// Longest pause between the starts of two streams: an hour.
const MAX_STAGGER: Nanos = Nanos(3_600_000_000_000);
/// The words of `--order`.
const ORDERS: [&str; 2] = ["shuffled", "ascending"];

/// `--points`
pub(super) struct Points;

impl Flag for Points {
    fn name(&self) -> &'static str {
        "points"
    }
    fn subcommands(&self) -> &'static [Subcommand] {
        &[Subcommand::Zones, Subcommand::Stripe]
    }
    fn arg(&self) -> Arg {
        valued(
            self.name(),
            "N",
            "Positions that each pass of zones visits [default: as the budget allows, up to 200]; of stripe, requests \
             [default: 1500]",
        )
            .value_parser(|text: &str| value::count(text, MAX_POINTS))
    }
    fn read(&self, matches: &ArgMatches, args: &mut CliArgs) {
        if let Some(count) = one::<u32>(matches, self.name()) {
            args.options.positions = Positions::Count(u64::from(count));
        }
    }
}

/// `--full`
pub(super) struct Full;

impl Flag for Full {
    fn name(&self) -> &'static str {
        "full"
    }
    fn subcommands(&self) -> &'static [Subcommand] {
        &[Subcommand::Zones]
    }
    fn arg(&self) -> Arg {
        switch(self.name(), "Visit every block of the target in each pass, however long it takes")
    }
    fn read(&self, matches: &ArgMatches, args: &mut CliArgs) {
        if matches.get_flag(self.name()) {
            args.options.positions = Positions::Full;
        }
    }
}

/// `--runs`
pub(super) struct Runs;

impl Flag for Runs {
    fn name(&self) -> &'static str {
        "runs"
    }
    fn subcommands(&self) -> &'static [Subcommand] {
        &[Subcommand::Zones]
    }
    fn arg(&self) -> Arg {
        valued(
            self.name(),
            "N",
            "Complete passes over the positions [default: as the budget allows, up to 10]",
        )
        .value_parser(|text: &str| value::count(text, MAX_RUNS))
    }
    fn read(&self, matches: &ArgMatches, args: &mut CliArgs) {
        args.options.runs = one(matches, self.name());
    }
}

/// `--order`
pub(super) struct Order;

impl Flag for Order {
    fn name(&self) -> &'static str {
        "order"
    }
    fn subcommands(&self) -> &'static [Subcommand] {
        &[Subcommand::Zones]
    }
    fn arg(&self) -> Arg {
        valued(self.name(), "ORDER", "Order of the positions: shuffled or ascending [default: shuffled]")
            .value_parser(|text: &str| value::one_of(text, &ORDERS))
    }
    fn read(&self, matches: &ArgMatches, args: &mut CliArgs) {
        if let Some(order) = one::<String>(matches, self.name()) {
            args.options.position_order =
                if order == ORDERS[1] { PositionOrder::Ascending } else { PositionOrder::Shuffled };
        }
    }
}

/// `--resume`
pub(super) struct Resume;

impl Flag for Resume {
    fn name(&self) -> &'static str {
        "resume"
    }
    fn subcommands(&self) -> &'static [Subcommand] {
        &[Subcommand::Zones]
    }
    fn arg(&self) -> Arg {
        valued(self.name(), "FILE", "Go on with the passes of an interrupted record (a file of --json)")
            .value_parser(|text: &str| value::path(text))
    }
    fn read(&self, matches: &ArgMatches, args: &mut CliArgs) {
        args.resume = one::<PathBuf>(matches, self.name());
    }
}

/// `--stagger`
pub(super) struct Stagger;

impl Flag for Stagger {
    fn name(&self) -> &'static str {
        "stagger"
    }
    fn subcommands(&self) -> &'static [Subcommand] {
        &[Subcommand::Scale]
    }
    fn arg(&self) -> Arg {
        valued(self.name(), "TIME", "Time between two starts; 0s starts all at once [default: up to 5s]")
            .value_parser(|text: &str| value::time_or_zero_ns(text, MAX_STAGGER))
    }
    fn read(&self, matches: &ArgMatches, args: &mut CliArgs) {
        args.options.stagger_ns = one(matches, self.name());
    }
}

/// `--shared-range`
pub(super) struct SharedRange;

impl Flag for SharedRange {
    fn name(&self) -> &'static str {
        "shared-range"
    }
    fn subcommands(&self) -> &'static [Subcommand] {
        &[Subcommand::Scale]
    }
    fn arg(&self) -> Arg {
        switch(self.name(), "Let the streams of a target all go over the whole of it, not each over a part")
    }
    fn read(&self, matches: &ArgMatches, args: &mut CliArgs) {
        if matches.get_flag(self.name()) {
            args.options.range = StreamRange::Shared;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{parsed, refuses};
    use super::*;

    #[test]
    fn places() {
        assert_eq!(parsed(&["zones"]).unwrap().options.positions, Positions::Default);
        assert_eq!(parsed(&["zones", "--points", "50"]).unwrap().options.positions, Positions::Count(50));
        assert_eq!(parsed(&["zones", "--full"]).unwrap().options.positions, Positions::Full);
        assert!(parsed(&["zones", "--full", "--points", "5"]).is_err());
        refuses("zones", "--points", &["", "0", "-1", "x", "1e3", "99999999999"]);
        refuses("zones", "--runs", &["", "0", "-1", "ten"]);
    }

    #[test]
    fn order_and_streams() {
        let order = |word| parsed(&["zones", "--order", word]).unwrap().options.position_order;
        assert_eq!(
            (order("ascending"), order("shuffled")),
            (PositionOrder::Ascending, PositionOrder::Shuffled)
        );
        refuses("zones", "--order", &["", "random", "asc"]);
        let scale = parsed(&["scale", "--stagger", "0s", "--shared-range", "--streams", "1,4"]).unwrap();
        assert_eq!(scale.options.stagger_ns, Some(0));
        assert_eq!(scale.options.range, StreamRange::Shared);
        assert_eq!(scale.options.stream_counts, Some(vec![1, 4]));
        refuses("scale", "--stagger", &["", "-1s", "soon", "5000h"]);
    }
}
