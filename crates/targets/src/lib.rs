//! The room `targets`: files, block devices and simulated disks, examined, judged, and only then claimed. It is the only room that opens
//! anything for writing, and it never does so before the judgement; examining opens for reading only.

mod block_uses;
mod claim;
mod data;
mod device_mapper;
mod error;
mod examine;
mod exports;
mod facts;
#[cfg(test)]
mod fake;
mod file_uses;
mod identity;
mod judge;
mod labels;
mod luns;
mod mounts;
mod node;
mod orphan;
mod probe;
mod processes;
mod ranges;
mod registry;
mod roots;
mod signature;
mod sim;
mod sysfs;
mod testfile;
mod text;
mod thin_pool;
mod tools;
mod uses;
mod world;
mod writing;

pub use claim::{Claim, OpenMode, claim};
pub use error::TargetError;
pub use examine::{Attachment, Examined, Place, examine};
pub use identity::{Identity, IdentityKind};
pub use judge::{Access, Overwrite, Permission, Refusal, judge};
pub use node::DeviceNumber;
pub use orphan::{Removed, remove_orphans};
pub use registry::remove_all_test_files_now;
pub use roots::{Roots, ToolSource};
pub use signature::Signature;
pub use sim::{SIM_PREFIX, Simulated, each_lun, load_system};
pub use testfile::{TestFileOptions, TestFilePlan, make_test_file, plan_test_file};
pub use uses::{Use, UseKind};
pub use writing::{Made, MakeProgress, SizeWish};
