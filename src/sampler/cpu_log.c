/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/cpu_log.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "log/base/compare.h"
#include "log/base/grow.h"
#include "log/base/hash_table.h"
#include "log/base/monotonic.h"
#include "log/write/writer.h"
#include "xtrace/log_format.h"

/* Waiting for a CPU gets a row of its own from here on. Shorter waits add up until then. */
#define READY_ROW_NS 10000000

/* Time off the CPU that is left when a thread ends is added to its last wait up to here. */
#define SMALL_REST_NS 1000000

static void list_row(struct cpu_row_list *list, const struct xt_row_cpu_sample *row)
{
	if (grow(list->rows, list->capacity, list->count + 1))
		list->lost_count++;
	else
		list->rows[list->count++] = *row;
}

void thread_rows_start(struct thread_rows *rows, uint32_t thread, uint64_t start_ns)
{
	*rows = (struct thread_rows){.thread = thread, .covered_ns = start_ns};
}

void thread_rows_advance(struct thread_rows *rows, uint64_t now_ns, uint64_t run_ns,
			 uint64_t ready_ns)
{
	uint64_t left_ns = now_ns > rows->covered_ns ? now_ns - rows->covered_ns : 0, part_ns;

	rows->early_run_ns += run_ns;
	part_ns = smaller(rows->early_run_ns, left_ns);
	rows->early_run_ns -= part_ns;
	rows->run_ns += part_ns;
	left_ns -= part_ns;
	rows->off_ns += left_ns;
	/* The kernel counts a wait for a CPU when it ends, so it may be that of earlier calls. */
	rows->early_ready_ns += ready_ns;
	part_ns = smaller(rows->early_ready_ns, rows->off_ns);
	rows->early_ready_ns -= part_ns;
	rows->ready_ns += part_ns;
	rows->off_ns -= part_ns;
	rows->covered_ns = larger(rows->covered_ns, now_ns);
}

static bool is_same(const struct xt_row_cpu_sample *a, const struct xt_row_cpu_sample *b)
{
	return a->count && a->state == b->state && a->stack == b->stack && a->flags == b->flags &&
	       a->wait_pid == b->wait_pid && a->wait_tid == b->wait_tid;
}

/*
 * Adds an observation with the weight share_ns. can_extend: it may become part of the last row if
 * that is equal. Puts the last row into the list otherwise.
 */
static void thread_rows_add(struct thread_rows *rows, const struct xt_row_cpu_sample *observed,
			    uint64_t share_ns, bool can_extend, struct cpu_row_list *list)
{
	struct xt_row_cpu_sample *last = &rows->last;

	if (can_extend && is_same(last, observed)) {
		last->count++;
		last->weight_ns += share_ns;
		if (observed->time_ns > last->time_ns)
			last->span_ns = observed->time_ns - last->time_ns;
		return;
	}
	if (last->count)
		list_row(list, last);
	*last = *observed;
	last->thread = rows->thread;
	last->count = 1;
	last->span_ns = 0;
	last->weight_ns = share_ns;
}

/* The path of the running thread is also what had to wait for a CPU. */
static void add_ready(struct thread_rows *rows, const struct xt_row_cpu_sample *running,
		      struct cpu_row_list *list)
{
	struct xt_row_cpu_sample ready = *running;

	ready.state = XT_CPU_READY;
	thread_rows_add(rows, &ready, rows->ready_ns, false, list);
	rows->ready_ns = 0;
}

void thread_rows_add_running(struct thread_rows *rows, const struct xt_row_cpu_sample *observed,
			     uint64_t share_ns, struct cpu_row_list *list)
{
	if (rows->ready_ns >= READY_ROW_NS)
		add_ready(rows, observed, list);
	thread_rows_add(rows, observed, share_ns, true, list);
	rows->run_ns -= share_ns;
}

void thread_rows_add_blocked(struct thread_rows *rows, const struct xt_row_cpu_sample *observed,
			     bool has_run, struct cpu_row_list *list)
{
	thread_rows_add(rows, observed, rows->off_ns, !has_run, list);
	rows->off_ns = 0;
}

