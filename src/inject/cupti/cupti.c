/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fills the table of CUPTI functions. Runs once, in the thread of InitializeInjection().
 * cupti_search.c lists the candidates.
 */
#include "inject/cupti/cupti.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "inject/cupti/cupti_search.h"

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

/* A function of the driver, or NULL. */
static void *driver_function(const char *name)
{
	void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
	void *function = driver ? dlsym(driver, name) : NULL;

	if (driver)
		dlclose(driver);
	return function;
}

static uint32_t driver_version(void)
{
	int (*get_version)(int *) = (int (*)(int *))driver_function("cuDriverGetVersion");
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
