/* SPDX-License-Identifier: Apache-2.0 */
#include "merge/ranks/process_groups.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "log/base/compare.h"
#include "log/base/grow.h"
#include "merge/exporter.h"
#include "merge/ranks/rank_lists.h"

#define LISTED_MAX 4 /* groups whose ranks are listed */

const char *const group_layout_names[] = {
	[GROUP_OTHER] = "other",
	[GROUP_ALL] = "all",
	[GROUP_ADJACENT] = "adjacent",
	[GROUP_STRIDED] = "strided",
};

const char *const group_use_names[GROUP_USES] = {
	[GROUP_USE_UNKNOWN] = "unknown",	  [GROUP_USE_DATA] = "data parallel",
	[GROUP_USE_SHARDED] = "fully sharded",	  [GROUP_USE_TENSOR] = "tensor parallel",
	[GROUP_USE_PIPELINE] = "pipeline stages",
};

/* A part of a frame that says what calls a collective. The first that fits counts. */
static const struct {
	const char *part;
	enum group_use use;
	const char *evidence;
} callers[] = {
	{"PipelineSchedule", GROUP_USE_PIPELINE, "called by torch.distributed.pipelining"},
	{"(p2p_communication.py:", GROUP_USE_PIPELINE, "called by Megatron's pipeline"},
	{"ModelParallelRegion", GROUP_USE_TENSOR, "called by Megatron's tensor parallel layers"},
	{"FSDP", GROUP_USE_SHARDED, "called by FSDP"},
	{"_fsdp_", GROUP_USE_SHARDED, "called by FSDP"},
	{"FullyShardedDataParallel", GROUP_USE_SHARDED, "called by FSDP"},
	{"DTensor", GROUP_USE_TENSOR, "called by DTensor"},
	{"c10d::Reducer", GROUP_USE_DATA, "called by DistributedDataParallel for gradients"},
	{"[backward] AccumulateGrad", GROUP_USE_DATA, "called when gradients are complete"},
};
#define CALLERS (sizeof(callers) / sizeof(callers[0]))

/* Frames below which PyTorch's backward pass runs. */
static const char *const backward_frames[] = {
	"[backward]",
	"torch::autograd::Engine",
	"_engine_run_backward",
	"torch::autograd::python::PythonEngine",
};

/* The use of a collective, by its path. */
struct path_use {
	uint8_t caller; /* index in callers + 1; 0: none of them */
	bool is_known, is_backward;
};

/* Members of a communicator as ranks of the job. */
struct job_ranks {
	enum group_layout layout;
	uint32_t size, stride;
};

/* The calls of one communicator. */
struct traffic {
	uint64_t counts[COLLECTIVE_OPERATIONS], callers[CALLERS + 1];
	uint64_t backward_count, count;
};

static struct path_use read_path(const struct paths *paths, uint32_t node)
{
	struct path_use use = {.is_known = true};
	size_t best = CALLERS;

	for (; node != PATH_ROOT; node = paths->nodes[node].parent) {
		const char *text = names_text(&paths->names, paths->nodes[node].name, NULL);

		for (size_t c = 0; c < best; c++)
			if (strstr(text, callers[c].part))
				best = c;
		for (size_t b = 0; b < sizeof(backward_frames) / sizeof(backward_frames[0]); b++)
			use.is_backward |= strstr(text, backward_frames[b]) != NULL;
	}
	use.caller = best < CALLERS ? (uint8_t)(best + 1) : 0;
	return use;
}

/* Counts what a member does in its communicator. uses: by node in the paths. */
static void add_member(struct traffic *traffic, const struct run *run,
		       const struct comm_member *member, struct path_use *uses)
{
	const struct rank_log *log = member->log;
	size_t own = (size_t)(member->member - log->members);

	for (size_t i = 0; i < log->count; i++) {
		const struct rank_collective *item = &log->list[i];
		struct path_use *use = &uses[item->node];

		if (item->member != own)
			continue;
		if (!use->is_known)
			*use = read_path(&run->paths, item->node);
		traffic->counts[item->operation]++;
		traffic->callers[use->caller]++;
		traffic->backward_count += use->is_backward;
		traffic->count++;
	}
}

/* Returns the distance of sorted ranks, 0 if there is none. */
static uint32_t distance_of(const uint32_t *ranks, size_t count)
{
	if (count < 2 || ranks[count - 1] == RANK_UNKNOWN)
		return 0;
	for (size_t r = 1; r < count; r++)
		if (ranks[r] - ranks[r - 1] != ranks[1] - ranks[0])
			return 0;
	return ranks[1] - ranks[0];
}

