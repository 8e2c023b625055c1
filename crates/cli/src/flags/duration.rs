//! Flags that say when to stop: time and precision.

use super::{Flag, one, value, valued};
use crate::cli_args::CliArgs;
use crate::subcommand::Subcommand;
use clap::{Arg, ArgMatches};
use rdsk_experiment::BudgetSource;
use rdsk_units::Nanos;

/// Shortest budget: two windows, below which no rate has an interval.
const MIN_BUDGET: Nanos = Nanos(100_000_000);

/// Shortest time of one cell.
const MIN_RUNTIME: Nanos = Nanos(10_000_000);

/// Longest time: a week.
const MAX_TIME: Nanos = Nanos(7 * 24 * 3_600_000_000_000);

/// `--budget`
pub(super) struct Budget;

impl Flag for Budget {
    fn name(&self) -> &'static str {
        "budget"
    }
    fn subcommands(&self) -> &'static [Subcommand] {
        Subcommand::MEASURING
    }
    fn arg(&self) -> Arg {
        valued(self.name(), "TIME", "Time for everything, such as 20s or 5m [default: 60s]")
            .value_parser(|text: &str| value::time_ns(text, MIN_BUDGET, MAX_TIME))
    }
    fn read(&self, matches: &ArgMatches, args: &mut CliArgs) {
        if let Some(budget_ns) = one(matches, self.name()) {
            args.options.budget_ns = budget_ns;
            args.options.budget_source = BudgetSource::Requested;
        }
    }
}

/// `--runtime`
pub(super) struct Runtime;

impl Flag for Runtime {
    fn name(&self) -> &'static str {
        "runtime"
    }
    fn subcommands(&self) -> &'static [Subcommand] {
        Subcommand::WITH_TIMED_CELLS
    }
    fn arg(&self) -> Arg {
        valued(self.name(), "TIME", "Time for each cell, instead of its share of a budget")
            .value_parser(|text: &str| value::time_ns(text, MIN_RUNTIME, MAX_TIME))
    }
    fn read(&self, matches: &ArgMatches, args: &mut CliArgs) {
        args.options.runtime_ns = one(matches, self.name());
    }
}

/// `--precision`
pub(super) struct Precision;

impl Flag for Precision {
    fn name(&self) -> &'static str {
        "precision"
    }
    fn subcommands(&self) -> &'static [Subcommand] {
        Subcommand::WITH_ENGINES
    }
    fn arg(&self) -> Arg {
        valued(
            self.name(),
            "SHARE",
            "Stop a cell when the 95 % interval of its rate is this narrow [default: 2%]",
        )
        .value_parser(|text: &str| value::share(text))
    }
    fn read(&self, matches: &ArgMatches, args: &mut CliArgs) {
        if let Some(precision) = one(matches, self.name()) {
            args.options.precision = precision;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{parsed, refuses};

    const BAD_TIMES: &[&str] =
        &["", "0", "-5s", "5x", "soon", "99999999999h", "1ns", "8000h", "1e3", "--json", "5 parsecs"];

    #[test]
    fn budget() {
        assert_eq!(parsed(&["run"]).unwrap().options.budget_ns, 60_000_000_000);
        assert_eq!(parsed(&["run", "--budget", "20s"]).unwrap().options.budget_ns, 20_000_000_000);
        refuses("run", "--budget", BAD_TIMES);
    }

    #[test]
    fn runtime() {
        assert_eq!(parsed(&["paths", "--runtime", "500ms"]).unwrap().options.runtime_ns, Some(500_000_000));
        refuses("paths", "--runtime", BAD_TIMES);
    }

    #[test]
    fn precision() {
        let precision = parsed(&["run", "--precision", "5%"]).unwrap().options.precision;
        assert!((precision - 0.05).abs() < 1e-12);
        refuses("run", "--precision", &["", "0", "2", "-2%", "100%", "NaN", "inf", "1e-2", "--json", "0%"]);
    }
}
