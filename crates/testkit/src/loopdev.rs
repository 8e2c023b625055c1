//! Real block devices for tests: loop devices over files in a scratch directory, removed on drop. It never touches a loop
//! device that it did not create.

mod attach;

pub use attach::attach_file;

use attach::{attach, forget_partitions};
use std::fmt::Debug;
use std::fs::{File, OpenOptions};
use std::hash::{DefaultHasher, Hasher as _};
use std::io;
use std::marker::PhantomData;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tempfile::TempDir;

use crate::tool::{output_of, remove_directory, unmount, wait_until};

/// Far longer than the kernel takes on a busy machine.
const LONG: Duration = Duration::from_secs(30);
/// How many partitions a device is cut into.
const PARTITIONS: u64 = 2;
/// Alignment in bytes that satisfies direct I/O on every device made here.
const ALIGNMENT: usize = 4096;
const HASH_CHUNK_BYTES: usize = 1 << 20;

/// Whether the loop device passes its I/O to the backing file with `O_DIRECT` or through the page cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DirectIo {
    /// Directly: requests keep their size and reach the disk below.
    On,
    /// Through the page cache of the backing file, as losetup does by default.
    #[default]
    Off,
}

/// The options of a [`LoopDevice`].
#[derive(Clone, Debug)]
pub struct Builder {
    size: u64,
    sector_size: u32,
    direct_io: DirectIo,
    read_only: bool,
    in_memory: bool,
    backing: Option<PathBuf>,
    below: Option<Below>,
}

/// What must exist as long as the device.
type Below = Arc<dyn Debug + Send + Sync>;

impl Builder {
    /// Size in bytes of the backing file (default 64 MiB). It is sparse.
    pub fn size(mut self, size: u64) -> Self {
        self.size = size;
        self
    }

    /// Logical block size in bytes: 512 (the default) to 4096.
    pub fn sector_size(mut self, sector_size: u32) -> Self {
        self.sector_size = sector_size;
        self
    }

    /// How the backing file is reached (default: through the page cache).
    pub fn direct_io(mut self, direct_io: DirectIo) -> Self {
        self.direct_io = direct_io;
        self
    }

    /// Makes the kernel refuse writes to the device.
    pub fn read_only(mut self) -> Self {
        self.read_only = true;
        self
    }

    /// Creates the file in `/dev/shm`, where a flush costs nothing, if there is room for it. The speed of the machine's disk
    /// then does not affect the device.
    pub fn in_memory(mut self) -> Self {
        self.in_memory = true;
        self
    }

    /// Uses this file instead of creating one. It stays in place when the device is removed.
    pub fn over(mut self, file: impl Into<PathBuf>) -> Self {
        self.backing = Some(file.into());
        self
    }

    /// Keeps `below`, which serves the file, until the device is removed.
    pub(crate) fn keep_until_drop(mut self, below: Below) -> Self {
        self.below = Some(below);
        self
    }

    /// Makes the device.
    ///
    /// # Errors
    /// Those of making the file, or what losetup said.
    pub fn create(self) -> io::Result<LoopDevice> {
        let memory = Path::new("/dev/shm");
        let fits = |free: rustix::fs::StatVfs| free.f_bavail * free.f_frsize >= self.size;
        let place = if self.in_memory && rustix::fs::statvfs(memory).is_ok_and(fits) {
            memory.to_path_buf()
        } else {
            std::env::temp_dir()
        };
        let directory = tempfile::Builder::new().prefix("rdsk-loop-").tempdir_in(place)?;
        let backing = match self.backing {
            Some(file) => file,
            None => {
                let file = directory.path().join("backing");
                File::create_new(&file)?.set_len(self.size)?;
                file
            }
        };
        let mut command = Command::new("losetup");
        command.args(["--find", "--show", "--sector-size", &self.sector_size.to_string()]);
        command.arg(match self.direct_io {
            DirectIo::On => "--direct-io=on",
            DirectIo::Off => "--direct-io=off",
        });
        if self.read_only {
            command.arg("--read-only");
        }
        let path = attach(command.arg(&backing))?;
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        // From here on Drop cleans up, even if the rest fails.
        let mut device = LoopDevice {
            path,
            name,
            major_minor: String::new(),
            backing,
            partitioned: AtomicBool::new(false),
            directory,
            below: self.below,
        };
        device.major_minor = device.sysfs("dev")?;
        // A loop device keeps what its last user set.
        std::fs::write(Path::new("/sys/block").join(&device.name).join("queue/nomerges"), "0")?;
        Ok(device)
    }
}

