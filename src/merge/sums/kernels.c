/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Durations and launch shapes by kernel.
 *
 * While a log is read, its own names identify rows, because the names of the paths are assigned
 * only after its last event. kernels_end_log() then joins rows of one name.
 */
#include "merge/sums/kernels.h"

#include <stdlib.h>
#include <string.h>

#include "base/tables.h"
#include "log/base/grow.h"
#include "merge/base/labels.h"
#include "merge/base/pack.h"
#include "merge/sums/build_tree.h"
#include "merge/sums/reading.h"

/* A kernel, kind of copy, or memsets, in the current log. */
struct log_row {
	struct kernel_row sums;
	struct owner owner; /* of the leaf */
};

struct log_shape {
	uint64_t count;
	uint32_t device;
	bool is_placed;		    /* device and occupancy are set */
	struct occupancy occupancy; /* zeros: unknown, or it differs between devices */
};

/* The number of places before those of copies and memsets. */
static size_t name_places(const struct model *model)
{
	return model->names.count;
}

void kernels_begin_log(struct kernels *kernels, const struct process *process)
{
	const struct model *model = process->model;
	size_t shape_count = model->shapes.count + 1;
	size_t place_count = name_places(model) + COPY_KINDS + 1;

	xt_grow(&kernels->log_shapes, &kernels->log_shape_capacity, shape_count,
		sizeof(*kernels->log_shapes));
	xt_grow(&kernels->log_places, &kernels->log_place_capacity, place_count,
		sizeof(*kernels->log_places));
	xt_grow(&kernels->limits, &kernels->limit_capacity, KERNELS_DEVICES_MAX,
		sizeof(*kernels->limits));
	memset(kernels->log_shapes, 0, shape_count * sizeof(*kernels->log_shapes));
	memset(kernels->log_places, 0, place_count * sizeof(*kernels->log_places));
	for (uint32_t d = 0; d < KERNELS_DEVICES_MAX; d++)
		kernels->limits[d] = shape_limits(model, d);
	kernels->log_count = 0;
}

static uint32_t shape_of(const struct model *model, const struct work *work)
{
	return work->shape < model->shapes.count ? work->shape : 0;
}

/* The leaf of work, and its place in log_places. */
static size_t place_of(const struct model *model, const struct work *work, struct owner *owner)
{
	size_t first = name_places(model);
	const struct copy_shape *copy;

	*owner = (struct owner){.leaf = LEAF_MEMSET};
	if (work->kind == WORK_MEMSET)
		return first + COPY_KINDS;
	if (work->kind == WORK_KERNEL) {
		*owner = (struct owner){.leaf = LEAF_KERNEL, .what = work->shape};
		return model_kernel_name(model, work->shape);
	}
	copy = &model->copy_shapes.rows[work->shape < model->copy_shapes.count ? work->shape : 0];
	*owner = (struct owner){.leaf = LEAF_COPY, .what = label_index(copy->kind, COPY_KINDS)};
	return first + owner->what;
}

static struct occupancy occupancy_on(const struct kernels *kernels, const struct shape *shape,
				     uint32_t device)
{
	return device < KERNELS_DEVICES_MAX ? shape_occupancy(&kernels->limits[device], shape)
					    : (struct occupancy){0};
}

static bool is_same_occupancy(const struct occupancy *a, const struct occupancy *b)
{
	return a->warps == b->warps && a->warps_max == b->warps_max && a->limiters == b->limiters;
}

static void note_shape(struct kernels *kernels, const struct model *model, const struct work *work)
{
	uint32_t id = shape_of(model, work);
	const struct stream *stream =
		&model->streams.rows[work->stream < model->streams.count ? work->stream : 0];
	uint32_t device = stream->defined ? stream->device : ROOT_UNKNOWN;
	struct log_shape *use = &kernels->log_shapes[id];
	struct occupancy occupancy;

	use->count++;
	if (use->is_placed && use->device == device)
		return;
	occupancy = occupancy_on(kernels, &model->shapes.rows[id], device);
	if (use->is_placed && !is_same_occupancy(&use->occupancy, &occupancy))
		occupancy = (struct occupancy){0};
	use->is_placed = true;
	use->device = device;
	use->occupancy = occupancy;
}

