/* SPDX-License-Identifier: Apache-2.0 */
#include "live_names.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "merge/symbolize/addresses.h"
#include "base/utf8.h"

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
	const char *file = path_file_name(module->path);

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
		snprintf(out, out_bytes, "[%s]", path_file_name(module->path));
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
	const uint64_t *ids = &hot->words[stack->first + 2 * (uint64_t)stack->frame_count];

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
	const uint64_t *frames = &hot->words[stack->first];
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
	const struct live_stack *stack = &hot->stacks[number];
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

struct live_namer live_names_namer(struct live_names *names)
{
	return (struct live_namer){names, name_path, name_kernel};
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