/// A loop device. On drop it is detached and its backing file removed.
#[derive(Debug)]
pub struct LoopDevice {
    path: PathBuf,
    name: String,
    major_minor: String,
    backing: PathBuf,
    partitioned: AtomicBool,
    /// Declared last, so that the backing file is removed after the device.
    #[allow(dead_code, reason = "kept for its Drop, which removes the backing file")]
    directory: TempDir,
    #[allow(dead_code, reason = "kept for its Drop, which must not come before the device is detached")]
    below: Option<Below>,
}

impl LoopDevice {
    /// A builder with the defaults: 64 MiB, sectors of 512 bytes, not direct, writable.
    pub fn builder() -> Builder {
        Builder {
            size: 64 << 20,
            sector_size: 512,
            direct_io: DirectIo::default(),
            read_only: false,
            in_memory: false,
            backing: None,
            below: None,
        }
    }

    /// Its node: `/dev/loop9`.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its name: `loop9`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The file below it.
    pub fn backing_path(&self) -> &Path {
        &self.backing
    }

    /// Its number: `7:9`.
    pub fn major_minor(&self) -> &str {
        &self.major_minor
    }

    /// Sets the length of the backing file without telling the device, so that I/O beyond it fails with `EIO`.
    ///
    /// # Errors
    /// Those of ftruncate(2).
    pub fn truncate_backing(&self, len: u64) -> io::Result<()> {
        OpenOptions::new().write(true).open(&self.backing)?.set_len(len)
    }

    /// A hash of the whole content of the device, read past the page cache. Equal content has equal hashes within one
    /// build of the tests; the number itself has no meaning.
    ///
    /// # Errors
    /// Those of reading the device.
    pub fn content_hash(&self) -> io::Result<u64> {
        let direct = i32::try_from(rustix::fs::OFlags::DIRECT.bits()).expect("O_DIRECT is a small flag");
        let device = OpenOptions::new().read(true).custom_flags(direct).open(&self.path)?;
        let size = rdsk_sys::device::block_device_size(&device)?;
        let mut storage = vec![0u8; HASH_CHUNK_BYTES + ALIGNMENT];
        let skip = storage.as_ptr().align_offset(ALIGNMENT);
        let buffer = &mut storage[skip..skip + HASH_CHUNK_BYTES];
        let mut hasher = DefaultHasher::new();
        let mut offset = 0;
        while offset < size {
            let wanted =
                usize::try_from(size - offset).map_or(HASH_CHUNK_BYTES, |rest| rest.min(HASH_CHUNK_BYTES));
            device.read_exact_at(&mut buffer[..wanted], offset)?;
            hasher.write(&buffer[..wanted]);
            offset += wanted as u64;
        }
        Ok(hasher.finish())
    }

    /// Creates an ext4 filesystem on the whole device.
    ///
    /// # Errors
    /// What mkfs.ext4 said.
    pub fn mkfs_ext4(&self, label: &str) -> io::Result<()> {
        mkfs_ext4(&self.path, label)
    }

    /// Creates an XFS filesystem on the whole device, which must have at least 300 MiB.
    ///
    /// # Errors
    /// What mkfs.xfs said.
    pub fn mkfs_xfs(&self, label: &str) -> io::Result<()> {
        output_of(Command::new("mkfs.xfs").args(["-q", "-f", "-L", label]).arg(&self.path)).map(drop)
    }

