//! The tests of disks and guests as a whole, as one program, which is linked once.

mod common;
mod fusedisk;
mod guest;
mod timing;
