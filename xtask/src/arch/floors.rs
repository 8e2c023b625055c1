//! The floors of the rooms, checked against the manifests: which crate imports which, directly or not. It reads the output of
//! `cargo metadata` and changes nothing.

use super::reach;
use crate::programs::text_of;
use crate::suite::cargo;
use anyhow::Context;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

/// Rooms that explain and draw; everything they show can be derived from a Record alone.
const DRAWING: &[&str] =
    &["rdsk-analysis", "rdsk-finding", "rdsk-compare", "rdsk-report", "rdsk-exchange", "rdsk-html"];
/// Rooms that touch the machine, which the drawing ones must not depend on, directly or not.
const TOUCHING: &[&str] = &["rdsk-engine", "rdsk-targets", "rdsk-observe", "rdsk-sys"];
/// Rooms whose errors are only shown to users or developers, so that an untyped error is enough.
const ANYHOW: &[&str] = &["rdsk", "rdsk-testkit", "xtask"];

/// Whether a dependency is part of the program or of its tests only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// `[dependencies]` and `[build-dependencies]`.
    Program,
    /// `[dev-dependencies]`.
    Tests,
}

/// The direct dependencies of every crate of the workspace, by its name.
pub(crate) type Imports = BTreeMap<String, Vec<(String, Kind)>>;

/// The floor of each room, by the name of its crate.
pub(crate) type Floors = BTreeMap<String, u32>;

/// Reads the floors of the rooms from the rows of ARCHITECTURE.md, such as ``| `crates/units` | 1 | quantities |``.
pub(crate) fn floors(page: &str) -> Floors {
    let row = |line: &str| {
        let (room, rest) = line.strip_prefix("| `")?.split_once("` | ")?;
        let floor = rest.split(' ').next()?.parse().ok()?;
        let name = match room.strip_prefix("crates/") {
            // The program has the name of the whole.
            Some("cli") => "rdsk".to_owned(),
            Some(room) => format!("rdsk-{room}"),
            None => room.to_owned(),
        };
        Some((name, floor))
    };
    page.lines().filter_map(row).collect()
}

/// Asks cargo for the imports of the workspace at `root`.
pub(crate) fn imports(root: &Path) -> anyhow::Result<Imports> {
    let text = text_of(&mut cargo(root, &["metadata", "--format-version", "1", "--no-deps"]))?;
    parse(&serde_json::from_str(&text)?)
}

/// Every violation, one sentence each.
pub(crate) fn violations(floors: &Floors, imports: &Imports) -> Vec<String> {
    let mut violations = Vec::new();
    for (name, dependencies) in imports {
        if !floors.contains_key(name) {
            violations.push(format!("{name} has no floor; give it one in ARCHITECTURE.md"));
        }
        for (dependency, kind) in dependencies {
            violations.extend(wrong_import(floors, name, dependency, *kind));
        }
    }
    let imported = |name: &str| {
        let direct = imports.get(name).into_iter().flatten().filter(|(_, kind)| *kind == Kind::Program);
        direct.map(|(dependency, _)| dependency.as_str())
    };
    for name in DRAWING {
        for reached in reach(name, imported).iter().filter(|reached| TOUCHING.contains(reached)) {
            violations
                .push(format!("{name} reaches {reached}; what it shows must follow from the Record alone"));
        }
    }
    violations
}

fn wrong_import(floors: &Floors, name: &str, dependency: &str, kind: Kind) -> Option<String> {
    if dependency == "anyhow" && kind == Kind::Program && !ANYHOW.contains(&name) {
        return Some(format!("{name} uses anyhow; a library has one thiserror enum"));
    }
    let (floor, below) = (floors.get(name)?, floors.get(dependency)?);
    match (dependency, kind) {
        ("rdsk-testkit", Kind::Tests) => None,
        ("rdsk-finding", Kind::Program) if name == "rdsk-report" => {
            Some(format!("{name} imports rdsk-finding; a page draws findings from the Record alone"))
        }
        ("rdsk-testkit", Kind::Program) if name != "xtask" => {
            Some(format!("{name} imports rdsk-testkit outside its tests"))
        }
        _ if below >= floor => Some(format!(
            "{name} (floor {floor}) imports {dependency} (floor {below}); only lower floors may be imported"
        )),
        _ => None,
    }
}

