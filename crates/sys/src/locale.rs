//! The characters of the user's locale, as the C library finds them. The locale of the process stays as it is.
#![allow(unsafe_code, reason = "newlocale(3) and nl_langinfo_l(3) have no safe wrapper")]

use std::ffi::{CStr, c_int};

/// The categories of POSIX. As in setlocale(3) with `LC_ALL`, one that is not there makes all the others void.
const CATEGORIES: c_int = libc::LC_CTYPE_MASK
    | libc::LC_NUMERIC_MASK
    | libc::LC_TIME_MASK
    | libc::LC_COLLATE_MASK
    | libc::LC_MONETARY_MASK
    | libc::LC_MESSAGES_MASK;

/// The character encoding of the locale that the environment names, such as `UTF-8`; `None` where there is no such locale on
/// this machine, so that programs stay with plain ASCII.
pub fn codeset() -> Option<String> {
    // SAFETY: the name is a C string, and without a base a new locale is made, or none.
    let locale = unsafe { libc::newlocale(CATEGORIES, c"".as_ptr(), std::ptr::null_mut()) };
    if locale.is_null() {
        return None;
    }
    // SAFETY: the locale is valid; the text is a C string that lives at least as long as it, and is copied before.
    unsafe {
        let name = libc::nl_langinfo_l(libc::CODESET, locale);
        let name = (!name.is_null()).then(|| CStr::from_ptr(name).to_string_lossy().into_owned());
        libc::freelocale(locale);
        name
    }
}
