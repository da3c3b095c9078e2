/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The order of a recovery:
 * 1. Check the crash buffer, so that no log is touched without need.
 * 2. Lock the log. This fails while the traced process has it open.
 * 3. Read both, and append in one write what only the crash buffer has: what threads had committed
 *    to their rings (calls, NVTX events, graph nodes, the stacks they refer to), the calls that had
 *    not returned, and GPU work.
 * 4. Delete the crash buffer.
 */
#include "log/recover/recover.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "log/base/grow.h"
#include "log/recover/recover_crash_buffer.h"
#include "log/recover/recover_log.h"
#include "log/write/compact.h"
#include "log/write/event_rows.h"
#include "xtrace/reader.h"

#define LOST_VALUES "payload=[lost]\n"

/* The meaning of a stack slot at the cursor. */
struct slot {
	uint64_t stack_id;			  /* XT_STACK_ID; 0: none, or not in the log yet */
	const struct xt_record_stack *definition; /* in the ring; NULL: defined earlier */
};

/* The meaning of a module slot between two definitions. */
struct module_meaning {
	uint64_t module_id;			   /* XT_MODULE_ID; 0: not in the log yet */
	const struct xt_record_module *definition; /* in the ring; NULL: defined earlier */
};
/* The first entries mean: in no module; unknown. */
enum { MEANS_NONE, MEANS_UNKNOWN, MEANINGS_FIRST };
#define MEANINGS_MAX (UINT16_MAX + 1u) /* ten times what fits into a ring */

struct walk {
	struct recovery *recovery;
	struct recovery_ring *ring;
	struct slot *slots;
	struct module_meaning *meanings; /* MEANINGS_MAX */
	uint32_t meaning_count;
	uint16_t slot_meanings[XT_MODULE_SLOT_COUNT];  /* index in meanings, at the cursor */
	uint64_t module_ids[XT_STACK_FRAMES_MAX];      /* of the frames of a stack */
	uint64_t autograd_ids[XT_AUTOGRAD_SLOT_COUNT]; /* XT_AUTOGRAD_ID of each slot; 0: none */
};

struct python_lists {
	uint32_t count;
	uint64_t ids[XT_PYTHON_FRAMES_MAX];
	uint64_t places[XT_PYTHON_FRAMES_MAX];
};

static void list_python(struct recovery *recovery, const struct xt_record_stack *stack,
			struct python_lists *out)
{
	const struct xt_python_part *part = xt_python_part(stack);
	const struct xt_python_code *code = part ? xt_python_first_code(part) : NULL;
	struct {
		uint32_t name, file, first_line;
	} codes[XT_PYTHON_CODES_MAX];
	bool is_new;

	out->count = part ? part->frame_count : 0;
	for (uint32_t i = 0; part && i < part->code_count; i++) {
		codes[i].name =
			interner_id(&recovery->texts, code->text, code->name_bytes, &is_new);
		codes[i].file = interner_id(&recovery->texts, code->text + code->name_bytes,
					    code->file_bytes, &is_new);
		codes[i].first_line = code->first_line;
		code = xt_python_next_code(code);
	}
	for (uint32_t i = 0; i < out->count; i++) {
		const struct xt_python_frame *frame = &part->frames[i];

		out->ids[i] = recovery_python_frame(recovery, codes[frame->code].name,
						    codes[frame->code].file, frame->line,
						    codes[frame->code].first_line);
		out->places[i] = frame->place;
	}
}

/*
 * Returns the XT_MODULE_ID of a meaning, or 0 if unknown. Adds the module's row at its first use.
 */
static uint64_t module_id(struct walk *walk, uint16_t index)
{
	struct module_meaning *meaning = &walk->meanings[index];
	const struct xt_record_module *module = meaning->definition;
	struct xt_table *table;

	if (meaning->module_id || !module)
		return meaning->module_id;
	table = recovery_table(walk->recovery, XT_KIND_MODULE,
			       module->path_bytes + module->build_id_bytes);
	if (!table)
		return 0;
	meaning->module_id = ++walk->recovery->last_id[XT_KIND_MODULE];
	xt_write_module(table,
			&(struct xt_row_module){
				.id = meaning->module_id,
				.load_ns = walk->ring->header.start_ns,
				.start = module->start,
				.end = module->end,
				.bias = module->bias,
				.path = xt_bytes_of(module->text + module->build_id_bytes,
						    module->path_bytes),
				.build_id = xt_bytes_of(module->text, module->build_id_bytes),
			});
	return meaning->module_id;
}

