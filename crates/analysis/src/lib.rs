//! What a Record means in numbers: the verdict of one cell ([`verdict()`]), rates and shares of its counters ([`metrics`]), two
//! cells compared by rounds ([`comparison`]), the columns of iostat ([`iostat`]), levels and falls of a rate over time
//! ([`rate_series`], [`trend`]), times without progress ([`stalls`]), first accesses beside later ones ([`first_access`]), reads after rests
//! ([`after_idle`]), what writes left to a flush ([`settling`]), whether their rate lasts ([`lasting`]), what was read and not used
//! ([`read_ahead`]), processors
//! that others used ([`contention`]), what was charged to rdsk ([`charged`]), what calls became in the block layer ([`block_io`]) and how much of their time
//! was the device's ([`in_device`]), what a larger depth gave ([`saturation`]), whether a load became steady ([`steady`]), whether it meets a need ([`need`]) or keeps a
//! promise ([`promise`]), what `zones`, `scale` and
//! `stripe` measured, and what many ratios say together ([`overall`]). Each is a pure function of what was counted. It does no
//! I/O, reads no clock, draws nothing and advises nothing.

pub mod after_idle;
mod analysis;
pub mod block_io;
pub mod charged;
pub mod columns;
pub mod comparison;
pub mod contention;
pub mod contradictions;
pub mod copy;
pub mod first_access;
#[cfg(any(test, feature = "fixtures"))]
pub mod fixtures;
pub mod groups;
pub mod in_device;
pub mod iostat;
pub mod lasting;
pub mod medium;
pub mod metrics;
pub mod need;
pub mod overall;
pub mod passes;
pub mod promise;
pub mod rate_series;
pub mod read_ahead;
pub mod saturation;
pub mod scale;
pub mod settling;
pub mod stalls;
pub mod steady;
pub mod stripe;
mod target_shares;
pub mod trend;
mod verdict;
pub mod words;
pub mod zones;

pub use analysis::Analysis;
pub use verdict::{
    MIN_PAGES, is_burst, is_held, is_of_loop_file, read_only_zeros, read_some_zeros, verdict,
    verdicts_by_direction,
};