void thread_rows_split(struct thread_rows *rows, struct cpu_row_list *list)
{
	struct xt_row_cpu_sample *last = &rows->last;

	if (!last->count)
		return;
	list_row(list, last);
	last->time_ns += last->span_ns;
	last->span_ns = last->weight_ns = 0;
	last->count = 0;
}

void thread_rows_end_wait(struct thread_rows *rows)
{
	if (!rows->off_ns)
		return;
	/* After a split, what is left of the wait is a row of its own. */
	rows->last.count += !rows->last.count;
	rows->last.weight_ns += rows->off_ns;
	rows->off_ns = 0;
}

void thread_rows_extend(struct thread_rows *rows, uint64_t now_ns)
{
	struct xt_row_cpu_sample *last = &rows->last;

	last->count++;
	last->weight_ns += rows->off_ns;
	rows->off_ns = 0;
	if (now_ns > last->time_ns)
		last->span_ns = now_ns - last->time_ns;
}

/* Moves rests that are not worth a row of their own. */
static void join_rests(struct thread_rows *rows)
{
	const struct xt_row_cpu_sample *last = &rows->last;
	bool is_blocked = last->count && last->state != XT_CPU_RUNNING &&
			  last->state != XT_CPU_IN_KERNEL && last->state != XT_CPU_PAGE_FAULT;

	if (rows->ready_ns < READY_ROW_NS) {
		rows->off_ns += rows->ready_ns;
		rows->ready_ns = 0;
	}
	if (is_blocked && rows->off_ns < SMALL_REST_NS)
		thread_rows_end_wait(rows);
}

static void add_rests(struct thread_rows *rows, struct cpu_row_list *list)
{
	const struct {
		uint64_t weight_ns;
		uint8_t state, flags;
	} rest[] = {
		{rows->run_ns, XT_CPU_RUNNING, XT_CPU_NO_NATIVE},
		{rows->ready_ns, XT_CPU_READY, XT_CPU_NO_NATIVE},
		{rows->off_ns, XT_CPU_UNKNOWN, XT_CPU_NO_NATIVE},
	};
	uint64_t time_ns = rows->covered_ns;

	time_ns = larger(time_ns, rows->last.time_ns);
	for (size_t i = 0; i < sizeof(rest) / sizeof(rest[0]); i++) {
		const struct xt_row_cpu_sample row = {
			.time_ns = time_ns, .state = rest[i].state, .flags = rest[i].flags};

		if (rest[i].weight_ns)
			thread_rows_add(rows, &row, rest[i].weight_ns, false, list);
	}
}

void thread_rows_end(struct thread_rows *rows, struct cpu_row_list *list)
{
	join_rests(rows);
	add_rests(rows, list);
	if (rows->last.count)
		list_row(list, &rows->last);
	rows->last.count = 0;
	rows->run_ns = rows->ready_ns = rows->off_ns = 0;
}

/* Definitions that get ids: equal keys get equal ids, and each is written once. Zeros are empty. */
struct definitions {
	struct interner keys;
	uint64_t *times_ns; /* when each key was first seen */
	size_t times_capacity;
	uint32_t forgotten; /* keys that were forgotten; ids continue after them */
	size_t written;	    /* of the keys: how many are in the log */
};

struct definition {
	uint32_t id;
	uint64_t time_ns;
	const void *key;
	size_t key_bytes;
};

/* The keys, and functions that put their rows. */
struct frame_key {
	uint32_t name, file; /* XT_STRING_ID */
	uint32_t first_line, line;
};

struct module_key {
	uint64_t start, end, bias;
	uint32_t build_id_bytes, path_bytes;
	uint8_t texts[64 + 4096]; /* the build id, then the path */
};

/* Followed by u64 frames, u32 modules, u32 Python frames and u32 places. */
struct stack_key {
	uint32_t flags, native_count, python_count, reserved;
};

struct thread_key {
	uint32_t
		id; /* XT_THREAD_ID, which is not that of the definition: a thread may be renamed */
	pid_t tid;
	uint64_t start_ns;
	char name[32];
};

/* Above this, the keys are forgotten. Stacks that recur are defined again, with other ids. */
#define KEYS_BYTES_MAX (32u << 20)

