//! The geometry from what each member did for each small request: counted, not inferred from latency. What counters alone
//! leave open, the kernel's description may decide; what it contradicts is not certain.

use super::adaptive_probes::{AdaptiveProbes, Boundaries, common};
use super::answer::exact;
use super::declared;
use super::layouts::Level;
use super::matching::{self, Begin, Chunk, Match, comes_round, matches};
use super::member_layout::MemberLayout;
use super::stacked;
use super::unit_members::{Mask, UnitMembers};
use rdsk_model::{ArrayFacts, ChosenIo, MemberIo, Op};
use rdsk_units::printable;
use std::collections::BTreeMap;

/// Writes that make a member read, of all small ones, from which on there is parity: the stripe cache hides most of them.
const CAUSED_READS: f64 = 0.05;

/// Adaptive probes and what was counted for each request.
#[derive(Clone, Copy, Debug)]
pub struct AdaptiveRun<'a> {
    /// How the requests were chosen.
    pub probes: AdaptiveProbes,
    /// Its requests.
    pub chosen: &'a [ChosenIo],
}

/// All that members' counters and the kernel say of an array.
#[derive(Clone, Copy, Debug, Default)]
pub struct MemberEvidence<'a> {
    /// The reads.
    pub reads: Option<AdaptiveRun<'a>>,
    /// The writes.
    pub writes: Option<AdaptiveRun<'a>>,
    /// The kernel's words.
    pub words: Option<&'a ArrayFacts>,
    /// Its words of the arrays further down, whose members were not counted.
    pub below: &'a [ArrayFacts],
    /// Kernel name of the target's device; of an array itself it is that of the words.
    pub device: Option<&'a str>,
    /// `queue/minimum_io_size` and `queue/optimal_io_size`.
    pub hints: Option<(u64, u64)>,
}

/// One direction, read.
struct Side {
    probes: AdaptiveProbes,
    units: UnitMembers,
    boundaries: Option<Boundaries>,
}

impl Side {
    fn of(run: Option<AdaptiveRun<'_>>) -> Option<Self> {
        let AdaptiveRun { probes, chosen } = run?;
        let units = probes.unit_members(chosen);
        (units.least() > 0).then(|| Self { boundaries: probes.found(&units), probes, units })
    }

    /// The chunk and a place where one begins, in bytes of the target.
    fn grid(&self) -> Option<Grid> {
        let boundaries = self.boundaries.as_ref()?;
        let chunk_bytes = boundaries.chunk? * self.probes.unit_bytes;
        let origin_bytes =
            (self.probes.begin_bytes + boundaries.origin * self.probes.unit_bytes) % chunk_bytes;
        Some(Grid { chunk_bytes, origin_bytes })
    }
}

/// Chunks of one size, and where the first whole one begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Grid {
    chunk_bytes: u64,
    origin_bytes: u64,
}

impl Grid {
    /// The chunk of a place; number 0 is the one in which the target begins.
    fn number(&self, offset_bytes: u64) -> u64 {
        match self.origin_bytes {
            0 => offset_bytes / self.chunk_bytes,
            origin => (offset_bytes + self.chunk_bytes - origin) / self.chunk_bytes,
        }
    }

    /// Where chunk `number` begins, as a place within one stripe.
    fn begin(&self, number: u64, stripe_bytes: u64) -> u64 {
        match self.origin_bytes {
            0 => number * self.chunk_bytes % stripe_bytes,
            origin => (number * self.chunk_bytes + stripe_bytes + origin - self.chunk_bytes) % stripe_bytes,
        }
    }
}

