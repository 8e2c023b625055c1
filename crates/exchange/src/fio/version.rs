//! Which fio wrote a document, and what that means for its figures: fio 2 in its own units is turned into fio 3, and samples of
//! groups have been sums since 3.14; and what fio prints in other formats than JSON, so that a refusal can name it. It reads no option.

use crate::error::ImportError;
use serde_json::{Map, Value};

/// The first version whose documents are read.
const FIRST: u32 = 2;
/// The first of which all count bytes and nanoseconds.
const IN_BYTES: u32 = 3;
/// The first that counts nanoseconds (that of the time before 3.0).
const NANOSECONDS: Version = Version { major: 2, minor: 99 };
/// The first that adds up the samples of a group's jobs (fio's changes to its statistics of March 2019); before, a document has
/// the mean over the jobs, which is that of a single one.
const ADDS_SAMPLES: Version = Version { major: 3, minor: 14 };

/// How far a rate may be from bytes over time, as a share of it and in its own unit: fio cuts both.
const TOLERANCE: (f64, f64) = (0.01, 2.0);

/// Version of fio.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Version {
    major: u32,
    minor: u32,
}

impl Version {
    /// That of a text such as `fio-2.18-59-g618e`.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut numbers = text.trim_start_matches("fio-").split(['.', '-']).map(str::parse);
        Some(Self { major: numbers.next()?.ok()?, minor: numbers.next().and_then(Result::ok).unwrap_or(0) })
    }

    /// Whether the samples of a group are those of its single jobs.
    pub(super) fn samples_single_jobs(self) -> bool {
        self < ADDS_SAMPLES
    }

    /// Whether latencies are whole microseconds.
    pub(super) fn counts_microseconds(self) -> bool {
        self < NANOSECONDS
    }
}

/// Turns a document of fio 2 into one of fio 3: `io_bytes` from KiB into bytes, `lat`, `clat` and `slat` from microseconds into
/// nanoseconds. Any other stays as it is.
///
/// # Errors
/// For older versions, and where bytes and rate of a direction agree in neither unit.
pub(super) fn in_units_of_3(document: &mut Value) -> Result<(), ImportError> {
    let text = document[super::VERSION].as_str().unwrap_or_default().to_owned();
    let Some(version) = Version::parse(&text).filter(|version| version.major < IN_BYTES) else {
        return Ok(());
    };
    let refused = || ImportError::OldFio { version: text.clone() };
    if version.major < FIRST {
        return Err(refused());
    }
    for key in ["jobs", "client_stats"] {
        let jobs = document.get_mut(key).and_then(Value::as_array_mut).into_iter().flatten();
        for direction in jobs.flat_map(directions) {
            to_bytes(direction).ok_or_else(refused)?;
            to_nanoseconds(direction);
        }
    }
    Ok(())
}

fn directions(job: &mut Value) -> impl Iterator<Item = &mut Map<String, Value>> {
    let keys = job.as_object_mut().into_iter().flatten();
    keys.filter(|(key, _)| ["read", "write", "trim", "mixed"].contains(&key.as_str()))
        .filter_map(|(_, direction)| direction.as_object_mut())
}

/// What stands in `io_bytes` is what agrees with the rate, which is in KiB/s in all versions. `None` where nothing does.
fn to_bytes(direction: &mut Map<String, Value>) -> Option<()> {
    let figure = |key: &str| direction.get(key).and_then(Value::as_u64);
    let Some(moved) = figure("io_bytes").filter(|_| !direction.contains_key("io_kbytes")) else {
        return Some(());
    };
    let rate = figure("bw").unwrap_or(0) as f64;
    let per_s = |count: f64| count * 1000.0 / figure("runtime").unwrap_or(0) as f64;
    let agrees = |kib: f64| moved == 0 || is_about(per_s(kib), rate);
    // Of what took no whole millisecond there is no rate.
    if figure("runtime") == Some(0) || agrees(moved as f64) {
        direction.insert("io_bytes".into(), moved.checked_mul(1024)?.into());
        return Some(());
    }
    agrees(moved as f64 / 1024.0).then_some(())
}

/// Whether a rate is that which another figure says.
pub(super) fn is_about(rate: f64, said: f64) -> bool {
    (rate - said).abs() <= TOLERANCE.0 * said.abs() + TOLERANCE.1
}

fn to_nanoseconds(direction: &mut Map<String, Value>) {
    for (old, new) in [("lat", "lat_ns"), ("clat", "clat_ns"), ("slat", "slat_ns")] {
        if direction.contains_key(new) {
            continue;
        }
        if let Some(mut latencies) = direction.remove(old) {
            thousandfold(&mut latencies);
            direction.insert(new.into(), latencies);
        }
    }
}

