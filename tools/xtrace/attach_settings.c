/* SPDX-License-Identifier: Apache-2.0 */
#include "attach_settings.h"

#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define OWN_PREFIX "XTRACE_"

static void add_setting(struct attach_settings *settings, const char *name, const char *value)
{
	if (value && settings->count < ATTACH_SETTINGS_MAX)
		settings->list[settings->count++] =
			(struct attach_setting){.name = name, .value = value};
}

/* Variables of the process that the library uses. It must not read its environment any more. */
static void add_start_values(struct attach_settings *settings, const struct target *target)
{
	static const char *const names[] = {
		"VIRTUAL_ENV",
		"CUDA_HOME",
		"CUDA_PATH",
		"RANK",
		"LOCAL_RANK",
		"WORLD_SIZE",
		"OMPI_COMM_WORLD_RANK",
		"PMI_RANK",
		"SLURM_PROCID",
		"LD_LIBRARY_PATH", /* may be long */
	};
	size_t first = settings->count;

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		char *value = target_variable(target, names[i]);

		add_setting(settings, names[i], value);
		settings->start_values[settings->start_count++] = value;
	}
	for (size_t i = first; i < settings->count; i++)
		settings->list[i].is_optional = true;
}

/* Variables of this shell. The library uses the first setting of a name. */
static void add_own_variables(struct attach_settings *settings)
{
	for (char **entry = environ; *entry; entry++) {
		char *equals = strchr(*entry, '=');
		char *name = equals && !strncmp(*entry, OWN_PREFIX, strlen(OWN_PREFIX))
				     ? strndup(*entry, (size_t)(equals - *entry))
				     : NULL;

		/* Used until this program ends, so it is not freed. */
		if (name)
			add_setting(settings, name, equals + 1);
	}
}

/* A program on the simulated GPU needs the simulated CUPTI. */
static void add_simulator(struct attach_settings *settings, const struct install_paths *paths,
			  const struct target *target)
{
	char folder[PATH_MAX], cuda[PATH_MAX];

	snprintf(cuda, sizeof(cuda), "%s", target->cuda_path);
	if (!realpath(paths->simulator, folder) || strcmp(dirname(cuda), folder) != 0)
		return;
	snprintf(settings->own_cupti, sizeof(settings->own_cupti), "%s/libcupti.so", folder);
	add_setting(settings, "XTRACE_CUPTI", settings->own_cupti);
}

int attach_settings_make(struct attach_settings *settings, const struct capture_options *options,
			 const struct install_paths *paths, const struct target *target,
			 const char *data_dir)
{
	int error = capture_environment_make(&settings->environment, options, paths, data_dir);

	if (error)
		return error;
	for (size_t i = 0; i < settings->environment.count; i++)
		if (!strncmp(settings->environment.entries[i].name, OWN_PREFIX, strlen(OWN_PREFIX)))
			add_setting(settings, settings->environment.entries[i].name,
				    settings->environment.entries[i].value);
	/* The library would wait for the program's profiler calls, which may be over. */
	add_setting(settings, "XTRACE_CAPTURE_RANGE", "");
	add_own_variables(settings);
	add_simulator(settings, paths, target);
	add_start_values(settings, target);
	return 0;
}

void attach_settings_free(struct attach_settings *settings)
{
	capture_environment_free(&settings->environment);
	for (size_t i = 0; i < settings->start_count; i++)
		free(settings->start_values[i]);
}
