//! The programs that the tests call, the Debian packages that contain them, and their installation. It installs only
//! what is missing, and only as root on a Debian.

use crate::step::{self, Ending};
use std::collections::BTreeSet;
use std::ops::Not as _;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Each package with the programs of it that tests call, in the order of the names; a path is a file that must be there.
const PACKAGES: &[(&str, &[&str])] = &[
    ("bcache-tools", &["make-bcache"]),
    ("bindfs", &["bindfs"]),
    ("bsdutils", &["script"]),
    ("btrfs-progs", &["btrfs", "mkfs.btrfs"]),
    ("busybox-static", &["busybox"]),
    ("chromium", &["chromium"]),
    ("chromium-driver", &["chromedriver"]),
    ("clang-14", &["clang-14"]),
    ("cryptsetup-bin", &["cryptsetup"]),
    ("dmsetup", &["dmsetup"]),
    ("e2fsprogs", &["chattr", "dumpe2fs", "filefrag", "mke2fs", "mkfs.ext4", "tune2fs"]),
    ("f2fs-tools", &["mkfs.f2fs"]),
    ("fdisk", &["sfdisk"]),
    ("fio", &["fio"]),
    ("fish", &["fish"]),
    ("fonts-dejavu-core", &["/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf"]),
    ("fuse2fs", &["fuse2fs"]),
    ("git", &["git"]),
    ("kmod", &["modprobe"]),
    ("libbpf-dev", &["/usr/include/bpf/bpf_helpers.h"]),
    ("libc-bin", &["ldd"]),
    ("libopenmpi-dev", &["mpicc"]),
    ("librsvg2-bin", &["rsvg-convert"]),
    ("llvm-14", &["llvm-strip-14"]),
    ("lvm2", &["lvm"]),
    ("mdadm", &["mdadm"]),
    ("mount", &["losetup", "mount", "swapoff", "swapon", "umount"]),
    ("nbd-client", &["nbd-client"]),
    ("nbd-server", &["nbd-server"]),
    ("openmpi-bin", &["mpirun"]),
    ("poppler-utils", &["pdftotext"]),
    ("python3", &["python3"]),
    ("python3-jsonschema", &["/usr/lib/python3/dist-packages/jsonschema/__init__.py"]),
    ("python3-pandas", &["/usr/lib/python3/dist-packages/pandas/__init__.py"]),
    (
        "python3-prometheus-client",
        &["/usr/lib/python3/dist-packages/prometheus_client/openmetrics/parser.py"],
    ),
    ("python3-yaml", &["/usr/lib/python3/dist-packages/yaml/__init__.py"]),
    ("sqlite3", &["sqlite3"]),
    ("sysstat", &["iostat"]),
    ("systemd", &["systemd-analyze"]),
    ("thin-provisioning-tools", &["thin_check"]),
    ("util-linux", &["addpart", "blkdiscard", "blkid", "blockdev", "fallocate", "findmnt", "flock"]),
    ("util-linux", &["lsblk", "mkswap", "partx", "prlimit", "setpriv", "setsid", "unshare"]),
    ("util-linux", &["wipefs", "zramctl"]),
    ("util-linux-extra", &["fincore"]),
    ("xfsprogs", &["mkfs.xfs"]),
    ("zsh", &["zsh"]),
];
/// What a guest needs where its kernel is packaged, which is on this architecture only. The kernel is no program; it is
/// looked for among files, in [`is_there`].
const GUEST: &[(&str, &str)] = &[("qemu-system-x86_64", "qemu-system-x86"), (KERNEL, "linux-image-amd64")];
/// The name under which a packaged kernel is missing.
const KERNEL: &str = "a packaged kernel with modules";
/// Where the modules of kernels lie, and a module that kernels for hosted machines leave out.
const MODULES: &str = "/lib/modules";
const MODULE: &str = "kernel/drivers/scsi/scsi_debug.ko";
/// Directories of system programs that the search path of an ordinary user leaves out.
const SYSTEM_DIRECTORIES: &[&str] = &["/usr/local/sbin", "/usr/sbin", "/sbin"];
const APT_LIMIT: Duration = Duration::from_secs(600);

/// The search path for children: ours, and the directories of system programs.
pub(crate) fn search_path() -> String {
    let mut path = std::env::var("PATH").unwrap_or_default();
    for directory in SYSTEM_DIRECTORIES {
        if !path.split(':').any(|listed| listed == *directory) {
            path = if path.is_empty() { (*directory).to_owned() } else { format!("{path}:{directory}") };
        }
    }
    path
}

