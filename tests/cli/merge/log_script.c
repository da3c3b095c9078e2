/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Logs written as text, one row per line, so that each test contains its log. Times are ns after
 * the start of the log; parts in [] are optional; a word that starts with '#' begins a comment.
 *
 * 	thread ID TID NAME
 * 	stream ID DEVICE CONTEXT STREAM        (stream 1 is device 0, context 1, stream 7)
 * 	stack NAME FUNCTION...                 (outermost first; cuda... are the runtime's;
 * 	                                       py:FILE:LINE:NAME is a Python frame)
 * 	call CORRELATION THREAD API STACK ENTER DURATION [RESULT [ONE_IN [GRAPH_EXEC]]]
 * 	api NAME                               (defines it, or defines it again)
 * 	rate TIME ONE_IN                       (from then on, one of ONE_IN calls has a stack)
 * 	kernel CORRELATION STREAM NAME[@GRID] START DURATION [NODE]
 * 	copy CORRELATION STREAM SHAPE START DURATION BYTES [NODE]
 * 	                                       (SHAPE: KIND:SOURCE:DESTINATION:ASYNC[:FROM:TO])
 * 	set CORRELATION STREAM MEMORY START DURATION BYTES [NODE]
 * 	node ID ORIGIN STACK TIME THREAD [TYPE]
 * 	node_name NODE TIME NAME               (of its kernel)
 * 	whole CORRELATION STREAM EXEC START DURATION
 * 	                                       (an executable graph recorded as a whole)
 * 	alloc CORRELATION ADDRESS BYTES TIME DEVICE MEMORY
 * 	free CORRELATION ADDRESS TIME DEVICE MEMORY
 * 	push|mark THREAD TIME STACK TEXT [DOMAIN]
 * 	pop THREAD TIME [DOMAIN]
 * 	start THREAD TIME STACK KEY TEXT [DOMAIN]
 * 	end THREAD TIME KEY [DOMAIN]
 * 	name_thread THREAD TIME TID TEXT
 * 	name_category THREAD TIME CATEGORY TEXT [DOMAIN]
 * 	payload CATEGORY TYPE VALUE            (of ranges and marks from now on; initially 3 1 42)
 * 	flush KIND                             (writes the rows of that kind to the file now)
 * 	account NAME VALUE
 * 	meta KEY VALUE
 * 	switch TIME on|off asked|yielded|size|stopped|duty
 * 	                                       (recording was paused or resumed)
 * 	sample THREAD TIME SPAN STATE STACK WEIGHT [WAIT_PID WAIT_TID]
 * 	                                       (of a CPU log; STATE: as in xt_cpu_state)
 *
 * STACK is a name, a number, "-" for none, or "lost": not sampled.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "log_rows.h"

#define WORDS_MAX 128
#define TEXTS_MAX 8192
#define TEXT_MAX  128

/* Texts, numbered in the order of first use. */
struct texts {
	char *texts[TEXTS_MAX];
	size_t count;
};

struct script {
	struct log *log;
	char *words[WORDS_MAX];
	int word_count;
	int line;
	bool is_cpu_log;
	uint64_t category, payload_type, payload;
	struct texts functions, stacks, apis, strings, kernels, copy_shapes, python;
};

static void fail(const struct script *s, const char *what)
{
	fprintf(stderr, "make_log: line %d: %s\n", s->line, what);
	exit(2);
}

/* The number of text, from 0 on; *is_new_out is true at its first use. */
static size_t number_of(const struct script *s, struct texts *texts, const char *text,
			bool *is_new_out)
{
	*is_new_out = false;
	for (size_t i = 0; i < texts->count; i++)
		if (!strcmp(texts->texts[i], text))
			return i;
	if (texts->count == TEXTS_MAX)
		fail(s, "too many texts");
	texts->texts[texts->count] = strdup(text);
	if (!texts->texts[texts->count])
		fail(s, "out of memory");
	*is_new_out = true;
	return texts->count++;
}

static bool has_word(const struct script *s, int w)
{
	return w < s->word_count;
}

static const char *word(const struct script *s, int w)
{
	if (!has_word(s, w))
		fail(s, "a word is missing");
	return s->words[w];
}

static uint64_t number(const struct script *s, int w)
{
	char *end;
	uint64_t value = strtoull(word(s, w), &end, 0);

	if (*end)
		fail(s, "not a number");
	return value;
}

static uint64_t number_or_0(const struct script *s, int w)
{
	return has_word(s, w) ? number(s, w) : 0;
}

/* A time may be before the start: "-5". */
static uint64_t time_ns(const struct script *s, int w)
{
	return START_NS + number(s, w);
}

