/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The trace directory of a new recording. An older trace moves aside first (rotation.h).
 */
#ifndef XTRACE_RECORDING_DIR_H
#define XTRACE_RECORDING_DIR_H

#include <stdbool.h>

struct info;

struct recording_dir {
	char *place;	 /* from data_dir_resolve() */
	char *path;	 /* absolute */
	bool is_made;	 /* the directory was created */
	char *older;	 /* the older trace that moved aside; NULL: none */
	int older_claim; /* a lock on its info.json, until the new one exists; -1: none */
	int claim;	 /* a lock on the new info.json; -1: none */
};

/*
 * Creates the directory, readable by its owner only. An older trace moves aside until
 * rotation_settle() chooses which one stays (rotation.h). Fails if a recording still uses the
 * directory. Returns 0, or -errno after an error message. Call recording_dir_close() in both cases.
 */
int recording_dir_create(const char *path, struct recording_dir *dir);

/*
 * Writes the first info.json, which keeps other recordings out until recording_dir_close(). On an
 * error, prints a message and undoes recording_dir_create().
 */
int recording_dir_begin(struct recording_dir *dir, const struct info *info);
void recording_dir_close(struct recording_dir *dir);

#endif
