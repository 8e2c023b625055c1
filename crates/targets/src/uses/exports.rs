//! What the kernel serves to other hosts without a process that holds it open: nvmet, LIO, SCST, RNBD, USB gadgets and Xen,
//! as configfs and sysfs list it, mostly by the name that a program wrote there. What a name meant then is a question of
//! `stored_name`. It reads small text files and decides nothing.

use crate::machine::{Machine, Namespace};
use crate::uses::dm_openers;
use crate::uses::open_stat::Inode;
use crate::uses::stored_name::{Led, Moved, is_mapped_name, leads_to, moved};
use crate::uses::{InUse, LOST_EXPORT, MOVED_EXPORT, UseKind};
use rdsk_sys::device_number::DeviceNumber;
use rdsk_sys::files::{names_in, read_text};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

#[derive(Clone, Debug, PartialEq, Eq)]
struct Export {
    what: ExportedObject,
    by: String,
}

/// What is exported, as the kernel reports it.
#[derive(Clone, Debug, PartialEq, Eq)]
enum ExportedObject {
    /// By a name, which is opened without `O_EXCL`.
    Path(PathBuf),
    /// By a name that needs no interpretation: its device is held with `O_EXCL`, which the kernel reports whatever the name leads to now,
    /// or is not open yet.
    Evident(PathBuf),
    Devices(BTreeSet<DeviceNumber>),
}

/// What a target is, to compare it with what is exported.
#[derive(Clone, Debug)]
pub(crate) enum ExportQuery<'look> {
    Devices(&'look BTreeSet<DeviceNumber>),
    File(Inode),
}

impl ExportQuery<'_> {
    fn is(&self, led: Led) -> bool {
        match (self, led) {
            (Self::Devices(numbers), Led::Device(number)) => numbers.contains(&number),
            (Self::File(inode), Led::File(led)) => *inode == led,
            _ => false,
        }
    }
}

/// Whether an export is a use, or what was followed to where it was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exports {
    Find,
    Ours,
}

/// Adds a use for each export that matches the query by its name, in any mount namespace, and a doubt for lists that cannot be read; for
/// devices also a doubt for each export whose name need not have led where it leads now. Of a file the kernel says more (`doubt_file`).
pub(crate) fn find(machine: &Machine<'_>, query: &ExportQuery<'_>, usage: &mut InUse) {
    let config = machine.roots.sys.join("kernel/config");
    for (module, directory) in
        [("nvmet", "nvmet"), ("target_core_mod", "target"), ("usb_f_mass_storage", "usb_gadget")]
    {
        if machine.roots.sys.join("module").join(module).exists() && !config.join(directory).exists() {
            usage.doubt(format_args!(
                "the kernel may export it ({module} is loaded), and the list of exports cannot be read: configfs is not mounted on /sys/kernel/config"
            ));
        }
    }
    for Export { what, by } in exports(machine) {
        match &what {
            ExportedObject::Devices(numbers) => {
                if matches!(query, ExportQuery::Devices(query) if !query.is_disjoint(numbers)) {
                    usage.add(UseKind::Exported, &by);
                }
            }
            ExportedObject::Path(name) | ExportedObject::Evident(name) => {
                let led = leads_to(machine, name, &Namespace::Own);
                let is_it = |led: Option<Led>| led.is_some_and(|led| query.is(led));
                let others = machine.other_namespaces();
                if is_it(led) {
                    usage.add(UseKind::Exported, &by);
                } else if others.iter().any(|space| is_it(leads_to(machine, name, space))) {
                    let text = format!("{by}, by the name {} of another mount namespace", name.display());
                    usage.add(UseKind::Exported, &text);
                } else if let (ExportQuery::Devices(numbers), ExportedObject::Path(name)) = (query, &what)
                    && let Some(why) = moved(machine, name, led)
                    && may_have_been(machine, name, numbers)
                {
                    doubt(&by, name, why, usage);
                }
            }
        }
    }
}

/// Adds a doubt for each export whose name need not have led where it leads now, and so may have led to the file. A name that leads to
/// a device is not taken for one that led to a file.
pub(crate) fn doubt_file(machine: &Machine<'_>, inode: Inode, usage: &mut InUse) {
    for Export { what, by } in exports(machine) {
        let ExportedObject::Path(name) = what else { continue };
        let led = leads_to(machine, &name, &Namespace::Own);
        let may_be_file = match led {
            None => true,
            Some(Led::Device(_)) => false,
            Some(Led::File(led)) => led != inode,
        };
        if let Some(why) = moved(machine, &name, led).filter(|_| may_be_file) {
            doubt(&by, &name, why, usage);
        }
    }
}

