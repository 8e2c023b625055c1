//! rdsk's own options of `rdsk dd`, which stand before dd's operands. It opens nothing.

use super::help;
use crate::cli_args::JsonPlace;
use crate::history::Place;
use rdsk_dd::{Charset, Operands};
use rdsk_targets::Permission;
use rustix::fs::{AtFlags, CWD, FileType, OFlags, fstat, statat};
use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

/// Symbolic links that the kernel follows for one name.
const MOST_LINKS: u32 = 40;
/// Runs at most; each is kept in memory.
const MAX_REPEAT: u32 = 10_000;
/// Rounds of a comparison that says no number: as many as give an interval of some use.
const DEFAULT_ROUNDS: u32 = 6;

/// Whether the answer is printed below dd's lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Explain {
    #[default]
    On,
    Off,
}

/// What stands on the command line.
#[derive(Debug, Default)]
pub(super) struct Options {
    pub(super) permission: Permission,
    pub(super) explain: Explain,
    pub(super) json: Option<JsonPlace>,
    /// Where a page with figures goes.
    pub(super) report: Option<JsonPlace>,
    /// The history, where the line names one; `Off` where it wants none.
    pub(super) history: Option<Place>,
    repeat: Option<u32>,
    /// The operands in which the second line differs.
    compare: Option<Vec<OsString>>,
    operands: Vec<OsString>,
}

pub(super) enum Parsed {
    Options(Box<Options>),
    /// The help or the version.
    Text(String),
}

/// Takes the options; dd's operands begin with the first word that is none of them.
///
/// # Errors
/// What is wrong, in words.
pub(super) fn parse(words: &[OsString]) -> Result<Parsed, String> {
    let mut options = Options::default();
    let mut rest = words;
    while let Some((word, after)) = rest.split_first() {
        let Some(name) = word.to_str().and_then(|word| word.strip_prefix("--")) else { break };
        let (name, mut value) = match name.split_once('=') {
            Some((name, value)) => (name, Some(OsString::from(value))),
            None => (name, None),
        };
        if name == "no-history" && value.is_none() {
            options.history = Some(Place::Off);
            rest = after;
            continue;
        }
        if !["destroy", "explain", "json", "report", "repeat", "compare", "history"].contains(&name) {
            break;
        }
        rest = after;
        if value.is_none()
            && let Some((next, after)) = rest.split_first()
        {
            value = Some(next.clone());
            rest = after;
        }
        let value = value.ok_or_else(|| format!("--{name} needs a value"))?;
        options.set(name, &value)?;
    }
    if let Some(text) = dds_own(rest)? {
        return Ok(Parsed::Text(text));
    }
    options.operands = rest.to_vec();
    Ok(Parsed::Options(Box::new(options)))
}

/// The text for dd's own two options, which may be shortened and stand anywhere before `--`; the first option counts.
fn dds_own(words: &[OsString]) -> Result<Option<String>, String> {
    let end = words.iter().position(|word| word == "--").unwrap_or(words.len());
    let is_option = |word: &&OsString| word.len() > 1 && word.as_bytes().starts_with(b"-");
    let Some(name) = words[..end].iter().find(is_option).and_then(|word| word.to_str()?.strip_prefix("--"))
    else {
        return Ok(None);
    };
    let (short, value) = name.split_once('=').map_or((name, None), |(name, value)| (name, Some(value)));
    for (name, text) in
        [("help", help::TEXT.to_owned()), ("version", format!("rdsk dd {}\n", env!("CARGO_PKG_VERSION")))]
    {
        if !short.is_empty() && name.starts_with(short) {
            return match value {
                None => Ok(Some(text)),
                Some(_) => Err(format!("option '--{name}' doesn't allow an argument")),
            };
        }
    }
    Ok(None)
}

