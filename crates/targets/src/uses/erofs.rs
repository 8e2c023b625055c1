//! EROFS that is mounted from a file without a loop device (Linux 6.12). The kernel keeps the file open for reading and shows the name
//! by which it was mounted, which may have been given to another file since. Where a lease does not say who has a file open, an image
//! of EROFS may be what is mounted, unless the name leads to another image that is open. It opens files for reading only.

use crate::machine::{Machine, Mount, Namespace};
use crate::probe;
use crate::uses::InUse;
use crate::uses::open_stat::Inode;
use crate::uses::stored_name::{Led, leads_to, open_file};
use rustix::io::Errno;
use std::os::fd::AsFd;
use std::path::Path;

/// fs/erofs/erofs_fs.h: where the superblock lies, and its first bytes.
const SUPERBLOCK_OFFSET: u64 = 1024;
const MAGIC: [u8; 4] = 0xe0f5_e1e2_u32.to_le_bytes();

/// Adds a doubt for each filesystem that may be mounted from the file.
pub(crate) fn doubt(machine: &Machine<'_>, path: &Path, inode: Inode, usage: &mut InUse) {
    for mount in may_be_mounted_from(machine, path, inode) {
        usage.doubt(format_args!(
            "it is an image of EROFS, and one was mounted on {} from {}, a name that may have led here",
            mount.shown(),
            mount.source.display()
        ));
    }
}

/// The mounts of EROFS from a file that may be this one, each filesystem once.
pub(crate) fn may_be_mounted_from<'machine>(
    machine: &'machine Machine<'_>,
    path: &Path,
    inode: Inode,
) -> Vec<&'machine Mount> {
    // From a block device it has the number of that.
    let from_files = machine.mounts.iter().filter(|mount| mount.kind == "erofs" && mount.number.major == 0);
    let mut mounts: Vec<&Mount> = Vec::new();
    for mount in from_files {
        if !mounts.iter().any(|other| other.number == mount.number) {
            mounts.push(mount);
        }
    }
    if mounts.is_empty() || !probe::open_for_reading(path).is_some_and(is_image) {
        return Vec::new();
    }
    mounts.retain(|mount| !is_from_another(machine, mount, inode));
    mounts
}

/// Whether the name still leads to an image that a program has open, and that is another file.
fn is_from_another(machine: &Machine<'_>, mount: &Mount, inode: Inode) -> bool {
    let namespace: &Namespace = &mount.namespace;
    let is_other =
        matches!(leads_to(machine, &mount.source, namespace), Some(Led::File(led)) if led != inode);
    is_other
        && open_file(machine, &mount.source, namespace).is_some_and(|file| {
            rdsk_sys::openers::is_open_elsewhere(&file).unwrap_or(false) && is_image(file)
        })
}

fn is_image(file: impl AsFd) -> bool {
    let mut magic = [0; 4];
    let read = loop {
        match rustix::io::pread(&file, &mut magic, SUPERBLOCK_OFFSET) {
            Err(Errno::INTR) => {}
            answer => break answer,
        }
    };
    read.is_ok_and(|bytes| bytes == magic.len()) && magic == MAGIC
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::Fake;
    use std::fs;
    use std::os::unix::fs::MetadataExt as _;

    fn image(fake: &Fake, name: &str) {
        let bytes = [vec![0; 1024], MAGIC.to_vec(), vec![0; 3068]].concat();
        fs::write(fake.path(name), bytes).unwrap();
    }

    fn doubts(fake: &Fake, name: &str) -> usize {
        let path = fake.path(name);
        let meta = fs::metadata(&path).unwrap();
        fake.with(|machine, _| {
            let mut usage = InUse::default();
            doubt(machine, &path, (meta.dev(), meta.ino()), &mut usage);
            usage.doubts.len()
        })
    }

    #[test]
    fn an_image_may_be_mounted_by_a_name_that_it_has_lost() {
        let fake = Fake::new();
        image(&fake, "renamed.img");
        fake.file("text", &"x".repeat(4096));
        fake.file("short", "x");
        let source = fake.path("image").display().to_string();
        let fake = fake.mount("0:50", "/mnt", "erofs", &source).mount("0:50", "/too", "erofs", &source);
        assert_eq!(doubts(&fake, "renamed.img"), 1, "one filesystem");
        assert_eq!((doubts(&fake, "text"), doubts(&fake, "short")), (0, 0));
        // Another file has the name now; while no process has that open, it is not what is mounted.
        image(&fake, "image");
        let reader = fs::File::open(fake.path("image")).unwrap();
        let told =
            rdsk_sys::openers::is_open_elsewhere(probe::open_for_reading(&fake.path("image")).unwrap());
        if told.is_ok() {
            assert_eq!(doubts(&fake, "renamed.img"), 0, "it is mounted from another one");
        }
        drop(reader);
        assert!((0..3000).any(|_| {
            std::thread::sleep(std::time::Duration::from_millis(10));
            doubts(&fake, "renamed.img") == 1
        }));
        let relative = Fake::new().mount("0:50", "/mnt", "erofs", "image");
        image(&relative, "image");
        assert_eq!(doubts(&relative, "image"), 1, "a name relative to a directory that is not known");
        let device = Fake::new().mount("8:0", "/mnt", "erofs", "/dev/sda");
        image(&device, "image");
        assert_eq!(doubts(&device, "image"), 0);
    }
}
