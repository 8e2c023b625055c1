/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What the programs and their reader in Rust (src/bpf/layout.rs) agree upon. A test compares the two. */
#ifndef RDSK_SHARED_H
#define RDSK_SHARED_H

/* Buckets of a latency histogram: 128 per power of two of nanoseconds, up to 2^40, as in rdsk_stats::Histogram. */
#define SUB_BITS 7
#define ROW (1 << SUB_BITS)
#define ROWS (40 - SUB_BITS + 1)
#define MAX_NS 1000000000000ULL

/* The largest number of devices; the maps are made as large as the observed devices need. */
#define MAX_DEVICES 256
/* So many are found by comparing their numbers, which is quicker than a hash. */
#define NEAR_DEVICES 4

/* Counters of one device; a row of TOTALS, in cache lines of which processors share none; the first line has what every I/O changes. A
 * count that has moments is changed between its BEGUN and itself: while they differ, the reader must not believe the moments. Each
 * number has one program that changes it, so that an interrupt on the same processor, which runs another program, takes nothing away. */
enum counter {
	ISSUED_BEGUN,
	ISSUED,            /* requests given to the driver */
	ISSUED_AT,         /* sum of the moments of issuing, in ns, modulo 2^64, but for those that took the place of a healed one */
	COMPLETED_BEGUN,
	COMPLETED,         /* requests whose last byte is done */
	COMPLETED_AT,      /* sum of the moments of completion */
	LATENCY_SUM,       /* sum of the timed latencies, in ns */
	HEALED,            /* requests whose completion was never seen; their time in flight goes on in the one that took their place */
	UNSEEN,            /* completions of what was not seen to begin */
	EMPTY,             /* requests without data that asked for a flush; sysfs counts them as writes */
	OVERFLOW,          /* events that found a map full; the only one that several programs change */
	BACK_MERGES,       /* bios added to the end of a waiting request */
	FRONT_MERGES,      /* bios added to its start */
	REQUEST_MERGES,    /* waiting requests that became one */
	SPLITS,            /* bios that were cut */
	REQUEUED_BEGUN,
	REQUEUED,          /* requests that the driver gave back */
	REQUEUED_AT,       /* sum of the moments when it did */
	FLUSH_BIOS,        /* bios without data that ask for a flush, at a device that takes requests; no driver is given them */
	EARLIER,           /* completions of requests that were made before `since`; no UNSEEN ones */
	EARLIER_FLUSHES,   /* those of them that are flushes */
	COUNTERS = 24
};

/* What is known of an observed device: a row of DEVICES, a cache line. */
struct device {
	u64 since;         /* what began earlier is not followed to its end; 0 while the device is not counted, odd while it is only counted */
	u64 base;          /* of its slots */
	u64 tags;          /* slots of each hardware queue: the driver's tags, then the scheduler's */
	u64 driver_tags;
	u64 queues;        /* hardware queues; 0 for a bio-based device */
	u64 in_flight;     /* now */
	u64 deepest;       /* the most that was in flight since the reader wrote 0 here */
	u64 unused;
};

/* The bit of `since` that says: no clocks, no latencies, no depth and no origins of bios, only requests, merges and splits. An I/O costs much less then. */
#define ONLY_COUNTED 1

/* Words of STATE, which belong to no device. */
enum state {
	MORE_NAMES,        /* keys of MORE_ORIGINS */
	UNFOLLOWED,        /* processes that were not followed because CHILDREN was full */
	MORE,              /* not 0 when there is anything in MORE_KINDS or MORE_ORIGINS */
	STATE_WORDS
};

/* Flags of a request or bio. */
#define FLAG_FUA 1
#define FLAG_PREFLUSH 2
#define FLAG_READ_AHEAD 4
#define FLAG_NOWAIT 8

/* What a request or bio is, in one word that is never 0. */
#define WHAT(device, task, flags, op) ((u64)(device) << 32 | 1U << 31 | (task) << 16 | (flags) << 8 | (op))

/* Requests of one kind; a key of MORE_KINDS. */
struct request_kind {
	u64 what;      /* without a task */
	u64 bytes;
};

/* Where a bio comes from; a key of MORE_ORIGINS. */
struct bio_origin {
	u64 what;
	u64 syscall;   /* all ones if it was no system call */
	u64 comm[2];
};

/* A row of KINDS. It belongs to the kind whose `what` came first, for good; the reader believes no row that has counted nothing. */
struct kind_row {
	struct request_kind kind;
	u64 count;
	u64 returned;  /* to be taken from the count */
};

/* A row of ORIGINS, likewise; a cache line. */
struct origin_row {
	struct bio_origin origin;
	u64 count;
	u64 bytes;
	u64 unused[2];
};

/* Rows of each processor, and how many of them are looked at for one key. */
#define KIND_BITS 7
#define KIND_ROWS (1 << KIND_BITS)
#define ORIGIN_BITS 6
#define ORIGIN_ROWS (1 << ORIGIN_BITS)
#define ROWS_TRIED 4

/* A bio under way at a bio-based device. */
struct bio_start {
	u64 owner;     /* its number; 0 for a free place */
	u64 at;        /* when it arrived */
};

/* A row of STARTS, a cache line. */
struct start_row {
	struct bio_start place[4];
};

/* Rows of STARTS, and how many of them are looked at for one bio: there is room for many more bios than are under way, and who finds
 * none is counted in OVERFLOW. */
#define START_BITS 14
#define START_ROWS (1 << START_BITS)
#define STARTS_TRIED 8

#define TASK_THIS 0
#define TASK_OTHER 1
#define TASK_KERNEL 2
#define TASK_CHILD 3

/* Keys of MORE_ORIGINS, and how many of them may name their thread: those that come later share the name below, so that a machine
 * with many threads fills no map and loses no count. */
#define MAX_ORIGINS 4096
#define NAMED_ORIGINS 3072
#define OTHER_THREADS "(others)"

#endif
