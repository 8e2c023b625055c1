//! A run in a directory harms nothing around it: a thin pool keeps a tenth free, a file that was left or cannot be removed is
//! named, and a device that takes writes in its own order only is left alone.

use std::time::Duration;

use rdsk_testkit::guest::{Booted, Call, Disk, Scenario, Tier};
use rdsk_testkit::{Need, requires};

use crate::guest;

const MIB: u64 = 1 << 20;

fn booted() -> Option<Booted> {
    requires(&[Need::Root, Need::Guest]).then(|| {
        guest()
            .modules(&["ext4", "dm_mod", "dm_thin_pool", "dm_snapshot", "null_blk"])
            .programs(&[
                "mkfs.ext4", "thin_check", "lvm", "pvcreate", "vgcreate", "lvcreate", "dmsetup", "blkid",
            ])
            .disk(Disk::virtio("A", 96 * MIB))
            .boot()
    })
}

fn error_code(call: &Call) -> String {
    call.json()["error"]["code"].as_str().unwrap_or_default().to_owned()
}

/// Two filesystems of 60 MiB in a pool of 64 MiB, of which other files leave some 17: the test file of a run without `--size` would have
/// filled it up. It may take some 10 MiB, and a file of up to 16 MiB may take twice its part of the time.
const POOL: &str = "pvcreate -q $A; vgcreate -q vg $A
lvcreate -q -L 64M --poolmetadatasize 4M -Zn -T vg/pool
for n in one two; do lvcreate -q -V 60M -T vg/pool -n $n; ext4 /dev/mapper/vg-$n; done
at=$(mounted /dev/mapper/vg-one); other=$(mounted /dev/mapper/vg-two)
dd if=/dev/urandom of=$other/precious bs=1M count=8 status=none
dd if=/dev/zero of=$other/filler bs=1M count=22 status=none; sync
used() { dmsetup status --noflush vg-pool-tpool | cut -d' ' -f6; }
fact before $(used)
";

