//! Loads the systems that can be simulated: a built-in one by its name, a user's own from its text. It opens no file; the
//! caller reads the text.

use crate::builtin::source;
use crate::error::ParamError;
use crate::params::SystemParams;

/// The table of a LUN whose only key is the kind of the device.
pub(crate) const DEVICE: &str = "device";

/// Longest chain of systems that extend each other.
const MAX_BASES: usize = 4;

/// A system with its name.
#[derive(Clone, Debug, PartialEq)]
pub struct System {
    /// The name under which it was loaded.
    pub name: String,
    /// Its parameters, checked.
    pub params: SystemParams,
}

/// Loads a built-in system.
///
/// # Errors
/// [`ParamError::UnknownName`].
pub fn load(name: &str) -> Result<System, ParamError> {
    let text = source(name).ok_or_else(|| ParamError::UnknownName { name: name.to_owned() })?;
    parse(name, text)
}

/// Parses and checks a system's text. A text that starts with `extends = "NAME"` needs only what differs from the
/// built-in system of that name; lists are merged element by element.
///
/// # Errors
/// [`ParamError`], with line, key and reason as far as they are known.
pub fn parse(name: &str, text: &str) -> Result<System, ParamError> {
    let table: toml::Table = toml::from_str(text).map_err(|error| malformed(text, &error))?;
    let merged = with_bases(table, text, 0)?;
    let params: SystemParams = serde_path_to_error::deserialize(merged).map_err(|error| {
        let key = error.path().to_string();
        let line = line_of_key(text, &key);
        ParamError::Malformed { line, key: Some(key), reason: error.inner().message().to_owned() }
    })?;
    params.check().map_err(|wrong| ParamError::Impossible {
        line: line_of_key(text, &wrong.key),
        key: wrong.key,
        reason: wrong.reason,
    })?;
    Ok(System { name: name.to_owned(), params })
}

/// The table, completed from the systems that it extends.
fn with_bases(mut table: toml::Table, text: &str, bases: usize) -> Result<toml::Table, ParamError> {
    let Some(extends) = table.remove("extends") else { return Ok(table) };
    let wrong = |reason: &str| ParamError::Impossible {
        line: line_of_key(text, "extends"),
        key: "extends".to_owned(),
        reason: reason.to_owned(),
    };
    let name = extends.as_str().ok_or_else(|| wrong("must be the name of a built-in system"))?;
    let base = source(name).ok_or_else(|| wrong("no built-in system has this name"))?;
    if bases == MAX_BASES {
        return Err(wrong("too many systems extend each other"));
    }
    let base_table = toml::from_str(base).map_err(|error| malformed(base, &error))?;
    let mut merged = with_bases(base_table, base, bases + 1)?;
    overlay(&mut merged, table);
    Ok(merged)
}

/// The texts that make a system, each with its name, from the one that extends none to the system's own.
///
/// # Errors
/// As [`parse`], as far as the texts cannot be read.
pub(crate) fn chain(name: &str, text: &str) -> Result<Vec<(String, String)>, ParamError> {
    let mut texts = vec![(name.to_owned(), text.to_owned())];
    while texts.len() <= MAX_BASES {
        let (_, first) = &texts[0];
        let table: toml::Table = toml::from_str(first).map_err(|error| malformed(first, &error))?;
        let Some(base) = table.get("extends").and_then(toml::Value::as_str) else { break };
        let text = source(base).ok_or_else(|| ParamError::UnknownName { name: base.to_owned() })?;
        texts.insert(0, (base.to_owned(), text.to_owned()));
    }
    Ok(texts)
}

fn overlay(base: &mut toml::Table, over: toml::Table) {
    for (key, value) in over {
        match (base.get_mut(&key), value) {
            // A device of another kind replaces the one before.
            (Some(toml::Value::Table(base)), toml::Value::Table(over))
                if key != DEVICE || over.keys().any(|kind| base.contains_key(kind)) =>
            {
                overlay(base, over);
            }
            (Some(toml::Value::Array(base)), toml::Value::Array(over)) => overlay_list(base, over),
            (_, value) => {
                base.insert(key, value);
            }
        }
    }
}

fn overlay_list(base: &mut Vec<toml::Value>, over: Vec<toml::Value>) {
    for (index, value) in over.into_iter().enumerate() {
        match (base.get_mut(index), value) {
            (Some(toml::Value::Table(base)), toml::Value::Table(over)) => overlay(base, over),
            (Some(place), value) => *place = value,
            (None, value) => base.push(value),
        }
    }
}

pub(crate) fn malformed(text: &str, error: &toml::de::Error) -> ParamError {
    let line = error.span().map(|span| line_at(text, span.start));
    ParamError::Malformed { line, key: None, reason: error.message().to_owned() }
}

/// The line, from 1, of a byte of the text.
pub(crate) fn line_at(text: &str, byte: usize) -> usize {
    let before = text.as_bytes().get(..byte).unwrap_or(text.as_bytes());
    before.iter().filter(|&&byte| byte == b'\n').count() + 1
}

