//! What device mapper reports about its devices: the table of each, the state of its targets, how often it is open. It opens nothing
//! but its control node, changes nothing, and never hands out the key of an encrypted device.
#![allow(unsafe_code, reason = "these ioctls have no safe wrapper")]

use crate::device_number::DeviceNumber;
use rustix::fs::{Mode, OFlags};
use rustix::ioctl::{Ioctl, IoctlOutput, Opcode, ioctl, opcode};
use std::ffi::c_void;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

/// What a device mapper device does with a range of its sectors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DmLine {
    /// First sector of the range, in units of 512 bytes.
    pub start_sectors: u64,
    /// Length of the range, in units of 512 bytes.
    pub length_sectors: u64,
    /// The kind of target: `linear`, `crypt`, `thin-pool`.
    pub kind: String,
    /// Its parameters, or its state, as the kernel words them. The key of a `crypt` target is replaced by `-`.
    pub parameters: String,
}

/// Whether a device of this name and UUID holds none of the data of the device above it, only metadata: LVM's
/// hidden volumes of metadata (lvmthin(7), lvmraid(7)).
pub fn only_describes(mapped_name: &str, uuid: &str) -> bool {
    const UUIDS: [&str; 2] = ["-tmeta", "-cmeta"];
    const NAMES: [&str; 5] = ["_rmeta_", "_tmeta", "_cmeta", "_mlog", "_pmspare"];
    let base = mapped_name.trim_end_matches(|digit: char| digit.is_ascii_digit());
    UUIDS.iter().any(|suffix| uuid.ends_with(suffix)) || NAMES.iter().any(|suffix| base.ends_with(suffix))
}

/// Whether a device of this UUID has paths of one and the same device below it, as multipath-tools make them.
pub fn has_paths(uuid: &str) -> bool {
    uuid.starts_with("mpath-")
}

/// What is requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DmQuestion {
    /// The table: what the device is made of.
    Table,
    /// The state: for a thin pool, how much of it is in use.
    Status,
}

/// Commands and flags of include/uapi/linux/dm-ioctl.h.
const DM_DEV_STATUS: Opcode = opcode::read_write::<Header>(0xfd, 7);
const DM_TABLE_STATUS: Opcode = opcode::read_write::<Header>(0xfd, 12);
const STATUS_TABLE: u32 = 1 << 4;
const BUFFER_FULL: u32 = 1 << 8;
/// The query must not make a thin pool commit its metadata.
const NO_FLUSH: u32 = 1 << 11;
/// The kernel wipes its own copy of what it returns.
const SECURE_DATA: u32 = 1 << 15;
const VERSION: [u32; 3] = [4, 0, 0];
/// Size of the first buffer, and the maximum: a table of some hundred thousand lines.
const FIRST_BYTES: usize = 16 << 10;
const MAX_BYTES: usize = 64 << 20;
const HEADER_BYTES: usize = size_of::<Header>();
/// `struct dm_target_spec`: two numbers of 64 bits, two of 32, and a name of 16 bytes.
const SPEC_BYTES: usize = 40;

/// `struct dm_ioctl`: 312 bytes.
#[repr(C)]
#[derive(Clone, Copy)]
struct Header {
    version: [u32; 3],
    data_size: u32,
    data_start: u32,
    target_count: u32,
    open_count: i32,
    flags: u32,
    event_nr: u32,
    padding: u32,
    dev: u64,
    name: [u8; 128],
    uuid: [u8; 129],
    data: [u8; 7],
}

/// Opens the control node below `dev` (`/dev`) for reading, which is enough for queries.
///
/// # Errors
/// Those of open(2): the node is missing without device mapper, and only root may open it.
pub fn open_control(dev: &Path) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
    rustix::fs::open(dev.join("mapper/control"), flags, Mode::empty())
}

/// Asks device mapper, through its open control node, about the device with this number. Needs CAP_SYS_ADMIN.
///
/// # Errors
/// `EACCES` without the right; `ENXIO` when there is no such device; `InvalidData` for an answer that is none.
pub fn lines(control: impl AsFd, number: DeviceNumber, question: DmQuestion) -> io::Result<Vec<DmLine>> {
    let mut bytes = FIRST_BYTES;
    while bytes <= MAX_BYTES {
        let mut buffer = Buffer::new(bytes, number, DM_TABLE_STATUS, table_flags(question));
        // SAFETY: the buffer begins with struct dm_ioctl, whose data_size says how long the buffer is; the kernel writes
        // no further, and it opens and closes nothing.
        unsafe { ioctl(&control, &mut buffer) }?;
        let header = buffer.header();
        if header.flags & BUFFER_FULL == 0 {
            return parse(buffer.as_bytes(), &header);
        }
        bytes *= 8;
    }
    Err(io::Error::new(io::ErrorKind::InvalidData, "the table is too long"))
}

