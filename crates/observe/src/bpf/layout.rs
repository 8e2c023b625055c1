//! What the programs in the kernel and this room agree upon: the numbers of the counters, keys and values of the maps, as
//! `bpf/shared.h` has them. Plain data; a test compares the two.

/// Buckets of a latency histogram per power of two.
pub(super) const ROW: usize = 128;
/// Powers of two of a latency histogram.
pub(super) const ROWS: u32 = 34;

/// The counters of one device, by their index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub(super) enum Counter {
    /// Requests given to the driver.
    Issued,
    /// Requests whose last byte is done.
    Completed,
    /// The moments of issuing, summed, in nanoseconds modulo 2⁶⁴.
    IssuedAt,
    /// The moments of completion, likewise.
    CompletedAt,
    /// The timed latencies, summed, in nanoseconds.
    LatencySum,
    /// Requests that the driver gave back.
    Requeued,
    /// Requests whose completion was never seen.
    Healed,
    /// Completions of requests that were issued before counting began.
    Unseen,
    /// Requests without data that asked for a flush; sysfs counts them as writes.
    Empty,
    /// Bios added to the end of a waiting request.
    BackMerges,
    /// Bios added to its start.
    FrontMerges,
    /// Waiting requests that became one.
    RequestMerges,
    /// Bios that were cut.
    Splits,
    /// Events that found a map full.
    Overflow,
    /// Changes of a count and its moments that began.
    Begun,
    /// Those of them that are done; while they differ, count and moments do not belong together.
    Done,
}

/// How many there are.
pub(super) const COUNTERS: usize = Counter::Done as usize + 1;

/// What changes at one device while it is counted, by its index in a row of LIVE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub(super) enum Live {
    /// What began earlier is not followed to its end; 0 while the device is not counted.
    Since,
    /// Requests in flight now.
    InFlight,
    /// The most that was in flight.
    Deepest,
}

/// Words of such a row.
pub(super) const LIVE_WORDS: usize = 8;

/// The words of STATE, by their index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub(super) enum State {
    /// Processes that were not followed because there were too many.
    Unfollowed = 1,
}

/// How many words STATE has.
pub(super) const STATE_WORDS: usize = 2;

/// The words of `struct device`.
pub(super) type DeviceValue = [u32; 5];

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

    /// Reads what nobody asked for yet.
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

/// Requests of one kind: a key of the map REQUESTS.
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

/// Its words in the map.
pub(super) type RequestKey = [u32; 4];

impl From<RequestKey> for RequestKind {
    fn from([device, op, flags, bytes]: RequestKey) -> Self {
        Self { device: device as usize, op: BlockOp::from_number(op), flags: Flags(flags), bytes }
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

/// Where bios come from: a key of the map BIOS.
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
    /// Name of the thread (`comm`), at most 15 bytes; untrusted text. `(others)` for all that came when 3072 origins were known.
    pub thread: String,
}

/// Its words in the map.
pub(super) type BioKey = [u32; 9];

impl From<BioKey> for BioOrigin {
    fn from([device, op, flags, call, task, name @ ..]: BioKey) -> Self {
        let bytes: Vec<u8> =
            name.into_iter().flat_map(u32::to_ne_bytes).take_while(|byte| *byte != 0).collect();
        Self {
            device: device as usize,
            op: BlockOp::from_number(op),
            flags: Flags(flags),
            system_call: (call.cast_signed() >= 0).then_some(call),
            task: match task {
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

    /// The names of an enum in the header, in their order.
    fn names_of_the_header(name: &str) -> Vec<String> {
        let text = include_str!("../../bpf/shared.h");
        let list =
            text.split(&format!("enum {name} {{")).nth(1).and_then(|rest| rest.split('}').next()).unwrap();
        let lines = list.lines().map(str::trim).filter(|line| !line.is_empty());
        lines.map(|line| line.split([',', ' ']).next().unwrap().to_owned()).collect()
    }

    fn defined(name: &str) -> String {
        let text = include_str!("../../bpf/shared.h");
        let line = text.lines().find_map(|line| line.strip_prefix(&format!("#define {name} "))).unwrap();
        line.to_owned()
    }

    #[test]
    fn the_header_has_the_same_counters() {
        let header = names_of_the_header("counter");
        assert_eq!(header.len(), COUNTERS + 1, "{header:?}");
        for (index, name) in [
            (Counter::Issued as usize, "ISSUED"),
            (Counter::CompletedAt as usize, "COMPLETED_AT"),
            (Counter::LatencySum as usize, "LATENCY_SUM"),
            (Counter::Healed as usize, "HEALED"),
            (Counter::Empty as usize, "EMPTY"),
            (Counter::Splits as usize, "SPLITS"),
            (Counter::Overflow as usize, "OVERFLOW"),
            (Counter::Begun as usize, "BEGUN"),
            (Counter::Done as usize, "DONE"),
            (COUNTERS, "COUNTERS"),
        ] {
            assert_eq!(header[index], name);
        }
    }

    #[test]
    fn the_header_has_the_same_words() {
        let live = names_of_the_header("live");
        assert_eq!([Live::Since, Live::InFlight, Live::Deepest].map(|word| word as usize), [0, 1, 2]);
        assert_eq!(live, ["SINCE", "IN_FLIGHT", "DEEPEST", "LIVE_WORDS"]);
        assert!(include_str!("../../bpf/shared.h").contains(&format!("LIVE_WORDS = {LIVE_WORDS}\n")));
        let state = names_of_the_header("state");
        assert_eq!(
            (state[State::Unfollowed as usize].as_str(), state[STATE_WORDS].as_str()),
            ("UNFOLLOWED", "STATE_WORDS")
        );
        let device = include_str!("../../bpf/shared.h").split("struct device {").nth(1).unwrap();
        let fields = device.split('}').next().unwrap().matches("u32 ").count();
        assert_eq!(fields * 4, size_of::<DeviceValue>());
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
            ("TASK_THIS", "0"),
            ("TASK_OTHER", "1"),
            ("TASK_KERNEL", "2"),
            ("TASK_CHILD", "3"),
        ] {
            assert_eq!(defined(name), value, "{name}");
        }
        assert_eq!((ROW, ROWS), (1 << 7, 40 - 7 + 1));
    }

    #[test]
    fn a_key_is_read_whatever_its_words() {
        let words = |text: &[u8; 16]| -> [u32; 4] {
            let mut words = [0; 4];
            for (word, bytes) in words.iter_mut().zip(text.chunks(4)) {
                *word = u32::from_ne_bytes(bytes.try_into().unwrap());
            }
            words
        };
        let [a, b, c, d] = words(b"kworker/u8:2\0x\0\0");
        let origin = BioOrigin::from([3, 1, 5, u32::MAX, 2, a, b, c, d]);
        assert_eq!((origin.device, origin.op, origin.task), (3, BlockOp::Write, Task::Kernel));
        assert_eq!((origin.system_call, origin.thread.as_str()), (None, "kworker/u8:2"));
        assert_eq!((origin.flags, origin.flags.is_nowait()), (Flags(5), false));
        let [a, b, c, d] = words(b"\xff\x1b[31m0123456789");
        let origin = BioOrigin::from([0, 99, 8, 1, 1, a, b, c, d]);
        assert_eq!((origin.op, origin.system_call, origin.task), (BlockOp::Other(99), Some(1), Task::Other));
        assert!(origin.thread.ends_with("6789") && origin.flags.is_nowait(), "{origin:?}");
    }
}