/// Installs what is missing, if that is possible. Returns what is missing then, each with the reason.
pub(crate) fn install(interrupted: &AtomicBool) -> anyhow::Result<Vec<String>> {
    let missing = missing(&search_path());
    if missing.is_empty() {
        return Ok(Vec::new());
    }
    let packages: BTreeSet<&str> = missing.iter().map(|(_, package)| *package).collect();
    let reason = if !Path::new("/usr/bin/apt-get").exists() {
        "not a Debian; install it with the package manager of this system".to_owned()
    } else if !rustix::process::geteuid().is_root() {
        format!("not root; as root: apt-get install {}", Vec::from_iter(packages).join(" "))
    } else {
        apt_install(&packages, interrupted)?
    };
    let missing = self::missing(&search_path()).into_iter();
    Ok(missing.map(|(tool, package)| format!("{tool} (package {package}): {reason}")).collect())
}

/// The needs, as tests name them, that a root shell on Debian always meets once the tools step has run.
pub(crate) fn must_have() -> String {
    let tools = tools().map(|(tool, _)| format!("tool:{tool}"));
    let guest = guest().is_empty().not().then(|| "guest".to_owned());
    std::iter::once("root".to_owned()).chain(guest).chain(tools).collect::<Vec<_>>().join(",")
}

/// What tests find on this machine, as a text that changes with it: the user, and what is missing.
pub(crate) fn state() -> String {
    let missing: Vec<&str> = missing(&search_path()).into_iter().map(|(tool, _)| tool).collect();
    format!("user {}, without {}", rustix::process::geteuid().as_raw(), missing.join(" "))
}

/// Installs the packages; the package lists are fetched only when the first attempt fails. Returns why something may
/// still be missing.
fn apt_install(packages: &BTreeSet<&str>, interrupted: &AtomicBool) -> anyhow::Result<String> {
    for refresh in [false, true] {
        if refresh && apt(&["update"], interrupted)? != Ending::Succeeded {
            return Ok("apt-get update failed".into());
        }
        let mut arguments = vec!["install", "--yes", "--no-install-recommends"];
        arguments.extend(packages);
        if apt(&arguments, interrupted)? == Ending::Succeeded {
            return Ok("its package is installed but does not contain it".into());
        }
    }
    Ok("apt-get install failed".into())
}

fn apt(arguments: &[&str], interrupted: &AtomicBool) -> anyhow::Result<Ending> {
    let mut command = Command::new("apt-get");
    // Wait for another installation in progress instead of failing.
    command.args(["--quiet", "-o", "DPkg::Lock::Timeout=120"]).args(arguments);
    command.env("DEBIAN_FRONTEND", "noninteractive").env("PATH", search_path());
    step::run(&mut command, APT_LIMIT, interrupted, &mut |line| println!("{line}"))
}

fn missing(path: &str) -> Vec<(&'static str, &'static str)> {
    tools().chain(guest().iter().copied()).filter(|(tool, _)| !is_there(tool, path)).collect()
}

/// Each program with its package.
fn tools() -> impl Iterator<Item = (&'static str, &'static str)> {
    PACKAGES.iter().flat_map(|(package, tools)| tools.iter().map(|tool| (*tool, *package)))
}

/// What a guest needs here.
fn guest() -> &'static [(&'static str, &'static str)] {
    if cfg!(target_arch = "x86_64") { GUEST } else { &[] }
}

fn is_there(tool: &str, path: &str) -> bool {
    if tool == KERNEL { has_kernel(Path::new("/boot"), Path::new(MODULES)) } else { is_installed(tool, path) }
}

/// Whether there is an image of a kernel and, beside it, its modules with all that tests load.
fn has_kernel(boot: &Path, modules: &Path) -> bool {
    let releases = std::fs::read_dir(modules).into_iter().flatten().flatten();
    releases.map(|entry| entry.file_name()).any(|release| {
        let module = modules.join(&release).join(MODULE);
        let is_packed = |ending| module.with_extension(format!("ko.{ending}")).is_file();
        let image = boot.join(format!("vmlinuz-{}", release.display()));
        image.is_file() && (module.is_file() || ["xz", "zst", "gz"].into_iter().any(is_packed))
    })
}

