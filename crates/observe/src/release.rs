//! The version of Linux by its release, for what is counted in one way by some kernels and in another by others. Distributions mend
//! older kernels, so a version only says what may be.

use crate::read_trimmed;
use std::path::Path;

/// Major and minor number.
pub(crate) type Version = (u32, u32);

/// The version of the kernel whose `/proc` this is; `None` where it does not say.
pub(crate) fn version_at(proc: &Path) -> Option<Version> {
    version_of(&read_trimmed(&proc.join("sys/kernel/osrelease"))?)
}

/// The version of the kernel whose `/sys` this is, by the `/proc` beside it; `None` where that does not say.
pub(crate) fn version_beside(sys: &Path) -> Option<Version> {
    version_at(&sys.parent()?.join("proc"))
}

/// The version in a release such as `5.10.0-32-amd64`.
pub(crate) fn version_of(release: &str) -> Option<Version> {
    let mut numbers = release.split(|letter: char| !letter.is_ascii_digit()).map(str::parse::<u32>);
    match (numbers.next(), numbers.next()) {
        (Some(Ok(major)), Some(Ok(minor))) => Some((major, minor)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_the_first_two_numbers() {
        assert_eq!(version_of("6.1.0-56-amd64"), Some((6, 1)));
        assert_eq!(version_of("4.18.0-553.el8_10.x86_64"), Some((4, 18)));
        assert_eq!(version_of("7.0"), Some((7, 0)));
        assert_eq!(["", "6", "next", "v6.1"].map(version_of), [None; 4]);
        assert_eq!((version_at(Path::new("/no/such/proc")), version_beside(Path::new("/"))), (None, None));
        assert_eq!(version_beside(Path::new("/sys")), version_at(Path::new("/proc")));
    }
}
