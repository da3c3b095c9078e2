/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files, directories and git branches. A point has the means over the runs of a set, and the
 * properties of its first run. Output and input of git are memory files, so a full pipe cannot
 * block.
 */
#include "diff/history/sources.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "cli/command.h"
#include "diff/base/text.h"
#include "diff/compare/row_text.h"
#include "diff/load/baseline.h"
#include "log/base/compare.h"

#define NAME_COLUMNS 110
#define TEXT_BYTES   512

/* Writes the id of a content. */
static void point_id(char out[ID_BYTES], const char *content, size_t content_bytes)
{
	snprintf(out, ID_BYTES, "%016" PRIx64, hash_text(content, content_bytes));
}

/* The same for the documents of some runs. */
static void point_id_of_runs(char out[ID_BYTES], struct run_profile *const *runs, size_t count)
{
	uint64_t sum = 0;

	/* The order of the files of a directory is not part of the content. */
	for (size_t r = 0; r < count; r++)
		sum += hash_text(runs[r]->document.text, runs[r]->document.bytes);
	snprintf(out, ID_BYTES, "%016" PRIx64, sum);
}

static void set_properties(struct history *h, struct history_point *point,
			   const struct run_profile *run)
{
	char devices[TEXT_BYTES];
	const char *const texts[PROPERTIES] = {
		[PROPERTY_PROGRAM] = run->title[0] ? run->title : run->program,
		[PROPERTY_FILTERS] = run->selection,
		[PROPERTY_GPU] = run_profile_devices(run, devices, TEXT_BYTES),
		[PROPERTY_HOST] = run->machine.host,
		[PROPERTY_DRIVER] = run->machine.driver,
		[PROPERTY_CLOCK] = isnan(run->machine.clock_mhz)
					   ? ""
					   : text_print("%.0f MHz", run->machine.clock_mhz),
		[PROPERTY_CUPTI] = run->machine.cupti,
		[PROPERTY_COMMAND] = run->command,
		[PROPERTY_ITERATIONS] =
			text_print("%s%s%s", run->iterations.kind,
				   run->iterations.name[0] ? " " : "", run->iterations.name),
		[PROPERTY_ITERATION_COUNT] = text_print("%" PRIu64, run->iterations.found_count),
	};

	for (int p = 0; p < PROPERTIES; p++)
		point->properties[p] = history_text(h, texts[p]);
}

static bool check_run(const struct run_profile *run, struct problems *problems)
{
	const struct profile_entry *gpu = run_profile_find(run, LEVEL_TOTAL, "gpu-time");

	if (run->trust.word != TRUST_COMPLETE)
		problems_add(problems, "cannot use %s: events are missing in it", run->origin);
	else if (!gpu || !(gpu->whole_count > 0.0))
		problems_add(problems, "cannot use %s: no GPU work was recorded", run->origin);
	else
		return true;
	return false;
}

/* Adds the share of one run to the sums of its rows. */
static void add_entry(struct history *h, const struct profile_entry *entry, double share,
		      struct history_value **values, size_t *room, size_t *count)
{
	const struct comparison_row shown = {
		.level = entry->level, .key = entry->key, .shown = {[SIDE_NEW] = entry}};
	size_t row = history_row_at(h, entry->level, entry->key, row_name(&shown, NAME_COLUMNS));
	struct history_value *value;

	xt_grow(*values, *room, row + 1);
	for (; *count <= row; ++*count)
		(*values)[*count] = (struct history_value){.value = NAN};
	value = &(*values)[row];
	if (isnan(value->value))
		value->value = 0.0;
	value->value += share * entry->quantities[METRIC_VALUE].typical;
	value->count += share * entry->quantities[METRIC_COUNT].mean;
}

/* Rounds as the index does, so that a run means the same whether it is new or known. */
static double round_value(double value)
{
	char text[32];

	snprintf(text, sizeof(text), "%.9g", value);
	return strtod(text, NULL);
}

/*
 * Adds the mean of the runs as a point with this id. Refuses incomplete runs and runs without GPU
 * work: adds a problem and returns false.
 */
