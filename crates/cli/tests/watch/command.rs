//! `rdsk watch -- COMMAND`: the command's exit code and signals, and the counts of what its I/O became.

use crate::common::{SOON, command, error_and_hint, rdsk};
use rdsk_testkit::attempts::{ensure, first_right};
use rdsk_testkit::{BlkioThrottle, DirectIo, Limits, LoopDevice, Need, Turn, cli, requires, wait_until};
use serde_json::Value;
use std::io::Write as _;

fn device() -> Option<LoopDevice> {
    requires(&[Need::Root, Need::Loop, Need::Bpf, Need::Tool("dd")])
        .then(|| LoopDevice::builder().size(64 << 20).direct_io(DirectIo::Off).create().unwrap())
}

/// What a dd on the device became, as JSON and as text.
fn dd(device: &LoopDevice, operands: &str) -> (Value, String) {
    let operands = operands.replace("DEVICE", &device.path().display().to_string());
    let run = |form: &[&str]| {
        let mut line = vec!["watch", device.name()];
        line.extend(form);
        line.extend(["--", "dd", "status=none"]);
        line.extend(operands.split(' '));
        let run = rdsk(line);
        assert_eq!((run.status_code, run.stdout.as_str()), (Some(0), ""), "{}", run.stderr);
        run.stderr
    };
    let json = run(&["--json"]);
    (serde_json::from_str(&json).unwrap_or_else(|error| panic!("{error}: {json}")), run(&[]))
}

/// Bios of the command on the device: count and bytes, by direction and call.
fn bios(document: &Value, op: &str, call: &str) -> [u64; 2] {
    let bios = document["devices"][0]["block_layer"]["bios"].as_array().unwrap().iter();
    let is_one = |bio: &&Value| bio["op"] == op && bio["syscall"] == call && bio["task"] == "child";
    bios.filter(is_one).fold([0, 0], |[count, bytes], bio| {
        [count + bio["count"].as_u64().unwrap(), bytes + bio["bytes"].as_u64().unwrap()]
    })
}

fn of_size(document: &Value, op: &str, bytes: u64) -> u64 {
    let requests = document["devices"][0]["block_layer"]["requests"].as_array().unwrap().iter();
    let counts = requests.filter(|request| request["op"] == op && request["bytes"] == bytes);
    counts.map(|request| request["count"].as_u64().unwrap()).sum()
}

/// The first of ten runs in which the programs missed nothing and no other program held the device at dd's last close. That a bio was
/// passed over nothing says but its absence, so what is exact is part of the question.
fn whole(run: impl Fn() -> (Value, String), is_whole: impl Fn(&Value, &str) -> bool) -> (Value, String) {
    let _turn = Turn::Bpf.take();
    first_right(10, || {
        let (document, text) = run();
        let words = || format!("{document:#}\n{text}");
        ensure(is_whole(&document, &text), words)?;
        Ok((document, text))
    })
}

#[test]
fn small_writes_read_inside_write_and_leave_at_close() {
    let Some(device) = device() else { return };
    // Of pages that lie apart a request takes 512 KiB here, of others more.
    std::fs::write(format!("/sys/block/{}/queue/max_sectors_kb", device.name()), "512").unwrap();
    let sentence = "Each write of about 512 B fills a part of a page, so the kernel read the page first: 256 reads inside \
                    write(2).";
    let (document, _) = whole(
        || dd(&device, "if=/dev/zero of=DEVICE bs=512 count=2048 conv=notrunc"),
        |document, text| {
            let block = &document["devices"][0]["block_layer"];
            // Two runs of dd, one for the document and one for the text.
            let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
            block["lost"] == 0
                && of_size(document, "read", 4096) == 256
                && of_size(document, "write", 512 << 10) == 2
                && block["flushes"] == 0
                && bios(document, "read", "write") == [256, 1 << 20]
                && bios(document, "write", "close") == [256, 1 << 20]
                && words.contains(sentence)
                && words.contains("The data left at close(2), 2 requests of 512 KiB.")
        },
    );
    assert_eq!(document["calls"]["writes"], 2048);
}

