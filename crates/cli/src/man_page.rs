//! A manual page from the help of a command: clap_mangen's, with an own synopsis, and sections for what stands below the options. It
//! knows no command.

use clap::Command;
use clap::builder::Resettable;
use clap_mangen::Man;

/// Command lines are read letter by letter: no hyphens are added, and no spaces to fill a line.
const LAYOUT: &str = ".nh\n.ad l\n";

/// The page of a command that was built.
pub(crate) fn render(mut command: Command) -> String {
    let usage = command.render_usage().to_string();
    let usage = usage.trim_start_matches("Usage:").trim().to_owned();
    let below = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let title = command.get_display_name().unwrap_or("rdsk").to_owned();
    // The summary stands in the section NAME.
    let about = command.get_long_about().map(ToString::to_string).unwrap_or_default();
    if let Some((_, details)) = about.split_once("\n\n") {
        command = command.long_about(details.to_owned());
    }
    let command =
        command.override_usage(usage).after_help(Resettable::Reset).subcommand_help_heading("COMMANDS");
    let mut page = Vec::new();
    let source = format!("rdsk {}", env!("CARGO_PKG_VERSION"));
    Man::new(command).title(title).source(source).render(&mut page).expect("a Vec takes everything");
    let page = String::from_utf8_lossy(&page);
    let (head, sections) = page.split_at(page.find(".SH ").unwrap_or(0));
    format!("{head}{LAYOUT}{sections}{}", sections_of(&below))
}

/// Sections of the paragraphs below the options: a block of lines below a word and a colon is a section whose lines stay as they are,
/// all other text is filled.
fn sections_of(text: &str) -> String {
    let mut page = String::new();
    for paragraph in text.split("\n\n").filter(|paragraph| !paragraph.trim().is_empty()) {
        let lines = |text: &str| text.lines().map(|line| format!("{}\n", escaped(line))).collect::<String>();
        page.push_str(&match paragraph.split_once(":\n") {
            Some((head, block)) if !head.contains('\n') && block.starts_with(' ') => {
                format!(".SH {}\n.nf\n{}.fi\n", escaped(&head.to_uppercase()), lines(block))
            }
            _ if paragraph.starts_with("Exit codes") => format!(".SH EXIT STATUS\n{}", lines(paragraph)),
            _ if page.is_empty() => format!(".SH NOTES\n{}", lines(paragraph)),
            _ => format!(".PP\n{}", lines(paragraph)),
        });
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
    fn lines_of_a_block_stay_and_paragraphs_are_filled() {
        let text = "Operands:\n  if=FILE, of=FILE     Input and output\n\nN is a number.\n.5 is none.\n\n\
                    Examples:\n  rdsk dd --repeat 5 \\\n      if='a b'\n\nExit codes: 0 done";
        assert_eq!(
            sections_of(text),
            ".SH OPERANDS\n.nf\n  if=FILE, of=FILE     Input and output\n.fi\n.PP\nN is a number.\n\\&.5 is none.\n\
             .SH EXAMPLES\n.nf\n  rdsk dd \\-\\-repeat 5 \\e\n      if=\\(aqa b\\(aq\n.fi\n\
             .SH EXIT STATUS\nExit codes: 0 done\n"
        );
        assert_eq!(sections_of("TARGET is a name."), ".SH NOTES\nTARGET is a name.\n");
        assert_eq!(sections_of(""), "");
    }
}
