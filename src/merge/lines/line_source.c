/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the text of lines of own code and of their neighbours. A log names any file, so only files
 * with the name of a source are read. A file that is newer than the recording may have other lines.
 */
#include "merge/lines/line_source.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "log/base/compare.h"
#include "merge/read/inputs.h"
#include "merge/sums/run.h"

#define NEIGHBOURS 3
#define LINES_MAX  200
#define BYTES_MAX  (UINT32_C(64) << 10) /* of all lines */
#define LINE_BYTES 160

static bool is_source(const char *path)
{
	static const char *const endings[] = {".py", ".pyx", ".c",   ".cc", ".cpp", ".cxx", ".cu",
					      ".h",  ".hpp", ".cuh", ".hh", ".rs",  ".go",  ".jl"};

	for (size_t e = 0; path[0] == '/' && e < sizeof(endings) / sizeof(endings[0]); e++)
		if (ends_with(path, endings[e]))
			return true;
	return false;
}

/* The earliest start of a log, in ns since 1970. */
static uint64_t start_of(const struct run *run)
{
	uint64_t start_ns = UINT64_MAX;

	for (size_t l = 0; l < run->inputs->count; l++)
		start_ns = smaller(start_ns, run->inputs->logs[l].header.start_realtime_ns);
	return start_ns;
}

static void add_text(struct cell_list *texts, const char *line, size_t length)
{
	char plain[LINE_BYTES], clean[4 * LINE_BYTES];

	length = smaller(length, (size_t)LINE_BYTES - 1);
	for (size_t i = 0; i < length; i++)
		plain[i] = line[i] == '\t' ? ' ' : line[i];
	clean[text_clean(clean, plain, length, '\0')] = '\0';
	list_add(texts, clean);
}

static void read_lines(FILE *file, uint32_t line, struct line_source *source)
{
	char *text = NULL;
	size_t capacity = 0;
	ssize_t length;

	source->from = line > NEIGHBOURS ? line - NEIGHBOURS : 1;
	for (uint32_t n = 1; n <= line + NEIGHBOURS; n++) {
		length = getline(&text, &capacity, file);
		if (length < 0)
			break;
		while (length && strchr("\r\n", text[length - 1]))
			length--;
		if (n >= source->from)
			add_text(&source->texts, text, (size_t)length);
	}
	free(text);
}

static void read_source(const char *path, uint32_t line, uint64_t start_ns,
			struct line_source *source)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct stat status;
	FILE *file;

	if (fd < 0)
		return;
	if (fstat(fd, &status) || !S_ISREG(status.st_mode) || !(file = fdopen(fd, "r"))) {
		close(fd);
		return;
	}
	source->is_changed =
		(uint64_t)status.st_mtim.tv_sec * 1000000000u + (uint64_t)status.st_mtim.tv_nsec >
		start_ns;
	if (!source->is_changed)
		read_lines(file, line, source);
	fclose(file);
}

void line_sources_read(struct lines *lines, const struct run *run)
{
	uint64_t start_ns = start_of(run);
	size_t bytes = 0, count = 0;

	if (run->settings->is_redacted || run->settings->frames.has_no_source)
		return;
	for (size_t i = 0; i < lines->order_count && count < LINES_MAX && bytes < BYTES_MAX; i++) {
		struct line_part *row = &lines->parts[lines->order[i]];
		const struct line_key *key;
		const char *path;

		if (row->kind != PART_OWN || row->place == PATH_ROOT)
			continue;
		key = lines_key(lines, lines->places.nodes[row->place].name);
		path = names_text(&lines->texts, key->file, NULL);
		if (!is_source(path))
			continue;
		read_source(path, key->line, start_ns, &row->source);
		bytes += row->source.texts.length;
		count++;
	}
}