/// The layout from the counters; `None` if no request reached a member.
pub fn infer_from_members(seen: &MemberEvidence<'_>) -> Option<MemberLayout> {
    let (reads, writes) = (Side::of(seen.reads), Side::of(seen.writes));
    if reads.is_none() && writes.is_none() {
        return None;
    }
    let sides = || [&reads, &writes].into_iter().flatten();
    let total =
        [seen.reads, seen.writes].into_iter().flatten().flat_map(|one| one.chosen).map(|io| io.members.len());
    let total = total.max().unwrap_or(0) as u64;
    let used: Mask = sides().fold(0, |all, side| all | side.units.used());
    let mut layout = MemberLayout { members: u64::from(used.count_ones()), ..MemberLayout::default() };
    count_caused(&mut layout, seen.writes);
    let reach = writes.as_ref().map_or(1, |side| u64::from(side.units.least()));
    if let Some(side) = &writes {
        layout.evidence.push(format!(
            "each of {} small writes reaches {reach} of {} members",
            side.units.requests(),
            layout.members.max(total)
        ));
    }
    if sides().any(|side| side.units.is_disturbed()) {
        // What an array does to become whole, or to do without a member, is no I/O of other programs.
        let own = seen.words.filter(|words| !unrest(words).is_empty());
        let whose = own.map_or(
            "other I/O reaches them",
            |_| "the array itself reads and writes them, to be rebuilt or to compute what it lacks",
        );
        layout.doubts.push(format!("members moved more bytes than these requests: {whose}"));
    }
    if sides().any(|side| side.boundaries.is_none()) {
        layout.doubts.push("the requests ended before all boundaries were found".into());
    }
    layout.doubts.extend(seen.words.into_iter().flat_map(unrest));
    let no_array = seen.words.and_then(stacked::of_no_array);
    match best(&reads, &writes, total) {
        _ if no_array.is_some() => layout.doubts.extend(no_array),
        Some(best) => {
            if best.scope == Scope::Begin {
                layout.doubts.push("offsets further on do not follow the layout of the first chunks".into());
            }
            tell(&mut layout, seen, &best, total);
        }
        // A few requests that all reached the same members show no copies: they were all of one chunk.
        None if sides().any(|side| side.boundaries.is_none()) => {}
        None => without_layout(&mut layout, &reads, &writes),
    }
    layout.doubts.extend(stacked::hidden(seen.below));
    if stacked::have_parity(seen.below) {
        // "Without parity" would be of the level that was counted only.
        layout.parity_members = layout.parity_members.filter(|&members| members > 0);
    }
    layout.declared = seen.words.and_then(|words| declared::compare(&layout, words));
    if layout.declared.as_ref().is_some_and(|declared| !declared.agrees) {
        layout.doubts.push("the kernel names another layout".into());
    }
    Some(layout)
}

fn count_caused(layout: &mut MemberLayout, writes: Option<AdaptiveRun<'_>>) {
    let Some(run) = writes else { return };
    let read = |one: &ChosenIo| one.members.iter().map(|io: &MemberIo| io.read_bytes).sum::<u64>();
    let caused: Vec<u64> =
        run.chosen.iter().map(read).filter(|&bytes| bytes >= run.probes.unit_bytes).collect();
    layout.writes = run.chosen.len() as u64;
    layout.writes_with_reads = caused.len() as u64;
    layout.caused_read_bytes = caused.iter().sum();
}

/// Why an array is not to be judged now, a sentence for each reason: a resync reads and writes all members, and a missing member's
/// data come from all others.
pub fn unrest(words: &ArrayFacts) -> Vec<String> {
    let name = printable(&words.device);
    let activity = words.activity.as_ref().filter(|word| !["idle", "frozen"].contains(&word.as_str()));
    let activity = activity.map(|word| format!("{name} is busy with a {}", printable(word)));
    let missing = words.degraded.filter(|&missing| missing > 0);
    let has_paths = words.level.as_deref() == Some("multipath");
    let missing = missing.map(|missing| match missing {
        1 if has_paths => format!("a path of {name} has failed"),
        _ if has_paths => format!("{missing} paths of {name} have failed"),
        _ => format!("{name} is missing {missing} of its members"),
    });
    activity.into_iter().chain(missing).collect()
}

