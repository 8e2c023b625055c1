//! A fake machine: a scratch directory with `sys`, `proc` and `dev` as the kernel would fill them for the described disks.
//! It holds files and links only, and never touches the real ones.

mod disk;
mod proc;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Component, Path, PathBuf};

use tempfile::TempDir;

pub use disk::{FakeDisk, FakeKind, STAT_FIELDS};

/// A fake tree, removed on drop. Readers take [`FakeSys::root`] instead of `/`.
///
/// Builder methods take and return the tree, so that a machine is one expression. All panic on what no kernel would have (a
/// partition of a missing disk, a number used twice).
#[derive(Debug)]
pub struct FakeSys {
    root: TempDir,
    nodes: Vec<Node>,
    mounts: Vec<proc::MountLine>,
    swaps: Vec<proc::SwapLine>,
}

/// A disk or a partition in the tree.
#[derive(Clone, Debug)]
struct Node {
    name: String,
    major_minor: (u32, u32),
    /// Its directory, from the root of the tree: `sys/devices/…/sda/sda1`.
    directory: PathBuf,
    size_bytes: u64,
    stat: [u64; STAT_FIELDS],
}

impl Default for FakeSys {
    fn default() -> Self {
        Self::new()
    }
}

impl FakeSys {
    /// A machine without any disk, with its root on a filesystem without a block device.
    pub fn new() -> Self {
        let root = tempfile::Builder::new()
            .prefix("rdsk-fakesys-")
            .tempdir()
            .unwrap_or_else(|error| panic!("cannot make a scratch directory: {error}"));
        let fake = Self { root, nodes: Vec::new(), mounts: Vec::new(), swaps: Vec::new() };
        for directory in
            ["sys/block", "sys/class/block", "sys/dev/block", "proc/self", "dev/disk/by-id", "dev/mapper"]
        {
            fake.make_directory(Path::new(directory));
        }
        fake.write_proc();
        fake
    }

    /// Adds a disk.
    #[allow(clippy::needless_pass_by_value, reason = "a description is written in place and used once")]
    pub fn disk(mut self, disk: FakeDisk) -> Self {
        let directory = disk.directory();
        self.add_node(Node {
            name: disk.name.clone(),
            major_minor: disk.major_minor,
            directory: directory.clone(),
            size_bytes: disk.size_bytes,
            stat: disk.stat,
        });
        self.link(&Path::new("sys/block").join(&disk.name), &directory);
        for (file, content) in disk.attributes() {
            self.write(&directory.join(file), content);
        }
        if let Some(device) = disk.device_directory() {
            for (file, content) in disk.device_attributes() {
                self.write(&device.join(file), content);
            }
            self.link(&directory.join("device"), &device);
        }
        for link in disk.device_links() {
            self.link(&Path::new("dev").join(link), &Path::new("dev").join(&disk.name));
        }
        self.write_proc();
        self
    }

    /// Adds partition `number` (from 1) of `disk`: `sda1`, `nvme0n1p1`. Its minor number is the disk's plus `number`.
    pub fn partition(mut self, disk: &str, number: u32, start_bytes: u64, size_bytes: u64) -> Self {
        let parent = self.node(disk).clone();
        assert!(
            start_bytes + size_bytes <= parent.size_bytes,
            "partition {number} reaches beyond the end of {disk}"
        );
        let separator = if disk.ends_with(|last: char| last.is_ascii_digit()) { "p" } else { "" };
        let name = format!("{disk}{separator}{number}");
        let directory = parent.directory.join(&name);
        let major_minor = (parent.major_minor.0, parent.major_minor.1 + number);
        self.add_node(Node {
            name,
            major_minor,
            directory: directory.clone(),
            size_bytes,
            stat: [0; STAT_FIELDS],
        });
        self.write(&directory.join("partition"), format!("{number}\n"));
        self.write(&directory.join("start"), format!("{}\n", start_bytes / 512));
        let (major, minor) = major_minor;
        let event = format!(
            "MAJOR={major}\nMINOR={minor}\nDEVNAME={}\nDEVTYPE=partition\nPARTN={number}\n",
            self.nodes.last().expect("just added").name
        );
        self.write(&directory.join("uevent"), event);
        for (file, content) in [("ro", "0\n"), ("alignment_offset", "0\n"), ("discard_alignment", "0\n")] {
            self.write(&directory.join(file), content);
        }
        self.write_proc();
        self
    }

