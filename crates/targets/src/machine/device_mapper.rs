//! What device-mapper devices are built on, range by range, from device mapper's own tables, and how often they are open. It asks the kernel, or the
//! answers of a test, and decides nothing.

use crate::machine::sysfs::Node;
use crate::roots::{Roots, ToolSource};
use rdsk_model::SECTOR_BYTES;
use rdsk_sys::device_number::DeviceNumber;
use rdsk_sys::dm::{DmLine, DmQuestion, lines, open_control, open_count};
use rustix::io::Errno;
use std::io;
use std::os::fd::OwnedFd;

/// A range of a device and what it is built on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) begin: u64,
    pub(crate) end: u64,
    /// The kind of target: `linear`, `snapshot`.
    pub(crate) kind: String,
    pub(crate) parts: Vec<Part>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) device: DeviceNumber,
    pub(crate) span: Span,
    /// Whether writes reach the device.
    pub(crate) role: Role,
}

/// Where a row lies on a device below.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Span {
    /// Byte for byte, from this byte on.
    Linear {
        offset: u64,
    },
    Within {
        begin: u64,
        end: u64,
    },
    Anywhere,
    /// In blocks of a pool that belong to this volume alone, except snapshots, which the pool keeps apart.
    Volume {
        id: u64,
    },
}

/// What a device below is used for by a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// It is read and written.
    Data,
    /// It is only read: writes go elsewhere.
    Origin,
}

/// How full a pool or a store is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PoolSpace {
    /// Bytes that are allocated to no volume.
    pub(crate) free_bytes: u64,
    pub(crate) total_bytes: u64,
    /// Metadata in use, in percent.
    pub(crate) metadata_percent: u64,
}

/// A device-mapper target that has less space than it shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PoolKind {
    Thin,
    /// It stores equal blocks once, and others compressed.
    Vdo,
}

/// Why device mapper has no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum MapperError {
    /// The kernel's words.
    #[error(transparent)]
    Kernel(#[from] io::Error),
    /// A test has prepared none.
    #[error("device mapper may not be asked")]
    NotPrepared,
    /// The state of a pool, by its kind of target, does not read as the kernel documents it.
    #[error("the state of the {0} is not understood")]
    NotUnderstood(String),
}

#[derive(Debug)]
pub(crate) enum Mapper<'roots> {
    Kernel(Result<OwnedFd, Errno>),
    /// Lines as dmsetup(8) prints them, by query and kernel name: `table dm-0`, `status dm-0`, `open dm-0`.
    Answers(&'roots std::collections::BTreeMap<String, String>),
}

impl<'roots> Mapper<'roots> {
    pub(crate) fn open(roots: &'roots Roots) -> Self {
        match &roots.tools {
            ToolSource::Answers(answers) => Self::Answers(answers),
            ToolSource::Directories(_) => Self::Kernel(open_control(&roots.dev)),
        }
    }

    pub(crate) fn table(&self, node: &Node) -> Result<Vec<Row>, MapperError> {
        Ok(self.ask(node, DmQuestion::Table)?.iter().map(row).collect())
    }

    /// How full the pool `node` is; `None` if it is not one.
    pub(crate) fn pool_space(&self, node: &Node) -> Result<Option<(PoolKind, PoolSpace)>, MapperError> {
        let table = self.ask(node, DmQuestion::Table)?;
        let pool = table.iter().find_map(|line| match line.kind.as_str() {
            "thin-pool" => Some((PoolKind::Thin, line)),
            "vdo" => Some((PoolKind::Vdo, line)),
            _ => None,
        });
        let Some((kind, line)) = pool else { return Ok(None) };
        let status = self.ask(node, DmQuestion::Status)?;
        let status = status.iter().find(|status| status.kind == line.kind);
        let space = status.and_then(|status| match kind {
            PoolKind::Thin => thin_space(line, status),
            PoolKind::Vdo => vdo_space(status),
        });
        let space = space.ok_or_else(|| MapperError::NotUnderstood(line.kind.clone()))?;
        Ok(Some((kind, space)))
    }

    /// How full the store of the snapshot `node` is; `None` if it is already lost, or the device is no snapshot.
    pub(crate) fn store_space(&self, node: &Node) -> Option<PoolSpace> {
        let status = self.ask(node, DmQuestion::Status).ok()?;
        let line = status.iter().find(|line| line.kind == "snapshot")?;
        // Documentation/admin-guide/device-mapper/snapshot.rst
        let (used, total) = used_of_total(words(line).next()?)?;
        let bytes = |sectors: u64| sectors.saturating_mul(SECTOR_BYTES);
        Some(PoolSpace {
            free_bytes: bytes(total.saturating_sub(used)),
            total_bytes: bytes(total),
            metadata_percent: 0,
        })
    }

