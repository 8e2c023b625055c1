//! What the programs in the kernel and this room agree upon: the numbers of the counters, keys and values of the maps, as
//! `bpf/shared.h` has them. Plain data; a test compares the two.

/// Buckets of a latency histogram per power of two.
pub(super) const ROW: usize = 128;
/// Powers of two of a latency histogram.
pub(super) const ROWS: u32 = 34;

/// So many devices are found by comparing their numbers.
pub(super) const NEAR_DEVICES: usize = 4;

/// The counters of one device, by their index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub(super) enum Counter {
    /// Requests whose issuing is being counted, or was.
    IssuedBegun,
    /// Requests given to the driver.
    Issued,
    /// The moments of issuing, summed, in nanoseconds modulo 2⁶⁴, but for those that took the place of a healed one.
    IssuedAt,
    /// Requests whose completion is being counted, or was.
    CompletedBegun,
    /// Requests whose last byte is done.
    Completed,
    /// The moments of completion, summed.
    CompletedAt,
    /// The timed latencies, summed, in nanoseconds.
    LatencySum,
    /// Requests whose completion was never seen; their time in flight goes on in the one that took their place.
    Healed,
    /// Completions of what was not seen to begin.
    Unseen,
    /// Requests without data that asked for a flush; sysfs counts them as writes.
    Empty,
    /// Events that found a map full.
    Overflow,
    /// Bios added to the end of a waiting request.
    BackMerges,
    /// Bios added to its start.
    FrontMerges,
    /// Waiting requests that became one.
    RequestMerges,
    /// Bios that were cut.
    Splits,
    /// Requests that are being counted as given back, or were.
    RequeuedBegun,
    /// Requests that the driver gave back.
    Requeued,
    /// The moments when it did, summed.
    RequeuedAt,
    /// Bios without data that ask for a flush, at a device that takes requests.
    FlushBios,
    /// Completions of requests that were made before counting began, which are no [`Counter::Unseen`].
    Earlier,
    /// Those of them that are flushes.
    EarlierFlushes,
}

/// Words of a row of them.
pub(super) const COUNTERS: usize = 24;

/// Counts with moments: while the first of a pair and the second differ, counts and moments do not belong together.
pub(super) const BRACKETS: [(Counter, Counter); 3] = [
    (Counter::IssuedBegun, Counter::Issued),
    (Counter::CompletedBegun, Counter::Completed),
    (Counter::RequeuedBegun, Counter::Requeued),
];

/// What is known of one device, by its index in a row of DEVICES (`struct device`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub(super) enum DeviceWord {
    /// What began earlier is not followed to its end; 0 while the device is not counted, odd while it is only counted.
    Since,
    /// Where its slots begin.
    Base,
    /// Slots of each hardware queue.
    Tags,
    /// Those of them that are the driver's.
    DriverTags,
    /// Hardware queues; 0 for a device that takes bios.
    Queues,
    /// Requests in flight now.
    InFlight,
    /// The most that was in flight.
    Deepest,
}

/// The bit of [`DeviceWord::Since`] that says: no clocks, no latencies, no depth and no origins of bios, only requests,
/// merges and splits.
pub(super) const ONLY_COUNTED: u64 = 1;

/// Words of such a row.
pub(super) const DEVICE_WORDS: usize = 8;

/// The words of STATE, by their index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub(super) enum State {
    /// Processes that were not followed because there were too many.
    Unfollowed = 1,
    /// Not 0 when the hash maps hold anything.
    More,
}

/// How many words STATE has.
pub(super) const STATE_WORDS: usize = 3;

/// Rows of KINDS for each processor, and words of a row.
pub(super) const KIND_ROWS: u32 = 128;
pub(super) const KIND_WORDS: usize = 4;
/// Rows of ORIGINS for each processor, and words of a row.
pub(super) const ORIGIN_ROWS: u32 = 64;
pub(super) const ORIGIN_WORDS: usize = 8;
/// Rows of STARTS, and words of a row.
pub(super) const START_ROWS: u32 = 1 << 14;
pub(super) const START_WORDS: usize = 8;

