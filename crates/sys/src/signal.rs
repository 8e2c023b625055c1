//! How a signal meets a call that waits in the kernel. It installs no handler.
#![allow(unsafe_code, reason = "sigaction(2) has no safe wrapper")]

use std::io;

/// Makes a handled signal end a call that waits (`EINTR`), where the handler was installed so that such calls go on (`SA_RESTART`). Errors:
/// `EINVAL` for what is no signal.
pub fn interrupt_calls(signal: i32) -> io::Result<()> {
    // SAFETY: all zeros is a valid `sigaction`; it is filled by the first call, and given back with one flag less.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        if libc::sigaction(signal, std::ptr::null(), &raw mut action) != 0 {
            return Err(io::Error::last_os_error());
        }
        action.sa_flags &= !libc::SA_RESTART;
        if libc::sigaction(signal, &raw const action, std::ptr::null_mut()) != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_signal_is_refused() {
        assert_eq!(interrupt_calls(0).unwrap_err().raw_os_error(), Some(libc::EINVAL));
        assert!(interrupt_calls(libc::SIGUSR2).is_ok());
    }
}
