/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What frames are called: functions, lines, Python frames, calls of the API. Each name is made once.
 */
#ifndef XT_MERGE_FRAME_NAMES_H
#define XT_MERGE_FRAME_NAMES_H

#include <stdbool.h>
#include <stdint.h>

#include "merge/symbolize/addresses.h"
#include "merge/naming/demangle.h"
#include "merge/naming/file_names.h"
#include "merge/naming/disambiguate.h"
#include "merge/naming/paths.h"
#include "merge/read/model.h"

#define FRAME_UNKNOWN	   "[unknown]"
#define FRAME_INLINED	   "[inlined]"
#define FRAME_TRUNCATED	   "[truncated]"
#define FRAME_UNATTRIBUTED "[unattributed]"

struct frame_names {
	const struct model *model;
	const struct addresses *addresses;
	struct demangle_cache *cache;
	struct names *names; /* that the shown ones go into */
	struct paths *paths; /* whose names these are: notes which are of the user's files */
	struct file_names *files;
	bool lines;			   /* "f (file.c:12)" */
	struct name_qualifier *qualifiers; /* by place in the addresses */
	uint32_t *native;  /* by place in the addresses: name + 1; 0: it was not asked for */
	uint32_t *inlined; /* by place in the places of the addresses: likewise */
	uint32_t *python;  /* by XT_PYTHON_FRAME_ID: likewise */
};

/* Makes the lists of names, which are the caller's to free, and settles what files are called. The other members
 * are set. 0 or -ENOMEM; frame_names_end() in any case. */
int frame_names_begin(struct frame_names *names);
void frame_names_end(struct frame_names *names);

/* The function that an address lies in; a function inlined there; "train_step (train.py:12)". Any id
 * of a Python frame will do. A name, or NAME_FAILED. */
uint32_t frame_native_name(struct frame_names *names, uint32_t address);
uint32_t frame_inlined_name(struct frame_names *names, size_t place);
uint32_t frame_python_name(struct frame_names *names, uint32_t id);

/* A function of the API without what tells its versions apart: _ptsz, _ptds, _v2, _v13000. */
uint32_t frame_api_name(struct names *names, const char *name);

#endif
