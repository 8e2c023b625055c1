//! Which test programs passed before and would be run on the same bytes again: a developer who changed the report does not wait
//! for the tests of the engine. A program's stamp says what it was built from and reads; one that passed with the stamp that it has
//! now is left out, and the summary says so. On the build server, which says `CI=true`, nothing is left out, nor is anything after
//! a restart of the machine or when programs were installed. Go's test command keeps results in the same way.

use super::test_programs::TestProgram;
use anyhow::{Context as _, Result};
use std::collections::BTreeMap;
use std::collections::hash_map::DefaultHasher;
use std::fs;
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

/// The package whose tests read the sources of all others and run their programs, and those of its files that do neither.
const READS_SOURCES: &str = "xtask ";
const READS_NONE: &str = " calibrate::";
/// Changes when the machine was started again, which may be with another kernel.
const BOOT: &str = "/proc/sys/kernel/random/boot_id";

/// A hash of all that a program's result depends on.
type Stamp = u64;

/// What passed, by the programs' names, with the tests that did, and the stamps of all programs as they are now.
pub(crate) struct Passed {
    path: PathBuf,
    passed: BTreeMap<String, (Stamp, u64)>,
    now: BTreeMap<String, Stamp>,
}

impl Passed {
    /// What the last runs in this build directory left. `machine` is whatever else a result depends on: the programs that are
    /// missing, the rights of the user. Where git does not list the files, in a copy without its history or another user's, nothing
    /// counts as unchanged.
    pub(crate) fn load(root: &Path, programs: &[TestProgram], machine: &str) -> Self {
        let path = root.join("target/passed-tests.json");
        let now = stamps(root, programs, machine).unwrap_or_default();
        // Of a file that cannot be read, all is run again.
        let passed =
            fs::read(&path).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default();
        Self { path, passed, now }
    }

    /// How many tests of this program passed on the same bytes, if all of them did.
    pub(crate) fn tests(&self, program: &TestProgram) -> Option<u64> {
        let (stamp, tests) = self.passed.get(&program.name)?;
        (self.now.get(&program.name) == Some(stamp)).then_some(*tests)
    }

    /// Keeps a program's result for the next run: the tests that passed, nothing where one failed.
    pub(crate) fn note(&mut self, name: &str, passed_tests: Option<u64>) {
        match (self.now.get(name), passed_tests) {
            (Some(stamp), Some(tests)) => self.passed.insert(name.to_owned(), (*stamp, tests)),
            _ => self.passed.remove(name),
        };
    }

    /// Writes what passed until now.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub(crate) fn store(&self) -> Result<()> {
        crate::write(&self.path, &serde_json::to_string(&self.passed)?)
    }
}

/// The programs' stamps. Tests in the documentation are run by cargo, of whatever it compiles then: always.
fn stamps(root: &Path, programs: &[TestProgram], machine: &str) -> Result<BTreeMap<String, Stamp>> {
    let (texts, sources) = files_of(root)?;
    let mut start = DefaultHasher::new();
    (fs::read_to_string(BOOT).unwrap_or_default(), machine, texts).hash(&mut start);
    let mut stamps = BTreeMap::new();
    for program in programs.iter().filter(|program| !program.is_cargo()) {
        let mut hasher = start.clone();
        for built in program.built_files() {
            state(built)?.hash(&mut hasher);
        }
        if program.name.starts_with(READS_SOURCES) && !program.name.ends_with(READS_NONE) {
            sources.hash(&mut hasher);
        }
        stamps.insert(program.name.clone(), hasher.finish());
    }
    Ok(stamps)
}

/// A file's length and time of change: cargo writes a program anew whenever what it consists of has changed.
type State = (u64, SystemTime);

fn state(path: &Path) -> Result<State> {
    let metadata = fs::metadata(path).with_context(|| path.display().to_string())?;
    Ok((metadata.len(), metadata.modified()?))
}

/// Names below the root, each with its state.
type Files = Vec<(String, Option<State>)>;

