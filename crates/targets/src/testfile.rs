//! Creates the test file: plans its size so that enough of the filesystem stays free, creates it under a unique name,
//! writes real data, and checks that no byte of it is a hole. It touches no other file.
//!
//! In: an examined directory, and how large the file is to be. Out: a [`Claim`] on the file, which `registry` removes however the process ends;
//! `orphan` removes what a killed one has left.

mod data;
pub(crate) mod orphan;
pub(crate) mod registry;
pub(crate) mod shared;
pub(crate) mod writer;

use crate::authorize::authorize;
use crate::claim::Claim;
use crate::display::shown;
use crate::error::TargetError;
use crate::examine::{Hold, examine_path};
use crate::examined::{Examined, Place};
use crate::permission::{Access, Permission};
use crate::probe;
use crate::roots::Roots;
use crate::space::fills_up::{check_growth, share_growth};
use crate::space::growth::{Rewriting, kept_bytes};
use crate::space::overlay;
use crate::testfile::registry::TestFile;
use crate::testfile::writer::{CreatedTestFile, FillOptions, MIB, TestFileProgress, TestFileSize};
use crate::uses::{Use, UseKind};
use rdsk_model::{LaidOut, StopFlag, Target};
use std::path::Path;
use std::time::Duration;

/// How a test file is to be created.
#[derive(Clone, Debug)]
pub struct TestFileOptions {
    /// Its size.
    pub size: TestFileSize,
    /// Seed of its data; the same seed gives the same bytes.
    pub seed: u64,
    /// Whether the run overwrites it, which takes more of a filesystem that copies on write.
    pub is_rewritten: bool,
    /// Raised by signals; checked before every MiB.
    pub stop: StopFlag,
}

/// The size in bytes of each of `files` test files that share the space of a directory, from what was examined: a tenth
/// of the filesystem stays free, at most 16 GiB. An adaptive one may end up smaller on a slow disk, and leaves room for
/// what overwriting it takes; whether there is room for that beside one of a given size, [`crate::check_growth`] says.
///
/// # Errors
/// [`TargetError::TooLarge`] if they do not fit; if `directory` is not a directory.
pub fn plan_test_file(
    directory: &Examined,
    size: TestFileSize,
    files: u64,
    is_rewritten: bool,
) -> Result<u64, TargetError> {
    match &directory.place {
        Place::Directory { path, free_bytes, total_bytes, pool_spare_bytes, rewriting, .. } => {
            let room = may_use(*free_bytes, *total_bytes, *pool_spare_bytes) / files.max(1);
            let is_halved = is_rewritten && *rewriting == Rewriting::Copies;
            plan(path, room, if is_halved { room / 2 } else { room }, size)
        }
        _ => Err(TargetError::NotDirectory { path: shown(&directory.path) }),
    }
}

/// Whether the test files of two directories take of the same space: of one filesystem, or of what lies below theirs.
pub fn share_space(left: &Examined, right: &Examined) -> bool {
    match (&left.place, &right.place) {
        (Place::Directory { dev, .. }, Place::Directory { dev: other, .. }) => {
            dev == other || share_growth(left, right)
        }
        _ => false,
    }
}

/// Creates a test file in a directory and claims it for writing. The file is removed when the Claim is dropped, and on
/// every error. The directory is examined again first: others, or our last test file, may have used up its space.
///
/// # Errors
/// The refusal of the directory, also of one that turns out to be in memory; too little space, before or while writing;
/// [`TargetError::Interrupted`]; [`TargetError::NotWritten`] if the filesystem still kept holes; an I/O error.
pub fn create_test_file(
    directory: &Examined,
    options: &TestFileOptions,
    roots: &Roots,
    watch: &mut dyn FnMut(TestFileProgress),
) -> Result<(Claim, CreatedTestFile), TargetError> {
    let (file, made) = made_in(directory, Name::Own, options, roots, watch)?;
    let target = Target {
        path: Some(file.path.to_string_lossy().into_owned()),
        size_bytes: made.bytes,
        made_by_rdsk: true,
        laid_out: Some(LaidOut { bytes: made.bytes, elapsed_ns: made.elapsed_ns }),
        direct_align_bytes: directory.target.device.as_ref().and_then(|device| device.logical_block_bytes),
        ..directory.target.clone()
    };
    Ok((Claim::of_test_file(target, file)?, made))
}

