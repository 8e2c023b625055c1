//! Adds up what all targets of a run may take of what lies below them, and refuses what would use it up. Pure.

use crate::display::{listed, shown};
use crate::examined::{Examined, Place};
use crate::permission::Refusal;
use crate::space::growth::{Growth, GrowthKind, Taking};
use rdsk_units::{Bytes, printable};

/// Whether two targets take of the same thing.
pub(crate) fn share_growth(left: &Examined, right: &Examined) -> bool {
    left.growths.iter().any(|growth| right.growths.iter().any(|other| other.key == growth.key))
}

/// Checks that what is written to all of these targets, together, uses up nothing that it grows in. A target whose
/// [`Examined::write_bytes`] is not known counts with all of it.
///
/// # Errors
/// The refusal, which names what would be used up and the targets that take of it.
pub fn check_growth(targets: &[&Examined]) -> Result<(), Refusal> {
    let takers = |key: &str| -> Vec<(&Examined, u64)> {
        let taken = |target: &Examined| {
            let of_it = target.growths.iter().filter(|growth| growth.key == key);
            of_it.fold(0_u64, |sum, growth| sum.saturating_add(growth.taken_bytes(target.write_bytes)))
        };
        targets.iter().map(|&target| (target, taken(target))).filter(|(_, bytes)| *bytes > 0).collect()
    };
    for growth in targets.iter().flat_map(|target| &target.growths) {
        let takers = takers(&growth.key);
        let bytes = takers.iter().fold(0_u64, |sum, (_, bytes)| sum.saturating_add(*bytes));
        if bytes > growth.spare_bytes {
            return Err(refusal(growth, &takers, bytes));
        }
    }
    Ok(())
}

/// The most bytes of this target that a run may write; `None` if all of it may be written, 0 if nothing may.
pub fn writable_bytes(target: &Examined) -> Option<u64> {
    let may = |write_bytes: Option<u64>| {
        let target = Examined { write_bytes, ..target.clone() };
        check_growth(&[&target]).is_ok()
    };
    if may(None) {
        return None;
    }
    // More written never takes less, so halving finds the limit.
    let (mut allowed, mut refused) = (0, target.target.size_bytes.saturating_add(1));
    while refused - allowed > 1 {
        let middle = allowed + (refused - allowed) / 2;
        if may(Some(middle)) { allowed = middle } else { refused = middle }
    }
    Some(allowed)
}

fn refusal(growth: &Growth, takers: &[(&Examined, u64)], bytes: u64) -> Refusal {
    let names: Vec<String> = takers.iter().map(|(target, _)| shown(&target.path)).collect();
    let who = if names.len() > 1 { "they may together take" } else { "it may take" };
    let amount = if bytes == u64::MAX {
        "more with every write".to_owned()
    } else {
        format!("{} more", Bytes(bytes).approx())
    };
    let reason = format!(
        "{who} {amount} of {}, which has {} of {} free and must keep {}, or {}",
        printable(&growth.name),
        Bytes(growth.free_bytes).approx(),
        Bytes(growth.total_bytes).approx(),
        Bytes(growth.free_bytes.saturating_sub(growth.spare_bytes)).approx(),
        growth.loss
    );
    let only_directories = takers.iter().all(|(target, _)| matches!(target.place, Place::Directory { .. }));
    let what = if only_directories { "create a test file in" } else { "write to" };
    let code = if growth.kind == GrowthKind::Pool { "thin-pool" } else { "fills-up" };
    Refusal {
        code,
        message: format!("refusing to {what} {}: {reason}", listed(&names, 3)),
        hint: hint(growth, only_directories, bytes),
    }
}

