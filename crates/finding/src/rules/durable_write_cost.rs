//! `durable-write-cost`: what it costs that each write returns only when its data is durable.

use super::prelude::*;

pub(super) const RULE: Rule = Rule::new("durable-write-cost", Severity::Cost, Needs::Counters, check);

/// What files add; a simulated host has none.
const JOURNAL: &str = " On a filesystem it may also have to commit the journal.";

fn check(analysis: &Analysis<'_>) -> Vec<Finding> {
    analysis.comparisons(Kind::Durable).filter_map(|pair| explain(analysis, pair)).collect()
}

/// `None` where sync writes take hardly longer, or not certainly.
fn explain(analysis: &Analysis<'_>, pair: &Comparison<'_>) -> Option<Finding> {
    let ratio = pair.ratio.ok().filter(|ratio| ratio.mean >= MIN_EFFECT && ratio.is_sure())?;
    let (plain, durable) = (pair.cell, pair.base);
    let device = metrics::first_device(analysis, durable);
    let mut evidence = vec![
        cite(durable, "writes/s", format_args!("{}, without sync = {}", rate(durable), rate(plain))),
        cite(
            durable,
            "flushes per write",
            format_args!("{}, without sync = {}", flushes(durable), flushes(plain)),
        ),
    ];
    evidence.extend(by_bpf(analysis, durable).map(|counts| cite(durable, "write requests with FUA", counts)));
    let is_simulated = is_simulated(analysis, durable);
    let source = if is_simulated { "" } else { "queue/" };
    if let Some(device) = device {
        evidence.push(format!("{}: {}", printable(&device.name), cache_state(device, source)));
    }
    let fua = analysis.block_io(durable).and_then(BlockIo::fua_per_write);
    let cause = cause(device, metrics::flushes_per_io(durable), fua);
    let title = format!("sync writes take {} as long", words::times(ratio.mean));
    let finding = RULE
        .finding(title.clone(), format!("{cause}{}", if is_simulated { "" } else { JOURNAL }))
        .evidence(evidence)
        .confidence(metrics::flushes(durable).map_or(Confidence::Inferred, |_| Confidence::Measured))
        .cells([plain, durable])
        .advice("write more per sync (larger blocks, group commit), or use a device whose cache survives a power cut")
        .effect(Stake::Cost, Some(ratio.mean), title)
        .within(ratio.low, ratio.high);
    Some(finding)
}

/// What makes a write durable: what the device says of itself, and above it what was counted.
fn cause(
    device: Option<&Device>,
    flushes_per_write: Option<f64>,
    fua_per_write: Option<f64>,
) -> &'static str {
    if device.is_some_and(Device::only_array_claims_cache) {
        return "The array reports a volatile cache, as every array of md does, but none of the disks below it reports one: no flush is \
                needed.";
    }
    let cache = device.and_then(|device| device.write_cache.as_deref());
    let fua = device.and_then(|device| device.fua);
    let was_flushed = flushes_per_write.map(|flushes| flushes >= EACH_WRITE);
    let had_fua = fua_per_write.map(|fua| fua >= EACH_WRITE);
    match (cache, had_fua.filter(|&had_fua| had_fua).or(fua), was_flushed) {
        (Some("write back"), Some(true), Some(true)) => {
            "The device has a volatile cache and supports FUA, but the kernel still flushed the whole cache for each sync \
             write."
        }
        (Some("write back"), Some(true), _) if had_fua == Some(false) => {
            "The device has a volatile cache and supports FUA, but neither writes with FUA nor flushes were counted for each sync \
             write: the counters do not show what made the data safe."
        }
        (Some("write back"), Some(true), _) => {
            "The device has a volatile cache and supports FUA: a sync write goes past the cache to the medium."
        }
        (Some("write back"), _, Some(false)) => {
            "The device reports a volatile cache and no FUA, but fewer flushes than writes were counted: the \
             counters do not show what made the data safe."
        }
        (Some("write back"), _, _) => {
            "The device has a volatile cache and no FUA: a sync write waits until the whole cache is flushed."
        }
        (Some(_), _, Some(true)) => {
            "The device reports no volatile cache, but a flush was counted for each sync write."
        }
        (Some(_), _, _) => "The device reports no volatile cache, so no flush is needed.",
        (None, _, Some(true)) => "The cache of the device was flushed for each sync write.",
        (None, _, _) => "Whether the device has a volatile cache is not known.",
    }
}

