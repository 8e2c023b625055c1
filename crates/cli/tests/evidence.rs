//! Where the evidence comes from: BPF with its privilege, sysfs without it or on request, what each leaves in the Record, and what is
//! said where BPF was asked for and cannot be had. That the counts of BPF are exact is in the tests of `observe`.

use crate::support::bpf::whole_and;
use crate::support::{LONG, cell, count, figure, findings, loop_device, rdsk, record_of, tool, word};
use rdsk_testkit::attempts::{ensure, first_right};
use rdsk_testkit::cli::{self, Ended};
use rdsk_testkit::sandbox::Errno;
use rdsk_testkit::{Behaviour, CpuQuota, FuseDisk, LoopDevice, Need, Sysno, Turn, requires, without};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

const ID: &str = "headline/read/random-qd1";

fn reads(device: &LoopDevice, more: &[&str]) -> Command {
    reads_of(&device.path().display().to_string(), more)
}

/// A device that takes this long for each read. Of some thousand I/Os beside other programs the kernel passes over one nearly always.
fn slow_device(latency_ns: u64) -> LoopDevice {
    let disk = FuseDisk::builder().device(Behaviour::single(latency_ns)).mount().expect("it can be mounted");
    disk.loop_device().expect("requires() found loop devices")
}

fn reads_of(path: &str, more: &[&str]) -> Command {
    let mut command = rdsk(&[&"run", &path, &"--only", &"headline", &"--rw", &"read", &"--budget", &"2s"]);
    command.args(more);
    command
}

#[test]
fn with_privilege_both_sources_count_the_same() {
    if !requires(&[Need::Root, Need::Loop, Need::Bpf, Need::Fuse]) {
        return;
    }
    let _turn = Turn::Bpf.take();
    let device = slow_device(1_000_000);
    // What must not wait and would have to is submitted again, by another thread; it is marked, and not counted twice.
    let is_exact = |record: &Value| {
        let sums = record["cells"].as_array().expect("a Record has cells").iter().map(|cell| {
            let evidence = &cell["evidence"];
            let [at_once, nowait] =
                [false, true].map(|is_marked| own_bytes(evidence, device.name(), is_marked));
            let asked = count(cell, "/result/bytes");
            assert!(at_once <= asked && nowait <= asked, "{asked}: {}", evidence["bios"]);
            let is_all = at_once == asked || at_once == 0 && nowait == asked;
            // Above 100 000 per second bios are followed while times are taken, and requests throughout.
            let is_part = count(evidence, "/bpf/timed_ns") < count(evidence, "/bpf/observed_ns");
            let is_followed = is_all || is_part && at_once + nowait > 0;
            let (requested, read) =
                (requested_bytes(evidence, device.name()), read_bytes(evidence, device.name()));
            let is_exact = is_followed && requested == read && asked <= read;
            is_exact.then_some(()).ok_or_else(|| {
                format!("{asked} bytes asked, {requested} requested, {read} read: {}", evidence["bios"])
            })
        });
        sums.collect()
    };
    let record = whole_and(|| record_of(reads(&device, &["--evidence", "bpf"])), is_exact);
    assert_eq!(word(&record, "/observer/source"), "bpf");
    // Some machines read this device more than 100 000 times a second; then what is not timed throughout is reported, and nothing else.
    let why = record["observer"]["why_not_higher"].as_str();
    assert!(
        why.is_none_or(|why| why.contains("counts requests throughout, and takes times")),
        "{}",
        record["observer"]
    );
    for cell in record["cells"].as_array().expect("a Record has cells") {
        let evidence = &cell["evidence"];
        assert_eq!(word(evidence, "/source"), "bpf");
        assert_eq!(count(evidence, "/bpf/observed_ns"), count(evidence, "/bpf/visits_ns"), "throughout");
        let check = &evidence["bpf"]["checks"][0];
        assert_eq!(word(check, "/device"), device.name());
        assert_eq!(count(check, "/bpf"), count(check, "/sysfs"), "{check}");
    }
}

