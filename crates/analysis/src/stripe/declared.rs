//! The kernel's description of an array beside what was counted: md's and device mapper's level, chunk and layout, and the
//! hints of the queue. It reads no sysfs; it is given the description.

use super::answer::exact;
use super::layouts::{Level, Rotation};
use super::matching::Match;
use super::member_layout::{Declared, MemberLayout};
use crate::groups::distinct;
use rdsk_model::ArrayFacts;
use rdsk_units::printable;

/// Compares; `None` if the kernel names neither a level nor a chunk.
pub(super) fn compare(layout: &MemberLayout, words: &ArrayFacts) -> Option<Declared> {
    let level = words.level.as_deref();
    level.or(words.chunk_bytes.map(|_| ""))?;
    let known = level.and_then(Level::spelled);
    let rotation = known
        .filter(|level| matches!(level, Level::Raid5 | Level::Raid6))
        .and(words.layout.as_deref())
        .and_then(Rotation::spelled);
    let differs = |said: Option<u64>, seen: Option<u64>| matches!((said, seen), (Some(a), Some(b)) if a != b);
    let is_other_level = match (known, layout.level) {
        (Some(said), Some(seen)) => said != seen && !is_same_for_small(said, seen, layout),
        _ => false,
    };
    let is_other_rotation = matches!((rotation, layout.rotation), (Some(a), Some(b)) if a != b);
    // Without stripes the kernel may name a chunk all the same; a mirror's means nothing.
    let has_stripes = known.is_none_or(|level| level != Level::Raid1);
    let is_other_chunk = has_stripes && differs(words.chunk_bytes, layout.chunk_bytes);
    let is_linear = level == Some("linear") && layout.chunk_bytes.is_some();
    let agrees = !(is_linear || is_other_level || is_other_rotation || is_other_chunk);
    let mut said = vec![level.unwrap_or("no level").to_owned()];
    said.extend(words.chunk_bytes.filter(|_| has_stripes).map(|bytes| format!("chunk {}", exact(bytes))));
    said.extend(rotation.map(|rotation| rotation.name().to_owned()));
    said.extend(words.members.map(|members| format!("{members} members")));
    let relation = match (agrees, layout.chunk_bytes.is_some() || layout.level.is_some()) {
        (true, true) => "the counters agree",
        (true, false) => "no counter contradicts it",
        (false, _) => "the counters show another layout",
    };
    let who =
        if words.device.is_empty() { String::new() } else { format!(" of {}", printable(&words.device)) };
    let text = format!("{} says{who}: {}; {relation}", words.source, printable(&said.join(", ")));
    Some(Declared { agrees, text })
}

/// Two members of a level with one parity, or with two copies, hold the same as a mirror.
fn is_same_for_small(said: Level, seen: Level, layout: &MemberLayout) -> bool {
    let is_mirror =
        |level: Level| matches!(level, Level::Raid1 | Level::Raid5 | Level::Raid4 | Level::Raid10);
    layout.copies == Some(layout.members) && is_mirror(said) && is_mirror(seen)
}

/// The layouts that the kernel's words leave, of those that the counters leave: by the level, else by the hints of the
/// queue; all of them if that leaves none.
pub(super) fn among(
    found: &[Match],
    chunk_bytes: u64,
    words: Option<&ArrayFacts>,
    hints: Option<(u64, u64)>,
) -> Vec<Match> {
    let chunk_agrees = |said: u64| said == chunk_bytes;
    if let Some(words) = words.filter(|words| words.chunk_bytes.is_none_or(chunk_agrees))
        && let Some(level) = words.level.as_deref().and_then(Level::spelled)
    {
        let is_said = |one: &&Match| {
            one.known.level() == level && words.members.is_none_or(|members| members == one.known.members)
        };
        let left: Vec<Match> = found.iter().filter(is_said).copied().collect();
        if !left.is_empty() {
            return left;
        }
    }
    let hinted = hints.filter(|&(minimum, _)| chunk_agrees(minimum)).map(|(_, optimal)| optimal);
    let left: Vec<Match> =
        found.iter().filter(|one| Some(one.known.data() * chunk_bytes) == hinted).copied().collect();
    if left.is_empty() { found.to_vec() } else { left }
}

/// The layouts' names, each once: `RAID 0 of 4 members or RAID 5 (left-symmetric) of 4 members`.
pub(super) fn names(found: &[Match]) -> String {
    let name = |one: &Match| {
        let rotation = one.known.rotation().map(|rotation| format!(" ({})", rotation.name()));
        let copies = Some(one.known.copies())
            .filter(|&copies| copies > 1)
            .map(|copies| format!(" with {copies} copies"));
        format!(
            "{}{}{} of {} members",
            one.known.level().name(),
            rotation.unwrap_or_default(),
            copies.unwrap_or_default(),
            one.known.members
        )
    };
    distinct(found.iter().map(name)).join(" or ")
}
