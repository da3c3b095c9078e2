/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Derives nested ranges by thread and time from NVTX events. Parses the lines "name=value" of the
 * values of a range.
 */
#include "merge/read/ranges.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/tables.h"
#include "log/base/compare.h"
#include "base/text.h"
#include "merge/read/model.h"
#include "xtrace/log_format.h"

void range_names_add(struct range_names *names, uint32_t domain, uint64_t key, uint32_t text)
{
	if (names->count >= UINT32_MAX)
		xt_out_of_memory(0);
	list_append(*names, (struct range_name){key, domain, text, (uint32_t)names->count});
}

COMPARE_BY(compare_names, struct range_name, UP(domain) UP(key) UP(order))

void range_names_index(struct range_names *names)
{
	SORT(names->list, names->count, compare_names);
}

void range_names_free(struct range_names *names)
{
	free(names->list);
	*names = (struct range_names){0};
}

uint32_t range_names_find(const struct range_names *names, uint32_t domain, uint64_t key)
{
	const struct range_name wanted = {key, domain, 0, UINT32_MAX};
	size_t low = FIRST_NOT(i, 0, names->count, compare_names(&names->list[i], &wanted) < 0);

	if (!low || names->list[low - 1].domain != domain || names->list[low - 1].key != key)
		return 0;
	return names->list[low - 1].text;
}

#define EXACT_DIGITS_MAX 15 /* digits that a double, as in JavaScript, represents exactly */

static size_t skip_digits(const char *text, size_t length, size_t at)
{
	while (at < length && text[at] >= '0' && text[at] <= '9')
		at++;
	return at;
}

/* Treats long numbers as text: they are ids, which a double would change. */
static bool is_number(const char *text, size_t length)
{
	size_t first = length && text[0] == '-', end = skip_digits(text, length, first);

	if (end == first || (text[first] == '0' && end > first + 1) ||
	    end - first > EXACT_DIGITS_MAX)
		return false;
	if (end < length && text[end] == '.') {
		size_t fraction = skip_digits(text, length, end + 1);

		if (fraction == end + 1)
			return false;
		end = fraction;
	}
	if (end < length && text[end] == 'e') {
		size_t sign = end + 1 +
			      (end + 1 < length && (text[end + 1] == '-' || text[end + 1] == '+'));

		end = skip_digits(text, length, sign);
		if (end == sign)
			return false;
	}
	return end == length;
}

static void add_value(struct range_value *values, size_t *count, const struct range_value *value)
{
	for (size_t i = 0; i < *count; i++) {
		if (values[i].name.length != value->name.length ||
		    memcmp(values[i].name.data, value->name.data, value->name.length))
			continue;
		values[i] = *value;
		return;
	}
	if (*count < RANGE_VALUES_MAX)
		values[(*count)++] = *value;
}

static void add_lines(const struct model *model, uint32_t string, struct range_value *values,
		      size_t *count)
{
	size_t left;
	const char *line = names_text(
		&model->names,
		string < model->strings.count ? model->strings.rows[string] : NAME_EMPTY, &left);

	while (left) {
		const char *end = memchr(line, '\n', left);
		size_t length = end ? (size_t)(end - line) : left;
		const char *equals = memchr(line, '=', length);
		size_t name_length = equals ? (size_t)(equals - line) : 0;

		if (name_length)
			add_value(values, count,
				  &(struct range_value){
					  .name = {line, name_length},
					  .value = {equals + 1, length - name_length - 1},
					  .is_number =
						  is_number(equals + 1, length - name_length - 1),
				  });
		line += length + (end != NULL);
		left -= length + (end != NULL);
	}
}

size_t range_values(const struct model *model, uint32_t begin, uint32_t end,
		    struct range_value values[RANGE_VALUES_MAX])
{
	size_t count = 0;

	if (begin)
		add_lines(model, begin, values, &count);
	if (end)
		add_lines(model, end, values, &count);
	return count;
}

