/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Requests by kind and bios by origin: hash tables in the rows of each processor, which only grow, so that what is counted again and
 * again costs a comparison and an addition. What finds no row goes to a map that has room for more. */
#ifndef RDSK_TABLES_H
#define RDSK_TABLES_H

static __always_inline struct kind_row *kind_row(const struct place *place, const struct request_kind *kind, u32 try)
{
	u32 row = hash(kind->what + (kind->bytes << 8), KIND_BITS) + try;

	row = place->processor * KIND_ROWS + (row & (KIND_ROWS - 1));
	return bpf_map_lookup_elem(&KINDS, &row);
}

static __always_inline int is_of_kind(const struct kind_row *row, const struct request_kind *kind)
{
	return row->kind.what == kind->what && row->kind.bytes == kind->bytes;
}

static __noinline void add_to_more_kinds(const struct place *place, const struct request_kind *kind, u64 by)
{
	u64 *count = bpf_map_lookup_elem(&MORE_KINDS, kind), *numbers = state();

	if (numbers)
		numbers[MORE] = 1;
	if (!count) {
		if (bpf_map_update_elem(&MORE_KINDS, kind, &by, BPF_NOEXIST) == 0)
			return;
		/* Another processor may have been quicker. */
		count = bpf_map_lookup_elem(&MORE_KINDS, kind);
	}
	if (count)
		__sync_fetch_and_add(count, by);
	else
		overflow(place);
}

/* Counts requests of one kind, or takes one back, where it is not the first row that counts them. */
static __noinline void add_request_elsewhere(const struct place *place, const struct request_kind *kind, int by)
{
	for (u32 try = 0; try < ROWS_TRIED; try++) {
		struct kind_row *row = kind_row(place, kind, try);

		if (!row)
			break;
		if (!row->kind.what && __sync_val_compare_and_swap(&row->kind.what, 0, kind->what) == 0) {
			row->kind.bytes = kind->bytes;
			/* In this order for the reader. */
			__sync_fetch_and_add(by > 0 ? &row->count : &row->returned, 1);
			return;
		}
		if (is_of_kind(row, kind)) {
			__sync_fetch_and_add(by > 0 ? &row->count : &row->returned, 1);
			return;
		}
	}
	add_to_more_kinds(place, kind, by);
}

static __always_inline void add_request(const struct place *place, const struct request_kind *kind)
{
	struct kind_row *row = kind_row(place, kind, 0);

	/* Nobody else adds here: the row is this processor's, and each device has one program that counts its requests. */
	if (row && is_of_kind(row, kind))
		row->count += 1;
	else
		add_request_elsewhere(place, kind, 1);
}

static __always_inline struct origin_row *origin_row(const struct place *place, const struct bio_origin *origin, u32 try)
{
	u32 row = hash(origin->what + origin->syscall + origin->comm[0] + 3 * origin->comm[1], ORIGIN_BITS) + try;

	row = place->processor * ORIGIN_ROWS + (row & (ORIGIN_ROWS - 1));
	return bpf_map_lookup_elem(&ORIGINS, &row);
}

static __always_inline int is_of_origin(const struct origin_row *row, const struct bio_origin *origin)
{
	return row->origin.what == origin->what && row->origin.syscall == origin->syscall &&
	       row->origin.comm[0] == origin->comm[0] && row->origin.comm[1] == origin->comm[1];
}

static __noinline void add_to_more_origins(const struct place *place, struct bio_origin *origin, u32 bytes)
{
	u64 *sum = bpf_map_lookup_elem(&MORE_ORIGINS, origin), *numbers = state(), first[2] = { 1, bytes };

	if (numbers)
		numbers[MORE] = 1;
	if (!sum && numbers && numbers[MORE_NAMES] >= NAMED_ORIGINS) {
		__builtin_memset(origin->comm, 0, sizeof(origin->comm));
		__builtin_memcpy(origin->comm, OTHER_THREADS, sizeof(OTHER_THREADS));
		sum = bpf_map_lookup_elem(&MORE_ORIGINS, origin);
	}
	if (!sum) {
		if (bpf_map_update_elem(&MORE_ORIGINS, origin, first, BPF_NOEXIST) == 0) {
			if (numbers)
				__sync_fetch_and_add(&numbers[MORE_NAMES], 1);
			return;
		}
		/* Another processor may have been quicker. */
		sum = bpf_map_lookup_elem(&MORE_ORIGINS, origin);
	}
	if (!sum) {
		overflow(place);
		return;
	}
	sum[0] += 1;
	sum[1] += bytes;
}

/* Counts a bio where it is not the first row that counts those of its origin. */
static __noinline void add_bio_elsewhere(const struct place *place, struct bio_origin *origin, u32 bytes)
{
	for (u32 try = 0; try < ROWS_TRIED; try++) {
		struct origin_row *row = origin_row(place, origin, try);

		if (!row)
			break;
		if (!row->origin.what && __sync_val_compare_and_swap(&row->origin.what, 0, origin->what) == 0) {
			row->origin.syscall = origin->syscall;
			row->origin.comm[0] = origin->comm[0];
			row->origin.comm[1] = origin->comm[1];
			row->bytes = bytes;
			/* The last, for the reader. */
			__sync_fetch_and_add(&row->count, 1);
			return;
		}
		if (is_of_origin(row, origin)) {
			row->count += 1;
			row->bytes += bytes;
			return;
		}
	}
	add_to_more_origins(place, origin, bytes);
}

static __always_inline void add_bio(const struct place *place, struct bio_origin *origin, u32 bytes)
{
	struct origin_row *row = origin_row(place, origin, 0);

	if (row && is_of_origin(row, origin)) {
		row->count += 1;
		row->bytes += bytes;
	} else {
		add_bio_elsewhere(place, origin, bytes);
	}
}

#endif
