//! A binomial tree over the ranks: the parent of a rank is the rank without its lowest bit, so that rank 0 reaches n ranks in log2 n
//! steps. What is said to all and gathered from all goes along it.

use crate::error::RanksError;
use crate::ranks::{Ranks, Tag};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The rank above; `None` for rank 0.
pub(crate) const fn parent(rank: u32) -> Option<u32> {
    if rank == 0 { None } else { Some(rank & (rank - 1)) }
}

/// The ranks below, the one with most ranks below it first.
pub(crate) fn children(rank: u32, size: u32) -> impl Iterator<Item = u32> {
    let bits = if rank == 0 { u32::BITS - 1 } else { rank.trailing_zeros() };
    (0..bits).rev().filter_map(move |bit| rank.checked_add(1 << bit)).filter(move |&child| child < size)
}

/// A message as data.
pub(crate) fn read<T: DeserializeOwned>(rank: u32, bytes: &[u8]) -> Result<T, RanksError> {
    serde_json::from_slice(bytes).map_err(|error| RanksError::Message { rank, why: error.to_string() })
}

/// Data as a message.
pub(crate) fn written(data: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(data).expect("plain data without maps of other keys than text")
}

/// What rank 0 says, on every rank; what others bring counts nothing. One message for each rank but 0.
///
/// # Errors
/// When a rank is gone.
pub fn broadcast<T: Serialize + DeserializeOwned>(ranks: &dyn Ranks, mine: T) -> Result<T, RanksError> {
    let (said, bytes) = match parent(ranks.rank()) {
        None => {
            let bytes = written(&mine);
            (mine, bytes)
        }
        Some(parent) => {
            let bytes = ranks.receive(parent, Tag::Down)?;
            (read(parent, &bytes)?, bytes)
        }
    };
    children(ranks.rank(), ranks.size()).try_for_each(|child| ranks.send(child, Tag::Down, &bytes))?;
    Ok(said)
}

/// What all ranks say, joined on the way to rank 0, which alone has the whole. One message for each rank but 0.
///
/// # Errors
/// When a rank is gone.
pub fn from_all<T: Serialize + DeserializeOwned>(
    ranks: &dyn Ranks,
    mine: T,
    join: impl Fn(T, T) -> T,
) -> Result<T, RanksError> {
    let mut joined = mine;
    for child in children(ranks.rank(), ranks.size()) {
        joined = join(joined, read(child, &ranks.receive(child, Tag::Up)?)?);
    }
    if let Some(parent) = parent(ranks.rank()) {
        ranks.send(parent, Tag::Up, &written(&joined))?;
    }
    Ok(joined)
}

/// Whether something holds on every rank; returns when all have said so, which makes it a barrier. Two messages for each rank but 0.
///
/// # Errors
/// When a rank is gone.
pub fn all_gather_is_true(ranks: &dyn Ranks, mine: bool) -> Result<bool, RanksError> {
    let holds = from_all(ranks, mine, |left, right| left && right)?;
    broadcast(ranks, holds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rank_has_one_parent_that_knows_it() {
        for size in [1, 2, 3, 7, 8, 64, 1000] {
            let mut below: Vec<u32> = (0..size).flat_map(|rank| children(rank, size)).collect();
            below.sort_unstable();
            assert_eq!(below, (1..size).collect::<Vec<_>>(), "{size}");
            for rank in 0..size {
                assert!(children(rank, size).all(|child| parent(child) == Some(rank)));
            }
        }
        assert_eq!(children(0, 8).collect::<Vec<_>>(), [4, 2, 1]);
    }
}
