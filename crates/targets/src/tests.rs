//! Fake machines for the tests of this room: trees of sysfs, procfs and `/dev` in a scratch directory. No device of the
//! real machine shows through.

use crate::machine::Machine;
use crate::roots::{Roots, ToolSource};
use crate::uses::InUse;
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

pub(crate) struct Fake {
    directory: tempfile::TempDir,
    mounts: String,
    swaps: String,
    answers: BTreeMap<String, String>,
}

impl Fake {
    pub(crate) fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        for name in ["sys/block", "proc/self/ns", "proc/1/fd", "dev/disk/by-id"] {
            fs::create_dir_all(directory.path().join(name)).unwrap();
        }
        let swaps = "Filename\tType\tSize\tUsed\tPriority\n".to_owned();
        let fake = Self { directory, mounts: String::new(), swaps, answers: BTreeMap::new() };
        fake.file("proc/swaps", &fake.swaps);
        fake.file("proc/self/mountinfo", "");
        std::os::unix::fs::symlink("mnt:[1]", fake.path("proc/self/ns/mnt")).unwrap();
        fake
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) fn file(&self, name: &str, content: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    /// A disk of 1 GiB; `name` may be `disk/partition`, and then it starts where the one before it ends.
    pub(crate) fn disk(self, name: &str, number: &str) -> Self {
        self.file(&format!("sys/block/{name}/dev"), &format!("{number}\n"));
        self.file(&format!("sys/block/{name}/size"), "2097152\n");
        self.file(&format!("sys/block/{name}/ro"), "0\n");
        if name.contains('/') {
            let digits = name.rfind(|c: char| !c.is_ascii_digit()).map_or(name, |at| &name[at + 1..]);
            let index: u64 = digits.parse().unwrap();
            self.file(&format!("sys/block/{name}/partition"), &format!("{index}\n"));
            self.file(&format!("sys/block/{name}/start"), &format!("{}\n", (index - 1) * 2_097_152));
        }
        self
    }

    /// Stacks the device `upper` on `lower`, both as paths below sys/block. A device-mapper device is linear over all
    /// devices below it, unless an answer says otherwise.
    pub(crate) fn stack(mut self, upper: &str, lower: &str) -> Self {
        if upper.starts_with("dm-") {
            let number = fs::read_to_string(self.path(&format!("sys/block/{lower}/dev"))).unwrap();
            let table = self.answers.entry(format!("table {upper}")).or_default();
            let start = table.lines().count() * 2_097_152;
            table.push_str(&format!("{start} 2097152 linear {} 0\n", number.trim()));
        }
        let last = |path: &str| path.rsplit('/').next().unwrap().to_owned();
        self.file(&format!("sys/block/{lower}/holders/{}", last(upper)), "");
        self.file(&format!("sys/block/{upper}/slaves/{}", last(lower)), "");
        self
    }

    pub(crate) fn attribute(self, path: &str, content: &str) -> Self {
        self.file(&format!("sys/block/{path}"), content);
        self
    }

    pub(crate) fn mount(mut self, number: &str, point: &str, kind: &str, source: &str) -> Self {
        self.mounts += &format!("30 1 {number} / {point} rw,relatime shared:1 - {kind} {source} rw\n");
        self.file("proc/self/mountinfo", &self.mounts);
        self
    }

    pub(crate) fn swap(mut self, path: &str) -> Self {
        self.swaps += &format!("{path} partition 1024 0 -2\n");
        self.file("proc/swaps", &self.swaps);
        self
    }

    /// A process in a mount namespace of its own.
    pub(crate) fn process(self, id: u32, mountinfo: &str) -> Self {
        self.file(&format!("proc/{id}/mountinfo"), mountinfo);
        fs::create_dir_all(self.path(&format!("proc/{id}/ns"))).unwrap();
        std::os::unix::fs::symlink(format!("mnt:[{id}]"), self.path(&format!("proc/{id}/ns/mnt"))).unwrap();
        self
    }

    pub(crate) fn by_id(self, name: &str, kernel_name: &str) -> Self {
        let link = self.path(&format!("dev/disk/by-id/{name}"));
        std::os::unix::fs::symlink(format!("../../{kernel_name}"), link).unwrap();
        self
    }

    pub(crate) fn answer(mut self, call: &str, text: &str) -> Self {
        self.answers.insert(call.to_owned(), text.to_owned());
        self
    }

    pub(crate) fn without_answer(mut self, call: &str) -> Self {
        self.answers.remove(call);
        self
    }

    pub(crate) fn roots(&self) -> Roots {
        Roots { tools: ToolSource::Answers(self.answers.clone()), ..Roots::under(self.directory.path()) }
    }

    /// Runs `look` on the fake machine.
    pub(crate) fn with<T>(&self, look: impl FnOnce(&Machine<'_>, &mut InUse) -> T) -> T {
        let roots = self.roots();
        let mut usage = InUse::default();
        let machine = Machine::read(&roots, &mut usage);
        look(&machine, &mut usage)
    }

    /// The uses of a device, as `kind: text`, the most serious first.
    pub(crate) fn uses(&self, name: &str) -> Vec<String> {
        self.with(|machine, _| {
            let mut usage = crate::uses::block_uses::find(machine, machine.tree.get(name).unwrap());
            usage.sort_uses();
            assert_eq!(usage.doubts, Vec::<String>::new());
            usage.uses.iter().map(|used| format!("{:?}: {}", used.kind, used.text)).collect()
        })
    }
}
