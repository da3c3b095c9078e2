/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Selects the recorded API calls, finds libcupti by rules that add candidates, and fills the table
 * of its functions. Runs once, in the thread of InitializeInjection(), before tracing; it may
 * allocate. All threads read the results. gpu_names_read() runs on the flusher thread.
 */
#include "inject/cupti/cupti.h"

#include <dlfcn.h>
#include <errno.h>
#include <glob.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "inject/runtime/machine.h"
#include "inject/runtime/process.h"
#include "log/base/compare.h"

struct api_table recorded_apis;
HOT_STATE uint32_t api_uses[API_CBID_END];
static uint8_t classes[API_CBID_END]; /* of recorded calls; else XT_API_OTHER */

#define NOT_RECORDED XT_API_CLASSES

/*
 * Classes by the start of a name and a part of it; the first match counts, so exceptions precede
 * their families. Calls that only query or set an option are not recorded.
 */
static const struct rule {
	const char *beginning;
	const char *part; /* NULL: any */
	uint32_t value;
} class_rules[] = {
	{"cuLaunchHostFunc", NULL, XT_API_OTHER},
	{"cuStreamAddCallback", NULL, XT_API_OTHER},
	{"cuLaunch", NULL, XT_API_LAUNCH},
	{"cuGraphLaunch", NULL, XT_API_GRAPH_LAUNCH},

	{"cuMemcpy", NULL, XT_API_COPY},
	{"cuMemPrefetch", NULL, XT_API_COPY},
	{"cuMemDiscardAndPrefetch", NULL, XT_API_COPY},
	{"cuMemBatchDecompress", NULL, XT_API_COPY},
	{"cuMemset", NULL, XT_API_SET},
	{"cuMemAdvise", NULL, XT_API_OTHER},
	{"cuMemDiscard", NULL, XT_API_OTHER},
	{"cuStreamAttachMem", NULL, XT_API_OTHER},

	{"cuMemAlloc", NULL, XT_API_ALLOC},
	{"cuMemHostAlloc", NULL, XT_API_ALLOC},
	{"cuMemHostRegister", NULL, XT_API_ALLOC},
	{"cuMemPeerRegister", NULL, XT_API_ALLOC},
	{"cuMemAddressReserve", NULL, XT_API_ALLOC},
	{"cuMemCreate", NULL, XT_API_ALLOC},
	{"cuMemMap", NULL, XT_API_ALLOC},
	{"cuMemSetAccess", NULL, XT_API_ALLOC},
	{"cuMemImport", NULL, XT_API_ALLOC},
	{"cuMemPoolImportPointer", NULL, XT_API_ALLOC},
	{"cuMulticastCreate", NULL, XT_API_ALLOC},
	{"cuMulticastAddDevice", NULL, XT_API_ALLOC},
	{"cuMulticastBind", NULL, XT_API_ALLOC},
	{"cuArrayCreate", NULL, XT_API_ALLOC},
	{"cuArray3DCreate", NULL, XT_API_ALLOC},
	{"cuMipmappedArrayCreate", NULL, XT_API_ALLOC},
	{"cuIpcOpenMemHandle", NULL, XT_API_ALLOC},
	{"cuImportExternalMemory", NULL, XT_API_ALLOC},
	{"cuExternalMemoryGetMapped", NULL, XT_API_ALLOC},

	{"cuMemFree", NULL, XT_API_FREE},
	{"cuMemHostUnregister", NULL, XT_API_FREE},
	{"cuMemPeerUnregister", NULL, XT_API_FREE},
	{"cuMemAddressFree", NULL, XT_API_FREE},
	{"cuMemRelease", NULL, XT_API_FREE},
	{"cuMemUnmap", NULL, XT_API_FREE},
	{"cuMemPoolTrimTo", NULL, XT_API_FREE},
	{"cuDeviceGraphMemTrim", NULL, XT_API_FREE},
	{"cuMulticastUnbind", NULL, XT_API_FREE},
	{"cuArrayDestroy", NULL, XT_API_FREE},
	{"cuMipmappedArrayDestroy", NULL, XT_API_FREE},
	{"cuIpcCloseMemHandle", NULL, XT_API_FREE},
	{"cuDestroyExternalMemory", NULL, XT_API_FREE},

	{"cuCtxSynchronize", NULL, XT_API_SYNC},
	{"cuStreamSynchronize", NULL, XT_API_SYNC},
	{"cuEventSynchronize", NULL, XT_API_SYNC},

	{"cuEventRecord", NULL, XT_API_EVENT},
	{"cuCtxRecordEvent", NULL, XT_API_EVENT},
	{"cuCtxWaitEvent", NULL, XT_API_EVENT},
	{"cuGreenCtxRecordEvent", NULL, XT_API_EVENT},
	{"cuGreenCtxWaitEvent", NULL, XT_API_EVENT},
	{"cuStreamWaitEvent", NULL, XT_API_EVENT},
	{"cuStreamWaitValue", NULL, XT_API_EVENT},
	{"cuStreamWriteValue", NULL, XT_API_EVENT},
	{"cuStreamBatchMemOp", NULL, XT_API_EVENT},
	{"cuSignalExternalSemaphores", NULL, XT_API_EVENT},
	{"cuWaitExternalSemaphores", NULL, XT_API_EVENT},

	{"cuModuleLoad", NULL, XT_API_MODULE},
	{"cuModuleUnload", NULL, XT_API_MODULE},
	{"cuLibraryLoad", NULL, XT_API_MODULE},
	{"cuLibraryUnload", NULL, XT_API_MODULE},
	{"cuFuncLoad", NULL, XT_API_MODULE},
	{"cuLink", NULL, XT_API_MODULE},

	{"cuGraphicsMapResources", NULL, XT_API_OTHER},
	{"cuGraphicsUnmapResources", NULL, XT_API_OTHER},
	{"cuGraphics", NULL, NOT_RECORDED},
	{"cuGraph", "Get", NOT_RECORDED},
	{"cuGraphNodeFind", NULL, NOT_RECORDED},
	{"cuGraphDebug", NULL, NOT_RECORDED},
	{"cuGraph", NULL, XT_API_GRAPH},
	{"cuStreamBeginCapture", NULL, XT_API_GRAPH},
	{"cuStreamUpdateCapture", NULL, XT_API_GRAPH},
	{"cuStreamEndCapture", NULL, XT_API_GRAPH},

	{"cuCtxCreate", NULL, XT_API_LIFE},
	{"cuCtxDestroy", NULL, XT_API_LIFE},
	{"cuCtxAttach", NULL, XT_API_LIFE},
	{"cuCtxDetach", NULL, XT_API_LIFE},
	{"cuCtxFromGreenCtx", NULL, XT_API_LIFE},
	{"cuCtxEnablePeerAccess", NULL, XT_API_LIFE},
	{"cuCtxDisablePeerAccess", NULL, XT_API_LIFE},
	{"cuGreenCtxCreate", NULL, XT_API_LIFE},
	{"cuGreenCtxDestroy", NULL, XT_API_LIFE},
	{"cuGreenCtxStreamCreate", NULL, XT_API_LIFE},
	{"cuDevicePrimaryCtxRetain", NULL, XT_API_LIFE},
	{"cuDevicePrimaryCtxRelease", NULL, XT_API_LIFE},
	{"cuDevicePrimaryCtxReset", NULL, XT_API_LIFE},
	{"cuStreamCreate", NULL, XT_API_LIFE},
	{"cuStreamDestroy", NULL, XT_API_LIFE},
	{"cuEventCreate", NULL, XT_API_LIFE},
	{"cuEventDestroy", NULL, XT_API_LIFE},
	{"cuIpcOpenEventHandle", NULL, XT_API_LIFE},
	{"cuImportExternalSemaphore", NULL, XT_API_LIFE},
	{"cuDestroyExternalSemaphore", NULL, XT_API_LIFE},
	{"cuMemPoolCreate", NULL, XT_API_LIFE},
	{"cuMemPoolImport", NULL, XT_API_LIFE},
	{"cuMemPoolDestroy", NULL, XT_API_LIFE},
};

