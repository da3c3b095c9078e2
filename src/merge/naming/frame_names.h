/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of frames: functions, lines, Python frames and API calls. Each name is built once.
 *
 * Short names of source files: "model.py". If several files of a run have the same name, folders
 * are added until it is unique: "left/model.py".
 *
 * --redact replaces what names people, machines and projects, so that an output can be shared. The
 * folders of private files become "/redacted", "/redacted-2" and so on; file names stay. Files in
 * libraries keep their path below the library's folder, because it is the same for all users. Logs,
 * host names, jobs, GPU identifiers, processes and threads are numbered; arguments of programs and
 * the identities of processes and boots are removed. Names in code, NVTX texts and the texts of
 * --filter and similar options stay.
 */
#ifndef XT_MERGE_FRAME_NAMES_H
#define XT_MERGE_FRAME_NAMES_H

#include <regex.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "merge/base/names.h"
#include "merge/naming/demangle.h"
#include "merge/naming/paths.h"
#include "merge/naming/unique_names.h"
#include "merge/read/inputs.h"
#include "merge/read/model.h"
#include "merge/symbolize/addresses.h"

struct file_name {
	uint32_t suffix; /* shown suffix + 1; 0: not assigned */
	bool is_added;
};

/* The source files of a run. Zeros are an empty table. */
struct file_names {
	struct names paths;	       /* without "." and ".." */
	struct names suffixes;	       /* one or more whole components at the end of a path */
	BY_ID(struct file_name) files; /* by path */
	BY_ID(uint32_t) path_counts;   /* by suffix: how many paths end with it */
};

/* Adds a path. Call file_names_assign() after the last one. */
void file_names_add(struct file_names *files, const char *path);

/* Assigns names to the paths added since the last call. Earlier names stay. */
void file_names_assign(struct file_names *files);

/* Returns the name of a path, or path itself if it was not added. Valid until the next addition. */
const char *file_names_shown(struct file_names *files, const char *path);

void file_names_free(struct file_names *files);

/*
 * The names given so far. They are kept from log to log, so that a frame has the same name in all
 * logs. Zero-initialised: empty.
 */
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

/* Returns whether the file belongs to a library, not to the user's program. */
bool file_is_library(const char *path);

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

/* The replacements of a run, so that equal things stay equal. */
struct redaction {
	struct names folders; /* numbered from 1 in order of use, as are the others */
	struct names hosts;
	struct names gpus; /* UUIDs */
	struct names jobs; /* also names of process namespaces */
	struct names ids;  /* of processes and threads */
	char *path;	   /* buffer for redact_path() */
	size_t path_capacity;
};

/* Redacts the inputs. Call it after their processes have been distinguished. */
void redaction_begin(struct redaction *redaction, struct inputs *inputs);
void redaction_free(struct redaction *redaction); /* accepts zeros */

/* Redacts paths in names of functions, after they were resolved. */
void redact_names(struct redaction *redaction, struct model *model, struct addresses *addresses);

/*
 * Redacts the paths and descriptions of a log, after its code was resolved and its frames were
 * built.
 */
void redact_model(struct redaction *redaction, struct model *model, struct addresses *addresses);

#define TORCH_EVALUATE_FUNCTION "_ZN5torch8autograd6Engine17evaluate_function" /* mangled */

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
