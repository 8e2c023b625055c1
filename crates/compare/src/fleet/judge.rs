//! Which disks are outliers. A disk is compared with those of its model and firmware, so that a slow model has none; its evidence is
//! either that of one figure or that of the slowest quarter of its rates, and is corrected for both, for its figures, and for all disks.

use super::tail::Tail;
use super::{ComparedWith, Disk, Figure, Fleet, Gathering, Group, MIN_ALIKE, MIN_FACTOR, Outlier, Series};
use crate::ALPHA;
use crate::figure::Metric;
use rdsk_stats::{holm, mad, mean, median, quantile_sorted};
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashSet};

/// Turns a median absolute deviation into a standard deviation of a normal distribution.
const OF_MAD: f64 = 1.4826;
/// Disks that are alike differ by this much at least, as a logarithm; less is not resolved.
const LEAST_SPREAD: f64 = 0.005;
/// One figure, or several together: two ways to be an outlier.
const WAYS: f64 = 2.0;
/// The part of the rates that is looked at together.
const QUARTER: usize = 4;
/// Means of scores differ by this much at least from disk to disk.
const LEAST_SCORES: f64 = 0.1;
/// What stands outside of the spread of a group on either side.
const OUTSIDE: f64 = 0.05;

/// A figure beside the others.
#[derive(Clone, Copy, Debug)]
struct Standing {
    figure: Figure,
    median: f64,
    /// Logarithm of how many times slower than the median.
    slower: f64,
    /// The same in standard deviations of the others.
    score: f64,
}

/// What is known of a disk.
struct Judged {
    disk: usize,
    standings: Vec<Standing>,
    p_value: f64,
}

impl Gathering {
    /// Judges all disks.
    pub fn judge(self) -> Fleet {
        let groups = grouped(&self.disks);
        let mut judged = Vec::new();
        for (key, places, compared_with) in &groups {
            let pool = match compared_with {
                ComparedWith::None => continue,
                ComparedWith::Firmware => places.clone(),
                ComparedWith::Model => of_model(&self.disks, key.0.as_deref()),
            };
            let own: HashSet<usize> = places.iter().copied().collect();
            let of_pool = judge_pool(&self.disks, &self.series, &pool);
            judged.extend(of_pool.into_iter().filter(|judgement| own.contains(&judgement.disk)));
        }
        let adjusted = holm(&judged.iter().map(|judgement| judgement.p_value).collect::<Vec<_>>());
        let mut outliers: Vec<Outlier> =
            judged.iter().zip(adjusted).filter_map(|(judgement, p)| outlier(judgement, p)).collect();
        outliers.sort_by(|left, right| right.factor.total_cmp(&left.factor));
        let reference = reference(&self.disks, &self.series);
        let hosts = self.disks.iter().map(|disk| &disk.host).collect::<HashSet<_>>().len();
        Fleet {
            groups: groups
                .into_iter()
                .map(|group| described(&self.disks, group, reference, &outliers))
                .collect(),
            reference,
            outliers,
            compared: judged.len(),
            hosts,
            series: self.series,
            replaced: self.replaced,
            without_figures: self.without_figures,
            disks: self.disks,
        }
    }
}

/// Model and firmware.
type Key = (Option<String>, Option<String>);

fn grouped(disks: &[Disk]) -> Vec<(Key, Vec<usize>, ComparedWith)> {
    let mut groups: BTreeMap<Key, Vec<usize>> = BTreeMap::new();
    for (place, disk) in disks.iter().enumerate() {
        groups.entry((disk.model.clone(), disk.firmware.clone())).or_default().push(place);
    }
    let with = |key: &Key, places: &[usize]| {
        if places.len() >= MIN_ALIKE {
            ComparedWith::Firmware
        } else if of_model(disks, key.0.as_deref()).len() >= MIN_ALIKE {
            ComparedWith::Model
        } else {
            ComparedWith::None
        }
    };
    let mut groups: Vec<_> = groups
        .into_iter()
        .map(|(key, places)| {
            let with = with(&key, &places);
            (key, places, with)
        })
        .collect();
    groups.sort_by_key(|(_, places, _)| Reverse(places.len()));
    groups
}

fn of_model(disks: &[Disk], model: Option<&str>) -> Vec<usize> {
    (0..disks.len()).filter(|&place| disks[place].model.as_deref() == model).collect()
}

fn judge_pool(disks: &[Disk], series: &[Series], pool: &[usize]) -> Vec<Judged> {
    let standings = standings(disks, series, pool);
    // Each kind of figure has a tail of its own: a p99 wanders more than a rate.
    let tail = |metric: Metric| {
        let of_metric =
            standings.iter().flatten().filter(|standing| series[standing.figure.series].metric == metric);
        Tail::of(of_metric.map(|standing| standing.score).collect(), pool.len())
    };
    let tails = [(Metric::Rate, tail(Metric::Rate)), (Metric::P99, tail(Metric::P99))];
    let chance = |standing: &Standing| {
        let metric = series[standing.figure.series].metric;
        let tail = tails.iter().find(|(tail_metric, _)| *tail_metric == metric).and_then(|(_, tail)| *tail);
        if is_much(standing.slower) { tail.map_or(1.0, |tail| tail.chance(standing.score)) } else { 1.0 }
    };
    let several = several(&standings, series);
    (pool.iter().zip(standings).zip(several))
        .filter(|((_, standings), _)| !standings.is_empty())
        .map(|((&disk, standings), several)| {
            let best = standings.iter().map(chance).fold(1.0, f64::min) * standings.len() as f64;
            Judged { disk, p_value: (WAYS * best.min(several)).min(1.0), standings }
        })
        .collect()
}

