//! Loads the programs into the kernel for some devices, attaches them, and reads their maps. The object is compiled from
//! `bpf/observer.bpf.c` by `cargo xtask bpf`. It needs CAP_BPF and CAP_PERFMON, and a kernel with BTF.

use crate::bpf::device::BlockDevice;
use crate::bpf::error::{BpfError, Surroundings, in_first_pid_namespace};
use crate::bpf::events::{Event, Family, events, is_for_times};
use crate::bpf::layout::{BioOrigin, NEAR_DEVICES, RequestKind};
use crate::bpf::maps::{Maps, Sizes, lanes};
use crate::bpf::snapshot::{Snapshot, Times};
use aya::maps::{HashMap, Map, MapData};
use aya::programs::raw_trace_point::RawTracePointLinkId;
use aya::programs::tp_btf::BtfTracePointLinkId;
use aya::programs::{BtfTracePoint, Program, ProgramError, RawTracePoint};
use aya::{Btf, Ebpf, EbpfLoader};
use rdsk_sys::bpf::{Entry, per_cpu_entries, possible_processors};
use rustix::time::{ClockId, clock_gettime};
use std::collections::BTreeMap;
use std::fs;

static OBJECT: &[u8] = aya::include_bytes_aligned!("../../bpf/observer.bpf.o");

/// The most children that live at once.
const MAX_CHILDREN: u32 = 16_384;

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