/// How far a layout explains what was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scope {
    /// Everywhere.
    All,
    /// Over the first chunks only.
    Begin,
}

/// What explains the counters best.
struct Best {
    grid: Grid,
    chunks: Vec<Chunk>,
    found: Vec<Match>,
    scope: Scope,
}

/// The chunk with the layouts that explain it: that of the writes, that of the reads, or what divides both.
fn best(reads: &Option<Side>, writes: &Option<Side>, total: u64) -> Option<Best> {
    let grid = |side: &Option<Side>| side.as_ref().and_then(Side::grid);
    let (read, written) = (grid(reads), grid(writes));
    let both = read.zip(written).map(|(read, written)| {
        let chunk_bytes = common(read.chunk_bytes, written.chunk_bytes);
        Grid { chunk_bytes, origin_bytes: read.origin_bytes % chunk_bytes }
    });
    // Where every member holds everything, reads that go anywhere may look like chunks for a while.
    let is_mirror = writes.as_ref().is_some_and(|side| side.units.used().count_ones() == side.units.least());
    let scopes: &[Scope] = if is_mirror { &[Scope::All] } else { &[Scope::All, Scope::Begin] };
    for &scope in scopes {
        for grid in [both, written, read].into_iter().flatten() {
            let Some(chunks) = chunks(grid, reads, writes, scope) else { continue };
            let begin = if grid.origin_bytes == 0 { Begin::WithTheArray } else { Begin::Anywhere };
            let found = matches(&chunks, total, begin);
            if !found.is_empty() {
                return Some(Best { grid, chunks, found, scope });
            }
        }
    }
    None
}

/// What was seen of each chunk; `None` if one chunk lies on different members.
fn chunks(grid: Grid, reads: &Option<Side>, writes: &Option<Side>, scope: Scope) -> Option<Vec<Chunk>> {
    /// Chunks that are visited one after the other.
    const FIRST: u64 = 32;
    let mut all: BTreeMap<u64, Chunk> = BTreeMap::new();
    let mut contradictions = 0_usize;
    for (op, side) in [(Op::Read, reads), (Op::Write, writes)] {
        let Some(side) = side else { continue };
        let (begin, unit) = (side.probes.begin_bytes, side.probes.unit_bytes);
        let first = grid.number(begin);
        for (at, members) in side.units.iter() {
            let number = grid.number(begin + at * unit);
            if scope == Scope::Begin && number >= first + FIRST {
                continue;
            }
            let chunk = all.entry(number).or_insert(Chunk { number, read: None, written: None });
            let known = if op == Op::Read { &mut chunk.read } else { &mut chunk.written };
            contradictions += usize::from(op == Op::Write && known.is_some_and(|known| known != members));
            *known = Some(members);
        }
    }
    (contradictions * 50 <= all.len()).then(|| all.into_values().collect())
}

/// Records what the layouts that agree have in common.
fn tell(layout: &mut MemberLayout, seen: &MemberEvidence<'_>, best: &Best, total: u64) {
    let Best { grid, found, .. } = best;
    layout.chunk_bytes = Some(grid.chunk_bytes);
    let mut found: Vec<Match> = found.iter().copied().filter(|one| fits_reads(layout, one)).collect();
    let all = found.clone();
    if same(&found, |one| (one.known.data(), one.known.level())).is_none() {
        found = declared::among(&found, grid.chunk_bytes, seen.words, seen.hints);
    }
    layout.level = same(&found, |one| one.known.level());
    layout.rotation = same(&found, |one| one.known.rotation()).flatten();
    layout.members = same(&found, |one| one.known.members).unwrap_or(layout.members);
    layout.parity_members = same(&found, |one| one.known.parities());
    layout.copies = same(&found, |one| one.known.copies());
    let chunk = exact(grid.chunk_bytes);
    let Some(data) = same(&found, |one| one.known.data()) else {
        let names = declared::names(&found);
        layout.evidence.push(format!(
            "the member changes every {chunk}, as it does on {names}: reads alone do not show which"
        ));
        return;
    };
    layout.stripe_bytes = Some(data * grid.chunk_bytes);
    layout.start_offset_bytes = if layout.parity_members == Some(0) {
        Some(grid.origin_bytes).filter(|&origin| origin > 0)
    } else {
        start(seen, best, &found, total)
    };
    layout
        .evidence
        .push(format!("the member changes every {chunk}, everywhere as on {}", declared::names(&found)));
    if found.len() < all.len() && same(&all, |one| one.known.data()).is_none() {
        layout.needs_words = true;
        let others: Vec<Match> = all.iter().filter(|one| !found.contains(one)).copied().collect();
        layout.evidence.push(format!(
            "reads alone would fit {} as well; the kernel's own description decides",
            declared::names(&others)
        ));
    }
}

