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

/* Set before the object is loaded. The process whose bios are "this". */
volatile const u32 OWN_PROCESS = 0;
/* Whether those of its children, and of theirs, are "child". */
volatile const u32 FOLLOWS_CHILDREN = 0;
/* How many devices are observed. */
volatile const u32 DEVICE_COUNT = 1;
/* Rows of each device in TOTALS and LATENCIES; one for each processor, unless that takes too much memory. */
volatile const u32 LANES = 1;
/* Whether processors share such rows. */
volatile const u32 LANES_ARE_SHARED = 0;

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MAX_DEVICES);
	__type(key, u32);
	__type(value, struct device);
} DEVICES SEC(".maps");

/* The reader maps the arrays into its memory, so that looking at them takes no system call. An array for each processor could not be
 * mapped; its rows are in lanes instead. */

/* A row for each device. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u64[LIVE_WORDS]);
} LIVE SEC(".maps");

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
	__type(key, struct bio_place);
	__type(value, u64);
} STARTS SEC(".maps");

/* COUNTERS for each lane and device. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u64[COUNTERS]);
} TOTALS SEC(".maps");

/* ROWS for each lane and device, each the buckets of one power of two. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u64[ROW]);
} LATENCIES SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u64[STATE_WORDS]);
} STATE SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_HASH);
	__uint(max_entries, 16384);
	__type(key, struct request_kind);
	__type(value, u64);
} REQUESTS SEC(".maps");

/* Count and bytes. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_HASH);
	__uint(max_entries, MAX_ORIGINS);
	__type(key, struct bio_origin);
	__type(value, u64[2]);
} BIOS SEC(".maps");

/* The living children of our process, and theirs, by tgid. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u32);
} CHILDREN SEC(".maps");

#define BIT_OF(flags, name) ((flags) >> bpf_core_enum_value(enum req_flag_bits, name) & 1)

static __always_inline u32 flags_of(u32 raw)
{
	return BIT_OF(raw, __REQ_FUA) * FLAG_FUA | BIT_OF(raw, __REQ_PREFLUSH) * FLAG_PREFLUSH |
	       BIT_OF(raw, __REQ_RAHEAD) * FLAG_READ_AHEAD | BIT_OF(raw, __REQ_NOWAIT) * FLAG_NOWAIT;
}

/* Adds to a number of a lane. */
#define ADD(where, what)                                                                                               \
	do {                                                                                                           \
		if (LANES_ARE_SHARED)                                                                                  \
			__sync_fetch_and_add(where, what);                                                             \
		else                                                                                                   \
			*(where) += (what);                                                                            \
	} while (0)

/* Where an event is counted: a device that is observed and counted now. */
struct place {
	struct device *device;
	u64 *live;
	u64 *totals;
	u64 since;
	u32 row;       /* of this lane */
};

static __always_inline int find(struct place *place, u32 number)
{
	u32 index, lane = bpf_get_smp_processor_id();

	place->device = bpf_map_lookup_elem(&DEVICES, &number);
	if (!place->device)
		return 0;
	index = place->device->index;
	place->live = bpf_map_lookup_elem(&LIVE, &index);
	if (!place->live)
		return 0;
	/* The reader may write 0 at any time; one look decides. */
	place->since = *(volatile u64 *)&place->live[SINCE];
	if (!place->since)
		return 0;
	if (lane >= LANES)
		lane %= LANES;
	place->row = lane * DEVICE_COUNT + index;
	place->totals = bpf_map_lookup_elem(&TOTALS, &place->row);
	return place->totals != 0;
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

static __always_inline void add_latency(const struct place *place, u64 ns)
{
	u32 bucket, bit, shift, row;
	u64 *counts;

	ns = ns < 1 ? 1 : ns > MAX_NS ? MAX_NS : ns;
	ADD(&place->totals[LATENCY_SUM], ns);
	bit = highest_bit(ns);
	shift = bit > SUB_BITS ? bit - SUB_BITS : 0;
	bucket = (shift << SUB_BITS) + (u32)(ns >> shift);
	row = place->row * ROWS + (bucket >> SUB_BITS);
	counts = bpf_map_lookup_elem(&LATENCIES, &row);
	if (counts)
		ADD(&counts[bucket & (ROW - 1)], 1);
}

/* Counts an event and its moment, so that the reader sees both or knows that it does not. */
static __always_inline void add_moment(const struct place *place, u32 count, u32 moments, u64 now)
{
	ADD(&place->totals[BEGUN], 1);
	barrier();
	ADD(&place->totals[count], 1);
	ADD(&place->totals[moments], now);
	barrier();
	ADD(&place->totals[DONE], 1);
}

static __always_inline void enter(const struct place *place, u64 now)
{
	u64 depth;

	add_moment(place, ISSUED, ISSUED_AT, now);
	depth = __sync_fetch_and_add(&place->live[IN_FLIGHT], 1) + 1;
	/* Processors may store theirs in the wrong order; then a smaller one stays, by less than there are processors. */
	if (depth > place->live[DEEPEST])
		place->live[DEEPEST] = depth;
}

/* One is in flight no more; `why` is COMPLETED, REQUEUED or HEALED. */
static __always_inline void leave(const struct place *place, u32 why, u64 now)
{
	add_moment(place, why, COMPLETED_AT, now);
	__sync_fetch_and_add(&place->live[IN_FLIGHT], -1);
}

static __always_inline void complete_one(const struct place *place, u64 start)
{
	u64 now = bpf_ktime_get_ns();

	leave(place, COMPLETED, now);
	add_latency(place, now - start);
}

static __always_inline void add_request(const struct place *place, const struct request_kind *kind, u64 by)
{
	u64 *count = bpf_map_lookup_elem(&REQUESTS, kind);

	if (!count) {
		if (bpf_map_update_elem(&REQUESTS, kind, &by, BPF_NOEXIST) == 0)
			return;
		/* Another processor may have been quicker. */
		count = bpf_map_lookup_elem(&REQUESTS, kind);
	}
	if (count)
		*count += by;
	else
		ADD(&place->totals[OVERFLOW], 1);
}

static __always_inline u64 *state(void)
{
	u32 first = 0;

	return bpf_map_lookup_elem(&STATE, &first);
}

static __always_inline void add_bio(const struct place *place, struct bio_origin *origin, u32 bytes)
{
	u64 *sum = bpf_map_lookup_elem(&BIOS, origin), *numbers = state(), first[2] = { 1, bytes };

	if (!sum && numbers && numbers[ORIGINS] >= NAMED_ORIGINS) {
		__builtin_memset(origin->comm, 0, sizeof(origin->comm));
		__builtin_memcpy(origin->comm, OTHER_THREADS, sizeof(OTHER_THREADS));
		sum = bpf_map_lookup_elem(&BIOS, origin);
	}
	if (!sum) {
		if (bpf_map_update_elem(&BIOS, origin, first, BPF_NOEXIST) == 0) {
			if (numbers)
				__sync_fetch_and_add(&numbers[ORIGINS], 1);
			return;
		}
		/* Another processor may have been quicker. */
		sum = bpf_map_lookup_elem(&BIOS, origin);
	}
	if (!sum) {
		ADD(&place->totals[OVERFLOW], 1);
		return;
	}
	sum[0] += 1;
	sum[1] += bytes;
}

/* Whose bios those of a process are. */
static __always_inline u32 task_of(u32 process)
{
	if (process == OWN_PROCESS)
		return TASK_THIS;
	return FOLLOWS_CHILDREN && bpf_map_lookup_elem(&CHILDREN, &process) ? TASK_CHILD : TASK_OTHER;
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
