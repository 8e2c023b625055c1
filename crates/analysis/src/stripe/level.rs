//! The levels of arrays, and what md and device mapper call them: how many chunks of data lie side by side, and what else is
//! written with them (`Documentation/admin-guide/md.rst`, `man 4 md`; dm-raid has the same). Nothing is measured here.

use rdsk_model::ArrayFacts;

/// How the data of an array lie on its members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// One member after the other.
    Linear,
    /// Striped, without parity or copies.
    Raid0,
    /// Every member holds everything.
    Raid1,
    /// All parity on one member.
    Raid4,
    /// One parity chunk per stripe, moving.
    Raid5,
    /// Two parity chunks per stripe.
    Raid6,
    /// Copies that are striped.
    Raid10,
}

impl Level {
    /// What md and device mapper call it, and as people write it.
    const NAMES: [(Self, &'static str, &'static str); 9] = [
        (Self::Linear, "linear", "linear"),
        (Self::Raid0, "raid0", "RAID 0"),
        (Self::Raid0, "striped", "RAID 0"),
        (Self::Raid1, "raid1", "RAID 1"),
        (Self::Raid1, "mirror", "RAID 1"),
        (Self::Raid4, "raid4", "RAID 4"),
        (Self::Raid5, "raid5", "RAID 5"),
        (Self::Raid6, "raid6", "RAID 6"),
        (Self::Raid10, "raid10", "RAID 10"),
    ];

    /// The level that md and device mapper spell like this; `None` for what is no array, such as a cache.
    pub(super) fn spelled(word: &str) -> Option<Level> {
        Self::NAMES.iter().find(|(_, spelled, _)| *spelled == word).map(|(level, ..)| *level)
    }

    /// As people write it.
    pub fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(level, ..)| *level == self).map_or("", |(.., name)| name)
    }

    /// Whether chunks of data lie side by side; md may name a chunk for the other levels, too, where it means nothing.
    pub fn has_stripes(self) -> bool {
        !matches!(self, Level::Linear | Level::Raid1)
    }

    /// Members of each stripe that hold parity.
    pub fn parity_members(self) -> u64 {
        match self {
            Level::Raid4 | Level::Raid5 => 1,
            Level::Raid6 => 2,
            Level::Linear | Level::Raid0 | Level::Raid1 | Level::Raid10 => 0,
        }
    }

    /// Members that hold the same data; `None` where the words do not say.
    pub(super) fn copies(self, words: &ArrayFacts) -> Option<u64> {
        match self {
            Level::Raid1 => words.members,
            Level::Raid10 => copies(words.layout.as_deref()?).map(|(near, far)| near * far),
            _ => Some(1),
        }
    }

    /// Chunks of a full stripe: members whose data lie side by side before the first one comes again. `None` without stripes, and where
    /// the words do not say.
    pub(super) fn data_chunks(self, words: &ArrayFacts) -> Option<u64> {
        let members = words.members.filter(|_| self.has_stripes())?;
        let data = match self {
            Level::Raid10 => match copies(words.layout.as_deref()?)? {
                // As md's own optimal I/O size: if the copies do not divide the members, a whole turn.
                (near, _) if members.is_multiple_of(near) => members / near,
                _ => members,
            },
            _ => members.checked_sub(self.parity_members())?,
        };
        (data > 0).then_some(data)
    }

    /// How parity or copies are arranged, as `mdadm --detail` writes it: `left-symmetric`, `near=2`. `None` for what has no name.
    pub(super) fn layout(self, word: &str) -> Option<String> {
        match self {
            Level::Raid5 | Level::Raid6 => rotation(word).map(str::to_owned),
            Level::Raid10 if word.contains('=') => Some(word.to_owned()),
            Level::Raid10 => copies(word).map(|(near, far)| match (far, offset(word)) {
                (1, _) => format!("near={near}"),
                (far, true) => format!("offset={far}"),
                (far, false) => format!("far={far}"),
            }),
            _ => None,
        }
    }
}

