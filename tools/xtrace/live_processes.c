/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process is recognised by the random id in its log. Names are not enough: several may lead to
 * one log, and a later process may use the name of an earlier one.
 */
#include "live_processes.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "cli/message.h"
#include "data_dir.h"
#include "log/base/compare.h"
#include "log/base/grow.h"
#include "log/base/monotonic.h"
#include "merge/symbolize/addresses.h"

#define PATH_FRAMES 8 /* the innermost ones */
#define PATH_BYTES  1024
#define TEXTS_MAX   65536 /* further ones are looked up to find rows that exist */
#define OTHER	    "[other]"

/* Frames at the inner end in these libraries belong to CUDA or the tracer. */
static const char *const hidden_libraries[] = {"libcuda.so", "libcudart.so", "libcupti.so",
					       "libxtrace_inject.so"};

/* Functions that begin the main thread and others. */
static const char *const outer_functions[] = {
	"_start", "__libc_start_main", "__libc_start_call_main", "start_thread", "clone", "clone3"};

static bool is_hidden(const struct live_module *module)
{
	const char *file = base_name(module->path);

	for (size_t i = 0; i < sizeof(hidden_libraries) / sizeof(*hidden_libraries); i++)
		if (module_is_library(file, hidden_libraries[i]))
			return true;
	return false;
}

static bool is_outer(const char *function)
{
	for (size_t i = 0; i < sizeof(outer_functions) / sizeof(*outer_functions); i++)
		if (!strcmp(function, outer_functions[i]))
			return true;
	return false;
}

static const char *demangled(struct live_names *names, const char *text, size_t length)
{
	uint32_t mangled = names_try_intern(&names->mangled, text, length);
	uint32_t shown = mangled == NAME_FAILED
				 ? NAME_FAILED
				 : demangle_try(&names->demangled, mangled, DEMANGLE_SHORT);

	return shown == NAME_FAILED ? OTHER : names_text(&names->shown, shown, NULL);
}

/* The function of a frame, or its module in brackets. */
static void name_frame(struct live_names *names, const struct live_module *module, uint64_t frame,
		       char *out, size_t out_bytes)
{
	bool returns = frame >> XT_FRAME_KIND_SHIFT == XT_FRAME_RETURN;
	uint64_t address = (frame & XT_FRAME_VALUE_MASK) - returns - module->bias;
	struct open_module *open = module_cache_open(&names->search, module->path, module->build_id,
						     module->build_id_bytes, false);
	const struct symbol *symbol =
		open && open->symbols ? symbols_find(open->symbols, address) : NULL;

	if (symbol)
		snprintf(out, out_bytes, "%s",
			 demangled(names, symbol->name, strlen(symbol->name)));
	else
		snprintf(out, out_bytes, "[%s]", base_name(module->path));
	if (open)
		module_cache_release(&names->modules, open);
}

/* Puts a frame before the path, unless it does not fit. Python names may have any characters. */
static void prepend(char path[PATH_BYTES], char *frame)
{
	size_t length, old = strlen(path);

	utf8_make_plain(frame, '?');
	length = strlen(frame);
	if (length + old + 2 > PATH_BYTES)
		return;
	memmove(path + length + (old > 0), path, old + 1);
	memcpy(path, frame, length);
	if (old)
		path[length] = ';';
}

static void name_python(char path[PATH_BYTES], const struct live_hot *hot,
			const struct live_stack *stack)
{
	const uint64_t *ids = &hot->stacks.words[stack->first + 2 * (uint64_t)stack->frame_count];

	for (uint32_t f = 0; f < stack->python_count && f < PATH_FRAMES; f++) {
		const struct live_python_frame *frame = live_hot_python(hot, ids[f]);
		struct xt_bytes name = live_hot_string(hot, frame ? frame->name : 0);
		struct xt_bytes file = live_hot_string(hot, frame ? frame->file : 0);
		const char *slash = memrchr(file.data, '/', file.length);
		size_t skipped = slash ? (size_t)(slash + 1 - file.data) : 0;
		char text[256];

		snprintf(text, sizeof(text), "%.*s (%.*s:%u)", (int)name.length, name.data,
			 (int)(file.length - skipped), file.data + skipped,
			 frame ? frame->line : 0);
		prepend(path, text);
	}
}

