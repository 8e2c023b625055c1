//! The page cache of one LUN: which buffers are there, dirty, being read or written. It makes no requests.

use std::collections::{HashMap, VecDeque};

use super::CallSlot;

/// One buffer.
#[derive(Clone, Debug, Default)]
pub(super) struct Page {
    /// Its data are there.
    pub(super) filled: bool,
    /// It must be written and no request does so yet.
    pub(super) dirty: bool,
    /// A request writes it.
    pub(super) writing: bool,
    /// A request reads it.
    pub(super) reading: bool,
    /// Calls that wait for the read.
    pub(super) waiters: Vec<CallSlot>,
}

/// The cache of one LUN. Buffers are named by their index on the device.
#[derive(Clone, Debug, Default)]
pub(super) struct Pages {
    pages: HashMap<u64, Page>,
    /// Buffers in the order they came, for eviction; may name buffers that are gone.
    order: VecDeque<u64>,
    /// Dirty buffers with the time they became so, oldest first; may name buffers that are clean again.
    dirty: VecDeque<(u64, u64)>,
    /// Buffers dirty or being written.
    unsafe_pages: u64,
    /// Buffers dirty and not being written.
    dirty_pages: u64,
}

impl Pages {
    pub(super) fn get(&self, page: u64) -> Option<&Page> {
        self.pages.get(&page)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.pages.is_empty()
    }

    /// Buffers dirty or being written.
    pub(super) fn unsafe_pages(&self) -> u64 {
        self.unsafe_pages
    }

    /// Buffers dirty and not being written.
    pub(super) fn dirty_pages(&self) -> u64 {
        self.dirty_pages
    }

    /// When the oldest dirty buffer became so.
    pub(super) fn oldest_ns(&mut self) -> Option<u64> {
        while let Some(&(page, since_ns)) = self.dirty.front() {
            if self.pages.get(&page).is_some_and(|page| page.dirty) {
                return Some(since_ns);
            }
            self.dirty.pop_front();
        }
        None
    }

    /// Puts an empty buffer in, and the oldest clean ones out while there are more than `most`.
    pub(super) fn enter(&mut self, page: u64, most: u64) -> &mut Page {
        if !self.pages.contains_key(&page) {
            self.order.push_back(page);
            let mut looks = self.order.len();
            while self.pages.len() as u64 >= most && looks > 0 {
                looks -= 1;
                let Some(oldest) = self.order.pop_front() else { break };
                match self.pages.get(&oldest) {
                    None if oldest == page => self.order.push_back(oldest),
                    Some(kept) if kept.dirty || kept.writing || kept.reading => self.order.push_back(oldest),
                    _ => {
                        self.pages.remove(&oldest);
                    }
                }
            }
        }
        self.pages.entry(page).or_default()
    }

    /// Marks a buffer's data as there; gives the calls that waited.
    pub(super) fn fill(&mut self, page: u64) -> Vec<CallSlot> {
        let Some(page) = self.pages.get_mut(&page) else { return Vec::new() };
        page.reading = false;
        page.filled = true;
        std::mem::take(&mut page.waiters)
    }

    /// A read failed: the buffer is as if it had never been there.
    pub(super) fn forget_read(&mut self, page: u64) -> Vec<CallSlot> {
        self.pages.remove(&page).map_or(Vec::new(), |page| page.waiters)
    }

    pub(super) fn wait_for(&mut self, page: u64, call: CallSlot) {
        if let Some(page) = self.pages.get_mut(&page) {
            page.waiters.push(call);
        }
    }

    /// Marks a buffer as written to by a call.
    pub(super) fn dirty(&mut self, index: u64, now_ns: u64) {
        let Some(page) = self.pages.get_mut(&index) else { return };
        page.filled = true;
        if page.dirty {
            return;
        }
        page.dirty = true;
        self.dirty_pages += 1;
        if page.writing {
            return;
        }
        self.unsafe_pages += 1;
        self.dirty.push_back((index, now_ns));
    }

    /// Takes the oldest dirty buffer and its dirty successors, at most `most`, for one write request.
    pub(super) fn take_dirty(&mut self, most: u64) -> Option<(u64, u64)> {
        self.oldest_ns()?;
        let (first, _) = self.dirty.pop_front()?;
        let mut count = 0;
        loop {
            if let Some(page) = self.pages.get_mut(&(first + count)) {
                page.dirty = false;
                page.writing = true;
                self.dirty_pages -= 1;
            }
            count += 1;
            let next = first + count;
            let joins = self.dirty.front().is_some_and(|&(page, _)| page == next)
                && self.pages.get(&next).is_some_and(|page| page.dirty && !page.writing);
            if count >= most || !joins {
                return Some((first, count));
            }
            self.dirty.pop_front();
        }
    }

    /// A write request is done; a buffer written to meanwhile is dirty anew.
    pub(super) fn written(&mut self, index: u64, now_ns: u64) {
        let Some(page) = self.pages.get_mut(&index) else { return };
        page.writing = false;
        if page.dirty {
            self.dirty.push_back((index, now_ns));
        } else {
            self.unsafe_pages -= 1;
        }
    }

    /// Puts out all clean buffers in a range of indices.
    pub(super) fn drop_clean(&mut self, range: std::ops::Range<u64>) {
        let clean = |page: &Page| !page.dirty && !page.writing && !page.reading;
        self.pages.retain(|index, page| !range.contains(index) || !clean(page));
        let pages = &self.pages;
        self.order.retain(|index| pages.contains_key(index));
    }

    /// How many buffers of a range of indices are there.
    pub(super) fn count(&self, range: &std::ops::Range<u64>) -> u64 {
        self.pages.iter().filter(|(index, page)| page.filled && range.contains(index)).count() as u64
    }
}