static bool point_add(struct history *h, const char *id, struct run_profile *const *runs,
		      size_t count)
{
	struct history_value *values = NULL;
	struct history_point *point;
	uint64_t time_ns = UINT64_MAX;
	size_t room = 0, value_count = 0;

	for (size_t r = 0; r < count; r++) {
		if (!check_run(runs[r], &h->problems)) {
			free(values);
			return false;
		}
		time_ns = smaller(time_ns, runs[r]->start_realtime_ns);
		for (size_t e = 0; e < runs[r]->entry_count; e++)
			add_entry(h, &runs[r]->entries[e], 1.0 / (double)count, &values, &room,
				  &value_count);
	}
	point = history_add_point(h, id);
	point->time_ns = time_ns;
	point->run_count = (uint32_t)count;
	point->values = arena_alloc(h->memory, value_count * sizeof(*values));
	point->value_count = value_count;
	for (size_t v = 0; v < value_count; v++)
		point->values[v] = (struct history_value){round_value(values[v].value),
							  round_value(values[v].count)};
	set_properties(h, point, runs[0]);
	free(values);
	return true;
}

/* Commits, and in each the version of a file. All zeros is empty. */
struct git_versions {
	struct git_version {
		char *commit;  /* hash, in full */
		char *object;  /* hash of the content; NULL: of no file */
		uint64_t rank; /* position, from 1 */
	} * list;
	size_t count, capacity;
};

#define ARGUMENTS_MAX 64

/* Runs git. The caller frees *text_out, which is terminated. Returns 0, -ENOENT or -errno. */
static int run_git(const char *const *arguments, int input, char **text_out, size_t *bytes_out)
{
	int output = memfd_create("xtrace git", MFD_CLOEXEC), error;
	pid_t pid;

	*text_out = NULL;
	*bytes_out = 0;
	if (output < 0)
		return -errno;
	pid = subprocess_start_program(arguments, input, output);
	error = pid < 0 ? pid : subprocess_wait(pid) ? -ENOENT : 0;
	if (!error) {
		*text_out = file_read(output, bytes_out);
		error = *text_out ? 0 : -errno;
	}
	close(output);
	return error;
}

static void add_version(struct git_versions *versions, const char *commit, const char *object)
{
	uint64_t rank = versions->count + 1;

	list_append(*versions, (struct git_version){xt_strdup(commit),
						    object ? xt_strdup(object) : NULL, rank});
}

static void git_versions_free(struct git_versions *versions)
{
	for (size_t v = 0; v < versions->count; v++)
		free_all(versions->list[v].commit, versions->list[v].object);
	free(versions->list);
}

/* Reads one line of git log: a commit, or ":MODE MODE OLD NEW STATUS\tPATH" of a changed file. */
static void read_line(char *line, const char **commit, struct git_versions *versions)
{
	char *object = line;

	if (*line && *line != ':') {
		*commit = line;
		return;
	}
	if (!*line || !*commit)
		return;
	for (int field = 0; field < 3 && object; field++) {
		object = strchr(object, ' ');
		object += object != NULL;
	}
	if (!object)
		return;
	object[strcspn(object, " ")] = '\0';
	if (!strspn(object, "0") || object[strspn(object, "0")])
		add_version(versions, *commit, object);
}

/*
 * Lists the versions of a file on a branch, oldest first, along the first parents. Returns 0 or
 * -errno, -ENOENT if git, the repository, the branch or the file is missing. Free the list in any
 * case.
 */
static int git_versions(struct git_versions *versions, const char *branch, const char *path)
{
	const char *const arguments[] = {"git",		 "--literal-pathspecs",
					 "log",		 "--first-parent",
					 "-m",		 "--reverse",
					 "--raw",	 "--no-abbrev",
					 "--no-renames", "--format=%H",
					 branch,	 "--",
					 path,		 NULL};
	const char *commit = NULL;
	char *text, *rest, *line;
	size_t bytes;
	int error;

	if (*branch == '-')
		return -ENOENT;
	error = run_git(arguments, -1, &text, &bytes);
	rest = text;
	while (!error && rest && (line = strsep(&rest, "\n")))
		read_line(line, &commit, versions);
	free(text);
	return error ? error : versions->count ? 0 : -ENOENT;
}

/* "HASH blob SIZE\nCONTENT\n" for each object, or "HASH missing\n". */
static int split_objects(char *text, size_t bytes, size_t count, char **contents, size_t *sizes)
{
	char *end = text + bytes;

	for (size_t i = 0; i < count; i++) {
		char *newline = memchr(text, '\n', (size_t)(end - text));
		unsigned long long size;

		if (!newline)
			return -ENOENT;
		*newline = '\0';
		text += strcspn(text, " ");
		if (sscanf(text, " blob %llu", &size) == 1 &&
		    size < (unsigned long long)(end - newline)) {
			contents[i] = xt_malloc((size_t)size + 1);
			memcpy(contents[i], newline + 1, (size_t)size);
			sizes[i] = (size_t)size;
			newline += size + 1;
		}
		text = newline + 1;
	}
	return 0;
}

