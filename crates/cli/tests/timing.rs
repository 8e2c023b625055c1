//! What only a quiet machine shows, through the real binary: how close rates, latencies and depths come to throttles,
//! programmed disks, dd, iostat and fio, and how soon a run ends. `cargo xtask campaign timing` runs it; what no other program
//! can change of the same questions is in the suite.

#[path = "timing/access.rs"]
mod access;
#[path = "timing/cache.rs"]
mod cache;
#[path = "support/checked_run.rs"]
mod checked_run;
#[path = "timing/counts.rs"]
mod counts;
#[path = "timing/ends.rs"]
mod ends;
#[path = "timing/engines.rs"]
mod engines;
#[path = "timing/fusedisk.rs"]
mod fusedisk;
#[path = "timing/own_pause.rs"]
mod own_pause;
#[path = "timing/rates.rs"]
mod rates;
#[path = "timing/scale.rs"]
mod scale;
#[path = "support/stopped.rs"]
mod stopped;
#[path = "timing/stripe.rs"]
mod stripe;
mod support;
#[path = "timing/zones.rs"]
mod zones;
