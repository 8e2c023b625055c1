//! Processes of fake machines, and what they do with devices and files.

use super::*;
use crate::tests::Fake;
use crate::uses::{Opener, Use};
use std::os::unix::fs::MetadataExt as _;

/// What messages say of each use.
fn told(usage: InUse) -> Vec<(UseKind, String)> {
    usage.uses.into_iter().map(|used| (used.kind, used.text)).collect()
}

fn doubts(fake: &Fake) -> Vec<String> {
    let mut usage = InUse::default();
    openers(&fake.roots().proc, &BTreeMap::new(), &BTreeSet::new(), &mut usage);
    assert_eq!(usage.uses, []);
    usage.doubts
}

#[test]
fn a_whole_procfs_raises_no_doubt() {
    let fake = Fake::new();
    assert_eq!(doubts(&fake), Vec::<String>::new());
}

#[test]
fn who_takes_another_name_stays() {
    let looks = std::cell::Cell::new(0);
    let usage = persistent(|| {
        looks.set(looks.get() + 1);
        let look = looks.get();
        let mut usage = InUse::default();
        for (id, name, does) in [
            ("4711", format!("name {look}"), String::new()),
            ("4711", format!("name {look}"), "has sdb open for writing".into()),
            ("4712", "same".into(), format!("has sd{look} open for writing")),
            (&look.to_string(), "same".into(), "has sdb open for writing".into()),
        ] {
            usage.add_process(UseKind::OpenElsewhere, id, &name, &does);
        }
        usage
    });
    let texts: Vec<&str> = usage.uses.iter().map(|used| used.text.as_str()).collect();
    assert_eq!(texts, ["process 4711 (name 1)", "process 4711 (name 1) has sdb open for writing"]);
}

#[test]
fn who_has_gone_at_the_next_look_is_no_user() {
    let looks = std::cell::Cell::new(0);
    let usage = persistent(|| {
        looks.set(looks.get() + 1);
        let mut usage = InUse::default();
        usage.add(UseKind::OpenElsewhere, "stays");
        if looks.get() < 3 {
            usage.add(UseKind::OpenElsewhere, "goes");
        }
        usage
    });
    assert_eq!(usage.uses.iter().map(|used| used.text.as_str()).collect::<Vec<_>>(), ["stays"]);
    assert_eq!(looks.get(), 1 + MAX_RECHECKS);
    assert_eq!(persistent(InUse::default).uses, []);
}

#[test]
fn who_only_reads_is_given_longer_to_go() {
    let looks = std::cell::Cell::new(0);
    let look = |writers: usize, readers: usize| {
        looks.set(0);
        persistent(|| {
            looks.set(looks.get() + 1);
            let mut usage = InUse::default();
            for (kind, last) in [(UseKind::OpenElsewhere, writers), (UseKind::ReadElsewhere, readers)] {
                if looks.get() <= last {
                    usage.add(kind, "one");
                }
            }
            usage
        })
    };
    assert_eq!(look(0, MAX_READER_RECHECKS).uses, [], "it has read the label by then");
    assert_eq!(look(0, usize::MAX).uses.len(), 1);
    assert_eq!(looks.get(), 1 + MAX_READER_RECHECKS);
    assert_eq!(look(usize::MAX, usize::MAX).uses.len(), 2);
    assert_eq!(looks.get(), 1 + MAX_RECHECKS, "a writer is refused at once");
    assert_eq!(look(3, MAX_READER_RECHECKS).uses, [], "the writer goes, and then the reader");
}

/// What a process of the fake machine with the null device open does with it, by the flags of its descriptor.
fn uses_of_null(flags: &str, parent: &str) -> Vec<(UseKind, String)> {
    uses_of_null_by("reader", flags, parent, &BTreeSet::new())
}

