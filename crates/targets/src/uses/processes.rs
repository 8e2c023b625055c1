//! Which processes have a file or a block device open, or mapped for writing, according to procfs. The kernel's
//! `O_EXCL` does not cover openers that did not use it themselves, so every process is checked. It opens no target.

use crate::probe;
use crate::uses::onlookers::{is_onlooker, keeps_metadata};
pub(crate) use crate::uses::open_stat::Inode;
use crate::uses::open_stat::{Stat, stat_likely, stat_node};
use crate::uses::{InUse, UseKind};
use rdsk_sys::device_number::DeviceNumber;
use rdsk_sys::files::{field, is_first_pid_namespace, names_in};
use rustix::fs::{FileType, OFlags};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Processes whose open files are checked; beyond them nothing is proven.
const MAX_PROCESSES: usize = 1 << 16;
/// How often, and how far apart, the openers of a target are checked again.
const MAX_RECHECKS: usize = 4;
/// The same for those that only read: programs that read labels take longer on a slow disk.
const MAX_READER_RECHECKS: usize = 10;
const RECHECK_INTERVAL: Duration = Duration::from_millis(50);

/// A process, or one of its threads that has open files of its own.
pub(crate) struct Process {
    id: String,
    /// In procfs, that of the thread.
    pub(crate) directory: PathBuf,
}

impl Process {
    /// Adds what it does as a use: `has sdb open for writing`.
    fn add_use(&self, kind: UseKind, does: &str, usage: &mut InUse) {
        let name = fs::read_to_string(self.directory.join("comm")).unwrap_or_default();
        usage.add_process(kind, &self.id, name.trim_end(), does);
    }
}

/// A device node as procfs identifies it: a block device, or a character device through which a disk takes commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum NodeNumber {
    Block(DeviceNumber),
    /// A character device: `sg3`, `bsg/0:0:0:0`, `ng0n1`.
    Character(DeviceNumber),
}

/// Adds a use for each process that has one of `devices` (with names) open, or mapped for writing, and a doubt if some may not be
/// inspected. Who only watches devices does not count as a reader of them, nor who keeps the metadata of those in `members` as a writer:
/// what a device in a container is made of.
pub(crate) fn openers(
    proc: &Path,
    devices: &BTreeMap<NodeNumber, String>,
    members: &BTreeSet<NodeNumber>,
    usage: &mut InUse,
) {
    usage.extend(persistent(|| openers_now(proc, devices, members)));
}

/// Adds a doubt if there may be processes whose open files cannot be seen.
pub(crate) fn doubt_unseen(proc: &Path, usage: &mut InUse) {
    let unseen = others(proc, usage).iter().filter(|process| descriptors(process).is_none()).count();
    doubt_count(unseen, usage);
}

/// Adds a use for each process that has the file open or mapped. What may not be inspected is skipped, and who only watches disks does
/// not count as a reader.
pub(crate) fn users_of_file(proc: &Path, path: &Path, inode: Inode, usage: &mut InUse) {
    usage.extend(persistent(|| users_of_file_now(proc, path, inode)));
}

/// Whether a process that procfs shows, this one included, has the file open or mapped, for whatever purpose.
pub(crate) fn is_shown_open(proc: &Path, path: &Path, inode: Inode) -> bool {
    let own = tables(proc, &std::process::id().to_string());
    others(proc, &mut InUse::default()).iter().chain(&own).any(|process| {
        let names = descriptors(process).unwrap_or_default();
        opened(process, &names, path, inode).next().is_some() || mapping_of(process, inode).is_some()
    })
}

/// An open file of another process.
pub(crate) struct Descriptor<'process> {
    /// Where it is found in procfs.
    pub(crate) link: &'process Path,
    /// Its name, as procfs has it.
    pub(crate) path: &'process Path,
    /// `None` before Linux 5.14.
    pub(crate) inode_number: Option<u64>,
}

impl Descriptor<'_> {
    /// The inode and its size, as far as that is known without asking a server; `None` for what is no regular file.
    pub(crate) fn stat(&self) -> Option<(Inode, u64)> {
        let stat = stat_likely(self.link)?;
        (stat.kind == FileType::RegularFile).then_some((stat.inode, stat.size_bytes))
    }
}

