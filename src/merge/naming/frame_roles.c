/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds roles by the names of functions and modules, and trims stacks accordingly.
 */
#include "merge/naming/frame_roles.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "merge/symbolize/symbols.h"

#define RUNTIME_FRAMES_MAX 16 /* greater than the depth of the runtime */

enum match { MATCH_WHOLE, MATCH_PREFIX };

/* Roles by mangled name. */
static const struct {
	const char *name;
	enum match match;
	enum role role;
} named_roles[] = {
	{"__cudart", MATCH_PREFIX, ROLE_RUNTIME},
	{"libcudart_static_", MATCH_PREFIX, ROLE_RUNTIME},
	{"_ZL25__cudaLaunchKernel_helper", MATCH_PREFIX, ROLE_GLUE},
	{"_Z16cudaLaunchKernelI", MATCH_PREFIX, ROLE_GLUE},
	{"_ZL16cudaLaunchKernelI", MATCH_PREFIX, ROLE_GLUE},
	{"_start", MATCH_WHOLE, ROLE_THREAD_START},
	{"__libc_start_main", MATCH_PREFIX, ROLE_THREAD_START},
	{"__libc_start_call_main", MATCH_WHOLE, ROLE_THREAD_START},
	{"start_thread", MATCH_WHOLE, ROLE_THREAD_START},
	{"clone", MATCH_WHOLE, ROLE_THREAD_START},
	{"__clone", MATCH_WHOLE, ROLE_THREAD_START},
	{"clone3", MATCH_WHOLE, ROLE_THREAD_START},
	{"__clone3", MATCH_WHOLE, ROLE_THREAD_START},
};

/*
 * Matches "cudaX…", and "__cudaX…" as in the headers. These are C names, so they are not mangled. A
 * program may have such names too. Outside libcudart.so, accept only names that begin like
 * functions that reach the GPU: the runtime may be linked statically.
 */
static bool is_runtime_api(const char *name, bool in_library)
{
	static const char *const subjects[] = {"Launch", "Graph", "Mem",    "Malloc", "Free",
					       "Stream", "Event", "Device", "Host"};

	if (!strncmp(name, "__", 2))
		name += 2;
	if (strncmp(name, "cuda", 4) || !isupper((unsigned char)name[4]))
		return false;
	for (size_t i = 0; i < sizeof(subjects) / sizeof(subjects[0]); i++)
		in_library |= !strncmp(name + 4, subjects[i], strlen(subjects[i]));
	return in_library;
}

static bool is_libc(const char *file_name)
{
	return module_is_library(file_name, "libc.so") ||
	       module_is_library(file_name, "libpthread.so");
}

/* Matches extension modules of Python's standard library, and libffi, which ctypes uses. */
static bool is_of_standard_library(const char *path, const char *file_name)
{
	static const char folder[] = "/lib-dynload/";
	size_t length = (size_t)(file_name - path);

	return module_is_library(file_name, "libffi.so") ||
	       (length >= strlen(folder) &&
		!memcmp(file_name - strlen(folder), folder, strlen(folder)));
}

bool frame_is_interpreter(const struct model *model, uint32_t module)
{
	const char *path = names_text(&model->names, model->modules.rows[module].path, NULL);
	const char *rest = module_file_name(model, module);

	if (!module)
		return false;
	if (is_of_standard_library(path, rest))
		return true;
	if (!strncmp(rest, "lib", 3))
		rest += 3;
	if (strncmp(rest, "python", 6) != 0)
		return false;
	rest += 6;
	rest += strspn(rest, "0123456789.");
	rest += strspn(rest, "tdm"); /* build flavour */
	if (!strncmp(rest, ".so", 3) || (rest[-1] == '.' && !strncmp(rest, "so", 2)))
		return true;
	return !rest[0] || !strcmp(rest, " (deleted)");
}

bool frame_is_of_interpreter(const struct model *model, const struct address *address)
{
	if (address->module)
		return frame_is_interpreter(model, address->module);
	return !strncmp(names_text(&model->names, address->name, NULL), "py::", 4);
}

uint32_t frame_hidden_interpreter(const struct model *model, const struct addresses *addresses)
{
	static const char *const loops[] = {"_PyEval_EvalFrameDefault",
					    "pypy_g_"}; /* CPython, PyPy */

	if (model_meta(model, "python.path")[0] || model_meta(model, "python.off")[0])
		return 0;
	for (uint32_t a = 0; a < addresses->count; a++) {
		const char *name = names_text(&model->names, addresses->list[a].name, NULL);

		for (size_t l = 0; l < sizeof(loops) / sizeof(loops[0]); l++)
			if (!strncmp(name, loops[l], strlen(loops[l])) &&
			    !frame_is_interpreter(model, addresses->list[a].module))
				return addresses->list[a].module;
	}
	return 0;
}

