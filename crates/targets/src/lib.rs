//! The room `targets`: files, block devices and simulated disks, examined, judged, and only then claimed. It is the only room that opens
//! anything for writing, and it never does so before the judgement; examining opens for reading only.

mod array;
mod authorize;
mod block_uses;
mod claim;
mod device_mapper;
mod device_number;
mod display;
mod error;
mod examine;
mod examined;
mod exports;
mod facts;
#[cfg(test)]
mod fake;
mod file_uses;
mod identity;
mod labels;
mod layers;
mod luns;
mod lvm;
mod machine;
mod mounts;
mod naming;
mod orphan;
mod permission;
mod probe;
mod processes;
mod registry;
mod roots;
mod shared_sectors;
mod signature;
mod sim;
mod sysfs;
mod testfile;
mod testfile_data;
mod testfile_writer;
mod thin_pool;
mod tools;
mod uses;

pub use authorize::authorize;
pub use claim::{Claim, OpenMode, claim};
pub use device_number::DeviceNumber;
pub use error::TargetError;
pub use examine::examine;
pub use examined::{Attachment, Examined, Place};
pub use identity::{Identity, IdentityKind, NoIdentity};
pub use orphan::{RemovedOrphan, remove_orphans};
pub use permission::{Access, Overwrite, Permission, Refusal};
pub use registry::{TestFileLeft, remove_all_test_files_now, test_files_left};
pub use roots::{Roots, ToolSource};
pub use signature::Signature;
pub use sim::{SIM_PREFIX, Simulated, each_lun, load_system};
pub use testfile::{TestFileOptions, TestFilePlan, create_test_file, plan_test_file};
pub use testfile_writer::{CreatedTestFile, TestFileProgress, TestFileSize};
pub use uses::{Use, UseKind};
