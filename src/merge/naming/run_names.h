/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the naming of frames remembers from log to log, so that names are the same in all of them.
 */
#ifndef XT_MERGE_RUN_NAMES_H
#define XT_MERGE_RUN_NAMES_H

#include "merge/naming/frame_names.h"
#include "merge/naming/unique_names.h"
#include "merge/symbolize/addresses.h"

/* Zeros are empty. */
struct run_names {
	struct unique_names unique_names;
	struct file_names file_names;
	struct unnamed_modules unnamed_modules;
};

static inline void run_names_free(struct run_names *names)
{
	unnamed_modules_free(&names->unnamed_modules);
	unique_names_free(&names->unique_names);
	file_names_free(&names->file_names);
}

#endif
