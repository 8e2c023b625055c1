//! What the requests of a job of fio are like: directions, sizes with their shares, and offsets. It knows no files and no lengths.

use super::error::BadValue;
use super::ini::Setting;
use super::reader::Reader;
use super::values::{KbBase, by_direction, bytes, decimal, range};
use rdsk_model::{BlockShare, OffsetRule, Requests, Zone};

const DEFAULT_BYTES: u64 = 4096;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    /// With so many bytes from the end of a request to the start of the next.
    Sequential(i64),
    Random,
}

impl Default for Order {
    fn default() -> Self {
        Self::Sequential(0)
    }
}

/// The requests of each direction that a job has.
pub(super) struct Kinds {
    pub(super) reads: Option<Requests>,
    pub(super) writes: Option<Requests>,
    pub(super) trims: Option<Requests>,
    /// Whether each write follows a trim of its blocks.
    pub(super) trims_before_writes: bool,
}

impl Kinds {
    /// The requests that a job asks for; what is wrong with them is in the reader.
    pub(super) fn of(reader: &mut Reader<'_>) -> Self {
        let default = Directions { reads: true, ..Directions::default() };
        let Directions { reads, writes, trims, order } =
            reader.value("rw", |text, setting| directions(text, setting.base)).unwrap_or(default);
        let [read_blocks, write_blocks, trim_blocks] = blocks(reader);
        let is_only_trims = trims && !writes;
        let sides = [(reads, &read_blocks), (writes, &write_blocks), (is_only_trims, &trim_blocks)];
        let sides: Vec<&Vec<BlockShare>> =
            sides.into_iter().filter_map(|(is_there, blocks)| is_there.then_some(blocks)).collect();
        let is_of_one_size = matches!(sides[0].as_slice(), [share] if share.min_bytes == share.max_bytes)
            && sides.iter().all(|side| *side == sides[0]);
        let rule = match order {
            Order::Sequential(0) => OffsetRule::Sequential,
            Order::Sequential(skip_bytes) => OffsetRule::Skips { skip_bytes },
            Order::Random => random_rule(reader, is_of_one_size),
        };
        let aligned = if order == Order::Random { alignments(reader) } else { [None; 3] };
        let requests = |is_there: bool, blocks, align_bytes: Option<u64>| {
            let plain = Requests::new(blocks, rule.clone());
            let align_bytes = align_bytes.filter(|bytes| *bytes != plain.min_bytes());
            is_there.then_some(Requests { align_bytes, ..plain })
        };
        // What is trimmed before a write are the blocks of that write.
        let mut kinds = Self {
            reads: requests(reads, read_blocks, aligned[0]),
            writes: requests(writes, write_blocks, aligned[1]),
            trims: requests(is_only_trims, trim_blocks, aligned[2]),
            trims_before_writes: trims && writes,
        };
        kinds.use_places_again(reader);
        kinds
    }

    /// With offsets that are multiples of something else than the size, fio marks no block as used.
    fn use_places_again(&mut self, reader: &mut Reader<'_>) {
        let mut sides: Vec<&mut Requests> =
            [&mut self.reads, &mut self.writes, &mut self.trims].into_iter().flatten().collect();
        if sides.iter().all(|side| side.align_bytes.is_none()) {
            return;
        }
        for side in &mut sides {
            match side.offsets {
                OffsetRule::Once => side.offsets = OffsetRule::Uniform,
                OffsetRule::Zipf { .. } | OffsetRule::Pareto { .. } => {
                    let why = "places of this distribution are as large as the smallest size here";
                    return reader.refuse_by(&["ba"], why);
                }
                _ => {}
            }
        }
    }
}

/// What a job does, and in which order.
#[derive(Clone, Copy, Debug, Default)]
struct Directions {
    reads: bool,
    writes: bool,
    trims: bool,
    order: Order,
}