/*
 * Reads objects. contents_out[i] is NULL if an object is missing; the caller frees the texts. They
 * are not terminated. Returns 0 or -errno.
 */
static int git_read(const char *const *objects, size_t count, char **contents_out,
		    size_t *bytes_out)
{
	static const char *const arguments[] = {"git", "cat-file", "--batch", NULL};
	int input = memfd_create("xtrace git", MFD_CLOEXEC), error = 0;
	size_t bytes;
	char *text = NULL;

	memset(contents_out, 0, count * sizeof(*contents_out));
	if (input < 0)
		return -errno;
	for (size_t i = 0; i < count && !error; i++)
		error = dprintf(input, "%s\n", objects[i]) < 0 ? -errno : 0;
	if (!error && lseek(input, 0, SEEK_SET) < 0)
		error = -errno;
	if (!error)
		error = run_git(arguments, input, &text, &bytes);
	if (!error)
		error = split_objects(text, bytes, count, contents_out, bytes_out);
	free(text);
	close(input);
	return error;
}

/* The commits of HEAD and the branches, oldest first. Returns as git_versions(). */
static int git_commits(struct git_versions *commits, const struct history *h)
{
	const char *arguments[ARGUMENTS_MAX] = {"git", "rev-list", "--topo-order", "--reverse",
						"HEAD"};
	char *text, *rest, *line;
	size_t bytes, count = 5;
	int error;

	for (size_t b = 0; b < h->branches.count && count < ARGUMENTS_MAX - 2; b++)
		arguments[count++] = h->branches.list[b];
	arguments[count] = "--";
	error = run_git(arguments, -1, &text, &bytes);
	rest = text;
	while (!error && rest && (line = strsep(&rest, "\n")))
		if (*line)
			add_version(commits, line, NULL);
	free(text);
	return error;
}

#define COMMIT_DIGITS_MIN 7

COMPARE_BY(compare_commits, struct git_version, UP_TEXT(commit))

/* Does a label look like a commit, in full or abbreviated? */
static bool is_commit(const char *text)
{
	size_t digits = strspn(text, "0123456789abcdef");

	return digits >= COMMIT_DIGITS_MIN && digits <= 64 && !text[digits];
}

/* The rank of the commit that begins with text; 0 if there is none, or several. */
static uint64_t find_commit(const struct git_versions *commits, const char *text)
{
	size_t length = strlen(text), low;

	low = FIRST_NOT(i, 0, commits->count, strcmp(commits->list[i].commit, text) < 0);
	if (low == commits->count || strncmp(commits->list[low].commit, text, length) != 0 ||
	    (low + 1 < commits->count && !strncmp(commits->list[low + 1].commit, text, length)))
		return 0;
	return commits->list[low].rank;
}

/* A label that git knows decides; else the commit that added the set. */
static void rank_points(struct history *h, const struct git_versions *commits)
{
	for (size_t p = 0; p < h->points.count; p++) {
		struct history_point *point = &h->points.list[p];

		if (is_commit(point->label))
			point->rank = find_commit(commits, point->label);
		if (!point->rank && point->commit)
			point->rank = find_commit(commits, point->commit);
	}
}

void source_rank_points(struct history *h)
{
	struct git_versions commits = {0};
	size_t wanted = 0;
	int error;

	for (size_t p = 0; p < h->points.count; p++)
		wanted += h->points.list[p].is_used &&
			  (h->points.list[p].commit || is_commit(h->points.list[p].label));
	if (!wanted)
		return;
	error = git_commits(&commits, h);
	if (!error)
		SORT(commits.list, commits.count, compare_commits);
	if (!error)
		rank_points(h, &commits);
	if (error == -ENOENT)
		problems_add(&h->notes, "git is not available here: labels that look like commits "
					"are ordered by start time");
	git_versions_free(&commits);
}

#define DEPTH_MAX	16  /* of directories that are searched */
#define SNIFF_BYTES	512 /* a document names its format there */
#define KEY_BYTES	1024
#define OBJECTS_AT_ONCE 32 /* git objects that are in memory together */
#define LOG_SUFFIX	".xtr"

/* Pointers to sources change when one is added, so keep the index of the one that is being read. */
struct reading {
	struct history *history;
	const struct source_options *options;
	size_t source; /* index in history->sources.list */
	const char *origin;
	uint64_t room; /* bytes that may still be unpacked */
};