/// The files of the checkout that any test may read, and the sources, which tests of the sources read.
fn files_of(root: &Path) -> Result<(Files, Files)> {
    let mut git = Command::new("git");
    git.args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"]).current_dir(root);
    let output = git.output().context("git")?;
    anyhow::ensure!(output.status.success(), "git lists no files: {}", output.status);
    let listed = String::from_utf8(output.stdout).context("names of files")?;
    let mut names: Vec<&str> = listed.split_terminator('\0').collect();
    names.sort_unstable();
    names.dedup();
    // A file that is listed and gone was deleted just now, which is a state as well.
    let with_state = |name: &str| (name.to_owned(), state(&root.join(name)).ok());
    let (sources, texts): (Vec<&str>, Vec<&str>) = names.into_iter().partition(|name| name.ends_with(".rs"));
    Ok((texts.into_iter().map(with_state).collect(), sources.into_iter().map(with_state).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A checkout of one text and one source, and a program "a" in it.
    fn checkout() -> (tempfile::TempDir, TestProgram) {
        let scratch = tempfile::tempdir().unwrap();
        let git = |arguments: &[&str]| {
            let status = Command::new("git").args(arguments).current_dir(scratch.path()).status().unwrap();
            assert!(status.success(), "{arguments:?}");
        };
        git(&["init", "--quiet"]);
        for name in ["page.txt", "lib.rs", "program"] {
            fs::write(scratch.path().join(name), name).unwrap();
        }
        fs::write(scratch.path().join(".gitignore"), "target\nprogram\n").unwrap();
        let program = TestProgram::built("a --lib", &scratch.path().join("program"));
        (scratch, program)
    }

    #[test]
    fn what_passed_is_left_out_until_something_changes() {
        let (scratch, program) = checkout();
        let programs = [program.clone()];
        let load = |machine: &str| Passed::load(scratch.path(), &programs, machine);
        let mut first = load("");
        assert_eq!(first.tests(&program), None);
        first.note("a --lib", Some(7));
        first.store().unwrap();
        assert_eq!(load("").tests(&program), Some(7));
        assert_eq!(load("no fio").tests(&program), None);
        let changes = |name: &str| {
            fs::write(scratch.path().join(name), format!("{name} changed")).unwrap();
            load("").tests(&program).is_none()
        };
        // Its source is in the program, which is compared itself.
        assert!(!changes("lib.rs"));
        assert!(changes("page.txt"));
        let mut second = load("");
        second.note("a --lib", Some(7));
        second.store().unwrap();
        assert_eq!(load("").tests(&program), Some(7));
        assert!(changes("program"));
        let mut third = load("");
        third.note("a --lib", Some(7));
        third.note("a --lib", None);
        third.store().unwrap();
        assert_eq!(load("").tests(&program), None);
    }

    #[test]
    fn tests_of_sources_see_them_and_new_files_count() {
        let (scratch, program) = checkout();
        let reader = TestProgram::built("xtask --bin xtask arch::", &scratch.path().join("program"));
        let programs = [program.clone(), reader.clone()];
        let load = || Passed::load(scratch.path(), &programs, "");
        let pass = || {
            let mut passed = load();
            programs.iter().for_each(|program| passed.note(&program.name, Some(7)));
            passed.store().unwrap();
        };
        pass();
        fs::write(scratch.path().join("lib.rs"), "changed").unwrap();
        assert_eq!((load().tests(&program), load().tests(&reader)), (Some(7), None));
        pass();
        fs::write(scratch.path().join("fixture.json"), "{}").unwrap();
        assert_eq!((load().tests(&program), load().tests(&reader)), (None, None));
        pass();
        fs::remove_file(scratch.path().join("fixture.json")).unwrap();
        assert_eq!(load().tests(&program), None);
    }

    #[test]
    fn without_git_nothing_is_left_out() {
        let (scratch, program) = checkout();
        let programs = [program.clone()];
        let load = || Passed::load(scratch.path(), &programs, "");
        let mut passed = load();
        passed.note(&program.name, Some(7));
        passed.store().unwrap();
        assert_eq!(load().tests(&program), Some(7));
        fs::remove_dir_all(scratch.path().join(".git")).unwrap();
        assert_eq!(load().tests(&program), None);
    }
}