static char *put_text(char *p, const struct xt_bytes *text)
{
	*p++ = '"';
	p += text_json(p, text->data, text->length);
	*p++ = '"';
	return p;
}

char *range_values_json(const struct model *model, uint32_t begin, uint32_t end)
{
	struct range_value values[RANGE_VALUES_MAX];
	size_t count = range_values(model, begin, end, values), room = 3;
	char *json, *p;

	for (size_t i = 0; i < count; i++)
		room += text_json_bound(values[i].name.length + values[i].value.length) + 6;
	p = json = xt_malloc(room);
	*p++ = '{';
	for (size_t i = 0; i < count; i++) {
		if (i)
			*p++ = ',';
		p = put_text(p, &values[i].name);
		*p++ = ':';
		if (values[i].is_number)
			p = text_copy(p, values[i].value.data, values[i].value.length);
		else
			p = put_text(p, &values[i].value);
	}
	*p++ = '}';
	*p = '\0';
	return json;
}

#define SEARCH_MAX  4096       /* open ranges to search for the one that ends */
#define MOVED_MAX   (1u << 18) /* nodes created because an outer range ended first */
#define THREADS_MAX (1u << 20) /* no process has more threads; larger ids are damage */

struct range_label {
	uint32_t domain;
	uint32_t text;
	uint32_t stack;
	uint32_t category;
	uint64_t key;
};

struct raw_event {
	uint64_t time_ns;
	uint32_t thread;
	uint32_t label;
	uint32_t order; /* position in the log */
	uint8_t operation;
	uint8_t payload_type;
	uint64_t payload;
};

struct range_thread {
	size_t first; /* its events are [first, end) */
	size_t end;
	size_t recent; /* result of the last search */
};

struct open_range {
	uint64_t key; /* of a started range */
	uint32_t domain;
	uint32_t text;
	uint32_t stack;
	uint32_t node; /* the nesting of this range and all around it */
	bool is_start;
	bool is_nested; /* if false, it counts for the range around it and has its node */
};

/* State while nesting the events of a log. */
struct nesting {
	struct ranges *ranges;
	LIST(struct open_range) open; /* of the current thread, outermost first */
	size_t moved_count;	      /* nodes created because an outer range ended first */
};

void range_counts_add(struct range_counts *sums, const struct range_counts *counts,
		      bool lacks_beginning)
{
	sums->opened += counts->opened;
	sums->pops_unmatched += lacks_beginning ? 0 : counts->pops_unmatched;
	sums->ends_unmatched += lacks_beginning ? 0 : counts->ends_unmatched;
	sums->keys_recurring += counts->keys_recurring;
	sums->not_nested += counts->not_nested;
	sums->unclosed += counts->unclosed;
}

/* Events with equal texts share a label if they are close: most events of a loop. */
static uint32_t add_label(struct ranges *ranges, const struct range_event *event)
{
	const struct range_label label = {event->domain, event->text, event->stack, event->category,
					  event->key};

	for (size_t back = 1; back <= 16 && back <= ranges->labels.count; back++) {
		const struct range_label *known = &ranges->labels.list[ranges->labels.count - back];

		if (known->domain == label.domain && known->text == label.text &&
		    known->stack == label.stack && known->category == label.category &&
		    known->key == label.key)
			return (uint32_t)(ranges->labels.count - back);
	}
	if (ranges->labels.count >= UINT32_MAX)
		xt_out_of_memory(0);
	list_append(ranges->labels, label);
	return (uint32_t)ranges->labels.count - 1;
}

