//! Makes the test file: plans its size so that a tenth of the filesystem stays free, makes it under a name of its own,
//! writes it really, and checks that no byte of it is a hole. It touches no other file.

use crate::claim::{Claim, evidence};
use crate::error::TargetError;
use crate::examine::{Examined, Place};
use crate::judge::{Access, Permission, judge};
use crate::registry::TestFile;
use crate::text::shown;
use crate::writing::{self, MIB, Made, MakeProgress, Order, SizeWish};
use rdsk_model::{StopFlag, Target};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How a test file is to be made.
#[derive(Clone, Debug)]
pub struct TestFileOptions {
    /// Its size.
    pub size: SizeWish,
    /// Of its data; the same seed gives the same bytes.
    pub seed: u64,
    /// Raised by signals; asked before every MiB.
    pub stop: StopFlag,
}

/// A test file that would be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TestFilePlan {
    /// In which directory.
    pub directory: PathBuf,
    /// Its size; an adaptive one may end up smaller on a slow disk.
    pub size_bytes: u64,
    /// Bytes that a test file may have there at most.
    pub may_use_bytes: u64,
}

/// Plans the size by what was examined: a tenth of the filesystem stays free.
///
/// # Errors
/// [`TargetError::TooLarge`] when it does not fit; when `directory` is no directory.
pub fn plan_test_file(directory: &Examined, size: SizeWish) -> Result<TestFilePlan, TargetError> {
    match &directory.place {
        Place::Directory { path, free_bytes, total_bytes } => plan(path, *free_bytes, *total_bytes, size),
        _ => Err(TargetError::NotDirectory { path: shown(&directory.path) }),
    }
}

/// Makes a test file in a directory and claims it for writing. The file goes when the Claim does, and on every error.
///
/// # Errors
/// The refusal of the directory; too little space, before or while writing; [`TargetError::Interrupted`];
/// [`TargetError::NotWritten`] when the filesystem kept holes all the same; an I/O error.
pub fn make_test_file(
    directory: &Examined,
    options: &TestFileOptions,
    watch: &mut dyn FnMut(MakeProgress),
) -> Result<(Claim, Made), TargetError> {
    let Place::Directory { path, .. } = &directory.place else {
        return Err(TargetError::NotDirectory { path: shown(&directory.path) });
    };
    judge(directory, Access::Write, &Permission::default())?;
    if options.stop.is_raised() {
        return Err(TargetError::Interrupted);
    }
    // Asked for again, since others may have filled it meanwhile.
    let space = rustix::fs::statvfs(path).map_err(|e| TargetError::from_io(path, "looked at", e.into()))?;
    let free_bytes = space.f_bavail.saturating_mul(space.f_frsize);
    let plan = plan(path, free_bytes, space.f_blocks.saturating_mul(space.f_frsize), options.size)?;
    let file = TestFile::create(path)?;
    let order = Order {
        goal_bytes: plan.size_bytes,
        max_elapsed: match options.size {
            SizeWish::Fixed(_) => None,
            SizeWish::Adaptive { max_elapsed_ns, .. } => Some(Duration::from_nanos(max_elapsed_ns)),
        },
        seed: options.seed,
        stop: &options.stop,
    };
    let made = writing::write(&file, &order, watch)?;
    // Where the filesystem does not tell, as NFS, nothing speaks against it.
    if let Some(lies) = evidence(file.fd(), 0, made.bytes).filter(|lies| lies.mapped_bytes < made.bytes) {
        return Err(TargetError::NotWritten {
            path: shown(file.path()),
            hole_bytes: lies.hole_bytes,
            unwritten_bytes: lies.unwritten_bytes,
        });
    }
    let target = Target {
        path: Some(file.path().to_string_lossy().into_owned()),
        size_bytes: made.bytes,
        made_by_rdsk: true,
        direct_align_bytes: directory.target.device.as_ref().and_then(|device| device.logical_block_bytes),
        ..directory.target.clone()
    };
    Ok((Claim::of_test_file(target, file)?, made))
}

fn plan(path: &Path, free_bytes: u64, total_bytes: u64, size: SizeWish) -> Result<TestFilePlan, TargetError> {
    let may_use_bytes = free_bytes.saturating_sub(total_bytes.div_ceil(10));
    let size_bytes = match size {
        SizeWish::Fixed(bytes) => bytes,
        SizeWish::Adaptive { max_bytes, .. } if max_bytes < MIB => max_bytes,
        SizeWish::Adaptive { max_bytes, .. } => (max_bytes.min(may_use_bytes) / MIB * MIB).max(MIB),
    };
    if size_bytes == 0 {
        return Err(TargetError::Empty { path: "the test file".to_owned() });
    }
    if size_bytes > may_use_bytes {
        let path = shown(path);
        return Err(TargetError::TooLarge { path, wanted_bytes: size_bytes, free_bytes: may_use_bytes });
    }
    Ok(TestFilePlan { directory: path.to_owned(), size_bytes, may_use_bytes })
}

#[cfg(test)]
mod tests;
