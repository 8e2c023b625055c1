//! The block devices as sysfs shows them: names, numbers, partitions, what is built on what. It opens no device.

use rdsk_model::SECTOR_BYTES;
use rdsk_sys::device_number::DeviceNumber;
use rdsk_sys::files::{names_in, read_number, read_text, read_word};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

/// One block device, a partition included.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    /// Kernel name as in sysfs, where `/` is spelled `!`.
    pub(crate) name: String,
    pub(crate) number: DeviceNumber,
    pub(crate) directory: PathBuf,
    /// The whole disk that a partition belongs to.
    pub(crate) parent: Option<String>,
    pub(crate) partitions: Vec<String>,
    pub(crate) slaves: Vec<String>,
    pub(crate) holders: Vec<String>,
    /// `dm/name` or `md` name: the name that people use.
    pub(crate) mapped_name: Option<String>,
    /// `loop/backing_file`, exactly; a deleted file ends in ` (deleted)`.
    pub(crate) backing_file: Option<PathBuf>,
    /// Whether its driver is null_blk, which needs no disk.
    pub(crate) is_null: bool,
}

impl Node {
    /// Capacity in bytes; `None` if sysfs does not report one.
    pub(crate) fn size_bytes(&self) -> Option<u64> {
        let sectors = read_number::<u64>(&self.directory.join("size"))?;
        Some(sectors.saturating_mul(SECTOR_BYTES))
    }

    /// For messages: `dm-0 (vg-home)`, `loop3 (/srv/a.img)`, `sda`.
    pub(crate) fn shown(&self) -> String {
        let name = self.kernel_name();
        match (&self.mapped_name, &self.backing_file) {
            (Some(mapped), _) => format!("{name} ({mapped})"),
            (None, Some(file)) => format!("{name} ({})", file.display()),
            (None, None) => name,
        }
    }

    /// `dm/uuid` of a device-mapper device; empty for every other device.
    pub(crate) fn dm_uuid(&self) -> String {
        read_text(&self.directory.join("dm/uuid")).unwrap_or_default()
    }

    pub(crate) fn kernel_name(&self) -> String {
        self.name.replace('!', "/")
    }
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Tree {
    nodes: BTreeMap<String, Node>,
    numbers: BTreeMap<DeviceNumber, String>,
}

impl Tree {
    /// Reads `block/` of sysfs.
    pub(crate) fn read(sys: &Path) -> io::Result<Self> {
        let mut tree = Self::default();
        for entry in fs::read_dir(sys.join("block"))? {
            let entry = entry?;
            let directory = entry.path();
            let name = entry.file_name().to_string_lossy().into_owned();
            // Hidden paths of NVMe multipath have no number and cannot be opened.
            let Some(mut node) = read_node(&name, &directory, None) else { continue };
            for part in names_in(&directory) {
                let part_directory = directory.join(&part);
                if !part_directory.join("partition").exists() {
                    continue;
                }
                if let Some(partition) = read_node(&part, &part_directory, Some(name.clone())) {
                    node.partitions.push(part);
                    tree.insert(partition);
                }
            }
            tree.insert(node);
        }
        Ok(tree)
    }

    /// Marks the devices of null_blk by their major number, from `devices` of procfs: sysfs names no driver of them, and the program that makes
    /// one in configfs chooses its name (seen on 6.1).
    pub(crate) fn mark_null(&mut self, proc: &Path) {
        let Some(text) = read_text(&proc.join("devices")) else { return };
        let block = text.lines().skip_while(|line| !line.starts_with("Block devices"));
        let words = block.filter_map(|line| line.trim().split_once(' '));
        let majors: Vec<u32> = words
            .filter(|(_, driver)| *driver == "nullb")
            .filter_map(|(major, _)| major.parse().ok())
            .collect();
        for node in self.nodes.values_mut() {
            node.is_null = majors.contains(&node.number.major);
        }
    }

    fn insert(&mut self, node: Node) {
        self.numbers.insert(node.number, node.name.clone());
        self.nodes.insert(node.name.clone(), node);
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Node> {
        self.nodes.get(name)
    }

    pub(crate) fn by_number(&self, number: DeviceNumber) -> Option<&Node> {
        self.get(self.numbers.get(&number)?)
    }

    pub(crate) fn nodes(&self) -> impl Iterator<Item = &Node> {
        self.nodes.values()
    }

    /// The device that carries the queue: the whole disk of a partition, else the device itself.
    pub(crate) fn whole<'tree>(&'tree self, node: &'tree Node) -> &'tree Node {
        node.parent.as_deref().and_then(|parent| self.get(parent)).unwrap_or(node)
    }

    /// Names from the device down to the members, each once, breadth first.
    pub(crate) fn stack(&self, top: &Node) -> Vec<String> {
        let mut stack = vec![top.name.clone()];
        let mut index = 0;
        while index < stack.len() {
            if let Some(node) = self.get(&stack[index]) {
                for below in node.slaves.iter().chain(&node.parent) {
                    if !stack.contains(below) {
                        stack.push(below.clone());
                    }
                }
            }
            index += 1;
        }
        stack
    }

    /// The same, as the kernel prints them.
    pub(crate) fn kernel_names(&self, top: &Node) -> Vec<String> {
        self.stack(top).iter().map(|name| name.replace('!', "/")).collect()
    }

    /// The whole disks at the bottom of a device.
    pub(crate) fn bottoms(&self, top: &Node) -> BTreeSet<String> {
        let is_bottom =
            |name: &String| self.get(name).is_none_or(|node| node.slaves.is_empty() && node.parent.is_none());
        self.stack(top).into_iter().filter(is_bottom).collect()
    }

    /// The block device that an absolute path names: a node under `dev`, or anywhere else.
    pub(crate) fn by_path(&self, path: &Path, dev: &Path) -> Option<&Node> {
        use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
        if path.is_relative() {
            return None;
        }
        let below_dev = path.strip_prefix("/dev").ok();
        let place = below_dev.map_or_else(|| path.to_owned(), |rest| dev.join(rest));
        if let Ok(meta) = fs::metadata(&place)
            && meta.file_type().is_block_device()
        {
            return self.by_number(DeviceNumber::from_raw(meta.rdev()));
        }
        // The node may be missing although the kernel name is known, as in a container.
        below_dev?;
        let place = link_target(&place).unwrap_or(place);
        let rest = place.strip_prefix(dev).ok()?.to_string_lossy();
        if let Some(mapped) = rest.strip_prefix("mapper/") {
            return self.nodes().find(|node| node.mapped_name.as_deref() == Some(mapped));
        }
        self.get(&rest.replace('/', "!"))
    }
}

/// Where a link leads, whether anything is there or not.
fn link_target(link: &Path) -> Option<PathBuf> {
    let target = link.parent()?.join(fs::read_link(link).ok()?);
    Some(fs::canonicalize(target.parent()?).ok()?.join(target.file_name()?))
}

fn read_node(name: &str, directory: &Path, parent: Option<String>) -> Option<Node> {
    let number = read_text(&directory.join("dev"))?.parse().ok()?;
    let backing_file = fs::read(directory.join("loop/backing_file")).ok().map(|mut bytes| {
        if bytes.last() == Some(&b'\n') {
            bytes.pop();
        }
        PathBuf::from(OsString::from_vec(bytes))
    });
    Some(Node {
        name: name.to_owned(),
        number,
        directory: directory.to_owned(),
        parent,
        partitions: Vec::new(),
        slaves: names_in(&directory.join("slaves")),
        holders: names_in(&directory.join("holders")),
        mapped_name: read_word(&directory.join("dm/name")),
        backing_file,
        is_null: false,
    })
}
