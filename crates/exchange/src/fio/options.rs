//! The options of a job: what they say of its workload, with fio's own defaults. It reads no figure.

use super::document::OptionTexts;
use rdsk_model::{EngineKind, IoPath, Op, Pattern, Sync};
use serde_json::Value;
use std::collections::BTreeMap;

/// fio's block size where none is given (its documentation, blocksize).
const DEFAULT_BLOCK_BYTES: u64 = 4096;
/// Engines that do one I/O at a time, whatever the depth.
const SYNC_ENGINES: &[&str] = &["sync", "psync", "vsync", "pvsync", "pvsync2", "mmap", "splice"];
/// Options that hold a job back, so that its rate is not what the storage could do.
const BRAKES: &[&str] = &["rate", "rate_min", "rate_iops", "rate_iops_min", "thinktime", "latency_target"];
/// Options that sync during the job, beside the writes.
const SYNCS: &[&str] = &["fsync", "fdatasync", "sync_file_range"];
/// Where the part of a target begins that a job works on.
const OFFSET: &[&str] = &["offset"];
/// Options by which a job is busy while it waits, and engines that poll a device or do no I/O.
const BUSY_WAITS: &[&str] = &["hipri", "sqthread_poll", "thinktime_spin"];
const BUSY_COMPLETES: &[&str] = &["iodepth_batch_complete_min", "iodepth_batch_complete"];
const BUSY_ENGINES: &[&str] = &["spdk", "cpuio", "null"];
/// Options by which I/Os have different sizes.
const MIXED_SIZES: &[&str] =
    &["bsrange", "blocksize_range", "bssplit", "bs_unaligned", "blocksize_unaligned"];

/// The options of one job over those of all jobs. What is not given is fio's default where the document repeats all that was given,
/// and else not known.
#[derive(Clone, Copy, Debug)]
pub(super) struct Options<'a> {
    pub(super) job: &'a OptionTexts,
    pub(super) global: &'a OptionTexts,
    /// Whether all that was given stands here.
    pub(super) are_whole: bool,
}

