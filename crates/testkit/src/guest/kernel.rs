//! Finds the packaged kernel that the guest runs and the modules it needs. It installs nothing.

use anyhow::anyhow;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::tool::{find_tool, output_of};

/// The environment variable that names the kernel to boot, as in `/lib/modules`, if it is not the newest.
pub const KERNEL_VARIABLE: &str = "RDSK_GUEST_KERNEL";

/// The environment variable that names a directory in which the package of a newer kernel was unpacked, for what that of this machine
/// does not have: with `boot` and `lib/modules` (docs/guest.md).
pub const ROOT_VARIABLE: &str = "RDSK_GUEST_ROOT";

const BOOT: &str = "boot";
const MODULES: &str = "lib/modules";
/// A module that kernels for cloud machines leave out, like most others.
const MODULE: &str = "/scsi_debug.ko";

/// A kernel with its modules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Kernel {
    /// Its release: `6.1.0-18-amd64`.
    pub(crate) release: String,
    /// The image that QEMU loads.
    pub(crate) image: PathBuf,
    /// The directory in which it was installed.
    pub(crate) root: PathBuf,
}

/// Major and minor number.
pub(crate) type Version = (u64, u64);

impl Kernel {
    /// The newest kernel of this machine that has both image and modules, or the one that the variable names; if that
    /// is older than `since`, the newest in the directory of the other variable.
    ///
    /// # Errors
    /// Why there is none, in a few words.
    pub(crate) fn find(since: Version) -> anyhow::Result<Self> {
        let variable = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
        let wanted = variable(KERNEL_VARIABLE);
        let installed = kernels(Path::new("/"));
        let kernel = match &wanted {
            Some(name) => installed.into_iter().find(|kernel| kernel.release == *name),
            None => installed.into_iter().next_back(),
        };
        let own = kernel.ok_or_else(|| match wanted {
            Some(name) => anyhow!("there is no /{BOOT}/vmlinuz-{name} with /{MODULES}/{name}"),
            None => anyhow!("there is no /{BOOT}/vmlinuz-* with its /{MODULES} (package linux-image-amd64)"),
        })?;
        if own.is_since(since) {
            return Ok(own);
        }
        let unpacked =
            variable(ROOT_VARIABLE).and_then(|root| kernels(Path::new(&root)).into_iter().next_back());
        unpacked.filter(|kernel| kernel.is_since(since)).ok_or_else(|| {
            let (major, minor) = since;
            anyhow!(
                "the guest's kernel is {}, and {ROOT_VARIABLE} names none since {major}.{minor}",
                own.release
            )
        })
    }

    fn is_since(&self, (major, minor): Version) -> bool {
        version(&self.release) >= vec![major, minor]
    }

    /// The files of a module and its dependencies, in load order. Empty if the module is built into the kernel.
    ///
    /// # Errors
    /// Modprobe's message if the kernel does not have the module.
    pub(crate) fn module_files(&self, module: &str) -> io::Result<Vec<PathBuf>> {
        let tool = find_tool("modprobe").ok_or_else(|| io::Error::other("modprobe is not installed"))?;
        let text = output_of(
            Command::new(tool)
                .arg("-d")
                .arg(&self.root)
                .args(["-S", &self.release, "--show-depends", module]),
        )?;
        Ok(loaded(&text))
    }
}

/// Every kernel in a root directory with an image and modules, the oldest first.
fn kernels(root: &Path) -> Vec<Kernel> {
    let (boot, modules) = (root.join(BOOT), root.join(MODULES));
    let entries = fs::read_dir(boot).into_iter().flatten().flatten();
    let mut kernels: Vec<Kernel> = entries
        .filter_map(|entry| {
            let name = entry.file_name().to_string_lossy().into_owned();
            let release = name.strip_prefix("vmlinuz-")?.to_owned();
            let list = fs::read_to_string(modules.join(&release).join("modules.dep")).ok()?;
            list.contains(MODULE).then(|| Kernel { release, image: entry.path(), root: root.to_owned() })
        })
        .collect();
    kernels.sort_by_key(|kernel| version(&kernel.release));
    kernels
}