/// The same by the name of the process, whose program has that name, too, where the device may be a member of an array.
fn uses_of_null_by(
    name: &str,
    flags: &str,
    parent: &str,
    members: &BTreeSet<NodeNumber>,
) -> Vec<(UseKind, String)> {
    let fake = Fake::new();
    fake.file("proc/7/comm", &format!("{name}\n"));
    fake.file("proc/7/stat", &format!("7 ({name}) S 1 7 7 0\n"));
    std::os::unix::fs::symlink(format!("/sbin/{name}"), fake.path("proc/7/exe")).unwrap();
    fake.file("proc/1/comm", parent);
    fake.file("proc/7/fdinfo/3", &format!("pos:\t0\nflags:\t{flags}\n"));
    fs::create_dir(fake.path("proc/7/fd")).unwrap();
    std::os::unix::fs::symlink("/dev/null", fake.path("proc/7/fd/3")).unwrap();
    let null = fs::metadata("/dev/null").unwrap();
    let number = DeviceNumber::from_raw(null.rdev());
    let mut usage = InUse::default();
    let nodes = BTreeMap::from([(NodeNumber::Character(number), "sg0".to_owned())]);
    openers(&fake.path("proc"), &nodes, members, &mut usage);
    told(usage)
}

#[test]
fn who_keeps_the_metadata_of_an_array_does_not_use_its_members() {
    let null = DeviceNumber::from_raw(fs::metadata("/dev/null").unwrap().rdev());
    let members = BTreeSet::from([NodeNumber::Character(null)]);
    assert_eq!(uses_of_null_by("mdmon", "0100002", "init\n", &members), []);
    assert_eq!(uses_of_null_by("mdmon", "0100002", "init\n", &BTreeSet::new()).len(), 1, "another disk");
    assert_eq!(uses_of_null_by("qemu", "0100002", "init\n", &members).len(), 1, "another program");
}

#[test]
fn a_node_for_commands_counts_as_open_if_it_may_write() {
    assert_eq!(uses_of_null("0100000", "init\n"), []);
    let writes = (UseKind::OpenElsewhere, "process 7 (reader) has sg0 open for writing".into());
    assert_eq!(uses_of_null("0100002", "init\n"), [writes]);
    assert_eq!(uses_of_null("0100002", "(udev-worker)\n").len(), 1, "who writes is no onlooker");
}

/// What a process of the fake machine with a file open does with it, by the flags of its descriptor.
fn uses_of_file(flags: &str, parent: &str) -> Vec<(UseKind, String)> {
    let fake = Fake::new();
    fake.file("disk.img", "x");
    fake.file("proc/7/comm", "nbd-server\n");
    fake.file("proc/7/stat", "7 (nbd-server) S 1 7 7 0\n");
    fake.file("proc/1/comm", parent);
    let meta = fs::metadata(fake.path("disk.img")).unwrap();
    fake.file("proc/7/fdinfo/3", &format!("pos:\t0\nflags:\t{flags}\nino:\t{}\n", meta.ino()));
    fs::create_dir(fake.path("proc/7/fd")).unwrap();
    std::os::unix::fs::symlink(fake.path("disk.img"), fake.path("proc/7/fd/3")).unwrap();
    let mut usage = InUse::default();
    users_of_file(&fake.path("proc"), &fake.path("disk.img"), (meta.dev(), meta.ino()), &mut usage);
    let by_name = |used: &Use| used.opener == Some(Opener::Process("nbd-server".into()));
    assert!(usage.uses.iter().filter(|used| used.text.contains("(nbd-server)")).all(by_name));
    told(usage)
}

#[test]
fn who_reads_a_file_uses_it() {
    let reads = (UseKind::ReadElsewhere, "process 7 (nbd-server) has it open for reading".into());
    assert_eq!(uses_of_file("0100000", "init\n"), [reads]);
    let writes = (UseKind::OpenElsewhere, "process 7 (nbd-server)".into());
    assert_eq!(uses_of_file("0100002", "init\n"), [writes]);
    assert_eq!(uses_of_file("0100000", "(udev-worker)\n"), [], "it only looks on");
    assert_eq!(uses_of_file("0100001", "(udev-worker)\n").len(), 1, "who writes is no onlooker");
    assert_eq!(uses_of_file("012000000", "init\n"), [], "a name for it, as a claim has it");
}

