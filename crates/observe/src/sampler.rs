//! A thread that reads the counters of devices many times a second during a visit, to see how they change over time. It is
//! always joined, and costs one `pread` per device and sample.

use crate::diskstat::StatFile;
use crate::series::Series;
use rdsk_model::{Clock, DiskStat};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// A device to sample: its open counters, and the sample that its visit began with.
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

/// The running thread.
#[derive(Debug)]
pub(crate) struct Sampler {
    /// The thread ends when this is dropped.
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<AllSeries>>,
}

impl Sampler {
    /// Starts to sample every `width_ns`, from `begin_ns` on. Without devices, or if no thread can be started, there are
    /// no samples, only the counters of the whole visit.
    pub(crate) fn start(devices: Vec<Sampled>, begin_ns: u64, width_ns: u64, clock: Arc<dyn Clock>) -> Self {
        let (stop, stopped) = channel();
        let thread = if devices.is_empty() {
            None
        } else {
            std::thread::Builder::new()
                .name("rdsk-sampler".to_owned())
                .spawn(move || sample(&devices, begin_ns, width_ns, clock.as_ref(), &stopped))
                .ok()
        };
        Self { stop: Some(stop), thread }
    }

    /// Stops and joins. `last` are the samples at the end of the visit, taken at `end_ns`, so that each series ends with
    /// its sample and adds up to the same bytes; `None` for a device without one.
    pub(crate) fn finish(mut self, end_ns: u64, last: &[Option<DiskStat>]) -> AllSeries {
        let mut sampled = self.join();
        for (seen, last) in sampled.devices.iter_mut().zip(last) {
            if let Some(last) = last {
                seen.continue_to(last, end_ns);
            }
        }
        sampled
    }

    /// A sampler that panicked has no result; that does not affect the visit's own counters.
    fn join(&mut self) -> AllSeries {
        drop(self.stop.take());
        self.thread.take().and_then(|thread| thread.join().ok()).unwrap_or_default()
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        self.join();
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

fn sample(
    devices: &[Sampled],
    begin_ns: u64,
    width_ns: u64,
    clock: &dyn Clock,
    stopped: &Receiver<()>,
) -> AllSeries {
    let width_ns = width_ns.max(1);
    let mut cost_ns = 0;
    let mut series: Vec<DeviceSeries> = devices
        .iter()
        .map(|device| DeviceSeries {
            series: Series::new(width_ns),
            in_flight_max: None,
            last: device.first,
            last_ns: begin_ns,
        })
        .collect();
    let mut next_ns = begin_ns.saturating_add(width_ns);
    let wait =
        |until_ns: u64| stopped.recv_timeout(Duration::from_nanos(until_ns.saturating_sub(clock.now_ns())));
    while wait(next_ns) == Err(RecvTimeoutError::Timeout) {
        let now_ns = clock.now_ns();
        for (device, seen) in devices.iter().zip(&mut series) {
            // If a device cannot be read now, a later sample covers the time in between.
            if let Ok(stat) = device.file.read() {
                seen.continue_to(&stat, now_ns);
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
    use std::time::Instant;

    const WIDTH_NS: u64 = 5_000_000;

    fn device(directory: &std::path::Path, text: &str) -> Sampled {
        let path = directory.join("stat");
        write(&path, text);
        Sampled { file: Arc::new(StatFile::open(path).unwrap()), first: parse_stat(text).unwrap() }
    }

    #[test]
    fn the_series_adds_up_to_the_last_sample() {
        let directory = tempfile::tempdir().unwrap();
        let clock = Arc::new(RealClock::default());
        let device = device(directory.path(), "10 0 80 0 0 0 0 0 0 0 0");
        let begin_ns = clock.now_ns();
        let sampler = Sampler::start(vec![device], begin_ns, WIDTH_NS, clock.clone());
        std::thread::sleep(Duration::from_millis(60));
        write(&directory.path().join("stat"), "20 0 160 0 5 0 40 0 7 0 0");
        std::thread::sleep(Duration::from_millis(60));
        let last = parse_stat("21 0 168 0 5 0 40 0 0 0 0").unwrap();
        let end_ns = clock.now_ns();
        let sampled = sampler.finish(end_ns, &[Some(last)]);
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
            let device = device(directory.path(), "0 0 0 0 0 0 0 0 0 0 0");
            drop(Sampler::start(vec![device], clock.now_ns(), HOUR_NS, Arc::clone(&clock)));
        }
        assert!(start.elapsed() < Duration::from_secs(10), "each would have slept for an hour");
        assert_eq!(Arc::strong_count(&clock), 1, "every thread has ended and let go of the clock");
    }

    #[test]
    fn no_devices_no_thread() {
        let sampler = Sampler::start(vec![], 0, WIDTH_NS, Arc::new(RealClock::default()));
        assert!(sampler.thread.is_none());
        assert!(sampler.finish(1, &[]).devices.is_empty());
    }
}
