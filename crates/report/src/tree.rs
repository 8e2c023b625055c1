//! What the bios at a device became: a line for the bios of each call, one for the requests, and the same, further in, for each device
//! below that carries its data. It says what was counted and explains nothing.

use crate::page::{Page, Tone};
use rdsk_analysis::words::plural;
use rdsk_model::{Bio, CountedDevice, DeviceEvidence, Evidence, Request};
use rdsk_units::{Bytes, grouped};
use std::collections::BTreeMap;

/// Devices deeper than this are not drawn; nobody stacks so many.
const MAX_LEVELS: usize = 8;
/// Kinds of requests and origins of bios that are listed for a device; the others are summed up.
const MOST_LISTED: usize = 6;
/// The word for bios that only ask for a flush.
const FLUSH: &str = "flush";

/// The tree of one target, as lines without a width of their own; empty where the programs counted nothing of it.
pub fn tree(evidence: &Evidence, target: u32) -> Vec<String> {
    let devices: Vec<&CountedDevice> =
        evidence.bpf.iter().flat_map(|bpf| &bpf.devices).filter(|counted| counted.target == target).collect();
    let is_below = |name: &str| devices.iter().any(|counted| counted.below.iter().any(|below| below == name));
    let tops = devices.iter().filter(|counted| !is_below(&counted.device));
    let mut lines = Vec::new();
    tops.for_each(|top| add(&mut lines, evidence, &devices, top, 0));
    lines
}

/// The same on a page, below a heading; nothing where a device stands alone and took what it was given as it was.
pub(crate) fn draw(page: &mut Page, evidence: &Evidence, target: u32, heading: &str) {
    let lines = tree(evidence, target);
    if lines.is_empty() {
        return;
    }
    page.sentence(Tone::Heading, "  ", heading);
    for line in lines {
        let text = line.trim_start();
        let lead = " ".repeat(4 + line.len() - text.len());
        page.sentence(Tone::Plain, lead, text);
    }
}

fn add(
    lines: &mut Vec<String>,
    evidence: &Evidence,
    devices: &[&CountedDevice],
    counted: &CountedDevice,
    level: usize,
) {
    let lead = "  ".repeat(level);
    let kind = counted.kind.as_ref().map_or_else(String::new, |kind| format!(" ({kind})"));
    let name = &counted.device;
    // Of all visits: where some were not followed, what it counted is not of these requests.
    let is_of_all = evidence.bpf.as_ref().is_none_or(|bpf| bpf.followed.is_none());
    let stat = evidence
        .device
        .iter()
        .filter(|_| is_of_all)
        .find(|one| (one.target, &one.name) == (counted.target, name));
    lines.push(format!("{lead}{name}{kind}"));
    let bios = evidence.bios.iter().filter(|bio| (bio.target, &bio.device) == (counted.target, name));
    let bios = came(bios);
    if !bios.is_empty() {
        lines.push(format!("{lead}  bios: {bios}"));
    }
    let requests: Vec<&Request> =
        evidence.requests.iter().filter(|one| (one.target, &one.device) == (counted.target, name)).collect();
    // Where the driver takes bios, the same ones would stand in both lines.
    let requests = if counted.takes_bios { String::new() } else { went(&requests, stat) };
    if !requests.is_empty() {
        lines.push(format!("{lead}  requests: {requests}"));
    }
    if bios.is_empty() && requests.is_empty() {
        lines.push(format!("{lead}  nothing"));
    }
    if level + 1 >= MAX_LEVELS {
        return;
    }
    for below in &counted.below {
        if let Some(below) = devices.iter().find(|one| one.device == *below) {
            add(lines, evidence, devices, below, level + 1);
        }
    }
}

/// `16 writes of 4 KiB each from pwrite64`.
fn came<'e>(bios: impl Iterator<Item = &'e Bio>) -> String {
    let mut from: BTreeMap<(&str, String), [u64; 2]> = BTreeMap::new();
    for bio in bios {
        let what = if bio.flush { FLUSH } else { bio.op.as_str() };
        let sum = from.entry((what, origin(bio))).or_default();
        *sum = [sum[0] + bio.count, sum[1] + bio.bytes];
    }
    let mut from: Vec<_> = from.into_iter().collect();
    from.sort_by_key(|(_, [count, _])| std::cmp::Reverse(*count));
    let words = |((what, from), [count, bytes]): ((&str, String), [u64; 2])| match bytes.checked_div(count) {
        _ if what == FLUSH => format!("{} from {from}", flushes(count)),
        Some(each) if each * count == bytes => {
            format!("{} of {} from {from}", plural(count, what), Bytes(each))
        }
        each => {
            format!("{} of {} on average from {from}", plural(count, what), Bytes(each.unwrap_or(0)).approx())
        }
    };
    listed(from, words, |(_, [count, _])| *count, "bio")
}

/// Who submitted a bio, and by which call.
fn origin(bio: &Bio) -> String {
    let call = bio.syscall.as_deref();
    let mut words = match (bio.task.as_str(), call) {
        ("kernel", _) => "the kernel's threads".to_owned(),
        ("this" | "child", Some(call)) => call.to_owned(),
        ("this" | "child", None) => "its workers".to_owned(),
        (_, Some(call)) => format!("{call} of others"),
        (_, None) => "others".to_owned(),
    };
    if bio.read_ahead {
        words += ", read-ahead";
    }
    if bio.nowait {
        words += ", not to wait";
    }
    words
}

