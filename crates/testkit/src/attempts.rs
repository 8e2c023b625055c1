//! Exact figures beside other programs: what these can change is part of an attempt, and tried again. It judges nothing: the tests
//! do.

use std::fmt::Debug;

/// What the first attempt gives that is as expected. Another one says what differs, which is printed; where none is, the test fails
/// with the last.
#[track_caller]
pub fn first_right<T>(attempts: usize, mut attempt: impl FnMut() -> Result<T, String>) -> T {
    let mut last = String::new();
    for number in 1..=attempts {
        match attempt() {
            Ok(right) => return right,
            Err(differs) => {
                eprintln!("attempt {number} of {attempts}: {differs}");
                last = differs;
            }
        }
    }
    panic!("none of {attempts} attempts is as expected, and of the last one: {last}");
}

/// None once one of so many attempts has none, else those of the last, for tests that show the complaints of all their rows together.
pub fn complaints_after(attempts: usize, mut attempt: impl FnMut() -> Vec<String>) -> Vec<String> {
    let mut last = Vec::new();
    for number in 1..=attempts {
        last = attempt();
        if last.is_empty() {
            break;
        }
        eprintln!("attempt {number} of {attempts}: {}", last.join("; "));
    }
    last
}

/// An error in these words unless something holds.
pub fn ensure(holds: bool, words: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(words()) }
}

/// An error that names both unless they are the same.
pub fn same<T: PartialEq + Debug>(what: &str, actual: &T, expected: &T) -> Result<(), String> {
    ensure(actual == expected, || format!("{what}: {actual:?}, not {expected:?}"))
}
