//! A stack of devices as a drawn tree, the members of an array side by side. It draws and decides nothing.

use rdsk_model::{Device, Layer};
use rdsk_report::Charset;
use rdsk_units::{Bytes, printable};

/// One line per device, the top first.
pub(super) fn lines(device: &Device, charset: Charset) -> Vec<String> {
    let top = Layer {
        name: device.name.clone(),
        mapped_name: device.mapped_name.clone(),
        kind: device.kind.clone().unwrap_or_default(),
        size_bytes: device.size_bytes,
        write_cache: None,
        below: device.below.clone(),
    };
    let mut lines = vec![described(&top)];
    branches(&top.below, "", charset, &mut lines);
    lines
}

fn branches(layers: &[Layer], before: &str, charset: Charset, lines: &mut Vec<String>) {
    let [fork, end, trunk] = match charset {
        Charset::Unicode => ["├─ ", "└─ ", "│  "],
        Charset::Ascii => ["|- ", "`- ", "|  "],
    };
    for (index, layer) in layers.iter().enumerate() {
        let (branch, below) = if index + 1 == layers.len() { (end, "   ") } else { (fork, trunk) };
        lines.push(format!("{before}{branch}{}", described(layer)));
        branches(&layer.below, &format!("{before}{below}"), charset, lines);
    }
}

/// `dm-0 (vg/lv)  16 MiB, dm LVM`, `md0  126 MiB, md raid5, 3 members`.
fn described(layer: &Layer) -> String {
    let mapped = layer.mapped_name.as_deref().map(|name| format!(" ({})", printable(name)));
    let size = layer.size_bytes.map(|bytes| Bytes(bytes).approx());
    let kind = Some(printable(&layer.kind)).filter(|kind| !kind.is_empty());
    let members = (layer.below.len() > 1).then(|| format!("{} members", layer.below.len()));
    let facts: Vec<String> = [size, kind, members].into_iter().flatten().collect();
    let facts = if facts.is_empty() { String::new() } else { format!("  {}", facts.join(", ")) };
    format!("{}{}{facts}", printable(&layer.name), mapped.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layer(name: &str, kind: &str, below: Vec<Layer>) -> Layer {
        Layer { name: name.into(), kind: kind.into(), size_bytes: Some(64 << 20), below, ..Layer::default() }
    }

    fn volume_on_an_array_of_partitions() -> Device {
        let disk = |name: &str| layer(name, "disk", Vec::new());
        let part = |name: &str, disk: Layer| layer(name, "partition", vec![disk]);
        let members = vec![part("sda1", disk("sda")), part("sdb1", disk("sdb")), disk("sdc")];
        Device {
            name: "dm-0".into(),
            mapped_name: Some("v-g/l\u{1b}v".into()),
            kind: Some("dm LVM".into()),
            size_bytes: Some(16 << 20),
            below: vec![layer("md0", "md raid5", members)],
            ..Device::default()
        }
    }

    #[test]
    fn members_stand_side_by_side() {
        assert_eq!(
            lines(&volume_on_an_array_of_partitions(), Charset::Unicode),
            [
                "dm-0 (v-g/l\\x1bv)  16 MiB, dm LVM",
                "└─ md0  64 MiB, md raid5, 3 members",
                "   ├─ sda1  64 MiB, partition",
                "   │  └─ sda  64 MiB, disk",
                "   ├─ sdb1  64 MiB, partition",
                "   │  └─ sdb  64 MiB, disk",
                "   └─ sdc  64 MiB, disk",
            ]
        );
    }

    #[test]
    fn without_unicode_the_lines_are_plain() {
        let lines = lines(&volume_on_an_array_of_partitions(), Charset::Ascii);
        assert!(lines.iter().all(|line| line.is_ascii()), "{lines:?}");
        assert_eq!(lines[3], "   |  `- sda  64 MiB, disk");
    }
}