/// How often the device with this number is open (`dmsetup info`): each open file of a process counts once, whatever
/// descriptors and mappings it has, and so does each mount, swap space, server and device on it. Needs CAP_SYS_ADMIN.
///
/// # Errors
/// `EACCES` without the right; `ENXIO` when there is no such device.
pub fn open_count(control: impl AsFd, number: DeviceNumber) -> io::Result<u32> {
    let mut buffer = Buffer::new(HEADER_BYTES, number, DM_DEV_STATUS, 0);
    // SAFETY: as above; this command returns a header and nothing behind it.
    unsafe { ioctl(&control, &mut buffer) }?;
    let bad = |_| io::Error::new(io::ErrorKind::InvalidData, "device mapper's answer is not understood");
    u32::try_from(buffer.header().open_count).map_err(bad)
}

/// The kernel must not make a thin pool commit its metadata, and wipes its own copy of what it returns.
fn table_flags(question: DmQuestion) -> u32 {
    let table = if question == DmQuestion::Table { STATUS_TABLE } else { 0 };
    table | NO_FLUSH | SECURE_DATA
}

/// Storage for an aligned header and what follows it, wiped when dropped: the table of an encrypted device holds its key.
struct Buffer {
    words: Vec<u64>,
    command: Opcode,
}

impl Buffer {
    /// A query about the device `number`; `bytes` is at least the size of a header.
    fn new(bytes: usize, number: DeviceNumber, command: Opcode, flags: u32) -> Self {
        let mut buffer = Self { words: vec![0; bytes.div_ceil(8)], command };
        let mut header = buffer.header();
        header.version = VERSION;
        // The sizes are constants far below 4 GiB.
        header.data_size = u32::try_from(buffer.words.len() * 8).unwrap_or(u32::MAX);
        header.data_start = u32::try_from(HEADER_BYTES).unwrap_or(u32::MAX);
        header.flags = flags;
        header.dev = rustix::fs::makedev(number.major, number.minor);
        // SAFETY: the storage is at least as long as the header and aligned to 8 bytes, as the header wants.
        unsafe { buffer.words.as_mut_ptr().cast::<Header>().write(header) };
        buffer
    }

    fn header(&self) -> Header {
        // SAFETY: the storage begins with a header, zeros, ours or the kernel's; every bit pattern is one.
        unsafe { self.words.as_ptr().cast::<Header>().read() }
    }

    fn as_bytes(&self) -> &[u8] {
        // SAFETY: the storage is initialised, eight bytes for each of its words, and bytes need no alignment.
        unsafe { std::slice::from_raw_parts(self.words.as_ptr().cast(), self.words.len() * 8) }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        for word in &mut self.words {
            // SAFETY: `word` is a valid place; a volatile write is one that the compiler may not leave out.
            unsafe { std::ptr::write_volatile(word, 0) };
        }
    }
}

// SAFETY: the pointer and the unit output are those of both commands, which read and write the buffer.
unsafe impl Ioctl for &mut Buffer {
    type Output = ();
    const IS_MUTATING: bool = true;

    fn opcode(&self) -> Opcode {
        self.command
    }

    fn as_ptr(&mut self) -> *mut c_void {
        self.words.as_mut_ptr().cast()
    }

    unsafe fn output_from_ptr(_: IoctlOutput, _: *mut c_void) -> rustix::io::Result<()> {
        Ok(())
    }
}

/// Reads `target_count` specs, each followed by its parameters and, from the start of the data, the offset of the next.
fn parse(bytes: &[u8], header: &Header) -> io::Result<Vec<DmLine>> {
    let bad = || io::Error::new(io::ErrorKind::InvalidData, "device mapper's answer is not understood");
    let start = usize::try_from(header.data_start).map_err(|_| bad())?;
    let data = bytes.get(start..).ok_or_else(bad)?;
    let mut lines = Vec::new();
    let mut at = 0usize;
    for _ in 0..header.target_count {
        let spec = data.get(at..).and_then(|rest| rest.get(..SPEC_BYTES)).ok_or_else(bad)?;
        let number = |from: usize| {
            let word: [u8; 8] = spec[from..from + 8].try_into().expect("eight bytes make a number");
            u64::from_ne_bytes(word)
        };
        let next: [u8; 4] = spec[20..24].try_into().expect("four bytes make a number");
        let next = usize::try_from(u32::from_ne_bytes(next)).map_err(|_| bad())?;
        let kind = text(&spec[24..]);
        let parameters = text(data.get(at + SPEC_BYTES..).ok_or_else(bad)?);
        lines.push(DmLine {
            start_sectors: number(0),
            length_sectors: number(8),
            parameters: if kind == "crypt" { without_key(&parameters) } else { parameters },
            kind,
        });
        if next < at + SPEC_BYTES && lines.len() < usize::try_from(header.target_count).unwrap_or(usize::MAX)
        {
            return Err(bad());
        }
        at = next;
    }
    Ok(lines)
}

