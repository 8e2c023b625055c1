//! The page around the figures: its text, styles and script in one file. Names in it are untrusted: text goes through the
//! template's escaping, data through [`json_in_script`], and the policy of the page allows its own script only.

use crate::axis::{Along, range};
use crate::draw::{Drawn, Medium, STROKES, draw};
use crate::figure::{Axis, Drawing, Figure, Plot, Point, Scale, Series, Shape};
use crate::legend;
use crate::palette::{Theme, rules};
use crate::questions::{Section, Subject, sections};
use crate::verdict::{bullets, verdict};
use base64::Engine as _;
use minijinja::Environment;
use rdsk_model::{Finding, Status};
use rdsk_report::about;
use rdsk_units::printable;
use serde::Serialize;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use std::collections::HashSet;

/// How every page begins, so that a page can be distinguished from a file of another program.
pub const FIRST_BYTES: &str = "<!doctype html>\n<!-- rdsk report -->";

const TEMPLATE: &str = include_str!("../assets/page.html");
const FIGURE: &str = include_str!("../assets/figure.html");
const STYLES: &str = include_str!("../assets/page.css");
const SCRIPT: &str = include_str!("../assets/page.js");

/// About as many pixels as a wide plot has between its axes.
const PLOT: (f64, f64) = (860.0, 330.0);

/// What the template knows of a Record; it makes the findings and the notes safe to show by its filter `printable`.
#[derive(Serialize)]
struct About<'a> {
    name: String,
    facts: Vec<(String, String)>,
    status: Option<String>,
    findings: &'a [Finding],
    notes: &'a [String],
    end: String,
}

/// A question: its answer, the figure that shows it, and its other figures, each as HTML.
#[derive(Serialize)]
struct Part {
    id: String,
    title: &'static str,
    answer: String,
    /// Of the first question it is on the first screen.
    first: Option<String>,
    more: Vec<String>,
}

/// A figure with what its drawing became.
#[derive(Serialize)]
struct Picture {
    #[serde(flatten)]
    figure: Figure,
    why_not: Option<String>,
    wide: String,
    narrow: String,
    /// The key of each entry as SVG, and its name.
    legend: Vec<(String, String)>,
    data: String,
}

/// The text with its flags unbroken: a line that ends with `--` and one that begins with `budget` are no flag to copy.
pub(crate) fn whole_flags(text: &str) -> minijinja::Value {
    let word = |word: &str| {
        let escaped = minijinja::HtmlEscape(word);
        if word.starts_with("--") {
            format!("<span class=\"flag\">{escaped}</span>")
        } else {
            escaped.to_string()
        }
    };
    minijinja::Value::from_safe_string(text.split(' ').map(word).collect::<Vec<String>>().join(" "))
}

/// One Record with all its figures; several with the figures that lay them over each other. The subjects' names should differ.
///
/// # Panics
/// Never: the templates are part of the program, and a test fills them.
pub fn page(subjects: &[Subject<'_, '_>]) -> String {
    let mut environment = Environment::new();
    environment.set_trim_blocks(true);
    environment.set_lstrip_blocks(true);
    environment.add_filter("printable", |text: &str| printable(text));
    environment.add_filter("whole_flags", whole_flags);
    // The ending of the names turns escaping on.
    for (name, text) in [("page.html", TEMPLATE), ("figure.html", FIGURE)] {
        environment.add_template(name, text).expect("the templates are part of the program");
    }
    let filled = |name: &str, values: Value| {
        let template = environment.get_template(name).expect("it was just added");
        template.render(values).expect("every value that the template uses is given")
    };
    let drawn = |figure: Figure| filled("figure.html", json!(picture(figure)));
    let sections = sections(subjects);
    let verdict = verdict(subjects, &sections);
    let mut parts: Vec<Part> = sections.into_iter().map(|section| part(section, drawn)).collect();
    let hero = parts.first_mut().and_then(|part| {
        part.answer.clear();
        part.first.take()
    });
    parts.retain(|part| part.first.is_some() || !part.more.is_empty());
    let styles = format!("{STROKES}{}{}", theme_rules(), STYLES);
    let policy = format!(
        "default-src 'none'; style-src '{}'; script-src '{}'; base-uri 'none'; form-action 'none'",
        hash(&styles),
        hash(SCRIPT)
    );
    let abouts: Vec<About<'_>> = subjects.iter().map(|subject| about(subject, subjects.len())).collect();
    let title = match abouts.as_slice() {
        [about] => format!("rdsk: {}", about.name),
        several => format!("rdsk: {} results compared", several.len()),
    };
    filled(
        "page.html",
        json!({
            "first": FIRST_BYTES, "title": title, "policy": policy, "styles": styles, "script": SCRIPT,
            "verdict": verdict, "hero": hero, "bullets": bullets(subjects), "parts": parts,
            "abouts": abouts, "version": env!("CARGO_PKG_VERSION"),
        }),
    )
}

