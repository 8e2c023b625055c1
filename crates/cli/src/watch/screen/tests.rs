//! The screen on terminals of several sizes, drawn into memory, and what keys do.

use super::state::{Lower, State};
use super::*;
use ratatui::backend::TestBackend;
use rdsk_analysis::columns::ColumnSet;
use rdsk_model::{BlockActivity, DiskStat, Op, Request, Uncounted, WatchInterval, WatchedDevice};
use rdsk_report::Charset;
use rdsk_testkit::wait_until;
use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, tcgetattr};
use std::fs::File;
use std::io::Read as _;
use std::process::{Command, Stdio};

fn drawn(state: &State, width: u16, height: u16) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal
        .draw(|frame| {
            let area = frame.area();
            let lines = draw::lines(state, area.width.into(), area.height.into());
            frame.render_widget(Paragraph::new(lines), area);
        })
        .unwrap();
    let buffer = terminal.backend().buffer();
    let row = |y: u16| (0..width).map(|x| buffer[(x, y)].symbol()).collect::<String>().trim_end().to_owned();
    (0..height).map(|y| row(y) + "\n").collect()
}

fn growth(number: u64) -> DiskStat {
    DiskStat {
        read_ios: 100 * number,
        read_sectors: 800 * number,
        read_ticks_ms: 40 * number,
        write_ios: 20,
        write_sectors: 20_480,
        write_ticks_ms: 60,
        io_ticks_ms: 100 * (number % 10),
        time_in_queue_ms: 40 * number + 60,
        flush_ios: Some(1),
        ..DiskStat::default()
    }
}

fn block(number: u64) -> BlockActivity {
    let request =
        |op, bytes, count| Request { target: 0, device: "sda".into(), op, bytes, fua: false, count };
    let mut block = BlockActivity {
        interval_ns: 1_000_000_000,
        requests: vec![request(Op::Read, 4096, 100 * number), request(Op::Write, 524_288, 20)],
        depth_ns: 80_000_000 * number,
        deepest: Some(number),
        merges: 12,
        flushes: 1,
        ..BlockActivity::default()
    };
    (0..100 * number).for_each(|index| block.latency.record(40_000 + 1_000 * index));
    (0..number / 4).for_each(|_| block.latency.record(9_000_000));
    block
}

fn state() -> State {
    let mut state = State::new(ColumnSet::Iostat, Charset::Unicode, None);
    for number in 1..=30 {
        let device =
            |name: &str, growth, block| WatchedDevice { block, ..WatchedDevice::by_counters(name, growth) };
        state.add(WatchInterval {
            interval_ns: 1_000_000_000,
            devices: vec![
                device("sda", Ok(growth(number)), Some(block(number))),
                device("evil\u{1b}[2J", Ok(growth(1)), None),
                device("sdc", Err(Uncounted::Vanished), None),
            ],
        });
    }
    state
}

#[test]
fn three_sizes() {
    insta::assert_snapshot!("screen-40x10", drawn(&state(), 40, 10));
    insta::assert_snapshot!("screen-80x24", drawn(&state(), 80, 24));
    insta::assert_snapshot!("screen-200x50", drawn(&state(), 200, 50));
}

#[test]
fn other_looks() {
    let mut ascii = state();
    ascii.charset = Charset::Ascii;
    let text = drawn(&ascii, 80, 24);
    assert!(text.is_ascii(), "{text}");
    let mut other = state();
    other.why_no_bpf = Some("no permission".into());
    other.choose(1);
    other.next_columns();
    insta::assert_snapshot!("screen-sysfs", drawn(&other, 80, 14));
    other.help_or_device();
    assert!(drawn(&other, 80, 24).contains("arrow") || drawn(&other, 80, 24).contains("choose a device"));
    other.pause_or_go_on();
    assert!(drawn(&other, 80, 24).contains("PAUSED"));
}

