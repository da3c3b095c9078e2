/* SPDX-License-Identifier: Apache-2.0 */
#include "merge/findings/rules_cpu.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/tables.h"
#include "log/base/compare.h"
#include "log/base/hash_table.h"
#include "merge/findings/conclusions.h"
#include "merge/findings/cpu_causes.h"
#include "merge/findings/cpu_place.h"
#include "merge/findings/finding_place.h"
#include "merge/sums/build_tree.h"
#include "merge/sums/reading.h"

#define PROCESSES_MAX 64 /* other processes that are counted */

/* Idle time of a rule at one line. */
struct cpu_group {
	enum rule rule;
	struct finding_place place;
	uint64_t ns;
	uint64_t most_ns; /* of its most expensive path */
	struct idle_path most;
	uint64_t path_count;
	uint32_t logs[PROCESSES_MAX]; /* other processes that the path continues in */
	size_t log_count;
};

struct cpu_groups {
	struct cpu_group *list;
	size_t count, capacity;
	struct xt_hash_table table;
};

static bool is_explained(const struct reading *reading, const struct total *total)
{
	return total->owner.leaf == LEAF_IDLE && total->weights[WEIGHT_GPU_IDLE] &&
	       idle_paths_explain(&reading->gaps.idle_paths, IDLE_WHAT_PATH(total->owner.what));
}

bool cpu_findings_explain(const struct reading *reading)
{
	uint64_t known_ns = 0, unknown_ns = 0;

	for (uint32_t t = 0; t < reading->aggregate.count; t++) {
		const struct total *total = &reading->aggregate.entries[t];

		if (is_explained(reading, total))
			saturating_add(&known_ns, total->weights[WEIGHT_GPU_IDLE]);
		else if (total->owner.leaf == LEAF_IDLE &&
			 IDLE_WHAT_PATH(total->owner.what) != IDLE_PATH_NONE)
			saturating_add(&unknown_ns, total->weights[WEIGHT_GPU_IDLE]);
	}
	return known_ns > unknown_ns;
}

static bool is_group(const struct cpu_group *group, enum rule rule,
		     const struct finding_place *place)
{
	return group->rule == rule && group->place.function == place->function &&
	       group->place.file == place->file && group->place.line == place->line;
}

static struct cpu_group *group_of(struct cpu_groups *groups, enum rule rule,
				  const struct finding_place *place)
{
	const uint32_t key[] = {(uint32_t)rule, place->function, place->file, place->line};
	uint32_t hash = xt_hash_bytes(key, sizeof(key));
	struct xt_hash_slot *slot;
	struct cpu_group *group;

	xt_hash_require(&groups->table, groups->count + 1);
	xt_grow(&groups->list, &groups->capacity, groups->count + 1, sizeof(*groups->list));
	for (slot = xt_hash_first(&groups->table, hash); slot->item;
	     slot = xt_hash_next(&groups->table, slot))
		if (is_group(&groups->list[slot->item - 1], rule, place))
			return &groups->list[slot->item - 1];
	group = &groups->list[groups->count++];
	*slot = (struct xt_hash_slot){hash, (uint32_t)groups->count};
	*group = (struct cpu_group){.rule = rule};
	group->place.function = place->function;
	group->place.file = place->file;
	group->place.line = place->line;
	return group;
}

static void note_process(struct cpu_group *group, const struct idle_path *path)
{
	if (!path->has_other || path->other.log == path->own.log)
		return;
	for (size_t l = 0; l < group->log_count; l++)
		if (group->logs[l] == path->other.log)
			return;
	if (group->log_count < PROCESSES_MAX)
		group->logs[group->log_count++] = path->other.log;
}

/* Adds the idle time of one path. The place of a group is that of its most expensive path. */
static void add_path(struct detection *detection, struct cpu_groups *groups,
		     const struct total *total)
{
	struct reading *reading = detection->reading;
	struct run *run = reading->run;
	const struct idle_path *path =
		idle_paths_get(&reading->gaps.idle_paths, IDLE_WHAT_PATH(total->owner.what));
	uint64_t ns = total->weights[WEIGHT_GPU_IDLE] / detection->device_count;
	struct finding_place place = {0};
	struct cpu_group *group;

	cpu_place(run, path, &place);
	group = group_of(groups, cpu_cause(run, path, IDLE_WHAT_CLASS(total->owner.what)), &place);
	saturating_add(&group->ns, ns);
	group->path_count++;
	note_process(group, path);
	if (ns < group->most_ns) {
		free(place.frames);
		return;
	}
	group->most_ns = ns;
	group->most = *path;
	free(group->place.frames);
	group->place = place;
	group->place.node = build_tree_path(reading, &total->owner);
	group->place.api = run->paths.nodes[group->place.node].name;
}