/// `2 reads of 64 KiB, 2 writes of 64 KiB, 1 flush`.
fn went(requests: &[&Request], device: Option<&DeviceEvidence>) -> String {
    let mut kinds: Vec<(String, u64)> = requests
        .iter()
        .map(|one| {
            let fua = if one.fua { " with FUA" } else { "" };
            (format!("{} of {}{fua}", plural(one.count, one.op.as_str()), Bytes(one.bytes)), one.count)
        })
        .collect();
    kinds.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let mut words = listed(kinds, |(words, _)| words, |(_, count)| *count, "request");
    if let Some(count) = device.and_then(|device| device.flushes).filter(|&count| count > 0) {
        let more = flushes(count);
        words = if words.is_empty() { more } else { format!("{words}, {more}") };
    }
    words
}

/// The first few in words, and how many the others are.
fn listed<T>(all: Vec<T>, words: impl Fn(T) -> String, count: impl Fn(&T) -> u64, what: &str) -> String {
    let others: u64 = all.iter().skip(MOST_LISTED).map(count).sum();
    let mut parts: Vec<String> = all.into_iter().take(MOST_LISTED).map(words).collect();
    if others > 0 {
        parts.push(format!("{} of other kinds", plural(others, what)));
    }
    parts.join(", ")
}

fn flushes(count: u64) -> String {
    if count == 1 { "1 flush".to_owned() } else { format!("{} flushes", grouped(count)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rdsk_finding::fixtures::bios;
    use rdsk_model::{BpfEvidence, Op};

    fn counted(device: &str, kind: Option<&str>, below: &[&str]) -> CountedDevice {
        CountedDevice {
            target: 0,
            device: device.into(),
            kind: kind.map(str::to_owned),
            takes_bios: !below.is_empty(),
            below: below.iter().map(|name| (*name).to_owned()).collect(),
            lost: Some(0),
        }
    }

    fn request(device: &str, op: Op, bytes: u64, fua: bool, count: u64) -> Request {
        Request { device: device.into(), fua, ..bios::request(op, bytes, count) }
    }

    fn bio(device: &str, op: Op, syscall: Option<&str>, task: &str, count: u64, bytes_each: u64) -> Bio {
        Bio { device: device.into(), ..bios::bio(op, task, syscall, count, bytes_each) }
    }

    /// A write of 64 KiB to a RAID 5 of three disks.
    fn raid() -> Evidence {
        let devices = vec![
            counted("md0", Some("raid5"), &["sda", "sdb", "sdc"]),
            counted("sda", None, &[]),
            counted("sdb", None, &[]),
            counted("sdc", None, &[]),
        ];
        let flushed = DeviceEvidence { name: "sda".into(), flushes: Some(1), ..DeviceEvidence::default() };
        Evidence {
            bpf: Some(BpfEvidence { devices, ..BpfEvidence::default() }),
            device: vec![flushed],
            bios: vec![
                bio("md0", Op::Write, Some("pwrite64"), "this", 1, 65_536),
                Bio { flush: true, ..bio("md0", Op::Write, Some("fsync"), "this", 1, 0) },
                bio("sda", Op::Read, None, "kernel", 16, 4096),
                bio("sda", Op::Write, None, "kernel", 16, 4096),
            ],
            requests: vec![
                request("md0", Op::Write, 65_536, false, 1),
                request("sda", Op::Read, 65_536, false, 1),
                request("sda", Op::Write, 65_536, true, 2),
            ],
            ..Evidence::default()
        }
    }

    #[test]
    fn what_a_write_became_stands_below_it() {
        let lines = tree(&raid(), 0);
        assert_eq!(
            lines,
            [
                "md0 (raid5)",
                "  bios: 1 flush from fsync, 1 write of 64 KiB from pwrite64",
                "  sda",
                "    bios: 16 reads of 4 KiB from the kernel's threads, 16 writes of 4 KiB from the kernel's threads",
                "    requests: 2 writes of 64 KiB with FUA, 1 read of 64 KiB, 1 flush",
                "  sdb",
                "    nothing",
                "  sdc",
                "    nothing",
            ]
        );
    }

    #[test]
    fn flushes_of_all_visits_do_not_stand_beside_requests_of_some() {
        let mut evidence = raid();
        evidence.bpf.as_mut().expect("it has some").followed = Some(vec![0]);
        let lines = tree(&evidence, 0);
        assert!(
            lines.iter().any(|line| line.trim() == "requests: 2 writes of 64 KiB with FUA, 1 read of 64 KiB"),
            "{lines:?}"
        );
    }

    #[test]
    fn many_kinds_are_summed_up_and_other_targets_left_out() {
        let mut evidence = raid();
        evidence.requests =
            (1..=9).map(|size| request("sda", Op::Read, size * 512, false, 10 - size)).collect();
        let lines = tree(&evidence, 0);
        let requests = lines.iter().find(|line| line.contains("requests: ")).expect("sda has some");
        assert!(
            requests.contains("9 reads of 512 B") && requests.contains("6 requests of other kinds"),
            "{requests}"
        );
        assert!(tree(&evidence, 1).is_empty() && tree(&Evidence::default(), 0).is_empty());
    }

    #[test]
    fn a_circle_ends() {
        let mut evidence = raid();
        let bpf = evidence.bpf.as_mut().expect("it has some");
        bpf.devices =
            vec![counted("top", None, &["a"]), counted("a", None, &["b"]), counted("b", None, &["a"])];
        assert!(tree(&evidence, 0).len() <= 2 * MAX_LEVELS);
    }
}
