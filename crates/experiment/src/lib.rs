//! One file per question: each experiment turns the user's options and the facts of the targets into cells of a Plan;
//! the runner visits the cells through whatever engine and observer it is given and sums up what they saw. It never
//! opens a path and never prints, and the runner reads no clock but the one it is handed.

mod align;
mod assemble;
mod bench;
mod carry;
mod conduct;
mod headline;
mod options;
mod overlap;
mod pace;
mod paths;
mod request;
mod resume;
mod runner;
mod scale;
mod stream;
mod stripe;
mod tally;
mod zones;

pub use assemble::{PlanError, plan};
pub use conduct::{conduct, plan_only};
pub use options::{BudgetWish, PlaceOrder, Places, PlanOptions};
pub use request::Request;
pub use runner::{Outcome, Runner};
