/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads generated code: which lines call a kernel, and what the comments before them tell about its
 * source. Reads the lines of source files, to find out whether a file still is the one that was
 * compiled.
 */
#include "merge/symbolize/compiled_lines.h"

#include <cjson/cJSON.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "log/base/compare.h"
#include "log/base/hash_table.h"
#include "log/base/regular_file.h"
#include "log/read/rows.h"

#define HASH_CHARACTERS 51
#define LINES_TO_CALL	8 /* assignments between the comments and the call */
#define COMMENT_HANDLE	"# [Provenance debug handles] "
#define COMMENT_ATEN	"Original ATen: ["

bool generated_code_is_file(const char *path)
{
	const char *name = strrchr(path, '/');
	size_t length;

	if (!name || name - path < 3 || name[-3] != '/')
		return false;
	length = strlen(++name);
	return name[0] == 'c' && length == 1 + HASH_CHARACTERS + 3 &&
	       !strcmp(name + 1 + HASH_CHARACTERS, ".py") &&
	       strspn(name, "abcdefghijklmnopqrstuvwxyz234567") == 1 + HASH_CHARACTERS &&
	       !strncmp(name + 1, name - 3, 2);
}

static bool starts_with(const char *text, size_t length, const char *start)
{
	return length >= strlen(start) && !memcmp(text, start, strlen(start));
}

/* Returns the list of source nodes in a comment, or NULL. They are not always sorted. */
static const char *node_list(const char *text, size_t length)
{
	static const char *const starts[] = {
		"# Topologically Sorted Source Nodes: [",
		"# Unsorted Source Nodes: [",
		"# Source Nodes: [",
	};

	for (size_t i = 0; i < sizeof(starts) / sizeof(*starts); i++)
		if (starts_with(text, length, starts[i]))
			return text + strlen(starts[i]);
	return NULL;
}

static void copy(char *out, const char *text, size_t length)
{
	if (length >= GENERATED_TEXT_BYTES)
		length = GENERATED_TEXT_BYTES - 1;
	memcpy(out, text, length);
	out[length] = '\0';
}

/* Copies the list that begins at text, up to its ']'. */
static void copy_list(char *out, const char *text, const char *end)
{
	const char *close = memchr(text, ']', (size_t)(end - text));

	copy(out, text, close ? (size_t)(close - text) : 0);
}

/* Work that has no named source node is described by its operators. */
static void read_nodes(struct generated_code *code, const char *list, const char *end)
{
	const char *aten = memmem(list, (size_t)(end - list), COMMENT_ATEN, strlen(COMMENT_ATEN));

	code->handle[0] = '\0';
	copy_list(code->nodes, list, end);
	if (!code->nodes[strspn(code->nodes, " ,")] && aten)
		copy_list(code->nodes, aten + strlen(COMMENT_ATEN), end);
	code->lines_left = LINES_TO_CALL;
}

static void read_comment(struct generated_code *code, const char *text, size_t length)
{
	const char *list = node_list(text, length);

	if (list) {
		read_nodes(code, list, text + length);
	} else if (starts_with(text, length, COMMENT_HANDLE)) {
		if (!code->lines_left)
			code->nodes[0] = '\0';
		copy(code->handle, text + strlen(COMMENT_HANDLE), length - strlen(COMMENT_HANDLE));
		code->lines_left = LINES_TO_CALL;
	}
}

/* "extern_kernels.addmm(" or "triton_poi_fused_gelu_1.run(" */
static bool calls(const char *text, size_t length, const char *name, size_t name_length)
{
	const char *end = text + length, *at = text;

	while ((at = memmem(at, (size_t)(end - at), name, name_length)) != NULL) {
		at += name_length;
		if (at < end && (*at == '(' || starts_with(at, (size_t)(end - at), ".run(")))
			return true;
	}
	return false;
}

