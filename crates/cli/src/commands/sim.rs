//! `rdsk sim`: the simulated systems in a list, and the parameters of one as a file that runs again. It simulates nothing.

use crate::info::rows::{Rows, name_list};
use crate::json_file::{JSON, Sink};
use crate::output_args::JsonArgs;
use crate::usage::usage;
use crate::{completion, out, screen};
use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use rdsk_disk::{DeviceParams, Figure, GROUPS, Mark, NAMES, RaidLevel, System, SystemParams, Tally};
use rdsk_model::Problem;
use rdsk_targets::load_system;
use rdsk_units::{Bytes, Nanos, printable};
use serde_json::{Value, json};

const EXAMPLES: &str = "Examples:
  rdsk sim list
      every system in groups, a line each
  rdsk sim show wd2500
      the parameters of one, as the text of a file that runs as sim:./FILE.toml
  rdsk sim show ./mydisk.toml
      the parameters of your own, checked";

/// List the simulated systems, or show the parameters of one.
///
/// Any command that measures takes a simulated system as sim:NAME, its second LUN as sim:NAME/1, and a system of your own
/// as sim:./FILE.toml.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Sim {
    /// list, or show NAME [default: list]
    #[arg(value_name = "ACTION", add = ArgValueCompleter::new(completion::systems_and_acts))]
    words: Vec<String>,
    #[command(flatten)]
    json: JsonArgs,
}

/// Shows what was requested.
///
/// # Errors
/// When there is no such system, or the document cannot be written.
pub(crate) fn show(sim: &Sim) -> Result<(), Problem> {
    let answer = answer(&sim.words)?;
    match &sim.json.json {
        None => out::data(&answer.page),
        Some(place) => Sink::prepare(JSON, place, &[])?.write(&format!("{:#}", answer.document)),
    }
}

struct Answer {
    page: String,
    document: Value,
}

fn answer(words: &[String]) -> Result<Answer, Problem> {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        [] | ["list"] => list(),
        ["show", name] => shown(name),
        ["show"] => Err(usage("show needs a name", "rdsk sim list shows the names")),
        _ => Err(usage(
            format!("rdsk sim does not know \"{}\"", printable(&words.join(" "))),
            "write rdsk sim list, or rdsk sim show NAME",
        )),
    }
}

fn list() -> Result<Answer, Problem> {
    let mut page = String::new();
    let mut document = Vec::new();
    let widest = NAMES.iter().map(|name| name.len()).max().unwrap_or(0);
    for (group, names) in GROUPS {
        let mut listed = Vec::new();
        for name in *names {
            let system = load_system(name).map_err(|error| error.problem())?;
            let about = &system.params.about;
            listed.push((*name, about.clone()));
            document.push(
                json!({ "name": name, "group": group, "about": about, "report": system.params.report }),
            );
        }
        page.push_str(&format!("{group}\n{}", name_list(&listed, widest, 1, screen::page_columns())));
    }
    page.push_str("\nrdsk run sim:NAME measures one.\nrdsk sim show NAME: its parameters.\n");
    Ok(Answer { page, document: Value::Array(document) })
}

fn shown(name: &str) -> Result<Answer, Problem> {
    let name = name.strip_prefix(rdsk_targets::SIM_PREFIX).unwrap_or(name);
    let system = load_system(name).map_err(|error| error.problem())?;
    let text = match rdsk_disk::source(name) {
        Some(text) => text.to_owned(),
        None => std::fs::read_to_string(name).unwrap_or_default(),
    };
    let figures = rdsk_disk::figures(&system.name, &text).unwrap_or_default();
    let document = json!({
        "name": system.name,
        "figures": figures.iter().map(figure).collect::<Vec<Value>>(),
        "about": system.params.about,
        "report": system.params.report,
        "system": system.params,
        "toml": text,
    });
    Ok(Answer { page: file(&system, &text, &figures), document })
}

fn figure(figure: &Figure) -> Value {
    let cells = match &figure.mark {
        Some(Mark::Fitted { cells }) => Some(cells),
        _ => None,
    };
    let mark =
        figure.mark.as_ref().map(|mark| if cells.is_some() { "fitted".to_owned() } else { mark.to_string() });
    json!({
        "key": figure.key,
        "value": figure.value,
        "from": mark,
        "fitted_to": cells,
        "note": figure.note,
        "system": figure.system,
    })
}

