/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Launch shapes, and the durations and shapes by kernel with their table.
 *
 * While a log is read, its own names identify rows, because the names of the paths are assigned
 * only after its last event. end_log() then joins rows of one name.
 */
#include "merge/sums/kernels.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/tables.h"
#include "log/base/compare.h"
#include "merge/base/labels.h"
#include "merge/base/pack.h"
#include "merge/sums/build_tree.h"
#include "merge/sums/histogram.h"
#include "merge/sums/run.h"
#include "merge/sums/path_tables.h"
#include "merge/tables/table.h"

#define KERNELS_MAX	    (1u << 16) /* in one log, and in all; others have no durations */
#define KERNELS_DEVICES_MAX 64	       /* occupancy on further devices is unknown */

#define WARP_THREADS   32
#define FILL_SMALL     0.25
#define FEW_WARPS_FILL 0.5 /* 32 blocks of one warp fit where there is room for 64 warps */

/* Returns a property of a device, -1 if unknown. */
static long device_property(const struct model *model, uint32_t device, const char *name)
{
	const char *text = model_gpu(model, device, name);
	char *end;
	long value = strtol(text, &end, 10);

	return end != text && value >= 0 && value <= INT32_MAX ? value : -1;
}

uint32_t shape_recorded_processors(const struct model *model, uint32_t device)
{
	long count = device_property(model, device, "multiprocessors");

	return count > 0 && count < 65536 ? (uint32_t)count : 0;
}

uint32_t shape_processors(const struct model *model, uint32_t device)
{
	uint32_t count = shape_recorded_processors(model, device);

	return count ? count : SHAPE_PROCESSORS_LEAST;
}

uint64_t shape_product(const uint32_t sides[3])
{
	uint64_t all = 1;

	for (int i = 0; i < 3; i++)
		if (__builtin_mul_overflow(all, sides[i] ? sides[i] : 1, &all))
			return UINT64_MAX;
	return all;
}

uint64_t shape_share(uint64_t ns, double fill)
{
	double share_ns = (double)ns * fill;

	return share_ns < (double)ns ? (uint64_t)share_ns : ns;
}

double shape_fill(const struct model *model, uint32_t shape, uint32_t stream)
{
	const struct shape *row = &model->shapes.rows[shape < model->shapes.count ? shape : 0];
	double blocks = (double)shape_product(row->grid);
	uint64_t threads = shape_product(row->block);
	double processors = shape_processors(model, model_device(model, stream));
	uint64_t warps = threads / WARP_THREADS + !!(threads % WARP_THREADS);
	double fill = (double)threads / ((double)warps * WARP_THREADS);

	if (!row->grid[0]) /* unknown */
		return 1;
	if (blocks < processors)
		fill *= blocks / processors;
	return warps == 1 ? fill * FEW_WARPS_FILL : fill;
}

bool shape_is_small(double fill)
{
	return fill <= FILL_SMALL;
}

/* Constants of cuda_occupancy.h (CUDA 13) by the major number of the compute capability. */
#define REGISTERS_UNIT 256 /* a warp gets a multiple of so many registers */
#define MAJOR_MIN      5
#define MAJOR_MAX      12
#define MAJOR_FINE     8 /* from here on, shared memory comes in smaller units */

static struct device_limits limits_of(const struct model *model, uint32_t device)
{
	long major = device_property(model, device, "compute_capability_major");
	long minor = device_property(model, device, "compute_capability_minor");
	long threads = device_property(model, device, "threads_per_multiprocessor");
	long blocks = device_property(model, device, "blocks_per_multiprocessor");
	long registers = device_property(model, device, "registers_per_multiprocessor");
	long shared = device_property(model, device, "shared_bytes_per_multiprocessor");
	long reserved = device_property(model, device, "reserved_shared_bytes_per_block");

