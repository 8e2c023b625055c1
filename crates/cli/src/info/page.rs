//! `rdsk info` as text, at most 80 columns wide unless a single word is wider. It draws and decides nothing.

use super::rows::Rows;
use super::{Known, Told};
use rdsk_model::{Device, ExtentEvidence, Problem, Target};
use rdsk_targets::{Examined, IdentityKind, Place, UseKind};
use rdsk_units::{Bytes, printable};

/// Columns before the text of a row.
const INDENT: usize = 15;

/// One paragraph per target that could be looked at.
pub(super) fn page(told: &[Told]) -> String {
    let paragraphs: Vec<String> = told
        .iter()
        .filter_map(|told| told.found.as_ref().ok().map(|known| paragraph(&told.name, known)))
        .collect();
    paragraphs.join("\n")
}

/// The word for where an identity comes from.
pub(super) const fn identity_word(kind: IdentityKind) -> &'static str {
    match kind {
        IdentityKind::Serial => "serial",
        IdentityKind::Wwn => "wwn",
        IdentityKind::ById => "by-id",
        IdentityKind::BackingFile => "backing-file",
    }
}

/// The word for how a target is in use.
pub(super) const fn use_word(kind: UseKind) -> &'static str {
    match kind {
        UseKind::SystemDisk => "system-disk",
        UseKind::Mounted => "mounted",
        UseKind::Swap => "swap",
        UseKind::Holder => "holder",
        UseKind::BackingFile => "backing-file",
        UseKind::SharedSectors => "shared-sectors",
        UseKind::Exported => "exported",
        UseKind::Member => "member",
        UseKind::HostManaged => "host-managed",
        UseKind::ThinPool => "thin-pool",
        UseKind::OpenExclusive => "open-exclusive",
        UseKind::OpenElsewhere => "open-elsewhere",
        UseKind::ReadOnly => "read-only",
        UseKind::NotWritable => "not-writable",
        UseKind::InMemory => "in-memory",
    }
}

fn paragraph(name: &str, known: &Known) -> String {
    let examined = &known.examined;
    let mut rows = Rows::new(&format!("{}: {}\n", printable(name), what(examined)), INDENT);
    place(&mut rows, examined);
    if let Some(device) = &examined.target.device {
        self::device(&mut rows, device, &examined.target);
    }
    access(&mut rows, &examined.target);
    if let Some(extents) = &examined.allocation {
        rows.add("allocation", &allocation(extents));
    }
    for identity in &examined.identities {
        rows.add("identity", &format!("{} ({})", printable(&identity.text), identity_word(identity.kind)));
    }
    for signature in &examined.signatures {
        let at = signature.offset_bytes.map_or_else(String::new, |offset| format!(" at byte {offset}"));
        rows.add("signature", &format!("{}{at}", signature.text));
    }
    for using in &examined.uses {
        rows.add("in use", &format!("{}: {}", use_word(using.kind), using.text));
    }
    for doubt in &examined.doubts {
        rows.add("not known", doubt);
    }
    judgements(&mut rows, known);
    rows.text
}

fn what(examined: &Examined) -> &'static str {
    match &examined.place {
        Place::Directory { .. } => "a directory",
        Place::File { .. } => "a regular file",
        Place::Block { .. } => "a block device",
        Place::Sim(_) => "a simulated disk",
    }
}

fn place(rows: &mut Rows, examined: &Examined) {
    let target = &examined.target;
    if let Some(path) = target.path.as_ref().filter(|path| **path != target.name) {
        rows.add("path", &printable(path));
    }
    match &examined.place {
        Place::Directory { free_bytes, total_bytes, .. } => {
            rows.add("free", &format!("{} of {}", Bytes(*free_bytes).approx(), Bytes(*total_bytes).approx()));
        }
        _ => rows.add("size", &Bytes(target.size_bytes).exact()),
    }
    if let Some(filesystem) = &target.filesystem {
        rows.add(
            "filesystem",
            &format!("{} ({})", printable(&filesystem.kind), options(&filesystem.options)),
        );
    }
}

/// Each mount option once, with a space behind each comma where the line may break.
fn options(text: &str) -> String {
    let mut options: Vec<String> = Vec::new();
    for option in text.split(',').map(printable) {
        if !options.contains(&option) {
            options.push(option);
        }
    }
    options.join(", ")
}

