//! Flags that shape the workload: experiments, directions, sizes, the part of the target, the order of the offsets.

use super::{Flag, List, One, SWITCH, Switch, on, unique, value};
use crate::subcommand::{ALIGN, PATHS, RUN, SCALE, STREAM, STRIPE, ZONES};
use rdsk_experiment::IN_RUN;
use rdsk_model::{Op, Pattern};

/// Largest block: every I/O in flight needs a buffer of this size.
const MAX_BLOCK_BYTES: u64 = 1 << 30;
/// Largest offset and size of the kernel's file interface (`loff_t`).
const MAX_FILE_BYTES: u64 = i64::MAX as u64;
const EXPERIMENTS: &[&str] = &{
    let mut names = [""; IN_RUN.len()];
    let mut index = 0;
    while index < names.len() {
        names[index] = IN_RUN[index].as_str();
        index += 1;
    }
    names
};
const OPS: &[&str] = &["read", "write"];
const PATTERNS: &[&str] = &["sequential", "random"];

pub(super) static FLAGS: &[Flag] = &[
    Flag {
        name: "only",
        value: List("NAME,...", |args, texts| {
            let experiments = unique(texts, |text| value::word(text, EXPERIMENTS, IN_RUN));
            experiments.map(|experiments| args.experiments = experiments)
        }),
        words: EXPERIMENTS,
        uses: &[on(&[&RUN], "Run only these experiments", "all of them")],
        example: "--only headline,paths",
        ..SWITCH
    },
    Flag {
        name: "rw",
        value: List("OP,...", |args, texts| {
            unique(texts, |text| value::word(text, OPS, Op::ALL)).map(|ops| args.options.ops = Some(ops))
        }),
        words: OPS,
        uses: &[
            on(&[&RUN], "Measure reads, writes or both", "what each experiment does by itself"),
            on(
                &[&PATHS, &STREAM, &SCALE],
                "Measure reads, writes or both",
                "both if writing is allowed, else read",
            ),
            on(&[&ZONES], "Measure reads, writes or both", "read"),
            on(&[&ALIGN, &STRIPE], "Measure reads, writes or both", "write if writing is allowed, else read"),
        ],
        details: "Writing is allowed in the test file of a directory; any other target needs --overwrite or --destroy.",
        example: "--rw read",
        ..SWITCH
    },
    Flag {
        name: "bs",
        value: List("SIZE,...", |args, texts| {
            unique(texts, |text| value::size(text, MAX_BLOCK_BYTES))
                .map(|sizes| args.options.block_bytes = Some(sizes))
        }),
        uses: &[
            on(&[&PATHS], "Block sizes", "1M"),
            on(&[&STREAM], "Block sizes", "16k"),
            on(&[&ZONES], "Block sizes", "1M,5M,10M,20M, fewer if the budget is short"),
            on(&[&SCALE], "Block sizes", "16k to 2M in powers of 2, fewer if the budget is short"),
            on(&[&ALIGN], "Block sizes", "1,27,512,2k,4k,8k,16k,64k"),
        ],
        details: "k, M, G and T are powers of 1024 (4k is 4096 bytes); kB, MB, GB and TB are powers of 1000.",
        example: "--bs 4k,64k",
        ..SWITCH
    },
    Flag {
        name: "bytes",
        value: One("SIZE", |args, text| {
            value::size(text, MAX_FILE_BYTES).map(|bytes| args.options.pass_bytes = Some(bytes))
        }),
        uses: &[
            on(&[&PATHS], "Bytes to transfer in one pass", "100M"),
            on(&[&STREAM], "Bytes to transfer in one pass", "as many as the time allows"),
            on(
                &[&SCALE],
                "Bytes that each stream transfers in one pass, starting over at the end of its part",
                "as many as the time allows",
            ),
            on(&[&ALIGN], "Length of the part of the target that is used", "64M"),
        ],
        example: "--bytes 1G",
        ..SWITCH
    },
    Flag {
        name: "size",
        value: One("SIZE", |args, text| {
            value::size(text, MAX_FILE_BYTES).map(|bytes| args.size_bytes = Some(bytes))
        }),
        uses: &[
            on(
                &[&PATHS, &STREAM, &ALIGN],
                "Size of the test file",
                "--bytes if given, else up to 1G, less on a slow disk",
            ),
            on(&[&RUN, &ZONES, &SCALE, &STRIPE], "Size of the test file", "up to 1G, less on a slow disk"),
        ],
        details: "The test file is created in a target that is a directory.",
        example: "--size 4G",
        ..SWITCH
    },
    Flag {
        name: "offset",
        value: One("SIZE", |args, text| {
            value::size_or_zero(text, MAX_FILE_BYTES).map(|bytes| args.options.offset_bytes = bytes)
        }),
        uses: &[
            on(
                &[&PATHS, &STREAM, &ZONES, &SCALE, &ALIGN],
                "Skip this many bytes at the start of the target",
                "0",
            ),
            on(&[&STRIPE], "Skip this many bytes at the start of the target, rounded up to 4M", "0"),
        ],
        example: "--offset 1G",
        ..SWITCH
    },
    Flag {
        name: "pattern",
        value: One("PATTERN", |args, text| {
            value::word(text, PATTERNS, Pattern::ALL).map(|pattern| args.options.pattern = pattern)
        }),
        words: PATTERNS,
        uses: &[on(&[&STREAM], "Order of the offsets", "sequential")],
        example: "--pattern random",
        ..SWITCH
    },
    Flag {
        name: "end-fsync",
        value: Switch(|args| args.options.end_fsync = true),
        uses: &[on(&[&STREAM], "Also measure buffered writes that end with fsync, inside their time", "")],
        details: "This is dd's conv=fsync and fio's end_fsync=1.",
        example: "--end-fsync",
        ..SWITCH
    },
];

