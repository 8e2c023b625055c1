//! The test programs of the workspace, as cargo lists them once they are built, and what cargo would start them with. A program of
//! all integration tests of a crate is one for each file of them, by its tests' names. No test is run.

use super::{ALL_TASKS, cargo, cargo_program, failure_of, without_words_of_cargo};
use crate::step;
use anyhow::{Context as _, Result, bail, ensure};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// The variable that names the program `rdsk` which was built beside the tests.
pub(crate) const BUILT: &str = "RDSK_PROGRAM";

/// What the names of variables begin with that name a package's own programs.
const BINARY: &str = "CARGO_BIN_EXE_";

/// What the name of a program ends with that has the integration tests of a crate, each file as a module, or the tests of these
/// tasks: programs that take long.
const MERGED: [&str; 2] = [" --test it", " --bin xtask"];

/// One of the workspace's test programs, or a file of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TestProgram {
    /// As `cargo test -p` takes it: `rdsk --test guest`, `rdsk --test it align::`, `rdsk-units --lib`.
    pub(crate) name: String,
    /// What is started: the program itself, or cargo for the tests in the documentation.
    program: PathBuf,
    arguments: Vec<String>,
    /// The root of its package, where cargo starts it.
    directory: PathBuf,
    /// What cargo adds to its environment.
    variables: Vec<(String, PathBuf)>,
}

impl TestProgram {
    /// The command that runs all its tests as cargo runs them.
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).current_dir(&self.directory);
        without_words_of_cargo(&mut command);
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command
    }

    /// The files that its tests run: its own, and the programs of its package.
    pub(crate) fn built_files(&self) -> impl Iterator<Item = &Path> {
        let binaries = self.variables.iter().filter(|(name, _)| name.starts_with(BINARY));
        std::iter::once(self.program.as_path()).chain(binaries.map(|(_, path)| path.as_path()))
    }

    /// Whether cargo runs these tests itself.
    pub(crate) fn is_cargo(&self) -> bool {
        self.program == Path::new(&cargo_program())
    }

    /// A part for each file, so that the longest begin first and no lane waits for one process with most of the tests.
    ///
    /// # Errors
    /// When the program does not list its tests.
    fn by_file(self) -> Result<Vec<Self>> {
        if !MERGED.iter().any(|end| self.name.ends_with(end)) {
            return Ok(vec![self]);
        }
        let output = self.command().args(["--list", "--format", "terse"]).output();
        let output = output.with_context(|| self.name.clone())?;
        ensure!(output.status.success(), "{} does not list its tests: {}", self.name, output.status);
        let listed = String::from_utf8_lossy(&output.stdout);
        let mut files: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for name in listed.lines().filter_map(|line| line.strip_suffix(": test")) {
            let (file, _) = name.split_once("::").with_context(|| format!("{}: {name}", self.name))?;
            files.entry(file).or_default().push(name.to_owned());
        }
        let part = |(file, tests): (&str, Vec<String>)| Self {
            name: format!("{} {file}::", self.name),
            arguments: std::iter::once("--exact".to_owned()).chain(tests).collect(),
            ..self.clone()
        };
        Ok(files.into_iter().map(part).collect())
    }

    /// A program that lies there, for tests.
    #[cfg(test)]
    pub(crate) fn built(name: &str, program: &Path) -> Self {
        Self { program: program.to_owned(), arguments: Vec::new(), ..Self::script(name, "") }
    }

    /// A program that runs a shell's script, for tests.
    #[cfg(test)]
    pub(crate) fn script(name: &str, script: &str) -> Self {
        Self {
            name: name.to_owned(),
            program: "sh".into(),
            arguments: vec!["-c".to_owned(), script.to_owned()],
            directory: ".".into(),
            variables: Vec::new(),
        }
    }
}

/// Builds the tests, where cargo finds that necessary, and lists their programs; the tests in the documentation count
/// as one.
///
/// # Errors
/// When they cannot be built, or cargo lists none.
pub(crate) fn build(root: &Path, limit: Duration, interrupted: &AtomicBool) -> Result<Vec<TestProgram>> {
    let format = "--message-format=json-render-diagnostics";
    let mut command =
        cargo(root, &["test", "--workspace", "--features", ALL_TASKS, "--no-run", "--quiet", format]);
    let mut messages = Vec::new();
    let ending = step::run(&mut command, limit, interrupted, &mut |line| messages.push(line.to_owned()))?;
    if let Some(why) = failure_of(ending) {
        bail!("the tests cannot be built: {why}");
    }
    let messages: Vec<Value> = messages.iter().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let mut programs = Vec::new();
    for program in listed(&messages)? {
        programs.extend(program.by_file()?);
    }
    if programs.is_empty() {
        bail!("cargo lists no test program");
    }
    programs.push(TestProgram {
        name: "--workspace --doc".into(),
        program: cargo_program().into(),
        arguments: ["test", "--workspace", "--features", ALL_TASKS, "--doc", "--no-fail-fast"]
            .map(str::to_owned)
            .to_vec(),
        directory: root.to_owned(),
        variables: Vec::new(),
    });
    Ok(programs)
}

/// The test programs among cargo's messages, in their order.
fn listed(messages: &[Value]) -> Result<Vec<TestProgram>> {
    let built = messages.iter().filter(|message| message["reason"] == "compiler-artifact");
    let (tests, others): (Vec<&Value>, Vec<&Value>) = built
        .filter(|message| message["executable"].is_string())
        .partition(|artifact| artifact["profile"]["test"] == true);
    tests.into_iter().map(|test| program(test, &others)).collect()
}

