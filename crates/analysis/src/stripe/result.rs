//! The result of `stripe` on one target in one direction: what the kernel says of the array and what its stripes cost, or without such words
//! what the latencies of the sweep say; beside it the kernel's hints. Derived from a Record.

use super::conclude;
use super::described::{Described, no_array, unrest};
use super::geometry::{Figure, Geometry, SURE, Sample, SizePoint};
use super::inference::infer;
use super::requests::{RequestCost, RequestKind, beside, costs};
use crate::groups::by_key;
use crate::metrics::{self, first_device, first_target, is_of_memory};
use crate::words::bytes;
use rdsk_model::{CellRecord, Device, Record, VerdictCode};
use std::ops::Deref;

/// The most confidence in latencies that others' I/O may have changed.
const IN_DOUBT: f64 = 0.5;
/// What is left to say of an array without stripes.
const NO_STRIPE_ADVICE: &str =
    "there is no stripe that request size or alignment should follow; see `rdsk align` for sectors and pages";

/// What is shown of the geometry.
#[derive(Clone, Debug, PartialEq)]
pub struct StripeResult {
    /// What the kernel says of the arrays, which the answer then is; `None` where it says nothing, and latencies alone answer.
    pub described: Option<Described>,
    /// What requests of each kind cost, where the kernel's words say which there are.
    pub costs: Vec<RequestCost>,
    /// The geometry; offsets count from the first byte of the target.
    pub geometry: Geometry,
    /// How the kernel's hints relate to it; `None` if there are none.
    pub hints: Option<(Agreement, String)>,
    /// Whether the requests reached a device at all; if not, their times say nothing.
    pub is_of_device: bool,
    /// Requests made.
    pub requests: u64,
    /// Requests planned.
    pub planned: u64,
    /// The smallest request.
    pub smallest_bytes: u64,
    /// The largest request; no full stripe above half of it shows in latencies.
    pub largest_bytes: u64,
}

impl StripeResult {
    /// Chunk in bytes and how sure it is: 1 where the kernel names it.
    pub fn chunk(&self) -> Option<(u64, f64)> {
        self.geometry.chunk.map(|figure| (figure.bytes, figure.confidence))
    }

    /// Full stripe in bytes and how sure it is.
    pub fn stripe(&self) -> Option<(u64, f64)> {
        self.geometry.stripe.map(|figure| (figure.bytes, figure.confidence))
    }

    /// Whether enough is known for a conclusion, which may be that there is no stripe.
    pub fn is_conclusive(&self) -> bool {
        let is_seen = self.is_of_device && (self.chunk().is_some() || self.none_confidence > 0.0);
        self.described.is_some() || is_seen
    }
}

impl Deref for StripeResult {
    type Target = Geometry;

    fn deref(&self) -> &Geometry {
        &self.geometry
    }
}

/// Reads the cells of `stripe` on one target in one direction, by the first of them that ran: `None` for the others, and if none of its
/// requests was made.
pub(crate) fn stripe(record: &Record, cell: &CellRecord) -> Option<StripeResult> {
    let target = first_target(record, cell)?;
    let Some(described) = Described::new(target) else { return by_latency(record, cell) };
    let cells = beside(record, cell);
    if cells.first().is_none_or(|first| first.id != cell.id) {
        return None;
    }
    let costs = costs(record, target, &described, &cells);
    let requests = |cell: &&CellRecord| cell.result.ops.unwrap_or(0);
    let sizes = || cells.iter().map(|cell| cell.workload.block_bytes);
    let made = cells.iter().map(requests).sum();
    let mut result = StripeResult {
        geometry: geometry(&described, &costs),
        hints: None,
        is_of_device: cells.iter().any(|cell| !is_of_memory(cell)),
        requests: made,
        planned: made,
        smallest_bytes: sizes().min().unwrap_or(0),
        largest_bytes: sizes().max().unwrap_or(0),
        costs,
        described: Some(described),
    };
    result.hints = hints(target.device.as_ref(), &result);
    Some(result)
}

