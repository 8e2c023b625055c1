//! The commands by name, with what their help says. It parses nothing and runs nothing.

use rdsk_model::Experiment;

/// A command of rdsk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Subcommand {
    /// The whole characterization.
    Run,
    /// Direct against buffered.
    Paths,
    /// One stream, watched by iostat.
    Stream,
    /// Write latency by size and alignment.
    Align,
    /// Speed by position.
    Zones,
    /// Block size × streams × targets.
    Scale,
    /// Chunk and full stripe.
    Stripe,
    /// What a target is.
    Info,
    /// Which systems can be simulated.
    Sim,
}

/// The questions that `rdsk run` asks.
pub(crate) const IN_RUN: &[Experiment] = &[
    Experiment::Headline,
    Experiment::Paths,
    Experiment::Stream,
    Experiment::Align,
    Experiment::Zones,
    Experiment::Scale,
];

impl Subcommand {
    /// Every command, in the order of the help.
    pub(crate) const ALL: &'static [Self] = &[
        Self::Run,
        Self::Paths,
        Self::Stream,
        Self::Zones,
        Self::Scale,
        Self::Align,
        Self::Stripe,
        Self::Info,
        Self::Sim,
    ];
    /// The commands that measure.
    pub(crate) const MEASURING: &'static [Self] =
        &[Self::Run, Self::Paths, Self::Stream, Self::Zones, Self::Scale, Self::Align, Self::Stripe];
    /// The commands whose page has drawings.
    pub(crate) const DRAWING: &'static [Self] = &[
        Self::Run,
        Self::Paths,
        Self::Stream,
        Self::Zones,
        Self::Scale,
        Self::Align,
        Self::Stripe,
        Self::Info,
    ];
    /// The commands that ask one question.
    pub(crate) const EXPERIMENTS: &'static [Self] =
        &[Self::Paths, Self::Stream, Self::Zones, Self::Scale, Self::Align, Self::Stripe];
    /// The commands whose block sizes can be chosen.
    pub(crate) const WITH_BLOCKS: &'static [Self] =
        &[Self::Paths, Self::Stream, Self::Zones, Self::Scale, Self::Align];
    /// The commands whose cells take a time, or a number of bytes.
    pub(crate) const WITH_TIMED_CELLS: &'static [Self] =
        &[Self::Paths, Self::Stream, Self::Scale, Self::Align];

    /// The commands whose cells end when they are precise enough, and whose engine can be chosen.
    pub(crate) const WITH_ENGINES: &'static [Self] =
        &[Self::Run, Self::Paths, Self::Stream, Self::Scale, Self::Align];

    /// The word on the command line.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Run => "run",
            Self::Paths => "paths",
            Self::Stream => "stream",
            Self::Align => "align",
            Self::Zones => "zones",
            Self::Scale => "scale",
            Self::Stripe => "stripe",
            Self::Info => "info",
            Self::Sim => "sim",
        }
    }

    /// The questions that the command asks unless `--only` chooses; empty for a command that measures nothing.
    pub(crate) fn experiments(self) -> Vec<Experiment> {
        match self {
            Self::Run => IN_RUN.to_vec(),
            Self::Paths => vec![Experiment::Paths],
            Self::Stream => vec![Experiment::Stream],
            Self::Align => vec![Experiment::Align],
            Self::Zones => vec![Experiment::Zones],
            Self::Scale => vec![Experiment::Scale],
            Self::Stripe => vec![Experiment::Stripe],
            Self::Info | Self::Sim => Vec::new(),
        }
    }

    /// One line for the list of commands.
    pub(crate) const fn about(self) -> &'static str {
        match self {
            Self::Run => "Measure everything that fits into the time budget, and explain it",
            Self::Paths => "Compare direct I/O with buffered I/O: the same bytes on both paths",
            Self::Stream => "Watch one stream the way iostat does, by buffered, direct and dsync",
            Self::Align => "Show what a write costs by its size and by its alignment",
            Self::Zones => "Show speed by position: zones of the disk, drift, bands of slower requests",
            Self::Scale => "Show what more streams, larger blocks and more targets give",
            Self::Stripe => "Find the chunk and the full stripe of an array from what requests take",
            Self::Info => "Show what a target is, what it sits on and what would be refused",
            Self::Sim => "List the simulated systems, and show the figures of one",
        }
    }

    /// A paragraph for `--help`.
    pub(crate) const fn details(self) -> &'static str {
        match self {
            Self::Run => {
                "Measure everything that fits into the time budget, and explain it.\n\nA TARGET that is a \
                 directory gets a test file, which is removed at the end. A file of yours and a block device are \
                 only read, unless writing is allowed by --overwrite or --destroy."
            }
            Self::Paths => {
                "Compare direct I/O with buffered I/O: the same bytes on both paths, sequentially, as dd moves \
                 them, each until its data is stable."
            }
            Self::Stream => {
                "Watch one stream the way iostat does, by buffered, direct and dsync, with the row of iostat -x \
                 and the queue depth beside each."
            }
            Self::Align => {
                "Show what a write costs by its size and by its alignment, cached and uncached, buffered and \
                 direct, and which writes make the kernel read first."
            }
            Self::Zones => {
                "Show speed by position: every pass visits the same positions in an order of its own, and the \
                 time of each is kept. Where the rate steps there is a zone; where a part of the requests is later \
                 by a fixed time there is a band, and its cause is tested for. Reads unless --rw write is asked for."
            }
            Self::Scale => {
                "Show what more streams, larger blocks and more targets give: sequential readers and writers, \
                 each on its own part, dealt round the targets in order and started one after the other. The \
                 aggregate is that of the time in which all of them ran."
            }
            Self::Stripe => {
                "Find the chunk and the full stripe of an array: requests of chosen sizes at chosen offsets, one at a \
                 time, and where their cost steps. Durable direct writes where writing is allowed, else reads, which \
                 tell the chunk and are not sure of the stripe. Where the members' own counters can be seen they are \
                 read around every request and tell exactly."
            }
            Self::Info => {
                "Show what a target is, what it sits on and what would be refused, with the reason. Nothing is \
                 written and nothing is measured. Without TARGET: every block device and the current directory."
            }
            Self::Sim => {
                "List the simulated systems, and show the figures of one with their sources.\n\nrdsk sim list tells \
                 which there are; rdsk sim show NAME tells what one is made of. Any command measures them as \
                 sim:NAME, and a system of your own as sim:./FILE.toml; sim:NAME/1 is its second LUN."
            }
        }
    }

    /// Command lines to copy, each with what it does.
    pub(crate) const fn examples(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Run => &[
                ("rdsk run", "the filesystem of the current directory, one minute"),
                ("rdsk run /mnt/data --budget 20s", "another filesystem, sooner and less exactly"),
                ("rdsk run /dev/sdb", "a block device, only read"),
                ("rdsk run --only headline --json result.json", "the headline, kept as a Record"),
                ("rdsk run /dev/sdb --dry-run", "what would be done, without doing it"),
            ],
            Self::Paths => &[
                ("rdsk paths", "a test file in the current directory"),
                ("rdsk paths /dev/sdb --rw read --bytes 1G", "a device, 1 GiB on each path"),
                ("rdsk paths --bs 64k --runtime 5s", "another block size, 5 seconds per cell"),
            ],
            Self::Stream => &[
                ("rdsk stream --bs 16k", "one writer and one reader, 16 KiB each"),
                ("rdsk stream /dev/sdb --rw read --iodepth 32", "direct reads, 32 in flight"),
                ("rdsk stream --pattern random --bs 4k", "random offsets"),
            ],
            Self::Align => &[
                ("rdsk align", "the table of sizes, on a test file"),
                ("rdsk align --bs 512,4k,64k", "these sizes only"),
            ],
            Self::Zones => &[
                ("rdsk zones /dev/sdb", "the whole disk, as many positions and passes as a minute allows"),
                ("rdsk zones /dev/sdb --bs 1M,5M --runs 10 --points 200", "these, however long they take"),
                (
                    "rdsk zones /dev/sdb --full --runs 1 --bs 20M --json z.json",
                    "every block, kept as a Record",
                ),
                ("rdsk zones sim:freebsd-wd800jd", "a simulated disk of the report"),
            ],
            Self::Scale => &[
                ("rdsk scale", "a test file in the current directory, one minute"),
                (
                    "rdsk scale /dev/sdb /dev/sdc --rw read --streams 1,2,4",
                    "two disks, streams dealt round them",
                ),
                (
                    "rdsk scale --bs 64k,1M --runtime 5s --stagger 0s",
                    "five seconds per cell, started together",
                ),
            ],
            Self::Stripe => &[
                ("rdsk stripe /dev/md0", "an array that is only read: its chunk"),
                (
                    "rdsk stripe /dev/md0 --rw write --destroy IDENTITY",
                    "an empty array, written: its full stripe too",
                ),
                ("rdsk stripe sim:raid5", "a simulated array"),
            ],
            Self::Info => &[
                ("rdsk info", "all block devices and the current directory"),
                ("rdsk info /dev/sdb", "one device, and why it may not be written"),
                ("rdsk info --json - .", "the same as JSON"),
            ],
            Self::Sim => &[
                ("rdsk sim list", "every system, with the report that it is from"),
                ("rdsk sim show wd2500", "the figures of one, as a text to start your own from"),
                ("rdsk sim show ./mydisk.toml", "the figures of your own, checked"),
            ],
        }
    }

    /// The examples as a block for the end of the help.
    pub(crate) fn examples_text(self) -> String {
        use std::fmt::Write as _;
        let mut text = String::from("Examples:\n");
        for (line, what) in self.examples() {
            writeln!(text, "  {line}\n      {what}").expect("writing to a String cannot fail");
        }
        text.truncate(text.trim_end().len());
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_example_is_a_command_line_that_parses() {
        for subcommand in Subcommand::ALL {
            assert!(!subcommand.examples().is_empty());
            for (line, _) in subcommand.examples() {
                let words: Vec<_> = line.split_whitespace().map(Into::into).collect();
                assert_eq!(words[1], subcommand.name(), "{line}");
                assert!(matches!(crate::parse::parse(&words), Ok(crate::parse::Parsed::Args(_))), "{line}");
            }
        }
    }
}
