/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs git and reads what it prints.
 */
#include "bisect_git.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "child.h"
#include "cli/message.h"

#define ARGUMENTS_MAX 16

extern char **environ;

/* The text in a file, without newlines at its end. The caller frees it. NULL on errors. */
static char *read_all(int fd)
{
	struct stat about;
	char *text = fstat(fd, &about) ? NULL : malloc((size_t)about.st_size + 1);
	ssize_t length = text ? pread(fd, text, (size_t)about.st_size, 0) : -1;

	if (length < 0) {
		free(text);
		return NULL;
	}
	while (length && text[length - 1] == '\n')
		length--;
	text[length] = '\0';
	return text;
}

/* Runs git with both outputs in these files. Returns its exit status, or -errno. */
static int spawn(const char *const *arguments, int output, int errors)
{
	posix_spawn_file_actions_t actions;
	int status = 0, error;
	pid_t pid;

	fflush(NULL);
	error = posix_spawn_file_actions_init(&actions);
	if (error)
		return -error;
	error = posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
	if (!error)
		error = posix_spawn_file_actions_adddup2(&actions, errors, STDERR_FILENO);
	if (!error)
		error = posix_spawnp(&pid, "git", &actions, NULL, (char *const *)arguments,
				     environ);
	posix_spawn_file_actions_destroy(&actions);
	if (error)
		return -error;
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	return WIFEXITED(status) ? WEXITSTATUS(status) : STATUS_SIGNAL + WTERMSIG(status);
}

/* One call of git. Both texts are owned. */
struct git_result {
	int status; /* exit status, or -errno */
	char *output, *errors;
};

static void git_result_free(struct git_result *result)
{
	free(result->output);
	free(result->errors);
}

/* directory: NULL for the working directory. The list of arguments ends with NULL. */
static struct git_result run_git(const char *directory, const char *const *list)
{
	struct git_result result = {.status = -ENOMEM};
	const char *arguments[ARGUMENTS_MAX + 4] = {"git"};
	int output = memfd_create("output", MFD_CLOEXEC);
	int errors = memfd_create("errors", MFD_CLOEXEC);
	size_t count = 1;

	if (directory) {
		arguments[count++] = "-C";
		arguments[count++] = directory;
	}
	for (size_t i = 0; list[i] && i < ARGUMENTS_MAX; i++)
		arguments[count++] = list[i];
	if (output >= 0 && errors >= 0) {
		result.status = spawn(arguments, output, errors);
		result.output = read_all(output);
		result.errors = read_all(errors);
	}
	if (output >= 0)
		close(output);
	if (errors >= 0)
		close(errors);
	if (!result.output || !result.errors)
		result.status = result.status < 0 ? result.status : -ENOMEM;
	return result;
}

/*
 * Runs git, which must succeed. Returns 0, -EIO after an error message, or -EINTR if a signal ended
 * git. *output_out is owned by
 * the caller; it may be NULL.
 */
static int demand(const char *directory, const char *const *list, char **output_out)
{
	struct git_result result = run_git(directory, list);
	int error = result.status ? -EIO : 0;

	if (result.status < 0)
		print_error("cannot run git: %s", strerror(-result.status));
	else if (result.status > STATUS_SIGNAL)
		error = -EINTR;
	else if (result.status)
		print_error("cannot bisect: 'git %s' failed: %s", list[0],
			    *result.errors   ? result.errors
			    : *result.output ? result.output
					     : "it printed nothing");
	if (!error && output_out) {
		*output_out = result.output;
		result.output = NULL;
	}
	git_result_free(&result);
	return error;
}

#define GIT(directory, output, ...)                                                                \
	demand(directory, (const char *const[]){__VA_ARGS__, NULL}, output)

void git_commit_free(struct git_commit *commit)
{
	free(commit->subject);
	free(commit->author_date);
	*commit = (struct git_commit){0};
}

int git_commit_read(const struct bisect_git *git, const char *revision, struct git_commit *commit)
{
	char *text = NULL, *rest, *hash, *date;
	int error = GIT(git->trees[TREE_CANDIDATE], &text, "show", "-s", "--no-show-signature",
			"--format=%H%n%aI%n%s", revision, "--");

	if (error)
		return error;
	rest = text;
	hash = strsep(&rest, "\n");
	date = strsep(&rest, "\n");
	snprintf(commit->hash, sizeof(commit->hash), "%s", hash);
	commit->author_date = strdup(date ? date : "");
	commit->subject = strdup(rest ? rest : "");
	free(text);
	return commit->author_date && commit->subject ? 0 : -ENOMEM;
}