/// The geometry that the kernel's words are.
fn geometry(described: &Described, costs: &[RequestCost]) -> Geometry {
    let figure = |bytes| Figure { bytes, confidence: 1.0 };
    let (chunk, stripe) = (described.chunk_bytes, described.stripe_bytes);
    let none_confidence = match chunk {
        Some(_) => 0.0,
        None if described.has_hidden_stripes() => IN_DOUBT,
        None => 1.0,
    };
    let words =
        described.levels.iter().map(|layout| format!("{}, as {} says", layout.sentence(), layout.source));
    Geometry {
        chunk: chunk.map(figure),
        stripe: stripe.map(figure),
        parity: Some(described.has_parity).filter(|_| chunk.is_some()),
        start_offset_bytes: described.start_offset_bytes,
        none_confidence,
        evidence: words.chain(described.doubts.iter().cloned()).collect(),
        boundary_profile: Vec::new(),
        sizes: sizes(costs),
        advice: advice(described),
    }
}

/// What to write, and where.
fn advice(described: &Described) -> String {
    let (chunk, stripe) = (described.chunk_bytes, described.stripe_bytes);
    match (chunk, stripe, described.parity_below()) {
        (_, _, Some(layout)) => {
            format!(
                "write long sequences: {}, and what covers such stripes whole needs no reads",
                layout.sentence()
            )
        }
        (Some(chunk), Some(stripe), _) => {
            conclude::advice(chunk, stripe, described.has_parity, described.start_offset_bytes)
        }
        (Some(chunk), None, _) => conclude::chunk_advice(chunk),
        (None, _, _) if described.has_hidden_stripes() => {
            "the arrays below differ: what is best for one of them is not for the others".into()
        }
        (None, _, _) => NO_STRIPE_ADVICE.into(),
    }
}

/// Cost over size: full stripes beside all other requests.
fn sizes(costs: &[RequestCost]) -> Vec<SizePoint> {
    let mut by_size = by_key(costs.iter().map(|cost| (cost.request.bytes, cost)));
    by_size.sort_by_key(|&(bytes, _)| bytes);
    let point = |(bytes, costs): (u64, Vec<&RequestCost>)| {
        let (whole, others): (Vec<&RequestCost>, Vec<&RequestCost>) =
            costs.into_iter().partition(|cost| cost.request.kind == RequestKind::FullStripe);
        let count = |costs: &[&RequestCost]| {
            usize::try_from(costs.iter().map(|cost| cost.count).sum::<u64>()).unwrap_or(0)
        };
        let median = |costs: &[&RequestCost]| costs.first().and_then(|cost| Some(cost.median_ns? as f64));
        SizePoint {
            bytes,
            aligned_count: count(&whole),
            aligned_median_ns: median(&whole),
            other_count: count(&others),
            other_median_ns: median(&others),
        }
    };
    by_size.into_iter().map(point).collect()
}

