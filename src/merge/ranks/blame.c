/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocks are taken in the order of their ends. So what made a rank late, if it was a wait in a
 * collective of another communicator, has its own causes already.
 */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/tables.h"
#include "log/base/compare.h"
#include "log/base/grow.h"
#include "merge/ranks/compared_ranks.h"
#include "merge/ranks/wait_cause.h"
#include "merge/read/inputs.h"
#include "merge/steps/steps.h"
#include "merge/sums/run.h"
#include "merge/sums/aggregate.h"
#include "merge/sums/timeline.h"

#define SUSPECTS_MAX 16	  /* ranks that came last in collectives of one block */
#define SMALL_PART   0.02 /* parts of a cause below this are noise */
#define PENDING_MAX  64	  /* collectives of a device at the same time; more are left out */

/* A device of a rank, as if it had not waited in collectives. */
struct shifted {
	double gpu_ns, cpu_ns;	       /* how much earlier its GPU and its CPU would be */
	double cpu_wait_ns;	       /* of the CPU, since the launch of its last collective */
	uint32_t pending[PENDING_MAX]; /* collectives that may still run */
	size_t pending_count;
	uint32_t *open; /* the collectives whose waits make up gpu_ns, in their order */
	size_t open_count;
	double *left_ns; /* by open collective: what is left of its wait */
};

static double ns_of(uint32_t units)
{
	return units == UINT32_MAX ? HUGE_VAL : (double)((uint64_t)units << RANK_TIME_UNIT_LOG);
}

/* The latest waits are absorbed first. */
static void absorb(struct shifted *device, double ns, const float *waits_ns, float *absorbed_ns)
{
	device->gpu_ns -= ns;
	while (ns > 0 && device->open_count) {
		size_t last = device->open_count - 1;
		uint32_t c = device->open[last];
		double part_ns = fmin(ns, device->left_ns[last]);

		device->left_ns[last] -= part_ns;
		absorbed_ns[c] = (float)((double)waits_ns[c] - device->left_ns[last]);
		ns -= part_ns;
		if (device->left_ns[last] <= 0)
			device->open_count--;
	}
}

/* Adds the waits that have ended: they delay what starts now, but not what ran beside them. */
static void end_waits(struct shifted *device, const struct rank_log *log, int64_t start_ns,
		      const float *waits_ns)
{
	size_t kept = 0;

	for (size_t p = 0; p < device->pending_count; p++) {
		uint32_t c = device->pending[p];

		if (log->list[c].end_ns > start_ns) {
			device->pending[kept++] = c;
			continue;
		}
		device->gpu_ns += (double)waits_ns[c];
		device->left_ns[device->open_count] = (double)waits_ns[c];
		device->open[device->open_count++] = c;
	}
	device->pending_count = kept;
}

/* waits_ns: by collective, the wait that nothing hides. */
static void absorb_device(const struct rank_log *log, uint32_t number, struct shifted *device,
			  const float *waits_ns, float *absorbed_ns)
{
	device->gpu_ns = device->cpu_ns = device->cpu_wait_ns = 0;
	device->open_count = device->pending_count = 0;
	for (size_t c = 0; c < log->count; c++) {
		const struct rank_collective *item = &log->list[c];
		double limit_ns;

		device->cpu_wait_ns += ns_of(item->cpu_wait_units);
		if (log->members.list[item->member].device != number)
			continue;
		end_waits(device, log, item->start_ns, waits_ns);
		device->cpu_ns = fmin(device->gpu_ns, device->cpu_ns + device->cpu_wait_ns);
		device->cpu_wait_ns = 0;
		limit_ns = device->cpu_ns + ns_of(item->lead_units);
		if (device->gpu_ns > limit_ns)
			absorb(device, device->gpu_ns - limit_ns, waits_ns, absorbed_ns);
		if (waits_ns[c] > 0 && device->pending_count < PENDING_MAX)
			device->pending[device->pending_count++] = (uint32_t)c;
	}
}

static void absorb_log(const struct rank_log *log, const float *waits_ns, float *absorbed_ns)
{
	struct shifted device = {.open = xt_malloc((log->count + 1) * sizeof(*device.open)),
				 .left_ns = xt_malloc((log->count + 1) * sizeof(*device.left_ns))};
	bool is_done[TIMELINE_DEVICES_MAX] = {false};

	for (size_t m = 0; m < log->members.count; m++) {
		uint32_t number = log->members.list[m].device;

		if (number < TIMELINE_DEVICES_MAX && !is_done[number])
			absorb_device(log, number, &device, waits_ns, absorbed_ns);
		if (number < TIMELINE_DEVICES_MAX)
			is_done[number] = true;
	}
	free_all(device.open, device.left_ns);
}

