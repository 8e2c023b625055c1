//! `dontcache-saves`: how much less of the page cache I/O with `RWF_DONTCACHE` leaves filled than buffered I/O, and what that
//! costs or gains in time beside the other two paths.

use super::path_cause::cpu_per_mib;
use super::prelude::*;
use rdsk_analysis::metrics::{self, LeftInCache};

pub(super) const RULE: Rule =
    Rule::new("dontcache-saves", Severity::Cause, Needs::Counters, check).shown_on(Experiment::Paths);

/// Bytes fetched per byte read from which some count as fetched again.
const FETCHED_AGAIN: f64 = 1.02;
/// Share of the pages from which they count as kept: a few are dropped late.
const KEPT: f64 = 0.01;

fn check(analysis: &Analysis<'_>) -> Vec<Finding> {
    let comparisons: Vec<&Comparison<'_>> = analysis.comparisons(Kind::DontCache).collect();
    let of_buffered =
        comparisons.iter().filter(|comparison| comparison.base.workload.path == IoPath::Buffered);
    let explained = of_buffered.filter_map(|buffered| {
        let is_of_direct = |comparison: &&&Comparison<'_>| {
            std::ptr::eq(comparison.cell, buffered.cell) && comparison.base.workload.path == IoPath::Direct
        };
        explain(analysis, buffered, comparisons.iter().find(is_of_direct).copied())
    });
    explained.collect()
}

fn explain(
    analysis: &Analysis<'_>,
    buffered: &Comparison<'_>,
    direct: Option<&Comparison<'_>>,
) -> Option<Finding> {
    let cell = buffered.cell;
    let (left, others) = (metrics::left_in_cache(cell)?, metrics::left_in_cache(buffered.base)?);
    let op = cell.workload.op;
    let (share, of_others) = (percent(left.share()), percent(others.share()));
    let title = format!("{op}s: dontcache leaves {share} of its pages cached, buffered {of_others}");
    let bases: Vec<&Comparison<'_>> = [Some(buffered), direct].into_iter().flatten().collect();
    let it_is = if op == Op::Write { "On disk it is" } else { "It is" };
    let rates: Vec<String> =
        bases.iter().map(|comparison| compared(comparison.ratio, comparison.base.workload.path)).collect();
    let text = format!(
        "Each repeat leaves {} in RAM, buffered {}.{}{} {it_is} {}.{}",
        of_repeat(cell, left),
        of_repeat(buffered.base, others),
        kept(analysis, cell, left),
        read_again(cell),
        words::list(&rates),
        processor(cell, &bases)
    );
    let cells = || std::iter::once(cell).chain(bases.iter().map(|comparison| comparison.base));
    Some(
        RULE.finding(title, text)
            .evidence(cells().filter_map(counted))
            .cells(cells())
            .shown_on(cell.experiment),
    )
}

