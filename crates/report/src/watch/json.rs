//! One JSON object in a line for each device and interval, schema `rdsk.watch/1`, and one for a command, schema
//! `rdsk.watch-command/1` (docs/watch.md). It fills the documents of `rdsk_model::watch_document` and decides nothing.

use rdsk_analysis::columns::ColumnSet;
use rdsk_analysis::contradictions::contradictions;
use rdsk_model::watch_document::{WATCH_COMMAND_SCHEMA, WATCH_SCHEMA};
use rdsk_model::{
    CommandRun, DeviceInterval, GrowthState, WatchCommand, WatchInterval, WatchLine, WatchedDevice,
};

/// A line for each device. `at` is the end of the interval by the wall clock; empty for one from saved trees.
pub fn json_lines(interval: &WatchInterval, at: &str, columns: ColumnSet) -> String {
    let at = Some(at).filter(|at| !at.is_empty()).map(str::to_owned);
    let line = |device: DeviceInterval| {
        line(serde_json::to_string(&WatchLine { schema: WATCH_SCHEMA, at: at.clone(), device }))
    };
    devices(interval, columns).into_iter().map(line).collect()
}

/// What the I/O of a command became, in one line.
pub fn command_json(run: &CommandRun, columns: ColumnSet) -> String {
    line(serde_json::to_string(&WatchCommand {
        schema: WATCH_COMMAND_SCHEMA,
        command: run.words.clone(),
        end: run.end.clone(),
        elapsed_ns: run.elapsed_ns,
        calls: run.calls,
        devices: devices(&run.whole, columns),
        after: devices(&run.after, columns),
        unfollowed: run.unfollowed,
        dirty_left_bytes: run.dirty_left_bytes,
        why_no_bpf: run.why_no_bpf.clone(),
        verdicts: run.verdicts.clone(),
        flush: run.flush.clone(),
    }))
}

fn line(written: serde_json::Result<String>) -> String {
    let mut text = written.expect("its keys are texts, and it has no value that JSON cannot hold");
    text.push('\n');
    text
}

fn devices(interval: &WatchInterval, columns: ColumnSet) -> Vec<DeviceInterval> {
    interval.devices.iter().map(|device| document(device, interval.interval_ns, columns)).collect()
}

fn document(device: &WatchedDevice, interval_ns: u64, columns: ColumnSet) -> DeviceInterval {
    let growth = device.growth.as_ref().ok();
    let why = device.growth.as_ref().err();
    let figures = growth.map(|growth| columns.figures(growth, interval_ns, device.block.as_ref()));
    DeviceInterval {
        device: device.name.clone(),
        interval_ns,
        state: why.map_or(GrowthState::Counted, rdsk_model::Uncounted::state),
        why: why.map(ToString::to_string),
        diskstat: growth.copied(),
        columns: figures.map(|figures| columns.names().into_iter().zip(figures).collect()),
        notes: growth.map(|growth| contradictions(growth, interval_ns)),
        block_layer: device.block.clone(),
        why_no_block_layer: device.why_no_block.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rdsk_model::{BlockActivity, DiskStat, Uncounted};
    use serde_json::{Value, json};

    #[test]
    fn each_line_is_an_object_with_its_state() {
        let device = |growth, block| WatchedDevice { block, ..WatchedDevice::by_counters("sda", growth) };
        let interval = WatchInterval {
            interval_ns: 1_000_000_000,
            devices: vec![
                device(Ok(DiskStat { read_ios: 7, ..DiskStat::default() }), Some(BlockActivity::default())),
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
