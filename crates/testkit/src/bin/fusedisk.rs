//! The disk of known behaviour as a program, for measurements by hand with any tool: it serves one file, and a loop device
//! over it, until it is told to stop. It touches no disk of the machine.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program for people at a terminal")]

use clap::Parser;
use rdsk_disk::Device;
use rdsk_testkit::fusedisk::{
    Behaviour, Bucket, Cost, Extra, FirstAccessParams, FuseDisk, Model, Served, Server, SleepParams, Stall,
    WriteCache, Zone,
};
use rdsk_units::{Bytes, Nanos};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::fs::File;
use std::io::{self, BufRead as _, BufWriter, Write};
use std::ops::Range;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::mpsc::{Receiver, Sender, channel};

/// A disk of known behaviour behind /dev/fuse.
///
/// Prints the file and, with --loop, the loop device. Then it reads commands from standard input: `cut` (cut the power: with
/// --volatile, unflushed writes are lost; requests in flight fail), `log` (print the requests served since the last `log`),
/// `quit`. SIGINT and SIGTERM end it like `quit`; the end of standard input does not.
#[derive(Debug, Parser)]
#[command(name = "fusedisk")]
struct Arguments {
    /// Size, such as 1G [default: 64M, or the size of the system's disk]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    capacity: Option<u64>,
    /// Behave as the first disk of a simulated system: its name, or a file with its figures
    #[arg(long, value_name = "NAME|FILE.toml", conflicts_with_all = ["latency", "zone", "single", "parallel", "flush", "eio", "stall", "extra", "first", "sleep", "bucket"])]
    system: Option<String>,
    /// Seed for the random choices of the system's disk
    #[arg(long, default_value_t = 1, requires = "system")]
    seed: u64,
    /// Time of each read and write outside all zones, such as 1ms
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = time)]
    latency: u64,
    /// A range with a cost of its own: bytes per second (0-16M=50MB/s) or time per request (16M-32M=2ms)
    #[arg(long, value_name = "RANGE=RATE|TIME", value_parser = zone)]
    zone: Vec<Zone>,
    /// Serve one request at a time (the default)
    #[arg(long, conflicts_with = "parallel")]
    single: bool,
    /// Serve this many requests at once
    #[arg(long, value_name = "N")]
    parallel: Option<usize>,
    /// Time of a flush
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = time)]
    flush: u64,
    /// Bytes that cannot be read or written, such as 4M-5M
    #[arg(long, value_name = "RANGE", value_parser = range)]
    eio: Vec<Range<u64>>,
    /// Stall periodically, such as 30s/2s: for the last 2 s of every 30 s
    #[arg(long, value_name = "EVERY/FOR", value_parser = stall)]
    stall: Option<Stall>,
    /// Make every Nth request slower, such as 10/3ms
    #[arg(long, value_name = "N/TIME", value_parser = extra)]
    extra: Option<Extra>,
    /// Make the first access of each place slower, such as 1M/20ms
    #[arg(long, value_name = "SIZE/TIME", value_parser = first)]
    first: Option<FirstAccessParams>,
    /// Sleep after a rest and take so long to wake up, such as 300ms/40ms
    #[arg(long, value_name = "AFTER/TIME", value_parser = sleep)]
    sleep: Option<SleepParams>,
    /// Let N requests pass at their own cost, then each takes TIME, such as 30000/2ms; as long at rest gives one back
    #[arg(long, value_name = "N/TIME", value_parser = bucket)]
    bucket: Option<Bucket>,
    /// Lose unflushed writes when the power is cut
    #[arg(long)]
    volatile: bool,
    /// Write the served requests to this new file, one line each, at each `log` and at the end
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
    /// Serve on one CPU, the last one; a reader bound to the same CPU has the shortest path through the kernel
    #[arg(long)]
    one_cpu: bool,
    /// Attach a loop device with direct I/O
    #[arg(long = "loop")]
    with_loop: bool,
}

/// The command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    Cut,
    Log,
    Quit,
}

