//! How much of a cell's time its threads waited for a processor: because others used it, or because the CPU quota of their control
//! group was used up. It judges from what the kernel counted beside the cell; waiting for each other by our own design is no other program's
//! else's.

use crate::metrics;
use rdsk_model::{CellRecord, EngineKind, ProcessorUse, VerdictCode};

/// Clock ticks are too coarse for less time than this.
const MIN_INTERVAL_NS: u64 = 200_000_000;
/// Share of their time that our threads waited because of others, from which it is named.
const MIN_WAIT: f64 = 0.05;
/// Processors that others must have kept busy to be blamed, of many, where ours may run on two only; of one or two, this share.
const MIN_OTHERS_PROCESSORS: f64 = 0.2;
const MIN_OTHERS: f64 = 0.1;
/// Their part of what was used: where it is less, our own threads waited for each other.
const MIN_BLAME: f64 = 0.25;
/// The same where the kernel does not count how long our threads waited, and the pressure that it must show.
const MIN_OTHERS_ALONE: f64 = 0.3;
const MIN_PRESSURE: f64 = 0.1;
/// Share of all processors' time that a hypervisor took, from which it is named.
const MIN_STEAL: f64 = 0.05;

/// Processors that others keep busy, and fewer that are idle, where others leave none free.
const CROWDED_OTHERS: f64 = 0.5;
const CROWDED_IDLE: f64 = 0.5;

/// Why threads of a cell waited for processors while it ran.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Contention {
    /// Share of the time of our threads in which they were ready and waited for a processor; `None` if it was not counted.
    pub waited: Option<f64>,
    /// The part of it in which the kernel held their control group back because its CPU quota was used up; `None` where no group has
    /// one.
    pub waited_for_quota: Option<f64>,
    /// The part of the rest that is due to others: by their part of the processor time that was used.
    pub waited_for_others: Option<f64>,
    /// Share of all processors' time that other programs used.
    pub others: f64,
    /// Share that the hypervisor took.
    pub steal: f64,
    /// Their part, with the hypervisor's, of the processor time that was used.
    pub blame: f64,
    /// Share that was idle.
    pub idle: f64,
    /// Processors of the machine.
    pub processors: u64,
    /// Share of the time in which some task of the machine waited for a processor; `None` if the kernel does not say.
    pub pressure: Option<f64>,
}

impl Contention {
    /// Whether the threads waited for their quota so much that it is worth a word.
    pub fn is_quota(&self) -> bool {
        self.waited_for_quota.is_some_and(|waited| waited >= MIN_WAIT)
    }

    /// Whether what others used, or the hypervisor took, is worth a word.
    pub fn is_much(&self) -> bool {
        self.is_waited_for() || self.is_stolen()
    }

    /// Whether the hypervisor took so much that it is worth a word. A thread does not count that time as waiting.
    pub fn is_stolen(&self) -> bool {
        self.steal >= MIN_STEAL
    }

    /// Whether others left no processor free. Our own threads may hardly have waited then, since the kernel lets those go first that sleep a lot,
    /// but completions, the hypervisor's threads and clock rates have changed with what the others did.
    pub fn is_crowded(&self) -> bool {
        let processors = self.processors as f64;
        self.others * processors >= CROWDED_OTHERS && self.idle * processors < CROWDED_IDLE
    }

    /// Whether the threads waited for what others used so much that it is worth a word.
    pub fn is_waited_for(&self) -> bool {
        match self.waited_for_others {
            Some(waited) => {
                let processors = self.processors as f64;
                let least = MIN_OTHERS_PROCESSORS.min(MIN_OTHERS * processors);
                waited >= MIN_WAIT
                    && self.blame >= MIN_BLAME
                    && (self.others + self.steal) * processors >= least
            }
            None => {
                self.others >= MIN_OTHERS_ALONE
                    && self.pressure.is_some_and(|pressure| {
                        // A group that is held back is under pressure by itself.
                        pressure - self.waited_for_quota.unwrap_or(0.0) >= MIN_PRESSURE
                    })
            }
        }
    }
}

