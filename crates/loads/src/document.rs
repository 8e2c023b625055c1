//! Loads and needs as TOML files: `[[job]]` tables of words, and for a need its thresholds and where they were published.

use crate::error::LoadError;
use crate::job_words::{JobWords, per_second};
use rdsk_model::{LoadJob, Need, Statistic, Strength, Subject, Threshold, check_together};
use rdsk_units::{Bytes, Nanos};
use serde::Deserialize;
use std::collections::BTreeMap;

/// A load: its jobs.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadDocument {
    /// The jobs of each phase, which run at once; never empty.
    pub phases: Vec<Vec<LoadJob>>,
    /// Whether each phase is repeated, or runs once, until its jobs are done.
    pub is_repeated: bool,
}

/// A need and the jobs that show whether it is met.
#[derive(Clone, Debug, PartialEq)]
pub struct NeedDocument {
    /// What is asked.
    pub need: Need,
    /// The jobs of each phase, which run at once; never empty.
    pub phases: Vec<Vec<LoadJob>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LoadText {
    #[serde(default = "repeated")]
    repeat: bool,
    job: Vec<JobWords>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct NeedText {
    title: String,
    source: String,
    strength: Strength,
    #[serde(default)]
    job_is_ours: bool,
    #[serde(default)]
    remark: String,
    #[serde(default)]
    only_fails: String,
    #[serde(default)]
    lasts: Option<String>,
    #[serde(default)]
    outlasts: Option<String>,
    job: Vec<JobWords>,
    threshold: Vec<ThresholdText>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct ThresholdText {
    job: String,
    of: Subject,
    statistic: Statistic,
    at_most: Option<String>,
    at_least: Option<String>,
    over: Option<String>,
    each: Option<String>,
    disputed_until: Option<String>,
    #[serde(default)]
    only_passes: String,
    exempts: Option<Exempt>,
    outlasts: Option<String>,
}

/// What a threshold is not about.
#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Exempt {
    Rotational,
}

/// The load of a text.
///
/// # Errors
/// When it is no TOML, has an unknown key, or a job that cannot be meant.
pub fn load(text: &str) -> Result<LoadDocument, LoadError> {
    let text: LoadText = toml::from_str(text).map_err(|error| LoadError::Document(error.to_string()))?;
    let jobs = jobs(&text.job)?;
    Ok(LoadDocument { phases: phases(&text.job, jobs)?, is_repeated: text.repeat })
}

const fn repeated() -> bool {
    true
}

/// The need of a text, under a name.
///
/// # Errors
/// As [`load`], and when a threshold names no job, or a value that its statistic does not have.
pub fn need(name: &str, text: &str) -> Result<NeedDocument, LoadError> {
    let text: NeedText = toml::from_str(text).map_err(|error| LoadError::Document(error.to_string()))?;
    let jobs = jobs(&text.job)?;
    let thresholds: Vec<Threshold> =
        text.threshold.iter().map(|threshold| threshold_of(threshold, &jobs)).collect::<Result<_, _>>()?;
    if thresholds.is_empty() {
        return Err(value("threshold", "a need has at least one"));
    }
    let time = |key, text: &Option<String>| match text {
        Some(text) => Nanos::parse(text).map(|time| time.0).map_err(|error| LoadError::quantity(key, &error)),
        None => Ok(0),
    };
    let need = Need {
        name: name.to_owned(),
        title: text.title,
        source: text.source,
        strength: text.strength,
        job_is_ours: text.job_is_ours,
        remark: text.remark,
        only_fails: text.only_fails,
        lasts_ns: time("lasts", &text.lasts)?,
        outlasts_bytes: size("outlasts", text.outlasts.as_deref())?,
        thresholds,
    };
    Ok(NeedDocument { need, phases: phases(&text.job, jobs)? })
}

fn value(key: &'static str, why: impl Into<String>) -> LoadError {
    LoadError::Value { key, why: why.into() }
}

/// A size; 0 where none is named.
fn size(key: &'static str, text: Option<&str>) -> Result<u64, LoadError> {
    text.map_or(Ok(0), |text| {
        Bytes::parse(text).map(|bytes| bytes.0).map_err(|error| LoadError::quantity(key, &error))
    })
}

fn jobs(words: &[JobWords]) -> Result<Vec<LoadJob>, LoadError> {
    let jobs: Vec<LoadJob> =
        (1..).zip(words).map(|(number, words)| words.job(number)).collect::<Result<_, _>>()?;
    for (index, job) in jobs.iter().enumerate() {
        if jobs[..index].iter().any(|other| other.name == job.name) {
            return Err(LoadError::Job { job: job.name.clone(), why: "is there twice".into() });
        }
    }
    if jobs.is_empty() { Err(value("job", "a load has at least one")) } else { Ok(jobs) }
}

/// The jobs by the number of their phase.
fn phases(words: &[JobWords], jobs: Vec<LoadJob>) -> Result<Vec<Vec<LoadJob>>, LoadError> {
    let mut phases: BTreeMap<u32, Vec<LoadJob>> = BTreeMap::new();
    for (words, job) in words.iter().zip(jobs) {
        phases.entry(words.phase.unwrap_or(1)).or_default().push(job);
    }
    for jobs in phases.values() {
        check_together(jobs).map_err(|why| value("ramp", why.to_string()))?;
    }
    Ok(phases.into_values().collect())
}

fn threshold_of(text: &ThresholdText, jobs: &[LoadJob]) -> Result<Threshold, LoadError> {
    let job = jobs.iter().find(|job| job.name == text.job);
    let job = job.ok_or_else(|| value("threshold", format!("there is no job {}", text.job)))?;
    let exists = match text.of {
        Subject::Reads => job.reads.is_some(),
        Subject::Writes => job.writes.is_some(),
        Subject::Flushes => job.flush.is_some(),
        Subject::Requests => true,
    };
    if !exists {
        return Err(value("threshold", format!("job {} has no {}", text.job, text.of)));
    }
    let amount = |key, text: &Option<String>, statistic| match text {
        Some(text) => amount(key, text, statistic).map(Some),
        None => Ok(None),
    };
    let at_most = amount("at-most", &text.at_most, text.statistic)?;
    let at_least = amount("at-least", &text.at_least, text.statistic)?;
    if at_most.is_some() == at_least.is_some() {
        return Err(value("threshold", "has one of at-most and at-least"));
    }
    let time = |key, text: &Option<String>| match text {
        Some(text) => {
            Nanos::parse(text).map(|time| Some(time.0)).map_err(|error| LoadError::quantity(key, &error))
        }
        None => Ok(None),
    };
    let (over_ns, each_ns) = (time("over", &text.over)?, time("each", &text.each)?);
    let counts_over = matches!(text.statistic, Statistic::ShareOver | Statistic::TimeOver);
    if over_ns.is_some() != counts_over {
        return Err(value(
            "threshold",
            "has over where its statistic is share-over or time-over, and only there",
        ));
    }
    if each_ns.is_some_and(|each_ns| each_ns == 0 || !counts_over) {
        return Err(value(
            "threshold",
            "has each where its statistic is share-over or time-over, and no time of 0",
        ));
    }
    let disputed_until = amount("disputed-until", &text.disputed_until, text.statistic)?;
    let is_looser =
        |until: f64| at_most.is_none_or(|most| until > most) && at_least.is_none_or(|least| until < least);
    if disputed_until.is_some_and(|until| !is_looser(until)) {
        return Err(value(
            "threshold",
            "has disputed-until beyond its mark: above at-most, or below at-least",
        ));
    }
    Ok(Threshold {
        job: text.job.clone(),
        of: text.of,
        statistic: text.statistic,
        at_most,
        at_least,
        over_ns,
        each_ns,
        disputed_until,
        only_passes: text.only_passes.clone(),
        exempts_rotational: matches!(text.exempts, Some(Exempt::Rotational)),
        outlasts_bytes: size("outlasts", text.outlasts.as_deref())?,
    })
}

/// A value of a threshold in the unit of its statistic: a time, a number, a size per second, or a percentage.
#[allow(clippy::cast_precision_loss, reason = "thresholds are far below 2^53")]
fn amount(key: &'static str, text: &str, statistic: Statistic) -> Result<f64, LoadError> {
    let number = |text: &str| {
        let parsed = text.trim().parse::<f64>().ok().filter(|number| *number >= 0.0 && number.is_finite());
        parsed.ok_or_else(|| value(key, format!("\"{text}\" is no number")))
    };
    match statistic {
        Statistic::Mean
        | Statistic::P50
        | Statistic::P99
        | Statistic::P999
        | Statistic::Max
        | Statistic::TimeOver => {
            Nanos::parse(text).map(|time| time.0 as f64).map_err(|error| LoadError::quantity(key, &error))
        }
        Statistic::OpsPerS => per_second(key, text),
        Statistic::BytesPerS | Statistic::LowestBytesPerS => {
            size(key, Some(text.trim().strip_suffix("/s").unwrap_or(text))).map(|bytes| bytes as f64)
        }
        Statistic::Size => size(key, Some(text)).map(|bytes| bytes as f64),
        Statistic::ShareOver => {
            let percent = text
                .trim()
                .strip_suffix('%')
                .ok_or_else(|| value(key, format!("\"{text}\" is no percentage")))?;
            // A share of all is never above its mark.
            match number(percent)? {
                percent if percent < 100.0 => Ok(percent / 100.0),
                _ => Err(value(key, format!("\"{text}\" is no percentage below 100%"))),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEED: &str = "title = \"a log\"\nsource = \"here\"\nstrength = \"own\"\n[[job]]\nname = \"log\"\nrw = \"write\"\nfdatasync = 1\n";

    #[test]
    fn a_threshold_has_the_unit_of_its_statistic() {
        let with = |threshold: &str| need("log", &format!("{NEED}[[threshold]]\njob = \"log\"\n{threshold}"));
        let only = |threshold: &str| with(threshold).unwrap().need.thresholds.remove(0);
        let p99 =
            only("of = \"flushes\"\nstatistic = \"p99\"\nat-most = \"10ms\"\ndisputed-until = \"20ms\"");
        assert_eq!((p99.at_most, p99.disputed_until), (Some(1e7), Some(2e7)));
        assert_eq!(
            only("of = \"writes\"\nstatistic = \"bytes/s\"\nat-least = \"209MB/s\"").at_least,
            Some(209e6)
        );
        assert_eq!(only("of = \"flushes\"\nstatistic = \"ops/s\"\nat-least = \"500\"").at_least, Some(500.0));
        assert_eq!(only("of = \"writes\"\nstatistic = \"ops/s\"\nat-least = \"5k\"").at_least, Some(5000.0));
        let sized = only("of = \"writes\"\nstatistic = \"size\"\nat-least = \"64GB\"");
        assert_eq!((sized.at_least, sized.outlasts_bytes), (Some(64e9), 0));
        let lasting =
            only("of = \"writes\"\nstatistic = \"bytes/s\"\nat-least = \"10MB/s\"\noutlasts = \"4GB\"");
        assert_eq!(lasting.outlasts_bytes, 4_000_000_000);
        let exempting =
            only("of = \"writes\"\nstatistic = \"ops/s\"\nat-least = \"500\"\nexempts = \"rotational\"");
        assert!(exempting.exempts_rotational && !p99.exempts_rotational);
        let lenient =
            only("of = \"flushes\"\nstatistic = \"ops/s\"\nat-least = \"500\"\nonly-passes = \"it warns\"");
        assert_eq!((lenient.only_passes.as_str(), p99.only_passes.as_str()), ("it warns", ""));
        let share = only("of = \"writes\"\nstatistic = \"share-over\"\nover = \"8ms\"\nat-most = \"1%\"");
        assert_eq!((share.at_most, share.over_ns), (Some(0.01), Some(8_000_000)));
        let stalled = only(
            "of = \"requests\"\nstatistic = \"time-over\"\nover = \"100ms\"\neach = \"1h\"\nat-most = \"10s\"",
        );
        assert_eq!((stalled.at_most, stalled.each_ns), (Some(1e10), Some(3_600_000_000_000)));
        for (threshold, expected) in [
            ("of = \"reads\"\nstatistic = \"p99\"\nat-most = \"1ms\"", "job log has no reads"),
            ("of = \"writes\"\nstatistic = \"p99\"", "one of at-most and at-least"),
            (
                "of = \"flushes\"\nstatistic = \"p99\"\nat-most = \"10ms\"\ndisputed-until = \"1ms\"",
                "has disputed-until beyond its mark",
            ),
            (
                "of = \"writes\"\nstatistic = \"ops/s\"\nat-least = \"100\"\ndisputed-until = \"500\"",
                "has disputed-until beyond its mark",
            ),
            ("of = \"writes\"\nstatistic = \"p99\"\nat-most = \"1ms\"\nover = \"1ms\"", "only there"),
            ("of = \"writes\"\nstatistic = \"p99\"\nat-most = \"1ms\"\neach = \"1h\"", "has each where"),
            ("of = \"writes\"\nstatistic = \"p99\"\nat-most = \"fast\"", "at-most"),
            ("of = \"writes\"\nstatistic = \"share-over\"\nover = \"1ms\"\nat-most = \"1\"", "no percentage"),
            ("of = \"writes\"\nstatistic = \"share-over\"\nover = \"1ms\"\nat-most = \"100%\"", "below 100%"),
            (
                "of = \"writes\"\nstatistic = \"ops/s\"\nat-least = \"0\"",
                "at-least: \"0\" is no number of requests",
            ),
            ("of = \"writes\"\nstatistic = \"p98\"\nat-most = \"1ms\"", "unknown variant"),
        ] {
            let why = with(threshold).expect_err(threshold).to_string();
            assert!(why.contains(expected), "{threshold}: {why}");
        }
    }

    #[test]
    fn a_load_names_what_is_wrong_with_it() {
        let two = "[[job]]\nname = \"a\"\n[[job]]\nname = \"a\"\n";
        assert_eq!(load(two).unwrap_err().to_string(), "job a is there twice");
        assert!(load("[[job]]\nblocksize = \"4k\"").unwrap_err().to_string().contains("blocksize"));
        let two = load("[[job]]\n[[job]]\nrw = \"write\"").unwrap();
        assert_eq!((two.phases[0].len(), two.is_repeated), (2, true));
        assert!(!load("repeat = false\n[[job]]\n").unwrap().is_repeated);
    }
}
