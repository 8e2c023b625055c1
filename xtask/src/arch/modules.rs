//! Which file of a crate uses which other one, read from its tokens: `use` declarations, re-exports among them, and qualified
//! paths. Test code is left out. An item that is re-exported is used of the file that defines it and of each file that passes it on:
//! with `pub use shares::Share` in `scale.rs`, a file that names `crate::scale::Share` uses `scale.rs` and `scale/shares.rs`. `mod x;` is no use.
//! A file may use what the modules above it hold, `lib.rs` for example: it is a part of them, so that is no edge. Without
//! this rule every parent that has a type for its children would be a circle, and hide those between the children.

use super::tokens::Token;
use std::collections::{BTreeMap, BTreeSet};

/// The words before the name of an item.
const DEFINING: &[&str] = &["struct", "enum", "fn", "trait", "type", "const", "static"];
/// Re-exports of re-exports that are followed.
const MAX_REEXPORTS: usize = 8;

/// One source file as a module of its crate.
#[derive(Clone, Debug, Default)]
pub(crate) struct Module {
    /// Path of the file from the root of the workspace.
    file: String,
    /// Names from the root of the crate; empty for the root itself.
    path: Vec<String>,
    imports: Vec<Import>,
    /// Qualified paths outside `use`, with their lines.
    paths: Vec<(Vec<String>, usize)>,
    /// Single words outside `use`, which may be names that a glob brings in.
    words: BTreeSet<String>,
    /// Items that the file defines.
    items: BTreeSet<String>,
}

/// One name that a `use` declaration brings in.
#[derive(Clone, Debug)]
struct Import {
    path: Vec<String>,
    /// The name in this file; `*` of a glob.
    name: String,
    line: usize,
}

/// For each file the files that it uses, with the first place: `crate::x::Y in line 7`.
pub(crate) type Uses = BTreeMap<String, BTreeMap<String, String>>;

impl Module {
    /// Reads a file below `source_directory` (`crates/disk/src`); `None` for programs with a module tree of their own.
    pub(crate) fn read(file: &str, source_directory: &str, tokens: &[Token]) -> Option<Module> {
        let inside = file.strip_prefix(source_directory)?.trim_start_matches('/').strip_suffix(".rs")?;
        if inside.starts_with("bin/") {
            return None;
        }
        let mut path: Vec<String> = inside.split('/').map(str::to_owned).collect();
        let is_root = path.len() == 1 && matches!(path[0].as_str(), "lib" | "main");
        if is_root || path.last().is_some_and(|name| name == "mod") {
            path.pop();
        }
        let program: Vec<&Token> = tokens.iter().filter(|token| !token.test).collect();
        let mut module = Module { file: file.to_owned(), path, ..Module::default() };
        module.read_tokens(&program);
        Some(module)
    }

    fn read_tokens(&mut self, tokens: &[&Token]) {
        let text = |at: usize| tokens.get(at).map_or("", |token| token.text.as_str());
        let mut at = 0;
        while at < tokens.len() {
            let line = tokens[at].line;
            if text(at) == "use" && text(at + 1) != "<" {
                at += 1;
                self.read_use(tokens, &mut at, &[]);
            } else if is_name(text(at)) {
                let is_visibility = at > 1 && text(at - 1) == "in" && text(at - 2) == "(";
                let defines = at > 0 && DEFINING.contains(&text(at - 1));
                let path = read_path(tokens, &mut at);
                if defines {
                    self.items.insert(path[0].clone());
                } else if path.len() > 1 && !is_visibility {
                    self.paths.push((path, line));
                } else {
                    self.words.extend(path);
                }
            } else {
                at += 1;
            }
        }
    }

    /// Reads one tree of a `use` declaration.
    fn read_use(&mut self, tokens: &[&Token], at: &mut usize, before: &[String]) {
        let text = |at: usize| tokens.get(at).map_or("", |token| token.text.as_str());
        let line = tokens.get(*at).map_or(0, |token| token.line);
        let mut path = before.to_vec();
        if is_name(text(*at)) {
            path.extend(read_path(tokens, at));
        }
        if text(*at) == ":" {
            *at += 2;
        }
        let name = match text(*at) {
            "{" => {
                *at += 1;
                while *at < tokens.len() && text(*at) != "}" {
                    self.read_use(tokens, at, &path);
                    *at += usize::from(text(*at) != "}");
                }
                *at += 1;
                return;
            }
            "*" => {
                *at += 1;
                "*".to_owned()
            }
            "as" => {
                *at += 2;
                text(*at - 1).to_owned()
            }
            _ => {
                path.pop_if(|last| last == "self" && !before.is_empty());
                path.last().cloned().unwrap_or_default()
            }
        };
        self.imports.push(Import { path, name, line });
    }
}

