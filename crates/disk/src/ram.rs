//! A store of memory: a few servers, each one request after the other; no mechanics, no cache.

use crate::disk::whole_ns;
use crate::params::RamParams;
use crate::request::{Completion, Op, Request};

/// A store of memory.
#[derive(Clone, Debug)]
pub struct Ram {
    params: RamParams,
    last_arrival_ns: u64,
    free_ns: Vec<f64>,
}

impl Ram {
    /// A store whose figures were checked.
    pub fn new(params: &RamParams) -> Ram {
        Ram { params: params.clone(), last_arrival_ns: 0, free_ns: vec![0.0; params.servers] }
    }

    /// Size in bytes.
    pub fn capacity_bytes(&self) -> u64 {
        self.params.capacity_bytes
    }

    /// Takes a request at `now_ns`; the first free server serves it. A flush waits for all servers.
    pub fn submit(&mut self, now_ns: u64, request: Request) -> Completion {
        let arrival_ns = now_ns.max(self.last_arrival_ns);
        self.last_arrival_ns = arrival_ns;
        let (command_ns, bytes_per_s) = match request.op {
            Op::Read => (self.params.read_command_ns, self.params.read_bytes_per_s),
            Op::Write => (self.params.write_command_ns, self.params.write_bytes_per_s),
            Op::Flush => {
                let all_ns = self.free_ns.iter().copied().fold(arrival_ns as f64, f64::max);
                return Completion { start_ns: arrival_ns, end_ns: whole_ns(all_ns), outcome: Ok(()) };
            }
        };
        let server = self
            .free_ns
            .iter_mut()
            .min_by(|a, b| a.total_cmp(b))
            .expect("a checked store has at least one server");
        let start_ns = server.max(arrival_ns as f64);
        let end_ns = start_ns + command_ns as f64 + request.bytes as f64 / bytes_per_s * 1e9;
        *server = end_ns;
        Completion { start_ns: whole_ns(start_ns), end_ns: whole_ns(end_ns), outcome: Ok(()) }
    }
}
