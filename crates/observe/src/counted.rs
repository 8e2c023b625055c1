//! Whose counters represent a target: its own if they count, otherwise those of the devices below it. It only chooses; other
//! files read the counters.

use crate::stack::{Spread, Stack};
use rdsk_model::Counted;

/// Chooses for one target; `counts` says whether the counters of a device are known. `None` if neither the target's
/// devices nor enough of those below them count.
pub fn counted(stack: &Stack, counts: &impl Fn(&str) -> bool) -> Option<Counted> {
    let mut chosen = Chosen::default();
    let mut spread = chosen.choose_all(stack, &stack.tops, counts)?;
    let mut words = Vec::new();
    if let Some((over, why)) = &stack.over {
        spread = product(*over, spread);
        words.push(why.clone());
    }
    words.append(&mut chosen.words);
    Some(Counted {
        target: stack.target,
        devices: chosen.devices,
        written_least: spread.least,
        written_most: spread.most,
        why: (!words.is_empty()).then(|| words.join("; ")),
    })
}

#[derive(Default)]
struct Chosen {
    devices: Vec<String>,
    words: Vec<String>,
}

impl Chosen {
    fn choose(&mut self, stack: &Stack, name: &str, counts: &impl Fn(&str) -> bool) -> Option<Spread> {
        if counts(name) {
            if !self.devices.iter().any(|chosen| chosen == name) {
                self.devices.push(name.to_owned());
            }
            return Some(Spread::ONCE);
        }
        // A stack has a bottom: a device is never found below itself, and `Stack` has at most eight levels.
        let lower = stack.below.get(name)?;
        let kind = lower.kind.as_deref().map_or_else(String::new, |kind| format!(" ({kind})"));
        self.words.push(format!(
            "the counters of {name} do not show what it did, so those of the devices below it{kind} are used"
        ));
        Some(product(lower.spread, self.choose_all(stack, &lower.names, counts)?))
    }

    fn choose_all(
        &mut self,
        stack: &Stack,
        names: &[String],
        counts: &impl Fn(&str) -> bool,
    ) -> Option<Spread> {
        let each: Option<Vec<Spread>> = names.iter().map(|name| self.choose(stack, name, counts)).collect();
        each?.into_iter().reduce(widest)
    }
}

/// What holds for both of two parts.
fn widest(a: Spread, b: Spread) -> Spread {
    let most = a.most.zip(b.most).map(|(a, b)| a.max(b));
    Spread { least: a.least.min(b.least), most }
}

/// The spread of two layers, one above the other.
fn product(above: Spread, below: Spread) -> Spread {
    let most = above.most.zip(below.most).map(|(above, below)| above * below);
    Spread { least: above.least * below.least, most }
}