    /// Bytes that a thin volume has allocated in its pool; `None` if that is not known.
    pub(crate) fn mapped_bytes(&self, node: &Node) -> Option<u64> {
        let status = self.ask(node, DmQuestion::Status).ok()?;
        let line = status.iter().find(|line| line.kind == "thin")?;
        words(line).next()?.parse::<u64>().ok()?.checked_mul(SECTOR_BYTES)
    }

    /// How often the device is open; `None` if it is not one of device mapper, or that may not be asked.
    pub(crate) fn open_count(&self, node: &Node) -> Option<u32> {
        match self {
            Self::Kernel(control) => {
                let is_mapped = node.mapped_name.is_some() || node.name.starts_with("dm-");
                let control = control.as_ref().ok().filter(|_| is_mapped)?;
                open_count(control, node.number).ok()
            }
            Self::Answers(answers) => answers.get(&format!("open {}", node.name))?.parse().ok(),
        }
    }

    /// The lines of an answer, as the kernel prints them.
    pub(crate) fn ask(&self, node: &Node, question: DmQuestion) -> Result<Vec<DmLine>, MapperError> {
        match self {
            Self::Kernel(Err(errno)) => Err(io::Error::from(*errno).into()),
            Self::Kernel(Ok(control)) => Ok(lines(control, node.number, question)?),
            Self::Answers(answers) => {
                let what = if question == DmQuestion::Table { "table" } else { "status" };
                let text = answers.get(&format!("{what} {}", node.name));
                let text = text.ok_or(MapperError::NotPrepared)?;
                Ok(text.lines().filter_map(printed).collect())
            }
        }
    }
}

/// Documentation/admin-guide/device-mapper/thin-provisioning.rst
fn thin_space(table: &DmLine, status: &DmLine) -> Option<PoolSpace> {
    let block_bytes = words(table).nth(2)?.parse::<u64>().ok()?.checked_mul(SECTOR_BYTES)?;
    let (used_metadata, metadata) = used_of_total(words(status).nth(1)?)?;
    let (used, total) = used_of_total(words(status).nth(2)?)?;
    Some(PoolSpace {
        free_bytes: total.saturating_sub(used).saturating_mul(block_bytes),
        total_bytes: total.saturating_mul(block_bytes),
        metadata_percent: used_metadata.saturating_mul(100).checked_div(metadata)?,
    })
}

/// Documentation/admin-guide/device-mapper/vdo.rst: device, mode, recovery, index, compression, and the blocks that are used and that
/// there are.
fn vdo_space(status: &DmLine) -> Option<PoolSpace> {
    const BLOCK_BYTES: u64 = 4096;
    let mut blocks = words(status).skip(5).map(|word| word.parse::<u64>().ok());
    let (used, total) = (blocks.next()??, blocks.next()??);
    Some(PoolSpace {
        free_bytes: total.saturating_sub(used).saturating_mul(BLOCK_BYTES),
        total_bytes: total.saturating_mul(BLOCK_BYTES),
        metadata_percent: 0,
    })
}

/// A line as dmsetup(8) prints it.
fn printed(line: &str) -> Option<DmLine> {
    let mut words = line.splitn(4, ' ');
    Some(DmLine {
        start_sectors: words.next()?.parse().ok()?,
        length_sectors: words.next()?.parse().ok()?,
        kind: words.next()?.to_owned(),
        parameters: words.next().unwrap_or_default().to_owned(),
    })
}

/// `10/1024`.
fn used_of_total(word: &str) -> Option<(u64, u64)> {
    let (used, total) = word.split_once('/')?;
    Some((used.parse().ok()?, total.parse().ok()?))
}

fn words(line: &DmLine) -> impl Iterator<Item = &str> {
    line.parameters.split(' ').filter(|word| !word.is_empty())
}

/// The parameters of each kind of target are described in Documentation/admin-guide/device-mapper. An unknown target,
/// or one that does not read as described, is assumed to reach every device that it names, anywhere.
fn row(line: &DmLine) -> Row {
    let begin = line.start_sectors.saturating_mul(SECTOR_BYTES);
    let end = begin.saturating_add(line.length_sectors.saturating_mul(SECTOR_BYTES));
    let list: Vec<&str> = words(line).collect();
    let from_begin = |device| data(device, Span::Linear { offset: begin });
    let parts = match line.kind.as_str() {
        "linear" | "flakey" | "dust" => linear(&list, 0).map(|part| vec![part]),
        "crypt" => linear(&list, 3).map(|part| vec![part]),
        "delay" => {
            [0, 3, 6].iter().filter(|&&at| at == 0 || at < list.len()).map(|&at| linear(&list, at)).collect()
        }
        "snapshot-origin" => device(&list, 0).map(|device| vec![from_begin(device)]),
        "snapshot" => snapshot(&list, begin, Role::Origin),
        "snapshot-merge" => snapshot(&list, begin, Role::Data),
        "striped" => striped(&list, end - begin),
        "thin" => thin(&list),
        "multipath" => Some(named(&list).map(from_begin).collect()),
        _ => None,
    };
    let parts = parts.unwrap_or_else(|| named(&list).map(|device| data(device, Span::Anywhere)).collect());
    Row { begin, end, kind: line.kind.clone(), parts }
}

