//! `rdsk report` and `--report`: pages and figures of simulated runs, and what is never replaced.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use crate::common::{self, rdsk};
use rdsk_testkit::{Need, cli, requires};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

fn text(path: &Path) -> String {
    fs::read_to_string(path).unwrap()
}

#[test]
fn the_page_of_a_run_is_that_of_its_json() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    let (json, page, again) = (at("z.json"), at("z.html"), at("again.html"));
    let line = [
        "zones", "sim:freebsd-wd800jd", "--seed", "1", "-q", "--runs", "4", "--points", "50", "--bs", "1M,5M",
    ];
    let run = rdsk(line.iter().copied().chain([
        "--json",
        json.to_str().unwrap(),
        "--report",
        page.to_str().unwrap(),
    ]));
    assert_eq!(run.status_code, Some(0), "{}", run.stderr);
    let shown = rdsk(["report", json.to_str().unwrap(), "-o", again.to_str().unwrap()]);
    assert_eq!((shown.status_code, shown.stdout.as_str()), (Some(0), ""), "{}", shown.stderr);
    assert_eq!(text(&page), text(&again));
    for id in ["zones-rate", "zones-read-1-mib", "zones-read-5-mib"] {
        assert!(text(&page).contains(&format!("<figure id=\"{id}\">")), "{id}");
    }
    // A page may be replaced; anything else may not.
    assert_eq!(rdsk(["report", json.to_str().unwrap(), "-o", again.to_str().unwrap()]).status_code, Some(0));
    fs::write(at("mine.html"), "<!doctype html>\n<p>mine").unwrap();
    let refused = rdsk(["report", json.to_str().unwrap(), "-o", at("mine.html").to_str().unwrap()]);
    assert_eq!(refused.status_code, Some(3), "{}", refused.stderr);
    assert_eq!(text(&at("mine.html")), "<!doctype html>\n<p>mine");
    let refused = rdsk(["report", json.to_str().unwrap(), "-o", json.to_str().unwrap()]);
    assert_ne!(refused.status_code, Some(0), "the Record stays");
}

#[test]
fn figures_are_files_that_are_never_replaced_and_runs_lie_over_each_other() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    let runs = [("sim:tms-ramsan", at("one.json")), ("sim:tms-ramsan-2", at("two.json"))];
    for (system, json) in &runs {
        let run = rdsk(["scale", system, "--seed", "1", "-q", "--json", json.to_str().unwrap()]);
        assert_eq!(run.status_code, Some(0), "{}", run.stderr);
    }
    let files = runs.each_ref().map(|(_, json)| json.to_str().unwrap());
    let svg = at("figures");
    let line = ["report", files[0], files[1], "--svg", svg.to_str().unwrap()];
    let made = rdsk(line);
    assert_eq!(made.status_code, Some(0), "{}", made.stderr);
    let mut names: Vec<String> =
        fs::read_dir(&svg).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    assert_eq!(
        names,
        [
            "scale-depth-sequential-16384.svg",
            "scale-rate.svg",
            "scale-read-targets.svg",
            "scale-read.svg",
            "scale-write-targets.svg",
            "scale-write.svg"
        ]
    );
    let drawn = text(&svg.join("scale-read.svg"));
    for first in ["sim:tms-ramsan: ", "sim:tms-ramsan-2: "] {
        assert!(drawn.contains(first), "the legend names {first}");
    }
    let again = rdsk(line);
    assert_eq!(again.status_code, Some(3));
    assert!(again.stderr.contains("refusing to replace"), "{}", again.stderr);
    assert_eq!(text(&svg.join("scale-read.svg")), drawn);
}

