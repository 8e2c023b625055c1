//! Writes a small GUID partition table (UEFI specification 2.10, chapter 5) so that tests need no partitioning tool.
//! It overwrites existing tables without looking, so it is for this room's own devices only.

use std::collections::hash_map::RandomState;
use std::fs::File;
use std::hash::BuildHasher as _;
use std::io;
use std::os::unix::fs::FileExt as _;

/// One partition: first byte and length, both multiples of the sector size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) start: u64,
    pub(crate) len: u64,
}

const ENTRY_BYTES: usize = 128;
const ENTRY_COUNT: usize = 128;
const TABLE_BYTES: usize = ENTRY_BYTES * ENTRY_COUNT;
/// "Linux filesystem data", 0FC63DAF-8483-4772-8E79-3D69D8477DE4, in the mixed byte order of the specification.
const TYPE_LINUX: [u8; 16] =
    [0xaf, 0x3d, 0xc6, 0x0f, 0x83, 0x84, 0x72, 0x47, 0x8e, 0x79, 0x3d, 0x69, 0xd8, 0x47, 0x7d, 0xe4];

/// Writes protective MBR, primary and backup table for `partitions` on a device of `size` bytes.
pub(crate) fn write(device: &File, size: u64, sector: u64, partitions: &[Span]) -> io::Result<()> {
    let sectors = size / sector;
    let table = entries(sector, partitions);
    let table_sectors = (TABLE_BYTES as u64).div_ceil(sector);
    let last = sectors - 1;
    let primary = header(&Header { own: 1, other: last, table: 2, last, table_sectors }, &table);
    let backup =
        header(&Header { own: last, other: 1, table: last - table_sectors, last, table_sectors }, &table);
    // Whole sectors are written, because a device open with O_DIRECT needs them, and any other accepts them.
    device.write_all_at(&padded(&protective_mbr(sectors), sector), 0)?;
    device.write_all_at(&padded(&primary, sector), sector)?;
    device.write_all_at(&padded(&table, sector), 2 * sector)?;
    device.write_all_at(&padded(&table, sector), (last - table_sectors) * sector)?;
    device.write_all_at(&padded(&backup, sector), last * sector)?;
    device.sync_all()
}

/// `count` equal partitions that start at 1 MiB and end 1 MiB before the end, aligned to 1 MiB.
pub(crate) fn equal_spans(size: u64, count: u64) -> Vec<Span> {
    const MIB: u64 = 1 << 20;
    let len = (size.saturating_sub(2 * MIB) / count) / MIB * MIB;
    (0..count).map(|index| Span { start: MIB + index * len, len }).collect()
}

/// Places, in sectors, that one of the two headers names.
struct Header {
    own: u64,
    other: u64,
    table: u64,
    last: u64,
    table_sectors: u64,
}

fn header(place: &Header, table: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(92);
    bytes.extend(b"EFI PART");
    bytes.extend(0x0001_0000u32.to_le_bytes());
    bytes.extend(92u32.to_le_bytes());
    bytes.extend([0; 8]); // its own checksum, filled in below, and a reserved word
    bytes.extend(place.own.to_le_bytes());
    bytes.extend(place.other.to_le_bytes());
    bytes.extend((2 + place.table_sectors).to_le_bytes());
    bytes.extend((place.last - place.table_sectors - 1).to_le_bytes());
    bytes.extend(*b"rdsk test disk 1");
    bytes.extend(place.table.to_le_bytes());
    bytes.extend(128u32.to_le_bytes()); // entries
    bytes.extend(128u32.to_le_bytes()); // bytes of each
    bytes.extend(crc32(table).to_le_bytes());
    let checksum = crc32(&bytes);
    bytes[16..20].copy_from_slice(&checksum.to_le_bytes());
    bytes
}

fn entries(sector: u64, partitions: &[Span]) -> Vec<u8> {
    let mut table = Vec::with_capacity(TABLE_BYTES);
    // Two tables with the same names would be those of a disk and its copy.
    let random = RandomState::new().hash_one(std::process::id()).to_le_bytes();
    for (number, span) in (1u8..).zip(partitions) {
        let mut unique = *b"rdsk............";
        unique[4..12].copy_from_slice(&random);
        unique[15] = number;
        table.extend(TYPE_LINUX);
        table.extend(unique);
        table.extend((span.start / sector).to_le_bytes());
        table.extend(((span.start + span.len) / sector - 1).to_le_bytes());
        table.resize(usize::from(number) * ENTRY_BYTES, 0); // attributes and name stay empty
    }
    table.resize(TABLE_BYTES, 0);
    table
}

fn protective_mbr(sectors: u64) -> Vec<u8> {
    let mut bytes = vec![0; 512];
    bytes[446..454].copy_from_slice(&[0, 0, 2, 0, 0xee, 0xff, 0xff, 0xff]);
    bytes[454..458].copy_from_slice(&1u32.to_le_bytes());
    bytes[458..462].copy_from_slice(&u32::try_from(sectors - 1).unwrap_or(u32::MAX).to_le_bytes());
    bytes[510..512].copy_from_slice(&[0x55, 0xaa]);
    bytes
}

fn padded(bytes: &[u8], sector: u64) -> Vec<u8> {
    let mut whole = bytes.to_vec();
    let sector = usize::try_from(sector).expect("a sector is a few KiB");
    whole.resize(bytes.len().next_multiple_of(sector), 0);
    whole
}

/// CRC-32 of ISO 3309, bit by bit: the data is too small for a lookup table.
fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::requires::{Need, requires};
    use crate::tool::output_of;
    use std::process::Command;

    #[test]
    fn checksum_has_its_known_value() {
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
        assert_eq!(crc32(b""), 0);
    }

    #[test]
    fn spans_are_equal_and_inside() {
        let spans = equal_spans(64 << 20, 2);
        assert_eq!(spans, [Span { start: 1 << 20, len: 31 << 20 }, Span { start: 32 << 20, len: 31 << 20 }]);
    }

    #[test]
    fn others_can_read_the_table() {
        if !requires(&[Need::Tool("partx"), Need::Tool("wipefs")]) {
            return;
        }
        let file = tempfile::NamedTempFile::new().unwrap();
        let size = 16 << 20;
        file.as_file().set_len(size).unwrap();
        write(file.as_file(), size, 512, &equal_spans(size, 2)).unwrap();
        let list = output_of(
            Command::new("partx").args(["--raw", "--noheadings", "-o", "START,SECTORS"]).arg(file.path()),
        )
        .unwrap();
        assert_eq!(list.lines().collect::<Vec<_>>(), ["2048 14336", "16384 14336"]);
        let signatures =
            output_of(Command::new("wipefs").args(["--no-act", "--json"]).arg(file.path())).unwrap();
        // Primary table, backup table and protective MBR.
        assert_eq!(signatures.matches("\"gpt\"").count(), 2, "{signatures}");
        assert_eq!(signatures.matches("\"PMBR\"").count(), 1, "{signatures}");
    }
}