	if (major < MAJOR_MIN || major > MAJOR_MAX || minor < 0 || threads < WARP_THREADS ||
	    blocks <= 0 || registers <= 0 || shared <= 0 || reserved < 0)
		return (struct device_limits){0};
	return (struct device_limits){
		.warps = (uint64_t)threads / WARP_THREADS,
		.blocks = (uint64_t)blocks,
		.registers = (uint64_t)registers,
		.shared_bytes = (uint64_t)shared,
		.reserved_bytes = (uint64_t)reserved,
		.shared_unit_bytes = major < MAJOR_FINE ? 256 : 128,
		.partitions = major == 6 && !minor ? 2 : 4,
	};
}

static uint64_t round_up(uint64_t value, uint64_t unit)
{
	return (value + unit - 1) / unit * unit;
}

/* How many blocks of a shape fit, by limit. */
static void count_blocks(const struct device_limits *limits, const struct shape *shape,
			 uint64_t warps, uint64_t blocks[OCCUPANCY_LIMITS])
{
	uint64_t registers = round_up((uint64_t)shape->registers * WARP_THREADS, REGISTERS_UNIT);
	uint64_t shared = round_up(shape->static_shared_bytes + shape->dynamic_shared_bytes +
					   limits->reserved_bytes,
				   limits->shared_unit_bytes);

	blocks[OCCUPANCY_WARPS] = limits->warps / warps;
	blocks[OCCUPANCY_BLOCKS] = limits->blocks;
	blocks[OCCUPANCY_REGISTERS] = registers ? limits->registers / limits->partitions /
							  registers * limits->partitions / warps
						: UINT64_MAX;
	blocks[OCCUPANCY_SHARED_MEMORY] = shared ? limits->shared_bytes / shared : UINT64_MAX;
}

struct occupancy shape_occupancy(const struct device_limits *limits, const struct shape *shape)
{
	uint64_t threads = shape_product(shape->block), blocks[OCCUPANCY_LIMITS];
	uint64_t warps = threads / WARP_THREADS + !!(threads % WARP_THREADS), least = UINT64_MAX;
	struct occupancy occupancy = {.warps_max = (uint32_t)limits->warps};

	/* Impossible values of a damaged log must not overflow. */
	if (!limits->warps || !shape->block[0] || !shape->registers ||
	    shape->static_shared_bytes > UINT32_MAX || shape->dynamic_shared_bytes > UINT32_MAX)
		return (struct occupancy){0};
	count_blocks(limits, shape, warps, blocks);
	for (int l = 0; l < OCCUPANCY_LIMITS; l++)
		least = smaller(blocks[l], least);
	for (int l = 0; l < OCCUPANCY_LIMITS; l++)
		occupancy.limiters |= blocks[l] == least ? 1u << l : 0;
	occupancy.warps = (uint32_t)(least * warps);
	return occupancy.warps ? occupancy : (struct occupancy){0};
}

/* A distinct launch shape of a kernel. */
struct kernel_shape {
	uint32_t row;
	struct shape shape; /* string and is_collective are unused */
	uint64_t count;
	struct occupancy occupancy; /* zeros: unknown, or it differs between devices */
};

struct kernel_row {
	uint32_t name; /* in paths, as in table_leaves() */
	struct durations durations;
	uint64_t launch_count;	/* kernels with a known launch of their own */
	uint64_t shorter_count; /* of these: shorter than the launch call */
	/* Set by end(): */
	const struct kernel_shape *shape; /* the most frequent one; NULL: none */
	uint32_t shape_count;
};

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

/* The state of the analysis. */
struct kernels {
	struct kernel_row *rows;
	size_t count, capacity;
	uint32_t *places; /* row + 1 by name in paths; 0: none */
	size_t place_capacity;
	struct interner shape_keys;
	struct kernel_shape *shapes; /* by id of the key - 1 */
	size_t shape_capacity;

	/* The current log: */
	struct log_row *log_rows;
	size_t log_count, log_capacity;
	struct log_shape *log_shapes; /* by XT_SHAPE_ID */
	size_t log_shape_capacity;
	uint32_t *log_places; /* log row + 1 by name in the model, then copy kinds, then memsets */
	size_t log_place_capacity;
	struct device_limits limits[KERNELS_DEVICES_MAX]; /* by device */
};

