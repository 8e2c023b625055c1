//! What the figures of a part do not say, in notes: whose latencies they are, what held the job back, what its options leave open.
//! It changes no figure.

use super::document::Direction;
use super::job::Part;
use super::latency::{self, Clock};
use super::notes::Notes;
use super::version::Version;
use rdsk_analysis::words::{list, nanos, plural};
use rdsk_model::{EngineKind, Latency, Op};

/// Syncs above a percentile from which it needs no word of caution.
const MANY_ABOVE: f64 = 10.0;

impl Part<'_> {
    pub(super) fn explain_clock(&self, clock: Clock, notes: &mut Notes) {
        let has_total = latency::count(&self.direction.lat_ns, self.direction) > 0;
        let is_synchronous = self.options.engine() == Some(EngineKind::Sync);
        let total =
            self.direction.lat_ns.mean.filter(|_| clock == Clock::Completion && has_total && !is_synchronous);
        if let Some(total) = total {
            let total = nanos(rdsk_analysis::metrics::whole(total.round()));
            notes.add(
                &self.name,
                format!(
                    "latencies of its {}s are fio's clat, which begins when the submission has returned; with the submission (lat) \
                     the mean is {total}; lat_percentiles=1 gives the percentiles of that",
                    self.op
                ),
            );
        }
    }

    /// What the figures do not say.
    pub(super) fn explain(&self, syncs: Option<&Latency>, notes: &mut Notes) {
        self.explain_options(notes);
        self.explain_limits(notes);
        self.explain_syncs(syncs, notes);
        if self.is_mixed {
            notes.add(
                &self.name,
                "reads and writes of the job share its queue, so neither had the whole depth",
            );
        }
        if self.version.is_some_and(Version::counts_microseconds) {
            notes.add(&self.name, "fio 2 counts whole microseconds and KiB");
        }
        let Direction { short_ios, drop_ios, .. } = *self.direction;
        for (count, what) in [(short_ios, "short"), (drop_ios, "dropped")] {
            if count > 0 {
                let ios = plural(count, "I/O");
                notes.add(&self.name, format!("fio counts {ios} that were {what} ({})", self.op));
            }
        }
    }

    fn explain_options(&self, notes: &mut Notes) {
        let (options, name) = (&self.options, &self.name);
        if !options.are_whole {
            notes.add(
                name,
                "the document does not repeat its options: what is not shown of the workload is not known, and its block size is \
                 the mean of its I/Os",
            );
        } else if self.is_of_unlike_jobs() {
            notes.add(name, "the sum of a group; the options are those of its first job");
        } else if options.block_bytes(self.op).is_none() {
            notes.add(name, "its I/Os have several sizes; the block size shown is their mean");
        }
        if let Some(offset) = options.offset_without_bytes() {
            notes.add(
                name,
                format!("offset={offset} is no number of bytes, so it is not known where its I/O began"),
            );
        }
        let Some(engine) = options.engine_name() else { return };
        if options.engine().is_none() {
            notes.add(
                name,
                format!("rdsk has no word for the engine {engine}, and knows nothing of what it does"),
            );
        }
        if let Some(depth) = options.requested_depth().filter(|&depth| Some(depth) > options.queue_depth()) {
            notes.add(name, format!("{engine} does one I/O at a time, whatever iodepth={depth} says"));
        }
    }

    /// What kept the job from being as fast as the storage.
    fn explain_limits(&self, notes: &mut Notes) {
        let brakes = self.options.brakes();
        if !brakes.is_empty() {
            let what = list(&brakes);
            notes.add(
                &self.name,
                format!("fio held the job back ({what}); the rate is no limit of the storage"),
            );
        }
        if let Some((user, kernel)) = self.processor_percent().filter(|_| self.was_limit()) {
            let poll = if self.options.engine().is_some() { "" } else { ", unless its engine polls" };
            let text = format!(
                "fio was the limit, not the storage{poll}: it used {:.1}% of a processor (usr {user:.1}%, sys {kernel:.1}%); more \
                 jobs (numjobs) or larger blocks ask more of the storage",
                user + kernel
            );
            notes.add(&self.name, text);
        }
    }

    /// Where the time of the syncs is.
    fn explain_syncs(&self, syncs: Option<&Latency>, notes: &mut Notes) {
        let given = self.options.syncs();
        let what = if given.is_empty() { "fsync or the like".to_owned() } else { list(&given) };
        if (self.op == Op::Write && !given.is_empty()) || syncs.is_some() {
            let own = if syncs.is_some() { "; the syncs have latencies of their own" } else { "" };
            let op = self.op;
            let text =
                format!("{what} takes time that is in the rate and not in the latencies of the {op}s{own}");
            notes.add(&self.name, text);
        }
        let Some(syncs) = syncs else { return };
        let shares = [("p50", syncs.p50, 0.5), ("p99", syncs.p99, 0.99), ("p99.9", syncs.p999, 0.999)];
        for (percentile, figure, share) in shares {
            let above = latency::above(syncs.count, share);
            if figure.is_some() && above < MANY_ABOVE {
                let count = plural(syncs.count, "sync");
                notes.add(&self.name, format!("only {above:.0} of {count} took longer than {percentile}"));
            }
        }
    }
}
