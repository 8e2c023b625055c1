//! The offset of each I/O of a stream: deterministic for a workload, a visit and a stream, and the same on every engine. It
//! never leaves the span, and it issues nothing.

use crate::content::Stretch;
use crate::error::EngineError;
use crate::random::{Permutation, WyRand, mix};
use rdsk_model::{CacheState, Pattern, StreamRange, Workload};

/// Which target a stream uses, and which part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Placement {
    /// Position in [`Workload::targets`].
    pub(crate) target_position: usize,
    /// Number of the stream among those of its target.
    pub(crate) part: u64,
    /// Streams that share the target.
    pub(crate) parts: u64,
}

/// Assigns the streams to the targets round robin.
///
/// # Errors
/// [`EngineError::Workload`] when the workload names no target.
pub(crate) fn placement_of(workload: &Workload, stream: u32) -> Result<Placement, EngineError> {
    let targets = u64::try_from(workload.targets.len()).unwrap_or(u64::MAX);
    if targets == 0 {
        return Err(EngineError::Workload("it names no target".into()));
    }
    let position = u64::from(stream) % targets;
    let parts = (u64::from(workload.streams) + targets - 1 - position) / targets;
    let target_position = usize::try_from(position).expect("a position in a Vec is a usize");
    Ok(Placement { target_position, part: u64::from(stream) / targets, parts })
}

/// The I/Os in one cycle of a workload, all streams together; after that, offsets repeat. Sequential: one pass over the
/// span. Random with a requested cache state: every unit of cache pages once. Other random workloads draw with replacement
/// and have no cycle: `u64::MAX`. 0 if the span has no room.
pub fn capacity(workload: &Workload) -> u64 {
    let per_target = Geometry::of(workload, rdsk_sys::cache::page_size()).cycle(workload);
    let used = u64::try_from(workload.targets.len()).unwrap_or(u64::MAX).min(u64::from(workload.streams));
    per_target.saturating_mul(used)
}

/// Whether a visit has to end with its cycle: after it, a cold buffered workload would hit pages that it cached itself.
pub(crate) fn ends_with_cycle(workload: &Workload) -> bool {
    workload.cache == CacheState::Cold && workload.path.uses_page_cache()
}

/// The offsets of one stream.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Offsets {
    /// One block after the other, wrapping at the end of the stream's part.
    Sequential(Sequential),
    /// Every aligned position of the span with the same probability, with replacement.
    Uniform(Uniform),
    /// Every unit of cache pages once per cycle, in random order.
    Permuted(Permuted),
}

/// A source of offsets whose kind is known at compile time, so that hot loops do not branch on it.
pub(crate) trait OffsetSource {
    /// The next offset in bytes.
    fn next_offset(&mut self) -> u64;
    /// The offset of the last, shorter I/O of `len_bytes`: after the last block of a sequential pass if the span still has
    /// room, else where the next block would go.
    fn tail_offset(&mut self, len_bytes: u64) -> u64 {
        let _ = len_bytes;
        self.next_offset()
    }
}

impl Offsets {
    /// The offsets of a stream in a visit, over a page cache with pages of `page_bytes`.
    ///
    /// # Errors
    /// [`EngineError::Span`] when the span has no room for every stream, [`EngineError::Workload`] for sizes of 0 or
    /// beyond 2^63.
    pub(crate) fn new(
        workload: &Workload,
        visit: u32,
        stream: u32,
        page_bytes: u64,
    ) -> Result<Self, EngineError> {
        let placement = match workload.range {
            StreamRange::Disjoint => placement_of(workload, stream)?,
            // Streams that share their range all have the whole of it.
            StreamRange::Shared => Placement { part: 0, parts: 1, ..placement_of(workload, stream)? },
        };
        check_sizes(workload)?;
        let geometry = Geometry::of(workload, page_bytes);
        let no_room = || EngineError::Span {
            offset_bytes: workload.offset_bytes,
            span_bytes: workload.span_bytes,
            block_bytes: workload.block_bytes,
            streams: placement.parts,
        };
        let key = mix(mix(workload.seed, u64::from(visit)), u64::from(stream));
        match workload.pattern {
            Pattern::Sequential => {
                let (begin, end) = part_of(geometry.sequential_positions(), placement);
                if begin == end {
                    return Err(no_room());
                }
                Ok(Self::Sequential(Sequential { geometry, begin, end, next: begin, wrapped: false }))
            }
            Pattern::Random if workload.cache == CacheState::Any => match geometry.random_positions() {
                0 => Err(no_room()),
                positions => Ok(Self::Uniform(Uniform { geometry, positions, random: WyRand::new(key) })),
            },
            Pattern::Random => {
                let (begin, end) = part_of(geometry.units(), placement);
                if begin == end {
                    return Err(no_room());
                }
                // All streams of a target share one permutation, and each takes its own part of it.
                let target_position = u64::try_from(placement.target_position).unwrap_or(0);
                let shared_key = mix(mix(workload.seed, u64::from(visit)), target_position);
                Ok(Self::Permuted(Permuted::new(geometry, begin, end, shared_key, WyRand::new(key))))
            }
        }
    }