/* Notes the exposed waits of a communicator, by log and collective. */
static void note_waits(const struct collectives_report *report,
		       const struct communicator *communicator, float **waits_ns)
{
	for (size_t m = 0; m < communicator->members.count; m++) {
		const struct comm_member *member = &communicator->members.list[m];
		double exposed_ns;

		for (size_t i = 0; i < member->count; i++) {
			arrivals_wait_ns(communicator, m, member->first + i, &report->clocks,
					 &exposed_ns);
			waits_ns[member->log->log][member->items[i]] = (float)exposed_ns;
		}
	}
}

static void free_lists(float **lists, size_t count)
{
	free_list((void **)lists, count);
	free(lists);
}

/*
 * Finds the part of each wait that costs the rank nothing, because its CPU would have been late
 * with the next launches. The result is by log of the inputs and collective.
 *
 * While a GPU waits in a collective, its CPU launches what comes next. Without the wait, the GPU
 * would get to this work earlier, but not before it is launched. So a wait is time lost only as far
 * as the GPU then has work in its queue, or the CPU itself waits for the GPU.
 */
static float **find_absorbed(const struct collectives_report *report, const struct run *run)
{
	float **waits_ns = xt_calloc(run->inputs->count + 1, sizeof(*waits_ns));
	float **absorbed_ns = xt_calloc(run->inputs->count + 1, sizeof(*absorbed_ns));

	for (size_t l = 0; l < run->compared->log_count; l++) {
		const struct rank_log *log = &run->compared->logs[l];

		waits_ns[log->log] = xt_calloc(log->count + 1, sizeof(**waits_ns));
		absorbed_ns[log->log] = xt_calloc(log->count + 1, sizeof(**waits_ns));
	}
	for (size_t c = 0; c < report->communicators.count; c++)
		note_waits(report, &report->communicators.list[c], waits_ns);
	for (size_t l = 0; l < run->compared->log_count; l++) {
		const struct rank_log *log = &run->compared->logs[l];

		absorb_log(log, waits_ns[log->log], absorbed_ns[log->log]);
	}
	free_lists(waits_ns, run->inputs->count);
	return absorbed_ns;
}

/*
 * A part of the collectives of a communicator. All ranks go on together after a block, so what made
 * a rank late in it began in it.
 */
struct comm_block {
	uint32_t communicator;
	size_t from, until; /* numbers; the last one held up most ranks */
	double end_ns;	    /* the last arrival at the last one */
	size_t late;	    /* the member that the others waited for */
	double late_ns;	    /* mean cost to the others, in which nothing else ran on their GPU */
	double hidden_ns;   /* upper limit of their mean cost from waits beside other work */
	double apart_ns;    /* sum over its collectives: last arrival less mean of the others */
};

/* Zeros are an empty list. */
struct comm_blocks {
	LIST(struct comm_block); /* by end_ns */
};

/*
 * Whether most ranks could not go on before the end of a collective. In the last rank it is short,
 * so other work may come after it by chance. In the others, within graphs, other work may have
 * ended before it.
 */
static bool holds_up(const struct communicator *communicator, size_t number)
{
	size_t overlapped = 0, present = 0, last = communicator->arrivals[number].late;
	const struct rank_collective *late = comm_item(&communicator->members.list[last], number);

	for (size_t m = 0; m < communicator->members.count; m++) {
		const struct rank_collective *item =
			comm_item(&communicator->members.list[m], number);

		present += item != NULL;
		overlapped += item && item->is_overlapped;
	}
	return overlapped * 2 < present && !(late && late->is_overlapped);
}

/*
 * Returns the time that a member lost in the collectives of a block: nothing else ran on its GPU,
 * and its CPU had launched what came next.
 */
static double lost_ns(const struct comm_member *member, const struct comm_block *block,
		      float *const *absorbed_ns)
{
	const float *absorbed = absorbed_ns[member->log->log];
	double sum_ns = 0;

	for (size_t i = block->from; i < block->until; i++) {
		const struct rank_collective *item = comm_item(member, i);
		int64_t from_ns = item ? item->start_ns : 0;

		if (item && item->alone_from_ns > from_ns)
			from_ns = item->alone_from_ns;
		if (item && item->end_ns > from_ns)
			sum_ns += (double)(item->end_ns - from_ns) -
				  (double)absorbed[item - member->log->list];
	}
	return sum_ns;
}

