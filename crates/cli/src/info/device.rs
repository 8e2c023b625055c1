//! The rows of a block device on the page of `rdsk info`. It draws and decides nothing.

use super::rows::Rows;
use super::tree;
use rdsk_model::Device;
use rdsk_report::Charset;
use rdsk_units::{Bytes, printable};

/// What `queue/max_sectors_kb` says without a limit: the largest number of KiB that the kernel's type holds.
const NO_LIMIT_BYTES: u64 = (i32::MAX as u64) << 10;

pub(super) fn rows(rows: &mut Rows, device: &Device, charset: Charset) {
    let mut name = printable(&device.name);
    if !device.major_minor.is_empty() {
        name.push_str(&format!(" ({})", printable(&device.major_minor)));
    }
    let kind = device.kind.as_deref().filter(|kind| !["disk", "loop"].contains(kind));
    for text in [device.mapped_name.as_deref(), kind, device.model.as_deref()].into_iter().flatten() {
        name.push_str(&format!(", {}", printable(text)));
    }
    if let Some(serial) = &device.serial {
        name.push_str(&format!(", serial {}", printable(serial)));
    }
    rows.add("device", &name);
    if !device.below.is_empty() {
        rows.add_lines("stack", &tree::lines(device, charset));
    }
    if let Some(file) = &device.backing_file {
        let path = match device.loop_direct_io {
            Some(true) => ", with direct I/O",
            Some(false) => ", through the page cache",
            None => "",
        };
        rows.add("backing file", &format!("{}{path}", printable(file)));
    }
    let bytes = |value: Option<u64>| value.map_or_else(|| "unknown".to_owned(), |value| value.to_string());
    let mut blocks = format!(
        "{} bytes logical, {} bytes physical",
        bytes(device.logical_block_bytes),
        bytes(device.physical_block_bytes)
    );
    match device.alignment_offset_bytes {
        Some(0) | None => {}
        Some(offset) if offset > 0 => blocks.push_str(&format!(", misaligned: they begin at byte {offset}")),
        Some(_) => blocks.push_str(", misaligned: starts or block sizes below do not fit together"),
    }
    rows.add("blocks", &blocks);
    if let Some(requests) = requests(device) {
        rows.add("requests", &requests);
    }
    if let Some(zoned) = zoned(device) {
        rows.add("zoned", &zoned);
    }
    rows.add("write cache", &write_cache(device));
    let kind = match device.rotational {
        Some(true) => ", rotational",
        Some(false) => ", not rotational",
        None => "",
    };
    let counters = if device.iostats == Some(false) { ", counters off (queue/iostats is 0)" } else { "" };
    let scheduler = device.scheduler.as_deref().map_or_else(|| "unknown".to_owned(), printable);
    rows.add("scheduler", &format!("{scheduler}{kind}{counters}"));
}

fn write_cache(device: &Device) -> String {
    let cache = match device.write_cache.as_deref() {
        Some("write back") => "write back (volatile)".to_owned(),
        Some(other) => printable(other),
        None => "unknown".to_owned(),
    };
    let fua = match device.fua {
        Some(true) => ", FUA",
        Some(false) => ", no FUA",
        None => "",
    };
    format!("{cache}{fua}")
}

