//! The disks of a guest: what the guest sees of them, and the sparse files behind them. It knows QEMU's options for them and
//! starts nothing.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// How the guest reaches a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bus {
    Virtio,
    Nvme,
    Scsi,
}

/// A disk to plug into a guest. Scripts find its node in the variable with its name, and its serial number in that variable
/// with `_ID`: `$A` and `$A_ID`.
#[derive(Clone, Debug)]
pub struct Disk {
    bus: Bus,
    size: u64,
    name: String,
    serial: Option<String>,
    properties: String,
    over: Option<String>,
}

impl Disk {
    /// A virtio disk (`/dev/vdX`) of this many bytes. Its name must be valid as a shell variable.
    pub fn virtio(name: &str, size: u64) -> Self {
        Self::new(Bus::Virtio, name, size)
    }

    /// An NVMe controller with one namespace (`/dev/nvmeXn1`).
    pub fn nvme(name: &str, size: u64) -> Self {
        Self::new(Bus::Nvme, name, size)
    }

    /// A SCSI disk (`/dev/sdX`) behind a virtio-scsi host of its own.
    pub fn scsi(name: &str, size: u64) -> Self {
        Self::new(Bus::Scsi, name, size)
    }

    fn new(bus: Bus, name: &str, size: u64) -> Self {
        assert!(
            !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit()),
            "a disk's name is made of capital letters and digits, not {name:?}"
        );
        Self { bus, size, name: name.into(), serial: None, properties: String::new(), over: None }
    }

    /// Sets a serial number other than `RDSK-GUEST-NAME`.
    pub fn serial(mut self, serial: &str) -> Self {
        self.serial = Some(serial.into());
        self
    }

    /// Further properties of QEMU's device, such as `logical_block_size=4096,physical_block_size=4096`.
    pub fn properties(mut self, properties: &str) -> Self {
        self.properties.push(',');
        self.properties.push_str(properties);
        self
    }

    /// Shows the data of the earlier disk `name` once more, with the same serial number: a second path to it. Its own size
    /// is ignored.
    pub fn over(mut self, name: &str) -> Self {
        self.over = Some(name.into());
        self
    }

    fn image(&self, directory: &Path) -> PathBuf {
        directory.join(format!("disk-{}.img", self.over.as_deref().unwrap_or(&self.name)))
    }

    fn serial_number(&self) -> String {
        let default = || format!("RDSK-GUEST-{}", self.over.as_deref().unwrap_or(&self.name));
        self.serial.clone().unwrap_or_else(default)
    }
}

/// Makes the images, sparse.
pub(crate) fn make_images(disks: &[Disk], directory: &Path) -> io::Result<()> {
    for disk in disks.iter().filter(|disk| disk.over.is_none()) {
        File::create_new(disk.image(directory))?.set_len(disk.size)?;
    }
    Ok(())
}

/// The image behind each disk, by the disk's name.
pub(crate) fn images(disks: &[Disk], directory: &Path) -> BTreeMap<String, PathBuf> {
    disks.iter().map(|disk| (disk.name.clone(), disk.image(directory))).collect()
}

/// QEMU's arguments for the disks.
pub(crate) fn arguments(disks: &[Disk], directory: &Path) -> Vec<String> {
    let mut words = Vec::new();
    for disk in disks {
        let id = disk.name.to_lowercase();
        let image = disk.image(directory);
        words.push("-drive".into());
        // With "unsafe" the host ignores the guest's flushes; the guest still sees a write cache.
        words.push(format!(
            "file={},if=none,id=drive-{id},format=raw,cache=unsafe,discard=unmap,file.locking=off",
            image.display().to_string().replace(',', ",,")
        ));
        let device = match disk.bus {
            Bus::Virtio => "virtio-blk-pci".to_owned(),
            Bus::Nvme => "nvme".to_owned(),
            Bus::Scsi => {
                words.extend(["-device".to_owned(), format!("virtio-scsi-pci,id=host-{id}")]);
                format!("scsi-hd,bus=host-{id}.0")
            }
        };
        let shared = if disk.bus == Bus::Nvme { "" } else { ",share-rw=on" };
        words.push("-device".into());
        words.push(format!(
            "{device},drive=drive-{id},id=disk-{id},serial={}{shared}{}",
            disk.serial_number(),
            disk.properties
        ));
    }
    words
}

/// The modules by which the guest reaches the disks.
pub(crate) fn modules(disks: &[Disk]) -> Vec<&'static str> {
    let mut modules = Vec::new();
    for disk in disks {
        let needed: &[&str] = match disk.bus {
            Bus::Virtio => &["virtio_blk"],
            Bus::Nvme => &["nvme"],
            Bus::Scsi => &["virtio_scsi", "sd_mod"],
        };
        modules
            .extend(needed.iter().filter(|module| !modules.contains(*module)).copied().collect::<Vec<_>>());
    }
    modules
}

/// Lines of shell that set the variables of all disks.
pub(crate) fn variables(disks: &[Disk]) -> String {
    let mut serials: Vec<String> = Vec::new();
    let mut text = String::new();
    for disk in disks {
        let serial = disk.serial_number();
        let which = 1 + serials.iter().filter(|earlier| **earlier == serial).count();
        // One that an earlier scenario has taken away is not set, so that only a scenario that names it fails.
        let name = &disk.name;
        text.push_str(&format!("{name}_ID={serial}\n{name}=$(disk {serial} {which}) || unset {name}\n"));
        serials.push(serial);
    }
    let names: Vec<&str> = disks.iter().map(|disk| disk.name.as_str()).collect();
    text.push_str(&format!("DISKS=\"{}\"\n", names.join(" ")));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_disk_is_plugged_in_with_its_serial_number() {
        let disks = [
            Disk::virtio("A", 1 << 20),
            Disk::nvme("N", 2 << 20).serial("NV1"),
            Disk::scsi("S", 4 << 20).properties("logical_block_size=4096"),
            Disk::scsi("S2", 0).over("S"),
        ];
        let scratch = tempfile::tempdir().unwrap();
        make_images(&disks, scratch.path()).unwrap();
        assert_eq!(std::fs::read_dir(scratch.path()).unwrap().count(), 3);
        let words = arguments(&disks, scratch.path()).join(" ");
        assert!(words.contains("virtio-blk-pci,drive=drive-a,id=disk-a,serial=RDSK-GUEST-A,share-rw=on"));
        assert!(words.contains("nvme,drive=drive-n,id=disk-n,serial=NV1"));
        assert!(words.contains("serial=RDSK-GUEST-S,share-rw=on,logical_block_size=4096"));
        assert!(words.contains("bus=host-s2.0,drive=drive-s2,id=disk-s2,serial=RDSK-GUEST-S,"));
        assert_eq!(modules(&disks), ["virtio_blk", "nvme", "virtio_scsi", "sd_mod"]);
        let text = variables(&disks);
        assert!(text.contains("\nS=$(disk RDSK-GUEST-S 1) || unset S\n"), "{text}");
        assert!(text.contains("\nS2=$(disk RDSK-GUEST-S 2) || unset S2\n"), "{text}");
    }

    #[test]
    #[should_panic(expected = "capital letters")]
    fn a_name_that_is_no_variable_is_refused() {
        let _ = Disk::virtio("a-b", 1);
    }
}
