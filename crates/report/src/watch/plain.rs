//! A table for each interval, as iostat prints it: a line of names, and a line for each device. No line is cut, since a
//! program may read it.

use crate::figures::MISSING;
use crate::style::{Charset, ascii};
use rdsk_analysis::block_io::Account;
use rdsk_analysis::columns::{BLOCK, ColumnSet, block_figures};
use rdsk_analysis::contradictions::contradictions;
use rdsk_model::{BlockActivity, Op, Uncounted, WatchInterval, WatchedDevice};
use rdsk_units::{Bytes, Nanos, printable};
use unicode_width::UnicodeWidthStr as _;

/// Exact sizes that are named in a line; the number of the others stands behind them.
const MAX_SIZES: usize = 4;
/// Columns of a figure beyond its name and the blank that stands before each.
const GAP: usize = 1;
/// A figure such as `12345.67` fits without moving the next one.
const MIN_FIGURE: usize = 7;

/// Which columns are shown, and with which characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    /// The columns of the kernel's counters.
    pub columns: ColumnSet,
    /// Characters.
    pub charset: Charset,
}

/// One interval as lines. `at` is its end by the wall clock, as text; empty for one that was read from saved trees.
pub fn plain_lines(interval: &WatchInterval, at: &str, look: Look) -> String {
    let with_block = interval.devices.iter().any(|device| device.block.is_some());
    let mut names: Vec<&str> = look.columns.names();
    if with_block {
        names.extend(BLOCK);
    }
    let shown: Vec<String> = interval.devices.iter().map(|device| printable(&device.name)).collect();
    let first = shown.iter().map(|name| name.width()).max().unwrap_or(0).max("Device".len());
    let mut text =
        format!("{at}{}interval {}\n", if at.is_empty() { "" } else { "  " }, Nanos(interval.interval_ns));
    text.push_str(&format!("{:first$}", "Device"));
    for name in &names {
        text.push_str(&format!(" {name:>width$}", width = width_of(name)));
    }
    text.push_str(if with_block { "  sizes\n" } else { "\n" });
    for (name, device) in shown.iter().zip(&interval.devices) {
        text.push_str(name);
        text.extend(std::iter::repeat_n(' ', first - name.width()));
        text.push_str(&row(device, interval.interval_ns, &names, look.columns));
        text.push('\n');
    }
    text.push('\n');
    if look.charset == Charset::Ascii { text.lines().map(|line| ascii(line) + "\n").collect() } else { text }
}

/// Width of a column beside the blank that stands before each, however wide a figure is.
fn width_of(name: &str) -> usize {
    name.len().max(MIN_FIGURE) + GAP
}

fn row(device: &WatchedDevice, interval_ns: u64, names: &[&str], columns: ColumnSet) -> String {
    let (mut figures, note) = match (&device.growth, &device.block) {
        (Ok(growth), block) => {
            let notes = contradictions(growth, interval_ns).into_iter().map(|text| format!("  note: {text}"));
            (columns.figures(growth, interval_ns, block.as_ref()), notes.collect())
        }
        // The programs saw what the kernel's counters do not hold.
        (Err(why @ Uncounted::Unknown(_)), Some(_)) => {
            (vec![None; columns.names().len()], format!("  {}", printable(&why.to_string())))
        }
        (Err(why), _) => return format!("  {}", printable(&why.to_string())),
    };
    match &device.block {
        Some(block) => figures.extend(block_figures(block)),
        None => figures.resize(names.len(), None),
    }
    let mut text = String::new();
    for (name, figure) in names.iter().zip(figures) {
        text.push_str(&format!(" {:>width$}", figure_text(name, figure), width = width_of(name)));
    }
    if let Some(block) = &device.block {
        text.push_str(&format!("  {}", sizes_text(block, MAX_SIZES)));
        if block.lost > 0 {
            text.push_str(&format!("  missed {}", block.lost));
        }
    }
    text + &note
}

