//! A device or file that another process has open or mapped is refused for writing, although the kernel would allow it:
//! O_EXCL does not conflict with an opener that does not use it.
#![allow(clippy::unwrap_used, reason = "the functions beside the tests fail the test by panicking")]

use crate::support::{
    self, MIB, claimed, destroy, look, overwrite, refusal, run, turn, write_lvm_label, write_mode,
};
use rdsk_targets::{Access, TargetError, authorize};
use rdsk_testkit::{Hold, Holder, LoopDevice, Need, requires};
use std::path::Path;

const CHILD: &str = "openers::child_that_holds";

#[test]
#[ignore = "started by the other tests of this file"]
fn child_that_holds() {
    rdsk_testkit::holder::hold();
}

fn loops() -> bool {
    requires(&[Need::Root, Need::Loop, Need::Tool("lsblk"), Need::Tool("wipefs")])
}

fn device() -> LoopDevice {
    LoopDevice::builder().size(16 * MIB).create().unwrap()
}

fn word(device: &LoopDevice) -> rdsk_targets::Permission {
    destroy(device.backing_path().to_str().unwrap())
}

/// Refused while it is held, with the process and these words in the message and the content unchanged, and claimed
/// after it is released.
fn refused_while_held(device: &LoopDevice, target: &Path, held: &Path, how: Hold, words: &str) {
    let before = device.content_hash().unwrap();
    let holder = Holder::start(CHILD, how, held);
    let refusal = refusal(target, &word(device));
    assert_eq!(refusal.code, "in-use", "{}", refusal.message);
    let process = format!("process {} (", holder.id());
    assert!(refusal.message.contains(&process) && refusal.message.contains(words), "{}", refusal.message);
    assert_eq!(device.content_hash().unwrap(), before);
    drop(holder);
    drop(claimed(target, Access::Write, &word(device)).open(write_mode()).unwrap());
}

#[test]
fn a_device_that_a_process_may_write_to() {
    let _turn = turn();
    if !loops() {
        return;
    }
    let device = device();
    let open = format!("has {} open for writing", device.name());
    refused_while_held(&device, device.path(), device.path(), Hold::Writing, &open);
    let mapped = format!("has {} mapped for writing", device.name());
    refused_while_held(&device, device.path(), device.path(), Hold::Mapped, &mapped);
    let own = i32::try_from(std::process::id()).unwrap();
    if rdsk_sys::openers::same_open_files(own, own).is_ok() {
        refused_while_held(&device, device.path(), device.path(), Hold::InThread, &open);
    }
}

/// A virtual machine over a base image, a program that rescues what is on a disk: they would go on with other data.
#[test]
fn a_device_that_a_process_reads() {
    let _turn = turn();
    if !loops() || !requires(&[Need::Tool("partx")]) {
        return;
    }
    let device = device();
    let open = format!("has {} open for reading", device.name());
    refused_while_held(&device, device.path(), device.path(), Hold::Reading, &open);
    let reader = Holder::start(CHILD, Hold::Reading, device.path());
    authorize(&look(device.path()), Access::Read, &rdsk_targets::Permission::default()).unwrap();
    let refusal = refusal(device.path(), &word(&device));
    assert!(refusal.message.contains("another program reads it (process "), "{}", refusal.message);
    assert!(refusal.hint.contains("end that program"), "{}", refusal.hint);
    drop(reader);
    let nodes = device.partition_gpt().unwrap();
    refused_while_held(&device, device.path(), &nodes[0], Hold::Reading, "p1 open for reading");
    refused_while_held(&device, &nodes[0], device.path(), Hold::Reading, "open for reading");
    let neighbour = Holder::start(CHILD, Hold::Reading, &nodes[1]);
    drop(claimed(&nodes[0], Access::Write, &word(&device)));
    drop(neighbour);
}

