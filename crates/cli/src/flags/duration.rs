//! Flags that say when to stop: time and precision.

use super::{Flag, One, SWITCH, Switch, on, value};
use crate::subcommand::{ALIGN, MEASURING, PATHS, RUN, SCALE, STREAM};
use rdsk_experiment::BudgetSource;
use rdsk_units::Nanos;

/// Shortest budget: two windows; below that no rate has an interval.
const MIN_BUDGET: Nanos = Nanos(100_000_000);
/// Shortest time of one cell.
const MIN_RUNTIME: Nanos = Nanos(10_000_000);
/// The budget of a run that sustains its writes, unless one is requested.
const SUSTAINED_BUDGET: Nanos = Nanos(600_000_000_000);
/// Longest time: a week.
const MAX_TIME: Nanos = Nanos(7 * 24 * 3_600_000_000_000);

pub(super) static FLAGS: &[Flag] = &[
    Flag {
        name: "budget",
        value: One("TIME", |args, text| {
            args.options.budget_ns = value::time_ns(text, MIN_BUDGET, MAX_TIME)?;
            args.options.budget_source = BudgetSource::Requested;
            Ok(())
        }),
        uses: &[on(MEASURING, "Time for the whole run, such as 20s or 5m", "60s")],
        details: "Less time gives wider intervals.",
        example: "--budget 20s",
        ..SWITCH
    },
    Flag {
        name: "sustained",
        value: Switch(|args| {
            args.options.is_sustained = true;
            if args.options.budget_source == BudgetSource::Default {
                args.options.budget_ns = SUSTAINED_BUDGET.0;
            }
        }),
        uses: &[on(&[&RUN], "Write on until the rate has settled, and show what lasts", "")],
        details: "After everything else the writes of the headline go on, each until its rate fell and settled, for the rest of the \
                  budget at most, which is 10m unless --budget says otherwise. A drive with a large cache takes hundreds of GiB. \
                  Simulated systems always do so.",
        example: "--sustained --only headline",
        ..SWITCH
    },
    Flag {
        name: "runtime",
        value: One("TIME", |args, text| {
            value::time_ns(text, MIN_RUNTIME, MAX_TIME).map(|ns| args.options.runtime_ns = Some(ns))
        }),
        uses: &[
            on(
                &[&PATHS, &STREAM, &ALIGN],
                "Time for each cell in all its rounds, instead of a share of the budget",
                "",
            ),
            on(
                &[&SCALE],
                "Time for each cell in all its rounds, without the starts of its streams, instead of a share of the \
                 budget",
                "",
            ),
        ],
        details: "A cell is one workload: one line or one column of the result.",
        example: "--runtime 5s",
        ..SWITCH
    },
    Flag {
        name: "precision",
        value: One("PERCENT", |args, text| {
            value::share(text).map(|precision| args.options.precision = precision)
        }),
        uses: &[on(
            &[&RUN, &PATHS, &STREAM, &SCALE, &ALIGN],
            "Give no more rounds to cells whose 95 % interval is this narrow",
            "2%",
        )],
        details: "The margin of the interval relative to the mean, such as 1% or 0.01.",
        example: "--precision 1%",
        ..SWITCH
    },
];

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
