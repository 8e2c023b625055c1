//! What a write or read became on its way down: the tree of bios and requests that BPF programs counted at each device of a stack, exact
//! against each device's own counters.

use std::time::Duration;

use rdsk_model::{CellRecord, CrossCheck, Op, Record, Request, Sync};
use rdsk_report::tree;
use rdsk_testkit::attempts::{ensure, first_right};
use rdsk_testkit::guest::{Booted, Disk, Scenario, Tier};
use rdsk_testkit::{Need, requires};

use crate::guest;

const MIB: u64 = 1 << 20;
const KIB: u64 = 1 << 10;
/// What md may write for itself: that the array is in use, to each member.
const SUPERBLOCKS: u64 = 64 * KIB;
/// Runs of a row. The programs may miss an event and say so; the first run that misses none counts.
const TRIES: usize = 6;

/// A stack and what goes into it, one I/O a visit.
struct Row {
    name: &'static str,
    /// Leaves the device in `at`.
    set_up: &'static str,
    op: Op,
    sync: Sync,
    /// Bytes of one I/O.
    bytes: u64,
    /// What the devices must have done.
    judge: fn(&Seen<'_>),
}

const ROWS: &[Row] = &[
    Row {
        name: "a 64 KiB write to an md RAID 5",
        // It stays active, and does not write its superblocks when nothing was written for 200 ms.
        set_up: "raid md0 5 $A $B $C -- --chunk=64 --bitmap=none; echo 0 > /sys/block/md0/md/safe_mode_delay; at=/dev/md0",
        op: Op::Write,
        sync: Sync::None,
        bytes: 64 * KIB,
        judge: |judged| {
            assert_eq!(judged.below("md0").len(), 3, "{}", judged.lines());
            assert!(judged.lines().contains("(raid5)"), "{}", judged.lines());
            // Data and parity. What the parity is computed from may still be in md's stripe cache, so nothing need be read.
            let more = judged.moved_below("md0", Op::Write).checked_sub(2 * judged.asked());
            assert!(more.is_some_and(|more| more <= SUPERBLOCKS), "{}", judged.lines());
        },
    },
    Row {
        name: "a dm-crypt write",
        set_up: "dmsetup create cr --table \"0 65536 crypt aes-xts-plain64 \
                 00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff 0 $A 0\"
                 at=/dev/mapper/cr",
        op: Op::Write,
        sync: Sync::None,
        bytes: 64 * KIB,
        judge: |judged| {
            assert_eq!(judged.moved_below(&judged.top(), Op::Write), judged.asked(), "{}", judged.lines());
            assert!(judged.lines().contains("from the kernel's threads"), "kcryptd writes: {}", judged.lines());
        },
    },
    Row {
        name: "a striped LV read",
        set_up: "fresh $A $B; pvcreate -q -y $A $B; vgcreate -q vg $A $B; lvcreate -q -y -Wn -Zn -i 2 -I 16k -l 100%FREE -n lv vg
                 at=/dev/mapper/vg-lv",
        op: Op::Read,
        sync: Sync::None,
        bytes: 64 * KIB,
        judge: |judged| {
            let members = judged.below(&judged.top());
            assert_eq!(members.len(), 2, "{}", judged.lines());
            for member in members {
                assert_eq!(judged.moved(&member, Op::Read), judged.asked() / 2, "{member}: {}", judged.lines());
            }
        },
    },
    Row {
        name: "an NVMe dsync write",
        set_up: "at=$N",
        op: Op::Write,
        sync: Sync::Dsync,
        bytes: 4 * KIB,
        judge: |judged| {
            let top = judged.top();
            let durable = judged.requests(&top, Op::Write).filter(|request| request.fua).map(|one| one.count).sum::<u64>();
            assert_eq!(durable * 4 * KIB, judged.asked(), "{}", judged.lines());
            assert!(judged.lines().contains("with FUA"), "{}", judged.lines());
        },
    },
];

/// A cell and the tree that it gave.
struct Seen<'r> {
    cell: &'r CellRecord,
    lines: Vec<String>,
}