/*
 * Fills in walk->module_ids for a stack that add_stack() translated. False if the module of a frame
 * is unknown.
 */
static bool find_modules(struct walk *walk, const struct xt_record_stack *stack)
{
	const uint16_t *meanings = xt_stack_modules((struct xt_record_stack *)stack);

	for (uint32_t i = 0; i < stack->frame_count; i++) {
		walk->module_ids[i] = meanings[i] == MEANS_NONE ? 0 : module_id(walk, meanings[i]);
		if (meanings[i] != MEANS_NONE && !walk->module_ids[i])
			return false;
	}
	return true;
}

/* Adds a stack only when something refers to it. */
static uint64_t stack_id(struct walk *walk, uint32_t slot_number)
{
	struct slot *slot = slot_number < XT_STACK_SLOT_COUNT ? &walk->slots[slot_number] : NULL;
	const struct xt_record_stack *stack = slot ? slot->definition : NULL;
	struct python_lists python;
	struct xt_table *table;

	if (!slot)
		return 0;
	if (slot->stack_id || !stack)
		return slot->stack_id;
	if (!find_modules(walk, stack))
		return 0;
	list_python(walk->recovery, stack, &python);
	table = recovery_table(walk->recovery, XT_KIND_STACK, stack->frame_count + python.count);
	if (!table)
		return 0;
	slot->stack_id = ++walk->recovery->last_id[XT_KIND_STACK];
	xt_write_stack(table, &(struct xt_row_stack){
				      .id = slot->stack_id,
				      .flags = stack->flags,
				      .seen_ns = stack->seen_ns,
				      .frames = {stack->frames, stack->frame_count},
				      .python = {python.ids, python.count},
				      .places = {python.places, python.count},
				      .modules = {walk->module_ids, stack->frame_count},
			      });
	return slot->stack_id;
}

/* Replaces the module slots of the stack, in our copy of the ring, by indexes of meanings. */
static void add_stack(struct walk *walk, const struct xt_record *record)
{
	struct xt_record_stack *stack = (void *)record;
	uint16_t *slots = xt_stack_modules(stack);

	for (uint32_t i = 0; i < stack->frame_count; i++)
		slots[i] = walk->slot_meanings[slots[i]];
	walk->slots[stack->stack_slot] = (struct slot){.definition = stack};
}

/* Starts a new meaning of the slot. Stacks that refer to the old one keep it. */
static void begin_meaning(struct walk *walk, uint32_t slot, struct module_meaning meaning)
{
	walk->slot_meanings[slot] = MEANS_UNKNOWN;
	if ((!meaning.module_id && !meaning.definition) || walk->meaning_count == MEANINGS_MAX)
		return;
	walk->slot_meanings[slot] = (uint16_t)walk->meaning_count;
	walk->meanings[walk->meaning_count++] = meaning;
}

static void add_module(struct walk *walk, const struct xt_record *record)
{
	const struct xt_record_module *module = (const void *)record;

	begin_meaning(walk, module->module_slot, (struct module_meaning){.definition = module});
}

static uint64_t text_id(struct walk *walk, const uint8_t *text, uint32_t bytes)
{
	bool is_new;

	return bytes ? recovery_string(walk->recovery,
				       interner_id(&walk->recovery->texts, text, bytes, &is_new))
		     : 0;
}

static void add_autograd(struct walk *walk, const struct xt_record *record)
{
	const struct xt_record_autograd *autograd = (const void *)record;
	struct xt_row_autograd row = {
		.thread = autograd->thread,
		.node_type = text_id(walk, autograd->text, autograd->type_bytes),
		.node_class =
			text_id(walk, autograd->text + autograd->type_bytes, autograd->class_bytes),
		.node_thread = autograd->node_thread,
		.caller = autograd->caller,
		.caller_stack = stack_id(walk, autograd->stack_slot),
	};
	struct xt_table *table = recovery_table(walk->recovery, XT_KIND_AUTOGRAD, 0);

	walk->autograd_ids[autograd->slot] = 0;
	if (!table)
		return;
	row.id = ++walk->recovery->last_id[XT_KIND_AUTOGRAD];
	walk->autograd_ids[autograd->slot] = row.id;
	xt_write_autograd(table, &row);
}

