/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of frames: functions, lines, Python frames and API calls. Each name is built once.
 */
#ifndef XT_MERGE_FRAME_NAMES_H
#define XT_MERGE_FRAME_NAMES_H

#include <regex.h>
#include <stdbool.h>
#include <stdint.h>

#include "merge/symbolize/addresses.h"
#include "merge/naming/demangle.h"
#include "merge/naming/file_names.h"
#include "merge/naming/disambiguate.h"
#include "merge/naming/paths.h"
#include "merge/naming/redaction.h"
#include "merge/read/model.h"

#define FRAME_UNKNOWN	     "[unknown]"
#define FRAME_INLINED	     "[inlined]"
#define FRAME_TRUNCATED	     "[truncated]"
#define FRAME_PYTHON_CHANGED "[Python frames changed]" /* at the inner end of a sample */
#define FRAME_UNATTRIBUTED   "[unattributed]"

struct frame_names {
	const struct model *model;
	const struct addresses *addresses;
	struct demangle_cache *cache;
	struct names *names; /* table of the shown names */
	struct paths *paths; /* owner of names; records which are user code */
	struct file_names *files;
	const regex_t *user_files;	   /* files of the user's own code; NULL: no library */
	struct redaction *redaction;	   /* NULL: off */
	bool lines;			   /* append lines: "f (file.c:12)" */
	struct name_qualifier *qualifiers; /* by index in the addresses */
	uint32_t *native;  /* by index in the addresses: name + 1; 0: not built yet */
	uint32_t *inlined; /* by index in the places of the addresses: name + 1, or 0 */
	uint32_t *python;  /* by XT_PYTHON_FRAME_ID: name + 1, or 0 */
};

/* A line that a Python frame is shown as. */
struct python_line {
	uint32_t name; /* in the paths */
	struct place place;
	uint32_t first_line; /* of the function; 0: unknown */
	bool is_labelled;    /* more than function and line is in the name */
};

/*
 * Allocates native, inlined and python, which the caller frees, and assigns file names. The caller
 * has set the other members. Free it with frame_names_end().
 */
void frame_names_begin(struct frame_names *names);
void frame_names_end(struct frame_names *names);

/*
 * Returns the name of the function at an address, of a function inlined there, or of a Python
 * frame, "train_step (train.py:12)". Any Python frame id is valid.
 */
uint32_t frame_native_name(struct frame_names *names, uint32_t address);
uint32_t frame_inlined_name(struct frame_names *names, uint32_t address, size_t place);
uint32_t frame_python_name(struct frame_names *names, uint32_t id);

/* The name "function (file:line)" of the user's or a library's line. */
uint32_t frame_line_name(struct frame_names *names, const char *function, const char *path,
			 uint32_t line);

/* The file name as shown. It is valid until names end. */
const char *frame_shown_file(const struct frame_names *names, const char *path);

/* The name followed by a space and a label. */
uint32_t frame_labelled_name(struct frame_names *names, uint32_t name, const char *label);

/*
 * Interns the name of an API function without the suffixes of its versions: _ptsz, _ptds, _v2,
 * _v13000.
 */
uint32_t frame_api_name(struct names *names, const char *name);

#endif
