/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows with ids are defined once: a compacted log repeats them, which is ignored.
 */
#include "live/hot.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "log/base/grow.h"
#include "log/read/rows.h"

#define IDS_MAX	    (1u << 18)
#define MODULES_MAX (1u << 13)
#define WORDS_MAX   (1u << 21)
#define TEXT_MAX    (1u << 24)
#define CALLS	    (1u << 18) /* a second of launches at full speed */

/* Ids of one table. NULL if the id is beyond the limit, or *error is set. */
static void *row_at(void *table, size_t *capacity, uint64_t id, size_t limit, size_t row_bytes,
		    int *error)
{
	if (id >= limit)
		return NULL;
	*error = grow(table, capacity, (size_t)id + 1, row_bytes);
	return *error ? NULL : *(char **)table + id * row_bytes;
}

static int add_string(struct live_hot *hot, const struct xt_row_string *in)
{
	int error = 0;
	struct live_string *row =
		row_at(&hot->strings, &hot->string_capacity, in->id, IDS_MAX, sizeof(*row), &error);
	size_t length = in->text.length;

	if (!row || row->is_defined || length > TEXT_MAX - hot->text_bytes)
		return error;
	if (grow(&hot->text, &hot->text_capacity, hot->text_bytes + length + 1, 1))
		return -ENOMEM;
	if (length)
		memcpy(hot->text + hot->text_bytes, in->text.data, length);
	row->offset = (uint32_t)hot->text_bytes;
	row->length = (uint32_t)length;
	row->is_defined = true;
	hot->text_bytes += length;
	return 0;
}

static int add_shape(struct live_hot *hot, const struct xt_row_shape *in)
{
	int error = 0;
	uint32_t *row = row_at(&hot->name_of_shape, &hot->shape_capacity, in->id, IDS_MAX,
			       sizeof(*row), &error);

	if (row && in->name < IDS_MAX)
		*row = (uint32_t)in->name;
	return error;
}

static int add_python_frame(struct live_hot *hot, const struct xt_row_python_frame *in)
{
	int error = 0;
	struct live_python_frame *row = row_at(&hot->python_frames, &hot->python_capacity, in->id,
					       IDS_MAX, sizeof(*row), &error);

	if (row)
		*row = (struct live_python_frame){(uint32_t)in->name, (uint32_t)in->file,
						  (uint32_t)in->line};
	return error;
}

static int add_module(struct live_hot *hot, const struct xt_row_module *in)
{
	int error = 0;
	struct live_module *row = row_at(&hot->modules, &hot->module_capacity, in->id, MODULES_MAX,
					 sizeof(*row), &error);

	if (!row || row->path || in->build_id.length > sizeof(row->build_id))
		return error;
	row->path = strndup(in->path.length ? in->path.data : "", in->path.length);
	row->bias = in->bias;
	row->build_id_bytes = (uint8_t)in->build_id.length;
	if (in->build_id.length)
		memcpy(row->build_id, in->build_id.data, in->build_id.length);
	return row->path ? 0 : -ENOMEM;
}

/* Appends count words; those that `from` lacks are 0. */
static void put_words(struct live_hot *hot, struct xt_list from, size_t count)
{
	for (size_t i = 0; i < count; i++)
		hot->words[hot->word_count++] = i < from.length ? from.elements[i] : 0;
}

static int add_stack(struct live_hot *hot, const struct xt_row_stack *in)
{
	int error = 0;
	struct live_stack *row =
		row_at(&hot->stacks, &hot->stack_capacity, in->id, IDS_MAX, sizeof(*row), &error);
	size_t needed = 2 * in->frames.length + in->python.length;

	if (!row || row->is_defined || needed > WORDS_MAX - hot->word_count)
		return error;
	if (grow(&hot->words, &hot->word_capacity, hot->word_count + needed, sizeof(*hot->words)))
		return -ENOMEM;
	*row = (struct live_stack){.first = hot->word_count,
				   .frame_count = (uint32_t)in->frames.length,
				   .python_count = (uint32_t)in->python.length,
				   .is_defined = true};
	put_words(hot, in->frames, in->frames.length);
	put_words(hot, in->modules, in->frames.length);
	put_words(hot, in->python, in->python.length);
	return 0;
}

static int add_call(struct live_hot *hot, const struct xt_row_call *in)
{
	if (!hot->calls)
		hot->calls = calloc(CALLS, sizeof(*hot->calls));
	if (!hot->calls)
		return -ENOMEM;
	hot->calls[in->correlation % CALLS] = (struct live_pending_call){
		(uint32_t)in->correlation, in->stack < IDS_MAX ? (uint32_t)in->stack : 0};
	return 0;
}

static int count_work(struct live_hot *hot, struct live_ranking *ranking, uint16_t place,
		      uint64_t ns)
{
	struct live_hot_row *row;

	if (place >= LIVE_HOT_MAX)
		place = LIVE_HOT_OTHER;
	if (grow(&ranking->rows, &ranking->capacity, place + 1u, sizeof(*ranking->rows)))
		return -ENOMEM;
	if (ranking->count <= place)
		ranking->count = place + 1u;
	row = &ranking->rows[place];
	row->ns += ns;
	row->count++;
	row->recent_ns[hot->slot] += ns;
	row->recent_count[hot->slot]++;
	return 0;
}