/// A server of an image, a copy that runs, a backup: they would go on with other data.
#[test]
fn a_file_that_a_process_reads() {
    let _turn = turn();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("disk.img");
    std::fs::write(&file, vec![7; 1 << 20]).unwrap();
    let claim = claimed(&file, Access::Write, &overwrite());
    let mode = rdsk_targets::OpenMode { path: rdsk_model::IoPath::Buffered, ..write_mode() };
    let holder = Holder::start(CHILD, Hold::Reading, &file);
    let words = format!("another program reads it (process {} (", holder.id());
    let refusal = refusal(&file, &overwrite());
    assert_eq!(refusal.code, "in-use");
    assert!(refusal.message.contains(&words), "{}", refusal.message);
    assert!(refusal.message.contains("has it open for reading"), "{}", refusal.message);
    assert!(refusal.hint.contains("end that program"), "{}", refusal.hint);
    match claim.open(mode).unwrap_err() {
        TargetError::Refused(refusal) => assert!(refusal.message.contains(&words), "{}", refusal.message),
        other => panic!("{other}"),
    }
    authorize(&look(&file), Access::Read, &rdsk_targets::Permission::default()).unwrap();
    assert_eq!(std::fs::read(&file).unwrap(), vec![7; 1 << 20]);
    drop(holder);
    // Our own reader is none of others.
    let reader = std::fs::File::open(&file).unwrap();
    drop(claimed(&file, Access::Write, &overwrite()));
    drop(reader);
    // A scanner reads what was written.
    let written = claim.open(mode).unwrap();
    claim.released();
    drop(written);
    let scanner = Holder::start(CHILD, Hold::Reading, &file);
    drop(claim.open(mode).unwrap());
    drop(scanner);
}

/// Another rdsk holds it with `O_PATH`, which does not open it.
#[test]
fn a_claim_of_another_process_is_no_reader() {
    let _turn = turn();
    if !loops() {
        return;
    }
    let device = device();
    let held = rustix::fs::OFlags::PATH;
    let path = rustix::fs::open(device.path(), held, rustix::fs::Mode::empty()).unwrap();
    // It is inherited, since it is not closed when the program starts.
    let mut other = std::process::Command::new("sh")
        .args(["-c", "echo ready; read x"])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    drop(path);
    std::io::Read::read_exact(&mut other.stdout.take().unwrap(), &mut [0; 6]).unwrap();
    let fds = std::fs::read_dir(format!("/proc/{}/fd", other.id())).unwrap();
    let is_it = |fd: &std::fs::DirEntry| std::fs::read_link(fd.path()).is_ok_and(|to| to == device.path());
    assert!(fds.filter_map(Result::ok).any(|fd| is_it(&fd)), "it has it");
    drop(claimed(device.path(), Access::Write, &word(&device)));
    drop(other.stdin.take());
    other.wait().unwrap();
}

/// One has the name of udev's worker, which has devices open as long as its rules take.
#[test]
fn who_only_looks_on_does_not_count_as_a_reader() {
    let _turn = turn();
    if !loops() {
        return;
    }
    let device = device();
    let authorized = |name: &str| {
        let script = "printf %s \"$2\" > /proc/$$/comm; exec 3<\"$1\"; echo ready; read x";
        let mut other = std::process::Command::new("sh")
            .args(["-c", script, "sh", device.path().to_str().unwrap(), name])
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        std::io::Read::read_exact(&mut other.stdout.take().unwrap(), &mut [0; 6]).unwrap();
        let authorized = authorize(&look(device.path()), Access::Write, &word(&device));
        drop(other.stdin.take());
        other.wait().unwrap();
        authorized.map_err(|refusal| refusal.code)
    };
    // A program that another test starts keeps our descriptors for a moment.
    for name in ["(udev-worker)", "multipathd"] {
        assert!((0..100).any(|_| authorized(name) == Ok(())), "{name}");
    }
    assert_eq!(authorized("qemu-system-x86"), Err("in-use"));
}

#[test]
fn a_node_of_another_name_leads_to_the_same_device() {
    let _turn = turn();
    if !loops() || !requires(&[Need::Tool("mknod")]) {
        return;
    }
    let device = device();
    let directory = tempfile::tempdir().unwrap();
    let node = directory.path().join("other-node");
    let number = look(device.path()).target.device.unwrap().major_minor;
    let (major, minor) = number.split_once(':').unwrap();
    support::run("mknod", &[node.to_str().unwrap(), "b", major, minor]);
    refused_while_held(&device, device.path(), &node, Hold::Writing, "open for writing");
    refused_while_held(&device, device.path(), &node, Hold::Mapped, "mapped for writing");
}

