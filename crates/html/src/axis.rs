//! An axis on paper: the range that holds all values of a plot, where each lies in pixels, the places of its labels, and their words.
//! It draws nothing.

use crate::figure::{Axis, Plot, Point, Scale, Series, Tick};
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

/// An interval beyond this many times the highest value ends at the edge: it would leave no room for the values.
const MOST_OF_INTERVAL: f64 = 1.5;

/// Which of the axes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Along {
    X,
    Y,
    Right,
}

/// Everything that must fit on an axis: the values, and the ends of their intervals.
fn values(plot: &Plot, along: Along) -> (Vec<f64>, Vec<f64>) {
    let measured = if plot.y.scale == Scale::Rows { Along::X } else { Along::Y };
    let is_measured = along == measured || along == Along::Right;
    let value = |point: &Point| if along == Along::X { point.x } else { point.y };
    let is_on = |series: &&Series| along == Along::X || series.is_right == (along == Along::Right);
    let points = || plot.series.iter().filter(is_on).flat_map(|series| &series.points);
    let intervals = points().filter_map(|point| point.interval.filter(|_| is_measured));
    (points().map(value).collect(), intervals.flat_map(|(low, high)| [low, high]).collect())
}

/// The range of an axis: all its values, and a little more.
pub(crate) fn range(plot: &Plot, along: Along) -> Range<f64> {
    let axis = match along {
        Along::X => &plot.x,
        Along::Y => &plot.y,
        Along::Right => plot.right.as_deref().unwrap_or(&plot.y),
    };
    let (mut values, mut ends) = values(plot, along);
    values.extend(axis.ticks.iter().map(|tick| tick.at));
    values.retain(|value| value.is_finite());
    let highest_value = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    ends.retain(|end| end.is_finite());
    values.extend(ends.into_iter().map(|end| end.min(MOST_OF_INTERVAL * highest_value)));
    let highest = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    match axis.scale {
        Scale::Rows => -0.5..(axis.ticks.len() as f64 - 0.5),
        Scale::FromZero if highest > 0.0 => {
            0.0..highest * if along == Along::X && plot.y.scale != Scale::Rows { 1.0 } else { HEADROOM }
        }
        Scale::FromZero => 0.0..1.0,
        Scale::Log | Scale::Share => {
            let positive = || values.iter().copied().filter(|&value| value > 0.0);
            let (low, high) = (positive().fold(f64::INFINITY, f64::min), positive().fold(0.0, f64::max));
            // A line along the edge of the plot would look like its axis.
            let room = (high / low).powf(LOG_ROOM).max(LEAST_LOG_ROOM);
            if high > 0.0 { low / room..high * room } else { 0.1..1.0 }
        }
    }
}

/// An axis with its range, between two pixels.
pub(crate) struct Coordinate<'p> {
    axis: &'p Axis,
    range: Range<f64>,
    pixels: (f64, f64),
}

impl<'p> Coordinate<'p> {
    /// The axis of a plot, whose range begins at the first of the pixels and ends at the second.
    pub(crate) fn new(axis: &'p Axis, range: Range<f64>, pixels: (f64, f64)) -> Self {
        Self { axis, range, pixels }
    }

    /// Where a value lies, in pixels; what is too small for the axis lies at its beginning, what is too large at its end.
    pub(crate) fn pixel(&self, value: f64) -> f64 {
        self.pixels.0 + self.share(value).clamp(0.0, 1.0) * (self.pixels.1 - self.pixels.0)
    }

    /// Both ends of the range.
    pub(crate) fn ends(&self) -> (f64, f64) {
        (self.range.start, self.range.end)
    }

    fn is_log(&self) -> bool {
        matches!(self.axis.scale, Scale::Log | Scale::Share)
    }

    /// Where a value lies between the ends of the axis, 0 to 1.
    fn share(&self, value: f64) -> f64 {
        let Range { start, end } = self.range;
        if self.is_log() {
            (value.max(start) / start).ln() / (end / start).ln()
        } else {
            (value - start) / (end - start)
        }
    }

    fn is_within(&self, value: f64) -> bool {
        self.range.start <= value && value <= self.range.end
    }

    /// The labels that fit: those of the axis that do not touch the one before, else round numbers.
    pub(crate) fn labels(&self, room: usize) -> Vec<Tick> {
        let places = match (self.axis.ticks.is_empty(), self.is_log()) {
            (false, _) => self.free(room),
            (true, true) => self.decades(),
            (true, false) => multiples(self.range.end, room),
        };
        places.into_iter().map(|at| Tick { at, label: self.label(at) }).collect()
    }

    fn label(&self, value: f64) -> String {
        let labelled = self.axis.ticks.iter().find(|tick| tick.at == value);
        labelled.map_or_else(|| number(value), |tick| tick.label.clone())
    }

    /// The places that the axis names, but for those that lie too near to the one before.
    fn free(&self, room: usize) -> Vec<f64> {
        let mut kept: Vec<f64> = Vec::new();
        for at in self.axis.ticks.iter().map(|tick| tick.at).filter(|&at| self.is_within(at)) {
            let is_free = |last: &f64| self.share(at) - self.share(*last) >= APART / room as f64;
            if kept.last().is_none_or(is_free) {
                kept.push(at);
            }
        }
        kept
    }

    /// Labels at 1 of each decade; at 2 and 5, too, if there are few.
    fn decades(&self) -> Vec<f64> {
        let (low, high) = (self.range.start.log10(), self.range.end.log10());
        let steps: &[f64] = if high - low <= FEW_DECADES { &[1.0, 2.0, 5.0] } else { &[1.0] };
        let first = low.floor();
        let decades = (0..400)
            .map(|index| 10_f64.powf(first + f64::from(index)))
            .take_while(|&value| value <= self.range.end);
        let places = decades.flat_map(|decade| steps.iter().map(move |step| decade * step));
        places.filter(|&value| self.is_within(value)).collect()
    }
}

