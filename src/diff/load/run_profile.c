/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads run profiles. A profile may come from anywhere: reject whatever does not fit the format.
 * Rows are identified by keys, which lack the parts of a name that change from build to build.
 */
#include "diff/load/run_profile.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>

#include "log/base/compare.h"
#include "log/base/script_name.h"
#include "base/text.h"

/* Length without a place, "f (file.c:12)" or "f (file.py)". A file name contains a dot. */
static size_t without_place(const char *frame, size_t length)
{
	size_t open = length;

	if (!length || frame[length - 1] != ')')
		return length;
	while (open > 0 && frame[open - 1] != '(')
		open--;
	if (open < 2 || frame[open - 2] != ' ' || !memchr(frame + open, '.', length - open))
		return length;
	return open - 2;
}

/* Length without suffixes of compiler clones, which may end with a number. */
static size_t without_clones(const char *name, size_t length)
{
	static const char *const suffixes[] = {".isra", ".constprop", ".part",	    ".cold",
					       ".llvm", ".lto_priv",  ".localalias"};
	bool found = true;

	while (found) {
		size_t end = length;

		found = false;
		while (end > 0 && isdigit((unsigned char)name[end - 1]))
			end--;
		if (end > 0 && end < length && name[end - 1] == '.')
			end--;
		else
			end = length;
		for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]) && !found; i++) {
			size_t bytes = strlen(suffixes[i]);

			if (end > bytes && !memcmp(name + end - bytes, suffixes[i], bytes)) {
				length = end - bytes;
				found = true;
			}
		}
	}
	return length;
}

/* Length without the hash at the end of a Rust name, "::h0123456789abcdef". */
static size_t without_hash(const char *name, size_t length)
{
	if (length < 19 || memcmp(name + length - 19, "::h", 3) != 0)
		return length;
	for (size_t i = length - 16; i < length; i++)
		if (!isxdigit((unsigned char)name[i]))
			return length;
	return length - 19;
}

/* Length of the text to replace at this position, and its replacement. 0: keep the text. */
static size_t replaced(const char *text, const char **by)
{
	static const struct {
		const char *begin;
		char end;
		const char *by;
	} rules[] = {
		{"{lambda", '}', "{lambda}"},
		{"'lambda", '\'', "{lambda}"},
		{"<lambda", '>', "{lambda}"},
		{"{{closure", '}', "{closure}"},
		{"{closure", '}', "{closure}"},
		{"$_", '\0', "{lambda}"},
		{"[clone ", ']', ""},
		{"+0x", '\0', "+?"},
		{"0x", '\0', "?"},
	};

	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
		size_t length = strlen(rules[i].begin), depth = 1;

		if (!begins_with(text, rules[i].begin))
			continue;
		*by = rules[i].by;
		if (!rules[i].end) {
			while (isxdigit((unsigned char)text[length]))
				length++;
			return length;
		}
		if (rules[i].begin[0] == '\'') {
			const char *end = strchr(text + 1, '\'');

			return end ? (size_t)(end - text) + 1 : 0;
		}
		for (size_t at = 1; text[at]; at++) {
			depth += text[at] == rules[i].begin[0];
			depth -= text[at] == rules[i].end;
			if (!depth)
				return at + 1 +
				       (begins_with(rules[i].begin, "{{") && text[at + 1] == '}');
		}
	}
	return 0;
}

static bool has_counted_name(const char *name)
{
	return strstr(name, "triton_") || begins_with(name, "[NVTX ");
}