void ranges_add(struct ranges *ranges, const struct range_event *event)
{
	struct raw_event raw = {
		.time_ns = event->time_ns,
		.thread = event->thread < THREADS_MAX ? event->thread : 0,
		.order = (uint32_t)ranges->raw.count,
		.operation = (uint8_t)event->operation,
		.payload_type = event->payload_type > UINT8_MAX ? 0 : (uint8_t)event->payload_type,
		.payload = event->payload,
	};

	if (event->operation < XT_RANGE_PUSH || event->operation > XT_RANGE_END)
		return;
	if (ranges->raw.count >= UINT32_MAX)
		xt_out_of_memory(0);
	raw.label = add_label(ranges, event);
	list_append(ranges->raw, raw);
}

static uint32_t hash_range(uint32_t parent, uint32_t domain, uint32_t text, uint32_t stack)
{
	uint64_t h = ((uint64_t)parent << 32 | text) * 0x9e3779b97f4a7c15u;

	h = (h ^ h >> 32 ^ ((uint64_t)domain << 32 | stack)) * 0xc2b2ae3d27d4eb4fu;
	return (uint32_t)(h >> 32);
}

/* Returns the slot of a range within parent, or the empty slot for it. */
static struct xt_hash_slot *find_child(const struct ranges *ranges, uint32_t parent,
				       uint32_t domain, uint32_t text, uint32_t stack)
{
	const struct xt_hash_table *table = &ranges->children;
	struct xt_hash_slot *slot = xt_hash_first(table, hash_range(parent, domain, text, stack));

	for (; slot->item; slot = xt_hash_next(table, slot)) {
		const struct range_node *node = &ranges->nodes.list[slot->item];

		if (node->parent == parent && node->domain == domain && node->text == text &&
		    node->stack == stack)
			break;
	}
	return slot;
}

/* Finds or creates the node of a range within parent. */
static uint32_t child(struct ranges *ranges, uint32_t parent, const struct open_range *range)
{
	uint32_t hash = hash_range(parent, range->domain, range->text, range->stack);
	struct xt_hash_table *table = &ranges->children;
	struct xt_hash_slot *slot;

	if (ranges->nodes.count >= table->slot_count / 2)
		xt_hash_require(table, ranges->nodes.count + 1);
	slot = find_child(ranges, parent, range->domain, range->text, range->stack);
	if (slot->item)
		return slot->item;
	list_append(ranges->nodes, (struct range_node){
					   .parent = parent,
					   .domain = range->domain,
					   .text = range->text,
					   .stack = range->stack,
					   .depth = ranges->nodes.list[parent].depth + 1,
				   });
	*slot = (struct xt_hash_slot){hash, (uint32_t)ranges->nodes.count - 1};
	return slot->item;
}

void range_payload_add(struct range_payload *a, const struct range_payload *b)
{
	if (!b->count)
		return;
	if (!a->count || b->min < a->min)
		a->min = b->min;
	if (!a->count || b->max > a->max)
		a->max = b->max;
	a->sum += b->sum;
	a->count += b->count;
}

struct range_number range_number_of(uint64_t bits, uint32_t type)
{
	/* NVTX's payload types. */
	enum { U64 = 1, S64, DOUBLE, U32, S32, FLOAT };
	struct range_number number = {.kind = RANGE_UNSIGNED, .bits = bits};
	float small;

	switch (type) {
	case U64:
		break;
	case U32:
		number.bits = (uint32_t)bits;
		break;
	case S64:
		number.kind = RANGE_SIGNED;
		break;
	case S32:
		number.kind = RANGE_SIGNED;
		number.bits = (uint64_t)(int32_t)(uint32_t)bits;
		break;
	case DOUBLE:
		number.kind = RANGE_DOUBLE;
		break;
	case FLOAT:
		number.kind = RANGE_FLOAT;
		memcpy(&small, &bits, sizeof(small));
		number.real = (double)small;
		break;
	default:
		number.kind = RANGE_NO_NUMBER;
	}
	return number;
}

/* Returns {1, value, value, value}, or zeros if the payload is not a finite number. */
static struct range_payload range_payload_of(uint64_t bits, uint32_t type)
{
	struct range_number number = range_number_of(bits, type);
	double value = number.kind == RANGE_UNSIGNED ? (double)number.bits
		       : number.kind == RANGE_SIGNED ? (double)(int64_t)number.bits
						     : number.real;

