//! The room `engine`: it issues the I/O of one visit of one cell, counts it, and says when the data was safe. It takes
//! Claims, never paths; it judges nothing and prints nothing.

mod aio;
pub mod arena;
mod board;
pub mod clock;
mod controller;
mod crew;
mod error;
mod flight;
mod gate;
pub mod job;
mod lane;
pub mod offsets;
mod points;
mod prepare;
mod random;
mod real;
mod ring;
mod session;
pub mod sim;
mod stream;
mod sync;
mod trial;
mod uring;
mod way;

pub use aio::{AioSource, Contexts};
pub use clock::{MonotonicClock, measure_clock};
pub use error::EngineError;
pub use job::{
    CacheCheck, Control, Ended, Engine, Flow, Job, Limits, Pinning, Prepared, Progress, Run, Session, Settled,
};
pub use offsets::capacity;
pub use real::{Chosen, RealEngine, Recording};
pub use ring::{RingSource, UringTuning, WaitBatch};
pub use sim::{SimClock, SimEngine};
pub use way::Choice;
