//! Nothing is overwritten that was not named, by its identity, to be overwritten: the real binary against real devices
//! in every kind of use. Each refusal leaves the content unchanged, exits with 3, and says why and what to do.

use std::fmt::Debug;
use std::fs::{self, OpenOptions};
use std::os::unix::fs::{OpenOptionsExt as _, symlink};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::support::checked_run::{self, Answer, ask, directory, file_hash, rdsk, word, written_file};
use crate::support::in_use::{ById, lvm_label, settle};
use rdsk_testkit::attempts::{first_right, same};
use rdsk_testkit::loopdev::mkfs_ext4;
use rdsk_testkit::{LoopDevice, Need, Swap, cli, requires};

const DEVICE: [Need; 2] = [Need::Root, Need::Loop];
const FILESYSTEM: [Need; 3] = [Need::Root, Need::Loop, Need::Ext4];
const O_EXCL: i32 = 0o200;

/// Asks to write in each way that a command line has, with the flag that would allow it if the device were unused, and
/// expects each to be refused with this code and, in its message, these words, while the content stays.
fn refused(name: &Path, identity: &str, device: &LoopDevice, code: &str, words: &[&str]) {
    let content = || device.content_hash().expect("a test's own device can be read");
    refused_and_stays(name, identity, code, words, content);
}

/// The same, where this is what must stay.
fn refused_and_stays<Content: PartialEq + Debug>(
    name: &Path,
    identity: &str,
    code: &str,
    words: &[&str],
    content: impl Fn() -> Content,
) {
    let name = word(name);
    let before = content();
    for line in [
        format!("run {name} --destroy {identity}"),
        format!("run {name} --rw write --destroy {identity}"),
        format!("paths {name} --rw read,write --destroy {identity}"),
        format!("align {name} --rw write"),
        format!("stream {name} --dry-run --destroy {identity}"),
    ] {
        let answer = ask(&line).expect_code(3);
        says(&answer, code, words);
        assert!(answer.cells().is_empty(), "{line} measured something: {}", answer.said());
        assert_eq!(content(), before, "{line} changed the device");
    }
}

fn says(answer: &Answer, code: &str, words: &[&str]) {
    let (error, hint) = answer.error_and_hint();
    assert_eq!(answer.error_code(), code, "{}", answer.said());
    assert!(error.starts_with("refusing to write to /dev/loop"), "{error}");
    for word in words {
        assert!(error.contains(word), "no \"{word}\" in: {error}");
    }
    assert!(hint.contains("measure reads"), "{hint}");
    assert_eq!(answer.record["error"]["message"], error.as_str());
    assert_eq!(answer.record["error"]["hint"], hint.as_str());
}

fn backing(device: &LoopDevice) -> String {
    word(device.backing_path()).to_owned()
}

fn small() -> LoopDevice {
    LoopDevice::builder().size(24 << 20).create().expect("loop devices can be made here")
}

#[test]
fn a_mounted_device_and_every_name_of_it() {
    if !requires(&FILESYSTEM) {
        return;
    }
    let device = small();
    device.mkfs_ext4("victim").unwrap();
    let mount = device.mount().unwrap();
    written_file(&mount.path().join("precious"), 1 << 20);
    settle(mount.path());
    let words = ["it holds a mounted filesystem", word(mount.path()), device.name()];
    refused(device.path(), &backing(&device), &device, "mounted", &words);

    let links = directory();
    let direct = links.path().join("disk");
    symlink(device.path(), &direct).unwrap();
    fs::create_dir(links.path().join("by-id")).unwrap();
    let chained = links.path().join("by-id/ata-RDSK_TEST_0001");
    symlink("../disk", &chained).unwrap();
    refused(&direct, &backing(&device), &device, "mounted", &words);
    refused(&chained, &backing(&device), &device, "mounted", &words);

    let by_id = ById::new(device.path());
    refused(by_id.path(), by_id.name(), &device, "mounted", &words);
}