/// A page without a name of its own, and a browser that is none.
#[test]
fn a_page_names_its_file_and_is_shown_on_request() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    let json = at("one.json");
    let run = rdsk(["scale", "sim:tms-ramsan", "--seed", "1", "-q", "--json", json.to_str().unwrap()]);
    assert_eq!(run.status_code, Some(0), "{}", run.stderr);
    let elsewhere = at("elsewhere");
    let bin = at("bin");
    for path in [&elsewhere, &bin] {
        fs::create_dir(path).unwrap();
    }
    let report = |arguments: &[&str]| {
        let mut command = cli::rdsk(env!("CARGO_BIN_EXE_rdsk"));
        command.arg("report").arg(&json).args(arguments).current_dir(&elsewhere).env("PATH", &bin);
        cli::run(command, common::SOON)
    };
    let named = report(&[]);
    assert_eq!((named.status_code, named.stdout.as_str()), (Some(0), "one.html\n"), "{}", named.stderr);
    assert!(text(&elsewhere.join("one.html")).contains("<figure id=\"scale-rate\">"));
    common::holds_only(&elsewhere, &["one.html"]);
    let absent = report(&["--open"]);
    assert_eq!((absent.status_code, absent.stdout.as_str()), (Some(4), "one.html\n"), "{}", absent.stderr);
    assert!(absent.stderr.contains("--open needs xdg-open, which is not installed"), "{}", absent.stderr);
    assert!(absent.stderr.contains("apt-get install xdg-utils"), "{}", absent.stderr);
    let shown = at("shown");
    fs::write(bin.join("xdg-open"), format!("#!/bin/sh\necho \"$1\" > '{}'\n", shown.display())).unwrap();
    fs::set_permissions(bin.join("xdg-open"), fs::Permissions::from_mode(0o755)).unwrap();
    let opened = report(&["--open", "-o", "other.html"]);
    assert_eq!((opened.status_code, opened.stdout.as_str()), (Some(0), ""), "{}", opened.stderr);
    assert_eq!(text(&shown), format!("{}\n", elsewhere.join("other.html").display()));
    fs::write(bin.join("xdg-open"), "#!/bin/sh\nexit 3\n").unwrap();
    let refused = report(&["--open"]);
    assert_eq!(refused.status_code, Some(4), "{}", refused.stderr);
    assert!(refused.stderr.contains("open one.html in a browser"), "{}", refused.stderr);
}

/// The width that a PNG states (its header, after 16 bytes), and that an SVG states.
fn widths(png: &Path, svg: &Path) -> (u32, u32) {
    let bytes = fs::read(png).unwrap();
    assert!(bytes.starts_with(b"\x89PNG\r\n"), "{}", png.display());
    let svg = text(svg);
    let width = svg.split("width=\"").nth(1).unwrap().split('"').next().unwrap();
    (u32::from_be_bytes(bytes[16..20].try_into().unwrap()), width.parse().unwrap())
}

#[test]
fn a_png_has_two_pixels_for_each_of_its_svg_and_needs_its_program() {
    if !requires(&[Need::Tool("rsvg-convert")]) {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let json = at("one.json");
    let run = rdsk(["scale", "sim:tms-ramsan", "--seed", "1", "-q", "--json", &json]);
    assert_eq!(run.status_code, Some(0), "{}", run.stderr);
    let made = rdsk(["report", &json, "--svg", &at("figures"), "--png", &at("figures")]);
    assert_eq!(made.status_code, Some(0), "{}", made.stderr);
    let figure = |ending: &str| directory.path().join("figures").join(format!("scale-read.{ending}"));
    let (png, svg) = widths(&figure("png"), &figure("svg"));
    assert_eq!(png, 2 * svg);
    let mut command = cli::rdsk(env!("CARGO_BIN_EXE_rdsk"));
    command.args(["report", &json, "--png", &at("none")]).env("PATH", directory.path());
    let refused = cli::run(command, common::SOON);
    assert_eq!(refused.status_code, Some(3), "{}", refused.stderr);
    assert!(refused.stderr.contains("apt-get install librsvg2-bin"), "{}", refused.stderr);
    common::holds_only(&directory.path().join("none"), &[]);
}

/// As on a disk that becomes full: I/O has failed, and no part of a figure is left that would be refused to be replaced.
#[test]
fn half_a_figure_is_not_left() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let json = at("one.json");
    let run = rdsk(["scale", "sim:tms-ramsan", "--seed", "1", "-q", "--json", &json]);
    assert_eq!(run.status_code, Some(0), "{}", run.stderr);
    let mut command = cli::rdsk("sh");
    command.args(["-c", "ulimit -f 1 && exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_rdsk")]);
    command.args(["report", &json, "--svg", &at("figures")]);
    let cut = cli::run(command, common::SOON);
    assert_eq!(cut.status_code, Some(4), "{}", cut.stderr);
    assert!(cut.stderr.contains("cannot write"), "{}", cut.stderr);
    common::holds_only(&directory.path().join("figures"), &[]);
}

#[test]
fn what_is_no_run_is_said() {
    let directory = tempfile::tempdir().unwrap();
    let missing = rdsk(["report", "/no/such.json", "-o", directory.path().join("x.html").to_str().unwrap()]);
    assert_eq!(missing.status_code, Some(2), "{}", missing.stderr);
    assert!(missing.stderr.contains("/no/such.json"), "{}", missing.stderr);
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
}
