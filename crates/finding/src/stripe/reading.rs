//! A cell of `stripe`, read: the latencies, the members' counters where they were seen, and the kernel's hints, side by side.
//! Derived from a Record when asked for; it puts nothing into words but what its parts do.

use super::{
    Agreement, Answer, MemberLayout, MemberSample, Sample, compare_with_sysfs, infer, infer_from_members,
    judge,
};
use rdsk_model::{CellRecord, Op, Record};

/// Confidence from which on a size is said without a "perhaps".
pub const SURE: f64 = 0.9;

/// Everything that a cell says of the geometry.
#[derive(Clone, Debug, PartialEq)]
pub struct Reading {
    /// What the latencies say; offsets count from the first byte of the cell's span.
    pub answer: Answer,
    /// What the members' counters say; `None` where they were not seen, or for reads.
    pub counted: Option<MemberLayout>,
    /// How the kernel's hints relate to it; `None` where there are none.
    pub hints: Option<(Agreement, String)>,
    /// Requests made.
    pub requests: usize,
    /// Requests planned.
    pub planned: usize,
    /// The smallest request.
    pub smallest_bytes: u64,
    /// The largest request; no full stripe above half of it is seen.
    pub largest_bytes: u64,
}

impl Reading {
    /// Chunk in bytes and how sure it is: counted, or inferred.
    #[must_use]
    pub fn chunk(&self) -> Option<(u64, f64)> {
        let counted = self.counted.as_ref().and_then(|layout| layout.chunk_bytes);
        counted
            .map(|bytes| (bytes, 1.0))
            .or(self.answer.chunk.map(|figure| (figure.bytes, figure.confidence)))
    }

    /// Full stripe in bytes and how sure it is.
    #[must_use]
    pub fn stripe(&self) -> Option<(u64, f64)> {
        let counted = self.counted.as_ref().and_then(|layout| layout.stripe_bytes);
        counted
            .map(|bytes| (bytes, 1.0))
            .or(self.answer.stripe.map(|figure| (figure.bytes, figure.confidence)))
    }

    /// Whether partial stripes cost reads; `None` when it cannot be told.
    #[must_use]
    pub fn parity(&self) -> Option<bool> {
        match &self.counted {
            Some(layout) if layout.stripe_bytes.is_some() => Some(layout.parity_members > 0),
            _ => self.answer.parity,
        }
    }

    /// What to write, and where, as a sentence.
    #[must_use]
    pub fn advice(&self) -> String {
        match self
            .counted
            .as_ref()
            .and_then(|layout| Some((layout, layout.stripe_bytes?, layout.chunk_bytes?)))
        {
            Some((layout, stripe, chunk)) => judge::advice(chunk, stripe, layout.parity_members > 0),
            None => self.answer.advice.text.clone(),
        }
    }

    /// Where the first full stripe begins, from the first byte of the span.
    #[must_use]
    pub fn start_offset_bytes(&self) -> Option<u64> {
        self.counted.as_ref().and_then(|layout| layout.start_offset_bytes).or(self.answer.start_offset_bytes)
    }
}

/// Reads a cell of `stripe`; `None` where none of its requests was made.
#[must_use]
pub fn stripe(record: &Record, cell: &CellRecord) -> Option<Reading> {
    let workload = &cell.workload;
    let points = workload.points.as_ref()?;
    let mut samples = Vec::new();
    let mut counted = Vec::new();
    for run in &cell.result.points {
        for (number, (&point, &latency_ns)) in run.order.iter().zip(&run.latency_ns).enumerate() {
            let (offset, bytes) = points.get(point as usize, workload.block_bytes)?;
            let offset_bytes = offset.saturating_sub(workload.offset_bytes);
            samples.push(Sample { offset_bytes, bytes, latency_ns });
            if let Some(members) = run.members.get(number) {
                counted.push(MemberSample { offset_bytes, bytes, members: members.clone() });
            }
        }
    }
    let (smallest_bytes, largest_bytes) = samples
        .iter()
        .fold((u64::MAX, 0), |(low, high), sample| (low.min(sample.bytes), high.max(sample.bytes)));
    if samples.is_empty() {
        return None;
    }
    let answer = infer(workload.op, &samples);
    let layout = if workload.op == Op::Write { infer_from_members(Op::Write, &counted) } else { None };
    Some(Reading {
        hints: hints(record, cell, &answer),
        answer,
        counted: layout.filter(|layout| layout.chunk_bytes.is_some()),
        requests: samples.len(),
        planned: points.len(),
        smallest_bytes,
        largest_bytes,
    })
}

