/* SPDX-License-Identifier: Apache-2.0 */
#include "merge/sums/idle_paths.h"

#include <string.h>

#include "base/tables.h"
#include "log/base/compare.h"
#include "log/base/grow.h"
#include "merge/sums/timeline.h"

#define LONG_PERIODS 2 /* a gap of at least so many periods is divided by its own samples */

/*
 * Short gaps are divided by their samples only. If there are fewer than half of the samples that
 * their length suggests, the rest was not sampled.
 */
#define HITS_FEW	2
#define HIT_PERIODS_MAX 4

/* The gap that is being divided. */
struct gap {
	const struct owner *owner;
	const struct idle_work *work;
	const uint64_t *pieces_ns;
	uint64_t from_ns, until_ns;
	const struct cpu_log *log;
	const struct cpu_thread *thread;
	uint32_t callers[IDLE_CLASSES]; /* index in threads->callers + 1; 0: the owner */
};

static const struct cpu_log *own_log(const struct cpu_logs *logs, const struct input *input)
{
	for (size_t l = 0; logs && l < logs->count; l++)
		if (logs->list[l].input->first == input->first)
			return &logs->list[l];
	return NULL;
}

void idle_paths_begin(struct idle_paths *paths, const struct cpu_logs *logs,
		      const struct input *log, const struct model *model,
		      const struct threads *threads, struct aggregate *aggregate)
{
	const struct cpu_log *own = own_log(logs, log);

	*paths = (struct idle_paths){
		.logs = own ? logs : NULL,
		.input = log,
		.model = model,
		.threads = threads,
		.aggregate = aggregate,
		.period_ns = own ? own->period_ns : 0,
	};
}

/* Adds idle time of an owner with LEAF_IDLE. Returns its place. */
static uint32_t add_idle(struct idle_paths *paths, struct owner owner, enum idle_class class,
			 uint32_t path, uint64_t ns)
{
	uint32_t place;

	owner.what = IDLE_WHAT(class, path);
	place = aggregate_index(paths->aggregate, &owner);
	paths->aggregate->entries[place].weights[WEIGHT_GPU_IDLE] += ns;
	return place;
}

/* The owner of a class of the gap: the work that ended it, or a call before. */
static struct owner owner_in(const struct idle_paths *paths, const struct gap *gap,
			     enum idle_class class)
{
	struct owner owner = *gap->owner;
	const struct owner *call;

	if (!gap->callers[class])
		return owner;
	call = &paths->threads->callers.entries[gap->callers[class] - 1].owner;
	owner.stack = call->stack;
	owner.range = call->range;
	owner.thread = call->thread;
	owner.api = call->api;
	owner.creation = 0;
	owner.marks = (owner.marks & OWNER_STEADY) | (call->marks & ~OWNER_STEADY);
	return owner;
}

static uint32_t give(struct idle_paths *paths, const struct gap *gap, enum idle_class class,
		     uint32_t path, uint64_t ns)
{
	uint32_t place;

	if (!ns)
		return 0;
	place = add_idle(paths, owner_in(paths, gap, class), class, path, ns);
	list_append(paths->parts, (struct idle_part){place, class, ns});
	return place;
}

static struct idle_path_part part_of(const struct cpu_logs *logs, const struct cpu_log *log,
				     const struct cpu_sample *sample)
{
	return (struct idle_path_part){(uint32_t)(log - logs->list), sample->stack, sample->state};
}

struct idle_path idle_paths_follow(const struct cpu_logs *logs, const struct cpu_log *log,
				   const struct cpu_sample *sample, uint64_t time_ns)
{
	struct idle_path path = {.own = part_of(logs, log, sample)};
	struct cpu_moment other;
	uint32_t pid, tid;

	if (!cpu_log_waits_for(log, sample, &pid, &tid))
		return path;
	other = cpu_logs_find(logs, log->input, pid, tid, time_ns);
	if (!other.log || !cpu_moment_sample(&other)->stack)
		return path;
	path.has_other = true;
	path.other = part_of(logs, other.log, cpu_moment_sample(&other));
	return path;
}

bool idle_paths_explain(const struct idle_paths *paths, uint32_t path)
{
	const struct idle_path_part *own;

	if (path < IDLE_PATH_FIRST)
		return false;
	own = &idle_paths_get(paths, path)->own;
	return cpu_sample_tells((enum xt_cpu_state)own->state, own->stack);
}

