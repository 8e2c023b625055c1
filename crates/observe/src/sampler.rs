//! A thread that reads the counters of devices many times a second during a visit, to see how they change over time. It is
//! started before the visit and joined before the visit's last look, and costs one `pread` per device and sample.

use crate::diskstat::StatFile;
use crate::series::Series;
use rdsk_model::{Clock, DiskStat};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// A device to sample: its open counters, and the sample that its visit began with.
#[derive(Debug)]
pub(crate) struct Sampled {
    pub(crate) file: Arc<StatFile>,
    pub(crate) first: DiskStat,
}

/// The counters of one device over time.
#[derive(Debug)]
pub(crate) struct DeviceSeries {
    pub(crate) series: Series,
    pub(crate) in_flight_max: Option<u64>,
    last: DiskStat,
    last_ns: u64,
}

/// The result of the thread.
#[derive(Debug, Default)]
pub(crate) struct AllSeries {
    /// In the order of the devices passed in; empty if there was no thread.
    pub(crate) devices: Vec<DeviceSeries>,
    /// Time spent on taking samples: an upper bound of the thread's CPU time.
    pub(crate) cost_ns: u64,
}

/// The thread, which waits until it is asked to begin.
#[derive(Debug)]
pub(crate) struct Sampler {
    /// The thread ends when this is dropped.
    told: Option<Sender<Begin>>,
    thread: Option<JoinHandle<AllSeries>>,
}

/// What to sample, from when on.
#[derive(Debug)]
struct Begin {
    devices: Vec<Sampled>,
    at_ns: u64,
}

impl Sampler {
    /// Starts the thread, which takes time, and samples nothing yet. If none can be started there will be no samples, only the
    /// counters of the whole visit.
    pub(crate) fn ready(width_ns: u64, clock: Arc<dyn Clock>) -> Self {
        let (told, orders) = channel();
        let thread = std::thread::Builder::new()
            .name("rdsk-sampler".to_owned())
            .spawn(move || sample(width_ns, clock.as_ref(), &orders))
            .ok();
        Self { told: Some(told), thread }
    }

    /// No thread and no samples.
    pub(crate) fn none() -> Self {
        Self { told: None, thread: None }
    }

    /// Samples from now on, every `width_ns` after `at_ns`, when the first samples of `devices` were taken.
    pub(crate) fn begin(&self, devices: Vec<Sampled>, at_ns: u64) {
        if let Some(told) = &self.told {
            // A thread that has ended has no result either.
            let _ = told.send(Begin { devices, at_ns });
        }
    }

    /// Stops and joins: what is sampled afterwards is later than all of this. A sampler that panicked has no result; that does not
    /// affect the visit's own counters.
    pub(crate) fn stop(&mut self) -> AllSeries {
        drop(self.told.take());
        self.thread.take().and_then(|thread| thread.join().ok()).unwrap_or_default()
    }
}

impl AllSeries {
    /// Goes on to the samples at the end of the visit, taken at `end_ns` when the thread was stopped already, so that each series
    /// ends with its sample and adds up to the same bytes and time; `None` for a device without one.
    pub(crate) fn end_with(&mut self, last: &[Option<DiskStat>], end_ns: u64) {
        for (series, last) in self.devices.iter_mut().zip(last) {
            if let Some(last) = last {
                series.continue_to(last, end_ns);
            }
        }
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        self.stop();
    }
}

impl DeviceSeries {
    fn continue_to(&mut self, stat: &DiskStat, now_ns: u64) {
        let moved = stat.moved_bytes().saturating_sub(self.last.moved_bytes());
        self.series.push(now_ns.saturating_sub(self.last_ns), moved, stat.in_flight);
        self.in_flight_max = self.in_flight_max.max(Some(stat.in_flight));
        self.last = *stat;
        self.last_ns = now_ns;
    }
}

