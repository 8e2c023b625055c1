//! Which disk has a number now: the numbers of block devices are used again, as soon as a disk has gone or a loop device has lost its
//! file. A partition may move, or leave its number to another one, while its disk stays. It reads a few files of sysfs and opens no device.

use super::disk_names;
use rdsk_sys::files::{read_number, read_text};
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// Which attachment of a disk was examined. A loop device keeps its number when it gets another file, and so does a
/// drive with another medium.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attachment {
    /// The whole disk, as sysfs spells it.
    pub disk: String,
    /// The partition, if the target is one.
    pub partition: Option<String>,
    /// Its number and where it begins, as sysfs has them: a program may have made the table anew (`sfdisk --reorder`).
    pub partition_facts: Vec<String>,
    /// What is different of the next attachment.
    pub mark: Mark,
}

/// How an attachment is distinguished from others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mark {
    /// The kernel's count of attachments and media (`diskseq`, Linux 5.15 and later).
    Sequence(u64),
    /// What sysfs says of the disk. Its directory there has a number of its own for each disk
    /// (Linux 4.14 and later), so that two disks without a serial number differ, too; of another medium in the same drive it
    /// says nothing.
    Facts(Vec<String>),
}

impl Attachment {
    /// The present one; `None` if sysfs has no such disk.
    pub(crate) fn now(sys: &Path, disk: &str, partition: Option<&str>) -> Option<Self> {
        let directory = sys.join("block").join(disk);
        let sequence = read_number(&directory.join("diskseq")).map(Mark::Sequence);
        let facts = || facts_of(&directory).map(Mark::Facts);
        let mark = sequence.or_else(facts)?;
        let partition_facts =
            partition.map(|name| facts_of_partition(&directory.join(name))).unwrap_or_default();
        Some(Self { disk: disk.to_owned(), partition: partition.map(str::to_owned), partition_facts, mark })
    }

    /// Whether the same disk, with the same medium or file, is attached.
    pub(crate) fn is_still(&self, sys: &Path) -> bool {
        Self::now(sys, &self.disk, self.partition.as_deref()).as_ref() == Some(self)
    }
}

fn facts_of_partition(directory: &Path) -> Vec<String> {
    let fact = |name: &&str| Some(format!("{name} {}", read_text(&directory.join(name))?));
    ["dev", "start"].iter().filter_map(fact).collect()
}

fn facts_of(disk: &Path) -> Option<Vec<String>> {
    /// `loop` is there while the loop device has a file.
    const DIRECTORIES: [&str; 2] = [".", "loop"];
    const TEXTS: [&str; 6] = ["device/wwid", "wwid", "device/cid", "dm/uuid", "md/uuid", "loop/backing_file"];
    fs::metadata(disk).ok()?;
    let number = |name: &&str| Some(format!("{name} {}", fs::metadata(disk.join(name)).ok()?.ino()));
    let text = |name: &&str| {
        let text = read_text(&disk.join(name))?;
        // A file that has lost its name is the same.
        Some(format!("{name} {}", text.trim_end_matches(" (deleted)")))
    };
    let mut facts: Vec<String> = DIRECTORIES.iter().filter_map(number).collect();
    facts.extend(disk_names::serial(disk));
    facts.extend(TEXTS.iter().filter_map(text));
    Some(facts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::Fake;

    #[test]
    fn the_kernels_count_tells_attachments_apart() {
        let fake = Fake::new().disk("loop0", "7:0").attribute("loop0/diskseq", "7\n");
        let sys = fake.path("sys");
        let then = Attachment::now(&sys, "loop0", None).unwrap();
        assert_eq!(then.mark, Mark::Sequence(7));
        // Nothing else is looked at.
        let fake = fake.attribute("loop0/serial", "another\n");
        assert!(then.is_still(&sys));
        let _fake = fake.attribute("loop0/diskseq", "8\n");
        assert!(!then.is_still(&sys));
    }

    #[test]
    fn a_partition_that_moved_or_gave_its_number_away_is_another_one() {
        for (name, text) in [("start", "4096\n"), ("dev", "259:2\n")] {
            let fake = Fake::new().disk("nvme0n1", "259:0").disk("nvme0n1/nvme0n1p1", "259:1");
            let fake = fake.attribute("nvme0n1/diskseq", "7\n");
            let sys = fake.path("sys");
            let then = Attachment::now(&sys, "nvme0n1", Some("nvme0n1p1")).unwrap();
            assert_eq!(then.partition_facts, ["dev 259:1", "start 0"]);
            let fake = fake.disk("nvme0n1/nvme0n1p2", "259:3");
            assert!(then.is_still(&sys), "another one may come");
            let _fake = fake.attribute(&format!("nvme0n1/nvme0n1p1/{name}"), text);
            assert!(!then.is_still(&sys), "{name}");
            std::fs::remove_dir_all(sys.join("block/nvme0n1/nvme0n1p1")).unwrap();
            assert!(!then.is_still(&sys), "it has gone");
        }
    }

    #[test]
    fn without_a_count_another_disk_under_the_same_number_is_told_by_what_it_is() {
        for (name, text) in [
            ("sda/device/wwid", "naa.2\n"),
            ("sda/device/serial", "2\n"),
            ("sda/dm/uuid", "LVM-2\n"),
            ("sda/sda1/start", "2048\n"),
            ("sda/loop/dio", "0\n"),
            ("sda/loop/backing_file", "/srv/b.img\n"),
            ("sda/diskseq", "1\n"),
        ] {
            let fake = Fake::new().disk("sda", "8:0").disk("sda/sda1", "8:1");
            let fake = fake.attribute("sda/device/wwid", "naa.1\n").attribute("sda/device/serial", "1\n");
            let sys = fake.path("sys");
            let then = Attachment::now(&sys, "sda", Some("sda1")).unwrap();
            let fake = fake.attribute("sda/queue/scheduler", "none\n").attribute("sda/sda1/ro", "0\n");
            assert!(then.is_still(&sys), "what may change of a disk");
            let _fake = fake.attribute(name, text);
            assert!(!then.is_still(&sys), "{name}");
        }
    }

    #[test]
    fn without_a_count_and_names_the_entry_in_sysfs_tells_it() {
        let fake = Fake::new().disk("sda", "8:0");
        let sys = fake.path("sys");
        let then = Attachment::now(&sys, "sda", None).unwrap();
        // The old directory stays, so that its number is not used again.
        fs::rename(sys.join("block/sda"), sys.join("old")).unwrap();
        assert!(!then.is_still(&sys), "it has gone");
        let _fake = fake.disk("sda", "8:0");
        assert!(!then.is_still(&sys), "another one");
        assert_eq!(Attachment::now(&sys, "sdb", None), None);
    }
}
