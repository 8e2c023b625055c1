//! Rust sources as a flat list of tokens with line numbers, comments and literals' contents gone and test code marked.
//! It finds spellings; it never decides which of them are allowed.

use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// One token. A group is its two brackets as tokens of their own; a literal is the single text `"…"`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Token {
    /// The identifier, the punctuation character, a bracket, or a literal's stand-in.
    pub(crate) text: String,
    /// Line in the file, from 1.
    pub(crate) line: usize,
    /// Whether the token belongs to an item under `#[cfg(test)]` or `#[test]`.
    pub(crate) test: bool,
}

/// What stands for every literal, so that no rule matches text inside a literal.
const LITERAL: &str = "\"…\"";

/// The tokens of a source file.
pub(crate) fn tokens(source: &str) -> anyhow::Result<Vec<Token>> {
    let stream: TokenStream = source.parse().map_err(|error| anyhow::anyhow!("not Rust: {error}"))?;
    let mut flat = Vec::new();
    flatten(stream, false, &mut flat);
    Ok(flat)
}

/// The string literals of a source outside tests, comments and attributes, each with its line.
///
/// # Errors
/// When it is not Rust.
pub(crate) fn texts(source: &str) -> anyhow::Result<Vec<(usize, String)>> {
    let stream: TokenStream = source.parse().map_err(|error| anyhow::anyhow!("not Rust: {error}"))?;
    let mut texts = Vec::new();
    collect(stream, &mut texts);
    Ok(texts)
}

fn collect(stream: TokenStream, texts: &mut Vec<(usize, String)>) {
    let mut is_test = false;
    let mut trees = stream.into_iter().peekable();
    while let Some(tree) = trees.next() {
        let line = tree.span().start().line;
        match tree {
            TokenTree::Literal(literal) => {
                let text = literal.to_string();
                if text.starts_with('"') && !is_test {
                    texts.push((line, text));
                }
            }
            TokenTree::Punct(punct) if punct.as_char() == '#' => {
                // That of a whole file has an exclamation mark.
                trees.next_if(|next| matches!(next, TokenTree::Punct(mark) if mark.as_char() == '!'));
                if let Some(TokenTree::Group(group)) = trees.next_if(
                    |next| matches!(next, TokenTree::Group(group) if group.delimiter() == Delimiter::Bracket),
                ) {
                    is_test |= is_test_attribute(&group.stream());
                }
            }
            TokenTree::Group(group) => {
                if !is_test {
                    collect(group.stream(), texts);
                }
                is_test &= group.delimiter() != Delimiter::Brace;
            }
            TokenTree::Punct(punct) if punct.as_char() == ';' => is_test = false,
            TokenTree::Ident(_) | TokenTree::Punct(_) => {}
        }
    }
}

/// Names of modules that a file declares for tests only (`#[cfg(test)] mod name;`): their files are test code.
pub(crate) fn test_modules(tokens: &[Token]) -> Vec<String> {
    tokens
        .windows(3)
        .filter(|triple| triple[0].test && triple[0].text == "mod" && triple[2].text == ";")
        .map(|triple| triple[1].text.clone())
        .collect()
}

/// Where a sequence of texts occurs; each answer is the index of its first token.
pub(crate) fn occurrences(tokens: &[Token], pattern: &[&str]) -> Vec<usize> {
    let same = |window: &[Token]| window.iter().zip(pattern).all(|(token, text)| token.text == *text);
    tokens
        .windows(pattern.len())
        .enumerate()
        .filter(|(_, window)| same(window))
        .map(|(index, _)| index)
        .collect()
}

/// Where a path is named: written out (`std::fs`), or inside braces or after further segments of a `use`
/// (`use std::{fs, io}`). Answers are indices of the last segment.
pub(crate) fn path_uses(tokens: &[Token], root: &str, segment: &str) -> Vec<usize> {
    let mut places: Vec<usize> =
        occurrences(tokens, &[root, ":", ":", segment]).into_iter().map(|index| index + 3).collect();
    for start in occurrences(tokens, &[root, ":", ":", "{"]) {
        let mut depth = 0usize;
        for (index, token) in tokens.iter().enumerate().skip(start + 3) {
            match token.text.as_str() {
                "{" => depth += 1,
                "}" => depth -= 1,
                text if text == segment => places.push(index),
                _ => {}
            }
            if depth == 0 {
                break;
            }
        }
    }
    places
}

