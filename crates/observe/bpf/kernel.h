/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The fields of the kernel's types that the programs read. Their places are found when the object is loaded (CO-RE), so these
 * are names and types only; nothing else of the types needs to be known. */
#ifndef RDSK_KERNEL_H
#define RDSK_KERNEL_H

typedef unsigned char u8;
typedef unsigned int u32;
typedef int s32;
typedef unsigned long long u64;

#define KERNEL_TYPE __attribute__((preserve_access_index))

struct gendisk;

struct block_device {
	u32 bd_dev;
	struct gendisk *bd_disk;
} KERNEL_TYPE;

struct gendisk {
	struct block_device *part0;
} KERNEL_TYPE;

struct request_queue {
	struct gendisk *disk;
} KERNEL_TYPE;

struct blk_mq_hw_ctx {
	unsigned int queue_num;
} KERNEL_TYPE;

enum mq_rq_state {
	MQ_RQ_IDLE = 0,
};

struct request {
	struct request_queue *q;
	struct blk_mq_hw_ctx *mq_hctx;
	struct block_device *part;
	u32 cmd_flags;
	int tag;
	int internal_tag;
	unsigned int __data_len;
	enum mq_rq_state state;
	u64 start_time_ns;
} KERNEL_TYPE;

struct bvec_iter {
	unsigned int bi_size;
	unsigned int bi_idx;
	unsigned int bi_bvec_done;
} KERNEL_TYPE;

struct bio {
	struct block_device *bi_bdev;
	u32 bi_opf;
	u8 bi_status;
	struct bvec_iter bi_iter;
} KERNEL_TYPE;

struct task_struct {
	unsigned int flags;
	int pid;
	int tgid;
	char comm[16];
} KERNEL_TYPE;

/* The number of the system call, where each architecture keeps it. */
struct pt_regs___x86 {
	unsigned long orig_ax;
} KERNEL_TYPE;

struct pt_regs___arm64 {
	s32 syscallno;
} KERNEL_TYPE;

/* Bits of cmd_flags and bi_opf; their values differ between kernels and are found when the object is loaded. */
enum req_flag_bits {
	__REQ_FUA = 17,
	__REQ_PREFLUSH = 18,
	__REQ_RAHEAD = 19,
	__REQ_NOWAIT = 21,
};

#endif
