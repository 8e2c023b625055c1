//! The position of data under the heads and the time to reach it: zones, rotation, switches, seeks. It models no cache, no
//! command and no queue.
//!
//! Every sector has a *stream position*: the time in ns that a head needs to reach it when it reads the whole disk from
//! sector 0 without a pause. Tracks are skewed by exactly their switch times, so the position modulo one revolution is also
//! the sector's angle, and reading a range takes the difference of its ends' positions.

use crate::cache::Extent;
use crate::params::DiskParams;

/// A sector that arrives within this time before the end of a revolution was not missed: the difference is the rounding of a
/// completion to whole nanoseconds.
const ROUNDING_NS: f64 = 4.0;

/// A disk's mechanics. Positions are sectors, times nanoseconds.
#[derive(Clone, Debug)]
pub(crate) struct Mechanics {
    pub(crate) revolution_ns: f64,
    heads: u64,
    head_switch_ns: f64,
    cylinder_switch_ns: f64,
    zones: Vec<Zone>,
    seek: SeekCurve,
}

#[derive(Clone, Copy, Debug)]
struct Zone {
    first_sector: u64,
    first_cylinder: u64,
    sectors_per_track: u64,
    first_stream_ns: f64,
}

/// The seek curve a + b·√d + c·d through the three figures that data sheets give (E. K. Lee and R. H. Katz, "An analytic
/// performance model of disk arrays", 1993).
#[derive(Clone, Copy, Debug)]
struct SeekCurve {
    a: f64,
    b: f64,
    c: f64,
    least_ns: f64,
}

impl SeekCurve {
    fn new(params: &DiskParams, cylinders: u64) -> SeekCurve {
        let least_ns = params.seek_track_ns as f64;
        let full = cylinders.saturating_sub(1).max(1) as f64;
        let third = (full / 3.0).max(1.0);
        // Two equations for b and c once a is eliminated with the seek to the next cylinder.
        let (x1, y1, z1) = (third.sqrt() - 1.0, third - 1.0, params.seek_average_ns as f64 - least_ns);
        let (x2, y2, z2) = (full.sqrt() - 1.0, full - 1.0, params.seek_full_ns as f64 - least_ns);
        let determinant = x1 * y2 - x2 * y1;
        let (b, c) = if determinant.abs() < 1e-9 {
            (0.0, if y2 > 0.0 { z2 / y2 } else { 0.0 })
        } else {
            ((z1 * y2 - z2 * y1) / determinant, (x1 * z2 - x2 * z1) / determinant)
        };
        SeekCurve { a: least_ns - b - c, b, c, least_ns }
    }

    fn time_ns(&self, cylinders: u64) -> f64 {
        if cylinders == 0 {
            return 0.0;
        }
        let distance = cylinders as f64;
        (self.a + self.b * distance.sqrt() + self.c * distance).max(self.least_ns)
    }
}

impl Mechanics {
    pub(crate) fn new(params: &DiskParams) -> Mechanics {
        let mut mechanics = Mechanics {
            revolution_ns: 60e9 / params.rpm,
            heads: params.heads,
            head_switch_ns: params.head_switch_ns as f64,
            cylinder_switch_ns: params.seek_track_ns as f64,
            zones: Vec::with_capacity(params.zones.len()),
            seek: SeekCurve::new(params, params.zones.iter().map(|zone| zone.cylinders).sum()),
        };
        let (mut first_sector, mut first_cylinder) = (0, 0);
        for zone in &params.zones {
            mechanics.zones.push(Zone {
                first_sector,
                first_cylinder,
                sectors_per_track: zone.sectors_per_track,
                first_stream_ns: first_cylinder as f64 * mechanics.cylinder_ns(),
            });
            first_sector += zone.cylinders * params.heads * zone.sectors_per_track;
            first_cylinder += zone.cylinders;
        }
        mechanics
    }