/// Adds a use for each process that has a file open for writing which `is_it` recognises. What may not be inspected is skipped.
pub(crate) fn writers_of(proc: &Path, is_it: impl Fn(&Descriptor<'_>) -> bool, usage: &mut InUse) {
    usage.extend(persistent(|| {
        let mut now = InUse::default();
        for process in others(proc, &mut InUse::default()) {
            let file = |name: &String| {
                let link = process.directory.join("fd").join(name);
                let path = fs::read_link(&link).ok().filter(|path| path.is_absolute())?;
                let inode_number =
                    fdinfo(&process.directory, name, "ino").and_then(|number| number.parse().ok());
                let open = Descriptor { link: &link, path: &path, inode_number };
                (is_it(&open) && writes(&process.directory, name)).then_some(path)
            };
            if let Some(path) = descriptors(&process).unwrap_or_default().iter().find_map(file) {
                let does = format!("has {} open, which may be this file", path.display());
                process.add_use(UseKind::OpenElsewhere, &does, &mut now);
            }
        }
        now
    }));
}

/// Checks again if something was found, and keeps what persists: a process that opens a device to read its label has
/// closed it by then, and a forked one has started its program, which closes what it inherited.
pub(crate) fn persistent(look: impl Fn() -> InUse) -> InUse {
    let mut usage = look();
    for done in 0..MAX_READER_RECHECKS {
        let only_reads = usage.uses.iter().all(|used| used.kind == UseKind::ReadElsewhere);
        if usage.uses.is_empty() || done >= MAX_RECHECKS && !only_reads {
            break;
        }
        std::thread::sleep(RECHECK_INTERVAL);
        let again = look();
        usage.uses.retain(|used| again.uses.iter().any(|other| other.is_same(used)));
        usage.doubts = again.doubts;
    }
    usage
}

fn openers_now(proc: &Path, devices: &BTreeMap<NodeNumber, String>, members: &BTreeSet<NodeNumber>) -> InUse {
    let mut usage = InUse::default();
    let mut unseen = 0;
    for process in others(proc, &mut usage) {
        let Some(names) = descriptors(&process) else {
            unseen += 1;
            continue;
        };
        let open = |name: &String| {
            let number = device_behind(&process.directory.join("fd").join(name))?;
            let device = devices.get(&number).filter(|_| !only_names(&process.directory, name))?;
            let is_of_the_array = members.contains(&number) && keeps_metadata(proc, &process.id);
            (!is_of_the_array).then(|| (number, device, writes(&process.directory, name)))
        };
        let open: Vec<_> = names.iter().filter_map(open).collect();
        let is_mapped = |mapping: &Mapping| devices.get(&node_number(mapping.stat.as_ref()?)?);
        // Who may only read through a node for commands asks for the state of the disk, not for its data.
        let reads = |number: &NodeNumber| matches!(number, NodeNumber::Block(_));
        if let Some((_, device, _)) = open.iter().find(|(_, _, writes)| *writes) {
            process.add_use(UseKind::OpenElsewhere, &format!("has {device} open for writing"), &mut usage);
        } else if let Some(device) = mappings(&process).iter().find_map(is_mapped) {
            process.add_use(UseKind::OpenElsewhere, &format!("has {device} mapped for writing"), &mut usage);
        } else if let Some((_, device, _)) = open.iter().find(|(number, _, _)| reads(number))
            && !is_onlooker(proc, &process.id)
        {
            process.add_use(UseKind::ReadElsewhere, &format!("has {device} open for reading"), &mut usage);
        }
    }
    doubt_count(unseen, &mut usage);
    usage
}

fn doubt_count(unseen: usize, usage: &mut InUse) {
    if unseen > 0 {
        usage.doubt(format_args!("the open files of {unseen} processes of other users may not be inspected"));
    }
}

fn users_of_file_now(proc: &Path, path: &Path, inode: Inode) -> InUse {
    let mut usage = InUse::default();
    for process in others(proc, &mut InUse::default()) {
        let open = descriptors(&process).and_then(|names| strongest(opened(&process, &names, path, inode)));
        if open == Some(Rights::Writes) {
            process.add_use(UseKind::OpenElsewhere, "", &mut usage);
        } else if let Some(rights) = mapping_of(&process, inode) {
            let how = match rights {
                Rights::Writes => "has it mapped for writing",
                // A library that it runs, a database that it reads: what it sees would change under it.
                Rights::Reads => "has it mapped",
            };
            process.add_use(UseKind::OpenElsewhere, how, &mut usage);
        } else if open == Some(Rights::Reads) && !is_onlooker(proc, &process.id) {
            // It serves the file, or copies it: what it hands on would change under it.
            process.add_use(UseKind::ReadElsewhere, "has it open for reading", &mut usage);
        }
    }
    usage
}

/// All other processes that procfs shows, and a doubt if it does not show all of them.
pub(crate) fn others(proc: &Path, usage: &mut InUse) -> Vec<Process> {
    let own = std::process::id().to_string();
    let Ok(entries) = fs::read_dir(proc) else {
        usage.doubt("the list of processes cannot be read");
        return Vec::new();
    };
    let ids = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let ids: Vec<String> = ids.filter(|id| id.bytes().all(|byte| byte.is_ascii_digit())).collect();
    if fs::read_link(proc.join("self/ns/pid")).is_ok_and(|link| !is_first_pid_namespace(&link)) {
        usage.doubt("processes outside of this container cannot be seen");
    } else if ids.len() > MAX_PROCESSES {
        usage.doubt("there are too many processes to look at all their open files");
    } else if !ids.iter().any(|id| id == "1") {
        usage.doubt("procfs hides the processes of other users");
    }
    let ids = ids.into_iter().take(MAX_PROCESSES).filter(|id| *id != own);
    ids.flat_map(|id| tables(proc, &id)).collect()
}

/// The process, once for each table of open files that its threads have. The first thread may have ended while others go on,
/// and then its own directory shows no files; and a thread may have a table of its own.
pub(crate) fn tables(proc: &Path, id: &str) -> Vec<Process> {
    let mut threads = vec![id.to_owned()];
    for thread in names_in(&proc.join(id).join("task")).into_iter().filter(|thread| *thread != id) {
        if !threads.iter().any(|listed| have_same_files(proc, listed, &thread)) {
            threads.push(thread);
        }
    }
    threads.into_iter().map(|thread| Process { directory: proc.join(thread), id: id.to_owned() }).collect()
}

/// Where the kernel does not say, those of a process that runs count as the same.
fn have_same_files(proc: &Path, thread: &str, other: &str) -> bool {
    let told = thread.parse().ok().zip(other.parse().ok());
    let told = told.and_then(|(thread, other)| rdsk_sys::openers::same_open_files(thread, other).ok());
    told.unwrap_or_else(|| {
        // proc_pid_stat(5): the state follows the name, which may contain anything.
        let stat = fs::read_to_string(proc.join(thread).join("stat")).unwrap_or_default();
        !stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with(['Z', 'X']))
    })
}

