//! What the kernel names of NVMe devices say: which of them is a path to which. It knows names only, and looks for no device.

/// Whether a name is that of a hidden device, one path to an NVMe device of several: `nvme0c1n1` of `nvme0n1`.
pub fn is_nvme_path(name: &str, device: &str) -> bool {
    fn halves(name: &str) -> Option<(&str, &str)> {
        name.strip_prefix("nvme")?.split_once('n')
    }
    let (Some((path, path_namespace)), Some((subsystem, namespace))) = (halves(name), halves(device)) else {
        return false;
    };
    let is_controller =
        |(controller_subsystem, number): (&str, &str)| controller_subsystem == subsystem && is_number(number);
    is_number(subsystem)
        && is_number(namespace)
        && path_namespace == namespace
        && path.split_once('c').is_some_and(is_controller)
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_names_its_subsystem_its_controller_and_its_namespace() {
        assert!(is_nvme_path("nvme0c1n1", "nvme0n1") && is_nvme_path("nvme10c0n12", "nvme10n12"));
        for (name, device) in [
            ("nvme0c1n2", "nvme0n1"),
            ("nvme1c1n1", "nvme0n1"),
            ("nvme0n1", "nvme0n1"),
            ("nvme0cn1", "nvme0n1"),
            ("nvme0c1n1", "nvme0n1p1"),
            ("sda", "nvme0n1"),
            ("", ""),
        ] {
            assert!(!is_nvme_path(name, device), "{name} of {device}");
        }
    }
}
