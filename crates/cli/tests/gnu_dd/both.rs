//! Runs one command line through GNU dd and through rdsk, each in a fresh directory with the same files, and compares all that
//! counts: exit code, standard output, the lines of counts, and every file.

use super::lines::Line;
use rustix::net::{AddressFamily, SocketFlags, SocketType};
use std::collections::BTreeMap;
use std::fs;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Command, Stdio};

pub(crate) struct Both {
    directory: tempfile::TempDir,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: Vec<u8>,
    /// Standard error, and the counts in it.
    pub(crate) said: String,
    pub(crate) counts: String,
    pub(crate) files: BTreeMap<String, Vec<u8>>,
}

impl Both {
    pub(crate) fn new() -> Self {
        Self { directory: tempfile::tempdir().expect("a directory for files") }
    }

    /// What differs, in words; nothing if all is the same.
    pub(crate) fn difference(&self, line: &Line) -> Option<String> {
        let theirs = self.ran(redirected(&["dd"], line.redirection), &line.operands, &line.packets);
        let rdsk = [env!("CARGO_BIN_EXE_rdsk"), "dd", "--explain=off"];
        let ours = self.ran(redirected(&rdsk, line.redirection), &line.operands, &line.packets);
        // Nothing was begun where both fail, and rdsk sees that before it opens the output.
        let is_left = ours.code == theirs.code && ours.counts.is_empty() && ours.files == self.untouched();
        let is_same = (ours.code, &ours.stdout, &ours.files) == (theirs.code, &theirs.stdout, &theirs.files)
            && (ours.counts == theirs.counts || theirs.counts.is_empty());
        let is_right = is_same || (theirs.code == Some(1) && is_left);
        (!is_right).then(|| {
            let sizes = |ran: &Ran| {
                let files: Vec<String> =
                    ran.files.iter().map(|(name, bytes)| format!("{name} {}", bytes.len())).collect();
                format!("{:?}, {} B out, {:?}, {}", ran.code, ran.stdout.len(), ran.said, files.join(", "))
            };
            format!("{line:?}\n  GNU:  {}\n  rdsk: {}", sizes(&theirs), sizes(&ours))
        })
    }

    pub(crate) fn rdsk(&self, operands: &[String]) -> Ran {
        let mut rdsk = Command::new(env!("CARGO_BIN_EXE_rdsk"));
        rdsk.args(["dd", "--explain=off"]);
        self.ran(rdsk, operands, &[])
    }

    fn untouched(&self) -> BTreeMap<String, Vec<u8>> {
        let place = self.directory.path().join("untouched");
        let _ = fs::remove_dir_all(&place);
        prepare(&place);
        files_of(&place)
    }

    fn ran(&self, mut command: Command, operands: &[String], packets: &[usize]) -> Ran {
        let place = self.directory.path().join("files");
        let _ = fs::remove_dir_all(&place);
        prepare(&place);
        let has_input = operands.iter().any(|operand| operand.starts_with("if="));
        let stdin = if has_input { Stdio::null() } else { Stdio::from(packets_on_a_socket(packets)) };
        let output = command
            .args(operands)
            .current_dir(&place)
            .env("LC_ALL", "C")
            .stdin(stdin)
            .output()
            .expect("dd and rdsk can be started");
        let said = without_progress(&String::from_utf8_lossy(&output.stderr));
        Ran {
            code: output.status.code(),
            stdout: output.stdout,
            counts: counts(&said),
            said,
            files: files_of(&place),
        }
    }
}

/// A program that a shell starts with its standard descriptors changed.
fn redirected(words: &[&str], redirection: &str) -> Command {
    if redirection.is_empty() {
        let mut command = Command::new(words[0]);
        command.args(&words[1..]);
        return command;
    }
    let mut command = Command::new("sh");
    command.args(["-c", &format!("exec \"$@\" {redirection}"), "sh"]).args(words);
    command
}

/// dd's lines of counts among others, without sizes in words, time and rate.
pub(crate) fn counts(said: &str) -> String {
    let is_count = |line: &&str| {
        line.ends_with(" records in")
            || line.ends_with(" records out")
            || (line.contains(" copied, ") && line.ends_with("B/s"))
    };
    let bytes =
        |line: &str| line.split_once(" byte").map_or(line.to_owned(), |(bytes, _)| format!("{bytes} bytes"));
    said.lines().filter(is_count).map(|line| bytes(line) + "\n").collect()
}

/// Messages without what `status=progress` prints after each second, which only a machine that stands still sees of such small copies:
/// from a carriage return up to the next one, or to the end of the line.
fn without_progress(stderr: &str) -> String {
    let mut pieces = stderr.split('\r');
    let first = pieces.next().unwrap_or_default();
    let ends = pieces.filter_map(|piece| piece.split_once('\n')).map(|(_, end)| end);
    std::iter::once(first).chain(ends).collect()
}

#[test]
fn pieces_of_progress_are_left_out_and_nothing_else_is() {
    for (stderr, left) in [
        ("1+0 records in\n", "1+0 records in\n"),
        ("\r10 bytes copied, 1 s, 10 B/s\n1+0 records in\n", "1+0 records in\n"),
        ("\r1 byte copied\r2 bytes copied  \n1+0 records in\nend\n", "1+0 records in\nend\n"),
        ("dd: no\n\r1 byte copied\ndd: more\n\r2 bytes copied\nend\n", "dd: no\ndd: more\nend\n"),
        ("dd: no\n\r1 byte copied", "dd: no\n"),
    ] {
        assert_eq!(without_progress(stderr), left, "{stderr:?}");
    }
}

fn prepare(place: &Path) {
    fs::create_dir_all(place.join("dir")).expect("a directory");
    let bytes =
        |length: usize, first: u8| (first..=250).chain(0..first).cycle().take(length).collect::<Vec<u8>>();
    let holes = [vec![b'x'; 1000], vec![0; 9000], vec![b'y'; 77]].concat();
    let files: [(&str, Vec<u8>); 6] = [
        ("a=b ~{x}", bytes(600, 3)),
        ("in", bytes(5000, 1)),
        ("out", bytes(9000, 2)),
        ("holes", holes),
        ("zeros", vec![0; 8192]),
        ("empty", Vec::new()),
    ];
    for (name, content) in files {
        fs::write(place.join(name), content).expect("a file");
    }
    std::os::unix::fs::symlink("in", place.join("link")).expect("a link");
}

fn files_of(place: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(place).expect("the directory").flatten();
    let files = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file()));
    files
        .map(|entry| {
            let name = entry.file_name().to_string_lossy().into_owned();
            (name, fs::read(entry.path()).expect("a file that was listed"))
        })
        .collect()
}

/// A socket that gives one packet per read and then ends: unlike those of a pipe, its reads do not depend on when they come.
fn packets_on_a_socket(packets: &[usize]) -> OwnedFd {
    let kind = SocketType::SEQPACKET;
    let (ours, theirs) = rustix::net::socketpair(AddressFamily::UNIX, kind, SocketFlags::CLOEXEC, None)
        .expect("a pair of sockets");
    for (index, &length) in packets.iter().enumerate() {
        let bytes: Vec<u8> = (0..=250).cycle().skip(index).take(length).collect();
        rustix::net::send(&ours, &bytes, rustix::net::SendFlags::empty()).expect("a small packet fits");
    }
    theirs
}