fn sample(width_ns: u64, clock: &dyn Clock, orders: &Receiver<Begin>) -> AllSeries {
    let Ok(Begin { devices, at_ns }) = orders.recv() else { return AllSeries::default() };
    if devices.is_empty() {
        return AllSeries::default();
    }
    let width_ns = width_ns.max(1);
    let mut cost_ns = 0;
    let mut series: Vec<DeviceSeries> = devices
        .iter()
        .map(|device| DeviceSeries {
            series: Series::new(width_ns),
            in_flight_max: None,
            last: device.first,
            last_ns: at_ns,
        })
        .collect();
    let mut next_ns = at_ns.saturating_add(width_ns);
    let is_over = |until_ns: u64| {
        let left = Duration::from_nanos(until_ns.saturating_sub(clock.now_ns()));
        !matches!(orders.recv_timeout(left), Err(RecvTimeoutError::Timeout))
    };
    while !is_over(next_ns) {
        let now_ns = clock.now_ns();
        for (device, device_series) in devices.iter().zip(&mut series) {
            // If a device cannot be read now, a later sample covers the time in between.
            if let Ok(stat) = device.file.read() {
                device_series.continue_to(&stat, now_ns);
            }
        }
        // Deadlines lie on a grid, so that a late sample does not shift those after it.
        let missed = now_ns.saturating_sub(next_ns) / width_ns;
        next_ns = next_ns.saturating_add(width_ns.saturating_mul(missed + 1));
        cost_ns += clock.now_ns().saturating_sub(now_ns);
    }
    AllSeries { devices: series, cost_ns }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diskstat::parse_stat;
    use crate::kernel::tests::{RealClock, write};
    use rdsk_model::StopFlag;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::time::Instant;

    const WIDTH_NS: u64 = 5_000_000;

    fn device(directory: &std::path::Path, text: &str) -> Sampled {
        let path = directory.join("stat");
        write(&path, text);
        Sampled { file: Arc::new(StatFile::open(path).unwrap()), first: parse_stat(text).unwrap() }
    }

    /// A clock that counts how often it is read.
    struct CountedClock {
        inner: RealClock,
        readings: AtomicU64,
    }

    impl Clock for CountedClock {
        fn now_ns(&self) -> u64 {
            self.readings.fetch_add(1, Ordering::Relaxed);
            self.inner.now_ns()
        }

        fn sleep_until_ns(&self, at_ns: u64, stop: &StopFlag) {
            self.inner.sleep_until_ns(at_ns, stop);
        }
    }

    #[test]
    fn the_series_adds_up_to_the_last_sample() {
        let directory = tempfile::tempdir().unwrap();
        let clock = Arc::new(CountedClock { inner: RealClock::default(), readings: AtomicU64::new(0) });
        let device = device(directory.path(), "10 0 80 0 0 0 0 0 0 0 0");
        let mut sampler = Sampler::ready(WIDTH_NS, clock.clone());
        let begin_ns = clock.now_ns();
        sampler.begin(vec![device], begin_ns);
        // A sample reads the clock three times, so that two samples are over after nine readings more.
        let sampled_twice = || {
            let before = clock.readings.load(Ordering::Relaxed);
            assert!(rdsk_testkit::wait_until(Duration::from_secs(120), || {
                clock.readings.load(Ordering::Relaxed) > before + 9
            }));
        };
        sampled_twice();
        write(&directory.path().join("stat"), "20 0 160 0 5 0 40 0 7 0 0");
        sampled_twice();
        let last = parse_stat("21 0 168 0 5 0 40 0 0 0 0").unwrap();
        let mut sampled = sampler.stop();
        let end_ns = clock.now_ns();
        sampled.end_with(&[Some(last)], end_ns);
        let seen = &sampled.devices[0];
        assert_eq!(seen.series.bytes().iter().sum::<u64>(), (88 + 40) * 512);
        assert_eq!(seen.in_flight_max, Some(7));
        let covered_ns: u64 = seen.series.slots().iter().map(|slot| slot.covered_ns).sum();
        assert_eq!(covered_ns, end_ns - begin_ns);
        assert_eq!(seen.series.in_flight().first(), Some(&0));
        assert!(seen.series.in_flight().contains(&7));
        assert!(sampled.cost_ns > 0);
    }

    #[test]
    fn it_stops_at_once_and_is_joined_when_dropped() {
        let directory = tempfile::tempdir().unwrap();
        let clock: Arc<dyn Clock> = Arc::new(RealClock::default());
        const HOUR_NS: u64 = 3_600_000_000_000;
        let start = Instant::now();
        for _ in 0..20 {
            let sampler = Sampler::ready(HOUR_NS, Arc::clone(&clock));
            sampler.begin(vec![device(directory.path(), "0 0 0 0 0 0 0 0 0 0 0")], clock.now_ns());
            drop(sampler);
        }
        assert!(start.elapsed() < Duration::from_secs(600), "each would have slept for an hour");
        assert_eq!(Arc::strong_count(&clock), 1, "every thread has ended and let go of the clock");
    }

    #[test]
    fn what_is_not_begun_has_no_series() {
        let mut none = Sampler::none();
        assert!(none.thread.is_none());
        none.begin(Vec::new(), 0);
        assert!(none.stop().devices.is_empty());
        assert!(Sampler::ready(WIDTH_NS, Arc::new(RealClock::default())).stop().devices.is_empty());
    }
}
