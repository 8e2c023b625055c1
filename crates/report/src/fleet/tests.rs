use super::*;
use crate::style::{Charset, Color};
use rdsk_compare::fleet::Gathering;
use rdsk_finding::fixtures::run;
use rdsk_model::Record;
use serde_json::Value;
use unicode_width::UnicodeWidthStr as _;

/// The run of the fixtures on hosts whose disks differ by up to 2 % in a fixed order; `slow` are half as fast.
fn fleet(hosts: usize, slow: &[usize]) -> Fleet {
    let base = run();
    let mut gathering = Gathering::default();
    for host in 0..hosts {
        let mut record: Record = base.clone();
        record.id = format!("run{host}");
        record.host.as_mut().unwrap().hostname = Some(format!("web{host:02}"));
        let device = record.targets[0].device.as_mut().unwrap();
        (device.serial, device.firmware) = (Some(format!("S{host}")), Some(["1.0", "1.1"][host % 2].into()));
        for (place, cell) in record.cells.iter_mut().enumerate() {
            let step = (host * 7 + place * 3) % 11;
            let factor = (0.98 + 0.004 * step as f64) * if slow.contains(&host) { 0.5 } else { 1.0 };
            if let Some(rate) = &mut cell.result.bytes_per_s {
                rate.mean *= factor;
            }
        }
        gathering.add("x", &record);
    }
    gathering.judge()
}

/// The screens at both widths: what decides stands first.
#[test]
fn a_fleet_is_a_screen() {
    let fleet = fleet(40, &[3, 18]);
    for (name, width, charset) in
        [("80", 80, Charset::Unicode), ("40", 40, Charset::Unicode), ("ascii", 80, Charset::Ascii)]
    {
        let style = Style { width, color: Color::Never, charset };
        let text = fleet_text(&fleet, Extent::Short, style);
        let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(flat.starts_with("2 of 40 disks are slower than the others of their model: web"), "{text}");
        assert!(text.lines().all(|line| line.width() <= width), "{text}");
        insta::assert_snapshot!(name, text);
    }
    let document: Value = serde_json::from_str(&fleet_json(&fleet)).unwrap();
    assert_eq!((&document["schema"], &document["disks"]), (&"rdsk.fleet/1".into(), &40.into()));
    let mut hosts: Vec<&str> =
        document["outliers"].as_array().unwrap().iter().map(|one| one["host"].as_str().unwrap()).collect();
    hosts.sort_unstable();
    assert_eq!(hosts, ["web03", "web18"]);
    assert!((document["outliers"][0]["factor"].as_f64().unwrap() - 2.0).abs() < 0.1, "{document}");
}

#[test]
fn a_fleet_without_outliers_has_none_named_and_few_disks_are_not_compared() {
    let text = fleet_text(&fleet(40, &[]), Extent::Short, Style::default());
    assert!(text.starts_with("No outlier among 40 disks: "), "{text}");
    assert!(!text.contains("OUTLIERS:") && text.contains("MODELS: "), "{text}");
    let text = fleet_text(&fleet(3, &[1]), Extent::Short, Style::default());
    assert!(text.starts_with("No disk is compared: that takes 8 of one model"), "{text}");
}

#[test]
fn names_from_disks_are_safe_and_a_short_page_is_cut() {
    let mut many = fleet(60, &[1, 2]);
    let one = many.outliers[0].clone();
    many.outliers = std::iter::repeat_n(one, 30).collect();
    many.disks[many.outliers[0].disk].host = "\u{1b}[2Jx".into();
    let [short, full] =
        [Extent::Short, Extent::Full].map(|extent| fleet_text(&many, extent, Style::default()));
    assert!(!short.contains('\u{1b}') && short.contains("\\x1b"), "{short}");
    assert!(short.contains("and 25 others") && short.contains("All rows: --details"), "{short}");
    assert!(full.lines().count() > short.lines().count() + 15 && !full.contains("--details"), "{full}");
}
