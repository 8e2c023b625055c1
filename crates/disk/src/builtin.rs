//! The texts of the built-in systems. It reads none of them.

/// Names and texts from one list.
macro_rules! built_in {
    ($($name:literal),+ $(,)?) => {
        /// Names of the built-in systems, in the order of their reports.
        pub const NAMES: &[&str] = &[$($name),+];

        /// The text of a built-in system, with its comments and sources.
        pub fn source(name: &str) -> Option<&'static str> {
            match name {
                $($name => Some(include_str!(concat!("../systems/", $name, ".toml"))),)+
                _ => None,
            }
        }
    };
}

built_in![
    "hpux-k460",
    "hpux-k460-8k",
    "hpux-k460-1m",
    "solaris-san",
    "solaris-zfs",
    "linux-disk",
    "linux-disk-nocache",
    "linux-10k",
    "linux-10k-nocache",
    "linux-10k-raid0",
    "freebsd-wd800jd",
    "freebsd-bigfoot",
    "freebsd-diamondmax9",
    "freebsd-st38421",
    "freebsd-twa-single",
    "freebsd-wd2500yd",
    "freebsd-wd800-gmirror",
    "tms-ramsan",
    "tms-ramsan-2",
    "tms-ramsan-3",
    "stk-d173",
    "wd2500",
    "wd2500-4kn",
    "raid5",
    "raid5-cache",
    "raid6",
    "ssd-slc",
    "slowdown",
    "stalls",
];