/// The multiples of a round number from 0 to `highest`, as many as there is room for: of 1, 2 or 5 times a power of ten. With room for
/// seven, those up to 10.6 are 0, 2, 4, 6, 8 and 10.
fn multiples(highest: f64, room: usize) -> Vec<f64> {
    // What a quotient that should be whole may lack.
    const ROUNDING: f64 = 1e-9;
    let count = |step: f64| (highest / step + ROUNDING).floor() + 1.0;
    let coarsest = highest.log10().floor() + 1.0;
    let decades = (0..400).map(|finer| 10_f64.powf(coarsest - f64::from(finer)));
    let steps = decades.flat_map(|decade| [5.0, 2.0, 1.0].map(|step| decade * step));
    let Some(step) = steps.take_while(|&step| count(step) <= room as f64).last() else { return Vec::new() };
    (0_u32..).map(|index| f64::from(index) * step).take_while(|at| *at <= highest + ROUNDING * step).collect()
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
    use crate::figure::Shape;

    fn plot(y: Axis, points: Vec<Point>) -> Plot {
        Plot::new(Axis::from_zero("time", "s"), y, [Series::new("one", Shape::Line, points)])
    }

    #[test]
    fn a_range_holds_every_value_and_its_interval() {
        let high = Point { interval: Some((1.0, 7.0)), ..Point::at(2.0, 5.0) };
        let linear = plot(Axis::from_zero("rate", "MiB/s"), vec![Point::at(1.0, 3.0), high]);
        assert_eq!(range(&linear, Along::X), 0.0..2.0);
        assert_eq!(range(&linear, Along::Y), 0.0..7.0 * HEADROOM);
        let wide = Point { interval: Some((0.1, 900.0)), ..high };
        let unstable = plot(Axis::from_zero("rate", "MiB/s"), vec![wide]);
        assert_eq!(range(&unstable, Along::Y), 0.0..7.5 * HEADROOM, "it ends at the edge");
        let log = range(
            &plot(Axis::log("latency", "ms"), vec![Point::at(0.0, 0.01), Point::at(1.0, 0.0)]),
            Along::Y,
        );
        assert!(log.start < 0.01 && log.end > 0.01 && log.start > 0.0, "{log:?}");
        let rows = plot(Axis::rows(["a", "b"].map(String::from)), vec![Point::at(4.0, 1.0)]);
        assert_eq!(range(&rows, Along::Y), -0.5..1.5);
        assert_eq!(range(&plot(Axis::from_zero("", ""), Vec::new()), Along::Y), 0.0..1.0);
    }

    fn places(axis: &Axis, range: Range<f64>, room: usize) -> Vec<f64> {
        Coordinate::new(axis, range, (0.0, 100.0)).labels(room).iter().map(|tick| tick.at).collect()
    }

    #[test]
    fn labels_are_those_of_the_axis_or_round() {
        assert_eq!(places(&Axis::log("", ""), 0.5..30.0, 8), [0.5, 1.0, 2.0, 5.0, 10.0, 20.0]);
        assert_eq!(places(&Axis::log("", ""), 0.5..30_000.0, 8), [1.0, 10.0, 100.0, 1000.0, 10_000.0]);
        let ticks: Vec<Tick> =
            (0..9_u32).map(|at| Tick { at: f64::from(at), label: format!("row {at}") }).collect();
        let named = Axis::from_zero("", "").with_ticks(ticks);
        assert_eq!(places(&named, 0.0..8.0, 4), [0.0, 2.0, 4.0, 6.0, 8.0]);
        assert_eq!(Coordinate::new(&named, 0.0..8.0, (0.0, 1.0)).labels(9)[3].label, "row 3");
        // Sizes lie unevenly: one that would touch the label before it has none.
        let sizes = [1.0, 27.0, 512.0, 2048.0, 4096.0, 65_536.0].map(|at| Tick { at, label: String::new() });
        let uneven = Axis::log("", "").with_ticks(sizes.to_vec());
        assert_eq!(places(&uneven, 1.0..65_536.0, 4), [1.0, 27.0, 512.0, 4096.0, 65_536.0]);
        assert_eq!(places(&uneven, 1.0..65_536.0, 12).len(), 6);
        let linear = Axis::from_zero("", "");
        assert_eq!(places(&linear, 0.0..10.6, 7), [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]);
        assert_eq!(places(&linear, 0.0..1.0, 12).len(), 11, "both ends are among them");
        assert_eq!(places(&linear, 0.0..0.3, 4), [0.0, 0.1, 0.2, 0.30000000000000004]);
        assert_eq!(
            [number(0.5), number(40.0), number(1200.0), number(2e5), number(0.0)],
            ["0.5", "40", "1,200", "200,000", "0"]
        );
    }

    #[test]
    fn a_value_lies_between_the_ends_by_its_scale() {
        let (linear, log) = (Axis::from_zero("", ""), Axis::log("", ""));
        assert_eq!(Coordinate::new(&linear, 0.0..8.0, (100.0, 20.0)).pixel(4.0), 60.0);
        let log = Coordinate::new(&log, 1.0..100.0, (0.0, 10.0));
        assert!((log.pixel(10.0) - 5.0).abs() < 1e-9);
        assert_eq!(log.pixel(0.0), 0.0, "it has no place of its own");
    }
}
