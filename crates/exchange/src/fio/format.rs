//! Recognizes what fio prints in other formats than JSON, so that a refusal can name it. It reads no figure.

use crate::error::ImportError;

/// The refusal of a text that fio printed in another format; `None` for a text that is not fio's.
pub(crate) fn other_format(text: &str) -> Option<ImportError> {
    let format = match () {
        () if text.lines().any(is_terse) => "terse",
        () if text.lines().any(is_normal) => "normal",
        () => return None,
    };
    Some(ImportError::FioFormat { format })
}

/// `3;fio-3.33;job;0;0;…`: the version of the format, that of fio, and a hundred figures (fio's documentation, terse output).
fn is_terse(line: &str) -> bool {
    let mut fields = line.split(';');
    let is_version = fields.next().is_some_and(|field| matches!(field, "2" | "3" | "4" | "5"));
    is_version && fields.next().is_some_and(|field| field.starts_with("fio-"))
}

/// `job: (groupid=0, jobs=1): err= 0: pid=1: Sat Nov 21 …`, the head of the figures of a job.
fn is_normal(line: &str) -> bool {
    line.contains(": (groupid=") && line.contains(": err=")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_told_by_their_lines() {
        for (text, format) in [
            ("fio: note\n3;fio-3.33;randread;0;0;24576;1\n", Some("terse")),
            (
                "r: (g=0): rw=randread\nfio-3.33\n\nr: (groupid=0, jobs=1): err= 0: pid=7: Sat\n",
                Some("normal"),
            ),
            ("3;fish-3.33;x\n(groupid=\nhello", None),
            ("", None),
        ] {
            let found = other_format(text).map(|error| error.to_string());
            assert_eq!(found.is_some(), format.is_some(), "{text}");
            assert!(found.is_none_or(|found| format.is_some_and(|format| found.contains(format))), "{text}");
        }
    }
}