/* Finds how the ranks of a communicator lie in the job. Returns 0 or -ENOMEM. */
static int find_ranks(const struct run *run, const struct communicator *communicator,
		      struct job_ranks *out)
{
	uint32_t world_size = run->inputs->logs[communicator->members[0].log->log].world_size;
	size_t count = communicator->member_count;
	uint32_t *list = malloc((count + 1) * sizeof(*list)), distance;

	if (!list)
		return -ENOMEM;
	for (size_t m = 0; m < count; m++)
		list[m] = run->inputs->logs[communicator->members[m].log->log].rank;
	qsort(list, count, sizeof(*list), compare_u32);
	distance = distance_of(list, count);
	free(list);
	*out = (struct job_ranks){.size = communicator->rank_count > count
						  ? communicator->rank_count
						  : (uint32_t)count};
	if (out->size == world_size ||
	    (world_size == RANK_UNKNOWN && out->size == run->inputs->count)) {
		out->layout = GROUP_ALL;
	} else if (distance && count == out->size) {
		out->layout = distance == 1 ? GROUP_ADJACENT : GROUP_STRIDED;
		out->stride = distance;
	}
	return 0;
}

/* Judges by the operations, if no function says it. */
static enum group_use use_of_operations(const struct traffic *traffic, const char **evidence_out)
{
	uint64_t reductions = traffic->counts[COLLECTIVE_ALL_REDUCE];
	uint64_t parts =
		traffic->counts[COLLECTIVE_ALL_GATHER] + traffic->counts[COLLECTIVE_REDUCE_SCATTER];

	*evidence_out = "";
	if (traffic->counts[COLLECTIVE_SEND_RECV] > traffic->count / 2) {
		*evidence_out = "sends and receives: pipeline stages, or all-to-all";
		return GROUP_USE_UNKNOWN;
	}
	if (reductions > traffic->count / 2 && traffic->backward_count > traffic->count * 2 / 3) {
		*evidence_out = "most calls are all-reduces, and in the backward pass";
		return GROUP_USE_DATA;
	}
	if (reductions > traffic->count / 2 && traffic->backward_count > traffic->count / 4 &&
	    !parts) {
		*evidence_out = "all-reduces in the forward and in the backward pass";
		return GROUP_USE_TENSOR;
	}
	return GROUP_USE_UNKNOWN;
}

/*
 * The most frequent caller decides, if it makes more than a third of the calls: a group may also
 * carry something else, such as metrics.
 */
static enum group_use use_of(const struct traffic *traffic, const char **evidence_out)
{
	size_t most = 0;

	for (size_t c = 1; c <= CALLERS; c++)
		if (traffic->callers[c] > (most ? traffic->callers[most] : traffic->count / 3))
			most = c;
	if (!most)
		return use_of_operations(traffic, evidence_out);
	*evidence_out = callers[most - 1].evidence;
	if (callers[most - 1].use == GROUP_USE_SHARDED &&
	    traffic->counts[COLLECTIVE_ALL_REDUCE] == traffic->count) {
		*evidence_out = "all-reduces of FSDP: replicas of its shards";
		return GROUP_USE_DATA;
	}
	return callers[most - 1].use;
}

static bool has_same_operations(const struct process_group *group, const struct traffic *traffic)
{
	for (size_t o = 0; o < COLLECTIVE_OPERATIONS; o++)
		if (!group->counts[o] != !traffic->counts[o])
			return false;
	return true;
}

static struct process_group *group_of(struct process_groups *groups, const struct job_ranks *ranks,
				      const struct traffic *traffic)
{
	const char *evidence;
	enum group_use use = use_of(traffic, &evidence);

	for (size_t g = 0; g < groups->count; g++) {
		struct process_group *group = &groups->list[g];

		if (group->layout == ranks->layout && group->size == ranks->size &&
		    group->stride == ranks->stride && group->use == use &&
		    !strcmp(group->evidence, evidence) && has_same_operations(group, traffic))
			return group;
	}
	if (grow(&groups->list, &groups->capacity, groups->count + 1, sizeof(*groups->list)) < 0)
		return NULL;
	groups->list[groups->count] = (struct process_group){.layout = ranks->layout,
							     .use = use,
							     .evidence = evidence,
							     .size = ranks->size,
							     .stride = ranks->stride};
	return &groups->list[groups->count++];
}