impl Options<'_> {
    /// What is given, or fio's default.
    fn or_default<T>(&self, given: Option<T>, default: T) -> Option<T> {
        given.or_else(|| self.are_whole.then_some(default))
    }

    /// The text of the first of these names that is given; different names are one option.
    fn text(&self, names: &[&str]) -> Option<String> {
        let given_in = |options: &OptionTexts| names.iter().find_map(|name| options.get(*name).map(as_text));
        given_in(self.job).or_else(|| given_in(self.global))
    }

    /// A switch, which is on when it stands alone.
    fn is_on(&self, name: &str) -> bool {
        self.text(&[name]).is_some_and(|text| text.trim() != "0")
    }

    fn number(&self, name: &str) -> Option<u32> {
        self.text(&[name])?.trim().parse().ok()
    }

    fn size(&self, names: &[&str]) -> Option<u64> {
        bytes_in(&self.text(names)?, self.has_si_units())
    }

    fn has_si_units(&self) -> bool {
        self.text(&["kb_base"]).is_some_and(|base| base.trim() == "1000")
    }

    /// `randread`, without what may follow a colon.
    fn direction(&self) -> Option<String> {
        let text = self.or_default(self.text(&["rw", "readwrite"]), "read".into())?;
        Some(text.split(':').next().unwrap_or_default().trim().to_owned())
    }

    pub(super) fn pattern(&self) -> Option<Pattern> {
        let is_random = self.direction()?.starts_with("rand");
        Some(if is_random { Pattern::Random } else { Pattern::Sequential })
    }

    /// The directions that are requested, trims left out; none where that is not known.
    pub(super) fn ops(&self) -> &'static [Op] {
        match self.direction().as_deref() {
            Some("rw" | "readwrite" | "randrw") => &[Op::Read, Op::Write],
            Some("write" | "randwrite" | "trimwrite" | "randtrimwrite") => &[Op::Write],
            None | Some("trim" | "randtrim") => &[],
            Some(_) => &[Op::Read],
        }
    }

    /// The direction where only one is requested, and nothing is trimmed.
    pub(super) fn only_op(&self) -> Option<Op> {
        match self.direction()?.as_str() {
            "read" | "randread" => Some(Op::Read),
            "write" | "randwrite" => Some(Op::Write),
            _ => None,
        }
    }

    pub(super) fn path(&self) -> Option<IoPath> {
        let is_unbuffered = self.text(&["buffered"]).is_some_and(|text| text.trim() == "0");
        let is_given = ["direct", "odirect", "buffered"].iter().any(|name| self.text(&[name]).is_some());
        match (self.is_on("direct") || self.is_on("odirect") || is_unbuffered, self.is_on("uncached")) {
            (true, _) => Some(IoPath::Direct),
            (false, true) => Some(IoPath::DontCache),
            (false, false) => self.or_default(is_given.then_some(IoPath::Buffered), IoPath::Buffered),
        }
    }

    /// What makes each write durable; nothing is durable about a read. A sync beside the writes is none: fio's figures of writes leave
    /// it out.
    pub(super) fn sync(&self, op: Op) -> Option<Sync> {
        let given = self.or_default(self.text(&["sync"]), String::new());
        match (op, given.as_deref().map(str::trim)) {
            (Op::Read, _) | (_, Some("" | "0" | "none")) => Some(Sync::None),
            (_, None) => None,
            _ => Some(Sync::Dsync),
        }
    }

    /// Whether I/Os are to have several sizes.
    pub(super) fn has_several_sizes(&self) -> bool {
        MIXED_SIZES.iter().any(|name| self.text(&[name]).is_some())
    }

    /// The block size of a direction; `None` where I/Os have several, where fio would calculate it, and where it is not known.
    pub(super) fn block_bytes(&self, op: Op) -> Option<u64> {
        if self.has_several_sizes() {
            return None;
        }
        let Some(text) = self.text(&["bs", "blocksize"]) else {
            return self.or_default(None, DEFAULT_BLOCK_BYTES);
        };
        // Sizes of reads, writes and trims; one that is missing at the end is that before it.
        let sizes: Vec<&str> = text.split(',').collect();
        let index = if op == Op::Read { 0 } else { 1.min(sizes.len() - 1) };
        match sizes[index].trim() {
            "" => Some(DEFAULT_BLOCK_BYTES),
            size => bytes_in(size, self.has_si_units()).filter(|&size| size > 0),
        }
    }

    pub(super) fn align_bytes(&self) -> Option<u64> {
        self.size(&["blockalign", "ba"]).filter(|&align| align > 0)
    }

    /// The part of each target that a job works on; `None` where that is not said in bytes.
    pub(super) fn span_bytes(&self) -> Option<u64> {
        self.size(&["size"])
    }

    /// Where the part begins; `None` for a share of the whole, and where it is not known.
    pub(super) fn offset_bytes(&self) -> Option<u64> {
        if self.text(OFFSET).is_some() { self.size(OFFSET) } else { self.or_default(None, 0) }
    }

    /// The text of an offset that is no number of bytes, such as `50%`.
    pub(super) fn offset_without_bytes(&self) -> Option<String> {
        self.text(OFFSET).filter(|_| self.size(OFFSET).is_none())
    }

    pub(super) fn engine_name(&self) -> Option<String> {
        self.or_default(self.text(&["ioengine"]), "psync".into())
    }

    /// The engine in rdsk's words; `None` for one that has none there, and where it is not known.
    pub(super) fn engine(&self) -> Option<EngineKind> {
        match self.engine_name()?.as_str() {
            "libaio" => Some(EngineKind::Aio),
            "io_uring" | "io_uring_cmd" => Some(EngineKind::Uring),
            "posixaio" => Some(EngineKind::Threads),
            name if SYNC_ENGINES.contains(&name) => Some(EngineKind::Sync),
            _ => None,
        }
    }

    /// The depth as it is given, whatever the engine makes of it.
    pub(super) fn requested_depth(&self) -> Option<u32> {
        self.or_default(self.number("iodepth"), 1).map(|depth| depth.max(1))
    }

    /// The depth that the engine can reach.
    pub(super) fn queue_depth(&self) -> Option<u32> {
        if self.engine() == Some(EngineKind::Sync) { Some(1) } else { self.requested_depth() }
    }

    /// Jobs that are started with these options.
    pub(super) fn job_count(&self) -> Option<u32> {
        self.or_default(self.number("numjobs"), 1).map(|count| count.max(1))
    }

    /// Whether the job uses a whole processor while it waits, as far as the options say.
    pub(super) fn polls(&self) -> bool {
        let is_zero = |name: &str| self.text(&[name]).is_some_and(|text| text.trim() == "0");
        let has_busy_engine =
            self.engine_name().is_some_and(|name| BUSY_ENGINES.iter().any(|busy| name.contains(busy)));
        has_busy_engine
            || BUSY_WAITS.iter().any(|name| self.is_on(name))
            || BUSY_COMPLETES.iter().any(|name| is_zero(name))
    }

    /// Whether its log of bandwidth, or of I/Os, has a line for each I/O, as far as the options say.
    pub(super) fn logs_single_ios(&self, log: &str) -> bool {
        let is_averaged = self.text(&["log_avg_msec"]).is_some_and(|text| text.trim() != "0");
        self.text(&[log]).is_some() && !is_averaged
    }

    pub(super) fn seed(&self) -> u64 {
        self.text(&["randseed"]).and_then(|text| text.trim().parse().ok()).unwrap_or(0)
    }

    /// The files or devices; of a job without names the device that it is called like, else what all of its files have in common.
    /// None where that is not known.
    pub(super) fn targets(&self, jobname: &str) -> Vec<String> {
        let directory = self.text(&["directory"]).filter(|name| !name.is_empty());
        let within = |name: &str| match &directory {
            Some(directory) => format!("{}/{name}", directory.trim_end_matches('/')),
            None => name.to_owned(),
        };
        let Some(names) = self.text(&["filename"]).filter(|name| !name.is_empty()) else {
            // fio opens what the job is called like where that is a device.
            if directory.is_none() && jobname.starts_with("/dev/") {
                return vec![jobname.to_owned()];
            }
            return if self.are_whole || directory.is_some() {
                vec![within(&format!("{jobname}.*"))]
            } else {
                Vec::new()
            };
        };
        // A colon that belongs to a name has a backslash before it.
        let names = names.replace("\\:", "\0");
        names
            .split(':')
            .filter(|name| !name.is_empty())
            .map(|name| within(&name.replace('\0', ":")))
            .collect()
    }

    /// The given ones of these, as `rate=10m`.
    fn given(&self, names: &[&str]) -> Vec<String> {
        let given = |name: &&str| {
            self.text(&[name]).filter(|text| text.trim() != "0").map(|text| format!("{name}={text}"))
        };
        names.iter().filter_map(given).collect()
    }

    pub(super) fn brakes(&self) -> Vec<String> {
        self.given(BRAKES)
    }

    pub(super) fn syncs(&self) -> Vec<String> {
        self.given(SYNCS)
    }

    /// Whether a time was given that ended it.
    pub(super) fn runtime(&self) -> Option<String> {
        self.text(&["runtime"]).filter(|text| text.trim() != "0")
    }
}

