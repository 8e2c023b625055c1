//! When calls begin and end. A plain copy does nothing between two calls, so the end of one is the beginning of the next. Blocks of
//! 16 KiB in memory take 5 µs, of which a reading of the kernel's clock is 30 ns: where the kernel itself keeps time by the
//! processor's counter, the counter is read instead, in 10 ns.

use rdsk_sys::ticks;
use std::time::{Duration, Instant};

/// The counter's rate is measured over at least this long, so that it is known to a few millionths.
const LEAST_SPAN: Duration = Duration::from_millis(20);
/// Readings of both clocks of which the closest counts: something may come between the two.
const READINGS: usize = 5;
/// Of a span by the kernel's clock, the counter's may differ by this part: twice the 500 millionths by which adjtimex(2) slews.
const MAX_APART: u64 = 1000;
/// And by this much more, beside what lay between the readings of both.
const APART: Duration = Duration::from_micros(20);

/// Nanoseconds for each tick of the processor's counter, times 2³².
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TickRate(u64);

impl TickRate {
    /// `None` unless a tick takes less than four seconds, which every processor's does.
    fn of(ticks: u64, time: Duration) -> Option<Self> {
        let scaled = (time.as_nanos() << 32).checked_div(ticks.into())?;
        u64::try_from(scaled).ok().filter(|&scaled| scaled > 0).map(Self)
    }

    fn ns(self, ticks: u64) -> u64 {
        u64::try_from((u128::from(ticks) * u128::from(self.0)) >> 32).unwrap_or(u64::MAX)
    }
}

/// A moment by the kernel's clock and by the counter, from which the counter's rate is measured.
#[derive(Clone, Copy, Debug)]
pub struct TickStart {
    at: Instant,
    ticks: u64,
    /// Ticks by which both readings may be apart.
    apart: u64,
}

impl TickStart {
    /// Now; `None` where the kernel does not keep its time by the counter.
    pub fn now() -> Option<Self> {
        ticks::keep_the_kernels_time().then(Self::read)
    }

    /// The rate since then; `None` if too little time has passed.
    pub fn rate(&self) -> Option<TickRate> {
        let Self { at, ticks, .. } = Self::read();
        let span = at.duration_since(self.at);
        (span >= LEAST_SPAN).then_some(())?;
        TickRate::of(ticks.checked_sub(self.ticks)?, span)
    }

    /// The same once enough time has passed, which this waits for: 20 ms at most.
    pub fn settled(&self) -> Option<TickRate> {
        std::thread::sleep(LEAST_SPAN.saturating_sub(self.at.elapsed()));
        self.rate()
    }

    fn read() -> Self {
        let once = || {
            let before = ticks::now();
            let at = Instant::now();
            let apart = ticks::now().wrapping_sub(before);
            Self { at, ticks: before.wrapping_add(apart / 2), apart }
        };
        let mut closest = once();
        for other in (1..READINGS).map(|_| once()) {
            if other.apart < closest.apart {
                closest = other;
            }
        }
        closest
    }

    /// Whether both clocks went alike from here to a later moment. In suspend to idle the counter goes on and the kernel's clock does
    /// not; after suspend to RAM the counter begins anew.
    fn went_alike(&self, rate: TickRate, later: &Self) -> bool {
        let Some(ticks) = later.ticks.checked_sub(self.ticks) else { return false };
        let (counted, elapsed) = (rate.ns(ticks), whole_ns(later.at.duration_since(self.at)));
        let unsure = rate.ns(self.apart.saturating_add(later.apart)).saturating_add(whole_ns(APART));
        counted.abs_diff(elapsed) <= (elapsed / MAX_APART).saturating_add(unsure)
    }
}

/// A moment, and a span between two, as [`Stamps`] count them.
pub(crate) type Stamp = u64;

/// The times of the calls of one copy.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stamps {
    /// Whether nothing is done between two calls.
    is_plain: bool,
    /// Of the counter; nanoseconds since `began` are counted where it is not known.
    rate: Option<TickRate>,
    began: TickStart,
    last: Option<Stamp>,
}

impl Stamps {
    pub(crate) fn new(is_plain: bool, rate: Option<TickRate>) -> Self {
        Self { is_plain, rate, began: TickStart::read(), last: None }
    }

    #[inline]
    fn now(&self) -> Stamp {
        match self.rate {
            Some(_) => ticks::now(),
            None => whole_ns(self.began.at.elapsed()),
        }
    }

    /// A call begins.
    #[inline]
    pub(crate) fn begin(&mut self) -> Stamp {
        self.last.take().unwrap_or_else(|| self.now())
    }

    /// It has ended.
    #[inline]
    pub(crate) fn end(&mut self) -> Stamp {
        let now = self.now();
        self.last = Some(now).filter(|_| self.is_plain);
        now
    }

