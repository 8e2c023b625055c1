//! What the texts of the project keep: length and opening of files, lints switched on, a reason beside each dependency,
//! links that lead somewhere. Pure functions of the texts.

use std::path::{Path, PathBuf};

/// A file longer than this is two rooms.
pub(crate) const MAX_LINES: usize = 600;

/// Broken rules of one Rust source as text. Files of tests need no opening paragraph.
pub(crate) fn source_violations(path: &str, text: &str, is_test: bool) -> Vec<String> {
    let mut found = Vec::new();
    let lines = text.lines().count();
    if lines > MAX_LINES {
        found.push(format!("{path}: {lines} lines; a file has at most {MAX_LINES}"));
    }
    if !is_test && !text.starts_with("//!") {
        found.push(format!("{path}:1: does not open with a `//!` paragraph that says what it is for"));
    }
    found
}

/// Whether a crate's manifest takes the lints of the workspace.
pub(crate) fn manifest_violations(path: &str, text: &str) -> Vec<String> {
    let mut lines = text.lines().map(str::trim).skip_while(|line| *line != "[lints]").skip(1);
    match lines.next() {
        Some("workspace = true") => Vec::new(),
        _ => vec![format!("{path}: has no `[lints]` with `workspace = true`")],
    }
}

/// Dependencies of the root manifest that do not say why they are there. The rooms themselves need no reason.
pub(crate) fn unexplained_dependencies(root_manifest: &str) -> Vec<String> {
    let section = root_manifest.lines().skip_while(|line| *line != "[workspace.dependencies]").skip(1);
    section
        .take_while(|line| !line.starts_with('['))
        .filter(|line| line.contains('=') && !line.starts_with('#') && !line.starts_with("rdsk-"))
        .filter(|line| line.split_once("# ").is_none_or(|(_, reason)| reason.trim().is_empty()))
        .map(|line| format!("Cargo.toml: `{line}` does not say why it is there"))
        .collect()
}

/// Relative links of a Markdown file, as paths from the root; links with a scheme and within the page are left out.
pub(crate) fn links(path: &Path, text: &str) -> Vec<PathBuf> {
    let directory = path.parent().unwrap_or(Path::new(""));
    let mut found = Vec::new();
    for rest in text.split("](").skip(1) {
        let Some((target, _)) = rest.split_once(')') else { continue };
        let file = target.split('#').next().unwrap_or_default();
        if !file.is_empty() && !file.contains("://") && !file.starts_with("mailto:") {
            found.push(directory.join(file));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_files_and_files_without_an_opening_are_noticed() {
        assert!(source_violations("a.rs", "//! Room.\n", false).is_empty());
        assert!(source_violations("a.rs", "use std::io;\n", false)[0].contains("//!"));
        assert!(source_violations("a.rs", "use std::io;\n", true).is_empty());
        let long = format!("//! Room.\n{}", "\n".repeat(MAX_LINES));
        assert!(source_violations("a.rs", &long, true)[0].contains("601 lines"));
    }

    #[test]
    fn lints_must_be_taken_from_the_workspace() {
        assert!(manifest_violations("Cargo.toml", "[package]\n[lints]\nworkspace = true\n").is_empty());
        assert_eq!(manifest_violations("Cargo.toml", "[package]\nversion.workspace = true\n").len(), 1);
        assert_eq!(manifest_violations("Cargo.toml", "[lints]\nworkspace = false\n").len(), 1);
    }

    #[test]
    fn a_dependency_without_a_reason_is_noticed() {
        let manifest = "[workspace.dependencies]\nrdsk-units = { path = \"x\" }\n# Comment = line.\nlibc = \"0.2\" # numbers\nfoo = \"1\"\n[lints]\nbar = 1\n";
        let found = unexplained_dependencies(manifest);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].contains("foo"));
    }

    #[test]
    fn links_are_resolved_from_their_page() {
        let text = "[a](../x.md#top) [b](https://example.org) [c](#here) [d](y.md)";
        assert_eq!(
            links(Path::new("docs/README.md"), text),
            vec![PathBuf::from("docs/../x.md"), "docs/y.md".into()]
        );
    }
}
