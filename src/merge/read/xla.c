/* SPDX-License-Identifier: Apache-2.0 */
#include "merge/read/xla.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "log/base/compare.h"
#include "merge/read/model.h"
#include "xtrace/log_format.h"

static bool begins(struct xt_bytes text, const char *start)
{
	size_t length = strlen(start);

	return text.length >= length && !memcmp(text.data, start, length);
}

static struct xt_bytes without_start(struct xt_bytes text, size_t length)
{
	return (struct xt_bytes){text.data + length, text.length - length};
}

/* Returns the text behind the last occurrence of a key, or an empty one. */
static struct xt_bytes behind_key(struct xt_bytes text, const char *key)
{
	for (size_t at = text.length; at-- > 0;) {
		struct xt_bytes rest = without_start(text, at);

		if ((rest.data[0] == ',' || rest.data[0] == '#') &&
		    begins(without_start(rest, 1), key))
			return without_start(rest, 1 + strlen(key));
	}
	return (struct xt_bytes){0};
}

/* Returns the text up to the first ',' or '#'. */
static struct xt_bytes value_of(struct xt_bytes text)
{
	size_t length = 0;

	while (length < text.length && text.data[length] != ',' && text.data[length] != '#')
		length++;
	return (struct xt_bytes){text.data, length};
}

/* Scopes may have commas: they end at the next key, or at the final '#'. */
static struct xt_bytes scopes_of(struct xt_bytes text)
{
	struct xt_bytes operation = behind_key(text, "hlo_op=");
	struct xt_bytes scopes = {0};

	if (!begins(text, "#name="))
		return scopes;
	scopes = without_start(text, strlen("#name="));
	if (operation.data)
		scopes.length -= operation.length + strlen(",hlo_op=");
	else if (scopes.length && scopes.data[scopes.length - 1] == '#')
		scopes.length--;
	return scopes;
}

static void parse_module(struct xla_range *range, struct xt_bytes text)
{
	if (!behind_key(text, "program_id=").length)
		range->kind = XLA_TRIAL;
	range->name = value_of(behind_key(text, "hlo_module="));
}

static void parse_operation(struct xla_range *range, struct xt_bytes text)
{
	range->name = scopes_of(text);
	range->operation = value_of(behind_key(text, "hlo_op="));
}

static void parse_compile(struct xla_range *range, struct xt_bytes text)
{
	range->name = value_of(behind_key(text, "module="));
}

static void parse_pass(struct xla_range *range, struct xt_bytes text)
{
	range->name = value_of(behind_key(text, "name="));
}

static const struct {
	const char *start; /* of the text */
	enum xla_kind kind;
	void (*parse)(struct xla_range *range, struct xt_bytes text);
} forms[] = {
	{"XlaModule:#", XLA_PROGRAM, parse_module},
	{"Thunk:#", XLA_OPERATION, parse_operation},
	{"XlaCompile:#", XLA_COMPILE, parse_compile},
	{"XlaPass:#name=config-assigner,", XLA_TUNING, parse_compile},
	{"XlaPass:#", XLA_PASS, parse_pass},
	{"XlaPassPipeline:#", XLA_PASS, parse_pass},
};

/* Parses the texts of a range. */
static struct xla_range xla_range_parse(struct xt_bytes domain, struct xt_bytes text)
{
	struct xla_range range = {.kind = XLA_NONE};

	if (domain.length != strlen("TSL") || !begins(domain, "TSL"))
		return range;
	for (size_t f = 0; f < sizeof(forms) / sizeof(forms[0]); f++) {
		if (!begins(text, forms[f].start))
			continue;
		text = without_start(text, strcspn(forms[f].start, "#"));
		range.kind = forms[f].kind;
		forms[f].parse(&range, text);
		break;
	}
	if (!range.name.length && !range.operation.length)
		range.kind = XLA_NONE;
	return range;
}

static struct xt_bytes xla_text(const struct model *model, uint32_t string)
{
	return names_bytes(&model->names, string < model->strings.count
						  ? model->strings.rows[string]
						  : NAME_EMPTY);
}

