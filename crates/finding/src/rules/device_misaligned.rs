//! `device-misaligned`: the blocks of the disk do not begin where the device begins, so that I/O at round offsets lies across them.

use super::prelude::*;

pub(super) const RULE: Rule = Rule::new("device-misaligned", Severity::Cause, Needs::Facts, check);

fn check(analysis: &Analysis<'_>) -> Vec<Finding> {
    let device = |cell: &CellRecord| metrics::first_device(analysis, cell);
    let offset = |cell: &CellRecord| device(cell).and_then(|device| device.alignment_offset_bytes);
    let cells = cells(analysis, |cell| {
        reached_device(cell)
            && !is_simulated(analysis, cell)
            && offset(cell).is_some_and(|offset| offset != 0)
    });
    let by_device = by_key(cells.into_iter().filter_map(|cell| Some((&device(cell)?.name, cell))));
    by_device.into_iter().filter_map(|(_, cells)| finding(device(cells[0])?, &cells)).collect()
}

fn finding(device: &Device, cells: &[&CellRecord]) -> Option<Finding> {
    let (name, offset) = (printable(&device.name), device.alignment_offset_bytes?);
    // The kernel aligns to the larger of the two (bdev_alignment_offset).
    let unit = device.physical_block_bytes.max(device.minimum_io_bytes).filter(|&bytes| bytes > 0);
    let unit = unit.map_or_else(|| "an unknown size".to_owned(), words::bytes);
    let blocks = format!("blocks of {unit}");
    let cost = if device.minimum_io_bytes > device.physical_block_bytes {
        "a request of one block touches two of them, on an array two members"
    } else {
        "a write that fills neither of two blocks makes the disk read both first"
    };
    let text = match u64::try_from(offset) {
        Ok(offset) => format!(
            "By the kernel, the {blocks} below {name} begin at byte {offset} of it, not at byte 0. I/O at round offsets lies across them: \
             {cost}."
        ),
        Err(_) => format!(
            "By the kernel, the starts or the block sizes of the devices below {name} do not fit together. I/O at round offsets may lie \
             across blocks of one of them: {cost}."
        ),
    };
    let advice = match device.kind.as_deref() {
        Some("partition") if offset > 0 => "let the partition begin at a multiple of 1 MiB, counted from the first block of the disk".into(),
        _ if offset > 0 => format!("let its first partition begin {offset} bytes after a multiple of {unit}"),
        _ => "look below for a partition that begins across blocks: lsblk -t shows the alignment of each device".to_owned(),
    };
    let or_unknown =
        |bytes: Option<u64>| bytes.map_or_else(|| "unknown".to_owned(), |bytes| bytes.to_string());
    let evidence = format!(
        "{name}: alignment_offset = {offset}, queue/physical_block_size = {}, queue/minimum_io_size = {}",
        or_unknown(device.physical_block_bytes),
        or_unknown(device.minimum_io_bytes)
    );
    Some(
        RULE.finding(format!("misaligned to the blocks of the disk: {}", how_many(cells)), text)
            .evidence([evidence])
            .inferred()
            .advice(advice)
            .effect(
                Stake::Cost,
                None,
                format!("{name} is misaligned to the {blocks} below it: {}", how_many(cells)),
            )
            .cells(cells.iter().copied()),
    )
}

#[cfg(test)]
mod tests {
    use super::super::prelude::testing::{fires, silent};
    use super::*;
    use crate::fixtures;
    use rdsk_model::{IoPath, Op, Record};

    fn at(kind: &str, offset: Option<i64>) -> Record {
        let mut target = fixtures::disk();
        let device = target.device.as_mut().unwrap();
        (device.kind, device.alignment_offset_bytes) = (Some(kind.into()), offset);
        let cell = fixtures::cell("c", Op::Write, IoPath::Direct, 4096, 10_000, 1_000_000_000);
        fixtures::record(vec![target], vec![cell])
    }

    #[test]
    fn fires_where_blocks_begin_elsewhere_and_says_where() {
        let finding = fires(RULE, &at("partition", Some(512)));
        assert_eq!(
            finding.evidence,
            ["sda: alignment_offset = 512, queue/physical_block_size = 4096, queue/minimum_io_size = 4096"]
        );
        assert!(
            finding.text.contains("the blocks of 4 KiB below sda begin at byte 512 of it"),
            "{}",
            finding.text
        );
        assert!(finding.advice.unwrap().contains("multiple of 1 MiB"));
        let disk = fires(RULE, &at("disk", Some(3584)));
        assert_eq!(
            disk.advice.unwrap(),
            "let its first partition begin 3584 bytes after a multiple of 4 KiB"
        );
        let mut chunks = at("md raid5", Some(1 << 20));
        chunks.targets[0].device.as_mut().unwrap().minimum_io_bytes = Some(2 << 20);
        let chunks = fires(RULE, &chunks);
        assert!(
            chunks.text.contains("blocks of 2 MiB") && chunks.text.contains("two members"),
            "{}",
            chunks.text
        );
        let stacked = fires(RULE, &at("md raid1", Some(-1)));
        assert!(stacked.text.contains("do not fit together"), "{}", stacked.text);
    }

    #[test]
    fn is_silent_on_what_is_aligned_or_not_known_to_be() {
        silent(RULE, &at("disk", Some(0)));
        silent(RULE, &at("disk", None));
    }
}
