//! A booted guest: scripts go in and files come back over a virtio port, one scenario after the other. Nothing here waits
//! without a limit.

use anyhow::anyhow;
use std::collections::BTreeMap;
use std::fs::File;
use std::hash::{DefaultHasher, Hasher as _};
use std::io::{self, Read as _, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::outcome::ScenarioOutcome;
use super::qemu::Qemu;

/// How long an answer may be late after the guest's own limit: a process that still hangs then cannot be killed.
const GRACE: Duration = Duration::from_secs(30);
/// How often to check the guest while an answer is missing.
const LOOK: Duration = Duration::from_millis(250);
/// Of a clock that is taken for right: guest's seconds in a second. The kernel's look at its timer sometimes goes wrong while it waits for a
/// processor, and its seconds then pass six times too fast: limits of drivers and of the guest's life end too soon (2026-11-25, beside load).
const MAX_HASTE: f64 = 1.2;
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
    /// A script that runs under `set -euo pipefail` with the functions of the prelude; at most five minutes, so that a
    /// busy machine does not fail it.
    pub fn new(name: &str, script: impl Into<String>) -> Self {
        Self { name: name.into(), script: script.into(), limit: Duration::from_secs(300) }
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
    held: Held,
}

/// What a guest holds until its end: its files, and the lock of this machine.
#[derive(Debug)]
pub(crate) struct Held {
    /// The image behind each disk.
    pub(crate) images: BTreeMap<String, PathBuf>,
    /// The directory of the images.
    pub(crate) directory: TempDir,
    /// Locked while this guest runs.
    #[expect(dead_code, reason = "kept for its Drop, which must not come before QEMU's end")]
    pub(crate) turn: File,
}

impl Booted {
    /// Waits until the guest reports that it is up.
    ///
    /// # Errors
    /// In words with the last lines of the console, if it does not come up in time, or with a clock that runs ahead.
    pub(crate) fn wait(
        qemu: Qemu,
        listener: &UnixListener,
        held: Held,
        start: Instant,
        limit: Duration,
    ) -> anyhow::Result<Self> {
        let port = accept(&qemu, listener, start + limit)?;
        let mut guest = Self { qemu, port, held };
        let said = guest.line(start + limit);
        if let Err(why) = said.and_then(|line| is_up(&line, start.elapsed())) {
            return Err(anyhow!("{why}\n{}", guest.qemu.last_output()));
        }
        Ok(guest)
    }

    /// The directory of its images and its console, until it is dropped.
    pub fn directory(&self) -> &Path {
        self.held.directory.path()
    }

    /// Runs a scenario to its end.
    ///
    /// # Panics
    /// If the guest dies or does not answer; the message holds the last lines of its console. A script that fails does
    /// not panic: see [`ScenarioOutcome::failure`].
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
            let line =
                self.line(deadline).unwrap_or_else(|why| self.give_up(&scenario.name, &why.to_string()));
            let words: Vec<&str> = line.split_whitespace().collect();
            match words[..] {
                ["FILE", name, size] => {
                    let size = size.parse().ok().filter(|size| *size <= MAX_FILE_BYTES);
                    let size = size.unwrap_or_else(|| self.give_up(&scenario.name, &line));
                    let content = self.bytes(size, deadline);
                    let content =
                        content.unwrap_or_else(|why| self.give_up(&scenario.name, &why.to_string()));
                    files.insert(name.to_owned(), content);
                }
                ["HASH", ..] => {
                    let answer = self
                        .hash(&words[1..])
                        .unwrap_or_else(|why| self.give_up(&scenario.name, &why.to_string()));
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
    fn hash(&self, names: &[&str]) -> anyhow::Result<String> {
        let mut hasher = DefaultHasher::new();
        let mut buffer = vec![0; 1 << 20];
        for name in names {
            let image = self.held.images.get(*name).ok_or_else(|| anyhow!("there is no disk {name}"))?;
            let mut file = File::open(image).map_err(|error| anyhow!("{}: {error}", image.display()))?;
            loop {
                match file.read(&mut buffer).map_err(|error| anyhow!("{}: {error}", image.display()))? {
                    0 => break,
                    read => hasher.write(&buffer[..read]),
                }
            }
        }
        Ok(format!("{:016x}\n", hasher.finish()))
    }

    fn line(&mut self, deadline: Instant) -> anyhow::Result<String> {
        let mut line = Vec::new();
        loop {
            match self.bytes(1, deadline)?[0] {
                b'\n' => return Ok(String::from_utf8_lossy(&line).into_owned()),
                byte => line.push(byte),
            }
        }
    }

    fn bytes(&mut self, count: usize, deadline: Instant) -> anyhow::Result<Vec<u8>> {
        let mut content = vec![0; count];
        let mut filled = 0;
        while filled < count {
            match self.port.read(&mut content[filled..]) {
                Ok(0) => return Err(anyhow!("the guest ended")),
                Ok(read) => filled += read,
                Err(error) if is_nothing_yet(&error) => {
                    if let Some(fatal) = self.qemu.fatal_line() {
                        return Err(anyhow!(fatal));
                    }
                    if Instant::now() > deadline {
                        return Err(anyhow!("the guest does not answer"));
                    }
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(content)
    }

    fn give_up(&self, what: &str, why: &str) -> ! {
        panic!("{what}: {why}\n{}", self.qemu.last_output());
    }
}

fn accept(qemu: &Qemu, listener: &UnixListener, deadline: Instant) -> anyhow::Result<UnixStream> {
    listener.set_nonblocking(true).expect("a listener can be asked not to wait");
    loop {
        match listener.accept() {
            Ok((port, _)) => {
                port.set_nonblocking(false)
                    .and_then(|()| port.set_read_timeout(Some(LOOK)))
                    .expect("a socket");
                port.set_write_timeout(Some(GRACE)).expect("a socket takes a limit");
                return Ok(port);
            }
            Err(error) if is_nothing_yet(&error) => {}
            Err(error) => return Err(anyhow!("QEMU's port: {error}")),
        }
        let ended = qemu.ended();
        if ended.is_some() || Instant::now() >= deadline {
            return Err(anyhow!("QEMU: {ended:?}\n{}", qemu.last_output()));
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Whether a guest whose first line is this one can be used: `UP` and how long its kernel has run, which began later than QEMU.
fn is_up(line: &str, since_start: Duration) -> anyhow::Result<()> {
    let uptime_s = line.strip_prefix("UP ").and_then(|uptime| uptime.parse::<f64>().ok());
    let uptime_s = uptime_s.ok_or_else(|| anyhow!("the guest said {line:?}"))?;
    let real_s = since_start.as_secs_f64();
    if uptime_s > real_s * MAX_HASTE {
        return Err(anyhow!("its clock runs ahead: {uptime_s:.1} s in {real_s:.1} s"));
    }
    Ok(())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guest_is_up_if_its_clock_is_not_ahead() {
        let why = |line: &str, real_s| {
            is_up(line, Duration::from_secs(real_s)).map_or_else(|why| why.to_string(), |()| String::new())
        };
        assert_eq!((why("UP 4.87", 6), why("UP 6.60", 6)), (String::new(), String::new()));
        assert_eq!(why("UP 846.50", 135), "its clock runs ahead: 846.5 s in 135.0 s");
        assert_eq!(why("UP", 6), "the guest said \"UP\"");
        assert_eq!(why("FILE x 3", 6), "the guest said \"FILE x 3\"");
    }
}
