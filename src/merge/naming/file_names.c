/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Source files of one name, and whose they are.
 */
#include "merge/naming/file_names.h"

#include <string.h>

#include "merge/base/grow.h"

/* Parts of the paths of files that are not the user's: of Python, of C++ and the system, of CUDA and what
 * comes with it wherever it is unpacked, and what compilers write themselves. */
static const char *const library_paths[] = {
	"/site-packages/", "/dist-packages/",	 "/lib/python3",
	"/include/c++/",   "/usr/include/",	 "/usr/local/include/",
	"/usr/lib/",	   "-linux/include/",	 "/usr/local/cuda",
	"/opt/cuda/",	   "/cuda/include/",	 "/include/cuda_runtime",
	"/include/crt/",   "/include/cuda/std/", "/include/thrust/",
	"/include/cub/",   "/include/cccl/",	 "/include/cooperative_groups",
	"/thrust/thrust/", "/cub/cub/",		 "/libcudacxx/",
	"/torchinductor_", ".cudafe1.",
};

bool file_is_library(const char *path)
{
	if (path[0] == '<')
		return true;
	for (size_t i = 0; i < sizeof(library_paths) / sizeof(library_paths[0]); i++)
		if (strstr(path, library_paths[i]))
			return true;
	return false;
}

/* Drops empty parts, "." and "x/.." from a path, in place: compilers write one file in many ways. */
static void clean_path(char *path)
{
	bool is_absolute = path[0] == '/';
	char *out = path + is_absolute, *floor = out;

	for (char *part = path; *part;) {
		size_t length = strcspn(part, "/");
		char *next = part + length + (part[length] == '/');

		if (length == 2 && !memcmp(part, "..", 2) && out > floor) {
			for (out--; out > floor && out[-1] != '/';)
				out--;
		} else if (length && !(length == 1 && *part == '.')) {
			bool is_up = length == 2 && !memcmp(part, "..", 2);

			memmove(out, part, length);
			out += length;
			if (part[length])
				*out++ = '/';
			if (is_up) /* nothing to go back from */
				floor = out;
		}
		part = next;
	}
	*out = '\0';
}

/* The name of the cleaned path in files->paths, or NAME_FAILED. */
static uint32_t intern_path(struct file_names *files, const char *path)
{
	char *clean = strdup(path);
	uint32_t name = NAME_FAILED;

	if (clean) {
		clean_path(clean);
		name = names_intern(&files->paths, clean, strlen(clean));
	}
	free(clean);
	return name;
}

int file_names_add(struct file_names *files, const char *path)
{
	if (!files->paths.slots &&
	    (names_init(&files->paths) < 0 || names_init(&files->suffixes) < 0))
		return -ENOMEM;
	return intern_path(files, path) == NAME_FAILED ? -ENOMEM : 0;
}

/* How many bytes of both are the same at the end, in whole parts of the paths. */
static size_t common_suffix(const char *a, size_t a_length, const char *b, size_t b_length)
{
	size_t same = 0, whole = 0;

	while (same < a_length && same < b_length &&
	       a[a_length - 1 - same] == b[b_length - 1 - same])
		if (a[a_length - 1 - same++] == '/')
			whole = same;
	if ((same == a_length && (same == b_length || b[b_length - 1 - same] == '/')) ||
	    (same == b_length && a[a_length - 1 - same] == '/'))
		whole = same;
	return whole;
}

/* By their bytes from the end on, so that those that end alike stand together. */
static int compare_paths(const void *a, const void *b, void *context)
{
	size_t x_length, y_length;
	const char *x = names_text(context, *(const uint32_t *)a, &x_length);
	const char *y = names_text(context, *(const uint32_t *)b, &y_length);

	while (x_length && y_length) {
		unsigned char p = (unsigned char)x[--x_length], q = (unsigned char)y[--y_length];

		/* (The folder ends the part: it comes before all that goes on.) */
		if (p != q)
			return p == '/' ? -1 : q == '/' ? 1 : p < q ? -1 : 1;
	}
	return (x_length > y_length) - (x_length < y_length);
}

/* Settles a path of which shared bytes at the end are no more than others have, too. */
static int assign(struct file_names *files, uint32_t path, size_t shared)
{
	size_t length;
	const char *text = names_text(&files->paths, path, &length);
	const char *tail = text + length - (shared < length ? shared : length);

	for (;;) {
		uint32_t name;

		/* One part more. */
		if (tail > text)
			tail--;
		while (tail > text && tail[-1] != '/')
			tail--;
		name = names_intern(&files->suffixes, tail, strlen(tail));
		if (name == NAME_FAILED || grow(&files->path_of, &files->path_capacity, name + 1,
						sizeof(*files->path_of)) < 0)
			return -ENOMEM;
		if (files->path_of[name] && tail > text)
			continue; /* it is shown for a path of another log */
		files->path_of[name] = path + 1;
		files->suffix_of[path] = name + 1;
		return 0;
	}
}

int file_names_assign(struct file_names *files)
{
	uint32_t count = files->paths.count, *order = calloc((size_t)count + 1, sizeof(*order));
	size_t before = 0, length = 0, next_length;
	int error = 0;

	if (!order || grow(&files->suffix_of, &files->suffix_capacity, (size_t)count + 1,
			   sizeof(*files->suffix_of)) < 0) {
		free(order);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < count; i++)
		order[i] = i;
	qsort_r(order, count, sizeof(*order), compare_paths, &files->paths);
	for (uint32_t i = 0; i < count && !error; i++) {
		const char *text = names_text(&files->paths, order[i], &length), *next;
		size_t after = 0;

		if (i + 1 < count) {
			next = names_text(&files->paths, order[i + 1], &next_length);
			after = common_suffix(text, length, next, next_length);
		}
		if (!files->suffix_of[order[i]])
			error = assign(files, order[i], before > after ? before : after);
		before = after;
	}
	free(order);
	return error;
}

const char *file_names_shown(struct file_names *files, const char *path)
{
	uint32_t name = files->paths.slots ? intern_path(files, path) : NAME_FAILED;

	if (name == NAME_FAILED || name >= files->suffix_capacity || !files->suffix_of[name])
		return path;
	return names_text(&files->suffixes, files->suffix_of[name] - 1, NULL);
}

void file_names_free(struct file_names *files)
{
	names_free(&files->paths);
	names_free(&files->suffixes);
	free(files->suffix_of);
	free(files->path_of);
	*files = (struct file_names){0};
}
