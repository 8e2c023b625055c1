//! Examines a name: what it is, what it lies on, what uses it. Symlinks are resolved first, so that what is judged is what
//! will be opened. It opens for reading only, and it judges nothing.

use crate::device_number::DeviceNumber;
use crate::error::TargetError;
use crate::identity::{self, Identity, Names, NoIdentity};
use crate::machine_state::MachineState;
use crate::mounts::{Mount, mount_of};
use crate::roots::Roots;
use crate::signature::{self, Signature};
use crate::sim::Simulated;
use crate::sysfs::Node;
use crate::tools::{self, Lsblk};
use crate::uses::{Found, Use, UseKind};
use crate::{block_uses, claim, display, facts, file_uses, labels, naming, probe, thin_pool};
use rdsk_model::{Device, ExtentEvidence, Filesystem, Target, TargetKind};
use std::fs::{self, FileType, Metadata};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

/// Where a target is, and how it is told apart from whatever takes its name later.
#[derive(Clone, Debug, PartialEq)]
pub enum Place {
    /// A directory, in which a test file can be made.
    Directory {
        /// Its path, symlinks resolved.
        path: PathBuf,
        /// What an ordinary user may still write.
        free_bytes: u64,
        /// Size of the filesystem.
        total_bytes: u64,
        /// What a thin pool below may give, of which a tenth stays free; `None` where there is none.
        pool_spare_bytes: Option<u64>,
    },
    /// A regular file.
    File {
        /// `st_dev`.
        dev: u64,
        /// `st_ino`.
        ino: u64,
        /// Whether rdsk made it for this run.
        own: bool,
    },
    /// A block device.
    Block {
        /// Its number.
        major_minor: DeviceNumber,
        /// The kernel's count of attachments of its disk; `None` before Linux 5.15.
        attachment: Option<Attachment>,
    },
    /// A LUN of a simulated system.
    Sim(Simulated),
}

/// Which attachment of a disk was examined. The number of a loop device stays when it gets another file, and so does that
/// of a drive with another medium; the kernel's count (`diskseq`) does not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attachment {
    /// The whole disk, as sysfs spells it.
    pub disk: String,
    /// The count.
    pub sequence: u64,
}

/// A target and everything that a judgement needs.
#[derive(Clone, Debug)]
pub struct Examined {
    /// The facts for the Record.
    pub target: Target,
    /// What was examined, symlinks resolved.
    pub path: PathBuf,
    /// Where it is.
    pub place: Place,
    /// What `--destroy` would have to say; empty for files and for devices that have no identity.
    pub identities: Vec<Identity>,
    /// What a device calls itself that is no identity, because others may have it or have it.
    pub no_identities: Vec<NoIdentity>,
    /// What uses it, the weightiest first.
    pub uses: Vec<Use>,
    /// What could not be looked at, so that it is not proven to be unused; safe to print.
    pub doubts: Vec<String>,
    /// What lies on a device.
    pub signatures: Vec<Signature>,
    /// How a file lies on its filesystem; `None` where the filesystem does not tell.
    pub allocation: Option<ExtentEvidence>,
}

/// Examines `name`: a directory, a regular file or a block device, or a symlink to one; `sim:` names a simulated target. A
/// word that is no path that exists may be an identity of a device, or a tag of mount(8) such as `PARTUUID=`.
///
/// # Errors
/// When there is no such thing, it may not be looked at, it is neither of the three, or it holds no byte.
pub fn examine(name: &str, roots: &Roots) -> Result<Examined, TargetError> {
    if let Some(simulated) = name.strip_prefix(crate::sim::SIM_PREFIX) {
        return crate::sim::examine(name, simulated);
    }
    let given = Path::new(name);
    let path = match fs::canonicalize(given) {
        Ok(path) => path,
        Err(error) => {
            // A path that exists always wins; one that may not be looked at may exist.
            let is_missing = matches!(error.raw_os_error(), Some(libc::ENOENT | libc::ENOTDIR));
            let named = if is_missing { naming::resolve(name, roots)? } else { None };
            named.ok_or_else(|| TargetError::from_io(given, "found", error))?
        }
    };
    examine_path(name, path, roots, Exclusive::Ask)
}

/// Whether the kernel is asked who holds a device exclusively.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exclusive {
    /// It is.
    Ask,
    /// It would name ourselves: the device is open with `O_EXCL` here.
    Ours,
}

