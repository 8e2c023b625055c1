//! Decides whether a target may be read or written: a pure function of what was examined. A use in progress refuses
//! every write; no flag overrides it.

use crate::display::{listed, quoted, shown};
use crate::examined::{Examined, Place};
use crate::identity::NoIdentity;
use crate::labels::signature;
use crate::permission::{Access, Overwrite, Permission, Refusal, Sharing};
use crate::uses::{
    InUse, LOST_EXPORT, Labelled, MOVED_EXPORT, ONLY_ITS_OWNER, Opener, UNSEEN_OPENER, Use, UseKind,
};
use rdsk_units::printable;

const NAME_ANOTHER: &str = "measure reads, or name an unused device";

/// Decides. Reading is always allowed; for a directory, `Write` asks whether a test file may be created in it.
///
/// # Errors
/// The refusal, with what uses the target and what would allow the write, if anything would.
pub fn authorize(examined: &Examined, access: Access, permission: &Permission) -> Result<(), Refusal> {
    if access == Access::Read {
        return Ok(());
    }
    let counts = |used: &&Use| !is_by_rank(used, &examined.place, &permission.sharing);
    if let Some(first) = examined.uses.iter().find(counts) {
        return Err(refuse_use(examined, first.kind));
    }
    match &examined.place {
        Place::Directory { .. } | Place::Sim(_) => Ok(()),
        Place::File { .. } => authorize_file(examined, permission),
        Place::Block { .. } => authorize_block(examined, permission),
    }
}

/// Whether a use is that of another rank: an rdsk has the target open, or the kernel says of a file that it is open without saying who. A
/// device that this process holds together with other ranks is exclusively theirs.
pub(crate) fn is_by_rank(used: &Use, place: &Place, sharing: &Sharing) -> bool {
    let is_open = matches!(used.kind, UseKind::OpenElsewhere | UseKind::ReadElsewhere);
    let is_by_rdsk = matches!(&used.opener, Some(Opener::Process(name)) if name.starts_with("rdsk"));
    match (sharing, place) {
        (Sharing::Ranks, Place::File { .. }) => {
            is_open && (is_by_rdsk || used.opener == Some(Opener::Unseen))
        }
        (Sharing::Held(hold), place) if place.is_device(hold.number()) => {
            used.kind == UseKind::OpenExclusive || (is_open && is_by_rdsk)
        }
        _ => false,
    }
}

/// Checks again, with the uses as they are now, a target that was authorized before.
pub(crate) fn authorize_uses(examined: &Examined, usage: InUse) -> Result<(), Refusal> {
    let now = Examined { uses: usage.uses, doubts: usage.doubts, ..examined.clone() };
    match now.uses.first() {
        Some(first) => Err(refuse_use(&now, first.kind)),
        None => prove(&now),
    }
}

fn authorize_file(examined: &Examined, permission: &Permission) -> Result<(), Refusal> {
    prove(examined)?;
    let reason = "rdsk did not create this file, and writing would destroy its content";
    let hint = "measure reads, name a directory to have a test file created there, or add --overwrite to lose the content";
    match permission.overwrite {
        Overwrite::Allowed => Ok(()),
        Overwrite::Refused => Err(refusal(examined, "needs-overwrite", reason, hint)),
    }
}

fn authorize_block(examined: &Examined, permission: &Permission) -> Result<(), Refusal> {
    prove(examined)?;
    let content = match signature::summary(&examined.signatures).as_str() {
        "" => "writing would destroy its content".to_owned(),
        list => format!("it holds {list}"),
    };
    let Some(best) = examined.identities.first() else {
        let nothing = match examined.no_identities.first() {
            // `the serial number 2000: sdb has it too`.
            Some(NoIdentity { identity, why }) => format!(
                "nothing distinguishes it from other devices ({} {}: {why})",
                identity.kind.noun(),
                printable(&identity.text)
            ),
            None => "it has no serial number, WWN, UUID or name to identify it by".to_owned(),
        };
        let reason = format!("{nothing}, and {content}");
        let hint = "measure reads, or name a device for which rdsk info shows an identity";
        return Err(refusal(examined, "no-identity", &reason, hint));
    };
    let way = format!("measure reads, or add --destroy {} to lose everything on it", quoted(&best.text));
    match permission.destroy.as_deref() {
        None => Err(refusal(examined, "needs-destroy", &content, &way)),
        Some(word) if examined.identities.iter().any(|identity| identity.is_named_by(word)) => Ok(()),
        Some(word) => {
            let word = printable(word);
            let bare = word.strip_prefix("/dev/").unwrap_or(&word);
            let is_kernel_name = examined.target.device.as_ref().is_some_and(|device| device.name == bare);
            let kernel =
                if is_kernel_name { " (kernel names change when disks are added or moved)" } else { "" };
            let none = examined.no_identities.iter().find(|none| printable(&none.identity.text) == word);
            let shared = none.map_or_else(String::new, |none| format!(" ({})", none.why));
            let reason = format!("\"{word}\" is not one of its identities{kernel}{shared}, and {content}");
            Err(refusal(examined, "wrong-identity", &reason, &way))
        }
    }
}