/// Flags of a request or bio, as bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Flags(pub(super) u32);

impl Flags {
    const FUA: u32 = 1;
    const PREFLUSH: u32 = 2;
    const READ_AHEAD: u32 = 4;
    const NOWAIT: u32 = 8;

    /// Done only when it is durable (force unit access).
    pub fn is_fua(self) -> bool {
        self.0 & Self::FUA != 0
    }

    /// What was written before must be durable first.
    pub fn is_preflush(self) -> bool {
        self.0 & Self::PREFLUSH != 0
    }

    /// Reads what no call asked for yet.
    pub fn is_read_ahead(self) -> bool {
        self.0 & Self::READ_AHEAD != 0
    }

    /// Fails where it would wait; such bios may arrive twice.
    pub fn is_nowait(self) -> bool {
        self.0 & Self::NOWAIT != 0
    }
}

/// What a request or bio does (`enum req_op`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum BlockOp {
    /// Reads.
    Read,
    /// Writes.
    Write,
    /// Makes what was written durable.
    Flush,
    /// Gives space back.
    Discard,
    /// Makes the device write zeroes by itself; the kernel's counters call it a write.
    WriteZeroes,
    /// Anything else, by its number: zones, the driver's own.
    Other(u32),
}

impl BlockOp {
    pub(super) fn from_number(number: u32) -> Self {
        match number {
            0 => Self::Read,
            1 => Self::Write,
            2 => Self::Flush,
            3 => Self::Discard,
            9 => Self::WriteZeroes,
            other => Self::Other(other),
        }
    }
}

/// Requests of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RequestKind {
    /// The device's index among those that are observed.
    pub device: usize,
    /// What they do.
    pub op: BlockOp,
    /// How.
    pub flags: Flags,
    /// Exact size in bytes.
    pub bytes: u32,
}

/// The words of `struct request_kind`.
pub(super) type RequestKey = [u64; 2];

impl From<RequestKey> for RequestKind {
    fn from([what, bytes]: RequestKey) -> Self {
        let what = What::from(what);
        // The kernel has it in 32 bits.
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        Self { device: what.device, op: what.op, flags: what.flags, bytes }
    }
}

/// What a request or bio is, in one word that is never 0 (`WHAT`).
struct What {
    device: usize,
    task: u8,
    flags: Flags,
    op: BlockOp,
}

impl From<u64> for What {
    fn from(word: u64) -> Self {
        let [op, flags, task, _, device @ ..] = word.to_le_bytes();
        Self {
            device: u32::from_le_bytes(device) as usize,
            task,
            flags: Flags(flags.into()),
            op: BlockOp::from_number(op.into()),
        }
    }
}

/// Whose bio it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Task {
    /// This process.
    This,
    /// Another one.
    Other,
    /// A thread of the kernel: writeback, a loop device's worker.
    Kernel,
    /// What this process started, and what that started, if the programs follow them.
    Child,
}

impl Task {
    /// Its word in the Record.
    pub fn word(self) -> &'static str {
        match self {
            Self::This => "this",
            Self::Other => "other",
            Self::Kernel => "kernel",
            Self::Child => "child",
        }
    }
}

/// Where bios come from.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct BioOrigin {
    /// The device's index among those that are observed.
    pub device: usize,
    /// What they do.
    pub op: BlockOp,
    /// How.
    pub flags: Flags,
    /// Number of the system call; `None` for threads that make none.
    pub system_call: Option<u32>,
    /// Whose they are.
    pub task: Task,
    /// Name of the thread (`comm`), at most 15 bytes; untrusted text. `(others)` for all that came when the maps held as many as they
    /// have room for, at least 3072.
    pub thread: String,
}

/// The words of `struct bio_origin`.
pub(super) type BioKey = [u64; 4];

