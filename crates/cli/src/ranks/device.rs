//! A block device that ranks write to: every rank proves that it is unused on its host and the same device, the first rank of each host
//! takes it exclusively, and the others of the host share that hold. It writes nothing.

use super::hosts::Hosts;
use super::share::{refused, unused};
use rdsk_experiment::Request;
use rdsk_model::{Problem, ProblemKind};
use rdsk_ranks::{Ranks, RanksError, agree, broadcast, from_all};
use rdsk_targets::{DeviceHold, Examined, Sharing};
use rdsk_units::{Bytes, printable};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// What hosts compare of a device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Seen {
    size_bytes: u64,
    /// Kind and key of each identity that belongs to the device and not to a host.
    names: Vec<(String, String)>,
}

impl Seen {
    fn of(examined: &Examined) -> Self {
        let names = examined.identities.iter().filter(|identity| identity.kind.is_of_device());
        let names = names.map(|identity| (identity.kind.noun().to_owned(), identity.key()));
        Self { size_bytes: examined.target.size_bytes, names: names.collect() }
    }

    /// Why this is not surely the device that rank 0 sees; `None` where it is.
    fn differs_from(&self, first: &Self) -> Option<String> {
        if self.size_bytes != first.size_bytes {
            let (here, there) = (Bytes(self.size_bytes).exact(), Bytes(first.size_bytes).exact());
            return Some(format!("it has {here} here, and {there} on rank 0"));
        }
        let texts = |names: &[(String, String)], kind: &str| -> Vec<String> {
            names.iter().filter(|(other, _)| other == kind).map(|(_, text)| text.clone()).collect()
        };
        let mut is_known = false;
        for (kind, _) in &self.names {
            let (here, there) = (texts(&self.names, kind), texts(&first.names, kind));
            if !there.is_empty() && !here.iter().any(|text| there.contains(text)) {
                return Some(format!("its {kind} is another one than on rank 0"));
            }
            is_known |= !there.is_empty();
        }
        (!is_known).then(|| "no serial number, WWN or UUID shows that it is the device of rank 0".to_owned())
    }
}

fn problem(error: &rdsk_targets::TargetError) -> Problem {
    error.problem()
}

/// Holds the one device of a request on all ranks for the rest of the run, or on none; the problem is the same on all.
///
/// # Errors
/// When a rank is gone.
pub(super) fn hold(
    ranks: &dyn Ranks,
    hosts: &Hosts,
    request: &mut Request,
) -> Result<Result<(), Problem>, RanksError> {
    // No rank has it open before all have looked.
    let examined = match agree(ranks, unused(request))? {
        Ok(examined) => examined,
        Err(problem) => return Ok(Err(problem)),
    };
    let device = Seen::of(&examined);
    let differs = device.differs_from(&broadcast(ranks, device.clone())?);
    let same = differs.map_or(Ok(()), |why| Err(other_device(&examined, &why)));
    if let Err(problem) = agree(ranks, same)? {
        return Ok(Err(problem));
    }
    let first = hosts.first_on_host_of(ranks.rank());
    let taken = (first == ranks.rank()).then(|| DeviceHold::take(&examined)).transpose();
    let taken = match agree(ranks, taken.map_err(|error| problem(&error)))? {
        Ok(taken) => taken,
        Err(problem) => return Ok(Err(problem)),
    };
    let mine = taken.as_ref().map(|hold| (ranks.rank(), std::process::id(), hold.descriptor()));
    let joined = from_all(ranks, Vec::from_iter(mine), |mut mine, below| {
        mine.extend(below);
        mine
    })?;
    let holders: Vec<(u32, u32, i32)> = broadcast(ranks, joined)?;
    let shared = taken.map_or_else(|| of_first(&holders, first, &examined), Ok);
    // The first ranks keep theirs until all others have it, and as long as the run.
    Ok(agree(ranks, shared)?.map(|hold| request.permission.sharing = Sharing::Held(Arc::new(hold))))
}

/// The hold that the first rank of this host has.
fn of_first(holders: &[(u32, u32, i32)], first: u32, examined: &Examined) -> Result<DeviceHold, Problem> {
    let holder = holders.iter().find(|(rank, ..)| *rank == first);
    let &(_, process, descriptor) =
        holder.ok_or_else(|| refused("a device that no rank of this host holds", "start again"))?;
    DeviceHold::of_process(process, descriptor, examined).map_err(|error| {
        let hint = "start one rank on each host (mpirun --map-by ppr:1:node), or all of them in one container and as root";
        Problem { hint: Some(hint.into()), ..problem(&error) }
    })
}

fn other_device(examined: &Examined, why: &str) -> Problem {
    let name = printable(&examined.target.name);
    let message = format!("refusing to write to {name}: {why}");
    let hint = "name a device that all hosts see, by its path in /dev/disk/by-id, or measure reads";
    Problem::new(ProblemKind::Refused, "other-device", message, hint)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rdsk_targets::IdentityKind;

    fn seen(size_bytes: u64, names: &[(&str, &str)]) -> Seen {
        let names = names.iter().map(|(kind, text)| ((*kind).to_owned(), (*text).to_owned())).collect();
        Seen { size_bytes, names }
    }

    #[test]
    fn a_device_is_that_of_rank_0_by_what_belongs_to_it() {
        let first = seen(1 << 40, &[("WWN", "naa6001405"), ("serial number", "s1")]);
        for same in [
            seen(1 << 40, &[("WWN", "naa6001405")]),
            seen(1 << 40, &[("serial number", "s1"), ("device mapper UUID", "mpath36001405")]),
            seen(1 << 40, &[("serial number", "s0"), ("serial number", "s1")]),
        ] {
            assert_eq!(same.differs_from(&first), None, "{same:?}");
        }
        for (other, why) in [
            (seen((1 << 40) - 512, &[("WWN", "naa6001405")]), "on rank 0"),
            (seen(1 << 40, &[("WWN", "naa6001406"), ("serial number", "s1")]), "its WWN is another one"),
            (
                seen(1 << 40, &[("WWN", "naa6001405"), ("serial number", "s2")]),
                "its serial number is another",
            ),
            (
                seen(1 << 40, &[("device mapper UUID", "mpath36001405")]),
                "no serial number, WWN or UUID shows",
            ),
            (seen(1 << 40, &[]), "no serial number, WWN or UUID shows"),
        ] {
            let said = other.differs_from(&first).unwrap_or_default();
            assert!(said.contains(why), "{other:?}: {said}");
        }
        // Names that a host gives, as multipath's, say nothing.
        assert!(!IdentityKind::MapperName.is_of_device() && !IdentityKind::Volume.is_of_device());
    }
}