/// Examines what stands at `path`, of which no part may be a symlink any more.
pub(crate) fn examine_path(
    name: &str,
    path: PathBuf,
    roots: &Roots,
    exclusive: Exclusive,
) -> Result<Examined, TargetError> {
    let meta =
        fs::symlink_metadata(&path).map_err(|error| TargetError::from_io(&path, "looked at", error))?;
    let kind = meta.file_type();
    if kind.is_block_device() {
        return examine_block(name, path, &meta, roots, exclusive);
    }
    if !kind.is_file() && !kind.is_dir() {
        return Err(TargetError::NotMeasurable { path: display::shown(&path), what: describe(kind) });
    }
    if let Some(what) = pseudo_filesystem(&path) {
        return Err(TargetError::NotMeasurable { path: display::shown(&path), what });
    }
    if kind.is_dir() { examine_directory(name, path, roots) } else { examine_file(name, path, &meta, roots) }
}

fn examine_block(
    name: &str,
    path: PathBuf,
    meta: &Metadata,
    roots: &Roots,
    exclusive: Exclusive,
) -> Result<Examined, TargetError> {
    let mut found = Found::default();
    let machine = MachineState::read(roots, &mut found);
    let number = DeviceNumber::from_raw(meta.rdev());
    let node = machine.tree.by_number(number);
    let mut parts = BlockParts::default();
    match node {
        Some(node) => parts = examine_node(&machine, node, &path, &mut found),
        None => found.doubt(&format!("sysfs does not know the device {number}")),
    }
    let size_bytes = parts.device.size_bytes.or_else(|| claim::size_of_block(&path)).unwrap_or(0);
    if size_bytes == 0 {
        return Err(TargetError::Empty { path: display::shown(&path) });
    }
    // What weighs more says more than the kernel's "busy".
    if exclusive == Exclusive::Ask && found.uses.iter().all(|used| used.kind > UseKind::OpenExclusive) {
        probe::exclusive(&path, &mut found);
    }
    found.sort_uses();
    let place =
        Place::Block { major_minor: number, attachment: node.and_then(|node| attachment(&machine, node)) };
    let align = probe::direct_align(&path).or(parts.device.logical_block_bytes);
    let target = Target {
        kind: TargetKind::Block,
        size_bytes,
        device: Some(Device { major_minor: number.to_string(), ..parts.device }),
        stack: parts.stack,
        direct_io: probe::direct_io(&path),
        direct_align_bytes: align,
        ..blank_target(name, &path)
    };
    Ok(Examined {
        target,
        path,
        place,
        identities: parts.names.identities,
        no_identities: parts.names.no_identities,
        uses: found.uses,
        doubts: found.doubts,
        signatures: parts.signatures,
        allocation: None,
    })
}

fn attachment(machine: &MachineState<'_>, node: &Node) -> Option<Attachment> {
    let disk = machine.tree.whole(node).name.clone();
    facts::disk_sequence(&machine.roots.sys, &disk).map(|sequence| Attachment { disk, sequence })
}

/// What sysfs and the programs tell of a block device.
#[derive(Debug, Default)]
pub(crate) struct BlockParts {
    pub(crate) device: Device,
    pub(crate) stack: Vec<String>,
    pub(crate) names: Names,
    pub(crate) signatures: Vec<Signature>,
}

/// Everything about a device that needs no open descriptor of ours.
pub(crate) fn examine_node(
    machine: &MachineState<'_>,
    node: &Node,
    path: &Path,
    found: &mut Found,
) -> BlockParts {
    found.extend(block_uses::find(machine, node));
    found.extend(file_uses::find_below(machine, node));
    let mut device = facts::device(&machine.tree, node, &machine.mapper);
    let tools = &machine.roots.tools;
    let lsblk = tools::lsblk(tools, path, &node.name).map_err(|reason| found.doubt(&reason)).ok();
    if let Some(lsblk) = &lsblk {
        second_opinion(lsblk, found);
        device.model = device.model.or_else(|| lsblk.model.clone());
        device.serial = device.serial.or_else(|| lsblk.serial.clone());
    }
    let wiped = tools::wipefs(tools, path, &node.name).and_then(|answer| signature::parse(&answer));
    let signatures = wiped.unwrap_or_else(|reason| {
        found.doubt(&reason);
        lsblk.as_ref().and_then(signature_of).into_iter().collect()
    });
    for (of, signature) in labels_that_belong(machine, node, &signatures, path, found) {
        let of = if of == node.name { String::new() } else { format!(" on {of}") };
        found.add(UseKind::Member, &format!("{}{of}", signature.text));
    }
    thin_pool::check_device(machine, node, found);
    let names = identity::find(machine, node, lsblk.as_ref());
    BlockParts { stack: kernel_names(machine, node), device, names, signatures }
}

