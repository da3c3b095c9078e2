/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies by direction and memsets by memory kind.
 */
#include "merge/sums/transfers.h"

#include <stdio.h>

#include "base/memory.h"
#include "log/base/compare.h"
#include "merge/base/labels.h"
#include "merge/sums/run.h"
#include "merge/sums/sums.h"
#include "merge/tables/table.h"

#define LABEL_BYTES    96
#define DEVICES_LABELS 64 /* larger device numbers share a label */

static void add(struct transfers *transfers, struct names *names, const char *label, bool is_memset,
		const struct transfer_sum *sum)
{
	uint32_t name = names_intern(names, label, strlen(label));
	struct transfer_row *row;

	xt_grow(&transfers->places, &transfers->place_capacity, name + 1,
		sizeof(*transfers->places));
	if (!transfers->places[name]) {
		xt_grow(&transfers->rows, &transfers->capacity, transfers->count + 1,
			sizeof(*transfers->rows));
		transfers->rows[transfers->count].name = name;
		transfers->rows[transfers->count].is_memset = is_memset;
		transfers->places[name] = ++transfers->count;
	}
	row = &transfers->rows[transfers->places[name] - 1];
	row->sum.count += sum->count;
	row->sum.bytes += sum->bytes;
	row->sum.gpu_ns += sum->gpu_ns;
}

void transfers_add_copies(struct transfers *transfers, struct names *names,
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
	add(transfers, names, label, false, sum);
}

void transfers_add_memsets(struct transfers *transfers, struct names *names, uint32_t memory,
			   const struct transfer_sum *sum)
{
	char label[LABEL_BYTES];

	snprintf(label, sizeof(label), "memset %s", memory_kind_label(memory));
	add(transfers, names, label, true, sum);
}

void transfers_free(struct transfers *transfers)
{
	free(transfers->rows);
	free(transfers->places);
	*transfers = (struct transfers){0};
}

COMPARE_BY(compare_rows, struct transfer_row, DOWN(sum.gpu_ns) UP(name))

void transfers_sort(struct transfers *transfers)
{
	if (transfers->count)
		qsort(transfers->rows, transfers->count, sizeof(*transfers->rows), compare_rows);
}

static const struct column_def columns[] = {
	COLUMN("kind", WORD, OTHER, "copy or set"),
	COLUMN("count", COUNT, FROM(transfer_row, sum.count), "copies or memsets",
	       WIDE("count", 12, 64)),
	COLUMN("bytes", BYTES, FROM(transfer_row, sum.bytes), "bytes copied or set",
	       HEAD("bytes", 12)),
	COLUMN("gpu_time_ns", NS, FROM(transfer_row, sum.gpu_ns), "time on the GPU",
	       HEAD("time", 12)),
	COLUMN("bandwidth", BANDWIDTH, OTHER, "bytes by time", WIDE("bandwidth", 14, 76),
	       TEXT_ONLY),
	COLUMN("name", TEXT, OTHER, "direction, or kind of memory", LAST("direction")),
};

static void open_rows(struct table_rows *rows)
{
	const struct transfers *transfers = &rows->run->sums->transfers;

	table_records(rows, transfers->rows, transfers->count);
}

static void put_row(struct table_rows *rows, struct cells *cells)
{
	const struct transfer_row *row = rows->record;

	cells_put(cells, cell_text(row->is_memset ? "set" : "copy"));
	cells_put(cells,
		  row->sum.gpu_ns ? cell_share(row->sum.bytes, row->sum.gpu_ns) : CELL_ABSENT);
	cells_put(cells, cell_name(&rows->run->paths.names, row->name));
}

const struct table_def table_transfers = {
	.name = "copies",
	.title = "Copies and memsets",
	.what = "Copies by direction and memsets by kind of memory, longest time first.",
	HAS_COLUMNS(columns),
	.shows = "gpu_time_ns count bytes bandwidth name",
	.view = "copies",
	.open = open_rows,
	.row = put_row,
};