static uint64_t text_id(struct script *s, const char *text)
{
	bool is_new;
	size_t n = number_of(s, &s->strings, text, &is_new);

	if (is_new)
		put_string(s->log, 100 + n, text);
	return 100 + n;
}

static uint64_t string_id(struct script *s, int w)
{
	return has_word(s, w) ? text_id(s, word(s, w)) : 0;
}

static uint64_t stack_id(struct script *s, int w)
{
	const char *name = word(s, w);

	if (!strcmp(name, "-"))
		return 0;
	if (!strcmp(name, "lost"))
		return XT_STACK_LOST;
	for (size_t i = 0; i < s->stacks.count; i++)
		if (!strcmp(s->stacks.texts[i], name))
			return STACK_MORE + i;
	return number(s, w);
}

static uint64_t function_address(struct script *s, const char *name)
{
	enum module_id module = strncmp(name, "cuda", 4) ? CHAT : CUDART;
	uint64_t known = known_function(name), start;
	bool is_new;

	if (known)
		return known + 0x10;
	start = 0x4000 + 0x100 * number_of(s, &s->functions, name, &is_new);
	if (is_new)
		put_symbol(s->log, module, start, name);
	return module_start(module) + start + 0x10;
}

/* The id of "FILE:LINE:NAME". */
static uint64_t python_frame(struct script *s, const char *text)
{
	char file[TEXT_MAX], name[TEXT_MAX];
	struct xt_table *table;
	uint64_t line, file_id, name_id;
	bool is_new;
	size_t n = number_of(s, &s->python, text, &is_new);

	if (!is_new)
		return 1 + n;
	if (sscanf(text, "%127[^:]:%" SCNu64 ":%127s", file, &line, name) != 3)
		fail(s, "not a Python frame");
	file_id = text_id(s, file);
	name_id = text_id(s, name);
	table = row(s->log, XT_KIND_PYTHON_FRAME);
	xt_table_put(table, XT_PYTHON_FRAME_ID, 1 + n);
	xt_table_put(table, XT_PYTHON_FRAME_NAME, name_id);
	xt_table_put(table, XT_PYTHON_FRAME_FILE, file_id);
	xt_table_put(table, XT_PYTHON_FRAME_LINE, line);
	xt_table_put(table, XT_PYTHON_FRAME_FIRST_LINE, line);
	xt_table_end_row(table);
	return 1 + n;
}

static void do_stack(struct script *s)
{
	uint64_t frames[WORDS_MAX], python[WORDS_MAX], places[WORDS_MAX];
	struct xt_table *table;
	size_t count = 0, python_count = 0;
	bool is_new;

	/* Traced stacks are those of CUDA calls. */
	if (!s->is_cpu_log)
		frames[count++] = module_start(CUDA) + 0x1010;
	for (int w = s->word_count - 1; w >= 2; w--) {
		if (strncmp(s->words[w], "py:", 3)) {
			frames[count++] = function_address(s, s->words[w]);
			continue;
		}
		python[python_count] = python_frame(s, s->words[w] + 3);
		places[python_count++] = count;
	}
	table = row(s->log, XT_KIND_STACK);
	xt_table_put(table, XT_STACK_ID,
		     STACK_MORE + number_of(s, &s->stacks, word(s, 1), &is_new));
	xt_table_put(table, XT_STACK_FLAGS, 0);
	xt_table_put(table, XT_STACK_SEEN_NS, START_NS + MS);
	xt_table_put_list(table, XT_STACK_FRAMES, frames, count);
	xt_table_put_list(table, XT_STACK_PYTHON, python, python_count);
	xt_table_put_list(table, XT_STACK_PLACES, places, python_count);
	xt_table_end_row(table);
}

static void do_thread(struct script *s)
{
	put_thread(s->log, number(s, 1), number(s, 2), word(s, 3));
}

static void do_stream(struct script *s)
{
	put_stream(s->log, number(s, 1), number(s, 2), number(s, 3), number(s, 4));
}

