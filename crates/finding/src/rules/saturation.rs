//! `device-saturated` and `device-not-saturated`: what a larger queue depth bought, a higher rate or longer waiting, by Little's law
//! and by the time that requests spent in the device. They do not judge by `%util`.

use super::prelude::*;
use rdsk_analysis::saturation::{State, TwoDepths};

pub(super) const SATURATED: Rule =
    Rule::new("device-saturated", Severity::Remark, Needs::OwnTimes, |analysis| {
        let is_it = |pair: &&TwoDepths<'_>| pair.state == Some(State::Saturated);
        let pairs = analysis.two_depths().iter().filter(is_it);
        pairs.map(|pair| saturated(analysis, pair)).collect()
    });

pub(super) const NOT_SATURATED: Rule =
    Rule::new("device-not-saturated", Severity::Cause, Needs::OwnTimes, |analysis| {
        analysis.two_depths().iter().filter_map(not_saturated).collect()
    });

/// From this share of the time on a device that is not saturated looks so in `%util`.
const LOOKS_BUSY: f64 = 0.9;

fn saturated(analysis: &Analysis<'_>, pair: &TwoDepths<'_>) -> Finding {
    let at_a_time = pair.at_a_time.max(1.0);
    let rotates = metrics::first_device(analysis, pair.deep).and_then(|device: &Device| device.rotational);
    let order = if rotates == Some(true) && at_a_time >= 1.5 {
        " (or takes them in an order that saves time)"
    } else {
        ""
    };
    let limit = if analysis.is_of_guest() { ", or a limit outside this machine stops more" } else { "" };
    let text = format!(
        "The device serves about {} at a time{order}{limit}. More in flight mostly wait longer.{}",
        words::figure(at_a_time),
        caveat(pair.shallow, pair.gain.low > 1.0),
    );
    SATURATED
        .finding(title(pair), text)
        .evidence(evidence(pair))
        .confidence(if pair.device_ns.is_some() { Confidence::Measured } else { Confidence::Inferred })
        .advice("use the smallest queue depth that gives the rate you need; beyond it only the latency grows")
        .cells([pair.shallow, pair.deep])
}

fn not_saturated(pair: &TwoDepths<'_>) -> Option<Finding> {
    let [depth, shallow] = [pair.deep, pair.shallow].map(|cell| metrics::wanted_depth(&cell.workload));
    let (_, growth, _) = pair.growth;
    let (text, advice, what) = match pair.state? {
        State::Saturated => return None,
        State::Room => (
            format!(
                "At QD{depth} each I/O takes hardly longer than alone. The device has room for more.{}",
                caveat(pair.shallow, true)
            ),
            "raise --iodepth until the latency grows, to see what the device can do",
            format!("QD{depth} does not saturate the device: its latency is only {} that of QD{shallow}", words::times(growth)),
        ),
        State::WaitsAbove => (
            "The I/Os take longer, but their requests are in the device as long as at the smaller depth. The limit is above the device: \
             the I/O scheduler, the driver's queue or the CPU."
                .to_owned(),
            "compare --engine and queue/scheduler; the device itself can do more",
            format!(
                "at QD{depth} the I/Os wait above the device: {} as long each",
                words::times(growth)
            ),
        ),
    };
    Some(
        NOT_SATURATED
            .finding(title(pair), text)
            .evidence(evidence(pair))
            .confidence(if pair.device_ns.is_some() { Confidence::Measured } else { Confidence::Inferred })
            .advice(advice)
            .effect(Stake::Cost, None, what)
            .cells([pair.shallow, pair.deep]),
    )
}

/// `reads: QD32 gives 4.00x the rate of QD1 at 8.00x the latency`.
fn title(pair: &TwoDepths<'_>) -> String {
    let depth = |cell: &CellRecord| metrics::wanted_depth(&cell.workload);
    format!(
        "{}s: QD{} gives {} the rate of QD{} at {} the latency",
        pair.deep.workload.op,
        depth(pair.deep),
        words::times(pair.gain.mean),
        depth(pair.shallow),
        words::times(pair.growth.1)
    )
}

fn evidence(pair: &TwoDepths<'_>) -> Vec<String> {
    let (low, mean, high) = pair.growth;
    let interval = |mean, low, high| {
        format!("{} ({} to {})", words::times(mean), words::figure(low), words::figure(high))
    };
    let gain = interval(pair.gain.mean, pair.gain.low, pair.gain.high);
    let latency = interval(mean, low, high);
    let other = words::test(pair.shallow);
    let mut lines = vec![cite(
        pair.deep,
        "rate",
        format_args!("{gain} that of {other}, latency (depth / rate) = {latency}"),
    )];
    lines.extend(pair.device_ns.map(|(alone, together)| {
        cite(
            pair.deep,
            "in the device",
            format_args!("{} each, in {other} = {}", words::mean_nanos(together), words::mean_nanos(alone)),
        )
    }));
    lines.extend(util(pair.shallow).map(|share| cite(pair.shallow, "%util", percent(share))));
    lines
}

