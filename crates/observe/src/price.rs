//! What following each bio and request costs, and whether the next visit of a cell may be followed: the programs may take 0.5 % of a
//! cell's time. It knows prices and counts, and measures nothing.

use crate::visit::VisitEvidence;
use rdsk_model::Bio;

/// Of the time of a cell's visits, what following them may take.
const SHARE: f64 = 0.005;
/// What the programs take, calling them included, at 20 000 I/Os per second and below, where each finds the processor's caches cold
/// (docs/benchmarks.md, "Counting: the BPF observer"): for a bio that becomes a request, for a request, and for a bio of a device that
/// takes bios and has no requests, from its submission to its end.
const BIO_NS: f64 = 440.0;
const REQUEST_NS: f64 = 800.0;
const WHOLE_BIO_NS: f64 = 1200.0;

/// Time and price of the visits of a cell so far.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Price {
    visits: u32,
    time_ns: f64,
    /// What following took of it.
    paid_ns: f64,
    /// The part of its time that following took of the last visit that was followed; `None` before there was one.
    last_share: Option<f64>,
}

impl Price {
    /// Adds a visit.
    pub(crate) fn add(&mut self, visit: &VisitEvidence) {
        // Until everything was stable, as bios and requests are counted.
        let time_ns = visit.elapsed_ns as f64;
        self.visits += 1;
        self.time_ns += time_ns;
        if visit.bpf.is_some() {
            let paid_ns = price_ns(visit);
            self.paid_ns += paid_ns;
            self.last_share = (time_ns > 0.0).then(|| paid_ns / time_ns);
        }
    }

    /// Whether one more visit, as long as the mean of those before and as dear as the last one, leaves the price within its share. The
    /// first visit is always followed.
    pub(crate) fn allows_one_more(&self) -> bool {
        let (Some(last), true) = (self.last_share, self.visits > 0) else { return true };
        let next_ns = self.time_ns / f64::from(self.visits);
        self.paid_ns + last * next_ns <= SHARE * (self.time_ns + next_ns)
    }
}

/// What following the visit took. The devices of several targets may be the same, which then are counted more than once here.
fn price_ns(visit: &VisitEvidence) -> f64 {
    let takes_bios = |target: u32, name: &str| {
        let mut devices = visit.bpf.iter().flat_map(|bpf| &bpf.devices);
        devices
            .any(|counted| (counted.target, counted.device.as_str()) == (target, name) && counted.takes_bios)
    };
    let of_bio = |bio: &Bio| if takes_bios(bio.target, &bio.device) { WHOLE_BIO_NS } else { BIO_NS };
    let Some(block) = &visit.block else { return 0.0 };
    let bios: f64 = block.bios.iter().map(|bio| bio.count as f64 * of_bio(bio)).sum();
    let of_queues = block.requests.iter().filter(|counted| !takes_bios(counted.target, &counted.device));
    let requests: u64 = of_queues.map(|request| request.count).sum();
    bios + requests as f64 * REQUEST_NS
}

#[cfg(test)]
mod tests {
    use super::*;
    use rdsk_model::{BlockActivity, BpfEvidence, CountedDevice, Op, Request};

    /// A visit of one second with so many direct reads, followed or not.
    fn visit(reads: u64, takes_bios: bool, is_followed: bool) -> VisitEvidence {
        let counted = CountedDevice { device: "sda".into(), takes_bios, ..CountedDevice::default() };
        let seen = VisitEvidence { elapsed_ns: 1_000_000_000, ..VisitEvidence::none() };
        if !is_followed {
            return seen;
        }
        let bio = Bio {
            target: 0,
            device: "sda".into(),
            op: Op::Read,
            syscall: Some("pread64".into()),
            task: "this".into(),
            nowait: false,
            read_ahead: false,
            flush: false,
            count: reads,
            bytes: reads * 4096,
        };
        let request =
            Request { target: 0, device: "sda".into(), op: Op::Read, bytes: 4096, fua: false, count: reads };
        let bpf = BpfEvidence { devices: vec![counted], ..BpfEvidence::default() };
        let block = BlockActivity { bios: vec![bio], requests: vec![request], ..BlockActivity::default() };
        VisitEvidence { bpf: Some(bpf), block: Some(block), ..seen }
    }

    /// Which of so many visits are followed at a rate.
    fn followed(per_s: u64, takes_bios: bool, visits: u32) -> Vec<u32> {
        let mut price = Price::default();
        (0..visits)
            .filter(|_| {
                let follows = price.allows_one_more();
                price.add(&visit(per_s, takes_bios, follows));
                follows
            })
            .collect()
    }

    #[test]
    fn as_many_visits_are_followed_as_half_a_percent_pays_for() {
        // Per second and device, and which of twelve visits: 1.24 us a request with its bio, 1.2 us a bio alone.
        let table: [(u64, bool, &[u32]); 6] = [
            (4_000, false, &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]),
            (9_000, false, &[0, 4, 6, 8, 11]),
            (20_000, false, &[0, 9]),
            (60_000, false, &[0]),
            (4_000, true, &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]),
            (20_000, true, &[0, 9]),
        ];
        for (per_s, takes_bios, visits) in table {
            assert_eq!(followed(per_s, takes_bios, 12), visits, "{per_s} {takes_bios}");
        }
    }

    #[test]
    fn the_first_visit_is_always_followed_and_nothing_that_costs_nothing_left_out() {
        assert!(Price::default().allows_one_more());
        let mut price = Price::default();
        price.add(&visit(0, false, true));
        price.add(&VisitEvidence { bpf: Some(BpfEvidence::default()), ..VisitEvidence::none() });
        assert!(price.allows_one_more());
    }
}
