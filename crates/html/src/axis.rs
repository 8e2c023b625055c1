//! An axis on paper: the range that holds all values of a plot, the places of its labels, and their words. It draws nothing.

use crate::figure::{Axis, Plot, Point, Scale, Tick};
use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, ValueFormatter};
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::{IntoLogRange as _, LogCoord, Ranged};
use rdsk_report::significant;
use rdsk_units::grouped;
use std::ops::Range;

/// Free space above the highest value, as a share.
const HEADROOM: f64 = 1.06;
/// Free space at both ends of a logarithmic axis: a share of its decades, and the least factor.
const LOG_ROOM: f64 = 0.04;
const LEAST_LOG_ROOM: f64 = 1.15;
/// Decades up to which a logarithmic axis has labels at 2 and 5, too.
const FEW_DECADES: f64 = 2.5;

/// How far apart labels of an axis are at least, over the room that each would have if all were as far apart.
const APART: f64 = 0.65;

/// An axis with its range.
pub(crate) struct Coord {
    kind: Kind,
    /// As in the axis; places of the range that have no such label where they are empty.
    ticks: Vec<Tick>,
    range: Range<f64>,
}

enum Kind {
    Linear(RangedCoordf64),
    Log(LogCoord<f64>),
}

/// Which of the two axes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Along {
    X,
    Y,
}

/// Everything that must fit on an axis.
fn values(plot: &Plot, along: Along) -> Vec<f64> {
    let is_measured = |along: Along| match (plot.y.scale, along) {
        (Scale::Rows, Along::X) => true,
        (Scale::Rows, Along::Y) => false,
        (_, along) => along == Along::Y,
    };
    let of = |point: &Point| match along {
        Along::X => point.x,
        Along::Y => point.y,
    };
    let mut all = Vec::new();
    for point in plot.series.iter().flat_map(|series| &series.points) {
        all.push(of(point));
        if let Some((low, high)) = point.interval.filter(|_| is_measured(along)) {
            all.extend([low, high]);
        }
    }
    all
}

/// The range of an axis: all its values, and a little more.
pub(crate) fn range(plot: &Plot, along: Along) -> Range<f64> {
    let axis = if along == Along::X { &plot.x } else { &plot.y };
    let mut all = values(plot, along);
    all.extend(axis.ticks.iter().map(|tick| tick.at));
    all.retain(|value| value.is_finite());
    let highest = all.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    match axis.scale {
        Scale::Rows => -0.5..(axis.ticks.len() as f64 - 0.5),
        Scale::FromZero if highest > 0.0 => {
            0.0..highest * if along == Along::X && plot.y.scale != Scale::Rows { 1.0 } else { HEADROOM }
        }
        Scale::FromZero => 0.0..1.0,
        Scale::Log | Scale::Share => {
            let positive = || all.iter().copied().filter(|&value| value > 0.0);
            let (low, high) = (positive().fold(f64::INFINITY, f64::min), positive().fold(0.0, f64::max));
            // A line along the edge of the plot would look like its axis.
            let room = (high / low).powf(LOG_ROOM).max(LEAST_LOG_ROOM);
            if high > 0.0 { low / room..high * room } else { 0.1..1.0 }
        }
    }
}

impl Coord {
    /// The axis of a plot over its range.
    pub(crate) fn new(axis: &Axis, range: Range<f64>) -> Self {
        let kind = match axis.scale {
            Scale::Log | Scale::Share => Kind::Log(range.clone().log_scale().into()),
            Scale::FromZero => Kind::Linear(range.clone().into()),
            // The first row is the uppermost.
            Scale::Rows => Kind::Linear((range.end..range.start).into()),
        };
        Self { kind, ticks: axis.ticks.clone(), range }
    }

    /// Where a value lies between the ends of the axis, 0 to 1.
    fn share(&self, value: f64) -> f64 {
        const FINE: i32 = 1 << 20;
        f64::from(self.map(&value, (0, FINE))) / f64::from(FINE)
    }

    fn is_within(&self, value: f64) -> bool {
        self.range.start <= value && value <= self.range.end
    }

    /// Labels at 1 of each decade; at 2 and 5, too, if there are few.
    fn decades(&self) -> Vec<f64> {
        let (low, high) = (self.range.start.log10(), self.range.end.log10());
        let steps: &[f64] = if high - low <= FEW_DECADES { &[1.0, 2.0, 5.0] } else { &[1.0] };
        let first = low.floor();
        let decades = (0..400)
            .map(|index| 10_f64.powf(first + f64::from(index)))
            .take_while(|&value| value <= self.range.end);
        let all = decades.flat_map(|decade| steps.iter().map(move |step| decade * step));
        all.filter(|&value| self.is_within(value)).collect()
    }
}

