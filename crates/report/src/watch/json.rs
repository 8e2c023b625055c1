//! One JSON object in a line for each device and interval, schema `rdsk.watch/1`, and one for a command, schema
//! `rdsk.watch-command/1` (docs/watch.md). Raw counts, and beside them the figures of the columns.

use rdsk_analysis::columns::ColumnSet;
use rdsk_analysis::contradictions::contradictions;
use rdsk_model::{BlockGrowth, CommandRun, WatchInterval, WatchedDevice};
use serde_json::{Map, Value, json};

/// A line for each device. `at` is the end of the interval by the wall clock; empty for one from saved trees.
pub fn json_lines(interval: &WatchInterval, at: &str, columns: ColumnSet) -> String {
    let line = |device: &WatchedDevice| {
        let mut object = object_of(device, interval.interval_ns, columns);
        object.insert("schema".into(), json!("rdsk.watch/1"));
        object.insert("at".into(), if at.is_empty() { Value::Null } else { json!(at) });
        format!("{}\n", Value::Object(object))
    };
    interval.devices.iter().map(line).collect()
}

/// What the I/O of a command became, in one line.
pub fn command_json(run: &CommandRun, columns: ColumnSet) -> String {
    let devices = |interval: &WatchInterval| -> Vec<Value> {
        let object = |device: &WatchedDevice| Value::Object(object_of(device, interval.interval_ns, columns));
        interval.devices.iter().map(object).collect()
    };
    let calls = run.calls.map(|calls| {
        json!({
            "reads": calls.reads,
            "read_bytes": calls.read_bytes,
            "writes": calls.writes,
            "written_bytes": calls.written_bytes,
        })
    });
    let document = json!({
        "schema": "rdsk.watch-command/1",
        "command": run.words,
        "end": run.end,
        "elapsed_ns": run.elapsed_ns,
        "calls": calls,
        "devices": devices(&run.whole),
        "after": devices(&run.after),
        "unfollowed": run.unfollowed,
        "dirty_left_bytes": run.dirty_left_bytes,
        "why_no_bpf": run.why_no_bpf,
    });
    format!("{document}\n")
}

fn object_of(device: &WatchedDevice, interval_ns: u64, columns: ColumnSet) -> Map<String, Value> {
    let mut object = Map::new();
    object.insert("device".into(), json!(device.name));
    object.insert("interval_ns".into(), json!(interval_ns));
    match &device.growth {
        Ok(growth) => {
            let figures = columns.figures(growth, interval_ns, device.block.as_ref());
            let named = columns.names().into_iter().zip(figures);
            let figures: Map<String, Value> =
                named.map(|(name, figure)| (name.to_owned(), json!(figure))).collect();
            object.insert("state".into(), json!("counted"));
            object.insert("diskstat".into(), json!(growth));
            object.insert("columns".into(), Value::Object(figures));
            object.insert("notes".into(), json!(contradictions(growth, interval_ns)));
        }
        Err(why) => {
            object.insert("state".into(), json!(why.word()));
            object.insert("why".into(), json!(why.to_string()));
        }
    }
    object.insert("block_layer".into(), device.block.as_ref().map_or(Value::Null, block_layer));
    object.insert("why_no_block_layer".into(), json!(device.why_no_block));
    object
}

fn block_layer(block: &BlockGrowth) -> Value {
    let latency = &block.latency;
    let request = |one: &rdsk_model::Request| json!({ "op": one.op, "bytes": one.bytes, "fua": one.fua, "count": one.count });
    let bio = |one: &rdsk_model::Bio| {
        json!({
            "op": one.op,
            "syscall": one.syscall,
            "task": one.task,
            "nowait": one.nowait,
            "read_ahead": one.read_ahead,
            "count": one.count,
            "bytes": one.bytes,
        })
    };
    json!({
        "interval_ns": block.interval_ns,
        "requests": block.requests.iter().map(request).collect::<Vec<_>>(),
        "bios": block.bios.iter().map(bio).collect::<Vec<_>>(),
        "device_latency_ns": {
            "count": latency.count(),
            "mean": latency.mean(),
            "p50": latency.quantile(0.5),
            "p99": latency.quantile(0.99),
            "max": latency.max(),
        },
        "depth_ns": block.depth_ns,
        "deepest": block.deepest,
        "splits": block.splits,
        "merges": block.merges,
        "flushes": block.flushes,
        "discards": block.discards,
        "write_zeroes": block.write_zeroes,
        "fua": block.fua,
        "lost": block.lost,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rdsk_model::{DiskStat, Uncounted};

    #[test]
    fn each_line_is_an_object_with_its_state() {
        let device = |growth, block| WatchedDevice { block, ..WatchedDevice::by_counters("sda", growth) };
        let interval = WatchInterval {
            interval_ns: 1_000_000_000,
            devices: vec![
                device(Ok(DiskStat { read_ios: 7, ..DiskStat::default() }), Some(BlockGrowth::default())),
                device(Err(Uncounted::Vanished), None),
            ],
        };
        let lines: Vec<Value> = json_lines(&interval, "now", ColumnSet::Solaris)
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        assert_eq!(lines[0]["schema"], "rdsk.watch/1");
        assert_eq!(lines[0]["columns"]["r/s"], 7.0);
        assert_eq!(lines[0]["diskstat"]["read_ios"], 7);
        assert!(lines[0]["columns"]["%w"].is_null(), "what was not measured is null");
        assert!(lines[0]["block_layer"]["device_latency_ns"]["p50"].is_null());
        assert_eq!((&lines[1]["state"], &lines[1]["why"]), (&json!("vanished"), &json!("vanished")));
        assert!(lines[1]["columns"].is_null() && lines[1]["block_layer"].is_null());
        let saved = json_lines(&interval, "", ColumnSet::Iostat);
        assert!(serde_json::from_str::<Value>(saved.lines().next().unwrap()).unwrap()["at"].is_null());
    }

    #[test]
    fn a_command_is_one_object() {
        let run = CommandRun {
            words: vec!["dd".into(), "if=\u{1b}[2J".into()],
            end: "exit code 0".into(),
            ..CommandRun::default()
        };
        let text = command_json(&run, ColumnSet::Iostat);
        assert_eq!(text.lines().count(), 1);
        assert!(!text.contains('\u{1b}'));
        let value: Value = serde_json::from_str(&text).unwrap();
        assert_eq!((&value["command"][0], &value["calls"]), (&json!("dd"), &Value::Null));
    }
}
