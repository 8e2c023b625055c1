/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The programs, one per tracepoint. Included once for each way to attach: WAY names them, ATTACH says where, READ reads a field of
 * the kernel's memory. The arguments are those of the tracepoints since Linux 5.11. What happens to a partition happens to its disk, too,
 * and each of them has its own counts if it is observed. */

/* The numbers of the partition and of its disk; both are the same for I/O to the whole disk. */
struct WAY(numbers) {
	u32 part;
	u32 disk;
};

static __always_inline struct WAY(numbers) WAY(numbers_of)(struct block_device *part, struct gendisk *disk)
{
	struct block_device *whole = READ(disk, part0);
	struct WAY(numbers) numbers = { .part = READ(part, bd_dev), .disk = READ(whole, bd_dev) };

	return numbers;
}

static __always_inline struct WAY(numbers) WAY(numbers_of_request)(struct request *rq)
{
	struct request_queue *queue = READ(rq, q);

	return WAY(numbers_of)(READ(rq, part), READ(queue, disk));
}

static __always_inline struct WAY(numbers) WAY(numbers_of_bio)(struct bio *bio)
{
	struct block_device *part = READ(bio, bi_bdev);

	return WAY(numbers_of)(part, READ(part, bd_disk));
}

static __always_inline u32 WAY(op_of)(struct request *rq)
{
	return READ(rq, cmd_flags) & OP_MASK;
}

