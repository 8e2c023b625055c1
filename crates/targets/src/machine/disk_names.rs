//! What a disk calls itself: its World Wide Names and its serial number, as sysfs has them. Whether they identify it is not decided here.

use super::Node;
use rdsk_sys::files::read_word;
use std::path::Path;

/// World Wide Names as sysfs has them: `naa.5000c500a1b2c3d4`, `eui.0025385b71b00f2c`.
pub(crate) fn wwns(whole: &Node) -> Vec<String> {
    ["device/wwid", "wwid"].iter().filter_map(|name| read_word(&whole.directory.join(name))).collect()
}

/// Serial number of the disk at `whole`: `device/serial` (NVMe, MMC), `serial` (virtio), VPD page 0x80 (SCSI, SATA).
pub(crate) fn serial(whole: &Path) -> Option<String> {
    read_word(&whole.join("device/serial"))
        .or_else(|| read_word(&whole.join("serial")))
        .or_else(|| unit_serial_number(&std::fs::read(whole.join("device/vpd_pg80")).ok()?))
}

/// The text of SCSI's unit serial number page (SPC-4, 7.8.15): four bytes of header, the length in the last two.
fn unit_serial_number(page: &[u8]) -> Option<String> {
    let length = usize::from(u16::from_be_bytes([*page.get(2)?, *page.get(3)?]));
    let text = page.get(4..)?;
    let text = String::from_utf8_lossy(&text[..length.min(text.len())]);
    let text = text.trim_matches(|c: char| c.is_whitespace() || c == '\0');
    (!text.is_empty()).then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::unit_serial_number;

    #[test]
    fn serial_pages_are_cut_by_their_length() {
        assert_eq!(unit_serial_number(b"\0\x80\0\x06  AB12trailing").as_deref(), Some("AB12"));
        assert_eq!(unit_serial_number(b"\0\x80\xff\xffAB").as_deref(), Some("AB"), "a length that lies");
        assert_eq!(unit_serial_number(b"\0\x80\0"), None);
        assert_eq!(unit_serial_number(b"\0\x80\0\x02  "), None);
    }
}
