//! Flash: pages over parallel dies, a fast part that fills and drains, and garbage collections that block everything. It models
//! no mapping and no wear.

use crate::disk::whole_ns;
use crate::params::SsdParams;
use crate::request::{Completion, Op, Request};

#[derive(Clone, Debug)]
pub(crate) struct Ssd {
    params: SsdParams,
    interface_free_ns: f64,
    die_free_ns: Vec<f64>,
    slc_used_bytes: f64,
    /// Until when the draining of the fast part is accounted for.
    slc_seen_ns: f64,
    written_bytes: u64,
}

impl Ssd {
    /// A device with checked parameters, its fast part empty.
    pub(crate) fn new(params: &SsdParams) -> Ssd {
        Ssd {
            params: params.clone(),
            interface_free_ns: 0.0,
            die_free_ns: vec![0.0; params.dies],
            slc_used_bytes: 0.0,
            slc_seen_ns: 0.0,
            written_bytes: 0,
        }
    }

    pub(crate) fn submit(&mut self, arrival_ns: u64, request: Request) -> Completion {
        let arrival = arrival_ns as f64;
        let end_ns = match request.op {
            Op::Flush => self.die_free_ns.iter().copied().fold(arrival, f64::max),
            _ if request.bytes == 0 => arrival + self.params.command_ns as f64,
            Op::Read => self.read(arrival, &request),
            Op::Write => self.write(arrival, &request),
        };
        Completion { start_ns: arrival_ns, end_ns: whole_ns(end_ns), outcome: Ok(()) }
    }

    fn pages(&self, request: &Request) -> std::ops::Range<u64> {
        request.offset_bytes / self.params.page_bytes..request.end_bytes().div_ceil(self.params.page_bytes)
    }

    /// Pages are distributed over the dies in turn.
    fn die_of(&self, page: u64) -> usize {
        usize::try_from(page % self.params.dies as u64)
            .expect("less than the number of dies, which is a usize")
    }

    fn over_interface(&mut self, from_ns: f64, bytes: u64) -> f64 {
        let start_ns = from_ns.max(self.interface_free_ns);
        self.interface_free_ns = start_ns + bytes as f64 / self.params.interface_bytes_per_s * 1e9;
        self.interface_free_ns
    }

    fn read(&mut self, arrival_ns: f64, request: &Request) -> f64 {
        let ready_ns = arrival_ns + self.params.command_ns as f64;
        let mut read_ns = ready_ns;
        for page in self.pages(request) {
            let die = self.die_of(page);
            let end_ns = self.die_free_ns[die].max(ready_ns) + self.params.read_ns as f64;
            self.die_free_ns[die] = end_ns;
            read_ns = read_ns.max(end_ns);
        }
        self.over_interface(read_ns, request.bytes)
    }

    fn write(&mut self, arrival_ns: f64, request: &Request) -> f64 {
        self.drain(arrival_ns);
        let received_ns = self.over_interface(arrival_ns + self.params.command_ns as f64, request.bytes);
        let mut written_ns = received_ns;
        for page in self.pages(request) {
            let program_ns = self.take_place();
            let die = self.die_of(page);
            let end_ns = self.die_free_ns[die].max(received_ns) + program_ns;
            self.die_free_ns[die] = end_ns;
            written_ns = written_ns.max(end_ns);
        }
        self.slc_seen_ns = self.slc_seen_ns.max(written_ns);
        written_ns
    }

    /// The fast part empties while nothing is written.
    fn drain(&mut self, now_ns: f64) {
        let idle_ns = (now_ns - self.slc_seen_ns).max(0.0);
        self.slc_used_bytes =
            (self.slc_used_bytes - idle_ns / 1e9 * self.params.slc_drain_bytes_per_s).max(0.0);
        self.slc_seen_ns = self.slc_seen_ns.max(now_ns);
    }

    /// Time to program one page, after a garbage collection if one is due.
    fn take_place(&mut self) -> f64 {
        let page_bytes = self.params.page_bytes;
        let every = self.params.gc_every_bytes;
        let before = self.written_bytes;
        self.written_bytes += page_bytes;
        if every > 0 && before / every != self.written_bytes / every {
            let held_up_ns = self.params.gc_ns as f64;
            let latest_ns = self.die_free_ns.iter().copied().fold(self.slc_seen_ns, f64::max);
            self.die_free_ns.fill(latest_ns + held_up_ns);
        }
        if self.slc_used_bytes + page_bytes as f64 <= self.params.slc_bytes as f64 {
            self.slc_used_bytes += page_bytes as f64;
            self.params.slc_program_ns as f64
        } else {
            self.params.program_ns as f64
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn params() -> SsdParams {
        SsdParams {
            capacity_bytes: 1 << 30,
            page_bytes: 4096,
            dies: 4,
            read_ns: 50_000,
            program_ns: 400_000,
            command_ns: 10_000,
            interface_bytes_per_s: 1e9,
            slc_bytes: 40 * 4096,
            slc_program_ns: 100_000,
            slc_drain_bytes_per_s: 4096.0 * 10.0,
            gc_every_bytes: 0,
            gc_ns: 0,
        }
    }

    #[test]
    fn dies_read_in_parallel() {
        let mut ssd = Ssd::new(&params());
        let one = ssd.submit(0, Request::read(0, 4096)).end_ns;
        assert_eq!(one, 10_000 + 50_000 + 4096);
        let mut ssd = Ssd::new(&params());
        assert_eq!(ssd.submit(0, Request::read(0, 4 * 4096)).end_ns, 10_000 + 50_000 + 4 * 4096);
        let mut ssd = Ssd::new(&params());
        assert_eq!(ssd.submit(0, Request::read(0, 5 * 4096)).end_ns, 10_000 + 100_000 + 5 * 4096);
    }

    #[test]
    fn the_fast_part_runs_out_and_drains() {
        let mut ssd = Ssd::new(&params());
        let mut now_ns = 0;
        let mut took_ns = Vec::new();
        for page in 0..50 {
            let end_ns = ssd.submit(now_ns, Request::write(page * 4096, 4096)).end_ns;
            took_ns.push(end_ns - now_ns);
            now_ns = end_ns;
        }
        assert_eq!(took_ns[39], 114_096);
        assert_eq!(took_ns[40], 414_096);
        let rested_ns = now_ns + 1_000_000_000;
        assert_eq!(ssd.submit(rested_ns, Request::write(0, 4096)).end_ns - rested_ns, 114_096);
    }

    #[test]
    fn a_garbage_collection_holds_up_one_write() {
        let params = SsdParams { gc_every_bytes: 10 * 4096, gc_ns: 5_000_000, ..params() };
        let mut ssd = Ssd::new(&params);
        let mut now_ns = 0;
        let mut slow = Vec::new();
        for page in 0..30 {
            let end_ns = ssd.submit(now_ns, Request::write(page * 4096, 4096)).end_ns;
            if end_ns - now_ns > 5_000_000 {
                slow.push(page);
            }
            now_ns = end_ns;
        }
        assert_eq!(slow, [9, 19, 29]);
    }
}