static void begin_log(struct sink *sink, const struct process *process)
{
	struct kernels *kernels = sink->state;
	const struct model *model = process->model;
	size_t shape_count = model->shapes.count + 1;
	size_t place_count = model->names.count + COPY_KINDS + 1;

	xt_grow(kernels->log_shapes, kernels->log_shape_capacity, shape_count);
	xt_grow(kernels->log_places, kernels->log_place_capacity, place_count);
	memset(kernels->log_shapes, 0, shape_count * sizeof(*kernels->log_shapes));
	memset(kernels->log_places, 0, place_count * sizeof(*kernels->log_places));
	for (uint32_t d = 0; d < KERNELS_DEVICES_MAX; d++)
		kernels->limits[d] = limits_of(model, d);
	kernels->log_count = 0;
}

static struct owner leaf_of(const struct model *model, const struct work *work)
{
	if (work->kind == WORK_MEMSET)
		return (struct owner){.leaf = LEAF_MEMSET};
	if (work->kind == WORK_KERNEL)
		return (struct owner){.leaf = LEAF_KERNEL, .what = work->shape};
	return (struct owner){
		.leaf = LEAF_COPY,
		.what = label_index(model_copy_shape(model, work->shape)->kind, COPY_KINDS)};
}

/* The place of a leaf in log_places. */
static size_t kernels_place_of(const struct model *model, const struct owner *leaf)
{
	return leaf->leaf == LEAF_KERNEL ? model_kernel_name(model, leaf->what)
	       : leaf->leaf == LEAF_COPY ? model->names.count + leaf->what
					 : model->names.count + COPY_KINDS;
}

static bool is_same_occupancy(const struct occupancy *a, const struct occupancy *b)
{
	return a->warps == b->warps && a->warps_max == b->warps_max && a->limiters == b->limiters;
}

static void note_shape(struct kernels *kernels, const struct model *model, const struct work *work)
{
	uint32_t id = work->shape < model->shapes.count ? work->shape : 0;
	uint32_t device = model_device(model, work->stream);
	struct log_shape *use = &kernels->log_shapes[id];
	struct occupancy occupancy = {0};

	use->count++;
	if (use->is_placed && use->device == device)
		return;
	if (device < KERNELS_DEVICES_MAX)
		occupancy = shape_occupancy(&kernels->limits[device], &model->shapes.rows[id]);
	if (use->is_placed && !is_same_occupancy(&use->occupancy, &occupancy))
		occupancy = (struct occupancy){0};
	use->is_placed = true;
	use->device = device;
	use->occupancy = occupancy;
}

/* Returns the row of a leaf in the log, or NULL if there are too many. */
static struct kernel_row *row_of(struct kernels *kernels, const struct model *model,
				 const struct owner *leaf)
{
	uint32_t *place = &kernels->log_places[kernels_place_of(model, leaf)];

	if (!*place && kernels->log_count < KERNELS_MAX) {
		xt_append(kernels->log_rows, kernels->log_count, kernels->log_capacity,
			  (struct log_row){.owner = *leaf});
		*place = (uint32_t)kernels->log_count;
	}
	return *place ? &kernels->log_rows[*place - 1].sums : NULL;
}

static void add_work(struct sink *sink, const struct process *process, const struct work *work,
		     const struct launch *launch)
{
	struct kernels *kernels = sink->state;
	struct owner leaf = leaf_of(process->model, work);
	struct kernel_row *row = row_of(kernels, process->model, &leaf);

	if (!row)
		return;
	durations_add(&row->durations, work->duration_ns);
	if (work->kind != WORK_KERNEL)
		return;
	note_shape(kernels, process->model, work);
	if (launch && !work->graph_node) {
		row->launch_count++;
		row->shorter_count += work->duration_ns < launch->duration_ns;
	}
}

static void pack_row(struct pack *pack, struct log_row *row)
{
	PACK(pack, row->owner);
	PACK(pack, row->sums.launch_count);
	PACK(pack, row->sums.shorter_count);
	durations_pack(&row->sums.durations, pack);
}