#[test]
fn processes_that_cannot_be_seen_are_a_doubt() {
    let fake = Fake::new();
    fs::remove_dir_all(fake.path("proc/1")).unwrap();
    assert_eq!(doubts(&fake), ["procfs hides the processes of other users"]);
    let fake = Fake::new();
    std::os::unix::fs::symlink("pid:[4026532000]", fake.path("proc/self/ns/pid")).unwrap();
    assert_eq!(doubts(&fake), ["processes outside of this container cannot be seen"]);
}

/// Numbers that no process has, so that the kernel knows nothing of them.
#[test]
fn a_thread_that_goes_on_after_the_first_has_ended_is_looked_at() {
    let fake = Fake::new();
    let (first, second) = ("2147483646", "2147483647");
    let looked_at = |state: &str| {
        fake.file(&format!("proc/{first}/stat"), &format!("{first} (a) b) {state} 1 1 1\n"));
        fake.file(&format!("proc/{first}/task/{first}/comm"), "a\n");
        fake.file(&format!("proc/{first}/task/{second}/comm"), "a\n");
        let list = tables(&fake.path("proc"), first);
        assert!(list.iter().all(|process| process.id == first));
        list.into_iter().map(|process| process.directory).collect::<Vec<_>>()
    };
    assert_eq!(looked_at("S"), [fake.path("proc").join(first)]);
    assert_eq!(looked_at("Z"), [first, second].map(|id| fake.path("proc").join(id)));
}

#[test]
fn a_descriptor_writes_unless_its_flags_say_that_it_reads() {
    let fake = Fake::new();
    for (flags, answer) in [("0100000", false), ("0100001", true), ("0100002", true), ("x", true)] {
        fake.file("proc/7/fdinfo/3", &format!("pos:\t0\nflags:\t{flags}\nmnt_id:\t29\n"));
        assert_eq!(writes(&fake.path("proc/7"), "3"), answer, "{flags}");
    }
    assert!(writes(&fake.path("proc/7"), "4"), "one that is not there");
    for (flags, answer) in [("012000000", true), ("02100000", false), ("0100002", false), ("x", false)] {
        fake.file("proc/7/fdinfo/3", &format!("pos:\t0\nflags:\t{flags}\nmnt_id:\t29\n"));
        assert_eq!(only_names(&fake.path("proc/7"), "3"), answer, "{flags}");
    }
}

#[test]
fn only_shared_writable_mappings_of_files_count() {
    let fake = Fake::new();
    fake.file("library", "");
    let path = fake.path("library");
    let library = fs::metadata(&path).unwrap();
    let maps = format!(
        "7f00-7f01 rw-s 00000000 00:05 77 /dev/sdb\n\
         7f02-7f03 r--s 00000000 00:05 78 /dev/sdc\n\
         7f04-7f05 rw-p 00000000 08:02 {} {}\n\
         7f06-7f07 rw-s 00000000 00:00 0\n\
         nonsense\n",
        library.ino(),
        path.display()
    );
    fake.file("proc/7/maps", &maps);
    let process = Process { id: "7".into(), directory: fake.path("proc/7") };
    let numbers: Vec<u64> = mappings(&process).iter().map(|mapping| mapping.inode_number).collect();
    assert_eq!(numbers, [77]);
    let rights = |number| mapping_of(&process, (0, number));
    assert_eq!(
        (rights(77), rights(78)),
        (Some(Rights::Writes), None),
        "a number alone is no evidence of reads"
    );
    let of = |dev| mapping_of(&process, (dev, library.ino()));
    assert_eq!(of(library.dev()), Some(Rights::Reads), "a library that it runs");
    assert_eq!(of(library.dev() + 1), None, "another filesystem has the same number");
}