static int add_communicator(struct process_groups *groups, const struct run *run, size_t c,
			    struct path_use *uses)
{
	const struct communicator *communicator = &run->collectives_report.communicators.list[c];
	struct job_ranks ranks;
	struct traffic traffic = {0};
	struct process_group *group;
	size_t most = 0; /* the member with most calls */

	if (find_ranks(run, communicator, &ranks) < 0)
		return -ENOMEM;
	for (size_t m = 1; m < communicator->member_count; m++)
		if (communicator->members[m].count > communicator->members[most].count)
			most = m;
	add_member(&traffic, run, &communicator->members[most], uses);
	group = group_of(groups, &ranks, &traffic);
	if (!group || grow(&group->communicators, &group->communicator_capacity,
			   group->communicator_count + 1, sizeof(*group->communicators)) < 0)
		return -ENOMEM;
	group->communicators[group->communicator_count++] = c;
	group->backward_count += traffic.backward_count;
	for (size_t o = 0; o < COLLECTIVE_OPERATIONS; o++)
		group->counts[o] += traffic.counts[o];
	for (size_t i = 0; i < communicator->instance_count; i++)
		group->wait_ns += (uint64_t)communicator->arrivals[i].wait_ns;
	return 0;
}

/* The calls of one rank, on average over the groups. */
static void find_means(struct process_group *group)
{
	uint64_t count = group->communicator_count;

	group->backward_count = (group->backward_count + count - 1) / count;
	for (size_t o = 0; o < COLLECTIVE_OPERATIONS; o++)
		group->counts[o] = (group->counts[o] + count - 1) / count;
}

int process_groups_find(struct process_groups *groups, const struct run *run)
{
	struct path_use *uses = calloc(run->paths.node_count + 1, sizeof(*uses));
	int error = uses ? 0 : -ENOMEM;

	for (size_t c = 0; c < run->collectives_report.communicators.count && !error; c++)
		error = add_communicator(groups, run, c, uses);
	for (size_t g = 0; g < groups->count; g++)
		find_means(&groups->list[g]);
	free(uses);
	return error;
}

void process_groups_free(struct process_groups *groups)
{
	for (size_t g = 0; g < groups->count; g++)
		free(groups->list[g].communicators);
	free(groups->list);
	*groups = (struct process_groups){0};
}

/* "0-1, 2-3 | 4-5": the ranks of the first groups. */
static char *list_groups(const struct run *run, const struct process_group *group)
{
	char *list = strdup("");

	for (size_t c = 0; c < group->communicator_count && c <= LISTED_MAX && list; c++) {
		const struct communicator *communicator =
			&run->collectives_report.communicators.list[group->communicators[c]];
		char *ranks = communicator_ranks_text(run, communicator), *longer = NULL;

		if (ranks && asprintf(&longer, "%s%s%s", list, c ? "; " : "",
				      c == LISTED_MAX ? "\xe2\x80\xa6" : ranks) < 0)
			longer = NULL;
		free(ranks);
		free(list);
		list = longer;
	}
	return list;
}

char *process_group_text(const struct run *run, const struct process_group *group)
{
	char *ranks = list_groups(run, group), count[64] = "", *text;
	bool is_one = group->communicator_count == 1;
	int length = ranks ? 0 : -1;

	if (!is_one)
		snprintf(count, sizeof(count), "%zu groups of ", group->communicator_count);
	if (!ranks)
		return NULL;
	if (group->layout == GROUP_ALL)
		length = asprintf(&text, "%sall %u ranks", is_one ? "" : count, group->size);
	else if (group->layout == GROUP_ADJACENT && !is_one)
		length = asprintf(&text, "%s%u neighbours: %s", count, group->size, ranks);
	else if (group->layout == GROUP_STRIDED && !is_one)
		length = asprintf(&text, "%s%u ranks, %u apart: %s", count, group->size,
				  group->stride, ranks);
	else
		length = asprintf(&text, "%sranks %s", is_one ? "" : count, ranks);
	free(ranks);
	return length < 0 ? NULL : text;
}

char *process_group_operations_text(const struct process_group *group)
{
	char *list = strdup("");

	for (size_t o = 0; o < COLLECTIVE_OPERATIONS && list; o++) {
		char *longer;

		if (!group->counts[o])
			continue;
		if (asprintf(&longer, "%s%s%s %llu", list, list[0] ? ", " : "",
			     collective_operation_names[o],
			     (unsigned long long)group->counts[o]) < 0)
			longer = NULL;
		free(list);
		list = longer;
	}
	return list;
}
