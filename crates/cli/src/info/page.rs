//! `rdsk info` as text, at most 80 columns wide unless a single word is wider. It draws and decides nothing.

use super::rows::Rows;
use super::{Facts, TargetInfo};
use rdsk_model::{ExtentEvidence, NEEDS_OF_DONTCACHE, Problem, Target, TargetKind};
use rdsk_report::Charset;
use rdsk_targets::{Examined, Place};
use rdsk_units::{Bytes, printable};
use serde_json::{Value, json};

/// Columns before the text of a row.
pub(super) const INDENT: usize = 15;

/// One paragraph per target that could be examined.
pub(super) fn page(infos: &[TargetInfo], charset: Charset, columns: usize) -> String {
    let paragraphs: Vec<String> = infos
        .iter()
        .filter_map(|info| {
            info.outcome.as_ref().ok().map(|facts| paragraph(&info.name, facts, charset, columns))
        })
        .collect();
    paragraphs.join("\n")
}

/// The word for a kind, as the document has it.
fn word(kind: &Value) -> &str {
    kind.as_str().unwrap_or_default()
}

fn paragraph(name: &str, facts: &Facts, charset: Charset, columns: usize) -> String {
    let examined = &facts.examined;
    let mut rows = Rows::new(&format!("{}: {}\n", printable(name), what(examined)), INDENT, columns);
    place(&mut rows, examined);
    if let Some(device) = &examined.target.device {
        super::device::rows(&mut rows, device, charset);
    }
    access(&mut rows, &examined.target);
    if let Some(extents) = &examined.allocation {
        rows.add("allocation", &allocation(extents));
    }
    for identity in &examined.identities {
        rows.add("identity", &format!("{} ({})", printable(&identity.text), word(&json!(identity.kind))));
    }
    for none in &examined.no_identities {
        let text = printable(&none.identity.text);
        rows.add("no identity", &format!("{text} ({}): {}", word(&json!(none.identity.kind)), none.why));
    }
    for signature in &examined.signatures {
        let at = signature.offset_bytes.map_or_else(String::new, |offset| format!(" at byte {offset}"));
        rows.add("signature", &format!("{}{at}", signature.text));
    }
    for using in &examined.uses {
        rows.add("in use", &format!("{}: {}", word(&json!(using.kind)), using.text));
    }
    for doubt in &examined.doubts {
        rows.add("unknown", doubt);
    }
    judgements(&mut rows, facts);
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

/// Each mount option once, with a space after each comma so that the line may break there.
fn options(text: &str) -> String {
    let mut options: Vec<String> = Vec::new();
    for option in text.split(',').map(printable) {
        if !options.contains(&option) {
            options.push(option);
        }
    }
    options.join(", ")
}

pub(super) fn access(rows: &mut Rows, target: &Target) {
    if let Some(direct_io) = target.direct_io {
        let align = match target.direct_align_bytes {
            Some(bytes) if direct_io => format!(", in multiples of {bytes} bytes"),
            _ => String::new(),
        };
        rows.add("direct I/O", &format!("{}{align}", if direct_io { "yes" } else { "no" }));
    }
    match target.nowait {
        Some(true) => rows.add("NOWAIT", "yes"),
        Some(false) => rows.add("NOWAIT", "no: io_uring uses worker threads here"),
        None => {}
    }
    match target.dontcache {
        Some(true) => rows.add("dontcache", "yes"),
        Some(false) if target.kind != TargetKind::Sim => {
            rows.add("dontcache", &format!("no: {NEEDS_OF_DONTCACHE}"));
        }
        Some(false) | None => {}
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

fn judgements(rows: &mut Rows, facts: &Facts) {
    judgement(rows, "reading", &facts.reading);
    match (&facts.writing, &facts.with_flag) {
        (Ok(()), None) if matches!(facts.examined.place, Place::Directory { .. }) => {
            rows.add("writing", "allowed, to a test file that is created for the run and removed");
        }
        (Err(_), Some((flag, Ok(())))) => {
            let lost = lost(facts);
            rows.add("writing", &format!("refused, but allowed with {flag}: {lost}"));
        }
        (Err(_), Some((flag, Err(problem)))) if facts.part_bytes.is_some() => {
            let most = Bytes(facts.part_bytes.unwrap_or_default()).exact();
            rows.add("writing", &format!("refused if all of it is written: {}", printable(&problem.message)));
            let lost = lost(facts);
            rows.add("", &format!("a run that writes at most {most} is allowed with {flag}: {lost}"));
        }
        // With its flag, the refusal names what really forbids writing, and not the missing flag.
        (Err(_), Some((_, refused))) => judgement(rows, "writing", refused),
        (answer, _) => judgement(rows, "writing", answer),
    }
}

/// What a write does to what is there.
fn lost(facts: &Facts) -> String {
    match facts.examined.place {
        Place::File { .. } => format!("contents of {} replaced", printable(&facts.examined.target.name)),
        _ => "its data would be lost".to_owned(),
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
    use rdsk_model::{Device, Layer};
    use rdsk_targets::{Identity, IdentityKind, NoIdentity, Roots};

    #[test]
    fn mount_options_are_shown_once() {
        assert_eq!(options("rw,relatime,rw,discard"), "rw, relatime, discard");
    }

    /// A logical volume on a mirror as its page looks, with a name that proves nothing.
    #[test]
    fn the_page_of_a_volume() {
        let layer = |name: &str, kind: &str, mib: u64, below: Vec<Layer>| Layer {
            name: name.into(),
            kind: kind.into(),
            size_bytes: Some(mib << 20),
            below,
            ..Layer::default()
        };
        let identity = |kind, text: &str| Identity { kind, text: text.into() };
        let mut examined = rdsk_targets::examine("sim:wd2500", &Roots::default()).unwrap();
        examined.place = Place::Block { major_minor: "252:0".parse().unwrap(), attachment: None };
        examined.target.name = "v-g/l-v".into();
        examined.target.path = Some("/dev/dm-0".into());
        examined.target.size_bytes = 16 << 20;
        examined.target.device = Some(Device {
            name: "dm-0".into(),
            major_minor: "252:0".into(),
            kind: Some("dm LVM".into()),
            mapped_name: Some("v-g/l-v".into()),
            size_bytes: Some(16 << 20),
            logical_block_bytes: Some(512),
            physical_block_bytes: Some(4096),
            max_request_bytes: Some(2_147_483_647 << 10),
            minimum_io_bytes: Some(512),
            zoned: Some("none".into()),
            below: vec![layer(
                "md7",
                "md raid1",
                47,
                vec![layer("vda", "disk", 48, Vec::new()), layer("vdb", "disk", 48, Vec::new())],
            )],
            ..Device::default()
        });
        examined.identities =
            vec![identity(IdentityKind::Volume, "v-g/l-v"), identity(IdentityKind::MapperName, "v--g-l--v")];
        examined.no_identities = vec![NoIdentity {
            identity: identity(IdentityKind::Serial, "2000"),
            why: "sdb has it too".into(),
        }];
        let refused = || Err(Problem::new(rdsk_model::ProblemKind::Refused, "needs-destroy", "no", "add it"));
        let facts = Facts {
            examined,
            reading: Ok(()),
            writing: refused(),
            with_flag: Some(("--destroy v-g/l-v".into(), Ok(()))),
            part_bytes: None,
        };
        let expected = "v-g/l-v: a block device
  path         /dev/dm-0
  size         16 MiB (16,777,216 bytes)
  device       dm-0 (252:0), v-g/l-v, dm LVM
  stack        dm-0 (v-g/l-v)  16 MiB, dm LVM
               └─ md7  47 MiB, md raid1, 2 members
                  ├─ vda  48 MiB, disk
                  └─ vdb  48 MiB, disk
  blocks       512 bytes logical, 4096 bytes physical
  requests     no size limit, minimum I/O 512 B
  write cache  unknown
  scheduler    unknown
  direct I/O   yes, in multiples of 512 bytes
  identity     v-g/l-v (volume)
  identity     v--g-l--v (dm-name)
  no identity  2000 (serial): sdb has it too
  reading      allowed
  writing      refused, but allowed with --destroy v-g/l-v: its data would be
               lost
";
        assert_eq!(paragraph("v-g/l-v", &facts, Charset::Unicode, 80), expected);
    }
}
