//! The counters of a cell that was continued: what an earlier run counted and what this one did, as if it had been one run.
//! Sums are added, means weighted by the time that they stand for; what cannot be merge is left out.

use rdsk_model::{DeviceEvidence, Evidence, Iostat, PageCache, PageCacheState, ProcessIo};

/// Both parts together. Where this run did nothing more, the earlier evidence stands alone.
pub(crate) fn merge(then: &Evidence, now: Evidence) -> Evidence {
    if now.device.is_empty() && now.process == ProcessIo::default() {
        return Evidence { extents: now.extents.or(then.extents), ..then.clone() };
    }
    let device = |one: DeviceEvidence| {
        let known = then.device.iter().find(|then| (then.target, &then.name) == (one.target, &one.name));
        known.map_or_else(
            || DeviceEvidence { target: one.target, name: one.name.clone(), ..DeviceEvidence::default() },
            |then| of_device(then, &one),
        )
    };
    Evidence {
        // The weaker of the two: no part may rest on more than it has.
        source: now.source.max(then.source),
        page_cache: now.page_cache.zip(then.page_cache).map(|(now, then)| PageCache {
            before: of_cache(then.before, now.before),
            after: of_cache(then.after, now.after),
        }),
        process: ProcessIo {
            read_bytes: sum(then.process.read_bytes, now.process.read_bytes),
            write_bytes: sum(then.process.write_bytes, now.process.write_bytes),
        },
        device: now.device.into_iter().map(device).collect(),
        ..now
    }
}

fn sum(then: Option<u64>, now: Option<u64>) -> Option<u64> {
    then?.checked_add(now?)
}

fn of_cache(then: PageCacheState, now: PageCacheState) -> PageCacheState {
    PageCacheState {
        cached_bytes: sum(then.cached_bytes, now.cached_bytes),
        dirty_bytes: sum(then.dirty_bytes, now.dirty_bytes),
    }
}

fn of_device(then: &DeviceEvidence, now: &DeviceEvidence) -> DeviceEvidence {
    let weights = then.interval_ns.zip(now.interval_ns).map(|(then, now)| (then as f64, now as f64));
    let mean = |then: Option<f64>, now: Option<f64>| {
        let (weight_then, weight_now) = weights.filter(|(then, now)| then + now > 0.0)?;
        Some((then? * weight_then + now? * weight_now) / (weight_then + weight_now))
    };
    DeviceEvidence {
        target: now.target,
        name: now.name.clone(),
        reads: sum(then.reads, now.reads),
        read_bytes: sum(then.read_bytes, now.read_bytes),
        writes: sum(then.writes, now.writes),
        write_bytes: sum(then.write_bytes, now.write_bytes),
        read_merges: sum(then.read_merges, now.read_merges),
        write_merges: sum(then.write_merges, now.write_merges),
        splits: sum(then.splits, now.splits),
        flushes: sum(then.flushes, now.flushes),
        discards: sum(then.discards, now.discards),
        in_flight_mean: mean(then.in_flight_mean, now.in_flight_mean),
        waiting_mean: mean(then.waiting_mean, now.waiting_mean),
        reads_caused_by_writes: sum(then.reads_caused_by_writes, now.reads_caused_by_writes),
        in_flight_max: then.in_flight_max.max(now.in_flight_max),
        busy_ns: sum(then.busy_ns, now.busy_ns),
        interval_ns: sum(then.interval_ns, now.interval_ns),
        iostat: then
            .iostat
            .zip(now.iostat)
            .zip(weights)
            .map(|((then, now), weights)| row(&then, &now, weights)),
        // Two courses with a pause of unknown length between them are none.
        in_flight_series: Vec::new(),
        bytes_series: Vec::new(),
        series_width_ns: None,
    }
}