/*
 * Whether a member is compared with others in a block: its log has all of the block, and the time
 * before it.
 */
static bool comm_block_compares(const struct comm_block *block,
				const struct communicator *communicator, size_t m)
{
	const struct comm_member *member = &communicator->members.list[m];

	return !member->log->lacks_times && member->first <= block->from &&
	       member->first + member->count >= block->until;
}

/* How far apart the ranks come, over a block. */
static double apart_ns(const struct comm_block *block, const struct communicator *communicator)
{
	double sum_ns = 0;

	for (size_t i = block->from; i < block->until; i++)
		if (communicator->arrivals[i].has_waits)
			sum_ns += communicator->arrivals[i].last_ns -
				  communicator->arrivals[i].mean_ns;
	return sum_ns;
}

/*
 * Finds the member that the others waited for in a block: the one with the least lost time. The
 * others have more, as their work has ended: waits, and transfers that work would have hidden. If
 * all come together, nobody waits: some only leave later. How far apart the program begins is not
 * known to matter, so the first collective costs nothing.
 */
static void find_cost(struct comm_block *block, const struct communicator *communicator,
		      float *const *absorbed_ns)
{
	double sum_ns = 0, least_ns = 0;
	size_t count = 0;

	for (size_t m = 0; m < communicator->members.count; m++) {
		double own_ns = lost_ns(&communicator->members.list[m], block, absorbed_ns);

		if (!comm_block_compares(block, communicator, m))
			continue;
		sum_ns += own_ns;
		if (count++ && own_ns >= least_ns)
			continue;
		least_ns = own_ns;
		block->late = m;
	}
	if (count > 1 && block->from)
		block->late_ns = (sum_ns - least_ns) / (double)(count - 1) - least_ns;
	block->apart_ns = apart_ns(block, communicator);
	block->late_ns = smaller(block->late_ns, block->apart_ns);
}

/*
 * Finds how long the others waited beside other work. Where launches decide the speed, waits after
 * all other work cost only a part of their time. The same part of the hidden waits counts.
 */
static void find_hidden(struct comm_block *block, const struct communicator *communicator,
			const struct rank_clocks *clocks, float *const *absorbed_ns)
{
	double hidden_ns = 0, all_ns = 0, lost_ns = 0;
	size_t count = 0;

	for (size_t m = 0; m < communicator->members.count; m++) {
		const struct comm_member *member = &communicator->members.list[m];

		if (m == block->late || !comm_block_compares(block, communicator, m))
			continue;
		count++;
		for (size_t i = block->from; i < block->until; i++) {
			const struct rank_collective *item = comm_item(member, i);
			double exposed_ns;
			double wait_ns = arrivals_wait_ns(communicator, m, i, clocks, &exposed_ns);

			hidden_ns += wait_ns - exposed_ns;
			all_ns += exposed_ns;
			lost_ns += item ? exposed_ns - (double)absorbed_ns[member->log->log]
									  [item - member->log->list]
					: 0;
		}
	}
	if (count && all_ns > 0 && lost_ns > 0)
		block->hidden_ns = hidden_ns / (double)count * fmin(lost_ns / all_ns, 1);
}

COMPARE_BY(compare_blocks, struct comm_block, UP(end_ns) UP(communicator) UP(from))

static void add_block(struct comm_blocks *blocks, const struct communicator *communicator,
		      const struct comm_block *block, const struct rank_clocks *clocks,
		      float *const *absorbed_ns)
{
	struct comm_block *added;

	added = list_new(*blocks);
	*added = *block;
	added->end_ns = communicator->arrivals[block->until - 1].last_ns;
	find_cost(added, communicator, absorbed_ns);
	if (added->late_ns > 0)
		find_hidden(added, communicator, clocks, absorbed_ns);
}

/*
 * Finds the blocks of all communicators, whose arrivals must be known. absorbed_ns is indexed by
 * log of the inputs and by collective: the part of a wait that costs the rank nothing.
 */
static void comm_blocks_find(struct comm_blocks *blocks, const struct communicators *communicators,
			     const struct rank_clocks *clocks, float *const *absorbed_ns)
{
	for (uint32_t c = 0; c < communicators->count; c++) {
		const struct communicator *communicator = &communicators->list[c];
		struct comm_block block = {.communicator = c};

		for (size_t i = 0; i < communicator->instance_count; i++) {
			if (i + 1 < communicator->instance_count && !holds_up(communicator, i))
				continue;
			block.until = i + 1;
			add_block(blocks, communicator, &block, clocks, absorbed_ns);
			block.from = i + 1;
		}
	}
	SORT(blocks->list, blocks->count, compare_blocks);
}

