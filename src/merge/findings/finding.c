/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One finding, and the frames and lines of its callsites.
 *
 * The line to look at is the innermost one in the user's own code. Libraries do not count, even if
 * they come with source or debug information.
 */
#include "merge/findings/finding.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "log/base/compare.h"
#include "log/base/number_format.h"
#include "merge/findings/headline.h"
#include "merge/lines/lines.h"
#include "merge/naming/frame_names.h"
#include "merge/naming/frames.h"
#include "merge/naming/joined_paths.h"
#include "merge/sums/build_tree.h"
#include "merge/sums/reading.h"

#define SHARE_HIGH   4 /* 1/4 of the active time */
#define SHARE_MEDIUM 10
#define ONE_PLACE    10 /* the others have less than 1/10 of the cost */
#define STUB	     "__device_stub_"

struct finding *finding_add(struct run *run, enum rule rule, size_t process_index, uint64_t cost_ns,
			    uint64_t whole_ns)
{
	struct findings *findings = &run->found->findings;

	if (!rule_reports(run->settings, rule, cost_ns, whole_ns))
		return NULL;
	xt_append(findings->list, findings->count, findings->capacity,
		  (struct finding){
			  .rule = rule,
			  .process = run->labels[process_index],
			  .process_index = process_index,
			  .process_count = 1,
			  .cost_ns = cost_ns,
			  .whole_ns = whole_ns,
			  .advice = rule_specs[rule].advice,
		  });
	return &findings->list[findings->count - 1];
}

const char *finding_severity(const struct finding *finding)
{
	if (rule_specs[finding->rule].is_error)
		return "error";
	if (finding->cost_ns >= finding->whole_ns / SHARE_HIGH)
		return "high";
	return finding->cost_ns >= finding->whole_ns / SHARE_MEDIUM ? "medium" : "low";
}

const char *finding_whole_text(const struct finding *finding)
{
	if (finding->rule == RULE_HANG)
		return "from the first collective to the end, of all ranks";
	if (finding->step_count)
		return "step time";
	if (finding->rule == RULE_LATE_RANK)
		return "from the first to the last collective, of all ranks";
	return finding->rule >= RULE_CPU_FIRST ? "from the first to the last GPU work"
					       : "active time";
}

const char *finding_cost(const struct finding *finding)
{
	static char text[2 * TIME_BYTES + 16];
	char cost[TIME_BYTES], step[TIME_BYTES];

	format_time_short(cost, finding->cost_ns);
	format_time_short(step, finding_step_ns(finding));
	snprintf(text, sizeof(text), finding->step_count ? "%s (%s per step)" : "%s", cost, step);
	return text;
}

const char *finding_share(const struct finding *finding)
{
	return format_percent_of(finding->cost_ns, finding->whole_ns);
}

const char *format_percent_of(uint64_t part, uint64_t whole)
{
	static char texts[2][SHARE_BYTES];
	static int next;

	return format_share(texts[next = !next], part, whole);
}

void finding_add_evidence(struct finding *finding, const char *name, uint64_t value)
{
	if (finding->evidence.count == FINDING_EVIDENCE_MAX)
		return;
	finding->evidence.list[finding->evidence.count].name = name;
	finding->evidence.list[finding->evidence.count++].value = value;
}

void finding_free(struct finding *finding)
{
	for (size_t p = 0; p < finding->place_count; p++)
		free(finding->places[p].frames);
	free_all(finding->what, finding->headline);
	*finding = (struct finding){0};
}

static void add_frame(struct run *run, struct finding_place *place, uint32_t name, const char *file,
		      uint32_t line, bool says_line)
{
	struct finding_frame frame = {
		.name = name,
		.file = file[0] ? clean_name(&run->paths.names, file) : NAME_EMPTY,
		.line = line,
		.says_line = says_line,
		/* A frame of generated code has the name of the user's line. */
		.is_own = line && !file_is_library(file) && paths_is_user_code(&run->paths, name),
	};

	xt_append(place->frames, place->frame_count, place->frame_capacity, frame);
	if (!place->at.line || (line && (frame.is_own || !place->at.is_own)))
		place->at = frame;
}

static void add_python(struct reading *reading, struct finding_place *place, uint32_t id)
{
	struct python_line line;

	for (uint32_t n = 0; frames_python_line(&reading->frames, id, n, &line); n++)
		add_frame(reading->run, place, line.name,
			  names_text(&reading->model->names, line.place.file, NULL),
			  line.place.line, true);
}

static void add_source(struct reading *reading, struct finding_place *place, uint32_t name,
		       const struct place *source)
{
	const char *file = source ? names_text(&reading->model->names, source->file, NULL) : "";

	add_frame(reading->run, place, name, file, source && file[0] ? source->line : 0,
		  reading->run->settings->frames.lines);
}

