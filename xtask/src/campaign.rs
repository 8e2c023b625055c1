//! `cargo xtask campaign NAME`: series of tests that take too long for every change, or need a quiet machine. A campaign runs
//! test programs with everything enabled, and turns the notes that they leave, or what they print, into a page under
//! xtask/records/campaigns.

use crate::{options, origin, step, suite, tools};
use anyhow::{Context as _, Result, bail, ensure};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

/// One campaign.
struct Campaign {
    name: &'static str,
    /// What it is, in the list and on its page.
    about: &'static str,
    /// The arguments of cargo.
    cargo: &'static str,
    /// What the machine must have.
    needs: &'static str,
    /// How often the tests run.
    rounds: usize,
    /// Longest time of a round, in seconds.
    limit_s: u64,
}

const CAMPAIGNS: &[Campaign] = &[
    Campaign {
        name: "guest",
        about: "every scenario in a virtual machine with md, LVM, device mapper, NVMe and SCSI, the extended ones too",
        cargo: "test -p rdsk --test guest --no-fail-fast -- --test-threads=1 --nocapture",
        needs: "root,guest",
        rounds: 1,
        limit_s: 3 * 3600,
    },
    Campaign {
        name: "verdicts",
        about: "twenty runs each of what a verdict or a finding must name: loop devices that no disk answers, busy loops, a rival",
        cargo: "test -p rdsk --test it --no-fail-fast -- --ignored --test-threads=1 --nocapture verdicts::",
        needs: "root,loop,cachestat",
        rounds: 1,
        limit_s: 3600,
    },
    Campaign {
        name: "kills",
        about: "a hundred runs killed at random moments, and two hundred at once: what the history holds afterwards",
        cargo: "test -p rdsk --test it --no-fail-fast -- --test-threads=1 --nocapture history::survives::",
        needs: "root",
        rounds: 1,
        limit_s: 3600,
    },
    Campaign {
        name: "mpi",
        about: "ranks under mpirun, each with a network, mounts and a clock of its own: starts, sums, a slow rank, a killed one, 64 ranks",
        cargo: "test -p rdsk --features mpi --test it --no-fail-fast -- --ignored --test-threads=1 --nocapture ranks::",
        needs: "root,fuse,tool:mpirun",
        rounds: 1,
        limit_s: 3600,
    },
    Campaign {
        name: "timing",
        about: "the tests that another program on the machine can fail: times, rates and depths that only a quiet one shows",
        cargo: "test --workspace --test it --no-fail-fast -- --ignored --test-threads=1 timing::",
        needs: "root,loop,fuse",
        rounds: 3,
        limit_s: 3600,
    },
];

/// One line of the notes: group, name, result, seconds.
type Note = [String; 4];