static uint32_t path_of(struct idle_paths *paths, const struct cpu_log *log,
			const struct cpu_sample *sample, uint64_t time_ns)
{
	struct idle_path path;
	bool is_new;

	if (!sample->stack && sample->state == XT_CPU_UNKNOWN)
		return IDLE_PATH_UNSAMPLED;
	path = idle_paths_follow(paths->logs, log, sample, time_ns);
	return xt_intern(&paths->keys, &path, sizeof(path), &is_new) - 1 + IDLE_PATH_FIRST;
}

/* The class of the gap's part at a time. Returns the largest if the part there has no time. */
static enum idle_class class_at(const struct gap *gap, uint64_t time_ns)
{
	const struct idle_work *work = gap->work;
	enum idle_class class = IDLE_LAUNCH_LATE;
	uint64_t enter_ns = smaller(work->enter_ns, gap->until_ns);

	if (time_ns < enter_ns && work->thread)
		class = idle_class_of_thread[thread_timeline_at(work->thread, gap->from_ns,
								enter_ns, time_ns)];
	if (gap->pieces_ns[class])
		return class;
	for (int other = 0; other < IDLE_CLASSES; other++)
		if (gap->pieces_ns[other] > gap->pieces_ns[class])
			class = (enum idle_class)other;
	return class;
}

static void add_share(struct idle_paths *paths, enum idle_class class, uint32_t path, uint64_t ns)
{
	list_append(paths->shares, (struct idle_share){class, path, ns});
}

/* Finds the parts of the gap that samples cover. Returns their sum in ns. */
static uint64_t find_shares(struct idle_paths *paths, const struct gap *gap)
{
	const struct cpu_samples *samples = &gap->log->model->cpu_samples;
	size_t first = cpu_samples_covering(samples, gap->thread, gap->from_ns);
	uint64_t covered_ns = 0;

	for (size_t r = first; r < gap->thread->end; r++) {
		struct cpu_cover cover = samples->list[r].cover;
		uint64_t from_ns = larger(cover.from_ns, gap->from_ns);
		uint64_t until_ns = smaller(cover.until_ns, gap->until_ns), at_ns;

		if (cover.from_ns >= gap->until_ns)
			break;
		if (from_ns >= until_ns)
			continue;
		at_ns = from_ns + (until_ns - from_ns) / 2;
		add_share(paths, class_at(gap, at_ns),
			  path_of(paths, gap->log, &samples->list[r], at_ns), until_ns - from_ns);
		saturating_add(&covered_ns, until_ns - from_ns);
	}
	return covered_ns;
}

/*
 * Takes the part of *left_ns that share_ns is of *sum_ns, and removes both. If all shares of a sum
 * are taken, nothing is left. Sums of hostile logs saturate, so they may be less than a share.
 */
static uint64_t take_part(uint64_t *left_ns, uint64_t *sum_ns, uint64_t share_ns)
{
	uint64_t part_ns;

	share_ns = smaller(share_ns, *sum_ns);
	if (!share_ns)
		return 0;
	part_ns = (uint64_t)((unsigned __int128)share_ns * *left_ns / *sum_ns);
	*left_ns -= part_ns;
	*sum_ns -= share_ns;
	return part_ns;
}

/*
 * Divides each class among its paths. The times of the samples are only near those at which the
 * class changed. So if all of the gap is covered, the paths of a class share exactly its time.
 */
static void divide_class(struct idle_paths *paths, const struct gap *gap, enum idle_class class,
			 uint64_t uncovered_ns)
{
	uint64_t ns = gap->pieces_ns[class], sum_ns = 0, left_ns, given_ns;

	for (size_t s = 0; s < paths->shares.count; s++)
		if (paths->shares.list[s].class == class)
			saturating_add(&sum_ns, paths->shares.list[s].ns);
	given_ns = ns > sum_ns ? ns - smaller(ns - sum_ns, uncovered_ns) : ns;
	given_ns = sum_ns ? given_ns : 0;
	left_ns = given_ns;
	for (size_t s = 0; s < paths->shares.count; s++) {
		const struct idle_share *share = &paths->shares.list[s];
		uint64_t part_ns;

		if (share->class != class)
			continue;
		part_ns = take_part(&left_ns, &sum_ns, share->ns);
		give(paths, gap, class, share->path, part_ns);
		if (gap->until_ns - gap->from_ns >= IDLE_LONG_NS &&
		    idle_paths_explain(paths, share->path))
			paths->long_covered_ns += part_ns;
	}
	give(paths, gap, class, IDLE_PATH_UNSAMPLED, ns - given_ns + left_ns);
}

