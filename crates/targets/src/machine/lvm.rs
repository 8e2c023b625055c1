//! The names that LVM gives its devices, split into volume group and logical volume. It opens no device.

use crate::machine::sysfs::Node;

/// `vg/lv` of an LVM device; `None` for every other device.
pub(crate) fn logical_volume(node: &Node) -> Option<String> {
    split(node.mapped_name.as_deref()?, &node.dm_uuid()).map(|(group, volume)| format!("{group}/{volume}"))
}

/// Volume group and logical volume of an LVM device. LVM doubles each hyphen within a name (lvm(8), "Valid Names"). The
/// hidden parts of a volume have a third part in the name or a suffix to the UUID's 64 characters.
fn split(name: &str, uuid: &str) -> Option<(String, String)> {
    const UUID_CHARACTERS: usize = 64;
    if uuid.strip_prefix("LVM-")?.len() != UUID_CHARACTERS {
        return None;
    }
    let mut parts = vec![String::new()];
    let mut letters = name.chars().peekable();
    while let Some(letter) = letters.next() {
        if letter == '-' && letters.next_if_eq(&'-').is_none() {
            parts.push(String::new());
        } else {
            parts.last_mut()?.push(letter);
        }
    }
    match <[String; 2]>::try_from(parts) {
        Ok([group, volume]) if !group.is_empty() && !volume.is_empty() => Some((group, volume)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_lvm_are_taken_apart() {
        let uuid = format!("LVM-{}", "a".repeat(64));
        let parted = |name: &str| split(name, &uuid).map(|(group, volume)| format!("{group}/{volume}"));
        assert_eq!(parted("vg-lv").as_deref(), Some("vg/lv"));
        assert_eq!(parted("v--g-l--v").as_deref(), Some("v-g/l-v"));
        assert_eq!(parted("a---b").as_deref(), Some("a-/b"));
        assert_eq!(parted("a----b-c").as_deref(), Some("a--b/c"));
        for name in ["", "vg", "vg--lv", "-lv", "vg-", "vg-lv-real", "vg-pool-tpool"] {
            assert_eq!(parted(name), None, "{name}");
        }
        for uuid in ["", "CRYPT-x", &format!("{uuid}-tdata"), "LVM-short"] {
            assert_eq!(split("vg-lv", uuid), None, "{uuid}");
        }
    }
}