#[test]
fn direct_writes_leave_inside_write_also_from_a_child_of_the_command() {
    let Some(device) = device() else { return };
    let path = device.path().display().to_string();
    let script =
        format!("dd if=/dev/zero of={path} bs=64k count=16 oflag=direct conv=notrunc status=none; true");
    let run = || {
        let run = rdsk(["watch", device.name(), "--json", "--", "sh", "-c", &script]);
        assert_eq!(run.status_code, Some(0), "{}", run.stderr);
        (serde_json::from_str(&run.stderr).unwrap(), run.stderr)
    };
    let (document, _) = whole(run, |document, _| {
        document["devices"][0]["block_layer"]["lost"] == 0
            && of_size(document, "write", 64 << 10) == 16
            && bios(document, "write", "write") == [16, 1 << 20]
    });
    assert_eq!(bios(&document, "read", "write"), [0, 0], "{document:#}");
}

/// The kernel counts them as writes, and no write of a size explains those.
#[test]
fn zeroes_that_the_device_writes_by_itself_have_a_count_of_their_own() {
    if !requires(&[Need::Tool("blkdiscard")]) {
        return;
    }
    let Some(device) = device() else { return };
    let path = device.path().display().to_string();
    let run = || {
        let run = rdsk(["watch", device.name(), "--json", "--", "blkdiscard", "-f", "-z", &path]);
        assert_eq!(run.status_code, Some(0), "{}", run.stderr);
        // The command may have written before.
        let last = run.stderr.lines().last().unwrap_or_default();
        (serde_json::from_str(last).unwrap(), run.stderr)
    };
    let zeroes = |document: &Value| document["devices"][0]["block_layer"]["write_zeroes"].as_u64();
    whole(run, |document, _| {
        document["devices"][0]["block_layer"]["lost"] == 0
            && zeroes(document).is_some_and(|count| count > 0)
            && document["devices"][0]["diskstat"]["write_ios"].as_u64() == zeroes(document)
    });
}

/// One read of each device, as long as its place says, so that none can stand for another.
#[test]
fn sixty_four_devices_are_counted_at_once() {
    const SCRIPT: &str = r#"
        count=0
        for path; do
            count=$((count + 1))
            dd if=$path of=/dev/null bs=$((4096 * count)) count=1 iflag=direct status=none || exit 1
        done"#;
    if !requires(&[Need::Root, Need::Loop, Need::Bpf]) {
        return;
    }
    let create = |_| LoopDevice::builder().size(1 << 20).create().unwrap();
    let devices: Vec<LoopDevice> = (0..64).map(create).collect();
    let paths: Vec<String> = devices.iter().map(|device| device.path().display().to_string()).collect();
    let run = || {
        let mut line = vec!["watch", "--json", "--evidence", "bpf"];
        line.extend(devices.iter().map(LoopDevice::name));
        line.extend(["--", "sh", "-c", SCRIPT, "sh"]);
        line.extend(paths.iter().map(String::as_str));
        let run = rdsk(line);
        assert_eq!(run.status_code, Some(0), "{}", run.stderr);
        (serde_json::from_str(&run.stderr).unwrap(), run.stderr)
    };
    let reads = |shown: &Value| -> u64 {
        let bios = shown["block_layer"]["bios"].as_array().unwrap().iter();
        let own = bios.filter(|bio| bio["op"] == "read" && bio["task"] == "child");
        own.map(|bio| bio["bytes"].as_u64().unwrap()).sum()
    };
    whole(run, |document, _| {
        let counted = document["devices"].as_array().unwrap();
        assert_eq!(counted.len(), 64);
        (1_u64..).zip(counted.iter().zip(&devices)).all(|(place, (seen, device))| {
            let bytes = reads(seen);
            assert!(seen["device"] == device.name() && bytes <= place * 4096, "{place}: {seen:#}");
            bytes == place * 4096 && seen["block_layer"]["lost"] == 0
        })
    });
}

