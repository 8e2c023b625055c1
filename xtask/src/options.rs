//! The options of a task's command line: words, and options that take a value each.

use anyhow::{Context as _, Result, bail, ensure};
use std::collections::BTreeMap;

/// The value of each option that was given; the last one counts.
pub(crate) type Options = BTreeMap<String, String>;

/// Splits arguments into plain words and options, whose value follows as a word or behind `=`. `names` are those of the options with
/// their dashes.
pub(crate) fn parse(arguments: &[String], names: &[&str]) -> Result<(Vec<String>, Options)> {
    let (mut words, mut options) = (Vec::new(), Options::new());
    let mut rest = arguments.iter();
    while let Some(word) = rest.next() {
        if !word.starts_with('-') {
            words.push(word.clone());
            continue;
        }
        let (name, value) =
            word.split_once('=').map_or((word.as_str(), None), |(name, value)| (name, Some(value)));
        ensure!(names.contains(&name), "unknown option \"{name}\"; there are {}", names.join(", "));
        let value = value.or_else(|| rest.next().map(String::as_str));
        options.insert(name.to_owned(), value.with_context(|| format!("{name} needs a value"))?.to_owned());
    }
    Ok((words, options))
}

/// Whether the arguments are `--check`; nothing else but none is taken.
pub(crate) fn is_check(arguments: &[String]) -> Result<bool> {
    match arguments {
        [] => Ok(false),
        [word] if word == "--check" => Ok(true),
        [word, ..] => bail!("unknown argument \"{word}\"; this takes --check or nothing"),
    }
}
