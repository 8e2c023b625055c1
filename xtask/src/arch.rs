//! The architecture checks over this workspace: reads manifests, sources and pages, and reports which rules are broken. They
//! run as ordinary tests and as `cargo xtask arch`. It changes nothing.

mod circles;
mod documents;
mod floors;
mod modules;
mod sources;
mod tokens;
mod words;

use anyhow::Context;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// What the files of the workspace show.
#[derive(Default)]
struct Findings {
    /// One sentence for each rule that is broken.
    violations: Vec<String>,
    /// Lines outside tests of each crate that is part of the program or builds it.
    crate_lines: Vec<(String, usize)>,
}

/// Prints every violation.
///
/// # Errors
/// When a rule is broken, or a file of the workspace cannot be read.
pub(crate) fn run(root: &Path) -> anyhow::Result<()> {
    let Findings { mut violations, crate_lines } = files(root)?;
    let floors = floors::floors(&read(root, Path::new("ARCHITECTURE.md"))?);
    violations.extend(floors::violations(&floors, &floors::imports(root)?));
    violations.extend(documents::share_violations(&crate_lines));
    for violation in &violations {
        println!("{violation}");
    }
    anyhow::ensure!(violations.is_empty(), "{} violations of the architecture", violations.len());
    println!("architecture: {} rooms, all rules hold", floors.len());
    Ok(())
}

/// Every Rust source of the workspace, as paths from its root.
///
/// # Errors
/// When a directory cannot be read.
#[cfg(test)]
pub(crate) fn rust_sources(root: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut sources = Vec::new();
    for (_, directory) in rooms(root)? {
        sources.extend(walk(root, &directory, "rs")?);
    }
    Ok(sources)
}

/// Every violation that is seen in files rather than in the graph of imports.
fn files(root: &Path) -> anyhow::Result<Findings> {
    let mut findings = Findings {
        violations: documents::unexplained_dependencies(&read(root, Path::new("Cargo.toml"))?),
        crate_lines: Vec::new(),
    };
    for (room, directory) in rooms(root)? {
        check_room(root, &room, &directory, &mut findings)?;
    }
    findings.violations.extend(dead_links(root)?);
    findings.violations.extend(words_for_users(root)?);
    Ok(findings)
}

/// Documents that describe the keys of a file, whose nouns are those of the code.
const OF_KEYS: &[&str] = &["docs/record.md"];

/// Words that users should not meet: in documents, in the help, on the pages that snapshots show, and in the texts of findings.
fn words_for_users(root: &Path) -> anyhow::Result<Vec<String>> {
    let mut violations = Vec::new();
    let mut documents = walk(root, Path::new("docs"), "md")?;
    documents.retain(|path| !OF_KEYS.iter().any(|keys| path == Path::new(keys)));
    documents.push("README.md".into());
    for path in documents {
        violations.extend(words::violations(&path.to_string_lossy(), &words::prose(&read(root, &path)?)));
    }
    for path in walk(root, Path::new("crates"), "snap")? {
        violations.extend(words::violations(&path.to_string_lossy(), &words::shown(&read(root, &path)?)));
    }
    for path in walk(root, Path::new("crates"), "trycmd")? {
        violations.extend(words::violations(&path.to_string_lossy(), &read(root, &path)?));
    }
    let rules = Path::new("crates/finding/src/rules");
    for path in if root.join(rules).is_dir() { walk(root, rules, "rs")? } else { Vec::new() } {
        for (line, text) in tokens::texts(&read(root, &path)?)? {
            violations.extend(words::violations(&format!("{}:{line}", path.display()), &text));
        }
    }
    Ok(violations)
}

/// The rooms as name and directory from the root: every crate of `crates/`, and `xtask`.
fn rooms(root: &Path) -> anyhow::Result<Vec<(String, PathBuf)>> {
    let mut rooms = vec![("xtask".to_owned(), PathBuf::from("xtask"))];
    for entry in fs::read_dir(root.join("crates")).context("crates/")? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        let directory = Path::new("crates").join(&name);
        rooms.push((name, directory));
    }
    rooms.sort();
    Ok(rooms)
}

fn check_room(root: &Path, room: &str, directory: &Path, findings: &mut Findings) -> anyhow::Result<()> {
    let path = directory.join("Cargo.toml");
    let manifest = read(root, &path)?;
    let mut violations = documents::manifest_violations(&path.to_string_lossy(), &manifest);
    let mut parsed = Vec::new();
    let mut test_files = BTreeSet::new();
    for path in walk(root, directory, "rs")? {
        let text = read(root, &path)?;
        let tokens = tokens::tokens(&text).with_context(|| path.display().to_string())?;
        for module in tokens::test_modules(&tokens) {
            test_files.extend(module_places(&path, &module));
        }
        parsed.push((path, text, tokens));
    }
    let tests = directory.join("tests");
    let tests = parsed.iter().filter(|(path, ..)| path.parent() == Some(&tests));
    let tests: Vec<(&Path, &str)> = tests.map(|(path, text, _)| (path.as_path(), text.as_str())).collect();
    violations.extend(documents::test_violations(&manifest, &tests));
    let source_directory = directory.join("src");
    let mut modules = Vec::new();
    let mut lines = 0;
    for (path, text, tokens) in &parsed {
        let inside_src = path.starts_with(&source_directory);
        let is_test = !inside_src || test_files.iter().any(|place| path.starts_with(place) || path == place);
        let shown = path.to_string_lossy();
        violations.extend(documents::source_violations(&shown, text, is_test));
        violations.extend(sources::violations(&sources::Source { path: &shown, room, is_test, tokens }));
        if !is_test {
            lines += documents::program_lines(text);
            modules.extend(modules::Module::read(&shown, &source_directory.to_string_lossy(), tokens));
        }
    }
    let uses = modules::uses(&modules);
    violations.extend(circles::violations(&uses, &directory.to_string_lossy(), circles::ALLOWED));
    findings.violations.extend(violations);
    // The test kit is not part of the program, like tests.
    if room != "testkit" {
        findings.crate_lines.push((room.to_owned(), lines));
    }
    Ok(())
}