    pub(crate) fn stream_ns(&self, sector: u64) -> f64 {
        let zone = self.zone_of(sector);
        let within = sector - zone.first_sector;
        let (track, on_track) = (within / zone.sectors_per_track, within % zone.sectors_per_track);
        let (cylinder, head) = (track / self.heads, track % self.heads);
        zone.first_stream_ns
            + cylinder as f64 * self.cylinder_ns()
            + head as f64 * (self.revolution_ns + self.head_switch_ns)
            + on_track as f64 * self.revolution_ns / zone.sectors_per_track as f64
    }

    /// Time to pass over `sectors` from `sector` on, switches included, from the start of the first to the end of the last.
    pub(crate) fn transfer_ns(&self, sector: u64, sectors: u64) -> f64 {
        if sectors == 0 {
            return 0.0;
        }
        let last = sector + sectors - 1;
        let zone = self.zone_of(last);
        self.stream_ns(last) - self.stream_ns(sector) + self.revolution_ns / zone.sectors_per_track as f64
    }

    /// The sector that starts at or next after a stream position, as a reading head reaches it; at most `limit`.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "positions are not negative and far below 2^53"
    )]
    pub(crate) fn sector_at(&self, stream_ns: f64, limit: u64) -> u64 {
        let index = self.zones.partition_point(|zone| zone.first_stream_ns <= stream_ns).saturating_sub(1);
        let zone = &self.zones[index];
        let within_ns = (stream_ns - zone.first_stream_ns).max(0.0);
        let cylinder = (within_ns / self.cylinder_ns()) as u64;
        let in_cylinder_ns = within_ns - cylinder as f64 * self.cylinder_ns();
        let track_ns = self.revolution_ns + self.head_switch_ns;
        let head = ((in_cylinder_ns / track_ns) as u64).min(self.heads - 1);
        let on_track_ns = in_cylinder_ns - head as f64 * track_ns;
        let sectors = zone.sectors_per_track as f64;
        let on_track = ((on_track_ns / self.revolution_ns * sectors) as u64).min(zone.sectors_per_track);
        let track = cylinder * self.heads + head;
        (zone.first_sector + track * zone.sectors_per_track + on_track).min(limit)
    }

    pub(crate) fn cylinder_of(&self, sector: u64) -> u64 {
        let zone = self.zone_of(sector);
        zone.first_cylinder + (sector - zone.first_sector) / (zone.sectors_per_track * self.heads)
    }

    /// Time from `now_ns` with the head on `cylinder` until it reaches `sector`: seek, then rotation.
    pub(crate) fn position_ns(&self, now_ns: f64, cylinder: u64, sector: u64) -> f64 {
        self.wait_after_seek_ns(now_ns, self.seek_ns(cylinder, sector), sector)
    }

    /// The extent whose start the head reaches first from `cylinder`; of several, the first of them.
    pub(crate) fn nearest<'e>(
        &self,
        now_ns: f64,
        cylinder: u64,
        extents: impl Iterator<Item = &'e Extent>,
    ) -> Option<&'e Extent> {
        let mut nearest: Option<(f64, &Extent)> = None;
        for extent in extents {
            let least_ns = nearest.map_or(f64::INFINITY, |(ns, _)| ns);
            let seek_ns = self.seek_ns(cylinder, extent.first);
            // Most lie farther than the head can come in the time that another one takes, turn included.
            if seek_ns < least_ns {
                let reach_ns = self.wait_after_seek_ns(now_ns, seek_ns, extent.first);
                if reach_ns < least_ns {
                    nearest = Some((reach_ns, extent));
                }
            }
        }
        nearest.map(|(_, extent)| extent)
    }

    fn seek_ns(&self, cylinder: u64, sector: u64) -> f64 {
        self.seek.time_ns(self.cylinder_of(sector).abs_diff(cylinder))
    }

    fn wait_after_seek_ns(&self, now_ns: f64, seek_ns: f64, sector: u64) -> f64 {
        let wait_ns = (self.stream_ns(sector) - now_ns - seek_ns).rem_euclid(self.revolution_ns);
        if self.revolution_ns - wait_ns < ROUNDING_NS { seek_ns } else { seek_ns + wait_ns }
    }

    fn cylinder_ns(&self) -> f64 {
        self.heads as f64 * self.revolution_ns
            + (self.heads - 1) as f64 * self.head_switch_ns
            + self.cylinder_switch_ns
    }

    fn zone_of(&self, sector: u64) -> &Zone {
        let index = self.zones.partition_point(|zone| zone.first_sector <= sector);
        &self.zones[index.saturating_sub(1)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::ZoneParams;

    fn params() -> DiskParams {
        DiskParams {
            capacity_bytes: 512 * 100 * 60 * 4,
            partition_start_bytes: 0,
            physical_sector_bytes: 512,
            rpm: 6000.0,
            heads: 4,
            zones: vec![
                ZoneParams { cylinders: 60, sectors_per_track: 100 },
                ZoneParams { cylinders: 90, sectors_per_track: 50 },
            ],
            head_switch_ns: 1_000_000,
            seek_track_ns: 2_000_000,
            seek_average_ns: 8_000_000,
            seek_full_ns: 15_000_000,
            command_ns: 0,
            interface_bytes_per_s: 1e8,
            read_ahead_bytes: 0,
            read_segments: 0,
            write_cache: None,
        }
    }

    #[test]
    fn a_track_takes_a_turn_and_a_zone_halves_the_rate() {
        let mechanics = Mechanics::new(&params());
        assert_eq!(mechanics.transfer_ns(0, 100), 10e6);
        assert_eq!(mechanics.stream_ns(100), 11e6, "the next track begins one head switch later");
        assert_eq!(mechanics.stream_ns(400), 45e6, "four turns, three switches, one seek");
        let second = 60 * 4 * 100;
        assert!((mechanics.transfer_ns(second, 50) - 10e6).abs() < 1e-3);
        assert_eq!(mechanics.cylinder_of(second), 60);
        assert_eq!(mechanics.cylinder_of(second + 90 * 4 * 50 - 1), 149, "the last of 150 cylinders");
    }

    #[test]
    fn the_nearest_is_what_a_look_at_all_finds() {
        let mechanics = Mechanics::new(&params());
        let mut state: u64 = 1;
        let mut random = |most: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % most
        };
        for _ in 0..200 {
            let extents: Vec<Extent> =
                (0..30).map(|_| random(40_000)).map(|first| Extent { first, end: first + 8 }).collect();
            let (now_ns, cylinder) = (random(1 << 30) as f64, random(150));
            let reach = |extent: &Extent| mechanics.position_ns(now_ns, cylinder, extent.first);
            let nearest = extents.iter().min_by(|a, b| reach(a).total_cmp(&reach(b)));
            assert_eq!(mechanics.nearest(now_ns, cylinder, extents.iter()), nearest);
        }
        assert_eq!(mechanics.nearest(0.0, 0, [].iter()), None);
    }

    #[test]
    fn the_seek_curve_passes_through_the_data_sheet() {
        let mechanics = Mechanics::new(&params());
        assert_eq!(mechanics.seek.time_ns(0), 0.0);
        assert!((mechanics.seek.time_ns(1) - 2e6).abs() < 1.0);
        assert!((mechanics.seek.time_ns(149) - 15e6).abs() < 1.0);
        assert!((mechanics.seek.time_ns(50) - 8e6).abs() < 1e5);
        assert!((1..149).all(|d| mechanics.seek.time_ns(d) <= mechanics.seek.time_ns(d + 1)));
    }

    #[test]
    fn the_sector_at_a_position_is_the_one_that_has_it() {
        let mechanics = Mechanics::new(&params());
        for sector in [0, 1, 99, 100, 399, 400, 23_999, 24_000, 24_049, 30_000] {
            assert_eq!(mechanics.sector_at(mechanics.stream_ns(sector) + 1.0, u64::MAX), sector);
        }
    }

    #[test]
    fn a_sector_just_missed_costs_a_revolution() {
        let mechanics = Mechanics::new(&params());
        assert_eq!(mechanics.position_ns(0.0, 0, 0), 0.0);
        assert_eq!(mechanics.position_ns(100.0, 0, 0), 10e6 - 100.0);
        assert_eq!(mechanics.position_ns(10e6 + 1.0, 0, 0), 0.0, "a nanosecond of rounding is no miss");
    }
}