/*
 * Time by call path of the ranks in a block, and how much slower collectives made it.
 *
 * A collective that waits keeps a part of the GPU busy. Kernels beside it take longer, large matrix
 * products up to 50 %. So a rank that waits beside its own work loses time, too, although it never
 * seems to wait. The late rank has the same kernels without a wait.
 */
struct path_sums {
	uint64_t *all_ns;    /* by node, of all ranks */
	uint64_t *beside_ns; /* by node: of the other ranks, in kernels beside collectives */
	bool *is_kernel;     /* by node: it ends in a kernel other than a collective */
	bool *is_touched;    /* by node: it has time */
	uint32_t *touched;   /* these nodes */
	size_t touched_count;
	size_t node_count;
};

/*
 * Time of the others divided by that of the late rank, for the same kernels without a collective
 * beside them. Above 1, their work or their GPUs differ. Never below 1.
 */
static double own_ratio(const struct path_sums *sums, const uint64_t *late_ns, double others)
{
	double own_sum_ns = 0, late_sum_ns = 0;

	for (size_t t = 0; t < sums->touched_count; t++) {
		uint32_t node = sums->touched[t];
		double own_ns = (double)(sums->all_ns[node] - late_ns[node]) / others;

		/* Kernels that take longer in the late rank are what makes it late. */
		if (!sums->is_kernel[node] || sums->beside_ns[node] || !late_ns[node] ||
		    own_ns < (double)late_ns[node])
			continue;
		own_sum_ns += own_ns;
		late_sum_ns += (double)late_ns[node];
	}
	return late_sum_ns > 0 ? own_sum_ns / late_sum_ns : 1;
}

/*
 * Returns the mean time by which collectives slowed the kernels of the other ranks.
 *
 * late_ns: time of the late rank, by node
 * others:  number of other ranks, at least 1
 */
static double path_sums_slowed_ns(const struct path_sums *sums, const uint64_t *late_ns,
				  size_t others)
{
	double ratio = own_ratio(sums, late_ns, (double)others), sum_ns = 0;

	for (size_t t = 0; t < sums->touched_count; t++) {
		uint32_t node = sums->touched[t];
		double beside_ns = (double)sums->beside_ns[node] / (double)others;
		double own_ns = (double)(sums->all_ns[node] - late_ns[node]) / (double)others;
		double more_ns = own_ns - ratio * (double)late_ns[node];

		/* Kernels vary by chance, so shorter ones reduce the sum. */
		if (beside_ns > 0)
			sum_ns += fmax(fmin(more_ns, beside_ns), -beside_ns);
	}
	return fmax(sum_ns, 0);
}

/* A collective in which a rank took part: its place in the communicators. */
struct place_in {
	uint32_t communicator, member, number;
};

/* Where the collectives of a log are in the communicators. */
struct log_places {
	struct place_in *members; /* by member of the log, without the number */
	uint32_t *numbers;	  /* by collective in its list */
};

/* A wait in a collective of another communicator. */
struct other_wait {
	struct place_in at;
	double ns;
};

/* A rank that came last, and its time since the beginning of the block. */
struct suspect {
	size_t member;
	uint64_t *ns; /* by node */
	LIST(struct other_wait) waits;
	double waited_ns;
};

/* A part of the cause of a collective's wait. */
struct share {
	uint32_t log, node;
	float part;
};

/* A range of the shares. */
struct share_span {
	size_t begin, end;
};

struct blame {
	struct collectives_report *report;
	struct log_places *places; /* by log of the inputs */
	LIST(struct share) shares;
	/* By communicator and number: its shares. They are unknown if there are none. */
	struct share_span **spans;
	struct comm_blocks blocks;
	/* Of the current block. */
	const struct communicator *communicator;
	const struct comm_block *block;
	struct path_sums sums;
	double waited_ns; /* in collectives of other communicators, of all ranks */
	struct suspect suspects[SUSPECTS_MAX];
	size_t suspect_count;
	size_t compared_count; /* members that are compared in the block */
};

