//! The file system with one file in it: accepts the kernel's requests, asks the device how long they take, and adds them
//! to the queue. It never waits itself, so that requests overlap as the device allows.

use crate::fusedisk::Model;
use crate::fusedisk::log::{RequestOutcome, Served};
use crate::fusedisk::queue::{Answer, Pending, Queue, lock};
use fuser::{
    Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, INodeNo, InitFlags, KernelConfig,
    LockOwner, OpenFlags, ReplyAttr, ReplyData, ReplyDirectory, ReplyEmpty, ReplyEntry, ReplyOpen,
    ReplyWrite, WriteFlags,
};
use rdsk_disk::{Completion, Fault, Force, Request};
use rustix::fs::OFlags;
use std::cell::Cell;
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::sync::{Arc, Mutex};
use std::time::{Duration, UNIX_EPOCH};

/// The name of the file, which no other test gives a file of its own: rdsk takes a file of its size and name elsewhere for the same one.
pub(crate) const FILE_NAME: &str = "fuse-disk";
/// No small number, for the same reason: the first file of each tmpfs is 2.
const FILE: INodeNo = INodeNo(0x7264_736b_6469_736b);
/// Only the content ever changes, so the kernel may cache attributes.
const FOR_EVER: Duration = Duration::from_secs(1 << 30);
/// More than any queue above can have.
const MAX_IN_FLIGHT: u16 = 1024;
/// The largest request that the kernel may send; by itself it sends no larger ones.
const MAX_BYTES: u32 = 1 << 20;

/// The source of times and content.
#[derive(Debug)]
pub(crate) struct DiskState {
    pub(crate) model: Model,
    pub(crate) content: File,
    /// The time of the path through the kernel, both directions, that is subtracted.
    pub(crate) path_ns: u64,
    /// No request arrives before another that came earlier.
    pub(crate) last_arrival_ns: u64,
}

/// The disk behind the file.
#[derive(Debug)]
pub(crate) struct Disk {
    pub(crate) capacity_bytes: u64,
    pub(crate) state: Mutex<DiskState>,
    pub(crate) queue: Queue,
}

/// What a request does to the content, with its reply.
enum Asked<'data> {
    Read(ReplyData),
    Write(ReplyWrite, &'data [u8]),
    Flush(ReplyEmpty),
}

impl Disk {
    /// Handles a request on arrival.
    fn take(&self, request: Request, asked: Asked<'_>) {
        let mut state = lock(&self.state);
        // Under the lock, so that the device never sees time go back.
        let there_ns = state.path_ns / 2;
        let back_ns = state.path_ns - there_ns;
        let arrival_ns = self.queue.now_ns().saturating_sub(there_ns).max(state.last_arrival_ns);
        state.last_arrival_ns = arrival_ns;
        let Completion { start_ns, end_ns, outcome } = state.model.submit(arrival_ns, request);
        let answer = match self.fill(&state.content, &request, outcome, asked) {
            Ok(answer) => answer,
            Err(error) => {
                eprintln!("the FUSE disk cannot keep its content: {error}");
                return;
            }
        };
        let outcome = match outcome {
            Ok(()) => RequestOutcome::Done,
            Err(Fault::Media { offset_bytes }) => RequestOutcome::Bad(offset_bytes),
            Err(Fault::PastEnd { end_bytes, .. }) => RequestOutcome::Bad(end_bytes),
        };
        let Request { op, offset_bytes, bytes, .. } = request;
        let served =
            Served { op, offset_bytes, bytes, arrival_ns, start_ns, end_ns, answered_ns: 0, outcome };
        self.queue.push(Pending { served, due_ns: end_ns.saturating_sub(back_ns), answer });
    }

    /// Changes the content at once: it cannot be seen before the reply. On an error the request is answered with EIO when
    /// the reply is dropped.
    fn fill(
        &self,
        content: &File,
        request: &Request,
        outcome: Result<(), Fault>,
        asked: Asked<'_>,
    ) -> io::Result<Answer> {
        match asked {
            Asked::Read(reply) => {
                let mut buffer = self.queue.buffer(usize::try_from(request.bytes).unwrap_or(0));
                content.read_exact_at(&mut buffer, request.offset_bytes)?;
                Ok(Answer::Data(reply, buffer))
            }
            Asked::Write(reply, data) => {
                if outcome.is_ok() {
                    content.write_all_at(data, request.offset_bytes)?;
                }
                Ok(Answer::Written(reply, u32::try_from(data.len()).unwrap_or(0)))
            }
            Asked::Flush(reply) => Ok(Answer::Flushed(reply)),
        }
    }
}

/// The file system.
#[derive(Debug)]
pub(crate) struct OneFile {
    pub(crate) disk: Arc<Disk>,
}

