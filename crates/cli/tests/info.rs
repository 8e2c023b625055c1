//! `rdsk info` on directories, files and devices, as a page and as JSON.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use crate::common::{self, SOON, command, error_and_hint, rdsk};
use rdsk_testkit::{LoopDevice, Need, cli, requires};
use std::fs;

fn is_narrow(page: &str) {
    // The line of the name is as long as the name.
    for line in page.lines().filter(|line| line.starts_with(' ')) {
        let one_word = line.split_whitespace().count() <= 2;
        assert!(line.chars().count() <= 80 || one_word, "{line}");
    }
}

#[test]
fn a_directory_is_a_place_for_a_test_file() {
    let scratch = common::scratch();
    let mut info = command(["info"]);
    info.arg(scratch.path());
    let run = cli::run(info, SOON);
    assert_eq!(run.status_code, Some(0), "{}", run.stderr);
    assert!(run.stdout.contains(": a directory\n"), "{}", run.stdout);
    assert!(run.stdout.contains("reading      allowed"), "{}", run.stdout);
    assert!(run.stdout.contains("writing      allowed, to a test file"), "{}", run.stdout);
    is_narrow(&run.stdout);
    common::holds_only(scratch.path(), &[]);
}

/// What `rdsk run` would refuse, reads as well: they need a test file.
#[test]
fn a_directory_without_room_for_a_test_file_is_refused_as_a_run_refuses_it() {
    if !requires(&[Need::Root, Need::Loop, Need::Ext4]) {
        return;
    }
    let device = LoopDevice::builder().size(32 << 20).in_memory().create().unwrap();
    device.mkfs_ext4("full").unwrap();
    let mount = device.mount().unwrap();
    let name = mount.path().to_str().unwrap();
    let judged = || {
        let told = cli::json(&rdsk(["info", name, "--json", "-"]));
        ["reading", "writing"].map(|access| told["targets"][0][access].clone())
    };
    assert!(judged().iter().all(|answer| answer["allowed"] == true), "{:?}", judged());
    let mut file = fs::File::create(mount.path().join("fill")).unwrap();
    while std::io::Write::write_all(&mut file, &[1; 1 << 16]).is_ok() {}
    let run = rdsk(["run", "--rw", "read", "--budget", "1s", name]);
    let (error, _) = error_and_hint(&run);
    for answer in judged() {
        assert_eq!(
            (&answer["allowed"], &answer["refusal"]["message"]),
            (&false.into(), &error.clone().into())
        );
    }
}

#[test]
fn a_file_is_read_and_not_written() {
    let scratch = common::scratch();
    let path = scratch.path().join("data");
    fs::write(&path, vec![7; 2_000_000]).unwrap();
    let name = path.to_str().unwrap();
    let run = rdsk(["info", name]);
    assert_eq!(run.status_code, Some(0), "{}", run.stderr);
    assert!(run.stdout.contains("2,000,000 bytes"), "{}", run.stdout);
    assert!(run.stdout.contains("writing      refused"), "{}", run.stdout);
    let words: Vec<&str> = run.stdout.split_whitespace().collect();
    assert!(
        words.join(" ").contains(&format!("allowed with --overwrite: contents of {name} replaced")),
        "{}",
        run.stdout
    );
    is_narrow(&run.stdout);

    let document = cli::json(&rdsk(["info", name, "--json", "-"]));
    assert_eq!(document["schema"], "rdsk.info/1");
    assert_eq!(document["status"], "complete");
    let told = &document["targets"][0];
    assert_eq!((&told["place"], &told["target"]["size_bytes"]), (&"file".into(), &2_000_000.into()));
    assert_eq!(told["reading"]["allowed"], true);
    assert_eq!(told["writing"]["allowed"], false);
    assert!(told["writing"]["refusal"]["message"].as_str().unwrap().contains("refusing to write"));
    assert_eq!(told["writing_with_flag"]["flag"], "--overwrite");
    assert_eq!(fs::read(&path).unwrap(), vec![7; 2_000_000]);
}

