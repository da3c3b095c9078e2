/* SPDX-License-Identifier: Apache-2.0 */
#include "merge/symbolize/torch_trace.h"

#include <cjson/cJSON.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "log/base/compare.h"
#include "log/base/regular_file.h"
#include "merge/symbolize/generated_code.h"

#define LINE_BYTES_MAX (16u << 20) /* longer lines are skipped */
#define CALLS_MAX      100000	   /* of a generated file */
#define FILES_OPEN_MAX 16	   /* generated files whose source lines may still follow */
#define TRACES_MAX     64	   /* of a call */
#define RECORD_CODE    "inductor_output_code"
#define RECORD_TRACES  "inductor_provenance_tracking_kernel_stack_traces"

#define SOURCE_BEGIN "\n    " /* of the text of a source line, below its place */

struct call {
	uint32_t line;
	char *handle, *nodes;
};

/* A compilation, as PyTorch numbers it. -1: unknown. */
struct compile_id {
	int frame, frame_compile, attempt;
};

struct generated_file {
	char *path;
	struct compile_id id;
	bool is_wanted;
	struct call *calls;
	size_t count, capacity;
};

enum payload { PAYLOAD_OTHER, PAYLOAD_CODE, PAYLOAD_TRACES };

struct reading {
	const struct torch_trace_sink *sink;
	uint32_t pid;
	struct generated_file files[FILES_OPEN_MAX]; /* oldest first */
	size_t file_count;
	enum payload payload; /* of the lines that follow */
	struct generated_code code;
	struct compile_id traces_id; /* of the last record */
};

static void free_file(struct generated_file *file)
{
	for (size_t i = 0; i < file->count; i++) {
		free(file->calls[i].handle);
		free(file->calls[i].nodes);
	}
	free(file->calls);
	free(file->path);
	*file = (struct generated_file){0};
}

static int add_call(struct reading *r, const struct generated_file *file, const struct call *call,
		    const cJSON *traces)
{
	const char *texts[TRACES_MAX];
	struct torch_call found = {
		.file = file->path, .line = call->line, .nodes = call->nodes, .traces = texts};
	const cJSON *list = traces ? cJSON_GetObjectItemCaseSensitive(traces, call->handle) : NULL;
	const cJSON *trace;

	cJSON_ArrayForEach(trace, list)
	{
		if (cJSON_IsString(trace) && found.trace_count < TRACES_MAX)
			texts[found.trace_count++] = trace->valuestring;
	}
	return r->sink->add(r->sink->context, &found);
}

/* Hands over the calls of a file, and forgets it. */
static int finish_file(struct reading *r, size_t index, const cJSON *traces)
{
	struct generated_file *file = &r->files[index];
	int error = 0;

	for (size_t i = 0; i < file->count && file->is_wanted && !error; i++)
		error = add_call(r, file, &file->calls[i], traces);
	free_file(file);
	r->file_count--;
	memmove(file, file + 1, (r->file_count - index) * sizeof(*file));
	r->files[r->file_count] = (struct generated_file){0};
	return error;
}

static bool is_same_compilation(const struct compile_id *a, const struct compile_id *b)
{
	return a->frame == b->frame && a->frame_compile == b->frame_compile &&
	       a->attempt == b->attempt;
}

/*
 * The records do not name the file. They belong to it if they are of the same compilation, and have
 * all its calls.
 */
static bool belongs_to(const struct reading *r, const cJSON *traces,
		       const struct generated_file *file)
{
	size_t known = 0;

	if (!is_same_compilation(&r->traces_id, &file->id))
		return false;

	for (size_t i = 0; i < file->count; i++) {
		const char *handle = file->calls[i].handle;

		if (!handle[0])
			continue;
		if (!cJSON_GetObjectItemCaseSensitive(traces, handle))
			return false;
		known++;
	}
	return known > 0;
}

