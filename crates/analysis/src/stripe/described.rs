//! What the kernel says of the arrays that a target is or lies on, level by level, and what follows from it: chunk, full stripe, and
//! where the first one begins. It reads no sysfs, and measures nothing.

use super::geometry::exact;
use super::level::Level;
use crate::groups::by_key;
use crate::words::few;
use rdsk_model::{ArrayFacts, Device, Layer, Target, TargetKind};
use rdsk_units::printable;

/// Devices that keep what is fast, and pass on the rest (Documentation/admin-guide/device-mapper and bcache.rst).
const CACHES: [&str; 3] = ["bcache", "cache", "writecache"];
/// Other targets of device mapper with several devices below, of which none is a member of an array.
const NO_ARRAYS: [&str; 9] =
    ["clone", "era", "integrity", "log-writes", "snapshot", "thin", "thin-pool", "verity", "zoned"];
/// Arrays that are named one by one; of more, only their number follows.
const MAX_NAMED: usize = 4;

/// An array as the kernel describes it, or several that are described alike.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArrayLayout {
    /// Kernel names: `md0`, `dm-3`; untrusted text.
    pub devices: Vec<String>,
    /// Whose words these are: `md`, `dm`.
    pub source: String,
    /// The level.
    pub level: Level,
    /// How parity or copies are arranged, as `mdadm --detail` writes it; `None` where the level has one way only, or a word without a name.
    pub layout: Option<String>,
    /// Members that share the data, parity and copies included.
    pub members: Option<u64>,
    /// Members that hold the same data; `None` where the words do not say.
    pub copies: Option<u64>,
    /// Bytes on one member before the next; `None` for levels without stripes.
    pub chunk_bytes: Option<u64>,
    /// Data of one full stripe.
    pub stripe_bytes: Option<u64>,
}

/// The arrays of a target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Described {
    /// Level by level, the array that the target is or lies on first.
    pub levels: Vec<ArrayLayout>,
    /// Bytes on one member before the next: of the first level, or of those below mirrors and concatenations, if they are alike.
    pub chunk_bytes: Option<u64>,
    /// Data of one full stripe of that level.
    pub stripe_bytes: Option<u64>,
    /// Where in the target the first full stripe begins, less than a full stripe; `None` where that is not known.
    pub start_offset_bytes: Option<u64>,
    /// Whether partial stripes cost reads, on that level or further down.
    pub has_parity: bool,
    /// Why requests may cost now what they do not cost otherwise, and what of the target has another geometry; a sentence each.
    pub doubts: Vec<String>,
}

impl ArrayLayout {
    fn new(array: &ArrayFacts) -> Option<Self> {
        let level = Level::spelled(array.level.as_deref()?)?;
        let chunk_bytes = array.chunk_bytes.filter(|&bytes| bytes > 0 && level.has_stripes());
        let data = level.data_chunks(array);
        Some(Self {
            devices: vec![array.device.clone()],
            source: array.source.clone(),
            level,
            layout: array.layout.as_deref().and_then(|word| level.layout(word)),
            members: array.members,
            copies: level.copies(array),
            chunk_bytes,
            stripe_bytes: chunk_bytes.zip(data).and_then(|(chunk, data)| chunk.checked_mul(data)),
        })
    }

    /// `md0 is RAID 5, left-symmetric, 4 members, chunk 64 KiB, full stripe 192 KiB`.
    pub fn sentence(&self) -> String {
        let is = if self.devices.len() == 1 { "is" } else { "are" };
        let mut words = vec![self.level.name().to_owned()];
        words.extend(self.layout.as_deref().map(printable));
        words.extend(self.copies.filter(|&copies| copies > 1).map(|copies| format!("{copies} copies")));
        words.extend(self.members.map(|members| format!("{members} members")));
        words.extend(self.chunk_bytes.map(|bytes| format!("chunk {}", exact(bytes))));
        words.extend(self.stripe_bytes.map(|bytes| format!("full stripe {}", exact(bytes))));
        format!("{} {is} {}", self.names(), words.join(", "))
    }

    fn names(&self) -> String {
        let names: Vec<String> = self.devices.iter().map(|device| printable(device)).collect();
        few(&names, MAX_NAMED, "other")
    }
}

