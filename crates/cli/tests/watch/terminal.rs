//! The screen on a terminal of our own: it ends by key and by signal, and the terminal is as it was before.

use crate::common::{SOON, command};
use rdsk_testkit::{cli, wait_until};
use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, Termios, Winsize, tcgetattr, tcsetwinsize};
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

/// A terminal whose other end is the program's, and everything that the program drew.
struct Terminal {
    keys: File,
    other_end: File,
    drawn: Arc<Mutex<Vec<u8>>>,
}

impl Terminal {
    fn new(columns: u16, rows: u16) -> Self {
        let master: OwnedFd = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap();
        let other_end = rustix::fs::open(&*name, OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).unwrap();
        let master = File::from(master);
        let size = Winsize { ws_col: columns, ws_row: rows, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&master, size).unwrap();
        let drawn = Arc::new(Mutex::new(Vec::new()));
        let (mut reader, screen) = (master.try_clone().unwrap(), Arc::clone(&drawn));
        std::thread::spawn(move || {
            let mut some = [0; 4096];
            // The read fails when the last other end is closed.
            while let Ok(length @ 1..) = reader.read(&mut some) {
                screen.lock().unwrap().extend_from_slice(&some[..length]);
            }
        });
        Self { keys: master, other_end: other_end.into(), drawn }
    }

    /// With no signal ignored from the start, which it would leave so: a shell that starts the tests in its background makes them ignore
    /// SIGQUIT.
    fn start(&self) -> Child {
        let program = command(["watch", "--interval", "50ms", "--evidence", "sysfs"]);
        self.line("env", &["--default-signal"], &program).spawn().unwrap()
    }

    /// A program with its environment, started through another one, with the terminal as its standard streams.
    fn line(&self, through: &str, words: &[&str], program: &Command) -> Command {
        let end = || Stdio::from(self.other_end.try_clone().unwrap());
        let mut line = Command::new(through);
        line.args(words).arg(program.get_program()).args(program.get_args());
        program.get_envs().for_each(|(name, value)| match value {
            Some(value) => drop(line.env(name, value)),
            None => drop(line.env_remove(name)),
        });
        line.env("TERM", "xterm").stdin(end()).stdout(end()).stderr(end());
        line
    }

    /// The exit code of the program, which is ended if it goes on.
    fn code_of(&self, mut child: Child) -> Option<i32> {
        let has_ended = wait_until(SOON, || child.try_wait().unwrap().is_some());
        if !has_ended {
            child.kill().unwrap();
        }
        let code = child.wait().unwrap().code();
        assert!(has_ended, "it goes on: {:?}", self.text());
        code
    }

    fn mode(&self) -> Termios {
        tcgetattr(&self.other_end).unwrap()
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.drawn.lock().unwrap()).into_owned()
    }

    /// The program has drawn its first interval, in the mode of a screen.
    fn is_on(&self) -> bool {
        self.text().contains("interval") && !self.mode().local_modes.contains(LocalModes::ICANON)
    }

    fn assert_restored(&self, before: &Termios) {
        let after = self.mode();
        assert_eq!(after.local_modes, before.local_modes);
        assert_eq!(after.input_modes, before.input_modes);
        assert_eq!(after.output_modes, before.output_modes);
        let left = || self.text().contains("\u{1b}[?1049l") && self.text().contains("\u{1b}[?25h");
        assert!(wait_until(SOON, left), "the screen is left and the cursor shown: {:?}", self.text());
    }
}

#[test]
fn a_key_ends_it_and_the_terminal_is_as_before() {
    let mut terminal = Terminal::new(80, 24);
    let before = terminal.mode();
    let child = terminal.start();
    assert!(wait_until(SOON, || terminal.is_on()), "{:?}", terminal.text());
    terminal.keys.write_all(b"?").unwrap();
    assert!(wait_until(SOON, || terminal.text().contains("Esc")), "the help: {:?}", terminal.text());
    let size = Winsize { ws_col: 40, ws_row: 10, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(&terminal.keys, size).unwrap();
    terminal.keys.write_all(b"q").unwrap();
    assert_eq!(terminal.code_of(child), Some(0), "{:?}", terminal.text());
    terminal.assert_restored(&before);
}

#[test]
fn a_signal_ends_it_and_the_terminal_is_as_before() {
    use cli::Signal;
    for signal in
        [Signal::TERM, Signal::INT, Signal::HUP, Signal::QUIT, Signal::USR1, Signal::USR2, Signal::ALARM]
    {
        let terminal = Terminal::new(40, 10);
        let before = terminal.mode();
        let child = terminal.start();
        assert!(wait_until(SOON, || terminal.is_on()), "{:?}", terminal.text());
        cli::signal(child.id(), signal).unwrap();
        assert_eq!(terminal.code_of(child), Some(130), "{signal:?}: {:?}", terminal.text());
        terminal.assert_restored(&before);
    }
}

/// The key of a terminal reaches the command without us; a signal that a program sends to us does not.
#[test]
fn a_command_in_front_of_a_terminal_gets_each_interrupt_once() {
    let directory = tempfile::tempdir().unwrap();
    let log = directory.path().join("log");
    let lines = || std::fs::read_to_string(&log).unwrap_or_default().lines().count();
    let script = format!(
        "trap 'echo x >>{0}' INT; trap 'exit 7' USR1; echo x >>{0}; while :; do sleep 0.02; done",
        log.display()
    );
    let mut terminal = Terminal::new(80, 24);
    let program = command(["watch", "--evidence", "sysfs", "--", "sh", "-c", &script]);
    let mut line = terminal.line("setsid", &["--ctty", "env", "--default-signal"], &program);
    let child = line.spawn().unwrap();
    drop(line);
    assert!(wait_until(SOON, || lines() == 1), "{:?}", terminal.text());
    terminal.keys.write_all(b"\x03").unwrap();
    assert!(wait_until(SOON, || lines() == 2), "the key: {:?}", terminal.text());
    cli::signal(child.id(), cli::Signal::INT).unwrap();
    let has_it = wait_until(SOON, || lines() == 3);
    // What is passed on is passed on in its order.
    cli::signal(child.id(), cli::Signal::USR1).unwrap();
    assert_eq!(terminal.code_of(child), Some(7), "{:?}", terminal.text());
    assert!(has_it, "the signal to rdsk alone was kept from the command");
    assert_eq!(lines(), 3, "each once");
}

/// Closed by the other side, it sends no signal to a program of another session, and reads of it end at once without a key.
#[test]
fn a_terminal_that_is_gone_ends_it() {
    let master: OwnedFd = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let name = ptsname(&master, Vec::new()).unwrap();
    let open =
        || rustix::fs::open(&*name, OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC, Mode::empty()).unwrap();
    let mut line = command(["watch", "--interval", "50ms", "--evidence", "sysfs"]);
    line.env("TERM", "xterm").stdin(open()).stdout(open()).stderr(Stdio::null());
    let mut master = File::from(master);
    tcsetwinsize(&master, Winsize { ws_col: 80, ws_row: 24, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
    let mut child = line.spawn().unwrap();
    // The command keeps the other end open until it goes.
    drop(line);
    let mut drawn = Vec::new();
    while !String::from_utf8_lossy(&drawn).contains("interval") {
        let mut some = [0; 4096];
        let length = master.read(&mut some).unwrap();
        drawn.extend_from_slice(&some[..length]);
    }
    drop(master);
    let ends = || child.try_wait().unwrap().is_some();
    let has_ended = wait_until(SOON, ends);
    if !has_ended {
        child.kill().unwrap();
        child.wait().unwrap();
    }
    assert!(has_ended, "it goes on without a terminal");
}