size_t frame_key(char *out, const char *frame)
{
	size_t length = without_place(frame, strlen(frame)), used = 0;
	bool counts = !has_counted_name(frame);

	length = without_hash(frame, length);
	for (size_t i = 0; i < length;) {
		const char *by = NULL;
		size_t bytes = replaced(frame + i, &by);

		if (bytes && i + bytes <= length) {
			memcpy(out + used, by, strlen(by));
			used += strlen(by);
			i += bytes;
		} else if (!counts && isdigit((unsigned char)frame[i])) {
			if (!used || out[used - 1] != '#')
				out[used++] = '#';
			i++;
		} else {
			out[used++] = frame[i++];
		}
	}
	used = without_clones(out, used);
	while (used && out[used - 1] == ' ')
		used--;
	out[used] = '\0';
	return used;
}

size_t frame_stem(char *out, const char *key)
{
	size_t used = 0;
	int depth = 0;

	for (const char *c = key; *c; c++) {
		bool is_operator = used >= 8 && !strncmp(out + used - 8, "operator", 8);

		if ((*c == '<' || *c == '(') && used && !is_operator)
			depth++;
		if (!depth)
			out[used++] = *c;
		if ((*c == '>' || *c == ')') && depth)
			depth--;
	}
	out[used] = '\0';
	return used;
}

#define DEPTH_MAX     4096
#define FRAMES_MAX    (UINT32_C(1) << 22) /* of all paths of a run */
#define KEY_BYTES_MAX (UINT32_C(1) << 28) /* of all keys of a run */
#define ROW_COLUMNS   11		  /* in version 1; later versions may have more */

/* The tree of frames of a document. */
struct tree {
	const char **names; /* for display */
	char **keys;	    /* of names */
	size_t name_count;
	uint32_t *parents; /* of nodes */
	uint32_t *node_names;
	size_t node_count;		/* including the root, node 0 */
	size_t frames_used, bytes_used; /* by all paths so far */
};

/* Copy a text without control characters. */
static char *plain_text(struct run_profile *p, const char *text, size_t limit_bytes)
{
	char *copy = arena_copy_text(p->memory, text, strlen(text));

	utf8_make_plain(copy, '?');
	shorten_text(copy, limit_bytes);
	return copy;
}

/* "" if there is no such text. */
static const char *text_of(struct run_profile *p, const cJSON *object, const char *member,
			   size_t limit_bytes)
{
	const char *text = json_member_text(object, member);

	return plain_text(p, text ? text : "", limit_bytes);
}

static double number_of(const cJSON *object, const char *member)
{
	const cJSON *item = json_member(object, member);

	return cJSON_IsNumber(item) ? item->valuedouble : NAN;
}

static uint64_t count_of(const cJSON *object, const char *member)
{
	double value = number_of(object, member);

	return value >= 0.0 && value < 0x1p63 ? (uint64_t)value : 0;
}

static void read_trust(struct run_profile *p, const cJSON *document)
{
	static const char *const words[] = {"complete", "degraded", "damaged"};
	const cJSON *trust = json_member(document, "trust"), *warning;
	const cJSON *warnings = json_member(trust, "warnings");
	const char *word = text_of(p, trust, "word", FIELD_BYTES_MAX);
	size_t room = (size_t)cJSON_GetArraySize(warnings);

	p->trust.word = TRUST_DAMAGED; /* do not trust an unknown word */
	for (unsigned w = 0; w < sizeof(words) / sizeof(words[0]); w++)
		if (!strcmp(word, words[w]))
			p->trust.word = (enum trust_word)w;
	p->trust.warnings = arena_alloc(p->memory, room * sizeof(*p->trust.warnings));
	cJSON_ArrayForEach(warning, warnings)
	{
		if (cJSON_IsString(warning))
			p->trust.warnings[p->trust.warning_count++] =
				plain_text(p, warning->valuestring, LINE_BYTES_MAX);
	}
}

/*
 * The process with the most iterations represents the run. Other processes start it, or are equal
 * ranks.
 */
static const cJSON *main_process(const cJSON *document)
{
	const cJSON *list = json_member(document, "processes"), *process;
	const cJSON *best = NULL;

	cJSON_ArrayForEach(process, list)
	{
		if (!best || count_of(process, "used_count") > count_of(best, "used_count"))
			best = process;
	}
	return best;
}

