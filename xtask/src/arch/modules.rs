//! Which file of a crate uses which other one, read from its tokens: `use` declarations and qualified paths. Test code is
//! left out. An edge leads to the file that defines the item, so a re-export is no edge unless the file uses the name itself;
//! `mod x;` is none either. A file may use what the modules above it hold: it is a part of them, so that is no edge. Without
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
    /// Single words outside `use`.
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
    is_public: bool,
}

/// For each file the files that it uses, with the first place: `crate::x::Y in line 7`.
pub(crate) type Uses = BTreeMap<String, BTreeMap<String, String>>;

/// What a path leads to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Target {
    Module(usize),
    /// An item of the module.
    Item(usize),
}

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
                let is_public = at > 0 && matches!(text(at - 1), "pub" | ")");
                at += 1;
                let start = self.imports.len();
                self.read_use(tokens, &mut at, &[]);
                self.imports[start..].iter_mut().for_each(|import| import.is_public = is_public);
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
        self.imports.push(Import { path, name, line, is_public: false });
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
    let mut found = Uses::new();
    for (from, module) in modules.iter().enumerate() {
        let mut add = |target: Option<Target>, path: &[String], line: usize| {
            if let Some(Target::Module(to) | Target::Item(to)) = target
                && !module.path.starts_with(&modules[to].path)
            {
                let place = format!("{} in line {line}", path.join("::"));
                let used = found.entry(module.file.clone()).or_default();
                used.entry(modules[to].file.clone()).or_insert(place);
            }
        };
        for import in &module.imports {
            let target = resolve(modules, from, &import.path, 0);
            let is_used = !import.is_public
                || module.words.contains(&import.name)
                || module.paths.iter().any(|(path, _)| path[0] == import.name);
            // A module that is only named makes no edge; what is taken from it does.
            let is_edge = import.name == "*" || matches!(target, Some(Target::Item(_)));
            if is_used && is_edge {
                add(target, &import.path, import.line);
            }
        }
        for (path, line) in &module.paths {
            add(resolve(modules, from, path, 0), path, *line);
        }
    }
    found
}

/// What a path means in the module `here`; `None` outside the crate.
fn resolve(modules: &[Module], here: usize, path: &[String], depth: usize) -> Option<Target> {
    let (first, rest) = path.split_first()?;
    let root: &[String] = &[];
    let own = modules[here].path.as_slice();
    match first.as_str() {
        "crate" => descend(modules, root, rest, depth),
        "self" => descend(modules, own, rest, depth),
        "super" => {
            let (_, mut above) = own.split_last()?;
            let mut rest = rest;
            while let Some((_, after)) = rest.split_first().filter(|(next, _)| *next == "super") {
                (_, above) = above.split_last()?;
                rest = after;
            }
            descend(modules, above, rest, depth)
        }
        name if child(modules, own, name).is_some() => descend(modules, own, path, depth),
        name => {
            let import = modules[here].imports.iter().find(|import| import.name == name)?;
            let is_itself = import.path.first() == Some(first);
            if is_itself || depth >= MAX_REEXPORTS {
                return None;
            }
            let longer: Vec<String> = import.path.iter().chain(rest).cloned().collect();
            resolve(modules, here, &longer, depth + 1)
        }
    }
}

/// Follows names from a module downwards.
fn descend(modules: &[Module], from: &[String], names: &[String], depth: usize) -> Option<Target> {
    let mut module = modules.iter().position(|module| module.path == from)?;
    let mut names = names;
    while let Some((name, rest)) = names.split_first() {
        let Some(below) = child(modules, &modules[module].path, name) else {
            return Some(item(modules, module, names, depth));
        };
        (module, names) = (below, rest);
    }
    Some(Target::Module(module))
}

/// An item that a module defines or re-exports.
fn item(modules: &[Module], module: usize, names: &[String], depth: usize) -> Target {
    let here = Target::Item(module);
    let of_module = &modules[module];
    if depth >= MAX_REEXPORTS || of_module.items.contains(&names[0]) {
        return here;
    }
    if of_module.imports.iter().any(|import| import.name == names[0]) {
        return resolve(modules, module, names, depth + 1).unwrap_or(here);
    }
    let globs = of_module.imports.iter().filter(|import| import.name == "*");
    let mut from_globs = globs.filter_map(|glob| resolve(modules, module, &glob.path, depth + 1));
    from_globs
        .find(|target| matches!(target, Target::Module(other) if modules[*other].items.contains(&names[0])))
        .map_or(here, |target| match target {
            Target::Module(other) | Target::Item(other) => Target::Item(other),
        })
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
    fn an_edge_leads_past_a_reexport_to_the_definition() {
        let files = |parent: &'static str| {
            [
                ("lib", "mod a; mod b;"),
                ("a", parent),
                ("a/c", "pub struct Y; use super::Common;"),
                ("b", "use crate::a::Y;"),
            ]
        };
        // The parent only passes the name on.
        for parent in ["mod c; pub use c::Y; pub struct Common;", "mod c; pub use c::*; pub struct Common;"] {
            assert_eq!(edges(&files(parent)), ["b.rs > a/c.rs"], "{parent}");
        }
        // It uses the name itself.
        assert!(
            edges(&files("mod c; pub use c::Y; pub struct Common(Y);")).contains(&"a.rs > a/c.rs".to_owned())
        );
        assert!(
            edges(&files("mod c; pub use self::c::Y; pub fn f() { c::g() }"))
                .contains(&"a.rs > a/c.rs".to_owned())
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