impl Described {
    /// The arrays of a target; `None` where the kernel names no level, so that only latencies can show the geometry: hardware RAID, a
    /// simulated array, a cache.
    pub fn new(target: &Target) -> Option<Self> {
        let device = target.device.as_ref()?;
        let array = device.array.as_ref()?;
        let first = ArrayLayout::new(array)?;
        let below = by_key(
            device
                .arrays_below
                .iter()
                .filter_map(ArrayLayout::new)
                .map(|layout| (ArrayLayout { devices: Vec::new(), ..layout.clone() }, layout.devices)),
        );
        let below: Vec<ArrayLayout> = below
            .into_iter()
            .map(|(layout, devices)| ArrayLayout { devices: devices.concat(), ..layout })
            .collect();
        let striped = striped(&first, &below);
        let (chunk_bytes, stripe_bytes) =
            striped.map_or((None, None), |layout| (layout.chunk_bytes, layout.stripe_bytes));
        // Where a filesystem has put the blocks of a file is not known, and concatenations begin where they do.
        let is_at_its_place = target.kind != TargetKind::File && first.level.has_stripes();
        let start_offset_bytes = array.target_offset_bytes.filter(|_| is_at_its_place).zip(stripe_bytes);
        let start_offset_bytes =
            start_offset_bytes.map(|(offset, stripe)| (stripe - offset % stripe) % stripe);
        let mut doubts: Vec<String> = device.arrays().flat_map(unrest).collect();
        doubts.extend(narrower_end(device, &first));
        let has_parity =
            first.level.parity_members() > 0 || below.iter().any(|layout| layout.level.parity_members() > 0);
        let levels = std::iter::once(first).chain(below).collect();
        Some(Self { levels, chunk_bytes, stripe_bytes, start_offset_bytes, has_parity, doubts })
    }

    /// Whether some level has stripes, although none is the target's.
    pub fn has_hidden_stripes(&self) -> bool {
        self.chunk_bytes.is_none() && self.levels.iter().any(|layout| layout.level.has_stripes())
    }

    /// The arrays with parity below the stripes of the target: full stripes of these spare no reads there.
    pub(super) fn parity_below(&self) -> Option<&ArrayLayout> {
        let (first, below) = self.levels.split_first()?;
        let has_parity = |layout: &&ArrayLayout| layout.level.parity_members() > 0;
        below.iter().find(has_parity).filter(|_| first.level.has_stripes())
    }
}

/// The level whose stripes the target has: the first one with any, as long as what lies below it is alike.
fn striped<'l>(first: &'l ArrayLayout, below: &'l [ArrayLayout]) -> Option<&'l ArrayLayout> {
    if first.level.has_stripes() {
        return Some(first);
    }
    let mut with_stripes = below.iter().filter(|layout| layout.level.has_stripes());
    with_stripes.next().filter(|_| with_stripes.next().is_none())
}

/// Where the members of RAID 0 differ in size, the larger ones share what is left (`drivers/md/raid0.c`, zones).
fn narrower_end(device: &Device, first: &ArrayLayout) -> Option<String> {
    let chunk_bytes = first.chunk_bytes.filter(|_| first.level == Level::Raid0 && first.source == "md")?;
    let members = members_of(device, first.devices.first()?)?;
    let sizes = || members.iter().filter_map(|layer| layer.size_bytes);
    let (least, most) = (sizes().min()?, sizes().max()?);
    (most - least >= chunk_bytes).then(|| {
        format!(
            "the members of {} differ in size: towards its end fewer of them share a stripe",
            first.names()
        )
    })
}

/// What an array is made of.
pub(super) fn members_of<'d>(device: &'d Device, array: &str) -> Option<&'d [Layer]> {
    fn find<'l>(layers: &'l [Layer], array: &str) -> Option<&'l [Layer]> {
        let named = layers.iter().find(|layer| layer.name == array);
        named
            .map(|layer| &layer.below[..])
            .or_else(|| layers.iter().find_map(|layer| find(&layer.below, array)))
    }
    if device.name == array { Some(&device.below) } else { find(&device.below, array) }
}

