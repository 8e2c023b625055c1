//! Job files of fio as text: sections, settings with their lines, files that are included, and variables. It knows no option but
//! `kb_base`, on which the units of the settings of a section depend.

use super::arithmetic;
use super::error::{BadValue, FioError, Refusal};
use super::values::KbBase;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// Files within each other at most.
const MAX_INCLUDES: u32 = 64;

/// What a job file takes from the machine.
pub struct Surroundings<'a> {
    /// The value of a variable of the environment.
    pub variable: &'a dyn Fn(&str) -> Option<String>,
    /// The text of an included file, or why there is none.
    pub read: &'a dyn Fn(&str) -> io::Result<String>,
    /// Bytes of a page of memory.
    pub page_bytes: u64,
    /// Memory in MiB.
    pub memory_mib: u64,
    /// Processors.
    pub processors: u64,
}

/// Where something stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) file: Arc<str>,
    pub(super) line: u32,
}

/// An option as a line gives it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Setting {
    pub(super) place: Place,
    pub(super) name: String,
    /// What stands behind the `=`, if there is one.
    pub(super) value: Option<String>,
    pub(super) base: KbBase,
}

impl Setting {
    /// As it is written.
    pub(super) fn words(&self) -> String {
        match &self.value {
            Some(value) => format!("{}={value}", self.name),
            None => self.name.clone(),
        }
    }

    pub(super) fn refuse(&self, why: impl Into<BadValue>) -> Refusal {
        Refusal {
            file: self.place.file.to_string(),
            line: self.place.line,
            option: self.words(),
            why: why.into().into_words(),
        }
    }
}

/// A job with all settings that hold for it, those of the global sections above it first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Section {
    pub(super) name: String,
    pub(super) place: Place,
    pub(super) settings: Vec<Setting>,
    /// Files that were included so far.
    includes: u32,
}

/// The jobs of a text.
///
/// # Errors
/// When a line stands outside of sections, or a file that it includes cannot be.
pub(super) fn sections(name: &str, text: &str, around: &Surroundings<'_>) -> Result<Vec<Section>, FioError> {
    let (mut global, mut jobs) = (Globals::default(), Vec::new());
    let mut open: Option<Section> = None;
    let file: Arc<str> = name.into();
    for (number, line) in (1..).zip(text.lines()) {
        let place = Place { file: Arc::clone(&file), line: number };
        let line = without_comment(line);
        if let Some(section) = line.strip_prefix('[') {
            close(open.take(), &mut global, &mut jobs)?;
            let name =
                section.strip_suffix(']').ok_or_else(|| refuse(&place, line, "has no ] at its end"))?;
            open = Some(Section { name: name.to_owned(), place, settings: Vec::new(), includes: 0 });
        } else if !line.is_empty() {
            let section = open.as_mut();
            let section = section.ok_or_else(|| refuse(&place, line, "stands before the first [section]"))?;
            add(section, place, line, around)?;
        }
    }
    close(open, &mut global, &mut jobs)?;
    Ok(jobs)
}

/// What the global sections so far have set.
#[derive(Default)]
struct Globals {
    settings: Vec<Setting>,
    base: KbBase,
}

fn refuse(place: &Place, line: &str, why: impl Into<BadValue>) -> FioError {
    let (file, line, option) = (place.file.to_string(), place.line, line.to_owned());
    FioError::Refused(vec![Refusal { file, line, option, why: why.into().into_words() }])
}

/// A line up to the sign that begins a comment anywhere in it.
fn without_comment(line: &str) -> &str {
    line.split([';', '#']).next().unwrap_or_default().trim()
}

/// Adds the settings of a line to a section.
fn add(section: &mut Section, place: Place, line: &str, around: &Surroundings<'_>) -> Result<(), FioError> {
    if let Some(name) = line.strip_prefix("include").filter(|rest| rest.starts_with([' ', '\t'])) {
        return include(section, &place, name.trim(), around);
    }
    let (name, value) = match line.split_once('=') {
        Some((name, value)) => (name.trim(), Some(value.trim())),
        None => (line, None),
    };
    let value = match value {
        Some(value) => Some(replaced(value, around).map_err(|why| refuse(&place, line, why))?),
        None => None,
    };
    section.settings.push(Setting { place, name: name.to_owned(), value, base: KbBase::default() });
    Ok(())
}

/// Adds the settings of a file, which is named from here, or from where the file is that names it.
fn include(
    section: &mut Section,
    place: &Place,
    name: &str,
    around: &Surroundings<'_>,
) -> Result<(), FioError> {
    let line = format!("include {name}");
    section.includes += 1;
    if section.includes > MAX_INCLUDES {
        return Err(refuse(place, &line, "too many files are included, or they include each other"));
    }
    let beside = Path::new(place.file.as_ref()).with_file_name(name).display().to_string();
    let read = (around.read)(name).map(|text| (name.to_owned(), text));
    let read = read.or_else(|why| (around.read)(&beside).map(|text| (beside, text)).map_err(|_| why));
    let (name, text) = read.map_err(|why| refuse(place, &line, why.to_string()))?;
    let file: Arc<str> = name.into();
    for (number, line) in (1..).zip(text.lines()) {
        let (line, place) = (without_comment(line), Place { file: Arc::clone(&file), line: number });
        if line.starts_with('[') {
            return Err(refuse(&place, line, "an included file has no sections"));
        }
        if !line.is_empty() {
            add(section, place, line, around)?;
        }
    }
    Ok(())
}

