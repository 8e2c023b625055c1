//! What several ranks of a run show together: how exactly they began, how long all ran at the same time, their clocks, and whether one of
//! them is slower than the others. It draws numbers that `rdsk_ranks` derives.

use crate::page::{Page, Tone};
use rdsk_analysis::words::plural;
use rdsk_model::{RankRun, Record};
use rdsk_ranks::{ClockShown, SlowRank, Starts, Summary, summary};
use rdsk_units::Nanos;

/// Clocks that are shown; of more ranks, those that are farthest off.
const MAX_CLOCKS: usize = 4;

/// Draws what the ranks of a Record show together; nothing for a run of a single process.
pub(crate) fn draw(page: &mut Page, record: &Record) {
    let Some(summary) = summary(record) else {
        if let [RankRun { rank, ranks, host, .. }] = record.ranks.as_slice() {
            page.sentence(
                Tone::Plain,
                "  rank        ",
                format!("{rank} of {ranks}, on {host}: one part of a run"),
            );
        }
        return;
    };
    page.heading(format!(
        "{} RANKS ON {}",
        summary.ranks,
        plural(summary.hosts as u64, "HOST").to_uppercase()
    ));
    let mut fact = |name: &str, text: String| page.sentence(Tone::Plain, format!("  {name:<8}  "), text);
    if let Some(starts) = &summary.starts {
        fact("start", start_text(starts));
        fact("window", window_text(starts));
    }
    if let Some(text) = clocks_text(&summary, &record.ranks) {
        fact("clocks", text);
    }
    if summary.slow.is_empty() && summary.compared > 0 {
        fact("slowest", "no rank is clearly slower than the others".into());
    }
    for (id, slow) in &summary.slow {
        let test = record.cell(id).map_or_else(|| id.clone(), rdsk_analysis::words::test);
        fact("slowest", slow_text(&test, slow, &record.ranks));
    }
}

fn start_text(starts: &Starts) -> String {
    format!(
        "the last rank began {} after the first (median of {}, at most {}; clocks compared to ±{})",
        Nanos(starts.median_ns),
        plural(starts.turns as u64, "repeat"),
        Nanos(starts.most_ns),
        Nanos(starts.uncertainty_ns)
    )
}

fn window_text(starts: &Starts) -> String {
    format!(
        "all ranks ran at the same time for {} of each repeat or more, and rates are of that time; the last was done {} \
         after the first at most",
        rdsk_units::percent(starts.least_share),
        Nanos(starts.ends_most_ns)
    )
}

/// `rank 2 on node2 60 min 00 s ahead of rank 0 ±6.2 µs, drift 400 ns`.
fn clocks_text(summary: &Summary, ranks: &[RankRun]) -> Option<String> {
    let mut clocks: Vec<&ClockShown> = summary.clocks.iter().collect();
    clocks.sort_by_key(|clock| std::cmp::Reverse(clock.before.offset_ns.unsigned_abs()));
    let more = clocks.len().saturating_sub(MAX_CLOCKS);
    let texts: Vec<String> = clocks.iter().take(MAX_CLOCKS).map(|clock| clock_text(clock, ranks)).collect();
    if texts.is_empty() {
        return None;
    }
    let rest = if more > 0 {
        format!("; {} closer to it", plural(more as u64, "other rank"))
    } else {
        String::new()
    };
    Some(format!("against rank 0: {}{rest}", texts.join("; ")))
}

fn clock_text(clock: &ClockShown, ranks: &[RankRun]) -> String {
    let offset_ns = clock.before.offset_ns;
    let side = if offset_ns < 0 { "behind" } else { "ahead" };
    let drift = clock.drift_ns.map_or("drift not known".into(), |drift_ns| {
        let sign = if drift_ns < 0 { "-" } else { "+" };
        let (drift, doubt) = (Nanos(drift_ns.unsigned_abs()), Nanos(clock.drift_uncertainty_ns));
        format!("drift {sign}{drift} ±{doubt}")
    });
    format!(
        "{} {} ±{} {side}, {drift}",
        named(clock.rank, ranks),
        Nanos(offset_ns.unsigned_abs()),
        Nanos(clock.before.uncertainty_ns)
    )
}