/// The light colours; the dark ones where the reader or the switch asks for them, never on paper.
fn theme_rules() -> String {
    let nested = |scope: &str, rules: &str| {
        rules.split_inclusive('}').map(|rule| format!("{scope} {rule}")).collect::<String>()
    };
    let (light, dark) = (rules(Theme::Light), rules(Theme::Dark));
    format!(
        "{light}@media screen{{{}@media (prefers-color-scheme:dark){{{}}}}}",
        nested(":root[data-theme=dark]", &dark),
        nested(":root:not([data-theme=light])", &dark)
    )
}

/// The name of a text in the policy of the page.
fn hash(text: &str) -> String {
    format!("sha256-{}", base64::engine::general_purpose::STANDARD.encode(Sha256::digest(text.as_bytes())))
}

fn about<'a>(subject: &Subject<'a, '_>, subjects: usize) -> About<'a> {
    let analysis = subject.analysis;
    let command = analysis.command.iter().map(|word| printable(word)).collect::<Vec<_>>().join(" ");
    let name = if subjects > 1 {
        printable(subject.name)
    } else {
        about::target_list(analysis).unwrap_or_else(|| "nothing measured".into())
    };
    let mut facts = about::facts(analysis);
    facts.push(("command".into(), command));
    let status = match analysis.status {
        Status::Complete => None,
        Status::Interrupted => Some("Interrupted: the results are partial.".to_owned()),
        Status::Failed => Some("Failed: the results are partial or missing.".to_owned()),
    };
    let error = analysis.error.as_ref().map(|error| printable(&error.message));
    About {
        name,
        facts,
        status: status
            .map(|status| error.map_or_else(|| status.clone(), |error| format!("{status} {error}"))),
        findings: &analysis.findings,
        notes: &analysis.notes,
        end: about::end(analysis),
    }
}

fn part(section: Section, drawn: impl Fn(Figure) -> String) -> Part {
    let mut figures = section.figures.into_iter().map(drawn);
    Part {
        id: section.experiment.to_string(),
        title: section.title,
        answer: section.answer,
        first: figures.next(),
        more: figures.collect(),
    }
}

fn picture(figure: Figure) -> Picture {
    let (wide, narrow, legend, data, why_not) = match &figure.drawing {
        Drawing::Nothing { why } => {
            (String::new(), String::new(), Vec::new(), String::new(), Some(why.clone()))
        }
        Drawing::Plot(plot) => {
            let (entries, width) = legend::entries(plot);
            let key = |key: &str| {
                format!(
                    r#"<svg class="key" viewBox="0 0 {width} {0}" width="{width}" height="{0}" aria-hidden="true">{key}</svg>"#,
                    legend::HEIGHT
                )
            };
            let legend = entries.into_iter().map(|entry| (key(&entry.key), entry.name)).collect();
            (
                element(&figure, &draw(plot, Medium::Wide), "wide"),
                element(&figure, &draw(plot, Medium::Narrow), "narrow"),
                legend,
                json_in_script(&data(plot)),
                None,
            )
        }
    };
    Picture { figure, why_not, wide, narrow, legend, data }
}

/// A drawing as an element of the page, with what its script must know to find values.
fn element(figure: &Figure, drawn: &Drawn, class: &str) -> String {
    let ((width, height), [left, top, right, bottom]) = (drawn.size, drawn.area);
    let title = crate::shapes::escaped(&figure.title);
    format!(
        r#"<svg class="{class}" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img" aria-label="{title}" data-area="{left} {top} {right} {bottom}" data-x="{} {}" data-y="{} {}" data-right="{} {}" data-bars="{} {}">{}</svg>"#,
        drawn.x.0,
        drawn.x.1,
        drawn.y.0,
        drawn.y.1,
        drawn.right.0,
        drawn.right.1,
        drawn.bars.0,
        drawn.bars.1,
        drawn.elements
    )
}

/// The values of a plot for the script: what a pointer or the keyboard shows.
fn data(plot: &Plot) -> Value {
    let has_rows = plot.y.scale == Scale::Rows;
    let axis = |axis: &Axis| json!({ "label": axis.title, "unit": axis.unit, "log": matches!(axis.scale, Scale::Log | Scale::Share), "share": axis.scale == Scale::Share, "ticks": axis.ticks });
    let mut taken = HashSet::new();
    let series: Vec<Value> = plot.series.iter().map(|series| series_data(plot, series, &mut taken)).collect();
    json!({
        "rows": has_rows,
        "x": axis(&plot.x),
        "y": axis(&plot.y),
        "right": plot.right.as_deref().map(axis),
        "series": series,
    })
}

