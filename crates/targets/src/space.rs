//! What writing uses up besides the target: the filesystem that a file grows in, memory, thin pools, the stores of snapshots.
//!
//! In: what [`machine`](crate::machine) has read, a device, file or directory, and how much a run writes. Out: a
//! [`Growth`](growth::Growth) for each thing that is used up, of which `fills_up` says for all targets together whether enough is left.
//! It reads sizes, and changes nothing.

pub(crate) mod anew;
pub(crate) mod fills_up;
pub(crate) mod growing;
pub(crate) mod growth;
pub(crate) mod overlay;
pub(crate) mod thin_pool;