#[test]
fn a_disk_holds_its_partitions_and_a_partition_its_disk_and_not_its_neighbour() {
    let _turn = turn();
    if !loops() || !requires(&[Need::Tool("partx")]) {
        return;
    }
    let device = device();
    let nodes = device.partition_gpt().unwrap();
    refused_while_held(&device, device.path(), &nodes[0], Hold::Writing, "p1 open for writing");
    refused_while_held(&device, &nodes[0], device.path(), Hold::Writing, "open for writing");
    let neighbour = Holder::start(CHILD, Hold::Writing, &nodes[1]);
    drop(claimed(&nodes[0], Access::Write, &word(&device)));
    drop(neighbour);
}

#[test]
fn a_file_that_is_mapped_and_not_open() {
    let _turn = turn();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("data");
    std::fs::write(&file, vec![7; 1 << 20]).unwrap();
    let holder = Holder::start(CHILD, Hold::Mapped, &file);
    let refusal = refusal(&file, &overwrite());
    assert_eq!(refusal.code, "in-use");
    let words = format!("process {} (", holder.id());
    assert!(
        refusal.message.contains(&words) && refusal.message.contains("mapped for writing"),
        "{}",
        refusal.message
    );
    assert_eq!(std::fs::read(&file).unwrap(), vec![7; 1 << 20]);
    drop(holder);
    drop(claimed(&file, Access::Write, &overwrite()));
}

/// Procfs shows no opener: our own process is not looked at, and neither are the kernel, descriptors on their way through a socket,
/// and those that io_uring keeps.
#[test]
fn a_file_that_only_the_kernel_knows_to_be_open() {
    let _turn = turn();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("data");
    std::fs::write(&file, vec![7; 1 << 20]).unwrap();
    if rdsk_sys::openers::has_writers(std::fs::File::open(&file).unwrap()).is_err() {
        eprintln!("SKIPPED: the temporary directory's filesystem has no leases");
        return;
    }
    let reader = std::fs::File::open(&file).unwrap();
    drop(claimed(&file, Access::Write, &overwrite()));
    let writer = std::fs::File::options().write(true).open(&file).unwrap();
    let refusal = refusal(&file, &overwrite());
    assert_eq!(refusal.code, "in-use");
    assert!(refusal.message.contains("the kernel says that it is open for writing"), "{}", refusal.message);
    drop((reader, writer));
    // The claim itself has it open while it looks again.
    let claim = claimed(&file, Access::Write, &overwrite());
    let mode = rdsk_targets::OpenMode { path: rdsk_model::IoPath::Buffered, ..write_mode() };
    drop((claim.open(mode).unwrap(), claim.open(mode).unwrap()));
}

/// A process gives a descriptor away, into a socket or a ring, and closes its own: procfs shows no reader, and there is one.
#[test]
fn a_file_that_is_read_where_no_process_shows_it() {
    let _turn = turn();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("image");
    std::fs::write(&file, vec![7; 1 << 20]).unwrap();
    if rdsk_sys::openers::is_open_elsewhere(std::fs::File::open(&file).unwrap()).is_err() {
        eprintln!("SKIPPED: the temporary directory's filesystem has no leases");
        return;
    }
    drop(claimed(&file, Access::Write, &overwrite()));
    let refused = || {
        let refusal = refusal(&file, &overwrite());
        assert_eq!(refusal.code, "in-use");
        assert!(
            refusal.message.contains("the kernel says that it is open for reading"),
            "{}",
            refusal.message
        );
    };
    let (sender, receiver) = rustix::net::socketpair(
        rustix::net::AddressFamily::UNIX,
        rustix::net::SocketType::STREAM,
        rustix::net::SocketFlags::CLOEXEC,
        None,
    )
    .unwrap();
    send(&sender, &std::fs::File::open(&file).unwrap());
    refused();
    drop((sender, receiver));
    drop(claimed(&file, Access::Write, &overwrite()));
    if !requires(&[Need::IoUring]) {
        return;
    }
    let ring = io_uring::IoUring::new(1).unwrap();
    let reader = std::fs::File::open(&file).unwrap();
    ring.submitter().register_files(&[std::os::fd::AsRawFd::as_raw_fd(&reader)]).unwrap();
    drop(reader);
    refused();
    ring.submitter().unregister_files().unwrap();
    drop(ring);
    drop(claimed(&file, Access::Write, &overwrite()));
}

