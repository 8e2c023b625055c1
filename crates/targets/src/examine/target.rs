//! The parts of a [`Target`] that files and block devices fill in alike.

use crate::machine_state::MachineState;
use crate::sysfs::Node;
use rdsk_model::{Target, TargetKind};
use std::path::Path;

/// Kernel names from the device down to its members.
pub(super) fn kernel_names(machine: &MachineState<'_>, node: &Node) -> Vec<String> {
    machine.tree.stack(node).iter().map(|name| name.replace('!', "/")).collect()
}

/// A file of which nothing but its name is known yet.
pub(super) fn blank_target(name: &str, path: &Path) -> Target {
    Target {
        index: 0,
        name: name.to_owned(),
        kind: TargetKind::File,
        path: Some(path.to_string_lossy().into_owned()),
        size_bytes: 0,
        filesystem: None,
        device: None,
        stack: Vec::new(),
        made_by_rdsk: false,
        direct_io: None,
        direct_align_bytes: None,
        nowait: None,
    }
}
