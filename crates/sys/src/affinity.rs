//! Where a thread runs. It changes only the calling thread, and never decides to.
#![allow(
    unsafe_code,
    reason = "sched_getaffinity(2) and sched_setaffinity(2) for any number of processors have no safe wrapper"
)]

use std::io;

/// One word of the kernel's sets of processors.
type Word = libc::c_ulong;

const WORD_BITS: usize = Word::BITS as usize;

/// No machine has more processors: eight times what Linux can be built for (8192, `NR_CPUS` in arch/x86/Kconfig).
pub const MAX_CPUS: usize = 1 << 16;

/// Processors of the first set that is asked for.
const FIRST_CPUS: usize = 1024;

/// Lets the calling thread run on the processor `cpu` only (counted from 0).
///
/// # Errors
/// `InvalidInput` for a number from [`MAX_CPUS`] on; `EINVAL` for a processor that does not exist or is not allowed.
pub fn pin_to_cpu(cpu: usize) -> io::Result<()> {
    if cpu >= MAX_CPUS {
        return Err(io::Error::from(io::ErrorKind::InvalidInput));
    }
    let mut set: Vec<Word> = vec![0; (cpu + 1).max(FIRST_CPUS).div_ceil(WORD_BITS)];
    set[cpu / WORD_BITS] |= 1 << (cpu % WORD_BITS);
    // SAFETY: the kernel reads as many bytes as are named, which `set` has, and 0 is the calling thread.
    let result = unsafe { libc::sched_setaffinity(0, size_of_val(&set[..]), set.as_ptr().cast()) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// The processors on which the calling thread may run, ascending. Empty when the kernel does not say.
pub fn allowed_cpus() -> Vec<usize> {
    let mut words = FIRST_CPUS.div_ceil(WORD_BITS);
    while words * WORD_BITS <= MAX_CPUS {
        let mut set: Vec<Word> = vec![0; words];
        // SAFETY: the kernel writes at most as many bytes as are named, which `set` has, and 0 is the calling thread.
        let result = unsafe { libc::sched_getaffinity(0, size_of_val(&set[..]), set.as_mut_ptr().cast()) };
        if result == 0 {
            return numbers(&set);
        }
        // The set of a machine with more processors is larger.
        if io::Error::last_os_error().raw_os_error() != Some(libc::EINVAL) {
            break;
        }
        words *= 2;
    }
    Vec::new()
}

/// The numbers of the bits that are set.
fn numbers(set: &[Word]) -> Vec<usize> {
    let is_set = |&cpu: &usize| (set[cpu / WORD_BITS] >> (cpu % WORD_BITS)) & 1 == 1;
    (0..set.len() * WORD_BITS).filter(is_set).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pinned_thread_is_allowed_nowhere_else() {
        let allowed = allowed_cpus();
        assert!(allowed.is_sorted() && !allowed.is_empty());
        for cpu in allowed {
            std::thread::spawn(move || {
                pin_to_cpu(cpu).unwrap();
                assert_eq!(allowed_cpus(), [cpu]);
                assert_eq!(rustix::thread::sched_getcpu(), cpu);
            })
            .join()
            .unwrap();
        }
    }

    #[test]
    fn processors_beyond_1023_have_numbers() {
        let mut set: Vec<Word> = vec![0; 2048 / WORD_BITS];
        for cpu in [0, 63, 64, 1023, 1024, 2047] {
            set[cpu / WORD_BITS] |= 1 << (cpu % WORD_BITS);
        }
        assert_eq!(numbers(&set), [0, 63, 64, 1023, 1024, 2047]);
        assert!(numbers(&[]).is_empty());
    }

    #[test]
    fn impossible_processors_are_errors() {
        assert_eq!(pin_to_cpu(MAX_CPUS).unwrap_err().kind(), io::ErrorKind::InvalidInput);
        let last = pin_to_cpu(MAX_CPUS - 1).unwrap_err();
        assert_eq!(last.raw_os_error(), Some(libc::EINVAL), "the kernel takes so large a set");
    }
}
