//! A Record as a whole in words, for those who draw it in another form: what was measured on what, and its headline. What comes
//! from devices and files is safe to print here ([`rdsk_units::printable`]), but not escaped for any markup.

use crate::header::MAX_TARGETS;
use crate::questions::headline;
use crate::{cells, engine, header, questions, short};
use rdsk_analysis::Analysis;
use rdsk_model::{CellRecord, Experiment, Record, TargetKind};
use rdsk_units::printable;

/// The headline as a sentence for each list of targets, behind their names if there are several; none if it was not measured.
pub fn headlines(analysis: &Analysis<'_>) -> Vec<String> {
    let groups = cells::groups_by(analysis, Experiment::Headline, |cell| cell.workload.targets.clone());
    let sentence = |cells: &Vec<&CellRecord>| {
        let name = cells.first().and_then(|cell| cells::target_name(analysis, cell));
        let name = name.map_or_else(String::new, |name| format!("{name}: "));
        printable(&format!("{name}{}", rdsk_analysis::words::sentence(&headline::in_words(analysis, cells))))
    };
    groups.iter().map(sentence).collect()
}

/// The bullets of a short page, at most four: what decides, each with its figure and what to do.
pub fn bullets(record: &Record) -> Vec<String> {
    short::matters::bullets(record).iter().map(|text| printable(text)).collect()
}

/// The answer to a question, as the short page has it where it has room, and of a single copy its sentence; `None` where there is
/// none.
pub fn answer(analysis: &Analysis<'_>, experiment: Experiment) -> Option<String> {
    if let (Experiment::Dd, [copy]) = (experiment, &analysis.copies[..]) {
        return Some(printable(&questions::dd::sentence(analysis, copy)));
    }
    if experiment == Experiment::Load {
        return questions::load::sentence(analysis)
            .map(|text| printable(&rdsk_analysis::words::sentence(&text)));
    }
    let is_asked =
        Experiment::PLANNED.contains(&experiment) && cells::nothing_completed(analysis, experiment).is_none();
    let longest = is_asked.then(|| questions::answer(analysis, experiment).into_iter().next()).flatten();
    longest.filter(|text| !text.is_empty()).map(|text| printable(&rdsk_analysis::words::sentence(&text)))
}

/// What was measured, on what, when and by whom: the name of each fact and its words.
pub fn facts(record: &Record) -> Vec<(String, String)> {
    let label = record.label.as_ref().map(|label| ("label", label.clone()));
    let mut facts: Vec<(&str, String)> = label.into_iter().collect();
    for target in record.targets.iter().take(MAX_TARGETS) {
        if let Some(text) = header::measured_elsewhere(record, target) {
            facts.push(("target", text));
            continue;
        }
        facts.push(("target", header::target_text(target)));
        let options =
            |options: &str| if options.is_empty() { String::new() } else { format!(" ({options})") };
        let filesystem = target.filesystem.as_ref();
        facts.extend(filesystem.map(|filesystem| {
            ("filesystem", format!("{}{}", filesystem.kind, options(&filesystem.options)))
        }));
        facts.extend(target.device.as_ref().map(|device| ("device", header::device_text(device))));
        let stack = header::stack_text(target).filter(|_| target.kind != TargetKind::Sim);
        facts.extend(stack.map(|stack| ("stack", stack)));
    }
    facts.extend(header::more_targets(record).map(|text| ("targets", text)));
    facts.extend(record.host.as_ref().map(|host| ("host", header::host_text(host))));
    facts.extend(engine::text(record).map(|engine| ("engine", engine)));
    facts.push(("started", header::whole_seconds(&record.started_at)));
    facts.push(("rdsk", record.rdsk_version.clone()));
    facts.into_iter().map(|(name, words)| (name.to_owned(), printable(&words))).collect()
}

/// The names of all targets in a sentence, of many the first and how many others; `None` where there are none.
pub fn target_list(record: &Record) -> Option<String> {
    header::target_list(record).map(|list| printable(&list))
}

