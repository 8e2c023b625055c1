//! The room `testkit`: tools for the tests of the other rooms. It has real loop devices, throttles, quotas, fake sysfs trees, disks
//! of known behaviour, a guest with further devices, a harness for the command line, and `requires()`, which skips a test
//! visibly. Only tests import it, so it may print and panic.
#![allow(clippy::print_stderr, reason = "a test that is skipped or cannot clean up must say so")]

pub mod attempts;
pub mod cli;
pub mod fakesys;
pub mod fusedisk;
pub mod guest;
pub mod holder;
pub mod loopdev;
pub mod quota;
pub mod requires;
pub mod same_io;
pub mod sandbox;
pub mod schema;
pub mod swap;
pub mod throttle;
mod tool;
mod turn;
pub mod zram;

pub use fakesys::{FakeDisk, FakeSys};
pub use fusedisk::{Behaviour, Extra, FuseDisk};
pub use guest::Guest;
pub use holder::{Hold, Holder};
pub use loopdev::{DirectIo, LoopDevice, Mount};
pub use quota::CpuQuota;
pub use requires::{Need, requires};
pub use sandbox::{Sysno, without};
pub use swap::Swap;
pub use throttle::{BlkioThrottle, Limits};
pub use tool::wait_until;
pub use turn::Turn;
pub use zram::ZramDevice;
