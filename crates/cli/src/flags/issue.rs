//! Flags about how I/O is issued: queue depth, streams, engine, CPUs, seed.

use super::{Flag, List, One, SWITCH, Switch, on, unique, value};
use crate::subcommand::{ALIGN, MEASURING, PATHS, RUN, SCALE, STREAM, ZONES};
use rdsk_experiment::EvidenceChoice;
use rdsk_model::{BufferPages, EngineKind, StreamRange};
use rdsk_units::Nanos;

/// Deepest queue of one stream; devices take at most a few thousand requests (NVMe: 65 536 by its standard, 1023 in
/// Linux's default).
const MAX_DEPTH: u32 = 4096;
const MAX_STREAMS: u32 = 1024;
/// Longest pause between the starts of two streams: an hour.
const MAX_STAGGER: Nanos = Nanos(3_600_000_000_000);
const ENGINES: &[&str] = &["sync", "threads", "aio", "io_uring"];
const ENGINE_KINDS: &[EngineKind] =
    &[EngineKind::Sync, EngineKind::Threads, EngineKind::Aio, EngineKind::Uring];

const PAGES: &[&str] = &["ordinary", "huge"];
const SOURCES: &[&str] = &["auto", "bpf", "sysfs"];
const CHOICES: &[EvidenceChoice] = &[EvidenceChoice::Auto, EvidenceChoice::Bpf, EvidenceChoice::Sysfs];

pub(super) static FLAGS: &[Flag] = &[
    Flag {
        name: "iodepth",
        value: One("N", |args, text| {
            value::count(text, MAX_DEPTH).map(|depth| args.options.queue_depth = Some(depth))
        }),
        uses: &[
            on(&[&RUN], "I/Os in flight: deep random cells of headline, direct cells of stream", "32 and 1"),
            on(&[&STREAM], "I/Os in flight per stream in the direct cells", "1"),
        ],
        example: "--iodepth 32",
        ..SWITCH
    },
    Flag {
        name: "streams",
        value: List("N,...", |args, texts| {
            unique(texts, |text| value::count(text, MAX_STREAMS))
                .map(|counts| args.options.stream_counts = Some(counts))
        }),
        uses: &[
            on(&[&STREAM], "Threads that issue I/O, each on its own part of the target; one number", "1"),
            on(&[&SCALE], "Numbers of streams to compare; each stream is a thread that issues I/O", "1,3,10"),
        ],
        example: "--streams 4",
        ..SWITCH
    },
    Flag {
        name: "stagger",
        value: One("TIME", |args, text| {
            value::time_or_zero_ns(text, MAX_STAGGER).map(|ns| args.options.stagger_ns = Some(ns))
        }),
        uses: &[on(
            &[&SCALE],
            "Pause between the starts of two streams; 0s starts all at once",
            "5s, less if the budget is short",
        )],
        example: "--stagger 0s",
        ..SWITCH
    },
    Flag {
        name: "shared-range",
        value: Switch(|args| args.options.range = StreamRange::Shared),
        uses: &[on(&[&SCALE], "Let every stream use the whole target instead of a part of its own", "")],
        example: "--shared-range --streams 4",
        ..SWITCH
    },
    Flag {
        name: "engine",
        value: One("ENGINE", |args, text| {
            // The Record's own spelling is accepted as well.
            let text = if text == EngineKind::Uring.as_str() { "io_uring" } else { text };
            value::word(text, ENGINES, ENGINE_KINDS).map(|engine| args.options.engine = Some(engine))
        }),
        words: ENGINES,
        uses: &[on(
            &[&RUN, &PATHS, &STREAM, &SCALE, &ALIGN],
            "How I/O is issued",
            "sync for one I/O in flight, io_uring for more",
        )],
        details: "If io_uring is unavailable or slower on the target, the default falls back to aio or threads.",
        example: "--engine threads",
        ..SWITCH
    },
    Flag {
        name: "memory",
        value: One("PAGES", |args, text| {
            value::word(text, PAGES, BufferPages::ALL).map(|pages| args.options.buffers = pages)
        }),
        words: PAGES,
        uses: &[on(
            &[&RUN, &PATHS, &STREAM, &ZONES, &SCALE, &ALIGN],
            "Pages of buffers larger than a page",
            "ordinary",
        )],
        details: "ordinary: pages of 4 KiB, which dd, fio and most programs have; a device that takes few segments gets a large block \
                  in several requests. huge: transparent huge pages, from which it gets each block in one piece.",
        example: "--memory huge",
        ..SWITCH
    },
    Flag {
        name: "evidence",
        value: One("SOURCE", |args, text| {
            value::word(text, SOURCES, CHOICES).map(|evidence| args.options.evidence = evidence)
        }),
        words: SOURCES,
        uses: &[on(MEASURING, "What counts beside the I/O", "auto")],
        details: "auto: BPF where the kernel permits it, in the first visit of a cell and in as many more as take no more than \
                  0.5 % of its time, and for a part of each above 100 000 I/Os per second; bpf: BPF throughout, or an error; sysfs: the counters of \
                  /sys alone.",
        example: "--evidence sysfs",
        ..SWITCH
    },
    Flag {
        name: "pin",
        value: One("CPULIST", |args, text| value::cpu_list(text).map(|cpus| args.options.pin_cpus = cpus)),
        uses: &[on(MEASURING, "CPUs to pin the streams to, assigned in turn, such as 0-3,8", "")],
        example: "--pin 0",
        ..SWITCH
    },
    Flag {
        name: "seed",
        value: One("N", |args, text| value::whole(text).map(|seed| args.options.seed = Some(seed))),
        uses: &[on(
            MEASURING,
            "Seed of offsets and data; the same seed gives the same offsets",
            "another one each time, 1 for sim:",
        )],
        example: "--seed 7",
        ..SWITCH
    },
];

