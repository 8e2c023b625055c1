//! A manual page from the help of a command: clap_mangen's, with an own synopsis, line breaks where the help has them, and sections for
//! what stands below the options. It knows no command.

use clap::Command;
use clap::builder::Resettable;
use clap_mangen::Man;

/// Command lines are read letter by letter: no hyphens are added, and no spaces to fill a line.
const LAYOUT: &str = ".nh\n.ad l\n";

/// The page of a command that was built.
pub(crate) fn render(mut of: Command) -> String {
    let usage = of.render_usage().to_string();
    let usage = usage.trim_start_matches("Usage:").trim().to_owned();
    let below = of.get_after_help().map(ToString::to_string).unwrap_or_default();
    let title = of.get_display_name().unwrap_or("rdsk").to_owned();
    // The summary stands in the section NAME.
    let about = of.get_long_about().map(ToString::to_string).unwrap_or_default();
    if let Some((_, details)) = about.split_once("\n\n") {
        of = of.long_about(details.to_owned());
    }
    let of = of
        .override_usage(usage)
        .after_help(Resettable::Reset)
        .subcommand_help_heading("COMMANDS")
        .mut_args(|arg| arg.hide_possible_values(true));
    let mut page = Vec::new();
    let source = format!("rdsk {}", env!("CARGO_PKG_VERSION"));
    Man::new(of).title(title).source(source).render(&mut page).expect("a Vec takes everything");
    let page = String::from_utf8_lossy(&page);
    let (head, sections) = page.split_at(page.find(".SH ").unwrap_or(0));
    format!("{head}{LAYOUT}{}{}", with_breaks(sections), sections_of(&below))
}

/// The lines of an option's help stay lines of their own.
fn with_breaks(page: &str) -> String {
    let (mut lines, mut is_options, mut since_tag) = (Vec::new(), false, 0);
    for line in page.lines() {
        if let Some(section) = line.strip_prefix(".SH ") {
            is_options = section.trim_matches('"') == "OPTIONS";
        }
        since_tag = if line == ".TP" { 0 } else { since_tag + 1 };
        // The first line below a tag is the option, the second one the start of its help.
        if is_options && since_tag > 2 && !line.starts_with('.') {
            lines.push(".br");
        }
        lines.push(line);
    }
    lines.iter().map(|line| format!("{line}\n")).collect()
}

/// Sections of the paragraphs below the options: a block of lines below a word and a colon is a section with a paragraph for each line,
/// all other text is filled.
fn sections_of(text: &str) -> String {
    let mut page = String::new();
    for paragraph in text.split("\n\n").filter(|paragraph| !paragraph.trim().is_empty()) {
        match paragraph.split_once(":\n") {
            Some((head, block)) if !head.contains('\n') && block.starts_with(' ') => {
                page.push_str(&format!(".SH {}\n", escaped(&head.to_uppercase())));
                page.push_str(&items(block));
            }
            _ => {
                let section = if paragraph.starts_with("Exit codes") {
                    ".SH EXIT STATUS\n"
                } else if page.is_empty() {
                    ".SH NOTES\n"
                } else {
                    ".PP\n"
                };
                page.push_str(section);
                page.extend(paragraph.lines().map(|line| format!("{}\n", escaped(line))));
            }
        }
    }
    page
}

/// Each line that stands in two columns begins an item; what is said of it stands behind several spaces or on lines further in.
fn items(block: &str) -> String {
    let parts: Vec<&str> = block.split("\\\n").map(str::trim_end).collect();
    let mut joined = parts.first().copied().unwrap_or_default().to_owned();
    for part in parts.iter().skip(1) {
        joined.push(' ');
        joined.push_str(part.trim_start());
    }
    let mut page = String::new();
    for line in joined.lines() {
        let text = line.trim_start();
        if line.len() - text.len() > 2 {
            page.push_str(&format!("{}\n", escaped(text)));
            continue;
        }
        let (tag, said) = text.split_once("   ").unwrap_or((text, ""));
        let tag = tag.split_whitespace().collect::<Vec<_>>().join(" ");
        page.push_str(&format!(".TP\n\\fB{}\\fR\n", escaped(&tag)));
        if !said.is_empty() {
            page.push_str(&format!("{}\n", escaped(said.trim_start())));
        }
    }
    page
}

/// A line of text as roff has it.
fn escaped(line: &str) -> String {
    let text = line.replace('\\', "\\e").replace('-', "\\-").replace('\'', "\\(aq");
    if text.starts_with('.') { format!("\\&{text}") } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_a_block_are_items_and_paragraphs_are_filled() {
        let text = "Operands:\n  if=FILE, of=FILE     Input and output\n  conv=LIST            notrunc\n                       \
                    swab\n\nN is a number.\n.5 is none.\n\nExamples:\n  rdsk dd --repeat 5 \\\n      if='a b'\n      five times\n\n\
                    Exit codes: 0 done";
        assert_eq!(
            sections_of(text),
            ".SH OPERANDS\n.TP\n\\fBif=FILE, of=FILE\\fR\nInput and output\n.TP\n\\fBconv=LIST\\fR\nnotrunc\nswab\n\
             .PP\nN is a number.\n\\&.5 is none.\n\
             .SH EXAMPLES\n.TP\n\\fBrdsk dd \\-\\-repeat 5 if=\\(aqa b\\(aq\\fR\nfive times\n\
             .SH EXIT STATUS\nExit codes: 0 done\n"
        );
        assert_eq!(sections_of("TARGET is a name."), ".SH NOTES\nTARGET is a name.\n");
        assert_eq!(sections_of(""), "");
    }

    #[test]
    fn an_example_of_an_option_has_a_line_of_its_own() {
        let page = ".SH NAME\na\nb\nc\n.SH OPTIONS\n.TP\n\\-\\-rw\nReads\nExample: a\n.TP\n\\-\\-bs\nSizes\n.SH NOTES\na\nb\nc\n";
        assert_eq!(with_breaks(page), page.replace("Example", ".br\nExample"));
    }
}
