//! The room `testkit`: what tests of the other rooms stand on: real loop devices, throttles, fake sysfs trees, disks of
//! known behaviour, a guest with further devices, a harness for the command line, and `requires()`, which skips aloud. Only tests import it, so it may
//! print and panic.
#![allow(clippy::print_stderr, reason = "a test that is skipped or cannot clean up must say so")]

pub mod cli;
pub mod fakesys;
pub mod fusedisk;
mod gpt;
pub mod guest;
pub mod holder;
pub mod loopdev;
pub mod requires;
pub mod throttle;
mod tool;

pub use fakesys::{FakeDisk, FakeKind, FakeSys};
pub use fusedisk::{Behaviour, Extra, FuseDisk};
pub use guest::Guest;
pub use holder::{Hold, Holder};
pub use loopdev::{DirectIo, LoopDevice, Mount};
pub use requires::{Need, requires};
pub use throttle::{BlkioThrottle, Limits};
pub use tool::wait_until;
