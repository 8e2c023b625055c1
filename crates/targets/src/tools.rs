//! Runs `lsblk`, `wipefs`, `blkid` and `partx` of util-linux, and `dumpe2fs` of e2fsprogs, which know the on-disk formats better than we should. It runs them
//! for reading only, from the system's directories, with limits on time and output.

use crate::roots::ToolSource;
use serde::Deserialize;
use std::io::Read as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// A program that has not answered by then counts as failed: a disk that hangs must not hang us. On a machine whose processors are taken,
/// or that has many disks, `lsblk` takes longer than 5 s.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(20);
const MAX_ANSWER_BYTES: u64 = 4 << 20;
const NO_MESSAGE: &str = "failed without a message";

/// A device as `lsblk` shows it.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Lsblk {
    /// Kernel name, or device mapper's name.
    #[serde(alias = "kname")]
    pub(crate) name: Option<String>,
    /// Serial number, from udev's database where that exists.
    pub(crate) serial: Option<String>,
    pub(crate) wwn: Option<String>,
    pub(crate) model: Option<String>,
    pub(crate) fstype: Option<String>,
    pub(crate) label: Option<String>,
    /// UUID of the content; of a member of an array that of the array.
    pub(crate) uuid: Option<String>,
    pub(crate) partuuid: Option<String>,
    pub(crate) partlabel: Option<String>,
    /// Where it is mounted; `[SWAP]` for swap.
    pub(crate) mountpoint: Option<String>,
    pub(crate) children: Vec<Lsblk>,
}

impl Lsblk {
    pub(crate) fn flat(&self) -> Vec<&Self> {
        let mut list = vec![self];
        let mut index = 0;
        while let Some(node) = list.get(index).copied() {
            list.extend(&node.children);
            index += 1;
        }
        list
    }
}

pub(crate) fn lsblk(source: &ToolSource, path: &Path, name: &str) -> Result<Lsblk, String> {
    const COLUMNS: &str = "NAME,SERIAL,WWN,MODEL,FSTYPE,LABEL,PARTUUID,MOUNTPOINT";
    let rows = lsblk_rows(&answer(source, "lsblk", &["--json", "--output", COLUMNS], Some(path), name)?)?;
    rows.into_iter().next().ok_or_else(|| "lsblk does not know the device".to_owned())
}

/// What `lsblk` reports about every device, each by its kernel name, in no order.
pub(crate) fn lsblk_all(source: &ToolSource) -> Result<Vec<Lsblk>, String> {
    const COLUMNS: &str = "KNAME,SERIAL,WWN,FSTYPE,LABEL,UUID,PARTUUID,PARTLABEL";
    lsblk_rows(&answer(source, "lsblk", &["--json", "--list", "--all", "--output", COLUMNS], None, "*")?)
}

fn lsblk_rows(text: &str) -> Result<Vec<Lsblk>, String> {
    #[derive(Deserialize)]
    struct Answer {
        blockdevices: Vec<Lsblk>,
    }
    let answer: Answer =
        serde_json::from_str(text).map_err(|error| format!("lsblk gave no valid answer ({error})"))?;
    Ok(answer.blockdevices)
}

/// What `blkid --probe` reads from the devices themselves: lines `KEY=value`, with a blank line between devices, each
/// starting with `DEVNAME=`. `lsblk` reports nothing if udev does not run. `name` stands for the devices.
pub(crate) fn blkid(source: &ToolSource, path: &Path, name: &str) -> Result<String, String> {
    answer(source, "blkid", &["--probe", "--output", "export"], Some(path), name)
}

/// The same of a part of a device, in bytes; empty if nothing is found there, of which blkid says nothing.
pub(crate) fn blkid_within(
    source: &ToolSource,
    path: &Path,
    name: &str,
    begin: u64,
    size_bytes: u64,
) -> Result<String, String> {
    let (offset, size) = (begin.to_string(), size_bytes.to_string());
    let arguments = ["--probe", "--output", "export", "--offset", &offset, "--size", &size];
    match answer(source, "blkid", &arguments, Some(path), &format!("{name}@{begin}")) {
        Err(reason) if reason.ends_with(NO_MESSAGE) => Ok(String::new()),
        answer => answer,
    }
}

/// The partitions in the table on a device, whether the kernel shows them or not: lines of number, first sector, and sectors. None
/// if what looks like a table is none, as the copy of a GPT that is left at the end.
pub(crate) fn partx(source: &ToolSource, path: &Path, name: &str) -> Result<String, String> {
    // With the dash it reads the table on a partition, instead of the entry of the partition.
    let arguments = ["--raw", "--noheadings", "--output", "NR,START,SECTORS", "-"];
    match answer(source, "partx", &arguments, Some(path), name) {
        Err(reason) if reason.ends_with("failed to read partition table") => Ok(String::new()),
        answer => answer,
    }
}

/// What `dumpe2fs` of e2fsprogs prints of the superblock of an ext4, and of the block of its multi-mount protection.
pub(crate) fn dumpe2fs(source: &ToolSource, path: &Path, name: &str) -> Result<String, String> {
    answer(source, "dumpe2fs", &["-h"], Some(path), name)
}

/// What `wipefs --no-act` reports about a device: JSON, or nothing if it finds nothing.
pub(crate) fn wipefs(source: &ToolSource, path: &Path, name: &str) -> Result<String, String> {
    answer(source, "wipefs", &["--no-act", "--json"], Some(path), name)
}

