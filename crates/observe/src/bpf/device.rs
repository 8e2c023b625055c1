//! A device or partition that the programs observe, as sysfs describes it. It reads a few small files once.

use rdsk_sys::device_number::DeviceNumber;
use rdsk_sys::files::{names_in, read_number};
use std::path::Path;

/// A device or partition to be observed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockDevice {
    /// By which the kernel knows it.
    pub number: DeviceNumber,
    /// Hardware queues; 0 for a device that handles bios itself, as md, dm and zram do.
    pub queues: u32,
    /// Requests that the driver takes from each of them.
    pub tags: u32,
}

/// The most requests that a scheduler holds for a hardware queue (`MAX_SCHED_RQ` of the kernel); its tags are below.
const SCHEDULER_TAGS: u32 = 2048;

impl BlockDevice {
    /// The device with this directory in sysfs; `None` if it is none.
    pub fn read(directory: &Path) -> Option<Self> {
        let number = read_number(&directory.join("dev"))?;
        let is_partition = directory.join("partition").exists();
        let queues = directory.join(if is_partition { "../mq" } else { "mq" });
        let tags: Vec<u32> = names_in(&queues)
            .iter()
            .filter_map(|queue| read_number(&queues.join(queue).join("nr_tags")))
            .collect();
        let queues = u32::try_from(tags.len()).ok()?;
        Some(Self { number, queues, tags: tags.into_iter().max().unwrap_or(0) })
    }

    /// The number as the kernel writes it.
    pub(super) fn key(&self) -> u32 {
        self.number.major << 20 | self.number.minor
    }

    /// Places for all its requests.
    pub(super) fn slots(&self) -> Option<u32> {
        self.slots_of_queue()?.checked_mul(self.queues)
    }

    /// A place for each request that may be in flight in one hardware queue.
    pub(super) fn slots_of_queue(&self) -> Option<u32> {
        self.tags.checked_add(SCHEDULER_TAGS)
    }
}