static struct suspect *find_suspect(struct blame *blame, size_t member)
{
	for (size_t s = 0; s < blame->suspect_count; s++)
		if (blame->suspects[s].member == member)
			return &blame->suspects[s];
	return NULL;
}

/* If there are too many, the member is left out. */
static void add_suspect(struct blame *blame, size_t member)
{
	struct suspect *suspect = &blame->suspects[blame->suspect_count];

	if (find_suspect(blame, member) || blame->suspect_count == SUSPECTS_MAX)
		return;
	if (!suspect->ns)
		suspect->ns = xt_calloc(blame->sums.node_count, sizeof(*suspect->ns));
	suspect->member = member;
	suspect->waits.count = 0;
	suspect->waited_ns = 0;
	blame->suspect_count++;
}

/* The members that came last in collectives of a block, and the one that cost most. */
static void find_suspects(struct blame *blame, const struct comm_block *block)
{
	blame->suspect_count = 0;
	if (block->late_ns > 0)
		add_suspect(blame, block->late);
	for (size_t i = block->from; i < block->until; i++)
		if (blame->communicator->arrivals[i].has_waits &&
		    comm_block_compares(block, blame->communicator,
					blame->communicator->arrivals[i].late))
			add_suspect(blame, blame->communicator->arrivals[i].late);
}

/* Leaves out nodes that do not exist. */
static void add_path_time(struct blame *blame, struct suspect *suspect, uint32_t node, uint64_t ns,
			  uint64_t beside_ns)
{
	struct path_sums *sums = &blame->sums;

	if (node >= sums->node_count)
		return;
	if (!sums->is_touched[node])
		sums->touched[sums->touched_count++] = node;
	sums->is_touched[node] = true;
	saturating_add(&sums->all_ns[node], ns);
	if (!suspect || suspect->member != blame->block->late)
		saturating_add(&sums->beside_ns[node], beside_ns);
	if (suspect)
		saturating_add(&suspect->ns[node], ns);
}

/*
 * Adds a collective of another communicator. The wait there has causes of its own; the transfer is
 * time of its call path.
 */
static void add_other(struct blame *blame, const struct rank_collective *item, struct place_in at,
		      struct suspect *suspect)
{
	const struct communicator *other;
	double exposed_ns, ns, all_ns = (double)(item->end_ns - item->start_ns);

	if (at.communicator == UINT32_MAX || at.number == UINT32_MAX) {
		add_path_time(blame, suspect, item->node, all_ns > 0 ? (uint64_t)all_ns : 0, 0);
		return;
	}
	other = &blame->report->communicators.list[at.communicator];
	ns = arrivals_wait_ns(other, at.member, at.number, &blame->report->clocks, &exposed_ns);
	if (all_ns - ns >= 1)
		add_path_time(blame, suspect, item->node, (uint64_t)(all_ns - ns), 0);
	blame->waited_ns += ns;
	if (!suspect || ns <= 0)
		return;
	list_append(suspect->waits, (struct other_wait){at, ns});
	suspect->waited_ns += ns;
}

static void add_path_times(struct blame *blame, const struct rank_log *log, size_t index,
			   struct suspect *suspect)
{
	struct rank_times times = rank_times_before(log, index);
	struct rank_time time;

	while (rank_times_next(&times, &time))
		add_path_time(blame, suspect, time.node, time.ns, time.beside_ns);
}

static struct place_in blame_place_of(const struct blame *blame, const struct rank_log *log,
				      size_t index)
{
	const struct log_places *places = &blame->places[log->log];
	struct place_in place = places->members[log->list[index].member];

	place.number = places->numbers[index];
	return place;
}

/* Adds the time of a member between its collectives number - 1 and number. */
static void add_times(struct blame *blame, size_t m, size_t number)
{
	const struct comm_member *member = &blame->communicator->members.list[m];
	const struct rank_log *log = member->log;
	struct suspect *suspect = find_suspect(blame, m);
	size_t until;

	/* What comes before the first collective is the start of the program. */
	if (number <= member->first || number - member->first >= member->count)
		return;
	until = member->items[number - member->first];
	for (size_t index = member->items[number - member->first - 1] + 1; index <= until;
	     index++) {
		if (log->members.list[log->list[index].member].device != member->member->device)
			continue;
		add_path_times(blame, log, index, suspect);
		if (index < until)
			add_other(blame, &log->list[index], blame_place_of(blame, log, index),
				  suspect);
	}
}