/// Where the first full stripe begins: with the array, if the target is the array; else if only one place explains what was
/// seen. Reads in turn, and parity that never moves, do not show which member is the first.
fn start(seen: &MemberEvidence<'_>, best: &Best, found: &[Match], total: u64) -> Option<u64> {
    let is_array = seen.device.is_some() && seen.device == seen.words.map(|words| words.device.as_str());
    if is_array && best.grid.origin_bytes == 0 && found.iter().any(|one| one.shift == 0) {
        return Some(0);
    }
    let all: Vec<Match> =
        found.iter().flat_map(|one| matching::anywhere(one.known, &best.chunks, total)).collect();
    same(&all, |one| {
        let data = one.known.data();
        best.grid.begin((data - one.shift % data) % data, data * best.grid.chunk_bytes)
    })
}

/// Parity must have made members read; copies must not.
fn fits_reads(layout: &MemberLayout, one: &Match) -> bool {
    if layout.writes == 0 {
        return true;
    }
    let share = layout.writes_with_reads as f64 / layout.writes as f64;
    if one.known.parities() > 0 { share >= CAUSED_READS } else { share < 2.0 * CAUSED_READS }
}

fn same<T: PartialEq>(found: &[Match], of: impl Fn(&Match) -> T) -> Option<T> {
    let first = of(found.first()?);
    found.iter().all(|one| of(one) == first).then_some(first)
}

/// No known layout: mirrors, one device after the other, one member of several, or something else.
fn without_layout(layout: &mut MemberLayout, reads: &Option<Side>, writes: &Option<Side>) {
    let is_constant = |side: &Option<Side>| {
        side.as_ref().is_none_or(|side| side.units.used().count_ones() == side.units.least())
    };
    let is_in_a_row = |side: &Option<Side>| {
        side.as_ref().is_none_or(|side| {
            let all =
                side.units.iter().map(|(number, mask)| Chunk { number, read: Some(mask), written: None });
            !comes_round(&all.collect::<Vec<Chunk>>())
        })
    };
    if let Some(side) = writes
        && is_constant(writes)
    {
        let copies = u64::from(side.units.least());
        (layout.copies, layout.parity_members) = (Some(copies), Some(0));
        if copies > 1 {
            layout.level = Some(Level::Raid1);
            layout.evidence.push(format!("every write reaches the same {copies} members: copies, no stripe"));
        } else {
            layout.evidence.push("every write reaches the same member: no stripe".into());
        }
        return;
    }
    if writes.is_none() && is_constant(reads) {
        layout.evidence.push("every read reaches the same member: no stripe is seen".into());
        return;
    }
    if is_in_a_row(reads) && is_in_a_row(writes) {
        layout.evidence.push("the members are concatenated: no stripe".into());
        return;
    }
    let why = "no known layout explains which members are reached";
    // Said once: as what makes it unsure, unless something else does.
    let said = if layout.doubts.is_empty() { &mut layout.doubts } else { &mut layout.evidence };
    said.push(why.into());
}

#[cfg(test)]
mod tests;
