//! What bpf(2) says of a hash map of which every processor has its own values: all entries by one call (Linux 5.6). It changes no
//! map, and knows nothing of what the numbers mean.
#![allow(unsafe_code, reason = "bpf(2) has no safe wrapper for these commands")]

use rustix::io::Errno;
use std::io;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd};

/// Commands and a type of include/uapi/linux/bpf.h.
const OBJ_GET_INFO_BY_FD: libc::c_int = 15;
const MAP_LOOKUP_BATCH: libc::c_int = 24;
const PERCPU_HASH: u32 = 5;

/// A key and its value in words of 64 bits.
pub type Entry<const K: usize, const V: usize> = ([u64; K], [u64; V]);

/// All entries: each key, and its values summed over the processors, modulo 2⁶⁴.
///
/// `K` are the 64-bit words of a key, `V` those of a value on one processor.
///
/// # Errors
/// `InvalidInput` for a map of another type or other sizes; those of bpf(2), and of the list of processors in `/sys`.
pub fn per_cpu_entries<const K: usize, const V: usize>(map: impl AsFd) -> io::Result<Vec<Entry<K, V>>> {
    let map = map.as_fd();
    let info = info_of(map)?;
    let is_as_asked =
        (info.kind, info.key_bytes as usize, info.value_bytes as usize) == (PERCPU_HASH, K * 8, V * 8);
    if !is_as_asked || K == 0 || V == 0 {
        return Err(io::Error::from(io::ErrorKind::InvalidInput));
    }
    let (most, processors) = (info.max_entries as usize, possible_processors()?);
    // Zeroed memory costs nothing before the kernel writes to it.
    let mut keys = vec![[0_u64; K]; most];
    let mut values = vec![[0_u64; V]; most * processors];
    let (mut filled, mut token) = (0, None);
    while filled < most {
        let mut next = 0_u32;
        let mut batch = Batch {
            in_batch: token.as_ref().map_or(0, |token: &u32| std::ptr::from_ref(token) as u64),
            out_batch: &raw mut next as u64,
            keys: keys[filled..].as_mut_ptr() as u64,
            values: values[filled * processors..].as_mut_ptr() as u64,
            count: u32::try_from(most - filled).unwrap_or(u32::MAX),
            map_fd: map.as_raw_fd().cast_unsigned(),
            elem_flags: 0,
            flags: 0,
        };
        // SAFETY: there is room for `count` keys and as many values of every possible processor, whose sizes are those that the
        // kernel has for this map; the token of a hash map is 4 bytes long.
        let result = unsafe { bpf(MAP_LOOKUP_BATCH, &mut batch) };
        let is_end =
            result.as_ref().is_err_and(|error| error.raw_os_error() == Some(Errno::NOENT.raw_os_error()));
        if !is_end {
            result?;
        }
        filled += (batch.count as usize).min(most - filled);
        token = Some(next);
        if is_end || batch.count == 0 {
            break;
        }
    }
    let entries = keys.into_iter().zip(values.chunks(processors)).take(filled);
    Ok(entries.map(|(key, values)| (key, summed(values))).collect())
}

fn summed<const V: usize>(values: &[[u64; V]]) -> [u64; V] {
    values.iter().fold([0; V], |mut sum, value| {
        sum.iter_mut().zip(value).for_each(|(sum, value)| *sum = sum.wrapping_add(*value));
        sum
    })
}

/// The processors that this kernel may ever use; there are values for each of them.
///
/// # Errors
/// When the list in `/sys` cannot be read or understood.
pub fn possible_processors() -> io::Result<usize> {
    let list = std::fs::read_to_string("/sys/devices/system/cpu/possible")?;
    count_of(list.trim()).ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))
}

/// The length of a list such as `0-3,8`.
fn count_of(list: &str) -> Option<usize> {
    let count = |range: &str| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last): (usize, usize) = (first.parse().ok()?, last.parse().ok()?);
        last.checked_sub(first)?.checked_add(1)
    };
    list.split(',').map(count).try_fold(0_usize, |sum, more| sum.checked_add(more?))
}

/// The first fields of `struct bpf_map_info`.
#[repr(C)]
#[derive(Default)]
struct Info {
    kind: u32,
    id: u32,
    key_bytes: u32,
    value_bytes: u32,
    max_entries: u32,
    map_flags: u32,
}

/// `bpf_attr` of `BPF_OBJ_GET_INFO_BY_FD`.
#[repr(C)]
struct InfoQuestion {
    bpf_fd: u32,
    info_bytes: u32,
    info: u64,
}

/// `bpf_attr` of the commands on batches.
#[repr(C)]
struct Batch {
    in_batch: u64,
    out_batch: u64,
    keys: u64,
    values: u64,
    count: u32,
    map_fd: u32,
    elem_flags: u64,
    flags: u64,
}

fn info_of(map: BorrowedFd<'_>) -> io::Result<Info> {
    let mut info = Info::default();
    let info_bytes = u32::try_from(size_of::<Info>()).expect("a few words");
    let bpf_fd = map.as_raw_fd().cast_unsigned();
    let mut question = InfoQuestion { bpf_fd, info_bytes, info: &raw mut info as u64 };
    // SAFETY: the kernel writes at most `info_bytes` to `info`, whose fields may hold any number.
    unsafe { bpf(OBJ_GET_INFO_BY_FD, &mut question) }?;
    Ok(info)
}

/// # Safety
/// `attributes` is a `bpf_attr` of this command, and whatever it points to is valid for what the command writes there.
unsafe fn bpf<T>(command: libc::c_int, attributes: &mut T) -> io::Result<()> {
    // SAFETY: as the caller promises; the kernel reads and writes no more of the attributes than their size.
    let result =
        unsafe { libc::syscall(libc::SYS_bpf, command, std::ptr::from_mut(attributes), size_of::<T>()) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors_are_counted_in_ranges() {
        assert_eq!(count_of("0"), Some(1));
        assert_eq!(count_of("0-3,8,10-11"), Some(7));
        assert_eq!((count_of(""), count_of("3-1"), count_of("a-b")), (None, None, None));
        assert!(possible_processors().expect("Linux says it") >= 1);
    }

    #[test]
    fn values_are_summed_with_wrapping() {
        assert_eq!(summed(&[[1, u64::MAX], [2, 3]]), [3, 2]);
    }

    #[test]
    fn what_is_no_map_is_refused() {
        let file = std::fs::File::open("/dev/null").expect("it is everywhere");
        assert!(per_cpu_entries::<1, 1>(&file).is_err());
    }
}
