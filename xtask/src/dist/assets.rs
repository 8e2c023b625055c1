//! What the program prints of itself for a system: manual pages and scripts for shells.

use super::printed;
use crate::programs::{checked, rdsk_command, text_of};
use anyhow::Result;
use std::fs;
use std::path::Path;
use std::process::Command;

/// The shells whose scripts are installed, each with the name that its directory wants.
const SHELLS: &[(&str, &str)] = &[("bash", "rdsk"), ("zsh", "_rdsk"), ("fish", "rdsk.fish")];

/// Writes them below `place`, in place of older ones.
pub(super) fn make(program: &Path, place: &Path) -> Result<()> {
    let (man, completions) = (place.join("man"), place.join("completions"));
    for directory in [&man, &completions] {
        if directory.exists() {
            fs::remove_dir_all(directory)?;
        }
    }
    let say = |words: &[&str]| -> Command {
        let mut command = rdsk_command(program);
        command.args(words);
        command
    };
    printed(&mut say(&["man"]), &man.join("rdsk.1"))?;
    for name in commands(&text_of(&mut say(&["--help"]))?) {
        printed(&mut say(&["man", name]), &man.join(format!("rdsk-{name}.1")))?;
    }
    for (shell, name) in SHELLS {
        printed(&mut say(&["completions", shell]), &completions.join(name))?;
    }
    // Without name and time of the file, so that the bytes are always the same.
    let mut pages: Vec<_> = fs::read_dir(&man)?.collect::<Result<_, _>>()?;
    pages.sort_by_key(fs::DirEntry::file_name);
    checked(Command::new("gzip").args(["-9", "-n"]).args(pages.iter().map(fs::DirEntry::path))).map(drop)
}

/// The commands that the help lists.
fn commands(help: &str) -> Vec<&str> {
    let lines = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let lines = lines.take_while(|line| !line.is_empty());
    // What a summary goes on with stands further in.
    lines.filter(|line| !line.starts_with("   ")).filter_map(|line| line.split_whitespace().next()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_those_of_the_help() {
        let help = "About\n\nUsage: rdsk COMMAND\n\nCommands:\n  run   Measure\n        and more\n  list  List\n\nOptions:\n  -h  Help\n";
        assert_eq!(commands(help), ["run", "list"]);
    }
}
