//! Runs `lsblk`, `wipefs`, `blkid` and `partx` of util-linux, and `dumpe2fs` of e2fsprogs, which know the on-disk formats better than we should. It runs them
//! for reading only, from the system's directories, with limits on time and output.

use crate::labels::signature::{self, Signature};
use crate::roots::ToolSource;
use serde::Deserialize;
use std::io::{self, Read as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// A program that has not answered by then counts as failed: a disk that hangs must not hang us. On a machine whose processors are taken,
/// or that has many disks, `lsblk` takes longer than 5 s.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(20);
const MAX_ANSWER_BYTES: u64 = 4 << 20;

/// Why a program gives no answer, or none that helps.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ToolError {
    #[error("{0} is not installed")]
    Missing(&'static str),
    #[error("{program}: {source}")]
    Io { program: &'static str, source: io::Error },
    #[error("{program}: no answer within {} s", TIMEOUT.as_secs())]
    TooSlow { program: &'static str },
    #[error("{0}: failed without a message")]
    Silent(&'static str),
    /// The first line of what it printed, behind its name.
    #[error("{message}")]
    Failed { message: String },
    #[error("{program} gave no valid answer ({source})")]
    Invalid { program: &'static str, source: serde_json::Error },
    #[error("lsblk does not know the device")]
    UnknownDevice,
    #[error("dumpe2fs says nothing of it")]
    NoProtection,
}

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

pub(crate) fn lsblk(source: &ToolSource, path: &Path, name: &str) -> Result<Lsblk, ToolError> {
    const COLUMNS: &str = "NAME,SERIAL,WWN,MODEL,FSTYPE,LABEL,PARTUUID,MOUNTPOINT";
    let rows = lsblk_rows(&answer(source, "lsblk", &["--json", "--output", COLUMNS], Some(path), name)?)?;
    rows.into_iter().next().ok_or(ToolError::UnknownDevice)
}

/// What `lsblk` reports about every device, each by its kernel name, in no order.
pub(crate) fn lsblk_all(source: &ToolSource) -> Result<Vec<Lsblk>, ToolError> {
    const COLUMNS: &str = "KNAME,SERIAL,WWN,FSTYPE,LABEL,UUID,PARTUUID,PARTLABEL";
    lsblk_rows(&answer(source, "lsblk", &["--json", "--list", "--all", "--output", COLUMNS], None, "*")?)
}

fn lsblk_rows(text: &str) -> Result<Vec<Lsblk>, ToolError> {
    #[derive(Deserialize)]
    struct Answer {
        blockdevices: Vec<Lsblk>,
    }
    let answer = serde_json::from_str(text).map(|answer: Answer| answer.blockdevices);
    answer.map_err(|source| ToolError::Invalid { program: "lsblk", source })
}

/// What `blkid --probe` reads from the device itself. `lsblk` reports nothing if udev does not run.
pub(crate) fn blkid(source: &ToolSource, path: &Path, name: &str) -> Result<Lsblk, ToolError> {
    answer(source, "blkid", &["--probe", "--output", "export"], Some(path), name)
        .map(|text| parse_blkid(&text))
}

/// The same of a part of a device, in bytes; empty if nothing is found there, of which blkid says nothing.
pub(crate) fn blkid_within(
    source: &ToolSource,
    path: &Path,
    name: &str,
    begin: u64,
    size_bytes: u64,
) -> Result<Lsblk, ToolError> {
    let (offset, size) = (begin.to_string(), size_bytes.to_string());
    let arguments = ["--probe", "--output", "export", "--offset", &offset, "--size", &size];
    match answer(source, "blkid", &arguments, Some(path), &format!("{name}@{begin}")) {
        Err(ToolError::Silent(_)) => Ok(Lsblk::default()),
        answer => answer.map(|text| parse_blkid(&text)),
    }
}

/// The lines `KEY=value` that `blkid` prints of one device.
fn parse_blkid(text: &str) -> Lsblk {
    let mut row = Lsblk::default();
    for (key, value) in text.lines().filter_map(|line| line.split_once('=')) {
        let field = match key {
            "TYPE" => &mut row.fstype,
            "UUID" => &mut row.uuid,
            "LABEL" => &mut row.label,
            "PART_ENTRY_UUID" => &mut row.partuuid,
            "PART_ENTRY_NAME" => &mut row.partlabel,
            _ => continue,
        };
        *field = Some(unescaped(value));
    }
    row
}

/// `my\ disk` is `my disk`: the format is meant for a shell.
fn unescaped(value: &str) -> String {
    let mut text = String::with_capacity(value.len());
    let mut letters = value.chars();
    while let Some(letter) = letters.next() {
        text.extend(if letter == '\\' { letters.next() } else { Some(letter) });
    }
    text
}

/// The partitions in the table on a device, whether the kernel shows them or not: lines of number, first sector, and sectors. None
/// if what looks like a table is none, as the copy of a GPT that is left at the end.
pub(crate) fn partx(source: &ToolSource, path: &Path, name: &str) -> Result<String, ToolError> {
    // With the dash it reads the table on a partition, instead of the entry of the partition.
    let arguments = ["--raw", "--noheadings", "--output", "NR,START,SECTORS", "-"];
    match answer(source, "partx", &arguments, Some(path), name) {
        Err(ToolError::Failed { message }) if message.ends_with("failed to read partition table") => {
            Ok(String::new())
        }
        answer => answer,
    }
}

/// What `dumpe2fs` of e2fsprogs prints of the superblock of an ext4, and of the block of its multi-mount protection.
pub(crate) fn dumpe2fs(source: &ToolSource, path: &Path, name: &str) -> Result<String, ToolError> {
    answer(source, "dumpe2fs", &["-h"], Some(path), name)
}

/// The signatures that `wipefs --no-act` finds on a device.
pub(crate) fn wipefs(source: &ToolSource, path: &Path, name: &str) -> Result<Vec<Signature>, ToolError> {
    let text = answer(source, "wipefs", &["--no-act", "--json"], Some(path), name)?;
    signature::parse(&text).map_err(|source| ToolError::Invalid { program: "wipefs", source })
}

/// What a program prints; `name` stands for the device where answers are prepared.
fn answer(
    source: &ToolSource,
    program: &'static str,
    arguments: &[&str],
    path: Option<&Path>,
    name: &str,
) -> Result<String, ToolError> {
    match source {
        ToolSource::Answers(answers) => {
            answers.get(&format!("{program} {name}")).cloned().ok_or(ToolError::Missing(program))
        }
        ToolSource::Directories(directories) => {
            let mut places = directories.iter().map(|directory| directory.join(program));
            let place = places.find(|path| path.is_file()).ok_or(ToolError::Missing(program))?;
            let search = std::env::join_paths(directories)
                .map_err(|error| ToolError::Io { program, source: io::Error::other(error) })?;
            let mut command = Command::new(place);
            command.args(arguments).arg("--").args(path).env_clear().env("LC_ALL", "C").env("PATH", search);
            run(program, &mut command)
        }
    }
}

fn run(program: &'static str, command: &mut Command) -> Result<String, ToolError> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|source| ToolError::Io { program, source })?;
    let out = child.stdout.take().and_then(read_in_thread);
    let err = child.stderr.take().and_then(read_in_thread);
    let success = wait(program, child)? && out.is_some();
    let text = |reader: Option<thread::JoinHandle<String>>| {
        reader.and_then(|reader| reader.join().ok()).unwrap_or_default()
    };
    let (out, err) = (text(out), text(err));
    match err.lines().next() {
        _ if success => Ok(out),
        None => Err(ToolError::Silent(program)),
        // Most programs begin their messages with their own name.
        Some(line) if line.strip_prefix(program).is_some_and(|rest| rest.starts_with(": ")) => {
            Err(ToolError::Failed { message: line.to_owned() })
        }
        Some(line) => Err(ToolError::Failed { message: format!("{program}: {line}") }),
    }
}

/// Whether the program succeeded. One that is too slow is killed and left to a thread: if the kernel does not let it
/// go, waiting here would only make two that hang.
fn wait(program: &'static str, mut child: Child) -> Result<bool, ToolError> {
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
                return Err(ToolError::TooSlow { program });
            }
            Err(source) => return Err(ToolError::Io { program, source }),
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
        let (_kept, source) = source_with("dumpe2fs", "echo \"$LC_ALL $HOME $*\"");
        assert_eq!(dumpe2fs(&source, Path::new("/dev/x"), "x").unwrap(), "C  -h -- /dev/x\n");
    }

    #[test]
    fn failures_have_reasons() {
        let (_kept, source) = source_with("wipefs", "echo 'wipefs: error: no' >&2; exit 1");
        let words = |error: ToolError| error.to_string();
        assert_eq!(wipefs(&source, Path::new("/dev/x"), "x").map_err(words), Err("wipefs: error: no".into()));
        let missing = lsblk(&source, Path::new("/dev/x"), "x").unwrap_err();
        assert_eq!(words(missing), "lsblk is not installed");
        let (_kept, source) = source_with("lsblk", "echo '{\"blockdevices\": ['");
        let invalid = words(lsblk(&source, Path::new("/dev/x"), "x").unwrap_err());
        assert!(invalid.starts_with("lsblk gave no valid answer ("), "{invalid}");
        let (_kept, source) = source_with("wipefs", "echo 'no' >&2; exit 1");
        assert_eq!(wipefs(&source, Path::new("/dev/x"), "x").map_err(words), Err("wipefs: no".into()));
        let (_kept, source) = source_with("wipefs", "exit 1");
        let silent = wipefs(&source, Path::new("/dev/x"), "x").map_err(words);
        assert_eq!(silent, Err("wipefs: failed without a message".into()));
    }

    #[test]
    fn the_answer_of_blkid_is_read() {
        // blkid of util-linux 2.38 on a partition with ext2, 2026-11-21.
        let row = parse_blkid(
            "DEVNAME=/dev/vda2\nLABEL=my\\ label\nUUID=548a6312-5dd2-48d2-ab6b-bc5a28959f61\nVERSION=1.0\n\
             BLOCK_SIZE=1024\nTYPE=ext2\nUSAGE=filesystem\nPART_ENTRY_SCHEME=gpt\n\
             PART_ENTRY_UUID=4a42fe38-c994-5045-8e99-5698dcf16ec0\nPART_ENTRY_NUMBER=2\n",
        );
        assert_eq!(row.label.as_deref(), Some("my label"));
        assert_eq!(row.fstype.as_deref(), Some("ext2"));
        assert_eq!(row.uuid.as_deref(), Some("548a6312-5dd2-48d2-ab6b-bc5a28959f61"));
        assert_eq!(row.partuuid.as_deref(), Some("4a42fe38-c994-5045-8e99-5698dcf16ec0"));
        assert_eq!(row.partlabel, None);
        assert!(parse_blkid("").uuid.is_none());
    }

    #[test]
    fn where_nothing_is_found_is_no_failure() {
        let (_kept, source) = source_with("blkid", "exit 2");
        let found = |source| blkid_within(source, Path::new("/dev/x"), "x", 512, 1024).map(|row| row.fstype);
        assert_eq!(found(&source).unwrap(), None, "stderr is empty");
        let (_kept, source) = source_with("blkid", "echo 'blkid: error: no' >&2; exit 4");
        assert_eq!(found(&source).unwrap_err().to_string(), "blkid: error: no");
        let (_kept, source) = source_with("blkid", "echo \"TYPE=$*\"");
        assert_eq!(
            found(&source).unwrap().unwrap(),
            "--probe --output export --offset 512 --size 1024 -- /dev/x"
        );
        let (_kept, source) =
            source_with("partx", "echo 'partx: /dev/x: failed to read partition table' >&2; exit 1");
        assert_eq!(partx(&source, Path::new("/dev/x"), "x").unwrap(), "");
    }

    #[test]
    fn a_program_that_hangs_is_given_up() {
        let (_kept, source) = source_with("wipefs", "exec /bin/sleep 600");
        let start = Instant::now();
        let slow = wipefs(&source, Path::new("/dev/x"), "x").unwrap_err();
        assert_eq!(slow.to_string(), "wipefs: no answer within 20 s");
        assert!(start.elapsed() < TIMEOUT * 60);
    }
}
