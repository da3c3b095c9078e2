/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies by direction and memsets by memory kind.
 */
#include "merge/sums/transfers.h"

#include <stdio.h>

#include "log/base/grow.h"
#include "merge/base/labels.h"

#define LABEL_BYTES    96
#define DEVICES_LABELS 64 /* larger device numbers share a label */

static int add(struct transfers *transfers, struct names *names, const char *label, bool is_memset,
	       const struct transfer_sum *sum)
{
	uint32_t name = names_intern(names, label, strlen(label));
	struct transfer_row *row;

	if (name == NAME_FAILED || grow(&transfers->places, &transfers->place_capacity, name + 1,
					sizeof(*transfers->places)) < 0)
		return -ENOMEM;
	if (!transfers->places[name]) {
		if (grow(&transfers->rows, &transfers->capacity, transfers->count + 1,
			 sizeof(*transfers->rows)) < 0)
			return -ENOMEM;
		transfers->rows[transfers->count].name = name;
		transfers->rows[transfers->count].is_memset = is_memset;
		transfers->places[name] = ++transfers->count;
	}
	row = &transfers->rows[transfers->places[name] - 1];
	row->sum.count += sum->count;
	row->sum.bytes += sum->bytes;
	row->sum.gpu_ns += sum->gpu_ns;
	return 0;
}

int transfers_add_copies(struct transfers *transfers, struct names *names,
			 const struct copy_shape *shape, const struct transfer_sum *sum)
{
	bool is_pageable =
		shape->source == MEMORY_PAGEABLE || shape->destination == MEMORY_PAGEABLE;
	char label[LABEL_BYTES], devices[LABEL_BYTES / 2] = "";

	if (shape->from_device && shape->from_device <= DEVICES_LABELS && shape->to_device &&
	    shape->to_device <= DEVICES_LABELS)
		snprintf(devices, sizeof(devices), " GPU%u to GPU%u", shape->from_device - 1,
			 shape->to_device - 1);
	snprintf(label, sizeof(label), "copy %s%s%s", copy_kind_label(shape->kind), devices,
		 is_pageable ? ", pageable" : "");
	return add(transfers, names, label, false, sum);
}

int transfers_add_memsets(struct transfers *transfers, struct names *names, uint32_t memory,
			  const struct transfer_sum *sum)
{
	char label[LABEL_BYTES];

	snprintf(label, sizeof(label), "memset %s", memory_kind_label(memory));
	return add(transfers, names, label, true, sum);
}

void transfers_free(struct transfers *transfers)
{
	free(transfers->rows);
	free(transfers->places);
	*transfers = (struct transfers){0};
}

static int compare_rows(const void *a, const void *b)
{
	const struct transfer_row *x = a, *y = b;

	if (x->sum.gpu_ns != y->sum.gpu_ns)
		return x->sum.gpu_ns > y->sum.gpu_ns ? -1 : 1;
	return x->name < y->name ? -1 : x->name > y->name;
}

void transfers_sort(struct transfers *transfers)
{
	if (transfers->count)
		qsort(transfers->rows, transfers->count, sizeof(*transfers->rows), compare_rows);
}
