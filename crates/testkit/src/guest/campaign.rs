//! Which scenarios run today, and where their results are noted. The suite runs the core; `cargo xtask campaign guest` runs
//! all, and makes a table of the notes.

use std::path::Path;
use std::time::Duration;

/// The environment variable that names the current campaigns, separated by commas.
pub const CAMPAIGN_VARIABLE: &str = "RDSK_CAMPAIGN";
/// The environment variable that names a file to which every scenario of a campaign appends its line.
pub const NOTES_VARIABLE: &str = "RDSK_CAMPAIGN_NOTES";

/// When a scenario runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tier {
    /// In every run of the suite.
    Core,
    /// In a campaign only.
    Extended,
}

impl Tier {
    /// Whether scenarios of this kind run now.
    pub fn is_wanted(self) -> bool {
        self == Self::Core || is_under_way(&std::env::var(CAMPAIGN_VARIABLE).unwrap_or_default())
    }
}

fn is_under_way(list: &str) -> bool {
    list.split(',').any(|name| name.trim() == "guest")
}

/// Records the result of one scenario for a campaign: its group, its name, the result in a few words, its time.
///
/// # Panics
/// If the line cannot be written to the file.
pub fn note(group: &str, name: &str, result: &str, took: Duration) {
    let Some(path) = std::env::var_os(NOTES_VARIABLE).filter(|path| !path.is_empty()) else { return };
    let result = result.lines().next().unwrap_or_default().replace(['\t', '|'], " ");
    crate::tool::append(Path::new(&path), &format!("{group}\t{name}\t{result}\t{:.1}", took.as_secs_f64()));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extended_scenarios_wait_for_their_campaign() {
        assert!(Tier::Core.is_wanted());
        assert!(is_under_way("guest") && is_under_way("bench, guest"));
        assert!(!is_under_way("") && !is_under_way("guests"));
    }
}