/* By prefix of the name; longer prefixes first. */
static uint64_t api_id_defined(struct script *s, int w, bool once_more)
{
	static const struct {
		const char *beginning;
		uint64_t class;
	} classes[] = {
		{"cuLaunch", XT_API_LAUNCH},	 {"cuGraphLaunch", XT_API_GRAPH_LAUNCH},
		{"cuMemcpy", XT_API_COPY},	 {"cuMemset", XT_API_SET},
		{"cuMemAlloc", XT_API_ALLOC},	 {"cuMemFree", XT_API_FREE},
		{"cuCtxSync", XT_API_SYNC},	 {"cuStreamSync", XT_API_SYNC},
		{"cuEventSync", XT_API_SYNC},	 {"cuEventRecord", XT_API_EVENT},
		{"cuGraph", XT_API_GRAPH},	 {"cuStreamCreate", XT_API_LIFE},
		{"cuModuleLoad", XT_API_MODULE}, {"", XT_API_OTHER},
	};
	bool is_new;
	uint64_t id = (1 << 16 | 1000) + number_of(s, &s->apis, word(s, w), &is_new);
	size_t c = 0;

	while (strncmp(word(s, w), classes[c].beginning, strlen(classes[c].beginning)))
		c++;
	if (is_new || once_more)
		put_api(s->log, id, word(s, w), classes[c].class);
	return id;
}

static uint64_t api_id(struct script *s, int w)
{
	return api_id_defined(s, w, false);
}

static void do_api(struct script *s)
{
	api_id_defined(s, 1, true);
}

static void do_call(struct script *s)
{
	uint64_t api = api_id(s, 3);
	struct xt_table *table = row(s->log, XT_KIND_CALL);

	xt_table_put(table, XT_CALL_THREAD, number(s, 2));
	xt_table_put(table, XT_CALL_API, api);
	xt_table_put(table, XT_CALL_CORRELATION, number(s, 1));
	xt_table_put(table, XT_CALL_STACK, stack_id(s, 4));
	xt_table_put(table, XT_CALL_ENTER_NS, time_ns(s, 5));
	xt_table_put(table, XT_CALL_DURATION_NS, number(s, 6));
	xt_table_put(table, XT_CALL_RESULT, number_or_0(s, 7));
	xt_table_put(table, XT_CALL_ONE_IN, number_or_0(s, 8));
	xt_table_put(table, XT_CALL_GRAPH_EXEC, number_or_0(s, 9));
	xt_table_end_row(table);
}

static void do_rate(struct script *s)
{
	struct xt_table *table = row(s->log, XT_KIND_STACK_RATE);

	xt_table_put(table, XT_STACK_RATE_TIME_NS, time_ns(s, 1));
	xt_table_put(table, XT_STACK_RATE_ONE_IN, number(s, 2));
	xt_table_end_row(table);
}

static void do_kernel(struct script *s)
{
	bool is_new;
	uint64_t shape = 200 + number_of(s, &s->kernels, word(s, 3), &is_new), grid = 64;
	char name[TEXT_MAX];

	if (is_new && sscanf(word(s, 3), "%127[^@]@%" SCNu64, name, &grid))
		put_shape(s->log, shape, name, grid);
	put_kernel(s->log, number(s, 1), number(s, 2), shape, time_ns(s, 4), number(s, 5),
		   number_or_0(s, 6));
}

static uint64_t copy_shape_id(struct script *s, int w)
{
	unsigned values[6] = {0};
	struct xt_table *table;
	bool is_new;
	uint64_t id = 1 + number_of(s, &s->copy_shapes, word(s, w), &is_new);

	if (!is_new)
		return id;
	if (sscanf(word(s, w), "%u:%u:%u:%u:%u:%u", &values[0], &values[1], &values[2], &values[3],
		   &values[4], &values[5]) < 4)
		fail(s, "not a shape of a copy");
	table = row(s->log, XT_KIND_COPY_SHAPE);
	xt_table_put(table, XT_COPY_SHAPE_ID, id);
	for (unsigned v = 0; v < 6; v++)
		xt_table_put(table, XT_COPY_SHAPE_KIND + v, values[v]);
	xt_table_end_row(table);
	return id;
}

/* Copies and memsets have the same columns. */
static void do_transfer(struct script *s)
{
	bool is_copy = !strcmp(word(s, 0), "copy");
	uint64_t shape = is_copy ? copy_shape_id(s, 3) : number(s, 3);
	struct xt_table *table = row(s->log, is_copy ? XT_KIND_COPY : XT_KIND_SET);

	xt_table_put(table, XT_COPY_CORRELATION, number(s, 1));
	xt_table_put(table, XT_COPY_STREAM, number(s, 2));
	xt_table_put(table, XT_COPY_SHAPE, shape);
	xt_table_put(table, XT_COPY_START_NS, time_ns(s, 4));
	xt_table_put(table, XT_COPY_DURATION_NS, number(s, 5));
	xt_table_put(table, XT_COPY_BYTES, number(s, 6));
	xt_table_put(table, XT_COPY_GRAPH_NODE, number_or_0(s, 7));
	xt_table_end_row(table);
}