static void pack_log(struct sink *sink, const struct process *process, struct pack *pack)
{
	struct kernels *kernels = sink->state;
	const struct model *model = process->model;
	uint64_t count = kernels->log_count;

	pack_bytes(pack, kernels->log_shapes, model->shapes.count * sizeof(*kernels->log_shapes));
	for (size_t s = 0; s < model->shapes.count; s++)
		pack_check_bool(pack, &kernels->log_shapes[s].is_placed);
	PACK(pack, count);
	pack_check(pack, count <= KERNELS_MAX && count <= pack->bytes);
	if (pack->is_reading && !pack->error)
		xt_grow(kernels->log_rows, kernels->log_capacity, count);
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
			kernels->log_places[kernels_place_of(model, &row->owner)] = (uint32_t)r + 1;
	}
}

/* Adds a row of the log to the row of its name. Beyond KERNELS_MAX, drops it. */
static void add_log_row(struct kernels *kernels, const struct process *process,
			struct log_row *from)
{
	uint32_t name = leaf_frame(process->names->shown, process, &from->owner);

	xt_grow(kernels->places, kernels->place_capacity, (size_t)name + 1);
	from->sums.name = name;
	if (!kernels->places[name] && kernels->count < KERNELS_MAX) {
		xt_append(kernels->rows, kernels->count, kernels->capacity,
			  (struct kernel_row){.name = name});
		kernels->places[name] = (uint32_t)kernels->count;
	}
	if (kernels->places[name]) {
		struct kernel_row *row = &kernels->rows[kernels->places[name] - 1];

		row->launch_count += from->sums.launch_count;
		row->shorter_count += from->sums.shorter_count;
		durations_join(&row->durations, &from->sums.durations);
	}
	histogram_free(&from->sums.durations.histogram);
}

