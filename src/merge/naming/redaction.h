/* SPDX-License-Identifier: Apache-2.0 */
/*
 * --redact: replaces what names people, machines and projects, so that an output can be shared.
 *
 * The folders of private files become "/redacted", "/redacted-2" and so on; file names stay. Files
 * in libraries keep their path below the library's folder, because it is the same for all users.
 * Logs, host names, jobs, GPU identifiers, processes and threads are numbered; arguments of
 * programs and the identities of processes and boots are removed. Names in code, NVTX texts and the
 * texts of --filter and similar options stay.
 */
#ifndef XT_MERGE_REDACTION_H
#define XT_MERGE_REDACTION_H

#include "merge/base/names.h"
#include "merge/read/inputs.h"
#include "merge/read/model.h"
#include "merge/symbolize/addresses.h"

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

/* Returns the path to show: path itself if redaction is NULL. Valid until the next call. */
const char *redact_path(struct redaction *redaction, const char *path);

/* Redacts paths in names of functions, after they were resolved. */
void redact_names(struct redaction *redaction, struct model *model, struct addresses *addresses);

/*
 * Redacts the paths and descriptions of a log, after its code was resolved and its frames were
 * built.
 */
void redact_model(struct redaction *redaction, struct model *model, struct addresses *addresses);

#endif