static const enum api_level class_levels[XT_API_CLASSES] = {
	[XT_API_LAUNCH] = API_LEVEL_LAUNCH, [XT_API_GRAPH_LAUNCH] = API_LEVEL_LAUNCH,
	[XT_API_COPY] = API_LEVEL_WORK,	    [XT_API_SET] = API_LEVEL_WORK,
	[XT_API_ALLOC] = API_LEVEL_WORK,    [XT_API_FREE] = API_LEVEL_WORK,
	[XT_API_SYNC] = API_LEVEL_WORK,	    [XT_API_EVENT] = API_LEVEL_ALL,
	[XT_API_MODULE] = API_LEVEL_WORK,   [XT_API_GRAPH] = API_LEVEL_ALL,
	[XT_API_LIFE] = API_LEVEL_ALL,	    [XT_API_OTHER] = API_LEVEL_ALL,
};

/* The value of the first rule that matches. */
static uint32_t match(const struct rule *rules, size_t count, const char *name, uint32_t fallback)
{
	for (size_t i = 0; i < count; i++)
		if (begins_with(name, rules[i].beginning) &&
		    (!rules[i].part || strstr(name, rules[i].part)))
			return rules[i].value;
	return fallback;
}

uint32_t api_class_of(const char *name)
{
	return match(class_rules, sizeof(class_rules) / sizeof(*class_rules), name, NOT_RECORDED);
}

