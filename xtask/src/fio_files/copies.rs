//! The copies of a job file that both programs run: one for each phase, with its jobs on one device, past the page cache, ended by their
//! bytes, and with so many of these that chance hardly shows in what is drawn. It reads and runs nothing.

use rdsk_model::{LoadJob, Requests};

/// What a job without anything drawn moves at most.
const PLAIN_BYTES: u64 = 64 << 20;
/// What any job moves at most, on a disk that is a little larger.
const MOST_BYTES: u64 = 3 << 30;
/// Offsets further in are brought here.
const FURTHEST_BYTES: u64 = 1 << 30;
const NEAR: &str = "16m";
/// Clones of a job at most.
const MOST_CLONES: u64 = 4;
/// How long the requests of a job with a rate or with rests may take.
const PACED_S: f64 = 20.0;
/// Requests of a phase at least where offsets are drawn.
const PLACES: f64 = 8192.0;
/// Two programs that draw so many requests differ by 2 % once in a thousand times, per unit of the variance of each: 2 × (3.29 / 0.02)².
const PER_VARIANCE: f64 = 54_120.0;

/// The jobs of each phase, as texts.
pub(super) fn phases(text: &str) -> Vec<String> {
    let mut sections: Vec<Vec<&str>> = Vec::new();
    for line in text.lines() {
        match sections.last_mut() {
            Some(section) if !line.trim_start().starts_with('[') => section.push(line),
            _ => sections.push(vec![line]),
        }
    }
    let (mut phase, mut is_walled) = (None, false);
    let phase_of = |section: &Vec<&str>| {
        let wall = section.iter().rev().find_map(|line| wall(line));
        if section[0].trim_start().starts_with("[global") {
            is_walled = wall.unwrap_or(is_walled);
            return None;
        }
        if !section[0].trim_start().starts_with('[') {
            return None;
        }
        phase = Some(phase.map_or(0, |phase: usize| phase + usize::from(wall.unwrap_or(is_walled))));
        phase
    };
    let phases_of: Vec<Option<usize>> = sections.iter().map(phase_of).collect();
    let count = phases_of.iter().flatten().max().map_or(0, |last| last + 1);
    let only = |phase| {
        let is_kept = |of_section: &Option<usize>| of_section.is_none_or(|number| number == phase);
        let kept = sections.iter().zip(&phases_of).filter(|(_, of_section)| is_kept(of_section));
        kept.flat_map(|(section, _)| section.iter().copied()).collect::<Vec<_>>().join("\n") + "\n"
    };
    (0..count).map(only).collect()
}

/// Whether a line puts its job behind a wall; `None` for other lines.
fn wall(line: &str) -> Option<bool> {
    let (name, value) = setting(line);
    ["stonewall", "wait_for_previous"].contains(&name).then_some(value != "0")
}

/// Name and value of a line.
fn setting(line: &str) -> (&str, &str) {
    let plain = line.split([';', '#']).next().unwrap_or_default();
    plain.split_once('=').map_or((plain.trim(), ""), |(name, value)| (name.trim(), value.trim()))
}

/// The job file with all its jobs on one device.
pub(super) fn on_device(text: &str, device: &str) -> String {
    let is_place = |line: &&str| ["filename", "directory", "filename_format"].contains(&setting(line).0);
    let rest: Vec<&str> = text.lines().filter(|line| !is_place(line)).collect();
    format!("[global]\nfilename={device}\n{}\n", rest.join("\n"))
}

/// How much the jobs of a copy move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Scale {
    /// Bytes of each clone.
    pub(super) bytes: u64,
    /// Whether jobs that name fewer bytes get more, too.
    pub(super) is_exact: bool,
    /// Whether requests have several sizes.
    pub(super) has_sizes: bool,
}

impl Scale {
    /// Of jobs that are not known yet.
    pub(super) const PLAIN: Self = Self { bytes: PLAIN_BYTES, is_exact: false, has_sizes: false };

