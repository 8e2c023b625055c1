//! A fake machine: a scratch directory with `sys`, `proc` and `dev` as the kernel would fill them for the described disks.
//! It holds files and links only, and never touches the real ones.

mod disk;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Component, Path, PathBuf};

use tempfile::TempDir;

pub use disk::{FakeDisk, STAT_FIELDS};

/// A fake tree, removed on drop. Readers take [`FakeSys::sys`] instead of `/sys`.
///
/// Builder methods take and return the tree, so that a machine is one expression. All panic on what no kernel would have (a
/// partition of a missing disk, a number used twice).
#[derive(Debug)]
pub struct FakeSys {
    root: TempDir,
    nodes: Vec<Node>,
}

/// A disk or a partition in the tree.
#[derive(Clone, Debug)]
struct Node {
    name: String,
    major_minor: (u32, u32),
    /// Its directory, from the root of the tree: `sys/devices/…/sda/sda1`.
    directory: PathBuf,
    size_bytes: u64,
}

impl Default for FakeSys {
    fn default() -> Self {
        Self::new()
    }
}

impl FakeSys {
    /// A machine without any disk or mount.
    pub fn new() -> Self {
        let root = tempfile::Builder::new()
            .prefix("rdsk-fakesys-")
            .tempdir()
            .unwrap_or_else(|error| panic!("cannot make a scratch directory: {error}"));
        let fake = Self { root, nodes: Vec::new() };
        for directory in ["sys/block", "sys/class/block", "sys/dev/block"] {
            fake.make_directory(Path::new(directory));
        }
        fake.write(Path::new("proc/self/mountinfo"), "");
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
        });
        self.link(&Path::new("sys/block").join(&disk.name), &directory);
        self.make_directory(&directory.join("slaves"));
        for (file, content) in disk.files() {
            self.write(&directory.join(file), format!("{content}\n"));
        }
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
        for (file, content) in [
            ("partition", u64::from(number)),
            ("start", start_bytes / 512),
            ("ro", 0),
            ("alignment_offset", 0),
        ] {
            self.write(&directory.join(file), format!("{content}\n"));
        }
        let major_minor = (parent.major_minor.0, parent.major_minor.1 + number);
        self.add_node(Node { name, major_minor, directory, size_bytes });
        self
    }

    /// `upper` (a device-mapper or md device) stands on `lower` (a disk or a partition).
    pub fn holder(self, lower: &str, upper: &str) -> Self {
        let (below, above) = (&self.node(lower).directory, &self.node(upper).directory);
        self.link(&below.join("holders").join(upper), above);
        self.link(&above.join("slaves").join(lower), below);
        self
    }

    /// Sets the counters of a disk or partition, for readers that take two samples.
    pub fn set_stat(&self, device: &str, stat: [u64; STAT_FIELDS]) {
        self.write_stat(&self.node(device).directory, &stat);
    }

    /// Writes any file of a disk or partition (`"queue/iostats"`), for what the description does not cover.
    pub fn set_attribute(&self, device: &str, attribute: &str, content: &str) {
        self.write(&self.node(device).directory.join(attribute), content);
    }

    /// The directory in place of `/sys`.
    pub fn sys(&self) -> PathBuf {
        self.root.path().join("sys")
    }

    /// The directory in place of `/proc`.
    pub fn proc(&self) -> PathBuf {
        self.root.path().join("proc")
    }

    /// Adds what disks and partitions have in common.
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
        self.make_directory(&directory.join("holders"));
        self.write(&directory.join("dev"), format!("{major}:{minor}\n"));
        self.write(&directory.join("size"), format!("{}\n", node.size_bytes / 512));
        self.write_stat(directory, &[0; STAT_FIELDS]);
        self.nodes.push(node);
    }

    /// The line of Documentation/block/stat.rst.
    fn write_stat(&self, directory: &Path, stat: &[u64; STAT_FIELDS]) {
        let fields: Vec<String> = stat.iter().map(|field| format!("{field:8}")).collect();
        self.write(&directory.join("stat"), fields.join(" ") + "\n");
    }

    fn node(&self, name: &str) -> &Node {
        let node = self.nodes.iter().find(|node| node.name == name);
        node.unwrap_or_else(|| panic!("there is no device {name} in the fake tree yet"))
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
