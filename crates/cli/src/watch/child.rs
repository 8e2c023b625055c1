//! `rdsk watch -- COMMAND`: starts the command, passes signals on to it, watches until its I/O is done, and prints what that
//! became. Its exit code is the command's.

use super::options::{Form, Watch};
use super::{PROC, SYS};
use crate::cli_args::ColorWhen;
use crate::forwarding::{Forwarding, wait_for_end};
use crate::{out, screen};
use rdsk_experiment::{CommandCounts, CommandPlaces};
use rdsk_model::{CommandRun, CpuTime, Problem, ProblemKind, Uncounted, WatchInterval, WatchedDevice};
use rdsk_observe::delta;
use rdsk_observe::process::read_process_io;
use rdsk_observe::watch::{Watcher, dirty_bytes, flush_places, process_calls};
use rdsk_report::watch::{command_io, command_json};
use rdsk_sys::usage::children_usage;
use rdsk_targets::Roots;
use rdsk_units::printable;
use std::ffi::{OsStr, OsString};
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// For how long the I/O after the command's end is watched, at most, and how often it is looked at.
const MAX_AFTER: Duration = Duration::from_secs(1);
const LOOK: Duration = Duration::from_millis(50);
/// How soon after its start the command is looked at for the first time and again, and how rarely in the end.
const FIRST_LOOK: Duration = Duration::from_millis(5);
const LAST_LOOK: Duration = Duration::from_millis(320);
/// As shells have it: the command was not found, or cannot be run; a signal ended it (128 and its number).
const NOT_FOUND: u8 = 127;
const NOT_RUN: u8 = 126;
const SIGNALLED: i32 = 128;

/// Runs the command and prints what its I/O became. Gives the command's exit code.
///
/// # Errors
/// When signals cannot be passed on, or the kernel reports that the command is not our child.
pub(super) fn watch(
    options: &Watch,
    mut watcher: Watcher,
    why_no_bpf: Option<String>,
) -> Result<u8, Problem> {
    let proc = Path::new(PROC);
    let dirty_before = dirty_bytes(proc);
    let (paths, named) = places_of(options);
    let mut places = CommandPlaces::begin(&paths, named, &Roots::default());
    let forwarding = Forwarding::begin()?;
    let began = Instant::now();
    let mut child = match Command::new(&options.command[0]).args(&options.command[1..]).spawn() {
        Ok(child) => child,
        Err(error) => return Ok(not_started(&options.command, &error)),
    };
    forwarding.to(&child);
    let process = proc.join(child.id().to_string());
    let ended = wait_and_look(&child, || places.look_at(&process)).map_err(|error| lost(&error))?;
    let elapsed_ns = u64::try_from((ended - began).as_nanos()).unwrap_or(u64::MAX);
    let at_end = watcher.so_far();
    places.command_ended();
    // It has not been waited for yet, so its numbers are still there.
    let (calls, charged) = (process_calls(&process).ok(), read_process_io(&process).unwrap_or_default());
    forwarding.end();
    let status = child.wait().map_err(|error| lost(&error))?;
    let flushed = options.sync.then(|| places.flush(&mut || !forwarding.has_more()));
    settle(&mut watcher, dirty_before, &forwarding);
    let cpu = children_usage().map_or_else(
        |_| CpuTime::default(),
        |usage| CpuTime { user: usage.user_ns, system: usage.system_ns },
    );
    let counts = CommandCounts { elapsed_ns, calls: calls.unwrap_or_default(), charged, cpu };
    let (verdicts, flush) = places.finish(&counts, flushed.as_ref());
    let whole = watcher.next_interval();
    let grown = dirty_bytes(proc).zip(dirty_before).and_then(|(now, before)| now.checked_sub(before));
    let run = CommandRun {
        words: options.command.iter().map(|word| word.to_string_lossy().into_owned()).collect(),
        end: end_of(status),
        elapsed_ns,
        calls,
        after: between(&at_end, &whole),
        whole,
        unfollowed: watcher.unfollowed(),
        dirty_left_bytes: grown.filter(|&bytes| bytes > 0),
        why_no_bpf,
        verdicts,
        flush,
    };
    let text = match options.form() {
        Form::Json => command_json(&run, options.columns),
        Form::Plain | Form::Suitable => {
            command_io(&run, screen::style_on(&io::stderr(), ColorWhen::Auto, options.charset.charset()))
        }
    };
    out::answer(&text);
    Ok(code_of(status))
}

