//! One answer of all ranks: what one of them cannot do, none does, and each says the same.

use crate::error::RanksError;
use crate::ranks::Ranks;
use crate::tree::{broadcast, from_all};
use rdsk_model::Problem;

/// The first rank that has a problem, with it.
type First = Option<(u32, Problem)>;

fn first(mine: First, below: First) -> First {
    [mine, below].into_iter().flatten().min_by_key(|(rank, _)| *rank)
}

/// What this rank has, where every rank has it; otherwise the problem of the first rank that has none, with its number, on all. Returns
/// when all have answered, which makes it a barrier.
///
/// # Errors
/// When a rank is gone.
pub fn agree<T>(ranks: &dyn Ranks, mine: Result<T, Problem>) -> Result<Result<T, Problem>, RanksError> {
    let problem = mine.as_ref().err().map(|problem| (ranks.rank(), problem.clone()));
    let agreed: First = broadcast(ranks, from_all(ranks, problem, first)?)?;
    Ok(match agreed {
        None => mine,
        Some((rank, problem)) => {
            let message = format!("rank {rank} of {}: {}", ranks.size(), problem.message);
            Err(Problem { message, ..problem })
        }
    })
}
