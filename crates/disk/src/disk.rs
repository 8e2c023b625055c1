//! A disk: one command after the other over an interface into a cache, and one arm. It merges and reorders only what its own
//! write cache has accepted; queues belong to the host.

use crate::cache::{Dirty, Extent, InFlightWrite, ReadStream, Segments};
use crate::mechanics::Mechanics;
use crate::params::{DestageOrder, DiskParams, WriteCacheParams};
use crate::request::{Completion, Force, Op, Request, SECTOR_BYTES};

/// Sectors that a destage moves before it chooses the nearest piece again: small enough that space is freed steadily.
const DESTAGE_SECTORS: u64 = 128;

/// A disk with its mechanics and caches.
#[derive(Clone, Debug)]
pub struct Disk {
    params: DiskParams,
    mechanics: Mechanics,
    /// The disk's sector of the device's first byte.
    origin: u64,
    /// When the interface can take the next command.
    port_free_ns: f64,
    /// When the arm is free; a read stream may be interrupted at any time.
    arm_free_ns: f64,
    cylinder: u64,
    /// Rotation of the platter at time 0.
    turned_ns: f64,
    stream: Option<ReadStream>,
    segments: Segments,
    dirty: Dirty,
    /// Whether the write cache is being emptied.
    is_destaging: bool,
    /// The last piece given to the arm; it occupies the cache until it is on the media.
    in_flight: InFlightWrite,
}

