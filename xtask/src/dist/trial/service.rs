//! The files of contrib/systemd as the package holds them: their user is made, and the command of the service runs as that user with
//! the two capabilities. systemd itself does not run in a tree.

use super::tree::Tree;
use crate::programs::{checked, text_of};
use crate::tools;
use anyhow::{Context as _, Result, ensure};
use std::fs::{self, File};
use std::path::Path;
use std::process::Command;

const FILES: &str = "usr/share/doc/rdsk/contrib/systemd";
const METRICS: &str = "var/lib/prometheus/node-exporter/rdsk.prom";
/// Reads the file as the client library of Prometheus does, where promtool is not installed.
const CLIENT: &str = "import sys, prometheus_client.parser as p; print(len(list(p.text_string_to_metric_families(sys.stdin.read()))))";

/// Runs the command of the service once, and has its metrics parsed.
///
/// # Errors
/// When it fails, or leaves no metrics that parse.
pub(super) fn run(tree: &Tree<'_>) -> Result<()> {
    let files = tree.root.join(FILES);
    let root = format!("--root={}", tree.root.display());
    checked(Command::new("systemd-sysusers").arg(&root).arg(files.join("rdsk.sysusers.conf")))?;
    checked(
        Command::new("systemd-tmpfiles").args([&root, "--create"]).arg(files.join("rdsk.tmpfiles.conf")),
    )?;
    // The line that gives the user the right to write there asks this machine for the user, who is in the tree only.
    let directory = METRICS.rsplit_once('/').map_or("", |(directory, _)| directory);
    tree.says(&["chown", "rdsk", &format!("/{directory}")])?;
    let unit = fs::read_to_string(files.join("rdsk.service"))?;
    let line = unit
        .lines()
        .find_map(|line| line.strip_prefix("ExecStart="))
        .context("a service starts something")?;
    // What StateDirectory= makes.
    tree.says(&["install", "--directory", "--owner=rdsk", "/var/lib/rdsk"])?;
    let mut words = vec!["setpriv", "--reuid=rdsk", "--regid=rdsk", "--clear-groups", "--no-new-privs"];
    // CAP_PERFMON and CAP_BPF, which older versions of setpriv know by number only.
    words.extend([
        "--bounding-set=-all,+cap_38,+cap_39",
        "--inh-caps=-all,+cap_38,+cap_39",
        "--ambient-caps=-all,+cap_38,+cap_39",
    ]);
    words.extend(line.split(' '));
    tree.says(&words)?;
    let metrics = tree.root.join(METRICS);
    println!("metrics of the service: {}", parsed(&metrics)?.trim());
    let verdicts = fs::read_to_string(&metrics)?;
    for line in verdicts.lines().filter(|line| line.starts_with("rdsk_cell_info")) {
        println!("    {line}");
    }
    Ok(())
}

fn parsed(metrics: &Path) -> Result<String> {
    let file = || File::open(metrics).with_context(|| metrics.display().to_string());
    if tools::is_installed("promtool", &tools::search_path()) {
        let output = Command::new("promtool").args(["check", "metrics"]).stdin(file()?).output()?;
        // It has opinions on names beside the format; those are no errors.
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.code().is_some_and(|code| code == 0 || code == 3), "promtool: {said}");
        return Ok(format!("promtool reads them ({})", said.lines().next().unwrap_or("without a word")));
    }
    // Debian's, which has Debian's python3-prometheus-client, whatever python3 comes first.
    let families = text_of(Command::new("/usr/bin/python3").args(["-c", CLIENT]).stdin(file()?))?;
    Ok(format!("prometheus_client reads {} families", families.trim()))
}
