//! The words among the experiments that no plan asks: the cells of `dd` are made by `copy`, beside a copy that runs by its
//! operands, and those of `fio` by whoever reads its document.

use crate::context::PlanContext;
use crate::question::Question;
use rdsk_model::Cell;

/// A question without cells of a plan.
pub(crate) struct Unplanned;

impl Question for Unplanned {
    fn cells(&self, _context: &PlanContext<'_>, _all: &[PlanContext<'_>]) -> Vec<Cell> {
        Vec::new()
    }
}