/* How much more than the mean of the other ranks that are compared. */
static double more_than_others(const struct blame *blame, double own_ns, double all_ns)
{
	size_t others = blame->compared_count - 1;

	return others && all_ns >= own_ns ? own_ns - (all_ns - own_ns) / (double)others : 0;
}

/* How much more time a suspect spent in a node. */
static double excess_ns(const struct blame *blame, const struct suspect *suspect, uint32_t node)
{
	return more_than_others(blame, (double)suspect->ns[node], (double)blame->sums.all_ns[node]);
}

static double excess_wait_ns(const struct blame *blame, const struct suspect *suspect)
{
	double more_ns = more_than_others(blame, suspect->waited_ns, blame->waited_ns);

	return more_ns > 0 ? more_ns : 0;
}

/* Adds a share to those of the current collective, which begin at `first`. */
static void add_share(struct blame *blame, size_t first, size_t log, uint32_t node, double part)
{
	for (size_t s = first; s < blame->shares.count; s++)
		if (blame->shares.list[s].log == log && blame->shares.list[s].node == node) {
			blame->shares.list[s].part += (float)part;
			return;
		}
	list_append(blame->shares, (struct share){(uint32_t)log, node, (float)part});
}

/* Passes a part of the blame on to the causes of the suspect's own waits. */
static void add_inherited(struct blame *blame, size_t first, const struct suspect *suspect,
			  double part)
{
	for (size_t w = 0; w < suspect->waits.count; w++) {
		const struct place_in *at = &suspect->waits.list[w].at;
		struct share_span span = blame->spans[at->communicator][at->number];
		double own = part * suspect->waits.list[w].ns / suspect->waited_ns;

		if (own < SMALL_PART * part)
			continue;
		if (span.begin == span.end)
			add_share(blame, first,
				  blame->communicator->members.list[suspect->member].log->log,
				  PATH_ROOT, own);
		for (size_t s = span.begin; s < span.end; s++) {
			struct share share = blame->shares.list[s];

			add_share(blame, first, share.log, share.node, own * (double)share.part);
		}
	}
}

/*
 * Finds the causes that made a member late, as parts of 1. What is not explained belongs to the
 * root.
 */
static void find_shares(struct blame *blame, size_t late, double late_ns, size_t first)
{
	const struct suspect *suspect = find_suspect(blame, late);
	size_t log = blame->communicator->members.list[late].log->log;
	double more_ns, sum_ns, explained = 0;

	if (!suspect || late_ns <= 0) {
		add_share(blame, first, log, PATH_ROOT, 1);
		return;
	}
	sum_ns = excess_wait_ns(blame, suspect);
	for (size_t t = 0; t < blame->sums.touched_count; t++) {
		more_ns = excess_ns(blame, suspect, blame->sums.touched[t]);
		sum_ns += more_ns > 0 ? more_ns : 0;
	}
	if (sum_ns > 0)
		explained = sum_ns < late_ns ? sum_ns / late_ns : 1;
	for (size_t t = 0; t < blame->sums.touched_count && explained > 0; t++) {
		more_ns = excess_ns(blame, suspect, blame->sums.touched[t]);
		if (more_ns > SMALL_PART * sum_ns)
			add_share(blame, first, log, blame->sums.touched[t],
				  explained * more_ns / sum_ns);
	}
	more_ns = excess_wait_ns(blame, suspect);
	if (explained > 0 && more_ns > SMALL_PART * sum_ns)
		add_inherited(blame, first, suspect, explained * more_ns / sum_ns);
}

/* Returns a cause, which is added if needed. */
static struct wait_cause *cause_of(struct collectives_report *report, size_t log, uint32_t node)
{
	const uint64_t key[] = {log, node};
	bool is_new;
	uint32_t id = xt_intern(&report->causes.ids, key, sizeof(key), &is_new);

	if (is_new)
		list_append(report->causes, (struct wait_cause){.log = log, .node = node});
	return &report->causes.list[id - 1];
}

static void add_step_cause(struct collectives_report *report, struct step_cause cause)
{
	const uint64_t key[] = {cause.log, cause.node, cause.step};
	bool is_new;
	uint32_t id = xt_intern(&report->step_causes.ids, key, sizeof(key), &is_new);

	if (is_new)
		list_append(report->step_causes, cause);
	else
		report->step_causes.list[id - 1].cost_ns += cause.cost_ns;
}