/* Returns the id of the key, or 0 if out of memory. */
static uint32_t definitions_id(struct definitions *definitions, const void *key, size_t key_bytes,
			       uint64_t now_ns)
{
	bool is_new;
	uint32_t id;

	/* First, so that no key is without a time. */
	if (grow(definitions->times_ns, definitions->times_capacity, definitions->keys.count + 1))
		return 0;
	id = interner_id(&definitions->keys, key, key_bytes, &is_new);
	if (is_new)
		definitions->times_ns[id - 1] = now_ns;
	return id ? definitions->forgotten + id : 0;
}

/*
 * Puts the definitions that were not written yet into the table, and the table into the log. put()
 * adds one row; it needs room for the bytes of its key. Forgets the keys if they are too large.
 */
static int
definitions_write(struct definitions *definitions, struct xt_writer *writer, struct xt_table *table,
		  void (*put)(struct xt_table *table, const struct definition *definition))
{
	struct interner *keys = &definitions->keys;
	int error = 0;

	while (definitions->written < keys->count) {
		uint32_t at = (uint32_t)definitions->written + 1;
		struct definition definition = {.id = definitions->forgotten + at,
						.time_ns = definitions->times_ns[at - 1]};

		definition.key = interner_at(keys, at, &definition.key_bytes);
		if (!xt_table_has_room(table, definition.key_bytes)) {
			error = xt_writer_add(writer, table);
			if (error)
				return error;
		}
		put(table, &definition);
		definitions->written++;
	}
	error = xt_writer_add(writer, table);
	if (!error && keys->bytes_used > KEYS_BYTES_MAX) {
		definitions->forgotten += (uint32_t)keys->count;
		definitions->written = 0;
		interner_free(keys);
	}
	return error;
}

static void definitions_free(struct definitions *definitions)
{
	interner_free(&definitions->keys);
	free(definitions->times_ns);
	*definitions = (struct definitions){0};
}

static void definition_put_string(struct xt_table *table, const struct definition *definition)
{
	xt_write_string(
		table, &(struct xt_row_string){definition->id, xt_bytes_of(definition->key,
									   definition->key_bytes)});
}

static void definition_put_frame(struct xt_table *table, const struct definition *definition)
{
	struct frame_key key;

	memcpy(&key, definition->key, sizeof(key));
	xt_write_python_frame(table,
			      &(struct xt_row_python_frame){definition->id, key.name, key.file,
							    key.line, key.first_line});
}

static void definition_put_module(struct xt_table *table, const struct definition *definition)
{
	struct module_key key;

	memcpy(&key, definition->key, definition->key_bytes);
	xt_write_module(table,
			&(struct xt_row_module){
				.id = definition->id,
				.load_ns = definition->time_ns,
				.start = key.start,
				.end = key.end,
				.bias = key.bias,
				.path = xt_bytes_of(key.texts + key.build_id_bytes, key.path_bytes),
				.build_id = xt_bytes_of(key.texts, key.build_id_bytes),
			});
}

/* Lists have 64-bit elements. Takes those of 32 bits at *from, and moves it behind them. */
static struct xt_list take_list(const uint8_t **from, uint32_t count,
				uint64_t elements[XT_STACK_FRAMES_MAX])
{
	for (uint32_t i = 0; i < count; i++, *from += sizeof(uint32_t)) {
		uint32_t element;

		memcpy(&element, *from, sizeof(element));
		elements[i] = element;
	}
	return (struct xt_list){elements, count};
}

static void definition_put_stack(struct xt_table *table, const struct definition *definition)
{
	const uint8_t *at = definition->key;
	uint64_t lists[4][XT_STACK_FRAMES_MAX];
	struct xt_row_stack row = {.id = definition->id, .seen_ns = definition->time_ns};
	struct stack_key key;

	memcpy(&key, at, sizeof(key));
	at += sizeof(key);
	row.flags = key.flags;
	memcpy(lists[0], at, key.native_count * sizeof(*lists[0]));
	at += key.native_count * sizeof(*lists[0]);
	row.frames = (struct xt_list){lists[0], key.native_count};
	row.modules = take_list(&at, key.native_count, lists[1]);
	row.python = take_list(&at, key.python_count, lists[2]);
	row.places = take_list(&at, key.python_count, lists[3]);
	xt_write_stack(table, &row);
}

