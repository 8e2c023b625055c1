//! Swap space on a loop device of the test's own, and what is written there beside the pages that the kernel swaps out.

use crate::LoopDevice;
use crate::tool::output_of;
use std::fs::{self, OpenOptions};
use std::io;
use std::process::Command;

const SECTOR_BYTES: u64 = 512;

/// Active swap space; it ends when this is dropped.
#[derive(Debug)]
pub struct Swap<'a> {
    device: &'a LoopDevice,
    /// Pages that the kernel had swapped out, and sectors written to the device, before it became swap space.
    before: (u64, u64),
}

impl<'a> Swap<'a> {
    /// Makes the whole device swap space and activates it.
    ///
    /// # Errors
    /// Those of mkswap, swapon and reading the kernel's counters.
    pub fn on(device: &'a LoopDevice) -> io::Result<Self> {
        output_of(Command::new("mkswap").arg(device.path()))?;
        let before = (pages_swapped_out()?, sectors_written(device)?);
        output_of(Command::new("swapon").arg(device.path()))?;
        Ok(Self { device, before })
    }

    /// How many sectors were written to the device beyond the pages that the kernel swapped out since it is swap space.
    /// Where memory is short it does that at any moment, so the content of the device is no proof that no other program
    /// wrote.
    ///
    /// # Errors
    /// Those of writing what waits in the page cache, and of reading the kernel's counters.
    pub fn sectors_of_others(&self) -> io::Result<u64> {
        OpenOptions::new().read(true).open(self.device.path())?.sync_all()?;
        // A page is counted before it is written, so the sectors are read first.
        let sectors = sectors_written(self.device)? - self.before.1;
        let pages = pages_swapped_out()? - self.before.0;
        Ok(sectors.saturating_sub(pages * (rdsk_sys::cache::page_size() / SECTOR_BYTES)))
    }
}

impl Drop for Swap<'_> {
    fn drop(&mut self) {
        // Not asserted: a second panic while the first one unwinds would hide it.
        let _ = output_of(Command::new("swapoff").arg(self.device.path()));
    }
}

/// Pages that the kernel has swapped out to any device: `pswpout` of `/proc/vmstat`, proc(5).
fn pages_swapped_out() -> io::Result<u64> {
    let counters = fs::read_to_string("/proc/vmstat")?;
    let pages = counters.lines().find_map(|line| line.strip_prefix("pswpout "));
    pages.and_then(|pages| pages.parse().ok()).ok_or_else(|| io::Error::other("no pswpout in /proc/vmstat"))
}

/// The seventh field of the device's `stat`.
fn sectors_written(device: &LoopDevice) -> io::Result<u64> {
    let counters = fs::read_to_string(format!("/sys/class/block/{}/stat", device.name()))?;
    let sectors = counters.split_whitespace().nth(6).and_then(|sectors| sectors.parse().ok());
    sectors.ok_or_else(|| io::Error::other("no sectors written in stat"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Need, requires};
    use rustix::fs::OFlags;
    use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};

    /// The kernel refuses to write to active swap space, so the writes that must show go to a device that only counts as one.
    #[test]
    fn what_others_write_is_counted() {
        if !requires(&[Need::Root, Need::Loop, Need::Tool("mkswap"), Need::Tool("swapon")]) {
            return;
        }
        let device = LoopDevice::builder().size(8 << 20).create().unwrap();
        let swap = Swap::on(&device).unwrap();
        assert_eq!(swap.sectors_of_others().unwrap(), 0);
        drop(swap);

        let before = (pages_swapped_out().unwrap(), sectors_written(&device).unwrap());
        let inactive = Swap { device: &device, before };
        let page = usize::try_from(rdsk_sys::cache::page_size()).unwrap();
        let storage = vec![0_u8; 2 * page];
        let skip = storage.as_ptr().align_offset(page);
        let mut sectors = 0;
        for flags in [OFlags::empty(), OFlags::DIRECT] {
            let flags = i32::try_from(flags.bits()).unwrap();
            let node = OpenOptions::new().write(true).custom_flags(flags).open(device.path()).unwrap();
            node.write_all_at(&storage[skip..skip + page], 0).unwrap();
            sectors += page as u64 / SECTOR_BYTES;
            let others = inactive.sectors_of_others().unwrap();
            // Pages that went to another device meanwhile are taken for pages of this one.
            assert!(others == sectors || pages_swapped_out().unwrap() > before.0, "{others} of {sectors}");
        }
    }
}
