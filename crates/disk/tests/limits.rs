//! What a text of a system may not say: figures that cannot be, that never end, or that fill the memory. Each is refused
//! with its line, key and reason before anything is built; what is accepted can be run.

use proptest::prelude::*;
use rdsk_disk::{Call, Host, NAMES, Operation, Route, Stability, parse, source};
use rdsk_stats::rng::SplitMix64;

/// What is said of hpux-k460 with one table or key changed; the change stands in the lines given.
fn refused(change: &str) -> String {
    let text = format!("extends = \"hpux-k460\"\n{change}");
    parse("mine", &text).expect_err(change).to_string()
}

#[test]
fn numbers_that_are_none_are_refused_with_line_key_and_reason() {
    for (value, reason) in [
        ("nan", "is not a number"),
        ("inf", "is infinite"),
        ("-inf", "is negative"),
        ("0.0", "must be above zero"),
        ("1e-300", "is less than 1"),
        ("1e300", "is more than 1000000"),
    ] {
        assert_eq!(
            refused(&format!("[[luns]]\n[luns.device.disk]\nrpm = {value}\n")),
            format!("line 4: luns[0].device.disk.rpm: {reason}")
        );
    }
    for (value, reason) in
        [("nan", "is not a number"), ("inf", "is infinite"), ("1e13", "is more than a thousand seconds")]
    {
        assert_eq!(
            refused(&format!("[host.cost]\nbyte_ns = {value}\n")),
            format!("line 3: host.cost.byte_ns: {reason}")
        );
    }
    let malformed = refused("host.buffer_bytes = 1e4\n");
    assert!(malformed.starts_with("line 2: host.buffer_bytes: invalid type"), "{malformed}");
    let malformed = refused("host.buffer_bytes = 99999999999999999999\n");
    assert!(malformed.starts_with("line 2: "), "{malformed}");
}

#[test]
fn what_would_never_end_or_fill_the_memory_is_refused() {
    let array = |members: &str, chunk: &str, member: &str| {
        format!(
            "[[luns]]\n[luns.device]\n[luns.device.array]\nlevel = \"raid0\"\nmembers = {members}\n\
             chunk_bytes = {chunk}\ncommand_ns = 0\ninterface_bytes_per_s = 1e9\n{member}"
        )
    };
    let ram = "member = { ram = { capacity_bytes = 1048576, read_command_ns = 0, write_command_ns = 0, \
               read_bytes_per_s = 1e9, write_bytes_per_s = 1e9, servers = 1 } }\n";
    let whole = |text: String| {
        let host =
            source("hpux-k460").expect("built in").split("[[luns]]").next().expect("the host").to_owned();
        parse("mine", &format!("{host}{text}")).map_err(|error| error.to_string())
    };
    assert!(whole(array("4", "65536", ram)).is_ok());
    let mirror = array("1", "512", ram).replace("raid0", "raid1");
    for (text, key, reason) in [
        (
            array("1_000_000_000", "65536", ram),
            "luns[0].device",
            "1000000001 devices, with members of arrays, are more",
        ),
        (array("4", "1", ram), "luns[0].device.array.chunk_bytes", "is no multiple of 512 bytes"),
        (array("4", "0", ram), "luns[0].device.array.chunk_bytes", "must be above zero"),
        (array("0", "512", ram), "luns[0].device.array.members", "this level needs at least 1"),
        (mirror, "luns[0].device.array.members", "this level needs at least 2"),
        (array("4", "2097152", ram), "luns[0].device.array.chunk_bytes", "is larger than a member"),
    ] {
        let error = whole(text).expect_err(key);
        assert!(error.contains(&format!("{key}: {reason}")) && error.starts_with("line "), "{error}");
    }
    let zones = |cylinders: &str| format!("[[luns]]\n[[luns.device.disk.zones]]\ncylinders = {cylinders}\n");
    for (text, key, reason) in [
        (
            zones("1_000_000_000_000"),
            "luns[0].device.disk.zones",
            "reading the disk once would take more than",
        ),
        (zones("9_223_372_036_854_775_807"), "luns[0].device.disk.zones", "the zones hold"),
        (zones("0"), "luns[0].device.disk.zones[0].cylinders", "must be above zero"),
        (
            "[[luns]]\n[luns.device.disk]\ncapacity_bytes = 9_223_372_036_854_775_296\n".into(),
            "capacity_bytes",
            "is more than",
        ),
        (
            "[[luns]]\n[luns.device.disk]\nread_segments = 1_000_000_000\n".into(),
            "read_segments",
            "is more than 4096",
        ),
        ("[host]\ncache_bytes = 1_000_000_000_000_000\n".into(), "host.cache_bytes", "buffers"),
        (
            "[host]\ndirect_request_bytes = 1_000_000_000_000\n".into(),
            "host.direct_request_bytes",
            "is more than 67108864",
        ),
        ("[host]\nqueue_limit = 1_000_000_000_000\n".into(), "host.queue_limit", "is more than 1048576"),
        ("[host]\nclock_resolution_ns = 0\n".into(), "host.clock_resolution_ns", "must be above zero"),
        ("[[luns]]\n[luns.faults.stall]\nevery_ns = 5\nlasts_ns = 5\n".into(), "every_ns", "forever"),
        ("luns = [1]\n".into(), "luns[0]", "invalid type"),
    ] {
        let error = refused(&text);
        assert!(
            error.contains(key) && error.contains(reason) && error.starts_with("line "),
            "{text}: {error}"
        );
    }
    assert!(whole(String::new()).expect_err("no LUN").contains("luns"));
    assert!(whole("luns = []\n".into()).is_err());
}

