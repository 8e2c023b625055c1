//! `rdsk compare` and `rdsk report` over the results of many hosts: simulated ones, each with parameters of its own, and what is not read.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use crate::common::{error_and_hint, rdsk, scratch};
use serde_json::Value;
use std::fs;
use std::path::Path;

const HOSTS: usize = 12;
const BAD: usize = 4;

/// Results of hosts whose disks turn a little faster or slower than 7200 times in a minute, and of one that turns at half of it.
fn results(directory: &Path) {
    let shown = rdsk(["sim", "show", "wd2500"]).stdout;
    let rpm = "rpm = 7200";
    assert!(shown.contains(rpm), "{shown}");
    for host in 0..HOSTS {
        let turns = if host == BAD { 3600 } else { 7150 + 10 * (host * 5 % 11) };
        let (system, label) = (directory.join("system.toml"), format!("web{host:02}"));
        fs::write(&system, shown.replace(rpm, &format!("rpm = {turns}"))).unwrap();
        let json = directory.join(format!("{label}.json"));
        let name = format!("sim:{}", system.to_str().unwrap());
        let seed = (host + 1).to_string();
        let run = rdsk([
            "stream",
            &name,
            "--rw",
            "read",
            "--budget",
            "5s",
            "--quiet",
            "--seed",
            &seed,
            "--label",
            &label,
            "--json",
            json.to_str().unwrap(),
        ]);
        assert_eq!(run.status_code, Some(0), "{}", run.stderr);
    }
}

#[test]
fn the_slow_disk_of_a_directory_of_results_is_named() {
    let scratch = scratch();
    results(scratch.path());
    let directory = scratch.path().to_str().unwrap();
    let page = rdsk(["compare", directory]);
    assert_eq!((page.status_code, page.stderr.as_str()), (Some(0), ""), "{}", page.stdout);
    let said = page.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        said.starts_with("1 of 12 disks is slower than the others of its model: web04 "),
        "{}",
        page.stdout
    );
    assert!(page.stdout.lines().all(|line| line.chars().count() <= 80), "{}", page.stdout);
    let files: Vec<String> = (0..HOSTS).map(|host| format!("{directory}/web{host:02}.json")).collect();
    let named = rdsk(std::iter::once("compare").chain(files.iter().map(String::as_str)));
    assert_eq!(named.stdout, page.stdout, "more than eight files are a fleet");
    let report = rdsk(["report", directory]);
    assert_eq!((report.status_code, &report.stdout), (Some(0), &page.stdout), "{}", report.stderr);
    let pairs = rdsk(std::iter::once("compare").chain(files[..8].iter().map(String::as_str)));
    assert!(
        pairs.stdout.contains("A is the baseline"),
        "eight are compared with the first: {}",
        pairs.stdout
    );
    // What is no result is left out of a directory; the document goes beside it.
    fs::write(scratch.path().join("other.json"), "{\"schema\":\"rdsk.compare/1\"}").unwrap();
    let beside = scratch.path().join("fleet.out");
    let again = rdsk(["compare", directory, "--json", beside.to_str().unwrap()]);
    assert_eq!((again.status_code, &again.stdout), (Some(0), &page.stdout), "{}", again.stderr);
    assert!(
        again.stderr.contains("left out: compare ") && again.stderr.contains("other.json"),
        "{}",
        again.stderr
    );
    let document: Value = serde_json::from_str(&fs::read_to_string(beside).unwrap()).unwrap();
    assert_eq!((&document["schema"], &document["compared"]), (&"rdsk.fleet/1".into(), &HOSTS.into()));
    assert_eq!(document["outliers"][0]["host"], "web04");
}

#[test]
fn a_directory_without_results_and_a_page_of_a_fleet_are_refused_with_a_hint() {
    let scratch = scratch();
    let directory = scratch.path().to_str().unwrap();
    for (line, said) in [
        (&["compare", directory][..], "no file that ends in .json"),
        (&["report", directory, "--open"], "have a page of text only"),
        (&["compare", directory, "--fail-if", "slower>5%"], "2 runs are needed"),
    ] {
        let run = rdsk(line.iter().copied());
        assert_eq!(run.status_code, Some(2), "{line:?}: {}", run.stderr);
        let (error, hint) = error_and_hint(&run);
        assert!(error.contains(said) && !hint.is_empty(), "{line:?}: {}", run.stderr);
    }
}