static void read_identity(struct run_profile *p, const cJSON *document)
{
	const cJSON *process = main_process(document), *device;
	const cJSON *devices = json_member(document, "devices");
	char title[FIELD_BYTES_MAX];

	p->program = text_of(p, process, "name", FIELD_BYTES_MAX);
	p->command = text_of(p, process, "command", LINE_BYTES_MAX);
	xt_script_title(title, sizeof(title), p->program, p->command);
	p->title = plain_text(p, title, FIELD_BYTES_MAX);
	p->machine.host = text_of(p, process, "host", FIELD_BYTES_MAX);
	p->machine.driver = text_of(p, process, "driver", FIELD_BYTES_MAX);
	p->machine.cupti = text_of(p, process, "cupti", FIELD_BYTES_MAX);
	p->selection = text_of(p, document, "selection", LINE_BYTES_MAX);
	p->iterations.kind = text_of(p, process, "iterations", FIELD_BYTES_MAX);
	p->iterations.name = text_of(p, process, "iteration_name", FIELD_BYTES_MAX);
	p->iterations.found_count = count_of(process, "found_count");
	p->iterations.warmup_count = count_of(process, "warmup_count");
	/* Processes whose iterations have nothing in common have no mean of one iteration. */
	if (number_of(document, "batch_count") != 0.0)
		p->iterations.used_count = count_of(process, "used_count");
	p->start_realtime_ns = count_of(process, "start_realtime_ns");
	p->machine.clock_mhz = number_of(document, "clock_mhz");
	p->machine.is_simulated = cJSON_IsTrue(json_member(document, "simulated_gpu"));
	p->machine.devices = arena_alloc(p->memory, (size_t)cJSON_GetArraySize(devices) *
							    sizeof(*p->machine.devices));
	cJSON_ArrayForEach(device, devices)
	{
		p->machine.devices[p->machine.device_count++] =
			text_of(p, device, "name", FIELD_BYTES_MAX);
	}
	p->machine.device = p->machine.device_count ? p->machine.devices[0] : "";
}

static void read_names(struct run_profile *p, struct tree *tree, const cJSON *names)
{
	const cJSON *name;
	size_t room = (size_t)cJSON_GetArraySize(names) + 1;

	tree->names = arena_alloc(p->memory, room * sizeof(*tree->names));
	tree->keys = arena_alloc(p->memory, room * sizeof(*tree->keys));
	cJSON_ArrayForEach(name, names)
	{
		const char *whole = cJSON_IsString(name) ? name->valuestring : "";
		char *text = arena_copy_text(p->memory, whole, strlen(whole));
		char *key = xt_malloc(FRAME_KEY_BOUND(strlen(text)));
		size_t n = tree->name_count++;

		utf8_make_plain(text, '?');
		tree->names[n] = text;
		tree->keys[n] = arena_copy_text(p->memory, key, frame_key(key, text));
		free(key);
		/*
		 * The key comes from the whole name: the hash in a shortened name covers its line.
		 */
		shorten_text(text, NAME_BYTES_MAX);
		shorten_text(tree->keys[n], NAME_BYTES_MAX);
	}
}

/* Reads pairs of parent and name. A parent precedes its children. */
static int read_nodes(struct run_profile *p, struct tree *tree, const cJSON *nodes)
{
	size_t count = (size_t)cJSON_GetArraySize(nodes), n = 0;
	const cJSON *item;

	tree->parents = arena_alloc(p->memory, (count / 2 + 1) * sizeof(*tree->parents));
	tree->node_names = arena_alloc(p->memory, (count / 2 + 1) * sizeof(*tree->node_names));
	tree->node_count = 1;
	cJSON_ArrayForEach(item, nodes)
	{
		size_t node = n / 2 + 1, limit = n % 2 ? tree->name_count : node;
		double value = cJSON_IsNumber(item) ? item->valuedouble : -1.0;

		if (!(value >= 0.0 && value < (double)limit))
			return -EINVAL;
		if (n++ % 2)
			tree->node_names[tree->node_count++] = (uint32_t)value;
		else
			tree->parents[node] = (uint32_t)value;
	}
	return 0;
}