static const struct rule use_rules[] = {
	{"cuMemFreeAsync", NULL, API_FREES_ASYNC},
	{"cuCtxCreate", NULL, API_DELAYS_STOP},
	{"cuCtxDestroy", NULL, API_DELAYS_STOP},
	{"cuCtxDetach", NULL, API_DELAYS_STOP},
	{"cuCtxFromGreenCtx", NULL, API_DELAYS_STOP},
	{"cuGLCtxCreate", NULL, API_DELAYS_STOP},
	{"cuVDPAUCtxCreate", NULL, API_DELAYS_STOP},
	{"cuGreenCtxCreate", NULL, API_DELAYS_STOP},
	{"cuGreenCtxDestroy", NULL, API_DELAYS_STOP},
	{"cuDevicePrimaryCtxRe", NULL, API_DELAYS_STOP}, /* Retain, Release, Reset */
	{"cuCtxSynchronize", NULL, API_SYNCS_CONTEXT},
	{"cuStreamSynchronize", NULL, API_SYNCS_STREAM},
	{"cuGraphInstantiate", NULL, API_INSTANTIATES_GRAPH},
	{"cuGraphAddKernelNode", NULL, API_ADDS_KERNEL_NODE},
	{"cuGraphAddNode_v2", NULL, API_ADDS_NODE_V2},
	{"cuGraphAddNode", NULL, API_ADDS_NODE},
	{"cuGraphExecUpdate", NULL, API_UPDATES_EXEC},
	{"cuGraphExecChildGraphNodeSetParams", NULL, API_SETS_EXEC_NODE | API_SETS_EXEC_CHILD},
	{"cuGraph", "ChildGraph", 0},
	{"cuGraphExec", "NodeSetParams", API_SETS_EXEC_NODE},
	{"cuGraph", "NodeSetParams", API_SETS_NODE},
};

uint32_t api_use_of(const char *name)
{
	return match(use_rules, sizeof(use_rules) / sizeof(*use_rules), name, 0);
}

