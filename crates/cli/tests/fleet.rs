//! What a fleet meets: kernels from Linux 4.18 on, containers without privilege, an empty root, and the files of `contrib/`. The
//! packages themselves are tried by `cargo xtask dist --try`.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use crate::common;
use crate::support::checked_run::{Answer, start_command};
use rdsk_testkit::cli;
use rdsk_testkit::sandbox::{Errno, in_container, on_linux_4_18};
use rdsk_testkit::{Need, Sysno, requires, without};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// `rdsk run` on a directory for a moment, by a program that runs it.
fn run_in(directory: &Path, mut starter: Command) -> Answer {
    starter.args(["run", directory.to_str().unwrap(), "--size", "64M", "--budget", "5s", "--json", "-"]);
    start_command(starter).answer()
}

fn rdsk() -> Command {
    cli::rdsk(env!("CARGO_BIN_EXE_rdsk"))
}

/// Neither a ring nor BPF was used, each cell that has a figure has bytes, and the Record says what was lacking.
fn says_what_it_lacks(answer: Answer) {
    let answer = answer.expect_code(0);
    let observer = &answer.record["observer"];
    assert_ne!(observer["source"], "bpf", "{observer}");
    assert!(observer["why_not_higher"].as_str().is_some_and(|why| why.contains("BPF")), "{observer}");
    let mut without_ring = 0;
    for cell in answer.cells() {
        let result = &cell["result"];
        assert_ne!(result["engine"], "uring", "{}", cell["id"]);
        if !result["bytes_per_s"].is_null() {
            assert!(result["bytes"].as_u64().is_some_and(|bytes| bytes > 0), "{}", cell["id"]);
            assert!(!cell["verdict"].is_null(), "{}", cell["id"]);
        }
        let why = result.pointer("/issuing/why").and_then(|why| why.as_str()).unwrap_or_default();
        without_ring += usize::from(why.contains("io_uring"));
    }
    assert!(without_ring > 0, "no cell says why it has no ring: {}", answer.said());
}

#[test]
fn linux_4_18_is_enough() {
    let scratch = common::scratch();
    // The BPF programs need Linux 5.12; an older kernel refuses to load them.
    says_what_it_lacks(without(&[Sysno::bpf], Errno::INVAL, || {
        on_linux_4_18(|| run_in(scratch.path(), rdsk()))
    }));
    common::holds_only(scratch.path(), &[]);
}

#[test]
fn a_container_without_privilege_is_enough() {
    if !requires(&[Need::Tool("setpriv")]) {
        return;
    }
    let scratch = common::scratch();
    says_what_it_lacks(in_container(|| {
        let mut command = cli::rdsk("setpriv");
        command.args(["--no-new-privs", "--inh-caps=-all", "--ambient-caps=-all"]);
        if rustix::process::geteuid().is_root() {
            command.arg("--bounding-set=-all");
        }
        command.arg(env!("CARGO_BIN_EXE_rdsk"));
        run_in(scratch.path(), command)
    }));
    common::holds_only(scratch.path(), &[]);
}

fn contrib(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../contrib").join(name)
}

/// The names of metrics in a text.
fn metrics(text: &str) -> BTreeSet<&str> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.split(|c: char| !is_part(c)).filter(|word| word.starts_with("rdsk_")).collect()
}

#[test]
fn a_dashboard_shows_what_is_emitted() {
    let run = common::rdsk([
        "run", "sim:linux-disk", "--only", "headline", "--seed", "1", "-q", "--openmetrics", "-",
    ]);
    assert_eq!(run.status_code, Some(0), "{}", run.stderr);
    let samples = run.stdout.lines().filter(|line| !line.starts_with('#'));
    let emitted: BTreeSet<&str> = samples.clone().filter_map(|line| line.split(['{', ' ']).next()).collect();
    let text = fs::read_to_string(contrib("grafana/rdsk.json")).unwrap();
    let dashboard: serde_json::Value = serde_json::from_str(&text).unwrap();
    let mut queries = Vec::new();
    for panel in dashboard["panels"].as_array().unwrap() {
        for target in panel["targets"].as_array().into_iter().flatten() {
            queries.push(target["expr"].as_str().unwrap().to_owned());
        }
    }
    for variable in dashboard["templating"]["list"].as_array().unwrap() {
        queries.extend(variable["definition"].as_str().map(str::to_owned));
    }
    queries.push(fs::read_to_string(contrib("grafana/README.md")).unwrap());
    assert!(queries.len() > 15, "{queries:?}");
    for query in &queries {
        let unknown: Vec<&str> = metrics(query).difference(&emitted).copied().collect();
        assert!(unknown.is_empty(), "{unknown:?} in {query}");
        // A cell of a query is one of the headline.
        for rest in query.split("cell=\"").skip(1) {
            let cell = rest.split('"').next().unwrap();
            assert!(samples.clone().any(|line| line.contains(&format!("cell=\"{cell}\""))), "{cell}");
        }
    }
}