static uint16_t path_of(struct live_hot *hot, uint64_t correlation)
{
	const struct live_pending_call *call = hot->calls ? &hot->calls[correlation % CALLS] : NULL;
	struct live_stack *stack;

	if (!call || call->correlation != (uint32_t)correlation ||
	    call->stack >= hot->stack_capacity || !hot->stacks[call->stack].is_defined)
		return LIVE_HOT_OTHER;
	stack = &hot->stacks[call->stack];
	if (!stack->is_named)
		stack->path = hot->namer.path(hot->namer.context, hot, call->stack);
	stack->is_named = true;
	return stack->path;
}

static uint16_t kernel_of(struct live_hot *hot, uint64_t shape)
{
	uint32_t name = shape < hot->shape_capacity ? hot->name_of_shape[shape] : 0;
	struct live_string *string = name < hot->string_capacity ? &hot->strings[name] : NULL;

	if (!string || !string->is_defined)
		return LIVE_HOT_OTHER;
	if (!string->is_named)
		string->kernel = hot->namer.kernel(hot->namer.context, hot->text + string->offset,
						   string->length);
	string->is_named = true;
	return string->kernel;
}

static int add_kernel(struct live_hot *hot, const struct xt_row_kernel *in)
{
	int error = count_work(hot, &hot->paths, path_of(hot, in->correlation), in->duration_ns);

	return error ? error
		     : count_work(hot, &hot->kernels, kernel_of(hot, in->shape), in->duration_ns);
}

/* Copies and memsets have call paths, but are no kernels. Both have the columns that are read. */
static int add_transfer(struct live_hot *hot, const struct xt_row_copy *in)
{
	return count_work(hot, &hot->paths, path_of(hot, in->correlation), in->duration_ns);
}

XT_DEFINE_ROWS_READER(add_strings, string, struct live_hot, add_string)
XT_DEFINE_ROWS_READER(add_shapes, shape, struct live_hot, add_shape)
XT_DEFINE_ROWS_READER(add_modules, module, struct live_hot, add_module)
XT_DEFINE_ROWS_READER(add_python_frames, python_frame, struct live_hot, add_python_frame)
XT_DEFINE_ROWS_READER(add_stacks, stack, struct live_hot, add_stack)
XT_DEFINE_ROWS_READER(add_calls, call, struct live_hot, add_call)
XT_DEFINE_ROWS_READER(add_kernels, kernel, struct live_hot, add_kernel)
XT_DEFINE_ROWS_READER(add_transfers, copy, struct live_hot, add_transfer)

static int (*const adders[XT_KIND_COUNT])(struct live_hot *, const struct xt_chunk *) = {
	[XT_KIND_STRING] = add_strings, [XT_KIND_SHAPE] = add_shapes,
	[XT_KIND_MODULE] = add_modules, [XT_KIND_PYTHON_FRAME] = add_python_frames,
	[XT_KIND_STACK] = add_stacks,	[XT_KIND_CALL] = add_calls,
	[XT_KIND_KERNEL] = add_kernels, [XT_KIND_COPY] = add_transfers,
	[XT_KIND_SET] = add_transfers,
};

uint32_t live_hot_kinds(void)
{
	uint32_t kinds = 0;

	for (unsigned k = 0; k < XT_KIND_COUNT; k++)
		kinds |= (uint32_t)(adders[k] != NULL) << k;
	return kinds;
}

int live_hot_add(struct live_hot *hot, const struct xt_chunk *chunk)
{
	enum xt_kind kind = xt_chunk_kind(chunk);

	return adders[kind] ? adders[kind](hot, chunk) : 0;
}

static void clear_slot(struct live_ranking *ranking, unsigned slot)
{
	for (size_t i = 0; i < ranking->count; i++)
		ranking->rows[i].recent_ns[slot] = ranking->rows[i].recent_count[slot] = 0;
}

void live_hot_advance(struct live_hot *hot)
{
	hot->slot = (hot->slot + 1) % LIVE_HOT_SLOTS;
	clear_slot(&hot->kernels, hot->slot);
	clear_slot(&hot->paths, hot->slot);
}

static uint64_t sum(const uint64_t values[LIVE_HOT_SLOTS])
{
	uint64_t total = 0;

	for (unsigned s = 0; s < LIVE_HOT_SLOTS; s++)
		total += values[s];
	return total;
}

uint64_t live_hot_recent_ns(const struct live_hot_row *row)
{
	return sum(row->recent_ns);
}

uint64_t live_hot_recent_count(const struct live_hot_row *row)
{
	return sum(row->recent_count);
}

const struct live_module *live_hot_module(const struct live_hot *hot, uint64_t id)
{
	return id < hot->module_capacity && hot->modules[id].path ? &hot->modules[id] : NULL;
}

struct xt_bytes live_hot_string(const struct live_hot *hot, uint64_t id)
{
	const struct live_string *row = id < hot->string_capacity ? &hot->strings[id] : NULL;

	if (!row || !row->is_defined)
		return (struct xt_bytes){"", 0};
	return (struct xt_bytes){hot->text + row->offset, row->length};
}

const struct live_python_frame *live_hot_python(const struct live_hot *hot, uint64_t id)
{
	return id < hot->python_capacity ? &hot->python_frames[id] : NULL;
}

void live_hot_free(struct live_hot *hot)
{
	for (size_t m = 0; m < hot->module_capacity; m++)
		free(hot->modules[m].path);
	free_all(hot->modules, hot->stacks, hot->python_frames, hot->strings, hot->name_of_shape,
		 hot->words, hot->text, hot->calls, hot->kernels.rows, hot->paths.rows);
	*hot = (struct live_hot){0};
}
