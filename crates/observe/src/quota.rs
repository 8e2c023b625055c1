//! What CPU quotas did to the control groups of a thread: the counters of `cpu.stat` of versions 1 and 2, read at two moments. It sets
//! no quota and judges nothing.

use crate::cgroups::cgroups_of;
use rdsk_model::QuotaUse;
use std::path::{Path, PathBuf};

const NS_PER_US: u64 = 1_000;

/// The `cpu.stat` of each group that a thread is in. A quota of a group above holds for all below it.
#[derive(Clone, Debug, Default)]
pub(crate) struct QuotaFiles(Vec<PathBuf>);

/// The counters of all groups at one moment, in the order of the files.
#[derive(Clone, Debug, Default)]
pub(crate) struct QuotaSample(Vec<Option<QuotaUse>>);

impl QuotaFiles {
    /// Those of a thread (`/proc/thread-self`).
    pub(crate) fn find(thread: &Path) -> Self {
        let directories = cgroups_of(thread, "cpu").into_iter().flat_map(|group| group.directories);
        Self(directories.map(|directory| directory.join("cpu.stat")).filter(|file| file.exists()).collect())
    }

    /// One reading.
    pub(crate) fn read(&self) -> QuotaSample {
        let quota_in = |file: &PathBuf| quota_of(&std::fs::read_to_string(file).ok()?);
        QuotaSample(self.0.iter().map(quota_in).collect())
    }
}

impl QuotaSample {
    /// What happened from this reading to a later one, of the group that was held back longest; `None` where no period of a quota ended.
    pub(crate) fn until(&self, later: &Self) -> Option<QuotaUse> {
        let grown = self.0.iter().zip(&later.0).filter_map(|(before, after)| {
            let (before, after) = ((*before)?, (*after)?);
            Some(QuotaUse {
                periods: after.periods.saturating_sub(before.periods),
                throttled_periods: after.throttled_periods.saturating_sub(before.throttled_periods),
                throttled_ns: after.throttled_ns.saturating_sub(before.throttled_ns),
            })
        });
        grown.filter(|quota| quota.periods > 0).max_by_key(|quota| (quota.throttled_ns, quota.periods))
    }
}

/// `nr_periods`, `nr_throttled`, and `throttled_time` in ns (version 1, Documentation/scheduler/sched-bwc.rst) or `throttled_usec`
/// (version 2, Documentation/admin-guide/cgroup-v2.rst); `None` where the group can have no quota.
fn quota_of(stat: &str) -> Option<QuotaUse> {
    let field = |name: &str| {
        stat.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.trim().parse::<u64>().ok())
    };
    let of_two = || Some(field("throttled_usec")?.saturating_mul(NS_PER_US));
    Some(QuotaUse {
        periods: field("nr_periods")?,
        throttled_periods: field("nr_throttled")?,
        throttled_ns: field("throttled_time").or_else(of_two)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::tests::write;

    #[test]
    fn both_versions_say_the_same() {
        let expected = Some(QuotaUse { periods: 12, throttled_periods: 10, throttled_ns: 3_000_000 });
        assert_eq!(quota_of("nr_periods 12\nnr_throttled 10\nthrottled_time 3000000\n"), expected);
        let two =
            "usage_usec 9\nuser_usec 5\nsystem_usec 4\nnr_periods 12\nnr_throttled 10\nthrottled_usec 3000\n";
        assert_eq!(quota_of(two), expected);
        assert_eq!(quota_of("usage_usec 9\nuser_usec 5\nsystem_usec 4\n"), None, "the root of version 2");
        assert_eq!(quota_of(""), None);
    }

    #[test]
    fn the_quota_of_a_group_above_counts() {
        let root = tempfile::tempdir().unwrap();
        let (process, mount) = (root.path().join("proc/self"), root.path().join("cgroup"));
        write(&process.join("cgroup"), "3:memory:/x\n0::/app/db\n");
        let mountinfo = format!("30 24 0:26 / {} rw - cgroup2 cgroup2 rw\n", mount.display());
        write(&process.join("mountinfo"), &mountinfo);
        let stat = |group: &str, periods: u64, usec: u64| {
            let text = format!(
                "usage_usec 1\nnr_periods {periods}\nnr_throttled {periods}\nthrottled_usec {usec}\n"
            );
            write(&mount.join(group).join("cpu.stat"), &text);
        };
        write(&mount.join("cpu.stat"), "usage_usec 1\n");
        stat("app", 5, 100);
        stat("app/db", 0, 0);
        let files = QuotaFiles::find(&process);
        assert_eq!(files.0.len(), 3, "{files:?}");
        let before = files.read();
        assert_eq!(before.until(&before), None, "no period ended");
        stat("app", 9, 350);
        let grown = before.until(&files.read());
        assert_eq!(grown, Some(QuotaUse { periods: 4, throttled_periods: 4, throttled_ns: 250_000 }));
        assert_eq!(QuotaFiles::find(Path::new("/nonexistent")).read().until(&before), None);
    }

    #[test]
    fn version_1_is_read_in_the_hierarchy_of_cpu() {
        let root = tempfile::tempdir().unwrap();
        let (process, mount) = (root.path().join("proc/self"), root.path().join("cpu"));
        write(&process.join("cgroup"), "7:blkio:/other\n2:cpu,cpuacct:/app\n0::/\n");
        let mountinfo = format!("30 24 0:26 / {} rw - cgroup cgroup rw,cpu,cpuacct\n", mount.display());
        write(&process.join("mountinfo"), &mountinfo);
        write(&mount.join("app/cpu.stat"), "nr_periods 1\nnr_throttled 0\nthrottled_time 0\n");
        let files = QuotaFiles::find(&process);
        assert_eq!(files.0, [mount.join("app/cpu.stat")]);
    }
}
