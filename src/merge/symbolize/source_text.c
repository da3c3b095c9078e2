/* SPDX-License-Identifier: Apache-2.0 */
#include "merge/symbolize/source_text.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "log/base/regular_file.h"

#define FILE_BYTES_MAX (16u << 20)

/* NULL if it cannot. */
static char *read_text(const char *path, size_t *length_out)
{
	struct stat info;
	int fd = xt_regular_open(path, &info);
	char *text = NULL;
	ssize_t length = -1;

	if (fd < 0)
		return NULL;
	if (info.st_size < FILE_BYTES_MAX)
		text = xt_malloc((size_t)info.st_size + 1);
	if (text)
		length = read(fd, text, (size_t)info.st_size);
	close(fd);
	if (length < 0) {
		free(text);
		return NULL;
	}
	*length_out = (size_t)length;
	return text;
}

static void find_lines(struct source_file *file)
{
	size_t capacity = 0, at = 0;

	while (at < file->length) {
		const char *end = memchr(file->text + at, '\n', file->length - at);

		xt_append(file->starts, file->count, capacity, at);
		at = end ? (size_t)(end - file->text) + 1 : file->length;
	}
}

static void free_file(struct source_file *file)
{
	free(file->path);
	free(file->text);
	free(file->starts);
}

/* NULL if there are too many files. */
static const struct source_file *find_file(struct source_texts *texts, const char *path)
{
	struct source_file file = {0};

	for (size_t f = 0; f < texts->file_count; f++)
		if (!strcmp(texts->files[f].path, path))
			return &texts->files[f];
	if (texts->file_count == SOURCE_FILES_MAX)
		return NULL;
	file.path = xt_strdup(path);
	file.text = read_text(path, &file.length);
	find_lines(&file);
	texts->files[texts->file_count] = file;
	return &texts->files[texts->file_count++];
}

static void trim(const char **text, size_t *length)
{
	while (*length && strchr(" \t\r\n", **text))
		(*text)++, (*length)--;
	while (*length && strchr(" \t\r\n", (*text)[*length - 1]))
		(*length)--;
}

bool source_text_differs(struct source_texts *texts, const char *path, uint32_t line,
			 const char *text, size_t length)
{
	const struct source_file *file = find_file(texts, path);
	const char *own;
	size_t start, own_length;

	if (!file || !file->text)
		return false;
	if (!line || line > file->count)
		return true;
	start = file->starts[line - 1];
	own = file->text + start;
	own_length = (line < file->count ? file->starts[line] : file->length) - start;
	trim(&own, &own_length);
	trim(&text, &length);
	return own_length != length || memcmp(own, text, length) != 0;
}

void source_texts_free(struct source_texts *texts)
{
	for (size_t f = 0; f < texts->file_count; f++)
		free_file(&texts->files[f]);
	*texts = (struct source_texts){0};
}