/// `a::b::c` from its first name; stops before `::{`, `::*` and `::<`.
fn read_path(tokens: &[&Token], at: &mut usize) -> Vec<String> {
    let text = |at: usize| tokens.get(at).map_or("", |token| token.text.as_str());
    let mut path = vec![text(*at).to_owned()];
    *at += 1;
    while text(*at) == ":" && text(*at + 1) == ":" && is_name(text(*at + 2)) {
        path.push(text(*at + 2).to_owned());
        *at += 3;
    }
    path
}

fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

/// Which file uses which, over the modules of one crate.
pub(crate) fn uses(modules: &[Module]) -> Uses {
    let mut uses = Uses::new();
    for (from, module) in modules.iter().enumerate() {
        let mut add = |passed: Vec<usize>, path: &[String], line: usize| {
            for to in passed.into_iter().filter(|&to| !module.path.starts_with(&modules[to].path)) {
                let place = format!("{} in line {line}", path.join("::"));
                let used = uses.entry(module.file.clone()).or_default();
                used.entry(modules[to].file.clone()).or_insert(place);
            }
        };
        for import in &module.imports {
            let mut passed = Vec::new();
            let target = resolve(modules, from, &import.path, &mut passed, 0);
            if let (Some(target), "*") = (target, import.name.as_str()) {
                // Whatever it holds; of what it passes on, the words that are used here.
                passed.push(target);
                for word in module.words.iter().chain(module.paths.iter().map(|(path, _)| &path[0])) {
                    item(modules, target, std::slice::from_ref(word), &mut passed, 0);
                }
            }
            add(passed, &import.path, import.line);
        }
        for (path, line) in &module.paths {
            let mut passed = Vec::new();
            resolve(modules, from, path, &mut passed, 0);
            add(passed, path, *line);
        }
    }
    uses
}

/// The module that a path names in the module `here`, or that defines the item which it names; `None` outside the crate. The modules in
/// which an item was looked up are added to `passed`: those that pass it on, and the one that defines it.
fn resolve(
    modules: &[Module],
    here: usize,
    path: &[String],
    passed: &mut Vec<usize>,
    depth: usize,
) -> Option<usize> {
    let (first, rest) = path.split_first()?;
    let own = modules[here].path.as_slice();
    match first.as_str() {
        "crate" => descend(modules, &[], rest, passed, depth),
        "self" => descend(modules, own, rest, passed, depth),
        "super" => {
            let ups = path.iter().take_while(|name| *name == "super").count();
            descend(modules, &own[..own.len().checked_sub(ups)?], &path[ups..], passed, depth)
        }
        name if child(modules, own, name).is_some() => descend(modules, own, path, passed, depth),
        name => {
            let import = modules[here].imports.iter().find(|import| import.name == name)?;
            let is_itself = import.path.first() == Some(first);
            if is_itself || depth >= MAX_REEXPORTS {
                return None;
            }
            let longer: Vec<String> = import.path.iter().chain(rest).cloned().collect();
            resolve(modules, here, &longer, passed, depth + 1)
        }
    }
}

/// Follows names from a module downwards.
fn descend(
    modules: &[Module],
    from: &[String],
    names: &[String],
    passed: &mut Vec<usize>,
    depth: usize,
) -> Option<usize> {
    let mut module = modules.iter().position(|module| module.path == from)?;
    let mut names = names;
    while let Some((name, rest)) = names.split_first() {
        let Some(below) = child(modules, &modules[module].path, name) else {
            return Some(item(modules, module, names, passed, depth));
        };
        (module, names) = (below, rest);
    }
    Some(module)
}

/// The module that defines an item which `module` defines or passes on.
fn item(modules: &[Module], module: usize, names: &[String], passed: &mut Vec<usize>, depth: usize) -> usize {
    passed.push(module);
    let Module { items, imports, .. } = &modules[module];
    if depth >= MAX_REEXPORTS || items.contains(&names[0]) {
        return module;
    }
    if imports.iter().any(|import| import.name == names[0]) {
        return resolve(modules, module, names, passed, depth + 1).unwrap_or(module);
    }
    for glob in imports.iter().filter(|import| import.name == "*") {
        let from = resolve(modules, module, &glob.path, &mut Vec::new(), depth + 1);
        if let Some(from) = from.filter(|&from| from != module && holds(&modules[from], &names[0])) {
            return item(modules, from, names, passed, depth + 1);
        }
    }
    module
}

