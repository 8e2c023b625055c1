//! Which ranks are of one host: those on the same boot of a kernel. A rank that does not know its boot counts as alone on a host.

use rdsk_experiment::RankPlace;
use rdsk_model::AtOnce;
use rdsk_ranks::{Ranks, RanksError, broadcast, from_all};

/// The boots of all ranks, in their order.
#[derive(Clone, Debug)]
pub(super) struct Hosts(Vec<String>);

impl Hosts {
    /// All ranks as if they were on one host.
    pub(super) fn single(ranks: u32) -> Self {
        Self((0..ranks).map(|_| String::new()).collect())
    }

    /// Asks all ranks; each says its own boot.
    ///
    /// # Errors
    /// When a rank is gone.
    pub(super) fn of(ranks: &dyn Ranks, boot: &str) -> Result<Self, RanksError> {
        let own = if boot.is_empty() { format!("rank {}", ranks.rank()) } else { boot.to_owned() };
        let joined = from_all(ranks, vec![(ranks.rank(), own)], |mut mine, below| {
            mine.extend(below);
            mine
        })?;
        let mut boots = broadcast(ranks, joined)?;
        boots.sort_unstable();
        Ok(Self(boots.into_iter().map(|(_, boot)| boot).collect()))
    }

    /// The first rank of each host, in the order of the hosts.
    fn firsts(&self) -> Vec<u32> {
        let is_first = |rank: &u32| self.first_on_host_of(*rank) == *rank;
        (0..u32::try_from(self.0.len()).unwrap_or(u32::MAX)).filter(is_first).collect()
    }

    /// The first rank on the host of a rank.
    pub(super) fn first_on_host_of(&self, rank: u32) -> u32 {
        let boot = self.0.get(rank as usize);
        let first = self.0.iter().position(|other| Some(other) == boot);
        first.and_then(|first| u32::try_from(first).ok()).unwrap_or(rank)
    }

    /// Where a rank stands: its host among the hosts, or it among the ranks of a single one.
    pub(super) fn place(&self, rank: u32) -> RankPlace {
        let firsts = self.firsts();
        let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        if firsts.len() < 2 {
            return RankPlace { peers: AtOnce::Ranks(number(self.0.len())), index: rank, part_bytes: None };
        }
        let first = self.first_on_host_of(rank);
        let index = firsts.iter().position(|other| *other == first).unwrap_or(0);
        RankPlace { peers: AtOnce::Hosts(number(firsts.len())), index: number(index), part_bytes: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_numbered_by_their_first_ranks() {
        let hosts = Hosts(["b", "a", "b", "c", "a"].map(str::to_owned).into());
        let places: Vec<u32> = (0..5).map(|rank| hosts.place(rank).index).collect();
        assert_eq!(places, [0, 1, 0, 2, 1]);
        assert_eq!(hosts.place(3).peers, AtOnce::Hosts(3));
        let firsts: Vec<u32> = (0..5).map(|rank| hosts.first_on_host_of(rank)).collect();
        assert_eq!(firsts, [0, 1, 0, 3, 1]);
        let single = Hosts(["a", "a", "a"].map(str::to_owned).into());
        assert_eq!((single.place(2).peers, single.place(2).index), (AtOnce::Ranks(3), 2));
    }
}
