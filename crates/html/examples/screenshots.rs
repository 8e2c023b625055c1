//! Takes pictures of every page in a directory, for people to look at: on a desk in light and dark colours, on a phone, and as it
//! prints. `cargo xtask screenshots` makes the pages and calls it.
#![allow(clippy::unwrap_used, reason = "a picture that cannot be taken ends it")]

#[allow(dead_code, reason = "shared with the tests, which ask more of it")]
#[path = "../tests/browser/chromium.rs"]
mod chromium;

use chromium::{DESK, PHONE, Shown};
use std::path::{Path, PathBuf};

fn main() {
    let directory = std::env::args().nth(1).map(PathBuf::from).expect("the directory of the pages is given");
    let mut pages: Vec<PathBuf> =
        std::fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    pages.retain(|path| path.extension().is_some_and(|extension| extension == "html"));
    pages.sort();
    for page in pages {
        take(&std::fs::canonicalize(page).unwrap());
    }
}

fn take(page: &Path) {
    let shown = Shown::open(page);
    let write = |what: &str, bytes: &[u8]| {
        let name = page.file_stem().unwrap().to_string_lossy().into_owned();
        std::fs::write(page.with_file_name(format!("{name}-{what}")), bytes).unwrap();
    };
    write("light.png", &shown.png(DESK.0));
    shown.theme("dark");
    write("dark.png", &shown.png(DESK.0));
    shown.theme("light");
    shown.screen(PHONE);
    write("phone.png", &shown.png(PHONE.0));
    shown.screen(DESK);
    write("print.pdf", &shown.pdf());
    assert_eq!(shown.complaints(), [] as [String; 0], "{}", page.display());
}
