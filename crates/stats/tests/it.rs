//! The tests of this room beside its unit tests.

mod timing;
