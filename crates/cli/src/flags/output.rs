//! Flags about output: what is shown, in which form, and where.

use super::value::{self, BadValue};
use super::{Flag, One, SWITCH, Switch, on};
use crate::cli_args::{ColorWhen, Detail, Form, JsonPlace, RunMode, Verbosity};
use crate::history::Place;
use crate::subcommand::{ALL, DRAWING, MEASURING, SHOWING, SUMMING_UP};
use rdsk_report::{Charset, Compactness};

const MAX_LABEL: usize = 200;
/// The help of `--history`, and what happens without the flag.
pub(crate) const HISTORY: (&str, &str) =
    ("The history", "$RDSK_HISTORY, else rdsk/history.db in $XDG_DATA_HOME or ~/.local/share");
const COLORS: &[&str] = &["auto", "always", "never"];

pub(super) static FLAGS: &[Flag] = &[
    Flag {
        name: "json",
        value: One("FILE", |args, text| json_place(text).map(|place| args.json = Some(place))),
        uses: &[on(
            ALL,
            "Write the result as JSON to FILE, or with - to standard output instead of the text",
            "",
        )],
        example: "--json result.json",
        ..SWITCH
    },
    Flag {
        name: "json-compact",
        value: Switch(|args| args.compactness = Compactness::Compact),
        uses: &[on(SHOWING, "Leave windows, series and histograms out of the JSON", "")],
        example: "--json result.json --json-compact",
        ..SWITCH
    },
    Flag {
        name: "markdown",
        value: One("FILE", |args, text| {
            json_place(text).map(|place| args.forms.push((Form::Markdown, place)))
        }),
        uses: &[on(SHOWING, "Write a summary for a ticket or a pull request to FILE, as Markdown", "")],
        example: "--markdown summary.md",
        ..SWITCH
    },
    Flag {
        name: "csv",
        value: One("FILE", |args, text| json_place(text).map(|place| args.forms.push((Form::Csv, place)))),
        uses: &[on(SHOWING, "Write a row for each cell to FILE, as CSV", "")],
        example: "--csv cells.csv",
        ..SWITCH
    },
    Flag {
        name: "openmetrics",
        value: One("FILE", |args, text| {
            json_place(text).map(|place| args.forms.push((Form::OpenMetrics, place)))
        }),
        uses: &[on(SHOWING, "Write the figures to FILE for node_exporter, as OpenMetrics", "")],
        example: "--openmetrics disk.prom",
        ..SWITCH
    },
    Flag {
        name: "report",
        value: One("FILE", |args, text| page_place(text).map(|place| args.forms.push((Form::Page, place)))),
        uses: &[on(MEASURING, "Write a page with the figures of the run to FILE, for a browser", "")],
        example: "--report result.html",
        ..SWITCH
    },
    Flag {
        name: "details",
        value: Switch(|args| args.detail = Detail::Full),
        uses: &[on(SUMMING_UP, "Print the screens of all questions instead of the short page", "")],
        example: "--details",
        ..SWITCH
    },
    Flag {
        name: "dry-run",
        value: Switch(|args| args.run_mode = RunMode::PlanOnly),
        uses: &[on(MEASURING, "Show what would be measured, without writing to any target", "")],
        example: "--dry-run",
        ..SWITCH
    },
    Flag {
        name: "label",
        value: One("TEXT", |args, text| label(text).map(|label| args.label = Some(label))),
        uses: &[on(MEASURING, "Name for the run, stored in the JSON", "")],
        example: "--label before-upgrade --json result.json",
        ..SWITCH
    },
    Flag {
        name: "resume",
        value: One("RUN", |args, text| value::text(text).map(|word| args.resume = Some(word.to_owned()))),
        uses: &[on(
            MEASURING,
            "Go on with a run that was cut short: an id, the word last, a label, or a file of --json",
            "",
        )],
        details: "Finished cells are taken over, the others measured, with the command line of that run unless targets or flags \
                  are given. The passes of rdsk zones are continued where they stopped.",
        example: "--resume last",
        ..SWITCH
    },
    Flag {
        name: "history",
        value: One("FILE", |args, text| {
            value::text(text).map(|path| args.history = Some(Place::File(path.into())))
        }),
        uses: &[on(SHOWING, HISTORY.0, HISTORY.1)],
        example: "--history /srv/rdsk.db",
        ..SWITCH
    },
    Flag {
        name: "no-history",
        value: Switch(|args| args.history = Some(Place::Off)),
        uses: &[on(MEASURING, "Do not keep the run in the history", "")],
        example: "--no-history",
        ..SWITCH
    },
    Flag {
        name: "quiet",
        short: Some('q'),
        value: Switch(|args| args.verbosity = Verbosity::Quiet),
        uses: &[on(MEASURING, "Show no progress and no warnings on standard error", "")],
        example: "--quiet",
        ..SWITCH
    },
    Flag {
        name: "color",
        value: One("WHEN", |args, text| {
            value::word(text, COLORS, &[ColorWhen::Auto, ColorWhen::Always, ColorWhen::Never])
                .map(|color| args.color = color)
        }),
        words: COLORS,
        uses: &[on(SHOWING, "Colour the text", "auto")],
        example: "--color never",
        ..SWITCH
    },
    Flag {
        name: "ascii",
        value: Switch(|args| args.charset = Charset::Ascii),
        uses: &[on(DRAWING, "Use only ASCII characters in the text", "")],
        example: "--ascii",
        ..SWITCH
    },
];

