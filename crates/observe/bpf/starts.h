/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* When bios arrived at bio-based devices: a table of places, each of which belongs to one bio at one device from its arrival to its
 * completion. Nearly always the first cache line that is looked at decides, and no lock is taken. */
#ifndef RDSK_STARTS_H
#define RDSK_STARTS_H

/* The number of a bio at a device, which is not 0, from a number of the bio (ADDRESS). Two bios are further apart than their lowest six bits tell, and the upper eight are
 * the same for all, so that no two pairs have one number on up to 16 384 devices. */
static __always_inline u64 owner_of(u64 bio, u32 device)
{
	return bio << 8 ^ device;
}

static __always_inline struct start_row *start_row(u64 owner, u32 try)
{
	u32 row = (hash(owner, START_BITS) + try) & (START_ROWS - 1);

	return bpf_map_lookup_elem(&STARTS, &row);
}

static __always_inline struct bio_start *own_place(struct start_row *row, u64 owner)
{
#define LOOK(which)                                                                                                    \
	if (row->place[which].owner == owner)                                                                          \
		return &row->place[which];
	LOOK(0) LOOK(1) LOOK(2) LOOK(3)
#undef LOOK
	return 0;
}

/* Takes a free place; another processor may be quicker. What another bio left there is no start. */
static __always_inline struct bio_start *new_place(struct start_row *row, u64 owner)
{
#define TAKE(which)                                                                                                    \
	if (!row->place[which].owner && __sync_val_compare_and_swap(&row->place[which].owner, 0, owner) == 0) {        \
		row->place[which].at = 0;                                                                              \
		return &row->place[which];                                                                             \
	}
	TAKE(0) TAKE(1) TAKE(2) TAKE(3)
#undef TAKE
	return 0;
}

static __noinline struct bio_start *own_place_elsewhere(u64 owner)
{
	for (u32 try = 1; try < STARTS_TRIED; try++) {
		struct start_row *row = start_row(owner, try);
		struct bio_start *place = row ? own_place(row, owner) : 0;

		if (place)
			return place;
	}
	return 0;
}

static __noinline struct bio_start *new_place_elsewhere(u64 owner)
{
	for (u32 try = 1; try < STARTS_TRIED; try++) {
		struct start_row *row = start_row(owner, try);
		struct bio_start *place = row ? new_place(row, owner) : 0;

		if (place)
			return place;
	}
	return 0;
}

/* The place of a bio that arrives: a new one without a start, or its own, if its last completion was not seen. One that was taken further away is not
 * looked for; its request is one in flight that is none, which the reader notices. */
static __always_inline struct bio_start *place_of_arriving(u64 owner)
{
	struct start_row *row = start_row(owner, 0);
	struct bio_start *place;

	if (!row)
		return 0;
	place = own_place(row, owner);
	if (!place)
		place = new_place(row, owner);
	return place ? place : new_place_elsewhere(owner);
}

/* The place of a bio that is done; 0 if it has none. */
static __always_inline struct bio_start *place_of_done(u64 owner)
{
	struct start_row *row = start_row(owner, 0);
	struct bio_start *place;

	if (!row)
		return 0;
	place = own_place(row, owner);
	return place ? place : own_place_elsewhere(owner);
}

#endif