/* Returns the row of a place in the log, or NULL if there are too many. */
static struct kernel_row *row_of(struct kernels *kernels, size_t place, const struct owner *owner)
{
	if (kernels->log_places[place])
		return &kernels->log_rows[kernels->log_places[place] - 1].sums;
	if (kernels->log_count == KERNELS_MAX)
		return NULL;
	xt_grow(&kernels->log_rows, &kernels->log_capacity, kernels->log_count + 1,
		sizeof(*kernels->log_rows));
	kernels->log_rows[kernels->log_count] =
		(struct log_row){.sums.min_ns = UINT64_MAX, .owner = *owner};
	kernels->log_places[place] = (uint32_t)++kernels->log_count;
	return &kernels->log_rows[kernels->log_count - 1].sums;
}

void kernels_add(struct kernels *kernels, const struct process *process, const struct work *work,
		 const struct launch *launch)
{
	uint64_t ns = work->duration_ns;
	struct owner owner;
	size_t place = place_of(process->model, work, &owner);
	struct kernel_row *row = row_of(kernels, place, &owner);

	if (!row)
		return;
	histogram_add(&row->durations, ns);
	row->count++;
	row->total_ns += ns;
	row->min_ns = ns < row->min_ns ? ns : row->min_ns;
	row->max_ns = ns > row->max_ns ? ns : row->max_ns;
	if (work->kind != WORK_KERNEL)
		return;
	note_shape(kernels, process->model, work);
	if (launch && !work->graph_node) {
		row->launch_count++;
		row->shorter_count += ns < launch->duration_ns;
	}
}

static void pack_row(struct pack *pack, struct log_row *row)
{
	PACK(pack, row->owner);
	PACK(pack, row->sums.count);
	PACK(pack, row->sums.total_ns);
	PACK(pack, row->sums.min_ns);
	PACK(pack, row->sums.max_ns);
	PACK(pack, row->sums.launch_count);
	PACK(pack, row->sums.shorter_count);
	histogram_pack(&row->sums.durations, pack);
}

/* The place of a leaf, as place_of(). */
static size_t place_of_leaf(const struct model *model, const struct owner *owner)
{
	return owner->leaf == LEAF_KERNEL ? model_kernel_name(model, owner->what)
	       : owner->leaf == LEAF_COPY ? name_places(model) + owner->what
					  : name_places(model) + COPY_KINDS;
}

void kernels_pack(struct kernels *kernels, const struct process *process, struct pack *pack)
{
	const struct model *model = process->model;
	uint64_t count = kernels->log_count;

	pack_bytes(pack, kernels->log_shapes, model->shapes.count * sizeof(*kernels->log_shapes));
	for (size_t s = 0; s < model->shapes.count; s++)
		pack_check_bool(pack, &kernels->log_shapes[s].is_placed);
	PACK(pack, count);
	pack_check(pack, count <= KERNELS_MAX && count <= pack->bytes);
	if (pack->is_reading && !pack->error)
		xt_grow(&kernels->log_rows, &kernels->log_capacity, count,
			sizeof(*kernels->log_rows));
	for (uint64_t r = 0; r < count && !pack->error; r++) {
		struct log_row *row = &kernels->log_rows[r];

		if (pack->is_reading) {
			*row = (struct log_row){0};
			kernels->log_count++;
		}
		pack_row(pack, row);
		pack_check(pack,
			   row->owner.leaf == LEAF_KERNEL || row->owner.leaf == LEAF_MEMSET ||
				   (row->owner.leaf == LEAF_COPY && row->owner.what < COPY_KINDS));
		if (pack->is_reading && !pack->error)
			kernels->log_places[place_of_leaf(model, &row->owner)] = (uint32_t)r + 1;
	}
}

