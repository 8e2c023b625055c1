//! What the bios at a device became: a line for the bios of each call, one for the requests, and the same, further in, for each device
//! below that carries its data. It says what was counted and explains nothing.

use super::{bio_kinds, request_kinds};
use crate::page::{Page, Tone};
use rdsk_analysis::block_io::Account;
use rdsk_model::{CountedDevice, Evidence};

/// Devices deeper than this are not drawn; stacks are not so deep.
const MAX_LEVELS: usize = 8;

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
        .find(|device| (device.target, &device.name) == (counted.target, name));
    lines.push(format!("{lead}{name}{kind}"));
    let account = Account::at(evidence, |target, device| (target, device) == (counted.target, name.as_str()));
    let bios = bio_kinds(&account);
    if !bios.is_empty() {
        lines.push(format!("{lead}  bios: {bios}"));
    }
    // Where the driver takes bios, the same ones would stand in both lines.
    let flushes = stat.and_then(|device| device.flushes).unwrap_or(0);
    let requests = if counted.takes_bios { String::new() } else { request_kinds(&account, flushes) };
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
        if let Some(below) = devices.iter().find(|device| device.device == *below) {
            add(lines, evidence, devices, below, level + 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rdsk_finding::fixtures::bios;
    use rdsk_model::{Bio, BpfEvidence, DeviceEvidence, Op, Request};

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
                "  bios: 1 write of 64 KiB from pwrite64(2), 1 flush from fsync(2)",
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
