//! Which small request comes next while members are counted: from one boundary between members to the next by doubling and
//! halving, then one in each chunk and at random offsets, to check the chunk size. Every choice follows from the earlier
//! requests alone, so the same counters always lead to the same offsets. No I/O is issued here.

use super::unit_members::{MAX_MEMBERS, Mask, UnitMembers};
use rdsk_model::{ChosenIo, NextPosition, Op, PositionChooser, Workload};
use rdsk_stats::rng::SplitMix64;

/// Maximum number of adaptive requests, repetitions included.
pub const MAX_ADAPTIVE_PROBES: usize = 350;
/// Boundaries that are looked for one by one.
const BOUNDARIES: usize = 4;
/// Chunks whose first and last unit are requested.
const WHOLE_CHUNKS: u64 = 24;
/// Chunks of which one unit is requested.
const CHUNKS: u64 = 64;
/// Random places that must agree.
const RANDOM_PLACES: usize = 40;
/// No larger chunk is looked for.
const MAX_CHUNK_BYTES: u64 = 32 << 20;
/// Requests that may reach no member at all before the counters are taken to stand still.
const BLIND_REQUESTS: usize = 24;
/// Times that a chunk is corrected by a boundary inside it.
const MAX_CORRECTIONS: usize = 8;

/// Adaptive requests of one unit over a span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AdaptiveProbes {
    /// Read or write.
    pub op: Op,
    /// First byte of the span.
    pub begin_bytes: u64,
    /// Length of the span.
    pub span_bytes: u64,
    /// Bytes of each request.
    pub unit_bytes: u64,
    /// Decides the random places.
    pub seed: u64,
}

/// A unit that must be requested first.
struct Needs(u64);

/// The boundaries that were found, in units.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Boundaries {
    /// Distance of boundaries; `None` if there is at most one.
    pub(super) chunk: Option<u64>,
    /// A place where chunks begin.
    pub(super) origin: u64,
}

impl PositionChooser for AdaptiveProbes {
    fn next(&self, seen: &[ChosenIo]) -> NextPosition {
        let units = self.unit_members(seen);
        let is_blind = seen.len() >= BLIND_REQUESTS && units.least() == 0;
        let has_too_many = seen.first().is_some_and(|one| one.members.len() > MAX_MEMBERS);
        if is_blind || has_too_many || self.units() < 2 {
            return NextPosition::Untold;
        }
        if seen.len() >= MAX_ADAPTIVE_PROBES {
            return told(&units);
        }
        match self.boundaries_and_places(&units) {
            Err(Needs(unit)) => NextPosition::Ask {
                offset_bytes: self.begin_bytes + unit * self.unit_bytes,
                bytes: self.unit_bytes,
            },
            Ok(_) => told(&units),
        }
    }
}

fn told(units: &UnitMembers) -> NextPosition {
    if units.least() > 0 { NextPosition::Told } else { NextPosition::Untold }
}

impl AdaptiveProbes {
    /// The adaptive probes of a workload whose first positions are chosen at run time.
    pub fn of(workload: &Workload) -> Self {
        Self {
            op: workload.op,
            begin_bytes: workload.offset_bytes,
            span_bytes: workload.span_bytes,
            unit_bytes: workload.align_bytes.max(1),
            seed: workload.seed,
        }
    }

    /// The members that each request reached.
    pub(super) fn unit_members(&self, seen: &[ChosenIo]) -> UnitMembers {
        UnitMembers::of(self.op, self.begin_bytes, self.unit_bytes, seen)
    }

    /// The boundaries; `None` if the requests ended before they were found.
    pub(super) fn found(&self, units: &UnitMembers) -> Option<Boundaries> {
        self.boundaries(units).ok()
    }

    fn units(&self) -> u64 {
        self.span_bytes / self.unit_bytes.max(1)
    }

    /// The whole probes: boundaries, then places that must agree with them.
    fn boundaries_and_places(&self, units: &UnitMembers) -> Result<Boundaries, Needs> {
        let boundaries = self.boundaries(units)?;
        let mut rng = SplitMix64::new(self.seed);
        for _ in 0..RANDOM_PLACES {
            ask(units, rng.below(self.units()))?;
        }
        Ok(boundaries)
    }

