//! What rdsk counts on stacks of real devices: no cell is `unverified` where counters exist, and the bytes of the members
//! are the requested ones, by the rule of the level.

use std::collections::BTreeMap;
use std::time::Duration;

use rdsk_testkit::attempts::complaints_after;
use rdsk_testkit::guest::campaign::note;
use rdsk_testkit::guest::{Booted, Disk, Scenario, Tier};
use rdsk_testkit::{Need, requires};
use serde_json::Value;

use crate::guest;

const MIB: u64 = 1 << 20;
/// What superblocks, bitmaps and journals of the levels below may add to a cell: a few blocks on each member.
const OWN_WRITES: u64 = 128 << 10;

/// How the members share the bytes of the device above them.
#[derive(Clone, Copy)]
enum Rule {
    /// Each byte lies on one of them.
    Once,
    /// Each byte lies on so many of them, and is read from one.
    Copies(u64),
    /// So many members, one of which holds the parity of each stripe.
    Parity(u64),
}

/// A stack, how it is made, and the rule that holds in it.
struct Stack {
    name: &'static str,
    /// Leaves in `at` what rdsk is to measure, in `top` the nodes whose counters stand for it, in `members` those below.
    set_up: &'static str,
    rule: Rule,
    /// Words for rdsk; `$at` is what was set up.
    words: &'static str,
    tier: Tier,
}

/// Everything that fits: headline, paths, stream, align.
const RUN: &str = "run $at --size 4M --budget 12s";
/// The same without BPF programs, which take long to load: what is judged here the kernel's own counters say.
const RUN_SYSFS: &str = "run $at --size 4M --budget 12s --evidence sysfs";
const ROW: Stack = Stack { name: "", set_up: "", rule: Rule::Once, words: RUN, tier: Tier::Extended };