/* Adds the counts of `from`, which becomes empty. */
static void join(struct kernel_row *row, struct kernel_row *from)
{
	row->count += from->count;
	row->total_ns += from->total_ns;
	row->min_ns = from->min_ns < row->min_ns ? from->min_ns : row->min_ns;
	row->max_ns = from->max_ns > row->max_ns ? from->max_ns : row->max_ns;
	row->launch_count += from->launch_count;
	row->shorter_count += from->shorter_count;
	histogram_move(&row->durations, &from->durations);
}

/* Adds a row of the log to the row of its name. Beyond KERNELS_MAX, drops it. */
static void add_log_row(struct kernels *kernels, const struct process *process,
			struct log_row *from)
{
	uint32_t name = leaf_frame(process->names->shown, process, &from->owner);

	xt_grow(&kernels->places, &kernels->place_capacity, (size_t)name + 1,
		sizeof(*kernels->places));
	xt_grow(&kernels->rows, &kernels->capacity, kernels->count + 1, sizeof(*kernels->rows));
	from->sums.name = name;
	if (!kernels->places[name] && kernels->count < KERNELS_MAX) {
		kernels->rows[kernels->count++] =
			(struct kernel_row){.name = name, .min_ns = UINT64_MAX};
		kernels->places[name] = (uint32_t)kernels->count;
	}
	if (kernels->places[name])
		join(&kernels->rows[kernels->places[name] - 1], &from->sums);
	histogram_free(&from->sums.durations);
}

static bool is_same_shape(const struct kernel_shape *a, const struct kernel_shape *b)
{
	const struct shape *x = &a->shape, *y = &b->shape;

	return a->row == b->row && !memcmp(x->grid, y->grid, sizeof(x->grid)) &&
	       !memcmp(x->block, y->block, sizeof(x->block)) && x->registers == y->registers &&
	       x->static_shared_bytes == y->static_shared_bytes &&
	       x->dynamic_shared_bytes == y->dynamic_shared_bytes;
}

static uint32_t hash_of(const struct kernel_shape *shape)
{
	const struct shape *s = &shape->shape;
	uint64_t words[] = {shape->row,
			    (uint64_t)s->grid[0] << 32 | s->grid[1],
			    (uint64_t)s->grid[2] << 32 | s->block[0],
			    (uint64_t)s->block[1] << 32 | s->block[2],
			    s->registers,
			    s->static_shared_bytes,
			    s->dynamic_shared_bytes};

	return xt_hash_bytes(words, sizeof(words));
}

static void add_shape(struct kernels *kernels, const struct kernel_shape *shape)
{
	uint32_t hash = hash_of(shape);
	struct xt_hash_slot *slot;

	xt_hash_require(&kernels->by_shape, kernels->shape_count + 1);
	xt_grow(&kernels->shapes, &kernels->shape_capacity, kernels->shape_count + 1,
		sizeof(*kernels->shapes));
	for (slot = xt_hash_first(&kernels->by_shape, hash); slot->item;
	     slot = xt_hash_next(&kernels->by_shape, slot)) {
		struct kernel_shape *known = &kernels->shapes[slot->item - 1];

		if (!is_same_shape(known, shape))
			continue;
		known->count += shape->count;
		if (!is_same_occupancy(&known->occupancy, &shape->occupancy))
			known->occupancy = (struct occupancy){0};
		return;
	}
	kernels->shapes[kernels->shape_count++] = *shape;
	*slot = (struct xt_hash_slot){hash, (uint32_t)kernels->shape_count};
}

