//! Looks for labels on a claimed device that were not there when it was examined: a program may have made a volume or a filesystem on it
//! and closed it, which nothing but the label shows. It opens for reading only.

use super::block::{labels_around, node_path};
use crate::examined::Examined;
use crate::labels::Label;
use crate::labels::signature::Signature;
use crate::machine::{Machine, Node};
use crate::uses::{InUse, UseKind};
use crate::{labels, tools};
use std::fs::File;
use std::io::Read as _;
use std::io::{Seek as _, SeekFrom};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// Adds a use for each label on the device `node`, its partitions and its disk that is new, and says that it belongs to something or
/// has a UUID. Partition tables have none in the answer of wipefs, nor do the few bytes that stand for a label by chance.
pub(super) fn find(machine: &Machine<'_>, node: &Node, examined: &Examined, usage: &mut InUse) {
    let path = &examined.path;
    let own = match tools::wipefs(&machine.roots.tools, path, &node.name) {
        Ok(own) => own,
        Err(reason) => return usage.doubt(reason),
    };
    for (labelled, signature) in labels_around(machine, node, &own, path, usage) {
        let place = node_path(machine, node, labelled, path);
        if is_known(examined, (labelled.name != node.name).then_some(labelled), &signature)
            || is_among_random_data(&place, &signature)
        {
            continue;
        }
        if let Some(why) = labels::why_kept(machine, labelled, &signature) {
            labels::add(machine, node, Label { device: labelled, place, signature: &signature }, &why, usage);
        } else if signature.uuid.is_some() {
            let text = format!("{}{}", signature.text, labels::on(node, labelled));
            usage.add(UseKind::Relabelled, &text);
        }
    }
}

/// Whether it was there when the device was examined, on itself or on the `other` one.
fn is_known(examined: &Examined, other: Option<&Node>, signature: &Signature) -> bool {
    let is_it = |before: &Signature| before.kind == signature.kind && before.uuid == signature.uuid;
    match other {
        None => examined.signatures.iter().any(is_it),
        Some(other) => {
            examined.labels_around.iter().any(|(name, before)| *name == other.name && is_it(before))
        }
    }
}