/// Ends a section: what a global one set holds for all sections below it.
fn close(section: Option<Section>, global: &mut Globals, jobs: &mut Vec<Section>) -> Result<(), FioError> {
    let Some(mut section) = section else { return Ok(()) };
    let mut base = global.base;
    // Wherever it stands in a section, it holds for all of it.
    for setting in section.settings.iter().filter(|setting| setting.name == "kb_base") {
        base = match setting.value.as_deref() {
            Some("1024") => KbBase::K1024,
            Some("1000") => KbBase::K1000,
            _ => return Err(FioError::Refused(vec![setting.refuse("is 1000 or 1024")])),
        };
    }
    section.settings.iter_mut().for_each(|setting| setting.base = base);
    // fio takes every name that begins so for a global section.
    if section.name.starts_with("global") {
        global.settings.extend(section.settings);
        global.base = base;
    } else {
        let settings = global.settings.iter().cloned().chain(section.settings).collect();
        jobs.push(Section { settings, ..section });
    }
    Ok(())
}

/// A value with the values of variables and keywords in it.
fn replaced(value: &str, around: &Surroundings<'_>) -> Result<String, BadValue> {
    let value = variables(value, around);
    let keywords =
        [("$pagesize", around.page_bytes), ("$mb_memory", around.memory_mib), ("$ncpus", around.processors)];
    let filled =
        keywords.iter().fold(value.clone(), |text, (word, number)| text.replace(word, &number.to_string()));
    if filled == value || filled.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return Ok(filled);
    }
    // With a keyword in it, the whole is calculated.
    let unit =
        |suffix: &str| if suffix.is_empty() { Ok(1) } else { Err(format!("{suffix} is no number").into()) };
    arithmetic::evaluate(&filled, &unit).map(|number| number.to_string())
}

/// A text with the values of `${NAME}`; what is not set is empty.
fn variables(text: &str, around: &Surroundings<'_>) -> String {
    let (mut filled, mut rest) = (String::new(), text);
    while let Some((before, name, after)) = rest
        .split_once("${")
        .and_then(|(before, more)| more.split_once('}').map(|(name, after)| (before, name, after)))
    {
        filled.push_str(before);
        filled.push_str(&(around.variable)(name).unwrap_or_default());
        rest = after;
    }
    filled + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Vec<Section>, FioError> {
        let read = |name: &str| match name {
            "dir/more.fio" => Ok("; more\niodepth=4\ninclude again.fio\n".to_owned()),
            "again.fio" => Ok("thread\n".to_owned()),
            "loop.fio" => Ok("include loop.fio".to_owned()),
            "sections.fio" => Ok("[a]".to_owned()),
            _ => Err(io::Error::other("there is no such file")),
        };
        let around = Surroundings {
            variable: &|name| (name == "SIZE").then(|| "64m".to_owned()),
            read: &read,
            page_bytes: 4096,
            memory_mib: 1000,
            processors: 2,
        };
        sections("dir/job.fio", text, &around)
    }

    fn words(section: &Section) -> Vec<String> {
        section.settings.iter().map(|setting| format!("{}:{}", setting.place.line, setting.words())).collect()
    }

    #[test]
    fn a_job_has_what_the_global_sections_above_it_set() {
        let text = "; a comment\n[global]\nbs = 4k ; small\n\n[one]\n#rw=x\nrw=read\n[globally]\nbs=8k\n[two]\nsize=${SIZE}${NONE}\nthread\n";
        let jobs = parse(text).unwrap();
        let names: Vec<&str> = jobs.iter().map(|job| job.name.as_str()).collect();
        assert_eq!(names, ["one", "two"]);
        assert_eq!(words(&jobs[0]), ["3:bs=4k", "7:rw=read"]);
        assert_eq!(words(&jobs[1]), ["3:bs=4k", "9:bs=8k", "11:size=64m", "12:thread"]);
    }

    #[test]
    fn included_files_add_to_the_section_that_includes_them() {
        let jobs = parse("[a]\ninclude more.fio\nrw=read\n[b]\n").unwrap();
        assert_eq!(words(&jobs[0]), ["2:iodepth=4", "1:thread", "3:rw=read"]);
        assert_eq!(jobs[0].settings[0].place.file.as_ref(), "dir/more.fio");
        assert!(jobs[1].settings.is_empty());
        for (text, expected) in [
            ("[a]\ninclude none.fio", "dir/job.fio:2: include none.fio: there is no such file"),
            ("[a]\ninclude loop.fio", "too many files"),
            ("[a]\ninclude sections.fio", "sections.fio:1: [a]: an included file has no sections"),
            ("rw=read\n[a]", "dir/job.fio:1: rw=read: stands before"),
            ("[a", "has no ]"),
            ("[a]\nkb_base=7", "is 1000 or 1024"),
        ] {
            let why = parse(text).expect_err(text).to_string();
            assert!(why.contains(expected), "{text}: {why}");
        }
    }

    #[test]
    fn units_and_keywords_are_those_of_the_section() {
        let jobs =
            parse("[a]\nbs=1k\nkb_base=1000\n[global]\nkb_base=1000\n[b]\nsize=8*$mb_memory\nbs=$pagesize\n")
                .unwrap();
        assert!(jobs[0].settings.iter().all(|setting| setting.base == KbBase::K1000));
        assert_eq!(words(&jobs[1])[1..], ["7:size=8000", "8:bs=4096"]);
        assert!(jobs[1].settings.iter().all(|setting| setting.base == KbBase::K1000));
        assert!(parse("[a]\nsize=8*$mb_memory+").is_err());
    }
}
