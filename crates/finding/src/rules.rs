//! The rules: what must have been counted for a finding, and the words of it. One file per rule, one stable code, one
//! page docs/findings/CODE.md. A rule whose counters are missing says nothing; it never guesses.

mod array_unsettled;
mod buffered_write_in_memory;
mod burst_writes;
mod cached_write;
mod cold_not_reached;
mod contiguous_memory;
mod deep_write_behind;
mod device_misaligned;
mod direct_refused;
mod direct_vs_buffered;
mod dontcache_saves;
mod durable_not_flushed;
mod durable_write_cost;
mod evidence_differs;
mod faster_than_rotation;
mod few_samples;
mod first_access;
mod latency_bands;
mod level_shifts;
mod loop_backing_cached;
mod memory_device;
mod misaligned_write;
mod no_stripe_seen;
mod one_target_limits;
mod only_zeros;
mod own_pause;
mod passes_differ;
mod path_cause;
mod prelude;
mod processor_contended;
mod processor_quota;
mod queue_depth_not_reached;
mod rate_trends;
mod read_ahead_helped;
mod read_modify_write;
mod requests_merged;
mod requests_split;
mod restated_verdicts;
mod saturation;
mod scale_knee;
mod slows_down;
mod speed_by_position;
mod stalls;
mod stripe_geometry;
mod stripe_hints_differ;
mod unfair_streams;
mod uring_on_workers;
mod waits_above_device;
mod write_cache_full;
mod write_cache_volatile;
mod written_at_close;

use rdsk_analysis::Analysis;
use rdsk_model::{CellRecord, Confidence, Experiment, Finding, Severity};

/// One rule: looks at what a Record means and explains what it recognises.
#[derive(Clone, Copy, Debug)]
pub struct Rule {
    /// Stable kebab-case name, also that of its page in docs/findings/.
    pub code: &'static str,
    /// How much its findings matter.
    pub severity: Severity,
    /// What it cannot do without.
    pub needs: Needs,
    /// The experiment whose page shows its findings beside the table.
    pub experiment: Option<Experiment>,
    /// Its findings; empty when it recognises nothing or something that it needs is missing.
    pub check: fn(&Analysis<'_>) -> Vec<Finding>,
}

/// What a rule rests on; without it the rule is silent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needs {
    /// Counters of the system: of the device, the process, the page cache, the processor or a control group.
    Counters,
    /// Times, rates and counts that rdsk takes itself.
    OwnTimes,
    /// The workload, and what the target says of itself.
    Facts,
}

