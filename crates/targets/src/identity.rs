//! What a device is called by something that does not change when disks are plugged in another order. The kernel's own
//! name (`sdb`) is none of these. It reads links and compares words.

use crate::facts;
use crate::sysfs::{Node, names_in};
use crate::tools::Lsblk;
use crate::world::World;
use rdsk_model::Device;
use std::path::Path;

/// Where an identity comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdentityKind {
    /// The serial number.
    Serial,
    /// The World Wide Name.
    Wwn,
    /// A name in `/dev/disk/by-id`, without the directory.
    ById,
    /// The backing file of a loop device, as the kernel has it.
    BackingFile,
}

/// One identity. For a partition, serial number, World Wide Name and backing file are those of its disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Where it comes from.
    pub kind: IdentityKind,
    /// The word that `--destroy` must repeat; untrusted text.
    pub text: String,
}

const BY_ID: &str = "/dev/disk/by-id";

impl Identity {
    /// Whether the user's word is this identity, letter by letter; a by-id name may come with its directory.
    #[must_use]
    pub fn is_named_by(&self, word: &str) -> bool {
        let word = match self.kind {
            IdentityKind::ById => {
                word.strip_prefix(BY_ID).and_then(|rest| rest.strip_prefix('/')).unwrap_or(word)
            }
            _ => word,
        };
        word == self.text
    }
}

/// Every identity of a device, the best to type first.
pub(crate) fn find(world: &World<'_>, node: &Node, device: &Device, lsblk: Option<&Lsblk>) -> Vec<Identity> {
    let whole = world.tree.whole(node);
    let mut list: Vec<Identity> = Vec::new();
    let mut add = |kind, text: &str| {
        // Blanks around a serial number are the kernel's; those of a file belong to its name, and another file may have
        // the name without them. A name that is no text cannot be told from others that are none either.
        let text = if kind == IdentityKind::BackingFile { text } else { text.trim() };
        let is_lossy = text.contains(char::REPLACEMENT_CHARACTER);
        if !text.is_empty() && !is_lossy && list.iter().all(|known| known.text != text) {
            list.push(Identity { kind, text: text.to_owned() });
        }
    };
    // Of a loop device over a block device the backing file would be a kernel name, which is no identity.
    if let Some(file) = &device.backing_file
        && world.device_below_loop(whole).is_none()
    {
        add(IdentityKind::BackingFile, file);
    }
    let serials = device.serial.iter().chain(lsblk.and_then(|lsblk| lsblk.serial.as_ref()));
    for serial in serials.filter(|serial| tells_apart(serial)) {
        add(IdentityKind::Serial, serial);
    }
    let wwns = facts::wwns(whole);
    for wwn in wwns.iter().chain(lsblk.and_then(|lsblk| lsblk.wwn.as_ref())).filter(|wwn| tells_apart(wwn)) {
        add(IdentityKind::Wwn, wwn);
    }
    let directory = world.roots.dev.join("disk/by-id");
    for name in names_in(&directory) {
        if target(world, &directory.join(&name), &name).is_some_and(|target| target.name == node.name) {
            add(IdentityKind::ById, &name);
        }
    }
    list
}

/// Cheap bridges and sticks share serial numbers such as `000000000000`; such a word proves nothing.
fn tells_apart(word: &str) -> bool {
    let mut letters: Vec<char> = word.chars().filter(char::is_ascii_alphanumeric).collect();
    let enough = letters.len() >= 4;
    letters.dedup();
    enough && letters.len() > 1
}

fn target<'world>(world: &'world World<'_>, link: &Path, name: &str) -> Option<&'world Node> {
    world.tree.by_path(&Path::new(BY_ID).join(name), &world.roots.dev).or_else(|| {
        let target = std::fs::read_link(link).ok()?;
        world.tree.get(&target.file_name()?.to_string_lossy())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_whole_word_names_a_device() {
        let serial = Identity { kind: IdentityKind::Serial, text: "S3Z9".into() };
        assert!(serial.is_named_by("S3Z9"));
        for word in ["", "S3Z", "S3Z99", "s3z9", " S3Z9", "/dev/disk/by-id/S3Z9"] {
            assert!(!serial.is_named_by(word), "{word}");
        }
        let link = Identity { kind: IdentityKind::ById, text: "ata-WDC_1".into() };
        assert!(link.is_named_by("ata-WDC_1") && link.is_named_by("/dev/disk/by-id/ata-WDC_1"));
        for word in ["/tmp/ata-WDC_1", "/dev/disk/by-idata-WDC_1", "/dev/disk/by-id//ata-WDC_1"] {
            assert!(!link.is_named_by(word), "{word}");
        }
    }

    #[test]
    fn serials_that_everybody_has_are_none() {
        for word in ["", "0", "AB1", "00000000", "0000-0000", "....."] {
            assert!(!tells_apart(word), "{word}");
        }
        assert!(tells_apart("0001") && tells_apart("WD-WCANK1234567"));
    }
}