static void definition_put_thread(struct xt_table *table, const struct definition *definition)
{
	struct thread_key key;

	memcpy(&key, definition->key, sizeof(key));
	xt_write_thread(table, &(struct xt_row_thread){
				       .id = key.id,
				       .tid = (uint64_t)key.tid,
				       .name = {key.name, strnlen(key.name, sizeof(key.name))},
				       .start_ns = key.start_ns,
			       });
}

#define FLUSH_NS	     1000000000
#define FIRST_FLUSHES	     2		/* at once, and after FLUSH_NS */
#define IDLE_FLUSH_NS	     5000000000 /* for logs with few rows: each chunk costs some bytes */
#define IDLE_ROWS	     128
#define ROWS_MAX	     8192 /* flush at once */
#define WAITING_ROWS_MAX     65536
#define WAITING_BYTES_MAX    (16u << 20)
#define STRING_BYTES_MAX     (64u << 10)
#define META_VALUE_BYTES_MAX (32u << 10)

struct text_pair {
	char *key, *value;
};

/* XT_STRING_IDs of a function of the python_process. */
struct function_texts {
	uint32_t name, file;
};

struct cpu_log {
	const char *data_dir; /* of the caller */
	pid_t pid;
	uint64_t start_ns, flushed_ns;
	uint32_t flush_count;	  /* up to FIRST_FLUSHES */
	struct xt_writer *writer; /* NULL: the file was not created yet */
	struct text_pair *metas;
	size_t meta_count, meta_capacity;
	struct {
		const char *name;
		uint64_t value;
	} accounts[32];
	size_t account_count;
	uint32_t thread_count;
	struct definitions threads, modules, strings, frames, stacks;
	struct function_texts *functions;
	size_t function_capacity;
	struct cpu_row_list rows;
	uint64_t lost_rows;
};

/* A key of stack_key with all that follows. */
static uint8_t stack_bytes[sizeof(struct stack_key) +
			   XT_STACK_FRAMES_MAX * (sizeof(uint64_t) + sizeof(uint32_t)) +
			   XT_PYTHON_FRAMES_MAX * 2 * sizeof(uint32_t)];

static const struct {
	enum xt_kind kind;
	uint32_t rows;
	size_t content; /* bytes or list elements */
} layout[] = {
	{XT_KIND_META, 64, 128 << 10},	   {XT_KIND_THREAD, 1024, 64 << 10},
	{XT_KIND_MODULE, 1024, 512 << 10}, {XT_KIND_STRING, 1024, 1 << 20},
	{XT_KIND_PYTHON_FRAME, 4096, 0},   {XT_KIND_STACK, 4096, 128 << 10},
	{XT_KIND_CPU_SAMPLE, 16 << 10, 0}, {XT_KIND_CLOCK, 64, 0},
	{XT_KIND_ACCOUNT, 64, 4 << 10},
};
#define LAYOUT_COUNT (sizeof(layout) / sizeof(layout[0]))

int cpu_log_tables_init(struct cpu_log_tables *tables)
{
	int error = 0;

	*tables = (struct cpu_log_tables){0};
	for (size_t i = 0; i < LAYOUT_COUNT && !error; i++)
		error = xt_table_init(&tables->tables[layout[i].kind], layout[i].kind,
				      layout[i].rows, layout[i].content);
	return error;
}

void cpu_log_tables_free(struct cpu_log_tables *tables)
{
	for (size_t i = 0; i < LAYOUT_COUNT; i++)
		xt_table_free(&tables->tables[layout[i].kind]);
}

struct cpu_log *cpu_log_open(const char *data_dir, pid_t pid, uint64_t start_ns)
{
	struct cpu_log *log = calloc(1, sizeof(*log));

	if (!log)
		return NULL;
	log->data_dir = data_dir;
	log->pid = pid;
	log->start_ns = log->flushed_ns = start_ns;
	return log;
}

struct cpu_row_list *cpu_log_rows(struct cpu_log *log)
{
	return &log->rows;
}

