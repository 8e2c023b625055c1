//! fio's samples of the rates of a direction, where they are rates: a log without averaging has a sample for each I/O, which is
//! none, and before 3.14 those of a group are those of its single jobs. It explains nothing that is not about samples.

use super::job::Part;
use super::notes::Notes;
use super::version::{Version, is_about};
use rdsk_model::{RateSamples, Samples};

const BYTES_PER_KIB: f64 = 1024.0;
/// fio takes a sample each 500 ms unless it is asked for others; more often than this for each ms, and as many as there are
/// I/Os, they are those of the I/Os.
const OFTEN_PER_MS: f64 = 0.05;
/// How far the numbers of samples and I/Os may lie apart: fio also samples the I/Os that it does not count, at the end.
const ALIKE: f64 = 0.02;
/// How far the mean of samples may be from the rate where all jobs are in them.
const WHOLE: f64 = 0.25;

impl Part<'_> {
    /// The samples that are rates over time, and notes on those that are not.
    pub(super) fn samples(&self, notes: &mut Notes) -> Option<Samples> {
        let from = self.direction;
        let bandwidth = [from.bw_mean, from.bw_dev, from.bw_min, from.bw_max];
        let ios = [from.iops_mean, from.iops_stddev, from.iops_min, from.iops_max];
        let given = [
            ("bandwidth", "write_bw_log", from.bw_samples, bandwidth, BYTES_PER_KIB),
            ("IOPS", "write_iops_log", from.iops_samples, ios, 1.0),
        ];
        let [bytes_per_s, ops_per_s] = given.map(|(what, log, count, figures, unit)| {
            let count = count.filter(|&count| count > 0)?;
            let [mean, stddev, min, max] = figures;
            if self.are_of_single_ios(log, count, min == Some(1.0) && max == Some(1.0)) {
                let text = format!(
                    "fio's samples of {what} are those of single I/Os (a log without log_avg_msec): no rate over time, and left out"
                );
                notes.add(&self.name, text);
                return None;
            }
            let jobs = self.jobs_beside(mean?, unit, notes)?;
            Some(RateSamples { count, mean: mean? * unit, stddev: stddev? * unit, min: min? * unit, max: max? * unit, jobs })
        });
        (bytes_per_s.is_some() || ops_per_s.is_some()).then_some(Samples { bytes_per_s, ops_per_s })
    }

    fn are_of_single_ios(&self, log: &str, count: u64, are_ones: bool) -> bool {
        let ios = self.direction.total_ios as f64;
        let are_as_many = (count as f64 - ios).abs() <= ALIKE * ios;
        let are_many = count as f64 > OFTEN_PER_MS * self.direction.runtime as f64;
        self.options.logs_single_ios(log) || (are_as_many && (are_many || are_ones))
    }

    /// Of how many jobs each sample is that of one; `None`, with a note, where that is not known.
    fn jobs_beside(&self, mean: f64, unit: f64, notes: &mut Notes) -> Option<u32> {
        if !self.version.is_some_and(Version::samples_single_jobs) {
            return Some(1);
        }
        let rate = if unit > 1.0 { self.direction.bw } else { self.direction.iops };
        let is_whole = rate.is_some_and(|rate| is_about(mean, rate) || (mean - rate).abs() <= WHOLE * rate);
        let jobs = self.streams.or_else(|| is_whole.then_some(1));
        if jobs.is_none() {
            let text = "fio before 3.14 samples each job of a group alone, and how many there were is not known: its samples are left out";
            notes.add(&self.name, text);
        }
        if let Some(jobs) = jobs.filter(|&jobs| jobs > 1 && unit > 1.0) {
            let mib = |kib: f64| rdsk_analysis::words::figure(kib / 1024.0);
            let text = format!(
                "fio before 3.14 samples each job of a group alone: the {jobs} jobs have {jobs} × {} = {} MiB/s by its samples",
                mib(mean),
                mib(mean * f64::from(jobs))
            );
            notes.add(&self.name, text);
        }
        jobs
    }
}
