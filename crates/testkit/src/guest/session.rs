//! A booted guest: scripts go in and files come back over a virtio port, one scenario after the other. Nothing here waits
//! without a limit.

use std::collections::BTreeMap;
use std::fs::File;
use std::hash::{DefaultHasher, Hasher as _};
use std::io::{self, Read as _, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::campaign;
use super::outcome::ScenarioOutcome;
use super::qemu::Qemu;

/// How long an answer may be late after the guest's own limit: a process that still hangs then cannot be killed.
const GRACE: Duration = Duration::from_secs(30);
/// How often to check the guest while an answer is missing.
const LOOK: Duration = Duration::from_millis(250);
/// A larger answer is an error.
const MAX_FILE_BYTES: usize = 256 << 20;

/// A script for the guest with its time limit.
#[derive(Clone, Debug)]
pub struct Scenario {
    name: String,
    script: String,
    limit: Duration,
}

impl Scenario {
    /// A script that runs under `set -euo pipefail` with the functions of the prelude; 60 s at most.
    pub fn new(name: &str, script: impl Into<String>) -> Self {
        Self { name: name.into(), script: script.into(), limit: Duration::from_secs(60) }
    }

    /// Another limit.
    pub fn limit(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }
}

/// A running guest. On drop it is ended, and its disks are removed.
#[derive(Debug)]
pub struct Booted {
    // The fields are dropped in this order: QEMU, then its files, then the lock, so that the next guest may boot.
    qemu: Qemu,
    port: UnixStream,
    boot_took: Duration,
    bytes_back: u64,
    kernel: String,
    images: BTreeMap<String, PathBuf>,
    directory: TempDir,
    _turn: File,
}

/// What a guest holds until its end: its files, and the lock of this machine.
#[derive(Debug)]
pub(crate) struct Held {
    /// The kernel's release.
    pub(crate) kernel: String,
    /// The image behind each disk.
    pub(crate) images: BTreeMap<String, PathBuf>,
    /// The directory of the images.
    pub(crate) directory: TempDir,
    /// Locked while this guest runs.
    pub(crate) turn: File,
}

impl Booted {
    /// Waits until the guest reports that it is up.
    pub(crate) fn wait(
        qemu: Qemu,
        listener: &UnixListener,
        held: Held,
        start: Instant,
        limit: Duration,
    ) -> Self {
        let port = accept(&qemu, listener, start + limit);
        let Held { kernel, images, directory, turn } = held;
        let (boot_took, bytes_back) = (limit, 0);
        let mut guest = Self { qemu, port, boot_took, bytes_back, kernel, images, directory, _turn: turn };
        let line = guest.line(start + limit, "the guest comes up");
        assert!(line.starts_with("UP "), "the guest said {line:?}\n{}", guest.qemu.last_output());
        guest.boot_took = start.elapsed();
        campaign::note("boot", &guest.kernel, "up", guest.boot_took);
        guest
    }

    /// Time from the start of QEMU until the guest accepted scripts.
    pub fn boot_took(&self) -> Duration {
        self.boot_took
    }

    /// The kernel that runs in it.
    pub fn kernel(&self) -> &str {
        &self.kernel
    }

    /// The directory of its images and its console, until it is dropped.
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// Bytes received so far.
    pub fn bytes_back(&self) -> u64 {
        self.bytes_back
    }

    /// Runs a scenario to its end.
    ///
    /// # Panics
    /// If the guest dies or does not answer; the message holds the last lines of its console. A script that fails does not
    /// panic: see [`ScenarioOutcome::failure`].
    pub fn run(&mut self, scenario: &Scenario) -> ScenarioOutcome {
        let deadline = Instant::now() + scenario.limit + GRACE;
        let script = scenario.script.as_bytes();
        let seconds = scenario.limit.as_secs().max(1);
        let head = format!("RUN {} {seconds} {}\n", word(&scenario.name), script.len());
        let sent = self.port.write_all(head.as_bytes()).and_then(|()| self.port.write_all(script));
        if let Err(error) = sent {
            self.give_up(&scenario.name, &error.to_string());
        }
        let mut files = BTreeMap::new();
        loop {
            let line = self.line(deadline, &scenario.name);
            let words: Vec<&str> = line.split_whitespace().collect();
            match words[..] {
                ["FILE", name, size] => {
                    let size = size.parse().ok().filter(|size| *size <= MAX_FILE_BYTES);
                    let size = size.unwrap_or_else(|| self.give_up(&scenario.name, &line));
                    let content = self.bytes(size, deadline, &scenario.name);
                    files.insert(name.to_owned(), content);
                }
                ["HASH", ..] => {
                    let answer =
                        self.hash(&words[1..]).unwrap_or_else(|why| self.give_up(&scenario.name, &why));
                    if let Err(error) = self.port.write_all(answer.as_bytes()) {
                        self.give_up(&scenario.name, &error.to_string());
                    }
                }
                ["END", code, start, end] => {
                    let Some((code, took)) = ending(code, start, end) else {
                        self.give_up(&scenario.name, &line)
                    };
                    if let Some(fatal) = self.qemu.fatal_line() {
                        self.give_up(&scenario.name, &fatal);
                    }
                    return ScenarioOutcome::new(&scenario.name, code, took, files);
                }
                _ => self.give_up(&scenario.name, &format!("the guest said {line:?}")),
            }
        }
    }

    /// One hash over the content of these disks, as a line.
    fn hash(&self, names: &[&str]) -> Result<String, String> {
        let mut hasher = DefaultHasher::new();
        let mut buffer = vec![0; 1 << 20];
        for name in names {
            let image = self.images.get(*name).ok_or_else(|| format!("there is no disk {name}"))?;
            let mut file = File::open(image).map_err(|error| format!("{}: {error}", image.display()))?;
            loop {
                match file.read(&mut buffer).map_err(|error| format!("{}: {error}", image.display()))? {
                    0 => break,
                    read => hasher.write(&buffer[..read]),
                }
            }
        }
        Ok(format!("{:016x}\n", hasher.finish()))
    }

    fn line(&mut self, deadline: Instant, what: &str) -> String {
        let mut line = Vec::new();
        loop {
            match self.bytes(1, deadline, what)[0] {
                b'\n' => return String::from_utf8_lossy(&line).into_owned(),
                byte => line.push(byte),
            }
        }
    }

    fn bytes(&mut self, count: usize, deadline: Instant, what: &str) -> Vec<u8> {
        let mut content = vec![0; count];
        let mut filled = 0;
        while filled < count {
            match self.port.read(&mut content[filled..]) {
                Ok(0) => self.give_up(what, "the guest ended"),
                Ok(read) => filled += read,
                Err(error) if is_nothing_yet(&error) => {
                    if let Some(fatal) = self.qemu.fatal_line() {
                        self.give_up(what, &fatal);
                    }
                    if Instant::now() > deadline {
                        self.give_up(what, "the guest does not answer");
                    }
                }
                Err(error) => self.give_up(what, &error.to_string()),
            }
        }
        self.bytes_back += count as u64;
        content
    }

    fn give_up(&self, what: &str, why: &str) -> ! {
        panic!("{what}: {why}\n{}", self.qemu.last_output());
    }
}

fn accept(qemu: &Qemu, listener: &UnixListener, deadline: Instant) -> UnixStream {
    listener.set_nonblocking(true).expect("a listener can be asked not to wait");
    loop {
        match listener.accept() {
            Ok((port, _)) => {
                port.set_nonblocking(false)
                    .and_then(|()| port.set_read_timeout(Some(LOOK)))
                    .expect("a socket");
                port.set_write_timeout(Some(GRACE)).expect("a socket takes a limit");
                return port;
            }
            Err(error) if is_nothing_yet(&error) => {}
            Err(error) => panic!("QEMU's port: {error}"),
        }
        let ended = qemu.ended();
        assert!(ended.is_none() && Instant::now() < deadline, "QEMU: {ended:?}\n{}", qemu.last_output());
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn is_nothing_yet(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted)
}

fn ending(code: &str, start: &str, end: &str) -> Option<(i32, Duration)> {
    let took = end.parse::<f64>().ok()? - start.parse::<f64>().ok()?;
    Some((code.parse().ok()?, Duration::try_from_secs_f64(took).ok()?))
}

/// A name as one word of the protocol.
fn word(name: &str) -> String {
    name.replace(|letter: char| !letter.is_ascii_alphanumeric(), "-")
}
