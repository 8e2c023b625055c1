//! `cargo xtask screenshots`: pages of simulated runs of every experiment, of the golden Records and of runs over each other, as
//! pictures for people to look at: light, dark, on a phone, and as a PDF of what is printed. It judges nothing.

use crate::programs::{self, checked};
use crate::{step, suite, tools};
use anyhow::{Context as _, Result, bail, ensure};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Names of Records and the command lines that measure them; the systems are those of the reports.
const RUNS: &[(&str, &str)] = &[
    ("run", "run sim:linux-disk"),
    ("paths", "paths sim:hpux-k460"),
    ("paths-1m", "paths sim:hpux-k460-1m"),
    ("stream", "stream sim:linux-disk"),
    ("stream-san", "stream sim:solaris-san"),
    ("zones", "zones sim:freebsd-wd800jd"),
    ("zones-other", "zones sim:linux-disk --bs 1M,5M"),
    ("scale", "scale sim:tms-ramsan-3"),
    ("scale-one", "scale sim:tms-ramsan"),
    ("align", "align sim:wd2500"),
    ("align-other", "align sim:linux-disk"),
    ("scale-two", "scale sim:tms-ramsan-2"),
    ("stripe", "stripe sim:raid5"),
    ("stripe-6", "stripe sim:raid6"),
];
/// Records that lie over each other on one page.
const TOGETHER: &[(&str, &[&str])] = &[
    ("compare-paths", &["paths", "paths-1m"]),
    ("compare-stream", &["stream", "stream-san"]),
    ("compare-zones", &["zones", "zones-other"]),
    ("compare-scale", &["scale-one", "scale-two", "scale"]),
    ("compare-align", &["align", "align-other"]),
    ("compare-stripe", &["stripe", "stripe-6"]),
];
/// Pictures of the documents: what each is called there, and which of the pictures it is.
const DOCUMENTED: &[(&str, &str)] = &[
    ("page-light", "run.first-light"),
    ("page-dark", "run.first-dark"),
    ("page-phone", "run.first-phone"),
    ("page-print", "run.print"),
    ("page-three", "compare-scale.first-light"),
];
const DOCUMENTS: &str = "docs/pictures";
const GOLDEN: &str = "crates/cli/tests/golden";
/// A browser needs seconds for each page.
const LIMIT: Duration = Duration::from_secs(1200);

/// Writes pages and pictures into the directory that the arguments name, or below `target`; with `--docs` also those of the documents.
///
/// # Errors
/// When a run or a page fails, or there is no browser.
pub(crate) fn run(root: &Path, arguments: &[String]) -> Result<()> {
    let (directory, is_documented) = match arguments {
        [] => (root.join("target/screenshots"), false),
        [flag] if flag == "--docs" => (root.join("target/screenshots"), true),
        [directory] if !directory.starts_with('-') => (PathBuf::from(directory), false),
        _ => bail!("cargo xtask screenshots takes a directory, --docs or nothing"),
    };
    fs::create_dir_all(&directory).with_context(|| directory.display().to_string())?;
    let directory = directory.canonicalize()?;
    let interrupted = step::interruption()?;
    tools::install(&interrupted)?;
    let program = programs::rdsk(root)?;
    let json = |name: &str| directory.join(format!("{name}.json"));
    for (name, line) in RUNS {
        println!("rdsk {line}");
        let mut command = Command::new(&program);
        command.args(line.split(' ')).args(["--seed", "1", "--quiet", "--json"]).arg(json(name));
        checked(&mut command)?;
        page(&program, &directory, name, &[json(name)])?;
    }
    for (name, records) in TOGETHER {
        page(&program, &directory, name, &records.iter().map(|name| json(name)).collect::<Vec<_>>())?;
    }
    for golden in fs::read_dir(root.join(GOLDEN)).context(GOLDEN)? {
        let path = golden?.path();
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        page(&program, &directory, &format!("golden-{name}"), &[path])?;
    }
    let words =
        ["test", "-p", "rdsk-html", "--test", "it", "--", "--ignored", "--exact", "browser::screenshots"];
    let mut command = suite::cargo(root, &words);
    command.env("RDSK_SCREENSHOTS", &directory);
    let ending = step::run(&mut command, LIMIT, &interrupted, &mut |line| println!("{line}"))?;
    let failure = suite::failure_of(ending);
    ensure!(failure.is_none(), "the browser: {}", failure.unwrap_or_default());
    println!("pictures in {}", directory.display());
    if is_documented { document(root, &directory) } else { Ok(()) }
}

/// Puts the pictures of the documents where these show them; the first printed page becomes a picture.
fn document(root: &Path, directory: &Path) -> Result<()> {
    let mut command = Command::new("pdftoppm");
    command.args(["-png", "-r", "70", "-f", "1", "-l", "1", "-singlefile"]);
    checked(command.arg(directory.join("run.pdf")).arg(directory.join("run.print")))?;
    for (name, picture) in DOCUMENTED {
        let to = root.join(DOCUMENTS).join(format!("{name}.png"));
        fs::copy(directory.join(format!("{picture}.png")), &to).with_context(|| to.display().to_string())?;
    }
    Ok(())
}

fn page(program: &Path, directory: &Path, name: &str, records: &[PathBuf]) -> Result<()> {
    let mut command = Command::new(program);
    command.arg("report").args(records).arg("-o").arg(directory.join(format!("{name}.html")));
    checked(&mut command).map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_measured(name: &str) -> bool {
        RUNS.iter().any(|(known, _)| *known == name)
    }

    #[test]
    fn what_lies_over_each_other_was_measured() {
        for (name, records) in TOGETHER {
            assert!(records.len() > 1 && records.iter().all(|record| is_measured(record)), "{name}");
            assert!(!is_measured(name), "{name} is written once");
        }
    }

    #[test]
    fn nothing_but_a_directory_is_taken() {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        for line in ["--help", "a b", "--docs a"] {
            assert!(run(Path::new("/nonexistent"), &words(line)).is_err(), "{line}");
        }
    }
}
