/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the interpreter by its exported symbols, in the program or in a library. Runs at start-up
 * and on the writer thread.
 */
#include "inject/python/python_runtime.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <string.h>

#include "inject/runtime/loader.h"
#include "inject/runtime/log_message.h"
#include "inject/runtime/process.h"

#define REJECTED_MAX 4

HOT_STATE const struct python_runtime *python_runtime;
bool python_wanted;
_Atomic(bool) python_modules_wanted;
bool python_modules_limited;

/* VERSION exists since 3.11. */
#define SYMBOL_LIST(X)                                                                             \
	X(THREAD_STATE, "PyGILState_GetThisThreadState")                                           \
	X(RUNNING_STATE, "_PyThreadState_UncheckedGet")                                            \
	X(RUNNING_STATE_SINCE_3_13, "PyThreadState_GetUnchecked")                                  \
	X(RUNTIME, "_PyRuntime")                                                                   \
	X(VERSION, "Py_Version")                                                                   \
	X(LOOP, "_PyEval_EvalFrameDefault")                                                        \
	X(ONLY_SINCE_3_10, "PyIter_Send")                                                          \
	X(ONLY_SINCE_3_9, "PyFrame_GetBack")
#define SYMBOL_ID(id, name)   id,
#define SYMBOL_NAME(id, name) name,
enum symbol { SYMBOL_LIST(SYMBOL_ID) SYMBOLS };
static const char *const symbol_names[SYMBOLS] = {SYMBOL_LIST(SYMBOL_NAME)};

static struct {
	struct python_runtime runtime;
	struct python_info about;
	bool found;
	char rejected[REJECTED_MAX][PATH_MAX]; /* rejected interpreters */
	uint32_t rejected_count;
} state;

/* The result of a search, evaluated after the loader's lock is released. */
struct python_finding {
	uintptr_t address[SYMBOLS];
	size_t bytes[SYMBOLS];
	char path[PATH_MAX];
	bool is_program;
	bool program_is_interpreter; /* the program itself is an interpreter */
	char hidden[PATH_MAX];	     /* a module named like an interpreter that exports nothing */
};

static bool is_rejected(const char *path)
{
	for (uint32_t i = 0; i < state.rejected_count; i++)
		if (!strcmp(state.rejected[i], path))
			return true;
	return false;
}

static int search_module(struct dl_phdr_info *info, size_t info_bytes, void *arg)
{
	struct python_finding *finding = arg;
	bool is_program = !info->dlpi_name || !info->dlpi_name[0];
	char program[PATH_MAX];
	const char *path = info->dlpi_name;
	struct module_symbols symbols;

	(void)info_bytes;
	if (is_program) {
		own_program_path(program, sizeof(program));
		path = program;
		finding->program_is_interpreter = python_has_name(program);
	}
	if (is_rejected(path))
		return 0;
	if (!module_symbols_open(info, &symbols))
		return 0;
	if (!module_symbols_find(&symbols, symbol_names[THREAD_STATE])) {
		if (python_has_name(path))
			snprintf(finding->hidden, sizeof(finding->hidden), "%s", path);
		return 0;
	}
	for (int s = 0; s < SYMBOLS; s++) {
		const ElfW(Sym) *symbol = module_symbols_find(&symbols, symbol_names[s]);

		finding->address[s] = symbol ? symbols.bias + symbol->st_value : 0;
		finding->bytes[s] = symbol ? symbol->st_size : 0;
	}
	finding->is_program = is_program;
	snprintf(finding->path, sizeof(finding->path), "%s", path);
	return 1;
}

/* True if its frames can be read; otherwise sets *why_not. */
static bool check_interpreter(const struct python_finding *finding)
{
	struct python_runtime *runtime = &state.runtime;
	struct python_info *about = &state.about;
	enum symbol running_state;
	uint32_t version;

	/*
	 * Every launch calls into this module, so it must stay mapped. dlopen() waits for the
	 * loader's big lock, so the caller must hold none of our locks.
	 */
	if (!finding->is_program &&
	    !dlopen(finding->path, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE)) {
		snprintf(about->why_not, sizeof(about->why_not),
			 "its library cannot be kept loaded");
		return false;
	}
	version = python_version_by_symbols(
		finding->address[VERSION]
			? (uint32_t) * (const unsigned long *)finding->address[VERSION]
			: 0,
		finding->address[ONLY_SINCE_3_10], finding->address[ONLY_SINCE_3_9]);
	python_version_name(version, about->version, sizeof(about->version));
	if (!finding->address[RUNTIME]) {
		snprintf(about->why_not, sizeof(about->why_not), "it does not export %s",
			 symbol_names[RUNTIME]);
		return false;
	}
	if (python_layout_find(version, (const void *)finding->address[RUNTIME], &runtime->layout,
			       about->why_not, sizeof(about->why_not)))
		return false;
	/*
	 * A program that embeds Python may restart the interpreter, which restarts the code
	 * versions.
	 */
	if (!finding->program_is_interpreter)
		runtime->layout.code_version = 0;
	runtime->thread_state = (void *(*)(void))finding->address[THREAD_STATE];
	runtime->finalizing =
		(const uintptr_t *)(finding->address[RUNTIME] + runtime->layout.runtime_finalizing);
	running_state = version < PYTHON_VERSION(3, 13) ? RUNNING_STATE : RUNNING_STATE_SINCE_3_13;
	if (!finding->address[running_state]) {
		snprintf(about->why_not, sizeof(about->why_not), "it does not export %s",
			 symbol_names[running_state]);
		return false;
	}
	runtime->running_state = (void *(*)(void))finding->address[running_state];
	if (runtime->layout.runtime_interpreters)
		runtime->interpreters = (const uintptr_t *)(finding->address[RUNTIME] +
							    runtime->layout.runtime_interpreters);
	if (python_modules_wanted && !runtime->layout.frame_locals)
		snprintf(about->why_no_modules, sizeof(about->why_no_modules),
			 "free-threaded builds are not supported");
	runtime->loop_start = finding->address[LOOP];
	runtime->loop_end = finding->address[LOOP] + finding->bytes[LOOP];
	return true;
}

/* Skips interpreters that were rejected before. */
static bool find_next(void)
{
	static struct python_finding finding;

	memset(&finding, 0, sizeof(finding));
	loader_iterate(search_module, &finding);
	if (!finding.path[0] && !finding.hidden[0])
		return false;
	state.about = (struct python_info){.is_after_rejected = state.rejected_count > 0};
	snprintf(state.about.path, sizeof(state.about.path), "%s",
		 finding.path[0] ? finding.path : finding.hidden);
	if (!finding.path[0])
		snprintf(state.about.why_not, sizeof(state.about.why_not),
			 "it exports none of its symbols");
	else
		state.found = check_interpreter(&finding);
	if (state.found) {
		__atomic_store_n(&python_runtime, &state.runtime, __ATOMIC_RELEASE);
		return true;
	}
	log_message("cannot record the frames of Python%s%s (%s): %s",
		    state.about.version[0] ? " " : "", state.about.version, state.about.path,
		    state.about.why_not);
	snprintf(state.rejected[state.rejected_count++], PATH_MAX, "%s", state.about.path);
	return true;
}

bool python_find(void)
{
	bool is_new = false;

	while (python_wanted && !state.found && state.rejected_count < REJECTED_MAX && find_next())
		is_new = true;
	return is_new;
}

const struct python_info *python_info(void)
{
	return &state.about;
}
