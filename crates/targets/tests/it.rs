//! The tests of this room on real devices and files, as one program, which is linked once.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod device_hold;
mod devices;
mod files;
mod growth;
mod openers;
mod support;
mod testfile;
mod timing;
mod whole_caches;