static void add_cause(struct blame *blame, size_t log, uint32_t node, uint64_t wait_ns,
		      uint64_t cost_ns)
{
	struct collectives_report *report = blame->report;
	const struct rank_collective *first = comm_item(
		&blame->communicator->members.list[blame->block->late], blame->block->from);
	struct wait_cause *cause = cause_of(report, log, node);

	cause->wait_ns += wait_ns;
	cause->cost_ns += cost_ns;
	report->times.cost_ns += cost_ns;
	report->ranks[log].caused_ns += wait_ns;
	report->ranks[log].cost_ns += cost_ns;
	if (!first || !first->step)
		return;
	report->times.step_cost_ns += cost_ns;
	report->ranks[log].step_cost_ns += cost_ns;
	if (cost_ns && first->step <= STEPS_MAX && blame->compared_count == report->largest_count)
		add_step_cause(report, (struct step_cause){log, node, first->step, cost_ns});
}

/* Charges a wait, or what it costs, to the causes that made a member late. */
static void charge(struct blame *blame, size_t late, double late_ns, double wait_ns, double cost_ns)
{
	size_t first = blame->shares.count;
	double sum = 0;

	find_shares(blame, late, late_ns, first);
	for (size_t s = first; s < blame->shares.count; s++)
		sum += (double)blame->shares.list[s].part;
	if (sum < 1)
		add_share(blame, first, blame->communicator->members.list[late].log->log, PATH_ROOT,
			  1 - sum);
	for (size_t s = first; s < blame->shares.count; s++) {
		const struct share *share = &blame->shares.list[s];
		uint64_t own_wait_ns = (uint64_t)(wait_ns * (double)share->part);
		uint64_t own_cost_ns = (uint64_t)(cost_ns * (double)share->part);

		if (own_wait_ns || own_cost_ns)
			add_cause(blame, share->log, share->node, own_wait_ns, own_cost_ns);
	}
}

/* Drops small parts and scales the others up. Otherwise each collective inherits more of them. */
static void drop_small_shares(struct blame *blame, size_t first)
{
	size_t kept = first;
	float sum = 0;

	for (size_t s = first; s < blame->shares.count; s++)
		if ((double)blame->shares.list[s].part >= SMALL_PART) {
			sum += blame->shares.list[s].part;
			blame->shares.list[kept++] = blame->shares.list[s];
		}
	if (kept == first)
		return;
	blame->shares.count = kept;
	for (size_t s = first; s < kept; s++)
		blame->shares.list[s].part /= sum;
}

/* Keeps the causes for collectives of other communicators that wait for this one. */
static void charge_wait(struct blame *blame, uint32_t communicator, size_t number)
{
	const struct arrivals *arrivals = &blame->communicator->arrivals[number];
	struct share_span *span = &blame->spans[communicator][number];

	span->begin = blame->shares.count;
	charge(blame, arrivals->late, arrivals->last_ns - arrivals->mean_ns, arrivals->wait_ns, 0);
	drop_small_shares(blame, span->begin);
	span->end = blame->shares.count;
}

/* The cost of waits beside other work to the other ranks, on average. */
static double hidden_cost_ns(struct blame *blame)
{
	const struct suspect *late = find_suspect(blame, blame->block->late);

	if (!late || blame->block->hidden_ns <= 0)
		return 0;
	return fmin(blame->block->hidden_ns,
		    path_sums_slowed_ns(&blame->sums, late->ns, blame->compared_count - 1));
}

/* Charges what a block cost the other ranks. */
static void charge_cost(struct blame *blame)
{
	double late_ns = blame->block->late_ns;
	size_t shares = blame->shares.count;
	double cost_ns;

	if (blame->compared_count > 1 && late_ns > 0)
		late_ns = fmin(late_ns + hidden_cost_ns(blame), blame->block->apart_ns);
	cost_ns = late_ns * (double)(blame->compared_count - 1);
	if (blame->compared_count > 1 && cost_ns >= 1)
		charge(blame, blame->block->late, late_ns, 0, cost_ns);

	blame->shares.count = shares; /* nothing inherits them */
}

/* Forgets the times of the block. */
static void clear(struct blame *blame)
{
	struct path_sums *sums = &blame->sums;

	for (size_t t = 0; t < sums->touched_count; t++) {
		uint32_t node = sums->touched[t];

		sums->all_ns[node] = sums->beside_ns[node] = 0;
		sums->is_touched[node] = false;
		for (size_t s = 0; s < blame->suspect_count; s++)
			blame->suspects[s].ns[node] = 0;
	}
	sums->touched_count = 0;
	blame->waited_ns = 0;
}