impl Seen<'_> {
    fn lines(&self) -> String {
        self.lines.join("\n")
    }

    /// Bytes that rdsk asked for; the warm-up is among them.
    fn asked(&self) -> u64 {
        self.cell.result.bytes.unwrap_or(0)
    }

    fn top(&self) -> String {
        self.lines[0].split(' ').next().expect("a name").to_owned()
    }

    fn below(&self, device: &str) -> Vec<String> {
        let devices = &self.cell.evidence.bpf.as_ref().expect("BPF counted").devices;
        devices.iter().find(|counted| counted.device == device).expect("it is counted").below.clone()
    }

    fn takes_bios(&self, device: &str) -> bool {
        let devices = &self.cell.evidence.bpf.as_ref().expect("BPF counted").devices;
        devices.iter().any(|counted| counted.device == device && counted.takes_bios)
    }

    fn requests<'s>(&'s self, device: &'s str, op: Op) -> impl Iterator<Item = &'s Request> {
        self.cell.evidence.requests.iter().filter(move |request| request.device == device && request.op == op)
    }

    fn moved(&self, device: &str, op: Op) -> u64 {
        self.requests(device, op).map(|device| device.bytes * device.count).sum()
    }

    fn moved_below(&self, device: &str, op: Op) -> u64 {
        self.below(device).iter().map(|below| self.moved(below, op)).sum()
    }

    /// Whether the programs missed nothing, and the kernel counted nothing before they began or after they ended: on a busy machine a
    /// superblock of md may be written between the two.
    fn is_whole(&self) -> bool {
        let bpf = self.cell.evidence.bpf.as_ref().expect("BPF counted");
        let is_alike = |check: &CrossCheck| {
            let device = self.cell.evidence.device.iter().find(|device| device.name == check.device);
            let counts = device.map(|device| [device.reads, device.writes, device.discards, device.flushes]);
            let counted: Option<u64> = counts.map(|counts| counts.into_iter().flatten().sum());
            check.bpf == check.sysfs && counted.is_none_or(|counted| counted == check.sysfs)
        };
        bpf.lost == 0 && bpf.checks.iter().all(is_alike)
    }

    /// Every device's requests are those of its own counters, by number and by byte.
    fn agree(&self) {
        for device in &self.cell.evidence.device {
            let counts =
                [(Op::Read, device.reads, device.read_bytes), (Op::Write, device.writes, device.write_bytes)];
            for (op, requests, bytes) in counts {
                let counted: u64 = self.requests(&device.name, op).map(|device| device.count).sum();
                // What only asks for a flush is a write without data there, and a flush here. Drivers that take bios count them,
                // and the parts of those that they split, in ways of their own.
                let empty = requests.unwrap_or(0).saturating_sub(counted);
                let is_flush = op == Op::Write && device.flushes.is_some_and(|flushes| empty <= flushes);
                assert!(empty == 0 || is_flush || self.takes_bios(&device.name), "{} {op}", device.name);
                assert_eq!(
                    Some(self.moved(&device.name, op)),
                    bytes,
                    "{} {op}\n{}",
                    device.name,
                    self.lines()
                );
            }
        }
    }
}

impl Row {
    fn scenario(&self) -> Scenario {
        let (op, bytes) = (self.op.as_str(), self.bytes);
        let allowed = if self.op == Op::Write { "--destroy tree-under-test" } else { "" };
        let script = format!(
            "{}\nby_id tree-under-test $at\ncall run rdsk stream $at --rw {op} --bs {bytes} --bytes {bytes} {allowed} \
             --evidence bpf --budget 15s --quiet --json -",
            self.set_up
        );
        Scenario::new(self.name, script).limit(Duration::from_secs(300))
    }

    /// The cell of a Record that this row is about.
    fn is_mine(&self, cell: &CellRecord) -> bool {
        let workload = &cell.workload;
        workload.path == rdsk_model::IoPath::Direct && (workload.op, workload.sync) == (self.op, self.sync)
    }

    fn try_in(&self, guest: &mut Booted) {
        first_right(TRIES, || {
            let outcome = guest.run(&self.scenario()).expect_done();
            let call = outcome.call("run");
            assert_eq!(call.code, 0, "{}: {}", self.name, call.said());
            let record: Record = serde_json::from_value(call.json()).expect("a Record");
            let cell = record.cells.iter().find(|cell| self.is_mine(cell)).expect("a direct cell");
            let judged = Seen { cell, lines: tree(&cell.evidence, 0) };
            ensure(judged.is_whole(), || {
                format!("{}: the programs missed something: {:#?}", self.name, cell.evidence.bpf)
            })?;
            judged.agree();
            (self.judge)(&judged);
            Ok(())
        });
    }
}

#[test]
fn what_an_io_became_is_told_as_a_tree() {
    if !Tier::Extended.is_wanted() || !requires(&[Need::Root, Need::Guest]) {
        return;
    }
    let mut guest = ["A", "B", "C"]
        .iter()
        .fold(guest(), |guest, name| guest.disk(Disk::virtio(name, 64 * MIB)))
        .disk(Disk::nvme("N", 64 * MIB))
        .modules(&["raid456", "dm_mod", "dm_crypt", "xts", "aes", "ecb"])
        .programs(&["mdadm", "dmsetup", "lvm", "pvcreate", "vgcreate", "lvcreate"])
        .life(Duration::from_secs(1200))
        .boot();
    for row in ROWS {
        row.try_in(&mut guest);
    }
}
