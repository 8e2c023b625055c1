//! The guest itself: an error in it becomes a failure, it leaves nothing behind, and its output is complete.
#![allow(clippy::print_stderr, clippy::print_stdout, reason = "with --nocapture it says what it took")]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::{Duration, Instant};

use rdsk_testkit::guest::{Booted, Disk, Guest, Scenario};
use rdsk_testkit::{Need, requires};

fn run(guest: &mut Booted, script: &str) -> rdsk_testkit::guest::ScenarioOutcome {
    guest.run(&Scenario::new("a scenario", script))
}

/// Processes whose command line names this directory, read by their numbers.
fn processes_of(directory: &str) -> Vec<String> {
    let entries = std::fs::read_dir("/proc").expect("there is a /proc").flatten();
    entries
        .filter_map(|entry| {
            let line = std::fs::read(entry.path().join("cmdline")).ok()?;
            let line = String::from_utf8_lossy(&line).into_owned();
            (line.contains(directory) && line.contains("qemu-system")).then_some(line)
        })
        .collect()
}

#[test]
fn scenarios_share_a_boot_and_what_goes_wrong_is_told() {
    if !requires(&[Need::Root, Need::Guest]) {
        return;
    }
    let mut guest = Guest::new()
        .modules(&["raid0"])
        .carried(&["dm_mod", "scsi_debug", "ext4"])
        .programs(&["mdadm", "dmsetup", "mkfs.ext4"])
        .disk(Disk::virtio("A", 16 << 20))
        .disk(Disk::nvme("N", 16 << 20).serial("NV-12"))
        .disk(Disk::scsi("S", 16 << 20))
        .disk(Disk::scsi("S2", 0).over("S"))
        .boot();
    let directory = guest.directory().to_owned();
    answers_are_whole(&mut guest);
    failures_are_told(&mut guest);
    disks_are_as_asked_for(&mut guest);
    leftovers_are_taken_down(&mut guest);
    assert_eq!(processes_of(directory.to_str().unwrap()).len(), 1);
    // An oops ends the guest, and the panic of the harness shows the kernel's message.
    let start = Instant::now();
    let said =
        catch_unwind(AssertUnwindSafe(|| run(&mut guest, "echo c > /proc/sysrq-trigger"))).unwrap_err();
    let said = said.downcast_ref::<String>().expect("a message");
    assert!(said.contains("Kernel panic") && said.contains("console of the guest"), "{said}");
    // An answer that does not come is waited for twice as long.
    assert!(start.elapsed() < Duration::from_secs(150));
    drop(guest);
    assert!(processes_of(directory.to_str().unwrap()).is_empty());
    assert!(!directory.exists());
}

fn answers_are_whole(guest: &mut Booted) {
    let outcome = run(guest, "echo out; call fails sh -c 'echo said; echo woe >&2; exit 7'; fact word a  b")
        .expect_done();
    let fails = outcome.call("fails");
    assert_eq!((fails.code, fails.stdout.as_str(), fails.stderr.as_str()), (7, "said\n", "woe\n"));
    assert_eq!((outcome.fact("word").as_str(), outcome.stdout().as_str()), ("a b", "out\n"));

    let start = Instant::now();
    let outcome =
        run(guest, "head -c 8388608 /dev/urandom > $OUT/big; fact sum $(sha256sum < $OUT/big)").expect_done();
    let big = outcome.file("big").expect("it was left there");
    assert_eq!(big.len(), 8 << 20);
    let copy = tempfile::NamedTempFile::new().expect("a scratch file");
    std::fs::write(copy.path(), big).expect("it takes 8 MiB");
    let sum = std::process::Command::new("sha256sum").arg(copy.path()).output().expect("coreutils");
    let here = String::from_utf8_lossy(&sum.stdout).into_owned();
    assert_eq!(outcome.fact("sum").split(' ').next(), here.split(' ').next());
    // The guest's clock may be ahead of ours: it measures its pace at boot, on a machine that may be busy.
    let took = start.elapsed().saturating_sub(outcome.took());
    eprintln!("8 MiB came back in {:.2} s", took.as_secs_f64());
}