/* Returns the row of a shape of the log + 1; 0 if there is none. */
static uint32_t row_of_shape(const struct kernels *kernels, const struct model *model, uint32_t id)
{
	uint32_t place = kernels->log_places[model_kernel_name(model, id)];

	return place ? kernels->places[kernels->log_rows[place - 1].sums.name] : 0;
}

static void add_shapes(struct kernels *kernels, const struct model *model)
{
	for (uint32_t id = 0; id < model->shapes.count; id++) {
		const struct log_shape *use = &kernels->log_shapes[id];
		const struct shape *shape = &model->shapes.rows[id];
		uint32_t row = use->count && shape->grid[0] ? row_of_shape(kernels, model, id) : 0;

		if (row)
			add_shape(kernels, &(struct kernel_shape){
						   .row = row - 1,
						   .shape = *shape,
						   .count = use->count,
						   .occupancy = use->occupancy,
					   });
	}
}

void kernels_end_log(struct kernels *kernels, const struct process *process)
{
	for (size_t r = 0; r < kernels->log_count; r++)
		add_log_row(kernels, process, &kernels->log_rows[r]);
	add_shapes(kernels, process->model);
}

void kernels_finish(struct kernels *kernels)
{
	for (size_t r = 0; r < kernels->count; r++) {
		kernels->rows[r].shape = NULL;
		kernels->rows[r].shape_count = 0;
	}
	for (size_t s = 0; s < kernels->shape_count; s++) {
		const struct kernel_shape *shape = &kernels->shapes[s];
		struct kernel_row *row = &kernels->rows[shape->row];

		row->shape_count++;
		if (!row->shape || shape->count > row->shape->count)
			row->shape = shape;
	}
}

const struct kernel_row *kernels_find(const struct kernels *kernels, uint32_t name)
{
	uint32_t place = name < kernels->place_capacity ? kernels->places[name] : 0;

	return place ? &kernels->rows[place - 1] : NULL;
}

uint64_t kernel_p50_ns(const struct kernel_row *row)
{
	return histogram_value(&row->durations, row->count - row->count / 2, row->min_ns,
			       row->max_ns);
}

uint64_t kernel_p99_ns(const struct kernel_row *row)
{
	return histogram_value(&row->durations, row->count - row->count / 100, row->min_ns,
			       row->max_ns);
}

void kernels_free(struct kernels *kernels)
{
	for (size_t r = 0; r < kernels->count; r++)
		histogram_free(&kernels->rows[r].durations);
	for (size_t r = 0; r < kernels->log_count; r++)
		histogram_free(&kernels->log_rows[r].sums.durations);
	free_all(kernels->rows, kernels->places, kernels->shapes);
	xt_hash_free(&kernels->by_shape);
	free_all(kernels->log_rows, kernels->log_shapes, kernels->log_places, kernels->limits);
	*kernels = (struct kernels){0};
}

static int begin(struct sink *sink)
{
	sink->state = xt_calloc(1, sizeof(struct kernels));
	return 0;
}

static void begin_log(struct sink *sink, const struct process *process)
{
	kernels_begin_log(sink->state, process);
}

static void add_work(struct sink *sink, const struct process *process, const struct work *work,
		     const struct launch *launch)
{
	kernels_add(sink->state, process, work, launch);
}

static void pack_log(struct sink *sink, const struct process *process, struct pack *pack)
{
	kernels_pack(sink->state, process, pack);
}

static void end_log(struct sink *sink, const struct process *process)
{
	kernels_end_log(sink->state, process);
}

static void end(struct sink *sink, const struct run *run)
{
	(void)run;
	kernels_finish(sink->state);
}

static void free_state(struct sink *sink)
{
	if (sink->state)
		kernels_free(sink->state);
	free(sink->state);
	sink->state = NULL;
}

const struct exporter analysis_kernels = {.begin = begin,
					  .process = begin_log,
					  .on.work = add_work,
					  .pack = pack_log,
					  .process_end = end_log,
					  .end = end,
					  .free = free_state};
