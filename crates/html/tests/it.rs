//! The tests in a real browser, as one program, which is linked once.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod browser;
mod support;
mod timing;