/// By default a fast device is not followed in each visit. What BPF says is then of the visits that it names: as many requests as sysfs
/// counted in these, and as many bytes of bios as their reads asked for.
#[test]
fn what_some_visits_became_is_told_of_these_visits() {
    if !requires(&[Need::Root, Need::Loop, Need::Bpf, Need::Fuse]) {
        return;
    }
    let _turn = Turn::Bpf.take();
    // On a quiet machine more than 4000 reads per second, of which some visits are not followed.
    let device = slow_device(100_000);
    let path = device.path().display().to_string();
    let run = || {
        let arguments =
            ["stream", &path, "--rw", "read", "--pattern", "random", "--bs", "4k", "--budget", "1s"];
        record_of(rdsk(&arguments.each_ref().map(|argument| argument as &dyn AsRef<std::ffi::OsStr>)))
    };
    let is_exact = |record: &Value| {
        let cells = record["cells"].as_array().expect("a Record has cells").iter();
        let mut measured = cells.filter(|cell| cell["result"]["stop"] != "not_applicable");
        // Who gets no processor for a second visits nothing more.
        let is_visited = |cell: &Value| cell["result"]["ops"].as_u64().is_some_and(|ops| ops > 0);
        ensure(measured.all(is_visited), || "a cell had no visit".to_owned())?;
        let cell = cell(record, "stream/read/direct");
        let (evidence, visits) = (&cell["evidence"], cell["result"]["visits"].as_array().expect("a list"));
        let bpf = &evidence["bpf"];
        let followed: Vec<usize> = bpf["followed"].as_array().map_or_else(
            || (0..visits.len()).collect(),
            |some| {
                some.iter().map(|index| usize::try_from(index.as_u64().expect("an index")).unwrap()).collect()
            },
        );
        assert_eq!(followed.first(), Some(&0), "the first one always");
        assert!(
            followed.is_sorted() && followed.last().is_some_and(|&last| last < visits.len()),
            "{followed:?}"
        );
        let devices = evidence["device"].as_array().expect("a list");
        let of_sysfs =
            &devices.iter().find(|counted| counted["name"] == device.name()).expect("it counts")["visits"];
        let sum = |figure: &dyn Fn(usize) -> u64| followed.iter().map(|&index| figure(index)).sum::<u64>();
        let asked = sum(&|index| count(&visits[index], "/bytes"));
        let read = sum(&|index| count(&of_sysfs[index], "/diskstat/read_sectors") * 512);
        let told = (own_bytes(evidence, device.name(), false), requested_bytes(evidence, device.name()));
        let is_part = count(bpf, "/observed_ns") < count(bpf, "/visits_ns");
        let words =
            format!("{asked} asked, {read} read, {told:?} by BPF in {followed:?} of {}", visits.len());
        (is_part || told == (asked, read)).then_some(()).ok_or(words)
    };
    whole_and(run, is_exact);
}

/// Bytes of our own bios that read.
fn own_bytes(evidence: &Value, device: &str, is_marked: bool) -> u64 {
    let bios = evidence["bios"].as_array().expect("a list").iter();
    let is_one = |bio: &&Value| {
        let is_nowait = bio["nowait"].as_bool().unwrap_or(false);
        bio["task"] == "this" && bio["device"] == device && bio["op"] == "read" && is_nowait == is_marked
    };
    bios.filter(is_one).map(|bio| count(bio, "/bytes")).sum()
}

/// Bytes of all requests to read a device, by the programs.
fn requested_bytes(evidence: &Value, device: &str) -> u64 {
    let requests = evidence["requests"].as_array().expect("a list").iter();
    let reads = requests.filter(|request| request["device"] == device && request["op"] == "read");
    reads.map(|request| count(request, "/bytes") * count(request, "/count")).sum()
}

/// Bytes that a device read, by sysfs.
fn read_bytes(evidence: &Value, device: &str) -> u64 {
    let devices = evidence["device"].as_array().expect("a list").iter();
    devices.filter(|counted| counted["name"] == device).map(|one| count(one, "/read_bytes")).sum()
}

#[test]
fn on_request_and_without_privilege_sysfs_counts_and_says_why() {
    if !requires(&[Need::Root, Need::Loop, Need::Tool("setpriv")]) {
        return;
    }
    let device = loop_device();
    let asked = record_of(reads(&device, &["--evidence", "sysfs"]));
    assert_eq!(word(&asked, "/observer/source"), "sysfs");
    assert!(asked["cells"][0]["evidence"]["bpf"].is_null());

    let record = record_of(unprivileged(&reads(&device, &[])));
    assert_eq!(word(&record, "/observer/source"), "sysfs");
    let why = word(&record, "/observer/why_not_higher");
    assert!(
        why.contains("BPF") && (why.contains("setcap cap_bpf,cap_perfmon+ep") || why.contains("BTF")),
        "{why}"
    );
    assert!(count(cell(&record, ID), "/result/ops") > 0);
}

/// The command where neither the two capabilities nor those that contain them can be had.
fn unprivileged(with: &Command) -> Command {
    // CAP_PERFMON and CAP_BPF, which older versions of setpriv know by number only.
    let mut without = Command::new("setpriv");
    without.arg("--bounding-set=-cap_38,-cap_39,-sys_admin").arg(with.get_program()).args(with.get_args());
    without
}

