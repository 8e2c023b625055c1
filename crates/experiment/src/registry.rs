//! The list of all experiments: one line each. Nothing else in this crate knows an experiment by name.

use crate::question::Question;
use crate::{align, headline, paths, scale, stream, stripe, zones};
use rdsk_model::Experiment;

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
    }
}