static void do_node(struct script *s)
{
	struct xt_table *table = row(s->log, XT_KIND_GRAPH_NODE);

	xt_table_put(table, XT_GRAPH_NODE_ID, number(s, 1));
	xt_table_put(table, XT_GRAPH_NODE_ORIGIN, number(s, 2));
	xt_table_put(table, XT_GRAPH_NODE_STACK, stack_id(s, 3));
	xt_table_put(table, XT_GRAPH_NODE_TIME_NS, time_ns(s, 4));
	xt_table_put(table, XT_GRAPH_NODE_TYPE, number_or_0(s, 6));
	xt_table_put(table, XT_GRAPH_NODE_THREAD, number(s, 5));
	xt_table_end_row(table);
}

static void do_node_name(struct script *s)
{
	uint64_t name = string_id(s, 3);
	struct xt_table *table = row(s->log, XT_KIND_GRAPH_NODE_NAME);

	xt_table_put(table, XT_GRAPH_NODE_NAME_NODE, number(s, 1));
	xt_table_put(table, XT_GRAPH_NODE_NAME_TIME_NS, time_ns(s, 2));
	xt_table_put(table, XT_GRAPH_NODE_NAME_STRING, name);
	xt_table_end_row(table);
}

static void do_whole(struct script *s)
{
	bool is_new;
	uint64_t shape = 200 + number_of(s, &s->kernels, XT_WHOLE_GRAPH_NAME, &is_new);

	if (is_new)
		put_shape(s->log, shape, XT_WHOLE_GRAPH_NAME, 0);
	put_kernel(s->log, number(s, 1), number(s, 2), shape, time_ns(s, 4), number(s, 5),
		   number(s, 3) << 32 | XT_NODE_WHOLE_GRAPH);
}

static void do_memory(struct script *s)
{
	bool is_alloc = !strcmp(word(s, 0), "alloc");
	struct xt_table *table = row(s->log, XT_KIND_MEMORY);
	int rest = is_alloc ? 4 : 3;

	xt_table_put(table, XT_MEMORY_CORRELATION, number(s, 1));
	xt_table_put(table, XT_MEMORY_OPERATION, is_alloc ? XT_MEMORY_ALLOC : XT_MEMORY_FREE);
	xt_table_put(table, XT_MEMORY_ADDRESS, number(s, 2));
	xt_table_put(table, XT_MEMORY_BYTES, is_alloc ? number(s, 3) : 0);
	xt_table_put(table, XT_MEMORY_TIME_NS, time_ns(s, rest));
	xt_table_put(table, XT_MEMORY_DEVICE, number(s, rest + 1));
	xt_table_put(table, XT_MEMORY_KIND, number(s, rest + 2));
	xt_table_end_row(table);
}

/* The position of each word per operation; 0: absent. */
static const struct range_row {
	const char *name;
	uint64_t operation;
	int stack, key, text, domain;
} range_rows[] = {
	{"push", XT_RANGE_PUSH, 3, 0, 4, 5},
	{"mark", XT_RANGE_MARK, 3, 0, 4, 5},
	{"pop", XT_RANGE_POP, 0, 0, 0, 3},
	{"start", XT_RANGE_START, 3, 4, 5, 6},
	{"end", XT_RANGE_END, 0, 3, 0, 4},
	{"name_thread", XT_RANGE_NAME_THREAD, 0, 3, 4, 5},
	{"name_category", XT_RANGE_NAME_CATEGORY, 0, 3, 4, 5},
};

static void do_range(struct script *s)
{
	const struct range_row *r = range_rows;
	uint64_t text, domain;
	struct xt_table *table;

	while (strcmp(r->name, word(s, 0)))
		r++;
	text = r->text ? string_id(s, r->text) : 0;
	domain = string_id(s, r->domain);
	table = row(s->log, XT_KIND_RANGE);
	xt_table_put(table, XT_RANGE_OPERATION, r->operation);
	xt_table_put(table, XT_RANGE_THREAD, number(s, 1));
	xt_table_put(table, XT_RANGE_TIME_NS, time_ns(s, 2));
	xt_table_put(table, XT_RANGE_DOMAIN, domain);
	xt_table_put(table, XT_RANGE_TEXT, text);
	xt_table_put(table, XT_RANGE_KEY, r->key ? number(s, r->key) : 0);
	xt_table_put(table, XT_RANGE_STACK, r->stack ? stack_id(s, r->stack) : 0);
	xt_table_put(table, XT_RANGE_CATEGORY, r->stack ? s->category : 0);
	xt_table_put(table, XT_RANGE_PAYLOAD, r->stack ? s->payload : 0);
	xt_table_put(table, XT_RANGE_PAYLOAD_TYPE, r->stack ? s->payload_type : 0);
	xt_table_put(table, XT_RANGE_COLOR, 0);
	xt_table_end_row(table);
}