/// Where `--json` points; also used on command lines with a usage error elsewhere.
pub(crate) fn json_place(text: &str) -> Result<JsonPlace, BadValue> {
    let name = value::text(text)?;
    Ok(if name == "-" { JsonPlace::Stdout } else { JsonPlace::File(name.into()) })
}

/// Where a page with figures goes: never to standard output.
pub(crate) fn page_place(text: &str) -> Result<JsonPlace, BadValue> {
    match json_place(text)? {
        JsonPlace::Stdout => {
            Err(BadValue::new("a page is no text for a terminal", "name a file, such as result.html"))
        }
        file @ JsonPlace::File(_) => Ok(file),
    }
}

/// A name for a run.
pub(crate) fn label(text: &str) -> Result<String, BadValue> {
    let label = value::text(text)?;
    if label.chars().count() > MAX_LABEL {
        return Err(BadValue::new(
            format!("the label is longer than {MAX_LABEL} characters"),
            "write a shorter label",
        ));
    }
    Ok(label.to_owned())
}

#[cfg(test)]
mod tests {
    use super::super::testing::{parsed, refuses};
    use super::*;
    use rdsk_model::{FlagValue, OUTPUT_FLAGS, OutputFlag};

    /// What `rdsk compare` leaves out of a command line, and `--resume` takes from the new one.
    #[test]
    fn the_flags_of_output_are_known_as_such() {
        let known = FLAGS.iter().map(|flag| {
            let value = if matches!(flag.value, Switch(_)) { FlagValue::None } else { FlagValue::One };
            OutputFlag { name: flag.name, short: flag.short, value }
        });
        assert_eq!(known.collect::<Vec<_>>(), OUTPUT_FLAGS);
    }

    #[test]
    fn json() {
        assert_eq!(parsed(&["run", "--json", "-"]).unwrap().json, Some(JsonPlace::Stdout));
        assert_eq!(parsed(&["info", "--json=a b"]).unwrap().json, Some(JsonPlace::File("a b".into())));
        refuses("run", "--json", &["", "--label"]);
    }

    #[test]
    fn json_compact() {
        let compact = parsed(&["run", "--json", "-", "--json-compact"]).unwrap();
        assert_eq!(compact.compactness, Compactness::Compact);
        assert!(parsed(&["run", "--json-compact"]).unwrap_err().message.contains("--json"));
    }

