//! The geometry from what each member was asked for each request: counted, not inferred from times. It needs the
//! members' counters before and after every request, and nobody else on the array.

use rdsk_model::{MemberIo, Op};

use super::{Probe, exact};

/// The share of the crossings of a chunk's boundaries that may contradict it.
const DISTURBED_CROSSINGS: f64 = 0.05;
/// The share of requests that may contradict a layout: others' I/O on the members.
const DISTURBED: f64 = 0.01;
/// Chunks that are tried: these times a power of two.
const ODD_PARTS: std::ops::Range<u64> = 0..16;
/// Chunks that are tried are no larger.
const LARGEST_CHUNK_BYTES: u64 = 16 << 20;

/// One write and what each member was asked for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberSample {
    /// First byte.
    pub offset_bytes: u64,
    /// Size in bytes.
    pub bytes: u64,
    /// One entry per member, in any order that stays the same.
    pub members: Vec<MemberIo>,
}

/// A layout that the counters agree with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberLayout {
    /// Bytes on one member before the next; `None` where no boundary was seen, as with mirrors.
    pub chunk_bytes: Option<u64>,
    /// Data of one full stripe; `None` where the counters agree with none.
    pub stripe_bytes: Option<u64>,
    /// Where the first full stripe begins; `None` without parity, where it makes no difference.
    pub start_offset_bytes: Option<u64>,
    /// Members that were written at all.
    pub members: u64,
    /// Members of each stripe that hold parity (or, of a mirror, the further copies).
    pub parity_members: u64,
    /// Writes during which some member was read: those of partial stripes.
    pub writes_with_reads: u64,
    /// Bytes that members were read for the sake of writes.
    pub caused_read_bytes: u64,
    /// The reasons, one sentence each.
    pub evidence: Vec<String>,
}

/// Reads the counters of a sweep of writes; `None` where no member was written. Reads tell nothing of parity and are not
/// taken: give an `op` of [`Op::Write`] only.
#[must_use]
pub fn infer_from_members(op: Op, samples: &[MemberSample]) -> Option<MemberLayout> {
    if op != Op::Write {
        return None;
    }
    let width = samples.iter().map(|sample| sample.members.len()).max()?;
    let is_used =
        |member: &usize| samples.iter().any(|s| s.members.get(*member).is_some_and(|io| io.writes > 0));
    let members = (0..width).filter(is_used).count() as u64;
    let least = samples.iter().map(write_count).filter(|&count| count > 0).min()?;
    let parity_members = least - 1;
    let reading: Vec<&MemberSample> = samples.iter().filter(|sample| read_count(sample) > 0).collect();
    let mut layout = MemberLayout {
        chunk_bytes: None,
        stripe_bytes: None,
        start_offset_bytes: None,
        members,
        parity_members,
        writes_with_reads: reading.len() as u64,
        caused_read_bytes: reading.iter().flat_map(|s| &s.members).map(|io| io.read_bytes).sum(),
        evidence: vec![format!("the smallest writes reach {least} of {members} members")],
    };
    if members <= least {
        layout.evidence.push("every write reaches all members: copies, and no stripe".to_owned());
        return Some(layout);
    }
    let Some(chunk_bytes) = chunk(samples, least) else {
        layout.evidence.push("no chunk explains which writes reach more members".to_owned());
        return Some(layout);
    };
    layout.chunk_bytes = Some(chunk_bytes);
    let data = members - parity_members;
    if reading.is_empty() {
        layout.evidence.push("no write made a member read: there is no parity".to_owned());
        layout.stripe_bytes = (parity_members == 0).then_some(chunk_bytes * data);
        return Some(layout);
    }
    if let Some(start_bytes) = start(samples, chunk_bytes, data) {
        layout.stripe_bytes = Some(chunk_bytes * data);
        layout.start_offset_bytes = Some(start_bytes);
        layout.evidence.push(format!(
            "writes of whole stripes of {} make no member read, and all others do",
            exact(chunk_bytes * data)
        ));
    } else if few(samples.len() - reading.len(), samples.len())
        && !samples.iter().any(|sample| is_whole_from_the_begin(sample, chunk_bytes * data))
    {
        layout.stripe_bytes = Some(chunk_bytes * data);
        layout.evidence.push(format!(
            "every write made a member read, so none was of full stripes; {data} members beside those with parity make one of {}",
            exact(chunk_bytes * data)
        ));
    } else {
        layout.evidence.push(format!("reads do not follow stripes of {data} chunks"));
    }
    Some(layout)
}

/// Whether it is a write of full stripes of an array whose first one begins with the target, as nearly all do.
fn is_whole_from_the_begin(sample: &MemberSample, stripe_bytes: u64) -> bool {
    sample.offset_bytes.is_multiple_of(stripe_bytes) && sample.bytes.is_multiple_of(stripe_bytes)
}

fn write_count(sample: &MemberSample) -> u64 {
    sample.members.iter().map(|io| io.writes).sum()
}

fn read_count(sample: &MemberSample) -> u64 {
    sample.members.iter().map(|io| io.reads).sum()
}

fn probe(sample: &MemberSample) -> Probe {
    Probe { offset_bytes: sample.offset_bytes, bytes: sample.bytes }
}