void cpu_log_meta(struct cpu_log *log, const char *key, const char *value)
{
	struct text_pair *meta;

	if (grow(log->metas, log->meta_capacity, log->meta_count + 1))
		return;
	meta = &log->metas[log->meta_count];
	meta->key = strdup(key);
	meta->value = strndup(value, META_VALUE_BYTES_MAX);
	if (meta->key && meta->value) {
		log->meta_count++;
		return;
	}
	free_all(meta->key, meta->value);
}

void cpu_log_account(struct cpu_log *log, const char *name, uint64_t value)
{
	if (log->account_count == sizeof(log->accounts) / sizeof(log->accounts[0]))
		return;
	log->accounts[log->account_count].name = name;
	log->accounts[log->account_count++].value = value;
}

void cpu_log_rename_thread(struct cpu_log *log, uint32_t id, pid_t tid, const char *name,
			   uint64_t start_ns)
{
	struct thread_key key;

	memset(&key, 0, sizeof(key)); /* padding is part of the key */
	key.id = id;
	key.tid = tid;
	key.start_ns = start_ns;
	snprintf(key.name, sizeof(key.name), "%s", name);
	definitions_id(&log->threads, &key, sizeof(key), start_ns);
}

uint32_t cpu_log_thread(struct cpu_log *log, pid_t tid, const char *name, uint64_t start_ns)
{
	cpu_log_rename_thread(log, ++log->thread_count, tid, name, start_ns);
	return log->thread_count;
}

static uint32_t string_id(struct cpu_log *log, const char *text, uint64_t now_ns)
{
	size_t length = text ? strnlen(text, STRING_BYTES_MAX) : 0;

	return length ? definitions_id(&log->strings, text, length, now_ns) : 0;
}

/* The module that contains a frame. 0: none. */
static uint32_t module_id(struct cpu_log *log, struct process_modules *modules, uint64_t frame)
{
	uint64_t address = frame & XT_FRAME_VALUE_MASK;
	struct process_module *module;
	const struct elf_image *elf;
	struct module_key key;
	size_t path_bytes;

	/* A call can be the last instruction of a module, so its return address is behind it. */
	module = process_modules_find(
		modules, frame >> XT_FRAME_KIND_SHIFT == XT_FRAME_RETURN ? address - 1 : address);
	if (!module)
		return 0;
	if (module->log_id)
		return module->log_id;
	elf = module->elf;
	path_bytes = strlen(module->path);
	if (path_bytes + elf->build_id_bytes > sizeof(key.texts))
		return 0;
	key = (struct module_key){.start = module->start,
				  .end = module->end,
				  .bias = module->bias,
				  .build_id_bytes = elf->build_id_bytes,
				  .path_bytes = (uint32_t)path_bytes};
	memcpy(key.texts, elf->build_id, elf->build_id_bytes);
	memcpy(key.texts + elf->build_id_bytes, module->path, path_bytes);
	/* Its load is not observed. Each stack names its modules, so the time serves as a note. */
	module->log_id = definitions_id(&log->modules, &key,
					offsetof(struct module_key, texts) + elf->build_id_bytes +
						path_bytes,
					log->start_ns);
	return module->log_id;
}

static uint32_t python_frame_id(struct cpu_log *log, const struct python_process *process,
				const struct python_frame_read *frame, uint64_t now_ns)
{
	const struct python_function *function = python_process_function(process, frame->function);
	struct function_texts *texts;
	struct frame_key key;

	if (!function || grow(log->functions, log->function_capacity, (size_t)frame->function + 1))
		return 0;
	texts = &log->functions[frame->function];
	if (!texts->name) {
		texts->name = string_id(log, function->name, now_ns);
		texts->file = string_id(log, function->file, now_ns);
	}
	key = (struct frame_key){texts->name, texts->file, function->first_line, frame->line};
	return definitions_id(&log->frames, &key, sizeof(key), now_ns);
}

static uint8_t *cpu_log_append(uint8_t *at, const void *data, size_t bytes)
{
	memcpy(at, data, bytes);
	return at + bytes;
}