/// Where the two facts were read: below `queue/` of a real device, in the figures of a simulated one.
fn cache_state(device: &Device, source: &str) -> String {
    let cache = device.write_cache.as_deref().map_or_else(|| "unknown".into(), printable);
    let fua = match device.fua {
        Some(true) => "1",
        Some(false) => "0",
        None => "unknown",
    };
    format!("{source}write_cache = {cache}, {source}fua = {fua}")
}

/// What BPF saw of the writes' durability, where it counted all of the time.
fn by_bpf(analysis: &Analysis<'_>, cell: &CellRecord) -> Option<String> {
    let block_io = analysis.block_io(cell)?;
    let (fua, flushes) = block_io.durable();
    let requests = grouped(block_io.requests(Op::Write).count);
    let part = block_io.part_in_words();
    Some(format!(
        "{} of {requests}, bios that only ask for a flush = {}{part}",
        grouped(fua),
        grouped(flushes)
    ))
}

fn rate(cell: &CellRecord) -> String {
    cell.result.ops_per_s.map_or_else(|| "unknown".into(), |rate| rdsk_units::count(rate.mean))
}

fn flushes(cell: &CellRecord) -> String {
    metrics::flushes_per_io(cell).map_or_else(|| "not counted".into(), words::figure)
}

#[cfg(test)]
mod tests {
    use super::super::prelude::testing::{fires, silent};
    use super::*;
    use crate::fixtures::bios::{bio, counted, request};
    use crate::fixtures::{self, disk, in_rounds, make_durable, record, with};
    use rdsk_model::{Bio, IoPath, Request};

    fn plain() -> CellRecord {
        in_rounds(fixtures::cell("plain", Op::Write, IoPath::Direct, 4096, 5000, 500_000_000))
    }

    fn durable(elapsed_ns: u64) -> CellRecord {
        in_rounds(with(
            fixtures::cell("durable", Op::Write, IoPath::Direct, 4096, 5000, elapsed_ns),
            make_durable,
        ))
    }

    #[test]
    fn fires_on_the_pair_with_factor_and_flushes() {
        let finding = fires(RULE, &record(vec![disk()], vec![plain(), durable(40_000_000_000)]));
        assert_eq!(finding.title, "sync writes take 80.0x as long");
        assert_eq!(
            finding.evidence,
            [
                "sequential direct 4K sync writes: writes/s = 125, without sync = 10.0k",
                "sequential direct 4K sync writes: flushes per write = 1.00, without sync = 0.00",
                "sda: queue/write_cache = write back, queue/fua = 0",
            ]
        );
        let effect = finding.effect.expect("it has an effect");
        assert_eq!(
            (effect.factor.map(f64::round), effect.text.as_str()),
            (Some(80.0), "sync writes take 80.0x as long")
        );
    }

    #[test]
    fn a_small_difference_is_no_finding() {
        silent(RULE, &record(vec![disk()], vec![plain(), durable(510_000_000)]));
        silent(RULE, &record(vec![disk()], vec![plain(), durable(550_000_000)]));
        let finding = fires(RULE, &record(vec![disk()], vec![plain(), durable(600_000_000)]));
        assert_eq!(finding.title, "sync writes take 1.20x as long");
    }

    #[test]
    fn bpf_says_how_the_writes_became_durable() {
        let cited = |fua: u64, flushes: u64| {
            let bios = vec![
                bio(Op::Write, "this", Some("pwrite64"), 5000, 4096),
                Bio { flush: true, ..bio(Op::Write, "this", Some("pwrite64"), flushes, 0) },
            ];
            let requests = vec![
                Request { fua: true, ..request(Op::Write, 4096, fua) },
                request(Op::Write, 4096, 5000 - fua),
            ];
            let cell = counted(durable(40_000_000_000), bios, requests);
            fires(RULE, &record(vec![disk()], vec![plain(), cell])).evidence.remove(2)
        };
        assert_eq!(
            cited(5000, 0),
            "sequential direct 4K sync writes: write requests with FUA = 5,000 of 5,000, bios that only ask for a flush = 0"
        );
        assert_eq!(
            cited(0, 5000),
            "sequential direct 4K sync writes: write requests with FUA = 0 of 5,000, bios that only ask for a flush = 5,000"
        );
    }