/// The options that are the same in all of these, and whether they are all that any of them has.
pub(super) fn common<'a>(of_jobs: impl IntoIterator<Item = &'a OptionTexts>) -> (OptionTexts, bool) {
    let mut jobs = of_jobs.into_iter();
    let mut options: OptionTexts = jobs.next().cloned().unwrap_or_else(BTreeMap::new);
    let mut are_whole = true;
    for other in jobs {
        are_whole &= *other == options;
        options.retain(|name, value| other.get(name) == Some(value));
    }
    (options, are_whole)
}

/// The words of a command line that has these options.
pub(super) fn words(options: &OptionTexts) -> impl Iterator<Item = String> {
    options.iter().filter(|(name, _)| *name != "name").map(|(name, value)| match as_text(value).as_str() {
        "" => format!("--{name}"),
        text => format!("--{name}={text}"),
    })
}

fn as_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

/// The bytes of a text such as `4k`, `1MiB` or `0x1000`; `None` for a percentage, an expression, and whatever else is no size.
///
/// By default `k` and `kb` are 1024 and `Ki` and `KiB` are 1000: fio keeps old job files as they were, and its `kb_base=1000`
/// turns that round (fio's documentation, kb_base).
pub(super) fn bytes_in(text: &str, has_si_units: bool) -> Option<u64> {
    let text = text.trim().to_ascii_lowercase();
    if let Some(digits) = text.strip_prefix("0x") {
        return u64::from_str_radix(digits, 16).ok();
    }
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (digits, unit) = text.split_at(end);
    let number: u64 = digits.parse().ok()?;
    let unit = unit.strip_suffix('b').unwrap_or(unit);
    let (letter, has_i) = unit.strip_suffix('i').map_or((unit, false), |letter| (letter, true));
    let power = match letter {
        "" if !has_i => 0,
        "k" => 1,
        "m" => 2,
        "g" => 3,
        "t" => 4,
        "p" => 5,
        _ => return None,
    };
    let base: u64 = if has_i == has_si_units { 1024 } else { 1000 };
    number.checked_mul(base.checked_pow(power)?)
}