struct xla_range xla_range_of(const struct model *model, uint32_t range)
{
	const struct range_node *node = &model->ranges.nodes.list[range];

	return xla_range_parse(xla_text(model, node->domain), xla_text(model, node->text));
}

enum xla_kind xla_range_kind(const struct model *model, uint32_t range)
{
	return xla_range_of(model, range).kind;
}

bool xla_next_scope(struct xt_bytes *path, struct xt_bytes *scope_out)
{
	size_t length = 0, depth = 0;

	while (begins(*path, "/"))
		*path = without_start(*path, 1);
	for (; length < path->length && (depth || path->data[length] != '/'); length++) {
		if (path->data[length] == '(')
			depth++;
		else if (path->data[length] == ')' && depth)
			depth--;
	}
	*scope_out = (struct xt_bytes){path->data, length};
	*path = without_start(*path, length);
	return length;
}

/* Skips characters that XLA replaces by '_'. Returns the index of the next other one. */
static size_t skip_replaced(struct xt_bytes text, size_t at)
{
	while (at < text.length && !isalnum((unsigned char)text.data[at]) && text.data[at] != '.')
		at++;
	return at;
}

bool xla_is_module_of(struct xt_bytes module, struct xt_bytes scope)
{
	size_t m = skip_replaced(module, 0), s = skip_replaced(scope, 0);

	while (m < module.length && s < scope.length && module.data[m] == scope.data[s]) {
		m = skip_replaced(module, m + 1);
		s = skip_replaced(scope, s + 1);
	}
	return m == module.length && s == scope.length;
}

/* The kind of a node of the ranges, for the search for passes. */
enum tuning_kind {
	TUNING_OTHER,
	TUNING_COMPILE, /* a compilation, with any passes in it */
	TUNING_PASS,
	TUNING_TRIAL,
	TUNING_KINDS
};

#define NODES_ADDED_MAX (1u << 16) /* the log is untrusted: further work keeps its own range */
#define NO_PASS		SIZE_MAX

COMPARE_BY(compare_passes, struct tuning_pass, UP(start_ns))

/* Adds the times that a thread spent in ranges. outermost: by node, the range around it, or 0. */
static void add_passes(struct tuning_passes *passes, const struct range_history *history,
		       uint32_t thread, const uint32_t *outermost)
{
	uint32_t current = RANGE_NONE;

	for (size_t i = 0; i < history->count; i++) {
		uint32_t pass = outermost[history->states[i]];

		if (pass == current)
			continue;
		if (current)
			passes->list[passes->count - 1].end_ns = history->times_ns[i];
		if (pass)
			list_append(*passes, (struct tuning_pass){
						     .start_ns = history->times_ns[i],
						     .end_ns = UINT64_MAX,
						     .thread = thread,
						     .range = pass,
						     .is_alone = true,
					     });
		current = pass;
	}
}

static void sort_passes(struct tuning_passes *passes)
{
	SORT(passes->list, passes->count, compare_passes);
}

/* Replaces the compilations by the times at which several threads compile. */
static void keep_overlaps(struct tuning_passes *compilations)
{
	uint64_t end_ns = 0;
	size_t kept = 0;

	for (size_t c = 0; c < compilations->count; c++) {
		struct tuning_pass next = compilations->list[c];
		uint64_t last_ns = end_ns;

		if (next.end_ns > end_ns)
			end_ns = next.end_ns;
		else
			last_ns = next.end_ns;
		if (next.start_ns >= last_ns)
			continue;
		next.end_ns = last_ns;
		compilations->list[kept++] = next;
	}
	compilations->count = kept;
}

/* Marks the passes during which other threads compile. Changes the compilations. */
static void mark_overlapping(struct tuning_passes *passes, struct tuning_passes *compilations)
{
	size_t o = 0;

	sort_passes(passes);
	sort_passes(compilations);
	keep_overlaps(compilations);
	for (size_t p = 0; p < passes->count; p++) {
		struct tuning_pass *pass = &passes->list[p];

		while (o < compilations->count && compilations->list[o].end_ns <= pass->start_ns)
			o++;
		pass->is_alone =
			o == compilations->count || compilations->list[o].start_ns >= pass->end_ns;
	}
}

