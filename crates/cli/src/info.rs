//! `rdsk info`: what a target is, what it sits on, and what would be refused and why. It opens nothing for writing and
//! measures nothing; the crate `targets` judges, as it does for a run.

mod device;
mod document;
mod page;
pub(crate) mod rows;
mod tree;

use crate::json_file::{self, JSON, Sink};
use crate::output_args::{CharsetArgs, JsonArgs};
use crate::{completion, exit, out, panic_hook, screen, value};
use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use rdsk_model::{Problem, ProblemKind, TargetKind};
use rdsk_observe::watch::natural;
use rdsk_report::Charset;
use rdsk_targets::{
    Access, Examined, Overwrite, Permission, Place, Roots, TestFileSize, authorize, check_growth, examine,
    plan_test_file, writable_bytes,
};
use rdsk_units::printable;
use rustix::fs::{Mode, OFlags};
use std::path::Path;

pub(crate) use document::document;

const EXAMPLES: &str = "Examples:
  rdsk info
      all block devices and the current directory
  rdsk info /dev/sdb
      one device, and whether it may be written
  rdsk info --json - .
      the same as JSON";

/// Show what a target is, what it sits on, and what rdsk would refuse to do with it.
///
/// Refusals come with their reason. Nothing is written and nothing is measured.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Info {
    /// Directories, files, block devices or sim:NAME [default: every block device and .]
    #[arg(
        value_name = "TARGET",
        value_parser = value::name("target", "name a directory, a file or a block device"),
        add = ArgValueCompleter::new(completion::targets)
    )]
    targets: Vec<String>,
    #[command(flatten)]
    json: JsonArgs,
    #[command(flatten)]
    charset: CharsetArgs,
}

#[derive(Debug)]
pub(crate) struct TargetInfo {
    pub(crate) name: String,
    /// What was found, or why nothing could be.
    pub(crate) outcome: Result<Facts, Problem>,
}

/// What is known of a target, and the judgements over it.
#[derive(Debug)]
pub(crate) struct Facts {
    pub(crate) examined: Examined,
    pub(crate) reading: Result<(), Problem>,
    /// Whether it may be written without a flag.
    pub(crate) writing: Result<(), Problem>,
    /// The flag that allows writing, and whether the target may be written with it; `None` if no flag can.
    pub(crate) with_flag: Option<(String, Result<(), Problem>)>,
    /// How many of its bytes a run may write with the flag, where all of them would use up what it lies on; whole MiB. `None` where
    /// all or none may be written.
    pub(crate) part_bytes: Option<u64>,
}

/// Shows the targets and gives the exit code.
///
/// # Errors
/// When the document cannot be written where the line says.
pub(crate) fn show(info: &Info) -> Result<u8, Problem> {
    let place = info.json.json.as_ref();
    let sink = place.map(|place| Sink::prepare(JSON, place, &info.targets)).transpose()?;
    let roots = Roots::default();
    let names = if info.targets.is_empty() { everything(&roots.sys) } else { info.targets.clone() };
    let infos: Vec<TargetInfo> = names.into_iter().map(|name| inspect(name, &roots)).collect();
    let mut code = exit::DONE;
    let page = || {
        page::page(
            &infos,
            charset(info.charset.charset(), |name| std::env::var(name).ok()),
            screen::page_columns(),
        )
    };
    let shown = json_file::output(sink.as_ref(), || document(&infos, None), page);
    if let Err(problem) = shown {
        code = out::failure(&problem);
    }
    for problem in infos.iter().filter_map(|info| info.outcome.as_ref().err()) {
        out::problem(problem);
        // If the line did not name the devices, one that has just disappeared is no failure of the command.
        if code == exit::DONE && !info.targets.is_empty() {
            code = exit::code_of(problem.kind);
        }
    }
    Ok(code)
}

/// Unicode if the locale can show it.
fn charset(wanted: Charset, variable: impl Fn(&str) -> Option<String>) -> Charset {
    let names = ["LC_ALL", "LC_CTYPE", "LANG"];
    let locale = names.into_iter().filter_map(variable).find(|value| !value.is_empty());
    let is_utf8 = |locale: String| {
        let locale = locale.to_ascii_lowercase();
        locale.ends_with("utf-8") || locale.ends_with("utf8")
    };
    if wanted == Charset::Unicode && locale.is_some_and(is_utf8) { Charset::Unicode } else { Charset::Ascii }
}

fn inspect(name: String, roots: &Roots) -> TargetInfo {
    let outcome = panic_hook::catch(|| examine(&name, roots).map_err(|error| error.problem()))
        .and_then(|examined| examined)
        .map(facts);
    TargetInfo { name, outcome }
}

