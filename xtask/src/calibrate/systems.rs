//! The simulated systems of the trials: a device without mechanics below a host whose direct calls cost no time, so that the rate is
//! that of the device, and what is done to its pace. It measures nothing.

use anyhow::Result;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// What makes a device unsteady. The noise goes on with virtual time, in steps of 0.1 s where it has steps: the visits of one
/// cell are seconds apart, and a noise that went on with the I/Os would be a different one for every cell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Noise {
    /// Its name on the page.
    pub(crate) name: &'static str,
    /// The key of `luns.faults`; empty for a steady device.
    pub(crate) key: &'static str,
    /// The mean pace over a long time.
    pub(crate) mean: f64,
}

const fn noise(name: &'static str, key: &'static str) -> Noise {
    Noise { name, key, mean: 1.0 }
}

pub(crate) const STEADY: Noise = noise("steady", "");
pub(crate) const INDEPENDENT: Noise = noise(
    "independent, 10%",
    "pace.noise.autoregressive = { sigma = 0.1, rho = 0.0, step_ns = 100_000_000 }",
);
pub(crate) const AR_90: Noise =
    noise("AR(1) 0.9, 10%", "pace.noise.autoregressive = { sigma = 0.1, rho = 0.9, step_ns = 100_000_000 }");
pub(crate) const AR_99: Noise = noise(
    "AR(1) 0.99, 10%",
    "pace.noise.autoregressive = { sigma = 0.1, rho = 0.99, step_ns = 100_000_000 }",
);
pub(crate) const LEVELS: Noise =
    noise("two levels ±20%, 5 s each", "pace.noise.levels = { size = 0.2, dwell_ns = 5_000_000_000 }");
pub(crate) const SINE: Noise =
    noise("sine ±10% of 60 s", "pace.noise.sine = { size = 0.1, period_ns = 60_000_000_000 }");
pub(crate) const FLICKER: Noise =
    noise("1/f, 10%", "pace.noise.flicker = { sigma = 0.1, octaves = 11, step_ns = 100_000_000 }");
pub(crate) const SHORT_STALLS: Noise = Noise {
    mean: 0.9,
    ..noise(
        "stalls, 10% of each 1 to 5 s",
        "pace.noise.stalls = { share = 0.1, least_ns = 1_000_000_000, most_ns = 5_000_000_000 }",
    )
};
pub(crate) const LONG_STALLS: Noise = Noise {
    mean: 0.9,
    ..noise(
        "stalls, 10% of each 5 to 20 s",
        "pace.noise.stalls = { share = 0.1, least_ns = 5_000_000_000, most_ns = 20_000_000_000 }",
    )
};

const HOST: &str = include_str!("host.toml");

/// The device of most trials, slower by this factor: one request after the other, each 1 ms and its bytes at 200 MB/s.
fn memory(factor: f64) -> String {
    let (command_ns, bytes_per_s) = (1e6 * factor, 200e6 / factor);
    format!(
        "device.ram = {{ capacity_bytes = 8_589_934_592, read_command_ns = {command_ns:.0}, write_command_ns = {command_ns:.0}, \
         read_bytes_per_s = {bytes_per_s:.1}, write_bytes_per_s = {bytes_per_s:.1}, servers = 1, write_buffer_bytes = 0 }}"
    )
}

/// A disk that turns so fast and seeks so quickly that a block of 1 MiB is nearly all transfer, with the given sectors on the
/// tracks of its two halves.
fn platter(sectors: [u32; 2]) -> String {
    let zone = |sectors: u32| format!("{{ cylinders = 40_000, sectors_per_track = {sectors} }}");
    format!(
        "device.disk = {{ capacity_bytes = 16_384_000_000, rpm = 60_000.0, heads = 4, zones = [{}, {}], head_switch_ns = 0, \
         seek_track_ns = 1_000, seek_average_ns = 100_000, seek_full_ns = 200_000, command_ns = 50_000, \
         interface_bytes_per_s = 1e9, read_ahead_bytes = 0, read_segments = 0 }}",
        zone(sectors[0]),
        zone(sectors[1])
    )
}

/// A system with a LUN for each of these devices.
pub(crate) struct Luns {
    text: String,
}

impl Luns {
    /// One LUN of memory.
    pub(crate) fn memory(noise: &Noise) -> Self {
        Self::slower_memory(noise, 1.0)
    }

    /// One LUN of memory that is slower by this factor.
    pub(crate) fn slower_memory(noise: &Noise, factor: f64) -> Self {
        Self { text: HOST.to_owned() }.lun(&memory(factor), noise)
    }

    /// Two LUNs of memory, the second one slower by this factor; their noise is the same or each has its own.
    pub(crate) fn pair(noise: &Noise, is_common: bool, factor: f64) -> Self {
        let pair = Self::memory(noise).lun(&memory(factor), noise);
        if is_common { pair.with("pace.same_as = 0") } else { pair }
    }

    /// One disk with tracks.
    pub(crate) fn platter(sectors: [u32; 2], noise: &Noise) -> Self {
        Self { text: HOST.to_owned() }.lun(&platter(sectors), noise)
    }

    /// Adds a LUN.
    fn lun(mut self, device: &str, noise: &Noise) -> Self {
        write!(self.text, "\n[[luns]]\n{device}\n").expect("a String takes everything");
        if noise.key.is_empty() { self } else { self.with(noise.key) }
    }

    /// Adds a key to the faults of the last LUN.
    pub(crate) fn with(mut self, key: &str) -> Self {
        writeln!(self.text, "faults.{key}").expect("a String takes everything");
        self
    }

    /// Writes the system into a directory; its name as a target.
    pub(crate) fn write(&self, directory: &Path, name: &str) -> Result<String> {
        let path: PathBuf = directory.join(format!("{name}.toml"));
        std::fs::write(&path, &self.text)?;
        Ok(format!("sim:{}", path.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_system_of_the_trials_is_possible() {
        let noises = [STEADY, INDEPENDENT, AR_90, AR_99, LEVELS, SINE, FLICKER, SHORT_STALLS, LONG_STALLS];
        for noise in &noises {
            let all = [
                Luns::memory(noise),
                Luns::memory(noise).with("late = { share = 0.1, by_ns = 3_000_000 }"),
                Luns::slower_memory(noise, 1.05),
                Luns::pair(noise, true, 1.1),
                Luns::pair(noise, false, 1.0),
                Luns::platter([100, 110], noise),
            ];
            for luns in all {
                let system = rdsk_disk::parse("mine", &luns.text);
                let system = system.unwrap_or_else(|error| panic!("{}: {error}\n{}", noise.name, luns.text));
                let faults = system.params.luns[0].faults.as_ref();
                let mean =
                    faults.and_then(|faults| faults.pace.as_ref()).map_or(1.0, rdsk_disk::PaceParams::mean);
                assert!((mean - noise.mean).abs() < 1e-12, "{}", noise.name);
            }
        }
    }
}
