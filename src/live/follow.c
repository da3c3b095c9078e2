/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rankings, and the log that they are read from.
 *
 * A compacted log has copies of the newest chunks of the old one, then new chunks. To find where to
 * continue, the last counted chunk of each kind of event is recognised by its content. A first pass
 * over the new log looks for these chunks, and a second pass skips all chunks up to them. A kind
 * whose last chunk is not found has only new chunks.
 */
#include "live/follow.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "log/base/grow.h"
#include "log/base/hash_table.h"
#include "log/base/monotonic.h"
#include "log/read/rows.h"
#include "log/read/decode.h"

/* Rows with ids are defined once: a compacted log repeats them, which is ignored. */

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
	*error = grow_bytes(table, capacity, (size_t)id + 1, row_bytes);
	return *error ? NULL : *(char **)table + id * row_bytes;
}

static int add_string(struct live_hot *hot, const struct xt_row_string *in)
{
	struct live_strings *strings = &hot->strings;
	int error = 0;
	struct live_string *row =
		row_at(&strings->rows, &strings->capacity, in->id, IDS_MAX, sizeof(*row), &error);
	size_t length = in->text.length, before = strings->text_bytes;

	if (!row || row->is_defined || length > TEXT_MAX - before)
		return error;
	if (grow(strings->text, strings->text_capacity, before + length + 1))
		return -ENOMEM;
	if (length)
		memcpy(strings->text + before, in->text.data, length);
	row->offset = (uint32_t)before;
	row->length = (uint32_t)length;
	row->is_defined = true;
	strings->text_bytes += length;
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
static void put_words(struct live_stacks *stacks, struct xt_list from, size_t count)
{
	for (size_t i = 0; i < count; i++)
		stacks->words[stacks->word_count++] = i < from.length ? from.elements[i] : 0;
}

static int add_stack(struct live_hot *hot, const struct xt_row_stack *in)
{
	struct live_stacks *stacks = &hot->stacks;
	int error = 0;
	struct live_stack *row =
		row_at(&stacks->rows, &stacks->capacity, in->id, IDS_MAX, sizeof(*row), &error);
	size_t needed = 2 * in->frames.length + in->python.length;

	if (!row || row->is_defined || needed > WORDS_MAX - stacks->word_count)
		return error;
	if (grow(stacks->words, stacks->word_capacity, stacks->word_count + needed))
		return -ENOMEM;
	*row = (struct live_stack){.first = stacks->word_count,
				   .frame_count = (uint32_t)in->frames.length,
				   .python_count = (uint32_t)in->python.length,
				   .is_defined = true};
	put_words(stacks, in->frames, in->frames.length);
	put_words(stacks, in->modules, in->frames.length);
	put_words(stacks, in->python, in->python.length);
	return 0;
}

static int follow_add_call(struct live_hot *hot, const struct xt_row_call *in)
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
	if (grow(ranking->rows, ranking->capacity, place + 1u))
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
	    call->stack >= hot->stacks.capacity || !hot->stacks.rows[call->stack].is_defined)
		return LIVE_HOT_OTHER;
	stack = &hot->stacks.rows[call->stack];
	if (!stack->is_named)
		stack->path = hot->namer.path(hot->namer.context, hot, call->stack);
	stack->is_named = true;
	return stack->path;
}