uint32_t api_class(uint32_t id)
{
	return (id & 0xffff) < API_CBID_END ? classes[id & 0xffff] : XT_API_OTHER;
}

bool api_makes_kernels(uint32_t id)
{
	uint32_t class = api_class(id);

	return class == XT_API_LAUNCH || class == XT_API_GRAPH_LAUNCH;
}

enum api_level api_level_of(uint32_t class)
{
	return class_levels[class];
}

static void add_api(enum api_level level, uint32_t cbid, const char *name)
{
	uint32_t class = api_class_of(name);
	struct recorded_api *api = &recorded_apis.apis[recorded_apis.count];

	api_uses[cbid] = api_use_of(name);
	if (cupti.version >= XT_CUPTI_OF_CUDA13)
		api_uses[cbid] &= ~(uint32_t)API_SYNCS;
	if (class == NOT_RECORDED || api_level_of(class) > level) {
		api_uses[cbid] |= API_IS_UNRECORDED;
		return;
	}
	api->id = (uint32_t)XT_CUPTI_CB_DOMAIN_DRIVER_API << 16 | cbid;
	api->class = class;
	api->name = name;
	if (class == XT_API_LAUNCH || class == XT_API_GRAPH_LAUNCH || class == XT_API_COPY ||
	    class == XT_API_SET)
		api_uses[cbid] |= API_MAKES_WORK;
	if (class == XT_API_GRAPH_LAUNCH)
		api_uses[cbid] |= API_LAUNCHES_GRAPH;
	classes[cbid] = (uint8_t) class;
	recorded_apis.count++;
}

/* Calls that launch kernels, for a CUPTI that does not report names. */
static void add_known_launches(enum api_level level)
{
#define KNOWN_LAUNCH(name, id, class) {id, #name},
	static const struct {
		uint32_t cbid;
		const char *name;
	} known[] = {XT_CUPTI_DRIVER_LAUNCHES(KNOWN_LAUNCH)};

	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
		add_api(level, known[i].cbid, known[i].name);
}

int api_table_fill(enum api_level level)
{
	uint32_t failed_count = 0;

	/* An earlier attempt to start may have filled it. */
	free(recorded_apis.apis);
	recorded_apis.count = 0;
	recorded_apis.apis = calloc(API_CBID_END, sizeof(*recorded_apis.apis));
	if (!recorded_apis.apis)
		return -ENOMEM;
	for (uint32_t cbid = 1; cupti.cuptiGetCallbackName && cbid < API_CBID_END; cbid++) {
		const char *name = NULL;
		uint32_t result =
			cupti.cuptiGetCallbackName(XT_CUPTI_CB_DOMAIN_DRIVER_API, cbid, &name);

		if (result == XT_CUPTI_SUCCESS && name)
			add_api(level, cbid, name);
		else if (cupti_has_failed(result))
			failed_count++;
	}
	if (!recorded_apis.count)
		add_known_launches(level);
	atomic_store(&cupti_lost_apis, failed_count);
	return 0;
}

#define CANDIDATES_MAX 64
#define ROOTS_MAX      16

struct cupti_search {
	struct cupti_candidate candidates[CANDIDATES_MAX];
	unsigned count;
	unsigned next;
	char python_roots[ROOTS_MAX][PATH_MAX]; /* …/site-packages directories */
	unsigned python_root_count;
	char places[512];
};

static void add_candidate(struct cupti_search *search, const char *path, const char *rule)
{
	for (unsigned i = 0; i < search->count; i++)
		if (!strcmp(search->candidates[i].path, path))
			return;
	if (search->count == CANDIDATES_MAX)
		return;
	snprintf(search->candidates[search->count].path, PATH_MAX, "%s", path);
	search->candidates[search->count++].rule = rule;
}

static void add_place(struct cupti_search *search, const char *place)
{
	size_t used = strlen(search->places);

	snprintf(search->places + used, sizeof(search->places) - used, "%s%s", used ? ", " : "",
		 place);
}