#[cfg(test)]
mod tests {
    use super::super::testing::{parsed, refuses};
    use rdsk_model::{EngineKind, StreamRange};

    const BAD_COUNTS: &[&str] =
        &["", "0", "-1", "1.5", "4k", "99999999999999999999", "5000", "many", "--json"];

    #[test]
    fn iodepth() {
        assert_eq!(parsed(&["run", "--iodepth", "128"]).unwrap().options.queue_depth, Some(128));
        refuses("run", "--iodepth", BAD_COUNTS);
    }

    #[test]
    fn streams() {
        assert_eq!(parsed(&["stream", "--streams", "10"]).unwrap().options.stream_counts, Some(vec![10]));
        refuses("stream", "--streams", BAD_COUNTS);
    }

    #[test]
    fn engine() {
        assert_eq!(parsed(&["run", "--engine", "uring"]).unwrap().options.engine, Some(EngineKind::Uring));
        assert_eq!(parsed(&["align", "--engine", "sync"]).unwrap().options.engine, Some(EngineKind::Sync));
        for (word, engine) in
            [("aio", EngineKind::Aio), ("threads", EngineKind::Threads), ("io_uring", EngineKind::Uring)]
        {
            assert_eq!(parsed(&["run", "--engine", word]).unwrap().options.engine, Some(engine));
        }
        refuses("run", "--engine", &["", "sim", "libaio", "-1", "0"]);
    }

    #[test]
    fn pin() {
        assert_eq!(parsed(&["stream", "--pin", "0"]).unwrap().options.pin_cpus, [0]);
        refuses("stream", "--pin", &["", "-1", "x", "3-1", "0,", "8000", "99999999999999999999"]);
    }

    #[test]
    fn seed() {
        assert_eq!(parsed(&["run", "--seed", "0"]).unwrap().options.seed, Some(0));
        refuses("run", "--seed", &["", "-1", "x", "1.5", "99999999999999999999"]);
    }

    #[test]
    fn stagger_and_shared_range() {
        let scale = parsed(&["scale", "--stagger", "0s", "--shared-range", "--streams", "1,4"]).unwrap();
        assert_eq!(scale.options.stagger_ns, Some(0));
        assert_eq!(scale.options.range, StreamRange::Shared);
        assert_eq!(scale.options.stream_counts, Some(vec![1, 4]));
        refuses("scale", "--stagger", &["", "-1s", "soon", "5000h"]);
    }
}
