/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The baseline file. Profiles of a set are similar, so they are compressed together, one JSON line
 * each. Labels are often commits, which people shorten.
 */
#include "diff/load/baseline.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>
#include <zstd_errors.h>

#include "base/memory.h"
#include "base/json.h"
#include "diff/base/text.h"
#include "log/base/compare.h"
#include "log/base/spellcheck.h"
#include "page/base64.h"
#include "base/text.h"

#define PACK_LEVEL 19

static void free_acceptance(struct baseline_acceptance *entry)
{
	free_all(entry->label, entry->row, entry->reason);
}

void baseline_acceptances_free(struct baseline_acceptances *accepted)
{
	for (size_t a = 0; a < accepted->count; a++)
		free_acceptance(&accepted->list[a]);
	free(accepted->list);
	*accepted = (struct baseline_acceptances){0};
}

/* The caller frees the text, which is made safe to print. */
static char *plain_text(const char *text, size_t bytes_max)
{
	char *copy = xt_strdup(text);

	utf8_make_plain(copy, '?');
	shorten_text(copy, bytes_max);
	return copy;
}

void baseline_accept(struct baseline_acceptances *accepted, const char *label, uint64_t time_ns,
		     const char *row, const char *reason)
{
	struct baseline_acceptance entry = {
		.label = plain_text(label, FIELD_BYTES_MAX),
		.time_ns = time_ns,
		.row = plain_text(row, NAME_BYTES_MAX),
		.reason = plain_text(reason, LINE_BYTES_MAX),
	};
	size_t at = 0;

	list_reserve(*accepted, accepted->count + 1);
	while (at < accepted->count && (accepted->list[at].time_ns != time_ns ||
					strcmp(accepted->list[at].label, entry.label) != 0 ||
					strcmp(accepted->list[at].row, entry.row) != 0))
		at++;
	if (at < accepted->count)
		free_acceptance(&accepted->list[at]);
	else
		accepted->count++;
	accepted->list[at] = entry;
}

void baseline_remove_acceptance(struct baseline *baseline, size_t index)
{
	struct baseline_acceptances *accepted = &baseline->accepted;

	free_acceptance(&accepted->list[index]);
	array_remove(accepted->list, accepted->count, index);
}

static bool is_accepted_at(const struct baseline_acceptance *accepted,
			   const struct baseline_set *set)
{
	return accepted->time_ns == set->time_ns && !strcmp(accepted->label, set->label);
}

static void free_set(struct baseline_set *set)
{
	free(set->label);
	run_set_free(&set->runs);
}

void baseline_free(struct baseline *baseline)
{
	for (size_t s = 0; s < baseline->count; s++)
		free_set(&baseline->sets[s]);
	free(baseline->sets);
	baseline_acceptances_free(&baseline->accepted);
	*baseline = (struct baseline){0};
}

static void remove_set(struct baseline *baseline, size_t place)
{
	free_set(&baseline->sets[place]);
	array_remove(baseline->sets, baseline->count, place);
}

void baseline_keep(struct baseline *baseline, size_t count)
{
	while (baseline->count > count)
		remove_set(baseline, 0);
}

bool baseline_remove_label(struct baseline *baseline, const char *label)
{
	struct baseline_acceptances *accepted = &baseline->accepted;
	size_t before = baseline->count + accepted->count, kept = 0;

	for (size_t s = baseline->count; s-- > 0;)
		if (!strcmp(baseline->sets[s].label, label))
			remove_set(baseline, s);
	for (size_t a = 0; a < accepted->count; a++)
		if (strcmp(accepted->list[a].label, label) != 0)
			accepted->list[kept++] = accepted->list[a];
		else
			free_acceptance(&accepted->list[a]);
	accepted->count = kept;
	return baseline->count + kept < before;
}

static uint64_t first_start_ns(const struct run_set *runs)
{
	uint64_t first_ns = UINT64_MAX;

	for (size_t r = 0; r < runs->count; r++)
		first_ns = smaller(first_ns, runs->runs[r]->start_realtime_ns);
	return runs->count ? first_ns : 0;
}

static bool is_before(const struct baseline_set *a, const struct baseline_set *b)
{
	return (ORDER(a->time_ns, b->time_ns) ?: strcmp(a->label, b->label)) < 0;
}