/* Newest first: glob() sorts by name, and higher versions come last. */
static void add_matches(struct cupti_search *search, const char *pattern, const char *rule)
{
	glob_t matches;

	if (glob(pattern, 0, NULL, &matches))
		return;
	for (size_t i = matches.gl_pathc; i-- > 0;)
		add_candidate(search, matches.gl_pathv[i], rule);
	globfree(&matches);
}

static void note_python_root(struct cupti_search *search, const char *path)
{
	static const char *const names[] = {"/site-packages/", "/dist-packages/"};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		const char *at = strstr(path, names[i]);
		char root[PATH_MAX];

		if (!at)
			continue;
		snprintf(root, sizeof(root), "%.*s", (int)(at - path + strlen(names[i]) - 1), path);
		for (unsigned r = 0; r < search->python_root_count; r++)
			if (!strcmp(search->python_roots[r], root))
				return;
		if (search->python_root_count < ROOTS_MAX)
			strcpy(search->python_roots[search->python_root_count++], root);
		return;
	}
}

static int look_at_loaded(struct dl_phdr_info *info, size_t info_bytes, void *arg)
{
	struct cupti_search *search = arg;

	(void)info_bytes;
	if (!info->dlpi_name)
		return 0;
	if (!strncmp(base_name(info->dlpi_name), "libcupti.so", 11))
		add_candidate(search, info->dlpi_name, "already loaded in the process");
	note_python_root(search, info->dlpi_name);
	return 0;
}

static void rule_loaded(struct cupti_search *search)
{
	add_place(search, "the libraries already loaded");
	dl_iterate_phdr(look_at_loaded, search);
}

/* For an interpreter that has not loaded a package yet: starts from its own path. */
static void find_python_of_exe(struct cupti_search *search)
{
	char exe[PATH_MAX], pattern[PATH_MAX + 64];
	const char *environment = setting("VIRTUAL_ENV");
	char *slash;
	glob_t matches;

	if (!own_program_path(exe, sizeof(exe)))
		return;
	if (strncmp(base_name(exe), "python", 6))
		return;
	for (int up = 0; up < 2; up++) { /* …/bin/python3 */
		slash = strrchr(exe, '/');
		if (slash)
			*slash = '\0';
	}
	for (int i = 0; i < 2; i++) {
		const char *prefix = i ? exe : environment;

		if (!prefix || !*prefix)
			continue;
		snprintf(pattern, sizeof(pattern), "%s/lib/python3*/*-packages/", prefix);
		if (glob(pattern, 0, NULL, &matches))
			continue;
		for (size_t m = 0; m < matches.gl_pathc; m++)
			note_python_root(search, matches.gl_pathv[m]);
		globfree(&matches);
	}
}

static void rule_python(struct cupti_search *search)
{
	static const char *const packages[] = {
		"nvidia/cu[0-9]*/lib/libcupti.so.*",
		"nvidia/cuda_cupti/lib/libcupti.so.*",
		"nvidia/*/lib/libcupti.so.*",
		"triton/backends/nvidia/lib/cupti/libcupti.so*",
	};
	char pattern[PATH_MAX + 64];

	add_place(search, "the Python packages in use");
	find_python_of_exe(search);
	for (unsigned r = 0; r < search->python_root_count; r++)
		for (size_t p = 0; p < sizeof(packages) / sizeof(*packages); p++) {
			snprintf(pattern, sizeof(pattern), "%s/%s", search->python_roots[r],
				 packages[p]);
			add_matches(search, pattern, "beside the Python packages in use");
		}
}

