//! A figure as data: what it shows in words, axes, series, bands, its table and the evidence beside it. Values are in the unit of
//! their axis. It knows nothing of pixels, colours or HTML.

use serde::Serialize;

/// Lines with at most this many values have a mark on each.
const FEW_MARKS: usize = 40;

/// One figure of a page.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Figure {
    /// Unique on its page, of `a-z`, `0-9` and `-`: the anchor in the page and the name of the file.
    pub id: String,
    /// What is drawn, without a full stop.
    pub title: String,
    /// What the figure shows, in whole sentences.
    pub shows: String,
    /// The drawing.
    #[serde(skip)]
    pub drawing: Drawing,
    /// The same figures as text.
    pub table: Table,
    /// Verdicts and counters that the figures rest on, a sentence each.
    pub evidence: Vec<String>,
}

/// What there is to draw.
#[derive(Clone, Debug, PartialEq)]
pub enum Drawing {
    /// At least one point.
    Plot(Plot),
    /// Nothing, and why.
    Nothing {
        /// The reason, a whole sentence.
        why: String,
    },
}

/// Two axes and what lies between them.
#[derive(Clone, Debug, PartialEq)]
pub struct Plot {
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis; of bars, the categories.
    pub y: Axis,
    /// A second vertical axis on the right, for the series that are on it.
    pub right: Option<Box<Axis>>,
    /// What is drawn, the first one lowest.
    pub series: Vec<Series>,
}

/// One axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// What the values are.
    pub title: String,
    /// Their unit; empty for a number or a category.
    pub unit: &'static str,
    /// How values become places.
    pub scale: Scale,
    /// The values that are labelled; empty where round numbers of the range are.
    pub ticks: Vec<Tick>,
}

/// How the values of an axis become places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Linear from 0.
    FromZero,
    /// Logarithmic; values that are not positive have no place.
    Log,
    /// Logarithmic in what is left out: the values are one in how many, so that 100 stands for 99 %.
    Share,
    /// One row for each tick, the first on top; the values are the indices of the ticks.
    Rows,
}

/// A value of an axis with its label.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Tick {
    /// The value.
    pub at: f64,
    /// Its label.
    pub label: String,
}

/// Values of one kind.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// What the values belong to; unique in its plot.
    pub name: String,
    /// What the legend calls it; series with the same words have one colour and one entry.
    pub legend: String,
    /// Its colour and style; `None` for those of its place in the legend.
    pub look: Option<Look>,
    /// How the values are drawn.
    pub shape: Shape,
    /// Whether its values are on the axis on the right.
    pub is_right: bool,
    /// The values, of a line in the order in which they are joined.
    pub points: Vec<Point>,
    /// The words for each value, drawn at the end of its bar and shown in its place; none, or as many as there are points.
    pub labels: Vec<String>,
}

/// What a series looks like. The same number means the same thing in all figures of a page: of several results the colour is the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    /// Which result it is of; of a single one which direction, 0 for reads.
    pub color: usize,
    /// Which of the series of that colour: a dash and a mark, or how a bar is filled.
    pub style: usize,
}

/// How values are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Joined, with a mark on each value if there are few.
    Line,
    /// Pieces without marks, two values each: the levels that other values lie around.
    Level,
    /// A mark each.
    Mark,
    /// A dot each.
    Cloud,
    /// Joined without marks; the interval of a value is the range of what it stands for, drawn as a band around the line.
    Course,
    /// A bar along the horizontal axis.
    Bar {
        /// Which of the bars of its row it belongs to, from 0; bars of one slot lie end to end.
        slot: usize,
        /// How many slots a row has.
        slots: usize,
    },
}

/// One value.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Point {
    /// On the horizontal axis; of a bar, its end.
    pub x: f64,
    /// On the vertical axis.
    pub y: f64,
    /// Where a bar begins on the horizontal axis.
    pub from: f64,
    /// The 95 % interval, along the axis of the measured value; of a [`Shape::Course`] the range.
    pub interval: Option<(f64, f64)>,
}

