//! The needs that were published and are built in: one file each below `needs/`.

use crate::document::{NeedDocument, need};
use crate::error::LoadError;

/// The file of each need, under its name.
macro_rules! needs {
    ($($name:literal),+ $(,)?) => {
        /// The names of all built-in needs, in alphabetical order.
        pub const NAMES: &[&str] = &[$($name),+];

        /// The file of a built-in need; `None` where there is none of this name.
        pub fn text(name: &str) -> Option<&'static str> {
            match name {
                $($name => Some(include_str!(concat!("../needs/", $name, ".toml"))),)+
                _ => None,
            }
        }
    };
}
needs!(
    "aerospike", "android", "ceph-osd-hdd", "ceph-osd-ssd", "cockroach-16", "consul", "cp4d", "dashcam",
    "esxi-boot", "etcd", "etcd-busy", "ethereum", "exchange", "gitlab", "hana", "nas-10g", "nas-1g",
    "nas-2.5g", "openshift", "pi", "polkadot", "postgres", "proxmox", "ps5", "redis", "satellite", "sd-a1",
    "sd-a2", "sd-c10", "sd-c2", "sd-c4", "sd-c6", "sd-u1", "sd-u3", "sd-v10", "sd-v30", "sd-v6", "sd-v60",
    "sd-v90", "sqlserver", "tidb", "wintogo",
);

/// The built-in need of a name; `None` where there is none.
///
/// # Errors
/// None for a name of [`NAMES`], whose files the tests read.
pub fn built_in(name: &str) -> Option<Result<NeedDocument, LoadError>> {
    text(name).map(|text| need(name, text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rdsk_model::Strength;

    #[test]
    fn every_need_is_whole_and_says_where_it_is_from() {
        assert!(NAMES.is_sorted());
        for name in NAMES {
            let document = built_in(name).unwrap().unwrap_or_else(|why| panic!("{name}: {why}"));
            let need = document.need;
            assert!(!need.title.is_empty() && need.source.len() > 10 && !need.remark.is_empty(), "{name}");
            assert_ne!(need.strength, Strength::Own, "{name}");
            assert!(document.phases.iter().flatten().all(|job| job.check().is_ok()), "{name}");
        }
        assert!(built_in("windows-95").is_none());
    }
}
