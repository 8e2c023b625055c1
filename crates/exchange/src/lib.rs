//! Records in the forms of other programs: CSV for tables and data frames, OpenMetrics for node_exporter; and documents of other
//! programs as Records: those of fio. Text in, text or a Record out; it opens no file and prints nothing.

mod cells_csv;
mod error;
mod fio;
mod import;
mod logs;
mod openmetrics;
mod text;

pub use cells_csv::{COLUMNS, Column, csv};
pub use error::ImportError;
pub use import::{import, is_of_fio};
pub use openmetrics::openmetrics;
