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
/* A value of bi_status (BLK_STS_AGAIN), the same since 4.13. */
#define STATUS_AGAIN 12

/* Set before the object is loaded. The process whose bios are "this". */
volatile const u32 OWN_PROCESS = 0;
/* Whether those of its children, and of theirs, are "child". */
volatile const u32 FOLLOWS_CHILDREN = 0;
/* How many devices are observed, and the numbers of the first of them. */
volatile const u32 DEVICE_COUNT = 1;
volatile const u32 DEVICE_NUMBERS[NEAR_DEVICES] = {};
/* Rows of each device in TOTALS and LATENCIES; one for each processor, unless that takes too much memory. */
volatile const u32 LANES = 1;
/* Whether processors share such rows. */
volatile const u32 LANES_ARE_SHARED = 0;

/* The row in DEVICES by device number, where there are more than NEAR_DEVICES. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MAX_DEVICES);
	__type(key, u32);
	__type(value, u32);
} INDEXES SEC(".maps");

/* The reader maps most arrays into its memory, so that looking at them takes no system call. An array for each processor could not be
 * mapped; its rows are in lanes instead. */
#define MAPPED_ARRAY(name, row)                                                                                        \
	struct {                                                                                                       \
		__uint(type, BPF_MAP_TYPE_ARRAY);                                                                      \
		__uint(map_flags, BPF_F_MMAPABLE);                                                                     \
		__uint(max_entries, 1);                                                                                \
		__type(key, u32);                                                                                      \
		__type(value, row);                                                                                    \
	} name SEC(".maps")

/* A row for each device. */
MAPPED_ARRAY(DEVICES, struct device);
/* COUNTERS for each lane and device. */
MAPPED_ARRAY(TOTALS, u64[COUNTERS]);
/* ROWS for each lane and device, each the buckets of one power of two. */
MAPPED_ARRAY(LATENCIES, u64[ROW]);
/* KIND_ROWS and ORIGIN_ROWS for each processor: hash tables that only grow. What finds no place in them is in the maps below, which
 * cost more for each event. */
MAPPED_ARRAY(KINDS, struct kind_row);
MAPPED_ARRAY(ORIGINS, struct origin_row);
/* The bios under way, by the hash of their address; one row where no device takes bios. */
MAPPED_ARRAY(STARTS, struct start_row);
MAPPED_ARRAY(STATE, u64[STATE_WORDS]);

/* The moment of issuing of the request in each tag of each hardware queue; 0 if there is none. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u64);
} SLOTS SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_HASH);
	__uint(max_entries, 16384);
	__type(key, struct request_kind);
	__type(value, u64);
} MORE_KINDS SEC(".maps");

/* Count and bytes. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_HASH);
	__uint(max_entries, MAX_ORIGINS);
	__type(key, struct bio_origin);
	__type(value, u64[2]);
} MORE_ORIGINS SEC(".maps");

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
	u64 *totals;
	u64 since;     /* may be ONLY_COUNTED */
	u32 index;     /* of the device */
	u32 row;       /* of this lane and device */
	u32 processor;
};

/* An event that finds no room. An interrupt may count one between the steps of another program, so this is always one step. */
static __always_inline void overflow(const struct place *place)
{
	__sync_fetch_and_add(&place->totals[OVERFLOW], 1);
}

static __always_inline int is_timed(const struct place *place)
{
	return !(place->since & ONLY_COUNTED);
}

/* The index of a device by its number; an index that no device has, if it is not observed. */
static __always_inline u32 index_of(u32 number)
{
	u32 *index;

	if (DEVICE_COUNT > NEAR_DEVICES) {
		index = bpf_map_lookup_elem(&INDEXES, &number);
		return index ? *index : ~0U;
	}
#define COMPARE(which)                                                                                                 \
	if (DEVICE_COUNT > which && number == DEVICE_NUMBERS[which])                                                   \
		return which;
	COMPARE(0) COMPARE(1) COMPARE(2) COMPARE(3)
#undef COMPARE
	return ~0U;
}

static __always_inline int find(struct place *place, u32 number)
{
	u32 index = index_of(number), lane;

	place->device = bpf_map_lookup_elem(&DEVICES, &index);
	if (!place->device)
		return 0;
	/* The reader may write 0 at any time; one look decides. */
	place->since = *(volatile u64 *)&place->device->since;
	if (!place->since)
		return 0;
	place->index = index;
	place->processor = lane = bpf_get_smp_processor_id();
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
static __always_inline void add_moment(const struct place *place, u32 begun, u32 moments, u32 count, u64 now)
{
	ADD(&place->totals[begun], 1);
	barrier();
	ADD(&place->totals[moments], now);
	barrier();
	ADD(&place->totals[count], 1);
}

static __always_inline void enter(const struct place *place, u64 now)
{
	u64 depth;

	add_moment(place, ISSUED_BEGUN, ISSUED_AT, ISSUED, now);
	depth = __sync_fetch_and_add(&place->device->in_flight, 1) + 1;
	/* Processors may store theirs in the wrong order; then a smaller one stays, by less than there are processors. */
	if (depth > place->device->deepest)
		place->device->deepest = depth;
}

/* One takes the place of another, whose completion was not seen. */
static __always_inline void heal(const struct place *place)
{
	ADD(&place->totals[ISSUED_BEGUN], 1);
	barrier();
	ADD(&place->totals[HEALED], 1);
	barrier();
	ADD(&place->totals[ISSUED], 1);
}

static __always_inline void complete_one(const struct place *place, u64 start)
{
	u64 now = bpf_ktime_get_ns();

	add_moment(place, COMPLETED_BEGUN, COMPLETED_AT, COMPLETED, now);
	__sync_fetch_and_add(&place->device->in_flight, -1);
	add_latency(place, now - start);
}

static __always_inline u64 *state(void)
{
	u32 first = 0;

	return bpf_map_lookup_elem(&STATE, &first);
}

/* The upper bits of what is mixed well. */
static __always_inline u32 hash(u64 value, u32 bits)
{
	return value * 0x9e3779b97f4a7c15ULL >> (64 - bits);
}

/* Whose bios those of a process are. */
static __always_inline u32 task_of(u32 process)
{
	if (process == OWN_PROCESS)
		return TASK_THIS;
	return FOLLOWS_CHILDREN && bpf_map_lookup_elem(&CHILDREN, &process) ? TASK_CHILD : TASK_OTHER;
}

#include "tables.h"
#include "starts.h"

#define WAY(name) name##_btf
#define ATTACH(event) "tp_btf/" event
#define READ(from, field) ((from)->field)
/* The address of something of the kernel as a number, but for a constant: a pointer may not be shifted, the difference of two may. */
#define ADDRESS(pointer) ((u64)(pointer) - (u64)&DEVICE_COUNT)
/* The two words of a name. */
#define READ_COMM(task, words)                                                                                         \
	do {                                                                                                           \
		(words)[0] = *(u64 *)&(task)->comm[0];                                                                 \
		(words)[1] = *(u64 *)&(task)->comm[8];                                                                 \
	} while (0)
#include "programs.h"
#undef WAY
#undef ATTACH
#undef READ
#undef ADDRESS
#undef READ_COMM

#define WAY(name) name##_raw
#define ATTACH(event) "raw_tp/" event
#define READ(from, field) BPF_CORE_READ(from, field)
#define ADDRESS(pointer) ((u64)(pointer))
#define READ_COMM(task, words) bpf_get_current_comm(words, 16)
#include "programs.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";
