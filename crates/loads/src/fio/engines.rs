//! How fio's engines issue requests, as far as it is seen in the requests: how many are in flight. It knows names and depths only.

use super::error::BadValue;

/// How an engine issues requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Issue {
    /// One at a time, whatever `iodepth` says.
    OneByOne,
    /// One at a time unless the page cache is passed by; the kernel's own queue waits in the call otherwise.
    QueuedIfDirect,
    /// As many as `iodepth` says.
    Queued,
}

const OTHERS: &[(&str, &[&str])] = &[
    (
        "maps files into memory",
        &["mmap", "libpmem", "pmemblk", "dev-dax", "libcufile", "libhipfile", "page_fault"],
    ),
    (
        "is a protocol of its own",
        &[
            "net", "netsplice", "rdma", "rados", "rbd", "http", "gfapi", "gfapi_async", "nbd", "nfs",
            "libiscsi", "libhdfs", "dfs", "ime_psync", "ime_psyncv", "ime_aio",
        ],
    ),
    ("does no I/O of a disk", &["null", "cpuio", "exec", "cpp_null"]),
    (
        "sends commands of its own past the kernel's block layer",
        &["sg", "io_uring_cmd", "xnvme", "libblkio", "libzbc", "mtd", "spdk"],
    ),
    (
        "makes, moves or removes files",
        &[
            "filecreate", "filestat", "filedelete", "dircreate", "dirstat", "dirdelete", "falloc",
            "ftruncate", "e4defrag", "filesetxattr", "filelistxattr", "fileoperations",
        ],
    ),
    ("copies through pipes", &["splice"]),
    ("is of another system", &["windowsaio", "solarisaio"]),
];

/// How an engine issues requests.
///
/// # Errors
/// Why its requests are none of rdsk's.
pub(super) fn issue(engine: &str) -> Result<Issue, BadValue> {
    match engine {
        "sync" | "psync" | "pvsync" | "pvsync2" | "vsync" => Ok(Issue::OneByOne),
        // glibc handles the requests to one file one after the other (sysdeps/pthread/aio_misc.c).
        "posixaio" => Ok(Issue::OneByOne),
        "libaio" => Ok(Issue::QueuedIfDirect),
        "io_uring" => Ok(Issue::Queued),
        other => {
            let why = OTHERS.iter().find(|(_, names)| names.contains(&other)).map(|(why, _)| *why);
            Err(format!("this engine {}", why.unwrap_or("is none that rdsk knows")).into())
        }
    }
}