#[test]
fn deep_and_endless_texts_are_refused() {
    let deep = format!("x = {}1{}", "[".repeat(100_000), "]".repeat(100_000));
    assert!(parse("mine", &deep).is_err());
    let nested = "member.array.".repeat(2000);
    assert!(
        parse("mine", &format!("extends = \"raid5\"\n[[luns]]\ndevice.array.{nested}members = 3\n")).is_err()
    );
    // A text can only extend a built-in system, whatever name it is loaded under, and none of those extends itself.
    assert!(parse("mine", "extends = \"mine\"").is_err());
    assert!(parse("linux-disk", "extends = \"linux-disk\"").is_ok());
    assert!(parse("mine", "extends = 3").is_err());
    assert!(parse("mine", "extends = [\"linux-disk\"]").is_err());
}

/// Lines of a text that give a figure.
fn figures(text: &str) -> Vec<usize> {
    let figure = |line: &str| {
        let value = line.split_once(" = ").map_or("", |(_, value)| value.trim());
        !line.starts_with('#') && value.starts_with(|first: char| first.is_ascii_digit())
    };
    text.lines().enumerate().filter(|(_, line)| figure(line)).map(|(index, _)| index).collect()
}

/// Makes calls of every kind and waits for all of them.
fn exercise(host: &mut Host) {
    let mut random = SplitMix64::new(9);
    let capacity_bytes = host.capacity_bytes(0);
    let unit = host.params().sector_bytes;
    let mut made = 0;
    for n in 0..24 {
        let operation = if n % 3 == 0 { Operation::Read } else { Operation::Write };
        let route = if n % 2 == 0 { Route::Direct } else { Route::Buffered };
        let stability = if n % 5 == 0 { Stability::Durable } else { Stability::Any };
        let bytes = (unit * (1 + random.below(256))).min(1 << 20).min(capacity_bytes);
        let offset_bytes = random.below(capacity_bytes - bytes + 1) / unit * unit;
        let call = Call { operation, route, stability, lun: 0, offset_bytes, bytes, stream: 0 };
        let now_ns = host.now_ns();
        // A call may be refused, for instance where the device is smaller than a sector.
        made += usize::from(host.submit(now_ns, call).is_ok());
    }
    let mut returned = 0;
    while host.next_ns().is_some() {
        returned += host.advance_one().len();
    }
    assert_eq!(returned, made, "no call is forgotten");
    for operation in [Operation::Sync, Operation::Close] {
        let call = Call {
            operation,
            route: Route::Buffered,
            stability: Stability::Any,
            lun: 0,
            offset_bytes: 0,
            bytes: 0,
            stream: 0,
        };
        host.run(call).expect("never refused");
    }
    assert_eq!(host.dirty_bytes(0), 0);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Any figure may be replaced by any number: the text is refused, or the system runs.
    #[test]
    fn whatever_is_accepted_runs(which in 0..NAMES.len(), line in 0_usize..1000, value in prop::sample::select(vec![
        "0", "1", "2", "511", "512", "513", "4096", "65_536", "1_000_000", "1_000_000_000", "67_108_864",
        "1_000_000_000_000", "1_000_000_000_000_000", "1_152_921_504_606_846_976", "9_223_372_036_854_775_807", "-1",
        "nan", "inf", "-inf", "1e-300", "1e-3", "0.5", "1e3", "1e6", "1e12", "1e300",
    ])) {
        let text = source(NAMES[which]).expect("built in");
        let lines = figures(text);
        prop_assume!(!lines.is_empty());
        let at = lines[line % lines.len()];
        let key = text.lines().nth(at).and_then(|line| line.split(" = ").next()).expect("a figure has a key");
        let changed: Vec<String> = text
            .lines()
            .enumerate()
            .map(|(index, line)| if index == at { format!("{key} = {value}") } else { line.to_owned() })
            .collect();
        match parse("mine", &changed.join("\n")) {
            Ok(system) => exercise(&mut Host::new(&system.params, 1)),
            Err(error) => {
                let said = error.to_string();
                prop_assert!(said.contains(':'), "{}: {}", changed[at], said);
            }
        }
    }
}