/// Whether memory or a device took the writes is the same of a dd that is watched and of `rdsk dd`, by the same counters; and with --sync
/// the data is on disk when the answer says so.
#[test]
fn a_watched_dd_is_judged_as_rdsk_dd_is() {
    if !requires(&[Need::Root, Need::Loop, Need::Ext4, Need::Tool("dd")]) {
        return;
    }
    // No disk below that other programs use, too, whose I/O would be in one of the two verdicts.
    let device = LoopDevice::builder().size(256 << 20).in_memory().create().unwrap();
    device.mkfs_ext4("watched").unwrap();
    let mounted = device.mount().unwrap();
    let file = mounted.path().join("file");
    let document = tempfile::NamedTempFile::new().unwrap();
    for (operands, expected) in [
        ("bs=1M count=64", Some("page-cache")),
        ("bs=1M count=64 oflag=direct", None),
        ("bs=16k count=1000 conv=fdatasync", None),
    ] {
        let line = format!("if=/dev/zero of={} {operands}", file.display());
        // ext4 writes a file that was cut to nothing out as it is closed (auto_da_alloc).
        let afresh = || {
            if file.exists() {
                std::fs::remove_file(&file).unwrap();
            }
        };
        let by_us = || {
            afresh();
            let mut ours = command(["dd", "--json"]);
            ours.arg(document.path()).args(line.split(' '));
            let run = cli::run(ours, SOON);
            assert_eq!(run.status_code, Some(0), "{}", run.stderr);
            let record: Value = serde_json::from_slice(&std::fs::read(document.path()).unwrap()).unwrap();
            let cells = record["cells"].as_array().unwrap().iter();
            cells.clone().find(|cell| cell["id"] == "dd/write").unwrap()["verdict"]["code"].clone()
        };
        let watched = |words: &[&str]| {
            let words = [&["watch", "--sync"], words, &["--", "dd", "status=none"]].concat();
            afresh();
            let mut watch = command(words.into_iter().chain(line.split(' ')));
            // Where nothing is named, the directory that a command starts in counts, too.
            watch.current_dir(mounted.path());
            let run = cli::run(watch, SOON);
            assert_eq!((run.status_code, run.stdout.as_str()), (Some(0), ""), "{}", run.stderr);
            run.stderr
        };
        // Named by the line, or by the words of dd; what syncs, or is short of memory, may write the data out before dd is done.
        for place in [&[device.name()][..], &[mounted.path().to_str().unwrap()], &[]] {
            first_right(10, || {
                let told: Value = serde_json::from_str(&watched(&[&["--json"], place].concat())).unwrap();
                let verdicts = told["verdicts"].as_array().unwrap();
                let codes: Vec<&Value> = verdicts.iter().map(|verdict| &verdict["code"]).collect();
                assert!(
                    verdicts.iter().all(|verdict| verdict["op"] == "write"),
                    "/dev/zero is no storage: {told}"
                );
                assert_eq!(told["flush"]["error"], Value::Null, "{told}");
                let took_ns = told["flush"]["took_ns"].as_u64().unwrap();
                let ours = by_us();
                ensure(codes == [&ours], || format!("{operands}: {ours} by rdsk dd: {told:#}"))?;
                ensure(expected.is_none_or(|code| ours == code), || format!("{operands}: {ours}"))?;
                ensure(expected.is_none() || took_ns > 0, || format!("{operands}: {took_ns} ns"))
            });
        }
        let text = watched(&[device.name()]).split_whitespace().collect::<Vec<_>>().join(" ");
        let shown = format!("after the command's end (flushed: {}).", mounted.path().display());
        assert!(
            text.contains("On disk ") && text.contains(&shown) && text.contains("The writes: "),
            "{text}"
        );
    }
}

