//! The tests of this room on real devices and files, as one program, which is linked once.

mod devices;
mod files;
mod growth;
mod openers;
mod support;
mod testfile;
mod timing;
mod whole_caches;