static void add_item(struct reading *reading, const char *id, const char *label)
{
	struct history *h = reading->history;

	history_add_item(h, &h->sources.list[reading->source], id, label);
}

/* Values of iterations are other points than those of whole runs. Ids are hexadecimal. */
static void mark_basis(const struct reading *reading, char id[ID_BYTES])
{
	if (reading->options->load.is_per_iteration)
		id[0] = 'i';
}

/* Adds a point for the runs, unless it is known. */
static bool add_point(struct reading *reading, const char *id, const char *label,
		      struct run_profile *const *runs, size_t count)
{
	struct history *h = reading->history;

	if (!history_find_point(h, id) && !point_add(h, id, runs, count))
		return false;
	add_item(reading, id, label);
	return true;
}

static void add_runs(struct reading *reading, const struct run_set *runs, const char *id,
		     const char *label)
{
	char own_id[ID_BYTES];
	bool is_added = true;

	if (!reading->options->each_run)
		add_point(reading, id, label, runs->runs, runs->count);
	for (size_t r = 0; reading->options->each_run && is_added && r < runs->count; r++) {
		point_id_of_runs(own_id, &runs->runs[r], 1);
		mark_basis(reading, own_id);
		is_added = add_point(reading, own_id, label, &runs->runs[r], 1);
	}
}

/* One damaged set does not hide the others: returns 0 after a problem. */
static int read_set(void *context, const struct baseline_packed_set *set)
{
	struct reading *reading = context;
	struct history *h = reading->history;
	struct run_set runs = {0};
	const char *packed = set->profiles ? set->profiles : "";
	char id[ID_BYTES];

	point_id(id, packed, strlen(packed));
	mark_basis(reading, id);
	if (history_find_point(h, id) && !reading->options->each_run) {
		add_item(reading, id, set->label);
	} else if (!baseline_unpack(&runs, set, &reading->room, reading->origin, &h->problems)) {
		for (size_t r = 0; r < runs.count && !reading->options->load.is_per_iteration; r++)
			run_profile_use_whole(runs.runs[r]);
		add_runs(reading, &runs, id, set->label);
	}
	run_set_free(&runs);
	return 0;
}

static void read_baseline(struct reading *reading, const char *text, size_t bytes)
{
	struct history *h = reading->history;
	struct baseline_acceptances accepted = {0};

	reading->room = BASELINE_ROOM;
	/* After an error, there are none. */
	baseline_visit(text, bytes, reading->origin, &h->problems, read_set, reading, &accepted);
	for (size_t a = 0; a < accepted.count; a++)
		history_add_acceptance(h, &h->sources.list[reading->source], &accepted.list[a]);
	baseline_acceptances_free(&accepted);
}

/* The points of a source become part of the history. The first source of a point names it. */
static void use_source(struct history *h, const struct history_source *source, const char *commit,
		       const char *origin)
{
	for (size_t i = 0; i < source->item_count; i++) {
		struct history_point *point = history_find_point(h, source->items[i].id);

		if (!point)
			continue;
		if (!point->is_used) {
			point->commit = commit;
			point->origin = origin;
			point->item = i;
			point->is_alone = source->item_count == 1;
		}
		point->is_used = true;
		if (source->items[i].label[0])
			point->label = source->items[i].label;
	}
	for (size_t a = 0; a < source->accepted.count; a++)
		list_append(h->accepted, source->accepted.list[a]);
}

/*
 * Reads a source by its key: with read() if the index does not know it. A source with problems is
 * read again next time.
 */
static void take_source(struct reading *reading, const char *key, const char *origin,
			const char *commit,
			void (*read)(struct reading *reading, const char *text, size_t bytes),
			const char *text, size_t bytes)
{
	struct history *h = reading->history;
	struct history_source *source = history_find_source(h, key);
	size_t problems = h->problems.count;

	reading->origin = history_text(h, origin);
	commit = commit ? history_text(h, commit) : NULL;
	if (!source) {
		source = history_add_source(h, key);
		reading->source = (size_t)(source - h->sources.list);
		read(reading, text, bytes);
		source = &h->sources.list[reading->source];
	}
	source->is_used = h->problems.count == problems;
	use_source(h, source, commit, reading->origin);
}