/// What a file is called.
enum Name<'a> {
    /// By rdsk.
    Own,
    /// By the user, who has no file of this name. What is called learns of the file before a byte of it is written.
    Users(&'a str, &'a mut dyn FnMut(&TestFile) -> Result<(), TargetError>),
}

/// A new file in a directory, written until it is on stable storage.
fn made_in(
    directory: &Examined,
    name: Name<'_>,
    options: &TestFileOptions,
    roots: &Roots,
    watch: &mut dyn FnMut(TestFileProgress),
) -> Result<(TestFile, CreatedTestFile), TargetError> {
    let Place::Directory { path, .. } = &directory.place else {
        return Err(TargetError::NotDirectory { path: shown(&directory.path) });
    };
    if options.stop.is_raised() {
        return Err(TargetError::Interrupted);
    }
    let fresh = examine_path(&directory.target.name, path.clone(), roots, Hold::NotYet)?;
    authorize(&fresh, Access::Write, &Permission::default())?;
    check_growth(&[&fresh])?;
    let goal_bytes = plan_test_file(&fresh, options.size, 1, options.is_rewritten)?;
    let file = match name {
        Name::Own => TestFile::create(path)?,
        Name::Users(name, is_made) => {
            let file = TestFile::create_as(path, name)?;
            is_made(&file)?;
            file
        }
    };
    let fill = FillOptions {
        goal_bytes,
        max_elapsed: match options.size {
            TestFileSize::Fixed(_) => None,
            TestFileSize::Adaptive { max_elapsed_ns, .. } => Some(Duration::from_nanos(max_elapsed_ns)),
        },
        seed: options.seed,
        stop: &options.stop,
    };
    refuse_hidden_memory(fresh, &file, &fill)?;
    let made = writer::write(&file, &fill, watch)?;
    // If the filesystem does not report it, as NFS, nothing speaks against it.
    if let Some(lies) = probe::allocation(file.fd(), 0, made.bytes, probe::Flush::First)
        .filter(|lies| lies.mapped_bytes < made.bytes)
    {
        return Err(TargetError::NotWritten {
            path: shown(&file.path),
            hole_bytes: lies.hole_bytes,
            unwritten_bytes: lies.unwritten_bytes,
        });
    }
    Ok((file, made))
}

/// Refuses an overlay over memory whose upper directory cannot be seen from here: the first piece of the file says.
fn refuse_hidden_memory(
    directory: Examined,
    file: &TestFile,
    fill: &FillOptions<'_>,
) -> Result<(), TargetError> {
    if !probe::is_overlay(&directory.path) {
        return Ok(());
    }
    let piece = FillOptions { goal_bytes: fill.goal_bytes.min(MIB), ..fill.clone() };
    let made = writer::write(file, &piece, &mut |_| {})?;
    if !overlay::stays_in_memory(file.fd(), made.bytes) {
        return Ok(());
    }
    let why = "an overlay keeps what is written there in memory, so there is no disk to measure";
    let uses = vec![Use::new(UseKind::InMemory, why)];
    Ok(authorize(&Examined { uses, ..directory }, Access::Write, &Permission::default())?)
}

/// As much of the filesystem stays free as of one below it, and a tenth of a thin pool below it.
fn may_use(free_bytes: u64, total_bytes: u64, pool_spare_bytes: Option<u64>) -> u64 {
    free_bytes.saturating_sub(kept_bytes(total_bytes)).min(pool_spare_bytes.unwrap_or(u64::MAX))
}

/// The size, if at most `may_use_bytes` may be used, and `adaptive_bytes` by a size that was not requested.
fn plan(
    path: &Path,
    may_use_bytes: u64,
    adaptive_bytes: u64,
    size: TestFileSize,
) -> Result<u64, TargetError> {
    let size_bytes = match size {
        TestFileSize::Fixed(bytes) => bytes,
        TestFileSize::Adaptive { max_bytes, .. } if max_bytes < MIB => max_bytes,
        TestFileSize::Adaptive { max_bytes, .. } => (max_bytes.min(adaptive_bytes) / MIB * MIB).max(MIB),
    };
    if size_bytes == 0 {
        return Err(TargetError::Empty { path: "the test file".to_owned() });
    }
    if size_bytes > may_use_bytes {
        let path = shown(path);
        return Err(TargetError::TooLarge { path, wanted_bytes: size_bytes, free_bytes: may_use_bytes });
    }
    Ok(size_bytes)
}

#[cfg(test)]
mod tests;
