//! The kernel's words for its errors.

use rustix::io::Errno;

/// `No space left on device`, without the number that Rust adds.
pub fn words(errno: Errno) -> String {
    let text = std::io::Error::from(errno).to_string();
    match text.rfind(" (os error ") {
        Some(end) => text[..end].to_owned(),
        None => text,
    }
}
