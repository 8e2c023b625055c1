//! The time stamp counter of the processor: a reading takes a third of one of the kernel's clock (10 ns against 30 on an AMD EPYC, 2026-11).
//! It converts nothing into time.
#![allow(unsafe_code, reason = "the instruction that reads the counter has no safe wrapper")]

/// What the kernel keeps its time by.
const SOURCE: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";

/// Whether the kernel keeps its own time by the counter, so that it runs at one rate and is the same on all processors; false
/// on other processors than x86-64, and where sysfs is hidden.
pub fn keep_the_kernels_time() -> bool {
    cfg!(target_arch = "x86_64") && std::fs::read_to_string(SOURCE).is_ok_and(|name| name.trim() == "tsc")
}

/// The counter now, in ticks of an unknown rate; 0 on other processors than x86-64.
#[inline]
pub fn now() -> u64 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 processor has the instruction; it reads a register and touches no memory.
    let ticks = unsafe { core::arch::x86_64::_rdtsc() };
    #[cfg(not(target_arch = "x86_64"))]
    let ticks = 0;
    ticks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_counter_goes_on_where_the_kernel_keeps_time_by_it() {
        if keep_the_kernels_time() {
            let first = now();
            assert!((0..1000).map(|_| now()).all(|later| later >= first));
        }
    }
}