    /// Mounts the filesystem of the whole device on a directory of its own.
    ///
    /// # Errors
    /// What mount said.
    pub fn mount(&self) -> io::Result<Mount<'_>> {
        self.mount_node(&self.path)
    }

    /// Mounts the filesystem of `node`, a partition of this device, on a directory of its own.
    ///
    /// # Errors
    /// What mount said.
    pub fn mount_node(&self, node: &Path) -> io::Result<Mount<'_>> {
        // Not a TempDir: that would remove what is inside, and inside is the mounted filesystem.
        let directory = tempfile::Builder::new().prefix("rdsk-mount-").tempdir()?.keep();
        if let Err(error) = output_of(Command::new("mount").arg(node).arg(&directory)) {
            remove_directory(&directory);
            return Err(error);
        }
        Ok(Mount { directory, device: PhantomData })
    }

    /// Writes a GUID partition table with two equal partitions, makes the kernel know them, and returns their nodes.
    ///
    /// # Errors
    /// What sfdisk or partx said; `TimedOut` when the nodes do not appear.
    pub fn partition_gpt(&self) -> io::Result<Vec<PathBuf>> {
        let size = rdsk_sys::device::block_device_size(&File::open(&self.path)?)?;
        // They begin at 1 MiB and end 1 MiB before the end.
        let mib = (size >> 20).saturating_sub(2) / PARTITIONS;
        let lines = (0..PARTITIONS).map(|index| format!("start={}MiB, size={mib}MiB\n", 1 + index * mib));
        let script = format!("label: gpt\n{}", lines.collect::<String>());
        let write = r#"printf %s "$2" | sfdisk --quiet --no-reread --no-tell-kernel --wipe=never --wipe-partitions=never "$1""#;
        output_of(Command::new("sh").args(["-c", write, "sh"]).arg(&self.path).arg(script))?;
        self.add_partition_nodes()
    }

    /// Makes the kernel read the two partitions of the device's table, and returns their nodes.
    ///
    /// # Errors
    /// What partx said; `TimedOut` when the nodes do not appear.
    pub fn add_partition_nodes(&self) -> io::Result<Vec<PathBuf>> {
        self.partitioned.store(true, Ordering::Relaxed);
        // The program that looks at the labels of all devices may have read this one before the table came into its file.
        output_of(Command::new("blockdev").arg("--flushbufs").arg(&self.path))?;
        // Those of another table that it had before, of which partx would mend only a part.
        forget_partitions(&self.path)?;
        // partx reads the table itself, so this works on kernels that were built without GPT.
        output_of(Command::new("partx").arg("--update").arg(&self.path))?;
        let nodes: Vec<PathBuf> = (1..=PARTITIONS)
            .map(|number| PathBuf::from(format!("{}p{number}", self.path.display())))
            .collect();
        if !wait_until(LONG, || nodes.iter().all(|node| node.exists())) {
            return Err(io::Error::new(io::ErrorKind::TimedOut, format!("no nodes for {nodes:?}")));
        }
        Ok(nodes)
    }

    /// An attribute of the device in sysfs, trimmed.
    ///
    /// # Errors
    /// Those of reading the file.
    pub fn sysfs(&self, attribute: &str) -> io::Result<String> {
        let path = format!("/sys/block/{}/{attribute}", self.name);
        Ok(std::fs::read_to_string(path)?.trim().to_owned())
    }

    /// Whether the device is still attached to our file: its directory `loop` goes with the attachment, and a number
    /// taken again by another test has another file.
    fn is_attached(&self) -> bool {
        let backing = std::fs::canonicalize(&self.backing).unwrap_or_else(|_| self.backing.clone());
        self.sysfs("loop/backing_file").is_ok_and(|file| Path::new(&file) == backing)
    }
}

impl Drop for LoopDevice {
    fn drop(&mut self) {
        if !self.is_attached() {
            return;
        }
        // A partition that another program is reading, to find a disk by its name, is busy.
        if *self.partitioned.get_mut() && !wait_until(LONG, || forget_partitions(&self.path).is_ok()) {
            eprintln!("cannot remove the partitions of {}", self.path.display());
        }
        if let Err(error) = output_of(Command::new("losetup").arg("--detach").arg(&self.path)) {
            eprintln!("cannot detach {}: {error}", self.path.display());
        }
        // While the device is open the kernel only marks it, and detaches it at the last close.
        if !wait_until(LONG, || !self.is_attached()) {
            eprintln!("{} is still in use and stays attached until that ends", self.path.display());
        }
    }
}

/// A mounted filesystem; it cannot outlive its device. On drop it is unmounted and its directory removed.
#[derive(Debug)]
pub struct Mount<'device> {
    directory: PathBuf,
    device: PhantomData<&'device LoopDevice>,
}

impl Mount<'_> {
    /// Where it is mounted.
    pub fn path(&self) -> &Path {
        &self.directory
    }
}

impl Drop for Mount<'_> {
    fn drop(&mut self) {
        unmount(&self.directory);
    }
}

/// Makes an ext4 filesystem on a device or partition.
///
/// # Errors
/// What mkfs.ext4 said.
pub fn mkfs_ext4(node: &Path, label: &str) -> io::Result<()> {
    // Without lazy initialisation, which would write in the background for a long time and disturb measurements.
    let options = ["-q", "-F", "-E", "lazy_itable_init=0,lazy_journal_init=0", "-L", label];
    output_of(Command::new("mkfs.ext4").args(options).arg(node)).map(drop)
}

#[cfg(test)]
mod tests;