/// The near and the far copies of RAID 10: md has them in the lowest two bytes of its number, dm-raid in words.
fn copies(layout: &str) -> Option<(u64, u64)> {
    let copies = match layout.split_once('=') {
        Some(("near", count)) => (count.parse().ok()?, 1),
        Some((_, count)) => (1, count.parse().ok()?),
        None => {
            let number: u64 = layout.parse().ok()?;
            (number & 0xff, (number >> 8) & 0xff)
        }
    };
    (copies.0 > 0 && copies.1 > 0).then_some(copies)
}

/// Whether the far copies of md's number lie beside the first ones, in the next row.
fn offset(layout: &str) -> bool {
    layout.parse::<u64>().is_ok_and(|number| number & (1 << 16) != 0)
}

/// How parity moves: md numbers it, dm-raid has letters.
fn rotation(word: &str) -> Option<&'static str> {
    match word {
        "0" | "la" => Some("left-asymmetric"),
        "1" | "ra" => Some("right-asymmetric"),
        "2" | "ls" => Some("left-symmetric"),
        "3" | "rs" => Some("right-symmetric"),
        "4" | "0_6" => Some("parity-first"),
        "5" | "n" | "n_6" => Some("parity-last"),
        "8" | "zr" => Some("ddf-zero-restart"),
        "9" | "nr" => Some("ddf-N-restart"),
        "10" | "nc" => Some("ddf-N-continue"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(level: &str, layout: &str, members: u64) -> (Level, ArrayFacts) {
        let layout = Some(layout.to_owned()).filter(|layout| !layout.is_empty());
        let facts = ArrayFacts { layout, members: Some(members), ..ArrayFacts::default() };
        (Level::spelled(level).unwrap(), facts)
    }

    #[test]
    fn full_stripes_are_those_of_the_manual() {
        for (level, layout, members, data, copies) in [
            ("raid0", "", 3, Some(3), Some(1)),
            ("striped", "", 2, Some(2), Some(1)),
            ("raid4", "0", 4, Some(3), Some(1)),
            ("raid5", "2", 4, Some(3), Some(1)),
            ("raid5", "ls", 3, Some(2), Some(1)),
            ("raid6", "zr", 5, Some(3), Some(1)),
            // Near, far and offset copies, and three near ones over five members.
            ("raid10", "258", 4, Some(2), Some(2)),
            ("raid10", "513", 4, Some(4), Some(2)),
            ("raid10", "66049", 4, Some(4), Some(2)),
            ("raid10", "258", 3, Some(3), Some(2)),
            ("raid10", "259", 5, Some(5), Some(3)),
            ("raid10", "near=2", 4, Some(2), Some(2)),
            ("raid10", "far=2", 4, Some(4), Some(2)),
            ("raid10", "", 4, None, None),
            ("raid1", "", 2, None, Some(2)),
            ("linear", "", 2, None, Some(1)),
        ] {
            let (level, facts) = words(level, layout, members);
            assert_eq!(
                (level.data_chunks(&facts), level.copies(&facts)),
                (data, copies),
                "{level:?} {layout}"
            );
        }
    }

    #[test]
    fn layouts_have_the_names_of_mdadm() {
        for (level, word, name) in [
            ("raid5", "2", Some("left-symmetric")),
            ("raid5", "la", Some("left-asymmetric")),
            ("raid6", "nc", Some("ddf-N-continue")),
            ("raid10", "258", Some("near=2")),
            ("raid10", "513", Some("far=2")),
            ("raid10", "66049", Some("offset=2")),
            ("raid10", "offset=2", Some("offset=2")),
            ("raid5", "77", None),
            ("raid0", "2", None),
        ] {
            assert_eq!(words(level, word, 4).0.layout(word).as_deref(), name, "{level} {word}");
        }
    }

    #[test]
    fn members_that_are_fewer_than_the_parity_have_no_stripe() {
        for (level, members) in [("raid6", 1), ("raid5", 1), ("raid0", 0)] {
            let (level, facts) = words(level, "", members);
            assert_eq!(level.data_chunks(&facts), None);
        }
    }
}
