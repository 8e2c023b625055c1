//! Loads the programs into the kernel for some devices, attaches them, and reads their maps. The object is compiled from
//! `bpf/observer.bpf.c` by `cargo xtask bpf`. It needs CAP_BPF and CAP_PERFMON, and a kernel with BTF.

use crate::bpf::layout::{BioKey, BioOrigin, COUNTERS, ROW, ROWS, RequestKey, RequestKind};
use crate::bpf::snapshot::{DeviceTotals, Snapshot};
use aya::maps::{Array, HashMap, MapData, MapError, PerCpuArray, PerCpuHashMap, PerCpuValues};
use aya::programs::raw_trace_point::RawTracePointLinkId;
use aya::programs::tp_btf::BtfTracePointLinkId;
use aya::programs::{BtfTracePoint, Program, ProgramError, RawTracePoint};
use aya::{Btf, BtfError, Ebpf, EbpfError, EbpfLoader};
use rustix::io::Errno;
use rustix::time::{ClockId, clock_gettime};
use std::collections::BTreeMap;

static OBJECT: &[u8] = aya::include_bytes_aligned!("../../bpf/observer.bpf.o");

/// The programs and their tracepoints.
const EVENTS: &[(&str, &str)] = &[
    ("bio_queue", "block_bio_queue"),
    ("bio_complete", "block_bio_complete"),
    ("back_merge", "block_bio_backmerge"),
    ("front_merge", "block_bio_frontmerge"),
    ("split", "block_split"),
    ("request_merge", "block_rq_merge"),
    ("requeue", "block_rq_requeue"),
    ("complete", "block_rq_complete"),
    // The last one: what is issued from now on is seen to its end.
    ("issue", "block_rq_issue"),
];

/// How programs are attached to tracepoints, the best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// `tp_btf`: reads the kernel's memory directly.
    TpBtf,
    /// `raw_tp`: through a helper, for kernels that refuse the other.
    RawTp,
}

impl Way {
    fn suffix(self) -> &'static str {
        match self {
            Self::TpBtf => "btf",
            Self::RawTp => "raw",
        }
    }
}