fn doubt(by: &str, name: &Path, why: Moved, usage: &mut InUse) {
    let why = match why {
        Moved::Lost => LOST_EXPORT,
        Moved::NotOpen | Moved::MayBe => MOVED_EXPORT,
    };
    usage.doubt(format_args!("{by} exports {}, {why}", name.display()));
}

/// Whether one of the devices may be what was opened by a name that leads elsewhere now. A device of device mapper is not, if nothing
/// unseen has it open; and no other device has a name of device mapper.
fn may_have_been(machine: &Machine<'_>, name: &Path, numbers: &BTreeSet<DeviceNumber>) -> bool {
    let is_mapped = is_mapped_name(machine, name);
    let openers = |number| dm_openers::unseen(machine, machine.tree.by_number(number)?, 0);
    numbers.iter().any(|number| openers(*number).map_or(!is_mapped, |unseen| unseen > 0))
}

fn exports(machine: &Machine<'_>) -> impl Iterator<Item = Export> + use<> {
    let sys = &machine.roots.sys;
    let config = sys.join("kernel/config");
    let lists = [
        nvmet(&config),
        passed_through(machine, &config),
        lio(&config),
        gadgets(&config),
        legacy_gadgets(sys),
        scst(sys),
        rnbd(machine, sys),
        xen(sys),
    ];
    lists.into_iter().flatten()
}

/// `nvmet/subsystems/NQN/namespaces/N/device_path`, if `enable` reports it as open.
fn nvmet(config: &Path) -> Vec<Export> {
    let mut list = Vec::new();
    for (subsystem, directory) in entries(&config.join("nvmet/subsystems")) {
        for (namespace, directory) in entries(&directory.join("namespaces")) {
            if let Some(path) = enabled_path(&directory) {
                let by = format!("namespace {namespace} of the NVMe subsystem {subsystem}");
                list.push(Export { what: ExportedObject::Path(path), by });
            }
        }
    }
    list
}

/// `nvmet/subsystems/NQN/passthru/device_path`: a controller's character device, which serves all namespaces unopened. A name that is not
/// the kernel's for a controller that is there may be that of any.
fn passed_through(machine: &Machine<'_>, config: &Path) -> Vec<Export> {
    let export = |(subsystem, directory): (String, PathBuf)| {
        let path = enabled_path(&directory.join("passthru"))?;
        let controller = path.strip_prefix("/dev").ok().map(|name| name.to_string_lossy().into_owned());
        let is_there = |name: &String| {
            let is_link = std::fs::read_link(machine.roots.dev.join(name)).is_ok();
            machine.roots.sys.join("class/nvme").join(name).exists() && !is_link
        };
        let Some(controller) = controller.filter(is_there) else {
            let disks = machine.tree.nodes().filter(|node| node.name.starts_with("nvme"));
            let what = ExportedObject::Devices(disks.map(|node| node.number).collect());
            let by = format!(
                "perhaps the NVMe subsystem {subsystem}, with the whole controller {}",
                path.display()
            );
            return Some(Export { what, by });
        };
        // The link of a namespace leads to its controller, or to a subsystem that lists its controllers.
        let hangs_on = |device: &Path| {
            let link = std::fs::canonicalize(device).ok();
            link.is_some_and(|link| link.file_name().is_some_and(|name| name.to_string_lossy() == controller))
                || names_in(device).contains(&controller)
        };
        let namespaces = machine.tree.nodes().filter(|node| hangs_on(&node.directory.join("device")));
        let what = ExportedObject::Devices(namespaces.map(|node| node.number).collect());
        Some(Export { what, by: format!("the NVMe subsystem {subsystem}, with its whole controller") })
    };
    entries(&config.join("nvmet/subsystems")).filter_map(export).collect()
}

