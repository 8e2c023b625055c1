//! Another process that holds a file or a device in a chosen way, for tests of its detection. The process is the test program
//! itself, started again to run one test that does nothing else.

use anyhow::anyhow;
use std::fs::{File, OpenOptions};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

use clap::ValueEnum;
use rdsk_sys::memory::Mapping;

/// How the process holds the object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Hold {
    /// Open for reading.
    Reading,
    /// Open for reading, and locked with fcntl(2) for that.
    Locking,
    /// Open for reading and writing, without `O_EXCL`.
    Writing,
    /// Open for reading and writing with `O_EXCL`.
    Exclusively,
    /// Its first page mapped, shared and writable, and the descriptor closed.
    Mapped,
    /// As [`Hold::Writing`], by a thread whose open files are not those of the process.
    InThread,
    /// By the kernel: EROFS is mounted from it, without a loop device, on a directory beside it of the same name with `.mounted`.
    Mounted,
}

const HOW_VARIABLE: &str = "RDSK_HOLD_HOW";
const WHAT_VARIABLE: &str = "RDSK_HOLD_WHAT";
const READY: &str = "holding";
const O_EXCL: i32 = 0o200;
const PAGE_BYTES: usize = 4096;

/// A process that holds something until it is dropped.
#[derive(Debug)]
pub struct Holder {
    process: Child,
    /// Kept open, because the process fails when it writes to a closed pipe.
    _output: BufReader<ChildStdout>,
}

impl Holder {
    /// Starts it. `test` is the name of a test of this program that is `#[ignore]`d and calls [`hold`].
    ///
    /// # Panics
    /// If it does not hold the object.
    pub fn start(test: &str, how: Hold, path: &Path) -> Self {
        let program = std::env::current_exe().expect("a test knows its program");
        let mut child = Command::new(program)
            .args(["--ignored", "--exact", "--nocapture", test])
            .env(HOW_VARIABLE, how.to_possible_value().expect("no word is hidden").get_name())
            .env(WHAT_VARIABLE, path)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a test can start itself");
        let mut output = BufReader::new(child.stdout.take().expect("its output is a pipe"));
        let is_held = output.by_ref().lines().map_while(Result::ok).any(|line| line.ends_with(READY));
        let holder = Self { process: child, _output: output };
        assert!(is_held, "{test} does not hold {}", path.display());
        holder
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.process.id()
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        // The process stops holding at the end of its input; one that has ended already needs no signal.
        drop(self.process.stdin.take());
        let _ = self.process.wait();
    }
}

/// The body of the test that holds: it holds the object that the environment names, reports it, and waits for the end
/// of its input. Without a name it does nothing, so that `--ignored` alone passes.
///
/// # Panics
/// If the object cannot be held.
pub fn hold() {
    let (Ok(how), Some(what)) = (std::env::var(HOW_VARIABLE), std::env::var_os(WHAT_VARIABLE)) else {
        return;
    };
    let how = Hold::from_str(&how, false).expect("the variable has one of the words");
    let what = Path::new(&what);
    let _held: (Option<File>, Option<Mapping>) = match how {
        Hold::Reading => (Some(File::open(what).expect("it opens")), None),
        Hold::Locking => {
            let file = File::open(what).expect("it opens");
            rustix::fs::fcntl_lock(&file, rustix::fs::FlockOperation::LockShared)
                .expect("nobody writes to it");
            (Some(file), None)
        }
        Hold::Writing => (Some(open(what, 0)), None),
        Hold::Exclusively => (Some(open(what, O_EXCL)), None),
        Hold::Mapped => (None, Some(Mapping::new(open(what, 0), PAGE_BYTES).expect("it maps"))),
        Hold::InThread => {
            hold_in_thread(what.to_owned());
            (None, None)
        }
        Hold::Mounted => {
            mount_image(what, &mount_point(what)).expect("the kernel mounts EROFS from files");
            (None, None)
        }
    };
    let mut out = std::io::stdout();
    writeln!(out, "\n{READY}").and_then(|()| out.flush()).expect("the test that started this one listens");
    let mut rest = Vec::new();
    // A read error also ends it.
    let _ = std::io::stdin().read_to_end(&mut rest);
    if how == Hold::Mounted {
        unmount(&mount_point(what));
    }
}

