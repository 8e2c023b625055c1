//! Ranks as threads of one process, for the tests of this crate. It counts what they send.

use crate::error::RanksError;
use crate::ranks::{Ranks, Tag, Traffic};
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// Messages that were not received yet.
#[derive(Debug, Default)]
struct Post {
    /// From, to, tag and content, in the order of sending.
    messages: VecDeque<(u32, u32, Tag, Vec<u8>)>,
    gone: Vec<u32>,
}

/// One rank of several in a process.
#[derive(Debug)]
pub(crate) struct Threads {
    rank: u32,
    size: u32,
    post: Arc<(Mutex<Post>, Condvar)>,
    sent: Mutex<Traffic>,
}

impl Threads {
    /// All ranks of a run, `size` of them.
    pub(crate) fn new(size: u32) -> Vec<Self> {
        let post = Arc::new((Mutex::default(), Condvar::new()));
        (0..size).map(|rank| Self { rank, size, post: Arc::clone(&post), sent: Mutex::default() }).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Post> {
        self.post.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Ranks for Threads {
    fn rank(&self) -> u32 {
        self.rank
    }

    fn size(&self) -> u32 {
        self.size
    }

    fn send(&self, to: u32, tag: Tag, bytes: &[u8]) -> Result<(), RanksError> {
        let mut post = self.lock();
        if post.gone.contains(&to) {
            return Err(RanksError::Gone(to));
        }
        post.messages.push_back((self.rank, to, tag, bytes.to_vec()));
        self.post.1.notify_all();
        let mut sent = self.sent.lock().unwrap_or_else(PoisonError::into_inner);
        sent.messages += 1;
        sent.bytes += bytes.len() as u64;
        Ok(())
    }

    fn receive(&self, from: u32, tag: Tag) -> Result<Vec<u8>, RanksError> {
        let mut post = self.lock();
        loop {
            let is_mine = |(sender, receiver, sent_tag, _): &(u32, u32, Tag, _)| {
                (*sender, *receiver, *sent_tag) == (from, self.rank, tag)
            };
            if let Some(place) = post.messages.iter().position(is_mine) {
                return post.messages.remove(place).map(|(.., bytes)| bytes).ok_or(RanksError::Gone(from));
            }
            if post.gone.contains(&from) {
                return Err(RanksError::Gone(from));
            }
            post = self.post.1.wait(post).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn traffic(&self) -> Traffic {
        *self.sent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        self.lock().gone.push(self.rank);
        self.post.1.notify_all();
    }
}