enum role frame_role_of_name(const char *name)
{
	for (size_t i = 0; i < sizeof(named_roles) / sizeof(named_roles[0]); i++) {
		size_t compared =
			strlen(named_roles[i].name) + (named_roles[i].match == MATCH_WHOLE ? 1 : 0);

		if (!strncmp(name, named_roles[i].name, compared))
			return named_roles[i].role;
	}
	if (!strncmp(name, "__device_stub__", 15) || strstr(name, "__device_stub__Z"))
		return ROLE_GLUE;
	return ROLE_PROGRAM;
}

static enum role role_of(const struct model *model, const struct address *address)
{
	const char *name = names_text(&model->names, address->name, NULL);
	const char *file_name = module_file_name(model, address->module);
	size_t length = strlen(name), plt = strlen(SYMBOLS_PLT);
	bool in_library = module_is_library(file_name, "libcudart.so");
	enum role role;

	if (address->module && module_is_driver(model, address->module))
		return ROLE_DRIVER;
	if (length >= plt && !strcmp(name + length - plt, SYMBOLS_PLT))
		return ROLE_PLT;
	role = frame_role_of_name(name);
	if (role != ROLE_PROGRAM)
		return role;
	if (is_runtime_api(name, in_library))
		return ROLE_RUNTIME_API;
	if (in_library)
		return ROLE_RUNTIME;
	if (address->name != NAME_EMPTY || !address->module)
		return ROLE_PROGRAM;
	/* A stripped C library has no name for its thread start. */
	return is_libc(file_name) ? ROLE_THREAD_START : ROLE_UNNAMED;
}

/*
 * Returns the index of the program's first frame in frames[0 .. count). *api_out is the frame of
 * the runtime function it called, or count. A static runtime may have kept only the names of its
 * API. Therefore unnamed frames count as runtime if an API function of the same module follows.
 */
static uint32_t skip_cuda(const struct frame_roles *r, const uint32_t *frames, uint32_t count,
			  uint32_t *api_out)
{
	uint32_t first = 0, unnamed_module = 0;

	*api_out = count;
	while (first < count &&
	       (r->roles[frames[first]] == ROLE_DRIVER || r->roles[frames[first]] == ROLE_PLT))
		first++;
	for (uint32_t f = first; f < count && f < first + RUNTIME_FRAMES_MAX; f++) {
		enum role role = r->roles[frames[f]];
		uint32_t module = r->addresses->list[frames[f]].module;

		if (role == ROLE_UNNAMED && *api_out == count &&
		    (!unnamed_module || unnamed_module == module)) {
			unnamed_module = module;
			continue;
		}
		if (unnamed_module && *api_out == count &&
		    (role != ROLE_RUNTIME_API || module != unnamed_module))
			break;
		if (role == ROLE_RUNTIME_API)
			*api_out = f;
		else if (role != ROLE_RUNTIME && role != ROLE_PLT)
			break;
		first = f + 1;
	}
	while (first < count && r->roles[frames[first]] == ROLE_GLUE)
		first++;
	return first;
}

/*
 * Returns the end of the shown frames. Skips those that start the thread and, if the stack begins
 * with Python, those that start the interpreter.
 */
static uint32_t skip_start(const struct frame_roles *r, const struct stack *stack,
			   const uint32_t *frames, uint32_t first, bool has_python)
{
	uint32_t end = stack->frame_count, place = end;

	/* _start has no name in a stripped program. */
	if (end > first + 1 && r->roles[frames[end - 1]] == ROLE_UNNAMED &&
	    r->roles[frames[end - 2]] == ROLE_THREAD_START)
		end--;
	while (end > first && r->roles[frames[end - 1]] == ROLE_THREAD_START)
		end--;
	/* The first function of a std::thread, called by the C library. */
	if (end > first && end < stack->frame_count &&
	    module_is_library(
		    module_file_name(r->model, r->addresses->list[frames[end - 1]].module),
		    "libstdc++.so"))
		end--;
	if (stack->python_count && has_python)
		place = r->model->python[stack->first_python + stack->python_count - 1].place;
	if (place < first || place >= end)
		return end;
	for (uint32_t f = place + 1; f < end; f++)
		if (r->roles[frames[f]] != ROLE_THREAD_START &&
		    !frame_is_of_interpreter(r->model, &r->addresses->list[frames[f]]))
			return end;
	return place + 1;
}

void frame_roles_trim(const struct frame_roles *roles, const struct stack *stack,
		      const uint32_t *frames, bool has_python, uint32_t *first_out,
		      uint32_t *end_out, uint32_t *api_out)
{
	*first_out = skip_cuda(roles, frames, stack->frame_count, api_out);
	*end_out = skip_start(roles, stack, frames, *first_out, has_python);
}

void frame_roles_find(struct frame_roles *roles, const struct model *model,
		      const struct addresses *addresses)
{
	*roles = (struct frame_roles){
		.model = model,
		.addresses = addresses,
		.roles = xt_calloc(addresses->count + 1, sizeof(*roles->roles)),
	};
	for (uint32_t a = 0; a < addresses->count; a++)
		roles->roles[a] = (uint8_t)role_of(model, &addresses->list[a]);
}

void frame_roles_free(struct frame_roles *roles)
{
	free(roles->roles);
	roles->roles = NULL;
}