/// What the latencies of a sweep say.
fn by_latency(record: &Record, cell: &CellRecord) -> Option<StripeResult> {
    let workload = &cell.workload;
    let points = workload.points.as_ref()?;
    let mut samples = Vec::new();
    for run in &cell.result.points {
        for (&point, &latency_ns) in run.order.iter().zip(&run.latency_ns) {
            let (offset, bytes) = points.get(point as usize, workload.block_bytes)?;
            let offset_bytes = offset.saturating_sub(workload.offset_bytes);
            samples.push(Sample { offset_bytes, bytes, latency_ns });
        }
    }
    if samples.is_empty() {
        return None;
    }
    let mut geometry = infer(workload.op, &samples);
    if metrics::has_verdict(cell, VerdictCode::Disturbed) {
        doubt(&mut geometry, "other I/O used the device meanwhile, so none of this is certain");
    }
    let device = first_device(record, cell);
    for array in device.iter().flat_map(|device| device.arrays()) {
        for why in no_array(array).into_iter().chain(unrest(array)) {
            doubt(&mut geometry, &format!("{why}, so none of this is certain"));
        }
    }
    // Fitted from the first byte of the span.
    let start = geometry.start_offset_bytes.zip(geometry.stripe);
    geometry.start_offset_bytes = start.map(|(start, stripe)| (workload.offset_bytes + start) % stripe.bytes);
    if let (Some(chunk), Some(stripe)) =
        (geometry.chunk, geometry.stripe.filter(|stripe| stripe.confidence >= SURE))
    {
        let has_parity = geometry.parity == Some(true);
        geometry.advice =
            conclude::advice(chunk.bytes, stripe.bytes, has_parity, geometry.start_offset_bytes);
    }
    let sizes = || samples.iter().map(|sample| sample.bytes);
    let mut result = StripeResult {
        described: None,
        costs: Vec::new(),
        hints: None,
        geometry,
        is_of_device: !is_of_memory(cell),
        requests: samples.len() as u64,
        planned: points.len() as u64,
        smallest_bytes: sizes().min().unwrap_or(0),
        largest_bytes: sizes().max().unwrap_or(0),
    };
    result.hints = hints(device, &result);
    Some(result)
}

/// What others' I/O does to latencies no inference can take out again, so nothing stays sure.
fn doubt(geometry: &mut Geometry, why: &str) {
    for figure in [&mut geometry.chunk, &mut geometry.stripe].into_iter().flatten() {
        figure.confidence = figure.confidence.min(IN_DOUBT);
    }
    geometry.none_confidence = geometry.none_confidence.min(IN_DOUBT);
    geometry.evidence.push(why.to_owned());
}

fn hints(device: Option<&Device>, result: &StripeResult) -> Option<(Agreement, String)> {
    let device = device?;
    let bytes = |figure: Option<(u64, f64)>| figure.map(|(bytes, _)| bytes);
    let sizes = (bytes(result.chunk()), bytes(result.stripe()));
    let physical_block_bytes = device.physical_block_bytes.unwrap_or(0);
    let optimal_io_bytes = device.optimal_io_bytes.unwrap_or(0);
    Some(compare_with_sysfs(sizes, physical_block_bytes, device.minimum_io_bytes?, optimal_io_bytes))
}

/// How a measurement and the kernel's hints relate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Agreement {
    /// Both name the same sizes, as far as both name any.
    Agrees,
    /// They name different sizes.
    Differs,
    /// The kernel names a stripe and none was seen.
    NotSeen,
    /// A stripe was seen of which the kernel says nothing.
    NotHinted,
    /// Neither knows of a stripe.
    NoStripe,
}

/// An optimum from here on is no full stripe: with members of 16 MiB less a sector it is 256 MiB at least.
const MIXED_BYTES: u64 = 64 << 20;