/// Refuses if something could not be examined.
fn prove(examined: &Examined) -> Result<(), Refusal> {
    if examined.doubts.is_empty() {
        return Ok(());
    }
    let reason = format!("it cannot be proven to be unused: {}", listed(&examined.doubts, 2));
    let ends_with =
        |ends: &[&str]| examined.doubts.iter().all(|doubt| ends.iter().any(|end| doubt.ends_with(end)));
    let hint = match examined.place {
        _ if ends_with(&[LOST_EXPORT]) => {
            "measure reads, or, if it is not needed any more, end that export (with targetcli if it is a SCSI target, nvmetcli for NVMe, scstadmin for SCST; empty the file of its LUN in configfs for a USB gadget), or run where what it exports can be seen"
        }
        _ if ends_with(&[LOST_EXPORT, MOVED_EXPORT]) => {
            "measure reads, or end that export (with targetcli if it is a SCSI target, nvmetcli for NVMe, scstadmin for SCST) and enable it again under the kernel's name of its device (/dev/sdb), which no other device gets while it is open"
        }
        _ if ends_with(&[LOST_EXPORT, MOVED_EXPORT, UNSEEN_OPENER]) => {
            "measure reads, or find what has it open and end that: an export of nvmet, LIO or SCST under an older name of it, or a mount in a namespace without a process (dmsetup info --columns -o name,open shows the count)"
        }
        Place::File { .. } if examined.doubts.iter().any(|doubt| doubt.starts_with(ONLY_ITS_OWNER)) => {
            "measure reads, or run as the owner of the file, or as root outside of containers"
        }
        Place::File { .. } => {
            "measure reads, or name a directory to have a test file created there, or run as root outside of containers"
        }
        _ if examined.doubts.iter().all(|doubt| doubt.starts_with("its backing file ")) => {
            "measure reads, or attach the device again to a file that can be found here by its name (losetup)"
        }
        _ => {
            "measure reads, or run as root, outside of containers, with util-linux (lsblk, wipefs, blkid, partx) installed"
        }
    };
    Err(refusal(examined, "cannot-prove-unused", &reason, hint))
}

fn refuse_use(examined: &Examined, kind: UseKind) -> Refusal {
    let same = examined.uses.iter().filter(|used| used.kind == kind);
    let list = listed(&same.map(|used| used.text.as_str()).collect::<Vec<_>>(), 3);
    let (code, what) = match kind {
        UseKind::SystemDisk => ("system-disk", "it is the disk under the running system"),
        UseKind::SystemFile => ("system-file", "it belongs to the operating system"),
        UseKind::Mounted => ("mounted", "it holds a mounted filesystem"),
        UseKind::Swap => ("swap", "it is active swap space"),
        UseKind::Holder => ("held", "other devices are built on it"),
        UseKind::BackingFile => ("backing-file", "a loop device uses the same data"),
        UseKind::SharedSectors => ("shared-sectors", "another device has some of its sectors"),
        UseKind::Exported => ("exported", "it is exported to other hosts"),
        UseKind::OpenExclusive => ("in-use", "another program holds it exclusively"),
        UseKind::OpenElsewhere => ("in-use", "it is open elsewhere"),
        UseKind::ReadElsewhere => ("in-use", "another program reads it"),
        UseKind::Member => ("member", "its label says that it is part of something larger, or encrypted"),
        UseKind::MultiMounted => ("mounted", "its multi-mount protection says that a host has it mounted"),
        UseKind::Metadata => ("member", "its first block says that it is part of something larger"),
        UseKind::PartOf => ("member", "another device says that it is part of something larger"),
        UseKind::Relabelled => ("changed", "something was made on it since it was examined"),
        UseKind::HostManaged => ("host-managed", "it accepts writes only at the write pointers of its zones"),
        UseKind::Program => ("program", "it is a program"),
        UseKind::Small => {
            ("small-file", "it is smaller than 1 MiB, so that it is no disk image and no test file")
        }
        UseKind::HardLinked => {
            ("hard-linked", "its data is there under other names too, and would be lost under them")
        }
        // These say it all in the text of the use.
        UseKind::ThinPool => ("thin-pool", ""),
        UseKind::InMemory => ("in-memory", ""),
        UseKind::ReadOnly => ("read-only", "it is read-only"),
        UseKind::NotWritable => ("not-writable", "this user may not write there"),
    };
    let reason = if what.is_empty() { list } else { format!("{what} ({list})") };
    let hint: &str = match (&examined.place, kind) {
        (Place::Block { .. }, UseKind::Member) => &removal(examined),
        (_, UseKind::MultiMounted) => &clearing(examined),
        (Place::Block { .. }, UseKind::Metadata) => &zeroing(examined),
        (Place::Block { .. }, UseKind::PartOf) => {
            "measure reads, or mount that filesystem, so that the kernel holds the right device, or, if nothing needs it any more, remove its label alone with wipefs --backup --all --types KIND"
        }
        (Place::Block { .. }, UseKind::Relabelled) => "examine it again with rdsk info",
        (Place::Block { .. }, UseKind::ReadElsewhere) => {
            "measure reads, or end that program, or name an unused device"
        }
        (_, UseKind::ThinPool) => {
            "enlarge it with lvextend, or measure reads, or name something outside of it"
        }
        (Place::File { .. }, UseKind::HardLinked) => {
            "measure reads, or copy the file and name the copy, or remove the other names (find -samefile lists them)"
        }
        (Place::File { .. }, UseKind::Program) => {
            "name a directory to have a test file created there, or a copy of the file that is no program (chmod a-x)"
        }
        (Place::File { .. }, UseKind::Small) => {
            "name a directory to have a test file created there, or a file of 1 MiB or more"
        }
        (Place::File { .. }, UseKind::ReadElsewhere) => {
            "measure reads, or end that program, or name a directory to have a test file created there"
        }
        (Place::Directory { .. }, UseKind::InMemory) => {
            "name a directory on a disk, such as /var/tmp; on a live system mount one first"
        }
        (Place::Directory { .. }, _) => "name a directory that you may write to",
        (Place::File { .. }, _) => "measure reads, or name a directory to have a test file created there",
        (Place::Block { .. } | Place::Sim(_), _) => NAME_ANOTHER,
    };
    refusal(examined, code, &reason, hint)
}

