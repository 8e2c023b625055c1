//! The zones page: the rate at each position, and what makes it differ. It draws what [`rdsk_finding`] read out of the
//! Record and computes nothing itself.

use crate::cells;
use crate::figures::significant;
use crate::page::{Page, Tone};
use rdsk_model::{Experiment, Record};

pub(crate) fn draw(page: &mut Page, record: &Record) {
    page.heading("ZONES: speed by position".to_owned());
    for cell in cells::of(record, Experiment::Zones) {
        let rate = cell.result.bytes_per_s.map(|rate| significant(rate.mean / 1_048_576.0));
        let passes = cell.result.points.len();
        let text = format!("{passes} passes, mean {} MiB/s", rate.unwrap_or_default());
        page.sentence(Tone::Plain, format!("  {}: ", cell.id), text);
    }
}
