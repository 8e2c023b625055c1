//! What the kernel itself says that the BPF programs of a process took: their run time and calls (`bpf_stats_enabled`), which show a
//! part of a thousand where rates scatter by a tenth.

use crate::programs::looked_at;
use anyhow::{Context as _, Result};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

const SWITCH: &str = "/proc/sys/kernel/bpf_stats_enabled";
/// What reaching a program takes, which its run time leaves out: two empty ones at a bio made its read longer by 157 to 182 ns
/// (xtask/records/benchmarks.md, "Counting").
const CALL_NS: u64 = 80;

/// The switch, on for as long as this lives, and then as it was.
pub(super) struct Counting {
    before: String,
}

impl Counting {
    pub(super) fn on() -> Result<Self> {
        let before = fs::read_to_string(SWITCH).with_context(|| SWITCH.to_owned())?;
        fs::write(SWITCH, "1").with_context(|| SWITCH.to_owned())?;
        Ok(Self { before: before.trim().to_owned() })
    }

    /// Runs a program to its end: what it wrote, and the time that its BPF programs took, in ns. The counts go away with the programs:
    /// what they took after the last look is missing.
    pub(super) fn run(&self, command: &mut Command) -> Result<(String, u64)> {
        let mut programs = Programs::default();
        let text = looked_at(command, |process| programs.look(&process.join("fdinfo")))?;
        Ok((text, programs.time_ns()))
    }
}

impl Drop for Counting {
    fn drop(&mut self) {
        if let Err(error) = fs::write(SWITCH, &self.before) {
            eprintln!("{SWITCH} stays on: {error}");
        }
    }
}

/// Run time and calls of each program, by its number, as they were when it was seen last.
#[derive(Debug, Default, PartialEq)]
struct Programs(BTreeMap<u64, (u64, u64)>);

impl Programs {
    /// A process that has gone shows nothing more.
    fn look(&mut self, place: &Path) {
        let files = fs::read_dir(place).into_iter().flatten().flatten();
        files.filter_map(|file| fs::read_to_string(file.path()).ok()).for_each(|text| self.add(&text));
    }

    /// Adds what the kernel says of an open file, if that is a program.
    fn add(&mut self, text: &str) {
        let number = |name: &str| {
            let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
            value.trim().parse().ok()
        };
        if let (Some(id), Some(time_ns), Some(calls)) =
            (number("prog_id"), number("run_time_ns"), number("run_cnt"))
        {
            self.0.insert(id, (time_ns, calls));
        }
    }

    fn time_ns(&self) -> u64 {
        self.0.values().map(|(time_ns, calls)| time_ns + CALL_NS * calls).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_program_counts_once_as_it_was_seen_last() {
        let mut seen = Programs::default();
        let file = |id: u64, time: u64, calls: u64| {
            format!(
                "pos:\t0\nprog_type:\t26\nprog_id:\t{id}\nrun_time_ns:\t{time}\nrun_cnt:\t{calls}\nverified_insns:\t9\n"
            )
        };
        for text in [file(7, 100, 1), file(8, 50, 2), file(7, 300, 3)] {
            seen.add(&text);
        }
        seen.add("pos:\t0\nflags:\t02\nmnt_id:\t9\nino:\t1\n");
        // What links a program names it and has no counts.
        seen.add("link_type:\traw_tracepoint\nprog_id:\t9\n");
        assert_eq!(seen, Programs([(7, (300, 3)), (8, (50, 2))].into()));
        assert_eq!(seen.time_ns(), 350 + 5 * CALL_NS);
    }
}