#[test]
fn a_partition_that_is_mounted_and_the_disk_around_it() {
    if !requires(&[Need::Root, Need::Loop, Need::Ext4, Need::Tool("partx")]) {
        return;
    }
    let device = small();
    let parts = device.partition_gpt().unwrap();
    mkfs_ext4(&parts[0], "home").unwrap();
    let mount = device.mount_node(&parts[0]).unwrap();
    settle(mount.path());
    let part_name = parts[0].file_name().unwrap().to_string_lossy().into_owned();
    let words = ["it holds a mounted filesystem", word(mount.path()), part_name.as_str()];
    // The partition itself, and the whole disk through a part of it.
    refused(&parts[0], &backing(&device), &device, "mounted", &words);
    refused(device.path(), &backing(&device), &device, "mounted", &words);

    let links = directory();
    for (name, node) in [("part", parts[0].as_path()), ("whole", device.path())] {
        let link = links.path().join(name);
        symlink(node, &link).unwrap();
        refused(&link, &backing(&device), &device, "mounted", &words);
    }
    let by_id = ById::new(device.path());
    refused(by_id.path(), by_id.name(), &device, "mounted", &words);
    let by_id = ById::new(&parts[0]);
    refused(by_id.path(), by_id.name(), &device, "mounted", &words);
}

#[test]
fn a_dry_run_refuses_a_size_that_the_run_would_refuse() {
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_rdsk"));
    command.args(["run", "--dry-run", "--size", "1000T"]).arg(directory.path());
    let output = command.output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{error}");
    assert!(error.contains("does not fit"), "{error}");
}

#[test]
fn a_dry_run_over_several_directories_promises_what_the_run_creates() {
    if !requires(&FILESYSTEM) {
        return;
    }
    let device = LoopDevice::builder().size(64 << 20).create().expect("loop devices can be made here");
    device.mkfs_ext4("shared").unwrap();
    let mount = device.mount().unwrap();
    let directories = ["a", "b"].map(|name| mount.path().join(name));
    directories.iter().for_each(|directory| fs::create_dir(directory).unwrap());
    let line = format!("paths {} {} --rw read", word(&directories[0]), word(&directories[1]));
    let sizes = |answer: &serde_json::Value| -> Vec<u64> {
        answer["targets"]
            .as_array()
            .unwrap()
            .iter()
            .map(|target| target["size_bytes"].as_u64().unwrap())
            .collect()
    };
    let run = cli::run(rdsk(&format!("{line} --dry-run --json -")), checked_run::LIMIT);
    let promised = sizes(&cli::json(&run));
    assert_eq!(promised[0], promised[1], "they share the space");
    assert!(promised[0] > 1 << 20, "{promised:?}");
    // A disk that stands still ends a file early.
    first_right(5, || {
        let made = ask(&format!("{line} --runtime 50ms")).expect_code(0);
        same("sizes", &sizes(&made.record), &promised)
    });
    // What fits once and not twice is refused by both, before a file is written.
    let line = format!("{line} --size {}", promised[0] * 3 / 2);
    for extra in ["", " --dry-run"] {
        assert_eq!(ask(&format!("{line}{extra}")).expect_code(3).error_code(), "no-space");
    }
    assert!(directories.iter().all(|directory| fs::read_dir(directory).unwrap().count() == 0));
}

#[test]
fn swap_space() {
    if !requires(&[Need::Root, Need::Loop, Need::Tool("mkswap"), Need::Tool("swapon")]) {
        return;
    }
    let device = small();
    let swap = Swap::on(&device).expect("it becomes swap space");
    let words = ["active swap space", device.name()];
    let written = || swap.sectors_of_others().expect("the kernel counts");
    refused_and_stays(device.path(), &backing(&device), "swap", &words, written);
    drop(swap);
    // Not in use any more, it is still the user's.
    let answer = ask(&format!("run {} --rw write", word(device.path()))).expect_code(3);
    says(&answer, "needs-destroy", &["swap"]);
}

