//! The tests of planner and runner on scripted disks, as one program, which is linked once.

mod planning;
mod runner;
mod scripted;
mod stalls;
mod sustained;