static uint64_t autograd_id(const struct walk *walk, const struct xt_autograd_state *autograd)
{
	return autograd && autograd->slot < XT_AUTOGRAD_SLOT_COUNT
		       ? walk->autograd_ids[autograd->slot]
		       : 0;
}

static bool add_call_row(struct walk *walk, const struct xt_record_call *call, uint64_t stack)
{
	struct xt_table *table = recovery_table(walk->recovery, XT_KIND_CALL, 0);

	if (!table)
		return false;
	recovery_note_call(walk->recovery, call->correlation_id);
	xt_put_call(table, call, walk->ring->header.thread_id, stack,
		    autograd_id(walk, xt_record_call_autograd(call)));
	return true;
}

static void recover_add_call(struct walk *walk, const struct xt_record *record)
{
	const struct xt_record_call *call = (const void *)record;
	const struct xt_ring_header *header = &walk->ring->header;
	uint64_t stack;

	for (uint32_t i = 0; i < header->open_count; i++)
		if (header->open_calls[i].enter_ns == call->enter_ns &&
		    header->open_calls[i].correlation_id == call->correlation_id)
			walk->ring->is_open_call_in_log[i] = true;
	if (call->exit_ns <= walk->ring->last_exit_ns || call->exit_ns < call->enter_ns)
		return;
	stack = stack_id(walk, call->stack_slot);
	/* The call was sampled but its stack is lost. */
	if (!stack && call->one_in && call->stack_slot != XT_STACK_SLOT_NONE)
		stack = XT_STACK_LOST;
	walk->recovery->out->rows[XT_KIND_CALL] += add_call_row(walk, call, stack);
}

static void add_node_update(struct walk *walk, const struct xt_record_node *node)
{
	uint64_t stack = stack_id(walk, node->stack_slot);
	struct xt_table *table = recovery_table(walk->recovery, XT_KIND_GRAPH_UPDATE, 0);

	if (!table)
		return;
	xt_put_node_update(table, node, walk->ring->header.thread_id, stack);
	walk->recovery->out->rows[XT_KIND_GRAPH_NODE]++;
}

static void add_node(struct walk *walk, const struct xt_record *record)
{
	const struct xt_record_node *node = (const void *)record;
	struct xt_table *table;
	uint64_t stack;

	if (node->time_ns <= walk->ring->last_node_ns)
		return;
	if (node->graph_exec) {
		add_node_update(walk, node);
		return;
	}
	stack = stack_id(walk, node->stack_slot);
	table = recovery_table(walk->recovery, XT_KIND_GRAPH_NODE, 0);
	if (!table)
		return;
	xt_put_node(table, node, walk->ring->header.thread_id, stack,
		    autograd_id(walk, xt_record_node_autograd(node)));
	walk->recovery->out->rows[XT_KIND_GRAPH_NODE]++;
}

static void add_node_name(struct walk *walk, const struct xt_record *record)
{
	const struct xt_record_node_name *name = (const void *)record;
	bool is_known = false;
	uint64_t id = recovery_name(walk->recovery, XT_NAME_KERNEL, name->name, &is_known);
	struct xt_table *table =
		is_known ? recovery_table(walk->recovery, XT_KIND_GRAPH_NODE_NAME, 0) : NULL;

	if (table)
		xt_write_graph_node_name(
			table, &(struct xt_row_graph_node_name){name->node_id, name->time_ns, id});
}