static void do_payload(struct script *s)
{
	s->category = number(s, 1);
	s->payload_type = number(s, 2);
	s->payload = number(s, 3);
}

static void do_flush(struct script *s)
{
	for (int kind = 1; kind < XT_KIND_COUNT; kind++)
		if (xt_kind_specs[kind].name && !strcmp(xt_kind_specs[kind].name, word(s, 1)))
			flush_kind(s->log, (enum xt_kind)kind);
}

static void do_switch(struct script *s)
{
	static const char *const words[] = {[XT_SWITCH_ASKED] = "asked",
					    [XT_SWITCH_YIELDED] = "yielded",
					    [XT_SWITCH_SIZE] = "size",
					    [XT_SWITCH_STOPPED] = "stopped",
					    [XT_SWITCH_DUTY] = "duty"};
	uint64_t why = 0;

	while (why < sizeof(words) / sizeof(*words) && strcmp(word(s, 3), words[why]) != 0)
		why++;
	if (why == sizeof(words) / sizeof(*words))
		fail(s, "an unknown reason");
	put_switch(s->log, number(s, 1), strcmp(word(s, 2), "on") == 0, why);
}

static void do_sample(struct script *s)
{
	struct xt_table *table = row(s->log, XT_KIND_CPU_SAMPLE);

	xt_table_put(table, XT_CPU_SAMPLE_TIME_NS, time_ns(s, 2));
	xt_table_put(table, XT_CPU_SAMPLE_SPAN_NS, number(s, 3));
	xt_table_put(table, XT_CPU_SAMPLE_THREAD, number(s, 1));
	xt_table_put(table, XT_CPU_SAMPLE_STATE, number(s, 4));
	xt_table_put(table, XT_CPU_SAMPLE_STACK, stack_id(s, 5));
	xt_table_put(table, XT_CPU_SAMPLE_WEIGHT_NS, number(s, 6));
	xt_table_put(table, XT_CPU_SAMPLE_COUNT, 1);
	xt_table_put(table, XT_CPU_SAMPLE_WAIT_PID, number_or_0(s, 7));
	xt_table_put(table, XT_CPU_SAMPLE_WAIT_TID, number_or_0(s, 8));
	xt_table_put(table, XT_CPU_SAMPLE_FLAGS, 0);
	xt_table_end_row(table);
}

static void do_account(struct script *s)
{
	put_account(s->log, word(s, 1), number(s, 2));
}

static void do_meta(struct script *s)
{
	put_meta(s->log, word(s, 1), word(s, 2));
	s->is_cpu_log |= !strcmp(word(s, 1), "log.kind") && !strcmp(word(s, 2), "cpu");
}

static const struct {
	const char *name;
	void (*run)(struct script *s);
} commands[] = {
	{"thread", do_thread},	   {"stream", do_stream},	{"stack", do_stack},
	{"call", do_call},	   {"kernel", do_kernel},	{"copy", do_transfer},
	{"set", do_transfer},	   {"node", do_node},		{"node_name", do_node_name},
	{"whole", do_whole},	   {"alloc", do_memory},	{"free", do_memory},
	{"push", do_range},	   {"pop", do_range},		{"start", do_range},
	{"end", do_range},	   {"mark", do_range},		{"flush", do_flush},
	{"account", do_account},   {"switch", do_switch},	{"payload", do_payload},
	{"name_thread", do_range}, {"name_category", do_range}, {"sample", do_sample},
	{"meta", do_meta},	   {"rate", do_rate},		{"api", do_api},
};

static void run_line(struct script *s, char *line)
{
	char *rest = NULL;

	s->word_count = 0;
	for (char *w = strtok_r(line, " \t\n", &rest); w && w[0] != '#';
	     w = strtok_r(NULL, " \t\n", &rest)) {
		if (s->word_count == WORDS_MAX)
			fail(s, "too many words");
		s->words[s->word_count++] = w;
	}
	if (!s->word_count)
		return;
	for (size_t c = 0; c < sizeof(commands) / sizeof(commands[0]); c++) {
		if (strcmp(commands[c].name, s->words[0]))
			continue;
		commands[c].run(s);
		return;
	}
	fail(s, "unknown command");
}

void make_script(struct log *log, uint64_t n)
{
	static struct script script;
	char line[1 << 14];

	(void)n;
	script.log = log;
	script.category = 3;
	script.payload_type = 1;
	script.payload = 42;
	while (fgets(line, sizeof(line), stdin)) {
		script.line++;
		run_line(&script, line);
	}
}