/// Where the module `name`, declared in the file `path`, may live: a file or a directory beside it.
fn module_places(path: &Path, name: &str) -> Vec<PathBuf> {
    let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    let parent = path.parent().unwrap_or(Path::new(""));
    let home =
        if matches!(stem.as_str(), "lib" | "main" | "mod") { parent.to_owned() } else { parent.join(stem) };
    vec![home.join(format!("{name}.rs")), home.join(name)]
}

fn dead_links(root: &Path) -> anyhow::Result<Vec<String>> {
    let mut pages = walk(root, Path::new("docs"), "md")?;
    for entry in fs::read_dir(root)? {
        let name = PathBuf::from(entry?.file_name());
        if name.extension().is_some_and(|extension| extension == "md") {
            pages.push(name);
        }
    }
    let mut dead = Vec::new();
    for page in pages {
        for link in documents::links(&page, &read(root, &page)?) {
            if !root.join(&link).exists() {
                dead.push(format!("{}: links to {}, which does not exist", page.display(), link.display()));
            }
        }
    }
    Ok(dead)
}

/// Everything that `start` leads to, directly or not.
fn reach<'a, I: Iterator<Item = &'a str>>(start: &'a str, next: impl Fn(&'a str) -> I) -> BTreeSet<&'a str> {
    let mut reached = BTreeSet::new();
    let mut open = vec![start];
    while let Some(from) = open.pop() {
        open.extend(next(from).filter(|to| reached.insert(*to)));
    }
    reached
}

/// Files with an extension below a directory, as paths from the root, sorted. Snapshots and fixtures have other ones.
fn walk(root: &Path, directory: &Path, extension: &str) -> anyhow::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let mut open = vec![directory.to_owned()];
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(root.join(&directory)).with_context(|| directory.display().to_string())? {
            let entry = entry?;
            let path = directory.join(entry.file_name());
            if entry.file_type()?.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|its| its == extension) {
                files.push(path);
            }
        }
    }
    files.sort();
    Ok(files)
}

fn read(root: &Path, path: &Path) -> anyhow::Result<String> {
    fs::read_to_string(root.join(path)).with_context(|| path.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_of_this_workspace_keep_the_rules() {
        let found = files(&crate::root()).unwrap();
        assert!(found.violations.is_empty(), "{}", found.violations.join("\n"));
        assert_eq!(documents::share_violations(&found.crate_lines), Vec::<String>::new());
        assert_eq!(found.crate_lines.len() + 1, rooms(&crate::root()).unwrap().len(), "all but the test kit");
    }

    #[test]
    fn every_room_is_walked() {
        let rooms = rooms(&crate::root()).unwrap();
        assert!(rooms.iter().any(|(room, _)| room == "xtask"));
        assert!(rooms.iter().filter(|(_, directory)| directory.starts_with("crates")).count() >= 12);
    }

    #[test]
    fn a_bad_house_is_seen_as_such() {
        let scratch = tempfile::tempdir().unwrap();
        let put = |path: &str, text: &str| {
            let path = scratch.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        put("Cargo.toml", "[workspace.dependencies]\nfoo = \"1\"\n");
        put("README.md", "[gone](docs/gone.md)");
        put("docs/README.md", "[back](../README.md)");
        put("xtask/Cargo.toml", "[lints]\nworkspace = true\n");
        put("xtask/src/main.rs", "//! Tasks.\nfn main() { println!(); }\n");
        put("crates/units/Cargo.toml", "[package]\n");
        put("crates/units/src/lib.rs", "//! Numbers.\n#[cfg(test)] mod fixtures;\nuse std::fs;\n");
        put("crates/units/src/a.rs", "//! A.\nuse crate::b::B;\npub struct A;\n");
        put(
            "crates/units/src/b.rs",
            "//! B.\n#[cfg(test)]\nmod tests {\n    fn f() {}\n}\nuse crate::a::A;\npub struct B;\n",
        );
        put("crates/units/src/fixtures.rs", "use std::fs;\n");
        put("crates/units/tests/quantities.rs", "use std::fs;\n");
        let found = files(scratch.path()).unwrap();
        let violations = found.violations;
        assert_eq!(violations.len(), 6, "{}", violations.join("\n"));
        for part in [
            "`foo = \"1\"`",
            "crates/units/Cargo.toml",
            "crates/units/src/lib.rs:3",
            "docs/gone.md",
            "crates/units/src/a.rs uses crates/units/src/b.rs",
            "crates/units/tests/quantities.rs",
        ] {
            assert!(
                violations.iter().any(|violation| violation.contains(part)),
                "{part}: {}",
                violations.join("\n")
            );
        }
        assert_eq!(found.crate_lines, [("units".to_owned(), 9), ("xtask".to_owned(), 2)]);
    }
}