/// `bus/xen-backend/devices/vbd-DOMAIN-N/physical_device`: the number in hexadecimal. The kernel opens the device for the
/// virtual machine without `O_EXCL`.
fn xen(sys: &Path) -> Vec<Export> {
    let export = |(name, directory): (String, PathBuf)| {
        let text = read_text(&directory.join("physical_device"))?;
        let (major, minor) = text.trim().split_once(':')?;
        let number = DeviceNumber {
            major: u32::from_str_radix(major, 16).ok()?,
            minor: u32::from_str_radix(minor, 16).ok()?,
        };
        let domain = name.split('-').nth(1).unwrap_or("?");
        let by = format!("the virtual machine {domain} of Xen ({name})");
        Some(Export { what: ExportedObject::Devices(BTreeSet::from([number])), by })
    };
    entries(&sys.join("bus/xen-backend/devices")).filter_map(export).collect()
}

/// What an object of LIO keeps its data on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum LioBacking {
    Device(DeviceNumber),
    /// In `udev_path`, and in the line of `info` that fileio and iblock write.
    Paths(Vec<PathBuf>),
}

/// The backing of the object of LIO in a directory `iblock_0/NAME`. iblock says the number of what it has open, behind its name:
/// `Major: 8 Minor: 16  CLAIMED: IBLOCK` (drivers/target/target_core_iblock.c).
pub(crate) fn backing_of_lio(object: &Path) -> LioBacking {
    let info = read_text(&object.join("info")).unwrap_or_default();
    let number = |key: &str| {
        let rest = info.rsplit_once(key)?.1;
        rest.split(|letter: char| !letter.is_ascii_digit()).next()?.parse::<u32>().ok()
    };
    let adapter = object.parent().and_then(Path::file_name).map(|name| name.to_string_lossy());
    if adapter.is_some_and(|name| name.starts_with("iblock_"))
        && let (Some(major @ 1..), Some(minor)) = (number("Major: "), number("Minor: "))
    {
        return LioBacking::Device(DeviceNumber { major, minor });
    }
    let told = ["File: ", "UDEV PATH: "].iter().find_map(|key| after(&info, key));
    let named = text_path(&object.join("udev_path"));
    LioBacking::Paths(told.into_iter().chain(named).collect())
}

/// `target/core/HBA/NAME`. iblock and pscsi hold a disk with `O_EXCL`.
fn lio(config: &Path) -> Vec<Export> {
    let mut list = Vec::new();
    for (adapter, directory) in entries(&config.join("target/core")) {
        let is_exclusive = ["iblock_", "pscsi_"].iter().any(|kind| adapter.starts_with(kind));
        for (name, directory) in entries(&directory) {
            let is_enabled = read_text(&directory.join("enable")).is_none_or(|text| text.trim() != "0");
            let by = || format!("the SCSI target {adapter}/{name}");
            match backing_of_lio(&directory) {
                LioBacking::Device(number) => {
                    let what = ExportedObject::Devices(BTreeSet::from([number]));
                    list.push(Export { what, by: by() });
                }
                LioBacking::Paths(paths) => list.extend(paths.into_iter().map(|path| {
                    let what = match is_exclusive || !is_enabled {
                        true => ExportedObject::Evident(path),
                        false => ExportedObject::Path(path),
                    };
                    Export { what, by: by() }
                })),
            }
        }
    }
    list.dedup();
    list
}

/// `usb_gadget/GADGET/functions/mass_storage.NAME/lun.N/file`.
fn gadgets(config: &Path) -> Vec<Export> {
    let mut list = Vec::new();
    for (gadget, directory) in entries(&config.join("usb_gadget")) {
        for (_, function) in entries(&directory.join("functions")) {
            for (_, lun) in entries(&function) {
                let file = text_path(&lun.join("file"));
                let by = format!("the USB gadget {gadget}");
                list.extend(file.map(|path| Export { what: ExportedObject::Path(path), by }));
            }
        }
    }
    list
}

/// `class/udc/CONTROLLER/device/gadget*/lun*/file`: the files of `g_mass_storage` and `g_multi`, which configfs does not show. The
/// directories are `gadget` and `gadget.0` since 5.19, `lun0`, and `gadget-lun0` before 3.13.
fn legacy_gadgets(sys: &Path) -> Vec<Export> {
    let mut list = Vec::new();
    for (controller, directory) in entries(&sys.join("class/udc")) {
        let gadgets = entries(&directory.join("device")).filter(|(name, _)| name.starts_with("gadget"));
        let luns = gadgets.flat_map(|(_, gadget)| entries(&gadget)).filter(|(name, _)| name.contains("lun"));
        for (_, lun) in luns {
            let file = text_path(&lun.join("file"));
            let by = format!("the USB gadget on {controller}");
            list.extend(file.map(|path| Export { what: ExportedObject::Path(path), by }));
        }
    }
    list
}

