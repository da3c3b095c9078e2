/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rules that add candidates for libcupti. Runs once, in the thread of InitializeInjection(), before
 * tracing; it may allocate.
 */
#include "inject/cupti/cupti_search.h"

#include <glob.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "inject/runtime/machine.h"
#include "inject/runtime/own_program.h"
#include "inject/runtime/settings.h"
#include "log/base/compare.h"

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