/// Compares a chunk and a full stripe, however they were found, with `queue/minimum_io_size` (the chunk, for Linux's arrays)
/// and `queue/optimal_io_size` (the full stripe; 0 when unknown), all in bytes, and says it in a sentence. A minimum of no
/// more than 4096 bytes, or of the device's physical block, is no hint of a chunk.
pub fn compare_with_sysfs(
    (chunk, stripe): (Option<u64>, Option<u64>),
    physical_block_bytes: u64,
    minimum_io_bytes: u64,
    optimal_io_bytes: u64,
) -> (Agreement, String) {
    // Every device states its physical block as the smallest I/O, and some SSDs have large ones; only an array states more.
    let hinted_chunk = Some(minimum_io_bytes).filter(|&hint| hint > physical_block_bytes.max(4096));
    // The kernel takes the least common multiple of the stripe and an optimum of the members, for which SAS controllers say 16 MiB less one
    // sector (16773120): that is the stripe of no array.
    let is_stripe = |&hint: &u64| hint > 0 && hint < MIXED_BYTES && hinted_chunk.is_some();
    let hinted_stripe = Some(optimal_io_bytes).filter(is_stripe);
    let name = |size: Option<u64>| size.map_or_else(|| "none".to_owned(), bytes);
    let hints = format!(
        "the kernel's hints (minimum_io_size {minimum_io_bytes}, optimal_io_size {optimal_io_bytes})"
    );
    let measured = format!("chunk {}, full stripe {}", name(chunk), name(stripe));
    match (hinted_chunk.is_some(), chunk.is_some()) {
        (false, false) => (Agreement::NoStripe, format!("no stripe was seen, and {hints} name none")),
        (true, false) => {
            (Agreement::NotSeen, format!("no stripe was seen, but {hints} name chunk {}", name(hinted_chunk)))
        }
        (false, true) => (Agreement::NotHinted, format!("measured {measured}; {hints} name none")),
        (true, true) => {
            let differs = |hint: Option<u64>, measured: Option<u64>| matches!((hint, measured), (Some(a), Some(b)) if a != b);
            if differs(hinted_chunk, chunk) || differs(hinted_stripe, stripe) {
                let hinted = format!("chunk {}, full stripe {}", name(hinted_chunk), name(hinted_stripe));
                (Agreement::Differs, format!("measured {measured}; {hints} differ: {hinted}"))
            } else {
                (Agreement::Agrees, format!("measured {measured}; {hints} agree"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::stripe::{array, described, single, words};
    use crate::stripe::DiskBytes;
    use rdsk_model::ArrayFacts;

    const KIB: u64 = 1024;

    fn result_of(record: &Record) -> StripeResult {
        stripe(record, &record.cells[0]).unwrap()
    }

    #[test]
    fn the_kernels_words_are_the_answer_and_requests_their_cost() {
        let raid5 = |offset: u64| ArrayFacts {
            target_offset_bytes: Some(offset),
            ..words("md0", "raid5", Some(64 * KIB))
        };
        let record = described(raid5(0), &[]);
        let shown = result_of(&record);
        assert_eq!((shown.chunk(), shown.stripe()), (Some((64 * KIB, 1.0)), Some((192 * KIB, 1.0))));
        assert_eq!((shown.parity, shown.start_offset_bytes), (Some(true), Some(0)));
        assert!(shown.advice.starts_with("write multiples of 192 KiB at multiples of 192 KiB: "));
        let costs: Vec<(String, Option<DiskBytes>)> =
            shown.costs.iter().map(|cost| (cost.name(), cost.disks)).collect();
        let moved = |read: u64, written: u64| {
            Some(DiskBytes { read_bytes: (read * KIB) as f64, write_bytes: (written * KIB) as f64 })
        };
        assert_eq!(costs[0], ("full stripes".into(), moved(0, 256)));
        assert_eq!(costs[2], ("single chunks".into(), moved(128, 128)));
        assert_eq!(costs[3], ("4 KiB within a chunk".into(), moved(8, 8)));
        assert!(costs[1].1.unwrap().read_bytes > 0.0 && costs.len() == 4, "{costs:?}");
        let [small, chunk, whole] = &shown.sizes[..] else { panic!("{:?}", shown.sizes) };
        assert!(
            small.other_median_ns < chunk.other_median_ns && whole.aligned_median_ns < whole.other_median_ns
        );
        // The first cell has it all.
        assert!(record.cells[1..].iter().all(|cell| stripe(&record, cell).is_none()));
        let partition = result_of(&described(raid5(1 << 20), &[]));
        assert_eq!(partition.start_offset_bytes, Some(128 * KIB));
        assert!(
            partition.advice.contains("at 128 KiB and then at multiples of 192 KiB"),
            "{}",
            partition.advice
        );
    }

    #[test]
    fn a_mirror_has_no_stripe_and_a_stack_says_its_levels() {
        let mirror = result_of(&described(words("md0", "raid1", None), &[]));
        assert_eq!((mirror.chunk(), mirror.none_confidence, mirror.costs.len()), (None, 1.0, 1));
        let below = ["md1", "md2"].map(|name| words(name, "raid5", Some(512 * KIB)));
        let stack = result_of(&described(words("md0", "raid0", Some(64 * KIB)), &below));
        assert_eq!((stack.stripe(), stack.parity), (Some((256 * KIB, 1.0)), Some(true)));
        let expected = "write long sequences: md1 and md2 are RAID 5, left-symmetric, 4 members, chunk 512 KiB, full stripe 1.5 MiB, and";
        assert!(stack.advice.starts_with(expected), "{}", stack.advice);
        let unlike = [words("md1", "raid5", Some(512 * KIB)), words("md2", "raid5", Some(64 * KIB))];
        let row = result_of(&described(words("dm-0", "linear", None), &unlike));
        assert!(row.chunk().is_none() && row.none_confidence < SURE && row.is_conclusive());
    }

    /// The geometry stays the kernel's; what requests cost is another matter.
    #[test]
    fn an_array_at_work_is_doubted_and_latencies_of_one_are_sure_of_nothing() {
        for (activity, degraded) in [("resync", 0), ("idle", 1)] {
            let state = |array: ArrayFacts| ArrayFacts {
                activity: Some(activity.into()),
                degraded: Some(degraded),
                ..array
            };
            let shown = result_of(&described(state(words("md0", "raid5", Some(64 * KIB))), &[]));
            assert_eq!(shown.stripe(), Some((192 * KIB, 1.0)));
            assert_eq!(shown.described.as_ref().unwrap().doubts.len(), 1);
            assert!(shown.evidence.last().unwrap().starts_with("md0 is "));
            for mut record in [array(64 << 10, 3), single()] {
                let unnamed = ArrayFacts { level: None, chunk_bytes: None, ..words("dm-0", "", None) };
                record.targets[0].device.as_mut().unwrap().array = Some(state(unnamed));
                let shown = result_of(&record);
                let sure = |figure: Option<(u64, f64)>| figure.is_some_and(|(_, sure)| sure >= SURE);
                assert!(
                    !sure(shown.chunk()) && !sure(shown.stripe()) && shown.none_confidence < SURE,
                    "{shown:?}"
                );
            }
        }
    }

    #[test]
    fn latencies_of_a_cache_are_sure_of_nothing() {
        let mut record = array(64 << 10, 3);
        record.targets[0].device.as_mut().unwrap().array = Some(words("dm-0", "cache", None));
        let shown = result_of(&record);
        assert!(shown.described.is_none() && shown.chunk().is_some_and(|(_, sure)| sure < SURE), "{shown:?}");
        let why = "dm-0 is a cache and no array, so none of this is certain";
        assert_eq!(shown.evidence.last().map(String::as_str), Some(why));
    }

    /// Records of the first schema, whose requests lay where the members' counters asked for them.
    #[test]
    fn a_cell_without_listed_requests_is_answered_by_the_words() {
        let mut record = described(words("md0", "raid5", Some(64 * KIB)), &[]);
        record.cells.truncate(1);
        let cell = &mut record.cells[0];
        (cell.workload.points, cell.workload.align_bytes) = (Some(rdsk_model::Points::default()), 4096);
        let shown = result_of(&record);
        assert_eq!((shown.stripe(), shown.costs.len()), (Some((192 * KIB, 1.0)), 0));
    }

    /// An array that does not work as the shapes of the fit suppose (it reads and writes no more rows than it must, and its
    /// parity only follows) may stay unclear, but nothing wrong may be said for sure.
    #[test]
    fn an_array_of_another_make_is_not_misread_for_sure() {
        let mut recovered = 0;
        for chunk_bytes in [16 << 10, 32 << 10, 64 << 10, 128 << 10] {
            for data in 2..=7 {
                let stripe_bytes = chunk_bytes * data;
                let shown = result_of(&array(chunk_bytes, data));
                let is_surely_not = |figure: Option<(u64, f64)>, bytes: u64| {
                    figure.is_some_and(|(size, confidence)| size != bytes && confidence >= SURE)
                };
                assert!(
                    !is_surely_not(shown.chunk(), chunk_bytes),
                    "{chunk_bytes} × {data}: {:?}",
                    shown.chunk()
                );
                if stripe_bytes <= 512 << 10 {
                    assert!(
                        !is_surely_not(shown.stripe(), stripe_bytes),
                        "{chunk_bytes} × {data}: {:?}",
                        shown.stripe()
                    );
                    recovered += usize::from(shown.stripe().is_some_and(|(bytes, _)| bytes == stripe_bytes));
                }
            }
        }
        assert!(recovered >= 12, "{recovered} of 19 full stripes");
    }

    #[test]
    fn offsets_count_from_the_span() {
        let mut record = array(64 << 10, 3);
        let workload = &mut record.cells[0].workload;
        workload.offset_bytes = 4 << 20;
        workload.points.as_mut().unwrap().offset_bytes.iter_mut().for_each(|offset| *offset += 4 << 20);
        let stripe = result_of(&record);
        assert_eq!(stripe.stripe().map(|(bytes, _)| bytes), Some(192 << 10));
        // The first stripe begins with the span, 64 KiB into one of those that would begin with the target.
        assert_eq!(stripe.start_offset_bytes, Some(64 << 10));
        assert!(stripe.advice.contains("64 KiB"), "{}", stripe.advice);
    }

    #[test]
    fn memory_tells_nothing_and_a_disturbed_device_nothing_for_sure() {
        let judged = |code: VerdictCode| {
            let mut record = array(64 << 10, 3);
            record.cells[0].verdict.as_mut().unwrap().code = code;
            record
        };
        for code in [VerdictCode::Hole, VerdictCode::PageCache] {
            let record = judged(code);
            assert!(!result_of(&record).is_conclusive());
        }
        let disturbed = result_of(&judged(VerdictCode::Disturbed));
        assert!(
            disturbed.is_conclusive()
                && disturbed.stripe().unwrap().1 < SURE
                && disturbed.chunk().unwrap().1 < SURE
        );
    }

    #[test]
    fn too_few_requests_tell_nothing() {
        let mut record = array(64 << 10, 3);
        let run = &mut record.cells[0].result.points[0];
        run.order.truncate(100);
        run.latency_ns.truncate(100);
        assert!(!result_of(&record).is_conclusive());
    }

    #[test]
    fn a_cell_without_requests_says_nothing() {
        let mut record = array(64 << 10, 3);
        record.cells[0].result.points.clear();
        assert!(stripe(&record, &record.cells[0]).is_none());
    }

    #[test]
    fn every_relation_has_its_name() {
        let (k64, k256) = (Some(65_536), Some(262_144));
        for (chunk, stripe, minimum, optimal, expected) in [
            (k64, k256, 65_536, 262_144, Agreement::Agrees),
            (k64, None, 65_536, 262_144, Agreement::Agrees),
            (k64, k256, 65_536, 0, Agreement::Agrees),
            (k64, k256, 65_536, 1_073_479_680, Agreement::Agrees),
            (k64, k256, 65_536, 196_608, Agreement::Differs),
            (k64, k256, 131_072, 262_144, Agreement::Differs),
            (None, None, 65_536, 262_144, Agreement::NotSeen),
            (k64, k256, 512, 0, Agreement::NotHinted),
            (k64, k256, 4096, 1_310_720, Agreement::NotHinted),
            (None, None, 512, 0, Agreement::NoStripe),
        ] {
            let (agreement, text) = compare_with_sysfs((chunk, stripe), 512, minimum, optimal);
            assert_eq!(agreement, expected, "{text}");
            assert!(text.contains(&minimum.to_string()), "{text}");
        }
    }

    #[test]
    fn a_large_physical_block_is_no_chunk() {
        let (agreement, text) = compare_with_sysfs((None, None), 16_384, 16_384, 0);
        assert_eq!(agreement, Agreement::NoStripe, "{text}");
        let (agreement, text) = compare_with_sysfs((None, None), 16_384, 65_536, 0);
        assert_eq!(agreement, Agreement::NotSeen, "{text}");
    }
}
