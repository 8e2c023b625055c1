//! `cargo xtask bench`: what rdsk itself costs. Two programs do the same in turn, and a row has the medians of both and of the ratios
//! of the pairs: how fast rdsk issues I/O against the installed fio, how fast `rdsk dd` copies against dd, what counting by BPF and
//! `rdsk watch` cost. Then comes what the history costs.
//! A benchmark and no test: it prints what it measured and fails only where nothing can be measured.

mod copies;
mod costs;
mod engines;
mod environment;
mod kernel_count;
mod observer;

use crate::options;
use anyhow::{Context as _, Result, bail, ensure};
use rdsk_stats::{median, median_interval};

/// What is measured: a name, and what prints its table.
type Section = (&'static str, fn(&Options) -> Result<()>);

const SECTIONS: &[Section] = &[
    ("engines: io_uring, aio, threads and sync against fio", engines::report),
    ("copies: rdsk dd against GNU dd", copies::report),
    ("observer: IOPS with the BPF programs against none", observer::report),
    ("watch: dd beside rdsk watch, against dd alone", copies::beside_watch),
    ("history: list and growth", costs::history),
];

/// What the command line requests.
struct Options {
    /// Pairs of runs; a section may multiply them.
    pairs: usize,
    /// Length of a run whose length can be chosen.
    seconds: u32,
}

/// Measures every section whose name contains TEXT. Arguments: `TEXT`; `--pairs N` (6, of which a median has an
/// interval); `--seconds N` (2) per run.
///
/// # Errors
/// When an argument is unknown, or no section could be measured.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let (text, options) = parse(arguments)?;
    let chosen: Vec<&Section> = SECTIONS.iter().filter(|(name, _)| name.contains(&text)).collect();
    if chosen.is_empty() {
        let names: Vec<&str> = SECTIONS.iter().map(|(name, _)| *name).collect();
        bail!("nothing that is measured is called \"{text}\"; there are:\n  {}", names.join("\n  "));
    }
    let mut measured = 0;
    for (name, report) in &chosen {
        println!("\n{name}");
        match report(&options) {
            Ok(()) => measured += 1,
            Err(error) => println!("not measured: {error:#}"),
        }
    }
    ensure!(measured > 0, "nothing was measured");
    Ok(())
}

fn parse(arguments: &[String]) -> Result<(String, Options)> {
    let (words, options) = options::parse(arguments, &["--pairs", "--seconds"])?;
    ensure!(words.len() <= 1, "unexpected \"{}\"", words[1..].join(" "));
    let number = |name: &str, default: u32| match options.get(name).map(|text| text.parse()) {
        None => Ok(default),
        Some(Ok(number @ 1..)) => Ok(number),
        Some(_) => bail!("{name} takes a number of at least 1"),
    };
    let options = Options { pairs: number("--pairs", 6)? as usize, seconds: number("--seconds", 2)? };
    Ok((words.concat(), options))
}

/// Runs two sides in turn, A B and then B A, so that drift of the machine meets both alike.
fn in_turn<T>(
    pairs: usize,
    mut ours: impl FnMut() -> Result<T>,
    mut other: impl FnMut() -> Result<T>,
) -> Result<Vec<(T, T)>> {
    let pair = |number: usize| {
        if number.is_multiple_of(2) {
            let first = ours()?;
            return Ok((first, other()?));
        }
        let first = other()?;
        Ok((ours()?, first))
    };
    (0..pairs).map(pair).collect()
}

/// The medians of rates that were measured in turn.
struct Compared {
    ours: f64,
    other: f64,
    ratio: f64,
    /// The 95 % interval of the ratio's median; of fewer than six pairs from the least to the most.
    interval: (f64, f64),
}

impl Compared {
    fn of(rates: &[(f64, f64)]) -> Result<Self> {
        let middle = |values: &[f64]| median(values).context("nothing ran");
        let ratios: Vec<f64> = rates.iter().map(|(ours, other)| ours / other).collect();
        let extremes = || {
            let (low, high) = (f64::INFINITY, f64::NEG_INFINITY);
            ratios.iter().fold((low, high), |(low, high), ratio| (low.min(*ratio), high.max(*ratio)))
        };
        Ok(Self {
            ours: middle(&rates.iter().map(|(ours, _)| *ours).collect::<Vec<_>>())?,
            other: middle(&rates.iter().map(|(_, other)| *other).collect::<Vec<_>>())?,
            ratio: middle(&ratios)?,
            interval: median_interval(&ratios).map_or_else(extremes, |(_, low, high)| (low, high)),
        })
    }

    /// The head of rows; `sides` are the names of both.
    fn head(sides: [&str; 2], note: &str) -> String {
        let [ours, other] = sides;
        format!("{:<62} {ours:>10} {other:>10}  ratio  95% interval    goal  {note}", "")
    }

    /// A row of a table, with what is noted beside it.
    fn row(&self, name: &str, goal: f64, note: &str) -> String {
        let Self { ours, other, ratio, interval: (low, high) } = self;
        let mark = if *ratio >= goal { "" } else { "  missed" };
        format!(
            "{name:<62} {ours:>10.0} {other:>10.0}  {ratio:>5.3}  {:<15} {goal:>5.3}  {note}{mark}",
            format!("{low:.3} … {high:.3}")
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read_and_nonsense_is_refused() {
        let words = |text: &str| -> Vec<String> { text.split_whitespace().map(str::to_owned).collect() };
        let (text, options) = parse(&words("--pairs 7 observer")).unwrap();
        assert_eq!((text.as_str(), options.pairs, options.seconds), ("observer", 7, 2));
        for bad in ["--pairs", "--pairs x", "--seconds 0", "--what 1", "one two"] {
            assert!(parse(&words(bad)).is_err(), "{bad}");
        }
        assert!(run(&words("no-such-section")).is_err());
    }

    #[test]
    fn sides_alternate_and_a_missed_goal_is_marked() {
        let order = std::cell::RefCell::new(String::new());
        let side = |name: char, rate: f64| {
            order.borrow_mut().push(name);
            Ok(rate)
        };
        let rates = in_turn(3, || side('a', 90.0), || side('b', 100.0)).unwrap();
        assert_eq!(order.into_inner(), "abbaab");
        let compared = Compared::of(&rates).unwrap();
        assert!(compared.row("x", 0.95, "").ends_with("0.900  0.900 … 0.900   0.950    missed"));
        assert!(compared.row("x", 0.9, "as it is").ends_with("as it is"));
        assert!(Compared::of(&[]).is_err());
    }
}