fn hints(record: &Record, cell: &CellRecord, answer: &Answer) -> Option<(Agreement, String)> {
    let index = cell.workload.targets.first()?;
    let device = record.targets.iter().find(|target| target.index == *index)?.device.as_ref()?;
    let minimum = device.minimum_io_bytes?;
    Some(compare_with_sysfs(answer, minimum, device.optimal_io_bytes.unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stripe::testing::{array, counted};

    fn of(record: &Record) -> Reading {
        stripe(record, &record.cells[0]).unwrap()
    }

    #[test]
    fn counters_go_before_latencies() {
        let seen = of(&counted(64 << 10, 3));
        assert_eq!((seen.chunk(), seen.stripe()), (Some((64 << 10, 1.0)), Some((192 << 10, 1.0))));
        let layout = seen.counted.unwrap();
        assert_eq!((layout.members, layout.parity_members), (4, 1));
        let inferred = of(&array(64 << 10, 3));
        assert_eq!(inferred.counted, None);
        assert_eq!(inferred.stripe().map(|(bytes, _)| bytes), Some(192 << 10));
        assert!(inferred.stripe().unwrap().1 < 1.0);
        assert_eq!((inferred.parity(), inferred.start_offset_bytes()), (Some(true), Some(0)));
    }

    /// An array that does not work as the shapes of the fit suppose (it reads and writes no more rows than it must, and its
    /// parity only follows) may stay unclear, but nothing wrong may be said for sure.
    #[test]
    fn an_array_of_another_make_is_not_misread_for_sure() {
        let mut recovered = 0;
        for chunk_bytes in [16 << 10, 32 << 10, 64 << 10, 128 << 10] {
            for data in 2..=7 {
                let stripe_bytes = chunk_bytes * data;
                let seen = of(&array(chunk_bytes, data));
                let is_surely_not = |figure: Option<(u64, f64)>, bytes: u64| {
                    figure.is_some_and(|(seen, confidence)| seen != bytes && confidence >= SURE)
                };
                assert!(
                    !is_surely_not(seen.chunk(), chunk_bytes),
                    "{chunk_bytes} × {data}: {:?}",
                    seen.chunk()
                );
                if stripe_bytes <= 512 << 10 {
                    assert!(
                        !is_surely_not(seen.stripe(), stripe_bytes),
                        "{chunk_bytes} × {data}: {:?}",
                        seen.stripe()
                    );
                    recovered += usize::from(seen.stripe().is_some_and(|(seen, _)| seen == stripe_bytes));
                }
            }
        }
        assert!(recovered >= 12, "{recovered} of 19 full stripes");
    }

    #[test]
    fn offsets_count_from_the_span() {
        let mut record = array(64 << 10, 3);
        let workload = &mut record.cells[0].workload;
        workload.offset_bytes = 4096 * 3;
        workload.points.as_mut().unwrap().offset_bytes.iter_mut().for_each(|offset| *offset += 4096 * 3);
        assert_eq!(of(&record).stripe().map(|(bytes, _)| bytes), Some(192 << 10));
    }

    #[test]
    fn a_cell_without_requests_says_nothing() {
        let mut record = array(64 << 10, 3);
        record.cells[0].result.points.clear();
        assert!(stripe(&record, &record.cells[0]).is_none());
    }
}