static double cell(const cJSON **row)
{
	double value = cJSON_IsNumber(*row) ? (*row)->valuedouble : NAN;

	*row = *row ? (*row)->next : NULL;
	return value;
}

/* Set the frames and the key of the path that ends in a node. Returns 0 or -EINVAL. */
static int set_path(struct run_profile *p, struct tree *tree, double id,
		    struct profile_entry *entry)
{
	uint32_t node, depth = 0;
	const char **frames;
	size_t length = 0;
	char *key;

	if (!(id >= 1.0 && id < (double)tree->node_count))
		return -EINVAL;
	for (node = (uint32_t)id; node; node = tree->parents[node]) {
		length += strlen(tree->keys[tree->node_names[node]]) + 1;
		if (++depth > DEPTH_MAX)
			return -EINVAL;
	}
	/* A small document can refer to a long path many times: limit the total. */
	tree->frames_used += depth;
	tree->bytes_used += length;
	if (tree->frames_used > FRAMES_MAX || tree->bytes_used > KEY_BYTES_MAX)
		return -EINVAL;
	frames = arena_alloc(p->memory, depth * sizeof(*frames));
	key = arena_alloc(p->memory, length + 1);
	entry->frame_count = depth;
	for (node = (uint32_t)id; node; node = tree->parents[node])
		frames[--depth] = tree->names[tree->node_names[node]];
	entry->frames = frames;
	entry->key = key;
	depth = entry->frame_count;
	key += length;
	for (node = (uint32_t)id; node; node = tree->parents[node]) {
		const char *part = tree->keys[tree->node_names[node]];

		key -= strlen(part) + 1;
		memcpy(key, part, strlen(part));
		key[strlen(part)] = --depth + 1 == entry->frame_count ? '\0' : ';';
	}
	return 0;
}

static void set_name(struct run_profile *p, const char *shown, const char *key,
		     struct profile_entry *entry)
{
	const char **frames = arena_alloc(p->memory, sizeof(*frames));

	frames[0] = shown;
	entry->frames = frames;
	entry->frame_count = 1;
	entry->key = key;
}

static int set_identity(struct run_profile *p, struct tree *tree, const cJSON *id,
			struct profile_entry *entry)
{
	if (entry->level == LEVEL_TOTAL) {
		const char *name =
			cJSON_IsString(id) ? plain_text(p, id->valuestring, FIELD_BYTES_MAX) : NULL;

		if (!name)
			return -EINVAL;
		set_name(p, name, name, entry);
		return 0;
	}
	if (!cJSON_IsNumber(id))
		return -EINVAL;
	if (level_specs[entry->level].has_frames)
		return set_path(p, tree, id->valuedouble, entry);
	if (!(id->valuedouble >= 0.0 && id->valuedouble < (double)tree->name_count))
		return -EINVAL;
	set_name(p, tree->names[(size_t)id->valuedouble], tree->keys[(size_t)id->valuedouble],
		 entry);
	return 0;
}

/* Without iterations, the variation within a run says nothing about the variation between runs. */
static void clear_errors(struct profile_entry *entry)
{
	for (int m = 0; m < METRICS; m++) {
		struct quantity *q = &entry->quantities[m];

		q->typical = q->mean;
		q->error = q->residual = NAN;
	}
}