/// How the labels that are refused can be removed without harm to what else is on the same disk: each by its kind, so that the table of
/// partitions stays, and with a copy of what is erased (wipefs(8)). A table goes only where the target's own has a label in one of its
/// partitions that the kernel does not show.
fn removal(examined: &Examined) -> String {
    let mut labels: Vec<String> = Vec::new();
    let mut tables: Vec<String> = Vec::new();
    for used in examined.uses.iter().filter(|used| used.kind == UseKind::Member) {
        let (list, command) = match &used.labelled {
            Some(Labelled::Device { node, kind }) => {
                (&mut labels, format!("--types {} {}", quoted(kind), quoted(&shown(node))))
            }
            Some(Labelled::HiddenPartition { table_on }) => (&mut tables, quoted(&shown(table_on))),
            None => return NAME_ANOTHER.to_owned(),
        };
        let command = format!("wipefs --backup --all {command}");
        if !list.contains(&command) {
            list.push(command);
        }
    }
    let what = match (labels.is_empty(), tables.is_empty()) {
        (false, true) => "it any more, remove that label alone",
        (true, _) => "any of its partitions any more, remove their table",
        (false, false) => "any of it any more, remove those labels and the table",
    };
    labels.append(&mut tables);
    format!("measure reads, or, if nothing needs {what}: {}", listed(&labels, 4))
}

/// How metadata in the first block of a device can be removed, which is not said of a disk around a partition: its first block has the
/// table of partitions, too.
fn zeroing(examined: &Examined) -> String {
    let node = |labelled: &Option<Labelled>| match labelled {
        Some(Labelled::Device { node, .. }) => Some(quoted(&shown(node))),
        Some(Labelled::HiddenPartition { .. }) | None => None,
    };
    let same = examined.uses.iter().filter(|used| used.kind == UseKind::Metadata);
    let nodes: Option<Vec<String>> = same.map(|used| node(&used.labelled)).collect();
    let command = "dd if=/dev/zero bs=4096 count=1";
    nodes.map_or_else(
        || NAME_ANOTHER.to_owned(),
        |nodes| {
            let nodes = listed(&nodes, 3);
            format!(
                "measure reads, or, if nothing needs it any more, zero the first block of {nodes} ({command})"
            )
        },
    )
}

/// How the mark of a host that no longer has the filesystem mounted can be removed: it is in a copy, too, or that host has crashed.
fn clearing(examined: &Examined) -> String {
    let same = examined.uses.iter().filter(|used| used.kind == UseKind::MultiMounted);
    let commands: Vec<String> = same
        .filter_map(|used| match &used.labelled {
            Some(Labelled::Device { node, .. }) => {
                Some(format!("tune2fs -f -E clear_mmp {}", quoted(&shown(node))))
            }
            _ => None,
        })
        .collect();
    format!(
        "measure reads, or unmount it there, or, if no host has it mounted any more: {}",
        listed(&commands, 3)
    )
}

fn refusal(examined: &Examined, code: &'static str, reason: &str, hint: &str) -> Refusal {
    let place = shown(&examined.path);
    let message = match examined.place {
        Place::Directory { .. } => format!("refusing to create a test file in {place}: {reason}"),
        _ => format!("refusing to write to {place}: {reason}"),
    };
    Refusal { code, message, hint: hint.to_owned() }
}

#[cfg(test)]
mod tests;
