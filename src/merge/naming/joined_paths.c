/* SPDX-License-Identifier: Apache-2.0 */
#include "merge/naming/joined_paths.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "log/base/compare.h"
#include "base/text.h"

#define OPERATORS    "_ZN2at4_ops"
#define CPP_NODE     "N5torch8autograd7CppNodeI"
#define BACKWARD     "Backward"
#define OPERATOR_MAX 256

/* A part of a mangled name: its length in decimal, then its text. */
struct part {
	const char *text;
	size_t length;
};

/* Reads the part at *at and moves behind it. False if there is none. */
static bool read_part(const char **at, struct part *part)
{
	size_t length = 0;
	const char *p = *at;

	while (isdigit((unsigned char)*p) && length < OPERATOR_MAX)
		length = length * 10 + (size_t)(*p++ - '0');
	if (!length || length >= OPERATOR_MAX || strnlen(p, length) < length)
		return false;
	*part = (struct part){p, length};
	*at = p + length;
	return true;
}

/* The last part of a nested name: AddmmBackward0 of N5torch8autograd9generated14AddmmBackward0E. */
static bool last_part(const char *type, struct part *last)
{
	bool found = false;

	for (type += *type == 'N'; read_part(&type, last);)
		found = true;
	return found;
}

void torch_node_label(const char *type, const char *class_name, char *out, size_t out_bytes)
{
	struct part part;

	if (class_name[0])
		snprintf(out, out_bytes, "%s", class_name);
	else if (begins_with(type, CPP_NODE) && last_part(type + strlen(CPP_NODE), &part))
		snprintf(out, out_bytes, "CppNode<%.*s>", (int)part.length, part.text);
	else if (last_part(type, &part))
		snprintf(out, out_bytes, "%.*s", (int)part.length, part.text);
	else
		snprintf(out, out_bytes, "%s", type);
}

/* Lower case, without underscores. */
static size_t plain(const char *text, size_t length, char *out)
{
	size_t used = 0;

	for (size_t i = 0; i < length; i++)
		if (text[i] != '_')
			out[used++] = (char)tolower((unsigned char)text[i]);
	return used;
}

/*
 * The name of a node is that of its operator in camel case, then "Backward" and a number. The
 * operator's function has the name of the overload appended: add_Tensor.
 */
static bool operator_makes(const struct part *operator, const struct part * node)
{
	char node_name[OPERATOR_MAX], name[OPERATOR_MAX];
	const char *end = memmem(node->text, node->length, BACKWARD, strlen(BACKWARD));
	size_t node_length = end ? plain(node->text, (size_t)(end - node->text), node_name) : 0;

	for (size_t i = 1; i <= operator->length && node_length; i++) {
		if (i < operator->length && operator->text[i] != '_')
			continue;
		if (plain(operator->text, i, name) == node_length &&
		    !memcmp(name, node_name, node_length))
			return true;
	}
	return false;
}

/* The class of CppNode<T>, as it is mangled in the names of its functions. */
static bool is_of_class(const char *type, const char *function)
{
	const char *class = type + strlen(CPP_NODE);
	size_t length = strlen(class);

	/* "EE" ends the arguments and the nested name. */
	if (length < 4)
		return false;
	length -= 2;
	if (*class == 'N') { /* of a nested class: without N and E */
		class ++;
		length -= 2;
	}
	return memmem(function, strlen(function), class, length) != NULL;
}

bool torch_node_is_made_by(const char *type, const char *function)
{
	const char *at = function + strlen(OPERATORS);
	struct part operator, node;

	if (begins_with(type, CPP_NODE))
		return is_of_class(type, function) && !strstr(function, "CppNode");
	return begins_with(function, OPERATORS) && read_part(&at, &operator) &&
	       last_part(type, &node) && operator_makes(&operator, & node);
}

bool torch_class_is_made_by(const char *class_name, const char *function)
{
	static const char forward[] = "forward";
	size_t length = strlen(function), class_length = strlen(class_name);
	const char *class;

	if (class_length <= strlen(BACKWARD))
		return false;
	class_length -= strlen(BACKWARD);
	if (strcmp(class_name + class_length, BACKWARD) != 0 || length < strlen(forward) ||
	    strcmp(function + length - strlen(forward), forward) != 0)
		return false;
	if (length == strlen(forward)) /* the plain name, up to Python 3.10 */
		return true;
	class = function + length - strlen(forward) - 1 - class_length;
	return class >= function && (class == function || class[-1] == '.') &&
	       class[class_length] == '.' && !strncmp(class, class_name, class_length);
}

