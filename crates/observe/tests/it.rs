//! The tests of this room on real devices, as one program, which is linked once.

mod bpf;
mod bpf_devices;
mod loop_device;
mod second_source;
mod stacks;
mod timing;
