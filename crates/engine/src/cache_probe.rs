//! Whether the page cache is in the state that a workload wants, looked up right before an I/O.

use rdsk_model::CacheState;
use std::os::fd::BorrowedFd;

/// Checks the page cache right before an I/O, and counts what it found.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CacheProbe {
    pub(crate) checked: u64,
    pub(crate) wrong: u64,
}

impl CacheProbe {
    pub(crate) fn add(&mut self, more: Self) {
        self.checked += more.checked;
        self.wrong += more.wrong;
    }

    /// Checks whether the pages of a range are in the wanted state. A range whose state is unknown is not counted.
    pub(crate) fn check(&mut self, fd: BorrowedFd<'_>, offset_bytes: u64, len: usize, wanted: CacheState) {
        let len = len as u64;
        let Ok(state) = rdsk_sys::cache::cachestat(fd, offset_bytes, len) else { return };
        let page = rdsk_sys::cache::page_size();
        let pages = (offset_bytes + len).div_ceil(page) - offset_bytes / page;
        self.count(wanted, state.cached, pages);
    }

    /// Counts a range of which `cached` of `whole` pages or bytes are in the page cache.
    pub(crate) fn count(&mut self, wanted: CacheState, cached: u64, whole: u64) {
        self.checked += 1;
        self.wrong += u64::from(!is_in_state(wanted, cached, whole));
    }
}

/// Whether a range of which `cached` of `whole` pages or bytes are in the page cache is in the wanted state.
pub(crate) fn is_in_state(wanted: CacheState, cached: u64, whole: u64) -> bool {
    match wanted {
        CacheState::Cold => cached == 0,
        CacheState::Warm => cached >= whole,
        CacheState::Any => true,
    }
}