    /// The same, where a sequence begins so many bytes behind the start of its part, or of what is left when the part has been
    /// gone through.
    pub(crate) fn beginning_at(mut self, bytes: u64) -> Self {
        if let Self::Sequential(Sequential { geometry, begin, end, next, .. }) = &mut self {
            *next = *begin + bytes / geometry.step.max(1) % (*end - *begin);
        }
        self
    }

    /// I/Os of this stream in one cycle; `u64::MAX` if there is no cycle.
    pub(crate) fn cycle(&self) -> u64 {
        match self {
            Self::Sequential(sequential) => sequential.end - sequential.begin,
            Self::Uniform(_) => u64::MAX,
            Self::Permuted(permuted) => permuted.end - permuted.begin,
        }
    }
}

impl OffsetSource for Offsets {
    fn next_offset(&mut self) -> u64 {
        match self {
            Self::Sequential(sequential) => sequential.next_offset(),
            Self::Uniform(uniform) => uniform.next_offset(),
            Self::Permuted(permuted) => permuted.next_offset(),
        }
    }

    fn tail_offset(&mut self, len_bytes: u64) -> u64 {
        match self {
            Self::Sequential(sequential) => sequential.tail_offset(len_bytes),
            Self::Uniform(uniform) => uniform.tail_offset(len_bytes),
            Self::Permuted(permuted) => permuted.tail_offset(len_bytes),
        }
    }
}

/// See [`Offsets::Sequential`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sequential {
    geometry: Geometry,
    begin: u64,
    end: u64,
    next: u64,
    wrapped: bool,
}

impl Sequential {
    /// Whether it goes through the whole span, from its start on, and shares it with no other stream.
    pub(crate) fn is_alone(&self) -> bool {
        self.begin == 0 && self.end == self.geometry.sequential_positions()
    }

    /// What it goes through from here on when it reads so many bytes.
    pub(crate) fn stretch(&self, bytes: u64) -> Stretch {
        let bytes_of = |positions: u64| positions.saturating_mul(self.geometry.step);
        Stretch {
            offset_bytes: self.geometry.position(self.begin),
            span_bytes: bytes_of(self.end - self.begin),
            begin_bytes: bytes_of(self.next - self.begin),
            read_bytes: bytes_of(bytes / self.geometry.block),
        }
    }
}

impl OffsetSource for Sequential {
    #[inline]
    fn next_offset(&mut self) -> u64 {
        let offset = self.geometry.position(self.next);
        self.next += 1;
        if self.next == self.end {
            self.next = self.begin;
            self.wrapped = true;
        }
        offset
    }

    fn tail_offset(&mut self, len_bytes: u64) -> u64 {
        let behind = self.geometry.position(self.end);
        if self.wrapped && self.next == self.begin && behind + len_bytes <= self.geometry.end {
            return behind;
        }
        self.next_offset()
    }
}

/// See [`Offsets::Uniform`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Uniform {
    geometry: Geometry,
    positions: u64,
    random: WyRand,
}

impl OffsetSource for Uniform {
    #[inline]
    fn next_offset(&mut self) -> u64 {
        self.geometry.first + self.random.below(self.positions) * self.geometry.align
    }
}

/// See [`Offsets::Permuted`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Permuted {
    geometry: Geometry,
    permutation: Permutation,
    shared_key: u64,
    cycle: u64,
    begin: u64,
    end: u64,
    next: u64,
    random: WyRand,
}

impl Permuted {
    fn new(geometry: Geometry, begin: u64, end: u64, shared_key: u64, random: WyRand) -> Self {
        let permutation = Permutation::new(geometry.units(), shared_key);
        Self { geometry, permutation, shared_key, cycle: 0, begin, end, next: begin, random }
    }
}

impl OffsetSource for Permuted {
    #[inline]
    fn next_offset(&mut self) -> u64 {
        if self.next == self.end {
            self.next = self.begin;
            self.cycle += 1;
            self.permutation = Permutation::new(self.geometry.units(), mix(self.shared_key, self.cycle));
        }
        let unit = self.permutation.apply(self.next);
        self.next += 1;
        let (first, positions) = self.geometry.positions_in_unit(unit);
        first + self.random.below(positions) * self.geometry.align
    }
}