/// Why an array is not to be judged now, a sentence for each reason: a resync reads and writes all members, and a missing member's
/// data come from all others.
pub fn unrest(words: &ArrayFacts) -> Vec<String> {
    let name = printable(&words.device);
    let activity = words.activity.as_ref().filter(|word| !["idle", "frozen"].contains(&word.as_str()));
    let activity = activity.map(|word| format!("{name} is busy with a {}", printable(word)));
    let missing = words.degraded.filter(|&missing| missing > 0);
    let has_paths = words.level.as_deref() == Some("multipath");
    let missing = missing.map(|missing| match missing {
        1 if has_paths => format!("a path of {name} has failed"),
        _ if has_paths => format!("{missing} paths of {name} have failed"),
        _ => format!("{name} is missing {missing} of its members"),
    });
    activity.into_iter().chain(missing).collect()
}

/// What a device with several below it is, if it is no array; latencies show which of them answered, and no layout.
pub(super) fn no_array(words: &ArrayFacts) -> Option<String> {
    let kind = words.level.as_deref()?;
    let what = if CACHES.contains(&kind) {
        "a cache".to_owned()
    } else {
        NO_ARRAYS.contains(&kind).then(|| format!("a device of the kind {kind}"))?
    };
    Some(format!("{} is {what} and no array", printable(&words.device)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures;

    const KIB: u64 = 1024;

    fn array(device: &str, level: &str, chunk_bytes: Option<u64>, members: u64) -> ArrayFacts {
        let (device, level) = (device.into(), Some(level.into()));
        ArrayFacts {
            device,
            source: "md".into(),
            level,
            chunk_bytes,
            members: Some(members),
            ..ArrayFacts::default()
        }
    }

    fn described(array: ArrayFacts, below: &[ArrayFacts]) -> Option<Described> {
        let mut target = fixtures::disk();
        let device = target.device.as_mut().unwrap();
        (device.array, device.arrays_below) = (Some(array), below.to_vec());
        Described::new(&target)
    }

    #[test]
    fn the_words_give_chunk_stripe_and_where_it_begins() {
        let raid5 = |offset: Option<u64>| ArrayFacts {
            layout: Some("2".into()),
            target_offset_bytes: offset,
            ..array("md0", "raid5", Some(64 * KIB), 4)
        };
        let whole = described(raid5(Some(0)), &[]).unwrap();
        assert_eq!((whole.chunk_bytes, whole.stripe_bytes), (Some(64 * KIB), Some(192 * KIB)));
        assert_eq!((whole.start_offset_bytes, whole.has_parity), (Some(0), true));
        assert_eq!(
            whole.levels[0].sentence(),
            "md0 is RAID 5, left-symmetric, 4 members, chunk 64 KiB, full stripe 192 KiB"
        );
        // A partition at 1 MiB, one at sector 63, and a volume whose start is unknown.
        for (offset, start) in [
            (Some(1 << 20), Some(128 * KIB)),
            (Some(63 * 512), Some(192 * KIB - 63 * 512)),
            (Some(384 * KIB), Some(0)),
            (None, None),
        ] {
            assert_eq!(described(raid5(offset), &[]).unwrap().start_offset_bytes, start, "{offset:?}");
        }
        let mut file = Target { kind: TargetKind::File, ..fixtures::disk() };
        file.device.as_mut().unwrap().array = Some(raid5(Some(0)));
        let file = Described::new(&file).unwrap();
        assert_eq!((file.stripe_bytes, file.start_offset_bytes), (Some(192 * KIB), None));
    }

    #[test]
    fn what_has_no_words_is_not_described() {
        let sim = ArrayFacts { source: "sim".into(), level: None, ..array("raid5:lun0", "", None, 5) };
        for array in [
            sim,
            array("dm-0", "cache", None, 2),
            array("bcache0", "bcache", None, 2),
            array("dm-0", "multipath", None, 2),
        ] {
            assert_eq!(described(array.clone(), &[]), None, "{array:?}");
        }
        assert_eq!(Described::new(&fixtures::disk()), None);
    }

    #[test]
    fn mirrors_and_concatenations_have_the_stripes_of_what_lies_below() {
        let mirror = described(array("md0", "raid1", None, 2), &[]).unwrap();
        assert_eq!(
            (mirror.chunk_bytes, mirror.has_hidden_stripes(), mirror.levels[0].copies),
            (None, false, Some(2))
        );
        assert_eq!(mirror.levels[0].sentence(), "md0 is RAID 1, 2 copies, 2 members");
        let alike = ["md1", "md2"].map(|name| array(name, "raid0", Some(64 * KIB), 2));
        let over = described(array("md0", "raid1", None, 2), &alike).unwrap();
        assert_eq!((over.chunk_bytes, over.stripe_bytes), (Some(64 * KIB), Some(128 * KIB)));
        assert_eq!((over.start_offset_bytes, over.has_parity), (None, false));
        assert_eq!(
            over.levels[1].sentence(),
            "md1 and md2 are RAID 0, 2 members, chunk 64 KiB, full stripe 128 KiB"
        );
        let unlike = [array("md1", "raid5", Some(64 * KIB), 4), array("md2", "raid5", Some(64 * KIB), 3)];
        let row = described(array("dm-0", "linear", Some(64 * KIB), 2), &unlike).unwrap();
        assert_eq!((row.chunk_bytes, row.has_parity, row.has_hidden_stripes()), (None, true, true));
        assert_eq!(row.levels.len(), 3);
    }

    #[test]
    fn a_stripe_over_arrays_with_parity_is_not_without_it() {
        let below = ["md1", "md2"].map(|name| array(name, "raid5", Some(512 * KIB), 3));
        let stack = described(array("md0", "raid0", Some(64 * KIB), 2), &below).unwrap();
        assert_eq!((stack.stripe_bytes, stack.has_parity), (Some(128 * KIB), true));
        assert_eq!(stack.parity_below().unwrap().stripe_bytes, Some(1 << 20));
        let mirrors = ["md1", "md2"].map(|name| array(name, "raid1", None, 2));
        let stack = described(array("md0", "raid0", Some(64 * KIB), 2), &mirrors).unwrap();
        assert!(!stack.has_parity && stack.parity_below().is_none());
    }

    #[test]
    fn an_array_that_is_busy_lacks_a_member_or_has_unequal_ones_is_doubted() {
        let mut facts = array("md0", "raid6", Some(64 * KIB), 5);
        (facts.activity, facts.degraded) = (Some("resync".into()), Some(1));
        let doubts = described(facts, &[]).unwrap().doubts;
        assert_eq!(doubts, ["md0 is busy with a resync", "md0 is missing 1 of its members"]);
        let mut target = fixtures::disk();
        let device = target.device.as_mut().unwrap();
        device.name = "md0".into();
        device.array = Some(array("md0", "raid0", Some(64 * KIB), 2));
        let member = |size: u64| Layer { size_bytes: Some(size), ..Layer::default() };
        device.below = vec![member(1 << 30), member((1 << 30) + 512)];
        assert_eq!(Described::new(&target).unwrap().doubts, [""; 0]);
        target.device.as_mut().unwrap().below[1] = member(2 << 30);
        let doubts = Described::new(&target).unwrap().doubts;
        assert_eq!(
            doubts,
            ["the members of md0 differ in size: towards its end fewer of them share a stripe"]
        );
    }

    #[test]
    fn many_arrays_that_are_alike_are_named_together() {
        let many: Vec<ArrayFacts> =
            (1..10).map(|number| array(&format!("md{number}"), "raid6", None, 4)).collect();
        let stack = described(array("dm-0", "linear", None, 9), &many).unwrap();
        assert_eq!(stack.levels[1].sentence(), "md1, md2, md3, md4 and 5 others are RAID 6, 4 members");
        assert!(stack.chunk_bytes.is_none() && stack.has_hidden_stripes());
    }

    #[test]
    fn caches_and_their_like_are_no_arrays() {
        for kind in ["cache", "writecache", "bcache", "snapshot", "era", "clone", "log-writes", "integrity"] {
            let why = no_array(&array("dm-3", kind, None, 2)).unwrap();
            assert!(why.starts_with("dm-3 is a ") && why.ends_with(" and no array"), "{why}");
        }
        for kind in ["raid0", "raid1", "linear", "striped", "mirror"] {
            assert_eq!(no_array(&array("dm-3", kind, Some(64 << 10), 2)), None, "{kind}");
        }
        assert_eq!(no_array(&ArrayFacts::default()), None, "without the right to ask the table is unknown");
    }
}
