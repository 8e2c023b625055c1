//! The settings of one job by name: the last of each counts, and what is wrong with any of them is kept, so that all of it can be said at
//! once. It knows no meaning of any option.

use super::error::{BadValue, Refusal};
use super::ini::{Section, Setting};
use super::options::{Use, option};

/// The settings of a job.
pub(super) struct Reader<'a> {
    pub(super) section: &'a Section,
    /// The last of each name, in the order of the file.
    settings: Vec<(&'static str, Use, &'a Setting)>,
    /// Settings of names that fio itself does not have; they may belong to an engine.
    unknown: Vec<&'a Setting>,
    pub(super) refusals: Vec<Refusal>,
    /// Settings without influence on the I/O, each with the reason.
    pub(super) ignored: Vec<String>,
    /// What is not quite as in fio.
    pub(super) notes: Vec<String>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(section: &'a Section) -> Self {
        let mut settings: Vec<(&'static str, Use, &'a Setting)> = Vec::new();
        let mut unknown = Vec::new();
        for setting in &section.settings {
            match option(&setting.name) {
                Some((name, what)) => {
                    settings.retain(|(other, ..)| *other != name);
                    settings.push((name, what, setting));
                }
                None => unknown.push(setting),
            }
        }
        Self { section, settings, unknown, refusals: Vec::new(), ignored: Vec::new(), notes: Vec::new() }
    }

    /// The last setting of these names.
    pub(super) fn last(&self, names: &[&str]) -> Option<(&'static str, &'a Setting)> {
        let found = self.settings.iter().rev().find(|(name, ..)| names.contains(name));
        found.map(|(name, _, setting)| (*name, *setting))
    }

    /// What a value means; `None` where the option is absent, or its value was refused.
    pub(super) fn value<T>(
        &mut self,
        name: &str,
        parse: impl FnOnce(&str, &'a Setting) -> Result<T, BadValue>,
    ) -> Option<T> {
        let (_, setting) = self.last(&[name])?;
        let Some(text) = setting.value.as_deref().filter(|text| !text.is_empty()) else {
            self.refuse(setting, "has no value");
            return None;
        };
        parse(text, setting).map_err(|why| self.refuse(setting, why)).ok()
    }

    /// Whether an option is set that needs no value.
    pub(super) fn is_set(&mut self, name: &str) -> bool {
        match self.last(&[name]) {
            Some((_, Setting { value: None, .. })) => true,
            Some(_) => self.switch(name).unwrap_or(false),
            None => false,
        }
    }

    /// An option that is 0 or 1.
    pub(super) fn switch(&mut self, name: &str) -> Option<bool> {
        self.value(name, |text, _| match text {
            "0" => Ok(false),
            "1" => Ok(true),
            _ => Err("is 0 or 1".into()),
        })
    }

    pub(super) fn refuse(&mut self, setting: &Setting, why: impl Into<BadValue>) {
        self.refusals.push(setting.refuse(why));
    }

    /// Refuses by a setting, or by the line of the job where that is absent.
    pub(super) fn refuse_by(&mut self, names: &[&str], why: impl Into<BadValue>) {
        let Section { name, place, .. } = self.section;
        let of_job = || Refusal {
            file: place.file.to_string(),
            line: place.line,
            option: format!("[{name}]"),
            why: String::new(),
        };
        let refusal = self.last(names).map_or_else(of_job, |(_, setting)| setting.refuse(String::new()));
        self.refusals.push(Refusal { why: why.into().into_words(), ..refusal });
    }

    /// Judges the settings that say nothing of the requests themselves.
    pub(super) fn judge_others(&mut self, writes: bool) {
        for (_, what, setting) in std::mem::take(&mut self.settings) {
            let value = setting.value.as_deref().unwrap_or("1");
            match what {
                Use::Understood => {}
                Use::Ignored(why) => self.ignored.push(format!("{} ({why})", setting.words())),
                Use::Unless(values, _) if values.contains(&value) => {
                    self.ignored.push(format!("{} (as it is here)", setting.words()));
                }
                Use::OfWrites(values, _) if !writes || values.contains(&value) => {
                    self.ignored.push(format!("{} (changes nothing here)", setting.words()));
                }
                Use::Unless(_, why) | Use::OfWrites(_, why) | Use::Refused(why) => self.refuse(setting, why),
            }
        }
        for setting in std::mem::take(&mut self.unknown) {
            self.refuse(setting, "is no option of fio 3.42 that rdsk knows");
        }
    }
}