static uint8_t *append_native(struct cpu_log *log, uint8_t *at, const struct cpu_stack *stack)
{
	const struct native_stack *native = stack->native;

	at = cpu_log_append(at, native->frames, native->frame_count * sizeof(native->frames[0]));
	for (uint32_t i = 0; i < native->frame_count; i++) {
		uint32_t id = module_id(log, stack->modules, native->frames[i]);

		at = cpu_log_append(at, &id, sizeof(id));
	}
	return at;
}

uint32_t cpu_log_stack(struct cpu_log *log, const struct cpu_stack *stack, uint64_t now_ns)
{
	const struct python_stack *python = stack->python;
	struct stack_key key = {0};
	uint8_t *at = stack_bytes + sizeof(key);

	key.native_count = stack->native ? stack->native->frame_count : 0;
	key.python_count = python ? python->frame_count : 0;
	key.flags = stack->native ? stack->native->flags : 0;
	if (python && python->is_truncated)
		key.flags |= XT_STACK_PYTHON_TRUNCATED;
	if (python && stack->python_changed)
		key.flags |= XT_STACK_PYTHON_CHANGED;
	if (!key.native_count && !key.python_count)
		return 0;
	if (key.native_count)
		at = append_native(log, at, stack);
	for (uint32_t i = 0; i < key.python_count; i++) {
		uint32_t id =
			python_frame_id(log, stack->python_process, &python->frames[i], now_ns);

		if (!id)
			return 0;
		at = cpu_log_append(at, &id, sizeof(id));
	}
	at = cpu_log_append(at, stack->places, key.python_count * sizeof(*stack->places));
	memcpy(stack_bytes, &key, sizeof(key));
	return definitions_id(&log->stacks, stack_bytes, (size_t)(at - stack_bytes), now_ns);
}

void cpu_log_forget_program(struct cpu_log *log)
{
	free(log->functions);
	log->functions = NULL;
	log->function_capacity = 0;
}

bool cpu_log_is_due(const struct cpu_log *log, uint64_t now_ns)
{
	uint64_t age_ns = now_ns - log->flushed_ns;

	/* If xtrace is killed early, the log exists. */
	if (log->flush_count < FIRST_FLUSHES)
		return !log->flush_count || age_ns >= FLUSH_NS;
	return log->rows.count >= ROWS_MAX || (age_ns >= FLUSH_NS && log->rows.count > IDLE_ROWS) ||
	       age_ns >= IDLE_FLUSH_NS;
}

static int create_file(struct cpu_log *log)
{
	struct xt_log_header header = {
		.pid = (uint32_t)log->pid,
		.start_monotonic_ns = log->start_ns,
		.start_realtime_ns = realtime_ns() - monotonic_ns() + log->start_ns,
		.clock = XT_CLOCK_MONOTONIC,
		.machine = XT_MACHINE_OWN,
	};
	char path[PATH_MAX];

	return xt_writer_create_new(path, log->data_dir, ".cpu.xtr", &header, &log->writer);
}

static int write_metas(struct cpu_log *log, struct xt_table *table)
{
	size_t done = 0;

	for (; done < log->meta_count; done++) {
		struct text_pair *meta = &log->metas[done];
		size_t key_bytes = strlen(meta->key), value_bytes = strlen(meta->value);

		if (!xt_table_has_room(table, key_bytes + value_bytes) &&
		    xt_writer_add(log->writer, table))
			break;
		xt_write_meta(table, &(struct xt_row_meta){{meta->key, key_bytes},
							   {meta->value, value_bytes}});
		free_all(meta->key, meta->value);
	}
	memmove(log->metas, log->metas + done, (log->meta_count - done) * sizeof(*log->metas));
	log->meta_count -= done;
	return xt_writer_add(log->writer, table);
}

COMPARE_BY(by_time, struct xt_row_cpu_sample, UP(time_ns))

/* Sorted by time, because differences of times are stored. Rows of one thread are sorted already.
 */
