//! The live screen on a terminal. It puts the terminal back on every way out that a program has: a key, a signal that it can handle
//! and that others send, an error, a panic.

mod device;
mod draw;
mod input;
mod state;
#[cfg(test)]
mod tests;
mod text;

use super::options::Watch;
use super::wake::Ending;
use crate::exit;
use input::{Input, Waited};
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::{Hide, Show};
use ratatui::crossterm::event::{Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers, poll, read};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use ratatui::widgets::Paragraph;
use rdsk_model::{Problem, ProblemKind};
use rdsk_observe::watch::Watcher;
use state::{Pace, State};
use std::io::{self, Stdout, stdout};
use std::time::{Duration, Instant};

/// How soon a signal is noticed; a key is at once.
const PATIENCE: Duration = Duration::from_millis(50);

/// What a key asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asked {
    Nothing,
    Redraw,
    Quit,
}

/// Shows the screen until a key or signal ends it, or as many intervals as were requested.
///
/// # Errors
/// When the terminal cannot be read or written.
pub(super) fn watch(
    options: &Watch,
    mut watcher: Watcher,
    why_no_bpf: Option<String>,
) -> Result<u8, Problem> {
    let ending = Ending::of_screen()?;
    let mut state = State::new(options.columns, options.charset.charset(), why_no_bpf);
    let mut screen = Screen::open().map_err(|error| broken(&error))?;
    let ended = show(&mut screen, &mut state, &mut watcher, options, &ending);
    drop(screen);
    ended.map_err(|error| broken(&error))
}

fn show(
    screen: &mut Screen,
    state: &mut State,
    watcher: &mut Watcher,
    options: &Watch,
    ending: &Ending,
) -> io::Result<u8> {
    let input = Input::of_terminal()?;
    let mut reports = 0;
    let mut next = Instant::now() + options.interval();
    screen.draw(state)?;
    while options.count.is_none_or(|count| reports < count) {
        let now = Instant::now();
        if state.pace == Pace::Live && now >= next {
            state.add(watcher.next_interval());
            reports += 1;
            screen.draw(state)?;
            // After a pause or a stopped process the distances begin anew.
            next += options.interval();
            if next <= Instant::now() {
                next = Instant::now() + options.interval();
            }
        }
        let left = if state.pace == Pace::Live { next.saturating_duration_since(now) } else { PATIENCE };
        if input.wait(left.min(PATIENCE), ending)? == Waited::Ended {
            return Ok(exit::INTERRUPTED);
        }
        while poll(Duration::ZERO)? {
            match answer(state, &read()?) {
                Asked::Quit => return Ok(exit::DONE),
                Asked::Redraw => screen.draw(state)?,
                Asked::Nothing => {}
            }
        }
    }
    Ok(exit::DONE)
}

/// Does what a key asks for.
fn answer(state: &mut State, event: &Event) -> Asked {
    let key = match event {
        Event::Key(key) if key.kind != KeyEventKind::Release => key,
        Event::Resize(..) => return Asked::Redraw,
        _ => return Asked::Nothing,
    };
    match key {
        KeyEvent { code: KeyCode::Char('c'), modifiers: KeyModifiers::CONTROL, .. } => return Asked::Quit,
        KeyEvent { code: KeyCode::Char('q') | KeyCode::Esc, .. } => return Asked::Quit,
        KeyEvent { code: KeyCode::Up | KeyCode::Char('k'), .. } => state.choose(-1),
        KeyEvent { code: KeyCode::Down | KeyCode::Char('j'), .. } => state.choose(1),
        KeyEvent { code: KeyCode::Char('p' | ' '), .. } => state.pause_or_go_on(),
        KeyEvent { code: KeyCode::Char('c'), .. } => state.next_columns(),
        KeyEvent { code: KeyCode::Char('?' | 'h'), .. } => state.help_or_device(),
        _ => return Asked::Nothing,
    }
    Asked::Redraw
}

fn broken(error: &io::Error) -> Problem {
    Problem::new(
        ProblemKind::Io,
        "terminal",
        format!("the terminal cannot be used: {error}"),
        "rdsk watch --plain prints lines instead",
    )
}

/// A terminal in the mode of a screen, which goes back when this goes away, also while a panic unwinds.
struct Screen {
    terminal: Terminal<CrosstermBackend<Stdout>>,
    _restore: Restore,
}

impl Screen {
    fn open() -> io::Result<Self> {
        enable_raw_mode()?;
        // From here on the mode is put back, whatever fails.
        let restore = Restore;
        execute!(stdout(), EnterAlternateScreen, Hide)?;
        let terminal = Terminal::new(CrosstermBackend::new(stdout()))?;
        Ok(Self { terminal, _restore: restore })
    }

    fn draw(&mut self, state: &State) -> io::Result<()> {
        let drawn = self.terminal.draw(|frame| {
            let area = frame.area();
            let lines = draw::lines(state, area.width.into(), area.height.into());
            frame.render_widget(Paragraph::new(lines), area);
        });
        drawn.map(drop)
    }
}

/// Puts the terminal back when it goes away.
struct Restore;

impl Drop for Restore {
    fn drop(&mut self) {
        // A terminal that is gone needs nothing.
        let _ = execute!(stdout(), LeaveAlternateScreen, Show);
        let _ = disable_raw_mode();
    }
}