/* Returns the index of the only pass at that time, or NO_PASS. */
static size_t pass_at(const struct xla_tuning *tuning, uint64_t time_ns)
{
	size_t low =
		FIRST_NOT(i, 0, tuning->passes.count, tuning->passes.list[i].start_ns <= time_ns);

	return low && tuning->passes.list[low - 1].is_alone &&
			       time_ns < tuning->passes.list[low - 1].end_ns
		       ? low - 1
		       : NO_PASS;
}

static uint64_t helper_key(size_t pass, uint32_t thread)
{
	return (uint64_t)pass << 32 | thread;
}

static bool is_helper(const struct xla_tuning *tuning, size_t pass, uint32_t thread)
{
	uint64_t key = helper_key(pass, thread);

	return pass != NO_PASS &&
	       SEARCH(&key, tuning->helpers.list, tuning->helpers.count, compare_u64);
}

static bool is_in_trial(const struct xla_tuning *tuning, uint32_t node)
{
	return node < tuning->node_count && tuning->in_trial[node];
}

static void add_helpers(struct xla_tuning *tuning, const struct range_history *history,
			uint32_t thread)
{
	for (size_t i = 0; i < history->count; i++) {
		bool is_start = is_in_trial(tuning, history->states[i]) &&
				(!i || !is_in_trial(tuning, history->states[i - 1]));
		size_t pass = is_start ? pass_at(tuning, history->times_ns[i]) : NO_PASS;
		uint64_t key = helper_key(pass, thread);

		if (pass == NO_PASS || tuning->passes.list[pass].thread == thread ||
		    (tuning->helpers.count &&
		     tuning->helpers.list[tuning->helpers.count - 1] == key))
			continue;
		list_append(tuning->helpers, key);
	}
}

/* The instance that begins with this event is one of the new node. */
static void move_instance(struct ranges *ranges, const struct range_history *history, size_t event,
			  uint32_t node)
{
	struct range_node *own = &ranges->nodes.list[history->states[event]];

	if (own->parent != (event ? history->states[event - 1] : RANGE_NONE) || !own->count)
		return;
	own->count--;
	ranges->nodes.list[node].count++;
}

/* Adds the nodes of a thread's trials in passes, and of the ranges around them. */
static void graft_ranges(const struct xla_tuning *tuning, struct ranges *ranges, uint32_t thread,
			 size_t node_count_max)
{
	struct range_history history = ranges_history(ranges, thread);
	uint32_t own, before = RANGE_NONE;

	for (size_t i = 0; i < history.count && ranges->nodes.count < node_count_max;
	     i++, before = own) {
		size_t pass = pass_at(tuning, history.times_ns[i]);
		uint32_t range, node;

		own = history.states[i];
		if (!is_helper(tuning, pass, thread) ||
		    (!is_in_trial(tuning, own) && !is_in_trial(tuning, before)))
			continue;
		range = tuning->passes.list[pass].range;
		if (!ranges_graft(ranges, range, own, &node) && is_in_trial(tuning, own))
			move_instance(ranges, &history, i, node);
		ranges_graft(ranges, range, before, &node);
	}
}