#[test]
fn directories_and_zones_and_filesystems_that_turn_read_only() {
    if !Tier::Extended.is_wanted() {
        return;
    }
    let Some(mut guest) = booted() else { return };
    let script = format!(
        "{POOL}
sum=$(md5sum < $other/precious)
call large rdsk run $at --size 50M --only headline --budget 1s --quiet --json - --json-compact
# A file grows as long as its part of the budget lasts: 3 s gave a busy machine 6 MiB.
call run rdsk run $at --only headline --rw write --budget 20s --evidence sysfs --quiet --json - --json-compact
sync; fact after $(used)
# With a file as small as it may be, this takes what a run could still have taken, and some of the tenth.
dd if=/dev/urandom of=$other/more bs=1M count=4 status=none conv=fsync
echo 3 > /proc/sys/vm/drop_caches
[ \"$sum\" = \"$(md5sum < $other/precious)\" ]
fact left $(ls -A $at | grep -c rdsk || :)
call full rdsk run $at --only headline --budget 1s --quiet --json - --json-compact
"
    );
    let outcome =
        guest.run(&Scenario::new("thin pool", script).limit(Duration::from_secs(600))).expect_done();
    let run = outcome.call("run");
    assert_eq!(run.code, 0, "{}", run.said());
    // 64 MiB in chunks of 64 KiB; of these a tenth, 103, stays free.
    let after = outcome.fact("after");
    let (used, total) = after.split_once('/').expect("used/total");
    let free = total.parse::<u64>().unwrap() - used.parse::<u64>().unwrap();
    assert!(free * 10 >= total.parse().unwrap(), "{used} of {total} chunks are in use");
    let size = run.json()["targets"][0]["size_bytes"].as_u64().unwrap();
    assert!(size >= 8 * MIB, "the file of {size} bytes is smaller than it must be");
    assert_eq!((outcome.call("large").code, error_code(&outcome.call("large")).as_str()), (3, "no-space"));
    assert_eq!((outcome.call("full").code, error_code(&outcome.call("full")).as_str()), (3, "thin-pool"));
    assert_eq!(outcome.fact("left"), "0");
    assert_eq!(outcome.unclean(), "");
    filled_by_another(&mut guest);
    killed(&mut guest);
    read_only(&mut guest);
    zoned(&mut guest);
}

/// Another volume takes what is left of the pool while the run is under way; a pool that is kept so fails then.
fn filled_by_another(guest: &mut Booted) {
    let script = "fresh $A; pvcreate -q $A; vgcreate -q vg $A
lvcreate -q -L 32M --poolmetadatasize 4M -Zn --errorwhenfull y -T vg/pool
for n in one two; do lvcreate -q -V 40M -T vg/pool -n $n; done; ext4 /dev/mapper/vg-one; at=$(mounted /dev/mapper/vg-one); sync
(wait_for 60 sh -c \"ls -A $at | grep -q rdsk-test\"; dd if=/dev/urandom of=/dev/mapper/vg-two bs=64k count=512 oflag=direct status=none || :) & other=$!
call run rdsk run $at --only headline --rw write --budget 8s --quiet --json - --json-compact
wait $other
fact left $(ls -A $at | grep rdsk-test || :)
";
    let outcome =
        guest.run(&Scenario::new("filled by another", script).limit(Duration::from_secs(600))).expect_done();
    let run = outcome.call("run");
    // What was allocated stays writable: the run ends well, or says that I/O failed, and leaves nothing that is not named.
    assert!([0, 3, 4].contains(&run.code), "{}", run.said());
    let left = outcome.fact("left");
    assert!(left.is_empty() || run.said().contains(&left), "{left} is left without a word: {}", run.said());
}

/// A run that is killed leaves its file, and the next one finds it.
fn killed(guest: &mut Booted) {
    let script = "fresh $A; ext4 $A; at=$(mounted $A)
rdsk run $at --only headline --budget 60s --size 8M --quiet > /dev/null 2>&1 & run=$!
wait_for 30 sh -c \"ls -A $at | grep -q rdsk-test\"; sleep 1
kill -9 $run; wait $run || :
fact left $(ls -A $at | grep rdsk-test)
call next rdsk run $at --only headline --rw read --budget 1s --size 4M --quiet --json - --json-compact
fact gone $(ls -A $at | grep -c rdsk-test || :)
";
    let outcome = guest.run(&Scenario::new("killed", script).limit(Duration::from_secs(600))).expect_done();
    let next = outcome.call("next");
    assert_eq!(next.code, 0, "{}", next.said());
    assert!(next.json()["notes"].to_string().contains(&outcome.fact("left")), "{}", next.said());
    assert_eq!(outcome.fact("gone"), "0");
}

/// The filesystem turns read-only while the run is under way, as after an error of its device.
fn read_only(guest: &mut Booted) {
    let script = "fresh $A; ext4 $A; at=$(mounted $A)
rdsk run $at --only headline --rw write --budget 30s --size 8M --quiet --json $OUT/record.json > $OUT/page 2> $OUT/talk & run=$!
wait_for 30 sh -c \"ls -A $at | grep -q rdsk-test\"
# The run is under way once it has written more than its 8 MiB file, and has measured when the first repeat has ended.
laid_out=$(awk '{ print $7 + 24576 }' /sys/block/${A##*/}/stat)
wait_for 60 awk -v least=$laid_out '$7 < least { exit 1 }' /sys/block/${A##*/}/stat; sleep 5
echo u > /proc/sysrq-trigger
code=0; wait $run || code=$?
fact code $code
fact left $(ls -A $at | grep rdsk-test)
umount $at; mount -t ext4 $A $at
call next rdsk run $at --only headline --rw read --budget 1s --size 4M --quiet --json - --json-compact
fact gone $(ls -A $at | grep -c rdsk-test || :)
";
    let outcome =
        guest.run(&Scenario::new("read-only", script).limit(Duration::from_secs(600))).expect_done();
    let talk = String::from_utf8_lossy(outcome.file("talk").unwrap_or_default()).into_owned();
    let left = outcome.fact("left");
    assert!(left.starts_with(".rdsk-test-"), "{left}: {talk}");
    assert!(talk.contains(&format!("/{left} could not be removed")) && talk.contains("hint: "), "{talk}");
    assert_eq!(outcome.fact("code"), "4", "{talk}");
    let record: serde_json::Value =
        serde_json::from_slice(outcome.file("record.json").unwrap_or_default()).expect("a Record");
    let notes = record["notes"].to_string();
    assert!(notes.contains(&left), "{notes}");
    let next = outcome.call("next");
    assert_eq!(next.code, 0, "{}", next.said());
    assert!(next.json()["notes"].to_string().contains(&left), "{}", next.said());
    assert_eq!(outcome.fact("gone"), "0");
}

fn zoned(guest: &mut Booted) {
    let script = "n=/sys/kernel/config/nullb/zoned; mkdir $n
for word in size=64 zoned=1 zone_size=4 memory_backed=1 blocksize=4096 power=1; do echo ${word#*=} > $n/${word%=*}; done
dev=/dev/$(basename $(dirname $(dirname $(grep -l host-managed /sys/block/*/queue/zoned))))
by_id scsi-zoned $dev
call write rdsk run $dev --only headline --rw write --budget 1s --quiet --destroy scsi-zoned --json - --json-compact
dd if=/dev/zero of=$dev bs=4096 count=16 oflag=direct status=none
call read rdsk run $dev --only headline --rw read --budget 1s --evidence sysfs --quiet --json - --json-compact
echo 0 > $n/power; rmdir $n
";
    let outcome = guest.run(&Scenario::new("zoned", script).limit(Duration::from_secs(600))).expect_done();
    let write = outcome.call("write");
    assert_eq!((write.code, error_code(&write).as_str()), (3, "host-managed"), "{}", write.said());
    let read = outcome.call("read");
    assert_eq!(read.code, 0, "{}", read.said());
    // What the zones hold, by their write pointers: only the first 64 KiB of the first zone.
    let record = read.json();
    assert_eq!(record["targets"][0]["device"]["zone_written_bytes"], 16 * 4096, "{}", read.said());
}