/// The description as comments, then the parameters: a text that runs as `sim:./FILE.toml` and gives the same system.
fn file(system: &System, text: &str, figures: &[Figure]) -> String {
    let SystemParams { about, report, .. } = &system.params;
    let comments = description(system, figures);
    let comments = comments.lines().map(|line| format!("# {line}").trim_end().to_owned() + "\n");
    // A file of one's own may extend another system, and a text on its own must not need that one.
    let extends = figures.iter().any(|figure| figure.system != system.name);
    let whole = if extends { rdsk_disk::complete_text(about, report, figures) } else { text.to_owned() };
    let parameters = whole.lines().map(|line| format!("{}\n", harmless(line)));
    format!("{}\n{}", comments.collect::<String>(), parameters.collect::<String>())
}

/// The line without characters that could move the cursor; an escape in their place would not be TOML.
fn harmless(line: &str) -> String {
    let shown = |c: char| match c {
        '\t' => ' ',
        c if printable(c.encode_utf8(&mut [0; 4])).chars().eq([c]) => c,
        _ => '?',
    };
    line.chars().map(shown).collect()
}

fn description(system: &System, figures: &[Figure]) -> String {
    let SystemParams { about, report, host, controllers, luns } = &system.params;
    let mut rows = Rows::new(&format!("sim:{}\n", printable(&system.name)), 17, 80);
    rows.add("what", &printable(about));
    rows.add("from", &printable(report));
    rows.add(
        "host",
        &format!(
            "cache of {} in buffers of {}; buffered requests up to {}, direct ones up to {}, {} at once",
            Bytes(host.cache_bytes),
            Bytes(host.buffer_bytes),
            Bytes(host.merge_bytes),
            Bytes(host.direct_request_bytes),
            host.direct_in_flight
        ),
    );
    rows.add("queue", &format!("{} requests, {} of them at the device", host.queue_limit, host.active_limit));
    for (index, controller) in controllers.iter().enumerate() {
        let rate = |bytes_per_s: f64| format!("{:.0} MB/s", bytes_per_s / 1e6);
        rows.add(
            &format!("controller {index}"),
            &format!(
                "{} per command, {} to the host, {} from it",
                Nanos(controller.command_ns),
                rate(controller.read_bytes_per_s),
                rate(controller.write_bytes_per_s)
            ),
        );
    }
    for (index, lun) in luns.iter().enumerate() {
        let way =
            lun.controller.map_or_else(String::new, |controller| format!(", on controller {controller}"));
        rows.add(&format!("LUN {index}"), &format!("{}{way}", device(&lun.device)));
        if lun.faults.is_some() {
            rows.add("", "with faults, see below");
        }
    }
    rows.add("figures", &format!("{}: {}", figures.len(), Tally::of(figures)));
    format!("{}\nIts figures, and where each is from:\n", rows.text)
}

fn device(params: &DeviceParams) -> String {
    match params {
        DeviceParams::Disk(disk) => {
            let cache = disk.write_cache.as_ref().map_or_else(
                || "no write cache".to_owned(),
                |cache| format!("a write cache of {}", Bytes(cache.bytes).approx()),
            );
            format!(
                "a disk of {}, {} rpm, {} zones, average seek {}, {cache}",
                Bytes(disk.capacity_bytes).approx(),
                disk.rpm,
                disk.zones.len(),
                Nanos(disk.seek_average_ns)
            )
        }
        DeviceParams::Ram(ram) => {
            format!("memory of {}, {} commands at once", Bytes(ram.capacity_bytes).approx(), ram.servers)
        }
        DeviceParams::Ssd(ssd) => format!(
            "an SSD of {}, {} dies, pages of {}, an SLC cache of {}",
            Bytes(ssd.capacity_bytes).approx(),
            ssd.dies,
            Bytes(ssd.page_bytes),
            Bytes(ssd.slc_bytes).approx()
        ),
        DeviceParams::Array(array) => {
            let level = match array.level {
                RaidLevel::Raid0 => "RAID 0",
                RaidLevel::Raid1 => "RAID 1",
                RaidLevel::Raid5 => "RAID 5",
                RaidLevel::Raid6 => "RAID 6",
            };
            format!(
                "{level} of {} members, chunk {}; each member is {}",
                array.members,
                Bytes(array.chunk_bytes),
                device(&array.member)
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_system_is_in_one_group() {
        let mut grouped: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| *names).copied().collect();
        let mut built_in = NAMES.to_vec();
        grouped.sort_unstable();
        built_in.sort_unstable();
        assert_eq!(grouped, built_in);
    }

    #[test]
    fn nothing_that_moves_the_cursor_is_left() {
        assert_eq!(harmless("a\tb\u{1b}[2J\u{202e} µ"), "a b?[2J? µ");
    }
}