    fn boundaries(&self, units: &UnitMembers) -> Result<Boundaries, Needs> {
        let Some(first) = self.boundary_after(units, 0)? else {
            return Ok(Boundaries { chunk: None, origin: 0 });
        };
        let mut last = first;
        let mut chunk = 0;
        for _ in 1..BOUNDARIES {
            let Some(next) = self.next_boundary(units, last, chunk)? else { break };
            chunk = common(chunk, next - last);
            last = next;
        }
        for _ in 0..MAX_CORRECTIONS {
            if chunk == 0 {
                return Ok(Boundaries { chunk: None, origin: first });
            }
            match self.inside(units, first, chunk)? {
                Some(boundary) => chunk = common(chunk, boundary - first),
                None => break,
            }
        }
        self.single_units(units, first, chunk)?;
        Ok(Boundaries { chunk: Some(chunk), origin: first % chunk })
    }

    /// The boundary after a unit: doubling the distance cannot jump over the next chunk, since it is as long as this one.
    fn boundary_after(&self, units: &UnitMembers, from: u64) -> Result<Option<u64>, Needs> {
        let here = ask(units, from)?;
        let most = (MAX_CHUNK_BYTES / self.unit_bytes).max(1);
        let last = (from + most).min(self.units() - 1);
        let (mut low, mut step) = (from, 1);
        loop {
            if low >= last {
                return Ok(None);
            }
            let high = (from + step).min(last);
            if ask(units, high)? != here {
                return halve(units, here, low, high).map(Some);
            }
            (low, step) = (high, step * 2);
        }
    }

    /// The boundary after another one: where the last distance leads to, if it does.
    fn next_boundary(&self, units: &UnitMembers, from: u64, chunk: u64) -> Result<Option<u64>, Needs> {
        let expected = from + chunk;
        if chunk > 0 && expected < self.units() {
            let here = ask(units, from)?;
            if ask(units, expected - 1)? == here && ask(units, expected)? != here {
                return confirmed(units, expected).map(Some);
            }
        }
        self.boundary_after(units, from)
    }

    /// A boundary inside a presumed chunk.
    fn inside(&self, units: &UnitMembers, origin: u64, chunk: u64) -> Result<Option<u64>, Needs> {
        for number in 0..WHOLE_CHUNKS {
            let begin = origin + number * chunk;
            if begin + chunk > self.units() {
                break;
            }
            let (here, there) = (ask(units, begin)?, ask(units, begin + chunk - 1)?);
            if here != there {
                return halve(units, here, begin, begin + chunk - 1).map(Some);
            }
        }
        Ok(None)
    }

    /// One unit of each of the chunks after those.
    fn single_units(&self, units: &UnitMembers, origin: u64, chunk: u64) -> Result<(), Needs> {
        for number in WHOLE_CHUNKS..CHUNKS {
            let unit = origin + number * chunk + number % chunk;
            if unit >= self.units() {
                break;
            }
            ask(units, unit)?;
        }
        Ok(())
    }
}

fn ask(units: &UnitMembers, unit: u64) -> Result<Mask, Needs> {
    units.at(unit).ok_or(Needs(unit))
}

/// The first unit after `low` that is not like it; `high` is not.
fn halve(units: &UnitMembers, here: Mask, mut low: u64, mut high: u64) -> Result<u64, Needs> {
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if ask(units, middle)? == here {
            low = middle;
        } else {
            high = middle;
        }
    }
    confirmed(units, high)
}

/// A unit with a boundary before it, once both sides are sure. What is requested for that may show that there is none; then the next
/// choice is another one.
fn confirmed(units: &UnitMembers, unit: u64) -> Result<u64, Needs> {
    for one in [unit - 1, unit] {
        units.surely_at(one).ok_or(Needs(one))?;
    }
    Ok(unit)
}

/// The largest that divides both.
pub(super) fn common(mut a: u64, mut b: u64) -> u64 {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}