/// Sends a descriptor into a socket.
fn send(socket: &std::os::fd::OwnedFd, file: &std::fs::File) {
    use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
    let files = [std::os::fd::AsFd::as_fd(file)];
    let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut buffer = SendAncillaryBuffer::new(&mut space);
    assert!(buffer.push(SendAncillaryMessage::ScmRights(&files)));
    sendmsg(socket, &[std::io::IoSlice::new(b"x")], &mut buffer, SendFlags::empty()).unwrap();
}

const LOOK_VARIABLE: &str = "RDSK_LOOK";

#[test]
#[ignore = "started as another user by the next test"]
fn child_that_looks() {
    let Some(path) = std::env::var_os(LOOK_VARIABLE) else { return };
    let answer = match authorize(&look(Path::new(&path)), Access::Write, &overwrite()) {
        Ok(()) => "allowed".to_owned(),
        Err(refusal) => format!("{}: {} [{}]", refusal.code, refusal.message, refusal.hint),
    };
    println!("\nanswer: {answer}");
}

/// What the user `nobody` reads who wants to overwrite the file.
fn as_nobody(file: &Path) -> String {
    use std::os::unix::process::CommandExt as _;
    const NOBODY: u32 = 65534;
    // The checkout may lie where only its owner goes.
    let program = file.with_file_name("look");
    if !program.exists() {
        std::fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    }
    let output = std::process::Command::new(program)
        .args(["--ignored", "--exact", "--nocapture", "openers::child_that_looks"])
        .env(LOOK_VARIABLE, file)
        .uid(NOBODY)
        .gid(NOBODY)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.lines().find_map(|line| line.strip_prefix("answer: ")).unwrap_or(&text).to_owned()
}

