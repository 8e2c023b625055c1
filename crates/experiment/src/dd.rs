//! The word `dd` among the experiments. Its cells are made by `copy`, beside a copy that runs by its operands.

use crate::context::PlanContext;
use crate::question::Question;
use rdsk_model::Cell;

/// The question of a copy: no plan asks it, because its operands say what is done.
pub(crate) struct Dd;

impl Question for Dd {
    fn cells(&self, _context: &PlanContext<'_>, _all: &[PlanContext<'_>]) -> Vec<Cell> {
        Vec::new()
    }
}
