/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Counts what the block layer does with the I/O of some devices: requests by exact size, merges, splits, time in the device,
 * queue depth, and bios by the system call and the task that submitted them. It changes nothing and keeps no data. `cargo
 * xtask bpf` compiles it to observer.bpf.o, which is part of the repository. */
#include <linux/bpf.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include "kernel.h"
#include "shared.h"

/* Bits of task_struct::flags, which are defines of the kernel and the same since 2.6. */
#define PF_IO_WORKER 0x00000010
#define PF_KTHREAD 0x00200000
/* Of cmd_flags and bi_opf. */
#define OP_MASK 0xff
#define OP_FLUSH 2

/* Set before the object is loaded: the process whose bios are "this". */
volatile const u32 OWN_PROCESS = 0;

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MAX_DEVICES);
	__type(key, u32);
	__type(value, struct device);
} DEVICES SEC(".maps");

/* The moment of issuing of the request in each tag of each hardware queue; 0 if there is none. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u64);
} SLOTS SEC(".maps");

/* The moment when a bio arrived at a bio-based device. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, u64);
	__type(value, u64);
} STARTS SEC(".maps");

/* COUNTERS per device. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u64[COUNTERS]);
} TOTALS SEC(".maps");

/* ROWS per device, each the buckets of one power of two. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u64[ROW]);
} LATENCIES SEC(".maps");

/* What is in flight now, one per device. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u64);
} IN_FLIGHT SEC(".maps");

/* The most that was in flight since the reader wrote 0 here. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u64);
} DEEPEST SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_HASH);
	__uint(max_entries, 16384);
	__type(key, struct request_kind);
	__type(value, u64);
} REQUESTS SEC(".maps");

/* Count and bytes. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_HASH);
	__uint(max_entries, 4096);
	__type(key, struct bio_origin);
	__type(value, u64[2]);
} BIOS SEC(".maps");

#define BIT_OF(flags, name) ((flags) >> bpf_core_enum_value(enum req_flag_bits, name) & 1)

static __always_inline u32 flags_of(u32 raw)
{
	return BIT_OF(raw, __REQ_FUA) * FLAG_FUA | BIT_OF(raw, __REQ_PREFLUSH) * FLAG_PREFLUSH |
	       BIT_OF(raw, __REQ_RAHEAD) * FLAG_READ_AHEAD | BIT_OF(raw, __REQ_NOWAIT) * FLAG_NOWAIT;
}

static __always_inline u64 *totals_of(const struct device *device)
{
	u32 index = device->index;

	return bpf_map_lookup_elem(&TOTALS, &index);
}

/* The place of the highest bit of a number that is not 0. */
static __always_inline u32 highest_bit(u64 value)
{
	u32 bit = 0;

#define STEP(width)                                                                                                    \
	if (value >> width) {                                                                                          \
		value >>= width;                                                                                       \
		bit += width;                                                                                          \
	}
	STEP(32) STEP(16) STEP(8) STEP(4) STEP(2) STEP(1)
#undef STEP
	return bit;
}

static __always_inline void add_latency(const struct device *device, u64 *totals, u64 ns)
{
	u32 bucket, bit, shift, row;
	u64 *counts;

	ns = ns < 1 ? 1 : ns > MAX_NS ? MAX_NS : ns;
	totals[LATENCY_SUM] += ns;
	bit = highest_bit(ns);
	shift = bit > SUB_BITS ? bit - SUB_BITS : 0;
	bucket = (shift << SUB_BITS) + (u32)(ns >> shift);
	row = device->index * ROWS + (bucket >> SUB_BITS);
	counts = bpf_map_lookup_elem(&LATENCIES, &row);
	if (counts)
		counts[bucket & (ROW - 1)] += 1;
}

static __always_inline void enter(const struct device *device, u64 *totals, u64 now)
{
	u32 index = device->index;
	u64 *in_flight = bpf_map_lookup_elem(&IN_FLIGHT, &index);
	u64 *deepest = bpf_map_lookup_elem(&DEEPEST, &index);
	u64 depth;

	totals[ISSUED] += 1;
	totals[ISSUED_AT] += now;
	if (!in_flight || !deepest)
		return;
	depth = __sync_fetch_and_add(in_flight, 1) + 1;
	/* Processors may store theirs in the wrong order; then a smaller one stays, by less than there are processors. */
	if (depth > *deepest)
		*deepest = depth;
}

static __always_inline void leave(const struct device *device, u64 *totals, u64 now)
{
	u32 index = device->index;
	u64 *in_flight = bpf_map_lookup_elem(&IN_FLIGHT, &index);

	totals[COMPLETED_AT] += now;
	if (in_flight)
		__sync_fetch_and_add(in_flight, -1);
}

static __always_inline void add_request(u64 *totals, const struct request_kind *kind, u64 by)
{
	u64 *count = bpf_map_lookup_elem(&REQUESTS, kind);

	if (count)
		*count += by;
	else if (bpf_map_update_elem(&REQUESTS, kind, &by, BPF_NOEXIST) != 0)
		totals[OVERFLOW] += 1;
}

#define WAY(name) name##_btf
#define ATTACH(event) "tp_btf/" event
#define READ(from, field) ((from)->field)
#include "programs.h"
#undef WAY
#undef ATTACH
#undef READ

#define WAY(name) name##_raw
#define ATTACH(event) "raw_tp/" event
#define READ(from, field) BPF_CORE_READ(from, field)
#include "programs.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";