void baseline_add(struct baseline *baseline, const char *label, struct run_set *runs)
{
	struct baseline_set set = {.label = xt_strdup(label), .time_ns = first_start_ns(runs)};
	size_t place = 0;

	for (size_t s = baseline->count; s-- > 0;)
		if ((*label && !strcmp(baseline->sets[s].label, label)) ||
		    (set.time_ns && baseline->sets[s].time_ns == set.time_ns))
			remove_set(baseline, s);
	for (size_t a = 0; *label && a < baseline->accepted.count; a++)
		if (!strcmp(baseline->accepted.list[a].label, label))
			baseline->accepted.list[a].time_ns = set.time_ns;
	xt_grow(baseline->sets, baseline->capacity, baseline->count + 1);
	while (place < baseline->count && !is_before(&set, &baseline->sets[place]))
		place++;
	set.runs = *runs;
	*runs = (struct run_set){0};
	array_insert(baseline->sets, baseline->count, place, set);
}

/*
 * Minify the documents of a set and end each with a newline. The caller frees the text; NULL if out
 * of memory.
 */
static char *join_documents(const struct run_set *runs, size_t *bytes_out)
{
	size_t room = 1, used = 0;
	char *text;

	for (size_t r = 0; r < runs->count; r++)
		room += runs->runs[r]->document.bytes + 2;
	text = xt_malloc(room);
	for (size_t r = 0; r < runs->count; r++) {
		memcpy(text + used, runs->runs[r]->document.text, runs->runs[r]->document.bytes);
		text[used + runs->runs[r]->document.bytes] = '\0';
		cJSON_Minify(text + used);
		used += strlen(text + used);
		text[used++] = '\n';
	}
	*bytes_out = used;
	return text;
}

/* Compress the documents of a set and encode them as base64. The caller frees the text. */
static char *pack(const struct run_set *runs)
{
	size_t plain_bytes = 0, packed_bytes, bound;
	char *plain = join_documents(runs, &plain_bytes), *text;
	void *packed = NULL;

	bound = ZSTD_compressBound(plain_bytes);
	packed = xt_malloc(bound);
	packed_bytes = ZSTD_compress(packed, bound, plain, plain_bytes, PACK_LEVEL);
	/* There is enough room, so only memory for zstd's own state can be missing. */
	if (ZSTD_isError(packed_bytes))
		xt_out_of_memory(0);
	text = base64_text(packed, packed_bytes);
	free_all(packed, plain);
	return text;
}

/* Undoes pack(). The caller frees the text. NULL if it is damaged or too large. */
static char *unpack(const char *text, uint64_t bytes_max, size_t *bytes_out)
{
	size_t packed_bytes, got;
	unsigned long long size_bytes;
	void *packed = base64_bytes(text, &packed_bytes);
	char *plain = NULL;

	if (!packed)
		return NULL;
	size_bytes = ZSTD_getFrameContentSize(packed, packed_bytes);
	/* An unknown size is larger than any limit. */
	if (size_bytes > 0 && size_bytes <= bytes_max)
		plain = xt_malloc((size_t)size_bytes);
	if (plain) {
		got = ZSTD_decompress(plain, (size_t)size_bytes, packed, packed_bytes);
		if (ZSTD_isError(got) && ZSTD_getErrorCode(got) == ZSTD_error_memory_allocation)
			xt_out_of_memory(0);
		if (ZSTD_isError(got) || got != size_bytes) {
			free(plain);
			plain = NULL;
		}
	}
	*bytes_out = (size_t)size_bytes;
	free(packed);
	return plain;
}

static int read_documents(struct run_set *runs, const char *text, size_t bytes, const char *origin,
			  struct problems *problems)
{
	const char *end = text + bytes, *newline;

	while (text < end && (newline = memchr(text, '\n', (size_t)(end - text)))) {
		struct run_profile *run =
			run_profile_read(text, (size_t)(newline - text), origin, problems);

		if (!run)
			return -EINVAL;
		run_set_add(runs, run);
		text = newline + 1;
	}
	return 0;
}

int baseline_unpack(struct run_set *runs, const struct baseline_packed_set *set, uint64_t *room,
		    const char *origin, struct problems *problems)
{
	size_t bytes, before = runs->count;
	char *text = set->profiles ? unpack(set->profiles, *room, &bytes) : NULL;
	int error = text ? 0 : -EINVAL;

	if (!error) {
		*room -= bytes;
		error = read_documents(runs, text, bytes, origin, problems);
	}
	if (!error && runs->count == before)
		error = -EINVAL;
	if (error == -EINVAL)
		problems_add(problems, "%s: the set '%s' is damaged", origin, set->label);
	free(text);
	return error;
}

