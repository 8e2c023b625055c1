//! What the calls of a cell became in the block layer, in a sentence: the bios and who submitted them, the requests by exact size,
//! the reads that writes waited for. It says nothing of a cell whose visits BPF did not count throughout, and only the requests of
//! one whose bios were followed for a part of a visit's time.

mod activity;
mod kinds;
mod tree;

pub(crate) use activity::draw_activity;
use kinds::{bio_kinds, request_kinds};
pub(crate) use tree::draw as draw_tree;
pub use tree::tree;

use crate::page::{Page, Tone};
use rdsk_analysis::block_io::{BlockIo, Sum};
use rdsk_analysis::groups::by_key;
use rdsk_analysis::{Analysis, metrics, words};
use rdsk_model::{CellRecord, Op, Origin};
use rdsk_units::{Bytes, grouped, percent, printable};

/// Submitters that are named.
const NAMED: usize = 2;
/// How far a count may be from one per call to be called one.
const ONE: f64 = 0.05;

/// One sentence for each of the cells, behind its name.
pub(crate) fn draw(
    page: &mut Page,
    analysis: &Analysis<'_>,
    cells: &[&CellRecord],
    name: impl Fn(&CellRecord) -> String,
) {
    let sentences: Vec<(String, String)> =
        cells.iter().filter_map(|cell| Some((name(cell), sentence(analysis, cell)?))).collect();
    if sentences.is_empty() {
        return;
    }
    page.line("  what each call became, counted by BPF in the block layer:");
    for (name, text) in sentences {
        page.sentence(Tone::Plain, format!("    {name}: "), text);
    }
}

/// One line for all cells whose writes made the same reads: `512, 1024: each write first reads 4 KiB`.
pub(crate) fn draw_reads(
    page: &mut Page,
    analysis: &Analysis<'_>,
    cells: &[&CellRecord],
    name: impl Fn(&CellRecord) -> String,
) {
    let clause = |cell: &&CellRecord| {
        let block_io = analysis.block_io(cell)?;
        Some((first_reads(block_io)? + &block_io.part_in_words(), name(cell)))
    };
    let clauses = cells.iter().filter_map(clause);
    for (text, names) in by_key(clauses) {
        page.sentence(Tone::Plain, "  ", format!("{}: {text} (BPF)", names.join(", ")));
    }
}

/// `4,096 writes of 16 KiB became 16,384 bios of 4 KiB by fsync(2); requests: 128 of 512 KiB; at most 16 in flight`. `None` of a cell
/// that BPF did not count throughout, and of one that completed nothing.
pub(crate) fn sentence(analysis: &Analysis<'_>, cell: &CellRecord) -> Option<String> {
    let op = cell.workload.op;
    let block_io = analysis.counted_io(cell)?;
    if let Some(part) = block_io.timed_share().map(percent) {
        let requests = block_io.sizes_in_words(op);
        return (!requests.is_empty()).then(|| {
            format!("requests: {requests}; at so many per second bios are followed, and times taken, for {part} only")
        });
    }
    let (others, origins): (Vec<_>, Vec<_>) =
        block_io.origins(op).into_iter().partition(|(origin, _)| *origin == Origin::Other);
    let calls = block_io.calls();
    // What the kernel refused became nothing, and memory answered nothing.
    if calls == 0 {
        return None;
    }
    let asked = format!("{}{}", asked(cell, calls), block_io.part_in_words());
    let bios: Sum = origins.iter().map(|(_, sum)| *sum).sum();
    let of_others: u64 = others.iter().map(|(_, sum)| sum.count).sum();
    let Some(mean) = bios.mean_bytes() else {
        // A server of FUSE is another process that reads for us.
        let answered = match of_others {
            0 => ": memory answered".to_owned(),
            count => format!(" of rdsk's own; {} of other processes meanwhile", words::plural(count, "bio")),
        };
        return (op == Op::Read).then(|| format!("{asked} became no bio{answered}"));
    };
    let mut parts = vec![format!(
        "{asked} became {} of {}{}{}",
        words::plural(bios.count, "bio"),
        words::bytes(metrics::whole(mean)),
        if block_io.is_each(op, bios, Some(cell.workload.block_bytes)) { "" } else { " on average" },
        submitters(&origins, bios)
    )];
    parts.extend(requests(block_io, op));
    let flushes = block_io.flushes().filter(|&count| count > 0 && op == Op::Write);
    parts.extend(flushes.map(|count| words::plural(count, "flush")));
    if of_others > 0 {
        parts.push(format!("{} of other processes among them", words::plural(of_others, "bio")));
    }
    parts.extend(block_io.deepest().map(|depth| format!("at most {depth} in flight")));
    parts.extend(first_reads(block_io));
    let missed: Vec<String> = block_io.missed().into_iter().map(printable).collect();
    if !missed.is_empty() {
        parts.push(format!("up to 1% of those of {} were missed", words::list(&missed)));
    }
    Some(parts.join("; "))
}