static int read_traces(struct reading *r, const char *text, size_t length)
{
	cJSON *traces = cJSON_ParseWithLength(text, length);
	int error = 0;

	if (cJSON_IsObject(traces))
		for (size_t i = r->file_count; i--;)
			if (belongs_to(r, traces, &r->files[i])) {
				error = finish_file(r, i, traces);
				break;
			}
	cJSON_Delete(traces);
	return error;
}

static int read_code(struct reading *r, const char *text, size_t length)
{
	struct generated_file *file = &r->files[r->file_count - 1];
	struct call call;

	if (!generated_code_next(&r->code, text, length) || file->count == CALLS_MAX)
		return 0;
	xt_grow(&file->calls, &file->capacity, file->count + 1, sizeof(*file->calls));
	call = (struct call){r->code.line, xt_strdup(r->code.handle), xt_strdup(r->code.nodes)};
	file->calls[file->count++] = call;
	return 0;
}

/* Files that are not wanted are noted, too: the next records may belong to them. */
static int begin_code(struct reading *r, const char *path, const struct compile_id *id)
{
	int error;

	if (r->file_count == FILES_OPEN_MAX) {
		error = finish_file(r, 0, NULL);
		if (error)
			return error;
	}
	r->files[r->file_count].path = xt_strdup(path);
	r->files[r->file_count].id = *id;
	r->files[r->file_count].is_wanted = r->sink->wants(r->sink->context, path);
	r->file_count++;
	r->code = (struct generated_code){0};
	r->payload = PAYLOAD_CODE;
	return 0;
}

/* "[rank0]:V1123 10:56:01.740000 590 torch/_inductor/graph.py:2575] {...}": 590 is the process. */
static bool is_of_process(const char *text, uint32_t pid)
{
	unsigned number;

	if (text[0] == '[')
		text = strchr(text, ':') ? strchr(text, ':') + 1 : text;
	return sscanf(text, "%*1[A-Z]%*u %*s %u ", &number) == 1 && number == pid;
}

static int number_of(const cJSON *record, const char *name)
{
	const cJSON *number = cJSON_GetObjectItemCaseSensitive(record, name);

	return cJSON_IsNumber(number) ? number->valueint : -1;
}

static int read_header(struct reading *r, const char *text, size_t length)
{
	const char *json = strstr(text, "] {");
	const cJSON *code, *path, *artifact, *name;
	struct compile_id id;
	cJSON *record;
	int error = 0;

	if (!json || !is_of_process(text, r->pid) ||
	    (!strstr(text, RECORD_CODE) && !strstr(text, RECORD_TRACES)))
		return 0;
	json += 2;
	record = cJSON_ParseWithLength(json, length - (size_t)(json - text));
	code = cJSON_GetObjectItemCaseSensitive(record, RECORD_CODE);
	path = cJSON_GetObjectItemCaseSensitive(code, "file_path");
	if (!cJSON_IsString(path))
		path = cJSON_GetObjectItemCaseSensitive(code, "filename");
	artifact = cJSON_GetObjectItemCaseSensitive(record, "artifact");
	name = cJSON_GetObjectItemCaseSensitive(artifact, "name");
	id = (struct compile_id){.frame = number_of(record, "frame_id"),
				 .frame_compile = number_of(record, "frame_compile_id"),
				 .attempt = number_of(record, "attempt")};
	if (!cJSON_HasObjectItem(record, "has_payload"))
		;
	else if (cJSON_IsString(path))
		error = begin_code(r, path->valuestring, &id);
	else if (cJSON_IsString(name) && !strcmp(name->valuestring, RECORD_TRACES))
		r->payload = PAYLOAD_TRACES;
	r->traces_id = id;
	cJSON_Delete(record);
	return error;
}

/* Lines of a payload begin with a tab. text ends with a NUL. */
static int read_line(struct reading *r, const char *text, size_t length)
{
	if (text[0] != '\t') {
		r->payload = PAYLOAD_OTHER;
		return read_header(r, text, length);
	}
	if (r->payload == PAYLOAD_CODE)
		return read_code(r, text + 1, length - 1);
	if (r->payload == PAYLOAD_TRACES)
		return read_traces(r, text + 1, length - 1);
	return 0;
}

