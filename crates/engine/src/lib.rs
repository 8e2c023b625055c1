//! The room `engine`: it issues the I/O of one visit of one cell, counts it, and reports when the data was on stable
//! storage. It takes Claims, never paths; it judges nothing and prints nothing.

mod aio;
mod arena;
mod async_loop;
mod at_once;
mod byte_seconds;
mod cache_probe;
mod clock;
mod content;
mod controller;
mod counters;
mod engine_choice;
mod engine_trial;
mod error;
mod io_queue;
mod job;
mod job_run;
mod latencies;
mod latency_series;
mod load;
mod offsets;
mod open_target;
mod own_gaps;
mod places;
mod position_loop;
mod positions;
mod prepare;
mod random;
mod real;
mod ring;
mod rough_rate;
mod session;
mod shared_work;
mod sim;
mod stamper;
mod start_barrier;
mod stream;
mod stream_spec;
mod sync;
mod thread_pool;
mod uring;
mod validate;
mod watchdog;
mod work;
mod write_guard;

pub use aio::Contexts;
pub use arena::buffers_bytes;
pub use clock::{MonotonicClock, measure_clock};
pub use content::{PAGE_BYTES, PAGES_LOOKED_AT, Stretch, look_at_device, look_ns};
pub use engine_choice::EnginePolicy;
pub use error::EngineError;
pub use job::{
    CacheCheck, Control, Ended, Engine, Flow, Job, Limits, Prepared, Progress, Run, Session, Settled, WarmUp,
};
pub use job_run::{JobRun, KindRun};
pub use latency_series::WindowRun;
pub use load::why_not as why_not_trimmed;
pub use offsets::capacity;
pub use real::{ChoiceCache, RealEngine};
pub use ring::{QueueSource, WaitBatch};
pub use rough_rate::rough_read_rate;
pub use sim::{SimClock, SimEngine};
pub use watchdog::{Gap, Watchdog};
pub use write_guard::WriteGuard;