fn mount_point(image: &Path) -> PathBuf {
    let mut name = image.as_os_str().to_owned();
    name.push(".mounted");
    name.into()
}

/// mount(8) would put a loop device between the file and the filesystem.
fn mount_image(image: &Path, point: &Path) -> std::io::Result<()> {
    std::fs::create_dir(point)?;
    let mounted = rustix::mount::mount(image, point, "erofs", rustix::mount::MountFlags::RDONLY, None);
    if mounted.is_err() {
        let _ = std::fs::remove_dir(point);
    }
    Ok(mounted?)
}

fn unmount(point: &Path) {
    let unmounted = rustix::mount::unmount(point, rustix::mount::UnmountFlags::empty());
    unmounted.expect("nobody works in it");
    std::fs::remove_dir(point).expect("it is empty");
}

/// Whether the kernel mounts EROFS from files, and lets this process do it.
///
/// # Errors
/// Why not, in a few words.
pub(crate) fn probe_images() -> anyhow::Result<()> {
    let scratch = tempfile::tempdir()?;
    let image = scratch.path().join("image");
    write_image(&image, PAGE_BYTES as u64);
    let point = mount_point(&image);
    mount_image(&image, &point).map_err(|error| anyhow!("mounting EROFS from a file: {error}"))?;
    unmount(&point);
    Ok(())
}

/// Writes a file of this size that begins with an image of EROFS: one block with an empty directory.
///
/// # Panics
/// If it cannot be written.
pub fn write_image(path: &Path, size_bytes: u64) {
    // fs/erofs/erofs_fs.h. The superblock: magic number, block size as a power of two, number of the root directory in units of 32
    // bytes, count of inodes and blocks. The directory: a compact inode with its data behind it, type and permissions, two links, 27
    // bytes; two entries of 12 bytes, each the number of its inode and where its name begins, and the names `.` and `..`.
    const PARTS: [(usize, &[u8]); 9] = [
        (0x400, &[0xe2, 0xe1, 0xf5, 0xe0]),
        (0x40c, &[0x0c, 0, 0x24, 0, 1]),
        (0x424, &[1]),
        (0x480, &[4, 0, 0, 0, 0xed, 0x41, 2, 0, 0x1b]),
        (0x490, &[0xff, 0xff, 0xff, 0xff]),
        (0x4a0, &[0x24]),
        (0x4a8, &[0x18, 0, 2, 0, 0x24]),
        (0x4b4, &[0x19, 0, 2, 0]),
        (0x4b8, b"..."),
    ];
    let mut block = vec![0; PAGE_BYTES];
    for (at, bytes) in PARTS {
        block[at..at + bytes.len()].copy_from_slice(bytes);
    }
    std::fs::write(path, block).expect("an image can be written");
    let file = OpenOptions::new().write(true).open(path).expect("it was written");
    file.set_len(size_bytes).expect("a file can be extended");
}

/// Opens it in a thread that lasts as long as the process.
fn hold_in_thread(what: PathBuf) {
    let (ready, is_ready) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        #[expect(
            deprecated,
            reason = "the other function is not safe to call, and this thread has no descriptors to lose"
        )]
        rustix::thread::unshare(rustix::thread::UnshareFlags::FILES)
            .expect("a thread may have files of its own");
        let _file = open(&what, 0);
        ready.send(()).expect("the process waits for it");
        loop {
            std::thread::park();
        }
    });
    is_ready.recv().expect("the thread opens it");
}

fn open(path: &Path, flags: i32) -> File {
    OpenOptions::new().read(true).write(true).custom_flags(flags).open(path).expect("it opens for writing")
}