/// Where the pages of writes stayed, what is known of it, as the end of the text. Measured on Linux 6.18 (2026-11-22, 32 MiB in
/// blocks of 4 KiB to 1 MiB, `cachestat(2)` after `fdatasync`): ext4 dropped the pages of writes that allocated blocks, and none
/// of those that replaced some; XFS dropped all of both.
fn kept(analysis: &Analysis<'_>, cell: &CellRecord, left: LeftInCache) -> &'static str {
    let filesystem = metrics::first_target(analysis, cell).and_then(|target| target.filesystem.as_ref());
    let is_ext4 = filesystem.is_some_and(|filesystem| filesystem.kind == "ext4");
    if cell.workload.op == Op::Write && left.share() > KEPT && is_ext4 {
        " Ext4 drops the pages of a write only where it allocates blocks (seen on Linux 6.18), and these replace some."
    } else {
        ""
    }
}

/// How much more than requested the kernel fetched for a read, where that is more than a little: what was dropped too early is
/// fetched again.
fn read_again(cell: &CellRecord) -> String {
    let fetched = metrics::process_bytes(cell, Op::Read).zip(cell.result.bytes.filter(|&bytes| bytes > 0));
    let factor = fetched.map_or(1.0, |(fetched, bytes)| metrics::ratio(fetched, bytes));
    if cell.workload.op == Op::Write || factor < FETCHED_AGAIN {
        return String::new();
    }
    format!(" The kernel fetched {} what was read.", words::times(factor))
}

/// What one repeat leaves in memory, on average.
fn of_repeat(cell: &CellRecord, left: LeftInCache) -> String {
    words::bytes(left.cached_bytes / metrics::visits(cell))
}

/// `1.20 × as fast as buffered (1.10 to 1.30)`.
fn compared(ratio: Result<Ratio, NoRatio>, base: IoPath) -> String {
    let ratio = match ratio {
        Ok(ratio) => ratio,
        Err(NoRatio::Burst) => return format!("not compared with {base}, since a limit lets bursts pass"),
        Err(NoRatio::Sittings) => return format!("not compared with {base}: measured in two runs"),
        Err(_) => return format!("measured too rarely to be compared with {base}"),
    };
    let (low, high) = (words::figure(ratio.low), words::figure(ratio.high));
    match ratio.outcome() {
        Outcome::Equal => format!("as fast as {base} ({low} to {high}x)"),
        Outcome::Unclear => format!("not clearly different from {base} ({low} to {high}x)"),
        Outcome::Faster | Outcome::Slower => {
            format!("{} as fast as {base} ({low} to {high})", words::times(ratio.mean))
        }
    }
}

/// The processor time of all paths, if it is known.
fn processor(cell: &CellRecord, bases: &[&Comparison<'_>]) -> String {
    let micros = |cell: &CellRecord| Some(words::figure(cpu_per_mib(cell)? / 1e3));
    let of_bases: Option<Vec<String>> = bases
        .iter()
        .map(|comparison| Some(format!("{} {}", comparison.base.workload.path, micros(comparison.base)?)))
        .collect();
    let Some((own, others)) = micros(cell).zip(of_bases) else { return String::new() };
    format!(" It takes {own} µs of CPU time per MiB, {}.", words::list(&others))
}

fn counted(cell: &CellRecord) -> Option<String> {
    let LeftInCache { cached_bytes, touched_bytes } = metrics::left_in_cache(cell)?;
    let (cached, touched) = (words::bytes(cached_bytes), words::bytes(touched_bytes));
    let cpu = cpu_per_mib(cell)
        .map_or(String::new(), |ns| format!(", cpu per MiB = {} µs", words::figure(ns / 1e3)));
    let repeats = words::plural(metrics::visits(cell), "repeat");
    Some(cite(cell, "cached afterwards", format_args!("{cached} of {touched} in {repeats}{cpu}")))
}

#[cfg(test)]
mod tests {
    use super::super::prelude::testing::{fires, silent};
    use super::*;
    use crate::fixtures::{self, file, in_rounds, kept_in_memory, record, with};
    use rdsk_model::{CacheState, PageCacheState};

    const MS: u64 = 1_000_000;
    /// What each of the six rounds moves.
    const SPAN: u64 = 16 << 20;

    /// A cell of 96 MiB in six rounds, each of which leaves so many bytes cached.
    fn cell(id: &str, op: Op, path: IoPath, elapsed_ns: u64, cached_bytes: u64) -> CellRecord {
        let cell = with(fixtures::cell(id, op, path, 1 << 20, 96, elapsed_ns), |cell| {
            cell.workload.span_bytes = SPAN;
            if path != IoPath::Direct {
                cell.workload.cache = CacheState::Cold;
            }
        });
        with(in_rounds(cell), |cell| {
            let left = PageCacheState {
                cached_bytes: Some(cached_bytes * metrics::visits(cell)),
                dirty_bytes: Some(0),
            };
            let cache = cell.evidence.page_cache.as_mut().expect("the fixture has one");
            match op {
                Op::Read => cache.after = left,
                Op::Write => cache.stable = Some(left),
            }
        })
    }

    fn reads(dontcache_ns: u64, left_bytes: u64) -> Vec<CellRecord> {
        vec![
            cell("d", Op::Read, IoPath::Direct, 240 * MS, 0),
            cell("b", Op::Read, IoPath::Buffered, 480 * MS, SPAN),
            cell("n", Op::Read, IoPath::DontCache, dontcache_ns, left_bytes),
        ]
    }

    #[test]
    fn says_what_is_saved_and_what_it_costs_beside_both() {
        let finding = fires(RULE, &record(vec![file()], reads(480 * MS, 0)));
        assert_eq!(finding.title, "reads: dontcache leaves 0% of its pages cached, buffered 100%");
        assert_eq!(
            finding.text,
            "Each repeat leaves 0 B in RAM, buffered 16 MiB. It is as fast as buffered (0.98 to 1.02x) and 0.50x as fast as direct (0.50 to 0.50). It takes 300 µs of CPU time per MiB, buffered 300 and direct 150."
        );
        assert_eq!(finding.cells, ["n", "b", "d"]);
        assert_eq!(
            finding.evidence[0],
            "sequential dontcache 1M reads: cached afterwards = 0 B of 96 MiB in 6 repeats, cpu per MiB = 300 µs"
        );
    }

    #[test]
    fn a_path_that_keeps_its_pages_is_not_praised() {
        let finding = fires(RULE, &record(vec![file()], reads(240 * MS, SPAN / 2)));
        assert_eq!(finding.title, "reads: dontcache leaves 50.0% of its pages cached, buffered 100%");
        assert!(finding.text.contains("It is 2.00x as fast as buffered (1.97 to 2.03)"), "{}", finding.text);
    }

    #[test]
    fn writes_count_until_they_are_stable() {
        let buffered = kept_in_memory(
            fixtures::cell("b", Op::Write, IoPath::Buffered, 1 << 20, 96, 480 * MS),
            20 * MS,
            480 * MS,
        );
        let buffered = in_rounds(with(buffered, |cell| cell.workload.span_bytes = SPAN));
        let fast = cell("n", Op::Write, IoPath::DontCache, 240 * MS, 0);
        let finding = fires(RULE, &record(vec![file()], vec![buffered.clone(), fast.clone()]));
        assert!(
            finding.text.starts_with("Each repeat leaves 0 B in RAM, buffered 16 MiB. On disk it is 2.00x"),
            "{}",
            finding.text
        );
        assert!(!finding.text.contains("direct"), "there is no direct cell: {}", finding.text);
        let unknown =
            with(buffered, |cell| cell.evidence.page_cache.as_mut().expect("it has one").stable = None);
        silent(RULE, &record(vec![file()], vec![unknown, fast]));
    }

    #[test]
    fn ext4_keeps_the_pages_of_writes_that_replace_blocks() {
        let writes = |left_bytes| {
            let buffered = cell("b", Op::Write, IoPath::Buffered, 480 * MS, SPAN);
            vec![buffered, cell("n", Op::Write, IoPath::DontCache, 240 * MS, left_bytes)]
        };
        let text = |left_bytes, kind: &str| {
            let mut target = file();
            target.filesystem.as_mut().expect("the fixture has one").kind = kind.into();
            fires(RULE, &record(vec![target], writes(left_bytes))).text
        };
        let says =
            |text: &str| text.contains("Ext4 drops the pages of a write only where it allocates blocks");
        assert!(says(&text(SPAN, "ext4")) && !says(&text(SPAN, "xfs")));
        assert!(!says(&text(SPAN / 200, "ext4")), "what is dropped late");
        assert!(
            !says(&fires(RULE, &record(vec![file()], reads(480 * MS, SPAN))).text),
            "reads are dropped there"
        );
    }

    #[test]
    fn what_was_fetched_twice_is_said() {
        let text = |fetched: u64| {
            let mut cells = reads(480 * MS, 0);
            cells[2].evidence.process.read_bytes = Some(fetched);
            fires(RULE, &record(vec![file()], cells)).text
        };
        assert!(
            text(102 << 20).contains(" The kernel fetched 1.06x what was read. It is"),
            "{}",
            text(102 << 20)
        );
        assert!(!text(97 << 20).contains("fetched"), "a little more is metadata");
    }

    #[test]
    fn is_silent_without_a_buffered_twin() {
        let mut cells = reads(480 * MS, 0);
        cells[1].workload.block_bytes = 4096;
        silent(RULE, &record(vec![file()], cells));
        silent(RULE, &record(vec![file()], reads(480 * MS, 0)[..2].to_vec()));
    }
}