impl OneFile {
    /// The library creates the thread that receives requests, so its priority is set on the first request.
    fn sharpen_once(&self) {
        thread_local!(static SHARP: Cell<bool> = const { Cell::new(false) });
        if !SHARP.replace(true) {
            self.disk.queue.prioritize_this_thread();
        }
    }

    fn attributes(&self, inode: INodeNo) -> FileAttr {
        let (kind, perm, size) = match inode {
            FILE => (FileType::RegularFile, 0o600, self.disk.capacity_bytes),
            _ => (FileType::Directory, 0o700, 0),
        };
        FileAttr {
            ino: inode,
            size,
            blocks: size.div_ceil(512),
            atime: UNIX_EPOCH,
            mtime: UNIX_EPOCH,
            ctime: UNIX_EPOCH,
            crtime: UNIX_EPOCH,
            kind,
            perm,
            nlink: 1,
            uid: rustix::process::geteuid().as_raw(),
            gid: rustix::process::getegid().as_raw(),
            rdev: 0,
            blksize: 4096,
            flags: 0,
        }
    }
}

impl Filesystem for OneFile {
    fn init(&mut self, _: &fuser::Request, config: &mut KernelConfig) -> io::Result<()> {
        let refused = |what| io::Error::other(format!("this kernel's FUSE refuses {what}"));
        // Without it a loop device above would have one request in flight.
        config.add_capabilities(InitFlags::FUSE_ASYNC_DIO).map_err(|_| refused("asynchronous direct I/O"))?;
        config.set_max_background(MAX_IN_FLIGHT).map_err(|_| refused("many requests"))?;
        config.set_congestion_threshold(MAX_IN_FLIGHT).map_err(|_| refused("many requests"))?;
        config.set_max_write(MAX_BYTES).map_err(|_| refused("large writes"))?;
        Ok(())
    }

    fn lookup(&self, _: &fuser::Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        if parent == INodeNo::ROOT && name == FILE_NAME {
            reply.entry(&FOR_EVER, &self.attributes(FILE), fuser::Generation(0));
        } else {
            reply.error(Errno::ENOENT);
        }
    }

    fn getattr(&self, _: &fuser::Request, inode: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        reply.attr(&FOR_EVER, &self.attributes(inode));
    }

    fn open(&self, _: &fuser::Request, _: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        // Direct: every read and write of the file is a request. Parallel: writers do not wait for each other above us.
        reply.opened(FileHandle(0), FopenFlags::FOPEN_DIRECT_IO | FopenFlags::FOPEN_PARALLEL_DIRECT_WRITES);
    }

    fn read(
        &self,
        _: &fuser::Request,
        _: INodeNo,
        _: FileHandle,
        offset_bytes: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        self.sharpen_once();
        let bytes = u64::from(size).min(self.disk.capacity_bytes.saturating_sub(offset_bytes));
        if bytes == 0 {
            // The end of the file is no request to the device.
            reply.data(&[]);
            return;
        }
        self.disk.take(Request::read(offset_bytes, bytes), Asked::Read(reply));
    }

    fn write(
        &self,
        _: &fuser::Request,
        _: INodeNo,
        _: FileHandle,
        offset_bytes: u64,
        data: &[u8],
        _: WriteFlags,
        flags: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        self.sharpen_once();
        let mut request = Request::write(offset_bytes, data.len() as u64);
        if request.end_bytes() > self.disk.capacity_bytes {
            reply.error(Errno::ENOSPC);
            return;
        }
        let flags = OFlags::from_bits_retain(u32::from_ne_bytes(flags.0.to_ne_bytes()));
        if flags.contains(OFlags::DSYNC) {
            request.force = Force::Media;
        }
        self.disk.take(request, Asked::Write(reply, data));
    }

    fn fsync(&self, _: &fuser::Request, _: INodeNo, _: FileHandle, _datasync: bool, reply: ReplyEmpty) {
        self.sharpen_once();
        self.disk.take(Request::flush(), Asked::Flush(reply));
    }

    /// The close of a descriptor, which does not reach a device.
    fn flush(&self, _: &fuser::Request, _: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        reply.ok();
    }

    fn readdir(&self, _: &fuser::Request, _: INodeNo, _: FileHandle, offset: u64, mut reply: ReplyDirectory) {
        let entries = [(INodeNo::ROOT, FileType::Directory, "."), (INodeNo::ROOT, FileType::Directory, "..")]
            .into_iter()
            .chain([(FILE, FileType::RegularFile, FILE_NAME)]);
        for (position, (inode, kind, name)) in (1..).zip(entries) {
            if position > offset && reply.add(inode, position, kind, name) {
                break;
            }
        }
        reply.ok();
    }
}
