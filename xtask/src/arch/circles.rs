//! Files of one crate that use each other in a circle: none of them can be read, tested or moved without the others. The few
//! that stay are listed with the reason. What counts as a use is decided in `modules.rs`.

use super::modules::Uses;
use super::reach;
use std::collections::BTreeSet;

/// Files that may use each other, and why. An entry has to name the whole circle: one that has grown or shrunk since is
/// reported, and so is one that is no circle any more.
pub(crate) const ALLOWED: &[(&[&str], &str)] = &[(
    &["crates/disk/src/array.rs", "crates/disk/src/device.rs", "crates/disk/src/fault.rs"],
    "a device may be an array of devices, or a device with faults",
)];

/// Every circle that is not in the list, and every entry of the list below `directory` that is not a circle.
pub(crate) fn violations(uses: &Uses, directory: &str, allowed: &[(&[&str], &str)]) -> Vec<String> {
    let circles = circles(uses);
    let allowed_here: Vec<BTreeSet<&str>> = allowed
        .iter()
        .map(|(files, _)| files.iter().copied().collect::<BTreeSet<&str>>())
        .filter(|files| files.iter().any(|file| file.starts_with(&format!("{directory}/"))))
        .collect();
    let mut violations: Vec<String> = circles
        .iter()
        .filter(|circle| !allowed_here.contains(circle))
        .map(|circle| describe(uses, circle))
        .collect();
    for entry in allowed_here.iter().filter(|entry| !circles.contains(entry)) {
        let files: Vec<&str> = entry.iter().copied().collect();
        violations.push(format!(
            "{}: no longer exactly this circle; correct the list in xtask/src/arch/circles.rs",
            files.join(", ")
        ));
    }
    violations
}

/// Sets of more than one file in which each one uses every other, directly or not.
fn circles(uses: &Uses) -> Vec<BTreeSet<&str>> {
    let mut circles: Vec<BTreeSet<&str>> = Vec::new();
    for file in uses.keys() {
        if circles.iter().any(|circle| circle.contains(file.as_str())) {
            continue;
        }
        let used = |file: &str| uses.get(file).into_iter().flat_map(|used| used.keys().map(String::as_str));
        let mut circle = reach(file, used);
        circle.retain(|other| reach(other, used).contains(file.as_str()));
        if circle.len() > 1 {
            circles.push(circle);
        }
    }
    circles
}

/// The circle with each use in it.
fn describe(uses: &Uses, circle: &BTreeSet<&str>) -> String {
    let files: Vec<&str> = circle.iter().copied().collect();
    let mut lines = vec![format!("files that use each other in a circle: {}", files.join(", "))];
    for file in circle {
        let inside = uses.get(*file).into_iter().flatten().filter(|(used, _)| circle.contains(used.as_str()));
        lines.extend(inside.map(|(used, place)| format!("    {file} uses {used}: {place}")));
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uses(edges: &[(&str, &str)]) -> Uses {
        let mut all = Uses::new();
        for (from, to) in edges {
            all.entry((*from).to_owned()).or_default().insert((*to).to_owned(), "X in line 1".to_owned());
        }
        all
    }

    #[test]
    fn a_chain_is_no_circle() {
        assert!(violations(&uses(&[("c/a", "c/b"), ("c/b", "c/d"), ("c/a", "c/d")]), "c", &[]).is_empty());
    }

    #[test]
    fn circles_are_named_with_their_uses_and_without_what_hangs_on_them() {
        let found = violations(
            &uses(&[("c/a", "c/b"), ("c/b", "c/d"), ("c/d", "c/a"), ("c/x", "c/a"), ("c/b", "c/y")]),
            "c",
            &[],
        );
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with("files that use each other in a circle: c/a, c/b, c/d\n"), "{found:?}");
        assert!(found[0].contains("c/b uses c/d: X in line 1") && !found[0].contains("c/y"), "{found:?}");
    }

    #[test]
    fn the_list_allows_exactly_what_is_there() {
        let two = uses(&[
            ("c/a", "c/b"),
            ("c/b", "c/a"),
            ("c/b", "c/d"),
            ("c/d", "c/b"),
            ("c/p", "c/q"),
            ("c/q", "c/p"),
        ]);
        let all: &[(&[&str], &str)] = &[(&["c/a", "c/b", "c/d"], "why"), (&["c/q", "c/p"], "why")];
        assert!(violations(&two, "c", all).is_empty());
        // Grown: the circle and the entry are both reported. An entry of another crate is not asked about here.
        assert_eq!(violations(&two, "c", &[(&["c/a", "c/b"], "why"), (&["c/q", "c/p"], "why")]).len(), 2);
        let gone =
            violations(&uses(&[("c/a", "c/b")]), "c", &[(&["c/a", "c/b"], "why"), (&["e/a", "e/b"], "why")]);
        assert_eq!(gone.len(), 1, "{gone:?}");
        assert!(gone[0].contains("no longer"), "{gone:?}");
    }
}