	if (number.kind == RANGE_NO_NUMBER || !__builtin_isfinite(value))
		return (struct range_payload){0};
	return (struct range_payload){1, value, value, value};
}

static uint32_t current_node(const struct nesting *nesting)
{
	return nesting->open.count ? nesting->open.list[nesting->open.count - 1].node : RANGE_NONE;
}

static void note_instance(struct range_node *node, const struct range_label *label,
			  const struct raw_event *event)
{
	struct range_payload payload = range_payload_of(event->payload, event->payload_type);

	if (!node->count)
		node->category = label->category;
	else if (node->category != label->category)
		node->category = RANGE_CATEGORY_SEVERAL;
	node->count++;
	range_payload_add(&node->payload, &payload);
}

static void open_range(struct nesting *nesting, const struct raw_event *event)
{
	struct ranges *ranges = nesting->ranges;
	const struct range_label *label = &ranges->labels.list[event->label];
	struct open_range range = {
		.key = label->key,
		.domain = label->domain,
		.text = label->text,
		.stack = label->stack,
		.node = current_node(nesting),
		.is_start = event->operation == XT_RANGE_START,
	};

	range.is_nested = ranges->nodes.list[range.node].depth < RANGES_DEPTH_MAX;
	if (range.is_nested) {
		range.node = child(ranges, range.node, &range);
		note_instance(&ranges->nodes.list[range.node], label, event);
	}
	ranges->counts.opened++;
	ranges->counts.not_nested += !range.is_nested;
	list_append(nesting->open, range);
}

/*
 * If ranges end in the order in which they began, each end creates new nodes for all open ranges.
 * After MOVED_MAX of these, only the innermost range counts, and the others count for the range
 * around them. Then each event creates at most one node.
 */
static void limit_moved_nodes(struct nesting *nesting, size_t first)
{
	bool has_innermost = false;

	if (nesting->moved_count < MOVED_MAX)
		return;
	for (size_t i = nesting->open.count; i-- > first;) {
		struct open_range *range = &nesting->open.list[i];

		if (has_innermost && range->is_nested) {
			range->is_nested = false;
			nesting->ranges->counts.not_nested++;
		}
		has_innermost |= range->is_nested;
	}
}

/* Moves the ranges opened within an ended range into the range around it. */
static void reparent(struct nesting *nesting, size_t first)
{
	struct ranges *ranges = nesting->ranges;
	uint32_t node = first ? nesting->open.list[first - 1].node : RANGE_NONE;
	size_t node_count = ranges->nodes.count;

	limit_moved_nodes(nesting, first);
	for (size_t i = first; i < nesting->open.count; i++) {
		struct open_range *range = &nesting->open.list[i];

		if (range->is_nested)
			node = child(ranges, node, range);
		range->node = node;
	}
	nesting->moved_count += ranges->nodes.count - node_count;
}

static void close_range(struct nesting *nesting, const struct raw_event *event)
{
	const struct range_label *label = &nesting->ranges->labels.list[event->label];
	bool is_end = event->operation == XT_RANGE_END, was_nested;
	size_t i = nesting->open.count, searched = 0;

	for (; i && searched < SEARCH_MAX; i--, searched++) {
		const struct open_range *range = &nesting->open.list[i - 1];

		if (range->is_start == is_end &&
		    (is_end ? range->key == label->key : range->domain == label->domain))
			break;
	}
	if (!i || searched == SEARCH_MAX) {
		if (is_end)
			nesting->ranges->counts.ends_unmatched++;
		else
			nesting->ranges->counts.pops_unmatched++;
		return;
	}
	i--;
	was_nested = nesting->open.list[i].is_nested;
	nesting->open.count--;
	memmove(&nesting->open.list[i], &nesting->open.list[i + 1],
		(nesting->open.count - i) * sizeof(*nesting->open.list));
	if (was_nested)
		reparent(nesting, i);
}

