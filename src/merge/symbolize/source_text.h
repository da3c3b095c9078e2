/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lines of source files, to find out whether a file still is the one that was compiled.
 */
#ifndef XT_MERGE_SOURCE_TEXT_H
#define XT_MERGE_SOURCE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SOURCE_FILES_MAX 256

/* Zeros are a valid, empty value. */
struct source_texts {
	struct source_file {
		char *path;
		char *text; /* NULL: it cannot be read */
		size_t length;
		size_t *starts; /* of lines, from 0 */
		size_t count;
	} files[SOURCE_FILES_MAX];
	size_t file_count;
};

/*
 * Whether the line, without the space around it, is not that text. False if the file cannot be
 * read: then nothing is known.
 */
bool source_text_differs(struct source_texts *texts, const char *path, uint32_t line,
			 const char *text, size_t length);

void source_texts_free(struct source_texts *texts);

#endif