impl Options {
    fn set(&mut self, name: &str, value: &OsStr) -> Result<(), String> {
        let text = value.to_str().ok_or_else(|| format!("the value of --{name} is no text"))?;
        match name {
            "destroy" => self.permission.destroy = Some(text.to_owned()),
            "explain" => {
                self.explain = match text {
                    "on" => Explain::On,
                    "off" => Explain::Off,
                    _ => {
                        return Err(format!("--explain is on or off, not '{}'", rdsk_units::printable(text)));
                    }
                }
            }
            "history" if text.is_empty() => return Err("--history needs a file".into()),
            "history" => self.history = Some(Place::File(text.into())),
            "json" => self.json = Some(crate::value::json_place(text).map_err(|bad| bad.message)?),
            "report" => self.report = Some(crate::value::page_place(text).map_err(|bad| bad.message)?),
            "repeat" => {
                let count = text.parse().ok().filter(|count| (1..=MAX_REPEAT).contains(count));
                let wrong = || {
                    format!(
                        "--repeat takes a number from 1 to {MAX_REPEAT}, not '{}'",
                        rdsk_units::printable(text)
                    )
                };
                self.repeat = Some(count.ok_or_else(wrong)?);
            }
            _ => {
                let words =
                    shlex::split(text).ok_or("the quotes in the operands of --compare do not match")?;
                if words.is_empty() {
                    return Err("--compare needs the operands in which the second copy differs".into());
                }
                self.compare = Some(words.into_iter().map(OsString::from).collect());
            }
        }
        Ok(())
    }

    /// The operands of each line: those given, and for a comparison those with the differing ones in their place.
    pub(super) fn lines(&self) -> Vec<Vec<OsString>> {
        let first = self.operands.clone();
        let Some(differing) = &self.compare else { return vec![first] };
        let replaced: BTreeSet<&[u8]> = differing.iter().map(|word| name_of(word)).collect();
        let kept = first.iter().filter(|word| !replaced.contains(name_of(word)));
        let second = kept.chain(differing).cloned().collect();
        vec![first, second]
    }

    /// Whether there are several runs.
    pub(super) fn is_repeated(&self) -> bool {
        self.rounds() > 1 || self.compare.is_some()
    }

    pub(super) fn rounds(&self) -> u32 {
        self.repeat.unwrap_or(if self.compare.is_some() { DEFAULT_ROUNDS } else { 1 })
    }
}

/// The name of an operand; two names of one thing are one.
fn name_of(word: &OsStr) -> &[u8] {
    let bytes = word.as_bytes();
    let name = bytes.iter().position(|&byte| byte == b'=').map_or(bytes, |end| &bytes[..end]);
    match name {
        b"iseek" => b"skip",
        b"oseek" => b"seek",
        name => name,
    }
}

/// Refuses options that the operands do not allow.
///
/// # Errors
/// What is wrong, in words.
pub(super) fn check(options: &Options, lines: &[&Operands]) -> Result<(), String> {
    let is_inherited = |one: &&Operands| one.input.is_none() || one.output.is_none();
    if options.is_repeated() && lines.iter().any(is_inherited) {
        return Err("--repeat and --compare need if= and of=, so that every run begins anew".into());
    }
    if options.is_repeated() && lines.iter().any(|one| one.output_flags.open.contains(OFlags::APPEND)) {
        return Err(
            "--repeat and --compare do not go with oflag=append: every run would write behind the last one, \
                    so that no two are alike"
                .into(),
        );
    }
    if options.is_repeated() && lines.iter().any(|one| one.convert.is_exclusive) {
        return Err("--repeat and --compare do not go with conv=excl: the second run would find the output of the first".into());
    }
    Ok(())
}

/// Refuses documents that would lie where the copy does, or over each other.
///
/// # Errors
/// What is wrong, in words; no document may be written then.
pub(super) fn check_places(options: &Options, lines: &[&Operands]) -> Result<(), String> {
    let file = |place: &Option<JsonPlace>| match place {
        Some(JsonPlace::File(path)) => Some(path.clone()),
        _ => None,
    };
    let (json, report) = (file(&options.json), file(&options.report));
    for (flag, document) in [("--json", &json), ("--report", &report)] {
        let is_output = |document: &Path| {
            let mut outputs = lines.iter().filter_map(|one| one.output.as_deref());
            outputs.any(|output| is_same_place(document, Path::new(output)))
        };
        if document.as_deref().is_some_and(is_output) {
            return Err(format!("{flag} names the output of the copy itself"));
        }
    }
    if json.zip(report).is_some_and(|(one, other)| is_same_place(&one, &other)) {
        return Err("--json and --report name the same file".into());
    }
    if options.json != Some(JsonPlace::Stdout) {
        return Ok(());
    }
    if lines.iter().any(|one| one.output.is_none()) {
        return Err("--json - needs of=, since the copy goes to standard output without it".into());
    }
    if lines.iter().filter_map(|one| one.output.as_deref()).any(is_standard_output) {
        return Err("--json - and of= lead to the same file".into());
    }
    if rdsk_dd::is_block_device(rustix::stdio::stdout()) {
        return Err("standard output is a block device, which rdsk writes only as of= with --destroy".into());
    }
    Ok(())
}