#[test]
fn devices_that_others_hold() {
    if !requires(&DEVICE) {
        return;
    }
    let device = small();
    let holder = OpenOptions::new().read(true).custom_flags(O_EXCL).open(device.path()).unwrap();
    refused(device.path(), &backing(&device), &device, "in-use", &["another program holds it exclusively"]);
    drop(holder);

    let device = small();
    let holder =
        OpenOptions::new().read(true).write(true).custom_flags(O_EXCL).open(device.backing_path()).unwrap();
    let process = format!("process {}", std::process::id());
    refused(device.path(), &backing(&device), &device, "in-use", &["open elsewhere", &process]);
    drop(holder);

    let device = small();
    let second = LoopDevice::builder().over(device.backing_path()).create().unwrap();
    refused(
        device.path(),
        &backing(&device),
        &device,
        "backing-file",
        &["uses the same data", second.name()],
    );
    drop(second);

    let device = LoopDevice::builder().size(24 << 20).read_only().create().unwrap();
    refused(device.path(), &backing(&device), &device, "read-only", &["read-only"]);
}

#[test]
fn content_is_named_and_needs_the_right_identity() {
    if !requires(&FILESYSTEM) {
        return;
    }
    let (ext4, gpt, lvm, blank) = (small(), small(), small(), small());
    ext4.mkfs_ext4("accounts").unwrap();
    gpt.partition_gpt().unwrap();
    lvm_label(lvm.path());
    // A member of something larger is not written even with the right word, until a program wipes it.
    refused(lvm.path(), &backing(&lvm), &lvm, "member", &["LVM2_member"]);
    for (device, words) in
        [(&ext4, &["ext4", "accounts"][..]), (&gpt, &["gpt"]), (&blank, &["would destroy its content"])]
    {
        let name = word(device.path());
        let own = backing(device);
        let before = device.content_hash().unwrap();
        for line in [format!("run {name} --rw write"), format!("paths {name} --rw read,write")] {
            let answer = ask(&line).expect_code(3);
            says(&answer, "needs-destroy", words);
            let hint = answer.error_and_hint().1;
            assert!(hint.contains(&format!("--destroy {own}")), "no way is shown: {hint}");
        }
        let wrong = [
            name.to_owned(),
            device.name().to_owned(),
            backing(if device.name() == ext4.name() { &gpt } else { &ext4 }),
            own[..own.len() - 1].to_owned(),
            format!("{own}/"),
            own.to_uppercase(),
            "yes".to_owned(),
        ];
        for identity in wrong {
            for verb in ["run", "stream"] {
                let answer = ask(&format!("{verb} {name} --destroy {identity}")).expect_code(3);
                says(&answer, "wrong-identity", words);
                assert!(answer.error_and_hint().0.contains(&format!("\"{identity}\"")), "{}", answer.said());
            }
        }
        // --overwrite speaks of files only.
        let answer = ask(&format!("run {name} --overwrite --rw write")).expect_code(3);
        says(&answer, "needs-destroy", words);
        assert_eq!(device.content_hash().unwrap(), before, "{name} was changed");
    }
}

