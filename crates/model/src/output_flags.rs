//! The flags of a command line that say where the answer goes, how it looks or what it is called: nothing of what is measured. Two
//! command lines that differ in these alone ask the same.

/// Those that a value follows, by their long names.
pub const OUTPUT_FLAGS: &[&str] =
    &["json", "markdown", "csv", "openmetrics", "report", "label", "resume", "history", "color"];
/// Those that stand alone.
pub const OUTPUT_SWITCHES: &[&str] = &["json-compact", "details", "dry-run", "no-history", "quiet", "ascii"];
/// The one that has a short name.
const QUIET: &str = "-q";

/// The words of a command line without its flags of output and their values; what follows a `--` stays.
pub fn without_output(words: &[String]) -> Vec<&str> {
    let end = words.iter().position(|word| word == "--").unwrap_or(words.len());
    let (flagged, rest) = words.split_at(end);
    let mut kept = Vec::new();
    let mut flagged = flagged.iter();
    while let Some(word) = flagged.next() {
        let long = word.strip_prefix("--").unwrap_or_default();
        let (name, value) = long.split_once('=').map_or((long, None), |(name, value)| (name, Some(value)));
        if OUTPUT_FLAGS.contains(&name) {
            if value.is_none() {
                flagged.next();
            }
        } else if word != QUIET && !OUTPUT_SWITCHES.contains(&name) {
            kept.push(word.as_str());
        }
    }
    kept.extend(rest.iter().map(String::as_str));
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_says_what_is_measured_stays() {
        let of = |line: &str| {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            without_output(&words).join(" ")
        };
        assert_eq!(
            of("run /dev/sda --json a.json --budget 20s -q --report=x.html"),
            "run /dev/sda --budget 20s"
        );
        assert_eq!(of("run --csv x.csv --rw read --details --markdown x"), "run --rw read");
        assert_eq!(of("run --iodepth 4 -- --json x"), "run --iodepth 4 -- --json x");
        assert_eq!(of("run --jsons x -p - quiet json"), "run --jsons x -p - quiet json");
        assert_eq!(of("run --json"), "run");
    }
}
