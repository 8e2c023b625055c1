//! Labels in partitions that the kernel does not show: of a loop device without `--partscan`, of a multipath device without kpartx, of
//! the disk of a virtual machine in a volume. What they belong to is lost with them as it is with others. It asks `partx` and `blkid`,
//! and parses no table.

use crate::labels::signature::Signature;
use crate::machine::{Machine, Node};
use crate::uses::{InUse, Labelled};
use crate::{labels, tools};
use rdsk_model::SECTOR_BYTES;
use std::path::Path;

/// Tables of partitions, as libblkid names them.
const TABLES: [&str; 6] = ["gpt", "dos", "mac", "bsd", "sun", "sgi"];
/// A GPT has room for 128.
const MAX_PARTITIONS: usize = 256;

/// A partition, by the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Partition {
    number: u32,
    begin: u64,
    size_bytes: u64,
}

/// Adds a use for each partition in the table of `node` that belongs to something larger, if the kernel shows none. `own` are the
/// labels of the device, whose node is at `path`. What cannot be looked at becomes a doubt.
pub(crate) fn find(machine: &Machine<'_>, node: &Node, own: &[Signature], path: &Path, usage: &mut InUse) {
    // The first sector of a partition may look like a table; a GPT is none by accident.
    let is_table = |label: &Signature| {
        TABLES.contains(&label.kind.as_str()) && (node.parent.is_none() || label.kind == "gpt")
    };
    if !node.partitions.is_empty() || !own.iter().any(is_table) {
        return;
    }
    let source = &machine.roots.tools;
    let partitions = match tools::partx(source, path, &node.name) {
        Ok(answer) => parse(&answer),
        Err(reason) => return usage.doubt(reason),
    };
    if partitions.len() > MAX_PARTITIONS {
        usage.doubt("its table has too many partitions to look at all of them");
    }
    // A table that came from a larger disk names what is not here.
    let end = node.size_bytes().unwrap_or(u64::MAX);
    let is_here = |part: &Partition| part.begin < end;
    for Partition { number, begin, size_bytes } in partitions.into_iter().filter(is_here).take(MAX_PARTITIONS)
    {
        let size_bytes = size_bytes.min(end - begin);
        match tools::blkid_within(source, path, &node.name, begin, size_bytes) {
            Ok(content) => {
                let label = content.fstype.as_deref().map(|kind| Signature {
                    uuid: content.uuid.clone(),
                    ..Signature::new(kind, None, content.label.as_deref())
                });
                if let Some(why) = label.and_then(|label| labels::why_kept(machine, node, &label)) {
                    let text = format!("{why} in partition {number} of its table");
                    usage.add_label(Labelled::HiddenPartition { table_on: path.to_owned() }, &text);
                }
            }
            // What hangs once would hang for each of them.
            Err(reason) => return usage.doubt(format_args!("partition {number} of its table: {reason}")),
        }
    }
}

/// Lines of number, first sector and sectors. Sectors have 512 bytes there, whatever those of the device have (libblkid).
fn parse(answer: &str) -> Vec<Partition> {
    let partition = |line: &str| {
        let mut words = line.split_ascii_whitespace();
        let number = words.next()?.parse().ok()?;
        let mut bytes = || words.next()?.parse::<u64>().ok()?.checked_mul(SECTOR_BYTES);
        let (begin, size_bytes) = (bytes()?, bytes()?);
        Some(Partition { number, begin, size_bytes })
    };
    answer.lines().filter_map(partition).filter(|partition| partition.size_bytes > 0).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::Fake;

    const TWO: &str = "1 2048 32768\n2 34816 32768\n";

    fn fake() -> Fake {
        Fake::new()
            .disk("loop0", "7:0")
            .answer("partx loop0", TWO)
            .answer("blkid loop0@1048576", "DEVNAME=/dev/loop0\nTYPE=ext4\nUSAGE=filesystem\n")
            .answer("blkid loop0@17825792", "DEVNAME=/dev/loop0\nUUID=u-1\nTYPE=LVM2_member\nUSAGE=raid\n")
    }

    fn said(fake: &Fake, name: &str, kinds: &[&str]) -> (Vec<String>, Vec<String>) {
        fake.with(|machine, usage| {
            let own: Vec<Signature> = kinds.iter().map(|kind| Signature::new(kind, None, None)).collect();
            find(machine, machine.tree.get(name).unwrap(), &own, Path::new("/dev/x"), usage);
            let table = Some(Labelled::HiddenPartition { table_on: "/dev/x".into() });
            assert!(usage.uses.iter().all(|used| used.labelled == table), "the table is removed");
            (usage.uses.iter().map(|used| used.text.clone()).collect(), usage.doubts.clone())
        })
    }

    #[test]
    fn members_in_partitions_that_the_kernel_does_not_show_are_kept() {
        let member = (vec!["LVM2_member in partition 2 of its table".to_owned()], vec![]);
        assert_eq!(said(&fake(), "loop0", &["gpt", "PMBR"]), member);
        assert_eq!(said(&fake(), "loop0", &["dos"]), member);
        let none = (Vec::new(), Vec::new());
        assert_eq!(said(&fake(), "loop0", &["ext4"]), none, "nobody is asked");
        assert_eq!(said(&fake().disk("loop0/loop0p1", "259:0"), "loop0", &["gpt"]), none, "it shows them");
        assert_eq!(said(&fake().answer("partx loop0", ""), "loop0", &["gpt"]), none, "an empty table");
        let blank = fake().answer("blkid loop0@17825792", "");
        assert_eq!(said(&blank, "loop0", &["gpt"]), none);
        // The device has 1 GiB, and the table is that of a larger one.
        let larger = fake().answer("partx loop0", "1 34816 9999999\n2 2097152 32768\n");
        assert_eq!(said(&larger, "loop0", &["dos"]).0, ["LVM2_member in partition 1 of its table"]);
        assert_eq!(said(&larger, "loop0", &["dos"]).1, Vec::<String>::new());
        let unasked = fake().without_answer("blkid loop0@1048576");
        let (uses, doubts) = said(&unasked, "loop0", &["gpt"]);
        assert_eq!(
            (uses.len(), doubts),
            (0, vec!["partition 1 of its table: blkid is not installed".into()])
        );
        let unasked = fake().without_answer("partx loop0");
        assert_eq!(said(&unasked, "loop0", &["gpt"]).1, ["partx is not installed"]);
    }

    #[test]
    fn a_table_in_a_partition_is_one_if_it_is_a_gpt() {
        let fake = Fake::new()
            .disk("sda", "8:0")
            .disk("sda/sda1", "8:1")
            .answer("partx sda1", "1 2048 32768\n")
            .answer("blkid sda1@1048576", "TYPE=crypto_LUKS\n");
        assert_eq!(said(&fake, "sda1", &["gpt"]).0, ["crypto_LUKS in partition 1 of its table"]);
        assert_eq!(said(&fake, "sda1", &["dos"]).0, Vec::<String>::new());
    }

    #[test]
    fn what_is_no_partition_is_left_out() {
        let one = Partition { number: 1, begin: 512, size_bytes: 1024 };
        assert_eq!(parse("1 1 2\n2 5 0\nNR START SECTORS\n3 4\n\n"), [one]);
    }
}
