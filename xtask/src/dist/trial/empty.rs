//! The program alone: a root that holds nothing else, as in an image FROM scratch. First without /proc and /sys, then with them and
//! without any capability, on a root that can only be read.

use crate::dist::PROGRAM;
use crate::tools;
use anyhow::{Context as _, Result, ensure};
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::Path;
use std::process::{Command, Output};

/// The user of a pod.
const USER: u32 = 65532;
/// Command lines, each with its exit code.
const BARE: &[(&str, i32)] = &[
    ("--version", 0),
    // What was checked is opened again through /proc, so that it is the same.
    ("run /data --size 64M --budget 5s", 3),
    ("run sim:linux-disk --only headline", 0),
    ("sim list", 0),
    ("list", 3),
    ("info", 0),
    ("info /data", 0),
    ("run /dev/sdz --budget 5s", 3),
    ("man run", 0),
    ("completions bash", 0),
];
/// As a pod has it: bind mounts over empty directories, and a root that is read only.
const POD: &str = "mount --bind $0 $0; mount --rbind /proc $0/proc; mount --rbind /sys $0/sys; mount --bind $0/../data $0/data; \
                   mount -o remount,bind,ro $0; exec chroot --userspec=65532:65532 --groups= $0 \"$@\"";

/// Runs the program in an empty tree.
///
/// # Errors
/// When it ends otherwise than it should, or panics.
pub(super) fn run(place: &Path, directory: &Path) -> Result<()> {
    let root = directory.join("root");
    for name in ["root/data", "root/proc", "root/sys", "data"] {
        fs::create_dir_all(directory.join(name))?;
    }
    chown(directory.join("data"), Some(USER), Some(USER))?;
    fs::set_permissions(directory, fs::Permissions::from_mode(0o755))?;
    fs::copy(place.join(PROGRAM), root.join(PROGRAM))?;
    for (line, code) in BARE {
        let mut command = Command::new("chroot");
        command.arg(&root);
        ends_with(&mut command, line, *code)?;
    }
    for (line, code) in [
        ("run /data --size 64M --budget 10s --no-history --quiet", 0),
        ("run /data --size 64M --budget 5s --no-history --openmetrics /data/rdsk.prom", 0),
        ("run / --budget 5s --no-history", 3),
    ] {
        let mut command = Command::new("unshare");
        command.args(["--mount", "--propagation", "private", "sh", "-ec", POD]).arg(&root);
        ends_with(&mut command, line, code)?;
    }
    Ok(())
}

fn ends_with(starter: &mut Command, line: &str, code: i32) -> Result<()> {
    starter.arg(format!("/{PROGRAM}")).args(line.split(' ')).env_clear().env("PATH", tools::search_path());
    let Output { status, stdout, stderr } =
        starter.output().with_context(|| format!("cannot start {starter:?}"))?;
    let (page, said) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    println!("rdsk {line}: {status}");
    page.lines().take(4).for_each(|line| println!("    {line}"));
    said.lines().for_each(|line| println!("    {line}"));
    ensure!(status.code() == Some(code), "rdsk {line}: {status}, and not {code}");
    ensure!(!said.contains("panicked"), "rdsk {line} panics");
    let is_told = code == 0 || said.contains("error: ") && said.contains("hint: ");
    ensure!(is_told, "rdsk {line} fails without a word");
    Ok(())
}
