/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The programs, one per tracepoint of the block layer. Included once for each way to attach: WAY names them, ATTACH says where,
 * READ reads a field of the kernel's memory. The arguments are those of the tracepoints since Linux 5.11. */

/* An observed partition comes before its disk. */
static __always_inline struct device *WAY(device_of)(struct block_device *part, struct gendisk *disk)
{
	struct block_device *whole;
	struct device *device;
	u32 number = READ(part, bd_dev);

	device = bpf_map_lookup_elem(&DEVICES, &number);
	if (device)
		return device;
	whole = READ(disk, part0);
	number = READ(whole, bd_dev);
	return bpf_map_lookup_elem(&DEVICES, &number);
}

static __always_inline struct device *WAY(device_of_request)(struct request *rq)
{
	struct request_queue *queue = READ(rq, q);

	return WAY(device_of)(READ(rq, part), READ(queue, disk));
}

static __always_inline struct device *WAY(device_of_bio)(struct bio *bio)
{
	struct block_device *part = READ(bio, bi_bdev);

	return WAY(device_of)(part, READ(part, bd_disk));
}

static __always_inline u64 *WAY(slot_of)(const struct device *device, struct request *rq)
{
	struct blk_mq_hw_ctx *context = READ(rq, mq_hctx);
	u32 queue = READ(context, queue_num);
	/* A scheduler's own tag stays while the driver's comes and goes; without a scheduler there is only the driver's. */
	s32 own = READ(rq, internal_tag);
	u32 tag = own >= 0 ? device->driver_tags + own : READ(rq, tag);
	u32 slot;

	if (queue >= device->queues || tag >= device->tags)
		return 0;
	slot = device->base + queue * device->tags + tag;
	return bpf_map_lookup_elem(&SLOTS, &slot);
}

static __always_inline struct request_kind WAY(kind_of)(const struct device *device, struct request *rq)
{
	u32 raw = READ(rq, cmd_flags);
	struct request_kind kind = {
		.device = device->index,
		.op = raw & OP_MASK,
		.flags = flags_of(raw),
		.bytes = READ(rq, __data_len),
	};

	return kind;
}

SEC(ATTACH("block_rq_issue"))
int WAY(issue)(u64 *context)
{
	struct request *rq = (struct request *)context[0];
	struct device *device = WAY(device_of_request)(rq);
	u64 *totals, *slot, now;
	struct request_kind kind;

	if (!device || !(totals = totals_of(device)))
		return 0;
	now = bpf_ktime_get_ns();
	kind = WAY(kind_of)(device, rq);
	add_request(totals, &kind, 1);
	slot = WAY(slot_of)(device, rq);
	if (!slot) {
		totals[OVERFLOW] += 1;
		return 0;
	}
	if (*slot >= device->since) {
		totals[HEALED] += 1;
		leave(device, totals, now);
	}
	*slot = now;
	enter(device, totals, now);
	return 0;
}

SEC(ATTACH("block_rq_requeue"))
int WAY(requeue)(u64 *context)
{
	struct request *rq = (struct request *)context[0];
	struct device *device = WAY(device_of_request)(rq);
	u64 *totals, *slot;
	struct request_kind kind;

	if (!device || !(totals = totals_of(device)))
		return 0;
	slot = WAY(slot_of)(device, rq);
	if (!slot || *slot < device->since)
		return 0;
	*slot = 0;
	totals[REQUEUED] += 1;
	leave(device, totals, bpf_ktime_get_ns());
	/* It will be issued, and counted, again. */
	kind = WAY(kind_of)(device, rq);
	add_request(totals, &kind, -1);
	return 0;
}

SEC(ATTACH("block_rq_complete"))
int WAY(complete)(u64 *context)
{
	struct request *rq = (struct request *)context[0];
	u32 done = (u32)context[2], length = READ(rq, __data_len);
	struct device *device = WAY(device_of_request)(rq);
	u64 *totals, *slot, now;

	if (!device || !(totals = totals_of(device)))
		return 0;
	/* A part of a request, the rest is still to come. */
	if (done < length)
		return 0;
	slot = WAY(slot_of)(device, rq);
	if (!slot || *slot < device->since) {
		/* What asks for a flush ends once more when the flush, a request of its own, is done: without data, it has not
		 * been started at all; with data, its end was seen before. */
		if (length == 0 && (READ(rq, cmd_flags) & OP_MASK) != OP_FLUSH) {
			totals[EMPTY] += READ(rq, state) == MQ_RQ_IDLE;
			return 0;
		}
		totals[UNSEEN] += 1;
		return 0;
	}
	now = bpf_ktime_get_ns();
	totals[COMPLETED] += 1;
	leave(device, totals, now);
	add_latency(device, totals, now - *slot);
	*slot = 0;
	return 0;
}