/// Why there is no evidence from BPF.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the fields are what their names say")]
pub enum BpfError {
    /// The kernel says nothing of its own types.
    #[error("this kernel has no BTF (/sys/kernel/btf/vmlinux)")]
    NoBtf(#[source] BtfError),
    /// Not enough capabilities, or forbidden by lockdown or a sandbox.
    #[error("no permission for BPF; as root, or after: setcap cap_bpf,cap_perfmon+ep rdsk")]
    Forbidden(#[source] std::io::Error),
    /// The object does not fit this kernel.
    #[error("the BPF programs cannot be loaded")]
    Load(#[from] EbpfError),
    /// One program does not fit it.
    #[error("the BPF program for {event} is refused")]
    Program { event: &'static str, source: ProgramError },
    /// A map cannot be read or written.
    #[error("the BPF map {map} cannot be used")]
    Map { map: &'static str, source: MapError },
    /// It holds more devices, or larger ones, than the maps can.
    #[error("too many devices or queues for BPF")]
    TooMany,
}

impl BpfError {
    /// The error of the kernel behind it.
    fn cause(&self) -> Option<&std::io::Error> {
        let mut error: &dyn std::error::Error = self;
        loop {
            if let Some(io) = error.downcast_ref::<std::io::Error>() {
                return Some(io);
            }
            error = error.source()?;
        }
    }

    /// The same, with what the kernel did not permit named so.
    fn named(self) -> Self {
        match self.cause().and_then(std::io::Error::raw_os_error) {
            Some(code) if [Errno::PERM, Errno::ACCESS].map(Errno::raw_os_error).contains(&code) => {
                Self::Forbidden(std::io::Error::from_raw_os_error(code))
            }
            _ => self,
        }
    }
}

/// A device or partition to be observed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockDevice {
    /// Major and minor number.
    pub number: (u32, u32),
    /// Hardware queues; 0 for a device that handles bios itself, as md, dm and zram do.
    pub queues: u32,
    /// Requests that the driver takes from each of them.
    pub tags: u32,
}

/// The most requests that a scheduler holds for a hardware queue (`MAX_SCHED_RQ` of the kernel); its tags are below.
const SCHEDULER_TAGS: u32 = 2048;

/// The words of `struct device`.
type DeviceValue = [u32; 8];

impl BlockDevice {
    /// The number as the kernel writes it.
    fn key(&self) -> u32 {
        let (major, minor) = self.number;
        major << 20 | minor
    }

    /// Places for all its requests.
    fn slots(&self) -> Option<u32> {
        self.slots_of_queue()?.checked_mul(self.queues)
    }

    /// A place for each request that may be in flight in one hardware queue.
    fn slots_of_queue(&self) -> Option<u32> {
        self.tags.checked_add(SCHEDULER_TAGS)
    }
}

/// The programs in the kernel. They are detached when this goes away.
pub struct Programs {
    ebpf: Ebpf,
    way: Way,
    devices: Vec<BlockDevice>,
    links: Vec<Link>,
}

/// One attached program.
enum Link {
    Btf(BtfTracePointLinkId),
    Raw(RawTracePointLinkId),
}

impl Programs {
    /// Loads them for `devices`, whose order is that of all indexes. They count nothing yet.
    ///
    /// # Errors
    /// For whatever prevents it; then the counters of sysfs are the best evidence.
    pub fn load(devices: &[BlockDevice]) -> Result<Self, BpfError> {
        let btf = Btf::from_sys_fs().map_err(BpfError::NoBtf)?;
        let attached = |way| {
            let mut programs = Self::load_by(way, devices, &btf)?;
            programs.attach()?;
            Ok(programs)
        };
        match attached(Way::TpBtf) {
            Err(BpfError::Program { .. }) => attached(Way::RawTp).map_err(BpfError::named),
            other => other.map_err(BpfError::named),
        }
    }

    fn load_by(way: Way, devices: &[BlockDevice], btf: &Btf) -> Result<Self, BpfError> {
        let count = u32::try_from(devices.len()).map_err(|_| BpfError::TooMany)?;
        let slots = devices.iter().try_fold(0_u32, |sum, device| sum.checked_add(device.slots()?));
        let rows = count.checked_mul(ROWS).ok_or(BpfError::TooMany)?;
        let process = std::process::id();
        let mut ebpf = EbpfLoader::new()
            .btf(Some(btf))
            .override_global("OWN_PROCESS", &process, true)
            .map_max_entries("DEVICES", count.max(1))
            .map_max_entries("SLOTS", slots.ok_or(BpfError::TooMany)?.max(1))
            .map_max_entries("TOTALS", count.max(1))
            .map_max_entries("IN_FLIGHT", count.max(1))
            .map_max_entries("DEEPEST", count.max(1))
            .map_max_entries("LATENCIES", rows.max(1))
            .load(OBJECT)?;
        for &(name, event) in EVENTS {
            let program = program_mut(&mut ebpf, name, way);
            load_one(program, way, event, btf).map_err(|source| BpfError::Program { event, source })?;
        }
        Ok(Self { ebpf, way, devices: devices.to_vec(), links: Vec::new() })
    }

    /// Attaches them, if they are not.
    ///
    /// # Errors
    /// When the kernel refuses one of them; then none is attached.
    pub fn attach(&mut self) -> Result<(), BpfError> {
        if !self.links.is_empty() {
            return Ok(());
        }
        for &(name, event) in EVENTS {
            let program = program_mut(&mut self.ebpf, name, self.way);
            match attach_one(program, self.way, event) {
                Ok(link) => self.links.push(link),
                Err(source) => {
                    self.detach();
                    return Err(BpfError::Program { event, source });
                }
            }
        }
        Ok(())
    }

    /// Detaches them; then they cost nothing.
    pub fn detach(&mut self) {
        for (link, (name, _)) in self.links.drain(..).zip(EVENTS) {
            let program = program_mut(&mut self.ebpf, name, self.way);
            // A link that is gone already is what we want.
            match link {
                Link::Btf(id) => drop(<&mut BtfTracePoint>::try_from(program).map(|one| one.detach(id))),
                Link::Raw(id) => drop(<&mut RawTracePoint>::try_from(program).map(|one| one.detach(id))),
            }
        }
    }

    /// How they are attached.
    pub fn way(&self) -> Way {
        self.way
    }

    /// Counts from now on; `at` is called for each device as soon as it is counted.
    ///
    /// # Errors
    /// When the kernel refuses to change its maps.
    pub fn start(&mut self, mut at: impl FnMut(usize)) -> Result<(), BpfError> {
        for map in ["IN_FLIGHT", "DEEPEST"] {
            let mut numbers: Array<&mut MapData, u64> = typed_mut(&mut self.ebpf, map)?;
            for index in 0..numbers.len() {
                numbers.set(index, 0, 0).map_err(|source| BpfError::Map { map, source })?;
            }
        }
        let mut entries: HashMap<&mut MapData, u32, DeviceValue> = typed_mut(&mut self.ebpf, "DEVICES")?;
        let mut base = 0;
        for (index, device) in self.devices.iter().enumerate() {
            let since = now_ns().max(1);
            #[expect(
                clippy::cast_possible_truncation,
                reason = "both halves, and a number that was counted in 32 bits"
            )]
            let words = [since as u32, (since >> 32) as u32, index as u32];
            let [low, high] =
                if cfg!(target_endian = "little") { [words[0], words[1]] } else { [words[1], words[0]] };
            let slots = device.slots_of_queue().ok_or(BpfError::TooMany)?;
            let value = [low, high, words[2], base, slots, device.tags, device.queues, 0];
            entries
                .insert(device.key(), value, 0)
                .map_err(|source| BpfError::Map { map: "DEVICES", source })?;
            at(index);
            base += device.slots().ok_or(BpfError::TooMany)?;
        }
        Ok(())
    }

    /// Counts no more; `at` is called for each device as soon as it is not counted.
    ///
    /// # Errors
    /// When the kernel refuses to change its map.
    pub fn stop(&mut self, mut at: impl FnMut(usize)) -> Result<(), BpfError> {
        let mut entries: HashMap<&mut MapData, u32, DeviceValue> = typed_mut(&mut self.ebpf, "DEVICES")?;
        for (index, device) in self.devices.iter().enumerate() {
            match entries.remove(&device.key()) {
                Ok(()) | Err(MapError::KeyNotFound) => at(index),
                Err(source) => return Err(BpfError::Map { map: "DEVICES", source }),
            }
        }
        Ok(())
    }

    /// Everything that was counted so far.
    ///
    /// # Errors
    /// When a map cannot be read.
    pub fn snapshot(&self) -> Result<Snapshot, BpfError> {
        let totals: PerCpuArray<&MapData, [u64; COUNTERS]> = typed(&self.ebpf, "TOTALS")?;
        let latencies: PerCpuArray<&MapData, [u64; ROW]> = typed(&self.ebpf, "LATENCIES")?;
        let in_flight: Array<&MapData, u64> = typed(&self.ebpf, "IN_FLIGHT")?;
        let deepest: Array<&MapData, u64> = typed(&self.ebpf, "DEEPEST")?;
        let mut devices = Vec::new();
        for index in 0..totals.len() {
            let wrong = |map| move |source| BpfError::Map { map, source };
            let counters = summed(&totals.get(&index, 0).map_err(wrong("TOTALS"))?);
            let mut buckets = Vec::new();
            for row in 0..ROWS {
                let row = latencies.get(&(index * ROWS + row), 0).map_err(wrong("LATENCIES"))?;
                buckets.extend(summed(&row));
            }
            devices.push(DeviceTotals {
                counters,
                buckets,
                in_flight: in_flight.get(&index, 0).map_err(wrong("IN_FLIGHT"))?,
                deepest: deepest.get(&index, 0).map_err(wrong("DEEPEST"))?,
            });
        }
        Ok(Snapshot { at_ns: now_ns(), devices, requests: self.requests()?, bios: self.bios()? })
    }

    fn requests(&self) -> Result<BTreeMap<RequestKind, u64>, BpfError> {
        let map: PerCpuHashMap<&MapData, RequestKey, u64> = typed(&self.ebpf, "REQUESTS")?;
        let entries = map.iter().map(|entry| {
            let (key, values) = entry.map_err(|source| BpfError::Map { map: "REQUESTS", source })?;
            Ok((key.into(), values.iter().fold(0, |sum: u64, value| sum.wrapping_add(*value))))
        });
        entries.collect()
    }

    fn bios(&self) -> Result<BTreeMap<BioOrigin, [u64; 2]>, BpfError> {
        let map: PerCpuHashMap<&MapData, BioKey, [u64; 2]> = typed(&self.ebpf, "BIOS")?;
        let entries = map.iter().map(|entry| {
            let (key, values) = entry.map_err(|source| BpfError::Map { map: "BIOS", source })?;
            Ok((key.into(), summed(&values)))
        });
        entries.collect()
    }
}

fn program_mut<'e>(ebpf: &'e mut Ebpf, name: &str, way: Way) -> &'e mut Program {
    let name = format!("{name}_{}", way.suffix());
    ebpf.program_mut(&name).expect("a test loads every program of the object")
}