fn answer(
    source: &ToolSource,
    program: &str,
    arguments: &[&str],
    path: Option<&Path>,
    name: &str,
) -> Result<String, String> {
    let missing = || format!("{program} is not installed");
    match source {
        ToolSource::Answers(answers) => {
            answers.get(&format!("{program} {name}")).cloned().ok_or_else(missing)
        }
        ToolSource::Directories(directories) => {
            let mut places = directories.iter().map(|directory| directory.join(program));
            let found = places.find(|path| path.is_file()).ok_or_else(missing)?;
            let search = std::env::join_paths(directories).map_err(|error| format!("{program}: {error}"))?;
            let mut command = Command::new(found);
            command.args(arguments).arg("--").args(path).env_clear().env("LC_ALL", "C").env("PATH", search);
            run(&mut command).map_err(|reason| {
                // Most programs begin their messages with their own name.
                let named = reason.strip_prefix(program).is_some_and(|rest| rest.starts_with(": "));
                if named { reason } else { format!("{program}: {reason}") }
            })
        }
    }
}

fn run(command: &mut Command) -> Result<String, String> {
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| error.to_string())?;
    let out = child.stdout.take().and_then(read_in_thread);
    let err = child.stderr.take().and_then(read_in_thread);
    let success = wait(child)? && out.is_some();
    let text = |reader: Option<thread::JoinHandle<String>>| {
        reader.and_then(|reader| reader.join().ok()).unwrap_or_default()
    };
    let (out, err) = (text(out), text(err));
    if success { Ok(out) } else { Err(err.lines().next().unwrap_or(NO_MESSAGE).to_owned()) }
}

/// Whether the program succeeded. One that is too slow is killed and left to a thread: if the kernel does not let it
/// go, waiting here would only make two that hang.
fn wait(mut child: Child) -> Result<bool, String> {
    let end = Instant::now() + TIMEOUT;
    let mut pause = Duration::from_millis(1);
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Ok(status.success()),
            Ok(None) if Instant::now() < end => thread::sleep(pause),
            Ok(None) => {
                // The program may have ended just now, which is as good.
                let _ = child.kill();
                let _ = thread::Builder::new().spawn(move || child.wait());
                return Err(format!("no answer within {} s", TIMEOUT.as_secs()));
            }
            Err(error) => return Err(error.to_string()),
        }
        pause = (pause * 2).min(Duration::from_millis(20));
    }
}

/// Without a thread the pipe is closed, and the program fails: no answer, which is a doubt and not an error.
fn read_in_thread(pipe: impl std::io::Read + Send + 'static) -> Option<thread::JoinHandle<String>> {
    let read = move || {
        let mut bytes = Vec::new();
        // A pipe that breaks ends the text, and text that ends early does not parse.
        let _ = pipe.take(MAX_ANSWER_BYTES).read_to_end(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    };
    thread::Builder::new().spawn(read).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    /// A directory with one program. A child process copies it into place: a program that another test starts just
    /// now could inherit a descriptor of ours that is open for writing, and the script would be "busy".
    fn source_with(program: &str, script: &str) -> (tempfile::TempDir, ToolSource) {
        let directory = tempfile::tempdir().unwrap();
        let (source, path) = (directory.path().join("source"), directory.path().join(program));
        std::fs::write(&source, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&source, std::fs::Permissions::from_mode(0o755)).unwrap();
        assert!(Command::new("cp").arg("-p").args([&source, &path]).status().unwrap().success());
        let source = ToolSource::Directories(vec![directory.path().into()]);
        (directory, source)
    }

    #[test]
    fn programs_get_a_clean_environment_and_the_path_last() {
        let (_kept, source) = source_with("wipefs", "echo \"$LC_ALL $HOME $*\"");
        assert_eq!(wipefs(&source, Path::new("/dev/x"), "x").unwrap(), "C  --no-act --json -- /dev/x\n");
    }

    #[test]
    fn failures_have_reasons() {
        let (_kept, source) = source_with("wipefs", "echo 'wipefs: error: no' >&2; exit 1");
        assert_eq!(wipefs(&source, Path::new("/dev/x"), "x").unwrap_err(), "wipefs: error: no");
        assert_eq!(lsblk(&source, Path::new("/dev/x"), "x").unwrap_err(), "lsblk is not installed");
        let (_kept, source) = source_with("lsblk", "echo '{\"blockdevices\": ['");
        assert!(lsblk(&source, Path::new("/dev/x"), "x").unwrap_err().contains("no valid answer"));
    }

    #[test]
    fn where_nothing_is_found_is_no_failure() {
        let (_kept, source) = source_with("blkid", "exit 2");
        assert_eq!(
            blkid_within(&source, Path::new("/dev/x"), "x", 512, 1024).unwrap(),
            "",
            "stderr is empty"
        );
        let (_kept, source) = source_with("blkid", "echo 'blkid: error: no' >&2; exit 4");
        assert_eq!(blkid_within(&source, Path::new("/dev/x"), "x", 0, 1).unwrap_err(), "blkid: error: no");
        let (_kept, source) = source_with("blkid", "echo \"$*\"");
        assert_eq!(
            blkid_within(&source, Path::new("/dev/x"), "x", 512, 1024).unwrap(),
            "--probe --output export --offset 512 --size 1024 -- /dev/x\n"
        );
        let (_kept, source) =
            source_with("partx", "echo 'partx: /dev/x: failed to read partition table' >&2; exit 1");
        assert_eq!(partx(&source, Path::new("/dev/x"), "x").unwrap(), "");
    }

    #[test]
    fn a_program_that_hangs_is_given_up() {
        let (_kept, source) = source_with("wipefs", "exec /bin/sleep 600");
        let start = Instant::now();
        assert!(wipefs(&source, Path::new("/dev/x"), "x").unwrap_err().contains("no answer within"));
        assert!(start.elapsed() < TIMEOUT * 60);
    }
}
