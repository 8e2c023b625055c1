//! Truth: the chunk, the full stripe, its start and the level of real arrays, beside what their disks moved for each kind of request, by
//! reads alone and with writes; and devices that have none. Each row creates an array and runs `rdsk stripe` twice. `cargo xtask campaign
//! guest` tries them and keeps the results of all rows in xtask/records/campaigns/guest.md.

#![allow(clippy::print_stderr, reason = "with --nocapture each row says what it was told to be")]

use std::time::{Duration, Instant};

use rdsk_analysis::Analysis;
use rdsk_analysis::stripe::{DiskBytes, Level, RequestKind, SURE, StripeResult};
use rdsk_model::{Op, Record};
use rdsk_testkit::guest::campaign::note;
use rdsk_testkit::guest::{Booted, Call, Disk, Scenario, ScenarioOutcome, Tier};
use rdsk_testkit::{Need, requires};

use crate::guest;

const KIB: u64 = 1024;
const MIB: u64 = 1 << 20;
/// What must be reported of an array.
#[derive(Clone, Copy)]
enum Truth {
    /// Level, chunk and full stripe in KiB, and where the first one begins.
    Stripe(&'static str, u64, u64, u64),
    /// No stripe, at this level.
    None(&'static str),
    /// Nothing describes it, and latencies see no stripe, sure or not: the blocks of a pool show in a slow guest.
    NoneSeen,
    /// Busy or degraded: the level, chunk and full stripe in KiB, and these words.
    Doubted(&'static str, u64, u64, &'static str),
}

/// One array.
struct Row {
    name: &'static str,
    /// Makes `/dev/md0`, or says with `on=` which device to ask.
    make: &'static str,
    truth: Truth,
}

const fn array(name: &'static str, make: &'static str, truth: Truth) -> Row {
    Row { name, make, truth }
}

use Truth::Stripe;

const MD: &[Row] = &[
    array("RAID 0, 3 × 32 KiB", "raid md0 0 $A $B $C -- --chunk=32", Stripe("RAID 0", 32, 96, 0)),
    array(
        "RAID 5 left-symmetric with a bitmap, 4 × 64 KiB",
        "raid md0 5 $A $B $C $D -- --chunk=64 --bitmap=internal",
        Stripe("RAID 5", 64, 192, 0),
    ),
    array("RAID 6, 5 × 64 KiB", "raid md0 6 $A $B $C $D $E -- --chunk=64", Stripe("RAID 6", 64, 192, 0)),
    array("RAID 10 near, 4 × 64 KiB", "raid md0 10 $A $B $C $D -- --chunk=64", Stripe("RAID 10", 64, 128, 0)),
    array("RAID 1", "raid md0 1 $A $B -- --bitmap=internal", Truth::None("RAID 1")),
    array("RAID 0, 2 × 4 KiB", "raid md0 0 $A $B -- --chunk=4", Stripe("RAID 0", 4, 8, 0)),
    array("RAID 0, 3 × 12 KiB", "raid md0 0 $A $B $C -- --chunk=12", Stripe("RAID 0", 12, 36, 0)),
    array("RAID 0, 4 × 512 KiB", "raid md0 0 $A $B $C $D -- --chunk=512", Stripe("RAID 0", 512, 2048, 0)),
    array("RAID 4, 4 × 64 KiB", "raid md0 4 $A $B $C $D -- --chunk=64", Stripe("RAID 4", 64, 192, 0)),
    array(
        "RAID 5 left-symmetric, 3 × 64 KiB",
        "raid md0 5 $A $B $C -- --chunk=64",
        Stripe("RAID 5", 64, 128, 0),
    ),
    array(
        "RAID 5 left-asymmetric, 4 × 64 KiB",
        "raid md0 5 $A $B $C $D -- --chunk=64 --layout=la",
        Stripe("RAID 5", 64, 192, 0),
    ),
    array(
        "RAID 5 right-symmetric, 4 × 32 KiB",
        "raid md0 5 $A $B $C $D -- --chunk=32 --layout=rs",
        Stripe("RAID 5", 32, 96, 0),
    ),
    array(
        "RAID 5 right-asymmetric, 3 × 64 KiB",
        "raid md0 5 $A $B $C -- --chunk=64 --layout=ra",
        Stripe("RAID 5", 64, 128, 0),
    ),
    array("RAID 5, 5 × 512 KiB", "raid md0 5 $A $B $C $D $E -- --chunk=512", Stripe("RAID 5", 512, 2048, 0)),
    array(
        "RAID 6 with a bitmap, 5 × 16 KiB",
        "raid md0 6 $A $B $C $D $E -- --chunk=16 --bitmap=internal",
        Stripe("RAID 6", 16, 48, 0),
    ),
    array(
        "RAID 10 far, 4 × 64 KiB",
        "raid md0 10 $A $B $C $D -- --chunk=64 --layout=f2",
        Stripe("RAID 10", 64, 256, 0),
    ),
    array(
        "RAID 10 offset, 4 × 64 KiB",
        "raid md0 10 $A $B $C $D -- --chunk=64 --layout=o2",
        Stripe("RAID 10", 64, 256, 0),
    ),
    array("RAID 10 near, 3 × 64 KiB", "raid md0 10 $A $B $C -- --chunk=64", Stripe("RAID 10", 64, 192, 0)),
    array(
        "RAID 10 far, 2 × 64 KiB",
        "raid md0 10 $A $B -- --chunk=64 --layout=f2",
        Stripe("RAID 10", 64, 128, 0),
    ),
    array(
        "partition of a RAID 5 at 1 MiB",
        "raid md0 5 $A $B $C $D -- --chunk=64; echo 2048,60000 | partitions /dev/md0; on=/dev/md0p1",
        Stripe("RAID 5", 64, 192, 128),
    ),
    array(
        "RAID 5 over partitions",
        "for d in $A $B $C; do echo 4096,40000 | partitions $d; done
raid md0 5 ${A}1 ${B}1 ${C}1 -- --chunk=64",
        Stripe("RAID 5", 64, 128, 0),
    ),
    array("linear", "raid md0 linear $A $B $C", Truth::None("linear")),
    array("one disk", "on=$A", Truth::NoneSeen),
    array(
        "RAID 6 that is resynchronised",
        "echo 50 > /proc/sys/dev/raid/speed_limit_min; echo 100 > /proc/sys/dev/raid/speed_limit_max
mdadm --quiet --create /dev/md0 --run --level=6 --raid-devices=5 --chunk=64 $A $B $C $D $E",
        Truth::Doubted("RAID 6", 64, 192, "is busy with a resync"),
    ),
    array(
        "RAID 5 that lacks a member",
        "mdadm --quiet --create /dev/md0 --run --assume-clean --level=5 --raid-devices=4 --chunk=64 $A $B $C missing",
        Truth::Doubted("RAID 5", 64, 192, "is missing 1 of its members"),
    ),
];

/// Device mapper and LVM: `dm NAME` says which node a mapped device has.
const DM: &[Row] = &[
    array(
        "dm-striped, 3 × 64 KiB",
        r#"dmsetup create st --table "0 98304 striped 3 128 $A 2048 $B 2048 $C 2048"; on=$(dm st)"#,
        Stripe("RAID 0", 64, 192, 0),
    ),
    array(
        "LVM raid5, 4 × 64 KiB",
        "volume --nosync --type raid5 -i3 -I64k -L24M; on=$(dm vg-lv)",
        Stripe("RAID 5", 64, 192, 0),
    ),
    array(
        "dm-striped, 2 × 48 KiB",
        r#"dmsetup create st --table "0 98304 striped 2 96 $A 2048 $B 2048"; on=$(dm st)"#,
        Stripe("RAID 0", 48, 96, 0),
    ),
    array("LVM striped, 3 × 256 KiB", "volume -i3 -I256k -L48M; on=$(dm vg-lv)", Stripe("RAID 0", 256, 768, 0)),
    array(
        "LVM raid4, 4 × 64 KiB",
        "volume --nosync --type raid4 -i3 -I64k -L24M; on=$(dm vg-lv)",
        Stripe("RAID 4", 64, 192, 0),
    ),
    array(
        "LVM raid10, 4 × 64 KiB",
        "volume --nosync --type raid10 -i2 -m1 -I64k -L24M; on=$(dm vg-lv)",
        Stripe("RAID 10", 64, 128, 0),
    ),
    array("LVM raid1", "volume --nosync --type raid1 -m1 -L24M; on=$(dm vg-lv)", Truth::None("RAID 1")),
    array(
        "dm-linear over two disks",
        r#"printf '0 32768 linear %s 2048\n32768 32768 linear %s 2048\n' $A $B | dmsetup create row; on=$(dm row)"#,
        Truth::None("linear"),
    ),
    array(
        "a thin volume that is mapped",
        "pvcreate -q $A $B; vgcreate -q vg $A $B; lvcreate -q -y --type thin-pool -n pool -L 24M vg
lvcreate -q -y -V 12M -T vg/pool -n th; dd if=/dev/zero of=$(dm vg-th) bs=1M count=12 oflag=direct; on=$(dm vg-th)",
        Truth::NoneSeen,
    ),
    array(
        "dm-crypt on a disk",
        r#"key=0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef
dmsetup create cr --table "0 65536 crypt aes-xts-plain64 $key 0 $A 0"; on=$(dm cr)"#,
        Truth::NoneSeen,
    ),
    array(
        "dm-linear at 320 KiB of a RAID 5",
        r#"raid md0 5 $A $B $C $D -- --chunk=64; dmsetup create part --table "0 65536 linear /dev/md0 640"; on=$(dm part)"#,
        Stripe("RAID 5", 64, 192, 64),
    ),
];

const TOOLS: &str = r#"
dm() { echo /dev/dm-$(dmsetup info -c --noheadings -o minor "$1" | tr -d ' '); }
volume() {
    pvcreate -q $A $B $C $D $E
    vgcreate -q vg $A $B $C $D $E
    lvcreate -q -y -Wn -Zn -n lv "$@" vg
}
on=/dev/md0
# What the row before left on the disks.
for d in $A $B $C $D $E; do dd if=/dev/zero of=$d bs=1M count=2 2>/dev/null; blockdev --rereadpt $d || :; done
"#;

impl Row {
    fn scenario(&self) -> Scenario {
        let make = self.make;
        let script = format!(
            "{TOOLS}{make}
by_id stripe-under-test $on
call read rdsk stripe $on --rw read --quiet --budget 60s --json -
call write rdsk stripe $on --rw write --destroy stripe-under-test --quiet --budget 60s --json -"
        );
        Scenario::new(self.name, script).limit(Duration::from_secs(600))
    }

    /// What is wrong; `None` when all is right. The words are for the campaign's table.
    fn judge(&self, outcome: &ScenarioOutcome) -> (String, Option<String>) {
        if let Some(failure) = outcome.failure() {
            return (String::new(), Some(failure));
        }
        let mut said = Vec::new();
        for (name, op) in [("read", Op::Read), ("write", Op::Write)] {
            let call = outcome.call(name);
            match reading(&call, op) {
                Err(why) => return (said.join("; "), Some(why)),
                Ok(reading) => {
                    said.push(format!("{name}: {}", words(&reading)));
                    if let Some(wrong) = self.complaint(&reading, op) {
                        let report =
                            format!("{name}: {wrong}\n{:#?}\n{:#?}", reading.described, reading.costs);
                        return (said.join("; "), Some(report));
                    }
                }
            }
        }
        (said.join("; "), None)
    }

    fn complaint(&self, reading: &StripeResult, op: Op) -> Option<String> {
        let sure =
            |figure: Option<(u64, f64)>| figure.filter(|&(_, sure)| sure >= SURE).map(|(bytes, _)| bytes);
        let inferred = (sure(reading.chunk()), sure(reading.stripe()));
        let level = level(reading);
        match self.truth {
            Stripe(name, chunk, stripe, start) => {
                let begin = reading.start_offset_bytes;
                let is_right = inferred == (Some(chunk * KIB), Some(stripe * KIB)) && level == Some(name);
                if !is_right || begin != Some(start * KIB) {
                    return Some(format!("{inferred:?} {level:?} begins {begin:?}"));
                }
                // A bitmap and superblocks add to what every request costs.
                costs_complaint(reading, op)
            }
            Truth::None(name) => {
                let is_none = inferred == (None, None) && reading.none_confidence >= SURE;
                (!(is_none && level == Some(name))).then(|| format!("{inferred:?} {level:?}"))
            }
            Truth::NoneSeen => {
                let is_none = (reading.chunk(), reading.stripe()) == (None, None) && level.is_none();
                (!is_none).then(|| format!("{inferred:?} {level:?}"))
            }
            Truth::Doubted(name, chunk, stripe, why) => {
                let doubts = reading.described.iter().flat_map(|described| &described.doubts);
                let is_told = doubts.into_iter().any(|doubt| doubt.contains(why));
                let is_right = inferred == (Some(chunk * KIB), Some(stripe * KIB)) && level == Some(name);
                (!(is_told && is_right)).then(|| format!("{inferred:?} {level:?}, told: {is_told}"))
            }
        }
    }
}

/// Whole stripes write their parity or copies and read nothing; single chunks of an array with parity make its disks read.
fn costs_complaint(reading: &StripeResult, op: Op) -> Option<String> {
    let Some(whole) = reading.costs.iter().find(|cost| cost.request.kind == RequestKind::FullStripe) else {
        return Some("no full stripe was requested".into());
    };
    let Some(DiskBytes { read_bytes, write_bytes }) = whole.disks else {
        return Some("the disks below were not counted".into());
    };
    let bytes = whole.request.bytes as f64;
    let wrong = match op {
        Op::Read => read_bytes < bytes || write_bytes > 0.5 * bytes,
        Op::Write => write_bytes < bytes || (reading.parity == Some(true) && write_bytes < 1.2 * bytes),
    };
    let chunk = reading.costs.iter().find(|cost| cost.request.kind == RequestKind::Chunk);
    let chunk_reads = chunk.and_then(|cost| cost.disks).map_or(0.0, |disks| disks.read_bytes);
    let spares_none = op == Op::Write && reading.parity == Some(true) && chunk_reads < 4096.0;
    (wrong || spares_none).then(|| {
        format!("for full stripes the disks read {read_bytes} and wrote {write_bytes}, for chunks they read {chunk_reads}")
    })
}

/// The reading of a call's Record.
fn reading(call: &Call, op: Op) -> Result<StripeResult, String> {
    if call.code != 0 {
        return Err(call.said());
    }
    let record: Record = serde_json::from_value(call.json()).map_err(|error| error.to_string())?;
    let cell = record.cells.iter().find(|cell| cell.workload.op == op).ok_or("no cell of this direction")?;
    Analysis::of(&record).stripe(cell).cloned().ok_or_else(|| "no request was made".to_owned())
}

fn level(reading: &StripeResult) -> Option<&'static str> {
    let described = reading.described.as_ref()?;
    described.levels.first().map(|layout| layout.level).map(Level::name)
}

fn words(reading: &StripeResult) -> String {
    let size = |figure: Option<(u64, f64)>| {
        figure.map_or_else(
            || "none".to_owned(),
            |(bytes, sure)| format!("{} KiB{}", bytes / KIB, if sure >= SURE { "" } else { " (not sure)" }),
        )
    };
    let disks = |cost: &rdsk_analysis::stripe::RequestCost| {
        let disks = cost.disks.map_or_else(String::new, |disks| {
            format!(" {:.0}+{:.0} KiB", disks.read_bytes / 1024.0, disks.write_bytes / 1024.0)
        });
        format!("{}{disks}", cost.request.kind.word())
    };
    let costs: Vec<String> = reading.costs.iter().map(disks).collect();
    format!(
        "{}, chunk {}, stripe {}; {}",
        level(reading).unwrap_or("no level"),
        size(reading.chunk()),
        size(reading.stripe()),
        costs.join(", ")
    )
}

fn try_all(guest: &mut Booted, rows: &[Row]) {
    let mut wrong = Vec::new();
    for row in rows {
        let start = Instant::now();
        let outcome = guest.run(&row.scenario());
        let (said, complaint) = row.judge(&outcome);
        eprintln!("stripe: {}: {:.1} s: {said}", row.name, start.elapsed().as_secs_f64());
        note("stripe", row.name, if complaint.is_none() { &said } else { "WRONG" }, start.elapsed());
        wrong.extend(complaint.map(|complaint| format!("── {}\n{complaint}", row.name)));
        if !outcome.unclean().is_empty() {
            wrong.push(format!("── {}\nnot taken down: {}", row.name, outcome.unclean()));
        }
    }
    assert!(wrong.is_empty(), "{} complaints\n{}", wrong.len(), wrong.join("\n"));
}

/// A guest with five small disks.
fn booted(modules: &[&str], programs: &[&str]) -> Booted {
    let guest = ["A", "B", "C", "D", "E"]
        .iter()
        .fold(guest(), |guest, name| guest.disk(Disk::virtio(name, 32 * MIB)));
    guest.modules(modules).programs(programs).life(Duration::from_secs(2400)).boot()
}

#[test]
fn md_arrays_are_told_exactly() {
    if !Tier::Extended.is_wanted() || !requires(&[Need::Root, Need::Guest]) {
        return;
    }
    let mut guest = booted(&["raid0", "raid1", "raid10", "raid456", "linear"], &["mdadm", "sfdisk"]);
    try_all(&mut guest, MD);
}

#[test]
fn device_mapper_and_lvm_are_told_exactly() {
    if !Tier::Extended.is_wanted() || !requires(&[Need::Root, Need::Guest]) {
        return;
    }
    let modules = [
        "dm_mod", "dm_raid", "raid456", "raid1", "raid10", "raid0", "dm_thin_pool", "dm_crypt", "xts", "aes",
        "ecb",
    ];
    let mut guest =
        booted(&modules, &["mdadm", "dmsetup", "lvm", "pvcreate", "vgcreate", "lvcreate", "thin_check"]);
    try_all(&mut guest, DM);
}