static __always_inline int WAY(add_to_request)(struct request *rq, u32 counter)
{
	struct device *device = WAY(device_of_request)(rq);
	u64 *totals;

	if (device && (totals = totals_of(device)))
		totals[counter] += 1;
	return 0;
}

static __always_inline int WAY(add_to_bio)(struct bio *bio, u32 counter)
{
	struct device *device = WAY(device_of_bio)(bio);
	u64 *totals;

	if (device && (totals = totals_of(device)))
		totals[counter] += 1;
	return 0;
}

SEC(ATTACH("block_rq_merge"))
int WAY(request_merge)(u64 *context)
{
	return WAY(add_to_request)((struct request *)context[0], REQUEST_MERGES);
}

SEC(ATTACH("block_bio_backmerge"))
int WAY(back_merge)(u64 *context)
{
	return WAY(add_to_bio)((struct bio *)context[0], BACK_MERGES);
}

SEC(ATTACH("block_bio_frontmerge"))
int WAY(front_merge)(u64 *context)
{
	return WAY(add_to_bio)((struct bio *)context[0], FRONT_MERGES);
}

SEC(ATTACH("block_split"))
int WAY(split)(u64 *context)
{
	return WAY(add_to_bio)((struct bio *)context[0], SPLITS);
}

static __always_inline s32 WAY(system_call)(struct task_struct *task)
{
	long regs = bpf_task_pt_regs(task);

	if (bpf_core_field_exists(struct pt_regs___x86, orig_ax))
		return (s32)BPF_CORE_READ((struct pt_regs___x86 *)regs, orig_ax);
	if (bpf_core_field_exists(struct pt_regs___arm64, syscallno))
		return BPF_CORE_READ((struct pt_regs___arm64 *)regs, syscallno);
	return -1;
}

static __always_inline void WAY(add_origin)(const struct device *device, u64 *totals, struct bio *bio)
{
	struct task_struct *task = bpf_get_current_task_btf();
	u32 raw = READ(bio, bi_opf), bytes = READ(bio, bi_iter.bi_size);
	u64 *sum, first[2] = { 1, bytes };
	struct bio_origin origin;

	/* Padding belongs to the key, too. */
	__builtin_memset(&origin, 0, sizeof(origin));
	origin.device = device->index;
	origin.op = raw & OP_MASK;
	origin.flags = flags_of(raw);
	origin.syscall = -1;
	if (READ(task, flags) & PF_KTHREAD) {
		origin.task = TASK_KERNEL;
	} else {
		origin.task = (u32)READ(task, tgid) == OWN_PROCESS ? TASK_THIS : TASK_OTHER;
		if (!(READ(task, flags) & PF_IO_WORKER))
			origin.syscall = WAY(system_call)(task);
	}
	bpf_get_current_comm(origin.comm, sizeof(origin.comm));
	sum = bpf_map_lookup_elem(&BIOS, &origin);
	if (sum) {
		sum[0] += 1;
		sum[1] += bytes;
	} else if (bpf_map_update_elem(&BIOS, &origin, first, BPF_NOEXIST) != 0) {
		totals[OVERFLOW] += 1;
	}
}

SEC(ATTACH("block_bio_queue"))
int WAY(bio_queue)(u64 *context)
{
	struct bio *bio = (struct bio *)context[0];
	struct device *device = WAY(device_of_bio)(bio);
	u64 *totals, *start, key = (u64)bio, now;

	if (!device || !(totals = totals_of(device)))
		return 0;
	WAY(add_origin)(device, totals, bio);
	if (device->queues)
		return 0;
	now = bpf_ktime_get_ns();
	start = bpf_map_lookup_elem(&STARTS, &key);
	if (start && *start >= device->since) {
		totals[HEALED] += 1;
		leave(device, totals, now);
	}
	if (bpf_map_update_elem(&STARTS, &key, &now, BPF_ANY) != 0) {
		totals[OVERFLOW] += 1;
		return 0;
	}
	enter(device, totals, now);
	struct request_kind kind = {
		.device = device->index,
		.op = READ(bio, bi_opf) & OP_MASK,
		.flags = flags_of(READ(bio, bi_opf)),
		.bytes = READ(bio, bi_iter.bi_size),
	};
	add_request(totals, &kind, 1);
	return 0;
}

SEC(ATTACH("block_bio_complete"))
int WAY(bio_complete)(u64 *context)
{
	struct bio *bio = (struct bio *)context[1];
	struct device *device = WAY(device_of_bio)(bio);
	u64 *totals, *start, key = (u64)bio, now;

	if (!device || device->queues || !(totals = totals_of(device)))
		return 0;
	start = bpf_map_lookup_elem(&STARTS, &key);
	if (!start || *start < device->since) {
		totals[UNSEEN] += 1;
		return 0;
	}
	now = bpf_ktime_get_ns();
	totals[COMPLETED] += 1;
	leave(device, totals, now);
	add_latency(device, totals, now - *start);
	bpf_map_delete_elem(&STARTS, &key);
	return 0;
}
