//! Command lines of dd from a seed: all operands, right and wrong values, files, devices and packets on standard input.

use rdsk_stats::rng::SplitMix64;

/// One command line, and the packets that standard input gives, if it is no file.
#[derive(Debug)]
pub(crate) struct Line {
    pub(crate) operands: Vec<String>,
    pub(crate) packets: Vec<usize>,
    /// What a shell does with the standard descriptors.
    pub(crate) redirection: &'static str,
}

pub(crate) struct Lines(SplitMix64);

const INPUTS: &[&str] =
    &["in", "in", "in", "holes", "holes", "zeros", "empty", "link", "nope", "dir", "/dev/zero", "a=b ~{x}"];
const OUTPUTS: &[&str] =
    &["out", "out", "new", "new", "other", "nodir/x", "dir", "/dev/null", "/dev/full", "it's new", "~n{}"];
const SIZES: &[&str] = &["1", "2", "3", "7", "13", "512", "1b", "100", "1k", "1000", "4096", "5x7", "2kB"];
const COUNTS: &[&str] = &["0", "1", "2", "3", "7", "10", "1x2", "1b", "10B", "100B", "1kB"];
const SKIPS: &[&str] = &["0", "1", "2", "3", "9", "100", "5B", "1k", "1kB"];
const ODD_NUMBERS: &[&str] = &[
    "0", "1x2", "2x3", "5c", "1w", "1KiB", "0x4", "00x3", "k", "b", "99999999999999999999",
    "9223372036854775807", "foo", "-1", "", "1xx", "2x", "1M", "2x3B", "2Bx3", "2x1kB", "0xB", "+7", "1Q",
    "0R", "1Z", "8E",
];
const FLAGS: &[&str] = &[
    "append", "dsync", "sync", "nonblock", "noatime", "nofollow", "fullblock", "nocache", "count_bytes",
    "skip_bytes", "seek_bytes", "noctty", "bogus",
];
const CONVERSIONS: &[&str] =
    &["notrunc", "fsync", "fdatasync", "sparse", "nocreat", "excl", "noerror", "sync", "bogus"];
const STATUS: &[&str] = &["none", "noxfer", "noxfer", "bogus", "progress"];
const ODD_WORDS: &[&str] = &["foo", "foo=1", "--", "--x", "-q", "=", "if", "conv"];
/// The first two leave everything as it is.
const REDIRECTIONS: &[&str] = &[
    "", "", "<&-", ">&-", "2>&-", "<&- >&- 2>&-", "2>/dev/full", "1</dev/null", "0>/dev/null", ">/dev/full",
];
const PACKETS: &[usize] = &[1, 5, 100, 511, 512, 700];

impl Lines {
    pub(crate) fn new(seed: u64) -> Self {
        Self(SplitMix64::new(seed))
    }

    pub(crate) fn next_line(&mut self) -> Line {
        let mut operands = Vec::new();
        let has_packets = self.is(0.3);
        if !has_packets {
            operands.push(self.operand("if", INPUTS));
        }
        if self.is(0.8) {
            operands.push(self.operand("of", OUTPUTS));
        }
        if self.is(0.6) {
            operands.push(self.operand("bs", SIZES));
        } else {
            for name in ["ibs", "obs"] {
                self.maybe(0.5, &mut operands, name, SIZES);
            }
        }
        // Neither a device without an end nor a directory that cannot be read ever ends by itself.
        let is_endless =
            ["if=/dev/zero", "if=dir"].iter().any(|endless| operands.contains(&(*endless).to_owned()));
        self.maybe(if is_endless { 1.0 } else { 0.6 }, &mut operands, "count", COUNTS);
        let names = [self.pick(&["skip", "iseek"]), self.pick(&["seek", "oseek"])];
        for name in names {
            self.maybe(0.3, &mut operands, name, SKIPS);
        }
        self.maybe_list(0.25, &mut operands, "iflag", FLAGS, 2);
        self.maybe_list(0.2, &mut operands, "oflag", FLAGS, 2);
        if !is_endless || has_packets {
            self.maybe_list(0.5, &mut operands, "conv", CONVERSIONS, 3);
        }
        self.maybe(0.3, &mut operands, "status", STATUS);
        let name = if is_endless { "skip" } else { self.pick(&["bs", "count", "skip", "seek"]) };
        self.maybe(0.15, &mut operands, name, ODD_NUMBERS);
        if self.is(0.05) {
            operands.push(self.pick(ODD_WORDS).to_owned());
        }
        self.0.shuffle(&mut operands);
        let packets = if has_packets { self.below(4) } else { 0 };
        let packets = (0..packets).map(|_| PACKETS[self.below(PACKETS.len())]).collect();
        let redirection = if self.is(0.2) { self.pick(REDIRECTIONS) } else { "" };
        Line { operands, packets, redirection }
    }

    fn is(&mut self, probability: f64) -> bool {
        self.0.uniform() < probability
    }

    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.0.below(bound as u64)).expect("a small number")
    }

    fn pick(&mut self, words: &[&'static str]) -> &'static str {
        words[self.below(words.len())]
    }

    fn operand(&mut self, name: &str, values: &[&'static str]) -> String {
        format!("{name}={}", self.pick(values))
    }

    fn maybe(&mut self, probability: f64, operands: &mut Vec<String>, name: &str, values: &[&'static str]) {
        if self.is(probability) {
            operands.push(self.operand(name, values));
        }
    }

    fn maybe_list(
        &mut self,
        probability: f64,
        operands: &mut Vec<String>,
        name: &str,
        values: &[&'static str],
        most: usize,
    ) {
        if self.is(probability) {
            let words: Vec<&str> = (0..=self.below(most)).map(|_| self.pick(values)).collect();
            operands.push(format!("{name}={}", words.join(",")));
        }
    }
}