#define LABEL_BACKWARD LABEL_ANY_BACKWARD "] "
#define LABEL_INFERRED LABEL_ANY_BACKWARD "~] "
#define LABEL_UNKNOWN  LABEL_ANY_BACKWARD "?] "

#define EXECUTE	    "_ZN5torch8autograd6Engine7execute"
#define LABEL_BYTES 256

static const char *text_of(const struct frames *frames, uint32_t string)
{
	return names_text(&frames->model->names, model_string(frames->model, string), NULL);
}

static bool is_joined(const struct frames *frames, uint32_t stack)
{
	return autograd_is_joined(&frames->model->autograd, stack);
}

/* NULL: the item is no Python frame. */
static const struct python_frame *python_frame_of(const struct frames *frames,
						  const struct path_item *item)
{
	return item->kind == MERGED_PYTHON && item->value < frames->model->python_frames.count
		       ? &frames->model->python_frames.rows[item->value]
		       : NULL;
}

/* Whether an item is a Python frame of such a file and function. function NULL: any. */
static bool is_python(const struct frames *frames, const struct path_item *item, const char *file,
		      const char *function)
{
	const struct python_frame *frame = python_frame_of(frames, item);

	return frame && ends_with(text_of(frames, frame->file), file) &&
	       (!function || ends_with(text_of(frames, frame->name), function));
}

static const char *mangled_name(const struct frames *frames, uint32_t address)
{
	return names_text(&frames->model->names, frames->addresses->list[address].name, NULL);
}

static bool is_evaluate_function(const struct frames *frames, uint32_t address)
{
	return begins_with(mangled_name(frames, address), TORCH_EVALUATE_FUNCTION);
}

/* The frames inside the innermost node that the stack runs begin at this item. */
static size_t first_of_node(const struct frames *frames, const struct path_items *own)
{
	for (size_t i = own->count; i-- > 0;) {
		const struct path_item *item = &own->items[i];

		if ((item->kind == MERGED_NATIVE && is_evaluate_function(frames, item->value)) ||
		    is_python(frames, item, "torch/autograd/graph.py", "_engine_run_backward"))
			return i + 1;
	}
	return 0;
}

/*
 * The outermost function of a stack of the log that creates nodes of a type, as index in the
 * addresses. With `in_node`, only inside the innermost node that the stack runs. False if there is
 * none.
 */
static bool find_maker(const struct frames *frames, uint32_t stack, const char *type, bool in_node,
		       uint32_t *address_out)
{
	const struct stack *row = &frames->model->stacks.rows[stack];
	const uint32_t *addresses = frames->addresses->by_frame + row->first_frame;
	bool found = false;

	/* Innermost first: the last match is the outermost. */
	for (uint32_t f = 0; f < row->frame_count; f++) {
		if (in_node && is_evaluate_function(frames, addresses[f]))
			break;
		if (torch_node_is_made_by(type, mangled_name(frames, addresses[f]))) {
			*address_out = addresses[f];
			found = true;
		}
	}
	return found;
}

/* Cuts the path behind the function that made the node. False if no such function is there. */
static bool cut_at_maker(const struct frames *frames, uint32_t stack, const char *type,
			 struct path_items *path)
{
	uint32_t address;
	size_t i = 0;

	if (!find_maker(frames, model_own_stack(frames->model, stack), type,
			is_joined(frames, stack), &address))
		return false;
	for (size_t l = 0; l < path->count; l++)
		if (path->items[l].kind == MERGED_LABEL)
			i = l + 1;
	for (; i < path->count; i++)
		if (path->items[i].kind == MERGED_NATIVE && path->items[i].value == address) {
			path->count = i + 1;
			break;
		}
	return true;
}

/* The same for a Python function: cuts the path behind Function.apply(). */
static bool cut_at_apply(const struct frames *frames, const char *class_name,
			 struct path_items *path)
{
	for (size_t a = 0; a < path->count; a++) {
		if (!is_python(frames, &path->items[a], "torch/autograd/function.py", "apply"))
			continue;
		for (size_t f = a + 1; f < path->count; f++) {
			const struct python_frame *frame = python_frame_of(frames, &path->items[f]);

			if (frame &&
			    torch_class_is_made_by(class_name, text_of(frames, frame->name))) {
				path->count = a + 1;
				return true;
			}
		}
	}
	return false;
}