fn flatten(stream: TokenStream, test: bool, out: &mut Vec<Token>) {
    // A test attribute covers everything up to the end of its item: the first brace group or semicolon after it.
    let mut item_is_test = false;
    let mut trees = stream.into_iter().peekable();
    while let Some(tree) = trees.next() {
        let line = tree.span().start().line;
        let mut push = |text: String, line: usize, test: bool| out.push(Token { text, line, test });
        match tree {
            TokenTree::Ident(ident) => push(ident.to_string(), line, test || item_is_test),
            TokenTree::Literal(_) => push(LITERAL.into(), line, test || item_is_test),
            TokenTree::Punct(punct) => {
                push(punct.as_char().to_string(), line, test || item_is_test);
                if punct.as_char() == ';' {
                    item_is_test = false;
                }
                if punct.as_char() == '#'
                    && let Some(TokenTree::Group(group)) = trees.peek()
                    && group.delimiter() == Delimiter::Bracket
                    && is_test_attribute(&group.stream())
                {
                    item_is_test = true;
                }
            }
            TokenTree::Group(group) => {
                let (open, close) = brackets(group.delimiter());
                let end_line = group.span_close().start().line;
                push(open.into(), line, test || item_is_test);
                flatten(group.stream(), test || item_is_test, out);
                out.push(Token { text: close.into(), line: end_line, test: test || item_is_test });
                if group.delimiter() == Delimiter::Brace {
                    item_is_test = false;
                }
            }
        }
    }
}

fn brackets(delimiter: Delimiter) -> (&'static str, &'static str) {
    match delimiter {
        Delimiter::Parenthesis => ("(", ")"),
        Delimiter::Brace => ("{", "}"),
        Delimiter::Bracket => ("[", "]"),
        Delimiter::None => ("", ""),
    }
}

/// `test`, `cfg(test)`, `cfg(all(test, …))`, and `cfg(any(test, feature = …))` of what other crates' tests use, too;
/// `cfg(not(test))` is the opposite.
fn is_test_attribute(stream: &TokenStream) -> bool {
    let mut flat = Vec::new();
    flatten(stream.clone(), false, &mut flat);
    let texts: Vec<&str> = flat.iter().map(|token| token.text.as_str()).collect();
    matches!(texts.as_slice(), ["test"] | ["cfg", "(", "test", ")"])
        || texts.starts_with(&["cfg", "(", "any", "(", "test", ",", "feature"])
        || (texts.starts_with(&["cfg", "(", "all", "("])
            && texts.contains(&"test")
            && !texts.contains(&"not"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(source: &str) -> Vec<String> {
        tokens(source).unwrap().into_iter().filter(|token| !token.test).map(|token| token.text).collect()
    }

    #[test]
    fn comments_and_texts_are_no_code() {
        let source = "// unsafe\n/* unsafe */ fn f() -> &'static str { r#\"unsafe { }\"# }";
        assert!(!plain(source).contains(&"unsafe".to_owned()));
        assert!(plain("fn f() { unsafe {} }").contains(&"unsafe".to_owned()));
    }

    #[test]
    fn lines_count_from_one() {
        let found = tokens("fn a() {}\n\nfn b() {\n}\n").unwrap();
        let line_of = |text: &str| found.iter().find(|token| token.text == text).unwrap().line;
        assert_eq!((line_of("a"), line_of("b")), (1, 3));
    }

    #[test]
    fn test_items_are_marked_and_what_follows_is_not() {
        let source =
            "#[cfg(test)] mod tests { fn inside() {} } fn after() {} #[test] fn one() {} fn last() {}";
        let kept = plain(source);
        assert!(kept.contains(&"after".to_owned()) && kept.contains(&"last".to_owned()));
        assert!(!kept.contains(&"inside".to_owned()) && !kept.contains(&"one".to_owned()));
        assert!(plain("#[cfg(not(test))] fn real() {}").contains(&"real".to_owned()));
        assert!(plain("#[cfg(test)] use a; use b;").contains(&"b".to_owned()));
        let shared = "#[cfg(any(test, feature = \"fixtures\"))] mod fixtures { fn inside() {} }";
        assert!(!plain(shared).contains(&"inside".to_owned()));
        assert!(plain("#[cfg(any(unix, test))] fn real() {}").contains(&"real".to_owned()));
    }

    #[test]
    fn modules_for_tests_are_named() {
        let found = tokens("#[cfg(test)] mod fixtures; mod real;").unwrap();
        assert_eq!(test_modules(&found), vec!["fixtures".to_owned()]);
    }

    #[test]
    fn paths_are_seen_in_every_spelling() {
        for source in [
            "use std::fs;",
            "use std::{io, fs};",
            "use std::{io::{self}, fs::File};",
            "fn f() { std::fs::read(); }",
        ] {
            assert_eq!(path_uses(&tokens(source).unwrap(), "std", "fs").len(), 1, "{source}");
        }
        assert!(path_uses(&tokens("use std::{io}; use crate::fs;").unwrap(), "std", "fs").is_empty());
    }
}
