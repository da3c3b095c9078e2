/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the names of modules. Runs in the program's threads on the cold path.
 */
#include "inject/python/python_modules.h"

#include <stdio.h>
#include <string.h>

#include "inject/python/python_objects.h"
#include "inject/python/python_read.h"
#include "inject/runtime/hot_state.h"
#include "inject/runtime/read_memory.h"

#define FILE_END       "/torch/nn/modules/module.py"
#define MARK	       "[module] "
#define UNKNOWN	       "<unknown>"
#define CUT	       "<...>" /* replaces outer parts that are too long or were not walked */
#define SEARCHED_MAX   512     /* modules opened, or kept to be opened, in one search */
#define CHILDREN_MAX   65536   /* entries compared in one search */
#define DEPTH_MAX      8
#define TRIES	       2 /* another thread may change a module while it is read */
#define PATH_BYTES_MAX (PYTHON_NAME_BYTES_MAX - (sizeof(MARK) - 1))
#define NAME_BYTES     256

HOT_STATE _Atomic(uintptr_t) python_module_codes[PYTHON_MODULE_CODES_MAX];

/* A module that a search has come to. */
struct searched {
	uintptr_t module;
	uint32_t parent; /* index; the first one has none */
	uint32_t depth;
};

struct naming {
	struct object_reader reader;
	uintptr_t module;		  /* the one named last */
	char path[PYTHON_NAME_BYTES_MAX]; /* its path */
	bool is_outermost;
	bool is_certain; /* does not depend on objects that are no inputs */
	struct searched searched[SEARCHED_MAX];
	uint32_t searched_count;
	struct object_entries entries;
};

static bool ends_with(const uint8_t *text, size_t bytes, const char *end)
{
	size_t end_bytes = strlen(end);

	return bytes >= end_bytes && !memcmp(text + bytes - end_bytes, end, end_bytes);
}

static bool is_text(const uint8_t *text, size_t bytes, const char *wanted)
{
	return bytes == strlen(wanted) && !memcmp(text, wanted, bytes);
}

bool python_modules_is_call(const struct python_walk *walk, const struct xt_python_code *code)
{
	/* Names are qualified from 3.11 on. */
	static const char *const names[] = {"Module._wrapped_call_impl", "_wrapped_call_impl",
					    "Module._call_impl", "_call_impl"};

	if (!python_modules_wanted || !walk->python->layout.frame_locals ||
	    !ends_with(code->text + code->name_bytes, code->file_bytes, FILE_END))
		return false;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (is_text(code->text, code->name_bytes, names[i]))
			return true;
	return false;
}

/* Adds a code object to the list. False if the list is full. */
static bool list_code(uintptr_t code)
{
	for (uint32_t i = 0; i < PYTHON_MODULE_CODES_MAX; i++) {
		uintptr_t listed = 0;

		if (atomic_compare_exchange_strong(&python_module_codes[i], &listed, code) ||
		    listed == code)
			return true;
	}
	return false;
}

/* A function whose inner functions use its argument keeps it in a cell. */
static bool is_cell(const struct python_walk *walk, uintptr_t object)
{
	const struct python_layout *layout = &walk->python->layout;
	uintptr_t class, name;
	char text[8];

	return read_memory(&class, object + layout->object_type, sizeof(class)) &&
	       read_memory(&name, class + layout->type_name, sizeof(name)) &&
	       read_memory_text(text, sizeof(text), name) && !strcmp(text, "cell");
}

void python_modules_note(struct python_walk *walk, uintptr_t frame, uintptr_t code)
{
	struct python_called self = {.step = walk->step_count};
	uint64_t object;

	if (walk->called_count == PYTHON_CALLED_MAX) {
		walk->inputs_complete = false; /* without its module, the key is incomplete */
		walk->called_is_cut = true;
		return;
	}
	if (!python_read(walk, frame + walk->python->layout.frame_locals, 8, false, &object))
		return;
	object &= ~UINT64_C(3);
	self.is_in_cell = object && is_cell(walk, object);
	if (self.is_in_cell && !python_read(walk, object + PYTHON_CELL_CONTENTS, 8, false, &object))
		return;
	/* To 3.10, a cell is elsewhere; the caller's frame has the module. */
	if (!object || (!self.is_in_cell && !list_code(code)))
		return;
	self.object = object;
	walk->called_frames[walk->called_count] = (uint16_t)walk->frame_count;
	walk->called[walk->called_count++] = self;
}