/// `class/rnbd-server/ctl/devices/NAME`, with a link `block_dev` (Documentation/ABI/testing/sysfs-class-rnbd-server). For a partition
/// the link leads to its disk (drivers/block/rnbd/rnbd-srv-sysfs.c). The kernel opens the device without `O_EXCL`.
fn rnbd(machine: &Machine<'_>, sys: &Path) -> Vec<Export> {
    let export = |(name, directory): (String, PathBuf)| {
        let linked = || read_text(&directory.join("block_dev/dev"))?.trim().parse().ok();
        let number = machine.tree.get(&name).map(|node| node.number).or_else(linked)?;
        let sessions = names_in(&directory.join("sessions"));
        let by = format!("RNBD, as {name} for {}", crate::display::listed(&sessions, 3));
        Some(Export { what: ExportedObject::Devices(BTreeSet::from([number])), by })
    };
    entries(&sys.join("class/rnbd-server/ctl/devices")).filter_map(export).collect()
}

/// `scst_tgt/devices/NAME/filename`: the path, followed by a mark in a line of its own.
fn scst(sys: &Path) -> Vec<Export> {
    let export = |(name, directory): (String, PathBuf)| {
        let path = text_path(&directory.join("filename"))?;
        Some(Export { what: ExportedObject::Path(path), by: format!("the SCST device {name}") })
    };
    entries(&sys.join("kernel/scst_tgt/devices")).filter_map(export).collect()
}

/// The names in a directory, sorted, each with its path.
fn entries(directory: &Path) -> impl Iterator<Item = (String, PathBuf)> + use<> {
    let directory = directory.to_owned();
    names_in(&directory).into_iter().map(move |name| (name.clone(), directory.join(name)))
}

/// `device_path` of a namespace or a controller of nvmet, unless `enable` reports it as closed.
fn enabled_path(directory: &Path) -> Option<PathBuf> {
    let is_enabled = read_text(&directory.join("enable")).is_none_or(|text| text.trim() != "0");
    nvmet_path(directory).filter(|_| is_enabled)
}

/// `device_path` in the directory of a namespace or a controller of nvmet: `(null)` if it has none. The kernel takes one that is relative
/// to the directory of the program that writes it, and then it is unknown what it means.
pub(crate) fn nvmet_path(directory: &Path) -> Option<PathBuf> {
    let text = read_text(&directory.join("device_path"))?;
    let name = text.lines().next()?.trim();
    (!name.is_empty() && name != "(null)").then(|| PathBuf::from(name))
}

/// The absolute path in the first line of a file.
fn text_path(file: &Path) -> Option<PathBuf> {
    let text = read_text(file)?;
    let path = PathBuf::from(text.lines().next()?.trim());
    path.is_absolute().then_some(path)
}