const STACKS: &[Stack] = &[
    Stack {
        name: "dm-linear",
        set_up: "echo '0 65536 linear '$A' 2048' | dmsetup create lin; ext4 /dev/mapper/lin -O ^has_journal
            at=$(mounted /dev/mapper/lin); top=/dev/mapper/lin; members=$A",
        words: RUN_SYSFS,
        ..ROW
    },
    Stack {
        name: "dm-crypt",
        set_up: "echo '0 65536 crypt aes-xts-plain64 00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff 0 '$A' 2048' | dmsetup create cry
            ext4 /dev/mapper/cry -O ^has_journal; at=$(mounted /dev/mapper/cry); top=/dev/mapper/cry; members=$A",
        ..ROW
    },
    Stack {
        name: "thin",
        set_up: "echo '0 8192 linear '$B' 2048' | dmsetup create p_tmeta
            echo '0 65536 linear '$A' 2048' | dmsetup create p_tdata
            dd if=/dev/zero of=/dev/mapper/p_tmeta bs=4k count=1 status=none
            echo '0 65536 thin-pool /dev/mapper/p_tmeta /dev/mapper/p_tdata 128 0' | dmsetup create pool
            dmsetup message /dev/mapper/pool 0 'create_thin 0'
            echo '0 49152 thin /dev/mapper/pool 0' | dmsetup create thin
            ext4 /dev/mapper/thin -O ^has_journal; at=$(mounted /dev/mapper/thin); top=/dev/mapper/thin; members=$A",
        ..ROW
    },
    Stack {
        name: "md RAID 1",
        set_up: "raid md0 1 $A $B -- --bitmap=none; ext4 /dev/md0 -O ^has_journal
            at=$(mounted /dev/md0); top=/dev/md0; members=\"$A $B\"",
        rule: Rule::Copies(2),
        ..ROW
    },
    Stack {
        // The blocks of `align` reach over the ends of chunks, of which md counts all parts since 6.6, and Debian's 6.1 since 6.1.55.
        name: "md RAID 0",
        set_up: "raid md0 0 $A $B -- --chunk=64; ext4 /dev/md0 -O ^has_journal
            at=$(mounted /dev/md0); top=/dev/md0; members=\"$A $B\"",
        words: RUN_SYSFS,
        ..ROW
    },
    Stack {
        name: "md RAID 5",
        set_up: "raid md0 5 $A $B $C -- --chunk=64 --bitmap=none; ext4 /dev/md0 -O ^has_journal
            at=$(mounted /dev/md0); top=/dev/md0; members=\"$A $B $C\"",
        rule: Rule::Parity(3),
        tier: Tier::Core,
        ..ROW
    },
    Stack {
        name: "btrfs raid1",
        set_up: "mkfs.btrfs -q -f -d raid1 -m raid1 $D $E; btrfs device scan; at=$(mounted $D btrfs)
            top=\"$D $E\"; members=\"$D $E\"",
        rule: Rule::Copies(2),
        words: RUN_SYSFS,
        ..ROW
    },
    Stack {
        name: "NVMe",
        set_up: "ext4 $N -O ^has_journal; at=$(mounted $N); top=$N; members=$N",
        ..ROW
    },
    Stack {
        name: "dm-striped",
        set_up: "echo '0 65536 striped 2 128 '$A' 2048 '$B' 2048' | dmsetup create str
            ext4 /dev/mapper/str -O ^has_journal; at=$(mounted /dev/mapper/str); top=/dev/mapper/str; members=\"$A $B\"",
        ..ROW
    },
    Stack {
        name: "LVM LV",
        set_up: "fresh $A; pvcreate -q -y $A; vgcreate -q vg $A; lvcreate -q -an -Zn -L 24M -n lv vg; vgchange -q -ay vg
            ext4 /dev/vg/lv -O ^has_journal; at=$(mounted /dev/vg/lv); top=/dev/vg/lv; members=$A",
        ..ROW
    },
    Stack {
        name: "multipath",
        set_up: "one=$P; two=$Q
            echo '0 65536 multipath 0 0 1 1 round-robin 0 2 1 '$one' 1 '$two' 1' | dmsetup create -u mpath-PATHS mp
            ext4 /dev/mapper/mp -O ^has_journal; at=$(mounted /dev/mapper/mp); top=/dev/mapper/mp; members=\"$one $two\"",
        ..ROW
    },
    Stack {
        name: "SCSI 4Kn",
        set_up: "ext4 $K -O ^has_journal; at=$(mounted $K); top=$K; members=$K",
        ..ROW
    },
    Stack {
        name: "SCSI 512e",
        set_up: "ext4 $H -O ^has_journal; at=$(mounted $H); top=$H; members=$H",
        ..ROW
    },
    Stack {
        name: "md RAID 1 without counters of its own",
        set_up: "raid md0 1 $A $B -- --bitmap=none; echo 0 > /sys/block/md0/queue/iostats; ext4 /dev/md0 -O ^has_journal
            at=$(mounted /dev/md0); top=\"$A $B\"; members=\"$A $B\"",
        rule: Rule::Copies(2),
        ..ROW
    },
    Stack {
        name: "zram",
        set_up: "echo 32M > /sys/block/zram0/disksize; head -c 33554432 /dev/urandom > /dev/zram0; at=/dev/zram0; top=$at; members=$at",
        words: "paths $at --bytes 8M --budget 10s",
        ..ROW
    },
    Stack {
        name: "bcache without a cache",
        set_up: "fresh $A; make-bcache -B $A; echo $A > /sys/fs/bcache/register
            wait_for 20 test -e /sys/block/bcache0; ext4 /dev/bcache0 -O ^has_journal
            at=$(mounted /dev/bcache0); top=/dev/bcache0; members=$A",
        ..ROW
    },
];