/// Names of the descriptors; `None` if they may not be inspected. A process that has ended has none.
pub(crate) fn descriptors(process: &Process) -> Option<Vec<String>> {
    match fs::read_dir(process.directory.join("fd")) {
        Ok(entries) => Some(entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect()),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => None,
        Err(_) => Some(Vec::new()),
    }
}

/// What a process may do through each of its descriptors of a file. A name for the file, as a claim of another rdsk has it, is none.
/// The inode number that the kernel prints (5.14 and later; before, the file name, which hard links and bind mounts
/// change) is compared first, so that stat(2), which may hang on a dead server, is called only for likely files.
fn opened<'all>(
    process: &'all Process,
    names: &'all [String],
    path: &'all Path,
    inode: Inode,
) -> impl Iterator<Item = Rights> + 'all {
    names.iter().filter_map(move |name| {
        let link = process.directory.join("fd").join(name);
        // The number of the inode behind the descriptor.
        let number = || fdinfo(&process.directory, name, "ino")?.parse::<u64>().ok();
        let may_be = match number() {
            Some(number) => number == inode.1,
            None => fs::read_link(&link).is_ok_and(|target| target.file_name() == path.file_name()),
        };
        let is_it = may_be
            && stat_likely(&link)
                .is_some_and(|stat| stat.inode == inode || is_layer_of(&link, &stat, path, inode))
            && !only_names(&process.directory, name);
        let may_write = is_it && writes(&process.directory, name);
        is_it.then_some(if may_write { Rights::Writes } else { Rights::Reads })
    })
}

/// Whether one of the two is a file of an overlay filesystem and the other the file of the layer that it shows: an
/// overlay has a device number of its own, and keeps the inode numbers if its layers lie on one filesystem.
fn is_layer_of(link: &Path, stat: &Stat, path: &Path, inode: Inode) -> bool {
    stat.inode.1 == inode.1
        && fs::read_link(link).is_ok_and(|target| target.file_name() == path.file_name())
        && probe::is_overlay(link) != probe::is_overlay(path)
}

/// The device that a descriptor leads to. Sockets and pipes are recognized by their link text, before stat(2).
pub(crate) fn device_behind(link: &Path) -> Option<NodeNumber> {
    let target = fs::read_link(link).ok()?;
    if !target.is_absolute() {
        return None;
    }
    node_number(&stat_node(link, &target)?)
}

