//! Rules for the texts of the project: length and first line of files, lints switched on, a reason beside each dependency,
//! links that lead somewhere, a size that no crate exceeds. Pure functions of the texts.

use std::path::{Path, PathBuf};

/// Lines of a file, tests included.
const MAX_LINES: usize = 600;
/// Lines of a file outside tests.
const MAX_PROGRAM_LINES: usize = 400;
/// Lines of a crate outside tests, as a percentage of those of the workspace.
const MAX_CRATE_PERCENT: usize = 15;

/// Violations of one Rust source as text. Files of tests need no opening paragraph.
pub(crate) fn source_violations(path: &str, text: &str, is_test: bool) -> Vec<String> {
    let mut violations = Vec::new();
    let lines = text.lines().count();
    if lines > MAX_LINES {
        violations.push(format!("{path}: {lines} lines; a file has at most {MAX_LINES}"));
    }
    let program = program_lines(text);
    if !is_test && program > MAX_PROGRAM_LINES {
        violations.push(format!(
            "{path}: {program} lines outside tests; a file has at most {MAX_PROGRAM_LINES} of them"
        ));
    }
    if !is_test && !text.starts_with("//!") {
        violations.push(format!("{path}:1: does not open with a `//!` paragraph that says what it is for"));
    }
    violations
}

/// Lines of a source without its modules of tests and what else is compiled for tests only.
pub(crate) fn program_lines(text: &str) -> usize {
    let is_for_tests = |line: &str| {
        ["#[cfg(test)]", "#[cfg(all(test", "#[cfg(any(test"].iter().any(|start| line.starts_with(start))
    };
    let mut count = 0;
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let mut item = lines.clone().skip_while(|line| line.starts_with("#["));
        let opens = item.next().is_some_and(|item| item.ends_with('{') && !item.starts_with(' '));
        if is_for_tests(line) && opens {
            // The item ends with the bracket that stands at the start of a line, as rustfmt writes it.
            lines.by_ref().find(|line| *line == "}");
        } else {
            count += 1;
        }
    }
    count
}

/// Crates that hold too much of the workspace. `crates` has the lines of each one outside tests.
pub(crate) fn share_violations(crates: &[(String, usize)]) -> Vec<String> {
    let total: usize = crates.iter().map(|(_, lines)| lines).sum();
    let is_large = |lines: usize| lines * 100 > total * MAX_CRATE_PERCENT;
    crates
        .iter()
        .filter(|(_, lines)| is_large(*lines))
        .map(|(name, lines)| {
            format!(
                "{name}: {lines} of {total} lines outside tests; a crate holds at most {MAX_CRATE_PERCENT}% of them"
            )
        })
        .collect()
}

/// Whether a crate's manifest takes the lints of the workspace.
pub(crate) fn manifest_violations(path: &str, text: &str) -> Vec<String> {
    let mut lines = text.lines().map(str::trim).skip_while(|line| *line != "[lints]").skip(1);
    match lines.next() {
        Some("workspace = true") => Vec::new(),
        _ => vec![format!("{path}: has no `[lints]` with `workspace = true`")],
    }
}

/// Files of a crate's integration tests that cargo links as programs of their own, or does not build at all. `tests` are the files
/// beside `it.rs` with their texts, itself included: each is a module of it, unless the manifest names it as a program.
pub(crate) fn test_violations(manifest: &str, tests: &[(&Path, &str)]) -> Vec<String> {
    let is_named = |line: &str| manifest.lines().any(|other| other == line);
    let stem = |path: &Path| path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let it = tests.iter().find(|(path, _)| stem(path) == "it").map_or("", |(_, text)| text);
    let is_built = |stem: &str| {
        let module = format!("mod {stem};");
        is_named(&format!("name = \"{stem}\"")) || it.lines().any(|line| line == module)
    };
    tests
        .iter()
        .filter(|(path, _)| !is_named("autotests = false") || !is_built(&stem(path)))
        .map(|(path, _)| {
            format!(
                "{}: the tests of a crate are one program: a module of tests/it.rs, with `autotests = false`",
                path.display()
            )
        })
        .collect()
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
    let mut links = Vec::new();
    for rest in text.split("](").skip(1) {
        let Some((target, _)) = rest.split_once(')') else { continue };
        let file = target.split('#').next().unwrap_or_default();
        if !file.is_empty() && !file.contains("://") && !file.starts_with("mailto:") {
            links.push(directory.join(file));
        }
    }
    links
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
    fn tests_do_not_count_as_lines_of_the_program() {
        let program = format!("//! Room.\n{}", "\n".repeat(MAX_PROGRAM_LINES - 1));
        let tests = "#[cfg(test)]\n#[allow(x)]\nmod tests {\n    fn f() {\n    }\n}\n";
        assert_eq!(program_lines(tests), 0);
        assert_eq!(program_lines("#[cfg(test)]\nmod tests;\nfn f() {\n}\n"), 4);
        assert_eq!(program_lines(&format!("fn f() {{\n}}\n{tests}fn g() {{}}\n")), 3);
        assert!(source_violations("a.rs", &format!("{program}{tests}"), false).is_empty());
        assert!(source_violations("a.rs", &format!("{program}\n"), true).is_empty());
        assert!(source_violations("a.rs", &format!("{program}\n"), false)[0].contains("401 lines outside"));
    }

    #[test]
    fn a_crate_that_holds_too_much_is_noticed() {
        let of = |large| {
            let mut crates = vec![("a".to_owned(), large)];
            crates.extend((0..17).map(|n| (format!("c{n}"), 5)));
            share_violations(&crates)
        };
        assert!(of(15).is_empty());
        assert_eq!(of(16), ["a: 16 of 101 lines outside tests; a crate holds at most 15% of them"]);
    }

    #[test]
    fn lints_must_be_taken_from_the_workspace() {
        assert!(manifest_violations("Cargo.toml", "[package]\n[lints]\nworkspace = true\n").is_empty());
        assert_eq!(manifest_violations("Cargo.toml", "[package]\nversion.workspace = true\n").len(), 1);
        assert_eq!(manifest_violations("Cargo.toml", "[lints]\nworkspace = false\n").len(), 1);
    }

    #[test]
    fn test_files_outside_of_the_program_are_noticed() {
        let manifest =
            "[package]\nname = \"a\"\nautotests = false\n[[test]]\nname = \"it\"\n[[test]]\nname = \"c\"\n";
        let it = (Path::new("tests/it.rs"), "//! Tests.\n\nmod b;\n");
        let (b, c, d) =
            ((Path::new("tests/b.rs"), ""), (Path::new("tests/c.rs"), ""), (Path::new("tests/d.rs"), ""));
        assert_eq!(test_violations(manifest, &[it, b, c]), [""; 0]);
        let found = test_violations(manifest, &[it, b, c, d]);
        assert!(found.len() == 1 && found[0].starts_with("tests/d.rs: "), "{found:?}");
        assert_eq!(test_violations("[package]\n", &[b]).len(), 1);
        assert_eq!(test_violations("[package]\n", &[]), [""; 0]);
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