/* Searches for a module below another, level by level. Returns its index, or UINT32_MAX. */
static uint32_t search(struct naming *naming, uintptr_t above, uintptr_t wanted)
{
	struct searched *list = naming->searched;
	uint32_t compared = 0;
	struct object_entry entry;

	naming->reader.notes = false;
	list[0] = (struct searched){.module = above};
	naming->searched_count = 1;
	for (uint32_t i = 0; i < naming->searched_count; i++) {
		if (!object_open_children(&naming->reader, list[i].module, &naming->entries))
			continue;
		while (compared++ < CHILDREN_MAX &&
		       object_next_entry(&naming->reader, &naming->entries, &entry)) {
			uint32_t last = naming->searched_count;
			bool is_wanted = entry.value == wanted;

			if (!entry.value || (!is_wanted && (list[i].depth + 1 == DEPTH_MAX ||
							    last == SEARCHED_MAX)))
				continue;
			last -= last == SEARCHED_MAX; /* no more than this one is needed */
			if (is_wanted && last == i)
				return UINT32_MAX;
			list[last] = (struct searched){
				.module = entry.value, .parent = i, .depth = list[i].depth + 1};
			naming->searched_count = last + 1;
			if (is_wanted)
				return last;
		}
	}
	return UINT32_MAX;
}

/* Appends to a path, separated by a dot. Cuts its beginning if it gets too long. */
static void append(char *path, const char *part)
{
	size_t used = strlen(path), bytes = strlen(part);

	if (used + bytes + 2 > PATH_BYTES_MAX) {
		strcpy(path, CUT);
		used = strlen(path);
	}
	snprintf(path + used, PATH_BYTES_MAX - used, "%s%s", used ? "." : "", part);
}

/* Appends the name of a child, and makes inputs of all that was read to find it. */
static bool append_child(struct naming *naming, uintptr_t parent, uintptr_t child, char *path)
{
	struct object_entry entry;
	char name[NAME_BYTES];
	size_t bytes;

	naming->reader.notes = true;
	if (!object_open_children(&naming->reader, parent, &naming->entries))
		return false;
	do {
		if (!object_next_entry(&naming->reader, &naming->entries, &entry))
			return false;
	} while (entry.value != child);
	object_note_entry(&naming->reader, &entry);
	if (!object_text(&naming->reader, entry.key, name, sizeof(name), &bytes))
		return false;
	append(path, name);
	return true;
}

/* Appends the names from the first module of a search to the one found. */
static bool append_names(struct naming *naming, uint32_t found, char *path)
{
	uint32_t chain[DEPTH_MAX + 1], count = 0;

	for (uint32_t at = found; at; at = naming->searched[at].parent)
		chain[count++] = at;
	for (uint32_t i = count; i-- > 0;) {
		const struct searched *at = &naming->searched[chain[i]];

		if (!append_child(naming, naming->searched[at->parent].module, at->module, path))
			return false;
	}
	return true;
}

/* Appends the path below the module named last. False if the module is not there. */
static bool name_below(struct naming *naming, uintptr_t module, char *path)
{
	struct python_walk *walk = naming->reader.walk;
	const uint32_t inputs = walk->input_count;
	char tried[PYTHON_NAME_BYTES_MAX];

	for (int i = 0; i < TRIES; i++) {
		uint32_t found = search(naming, naming->module, module);

		strcpy(tried, path);
		if (found != UINT32_MAX && append_names(naming, found, tried) &&
		    object_inputs_are_current(walk, inputs)) {
			strcpy(path, tried);
			return true;
		}
		walk->input_count = inputs;
	}
	return false;
}

/* The name of a class: an outermost module has no other, nor has one that is no child. */
static void name_class(struct naming *naming, uintptr_t module, char *name, size_t name_bytes)
{
	const uint32_t inputs = naming->reader.walk->input_count;

	naming->reader.notes = true;
	if (object_class_name(&naming->reader, module, name, name_bytes) &&
	    object_inputs_are_current(naming->reader.walk, inputs))
		return;
	naming->reader.walk->input_count = inputs;
	naming->is_certain = false;
	snprintf(name, name_bytes, "%s", UNKNOWN);
}