/// `at most 1280 KiB, minimum I/O 64 KiB (the chunk), optimal I/O 192 KiB (the full stripe)`.
fn requests(device: &Device) -> Option<String> {
    let mut parts = Vec::new();
    match device.max_request_bytes {
        Some(bytes) if bytes >= NO_LIMIT_BYTES => parts.push("no size limit".to_owned()),
        Some(bytes) => parts.push(format!("at most {}", Bytes(bytes))),
        None => {}
    }
    let [chunk, stripe] = striped(device);
    if let Some(bytes) = device.minimum_io_bytes {
        parts.push(format!("minimum I/O {}{chunk}", Bytes(bytes)));
    }
    if let Some(bytes) = device.optimal_io_bytes {
        parts.push(format!("optimal I/O {}{stripe}", Bytes(bytes)));
    }
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// What the minimum and the optimal I/O size stand for. On arrays they are chunk and stripe (ABI/stable/sysfs-block): md
/// sets them so. On a device of the device mapper this depends on the dm target, which sysfs does not name.
fn striped(device: &Device) -> [&'static str; 2] {
    let kind = device.kind.as_deref().unwrap_or_default();
    let is_array = ["md raid0", "md raid4", "md raid5", "md raid6", "md raid10"].contains(&kind);
    let (minimum, optimal) = (device.minimum_io_bytes.unwrap_or(0), device.optimal_io_bytes.unwrap_or(0));
    let may_stripe = minimum > 0 && optimal > minimum && optimal.is_multiple_of(minimum);
    // The kernel takes the least common multiple with the members' own optimum, of SAS controllers one sector less than 16 MiB.
    let members = device.array.as_ref().and_then(|array| array.members);
    let is_mixed = members.is_some_and(|members| optimal > minimum.saturating_mul(members));
    if is_mixed && (is_array || kind.starts_with("dm")) {
        [" (the chunk)", " (not the stripe: an optimum of the members is mixed in)"]
    } else if is_array {
        [" (the chunk)", " (the full stripe)"]
    } else if kind.starts_with("dm") && may_stripe {
        [" (the chunk, if it is striped)", " (then the full stripe)"]
    } else {
        ["", ""]
    }
}

fn zoned(device: &Device) -> Option<String> {
    let kind = device.zoned.as_deref().filter(|zoned| *zoned != "none")?;
    let size = device.zone_bytes.map(|bytes| format!(", zones of {}", Bytes(bytes))).unwrap_or_default();
    let order = match kind {
        "host-managed" => ", must be written in order",
        "host-aware" => ", best written in order",
        _ => "",
    };
    Some(format!("{}{size}{order}", printable(kind)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rdsk_model::{ArrayFacts, Target};

    #[test]
    fn the_rows_of_a_device_show_its_facts() {
        let device = Device {
            name: "sdb".into(),
            major_minor: "8:16".into(),
            model: Some("WDC\u{1b}[2J".into()),
            serial: Some("WD-1".into()),
            logical_block_bytes: Some(512),
            physical_block_bytes: Some(4096),
            alignment_offset_bytes: Some(-1),
            size_bytes: Some(16 << 30),
            below: vec![rdsk_model::Layer {
                name: "sdb1".into(),
                kind: "partition".into(),
                size_bytes: Some(8 << 30),
                ..rdsk_model::Layer::default()
            }],
            max_request_bytes: Some(u64::from(u32::MAX >> 1) << 10),
            optimal_io_bytes: Some(3 << 16),
            minimum_io_bytes: Some(1 << 16),
            rotational: Some(true),
            write_cache: Some("write back".into()),
            fua: Some(false),
            scheduler: Some("mq-deadline".into()),
            iostats: Some(false),
            ..Device::default()
        };
        let mut rows = Rows::new("", crate::info::page::INDENT, 80);
        let target = Target {
            index: 0,
            name: "x".into(),
            kind: rdsk_model::TargetKind::Block,
            path: None,
            size_bytes: 1,
            filesystem: None,
            device: None,
            stack: Vec::new(),
            made_by_rdsk: false,
            other_devices: Vec::new(),
            laid_out: None,
            direct_io: Some(true),
            direct_align_bytes: Some(512),
            nowait: Some(false),
            dontcache: Some(false),
        };
        super::rows(&mut rows, &device, Charset::Unicode);
        crate::info::page::access(&mut rows, &target);
        let expected = "  device       sdb (8:16), WDC\\x1b[2J, serial WD-1
  stack        sdb  16 GiB
               └─ sdb1  8 GiB, partition
  blocks       512 bytes logical, 4096 bytes physical, misaligned: starts or
               block sizes below do not fit together
  requests     no size limit, minimum I/O 64 KiB, optimal I/O 192 KiB
  write cache  write back (volatile), no FUA
  scheduler    mq-deadline, rotational, counters off (queue/iostats is 0)
  direct I/O   yes, in multiples of 512 bytes
  NOWAIT       no: io_uring uses worker threads here
  dontcache    no: RWF_DONTCACHE needs Linux 6.14 or later and a filesystem that
               supports it
";
        assert_eq!(rows.text, expected);
    }

    #[test]
    fn sizes_of_requests_are_called_what_they_are() {
        let device = |kind: &str, minimum: u64, optimal: u64| Device {
            kind: Some(kind.into()),
            max_request_bytes: Some(512 << 10),
            minimum_io_bytes: Some(minimum),
            optimal_io_bytes: (optimal > 0).then_some(optimal),
            ..Device::default()
        };
        // A disk may name an optimal size without being striped (scsi_debug: 512 KiB).
        for (kind, minimum, optimal, expected) in [
            ("disk", 512, 512 << 10, "minimum I/O 512 B, optimal I/O 512 KiB"),
            ("md raid1", 512, 0, "minimum I/O 512 B"),
            (
                "md raid5",
                65536,
                131_072,
                "minimum I/O 64 KiB (the chunk), optimal I/O 128 KiB (the full stripe)",
            ),
            (
                "dm",
                65536,
                131_072,
                "minimum I/O 64 KiB (the chunk, if it is striped), optimal I/O 128 KiB (then the full stripe)",
            ),
            ("dm LVM", 512, 0, "minimum I/O 512 B"),
            ("dm LVM", 65536, 65536, "minimum I/O 64 KiB, optimal I/O 64 KiB"),
        ] {
            let text = requests(&device(kind, minimum, optimal)).unwrap();
            assert_eq!(text, format!("at most 512 KiB, {expected}"));
        }
        assert_eq!(requests(&Device::default()), None);
        // As md makes it of members behind mpt3sas.
        let mixed = Device {
            array: Some(ArrayFacts { members: Some(4), ..ArrayFacts::default() }),
            ..device("md raid5", 65_536, 4_293_918_720)
        };
        let text = requests(&mixed).unwrap();
        assert!(text.ends_with("(not the stripe: an optimum of the members is mixed in)"), "{text}");
    }

    #[test]
    fn zones_are_shown_if_there_are_any() {
        let device = |zoned: &str| Device {
            zoned: Some(zoned.into()),
            zone_bytes: Some(256 << 20),
            ..Device::default()
        };
        assert_eq!(
            zoned(&device("host-managed")).unwrap(),
            "host-managed, zones of 256 MiB, must be written in order"
        );
        assert_eq!(
            zoned(&device("host-aware")).unwrap(),
            "host-aware, zones of 256 MiB, best written in order"
        );
        assert_eq!(zoned(&device("none")), None);
        assert_eq!(zoned(&Device::default()), None);
    }
}