impl Disk {
    /// A disk with checked parameters; the seed decides the angle of the platter at time 0.
    #[expect(clippy::cast_precision_loss, reason = "any angle will do")]
    pub fn new(params: &DiskParams, seed: u64) -> Disk {
        let mechanics = Mechanics::new(params);
        let turned_ns = (seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as f64 / f64::from(u32::MAX)
            * mechanics.revolution_ns;
        Disk {
            params: params.clone(),
            origin: params.partition_start_bytes / SECTOR_BYTES,
            mechanics,
            port_free_ns: 0.0,
            arm_free_ns: 0.0,
            cylinder: 0,
            turned_ns,
            stream: None,
            segments: Segments::new(params.read_segments),
            dirty: Dirty::default(),
            is_destaging: false,
            in_flight: InFlightWrite::default(),
        }
    }

    /// Takes a request, no earlier than the one before it; its range must lie on the disk.
    pub fn submit(&mut self, arrival_ns: u64, request: Request) -> Completion {
        let start_ns = (arrival_ns as f64).max(self.port_free_ns);
        self.destage_until(start_ns);
        let ready_ns = start_ns + self.params.command_ns as f64;
        let range = Extent {
            first: self.origin + request.offset_bytes / SECTOR_BYTES,
            end: self.origin + request.end_bytes().div_ceil(SECTOR_BYTES),
        };
        let end_ns = match request.op {
            Op::Flush => self.flush(ready_ns),
            _ if request.bytes == 0 => ready_ns,
            Op::Read => self.read(ready_ns, range),
            Op::Write => self.write(ready_ns, range, request.force),
        };
        self.port_free_ns = end_ns;
        Completion { start_ns: whole_ns(start_ns), end_ns: whole_ns(end_ns), outcome: Ok(()) }
    }

    /// What would be lost if the power failed at `now_ns`, in the order it was written; in sectors of the device.
    pub fn volatile(&mut self, now_ns: u64) -> Vec<Extent> {
        self.destage_until(now_ns as f64);
        let on_device =
            |extent: &Extent| Extent { first: extent.first - self.origin, end: extent.end - self.origin };
        let half_written = Some(self.in_flight.piece).filter(|_| self.in_flight.end_ns > now_ns as f64);
        half_written.iter().chain(self.dirty.extents.iter()).map(on_device).collect()
    }

    fn interface_ns(&self, range: &Extent) -> f64 {
        (range.sectors() * SECTOR_BYTES) as f64 / self.params.interface_bytes_per_s * 1e9
    }

    fn read(&mut self, ready_ns: f64, range: Extent) -> f64 {
        let over_interface_ns = ready_ns + self.interface_ns(&range);
        if self.dirty.contains(&range) || self.segments.hold(&range) {
            return over_interface_ns;
        }
        if self.dirty.overlaps(&range) {
            // Partly in the cache, partly on the media: the simple firmware writes first, then reads.
            self.destage_all(ready_ns);
        }
        if let Some(media_ns) = self.read_from_stream(ready_ns, &range) {
            return over_interface_ns.max(media_ns);
        }
        let begin_ns = ready_ns.max(self.arm_free_ns);
        self.break_stream(begin_ns);
        let media_ns = self.pass_over(begin_ns, &range);
        let ahead = self.params.read_ahead_bytes / SECTOR_BYTES;
        if ahead > 0 {
            self.stream = Some(ReadStream {
                first: range.first,
                anchor: range.first,
                anchor_ns: media_ns - self.mechanics.transfer_ns(range.first, range.sectors()),
                limit: self.clip(range.end + ahead),
            });
        }
        over_interface_ns.max(media_ns)
    }

    /// When the current read stream has passed the whole range, if it will.
    fn read_from_stream(&mut self, ready_ns: f64, range: &Extent) -> Option<f64> {
        let ahead = self.params.read_ahead_bytes / SECTOR_BYTES;
        let stream = self.stream?;
        if range.first < stream.first || range.first > stream.limit {
            return None;
        }
        let mut stream = stream;
        let paused_ns = self.passed_ns(&stream, stream.limit);
        if paused_ns < ready_ns && range.end > stream.limit.saturating_sub(ahead / 2) {
            // The segment was full and the head passed on; it continues when the position comes round again.
            let again_ns = self.mechanics.position_ns(
                ready_ns + self.turned_ns,
                self.mechanics.cylinder_of(stream.limit.min(self.last_sector())),
                stream.limit.min(self.last_sector()),
            );
            if range.first < stream.limit {
                stream.first = range.first;
            }
            stream.anchor_ns = ready_ns + again_ns;
            stream.anchor = stream.limit;
            stream.limit = self.clip(range.end + ahead);
        } else if paused_ns >= ready_ns {
            stream.limit = stream.limit.max(self.clip(range.end + ahead));
        }
        // The segment holds no more than its size behind the reader.
        stream.first = stream.first.max(range.end.saturating_sub(ahead.max(range.sectors())));
        self.stream = Some(stream);
        if range.end <= stream.anchor {
            return Some(ready_ns);
        }
        let passed_ns = self.passed_ns(&stream, range.end);
        self.arm_free_ns = self.arm_free_ns.max(passed_ns);
        Some(passed_ns)
    }

    fn last_sector(&self) -> u64 {
        self.origin + self.params.capacity_bytes / SECTOR_BYTES - 1
    }

    fn clip(&self, sector: u64) -> u64 {
        sector.min(self.last_sector() + 1)
    }

    /// When the stream has passed everything before `end`.
    fn passed_ns(&self, stream: &ReadStream, end: u64) -> f64 {
        stream.anchor_ns + self.mechanics.transfer_ns(stream.anchor, end.saturating_sub(stream.anchor))
    }

    /// Ends the read stream at `now_ns`; what it read remains as a segment.
    fn break_stream(&mut self, now_ns: f64) {
        let Some(stream) = self.stream.take() else { return };
        let passed_ns = (now_ns - stream.anchor_ns).max(0.0);
        let position_ns = self.mechanics.stream_ns(stream.anchor.min(self.last_sector())) + passed_ns;
        let reached = self.mechanics.sector_at(position_ns, stream.limit);
        self.cylinder = self.mechanics.cylinder_of(reached.min(self.last_sector()));
        self.segments.keep(Extent { first: stream.first, end: reached });
    }

    /// Seeks, waits and passes over the range; returns the time of its end.
    fn pass_over(&mut self, begin_ns: f64, range: &Extent) -> f64 {
        let begin_ns = begin_ns.max(self.arm_free_ns);
        let position_ns = self.mechanics.position_ns(begin_ns + self.turned_ns, self.cylinder, range.first);
        let end_ns = begin_ns + position_ns + self.mechanics.transfer_ns(range.first, range.sectors());
        self.cylinder = self.mechanics.cylinder_of(range.end - 1);
        self.arm_free_ns = end_ns;
        end_ns
    }

    /// Writes a range to the media; returns the time of its end. A partial physical sector is read first and written when it
    /// comes round again.
    fn write_over(&mut self, begin_ns: f64, range: &Extent) -> f64 {
        let unit = self.params.physical_sector_bytes / SECTOR_BYTES;
        let whole = Extent { first: range.first / unit * unit, end: range.end.div_ceil(unit) * unit };
        let (head, tail) = (whole.first < range.first, range.end < whole.end);
        if !head && !tail {
            return self.pass_over(begin_ns, range);
        }
        let pass_ns = self.mechanics.transfer_ns(whole.first, whole.sectors());
        if whole.sectors() <= 2 * unit || pass_ns < self.mechanics.revolution_ns {
            let read_ns = self.pass_over(begin_ns, &whole);
            return self.pass_over(read_ns, &whole);
        }
        // A long range is not read as a whole; the first and the last unit each cost a revolution.
        let mut end_ns = begin_ns;
        if head {
            end_ns = self.pass_over(end_ns, &Extent { first: whole.first, end: whole.first + unit });
        }
        let (last, untailed) = (whole.end - unit, if tail { whole.end - unit } else { whole.end });
        end_ns = self.pass_over(end_ns, &Extent { first: whole.first, end: untailed });
        if tail {
            let edge = Extent { first: last, end: whole.end };
            let read_ns = self.pass_over(end_ns, &edge);
            end_ns = self.pass_over(read_ns, &edge);
        }
        end_ns
    }

    fn write(&mut self, ready_ns: f64, range: Extent, force: Force) -> f64 {
        self.segments.forget(&range);
        if self
            .stream
            .is_some_and(|stream| Extent { first: stream.first, end: stream.limit }.overlaps(&range))
        {
            self.break_stream(ready_ns);
            self.segments.forget(&range);
        }
        let received_ns = ready_ns + self.interface_ns(&range);
        match self.params.write_cache {
            Some(cache) if force == Force::Cached && range.sectors() * SECTOR_BYTES <= cache.bytes => {
                let room_ns = self.make_room(ready_ns, &range, cache);
                self.dirty.add(range);
                let fits_ns = self.keep_to_segment(ready_ns, &range, cache);
                if self.is_over(&range, cache, 3) {
                    self.destage_from(ready_ns);
                }
                received_ns.max(room_ns).max(fits_ns)
            }
            _ => {
                self.dirty.remove(&range);
                self.break_stream(ready_ns);
                received_ns.max(self.write_over(ready_ns, &range))
            }
        }
    }

    /// Destages until the range fits; returns the time when it does.
    fn make_room(&mut self, ready_ns: f64, range: &Extent, cache: WriteCacheParams) -> f64 {
        let mut room_ns = ready_ns;
        loop {
            let run = self.dirty.run_before(range.first);
            let InFlightWrite { piece, end_ns } = self.in_flight;
            let flying = if end_ns > room_ns { piece.sectors() } else { 0 };
            let before = if piece.end + run == range.first { flying } else { 0 };
            let too_much = |flying, before| {
                self.dirty.sectors + flying + range.sectors() > cache.bytes / SECTOR_BYTES
                    || overfills_segment(run + before, range.sectors(), cache)
            };
            if flying > 0 && too_much(flying, before) {
                room_ns = end_ns;
                continue;
            }
            let too_many = self.dirty.extents.len() >= cache.extents && !self.dirty.joins(range);
            if !too_many && !too_much(0, 0) {
                return room_ns;
            }
            self.destage_from(ready_ns);
            room_ns = room_ns.max(self.destage_one(self.arm_free_ns));
        }
    }

    /// Whether more than `quarters` of the cache are used: of its bytes, its pieces, or the segment of the run that a range
    /// ended.
    fn is_over(&self, range: &Extent, cache: WriteCacheParams, quarters: u64) -> bool {
        let run = if cache.segment_bytes > 0 { self.dirty.run_before(range.end) } else { 0 };
        4 * self.dirty.extents.len() as u64 > quarters * cache.extents as u64
            || 4 * self.dirty.sectors * SECTOR_BYTES > quarters * cache.bytes
            || 4 * run * SECTOR_BYTES > quarters * cache.segment_bytes
    }

    /// A request larger than its segment is written out while it is received; returns the time when the rest fits.
    fn keep_to_segment(&mut self, ready_ns: f64, range: &Extent, cache: WriteCacheParams) -> f64 {
        let mut fits_ns = ready_ns;
        let first_piece = Extent { first: range.first, end: range.end.min(range.first + DESTAGE_SECTORS) };
        let begin_ns = ready_ns + self.interface_ns(&first_piece);
        while overfills_segment(self.dirty.run_before(range.end), 0, cache) {
            self.destage_from(begin_ns);
            fits_ns = self.destage_one(self.arm_free_ns);
        }
        fits_ns
    }

    /// Starts to destage, unless the arm already does; the need was not known before `now_ns`.
    fn destage_from(&mut self, now_ns: f64) {
        if !self.is_destaging {
            self.is_destaging = true;
            self.arm_free_ns = self.arm_free_ns.max(now_ns);
        }
    }

    fn flush(&mut self, ready_ns: f64) -> f64 {
        let busy_ns = if self.stream.is_some() { ready_ns } else { ready_ns.max(self.arm_free_ns) };
        if self.dirty.extents.is_empty() { busy_ns } else { self.destage_all(ready_ns) }
    }

    fn destage_all(&mut self, now_ns: f64) -> f64 {
        let mut done_ns = now_ns.max(self.arm_free_ns);
        while !self.dirty.extents.is_empty() {
            done_ns = self.destage_one(done_ns);
        }
        self.is_destaging = false;
        done_ns
    }

    /// Destages what the arm wrote before `now_ns` between commands: a cache three quarters full is emptied to one half (one with
    /// segments completely), and completely once the disk has been idle for some time.
    fn destage_until(&mut self, now_ns: f64) {
        let Some(cache) = self.params.write_cache else { return };
        let idle_ns = self.port_free_ns + cache.delay_ns as f64;
        while !self.dirty.extents.is_empty() {
            if cache.segment_bytes == 0 && !self.is_over(&Extent { first: 0, end: 0 }, cache, 2) {
                self.is_destaging = false;
            }
            let begin_ns = if self.is_destaging { self.arm_free_ns } else { self.arm_free_ns.max(idle_ns) };
            if begin_ns >= now_ns {
                return;
            }
            self.destage_one(begin_ns);
        }
        self.is_destaging = false;
    }

    /// Writes one piece to the media from `begin_ns` on; returns the time when it is there.
    fn destage_one(&mut self, begin_ns: f64) -> f64 {
        self.break_stream(begin_ns);
        let begin_ns = begin_ns.max(self.arm_free_ns);
        let order = self.params.write_cache.map_or(DestageOrder::Fifo, |cache| cache.order);
        let chosen = match order {
            DestageOrder::Fifo => self.dirty.extents.iter().next(),
            DestageOrder::Nearest => {
                let extents = self.dirty.extents.iter();
                self.mechanics.nearest(begin_ns + self.turned_ns, self.cylinder, extents)
            }
        };
        let Some(chosen) = chosen.copied() else { return begin_ns };
        let unit = self.params.physical_sector_bytes / SECTOR_BYTES;
        // A run is not interrupted within a physical sector.
        let broken_off = (chosen.first + DESTAGE_SECTORS) / unit * unit;
        let piece = Extent { first: chosen.first, end: chosen.end.min(broken_off) };
        let end_ns = self.write_over(begin_ns, &piece);
        self.dirty.remove(&piece);
        self.in_flight = InFlightWrite { piece, end_ns };
        end_ns
    }
}

/// Whether a run and the sectors that follow exceed its segment; a single request may be larger.
fn overfills_segment(run: u64, more: u64, cache: WriteCacheParams) -> bool {
    cache.segment_bytes > 0 && run > 0 && (run + more) * SECTOR_BYTES > cache.segment_bytes
}

/// A completion is rounded up to whole nanoseconds.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "virtual times are not negative and far below 2^53 ns, which is 104 days"
)]
pub(crate) fn whole_ns(time_ns: f64) -> u64 {
    time_ns.ceil() as u64
}