    /// Whether the spans are known: the kernel's clock always is, the counter only if it went with that clock and the kernel still
    /// relies on it.
    pub(crate) fn are_sure(&self) -> bool {
        self.rate.is_none_or(|rate| {
            self.began.went_alike(rate, &TickStart::read()) && ticks::keep_the_kernels_time()
        })
    }

    /// Something else was done since, such as printing.
    pub(crate) fn forget(&mut self) {
        self.last = None;
    }
}

/// Nanoseconds of a span between two stamps.
pub(crate) fn span_ns(rate: Option<TickRate>, span: Stamp) -> u64 {
    rate.map_or(span, |rate| rate.ns(span))
}

fn whole_ns(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_call_is_the_beginning_of_the_next_unless_something_came_between() {
        let mut stamps = Stamps::new(true, None);
        stamps.begin();
        let end = stamps.end();
        assert_eq!(stamps.begin(), end);
        let end = stamps.end();
        stamps.forget();
        assert!(stamps.begin() >= end);
        let mut apart = Stamps::new(false, None);
        apart.end();
        assert_eq!(apart.last, None);
    }

    #[test]
    fn ticks_become_nanoseconds() {
        let rate = TickRate::of(2_600_000_000, Duration::from_secs(1)).unwrap();
        assert_eq!((rate.ns(26), rate.ns(2_600), rate.ns(0)), (9, 999, 0), "rounded down");
        let hour = 3600 * 2_600_000_000;
        assert!(
            rate.ns(hour).abs_diff(3_600_000_000_000) < 3_600_000_000_000 / 1_000_000_000,
            "{}",
            rate.ns(hour)
        );
        assert_eq!(TickRate::of(0, Duration::from_secs(1)), None);
        assert_eq!(TickRate::of(1, Duration::ZERO), None);
        assert_eq!((span_ns(Some(rate), 26), span_ns(None, 26)), (9, 26));
    }

    #[test]
    fn a_counter_that_left_the_kernels_clock_is_noticed() {
        let rate = TickRate::of(1_000_000_000, Duration::from_secs(1)).unwrap();
        let start = TickStart { at: Instant::now(), ticks: 1 << 40, apart: 10_000 };
        let later = |elapsed_ns: u64, ticks| TickStart {
            at: start.at + Duration::from_nanos(elapsed_ns),
            ticks,
            apart: 10_000,
        };
        let alike = |elapsed_ns, counted_ns: u64| {
            start.went_alike(rate, &later(elapsed_ns, start.ticks + counted_ns))
        };
        let second = 1_000_000_000;
        assert!(
            alike(0, 0) && alike(0, 39_000) && alike(second, second) && alike(second, second + 1_039_000)
        );
        assert!(alike(second, second - 1_039_000));
        assert!(
            !alike(0, 41_000) && !alike(second, second + 1_041_000),
            "it went on while the kernel's clock stood"
        );
        assert!(!alike(second, second - 1_041_000), "it stood");
        assert!(!start.went_alike(rate, &later(second, 5)), "it began anew");
    }

    #[test]
    fn spans_of_a_wrong_rate_are_not_sure() {
        let Some(start) = TickStart::now() else { return };
        let rate = start.settled().unwrap();
        let double = TickRate(rate.0 * 2);
        let [sure, wrong, kernel] = [Some(rate), Some(double), None].map(|rate| Stamps::new(true, rate));
        std::thread::sleep(LEAST_SPAN);
        assert!(sure.are_sure() && kernel.are_sure());
        assert!(!wrong.are_sure());
    }

    #[test]
    fn a_rate_that_is_waited_for_is_there() {
        let Some(start) = TickStart::now() else { return };
        assert!(start.settled().is_some());
    }

    /// By both clocks a span is as long, whatever came between their readings: the counter's lies within that of the kernel's.
    #[test]
    fn the_counter_measures_what_the_clock_measures() {
        let Some(start) = TickStart::now() else { return };
        let rate = start.rate();
        assert!(rate.is_none() || start.at.elapsed() >= LEAST_SPAN, "no time has passed");
        let rate = loop {
            if let Some(rate) = start.rate() {
                break rate;
            }
        };
        let mut stamps = Stamps::new(true, Some(rate));
        let outside = Instant::now();
        let first = stamps.begin();
        let inside = Instant::now();
        while inside.elapsed() < LEAST_SPAN {}
        let least = inside.elapsed();
        let span = stamps.end() - first;
        let most = outside.elapsed();
        let ns = Duration::from_nanos(span_ns(Some(rate), span));
        // The rate is that of a span as short.
        let slack = most / 1000;
        assert!(least <= ns + slack && ns <= most + slack, "{least:?} {ns:?} {most:?}");
    }
}