/// Whether something else may have shaped the rate of a cell over time or over positions: its threads waited for processors that others
/// used, or for their quota, or others left no processor free, in all of it or in some of its visits, or its device worked for others.
pub fn is_shared(cell: &CellRecord) -> bool {
    let is_disturbed = metrics::has_verdict(cell, VerdictCode::Disturbed);
    let is_held = |used: &ProcessorUse| {
        contention_of(cell, used).is_some_and(|contention| {
            contention.is_much() || contention.is_quota() || contention.is_crowded()
        })
    };
    is_disturbed
        || cell.evidence.processor.as_ref().is_some_and(is_held)
        || long_enough(&cell.evidence.processor_visits).iter().any(is_held)
}

/// Neighbouring visits together, as many as it takes for the kernel's clock ticks.
fn long_enough(visits: &[ProcessorUse]) -> Vec<ProcessorUse> {
    let mut parts: Vec<ProcessorUse> = Vec::new();
    for visit in visits {
        match parts.last_mut().filter(|part| part.interval_ns < MIN_INTERVAL_NS) {
            Some(part) => part.add(visit),
            None => parts.push(*visit),
        }
    }
    parts
}

/// Of one cell; `None` where it was not counted, and for cells too short for the kernel's clock ticks.
pub fn contention(cell: &CellRecord) -> Option<Contention> {
    contention_of(cell, cell.evidence.processor.as_ref()?)
}