#[cfg(test)]
mod tests {
    use super::super::testing::{parsed, refuses};
    use rdsk_model::{Experiment, Op, Pattern};

    const BAD_SIZES: &[&str] = &[
        "",
        "-4k",
        "0",
        "99999999T",
        "4x",
        "NaN",
        "nonsense",
        "4b",
        "1e3",
        "--json",
        "0.3",
        "18446744073709551616",
    ];

    #[test]
    fn only() {
        assert_eq!(parsed(&["run"]).unwrap().experiments, rdsk_experiment::IN_RUN);
        let some = parsed(&["run", "--only", "align,paths", "--only", "paths"]).unwrap();
        assert_eq!(some.experiments, [Experiment::Align, Experiment::Paths]);
        refuses("run", "--only", &["", "stripe", "paths,", "-1", "PATHS", "0"]);
    }

    #[test]
    fn rw() {
        assert_eq!(parsed(&["paths"]).unwrap().options.ops, None);
        let both = parsed(&["paths", "--rw", "read,write"]).unwrap();
        assert_eq!(both.options.ops, Some(vec![Op::Read, Op::Write]));
        refuses("stream", "--rw", &["", "rw", "readwrite", "-read", "read,", "0"]);
    }

    #[test]
    fn bs() {
        let sizes = parsed(&["align", "--bs", "1,27,512", "--bs", "4k"]).unwrap();
        assert_eq!(sizes.options.block_bytes, Some(vec![1, 27, 512, 4096]));
        refuses("paths", "--bs", BAD_SIZES);
        refuses("paths", "--bs", &["4k,", "4k,-1", "2G", ","]);
    }

    #[test]
    fn bytes() {
        assert_eq!(parsed(&["paths", "--bytes", "100M"]).unwrap().options.pass_bytes, Some(100 << 20));
        refuses("paths", "--bytes", BAD_SIZES);
    }

    #[test]
    fn size() {
        assert_eq!(parsed(&["run", "--size", "64M"]).unwrap().size_bytes, Some(64 << 20));
        refuses("run", "--size", BAD_SIZES);
    }

    #[test]
    fn offset() {
        assert_eq!(parsed(&["stream", "--offset", "1M"]).unwrap().options.offset_bytes, 1 << 20);
        assert_eq!(parsed(&["stream", "--offset", "0"]).unwrap().options.offset_bytes, 0);
        refuses("stream", "--offset", &["", "-1", "99999999T", "8192P", "x"]);
    }

    #[test]
    fn pattern() {
        assert_eq!(parsed(&["stream", "--pattern", "random"]).unwrap().options.pattern, Pattern::Random);
        refuses("stream", "--pattern", &["", "zipf", "-random", "0"]);
    }

    #[test]
    fn end_fsync() {
        assert!(!parsed(&["stream"]).unwrap().options.end_fsync);
        assert!(parsed(&["stream", "--end-fsync"]).unwrap().options.end_fsync);
        assert!(parsed(&["paths", "--end-fsync"]).unwrap_err().message.contains("--end-fsync"));
    }
}
