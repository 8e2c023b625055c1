//! The options of fio 3.42 by what they are here: understood, without influence on the I/O, or nothing that rdsk does. Their names are
//! facts of fio's documentation; this table says nothing of their values but which of them change nothing.

/// What becomes of an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Use {
    /// `job` reads it.
    Understood,
    /// It changes no I/O; the reason in words.
    Ignored(&'static str),
    /// As ignored where the value is one of these; else refused.
    Unless(&'static [&'static str], &'static str),
    /// As ignored in a job that does not write; else refused.
    OfWrites(&'static [&'static str], &'static str),
    /// The reason.
    Refused(&'static str),
}

/// Other names of options, each with the one that stands in the lists below.
const ALIASES: &[(&str, &str)] = &[
    ("readwrite", "rw"),
    ("blocksize", "bs"),
    ("blockalign", "ba"),
    ("blocksize_range", "bsrange"),
    ("blocksize_unaligned", "bs_unaligned"),
    ("io_limit", "io_size"),
    ("fileoffset", "offset"),
    ("timeout", "runtime"),
    ("wait_for_previous", "stonewall"),
    ("nr_files", "nrfiles"),
    ("fill_fs", "fill_device"),
    ("allrandrepeat", "randrepeat"),
    ("iomem", "mem"),
    ("mem_align", "iomem_align"),
    ("iodepth_batch_submit", "iodepth_batch"),
    ("iodepth_batch_complete", "iodepth_batch_complete_min"),
    ("ratemin", "rate_min"),
    ("ratecycle", "rate_cycle"),
    ("data_placement", "dataplacement"),
    ("fdp_pli_select", "plid_select"),
    ("fdp_pli", "plids"),
    ("log_max_value", "log_window_value"),
    ("log_unix_epoch", "log_alternate_epoch"),
    ("disable_bw", "disable_bw_measurement"),
    ("steadystate", "ss"),
    ("steadystate_duration", "ss_dur"),
    ("steadystate_ramp_time", "ss_ramp"),
    ("steadystate_check_interval", "ss_interval"),
];

const UNDERSTOOD: &[&str] = &[
    "name", "filename", "directory", "filename_format", "nrfiles", "file_service_type", "rw", "bs",
    "bsrange", "bssplit", "ba", "ioengine", "iodepth", "io_submit_mode", "size", "io_size", "filesize",
    "offset", "offset_increment", "number_ios", "norandommap", "random_distribution", "fsync", "fdatasync",
    "sync", "direct", "buffered", "uncached", "overwrite", "fallocate", "fadvise_hint", "loops", "numjobs",
    "startdelay", "ramp_time", "runtime", "time_based", "rwmixread", "rwmixwrite", "thinktime",
    "thinktime_blocks", "rate", "rate_iops", "rate_process", "stonewall", "buffer_compress_percentage",
    "kb_base",
];

const REPORTS: &str = "concerns fio's own reports and logs";
const CLOCKS: &str = "rdsk reads the clock around every request";
const PLACES: &str = "the order of offsets and the data come from --seed";
const CREATES: &str = "rdsk makes its test file itself, and removes it";
const SUBMITS: &str = "rdsk submits requests in its own way";
const PINS: &str = "see --pin";
const ERRORS: &str = "the first failed request ends a stream";
const FLUSHES: &str = "rdsk flushes what was written after each phase";
const ENGINE: &str = "is for other engines";

const IGNORED: &[(&str, &[&str])] = &[
    (
        REPORTS,
        &[
            "description", "group_reporting", "new_group", "per_job_logs", "write_bw_log", "write_lat_log",
            "write_iops_log", "write_hist_log", "write_iolog", "log_entries", "log_avg_msec",
            "log_hist_msec", "log_hist_coarseness", "log_window_value", "log_offset", "log_prio",
            "log_issue_time", "log_compression", "log_compression_cpus", "log_store_compressed",
            "log_alternate_epoch", "log_alternate_epoch_clock_id", "block_error_percentiles", "bwavgtime",
            "iopsavgtime", "stats", "clat_percentiles", "lat_percentiles", "slat_percentiles",
            "percentile_list", "significant_figures", "disk_util", "unified_rw_reporting", "unit_base",
            "rate_cycle", "unique_filename",
        ],
    ),
    (
        CLOCKS,
        &[
            "clocksource", "gtod_reduce", "gtod_cpu", "disable_lat", "disable_clat", "disable_slat",
            "disable_bw_measurement", "job_start_clock_id",
        ],
    ),
    (
        PLACES,
        &[
            "randrepeat", "randseed", "random_generator", "softrandommap", "refill_buffers",
            "scramble_buffers",
        ],
    ),
    (
        CREATES,
        &[
            "create_serialize", "create_fsync", "create_on_open", "allow_file_create", "unlink",
            "unlink_each_loop", "openfiles",
        ],
    ),
    (
        SUBMITS,
        &[
            "thread", "mem", "iomem_align", "hugepage-size", "fixedbufs", "registerfiles", "nonvectored",
            "sqthread_poll", "sqthread_poll_cpu", "force_async", "userspace_reap", "libaio_vectored",
        ],
    ),
    (PINS, &["cpumask", "cpus_allowed", "cpus_allowed_policy", "numa_cpu_nodes", "numa_mem_policy"]),
    (ERRORS, &["continue_on_error", "ignore_error", "error_dump", "exitall_on_error"]),
    (FLUSHES, &["end_fsync", "fsync_on_close"]),
    ("a rest is a rest, whether or not the processor spins", &["thinktime_spin"]),
    ("holds for percentages of a device, which are whole blocks here", &["offset_align"]),
    (
        "fio no longer reads it",
        &["percentage_sequential", "rwmixcycle", "verifysort", "verifysort_nr", "flow_watermark"],
    ),
    ("rdsk judges by itself whether it may write", &["allow_mounted_write"]),
];

const OFF: &[&str] = &["0"];
const OFF_OR_NONE: &[&str] = &["0", "none"];
const NO_VERIFY: &str = "rdsk does not check what it reads or has written";
const NO_ZONES: &str = "rdsk does not know the zones of a device";
const NO_BATCHES: &str = "rdsk sends each request as soon as there is room for it";
const NO_STATE: &str = "rdsk does not look for a steady state by this rule";
const NO_LIMIT: &str = "rdsk does not change or end a load because of its latency or rate; see --p99";
const NO_PRIORITY: &str = "rdsk gives requests no priority";
const NO_REPLAY: &str = "rdsk replays no logs";
const NO_MACHINE: &str = "rdsk changes nothing of the machine and runs no commands";
const NO_FLOW: &str = "jobs of rdsk do not wait for each other's progress";
const NO_PLACEMENT: &str = "rdsk gives devices no hints on placement";

const UNLESS: &[(&[&str], &str, &[&str])] = &[
    (OFF, "a job of several files is several jobs; rdsk measures one file or device", &["opendir"]),
    (&["none", "readwrite"], "rdsk locks no files", &["lockfile"]),
    (&["none", "file", "block"], "rdsk opens files and block devices", &["filetype"]),
    (OFF, "sizes that are not multiples of the smallest", &["bs_unaligned"]),
    (OFF, "sizes belong to reads and writes here, not to orders", &["bs_is_seq_rand"]),
    (&["sequential"], "offsets that are asked for several times", &["rw_sequencer"]),
    (
        &["100"],
        "a mix of sequential and random offsets in one direction; make two jobs of it",
        &["percentage_random"],
    ),
    (&["1"], NO_BATCHES, &["iodepth_batch", "iodepth_batch_complete_min"]),
    (OFF, NO_BATCHES, &["iodepth_batch_complete_max", "iodepth_low"]),
    (OFF, "requests that overlap may be in flight together", &["serialize_overlap"]),
    (OFF, "rdsk writes no more than it was asked to", &["fill_device", "file_append", "sprandom"]),
    (OFF_OR_NONE, NO_VERIFY, &["verify"]),
    (OFF, NO_VERIFY, &["verify_only", "verify_backlog", "experimental_verify"]),
    (OFF, "rdsk does not check what it has trimmed", &["trim_percentage", "trim_backlog"]),
    (&["1"], "rdsk discards one range per request", &["num_range"]),
    (OFF, "the order of blocks follows a distribution here", &["random_sequence_stride"]),
    (
        OFF,
        NO_ZONES,
        &["zonesize", "zonecapacity", "zonerange", "zoneskip", "read_beyond_wp", "recover_zbd_write_error"],
    ),
    (&["none"], NO_ZONES, &["zonemode"]),
    (OFF, NO_PLACEMENT, &["fdp"]),
    (&["none"], NO_PLACEMENT, &["dataplacement"]),
    (&["none", "not_set"], NO_PLACEMENT, &["write_hint"]),
    (OFF, "rdsk leaves memory to others", &["lockmem"]),
    (OFF, NO_PRIORITY, &["nice", "prio", "prioclass", "priohint", "cmdprio_percentage"]),
    (OFF, "rdsk rests by time and requests, not by cycles", &["thinkcycles", "thinktime_iotime"]),
    (&["complete", "issue"], "is complete or issue", &["thinktime_blocks_type"]),
    (OFF, "a rate and rests are kept both", &["rate_ignore_thinktime"]),
    (OFF, NO_LIMIT, &["rate_min", "rate_iops_min", "max_latency", "latency_target", "latency_run"]),
    (OFF, "rdsk makes no atomic or barrier writes", &["atomic", "write_barrier", "sync_file_range"]),
    (OFF, "files alone are no load", &["create_only"]),
    (OFF, "what a phase reads is not in memory before it", &["pre_read"]),
    (&["1"], "rdsk makes sure that what a phase reads is not in memory before it", &["invalidate"]),
    (OFF, NO_FLOW, &["flow", "exitall"]),
    (
        OFF,
        "rdsk does not poll for completions, and waits where it must",
        &["hipri", "hipri_percentage", "nowait", "readfua"],
    ),
];

const OF_WRITES: &[(&[&str], &str, &[&str])] = &[
    (OFF, "rdsk writes random data", &["zero_buffers", "dedupe_percentage"]),
    (&[], "rdsk writes random data", &["buffer_pattern"]),
    (OFF, "rdsk writes with O_DSYNC, which the kernel may do with FUA: sync=dsync", &["writefua"]),
];

const REFUSED: &[(&str, &[&str])] = &[
    ("phases are separated by stonewall here", &["wait_for"]),
    (NO_STATE, &["ss", "ss_dur", "ss_ramp", "ss_interval"]),
    (
        NO_REPLAY,
        &[
            "read_iolog", "read_iolog_chunked", "replay_no_stall", "replay_redirect", "replay_scale",
            "replay_align", "replay_time_scale", "replay_skip", "merge_blktrace_file",
            "merge_blktrace_scalars", "merge_blktrace_iters",
        ],
    ),
    (NO_MACHINE, &["exec_prerun", "exec_postrun", "ioscheduler", "cgroup", "uid", "gid", "profile"]),
    (NO_ZONES, &["zone_reset_threshold", "zone_reset_frequency"]),
    (NO_PRIORITY, &["cmdprio_class", "cmdprio", "cmdprio_hint", "cmdprio_bssplit"]),
    (NO_PLACEMENT, &["plid_select", "plids", "dp_scheme"]),
];

/// Options that say nothing where the one that they belong to was not refused.
const DEPENDENT: &[(&str, &[&str])] = &[
    (
        "says how to verify",
        &[
            "do_verify", "verify_interval", "verify_offset", "verify_pattern", "verify_pattern_interval",
            "verify_fatal", "verify_dump", "verify_async", "verify_async_cpus", "verify_backlog_batch",
            "verify_state_load", "verify_state_save", "verify_write_sequence", "verify_header_seed",
            "trim_verify_zero", "trim_backlog_batch",
        ],
    ),
    (
        "says how data repeat",
        &["buffer_compress_chunk", "dedupe_global", "dedupe_mode", "dedupe_working_set_percentage"],
    ),
    ("says how jobs end each other", &["exit_what", "flow_id", "flow_sleep"]),
    ("says how a latency is held", &["latency_window", "latency_percentile"]),
    ("says how zones are opened", &["max_open_zones", "job_max_open_zones", "ignore_zone_limits"]),
    ("is of an option that rdsk refuses", &["cgroup_nodelete", "cgroup_weight", "spr_num_regions", "spr_op"]),
    (ENGINE, &["gpu_dev_id", "gpu_dev_ids"]),
];

/// The name in the lists above and what becomes of it; `None` for a name that fio's own options do not have.
pub(super) fn option(name: &str) -> Option<(&'static str, Use)> {
    let name = ALIASES.iter().find(|(alias, _)| *alias == name).map_or(name, |(_, name)| name);
    let named = |names: &&'static [&'static str]| names.iter().find(|one| **one == name).copied();
    let of = |list: &'static [(&'static str, &'static [&'static str])]| {
        list.iter().find_map(|(why, names)| named(names).map(|name| (name, *why)))
    };
    let valued = |list: &'static [(&'static [&'static str], &'static str, &'static [&'static str])]| {
        list.iter().find_map(|(values, why, names)| named(names).map(|name| (name, *values, *why)))
    };
    named(&UNDERSTOOD)
        .map(|name| (name, Use::Understood))
        .or_else(|| of(IGNORED).or_else(|| of(DEPENDENT)).map(|(name, why)| (name, Use::Ignored(why))))
        .or_else(|| valued(UNLESS).map(|(name, values, why)| (name, Use::Unless(values, why))))
        .or_else(|| valued(OF_WRITES).map(|(name, values, why)| (name, Use::OfWrites(values, why))))
        .or_else(|| of(REFUSED).map(|(name, why)| (name, Use::Refused(why))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_stands_in_one_list() {
        let mut names: Vec<&str> = UNDERSTOOD.to_vec();
        for list in [IGNORED, REFUSED, DEPENDENT] {
            names.extend(list.iter().flat_map(|(_, names)| names.iter()));
        }
        for list in [UNLESS, OF_WRITES] {
            names.extend(list.iter().flat_map(|(_, _, names)| names.iter()));
        }
        let count = names.len();
        // fio 3.42 has 244 options, without those of its engines.
        assert!(count >= 240, "{count}");
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
        for (alias, name) in ALIASES {
            assert!(names.binary_search(name).is_ok() && names.binary_search(alias).is_err(), "{alias}");
            assert_eq!(option(alias), option(name));
        }
        assert_eq!(option("blocksize"), Some(("bs", Use::Understood)));
        assert!(matches!(option("cgroup"), Some(("cgroup", Use::Refused(_)))));
        assert!(matches!(option("ratemin"), Some(("rate_min", Use::Unless(["0"], _)))));
        assert_eq!(option("no_such_option"), None);
    }
}