fn contention_of(cell: &CellRecord, used: &ProcessorUse) -> Option<Contention> {
    if used.interval_ns < MIN_INTERVAL_NS || used.processors == 0 {
        return None;
    }
    let whole_ns = used.interval_ns as f64 * used.processors as f64;
    let own = (used.own_user_ns + used.own_system_ns) as f64 / whole_ns;
    let user = used.user_ns.saturating_sub(used.own_user_ns);
    // The kernel's own threads do the work of loop devices and of writing back, and their time is time for us.
    let is_ours = cell.workload.path.uses_page_cache() || !cell.evidence.loops.is_empty();
    let system = if is_ours { 0 } else { used.system_ns.saturating_sub(used.own_system_ns) };
    let (others, steal) = ((user + system) as f64 / whole_ns, used.steal_ns as f64 / whole_ns);
    let threads = match cell.result.engine {
        Some(EngineKind::Threads) => metrics::wanted_depth(&cell.workload),
        _ => u64::from(cell.workload.streams),
    };
    let time_ns = used.interval_ns as f64 * threads.max(1) as f64;
    let waited = used.own_wait_ns.map(|waited| (waited as f64 / time_ns).min(1.0));
    // Several processors may hold back the same threads at once.
    let held = used.quota.map(|quota| (quota.throttled_ns as f64 / used.interval_ns as f64).min(1.0));
    let waited_for_quota = held.map(|held| waited.map_or(held, |waited| waited.min(held)));
    let blame = ((others + steal) / (others + steal + own).max(f64::MIN_POSITIVE)).min(1.0);
    Some(Contention {
        waited,
        waited_for_quota,
        waited_for_others: waited.map(|waited| (waited - waited_for_quota.unwrap_or(0.0)) * blame),
        others,
        steal,
        blame,
        idle: (1.0 - own - others - steal).max(0.0),
        processors: used.processors,
        pressure: used.pressure_ns.map(|ns| (ns as f64 / used.interval_ns as f64).min(1.0)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{cell, with};
    use rdsk_model::{IoPath, LoopFile, Op, ProcessorUse, QuotaUse};

    const SECOND: u64 = 1_000_000_000;

    /// One second on two processors.
    fn beside(change: impl FnOnce(&mut ProcessorUse)) -> CellRecord {
        let mut used = ProcessorUse {
            interval_ns: SECOND,
            processors: 2,
            user_ns: SECOND / 20,
            system_ns: SECOND / 5,
            own_user_ns: SECOND / 20,
            own_system_ns: SECOND / 5,
            own_wait_ns: Some(SECOND / 100),
            pressure_ns: Some(SECOND / 100),
            ..ProcessorUse::default()
        };
        change(&mut used);
        with(cell("c", Op::Read, IoPath::Direct, 4096, 10_000, SECOND), |cell| {
            cell.evidence.processor = Some(used);
        })
    }

    fn is_named(cell: &CellRecord) -> bool {
        contention(cell).is_some_and(|contention| contention.is_much())
    }

    #[test]
    fn a_quiet_machine_is_not_named() {
        let quiet = beside(|_| {});
        let contended = contention(&quiet).unwrap();
        assert!(!contended.is_much());
        assert_eq!((contended.others, contended.steal, contended.pressure), (0.0, 0.0, Some(0.01)));
        assert!((contended.waited.unwrap() - 0.01).abs() < 1e-9 && contended.waited_for_others == Some(0.0));
        let uncounted = with(quiet, |cell| cell.evidence.processor = None);
        assert_eq!(contention(&uncounted), None);
        assert_eq!(
            contention(&beside(|contended| contended.interval_ns = SECOND / 10)),
            None,
            "too short for clock ticks"
        );
    }

    #[test]
    fn busy_loops_that_take_our_time_are() {
        let loops = |wait_ns: u64| {
            beside(|used| {
                used.user_ns = 17 * SECOND / 10;
                used.own_wait_ns = Some(wait_ns);
            })
        };
        assert!(is_named(&loops(SECOND / 5)));
        assert!(!is_named(&loops(SECOND / 100)), "they ran elsewhere");
        // Of 256 processors, those that we may use are taken by others for half of the time.
        let crowded = |others_ns: u64| {
            beside(|used| {
                (used.processors, used.user_ns) = (256, SECOND / 20 + others_ns);
                used.own_wait_ns = Some(SECOND / 2);
            })
        };
        assert!(is_named(&crowded(SECOND)));
        assert!(!is_named(&crowded(SECOND / 10)), "a tenth of one processor took no half of our time");
        // Of eight, ours all use the same one and wait for each other.
        let pinned = beside(|used| {
            (used.processors, used.user_ns, used.own_user_ns) = (8, 6 * SECOND / 5, SECOND);
            (used.system_ns, used.own_system_ns, used.own_wait_ns) = (0, 0, Some(15 * SECOND));
        });
        assert!(!is_named(&with(pinned, |cell| cell.workload.streams = 16)));
    }

    /// Busy loops from the middle on, for which our threads hardly waited: whatever the rate did then is no shape of the disk.
    #[test]
    fn a_cell_is_shared_where_no_processor_was_free() {
        let quiet = beside(|_| {});
        let visits = |user_ns: u64| {
            with(quiet.clone(), |cell| {
                let used = cell.evidence.processor.unwrap();
                cell.evidence.processor_visits = vec![used, ProcessorUse { user_ns, ..used }];
            })
        };
        assert!(!is_shared(&visits(SECOND / 20)));
        assert!(!is_shared(&visits(9 * SECOND / 10)), "a processor is free");
        assert!(is_shared(&visits(16 * SECOND / 10)));
        assert!(!is_named(&visits(16 * SECOND / 10)), "it says nothing of the rate itself");
    }

    /// What happened in some visits is not seen in the sum over all of them, and what is too short is judged with its neighbours.
    #[test]
    fn a_cell_is_shared_where_some_of_its_visits_were() {
        let visits = |lasts_ns: u64, shared: usize| {
            with(beside(|_| {}), |cell| {
                let quiet = cell.evidence.processor.unwrap();
                let busy = ProcessorUse {
                    user_ns: 17 * lasts_ns / 10,
                    own_wait_ns: Some(lasts_ns / 5),
                    interval_ns: lasts_ns,
                    ..ProcessorUse::default()
                };
                let busy = ProcessorUse { processors: 2, ..busy };
                let quiet = ProcessorUse { interval_ns: lasts_ns, ..quiet };
                cell.evidence.processor_visits =
                    (0..12).map(|visit| if visit >= 12 - shared { busy } else { quiet }).collect();
            })
        };
        assert!(!is_shared(&visits(SECOND, 0)) && !is_named(&visits(SECOND, 1)));
        assert!(is_shared(&visits(SECOND, 1)));
        assert!(is_shared(&visits(SECOND / 10, 4)), "four of a tenth of a second each");
        let quota = QuotaUse { periods: 10, throttled_periods: 9, throttled_ns: SECOND / 2 };
        assert!(is_shared(&beside(|seen| {
            (seen.own_wait_ns, seen.quota) = (Some(SECOND / 2), Some(quota));
        })));
        let disturbed =
            rdsk_model::Verdict { code: VerdictCode::Disturbed, device_share: None, text: "others".into() };
        assert!(is_shared(&with(visits(SECOND, 0), |cell| cell.verdict = Some(disturbed))));
    }

    #[test]
    fn a_quota_that_is_used_up_is_nobody_elses_fault() {
        let quota = |throttled_ns: u64, wait_ns: Option<u64>| {
            beside(|used| {
                used.user_ns = 17 * SECOND / 10;
                (used.own_wait_ns, used.pressure_ns) = (wait_ns, Some(SECOND / 2));
                used.quota = Some(QuotaUse { periods: 10, throttled_periods: 9, throttled_ns });
            })
        };
        let contended = contention(&quota(3 * SECOND / 5, Some(3 * SECOND / 5))).unwrap();
        assert!(contended.is_quota() && !contended.is_much(), "{contended:?}");
        assert!((contended.waited_for_quota.unwrap() - 0.6).abs() < 1e-9);
        // Beside it, others may have taken as much.
        let both = contention(&quota(SECOND / 5, Some(3 * SECOND / 5))).unwrap();
        assert!(both.is_quota() && both.is_much(), "{both:?}");
        // Held back on two processors at once, one thread waited only as long as it waited.
        let twice = contention(&quota(2 * SECOND, Some(SECOND / 2))).unwrap();
        assert_eq!(twice.waited_for_quota, Some(0.5));
        let uncounted = contention(&quota(SECOND / 2, None)).unwrap();
        assert!(uncounted.is_quota() && !uncounted.is_much(), "{uncounted:?}");
        let enough = contention(&quota(0, Some(SECOND / 5))).unwrap();
        assert!(!enough.is_quota() && enough.is_much(), "{enough:?}");
    }

    #[test]
    fn waiting_for_each_other_is_our_own() {
        let crowded = with(
            beside(|used| {
                used.user_ns = 2 * SECOND;
                used.own_user_ns = 19 * SECOND / 10;
                used.own_system_ns = 0;
                used.system_ns = 0;
                used.own_wait_ns = Some(6 * SECOND);
            }),
            |cell| cell.workload.streams = 8,
        );
        let contended = contention(&crowded).unwrap();
        assert!((contended.waited.unwrap() - 0.75).abs() < 1e-9, "six of eight threads wait");
        assert!(!contended.is_much(), "{contended:?}");
    }

    #[test]
    fn threads_of_the_kernel_that_work_for_us_are_no_others() {
        let kernel = beside(|used| {
            used.system_ns = SECOND;
            used.own_wait_ns = Some(SECOND / 5);
        });
        assert!(is_named(&kernel));
        assert!(!is_named(&with(kernel.clone(), |cell| cell.evidence.loops = vec![LoopFile::default()])));
        assert!(!is_named(&with(kernel, |cell| cell.workload.path = IoPath::Buffered)));
    }

    #[test]
    fn a_hypervisor_is_named_by_what_it_took() {
        let stolen = beside(|used| used.steal_ns = SECOND / 5);
        assert!(is_named(&stolen));
        let contended = contention(&stolen).unwrap();
        assert!(contended.is_stolen() && !contended.is_waited_for(), "{contended:?}");
        assert!(!is_named(&beside(|contended| contended.steal_ns = SECOND / 50)));
    }

    #[test]
    fn where_our_wait_is_not_counted_pressure_and_use_decide() {
        let uncounted = |user_ns: u64, pressure_ns: Option<u64>| {
            beside(|used| {
                (used.user_ns, used.own_wait_ns, used.pressure_ns) = (user_ns, None, pressure_ns);
            })
        };
        assert!(is_named(&uncounted(SECOND, Some(SECOND / 2))));
        assert!(!is_named(&uncounted(SECOND, Some(SECOND / 50))));
        assert!(!is_named(&uncounted(SECOND / 10, Some(SECOND / 2))));
        assert!(!is_named(&uncounted(SECOND, None)), "use alone proves no wait");
    }
}
