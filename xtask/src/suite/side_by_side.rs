//! Runs the test programs side by side, since most of them wait more than they compute: the longest first, and one at a time
//! of those that boot guests, which has all turns already. What a program prints is shown whole when it ends. It knows nothing of
//! cargo.
//!
//! cargo-nextest would do this, but it starts each test in a process of its own, where many here share a boot or a turn, and a
//! fresh machine would have to build it first.

use super::failure_of;
use super::test_programs::TestProgram;
use crate::step;
use crate::test_counts::TestCounts;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Programs that run at the same time. Each runs as many of its tests at once as there are processors.
pub(crate) const LANES: usize = 5;
/// Lines of a program's output that are kept; of more, the last ones.
const KEPT_LINES: usize = 40_000;
/// Guests of one program that run at the same time: as many as `rdsk_testkit::Turn::Guest` has turns.
const GUESTS: &str = "3";
/// What the names of programs end with that boot guests: a program of its own, which guests carry, or a file of tests.
const GUEST: [&str; 2] = [" --test guest", " --test it guest::"];
/// Programs in the order of their time, the longest first; the others follow as cargo lists them. A program that is started
/// late and takes long leaves the other lanes empty in the end.
const LONGEST_FIRST: &[&str] = &[
    "rdsk --test guest",
    "xtask --bin xtask docs::",
    "rdsk --test it page::",
    "rdsk-targets --test it openers::",
    "rdsk --test it counts::",
    "xtask --bin xtask calibrate::",
    "rdsk --test it sim::",
    "rdsk-targets --test it devices::",
    "rdsk --test it refusals::",
    "rdsk --test it history::",
    "rdsk-html --test it browser::",
    "rdsk --test it signals::",
    "rdsk --test it fusedisk::",
    "rdsk-testkit --lib",
    "rdsk-targets --lib",
    "rdsk --test it rates::",
    "rdsk --test it watch::",
    "rdsk --test it own_pause::",
    "rdsk --test it faults::",
    "rdsk --test it load_fuse::",
    "rdsk --test it load_fio::",
    "rdsk --test it cache::",
    "rdsk-testkit --test it guest::",
];

/// How one test program ended.
#[derive(Clone, Debug)]
pub(crate) struct Ended {
    pub(crate) name: String,
    pub(crate) took: Duration,
    pub(crate) counts: TestCounts,
    /// Why it failed, if it did.
    pub(crate) failure: Option<String>,
}

/// What waits and what runs.
struct Queue {
    waiting: Vec<TestProgram>,
    guest_runs: bool,
}

impl Queue {
    fn new(mut programs: Vec<TestProgram>) -> Self {
        let place = |name: &str| LONGEST_FIRST.iter().position(|program_name| *program_name == name);
        programs.sort_by_key(|program| place(&program.name).unwrap_or(LONGEST_FIRST.len()));
        Self { waiting: programs, guest_runs: false }
    }

    /// The next program that may start now. The lane that runs a guest takes the next one, so another lane that finds nothing
    /// else can end.
    fn take(&mut self) -> Option<TestProgram> {
        let may_start = |program: &TestProgram| !(self.guest_runs && is_guest(program));
        let program = self.waiting.remove(self.waiting.iter().position(may_start)?);
        self.guest_runs |= is_guest(&program);
        Some(program)
    }

    fn ended(&mut self, program: &TestProgram) {
        self.guest_runs &= !is_guest(program);
    }
}

fn is_guest(program: &TestProgram) -> bool {
    GUEST.iter().any(|end| program.name.ends_with(end))
}