static uint64_t event_key(const struct ranges *ranges, size_t event)
{
	return ranges->labels.list[ranges->raw.list[event].label].key;
}

/* Returns the slot of the start with the key of that event, or the empty slot for it. */
static struct xt_hash_slot *find_start(const struct ranges *ranges,
				       const struct xt_hash_table *starts, size_t event)
{
	uint64_t key = event_key(ranges, event);
	struct xt_hash_slot *slot = xt_hash_first(starts, xt_hash_u64(key));

	while (slot->item && event_key(ranges, slot->item - 1) != key)
		slot = xt_hash_next(starts, slot);
	return slot;
}

/* Sets the event as the start of its key. Returns true if the key had a start already. */
static bool set_start(const struct ranges *ranges, const struct xt_hash_table *starts, size_t event)
{
	struct xt_hash_slot *slot = find_start(ranges, starts, event);
	bool is_recurring = slot->item;

	*slot = (struct xt_hash_slot){xt_hash_u64(event_key(ranges, event)), (uint32_t)event + 1};
	return is_recurring;
}

COMPARE_BY(compare_times, struct raw_event, UP(time_ns) UP(order))

/*
 * Assigns each end to the thread that started the range. An end has only the key of its range. If
 * several starts have that key, the last one before the end counts.
 */
static void assign_ends(struct ranges *ranges)
{
	struct xt_hash_table starts = {0};
	size_t start_count = 0;

	for (size_t r = 0; r < ranges->raw.count; r++)
		start_count += ranges->raw.list[r].operation == XT_RANGE_START;
	xt_hash_require(&starts, start_count);
	for (size_t r = 0; r < ranges->raw.count; r++)
		if (ranges->raw.list[r].operation == XT_RANGE_START)
			ranges->counts.keys_recurring += set_start(ranges, &starts, r);
	if (ranges->counts.keys_recurring) {
		memset(starts.slots, 0, starts.slot_count * sizeof(*starts.slots));
		qsort(ranges->raw.list, ranges->raw.count, sizeof(*ranges->raw.list),
		      compare_times);
	}
	for (size_t r = 0; r < ranges->raw.count; r++) {
		struct raw_event *event = &ranges->raw.list[r];

		if (event->operation == XT_RANGE_START) {
			set_start(ranges, &starts, r);
		} else if (event->operation == XT_RANGE_END) {
			const struct xt_hash_slot *start = find_start(ranges, &starts, r);

			if (start->item)
				event->thread = ranges->raw.list[start->item - 1].thread;
		}
	}
	xt_hash_free(&starts);
}

COMPARE_BY(compare_events, struct raw_event, UP(thread) UP(time_ns) UP(order))

/* Turns the sorted events into times and nodes. */
static void nest_events(struct ranges *ranges)
{
	struct nesting nesting = {.ranges = ranges};

	for (size_t r = 0; r < ranges->raw.count; r++) {
		const struct raw_event *event = &ranges->raw.list[r];
		struct range_thread *thread = &ranges->threads[event->thread];

		if (!r || event->thread != ranges->raw.list[r - 1].thread) {
			ranges->counts.unclosed += nesting.open.count;
			nesting.open.count = 0;
			thread->first = thread->recent = r;
		}
		thread->end = r + 1;
		if (event->operation == XT_RANGE_PUSH || event->operation == XT_RANGE_START)
			open_range(&nesting, event);
		else
			close_range(&nesting, event);
		ranges->times_ns[r] = event->time_ns;
		ranges->states[r] = current_node(&nesting);
	}
	ranges->counts.unclosed += nesting.open.count;
	free(nesting.open.list);
}

