//! The packaged kernel without its compression: undoing it takes an emulated processor two seconds of each boot. It reads the
//! packaged file, keeps what it unpacked in a file without a name for as long as the test program runs, and changes nothing.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};

use super::kernel::Kernel;

/// Fields of the header of an x86 image (Documentation/arch/x86/boot.rst).
const SETUP_SECTORS: usize = 0x1f1;
const MAGIC: usize = 0x202;
const PAYLOAD_OFFSET: usize = 0x248;
const PAYLOAD_LENGTH: usize = 0x24c;
/// How packed kernels begin, and what unpacks them.
const PACKED: &[(&[u8], &str)] = &[(b"\xfd7zXZ\0", "xz"), (b"\x28\xb5\x2f\xfd", "zstd")];
/// An ELF note of Xen, number 18: where a kernel that is not packed is entered. Its name has four bytes, and its value four or eight.
const ENTRIES: [&[u8]; 2] = [b"\x04\0\0\0\x04\0\0\0\x12\0\0\0Xen\0", b"\x04\0\0\0\x08\0\0\0\x12\0\0\0Xen\0"];

/// The unpacked kernel of each image that was asked for, or `None` where it cannot be booted.
static UNPACKED: Mutex<BTreeMap<PathBuf, Option<File>>> = Mutex::new(BTreeMap::new());

/// The file that QEMU shall boot: the unpacked kernel, or the packaged one where that is not to be had.
pub(super) fn path_of(kernel: &Kernel) -> PathBuf {
    let mut unpacked = UNPACKED.lock().unwrap_or_else(PoisonError::into_inner);
    let unpack = || unpacked_file(&kernel.image).ok().flatten();
    match unpacked.entry(kernel.image.clone()).or_insert_with(unpack) {
        Some(file) => format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd()).into(),
        None => kernel.image.clone(),
    }
}

fn unpacked_file(image: &Path) -> io::Result<Option<File>> {
    let image = fs::read(image)?;
    let Some((program, packed)) = packed_in(&image) else { return Ok(None) };
    let mut source = tempfile::tempfile()?;
    source.write_all(packed)?;
    io::Seek::rewind(&mut source)?;
    let kernel = tempfile::tempfile()?;
    let mut unpack = Command::new(program);
    unpack.arg("-dc").stdin(source).stdout(kernel.try_clone()?).stderr(Stdio::null());
    if !unpack.status()?.success() {
        return Ok(None);
    }
    let content = fs::read(format!("/proc/self/fd/{}", kernel.as_raw_fd()))?;
    Ok(has_entry(&content).then_some(kernel))
}

/// The packed kernel within an image, without the four bytes behind it that hold its unpacked size, and the program that unpacks it.
fn packed_in(image: &[u8]) -> Option<(&'static str, &[u8])> {
    let word = |at: usize| Some(u32::from_le_bytes(image.get(at..at + 4)?.try_into().ok()?) as usize);
    if image.get(MAGIC..MAGIC + 4)? != b"HdrS" {
        return None;
    }
    let sectors = usize::from(*image.get(SETUP_SECTORS)?);
    // 0 means four, for old loaders.
    let begin = (if sectors == 0 { 4 } else { sectors } + 1) * 512 + word(PAYLOAD_OFFSET)?;
    let packed = image.get(begin..begin + word(PAYLOAD_LENGTH)?.checked_sub(4)?)?;
    PACKED.iter().find(|(magic, _)| packed.starts_with(magic)).map(|(_, program)| (*program, packed))
}

/// Whether QEMU can enter this kernel by itself. Notes are aligned to four bytes.
fn has_entry(kernel: &[u8]) -> bool {
    kernel.starts_with(b"\x7fELF") && kernel.windows(16).step_by(4).any(|note| ENTRIES.contains(&note))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packed_by_xz(content: &[u8]) -> Vec<u8> {
        let mut source = tempfile::tempfile().unwrap();
        source.write_all(content).unwrap();
        io::Seek::rewind(&mut source).unwrap();
        Command::new("xz").arg("-c").stdin(source).output().unwrap().stdout
    }

    /// An image with one sector of set-up and 100 bytes of loader before its packed kernel.
    fn image_of(kernel: &[u8]) -> Vec<u8> {
        let packed = packed_by_xz(kernel);
        let mut image = vec![0; 2 * 512 + 100];
        image[SETUP_SECTORS] = 1;
        image[MAGIC..MAGIC + 4].copy_from_slice(b"HdrS");
        image[PAYLOAD_OFFSET..PAYLOAD_OFFSET + 4].copy_from_slice(&100_u32.to_le_bytes());
        let length = u32::try_from(packed.len() + 4).unwrap();
        image[PAYLOAD_LENGTH..PAYLOAD_LENGTH + 4].copy_from_slice(&length.to_le_bytes());
        image.extend(packed);
        image.extend(u32::try_from(kernel.len()).unwrap().to_le_bytes());
        image
    }

    fn kernel_at(place: &Path, kernel: &[u8]) -> Kernel {
        fs::write(place, image_of(kernel)).unwrap();
        Kernel { release: "6.1.0".to_owned(), image: place.to_owned(), root: "/".into() }
    }

    #[test]
    fn a_packed_kernel_with_an_entry_is_unpacked() {
        let scratch = tempfile::tempdir().unwrap();
        let with_entry = [&b"\x7fELFxxxx"[..], ENTRIES[1], &[7; 40]].concat();
        let kernel = kernel_at(&scratch.path().join("a"), &with_entry);
        assert_eq!(fs::read(path_of(&kernel)).unwrap(), with_entry);
        let without = kernel_at(&scratch.path().join("b"), b"\x7fELF and no note of Xen\0\0");
        assert_eq!(path_of(&without), without.image);
        let nothing = Kernel { image: scratch.path().join("c"), ..kernel };
        assert_eq!(path_of(&nothing), nothing.image);
        fs::write(&nothing.image, [0; 100]).unwrap();
        assert_eq!(unpacked_file(&nothing.image).unwrap().map(drop), None);
    }

    #[test]
    fn only_a_kernel_that_says_where_it_is_entered_can_be() {
        let kernel = |note: &[u8]| has_entry(&[&b"\x7fELF"[..], note].concat());
        assert!(kernel(ENTRIES[0]) && kernel(ENTRIES[1]));
        assert!(
            !kernel(b"\x04\0\0\0\x08\0\0\0\x11\0\0\0Xen\0") && !kernel(b"Xen\0") && !has_entry(ENTRIES[0])
        );
    }
}