/// The numbers in a release, so that 6.10 comes after 6.9.
fn version(release: &str) -> Vec<u64> {
    release.split(|letter: char| !letter.is_ascii_digit()).filter_map(|digits| digits.parse().ok()).collect()
}

/// The files in the output of `modprobe --show-depends`, each once.
fn loaded(text: &str) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = Vec::new();
    for line in text.lines() {
        let file = line.strip_prefix("insmod ").and_then(|rest| rest.split_whitespace().next());
        if let Some(file) = file.map(PathBuf::from)
            && !files.contains(&file)
        {
            files.push(file);
        }
    }
    files
}

/// The content of a module, decompressed if the distribution compresses its modules, and its name without that suffix.
pub(crate) fn module_content(file: &Path) -> io::Result<(String, Vec<u8>)> {
    let path = file.to_str().ok_or_else(|| io::Error::other("a module's path is no text"))?;
    for (ending, program) in [(".xz", "xz"), (".zst", "zstd"), (".gz", "gzip")] {
        if let Some(plain) = path.strip_suffix(ending) {
            let output = Command::new(program).arg("-dc").arg(file).output()?;
            if !output.status.success() {
                return Err(io::Error::other(format!("{program} cannot unpack {path}")));
            }
            return Ok((plain.to_owned(), output.stdout));
        }
    }
    Ok((path.to_owned(), fs::read(file)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_kernel_with_modules_comes_last() {
        let scratch = tempfile::tempdir().unwrap();
        let (boot, modules) = (scratch.path().join(BOOT), scratch.path().join(MODULES));
        fs::create_dir(&boot).unwrap();
        let all = [("6.10.1-amd64", true), ("6.9.0-3-amd64", true), ("6.11.0-cloud-amd64", false)];
        for (release, is_whole) in all {
            fs::write(boot.join(format!("vmlinuz-{release}")), "").unwrap();
            fs::create_dir_all(modules.join(release)).unwrap();
            let list = if is_whole {
                "kernel/drivers/scsi/scsi_debug.ko.xz:\n"
            } else {
                "kernel/fs/ext4/ext4.ko:\n"
            };
            fs::write(modules.join(release).join("modules.dep"), list).unwrap();
        }
        fs::write(boot.join("vmlinuz-6.12.0"), "").unwrap();
        fs::write(boot.join("config-6.13.0"), "").unwrap();
        let found: Vec<String> = kernels(scratch.path()).into_iter().map(|kernel| kernel.release).collect();
        assert_eq!(found, ["6.9.0-3-amd64", "6.10.1-amd64"]);
        let newest = kernels(scratch.path()).pop().unwrap();
        assert!(newest.is_since((6, 10)) && newest.is_since((5, 20)) && !newest.is_since((6, 12)));
        assert!(kernels(&scratch.path().join("nothing")).is_empty());
    }

    #[test]
    fn dependencies_are_loaded_once_and_first() {
        let text = "insmod /m/virtio_ring.ko\ninsmod /m/virtio.ko \nbuiltin unix\ninsmod /m/virtio_ring.ko \ninsmod /m/blk.ko a=1\n";
        let files = loaded(text);
        assert_eq!(files, ["/m/virtio_ring.ko", "/m/virtio.ko", "/m/blk.ko"].map(PathBuf::from));
        assert!(loaded("builtin ext4\n").is_empty());
    }

    #[test]
    fn packed_modules_are_unpacked() {
        let scratch = tempfile::tempdir().unwrap();
        let plain = scratch.path().join("x.ko");
        fs::write(&plain, "module").unwrap();
        assert_eq!(module_content(&plain).unwrap().1, b"module");
        let done = Command::new("gzip").arg("-k").arg(&plain).status().unwrap();
        assert!(done.success());
        let (name, content) = module_content(&scratch.path().join("x.ko.gz")).unwrap();
        assert_eq!((name.as_str(), content.as_slice()), (plain.to_str().unwrap(), &b"module"[..]));
    }
}
