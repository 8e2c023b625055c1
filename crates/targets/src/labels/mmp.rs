//! Multi-mount protection of ext4: whether a filesystem says of itself that a host has it mounted. No kernel but that of the host knows,
//! and libblkid does not say it. It looks at one flag of the superblock, asks `dumpe2fs`, and decides nothing.

use crate::machine::Machine;
use crate::probe;
use crate::tools::{self, ToolError};
use crate::uses::{InUse, Labelled, Use, UseKind};
use rdsk_units::printable;
use std::path::Path;

/// fs/ext4/ext4.h: `EXT4_MMP_SEQ_CLEAN` and `EXT4_MMP_SEQ_FSCK`. The program that mounts the filesystem counts up from a lower number.
const CLEAN: u32 = 0xff4d_4d50;
const CHECKED: u32 = 0xe24d_4d50;

/// Adds a use if the filesystem at `place`, which messages call `what`, says that a host uses it; `name` stands for it where answers are
/// prepared.
pub(crate) fn find(machine: &Machine<'_>, place: &Path, name: &str, what: &str, usage: &mut InUse) {
    if probe::read_at(place, SUPERBLOCK_AT).as_ref().is_some_and(is_protected) {
        ask(machine, place, name, what, usage);
    }
}

fn ask(machine: &Machine<'_>, place: &Path, name: &str, what: &str, usage: &mut InUse) {
    let told = tools::dumpe2fs(&machine.roots.tools, place, name);
    match told.and_then(|text| used_by(&text).ok_or(ToolError::NoProtection)) {
        Ok(None) => {}
        Ok(Some(by)) => {
            let labelled = Some(Labelled::Device { node: place.to_owned(), kind: "ext4".to_owned() });
            usage.uses.push(Use { labelled, ..Use::new(UseKind::MultiMounted, &format!("{what}: {by}")) });
        }
        Err(why) => usage.doubt(format_args!(
            "{what} has multi-mount protection, and whether a host has it mounted is not known: {why}"
        )),
    }
}

const SUPERBLOCK_AT: u64 = 1024;
const SUPERBLOCK_BYTES: usize = 128;

/// Whether an ext4 has the feature (`s_magic`, `s_feature_incompat`, `EXT4_FEATURE_INCOMPAT_MMP`).
fn is_protected(superblock: &[u8; SUPERBLOCK_BYTES]) -> bool {
    superblock[0x38..0x3a] == [0x53, 0xef] && superblock[0x61] & 1 == 1
}

/// Who uses it, from what `dumpe2fs -h` prints of the block of the protection: none if it is clean. `None` if that is not there.
fn used_by(text: &str) -> Option<Option<String>> {
    let value =
        |key: &str| text.lines().find_map(|line| Some(line.trim().strip_prefix(key)?.trim().to_owned()));
    let sequence = u32::from_str_radix(value("mmp_sequence:")?.strip_prefix("0x")?, 16).ok()?;
    let word = |key: &str| printable(&value(key).unwrap_or_else(|| "?".to_owned()));
    let (host, device, date) = (word("mmp_node_name:"), word("mmp_device_name:"), word("mmp_update_date:"));
    Some(match sequence {
        CLEAN => None,
        CHECKED => Some(format!("host {host} was checking it as {device} at {date}")),
        _ => Some(format!("host {host} had it mounted as {device} at {date}")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::Fake;

    fn text(sequence: &str) -> String {
        format!(
            "MMP update interval:      5\nMMP_block:\n    mmp_magic: 0x4d4d50\n    mmp_sequence: {sequence}\n    \
             mmp_update_date: Fri Nov 27 23:20:13 2026\n    mmp_node_name: db2\n    mmp_device_name: sdq\n"
        )
    }

    #[test]
    fn the_block_of_the_protection_says_who_uses_it() {
        assert_eq!(used_by(&text("0xff4d4d50")), Some(None));
        let by = used_by(&text("0x1a2b3c4d")).unwrap().unwrap();
        assert_eq!(by, "host db2 had it mounted as sdq at Fri Nov 27 23:20:13 2026");
        assert!(used_by(&text("0xe24d4d50")).unwrap().unwrap().contains("was checking it"));
        assert_eq!(used_by(&text("nonsense")), None);
        assert_eq!(used_by(""), None);
    }

    #[test]
    fn what_is_used_or_not_known_is_refused() {
        let look = |fake: &Fake| {
            fake.with(|machine, _| {
                let mut usage = InUse::default();
                ask(machine, Path::new("/dev/sda"), "sda", "ext4 on sda", &mut usage);
                (usage.uses.len(), usage.doubts.len())
            })
        };
        let answered = |sequence: &str| look(&Fake::new().answer("dumpe2fs sda", &text(sequence)));
        assert_eq!(answered("0xff4d4d50"), (0, 0));
        assert_eq!(answered("0x00000001"), (1, 0));
        assert_eq!(answered("?"), (0, 1));
        assert_eq!(look(&Fake::new()), (0, 1), "dumpe2fs is not installed");
    }

    #[test]
    fn only_ext4_with_the_feature_is_asked() {
        let mut superblock = [0; SUPERBLOCK_BYTES];
        superblock[0x61] = 1;
        assert!(!is_protected(&superblock));
        (superblock[0x38], superblock[0x39]) = (0x53, 0xef);
        assert!(is_protected(&superblock));
        superblock[0x61] = 2;
        assert!(!is_protected(&superblock));
    }
}
