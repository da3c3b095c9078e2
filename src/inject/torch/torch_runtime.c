/* SPDX-License-Identifier: Apache-2.0 */
#include "inject/torch/torch_runtime.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "inject/runtime/hot_state.h"
#include "inject/runtime/loader_lock.h"
#include "inject/runtime/log_message.h"
#include "inject/runtime/module_symbols.h"
#include "inject/runtime/read_memory.h"

HOT_STATE const struct torch_runtime *torch_runtime;
bool torch_wanted;

enum symbol { SEQUENCE, CURRENT_NODE, THREAD_ID, NEEDED, GRAPH_TASK_ID = NEEDED, SYMBOLS };

static const char *const symbol_names[SYMBOLS] = {
	[SEQUENCE] = "_ZN2at15sequence_number4peekEv",
	[CURRENT_NODE] = "_ZN5torch8autograd16get_current_nodeEv",
	[THREAD_ID] = "_ZN2at14RecordFunction15currentThreadIdEv",
	[GRAPH_TASK_ID] = "_ZN5torch8autograd25get_current_graph_task_idEv", /* since 2.1 */
};

static struct {
	struct torch_runtime runtime;
	struct torch_info about;
	bool found; /* readable or not */
} state;

struct finding {
	uintptr_t address[SYMBOLS];
	size_t tls_module;
	char path[PATH_MAX];
};

static bool begins(const char *text, const char *with)
{
	return !strncmp(text, with, strlen(with));
}

static const char *file_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

bool torch_is_module(const char *path)
{
	return begins(file_name(path), "libtorch");
}

static int search_module(struct dl_phdr_info *info, size_t info_bytes, void *arg)
{
	struct finding *finding = arg;
	struct module_symbols symbols;

	(void)info_bytes;
	if (!info->dlpi_name || !begins(file_name(info->dlpi_name), "libtorch_cpu.so") ||
	    !module_symbols_open(info, &symbols))
		return 0;
	for (int s = 0; s < SYMBOLS; s++)
		finding->address[s] = module_symbols_address(&symbols, symbol_names[s]);
	finding->tls_module = info->dlpi_tls_modid;
	snprintf(finding->path, sizeof(finding->path), "%s", info->dlpi_name);
	return 1;
}

/* From the file version.py of the package that has the library. */
static void read_version(const char *library, char *out, size_t out_bytes)
{
	char path[PATH_MAX + 16], text[4096], *quote, *end;
	const char *slash = strrchr(library, '/');
	ssize_t length = 0;
	int fd;

	out[0] = '\0';
	if (!slash)
		return;
	snprintf(path, sizeof(path), "%.*s/../version.py", (int)(slash - library), library);
	loader_lock(); /* a child forked meanwhile would inherit the descriptor */
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		length = read(fd, text, sizeof(text) - 1);
		close(fd);
	}
	loader_unlock();
	text[length > 0 ? length : 0] = '\0';
	quote = strstr(text, "__version__ = '");
	quote = quote ? strchr(quote, '\'') + 1 : NULL;
	end = quote ? strchr(quote, '\'') : NULL;
	if (end)
		snprintf(out, out_bytes, "%.*s", (int)(end - quote), quote);
}

/* Sets about.why_not if the state cannot be read. */
static void check_library(const struct finding *finding)
{
	struct torch_runtime *runtime = &state.runtime;
	struct torch_info *about = &state.about;
	char about_byte;

	if (!read_memory(&about_byte, (uintptr_t)about, sizeof(about_byte))) {
		snprintf(about->why_not, sizeof(about->why_not),
			 "the system call process_vm_readv is not permitted");
		return;
	}
	for (int s = 0; s < NEEDED; s++)
		if (!finding->address[s]) {
			snprintf(about->why_not, sizeof(about->why_not), "it does not export %s",
				 symbol_names[s]);
			return;
		}
	/* Launches call into this module, so it must stay mapped. */
	if (!dlopen(finding->path, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE)) {
		snprintf(about->why_not, sizeof(about->why_not),
			 "its library cannot be kept loaded");
		return;
	}
	*runtime = (struct torch_runtime){
		.sequence = (uint64_t(*)(void))finding->address[SEQUENCE],
		.current_node =
			(void (*)(struct torch_shared_node *))finding->address[CURRENT_NODE],
		.thread_id = (uint64_t(*)(void))finding->address[THREAD_ID],
		.graph_task_id = (int (*)(void))finding->address[GRAPH_TASK_ID],
		.tls_module = finding->tls_module,
	};
}

bool torch_find(void)
{
	static struct finding finding;

	if (!torch_wanted || state.found)
		return false;
	memset(&finding, 0, sizeof(finding));
	loader_iterate(search_module, &finding);
	if (!finding.path[0])
		return false;
	state.found = true;
	snprintf(state.about.path, sizeof(state.about.path), "%s", finding.path);
	read_version(finding.path, state.about.version, sizeof(state.about.version));
	check_library(&finding);
	if (!state.about.why_not[0])
		__atomic_store_n(&torch_runtime, &state.runtime, __ATOMIC_RELEASE);
	return true;
}

static const char *_Atomic given_up_why;

void torch_give_up(const char *why)
{
	atomic_store(&given_up_why, why);
	__atomic_store_n(&torch_runtime, NULL, __ATOMIC_RELEASE);
}

bool torch_has_given_up(void)
{
	const char *why = atomic_load(&given_up_why);

	if (!why || state.about.why_not[0])
		return false;
	snprintf(state.about.why_not, sizeof(state.about.why_not), "%s", why);
	return true;
}

const struct torch_info *torch_info(void)
{
	return &state.about;
}

#define DTV_UNALLOCATED ((void *)-1)

/* An entry of the C library's table of a thread's TLS blocks. */
union dtv {
	size_t counter;
	struct {
		void *block;
		void *to_free;
	};
};

/*
 * The table's place is part of the ABI between the C library and compiled code; its layout is what
 * debuggers read. Entry -1 has the number of entries.
 */
bool torch_has_thread_state(const struct torch_runtime *torch)
{
	uintptr_t thread = (uintptr_t)__builtin_thread_pointer();
#ifdef __aarch64__
	const union dtv *dtv = *(const union dtv *const *)thread;
#else
	const union dtv *dtv = *(const union dtv *const *)(thread + sizeof(void *));
#endif

	return torch->tls_module && torch->tls_module <= dtv[-1].counter &&
	       dtv[torch->tls_module].block != DTV_UNALLOCATED && dtv[torch->tls_module].block;
}
