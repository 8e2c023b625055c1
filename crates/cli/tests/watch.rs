//! `rdsk watch`: two saved trees, lines and JSON of loop devices, a command and what its I/O became, and the screen on a terminal
//! of our own. Nothing is written but to loop devices that the tests made.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod command;
mod lines;
mod saved;
mod terminal;