/* Adds the function at an address and the functions inlined there. */
static void add_address(struct reading *reading, struct finding_place *place, uint32_t a)
{
	const struct address *address = &reading->process.frames->addresses->list[a];
	const struct place *places = reading->process.frames->addresses->places.list;
	const uint32_t *inlined = reading->frames.place_names;
	size_t last = address->first_place + address->place_count;
	bool is_interpreter = frame_is_interpreter(reading->model, address->module);
	/* The lines of either are nothing that the user can change. */
	bool is_runtime = is_interpreter || model_is_of_c_runtime(reading->model, address->module);

	if (!reading->frames.address_names[a])
		return;
	add_source(reading, place, reading->frames.address_names[a] - 1,
		   address->place_count && !is_runtime ? &places[last - 1] : NULL);
	place->frames[place->frame_count - 1].is_interpreter = is_interpreter;
	if (!address->place_count || is_runtime)
		return;
	for (size_t p = last - 1; p-- > address->first_place;)
		if (inlined[p])
			add_source(reading, place, inlined[p] - 1, &places[p]);
}

static const char *address_name(const struct reading *reading, const struct stack *stack, size_t f)
{
	uint32_t a = reading->process.frames->addresses->by_frame[stack->first_frame + f];

	return names_text(&reading->model->names, reading->process.frames->addresses->list[a].name,
			  NULL);
}

/*
 * True if the frame is the host function that nvcc generates for a kernel. It has the kernel's name
 * and first line and calls a stub named after it. The line to look at is that of its caller.
 */
static bool is_kernel_itself(const struct reading *reading, const struct stack *stack, size_t f)
{
	const char *name = address_name(reading, stack, f);
	size_t length = strlen(name);

	if (strstr(name, "__wrapper" STUB)) /* generated between the two for templates */
		return true;
	for (size_t s = 0; s < f && !strncmp(name, "_Z", 2); s++) {
		const char *stub = strstr(address_name(reading, stack, s), STUB "_Z");

		if (stub && !strncmp(stub + strlen(STUB), name, length))
			return true;
	}
	return false;
}

/*
 * Adds a native frame. The line to look at stays the same if the frame is the kernel's own
 * function.
 */
static void add_native(struct reading *reading, struct finding_place *place,
		       const struct stack *stack, size_t f)
{
	struct finding_frame before = place->at;
	bool is_first = !place->frame_count;

	add_address(reading, place,
		    reading->process.frames->addresses->by_frame[stack->first_frame + f]);
	if (!is_first && is_kernel_itself(reading, stack, f))
		place->at = before;
}

void finding_add_stack(struct reading *reading, uint32_t id, struct finding_place *place)
{
	const struct stack *stack = &reading->model->stacks.rows[id];
	struct merged_frame frame;
	struct frame_merge merge;

	frames_merge(&reading->frames, reading->model, id, &merge);
	while (frame_merge_next(&merge, &frame)) {
		if (frame.kind == MERGED_PYTHON)
			add_python(reading, place, frame.index);
		else if (frame.kind == MERGED_NATIVE)
			add_native(reading, place, stack, frame.index);
	}
}

/* Adds the path of a launch in PyTorch's backward pass. */
static void add_joined(struct reading *reading, struct finding_place *place, uint32_t id)
{
	struct path_items list = {0};

	joined_paths_list(&reading->frames, id, &list);
	for (size_t i = 0; i < list.count; i++)
		if (list.items[i].kind == MERGED_PYTHON)
			add_python(reading, place, list.items[i].value);
		else if (list.items[i].kind == MERGED_NATIVE)
			add_address(reading, place, list.items[i].value);
	free(list.items);
}

void finding_resolve_line(struct reading *reading, const struct callsite *callsite,
			  struct finding_place *place)
{
	place->api = frames_api_name(&reading->frames, callsite->stack, callsite->api);
	if (autograd_is_joined(&reading->model->autograd, callsite->stack) &&
	    frames_has_stack(&reading->frames, callsite->stack))
		add_joined(reading, place, callsite->stack);
	else if (frames_has_stack(&reading->frames, callsite->stack))
		finding_add_stack(reading, callsite->stack, place);
}

void finding_place(struct reading *reading, const struct callsite *callsite,
		   struct finding_place *place)
{
	struct launch call = {
		.stack = callsite->stack,
		.api = callsite->api,
		.thread = callsite->thread,
		.range = callsite->range,
	};
	struct run *run = reading->run;
	enum by by = run->settings->by;
	struct owner owner;
	uint32_t wanted;

