//! One account: the same direct writes leave the same counts in the cell of a run, in what `rdsk watch` shows a dd, and in the Record of
//! `rdsk dd`, whosesoever they are.

use crate::common;
use crate::support::{LONG, cell, count, identity, loop_device, rdsk, record_of};
use rdsk_testkit::attempts::{ensure, first_right, same};
use rdsk_testkit::{LoopDevice, Need, Turn, cli, requires};
use serde_json::Value;
use std::collections::BTreeMap;

const WRITES: u64 = 1000;
const BLOCK: u64 = 4096;

/// What was counted of the device, without what flushes it in the end: requests to write by size and durability, bios of those whose
/// writes they are by direction and marks, and the rest by name.
#[derive(Debug, Default, PartialEq, Eq)]
struct Account {
    requests: BTreeMap<(u64, bool), u64>,
    bios: BTreeMap<(String, bool, bool), [u64; 2]>,
    others: BTreeMap<&'static str, u64>,
}

impl Account {
    /// Of these lists of requests and bios, over so many passes.
    fn new(requests: &Value, bios: &Value, device: &str, passes: u64) -> Self {
        let mut account = Self::default();
        let is_mark = |value: &Value, mark: &str| value[mark].as_bool().unwrap_or(false);
        let is_its = |value: &&Value| value["device"].as_str().is_none_or(|name| name == device);
        let each = |count: u64| {
            assert_eq!(count % passes, 0, "{count} in {passes} passes");
            count / passes
        };
        for made in requests.as_array().expect("a list").iter().filter(is_its) {
            if made["op"] == "write" && count(made, "/bytes") > 0 {
                let kind = (count(made, "/bytes"), is_mark(made, "fua"));
                *account.requests.entry(kind).or_default() += each(count(made, "/count"));
            }
        }
        for bio in bios.as_array().expect("a list").iter().filter(is_its) {
            let is_own = bio["task"] == "this" || bio["task"] == "child";
            if is_own && count(bio, "/bytes") > 0 {
                let op = bio["op"].as_str().expect("a word").to_owned();
                let sum =
                    account.bios.entry((op, is_mark(bio, "nowait"), is_mark(bio, "read_ahead"))).or_default();
                *sum = [sum[0] + each(count(bio, "/count")), sum[1] + each(count(bio, "/bytes"))];
            }
        }
        account
    }

    fn with(mut self, name: &'static str, count: u64) -> Self {
        self.others.insert(name, count);
        self
    }

    /// Of a cell; what the programs missed makes it another attempt's.
    fn of_cell(cell: &Value, device: &str) -> Result<Self, String> {
        let evidence = &cell["evidence"];
        let devices = evidence["device"].as_array().expect("a list");
        let its = devices.iter().find(|counted| counted["name"] == device).expect("the device is counted");
        let passes = count(cell, "/result/ops") / WRITES;
        ensure(evidence["bpf"]["lost"] == 0 && passes > 0, || format!("{}", evidence["bpf"]))?;
        let of_all: u64 =
            Self::new(&evidence["requests"], &evidence["bios"], device, 1).requests.values().sum();
        ensure(of_all == passes * WRITES, || format!("{of_all} requests in {passes} passes"))?;
        Ok(Self::new(&evidence["requests"], &evidence["bios"], device, passes)
            .with("splits", count(its, "/splits"))
            .with("merges", count(its, "/write_merges"))
            .with("bytes", count(its, "/write_bytes") / passes)
            .with("deepest", count(its, "/in_flight_max")))
    }

    /// Of a watched command.
    fn of_command(document: &Value, device: &str) -> Result<Self, String> {
        let its = &document["devices"][0];
        let block = &its["block_layer"];
        ensure(block["lost"] == 0, || format!("{block}"))?;
        Ok(Self::new(&block["requests"], &block["bios"], device, 1)
            .with("splits", count(block, "/splits"))
            .with("merges", count(its, "/diskstat/write_merges"))
            .with("bytes", count(its, "/diskstat/write_sectors") * 512)
            .with("deepest", count(block, "/deepest")))
    }
}

fn of_a_run(device: &LoopDevice) -> Result<Account, String> {
    let bytes = (WRITES * BLOCK).to_string();
    let mut command =
        rdsk(&[&"paths", &device.path(), &"--rw", &"write", &"--bs", &"4k", &"--bytes", &bytes]);
    command.args(["--engine", "sync", "--evidence", "bpf", "--budget", "60s"]);
    command.args(["--destroy", &identity(device)]);
    let record = record_of(command);
    Account::of_cell(cell(&record, "paths/write/direct"), device.name())
}

fn of_a_watched_dd(device: &LoopDevice, operands: &str) -> Result<Account, String> {
    let mut line = vec!["watch", device.name(), "--json", "--", "dd", "status=none"];
    line.extend(operands.split(' '));
    let run = common::rdsk(line);
    assert_eq!(run.status_code, Some(0), "{}", run.stderr);
    let document =
        serde_json::from_str(&run.stderr).unwrap_or_else(|error| panic!("{error}: {}", run.stderr));
    Account::of_command(&document, device.name())
}

fn of_our_dd(device: &LoopDevice, operands: &str) -> Result<Account, String> {
    let place = tempfile::tempdir().expect("a scratch directory");
    let document = place.path().join("record.json");
    let mut command = common::command(["dd", "--json"]);
    command.arg(&document).args(["--destroy", &identity(device)]).args(operands.split(' '));
    let run = cli::run(command, LONG);
    assert_eq!(run.status_code, Some(0), "{}", run.stderr);
    let record = std::fs::read_to_string(document).expect("dd wrote its Record");
    let record: Value = serde_json::from_str(&record).expect("a Record");
    Account::of_cell(cell(&record, "dd/write"), device.name())
}

/// The program that looks for a disk by its identity may read it meanwhile, and the kernel passes over an event now and then: neither changes
/// what is compared, or another attempt is made.
#[test]
fn a_thousand_direct_writes_are_the_same_whoever_makes_them() {
    if !requires(&[Need::Root, Need::Loop, Need::Bpf, Need::Tool("dd")]) {
        return;
    }
    let _turn = Turn::Bpf.take();
    let device = loop_device();
    let operands =
        format!("if=/dev/zero of={} bs=4k count=1000 oflag=direct conv=notrunc", device.path().display());
    let expected = Account {
        requests: [((BLOCK, false), WRITES)].into(),
        bios: [(("write".to_owned(), false, false), [WRITES, WRITES * BLOCK])].into(),
        others: [("splits", 0), ("merges", 0), ("bytes", WRITES * BLOCK), ("deepest", 1)].into(),
    };
    first_right(10, || same("a cell", &of_a_run(&device)?, &expected));
    first_right(10, || same("a watched dd", &of_a_watched_dd(&device, &operands)?, &expected));
    first_right(10, || same("rdsk dd", &of_our_dd(&device, &operands)?, &expected));
}