/// `rank 2 on node2`.
fn named(rank: u32, ranks: &[RankRun]) -> String {
    let host = ranks.iter().find(|run| run.rank == rank).map(|run| run.host.as_str());
    host.filter(|host| !host.is_empty())
        .map_or_else(|| format!("rank {rank}"), |host| format!("rank {rank} on {host}"))
}

fn slow_text(test: &str, slow: &SlowRank, ranks: &[RankRun]) -> String {
    let targets = ranks.iter().find(|run| run.rank == slow.rank).map(|run| run.targets.join(", "));
    let range = slow.interval.map_or(String::new(), |(low, high)| format!(" ({low:.2}–{high:.2})"));
    let chance = if slow.p_value < 0.001 { "p < 0.001".into() } else { format!("p = {:.3}", slow.p_value) };
    format!(
        "{} ({}) at {:.2}x{range} of the others' median in {test}: {} moments of all ranks in pairs, {chance} corrected \
         for {} ranks",
        named(slow.rank, ranks),
        targets.unwrap_or_default(),
        slow.ratio,
        slow.pairs,
        ranks.len()
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::style::Style;
    use rdsk_finding::fixtures;
    use rdsk_model::{ClockOffset, RankVisit, Status};

    /// Four ranks of which one has this part of the speed of the others.
    #[allow(clippy::cast_possible_truncation, reason = "a megabyte or so")]
    fn ranks(id: &str, speed: f64) -> Vec<RankRun> {
        let rank = |rank: u32| {
            let offset_ns = i64::from(rank) * 1_800_000_000_000;
            let at = |ns: u64| ns.checked_add_signed(offset_ns).expect("a later clock");
            let visit = |turn: u64| {
                let wave = |part: u64| 1.0 + 0.02 * ((turn * 7 + part * 3 + u64::from(rank)) % 5) as f64;
                let factor = if rank == 2 { speed } else { 1.0 };
                RankVisit {
                    cell: id.into(),
                    clock: ClockOffset { offset_ns, uncertainty_ns: 6_200, at_ns: 0 },
                    start_ns: at(turn * 2_000_000_000 + u64::from(rank) * 4_000),
                    end_ns: at(turn * 2_000_000_000 + 1_000_000_000 + u64::from(rank) * 100_000),
                    part_ns: 50_000_000,
                    parts: (0..20).map(|part| (1e6 * factor * wave(part)) as u64).collect(),
                    ..RankVisit::default()
                }
            };
            let clock =
                |more_ns| ClockOffset { offset_ns: offset_ns + more_ns, uncertainty_ns: 6_000, at_ns: 0 };
            RankRun {
                rank,
                ranks: 4,
                host: format!("node{rank}"),
                boot: format!("{rank}"),
                targets: vec!["/mnt/shared/file on sda".into()],
                status: Some(Status::Complete),
                clock_before: Some(clock(0)),
                clock_after: Some(clock(-400)),
                visits: (0..6).map(visit).collect(),
                ..RankRun::default()
            }
        };
        (0..4).map(rank).collect()
    }

    fn drawn(speed: f64) -> String {
        let mut record = fixtures::run();
        record.ranks = ranks(&record.cells[0].id.clone(), speed);
        let mut page = Page::default();
        draw(&mut page, &record);
        page.render(Style { width: 80, ..Style::default() })
    }

    #[test]
    fn several_ranks_are_a_few_lines() {
        insta::assert_snapshot!(drawn(0.8));
        let equal = drawn(1.0);
        assert!(equal.contains("no rank is clearly slower than the others"), "{equal}");
    }

    #[test]
    fn a_run_of_a_single_process_says_nothing_of_ranks() {
        let mut page = Page::default();
        draw(&mut page, &fixtures::run());
        assert_eq!(page.render(Style::default()), "");
    }
}