static void rule_toolkit(struct cupti_search *search)
{
	static const char *const variables[] = {"CUDA_HOME", "CUDA_PATH"};
	static const char *const folders[] = {"extras/CUPTI/lib64", "lib64", "lib",
					      "targets/" MACHINE_CUDA_TARGET "/lib"};
	char pattern[PATH_MAX + 64];

	add_place(search, "CUDA_HOME, CUDA_PATH, /usr/local/cuda*");
	for (size_t v = 0; v <= sizeof(variables) / sizeof(*variables); v++) {
		const char *home = v < sizeof(variables) / sizeof(*variables)
					   ? setting(variables[v])
					   : "/usr/local/cuda*";

		for (size_t f = 0; home && *home && f < sizeof(folders) / sizeof(*folders); f++) {
			snprintf(pattern, sizeof(pattern), "%s/%s/libcupti.so.[1-9]*", home,
				 folders[f]);
			add_matches(search, pattern, "in a CUDA toolkit");
		}
	}
}

static void rule_loader(struct cupti_search *search)
{
	static const char *const names[] = {"libcupti.so.13", "libcupti.so.12", "libcupti.so"};

	add_place(search, "the loader's path");
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		add_candidate(search, names[i], "by the loader's path");
}

static void (*const rules[])(struct cupti_search *) = {
	rule_loaded,
	rule_python,
	rule_toolkit,
	rule_loader,
};

struct cupti_search *cupti_search_begin(const char *asked_path)
{
	struct cupti_search *search = calloc(1, sizeof(*search));

	if (!search)
		return NULL;
	if (asked_path && *asked_path) {
		add_place(search, asked_path);
		add_candidate(search, asked_path, "named by XTRACE_CUPTI");
		return search;
	}
	for (size_t i = 0; i < sizeof(rules) / sizeof(*rules); i++)
		rules[i](search);
	return search;
}

bool cupti_search_next(struct cupti_search *search, struct cupti_candidate *candidate)
{
	while (search->next < search->count) {
		const struct cupti_candidate *found = &search->candidates[search->next++];

		/*
		 * The loader searches for bare names. A requested path is always tried, so that its
		 * error is reported.
		 */
		if (found->path[0] == '/' && search->count > 1 && access(found->path, R_OK))
			continue;
		*candidate = *found;
		return true;
	}
	return false;
}

const char *cupti_search_places(const struct cupti_search *search)
{
	return search->places;
}

void cupti_search_end(struct cupti_search *search)
{
	free(search);
}

struct cupti_table cupti;
atomic_uint_fast64_t cupti_lost_apis, cupti_lost_kinds, cupti_unsafe_kinds, cupti_unsafe_memory;
atomic_uint_fast64_t cupti_module_unloads;

/*
 * CUPTI_API_VERSION by CUDA release, from cupti_version.h. From 13.0 on it is the release itself:
 * 130001 is 13.0 update 1.
 */
static const struct {
	uint32_t cupti;
	uint32_t cuda;
} releases[] = {
	{18, 11080}, {19, 12000}, {20, 12020}, {21, 12030}, {22, 12040},
	{23, 12050}, {24, 12060}, {26, 12080}, {27, 12090},
};
#define OLDEST_CUPTI 18 /* older versions crash under current drivers */

/* The CUDA release of a CUPTI version (12080 for 12.8); 0 if it is too old. */
static uint32_t release_of(uint32_t version)
{
	uint32_t release = 0;

	if (version >= XT_CUPTI_OF_CUDA13)
		return version / 10000 * 1000 + version / 100 % 100 * 10;
	for (size_t i = 0; i < sizeof(releases) / sizeof(*releases); i++)
		if (version >= releases[i].cupti)
			release = releases[i].cuda;
	return release;
}

void *driver_function(const char *name)
{
	void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
	void *function = driver ? dlsym(driver, name) : NULL;

	if (driver)
		dlclose(driver);
	return function;
}

static uint32_t driver_version(void)
{
	int (*get_version)(int *) = driver_function("cuDriverGetVersion");
	int version = 0;

	return get_version && !get_version(&version) ? (uint32_t)version : 0;
}

