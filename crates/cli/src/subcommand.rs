//! The subcommands, with what their help says. It parses nothing and runs nothing.

use rdsk_experiment::IN_RUN;
use rdsk_model::Experiment;
use std::ffi::OsStr;

/// Every subcommand whose flags are those of `flags`, in the order of the help: those that measure first, then the one that shows
/// what was measured, and before the last one those with drawings.
pub(crate) const ALL: &[&Subcommand] =
    &[&RUN, &PATHS, &STREAM, &ZONES, &SCALE, &ALIGN, &STRIPE, &SHOW, &INFO, &SIM];
pub(crate) const MEASURING: &[&Subcommand] = ALL.split_at(ALL.len() - 3).0;
/// Those that draw Records.
pub(crate) const SHOWING: &[&Subcommand] = ALL.split_at(ALL.len() - 2).0;
/// Those that draw a Record short or with all screens.
pub(crate) const SUMMING_UP: &[&Subcommand] = &[&RUN, &SHOW];
/// Those whose text has drawings.
pub(crate) const DRAWING: &[&Subcommand] = ALL.split_at(ALL.len() - 1).0;

/// A subcommand of rdsk.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Subcommand {
    pub(crate) name: &'static str,
    /// What it measures unless `--only` chooses; empty when it measures nothing.
    pub(crate) experiments: &'static [Experiment],
    /// One line for the list of commands.
    pub(crate) summary: &'static str,
    /// More for `--help`.
    pub(crate) details: &'static str,
    /// Name and help of its targets.
    pub(crate) targets: (&'static str, &'static str),
    /// Command lines to copy, each with what it does.
    examples: &'static [(&'static str, &'static str)],
}

impl Subcommand {
    /// The examples as a block for the end of the help.
    pub(crate) fn examples_text(&self) -> String {
        let examples = self.examples.iter().map(|(line, what)| format!("\n  {line}\n      {what}"));
        format!("Examples:{}", examples.collect::<String>())
    }
}

const TARGETS: (&str, &str) = ("TARGET", "Directories, files, block devices or sim:NAME [default: .]");

pub(crate) static RUN: Subcommand = Subcommand {
    name: "run",
    experiments: IN_RUN,
    summary: "Measure as much as fits into the time budget, and explain the result",
    details: "The result is one screen: the headline, what matters most, and an answer to each question; --details prints \
              the screens of all questions. A target that is a directory gets a test file, which is removed at the end. A file of yours or a block \
          device is only read, unless --overwrite or --destroy allows writing.",
    targets: TARGETS,
    examples: &[
        ("rdsk run", "the filesystem of the current directory, one minute"),
        ("rdsk run /mnt/data --budget 20s", "another filesystem, faster but less precisely"),
        ("rdsk run /dev/sdb", "a block device, only reading"),
        ("rdsk run --only headline --json result.json", "the headline figures, kept as JSON"),
        ("rdsk run /dev/sdb --dry-run", "what would be measured, without measuring it"),
    ],
};

pub(crate) static PATHS: Subcommand = Subcommand {
    name: "paths",
    experiments: &[Experiment::Paths],
    summary: "Compare direct with buffered I/O on the same bytes",
    details: "All paths transfer the same bytes sequentially, as dd does: direct, buffered, and buffered without leaving pages \
              in the cache (dontcache, Linux 6.14). Writes are timed until the data is stable.",
    targets: TARGETS,
    examples: &[
        ("rdsk paths", "a test file in the current directory"),
        ("rdsk paths /dev/sdb --rw read --bytes 1G", "a block device, 1 GiB on each path"),
        ("rdsk paths --bs 64k --runtime 5s", "another block size, 5 seconds per cell"),
    ],
};

pub(crate) static STREAM: Subcommand = Subcommand {
    name: "stream",
    experiments: &[Experiment::Stream],
    summary: "Measure one reader or writer, and show what iostat would show",
    details: "Reads are buffered, dontcache and direct; so are writes, and buffered and direct with O_DSYNC too. Each is \
          shown with the columns of iostat -x, including the queue depth.",
    targets: TARGETS,
    examples: &[
        ("rdsk stream --bs 16k", "one writer and one reader, 16 KiB each"),
        ("rdsk stream /dev/sdb --rw read --iodepth 32", "direct reads, 32 in flight"),
        ("rdsk stream --pattern random --bs 4k", "random offsets"),
    ],
};