    /// `upper` (a device-mapper or md device) stands on `lower` (a disk or a partition).
    pub fn holder(self, lower: &str, upper: &str) -> Self {
        let (below, above) = (self.node(lower).directory.clone(), self.node(upper).directory.clone());
        self.link(&below.join("holders").join(upper), &above);
        self.link(&above.join("slaves").join(lower), &below);
        self
    }

    /// Mounts the filesystem of `device` ("sda1") there.
    pub fn mount(mut self, device: &str, mountpoint: &str, fstype: &str) -> Self {
        let node = self.node(device);
        let line = proc::MountLine {
            major_minor: node.major_minor,
            source: proc::node_name(self.root.path(), device),
            mountpoint: mountpoint.to_owned(),
            fstype: fstype.to_owned(),
        };
        self.mounts.push(line);
        self.write_proc();
        self
    }

    /// Mounts a filesystem without a block device there ("tmpfs", "/tmp").
    pub fn mount_nodev(mut self, fstype: &str, mountpoint: &str) -> Self {
        let anonymous = u32::try_from(self.mounts.len()).expect("a few mounts") + 40;
        self.mounts.push(proc::MountLine {
            major_minor: (0, anonymous),
            source: fstype.to_owned(),
            mountpoint: mountpoint.to_owned(),
            fstype: fstype.to_owned(),
        });
        self.write_proc();
        self
    }

    /// `device` is in use as swap.
    pub fn swap(mut self, device: &str) -> Self {
        let size_bytes = self.node(device).size_bytes;
        // The kernel names a swap device by its node, never by a link to it.
        self.swaps.push(proc::SwapLine { path: format!("/dev/{device}"), size_bytes });
        self.write_proc();
        self
    }

    /// The loop device `name` is attached to `file`, an absolute path.
    pub fn loop_backing(self, name: &str, file: impl AsRef<Path>) -> Self {
        let directory = self.node(name).directory.join("loop");
        self.write(&directory.join("backing_file"), format!("{}\n", file.as_ref().display()));
        for (attribute, content) in [
            ("offset", "0\n"),
            ("sizelimit", "0\n"),
            ("autoclear", "0\n"),
            ("partscan", "0\n"),
            ("dio", "0\n"),
        ] {
            self.write(&directory.join(attribute), content);
        }
        self
    }

    /// Sets the counters of a disk or partition (see [`FakeDisk::stat`]), for readers that take two samples.
    pub fn set_stat(&mut self, device: &str, stat: [u64; STAT_FIELDS]) {
        let index = self.index_of(device);
        self.nodes[index].stat = stat;
        self.write_stat(&self.nodes[index]);
        self.write_proc();
    }

    /// Writes any file of a disk or partition (`"queue/iostats"`), for what the description does not cover.
    pub fn set_attribute(&self, device: &str, attribute: &str, content: &str) {
        self.write(&self.node(device).directory.join(attribute), content);
    }

    /// Removes a file or directory of a disk or partition that an older kernel or another driver would lack.
    pub fn remove_attribute(&self, device: &str, attribute: &str) {
        let path = self.root.path().join(&self.node(device).directory).join(attribute);
        let removed = if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
        removed.unwrap_or_else(|error| panic!("cannot remove {}: {error}", path.display()));
    }

    /// The root, in place of `/`.
    pub fn root(&self) -> &Path {
        self.root.path()
    }

    /// The directory in place of `/sys`.
    pub fn sys(&self) -> PathBuf {
        self.root.path().join("sys")
    }

    /// The directory in place of `/proc`.
    pub fn proc(&self) -> PathBuf {
        self.root.path().join("proc")
    }

