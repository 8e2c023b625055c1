//! Writes an initramfs: a cpio archive in the "newc" form, as Documentation/driver-api/early-userspace/buffer-format.rst of
//! the kernel describes it. It does not know what the files mean.

use std::collections::BTreeSet;
use std::fmt::Write as _;

const DIRECTORY: u32 = 0o040_755;
const LINK: u32 = 0o120_777;
const CHARACTER: u32 = 0o020_600;
const REGULAR: u32 = 0o100_000;

/// An archive that grows in memory. Paths have no leading slash; parent directories are added automatically.
#[derive(Debug, Default)]
pub(crate) struct Archive {
    bytes: Vec<u8>,
    names: BTreeSet<String>,
}

impl Archive {
    /// Adds a regular file, unless the name exists already.
    pub(crate) fn file(&mut self, path: &str, content: &[u8], permissions: u32) {
        self.entry(path, REGULAR | permissions, (0, 0), content);
    }

    /// Adds a symbolic link.
    pub(crate) fn link(&mut self, path: &str, to: &str) {
        self.entry(path, LINK, (0, 0), to.as_bytes());
    }

    /// Adds an empty directory.
    pub(crate) fn directory(&mut self, path: &str) {
        self.entry(path, DIRECTORY, (0, 0), b"");
    }

    /// Adds a character device.
    pub(crate) fn character_device(&mut self, path: &str, major: u32, minor: u32) {
        self.entry(path, CHARACTER, (major, minor), b"");
    }

    /// The whole archive.
    pub(crate) fn finish(mut self) -> Vec<u8> {
        self.write("TRAILER!!!", 0, (0, 0), b"");
        self.bytes
    }

    fn entry(&mut self, path: &str, mode: u32, device: (u32, u32), content: &[u8]) {
        let path = path.trim_start_matches('/');
        if self.names.contains(path) {
            return;
        }
        // The kernel unpacks a file only into an existing directory.
        if let Some((above, _)) = path.rsplit_once('/') {
            self.directory(above);
        }
        self.names.insert(path.to_owned());
        self.write(path, mode, device, content);
    }

    fn write(&mut self, path: &str, mode: u32, device: (u32, u32), content: &[u8]) {
        let number = u32::try_from(self.names.len()).expect("an archive has fewer than 2^32 files");
        let size = u32::try_from(content.len()).expect("a file of an initramfs is smaller than 4 GiB");
        let name_size = u32::try_from(path.len() + 1).expect("a path is short");
        let mut header = String::from("070701");
        // Number, mode, uid, gid, links, mtime, size, device (two words), rdev (two words), size of the name, check.
        for field in [number, mode, 0, 0, 1, 0, size, 0, 0, device.0, device.1, name_size, 0] {
            write!(header, "{field:08x}").expect("a String takes everything");
        }
        self.bytes.extend_from_slice(header.as_bytes());
        self.bytes.extend_from_slice(path.as_bytes());
        self.bytes.push(0);
        self.align();
        self.bytes.extend_from_slice(content);
        self.align();
    }

    fn align(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;
    use std::process::{Command, Stdio};

    fn sample() -> Vec<u8> {
        let mut archive = Archive::default();
        archive.file("a/b/five", b"12345", 0o644);
        archive.link("/a/to", "b/five");
        archive.character_device("dev/null", 1, 3);
        archive.file("a/b/five", b"another", 0o755);
        archive.finish()
    }

    #[test]
    fn headers_are_where_the_kernel_looks_for_them() {
        let bytes = sample();
        let mut names = Vec::new();
        let mut at = 0;
        while at < bytes.len() {
            assert_eq!(&bytes[at..at + 6], b"070701");
            let field = |index: usize| {
                let start = at + 6 + index * 8;
                let text = std::str::from_utf8(&bytes[start..start + 8]).unwrap();
                usize::from_str_radix(text, 16).unwrap()
            };
            let (size, name_size) = (field(6), field(11));
            let name = String::from_utf8(bytes[at + 110..at + 110 + name_size - 1].to_vec()).unwrap();
            let content = (at + 110 + name_size).next_multiple_of(4);
            if name == "a/b/five" {
                assert_eq!(&bytes[content..content + size], b"12345");
            }
            if name == "dev/null" {
                assert_eq!((field(1), field(9), field(10)), (0o020_600, 1, 3));
            }
            names.push(name);
            at = (content + size).next_multiple_of(4);
        }
        assert_eq!(names, ["a", "a/b", "a/b/five", "a/to", "dev", "dev/null", "TRAILER!!!"]);
    }

    #[test]
    fn another_program_reads_the_archive() {
        // busybox exists wherever a guest can run; elsewhere only the other test runs.
        let child = Command::new("busybox")
            .args(["cpio", "-t"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn();
        let Ok(mut child) = child else { return };
        child.stdin.take().unwrap().write_all(&sample()).unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout), "a\na/b\na/b/five\na/to\ndev\ndev/null\n");
    }
}
