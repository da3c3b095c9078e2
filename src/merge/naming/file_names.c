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

/* The cleaned path's number in files->paths, or NAME_FAILED. */
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

/* Extends a suffix of the path by one component. */
static const char *extend_suffix(const char *path, const char *suffix)
{
	if (suffix > path)
		suffix--;
	while (suffix > path && suffix[-1] != '/')
		suffix--;
	return suffix;
}

int file_names_add(struct file_names *files, const char *path)
{
	const char *text, *suffix;
	uint32_t name;
	size_t length;

	if (!files->paths.slots &&
	    (names_init(&files->paths) < 0 || names_init(&files->suffixes) < 0))
		return -ENOMEM;
	name = intern_path(files, path);
	if (name == NAME_FAILED ||
	    grow(&files->files, &files->file_capacity, (size_t)name + 1, sizeof(*files->files)) < 0)
		return -ENOMEM;
	if (files->files[name].is_added)
		return 0;
	text = names_text(&files->paths, name, &length);
	suffix = text + length;
	do {
		uint32_t s;

		suffix = extend_suffix(text, suffix);
		s = names_intern(&files->suffixes, suffix, strlen(suffix));
		if (s == NAME_FAILED || grow(&files->path_counts, &files->suffix_capacity,
					     (size_t)s + 1, sizeof(*files->path_counts)) < 0)
			return -ENOMEM;
		files->path_counts[s]++;
	} while (suffix > text);
	files->files[name].is_added = true;
	return 0;
}

/* The shortest suffix that only this path has, or all of it. NAME_FAILED if memory ran out. */
static uint32_t unique_suffix(struct file_names *files, uint32_t path)
{
	size_t length;
	const char *text = names_text(&files->paths, path, &length), *suffix = text + length;
	uint32_t name;

	do {
		suffix = extend_suffix(text, suffix);
		name = names_intern(&files->suffixes, suffix, strlen(suffix));
	} while (name != NAME_FAILED && files->path_counts[name] > 1 && suffix > text);
	return name;
}

int file_names_assign(struct file_names *files)
{
	for (uint32_t path = 0; path < files->paths.count && path < files->file_capacity; path++) {
		struct file_name *file = &files->files[path];
		uint32_t suffix;

		if (!file->is_added || file->suffix)
			continue;
		suffix = unique_suffix(files, path);
		if (suffix == NAME_FAILED)
			return -ENOMEM;
		file->suffix = suffix + 1;
	}
	return 0;
}

const char *file_names_shown(struct file_names *files, const char *path)
{
	uint32_t name = files->paths.slots ? intern_path(files, path) : NAME_FAILED;

	if (name == NAME_FAILED || name >= files->file_capacity || !files->files[name].suffix)
		return path;
	return names_text(&files->suffixes, files->files[name].suffix - 1, NULL);
}

void file_names_free(struct file_names *files)
{
	names_free(&files->paths);
	names_free(&files->suffixes);
	free(files->files);
	free(files->path_counts);
	*files = (struct file_names){0};
}
