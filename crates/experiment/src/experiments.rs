//! The list of all experiments: a module and a line each. Nothing else in this crate knows an experiment by name.

mod align;
mod headline;
mod load;
mod paths;
mod scale;
mod stream;
mod stripe;
mod zones;

use crate::context::PlanContext;
use crate::question::Question;
use rdsk_model::{Cell, Experiment};

/// What `rdsk run` measures unless the user chooses.
pub const IN_RUN: &[Experiment] = &[
    Experiment::Headline,
    Experiment::Paths,
    Experiment::Stream,
    Experiment::Align,
    Experiment::Zones,
    Experiment::Scale,
];

/// The question that an experiment asks.
pub(crate) fn question(experiment: Experiment) -> &'static dyn Question {
    match experiment {
        Experiment::Headline => &headline::Headline,
        Experiment::Paths => &paths::Paths,
        Experiment::Stream => &stream::Stream,
        Experiment::Align => &align::Align,
        Experiment::Zones => &zones::Zones,
        Experiment::Scale => &scale::Scale,
        Experiment::Stripe => &stripe::Stripe,
        Experiment::Load => &load::Load,
        // The cells of dd are made by `copy`, beside a copy that runs by its operands, and those of fio by the importer.
        Experiment::Dd | Experiment::Fio => &Unplanned,
    }
}

/// A question without cells of a plan.
struct Unplanned;

impl Question for Unplanned {
    fn cells(&self, _context: &PlanContext<'_>, _contexts: &[PlanContext<'_>]) -> Vec<Cell> {
        Vec::new()
    }
}