/// Runs the campaign that the arguments name and writes its page; without a name, prints the list.
///
/// # Errors
/// When there is no such campaign, when it cannot be started, or when it left no notes.
pub(crate) fn run(root: &Path, arguments: &[String]) -> Result<ExitCode> {
    let (words, _) = options::parse(arguments, &[])?;
    let name = match words.as_slice() {
        [] => {
            CAMPAIGNS.iter().for_each(|campaign| println!("{:<8} {}", campaign.name, campaign.about));
            return Ok(ExitCode::SUCCESS);
        }
        [name] => name,
        [_, unknown, ..] => bail!("unknown argument \"{unknown}\""),
    };
    let campaign = CAMPAIGNS.iter().find(|campaign| campaign.name == name);
    let campaign = campaign.with_context(|| format!("there is no campaign \"{name}\""))?;
    let page = root.join("xtask/records/campaigns").join(format!("{}.md", campaign.name));
    let (notes, failure) = noted(root, campaign)?;
    let ending = failure.as_deref().unwrap_or("yet it passed");
    ensure!(!notes.is_empty(), "the campaign left no notes ({ending})");
    crate::write(&page, &draw(&head(campaign)?, &notes, failure.as_deref()))?;
    println!("{} results in {}", notes.len(), page.display());
    Ok(if failure.is_none() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Runs a campaign: the notes that its tests leave, or where they leave none how often each passed; and why it failed, if it did.
fn noted(root: &Path, campaign: &Campaign) -> Result<(Vec<Note>, Option<String>)> {
    let notes_path =
        root.join("target").join(format!("campaign-{}-{}.txt", campaign.name, std::process::id()));
    crate::write(&notes_path, "")?;
    let mut command = suite::cargo(root, &campaign.cargo.split(' ').collect::<Vec<_>>());
    command
        .env("RDSK_CAMPAIGN", campaign.name)
        .env("RDSK_CAMPAIGN_NOTES", &notes_path)
        .env("RDSK_MUST_HAVE", campaign.needs);
    let interrupted = step::interruption()?;
    tools::install(&interrupted)?;
    let (mut passes, mut failure) = (BTreeMap::new(), None);
    for _ in 0..campaign.rounds {
        let limit = Duration::from_secs(campaign.limit_s);
        let ending = step::run(&mut command, limit, &interrupted, &mut |line| {
            println!("{line}");
            count_result(line, &mut passes);
        })?;
        failure = failure.or(suite::failure_of(ending));
    }
    let notes = parse(&fs::read_to_string(&notes_path)?);
    // A file left behind is harmless: it lies in the build directory.
    let _ = fs::remove_file(&notes_path);
    Ok((if notes.is_empty() { notes_of(passes) } else { notes }, failure))
}

/// How often each test passed, of how many runs.
type Passes = BTreeMap<String, (usize, usize)>;

/// Counts the line of a test program that shows the result of a test: `test timing::rates ... ok`.
fn count_result(line: &str, passes: &mut Passes) {
    let told = line.strip_prefix("test ").and_then(|rest| rest.split_once(" ... "));
    if let Some((test, result)) = told.filter(|(_, result)| ["ok", "FAILED"].contains(result)) {
        let (passed, runs) = passes.entry(test.to_owned()).or_default();
        (*passed, *runs) = (*passed + usize::from(result == "ok"), *runs + 1);
    }
}

fn notes_of(passes: Passes) -> Vec<Note> {
    let note = |(test, (passed, runs)): (String, (usize, usize))| {
        let mark = if passed < runs { "**" } else { "" };
        ["test".to_owned(), test, format!("{mark}passed {passed} of {runs}{mark}"), "–".to_owned()]
    };
    passes.into_iter().map(note).collect()
}

/// The lines that have all parts.
fn parse(text: &str) -> Vec<Note> {
    let parts = |line: &str| line.split('\t').map(str::to_owned).collect::<Vec<_>>().try_into().ok();
    text.lines().filter_map(parts).collect()
}

/// The beginning of a campaign's page.
fn head(campaign: &Campaign) -> Result<String> {
    let Campaign { name, about, .. } = campaign;
    let date = origin::now("+%F")?;
    let machine = origin::machine();
    Ok(format!(
        "# Campaign `{name}`\n\nMade by `cargo xtask campaign {name}` on {date}: {about}.\n\nMachine: {machine}.\n\n"
    ))
}

/// The page. Notes of the group `boot` say which kernel ran and are no results.
fn draw(head: &str, notes: &[Note], failure: Option<&str>) -> String {
    let (boots, results): (Vec<&Note>, Vec<_>) = notes.iter().partition(|[group, ..]| group == "boot");
    let kernels: BTreeSet<&str> = boots.iter().map(|[_, kernel, ..]| kernel.as_str()).collect();
    let mut page = head.to_owned();
    let mut line = |text: String| writeln!(page, "{text}").expect("a String takes everything");
    if !kernels.is_empty() {
        let kernels: Vec<&str> = kernels.into_iter().collect();
        line(format!("Kernel: {}; {} boots.", kernels.join(", "), boots.len()));
    }
    line(match failure {
        None => format!("{} scenarios, all as expected.\n", results.len()),
        Some(why) => format!("{} scenarios. **It failed**: {why}\n", results.len()),
    });
    line("| group | scenario | result | s |\n|---|---|---|---:|".into());
    for note in results {
        line(format!("| {} |", note.join(" | ")));
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str =
        "boot\t6.1.0-1\tup\t5.0\nuse\tmounted ext4\trefused\t3.2\nbroken\nboot\t6.1.0-1\tup\t5.1\n";

    #[test]
    fn a_page_says_date_kernel_and_every_result() {
        let notes = parse(TEXT);
        assert_eq!(notes.len(), 3);
        let page = draw(&head(&CAMPAIGNS[0]).unwrap(), &notes, None);
        for words in [
            "# Campaign `guest`\n\nMade by `cargo xtask campaign guest` on 20",
            "Kernel: 6.1.0-1; 2 boots.",
            "1 scenarios, all",
            "| use | mounted ext4 | refused | 3.2 |",
        ] {
            assert!(page.contains(words), "no {words:?} in {page}");
        }
        assert!(draw("", &notes, Some("exit status: 101")).contains("**It failed**: exit status: 101"));
    }

    #[test]
    fn tests_without_notes_are_counted_by_their_results() {
        let mut passes = Passes::new();
        for line in [
            "test timing::a ... ok", "test timing::b ... ok", "test timing::a ... FAILED",
            "test c ... ignored",
        ] {
            count_result(line, &mut passes);
        }
        let results: Vec<String> =
            notes_of(passes).into_iter().map(|[_, test, result, _]| test + " " + &result).collect();
        assert_eq!(results, ["timing::a **passed 1 of 2**", "timing::b passed 1 of 1"]);
    }

    #[test]
    fn campaigns_have_names_of_their_own() {
        let mut names: Vec<&str> = CAMPAIGNS.iter().map(|campaign| campaign.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), CAMPAIGNS.len());
        assert!(run(Path::new("/nonexistent"), &["nothing".to_owned()]).is_err());
        assert!(CAMPAIGNS.iter().all(|campaign| campaign.limit_s > 0 && campaign.rounds > 0));
    }

    const REASON: &str = "#[ignore = \"timing: cargo xtask campaign timing\"]";

    /// Tests of a file that are not left to the campaign, if `is_timing`; else those that are.
    fn misplaced(text: &str, is_timing: bool) -> Vec<String> {
        let lines: Vec<&str> = text.lines().map(str::trim).collect();
        let tests = lines.iter().enumerate().filter(|(_, line)| **line == "#[test]");
        tests
            .filter(|(index, _)| (lines.get(index + 1) == Some(&REASON)) != is_timing)
            .map(|(index, _)| {
                lines[index + 1..].iter().find(|line| line.contains("fn ")).unwrap_or(&"").to_string()
            })
            .collect()
    }

    #[test]
    fn what_the_campaign_runs_lies_in_its_files_and_nothing_else_does() {
        let marked = format!("#[test]\n{REASON}\nfn a() {{}}\n");
        assert_eq!(misplaced(&marked, false), ["fn a() {}"]);
        assert!(misplaced(&marked, true).is_empty());
        assert_eq!(misplaced("#[test]\nfn b() {}\n", true), ["fn b() {}"]);
        let root = crate::root();
        let mut files = 0;
        for path in crate::arch::rust_sources(&root).unwrap() {
            let words: Vec<_> = path.components().map(|part| part.as_os_str().to_string_lossy()).collect();
            let is_timing = words.get(2).is_some_and(|word| word == "tests")
                && words.get(3).is_some_and(|word| word == "timing.rs" || word == "timing");
            let text = fs::read_to_string(root.join(&path)).unwrap();
            assert_eq!(misplaced(&text, is_timing), [""; 0], "in {}", path.display());
            files += usize::from(is_timing);
        }
        assert!(files > 10, "{files} files");
    }
}