/* Errors in the document are relative to the mean. */
static int set_quantities(struct profile_entry *entry, bool has_iterations, const cJSON *item)
{
	struct quantity *value = &entry->quantities[METRIC_VALUE];
	struct quantity *count = &entry->quantities[METRIC_COUNT];
	struct quantity *each = &entry->quantities[METRIC_EACH];

	double typical;

	entry->whole_value = cell(&item);
	entry->whole_count = cell(&item);
	value->mean = cell(&item);
	count->mean = cell(&item);
	if ((isnan(value->mean) && !has_iterations) || entry->level == LEVEL_MEMORY ||
	    (entry->level == LEVEL_TOTAL && !strcmp(entry->key, "peak-memory"))) {
		value->mean = entry->whole_value;
		count->mean = entry->whole_count;
	}
	value->error = cell(&item) * fabs(value->mean);
	value->residual = cell(&item) * fabs(value->mean);
	count->error = count->residual = cell(&item) * fabs(count->mean);
	each->mean = count->mean > 0.0 ? value->mean / count->mean : NAN;
	each->error = cell(&item) * fabs(each->mean);
	each->residual = cell(&item) * fabs(each->mean);
	count->typical = count->mean;
	typical = cell(&item);
	value->typical = value->mean * (isnan(typical) ? 1.0 : typical);
	each->typical = each->mean * (isnan(typical) ? 1.0 : typical);
	/* Clock differences can make the launch latency of LEVEL_TOTAL negative. */
	if (!isfinite(value->typical) || isinf(value->error) || !isfinite(count->mean) ||
	    !isfinite(entry->whole_value) || !isfinite(entry->whole_count) ||
	    (entry->level != LEVEL_TOTAL && (value->typical < 0.0 || count->mean < 0.0)))
		return -EINVAL;
	if (!has_iterations)
		clear_errors(entry);
	return 0;
}

static int read_level(struct run_profile *p, struct tree *tree, enum level level, const cJSON *rows)
{
	const cJSON *row;

	cJSON_ArrayForEach(row, rows)
	{
		struct profile_entry *entry = &p->entries[p->entry_count];
		int error;

		if (cJSON_GetArraySize(row) < ROW_COLUMNS)
			return -EINVAL;
		entry->level = level;
		error = set_identity(p, tree, row->child, entry);
		if (!error && p->lacks_wall && level == LEVEL_TOTAL && !strcmp(entry->key, "wall"))
			continue;
		if (!error)
			error = set_quantities(entry, run_profile_has_iterations(p),
					       row->child->next);
		if (error)
			return error;
		p->entry_count++;
	}
	return 0;
}

COMPARE_BY(compare_entries, struct profile_entry, UP(level) UP_TEXT(key))

static double hypotenuse(double a, double b)
{
	return isnan(a) ? b : isnan(b) ? a : sqrt(a * a + b * b);
}

/*
 * Adds b to a. Two places can have the same key, such as two lines of a function. Show the more
 * expensive one.
 */
static void add_entry(struct profile_entry *a, const struct profile_entry *b)
{
	struct quantity *each = &a->quantities[METRIC_EACH];
	double chunks;

	if (b->whole_value > a->whole_value) {
		a->frames = b->frames;
		a->frame_count = b->frame_count;
	}
	a->whole_value += b->whole_value;
	a->whole_count += b->whole_count;
	for (int m = METRIC_VALUE; m <= METRIC_COUNT; m++) {
		struct quantity *sum = &a->quantities[m];
		const struct quantity *part = &b->quantities[m];

		sum->mean += part->mean;
		sum->typical += part->typical;
		sum->error = hypotenuse(sum->error, part->error);
		sum->residual = hypotenuse(sum->residual, part->residual);
	}
	chunks = a->quantities[METRIC_COUNT].mean;
	each->mean = chunks > 0.0 ? a->quantities[METRIC_VALUE].mean / chunks : NAN;
	each->typical = chunks > 0.0 ? a->quantities[METRIC_VALUE].typical / chunks : NAN;
	each->error = hypotenuse(each->error, b->quantities[METRIC_EACH].error);
	each->residual = hypotenuse(each->residual, b->quantities[METRIC_EACH].residual);
}

