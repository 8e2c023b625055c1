//! `cargo xtask campaign NAME`: series of tests that take too long for every change, or need a quiet machine. A campaign runs
//! test programs with everything enabled, and turns the notes that they leave, or what they print, into a page under
//! xtask/records/campaigns.

mod loaded;
mod timing;

use crate::{options, origin, step, suite, tools};
use anyhow::{Context as _, Result, bail, ensure};
use std::collections::BTreeSet;
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
    /// Longest time in seconds.
    limit_s: u64,
}

const CAMPAIGNS: &[Campaign] = &[
    Campaign {
        name: "guest",
        about: "every scenario in a virtual machine with md, LVM, device mapper, NVMe and SCSI, the extended ones too",
        cargo: "test -p rdsk --test guest --no-fail-fast -- --test-threads=1 --nocapture",
        needs: "root,guest",
        limit_s: 3 * 3600,
    },
    Campaign {
        name: "verdicts",
        about: "twenty runs each of what a verdict or a finding must name: loop devices that no disk answers, busy loops, a rival",
        cargo: "test -p rdsk --test it --no-fail-fast -- --ignored --test-threads=1 --nocapture verdicts::",
        needs: "root,loop,cachestat",
        limit_s: 3600,
    },
    Campaign {
        name: "kills",
        about: "a hundred runs killed at random moments, and two hundred at once: what the history holds afterwards",
        cargo: "test -p rdsk --test it --no-fail-fast -- --test-threads=1 --nocapture history::survives::",
        needs: "root",
        limit_s: 3600,
    },
    Campaign {
        name: TIMING,
        about: "the tests that another program on the machine can fail: times, rates and depths that only a quiet one shows",
        // It runs what the tests of the whole workspace are built into.
        cargo: "",
        needs: "",
        limit_s: 3600,
    },
    Campaign {
        name: LOADED,
        about: "the whole suite, again and again beside two busy loops and a syncing writer (--runs N)",
        // It runs what the step `test` of `cargo xtask test` runs.
        cargo: "",
        needs: "",
        limit_s: 3600,
    },
];

/// The campaign whose tests leave no notes and run one at a time.
const TIMING: &str = "timing";
/// The campaign whose results are the totals of the suite.
const LOADED: &str = "loaded";

/// One line of the notes: group, name, result, seconds.
type Note = [String; 4];

/// Runs the campaign that the arguments name and writes its page; without a name, prints the list.
///
/// # Errors
/// When there is no such campaign, when it cannot be started, or when it left no notes.
pub(crate) fn run(root: &Path, arguments: &[String]) -> Result<ExitCode> {
    let (words, options) = options::parse(arguments, &["--runs"])?;
    let name = match words.as_slice() {
        [] => {
            CAMPAIGNS.iter().for_each(|campaign| println!("{:<8} {}", campaign.name, campaign.about));
            return Ok(ExitCode::SUCCESS);
        }
        [name] => name,
        [_, unknown, ..] => bail!("unknown argument \"{unknown}\""),
    };
    ensure!(options.is_empty() || name == LOADED, "--runs is for \"{LOADED}\" only");
    let campaign = CAMPAIGNS.iter().find(|campaign| campaign.name == name);
    let campaign = campaign.with_context(|| format!("there is no campaign \"{name}\""))?;
    let page = root.join("xtask/records/campaigns").join(format!("{}.md", campaign.name));
    if name == LOADED {
        let runs = options.get("--runs").map_or(Ok(loaded::RUNS), |text| text.parse());
        return loaded::run(root, campaign, &page, runs.context("--runs needs a number")?);
    }
    let limit = Duration::from_secs(campaign.limit_s);
    let (notes, failure) = match name.as_str() {
        TIMING => {
            let notes = timing::run(root, limit)?;
            let failed = notes.iter().filter(|[_, _, result, _]| result.starts_with("**")).count();
            (notes, (failed > 0).then(|| format!("{failed} tests failed once or more")))
        }
        _ => noted(root, campaign, limit)?,
    };
    let ending = failure.as_deref().unwrap_or("yet it passed");
    ensure!(!notes.is_empty(), "the campaign left no notes ({ending})");
    crate::write(&page, &draw(&head(campaign)?, &notes, failure.as_deref()))?;
    println!("{} results in {}", notes.len(), page.display());
    Ok(if failure.is_none() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Runs a campaign whose tests leave notes: those, and why it failed, if it did.
fn noted(root: &Path, campaign: &Campaign, limit: Duration) -> Result<(Vec<Note>, Option<String>)> {
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
    let ending = step::run(&mut command, limit, &interrupted, &mut |line| println!("{line}"))?;
    let notes = parse(&fs::read_to_string(&notes_path)?);
    // A file left behind is harmless: it lies in the build directory.
    let _ = fs::remove_file(&notes_path);
    Ok((notes, suite::failure_of(ending)))
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
    fn campaigns_have_names_of_their_own() {
        let mut names: Vec<&str> = CAMPAIGNS.iter().map(|campaign| campaign.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), CAMPAIGNS.len());
        assert!(run(Path::new("/nonexistent"), &["nothing".to_owned()]).is_err());
        assert!(CAMPAIGNS.iter().all(|campaign| campaign.limit_s > 0));
    }
}