/// What another program writes to the disk of the directory that a command started in is not taken for the command's.
#[test]
fn writes_of_others_where_a_command_only_started_are_not_its_own() {
    if !requires(&[Need::Root, Need::Loop, Need::Ext4, Need::Tool("dd")]) {
        return;
    }
    let formatted = |label: &str| {
        let device = LoopDevice::builder().size(128 << 20).in_memory().create().unwrap();
        device.mkfs_ext4(label).unwrap();
        device
    };
    let (start_device, device) = (formatted("start"), formatted("written"));
    let (start, written) = (start_device.mount().unwrap(), device.mount().unwrap());
    let place = written.path().to_str().unwrap();
    let of = format!("of={place}/file");
    let line =
        ["watch", "--sync", "--json", "--", "dd", "if=/dev/zero", &of, "bs=1M", "count=64", "oflag=direct"];
    let mut watch = command(line.into_iter().chain(["status=none"]));
    watch.current_dir(start.path());
    let run = std::thread::scope(|scope| {
        let watching = scope.spawn(|| cli::run(watch, SOON));
        // Never as much as the command writes, however long it takes.
        for _ in 0..200 {
            if watching.is_finished() {
                break;
            }
            let mut busy = std::fs::File::create(start.path().join("busy")).unwrap();
            busy.write_all(&[1; 1 << 14]).unwrap();
            busy.sync_all().unwrap();
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        watching.join().unwrap()
    });
    assert_eq!(run.status_code, Some(0), "{}", run.stderr);
    let told: Value = serde_json::from_str(&run.stderr).unwrap();
    assert_eq!(told["flush"]["places"], serde_json::json!([place]), "{told:#}");
}

/// Found by a user of cgexec: it was the device.
#[test]
fn the_limit_of_a_group_that_the_command_enters_is_named() {
    if !requires(&[Need::Root, Need::Loop, Need::BlkioThrottle, Need::Tool("dd")]) {
        return;
    }
    const RATE: u64 = 4 << 20;
    let disk = LoopDevice::builder().size(16 << 20).create().unwrap();
    let limits = Limits { read_bps: Some(RATE), ..Limits::default() };
    let throttle = BlkioThrottle::new(disk.major_minor(), limits).unwrap();
    let enter = format!("echo $$ > {}/cgroup.procs", throttle.path().display());
    let read = format!("dd status=none if={} of=/dev/null bs=1M count=4 iflag=direct", disk.path().display());
    // The command itself, and a process that it starts.
    for line in [format!("{enter}; exec {read}"), format!("sh -c '{enter}; {read}'; true")] {
        let run = rdsk(["watch", disk.name(), "--", "sh", "-c", &line]);
        assert_eq!(run.status_code, Some(0), "{}", run.stderr);
        let words = run.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains("The reads: throttled: "), "{words}");
        assert!(words.contains("is the limit of 4.00 MiB/s that"), "{words}");
    }
}

#[test]
fn the_exit_code_and_the_output_are_the_commands() {
    for (script, code) in [("echo out; exit 0", 0), ("echo out; exit 7", 7), ("echo out; kill -9 $$", 137)] {
        let run = rdsk(["watch", "--evidence", "sysfs", "--", "sh", "-c", script]);
        assert_eq!((run.status_code, run.stdout.as_str()), (Some(code), "out\n"), "{script}: {}", run.stderr);
        assert!(run.stderr.starts_with("sh -c "), "{}", run.stderr);
    }
    // A parent that ignores the ends of its children hands that on.
    let mut line = std::process::Command::new("sh");
    line.args(["-c", r#"trap "" CHLD; exec "$0" "$@""#]).arg(command(["watch"]).get_program());
    line.args(["watch", "--evidence", "sysfs", "--", "sh", "-c", "exit 3"]);
    let run = cli::start(line).finish(SOON);
    assert_eq!(run.status_code, Some(3), "{}", run.stderr);
    let run = rdsk(["watch", "--evidence", "sysfs", "--", "/nonexistent/program"]);
    assert_eq!(run.status_code, Some(127));
    assert!(error_and_hint(&run).0.contains("cannot run /nonexistent/program"), "{}", run.stderr);
    let run = rdsk(["watch", "--evidence", "sysfs", "--", "/etc/passwd"]);
    assert_eq!(run.status_code, Some(126), "{}", run.stderr);
}

#[test]
fn signals_reach_the_command() {
    let directory = tempfile::tempdir().unwrap();
    let ready = directory.path().join("ready");
    for (signal, name, code) in
        [(cli::Signal::TERM, "TERM", 3), (cli::Signal::INT, "INT", 3), (cli::Signal::USR1, "USR1", 3)]
    {
        let script = format!("trap 'exit 3' {name}; : > \"$READY\"; while :; do sleep 0.01; done");
        let mut line = command(["watch", "--evidence", "sysfs", "--", "sh", "-c", &script]);
        line.env("READY", &ready);
        let running = cli::start(line);
        assert!(wait_until(SOON, || ready.exists()), "the shell sets its trap");
        cli::signal(running.pid(), signal).unwrap();
        let run = running.finish(SOON);
        assert_eq!(run.status_code, Some(code), "{name}: {}", run.stderr);
        assert!(run.stderr.contains("exit code 3"), "{}", run.stderr);
        std::fs::remove_file(&ready).unwrap();
    }
}