/* Returns the line's length, -1 at the end. A line beyond the limit becomes empty. */
static ssize_t next_line(FILE *in, char **buffer, size_t *capacity)
{
	size_t length = 0;
	bool is_too_long = false;
	int c;

	while ((c = getc_unlocked(in)) != EOF && c != '\n') {
		is_too_long |= length == LINE_BYTES_MAX;
		if (is_too_long)
			continue;
		xt_grow(buffer, capacity, length + 2, 1);
		(*buffer)[length++] = (char)c;
	}
	if (c == EOF && !length)
		return -1;
	if (is_too_long)
		length = 0;
	xt_grow(buffer, capacity, length + 1, 1);
	(*buffer)[length] = '\0';
	return (ssize_t)length;
}

static FILE *open_file(int folder, const char *name)
{
	struct stat info;
	int fd = xt_regular_open_at(folder, name, 0, &info);
	FILE *in = fd < 0 ? NULL : fdopen(fd, "r");

	if (!in && fd >= 0)
		close(fd);
	return in;
}

static int read_lines(struct reading *r, FILE *in,
		      int (*read)(struct reading *, const char *, size_t))
{
	char *buffer = NULL;
	size_t capacity = 0;
	ssize_t length;
	int error = 0;

	while (!error && (length = next_line(in, &buffer, &capacity)) != -1)
		error = read(r, buffer, (size_t)length);
	free(buffer);
	while (!error && r->file_count)
		error = finish_file(r, 0, NULL);
	while (r->file_count)
		free_file(&r->files[--r->file_count]);
	return error;
}

static bool is_trace_file(const char *name)
{
	return begins_with(name, TORCH_TRACE_FILE_PREFIX) &&
	       has_ending(name, TORCH_TRACE_FILE_SUFFIX);
}

int torch_trace_read(const char *folder, uint32_t pid, const struct torch_trace_sink *sink)
{
	DIR *dir = opendir(folder);
	struct dirent *entry;
	int error = 0;

	while (dir && !error && (entry = readdir(dir)) != NULL) {
		struct reading r = {.sink = sink, .pid = pid};
		FILE *in =
			is_trace_file(entry->d_name) ? open_file(dirfd(dir), entry->d_name) : NULL;

		if (!in)
			continue;
		error = read_lines(&r, in, read_line);
		fclose(in);
	}
	if (dir)
		closedir(dir);
	return error;
}

int torch_trace_read_code(const char *file, const struct torch_trace_sink *sink)
{
	struct reading r = {.sink = sink};
	FILE *in = open_file(AT_FDCWD, file);
	int error;

	if (!in)
		return 0;
	error = begin_code(&r, file, &(struct compile_id){0});
	if (!error && r.file_count)
		error = read_lines(&r, in, read_code);
	fclose(in);
	return error;
}

/* '  File "/src/model.py", line 12, in forward' */
bool torch_trace_next_place(const char **text, struct torch_place *place)
{
	const char *at = *text, *end, *rest;
	unsigned line;
	int head;

	for (; (at = strstr(at, "  File \"")) != NULL; at += 8) {
		const char *file = at + 8;

		end = file + strcspn(file, "\n");
		rest = memmem(file, (size_t)(end - file), "\", line ", 8);
		head = 0;
		if (!rest || sscanf(rest, "\", line %9u, in %n", &line, &head) != 1 || !head ||
		    !line || rest + head > end)
			continue;
		*place = (struct torch_place){.file = file,
					      .function = rest + head,
					      .file_length = (uint32_t)(rest - file),
					      .function_length = (uint32_t)(end - rest - head),
					      .line = line};
		if (!strncmp(end, SOURCE_BEGIN, strlen(SOURCE_BEGIN))) {
			place->source = end + strlen(SOURCE_BEGIN);
			place->source_length = (uint32_t)strcspn(place->source, "\n");
		}
		*text = end;
		return true;
	}
	return false;
}