/// Waits for the end of the command, and looks at it meanwhile, ever more rarely. Gives the time of its end.
fn wait_and_look(child: &Child, mut look: impl FnMut()) -> io::Result<Instant> {
    let (looking, has_ended) = (std::thread::current(), AtomicBool::new(false));
    let has_ended = &has_ended;
    std::thread::scope(|scope| {
        let waiting = scope.spawn(move || {
            let ended = wait_for_end(child).map(|()| Instant::now());
            has_ended.store(true, Ordering::Release);
            looking.unpark();
            ended
        });
        let mut rest = FIRST_LOOK;
        while !has_ended.load(Ordering::Acquire) {
            look();
            std::thread::park_timeout(rest);
            rest = (rest * 2).min(LAST_LOOK);
        }
        waiting.join().expect("waiting does not panic")
    })
}

fn not_started(words: &[OsString], error: &io::Error) -> u8 {
    let name = printable(&words[0].to_string_lossy());
    out::problem(&Problem::new(
        ProblemKind::Refused,
        "command",
        format!("cannot run {name}: {error}"),
        "write the command after --, as in a shell",
    ));
    if error.kind() == io::ErrorKind::NotFound { NOT_FOUND } else { NOT_RUN }
}

/// Waits until the devices stand still and no more pages are dirty than before, a second at most; a signal ends it, too.
fn settle(watcher: &mut Watcher, dirty_before: Option<u64>, forwarding: &Forwarding) {
    let began = Instant::now();
    let mut last = growths(&watcher.so_far());
    while began.elapsed() < MAX_AFTER && !forwarding.has_more() {
        sleep(LOOK);
        let now = growths(&watcher.so_far());
        let is_clean =
            dirty_bytes(Path::new(PROC)).zip(dirty_before).is_none_or(|(now, before)| now <= before);
        let is_idle = now.iter().all(|(_, growth)| growth.is_none_or(|growth| growth.in_flight == 0));
        if is_clean && is_idle && now == last {
            return;
        }
        last = now;
    }
}

fn growths(interval: &WatchInterval) -> Vec<(String, Option<rdsk_model::DiskStat>)> {
    interval.devices.iter().map(|device| (device.name.clone(), device.growth.clone().ok())).collect()
}

/// What the devices did from the end of one interval to the end of another that began with it.
fn between(first: &WatchInterval, whole: &WatchInterval) -> WatchInterval {
    let device = |device: &WatchedDevice| {
        let before = first.devices.iter().find(|earlier| earlier.name == device.name);
        let growth = device.growth.as_ref().ok()?;
        let after = match before {
            Some(WatchedDevice { growth: Ok(before), .. }) => delta(before, growth).ok()?,
            // A loop device that did nothing until then, and one whose counters had proved nothing until they moved.
            None | Some(WatchedDevice { growth: Err(Uncounted::Unknown(_)), .. }) => *growth,
            Some(_) => return None,
        };
        Some(WatchedDevice::by_counters(device.name.as_str(), Ok(after)))
    };
    WatchInterval {
        interval_ns: whole.interval_ns.saturating_sub(first.interval_ns),
        devices: whole.devices.iter().filter_map(device).collect(),
    }
}

fn end_of(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit code {code}"),
        (None, signal) => format!("ended by signal {}", signal.unwrap_or(0)),
    }
}

fn code_of(status: ExitStatus) -> u8 {
    let code = status.code().unwrap_or_else(|| SIGNALLED + status.signal().unwrap_or(0));
    u8::try_from(code & 0xff).unwrap_or(u8::MAX)
}

fn lost(error: &io::Error) -> Problem {
    Problem::plain(ProblemKind::Io, "command", format!("the end of the command cannot be learnt: {error}"))
}

/// Places that a command names at most; each costs a look at sysfs.
const MAX_PLACES: usize = 16;

/// What the line names before the command, else what the command's own words name and the directory that it starts in; and how many of
/// these places are named.
pub(super) fn places_of(options: &Watch) -> (Vec<PathBuf>, usize) {
    let (sys, proc) = (Path::new(SYS), Path::new(PROC));
    if !options.devices.is_empty() {
        let places: Vec<PathBuf> =
            options.devices.iter().flat_map(|name| flush_places(name, sys, proc)).collect();
        let named = places.len();
        return (places, named);
    }
    // A command writes to its working directory without a word that says so.
    let here = OsString::from(".");
    let words = &options.command[1..];
    (in_words(words.iter().chain([&here])), in_words(words).len())
}

