/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the git repository of the current directory by running git.
 */
#ifndef XT_DIFF_HISTORY_GIT_H
#define XT_DIFF_HISTORY_GIT_H

#include <stddef.h>

/* A committed version of a file. */
struct git_version {
	char *commit; /* hash, in full */
	char *object; /* hash of the content */
};

/*
 * Lists the versions of a file on a branch, oldest first, along the first parents. Returns 0,
 * -ENOENT if git, the repository, the branch or the file is missing. Free the list with
 * git_versions_free() in any case.
 */
int git_versions(const char *branch, const char *path, struct git_version **list_out,
		 size_t *count_out);
void git_versions_free(struct git_version *list, size_t count);

/*
 * Reads objects. contents_out[i] is NULL if an object is missing; the caller frees the texts. They
 * are not terminated. Returns 0 or -errno.
 */
int git_read(const char *const *objects, size_t count, char **contents_out, size_t *bytes_out);

/* Hashes of the commits of HEAD and the branches, oldest first. Returns as git_versions(). */
int git_commits(const char *const *branches, size_t branch_count, char ***list_out,
		size_t *count_out);
void git_commits_free(char **list, size_t count);

#endif