static void blame_block(struct blame *blame, const struct comm_block *block)
{
	blame->block = block;
	blame->communicator = &blame->report->communicators.list[block->communicator];
	blame->compared_count = 0;
	for (size_t m = 0; m < blame->communicator->members.count; m++)
		blame->compared_count += comm_block_compares(block, blame->communicator, m);
	find_suspects(blame, block);
	for (size_t i = block->from; i < block->until && blame->suspect_count; i++) {
		for (size_t m = 0; m < blame->communicator->members.count; m++)
			if (comm_block_compares(block, blame->communicator, m))
				add_times(blame, m, i);
		if (blame->communicator->arrivals[i].wait_ns > 0)
			charge_wait(blame, block->communicator, i);
	}
	if (blame->suspect_count)
		charge_cost(blame);
	clear(blame);
}

/* Notes for each collective of each log which of its communicator it is. */
static void find_places(struct blame *blame, const struct run *run)
{
	const struct communicators *communicators = &blame->report->communicators;

	for (size_t l = 0; l < run->compared->log_count; l++) {
		const struct rank_log *log = &run->compared->logs[l];
		struct log_places *places = &blame->places[log->log];

		places->members = xt_malloc((log->members.count + 1) * sizeof(*places->members));
		places->numbers = xt_malloc((log->count + 1) * sizeof(*places->numbers));
		memset(places->numbers, 0xff, (log->count + 1) * sizeof(*places->numbers));
		for (size_t m = 0; m < log->members.count; m++)
			places->members[m] = (struct place_in){.communicator = UINT32_MAX};
	}
	for (uint32_t c = 0; c < communicators->count; c++)
		for (uint32_t m = 0; m < communicators->list[c].members.count; m++) {
			const struct comm_member *member = &communicators->list[c].members.list[m];
			struct log_places *places = &blame->places[member->log->log];

			places->members[member->member - member->log->members.list] =
				(struct place_in){.communicator = c, .member = m};
			for (size_t i = 0; i < member->count; i++)
				places->numbers[member->items[i]] = (uint32_t)(member->first + i);
		}
}

static void blame_begin(struct blame *blame, const struct run *run)
{
	const struct communicators *communicators = &blame->report->communicators;
	struct path_sums *sums = &blame->sums;
	size_t node_count = run->paths.node_count;

	blame->places = xt_calloc(run->inputs->count + 1, sizeof(*blame->places));
	blame->spans = xt_calloc(communicators->count + 1, sizeof(*blame->spans));
	for (size_t c = 0; c < communicators->count; c++)
		blame->spans[c] = xt_calloc(communicators->list[c].instance_count + 1,
					    sizeof(**blame->spans));
	*sums = (struct path_sums){.all_ns = xt_calloc(node_count, sizeof(*sums->all_ns)),
				   .beside_ns = xt_calloc(node_count, sizeof(*sums->beside_ns)),
				   .is_kernel = xt_calloc(node_count, sizeof(*sums->is_kernel)),
				   .is_touched = xt_calloc(node_count, sizeof(*sums->is_touched)),
				   .touched = xt_calloc(node_count, sizeof(*sums->touched)),
				   .node_count = node_count};
	for (uint32_t node = 0; node < node_count; node++)
		sums->is_kernel[node] = wait_cause_is_kernel(&run->paths, node);
	find_places(blame, run);
}

static void blame_end(struct blame *blame, const struct run *run)
{
	struct path_sums *sums = &blame->sums;

	free_list((void **)blame->spans, blame->report->communicators.count);
	for (size_t l = 0; l < run->inputs->count; l++)
		free_all(blame->places[l].members, blame->places[l].numbers);
	for (size_t s = 0; s < SUSPECTS_MAX; s++)
		free_all(blame->suspects[s].ns, blame->suspects[s].waits.list);
	free_all(blame->spans, blame->places, blame->shares.list, blame->blocks.list, sums->all_ns,
		 sums->beside_ns, sums->is_kernel, sums->is_touched, sums->touched);
}

void blame_waits(struct collectives_report *report, const struct run *run)
{
	struct blame blame = {.report = report};
	float **absorbed_ns = find_absorbed(report, run);

	blame_begin(&blame, run);
	comm_blocks_find(&blame.blocks, &report->communicators, &report->clocks, absorbed_ns);
	free_lists(absorbed_ns, run->inputs->count);
	for (size_t b = 0; b < blame.blocks.count; b++)
		blame_block(&blame, &blame.blocks.list[b]);
	blame_end(&blame, run);
}
