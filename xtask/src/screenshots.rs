//! Pages of simulated systems and pictures of them, for people to look at. It runs the built program and a headless chromium, and
//! judges nothing.

use crate::programs::{checked, executable, rdsk};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The pages: their names, and the command lines that make them.
const PAGES: [(&str, &str); 7] = [
    ("run", "run sim:linux-disk --seed 1"),
    ("paths", "paths sim:hpux-k460 --seed 1"),
    ("stream", "stream sim:linux-disk --bs 16k --seed 1"),
    ("zones", "zones sim:freebsd-wd800jd --seed 1"),
    ("scale", "scale sim:tms-ramsan --seed 1"),
    ("align", "align sim:wd2500 --seed 1"),
    ("stripe", "stripe sim:raid5 --seed 1"),
];

/// Writes pages and pictures into a directory: the one that is named, or `target/screenshots`.
///
/// # Errors
/// When the program or chromium cannot be run, or a page complains.
pub(crate) fn run(root: &Path, arguments: &[String]) -> anyhow::Result<()> {
    let directory = match arguments {
        [] => root.join("target/screenshots"),
        [directory] => PathBuf::from(directory),
        _ => anyhow::bail!("cargo xtask screenshots takes a directory or nothing"),
    };
    std::fs::create_dir_all(&directory)?;
    let program = rdsk(root)?;
    for (name, line) in PAGES {
        let page = directory.join(format!("{name}.html"));
        checked(
            Command::new(&program).args(line.split_whitespace()).arg("--quiet").arg("--report").arg(&page),
        )?;
        println!("wrote {}", page.display());
    }
    let camera = executable(root, &["--package", "rdsk-html", "--example", "screenshots"])?;
    checked(Command::new(camera).arg(&directory))?;
    println!("pictures are in {}", directory.display());
    Ok(())
}
