//! The list of all experiments: one line each. Nothing else in this crate knows an experiment by name.

use crate::question::Question;
use rdsk_model::Experiment;

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
        Experiment::Headline => &crate::headline::Headline,
        Experiment::Paths => &crate::paths::Paths,
        Experiment::Stream => &crate::stream::Stream,
        Experiment::Align => &crate::align::Align,
        Experiment::Zones => &crate::zones::Zones,
        Experiment::Scale => &crate::scale::Scale,
        Experiment::Stripe => &crate::stripe::Stripe,
        Experiment::Dd | Experiment::Fio => &crate::unplanned::Unplanned,
    }
}