/* Without a handle, accept a call that is neither preparation nor the definition of a kernel. */
static bool is_call(const struct generated_code *code, const char *text, size_t length)
{
	static const char *const others[] = {"get_raw_stream(", "empty_strided", "async_compile.",
					     "reinterpret_tensor(buf"};
	const char *colon = strrchr(code->handle, ':');

	if (colon)
		return calls(text, length, code->handle, (size_t)(colon - code->handle));
	if (calls(text, length, ".run", 4) || memmem(text, length, "extern_kernels.", 15))
		return true;
	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
		if (memmem(text, length, others[i], strlen(others[i])))
			return false;
	return !starts_with(text, length, "del ") && memchr(text, '(', length);
}

bool generated_code_next(struct generated_code *code, const char *text, size_t length)
{
	bool is_found;

	code->line++;
	while (length && (*text == ' ' || *text == '\t')) {
		text++;
		length--;
	}
	while (length && (text[length - 1] == '\r' || text[length - 1] == ' '))
		length--;
	if (length && *text == '#') {
		read_comment(code, text, length);
		return false;
	}
	if (!code->lines_left)
		return false;
	if (!length || memmem(text, length, "async_compile.", 14)) {
		code->lines_left = 0;
		return false;
	}
	is_found = is_call(code, text, length);
	code->lines_left = is_found ? 0 : code->lines_left - 1;
	return is_found;
}

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

/*
 * Whether the line, without the space around it, is not that text. False if the file cannot be
 * read: then nothing is known.
 */