/// Whether what looks like a label stands in what a run has written: random data, of which a sector has two bytes of zero. The sector
/// of a label has many.
fn is_among_random_data(place: &Path, signature: &Signature) -> bool {
    const SECTOR_BYTES: usize = 512;
    /// In random data one sector of 2 000 000 000 has as many.
    const ZEROS: usize = 16;
    let read = || {
        let offset = signature.offset_bytes?;
        let flags = libc::O_NONBLOCK | libc::O_NOFOLLOW | libc::O_CLOEXEC;
        let mut file = File::options().read(true).custom_flags(flags).open(place).ok()?;
        file.seek(SeekFrom::Start(offset - offset % SECTOR_BYTES as u64)).ok()?;
        let mut sector = [0; SECTOR_BYTES];
        file.read_exact(&mut sector).ok()?;
        Some(sector)
    };
    read().is_some_and(|sector| sector.iter().filter(|&&byte| byte == 0).count() < ZEROS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::examined::Place;
    use crate::tests::Fake;
    use rdsk_model::Target;
    use rdsk_sys::device_number::DeviceNumber;

    fn label(kind: &str, offset: &str, uuid: Option<&str>) -> String {
        let uuid = uuid.map_or("null".to_owned(), |uuid| format!("\"{uuid}\""));
        format!(r#"{{"offset":"{offset}","type":"{kind}","uuid":{uuid},"label":null}}"#)
    }

    fn answer(labels: &[String]) -> String {
        format!(r#"{{"signatures":[{}]}}"#, labels.join(","))
    }

    /// What is said of a disk with this answer of wipefs, and of its partition with the other, of which it had an ext4 and a GPT, and
    /// the partition a swap space. Its second sector is random.
    fn told(disk: &str, partition: &str) -> Vec<String> {
        let fake = Fake::new().disk("sda", "8:0").disk("sda/sda1", "8:1");
        let random = (0..512_u32).map(|index| (index.wrapping_mul(2_654_435_761) >> 24) as u8 | 1);
        let bytes: Vec<u8> = std::iter::repeat_n(0, 512).chain(random).chain([0; 3072]).collect();
        std::fs::write(fake.path("dev/sda"), &bytes).unwrap();
        std::fs::write(fake.path("dev/sda1"), &bytes).unwrap();
        let fake = fake.answer("wipefs sda", disk).answer("wipefs sda1", partition);
        let place = Place::Block { major_minor: DeviceNumber { major: 8, minor: 0 }, attachment: None };
        let had = |labels: &[String]| crate::labels::signature::parse(&answer(labels)).unwrap();
        let examined = Examined {
            signatures: had(&[label("ext4", "0x438", Some("u-1")), label("gpt", "0x200", None)]),
            labels_around: had(&[label("swap", "0xff6", Some("u-2"))])
                .into_iter()
                .map(|signature| ("sda1".to_owned(), signature))
                .collect(),
            ..Examined::new(Target::default(), fake.path("dev/sda"), place, InUse::default())
        };
        fake.with(|machine, usage| {
            find(machine, machine.tree.get("sda").unwrap(), &examined, usage);
            assert_eq!(usage.doubts, Vec::<String>::new());
            usage.uses.iter().map(|used| format!("{:?}: {}", used.kind, used.text)).collect()
        })
    }

    #[test]
    fn labels_that_were_there_are_not_told_again() {
        let ext4 = label("ext4", "0x438", Some("u-1"));
        let swap = label("swap", "0xff6", Some("u-2"));
        let none = Vec::<String>::new();
        assert_eq!(
            told(&answer(&[ext4, label("gpt", "0x400", None)]), &answer(std::slice::from_ref(&swap))),
            none
        );
        assert_eq!(told("", ""), none, "they were overwritten");
        assert_eq!(told(&answer(&[swap]), ""), ["Relabelled: swap"], "it was on the partition");
        assert_eq!(told(&answer(&[label("dos", "0x1fe", None)]), ""), none, "no UUID");
    }

    #[test]
    fn what_somebody_has_made_since_is_told() {
        let lvm = label("LVM2_member", "0x418", Some("l"));
        assert_eq!(told(&answer(std::slice::from_ref(&lvm)), ""), ["Member: LVM2_member"]);
        assert_eq!(told("", &answer(&[lvm])), ["Member: LVM2_member on sda1"]);
        assert_eq!(told(&answer(&[label("crypto_LUKS", "0x0", None)]), ""), ["Member: crypto_LUKS"]);
        assert_eq!(told(&answer(&[label("ext4", "0x438", Some("u-9"))]), ""), ["Relabelled: ext4"]);
        assert_eq!(told("", &answer(&[label("xfs", "0x0", Some("x"))])), ["Relabelled: xfs on sda1"]);
    }

    #[test]
    fn what_looks_like_a_label_in_our_own_data_is_none() {
        let jbd = |offset| answer(&[label("jbd", offset, Some("j"))]);
        assert_eq!(told(&jbd("0x238"), ""), Vec::<String>::new());
        assert_eq!(told("", &jbd("0x238")), Vec::<String>::new());
        assert_eq!(told(&jbd("0x438"), ""), ["Member: jbd"], "in a sector with zeros");
        assert_eq!(told(&jbd("0xfffff"), ""), ["Member: jbd"], "it cannot be read");
    }

    #[test]
    fn labels_that_cannot_be_looked_for_are_a_doubt() {
        let fake = Fake::new().disk("sda", "8:0");
        let place = Place::Block { major_minor: DeviceNumber { major: 8, minor: 0 }, attachment: None };
        let examined = Examined::new(Target::default(), "/dev/sda".into(), place, InUse::default());
        let doubts = fake.with(|machine, usage| {
            find(machine, machine.tree.get("sda").unwrap(), &examined, usage);
            usage.doubts.clone()
        });
        assert_eq!(doubts, ["wipefs is not installed"]);
    }
}