    /// What shows the mix, the sizes and the offsets of these jobs, which run at once.
    #[allow(
        clippy::cast_possible_truncation,
        reason = "a number of bytes that is cut at the size of a disk right after it"
    )]
    pub(super) fn of(jobs: &[LoadJob]) -> Self {
        let variance = jobs.iter().map(variance).fold(0.0, f64::max);
        let has_sizes = jobs.iter().any(|job| job.kinds().any(|kind| sizes(kind).1 > 0.0));
        let clones: f64 = jobs.iter().map(|job| f64::from(job.streams)).sum();
        let each = (PER_VARIANCE * variance).max(PLACES) / clones.max(1.0);
        let paced = jobs.iter().filter_map(paced).fold(f64::INFINITY, f64::min);
        let mean_bytes = jobs.iter().map(mean_bytes).fold(1.0, f64::max);
        let is_paced = paced < each;
        if variance == 0.0 && !is_paced {
            return Self { has_sizes, ..Self::PLAIN };
        }
        let bytes = (each.min(paced) * mean_bytes) as u64;
        let least_bytes = if is_paced { 1 << 20 } else { PLAIN_BYTES };
        let bytes = bytes.clamp(least_bytes, MOST_BYTES).next_multiple_of(1 << 20);
        Self { bytes, is_exact: true, has_sizes }
    }
}

/// Mean and variance of the sizes of requests; of the sizes divided by their mean.
fn sizes(requests: &Requests) -> (f64, f64) {
    let weight: f64 = requests.blocks.iter().map(|share| share.weight).sum();
    let mut moments = [0.0; 2];
    for share in &requests.blocks {
        let step = usize::try_from(share.min_bytes.max(1)).unwrap_or(usize::MAX);
        let of_share: Vec<f64> =
            (share.min_bytes..=share.max_bytes).step_by(step).map(|bytes| bytes as f64).collect();
        for (power, moment) in (1..).zip(&mut moments) {
            let sum: f64 = of_share.iter().map(|bytes| bytes.powi(power)).sum();
            *moment += share.weight / weight * sum / of_share.len() as f64;
        }
    }
    let [mean, squares] = moments;
    (mean, squares / (mean * mean) - 1.0)
}

fn mean_bytes(job: &LoadJob) -> f64 {
    job.kinds().map(|kind| sizes(kind).0).fold(1.0, f64::max)
}

/// What one request adds to the variance of the share of reads, or of the number of requests of so many bytes.
fn variance(job: &LoadJob) -> f64 {
    let of_sizes = job.kinds().map(|kind| sizes(kind).1).fold(0.0, f64::max);
    let reads = f64::from(job.read_percent) / 100.0;
    let is_mix = job.reads.is_some() && job.writes.is_some();
    let of_mix = if is_mix { reads * (1.0 - reads) * (1.0 + of_sizes) } else { 0.0 };
    of_sizes.max(of_mix)
}

/// Requests of a clone in the time that paced jobs have.
fn paced(job: &LoadJob) -> Option<f64> {
    let of_rate = job.rate.map(|rate| rate.per_s * PACED_S);
    let of_rests =
        (job.think_ns > 0).then(|| f64::from(job.think_every) * PACED_S / (job.think_ns as f64 / 1e9));
    of_rate.into_iter().chain(of_rests).reduce(f64::min)
}

/// The job file with jobs that end soon, and by their bytes: the same for both programs.
pub(super) fn scaled(text: &str, scale: Scale) -> String {
    let size = scale.bytes;
    let scaled_line = |line: &str| -> Option<String> {
        let (name, value) = setting(line);
        let is_more = |most: u64| bytes(value).is_none_or(|bytes| bytes > most);
        let is_percentage = value.ends_with('%');
        match name {
            "runtime" | "timeout" | "time_based" | "startdelay" | "ramp_time" | "loops" => None,
            // fio 3.33 and 3.41 do not end with `offload` here (2026-11-29), which changes no request but the thread that makes it.
            "io_submit_mode" => None,
            // They change no I/O, and not every fio knows them.
            _ if name.starts_with("log_") || name.starts_with("numa_") || name.starts_with("cpus_") => None,
            _ if name.starts_with("write_") && name.ends_with("_log") => None,
            "size" | "io_size" | "filesize" if !is_percentage && (scale.is_exact || is_more(size)) => {
                Some(format!("{name}={size}"))
            }
            "offset" | "offset_increment" if !is_percentage && is_more(FURTHEST_BYTES) => {
                Some(format!("{name}={NEAR}"))
            }
            // What the page cache makes of requests, and when, is no program's.
            "direct" | "buffered" => Some("direct=1".to_owned()),
            "numjobs" if is_more(MOST_CLONES) => Some(format!("{name}={MOST_CLONES}")),
            _ => Some(line.to_owned()),
        }
    };
    // With requests of several sizes, fio cuts those that meet a block already used, and rdsk does not.
    let places = if scale.has_sizes { "norandommap\n" } else { "" };
    // What names no size has one by the first lines.
    let lines: Vec<String> = text.lines().filter_map(scaled_line).collect();
    lines.join("\n").replacen("[global]", &format!("[global]\nthread\ndirect=1\n{places}size={size}"), 1)
        + "\n"
}