/// The directories and block devices that words name, one for each filesystem: of a file its directory.
fn in_words<'a>(words: impl IntoIterator<Item = &'a OsString>) -> Vec<PathBuf> {
    let mut places: Vec<(u64, PathBuf)> = Vec::new();
    let paths = words.into_iter().map(|word| path_in(word));
    for path in paths.filter(|path| !path.as_os_str().is_empty()) {
        let Some((number, place)) = place_of(path) else { continue };
        if places.len() < MAX_PLACES && places.iter().all(|(other, _)| *other != number) {
            places.push((number, place.to_owned()));
        }
    }
    places.into_iter().map(|(_, place)| place).collect()
}

/// `/dev/sdb` of `of=/dev/sdb`, and all of a word without a value.
fn path_in(word: &OsStr) -> &Path {
    let bytes = word.as_bytes();
    let from = bytes.iter().position(|&byte| byte == b'=').map_or(0, |at| at + 1);
    Path::new(OsStr::from_bytes(&bytes[from..]))
}

/// The number of the device or filesystem that a path leads to, and a place of it. A file that the command may create is in its
/// directory, if that is named: a single word may mean anything.
fn place_of(path: &Path) -> Option<(u64, &Path)> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let of_directory = |place, metadata: Metadata| Some((metadata.dev(), place));
    match fs::metadata(path) {
        Ok(metadata) if metadata.file_type().is_block_device() => Some((metadata.rdev(), path)),
        Ok(metadata) if metadata.is_dir() => of_directory(path, metadata),
        Ok(metadata) if metadata.is_file() => of_directory(parent.unwrap_or(Path::new(".")), metadata),
        Ok(_) => None,
        // A script is a word, too, and no path: `dd if=/dev/zero of=file`.
        Err(_) if path.as_os_str().as_bytes().contains(&b' ') => None,
        Err(_) => of_directory(parent?, fs::metadata(parent?).ok()?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rdsk_model::DiskStat;

    #[test]
    fn ends_are_the_shells() {
        let ended = |raw| (code_of(ExitStatus::from_raw(raw)), end_of(ExitStatus::from_raw(raw)));
        assert_eq!(ended(3 << 8), (3, "exit code 3".into()));
        assert_eq!(ended(9), (137, "ended by signal 9".into()));
    }

    #[test]
    fn what_came_after_the_end_is_the_difference() {
        let interval = |interval_ns, writes: &[(&str, u64)]| WatchInterval {
            interval_ns,
            devices: writes
                .iter()
                .map(|(name, write_ios)| {
                    let growth = DiskStat { write_ios: *write_ios, ..DiskStat::default() };
                    WatchedDevice::by_counters(*name, Ok(growth))
                })
                .collect(),
        };
        let after = between(&interval(10, &[("sda", 3)]), &interval(30, &[("sda", 5), ("loop0", 2)]));
        assert_eq!(after, interval(20, &[("sda", 2), ("loop0", 2)]));
        let mut still = interval(10, &[("dm-0", 0)]);
        still.devices[0].growth = Err(Uncounted::Unknown("it stood still".into()));
        assert_eq!(between(&still, &interval(30, &[("dm-0", 4)])), interval(20, &[("dm-0", 4)]));
    }

    #[test]
    fn words_lead_to_directories() {
        let scratch = tempfile::tempdir().unwrap();
        let file = scratch.path().join("there");
        fs::write(&file, "x").unwrap();
        let places = |words: &[&str]| in_words(&words.iter().map(OsString::from).collect::<Vec<_>>());
        let (file, new) = (file.display().to_string(), scratch.path().join("new").display().to_string());
        for words in [&[&*file][..], &[&format!("of={new}"), "bs=1M"], &["-o", &new, &file, "--x=1"]] {
            assert_eq!(places(words), [scratch.path()], "{words:?}");
        }
        assert_eq!(places(&["if=/dev/zero", "count=1", "-v", "", "no-such-word"]), Vec::<PathBuf>::new());
        let script = "dd if=/dev/zero of=z bs=1M count=64";
        assert_eq!(places(&["-c", script]), Vec::<PathBuf>::new());
    }
}