#[test]
fn any_size_and_any_number_of_devices_is_drawn() {
    let empty = State::new(ColumnSet::Iostat, Charset::Unicode, None);
    let mut many = empty.clone();
    let device = |number| WatchedDevice::by_counters(format!("sd{number}"), Ok(growth(1)));
    many.add(WatchInterval { interval_ns: 1, devices: (0..64).map(device).collect() });
    many.choose(63);
    for state in [&empty, &many, &state()] {
        for (width, height) in [(1, 1), (2, 2), (7, 3), (40, 10), (80, 24), (300, 80)] {
            let text = drawn(state, width, height);
            assert!(!text.contains('\u{1b}'));
            assert_eq!(text.lines().count(), usize::from(height));
        }
    }
    assert!(drawn(&many, 80, 24).contains("sd63"), "the chosen one is in sight");
}

#[test]
fn keys_do_what_the_help_says() {
    let mut state = state();
    let key = |code| Event::Key(KeyEvent::new(code, KeyModifiers::NONE));
    assert_eq!(answer(&mut state, &key(KeyCode::Down)), Asked::Redraw);
    assert_eq!(state.chosen(), 1);
    answer(&mut state, &key(KeyCode::Up));
    assert_eq!(state.chosen(), 0);
    answer(&mut state, &key(KeyCode::Char('p')));
    assert_eq!(state.pace, Pace::Paused);
    answer(&mut state, &key(KeyCode::Char('?')));
    assert_eq!(state.lower, Lower::Help);
    answer(&mut state, &key(KeyCode::Char('c')));
    assert_eq!(state.columns, ColumnSet::Old);
    for quit in [key(KeyCode::Char('q')), key(KeyCode::Esc)] {
        assert_eq!(answer(&mut state, &quit), Asked::Quit);
    }
    let interrupt = Event::Key(KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL));
    assert_eq!(answer(&mut state, &interrupt), Asked::Quit);
    assert_eq!(answer(&mut state, &Event::Resize(40, 10)), Asked::Redraw);
    assert_eq!(answer(&mut state, &key(KeyCode::F(1))), Asked::Nothing);
}

/// Set for the copy of this program that is to panic.
const PANICS: &str = "RDSK_TEST_SCREEN_PANICS";

/// This very test, started anew on a terminal of its own, opens the screen there and panics.
#[test]
fn a_panic_puts_the_terminal_back() {
    if std::env::var_os(PANICS).is_some() {
        let caught = crate::panic_hook::catch(|| {
            let mut screen = Screen::open().unwrap();
            screen.draw(&State::new(ColumnSet::Iostat, Charset::Unicode, None)).unwrap();
            let mode = tcgetattr(rustix::stdio::stdin()).unwrap();
            assert!(!mode.local_modes.contains(LocalModes::ICANON), "the screen is open");
            panic!("the test's own");
        });
        assert!(caught.is_err_and(|problem: Problem| problem.code == "internal"));
        return;
    }
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let name = ptsname(&master, Vec::new()).unwrap();
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
    let end = File::from(rustix::fs::open(&*name, flags, Mode::empty()).unwrap());
    let before = tcgetattr(&end).unwrap();
    let drawn = std::thread::spawn(move || {
        let (mut master, mut drawn) = (File::from(master), Vec::new());
        // The read fails when the last other end is closed.
        let _ = master.read_to_end(&mut drawn);
        String::from_utf8_lossy(&drawn).into_owned()
    });
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "watch::screen::tests::a_panic_puts_the_terminal_back"]).env(PANICS, "1");
    let other_end = || Stdio::from(end.try_clone().unwrap());
    let mut child = command.stdin(other_end()).stdout(other_end()).stderr(other_end()).spawn().unwrap();
    // What is started keeps no terminal of ours.
    drop(command);
    let has_ended = wait_until(Duration::from_secs(200), || child.try_wait().unwrap().is_some());
    if !has_ended {
        child.kill().unwrap();
    }
    let status = child.wait().unwrap();
    let after = tcgetattr(&end).unwrap();
    drop(end);
    let drawn = drawn.join().unwrap();
    assert!(has_ended && status.success(), "{status}: {drawn:?}");
    assert_eq!((after.local_modes, after.input_modes), (before.local_modes, before.input_modes));
    let left = drawn.find("\u{1b}[?1049h").zip(drawn.rfind("\u{1b}[?1049l"));
    assert!(left.is_some_and(|(entered, left)| entered < left) && drawn.contains("\u{1b}[?25h"), "{drawn:?}");
}