void ranges_index(struct ranges *ranges)
{
	if (!ranges->raw.count)
		return;
	assign_ends(ranges);
	list_append(ranges->nodes, (struct range_node){0});
	qsort(ranges->raw.list, ranges->raw.count, sizeof(*ranges->raw.list), compare_events);
	ranges->thread_count = (size_t)ranges->raw.list[ranges->raw.count - 1].thread + 1;
	ranges->threads = xt_calloc(ranges->thread_count, sizeof(*ranges->threads));
	ranges->times_ns = xt_calloc(ranges->raw.count, sizeof(*ranges->times_ns));
	ranges->states = xt_calloc(ranges->raw.count, sizeof(*ranges->states));
	nest_events(ranges);
	free_all(ranges->raw.list, ranges->labels.list);
	ranges->raw.list = NULL;
	ranges->labels.list = NULL;
	ranges->raw.count = ranges->raw.capacity = 0;
	ranges->labels.count = ranges->labels.capacity = 0;
}

void ranges_free(struct ranges *ranges)
{
	free(ranges->nodes.list);
	xt_hash_free(&ranges->children);
	free_all(ranges->raw.list, ranges->labels.list, ranges->times_ns, ranges->states,
		 ranges->threads);
	*ranges = (struct ranges){0};
}

/* Lists a node and its outer nodes, innermost first. Returns their number. */
static uint32_t list_nest(const struct ranges *ranges, uint32_t node,
			  uint32_t nest[RANGES_DEPTH_MAX])
{
	uint32_t count = 0;

	for (; node != RANGE_NONE && count < RANGES_DEPTH_MAX;
	     node = ranges->nodes.list[node].parent)
		nest[count++] = node;
	return count;
}

int ranges_graft(struct ranges *ranges, uint32_t outer, uint32_t inner, uint32_t *node_out)
{
	uint32_t nest[RANGES_DEPTH_MAX], count = list_nest(ranges, inner, nest);

	*node_out = outer;
	if (ranges->nodes.list[outer].depth + count > RANGES_DEPTH_MAX)
		return -E2BIG;
	while (count-- > 0) {
		const struct range_node *node = &ranges->nodes.list[nest[count]];
		const struct open_range range = {
			.domain = node->domain, .text = node->text, .stack = node->stack};

		*node_out = child(ranges, *node_out, &range);
	}
	return 0;
}

uint32_t ranges_grafted(const struct ranges *ranges, uint32_t outer, uint32_t inner)
{
	uint32_t nest[RANGES_DEPTH_MAX], count = list_nest(ranges, inner, nest);

	while (count-- > 0 && outer != RANGE_NONE) {
		const struct range_node *node = &ranges->nodes.list[nest[count]];

		outer = find_child(ranges, outer, node->domain, node->text, node->stack)->item;
	}
	return outer;
}

struct range_history ranges_history(const struct ranges *ranges, uint32_t thread)
{
	const struct range_thread *t;

	if (thread >= ranges->thread_count)
		return (struct range_history){0};
	t = &ranges->threads[thread];
	return (struct range_history){ranges->times_ns + t->first, ranges->states + t->first,
				      t->end - t->first};
}

uint32_t ranges_at(struct ranges *ranges, uint32_t thread, uint64_t time_ns)
{
	struct range_thread *t;
	size_t low, high; /* the first later one */

	if (thread >= ranges->thread_count)
		return RANGE_NONE;
	t = &ranges->threads[thread];
	low = t->first;
	high = t->end;
	/* Calls come in order, so start at the result of the last search. */
	if (t->recent < t->end && ranges->times_ns[t->recent] <= time_ns) {
		low = t->recent + 1;
		if (low < t->end && ranges->times_ns[low] > time_ns)
			high = low;
	}
	low = FIRST_NOT(i, low, high, ranges->times_ns[i] <= time_ns);
	if (low == t->first)
		return RANGE_NONE;
	t->recent = low - 1;
	return ranges->states[low - 1];
}
