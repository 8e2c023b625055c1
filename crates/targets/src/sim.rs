//! Simulated targets: `sim:NAME` and `sim:./file.toml`, each with `/LUN` behind it where there are several. Nothing that
//! exists is touched by writing to one, so nothing is judged.

use crate::error::TargetError;
use crate::examine::{Examined, Place};
use rdsk_disk::{ArrayParams, Device as Model, DeviceParams, DiskParams, Host, System};
use rdsk_model::{ArrayFacts, Device, Target, TargetKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What a simulated target's name begins with.
pub const SIM_PREFIX: &str = "sim:";
/// Largest text of a system that is read; the built-in ones have a few KiB.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// One LUN of a simulated system.
#[derive(Clone, Debug, PartialEq)]
pub struct Simulated {
    /// The system, checked.
    pub system: Arc<System>,
    /// Its LUN, from 0.
    pub lun: usize,
}

/// The system that a name means, without the prefix: a built-in one, or a file when it holds a slash or ends in `.toml`.
///
/// # Errors
/// When there is no such system or file, or its text describes no system: with line, key and reason.
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
        return Err(unreadable("it is no file of at most 1 MiB".into()));
    }
    let text = std::fs::read_to_string(name).map_err(|error| unreadable(error.to_string()))?;
    rdsk_disk::parse(name, &text).map_err(wrong)
}

/// The names of all LUNs of a simulated target that names none: `sim:tms-ramsan-2` is `sim:tms-ramsan-2/0` and `/1`. Every
/// other name stays as it is.
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

/// Examines the simulated target `name`, of which `rest` follows the prefix.
pub(crate) fn examine(name: &str, rest: &str) -> Result<Examined, TargetError> {
    let (system, lun) = split(rest);
    let system = load_system(system)?;
    let luns = system.params.luns.len();
    let lun = lun.unwrap_or(0);
    if lun >= luns {
        return Err(TargetError::NoLun { name: rdsk_units::printable(name), lun, luns });
    }
    let target = target(name, &system, lun);
    Ok(Examined {
        target,
        path: PathBuf::from(name),
        place: Place::Sim(Simulated { system: Arc::new(system), lun }),
        identities: Vec::new(),
        no_identities: Vec::new(),
        uses: Vec::new(),
        doubts: Vec::new(),
        signatures: Vec::new(),
        allocation: None,
    })
}

/// The name of the system and the number of the LUN, where one is named.
fn split(rest: &str) -> (&str, Option<usize>) {
    match rest.rsplit_once('/') {
        Some((system, lun)) if !system.is_empty() && system != "." && system != ".." => match lun.parse() {
            Ok(lun) => (system, Some(lun)),
            Err(_) => (rest, None),
        },
        _ => (rest, None),
    }
}

fn target(name: &str, system: &System, lun: usize) -> Target {
    let host = &system.params.host;
    let device = &system.params.luns[lun].device;
    let size_bytes = Host::new(&system.params, 0).capacity_bytes(lun);
    let kernel_name = rdsk_units::printable(&rdsk_disk::device_name(&system.name, lun));
    let disk = disk_of(device);
    let has_cache = |disk: &DiskParams| disk.write_cache.as_ref().is_some_and(|cache| cache.bytes > 0);
    let cached = match device {
        DeviceParams::Disk(disk) => has_cache(disk),
        DeviceParams::Array(array) => array.write_back_bytes > 0 || disk.is_some_and(has_cache),
        DeviceParams::Ram(_) | DeviceParams::Ssd(_) => false,
    };
    Target {
        index: 0,
        name: name.to_owned(),
        kind: TargetKind::Sim,
        path: None,
        size_bytes,
        filesystem: None,
        stack: vec![kernel_name.clone()],
        device: Some(Device {
            name: kernel_name,
            model: Some(rdsk_units::printable(&system.params.about)),
            size_bytes: Some(size_bytes),
            logical_block_bytes: Some(host.sector_bytes),
            physical_block_bytes: Some(host.sector_bytes),
            alignment_offset_bytes: Some(0),
            max_request_bytes: Some(host.direct_request_bytes),
            rotational: Some(disk.is_some()),
            write_cache: Some(if cached { "write back" } else { "write through" }.to_owned()),
            fua: Some(false),
            iostats: Some(true),
            array: array_of(device).map(|array| ArrayFacts {
                device: rdsk_units::printable(&rdsk_disk::device_name(&system.name, lun)),
                source: "sim".into(),
                members: Some(array.members as u64),
                ..ArrayFacts::default()
            }),
            ..Device::default()
        }),
        made_by_rdsk: false,
        direct_io: Some(true),
        direct_align_bytes: Some(host.sector_bytes),
        nowait: None,
    }
}

/// The array that a device is.
fn array_of(device: &DeviceParams) -> Option<&ArrayParams> {
    match device {
        DeviceParams::Array(array) => Some(array),
        _ => None,
    }
}

/// The mechanics at the bottom of a device, where it has any.
fn disk_of(device: &DeviceParams) -> Option<&DiskParams> {
    match device {
        DeviceParams::Disk(disk) => Some(disk),
        DeviceParams::Array(array) => disk_of(&array.member),
        DeviceParams::Ram(_) | DeviceParams::Ssd(_) => None,
    }
}

impl Simulated {
    /// The model of the LUN's device as it is at time 0; `seed` decides what is chance.
    #[must_use]
    pub fn device(&self, seed: u64) -> Model {
        Model::of_lun(&self.system.params.luns[self.lun], seed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Access, Permission, Roots, authorize, claim};
    use rdsk_model::ProblemKind;

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
        assert!(unknown.hint.unwrap().contains("wd2500"));
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
