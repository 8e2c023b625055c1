//! The options of a task's command line: words, and options that take a value each.

use anyhow::{Context as _, Result, bail, ensure};
use std::collections::BTreeMap;

/// The value of each option that was given; the last one counts.
pub(crate) type Options = BTreeMap<String, String>;

/// Splits arguments into plain words and options. `known` has the options with their dashes.
pub(crate) fn parse(arguments: &[String], known: &[&str]) -> Result<(Vec<String>, Options)> {
    let (mut words, mut options) = (Vec::new(), Options::new());
    let mut rest = arguments.iter();
    while let Some(word) = rest.next() {
        if word.starts_with('-') {
            ensure!(
                known.contains(&word.as_str()),
                "unknown option \"{word}\"; there are {}",
                known.join(", ")
            );
            let value = rest.next().with_context(|| format!("{word} needs a value"))?;
            options.insert(word.clone(), value.clone());
        } else {
            words.push(word.clone());
        }
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