/* Two calls in one native function are equal: their lines are not shown. */
static bool is_shown_equal(const struct frames *frames, const struct path_item *a,
			   const struct path_item *b)
{
	if (a->kind != b->kind || a->kind != MERGED_NATIVE)
		return a->kind == b->kind && a->value == b->value;
	return frames->address_names[a->value] == frames->address_names[b->value];
}

/* Shortens the path to what it shares with another stack's. */
static void cut_to_common(const struct frames *frames, uint32_t stack, struct path_items *path)
{
	struct path_items other = {0};
	size_t i = 0;

	joined_paths_list(frames, stack, &other);
	while (i < path->count && i < other.count &&
	       is_shown_equal(frames, &path->items[i], &other.items[i]))
		i++;
	path->count = i;
	free(other.items);
}

/* The item that calls the engine in the launch's own thread; `first` if there is none. */
static size_t engine_call(const struct frames *frames, const struct path_items *own, size_t first)
{
	for (size_t i = first; i-- > 0;)
		if (own->items[i].kind == MERGED_NATIVE &&
		    begins_with(mangled_name(frames, own->items[i].value), EXECUTE))
			return i;
	return first;
}

static void joined_paths_append(struct path_items *path, const struct path_item *items,
				size_t count)
{
	xt_grow(path->items, path->capacity, path->count + count);
	if (count)
		memcpy(path->items + path->count, items, count * sizeof(*items));
	path->count += count;
}

/*
 * The frames of the call of backward(), in the launch's own thread or in the caller's. If the call
 * is unknown, the frames of the engine.
 */
static void list_caller(const struct frames *frames, const struct joined_stack *join,
			const struct path_items *own, size_t first, struct path_items *path)
{
	uint32_t caller = autograd_state(&frames->model->autograd, join->state)->caller_stack;

	if (caller && frames_has_stack(frames, caller) && !is_joined(frames, caller)) {
		frames_list(frames, caller, path);
		return;
	}
	path->count = 0;
	joined_paths_append(path, own->items, engine_call(frames, own, first));
}

/* Finds the path up to the forward line. */
static enum join_result list_forward(const struct frames *frames, const struct joined_stack *join,
				     const struct path_items *own, size_t first,
				     struct path_items *path)
{
	const struct autograd_state *state = autograd_state(&frames->model->autograd, join->state);
	const char *type = text_of(frames, state->node_type);
	const char *class_name = text_of(frames, state->node_class);
	uint32_t after = join->at ? join->at : join->after;

	if (!state->node_thread) { /* it belongs to backward() itself */
		list_caller(frames, join, own, first, path);
		if (state->caller_stack)
			return state->caller ? JOIN_EXACT : JOIN_INFERRED;
		return engine_call(frames, own, first) == first ? JOIN_NONE : JOIN_EXACT;
	}
	if (frames_has_stack(frames, join->at)) {
		joined_paths_list(frames, join->at, path);
		if (join->is_certain &&
		    (class_name[0] ? cut_at_apply(frames, class_name, path)
				   : cut_at_maker(frames, join->at, type, path)))
			/* A derivative of a derivative is no better known than its first one. */
			return is_joined(frames, join->at) ? joined_paths_result(frames, join->at)
							   : JOIN_EXACT;
	}
	path->count = 0;
	/* An id that a joined stack may get is not one of the log. */
	if (!after && !is_joined(frames, state->caller_stack))
		after = state->caller_stack;
	if (join->before && after) {
		joined_paths_list(frames, after, path);
		cut_to_common(frames, join->before, path);
		if (path->count)
			return JOIN_INFERRED;
	}
	list_caller(frames, join, own, first, path);
	return JOIN_NONE;
}

static void append_label(const struct frames *frames, struct path_items *path, const char *label,
			 enum frame_mark mark)
{
	char clean[2 * LABEL_BYTES + 8];
	size_t length = text_clean(clean, label, strlen(label), ';');
	struct path_item item = {MERGED_LABEL, names_intern(&frames->paths->names, clean, length)};

	paths_mark(frames->paths, item.value, mark);
	joined_paths_append(path, &item, 1);
}

/*
 * A checkpoint runs forward functions again, inside a node. Returns the first frame of these
 * functions, or the count if there is no checkpoint.
 */