static bool source_text_differs(struct source_texts *texts, const char *path, uint32_t line,
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

static void source_texts_free(struct source_texts *texts)
{
	for (size_t f = 0; f < texts->file_count; f++)
		free_all(texts->files[f].path, texts->files[f].text, texts->files[f].starts);
	*texts = (struct source_texts){0};
}

/* A call in generated code. The texts are valid during the callback. */
struct torch_call {
	const char *file; /* the generated file */
	uint32_t line;
	const char *nodes; /* "linear, gelu", or "" */
	/* Source lines as Python prints stack traces; trace_count is 0 if they are unknown. */
	const char *const *traces;
	uint32_t trace_count;
};

#define CHUNK_ROWS	 4096
#define CHUNK_TEXT_BYTES (1u << 20)
#define TEXT_BYTES_MAX	 4096
#define PLACES_MAX	 64 /* of a trace */

/* A line of generated code in a stack. */
struct wanted {
	const char *file;
	uint32_t line;
	uint32_t frame;
	bool has_nodes, has_traces;
	bool is_ambiguous;    /* two compilations made this line, from different lines */
	uint32_t traces_hash; /* of the first traces found */
};

struct search {
	struct compiled_lines *lines;
	struct wanted *wanted; /* sorted by file and line */
	size_t count, capacity;
	struct source_texts sources;
};

COMPARE_BY(compare_wanted, struct wanted, UP_TEXT(file) UP(line))
COMPARE_BY(compare_lines, struct compiled_line, UP(frame) UP(trace) UP(order))

/* The part of a frame's source lines that the log has already. */
enum known { KNOWN_NOTHING, KNOWN_NODES, KNOWN_TRACES };

/* Returns an enum known for each frame, owned by the caller. */
static uint8_t *list_known(const struct model *model)
{
	uint8_t *known = xt_calloc(model->python_frames.count + 1, 1);

	for (uint32_t r = 1; r < model->compiled.count; r++) {
		const struct compiled_place *row = &model->compiled.rows[r];

		if (row->frame < model->python_frames.count && known[row->frame] != KNOWN_TRACES)
			known[row->frame] = row->trace ? KNOWN_TRACES : KNOWN_NODES;
	}
	return known;
}

static void list_wanted(struct search *search, const struct model *model)
{
	uint8_t *known = list_known(model);

	for (uint32_t id = 1; id < model->python_frames.count; id++) {
		const struct python_frame *frame = &model->python_frames.rows[id];
		const char *file =
			names_text(&model->names, model_string(model, frame->file), NULL);

		if (!frame->line || !generated_code_is_file(file))
			continue;
		xt_append(search->wanted, search->count, search->capacity,
			  (struct wanted){.file = file,
					  .line = frame->line,
					  .frame = id,
					  .has_nodes = known[id] != KNOWN_NOTHING,
					  .has_traces = known[id] == KNOWN_TRACES});
	}
	SORT(search->wanted, search->count, compare_wanted);
	free(known);
}

/* Returns the index of the first wanted line that is not before this one. */
static size_t find_wanted(const struct search *search, const char *file, uint32_t line)
{
	const struct wanted key = {.file = file, .line = line};

	return FIRST_NOT(i, 0, search->count, compare_wanted(&search->wanted[i], &key) < 0);
}

/* Whether calls of this generated file are wanted. */
static bool wants(const struct search *search, const char *file)
{
	size_t at = find_wanted(search, file, 0);

	return at < search->count && !strcmp(search->wanted[at].file, file);
}

static void add_line(struct compiled_lines *lines, struct compiled_line line)
{
	list_append(*lines, line);
}

static void free_line(struct compiled_line *line)
{
	free_all(line->function, line->file);
}

/*
 * Whether a file changed since the code was compiled. A cache keeps the lines of that time, and
 * does not notice that lines moved.
 */
static bool is_stale(struct search *search, const char *text)
{
	struct torch_place place;
	bool differs = false;

	while (!differs && torch_trace_next_place(&text, &place)) {
		char *path = place.source ? xt_strndup(place.file, place.file_length) : NULL;

		differs = path && source_text_differs(&search->sources, path, place.line,
						      place.source, place.source_length);
		free(path);
	}
	return differs;
}

/* Returns whether the trace has a place. */
static bool add_trace(struct search *search, uint32_t frame, uint32_t number, const char *text)
{
	struct torch_place place;
	int count = 0;

	if (is_stale(search, text))
		return false;
	while (count < PLACES_MAX && torch_trace_next_place(&text, &place)) {
		if (place.file_length > TEXT_BYTES_MAX || place.function_length > TEXT_BYTES_MAX)
			continue;
		add_line(search->lines,
			 (struct compiled_line){
				 .frame = frame,
				 .trace = number,
				 .line = place.line,
				 .function = xt_strndup(place.function, place.function_length),
				 .file = xt_strndup(place.file, place.file_length)});
		count++;
	}
	return count > 0;
}

static uint32_t hash_of(const struct torch_call *call)
{
	uint32_t hash = 0;

	for (uint32_t t = 0; t < call->trace_count; t++)
		hash = hash * 31 + xt_hash_bytes(call->traces[t], strlen(call->traces[t]));
	return hash | 1; /* 0: none */
}

/* Functions with equal code share a generated file, so its lines would be those of one of them. */
static void note_ambiguity(struct compiled_lines *lines, struct wanted *wanted, uint32_t hash)
{
	size_t kept = 0;

	if (!wanted->traces_hash || wanted->traces_hash == hash)
		return;
	wanted->is_ambiguous = true;
	wanted->has_traces = false;
	for (size_t i = 0; i < lines->count; i++) {
		struct compiled_line *line = &lines->list[i];

		if (line->frame == wanted->frame && line->trace) {
			free_line(line);
			continue;
		}
		lines->list[kept++] = *line;
	}
	lines->count = kept;
}

static void add_to(struct search *search, struct wanted *wanted, const struct torch_call *call)
{
	uint32_t number = 0, hash = hash_of(call);

	if (call->trace_count && !wanted->is_ambiguous)
		note_ambiguity(search->lines, wanted, hash);
	for (uint32_t t = 0; t < call->trace_count && !wanted->has_traces && !wanted->is_ambiguous;
	     t++)
		number += add_trace(search, wanted->frame, number + 1, call->traces[t]);
	if (number)
		wanted->traces_hash = hash;
	wanted->has_traces |= number > 0;
	if (wanted->has_traces || wanted->has_nodes || !call->nodes[0])
		return;
	wanted->has_nodes = true;
	add_line(search->lines, (struct compiled_line){.frame = wanted->frame,
						       .function = xt_strdup(call->nodes),
						       .file = xt_strdup("")});
}

static void compiled_lines_add(struct search *search, const struct torch_call *call)
{
	for (size_t w = find_wanted(search, call->file, call->line); w < search->count; w++) {
		struct wanted *wanted = &search->wanted[w];

		if (wanted->line != call->line || strcmp(wanted->file, call->file))
			break;
		add_to(search, wanted, call);
	}
}

#define TORCH_TRACE_FILE_PREFIX "dedicated_log_torch_trace_"
#define TORCH_TRACE_FILE_SUFFIX ".log"

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
	struct search *search;
	uint32_t pid;
	struct generated_file files[FILES_OPEN_MAX]; /* oldest first */
	size_t file_count;
	enum payload payload; /* of the lines that follow */
	struct generated_code code;
	struct compile_id traces_id; /* of the last record */
};