/// Where the figures of each disk of a pool stand among those of the others.
fn standings(disks: &[Disk], series: &[Series], pool: &[usize]) -> Vec<Vec<Standing>> {
    let mut logs: Vec<Vec<f64>> = vec![Vec::new(); series.len()];
    let figures = || pool.iter().map(|&place| &disks[place].figures);
    for figure in figures().flatten() {
        logs[figure.series].push(figure.value.ln());
    }
    let distributions: Vec<Option<(f64, f64)>> = logs
        .iter()
        .map(|logs| {
            let spread = OF_MAD * mad(logs)?;
            median(logs).filter(|_| logs.len() >= MIN_ALIKE).map(|centre| (centre, spread.max(LEAST_SPREAD)))
        })
        .collect();
    let standing = |figure: &Figure| {
        let (centre, spread) = distributions[figure.series]?;
        let above = figure.value.ln() - centre;
        let slower = if series[figure.series].metric.grows_with_speed() { -above } else { above };
        Some(Standing { figure: *figure, median: centre.exp(), slower, score: slower / spread })
    };
    figures().map(|figures| figures.iter().filter_map(standing).collect()).collect()
}

/// The chance of the slowest quarter of the rates of each disk: a fault that shows in some tests only is seen, too.
fn several(standings: &[Vec<Standing>], series: &[Series]) -> Vec<f64> {
    let slowest = |standings: &Vec<Standing>| {
        let rates = standings.iter().filter(|standing| series[standing.figure.series].metric == Metric::Rate);
        let mut rates: Vec<&Standing> = rates.collect();
        rates.sort_unstable_by(|left, right| right.score.total_cmp(&left.score));
        rates.truncate(rates.len().div_ceil(QUARTER));
        let mean_of = |what: fn(&Standing) -> f64| {
            mean(&rates.iter().map(|standing| what(standing)).collect::<Vec<_>>())
        };
        mean_of(|standing| standing.score).zip(mean_of(|standing| standing.slower))
    };
    let slowest: Vec<Option<(f64, f64)>> = standings.iter().map(slowest).collect();
    let scores: Vec<f64> = slowest.iter().flatten().map(|(score, _)| *score).collect();
    let centre = median(&scores).unwrap_or(0.0);
    let spread = (OF_MAD * mad(&scores).unwrap_or(0.0)).max(LEAST_SCORES);
    let standard = |score: f64| (score - centre) / spread;
    let tail = Tail::of(scores.iter().map(|&score| standard(score)).collect(), scores.len());
    let chance = |of_disk: Option<(f64, f64)>| {
        let much = of_disk.filter(|&(_, slower)| is_much(slower));
        much.zip(tail).map_or(1.0, |((score, _), tail)| tail.chance(standard(score)))
    };
    slowest.into_iter().map(chance).collect()
}

fn is_much(slower: f64) -> bool {
    slower >= MIN_FACTOR.ln()
}

fn outlier(judged: &Judged, p_adjusted: f64) -> Option<Outlier> {
    if p_adjusted >= ALPHA {
        return None;
    }
    let slower = || judged.standings.iter().filter(|standing| is_much(standing.slower));
    let worst = slower().max_by(|left, right| left.score.total_cmp(&right.score))?;
    Some(Outlier {
        disk: judged.disk,
        worst: worst.figure,
        median: worst.median,
        factor: worst.slower.exp(),
        slower: slower().count(),
        compared: judged.standings.len(),
        p_adjusted,
    })
}

/// The rate that most disks have; the first of several.
fn reference(disks: &[Disk], series: &[Series]) -> Option<usize> {
    let mut counts = vec![0_usize; series.len()];
    for figure in disks.iter().flat_map(|disk| &disk.figures) {
        counts[figure.series] += 1;
    }
    let rates = (0..series.len()).filter(|&place| series[place].metric == Metric::Rate);
    rates.max_by_key(|&place| (counts[place], Reverse(place)))
}

fn described(
    disks: &[Disk],
    ((model, firmware), places, compared_with): (Key, Vec<usize>, ComparedWith),
    reference: Option<usize>,
    outliers: &[Outlier],
) -> Group {
    let figures = places.iter().flat_map(|&place| &disks[place].figures);
    let mut values: Vec<f64> =
        figures.filter(|figure| Some(figure.series) == reference).map(|figure| figure.value).collect();
    values.sort_unstable_by(f64::total_cmp);
    let at = |share: f64| quantile_sorted(&values, share);
    let rate =
        at(0.5).zip(at(OUTSIDE)).zip(at(1.0 - OUTSIDE)).map(|((median, low), high)| (median, low, high));
    Group {
        model,
        firmware,
        disks: places.len(),
        rate,
        outliers: outliers.iter().filter(|outlier| places.contains(&outlier.disk)).count(),
        compared_with,
    }
}