/* A request without a partition is the disk's alone, and so is a flush: the kernel counts it for the disk. */
static __always_inline int WAY(concerns_part)(struct request *rq, const struct WAY(numbers) *numbers)
{
	return numbers->part && numbers->part != numbers->disk && WAY(op_of)(rq) != OP_FLUSH;
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

static __always_inline struct request_kind WAY(kind_of)(const struct place *place, struct request *rq)
{
	u32 raw = READ(rq, cmd_flags);
	struct request_kind kind = {
		.what = WHAT(place->index, 0, flags_of(raw), raw & OP_MASK),
		.bytes = READ(rq, __data_len),
	};

	return kind;
}

static __always_inline void WAY(issue_at)(struct request *rq, u32 number)
{
	struct request_kind kind;
	struct place place;
	u64 *slot, now;

	if (!find(&place, number))
		return;
	kind = WAY(kind_of)(&place, rq);
	add_request(&place, &kind);
	slot = WAY(slot_of)(place.device, rq);
	if (!slot) {
		overflow(&place);
		return;
	}
	if (!is_timed(&place)) {
		/* That it was counted, for the case that the driver gives it back. */
		*slot = place.since;
		return;
	}
	now = bpf_ktime_get_ns();
	if (*slot >= place.since)
		heal(&place);
	else
		enter(&place, now);
	*slot = now;
}

SEC(ATTACH("block_rq_issue"))
int WAY(issue)(u64 *context)
{
	struct request *rq = (struct request *)context[0];
	struct WAY(numbers) numbers = WAY(numbers_of_request)(rq);

	WAY(issue_at)(rq, numbers.disk);
	if (WAY(concerns_part)(rq, &numbers))
		WAY(issue_at)(rq, numbers.part);
	return 0;
}

static __always_inline void WAY(requeue_at)(struct request *rq, u32 number)
{
	struct request_kind kind;
	struct place place;
	u64 *slot;

	if (!find(&place, number))
		return;
	slot = WAY(slot_of)(place.device, rq);
	if (!slot || *slot < (place.since & ~(u64)ONLY_COUNTED))
		return;
	*slot = 0;
	if (is_timed(&place)) {
		add_moment(&place, REQUEUED_BEGUN, REQUEUED_AT, REQUEUED, bpf_ktime_get_ns());
		__sync_fetch_and_add(&place.device->in_flight, -1);
	}
	/* It will be issued, and counted, again. */
	kind = WAY(kind_of)(&place, rq);
	add_request_elsewhere(&place, &kind, -1);
}

SEC(ATTACH("block_rq_requeue"))
int WAY(requeue)(u64 *context)
{
	struct request *rq = (struct request *)context[0];
	struct WAY(numbers) numbers = WAY(numbers_of_request)(rq);

	WAY(requeue_at)(rq, numbers.disk);
	if (WAY(concerns_part)(rq, &numbers))
		WAY(requeue_at)(rq, numbers.part);
	return 0;
}

static __always_inline void WAY(complete_at)(struct request *rq, u32 number)
{
	struct place place;
	u64 *slot, made;

	if (!find(&place, number) || !is_timed(&place))
		return;
	slot = WAY(slot_of)(place.device, rq);
	if (slot && *slot >= place.since) {
		complete_one(&place, *slot);
		*slot = 0;
		return;
	}
	/* What asks for a flush ends once more when the flush, a request of its own, is done: without data, it has not been started
	 * at all; with data, its end was seen before. */
	if (READ(rq, __data_len) == 0 && WAY(op_of)(rq) != OP_FLUSH) {
		if (READ(rq, state) == MQ_RQ_IDLE)
			ADD(&place.totals[EMPTY], 1);
		return;
	}
	/* When it was made, which is before it is issued; 0 where the kernel does not keep times. */
	made = READ(rq, start_time_ns);
	if (!made || made >= place.since) {
		ADD(&place.totals[UNSEEN], 1);
		return;
	}
	ADD(&place.totals[EARLIER], 1);
	if (WAY(op_of)(rq) == OP_FLUSH)
		ADD(&place.totals[EARLIER_FLUSHES], 1);
}

SEC(ATTACH("block_rq_complete"))
int WAY(complete)(u64 *context)
{
	struct request *rq = (struct request *)context[0];
	struct WAY(numbers) numbers;

	/* A part of a request, the rest is still to come. */
	if ((u32)context[2] < READ(rq, __data_len))
		return 0;
	numbers = WAY(numbers_of_request)(rq);
	WAY(complete_at)(rq, numbers.disk);
	if (WAY(concerns_part)(rq, &numbers))
		WAY(complete_at)(rq, numbers.part);
	return 0;
}

static __always_inline int WAY(add_to)(struct WAY(numbers) numbers, u32 counter)
{
	struct place place;

	if (find(&place, numbers.disk))
		ADD(&place.totals[counter], 1);
	if (numbers.part && numbers.part != numbers.disk && find(&place, numbers.part))
		ADD(&place.totals[counter], 1);
	return 0;
}

SEC(ATTACH("block_rq_merge"))
int WAY(request_merge)(u64 *context)
{
	return WAY(add_to)(WAY(numbers_of_request)((struct request *)context[0]), REQUEST_MERGES);
}

SEC(ATTACH("block_bio_backmerge"))
int WAY(back_merge)(u64 *context)
{
	return WAY(add_to)(WAY(numbers_of_bio)((struct bio *)context[0]), BACK_MERGES);
}

SEC(ATTACH("block_bio_frontmerge"))
int WAY(front_merge)(u64 *context)
{
	return WAY(add_to)(WAY(numbers_of_bio)((struct bio *)context[0]), FRONT_MERGES);
}

SEC(ATTACH("block_split"))
int WAY(split)(u64 *context)
{
	return WAY(add_to)(WAY(numbers_of_bio)((struct bio *)context[0]), SPLITS);
}

/* All ones if the architecture is not known. */
static __always_inline u64 WAY(system_call)(struct task_struct *task)
{
	void *regs = (void *)bpf_task_pt_regs(task);

	if (bpf_core_field_exists(struct pt_regs___x86, orig_ax))
		return (s32)READ((struct pt_regs___x86 *)regs, orig_ax);
	if (bpf_core_field_exists(struct pt_regs___arm64, syscallno))
		return READ((struct pt_regs___arm64 *)regs, syscallno);
	return -1;
}

static __always_inline void WAY(add_origin)(const struct place *place, struct bio *bio, u32 flags, u32 op)
{
	struct task_struct *task = bpf_get_current_task_btf();
	u32 of_task = READ(task, flags), whose = TASK_KERNEL;
	struct bio_origin origin = { .syscall = -1 };

	if (!(of_task & PF_KTHREAD)) {
		whose = task_of(READ(task, tgid));
		if (!(of_task & PF_IO_WORKER))
			origin.syscall = WAY(system_call)(task);
	}
	origin.what = WHAT(place->index, whose, flags, op);
	READ_COMM(task, origin.comm);
	add_bio(place, &origin, READ(bio, bi_iter.bi_size));
}

static __always_inline struct request_kind WAY(kind_of_bio)(const struct place *place, struct bio *bio)
{
	u32 raw = READ(bio, bi_opf);
	struct request_kind kind = {
		.what = WHAT(place->index, 0, flags_of(raw), raw & OP_MASK),
		.bytes = READ(bio, bi_iter.bi_size),
	};

	return kind;
}

static __always_inline void WAY(bio_queue_at)(struct bio *bio, u32 number)
{
	struct request_kind kind;
	struct bio_start *start;
	struct place place;
	u32 raw, flags, op;
	u64 now;

	if (!find(&place, number))
		return;
	raw = READ(bio, bi_opf);
	flags = flags_of(raw);
	op = raw & OP_MASK;
	kind = WAY(kind_of_bio)(&place, bio);
	if (!place.device->queues)
		add_request(&place, &kind);
	else if (!kind.bytes && flags & FLAG_PREFLUSH)
		ADD(&place.totals[FLUSH_BIOS], 1);
	/* Where a bio comes from costs more than all the rest of counting it. */
	if (!is_timed(&place))
		return;
	WAY(add_origin)(&place, bio, flags, op);
	if (place.device->queues)
		return;
	now = bpf_ktime_get_ns();
	start = place_of_arriving(owner_of(ADDRESS(bio), place.index));
	if (!start) {
		overflow(&place);
		return;
	}
	if (start->at >= place.since)
		heal(&place);
	else
		enter(&place, now);
	start->at = now;
}

SEC(ATTACH("block_bio_queue"))
int WAY(bio_queue)(u64 *context)
{
	struct bio *bio = (struct bio *)context[0];
	struct WAY(numbers) numbers = WAY(numbers_of_bio)(bio);

	WAY(bio_queue_at)(bio, numbers.disk);
	if (numbers.part != numbers.disk)
		WAY(bio_queue_at)(bio, numbers.part);
	return 0;
}

/* Whether a bio that must not wait came back untouched because it would have had to: one that the device would have to split. It is
 * submitted again without that mark, and the device counts that one only. */
static __always_inline int WAY(is_refused)(struct bio *bio)
{
	return READ(bio, bi_status) == STATUS_AGAIN && READ(bio, bi_iter.bi_idx) == 0 &&
	       READ(bio, bi_iter.bi_bvec_done) == 0;
}

/* As a request that the driver gave back. */
static __always_inline void WAY(take_back)(const struct place *place, struct bio *bio)
{
	struct request_kind kind = WAY(kind_of_bio)(place, bio);

	add_request_elsewhere(place, &kind, -1);
	if (!is_timed(place))
		return;
	add_moment(place, REQUEUED_BEGUN, REQUEUED_AT, REQUEUED, bpf_ktime_get_ns());
	__sync_fetch_and_add(&place->device->in_flight, -1);
}

static __always_inline void WAY(bio_complete_at)(struct bio *bio, u32 number)
{
	struct bio_start *start;
	struct place place;
	u64 at;

	if (!find(&place, number) || place.device->queues)
		return;
	if (!is_timed(&place)) {
		if (WAY(is_refused)(bio))
			WAY(take_back)(&place, bio);
		return;
	}
	start = place_of_done(owner_of(ADDRESS(bio), place.index));
	if (!start) {
		ADD(&place.totals[UNSEEN], 1);
		return;
	}
	at = start->at;
	/* Free from here on; that it is read before depends on what follows it. */
	barrier();
	start->owner = 0;
	if (at < place.since)
		ADD(&place.totals[UNSEEN], 1);
	else if (WAY(is_refused)(bio))
		WAY(take_back)(&place, bio);
	else
		complete_one(&place, at);
}

SEC(ATTACH("block_bio_complete"))
int WAY(bio_complete)(u64 *context)
{
	struct bio *bio = (struct bio *)context[1];
	struct WAY(numbers) numbers = WAY(numbers_of_bio)(bio);

	WAY(bio_complete_at)(bio, numbers.disk);
	if (numbers.part != numbers.disk)
		WAY(bio_complete_at)(bio, numbers.part);
	return 0;
}

/* What a child starts is a child, too. A thread has the tgid of its process already. */
SEC(ATTACH("sched_process_fork"))
int WAY(fork)(u64 *context)
{
	struct task_struct *parent = (struct task_struct *)context[0], *child = (struct task_struct *)context[1];
	u32 process = READ(parent, tgid), its = READ(child, tgid), one = 1;
	u64 *numbers;

	if (process == its || (process != OWN_PROCESS && !bpf_map_lookup_elem(&CHILDREN, &process)))
		return 0;
	if (bpf_map_update_elem(&CHILDREN, &its, &one, BPF_ANY) != 0 && (numbers = state()))
		__sync_fetch_and_add(&numbers[UNFOLLOWED], 1);
	return 0;
}

/* When nothing is left of a process, its number may be given to another. Its last I/O is that of closing its files, when it
 * has left already (sched_process_exit), so this waits for the last moment. */
SEC(ATTACH("sched_process_free"))
int WAY(forget)(u64 *context)
{
	struct task_struct *task = (struct task_struct *)context[0];
	u32 process = READ(task, tgid);

	if ((u32)READ(task, pid) == process)
		bpf_map_delete_elem(&CHILDREN, &process);
	return 0;
}
