//! The room `sys`: the few Linux calls that no library wraps safely, each behind a function that is safe to call, and the one reader of
//! small files of sysfs and procfs.
//! It holds no policy, prints nothing, and never decides what a value means for a measurement.

pub mod affinity;
pub mod aio;
pub mod bpf;
pub mod cache;
pub mod device;
pub mod device_number;
pub mod dm;
pub mod extents;
pub mod files;
pub mod hypervisor;
pub mod io;
pub mod memory;
mod mount_type;
pub mod mounts;
pub mod openers;
pub mod signal;
pub mod start;
pub mod thread;
pub mod usage;