fn device(rows: &mut Rows, device: &Device, target: &Target) {
    let mut name = printable(&device.name);
    if !device.major_minor.is_empty() {
        name.push_str(&format!(" ({})", printable(&device.major_minor)));
    }
    if let Some(model) = &device.model {
        name.push_str(&format!(", {}", printable(model)));
    }
    if let Some(serial) = &device.serial {
        name.push_str(&format!(", serial {}", printable(serial)));
    }
    rows.add("device", &name);
    if target.stack.len() > 1 {
        let stack: Vec<String> = target.stack.iter().map(|name| printable(name)).collect();
        rows.add("stack", &stack.join(" > "));
    }
    if let Some(file) = &device.backing_file {
        let path = match device.loop_direct_io {
            Some(true) => ", direct I/O below",
            Some(false) => ", through the page cache below",
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
        Some(offset) => blocks.push_str(&format!(", misaligned by {offset} bytes")),
    }
    rows.add("blocks", &blocks);
    let mut requests = Vec::new();
    for (what, value) in [
        ("at most", device.max_request_bytes),
        ("chunk", device.minimum_io_bytes),
        ("stripe", device.optimal_io_bytes),
    ] {
        requests.extend(value.map(|value| format!("{what} {}", Bytes(value))));
    }
    if !requests.is_empty() {
        rows.add("requests", &requests.join(", "));
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

fn access(rows: &mut Rows, target: &Target) {
    if let Some(direct_io) = target.direct_io {
        let align = match target.direct_align_bytes {
            Some(bytes) if direct_io => format!(", in multiples of {bytes} bytes"),
            _ => String::new(),
        };
        rows.add("direct I/O", &format!("{}{align}", if direct_io { "yes" } else { "no" }));
    }
    match target.nowait {
        Some(true) => rows.add("NOWAIT", "yes"),
        Some(false) => rows.add("NOWAIT", "no: io_uring runs on worker threads here"),
        None => {}
    }
}

fn allocation(extents: &ExtentEvidence) -> String {
    let mut parts = vec![format!("{} written", Bytes(extents.mapped_bytes).approx())];
    for (bytes, what) in
        [(extents.unwritten_bytes, "reserved and never written"), (extents.hole_bytes, "holes")]
    {
        if bytes > 0 {
            parts.push(format!("{} {what}", Bytes(bytes).approx()));
        }
    }
    format!("{}, in {} extents", parts.join(", "), extents.extents)
}

fn judgements(rows: &mut Rows, known: &Known) {
    judgement(rows, "reading", &known.reading);
    match (&known.writing, &known.with_flag) {
        (Ok(()), None) if matches!(known.examined.place, Place::Directory { .. }) => {
            rows.add("writing", "allowed, to a test file that is made for the run and removed");
        }
        (Err(_), Some((flag, Ok(())))) => {
            rows.add("writing", &format!("refused, but allowed with {flag}: its data would be lost"));
        }
        // With its flag the refusal names what truly forbids it, and not the missing flag.
        (Err(_), Some((_, refused))) => judgement(rows, "writing", refused),
        (answer, _) => judgement(rows, "writing", answer),
    }
}

fn judgement(rows: &mut Rows, what: &str, answer: &Result<(), Problem>) {
    match answer {
        Ok(()) => rows.add(what, "allowed"),
        Err(problem) => {
            rows.add(what, &format!("refused: {}", printable(&problem.message)));
            if let Some(hint) = &problem.hint {
                rows.add("", &format!("hint: {}", printable(hint)));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mount_options_are_told_once() {
        assert_eq!(options("rw,relatime,rw,discard"), "rw, relatime, discard");
    }

    #[test]
    fn a_device_is_told_from_its_facts() {
        let device = Device {
            name: "sdb".into(),
            major_minor: "8:16".into(),
            model: Some("WDC\u{1b}[2J".into()),
            serial: Some("WD-1".into()),
            logical_block_bytes: Some(512),
            physical_block_bytes: Some(4096),
            alignment_offset_bytes: Some(-1),
            optimal_io_bytes: Some(3 << 16),
            minimum_io_bytes: Some(1 << 16),
            rotational: Some(true),
            write_cache: Some("write back".into()),
            fua: Some(false),
            scheduler: Some("mq-deadline".into()),
            iostats: Some(false),
            ..Device::default()
        };
        let mut rows = Rows::new("", INDENT);
        let stack = vec!["sdb1".to_owned(), "sdb".to_owned()];
        let target = Target {
            index: 0,
            name: "x".into(),
            kind: rdsk_model::TargetKind::Block,
            path: None,
            size_bytes: 1,
            filesystem: None,
            device: None,
            stack,
            made_by_rdsk: false,
            direct_io: Some(true),
            direct_align_bytes: Some(512),
            nowait: Some(false),
        };
        super::device(&mut rows, &device, &target);
        access(&mut rows, &target);
        let wanted = "  device       sdb (8:16), WDC\\x1b[2J, serial WD-1
  stack        sdb1 > sdb
  blocks       512 bytes logical, 4096 bytes physical, misaligned by -1 bytes
  requests     chunk 64 KiB, stripe 192 KiB
  write cache  write back (volatile), no FUA
  scheduler    mq-deadline, rotational, counters off (queue/iostats is 0)
  direct I/O   yes, in multiples of 512 bytes
  NOWAIT       no: io_uring runs on worker threads here
";
        assert_eq!(rows.text, wanted);
    }
}
