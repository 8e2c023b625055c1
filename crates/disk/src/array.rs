//! RAID 0, 1, 5 and 6 over equal members: which member is asked what, and when all have answered. Parity is counted, not
//! computed. A write of part of a stripe reads what it needs in the way that costs fewer requests. The extra work of a
//! kernel (flushes, bitmap, superblock, stripe cache, merging) is not modelled.
//!
//! The completion time of a request is computed when it arrives, so nothing later can change it: a member that has read for a
//! partial write is idle until the write's parity is known, and serves no other request in between. That costs nothing for
//! one request at a time, for reads and for whole stripes; with many small writes at once it costs up to 43 % of the rate of
//! members that never wait for each other (4 KiB random writes on `raid5` at depth 4 and more: 69 of 121
//! per second; on `raid6` 56 of 81).

use std::collections::VecDeque;

use crate::device::Device;
use crate::gather::{Gather, MAX_HELD, Part, parts};
use crate::params::{ArrayParams, RaidLevel};
use crate::request::{Completion, Force, Op, Request};

/// The requests that a member received.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemberCounts {
    /// Reads.
    pub reads: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Writes.
    pub writes: u64,
    /// Bytes written.
    pub write_bytes: u64,
}

/// An array.
#[derive(Clone, Debug)]
pub struct Array {
    params: ArrayParams,
    members: Vec<Device>,
    counts: Vec<MemberCounts>,
    interface_free_ns: u64,
    /// Writes in the protected cache: when their members are done, and their bytes.
    write_back: VecDeque<(u64, u64)>,
    write_back_held_bytes: u64,
    /// Parts of stripes that the protected cache holds back.
    gather: Gather,
    /// Which mirror reads next.
    turn: usize,
}

impl Array {
    /// An array with checked parameters; member n gets the seed plus n, so that spindles are not in step.
    pub fn new(params: &ArrayParams, seed: u64) -> Array {
        let members =
            (0..params.members as u64).map(|n| Device::new(&params.member, seed.wrapping_add(n))).collect();
        Array {
            params: params.clone(),
            members,
            counts: vec![MemberCounts::default(); params.members],
            interface_free_ns: 0,
            write_back: VecDeque::new(),
            write_back_held_bytes: 0,
            gather: Gather::default(),
            turn: 0,
        }
    }

    /// Size in bytes.
    pub fn capacity_bytes(&self) -> u64 {
        self.params.capacity_bytes()
    }

    /// Data of one stripe.
    pub fn stripe_bytes(&self) -> u64 {
        self.params.chunk_bytes * self.params.data_members() as u64
    }

    /// The requests that each member received so far.
    pub fn counts(&self) -> &[MemberCounts] {
        &self.counts
    }

    /// Takes a request at `now_ns`.
    pub fn submit(&mut self, now_ns: u64, request: Request) -> Completion {
        self.release_due(now_ns);
        let start_ns = now_ns.max(self.interface_free_ns);
        let ready_ns = start_ns.saturating_add(self.params.command_ns);
        let transfer_ns =
            crate::disk::whole_ns(request.bytes as f64 / self.params.interface_bytes_per_s * 1e9);
        let received_ns = ready_ns.saturating_add(transfer_ns);
        self.interface_free_ns = received_ns;
        let (end_ns, outcome) = match request.op {
            Op::Flush if self.params.write_back_bytes > 0 => (ready_ns, Ok(())),
            Op::Flush => self.everywhere(ready_ns, Request::flush()),
            Op::Read => {
                let (read_ns, outcome) = self.in_parts(ready_ns, request, Array::read_part);
                (read_ns.max(received_ns), outcome)
            }
            Op::Write if self.params.gather_ns > 0 && request.bytes <= self.params.write_back_bytes => {
                (self.gather(received_ns, request), Ok(()))
            }
            Op::Write => {
                for part in parts(request, self.stripe_bytes()) {
                    let held = self.gather.take_stripe(part.stripe);
                    self.release(received_ns, &held);
                }
                let (written_ns, outcome) = self.in_parts(received_ns, request, Array::write_part);
                (self.seen_by_host(received_ns, written_ns, request.bytes), outcome)
            }
        };
        Completion { start_ns, end_ns: end_ns.max(start_ns), outcome }
    }

    /// When the write completes for the host: at once while the protected cache has room.
    fn seen_by_host(&mut self, received_ns: u64, written_ns: u64, bytes: u64) -> u64 {
        if self.params.write_back_bytes == 0 || bytes > self.params.write_back_bytes {
            return written_ns;
        }
        self.write_back.push_back((written_ns, bytes));
        self.write_back_held_bytes += bytes;
        self.wait_for_room(received_ns, written_ns)
    }

