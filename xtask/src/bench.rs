//! `cargo xtask bench`: how fast rdsk issues I/O, against the installed fio, as ratios of runs taken pair by pair; what
//! the program costs; whether it finds the speeds by position that dd and zcav find. A benchmark and no test: it
//! prints what it finds and fails only where nothing can be measured.

mod environment;
mod positions;
mod program;
mod rivals;

use anyhow::{Context as _, Result, bail};
use environment::{BenchTarget, Confinement};
use rivals::{Fio, Ours, Runner};

/// One comparison.
struct Case {
    /// What is compared, in words.
    name: &'static str,
    ours: Ours,
    against: Fio,
    /// Ratio of the rates that is wanted.
    goal: f64,
    on: On,
}

/// Where a comparison has a meaning.
#[derive(Clone, Copy, PartialEq, Eq)]
enum On {
    /// Wherever there is something to read.
    Every,
    /// Past the page cache: `io_submit` waits otherwise.
    Direct,
    /// Past the page cache, and the processor time per I/O is compared, too: at most fio's is wanted.
    DirectAndCpu,
}

/// The options of the command line.
struct Options {
    pairs: usize,
    seconds: u32,
    only: Option<String>,
}

impl Options {
    /// Whether a comparison of this name is to be made.
    fn wants(&self, name: &str) -> bool {
        self.only.as_ref().is_none_or(|only| name.contains(only.as_str()))
    }
}

/// Runs every comparison and prints the tables. Arguments: `--pairs N` (5; also the rounds of three programs),
/// `--seconds N` (2) per run, `--only TEXT` for what has the text in its name.
///
/// # Errors
/// When something cannot be built, made or started, or an argument is unknown.
pub(crate) fn run(args: &[String]) -> Result<()> {
    let options = parse(args)?;
    let engines = cases().iter().any(|case| options.wants(case.name));
    let positions = options.wants(positions::NAME);
    if !engines && !positions {
        bail!("no comparison is called so; the last is \"{}\"", positions::NAME);
    }
    if engines {
        compare_engines(&options)?;
    }
    if options.only.is_none() {
        program::report();
    }
    if positions {
        positions::report(options.pairs);
    }
    Ok(())
}

/// Everything against fio.
fn compare_engines(options: &Options) -> Result<()> {
    let runner = Runner::prepare(options.seconds)?;
    println!("{}, {}", runner.fio_version, environment::machine());
    println!(
        "4 KiB random reads on processor {}, {} pairs of runs of {} s each, interleaved A B B A; ratio of IOPS, \
         every latency recorded",
        runner.cpu, options.pairs, options.seconds
    );
    let confinement = Confinement::to(runner.cpu);
    println!("{}\n", confinement.describe());
    for make in [BenchTarget::file, BenchTarget::zram] {
        match make() {
            Ok(target) => compare_all(&runner, &confinement, &target, options)?,
            Err(error) => println!("skipped: {error:#}\n"),
        }
    }
    Ok(())
}

fn parse(args: &[String]) -> Result<Options> {
    let mut options = Options { pairs: 5, seconds: 2, only: None };
    let mut words = args.iter();
    while let Some(word) = words.next() {
        let value = words.next().with_context(|| format!("{word} needs a value"))?;
        match word.as_str() {
            "--pairs" => options.pairs = value.parse().context("--pairs takes a number")?,
            "--seconds" => options.seconds = value.parse().context("--seconds takes a number")?,
            "--only" => options.only = Some(value.clone()),
            unknown => bail!("unknown option \"{unknown}\"; there are --pairs, --seconds and --only"),
        }
    }
    if options.pairs == 0 || options.seconds == 0 {
        bail!("--pairs and --seconds must be at least 1");
    }
    Ok(options)
}

fn ours(engine: &'static str, depth: u32, batch: &'static str) -> Ours {
    Ours { engine, depth, batch }
}

/// fio with batches of 32.
fn tuned(engine: &'static str, depth: u32) -> Fio {
    Fio { engine, depth, batch_of_32: true }
}

/// fio as it comes.
fn plain(engine: &'static str, depth: u32) -> Fio {
    Fio { engine, depth, batch_of_32: false }
}

fn cases() -> Vec<Case> {
    let mut all = ring_cases();
    all.extend(aio_cases());
    all.extend(blocking_cases());
    all
}

fn ring_cases() -> Vec<Case> {
    let case = |name, ours, against, goal| Case { name, ours, against, goal, on: On::Every };
    let ring = "io_uring";
    vec![
        case(
            "io_uring depth 32, batches of 32, against fio tuned likewise",
            ours("uring", 32, "32"),
            tuned(ring, 32),
            1.15,
        ),
        case(
            "io_uring depth 128, batches of 32, against fio tuned likewise",
            ours("uring", 128, "32"),
            tuned(ring, 128),
            1.15,
        ),
        case(
            "io_uring depth 32 as it is, against fio tuned",
            ours("uring", 32, "default"),
            tuned(ring, 32),
            1.15,
        ),
        case(
            "io_uring depth 128 as it is, against fio tuned",
            ours("uring", 128, "default"),
            tuned(ring, 128),
            1.15,
        ),
        case(
            "io_uring depth 32 as it is, against fio's defaults",
            ours("uring", 32, "default"),
            plain(ring, 32),
            1.5,
        ),
    ]
}