#[test]
fn what_cannot_be_examined_is_reported_beside_the_rest() {
    let scratch = common::scratch();
    let name = scratch.path().to_str().unwrap();
    let run = rdsk(["info", "/nonexistent", name]);
    assert_eq!(run.status_code, Some(3));
    let (error, _) = error_and_hint(&run);
    assert!(error.contains("/nonexistent"), "{error}");
    assert!(run.stdout.contains(name), "{}", run.stdout);

    let run = rdsk(["info", "/nonexistent", name, "--json", "-"]);
    assert_eq!(run.status_code, Some(3));
    let document = cli::json(&run);
    assert_eq!(document["status"], "failed");
    assert_eq!(document["targets"][0]["error"]["kind"], "refused");
    assert_eq!(document["targets"][1]["error"], serde_json::Value::Null);
}

#[test]
fn a_usage_error_is_reported_in_the_schema_of_info() {
    let run = rdsk(["info", "--json", "-", "--bs", "4k"]);
    assert_eq!(run.status_code, Some(2));
    let document = cli::json(&run);
    assert_eq!((&document["schema"], &document["status"]), (&"rdsk.info/1".into(), &"failed".into()));
    assert!(document["error"]["message"].as_str().unwrap().contains("--bs"));
}

#[test]
fn without_a_target_every_device_and_the_directory_are_shown() {
    let scratch = common::scratch();
    let mut info = command(["info", "--json", "-"]);
    info.current_dir(scratch.path());
    let run = cli::run(info, SOON);
    assert_eq!(run.status_code, Some(0), "{}", run.stderr);
    let document = cli::json(&run);
    let targets = document["targets"].as_array().unwrap();
    assert_eq!(targets.last().unwrap()["name"], ".");
    let sized = fs::read_dir("/sys/block")
        .unwrap()
        .filter(|entry| {
            let size = entry.as_ref().unwrap().path().join("size");
            fs::read_to_string(size).is_ok_and(|size| size.trim() != "0")
        })
        .count();
    // Other tests make and remove loop devices meanwhile; the machine's own disks stay.
    assert!(sized == 0 || targets.len() > 1, "{document:#}");
}

#[test]
fn a_loop_device_names_the_flag_that_would_destroy_it() {
    if !requires(&[Need::Root, Need::Loop]) {
        return;
    }
    let device = LoopDevice::builder().size(4 << 20).create().unwrap();
    let before = device.content_hash().unwrap();
    let name = device.path().to_str().unwrap();
    let backing = device.backing_path().to_str().unwrap();
    let run = rdsk(["info", name]);
    assert_eq!(run.status_code, Some(0), "{}", run.stderr);
    assert!(run.stdout.contains("a block device"), "{}", run.stdout);
    assert!(run.stdout.contains("4 MiB (4,194,304 bytes)"), "{}", run.stdout);
    assert!(run.stdout.replace(['\n', ' '], "").contains(&format!("--destroy{backing}")), "{}", run.stdout);
    is_narrow(&run.stdout);

    let document = cli::json(&rdsk(["info", name, "--json", "-"]));
    let told = &document["targets"][0];
    assert_eq!(told["place"], "block");
    assert_eq!(told["writing"]["allowed"], false);
    assert_eq!(told["writing_with_flag"]["allowed"], true, "{told:#}");
    assert_eq!(told["identities"][0]["text"], backing);
    assert_eq!(device.content_hash().unwrap(), before);
}

#[test]
fn a_mounted_device_is_refused_whatever_the_flag() {
    if !requires(&[Need::Root, Need::Loop, Need::Ext4]) {
        return;
    }
    let device = LoopDevice::builder().size(16 << 20).create().unwrap();
    device.mkfs_ext4("infotest").unwrap();
    let mount = device.mount().unwrap();
    let run = rdsk(["info", device.path().to_str().unwrap()]);
    assert_eq!(run.status_code, Some(0), "{}", run.stderr);
    assert!(run.stdout.contains("in use       mounted"), "{}", run.stdout);
    assert!(run.stdout.contains("ext4 \"infotest\""), "{}", run.stdout);
    assert!(run.stdout.contains("writing      refused: refusing to write"), "{}", run.stdout);
    let document = cli::json(&rdsk(["info", device.path().to_str().unwrap(), "--json", "-"]));
    assert_eq!(document["targets"][0]["writing_with_flag"]["allowed"], false);
    drop(mount);
}