#[test]
fn members_move_what_was_asked() {
    if !Tier::Extended.is_wanted() || !requires(&[Need::Root, Need::Guest]) {
        return;
    }
    let mut guest = guest()
        .modules(&["ext4", "raid1", "raid456", "dm_mod", "dm_crypt", "dm_thin_pool", "btrfs", "nvme"])
        .modules(&["xts", "aesni_intel", "aes_generic", "dm_multipath", "dm_round_robin", "zram", "raid0"])
        .programs(&["mkfs.ext4", "mkfs.btrfs", "btrfs", "mdadm", "lvm", "dmsetup", "pvcreate", "vgcreate"])
        .programs(&["lvcreate", "vgchange", "wipefs", "lsblk"])
        .disk(Disk::virtio("A", 48 * MIB))
        .disk(Disk::virtio("B", 48 * MIB))
        .disk(Disk::virtio("C", 48 * MIB))
        .disk(Disk::virtio("D", 128 * MIB))
        .disk(Disk::virtio("E", 128 * MIB))
        .disk(Disk::nvme("N", 48 * MIB))
        .modules(&["bcache"])
        .programs(&["make-bcache"])
        .disk(Disk::scsi("P", 48 * MIB).serial("PATHS"))
        .disk(Disk::scsi("Q", 0).over("P"))
        .disk(Disk::scsi("K", 48 * MIB).properties("logical_block_size=4096,physical_block_size=4096"))
        .disk(Disk::scsi("H", 48 * MIB).properties("logical_block_size=512,physical_block_size=4096"))
        .boot();
    let mut complaints: Vec<String> =
        STACKS.iter().flat_map(|stack| complaints_of(&mut guest, stack)).collect();
    complaints.extend(wrong_with_dontcache(&mut guest));
    complaints.extend(complaints_after(4, || wrong_with_a_journal(&mut guest)));
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

/// Tries the stacks of the core set.
pub(crate) fn try_core(guest: &mut Booted) {
    let core = STACKS.iter().filter(|stack| stack.tier == Tier::Core);
    let complaints: Vec<String> = core.flat_map(|stack| complaints_of(guest, stack)).collect();
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

fn complaints_of(guest: &mut Booted, stack: &Stack) -> Vec<String> {
    // Members are read a moment after what is above them, and an I/O of read-ahead may end between.
    let complaints = complaints_after(4, || tried(guest, stack));
    complaints.into_iter().map(|what| format!("{}: {what}", stack.name)).collect()
}

/// What is wrong with the path `dontcache` on the guest's kernel, which is older than 6.14 where the distribution is: then it is
/// refused on an ext4 that has it on newer ones, with the reason, and the other paths are measured.
fn wrong_with_dontcache(guest: &mut Booted) -> Option<String> {
    let script = "ext4 $N; at=$(mounted $N); fact kernel \"$(uname -r)\"; cd /
        call rdsk rdsk paths $at --bytes 4M --budget 10s --evidence sysfs --quiet --json -";
    let outcome = guest.run(&Scenario::new("dontcache", script).limit(Duration::from_secs(600)));
    if let Some(failure) = outcome.failure() {
        return Some(failure);
    }
    let kernel = outcome.fact("kernel");
    let mut parts = kernel.split(['.', '-']).map_while(|part| part.parse::<u32>().ok());
    let version = (parts.next().unwrap_or(0), parts.next().unwrap_or(0));
    let record = outcome.call("rdsk").json();
    let cells = record["cells"].as_array().expect("a Record has cells");
    let is_wrong = |cell: &Value| {
        let (path, stop) = (&cell["workload"]["path"], &cell["result"]["stop"]);
        let has_figure = cell["result"]["ops"].as_u64().is_some_and(|ops| ops > 0);
        let why = cell["result"]["why"].as_str().unwrap_or_default();
        let is_refused =
            stop == "not_applicable" && why.contains("on ext4 (EOPNOTSUPP): RWF_DONTCACHE needs Linux 6.14");
        if path == "dontcache" && version < (6, 14) { !is_refused } else { !has_figure && !is_refused }
    };
    let wrong = cells.iter().find(|cell| is_wrong(cell));
    let is_asked = cells.iter().any(|cell| cell["workload"]["path"] == "dontcache");
    match (is_asked, wrong) {
        (false, _) => Some("dontcache: nobody asked for it".into()),
        (true, wrong) => {
            wrong.map(|cell| format!("dontcache on {version:?}: {} {}", cell["id"], cell["result"]["why"]))
        }
    }
}

/// What is wrong with the counts of a journal's commits on a mapped device with a volatile cache below it: device mapper counts a write
/// with data that asks for a flush before it twice, and the programs see it once.
fn wrong_with_a_journal(guest: &mut Booted) -> Vec<String> {
    let script = "echo '0 65536 linear '$A' 2048' | dmsetup create lin; ext4 /dev/mapper/lin; at=$(mounted /dev/mapper/lin)
        fact cache \"$(cat /sys/block/dm-*/queue/write_cache)\"; cd /
        call rdsk rdsk run $at --size 4M --budget 12s --evidence bpf --quiet --json -";
    let outcome = guest.run(&Scenario::new("a journal on dm-linear", script).limit(Duration::from_secs(600)));
    if let Some(failure) = outcome.failure() {
        return vec![failure];
    }
    let call = outcome.call("rdsk");
    if call.code != 0 || outcome.fact("cache") != "write back" {
        return vec![format!("exit {}, cache {}: {}", call.code, outcome.fact("cache"), call.said())];
    }
    let record = call.json();
    let cells = record["cells"].as_array().expect("a Record has cells");
    let counted = cells.iter().map(|cell| &cell["evidence"]["bpf"]);
    let checks: Vec<&Value> = counted
        .filter(|bpf| !bpf.is_null() && number(&bpf["lost"]) == 0)
        .filter_map(|bpf| bpf["checks"].as_array())
        .flatten()
        .filter(|check| check["device"].as_str().is_some_and(|name| name.starts_with("dm-")))
        .collect();
    let wrong = checks.iter().filter(|check| check["bpf"] != check["sysfs"]);
    let mut failures: Vec<String> = wrong.map(|check| format!("a journal on dm-linear: {check}")).collect();
    if checks.is_empty() {
        failures.push("a journal on dm-linear: no cell without a loss".into());
    }
    failures
}

/// Makes one stack, measures it, and gives everything that is wrong with the Record.
fn tried(guest: &mut Booted, stack: &Stack) -> Vec<String> {
    let script = format!(
        "kernel() {{ for node; do
            number=$(printf '%d:%d' 0x$(stat -L -c %t $node) 0x$(stat -L -c %T $node))
            basename \"$(readlink -f /sys/dev/block/$number)\"; done | xargs; }}
        {}
        fact top \"$(kernel $top)\"; fact members \"$(kernel $members)\"; cd /
        call rdsk rdsk {} --quiet --json -",
        stack.set_up, stack.words
    );
    let limit = Duration::from_secs(600);
    let outcome = guest.run(&Scenario::new(stack.name, script).limit(limit));
    if let Some(failure) = outcome.failure() {
        return vec![failure];
    }
    let call = outcome.call("rdsk");
    if call.code != 0 {
        return vec![format!("exit {}: {}", call.code, call.said())];
    }
    let names = |fact: &str| outcome.fact(fact).split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let (top, members) = (names("top"), names("members"));
    let record = call.json();
    let mut failures = Vec::new();
    let mut judged = 0;
    for cell in record["cells"].as_array().expect("a Record has cells") {
        // On a busy machine the guest may have no time left for the last cells: of nothing that was done nothing can be wrong.
        let is_undone = cell["result"]["stop"] == "budget" && number(&cell["result"]["ops"]) == 0;
        if cell["verdict"].is_null() || is_undone {
            continue;
        }
        judged += 1;
        let id = cell["id"].as_str().unwrap_or_default();
        failures.extend(wrong_in(cell, &top, &members, stack.rule).map(|what| format!("{id}: {what}")));
    }
    let result = format!("{judged} cells, {} do not add up", failures.len());
    note("stacks", stack.name, &result, outcome.took());
    if judged < 3 {
        failures.push(format!("only {judged} cells were judged"));
    }
    failures
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or(0)
}

/// The first thing that does not add up in a cell.
fn wrong_in(cell: &Value, top: &[String], members: &[String], rule: Rule) -> Option<String> {
    let verdict = &cell["verdict"];
    let code = verdict["code"].as_str().unwrap_or_default();
    if matches!(code, "unverified" | "incomplete") {
        return Some(format!("{code}: {}", verdict["text"]));
    }
    if let Some(wrong) = unnamed(&cell["evidence"]["bpf"]) {
        return Some(wrong);
    }
    let devices: BTreeMap<&str, &Value> = cell["evidence"]["device"]
        .as_array()?
        .iter()
        .filter_map(|device| Some((device["name"].as_str()?, device)))
        .collect();
    let sum = |names: &[String], key: &str| -> u64 {
        names.iter().filter_map(|name| devices.get(name.as_str())).map(|device| number(&device[key])).sum()
    };
    // Where nothing moved anywhere, it does not matter whose counters stood still.
    let is_quiet = sum(members, "read_bytes") + sum(members, "write_bytes") == 0;
    let counted = &cell["evidence"]["counted"][0]["devices"];
    if !is_quiet && counted.as_array().is_none_or(|names| names.iter().filter_map(Value::as_str).ne(top)) {
        return Some(format!("{counted} stand for the target, and not {top:?}"));
    }
    if let Some(missing) = members
        .iter()
        .find(|name| devices.get(name.as_str()).is_none_or(|device| device["read_bytes"].is_null()))
    {
        return Some(format!("nothing is known of {missing}"));
    }
    // Where the members themselves stand for the target, its own figures are what was completed.
    let own = top != members;
    asked(cell, sum(top, "read_bytes"), sum(top, "write_bytes"), if own { Rule::Once } else { rule })
        .or_else(|| own.then(|| shared(&devices, top, members, rule, &sum)).flatten())
}

/// A device that BPF programs must not count, because its bios end in the name of what it lies on.
fn unnamed(bpf: &Value) -> Option<String> {
    let mut names = bpf["devices"].as_array()?.iter().filter_map(|device| device["device"].as_str());
    let name = names.find(|name| name.starts_with("bcache"))?;
    Some(format!("the programs count {name}"))
}

/// Direct I/O of whole pages: what completed is what the devices at the top moved, by the rule that holds between the two.
fn asked(cell: &Value, read: u64, written: u64, rule: Rule) -> Option<String> {
    let workload = &cell["workload"];
    let block = number(&workload["block_bytes"]);
    let is_whole = [block, number(&workload["align_bytes"]), 4096 + number(&workload["shift_bytes"])]
        .iter()
        .all(|bytes| bytes.is_multiple_of(4096));
    if workload["path"] != "direct" || !is_whole {
        return None;
    }
    let completed = number(&cell["result"]["bytes"]);
    let visits = cell["result"]["visits"].as_array().map_or(1, Vec::len) as u64;
    // A request that was in flight when the time was over is the device's and not the cell's.
    let in_flight = block * number(&workload["queue_depth"]) * number(&workload["streams"]) * visits;
    let (moved, copies) = match (workload["op"].as_str(), rule) {
        (Some("read"), _) => (read, 1),
        (_, Rule::Copies(copies)) => (written, copies),
        _ => (written, 1),
    };
    // A durable write to btrfs brings its trees along: the least is sure, the most is not.
    let is_plain = workload["sync"] == "none" || workload["op"] == "read";
    let most = (completed + in_flight + 8 * OWN_WRITES) * copies;
    let fits = moved >= completed * copies && (!is_plain || moved <= most);
    (!fits).then(|| format!("{completed} bytes completed, {moved} moved, {copies} times each"))
}

/// The members against the device above them.
fn shared(
    devices: &BTreeMap<&str, &Value>,
    top: &[String],
    members: &[String],
    rule: Rule,
    sum: &dyn Fn(&[String], &str) -> u64,
) -> Option<String> {
    let (read, written) = (sum(top, "read_bytes"), sum(top, "write_bytes"));
    let (members_read, members_written) = (sum(members, "read_bytes"), sum(members, "write_bytes"));
    let own_writes = OWN_WRITES * members.len() as u64;
    let says =
        |what: &str, above: u64, below: u64| Some(format!("{what}: {above} above, {below} in the members"));
    let writes_fit = match rule {
        Rule::Once => (written..=written + own_writes).contains(&members_written),
        Rule::Copies(copies) => {
            let each_has_all = members.iter().all(|name| {
                let member_bytes = number(&devices[name.as_str()]["write_bytes"]);
                (written..=written + OWN_WRITES).contains(&member_bytes)
            });
            members.len() as u64 == copies && each_has_all
        }
        Rule::Parity(count) => {
            // Whole stripes cost one part more; a page alone costs itself and its parity, whatever part of it was written.
            let least = written / (count - 1) * count;
            let pages = sum(top, "writes") * 2 * 4096;
            members_written + 4096 >= least && members_written <= 2 * (written + pages) + own_writes
        }
    };
    if !writes_fit {
        return says("writes", written, members_written);
    }
    let reads_fit = match rule {
        // Small writes read what they need for the parity.
        Rule::Parity(_) if written > 0 => members_read >= read,
        _ => members_read == read,
    };
    if reads_fit { None } else { says("reads", read, members_read) }
}