/// Whether a module defines a name or brings it in by itself.
fn holds(module: &Module, name: &str) -> bool {
    module.items.contains(name) || module.imports.iter().any(|import| import.name == name)
}

fn child(modules: &[Module], path: &[String], name: &str) -> Option<usize> {
    modules.iter().position(|module| {
        module.path.split_last().is_some_and(|(last, above)| last == name && above == path)
    })
}

#[cfg(test)]
mod tests {
    use super::super::tokens::tokens;
    use super::*;

    /// Who uses whom in a crate of these files, as `a.rs > b.rs`.
    fn edges(files: &[(&str, &str)]) -> Vec<String> {
        let read = |(name, text): &(&str, &str)| {
            Module::read(&format!("src/{name}.rs"), "src", &tokens(text).unwrap()).unwrap()
        };
        let short = |file: &str| file.trim_start_matches("src/").to_owned();
        let modules: Vec<Module> = files.iter().map(read).collect();
        let all = uses(&modules);
        all.iter()
            .flat_map(|(from, to)| to.keys().map(|to| format!("{} > {}", short(from), short(to))))
            .collect()
    }

    #[test]
    fn every_spelling_of_a_use_is_an_edge() {
        for text in [
            "use crate::b::Y;",
            "use crate::{c, b::{self as other, Y}};",
            "use super::b::Y as Z;",
            "use crate::b; fn f() { b::y(); }",
            "use crate::b as z; fn f() { z::y(); }",
            "fn f() -> crate::b::Y { todo }",
            "fn f() { super::b::y::<u8>() }",
            "fn f() { use crate::b::*; }",
            "use crate::b::{Y};",
        ] {
            let found =
                edges(&[("lib", "mod a; mod b; mod c;"), ("a", text), ("b", "pub struct Y;"), ("c", "")]);
            assert_eq!(found, ["a.rs > b.rs"], "{text}");
        }
    }

    #[test]
    fn tests_declarations_and_other_crates_are_no_edges() {
        for text in [
            "#[cfg(test)] mod tests { use crate::b::Y; }",
            "use std::b::Y; use b::Y; fn f() { b::Y }",
            "pub(in crate::b) struct X; // crate::b::Y",
            "use crate::b;",
            "fn f(x: &X) -> impl Iterator + use<'_> { x }",
        ] {
            let found = edges(&[("lib", "mod a; mod b;"), ("a", text), ("b", "pub struct Y;")]);
            assert!(found.is_empty(), "{text}: {found:?}");
        }
    }

    #[test]
    fn what_is_passed_on_is_used_of_who_defines_it_and_of_who_passes_it_on() {
        let files = |parent: &'static str, user: &'static str| {
            [
                ("lib", "mod a; mod b; pub use a::Y as Z;"),
                ("a", parent),
                ("a/c", "pub struct Y; use super::Common;"),
                ("b", user),
            ]
        };
        for parent in ["mod c; pub use c::Y; pub struct Common;", "mod c; pub use c::*; pub struct Common;"] {
            for user in [
                "use crate::a::Y;",
                "fn f() { crate::a::Y::new() }",
                "use crate::Z;",
                "use super::*; fn f(z: Z) {}",
            ] {
                let edges = edges(&files(parent, user));
                assert_eq!(
                    edges,
                    ["a.rs > a/c.rs", "b.rs > a.rs", "b.rs > a/c.rs", "lib.rs > a.rs", "lib.rs > a/c.rs"],
                    "{parent} {user}"
                );
            }
        }
        // So a circle between siblings is one, although the item that is used lies in a file of its own.
        let circle = edges(&[
            ("lib", "mod a; mod b;"),
            ("a", "mod c; pub use c::Y; use crate::b::X;"),
            ("a/c", "pub struct Y;"),
            ("b", "pub struct X(crate::a::Y);"),
        ]);
        assert!(
            ["a.rs > b.rs", "b.rs > a.rs"].iter().all(|edge| circle.contains(&(*edge).to_owned())),
            "{circle:?}"
        );
    }

    #[test]
    fn modules_in_directories_have_their_parents() {
        let found = edges(&[
            ("main", "mod a;"),
            ("a/mod", "mod b; mod c; pub struct X;"),
            ("a/b", "use super::{X, c::Y}; fn f() { super::super::d::d() }"),
            ("a/c", "pub struct Y;"),
            ("d", "use crate::a::X;"),
        ]);
        assert_eq!(found, ["a/b.rs > a/c.rs", "a/b.rs > d.rs", "d.rs > a/mod.rs"]);
        assert!(Module::read("src/bin/x.rs", "src", &[]).is_none());
    }
}
