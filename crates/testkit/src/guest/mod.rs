//! A small virtual machine with the devices that a test machine lacks: md, device mapper, LVM, NVMe, SCSI. It boots the
//! packaged kernel from a busybox initramfs, runs scenarios one after the other in the same boot, and returns their
//! output. It touches no disk except the sparse files that it creates, and it never outlives the test.
//!
//! docs/guest.md explains how to write scenarios.

pub mod campaign;
mod cpio;
mod disk;
mod initramfs;
mod kernel;
mod outcome;
mod plain_image;
mod qemu;
mod session;

use anyhow::anyhow;
use std::fs::{self, File};
use std::io;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

pub use campaign::Tier;
pub use disk::Disk;
pub use kernel::{KERNEL_VARIABLE, ROOT_VARIABLE};
pub use outcome::{Call, ScenarioOutcome};
pub use session::{Booted, Scenario};

use kernel::{Kernel, Version};

use crate::attempts::first_right;
use crate::tool::find_tool;
use crate::turn::Turn;

/// Programs that every guest needs.
const NEEDED: &[&str] = &[qemu::PROGRAM, "busybox", "modprobe", "ldd", "setpriv"];
/// Programs that every guest has: rdsk calls the first two, and the others are better than busybox's.
const ALWAYS: &[&str] =
    &["lsblk", "wipefs", "blkdiscard", "blockdev", "losetup", "sfdisk", "findmnt", "mount"];
/// How long a boot may take. It takes about 6 s on an idle machine without KVM, and up to a minute on a busy one.
const BOOT_LIMIT: Duration = Duration::from_secs(600);
/// How often a guest is booted until it comes up.
const BOOTS: usize = 3;

/// Whether a guest with this version of the kernel, or a later one, can be booted here.
///
/// # Errors
/// What is missing, in a few words.
pub(crate) fn probe(since: Version) -> anyhow::Result<()> {
    for tool in NEEDED.iter().chain(ALWAYS) {
        find_tool(tool).ok_or_else(|| anyhow!("{tool} is not installed"))?;
    }
    // In some distributions only root may read kernel images.
    let kernel = Kernel::find(since)?;
    File::open(&kernel.image).map(drop).map_err(|error| anyhow!("{}: {error}", kernel.image.display()))
}

/// The configuration of a guest.
#[derive(Clone, Debug)]
pub struct Guest {
    programs: Vec<String>,
    files: Vec<(PathBuf, String)>,
    loaded: Vec<(String, String)>,
    carried: Vec<String>,
    disks: Vec<Disk>,
    memory_mib: u32,
    append: String,
    arguments: Vec<String>,
    life: Duration,
    since: Version,
}

impl Guest {
    /// A guest with the built program, a caller's `env!("CARGO_BIN_EXE_rdsk")`, as `rdsk`.
    pub fn with_rdsk(binary: impl Into<PathBuf>) -> Self {
        Self::new().file(binary, "/usr/bin/rdsk")
    }

    /// A guest with busybox, lsblk, wipefs and a few more, and no disk.
    pub fn new() -> Self {
        Self {
            programs: ALWAYS.iter().map(|name| (*name).to_owned()).collect(),
            files: Vec::new(),
            loaded: Vec::new(),
            carried: Vec::new(),
            disks: Vec::new(),
            memory_mib: 768,
            append: String::new(),
            arguments: Vec::new(),
            life: Duration::from_secs(3600),
            since: (0, 0),
        }
    }

    /// Modules that are loaded at the start, after their dependencies.
    pub fn modules(mut self, modules: &[&str]) -> Self {
        self.loaded.extend(modules.iter().map(|module| ((*module).to_owned(), String::new())));
        self
    }

    /// One more such module, with its parameters: `("scsi_debug", "dev_size_mb=64")`.
    pub fn module_with(mut self, module: &str, parameters: &str) -> Self {
        self.loaded.push((module.into(), parameters.into()));
        self
    }

    /// Modules that scripts load themselves, by `module NAME [PARAMETER=VALUE…]`.
    pub fn carried(mut self, modules: &[&str]) -> Self {
        self.carried.extend(modules.iter().map(|module| (*module).to_owned()));
        self
    }

    /// Programs of this machine to copy into the guest, with their libraries.
    pub fn programs(mut self, programs: &[&str]) -> Self {
        for program in programs {
            if !self.programs.iter().any(|carried| carried == program) {
                self.programs.push((*program).to_owned());
            }
        }
        self
    }

    /// A file of this machine, with its path in the guest; the libraries of a program are added.
    pub fn file(mut self, host: impl Into<PathBuf>, guest: &str) -> Self {
        self.files.push((host.into(), guest.into()));
        self
    }

    /// One more disk.
    pub fn disk(mut self, disk: Disk) -> Self {
        self.disks.push(disk);
        self
    }