static void add_shape(struct kernels *kernels, const struct kernel_shape *shape)
{
	const struct shape *s = &shape->shape;
	const uint64_t key[] = {shape->row,
				(uint64_t)s->grid[0] << 32 | s->grid[1],
				(uint64_t)s->grid[2] << 32 | s->block[0],
				(uint64_t)s->block[1] << 32 | s->block[2],
				s->registers,
				s->static_shared_bytes,
				s->dynamic_shared_bytes};
	struct kernel_shape *known;
	bool is_new;
	uint32_t id = xt_intern(&kernels->shape_keys, key, sizeof(key), &is_new);

	xt_grow(kernels->shapes, kernels->shape_capacity, id);
	known = &kernels->shapes[id - 1];
	if (is_new) {
		*known = *shape;
		return;
	}
	known->count += shape->count;
	if (!is_same_occupancy(&known->occupancy, &shape->occupancy))
		known->occupancy = (struct occupancy){0};
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

static void end_log(struct sink *sink, const struct process *process)
{
	struct kernels *kernels = sink->state;

	for (size_t r = 0; r < kernels->log_count; r++)
		add_log_row(kernels, process, &kernels->log_rows[r]);
	add_shapes(kernels, process->model);
}

static void kernels_end(struct sink *sink, const struct run *run)
{
	struct kernels *kernels = sink->state;

	(void)run;
	for (uint32_t s = 0; s < kernels->shape_keys.count; s++) {
		const struct kernel_shape *shape = &kernels->shapes[s];
		struct kernel_row *row = &kernels->rows[shape->row];

		row->shape_count++;
		if (!row->shape || shape->count > row->shape->count)
			row->shape = shape;
	}
}

static void kernels_free_state(struct sink *sink)
{
	struct kernels *kernels = sink->state;

	for (size_t r = 0; r < kernels->count; r++)
		histogram_free(&kernels->rows[r].durations.histogram);
	for (size_t r = 0; r < kernels->log_count; r++)
		histogram_free(&kernels->log_rows[r].sums.durations.histogram);
	interner_free(&kernels->shape_keys);
	free_all(kernels->rows, kernels->places, kernels->shapes, kernels->log_rows,
		 kernels->log_shapes, kernels->log_places);
}

const struct exporter analysis_kernels = {.state_bytes = sizeof(struct kernels),
					  .process = begin_log,
					  .on.work = add_work,
					  .pack = pack_log,
					  .process_end = end_log,
					  .end = kernels_end,
					  .free = kernels_free_state};

static const struct column_def columns[] = {
	COLUMN("kind", WORD, OTHER, "kernel, collective, copy or set"),
	COLUMN("count", COUNT, FROM(table_row, count), "kernels, copies or memsets",
	       WIDE("count", 12, 60)),
	COLUMN("gpu_time_ns", NS, FROM(table_row, value), "time on the GPU", HEAD("time", 12)),
	COLUMN("share", SHARE, OTHER, "part of all GPU time", HEAD("share", 7), TEXT_ONLY),
	COLUMN("min_ns", NS, OTHER, "shortest", OPTIONAL),
	COLUMN("p50_ns", NS, OTHER, "half of them are not longer; exact to 1 %", OPTIONAL),
	COLUMN("p99_ns", NS, OTHER, "99 % of them are not longer; exact to 1 %", OPTIONAL),
	COLUMN("max_ns", NS, OTHER, "longest", WIDE("longest", 12, 60), OPTIONAL),
	COLUMN("launch_count", COUNT, OTHER,
	       "those whose own launch is in the log, so not those "
	       "of graphs",
	       OPTIONAL),
	COLUMN("shorter_than_launch_count", COUNT, OTHER,
	       "of these: shorter than the time that "
	       "the CPU spent in the launch call",
	       OPTIONAL),
	COLUMN("histogram", NUMBERS, OTHER,
	       "how many took how long. The ranges between `min_ns` and "
	       "`max_ns` have equal ratios",
	       OPTIONAL),
	COLUMN("shape_count", COUNT, OTHER,
	       "different combinations of grid, block, registers and "
	       "shared memory",
	       OPTIONAL),
	COLUMN("grid", NUMBERS, OTHER, "blocks in the most frequent of these shapes", OPTIONAL),
	COLUMN("block", NUMBERS, OTHER, "threads of its blocks", OPTIONAL),
	COLUMN("register_count", COUNT, OTHER, "registers of a thread", OPTIONAL),
	COLUMN("static_shared_bytes", BYTES, OTHER,
	       "shared memory of a block that the kernel "
	       "declares",
	       OPTIONAL),
	COLUMN("dynamic_shared_bytes", BYTES, OTHER,
	       "shared memory of a block that the launch adds", OPTIONAL),
	COLUMN("name", TEXT, OTHER, "kernel, copy or memset", LAST("kernel")),
};

static void open_rows(struct table_rows *rows)
{
	struct table leaves;

	table_leaves(&leaves, &rows->run->paths);
	table_give(&leaves, rows);
}

/* Returns the durations of a row. All zeros if they do not cover all of it. */
static const struct kernel_row *durations_of(const struct table_rows *rows,
					     const struct table_row *leaf)
{
	static const struct kernel_row unknown;
	/* NULL: no output needs durations. */
	const struct kernels *kernels = run_analysis(rows->run, &analysis_kernels);
	uint32_t place =
		kernels && leaf->id < kernels->place_capacity ? kernels->places[leaf->id] : 0;

	return place && kernels->rows[place - 1].durations.count == leaf->count
		       ? &kernels->rows[place - 1]
		       : &unknown;
}

const char *kernels_longest(const struct run *run, uint64_t *ns_out)
{
	const struct kernels *kernels = run_analysis(run, &analysis_kernels);
	const char *longest = NULL;
	size_t length;

	*ns_out = 0;
	for (uint32_t id = 0; kernels && id < kernels->place_capacity; id++) {
		const char *name = names_text(&run->paths.names, id, &length);
		uint32_t place = kernels->places[id];
		uint64_t ns = place ? kernels->rows[place - 1].durations.max_ns : 0;

		if (ns <= *ns_out || strcmp(leaf_kind_name(name, length), "kernel") != 0)
			continue;
		name = leaf_name(&run->paths, id, &length);
		if (*name == '[') /* a whole graph */
			continue;
		longest = name;
		*ns_out = ns;
	}
	return longest;
}

static struct cell cell_histogram(struct table_rows *rows, const struct durations *durations)
{
	struct cell_list list = {0};
	uint64_t bars[HISTOGRAM_BARS_MAX];
	uint32_t count =
		histogram_bars(&durations->histogram, durations->min_ns, durations->max_ns, bars);

	for (uint32_t b = 0; b < count; b++)
		list_add_number(&list, bars[b]);
	return cell_list(rows, &list);
}

static struct cell cell_sides(struct table_rows *rows, const uint32_t sides[3])
{
	struct cell_list list = {0};

	for (int i = 0; i < 3; i++)
		list_add_number(&list, sides[i]);
	return cell_list(rows, &list);
}

static void kernels_put_row(struct table_rows *rows, struct cells *cells)
{
	const struct table_row *leaf = rows->record;
	const struct kernel_row *kernel = durations_of(rows, leaf);
	const struct paths *paths = &rows->run->paths;
	const struct durations *durations = &kernel->durations;
	const struct shape *shape = kernel->shape ? &kernel->shape->shape : &(struct shape){0};
	bool is_timed = durations->count, is_launched = kernel->launch_count;
	size_t length;
	const char *name = names_text(&paths->names, leaf->id, &length);

	cells_put(cells, cell_text(leaf_kind_name(name, length)));
	cells_put(cells, cell_share(leaf->value, rows->run->sums->events.work.gpu_ns));
	cells_put(cells, cell_known(is_timed, durations->min_ns));
	cells_put(cells, cell_known(is_timed, durations_p50_ns(durations)));
	cells_put(cells, cell_known(is_timed, durations_p99_ns(durations)));
	cells_put(cells, cell_known(is_timed, durations->max_ns));
	cells_put(cells, cell_known(is_launched, kernel->launch_count));
	cells_put(cells, cell_known(is_launched, kernel->shorter_count));
	cells_put(cells, is_timed ? cell_histogram(rows, durations) : CELL_ABSENT);
	cells_put(cells, cell_known(kernel->shape, kernel->shape_count));
	cells_put(cells, kernel->shape ? cell_sides(rows, shape->grid) : CELL_ABSENT);
	cells_put(cells, kernel->shape ? cell_sides(rows, shape->block) : CELL_ABSENT);
	cells_put(cells, cell_known(kernel->shape, shape->registers));
	cells_put(cells, cell_known(kernel->shape, shape->static_shared_bytes));
	cells_put(cells, cell_known(kernel->shape, shape->dynamic_shared_bytes));
	name = leaf_name(paths, leaf->id, &length);
	cells_put(cells, (struct cell){.text = name, .length = length});
}

static const char *const occupancy_limit_names[OCCUPANCY_LIMITS] = {
	[OCCUPANCY_WARPS] = "warps",
	[OCCUPANCY_BLOCKS] = "blocks",
	[OCCUPANCY_REGISTERS] = "registers",
	[OCCUPANCY_SHARED_MEMORY] = "shared memory",
};

static void put_occupancy(struct json *json, const struct table_rows *rows)
{
	const struct kernel_row *kernel = durations_of(rows, rows->record);
	const struct occupancy *occupancy;

	if (!kernel->shape || !kernel->shape->occupancy.warps)
		return;
	occupancy = &kernel->shape->occupancy;
	json_begin_object(json, "occupancy");
	json_u64(json, "warp_count", occupancy->warps);
	json_u64(json, "warp_max_count", occupancy->warps_max);
	json_begin_array(json, "limiters");
	for (int l = 0; l < OCCUPANCY_LIMITS; l++)
		if (occupancy->limiters >> l & 1)
			json_string(json, NULL, occupancy_limit_names[l]);
	json_end_array(json);
	json_end_object(json);
}

const struct table_def table_kernels = {
	.name = "kernels",
	.title = "GPU time by kernel, copy and memset",
	.what = "Kernels, copies and memsets by name, longest time first.",
	HAS_COLUMNS(columns),
	.shows = "gpu_time_ns share count max_ns name",
	.view = "kernels",
	.open = open_rows,
	.row = kernels_put_row,
	.json.more = put_occupancy,
};
