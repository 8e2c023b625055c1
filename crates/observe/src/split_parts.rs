//! What md RAID 0 does not count on some kernels: of an I/O that reaches over the end of a chunk, the part that it cuts off. Which
//! kernels may do so, and how it shows. It reads nothing.

use crate::CountersError;
use rdsk_model::DiskStat;
use rdsk_sys::files::Version;

/// The first kernel that counts by clones of bios and passes over those that it cut off itself ("md: add io accounting for raid0 and
/// raid5"), and the first that does not ("md: raid0: account for split bio in iostat accounting"). Releases 6.1.53 and 6.5.3 have the
/// latter, too, which the names of distributions' kernels do not say.
const FROM: Version = (5, 14);
const UNTIL: Version = (6, 6);

/// Members that moved more than this part beyond what their array counted, of all that they moved, did not do so by chance: requests end
/// between the looks at each device.
const BY_CHANCE: u64 = 100;

/// Whether a kernel of this version may not count such parts.
pub(crate) fn may_pass_over_parts(version: Option<Version>) -> bool {
    version.is_some_and(|version| (FROM..UNTIL).contains(&version))
}

/// That an array counted less than its members moved; `None` if it did not.
pub(crate) fn why_partial(name: &str, own: &DiskStat, members: &[DiskStat]) -> Option<CountersError> {
    let is_less = |sectors: fn(&DiskStat) -> u64| {
        let below = members.iter().map(sectors).fold(0, u64::saturating_add);
        below.saturating_sub(sectors(own)) > below / BY_CHANCE
    };
    let is_partial = is_less(|stat| stat.read_sectors) || is_less(|stat| stat.write_sectors);
    is_partial.then(|| CountersError::Partial { device: name.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_kernels_between_two_changes_pass_over_parts() {
        let may = |major, minor| may_pass_over_parts(Some((major, minor)));
        assert!(may(5, 14) && may(5, 15) && may(6, 1) && may(6, 5));
        assert!(!may(5, 13) && !may(6, 6) && !may(7, 0) && !may_pass_over_parts(None));
    }

    #[test]
    fn an_array_that_counts_less_than_its_members_says_so() {
        let moved =
            |read_sectors, write_sectors| DiskStat { read_sectors, write_sectors, ..DiskStat::default() };
        let is_partial = |own: DiskStat| why_partial("md0", &own, &[moved(500, 0), moved(500, 64)]).is_some();
        assert!(!is_partial(moved(1000, 64)) && !is_partial(moved(990, 64)) && !is_partial(moved(2000, 70)));
        assert!(is_partial(moved(989, 64)) && is_partial(moved(1000, 63)));
        assert!(why_partial("md0", &moved(0, 0), &[moved(0, 0); 2]).is_none());
    }
}