    /// When the cache has room for what is in it, at the latest at `latest_ns`; what the members have by then leaves it.
    fn wait_for_room(&mut self, received_ns: u64, latest_ns: u64) -> u64 {
        let mut seen_ns = received_ns;
        while let Some(&(done_ns, bytes)) = self.write_back.front() {
            let held_bytes = self.gather.bytes() + self.write_back_held_bytes;
            if done_ns > seen_ns && held_bytes <= self.params.write_back_bytes {
                break;
            }
            seen_ns = seen_ns.max(done_ns.min(latest_ns));
            self.write_back_held_bytes -= bytes;
            self.write_back.pop_front();
        }
        seen_ns
    }

    /// Takes a write into the protected cache, which holds it back until its stripe is whole, old or in the way; returns the
    /// time at which the write completes for the host.
    fn gather(&mut self, received_ns: u64, request: Request) -> u64 {
        for part in parts(request, self.stripe_bytes()) {
            self.gather.add(received_ns, part);
            if let Some(whole) = self.gather.take_whole(part.stripe, self.stripe_bytes()) {
                self.release(received_ns, &[whole]);
            }
        }
        // From half of the cache on the oldest go out, so that there is room before a write needs it.
        while self.gather.bytes() > self.params.write_back_bytes / 2 || self.gather.stripes() > MAX_HELD {
            let oldest = self.gather.take_oldest();
            self.release(received_ns, &oldest);
        }
        self.wait_for_room(received_ns, u64::MAX)
    }

    /// Gives the members what the cache has held for `gather_ns`, at the time when that was over.
    fn release_due(&mut self, now_ns: u64) {
        while let Some(due_ns) =
            self.gather.oldest_ns().map(|since_ns| since_ns.saturating_add(self.params.gather_ns))
        {
            if due_ns > now_ns {
                return;
            }
            let oldest = self.gather.take_oldest();
            self.release(due_ns, &oldest);
        }
    }

    /// Writes parts of one stripe to the members; they stay in the cache until that is done. Returns when that is.
    fn release(&mut self, now_ns: u64, parts: &[Part]) -> u64 {
        let (mut done_ns, mut bytes) = (now_ns, 0);
        if parts.is_empty() {
            return now_ns;
        }
        for part in parts {
            done_ns = done_ns.max(self.write_part(now_ns, *part, Force::Cached).0);
            bytes += part.end - part.first;
        }
        self.write_back.push_back((done_ns, bytes));
        self.write_back_held_bytes += bytes;
        done_ns
    }

    fn in_parts(
        &mut self,
        now_ns: u64,
        request: Request,
        serve: fn(&mut Array, u64, Part, Force) -> (u64, Outcome),
    ) -> (u64, Outcome) {
        let parts = parts(request, self.stripe_bytes());
        parts
            .into_iter()
            .fold((now_ns, Ok(())), |latest, part| later(latest, serve(self, now_ns, part, request.force)))
    }

    fn read_part(&mut self, now_ns: u64, part: Part, _: Force) -> (u64, Outcome) {
        if self.gather.holds(part) {
            return (now_ns, Ok(()));
        }
        let held = self.gather.take_stripe(part.stripe);
        if !held.is_empty() {
            // Partly in the cache, partly on the members: it is written first, then read.
            let now_ns = self.release(now_ns, &held);
            return self.read_part(now_ns, part, Force::Cached);
        }
        if self.params.level == RaidLevel::Raid1 {
            self.turn = (self.turn + 1) % self.params.members;
            let offset_bytes = part.stripe * self.params.chunk_bytes + part.first;
            return self.ask(now_ns, self.turn, Request::read(offset_bytes, part.end - part.first));
        }
        let mut latest = (now_ns, Ok(()));
        for (chunk, first, bytes) in self.chunks(part) {
            let member = self.data_member(part.stripe, chunk);
            let offset_bytes = part.stripe * self.params.chunk_bytes + first;
            latest = later(latest, self.ask(now_ns, member, Request::read(offset_bytes, bytes)));
        }
        latest
    }

