//! `rdsk watch`: two saved trees, lines and JSON of loop devices, a command and what its I/O became, and the screen on a terminal
//! of our own. Nothing is written but to loop devices that the tests made.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[path = "watch/command.rs"]
mod command;
mod common;
#[path = "watch/lines.rs"]
mod lines;
#[path = "watch/saved.rs"]
mod saved;
#[path = "watch/terminal.rs"]
mod terminal;
