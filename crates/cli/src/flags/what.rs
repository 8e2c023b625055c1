//! Flags that say what is asked of the target: questions, directions, sizes, places.

use super::{Flag, listed, many, one, value, valued};
use crate::cli_args::CliArgs;
use crate::subcommand::Subcommand;
use clap::{Arg, ArgMatches};
use rdsk_model::{Experiment, Op};

/// Largest block: every I/O in flight needs a buffer of this size.
pub(crate) const MAX_BLOCK_BYTES: u64 = 1 << 30;

/// Largest offset and size of the kernel's file interface (`loff_t`).
const MAX_FILE_BYTES: u64 = i64::MAX as u64;

/// `--only`
pub(super) struct Only;

impl Flag for Only {
    fn name(&self) -> &'static str {
        "only"
    }
    fn subcommands(&self) -> &'static [Subcommand] {
        &[Subcommand::Run]
    }
    fn arg(&self) -> Arg {
        listed(self.name(), "EXPERIMENT", "Ask only these: headline, paths, stream, align, zones, scale")
            .value_parser(|text: &str| value::word(text, crate::subcommand::IN_RUN))
    }
    fn read(&self, matches: &ArgMatches, args: &mut CliArgs) {
        if let Some(experiments) = many::<Experiment>(matches, self.name()) {
            args.experiments = experiments;
        }
    }
}

/// `--rw`
pub(super) struct Rw;

impl Flag for Rw {
    fn name(&self) -> &'static str {
        "rw"
    }
    fn subcommands(&self) -> &'static [Subcommand] {
        Subcommand::MEASURING
    }
    fn arg(&self) -> Arg {
        listed(self.name(), "read,write", "Directions [default: of zones read; of align and stripe write where it is allowed, else read; else both]")
            .value_parser(|text: &str| value::word(text, Op::ALL))
    }
    fn read(&self, matches: &ArgMatches, args: &mut CliArgs) {
        args.options.ops = many(matches, self.name());
    }
}

/// `--bs`
pub(super) struct Bs;

impl Flag for Bs {
    fn name(&self) -> &'static str {
        "bs"
    }
    fn subcommands(&self) -> &'static [Subcommand] {
        Subcommand::WITH_BLOCKS
    }
    fn arg(&self) -> Arg {
        listed(self.name(), "SIZE,...", "Block sizes: 4k is 4096 bytes, 4kB is 4000")
            .value_parser(|text: &str| value::size(text, MAX_BLOCK_BYTES))
    }
    fn read(&self, matches: &ArgMatches, args: &mut CliArgs) {
        args.options.block_bytes = many(matches, self.name());
    }
}

/// `--bytes`
pub(super) struct Bytes;

impl Flag for Bytes {
    fn name(&self) -> &'static str {
        "bytes"
    }
    fn subcommands(&self) -> &'static [Subcommand] {
        Subcommand::WITH_TIMED_CELLS
    }
    fn arg(&self) -> Arg {
        valued(
            self.name(),
            "SIZE",
            "Bytes that one pass moves; of scale, each stream; of align, the part that is used",
        )
        .value_parser(|text: &str| value::size(text, MAX_FILE_BYTES))
    }
    fn read(&self, matches: &ArgMatches, args: &mut CliArgs) {
        args.options.pass_bytes = one(matches, self.name());
    }
}

/// `--size`
pub(super) struct Size;

impl Flag for Size {
    fn name(&self) -> &'static str {
        "size"
    }
    fn subcommands(&self) -> &'static [Subcommand] {
        Subcommand::MEASURING
    }
    fn arg(&self) -> Arg {
        valued(self.name(), "SIZE", "Size of the test file [default: up to 1G, less on a slow disk]")
            .value_parser(|text: &str| value::size(text, MAX_FILE_BYTES))
    }
    fn read(&self, matches: &ArgMatches, args: &mut CliArgs) {
        args.size_bytes = one(matches, self.name());
    }
}

/// `--offset`
pub(super) struct Offset;

impl Flag for Offset {
    fn name(&self) -> &'static str {
        "offset"
    }
    fn subcommands(&self) -> &'static [Subcommand] {
        Subcommand::EXPERIMENTS
    }
    fn arg(&self) -> Arg {
        valued(self.name(), "SIZE", "First byte of the target that is used [default: 0]")
            .value_parser(|text: &str| value::size_or_zero(text, MAX_FILE_BYTES))
    }
    fn read(&self, matches: &ArgMatches, args: &mut CliArgs) {
        if let Some(offset_bytes) = one(matches, self.name()) {
            args.options.offset_bytes = offset_bytes;
        }
    }
}

/// `--pattern`
pub(super) struct Pattern;

impl Flag for Pattern {
    fn name(&self) -> &'static str {
        "pattern"
    }
    fn subcommands(&self) -> &'static [Subcommand] {
        &[Subcommand::Stream]
    }
    fn arg(&self) -> Arg {
        valued(self.name(), "PATTERN", "Order of the offsets: sequential or random [default: sequential]")
            .value_parser(|text: &str| value::word(text, rdsk_model::Pattern::ALL))
    }
    fn read(&self, matches: &ArgMatches, args: &mut CliArgs) {
        if let Some(pattern) = one(matches, self.name()) {
            args.options.pattern = pattern;
        }
    }
}

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
        assert_eq!(parsed(&["run"]).unwrap().experiments, crate::subcommand::IN_RUN);
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
}