#[test]
fn the_units_are_what_systemd_takes() {
    if !requires(&[Need::Tool("systemd-analyze")]) {
        return;
    }
    let scratch = common::scratch();
    let mut verify = Command::new("systemd-analyze");
    verify.args(["verify", "--man=no", "--recursive-errors=no"]);
    for name in ["rdsk.service", "rdsk.timer"] {
        // Where the program of the unit is installed is a question of the package.
        let text = fs::read_to_string(contrib("systemd").join(name)).unwrap();
        let text = text.replace("/usr/bin/rdsk", env!("CARGO_BIN_EXE_rdsk"));
        fs::write(scratch.path().join(name), text).unwrap();
        verify.arg(scratch.path().join(name));
    }
    let run = cli::run(verify, common::SOON);
    assert_eq!((run.status_code, run.stdout.as_str(), run.stderr.as_str()), (Some(0), "", ""));
}

#[test]
fn the_command_of_the_service_is_one() {
    let text = fs::read_to_string(contrib("systemd/rdsk.service")).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("ExecStart=/usr/bin/rdsk ")).unwrap();
    parses(line.split(' '), "/var/lib/rdsk");
}

#[test]
fn the_pods_are_yaml_without_privilege() {
    if !requires(&[Need::Tool("/usr/lib/python3/dist-packages/yaml/__init__.py")]) {
        return;
    }
    let script = "import json, sys, yaml; print(json.dumps([d for f in sys.argv[1:] for d in yaml.safe_load_all(open(f))]))";
    let mut python = Command::new("/usr/bin/python3");
    python
        .args(["-c", script])
        .args(["job.yaml", "daemonset.yaml"].map(|name| contrib("kubernetes").join(name)));
    let run = cli::run(python, common::SOON);
    assert_eq!(run.status_code, Some(0), "{}", run.stderr);
    let documents: Vec<serde_json::Value> = serde_json::from_str(&run.stdout).unwrap();
    let kinds: Vec<&str> = documents.iter().map(|document| document["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["PersistentVolumeClaim", "Job", "DaemonSet"]);
    for document in &documents[1..] {
        let pod = &document["spec"]["template"]["spec"];
        assert_eq!(pod["securityContext"]["runAsNonRoot"], true);
        assert_eq!(pod["securityContext"]["seccompProfile"]["type"], "RuntimeDefault");
        let lists = [&pod["containers"], &pod["initContainers"]];
        for container in lists.into_iter().filter_map(|list| list.as_array()).flatten() {
            let context = &container["securityContext"];
            assert_eq!(context["allowPrivilegeEscalation"], false, "{container}");
            assert_eq!(context["readOnlyRootFilesystem"], true, "{container}");
            assert_eq!(context["capabilities"]["drop"], serde_json::json!(["ALL"]), "{container}");
            if container["image"].as_str().unwrap().starts_with("rdsk:") {
                assert!(container["resources"]["limits"].is_null(), "a limit would be measured: {container}");
                parses(
                    container["args"].as_array().unwrap().iter().map(|word| word.as_str().unwrap()),
                    "/data",
                );
            }
        }
    }
}

/// Asserts that rdsk takes the words, with the simulated disk in the place of the target; a plan has no metrics to write.
fn parses<'a>(words: impl Iterator<Item = &'a str>, target: &str) {
    let (mut line, mut words) = (Vec::new(), words);
    while let Some(word) = words.next() {
        match word {
            "--openmetrics" => assert!(words.next().is_some_and(|file| file.ends_with("/rdsk.prom"))),
            word if word == target => line.push("sim:linux-disk"),
            word => line.push(word),
        }
    }
    line.push("--dry-run");
    let run = common::rdsk(&line);
    assert_eq!((run.status_code, run.stderr.as_str()), (Some(0), ""), "{line:?}");
}