fn program(test: &Value, others: &[&Value]) -> Result<TestProgram> {
    let text = |value: &Value| value.as_str().map(str::to_owned).context("cargo's messages have other keys");
    let target = text(&test["target"]["name"])?;
    let kind = match text(&test["target"]["kind"][0])?.as_str() {
        kind @ ("test" | "bin" | "example" | "bench") => format!("--{kind} {target}"),
        _ => "--lib".to_owned(),
    };
    let manifest = PathBuf::from(text(&test["manifest_path"])?);
    let directory = manifest.parent().context("a manifest lies in a directory")?.to_owned();
    let mut variables = vec![
        ("CARGO".to_owned(), cargo_program().into()),
        ("CARGO_MANIFEST_DIR".to_owned(), directory.clone()),
        ("CARGO_MANIFEST_PATH".to_owned(), manifest),
    ];
    for binary in others.iter().filter(|other| other["package_id"] == test["package_id"]) {
        let name = format!("{BINARY}{}", text(&binary["target"]["name"])?);
        variables.push((name, text(&binary["executable"])?.into()));
    }
    if let Some(rdsk) = others.iter().find(|artifact| artifact["target"]["name"] == "rdsk") {
        variables.push((BUILT.to_owned(), text(&rdsk["executable"])?.into()));
    }
    Ok(TestProgram {
        name: format!("{} {kind}", package_name(&text(&test["package_id"])?)),
        program: text(&test["executable"])?.into(),
        arguments: Vec::new(),
        directory,
        variables,
    })
}

/// The name within a package id: `path+file:///x/crates/cli#rdsk@0.1.0`, or `path+file:///x/xtask#0.1.0` where the directory
/// has the package's name.
fn package_name(id: &str) -> &str {
    let (place, rest) = id.rsplit_once('#').unwrap_or((id, ""));
    rest.split_once('@').map_or_else(|| place.rsplit('/').next().unwrap_or(place), |(name, _)| name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::ffi::OsStr;

    fn artifact(package: &str, kind: &str, target: &str, is_test: bool) -> Value {
        json!({
            "reason": "compiler-artifact",
            "package_id": package,
            "manifest_path": "/x/crates/cli/Cargo.toml",
            "target": { "kind": [kind], "name": target },
            "profile": { "test": is_test },
            "executable": format!("/x/target/debug/deps/{target}"),
        })
    }

    #[test]
    fn programs_are_listed_as_cargo_runs_them() {
        let cli = "path+file:///x/crates/cli#rdsk@0.1.0";
        let mut library = artifact(cli, "lib", "rdsk_units", false);
        library["executable"] = Value::Null;
        let messages = [
            json!({ "reason": "build-script-executed" }),
            library,
            artifact(cli, "bin", "rdsk", false),
            artifact(cli, "test", "guest", true),
            artifact(cli, "bin", "rdsk", true),
            artifact("path+file:///x/xtask#0.1.0", "lib", "xtask", true),
        ];
        let programs = listed(&messages).unwrap();
        let names: Vec<&str> = programs.iter().map(|program| program.name.as_str()).collect();
        assert_eq!(names, ["rdsk --test guest", "rdsk --bin rdsk", "xtask --lib"]);
        let command = programs[0].command();
        assert_eq!(command.get_program(), "/x/target/debug/deps/guest");
        assert_eq!(command.get_current_dir(), Some(Path::new("/x/crates/cli")));
        let value =
            |name: &str| command.get_envs().find(|(its, _)| *its == name).and_then(|(_, value)| value);
        assert_eq!(value("CARGO_MANIFEST_DIR"), Some(OsStr::new("/x/crates/cli")));
        assert_eq!(value("CARGO_BIN_EXE_rdsk"), Some(OsStr::new("/x/target/debug/deps/rdsk")));
        // Of the program of another package it has the path alone.
        let names: Vec<&str> = programs[2].variables.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["CARGO", "CARGO_MANIFEST_DIR", "CARGO_MANIFEST_PATH", "RDSK_PROGRAM"]);
    }

    #[test]
    fn a_program_of_many_files_is_one_for_each_and_no_test_is_lost() {
        // A file whose name ends as that of another does.
        let script =
            "printf '%s: test\\n' a::one b::c::two a::three ba::four; echo; echo '4 tests, 0 benchmarks'";
        let parts = TestProgram::script("rdsk --test it", script).by_file().unwrap();
        let shown: Vec<(&str, Vec<&str>)> = parts
            .iter()
            .map(|part| (part.name.as_str(), part.arguments.iter().map(String::as_str).collect()))
            .collect();
        let expected = [
            ("rdsk --test it a::", vec!["--exact", "a::one", "a::three"]),
            ("rdsk --test it b::", vec!["--exact", "b::c::two"]),
            ("rdsk --test it ba::", vec!["--exact", "ba::four"]),
        ];
        assert_eq!(shown, expected);
        assert!(TestProgram::script("rdsk --test it", "echo 'one: test'").by_file().is_err());
        assert!(TestProgram::script("rdsk --test it", "false").by_file().is_err());
        assert_eq!(TestProgram::script("rdsk --test guest", script).by_file().unwrap().len(), 1);
    }

    #[test]
    fn messages_without_their_keys_are_an_error() {
        let mut message = artifact("path+file:///x/crates/cli#rdsk@0.1.0", "test", "guest", true);
        message["manifest_path"] = Value::Null;
        assert!(listed(&[message]).is_err());
    }
}