	owner_of_call(reading, &call, &owner);
	if (callsite->stream && (by == BY_DEVICE || by == BY_STREAM))
		owner.root = owner_root(run, reading->model, callsite->stream, callsite->thread);
	place->node = build_tree_path(reading, &owner);
	if (run->selection && selection_has_paths(run->selection)) {
		wanted = selection_path(run->selection, &run->paths, place->node);
		/* The selection may have matched only the work launched, not the call itself. */
		if (wanted != PATH_DROPPED)
			place->node = wanted;
	}
	finding_resolve_line(reading, callsite, place);
}

bool finding_is_same_place(const struct finding_place *a, const struct finding_place *b)
{
	return a->at.name == b->at.name && a->at.file == b->at.file && a->at.line == b->at.line &&
	       a->api == b->api;
}

char *finding_place_location(const struct paths *paths, const struct finding_place *place)
{
	const struct finding_frame *at = &place->at;
	const char *function = names_text(&paths->names, at->name, NULL);
	const char *file = names_text(&paths->names, at->file, NULL), *slash;

	if (at->name == NAME_EMPTY)
		return xt_strdup("an unknown function");
	slash = strrchr(file, '/');
	if (at->says_line || !at->line || at->file == NAME_EMPTY)
		return xt_strdup(function);
	return xt_asprintf("%s (%s:%u)", function, slash ? slash + 1 : file, at->line);
}

char *finding_location(const struct paths *paths, const struct finding *finding)
{
	const struct finding_place *place = &finding->places[0];
	uint32_t common = !place->at.line && finding->place_count > 1
				  ? finding_common_caller(paths, finding)
				  : NAME_EMPTY;

	return common == NAME_EMPTY ? finding_place_location(paths, place)
				    : xt_strdup(names_text(&paths->names, common, NULL));
}

/* Adds the line that is charged, to a location, which is freed. */
static char *with_charged(const struct run *run, const struct finding_place *place, char *location)
{
	char *charged = lines_charged_text(run, place->node), *text;

	if (!charged)
		return location;
	text = xt_asprintf("%s from %s%s", location, charged,
			   place->path_cost_ns < place->cost_ns ? " and others" : "");
	free_all(charged, location);
	return text;
}

char *finding_place_where(const struct run *run, const struct finding_place *place)
{
	return with_charged(run, place, finding_place_location(&run->paths, place));
}

char *finding_where(const struct run *run, const struct finding *finding)
{
	return with_charged(run, &finding->places[0], finding_location(&run->paths, finding));
}

uint32_t finding_only_step(const struct run *run, const struct finding *finding)
{
	uint64_t rest_ns = finding->cost_ns - smaller(finding->places[0].cost_ns, finding->cost_ns);

	return finding->step_count && rest_ns < finding->cost_ns / ONE_PLACE
		       ? lines_only_step(run, finding->places[0].node)
		       : 0;
}

char *finding_what(const struct run *run, const struct finding *finding)
{
	uint32_t step = finding_only_step(run, finding);

	return step ? xt_asprintf("%s Nearly all of this time is in step %u.", finding->what, step)
		    : xt_strdup(finding->what);
}

char *finding_id(const struct paths *paths, const struct finding *finding)
{
	char *where = finding_location(paths, finding), *id;

	id = xt_asprintf("%s:%s%s", rule_specs[finding->rule].name, where,
			 finding->is_outside ? ", outside the steps" : "");
	free(where);
	return id;
}

static uint32_t depth_of(const struct paths *paths, uint32_t node)
{
	uint32_t depth = 0;

	for (; node != PATH_ROOT; node = paths->nodes[node].parent)
		depth++;
	return depth;
}

uint32_t finding_common_caller(const struct paths *paths, const struct finding *finding)
{
	uint32_t common = paths->nodes[finding->places[0].node].parent;
	uint32_t depth = depth_of(paths, common);

	for (size_t p = 1; p < finding->place_count; p++) {
		uint32_t other = finding->places[p].node, other_depth = depth_of(paths, other);

		for (; depth > other_depth; depth--)
			common = paths->nodes[common].parent;
		for (; other_depth > depth; other_depth--)
			other = paths->nodes[other].parent;
		for (; common != other; depth--) {
			common = paths->nodes[common].parent;
			other = paths->nodes[other].parent;
		}
	}
	/* Accept frames of the program only, not a device, a process or another root. */
	for (size_t f = 0; f < finding->places[0].frame_count && common != PATH_ROOT; f++) {
		const struct finding_frame *frame = &finding->places[0].frames[f];

		if (frame->name == paths->nodes[common].name)
			return frame->is_interpreter ? NAME_EMPTY : frame->name;
	}
	return NAME_EMPTY;
}
