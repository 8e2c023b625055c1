//! What the script of a page must say beside each value of a figure, worded here a second time from the figure.

use rdsk_html::{Axis, Plot, Point, Scale, Series, Shape};

/// The text of every value of a plot.
pub(crate) fn all(plot: &Plot) -> Vec<String> {
    let of_series = |series: &Series| -> Vec<String> {
        let labels = series.labels.iter().map(Some).chain(std::iter::repeat(None));
        series.points.iter().zip(labels).map(|(point, label)| text(plot, series, point, label)).collect()
    };
    plot.series.iter().flat_map(of_series).collect()
}

fn text(plot: &Plot, series: &Series, point: &Point, label: Option<&String>) -> String {
    let has_rows = plot.y.scale == Scale::Rows;
    let measured = if has_rows { &plot.x } else { plot.y_of(series) };
    let (x, y) = (kept(&plot.x, point.x), kept(plot.y_of(series), point.y));
    let mut lines = if has_rows {
        vec![named(&plot.y, y), series.name.clone()]
    } else {
        vec![series.name.clone(), format!("{}: {}", plot.x.title, named(&plot.x, x))]
    };
    if let Some(label) = label {
        lines.push(label.clone());
        return lines.join("\n");
    }
    match series.shape {
        Shape::Bar { .. } if point.from > 0.0 => {
            let from = kept(&plot.x, point.from);
            lines.push(format!("{}, ends at {}", named(measured, x - from), named(measured, x)));
        }
        _ => lines.push(format!("{}: {}", measured.title, named(measured, if has_rows { x } else { y }))),
    }
    if let Some((low, high)) = point.interval {
        let what = if series.shape == Shape::Course { "range" } else { "95% interval" };
        lines.push(format!("{what}: {} to {}", digits(five(low)), named(measured, five(high))));
    }
    lines.join("\n")
}

/// Pages carry five significant digits, and exact values where a label or a share depends on them.
fn kept(axis: &Axis, value: f64) -> f64 {
    let is_exact = axis.scale == Scale::Share || axis.ticks.iter().any(|tick| tick.at == value);
    if is_exact { value } else { five(value) }
}

fn five(value: f64) -> f64 {
    format!("{value:.4e}").parse().unwrap()
}

fn named(axis: &Axis, value: f64) -> String {
    if let Some(tick) = axis.ticks.iter().find(|tick| tick.at == value) {
        return tick.label.clone();
    }
    if axis.scale == Scale::Share {
        return format!("{}%", significant(100.0 - 100.0 / value, 6));
    }
    let number = digits(value);
    if axis.unit.is_empty() { number } else { format!("{number} {}", axis.unit) }
}

/// Four digits, and whole thousands with commas.
fn digits(value: f64) -> String {
    if value.abs() < 1000.0 {
        return significant(value, 4).to_string();
    }
    let whole = format!("{:.0}", (value.abs() + 0.5).floor());
    let groups: Vec<&str> = whole
        .as_bytes()
        .rchunks(3)
        .rev()
        .map(|group| std::str::from_utf8(group).expect("digits are ASCII"))
        .collect();
    format!("{}{}", if value < 0.0 { "-" } else { "" }, groups.join(","))
}

/// Halves go up, as in JavaScript.
fn significant(value: f64, count: usize) -> f64 {
    // All digits of the number, which no float has more of than these.
    let exact = format!("{value:.80e}");
    let dropped = exact.split_once('e').expect("it has an exponent").0.chars().skip(count + 1);
    let is_half = dropped.enumerate().all(|(index, digit)| digit == if index == 0 { '5' } else { '0' });
    let value = if is_half { value.next_up() } else { value };
    format!("{value:.*e}", count - 1).parse().unwrap()
}

/// Words with one space between them: a PDF has its own.
pub(crate) fn spaced(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
