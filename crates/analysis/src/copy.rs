//! What the runs of a copy of `rdsk dd` mean: where the time went, how the runs scatter, and two copies compared run by run. It
//! words nothing.

use crate::metrics;
use rdsk_model::{CellRecord, Copy, CopyRun, IoPath, Op, Record, StableBy};
use rdsk_stats::{Halves, PairedRatio, paired_ratio, rounds_interval, stddev};

/// Where the time of a copy went, in nanoseconds, as means over its runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parts {
    /// Opening both ends, before dd's clock starts.
    pub open_ns: f64,
    /// From the start until both ends were closed: dd's time.
    pub total_ns: f64,
    /// Of it, in the calls that moved data, and in dd; `None` if that is not known of every run.
    pub inside: Option<Inside>,
    /// In the flush that the operands ask for.
    pub flush_ns: f64,
    /// In the close of both ends.
    pub close_ns: f64,
    /// From the close until the data was stable; `None` if that is not known of every run.
    pub later_ns: Option<f64>,
    /// Who made it stable in the last run.
    pub stable_by: StableBy,
}

/// What a copy did until its last write returned, in nanoseconds. With the flush and the close it adds up to dd's time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Inside {
    /// In read(2).
    pub read_ns: f64,
    /// In write(2).
    pub write_ns: f64,
    /// In dd itself.
    pub other_ns: f64,
}

impl Inside {
    /// No more than there was: calls and the whole may be timed by two clocks.
    fn within(left_ns: f64, read_ns: f64, write_ns: f64) -> Self {
        let left_ns = left_ns.max(0.0);
        let calls_ns = read_ns + write_ns;
        let share = if calls_ns > left_ns { left_ns / calls_ns } else { 1.0 };
        let (read_ns, write_ns) = (read_ns * share, write_ns * share);
        Self { read_ns, write_ns, other_ns: (left_ns - read_ns - write_ns).max(0.0) }
    }
}

/// How many times as long as each later run the first one takes at least to be another thing than they, and by how many times what
/// they differ among themselves.
const APART: f64 = 1.5;
/// The same where only two later ones show how much runs differ: one of three runs is the slowest by chance often enough.
const APART_OF_THREE: f64 = 4.0;
const APART_SPREADS: f64 = 3.0;
/// A first run within memory is longer by some 100 µs: page tables, and a processor that was idle.
const APART_NS: f64 = 10_000_000.0;
/// From this share of its bytes on, an input counts as cached.
const CACHED_SHARE: f64 = 0.5;

/// A first run that is another thing than the later ones.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FirstApart<'a> {
    /// It.
    pub first: &'a CopyRun,
    /// The mean time of the later runs, in nanoseconds.
    pub later_ns: f64,
    /// The end whose calls took most of what it took longer; `None` where that is not known.
    pub longer_at: Option<Op>,
}

impl FirstApart<'_> {
    /// How many times as long it took.
    pub fn factor(&self) -> f64 {
        self.first.to_close_ns as f64 / self.later_ns.max(1.0)
    }
}

/// The first of at least three whole runs, if it took clearly longer than all of the others, which are alike.
pub fn first_apart(copy: &Copy) -> Option<FirstApart<'_>> {
    let complete = complete(copy);
    let (&first, later) =
        complete.split_first().filter(|(first, later)| first.round == 0 && later.len() >= 2)?;
    let times: Vec<f64> = later.iter().map(|run| run.to_close_ns as f64).collect();
    let (least, most) =
        times.iter().fold((f64::INFINITY, 0.0_f64), |(least, most), &ns| (least.min(ns), most.max(ns)));
    let first_ns = first.to_close_ns as f64;
    let least_factor = if later.len() > 2 { APART } else { APART_OF_THREE };
    let is_apart = first_ns >= least_factor * most
        && first_ns - most >= f64::max(APART_SPREADS * (most - least), APART_NS);
    let longer = |part: &dyn Fn(&CopyRun) -> Option<u64>| {
        let of_later: Option<Vec<f64>> = later.iter().map(|run| Some(part(run)? as f64)).collect();
        Some(part(first)? as f64 - mean(&of_later?))
    };
    let at_close = |run: &CopyRun| run.flush_ns + run.to_close_ns.saturating_sub(run.to_return_ns);
    let reads = longer(&|run| run.read_ns);
    let writes = longer(&|run| Some(run.write_ns? + at_close(run)));
    let half_ns = (first_ns - mean(&times)) / 2.0;
    let longer_at = match (reads, writes) {
        (Some(reads), _) if reads > half_ns => Some(Op::Read),
        (_, Some(writes)) if writes > half_ns => Some(Op::Write),
        _ => None,
    };
    is_apart.then(|| FirstApart { first, later_ns: mean(&times), longer_at })
}