fn facts(examined: Examined) -> Facts {
    let ask = |access, permission: &Permission| {
        authorize(&examined, access, permission)?;
        if access == Access::Write { check_growth(&[&examined]) } else { Ok(()) }
    };
    let ask = |access, permission: &Permission| ask(access, permission).map_err(Problem::from);
    let with_flag = match (&examined.place, examined.target.kind) {
        (Place::Directory { .. }, _) | (_, TargetKind::Sim) => None,
        (_, TargetKind::File) => {
            let permission = Permission { overwrite: Overwrite::Allowed, ..Permission::default() };
            Some(("--overwrite".to_owned(), ask(Access::Write, &permission)))
        }
        (_, TargetKind::Block) => examined.identities.first().map(|identity| {
            let permission = Permission { destroy: Some(identity.text.clone()), ..Permission::default() };
            (format!("--destroy {}", quoted(&identity.text)), ask(Access::Write, &permission))
        }),
    };
    let writing = ask(Access::Write, &Permission::default()).and_then(|()| test_file_fits(&examined));
    // What a directory is measured by, for reads, too, is a test file, which has to be written.
    let reading = match examined.place {
        Place::Directory { .. } => writing.clone(),
        _ => ask(Access::Read, &Permission::default()).and_then(|()| readable(&examined)),
    };
    let uses_up = |problem: &Problem| ["fills-up", "thin-pool"].contains(&problem.code.as_str());
    let part_bytes = match &with_flag {
        Some((_, Err(problem))) if uses_up(problem) => {
            // In whole MiB, which is how it is shown; less is no use to a run.
            writable_bytes(&examined).map(|bytes| bytes >> 20 << 20).filter(|&bytes| bytes > 0)
        }
        _ => None,
    };
    Facts { reading, writing, with_flag, part_bytes, examined }
}

/// Whether a directory has room for the smallest test file.
fn test_file_fits(examined: &Examined) -> Result<(), Problem> {
    if !matches!(examined.place, Place::Directory { .. }) {
        return Ok(());
    }
    let size = TestFileSize::Adaptive { max_bytes: u64::MAX, max_elapsed_ns: u64::MAX };
    plan_test_file(examined, size, 1, true).map(drop).map_err(|error| error.problem())
}

/// Whether the kernel lets this process read it: file permissions, and the device rules of a container.
fn readable(examined: &Examined) -> Result<(), Problem> {
    if let Place::Sim(_) = examined.place {
        return Ok(());
    }
    // An optical drive that is opened otherwise takes in its tray.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let opened = rustix::fs::open(&examined.path, flags, Mode::empty());
    opened.map(drop).map_err(std::io::Error::from).map_err(|error| {
        Problem::new(
            ProblemKind::Refused,
            "unreadable",
            format!("{} cannot be opened for reading: {error}", printable(&examined.path.to_string_lossy())),
            "run as root, outside a container, or as a member of the group that owns it",
        )
    })
}

/// A word quoted for the shell, safe to print.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "/._-:@%+=,".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", printable(word).replace('\'', "'\\''"))
}

/// Every block device that has a size and a node, and the current directory.
fn everything(sys: &Path) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(sys.join("block"))
        .into_iter()
        .flatten()
        .flatten()
        .filter(|entry| is_shown(&entry.path()))
        .map(|entry| entry.file_name().to_string_lossy().replace('!', "/"))
        .collect();
    names.sort_by_key(|name| natural(name));
    let mut targets: Vec<String> = names.iter().map(|name| format!("/dev/{name}")).collect();
    targets.push(".".to_owned());
    targets
}

/// A path of an NVMe multipath device (`nvme0c0n1`) has a size, is `hidden`, and has no number and no node.
fn is_shown(device: &Path) -> bool {
    let text = |name: &str| std::fs::read_to_string(device.join(name)).ok();
    let is = |name, value| text(name).is_some_and(|text: String| text.trim() == value);
    text("size").is_some_and(|size| size.trim() != "0") && text("dev").is_some() && !is("hidden", "1")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_without_a_medium_or_a_node_are_left_out_and_the_rest_is_in_order() {
        let sys = tempfile::tempdir().unwrap();
        let device = |name: &str, files: &[(&str, &str)]| {
            let directory = sys.path().join("block").join(name);
            std::fs::create_dir_all(&directory).unwrap();
            for (file, text) in files {
                std::fs::write(directory.join(file), format!("{text}\n")).unwrap();
            }
        };
        for (name, size) in
            [("loop10", "8"), ("loop2", "8"), ("loop0", "0"), ("cciss!c0d0", "1"), ("sda", "9")]
        {
            device(name, &[("size", size), ("dev", "8:0")]);
        }
        device("nvme0c0n1", &[("size", "8"), ("hidden", "1")]);
        device("nvme0c1n1", &[("size", "8"), ("dev", "259:1"), ("hidden", "1")]);
        assert_eq!(everything(sys.path()), ["/dev/cciss/c0d0", "/dev/loop2", "/dev/loop10", "/dev/sda", "."]);
    }

    #[test]
    fn lines_of_unicode_need_a_locale_that_has_them() {
        let charset = |line: &str, pairs: &[(&str, &str)]| {
            let info: Info = crate::grammar::testing::parsed(line).unwrap();
            super::charset(info.charset.charset(), |name| {
                pairs.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
            })
        };
        assert_eq!(charset("", &[("LANG", "C.UTF-8")]), Charset::Unicode);
        assert_eq!(charset("", &[("LC_ALL", ""), ("LANG", "de_DE.utf8")]), Charset::Unicode);
        assert_eq!(charset("", &[("LC_ALL", "C"), ("LANG", "C.UTF-8")]), Charset::Ascii);
        assert_eq!(charset("", &[]), Charset::Ascii);
        assert_eq!(charset("--ascii", &[("LANG", "C.UTF-8")]), Charset::Ascii);
    }

    #[test]
    fn identities_are_quoted_for_the_shell() {
        assert_eq!(quoted("WD-WCANK5"), "WD-WCANK5");
        assert_eq!(quoted("a b"), "'a b'");
        assert_eq!(quoted("it's"), "'it'\\''s'");
    }
}
