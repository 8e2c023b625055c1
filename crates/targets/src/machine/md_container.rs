//! Arrays of md in a container (IMSM, DDF): several of them lie side by side on the same disks, and the container has the disks, too,
//! but no sectors of its own. What sysfs says of that; it decides nothing.

use crate::machine::sysfs::Node;
use rdsk_model::SECTOR_BYTES;
use rdsk_sys::files::{read_number, read_text};

/// The container that an array lies in, by kernel name; `None` for every other device. Documentation/admin-guide/md.rst,
/// `metadata_version`: `external:` and a word of the program that keeps the metadata. mdadm writes `/md127/0` there for an array that
/// mdmon watches, `-md127/0` for one that it does not (`is_subarray`, mdadm.h).
pub(crate) fn container_of(node: &Node) -> Option<String> {
    let version = read_text(&node.directory.join("md/metadata_version"))?;
    let (container, _) =
        version.trim().strip_prefix("external:")?.strip_prefix(['/', '-'])?.split_once('/')?;
    (!container.is_empty()).then(|| container.to_owned())
}

/// Where an array in a container keeps its data on a member, in bytes: begin and end. `None` for every other device, while data are
/// moved, and where sysfs does not say it (md.rst, `dev-XXX`: `offset` in sectors, `size` in KiB).
pub(crate) fn range_on(node: &Node, member: &Node) -> Option<(u64, u64)> {
    container_of(node)?;
    let md = node.directory.join("md");
    if read_text(&md.join("reshape_position"))?.trim() != "none" {
        return None;
    }
    let of_member = md.join(format!("dev-{}", member.name));
    let begin = read_number::<u64>(&of_member.join("offset"))?.checked_mul(SECTOR_BYTES)?;
    let size = read_number::<u64>(&of_member.join("size"))?.checked_mul(1024).filter(|&bytes| bytes > 0)?;
    Some((begin, begin.checked_add(size)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::Fake;

    #[test]
    fn the_container_of_an_array_is_in_its_version() {
        for (version, wanted) in [
            ("external:/md127/0\n", Some("md127")),
            ("external:-md127/1\n", Some("md127")),
            ("external:imsm\n", None),
            ("external:/md127\n", None),
            ("1.2\n", None),
            ("none\n", None),
        ] {
            let fake = Fake::new().disk("md126", "9:126").attribute("md126/md/metadata_version", version);
            let container = fake.with(|machine, _| container_of(machine.tree.get("md126").unwrap()));
            assert_eq!(container.as_deref(), wanted, "{version}");
        }
    }

    #[test]
    fn an_array_in_a_container_says_where_its_data_lie() {
        let fake = |version: &str| {
            Fake::new()
                .disk("sda", "8:0")
                .disk("md126", "9:126")
                .attribute("md126/md/metadata_version", version)
                .attribute("md126/md/reshape_position", "none\n")
                .attribute("md126/md/dev-sda/offset", "2048\n")
                .attribute("md126/md/dev-sda/size", "1024\n")
        };
        let range = |fake: &Fake| {
            fake.with(|machine, _| {
                let node = |name| machine.tree.get(name).unwrap();
                range_on(node("md126"), node("sda"))
            })
        };
        let inside = "external:/md127/0\n";
        assert_eq!(range(&fake(inside)), Some((1 << 20, 2 << 20)));
        assert_eq!(range(&fake("1.2\n")), None, "its metadata may lie beside");
        for (name, text) in
            [("reshape_position", "4096\n"), ("dev-sda/size", "0\n"), ("dev-sda/offset", "\n")]
        {
            let odd = fake(inside).attribute(&format!("md126/md/{name}"), text);
            assert_eq!(range(&odd), None, "{name}");
        }
    }
}