/* Names the next module inside. Returns what to show. */
static const char *name_module(struct naming *naming, uintptr_t module, char *shown)
{
	const struct python_walk *walk = naming->reader.walk;
	char class[NAME_BYTES], quoted[NAME_BYTES + 2];

	if (naming->module && name_below(naming, module, naming->path)) {
		naming->is_outermost = false;
		return naming->path;
	}
	name_class(naming, module, class, sizeof(class));
	snprintf(quoted, sizeof(quoted), class[0] == '<' ? "%s" : "<%s>", class);
	if (!naming->module && !walk->called_is_cut && !(walk->flags & XT_STACK_PYTHON_TRUNCATED)) {
		naming->is_outermost = true;
		return strcpy(shown, class);
	}
	if (!naming->module)
		strcpy(naming->path, CUT);
	else if (naming->is_outermost)
		naming->path[0] = '\0';
	naming->is_certain = naming->is_outermost = false;
	append(naming->path, quoted);
	return naming->path;
}

/* Appends a code object for a path. Returns its index, or UINT32_MAX if there is no room. */
static uint32_t add_code(struct python_walk *walk, const char *path)
{
	struct xt_python_code *part = (void *)(walk->code_part + walk->code_part_bytes);
	size_t mark_bytes = strlen(MARK), path_bytes = strlen(path), bytes;

	bytes = (sizeof(*part) + mark_bytes + path_bytes + 7) & ~(size_t)7;
	if (walk->code_count == XT_PYTHON_CODES_MAX ||
	    bytes > PYTHON_CODE_PART_BYTES - walk->code_part_bytes)
		return UINT32_MAX;
	memset(part, 0, bytes);
	part->name_bytes = (uint16_t)(mark_bytes + path_bytes);
	memcpy(part->text, MARK, mark_bytes);
	memcpy(part->text + mark_bytes, path, path_bytes);
	walk->code_part_bytes += (uint32_t)bytes;
	return walk->code_count++;
}

static uint64_t hash_text(uint64_t hash, const char *text)
{
	for (; *text; text++)
		hash = (hash ^ (uint8_t)*text) * UINT64_C(0x100000001b3);
	return hash;
}

/*
 * Inserts a frame outside each frame that calls a named module. codes: code of its path, by index
 * in the walk's modules; UINT32_MAX: none.
 */
static void insert_frames(struct python_walk *walk, const uint32_t *codes, uint32_t added)
{
	uint32_t to = walk->frame_count + added, module = walk->called_count;

	if (to > XT_PYTHON_FRAMES_MAX)
		return;
	walk->frame_count = to;
	for (uint32_t from = to - added; from-- > 0;) {
		const struct xt_python_frame frame = walk->frames[from];

		if (module && walk->called_frames[module - 1] == from) {
			module--;
			if (codes[module] != UINT32_MAX)
				walk->frames[--to] = (struct xt_python_frame){
					.code = (uint16_t)codes[module], .place = frame.place};
		}
		walk->frames[--to] = frame;
	}
}

static void name_all(struct naming *naming)
{
	struct python_walk *walk = naming->reader.walk;
	char shown[NAME_BYTES];
	uint32_t codes[PYTHON_CALLED_MAX], added = 0;

	for (uint32_t i = walk->called_count; i-- > 0;) {
		uintptr_t module = walk->called[i].object;
		const char *path;

		codes[i] = UINT32_MAX;
		walk->called[i].left = (uint16_t)(walk->called_count - i);
		if (module == naming->module) /* _call_impl() inside _wrapped_call_impl() */
			continue;
		naming->is_certain = true;
		path = name_module(naming, module, shown);
		naming->module = module;
		codes[i] = add_code(walk, path);
		added += codes[i] != UINT32_MAX;
		if (naming->is_certain)
			walk->hash = hash_text(walk->hash, path);
	}
	insert_frames(walk, codes, added);
}

void python_modules_add(struct python_walk *walk)
{
	struct naming naming;

	naming.reader = (struct object_reader){.walk = walk};
	naming.module = 0;
	naming.path[0] = '\0';
	naming.is_outermost = false;
	name_all(&naming);
}
