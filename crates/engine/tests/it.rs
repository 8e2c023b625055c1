//! The tests of this room on files, devices and models, as one program, which is linked once. `allocation.rs` is apart: it counts what
//! its whole process allocates.

mod bad_positions;
mod cache;
mod common;
mod counts;
mod dontcache;
mod engine_trial;
mod faults;
mod load;
mod sim;
mod timing;
mod warm_up;
mod written_data;