/// Past the page cache, with the processor time: Linux AIO, and what rdsk chooses by itself.
fn aio_cases() -> Vec<Case> {
    let case = |name, ours, against| Case { name, ours, against, goal: 1.15, on: On::DirectAndCpu };
    let (ring, aio) = ("io_uring", "libaio");
    vec![
        case("aio depth 32 as it is, against fio libaio", ours("aio", 32, "default"), plain(aio, 32)),
        case("aio depth 128 as it is, against fio libaio", ours("aio", 128, "default"), plain(aio, 128)),
        case(
            "aio depth 32 as it is, against fio libaio, batches of 32",
            ours("aio", 32, "default"),
            tuned(aio, 32),
        ),
        case(
            "depth 32 as rdsk chooses, against fio io_uring tuned",
            ours("free", 32, "default"),
            tuned(ring, 32),
        ),
        case(
            "depth 128 as rdsk chooses, against fio io_uring tuned",
            ours("free", 128, "default"),
            tuned(ring, 128),
        ),
    ]
}

fn blocking_cases() -> Vec<Case> {
    vec![
        Case {
            name: "threads depth 32, against fio psync",
            ours: ours("threads", 32, "default"),
            against: plain("psync", 1),
            goal: 0.8,
            on: On::Direct,
        },
        Case {
            name: "sync depth 1, against fio psync",
            ours: ours("sync", 1, "default"),
            against: plain("psync", 1),
            goal: 1.15,
            on: On::Every,
        },
    ]
}

fn compare_all(
    runner: &Runner,
    confinement: &Confinement,
    target: &BenchTarget,
    options: &Options,
) -> Result<()> {
    println!("on {}", target.description());
    println!(
        "{:<62} {:>9} {:>9} {:>6}  {:<13} {:>5}  processor ns per I/O",
        "", "ours", "other", "ratio", "spread", "goal"
    );
    for case in cases() {
        if options.wants(case.name) && (case.on == On::Every || target.io_path() == "direct") {
            compare(runner, confinement, target, options, &case)?;
        }
    }
    println!();
    Ok(())
}

fn compare(
    runner: &Runner,
    confinement: &Confinement,
    target: &BenchTarget,
    options: &Options,
    case: &Case,
) -> Result<()> {
    let (mut ours, mut others, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    let (mut our_cpu, mut other_cpu) = (Vec::new(), Vec::new());
    for pair in 0..options.pairs {
        let run_ours = || runner.ours(&case.ours, target, confinement);
        let run_other = || runner.fio(&case.against, target, confinement);
        // A B, then B A: drift hits both alike.
        let (our_run, other_run) = if pair % 2 == 0 {
            let our_run = run_ours()?;
            (our_run, run_other()?)
        } else {
            let other_run = run_other()?;
            (run_ours()?, other_run)
        };
        ours.push(our_run.rate);
        others.push(other_run.rate);
        ratios.push(our_run.rate / other_run.rate);
        our_cpu.push(our_run.cpu_ns);
        other_cpu.push(other_run.cpu_ns);
    }
    let ratio = median(&mut ratios);
    let spread = format!("{:.2} … {:.2}", ratios[0], ratios[ratios.len() - 1]);
    let (our_cpu, other_cpu) = (median(&mut our_cpu), median(&mut other_cpu));
    let is_costly = case.on == On::DirectAndCpu && our_cpu > other_cpu;
    let mark = if ratio >= case.goal && !is_costly { "" } else { "  missed" };
    println!(
        "{:<62} {:>9.0} {:>9.0} {ratio:>6.2}  {spread:<13} {:>5.2}  {our_cpu:.0} against {other_cpu:.0}{mark}",
        case.name,
        median(&mut ours),
        median(&mut others),
        case.goal
    );
    Ok(())
}

/// The middle value; sorts. The mean of the two middle ones for an even number.
fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => f64::NAN,
        count if count % 2 == 1 => values[middle],
        _ => f64::midpoint(values[middle - 1], values[middle]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians() {
        assert!((median(&mut [3.0, 1.0, 2.0]) - 2.0).abs() < 1e-12);
        assert!((median(&mut [4.0, 1.0, 2.0, 3.0]) - 2.5).abs() < 1e-12);
    }

    #[test]
    fn options_are_read_and_nonsense_is_refused() {
        let words = |text: &str| -> Vec<String> { text.split_whitespace().map(str::to_owned).collect() };
        let options = parse(&words("--pairs 7 --only sync")).unwrap();
        assert_eq!((options.pairs, options.seconds, options.only.as_deref()), (7, 2, Some("sync")));
        for bad in ["--pairs", "--pairs x", "--seconds 0", "--what 1"] {
            assert!(parse(&words(bad)).is_err(), "{bad}");
        }
    }
}
