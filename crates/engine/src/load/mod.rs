//! The streams of a load: jobs that run at once, each with its mix, sizes, offsets, rate and flushes. What is asked of one stream stands
//! here; the loops issue it. A plain workload has loops of its own, which branch on none of this.

mod flush;
mod places;
mod requests;
mod ring_loop;
mod sync_loop;
mod trim;

pub(crate) use flush::FlushCounter;
pub(crate) use requests::{Request, RequestSource, Trim};
pub(crate) use ring_loop::run as run_queue;
pub(crate) use sync_loop::run as run_sync;
pub(crate) use trim::discard;
pub use trim::why_not;
