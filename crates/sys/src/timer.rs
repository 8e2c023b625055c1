//! Where a thread runs. It changes only the calling thread, and never decides to.

use std::io;

use rustix::thread::CpuSet;

/// Lets the calling thread run on the processor `cpu` only (counted from 0).
///
/// # Errors
/// `InvalidInput` for a number beyond what the kernel interface holds (1023); `EINVAL` for a processor that does not
/// exist or is not allowed.
pub fn pin_to_cpu(cpu: usize) -> io::Result<()> {
    if cpu >= CpuSet::MAX_CPU {
        return Err(io::Error::from(io::ErrorKind::InvalidInput));
    }
    let mut set = CpuSet::new();
    set.set(cpu);
    Ok(rustix::thread::sched_setaffinity(None, &set)?)
}

/// The processors on which the calling thread may run, ascending. Empty when the kernel does not say, as on a machine
/// with more than 1024 possible processors.
pub fn allowed_cpus() -> Vec<usize> {
    match rustix::thread::sched_getaffinity(None) {
        Ok(set) => (0..CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu)).collect(),
        Err(_) => Vec::new(),
    }
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
    fn impossible_processors_are_errors() {
        assert_eq!(pin_to_cpu(CpuSet::MAX_CPU).unwrap_err().kind(), io::ErrorKind::InvalidInput);
        assert!(pin_to_cpu(CpuSet::MAX_CPU - 1).is_err());
    }
}