/* Lists passes and compilations of all threads. */
static void list_passes(struct xla_tuning *tuning, const struct ranges *ranges,
			const uint8_t *kinds, struct tuning_passes *compilations)
{
	uint32_t *outer_pass = xt_calloc(ranges->nodes.count + 1, sizeof(*outer_pass));
	uint32_t *outer_compile = xt_calloc(ranges->nodes.count + 1, sizeof(*outer_compile));

	/* Parents come first. */
	for (uint32_t n = 1; n < ranges->nodes.count; n++) {
		uint32_t parent = ranges->nodes.list[n].parent;

		outer_pass[n] = outer_pass[parent];
		outer_compile[n] = outer_compile[parent];
		if (!outer_pass[n] && kinds[n] == TUNING_PASS)
			outer_pass[n] = n;
		if (!outer_compile[n] && (kinds[n] == TUNING_PASS || kinds[n] == TUNING_COMPILE))
			outer_compile[n] = n;
	}
	for (uint32_t t = 0; t < ranges->thread_count; t++) {
		struct range_history history = ranges_history(ranges, t);

		add_passes(&tuning->passes, &history, t, outer_pass);
		add_passes(compilations, &history, t, outer_compile);
	}
	free_all(outer_pass, outer_compile);
}

/*
 * Finds passes and helpers, and adds nodes to the ranges for their work. kinds: enum tuning_kind by
 * node.
 */
static void xla_tuning_index(struct xla_tuning *tuning, struct ranges *ranges, const uint8_t *kinds)
{
	struct tuning_passes compilations = {0};
	size_t node_count_max = ranges->nodes.count + NODES_ADDED_MAX;

	list_passes(tuning, ranges, kinds, &compilations);
	mark_overlapping(&tuning->passes, &compilations);
	free(compilations.list);
	for (uint32_t t = 0; t < ranges->thread_count; t++) {
		struct range_history history = ranges_history(ranges, t);

		add_helpers(tuning, &history, t);
	}
	SORT(tuning->helpers.list, tuning->helpers.count, compare_u64);
	for (uint32_t t = 0; t < ranges->thread_count && tuning->helpers.count; t++)
		graft_ranges(tuning, ranges, t, node_count_max);
}

void xla_tuning_free(struct xla_tuning *tuning)
{
	free_all(tuning->passes.list, tuning->helpers.list, tuning->in_trial, tuning->in_tuner);
	*tuning = (struct xla_tuning){0};
}

uint32_t xla_tuning_range(const struct xla_tuning *tuning, const struct ranges *ranges,
			  const struct range_call *call, uint32_t own)
{
	size_t pass = tuning->helpers.count ? pass_at(tuning, call->time_ns) : NO_PASS;
	uint32_t node = RANGE_NONE;

	if (pass != NO_PASS && is_helper(tuning, pass, call->thread) &&
	    (is_in_trial(tuning, own) ||
	     (call->stack < tuning->stack_count && tuning->in_tuner[call->stack])))
		node = ranges_grafted(ranges, tuning->passes.list[pass].range, own);
	return node ? node : own;
}

#define TRIALS_MAX 64 /* the log is untrusted: further stacks of trials are ignored */

/* Stacks of trials, each once, and how many frames other work shares with them. */
struct trials {
	const struct stack *stacks[TRIALS_MAX];
	size_t shared[TRIALS_MAX];
	size_t count;
};

/* Returns the stack if it is known (see model_has_stack()) and has no Python frames. */
static const struct stack *native_stack(const struct model *model, uint32_t stack)
{
	const struct stack *row = &model->stacks.rows[stack];

	return stack && stack < model->stacks.count &&
			       (row->seen_ns || row->frame_count || row->flags) &&
			       !row->python_count
		       ? row
		       : NULL;
}

static void add_trial(struct trials *trials, const struct stack *stack)
{
	for (size_t t = 0; t < trials->count; t++)
		if (trials->stacks[t] == stack)
			return;
	if (trials->count < TRIALS_MAX)
		trials->stacks[trials->count++] = stack;
}

/* Returns how many frames two complete stacks share, from the outermost on. */
static size_t shared_frames(const struct model *model, const struct stack *a, const struct stack *b)
{
	const uint64_t *end_a = model->frames.list + a->first_frame + a->frame_count;
	const uint64_t *end_b = model->frames.list + b->first_frame + b->frame_count;
	size_t count = 0;

	if ((a->flags | b->flags) & XT_STACK_TRUNCATED)
		return 0;
	while (count < a->frame_count && count < b->frame_count &&
	       end_a[-1 - (ptrdiff_t)count] == end_b[-1 - (ptrdiff_t)count])
		count++;
	return count;
}