fn parse(metadata: &Value) -> anyhow::Result<Imports> {
    let list =
        |parent: &Value, key| parent[key].as_array().cloned().with_context(|| format!("no list of {key}"));
    let name =
        |package: &Value| package["name"].as_str().map(str::to_owned).context("a package without a name");
    let kind = |used: &Value| if used["kind"] == "dev" { Kind::Tests } else { Kind::Program };
    let mut imports = Imports::new();
    for package in list(metadata, "packages")? {
        let dependencies = list(&package, "dependencies")?;
        let used =
            dependencies.iter().map(|used| Ok((name(used)?, kind(used)))).collect::<anyhow::Result<_>>()?;
        imports.insert(name(&package)?, used);
    }
    Ok(imports)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn house(crates: &[(&str, &[(&str, Kind)])]) -> Imports {
        let owned = |(name, kind): &(&str, Kind)| ((*name).to_owned(), *kind);
        crates.iter().map(|(name, uses)| ((*name).to_owned(), uses.iter().map(owned).collect())).collect()
    }

    fn of_this_house() -> Floors {
        floors(&std::fs::read_to_string(crate::root().join("ARCHITECTURE.md")).unwrap())
    }

    fn violations_of(crates: &[(&str, &[(&str, Kind)])]) -> Vec<String> {
        violations(&of_this_house(), &house(crates))
    }

    #[test]
    fn a_lower_room_may_be_imported_and_a_higher_or_equal_one_not() {
        assert!(
            violations_of(&[("rdsk-engine", &[("rdsk-targets", Kind::Program), ("libc", Kind::Program)])])
                .is_empty()
        );
        assert_eq!(violations_of(&[("rdsk-targets", &[("rdsk-engine", Kind::Program)])]).len(), 1);
        assert_eq!(violations_of(&[("rdsk-observe", &[("rdsk-targets", Kind::Program)])]).len(), 1);
        assert_eq!(violations_of(&[("rdsk-model", &[("rdsk-engine", Kind::Tests)])]).len(), 1);
    }

    #[test]
    fn testkit_is_for_tests_only() {
        assert!(violations_of(&[("rdsk-units", &[("rdsk-testkit", Kind::Tests)])]).is_empty());
        assert_eq!(violations_of(&[("rdsk", &[("rdsk-testkit", Kind::Program)])]).len(), 1);
    }

    #[test]
    fn a_room_without_a_floor_is_noticed() {
        assert!(violations_of(&[("rdsk-attic", &[])])[0].contains("no floor"));
    }

    #[test]
    fn a_way_round_through_another_room_is_noticed() {
        let found = violations_of(&[
            ("rdsk-report", &[("rdsk-model", Kind::Program)]),
            ("rdsk-model", &[("rdsk-sys", Kind::Program)]),
            ("rdsk-sys", &[]),
        ]);
        assert_eq!(
            found,
            vec!["rdsk-report reaches rdsk-sys; what it shows must follow from the Record alone"]
        );
    }

    #[test]
    fn a_page_knows_no_rule() {
        assert_eq!(violations_of(&[("rdsk-report", &[("rdsk-finding", Kind::Program)])]).len(), 1);
        assert!(violations_of(&[("rdsk-report", &[("rdsk-finding", Kind::Tests)])]).is_empty());
    }

    #[test]
    fn libraries_keep_typed_errors() {
        assert_eq!(violations_of(&[("rdsk-stats", &[("anyhow", Kind::Program)])]).len(), 1);
        assert!(violations_of(&[("rdsk", &[("anyhow", Kind::Program)])]).is_empty());
    }

    #[test]
    fn this_workspace_stands() {
        let imports = imports(&crate::root()).unwrap();
        let floors = of_this_house();
        assert!(floors.keys().eq(imports.keys()), "{floors:?} and {:?}", imports.keys());
        assert_eq!(violations(&floors, &imports), Vec::<String>::new());
    }
}