impl From<BioKey> for BioOrigin {
    fn from([what, call, name @ ..]: BioKey) -> Self {
        let what = What::from(what);
        let bytes: Vec<u8> =
            name.into_iter().flat_map(u64::to_ne_bytes).take_while(|byte| *byte != 0).collect();
        Self {
            device: what.device,
            op: what.op,
            flags: what.flags,
            // All ones if it was none.
            system_call: u32::try_from(call).ok(),
            task: match what.task {
                0 => Task::This,
                2 => Task::Kernel,
                3 => Task::Child,
                _ => Task::Other,
            },
            thread: String::from_utf8_lossy(&bytes).into_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = include_str!("../../bpf/shared.h");

    /// The names of an enum in the header, in their order.
    fn names_of_the_header(name: &str) -> Vec<String> {
        let list =
            HEADER.split(&format!("enum {name} {{")).nth(1).and_then(|rest| rest.split('}').next()).unwrap();
        let lines = list.lines().map(str::trim).filter(|line| !line.is_empty());
        lines.map(|line| line.split([',', ' ']).next().unwrap().to_owned()).collect()
    }

    fn defined(name: &str) -> String {
        let line = HEADER.lines().find_map(|line| line.strip_prefix(&format!("#define {name} "))).unwrap();
        line.to_owned()
    }

    #[test]
    fn the_header_has_the_same_counters() {
        let header = names_of_the_header("counter");
        assert_eq!(header.len(), Counter::EarlierFlushes as usize + 2, "{header:?}");
        for (counter, name) in [
            (Counter::IssuedBegun, "ISSUED_BEGUN"),
            (Counter::Issued, "ISSUED"),
            (Counter::IssuedAt, "ISSUED_AT"),
            (Counter::Healed, "HEALED"),
            (Counter::Overflow, "OVERFLOW"),
            (Counter::Splits, "SPLITS"),
            (Counter::CompletedBegun, "COMPLETED_BEGUN"),
            (Counter::Completed, "COMPLETED"),
            (Counter::CompletedAt, "COMPLETED_AT"),
            (Counter::LatencySum, "LATENCY_SUM"),
            (Counter::Empty, "EMPTY"),
            (Counter::RequestMerges, "REQUEST_MERGES"),
            (Counter::RequeuedBegun, "REQUEUED_BEGUN"),
            (Counter::Requeued, "REQUEUED"),
            (Counter::RequeuedAt, "REQUEUED_AT"),
            (Counter::FlushBios, "FLUSH_BIOS"),
            (Counter::Earlier, "EARLIER"),
            (Counter::EarlierFlushes, "EARLIER_FLUSHES"),
        ] {
            assert_eq!(header[counter as usize], name);
        }
        assert!(HEADER.contains(&format!("\tCOUNTERS = {COUNTERS}\n")));
    }

    /// The fields of a struct of words in the header, each as often as it has words.
    fn words_of_the_header(name: &str) -> Vec<String> {
        let body = HEADER.split(&format!("struct {name} {{")).nth(1).unwrap();
        let lines =
            body.split('}').next().unwrap().lines().filter_map(|line| line.trim().strip_prefix("u64 "));
        let fields = lines.map(|line| line.split(';').next().unwrap());
        fields
            .flat_map(|field| match field.trim_end_matches(']').split_once('[') {
                Some((name, count)) => vec![name.to_owned(); count.parse().unwrap()],
                None => vec![field.to_owned()],
            })
            .collect()
    }

    #[test]
    fn the_header_has_the_same_words() {
        let device = words_of_the_header("device");
        for (word, name) in [
            (DeviceWord::Since, "since"),
            (DeviceWord::Base, "base"),
            (DeviceWord::Tags, "tags"),
            (DeviceWord::DriverTags, "driver_tags"),
            (DeviceWord::Queues, "queues"),
            (DeviceWord::InFlight, "in_flight"),
            (DeviceWord::Deepest, "deepest"),
        ] {
            assert_eq!(device[word as usize], name);
        }
        assert_eq!(device.len(), DEVICE_WORDS);
        let state = names_of_the_header("state");
        assert_eq!(
            [State::Unfollowed as usize, State::More as usize, STATE_WORDS].map(|word| state[word].as_str()),
            ["UNFOLLOWED", "MORE", "STATE_WORDS"]
        );
        assert_eq!(words_of_the_header("request_kind"), ["what", "bytes"]);
        assert_eq!(words_of_the_header("bio_origin"), ["what", "syscall", "comm", "comm"]);
        assert_eq!(words_of_the_header("kind_row"), ["count", "returned"]);
        assert_eq!(words_of_the_header("origin_row"), ["count", "bytes", "unused", "unused"]);
        assert_eq!((KIND_WORDS, ORIGIN_WORDS), (2 + 2, 4 + 4));
        assert_eq!(words_of_the_header("bio_start"), ["owner", "at"]);
        assert!(HEADER.contains("struct bio_start place[4];"));
        assert_eq!(START_WORDS, 2 * 4);
    }

    #[test]
    fn the_header_has_the_same_numbers() {
        for (name, value) in [
            ("SUB_BITS", "7"),
            ("ROWS", "(40 - SUB_BITS + 1)"),
            ("FLAG_FUA", "1"),
            ("FLAG_PREFLUSH", "2"),
            ("FLAG_READ_AHEAD", "4"),
            ("FLAG_NOWAIT", "8"),
            ("ONLY_COUNTED", "1"),
            ("TASK_THIS", "0"),
            ("TASK_OTHER", "1"),
            ("TASK_KERNEL", "2"),
            ("TASK_CHILD", "3"),
            ("NEAR_DEVICES", "4"),
            ("KIND_BITS", "7"),
            ("ORIGIN_BITS", "6"),
            ("START_BITS", "14"),
            (
                "WHAT(device, task, flags, op)",
                "((u64)(device) << 32 | 1U << 31 | (task) << 16 | (flags) << 8 | (op))",
            ),
        ] {
            assert_eq!(defined(name), value, "{name}");
        }
        assert_eq!(ONLY_COUNTED, 1);
        assert_eq!((ROW, ROWS, NEAR_DEVICES), (1 << 7, 40 - 7 + 1, 4));
        assert_eq!((KIND_ROWS, ORIGIN_ROWS, START_ROWS), (1 << 7, 1 << 6, 1 << 14));
    }

    #[test]
    fn a_key_is_read_whatever_its_words() {
        let words = |text: &[u8; 16]| {
            [&text[..8], &text[8..]].map(|bytes| u64::from_ne_bytes(bytes.try_into().unwrap()))
        };
        let what = |device: u64, task: u64, flags: u64, op: u64| {
            device << 32 | 1 << 31 | task << 16 | flags << 8 | op
        };
        let [a, b] = words(b"kworker/u8:2\0x\0\0");
        let origin = BioOrigin::from([what(3, 2, 5, 1), u64::MAX, a, b]);
        assert_eq!((origin.device, origin.op, origin.task), (3, BlockOp::Write, Task::Kernel));
        assert_eq!((origin.system_call, origin.thread.as_str()), (None, "kworker/u8:2"));
        assert_eq!((origin.flags, origin.flags.is_nowait()), (Flags(5), false));
        let [a, b] = words(b"\xff\x1b[31m0123456789");
        let origin = BioOrigin::from([what(0, 1, 8, 99), 1, a, b]);
        assert_eq!((origin.op, origin.system_call, origin.task), (BlockOp::Other(99), Some(1), Task::Other));
        assert!(origin.thread.ends_with("6789") && origin.flags.is_nowait(), "{origin:?}");
        let kind = RequestKind::from([what(4095, 0, 1, 0), u64::from(u32::MAX)]);
        assert_eq!((kind.device, kind.op, kind.flags.is_fua()), (4095, BlockOp::Read, true));
        assert_eq!(kind.bytes, u32::MAX);
    }
}