/// `4,096 writes of 16 KiB`; where some moved less than a block, `3 writes of up to 4 MiB (8.42 MiB in all)`.
pub(crate) fn asked(cell: &CellRecord, calls: u64) -> String {
    let named = format!("{} of {}", words::plural(calls, cell.workload.op.as_str()), call_size(cell));
    match (cell.result.ops, cell.result.bytes) {
        (Some(ops), Some(bytes)) if ops == calls && ops > 1 && is_partial(cell) => {
            format!("{named} ({} in all)", words::bytes(bytes))
        }
        _ => named,
    }
}

/// What each call moved: `16 KiB`; `up to 4 MiB` where some moved less.
pub(crate) fn call_size(cell: &CellRecord) -> String {
    let block = Bytes(cell.workload.block_bytes);
    match (cell.result.ops, cell.result.bytes) {
        (Some(1), Some(bytes)) if is_partial(cell) => words::bytes(bytes),
        _ if is_partial(cell) => format!("up to {block}"),
        _ => block.to_string(),
    }
}

/// Whether some calls moved less than a block.
fn is_partial(cell: &CellRecord) -> bool {
    let whole = cell.result.ops.map(|ops| ops.saturating_mul(cell.workload.block_bytes));
    whole.zip(cell.result.bytes).is_some_and(|(whole, bytes)| bytes < whole)
}

/// `requests: 2 of 512 KiB, 254 merged`; `None` where those of the cell cannot be distinguished from others.
fn requests(block_io: &BlockIo<'_>, op: Op) -> Option<String> {
    let sizes = block_io.sizes_in_words(op);
    let mut requests = (!sizes.is_empty()).then(|| format!("requests: {sizes}"))?;
    if let Some(merges) = block_io.merges(op).filter(|&merges| merges > 0) {
        requests.push_str(&format!(", {} merged", grouped(merges)));
    }
    if let Some(cut) = block_io.splits().filter(|&cut| cut > 0) {
        requests.push_str(&format!(", {} cut", grouped(cut)));
    }
    Some(requests)
}