static void sort_entries(struct run_profile *p)
{
	size_t kept = 0;

	qsort(p->entries, p->entry_count, sizeof(*p->entries), compare_entries);
	for (size_t i = 0; i < p->entry_count; i++) {
		if (kept && !compare_entries(&p->entries[kept - 1], &p->entries[i]))
			add_entry(&p->entries[kept - 1], &p->entries[i]);
		else
			p->entries[kept++] = p->entries[i];
	}
	p->entry_count = kept;
}

/* The number of iterations, as a row like any other. */
static void add_iterations(struct run_profile *p)
{
	struct profile_entry *entry = &p->entries[p->entry_count];
	double count = (double)p->iterations.found_count;

	if (!run_profile_has_iterations(p))
		return;
	*entry = (struct profile_entry){.level = LEVEL_TOTAL,
					.whole_value = count,
					.whole_count = count,
					.quantities = {
						[METRIC_VALUE] = {.mean = count, .typical = count},
						[METRIC_COUNT] = {.mean = count, .typical = count},
						[METRIC_EACH] = {.mean = 1.0, .typical = 1.0},
					}};
	p->entry_count++;
	set_name(p, "iterations", "iterations", entry);
}

static int read_entries(struct run_profile *p, const cJSON *document)
{
	struct tree tree = {0};
	size_t room = 1; /* for add_iterations() */
	int error;

	read_names(p, &tree, json_member(document, "names"));
	error = read_nodes(p, &tree, json_member(document, "nodes"));
	for (int level = 0; level < LEVELS; level++)
		room += (size_t)cJSON_GetArraySize(
			json_member(document, level_specs[level].document));
	p->entries = arena_alloc(p->memory, room * sizeof(*p->entries));
	for (int level = 0; level < LEVELS && !error; level++)
		error = read_level(p, &tree, (enum level)level,
				   json_member(document, level_specs[level].document));
	if (error)
		return error;
	add_iterations(p);
	sort_entries(p);
	return 0;
}

static int read_document(struct run_profile *p, const cJSON *document, struct problems *problems)
{
	const char *format = json_member_text(document, "format");
	double version = number_of(document, "version");
	int error;

	if (!format || strcmp(format, RUN_PROFILE_FORMAT) != 0) {
		problems_add(problems, "%s is not a run profile", p->origin);
		return -EINVAL;
	}
	if (!(version >= 1.0)) {
		problems_add(problems, "%s: invalid version of the run profile", p->origin);
		return -EINVAL;
	}
	if (version > RUN_PROFILE_VERSION) {
		problems_add(
			problems,
			"%s is a run profile of version %g; this xtrace reads up to version %d",
			p->origin, version, RUN_PROFILE_VERSION);
		return -EINVAL;
	}
	p->lacks_wall = version < WALL_VERSION;
	read_identity(p, document);
	read_trust(p, document);
	error = read_entries(p, document);
	if (error)
		problems_add(problems, "%s: the run profile is damaged", p->origin);
	return error;
}

void run_profile_free(struct run_profile *p)
{
	if (!p)
		return;
	arena_free(p->memory);
	free_all(p->origin, p->document.text, p);
}

struct run_profile *run_profile_read(const char *document, size_t document_bytes,
				     const char *origin, struct problems *problems)
{
	struct run_profile *p = xt_calloc(1, sizeof(*p));
	cJSON *json = json_parse(document, document_bytes);
	int error = -EINVAL;

	p->memory = arena_new();
	p->origin = xt_strdup(origin);
	p->document.text = xt_malloc(document_bytes + 1);
	memcpy(p->document.text, document, document_bytes);
	p->document.bytes = document_bytes;
	if (json)
		error = read_document(p, json, problems);
	else
		problems_add(problems, "%s is not valid JSON", origin);
	cJSON_Delete(json);
	if (!error)
		return p;
	run_profile_free(p);
	return NULL;
}

