//! The Record as a JSON document. It changes nothing but what a compact document leaves out.

use rdsk_model::{Latency, Record};

/// How much of the raw series a document keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compactness {
    /// Everything.
    Full,
    /// Without rate windows, histograms and the series of the sampler; every other figure stays.
    Compact,
}

/// The Record as indented JSON (schema `rdsk.record/2`) with a line feed at the end. Figures that are not finite become
/// null.
pub fn json(record: &Record, compactness: Compactness) -> String {
    let text = match compactness {
        Compactness::Full => serde_json::to_string_pretty(record),
        Compactness::Compact => serde_json::to_string_pretty(&compact(record.clone())),
    };
    let mut text = text.expect("a Record has text keys only and no value that JSON cannot hold");
    text.push('\n');
    text
}

fn compact(mut record: Record) -> Record {
    let strip = |latency: &mut Option<Latency>| {
        if let Some(latency) = latency {
            latency.histogram = None;
            latency.rounds.clear();
        }
    };
    for cell in &mut record.cells {
        cell.result.windows = None;
        strip(&mut cell.result.latency_ns);
        strip(&mut cell.evidence.device_latency_ns);
        for device in &mut cell.evidence.device {
            device.in_flight_series.clear();
            device.bytes_series.clear();
        }
    }
    record
}

#[cfg(test)]
mod tests {
    use super::*;
    use rdsk_finding::fixtures;

    #[test]
    fn a_document_reads_back_as_the_same_record() {
        let record = fixtures::run();
        let read: Record = serde_json::from_str(&json(&record, Compactness::Full)).unwrap();
        assert_eq!(read, record);
    }

    #[test]
    fn a_record_from_before_ranges_stalls_and_warm_up_is_read() {
        let mut document = serde_json::to_value(fixtures::run()).unwrap();
        for cell in document["cells"].as_array_mut().unwrap() {
            let result = cell["result"].as_object_mut().unwrap();
            for key in ["warmup_bytes", "warmup_ops", "stalls"] {
                result.remove(key);
            }
            if let Some(latency) = result["latency_ns"].as_object_mut() {
                for key in ["ranges", "rounds"] {
                    latency.remove(key);
                }
            }
        }
        let read: Record = serde_json::from_value(document).unwrap();
        let result = &read.cells[0].result;
        assert_eq!((result.warmup_ns, result.warmup_bytes, result.warmup_ops), (Some(0), None, None));
        assert_eq!((result.stalls.as_ref(), result.latency_ns.as_ref().unwrap().ranges), (None, None));
        assert_eq!(read.cells.len(), fixtures::run().cells.len());
    }

    #[test]
    fn a_compact_document_leaves_out_the_series_only() {
        let mut record = fixtures::run();
        record.cells[0].result.latency_ns.as_mut().unwrap().histogram = Some("HISTF".into());
        let (full, short) = (json(&record, Compactness::Full), json(&record, Compactness::Compact));
        assert!(full.contains("HISTF") && !short.contains("HISTF"));
        assert!(short.len() < full.len());
        let mut read: Record = serde_json::from_str(&short).unwrap();
        for (compact, cell) in read.cells.iter_mut().zip(&record.cells) {
            assert_eq!(compact.result.windows, None);
            compact.result.windows.clone_from(&cell.result.windows);
            compact.result.latency_ns.clone_from(&cell.result.latency_ns);
            for (device, original) in compact.evidence.device.iter_mut().zip(&cell.evidence.device) {
                assert!(device.in_flight_series.is_empty() && device.bytes_series.is_empty());
                device.in_flight_series.clone_from(&original.in_flight_series);
                device.bytes_series.clone_from(&original.bytes_series);
            }
        }
        assert_eq!(read, record);
    }

    #[test]
    fn what_is_not_a_number_is_null() {
        let mut record = fixtures::run();
        record.cells[0].result.in_flight_mean = Some(f64::NAN);
        assert!(json(&record, Compactness::Full).contains("\"in_flight_mean\": null"));
    }
}