impl Ranged for Coord {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, limit: (i32, i32)) -> i32 {
        match &self.kind {
            Kind::Linear(coord) => coord.map(value, limit),
            Kind::Log(coord) => coord.map(&value.max(self.range.start), limit),
        }
    }

    fn key_points<H: KeyPointHint>(&self, hint: H) -> Vec<f64> {
        let room = hint.max_num_points();
        match (&self.kind, self.ticks.is_empty()) {
            (_, false) if room == 0 => Vec::new(),
            (_, false) => {
                let within = self.ticks.iter().map(|tick| tick.at).filter(|&at| self.is_within(at));
                let mut kept: Vec<f64> = Vec::new();
                for at in within {
                    let is_free = |last: &f64| self.share(at) - self.share(*last) >= APART / room as f64;
                    if kept.last().is_none_or(is_free) {
                        kept.push(at);
                    }
                }
                kept
            }
            (Kind::Log(_), true) => self.decades(),
            (Kind::Linear(coord), true) => coord.key_points(hint),
        }
    }

    fn range(&self) -> Range<f64> {
        self.range.clone()
    }
}

impl ValueFormatter<f64> for Coord {
    fn format_ext(&self, value: &f64) -> String {
        let labelled = self.ticks.iter().find(|tick| tick.at == *value);
        labelled.map_or_else(|| number(*value), |tick| tick.label.clone())
    }
}

/// A number beside an axis, without digits that all labels share: `0.5`, `40`, `1,200`.
pub(crate) fn number(value: f64) -> String {
    let text = significant(value);
    if text.contains('.') {
        return text.trim_end_matches('0').trim_end_matches('.').to_owned();
    }
    if value >= 1e3 { grouped(rdsk_analysis::metrics::whole(value.round())) } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::{Series, Shape};
    use plotters::coord::ranged1d::BoldPoints;

    fn plot(y: Axis, points: Vec<Point>) -> Plot {
        Plot { x: Axis::from_zero("time", "s"), y, series: vec![Series::new("one", Shape::Line, points)] }
    }

    #[test]
    fn a_range_holds_every_value_and_its_interval() {
        let high = Point { interval: Some((1.0, 9.0)), ..Point::at(2.0, 5.0) };
        let linear = plot(Axis::from_zero("rate", "MiB/s"), vec![Point::at(1.0, 3.0), high]);
        assert_eq!(range(&linear, Along::X), 0.0..2.0);
        assert_eq!(range(&linear, Along::Y), 0.0..9.0 * HEADROOM);
        let log = range(
            &plot(Axis::log("latency", "ms"), vec![Point::at(0.0, 0.01), Point::at(1.0, 0.0)]),
            Along::Y,
        );
        assert!(log.start < 0.01 && log.end > 0.01 && log.start > 0.0, "{log:?}");
        let rows = plot(Axis::rows(["a", "b"].map(String::from)), vec![Point::at(4.0, 1.0)]);
        assert_eq!(range(&rows, Along::Y), -0.5..1.5);
        assert_eq!(range(&plot(Axis::from_zero("", ""), Vec::new()), Along::Y), 0.0..1.0);
    }

    #[test]
    fn labels_are_those_of_the_axis_or_round() {
        let few = Coord::new(&Axis::log("", ""), 0.5..30.0);
        assert_eq!(few.key_points(BoldPoints(8)), [0.5, 1.0, 2.0, 5.0, 10.0, 20.0]);
        let many = Coord::new(&Axis::log("", ""), 0.5..30_000.0);
        assert_eq!(many.key_points(BoldPoints(8)), [1.0, 10.0, 100.0, 1000.0, 10_000.0]);
        let ticks = (0..9_u32).map(|at| Tick { at: f64::from(at), label: format!("row {at}") }).collect();
        let named = Coord::new(&Axis::from_zero("", "").with_ticks(ticks), 0.0..8.0);
        assert_eq!(named.key_points(BoldPoints(4)), [0.0, 2.0, 4.0, 6.0, 8.0]);
        assert_eq!(named.format_ext(&3.0), "row 3");
        // Sizes lie unevenly: one that would touch the label before it has none.
        let sizes = [1.0, 27.0, 512.0, 2048.0, 4096.0, 65_536.0].map(|at| Tick { at, label: String::new() });
        let uneven = Coord::new(&Axis::log("", "").with_ticks(sizes.to_vec()), 1.0..65_536.0);
        assert_eq!(uneven.key_points(BoldPoints(4)), [1.0, 27.0, 512.0, 4096.0, 65_536.0]);
        assert_eq!(uneven.key_points(BoldPoints(12)).len(), 6);
        assert_eq!(
            [number(0.5), number(40.0), number(1200.0), number(2e5), number(0.0)],
            ["0.5", "40", "1,200", "200,000", "0"]
        );
    }
}
