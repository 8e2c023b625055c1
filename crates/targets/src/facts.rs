//! The facts of one block device, from sysfs: the fields of [`rdsk_model::Device`]. It opens no device and judges nothing.

use crate::sysfs::{Node, Tree, read_number, read_text};
use rdsk_model::Device;
use std::path::Path;

/// Bytes of the kernel's sector, whatever the device's own is.
const SECTOR_BYTES: u64 = 512;

/// Reads everything that sysfs tells. Queue attributes of a partition are those of its disk.
pub(crate) fn device(tree: &Tree, node: &Node) -> Device {
    let whole = tree.whole(node);
    let queue = whole.directory.join("queue");
    let number = |name: &str| read_number::<u64>(&queue.join(name));
    let flag = |name: &str| number(name).map(|value| value != 0);
    Device {
        name: node.kernel_name(),
        major_minor: node.number.to_string(),
        model: trimmed(&whole.directory.join("device/model")),
        serial: serial(&whole.directory),
        size_bytes: read_number::<u64>(&node.directory.join("size"))
            .and_then(|sectors| sectors.checked_mul(SECTOR_BYTES)),
        logical_block_bytes: number("logical_block_size"),
        physical_block_bytes: number("physical_block_size"),
        alignment_offset_bytes: read_number(&node.directory.join("alignment_offset")),
        minimum_io_bytes: number("minimum_io_size"),
        optimal_io_bytes: number("optimal_io_size").filter(|&bytes| bytes != 0),
        max_request_bytes: number("max_sectors_kb").and_then(|kib| kib.checked_mul(1024)),
        rotational: flag("rotational"),
        write_cache: trimmed(&queue.join("write_cache")),
        fua: flag("fua"),
        scheduler: read_text(&queue.join("scheduler")).and_then(|text| active_scheduler(&text)),
        iostats: flag("iostats"),
        backing_file: whole.backing_file.as_ref().map(|path| path.to_string_lossy().into_owned()),
        loop_direct_io: read_number::<u8>(&whole.directory.join("loop/dio")).map(|value| value != 0),
    }
}

/// World Wide Names as sysfs has them: `naa.5000c500a1b2c3d4`, `eui.0025385b71b00f2c`.
pub(crate) fn wwns(whole: &Node) -> Vec<String> {
    ["device/wwid", "wwid"].iter().filter_map(|name| trimmed(&whole.directory.join(name))).collect()
}

/// The kernel's count of media and attachments of a disk (5.15 and later): it changes when a loop device gets another
/// file or a drive another medium.
pub(crate) fn disk_sequence(sys: &Path, whole: &str) -> Option<u64> {
    read_number(&sys.join("block").join(whole).join("diskseq"))
}

/// NVMe and MMC have `device/serial`, virtio has `serial`, SCSI and SATA have page 0x80 of the vital product data.
pub(crate) fn serial(whole: &Path) -> Option<String> {
    trimmed(&whole.join("device/serial"))
        .or_else(|| trimmed(&whole.join("serial")))
        .or_else(|| unit_serial_number(&std::fs::read(whole.join("device/vpd_pg80")).ok()?))
}

/// The text of SCSI's unit serial number page (SPC-4, 7.8.15): four bytes of header, the length in the last two.
fn unit_serial_number(page: &[u8]) -> Option<String> {
    let length = usize::from(u16::from_be_bytes([*page.get(2)?, *page.get(3)?]));
    let text = page.get(4..)?;
    let text = String::from_utf8_lossy(&text[..length.min(text.len())]);
    some_text(&text)
}

/// `none [mq-deadline] kyber` → `mq-deadline`; a lone word is itself.
fn active_scheduler(text: &str) -> Option<String> {
    let bracketed = text.split_once('[').and_then(|(_, rest)| rest.split_once(']')).map(|(name, _)| name);
    some_text(bracketed.unwrap_or(text))
}

fn trimmed(path: &Path) -> Option<String> {
    some_text(&read_text(path)?)
}

fn some_text(text: &str) -> Option<String> {
    let text = text.trim_matches(|c: char| c.is_whitespace() || c == '\0');
    (!text.is_empty()).then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schedulers_are_read_from_their_brackets() {
        assert_eq!(active_scheduler("none [mq-deadline] kyber").as_deref(), Some("mq-deadline"));
        assert_eq!(active_scheduler("[none]").as_deref(), Some("none"));
        assert_eq!(active_scheduler("none").as_deref(), Some("none"));
        assert_eq!(active_scheduler(" "), None);
    }

    #[test]
    fn serial_pages_are_cut_by_their_length() {
        assert_eq!(unit_serial_number(b"\0\x80\0\x06  AB12trailing").as_deref(), Some("AB12"));
        assert_eq!(unit_serial_number(b"\0\x80\xff\xffAB").as_deref(), Some("AB"), "a length that lies");
        assert_eq!(unit_serial_number(b"\0\x80\0"), None);
        assert_eq!(unit_serial_number(b"\0\x80\0\x02  "), None);
    }
}