    /// The directory in place of `/dev`. Its nodes are empty files without I/O.
    pub fn dev(&self) -> PathBuf {
        self.root.path().join("dev")
    }

    fn add_node(&mut self, node: Node) {
        assert!(
            self.nodes.iter().all(|other| other.name != node.name && other.major_minor != node.major_minor),
            "there is a device named {} or numbered {:?} already",
            node.name,
            node.major_minor
        );
        let (major, minor) = node.major_minor;
        let directory = &node.directory;
        for links in [format!("sys/class/block/{}", node.name), format!("sys/dev/block/{major}:{minor}")] {
            self.link(Path::new(&links), directory);
        }
        self.link(&directory.join("subsystem"), Path::new("sys/class/block"));
        for empty in ["holders", "slaves"] {
            // A partition has holders; only whole disks have slaves.
            if empty == "holders"
                || !directory.parent().is_some_and(|up| self.nodes.iter().any(|n| n.directory == up))
            {
                self.make_directory(&directory.join(empty));
            }
        }
        self.write(&directory.join("dev"), format!("{major}:{minor}\n"));
        self.write(&directory.join("size"), format!("{}\n", node.size_bytes / 512));
        self.write(&directory.join("inflight"), format!("{:8} {:8}\n", 0, 0));
        self.write_stat(&node);
        self.write(&Path::new("dev").join(&node.name), "");
        self.nodes.push(node);
    }

    fn write_stat(&self, node: &Node) {
        self.write(&node.directory.join("stat"), proc::stat_line(&node.stat));
    }

    fn write_proc(&self) {
        self.write(Path::new("proc/self/mountinfo"), proc::mountinfo(&self.mounts));
        self.write(Path::new("proc/self/mounts"), proc::mounts(&self.mounts));
        self.write(Path::new("proc/mounts"), proc::mounts(&self.mounts));
        self.write(Path::new("proc/swaps"), proc::swaps(&self.swaps));
        let lines =
            self.nodes.iter().map(|node| proc::diskstats_line(node.major_minor, &node.name, &node.stat));
        self.write(Path::new("proc/diskstats"), lines.collect::<String>());
    }

    fn index_of(&self, name: &str) -> usize {
        self.nodes
            .iter()
            .position(|node| node.name == name)
            .unwrap_or_else(|| panic!("there is no device {name} in the fake tree yet"))
    }

    fn node(&self, name: &str) -> &Node {
        &self.nodes[self.index_of(name)]
    }

    fn make_directory(&self, path: &Path) {
        let path = self.root.path().join(path);
        fs::create_dir_all(&path).unwrap_or_else(|error| panic!("cannot make {}: {error}", path.display()));
    }

    fn write(&self, path: &Path, content: impl AsRef<[u8]>) {
        self.make_directory(path.parent().expect("a file of the tree lies in a directory of the tree"));
        let path = self.root.path().join(path);
        fs::write(&path, content).unwrap_or_else(|error| panic!("cannot write {}: {error}", path.display()));
    }

    /// Makes `link` point to `target`, both from the root of the tree, with a relative path as in sysfs.
    fn link(&self, link: &Path, target: &Path) {
        let from = link.parent().expect("a link of the tree lies in a directory of the tree");
        self.make_directory(from);
        let path = self.root.path().join(link);
        symlink(relative(from, target), &path)
            .unwrap_or_else(|error| panic!("cannot link {}: {error}", path.display()));
    }
}

/// The relative path from the directory `from` to `to`, both given from the same root and without `..`.
fn relative(from: &Path, to: &Path) -> PathBuf {
    let from: Vec<Component<'_>> = from.components().collect();
    let to: Vec<Component<'_>> = to.components().collect();
    let shared = from.iter().zip(&to).take_while(|(left, right)| left == right).count();
    std::iter::repeat_n(Component::ParentDir, from.len() - shared)
        .chain(to[shared..].iter().copied())
        .collect()
}

#[cfg(test)]
mod tests;
