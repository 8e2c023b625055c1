//! The live view as text: lines for logs and scripts, JSON lines, and what the I/O of a command became. It measures nothing
//! and draws no screen.

mod command;
mod json;
mod plain;

pub use command::command_io;
pub use json::{command_json, json_lines};
pub use plain::{Look, plain_lines, sizes_text};