/// Whether a name is that of the file, pipe or device behind standard output. Character devices are not looked at: what comes
/// to a terminal or to /dev/null twice destroys nothing.
pub(super) fn is_standard_output(name: &OsStr) -> bool {
    let (Ok(named), Ok(standard)) = (statat(CWD, name, AtFlags::empty()), fstat(rustix::stdio::stdout()))
    else {
        return false;
    };
    let is_character = FileType::from_raw_mode(standard.st_mode) == FileType::CharacterDevice;
    !is_character && (named.st_dev, named.st_ino) == (standard.st_dev, standard.st_ino)
}

/// Whether two names lead to one place, whether or not a file is there yet.
fn is_same_place(one: &Path, other: &Path) -> bool {
    let place = |path: &Path| {
        let mut path = std::path::absolute(path).ok()?;
        // A link to a file that is not there yet leads to where that file will be.
        for _ in 0..MOST_LINKS {
            let directory = path.parent()?.canonicalize().ok()?;
            path = directory.join(path.file_name()?);
            match path.read_link() {
                Ok(target) => path = directory.join(target),
                Err(_) => return Some(path),
            }
        }
        None
    };
    place(one).is_some_and(|place_of_one| place(other) == Some(place_of_one))
}

/// The characters of dd's messages by the encoding of the user's locale, if there is such a locale here.
pub(super) fn charset(codeset: Option<&str>) -> Charset {
    if codeset.is_some_and(|codeset| codeset.eq_ignore_ascii_case("utf-8")) {
        Charset::Utf8
    } else {
        Charset::Ascii
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Options, String> {
        let words: Vec<OsString> = shlex::split(line).unwrap().into_iter().map(Into::into).collect();
        match parse(&words)? {
            Parsed::Options(options) => Ok(*options),
            Parsed::Text(text) => Err(text),
        }
    }

    #[test]
    fn options_stand_before_the_operands() {
        let options = parsed("--explain=off --repeat 3 --destroy=x if=a of=b --repeat").unwrap();
        assert_eq!((options.explain, options.rounds()), (Explain::Off, 3));
        assert_eq!(options.permission.destroy.as_deref(), Some("x"));
        assert_eq!(options.lines(), [["if=a", "of=b", "--repeat"]]);
        let kept = parsed("--history h.db --no-history if=a").unwrap();
        assert_eq!((kept.history.clone(), kept.lines()), (Some(Place::Off), vec![vec!["if=a".into()]]));
        assert_eq!(parsed("--history=h.db if=a").unwrap().history, Some(Place::File("h.db".into())));
        assert_eq!(parsed("--report r.html if=a").unwrap().report, Some(JsonPlace::File("r.html".into())));
        assert_eq!(parsed("--x if=a").unwrap().lines(), [["--x", "if=a"]], "dd complains of it");
    }

    #[test]
    fn the_locale_decides_on_the_characters() {
        for (codeset, expected) in [
            (Some("UTF-8"), Charset::Utf8),
            (Some("utf-8"), Charset::Utf8),
            (Some("ANSI_X3.4-1968"), Charset::Ascii),
            (None, Charset::Ascii),
        ] {
            assert_eq!(charset(codeset), expected, "{codeset:?}");
        }
    }

    #[test]
    fn wrong_values_are_refused() {
        for line in [
            "--repeat 0",
            "--repeat x",
            "--explain maybe",
            "--json",
            "--report -",
            "--report=",
            "--history=",
            "--compare ''",
            "--compare \"'\"",
        ] {
            assert!(parsed(line).is_err(), "{line}");
        }
        assert!(parsed("if=a --help").unwrap_err().starts_with("Copy"));
    }

    #[test]
    fn the_second_line_replaces_what_it_names() {
        let options = parsed("--compare 'iflag=direct skip=2' if=a of=b iflag=fullblock iseek=1").unwrap();
        let [first, second] = &options.lines()[..] else { panic!("two lines") };
        assert_eq!(first, &["if=a", "of=b", "iflag=fullblock", "iseek=1"]);
        assert_eq!(second, &["if=a", "of=b", "iflag=direct", "skip=2"]);
        assert_eq!(options.rounds(), DEFAULT_ROUNDS);
    }
}