    /// Asks for this version of the kernel, or a later one.
    pub fn since(mut self, major: u32, minor: u32) -> Self {
        self.since = (major.into(), minor.into());
        self
    }

    /// Memory in MiB (default 768).
    pub fn memory(mut self, mib: u32) -> Self {
        self.memory_mib = mib;
        self
    }

    /// Further options on the kernel's command line.
    pub fn append(mut self, words: &str) -> Self {
        self.append.push(' ');
        self.append.push_str(words);
        self
    }

    /// Further arguments of QEMU.
    pub fn qemu(mut self, arguments: &[&str]) -> Self {
        self.arguments.extend(arguments.iter().map(|argument| (*argument).to_owned()));
        self
    }

    /// How long the guest may run (default an hour); then it ends by itself.
    pub fn life(mut self, life: Duration) -> Self {
        self.life = life;
        self
    }

    /// Boots it. Three guests run at a time on a machine ([`Turn::Guest`]); a fourth waits. One that does not come up,
    /// or whose clock is wrong, is booted anew, which is said.
    ///
    /// # Panics
    /// If it cannot be started, or does not come up; the message says why, with the last lines of its console.
    pub fn boot(self) -> Booted {
        let attempt = || match self.try_boot() {
            Ok(up) => up.map_err(|why| format!("{why:#}")),
            Err(error) => panic!("the guest cannot be started: {error}"),
        };
        first_right(BOOTS, attempt)
    }

    fn try_boot(&self) -> io::Result<anyhow::Result<Booted>> {
        let turn = Turn::Guest.wait()?;
        let kernel = Kernel::find(self.since).map_err(io::Error::other)?;
        let directory = tempfile::Builder::new().prefix("rdsk-guest-").tempdir()?;
        disk::make_images(&self.disks, directory.path())?;
        let archive = directory.path().join("initramfs");
        fs::write(&archive, initramfs::build(&kernel, self)?)?;
        let socket = directory.path().join("port");
        let listener = UnixListener::bind(&socket)?;
        let start = Instant::now();
        let qemu = qemu::Qemu::start(&self.arguments(&kernel, &archive, &socket), directory.path())?;
        let images = disk::images(&self.disks, directory.path());
        let booted =
            Booted::wait(qemu, &listener, session::Held { images, directory, turn }, start, BOOT_LIMIT);
        if booted.is_ok() {
            campaign::note("boot", &kernel.release, "up", start.elapsed());
        }
        Ok(booted)
    }

    /// Modules that are loaded at the start, with their parameters: the way out, those of the disks, those that were asked for.
    fn loaded(&self) -> Vec<(String, String)> {
        let own = ["virtio_pci", "virtio_console"].into_iter().chain(disk::modules(&self.disks));
        own.map(|name| (name.to_owned(), String::new())).chain(self.loaded.iter().cloned()).collect()
    }

    fn arguments(&self, kernel: &Kernel, archive: &Path, socket: &Path) -> Vec<String> {
        // `no_timer_check`: the kernel takes its timer for broken if it does not tick ten times in the moment in which it looks, as
        // that of a guest that waits for a processor does not, and stops (seen on 2026-11-25, one guest of some 150 beside load).
        // The second line leaves out what takes an emulated processor long and what nothing here depends on: tests of ciphers, memory that
        // is cleared before it is handed out, a stack at a random place in each system call, and the rules of AppArmor.
        let append = format!(
            "console=ttyS0 quiet panic=-1 oops=panic tsc=reliable no_timer_check mitigations=off nowatchdog random.trust_cpu=on \
             cryptomgr.notests init_on_alloc=0 randomize_kstack_offset=off apparmor=0{}",
            self.append
        );
        let mut words: Vec<String> = [
            // The same on every machine: KVM, on machines that have it, would bring other races and other speeds.
            "-accel", "tcg,thread=multi", "-cpu",
            // Emulated, a string instruction moves one byte or word at a time; so the kernel shall copy by moves.
            "max,-erms,-fsrm", "-nodefaults", "-display", "none", "-no-reboot",
        ]
        .map(str::to_owned)
        .to_vec();
        // Two processors: one takes a fifth less of the machine, and is too slow where that is busy.
        words.extend(["-smp".into(), "2".into(), "-m".into(), self.memory_mib.to_string()]);
        words.extend(["-kernel".into(), plain_image::path_of(kernel).display().to_string()]);
        words.extend(["-initrd".into(), archive.display().to_string(), "-append".into(), append]);
        words.extend(["-chardev".into(), format!("socket,id=port,path={}", socket.display())]);
        words.extend(
            ["-device", "virtio-serial-pci", "-device", "virtserialport,chardev=port,name=rdsk"]
                .map(str::to_owned),
        );
        words.extend(disk::arguments(&self.disks, archive.parent().unwrap_or(archive)));
        words.extend(self.arguments.iter().cloned());
        words
    }
}

impl Default for Guest {
    fn default() -> Self {
        Self::new()
    }
}