pub(crate) static ZONES: Subcommand = Subcommand {
    name: "zones",
    experiments: &[Experiment::Zones],
    summary: "Measure speed by position: zones of the disk, drift, bands of slow requests",
    details: "Every pass visits the same positions in an order of its own, and the time of each request is kept. A step in \
          the rate marks a zone. Requests that are late by a fixed time form a band, whose cause is tested for.",
    targets: TARGETS,
    examples: &[
        ("rdsk zones /dev/sdb", "the whole disk, as many positions and passes as a minute allows"),
        (
            "rdsk zones /dev/sdb --bs 1M,5M --runs 10 --points 200",
            "these block sizes, passes and positions, however long they take",
        ),
        ("rdsk zones /dev/sdb --full --runs 1 --bs 20M --json z.json", "every block once, kept as JSON"),
        ("rdsk zones sim:freebsd-wd800jd", "a simulated disk"),
    ],
};

pub(crate) static SCALE: Subcommand = Subcommand {
    name: "scale",
    experiments: &[Experiment::Scale],
    summary: "Measure the gain from more streams, larger blocks and more targets",
    details: "Sequential readers and writers, each on its own part of a target, are distributed over the targets round-robin \
          and started one after the other. The total rate is that of the time in which all of them ran.",
    targets: TARGETS,
    examples: &[
        ("rdsk scale", "a test file in the current directory, one minute"),
        (
            "rdsk scale /dev/sdb /dev/sdc --rw read --streams 1,2,4",
            "two disks, streams distributed over them",
        ),
        (
            "rdsk scale --bs 64k,1M --runtime 5s --stagger 0s",
            "five seconds per cell, all streams started together",
        ),
    ],
};

pub(crate) static ALIGN: Subcommand = Subcommand {
    name: "align",
    experiments: &[Experiment::Align],
    summary: "Measure the cost of small and misaligned writes",
    details: "Latency by size and by alignment, cached and uncached, buffered, dontcache and direct, and which writes make \
              the kernel read first.",
    targets: TARGETS,
    examples: &[
        ("rdsk align", "all sizes, on a test file"),
        ("rdsk align --bs 512,4k,64k", "these sizes only"),
    ],
};

pub(crate) static STRIPE: Subcommand = Subcommand {
    name: "stripe",
    experiments: &[Experiment::Stripe],
    summary: "Find the chunk and the full stripe of an array, and what partial stripes cost",
    details: "Where the kernel describes the array (md, device mapper, LVM), its words give chunk, full stripe, level and \
          where the first stripe begins, and whole stripes are compared with parts of them. Where it does not (hardware \
          RAID, a SAN), requests of chosen sizes at chosen offsets show them: their cost steps at the boundaries of \
          chunks and stripes. Requests are direct, one at a time: O_DSYNC writes if writing is allowed, else reads, \
          whose cost leaves the stripe uncertain.",
    targets: TARGETS,
    examples: &[
        ("rdsk stripe /dev/md0", "an array that is only read"),
        (
            "rdsk stripe /dev/md0 --rw write --destroy IDENTITY",
            "an empty array that is written: what partial stripes cost, too",
        ),
        ("rdsk stripe sim:raid5", "a simulated array"),
    ],
};
pub(crate) static SHOW: Subcommand = Subcommand {
    name: "show",
    experiments: &[],
    summary: "Draw an earlier run again, from the history or from its JSON",
    details: "A run is shown on one screen, or with --details on the screens of all questions. The Record of a single question \
              is shown on the screen of that question.",
    targets: ("RUN", "An id of rdsk list, its beginning, a label, the word last, or a file of --json"),
    examples: &[
        ("rdsk show last", "the newest run in the history"),
        ("rdsk show result.json", "the short page of a run"),
        ("rdsk show result.json --details", "all screens"),
        ("rdsk show result.json --json small.json --json-compact", "a copy without the series"),
    ],
};