/// The command as a user without any rights but, perhaps, some capabilities.
fn as_nobody(program: &Path, with: &Command, capabilities: &str) -> Command {
    let mut nobody = Command::new("setpriv");
    nobody.args(["--reuid=65534", "--regid=65534", "--clear-groups"]);
    nobody.args([format!("--inh-caps=-all{capabilities}"), format!("--ambient-caps=-all{capabilities}")]);
    nobody.arg(program).args(with.get_args()).current_dir("/");
    nobody
}

#[test]
fn two_capabilities_are_enough_for_a_user() {
    if !requires(&[Need::Root, Need::Loop, Need::Bpf, Need::Tool("setpriv"), Need::Tool("mknod")]) {
        return;
    }
    let _turn = Turn::Bpf.take();
    let device = loop_device();
    // Where every user may run it, and read the device.
    let place = tempfile::Builder::new().permissions(everybody()).tempdir().expect("a scratch directory");
    let program = place.path().join("rdsk");
    // A copy that this process made would be open for writing in what other tests start meanwhile.
    let mut copy = Command::new("cp");
    copy.arg(env!("CARGO_BIN_EXE_rdsk")).arg(&program);
    tool(copy);
    let node = place.path().join("disk");
    let (major, minor) = device.major_minor().split_once(':').expect("two numbers");
    let mut mknod = Command::new("mknod");
    mknod.args(["-m", "444"]).arg(&node).args(["b", major, minor]);
    tool(mknod);
    let with = reads_of(&node.display().to_string(), &["--evidence", "bpf"]);
    let both = record_of(as_nobody(&program, &with, ",+cap_38,+cap_39"));
    assert_eq!(word(&both, "/observer/source"), "bpf");
    assert!(count(&both, "/cells/0/evidence/bpf/checks/0/bpf") > 0);

    let none = cli::run(as_nobody(&program, &with, ""), LONG);
    assert_eq!(none.ended, Ended::Exited(3), "{}{}", none.stdout, none.stderr);
    assert!(none.stderr.contains("setcap cap_bpf,cap_perfmon+ep"), "{}", none.stderr);
}

fn everybody() -> std::fs::Permissions {
    std::os::unix::fs::PermissionsExt::from_mode(0o755)
}

#[test]
fn where_bpf_is_forbidden_the_reason_is_told() {
    if !requires(&[Need::Root, Need::Loop, Need::Bpf, Need::Tool("setpriv")]) {
        return;
    }
    let device = loop_device();
    for errno in [Errno::PERM, Errno::NOSYS] {
        let record = without(&[Sysno::bpf], errno, || record_of(reads(&device, &[])));
        assert_eq!(word(&record, "/observer/source"), "sysfs");
        let why = word(&record, "/observer/why_not_higher");
        assert!(why.contains("forbidden by a seccomp filter"), "{why}");
        assert!(count(cell(&record, ID), "/result/ops") > 0);
    }
    let demanded = reads(&device, &["--evidence", "bpf"]);
    for (run, reason) in [
        (
            without(&[Sysno::bpf], Errno::PERM, || cli::run(reads(&device, &["--evidence", "bpf"]), LONG)),
            "seccomp",
        ),
        (cli::run(unprivileged(&demanded), LONG), "CAP_BPF and CAP_PERFMON are missing"),
    ] {
        assert_eq!(run.ended, Ended::Exited(3), "{}{}", run.stdout, run.stderr);
        let record = cli::json(&run);
        assert_eq!((word(&record, "/status"), word(&record, "/error/code")), ("failed", "no-bpf"));
        assert!(word(&record, "/error/message").contains(reason), "{}", record["error"]);
        assert!(word(&record, "/error/hint").contains("--evidence auto"), "{}", record["error"]);
        assert!(run.stderr.contains(reason) && record["cells"] == serde_json::json!([]), "{}", run.stderr);
    }
}

/// What a CPU quota does is reported as that, and as no other program's fault.
#[test]
fn a_cpu_quota_that_is_used_up_is_named() {
    if !requires(&[Need::Root, Need::Loop, Need::CpuQuota]) {
        return;
    }
    let device = loop_device();
    // Every read copies 1 MiB from the page cache and takes processor time for it.
    let hungry = || {
        let mut command =
            rdsk(&[&"paths", &device.path(), &"--rw", &"read", &"--bs", &"1M", &"--bytes", &"64M"]);
        command.args(["--budget", "6s", "--evidence", "sysfs"]);
        command
    };
    let id = "paths/read/cached";
    let quota = CpuQuota::new(10).expect("requires() found quotas");
    // A tenth of a processor is used up where the machine gives a tenth.
    first_right(10, || {
        let record = record_of(quota.command(hungry()));
        let matching = findings(&record, "processor-quota");
        let is_told = matching.iter().any(|finding| {
            finding["cells"].as_array().is_some_and(|ids| ids.iter().any(|listed| listed == id))
        });
        let held_back = cell(&record, id);
        ensure(is_told, || format!("{matching:?} {held_back:#}"))?;
        let quota = &held_back["evidence"]["processor"]["quota"];
        let [periods, throttled] = ["/periods", "/throttled_periods"].map(|name| count(quota, name));
        assert!(0 < throttled && throttled <= periods, "{quota}");
        assert!(figure(quota, "/throttled_ns") > 0.0, "{quota}");
        let text = word(held_back, "/verdict/text");
        ensure(text.contains("the CPU quota of its control group"), || format!("{held_back:#}"))
    });
    // Of this process, whose group has none, no quota is reported.
    let free = record_of(hungry());
    if std::fs::read_to_string("/sys/fs/cgroup/cpu/cpu.cfs_quota_us").is_ok_and(|text| text.trim() == "-1") {
        assert!(cell(&free, id)["evidence"]["processor"]["quota"].is_null());
        assert!(findings(&free, "processor-quota").is_empty());
    }
}

