/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows with ids are defined once: a compacted log repeats them, which is ignored.
 */
#include "live/hot.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "log/base/grow.h"

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

static int add_strings(struct live_hot *hot, const struct xt_chunk *chunk)
{
	const uint64_t *ids = xt_chunk_u64(chunk, XT_STRING_ID);
	int error = 0;

	for (uint32_t r = 0; r < xt_chunk_rows(chunk) && !error; r++) {
		struct xt_bytes text = xt_chunk_bytes(chunk, XT_STRING_TEXT, r);
		struct live_string *row = row_at(&hot->strings, &hot->string_capacity, ids[r],
						 IDS_MAX, sizeof(*row), &error);

		if (!row || row->is_defined || text.length > TEXT_MAX - hot->text_bytes)
			continue;
		error = grow(&hot->text, &hot->text_capacity, hot->text_bytes + text.length + 1, 1);
		if (error)
			break;
		if (text.length)
			memcpy(hot->text + hot->text_bytes, text.data, text.length);
		row->offset = (uint32_t)hot->text_bytes;
		row->length = (uint32_t)text.length;
		row->is_defined = true;
		hot->text_bytes += text.length;
	}
	return error;
}

static int add_shapes(struct live_hot *hot, const struct xt_chunk *chunk)
{
	const uint64_t *ids = xt_chunk_u64(chunk, XT_SHAPE_ID);
	const uint64_t *names = xt_chunk_u64(chunk, XT_SHAPE_NAME);
	int error = 0;

	for (uint32_t r = 0; r < xt_chunk_rows(chunk) && !error; r++) {
		uint32_t *row = row_at(&hot->name_of_shape, &hot->shape_capacity, ids[r], IDS_MAX,
				       sizeof(*row), &error);

		if (row && names[r] < IDS_MAX)
			*row = (uint32_t)names[r];
	}
	return error;
}

static int add_python_frames(struct live_hot *hot, const struct xt_chunk *chunk)
{
	const uint64_t *ids = xt_chunk_u64(chunk, XT_PYTHON_FRAME_ID);
	const uint64_t *names = xt_chunk_u64(chunk, XT_PYTHON_FRAME_NAME);
	const uint64_t *files = xt_chunk_u64(chunk, XT_PYTHON_FRAME_FILE);
	const uint64_t *lines = xt_chunk_u64(chunk, XT_PYTHON_FRAME_LINE);
	int error = 0;

	for (uint32_t r = 0; r < xt_chunk_rows(chunk) && !error; r++) {
		struct live_python_frame *row = row_at(&hot->python_frames, &hot->python_capacity,
						       ids[r], IDS_MAX, sizeof(*row), &error);

		if (row)
			*row = (struct live_python_frame){(uint32_t)names[r], (uint32_t)files[r],
							  (uint32_t)lines[r]};
	}
	return error;
}

static int add_modules(struct live_hot *hot, const struct xt_chunk *chunk)
{
	const uint64_t *ids = xt_chunk_u64(chunk, XT_MODULE_ID);
	const uint64_t *biases = xt_chunk_u64(chunk, XT_MODULE_BIAS);
	int error = 0;

	for (uint32_t r = 0; r < xt_chunk_rows(chunk) && !error; r++) {
		struct xt_bytes path = xt_chunk_bytes(chunk, XT_MODULE_PATH, r);
		struct xt_bytes build_id = xt_chunk_bytes(chunk, XT_MODULE_BUILD_ID, r);
		struct live_module *row = row_at(&hot->modules, &hot->module_capacity, ids[r],
						 MODULES_MAX, sizeof(*row), &error);

		if (!row || row->path || build_id.length > sizeof(row->build_id))
			continue;
		row->path = strndup(path.length ? path.data : "", path.length);
		if (!row->path)
			error = -ENOMEM;
		row->bias = biases[r];
		row->build_id_bytes = (uint8_t)build_id.length;
		if (build_id.length)
			memcpy(row->build_id, build_id.data, build_id.length);
	}
	return error;
}

/* Appends count words; those that `from` lacks are 0. */
static void put_words(struct live_hot *hot, const uint64_t *from, uint32_t from_count,
		      uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		hot->words[hot->word_count++] = i < from_count ? from[i] : 0;
}