impl Rule {
    const fn new(
        code: &'static str,
        severity: Severity,
        needs: Needs,
        check: fn(&Analysis<'_>) -> Vec<Finding>,
    ) -> Rule {
        Rule { code, severity, needs, experiment: None, check }
    }

    const fn shown_on(self, experiment: Experiment) -> Rule {
        Rule { experiment: Some(experiment), ..self }
    }

    /// A finding of this rule, measured, to be completed by the methods of [`Finding`].
    fn finding(&self, title: impl Into<String>, text: impl Into<String>) -> Finding {
        Finding {
            code: self.code.into(),
            severity: self.severity,
            title: title.into(),
            text: text.into(),
            evidence: Vec::new(),
            confidence: Confidence::Measured,
            advice: None,
            cells: Vec::new(),
            experiment: self.experiment,
            covers_verdicts: false,
            effect: None,
        }
    }

    /// A finding about all of these cells: the title ends with them, and the first of them are cited.
    fn about(
        &self,
        cells: &[&CellRecord],
        title: &str,
        text: impl Into<String>,
        cite: impl Fn(&CellRecord) -> String,
    ) -> Finding {
        let evidence = prelude::cite_all(cells, cite);
        let title = format!("{title}: {}", prelude::how_many(cells));
        self.finding(title, text).evidence(evidence).cells(cells.iter().copied())
    }

    /// The same with advice; none without cells.
    fn about_any(
        &self,
        cells: &[&CellRecord],
        title: &str,
        text: impl Into<String>,
        cite: impl Fn(&CellRecord) -> String,
        advice: &str,
    ) -> Vec<Finding> {
        let is_any = (!cells.is_empty()).then(|| self.about(cells, title, text, cite).advice(advice));
        is_any.into_iter().collect()
    }
}

/// Every rule, the gravest [`Severity`] first.
pub const RULES: &[Rule] = &[
    restated_verdicts::HOLE_READ,
    restated_verdicts::CACHED_READ,
    buffered_write_in_memory::RULE,
    loop_backing_cached::RULE,
    durable_not_flushed::RULE,
    restated_verdicts::DISTURBED,
    restated_verdicts::THROTTLED,
    only_zeros::RULE,
    array_unsettled::RULE,
    cold_not_reached::RULE,
    processor_contended::RULE,
    processor_quota::RULE,
    evidence_differs::RULE,
    own_pause::RULE,
    few_samples::RULE,
    burst_writes::RULE,
    write_cache_full::RULE,
    cached_write::RULE,
    first_access::RULE,
    slows_down::RULE,
    stalls::RULE,
    rate_trends::DRIFT,
    passes_differ::RULE,
    write_cache_volatile::RULE,
    latency_bands::RULE,
    speed_by_position::RULE,
    stripe_geometry::RULE,
    stripe_hints_differ::RULE,
    no_stripe_seen::RULE,
    rate_trends::SLOW_START,
    rate_trends::FAST_START,
    memory_device::RULE,
    faster_than_rotation::RULE,
    device_misaligned::RULE,
    restated_verdicts::CPU_BOUND,
    restated_verdicts::SOURCE_BOUND,
    waits_above_device::RULE,
    saturation::NOT_SATURATED,
    queue_depth_not_reached::RULE,
    uring_on_workers::RULE,
    written_at_close::RULE,
    one_target_limits::RULE,
    scale_knee::RULE,
    unfair_streams::RULE,
    direct_vs_buffered::RULE,
    dontcache_saves::RULE,
    read_modify_write::RULE,
    misaligned_write::RULE,
    durable_write_cost::RULE,
    saturation::SATURATED,
    deep_write_behind::RULE,
    read_ahead_helped::RULE,
    requests_merged::RULE,
    requests_split::RULE,
    contiguous_memory::RULE,
    direct_refused::RULE,
];

/// The findings of all rules, in the order of [`RULES`]. The cells' verdicts must have been given before.
pub fn findings(analysis: &Analysis<'_>) -> Vec<Finding> {
    RULES.iter().flat_map(|rule| (rule.check)(analysis)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures;
    use std::collections::BTreeSet;
    use std::path::Path;

    #[test]
    fn every_code_has_its_page_and_every_page_its_code() {
        let pages = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/findings");
        let written: BTreeSet<String> = std::fs::read_dir(&pages)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter_map(|name| name.strip_suffix(".md").map(String::from))
            .filter(|name| name != "README")
            .collect();
        let codes: BTreeSet<String> = RULES.iter().map(|rule| rule.code.into()).collect();
        assert_eq!(codes.len(), RULES.len(), "a code is used twice");
        assert_eq!(written, codes);
        for code in codes {
            let page = std::fs::read_to_string(pages.join(format!("{code}.md"))).unwrap();
            assert!(page.starts_with(&format!("# {code}\n")), "{code}.md does not start with its code");
            for part in [
                "## What it says", "## The evidence", "## Why it happens", "## What to do",
                "## See it yourself",
            ] {
                assert!(page.contains(part), "{code}.md lacks \"{part}\"");
            }
        }
    }

    #[test]
    fn without_counters_nothing_is_claimed_of_them() {
        let mut record = fixtures::run_on_three_paths();
        for cell in &mut record.cells {
            *cell = fixtures::without_counters(cell.clone());
            cell.evidence.process = rdsk_model::ProcessIo::default();
            cell.evidence.page_cache = None;
            cell.evidence.extents = None;
            cell.evidence.limits.clear();
            cell.result.cpu_ns = None;
        }
        let record = fixtures::record(record.targets, record.cells);
        for finding in findings(&Analysis::of(&record)) {
            let rule = RULES.iter().find(|rule| rule.code == finding.code).unwrap();
            assert_ne!(rule.needs, Needs::Counters, "{finding:#?}");
        }
    }

    /// The whole run again, as if a model of a host and a disk had been measured.
    fn simulated() -> rdsk_model::Record {
        let mut record = fixtures::run_on_three_paths();
        for target in &mut record.targets {
            target.name = "sim:linux-disk".into();
            target.kind = rdsk_model::TargetKind::Sim;
            target.path = None;
            target.filesystem = None;
        }
        for cell in &mut record.cells {
            cell.evidence.source = rdsk_model::EvidenceSource::Sim;
            for visit in &mut cell.result.visits {
                if cell.workload.cache == rdsk_model::CacheState::Cold {
                    visit.cache =
                        Some(rdsk_model::ColdCheck { cached_bytes: Some(1 << 20), ..Default::default() });
                }
            }
        }
        fixtures::record(record.targets, record.cells)
    }

    #[test]
    fn nothing_of_a_real_system_is_said_of_a_simulated_one() {
        const OF_REAL_SYSTEMS: &[&str] = &[
            "kernel", "/proc", "/sys", "queue/", "cgroup", "control group", "dmesg", "cachestat", "EINVAL",
            "O_DIRECT", "block layer", "filesystem", "container", "root",
        ];
        let record = simulated();
        let found = findings(&Analysis::of(&record));
        let real: BTreeSet<String> =
            fixtures::run_on_three_paths().findings.into_iter().map(|finding| finding.code).collect();
        let codes: BTreeSet<String> = found.iter().map(|finding| finding.code.clone()).collect();
        assert!(codes.is_superset(&real), "{codes:?} lacks some of {real:?}");
        assert!(codes.contains("cold-not-reached"), "{codes:?}");
        let texts = found.iter().flat_map(|finding| {
            let advice = finding.advice.clone().unwrap_or_default();
            [finding.title.clone(), finding.text.clone(), advice].into_iter().chain(finding.evidence.clone())
        });
        let verdicts = record.cells.iter().filter_map(|cell| Some(cell.verdict.as_ref()?.text.clone()));
        for text in texts.chain(verdicts) {
            for word in OF_REAL_SYSTEMS {
                assert!(!text.contains(word), "\"{word}\" in: {text}");
            }
        }
    }

    #[test]
    fn a_run_gives_findings_in_the_order_of_the_rules() {
        let found = findings(&Analysis::of(&fixtures::run_on_three_paths()));
        let positions: Vec<usize> = found
            .iter()
            .map(|finding| RULES.iter().position(|rule| rule.code == finding.code).unwrap())
            .collect();
        assert!(positions.is_sorted(), "{positions:?}");
        assert!(found.len() >= 8, "{}", found.len());
    }

    /// What a page ranks and shows by: a clause with its figure, and a factor inside its interval.
    #[test]
    fn an_effect_is_one_clause_with_a_figure() {
        let found = fixtures::run().findings;
        let effects: Vec<&rdsk_model::Effect> =
            found.iter().filter_map(|finding| finding.effect.as_ref()).collect();
        assert!(effects.len() >= 6, "{effects:#?}");
        for effect in effects {
            let text = &effect.text;
            assert!(text.contains(|c: char| c.is_ascii_digit()) && !text.contains('\n'), "{text}");
            assert!(!text.ends_with('.') && text.chars().count() <= 120, "{text}");
            assert!(effect.factor.is_none_or(|factor| factor >= 1.0), "{effect:?}");
            let inside = effect.low.zip(effect.factor).is_none_or(|(low, factor)| low <= factor)
                && effect.high.zip(effect.factor).is_none_or(|(high, factor)| factor <= high);
            assert!(inside, "{effect:?}");
        }
    }

    /// A reader knows tests by what they do; ids are for programs, in `cells`.
    #[test]
    fn no_text_names_a_cell_by_its_id_and_each_is_short() {
        let record = fixtures::run_on_three_paths();
        assert!(!record.findings.is_empty());
        for finding in &record.findings {
            let effect = finding.effect.iter().map(|effect| &effect.text);
            let texts = [&finding.title, &finding.text].into_iter().chain(&finding.advice).chain(effect);
            for text in texts.chain(&finding.evidence) {
                let named = record.cells.iter().find(|cell| text.contains(&cell.id));
                assert!(named.is_none(), "{}: {text}", finding.code);
            }
            let parts = finding.text.split(". ").skip(1);
            let further = parts.filter(|part| part.starts_with(char::is_uppercase)).count();
            assert!(further <= 2, "{}: {}", finding.code, finding.text);
        }
    }

    #[test]
    fn the_gravest_rules_come_first() {
        assert!(RULES.is_sorted_by_key(|rule| rule.severity));
        for finding in fixtures::run_on_three_paths().findings {
            let rule = RULES.iter().find(|rule| rule.code == finding.code).unwrap();
            assert_eq!(finding.severity, rule.severity, "{}", rule.code);
        }
    }

    #[test]
    fn a_record_without_cells_has_no_findings() {
        assert_eq!(
            findings(&Analysis::of(&fixtures::record(vec![fixtures::disk()], Vec::new()))),
            Vec::new()
        );
    }
}
