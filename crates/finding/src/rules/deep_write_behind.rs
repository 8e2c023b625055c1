//! `deep-write-behind`: one program that waits for each buffered write had many requests in flight, because writeback submits them.

use super::prelude::*;

pub(super) const RULE: Rule = Rule::new("deep-write-behind", Severity::Remark, Needs::Counters, check);

/// Requests in flight at once, of one writer, from which the queue is called deep.
const DEEP: u64 = 4;
/// Submitters that are named.
const NAMED: usize = 2;

fn check(analysis: &Analysis<'_>) -> Vec<Finding> {
    // The many cells of the align table write a few pages each.
    let cells = cells(analysis, |cell| {
        cell.workload.op == Op::Write
            // `dontcache` begins the writing inside the call.
            && cell.workload.path == IoPath::Buffered
            && cell.workload.sync != Sync::Dsync
            && cell.experiment != Experiment::Align
            && metrics::wanted_depth(&cell.workload) == 1
            && !has_verdict(cell, VerdictCode::Disturbed)
            && deepest(cell).is_some_and(|depth| depth >= DEEP)
    });
    let Some(first) = cells.first() else { return Vec::new() };
    let text = format!(
        "A buffered write only fills RAM, and the {} writes it out later, many requests at once. So await of iostat is mostly time in \
         that queue, not the time that the device takes for one request.",
        system(analysis, first)
    );
    vec![RULE.about(&cells, "one writer, many requests in flight", text, |cell| cited(analysis, cell))]
}

/// Nothing where BPF took times for a part of the time only: the deepest queue of all of it is not known. What BPF counts is of the device,
/// and requests wait before it, too: both together are as many as `aqu-sz` on average.
fn deepest(cell: &CellRecord) -> Option<u64> {
    let is_timed = cell.evidence.bpf.as_ref().is_none_or(|bpf| bpf.timed_share().is_none());
    let devices = metrics::devices(cell).filter(|_| is_timed)?;
    let in_device = devices.iter().filter_map(|device| device.in_flight_max).max()?;
    let row = cell.evidence.bpf.as_ref().and_then(|_| metrics::row(cell));
    Some(in_device.max(row.map_or(0, |row| metrics::whole(row.aqu_sz))))
}

fn cited(analysis: &Analysis<'_>, cell: &CellRecord) -> String {
    let deepest = deepest(cell).unwrap_or(0);
    // Before the return there may have been no request at all.
    let row = metrics::row(cell).filter(|row| row.writes.ios_s > 0.0);
    let row = row.map_or(String::new(), |row| {
        let await_ns = metrics::whole(row.writes.await_ms * 1e6);
        format!(", aqu-sz = {}, w_await = {}", words::figure(row.aqu_sz), words::nanos(await_ns))
    });
    let least = if part_in_words(cell).is_empty() { "" } else { "at least " };
    cite(
        cell,
        "deepest queue",
        format_args!("{least}{deepest} with one writer{row}{}", submitters(analysis, cell)),
    )
}

/// `, submitted by fsync(2) = 75.0 %, by the kernel's threads = 25.0 %`.
fn submitters(analysis: &Analysis<'_>, cell: &CellRecord) -> String {
    let Some(block_io) = analysis.block_io(cell) else { return String::new() };
    let origins = block_io.origins(Op::Write);
    let total_bytes: u64 = origins.iter().map(|(_, sum)| sum.bytes).sum();
    let named = origins.iter().take(NAMED).filter(|(_, sum)| sum.bytes > 0);
    let parts: Vec<String> = named
        .map(|(origin, sum)| {
            format!("by {origin} = {}", percent(metrics::ratio(sum.bytes, total_bytes.max(1))))
        })
        .collect();
    if parts.is_empty() {
        String::new()
    } else {
        format!(", submitted {}{}", parts.join(", "), block_io.part_in_words())
    }
}

#[cfg(test)]
mod tests {
    use super::super::prelude::testing::{fires, silent};
    use super::*;
    use crate::fixtures::bios::{bio, counted, request};
    use crate::fixtures::{self, disk, kept_in_memory, record, with};
    use rdsk_model::{DiskStat, IoPath, Record};

    fn write(deepest: Option<u64>, change: impl FnOnce(&mut CellRecord)) -> Record {
        let direct = fixtures::cell("w", Op::Write, IoPath::Direct, 16384, 4096, 500_000_000);
        let cell = with(kept_in_memory(direct, 100_000_000, 500_000_000), |cell| {
            cell.evidence.device[0].in_flight_max = deepest;
        });
        record(vec![disk()], vec![with(cell, change)])
    }

    #[test]
    fn fires_on_a_deep_queue_of_one_buffered_writer() {
        let finding = fires(RULE, &write(Some(16), |_| {}));
        assert_eq!(finding.evidence, ["sequential buffered 16K writes: deepest queue = 16 with one writer"]);
        let bios = vec![
            bio(Op::Write, "this", Some("fsync"), 12_288, 4096),
            bio(Op::Write, "kernel", None, 4096, 4096),
        ];
        let seen = write(Some(16), |cell| {
            *cell = counted(cell.clone(), bios, vec![request(Op::Write, 524_288, 128)]);
        });
        let finding = fires(RULE, &seen);
        assert_eq!(
            finding.evidence,
            [
                "sequential buffered 16K writes: deepest queue = 16 with one writer, submitted by fsync(2) = 75.0%, by the kernel's threads = 25.0%"
            ]
        );
    }

    /// A disk that takes one request at a time.
    #[test]
    fn fires_where_the_requests_wait_before_the_device() {
        let waiting = |time_in_queue_ms: u64| {
            write(Some(1), |cell| {
                *cell = counted(cell.clone(), Vec::new(), vec![request(Op::Write, 524_288, 128)]);
                let stat = DiskStat { time_in_queue_ms, ..DiskStat::default() };
                cell.evidence.device[0].diskstat = Some(stat);
            })
        };
        let finding = fires(RULE, &waiting(800));
        assert_eq!(finding.evidence, ["sequential buffered 16K writes: deepest queue = 8 with one writer"]);
        silent(RULE, &waiting(300));
    }

    #[test]
    fn is_silent_where_times_were_taken_for_a_part_only() {
        let timed_for = |part: u64| {
            write(Some(16), |cell| {
                *cell = counted(cell.clone(), Vec::new(), vec![request(Op::Write, 524_288, 128)]);
                let bpf = cell.evidence.bpf.as_mut().unwrap();
                bpf.timed_ns = Some(bpf.visits_ns / part);
            })
        };
        fires(RULE, &timed_for(1));
        silent(RULE, &timed_for(10));
    }

    #[test]
    fn is_silent_on_shallow_queues_and_where_the_program_has_many_in_flight_itself() {
        silent(RULE, &write(Some(3), |_| {}));
        silent(RULE, &write(None, |_| {}));
        silent(RULE, &write(Some(16), |cell| cell.workload.streams = 16));
        silent(RULE, &write(Some(16), |cell| cell.workload.sync = Sync::Dsync));
        silent(RULE, &write(Some(16), |cell| cell.workload.path = IoPath::Direct));
    }
}
