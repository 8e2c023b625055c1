//! Ways to be in use: by-id names, an LVM label, a filesystem with nothing left to write. Each is undone when
//! dropped. It touches nothing but what the test created.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::{FileExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

/// Where udev keeps the names.
const BY_ID: &str = "/dev/disk/by-id";

/// Directories that had to be made for names, the innermost first. Locked while a name comes or goes, so that no test
/// removes a directory that another is about to use.
static MADE: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// A by-id name of a device, as udev would make it.
#[derive(Debug)]
pub(crate) struct ById(PathBuf);

impl ById {
    /// Gives a test's own device such a name.
    pub(crate) fn new(device: &Path) -> Self {
        static SERIAL: AtomicU32 = AtomicU32::new(0);
        let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
        for directory in [Path::new("/dev/disk"), Path::new(BY_ID)] {
            if fs::create_dir(directory).is_ok() {
                made.insert(0, directory.to_owned());
            }
        }
        let serial = SERIAL.fetch_add(1, Ordering::Relaxed);
        let link = Path::new(BY_ID).join(format!("scsi-rdsk-test-{}-{serial}", std::process::id()));
        let node = device.file_name().expect("a device has a name");
        symlink(Path::new("../..").join(node), &link).expect("root may name a device");
        Self(link)
    }

    /// The whole path.
    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// The name alone.
    pub(crate) fn name(&self) -> &str {
        self.0.file_name().and_then(|name| name.to_str()).expect("the name is plain text")
    }
}

impl Drop for ById {
    fn drop(&mut self) {
        let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = fs::remove_file(&self.0);
        // A directory in which another test still has a name stays, and goes with that one.
        made.retain(|directory| fs::remove_dir(directory).is_err());
    }
}

/// Lets a mounted filesystem write all that it has to write, so that its device stands still.
pub(crate) fn settle(mount: &Path) {
    done(Command::new("sync").arg("--file-system").arg(mount));
    // Freezing ends the journal's transaction; without it a timer would write it some seconds later.
    for freeze in ["--freeze", "--unfreeze"] {
        done(Command::new("fsfreeze").arg(freeze).arg(mount));
    }
}

/// Writes the label of an LVM physical volume without a volume group: what pvcreate leaves, as far as it is looked for
/// (`struct label_header` and `struct pv_header` of LVM2's on-disk format).
pub(crate) fn lvm_label(device: &Path) {
    let mut sector = vec![0_u8; 512];
    sector[..8].copy_from_slice(b"LABELONE");
    sector[8..16].copy_from_slice(&1_u64.to_le_bytes());
    sector[20..24].copy_from_slice(&32_u32.to_le_bytes());
    sector[24..32].copy_from_slice(b"LVM2 001");
    sector[32..64].copy_from_slice(b"rdskrdskrdskrdskrdskrdskrdskrdsk");
    sector[64..72].copy_from_slice(&(24_u64 << 20).to_le_bytes());
    let checksum = sector[20..].iter().fold(0xf597_a6cf_u32, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg()))
    });
    sector[16..20].copy_from_slice(&checksum.to_le_bytes());
    let node = OpenOptions::new().write(true).open(device).expect("the test's own device opens");
    node.write_all_at(&sector, 512).and_then(|()| node.sync_all()).expect("it takes a sector");
}

fn done(command: &mut Command) {
    let output = command.output().expect("util-linux and coreutils are installed");
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}