/// Up to the first zero.
fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

/// `cipher key offset device start …` with a dash for the key.
fn without_key(parameters: &str) -> String {
    let words = parameters.split(' ').enumerate();
    words.map(|(index, word)| if index == 1 { "-" } else { word }).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: DeviceNumber = DeviceNumber { major: 0, minor: 0 };

    fn spec(start: u64, length: u64, next: u32, kind: &str, parameters: &str) -> Vec<u8> {
        let mut bytes = Vec::new();
        bytes.extend(start.to_ne_bytes());
        bytes.extend(length.to_ne_bytes());
        bytes.extend(0i32.to_ne_bytes());
        bytes.extend(next.to_ne_bytes());
        let mut name = [0u8; 16];
        name[..kind.len()].copy_from_slice(kind.as_bytes());
        bytes.extend(name);
        bytes.extend(parameters.as_bytes());
        bytes.push(0);
        bytes.resize(bytes.len().next_multiple_of(8), 0);
        bytes
    }

    fn header(target_count: u32) -> Header {
        let buffer = Buffer::new(FIRST_BYTES, NONE, DM_TABLE_STATUS, table_flags(DmQuestion::Table));
        Header { target_count, ..buffer.header() }
    }

    #[test]
    fn sizes_are_those_of_the_kernel() {
        assert_eq!((HEADER_BYTES, header(0).data_size), (312, 16 << 10));
        assert_eq!((DM_DEV_STATUS, DM_TABLE_STATUS), (0xc138_fd07, 0xc138_fd0c));
    }

    #[test]
    fn answers_are_read_line_by_line_and_keys_are_dropped() {
        let first = spec(0, 2048, 0, "linear", "8:16 4096");
        let next = u32::try_from(first.len()).unwrap();
        let first = spec(0, 2048, next, "linear", "8:16 4096");
        let second = spec(2048, 8, next + 88, "crypt", "aes-xts-plain64 00ff 0 8:32 32 1 allow_discards");
        let bytes = [vec![0; HEADER_BYTES], first, second].concat();
        let lines = parse(&bytes, &header(2)).unwrap();
        assert_eq!((lines[0].kind.as_str(), lines[0].parameters.as_str()), ("linear", "8:16 4096"));
        assert_eq!((lines[1].start_sectors, lines[1].length_sectors), (2048, 8));
        assert_eq!(lines[1].parameters, "aes-xts-plain64 - 0 8:32 32 1 allow_discards");
        assert!(parse(&bytes, &header(3)).is_err(), "a spec beyond the end");
        assert!(parse(&bytes[..HEADER_BYTES + 20], &header(1)).is_err());
        let looping = [vec![0; HEADER_BYTES], spec(0, 1, 0, "error", ""), vec![0; 64]].concat();
        assert!(parse(&looping, &header(2)).is_err(), "an answer that leads back");
    }

    #[test]
    fn names_tell_what_holds_data() {
        for name in ["vg-lv_rmeta_0", "vg-lv_rmeta_12", "vg-pool_tmeta", "vg-lv_mlog", "vg-lvol0_pmspare"] {
            assert!(only_describes(name, ""), "{name}");
        }
        for name in ["vg-lv_rimage_0", "vg-pool_tdata", "vg-lv", "", "mpatha"] {
            assert!(!only_describes(name, "LVM-abc"), "{name}");
        }
        assert!(only_describes("renamed", "LVM-abc-tmeta") && !only_describes("renamed", "LVM-abc-tdata"));
        assert!(has_paths("mpath-3600508b4") && !has_paths("part1-mpath-3600508b4") && !has_paths(""));
    }

    #[test]
    fn what_is_no_control_device_is_refused() {
        let file = tempfile::tempfile().unwrap();
        assert!(lines(&file, NONE, DmQuestion::Table).is_err());
        assert!(open_count(&file, NONE).is_err());
    }
}