/// ` by fsync(2)`, ` by fsync(2) (75.0 %) and the kernel's threads (25.0 %)`.
fn submitters(origins: &[(Origin<'_>, Sum)], total: Sum) -> String {
    if let [(origin, _)] = origins {
        return format!(" by {origin}");
    }
    let share = |sum: &Sum| percent(metrics::ratio(sum.bytes, total.bytes.max(1)));
    let named: Vec<String> =
        origins.iter().take(NAMED).map(|(origin, sum)| format!("{origin} ({})", share(sum))).collect();
    format!(" by {}", words::list(&named))
}

/// `each write first reads 4 KiB`; `None` where the writes read nothing.
fn first_reads(block_io: &BlockIo<'_>) -> Option<String> {
    let (inside, _) = block_io.reads_in_writes();
    let size = words::bytes(metrics::whole(inside.mean_bytes()?));
    let per_write = metrics::ratio(inside.count, block_io.calls().max(1));
    Some(if (per_write - 1.0).abs() <= ONE {
        format!("each write first reads {size}")
    } else if per_write > 1.0 {
        format!("each write first makes {} reads of {size}", words::figure(per_write))
    } else if per_write >= ONE {
        format!("one write in {} first reads {size}", words::figure(1.0 / per_write))
    } else {
        return None;
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rdsk_finding::fixtures::bios::{bio, counted, request};
    use rdsk_finding::fixtures::{cell, disk, record, with};
    use rdsk_model::{Bio, IoPath, Record, Request};

    fn of(cells: Vec<CellRecord>) -> Record {
        record(vec![disk()], cells)
    }

    fn sentence(cell: &CellRecord) -> Option<String> {
        let record = of(vec![cell.clone()]);
        super::sentence(&Analysis::of(&record), &record.cells[0])
    }

    fn told(path: IoPath, op: Op, block: u64, ops: u64, bios: Vec<Bio>, requests: Vec<Request>) -> String {
        let cell = counted(cell("c", op, path, block, ops, 1_000_000_000), bios, requests);
        sentence(&cell).unwrap_or_default()
    }

    #[test]
    fn a_call_is_followed_to_its_requests() {
        let direct = told(
            IoPath::Direct,
            Op::Read,
            1 << 20,
            64,
            vec![bio(Op::Read, "this", Some("pread64"), 64, 1 << 20)],
            vec![request(Op::Read, 524_288, 128)],
        );
        assert_eq!(
            direct,
            "64 reads of 1 MiB became 64 bios of 1 MiB by pread64(2); requests: 128 of 512 KiB; at most 1 in flight"
        );
        let small = told(
            IoPath::Buffered,
            Op::Write,
            512,
            2048,
            vec![
                bio(Op::Read, "this", Some("pwrite64"), 256, 4096),
                bio(Op::Write, "this", Some("fsync"), 192, 4096),
                bio(Op::Write, "kernel", None, 64, 4096),
            ],
            vec![request(Op::Read, 4096, 256), request(Op::Write, 524_288, 2)],
        );
        assert_eq!(
            small,
            "2,048 writes of 512 B became 256 bios of 4 KiB by fsync(2) (75.0%) and the kernel's threads (25.0%); requests: 2 of \
             512 KiB; at most 1 in flight; one write in 8.00 first reads 4 KiB"
        );
        let durable = with(
            counted(
                cell("d", Op::Write, IoPath::Direct, 4096, 16, 1_000_000),
                vec![bio(Op::Write, "this", Some("pwrite64"), 16, 4096)],
                vec![request(Op::Write, 4096, 16)],
            ),
            |cell| cell.evidence.device[0].flushes = Some(32),
        );
        assert_eq!(
            sentence(&durable).unwrap(),
            "16 writes of 4 KiB became 16 bios of 4 KiB by pwrite64(2); requests: 16 of 4 KiB; 32 flushes; at most 1 in flight"
        );
        let beside = told(
            IoPath::Direct,
            Op::Read,
            4096,
            10,
            vec![
                bio(Op::Read, "this", Some("pread64"), 10, 4096),
                bio(Op::Read, "other", Some("read"), 7, 4096),
            ],
            vec![request(Op::Read, 4096, 17)],
        );
        assert_eq!(
            beside,
            "10 reads of 4 KiB became 10 bios of 4 KiB by pread64(2); requests: 17 of 4 KiB; 7 bios of other processes among them; at \
             most 1 in flight"
        );
        let reads = vec![bio(Op::Read, "this", Some("pread64"), 1000, 4096)];
        let some_missed = with(
            counted(
                cell("m", Op::Read, IoPath::Direct, 4096, 1000, 1_000_000),
                reads,
                vec![request(Op::Read, 4096, 999)],
            ),
            |cell| cell.evidence.bpf.as_mut().unwrap().lost = 1,
        );
        assert!(sentence(&some_missed).unwrap().ends_with("; up to 1% of those of sda were missed"));
        let cached = told(IoPath::Buffered, Op::Read, 4096, 10, Vec::new(), Vec::new());
        assert_eq!(cached, "10 reads of 4 KiB became no bio: memory answered");
    }

    /// A server of FUSE is another process, and reads for us.
    #[test]
    fn what_others_read_meanwhile_is_not_called_memory() {
        let served = told(
            IoPath::Buffered,
            Op::Read,
            4096,
            10,
            vec![bio(Op::Read, "other", Some("pread64"), 2, 32 << 10)],
            vec![request(Op::Read, 32 << 10, 2)],
        );
        assert_eq!(
            served,
            "10 reads of 4 KiB became no bio of rdsk's own; 2 bios of other processes meanwhile"
        );
    }

    #[test]
    fn visits_that_were_not_followed_are_not_among_the_calls() {
        let writes = cell("w", Op::Write, IoPath::Direct, 4096, 1, 1_000_000_000);
        let bios = vec![bio(Op::Write, "this", Some("pwrite64"), 100, 4096)];
        let writes = counted(writes, bios, vec![request(Op::Write, 4096, 90)]);
        let writes = rdsk_finding::fixtures::bios::followed(writes, &[(100, 5), (400, 5)], &[0]);
        assert_eq!(
            sentence(&writes).unwrap(),
            "100 writes of 4 KiB in 1 of 2 repeats became 100 bios of 4 KiB by pwrite64(2); requests: 90 of 4 KiB, 10 merged; 100 \
             flushes"
        );
    }

    #[test]
    fn what_the_kernel_refused_became_nothing() {
        let refused = told(IoPath::Direct, Op::Read, 2048, 0, Vec::new(), Vec::new());
        assert_eq!(refused, "", "memory answered nothing");
    }

    #[test]
    fn requests_that_were_counted_beside_a_timed_part_are_told_alone() {
        let reads = cell("t", Op::Read, IoPath::Direct, 4096, 500_000, 1_000_000_000);
        let bios = vec![bio(Op::Read, "this", Some("pread64"), 5000, 4096)];
        let mut reads = counted(reads, bios, vec![request(Op::Read, 4096, 500_000)]);
        let bpf = reads.evidence.bpf.as_mut().unwrap();
        bpf.timed_ns = Some(bpf.visits_ns / 100);
        assert_eq!(
            sentence(&reads).unwrap(),
            "requests: 500,000 of 4 KiB; at so many per second bios are followed, and times taken, for 1.0% only"
        );
        let bpf = reads.evidence.bpf.as_mut().unwrap();
        bpf.observed_ns = bpf.visits_ns / 100;
        assert_eq!(sentence(&reads), None, "the requests are of the part, too");
    }

    #[test]
    fn a_call_that_moved_less_than_a_block_is_not_called_a_block() {
        let asked_of = |ops: u64, bytes: u64| {
            let mut cell = cell("w", Op::Write, IoPath::Buffered, 4 << 20, ops, 1_000_000);
            cell.result.bytes = Some(bytes);
            asked(&cell, ops)
        };
        assert_eq!(asked_of(3, 12 << 20), "3 writes of 4 MiB");
        assert_eq!(asked_of(3, 9 << 20), "3 writes of up to 4 MiB (9 MiB in all)");
        assert_eq!(asked_of(1, 100), "1 write of 100 B");
        let mut unknown = cell("w", Op::Write, IoPath::Buffered, 4 << 20, 3, 1_000_000);
        unknown.result.bytes = None;
        assert_eq!(asked(&unknown, 3), "3 writes of 4 MiB");
    }

    #[test]
    fn without_bpf_nothing_is_drawn() {
        let mut page = Page::default();
        let record = of(vec![cell("c", Op::Read, IoPath::Direct, 4096, 10, 1_000_000)]);
        let (analysis, plain) = (Analysis::of(&record), &record.cells[0]);
        draw(&mut page, &analysis, &[plain], |cell| cell.id.clone());
        draw_reads(&mut page, &analysis, &[plain], |cell| cell.id.clone());
        assert_eq!(page.render(crate::Style::default()), "");
    }

    #[test]
    fn cells_whose_writes_read_alike_share_a_line() {
        let write = |block: u64, reads: u64| {
            let cell = cell("w", Op::Write, IoPath::Buffered, block, 100, 1_000_000);
            let bios = vec![bio(Op::Read, "this", Some("pwrite64"), reads, 4096)];
            with(counted(cell, bios, vec![request(Op::Read, 4096, reads)]), |cell| {
                cell.workload.block_bytes = block;
            })
        };
        let record = of(vec![write(512, 100), write(1024, 100), write(4608, 200), write(4096, 0)]);
        let mut page = Page::default();
        let cells: Vec<&CellRecord> = record.cells.iter().collect();
        draw_reads(&mut page, &Analysis::of(&record), &cells, |cell| cell.workload.block_bytes.to_string());
        assert_eq!(
            page.render(crate::Style::default()),
            "  512, 1024: each write first reads 4 KiB (BPF)\n  4608: each write first makes 2.00 reads of 4 KiB (BPF)\n"
        );
    }
}