static int add_stacks(struct live_hot *hot, const struct xt_chunk *chunk)
{
	const uint64_t *ids = xt_chunk_u64(chunk, XT_STACK_ID);
	int error = 0;

	for (uint32_t r = 0; r < xt_chunk_rows(chunk) && !error; r++) {
		uint32_t frames, modules, python;
		const uint64_t *frame = xt_chunk_list(chunk, XT_STACK_FRAMES, r, &frames);
		const uint64_t *module = xt_chunk_list(chunk, XT_STACK_MODULES, r, &modules);
		const uint64_t *py = xt_chunk_list(chunk, XT_STACK_PYTHON, r, &python);
		size_t needed = 2 * (size_t)frames + python;
		struct live_stack *row = row_at(&hot->stacks, &hot->stack_capacity, ids[r], IDS_MAX,
						sizeof(*row), &error);

		if (!row || row->is_defined || needed > WORDS_MAX - hot->word_count)
			continue;
		error = grow(&hot->words, &hot->word_capacity, hot->word_count + needed,
			     sizeof(*hot->words));
		if (error)
			break;
		*row = (struct live_stack){.first = hot->word_count,
					   .frame_count = frames,
					   .python_count = python,
					   .is_defined = true};
		put_words(hot, frame, frames, frames);
		put_words(hot, module, modules, frames);
		put_words(hot, py, python, python);
	}
	return error;
}

static int add_calls(struct live_hot *hot, const struct xt_chunk *chunk)
{
	const uint64_t *correlations = xt_chunk_u64(chunk, XT_CALL_CORRELATION);
	const uint64_t *stacks = xt_chunk_u64(chunk, XT_CALL_STACK);

	if (!hot->calls)
		hot->calls = calloc(CALLS, sizeof(*hot->calls));
	if (!hot->calls)
		return -ENOMEM;
	for (uint32_t r = 0; r < xt_chunk_rows(chunk); r++) {
		uint32_t stack = stacks[r] < IDS_MAX ? (uint32_t)stacks[r] : 0;

		hot->calls[correlations[r] % CALLS] =
			(struct live_pending_call){(uint32_t)correlations[r], stack};
	}
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

static int add_kernels(struct live_hot *hot, const struct xt_chunk *chunk)
{
	const uint64_t *correlations = xt_chunk_u64(chunk, XT_KERNEL_CORRELATION);
	const uint64_t *shapes = xt_chunk_u64(chunk, XT_KERNEL_SHAPE);
	const uint64_t *durations = xt_chunk_u64(chunk, XT_KERNEL_DURATION_NS);
	int error = 0;

	for (uint32_t r = 0; r < xt_chunk_rows(chunk) && !error; r++) {
		error = count_work(hot, &hot->paths, path_of(hot, correlations[r]), durations[r]);
		if (!error)
			error = count_work(hot, &hot->kernels, kernel_of(hot, shapes[r]),
					   durations[r]);
	}
	return error;
}

/* Copies and memsets have call paths, but are no kernels. */
static int add_transfers(struct live_hot *hot, const struct xt_chunk *chunk)
{
	const uint64_t *correlations = xt_chunk_u64(chunk, XT_COPY_CORRELATION);
	const uint64_t *durations = xt_chunk_u64(chunk, XT_COPY_DURATION_NS);
	int error = 0;

	for (uint32_t r = 0; r < xt_chunk_rows(chunk) && !error; r++)
		error = count_work(hot, &hot->paths, path_of(hot, correlations[r]), durations[r]);
	return error;
}

static int (*const adders[XT_KIND_COUNT])(struct live_hot *, const struct xt_chunk *) = {
	[XT_KIND_STRING] = add_strings, [XT_KIND_SHAPE] = add_shapes,
	[XT_KIND_MODULE] = add_modules, [XT_KIND_PYTHON_FRAME] = add_python_frames,
	[XT_KIND_STACK] = add_stacks,	[XT_KIND_CALL] = add_calls,
	[XT_KIND_KERNEL] = add_kernels, [XT_KIND_COPY] = add_transfers,
	[XT_KIND_SET] = add_transfers,
};
_Static_assert((int)XT_COPY_DURATION_NS == (int)XT_SET_DURATION_NS &&
		       (int)XT_COPY_CORRELATION == (int)XT_SET_CORRELATION,
	       "copies and memsets have the same columns");

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
	free(hot->modules);
	free(hot->stacks);
	free(hot->python_frames);
	free(hot->strings);
	free(hot->name_of_shape);
	free(hot->words);
	free(hot->text);
	free(hot->calls);
	free(hot->kernels.rows);
	free(hot->paths.rows);
	*hot = (struct live_hot){0};
}
