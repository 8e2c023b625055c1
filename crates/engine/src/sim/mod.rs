//! The simulated engine: the same jobs on the hosts of a [`SharedLab`], in virtual time. It opens nothing and never sleeps;
//! an hour of disk time takes as long as its requests take to compute.

mod clock;
mod event_loop;
mod session;
mod streams;

use crate::error::EngineError;
use crate::job::{Engine, Job, Session};
use crate::offsets::Offsets;
use crate::places::AllPlaces;
use crate::validate::{check_shape, used_targets};
pub use clock::SimClock;
use rdsk_disk::{LunId, SharedLab};
use rdsk_model::{ClockFacts, EngineKind, Host, IoPath, PageCacheState};
use rdsk_targets::Claim;
use session::SimSession;

/// The engine of simulated targets.
#[derive(Clone, Debug)]
pub struct SimEngine {
    clock: SimClock,
    /// The LUN of each claim, by its position.
    luns: Vec<LunId>,
    /// Opens so far; the hosts see each stream of each open as a separate reader.
    opens: usize,
    places: AllPlaces,
}

impl SimEngine {
    /// An engine over a lab with the hosts of all claims; LUNs of one system share their host. `seed` decides what is
    /// random on real devices.
    ///
    /// # Errors
    /// [`EngineError::Workload`] when a claim is not simulated: real and virtual time cannot be compared in one run.
    pub fn new(claims: &[Claim], seed: u64) -> Result<Self, EngineError> {
        let lab = SharedLab::default();
        let mut luns = Vec::with_capacity(claims.len());
        let mut resolution_ns = 1;
        for claim in claims {
            let Some(simulated) = claim.simulated() else {
                let name = &claim.target.name;
                return Err(EngineError::Workload(format!("{name} is real and another target is simulated")));
            };
            let host = lab.lock().host_of(&simulated.system, seed);
            resolution_ns = simulated.system.params.host.clock_resolution_ns.max(resolution_ns);
            luns.push(LunId { host, lun: simulated.lun });
        }
        Ok(Self { clock: SimClock { lab, resolution_ns }, luns, opens: 0, places: AllPlaces::default() })
    }

    /// The lab, for an observer.
    pub fn lab(&self) -> SharedLab {
        self.clock.lab.clone()
    }

    /// The LUN of each claim, by its position.
    pub fn luns(&self) -> &[LunId] {
        &self.luns
    }

    /// The clock of the hosts: virtual, with the coarsest step of any of them.
    pub fn clock(&self) -> SimClock {
        self.clock.clone()
    }

    /// The simulated machine as a Record states it.
    pub fn host(&self) -> Option<Host> {
        let lab = self.clock.lab.lock();
        let params = lab.host(self.luns.first()?.host).params();
        Some(Host {
            hostname: None,
            kernel: "simulated".into(),
            cpu_model: None,
            cpu_count: 1,
            memory_bytes: None,
            virtualization: None,
            page_bytes: Some(params.buffer_bytes),
            clock: ClockFacts {
                source: "virtual".into(),
                resolution_ns: self.clock.resolution_ns,
                read_cost_ns: 0,
            },
        })
    }
}

impl Engine for SimEngine {
    fn open<'a>(&'a mut self, job: &Job<'a>) -> Result<Box<dyn Session + 'a>, EngineError> {
        let workload = job.workload;
        check_shape(workload)?;
        if workload.engine != EngineKind::Sim {
            return Err(EngineError::Workload("a simulated target needs the simulated engine".into()));
        }
        if workload.path == IoPath::DontCache {
            return Err(EngineError::Workload("a simulated host has no RWF_DONTCACHE".into()));
        }
        let mut luns = Vec::new();
        let mut places = Vec::new();
        for (index, claim) in used_targets(job)? {
            let no_claim = EngineError::NoClaim { index, claims: self.luns.len() };
            luns.push((index, *self.luns.get(index as usize).ok_or(no_claim)?));
            places.push(self.places.of_visit(index, claim.target.size_bytes, workload));
        }
        let page_bytes = luns
            .iter()
            .map(|(_, lun)| self.clock.lab.lock().host(lun.host).params().buffer_bytes)
            .max()
            .unwrap_or(1);
        for stream in 0..workload.streams {
            Offsets::new(workload, job.visit, stream, page_bytes)?;
        }
        self.opens += 1;
        Ok(Box::new(SimSession {
            clock: self.clock.clone(),
            job: job.clone(),
            luns,
            places,
            page_bytes,
            open: self.opens,
            cached_before: PageCacheState::default(),
            begin_ns: None,
        }))
    }
}
