/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the library at start-up and on the writer thread. Checks nodes and reads their names on the
 * cold path: all memory is copied with system calls, so that wrong addresses do no harm.
 */
#include "inject/torch/torch_runtime.h"

#include <ctype.h>
#include <dlfcn.h>
#include <link.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "inject/memory/memory.h"
#include "inject/python/python_runtime.h"
#include "inject/runtime/loader.h"
#include "log/base/compare.h"

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

struct torch_finding {
	uintptr_t address[SYMBOLS];
	size_t tls_module;
	char path[PATH_MAX];
};

bool torch_is_module(const char *path)
{
	return begins_with(base_name(path), "libtorch");
}

static int search_module(struct dl_phdr_info *info, size_t info_bytes, void *arg)
{
	struct torch_finding *finding = arg;
	struct module_symbols symbols;

	(void)info_bytes;
	if (!info->dlpi_name || !begins_with(base_name(info->dlpi_name), "libtorch_cpu.so") ||
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

	out[0] = '\0';
	if (!slash)
		return;
	snprintf(path, sizeof(path), "%.*s/../version.py", (int)(slash - library), library);
	loader_read_file(path, text, sizeof(text));
	quote = strstr(text, "__version__ = '");
	quote = quote ? strchr(quote, '\'') + 1 : NULL;
	end = quote ? strchr(quote, '\'') : NULL;
	if (end)
		snprintf(out, out_bytes, "%.*s", (int)(end - quote), quote);
}

/* Sets about.why_not if the state cannot be read. */
static void check_library(const struct torch_finding *finding)
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
	static struct torch_finding finding;

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

/* Stops reading the state. Any thread. `why` is a constant. */
static void torch_give_up(const char *why)
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

#define HEAD_WORDS	    (TORCH_NODE_NEXT_EDGES / 8 + 3) /* up to the edges */
#define REFERENCES_MAX	    (1 << 24)
#define EDGES_MAX	    (1 << 24)
#define SEQUENCE_MAX	    (UINT64_C(1) << 48)
#define THREAD_MAX	    (UINT64_C(1) << 24)
#define REJECTED_MAX	    8
#define PYTHON_NODE_TYPE    "N5torch8autograd6PyNodeE"
#define PYTHON_OBJECT_FROM  TORCH_NODE_NEXT_EDGES /* bytes from the start of the node */
#define PYTHON_OBJECT_TO    1024
#define CLASS_END	    "Backward"
#define FLAGS_BEHIND_NAME   144 /* of a type object, in all versions */
#define FLAG_OF_TYPE	    (UINT64_C(1) << 31)
#define PYTHON_OBJECT_BYTES 256 /* of a THPFunction, which points back to its node */

extern uint64_t torch_nodes_accepted;
uint64_t torch_nodes_accepted;
static uint64_t nodes_rejected;
uintptr_t torch_python_node_type;
uint32_t torch_python_node_object;
uint32_t torch_python_object_type;

static bool has_counts(const struct torch_shared_node *shared)
{
	struct {
		uintptr_t vtable;
		int32_t shared, weak;
	} control;

	return read_memory(&control, shared->control, sizeof(control)) && control.vtable &&
	       control.vtable % sizeof(void *) == 0 && control.shared >= 1 &&
	       control.shared < REFERENCES_MAX && control.weak >= 1 &&
	       control.weak < REFERENCES_MAX;
}

static bool has_edges(const uint64_t vector[3])
{
	uint64_t used = vector[1] - vector[0], room = vector[2] - vector[0];

	return used <= room && room / TORCH_EDGE_BYTES < EDGES_MAX && !(used % TORCH_EDGE_BYTES) &&
	       !(vector[0] % sizeof(void *)) && (vector[0] || !room);
}

static bool is_node(const struct torch_shared_node *shared)
{
	uint64_t words[HEAD_WORDS], sequence;

	if (shared->node % sizeof(void *) || shared->control % sizeof(void *) ||
	    !read_memory(words, shared->node, sizeof(words)) || !has_counts(shared))
		return false;
	sequence = words[TORCH_NODE_SEQUENCE / 8];
	return words[TORCH_NODE_WEAK_THIS / 8] == shared->node &&
	       words[TORCH_NODE_WEAK_THIS / 8 + 1] == shared->control &&
	       (sequence == TORCH_NO_SEQUENCE || sequence < SEQUENCE_MAX) &&
	       words[TORCH_NODE_TOPOLOGICAL / 8] < SEQUENCE_MAX &&
	       (words[TORCH_NODE_HAS_PARENT / 8] & 0xff) <= 1 &&
	       words[TORCH_NODE_THREAD / 8] < THREAD_MAX &&
	       (sequence == TORCH_NO_SEQUENCE || words[TORCH_NODE_THREAD / 8]) &&
	       has_edges(&words[TORCH_NODE_NEXT_EDGES / 8]);
}

void torch_node_accept(void)
{
	__atomic_add_fetch(&torch_nodes_accepted, 1, __ATOMIC_RELAXED);
}

void torch_node_reject(void)
{
	if (__atomic_add_fetch(&nodes_rejected, 1, __ATOMIC_RELAXED) >= REJECTED_MAX &&
	    __atomic_load_n(&nodes_rejected, __ATOMIC_RELAXED) >
		    __atomic_load_n(&torch_nodes_accepted, __ATOMIC_RELAXED))
		torch_give_up("its autograd nodes have an unknown layout");
}

bool torch_node_check(const struct torch_shared_node *shared)
{
	if (is_node(shared))
		return true;
	torch_node_reject();
	return false;
}

static bool is_identifier(const char *name)
{
	for (; *name && (isalnum((unsigned char)*name) || *name == '_' || *name == '.'); name++)
		;
	return !*name;
}

/*
 * Copies the class name of a node's Python object. PyTorch names the class of such objects after
 * the Function. False if the memory is not an object with such a class.
 */
static bool name_class(const struct python_layout *layout, uintptr_t object,
		       char out[TORCH_NAME_BYTES])
{
	uintptr_t type, metatype, flags, name;

	if (!object || object % sizeof(void *) ||
	    !read_memory(&type, object + layout->object_type, sizeof(type)) ||
	    !read_memory(&metatype, type + layout->object_type, sizeof(metatype)) ||
	    !read_memory(&flags, metatype + layout->type_name + FLAGS_BEHIND_NAME, sizeof(flags)) ||
	    !(flags & FLAG_OF_TYPE) || !read_memory(&name, type + layout->type_name, sizeof(name)))
		return false;
	return read_memory_text(out, TORCH_NAME_BYTES, name) && has_ending(out, CLASS_END) &&
	       is_identifier(out);
}

/* The object has a weak reference to its node, so it has the node's address. */
static bool refers_to(uintptr_t object, uintptr_t node)
{
	uintptr_t words[PYTHON_OBJECT_BYTES / sizeof(uintptr_t)];

	if (!read_memory(words, object, sizeof(words)))
		return false;
	for (size_t i = 2; i < sizeof(words) / sizeof(*words); i++)
		if (words[i] == node)
			return true;
	return false;
}

static void find_python_object(const struct python_layout *layout, uintptr_t node, char *class_name)
{
	for (uint32_t at = PYTHON_OBJECT_FROM; at < PYTHON_OBJECT_TO; at += sizeof(uintptr_t)) {
		uintptr_t object;

		if (!read_memory(&object, node + at, sizeof(object)))
			return;
		if (name_class(layout, object, class_name) && refers_to(object, node)) {
			/* Pairs with torch_node_read(): the offset of the type was stored. */
			__atomic_store_n(&torch_python_node_object, at, __ATOMIC_RELEASE);
			return;
		}
	}
}

/* Learns where nodes of Python functions have their object, and names its class. */
static void learn_python_node(uintptr_t node, uintptr_t vtable, char *class_name)
{
	const struct python_runtime *python = python_now();
	uintptr_t object;
	uint32_t at;

	if (!python)
		return;
	__atomic_store_n(&torch_python_object_type, python->layout.object_type, __ATOMIC_RELAXED);
	if (!__atomic_load_n(&torch_python_node_object, __ATOMIC_RELAXED))
		find_python_object(&python->layout, node, class_name);
	__atomic_store_n(&torch_python_node_type, vtable, __ATOMIC_RELAXED);
	at = __atomic_load_n(&torch_python_node_object, __ATOMIC_RELAXED);
	if (!at || !read_memory(&object, node + at, sizeof(object)) ||
	    !name_class(&python->layout, object, class_name))
		class_name[0] = '\0';
}

static bool is_mangled(const char *name)
{
	return name[0] && strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				       "0123456789_.$") == strlen(name);
}

bool torch_node_name(uintptr_t node, struct torch_node_names *out)
{
	uintptr_t vtable, type_info, name;

	out->class_name[0] = '\0';
	if (!read_memory(&vtable, node, sizeof(vtable)) ||
	    !read_memory(&type_info, vtable - sizeof(void *), sizeof(type_info)) ||
	    !read_memory(&name, type_info + sizeof(void *), sizeof(name)) ||
	    !read_memory_text(out->type, sizeof(out->type), name))
		return false;
	if (out->type[0] == '*') /* a type without linkage */
		memmove(out->type, out->type + 1, strlen(out->type));
	if (!is_mangled(out->type))
		return false;
	if (!strcmp(out->type, PYTHON_NODE_TYPE))
		learn_python_node(node, vtable, out->class_name);
	return true;
}