static void free_traced_file(struct generated_file *file)
{
	for (size_t i = 0; i < file->count; i++)
		free_all(file->calls[i].handle, file->calls[i].nodes);
	free_all(file->calls, file->path);
	*file = (struct generated_file){0};
}

static void compiled_lines_add_call(struct reading *r, const struct generated_file *file,
				    const struct call *call, const cJSON *traces)
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
	compiled_lines_add(r->search, &found);
}

/* Hands over the calls of a file, and forgets it. */
static void finish_file(struct reading *r, size_t index, const cJSON *traces)
{
	struct generated_file *file = &r->files[index];

	for (size_t i = 0; i < file->count && file->is_wanted; i++)
		compiled_lines_add_call(r, file, &file->calls[i], traces);
	free_traced_file(file);
	r->file_count--;
	memmove(file, file + 1, (r->file_count - index) * sizeof(*file));
	r->files[r->file_count] = (struct generated_file){0};
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

static void read_traces(struct reading *r, const char *text, size_t length)
{
	cJSON *traces = cJSON_ParseWithLength(text, length);

	if (cJSON_IsObject(traces))
		for (size_t i = r->file_count; i--;)
			if (belongs_to(r, traces, &r->files[i])) {
				finish_file(r, i, traces);
				break;
			}
	cJSON_Delete(traces);
}

static void read_code(struct reading *r, const char *text, size_t length)
{
	struct generated_file *file = &r->files[r->file_count - 1];

	if (generated_code_next(&r->code, text, length) && file->count < CALLS_MAX)
		xt_append(file->calls, file->count, file->capacity,
			  (struct call){r->code.line, xt_strdup(r->code.handle),
					xt_strdup(r->code.nodes)});
}

/* Files that are not wanted are noted, too: the next records may belong to them. */
static void begin_code(struct reading *r, const char *path, const struct compile_id *id)
{
	if (r->file_count == FILES_OPEN_MAX)
		finish_file(r, 0, NULL);
	r->files[r->file_count].path = xt_strdup(path);
	r->files[r->file_count].id = *id;
	r->files[r->file_count].is_wanted = wants(r->search, path);
	r->file_count++;
	r->code = (struct generated_code){0};
	r->payload = PAYLOAD_CODE;
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

static void read_header(struct reading *r, const char *text, size_t length)
{
	const char *json = strstr(text, "] {");
	const cJSON *code, *path, *artifact, *name;
	struct compile_id id;
	cJSON *record;

	if (!json || !is_of_process(text, r->pid) ||
	    (!strstr(text, RECORD_CODE) && !strstr(text, RECORD_TRACES)))
		return;
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
		begin_code(r, path->valuestring, &id);
	else if (cJSON_IsString(name) && !strcmp(name->valuestring, RECORD_TRACES))
		r->payload = PAYLOAD_TRACES;
	r->traces_id = id;
	cJSON_Delete(record);
}

/* Lines of a payload begin with a tab. text ends with a NUL. */
static void read_line(struct reading *r, const char *text, size_t length)
{
	if (text[0] != '\t') {
		r->payload = PAYLOAD_OTHER;
		read_header(r, text, length);
	} else if (r->payload == PAYLOAD_CODE) {
		read_code(r, text + 1, length - 1);
	} else if (r->payload == PAYLOAD_TRACES) {
		read_traces(r, text + 1, length - 1);
	}
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
		xt_grow(*buffer, *capacity, length + 2);
		(*buffer)[length++] = (char)c;
	}
	if (c == EOF && !length)
		return -1;
	if (is_too_long)
		length = 0;
	xt_grow(*buffer, *capacity, length + 1);
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

static void read_lines(struct reading *r, FILE *in,
		       void (*read)(struct reading *, const char *, size_t))
{
	char *buffer = NULL;
	size_t capacity = 0;
	ssize_t length;

	while ((length = next_line(in, &buffer, &capacity)) != -1)
		read(r, buffer, (size_t)length);
	free(buffer);
	while (r->file_count)
		finish_file(r, 0, NULL);
}

static bool is_trace_file(const char *name)
{
	return begins_with(name, TORCH_TRACE_FILE_PREFIX) &&
	       has_ending(name, TORCH_TRACE_FILE_SUFFIX);
}

/* Reads what the process wrote into the folder. Calls without known source lines are added too. */
static void torch_trace_read(struct search *search, const char *folder, uint32_t pid)
{
	DIR *dir = opendir(folder);
	struct dirent *entry;

	while (dir && (entry = readdir(dir)) != NULL) {
		struct reading r = {.search = search, .pid = pid};
		FILE *in =
			is_trace_file(entry->d_name) ? open_file(dirfd(dir), entry->d_name) : NULL;

		if (!in)
			continue;
		read_lines(&r, in, read_line);
		fclose(in);
	}
	if (dir)
		closedir(dir);
}

/* Reads a generated file itself, without source lines, if it can be read. */
static void torch_trace_read_code(struct search *search, const char *file)
{
	struct reading r = {.search = search};
	FILE *in = open_file(AT_FDCWD, file);

	if (!in)
		return;
	begin_code(&r, file, &(struct compile_id){0});
	read_lines(&r, in, read_code);
	fclose(in);
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

/* Reads generated files that PyTorch's records do not have. */
static void read_files(struct search *search)
{
	for (size_t first = 0, end; first < search->count; first = end) {
		const char *file = search->wanted[first].file;
		bool is_known = false;

		for (end = first; end < search->count && !strcmp(search->wanted[end].file, file);
		     end++)
			is_known |= search->wanted[end].has_traces || search->wanted[end].has_nodes;
		if (!is_known)
			torch_trace_read_code(search, file);
	}
}

/* Removes the nodes of frames whose lines became known later. */
static void remove_nodes(struct compiled_lines *lines)
{
	size_t kept = 0;

	for (size_t i = 0; i < lines->count; i++) {
		struct compiled_line *line = &lines->list[i];

		if (!line->trace && i + 1 < lines->count && line[1].frame == line->frame) {
			free_line(line);
			continue;
		}
		lines->list[kept++] = *line;
	}
	lines->count = kept;
}

void compiled_lines_find(struct compiled_lines *lines, const struct model *model,
			 const char *folder)
{
	struct search search = {.lines = lines};

	*lines = (struct compiled_lines){0};
	list_wanted(&search, model);
	if (search.count)
		torch_trace_read(&search, folder, model->pid);
	read_files(&search);
	free(search.wanted);
	source_texts_free(&search.sources);
	for (size_t i = 0; i < lines->count; i++)
		lines->list[i].order = i;
	SORT(lines->list, lines->count, compare_lines);
	remove_nodes(lines);
}

void compiled_lines_free(struct compiled_lines *lines)
{
	for (size_t i = 0; i < lines->count; i++)
		free_line(&lines->list[i]);
	free(lines->list);
	*lines = (struct compiled_lines){0};
}

int compiled_lines_write(const struct compiled_lines *lines, struct xt_writer *writer)
{
	struct xt_table table;
	int error;

	if (!lines->count)
		return 0;
	error = xt_table_init(&table, XT_KIND_COMPILED, CHUNK_ROWS, CHUNK_TEXT_BYTES);
	for (size_t i = 0; i < lines->count && !error; i++) {
		const struct compiled_line *line = &lines->list[i];
		size_t function = strlen(line->function), file = strlen(line->file);

		if (!xt_table_has_room(&table, function > file ? function : file))
			error = xt_writer_add(writer, &table);
		if (error)
			break;
		xt_write_compiled(&table, &(struct xt_row_compiled){
						  .frame = line->frame,
						  .trace = line->trace,
						  .function = {line->function, function},
						  .file = {line->file, file},
						  .line = line->line,
					  });
	}
	if (!error)
		error = xt_writer_add(writer, &table);
	xt_table_free(&table);
	return error;
}
