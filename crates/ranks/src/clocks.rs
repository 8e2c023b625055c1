//! How far the clocks of ranks are apart, by round trips along the tree: a parent asks each child for the time and keeps the shortest
//! trips. A trip bounds the offset whatever the way there and back take: the reading lies between sending and answer.

use crate::error::RanksError;
use crate::ranks::{Ranks, Tag};
use crate::tree::{children, parent, read, written};
use rdsk_model::{Clock, ClockOffset};

/// Round trips with each child before and after a run.
pub const RUN_TRIPS: u32 = 32;
/// The same before a turn.
pub const GATE_TRIPS: u32 = 8;

/// The offset of this rank's clock to that of rank 0. Between a rank and its parent there are two messages for each trip and one with the
/// result; ranks of the tree that have no rank in common are asked at the same time.
///
/// # Errors
/// When a rank is gone.
pub fn compare_clocks(ranks: &dyn Ranks, clock: &dyn Clock, trips: u32) -> Result<ClockOffset, RanksError> {
    let mine = match parent(ranks.rank()) {
        None => ClockOffset { at_ns: clock.now_ns(), ..ClockOffset::default() },
        Some(parent) => {
            for _ in 0..trips {
                ranks.receive(parent, Tag::Clock)?;
                let received_ns = clock.now_ns();
                ranks.send(parent, Tag::Clock, &written(&(received_ns, clock.now_ns())))?;
            }
            read(parent, &ranks.receive(parent, Tag::Clock)?)?
        }
    };
    for child in children(ranks.rank(), ranks.size()) {
        let trip = shortest(ranks, clock, child, trips)?;
        let of_child = ClockOffset {
            offset_ns: mine.offset_ns + trip.offset_ns,
            uncertainty_ns: mine.uncertainty_ns + trip.uncertainty_ns,
            ..trip
        };
        ranks.send(child, Tag::Clock, &written(&of_child))?;
    }
    Ok(mine)
}

/// The shortest of several round trips to a child, as its offset to this rank.
fn shortest(ranks: &dyn Ranks, clock: &dyn Clock, child: u32, trips: u32) -> Result<ClockOffset, RanksError> {
    let mut best: Option<ClockOffset> = None;
    for _ in 0..trips {
        let sent_ns = clock.now_ns();
        ranks.send(child, Tag::Clock, &[])?;
        let answer = ranks.receive(child, Tag::Clock)?;
        let there = read(child, &answer)?;
        let trip = of_trip((sent_ns, clock.now_ns()), there);
        if best.is_none_or(|best| trip.uncertainty_ns < best.uncertainty_ns) {
            best = Some(trip);
        }
    }
    best.ok_or(RanksError::Message { rank: child, why: "no round trip was asked".into() })
}

/// What one round trip says: when it was sent and answered here, and received and answered there.
#[allow(clippy::cast_possible_wrap, reason = "monotonic clocks of nanoseconds stay below 2^63 for 292 years")]
fn of_trip((sent_ns, back_ns): (u64, u64), (received_ns, answered_ns): (u64, u64)) -> ClockOffset {
    let twice = |a: u64, b: u64| a as i64 + b as i64;
    let way_ns = (back_ns - sent_ns).saturating_sub(answered_ns - received_ns);
    ClockOffset {
        offset_ns: (twice(received_ns, answered_ns) - twice(sent_ns, back_ns)) / 2,
        // Halves and clocks that count whole nanoseconds.
        uncertainty_ns: way_ns / 2 + 2,
        at_ns: answered_ns,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_true_offset_lies_within_the_uncertainty_however_uneven_the_ways_are() {
        for true_ns in [-3_600_000_000_000_i64, -3_000_000, 0, 17, 3_600_000_000_000] {
            for (there_ns, stay_ns, back_ns) in [(10, 0, 10), (0, 5, 900), (900, 0, 0), (123_456, 789, 1)] {
                let sent_ns = 5_000_000_000_000_u64;
                let received_ns = (sent_ns + there_ns).checked_add_signed(true_ns).unwrap();
                let answered_ns = received_ns + stay_ns;
                let found =
                    of_trip((sent_ns, sent_ns + there_ns + stay_ns + back_ns), (received_ns, answered_ns));
                let off_ns = (found.offset_ns - true_ns).unsigned_abs();
                assert!(off_ns <= found.uncertainty_ns, "{true_ns}, {there_ns}, {back_ns}: {found:?}");
                assert_eq!(found.uncertainty_ns, (there_ns + back_ns) / 2 + 2);
            }
        }
    }
}