fn complete(copy: &Copy) -> Vec<&CopyRun> {
    copy.runs.iter().filter(|run| run.is_complete).collect()
}

/// The runs that figures are made of: those that were done, without a first one that is another thing; and where none was, what
/// there is.
pub fn counted(copy: &Copy) -> Vec<&CopyRun> {
    let complete = complete(copy);
    match first_apart(copy) {
        Some(_) => complete[1..].to_vec(),
        None if complete.is_empty() => copy.runs.iter().collect(),
        None => complete,
    }
}

/// Whether the input of later runs was in the page cache, where the first one or the one before had brought it. `cell` is that of
/// the input.
pub fn is_warmed(copy: &Copy, cell: &CellRecord) -> bool {
    let runs = copy.runs.len().max(1) as u64;
    let before = cell.evidence.page_cache.and_then(|cache| cache.before.cached_bytes);
    // Summed over the runs.
    let of_later = before
        .zip(cell.result.bytes)
        .map(|(before, bytes)| metrics::ratio(before, (bytes / runs).max(1) * (runs - 1).max(1)));
    cell.workload.path == IoPath::Buffered && of_later.is_some_and(|share| share >= CACHED_SHARE)
}

/// The parts of a copy; `None` without a run.
pub fn parts(copy: &Copy) -> Option<Parts> {
    let counted = counted(copy);
    let last = counted.last()?;
    let mean_of =
        |part: fn(&CopyRun) -> u64| mean(&counted.iter().map(|run| part(run) as f64).collect::<Vec<f64>>());
    let mean_if_told = |part: fn(&CopyRun) -> Option<u64>| {
        let times: Option<Vec<f64>> = counted.iter().map(|run| Some(part(run)? as f64)).collect();
        times.map(|times| mean(&times))
    };
    let total_ns = mean_of(|run| run.to_close_ns);
    let (flush_ns, close_ns) =
        (mean_of(|run| run.flush_ns), mean_of(|run| run.to_close_ns.saturating_sub(run.to_return_ns)));
    Some(Parts {
        open_ns: mean_of(|run| run.open_ns),
        total_ns,
        inside: mean_if_told(|run| run.read_ns)
            .zip(mean_if_told(|run| run.write_ns))
            .map(|(read_ns, write_ns)| Inside::within(total_ns - flush_ns - close_ns, read_ns, write_ns)),
        flush_ns,
        close_ns,
        later_ns: mean_if_told(|run| Some(run.to_stable_ns?.saturating_sub(run.to_close_ns))),
        stable_by: last.stable_by,
    })
}

/// The times of several runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Runs {
    /// How many.
    pub count: usize,
    /// Their mean in nanoseconds.
    pub mean_ns: f64,
    /// Half the width of the 95 % interval of the mean, relative to it; `None` for a single run.
    pub half_width: Option<f64>,
    /// The standard deviation in nanoseconds; `None` for a single run.
    pub sigma_ns: Option<f64>,
    /// The shortest.
    pub min_ns: f64,
    /// The longest.
    pub max_ns: f64,
}

/// What the time of a run is taken until.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// dd's own time.
    Done,
    /// The time until the data is stable.
    Stable,
}

impl Until {
    fn time_ns(self, run: &CopyRun) -> Option<f64> {
        match self {
            Self::Done => Some(run.to_close_ns as f64),
            Self::Stable => run.to_stable_ns.map(|ns| ns as f64),
        }
    }
}