#[test]
fn the_right_identity_writes_and_no_flag_only_reads() {
    if !requires(&DEVICE) {
        return;
    }
    let device = small();
    let name = word(device.path());
    let before = device.content_hash().unwrap();
    for line in [format!("run {name} --budget 1s"), format!("paths {name} --bytes 4M --runtime 50ms")] {
        let answer = ask(&line).expect_code(0);
        assert!(answer.cells().iter().all(|cell| cell["workload"]["op"] == "read"));
        assert!(answer.cells().iter().any(|cell| cell["result"]["bytes"].as_u64() > Some(0)));
        assert_eq!(device.content_hash().unwrap(), before, "{line} wrote");
    }
    let by_id = ById::new(device.path());
    let with_directory = word(by_id.path()).to_owned();
    for identity in [backing(&device), by_id.name().to_owned(), with_directory] {
        let before = device.content_hash().unwrap();
        let line = format!("paths {name} --destroy {identity} --rw write --bytes 4M --runtime 5m");
        // The offsets and data follow the seed, which must differ for the content to differ.
        let line = format!("{line} --seed {}", identity.len());
        let answer = ask(&line).expect_code(0);
        let written: u64 = answer.cells().iter().filter_map(|cell| cell["result"]["bytes"].as_u64()).sum();
        assert!(written >= 8 << 20, "{line} wrote {written}");
        assert_ne!(device.content_hash().unwrap(), before, "{line} changed nothing");
    }
}

#[test]
fn regular_files_of_the_user() {
    let place = directory();
    let path = place.path().join("ledger");
    written_file(&path, 4 << 20);
    let before = file_hash(&path);
    let link = place.path().join("link");
    symlink(&path, &link).unwrap();
    for name in [word(&path), word(&link)] {
        for line in [
            format!("run {name} --rw write"),
            format!("align {name} --rw read,write"),
            // A flag that speaks of devices is no leave to write, and no leave to measure something else instead.
            format!("run {name} --budget 1s --destroy {name}"),
            format!("run {name} --rw write --destroy ledger"),
        ] {
            let answer = ask(&line).expect_code(3);
            let (error, hint) = answer.error_and_hint();
            assert!(error.contains("refusing to write to") && error.contains("ledger"), "{line}: {error}");
            assert!(hint.contains("--overwrite"), "{line}: {hint}");
            assert_eq!(file_hash(&path), before, "{line} changed the file");
        }
    }
    let line = format!("paths {} --bytes 2M --runtime 50ms", word(&path));
    ask(&line).expect_code(0);
    assert_eq!(file_hash(&path), before, "a run without a flag wrote");
    ask(&format!("{line} --overwrite")).expect_code(0);
    assert_ne!(file_hash(&path), before, "--overwrite wrote nothing");
    assert_eq!(fs::metadata(&path).unwrap().len(), 4 << 20, "the file changed its size");
    checked_run::assert_nothing_left(place.path());
}

/// Found by a user: the image of an encrypted disk was refused behind a loop device, and lost as a file.
#[test]
fn a_file_that_is_part_of_something_larger_or_encrypted_stays() {
    if !requires(&[Need::Tool("wipefs")]) {
        return;
    }
    let place = directory();
    let path = place.path().join("member");
    written_file(&path, 4 << 20);
    lvm_label(&path);
    let before = file_hash(&path);
    let line = format!("load {} --rw write --overwrite --budget 1s", word(&path));
    let answer = ask(&line).expect_code(3);
    let (error, hint) = answer.error_and_hint();
    assert_eq!(answer.error_code(), "member", "{}", answer.said());
    assert!(error.contains("(LVM2_member)") && hint.contains("measure reads"), "{error}\n{hint}");
    assert_eq!(file_hash(&path), before, "it changed");
    // Bytes that no program knows are a user's to lose.
    fs::write(&path, vec![1; 4 << 20]).unwrap();
    ask(&line).expect_code(0);
}

#[test]
fn files_that_others_live_on() {
    if !requires(&DEVICE) {
        return;
    }
    let device = small();
    let before = device.content_hash().unwrap();
    let line = format!("run {} --overwrite --rw write", backing(&device));
    let answer = ask(&line).expect_code(3);
    assert_eq!(answer.error_code(), "backing-file", "{}", answer.said());
    assert!(answer.error_and_hint().0.contains(device.name()), "{}", answer.said());
    assert_eq!(device.content_hash().unwrap(), before);

    let place = directory();
    let path = place.path().join("database");
    written_file(&path, 1 << 20);
    let holder = OpenOptions::new().write(true).open(&path).unwrap();
    let before = file_hash(&path);
    let answer = ask(&format!("run {} --overwrite", word(&path))).expect_code(3);
    assert_eq!(answer.error_code(), "in-use", "{}", answer.said());
    drop(holder);
    assert_eq!(file_hash(&path), before);
}

