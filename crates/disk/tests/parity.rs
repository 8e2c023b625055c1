//! What a write to an array with parity costs its members, under any geometry, offset and size.

use proptest::prelude::*;
use rdsk_disk::{Array, ArrayParams, DeviceParams, RaidLevel, RamParams, Request};
use std::collections::{BTreeMap, BTreeSet};

const SECTOR: u64 = 512;

/// What a write must cost each member: (reads, read bytes, writes, written bytes), counted sector by sector from the
/// definition of the layout (left-symmetric), not by the arithmetic of the model.
fn owed(params: &ArrayParams, offset_bytes: u64, bytes: u64) -> Vec<(u64, u64, u64, u64)> {
    let (members, chunk) = (params.members as u64, params.chunk_bytes / SECTOR);
    let parities = if params.level == RaidLevel::Raid5 { 1 } else { 2 };
    let data = members - parities;
    // Rows of sectors that are overwritten, by stripe and data chunk.
    let mut written: BTreeMap<u64, BTreeMap<u64, BTreeSet<u64>>> = BTreeMap::new();
    for sector in offset_bytes / SECTOR..(offset_bytes + bytes) / SECTOR {
        let (chunk_index, row) = (sector / chunk, sector % chunk);
        let in_stripe = written.entry(chunk_index / data).or_default();
        in_stripe.entry(chunk_index % data).or_default().insert(row);
    }
    let mut owed = vec![(0, 0, 0, 0); params.members];
    for (stripe, chunks) in written {
        let parity_at = members - 1 - stripe % members;
        let member = |slot: u64| usize::try_from((parity_at + slot) % members).expect("a member");
        let rows: BTreeSet<u64> = chunks.values().flatten().copied().collect();
        let (first, last) = (*rows.first().expect("written"), *rows.last().expect("written"));
        let span = first..=last;
        let bytes_of = |rows: u64| rows * SECTOR;
        let mut read = |slot: u64, rows: u64| {
            owed[member(slot)].0 += 1;
            owed[member(slot)].1 += bytes_of(rows);
        };
        let keeps = |n: &u64| span.clone().any(|row| !chunks.get(n).is_some_and(|rows| rows.contains(&row)));
        let kept: Vec<u64> = (0..data).filter(keeps).collect();
        if !kept.is_empty() && (kept.len() as u64) < chunks.len() as u64 + parities {
            kept.iter().for_each(|n| read(parities + n, last - first + 1));
        } else if !kept.is_empty() {
            chunks.iter().for_each(|(n, rows)| read(parities + n, rows.len() as u64));
            (0..parities).for_each(|n| read(n, last - first + 1));
        }
        for (n, rows) in &chunks {
            owed[member(parities + n)].2 += 1;
            owed[member(parities + n)].3 += bytes_of(rows.len() as u64);
        }
        for n in 0..parities {
            owed[member(n)].2 += 1;
            owed[member(n)].3 += bytes_of(last - first + 1);
        }
    }
    owed
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn parity_costs_exactly_what_it_must(
        double: bool, members in 4_usize..13, chunk in 1_u64..300, place in any::<u32>(), sectors in 1_u64..3000,
    ) {
        let params = ArrayParams {
            level: if double { RaidLevel::Raid6 } else { RaidLevel::Raid5 },
            members: if double { members } else { members - 1 },
            chunk_bytes: chunk * SECTOR,
            command_ns: 0,
            interface_bytes_per_s: 1e9,
            write_back_bytes: 0,
            gather_ns: 0,
member: Box::new(DeviceParams::Ram(RamParams {
                capacity_bytes: 64 << 20,
                read_command_ns: 1000,
                write_command_ns: 1000,
                read_bytes_per_s: 1e9,
                write_bytes_per_s: 1e9,
                servers: 1,
                write_buffer_bytes: 0,
            })),
        };
        let mut array = Array::new(&params, 1);
        let bytes = sectors * SECTOR;
        let last = (array.capacity_bytes() - bytes) / SECTOR;
        let offset_bytes = last * u64::from(place) / (1 << 32) * SECTOR;
        array.submit(0, Request::write(offset_bytes, bytes));
        let seen: Vec<_> =
            array.counts().iter().map(|m| (m.reads, m.read_bytes, m.writes, m.write_bytes)).collect();
        prop_assert_eq!(seen, owed(&params, offset_bytes, bytes));
    }
}