static void divide_long(struct idle_paths *paths, const struct gap *gap)
{
	uint64_t all_ns = gap->until_ns - gap->from_ns, covered_ns;

	paths->shares.count = 0;
	covered_ns = find_shares(paths, gap);
	for (int class = 0; class < IDLE_CLASSES; class ++)
		if (gap->pieces_ns[class])
			divide_class(paths, gap, (enum idle_class) class,
				     all_ns - smaller(covered_ns, all_ns));
}

/* Adds the time of a class in a short gap, to be divided later. */
static uint32_t add_pending(struct idle_paths *paths, const struct gap *gap, enum idle_class class,
			    uint64_t ns)
{
	uint32_t place = give(paths, gap, class, IDLE_PATH_UNSAMPLED, ns);

	xt_grow(paths->pending, paths->pending_capacity, (size_t)place + 1);
	paths->pending[place].ns += ns;
	return place;
}

static void add_hit(struct idle_paths *paths, uint32_t place, uint32_t path, uint64_t weight_ns)
{
	list_append(paths->hits, (struct idle_hit){place, path, weight_ns});
	if (place < paths->pending_capacity)
		saturating_add(&paths->pending[place].hit_ns, weight_ns);
}

/*
 * Returns the path of a sample whose observations come before and after the gap. All observations
 * that could have been in the gap had this path. Returns IDLE_PATH_NONE if there is none.
 */
static uint32_t path_throughout(struct idle_paths *paths, const struct gap *gap)
{
	const struct cpu_samples *samples = &gap->log->model->cpu_samples;
	size_t r = cpu_samples_at(samples, gap->thread, gap->until_ns);

	if (r == gap->thread->end || samples->list[r].first_ns > gap->from_ns)
		return IDLE_PATH_NONE;
	return path_of(paths, gap->log, &samples->list[r], gap->from_ns);
}

/*
 * The time that a sample represents in a short gap; 0: none. A sample with several observations
 * covers the time between them. A single one is limited: a long weight means that it was late, not
 * that the thread was there for that time.
 */
static uint64_t hit_ns(const struct idle_paths *paths, const struct gap *gap,
		       const struct cpu_sample *sample, uint64_t *at_ns)
{
	uint64_t from_ns = larger(sample->first_ns, gap->from_ns);
	uint64_t until_ns = smaller(sample->last_ns, gap->until_ns), weight_ns;

	*at_ns = from_ns;
	if (from_ns < until_ns)
		return until_ns - from_ns;
	if (sample->first_ns < gap->from_ns || sample->first_ns >= gap->until_ns)
		return 0;
	weight_ns = smaller(sample->weight_ns, HIT_PERIODS_MAX * paths->period_ns);
	return weight_ns ? weight_ns : 1;
}

static void divide_short(struct idle_paths *paths, const struct gap *gap)
{
	const struct cpu_samples *samples = &gap->log->model->cpu_samples;
	uint32_t places[IDLE_CLASSES] = {0}, whole = path_throughout(paths, gap);
	size_t first = cpu_samples_at(samples, gap->thread, gap->from_ns);

	for (int class = 0; class < IDLE_CLASSES; class ++) {
		if (!gap->pieces_ns[class])
			continue;
		if (whole)
			give(paths, gap, (enum idle_class) class, whole, gap->pieces_ns[class]);
		else
			places[class] = add_pending(paths, gap, (enum idle_class) class,
						    gap->pieces_ns[class]);
	}
	for (size_t r = first; r < gap->thread->end && !whole; r++) {
		const struct cpu_sample *sample = &samples->list[r];
		uint64_t at_ns, ns = hit_ns(paths, gap, sample, &at_ns);

		if (sample->first_ns >= gap->until_ns)
			break;
		if (ns)
			add_hit(paths, places[class_at(gap, at_ns)],
				path_of(paths, gap->log, sample, at_ns), ns);
	}
}

