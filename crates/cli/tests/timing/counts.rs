//! The requested depth is kept full.

use crate::support::{
    assert_near, brief, cell, device, figure, iostat_of, loop_device, one_writer, reads_at_depth_32,
};
use rdsk_testkit::{Need, requires};

#[test]
#[ignore = "timing: cargo xtask campaign timing"]
fn one_direct_writer_has_its_request_in_flight() {
    if !requires(&[Need::Root, Need::Loop]) {
        return;
    }
    let disk = loop_device();
    let record = one_writer(&disk);
    let direct = cell(&record, "stream/write/direct");
    let aqu_sz = figure(&iostat_of(device(direct, &disk)), "/aqu-sz");
    assert!(aqu_sz > 0.05 && aqu_sz <= 1.05, "aqu-sz {aqu_sz}: {}", brief(direct));
    let in_flight = figure(direct, "/result/in_flight_mean");
    assert!((0.3..=1.001).contains(&in_flight), "{in_flight} of our own in flight");
}

#[test]
#[ignore = "timing: cargo xtask campaign timing"]
fn thirty_two_requested_are_thirty_two_in_flight() {
    if !requires(&[Need::Root, Need::Loop, Need::IoUring]) {
        return;
    }
    let disk = loop_device();
    for pattern in ["sequential", "random"] {
        let record = reads_at_depth_32(&disk, pattern);
        let direct = cell(&record, "stream/read/direct");
        assert_near("in flight", figure(direct, "/result/in_flight_mean"), 32.0, 0.05);
    }
}
