/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Output and input of git are memory files, so a full pipe cannot block.
 */
#include "diff/history/git.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/memory.h"
#include "cli/command.h"
#include "diff/base/text.h"

#define ARGUMENTS_MAX 64

/* Runs git. The caller frees *text_out, which is terminated. Returns 0, -ENOENT or -errno. */
static int run_git(const char *const *arguments, int input, char **text_out, size_t *bytes_out)
{
	int output = memfd_create("xtrace git", MFD_CLOEXEC), error;
	pid_t pid;

	*text_out = NULL;
	*bytes_out = 0;
	if (output < 0)
		return -errno;
	pid = subprocess_start_program(arguments, input, output);
	error = pid < 0 ? pid : subprocess_wait(pid) ? -ENOENT : 0;
	if (!error) {
		*text_out = file_read(output, bytes_out);
		error = *text_out ? 0 : -errno;
	}
	close(output);
	return error;
}

static void add_version(struct git_versions *versions, const char *commit, const char *object)
{
	uint64_t rank = versions->count + 1;

	xt_append(versions->list, versions->count, versions->capacity,
		  (struct git_version){xt_strdup(commit), object ? xt_strdup(object) : NULL, rank});
}

void git_versions_free(struct git_versions *versions)
{
	for (size_t v = 0; v < versions->count; v++) {
		free(versions->list[v].commit);
		free(versions->list[v].object);
	}
	free(versions->list);
}

/* Reads one line of git log: a commit, or ":MODE MODE OLD NEW STATUS\tPATH" of a changed file. */
static void read_line(char *line, const char **commit, struct git_versions *versions)
{
	char *object = line;

	if (*line && *line != ':') {
		*commit = line;
		return;
	}
	if (!*line || !*commit)
		return;
	for (int field = 0; field < 3 && object; field++) {
		object = strchr(object, ' ');
		object += object != NULL;
	}
	if (!object)
		return;
	object[strcspn(object, " ")] = '\0';
	if (!strspn(object, "0") || object[strspn(object, "0")])
		add_version(versions, *commit, object);
}

int git_versions(struct git_versions *versions, const char *branch, const char *path)
{
	const char *const arguments[] = {"git",		 "--literal-pathspecs",
					 "log",		 "--first-parent",
					 "-m",		 "--reverse",
					 "--raw",	 "--no-abbrev",
					 "--no-renames", "--format=%H",
					 branch,	 "--",
					 path,		 NULL};
	const char *commit = NULL;
	char *text, *rest, *line;
	size_t bytes;
	int error;

	/* git takes a name that begins with a dash for an option. */
	if (*branch == '-')
		return -ENOENT;
	error = run_git(arguments, -1, &text, &bytes);
	rest = text;
	while (!error && rest && (line = strsep(&rest, "\n")))
		read_line(line, &commit, versions);
	free(text);
	return error ? error : versions->count ? 0 : -ENOENT;
}

/* "HASH blob SIZE\nCONTENT\n" for each object, or "HASH missing\n". */
static int split_objects(char *text, size_t bytes, size_t count, char **contents, size_t *sizes)
{
	char *end = text + bytes;

	for (size_t i = 0; i < count; i++) {
		char *newline = memchr(text, '\n', (size_t)(end - text));
		unsigned long long size;

		if (!newline)
			return -ENOENT;
		*newline = '\0';
		text += strcspn(text, " ");
		if (sscanf(text, " blob %llu", &size) == 1 &&
		    size < (unsigned long long)(end - newline)) {
			contents[i] = xt_malloc((size_t)size + 1);
			memcpy(contents[i], newline + 1, (size_t)size);
			sizes[i] = (size_t)size;
			newline += size + 1;
		}
		text = newline + 1;
	}
	return 0;
}

int git_read(const char *const *objects, size_t count, char **contents_out, size_t *bytes_out)
{
	static const char *const arguments[] = {"git", "cat-file", "--batch", NULL};
	int input = memfd_create("xtrace git", MFD_CLOEXEC), error = 0;
	size_t bytes;
	char *text = NULL;

	memset(contents_out, 0, count * sizeof(*contents_out));
	if (input < 0)
		return -errno;
	for (size_t i = 0; i < count && !error; i++)
		error = dprintf(input, "%s\n", objects[i]) < 0 ? -errno : 0;
	if (!error && lseek(input, 0, SEEK_SET) < 0)
		error = -errno;
	if (!error)
		error = run_git(arguments, input, &text, &bytes);
	if (!error)
		error = split_objects(text, bytes, count, contents_out, bytes_out);
	free(text);
	close(input);
	return error;
}

int git_commits(struct git_versions *commits, const char *const *branches, size_t branch_count)
{
	const char *arguments[ARGUMENTS_MAX] = {"git", "rev-list", "--topo-order", "--reverse",
						"HEAD"};
	char *text, *rest, *line;
	size_t bytes, count = 5;
	int error;

	for (size_t b = 0; b < branch_count && count < ARGUMENTS_MAX - 2; b++)
		arguments[count++] = branches[b];
	arguments[count] = "--";
	error = run_git(arguments, -1, &text, &bytes);
	rest = text;
	while (!error && rest && (line = strsep(&rest, "\n")))
		if (*line)
			add_version(commits, line, NULL);
	free(text);
	return error;
}