fn node_number(stat: &Stat) -> Option<NodeNumber> {
    match stat.kind {
        FileType::BlockDevice => Some(NodeNumber::Block(stat.device)),
        FileType::CharacterDevice => Some(NodeNumber::Character(stat.device)),
        _ => None,
    }
}

/// The value of `key` in what fdinfo has about a descriptor.
fn fdinfo(process: &Path, descriptor: &str, key: &str) -> Option<String> {
    let info = fs::read_to_string(process.join("fdinfo").join(descriptor)).ok()?;
    field(&info, key).map(str::to_owned)
}

/// Whether a descriptor may write; if that is not known, it is assumed to.
fn writes(process: &Path, descriptor: &str) -> bool {
    const ACCESS_MODE: u32 = 0o3;
    flags_of(process, descriptor).is_none_or(|flags| flags & ACCESS_MODE != 0)
}

/// Whether a descriptor is a name for a node that is not open (`O_PATH`), as that of a claim of another rdsk.
pub(crate) fn only_names(process: &Path, descriptor: &str) -> bool {
    flags_of(process, descriptor).is_some_and(|flags| OFlags::from_bits_retain(flags).contains(OFlags::PATH))
}

fn flags_of(process: &Path, descriptor: &str) -> Option<u32> {
    u32::from_str_radix(&fdinfo(process, descriptor, "flags")?, 8).ok()
}

/// What a process may do through a descriptor or a mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rights {
    Reads,
    /// A mapping is shared and writable.
    Writes,
}

/// `None` if there are none.
fn strongest(mut rights: impl Iterator<Item = Rights>) -> Option<Rights> {
    let first = rights.next()?;
    Some(if rights.any(|rights| rights == Rights::Writes) { Rights::Writes } else { first })
}

/// A mapping of a file.
struct Mapping {
    rights: Rights,
    /// As procfs prints it, in case the file itself cannot be queried.
    inode_number: u64,
    stat: Option<Stat>,
}

impl Mapping {
    fn is_of(&self, inode: Inode) -> bool {
        match &self.stat {
            Some(stat) => stat.inode == inode,
            // Every program maps libraries, and filesystems number their inodes alike: a number alone is no evidence of those.
            None => self.rights == Rights::Writes && self.inode_number == inode.1,
        }
    }
}

/// The shared, writable mappings of files.
fn mappings(process: &Process) -> Vec<Mapping> {
    mappings_that(process, |rights, _| rights == Rights::Writes, stat_node)
}

/// The strongest rights that a process has through its mappings of a file; `None` if it maps it nowhere.
fn mapping_of(process: &Process, inode: Inode) -> Option<Rights> {
    let mappings =
        mappings_that(process, |_, inode_number| inode_number == inode.1, |link, _| stat_likely(link));
    strongest(mappings.iter().filter(|mapping| mapping.is_of(inode)).map(|mapping| mapping.rights))
}

/// The mappings of files of some rights and inode number (proc_pid_maps(5)). Each is queried through `map_files`, because on some
/// filesystems the device number in the text is not the one that stat(2) gives; `stat` gets the link there, and the name.
fn mappings_that(
    process: &Process,
    wanted: impl Fn(Rights, u64) -> bool,
    stat: impl Fn(&Path, &Path) -> Option<Stat>,
) -> Vec<Mapping> {
    let maps = fs::read(process.directory.join("maps")).unwrap_or_default();
    let mut list = Vec::new();
    for line in String::from_utf8_lossy(&maps).lines() {
        let mut words = line.split_ascii_whitespace();
        let (Some(place), Some(rights)) = (words.next(), words.next()) else { continue };
        let number = words.nth(2).and_then(|word| word.parse::<u64>().ok()).filter(|&number| number != 0);
        let is_shared = rights.as_bytes().get(1) == Some(&b'w') && rights.as_bytes().get(3) == Some(&b's');
        let rights = if is_shared { Rights::Writes } else { Rights::Reads };
        if let Some(inode_number) = number.filter(|&number| wanted(rights, number)) {
            let name = Path::new(line.find('/').map_or("", |start| &line[start..]));
            let by_place = stat(&process.directory.join("map_files").join(place), name);
            // Without privileges only the name is left, which of a mapping that writes proves nothing.
            let by_name = || name.is_absolute().then(|| stat(name, name)).flatten();
            let stat = by_place.or_else(|| if rights == Rights::Reads { by_name() } else { None });
            list.push(Mapping { rights, inode_number, stat });
        }
    }
    list
}

#[cfg(test)]
mod tests;