/// How long it took and what the evidence is: `Took 61.2 s. Evidence: sysfs. Record 01J….`
pub fn end(record: &Record) -> String {
    printable(&header::end_text(record))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rdsk_finding::fixtures;
    use rdsk_model::{Source, Target};

    #[test]
    fn facts_name_the_target_and_hide_no_control_characters() {
        let mut record = fixtures::run();
        record.label = Some("before\u{1b}[2J".into());
        record.targets[0].name = "/dev/sdb".into();
        let facts = facts(&record);
        let of = |name: &str| facts.iter().find(|(known, _)| known == name).map(|(_, words)| words.as_str());
        assert_eq!(of("label"), Some("before\\x1b[2J"));
        assert!(of("target").is_some_and(|words| words.starts_with("/dev/sdb: ")), "{facts:?}");
        assert!(of("host").is_some() && of("started").is_some());
    }

    #[test]
    fn tens_of_thousands_of_targets_are_a_few_names_and_a_count() {
        let mut record = fixtures::run();
        let target = record.targets[0].clone();
        let named = |index: u32| Target { index, name: format!("/data/{index}"), ..target.clone() };
        record.targets = (0..30_000).map(named).collect();
        let facts_of = |record: &Record| -> Vec<String> {
            facts(record)
                .into_iter()
                .filter(|(name, _)| name.starts_with("target"))
                .map(|(_, text)| text)
                .collect()
        };
        let said = facts_of(&record);
        assert_eq!(said.len(), MAX_TARGETS + 1);
        assert_eq!(said[MAX_TARGETS], "and 29,984 more, which rdsk show --json has");
        let page = crate::tests::text(&record, crate::Style::default());
        assert_eq!(page.lines().filter(|line| line.starts_with("  target ")).count(), MAX_TARGETS);
        assert!(page.contains("  targets     and 29,984 more, which rdsk show --json has\n"), "{page}");
        assert_eq!(target_list(&record).as_deref(), Some("/data/0 and 29,999 other targets"));
        record.targets.truncate(MAX_TARGETS);
        assert_eq!(facts_of(&record).len(), MAX_TARGETS, "all of them");
        record.targets.truncate(3);
        assert_eq!(target_list(&record).as_deref(), Some("/data/0, /data/1 and /data/2"));
    }

    #[test]
    fn what_another_program_measured_has_no_size() {
        let mut record = fixtures::run();
        record.source = Some(Source { tool: "fio".into(), version: None });
        record.targets[0] = Target { name: "/data/x".into(), ..Target::default() };
        assert!(facts(&record).contains(&("target".into(), "/data/x: fio tells no more of it".into())));
    }

    #[test]
    fn bullets_and_answers_are_those_of_the_short_page() {
        let record = fixtures::run();
        let analysis = Analysis::of(&record);
        let style = crate::Style { width: 120, ..crate::Style::default() };
        let page = crate::short(&analysis, crate::Further::Nowhere, style);
        let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        let bullets = bullets(&record);
        assert!((1..=4).contains(&bullets.len()), "{bullets:?}");
        for bullet in bullets {
            let start: String = words(&bullet).chars().take(60).collect();
            assert!(words(&page).contains(&start), "{start}\n{page}");
        }
        let paths = answer(&analysis, Experiment::Paths).expect("the run has paths");
        let start: String = words(&paths).chars().skip(1).take(40).collect();
        assert!(words(&page).contains(&start), "{start}\n{page}");
        assert_eq!(answer(&analysis, Experiment::Headline), None, "it has a table of its own");
        let mut copied = rdsk_analysis::fixtures::run();
        copied.copies = vec![rdsk_analysis::fixtures::copies::to_file(&[100_000_000])];
        let sentence = answer(&Analysis::of(&copied), Experiment::Dd).expect("one copy has a sentence");
        assert!(sentence.ends_with('.') && sentence.len() > 20, "{sentence}");
    }

    #[test]
    fn a_headline_is_a_sentence() {
        let said = headlines(&Analysis::of(&fixtures::run()));
        assert!(
            said.iter().all(|text| text.ends_with('.') && !text.starts_with(char::is_lowercase)),
            "{said:?}"
        );
        let empty = Record { cells: Vec::new(), ..fixtures::run() };
        assert_eq!(headlines(&Analysis::of(&empty)), [] as [String; 0]);
    }
}
