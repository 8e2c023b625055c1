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

/* Counters of one device; a row of TOTALS, of two cache lines, so that processors share none. */
enum counter {
	ISSUED,            /* requests given to the driver */
	COMPLETED,         /* requests whose last byte is done */
	ISSUED_AT,         /* sum of the moments of issuing, in ns, modulo 2^64 */
	COMPLETED_AT,      /* sum of the moments of completion, likewise */
	LATENCY_SUM,       /* sum of the timed latencies, in ns */
	REQUEUED,          /* requests that the driver gave back */
	HEALED,            /* requests whose completion was never seen */
	UNSEEN,            /* completions of what began before `since` */
	EMPTY,             /* requests without data that asked for a flush; sysfs counts them as writes */
	BACK_MERGES,       /* bios added to the end of a waiting request */
	FRONT_MERGES,      /* bios added to its start */
	REQUEST_MERGES,    /* waiting requests that became one */
	SPLITS,            /* bios that were cut */
	OVERFLOW,          /* events that found a map full */
	BEGUN,             /* changes of a count and its moments that began, and those that are done: while they differ, */
	DONE,              /* the reader must not believe their difference */
	COUNTERS
};

/* Words of a row of LIVE, a cache line: what changes at one device while it is counted. */
enum live {
	SINCE,             /* what began earlier is not followed to its end; 0 while the device is not counted */
	IN_FLIGHT,         /* now */
	DEEPEST,           /* the most that was in flight since the reader wrote 0 here */
	LIVE_WORDS = 8
};

/* Words of STATE, which belong to no device. */
enum state {
	ORIGINS,           /* keys of BIOS */
	UNFOLLOWED,        /* processes that were not followed because CHILDREN was full */
	STATE_WORDS
};

/* What is known of an observed device; the value of the map DEVICES. A device without an entry is not counted. */
struct device {
	u32 index;     /* in the other maps */
	u32 base;      /* of its slots */
	u32 tags;      /* slots of each hardware queue: the driver's tags, then the scheduler's */
	u32 driver_tags;
	u32 queues;    /* hardware queues; 0 for a bio-based device */
};

/* Flags of a request or bio. */
#define FLAG_FUA 1
#define FLAG_PREFLUSH 2
#define FLAG_READ_AHEAD 4
#define FLAG_NOWAIT 8

/* Requests of one kind; the key of the map REQUESTS. */
struct request_kind {
	u32 device;
	u32 op;
	u32 flags;
	u32 bytes;
};

/* Where a bio comes from; the key of the map BIOS. */
struct bio_origin {
	u32 device;
	u32 op;
	u32 flags;
	s32 syscall;   /* -1 if it was no system call */
	u32 task;      /* one of TASK_… */
	char comm[16];
};

#define TASK_THIS 0
#define TASK_OTHER 1
#define TASK_KERNEL 2
#define TASK_CHILD 3

/* Keys of BIOS, and how many of them may name their thread: those that come later share the name below, so that a machine with
 * many threads fills no map and loses no count. */
#define MAX_ORIGINS 4096
#define NAMED_ORIGINS 3072
#define OTHER_THREADS "(others)"

/* A bio on its way through one observed device; the key of the map STARTS. */
struct bio_place {
	u64 bio;
	u64 device;
};

#endif