fn series_data(plot: &Plot, series: &Series, taken: &mut HashSet<(u64, u64)>) -> Value {
    let points = hoverable_points(plot, series, taken);
    let column = |axis: &Axis, value_of: &dyn Fn(&Point) -> f64| {
        points.iter().map(|point| shown(axis, value_of(point))).collect::<Vec<f64>>()
    };
    let mut value = json!({
        "name": series.name,
        "x": column(&plot.x, &|point| point.x),
        "y": column(plot.y_of(series), &|point| point.y),
    });
    if series.is_right {
        value["right"] = json!(true);
    }
    if !series.labels.is_empty() {
        value["labels"] = json!(series.labels);
    }
    if let Shape::Bar { slot, slots } = series.shape {
        value["slot"] = json!([slot, slots]);
        value["from"] = json!(column(&plot.x, &|point| point.from));
    }
    if points.iter().any(|point| point.interval.is_some()) {
        let ends = |point: &Point| point.interval.map(|(low, high)| [rounded(low), rounded(high)]);
        let what = if series.shape == Shape::Course { "range" } else { "interval" };
        value[what] = json!(points.iter().map(|point| ends(point)).collect::<Vec<_>>());
    }
    value
}

/// The values that a pointer can find: all of them, but of dots on one pixel the first, and dots from left to right, as the keys
/// go through them.
fn hoverable_points<'a>(plot: &Plot, series: &'a Series, taken: &mut HashSet<(u64, u64)>) -> Vec<&'a Point> {
    if series.shape != Shape::Cloud {
        return series.points.iter().collect();
    }
    let upwards = if series.is_right { Along::Right } else { Along::Y };
    let (x, y) = (range(plot, Along::X), range(plot, upwards));
    let pixel = |value: f64, range: &std::ops::Range<f64>, pixels: f64| {
        rdsk_analysis::metrics::whole((value - range.start) / (range.end - range.start) * pixels)
    };
    let is_new = |point: &&Point| taken.insert((pixel(point.x, &x, PLOT.0), pixel(point.y, &y, PLOT.1)));
    let mut points: Vec<&Point> = series.points.iter().filter(is_new).collect();
    points.sort_by(|left, right| left.x.total_cmp(&right.x));
    points
}

/// A value as the script has it: as it is where a label of the axis stands for it or a share is computed from it, else rounded.
fn shown(axis: &Axis, value: f64) -> f64 {
    let is_exact = axis.scale == Scale::Share || axis.ticks.iter().any(|tick| tick.at == value);
    if is_exact { value } else { rounded(value) }
}

/// Five significant digits: more than a screen shows, and half of the size.
fn rounded(value: f64) -> f64 {
    format!("{value:.4e}").parse().unwrap_or(value)
}

/// JSON that cannot end the script element that it stands in, whatever names it holds.
fn json_in_script(value: &Value) -> String {
    let mut safe = String::new();
    for c in value.to_string().chars() {
        match c {
            '<' => safe.push_str("\\u003c"),
            '>' => safe.push_str("\\u003e"),
            '&' => safe.push_str("\\u0026"),
            '\u{2028}' => safe.push_str("\\u2028"),
            '\u{2029}' => safe.push_str("\\u2029"),
            c => safe.push(c),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_never_ends_its_script() {
        let value = json!({ "name": "</script><!-- \u{2028}&" });
        let text = json_in_script(&value);
        assert!(!text.contains(['<', '>', '&', '\u{2028}']), "{text}");
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), value);
    }

    #[test]
    fn a_value_with_a_label_is_found_by_it() {
        let ticks = vec![crate::figure::Tick { at: 1_048_576.0, label: "1 MiB".into() }];
        let sizes = Axis::log("block size", "").with_ticks(ticks);
        assert_eq!([shown(&sizes, 1_048_576.0), shown(&sizes, 1_048_577.0)], [1_048_576.0, 1_048_600.0]);
        let shares = Axis { scale: Scale::Share, ..Axis::log("share", "") };
        assert_eq!(shown(&shares, 1.0 / 0.15), 1.0 / 0.15, "85%, not 85.0001%");
    }

    #[test]
    fn five_digits() {
        assert_eq!(
            [rounded(123_456.7), rounded(0.000_123_456), rounded(0.0)],
            [123_460.0, 0.000_123_46, 0.0]
        );
    }
}
