//! The tests in a real browser, as one program, which is linked once.

mod browser;
mod support;
mod timing;