/// The path after `key`, up to two blanks or the end of the line, as LIO separates its fields.
fn after(info: &str, key: &str) -> Option<PathBuf> {
    let rest = info.split_once(key)?.1;
    let ends = [rest.find(['\n', '\t']), rest.find("  ")];
    let end = ends.into_iter().flatten().min().unwrap_or(rest.len());
    let name = rest[..end].trim();
    (!name.is_empty()).then(|| PathBuf::from(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::Fake;
    use std::os::unix::fs::MetadataExt as _;

    fn look(fake: &Fake, query: &ExportQuery<'_>) -> InUse {
        fake.with(|machine, _| {
            let mut usage = InUse::default();
            find(machine, query, &mut usage);
            usage
        })
    }

    fn texts(usage: &InUse) -> Vec<&str> {
        usage.uses.iter().map(|used| used.text.as_str()).collect()
    }

    #[test]
    fn devices_that_are_exported_are_found() {
        let fake = Fake::new().disk("sda", "8:0").disk("sdb", "8:16");
        let nvmet = "sys/kernel/config/nvmet/subsystems/nqn.test/namespaces/1";
        fake.file(&format!("{nvmet}/device_path"), "/dev/sda\n");
        fake.file(&format!("{nvmet}/enable"), "1\n");
        let lio = "sys/kernel/config/target/core/iblock_0/disk";
        fake.file(&format!("{lio}/info"), "        iBlock device: sdb  UDEV PATH: /dev/sdb  readonly: 0\n");
        fake.file("sys/kernel/config/usb_gadget/g1/functions/mass_storage.0/lun.0/file", "/dev/sdb\n");
        let number = |text: &str| BTreeSet::from([text.parse().unwrap()]);
        let usage = look(&fake, &ExportQuery::Devices(&number("8:0")));
        assert_eq!(texts(&usage), ["namespace 1 of the NVMe subsystem nqn.test"]);
        let usage = look(&fake, &ExportQuery::Devices(&number("8:16")));
        assert_eq!(texts(&usage), ["the SCSI target iblock_0/disk", "the USB gadget g1"]);
        fake.file(&format!("{nvmet}/enable"), "0\n");
        assert_eq!(texts(&look(&fake, &ExportQuery::Devices(&number("8:0")))), Vec::<&str>::new());
    }

    #[test]
    fn devices_of_virtual_machines_and_of_passed_controllers_are_found() {
        let fake = Fake::new().disk("dm-7", "253:7").disk("nvme1n1", "259:1").disk("nvme2n1", "259:2");
        // Numbers there are hexadecimal.
        fake.file("sys/bus/xen-backend/devices/vbd-3-51712/physical_device", "fd:7\n");
        fake.file("sys/bus/xen-backend/devices/vif-3-0/state", "4\n");
        fake.file("sys/bus/xen-backend/devices/vbd-4-51712/physical_device", "nonsense\n");
        let passed = "sys/kernel/config/nvmet/subsystems/nqn.p/passthru";
        fake.file(&format!("{passed}/device_path"), "/dev/nvme1\n");
        fake.file(&format!("{passed}/enable"), "1\n");
        // nvme1n1 belongs to the controller itself, nvme2n1 to a subsystem that contains the controller.
        fake.file("sys/class/nvme/nvme1/serial", "S1\n");
        std::os::unix::fs::symlink("../../class/nvme/nvme1", fake.path("sys/block/nvme1n1/device")).unwrap();
        fake.file("sys/block/nvme2n1/device/nvme1/serial", "S1\n");
        let number = |text: &str| BTreeSet::from([text.parse().unwrap()]);
        let usage = look(&fake, &ExportQuery::Devices(&number("253:7")));
        assert_eq!(texts(&usage), ["the virtual machine 3 of Xen (vbd-3-51712)"]);
        fake.file("sys/class/nvme/nvme0/serial", "S0\n");
        for disk in ["259:1", "259:2"] {
            let usage = look(&fake, &ExportQuery::Devices(&number(disk)));
            assert_eq!(texts(&usage), ["the NVMe subsystem nqn.p, with its whole controller"], "{disk}");
            assert_eq!(usage.doubts, Vec::<String>::new());
        }
        fake.file(&format!("{passed}/device_path"), "/dev/nvme0\n");
        assert_eq!(texts(&look(&fake, &ExportQuery::Devices(&number("259:1")))), Vec::<&str>::new());
        std::os::unix::fs::symlink("nvme0", fake.path("dev/fast")).unwrap();
        for name in ["/dev/fast", "/dev/nvme7", "/srv/nvme0"] {
            fake.file(&format!("{passed}/device_path"), &format!("{name}\n"));
            let usage = look(&fake, &ExportQuery::Devices(&number("259:1")));
            let said = format!("perhaps the NVMe subsystem nqn.p, with the whole controller {name}");
            assert_eq!(texts(&usage), [said], "a link, or a name that leads nowhere here");
        }
        fake.file(&format!("{passed}/enable"), "0\n");
        assert_eq!(texts(&look(&fake, &ExportQuery::Devices(&number("259:1")))), Vec::<&str>::new());
    }

    #[test]
    fn devices_of_rnbd_are_found() {
        let fake = Fake::new().disk("sdb", "8:16").disk("sdb/sdb1", "8:17").disk("ram0", "1:0");
        for (name, disk) in [("sdb1", "sdb"), ("pool!ram", "ram0")] {
            let place = format!("sys/class/rnbd-server/ctl/devices/{name}");
            fake.file(&format!("{place}/sessions/client@server/access_mode"), "rw\n");
            std::os::unix::fs::symlink(
                fake.path(&format!("sys/block/{disk}")),
                fake.path(&format!("{place}/block_dev")),
            )
            .unwrap();
        }
        let of =
            |number: &str| look(&fake, &ExportQuery::Devices(&BTreeSet::from([number.parse().unwrap()])));
        assert_eq!(texts(&of("8:17")), ["RNBD, as sdb1 for client@server"]);
        assert_eq!(
            texts(&of("8:16")),
            Vec::<&str>::new(),
            "its own number; partitions count in another place"
        );
        assert_eq!(texts(&of("1:0")), ["RNBD, as pool!ram for client@server"]);
    }

    #[test]
    fn files_of_gadgets_without_configfs_are_found() {
        let fake = Fake::new().disk("sda", "8:0").disk("sdb", "8:16").disk("sdc", "8:32");
        let controller = "sys/devices/platform/dummy_udc.0";
        fake.file(&format!("{controller}/gadget.0/lun0/file"), "/dev/sda\n");
        fake.file(&format!("{controller}/gadget.0/lun1/file"), "\n");
        fake.file(&format!("{controller}/gadget/gadget-lun0/file"), "/dev/sdb\n");
        fake.file("sys/class/udc/dummy_udc.0/state", "configured\n");
        std::os::unix::fs::symlink(fake.path(controller), fake.path("sys/class/udc/dummy_udc.0/device"))
            .unwrap();
        for (number, is_exported) in [("8:0", true), ("8:16", true), ("8:32", false)] {
            let usage = look(&fake, &ExportQuery::Devices(&BTreeSet::from([number.parse().unwrap()])));
            let wanted: &[&str] = if is_exported { &["the USB gadget on dummy_udc.0"] } else { &[] };
            assert_eq!(texts(&usage), wanted, "{number}");
            assert_eq!(usage.doubts, Vec::<String>::new());
        }
    }

    #[test]
    fn files_that_are_exported_are_found() {
        let fake = Fake::new();
        let file = fake.path("disk image.img");
        std::fs::write(&file, "x").unwrap();
        let info =
            format!("  TCM FILEIO ID: 0        File: {}  Size: 1048576  Mode: Buffered\n", file.display());
        fake.file("sys/kernel/config/target/core/fileio_0/image/info", &info);
        let meta = std::fs::metadata(&file).unwrap();
        let usage = look(&fake, &ExportQuery::File((meta.dev(), meta.ino())));
        assert_eq!(texts(&usage), ["the SCSI target fileio_0/image"]);
        assert!(look(&fake, &ExportQuery::File((meta.dev(), meta.ino() + 1))).uses.is_empty());
    }

    #[test]
    fn what_cannot_be_looked_at_is_a_doubt() {
        let fake = Fake::new();
        fake.file("sys/kernel/config/target/core/fileio_0/image/udev_path", "/nonexistent/image\n");
        fake.file("sys/module/nvmet/refcnt", "0\n");
        let mut usage = look(&fake, &ExportQuery::File((1, 1)));
        fake.with(|machine, _| doubt_file(machine, (1, 1), &mut usage));
        assert_eq!(usage.doubts.len(), 2, "{:?}", usage.doubts);
        assert!(usage.doubts[0].contains("configfs is not mounted"), "{:?}", usage.doubts);
        let lost = "the SCSI target fileio_0/image exports /nonexistent/image, which cannot be found here";
        assert_eq!(usage.doubts[1], lost);
        assert_eq!(look(&fake, &ExportQuery::Devices(&BTreeSet::new())).doubts.len(), 1, "no device");
    }

    /// Exports `name` through nvmet.
    fn exported(fake: &Fake, name: &str) {
        let namespace = "sys/kernel/config/nvmet/subsystems/nqn.test/namespaces/1";
        fake.file(&format!("{namespace}/device_path"), &format!("{name}\n"));
        fake.file(&format!("{namespace}/enable"), "1\n");
    }

    fn doubts_of(fake: &Fake, number: &str) -> Vec<String> {
        let usage = look(fake, &ExportQuery::Devices(&BTreeSet::from([number.parse().unwrap()])));
        assert_eq!(texts(&usage), Vec::<&str>::new());
        usage.doubts
    }

    #[test]
    fn a_volume_that_was_renamed_is_still_exported() {
        let volume = |fake: Fake, number: u32, name: &str, openers: &str| {
            let device = format!("dm-{number}");
            fake.disk(&device, &format!("253:{number}"))
                .attribute(&format!("{device}/dm/name"), &format!("vg-{name}\n"))
                .attribute(&format!("{device}/dm/uuid"), &format!("LVM-{}\n", "a".repeat(64)))
                .answer(&format!("open {device}"), openers)
        };
        let fake = Fake::new().disk("sda", "8:0");
        let fake = volume(volume(fake, 0, "data_old", "1"), 1, "data", "0");
        let fake = volume(fake, 2, "other", "0");
        exported(&fake, "/dev/mapper/vg-data");
        let said = [
            "namespace 1 of the NVMe subsystem nqn.test exports /dev/mapper/vg-data, a name that may have led here when it was exported",
        ];
        assert_eq!(doubts_of(&fake, "253:0"), said);
        assert_eq!(doubts_of(&fake, "253:2"), Vec::<String>::new(), "nothing unseen has it open");
        assert_eq!(doubts_of(&fake, "8:0"), Vec::<String>::new(), "it never had a name of device mapper");
        let usage = look(&fake, &ExportQuery::Devices(&BTreeSet::from(["253:1".parse().unwrap()])));
        assert_eq!(texts(&usage), ["namespace 1 of the NVMe subsystem nqn.test"], "by its name");
        // Before it was renamed, the name led to what is open.
        let fake = fake.answer("open dm-1", "1");
        assert_eq!(doubts_of(&fake, "253:0"), Vec::<String>::new());
    }

    #[test]
    fn a_link_may_have_led_to_any_device() {
        let fake = Fake::new().disk("sda", "8:0").disk("sdb", "8:16").by_id("ata-1", "sdb");
        exported(&fake, "/dev/disk/by-id/ata-1");
        assert_eq!(doubts_of(&fake, "8:0").len(), 1);
        exported(&fake, "/dev/sdb");
        assert_eq!(doubts_of(&fake, "8:0"), Vec::<String>::new());
        for nowhere in ["sdb", "./disk.img", "/dev/sdz"] {
            exported(&fake, nowhere);
            let said = format!(
                "namespace 1 of the NVMe subsystem nqn.test exports {nowhere}, which cannot be found here"
            );
            assert_eq!(doubts_of(&fake, "8:0"), [said]);
        }
        for nothing in ["(null)", ""] {
            exported(&fake, nothing);
            assert_eq!(doubts_of(&fake, "8:0"), Vec::<String>::new());
        }
        exported(&fake, "/dev/sdb");
        // iblock holds its device exclusively, and says its number.
        let lio = "sys/kernel/config/target/core/iblock_0/disk";
        fake.file(
            &format!("{lio}/info"),
            "iBlock device: sda  UDEV PATH: /dev/disk/by-id/ata-1  readonly: 0\n        Major: 8 Minor: 0  CLAIMED: IBLOCK\n",
        );
        fake.file(&format!("{lio}/udev_path"), "/dev/disk/by-id/ata-1\n");
        let usage = look(&fake, &ExportQuery::Devices(&BTreeSet::from(["8:0".parse().unwrap()])));
        assert_eq!(texts(&usage), ["the SCSI target iblock_0/disk"]);
        let fileio = "sys/kernel/config/target/core/fileio_1/disk";
        fake.file(&format!("{fileio}/udev_path"), "/dev/disk/by-id/ata-1\n");
        fake.file(&format!("{fileio}/enable"), "0\n");
        let fake = fake.disk("sdc", "8:32");
        assert_eq!(doubts_of(&fake, "8:32"), Vec::<String>::new(), "nothing is open yet");
        fake.file(&format!("{fileio}/enable"), "1\n");
        assert_eq!(doubts_of(&fake, "8:32").len(), 1);
    }

    #[test]
    fn a_file_that_another_namespace_calls_otherwise_is_exported() {
        let fake = Fake::new().process(7, "31 1 0:31 / / rw - tmpfs tmpfs rw\n");
        fake.file("proc/7/root/srv/disk.img", "x");
        exported(&fake, "/srv/disk.img");
        let meta = std::fs::metadata(fake.path("proc/7/root/srv/disk.img")).unwrap();
        let usage = look(&fake, &ExportQuery::File((meta.dev(), meta.ino())));
        let said = "namespace 1 of the NVMe subsystem nqn.test, by the name /srv/disk.img of another mount namespace";
        assert_eq!(texts(&usage), [said]);
    }
}