static uint16_t kernel_of(struct live_hot *hot, uint64_t shape)
{
	uint32_t name = shape < hot->shape_capacity ? hot->name_of_shape[shape] : 0;
	struct live_string *string = name < hot->strings.capacity ? &hot->strings.rows[name] : NULL;

	if (!string || !string->is_defined)
		return LIVE_HOT_OTHER;
	if (!string->is_named)
		string->kernel = hot->namer.kernel(
			hot->namer.context, hot->strings.text + string->offset, string->length);
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
XT_DEFINE_ROWS_READER(add_calls, call, struct live_hot, follow_add_call)
XT_DEFINE_ROWS_READER(add_kernels, kernel, struct live_hot, add_kernel)
XT_DEFINE_ROWS_READER(add_transfers, copy, struct live_hot, add_transfer)

static int (*const adders[XT_KIND_COUNT])(struct live_hot *, const struct xt_chunk *) = {
	[XT_KIND_STRING] = add_strings, [XT_KIND_SHAPE] = add_shapes,
	[XT_KIND_MODULE] = add_modules, [XT_KIND_PYTHON_FRAME] = add_python_frames,
	[XT_KIND_STACK] = add_stacks,	[XT_KIND_CALL] = add_calls,
	[XT_KIND_KERNEL] = add_kernels, [XT_KIND_COPY] = add_transfers,
	[XT_KIND_SET] = add_transfers,
};

static uint32_t live_hot_kinds(void)
{
	uint32_t kinds = 0;

	for (unsigned k = 0; k < XT_KIND_COUNT; k++)
		kinds |= (uint32_t)(adders[k] != NULL) << k;
	return kinds;
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

uint64_t live_hot_sum(const uint64_t values[LIVE_HOT_SLOTS])
{
	uint64_t total = 0;

	for (unsigned s = 0; s < LIVE_HOT_SLOTS; s++)
		total += values[s];
	return total;
}

const struct live_module *live_hot_module(const struct live_hot *hot, uint64_t id)
{
	return id < hot->module_capacity && hot->modules[id].path ? &hot->modules[id] : NULL;
}

struct xt_bytes live_hot_string(const struct live_hot *hot, uint64_t id)
{
	const struct live_string *row = id < hot->strings.capacity ? &hot->strings.rows[id] : NULL;

	if (!row || !row->is_defined)
		return (struct xt_bytes){"", 0};
	return (struct xt_bytes){hot->strings.text + row->offset, row->length};
}

const struct live_python_frame *live_hot_python(const struct live_hot *hot, uint64_t id)
{
	return id < hot->python_capacity ? &hot->python_frames[id] : NULL;
}

static void live_hot_free(struct live_hot *hot)
{
	for (size_t m = 0; m < hot->module_capacity; m++)
		free(hot->modules[m].path);
	free_all(hot->modules, hot->stacks.rows, hot->python_frames, hot->strings.rows,
		 hot->name_of_shape, hot->stacks.words, hot->strings.text, hot->calls,
		 hot->kernels.rows, hot->paths.rows);
	*hot = (struct live_hot){0};
}

#define HASHED_ROWS 64 /* more are not needed to tell chunks apart */

/* Columns that together differ between any two chunks of a kind. */
static const unsigned hashed_columns[XT_KIND_COUNT][2] = {
	[XT_KIND_CALL] = {XT_CALL_CORRELATION, XT_CALL_ENTER_NS},
	[XT_KIND_KERNEL] = {XT_KERNEL_CORRELATION, XT_KERNEL_START_NS},
	[XT_KIND_COPY] = {XT_COPY_CORRELATION, XT_COPY_START_NS},
	[XT_KIND_SET] = {XT_SET_CORRELATION, XT_SET_START_NS},
	[XT_KIND_MEMORY] = {XT_MEMORY_ADDRESS, XT_MEMORY_TIME_NS},
};

static struct live_fingerprint fingerprint_of(const struct xt_chunk *chunk)
{
	struct live_fingerprint fingerprint = {.row_count = xt_chunk_rows(chunk)};
	size_t rows = fingerprint.row_count < HASHED_ROWS ? fingerprint.row_count : HASHED_ROWS;

	for (unsigned c = 0; c < 2; c++) {
		unsigned column = hashed_columns[xt_chunk_kind(chunk)][c];
		uint32_t hash = xt_hash_bytes(xt_chunk_u64(chunk, column), rows * sizeof(uint64_t));

		fingerprint.hash = fingerprint.hash << 32 | hash;
	}
	return fingerprint;
}

static void search_chunk(struct live_log *log, const struct xt_chunk *chunk)
{
	struct live_place *place = &log->places[xt_chunk_kind(chunk)];
	struct live_fingerprint fingerprint = fingerprint_of(chunk);

	place->seen_count++;
	if (fingerprint.row_count == place->last.row_count && fingerprint.hash == place->last.hash)
		place->skip_count = place->seen_count;
}

static int add_chunk(struct live_log *log, const struct xt_chunk *chunk)
{
	enum xt_kind kind = xt_chunk_kind(chunk);
	struct live_place *place = &log->places[kind];

	if (LIVE_EVENT_KINDS >> kind & 1) {
		if (++place->seen_count <= place->skip_count)
			return 0;
		place->last = fingerprint_of(chunk);
	}
	return log->is_ranked && adders[kind] && adders[kind](&log->hot, chunk)
		       ? -ENOMEM
		       : live_totals_add(&log->totals, chunk);
}

/* Starts to read the file of fd from its beginning. */
static int open_reader(struct live_log *log)
{
	enum xt_open_error error;

	xt_reader_close(log->reader);
	error = xt_reader_open_fd(log->fd, &log->reader);
	for (unsigned k = 0; k < XT_KIND_COUNT; k++)
		log->places[k].seen_count = 0;
	if (error == XT_OPEN_ERRNO)
		return -errno;
	return error ? -EBADMSG : 0;
}

static int open_file(const char *path, struct stat *status)
{
	/* The directory may belong to another user: neither follow a link nor wait for a FIFO. */
	int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);

	if (fd < 0)
		return -errno;
	if (!fstat(fd, status))
		return fd;
	close(fd);
	return -errno;
}

int live_log_open(struct live_log **log_out, const char *path, const struct live_namer *namer)
{
	struct live_log *log = calloc(1, sizeof(*log));
	int error = -ENOMEM;

	*log_out = NULL;
	if (!log)
		return error;
	log->fd = -1;
	log->is_ranked = namer != NULL;
	if (namer)
		log->hot.namer = *namer;
	log->path = strdup(path);
	if (!log->path)
		goto fail;
	error = log->fd = open_file(path, &log->status);
	if (error < 0)
		goto fail;
	error = open_reader(log);
	if (error)
		goto fail;
	log->header = *xt_reader_header(log->reader);
	*log_out = log;
	return 0;
fail:
	live_log_close(log);
	return error;
}

/* Whether the name now belongs to another file. A deleted log is followed to its end. */
static bool is_replaced(const struct live_log *log)
{
	struct stat status;

	return !lstat(log->path, &status) &&
	       (status.st_ino != log->status.st_ino || status.st_dev != log->status.st_dev);
}

static uint64_t damaged_in_file(const struct live_log *log)
{
	const struct xt_damage *damage = log->reader ? xt_reader_damage(log->reader) : NULL;

	return damage ? damage->chunks_damaged + damage->chunks_missing : 0;
}

/* Continues in the file that has the log's name now. */
static int switch_file(struct live_log *log)
{
	struct stat status;
	int error, fd = open_file(log->path, &status);

	if (fd < 0)
		return fd;
	log->damaged_before += damaged_in_file(log);
	close(log->fd);
	log->fd = fd;
	log->status = status;
	error = open_reader(log);
	if (error)
		return error;
	for (unsigned k = 0; k < XT_KIND_COUNT; k++)
		log->places[k].skip_count = 0;
	log->is_searching = true;
	return xt_reader_header(log->reader)->log_id == log->header.log_id ? 0 : -ESTALE;
}

/* Reads up to the end of this file. Returns 0, 1 if the time is over, or -errno. */
static int read_file(struct live_log *log, uint64_t until_ns)
{
	uint32_t kinds = log->is_searching
				 ? LIVE_EVENT_KINDS
				 : live_totals_kinds() | (log->is_ranked ? live_hot_kinds() : 0);
	const struct xt_chunk *chunk;
	char why[XT_REFUSAL_BYTES];
	int error = 0;

	while (!error && (chunk = xt_reader_next(log->reader, kinds))) {
		if (log->is_searching)
			search_chunk(log, chunk);
		else
			error = add_chunk(log, chunk);
		if (!error && monotonic_ns() >= until_ns)
			return 1;
	}
	if (!error && xt_reader_refused(log->reader, why))
		return -EFBIG;
	return error;
}

int live_log_read(struct live_log *log, uint64_t budget_ns)
{
	uint64_t until_ns = monotonic_ns() + budget_ns;
	int outcome;

	for (;;) {
		/* Before reading: after a replacement, nothing more is written to this file. */
		bool was_replaced = is_replaced(log);

		/* A file that was cut is read again, like one that replaced it. */
		outcome =
			xt_reader_follow(log->reader) ? read_file(log, until_ns) : switch_file(log);
		if (outcome)
			return outcome;
		if (log->is_searching) {
			outcome = open_reader(log);
			log->is_searching = false;
		} else if (was_replaced) {
			outcome = switch_file(log);
		} else {
			log->is_current = true;
			return 0;
		}
		if (outcome)
			return outcome;
	}
}

void live_log_advance(struct live_log *log, bool is_running)
{
	if (is_running)
		live_totals_advance(&log->totals);
	else
		live_totals_finish(&log->totals);
}

uint64_t live_log_damaged_count(const struct live_log *log)
{
	return log->damaged_before + damaged_in_file(log);
}

void live_log_close(struct live_log *log)
{
	if (!log)
		return;
	xt_reader_close(log->reader);
	if (log->fd >= 0)
		close(log->fd);
	live_totals_free(&log->totals);
	live_hot_free(&log->hot);
	free_all(log->path, log);
}