    fn write_part(&mut self, now_ns: u64, part: Part, force: Force) -> (u64, Outcome) {
        let base = part.stripe * self.params.chunk_bytes;
        let write = |first, bytes| Request { force, ..Request::write(base + first, bytes) };
        if self.params.level == RaidLevel::Raid1 {
            return self.everywhere(now_ns, write(part.first, part.end - part.first));
        }
        let touched = self.chunks(part);
        // Parity covers the rows of bytes that any of the chunks touch.
        let first = touched.iter().map(|&(_, first, _)| first).min().unwrap_or(0);
        let end = touched.iter().map(|&(_, first, bytes)| first + bytes).max().unwrap_or(0);
        let read_done = self.read_before_write(now_ns, part, &touched, (first, end));
        let mut latest = read_done;
        for &(chunk, first, bytes) in &touched {
            let member = self.data_member(part.stripe, chunk);
            latest = later(latest, self.ask(read_done.0, member, write(first, bytes)));
        }
        for parity in self.parity_members(part.stripe) {
            latest = later(latest, self.ask(read_done.0, parity, write(first, end - first)));
        }
        latest
    }

    /// Reads what the new parity needs: the old data and parity (read-modify-write), or the rest of the stripe's rows
    /// (reconstruct-write), whichever is fewer requests; nothing for a whole stripe.
    fn read_before_write(
        &mut self,
        now_ns: u64,
        part: Part,
        touched: &[(u64, u64, u64)],
        (first, end): (u64, u64),
    ) -> (u64, Outcome) {
        let parities = self.parity_members(part.stripe);
        let base = part.stripe * self.params.chunk_bytes;
        let covered =
            |chunk: u64| touched.iter().any(|&(n, at, bytes)| n == chunk && at == first && at + bytes == end);
        let rest: Vec<u64> = (0..self.params.data_members() as u64).filter(|&n| !covered(n)).collect();
        let mut latest = (now_ns, Ok(()));
        if parities.is_empty() || rest.is_empty() {
            return latest;
        }
        if rest.len() < touched.len() + parities.len() {
            for chunk in rest {
                let member = self.data_member(part.stripe, chunk);
                latest = later(latest, self.ask(now_ns, member, Request::read(base + first, end - first)));
            }
            return latest;
        }
        for &(chunk, at, bytes) in touched {
            let member = self.data_member(part.stripe, chunk);
            latest = later(latest, self.ask(now_ns, member, Request::read(base + at, bytes)));
        }
        for parity in parities {
            latest = later(latest, self.ask(now_ns, parity, Request::read(base + first, end - first)));
        }
        latest
    }

    /// The chunks that a part touches: index in the stripe, first byte within the chunk, bytes.
    fn chunks(&self, part: Part) -> Vec<(u64, u64, u64)> {
        let chunk_bytes = self.params.chunk_bytes;
        (part.first / chunk_bytes..part.end.div_ceil(chunk_bytes))
            .map(|chunk| {
                let first = part.first.max(chunk * chunk_bytes);
                let end = part.end.min((chunk + 1) * chunk_bytes);
                (chunk, first - chunk * chunk_bytes, end - first)
            })
            .collect()
    }

    /// Parity moves one member to the left with each stripe (left-symmetric, Linux md's default).
    fn parity_members(&self, stripe: u64) -> Vec<usize> {
        let members = self.params.members as u64;
        let parities = (self.params.members - self.params.data_members()) as u64;
        if matches!(self.params.level, RaidLevel::Raid0 | RaidLevel::Raid1) {
            return Vec::new();
        }
        let first = members - 1 - stripe % members;
        (0..parities).map(|n| index((first + n) % members)).collect()
    }

    fn data_member(&self, stripe: u64, chunk: u64) -> usize {
        let members = self.params.members as u64;
        match self.parity_members(stripe).last() {
            None => index(chunk),
            Some(&parity) => index((parity as u64 + 1 + chunk) % members),
        }
    }

    fn everywhere(&mut self, now_ns: u64, request: Request) -> (u64, Outcome) {
        (0..self.params.members)
            .fold((now_ns, Ok(())), |latest, member| later(latest, self.ask(now_ns, member, request)))
    }

    fn ask(&mut self, now_ns: u64, member: usize, request: Request) -> (u64, Outcome) {
        let counts = &mut self.counts[member];
        match request.op {
            Op::Read => {
                counts.reads += 1;
                counts.read_bytes += request.bytes;
            }
            Op::Write => {
                counts.writes += 1;
                counts.write_bytes += request.bytes;
            }
            Op::Flush => {}
        }
        let done = self.members[member].submit(now_ns, request);
        (done.end_ns, done.outcome)
    }
}

type Outcome = Result<(), crate::request::Fault>;

fn later(a: (u64, Outcome), b: (u64, Outcome)) -> (u64, Outcome) {
    (a.0.max(b.0), a.1.and(b.1))
}

/// An index of a member, computed in 64 bits.
fn index(member: u64) -> usize {
    usize::try_from(member).expect("less than the number of members, which is a usize")
}