static void name_native(struct live_names *names, char path[PATH_BYTES], const struct live_hot *hot,
			const struct live_stack *stack)
{
	const uint64_t *frames = &hot->stacks.words[stack->first];
	const uint64_t *modules = frames + stack->frame_count;
	unsigned shown = 0;
	char text[256];

	for (uint32_t f = 0; f < stack->frame_count && shown < PATH_FRAMES; f++) {
		const struct live_module *module = live_hot_module(hot, modules[f]);

		if (module && !shown && is_hidden(module))
			continue;
		if (module)
			name_frame(names, module, frames[f], text, sizeof(text));
		else
			snprintf(text, sizeof(text), "[unknown]");
		if (is_outer(text))
			break;
		prepend(path, text);
		shown++;
	}
}

/* The number of a text, unless there are too many. */
static uint16_t row_of(struct names *names, const char *text)
{
	uint32_t row = names->count < TEXTS_MAX ? names_try_intern(names, text, strlen(text))
						: NAME_FAILED;

	return row < LIVE_HOT_MAX ? (uint16_t)row : LIVE_HOT_OTHER;
}

static uint16_t name_path(void *context, const struct live_hot *hot, uint32_t number)
{
	const struct live_stack *stack = &hot->stacks.rows[number];
	struct live_names *names = context;
	char path[PATH_BYTES] = "";

	if (stack->python_count)
		name_python(path, hot, stack);
	else
		name_native(names, path, hot, stack);
	return row_of(&names->paths, path);
}

static uint16_t name_kernel(void *context, const char *text, size_t length)
{
	struct live_names *names = context;

	return row_of(&names->kernels, demangled(names, text, length));
}

int live_names_init(struct live_names *names)
{
	*names = (struct live_names){
		.demangled = {.mangled = &names->mangled,
			      .style = DEMANGLE_SHORT,
			      .shown = &names->shown},
		.modules = MODULE_CACHE(MODULE_CACHE_BYTES),
		/* A download would stop everything else. */
		.search = {.modules = &names->modules, .server = {.disabled = true}},
	};
	return names_try_init(&names->mangled) && names_try_init(&names->shown) &&
			       names_try_init(&names->paths) && names_try_init(&names->kernels)
		       ? 0
		       : -ENOMEM;
}

void live_names_free(struct live_names *names)
{
	demangle_cache_free(&names->demangled);
	names_free(&names->mangled);
	names_free(&names->shown);
	names_free(&names->paths);
	names_free(&names->kernels);
	module_cache_free(&names->modules);
}

static const char *name_at(const struct names *names, size_t row)
{
	return row == LIVE_HOT_OTHER ? OTHER : names_text(names, (uint32_t)row, NULL);
}

const char *live_names_path(const struct live_names *names, size_t row)
{
	return name_at(&names->paths, row);
}

const char *live_names_kernel(const struct live_names *names, size_t row)
{
	return name_at(&names->kernels, row);
}

#define SEARCH_NS	    UINT64_C(2000000000) /* reading the maps of all processes takes long */
#define SEARCH_DIRECTORY_NS UINT64_C(500000000)
#define UPDATE_NS	    UINT64_C(50000000) /* the server answers no request meanwhile */
#define READ_NS		    UINT64_C(20000000) /* of this, for one process */

static void free_row(struct live_process *row)
{
	live_log_close(row->log);
	free_all(row->traced.crash_buffer, row->traced.log);
}

static void remove_row(struct live_processes *processes, size_t at)
{
	free_row(&processes->rows[at]);
	array_remove(processes->rows, processes->count, at);
}

/* Opens the log. Returns 0, or a negative number if that has to be tried again later. */
static int open_row(struct live_process *row, const struct traced_process *found,
		    struct live_names *names)
{
	const struct live_namer namer = {names, name_path, name_kernel};

	*row = (struct live_process){.traced.pid = found->pid};
	row->traced.crash_buffer = strdup(found->crash_buffer);
	/* The path that the process sees may not exist here. */
	row->traced.log =
		strndup(found->crash_buffer, strlen(found->crash_buffer) - strlen(".spool"));
	if (!row->traced.crash_buffer || !row->traced.log)
		return -ENOMEM;
	/* HOST.PID.xtr */
	row->name = base_name(row->traced.log);
	row->name_length = strlen(row->name);
	if (has_ending(row->name, DATA_DIR_LOG_SUFFIX))
		row->name_length -= strlen(DATA_DIR_LOG_SUFFIX);
	return live_log_open(&row->log, row->traced.log, names ? &namer : NULL);
}

static bool has_same_name(const struct live_process *a, const struct live_process *b)
{
	return a->name_length == b->name_length && !memcmp(a->name, b->name, a->name_length);
}

/*
 * Whether the log is followed already, or another one of its name, which would have the same
 * labels. Forgets an ended process whose name is used again.
 */