COMPARE_BY(compare_groups, struct cpu_group, UP(rule) DOWN(ns) UP(place.node))

/* From the first to the last work of the devices. */
static uint64_t span_ns(const struct callsites *callsites)
{
	uint64_t first_ns = UINT64_MAX, last_ns = 0;

	for (size_t d = 0; d < callsites->device_count; d++) {
		const struct device_stats *device = &callsites->devices[d];

		first_ns = device->first_ns < first_ns ? device->first_ns : first_ns;
		last_ns = device->last_ns > last_ns ? device->last_ns : last_ns;
	}
	return last_ns > first_ns ? last_ns - first_ns : 1;
}

/* The line of a part of a path, with the state of its thread. */
static char *part_location(struct run *run, const struct idle_path_part *part)
{
	const char *label = cpu_sample_label((enum xt_cpu_state)part->state, part->stack);
	struct finding_place place = {0};
	char *where, *text = NULL;

	cpu_place(run, &(struct idle_path){.own = *part}, &place);
	where = finding_place_location(&run->paths, &place);
	free(place.frames);
	text = xt_asprintf("%s%s%s", where, label ? " " : "", label ? label : "");
	free(where);
	return text;
}

/* Where a thread waits, and what it waits for. */
static char *wait_location(struct run *run, const struct idle_path *path)
{
	char *own = part_location(run, &path->own), *other, *text;

	if (!path->has_other)
		return own;
	other = part_location(run, &path->other);
	text = xt_asprintf("%s, which waits for %s", own, other);
	free(own);
	free(other);
	return text;
}

static void describe(struct run *run, const struct cpu_group *groups, size_t count,
		     struct finding *finding)
{
	char processes[64] = "";
	char *where = finding->rule == RULE_HOST_WAIT ? wait_location(run, &groups->most)
						      : finding_location(&run->paths, finding);

	if (groups->log_count)
		snprintf(processes, sizeof(processes), ", in %zu other process%s",
			 groups->log_count, groups->log_count == 1 ? "" : "es");
	finding_set_text(finding,
			 "The GPU is idle for %s, %s of the time from its first to its last work, "
			 "because %s%s %s%s.",
			 finding_cost(finding), finding_share(finding),
			 rule_specs[finding->rule].why, count > 1 ? ", most in" : " in",
			 where ? where : "?", processes);
	free(where);
	finding_add_evidence(finding, "gpu_idle_ns", finding->cost_ns);
	finding_add_evidence(finding, "place_count", count);
	finding_add_evidence(finding, "other_process_count", groups->log_count);
}

/* Reports the groups of one rule. Takes over the frames of the places. */
static void add_finding(struct detection *detection, struct cpu_group *groups, size_t count)
{
	struct run *run = detection->reading->run;
	struct findings *findings = &run->found->findings;
	struct finding finding = {
		.rule = groups->rule,
		.advice = rule_specs[groups->rule].advice,
		.process_index = detection->reading->process.index,
		.process_count = 1,
		.whole_ns = span_ns(detection->callsites),
		.place_all_count = count,
	};

	for (size_t g = 0; g < count; g++)
		saturating_add(&finding.cost_ns, groups[g].ns);
	if (!rule_reports(run->settings, finding.rule, finding.cost_ns, finding.whole_ns))
		return;
	finding.process = xt_strdup(detection->reading->process.label);
	for (size_t g = 0; g < count && g < FINDING_PLACES_MAX; g++) {
		struct finding_place *place = &finding.places[finding.place_count++];

		*place = groups[g].place;
		place->cost_ns = groups[g].ns;
		place->path_cost_ns = groups[g].most_ns;
		place->count = groups[g].path_count;
		groups[g].place.frames = NULL;
	}
	describe(run, groups, count, &finding);
	xt_append(findings->list, findings->count, findings->capacity, finding);
}

void cpu_findings_detect(struct detection *detection)
{
	const struct aggregate *aggregate = &detection->reading->aggregate;
	struct cpu_groups groups = {0};

	for (uint32_t t = 0; t < aggregate->count; t++)
		if (is_explained(detection->reading, &aggregate->entries[t]))
			add_path(detection, &groups, &aggregate->entries[t]);
	if (groups.count)
		qsort(groups.list, groups.count, sizeof(*groups.list), compare_groups);
	for (size_t first = 0, end; first < groups.count; first = end) {
		for (end = first + 1;
		     end < groups.count && groups.list[end].rule == groups.list[first].rule;)
			end++;
		add_finding(detection, &groups.list[first], end - first);
	}
	for (size_t g = 0; g < groups.count; g++)
		free(groups.list[g].place.frames);
	free(groups.list);
	xt_hash_free(&groups.table);
}