/// A file with two names: the program that uses the other name would lose the same data.
#[test]
fn files_with_other_names() {
    let place = directory();
    let (path, other) = (place.path().join("ledger"), place.path().join("ledger.bak"));
    written_file(&path, 1 << 20);
    let before = file_hash(&path);
    fs::hard_link(&path, &other).unwrap();
    for line in
        [format!("run {} --overwrite", word(&path)), format!("paths {} --rw write --overwrite", word(&other))]
    {
        let answer = ask(&line).expect_code(3);
        assert_eq!(answer.error_code(), "hard-linked", "{}", answer.said());
        let (error, hint) = answer.error_and_hint();
        assert!(error.contains("2 names") && hint.contains("copy the file"), "{error}: {hint}");
        assert_eq!(file_hash(&path), before);
    }
    let line = format!("paths {} --bytes 256k --runtime 50ms", word(&path));
    ask(&line).expect_code(0);
    fs::remove_file(&other).unwrap();
    ask(&format!("{line} --overwrite")).expect_code(0);
}

/// More than its filesystem has free: all of it would be refused, and a part of it is written.
#[test]
fn a_sparse_file_counts_with_what_is_written_of_it() {
    if !requires(&[Need::Root, Need::Loop, Need::Xfs]) {
        return;
    }
    let device = LoopDevice::builder().size(320 << 20).create().unwrap();
    device.mkfs_xfs("sparse").unwrap();
    let mount = device.mount().unwrap();
    let path = mount.path().join("sparse.img");
    fs::File::create(&path).unwrap().set_len(1 << 30).unwrap();
    let told = cli::run(rdsk(&format!("info {}", word(&path))), Duration::from_secs(60)).stdout;
    let told = told.split_whitespace().collect::<Vec<&str>>().join(" ");
    assert!(told.contains("writing refused if all of it is written: refusing to write"), "{told}");
    assert!(
        told.contains("a run that writes at most ") && told.contains("is allowed with --overwrite"),
        "{told}"
    );
    let part = format!("paths {} --rw write --bytes 1M --runtime 50ms --overwrite", word(&path));
    for line in [
        format!("run {} --rw write --only headline --overwrite", word(&path)),
        // Random blocks may lie anywhere.
        format!("stream {} --rw write --pattern random --overwrite", word(&path)),
        format!("stream {} --rw write --dry-run --overwrite", word(&path)),
    ] {
        let answer = ask(&line).expect_code(3);
        assert_eq!(answer.error_code(), "fills-up", "{}", answer.said());
        let hint = answer.error_and_hint().1;
        assert!(hint.contains("write less of the target") && !hint.contains("--"), "{}", answer.said());
        assert_eq!(std::os::unix::fs::MetadataExt::blocks(&fs::metadata(&path).unwrap()), 0, "{line} wrote");
    }
    ask(&part).expect_code(0);
}

#[test]
fn the_last_target_is_judged_before_the_first_is_written() {
    if !requires(&FILESYSTEM) {
        return;
    }
    let (free, used) = (small(), small());
    used.mkfs_ext4("used").unwrap();
    let mount = used.mount().unwrap();
    settle(mount.path());
    let before = [free.content_hash().unwrap(), used.content_hash().unwrap()];
    let place = directory();
    let targets = format!("{} {} {}", word(place.path()), word(free.path()), word(used.path()));
    let answer = ask(&format!("paths {targets} --rw write --destroy {}", backing(&free))).expect_code(3);
    says(&answer, "mounted", &[used.name()]);
    assert_eq!([free.content_hash().unwrap(), used.content_hash().unwrap()], before);
    checked_run::assert_nothing_left(place.path());
}