    #[test]
    fn markdown() {
        let forms = parsed(&["run", "--markdown", "a.md", "--csv", "-"]).unwrap().forms;
        let file = JsonPlace::File("a.md".into());
        assert!(forms.contains(&(Form::Markdown, file)) && forms.contains(&(Form::Csv, JsonPlace::Stdout)));
        refuses("run", "--markdown", &["", "--label"]);
        assert!(parsed(&["run", "--markdown", "a", "--dry-run"]).unwrap_err().message.contains("--dry-run"));
    }

    #[test]
    fn csv() {
        let forms = parsed(&["show", "r.json", "--csv", "a.csv"]).unwrap().forms;
        assert_eq!(forms, [(Form::Csv, JsonPlace::File("a.csv".into()))]);
        assert!(parsed(&["run", "--csv", "a", "--json", "a"]).unwrap_err().message.contains("the same file"));
        assert!(parsed(&["info", "--csv", "a"]).is_err());
    }

    #[test]
    fn openmetrics() {
        let forms = parsed(&["zones", "--openmetrics", "a.prom"]).unwrap().forms;
        assert_eq!(forms, [(Form::OpenMetrics, JsonPlace::File("a.prom".into()))]);
        let both = parsed(&["run", "--openmetrics", "-", "--json", "-"]).unwrap_err();
        assert!(both.message.contains("standard output"), "{both}");
    }

    #[test]
    fn report() {
        let forms = parsed(&["zones", "--report", "z.html"]).unwrap().forms;
        assert_eq!(forms, [(Form::Page, JsonPlace::File("z.html".into()))]);
        assert!(parsed(&["show", "r.json", "--report", "z.html"]).is_err());
        assert!(parsed(&["run", "--dry-run", "--report", "z"]).unwrap_err().message.contains("--dry-run"));
        refuses("run", "--report", &["", "-"]);
    }

    #[test]
    fn details() {
        assert_eq!(parsed(&["run"]).unwrap().detail, Detail::Short);
        assert_eq!(parsed(&["run", "--details"]).unwrap().detail, Detail::Full);
        assert_eq!(parsed(&["show", "r.json", "--details"]).unwrap().detail, Detail::Full);
        assert!(parsed(&["paths", "--details"]).is_err());
    }

    #[test]
    fn dry_run() {
        assert_eq!(parsed(&["run"]).unwrap().run_mode, RunMode::Measure);
        assert_eq!(parsed(&["paths", "--dry-run"]).unwrap().run_mode, RunMode::PlanOnly);
    }

    #[test]
    fn label() {
        assert_eq!(parsed(&["run", "--label", "-5 °C"]).unwrap().label.as_deref(), Some("-5 °C"));
        refuses("run", "--label", &["", "   ", &"x".repeat(201)]);
    }

    #[test]
    fn resume() {
        assert_eq!(parsed(&["run", "--resume", "last"]).unwrap().resume.as_deref(), Some("last"));
        refuses("run", "--resume", &["", "--quiet"]);
    }

    #[test]
    fn history() {
        let history = |line: &[&str]| parsed(line).unwrap().history;
        assert_eq!(history(&["run", "--history", "h.db"]), Some(Place::File("h.db".into())));
        assert_eq!(history(&["run", "--no-history"]), Some(Place::Off));
        assert_eq!(history(&["show", "last"]), None);
        assert!(parsed(&["run", "--no-history", "--history", "h.db"]).is_err());
        refuses("run", "--history", &["", "--quiet"]);
    }

    #[test]
    fn quiet() {
        assert_eq!(parsed(&["run", "-q"]).unwrap().verbosity, Verbosity::Quiet);
    }

    #[test]
    fn color() {
        assert_eq!(parsed(&["run", "--color", "never"]).unwrap().color, ColorWhen::Never);
        refuses("run", "--color", &["", "sometimes", "-1", "0"]);
    }

    #[test]
    fn ascii() {
        assert_eq!(parsed(&["run", "--ascii"]).unwrap().charset, Charset::Ascii);
    }
}
