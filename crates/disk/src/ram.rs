//! Memory: a few servers, each one request after the other, and a buffer for writes; no mechanics.

use std::collections::VecDeque;

use crate::disk::whole_ns;
use crate::params::RamParams;
use crate::request::{Completion, Op, Request};

#[derive(Clone, Debug)]
pub(crate) struct Ram {
    params: RamParams,
    free_ns: Vec<f64>,
    /// Writes in the buffer: when they are stored, never one before another, and their bytes.
    buffered: VecDeque<(u64, u64)>,
    buffered_bytes: u64,
}

impl Ram {
    pub(crate) fn new(params: &RamParams) -> Ram {
        Ram {
            params: params.clone(),
            free_ns: vec![0.0; params.servers],
            buffered: VecDeque::new(),
            buffered_bytes: 0,
        }
    }

    /// Takes a request; the first free server serves it. A flush waits for all servers.
    pub(crate) fn submit(&mut self, arrival_ns: u64, request: Request) -> Completion {
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
        let (start_ns, mut end_ns) = (whole_ns(start_ns), whole_ns(end_ns));
        if request.op == Op::Write && request.bytes <= self.params.write_buffer_bytes {
            end_ns = self.buffer(arrival_ns, end_ns, request.bytes);
        }
        Completion { start_ns: start_ns.min(end_ns), end_ns, outcome: Ok(()) }
    }

    /// When a write is in the buffer: at once, or when enough earlier ones are stored to make room.
    fn buffer(&mut self, arrival_ns: u64, stored_ns: u64, bytes: u64) -> u64 {
        let mut received_ns = arrival_ns;
        while let Some(&(done_ns, gone_bytes)) = self.buffered.front() {
            if done_ns > received_ns && self.buffered_bytes + bytes <= self.params.write_buffer_bytes {
                break;
            }
            received_ns = received_ns.max(done_ns);
            self.buffered_bytes -= gone_bytes;
            self.buffered.pop_front();
        }
        let last_ns = self.buffered.back().map_or(0, |&(done_ns, _)| done_ns);
        self.buffered.push_back((stored_ns.max(last_ns), bytes));
        self.buffered_bytes += bytes;
        received_ns
    }
}
