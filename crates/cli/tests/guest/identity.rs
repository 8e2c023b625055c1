//! What devices without a serial number are called: `info` prints the identity, `--destroy` takes it and nothing else, and
//! the device may be named by it.

use std::fs::File;
use std::time::Duration;

use rdsk_testkit::guest::campaign::note;
use rdsk_testkit::guest::{Booted, Disk, Scenario, Tier};
use rdsk_testkit::{Need, requires};

use crate::guest;

const MIB: u64 = 1 << 20;

/// A device that is made, and the words that are its identities and that are none. Each is a word of the shell.
struct Row {
    name: &'static str,
    /// Makes `$device`, the path of the node by the kernel's name.
    set_up: &'static str,
    /// What the target is called in the command.
    target: &'static str,
    /// The identities that `info` must print and `--destroy` must take, the first of which is really written by.
    right: &'static [&'static str],
    /// Words that `--destroy` must not take.
    wrong: &'static [&'static str],
    tear_down: &'static str,
    /// When it is tried.
    tier: Tier,
}

const ROW: Row = Row {
    name: "",
    set_up: "",
    target: "$device",
    right: &[],
    wrong: &[],
    tear_down: "",
    tier: Tier::Extended,
};

const ROWS: &[Row] = &[
    Row {
        name: "the only namespace of an NVMe controller",
        set_up: "device=$NV",
        target: "NV1",
        right: &["NV1", "$(cat /sys/block/${device#/dev/}/wwid)"],
        wrong: &["NV", "${device#/dev/}"],
        tier: Tier::Core,
        ..ROW
    },
    Row {
        name: "one of two namespaces",
        set_up: "device=$(disk NVTWO 2); fact rival $(disk NVTWO 1)",
        right: &["$(cat /sys/block/${device#/dev/}/wwid)"],
        wrong: &["NVTWO", "$(cat /sys/block/nvme*n1/wwid | grep 4e5654574f)"],
        ..ROW
    },
    Row {
        name: "an md array",
        set_up: "raid md7 1 $A $B -- --name=arr0 --homehost=box; device=/dev/md7",
        target: "box:arr0",
        right: &["box:arr0", "$(mdadm --detail --export $device | sed -n s/MD_UUID=//p)"],
        wrong: &["md7", "$A_ID"],
        tear_down: "mdadm --stop /dev/md7; mdadm --zero-superblock $A $B",
        tier: Tier::Extended,
    },
    Row {
        name: "a logical volume on an md array",
        set_up: "raid md7 1 $A $B; pvcreate -q /dev/md7; vgcreate -q v-g /dev/md7
            lvcreate -q -an -Zn -L 16M -n l-v v-g; vgchange -q -ay v-g; device=/dev/dm-0",
        target: "v-g/l-v",
        right: &["v-g/l-v", "v--g-l--v", "$(cat /sys/block/dm-0/dm/uuid)"],
        wrong: &["l-v", "$A_ID"],
        tear_down: "vgchange -q -an v-g; vgremove -q -f v-g; pvremove -q /dev/md7
            mdadm --stop /dev/md7; mdadm --zero-superblock $A $B",
        ..ROW
    },
    Row {
        name: "an open LUKS container",
        set_up: "head -c 64 /dev/zero > key
            cryptsetup luksFormat -q --type luks1 --pbkdf-force-iterations 1000 $A key
            cryptsetup open --key-file key $A secret; device=/dev/dm-0",
        target: "secret",
        right: &["secret", "$(cat /sys/block/dm-0/dm/uuid)"],
        wrong: &["$A_ID"],
        tear_down: "cryptsetup close secret; wipefs -qa $A",
        tier: Tier::Extended,
    },
    Row {
        name: "a mapped device without a UUID",
        set_up: "dmsetup create plain --table \"0 32768 linear $A 0\"; device=/dev/dm-0",
        target: "plain",
        right: &["plain"],
        wrong: &["/dev/dm-0", "PLAIN"],
        tear_down: "dmsetup remove plain",
        tier: Tier::Extended,
    },
    Row {
        name: "a partition",
        set_up: "printf 'label: gpt\\nsize=16M\\nsize=16M\\n' | partitions $A; device=${A}2
            uuid=$(blkid -p -o value -s PART_ENTRY_UUID ${A}2)
            neighbour=$(blkid -p -o value -s PART_ENTRY_UUID ${A}1)",
        target: "PARTUUID=$uuid",
        right: &["$uuid", "$A_ID"],
        wrong: &["$neighbour", "${A#/dev/}2"],
        tear_down: "fresh $A",
        tier: Tier::Extended,
    },
    Row {
        name: "a LUN with one path left",
        set_up: "device=/dev/sda
            echo 1 > /sys/block/sdb/device/delete
            wait_for 5 test ! -e /sys/block/sdb",
        target: "$(cat /sys/block/sda/device/wwid)",
        right: &["$(cat /sys/block/sda/device/wwid)", "2000"],
        wrong: &["sda", "200"],
        ..ROW
    },
];