/// The line in which a key of the form `luns[0].device.disk.rpm` gets its value; for a key that is missing, the line of the
/// innermost table that is there.
fn line_of_key(text: &str, key: &str) -> Option<usize> {
    let root = toml::de::DeTable::parse(text).ok()?;
    let mut table = root.get_ref();
    let mut line = None;
    for step in key.split('.') {
        let (name, index) = match step.split_once('[') {
            Some((name, index)) => {
                (name, index.strip_suffix(']').and_then(|index| index.parse::<usize>().ok()))
            }
            None => (step, None),
        };
        let Some((at, mut value)) = table.get_key_value(name) else { return line };
        line = Some(line_at(text, at.span().start));
        if let (Some(index), toml::de::DeValue::Array(list)) = (index, value.get_ref()) {
            let Some(element) = list.get(index) else { return line };
            value = element;
            line = Some(line_at(text, value.span().start));
        }
        match value.get_ref() {
            toml::de::DeValue::Table(inner) => table = inner,
            _ => return line,
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builtin::NAMES;

    #[test]
    fn every_built_in_system_is_possible_and_says_where_it_is_from() {
        for name in NAMES {
            let system = load(name).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert!(!system.params.about.is_empty() && !system.params.report.is_empty(), "{name}");
        }
    }

    /// Every line with a figure carries a comment, at its end or on the line above.
    #[test]
    fn every_figure_of_the_built_in_systems_has_a_comment() {
        for name in NAMES {
            let mut above = "";
            for line in source(name).expect("it is built in").lines() {
                let words = line.starts_with("about") || line.starts_with("report");
                let figure = line.contains(" = ") && !line.starts_with('#') && !words;
                assert!(!figure || line.contains('#') || above.starts_with('#'), "{name}: {line}");
                above = line;
            }
        }
    }

    fn error_of(change: impl Fn(&str) -> String) -> String {
        let text = change(source("hpux-k460").expect("it is built in"));
        parse("mine", &text).expect_err("the change makes it wrong").to_string()
    }

    fn line_with(text: &str, part: &str) -> usize {
        text.lines().position(|line| line.contains(part)).expect("the part is there") + 1
    }

    #[test]
    fn impossible_figures_are_named_with_line_key_and_reason() {
        let text = source("hpux-k460").expect("it is built in");
        let line = line_with(text, "rpm = 7200");
        let key = "luns[0].device.disk.rpm";
        assert_eq!(
            error_of(|text| text.replace("rpm = 7200", "rpm = -7200")),
            format!("line {line}: {key}: is negative")
        );
        assert_eq!(
            error_of(|text| text.replace("rpm = 7200", "rpm = 0")),
            format!("line {line}: {key}: must be above zero")
        );
        let line = line_with(text, "[[luns.device.disk.zones]]");
        let uncovered = error_of(|text| text.replace("cylinders = ", "cylinders = 1 # "));
        assert!(
            uncovered.starts_with(&format!("line {line}: luns[0].device.disk.zones: the zones do not cover")),
            "{uncovered}"
        );
    }

    #[test]
    fn malformed_texts_are_named_with_their_line() {
        let text = source("hpux-k460").expect("it is built in");
        let line = line_with(text, "heads = ");
        let malformed = error_of(|text| text.replace("heads = ", "haeds = "));
        assert!(
            malformed.starts_with(&format!("line {line}: luns[0].device.disk.haeds: unknown field `haeds`")),
            "{malformed}"
        );
        let negative = error_of(|text| text.replace("heads = ", "heads = -"));
        assert!(
            negative.starts_with(&format!("line {line}: luns[0].device.disk.heads: invalid value: integer")),
            "{negative}"
        );
        assert!(error_of(|text| format!("{text}\n= 3")).starts_with("line "));
        assert!(matches!(load("k360"), Err(ParamError::UnknownName { .. })));
    }

    #[test]
    fn a_text_may_extend_a_system() {
        let text = "extends = \"hpux-k460\"\nhost.buffer_bytes = 16384\nhost.merge_bytes = 16384\n\
                    [[luns]]\ndevice.disk.rpm = 5400\n";
        let system = parse("mine", text).expect("it is possible");
        assert_eq!(system.params.host.buffer_bytes, 16384);
        let crate::DeviceParams::Disk(disk) = &system.params.luns[0].device else { panic!("not a disk") };
        assert_eq!((disk.rpm, disk.capacity_bytes > 0), (5400.0, true));
        let error = parse("mine", "extends = \"k360\"").expect_err("there is none").to_string();
        assert_eq!(error, "line 1: extends: no built-in system has this name");
        let error = parse("mine", "extends = \"hpux-k460\"\n\n[[luns]]\ndevice.disk.rpm = 0")
            .expect_err("it stands still");
        assert!(error.to_string().starts_with("line 4: luns[0].device.disk.rpm"), "{error}");
        let error = parse("mine", "extends = \"hpux-k460\"\n[host]\nbuffer_bytes = -1\n")
            .expect_err("a size is not negative");
        assert!(error.to_string().starts_with("line 3: host.buffer_bytes: invalid value"), "{error}");
    }
}