/// All figures of latencies and of the percentiles in them times a thousand; numbers of I/Os stay.
fn thousandfold(latencies: &mut Value) {
    for (key, value) in latencies.as_object_mut().into_iter().flatten() {
        match (key.as_str(), &mut *value) {
            ("N" | "samples" | "bins", _) => {}
            (_, Value::Object(_)) => thousandfold(value),
            (_, figure) => {
                let whole = figure.as_u64().and_then(|figure| figure.checked_mul(1000)).map(Value::from);
                let shown = whole.or_else(|| figure.as_f64().map(|figure| (figure * 1000.0).into()));
                *figure = shown.unwrap_or(Value::Null);
            }
        }
    }
    // Bins count I/Os by microseconds.
    let bins = latencies.get_mut("bins").and_then(Value::as_object_mut);
    if let Some(bins) = bins {
        *bins = std::mem::take(bins).into_iter().map(|(at, count)| (format!("{at}000"), count)).collect();
    }
}

/// The refusal of a text that fio printed in another format; `None` for a text that is not fio's.
pub(crate) fn other_format(text: &str) -> Option<ImportError> {
    let format = match () {
        () if text.lines().any(is_terse) => "terse",
        () if text.lines().any(is_normal) => "normal",
        () => return None,
    };
    Some(ImportError::FioFormat { format })
}

/// `3;fio-3.33;job;0;0;…`: the version of the format, that of fio, and a hundred figures (fio's documentation, terse output).
fn is_terse(line: &str) -> bool {
    let mut fields = line.split(';');
    let is_version = fields.next().is_some_and(|field| matches!(field, "2" | "3" | "4" | "5"));
    is_version && fields.next().is_some_and(|field| field.starts_with("fio-"))
}

/// `job: (groupid=0, jobs=1): err= 0: pid=1: Sat Nov 21 …`, the head of the figures of a job.
fn is_normal(line: &str) -> bool {
    line.contains(": (groupid=") && line.contains(": err=")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn versions_are_numbers() {
        for (text, expected) in [
            ("fio-3.33", Some((3, 33))),
            ("fio-2.18-59-g618e", Some((2, 18))),
            ("fio-3.1-dirty", Some((3, 1))),
            ("fio-3.13", Some((3, 13))),
            ("fio-4", Some((4, 0))),
            ("3.7", Some((3, 7))),
            ("fio-git", None),
            ("", None),
        ] {
            assert_eq!(Version::parse(text).map(|one| (one.major, one.minor)), expected, "{text}");
        }
        let is_single = |text| Version::parse(text).is_some_and(Version::samples_single_jobs);
        assert_eq!(
            ["fio-2.2", "fio-3.1", "fio-3.13", "fio-3.14", "fio-3.33", "fio-4.0"].map(is_single),
            [true, true, true, false, false, false]
        );
    }

    #[test]
    fn the_units_of_fio_2_are_those_that_agree() {
        let converted = |version: &str, direction: Value| {
            let mut document = json!({ "fio version": version, "jobs": [{ "read": direction }] });
            in_units_of_3(&mut document).map(|()| document["jobs"][0]["read"].clone())
        };
        let kib = json!({ "io_bytes": 2048, "bw": 1024, "runtime": 2000, "lat": { "min": 3, "mean": 4.5, "N": 7, "percentile": { "50.0": 4 }, "bins": { "4": 7 } } });
        let read = converted("fio-2.18", kib.clone()).unwrap();
        assert_eq!(read["io_bytes"], 2_097_152);
        assert_eq!(
            read["lat_ns"],
            json!({ "min": 3000, "mean": 4500.0, "N": 7, "percentile": { "50.0": 4000 }, "bins": { "4000": 7 } })
        );
        assert_eq!(read["bw"], 1024);
        // What stands there is left alone where it agrees as it is, and in later versions.
        let bytes = json!({ "io_bytes": 2_097_152, "bw": 1024, "runtime": 2000 });
        assert_eq!(converted("fio-2.99", bytes.clone()).unwrap(), bytes);
        assert_eq!(converted("fio-3.0", kib.clone()).unwrap(), kib);
        let said = |version, direction| converted(version, direction).unwrap_err().to_string();
        let neither = json!({ "io_bytes": 77, "bw": 1024, "runtime": 2000 });
        assert_eq!(
            said("fio-2.18", neither),
            "it is of fio-2.18, and in which units that counts is not known; rdsk reads fio 2 and 3"
        );
        assert!(said("fio-1.59", kib).starts_with("it is of fio-1.59, "));
    }

    #[test]
    fn formats_are_told_by_their_lines() {
        for (text, format) in [
            ("fio: note\n3;fio-3.33;randread;0;0;24576;1\n", Some("terse")),
            (
                "r: (g=0): rw=randread\nfio-3.33\n\nr: (groupid=0, jobs=1): err= 0: pid=7: Sat\n",
                Some("normal"),
            ),
            ("3;fish-3.33;x\n(groupid=\nhello", None),
            ("", None),
        ] {
            let told = other_format(text).map(|error| error.to_string());
            assert_eq!(told.is_some(), format.is_some(), "{text}");
            assert!(told.is_none_or(|told| format.is_some_and(|format| told.contains(format))), "{text}");
        }
    }
}