static void add_range(struct walk *walk, const struct xt_record *record)
{
	const struct xt_record_range *range = (const void *)record;
	struct recovery *recovery = walk->recovery;
	struct xt_range_texts texts = {0};
	uint64_t stack;
	struct xt_table *table;
	bool is_new;

	if (range->time_ns <= walk->ring->last_range_ns)
		return;
	stack = stack_id(walk, range->stack_slot);
	texts.text = recovery_string(
		recovery, interner_id(&recovery->texts, range->text, range->text_bytes, &is_new));
	if (range->domain)
		texts.domain = recovery_name(recovery, XT_NAME_DOMAIN, range->domain, &is_new);
	/* The payload schemas died with the process. */
	if (range->payload_bytes)
		texts.values = recovery_string(recovery, interner_id(&recovery->texts, LOST_VALUES,
								     strlen(LOST_VALUES), &is_new));
	table = recovery_table(recovery, XT_KIND_RANGE, 0);
	if (!table)
		return;
	xt_put_range(table, range, walk->ring->header.thread_id, stack, &texts);
	recovery->out->rows[XT_KIND_RANGE]++;
}

static void add_switch(struct walk *walk, const struct xt_record *record)
{
	const struct xt_record_switch *change = (const void *)record;
	struct xt_table *table = recovery_table(walk->recovery, XT_KIND_SWITCH, 0);

	if (!table)
		return;
	recovery_note_switch(walk->recovery, change->time_ns, change->is_on != 0);
	xt_write_switch(table, &(struct xt_row_switch){.time_ns = change->time_ns,
						       .is_on = change->is_on != 0});
}

/* Most of these records died with the process, so recover_log.c does not use them. */
static void pass_over(struct walk *walk, const struct xt_record *record)
{
	(void)walk;
	(void)record;
}

static void (*const adders[])(struct walk *, const struct xt_record *) = {
	[XT_RECORD_CALL] = recover_add_call, [XT_RECORD_STACK] = add_stack,
	[XT_RECORD_NODE] = add_node,	     [XT_RECORD_RANGE] = add_range,
	[XT_RECORD_SKIP] = pass_over,	     [XT_RECORD_SWITCH] = add_switch,
	[XT_RECORD_MODULE] = add_module,     [XT_RECORD_SHUTDOWN_DROP] = pass_over,
	[XT_RECORD_AUTOGRAD] = add_autograd, [XT_RECORD_NODE_NAME] = add_node_name,
};

/*
 * The stack of a call that had not returned. Nested calls may have reused its slot. So accept the
 * slot only if it was defined before the call. If the definition is no longer in the ring, also
 * require that the log has nothing of this thread since the call began.
 */
static uint64_t stack_of_open_call(struct walk *walk, const struct xt_open_call *call)
{
	const struct recovery_ring *ring = walk->ring;
	const struct slot *slot =
		call->stack_slot < XT_STACK_SLOT_COUNT ? &walk->slots[call->stack_slot] : NULL;

	if (!slot)
		return 0;
	if (slot->definition ? slot->definition->seen_ns > call->enter_ns
			     : ring->last_exit_ns >= call->enter_ns ||
				       ring->last_range_ns >= call->enter_ns ||
				       ring->last_node_ns >= call->enter_ns)
		return 0;
	return stack_id(walk, call->stack_slot);
}

/* The call lasts until the last known moment. */
static void add_open_call(struct walk *walk, uint32_t index)
{
	const struct xt_open_call *open = &walk->ring->header.open_calls[index];
	struct xt_record_call call = {
		.api = open->api,
		.correlation_id = open->correlation_id,
		.enter_ns = open->enter_ns,
		.exit_ns = walk->recovery->last_ns,
	};

	if (walk->ring->is_open_call_in_log[index] || call.exit_ns < call.enter_ns)
		return;
	if (!add_call_row(walk, &call, stack_of_open_call(walk, open)))
		return;
	walk->recovery->out->open_calls++;
	walk->recovery->returning_count +=
		walk->ring->is_last_returning && index + 1 == walk->ring->header.open_count;
}

static void add_thread(struct walk *walk)
{
	const struct xt_ring_header *header = &walk->ring->header;
	struct xt_table *table;

	if (walk->ring->has_thread_row)
		return;
	table = recovery_table(walk->recovery, XT_KIND_THREAD, 0);
	if (!table)
		return;
	xt_write_thread(table, &(struct xt_row_thread){.id = header->thread_id,
						       .tid = header->tid,
						       .start_ns = header->start_ns});
	walk->recovery->thread_count++;
}