/* Profiles, logs, trace and bench directories: anything that xtrace diff takes. */
static void read_runs(struct reading *reading, const char *path, size_t bytes)
{
	struct history *h = reading->history;
	struct run_set runs = {0};
	char *argument = (char *)path, id[ID_BYTES];
	size_t before = h->problems.count;

	(void)bytes;
	load_runs(&runs, &argument, 1, &reading->options->load, &h->problems);
	if (h->problems.count == before && runs.count) {
		point_id_of_runs(id, runs.runs, runs.count);
		mark_basis(reading, id);
		add_runs(reading, &runs, id, "");
	}
	run_set_free(&runs);
}

static int not_hidden(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

static void add_stamp(uint64_t *stamp, const char *name, const struct stat *about)
{
	char text[KEY_BYTES];

	snprintf(text, sizeof(text), "%s %lld %lld.%09ld", name, (long long)about->st_size,
		 (long long)about->st_mtim.tv_sec, about->st_mtim.tv_nsec);
	*stamp += hash_text(text, strlen(text));
}

/* A directory does not change if a file in it is overwritten, so each file counts. */
static int add_directory_stamps(uint64_t *stamp, const char *path, int depth)
{
	struct dirent **entries;
	int count = scandir(path, &entries, not_hidden, NULL), error = count < 0 ? -errno : 0;

	for (int e = 0; e < count; e++) {
		struct stat about;
		char *whole = NULL;

		whole = xt_asprintf("%s/%s", path, entries[e]->d_name);
		if (!error && !lstat(whole, &about) && !S_ISDIR(about.st_mode))
			add_stamp(stamp, entries[e]->d_name, &about);
		else if (!error && depth < DEPTH_MAX)
			error = add_directory_stamps(stamp, whole, depth + 1);
		free_all(whole, entries[e]);
	}
	if (count >= 0)
		free(entries);
	return error;
}

/* The points of a source depend on names, sizes and times of its files, and on options. */
static int file_key(char out[KEY_BYTES], const char *path, const struct source_options *options)
{
	struct stat about;
	uint64_t stamp = 0;
	int error = stat(path, &about) ? -errno : 0;

	if (!error && S_ISDIR(about.st_mode))
		error = add_directory_stamps(&stamp, path, 0);
	else if (!error)
		add_stamp(&stamp, path, &about);
	if (error)
		return error;
	if (snprintf(out, KEY_BYTES, "%s %016" PRIx64 "%s%s%s%s%s%s", path, stamp,
		     options->each_run ? " each" : "", options->load.iteration ? " iteration " : "",
		     options->load.iteration ? options->load.iteration : "",
		     options->load.is_per_iteration ? " iterations" : "",
		     options->load.warmup ? " warmup " : "",
		     options->load.warmup ? options->load.warmup : "") >= KEY_BYTES)
		return -ENAMETOOLONG;
	return 0;
}

static void cannot_read(struct reading *reading, const char *path, int error)
{
	problems_add(&reading->history->problems, "cannot read %s: %s", path, strerror(-error));
}

static void take_path(struct reading *reading, const char *path, bool is_baseline)
{
	char key[KEY_BYTES], *text = NULL;
	size_t bytes = 0;
	int error = file_key(key, path, reading->options);

	if (!error && is_baseline && !history_find_source(reading->history, key)) {
		text = file_read_path(path, &bytes);
		error = text ? 0 : -errno;
	}
	if (error)
		cannot_read(reading, path, error);
	else
		take_source(reading, key, path, NULL, is_baseline ? read_baseline : read_runs,
			    is_baseline ? text : path, bytes);
	free(text);
}

/* Does the beginning of a file contain the name of this format? */
static bool has_format(const char *path, const char *format)
{
	char text[SNIFF_BYTES + 1];

	file_start(path, O_NONBLOCK, text, sizeof(text));
	return strstr(text, format) != NULL;
}

/* Files that a search of a directory takes, without an error for others. */
static void take_found(struct reading *reading, const char *path)
{
	if (has_format(path, "\"" BASELINE_FORMAT "\""))
		take_path(reading, path, true);
	else if (ends_with(path, LOG_SUFFIX) || has_format(path, "\"" RUN_PROFILE_FORMAT "\""))
		take_path(reading, path, false);
}

static bool has_logs(struct dirent *const *entries, int count)
{
	for (int e = 0; e < count; e++)
		if (ends_with(entries[e]->d_name, LOG_SUFFIX))
			return true;
	return false;
}

static void search(struct reading *reading, const char *path, int depth);

static void take_entry(struct reading *reading, const char *path, const char *name, int depth)
{
	char *whole = xt_asprintf("%s%s%s", path, ends_with(path, "/") ? "" : "/", name);
	struct stat about;

	if (!lstat(whole, &about) && S_ISDIR(about.st_mode))
		search(reading, whole, depth + 1);
	else if (!stat(whole, &about) && S_ISREG(about.st_mode))
		take_found(reading, whole);
	free(whole);
}

/* Takes a directory of runs as it is, or else everything in it. */
static void search(struct reading *reading, const char *path, int depth)
{
	struct dirent **entries;
	int count = scandir(path, &entries, not_hidden, alphasort);
	char *bench;

	if (count < 0) {
		cannot_read(reading, path, -errno);
		return;
	}
	bench = xt_asprintf("%s/bench.json", path);
	if (has_format(bench, "\"xtrace.bench\"") || has_logs(entries, count))
		take_path(reading, path, false);
	else if (depth >= DEPTH_MAX)
		problems_add(&reading->history->problems,
			     "cannot search %s: directories are nested too deeply", path);
	else
		for (int e = 0; e < count; e++)
			take_entry(reading, path, entries[e]->d_name, depth);
	for (int e = 0; e < count; e++)
		free(entries[e]);
	free_all(entries, bench);
}

static const char *git_key(const char *object, const struct source_options *options)
{
	return text_print("git %s%s%s", object, options->each_run ? " each" : "",
			  options->load.is_per_iteration ? " iterations" : "");
}

/*
 * Reads the versions that the index does not know, some at a time, and takes all in order. Returns
 * 0 or -errno.
 */
static int take_versions(struct reading *reading, const char *argument,
			 const struct git_versions *versions)
{
	struct history *h = reading->history;
	const char *objects[OBJECTS_AT_ONCE];
	char *contents[OBJECTS_AT_ONCE];
	size_t bytes[OBJECTS_AT_ONCE] = {0};
	int error = 0;

	for (size_t first = 0; !error && first < versions->count; first += OBJECTS_AT_ONCE) {
		size_t end = smaller(first + OBJECTS_AT_ONCE, versions->count);
		size_t wanted = 0, next = 0;

		for (size_t v = first; v < end; v++)
			if (!history_find_source(
				    h, git_key(versions->list[v].object, reading->options)))
				objects[wanted++] = versions->list[v].object;
		if (wanted)
			error = git_read(objects, wanted, contents, bytes);
		for (size_t v = first; !error && v < end; v++) {
			bool is_read = next < wanted && objects[next] == versions->list[v].object;
			const char *key = git_key(versions->list[v].object, reading->options);
			const char *origin =
				text_print("%s at %.12s", argument, versions->list[v].commit);

			if (is_read && !contents[next])
				problems_add(&h->problems, "cannot read %s", origin);
			else
				take_source(reading, key, origin, versions->list[v].commit,
					    read_baseline, is_read ? contents[next] : "",
					    is_read ? bytes[next] : 0);
			next += is_read;
		}
		for (size_t w = 0; w < wanted; w++)
			free(contents[w]);
	}
	return error;
}

static void take_branch(struct reading *reading, const char *argument)
{
	size_t branch_bytes = strcspn(argument, ":");
	char *branch = xt_strndup(argument, branch_bytes);
	const char *file = argument + branch_bytes + 1;
	struct git_versions versions = {0};
	struct history *h = reading->history;
	int error;

	/* git takes a name that begins with a dash for an option. */
	if (*branch != '-')
		list_append(h->branches, arena_copy_text(h->memory, branch, branch_bytes));
	error = git_versions(&versions, branch, file);
	if (error == -ENOENT)
		problems_add(
			&h->problems,
			"cannot read %s: git knows no file %s on a branch %s of this repository",
			argument, file, branch);
	else if (!error)
		error = take_versions(reading, argument, &versions);
	if (error && error != -ENOENT)
		cannot_read(reading, argument, error);
	git_versions_free(&versions);
	free(branch);
}

void source_read(struct history *h, const char *argument, const struct source_options *options)
{
	struct reading reading = {.history = h, .options = options};
	struct stat about;

	if (stat(argument, &about)) {
		if (errno == ENOENT && strchr(argument, ':'))
			take_branch(&reading, argument);
		else
			cannot_read(&reading, argument, -errno);
	} else if (S_ISDIR(about.st_mode)) {
		search(&reading, argument, 0);
	} else if (has_format(argument, "\"" BASELINE_FORMAT "\"")) {
		take_path(&reading, argument, true);
	} else {
		take_path(&reading, argument, false);
	}
}