/// The chunk whose boundaries lie within the writes that took more than the least number of members' writes, and within
/// no other: the one with the fewest contradictions, and of several such the largest, whose multiples were all crossed.
fn chunk(samples: &[MemberSample], least: u64) -> Option<u64> {
    let crossings = samples.iter().filter(|sample| write_count(sample) > least).count();
    if crossings == 0 || crossings == samples.len() {
        return None;
    }
    let contradictions = |chunk_bytes: u64| {
        let contradicts = |sample: &&MemberSample| {
            let probe = probe(sample);
            let crosses = probe.offset_bytes / chunk_bytes != (probe.end_bytes() - 1) / chunk_bytes;
            crosses != (write_count(sample) > least)
        };
        samples.iter().filter(contradicts).count()
    };
    let tried = ODD_PARTS.flat_map(|half| (12..25).map(move |power| (2 * half + 1) << power));
    let best = tried
        .filter(|bytes| *bytes <= LARGEST_CHUNK_BYTES)
        .map(|bytes| (contradictions(bytes), bytes))
        .min_by_key(|&(count, bytes)| (count, std::cmp::Reverse(bytes)));
    let fits =
        |count: usize| few(count, samples.len()) && count as f64 <= DISTURBED_CROSSINGS * crossings as f64;
    best.filter(|&(count, _)| fits(count)).map(|(_, bytes)| bytes)
}

/// Where stripes of `data` chunks begin, if writes of whole stripes and only they make no member read: the place with the
/// fewest contradictions. Whole stripes are few among many, so they are counted by themselves, too.
fn start(samples: &[MemberSample], chunk_bytes: u64, data: u64) -> Option<u64> {
    let stripe_bytes = chunk_bytes * data;
    let contradictions = |start: u64| {
        let is_whole = |sample: &&MemberSample| {
            let begin = sample.offset_bytes + stripe_bytes - start;
            begin.is_multiple_of(stripe_bytes) && sample.bytes.is_multiple_of(stripe_bytes)
        };
        let whole = samples.iter().filter(is_whole).count();
        let of_whole = samples.iter().filter(is_whole).filter(|sample| read_count(sample) > 0).count();
        let of_parts = samples.iter().filter(|sample| !is_whole(sample) && read_count(sample) == 0).count();
        (whole, of_whole, of_parts)
    };
    let best = (0..data)
        .map(|chunks| (contradictions(chunks * chunk_bytes), chunks * chunk_bytes))
        .filter(|((whole, ..), _)| *whole > 0)
        .min_by_key(|&((_, of_whole, of_parts), start)| (of_whole + of_parts, start))?;
    let ((whole, of_whole, of_parts), start) = best;
    let fits = of_whole as f64 <= DISTURBED_CROSSINGS * whole as f64 && few(of_parts, samples.len());
    fits.then_some(start)
}

fn few(count: usize, of: usize) -> bool {
    count as f64 <= DISTURBED * of as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    const K: u64 = 1024;

    fn sample(offset_bytes: u64, bytes: u64, writes: &[u64], reads: &[u64]) -> MemberSample {
        let io = |(&writes, &reads): (&u64, &u64)| MemberIo {
            reads,
            read_bytes: reads * 4 * K,
            writes,
            write_bytes: writes * 4 * K,
        };
        MemberSample { offset_bytes, bytes, members: writes.iter().zip(reads).map(io).collect() }
    }

    #[test]
    fn mirrors_are_no_stripe() {
        let samples = [sample(0, 4 * K, &[1, 1], &[0, 0]), sample(60 * K, 8 * K, &[1, 1], &[0, 0])];
        let layout = infer_from_members(Op::Write, &samples).unwrap();
        assert_eq!((layout.chunk_bytes, layout.stripe_bytes, layout.parity_members), (None, None, 1));
    }

    #[test]
    fn nothing_is_made_of_reads_or_of_nothing() {
        assert_eq!(infer_from_members(Op::Write, &[]), None);
        assert_eq!(infer_from_members(Op::Read, &[sample(0, 4 * K, &[1], &[0])]), None);
        assert_eq!(infer_from_members(Op::Write, &[sample(0, 4 * K, &[0, 0], &[1, 0])]), None);
    }

    #[test]
    fn reads_that_follow_no_stripe_leave_it_unnamed() {
        // Three members, one of parity, chunk 64 KiB; but whole stripes were read for as well.
        let mut samples = Vec::new();
        for n in 0..20 {
            let base = n * 128 * K;
            samples.push(sample(base + 4 * K, 4 * K, &[1, 1, 0], &[1, 1, 0]));
            samples.push(sample(base + 60 * K, 8 * K, &[1, 1, 1], &[1, 1, 0]));
            samples.push(sample(base, 128 * K, &[1, 1, 1], &[0, 1, 0]));
        }
        // Nothing decides between the chunks of 64 KiB and less but writes that stay within one.
        samples.push(sample(0, 64 * K, &[1, 1, 0], &[1, 1, 0]));
        let layout = infer_from_members(Op::Write, &samples).unwrap();
        assert_eq!(layout.chunk_bytes, Some(64 * K));
        assert_eq!((layout.stripe_bytes, layout.parity_members), (None, 1));
        assert_eq!(layout.writes_with_reads, 61);
    }
}