/// Two paths of one LUN: neither is written by what both are called, and neither is found by it.
const SHARED: &str = "hash /dev/sda > /dev/null
fact before $(hash /dev/sda)
wwid=$(cat /sys/block/sda/device/wwid)
[ \"$wwid\" = \"$(cat /sys/block/sdb/device/wwid)\" ]
for word in 2000 $wwid; do
    call refused-$word rdsk run /dev/sdb --only headline --rw write --budget 500ms --quiet --destroy $word --json -
    call named-$word rdsk info $word
done
call info rdsk info /dev/sdb --json -
fact after $(hash /dev/sda)";

impl Row {
    /// The row as a script: `info`, then the wrong words, then the right ones.
    fn script(&self) -> String {
        let run = format!(
            "rdsk run \"{}\" --only headline --rw write --budget 500ms --evidence sysfs --quiet",
            self.target
        );
        let mut script = format!(
            "fresh $A $B\n{}\ncall info rdsk info \"{}\" --json -\nfact device $device\n",
            self.set_up, self.target
        );
        script.push_str("fact before $(hash $device)\n");
        for (index, word) in self.wrong.iter().enumerate() {
            script.push_str(&format!("call wrong-{index} {run} --destroy \"{word}\" --json -\n"));
        }
        // Without writing: the plan is judged as the run is.
        for (index, word) in self.right.iter().enumerate() {
            script.push_str(&format!("fact right-{index} \"{word}\"\n"));
            script.push_str(&format!("call plan-{index} {run} --destroy \"{word}\" --dry-run\n"));
        }
        script.push_str("fact after $(hash $device)\n");
        script.push_str(&format!("call written {run} --destroy \"{}\" --json -\n", self.right[0]));
        script.push_str(&format!("fact end $(hash $device)\n{}\n", self.tear_down));
        script
    }

    fn try_it(&self, guest: &mut Booted) {
        let scenario = Scenario::new(self.name, self.script()).limit(Duration::from_secs(600));
        let outcome = guest.run(&scenario).expect_done();
        let name = self.name;
        let info = outcome.call("info");
        assert_eq!(info.code, 0, "{name}: {}", info.said());
        let told = &info.json()["targets"][0];
        assert_eq!(told["target"]["path"].as_str(), Some(outcome.fact("device").as_str()), "{name}");
        let texts: Vec<&str> = told["identities"]
            .as_array()
            .expect("a list")
            .iter()
            .filter_map(|finding| finding["text"].as_str())
            .collect();
        for index in 0..self.right.len() {
            let word = outcome.fact(&format!("right-{index}"));
            assert!(texts.contains(&word.as_str()), "{name}: info does not print {word:?}: {texts:?}");
            let plan = outcome.call(&format!("plan-{index}"));
            assert_eq!(plan.code, 0, "{name}: {word:?}: {}", plan.said());
        }
        for (index, word) in self.wrong.iter().enumerate() {
            let call = outcome.call(&format!("wrong-{index}"));
            assert_eq!(call.code, 3, "{name}: {word}: {}", call.said());
            assert_eq!(call.json()["error"]["code"], "wrong-identity", "{name}: {word}: {}", call.said());
        }
        assert_eq!(outcome.fact("before"), outcome.fact("after"), "{name}: a refusal changed the content");
        let written = outcome.call("written");
        assert_eq!(written.code, 0, "{name}: {}", written.said());
        assert_ne!(outcome.fact("after"), outcome.fact("end"), "{name}: nothing was written");
        note("identity", name, "wrong words refused; right one written", outcome.took());
        assert_eq!(outcome.unclean(), "", "{name}");
    }
}

/// Tries the rows of the core set.
pub(crate) fn try_core(guest: &mut Booted) {
    ROWS.iter().filter(|row| row.tier == Tier::Core).for_each(|row| row.try_it(guest));
}

#[test]
fn what_info_prints_is_what_destroy_takes() {
    if !Tier::Extended.is_wanted() || !requires(&[Need::Root, Need::Guest]) {
        return;
    }
    let scratch = tempfile::tempdir().unwrap();
    let mut two = Vec::new();
    two.extend(["-device".to_owned(), "nvme,id=two,serial=NVTWO".to_owned()]);
    for namespace in 1..=2 {
        let image = scratch.path().join(format!("{namespace}.img"));
        File::create(&image).unwrap().set_len(16 * MIB).unwrap();
        two.extend([
            "-drive".to_owned(),
            format!("file={},if=none,id=ns{namespace},format=raw", image.display()),
        ]);
        two.extend(["-device".to_owned(), format!("nvme-ns,bus=two,drive=ns{namespace},nsid={namespace}")]);
    }
    let two: Vec<&str> = two.iter().map(String::as_str).collect();
    let mut guest = guest()
        .modules(&["raid1", "dm_mod", "dm_crypt", "sd_mod"])
        .modules(&["xts", "aesni_intel", "aes_generic", "sha256_generic", "algif_skcipher", "algif_hash"])
        .module_with("scsi_debug", "dev_size_mb=16 add_host=2 vpd_use_hostno=0")
        .programs(&["mdadm", "lvm", "dmsetup", "cryptsetup", "blkid"])
        .programs(&["pvcreate", "vgcreate", "lvcreate", "vgchange", "vgremove", "pvremove"])
        .disk(Disk::virtio("A", 48 * MIB))
        .disk(Disk::virtio("B", 48 * MIB))
        .disk(Disk::nvme("NV", 16 * MIB).serial("NV1"))
        .qemu(&two)
        .boot();
    let shared = guest.run(&Scenario::new("two paths of a LUN", SHARED)).expect_done();
    for call in shared.calls().iter().filter(|call| call.name.starts_with("refused")) {
        assert_eq!(call.code, 3, "{}", call.said());
        let message = call.json()["error"]["message"].as_str().unwrap().to_owned();
        assert!(message.contains("sda has it too"), "{message}");
    }
    for call in shared.calls().iter().filter(|call| call.name.starts_with("named")) {
        assert_eq!(call.code, 3, "{}", call.said());
        assert!(call.stderr.contains("several devices: /dev/sda, /dev/sdb"), "{}", call.said());
    }
    assert_eq!(shared.call("info").json()["targets"][0]["identities"], serde_json::json!([]));
    assert_eq!(shared.fact("before"), shared.fact("after"));
    for row in ROWS {
        row.try_it(&mut guest);
    }
}
