/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the git repository of the current directory by running git.
 */
#ifndef XT_DIFF_HISTORY_GIT_H
#define XT_DIFF_HISTORY_GIT_H

#include <stddef.h>
#include <stdint.h>

/* Commits, and in each the version of a file. All zeros is empty. */
struct git_versions {
	struct git_version {
		char *commit;  /* hash, in full */
		char *object;  /* hash of the content; NULL: of no file */
		uint64_t rank; /* position, from 1 */
	} * list;
	size_t count, capacity;
};

/*
 * Lists the versions of a file on a branch, oldest first, along the first parents. Returns 0 or
 * -errno, -ENOENT if git, the repository, the branch or the file is missing. Free the list in any
 * case.
 */
int git_versions(struct git_versions *versions, const char *branch, const char *path);
void git_versions_free(struct git_versions *versions);

/* The commits of HEAD and the branches, oldest first. Returns as git_versions(). */
int git_commits(struct git_versions *commits, const char *const *branches, size_t branch_count);

/*
 * Reads objects. contents_out[i] is NULL if an object is missing; the caller frees the texts. They
 * are not terminated. Returns 0 or -errno.
 */
int git_read(const char *const *objects, size_t count, char **contents_out, size_t *bytes_out);

#endif
