//! The tests of the models as a whole, as one program, which is linked once.

mod align;
mod coherence;
mod common;
mod dd;
mod gather;
mod limits;
mod others;
mod parity;
mod properties;
mod sanity;
mod scale;
mod zones;