static size_t first_recomputed(const struct frames *frames, const struct path_items *own,
			       size_t first)
{
	size_t inner = own->count;

	for (size_t i = first; i < own->count; i++)
		if (is_python(frames, &own->items[i], "torch/utils/checkpoint.py", NULL))
			inner = i;
	for (size_t i = inner + 1; i < own->count; i++)
		if (own->items[i].kind == MERGED_PYTHON)
			return i;
	return own->count;
}

/* Leaves out the frames of the forward path that are inside its checkpoint. */
static void cut_at_checkpoint(const struct frames *frames, struct path_items *path)
{
	for (size_t i = path->count; i-- > 0;)
		if (is_python(frames, &path->items[i], "torch/utils/checkpoint.py", NULL)) {
			path->count = i + 1;
			return;
		}
}

/* The first Python frame from an item on. */
static size_t first_python(const struct path_items *own, size_t from)
{
	while (from < own->count && own->items[from].kind != MERGED_PYTHON)
		from++;
	return from;
}

static void append_node(const struct frames *frames, const struct joined_stack *join,
			const struct path_items *own, size_t first, enum join_result result,
			struct path_items *path)
{
	static const char *const labels[JOIN_RESULTS] = {
		[JOIN_NONE] = LABEL_UNKNOWN,
		[JOIN_INFERRED] = LABEL_INFERRED,
		[JOIN_EXACT] = LABEL_BACKWARD,
	};
	const struct autograd_state *state = autograd_state(&frames->model->autograd, join->state);
	char name[LABEL_BYTES - 16], label[LABEL_BYTES];

	torch_node_label(text_of(frames, state->node_type), text_of(frames, state->node_class),
			 name, sizeof(name));
	snprintf(label, sizeof(label), "%s%s", labels[result], name);
	append_label(frames, path, label, MARK_TORCH_BACKWARD);
	if (frames->backward == BACKWARD_FORWARD)
		first = first_python(own, first);
	joined_paths_append(path, own->items + first, own->count - first);
}

static void compose(const struct frames *frames, const struct joined_stack *join,
		    struct joined_path *out)
{
	struct path_items own = {0}, path = {0};
	enum join_result result;
	bool has_own = frames_has_stack(frames, join->own);
	size_t first, again;

	if (has_own)
		frames_list(frames, join->own, &own);
	first = first_of_node(frames, &own);
	again = first_recomputed(frames, &own, first);
	result = list_forward(frames, join, &own, first, &path);
	if (again < own.count) {
		cut_at_checkpoint(frames, &path);
		result = JOIN_EXACT; /* its own frames follow */
		append_label(frames, &path, LABEL_RECOMPUTE, MARK_TORCH_RECOMPUTE);
		joined_paths_append(&path, own.items + again, own.count - again);
	} else {
		append_node(frames, join, &own, first, result, &path);
	}
	free(own.items);
	out->items = path;
	out->result = (uint8_t)result;
	out->node = frames->root;
	for (size_t i = 0; i < path.count; i++)
		out->node = frames_add_item(frames, out->node, &path.items[i]);
}

/*
 * Returns the path of a joined stack. A joined stack refers to earlier ones only, so paths are
 * composed in order.
 */
static const struct joined_path *find_path(const struct frames *frames, uint32_t stack)
{
	uint32_t number = stack - frames->model->autograd.first_joined;
	struct joined_paths *joined = frames->joined;

	while (joined->count <= number) {
		struct joined_path path = {0};

		compose(frames, &frames->model->autograd.joined.list[joined->count], &path);
		list_append(*joined, path);
	}
	return &joined->list[number];
}

uint32_t joined_paths_node(const struct frames *frames, uint32_t stack)
{
	return is_joined(frames, stack) ? find_path(frames, stack)->node : frames->nodes[stack];
}

void joined_paths_list(const struct frames *frames, uint32_t stack, struct path_items *list)
{
	if (!frames_has_stack(frames, stack))
		return;
	if (is_joined(frames, stack)) {
		const struct joined_path *path = find_path(frames, stack);

		joined_paths_append(list, path->items.items, path->items.count);
	} else {
		frames_list(frames, stack, list);
	}
}

enum join_result joined_paths_result(const struct frames *frames, uint32_t stack)
{
	const struct joined_path *path = is_joined(frames, stack) ? find_path(frames, stack) : NULL;

	return path ? (enum join_result)path->result : JOIN_NO_BACKWARD;
}