#[test]
fn documents_are_not_written_over_data() {
    if !requires(&DEVICE) {
        return;
    }
    let device = small();
    let place = directory();
    let notes = place.path().join("notes.txt");
    fs::write(&notes, "remember the milk\n").unwrap();
    let before = device.content_hash().unwrap();
    for document in [device.path(), &notes, place.path()] {
        let line =
            format!("paths {} --runtime 50ms --bytes 1M --json {}", word(place.path()), word(document));
        let run = cli::run(rdsk(&line), checked_run::LIMIT);
        assert_eq!(run.status_code, Some(3), "{line}: {}", run.stderr);
        checked_run::error_and_hint(&run);
    }
    let both = word(device.path());
    let run = cli::run(rdsk(&format!("paths {both} --json {both}")), checked_run::LIMIT);
    assert!(matches!(run.status_code, Some(2 | 3)), "{}", run.stderr);
    assert_eq!(device.content_hash().unwrap(), before);
    assert_eq!(fs::read_to_string(&notes).unwrap(), "remember the milk\n");
    checked_run::assert_nothing_left(place.path());
}

#[test]
fn info_says_what_would_be_refused_and_touches_nothing() {
    if !requires(&FILESYSTEM) {
        return;
    }
    let device = small();
    device.mkfs_ext4("victim").unwrap();
    let mount = device.mount().unwrap();
    settle(mount.path());
    let before = device.content_hash().unwrap();
    let run = cli::run(rdsk(&format!("info {} --json -", word(device.path()))), checked_run::LIMIT);
    assert_eq!(run.status_code, Some(0), "{}", run.stderr);
    let writing = &cli::json(&run)["targets"][0]["writing"];
    assert_eq!((&writing["allowed"], &writing["refusal"]["code"]), (&false.into(), &"mounted".into()));
    let mut page = Command::new(env!("CARGO_BIN_EXE_rdsk"));
    page.arg("info").arg(device.path());
    let page = cli::run(page, checked_run::LIMIT);
    assert!(page.stdout.contains("refus") && page.stdout.contains(word(mount.path())), "{}", page.stdout);
    assert_eq!(device.content_hash().unwrap(), before);
}

/// The kernel would refuse it itself; who runs the program comes before that.
#[test]
fn a_program_that_runs_is_refused_before_measuring() {
    let directory = tempfile::tempdir().unwrap();
    let program = directory.path().join("program");
    // Copied by another process: a writable descriptor of ours could be inherited by a child that a parallel test starts,
    // and the program would be "busy" (ETXTBSY) until that child has called exec.
    assert!(Command::new("cp").arg("/bin/sleep").arg(&program).status().unwrap().success());
    let mut child = std::process::Command::new(&program).arg("600").spawn().unwrap();
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_rdsk"));
    command.args(["stream", "--rw", "write", "--overwrite", "--budget", "1s"]).arg(&program);
    let output = command.output();
    child.kill().unwrap();
    child.wait().unwrap();
    let output = output.unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{error}");
    assert!(error.contains("(program) has it mapped") && !error.contains("dmesg"), "{error}");
    assert!(output.stdout.is_empty(), "nothing was measured");
}

/// In a namespace of its own it cannot see who has the device open, so it does not write, and says why.
#[test]
fn a_container_with_process_numbers_of_its_own_proves_nothing() {
    if !requires(&[Need::Root, Need::Loop, Need::Tool("unshare")]) {
        return;
    }
    let device = small();
    let before = device.content_hash().unwrap();
    let output = Command::new("unshare")
        .args(["--pid", "--fork", "--mount-proc", env!("CARGO_BIN_EXE_rdsk"), "run", word(device.path())])
        .args(["--destroy", &backing(&device), "--rw", "write", "--budget", "1s"])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(said.contains("processes outside of this container cannot be seen"), "{said}");
    assert_eq!(device.content_hash().unwrap(), before);
}