/// The directions of a word.
fn directions(text: &str, base: KbBase) -> Result<Directions, BadValue> {
    use Order::{Random, Sequential};
    const IN_ORDER: Order = Sequential(0);
    let (word, steps) = text.split_once(':').map_or((text, None), |(word, steps)| (word, Some(steps.trim())));
    let kind = match word.trim() {
        "read" => (true, false, false, IN_ORDER),
        "write" => (false, true, false, IN_ORDER),
        "rw" | "readwrite" => (true, true, false, IN_ORDER),
        "trim" => (false, false, true, IN_ORDER),
        "trimwrite" => (false, true, true, IN_ORDER),
        "randread" => (true, false, false, Random),
        "randwrite" => (false, true, false, Random),
        "randrw" => (true, true, false, Random),
        "randtrim" => (false, false, true, Random),
        "randtrimwrite" => (false, true, true, Random),
        _ => return Err("is no direction that fio has".into()),
    };
    let (reads, writes, trims, order) = kind;
    match (order, steps) {
        (_, None) | (Random, Some("1")) => Ok(Directions { reads, writes, trims, order }),
        (Sequential(_), Some(steps)) => {
            let skipped = bytes(steps.strip_prefix('-').unwrap_or(steps), base)?;
            let skip_bytes = i64::try_from(skipped).map_err(|_| "leaves too much out")?;
            let sign = if steps.starts_with('-') { -1 } else { 1 };
            Ok(Directions { reads, writes, trims, order: Sequential(sign * skip_bytes) })
        }
        (Random, Some(_)) => Err("rdsk draws the offset of each random request anew".into()),
    }
}

/// The sizes of reads, of writes and of trims.
fn blocks(reader: &mut Reader<'_>) -> [Vec<BlockShare>; 3] {
    type Sides = [Option<Vec<BlockShare>>; 3];
    let of_each =
        |text: &str, share: &dyn Fn(&str) -> Result<Vec<BlockShare>, BadValue>| -> Result<Sides, BadValue> {
            let [reads, writes, trims] = by_direction(text)?;
            Ok([reads.map(share).transpose()?, writes.map(share).transpose()?, trims.map(share).transpose()?])
        };
    let none: Sides = [None, None, None];
    let fixed = reader.value("bs", |text, setting| {
        of_each(text, &|text| Ok(vec![BlockShare::fixed(bytes(text, setting.base)?)]))
    });
    let ranges = reader.value("bsrange", |text, setting| {
        of_each(&text.replace('/', ","), &|text| {
            let (min_bytes, max_bytes) = range(text, setting.base)?;
            Ok(range_shares(min_bytes, max_bytes))
        })
    });
    let splits = reader.value("bssplit", |text, setting| of_each(text, &|text| split(text, setting)));
    let in_turn = [splits, ranges, fixed].map(|sides| sides.unwrap_or(none.clone()));
    let default = || vec![BlockShare::fixed(DEFAULT_BYTES)];
    let side = |of: usize| in_turn.iter().find_map(|sides| sides[of].clone()).unwrap_or_else(default);
    let sides = [side(0), side(1), side(2)];
    if sides.iter().flatten().any(|share| share.min_bytes == 0) {
        reader.refuse_by(&["bssplit", "bsrange", "bs"], "a size of 0");
    }
    sides
}

/// The sizes of a range as fio draws them: multiples of the smallest, and the largest for what is left above these. Of 3 KiB to 10 KiB,
/// three of ten requests each have 3, 6 and 9 KiB, and one has 10.
#[allow(clippy::cast_precision_loss, reason = "sizes of requests are far below 2^53")]
fn range_shares(min_bytes: u64, max_bytes: u64) -> Vec<BlockShare> {
    let rest_bytes = max_bytes.checked_rem(min_bytes).unwrap_or(0);
    let multiples = BlockShare { min_bytes, max_bytes: max_bytes - rest_bytes, weight: 1.0 };
    if rest_bytes == 0 {
        return vec![multiples];
    }
    let weight = |bytes: u64| bytes as f64 / max_bytes as f64;
    vec![
        BlockShare { weight: weight(max_bytes - rest_bytes), ..multiples },
        BlockShare { weight: weight(rest_bytes), ..BlockShare::fixed(max_bytes) },
    ]
}

/// The sizes of `4k/60:64k/40`; those without a share divide what is left.
fn split(text: &str, setting: &Setting) -> Result<Vec<BlockShare>, BadValue> {
    let parts: Vec<(&str, Option<f64>)> = parts(text)?;
    let shares = shared_out(&parts.iter().map(|(_, share)| *share).collect::<Vec<_>>())?;
    let block = |((size, _), weight): (&(&str, Option<f64>), f64)| {
        Ok(BlockShare { weight, ..BlockShare::fixed(bytes(size, setting.base)?) })
    };
    let blocks: Result<Vec<BlockShare>, BadValue> = parts.iter().zip(shares).map(block).collect();
    Ok(blocks?.into_iter().filter(|share| share.weight > 0.0).collect())
}