/// The figures as text.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Table {
    /// Names of the columns with their units.
    pub heads: Vec<String>,
    /// The rows, each as long as `heads`.
    pub rows: Vec<Vec<String>>,
    /// What the table leaves out; empty if nothing.
    pub left_out: String,
}

impl Table {
    /// Names of the columns, and the rows.
    pub(crate) fn new<H: Into<String>>(
        heads: impl IntoIterator<Item = H>,
        rows: impl IntoIterator<Item = Vec<String>>,
    ) -> Self {
        let heads = heads.into_iter().map(Into::into).collect();
        Self { heads, rows: rows.into_iter().collect(), ..Self::default() }
    }
}

impl Plot {
    /// The series that have a point between two axes.
    pub(crate) fn new(x: Axis, y: Axis, series: impl IntoIterator<Item = Series>) -> Self {
        let series = series.into_iter().filter(|series| !series.points.is_empty()).collect();
        Self { x, y, right: None, series }
    }

    /// The same with an axis on the right.
    pub(crate) fn with_right(self, right: Axis) -> Self {
        Self { right: Some(Box::new(right)), ..self }
    }

    /// The vertical axis of a series.
    pub fn y_of(&self, series: &Series) -> &Axis {
        self.right.as_deref().filter(|_| series.is_right).unwrap_or(&self.y)
    }

    /// What a legend lists: each kind of series once, in the order of the series.
    pub fn legend(&self) -> Vec<&str> {
        rdsk_analysis::groups::distinct(self.series.iter().map(|series| series.legend.as_str()))
    }

    /// Place of a series in the legend, which decides its colour where it has no look of its own.
    pub fn place_of(&self, series: &Series) -> usize {
        self.legend().iter().position(|name| *name == series.legend).unwrap_or(0)
    }

    /// Whether there is anything to draw.
    pub fn has_points(&self) -> bool {
        self.series.iter().any(|series| !series.points.is_empty())
    }
}

impl Drawing {
    /// The plot if it has points; otherwise the reason.
    pub fn of(plot: Plot, why: &str) -> Self {
        if plot.has_points() { Self::Plot(plot) } else { Self::Nothing { why: why.into() } }
    }
}

impl Axis {
    /// A linear axis from 0.
    pub fn from_zero(title: &str, unit: &'static str) -> Self {
        Self { title: title.into(), unit, scale: Scale::FromZero, ticks: Vec::new() }
    }

    /// A logarithmic axis.
    pub fn log(title: &str, unit: &'static str) -> Self {
        Self { scale: Scale::Log, ..Self::from_zero(title, unit) }
    }

    /// A row for each name.
    pub fn rows(names: impl IntoIterator<Item = String>) -> Self {
        let ticks = (0_u32..).zip(names).map(|(index, label)| Tick { at: f64::from(index), label }).collect();
        Self { scale: Scale::Rows, ticks, ..Self::from_zero("", "") }
    }

    /// The same axis with labels at these values only.
    #[must_use]
    pub fn with_ticks(self, ticks: Vec<Tick>) -> Self {
        Self { ticks, ..self }
    }

    /// `rate, MiB/s`.
    pub fn label(&self) -> String {
        if self.unit.is_empty() { self.title.clone() } else { format!("{}, {}", self.title, self.unit) }
    }
}

impl Series {
    /// A series that the legend calls by its name.
    pub fn new(name: impl Into<String>, shape: Shape, points: Vec<Point>) -> Self {
        let name = name.into();
        Self { legend: name.clone(), name, look: None, shape, is_right: false, points, labels: Vec::new() }
    }

    /// The same series with a look.
    #[must_use]
    pub(crate) fn looking(self, look: Option<Look>) -> Self {
        Self { look, ..self }
    }

    /// Whether each value has a mark: not on a line of many values, where marks would hide it.
    pub(crate) fn has_marks(&self) -> bool {
        match self.shape {
            Shape::Line => self.points.len() <= FEW_MARKS,
            Shape::Mark | Shape::Cloud => true,
            Shape::Level | Shape::Course | Shape::Bar { .. } => false,
        }
    }
}

impl Point {
    /// A value without an interval.
    pub fn at(x: f64, y: f64) -> Self {
        Self { x, y, ..Self::default() }
    }
}
