//! The tests of this room against what other programs and the models say, as one program, which is linked once.

mod iostat;
mod stripe;