const char *run_profile_devices(const struct run_profile *p, char *out, size_t out_bytes)
{
	size_t used = 0;

	out[0] = '\0';
	for (size_t d = 0; d < p->machine.device_count && used < out_bytes; d++)
		used += (size_t)snprintf(out + used, out_bytes - used, "%s%s", d ? " + " : "",
					 p->machine.devices[d]);
	return out;
}

const struct profile_entry *run_profile_find(const struct run_profile *p, enum level level,
					     const char *key)
{
	struct profile_entry wanted = {.level = level, .key = key};

	return SEARCH(&wanted, p->entries, p->entry_count, compare_entries);
}

#define STALLS_MAX 0.05 /* of the whole */

/*
 * The sum of n iterations and of what came before and after them. Only iterations tell how much it
 * varies, and what of it was stalls. These are left out of what is tested, but cannot hide a large
 * change.
 */
static void extend(struct quantity *q, double whole, double n)
{
	double stalls = fmax((q->mean - q->typical) * n, 0.0);

	*q = (struct quantity){
		.mean = whole,
		.typical = whole - fmin(stalls, STALLS_MAX * whole),
		.error = q->mean > 0.0 ? q->error * n : NAN,
		.residual = q->mean > 0.0 ? q->residual * n : NAN,
	};
}

static void divide(struct quantity *q, double by)
{
	q->mean /= by;
	q->typical /= by;
	q->error /= by;
	q->residual /= by;
}

/* The number of instances of a range. 1 if it is unknown. */
static double instances_of(const struct run_profile *profile, const struct profile_entry *entry)
{
	const struct profile_entry *span = run_profile_find(profile, LEVEL_SPAN, entry->key);

	return span && span->whole_count > 0.0 ? span->whole_count : 1.0;
}

static void use_whole(const struct run_profile *profile, struct profile_entry *entry)
{
	struct quantity *q = entry->quantities;
	double n = (double)profile->iterations.used_count, count = entry->whole_count;

	/* A mean by item has the errors of its sum. */
	q[METRIC_EACH].mean *= q[METRIC_COUNT].mean;
	q[METRIC_EACH].typical *= q[METRIC_COUNT].mean;
	q[METRIC_EACH].error *= q[METRIC_COUNT].mean;
	q[METRIC_EACH].residual *= q[METRIC_COUNT].mean;
	extend(&q[METRIC_VALUE], entry->whole_value, n);
	extend(&q[METRIC_EACH], entry->whole_value, n);
	extend(&q[METRIC_COUNT], count, n);
	divide(&q[METRIC_EACH], count > 0.0 ? count : NAN);
	if (entry->level == LEVEL_RANGE || entry->level == LEVEL_SPAN) {
		divide(&q[METRIC_VALUE], instances_of(profile, entry));
		divide(&q[METRIC_COUNT], instances_of(profile, entry));
	}
}

void run_profile_use_whole(struct run_profile *profile)
{
	/* Without iterations, values are of the whole run already. */
	bool has_iterations = run_profile_has_iterations(profile);

	for (size_t i = 0; i < profile->entry_count; i++) {
		struct profile_entry *entry = &profile->entries[i];

		if (has_iterations && !level_is_of_run(entry->level, entry->key))
			use_whole(profile, entry);
		else if (entry->level == LEVEL_RANGE || entry->level == LEVEL_SPAN)
			for (int m = METRIC_VALUE; m <= METRIC_COUNT; m++)
				divide(&entry->quantities[m], instances_of(profile, entry));
	}
	profile->iterations.is_whole = true;
}

void run_set_add(struct run_set *set, struct run_profile *run)
{
	xt_append(set->runs, set->count, set->capacity, run);
}

void run_set_free(struct run_set *set)
{
	for (size_t i = 0; i < set->count; i++)
		run_profile_free(set->runs[i]);
	free(set->runs);
	problems_free(&set->notes);
	*set = (struct run_set){0};
}