/* Reads the commit that the user named. */
static int resolve(const struct bisect_git *git, const char *name, struct git_commit *commit)
{
	struct git_result result;
	char *revision = NULL;
	int error;

	if (asprintf(&revision, "%s^{commit}", name) < 0)
		return -ENOMEM;
	result = run_git(NULL, (const char *const[]){"rev-parse", "--verify", "--quiet",
						     "--end-of-options", revision, NULL});
	/* Old versions also print the option. */
	if (result.status) {
		print_error("cannot bisect: '%s' is not a commit of this repository", name);
		error = -EINVAL;
	} else {
		const char *hash = strrchr(result.output, '\n');

		error = git_commit_read(git, hash ? hash + 1 : result.output, commit);
	}
	free(revision);
	git_result_free(&result);
	return error;
}

static int parse_range(struct bisect_git *git, const char *range)
{
	const char *dots = strstr(range, "..");
	char *good = dots ? strndup(range, (size_t)(dots - range)) : NULL;
	int error;

	if (!dots || dots == range || !dots[2] || dots[2] == '.') {
		print_error("cannot use '%s' for --bisect: it must be GOOD..BAD, two commits",
			    range);
		error = -EINVAL;
	} else {
		error = good ? resolve(git, good, &git->good) : -ENOMEM;
		if (!error)
			error = resolve(git, dots + 2, &git->bad);
	}
	free(good);
	return error;
}

static int check_range(const struct bisect_git *git, const char *range)
{
	struct git_result result;
	int error = -EINVAL;

	if (!strcmp(git->good.hash, git->bad.hash)) {
		print_error("cannot bisect '%s': both ends are commit %.12s", range,
			    git->good.hash);
		return error;
	}
	result = run_git(NULL, (const char *const[]){"merge-base", "--is-ancestor", git->good.hash,
						     git->bad.hash, NULL});
	if (!result.status)
		error = 0;
	else
		print_error("cannot bisect '%s': GOOD is not an ancestor of BAD; if the history is "
			    "shallow, run git fetch --unshallow",
			    range);
	git_result_free(&result);
	return error;
}

static int check_clean(void)
{
	char *changes = NULL;
	int error = GIT(NULL, &changes, "--no-optional-locks", "status", "--porcelain",
			"--untracked-files=no");

	if (!error && *changes) {
		print_error("cannot bisect: the working tree has changes that are in no commit, "
			    "so they would not be measured; commit or stash them");
		error = -EINVAL;
	}
	free(changes);
	return error;
}

int bisect_git_open(struct bisect_git *git, const char *range)
{
	struct git_result result;
	int error = 0;

	*git = (struct bisect_git){0};
	if (child_find("git")) {
		print_error("cannot bisect: git: command not found");
		return -ENOENT;
	}
	/* Hooks set these. They would redirect commands in the worktrees. */
	unsetenv("GIT_DIR");
	unsetenv("GIT_WORK_TREE");
	unsetenv("GIT_INDEX_FILE");
	unsetenv("GIT_PREFIX");
	result = run_git(NULL, (const char *const[]){"rev-parse", "--show-prefix", NULL});
	if (result.status) {
		print_error("cannot bisect: the working directory is not in a git repository%s%s",
			    result.errors && *result.errors ? ": " : "",
			    result.errors ? result.errors : "");
		error = -EINVAL;
	} else {
		git->prefix = result.output;
		result.output = NULL;
	}
	git_result_free(&result);
	if (!error)
		error = parse_range(git, range);
	if (!error)
		error = check_range(git, range);
	return error ? error : check_clean();
}

static int add_tree(struct bisect_git *git, enum git_tree tree, const char *name, const char *hash)
{
	char *path;
	int error;

	if (asprintf(&path, "%s/%s", git->temporary, name) < 0)
		return -ENOMEM;
	error = GIT(NULL, NULL, "worktree", "add", "--quiet", "--detach", path, hash);
	/* An interrupted command can leave a part, so remove it in any case. */
	git->trees[tree] = path;
	if (!error && asprintf(&git->directories[tree], "%s/%s", path, git->prefix) < 0) {
		git->directories[tree] = NULL;
		error = -ENOMEM;
	}
	return error;
}

