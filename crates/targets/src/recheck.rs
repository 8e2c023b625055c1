//! The check of a claimed target while it is open: who uses it by now, and whether its labels are those that it had. It opens nothing, and
//! decides with `authorize`.

use crate::authorize::{authorize_uses, is_by_rank};
use crate::error::TargetError;
use crate::examine::{Again, uses_now};
use crate::examined::{Examined, Place};
use crate::permission::{Access, Sharing};
use crate::probe;
use crate::roots::Roots;
use crate::uses::{InUse, UseKind};
use std::os::fd::AsFd;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// So soon after the last look or the end of the last opening, labels are not looked for again: programs do that, for milliseconds, which
/// the short turns of a run would pay every time.
const LABELS_HOLD: Duration = Duration::from_secs(2);

/// So long a doubt about a target that was found to be free may take to pass.
const DOUBTS_PASS: Duration = Duration::from_secs(2);

/// What is needed to check the user's target again once it is open.
#[derive(Debug)]
pub(crate) struct Recheck {
    examined: Examined,
    sharing: Sharing,
    roots: Roots,
    last: Mutex<Last>,
}

/// Whether something may have been written to the target already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Written {
    Maybe,
    /// Anything, labels among it: a copy of what the user named.
    Copied,
    /// Only if it was [released](Recheck::released).
    IfReleased,
}

/// What is known of the time before an opening.
#[derive(Clone, Copy, Debug)]
struct Last {
    /// When the target was examined, opened for writing with this permission, or [released](Recheck::released) most recently.
    at: Instant,
    /// Whether it was released, and so may have been written.
    was_released: bool,
}

impl Recheck {
    pub(crate) fn new(examined: Examined, sharing: Sharing, roots: &Roots) -> Self {
        Self {
            examined,
            sharing,
            roots: roots.clone(),
            last: Mutex::new(Last { at: Instant::now(), was_released: false }),
        }
    }

    /// Checks the target that `fd` has open for writing.
    pub(crate) fn authorize(&self, fd: impl AsFd, written: Written) -> Result<(), TargetError> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let is_fresh = last.at.elapsed() < LABELS_HOLD;
        let again = if is_fresh || written == Written::Copied { Again::Uses } else { Again::UsesAndLabels };
        let mut usage = self.looked_again(again);
        if (written != Written::IfReleased || last.was_released)
            && matches!(self.examined.place, Place::File { .. })
        {
            // Scanners and indexers read what has been written. Who read the file before that was refused.
            usage.uses.retain(|used| used.kind != UseKind::ReadElsewhere);
        }
        usage.uses.retain(|used| !is_by_rank(used, &self.examined.place, &self.sharing));
        authorize_uses(&self.examined, usage)?;
        if again == Again::UsesAndLabels && matches!(self.examined.place, Place::Block { .. }) {
            // The pages that labels were looked for in would be found by what is measured. Where they stay, they are few.
            let _ = rustix::fs::fadvise(fd, 0, None, rustix::fs::Advice::DontNeed);
        }
        // A refusal leaves it as it is, so that the next attempt looks again.
        last.at = Instant::now();
        Ok(())
    }

    /// Says that what may have been written through is about to be closed.
    pub(crate) fn released(&self) {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) =
            Last { at: Instant::now(), was_released: true };
    }

    /// Whether no process uses the target now, as far as this process can see. What only keeps it from being written is no use.
    pub(crate) fn is_unused(&self, access: Access) -> bool {
        let mut usage = uses_now(&self.examined, &self.roots, Again::Uses);
        if access == Access::Read {
            // What is open for writing is held exclusively already, by this process.
            probe::exclusive(&self.examined.path, &mut usage);
        }
        usage.uses.retain(|used| !matches!(used.kind, UseKind::ReadOnly | UseKind::HostManaged));
        usage.uses.is_empty() && usage.doubts.is_empty()
    }

    /// What uses the target now. A doubt may pass: udev has the partitions of a disk made anew when it was closed, and their nodes
    /// are gone for a moment.
    fn looked_again(&self, again: Again) -> InUse {
        let began = Instant::now();
        loop {
            let usage = uses_now(&self.examined, &self.roots, again);
            if usage.doubts.is_empty() || began.elapsed() >= DOUBTS_PASS {
                return usage;
            }
            std::thread::sleep(DOUBTS_PASS / 10);
        }
    }
}
