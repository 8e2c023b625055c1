//! The rates of a job of fio: requests per second of each kind, whether they are given in bytes or in requests.

use super::error::BadValue;
use super::reader::Reader;
use super::values::{by_direction, bytes, number};
use rdsk_model::{Arrivals, Rate, Requests};

/// The rate of each kind of request of a clone: reads, writes and trims.
pub(super) fn rates(reader: &mut Reader<'_>, sides: [Option<&Requests>; 3]) -> [Option<Rate>; 3] {
    let of_bytes = reader.value("rate", |text, setting| of_each(text, |text| bytes(text, setting.base)));
    let of_requests = reader.value("rate_iops", |text, _| of_each(text, number));
    let arrivals = reader.value("rate_process", |text, _| match text {
        "linear" => Ok(Arrivals::Constant),
        "poisson" => Ok(Arrivals::Poisson),
        _ => Err("is linear or poisson".into()),
    });
    let (of_bytes, of_requests) = (of_bytes.unwrap_or_default(), of_requests.unwrap_or_default());
    let names = ["rate", "rate_iops"];
    let mut rates = [None; 3];
    for (index, side) in sides.into_iter().enumerate().filter_map(|(index, side)| Some((index, side?))) {
        let per_s = match per_second(side, of_bytes[index], of_requests[index]) {
            Ok(per_s) => per_s,
            Err(why) => {
                reader.refuse_by(&names, why);
                return [None; 3];
            }
        };
        rates[index] = per_s.map(|per_s| Rate { per_s, arrivals: arrivals.unwrap_or(Arrivals::Constant) });
    }
    let count = rates.iter().flatten().count();
    if count > 0 && count < sides.iter().flatten().count() {
        reader.refuse_by(&names, "one direction has a rate and the other has none: make two jobs of it");
        return [None; 3];
    }
    if count > 0 {
        reader.notes.push(
            "latencies count from when a request was due, so that what waits for the disk is in them".into(),
        );
    }
    if count == 2 {
        reader.notes.push("reads and writes with a rate of their own each are two jobs here".into());
    }
    rates
}

/// The values of a rate for reads, writes and trims; 0 without one.
fn of_each(text: &str, value: impl Fn(&str) -> Result<u64, BadValue>) -> Result<[u64; 3], BadValue> {
    let mut values = [0; 3];
    for (into, text) in values.iter_mut().zip(by_direction(text)?) {
        *into = text.map_or(Ok(0), &value)?;
    }
    Ok(values)
}

/// Requests per second of one kind, for a rate in bytes or in requests; `None` without one.
#[allow(clippy::cast_precision_loss, reason = "rates are far below 2^53")]
fn per_second(side: &Requests, of_bytes: u64, of_requests: u64) -> Result<Option<f64>, &'static str> {
    match (of_bytes, of_requests) {
        (0, 0) => Ok(None),
        (0, requests) => Ok(Some(requests as f64)),
        (_, requests) if requests > 0 => {
            Err("rate and rate_iops stand beside each other; a job has one of them")
        }
        (bytes, _) if side.min_bytes() == side.max_bytes() => {
            Ok(Some(bytes as f64 / side.min_bytes().max(1) as f64))
        }
        _ => Err("a rate of requests of several sizes is one of requests here: rate_iops"),
    }
}