fn failures_are_told(guest: &mut Booted) {
    let outcome = run(guest, "false\ncall never true");
    assert!(outcome.failure().expect("a step failed").contains("+ false"), "{:?}", outcome.failure());
    assert!(outcome.calls().is_empty());
    assert!(run(guest, "echo $nobody_set_this").failure().is_some());
    assert!(run(guest, "false | cat").failure().is_some());
    assert!(run(guest, "fact x $(disk no-such-disk)").failure().is_none());
    assert!(run(guest, "x=$(disk no-such-disk)").failure().is_some());
    assert!(run(guest, "module no_such_module").failure().is_some());

    let slow = Scenario::new("slow", "sleep 100 & sleep 200").limit(Duration::from_secs(2));
    let outcome = guest.run(&slow);
    assert!(outcome.failure().expect("it was ended").contains("its time was over"));
    // The guest keeps running.
    assert_eq!(run(guest, "true").failure(), None);
}

fn disks_are_as_asked_for(guest: &mut Booted) {
    let script = "fact n $N $N_ID; fact same $(cat /sys/class/block/${S#/dev/}/size) $(cat /sys/class/block/${S2#/dev/}/size)
fact before $(hash $A $N $S)
echo data | dd of=$S bs=512 conv=sync oflag=direct status=none
fact after $(hash $A $N $S)
fact path $(dd if=$S2 bs=512 count=1 iflag=direct status=none | head -c 4)
fresh $S
fact again $(hash $A $N $S)
echo 'size=4MiB' | partitions $A
fact part $(blockdev --getsize64 ${A}1)
fact hash1 $(hash ${A}1)
by_id virtio-A $A
fact link $(readlink -f /dev/disk/by-id/virtio-A) $A
module scsi_debug dev_size_mb=8 sector_size=4096
wait_for 60 sh -c 'grep -q scsi_debug /sys/block/*/device/model'
blkdiscard -z $A";
    let outcome = run(guest, script).expect_done();
    assert_eq!(outcome.fact("n"), "/dev/nvme0n1 NV-12");
    assert_eq!(outcome.fact("same"), "32768 32768");
    assert_ne!(outcome.fact("before"), outcome.fact("after"));
    assert_eq!(outcome.fact("before"), outcome.fact("again"));
    assert_eq!(outcome.fact("path"), "data");
    assert_eq!(outcome.fact("part"), (4_u64 << 20).to_string());
    assert_eq!(outcome.fact("hash1").len(), 32);
    let link = outcome.fact("link");
    assert_eq!(link.split(' ').next(), link.split(' ').nth(1));
}

fn leftovers_are_taken_down(guest: &mut Booted) {
    let script = "module dm_mod; module ext4
raid md0 0 $A $N
echo 0 8192 linear /dev/md0 0 | dmsetup create stacked
ext4 /dev/mapper/stacked
mounted /dev/mapper/stacked
(setsid sleep 3141 &)";
    let outcome = run(guest, script).expect_done();
    assert_eq!(outcome.unclean(), "");
    let script = "fact left $(ls /sys/block | grep -c -e dm- -e md) || fact left 0; fact mounts $(grep -c /mnt /proc/mounts) || fact mounts 0
fact sleepers $(ps | grep -c '[s]leep 3141') || fact sleepers 0";
    let outcome = run(guest, script).expect_done();
    assert_eq!((outcome.fact("left"), outcome.fact("mounts")), ("0".into(), "0".into()));
    assert_eq!(outcome.fact("sleepers"), "0");
}

/// Run by the test below in a process of its own, which is killed.
#[test]
#[ignore = "the child of another test"]
fn child_that_is_killed_beside_its_guest() {
    let guest = Guest::new().boot();
    println!("GUEST {}", guest.directory().display());
    std::thread::sleep(Duration::from_secs(1200));
}

#[test]
fn a_guest_does_not_outlive_a_killed_test() {
    use std::io::{BufRead as _, BufReader};
    if !requires(&[Need::Root, Need::Guest]) {
        return;
    }
    let mut child = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "guest::child_that_is_killed_beside_its_guest", "--nocapture"])
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let directory =
        lines.map_while(Result::ok).find_map(|line| Some(line.split_once("GUEST ")?.1.to_owned()));
    let directory = directory.expect("the guest comes up");
    assert_eq!(processes_of(&directory).len(), 1);
    child.kill().unwrap();
    child.wait().unwrap();
    let gone = rdsk_testkit::wait_until(Duration::from_secs(200), || processes_of(&directory).is_empty());
    assert!(gone, "QEMU lives on");
    assert!(Path::new(&directory).starts_with(std::env::temp_dir()));
    // A killed process cannot clean up.
    std::fs::remove_dir_all(&directory).unwrap();
}