/// Runs all programs, at most for `limit` together, and returns how each ended, in the order of their ends. A program that was
/// not started in time, or after an interruption, failed.
pub(crate) fn run(
    programs: Vec<TestProgram>,
    variables: &[(&str, String)],
    limit: Duration,
    interrupted: &AtomicBool,
    on_end: &(dyn Fn(&Ended, &[String]) + Sync),
) -> Vec<Ended> {
    let deadline = Instant::now() + limit;
    let queue = Mutex::new(Queue::new(programs));
    let ended_programs = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..LANES {
            scope.spawn(|| {
                loop {
                    // Not in the condition of `while let`, which would hold the lock while the program runs.
                    let Some(program) = lock(&queue).take() else { return };
                    let (ended, lines) = run_program(&program, variables, deadline, interrupted);
                    lock(&queue).ended(&program);
                    // One prints at a time.
                    let mut ended_programs = lock(&ended_programs);
                    on_end(&ended, &lines);
                    ended_programs.push(ended);
                }
            });
        }
    });
    ended_programs.into_inner().unwrap_or_else(PoisonError::into_inner)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One program to its end, and what it printed.
fn run_program(
    program: &TestProgram,
    variables: &[(&str, String)],
    deadline: Instant,
    interrupted: &AtomicBool,
) -> (Ended, Vec<String>) {
    let start = Instant::now();
    let (mut counts, mut lines) = (TestCounts::default(), Vec::new());
    let left = deadline.saturating_duration_since(start);
    let failure = if interrupted.load(Ordering::Relaxed) {
        Some("not run: interrupted".to_owned())
    } else if left.is_zero() {
        Some("not run: the time was over".to_owned())
    } else {
        let mut command = program.command();
        command.envs(variables.iter().map(|(name, value)| (name, value)));
        if is_guest(program) {
            command.env("RUST_TEST_THREADS", GUESTS);
        }
        let ending = step::run_with_errors(&mut command, left, interrupted, &mut |line| {
            counts.line(line);
            keep(&mut lines, line);
        });
        ending.map_or_else(|error| Some(format!("{error:#}")), failure_of).or_else(|| counts.contradiction())
    };
    (Ended { name: program.name.clone(), took: start.elapsed(), counts, failure }, lines)
}

