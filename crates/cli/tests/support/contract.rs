//! The contract of `--json`: every name of schema `rdsk.record/1` with the type of its value, and what must be
//! consistent. It checks documents and runs nothing.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

/// What a value must look like.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Shape {
    /// A string that is not empty.
    Text,
    /// One of these strings.
    Word(&'static [&'static str]),
    /// An integer that is not negative.
    Whole,
    /// An integer.
    Signed,
    /// A finite number.
    Number,
    /// True or false.
    Flag,
    /// A list of this.
    List(&'static Shape),
    /// An object with at least these members; more may be added.
    Object(&'static [(&'static str, Shape)]),
    /// This, or null where it was not measured.
    OrNull(&'static Shape),
    /// A member that is this, or is left out where there is nothing to say.
    LeftOut(&'static Shape),
}

use Shape::{Flag, LeftOut, List, Number, Object, OrNull, Signed, Text, Whole, Word};

const WHOLE_OR_NULL: Shape = OrNull(&Whole);
const NUMBER_OR_NULL: Shape = OrNull(&Number);
const TEXT_OR_NULL: Shape = OrNull(&Text);
const SOURCE: Shape = Word(&["bpf", "sysfs", "process", "sim", "none"]);
const OP: Shape = Word(&["read", "write"]);

/// The whole document.
pub(crate) const RECORD: Shape = Object(&[
    ("schema", Word(&["rdsk.record/1"])),
    ("id", Text),
    ("label", TEXT_OR_NULL),
    ("command", List(&Text)),
    ("rdsk_version", Text),
    ("started_at", Text),
    ("elapsed_ns", Whole),
    ("status", Word(&["complete", "interrupted", "failed"])),
    ("error", OrNull(&Object(&[("code", Text), ("message", Text), ("hint", TEXT_OR_NULL)]))),
    ("host", OrNull(&HOST)),
    ("targets", List(&TARGET)),
    (
        "observer",
        Object(&[
            ("source", SOURCE),
            ("why_not_higher", TEXT_OR_NULL),
            ("lost_events", WHOLE_OR_NULL),
            ("cost_ns_per_io", NUMBER_OR_NULL),
        ]),
    ),
    ("cells", List(&CELL)),
    ("findings", List(&FINDING)),
]);

const HOST: Shape = Object(&[
    ("kernel", Text),
    ("cpu_model", TEXT_OR_NULL),
    ("cpu_count", Whole),
    ("memory_bytes", WHOLE_OR_NULL),
    ("virtualization", TEXT_OR_NULL),
    ("page_bytes", WHOLE_OR_NULL),
    ("clock", Object(&[("source", Text), ("resolution_ns", Whole), ("read_cost_ns", Whole)])),
]);

const TARGET: Shape = Object(&[
    ("index", Whole),
    ("name", Text),
    ("kind", Word(&["file", "block", "sim"])),
    ("path", TEXT_OR_NULL),
    ("size_bytes", WHOLE_OR_NULL),
    ("filesystem", OrNull(&Object(&[("type", Text), ("options", Text)]))),
    ("device", OrNull(&DEVICE)),
    ("stack", List(&Text)),
]);

/// The layers below it are of the same shape, which a constant cannot say.
const LAYER: Shape =
    Object(&[("name", Text), ("mapped_name", TEXT_OR_NULL), ("kind", Text), ("size_bytes", WHOLE_OR_NULL)]);

const DEVICE: Shape = Object(&[
    ("name", Text),
    ("major_minor", Text),
    ("kind", TEXT_OR_NULL),
    ("mapped_name", TEXT_OR_NULL),
    ("below", List(&LAYER)),
    ("model", TEXT_OR_NULL),
    ("serial", TEXT_OR_NULL),
    ("size_bytes", WHOLE_OR_NULL),
    ("logical_block_bytes", WHOLE_OR_NULL),
    ("physical_block_bytes", WHOLE_OR_NULL),
    ("alignment_offset_bytes", OrNull(&Signed)),
    ("minimum_io_bytes", WHOLE_OR_NULL),
    ("optimal_io_bytes", WHOLE_OR_NULL),
    ("max_request_bytes", WHOLE_OR_NULL),
    ("zoned", TEXT_OR_NULL),
    ("zone_bytes", WHOLE_OR_NULL),
    ("rotational", OrNull(&Flag)),
    ("write_cache", TEXT_OR_NULL),
    ("fua", OrNull(&Flag)),
    ("scheduler", TEXT_OR_NULL),
]);

const CELL: Shape = Object(&[
    ("id", Text),
    ("experiment", EXPERIMENT),
    ("workload", WORKLOAD),
    ("result", RESULT),
    ("evidence", EVIDENCE),
    ("verdict", OrNull(&VERDICT)),
]);

const WORKLOAD: Shape = Object(&[
    ("op", OP),
    ("pattern", Word(&["sequential", "random"])),
    ("path", Word(&["direct", "buffered", "dontcache"])),
    ("sync", Word(&["none", "dsync", "fsync_at_end"])),
    ("cache", Word(&["cold", "warm", "any"])),
    ("block_bytes", Whole),
    ("align_bytes", Whole),
    ("queue_depth", Whole),
    ("streams", Whole),
    ("stagger_ns", Whole),
    ("engine", Word(&["sync", "threads", "aio", "uring", "sim"])),
    ("targets", List(&Whole)),
    ("span_bytes", WHOLE_OR_NULL),
    ("range", Word(&["disjoint", "shared"])),
    ("seed", Whole),
]);

const RESULT: Shape = Object(&[
    ("stop", Word(&["precision", "budget", "complete", "interrupted", "error", "not_applicable"])),
    ("why", Text),
    ("elapsed_ns", WHOLE_OR_NULL),
    ("bytes", WHOLE_OR_NULL),
    ("ops", WHOLE_OR_NULL),
    ("bytes_per_s", ESTIMATE_OR_NULL),
    ("ops_per_s", ESTIMATE_OR_NULL),
    ("latency_ns", OrNull(&LATENCY)),
    ("warmup_ns", WHOLE_OR_NULL),
    ("warmup_bytes", WHOLE_OR_NULL),
    ("warmup_ops", WHOLE_OR_NULL),
    ("to_return_ns", WHOLE_OR_NULL),
    ("to_close_ns", WHOLE_OR_NULL),
    ("to_stable_ns", WHOLE_OR_NULL),
    ("windows", OrNull(&Object(&[("width_ns", Whole), ("bytes", List(&Whole))]))),
    ("streams", List(&STREAM)),
    ("cpu_ns", OrNull(&Object(&[("user", Whole), ("system", Whole)]))),
    (
        "visits",
        List(&Object(&[
            ("sitting", LeftOut(&Whole)),
            ("gaps", LeftOut(&List(&Object(&[("at_ns", Whole), ("lasts_ns", Whole)])))),
            ("start_ns", Whole),
            ("elapsed_ns", Whole),
            ("bytes", Whole),
            ("ops", Whole),
            ("streams", List(&STREAM)),
            (
                "overlap",
                OrNull(&Object(&[
                    ("start_ns", Whole),
                    ("end_ns", Whole),
                    ("bytes", Whole),
                    ("covered_ns", Whole),
                ])),
            ),
        ])),
    ),
    (
        "errors",
        List(&Object(&[
            ("target", Whole),
            ("stream", WHOLE_OR_NULL),
            ("offset_bytes", Whole),
            ("errno", Whole),
            ("message", Text),
        ])),
    ),
]);

const STREAM: Shape = Object(&[
    ("index", Whole),
    ("target", Whole),
    ("start_ns", Whole),
    ("end_ns", Whole),
    ("bytes", Whole),
    ("ops", Whole),
]);

const ESTIMATE_OR_NULL: Shape =
    OrNull(&Object(&[("mean", Number), ("low", NUMBER_OR_NULL), ("high", NUMBER_OR_NULL)]));

const LATENCY: Shape = Object(&[
    ("count", Whole),
    ("min", WHOLE_OR_NULL),
    ("mean", NUMBER_OR_NULL),
    ("p50", WHOLE_OR_NULL),
    ("p90", WHOLE_OR_NULL),
    ("p99", WHOLE_OR_NULL),
    ("p999", WHOLE_OR_NULL),
    ("p9999", WHOLE_OR_NULL),
    ("max", WHOLE_OR_NULL),
    ("histogram", TEXT_OR_NULL),
]);

const EVIDENCE: Shape = Object(&[
    ("source", SOURCE),
    ("device", List(&DEVICE_EVIDENCE)),
    ("requests", List(&Object(&[("target", Whole), ("op", OP), ("bytes", Whole), ("count", Whole)]))),
    (
        "bios",
        List(&Object(&[
            ("target", Whole),
            ("op", OP),
            ("syscall", TEXT_OR_NULL),
            ("task", Word(&["this", "child", "other", "kernel"])),
            ("count", Whole),
            ("bytes", Whole),
        ])),
    ),
    ("device_latency_ns", OrNull(&LATENCY)),
    // `bpf`, `device` of requests and bios, `fua`, `nowait`, `read_ahead` and `flush` stand only where BPF counted.
    ("bpf", LeftOut(&BPF)),
    ("page_cache", OrNull(&PAGE_CACHE)),
    ("process", Object(&[("read_bytes", WHOLE_OR_NULL), ("write_bytes", WHOLE_OR_NULL)])),
    ("extents", OrNull(&EXTENTS)),
    ("loops", LeftOut(&List(&LOOP))),
    ("processor", LeftOut(&PROCESSOR)),
    ("processor_visits", LeftOut(&List(&PROCESSOR))),
]);

const BPF: Shape = Object(&[
    ("followed", LeftOut(&List(&Whole))),
    ("observed_ns", Whole),
    ("timed_ns", LeftOut(&Whole)),
    ("visits_ns", Whole),
    ("checks", List(&Object(&[("target", Whole), ("device", Text), ("bpf", Whole), ("sysfs", Whole)]))),
    ("lost", Whole),
    ("devices", LeftOut(&List(&COUNTED_DEVICE))),
]);

const COUNTED_DEVICE: Shape = Object(&[
    ("target", Whole),
    ("device", Text),
    ("kind", LeftOut(&Text)),
    ("takes_bios", Flag),
    ("below", List(&Text)),
    ("lost", LeftOut(&Whole)),
]);

const EXTENTS: Shape =
    Object(&[("mapped_bytes", Whole), ("unwritten_bytes", Whole), ("hole_bytes", Whole), ("extents", Whole)]);

const LOOP: Shape = Object(&[
    ("target", Whole),
    ("device", Text),
    ("file", Text),
    ("filesystem", TEXT_OR_NULL),
    ("direct_io", OrNull(&Flag)),
    ("below", TEXT_OR_NULL),
    ("partitions", LeftOut(&List(&Text))),
    ("size_bytes", Whole),
    ("extents", OrNull(&EXTENTS)),
    ("page_cache", OrNull(&PAGE_CACHE)),
]);

const PROCESSOR: Shape = Object(&[
    ("interval_ns", Whole),
    ("processors", Whole),
    ("user_ns", Whole),
    ("system_ns", Whole),
    ("steal_ns", Whole),
    ("own_user_ns", Whole),
    ("own_system_ns", Whole),
    ("own_wait_ns", WHOLE_OR_NULL),
    ("pressure_ns", WHOLE_OR_NULL),
    ("quota", LeftOut(&QUOTA)),
]);

const QUOTA: Shape = Object(&[("periods", Whole), ("throttled_periods", Whole), ("throttled_ns", Whole)]);

const PAGE_CACHE: Shape =
    Object(&[("before", CACHE_STATE), ("after", CACHE_STATE), ("stable", LeftOut(&CACHE_STATE))]);

const CACHE_STATE: Shape = Object(&[("cached_bytes", WHOLE_OR_NULL), ("dirty_bytes", WHOLE_OR_NULL)]);

const DEVICE_EVIDENCE: Shape = Object(&[
    ("target", Whole),
    ("reads", WHOLE_OR_NULL),
    ("read_bytes", WHOLE_OR_NULL),
    ("writes", WHOLE_OR_NULL),
    ("write_bytes", WHOLE_OR_NULL),
    ("read_merges", WHOLE_OR_NULL),
    ("write_merges", WHOLE_OR_NULL),
    ("splits", WHOLE_OR_NULL),
    ("flushes", WHOLE_OR_NULL),
    ("discards", WHOLE_OR_NULL),
    ("reads_caused_by_writes", WHOLE_OR_NULL),
    ("in_flight_max", WHOLE_OR_NULL),
    ("busy_ns", WHOLE_OR_NULL),
    ("visits", List(&Object(&[("interval_ns", Whole), ("diskstat", DISKSTAT)]))),
    ("interval_ns", WHOLE_OR_NULL),
    ("diskstat", OrNull(&DISKSTAT)),
    ("waiting_ns", WHOLE_OR_NULL),
]);

/// The kernel's seventeen fields; the last six are null where the kernel does not count them.
const DISKSTAT: Shape = Object(&[
    ("read_ios", Whole),
    ("read_merges", Whole),
    ("read_sectors", Whole),
    ("read_ticks_ms", Whole),
    ("write_ios", Whole),
    ("write_merges", Whole),
    ("write_sectors", Whole),
    ("write_ticks_ms", Whole),
    ("in_flight", Whole),
    ("io_ticks_ms", Whole),
    ("time_in_queue_ms", Whole),
    ("discard_ios", WHOLE_OR_NULL),
    ("discard_merges", WHOLE_OR_NULL),
    ("discard_sectors", WHOLE_OR_NULL),
    ("discard_ticks_ms", WHOLE_OR_NULL),
    ("flush_ios", WHOLE_OR_NULL),
    ("flush_ticks_ms", WHOLE_OR_NULL),
]);

const VERDICT: Shape = Object(&[
    (
        "code",
        Word(&[
            "device",
            "page-cache",
            "hole",
            "cpu-bound",
            "source-bound",
            "throttled",
            "disturbed",
            "unverified",
            "incomplete",
        ]),
    ),
    ("device_share", NUMBER_OR_NULL),
    ("text", Text),
]);

const EXPERIMENT: Shape = Word(&["headline", "paths", "stream", "align", "zones", "scale", "stripe", "dd"]);

const FINDING: Shape = Object(&[
    ("code", Text),
    ("severity", Word(&["invalid", "uncertain", "cause", "cost", "remark"])),
    ("title", Text),
    ("text", Text),
    ("evidence", List(&Text)),
    ("confidence", Word(&["measured", "inferred"])),
    ("advice", TEXT_OR_NULL),
    ("cells", List(&Text)),
    ("experiment", OrNull(&EXPERIMENT)),
    ("covers_verdicts", Flag),
    (
        "effect",
        OrNull(&Object(&[
            ("stake", Word(&["figure", "data", "cost"])),
            ("factor", NUMBER_OR_NULL),
            ("low", NUMBER_OR_NULL),
            ("high", NUMBER_OR_NULL),
            ("text", Text),
        ])),
    ),
]);

/// Everything that is wrong with a Record, each with its place; empty when it keeps the contract.
pub(crate) fn complaints(record: &Value) -> Vec<String> {
    let mut found = Vec::new();
    compare(record, &RECORD, "", &mut found);
    if found.is_empty() {
        super::consistency::check(record, &mut found);
    }
    found
}

/// Everything that does not fit between a Record and the exit code that came with it.
pub(crate) fn exit_complaints(record: &Value, code: i32) -> Vec<String> {
    let status = record["status"].as_str().unwrap_or_default();
    let kind = record["error"]["kind"].as_str();
    let has_cell_errors =
        list(&record["cells"]).iter().any(|cell| !list(&cell["result"]["errors"]).is_empty());
    let fits = match (status, code) {
        ("interrupted", 130) => true,
        ("complete", 0) => !has_cell_errors,
        ("complete", 4) => has_cell_errors,
        ("failed", 2) => kind == Some("usage"),
        ("failed", 3) => kind == Some("refused"),
        ("failed", 4) => matches!(kind, None | Some("io")),
        _ => false,
    };
    if fits {
        Vec::new()
    } else {
        vec![format!("status {status} with error kind {kind:?} came with exit {code}")]
    }
}

/// JSON pointers of every member that the contract names and that this document holds, lists by their first element.
pub(crate) fn pointers(value: &Value, shape: &Shape, place: &str) -> Vec<(String, Shape)> {
    match (shape, value) {
        (OrNull(_), Value::Null) => Vec::new(),
        (OrNull(inner) | LeftOut(inner), _) => pointers(value, inner, place),
        (List(inner), Value::Array(items)) => {
            items.first().map_or_else(Vec::new, |first| pointers(first, inner, &format!("{place}/0")))
        }
        (Object(members), Value::Object(object)) => members
            .iter()
            .flat_map(|(name, shape)| {
                let place = format!("{place}/{}", name.replace('~', "~0").replace('/', "~1"));
                let value = object.get(*name);
                let is_left_out = value.is_none() && matches!(shape, LeftOut(_));
                let mut all = if is_left_out { Vec::new() } else { vec![(place.clone(), *shape)] };
                all.extend(value.map_or_else(Vec::new, |value| pointers(value, shape, &place)));
                all
            })
            .collect(),
        _ => Vec::new(),
    }
}

/// The members below an object of the contract that it does not name.
pub(crate) fn unnamed(value: &Value, shape: &Shape, place: &str) -> Vec<String> {
    match (shape, value) {
        (OrNull(inner) | LeftOut(inner), _) if !value.is_null() => unnamed(value, inner, place),
        (List(inner), Value::Array(items)) => {
            items.iter().flat_map(|item| unnamed(item, inner, place)).collect()
        }
        (Object(members), Value::Object(object)) => object
            .iter()
            .flat_map(|(name, value)| {
                let place = format!("{place}/{name}");
                match members.iter().find(|(known, _)| known == name) {
                    Some((_, shape)) => unnamed(value, shape, &place),
                    None => vec![place],
                }
            })
            .collect(),
        _ => Vec::new(),
    }
}

/// The elements of a list; none of what is no list.
pub(crate) fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn compare(value: &Value, shape: &Shape, place: &str, found: &mut Vec<String>) {
    let right = match shape {
        Text => value.as_str().is_some_and(|text| !text.is_empty()),
        Word(words) => value.as_str().is_some_and(|word| words.contains(&word)),
        Whole => value.is_u64(),
        Signed => value.is_i64() || value.is_u64(),
        Number => value.as_f64().is_some_and(f64::is_finite),
        Flag => value.is_boolean(),
        OrNull(_) if value.is_null() => true,
        OrNull(inner) | LeftOut(inner) => return compare(value, inner, place, found),
        List(inner) => {
            if let Value::Array(items) = value {
                for (index, item) in items.iter().enumerate() {
                    compare(item, inner, &format!("{place}[{index}]"), found);
                }
            }
            value.is_array()
        }
        Object(members) => {
            if let Value::Object(object) = value {
                compare_members(object, members, place, found);
            }
            value.is_object()
        }
    };
    if !right {
        found.push(format!("{place} is {value}, not {shape:?}"));
    }
}

fn compare_members(
    object: &Map<String, Value>,
    members: &[(&str, Shape)],
    place: &str,
    found: &mut Vec<String>,
) {
    let known: BTreeSet<&str> = object.keys().map(String::as_str).collect();
    for (name, shape) in members {
        let place = format!("{place}.{name}");
        if known.contains(name) {
            compare(&object[*name], shape, &place, found);
        } else if !matches!(shape, LeftOut(_)) {
            found.push(format!("{place} is missing"));
        }
    }
}