/// Labels of members and locks on the device, its partitions and the disk around it, whose other sectors they may be on.
fn labels_that_belong(
    machine: &MachineState<'_>,
    node: &Node,
    own: &[Signature],
    path: &Path,
    found: &mut Found,
) -> Vec<(String, Signature)> {
    let mut labels: Vec<(String, Signature)> =
        own.iter().map(|signature| (node.name.clone(), signature.clone())).collect();
    for other in node.partitions.iter().chain(&node.parent).filter_map(|name| machine.tree.get(name)) {
        // An extended partition is too short for labels, and a node may be missing: what is not there holds none.
        let place = machine.roots.dev.join(other.kernel_name());
        let place = if place.exists() { place } else { path.with_file_name(other.kernel_name()) };
        match tools::wipefs(&machine.roots.tools, &place, &other.name)
            .and_then(|answer| signature::parse(&answer))
        {
            Ok(signatures) => {
                labels.extend(signatures.into_iter().map(|signature| (other.kernel_name(), signature)));
            }
            Err(reason) => found.doubt(&format!("{}: {reason}", other.kernel_name())),
        }
    }
    labels.retain(|(_, signature)| labels::belongs_elsewhere(signature));
    labels
}

/// `lsblk` walks the same stack with other code: a mount that it sees and we did not is a use all the same.
fn second_opinion(lsblk: &Lsblk, found: &mut Found) {
    if found.uses.iter().any(|used| matches!(used.kind, UseKind::Mounted | UseKind::Swap)) {
        return;
    }
    for node in lsblk.flat() {
        if let Some(point) = node.mountpoint.as_deref().filter(|point| !point.is_empty()) {
            let name = node.name.as_deref().unwrap_or("it");
            match point {
                "[SWAP]" => found.add(UseKind::Swap, name),
                point => found.add(UseKind::Mounted, &format!("{point} on {name}")),
            }
        }
    }
}

fn signature_of(lsblk: &Lsblk) -> Option<Signature> {
    Some(Signature::new(lsblk.fstype.as_deref()?, None, lsblk.label.as_deref()))
}

fn examine_directory(name: &str, path: PathBuf, roots: &Roots) -> Result<Examined, TargetError> {
    let mut found = Found::default();
    let machine = MachineState::read(roots, &mut found);
    let space = rustix::fs::statvfs(&path).map_err(|e| TargetError::from_io(&path, "looked at", e.into()))?;
    let kind = rustix::fs::statfs(&path).map(|answer| answer.f_type);
    // The types' numbers are positive and fit 32 bits, whatever integer the architecture gives them in.
    if kind.is_ok_and(|kind| MEMORY_TYPES.contains(&(kind as u64 & 0xffff_ffff))) {
        found.add(UseKind::InMemory, "its filesystem is in memory, so there is no disk to measure");
    }
    let mount = mount_of(&machine.mounts, &path);
    if let Some(mount) = mount.filter(|mount| mount.is_read_only()) {
        found.add(UseKind::ReadOnly, &format!("{} is mounted read-only", mount.point.display()));
    }
    let wanted = rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK;
    if let Err(errno) = rustix::fs::accessat(rustix::fs::CWD, &path, wanted, rustix::fs::AtFlags::EACCESS) {
        found.add(UseKind::NotWritable, &errno.to_string());
    }
    let free_bytes = space.f_bavail.saturating_mul(space.f_frsize);
    let mut pool_spare_bytes = None;
    if let Some(node) = node_below(&path, &machine, mount) {
        let kind = mount.map_or("", |mount| mount.kind.as_str());
        thin_pool::check_filesystem(&machine, node, kind, (None, free_bytes), &mut found);
        pool_spare_bytes = thin_pool::spare_below(&machine, node, &mut found);
    }
    found.sort_uses();
    let target = file_target(name, &path, 0, &machine, mount);
    let place = Place::Directory {
        path: path.clone(),
        free_bytes,
        total_bytes: space.f_blocks.saturating_mul(space.f_frsize),
        pool_spare_bytes,
    };
    Ok(Examined {
        target,
        path,
        place,
        identities: Vec::new(),
        no_identities: Vec::new(),
        uses: found.uses,
        doubts: found.doubts,
        signatures: Vec::new(),
        allocation: None,
    })
}

fn examine_file(name: &str, path: PathBuf, meta: &Metadata, roots: &Roots) -> Result<Examined, TargetError> {
    if meta.len() == 0 {
        return Err(TargetError::Empty { path: display::shown(&path) });
    }
    let mut found = Found::default();
    let machine = MachineState::read(roots, &mut found);
    found.extend(file_uses::find(&machine, &path, (meta.dev(), meta.ino())));
    let mount = mount_of(&machine.mounts, &path);
    if let Some(node) = node_below(&path, &machine, mount) {
        let kind = mount.map_or("", |mount| mount.kind.as_str());
        let free_bytes =
            rustix::fs::statvfs(&path).map_or(0, |space| space.f_bavail.saturating_mul(space.f_frsize));
        thin_pool::check_filesystem(&machine, node, kind, (Some(meta.len()), free_bytes), &mut found);
    }
    found.sort_uses();
    let mut target = file_target(name, &path, meta.len(), &machine, mount);
    target.direct_io = probe::direct_io(&path);
    let logical = target.device.as_ref().and_then(|device| device.logical_block_bytes);
    target.direct_align_bytes = probe::direct_align(&path).or(logical);
    let allocation = claim::allocation_of(&path, 0, meta.len());
    Ok(Examined {
        target,
        path,
        place: Place::File { dev: meta.dev(), ino: meta.ino(), own: false },
        identities: Vec::new(),
        no_identities: Vec::new(),
        uses: found.uses,
        doubts: found.doubts,
        signatures: Vec::new(),
        allocation,
    })
}