/* Compares stacks of trials with the stack of other work. */
static void compare_other(const struct model *model, struct trials *trials,
			  const struct stack *other)
{
	for (size_t t = 0; t < trials->count; t++) {
		size_t shared = shared_frames(model, trials->stacks[t], other);

		trials->shared[t] = larger(trials->shared[t], shared);
	}
}

/* Whether a stack shares more frames with a trial than other work does. */
static bool is_in_tuner(const struct model *model, const struct trials *trials,
			const struct stack *stack)
{
	for (size_t t = 0; t < trials->count; t++)
		if (trials->shared[t] &&
		    shared_frames(model, stack, trials->stacks[t]) > trials->shared[t])
			return true;
	return false;
}

/* Marks the stacks that code of the tuner made. is_other: by stack, whether it is other work. */
static void mark_stacks(struct model *model, struct trials *trials, const uint8_t *is_other)
{
	struct xla_tuning *tuning = &model->tuning;

	tuning->in_tuner = xt_calloc(model->stacks.count + 1, 1);
	tuning->stack_count = model->stacks.count;
	for (size_t s = 0; s < tuning->stack_count; s++)
		if (is_other[s])
			compare_other(model, trials, &model->stacks.rows[s]);
	for (uint32_t s = 0; s < tuning->stack_count; s++)
		tuning->in_tuner[s] = native_stack(model, s) &&
				      is_in_tuner(model, trials, native_stack(model, s));
}

static enum tuning_kind tuning_kind(const struct model *model, uint32_t range)
{
	switch (xla_range_kind(model, range)) {
	case XLA_COMPILE:
		return TUNING_COMPILE;
	case XLA_TUNING:
		return TUNING_PASS;
	case XLA_TRIAL:
		/* A program that Python runs is no trial. */
		return native_stack(model, model->ranges.nodes.list[range].stack) ? TUNING_TRIAL
										  : TUNING_OTHER;
	default:
		return TUNING_OTHER;
	}
}

/* Sets the kinds of all nodes. Returns whether there are passes and trials. */
static bool sort_nodes(const struct model *model, uint8_t *kinds, uint8_t *in_trial)
{
	size_t counts[TUNING_KINDS] = {0};

	/* Parents come first. */
	for (uint32_t n = 1; n < model->ranges.nodes.count; n++) {
		kinds[n] = (uint8_t)tuning_kind(model, n);
		counts[kinds[n]]++;
		in_trial[n] =
			in_trial[model->ranges.nodes.list[n].parent] || kinds[n] == TUNING_TRIAL;
	}
	return counts[TUNING_PASS] && counts[TUNING_TRIAL];
}

/* Finds the stacks of the tuner. */
static void find_stacks(struct model *model, const uint8_t *kinds)
{
	const struct ranges *ranges = &model->ranges;
	uint8_t *is_other = xt_calloc(model->stacks.count + 1, 1);
	struct trials trials = {0};

	for (uint32_t n = 1; n < ranges->nodes.count; n++) {
		uint32_t stack = ranges->nodes.list[n].stack;

		if (kinds[n] == TUNING_TRIAL)
			add_trial(&trials, native_stack(model, stack));
		else if (!model->tuning.in_trial[n] && native_stack(model, stack))
			is_other[stack] = 1;
	}
	mark_stacks(model, &trials, is_other);
	free(is_other);
}

void xla_join(struct model *model)
{
	struct xla_tuning *tuning = &model->tuning;
	uint8_t *kinds = xt_calloc(model->ranges.nodes.count + 1, 1);

	tuning->in_trial = xt_calloc(model->ranges.nodes.count + 1, 1);
	if (sort_nodes(model, kinds, tuning->in_trial)) {
		tuning->node_count = model->ranges.nodes.count;
		find_stacks(model, kinds);
		xla_tuning_index(tuning, &model->ranges, kinds);
	}
	free(kinds);
}