/// Adds a line, and leaves out the oldest half where a program prints without end.
fn keep(lines: &mut Vec<String>, line: &str) {
    if lines.len() == KEPT_LINES {
        lines.drain(..KEPT_LINES / 2);
        lines[0] = "(what came before is left out)".to_owned();
    }
    lines.push(line.to_owned());
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(600);
    /// What a test program ends with.
    const RESULT: &str = "; echo 'test result: ok. 1 passed; 0 failed; 0 ignored'";

    #[test]
    fn a_program_that_succeeds_without_a_result_failed() {
        let programs = vec![TestProgram::script("silent", "echo running 3 tests; exit 0")];
        let ended = run(programs, &[], LONG, &AtomicBool::new(false), &|_, _| {});
        assert_eq!(ended[0].failure.as_deref(), Some("it ended without a result"));
    }

    #[test]
    fn a_program_that_prints_without_end_is_ended_in_time() {
        let programs = vec![TestProgram::script("endless", "yes 0123456789")];
        let ended = run(programs, &[], Duration::from_secs(2), &AtomicBool::new(false), &|_, lines| {
            assert!(lines.len() <= KEPT_LINES);
        });
        assert!(ended[0].failure.is_some() && ended[0].took < LONG, "{:?}", ended[0]);
    }

    fn names(ended: &[Ended]) -> Vec<&str> {
        let mut names: Vec<&str> = ended.iter().map(|ended| ended.name.as_str()).collect();
        names.sort_unstable();
        names
    }

    #[test]
    fn every_program_runs_once_and_is_shown_whole() {
        let mut programs: Vec<TestProgram> = Vec::new();
        for number in 0..10 {
            let result = "test result: ok. 2 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out";
            let script = format!("echo $WORD {number}; echo '{result}' >&2; exit $(({number} == 4))");
            programs.push(TestProgram::script(&format!("p{number}"), &script));
        }
        let shown = Mutex::new(Vec::new());
        let variables = [("WORD", "so".to_owned())];
        let ended = run(programs, &variables, LONG, &AtomicBool::new(false), &|ended, lines| {
            lock(&shown).push((ended.name.clone(), lines[0].clone(), lines.len()));
        });
        assert_eq!(names(&ended), ["p0", "p1", "p2", "p3", "p4", "p5", "p6", "p7", "p8", "p9"]);
        for (name, first, lines) in lock(&shown).iter() {
            assert_eq!((first.clone(), *lines), (name.replace('p', "so "), 2));
        }
        for one in &ended {
            assert_eq!(one.counts.passed, 2, "{one:?}");
            assert_eq!(one.failure.as_deref(), (one.name == "p4").then_some("exit status: 1"));
        }
    }

    /// Each program waits for a file that the one beside it makes.
    #[test]
    fn programs_run_at_the_same_time() {
        let scratch = tempfile::tempdir().unwrap();
        let at = scratch.path().display();
        let wait = |mine: &str, other: &str| {
            format!("touch {at}/{mine}; until test -e {at}/{other}; do sleep 0.05; done{RESULT}")
        };
        let programs =
            vec![TestProgram::script("one", &wait("a", "b")), TestProgram::script("two", &wait("b", "a"))];
        let ended = run(programs, &[], LONG, &AtomicBool::new(false), &|_, _| {});
        assert!(ended.iter().all(|ended| ended.failure.is_none()), "{ended:?}");
    }

    #[test]
    fn one_program_of_guests_at_a_time() {
        let scratch = tempfile::tempdir().unwrap();
        // mkdir fails where the directory of another is still there.
        let script =
            format!("mkdir {0}/turn && sleep 0.1 && rmdir {0}/turn{RESULT}", scratch.path().display());
        let name = |number: usize| format!("p{number}{}", GUEST[number % GUEST.len()]);
        let programs = (0..5).map(|number| TestProgram::script(&name(number), &script)).collect();
        let ended = run(programs, &[], LONG, &AtomicBool::new(false), &|_, _| {});
        assert_eq!(ended.len(), 5);
        assert!(ended.iter().all(|ended| ended.failure.is_none()), "{ended:?}");
    }

    #[test]
    fn the_longest_is_taken_first_and_the_others_in_their_order() {
        let script = |name: &str| TestProgram::script(name, "");
        let longest = LONGEST_FIRST[0];
        let mut queue = Queue::new(vec![script("b"), script("a"), script(longest), script("x --test guest")]);
        let mut order = Vec::new();
        while let Some(program) = queue.take() {
            order.push(program.name);
        }
        // The other guest waits for the first.
        assert_eq!(order, [longest, "b", "a"]);
        queue.ended(&script(longest));
        assert_eq!(queue.take().unwrap().name, "x --test guest");
    }

    #[test]
    fn the_longest_are_programs_that_exist() {
        let root = crate::root();
        for name in LONGEST_FIRST {
            let (package, rest) = name.split_once(" --").expect("a package and what of it");
            let directory = match package {
                "rdsk" => "crates/cli".to_owned(),
                "xtask" => "xtask".to_owned(),
                room => format!("crates/{}", room.strip_prefix("rdsk-").expect("a room")),
            };
            let file = match rest.split_once(' ') {
                Some(("test", test)) => {
                    let file = test.strip_prefix("it ").and_then(|file| file.strip_suffix("::"));
                    format!("tests/{}.rs", file.unwrap_or(test))
                }
                Some(_) => "src/main.rs".to_owned(),
                None => "src/lib.rs".to_owned(),
            };
            assert!(root.join(&directory).join(&file).exists(), "{name}: {directory}/{file}");
        }
    }

    #[test]
    fn time_that_is_over_and_interruptions_are_failures_of_all_that_is_left() {
        let programs = |script: &str| (0..5).map(|n| TestProgram::script(&format!("p{n}"), script)).collect();
        let ended =
            run(programs("sleep 1000"), &[], Duration::from_secs(2), &AtomicBool::new(false), &|_, _| {});
        assert_eq!(ended.len(), 5);
        assert!(ended.iter().all(|ended| ended.failure.is_some()), "{ended:?}");
        let ended = run(programs("true"), &[], LONG, &AtomicBool::new(true), &|_, _| {});
        let all = ended.iter().all(|ended| ended.failure.as_deref() == Some("not run: interrupted"));
        assert!(all && ended.len() == 5, "{ended:?}");
    }
}
