//! Ranks by MPI. It must be started once in a process, before any other thread, and ended last.

use crate::error::RanksError;
use crate::ranks::{Ranks, Tag, Traffic};
use mpi::Threading;
use mpi::environment::Universe;
use mpi::topology::SimpleCommunicator;
use mpi::traits::{Communicator as _, Destination as _, MatchedReceiveVec as _, Source as _};
use rdsk_model::StopFlag;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How long a wait spins: longer than a round trip in a rack. A rank that waits for I/O of another must not take its processor.
const SPIN: Duration = Duration::from_micros(200);
/// The same while clocks are compared, where a pause would be taken for a way.
const CLOCK_SPIN: Duration = Duration::from_millis(5);
const PAUSE: Duration = Duration::from_micros(100);

/// This process as a rank of MPI's world.
#[derive(Debug)]
pub struct Mpi {
    rank: u32,
    size: u32,
    stop: StopFlag,
    messages: AtomicU64,
    bytes: AtomicU64,
}

impl Mpi {
    /// Starts MPI; `None` where it was started before. The universe ends it when it is dropped; without that, the job counts as failed.
    pub fn start(stop: StopFlag) -> Option<(Universe, Self)> {
        let (universe, _) = mpi::initialize_with_threading(Threading::Serialized)?;
        let world = universe.world();
        let number = |number: i32| u32::try_from(number).unwrap_or(0);
        let (rank, size) = (number(world.rank()), number(world.size()));
        let counts = AtomicU64::default;
        Some((universe, Self { rank, size, stop, messages: counts(), bytes: counts() }))
    }

    fn number(rank: u32) -> Result<i32, RanksError> {
        i32::try_from(rank).map_err(|_| RanksError::Gone(rank))
    }
}

impl Ranks for Mpi {
    fn rank(&self) -> u32 {
        self.rank
    }

    fn size(&self) -> u32 {
        self.size
    }

    fn send(&self, to: u32, tag: Tag, bytes: &[u8]) -> Result<(), RanksError> {
        SimpleCommunicator::world().process_at_rank(Self::number(to)?).send_with_tag(bytes, tag as i32);
        self.messages.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        Ok(())
    }

    fn receive(&self, from: u32, tag: Tag) -> Result<Vec<u8>, RanksError> {
        let world = SimpleCommunicator::world();
        let process = world.process_at_rank(Self::number(from)?);
        let spin = if tag == Tag::Clock { CLOCK_SPIN } else { SPIN };
        let began = Instant::now();
        loop {
            if let Some(message) = process.immediate_matched_probe_with_tag(tag as i32) {
                return Ok(message.matched_receive_vec().0);
            }
            if self.stop.is_raised() {
                return Err(RanksError::Interrupted(from));
            }
            if began.elapsed() > spin {
                std::thread::sleep(PAUSE);
            } else {
                std::thread::yield_now();
            }
        }
    }

    fn traffic(&self) -> Traffic {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Traffic { messages: count(&self.messages), bytes: count(&self.bytes) }
    }
}
