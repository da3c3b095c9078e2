/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The settings that xtrace attach passes to the library, instead of environment variables.
 */
#ifndef XTRACE_ATTACH_SETTINGS_H
#define XTRACE_ATTACH_SETTINGS_H

#include <limits.h>
#include <stddef.h>

#include "attach/attach.h"
#include "capture_options.h"
#include "install_paths.h"

#define ATTACH_SETTINGS_MAX 64

struct attach_settings {
	struct attach_setting list[ATTACH_SETTINGS_MAX];
	size_t count;
	struct capture_environment environment;
	char *start_values[16]; /* owned: the process's own variables */
	size_t start_count;
	char own_cupti[PATH_MAX + 32];
};

/*
 * *settings is all zeros before. Returns 0 or -ENOMEM. Call attach_settings_free() in both cases;
 * options, paths and data_dir must stay until then.
 */
int attach_settings_make(struct attach_settings *settings, const struct capture_options *options,
			 const struct install_paths *paths, const struct target *target,
			 const char *data_dir);
void attach_settings_free(struct attach_settings *settings);

#endif
