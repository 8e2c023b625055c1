//! The architecture checks over this workspace: walks manifests, sources and pages, and says which rules are broken. They
//! run as ordinary tests and as `cargo xtask arch`. It changes nothing.

mod circles;
mod floors;
mod modules;
mod papers;
mod sources;
mod tokens;

use anyhow::Context;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Prints every broken rule.
///
/// # Errors
/// When a rule is broken, or a file of the workspace cannot be read.
pub(crate) fn run(root: &Path) -> anyhow::Result<()> {
    let mut broken = floors::violations(&floors::imports(root)?);
    broken.extend(files(root)?);
    for sentence in &broken {
        println!("{sentence}");
    }
    anyhow::ensure!(broken.is_empty(), "{} architecture rules are broken", broken.len());
    println!("architecture: {} rooms, all rules hold", floors::FLOORS.len());
    Ok(())
}

/// Every Rust source of the workspace, as paths from its root.
///
/// # Errors
/// When a directory cannot be read.
#[cfg(test)]
pub(crate) fn rust_sources(root: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for (_, directory) in rooms(root)? {
        found.extend(walk(root, &directory, "rs")?);
    }
    Ok(found)
}

/// Every broken rule that is seen in files rather than in the graph of imports.
fn files(root: &Path) -> anyhow::Result<Vec<String>> {
    let mut broken = papers::unexplained_dependencies(&read(root, Path::new("Cargo.toml"))?);
    for (room, directory) in rooms(root)? {
        broken.extend(room_violations(root, &room, &directory)?);
    }
    broken.extend(dead_links(root)?);
    Ok(broken)
}

/// The rooms as name and directory from the root: every crate of `crates/`, and `xtask`.
fn rooms(root: &Path) -> anyhow::Result<Vec<(String, PathBuf)>> {
    let mut found = vec![("xtask".to_owned(), PathBuf::from("xtask"))];
    for entry in fs::read_dir(root.join("crates")).context("crates/")? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        let directory = Path::new("crates").join(&name);
        found.push((name, directory));
    }
    found.sort();
    Ok(found)
}

fn room_violations(root: &Path, room: &str, directory: &Path) -> anyhow::Result<Vec<String>> {
    let manifest = directory.join("Cargo.toml");
    let mut broken = papers::manifest_violations(&manifest.to_string_lossy(), &read(root, &manifest)?);
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
    let source_directory = directory.join("src");
    let mut modules = Vec::new();
    for (path, text, tokens) in &parsed {
        let inside_src = path.starts_with(&source_directory);
        let test = !inside_src || test_files.iter().any(|place| path.starts_with(place) || path == place);
        let shown = path.to_string_lossy();
        broken.extend(papers::source_violations(&shown, text, test));
        broken.extend(sources::violations(&sources::Source { path: &shown, room, test, tokens }));
        if !test {
            modules.extend(modules::Module::read(&shown, &source_directory.to_string_lossy(), tokens));
        }
    }
    let uses = modules::uses(&modules);
    broken.extend(circles::violations(&uses, &directory.to_string_lossy(), circles::ALLOWED));
    Ok(broken)
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
        for link in papers::links(&page, &read(root, &page)?) {
            if !root.join(&link).exists() {
                dead.push(format!("{}: links to {}, which does not exist", page.display(), link.display()));
            }
        }
    }
    Ok(dead)
}

/// Files with an extension below a directory, as paths from the root, sorted. Snapshots and fixtures have other ones.
fn walk(root: &Path, directory: &Path, extension: &str) -> anyhow::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut open = vec![directory.to_owned()];
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(root.join(&directory)).with_context(|| directory.display().to_string())? {
            let entry = entry?;
            let path = directory.join(entry.file_name());
            if entry.file_type()?.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|found| found == extension) {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

fn read(root: &Path, path: &Path) -> anyhow::Result<String> {
    fs::read_to_string(root.join(path)).with_context(|| path.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_of_this_workspace_keep_the_rules() {
        let broken = files(&crate::root()).unwrap();
        assert!(broken.is_empty(), "{}", broken.join("\n"));
    }

    #[test]
    fn every_room_is_walked() {
        let rooms = rooms(&crate::root()).unwrap();
        assert!(rooms.iter().any(|(room, _)| room == "xtask"));
        assert!(rooms.iter().filter(|(_, directory)| directory.starts_with("crates")).count() >= 12);
    }

    #[test]
    fn the_floors_are_written_down() {
        let page = read(&crate::root(), Path::new("ARCHITECTURE.md")).unwrap();
        for (name, floor) in floors::FLOORS {
            let room = match *name {
                "rdsk" => "crates/cli".to_owned(),
                "xtask" => "xtask".to_owned(),
                other => format!("crates/{}", other.trim_start_matches("rdsk-")),
            };
            let row = format!("| `{room}` | {floor} |");
            assert!(page.contains(&row), "ARCHITECTURE.md has no row `{row}`");
        }
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
        put("crates/stats/Cargo.toml", "[package]\n");
        put("crates/stats/src/lib.rs", "//! Numbers.\n#[cfg(test)] mod fixtures;\nuse std::fs;\n");
        put("crates/stats/src/fixtures.rs", "use std::fs;\n");
        put("crates/stats/tests/it.rs", "use std::fs;\n");
        let broken = files(scratch.path()).unwrap();
        assert_eq!(broken.len(), 4, "{}", broken.join("\n"));
        for part in ["`foo = \"1\"`", "crates/stats/Cargo.toml", "crates/stats/src/lib.rs:3", "docs/gone.md"]
        {
            assert!(broken.iter().any(|sentence| sentence.contains(part)), "{part}: {}", broken.join("\n"));
        }
    }
}
