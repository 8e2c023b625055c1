//! What an outside campaign found, once it is mended (xtask/records/field-trials.md): devices that answer reads from nothing, writes that
//! would fill what lies below their target, devices that take no I/O now, files and directories that take no changes.

use std::time::Duration;

use rdsk_testkit::attempts::complaints_after;
use rdsk_testkit::guest::{Booted, Call, Disk, Scenario, ScenarioOutcome, Tier};
use rdsk_testkit::{Need, requires};

use crate::guest;

const MIB: u64 = 1 << 20;

/// Reads in the shortest way that counts.
const READ: &str =
    "rdsk run $at --only headline --rw read --budget 4s --evidence sysfs --quiet --json - --json-compact";

#[test]
fn what_the_field_taught() {
    if !Tier::Extended.is_wanted() || !requires(&[Need::Root, Need::Guest]) {
        return;
    }
    let mut guest = guest()
        .modules(&["ext4", "dm_mod", "dm_thin_pool", "dm_flakey", "zram", "loop", "raid1"])
        .programs(&["mkfs.ext4", "dmsetup", "blkid", "chattr", "mdadm", "tune2fs"])
        .disk(Disk::virtio("A", 192 * MIB))
        .disk(Disk::virtio("B", 32 * MIB))
        .disk(Disk::nvme("N", 32 * MIB))
        .boot();
    let mut complaints: Vec<String> = EMPTY.iter().flat_map(|row| of_nothing(&mut guest, row)).collect();
    complaints.extend(fills_up(&mut guest));
    complaints.extend(takes_nothing(&mut guest));
    complaints.extend(goes_elsewhere(&mut guest));
    // The kernel passes over a program now and then on a busy machine, and then one of two counts lacks an event.
    complaints.extend(complaints_after(2, || changes_meanwhile(&mut guest)));
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

/// A device on which nothing is stored: its name, what leaves its node in `at`, and what takes it away.
type Empty = (&'static str, &'static str, &'static str);

const EMPTY: [Empty; 4] = [
    ("a blank virtual disk", "at=$B", ""),
    ("a blank NVMe namespace", "at=$N", ""),
    (
        "a thin volume",
        "echo '0 8192 linear '$B' 2048' | dmsetup create p_tmeta
         echo '0 131072 linear '$A' 2048' | dmsetup create p_tdata
         dd if=/dev/zero of=/dev/mapper/p_tmeta bs=4k count=1 status=none
         echo '0 131072 thin-pool /dev/mapper/p_tmeta /dev/mapper/p_tdata 128 0' | dmsetup create pool
         dmsetup message /dev/mapper/pool 0 'create_thin 0'
         echo '0 65536 thin /dev/mapper/pool 0' | dmsetup create thin; at=/dev/mapper/thin",
        "for n in thin pool p_tdata p_tmeta; do dmsetup remove $n; done",
    ),
    ("zram", "echo 32M > /sys/block/zram0/disksize; at=/dev/zram0", "echo 1 > /sys/block/zram0/reset"),
];

/// Nothing is stored: no figure is the device's. Once data is, none is called into doubt.
fn of_nothing(guest: &mut Booted, (name, set_up, tear_down): &Empty) -> Vec<String> {
    let script = format!(
        "fresh $A $B $N\n{set_up}\ncall empty {READ}
         dd if=/dev/urandom of=$at bs=1M count=32 oflag=direct status=none || :\nsync
         call full {READ}\n{tear_down}"
    );
    let outcome = guest.run(&Scenario::new(name, script).limit(Duration::from_secs(600)));
    if let Some(failure) = outcome.failure() {
        return vec![failure];
    }
    let is_doubted = |code: &str| matches!(code, "hole" | "unverified");
    // On a guest this slow a cell may end before an I/O does, or be bound by the processor; and one of a few I/Os ends at its deadline,
    // before there was time to look, and says so. No other verdict is right for zeros.
    let is_believed = |(code, text): &(String, String)| {
        let is_untold = code == "device" && text.contains("too few places were checked");
        !is_doubted(code) && !is_untold && !matches!(code.as_str(), "incomplete" | "cpu-bound")
    };
    let wrong = |call: &str, wanted: bool| -> Vec<String> {
        let judged = verdicts(&outcome.call(call));
        let has_doubt = judged.iter().any(|(code, _)| is_doubted(code));
        let as_wanted =
            !judged.is_empty() && has_doubt == wanted && !(wanted && judged.iter().any(is_believed));
        if as_wanted { Vec::new() } else { vec![format!("{name}, {call}: {judged:?}")] }
    };
    [wrong("empty", true), wrong("full", false)].concat()
}

/// Code and text of each verdict of a Record.
fn verdicts(call: &Call) -> Vec<(String, String)> {
    assert_eq!(call.code, 0, "{}", call.said());
    let record = call.json();
    let cells = record["cells"].as_array().cloned().unwrap_or_default();
    let word = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    let ran = cells.iter().filter(|cell| !cell["verdict"].is_null());
    ran.map(|cell| (word(&cell["verdict"]["code"]), word(&cell["verdict"]["text"]))).collect()
}

/// A sparse image of 2 GiB on a filesystem of 192 MiB, which a run on the image would fill, and zram larger than the memory.
fn fills_up(guest: &mut Booted) -> Vec<String> {
    let script = "fresh $A; ext4 $A; at=$(mounted $A); truncate -s 2G $at/image
call file rdsk run $at/image --only headline --rw write --budget 1s --quiet --overwrite --json - --json-compact
losetup /dev/loop0 $at/image
call device rdsk run /dev/loop0 --only headline --rw write --budget 1s --quiet --destroy $at/image --json - --json-compact
ext4 /dev/loop0; inner=$(mounted /dev/loop0)
call large rdsk run $inner --size 400M --only headline --budget 1s --quiet --json - --json-compact
call within rdsk run $inner --only headline --rw write --budget 2s --evidence sysfs --quiet --json - --json-compact
sync; fact free $(stat -f -c %a $at); fact total $(stat -f -c %b $at)
umount $inner; losetup -d /dev/loop0; umount $at
echo 8G > /sys/block/zram0/disksize; by_id zram-field /dev/zram0
call memory rdsk run /dev/zram0 --only headline --rw write --budget 1s --quiet --destroy zram-field --json - --json-compact
echo 1 > /sys/block/zram0/reset
";
    let outcome = guest.run(&Scenario::new("fills up", script).limit(Duration::from_secs(600)));
    if let Some(failure) = outcome.failure() {
        return vec![failure];
    }
    let mut wrong = refused(
        &outcome,
        &[("file", "fills-up"), ("device", "fills-up"), ("large", "no-space"), ("memory", "fills-up")],
    );
    let blocks = |name: &str| outcome.fact(name).parse::<u64>().unwrap_or(0);
    if outcome.call("within").code != 0 || blocks("free") * 10 < blocks("total") {
        wrong.push(format!(
            "{} of {} blocks free: {}",
            blocks("free"),
            blocks("total"),
            outcome.call("within").said()
        ));
    }
    wrong
}

/// What takes no I/O, or no changes, now.
fn takes_nothing(guest: &mut Booted) -> Vec<String> {
    let script = "fresh $A $B; echo '0 65536 linear '$B' 0' | dmsetup create held; dmsetup suspend --nolockfs --noflush held
call info rdsk info /dev/mapper/held --json -
call suspended rdsk run /dev/mapper/held --only headline --rw read --budget 1s --quiet --json - --json-compact
dmsetup resume held
call resumed rdsk run /dev/mapper/held --only headline --rw read --budget 1s --evidence sysfs --quiet --json - --json-compact
dmsetup remove held
ext4 $A; at=$(mounted $A); mkdir $at/log; chattr +a $at/log
call append rdsk run $at/log --only headline --budget 1s --quiet --json - --json-compact
fact left $(ls -A $at/log | wc -l)
dd if=/dev/urandom of=$at/fixed bs=1M count=4 status=none; chattr +i $at/fixed
call immutable rdsk run $at/fixed --only headline --rw write --budget 1s --quiet --overwrite --json - --json-compact
chattr -i $at/fixed; chattr -a $at/log
";
    let outcome = guest.run(&Scenario::new("takes nothing", script).limit(Duration::from_secs(600)));
    if let Some(failure) = outcome.failure() {
        return vec![failure];
    }
    let mut wrong = refused(
        &outcome,
        &[("suspended", "suspended"), ("append", "not-writable"), ("immutable", "not-writable")],
    );
    if outcome.call("resumed").code != 0 || outcome.fact("left") != "0" {
        wrong.push(format!("left {}; {}", outcome.fact("left"), outcome.call("resumed").said()));
    }
    wrong
}

/// Writes that are dropped on their way, direct writes that the filesystem journals, a limit below a loop device's file, and an array
/// that lacks a member.
fn goes_elsewhere(guest: &mut Booted) -> Vec<String> {
    let script = "fresh $A $B; echo '0 65536 flakey '$B' 0 0 600 1 drop_writes' | dmsetup create drop
call dropped rdsk paths /dev/mapper/drop --rw write --bytes 4M --budget 12s --precision 50% --quiet --destroy drop --json - --json-compact
dmsetup remove drop
ext4 $A; tune2fs -o journal_data $A > /dev/null; at=$(mounted $A)
call journalled-run rdsk run $at --only headline --rw write --size 8M --budget 3s --evidence sysfs --quiet --json - --json-compact
call journalled rdsk paths $at --rw write --bytes 4M --budget 3s --evidence sysfs --quiet --json - --json-compact
umount $at; ext4 $A; at=$(mounted $A); dd if=/dev/urandom of=$at/image bs=1M count=16 status=none; sync
losetup --direct-io=on /dev/loop0 $at/image
group=/sys/fs/cgroup/slow; echo +io > /sys/fs/cgroup/cgroup.subtree_control; mkdir -p $group
fact disk ${A#/dev/}; echo \"$(cat /sys/block/${A#/dev/}/dev) rbps=8388608\" > $group/io.max
call limited sh -c \"echo \\$\\$ > $group/cgroup.procs; exec rdsk paths /dev/loop0 --rw read --bytes 4M --budget 9s --quiet --json - --json-compact\"
losetup -d /dev/loop0; umount $at; rmdir $group
mdadm --quiet --create /dev/md0 --run --metadata=1.2 --level=1 --raid-devices=2 $B missing
dd if=/dev/urandom of=/dev/md0 bs=1M count=16 oflag=direct status=none
call lacking rdsk run /dev/md0 --only headline --rw read --budget 2s --evidence sysfs --quiet --json - --json-compact
mdadm --quiet --stop /dev/md0
";
    let outcome = guest.run(&Scenario::new("goes elsewhere", script).limit(Duration::from_secs(600)));
    if let Some(failure) = outcome.failure() {
        return vec![failure];
    }
    let mut wrong = Vec::new();
    let cell = |call: &str, id: &str| {
        let cells = outcome.call(call).json()["cells"].as_array().cloned().unwrap_or_default();
        cells.into_iter().find(|cell| cell["id"] == id).unwrap_or_default()
    };
    let dropped = cell("dropped", "paths/write/direct")["verdict"].clone();
    if dropped["code"] != "unverified" {
        wrong.push(format!("dropped is not unverified: {dropped}"));
    }
    // The list of mounts does not name what the superblock has by default; statx(2) says that such files have no direct I/O.
    let journalled = cell("journalled", "paths/write/direct")["result"]["why"].clone();
    if !journalled.as_str().is_some_and(|why| why.starts_with("direct I/O is not supported for this file")) {
        wrong.push(format!("journalled is direct: {journalled}"));
    }
    let headline = cell("journalled-run", "headline/write/sequential")["workload"]["path"].clone();
    if headline != "buffered" {
        wrong.push(format!("journalled data are measured as {headline}"));
    }
    let limits = outcome.call("limited").json()["cells"][0]["evidence"]["limits"].clone();
    let is_found = |limit: &serde_json::Value| {
        limit["device"] == outcome.fact("disk").as_str() && limit["bytes_per_s"] == 8 * MIB
    };
    if !limits.as_array().is_some_and(|list| list.iter().any(is_found)) {
        wrong.push(format!("the limit below the loop device is not seen: {limits}"));
    }
    let findings = outcome.call("lacking").json()["findings"].clone();
    let is_told = |finding: &serde_json::Value| finding["code"] == "array-unsettled";
    if !findings.as_array().is_some_and(|list| list.iter().any(is_told)) {
        wrong.push(format!("nothing is said of the member that is missing: {findings}"));
    }
    wrong
}

/// An array that io_uring gives reads which must not wait, and which it would have to split; and one that loses a member during a run: in its
/// first cell, however few reads a busy machine lets it do.
fn changes_meanwhile(guest: &mut Booted) -> Vec<String> {
    let script = "fresh $A $B; raid md0 1 $A $B -- --bitmap=none
echo 64 > /sys/block/md0/queue/max_sectors_kb
call refused rdsk run /dev/md0 --only headline --rw read --engine uring --budget 9s --quiet --json - --json-compact
before=$(awk '{print $1}' /sys/block/md0/stat)
(wait_for 60 awk -v least=$((before + 40)) '$1 < least { exit 1 }' /sys/block/md0/stat; mdadm --quiet /dev/md0 --fail $B) &
call lost rdsk run /dev/md0 --only headline --rw read --budget 20s --evidence sysfs --quiet --json - --json-compact
wait; mdadm --quiet --stop /dev/md0
";
    let outcome = guest.run(&Scenario::new("changes meanwhile", script).limit(Duration::from_secs(600)));
    if let Some(failure) = outcome.failure() {
        return vec![failure];
    }
    let mut wrong = Vec::new();
    let evidence = outcome.call("refused").json()["cells"][0]["evidence"].clone();
    let of_array = |list: &serde_json::Value| -> Vec<serde_json::Value> {
        list.as_array().into_iter().flatten().filter(|request| request["device"] == "md0").cloned().collect()
    };
    let count = |requests: &[serde_json::Value], is_refused: bool| -> u64 {
        let requests = requests.iter().filter(|request| (request["nowait"] == true) == is_refused);
        requests.filter_map(|one| one["count"].as_u64()).sum()
    };
    let (bios, given) = (of_array(&evidence["bios"]), count(&of_array(&evidence["requests"]), false));
    let (refused, submitted) = (count(&bios, true), count(&bios, false));
    let checks = of_array(&evidence["bpf"]["checks"]);
    let by = |source: &str| checks.iter().filter_map(|check| check[source].as_u64()).sum::<u64>();
    // Those that were refused are neither among what the array was given nor among what it completed.
    let is_alike = by("bpf").abs_diff(by("sysfs")) * 50 <= by("sysfs") && by("sysfs") > 0;
    if refused == 0 || submitted == 0 || given != submitted || !is_alike {
        let result = outcome.call("refused").json()["cells"][0]["result"].clone();
        let (bpf, ended) =
            (&evidence["bpf"], [&result["ops"], &result["engine"], &result["why"], &result["errors"]]);
        wrong.push(format!(
            "{refused} bios refused, {submitted} submitted, {given} requests; {bpf}; {ended:?}"
        ));
    }
    let findings = outcome.call("lost").json()["findings"].clone();
    let is_told = |finding: &serde_json::Value| {
        let text = finding["effect"]["text"].as_str().unwrap_or_default();
        finding["code"] == "array-unsettled"
            && text.contains("md0 is missing 1 of its members at the end of the run")
    };
    if !findings.as_array().is_some_and(|list| list.iter().any(is_told)) {
        wrong.push(format!("nothing is said of the member that was lost: {findings}"));
    }
    wrong
}

/// What is wrong with calls that have to be refused with these codes.
fn refused(outcome: &ScenarioOutcome, wanted: &[(&str, &str)]) -> Vec<String> {
    let wrong = |(call, code): &(&str, &str)| {
        let answer = outcome.call(call);
        let is_it = answer.code == 3 && answer.json()["error"]["code"] == *code;
        (!is_it).then(|| format!("{call} is not refused as {code}: {}", answer.said()))
    };
    wanted.iter().filter_map(wrong).collect()
}
