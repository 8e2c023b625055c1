//! The history: Records in one SQLite file that several processes may use at once, and that a kill at any moment leaves whole.
//! It stores and finds Records and decides nothing about them; it measures and prints nothing, and never changes a file that
//! is no history.

mod delete;
mod document;
mod error;
mod file;
mod find;
mod holder;
mod list;
mod open;
mod read;
mod schema;
mod write;

pub use error::StoreError;
pub use find::Found;
pub use holder::Holder;
pub use list::{Filter, RunLine, State};
pub use open::{History, Patience};
pub use read::Kept;
pub use schema::VERSION;
pub use write::CellSoFar;