static const char *fill_table(void *library, struct cupti_table *table)
{
#define CUPTI_ROW(need, function, arguments) {#function, CUPTI_##need, (void **)&table->function},
#define CUPTI_REQUIRED			     true
#define CUPTI_OPTIONAL			     false
	const struct {
		const char *name;
		bool required;
		void **member;
	} rows[] = {CUPTI_FUNCTIONS(CUPTI_ROW)};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		*rows[i].member = dlsym(library, rows[i].name);
		if (!*rows[i].member && rows[i].required)
			return rows[i].name;
	}
	return NULL;
}

/*
 * CUPTI of CUDA 11 ends programs that launch through libraries of a later CUDA with SIGSEGV
 * (docs/internals/CONDITIONAL_GRAPHS.md). Returns one that the program has loaded, or NULL.
 */
static const char *later_library(void)
{
	static const char *const names[] = {"libcudart.so.12", "libcudart.so.13",
					    "libcublasLt.so.12", "libcublasLt.so.13"};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		void *library = dlopen(names[i], RTLD_LAZY | RTLD_NOLOAD);

		if (library && !dlclose(library))
			return names[i];
	}
	return NULL;
}

/* Opens a candidate. If it is unsuitable, sets `why` and closes it. */
static bool try_candidate(const struct cupti_candidate *candidate, uint32_t driver, char *why,
			  size_t why_bytes)
{
	struct cupti_table table = {0};
	void *library = dlopen(candidate->path, RTLD_NOW | RTLD_LOCAL);
	const char *missing, *later;

	if (!library) {
		/* A bare name that the loader does not find is no error. */
		why[0] = '\0';
		if (strchr(candidate->path, '/'))
			snprintf(why, why_bytes, "cannot load %s", dlerror());
		return false;
	}
	missing = fill_table(library, &table);
	if (missing) {
		snprintf(why, why_bytes, "%s lacks the function %s", candidate->path, missing);
		goto refuse;
	}
	if (table.cuptiGetVersion(&table.version) != XT_CUPTI_SUCCESS)
		table.version = 0;
	if (table.version < OLDEST_CUPTI) {
		snprintf(why, why_bytes,
			 "%s is too old: CUPTI API %u; use CUPTI of CUDA 11.8 or later",
			 candidate->path, table.version);
		goto refuse;
	}
	later = table.version < XT_CUPTI_OF_CUDA12 ? later_library() : NULL;
	if (later) {
		snprintf(why, why_bytes,
			 "%s of CUDA 11 could make this program fail, because it uses %s: use "
			 "CUPTI of CUDA 12 or later",
			 candidate->path, later);
		goto refuse;
	}
	/* Minor releases are compatible; a newer major release needs a newer driver. */
	if (driver && release_of(table.version) / 1000 > driver / 1000) {
		snprintf(why, why_bytes,
			 "%s of CUDA %u.%u is newer than the driver (CUDA %u.%u): update the "
			 "driver, or use CUPTI of CUDA %u",
			 candidate->path, release_of(table.version) / 1000,
			 release_of(table.version) / 10 % 100, driver / 1000, driver / 10 % 100,
			 driver / 1000);
		goto refuse;
	}
	table.cuda_version = driver;
	table.library = library;
	snprintf(table.path, sizeof(table.path), "%s", candidate->path);
	table.found_by = candidate->rule;
	cupti = table;
	return true;
refuse:
	dlclose(library);
	return false;
}