/// Whether a program lies in the search path.
pub(crate) fn is_installed(tool: &str, path: &str) -> bool {
    let mut directories = path.split(':').filter(|directory| !directory.is_empty());
    directories.any(|directory| Path::new(directory).join(tool).is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Programs of Debian's essential packages; they need no installation.
    const BASE: &[&str] = &[
        "bash", "cat", "cp", "dd", "env", "head", "ln", "mknod", "nohup", "perl", "sh", "sleep", "stat",
        "sync", "timeout", "truncate", "yes",
    ];

    /// What only campaigns ask for, which install nothing.
    const OF_CAMPAIGNS: &[&str] = &["ip"];

    /// The other names of `lvm`.
    const LVM: &[&str] = &[
        "lvchange", "lvconvert", "lvcreate", "lvremove", "lvs", "pvcreate", "pvremove", "pvs", "vgchange",
        "vgcreate", "vgremove", "vgs",
    ];

    #[test]
    fn the_search_path_has_the_system_directories_once() {
        let path = search_path();
        for directory in SYSTEM_DIRECTORIES {
            assert_eq!(path.split(':').filter(|known| known == directory).count(), 1, "{path}");
        }
    }

    #[test]
    fn what_is_not_there_is_missing() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().to_str().unwrap();
        // The kernel and header files do not lie in the search path.
        let is_program = |tool: &&str| *tool != KERNEL && !tool.starts_with('/');
        let all = tools().chain(guest().iter().copied()).map(|(tool, _)| tool);
        let missing_programs = missing(path).into_iter().map(|(tool, _)| tool).filter(is_program);
        assert_eq!(missing_programs.count(), all.filter(is_program).count());
        std::fs::write(scratch.path().join("fio"), "").unwrap();
        assert!(!missing(path).contains(&("fio", "fio")));
    }

    #[test]
    fn a_kernel_is_one_with_image_and_modules() {
        let scratch = tempfile::tempdir().unwrap();
        let (boot, modules) = (scratch.path().join("boot"), scratch.path().join("modules"));
        std::fs::create_dir(&boot).unwrap();
        assert!(!has_kernel(&boot, &modules));
        let make = |path: &Path| {
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        };
        // A kernel without the modules, and modules without their kernel.
        make(&boot.join("vmlinuz-6.1.0-1-cloud-amd64"));
        make(&modules.join("6.1.0-1-cloud-amd64/modules.dep"));
        make(&modules.join("6.1.0-2-amd64").join(MODULE).with_extension("ko.xz"));
        assert!(!has_kernel(&boot, &modules));
        make(&boot.join("vmlinuz-6.1.0-2-amd64"));
        assert!(has_kernel(&boot, &modules));
    }

    #[test]
    fn tools_are_in_order() {
        assert!(PACKAGES.is_sorted());
        assert!(PACKAGES.iter().all(|(_, tools)| tools.is_sorted()));
    }

    #[test]
    fn promises_have_the_form_that_tests_read() {
        assert_eq!(must_have().starts_with("root,guest,tool:"), cfg!(target_arch = "x86_64"));
        assert!(must_have().starts_with("root,"));
        assert!(must_have().split(',').any(|need| need == "tool:fio"));
    }

    /// A guest without one of its programs fails, so each is installed, as each that a guest always has.
    #[test]
    fn every_program_that_guests_carry_is_installed() {
        let root = crate::root();
        let mut carried = 0;
        for path in crate::arch::rust_sources(&root).unwrap() {
            let text = std::fs::read_to_string(root.join(&path)).unwrap();
            let lists = text.split(concat!(".programs", "(&[")).skip(1);
            for tool in lists
                .flat_map(|rest| rest.split(']').next().unwrap_or_default().split('"').skip(1).step_by(2))
            {
                carried += 1;
                let known =
                    BASE.contains(&tool) || LVM.contains(&tool) || tools().any(|(known, _)| known == tool);
                assert!(known, "{} carries {tool}, which is not in xtask/src/tools.rs", path.display());
            }
        }
        assert!(carried > 0, "no guest carries any program: the search is broken");
    }

    /// A test that asks for a program which is not installed would always be skipped.
    #[test]
    fn every_program_that_tests_ask_for_is_installed() {
        let root = crate::root();
        let mut asked = 0;
        for path in crate::arch::rust_sources(&root).unwrap() {
            // The room that defines needs tests itself with programs that do not exist.
            if path.ends_with("testkit/src/requires.rs") {
                continue;
            }
            let text = std::fs::read_to_string(root.join(&path)).unwrap();
            let needle = concat!("Need::Tool", "(\"");
            for rest in text.split(needle).skip(1) {
                let tool = rest.split('"').next().unwrap_or_default();
                asked += 1;
                let known = BASE.contains(&tool)
                    || OF_CAMPAIGNS.contains(&tool)
                    || tools().any(|(known, _)| known == tool);
                assert!(known, "{} asks for {tool}, which is not in xtask/src/tools.rs", path.display());
            }
        }
        assert!(asked > 0, "no test asks for any program: the search is broken");
    }
}