/// The device under a file or directory.
fn node_below<'machine>(
    path: &Path,
    machine: &'machine MachineState<'_>,
    mount: Option<&Mount>,
) -> Option<&'machine Node> {
    let by_stat = fs::metadata(path).ok().map(|meta| DeviceNumber::from_raw(meta.dev()));
    by_stat
        .and_then(|number| machine.tree.by_number(number))
        .or_else(|| mount.and_then(|mount| machine.device_of_mount(mount)))
}

/// What uses an open device or file of the user now, but for who holds it exclusively, which is we ourselves.
pub(crate) fn uses_now(path: &Path, place: &Place, roots: &Roots) -> Found {
    let mut found = Found::default();
    let machine = MachineState::read(roots, &mut found);
    match place {
        Place::Block { major_minor, .. } => match machine.tree.by_number(*major_minor) {
            Some(node) => {
                found.extend(block_uses::find(&machine, node));
                found.extend(file_uses::find_below(&machine, node));
            }
            None => found.doubt(&format!("sysfs does not know the device {major_minor}")),
        },
        Place::File { dev, ino, own: false } => {
            found.extend(file_uses::find(&machine, path, (*dev, *ino)));
        }
        Place::File { own: true, .. } | Place::Directory { .. } | Place::Sim(_) => {}
    }
    found.sort_uses();
    found
}

fn file_target(
    name: &str,
    path: &Path,
    size_bytes: u64,
    machine: &MachineState<'_>,
    mount: Option<&Mount>,
) -> Target {
    let node = node_below(path, machine, mount);
    let options = |mount: &Mount| format!("{},{}", mount.options, mount.super_options);
    Target {
        kind: TargetKind::File,
        size_bytes,
        filesystem: mount.map(|mount| Filesystem { kind: mount.kind.clone(), options: options(mount) }),
        device: node.map(|node| facts::device(&machine.tree, node, &machine.mapper)),
        stack: node.map(|node| kernel_names(machine, node)).unwrap_or_default(),
        ..blank_target(name, path)
    }
}

fn kernel_names(machine: &MachineState<'_>, node: &Node) -> Vec<String> {
    machine.tree.stack(node).iter().map(|name| name.replace('!', "/")).collect()
}

fn blank_target(name: &str, path: &Path) -> Target {
    Target {
        index: 0,
        name: name.to_owned(),
        kind: TargetKind::File,
        path: Some(path.to_string_lossy().into_owned()),
        size_bytes: 0,
        filesystem: None,
        device: None,
        stack: Vec::new(),
        made_by_rdsk: false,
        direct_io: None,
        direct_align_bytes: None,
        nowait: None,
    }
}

fn describe(kind: FileType) -> &'static str {
    if kind.is_fifo() {
        "is a pipe, not a file"
    } else if kind.is_socket() {
        "is a socket, not a file"
    } else if kind.is_char_device() {
        "is a character device; only block devices, files and directories can be measured"
    } else {
        "is neither a block device nor a file nor a directory"
    }
}

/// `f_type` of filesystems in memory (include/uapi/linux/magic.h): tmpfs, ramfs, hugetlbfs.
const MEMORY_TYPES: [u64; 3] = [0x0102_1994, 0x8584_58f6, 0x9584_58f6];
/// `f_type` of filesystems whose files are switches of the kernel: proc, sysfs, debugfs, tracefs, securityfs, cgroup,
/// cgroup2, bpf, pstore, efivarfs, configfs, selinuxfs, devpts, binfmt_misc.
const PSEUDO_TYPES: [u64; 14] = [
    0x9fa0,
    0x6265_6572,
    0x6462_6720,
    0x7472_6163,
    0x7363_6673,
    0x0027_e0eb,
    0x6367_7270,
    0xcafe_4a11,
    0x6165_676c,
    0xde5e_81e4,
    0x6265_6570,
    0xf97c_ff8c,
    0x1cd1,
    0x4249_4e4d,
];

fn pseudo_filesystem(path: &Path) -> Option<&'static str> {
    let kind = rustix::fs::statfs(path).ok()?.f_type;
    PSEUDO_TYPES
        .contains(&(kind as u64 & 0xffff_ffff))
        .then_some("is an interface of the kernel, not storage")
}
