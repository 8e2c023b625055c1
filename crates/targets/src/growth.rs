//! What writing uses up besides the target itself: the filesystem that a sparse file grows in, memory, a thin pool. It adds up
//! what all targets of a run may take of each, and refuses what would use one up. Pure; `growing` and `thin_pool` look.

use crate::display::{listed, shown};
use crate::examined::{Examined, Place};
use crate::permission::Refusal;
use rdsk_units::{Bytes, printable};

/// How much a target takes of something that writing to it uses up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Taking {
    /// As much as is written ([`Examined::write_bytes`]), each block once; all that it may if that is not known.
    Written,
    /// So many bytes, however little is written.
    Always(u64),
    /// The test file of a directory; this many bytes as long as its size is not known.
    TestFile { unknown_bytes: u64 },
}

/// Which kind of thing is used up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GrowthKind {
    /// A filesystem that a sparse file grows in, or memory.
    Space,
    /// A thin pool, or the store of a snapshot.
    Pool,
}

/// Something that writing to a target takes of, which may be shared with other targets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Growth {
    /// Equal for everything that takes of the same thing: `filesystem 8:1`, `memory`.
    pub(crate) key: String,
    pub(crate) kind: GrowthKind,
    /// For messages: `the filesystem of /srv/a.img`.
    pub(crate) name: String,
    /// What happens when it is used up.
    pub(crate) loss: &'static str,
    pub(crate) free_bytes: u64,
    pub(crate) total_bytes: u64,
    /// What of the free bytes a run may take.
    pub(crate) spare_bytes: u64,
    /// The target takes no more of it than this, however much is written.
    pub(crate) at_most_bytes: u64,
    pub(crate) taking: Taking,
}

impl Growth {
    /// What a run that writes `write_bytes` of the target takes of it.
    fn taken_bytes(&self, write_bytes: Option<u64>) -> u64 {
        let wanted = match self.taking {
            Taking::Written => write_bytes.unwrap_or(u64::MAX),
            Taking::Always(bytes) => bytes,
            Taking::TestFile { unknown_bytes } => write_bytes.unwrap_or(unknown_bytes),
        };
        wanted.min(self.at_most_bytes)
    }
}

/// Whether two targets take of the same thing.
pub(crate) fn share_growth(left: &Examined, right: &Examined) -> bool {
    left.growths.iter().any(|one| right.growths.iter().any(|other| other.key == one.key))
}

/// What a test file may take of `growths`, the smallest of them; `None` if nothing limits it. Two things that lie in the same
/// place, as the two halves of a mirror, may take it twice.
pub(crate) fn spare_bytes(growths: &[Growth]) -> Option<u64> {
    let limit = |one: &Growth| {
        let same = || growths.iter().filter(|other| other.key == one.key);
        let most = same().fold(0_u64, |sum, other| sum.saturating_add(other.at_most_bytes));
        (most > one.spare_bytes).then(|| one.spare_bytes / same().count().max(1) as u64)
    };
    growths.iter().filter_map(limit).min()
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

fn refusal(growth: &Growth, takers: &[(&Examined, u64)], bytes: u64) -> Refusal {
    let names: Vec<String> = takers.iter().map(|(target, _)| shown(&target.path)).collect();
    let who = if names.len() > 1 { "they may together take" } else { "it may take" };
    let reason = format!(
        "{who} {} more of {}, which has {} of {} free and must keep {}, or {}",
        Bytes(bytes).approx(),
        printable(&growth.name),
        Bytes(growth.free_bytes).approx(),
        Bytes(growth.total_bytes).approx(),
        Bytes(growth.free_bytes.saturating_sub(growth.spare_bytes)).approx(),
        growth.loss
    );
    let only_directories = takers.iter().all(|(target, _)| matches!(target.place, Place::Directory { .. }));
    let what = if only_directories { "create a test file in" } else { "write to" };
    let (code, hint) = match growth.kind {
        GrowthKind::Space => (
            "fills-up",
            "write less of it (--bytes), free some of it, allocate all of the target first (fallocate), measure reads, or name \
             something outside of it",
        ),
        GrowthKind::Pool => {
            ("thin-pool", "enlarge it with lvextend, or measure reads, or name something outside of it")
        }
    };
    Refusal {
        code,
        message: format!("refusing to {what} {}: {reason}", listed(&names, 3)),
        hint: hint.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::uses::Found;
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
        let place = Place::File { dev: 1, ino: 2, own: false };
        let examined = Examined::new(Target::default(), path.into(), place, Found::default());
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
    }
}