/// The programs in the kernel. They are detached when this goes away.
pub struct Programs {
    ebpf: Ebpf,
    maps: Maps,
    way: Way,
    /// Why it is not the best way, in words.
    why_not_better: Option<String>,
    /// Those of the programs that are needed, in the order of attaching.
    events: Vec<&'static Event>,
    devices: Vec<BlockDevice>,
    /// Those that are attached, each with its place in `events`.
    links: Vec<(usize, Link)>,
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
        Self::load_for(devices, Family::Alone)
    }

    /// The same; the bios of what this process starts from now on are those of
    /// [`Task::Child`](crate::bpf::Task::Child).
    ///
    /// # Errors
    /// As [`Programs::load`].
    pub fn load_with_children(devices: &[BlockDevice]) -> Result<Self, BpfError> {
        Self::load_for(devices, Family::WithChildren)
    }

    /// As where the kernel refuses the best way.
    #[cfg(test)]
    pub(crate) fn load_as_raw(devices: &[BlockDevice]) -> Result<Self, BpfError> {
        let btf = Btf::from_sys_fs().map_err(BpfError::NoBtf)?;
        let mut programs = Self::load_by(Way::RawTp, devices, Family::WithChildren, &btf)?;
        programs.attach()?;
        programs.why_not_better = Some("a test wants it so".to_owned());
        Ok(programs)
    }

    fn load_for(devices: &[BlockDevice], family: Family) -> Result<Self, BpfError> {
        if !in_first_pid_namespace(&fs::read_link("/proc/self/ns/pid")) {
            return Err(BpfError::PidNamespace);
        }
        let explained = |error: BpfError| error.explained(&Surroundings::here());
        let btf = Btf::from_sys_fs().map_err(BpfError::NoBtf)?;
        let attached = |way| {
            let mut programs = Self::load_by(way, devices, family, &btf)?;
            programs.attach()?;
            Ok(programs)
        };
        match attached(Way::TpBtf) {
            Err(refused @ BpfError::Program { .. }) => {
                let mut programs = attached(Way::RawTp).map_err(explained)?;
                programs.why_not_better = Some(refused.words());
                Ok(programs)
            }
            other => other.map_err(explained),
        }
    }

    fn load_by(way: Way, devices: &[BlockDevice], family: Family, btf: &Btf) -> Result<Self, BpfError> {
        let slots = devices.iter().try_fold(0_u32, |sum, device| sum.checked_add(device.slots()?));
        let processors = possible_processors().map_err(BpfError::Processors)?;
        let narrow = |number: usize| u32::try_from(number).map_err(|_| BpfError::TooMany);
        let sizes = Sizes {
            devices: narrow(devices.len())?,
            takes_bios: devices.iter().any(|device| device.queues == 0),
            processors: narrow(processors)?,
            lanes: narrow(lanes(devices.len(), processors))?,
        };
        let count = sizes.devices.max(1);
        let mut numbers = [0; NEAR_DEVICES];
        numbers.iter_mut().zip(devices).for_each(|(number, device)| *number = device.key());
        let with_children = family == Family::WithChildren;
        let (process, follows, are_shared) =
            (std::process::id(), u32::from(with_children), u32::from(sizes.lanes < sizes.processors));
        let mut loader = EbpfLoader::new();
        loader
            .btf(Some(btf))
            .override_global("OWN_PROCESS", &process, true)
            .override_global("FOLLOWS_CHILDREN", &follows, true)
            .override_global("DEVICE_COUNT", &count, true)
            .override_global("DEVICE_NUMBERS", &numbers[..], true)
            .override_global("LANES", &sizes.lanes, true)
            .override_global("LANES_ARE_SHARED", &are_shared, true)
            .map_max_entries("INDEXES", count)
            .map_max_entries("SLOTS", slots.ok_or(BpfError::TooMany)?.max(1))
            .map_max_entries("CHILDREN", if with_children { MAX_CHILDREN } else { 1 });
        for (map, rows) in sizes.rows().ok_or(BpfError::TooMany)? {
            loader.map_max_entries(map, rows);
        }
        let mut ebpf = loader.load(OBJECT)?;
        let events = events(family, devices);
        for event in &events {
            let program = program_mut(&mut ebpf, event.program, way);
            load_one(program, way, event.tracepoint, btf)
                .map_err(|source| BpfError::Program { event: event.tracepoint, source })?;
        }
        let maps = Maps::map(&ebpf, &sizes)?;
        let devices = devices.to_vec();
        let mut programs = Self { ebpf, maps, way, why_not_better: None, events, devices, links: Vec::new() };
        programs.name_devices()?;
        Ok(programs)
    }

    /// Shows the programs which devices there are.
    fn name_devices(&mut self) -> Result<(), BpfError> {
        let wrong = |source| BpfError::Map { map: "INDEXES", source };
        let map = self.ebpf.map_mut("INDEXES").expect("a test loads every map of the object");
        let mut indexes: HashMap<&mut MapData, u32, u32> = HashMap::try_from(map).map_err(wrong)?;
        let mut base = 0_u32;
        for (index, device) in self.devices.iter().enumerate() {
            let number = u32::try_from(index).map_err(|_| BpfError::TooMany)?;
            indexes.insert(device.key(), number, 0).map_err(wrong)?;
            let tags = device.slots_of_queue().ok_or(BpfError::TooMany)?;
            self.maps.describe(index, [base, tags, device.tags, device.queues]);
            base = base.checked_add(device.slots().ok_or(BpfError::TooMany)?).ok_or(BpfError::TooMany)?;
        }
        Ok(())
    }

    /// Attaches them, if they are not.
    ///
    /// # Errors
    /// When the kernel refuses one of them; then none is attached.
    pub fn attach(&mut self) -> Result<(), BpfError> {
        for index in 0..self.events.len() {
            if self.links.iter().any(|(attached, _)| *attached == index) {
                continue;
            }
            let event = self.events[index];
            let program = program_mut(&mut self.ebpf, event.program, self.way);
            match attach_one(program, self.way, event.tracepoint) {
                Ok(link) => self.links.push((index, link)),
                Err(source) => {
                    self.detach();
                    return Err(BpfError::Program { event: event.tracepoint, source });
                }
            }
        }
        Ok(())
    }

    /// Detaches them; then they cost nothing.
    pub fn detach(&mut self) {
        self.detach_where(|_| true);
    }

    /// Detaches those that only take times.
    pub fn detach_timing(&mut self) {
        self.detach_where(is_for_times);
    }

    fn detach_where(&mut self, is_wanted: impl Fn(&Event) -> bool) {
        let links = self.links.drain(..);
        let (gone, kept): (Vec<_>, Vec<_>) = links.partition(|(index, _)| is_wanted(self.events[*index]));
        self.links = kept;
        for (index, link) in gone {
            let program = program_mut(&mut self.ebpf, self.events[index].program, self.way);
            // A link that is gone already is what we want.
            match link {
                Link::Btf(id) => drop(<&mut BtfTracePoint>::try_from(program).map(|tp| tp.detach(id))),
                Link::Raw(id) => drop(<&mut RawTracePoint>::try_from(program).map(|tp| tp.detach(id))),
            }
        }
    }

    /// How they are attached.
    pub fn way(&self) -> Way {
        self.way
    }

    /// Why they are not attached in the best way, in words; `None` where they are.
    pub fn why_not_better(&self) -> Option<&str> {
        self.why_not_better.as_deref()
    }

    /// Counts from now on; `at` is called for each device as soon as it is counted.
    pub fn start(&self, mut at: impl FnMut(usize)) {
        self.maps.forget_bios();
        for index in 0..self.devices.len() {
            self.maps.begin(index, now_ns());
            at(index);
        }
    }

    /// Counts no more; `at` is called for each device as soon as it is not counted.
    pub fn stop(&self, mut at: impl FnMut(usize)) {
        for index in 0..self.devices.len() {
            self.maps.end(index);
            at(index);
        }
    }

    /// Takes no times from now on; counting goes on.
    pub fn stop_timing(&self) {
        (0..self.devices.len()).for_each(|index| self.maps.only_count(index));
    }

    /// The times that were taken so far, just after the last of them.
    pub fn times(&self) -> Times {
        let devices = (0..self.devices.len()).map(|index| self.maps.totals_of(index)).collect();
        Times { at_ns: now_ns(), devices }
    }

    /// Forgets how deep the queues have been: the deepest is the one of now.
    pub fn forget_deepest(&self) {
        self.maps.forget_deepest();
    }

    /// Requests and bios that all devices have completed since the programs were loaded; costs no system call.
    pub fn completed(&self) -> u64 {
        self.maps.completed()
    }

    /// Everything that was counted so far. It may be taken while counting goes on.
    ///
    /// # Errors
    /// When a map cannot be read.
    pub fn snapshot(&self) -> Result<Snapshot, BpfError> {
        let (requests, bios) = (self.requests()?, self.bios()?);
        // The last thing, so that no moment that was counted is later.
        let Times { at_ns, devices } = self.times();
        Ok(Snapshot { at_ns, devices, requests, bios, unfollowed: self.maps.unfollowed() })
    }

    fn requests(&self) -> Result<BTreeMap<RequestKind, u64>, BpfError> {
        let mut requests = BTreeMap::new();
        for (key, [count]) in self.maps.kinds().chain(self.entries("MORE_KINDS")?) {
            let sum = requests.entry(RequestKind::from(key)).or_insert(0_u64);
            *sum = sum.wrapping_add(count);
        }
        Ok(requests)
    }

    fn bios(&self) -> Result<BTreeMap<BioOrigin, [u64; 2]>, BpfError> {
        let mut bios = BTreeMap::new();
        for (key, [count, bytes]) in self.maps.origins().chain(self.entries("MORE_ORIGINS")?) {
            // Names of threads that are no text may read alike.
            let sum = bios.entry(BioOrigin::from(key)).or_insert([0_u64; 2]);
            *sum = [sum[0].wrapping_add(count), sum[1].wrapping_add(bytes)];
        }
        Ok(bios)
    }

    /// What is in a hash map; looking takes a system call, and most often there is nothing.
    fn entries<const K: usize, const V: usize>(
        &self,
        map: &'static str,
    ) -> Result<Vec<Entry<K, V>>, BpfError> {
        if !self.maps.has_more() {
            return Ok(Vec::new());
        }
        let Some(Map::PerCpuHashMap(data)) = self.ebpf.map(map) else {
            unreachable!("a test reads every map of the object")
        };
        per_cpu_entries(data.fd()).map_err(|source| BpfError::Entries { map, source })
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

#[cfg(test)]
mod tests {
    use super::*;
    use rdsk_testkit::{Need, Turn, requires};

    #[test]
    fn every_program_can_be_loaded_and_attached_both_ways() {
        if !requires(&[Need::Bpf]) {
            return;
        }
        let _turn = Turn::Bpf.take();
        let btf = Btf::from_sys_fs().expect("requires() found BTF");
        for way in [Way::TpBtf, Way::RawTp] {
            let mut programs = Programs::load_by(way, &[], Family::WithChildren, &btf).expect("they fit");
            programs.attach().expect("the tracepoints are there");
            let snapshot = programs.snapshot().expect("every map can be read");
            assert!(snapshot.devices.is_empty() && snapshot.bios.is_empty(), "{snapshot:?}");
            programs.detach();
        }
    }
}