/* The samples of the thread that launched the work. */
static bool find_thread(const struct idle_paths *paths, struct gap *gap)
{
	size_t id = gap->work->thread ? (size_t)(gap->work->thread - paths->threads->timelines) : 0;
	uint32_t tid = id < paths->model->threads.count ? paths->model->threads.rows[id].tid : 0;

	for (size_t l = 0; l < paths->logs->count && tid; l++) {
		gap->log = &paths->logs->list[l];
		if (gap->log->input->first != paths->input->first)
			continue;
		gap->thread = cpu_samples_of(&gap->log->model->cpu_samples, tid);
		if (gap->thread)
			return true;
	}
	return false;
}

/* Finds the calls that the time in them belongs to. */
static void find_callers(struct gap *gap)
{
	const struct idle_work *work = gap->work;
	uint64_t enter_ns = smaller(work->enter_ns, gap->until_ns);

	for (int state = 0; state < THREAD_STATES_COUNTED && work->thread; state++) {
		enum idle_class class = idle_class_of_thread[state];

		if (gap->pieces_ns[class])
			gap->callers[class] = thread_timeline_longest(
				work->thread, (enum thread_state)state, gap->from_ns, enter_ns);
	}
}

void idle_paths_add(struct idle_paths *paths, const struct owner *owner, uint64_t from_ns,
		    const struct idle_work *work, const uint64_t pieces_ns[IDLE_CLASSES])
{
	struct gap gap = {.owner = owner,
			  .work = work,
			  .pieces_ns = pieces_ns,
			  .from_ns = from_ns,
			  .until_ns = work->start_ns};
	bool is_of_cpu = paths->logs && work->has_call && work->enter_ns > from_ns;
	bool is_sampled = is_of_cpu && find_thread(paths, &gap);

	find_callers(&gap);
	if (is_of_cpu && work->start_ns - from_ns >= IDLE_LONG_NS)
		paths->long_ns += work->start_ns - from_ns;
	if (!is_sampled) {
		for (int class = 0; class < IDLE_CLASSES; class ++)
			give(paths, &gap, (enum idle_class) class,
			     is_of_cpu ? IDLE_PATH_UNSAMPLED : IDLE_PATH_NONE, pieces_ns[class]);
		return;
	}
	if (work->start_ns - from_ns >= LONG_PERIODS * paths->period_ns)
		divide_long(paths, &gap);
	else
		divide_short(paths, &gap);
}

/* Gives each sample its part of the time of its owner and class. */
static struct idle_move divide_pending(struct idle_paths *paths, const struct idle_hit *hit)
{
	struct total *total = &paths->aggregate->entries[hit->place];
	struct idle_pending *pending = &paths->pending[hit->place];
	struct owner owner = total->owner;
	struct idle_move move = {.from = hit->place, .class = IDLE_WHAT_CLASS(owner.what)};
	uint64_t sampled_ns = pending->hit_ns;

	if (sampled_ns > pending->ns / HITS_FEW)
		sampled_ns = pending->ns;
	move.ns = take_part(&sampled_ns, &pending->hit_ns, hit->weight_ns);
	move.of_ns = total->weights[WEIGHT_GPU_IDLE];
	pending->ns -= move.ns;
	total->weights[WEIGHT_GPU_IDLE] -= move.ns;
	move.to = add_idle(paths, owner, move.class, hit->path, move.ns);
	return move;
}

void idle_paths_finish(struct idle_paths *paths,
		       void (*moved)(void *context, const struct idle_move *move), void *context)
{
	for (size_t h = 0; h < paths->hits.count; h++) {
		const struct idle_move move = divide_pending(paths, &paths->hits.list[h]);

		if (moved && move.ns)
			moved(context, &move);
	}
	free_all(paths->hits.list, paths->pending, paths->shares.list, paths->parts.list);
	memset(&paths->hits, 0, sizeof(paths->hits));
	memset(&paths->shares, 0, sizeof(paths->shares));
	paths->pending = NULL;
	paths->pending_capacity = 0;
	paths->parts = (struct idle_parts){0};
}

void idle_paths_free(struct idle_paths *paths)
{
	paths->hits.count = 0;
	idle_paths_finish(paths, NULL, NULL);
	interner_free(&paths->keys);
	*paths = (struct idle_paths){0};
}