fn data(device: DeviceNumber, span: Span) -> Part {
    Part { device, span, role: Role::Data }
}

fn device(list: &[&str], at: usize) -> Option<DeviceNumber> {
    list.get(at)?.parse().ok()
}

fn named<'list>(list: &'list [&str]) -> impl Iterator<Item = DeviceNumber> + 'list {
    list.iter().filter_map(|word| word.parse().ok())
}

fn sectors(list: &[&str], at: usize) -> Option<u64> {
    list.get(at)?.parse::<u64>().ok()?.checked_mul(SECTOR_BYTES)
}

fn linear(list: &[&str], at: usize) -> Option<Part> {
    Some(data(device(list, at)?, Span::Linear { offset: sectors(list, at + 1)? }))
}

fn snapshot(list: &[&str], begin: u64, role: Role) -> Option<Vec<Part>> {
    let origin = Part { device: device(list, 0)?, span: Span::Linear { offset: begin }, role };
    Some(vec![origin, data(device(list, 1)?, Span::Anywhere)])
}

fn striped(list: &[&str], length: u64) -> Option<Vec<Part>> {
    let count: usize = list.first()?.parse().ok().filter(|&count| count > 0)?;
    let each = length / u64::try_from(count).ok()?;
    let part = |index: usize| {
        let begin = sectors(list, 3 + 2 * index)?;
        Some(data(device(list, 2 + 2 * index)?, Span::Within { begin, end: begin.checked_add(each)? }))
    };
    (0..count).map(part).collect()
}

fn thin(list: &[&str]) -> Option<Vec<Part>> {
    let id = list.get(1)?.parse().ok()?;
    let mut parts = vec![data(device(list, 0)?, Span::Volume { id })];
    if let Some(device) = device(list, 2) {
        parts.push(Part { device, span: Span::Anywhere, role: Role::Origin });
    }
    Some(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(kind: &str, parameters: &str) -> Vec<Part> {
        let line = DmLine {
            start_sectors: 8,
            length_sectors: 64,
            kind: kind.to_owned(),
            parameters: parameters.to_owned(),
        };
        let row = row(&line);
        assert_eq!((row.begin, row.end), (4096, 36864));
        row.parts
    }

    const fn at(minor: u32) -> DeviceNumber {
        DeviceNumber { major: 8, minor }
    }

    #[test]
    fn targets_that_map_byte_for_byte() {
        let wanted = vec![data(at(16), Span::Linear { offset: 1024 })];
        for (kind, parameters) in [
            ("linear", "8:16 2"),
            ("flakey", "8:16 2 5 1 1 drop_writes"),
            ("crypt", "aes-xts-plain64 - 0 8:16 2 1 allow_discards"),
            ("delay", "8:16 2 20"),
        ] {
            assert_eq!(parts(kind, parameters), wanted, "{kind}");
        }
        let both = parts("delay", "8:16 2 20 8:32 4 80");
        assert_eq!(both[1], data(at(32), Span::Linear { offset: 2048 }));
        let paths = parts("multipath", "0 0 1 1 service-time 0 2 2 8:16 1 1 8:32 1 1");
        assert_eq!(paths.iter().map(|part| part.device).collect::<Vec<_>>(), [at(16), at(32)]);
        assert_eq!(parts("error", ""), vec![]);
    }

    #[test]
    fn targets_that_spread() {
        let stripes = parts("striped", "2 128 8:16 0 8:32 2");
        assert_eq!(stripes[0].span, Span::Within { begin: 0, end: 16384 });
        assert_eq!(stripes[1].span, Span::Within { begin: 1024, end: 17408 });
        assert_eq!(parts("thin", "8:16 7"), vec![data(at(16), Span::Volume { id: 7 })]);
        let snapshot = parts("snapshot", "8:16 8:32 P 8");
        assert_eq!((snapshot[0].role, snapshot[1].role), (Role::Origin, Role::Data));
        assert_eq!(parts("snapshot-merge", "8:16 8:32 P 8")[0].role, Role::Data);
        let raid = parts("raid", "raid5_ls 3 64 region_size 1024 2 8:16 8:32 - 8:48");
        assert_eq!(raid.iter().map(|part| part.device.minor).collect::<Vec<_>>(), [16, 32, 48]);
        assert!(raid.iter().all(|part| part.span == Span::Anywhere));
    }

    #[test]
    fn what_does_not_read_as_described_reaches_everything_it_names() {
        for (kind, parameters) in
            [("linear", "8:16"), ("striped", "0 8 8:16 0"), ("striped", "2 8 8:16"), ("thin", "8:16 x")]
        {
            assert_eq!(parts(kind, parameters), vec![data(at(16), Span::Anywhere)], "{kind} {parameters}");
        }
    }
}
