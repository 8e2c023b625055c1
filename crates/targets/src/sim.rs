//! Simulated targets: `sim:NAME` and `sim:./file.toml`, each followed by `/LUN` if there are several. Writing to one
//! touches nothing real, so every access is allowed.

use crate::error::TargetError;
use rdsk_disk::{Device as Model, System};
use std::path::Path;
use std::sync::Arc;

/// The prefix of a simulated target's name.
pub const SIM_PREFIX: &str = "sim:";
/// Largest file of a system that is read; the built-in ones have a few KiB.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// One LUN of a simulated system.
#[derive(Clone, Debug, PartialEq)]
pub struct Simulated {
    /// The system, checked.
    pub system: Arc<System>,
    /// Its LUN, from 0.
    pub lun: usize,
}

/// The system of a name without the prefix: a built-in one, or a file if it contains a slash or ends in `.toml`.
///
/// # Errors
/// If there is no such system or file, or its text does not describe a system: with line, key and reason.
pub fn load_system(name: &str) -> Result<System, TargetError> {
    let shown = rdsk_units::printable(name);
    let is_file = name.contains('/') || Path::new(name).extension().is_some_and(|end| end == "toml");
    let wrong = |error| TargetError::Sim { name: shown.clone(), source: error };
    if !is_file {
        return rdsk_disk::load(name).map_err(wrong);
    }
    let unreadable = |reason: String| TargetError::SimFile { path: shown.clone(), reason };
    let size = std::fs::metadata(name).map_err(|error| unreadable(error.to_string()))?;
    if !size.is_file() || size.len() > MAX_FILE_BYTES {
        return Err(unreadable("it is not a file of at most 1 MiB".into()));
    }
    let text = std::fs::read_to_string(name).map_err(|error| unreadable(error.to_string()))?;
    rdsk_disk::parse(name, &text).map_err(wrong)
}

/// The names of all LUNs of a simulated target if the name has no LUN: `sim:tms-ramsan-2` is `sim:tms-ramsan-2/0` and
/// `/1`. Every other name stays as it is.
///
/// # Errors
/// As [`load_system`].
pub fn each_lun(name: &str) -> Result<Vec<String>, TargetError> {
    let Some(rest) = name.strip_prefix(SIM_PREFIX) else { return Ok(vec![name.to_owned()]) };
    let (system, lun) = split(rest);
    let luns = load_system(system)?.params.luns.len();
    if lun.is_some() || luns == 1 {
        return Ok(vec![name.to_owned()]);
    }
    Ok((0..luns).map(|lun| format!("{name}/{lun}")).collect())
}

/// The name of the system and the number of the LUN, if the name has one.
pub(crate) fn split(rest: &str) -> (&str, Option<usize>) {
    let parts = rest.rsplit_once('/').filter(|(system, _)| !["", ".", ".."].contains(system));
    let named = parts.and_then(|(system, lun)| Some((system, Some(lun.parse().ok()?))));
    named.unwrap_or((rest, None))
}

impl Simulated {
    /// The model of the LUN's device as it is at time 0; `seed` determines what is random.
    pub fn device(&self, seed: u64) -> Model {
        Model::of_lun(&self.system.params.luns[self.lun], seed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Access, Permission, Roots, authorize, claim};
    use rdsk_model::{ProblemKind, TargetKind};

    #[test]
    fn a_built_in_system_is_claimed_for_writing_without_a_flag() {
        let roots = Roots::default();
        let examined = crate::examine("sim:freebsd-wd800jd", &roots).unwrap();
        assert_eq!(examined.target.kind, TargetKind::Sim);
        assert_eq!(examined.target.size_bytes, 80_026_361_856);
        assert_eq!(examined.target.device.as_ref().unwrap().rotational, Some(true));
        authorize(&examined, Access::Write, &Permission::default()).unwrap();
        let claim = claim(examined, Access::Write, &Permission::default(), &roots).unwrap();
        assert_eq!(claim.simulated().unwrap().system.name, "freebsd-wd800jd");
        assert!(claim.open(crate::OpenMode::READ).is_err(), "there is nothing to open");
    }

    #[test]
    fn a_write_cache_that_is_off_is_none() {
        for (name, cache) in [("sim:linux-disk", "write back"), ("sim:linux-disk-nocache", "write through")] {
            let target = crate::examine(name, &Roots::default()).unwrap().target;
            assert_eq!(target.device.unwrap().write_cache.as_deref(), Some(cache), "{name}");
        }
    }

    #[test]
    fn a_system_without_direct_io_says_so() {
        for (name, has_direct) in [("sim:solaris-zfs", false), ("sim:linux-10k", true)] {
            let target = crate::examine(name, &Roots::default()).unwrap().target;
            assert_eq!(target.direct_io, Some(has_direct), "{name}");
        }
    }

    #[test]
    fn luns_are_named_by_number() {
        assert_eq!(each_lun("sim:wd2500").unwrap(), ["sim:wd2500"]);
        let luns = each_lun("sim:tms-ramsan-2").unwrap();
        assert_eq!(luns, ["sim:tms-ramsan-2/0", "sim:tms-ramsan-2/1", "sim:tms-ramsan-2/2"]);
        assert_eq!(each_lun(&luns[1]).unwrap(), [luns[1].clone()]);
        assert_eq!(each_lun("/dev/sda").unwrap(), ["/dev/sda"]);
        let error = crate::examine("sim:wd2500/3", &Roots::default()).unwrap_err().problem();
        assert_eq!((error.kind, error.code.as_str()), (ProblemKind::Usage, "no-lun"));
    }

    #[test]
    fn wrong_names_and_figures_are_usage_errors_with_line_key_and_reason() {
        let roots = Roots::default();
        let unknown = crate::examine("sim:nosuch", &roots).unwrap_err().problem();
        assert_eq!((unknown.kind, unknown.code.as_str()), (ProblemKind::Usage, "unknown-sim"));
        assert!(unknown.hint.unwrap().contains("rdsk sim list"));
        let misspelt = crate::examine("sim:wd250", &roots).unwrap_err().problem();
        assert!(misspelt.hint.as_ref().is_some_and(|hint| hint.contains("wd2500")), "{misspelt:?}");
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("mine.toml");
        std::fs::write(&path, "extends = \"wd2500\"\n[host]\nbuffer_bytes = -1\n").unwrap();
        let negative = crate::examine(&format!("sim:{}", path.display()), &roots).unwrap_err().problem();
        assert_eq!(negative.kind, ProblemKind::Usage);
        assert!(
            negative.message.contains("line 3") && negative.message.contains("buffer_bytes"),
            "{negative:?}"
        );
        std::fs::write(&path, "extends = \"wd2500\"\n").unwrap();
        crate::examine(&format!("sim:{}", path.display()), &roots).unwrap();
        let missing = crate::examine("sim:./nosuch.toml", &roots).unwrap_err().problem();
        assert_eq!((missing.kind, missing.code.as_str()), (ProblemKind::Usage, "unreadable-sim"));
    }
}
