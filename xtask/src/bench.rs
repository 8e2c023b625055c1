//! `cargo xtask bench`: how fast rdsk issues I/O, against the installed fio, as ratios of runs taken pair by pair; what
//! the program costs; whether it finds the speeds by position that dd and zcav find; whether `rdsk dd` copies as fast as dd; what
//! counting by BPF costs; what `rdsk watch` costs those whom it watches; and what the history costs.
//! A benchmark and no test: it prints what it finds and fails only where nothing can be measured.

mod copies;
mod disk;
mod environment;
mod history;
mod kernel_count;
mod observer;
mod positions;
mod program;
mod rivals;
mod watch;

use crate::options;
use anyhow::{Result, bail, ensure};
use environment::BenchTarget;
use rivals::{Done, Fio, Ours, Runner};

/// One comparison.
struct Case {
    /// What is compared, in words.
    name: String,
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

/// What the command line requests.
struct Options {
    pairs: usize,
    seconds: u32,
    only: Option<String>,
}

impl Options {
    /// Whether a comparison of this name is to be made.
    fn includes(&self, name: &str) -> bool {
        self.only.as_ref().is_none_or(|only| name.contains(only.as_str()))
    }
}

/// Runs every comparison and prints the tables. Arguments: `--pairs N` (5; also the rounds of three programs),
/// `--seconds N` (2) per run, `TEXT` or `--only TEXT` for what has the text in its name.
///
/// # Errors
/// When something cannot be built, made or started, or an argument is unknown.
pub(crate) fn run(args: &[String]) -> Result<()> {
    let options = parse(args)?;
    let engines = cases().iter().any(|case| options.includes(&case.name));
    let positions = options.includes(positions::NAME);
    let copies = options.includes(copies::NAME);
    let observer = options.includes(observer::NAME);
    let watch = options.includes(watch::NAME);
    let history = options.includes(history::NAME);
    if !engines && !positions && !copies && !observer && !watch && !history {
        let names =
            [positions::NAME, copies::NAME, observer::NAME, watch::NAME, history::NAME].join("\", \"");
        bail!("no comparison is called so; the last are \"{names}\"");
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
    if copies {
        copies::report(options.pairs);
    }
    if observer {
        observer::report(options.pairs, options.seconds);
    }
    if watch {
        watch::report(options.pairs);
    }
    if history {
        history::report(options.pairs);
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
    println!("{}\n", runner.confinement.describe());
    for make in [BenchTarget::file, BenchTarget::zram] {
        match make() {
            Ok(target) => compare_all(&runner, &target, options)?,
            Err(error) => println!("skipped: {error:#}\n"),
        }
    }
    Ok(())
}

fn parse(arguments: &[String]) -> Result<Options> {
    let (words, mut options) = options::parse(arguments, &["--pairs", "--seconds", "--only"])?;
    ensure!(words.len() <= 1, "unexpected \"{}\"", words[1..].join(" "));
    let number = |name: &str, default: u32| match options.get(name).map(|text| text.parse()) {
        None => Ok(default),
        Some(Ok(number @ 1..)) => Ok(number),
        Some(_) => bail!("{name} takes a number of at least 1"),
    };
    let (pairs, seconds) = (number("--pairs", 5)?, number("--seconds", 2)?);
    Ok(Options {
        pairs: pairs as usize,
        seconds,
        only: options.remove("--only").or(words.into_iter().next()),
    })
}

fn cases() -> Vec<Case> {
    ring_cases().into_iter().chain(aio_cases()).chain(blocking_cases()).collect()
}

/// The depths at which engines with a queue are compared.
const DEPTHS: [u32; 2] = [32, 128];

fn ring_cases() -> Vec<Case> {
    let batches = |depth| Case {
        name: format!("io_uring depth {depth}, batches of 32, against fio tuned likewise"),
        ours: Ours { engine: "uring", depth, batch: "32" },
        against: Fio { engine: "io_uring", depth, batch_of_32: true },
        goal: 1.15,
        on: On::Every,
    };
    let as_it_is = |depth| Case {
        name: format!("io_uring depth {depth} as it is, against fio tuned"),
        ours: Ours { batch: "default", ..batches(depth).ours },
        ..batches(depth)
    };
    let plain = Case {
        name: "io_uring depth 32 as it is, against fio's defaults".into(),
        against: Fio { engine: "io_uring", depth: 32, batch_of_32: false },
        goal: 1.5,
        ..as_it_is(32)
    };
    DEPTHS.map(batches).into_iter().chain(DEPTHS.map(as_it_is)).chain([plain]).collect()
}

/// Past the page cache, with the processor time: Linux AIO, and what rdsk chooses by itself.
fn aio_cases() -> Vec<Case> {
    let plain = |depth| Case {
        name: format!("aio depth {depth} as it is, against fio libaio"),
        ours: Ours { engine: "aio", depth, batch: "default" },
        against: Fio { engine: "libaio", depth, batch_of_32: false },
        goal: 1.15,
        on: On::DirectAndCpu,
    };
    let tuned = Case {
        name: "aio depth 32 as it is, against fio libaio, batches of 32".into(),
        against: Fio { engine: "libaio", depth: 32, batch_of_32: true },
        ..plain(32)
    };
    let chosen = |depth| Case {
        name: format!("depth {depth} as rdsk chooses, against fio io_uring tuned"),
        ours: Ours { engine: "free", depth, batch: "default" },
        against: Fio { engine: "io_uring", depth, batch_of_32: true },
        ..plain(depth)
    };
    DEPTHS.map(plain).into_iter().chain([tuned]).chain(DEPTHS.map(chosen)).collect()
}

fn blocking_cases() -> [Case; 2] {
    let case = |name: &str, engine, depth, goal, on| Case {
        name: name.to_owned(),
        ours: Ours { engine, depth, batch: "default" },
        against: Fio { engine: "psync", depth: 1, batch_of_32: false },
        goal,
        on,
    };
    [
        case("threads depth 32, against fio psync", "threads", 32, 0.8, On::Direct),
        case("sync depth 1, against fio psync", "sync", 1, 1.15, On::Every),
    ]
}

fn compare_all(runner: &Runner, target: &BenchTarget, options: &Options) -> Result<()> {
    println!("on {}", target.description());
    println!(
        "{:<62} {:>9} {:>9} {:>6}  {:<13} {:>5}  processor ns per I/O",
        "", "ours", "other", "ratio", "spread", "goal"
    );
    for case in cases() {
        if options.includes(&case.name) && (case.on == On::Every || target.io_path() == "direct") {
            compare(runner, target, options.pairs, &case)?;
        }
    }
    println!();
    Ok(())
}

fn compare(runner: &Runner, target: &BenchTarget, pairs: usize, case: &Case) -> Result<()> {
    let run = |pair| {
        let run_ours = || runner.ours(&case.ours, target);
        let run_other = || runner.fio(&case.against, target);
        // A B, then B A: drift hits both alike.
        if pair % 2 == 0 {
            let ours = run_ours()?;
            return Ok((ours, run_other()?));
        }
        let other = run_other()?;
        Ok((run_ours()?, other))
    };
    let runs: Vec<(Done, Done)> = (0..pairs).map(run).collect::<Result<_>>()?;
    let column = |figure: fn(&(Done, Done)) -> f64| runs.iter().map(figure).collect::<Vec<_>>();
    let mut ratios = column(|(ours, other)| ours.rate / other.rate);
    let ratio = median(&mut ratios);
    let spread = format!("{:.2} … {:.2}", ratios[0], ratios[ratios.len() - 1]);
    let (our_cpu, other_cpu) =
        (median(&mut column(|(ours, _)| ours.cpu_ns)), median(&mut column(|(_, other)| other.cpu_ns)));
    let is_costly = case.on == On::DirectAndCpu && our_cpu > other_cpu;
    let mark = if ratio >= case.goal && !is_costly { "" } else { "  missed" };
    println!(
        "{:<62} {:>9.0} {:>9.0} {ratio:>6.2}  {spread:<13} {:>5.2}  {our_cpu:.0} against {other_cpu:.0}{mark}",
        case.name,
        median(&mut column(|(ours, _)| ours.rate)),
        median(&mut column(|(_, other)| other.rate)),
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
        assert_eq!(parse(&words("observer")).unwrap().only.as_deref(), Some("observer"));
        for bad in ["--pairs", "--pairs x", "--seconds 0", "--what 1", "one two"] {
            assert!(parse(&words(bad)).is_err(), "{bad}");
        }
    }
}
