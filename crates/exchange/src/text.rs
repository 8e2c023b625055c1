//! The bytes of a file as text: UTF-8, or UTF-16 as PowerShell's `>` writes it, and numbers that are none as null. It looks for no
//! document.

/// What some programs put before a text.
pub(crate) const BYTE_ORDER_MARK: char = '\u{feff}';

/// Units of a text without a mark that are looked at to see which half of each is zero.
const TRIED_UNITS: usize = 8;

/// What C prints for a number that is none, and what Python does; no JSON has them.
const NO_NUMBERS: [&str; 8] = ["-nan", "nan", "-inf", "inf", "NaN", "-NaN", "-Infinity", "Infinity"];

/// The text of a file. What is no text in its encoding is replaced.
pub(crate) fn decoded(bytes: &[u8]) -> String {
    let text = match utf16(bytes) {
        Some(units) => {
            char::decode_utf16(units).map(|unit| unit.unwrap_or(char::REPLACEMENT_CHARACTER)).collect()
        }
        None => String::from_utf8_lossy(bytes).into_owned(),
    };
    if NO_NUMBERS.iter().any(|word| text.contains(word)) { with_nulls(&text) } else { text }
}

/// The units of a text in UTF-16, if it is one: by its mark, or because one half of each of the first units is zero.
fn utf16(bytes: &[u8]) -> Option<Vec<u16>> {
    let units = |bytes: &[u8], unit: fn([u8; 2]) -> u16| -> Vec<u16> {
        bytes.chunks_exact(2).map(|pair| unit([pair[0], pair[1]])).collect()
    };
    match bytes {
        [0xff, 0xfe, rest @ ..] => return Some(units(rest, u16::from_le_bytes)),
        [0xfe, 0xff, rest @ ..] => return Some(units(rest, u16::from_be_bytes)),
        _ => {}
    }
    let first: Vec<&[u8]> = bytes.chunks_exact(2).take(TRIED_UNITS).collect();
    let is_ascii =
        |zero: usize| first.len() > 1 && first.iter().all(|pair| pair[zero] == 0 && pair[1 - zero] != 0);
    match (is_ascii(1), is_ascii(0)) {
        (true, _) => Some(units(bytes, u16::from_le_bytes)),
        (_, true) => Some(units(bytes, u16::from_be_bytes)),
        _ => None,
    }
}

/// The text with null in place of values that are no numbers: `"bw_dev" : -nan,`.
fn with_nulls(text: &str) -> String {
    let (mut shown, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(at) = rest.find(':') {
        let (before, after) = rest.split_at(at + 1);
        shown.push_str(before);
        rest = after;
        let value = after.trim_start();
        // A quote within a text has a backslash before it.
        let is_value = before[..at].trim_end().ends_with('"') && !before[..at].trim_end().ends_with("\\\"");
        let word = NO_NUMBERS.iter().find(|&word| {
            let behind = value.strip_prefix(word).map(|behind| behind.chars().next());
            matches!(behind, Some(Some(',' | '}' | ']' | ' ' | '\t' | '\r' | '\n')))
        });
        if let Some(word) = word.filter(|_| is_value) {
            let blanks = after.len() - value.len();
            // As long as it was, so that an error is where it was; a blank stands before what is too short.
            let wanted = blanks + word.len();
            shown.push_str(&format!("{:>wanted$}", "null"));
            rest = &value[word.len()..];
        }
    }
    shown + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encodings_of_windows_are_read() {
        let text = "{\"a\": \"é\"}\n";
        let units: Vec<u16> = text.encode_utf16().collect();
        let little: Vec<u8> = units.iter().flat_map(|unit| unit.to_le_bytes()).collect();
        let big: Vec<u8> = units.iter().flat_map(|unit| unit.to_be_bytes()).collect();
        for bytes in [&little, &big] {
            assert_eq!(decoded(bytes), text);
        }
        assert_eq!(decoded(&[&[0xff, 0xfe][..], &little].concat()), text);
        assert_eq!(decoded(&[&[0xfe, 0xff][..], &big].concat()), text);
        // A byte is missing at the end.
        assert_eq!(decoded(&little[..little.len() - 1]), text.trim_end());
        for plain in ["", "{", "{}", text, "\u{feff}{}"] {
            assert_eq!(decoded(plain.as_bytes()), plain);
        }
    }

    #[test]
    fn numbers_that_are_none_are_null() {
        for (text, expected) in [
            ("\"a\" : -nan,\n", "\"a\" : null,\n"),
            ("\"a\" : nan}", "\"a\" :null}"),
            ("\"a\":inf}", "\"a\":null}"),
            ("{\"a\": Infinity, \"b\": NaN}", "{\"a\":     null, \"b\":null}"),
            ("\"a\": \"x: nan, y\"", "\"a\": \"x: nan, y\""),
            ("\"nan\": 1, \"info\": 2", "\"nan\": 1, \"info\": 2"),
            ("\"a\": nanny", "\"a\": nanny"),
        ] {
            assert_eq!(decoded(text.as_bytes()), expected);
        }
    }
}
