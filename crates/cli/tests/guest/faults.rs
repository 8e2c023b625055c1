//! Devices that fail under a run: bad sectors, a disk that is taken away, sizes and speeds that are unexpected. What rdsk
//! answers has the right exit code and names the place.

use std::time::Duration;

use rdsk_analysis::Analysis;
use rdsk_analysis::zones::Zone;
use rdsk_model::Record;
use rdsk_testkit::guest::campaign::note;
use rdsk_testkit::guest::{Booted, Disk, Scenario, ScenarioOutcome, Tier};
use rdsk_testkit::{Need, requires};
use serde_json::Value;

use crate::guest;

const MIB: u64 = 1 << 20;

/// A fault: what is set up and called as `rdsk`, and what must come of it.
struct Fault {
    name: &'static str,
    script: &'static str,
    check: fn(&ScenarioOutcome) -> Vec<String>,
    tier: Tier,
}

const FAULTS: &[Fault] = &[
    Fault {
        name: "bad sector below a partition and dm-linear",
        // scsi_debug fails reads of the sectors 4660 to 4669 with opts=2.
        script: "module scsi_debug opts=2 dev_size_mb=48; wait_for 10 sh -c 'ls -d /sys/bus/pseudo/drivers/scsi_debug/adapter0/host*/target*/*/block/*'
            sd=/dev/$(ls /sys/bus/pseudo/drivers/scsi_debug/adapter0/host*/target*/*/block)
            echo 'start=2048' | partitions $sd
            echo '0 16384 linear '$sd'1 1024' | dmsetup create lin; fact disk ${sd#/dev/}
            call rdsk rdsk zones /dev/mapper/lin --bs 512k --points 40 --runs 3 --budget 200s --evidence sysfs --quiet --json -
            dmsetup remove lin",
        check: bad_sector,
        tier: Tier::Core,
    },
    Fault {
        name: "a size just under 8 EiB",
        script: "echo '0 18014398509481976 zero' | dmsetup create big
            call rdsk rdsk run /dev/mapper/big --budget 10s --quiet --json -
            call zones rdsk zones /dev/mapper/big --points 40 --runs 3 --bs 1M --budget 10s --quiet --json -",
        check: nothing_is_wrong,
        tier: Tier::Extended,
    },
    Fault {
        name: "zones of 20 and 80 ms",
        script: "printf '0 32768 delay %s 0 20\\n32768 32768 delay %s 32768 80\\n65536 32768 delay %s 65536 20\\n' $A $A $A | dmsetup create slow
            call rdsk rdsk zones /dev/mapper/slow --bs 256k --points 48 --runs 3 --budget 40s --quiet --json -",
        check: three_zones,
        tier: Tier::Extended,
    },
    Fault {
        name: "half of a device answers nothing",
        script: "printf '0 32768 linear %s 0\\n32768 32768 error\\n' $A | dmsetup create half
            call rdsk rdsk zones /dev/mapper/half --bs 256k --points 40 --runs 3 --budget 20s --quiet --json -",
        check: io_failed,
        tier: Tier::Extended,
    },
    Fault {
        name: "a device that fails for a second in four",
        script: "echo \"0 131072 flakey $A 0 3 1\" | dmsetup create flaky
            call rdsk rdsk paths /dev/mapper/flaky --rw read --budget 30s --quiet --json -",
        check: io_failed,
        tier: Tier::Extended,
    },
    Fault {
        name: "a limit of a control group",
        script: "group=/sys/fs/cgroup/slow/below; echo +io > /sys/fs/cgroup/cgroup.subtree_control; mkdir -p $group
            echo \"$(cat /sys/block/${A#/dev/}/dev) rbps=1048576\" > /sys/fs/cgroup/slow/io.max
            call rdsk sh -c \"echo \\$\\$ > $group/cgroup.procs
                exec rdsk paths $A --rw read --bytes 1M --budget 9s --quiet --json -\"
            rmdir $group /sys/fs/cgroup/slow",
        check: throttled,
        tier: Tier::Core,
    },
    Fault {
        name: "the file below a loop device is shortened",
        script: "ext4 $A; at=$(mounted $A); dd if=/dev/urandom of=$at/img bs=1M count=32 status=none; sync
            losetup --direct-io=on /dev/loop0 $at/img
            # Once 4 MiB were read, which only a measurement does.
            (wait_for 60 awk '$3 < 8192 { exit 1 }' /sys/block/loop0/stat; truncate -s 8M $at/img) &
            call rdsk rdsk run /dev/loop0 --only headline --budget 30s --quiet --json -
            losetup -d /dev/loop0; umount $at",
        check: shortened,
        tier: Tier::Extended,
    },
    Fault {
        name: "a cost model of a control group",
        script: "group=/sys/fs/cgroup/costly; echo +io > /sys/fs/cgroup/cgroup.subtree_control; mkdir -p $group
            dev=$(cat /sys/block/${A#/dev/}/dev); fresh $A; dd if=/dev/urandom of=$A bs=1M count=16 oflag=direct status=none
            echo \"$dev enable=1 ctrl=user rpct=0 rlat=0 wpct=0 wlat=0 min=100 max=100\" > /sys/fs/cgroup/io.cost.qos
            echo \"$dev ctrl=user model=linear rbps=4194304 rseqiops=50 rrandiops=50 wbps=4194304 wseqiops=50 wrandiops=50\" \
                > /sys/fs/cgroup/io.cost.model
            call rdsk sh -c \"echo \\$\\$ > $group/cgroup.procs
                exec rdsk run $A --only headline --rw read --budget 40s --quiet --json -\"
            echo \"$dev enable=0\" > /sys/fs/cgroup/io.cost.qos; rmdir $group",
        check: held_by_a_model,
        tier: Tier::Extended,
    },
    // The last one: the scenarios after it would lack the disk.
    Fault {
        name: "a disk is taken away",
        script: "fact disk ${T#/dev/}; name=${T#/dev/}
            # Once 8 MiB were read, which only a measurement does.
            (wait_for 60 awk '$3 < 16384 { exit 1 }' /sys/block/$name/stat; echo 1 > /sys/block/$name/device/delete) &
            call rdsk rdsk run $T --budget 30s --quiet --json -",
        check: taken_away,
        tier: Tier::Core,
    },
];

#[test]
fn faults_are_named() {
    if !Tier::Extended.is_wanted() || !requires(&[Need::Root, Need::Guest]) {
        return;
    }
    let mut guest = guest()
        .modules(&["dm_mod", "dm_delay", "dm_flakey", "dm_zero", "ext4", "loop", "sd_mod"])
        .carried(&["scsi_debug"])
        .programs(&["dmsetup", "mkfs.ext4", "sfdisk", "lsblk", "wipefs"])
        .disk(Disk::virtio("A", 64 * MIB))
        .disk(Disk::scsi("T", 64 * MIB))
        .boot();
    try_all(&mut guest, FAULTS);
}

/// Tries the faults of the core set, the last of which takes `$T` away.
pub(crate) fn try_core(guest: &mut Booted) {
    try_all(guest, FAULTS.iter().filter(|fault| fault.tier == Tier::Core));
}

fn try_all<'f>(guest: &mut Booted, faults: impl IntoIterator<Item = &'f Fault>) {
    let mut complaints = Vec::new();
    let only = std::env::var("RDSK_ROW").unwrap_or_default();
    for fault in faults.into_iter().filter(|fault| fault.name.contains(&only)) {
        complaints.extend(tried(guest, fault).into_iter().map(|what| format!("{}: {what}", fault.name)));
    }
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

fn tried(guest: &mut Booted, fault: &Fault) -> Vec<String> {
    let scenario =
        Scenario::new(fault.name, format!("cd /\n{}", fault.script)).limit(Duration::from_secs(600));
    let outcome = guest.run(&scenario);
    let failures = outcome.failure().map_or_else(|| (fault.check)(&outcome), |failure| vec![failure]);
    note("faults", fault.name, if failures.is_empty() { "named" } else { "not named" }, outcome.took());
    failures
}

/// What a call said and wrote must hold each of these words, and it must have ended with this code.
fn told(outcome: &ScenarioOutcome, code: i32, words: &[&str]) -> Vec<String> {
    let call = outcome.call("rdsk");
    let mut failures = Vec::new();
    if call.code != code {
        failures.push(format!("exit {} and not {code}: {}", call.code, call.said()));
    }
    let told = format!("{}{}", call.stdout, call.said());
    failures.extend(
        words
            .iter()
            .filter(|word| !told.contains(**word))
            .map(|word| format!("{word:?} is not said: {}", call.said())),
    );
    failures
}

fn cells(record: &Value) -> &[Value] {
    record["cells"].as_array().map_or(&[], Vec::as_slice)
}

fn bad_sector(outcome: &ScenarioOutcome) -> Vec<String> {
    let disk = outcome.fact("disk");
    let mut failures = told(outcome, 4, &[&format!("of {disk}")]);
    let record = outcome.call("rdsk").json();
    let [cell] = cells(&record) else { return vec![format!("not one cell: {record}")] };
    let errors = cell["result"]["errors"].as_array().cloned().unwrap_or_default();
    if errors.is_empty() || cell["result"]["stop"] == "error" {
        failures.push(format!("the pass ended there: {}", cell["result"]["why"]));
    }
    for error in &errors {
        let offset = error["offset_bytes"].as_u64().unwrap_or(0);
        // The partition begins at sector 2048, the volume 1024 sectors into it.
        let on_disk = offset + (2048 + 1024) * 512;
        let reaches = (on_disk..on_disk + (512 << 10)).contains(&(4660 * 512))
            || (4660 * 512..4670 * 512).contains(&on_disk);
        if !reaches
            || error["message"]
                .as_str()
                .is_none_or(|text| !text.contains(&format!("byte {on_disk} of {disk}")))
        {
            failures.push(format!("{error} does not name the bad sector"));
        }
    }
    // Each pass visited all other places.
    let places = cell["workload"]["points"]["offset_bytes"].as_array().map_or(0, Vec::len);
    for pass in cell["result"]["points"].as_array().into_iter().flatten() {
        let count = |key: &str| pass[key].as_array().map_or(0, Vec::len);
        if count("failed") == 0 || count("order") + count("failed") != places {
            failures.push(format!("{} of {places} places, {} failed", count("order"), count("failed")));
        }
    }
    failures
}

fn taken_away(outcome: &ScenarioOutcome) -> Vec<String> {
    told(outcome, 4, &[&format!("{} is gone", outcome.fact("disk"))])
}

/// Data was read and then an error; there was no hole.
fn shortened(outcome: &ScenarioOutcome) -> Vec<String> {
    let mut failures = told(outcome, 4, &["the backing file of loop0 has become shorter"]);
    let record = outcome.call("rdsk").json();
    let verdicts = cells(&record).iter().map(|cell| &cell["verdict"]["code"]);
    failures.extend(
        verdicts.filter(|code| **code == "hole").map(|_| "what was read is called a hole".to_owned()),
    );
    failures
}

/// Most of each read's time passed above the device, and the model that held it is named with its figures.
fn held_by_a_model(outcome: &ScenarioOutcome) -> Vec<String> {
    let mut failures = told(outcome, 0, &[]);
    let record = outcome.call("rdsk").json();
    let findings = record["findings"].as_array().into_iter().flatten();
    let above = findings.filter(|finding| finding["code"] == "waits-above-device");
    let cited = above.map(|finding| finding["evidence"].to_string()).collect::<String>();
    if !cited.contains("/sys/fs/cgroup/io.cost.model") || !cited.contains("rrandiops=50 ") {
        failures.push(format!("the model is not named: {cited}"));
    }
    failures
}

fn nothing_is_wrong(outcome: &ScenarioOutcome) -> Vec<String> {
    let zones = outcome.call("zones");
    let mut failures = told(outcome, 0, &[]);
    if zones.code != 0 {
        failures.push(format!("zones: exit {}: {}", zones.code, zones.said()));
    }
    failures
}

fn three_zones(outcome: &ScenarioOutcome) -> Vec<String> {
    let mut failures = told(outcome, 0, &[]);
    let record = outcome.call("rdsk").json();
    for finding in record["findings"].as_array().into_iter().flatten() {
        if finding["code"] == "latency-bands" {
            failures.push(format!("a zone is called a band: {finding}"));
        }
    }
    let record: Record = serde_json::from_value(record).expect("a Record of this program");
    let analysis = Analysis::of(&record);
    let read: Vec<Vec<Zone>> = record
        .cells
        .iter()
        .filter_map(|cell| analysis.zones(cell))
        .map(|zones| zones.zones.clone())
        .collect();
    if read.is_empty() || !read.iter().all(|zones| are_the_programmed(zones)) {
        failures.push(format!("other zones than the three were found: {read:?}"));
    }
    failures
}

/// Three zones that meet at 16 and 32 MiB with no position between them; a block that lies over a boundary is in either.
fn are_the_programmed(zones: &[Zone]) -> bool {
    const BLOCK: u64 = 256 << 10;
    let meet_at = |(pair, boundary): (&[Zone], u64)| {
        let [one, next] = pair else { return false };
        one.first + one.positions == next.first
            && one.end_bytes <= boundary + BLOCK
            && next.begin_bytes + BLOCK >= boundary
    };
    zones.len() == 3 && zones.windows(2).zip([16 * MIB, 32 * MIB]).all(meet_at)
}

/// The limit stands in a group above, and its file is named.
fn throttled(outcome: &ScenarioOutcome) -> Vec<String> {
    let mut failures = told(outcome, 0, &["/sys/fs/cgroup/slow/io.max"]);
    let record = outcome.call("rdsk").json();
    let direct = cells(&record).iter().find(|cell| cell["id"] == "paths/read/direct");
    let verdict = direct.map(|cell| cell["verdict"]["code"].clone());
    if verdict != Some("throttled".into()) {
        failures.push(format!("the direct reads are {verdict:?}"));
    }
    failures
}

fn io_failed(outcome: &ScenarioOutcome) -> Vec<String> {
    told(outcome, 4, &["Input/output error"])
}