/// The arithmetic of a span, all in bytes.
#[derive(Clone, Copy, Debug)]
struct Geometry {
    /// Lowest offset that is a multiple of `align` plus the shift.
    first: u64,
    end: u64,
    block: u64,
    align: u64,
    /// Distance between the blocks of a sequential pass.
    step: u64,
    /// Cache pages that one random I/O may touch, as one unit.
    unit: u64,
    /// Start of the first unit.
    unit_base: u64,
    /// `shift_bytes` modulo `align`.
    residue: u64,
}

impl Geometry {
    fn of(workload: &Workload, page: u64) -> Self {
        let align = workload.align_bytes.max(1);
        let block = workload.block_bytes.max(1);
        let residue = workload.shift_bytes % align;
        let (unit, unit_align) = if align.is_multiple_of(page) {
            (residue.saturating_add(block).checked_next_multiple_of(align), align)
        } else if page.is_multiple_of(align) {
            (residue.saturating_add(block).checked_next_multiple_of(page), page)
        } else {
            (block.saturating_add(align - 1).checked_next_multiple_of(page), page)
        };
        Self {
            first: at_least(workload.offset_bytes, align, residue),
            end: workload.offset_bytes.saturating_add(workload.span_bytes),
            block,
            align,
            step: block.checked_next_multiple_of(align).unwrap_or(u64::MAX),
            unit: unit.unwrap_or(u64::MAX),
            unit_base: at_least(workload.offset_bytes, unit_align, 0),
            residue,
        }
    }

    fn cycle(&self, workload: &Workload) -> u64 {
        match (workload.pattern, workload.cache) {
            (Pattern::Sequential, _) => self.sequential_positions(),
            (Pattern::Random, CacheState::Any) => u64::MAX,
            (Pattern::Random, CacheState::Cold | CacheState::Warm) => self.units(),
        }
    }

    fn sequential_positions(&self) -> u64 {
        self.count_from(self.first, self.end, self.step)
    }

    #[inline]
    fn position(&self, index: u64) -> u64 {
        self.first + index * self.step
    }

    fn random_positions(&self) -> u64 {
        self.count_from(self.first, self.end, self.align)
    }

    fn count_from(&self, first: u64, end: u64, step: u64) -> u64 {
        match end.checked_sub(self.block) {
            Some(last) if last >= first => (last - first) / step + 1,
            _ => 0,
        }
    }

    /// Units of the span; the last one may be shorter if a block still fits before the end of the span.
    fn units(&self) -> u64 {
        let room = self.end.saturating_sub(self.unit_base);
        let whole = room / self.unit;
        let rest_begin = self.unit_base + whole * self.unit;
        let fits = at_least(rest_begin, self.align, self.residue)
            .checked_add(self.block)
            .is_some_and(|block_end| block_end <= self.end);
        whole + u64::from(fits)
    }

    /// First position and number of positions of a block inside one unit.
    #[inline]
    fn positions_in_unit(&self, unit: u64) -> (u64, u64) {
        let begin = self.unit_base + unit * self.unit;
        let end = begin.saturating_add(self.unit).min(self.end);
        let first = at_least(begin, self.align, self.residue);
        (first, self.count_from(first, end, self.align))
    }
}

/// The lowest multiple of `align` plus `residue` that is at least `value`.
#[inline]
fn at_least(value: u64, align: u64, residue: u64) -> u64 {
    if value <= residue {
        return residue;
    }
    (value - residue)
        .checked_next_multiple_of(align)
        .and_then(|up| up.checked_add(residue))
        .unwrap_or(u64::MAX)
}

/// The part of `0 .. total` that belongs to a stream; parts differ by at most one and cover everything.
fn part_of(total: u64, placement: Placement) -> (u64, u64) {
    (share(total, placement.part, placement.parts), share(total, placement.part + 1, placement.parts))
}

/// `total × part / parts` without overflow.
#[expect(clippy::cast_possible_truncation, reason = "part <= parts, so the share is at most the total")]
pub(crate) fn share(total: u64, part: u64, parts: u64) -> u64 {
    (u128::from(total) * u128::from(part) / u128::from(parts.max(1))) as u64
}

fn check_sizes(workload: &Workload) -> Result<(), EngineError> {
    // The kernel's offsets have 63 bits.
    let (max_offset, max_size) = (i64::MAX.unsigned_abs(), 1u64 << 62);
    for (name, value, min, max) in [
        ("block size", workload.block_bytes, 1, max_size),
        ("alignment", workload.align_bytes, 1, max_size),
        ("shift", workload.shift_bytes, 0, max_size),
        ("offset", workload.offset_bytes, 0, max_offset),
        ("span", workload.span_bytes, 1, max_offset),
    ] {
        if value < min || value > max {
            return Err(EngineError::Workload(format!("its {name} is {value} bytes")));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