#[cfg(test)]
mod tests {
    #![expect(
        clippy::redundant_closure_for_method_calls,
        reason = "the methods of one lifetime do not fit every lifetime"
    )]
    #![expect(
        clippy::needless_pass_by_value,
        reason = "a table of expected values reads better without ampersands"
    )]
    use super::*;

    fn texts(line: &str) -> OptionTexts {
        let pairs = line.split_whitespace().map(|word| word.split_once('=').unwrap_or((word, "")));
        pairs.map(|(name, value)| (name.to_owned(), Value::from(value))).collect()
    }

    fn check<T: PartialEq + std::fmt::Debug>(line: &str, get: impl Fn(&Options<'_>) -> T, expected: T) {
        let (job, none) = (texts(line), OptionTexts::new());
        assert_eq!(get(&Options { job: &job, global: &none, are_whole: true }), expected, "{line}");
        assert_eq!(
            get(&Options { job: &none, global: &job, are_whole: true }),
            expected,
            "{line}, for all jobs"
        );
    }

    #[test]
    fn directions_and_patterns() {
        check(
            "rw=randread:8",
            |options| (options.pattern(), options.ops()),
            (Some(Pattern::Random), &[Op::Read][..]),
        );
        check(
            "readwrite=rw",
            |options| (options.pattern(), options.ops()),
            (Some(Pattern::Sequential), &[Op::Read, Op::Write][..]),
        );
        check("rw=randtrim", |options| options.ops(), &[][..]);
        check("", |options| options.ops(), &[Op::Read][..]);
        for (line, only) in [
            ("", Some(Op::Read)),
            ("rw=randread:8", Some(Op::Read)),
            ("rw=randwrite", Some(Op::Write)),
            ("rw=randrw", None),
            ("rw=trimwrite", None),
            ("rw=randtrim", None),
        ] {
            check(line, |options| options.only_op(), only);
        }
    }

    #[test]
    fn sizes_of_blocks() {
        fn both(options: &Options<'_>) -> (Option<u64>, Option<u64>) {
            (options.block_bytes(Op::Read), options.block_bytes(Op::Write))
        }
        check("", both, (Some(4096), Some(4096)));
        check("bs=8k", both, (Some(8192), Some(8192)));
        check("bs=8k,16k", both, (Some(8192), Some(16384)));
        check("blocksize=,16k", both, (Some(4096), Some(16384)));
        check("bs=8k bssplit=4k/50:8k/50", both, (None, None));
        check("bs=0", both, (None, None));
    }

    #[test]
    fn a_depth_is_no_deeper_than_its_engine() {
        check("iodepth=32", |options| options.queue_depth(), Some(1));
        check("iodepth=32 ioengine=libaio", |options| options.queue_depth(), Some(32));
        check(
            "iodepth=32 ioengine=posixaio",
            |options| (options.queue_depth(), options.engine()),
            (Some(32), Some(EngineKind::Threads)),
        );
        check("ioengine=rbd", |options| options.engine(), None);
    }

    #[test]
    fn paths_and_syncs() {
        check("direct=1", |options| options.path(), Some(IoPath::Direct));
        check("direct", |options| options.path(), Some(IoPath::Direct));
        check("direct=0", |options| options.path(), Some(IoPath::Buffered));
        check("uncached=1", |options| options.path(), Some(IoPath::DontCache));
        check(
            "sync=dsync",
            |options| (options.sync(Op::Read), options.sync(Op::Write)),
            (Some(Sync::None), Some(Sync::Dsync)),
        );
        check(
            "sync=0 fsync=1",
            |options| (options.sync(Op::Write), options.syncs()),
            (Some(Sync::None), vec!["fsync=1".to_owned()]),
        );
    }

    #[test]
    fn targets_by_name() {
        fn targets_of(options: &Options<'_>) -> Vec<String> {
            options.targets("job")
        }
        check("filename=/dev/sda:/dev/sdb", targets_of, vec!["/dev/sda".to_owned(), "/dev/sdb".into()]);
        check("filename=a\\:b directory=/mnt/", targets_of, vec!["/mnt/a:b".to_owned()]);
        check("directory=/mnt", targets_of, vec!["/mnt/job.*".to_owned()]);
        let (none, directory) = (OptionTexts::new(), texts("directory=/mnt"));
        let named = |job, are_whole, name| Options { job, global: &none, are_whole }.targets(name);
        assert_eq!(named(&none, true, "/dev/sdb"), ["/dev/sdb"]);
        assert_eq!(named(&none, false, "/dev/sdb"), ["/dev/sdb"]);
        assert_eq!(named(&directory, true, "/dev/sdb"), ["/mnt//dev/sdb.*"]);
        assert_eq!(named(&none, false, "job"), [""; 0]);
    }

    #[test]
    fn what_is_not_repeated_is_not_known() {
        let (given, none) = (texts("bs=8k"), OptionTexts::new());
        let options = Options { job: &none, global: &given, are_whole: false };
        assert_eq!((options.pattern(), options.path(), options.sync(Op::Write)), (None, None, None));
        assert_eq!((options.queue_depth(), options.job_count(), options.engine()), (None, None, None));
        assert_eq!((options.offset_bytes(), options.span_bytes(), options.ops()), (None, None, &[][..]));
        assert_eq!((options.block_bytes(Op::Read), options.polls()), (Some(8192), false));
        assert_eq!(options.sync(Op::Read), Some(Sync::None), "nothing is durable about a read");
    }

    #[test]
    fn jobs_share_what_is_the_same() {
        let (first, other) = (texts("rw=read filename=a"), texts("rw=read filename=b"));
        assert_eq!(common([&first, &other]), (texts("rw=read"), false));
        assert_eq!(common([&first, &first]), (first.clone(), true));
    }

    #[test]
    fn polling_and_logs_of_single_ios() {
        check("ioengine=io_uring hipri", |options| options.polls(), true);
        check("ioengine=libaio iodepth_batch_complete_min=0", |options| options.polls(), true);
        check("ioengine=libaio iodepth_batch_complete_min=1", |options| options.polls(), false);
        check("ioengine=external:/x/spdk_bdev", |options| options.polls(), true);
        check("", |options| options.polls(), false);
        check("write_bw_log=x", |options| options.logs_single_ios("write_bw_log"), true);
        check("write_bw_log=x log_avg_msec=500", |options| options.logs_single_ios("write_bw_log"), false);
        check("write_iops_log=x", |options| options.logs_single_ios("write_bw_log"), false);
    }

    #[test]
    fn the_job_comes_before_all_jobs() {
        let (job, global) = (texts("bs=1m numjobs=2"), texts("bs=4k numjobs=4 thread"));
        let options = Options { job: &job, global: &global, are_whole: true };
        assert_eq!((options.block_bytes(Op::Read), options.job_count()), (Some(1 << 20), Some(2)));
        assert_eq!(words(&global).collect::<Vec<_>>(), ["--bs=4k", "--numjobs=4", "--thread"]);
    }

    #[test]
    fn letters_mean_what_fio_means() {
        for (text, plain, si) in [
            ("512", Some(512), Some(512)),
            ("512b", Some(512), Some(512)),
            ("4k", Some(4096), Some(4000)),
            ("4KB", Some(4096), Some(4000)),
            ("4Ki", Some(4000), Some(4096)),
            ("4KiB", Some(4000), Some(4096)),
            ("2g", Some(2 << 30), Some(2_000_000_000)),
            ("0x1000", Some(4096), Some(4096)),
            ("10%", None, None),
            ("(4*1024)", None, None),
            ("", None, None),
            ("k", None, None),
            ("i", None, None),
            ("20000p", None, None),
            ("99999999999999999999", None, None),
        ] {
            assert_eq!((bytes_in(text, false), bytes_in(text, true)), (plain, si), "{text}");
        }
    }
}