/// The kernel shows its owner who writes to it, and others not.
#[test]
fn a_file_of_another_user_cannot_be_proven_to_be_unused() {
    use std::os::unix::fs::{PermissionsExt as _, chown};
    let _turn = turn();
    if !requires(&[Need::Root]) {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let mode = std::fs::Permissions::from_mode;
    std::fs::set_permissions(directory.path(), mode(0o755)).unwrap();
    let file = directory.path().join("x.db");
    std::fs::write(&file, vec![7; 1 << 20]).unwrap();
    std::fs::set_permissions(&file, mode(0o666)).unwrap();
    if rdsk_sys::openers::has_writers(std::fs::File::open(&file).unwrap()).is_err() {
        eprintln!("SKIPPED: the temporary directory's filesystem has no leases");
        return;
    }
    let said = as_nobody(&file);
    assert!(said.starts_with("cannot-prove-unused: "), "{said}");
    assert!(said.contains("the kernel shows only its owner whether it is open for writing, and "), "{said}");
    assert!(said.ends_with("run as the owner of the file, or as root outside of containers]"), "{said}");
    drop(claimed(&file, Access::Write, &overwrite()));
    chown(&file, Some(65534), None).unwrap();
    // A loop device of another test whose file was deleted is a doubt as long as it is there.
    let is_allowed =
        rdsk_testkit::wait_until(std::time::Duration::from_secs(60), || as_nobody(&file) == "allowed");
    assert!(is_allowed, "{}", as_nobody(&file));
    let writer = std::fs::File::options().write(true).open(&file).unwrap();
    assert!(as_nobody(&file).starts_with("in-use: "), "{}", as_nobody(&file));
    drop(writer);
}

/// A program reads it and has locked it: a virtual machine that has an image as the base of its own.
#[test]
fn a_file_that_another_has_locked() {
    let _turn = turn();
    if !requires(&[Need::Tool("flock")]) {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("image");
    std::fs::write(&file, vec![7; 1 << 20]).unwrap();
    let mut other = std::process::Command::new("flock")
        .args(["--shared", file.to_str().unwrap(), "sh", "-c", "echo ready; read x"])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    std::io::Read::read_exact(&mut other.stdout.take().unwrap(), &mut [0; 6]).unwrap();
    let refusal = refusal(&file, &overwrite());
    drop(other.stdin.take());
    other.wait().unwrap();
    assert_eq!(refusal.code, "in-use");
    assert!(refusal.message.contains("(flock) has it locked"), "{}", refusal.message);
    drop(claimed(&file, Access::Write, &overwrite()));
}

/// A file that a container has open shows as a file of its overlay, under another device number.
#[test]
fn a_file_of_a_layer_that_is_open_through_the_overlay() {
    let _turn = turn();
    if !requires(&[Need::Root, Need::Loop]) {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let top = directory.path();
    run("mount", &["-t", "tmpfs", "none", top.to_str().unwrap()]);
    for name in ["lower", "upper", "work", "merged"] {
        std::fs::create_dir(top.join(name)).unwrap();
    }
    let at = |name: &str| top.join(name).display().to_string();
    let options = format!("lowerdir={},upperdir={},workdir={}", at("lower"), at("upper"), at("work"));
    let mounted = std::process::Command::new("mount")
        .args(["-t", "overlay", "none", "-o", &options, &at("merged")])
        .status()
        .unwrap();
    let [layer, merged] = ["upper/data", "merged/data"].map(|name| top.join(name));
    let outcome = mounted.success().then(|| {
        std::fs::write(&merged, vec![7; 1 << 20]).unwrap();
        let authorized = |held: &Path, target: &Path| {
            let holder = Holder::start(CHILD, Hold::Writing, held);
            let authorized = authorize(&look(target), Access::Write, &overwrite());
            drop(holder);
            authorized
        };
        [authorized(&merged, &layer), authorized(&layer, &merged)]
    });
    let free = mounted.success().then(|| authorize(&look(&layer), Access::Write, &overwrite()));
    let backing = mounted.success().then(|| {
        let device = LoopDevice::builder().over(&layer).create().unwrap();
        let authorized = authorize(&look(&merged), Access::Write, &overwrite());
        drop(device);
        authorized
    });
    for place in [&at("merged"), top.to_str().unwrap()] {
        let _ = std::process::Command::new("umount").arg(place).status();
    }
    for authorized in outcome.into_iter().flatten() {
        assert_eq!(authorized.unwrap_err().code, "in-use");
    }
    assert!(free.is_none_or(|authorized| authorized.is_ok()));
    assert!(backing.is_none_or(|authorized| authorized.unwrap_err().code == "backing-file"));
}

/// A filesystem that shows the directory `below` at `point`; unmounted in the end.
struct View<'path> {
    point: &'path Path,
}

impl Drop for View<'_> {
    fn drop(&mut self) {
        let _ = std::process::Command::new("umount").arg(self.point).status();
    }
}

/// The kernel and other processes know the file by another device number. Writing to it would destroy what they keep in it.
#[test]
fn a_file_that_is_in_use_below_the_filesystem_that_shows_it() {
    let _turn = turn();
    if !requires(&[Need::Root, Need::Loop, Need::Tool("bindfs")]) {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let [below, point] = ["below", "shown"].map(|name| directory.path().join(name));
    for place in [&below, &point] {
        std::fs::create_dir(place).unwrap();
    }
    let [image, shown] = [&below, &point].map(|place| place.join("disk.img"));
    std::fs::write(&image, vec![7; 1 << 20]).unwrap();
    run("bindfs", &[below.to_str().unwrap(), point.to_str().unwrap()]);
    let view = View { point: &point };
    let code = || authorize(&look(&shown), Access::Write, &overwrite()).map_err(|refusal| refusal.code);
    assert_eq!(code(), Ok(()));
    let device = LoopDevice::builder().over(&image).create().unwrap();
    assert_eq!(code(), Err("backing-file"));
    drop(device);
    let holder = Holder::start(CHILD, Hold::Writing, &image);
    assert_eq!(code(), Err("in-use"));
    drop(holder);
    // Our own claim makes the program behind the filesystem open the file.
    drop(claimed(&shown, Access::Write, &overwrite()).open(write_mode()).unwrap());
    drop(view);
}

/// Between two opens of a claim another process may open the target, and nothing prevents it.
#[test]
fn a_file_that_a_filesystem_is_mounted_from_under_an_older_name() {
    let _turn = turn();
    if !requires(&[Need::Root, Need::Erofs]) {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let [named, renamed] = ["image", "renamed"].map(|name| directory.path().join(name));
    rdsk_testkit::holder::write_image(&named, MIB);
    let before = std::fs::read(&named).unwrap();
    let holder = Holder::start(CHILD, Hold::Mounted, &named);
    let refused = |path: &Path, code: &str, words: &str| {
        let refusal = refusal(path, &overwrite());
        assert!(
            refusal.code == code && refusal.message.contains(words),
            "{}: {}",
            refusal.code,
            refusal.message
        );
    };
    refused(&named, "mounted", "image.mounted");
    std::fs::rename(&named, &renamed).unwrap();
    std::fs::copy(&renamed, &named).unwrap();
    refused(&renamed, "in-use", "image.mounted is mounted from it");
    // By its name the new file is what is mounted.
    refused(&named, "mounted", "image.mounted");
    // Below a loop device the kernel cannot be asked.
    if loops() {
        let device = LoopDevice::builder().over(&renamed).create().unwrap();
        let refusal = refusal(device.path(), &destroy(renamed.to_str().unwrap()));
        assert_eq!(refusal.code, "cannot-prove-unused", "{}", refusal.message);
        assert!(refusal.message.contains("it is an image of EROFS"), "{}", refusal.message);
    }
    assert_eq!(std::fs::read(&renamed).unwrap(), before);
    drop(holder);
    drop(claimed(&renamed, Access::Write, &overwrite()).open(write_mode()).unwrap());
}

#[test]
fn every_open_for_writing_checks_uses_again() {
    let _turn = turn();
    if !loops() {
        return;
    }
    let device = device();
    let claim = claimed(device.path(), Access::Write, &word(&device));
    drop(claim.open(write_mode()).unwrap());
    let holder = Holder::start(CHILD, Hold::Writing, device.path());
    match claim.open(write_mode()).unwrap_err() {
        TargetError::Refused(refusal) => {
            assert_eq!(refusal.code, "in-use");
            assert!(refusal.message.contains(&format!("process {} (", holder.id())), "{}", refusal.message);
        }
        other => panic!("{other}"),
    }
    drop(holder);
    claim.open(write_mode()).unwrap();
}

/// A program may make something on the device between two openings, and close it. Nothing else shows that.
#[test]
fn labels_are_looked_for_again_when_the_last_look_is_old() {
    let _turn = turn();
    if !loops() || !requires(&[Need::Ext4]) {
        return;
    }
    let device = device();
    let claim = claimed(device.path(), Access::Write, &word(&device));
    let opened_later = || {
        // No longer than this is a look trusted; later is as good.
        std::thread::sleep(std::time::Duration::from_millis(2100));
        claim.open(write_mode())
    };
    let refused = |opened: Result<_, TargetError>| match opened.unwrap_err() {
        TargetError::Refused(refusal) => refusal,
        other => panic!("{other}"),
    };
    drop(opened_later().unwrap());
    write_lvm_label(device.path());
    let before = device.content_hash().unwrap();
    assert_eq!(refused(opened_later()).code, "member");
    let again = refused(claim.open(write_mode()));
    assert!(again.code == "member" && again.message.contains("(LVM2_member)"), "{}", again.message);
    assert_eq!(device.content_hash().unwrap(), before);
    run("wipefs", &["--quiet", "--all", device.path().to_str().unwrap()]);
    drop(opened_later().unwrap());
    device.mkfs_ext4("new").unwrap();
    let refusal = refused(opened_later());
    assert_eq!(refusal.code, "changed");
    assert!(refusal.message.contains("(ext4 \"new\")"), "{}", refusal.message);
    assert!(refusal.hint.contains("rdsk info"), "{}", refusal.hint);
}
