//! The Record: what was seen, as versioned JSON (schema `rdsk.record/2`). Raw values in base units with the unit in the
//! key; what was not measured is null, never 0. It holds data and draws nothing.

use crate::cell::CellRecord;
use crate::copy::Copy;
use crate::evidence::EvidenceSource;
use crate::finding::Finding;
use crate::need::Need;
use crate::problem::Problem;
use crate::promise::Promise;
use crate::ranks::RankRun;
use crate::status::Status;
use crate::target::Target;
use serde::{Deserialize, Serialize};

/// The clock that all times were taken from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ClockFacts {
    /// The kernel's clock source: `tsc`; `virtual` for a simulation.
    pub source: String,
    /// Smallest step between two different readings.
    pub resolution_ns: u64,
    /// Time that one reading takes.
    pub read_cost_ns: u64,
}

/// The machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Host {
    /// What it is called (uname's node name); untrusted text. `None` for a simulated one, and in Records before it was recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hostname: Option<String>,
    /// Kernel release.
    pub kernel: String,
    /// Processor model.
    pub cpu_model: Option<String>,
    /// Processors that this process may use.
    pub cpu_count: u32,
    /// Memory.
    pub memory_bytes: Option<u64>,
    /// Hypervisor or container where one shows itself; `None` where none does.
    pub virtualization: Option<String>,
    /// Unit of the page cache: 4096 on most machines, the buffer of a simulated host.
    #[serde(default)]
    pub page_bytes: Option<u64>,
    /// The clock.
    pub clock: ClockFacts,
}

/// How the evidence was gathered.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ObserverFacts {
    /// The best source that worked.
    #[serde(alias = "rung")]
    pub source: EvidenceSource,
    /// Why no better source was used.
    pub why_not_higher: Option<String>,
    /// Events that the observer lost.
    pub lost_events: u64,
    /// What observing cost per I/O, where measured.
    pub cost_ns_per_io: Option<f64>,
}

/// The program that measured, where that was not rdsk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Source {
    /// Its name: `fio`.
    pub tool: String,
    /// Its version as it spells it: `fio-3.33`; untrusted text.
    pub version: Option<String>,
}

/// One run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Record {
    /// Name and number of this schema.
    #[serde(serialize_with = "current_schema")]
    #[cfg_attr(feature = "schema", schemars(extend("const" = crate::SCHEMA)))]
    pub schema: String,
    /// Sortable by time and unique (ULID).
    #[cfg_attr(feature = "schema", schemars(extend("pattern" = crate::ID_PATTERN)))]
    pub id: String,
    /// The user's name for the run.
    pub label: Option<String>,
    /// The command line.
    pub command: Vec<String>,
    /// Version of rdsk; of the one that read the document, where another program measured.
    pub rdsk_version: String,
    /// The program that measured; `None` for rdsk itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<Source>,
    /// RFC 3339, in UTC.
    #[cfg_attr(feature = "schema", schemars(extend("format" = "date-time", "pattern" = crate::TIME_PATTERN)))]
    pub started_at: String,
    /// Wall time of the whole run.
    pub elapsed_ns: u64,
    /// The time that passed on the simulated system; `None` for real targets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub simulated_ns: Option<u64>,
    /// What the seeds of all cells come from; `None` where nothing was planned, and for records of before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// How it ended.
    pub status: Status,
    /// Why it failed.
    pub error: Option<Problem>,
    /// The machine; `None` when the run failed before it was looked at.
    pub host: Option<Host>,
    /// The targets.
    pub targets: Vec<Target>,
    /// The observer.
    pub observer: ObserverFacts,
    /// The cells.
    pub cells: Vec<CellRecord>,
    /// Writing cells of `cells` once more, by the same ids, each in one visit that went on until its rate had settled. Those of a
    /// simulated system are of a copy of it that begins as the system did.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sustained: Vec<CellRecord>,
    /// The command lines of `rdsk dd`; none for every other command.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub copies: Vec<Copy>,
    /// What `rdsk check` asked; `None` for every other command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub need: Option<Need>,
    /// What `rdsk load` holds while it looks for the highest rate; `None` where it was given a rate or none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub promise: Option<Promise>,
    /// The ranks of a run of several processes: all of them, or the one whose part this is. None for a run of a single process.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ranks: Vec<RankRun>,
    /// The findings.
    pub findings: Vec<Finding>,
    /// What the tool has to say about the run as a whole: a fallback, a shortened pass, an orphan removed.
    pub notes: Vec<String>,
}

impl Record {
    /// A cell by its id.
    pub fn cell(&self, id: &str) -> Option<&CellRecord> {
        self.cells.iter().find(|cell| cell.id == id)
    }

    /// Whether it was made in a virtual machine, whose disks may be anything. A container alone has the disks of its machine.
    pub fn is_of_guest(&self) -> bool {
        let layers = self.host.as_ref().and_then(|host| host.virtualization.as_deref()).unwrap_or_default();
        layers.split(" on ").any(|layer| !["", "docker", "podman", "container"].contains(&layer))
    }
}

/// A Record of an older schema has lost the keys that have gone since when it is written again.
fn current_schema<S: serde::Serializer>(_: &str, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(crate::SCHEMA)
}
