//! Finding a free loop device for a file, and taking back what a killed test has left with its number. It detaches nothing.

use super::LONG;
use crate::tool::{output_of, wait_until};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Attaches a free loop device to a file, and returns its node. The caller detaches it: for files whose names lead
/// nowhere later, or end in blanks, so that a [`LoopDevice`](super::LoopDevice) would not know them again.
///
/// # Errors
/// What losetup said.
pub fn attach_file(file: &Path) -> io::Result<PathBuf> {
    attach(Command::new("losetup").args(["--find", "--show"]).arg(file))
}

/// Asks losetup for a free device, and gives its node. Another test may take the device that losetup has found, or be about to give it
/// back; then it is called again.
pub(super) fn attach(command: &mut Command) -> io::Result<PathBuf> {
    const ATTEMPTS: u32 = 50;
    let mut attempt = 0;
    let node = loop {
        attempt += 1;
        match output_of(command) {
            Err(error) if attempt < ATTEMPTS && is_taken(&error.to_string()) => {
                std::thread::sleep(Duration::from_millis(10));
            }
            other => break PathBuf::from(other?),
        }
    };
    forget(&node);
    Ok(node)
}

/// Takes back what the kernel keeps with the number: partitions over another file, which the program that examines the device then finds, and the
/// largest request, which older kernels do not take back.
fn forget(node: &Path) {
    // The program that looks at all devices may have a partition open.
    if !wait_until(LONG, || forget_partitions(node).is_ok()) {
        eprintln!("{} has partitions that a killed test has left", node.display());
    }
    let _ = fs::write(sysfs(node).join("queue/max_sectors_kb"), "0");
}

/// Makes the kernel forget all partitions of a device, if it knows any.
///
/// # Errors
/// What partx said.
pub(super) fn forget_partitions(node: &Path) -> io::Result<()> {
    if !has_partitions(node)? {
        return Ok(());
    }
    output_of(Command::new("partx").arg("--delete").arg(node)).map(drop)
}

/// Whether the kernel knows any partition of a device.
pub(super) fn has_partitions(node: &Path) -> io::Result<bool> {
    let of_device = fs::read_dir(sysfs(node))?.map_while(Result::ok);
    let mut names = of_device.map(|entry| entry.path());
    Ok(names.any(|directory| directory.join("partition").exists()))
}

fn sysfs(node: &Path) -> PathBuf {
    Path::new("/sys/block").join(node.file_name().unwrap_or_default())
}

fn is_taken(said: &str) -> bool {
    ["busy", "No such device", "temporarily unavailable"].iter().any(|words| said.contains(words))
}