static bool is_known(struct live_processes *processes, const struct live_process *new)
{
	uint64_t id = new->log->header.log_id;

	for (size_t i = processes->count; i-- > 0;) {
		struct live_process *row = &processes->rows[i];

		if (row->log->header.log_id == id)
			return true;
		if (!has_same_name(row, new))
			continue;
		if (!row->has_ended)
			return true;
		remove_row(processes, i);
	}
	return false;
}

static bool is_followed_path(const struct live_processes *processes, const char *crash_buffer)
{
	for (size_t i = 0; i < processes->count; i++)
		if (!processes->rows[i].has_ended &&
		    !strcmp(processes->rows[i].traced.crash_buffer, crash_buffer))
			return true;
	return false;
}

static void live_add(struct live_processes *processes, const struct traced_process *found)
{
	struct live_process row;

	if (is_followed_path(processes, found->crash_buffer) || !process_is_alive(found))
		return;
	if (processes->count == LIVE_PROCESSES_MAX) {
		if (!processes->is_full_noted)
			print_note("more than %d processes carry xtrace; the rest is left out",
				   LIVE_PROCESSES_MAX);
		processes->is_full_noted = true;
		return;
	}
	if (open_row(&row, found, processes->names) || is_known(processes, &row) ||
	    grow(processes->rows, processes->capacity, processes->count + 1))
		free_row(&row);
	else
		processes->rows[processes->count++] = row;
}

static bool has_new_process(const struct live_processes *processes, const struct process_list *list)
{
	for (size_t i = 0; i < list->count; i++)
		if (!is_followed_path(processes, list->rows[i].crash_buffer) &&
		    process_is_alive(&list->rows[i]))
			return true;
	return false;
}

static void search(struct live_processes *processes)
{
	struct process_list list = {0};

	/* A directory that is missing may appear later. */
	for (size_t d = 0; d < processes->directory_count; d++)
		processes_find_logs(&list, processes->directories[d]);
	if (processes->pid)
		processes_find_pid(&list, processes->pid);
	else if (!processes->directory_count)
		processes_find_all(&list);
	if (processes->directory_count && has_new_process(processes, &list))
		processes_find_pids(&list);
	for (size_t i = 0; i < list.count; i++)
		live_add(processes, &list.rows[i]);
	processes_free(&list);
}

static void live_end(struct live_process *row)
{
	if (!row->has_ended)
		row->ended_ns = monotonic_ns();
	row->has_ended = true;
}

/* Returns true if there is more to read. A log is read after its end, too: recovery appends. */
static bool read_row(struct live_process *row)
{
	/* Before reading: once the process has ended, what is in the log now is all of it. */
	bool is_alive = !row->has_ended && process_is_alive(&row->traced);
	struct process_status status;
	int outcome;

	if (is_alive && !process_status_read(&row->traced, &status)) {
		row->state = status.state;
		row->log_bytes = status.log_bytes;
		row->lost_count = status.lost_count;
	}
	outcome = row->has_failed ? 0 : live_log_read(row->log, READ_NS);
	if (!outcome && !row->has_failed && !row->has_ended)
		live_log_advance(row->log, is_alive);
	if (outcome < 0 && outcome != -ESTALE)
		print_note("cannot follow '%s': %s", row->traced.log, strerror(-outcome));
	row->has_failed |= outcome < 0;
	if (outcome == -ESTALE || (!is_alive && outcome <= 0))
		live_end(row);
	return outcome > 0;
}

static void remove_ended(struct live_processes *processes)
{
	uint64_t now = monotonic_ns();

	for (size_t i = processes->count; i-- > 0;)
		if (processes->rows[i].has_ended &&
		    now - processes->rows[i].ended_ns > processes->keep_ns)
			remove_row(processes, i);
}

bool live_processes_update(struct live_processes *processes)
{
	uint64_t start_ns = monotonic_ns(),
		 period_ns = processes->directory_count ? SEARCH_DIRECTORY_NS : SEARCH_NS;
	bool has_more = false;

	if (!processes->searched_ns || start_ns - processes->searched_ns >= period_ns) {
		search(processes);
		start_ns = processes->searched_ns = monotonic_ns();
	}
	for (size_t i = 0; i < processes->count; i++) {
		/* The next update begins with those that were left out. */
		if (i && monotonic_ns() - start_ns > UPDATE_NS)
			return true;
		processes->next = (processes->next + 1) % processes->count;
		has_more |= read_row(&processes->rows[processes->next]);
	}
	remove_ended(processes);
	return has_more;
}

void live_processes_free(struct live_processes *processes)
{
	for (size_t i = 0; i < processes->count; i++)
		free_row(&processes->rows[i]);
	free(processes->rows);
	*processes = (struct live_processes){0};
}
