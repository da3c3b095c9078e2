/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of options.
 */
#ifndef XT_MERGE_OPTION_TABLE_H
#define XT_MERGE_OPTION_TABLE_H

#include "merge/options.h"

struct option_row {
	const char *name;
	char letter;	   /* 0: none */
	const char *value; /* what it is called in --help; NULL: takes none */
	const char *what;
	uint32_t uses; /* enum exporter_use: it matters to outputs with any of these; 0: always */
	int (*apply)(struct options *options, const char *value); /* 0 or -EINVAL */
};

#define OPTIONS_MAX 64

extern const struct option_row option_rows[];
extern const size_t option_count; /* at most OPTIONS_MAX */

#endif
