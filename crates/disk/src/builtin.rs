//! The texts of the built-in systems. It reads none of them.

/// Groups, names and texts from one list.
macro_rules! built_in {
    ($($group:literal: $($name:literal),+;)+) => {
        /// Names of the built-in systems, group by group.
        pub const NAMES: &[&str] = &[$($($name),+),+];

        /// What the built-in systems are examples of, and the names of each group.
        pub const GROUPS: &[(&str, &[&str])] = &[$(($group, &[$($name),+])),+];

        /// The text of a built-in system, with its comments and sources.
        pub fn source(name: &str) -> Option<&'static str> {
            match name {
                $($($name => Some(include_str!(concat!("../systems/", $name, ".toml"))),)+)+
                _ => None,
            }
        }
    };
}

built_in! {
    "Disks on Linux":
        "linux-disk",
        "linux-disk-nocache",
        "linux-10k",
        "linux-10k-nocache",
        "wd2500",
        "wd2500-4kn";
    "Disks on FreeBSD":
        "freebsd-wd800jd",
        "freebsd-bigfoot",
        "freebsd-diamondmax9",
        "freebsd-st38421",
        "freebsd-twa-single",
        "freebsd-wd2500yd";
    "Disks on HP-UX and Solaris":
        "hpux-k460",
        "hpux-k460-8k",
        "hpux-k460-1m",
        "solaris-san",
        "solaris-zfs";
    "Several LUNs on AIX (rdsk scale)":
        "tms-ramsan",
        "tms-ramsan-2",
        "tms-ramsan-3",
        "stk-d173";
    "RAID (rdsk stripe)":
        "raid5",
        "raid5-cache",
        "raid6",
        "linux-10k-raid0",
        "freebsd-wd800-gmirror";
    "Something to find":
        "ssd-slc",
        "slowdown",
        "stalls";
}
