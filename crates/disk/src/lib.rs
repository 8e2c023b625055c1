//! The room `disk`: physical models of disks, arrays, paths and of the hosts above them, in virtual time: a request and its
//! arrival in, the time of its completion out. It does no I/O, reads no clock and draws random numbers only from a seed.

mod access;
mod array;
mod builtin;
mod cache;
mod counters;
mod device;
mod disk;
mod error;
mod fault;
mod gather;
mod host;
mod lab;
mod mechanics;
mod pace;
mod params;
mod path;
mod provenance;
mod ram;
mod request;
mod ssd;
mod systems;

pub use access::{FirstAccesses, Sleeper};
pub use array::{Array, MemberCounts};
pub use builtin::{GROUPS, NAMES, source};
pub use cache::Extent;
pub use counters::Counters;
pub use device::Device;
pub use disk::Disk;
pub use error::{HostError, ParamError};
pub use host::{Call, CallId, Done, Host, Operation, Route, Stability};
pub use lab::{Lab, LunId, Sample, SharedLab, device_name};
pub use params::{
    ArrayParams, CloseAction, ControllerParams, CostParams, DestageOrder, DeviceParams, DiskParams,
    DriftParams, ErrorRange, FaultParams, FirstAccessParams, FirstOf, Hold, HostParams, LateParams,
    LunParams, NoiseParams, PaceParams, Partial, RaidLevel, RamParams, SleepParams, SlowDown, SsdParams,
    StallParams, SystemParams, WriteCacheParams, ZoneParams,
};
pub use path::Paths;
pub use provenance::{Figure, Mark, Tally, complete_text, figures};
pub use request::{Completion, Fault, Force, Op, Request};
pub use systems::{System, load, parse};