/// The times of the runs of a copy; `None` unless they are known of every run.
pub fn times(copy: &Copy, until: Until) -> Option<Runs> {
    let times_ns: Option<Vec<f64>> = counted(copy).into_iter().map(|run| until.time_ns(run)).collect();
    let times_ns = &times_ns?[..];
    let timed: Vec<(f64, f64)> =
        counted(copy).into_iter().zip(times_ns).map(|(run, ns)| (begin(run), *ns)).collect();
    let interval = rounds_interval(&timed, &Halves::default()).filter(|interval| interval.mean > 0.0);
    Some(Runs {
        count: times_ns.len(),
        mean_ns: if times_ns.is_empty() { return None } else { mean(times_ns) },
        half_width: interval.map(|interval| interval.half_width_rel()),
        sigma_ns: stddev(times_ns).filter(|_| times_ns.len() > 1),
        min_ns: times_ns.iter().copied().reduce(f64::min)?,
        max_ns: times_ns.iter().copied().reduce(f64::max)?,
    })
}

/// How many times as fast the second copy was as the first, over the pairs of their runs; `None` if a time is not known.
pub fn speed_up(first: &Copy, second: &Copy, until: Until) -> Option<PairedRatio> {
    let has_apart = first_apart(first).is_some() || first_apart(second).is_some();
    let pairs = first.runs.iter().zip(&second.runs).filter(|(a, b)| a.is_complete && b.is_complete);
    let pairs = pairs.filter(|(a, b)| !(has_apart && (a.round == 0 || b.round == 0)));
    let pairs: Option<Vec<(f64, f64, f64)>> =
        pairs.map(|(a, b)| Some((begin(a), until.time_ns(a)?, until.time_ns(b)?))).collect();
    paired_ratio(&pairs?)
}

/// The cell of one end of a copy; `None` if that end is no storage.
pub fn cell<'a>(record: &'a Record, copy: &Copy, op: Op) -> Option<&'a CellRecord> {
    let line = record.copies.iter().position(|other| other == copy)?;
    let id = match record.copies.len() {
        1 => format!("dd/{op}"),
        _ => format!("dd/{}/{op}", line + 1),
    };
    record.cell(&id)
}

fn begin(run: &CopyRun) -> f64 {
    run.start_ns as f64
}

