//! What only a quiet machine shows, through the real binary: how close rates, latencies and depths come to throttles,
//! programmed disks, dd, iostat and fio, and how soon a run ends. `cargo xtask campaign timing` runs it; what no other program
//! can change of the same questions is in the suite.

mod access;
mod cache;
mod counts;
mod ends;
mod engines;
mod fusedisk;
mod load;
mod own_pause;
mod rates;
mod scale;
mod stripe;
mod zones;
