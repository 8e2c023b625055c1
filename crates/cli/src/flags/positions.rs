//! Flags about positions: how many are visited, how often, in which order.

use super::{Flag, One, SWITCH, Switch, on, value};
use crate::subcommand::{STRIPE, ZONES};
use rdsk_experiment::{PositionOrder, Positions};

/// Most positions: with ten passes, a Record of more is too large to work with.
const MAX_POINTS: u32 = 500_000;
const MAX_RUNS: u32 = 10_000;
const ORDERS: &[&str] = &["shuffled", "ascending"];

pub(super) static FLAGS: &[Flag] = &[
    Flag {
        name: "points",
        value: One("N", |args, text| {
            value::count(text, MAX_POINTS)
                .map(|count| args.options.positions = Positions::Count(u64::from(count)))
        }),
        uses: &[
            on(&[&ZONES], "Positions to visit in each pass", "up to 200, as the budget allows"),
            on(&[&STRIPE], "Requests to issue", "1500, or up to 768 where the kernel describes the array"),
        ],
        example: "--points 200",
        ..SWITCH
    },
    Flag {
        name: "full",
        value: Switch(|args| args.options.positions = Positions::Full),
        uses: &[on(&[&ZONES], "Visit every block of the target in each pass, however long it takes", "")],
        example: "--full --runs 1",
        ..SWITCH
    },
    Flag {
        name: "runs",
        value: One("N", |args, text| value::count(text, MAX_RUNS).map(|runs| args.options.runs = Some(runs))),
        uses: &[on(&[&ZONES], "Complete passes over the positions", "up to 10, as the budget allows")],
        example: "--runs 10",
        ..SWITCH
    },
    Flag {
        name: "order",
        value: One("ORDER", |args, text| {
            value::word(text, ORDERS, &[PositionOrder::Shuffled, PositionOrder::Ascending])
                .map(|order| args.options.position_order = Some(order))
        }),
        words: ORDERS,
        uses: &[on(&[&ZONES], "Order in which a pass visits the positions", "shuffled")],
        example: "--order ascending",
        ..SWITCH
    },
];

#[cfg(test)]
mod tests {
    use super::super::testing::{parsed, refuses};
    use super::*;

    #[test]
    fn points_and_runs() {
        assert_eq!(parsed(&["zones"]).unwrap().options.positions, Positions::Default);
        assert_eq!(parsed(&["zones", "--points", "50"]).unwrap().options.positions, Positions::Count(50));
        assert_eq!(parsed(&["zones", "--full"]).unwrap().options.positions, Positions::Full);
        assert!(parsed(&["zones", "--full", "--points", "5"]).is_err());
        refuses("zones", "--points", &["", "0", "-1", "x", "1e3", "99999999999"]);
        refuses("zones", "--runs", &["", "0", "-1", "ten"]);
    }

    #[test]
    fn order() {
        let order = |word| parsed(&["zones", "--order", word]).unwrap().options.position_order;
        assert_eq!(
            (order("ascending"), order("shuffled")),
            (Some(PositionOrder::Ascending), Some(PositionOrder::Shuffled))
        );
        refuses("zones", "--order", &["", "random", "asc"]);
    }
}