static int write_rows(struct cpu_log *log, struct xt_table *table)
{
	struct cpu_row_list *rows = &log->rows;
	int error = 0;
	size_t done = 0;

	SORT(rows->rows, rows->count, by_time);
	for (; done < rows->count && !error; done++) {
		if (!xt_table_has_room(table, 0))
			error = xt_writer_add(log->writer, table);
		if (!error)
			xt_write_cpu_sample(table, &rows->rows[done]);
	}
	log->lost_rows += rows->count - done;
	rows->count = 0;
	return error ? error : xt_writer_add(log->writer, table);
}

static int write_clock(struct cpu_log *log, struct xt_table *table)
{
	xt_write_clock(table, &(struct xt_row_clock){monotonic_ns(), realtime_ns()});
	return xt_writer_add(log->writer, table);
}

static int write_tables(struct cpu_log *log, struct xt_table *tables)
{
	const struct {
		struct definitions *definitions;
		enum xt_kind kind;
		void (*put)(struct xt_table *table, const struct definition *definition);
	} parts[] = {
		{&log->threads, XT_KIND_THREAD, definition_put_thread},
		{&log->modules, XT_KIND_MODULE, definition_put_module},
		{&log->strings, XT_KIND_STRING, definition_put_string},
		{&log->frames, XT_KIND_PYTHON_FRAME, definition_put_frame},
		{&log->stacks, XT_KIND_STACK, definition_put_stack},
	};
	int error = write_metas(log, &tables[XT_KIND_META]);

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]) && !error; i++)
		error = definitions_write(parts[i].definitions, log->writer, &tables[parts[i].kind],
					  parts[i].put);
	if (!error)
		error = write_rows(log, &tables[XT_KIND_CPU_SAMPLE]);
	return error ? error : write_clock(log, &tables[XT_KIND_CLOCK]);
}

/* The disk is full, or there is no memory. */
static void drop_rows(struct cpu_log *log)
{
	log->lost_rows += log->rows.count;
	log->rows.count = 0;
}

int cpu_log_flush(struct cpu_log *log, struct cpu_log_tables *tables, uint64_t now_ns)
{
	int error = log->writer ? 0 : create_file(log);

	log->flushed_ns = now_ns;
	log->flush_count += log->flush_count < FIRST_FLUSHES;
	if (!error && xt_writer_pending_bytes(log->writer) < WAITING_BYTES_MAX)
		error = write_tables(log, tables->tables);
	/* The tables are shared with other logs. */
	for (size_t i = 0; i < LAYOUT_COUNT && error; i++)
		xt_table_clear(&tables->tables[layout[i].kind]);
	if (log->rows.count > WAITING_ROWS_MAX)
		drop_rows(log);
	if (log->writer && !error)
		error = xt_writer_flush(log->writer);
	return error;
}

static int write_accounts(struct cpu_log *log, struct xt_table *table)
{
	for (size_t i = 0; i < log->account_count; i++)
		xt_write_account(table, &(struct xt_row_account){xt_text(log->accounts[i].name),
								 log->accounts[i].value});
	return xt_writer_add(log->writer, table);
}

static void free_log(struct cpu_log *log)
{
	for (size_t i = 0; i < log->meta_count; i++)
		free_all(log->metas[i].key, log->metas[i].value);
	free_all(log->metas, log->functions, log->rows.rows);
	definitions_free(&log->threads);
	definitions_free(&log->modules);
	definitions_free(&log->strings);
	definitions_free(&log->frames);
	definitions_free(&log->stacks);
	free(log);
}

static int write_end(struct cpu_log *log, struct cpu_log_tables *tables)
{
	int error;

	cpu_log_account(log, "cpu.lost.write_failed", log->lost_rows + log->rows.lost_count);
	error = write_accounts(log, &tables->tables[XT_KIND_ACCOUNT]);
	if (!error)
		error = xt_writer_add_end(log->writer);
	return error ? error : xt_writer_flush(log->writer);
}

int cpu_log_close(struct cpu_log *log, struct cpu_log_tables *tables, uint64_t now_ns)
{
	int error, end_error = 0;

	if (!log)
		return 0;
	error = cpu_log_flush(log, tables, now_ns);
	if (log->writer) {
		drop_rows(log);
		end_error = write_end(log, tables);
		xt_writer_close(log->writer);
	}
	free_log(log);
	return error ? error : end_error;
}
