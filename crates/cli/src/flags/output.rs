//! Flags that say what is shown and where.

use super::value::BadValue;
use super::{Flag, one, switch, value, valued};
use crate::cli_args::{CliArgs, ColorWhen, JsonPlace, RunMode, Verbosity};
use crate::subcommand::Subcommand;
use clap::{Arg, ArgMatches};
use rdsk_report::{Charset, Compactness};

/// Longest label, in characters.
const MAX_LABEL: usize = 200;

/// `--json`
pub(super) struct Json;

impl Flag for Json {
    fn name(&self) -> &'static str {
        "json"
    }
    fn subcommands(&self) -> &'static [Subcommand] {
        Subcommand::ALL
    }
    fn arg(&self) -> Arg {
        valued(
            self.name(),
            "FILE",
            "Write the result as JSON to FILE; - is standard output, without the page",
        )
        .value_parser(|text: &str| json_place(text))
    }
    fn read(&self, matches: &ArgMatches, args: &mut CliArgs) {
        args.json = one(matches, self.name());
    }
}

/// Where `--json` points; also used on command lines that are wrong in another place.
pub(crate) fn json_place(text: &str) -> Result<JsonPlace, BadValue> {
    let name = value::text(text)?;
    Ok(if name == "-" { JsonPlace::Stdout } else { JsonPlace::File(name.into()) })
}

/// `--json-compact`
pub(super) struct JsonCompact;

impl Flag for JsonCompact {
    fn name(&self) -> &'static str {
        "json-compact"
    }
    fn subcommands(&self) -> &'static [Subcommand] {
        Subcommand::MEASURING
    }
    fn arg(&self) -> Arg {
        switch(self.name(), "Leave windows, series and histograms out of the JSON")
    }
    fn read(&self, matches: &ArgMatches, args: &mut CliArgs) {
        if matches.get_flag(self.name()) {
            args.compactness = Compactness::Compact;
        }
    }
}

/// `--dry-run`
pub(super) struct DryRun;

impl Flag for DryRun {
    fn name(&self) -> &'static str {
        "dry-run"
    }
    fn subcommands(&self) -> &'static [Subcommand] {
        Subcommand::MEASURING
    }
    fn arg(&self) -> Arg {
        switch(self.name(), "Print what would be measured and stop; nothing is written, no file is made")
    }
    fn read(&self, matches: &ArgMatches, args: &mut CliArgs) {
        if matches.get_flag(self.name()) {
            args.run_mode = RunMode::PlanOnly;
        }
    }
}

/// `--label`
pub(super) struct Label;

impl Flag for Label {
    fn name(&self) -> &'static str {
        "label"
    }
    fn subcommands(&self) -> &'static [Subcommand] {
        Subcommand::MEASURING
    }
    fn arg(&self) -> Arg {
        valued(self.name(), "TEXT", "A name for the run, kept in the Record").value_parser(|text: &str| {
            let label = value::text(text)?;
            if label.chars().count() > MAX_LABEL {
                return Err(BadValue::new(
                    format!("the label is longer than {MAX_LABEL} characters"),
                    "write a shorter label",
                ));
            }
            Ok(label.to_owned())
        })
    }
    fn read(&self, matches: &ArgMatches, args: &mut CliArgs) {
        args.label = one(matches, self.name());
    }
}

/// `--quiet`
pub(super) struct Quiet;

impl Flag for Quiet {
    fn name(&self) -> &'static str {
        "quiet"
    }
    fn subcommands(&self) -> &'static [Subcommand] {
        Subcommand::MEASURING
    }
    fn arg(&self) -> Arg {
        switch(self.name(), "No progress line and no warnings on standard error").short('q')
    }
    fn read(&self, matches: &ArgMatches, args: &mut CliArgs) {
        if matches.get_flag(self.name()) {
            args.verbosity = Verbosity::Quiet;
        }
    }
}

/// `--color`
pub(super) struct Color;

impl Flag for Color {
    fn name(&self) -> &'static str {
        "color"
    }
    fn subcommands(&self) -> &'static [Subcommand] {
        Subcommand::MEASURING
    }
    fn arg(&self) -> Arg {
        valued(self.name(), "WHEN", "Colour the page: auto, always or never [default: auto]").value_parser(
            |text: &str| match value::text(text)? {
                "auto" => Ok(ColorWhen::Auto),
                "always" => Ok(ColorWhen::Always),
                "never" => Ok(ColorWhen::Never),
                other => Err(BadValue::new(
                    format!("\"{}\" is none of auto, always, never", rdsk_units::printable(other)),
                    "write auto or always or never",
                )),
            },
        )
    }
    fn read(&self, matches: &ArgMatches, args: &mut CliArgs) {
        if let Some(color) = one(matches, self.name()) {
            args.color = color;
        }
    }
}

/// `--ascii`
pub(super) struct Ascii;

impl Flag for Ascii {
    fn name(&self) -> &'static str {
        "ascii"
    }
    fn subcommands(&self) -> &'static [Subcommand] {
        Subcommand::DRAWING
    }
    fn arg(&self) -> Arg {
        switch(self.name(), "Draw the page in ASCII only")
    }
    fn read(&self, matches: &ArgMatches, args: &mut CliArgs) {
        if matches.get_flag(self.name()) {
            args.charset = Charset::Ascii;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{parsed, refuses};
    use super::*;

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