pub(crate) static INFO: Subcommand = Subcommand {
    name: "info",
    experiments: &[],
    summary: "Show what a target is, what it sits on, and what rdsk would refuse to do with it",
    details: "Refusals come with their reason. Nothing is written and nothing is measured.",
    targets: ("TARGET", "Directories, files, block devices or sim:NAME [default: every block device and .]"),
    examples: &[
        ("rdsk info", "all block devices and the current directory"),
        ("rdsk info /dev/sdb", "one device, and whether it may be written"),
        ("rdsk info --json - .", "the same as JSON"),
    ],
};

pub(crate) static SIM: Subcommand = Subcommand {
    name: "sim",
    experiments: &[],
    summary: "List the simulated systems, or show the parameters of one",
    details: "Any command that measures takes a simulated system as sim:NAME, its second LUN as sim:NAME/1, and a system of \
          your own as sim:./FILE.toml.",
    targets: ("ACTION", "list, or show NAME [default: list]"),
    examples: &[
        ("rdsk sim list", "every system, a line each"),
        ("rdsk sim show wd2500", "the parameters of one, as the text of a file that runs as sim:./FILE.toml"),
        ("rdsk sim show ./mydisk.toml", "the parameters of your own, checked"),
    ],
};

/// A subcommand with a parser of its own. In the list of commands they stand after [`ALL`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OwnCommand {
    List,
    Compare,
    Report,
    Export,
    Import,
    Delete,
    Dd,
    Watch,
    Schema,
    Completions,
    Man,
}

/// All of them, in the order of the help.
pub(crate) const OWN: &[OwnCommand] = &[
    OwnCommand::List,
    OwnCommand::Compare,
    OwnCommand::Report,
    OwnCommand::Export,
    OwnCommand::Import,
    OwnCommand::Delete,
    OwnCommand::Dd,
    OwnCommand::Watch,
    OwnCommand::Schema,
    OwnCommand::Completions,
    OwnCommand::Man,
];

impl OwnCommand {
    /// The one that a word on the command line names.
    pub(crate) fn named(word: &OsStr) -> Option<Self> {
        OWN.iter().copied().find(|own| word == own.name())
    }

    pub(crate) const fn name(self) -> &'static str {
        self.words().0
    }

    /// One line for the list of commands.
    pub(crate) const fn summary(self) -> &'static str {
        self.words().1
    }

    const fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::List => ("list", "List the runs in the history, newest first"),
            Self::Compare => {
                ("compare", "Compare runs cell by cell, and say what changed and how sure that is")
            }
            Self::Report => ("report", "Write a page with figures of earlier runs, or the figures as files"),
            Self::Export => ("export", "Write Records as CSV, OpenMetrics, Markdown or JSON"),
            Self::Import => {
                ("import", "Read what fio measured, or a Record, and explain it as far as it goes")
            }
            Self::Delete => ("delete", "Delete runs from the history"),
            Self::Dd => ("dd", "Copy as dd does with dd's own operands, and say what that measured"),
            Self::Schema => ("schema", "Print the JSON Schema of a Record or of watch --json"),
            Self::Completions => ("completions", "Print what completes the command line in a shell"),
            Self::Man => ("man", "Print the manual page of rdsk or of a command"),
            Self::Watch => ("watch", "Show live what block devices do, or what the I/O of a command became"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_names_one_command() {
        for (place, own) in OWN.iter().enumerate() {
            assert_eq!(OwnCommand::named(own.name().as_ref()), Some(*own), "two have one name");
            assert_eq!(OWN.iter().position(|other| other == own), Some(place));
            assert!(ALL.iter().all(|other| other.name != own.name()));
        }
        assert_eq!(OwnCommand::named("run".as_ref()), None);
    }

    #[test]
    fn every_example_is_a_command_line_that_parses() {
        for subcommand in ALL {
            assert_eq!(crate::parse::named(subcommand.name), Some(*subcommand), "two have one name");
            assert!(!subcommand.examples.is_empty());
            for (line, _) in subcommand.examples {
                let words: Vec<_> = line.split_whitespace().map(Into::into).collect();
                assert_eq!(words[1], subcommand.name, "{line}");
                let parsed = crate::parse::parse(&words);
                assert!(matches!(parsed, Ok(crate::parse::Parsed::Args(_))), "{line}");
            }
        }
    }
}