/// The parts between colons, each with what stands behind its slash; 0 there is nothing, as in fio.
fn parts(text: &str) -> Result<Vec<(&str, Option<f64>)>, BadValue> {
    let part = |part| {
        let (first, second) = str::split_once(part, '/').unwrap_or((part, ""));
        let share = if second.trim().is_empty() {
            None
        } else {
            Some(decimal(second)?).filter(|share| *share != 0.0)
        };
        Ok((first.trim(), share))
    };
    text.split(':').filter(|part| !part.trim().is_empty()).map(part).collect()
}

/// Percentages of which those that are absent divide the rest.
fn shared_out(shares: &[Option<f64>]) -> Result<Vec<f64>, BadValue> {
    let sum: f64 = shares.iter().flatten().sum();
    let absent = shares.iter().filter(|share| share.is_none()).count();
    if shares.is_empty()
        || sum > 100.0
        || (absent == 0 && sum < 100.0)
        || shares.iter().flatten().any(|share| *share < 0.0)
    {
        return Err("its percentages do not make 100".into());
    }
    let rest = (100.0 - sum) / absent.max(1) as f64;
    Ok(shares.iter().map(|share| share.unwrap_or(rest)).collect())
}

/// Where random requests go.
fn random_rule(reader: &mut Reader<'_>, is_of_one_size: bool) -> OffsetRule {
    let rule = reader.value("random_distribution", |text, _| distribution(text)).flatten();
    let is_free = reader.is_set("norandommap");
    match rule {
        Some(rule) => rule,
        None if is_free => OffsetRule::Uniform,
        None if is_of_one_size => OffsetRule::Once,
        None => {
            // fio cuts a request where it meets a block that was used, so that the sizes become smaller than asked for.
            let note = "requests of several sizes keep their sizes and may overlap, as with norandommap";
            reader.notes.push(note.to_owned());
            OffsetRule::Uniform
        }
    }
}

/// A distribution; `None` for fio's ordinary one.
fn distribution(text: &str) -> Result<Option<OffsetRule>, BadValue> {
    let (word, rest) = text.split_once(':').unwrap_or((text, ""));
    let number = |default: f64| match rest.split(':').collect::<Vec<_>>().as_slice() {
        [""] => Ok(default),
        [number] => decimal(number),
        _ => Err("a centre that is not fio's own is not known here".into()),
    };
    Ok(Some(match word.trim() {
        "random" => return Ok(None),
        "zipf" => OffsetRule::Zipf { theta: number(1.1)? },
        "pareto" => OffsetRule::Pareto { skew: number(0.2)? },
        // lib/gauss.c: the mean of twelve numbers, of which the deviation is the twelfth of the span, and then a hash of it.
        "normal" => return Err("fio spreads this over the whole file, and not around its middle".into()),
        "zoned" => zones(rest)?,
        "zoned_abs" => return Err("zones are percentages of the span here: zoned".into()),
        _ => return Err("is no distribution that fio has".into()),
    }))
}

fn zones(text: &str) -> Result<OffsetRule, BadValue> {
    if text.contains(',') {
        return Err("reads and writes have the same zones here".into());
    }
    let parts = parts(text)?;
    let spans = shared_out(&parts.iter().map(|(_, span)| *span).collect::<Vec<_>>())?;
    let access: Vec<Option<f64>> = parts
        .iter()
        .map(|(access, _)| if access.is_empty() { Ok(None) } else { decimal(access).map(Some) })
        .collect::<Result<_, _>>()?;
    let zone = |(access_percent, span_percent)| Zone { access_percent, span_percent };
    Ok(OffsetRule::Zoned { zones: shared_out(&access)?.into_iter().zip(spans).map(zone).collect() })
}

/// What random offsets of reads, writes and trims are multiples of.
fn alignments(reader: &mut Reader<'_>) -> [Option<u64>; 3] {
    let aligned = reader.value("ba", |text, setting| {
        let mut sides = [None; 3];
        for (into, text) in sides.iter_mut().zip(by_direction(text)?) {
            *into = text.map(|text| bytes(text, setting.base)).transpose()?.filter(|bytes| *bytes > 0);
        }
        Ok(sides)
    });
    aligned.unwrap_or_default()
}