/// The programs know a process by its number in the first PID namespace, and it knows itself by another one.
#[test]
fn in_a_pid_namespace_bpf_is_refused_and_sysfs_says_why() {
    if !requires(&[Need::Root, Need::Loop, Need::Bpf, Need::Tool("unshare")]) {
        return;
    }
    let device = loop_device();
    let inside = |with: &Command| {
        let mut unshare = Command::new("unshare");
        unshare.args(["--pid", "--fork", "--mount-proc"]).arg(with.get_program()).args(with.get_args());
        unshare
    };
    let reason = "in a PID namespace, as in containers";
    let record = record_of(inside(&reads(&device, &[])));
    assert_eq!(word(&record, "/observer/source"), "sysfs");
    assert!(word(&record, "/observer/why_not_higher").contains(reason), "{}", record["observer"]);
    assert!(count(cell(&record, ID), "/result/ops") > 0);

    let run = cli::run(inside(&reads(&device, &["--evidence", "bpf"])), LONG);
    assert_eq!(run.ended, Ended::Exited(3), "{}{}", run.stdout, run.stderr);
    let record = cli::json(&run);
    assert_eq!(word(&record, "/error/code"), "no-bpf");
    assert!(word(&record, "/error/message").contains(reason), "{}", record["error"]);
    assert!(word(&record, "/error/hint").contains("--pid=host"), "{}", record["error"]);
}

#[test]
fn a_target_without_a_device_is_no_place_for_bpf() {
    if !requires(&[Need::Root, Need::Bpf, Need::Fuse]) {
        return;
    }
    let disk = FuseDisk::builder().mount().expect("requires() found FUSE");
    let run = cli::run(reads_of(&disk.file().display().to_string(), &["--evidence", "bpf"]), LONG);
    assert_eq!(run.ended, Ended::Exited(3), "{}{}", run.stdout, run.stderr);
    assert!(run.stderr.contains("no block device is known under"), "{}", run.stderr);
}

#[test]
fn a_partition_and_its_disk_are_counted_each() {
    if !requires(&[Need::Root, Need::Loop, Need::Bpf, Need::Fuse, Need::Tool("partx")]) {
        return;
    }
    let _turn = Turn::Bpf.take();
    // Slow, so that few I/Os are counted: the kernel passes over an event in some thousand.
    let device = slow_device(1_000_000);
    let parts = device.partition_gpt().expect("the device takes partitions");
    let own = format!("{}p1", device.name());
    // The partition's disk, too. What is below the backing file serves other programs as well, and one of their requests may end
    // between the end of counting and the look into sysfs.
    let ours = |check: &&Value| check["device"].as_str().is_some_and(|name| own.starts_with(name));
    let checks_of = |record: &Value| -> Vec<Vec<Value>> {
        let cells = record["cells"].as_array().expect("a Record has cells").iter();
        cells.map(|cell| cell["evidence"]["bpf"]["checks"].as_array().expect("a list").clone()).collect()
    };
    let is_exact = |record: &Value| {
        let checks = checks_of(record);
        let agree = checks.iter().flatten().filter(ours).all(|check| check["bpf"] == check["sysfs"]);
        ensure(agree, || format!("{checks:?}"))?;
        let findings = record["findings"].as_array().expect("a list");
        ensure(findings.iter().all(|finding| finding["code"] != "evidence-differs"), || {
            format!("{findings:?}")
        })
    };
    let run = || record_of(reads_of(&parts[0].display().to_string(), &["--evidence", "bpf"]));
    let record = whole_and(run, is_exact);
    for checks in checks_of(&record) {
        assert_eq!(checks[0]["device"], own, "{checks:?}");
        assert_eq!(checks.iter().filter(ours).count(), 2, "{checks:?}");
    }
}
