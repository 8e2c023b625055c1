//! Records from real arrays come back whole.

use std::time::Duration;

use rdsk_testkit::guest::campaign::note;
use rdsk_testkit::guest::{Disk, Scenario};
use rdsk_testkit::{Need, requires};

use crate::guest;

#[test]
fn a_record_of_an_md_raid_0_comes_back() {
    if !requires(&[Need::Root, Need::Guest]) {
        return;
    }
    let mut guest = guest()
        .modules(&["raid0"])
        .programs(&["mdadm"])
        .disk(Disk::virtio("A", 32 << 20))
        .disk(Disk::virtio("B", 32 << 20))
        .boot();
    eprintln!("boot: {:.1} s", guest.boot_took().as_secs_f64());
    let script = "raid md0 0 $A $B -- --chunk=64
call paths rdsk paths /dev/md0 --budget 10s --quiet --json -";
    let outcome = guest.run(&Scenario::new("raid 0", script).limit(Duration::from_secs(90))).expect_done();
    let paths = outcome.call("paths");
    assert_eq!(paths.code, 0, "{}", paths.said());
    let record = paths.json();
    assert_eq!(record["targets"][0]["stack"], serde_json::json!(["md0", "vda", "vdb"]));
    assert!(record["cells"].as_array().is_some_and(|cells| !cells.is_empty()), "{}", paths.stdout);
    assert_eq!(outcome.unclean(), "");
    note("arrays", "paths on an md RAID 0", "the Record came back", outcome.took());
}
