//! One row of the table of refusals, and how it is tried in a guest: with something in the way rdsk refuses, with the
//! right identity, and the content stays; without it the same command writes. Both halves are one row, because a guard that
//! refuses all would pass the first.
#![allow(clippy::print_stderr, reason = "with --nocapture each row says what it took")]

use std::time::{Duration, Instant};

use rdsk_testkit::guest::campaign::note;
use rdsk_testkit::guest::{Booted, Scenario, ScenarioOutcome, Tier};

/// A way to be in use. The shell parts run under `set -eu`, find the disks in `$A`, `$B` …, blank at the start, and use
/// what docs/guest.md lists.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Refusal {
    /// Its name in messages and tables.
    pub(crate) name: &'static str,
    /// Puts something in the way.
    pub(crate) set_up: &'static str,
    /// What rdsk is asked to write to.
    pub(crate) target: &'static str,
    /// The right identity of that.
    pub(crate) identity: &'static str,
    /// The command that asks for writing, up to the words that allow it.
    pub(crate) command: &'static str,
    /// The option that allows it, with the identity where it takes one.
    pub(crate) allow: Allow,
    /// The devices whose content must stay.
    pub(crate) hashed: &'static str,
    /// The code of the refusal.
    pub(crate) code: &'static str,
    /// Words of its message.
    pub(crate) says: &'static [&'static str],
    /// Takes it out of the way.
    pub(crate) tear_down: &'static str,
    /// When it is tried.
    pub(crate) tier: Tier,
}

/// What allows to write a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Allow {
    /// `--destroy IDENTITY`, for a block device.
    Destroy,
    /// `--overwrite`, for a file.
    Overwrite,
}

/// What most rows have in common: the disk `$A` by its serial number, in the campaign only.
pub(crate) const ROW: Refusal = Refusal {
    name: "",
    set_up: "",
    target: "$A",
    identity: "$A_ID",
    command: "run --only headline --rw write --budget 500ms --evidence sysfs",
    allow: Allow::Destroy,
    hashed: "$A",
    code: "",
    says: &[],
    tear_down: "",
    tier: Tier::Extended,
};

impl Refusal {
    /// The row as a script. The command is the shortest that writes and counts.
    fn scenario(&self, disks: &str) -> Scenario {
        let Self { set_up, target, identity, command, hashed, tear_down, .. } = self;
        let allow = match self.allow {
            Allow::Destroy => format!("--destroy \"{identity}\""),
            Allow::Overwrite => "--overwrite".to_owned(),
        };
        let script = format!(
            "fresh {disks}
{set_up}
attempt() {{
    call $1 rdsk {command} \"{target}\" --quiet {allow} --json - --json-compact
}}
fact before $(hash {hashed})
attempt refused
fact after $(hash {hashed})
{tear_down}
fact free $(hash {target})
attempt written
fact end $(hash {target})
"
        );
        Scenario::new(self.name, script).limit(Duration::from_secs(600))
    }

    /// What is wrong with the outcome, if anything.
    fn complaint(&self, outcome: &ScenarioOutcome) -> Option<String> {
        if let Some(failure) = outcome.failure() {
            return Some(failure);
        }
        let (refused, written) = (outcome.call("refused"), outcome.call("written"));
        let mut wrong: Vec<String> = Vec::new();
        if outcome.fact("before") != outcome.fact("after") {
            wrong.push("CHANGED THE CONTENT of what is in use".into());
        }
        if refused.code != 3 {
            wrong.push(format!("not refused: {}", refused.said()));
        } else {
            let error = &refused.json()["error"];
            let message = error["message"].as_str().unwrap_or_default();
            if error["code"] != self.code {
                wrong.push(format!("refused as {} and not as {:?}: {message}", error["code"], self.code));
            }
            let missing = self.says.iter().filter(|words| !message.contains(*words));
            wrong.extend(missing.map(|words| format!("no {words:?} in: {message}")));
        }
        if written.code != 0 {
            wrong.push(format!("refused without reason: {}", written.said()));
        } else if outcome.fact("free") == outcome.fact("end") {
            wrong.push("wrote nothing though nothing was in the way".into());
        }
        (!wrong.is_empty()).then(|| wrong.join("\n"))
    }
}

/// Tries the rows in a guest whose blank disks are `disks` (`"$A $B"`).
///
/// # Panics
/// At the end, with all that was wrong in all rows.
pub(crate) fn try_all(guest: &mut Booted, group: &str, disks: &str, rows: &[Refusal]) {
    let mut wrong = Vec::new();
    // To work on one row: RDSK_ROW="second path".
    let only = std::env::var("RDSK_ROW").unwrap_or_default();
    for row in rows.iter().filter(|row| row.name.contains(&only)) {
        let start = Instant::now();
        let outcome = guest.run(&row.scenario(disks));
        let complaint = row.complaint(&outcome);
        let calls: Vec<String> = outcome
            .calls()
            .iter()
            .map(|call| format!("{} {:.1} s", call.name, call.took.as_secs_f64()))
            .collect();
        let (whole, script) = (start.elapsed().as_secs_f64(), outcome.took().as_secs_f64());
        eprintln!("{group}: {}: {whole:.1} s, script {script:.1} s: {}", row.name, calls.join(", "));
        note(group, row.name, complaint.as_deref().unwrap_or("refused; free: written"), start.elapsed());
        wrong.extend(complaint.map(|complaint| format!("── {}\n{complaint}", row.name)));
        // What stays behind would stand in the next row's way.
        if !outcome.unclean().is_empty() {
            wrong.push(format!("── {}\nnot taken down: {}", row.name, outcome.unclean()));
        }
    }
    assert!(wrong.is_empty(), "{} complaints\n{}", wrong.len(), wrong.join("\n"));
}