int bisect_git_add_trees(struct bisect_git *git)
{
	const char *folder = getenv("TMPDIR");
	int error;

	if (asprintf(&git->temporary, "%s/xtrace-bisect-XXXXXX",
		     folder && *folder ? folder : "/tmp") < 0) {
		git->temporary = NULL;
		return -ENOMEM;
	}
	if (!mkdtemp(git->temporary)) {
		error = -errno;
		print_error("cannot create '%s': %m", git->temporary);
		free(git->temporary);
		git->temporary = NULL;
		return error;
	}
	error = add_tree(git, TREE_GOOD, "xtrace-good", git->good.hash);
	return error ? error : add_tree(git, TREE_CANDIDATE, "xtrace-candidate", git->bad.hash);
}

static int remove_one(const char *path, const struct stat *about, int type, struct FTW *place)
{
	(void)about;
	(void)type;
	(void)place;
	return remove(path) ? -1 : 0;
}

/* Works for a folder that is gone, too. Other worktrees of the user are not touched. */
static void remove_worktrees(const struct bisect_git *git)
{
	for (int t = 0; t < TREES; t++) {
		struct git_result result;

		if (!git->trees[t])
			continue;
		result = run_git(NULL, (const char *const[]){"worktree", "remove", "--force",
							     git->trees[t], NULL});
		git_result_free(&result);
	}
}

void bisect_git_close(struct bisect_git *git)
{
	remove_worktrees(git);
	if (git->temporary && rmdir(git->temporary)) {
		nftw(git->temporary, remove_one, 16, FTW_DEPTH | FTW_PHYS);
		remove_worktrees(git);
		if (!access(git->temporary, F_OK))
			print_error("cannot remove '%s': remove it, then run git worktree prune",
				    git->temporary);
	}
	for (int t = 0; t < TREES; t++) {
		free(git->trees[t]);
		free(git->directories[t]);
	}
	free(git->temporary);
	free(git->prefix);
	git_commit_free(&git->good);
	git_commit_free(&git->bad);
	*git = (struct bisect_git){0};
}

int bisect_git_checkout(const struct bisect_git *git, enum git_tree tree, const char *hash)
{
	/* By force, because builds and programs may change files of the commit. */
	return GIT(git->trees[tree], NULL, "checkout", "--quiet", "--force", "--detach", hash);
}

int bisect_git_start(const struct bisect_git *git)
{
	return GIT(git->trees[TREE_CANDIDATE], NULL, "bisect", "start", "--no-checkout",
		   git->bad.hash, git->good.hash);
}

int bisect_git_mark(const struct bisect_git *git, const char *word, const char *hash)
{
	struct git_result result = run_git(git->trees[TREE_CANDIDATE],
					   (const char *const[]){"bisect", word, hash, NULL});
	/* Status 2: only skipped commits are left. The candidates show that, too. */
	int error = result.status && result.status != 2 ? -EIO : 0;

	if (error)
		print_error("cannot bisect: 'git bisect %s' failed: %s", word,
			    result.errors ? result.errors : "");
	git_result_free(&result);
	return error;
}

int bisect_git_next(const struct bisect_git *git, char hash_out[GIT_HASH_BYTES])
{
	char *hash = NULL;
	int error = GIT(git->trees[TREE_CANDIDATE], &hash, "rev-parse", "--verify", "BISECT_HEAD");

	if (!error)
		snprintf(hash_out, GIT_HASH_BYTES, "%s", hash);
	free(hash);
	return error;
}

int bisect_git_candidates(const struct bisect_git *git, char (**hashes_out)[GIT_HASH_BYTES],
			  size_t *count_out)
{
	char *list = NULL, *rest, *line;
	size_t lines = 1;
	int error = GIT(git->trees[TREE_CANDIDATE], &list, "log", "--no-show-signature",
			"--format=%H", "--topo-order", "--bisect");

	*hashes_out = NULL;
	*count_out = 0;
	if (error)
		return error;
	for (const char *at = list; *at; at++)
		lines += *at == '\n';
	*hashes_out = calloc(lines, sizeof(**hashes_out));
	rest = list;
	while (*hashes_out && (line = strsep(&rest, "\n")))
		if (*line)
			snprintf((*hashes_out)[(*count_out)++], GIT_HASH_BYTES, "%s", line);
	free(list);
	return *hashes_out ? 0 : -ENOMEM;
}