int cupti_open(const char *asked_path, char *why, size_t why_bytes)
{
	struct cupti_candidate candidate;
	struct cupti_search *search = cupti_search_begin(asked_path);
	uint32_t driver = driver_version();
	char refusal[1024] = "";
	bool found = false;

	if (!search)
		return -ENOMEM;
	while (!found && cupti_search_next(search, &candidate)) {
		char text[sizeof(refusal)];

		found = try_candidate(&candidate, driver, text, sizeof(text));
		/* Report the refusal of the best candidate. */
		if (!found && !refusal[0])
			snprintf(refusal, sizeof(refusal), "%s", text);
	}
	if (!found)
		snprintf(why, why_bytes,
			 "%s%s (searched: %s); install CUPTI, or set XTRACE_CUPTI=FILE",
			 refusal[0] ? "no usable libcupti: " : "no libcupti found", refusal,
			 cupti_search_places(search));
	*(void **)&cupti.cuFuncGetName = driver_function("cuFuncGetName");
	*(void **)&cupti.cuDeviceGetCount = driver_function("cuDeviceGetCount");
	*(void **)&cupti.cuDevicePrimaryCtxGetState = driver_function("cuDevicePrimaryCtxGetState");
	*(void **)&cupti.cuPointerGetAttribute = driver_function("cuPointerGetAttribute");
	*(void **)&cupti.cuMemPoolGetAttribute = driver_function("cuMemPoolGetAttribute");
	cupti_search_end(search);
	return found ? 0 : -ENOENT;
}

bool cupti_driver_is_ready(void)
{
	int count;

	return !cupti.cuDeviceGetCount ||
	       cupti.cuDeviceGetCount(&count) != XT_CUDA_ERROR_NOT_INITIALIZED;
}

bool cupti_has_failed(uint32_t result)
{
	static const uint32_t others[] = {
		XT_CUPTI_SUCCESS,
		XT_CUPTI_ERROR_INVALID_PARAMETER,
		XT_CUPTI_ERROR_API_NOT_IMPLEMENTED,
		XT_CUPTI_ERROR_MAX_LIMIT_REACHED,
		XT_CUPTI_ERROR_INVALID_KIND,
		XT_CUPTI_ERROR_NOT_SUPPORTED,
	};

	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
		if (result == others[i])
			return false;
	return true;
}

const char *cupti_result_text(uint32_t result)
{
	const char *text = NULL;

	if (cupti.cuptiGetResultString)
		cupti.cuptiGetResultString(result, &text);
	return text ? text : "unknown error";
}

#define GPU_LIMIT_NAME(id, attribute, name)	 name,
#define GPU_LIMIT_ATTRIBUTE(id, attribute, name) attribute,
const char *const gpu_limit_names[GPU_LIMITS] = {GPU_LIMIT_LIST(GPU_LIMIT_NAME)};
static const int attributes[GPU_LIMITS] = {GPU_LIMIT_LIST(GPU_LIMIT_ATTRIBUTE)};

static struct gpu_names found;
static atomic_bool is_known;

static void read_limits(int (*get_attribute)(int *, int, int), int device)
{
	for (int l = 0; l < GPU_LIMITS; l++)
		if (!get_attribute ||
		    get_attribute(&found.limits[device][l], attributes[l], device))
			found.limits[device][l] = -1;
}

/* The driver reports an error until cuInit() is far enough; the caller then asks again. */
void gpu_names_read(void)
{
	int (*get_count)(int *) = driver_function("cuDeviceGetCount");
	int (*get_name)(char *, int, int) = driver_function("cuDeviceGetName");
	int (*get_uuid)(void *, int) = driver_function("cuDeviceGetUuid_v2");
	int (*get_attribute)(int *, int, int) = driver_function("cuDeviceGetAttribute");
	int count = 0;

	if (!get_count || !get_name || get_count(&count))
		return;
	for (int device = 0; device < count && device < GPUS_MAX; device++) {
		/* A CUdevice is the ordinal of the device. */
		if (get_name(found.names[device], GPU_NAME_BYTES - 1, device))
			break;
		if (get_uuid && get_uuid(found.uuids[device], device))
			memset(found.uuids[device], 0, GPU_UUID_BYTES);
		read_limits(get_attribute, device);
		found.count++;
	}
	atomic_store(&is_known, true);
}

const struct gpu_names *gpu_names(void)
{
	return atomic_load(&is_known) ? &found : NULL;
}