    #[test]
    fn what_was_sent_with_fua_is_not_guessed_where_bpf_counted_it() {
        // What the device says of FUA, writes with FUA among 5000, words
        let table = [
            (Some(true), 5000, "goes past the cache"),
            (None, 5000, "goes past the cache"),
            (Some(true), 3, "do not show what made the data safe"),
        ];
        for (says, fua, words) in table {
            let (says, fua): (Option<bool>, u64) = (says, fua);
            let mut target = disk();
            target.device.as_mut().unwrap().fua = says;
            let requests = vec![
                Request { fua: true, ..request(Op::Write, 4096, fua) },
                request(Op::Write, 4096, 5000 - fua),
            ];
            let unflushed = with(durable(40_000_000_000), |cell| cell.evidence.device[0].flushes = Some(0));
            let cell = counted(unflushed, Vec::new(), requests);
            let finding = fires(RULE, &record(vec![target], vec![plain(), cell]));
            assert!(finding.text.contains(words), "{says:?} {fua}: {}", finding.text);
        }
    }

    #[test]
    fn what_is_not_certain_is_not_claimed() {
        let uneven = with(durable(600_000_000), |cell| {
            for (visit, factor) in cell.result.visits.iter_mut().zip([1, 3, 1, 2, 1, 4]) {
                visit.elapsed_ns = visit.elapsed_ns * factor * 10 / 13;
            }
        });
        silent(RULE, &record(vec![disk()], vec![plain(), uneven]));
        let short = with(durable(40_000_000_000), |cell| cell.result.visits.truncate(2));
        silent(RULE, &record(vec![disk()], vec![plain(), short]));
    }

    #[test]
    fn what_was_counted_comes_before_what_the_device_says() {
        // cache, fua, flushes of 5000 writes, words
        let table = [
            (Some("write back"), Some(true), Some(5000), "still flushed the whole cache for each sync write"),
            (Some("write back"), Some(true), Some(2), "goes past the cache"),
            (Some("write back"), Some(true), None, "goes past the cache"),
            (Some("write back"), Some(false), Some(5000), "waits until the whole cache is flushed"),
            (Some("write back"), Some(false), None, "waits until the whole cache is flushed"),
            (Some("write back"), Some(false), Some(1), "fewer flushes than writes"),
            (Some("write through"), Some(false), Some(0), "no flush is needed"),
            (Some("write through"), Some(false), Some(5000), "a flush was counted for each"),
        ];
        for (cache, fua, flushes, words) in table {
            let (cache, fua, flushes): (Option<&str>, Option<bool>, Option<u64>) = (cache, fua, flushes);
            let mut target = disk();
            let device = target.device.as_mut().unwrap();
            (device.write_cache, device.fua) = (cache.map(str::to_owned), fua);
            let cell = with(durable(40_000_000_000), |cell| cell.evidence.device[0].flushes = flushes);
            let finding = fires(RULE, &record(vec![target], vec![plain(), cell]));
            assert!(finding.text.contains(words), "{cache:?} {fua:?} {flushes:?}: {}", finding.text);
            assert!(
                flushes != Some(5000) || !finding.text.contains("goes past"),
                "a flush per write does not go past the cache: {}",
                finding.text
            );
        }
    }

    #[test]
    fn an_array_has_no_cache_of_its_own() {
        let mut target = disk();
        let device = target.device.as_mut().unwrap();
        let member = |name: &str| rdsk_model::Layer {
            name: name.into(),
            kind: "disk".into(),
            write_cache: Some("write through".into()),
            ..rdsk_model::Layer::default()
        };
        (device.kind, device.below) = (Some("md raid1".into()), vec![member("sdb"), member("sdc")]);
        let finding = fires(RULE, &record(vec![target], vec![plain(), durable(40_000_000_000)]));
        assert!(finding.text.contains("none of the disks below it reports one"), "{}", finding.text);
    }

    #[test]
    fn is_silent_without_the_twin() {
        silent(RULE, &record(vec![disk()], vec![durable(40_000_000_000)]));
        let larger = with(plain(), |cell| cell.workload.block_bytes = 8192);
        silent(RULE, &record(vec![disk()], vec![larger, durable(40_000_000_000)]));
    }
}