/* A member of a JSON object; "" if it is missing. */
static const char *text_of(const cJSON *object, const char *key)
{
	const char *text = json_member_text(object, key);

	return text ? text : "";
}

static void read_accepted(struct baseline_acceptances *accepted, const cJSON *root)
{
	const cJSON *entry;

	cJSON_ArrayForEach(entry, json_member(root, "accepted"))
	{
		const char *reason = text_of(entry, "reason");

		if (*reason)
			baseline_accept(accepted, text_of(entry, "label"),
					strtoull(text_of(entry, "time_ns"), NULL, 10),
					text_of(entry, "row"), reason);
	}
}

static int visit_set(const cJSON *item,
		     int (*visit)(void *context, const struct baseline_packed_set *set),
		     void *context)
{
	char *label = json_member_text(item, "label");
	struct baseline_packed_set set = {.label = label ? label : "",
					  .profiles = json_member_text(item, "profiles")};

	/* The label is printed: remove terminal escapes. */
	if (label) {
		utf8_make_plain(label, '?');
		shorten_text(label, FIELD_BYTES_MAX);
	}
	return visit(context, &set);
}

int baseline_visit(const char *document, size_t document_bytes, const char *origin,
		   struct problems *problems,
		   int (*visit)(void *context, const struct baseline_packed_set *set),
		   void *context, struct baseline_acceptances *accepted)
{
	cJSON *root = json_parse(document, document_bytes);
	const cJSON *version = json_member(root, "version"), *item;
	const char *format = json_member_text(root, "format");
	int error = 0;

	if (!format || strcmp(format, BASELINE_FORMAT) || !cJSON_IsNumber(version) ||
	    !(version->valuedouble >= 1.0)) {
		problems_add(problems, "%s is not a baseline", origin);
		error = -EINVAL;
	} else if (version->valuedouble > BASELINE_VERSION) {
		problems_add(problems,
			     "%s is a baseline of version %.0f; this xtrace reads up to version %d",
			     origin, version->valuedouble, BASELINE_VERSION);
		error = -EINVAL;
	}
	if (!error)
		cJSON_ArrayForEach(item, json_member(root, "sets"))
		{
			if (!error && !cJSON_IsNull(item))
				error = visit_set(item, visit, context);
		}
	if (!error)
		read_accepted(accepted, root);
	cJSON_Delete(root);
	return error;
}

/* Reads all sets into a baseline. */
struct reading {
	struct baseline *baseline;
	const char *origin;
	struct problems *problems;
	uint64_t room;
};

static int read_set(void *context, const struct baseline_packed_set *packed)
{
	struct reading *reading = context;
	struct run_set runs = {0};
	int error =
		baseline_unpack(&runs, packed, &reading->room, reading->origin, reading->problems);

	if (!error)
		baseline_add(reading->baseline, packed->label, &runs);
	run_set_free(&runs);
	return error;
}

int baseline_read(struct baseline *baseline, const char *document, size_t document_bytes,
		  const char *origin, struct problems *problems)
{
	struct reading reading = {baseline, origin, problems, BASELINE_ROOM};
	int error;

	*baseline = (struct baseline){0};
	error = baseline_visit(document, document_bytes, origin, problems, read_set, &reading,
			       &baseline->accepted);
	if (!error && !baseline->count) {
		problems_add(problems, "%s: the baseline has no runs", origin);
		error = -EINVAL;
	}
	return error;
}

static void put_member(struct output *out, const char *key, const char *text)
{
	json_string(&(struct json){.out = out}, key, text);
	output_char(out, ',');
}

/* Writes one line for each accepted change. Without any, the bytes are those of older versions. */
static void put_accepted(struct output *out, const struct baseline_acceptances *accepted)
{
	if (!accepted->count)
		return;
	output_string(out, ",\n\"accepted\":[");
	for (size_t a = 0; a < accepted->count; a++) {
		output_string(out, "\n{");
		put_member(out, "label", accepted->list[a].label);
		put_member(out, "row", accepted->list[a].row);
		put_member(out, "reason", accepted->list[a].reason);
		/* A number of JSON cannot hold 64 bits. */
		output_format(out, "\"time_ns\":\"%" PRIu64 "\"},", accepted->list[a].time_ns);
	}
	output_string(out, "\nnull\n]");
}