/// Share of the time with a request in flight, of the device of a cell.
fn util(cell: &CellRecord) -> Option<f64> {
    metrics::busy_share(cell, metrics::devices(cell)?.first()?)
}

/// What `%util` said of the smaller depth, where that misleads.
fn caveat(shallow: &CellRecord, has_gained: bool) -> String {
    let busy = util(shallow).filter(|share| *share >= LOOKS_BUSY && has_gained);
    busy.map_or(String::new(), |share| {
        format!(
            " %util was {} already at QD{}: it counts the time with any request in flight.",
            percent(share),
            metrics::wanted_depth(&shallow.workload)
        )
    })
}

#[cfg(test)]
mod tests {
    use super::super::prelude::testing::{fires, silent};
    use super::*;
    use crate::fixtures::bios::{bio, counted, request};
    use crate::fixtures::{self, cell, deepen, disk, in_rounds, record, with};
    use rdsk_model::{IoPath, Op, Record};

    /// Reads with one and with 32 in flight, at so many times the rate, and the ns in the device of each.
    fn reads(gain: u64, device_ns: Option<[u64; 2]>) -> Record {
        let one = |id: &str, depth: u32, ops: u64, ns: Option<u64>| {
            let one = cell(id, Op::Read, IoPath::Direct, 4096, ops, 10_000_000_000);
            let one = in_rounds(with(one, |cell| deepen(cell, depth, f64::from(depth))));
            let Some(ns) = ns else { return one };
            let bios = vec![bio(Op::Read, "this", Some("pread64"), ops, 4096)];
            with(counted(one, bios, vec![request(Op::Read, 4096, ops)]), |cell| {
                cell.evidence.device_latency_ns = Some(fixtures::latency(ops, ns));
            })
        };
        let cells = vec![
            one("q1", 1, 10_000, device_ns.map(|ns| ns[0])),
            one("q32", 32, 10_000 * gain, device_ns.map(|ns| ns[1])),
        ];
        record(vec![disk()], cells)
    }

    #[test]
    fn fires_where_a_deeper_queue_only_waits() {
        let finding = fires(SATURATED, &reads(4, None));
        assert_eq!(finding.title, "reads: QD32 gives 4.00x the rate of QD1 at 8.00x the latency");
        assert!(finding.text.contains("serves about 4.00 at a time (or takes"), "{}", finding.text);
        let mut guest = reads(4, None);
        guest.host.as_mut().unwrap().virtualization = Some("kvm".into());
        let text = fires(SATURATED, &guest).text;
        assert!(text.contains("or a limit outside this machine stops more"), "{text}");
        assert!(finding.text.contains("%util was 96.0% already at QD1"), "{}", finding.text);
        assert_eq!(finding.confidence, Confidence::Inferred);
        silent(NOT_SATURATED, &reads(4, None));
        let timed = fires(SATURATED, &reads(1, Some([1_000_000, 31_000_000])));
        assert_eq!(timed.confidence, Confidence::Measured);
        assert_eq!(
            timed.evidence[1],
            "random direct 4K reads at QD32: in the device = 31.0 ms each, in random direct 4K reads = 1.00 ms"
        );
        assert!(
            !timed.text.contains("%util"),
            "nothing was gained, so %util did not mislead: {}",
            timed.text
        );
    }

    #[test]
    fn fires_where_the_device_has_room_or_others_hold_the_requests() {
        let room = fires(NOT_SATURATED, &reads(31, None));
        assert!(room.text.contains("has room for more. %util was 96.0%"), "{}", room.text);
        silent(SATURATED, &reads(31, None));
        let above = fires(NOT_SATURATED, &reads(4, Some([1_000_000, 1_000_000])));
        assert!(above.text.contains("The limit is above the device"), "{}", above.text);
        silent(SATURATED, &reads(4, Some([1_000_000, 1_000_000])));
    }

    #[test]
    fn is_silent_between_the_two_and_without_a_second_depth() {
        silent(SATURATED, &reads(24, None));
        silent(NOT_SATURATED, &reads(24, None));
        let mut alone = reads(4, None);
        alone.cells.truncate(1);
        silent(SATURATED, &alone);
        silent(NOT_SATURATED, &alone);
    }
}