fn main() -> ExitCode {
    match serve(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn serve(arguments: &Arguments) -> io::Result<()> {
    // Before anything is mounted, so that no signal can leave a mount behind.
    let orders = orders()?;
    let mut log: Box<dyn Write> = match &arguments.log {
        Some(path) => Box::new(BufWriter::new(File::create_new(path)?)),
        None => Box::new(io::stdout()),
    };
    let write_cache = if arguments.volatile { WriteCache::Volatile } else { WriteCache::Safe };
    let mut builder = FuseDisk::builder().write_cache(write_cache).device(model(arguments)?);
    if let Some(bytes) = arguments.capacity {
        builder = builder.capacity(bytes);
    }
    if arguments.one_cpu {
        builder = builder.on_one_cpu();
    }
    let disk = builder.mount()?;
    println!("{}", disk.file().display());
    let device = if arguments.with_loop { Some(disk.loop_device()?) } else { None };
    if let Some(device) = &device {
        println!("{}", device.path().display());
    }
    for order in orders {
        match order {
            Order::Cut => disk.cut_power()?,
            Order::Log => write_log(&mut log, &disk)?,
            Order::Quit => break,
        }
    }
    if arguments.log.is_some() {
        write_log(&mut log, &disk)?;
    }
    Ok(())
}

fn model(arguments: &Arguments) -> io::Result<Model> {
    if let Some(name) = &arguments.system {
        return Ok(simulated(name, arguments.seed)?.into());
    }
    let behaviour = Behaviour {
        server: arguments.parallel.map_or(Server::Single, Server::Parallel),
        latency_ns: arguments.latency,
        zones: arguments.zone.clone(),
        flush_ns: arguments.flush,
        errors: arguments.eio.clone(),
        stall: arguments.stall,
        extra: arguments.extra,
        first_access: arguments.first,
        sleep: arguments.sleep,
        bucket: arguments.bucket,
    };
    Ok(behaviour.into())
}

fn simulated(name: &str, seed: u64) -> io::Result<Device> {
    let is_file = name.contains('/') || name.ends_with(".toml");
    let system =
        if is_file { rdsk_disk::parse(name, &std::fs::read_to_string(name)?) } else { rdsk_disk::load(name) };
    let system = system.map_err(|error| io::Error::other(format!("{name}: {error} ({})", error.hint())))?;
    let lun = system.params.luns.first();
    Ok(Device::of_lun(lun.ok_or_else(|| io::Error::other(format!("{name} has no disk")))?, seed))
}

/// Takes the served requests out of the disk's log.
fn write_log(to: &mut dyn Write, disk: &FuseDisk) -> io::Result<()> {
    let served: Vec<Served> = disk.log();
    disk.clear_log();
    served.iter().try_for_each(|served| writeln!(to, "{served}"))?;
    to.flush()
}

/// Commands from standard input and signals.
fn orders() -> io::Result<Receiver<Order>> {
    let (sender, receiver) = channel();
    let mut signals = signal_hook::iterator::Signals::new([SIGINT, SIGTERM, SIGHUP])?;
    let from_signals: Sender<Order> = sender.clone();
    std::thread::Builder::new().name("signals".into()).spawn(move || {
        for _ in signals.forever() {
            // After `quit`, nobody receives commands any more.
            let _ = from_signals.send(Order::Quit);
        }
    })?;
    std::thread::Builder::new().name("stdin".into()).spawn(move || {
        for line in io::stdin().lock().lines().map_while(Result::ok) {
            let order = match line.trim() {
                "cut" => Order::Cut,
                "log" => Order::Log,
                "quit" => Order::Quit,
                "" => continue,
                other => {
                    eprintln!("`{other}` is none of cut, log, quit");
                    continue;
                }
            };
            if sender.send(order).is_err() {
                break;
            }
        }
    })?;
    Ok(receiver)
}

fn size(text: &str) -> Result<u64, String> {
    Bytes::parse(text).map(|bytes| bytes.0).map_err(|error| format!("{error} ({})", error.hint()))
}

fn time(text: &str) -> Result<u64, String> {
    Nanos::parse(text).map(|nanos| nanos.0).map_err(|error| format!("{error} ({})", error.hint()))
}

fn pair<'text>(text: &'text str, separator: char, form: &str) -> Result<(&'text str, &'text str), String> {
    text.split_once(separator).ok_or_else(|| format!("is not of the form {form}"))
}

fn range(text: &str) -> Result<Range<u64>, String> {
    let (first, end) = pair(text, '-', "FIRST-END, such as 0-16M")?;
    let range = size(first)?..size(end)?;
    if range.is_empty() { Err("is empty: its end is not behind its first byte".into()) } else { Ok(range) }
}

fn zone(text: &str) -> Result<Zone, String> {
    let (place, cost) = pair(text, '=', "RANGE=RATE or RANGE=TIME")?;
    let cost = match cost.strip_suffix("/s") {
        Some(bytes) => match size(bytes)? {
            0 => return Err("a rate of 0 never ends".into()),
            bytes => Cost::Rate(bytes as f64),
        },
        None => Cost::Latency(time(cost)?),
    };
    Ok(Zone { range: range(place)?, cost })
}

fn stall(text: &str) -> Result<Stall, String> {
    let (every, lasts) = pair(text, '/', "EVERY/FOR, such as 30s/2s")?;
    let stall = Stall { every_ns: time(every)?, lasts_ns: time(lasts)? };
    if stall.lasts_ns < stall.every_ns { Ok(stall) } else { Err("lasts longer than its period".into()) }
}

fn extra(text: &str) -> Result<Extra, String> {
    let (every, costs) = pair(text, '/', "N/TIME, such as 10/3ms")?;
    let every = every.parse().ok().filter(|every| *every > 0).ok_or("N is not a number above 0")?;
    Ok(Extra { every, costs_ns: time(costs)? })
}

fn first(text: &str) -> Result<FirstAccessParams, String> {
    let (place, costs) = pair(text, '/', "SIZE/TIME, such as 1M/20ms")?;
    let place_bytes = Some(size(place)?).filter(|bytes| *bytes > 0).ok_or("a place has at least one byte")?;
    Ok(FirstAccessParams { place_bytes, costs_ns: time(costs)?, ..FirstAccessParams::default() })
}

fn sleep(text: &str) -> Result<SleepParams, String> {
    let (after, wakes_in) = pair(text, '/', "AFTER/TIME, such as 300ms/40ms")?;
    Ok(SleepParams { after_ns: time(after)?, wakes_in_ns: time(wakes_in)? })
}

fn bucket(text: &str) -> Result<Bucket, String> {
    let (requests, then) = pair(text, '/', "N/TIME, such as 30000/2ms")?;
    let requests = requests.parse().map_err(|_| "N is not a number")?;
    let then_ns = time(then).ok().filter(|&ns| ns > 0).ok_or("TIME is not above 0")?;
    Ok(Bucket { requests, then_ns })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments(words: &str) -> Result<Arguments, clap::Error> {
        Arguments::try_parse_from(std::iter::once("fusedisk").chain(words.split_whitespace()))
    }

    #[test]
    fn words_become_a_behaviour() {
        let words = "--latency 1ms --zone 0-16M=50MB/s --zone 16M-32M=2ms --parallel 4 --flush 5ms --eio 4k-8k \
                     --stall 30s/2s --extra 10/3ms --bucket 30000/2ms";
        let Model::Programmed(behaviour) = model(&arguments(words).unwrap()).unwrap() else { panic!() };
        let expected = Behaviour {
            flush_ns: 5_000_000,
            errors: vec![4096..8192; 1],
            stall: Some(Stall { every_ns: 30_000_000_000, lasts_ns: 2_000_000_000 }),
            extra: Some(Extra { every: 10, costs_ns: 3_000_000 }),
            bucket: Some(Bucket { requests: 30_000, then_ns: 2_000_000 }),
            ..Behaviour::parallel(4, 1_000_000)
        };
        let expected = expected.zone_rate(0..16 << 20, 5e7).zone_latency(16 << 20..32 << 20, 2_000_000);
        assert_eq!(behaviour, expected);
    }

    #[test]
    fn nonsense_is_refused() {
        for words in [
            "--zone 0-16M",
            "--zone 0-16M=0MB/s",
            "--zone 16M-0=1ms",
            "--eio 5",
            "--stall 2s/30s",
            "--extra 0/1ms",
            "--bucket 9/0s",
            "--single --parallel 2",
            "--system wd2500 --latency 1ms",
            "--capacity many",
        ] {
            assert!(arguments(words).is_err(), "{words}");
        }
    }

    #[test]
    fn systems_are_found_by_name_and_by_file() {
        assert!(simulated("wd2500", 1).is_ok());
        let unknown = simulated("no-such-disk", 1).unwrap_err().to_string();
        assert!(unknown.contains("no-such-disk"), "{unknown}");
        let file = tempfile::Builder::new().suffix(".toml").tempfile().unwrap();
        std::fs::write(file.path(), "extends = \"wd2500\"\n").unwrap();
        let named = simulated(&file.path().to_string_lossy(), 1).unwrap();
        assert_eq!(named.capacity_bytes(), simulated("wd2500", 1).unwrap().capacity_bytes());
    }
}