/* Writes one line. The members before "profiles" let people review the diff of a baseline. */
static void put_set(struct output *out, const struct baseline_set *set)
{
	const struct run_profile *run = set->runs.runs[0];
	char *packed = pack(&set->runs);

	output_char(out, '{');
	put_member(out, "label", set->label);
	put_member(out, "time", text_time(set->time_ns, "%Y-%m-%dT%H:%M:%SZ"));
	put_member(out, "program", run->program);
	put_member(out, "device", run->machine.device);
	output_format(out, "\"runs\":%zu,\"profiles\":\"%s\"},\n", set->runs.count, packed);
	free(packed);
}

int baseline_write(const struct baseline *baseline, const char *path)
{
	struct output out;
	int error = output_open_file(&out, path);

	if (error)
		return error;
	output_format(&out, "{\"format\":\"%s\",\n\"version\":%d,\n\"sets\":[\n", BASELINE_FORMAT,
		      BASELINE_VERSION);
	for (size_t s = 0; s < baseline->count; s++)
		put_set(&out, &baseline->sets[s]);
	/*
	 * The last element is null, so each line of a set ends with a comma and merges do not
	 * conflict.
	 */
	output_string(&out, "null\n]");
	put_accepted(&out, &baseline->accepted);
	output_string(&out, "}\n");
	return output_commit(&out);
}

static void note_accepted(struct run_set *side, const struct baseline *baseline,
			  const struct baseline_set *set)
{
	for (size_t a = 0; a < baseline->accepted.count; a++) {
		const struct baseline_acceptance *entry = &baseline->accepted.list[a];

		if (is_accepted_at(entry, set))
			problems_add(&side->notes, "the change%s%s at %s is accepted: %s",
				     entry->row[0] ? " of " : "", entry->row,
				     set->label[0] ? set->label : "a set without label",
				     entry->reason);
	}
}

void baseline_read_side(struct run_set *set, const char *document, size_t document_bytes,
			const char *origin, struct problems *problems)
{
	struct baseline baseline;
	int error = baseline_read(&baseline, document, document_bytes, origin, problems);

	/* The newest set is the side; older sets only contribute to the noise estimate. */
	for (size_t s = baseline.count; !error && s-- > 0;) {
		struct run_set *runs = &baseline.sets[s].runs;

		for (size_t r = 0; r < runs->count; r++) {
			runs->runs[r]->history = (uint32_t)(baseline.count - 1 - s);
			run_set_add(set, runs->runs[r]);
		}
		runs->count = 0;
		note_accepted(set, &baseline, &baseline.sets[s]);
	}
	baseline_free(&baseline);
}

#define LABELS_MAX 10 /* that are listed */

static bool is_beginning(const struct baseline_set *set, const char *label)
{
	return *label && begins_with(set->label, label);
}

const struct baseline_set *baseline_find_label(const struct baseline *baseline, const char *label)
{
	const struct baseline_set *found = NULL;
	size_t count = 0;

	for (size_t s = baseline->count; *label && s-- > 0;)
		if (!strcmp(baseline->sets[s].label, label))
			return &baseline->sets[s];
	for (size_t s = 0; s < baseline->count; s++)
		if (is_beginning(&baseline->sets[s], label)) {
			found = &baseline->sets[s];
			count++;
		}
	return count == 1 ? found : NULL;
}

/* Lists the newest labels that begin with a text. NULL if there are none. See text_print(). */
static const char *list_labels(const struct baseline *baseline, const char *heading,
			       const char *beginning)
{
	const char *text = heading;
	size_t count = 0;

	for (size_t s = baseline->count; s-- > 0;) {
		const char *label = baseline->sets[s].label;

		if (!*label || (*beginning && !is_beginning(&baseline->sets[s], beginning)))
			continue;
		if (++count <= LABELS_MAX)
			text = text_print("%s%s %s", text, count > 1 ? "," : "", label);
	}
	if (count > LABELS_MAX)
		text = text_print("%s and %zu more", text, count - LABELS_MAX);
	return count ? text : NULL;
}

const char *baseline_advise_label(const struct baseline *baseline, const char *label)
{
	struct suggestion near = {.name = label, .length = strlen(label)};
	const char *list =
		*label ? list_labels(baseline, "several labels begin with it:", label) : NULL;

	if (list)
		return list;
	for (size_t s = baseline->count; s-- > 0;)
		suggest_consider(&near, baseline->sets[s].label);
	if (near.best && *near.best)
		return text_print("did you mean '%s'?", near.best);
	list = list_labels(baseline, "its labels are", "");
	return list ? list : "its sets have no labels";
}