/// The job file past the page cache, whatever it moves.
pub(super) fn as_is(text: &str) -> String {
    text.replacen("[global]", "[global]\nthread\ndirect=1", 1)
}

/// A size in fio's ordinary units; `None` for anything else.
fn bytes(text: &str) -> Option<u64> {
    let lower = text.to_lowercase();
    let number = lower.trim_end_matches('b').trim_end_matches(['k', 'm', 'g', 't']);
    let shift = match lower.trim_end_matches('b').chars().last()? {
        'k' => 10,
        'm' => 20,
        'g' => 30,
        't' => 40,
        _ => 0,
    };
    number.parse::<u64>().ok()?.checked_mul(1 << shift)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rdsk_model::{BlockShare, OffsetRule};

    #[test]
    fn a_job_file_is_moved_to_one_device() {
        let text = on_device("[global]\nbs=4k\n[a]\nfilename=/x\nrw=read\ndirectory = /y\n", "/dev/loop9");
        assert_eq!(text, "[global]\nfilename=/dev/loop9\n[global]\nbs=4k\n[a]\nrw=read\n");
    }

    #[test]
    fn each_phase_is_a_file_with_all_global_sections() {
        let text = "[global]\nbs=4k\n[a]\nrw=read\n[b]\n[c]\nstonewall\n[global]\nbs=8k\n[d]\nstonewall=0 ; no\n[e]\nwait_for_previous\n";
        let expected = [
            "[global]\nbs=4k\n[a]\nrw=read\n[b]\n[global]\nbs=8k\n",
            "[global]\nbs=4k\n[c]\nstonewall\n[global]\nbs=8k\n[d]\nstonewall=0 ; no\n",
            "[global]\nbs=4k\n[global]\nbs=8k\n[e]\nwait_for_previous\n",
        ];
        assert_eq!(phases(text), expected);
        assert_eq!(phases("[global]\nstonewall\n[a]\n[b]\n").len(), 2, "a wall before each job");
    }

    #[test]
    fn jobs_are_scaled_to_a_small_disk() {
        let text = "[global]\nfilename=/dev/loop9\n[a]\nsize=100G ; all\nio_size=1m\nnumjobs=16\ntime_based\nruntime=60\nlog_prio=1\nio_submit_mode=offload\noffset=2g\ndirect=0\nrw=read\n";
        let expected = "[global]\nthread\ndirect=1\nsize=67108864\nfilename=/dev/loop9\n[a]\nsize=67108864\nio_size=1m\nnumjobs=4\noffset=16m\ndirect=1\nrw=read\n";
        assert_eq!(scaled(text, Scale::PLAIN), expected);
        let exact = scaled(
            "[global]\n[a]\nsize=1m\nsize=50%\n",
            Scale { is_exact: true, has_sizes: true, ..Scale::PLAIN },
        );
        assert_eq!(
            exact,
            "[global]\nthread\ndirect=1\nnorandommap\nsize=67108864\n[a]\nsize=67108864\nsize=50%\n"
        );
    }

    #[test]
    fn what_is_drawn_gets_as_many_requests_as_show_it() {
        let reads = |blocks| Requests::new(blocks, OffsetRule::Uniform);
        let plain = LoadJob::random_reads("r", 1 << 30);
        assert_eq!(Scale::of(std::slice::from_ref(&plain)), Scale::PLAIN);
        let mix = LoadJob { writes: plain.reads.clone(), read_percent: 50, ..plain.clone() };
        // 13,530 requests of 4 KiB, which two clones share.
        assert_eq!(Scale::of(&[LoadJob { streams: 2, ..mix.clone() }]).bytes, 64 << 20);
        let large = LoadJob { reads: Some(reads(vec![BlockShare::fixed(64 << 10)])), ..mix };
        assert_eq!(Scale::of(&[large]).bytes, 846 << 20);
        let halves = vec![BlockShare::fixed(4096), BlockShare::fixed(12_288)];
        let scale = Scale::of(&[LoadJob { reads: Some(reads(halves)), ..plain.clone() }]);
        // Sizes of 0.5 and 1.5 times their mean: a variance of a quarter.
        assert_eq!((scale.bytes, scale.has_sizes), (106 << 20, true));
        let slow = rdsk_model::Rate { per_s: 50.0, arrivals: rdsk_model::Arrivals::Constant };
        assert_eq!(Scale::of(&[LoadJob { rate: Some(slow), ..plain }]).bytes, 4 << 20);
    }
}
