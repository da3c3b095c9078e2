/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Short names of source files: "model.py". If several files of a run have the same name, folders
 * are added until it is unique: "left/model.py".
 */
#ifndef XT_MERGE_FILE_NAMES_H
#define XT_MERGE_FILE_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "merge/base/names.h"
#include "merge/read/model.h"

struct file_name {
	uint32_t suffix; /* shown suffix + 1; 0: not assigned */
	bool is_added;
};

/* The source files of a run. Zeros are an empty table. */
struct file_names {
	struct names paths;	 /* without "." and ".." */
	struct names suffixes;	 /* one or more whole components at the end of a path */
	struct file_name *files; /* by path */
	size_t file_capacity;
	uint32_t *path_counts; /* by suffix: how many paths end with it */
	size_t suffix_capacity;
};

/* Adds a path. Call file_names_assign() after the last one. */
void file_names_add(struct file_names *files, const char *path);

/* Assigns names to the paths added since the last call. Earlier names stay. */
void file_names_assign(struct file_names *files);

/* Returns the name of a path, or path itself if it was not added. Valid until the next addition. */
const char *file_names_shown(struct file_names *files, const char *path);

void file_names_free(struct file_names *files);

/* Returns whether the file belongs to a library, not to the user's program. */
bool file_is_library(const char *path);

/*
 * Returns the part of the path of a library's or the system's file that is the same for everybody.
 * NULL: it is another file.
 */
const char *file_public_part(const char *path);

/* Returns whether a program or library with this absolute path is part of an installed package. */
bool module_is_installed(const char *path);

/*
 * Returns whether a module is part of the C or C++ runtime. Its debug information has paths such as
 * "nptl/futex-internal.c", which do not look like those of a library.
 */
bool module_is_of_c_runtime(const char *path);

/* The same for a module, as index in the model's modules. */
static inline bool model_is_of_c_runtime(const struct model *model, uint32_t module)
{
	return module && module_is_of_c_runtime(
				 names_text(&model->names, model->modules.rows[module].path, NULL));
}

/*
 * Returns whether a module is part of the C runtime or of an installed package. Packages, too, may
 * have relative paths in their debug information, such as "cupy/_core/core.cpp".
 */
static inline bool model_is_library(const struct model *model, uint32_t module)
{
	return model_is_of_c_runtime(model, module) ||
	       (module &&
		file_is_library(names_text(&model->names, model->modules.rows[module].path, NULL)));
}

#endif
