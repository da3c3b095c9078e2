/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The git side of xtrace bench --bisect. Commits are checked out in two git worktrees below a
 * temporary directory. Each worktree has an index, a HEAD and a bisection of its own, so those of
 * the user stay as they are.
 */
#ifndef XTRACE_BISECT_GIT_H
#define XTRACE_BISECT_GIT_H

#include <stdbool.h>
#include <stddef.h>

#define GIT_HASH_BYTES 65 /* SHA-256 in hexadecimal, terminated */

enum git_tree { TREE_GOOD, TREE_CANDIDATE, TREES };

/* A commit, for people. */
struct git_commit {
	char hash[GIT_HASH_BYTES];
	char *subject, *author_date; /* owned */
};

struct bisect_git {
	char *temporary;	  /* directory of both worktrees; NULL: none */
	char *trees[TREES];	  /* NULL: not added */
	char *directories[TREES]; /* in which commands run: the user's folder within the tree */
	struct git_commit good, bad;
	char *prefix; /* of the user's folder in the repository, or "" */
};

/*
 * Checks the repository of the working directory and the range "GOOD..BAD". Returns 0, or -EINVAL
 * after an error message; call bisect_git_close() in any case.
 */
int bisect_git_open(struct bisect_git *git, const char *range);

/* Adds both worktrees, at GOOD and BAD. Returns 0, or -errno after an error message. */
int bisect_git_add_trees(struct bisect_git *git);

/* Removes what bisect_git_add_trees() made. */
void bisect_git_close(struct bisect_git *git);

/* Checks out a commit in a worktree. Returns 0, or -errno after an error message. */
int bisect_git_checkout(const struct bisect_git *git, enum git_tree tree, const char *hash);

/* Starts git bisect in the candidate's worktree. Returns 0, or -errno after an error message. */
int bisect_git_start(const struct bisect_git *git);

/* word: "good", "bad" or "skip". Returns 0, or -errno after an error message. */
int bisect_git_mark(const struct bisect_git *git, const char *word, const char *hash);

/* The commit that git bisect wants to test. Returns 0, or -errno after an error message. */
int bisect_git_next(const struct bisect_git *git, char hash_out[GIT_HASH_BYTES]);

/*
 * The commits that can be the first bad one, newest first; the first is known to be bad. The caller
 * frees *hashes_out. Returns 0, or -errno after an error message.
 */
int bisect_git_candidates(const struct bisect_git *git, char (**hashes_out)[GIT_HASH_BYTES],
			  size_t *count_out);

/* Returns 0, or -errno after an error message. The caller calls git_commit_free(). */
int git_commit_read(const struct bisect_git *git, const char *revision, struct git_commit *commit);
void git_commit_free(struct git_commit *commit);

#endif