fn load_one(program: &mut Program, way: Way, event: &str, btf: &Btf) -> Result<(), ProgramError> {
    match way {
        Way::TpBtf => <&mut BtfTracePoint>::try_from(program)?.load(event, btf),
        Way::RawTp => <&mut RawTracePoint>::try_from(program)?.load(),
    }
}

fn attach_one(program: &mut Program, way: Way, event: &str) -> Result<Link, ProgramError> {
    match way {
        Way::TpBtf => <&mut BtfTracePoint>::try_from(program)?.attach().map(Link::Btf),
        Way::RawTp => <&mut RawTracePoint>::try_from(program)?.attach(event).map(Link::Raw),
    }
}

/// The clock that the programs read.
fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec.cast_unsigned() * 1_000_000_000 + now.tv_nsec.cast_unsigned()
}

/// Over all processors. Counts may have been taken away on another processor than they were added on, so they wrap.
fn summed<const N: usize>(values: &PerCpuValues<[u64; N]>) -> [u64; N] {
    let mut sum = [0_u64; N];
    for value in values.iter() {
        for (sum, value) in sum.iter_mut().zip(value) {
            *sum = sum.wrapping_add(*value);
        }
    }
    sum
}

fn typed<'e, T: TryFrom<&'e aya::maps::Map, Error = MapError>>(
    ebpf: &'e Ebpf,
    name: &'static str,
) -> Result<T, BpfError> {
    let map = ebpf.map(name).expect("a test reads every map of the object");
    T::try_from(map).map_err(|source| BpfError::Map { map: name, source })
}

fn typed_mut<'e, T: TryFrom<&'e mut aya::maps::Map, Error = MapError>>(
    ebpf: &'e mut Ebpf,
    name: &'static str,
) -> Result<T, BpfError> {
    let map = ebpf.map_mut(name).expect("a test reads every map of the object");
    T::try_from(map).map_err(|source| BpfError::Map { map: name, source })
}