/// Two decimals, as iostat prints them; times inside the device with three, and numbers whole.
fn figure_text(name: &str, figure: Option<f64>) -> String {
    let Some(figure) = figure else { return MISSING.to_owned() };
    match name {
        "d2c_p50" | "d2c_p99" | "d2c_max" => format!("{figure:.3}"),
        "qd_max" | "splits" | "merges" | "flushes" => format!("{figure:.0}"),
        _ => format!("{figure:.2}"),
    }
}

/// Requests by exact size, those that moved most of each direction: `r 256×4KiB w 2×512KiB`. A `+3` stands for three more sizes.
pub fn sizes_text(block: &BlockActivity, most: usize) -> String {
    let mut words = Vec::new();
    for (op, letter) in [(Op::Read, "r"), (Op::Write, "w")] {
        let sizes = Account::from(block).request_sizes(op);
        if sizes.is_empty() {
            continue;
        }
        words.push(letter.to_owned());
        for (bytes, count) in sizes.iter().take(most) {
            words.push(format!("{count}×{}", Bytes(*bytes).to_string().replace(' ', "")));
        }
        if sizes.len() > most {
            words.push(format!("+{}", sizes.len() - most));
        }
    }
    if words.is_empty() { MISSING.to_owned() } else { words.join(" ") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::watch::json_lines;
    use rdsk_model::{DiskStat, Request, Uncounted};
    use rdsk_stats::Histogram;

    fn device(name: &str, growth: Result<DiskStat, Uncounted>) -> WatchedDevice {
        WatchedDevice::by_counters(name, growth)
    }

    fn reads() -> DiskStat {
        DiskStat {
            read_ios: 100,
            read_sectors: 800,
            read_ticks_ms: 50,
            io_ticks_ms: 400,
            time_in_queue_ms: 50,
            ..DiskStat::default()
        }
    }

    fn counted() -> BlockActivity {
        let mut latency = Histogram::new();
        (0..100).for_each(|_| latency.record(500_000));
        let request = |bytes, count| Request {
            target: 0,
            device: "sda".into(),
            op: Op::Read,
            bytes,
            fua: false,
            count,
        };
        BlockActivity {
            interval_ns: 1_000_000_000,
            requests: vec![request(4096, 90), request(8192, 9), request(512, 1)],
            latency,
            depth_ns: 50_000_000,
            deepest: Some(1),
            ..BlockActivity::default()
        }
    }

    fn lines(devices: Vec<WatchedDevice>, columns: ColumnSet, charset: Charset) -> String {
        let interval = WatchInterval { interval_ns: 1_000_000_000, devices };
        plain_lines(&interval, "2026-11-22T10:00:00Z", Look { columns, charset })
    }

    #[test]
    fn an_interval_is_a_table_with_a_line_for_each_device() {
        let devices = || vec![device("sda", Ok(reads())), device("sdb", Err(Uncounted::Vanished))];
        insta::assert_snapshot!("plain-old", lines(devices(), ColumnSet::Old, Charset::Unicode));
        insta::assert_snapshot!("plain-iostat", lines(devices(), ColumnSet::Iostat, Charset::Unicode));
        let mut with_block = devices();
        with_block[0].block = Some(counted());
        insta::assert_snapshot!("plain-solaris", lines(with_block, ColumnSet::Solaris, Charset::Ascii));
    }

    #[test]
    fn every_line_of_a_table_has_as_many_words() {
        for columns in [ColumnSet::Iostat, ColumnSet::Old, ColumnSet::Solaris] {
            let text = lines(vec![device("sda", Ok(reads()))], columns, Charset::Unicode);
            let words: Vec<usize> = text
                .lines()
                .skip(1)
                .filter(|line| !line.is_empty())
                .map(|line| line.split_whitespace().count())
                .collect();
            assert_eq!(words, [columns.names().len() + 1; 2], "{text}");
        }
    }

    #[test]
    fn what_programs_saw_is_shown_where_the_counters_tell_nothing() {
        let unknown = || Err(Uncounted::Unknown("queue/iostats of sda is 0".into()));
        let mut seen = device("sda", unknown());
        seen.block = Some(counted());
        let text = lines(vec![seen, device("sdb", unknown())], ColumnSet::Iostat, Charset::Unicode);
        let rows: Vec<&str> = text.lines().skip(2).collect();
        let mut figures = rows[0].split_whitespace().skip(1).take(ColumnSet::Iostat.names().len());
        assert!(figures.all(|figure| figure == "–"), "{text}");
        assert!(rows[0].ends_with("r 90×4KiB 9×8KiB 1×512B  queue/iostats of sda is 0"), "{text}");
        assert_eq!(rows[1].split_whitespace().nth(1), Some("queue/iostats"), "{text}");
    }

    #[test]
    fn counters_that_contradict_each_other_carry_a_note() {
        let busy = DiskStat { io_ticks_ms: 1400, ..reads() };
        for columns in [ColumnSet::Iostat, ColumnSet::Old, ColumnSet::Solaris] {
            let text =
                lines(vec![device("sda", Ok(busy)), device("sdb", Ok(reads()))], columns, Charset::Unicode);
            let rows: Vec<&str> = text.lines().skip(2).collect();
            assert!(rows[0].contains("  note: %util is no share: the kernel counts 1.40 s"), "{text}");
            assert!(!rows[1].contains("note"), "{text}");
        }
        let interval = WatchInterval { interval_ns: 1_000_000_000, devices: vec![device("sda", Ok(busy))] };
        let json: serde_json::Value =
            serde_json::from_str(&json_lines(&interval, "now", ColumnSet::Iostat)).unwrap();
        assert!(
            json["notes"][0].as_str().is_some_and(|note| note.starts_with("%util is no share")),
            "{json}"
        );
    }

    #[test]
    fn what_the_programs_missed_is_said_in_its_row() {
        let row = |lost| {
            let mut seen = device("sda", Ok(reads()));
            seen.block = Some(BlockActivity { lost, ..counted() });
            lines(vec![seen], ColumnSet::Iostat, Charset::Unicode).lines().nth(2).unwrap().to_owned()
        };
        assert!(row(3).ends_with("r 90×4KiB 9×8KiB 1×512B  missed 3"), "{}", row(3));
        assert!(!row(0).contains("missed"), "{}", row(0));
    }

    #[test]
    fn a_figure_wider_than_its_column_stays_a_word_of_its_own() {
        let fast = DiskStat {
            read_ios: 300_000,
            read_sectors: 40_000_000,
            write_ios: 300_000,
            write_sectors: 40_000_000,
            ..DiskStat::default()
        };
        for columns in [ColumnSet::Iostat, ColumnSet::Old, ColumnSet::Solaris] {
            let text = lines(vec![device("sda", Ok(fast))], columns, Charset::Unicode);
            let row = text.lines().nth(2).unwrap();
            assert_eq!(row.split_whitespace().count(), columns.names().len() + 1, "{text}");
        }
    }

    #[test]
    fn no_name_reaches_the_screen_as_it_is() {
        let evil = "sd\u{1b}[2J\n\u{202e}a";
        let text = lines(vec![device(evil, Ok(reads()))], ColumnSet::Old, Charset::Unicode);
        assert!(text.contains("sd\\x1b[2J\\x0a\\u{202e}a") && !text.contains('\u{1b}'), "{text}");
        let interval = WatchInterval { interval_ns: 1, devices: vec![device(evil, Ok(reads()))] };
        let json = json_lines(&interval, "now", ColumnSet::Old);
        assert_eq!(json.lines().count(), 1);
        assert!(!json.contains('\u{1b}'), "{json}");
    }

    #[test]
    fn sizes_are_cut_to_the_most_frequent() {
        assert_eq!(sizes_text(&counted(), 2), "r 90×4KiB 9×8KiB +1");
        assert_eq!(sizes_text(&BlockActivity::default(), 2), "–");
    }
}
