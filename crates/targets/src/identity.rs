//! Names of a device that do not change when disks are plugged in another order. The kernel name (`sdb`) is not one,
//! nor is a name that two present disks share. It reads links and compares names.
//!
//! In: a device, and what sysfs, udev's links and `lsblk` know of all devices. Out: [`Names`], of which `--destroy` accepts the identities; and the
//! other way round (`naming`), the one device that a word means.

mod inventory;
pub(crate) mod naming;
mod own;
mod shared;
mod types;

pub(crate) use inventory::Inventory;
pub(crate) use own::of_node;
pub(crate) use types::Names;
pub use types::{Identity, IdentityKind, NoIdentity};

use crate::display::listed;
use crate::machine::{Machine, Node};
use crate::tools::Lsblk;
use rdsk_units::printable;

/// Every name of a device. `lsblk` is what the program reported about this device alone.
pub(crate) fn find(inventory: &Inventory<'_>, node: &Node, lsblk: Option<&Lsblk>) -> Names {
    let whole = inventory.machine.tree.whole(node);
    let mut names = Names::default();
    // The serial number that `lsblk` reports for a partition is that of its disk.
    classify_names(whole, inventory, lsblk, &mut names);
    if node.name != whole.name {
        // The disk's links name the disk; the partition has its own.
        let is_link =
            |kind| matches!(kind, IdentityKind::ById | IdentityKind::DrbdVolume | IdentityKind::Zvol);
        names.identities.retain(|identity| !is_link(identity.kind));
        names.no_identities.retain(|none| !is_link(none.identity.kind));
        classify_names(node, inventory, lsblk, &mut names);
    }
    names
}

/// Adds the names of `node` itself, each to the list it belongs to.
fn classify_names(node: &Node, inventory: &Inventory<'_>, lsblk: Option<&Lsblk>, names: &mut Names) {
    let disk = inventory.machine.tree.whole(node);
    let hardware_words = own::of_node(disk, inventory, lsblk);
    let is_shared = |word: &Identity| !shared::devices_sharing(disk, word, inventory).is_empty();
    let is_disk_shared = hardware_words.iter().any(|word| word.kind.is_of_hardware() && is_shared(word));
    let (mut good, mut junk) = (Vec::new(), Vec::new());
    for word in hardware_words.iter().filter(|word| word.kind.is_of_hardware()) {
        let list = if rejection_reason(disk, word, inventory).is_none() { &mut good } else { &mut junk };
        list.push(types::key(&word.text));
    }
    for identity in own::of_node(node, inventory, lsblk) {
        let why = rejection_reason(node, &identity, inventory).or_else(|| {
            // udev builds these names from serial number and World Wide Name, and points the link at one of the
            // devices that share them; a name of the content of a LUN leads to one of its paths in the same way.
            let key = identity.key();
            let rests_on =
                |words: &[String]| words.iter().any(|word| !word.is_empty() && key.contains(word.as_str()));
            let is_link = identity.kind == IdentityKind::ById;
            (is_link && (is_disk_shared || rests_on(&junk)) && !rests_on(&good))
                .then(|| "it is built from what several devices have".to_owned())
        });
        match why {
            Some(why) => names.no_identities.push(NoIdentity { identity, why }),
            None => names.identities.push(identity),
        }
    }
}

/// Why a name of `node` does not distinguish it from other devices; `None` if it does.
fn rejection_reason(node: &Node, identity: &Identity, inventory: &Inventory<'_>) -> Option<String> {
    if identity.kind.is_of_hardware()
        && !(is_distinctive(&identity.text) && has_serial_inside(&identity.text))
    {
        return Some("many devices report the same".to_owned());
    }
    if is_kernel_name(inventory.machine, &identity.text) {
        return Some("the kernel may give this name to any device".to_owned());
    }
    // If the names of the other devices are not known, a name that only udev knows may belong to any of them.
    let known_to_kernel = match identity.kind {
        IdentityKind::Serial => crate::machine::disk_names::serial(&node.directory).is_some(),
        IdentityKind::Wwn => !crate::machine::disk_names::wwns(node).is_empty(),
        _ => true,
    };
    if !inventory.is_available && !known_to_kernel {
        return Some("lsblk cannot say whether others have it too".to_owned());
    }
    let others = shared::devices_sharing(node, identity, inventory);
    match others.len() {
        0 => None,
        1 => Some(format!("{} has it too", printable(&others[0]))),
        _ => Some(format!("{} have it too", listed(&others, 3))),
    }
}

/// Cheap bridges and sticks share serial numbers such as `000000000000`, `0123456789ABCDEF`; such a number proves
/// nothing. A short one is accepted as long as it is not just digits in sequence.
fn is_distinctive(word: &str) -> bool {
    const MIN_LETTERS: usize = 3;
    let letters = types::key(word);
    let is_one_letter = letters.bytes().all(|letter| letters.bytes().next() == Some(letter));
    let is_counting = |row: &str| row.starts_with(letters.as_str());
    letters.len() >= MIN_LETTERS
        && !is_one_letter
        && !["0123456789abcdef", "123456789abcdef", "12345678901234567890", "01234567890123456789"]
            .into_iter()
            .any(is_counting)
}

/// For an NVMe namespace without a World Wide Name the kernel builds one from the controller's serial number, in
/// hexadecimal: `nvme.1b36-4e5631-51454d55-00000001`. It is as distinctive as that number.
fn has_serial_inside(wwn: &str) -> bool {
    let Some(serial) = wwn.strip_prefix("nvme.").and_then(|rest| rest.split('-').nth(1)) else { return true };
    let pairs =
        serial.as_bytes().chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok());
    let bytes: Option<Vec<u8>> = pairs.collect();
    bytes.is_some_and(|bytes| is_distinctive(&String::from_utf8_lossy(&bytes)))
}

/// Whether a word is, or could be, a kernel name: another device may have it after the next boot.
pub(crate) fn is_kernel_name(machine: &Machine<'_>, word: &str) -> bool {
    const NUMBERED: [&str; 10] = ["dm-", "md", "loop", "zram", "nbd", "ram", "mmcblk", "sr", "nvme", "ublkb"];
    const LETTERED: [&str; 4] = ["sd", "vd", "xvd", "hd"];
    let bare = word.strip_prefix("/dev/").unwrap_or(word);
    let numbered = |prefix: &&str| {
        let rest = bare.strip_prefix(*prefix);
        rest.is_some_and(|rest| {
            rest.starts_with(|c: char| c.is_ascii_digit())
                && rest.chars().all(|c| c.is_ascii_digit() || c == 'n' || c == 'p')
        })
    };
    let lettered = |prefix: &&str| {
        let rest = bare.strip_prefix(*prefix).map(|rest| rest.trim_end_matches(|c: char| c.is_ascii_digit()));
        rest.is_some_and(|rest| {
            (1..=2).contains(&rest.len()) && rest.bytes().all(|letter| letter.is_ascii_lowercase())
        })
    };
    machine.tree.get(&bare.replace('/', "!")).is_some()
        || NUMBERED.iter().any(numbered)
        || LETTERED.iter().any(lettered)
}

#[cfg(test)]
mod tests;