/// What helps. How to write less depends on the command, so no flag is named for it.
fn hint(growth: &Growth, only_directories: bool, bytes: u64) -> String {
    if bytes == u64::MAX && growth.kind == GrowthKind::Copies {
        return "measure reads (--rw read), or name something outside of it".into();
    }
    if growth.kind == GrowthKind::Pool {
        return "enlarge it with lvextend, or measure reads, or name something outside of it".into();
    }
    if only_directories {
        return "choose a smaller test file (--size), free some of it, or name something outside of it"
            .into();
    }
    let less = if matches!(growth.taking, Taking::Always(_)) { "" } else { "write less of the target, " };
    let first = "allocate all of the target first (fallocate), ";
    let first = if growth.kind == GrowthKind::Space { first } else { "" };
    format!("{less}free some of it, {first}measure reads, or name something outside of it")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::space::growth::spare_bytes;
    use crate::uses::InUse;
    use rdsk_model::Target;

    const MIB: u64 = 1 << 20;

    fn growth(key: &str, at_most_bytes: u64, taking: Taking) -> Growth {
        Growth {
            key: key.into(),
            kind: GrowthKind::Space,
            name: format!("the {key}"),
            loss: "it is full",
            free_bytes: 110 * MIB,
            total_bytes: 100 * MIB,
            spare_bytes: 100 * MIB,
            at_most_bytes,
            taking,
        }
    }

    fn target(path: &str, growths: Vec<Growth>, write_bytes: Option<u64>) -> Examined {
        let place = Place::File { dev: 1, ino: 2 };
        let examined = Examined::new(Target::default(), path.into(), place, InUse::default());
        Examined { growths, write_bytes, ..examined }
    }

    fn said(targets: &[&Examined]) -> String {
        check_growth(targets).err().map(|refusal| refusal.message).unwrap_or_default()
    }

    #[test]
    fn targets_that_fit_alone_may_not_fit_together() {
        let one = |path, key| target(path, vec![growth(key, 60 * MIB, Taking::Written)], None);
        let (a, b, c) = (one("/a", "memory"), one("/b", "memory"), one("/c", "disk"));
        assert_eq!(
            (said(&[&a]), said(&[&b]), said(&[&a, &c])),
            (String::new(), String::new(), String::new())
        );
        assert_eq!(
            said(&[&a, &b, &c]),
            "refusing to write to /a, /b: they may together take 120 MiB more of the memory, which has 110 MiB of 100 MiB free \
             and must keep 10 MiB, or it is full"
        );
        // The two halves of a mirror over two files of one filesystem.
        let halves =
            vec![growth("disk", 60 * MIB, Taking::Written), growth("disk", 60 * MIB, Taking::Written)];
        let mirror = target("/m", halves.clone(), None);
        assert!(said(&[&mirror]).contains("it may take 120 MiB"), "{}", said(&[&mirror]));
        assert_eq!(spare_bytes(&halves), Some(50 * MIB));
        assert_eq!(spare_bytes(&halves[..1]), None, "60 MiB are there");
    }

    #[test]
    fn what_is_not_written_takes_nothing() {
        let large = |write_bytes| target("/a", vec![growth("disk", 10 << 30, Taking::Written)], write_bytes);
        assert!(said(&[&large(None)]).contains("10 GiB"), "all of it may be written");
        assert_eq!(said(&[&large(Some(64 * MIB))]), "");
        assert!(said(&[&large(Some(101 * MIB))]).contains("101 MiB"));
        let always = target("/a", vec![growth("disk", 10 << 30, Taking::Always(200 * MIB))], Some(1));
        assert!(said(&[&always]).contains("200 MiB"), "{}", said(&[&always]));
        let file = |bytes| vec![growth("disk", u64::MAX, Taking::TestFile { unknown_bytes: bytes })];
        assert_eq!(said(&[&target("/d", file(0), None), &large(Some(64 * MIB))]), "");
        assert!(said(&[&target("/d", file(0), Some(64 * MIB)), &large(Some(64 * MIB))]).contains("128 MiB"));
        assert!(said(&[&target("/d", file(101 * MIB), None)]).contains("101 MiB"));
        let growths = |kind| vec![Growth { kind, ..growth("log", u64::MAX, Taking::Always(u64::MAX)) }];
        let refused = check_growth(&[&target("/a", growths(GrowthKind::Copies), Some(1))]).unwrap_err();
        assert!(refused.message.contains("it may take more with every write of the log, which"), "{refused}");
        assert_eq!(refused.hint, "measure reads (--rw read), or name something outside of it");
    }
}