static void add_ring(struct walk *walk)
{
	const struct xt_ring_header *header = &walk->ring->header;
	struct recovery_cursor cursor = {walk->ring, header->free_pos, false};
	const struct xt_record *record;

	for (uint32_t i = 0; i < XT_STACK_SLOT_COUNT; i++)
		walk->slots[i] = (struct slot){.stack_id = header->slot_stack_id[i]};
	walk->meaning_count = MEANINGS_FIRST;
	for (uint32_t i = 0; i < XT_MODULE_SLOT_COUNT; i++)
		begin_meaning(walk, i,
			      (struct module_meaning){.module_id = header->slot_module_id[i]});
	walk->slot_meanings[XT_MODULE_SLOT_NONE] = MEANS_NONE;
	for (uint32_t i = 0; i < XT_AUTOGRAD_SLOT_COUNT; i++)
		walk->autograd_ids[i] = header->slot_autograd_id[i];
	add_thread(walk);
	while (!walk->recovery->error && (record = recovery_next_record(&cursor)))
		adders[record->type](walk, record);
	for (uint32_t i = header->open_count; i-- > 0;) /* innermost first */
		add_open_call(walk, i);
	walk->recovery->out->areas_damaged += cursor.damaged;
}

static void recovery_add_rings(struct recovery *recovery)
{
	struct walk walk = {.recovery = recovery};

	walk.slots = calloc(XT_STACK_SLOT_COUNT, sizeof(*walk.slots));
	walk.meanings = calloc(MEANINGS_MAX, sizeof(*walk.meanings));
	if (!walk.slots || !walk.meanings)
		recovery->error = -ENOMEM;
	for (size_t i = 0; i < recovery->ring_count && !recovery->error; i++) {
		walk.ring = recovery->rings[i];
		add_ring(&walk);
	}
	free_all(walk.meanings, walk.slots);
}

static void release(struct recovery *recovery)
{
	for (size_t i = 0; i < recovery->ring_count; i++)
		free_all(recovery->rings[i]->records, recovery->rings[i]);
	free_all(recovery->rings, recovery->crash_buffer, recovery->work, recovery->work_by_call,
		 recovery->switches, recovery->name_texts, recovery->stream_ids,
		 recovery->text_strings);
	interner_free(&recovery->names);
	interner_free(&recovery->texts);
	interner_free(&recovery->streams);
	interner_free(&recovery->shapes);
	interner_free(&recovery->copy_shapes);
	interner_free(&recovery->python_frames);
	recovery_close_tables(recovery);
	xt_writer_close(recovery->writer);
	if (recovery->crash_buffer_fd >= 0)
		close(recovery->crash_buffer_fd);
	free(recovery);
}

/* Fails with -EBADMSG if the crash buffer belongs to another log. */
static int read_log_header(struct recovery *recovery, const char *log_path)
{
	struct xt_reader *reader;
	enum xt_open_error error = xt_reader_open(log_path, &reader);

	if (error)
		return error == XT_OPEN_ERRNO ? -errno : -EBADMSG;
	recovery->log_header = *xt_reader_header(reader);
	xt_reader_close(reader);
	return recovery->log_header.log_id == recovery->crash_buffer->log_id ? 0 : -EBADMSG;
}

static bool is_empty_file(const char *path)
{
	struct stat status;

	return !lstat(path, &status) && S_ISREG(status.st_mode) && !status.st_size;
}