/// The row over both intervals: rates weighted by time, times and sizes by the requests that they are means of.
fn row(then: &Iostat, now: &Iostat, (time_then, time_now): (f64, f64)) -> Iostat {
    let weighted = |then: f64, now: f64, weight_then: f64, weight_now: f64| match weight_then + weight_now {
        0.0 => 0.0,
        all => (then * weight_then + now * weight_now) / all,
    };
    let by_time = |of: fn(&Iostat) -> f64| weighted(of(then), of(now), time_then, time_now);
    let by_requests = |of: fn(&Iostat) -> f64, rate: fn(&Iostat) -> f64| {
        weighted(of(then), of(now), rate(then) * time_then, rate(now) * time_now)
    };
    // Merges are counted among what was asked for, not among the requests that were issued.
    let merged =
        |merges: f64, requests: f64| if merges > 0.0 { 100.0 * merges / (merges + requests) } else { 0.0 };
    let mut row = Iostat {
        r_s: by_time(|row| row.r_s),
        rkb_s: by_time(|row| row.rkb_s),
        rrqm_s: by_time(|row| row.rrqm_s),
        r_await: by_requests(|row| row.r_await, |row| row.r_s),
        rareq_sz: by_requests(|row| row.rareq_sz, |row| row.r_s),
        w_s: by_time(|row| row.w_s),
        wkb_s: by_time(|row| row.wkb_s),
        wrqm_s: by_time(|row| row.wrqm_s),
        w_await: by_requests(|row| row.w_await, |row| row.w_s),
        wareq_sz: by_requests(|row| row.wareq_sz, |row| row.w_s),
        d_s: by_time(|row| row.d_s),
        dkb_s: by_time(|row| row.dkb_s),
        drqm_s: by_time(|row| row.drqm_s),
        d_await: by_requests(|row| row.d_await, |row| row.d_s),
        dareq_sz: by_requests(|row| row.dareq_sz, |row| row.d_s),
        f_s: by_time(|row| row.f_s),
        f_await: by_requests(|row| row.f_await, |row| row.f_s),
        aqu_sz: by_time(|row| row.aqu_sz),
        util_percent: by_time(|row| row.util_percent),
        ..Iostat::default()
    };
    row.rrqm_percent = merged(row.rrqm_s, row.r_s);
    row.wrqm_percent = merged(row.wrqm_s, row.w_s);
    row.drqm_percent = merged(row.drqm_s, row.d_s);
    row
}

#[cfg(test)]
mod tests {
    use super::*;
    use rdsk_model::EvidenceSource;

    fn part(reads: u64, interval_ns: u64, r_s: f64, r_await: f64, util_percent: f64) -> Evidence {
        let device = DeviceEvidence {
            name: "sda".into(),
            reads: Some(reads),
            read_bytes: Some(reads * 4096),
            interval_ns: Some(interval_ns),
            iostat: Some(Iostat { r_s, r_await, util_percent, ..Iostat::default() }),
            bytes_series: vec![1, 2],
            ..DeviceEvidence::default()
        };
        let process = ProcessIo { read_bytes: Some(reads * 4096), write_bytes: None };
        Evidence { source: EvidenceSource::Sysfs, device: vec![device], process, ..Evidence::none() }
    }

    #[test]
    fn sums_are_added_and_means_weighted() {
        let (then, now) = (part(100, 1_000, 100.0, 2.0, 50.0), part(300, 3_000, 100.0, 4.0, 90.0));
        let both = merge(&then, now);
        let device = &both.device[0];
        assert_eq!((device.reads, device.read_bytes), (Some(400), Some(400 * 4096)));
        assert_eq!(both.process.read_bytes, Some(400 * 4096));
        let row = device.iostat.unwrap();
        assert!((row.r_s - 100.0).abs() < 1e-9 && (row.r_await - 3.5).abs() < 1e-9, "{row:?}");
        assert!((row.util_percent - 80.0).abs() < 1e-9, "{row:?}");
        assert!(device.bytes_series.is_empty());
    }

    #[test]
    fn what_one_part_does_not_know_nobody_knows() {
        let mut then = part(100, 1_000, 100.0, 2.0, 50.0);
        then.device[0].reads = None;
        assert_eq!(merge(&then, part(1, 1, 1.0, 1.0, 1.0)).device[0].reads, None);
        then.device[0].name = "sdb".into();
        let other = merge(&then, part(1, 1, 1.0, 1.0, 1.0));
        assert_eq!((other.device[0].name.as_str(), other.device[0].read_bytes), ("sda", None));
    }

    #[test]
    fn a_run_that_did_nothing_more_leaves_the_evidence_as_it_was() {
        let then = part(100, 1_000, 100.0, 2.0, 50.0);
        assert_eq!(merge(&then, Evidence::none()), then);
    }
}