fn mean(values: &[f64]) -> f64 {
    rdsk_stats::mean(values).unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::copies;

    #[test]
    fn the_parts_add_up_to_the_time_of_dd() {
        let mut copy = copies::to_file(&[1000, 1000]);
        let sum = |parts: &Parts| {
            let inside = parts.inside.unwrap();
            inside.read_ns + inside.write_ns + parts.flush_ns + parts.close_ns + inside.other_ns
        };
        let normal = parts(&copy).unwrap();
        assert!((sum(&normal) - normal.total_ns).abs() < 1e-6, "{normal:?}");
        assert_eq!(normal.later_ns, Some(7000.0));
        for run in &mut copy.runs {
            (run.read_ns, run.write_ns) = (Some(500), Some(1500));
        }
        let longer = parts(&copy).unwrap();
        assert!((sum(&longer) - longer.total_ns).abs() < 1e-6, "{longer:?}");
        assert!(longer.inside.is_some_and(|inside| inside.write_ns == 3.0 * inside.read_ns), "{longer:?}");
        copy.runs[1].write_ns = None;
        assert_eq!(parts(&copy).unwrap().inside, None, "what is not known of a run is not known of all");
        assert_eq!(super::parts(&copies::to_file(&[])), None);
    }

    #[test]
    fn a_single_run_has_no_interval() {
        let once = times(&copies::to_file(&[1000]), Until::Done).unwrap();
        assert_eq!((once.count, once.half_width, once.sigma_ns), (1, None, None));
        let three = times(&copies::to_file(&[900, 1000, 1100]), Until::Done).unwrap();
        assert_eq!((three.mean_ns, three.min_ns, three.max_ns), (1000.0, 900.0, 1100.0));
        assert!(three.half_width.is_some_and(|half| half > 0.1 && half < 0.5), "{three:?}");
        let mut unknown = copies::to_file(&[1000, 1000]);
        assert!(times(&unknown, Until::Stable).is_some());
        unknown.runs[1].to_stable_ns = None;
        assert_eq!(times(&unknown, Until::Stable), None);
    }

    #[test]
    fn a_run_that_was_cut_short_counts_only_where_it_is_all_there_is() {
        let mut copy = copies::to_file(&[1000, 1000, 300]);
        (copy.runs[2].is_complete, copy.runs[2].to_stable_ns) = (false, None);
        let runs = times(&copy, Until::Done).unwrap();
        assert_eq!((runs.count, runs.mean_ns), (2, 1000.0));
        assert!(
            times(&copy, Until::Stable).is_some()
                && parts(&copy).is_some_and(|parts| parts.later_ns.is_some())
        );
        assert_eq!(speed_up(&copy, &copy, Until::Done).unwrap().pairs, 2);
        copy.runs.drain(..2);
        assert_eq!(parts(&copy).unwrap().total_ns, 300.0);
    }

    /// The case of the issue: 8.51, 0.42, 0.42 s.
    #[test]
    fn a_first_run_that_is_another_thing_counts_by_itself() {
        let copy = copies::to_file(&[8_510_000_000, 420_000_000, 423_000_000]);
        let apart = first_apart(&copy).unwrap();
        assert_eq!((apart.first.to_close_ns, apart.later_ns), (8_510_000_000, 421_500_000.0));
        let runs = times(&copy, Until::Done).unwrap();
        assert_eq!((runs.count, runs.mean_ns, runs.max_ns), (2, 421_500_000.0, 423_000_000.0));
        assert_eq!(parts(&copy).unwrap().total_ns, 421_500_000.0);
        assert_eq!(speed_up(&copy, &copy, Until::Done).unwrap().pairs, 2);
        for alike in [
            &[1_000_000_000, 990_000_000, 1_010_000_000][..],
            &[1_200_000_000, 1_000_000_000, 1_010_000_000],
            &[2_000_000_000, 1_000_000_000, 1_400_000_000],
            // Seen on a busy machine.
            &[408_768_000, 162_337_000, 135_983_000],
            &[3_000_000_000, 1_000_000_000, 1_010_000_000],
            &[2_000_000_000, 1_000_000_000],
            &[900_000_000, 2_000_000_000, 2_000_000_000],
            // Within memory.
            &[382_000, 248_000, 234_000, 244_000],
        ] {
            assert_eq!(first_apart(&copies::to_file(alike)), None, "{alike:?}");
        }
        assert!(
            first_apart(&copies::to_file(&[3_000_000_000, 1_000_000_000, 1_010_000_000, 990_000_000]))
                .is_some()
        );
    }

    #[test]
    fn the_end_that_took_longer_is_known() {
        let mut copy = copies::to_file(&[80_000_000, 4_000_000, 4_000_000]);
        for (index, run) in copy.runs.iter_mut().enumerate() {
            (run.read_ns, run.write_ns) =
                (Some(if index == 0 { 77_000_000 } else { 1_000_000 }), Some(1_000_000));
        }
        assert_eq!(first_apart(&copy).unwrap().longer_at, Some(Op::Read));
        (copy.runs[0].read_ns, copy.runs[0].write_ns) = (Some(1_000_000), Some(77_000_000));
        assert_eq!(first_apart(&copy).unwrap().longer_at, Some(Op::Write));
    }

    #[test]
    fn copies_are_compared_pair_by_pair() {
        let slow = copies::to_file(&[2000, 4000, 3000, 2200]);
        let quick = copies::to_file(&[1000, 2000, 1500, 1100]);
        let ratio = speed_up(&slow, &quick, Until::Done).unwrap();
        assert!((ratio.ratio - 2.0).abs() < 1e-9, "{ratio:?}");
        let (low, high) = ratio.interval.unwrap();
        assert!(low > 1.99 && high < 2.01, "the drift that both share cancels: {ratio:?}");
    }
}