/* -ENOLCK if the file system has no locks: the process may still be writing. */
static int try_lock(const char *log_path)
{
	int fd = open(log_path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	int error = 0;

	if (fd < 0)
		return -errno;
	while (flock(fd, LOCK_EX | LOCK_NB) && !error)
		error = errno == EINTR ? 0 : errno == EWOULDBLOCK ? -EBUSY : -ENOLCK;
	close(fd);
	return error;
}

/*
 * Between our open and our lock the process may have closed its log, or another recovery may have
 * finished.
 */
static bool crash_buffer_is_still_there(const struct recovery *recovery)
{
	struct stat status;

	return !fstat(recovery->crash_buffer_fd, &status) && status.st_nlink > 0;
}

static bool has_anything(const struct xt_recovered *out)
{
	bool has_rows = false;

	for (int kind = 0; kind < XT_KIND_COUNT; kind++)
		has_rows |= out->rows[kind];
	return has_rows || out->open_calls;
}

static int recover_append(struct recovery *recovery, const char *log_path)
{
	int error = recovery_read_crash_buffer(recovery);

	if (!error)
		error = recovery->error;
	if (!error)
		error = recovery_scan_log(recovery, log_path);
	if (!error)
		error = recovery_open_tables(recovery);
	if (error)
		return error;
	recovery_add_rings(recovery);
	recovery_add_work(recovery);
	if (!recovery->error && recovery->was_closed && !has_anything(recovery->out))
		return 0; /* the process, or an earlier recovery, was killed just before it deleted the crash buffer */
	recovery_add_account(recovery);
	error = recovery->error;
	if (!error)
		error = recovery_add_tables(recovery);
	if (!error)
		error = xt_writer_add_end(recovery->writer);
	return error ? error : xt_writer_flush(recovery->writer);
}

/*
 * The log's header is written after the crash buffer exists. A process killed before that has
 * recorded nothing, and its crash buffer may be incomplete.
 */
static int drop_unused_crash_buffer(const char *log_path, const char *crash_buffer_path)
{
	int error = try_lock(log_path);

	if (!error && is_empty_file(log_path))
		unlink(crash_buffer_path);
	return error;
}

/* Deletes the copies of an interrupted compaction and of an interrupted snapshot. */
static void remove_unfinished(const struct recovery *recovery, const char *log_path)
{
	char snapshot[PATH_MAX], *path = NULL;

	if (!xt_snapshot_path(log_path, XT_SNAPSHOT_DRAFT, snapshot, sizeof(snapshot)))
		xt_compact_remove_draft(snapshot, recovery->log_header.log_id);

	if (asprintf(&path, "%s" XT_COMPACT_SUFFIX, log_path) < 0)
		return;
	xt_compact_remove_draft(path, recovery->log_header.log_id);
	free(path);
}

static int recover(struct recovery *recovery, const char *log_path, const char *crash_buffer_path)
{
	int error = recovery_open_crash_buffer(recovery, crash_buffer_path);

	if (error == -ENOENT)
		return 0;
	if ((!error || error == -EBADMSG) && is_empty_file(log_path) &&
	    recovery_is_unused(recovery))
		return drop_unused_crash_buffer(log_path, crash_buffer_path);
	if (!error)
		error = read_log_header(recovery, log_path);
	if (error)
		return error;
	recovery->out->found = true;
	recovery->out->ending = recovery->crash_buffer->ending;
	recovery->out->error = recovery->crash_buffer->error;
	error = try_lock(log_path);
	/*
	 * Rings and buffers are freed only after a successful write, so the crash buffer still has
	 * the data of a torn tail.
	 */
	if (!error)
		error = xt_writer_resume(log_path, &recovery->writer);
	if (error)
		return error;
	if (!crash_buffer_is_still_there(recovery)) {
		recovery->out->found = false;
		return 0;
	}
	/*
	 * More is missing than a torn write: the crash buffer no longer has the data that was cut
	 * off.
	 */
	if (xt_writer_file_bytes(recovery->writer) < recovery->crash_buffer->log_bytes) {
		recovery->out->log_is_cut = true;
		xt_writer_leave_gap(recovery->writer);
	}
	error = recover_append(recovery, log_path);
	if (error) {
		*recovery->out = (struct xt_recovered){.found = true};
		return error;
	}
	remove_unfinished(recovery, log_path);
	/* If this fails, the next recovery finds that the log already has everything. */
	unlink(crash_buffer_path);
	return 0;
}

int xt_recover(const char *log_path, struct xt_recovered *out)
{
	struct recovery *recovery = calloc(1, sizeof(*recovery));
	char *crash_buffer_path = NULL;
	int error = -ENOMEM;

	*out = (struct xt_recovered){0};
	if (recovery && asprintf(&crash_buffer_path, "%s" XT_CRASH_BUFFER_SUFFIX, log_path) >= 0) {
		recovery->out = out;
		recovery->crash_buffer_fd = -1;
		error = recover(recovery, log_path, crash_buffer_path);
		free(crash_buffer_path);
	}
	if (recovery)
		release(recovery);
	return error;
}

bool xt_log_is_held(const char *log_path)
{
	return try_lock(log_path) == -EBUSY;
}
