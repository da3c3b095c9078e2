/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A table of kernel names. A kernel that is not in it counts as compute.
 *
 * NCCL opens a range in its NVTX domain for each call. The payload of the range says what the call
 * is about. Field names are those of NCCL's source, src/include/nvtx_payload_schemas.h.
 */
#include "merge/read/collectives.h"

#include <ctype.h>
#include <string.h>

#include "base/memory.h"
#include "log/base/compare.h"
#include "log/read/rows.h"
#include "merge/read/model.h"
#include "merge/read/ranges.h"

/* Prefixes of function names, without namespaces. */
static const char *const beginnings[] = {
	/* NCCL: since 2.19, before 2.19, and on symmetric memory (2.27, 2.28). */
	"ncclDevKernel_",
	"ncclKernel_",
	"ncclSymDevKernel_",
	"ncclSymkDevKernel_",
	/* PyTorch on symmetric memory. */
	"multimem_all_gather_kernel",
	"multimem_all_reduce_kernel",
	"multimem_one_shot_all_reduce_kernel",
	"multimem_one_shot_reduce_kernel",
	"one_shot_all_reduce_kernel",
	"two_shot_all_reduce_kernel",
	/* vLLM and SGLang. */
	"cross_device_reduce_1stage",
	"cross_device_reduce_2stage",
};

static bool name_begins_with(const char *text, const char *end, const char *beginning)
{
	size_t length = strlen(beginning);

	return (size_t)(end - text) >= length && !memcmp(text, beginning, length);
}

static bool begins_like_one(const char *name, size_t length)
{
	for (size_t b = 0; b < sizeof(beginnings) / sizeof(beginnings[0]); b++)
		if (name_begins_with(name, name + length, beginnings[b]))
			return true;
	return false;
}

/* Checks the last component of the function's mangled name. Parameter types follow it. */
static bool is_mangled_collective(const char *p, const char *end)
{
	bool is_nested = p < end && *p == 'N', is_one = false;

	p += is_nested;
	while (p < end && (isdigit((unsigned char)*p) || strchr("KVrL", *p))) {
		size_t length = 0;

		if (!isdigit((unsigned char)*p)) {
			p++;
			continue;
		}
		while (p < end && isdigit((unsigned char)*p) && length <= (size_t)(end - p))
			length = 10 * length + (size_t)(*p++ - '0');
		if (length > (size_t)(end - p))
			return false;
		is_one = begins_like_one(p, length);
		p += length;
		if (!is_nested)
			break;
	}
	return is_one;
}

bool is_collective_kernel(const char *name, size_t length)
{
	const char *end = name + length, *function = name;

	if (length > 2 && name[0] == '_' && name[1] == 'Z')
		return is_mangled_collective(name + 2, end);
	/* Demangled: "void (anonymous namespace)::space::name<types>(types)". */
	for (const char *p = name; p < end && *p != '<'; p++) {
		if (*p == '(' && !name_begins_with(p, end, "(anonymous namespace)"))
			break;
		if (*p == ':' || *p == ' ')
			function = p + 1;
	}
	return begins_like_one(function, (size_t)(end - function));
}

const char *const collective_operation_names[COLLECTIVE_OPERATIONS] = {
	[COLLECTIVE_UNKNOWN] = "unknown",      [COLLECTIVE_ALL_REDUCE] = "AllReduce",
	[COLLECTIVE_ALL_GATHER] = "AllGather", [COLLECTIVE_REDUCE_SCATTER] = "ReduceScatter",
	[COLLECTIVE_ALL_TO_ALL] = "AllToAll",  [COLLECTIVE_BROADCAST] = "Broadcast",
	[COLLECTIVE_REDUCE] = "Reduce",	       [COLLECTIVE_SEND_RECV] = "SendRecv",
};

/* Part of a name, without underscores and in lower case. The first that fits counts. */
static const struct {
	const char *part;
	enum collective_operation operation;
} operation_parts[] = {
	{"allreduce", COLLECTIVE_ALL_REDUCE}, {"shotreduce", COLLECTIVE_REDUCE},
	{"allgather", COLLECTIVE_ALL_GATHER}, {"reducescatter", COLLECTIVE_REDUCE_SCATTER},
	{"alltoall", COLLECTIVE_ALL_TO_ALL},  {"broadcast", COLLECTIVE_BROADCAST},
	{"sendrecv", COLLECTIVE_SEND_RECV},   {"ncclsend", COLLECTIVE_SEND_RECV},
	{"ncclrecv", COLLECTIVE_SEND_RECV},   {"crossdevicereduce", COLLECTIVE_ALL_REDUCE},
	{"ncclbcast", COLLECTIVE_BROADCAST},  {"kernelreduce", COLLECTIVE_REDUCE},
	{"ncclreduce", COLLECTIVE_REDUCE},
};

enum collective_operation collective_operation(const char *name, size_t length)
{
	char plain[128];
	size_t count = 0;

	for (size_t i = 0; i < length && count < sizeof(plain) - 1; i++)
		if (name[i] != '_')
			plain[count++] = (char)tolower((unsigned char)name[i]);
	plain[count] = '\0';
	for (size_t p = 0; p < sizeof(operation_parts) / sizeof(operation_parts[0]); p++)
		if (strstr(plain, operation_parts[p].part))
			return operation_parts[p].operation;
	return COLLECTIVE_UNKNOWN;
}

#define GROUP_END  "ncclGroupEnd"
#define GROUP_MAX  1024 /* calls of a group that are searched */
#define NESTED_MAX 8	/* calls of NCCL within calls of NCCL; deeper ones are left out */
#define BYTES_MAX  (UINT64_C(1) << 50) /* larger values are none of NCCL */
#define RANK_MAX   (UINT32_MAX - 1)

static const char *text_of(const struct model *model, uint64_t string, size_t *length)
{
	return names_text(&model->names,
			  string < model->strings.count ? model->strings.rows[string] : NAME_EMPTY,
			  length);
}

static bool is_of_nccl(struct collective_calls *calls, const struct model *model, uint64_t domain)
{
	size_t length;
	const char *text;

	if (!domain || (calls->domain && domain != calls->domain))
		return false;
	if (calls->domain)
		return true;
	text = text_of(model, domain, &length);
	if (length != strlen("NCCL") || memcmp(text, "NCCL", length))
		return false;
	calls->domain = (uint32_t)domain;
	return true;
}

void collective_calls_add(struct collective_calls *calls, const struct model *model,
			  const struct xt_row_range *row)
{
	bool is_push = row->operation == XT_RANGE_PUSH;
	const char *name;
	size_t length;

	if ((!is_push && row->operation != XT_RANGE_POP) || !is_of_nccl(calls, model, row->domain))
		return;
	if (calls->count >= UINT32_MAX)
		xt_out_of_memory(0);
	name = text_of(model, row->text, &length);
	list_append(*calls, (struct collective_call){
				    .begin_ns = row->time_ns,
				    .end_ns = UINT64_MAX,
				    .root = UINT32_MAX,
				    .thread = (uint32_t)row->thread,
				    .order = (uint32_t)calls->count,
				    .values = {is_push ? (uint32_t)row->values : 0,
					       is_push ? 0 : (uint32_t)row->values},
				    .operation = (uint8_t)collective_operation(name, length),
				    .is_begin = is_push,
				    .is_group_end = length == strlen(GROUP_END) &&
						    !memcmp(name, GROUP_END, length),
			    });
}

COMPARE_BY(compare_calls, struct collective_call, UP(thread) UP(begin_ns) UP(order))

static bool is_named(const struct range_value *value, const char *name)
{
	return value->name.length == strlen(name) &&
	       !memcmp(value->name.data, name, value->name.length);
}

/* Returns a decimal number, or `unknown` if the value is none or above max. */
static uint64_t number_of(const struct range_value *value, uint64_t max, uint64_t unknown)
{
	const struct xt_bytes *text = &value->value;
	uint64_t number = 0;

	for (size_t i = 0; i < text->length; i++) {
		unsigned digit = (unsigned)(unsigned char)text->data[i] - '0';

		if (digit > 9 || number > (max - digit) / 10)
			return unknown;
		number = 10 * number + digit;
	}
	return text->length ? number : unknown;
}

/* Reads the payload. A call that states its ranks and its rank joins a communicator. */
static void read_values(struct collective_calls *calls, const struct model *model,
			struct collective_call *call)
{
	struct range_value values[RANGE_VALUES_MAX];
	size_t count = range_values(model, call->values[0], call->values[1], values);
	struct communicator_info info = {.rank = UINT32_MAX};

	for (size_t v = 0; v < count; v++) {
		if (is_named(&values[v], "NCCL communicator ID"))
			call->communicator = number_of(&values[v], UINT64_MAX, 0);
		else if (is_named(&values[v], "Message size [bytes]"))
			call->bytes = number_of(&values[v], BYTES_MAX, 0);
		else if (is_named(&values[v], "Root"))
			call->root = (uint32_t)number_of(&values[v], RANK_MAX, UINT32_MAX);
		else if (is_named(&values[v], "No. of ranks"))
			info.rank_count = (uint32_t)number_of(&values[v], RANK_MAX, 0);
		else if (is_named(&values[v], "Rank"))
			info.rank = (uint32_t)number_of(&values[v], RANK_MAX, UINT32_MAX);
	}
	if (!call->communicator || info.rank >= info.rank_count)
		return;
	info.communicator = call->communicator;
	list_append(calls->joined, info);
}

/* Keeps the calls of a thread that are about a communicator, with both of their times. */
void collective_calls_index(struct collective_calls *calls, const struct model *model)
{
	size_t open[NESTED_MAX], open_count = 0, kept = 0;

	SORT(calls->list, calls->count, compare_calls);
	for (size_t c = 0; c < calls->count; c++) {
		struct collective_call *call = &calls->list[c];

		if (c && call->thread != calls->list[c - 1].thread)
			open_count = 0;
		if (call->is_begin && open_count < NESTED_MAX)
			open[open_count] = c;
		else if (call->is_begin)
			call->values[0] = 0; /* left out below, as it has no communicator */
		open_count += call->is_begin;
		if (call->is_begin || !open_count || open_count-- > NESTED_MAX)
			continue;
		calls->list[open[open_count]].end_ns = call->begin_ns;
		calls->list[open[open_count]].values[1] = call->values[1];
	}
	for (size_t c = 0; c < calls->count; c++) {
		if (!calls->list[c].is_begin)
			continue;
		read_values(calls, model, &calls->list[c]);
		if ((calls->list[c].communicator && calls->list[c].operation) ||
		    calls->list[c].is_group_end)
			calls->list[kept++] = calls->list[c];
	}
	calls->count = kept;
}

void collective_calls_free(struct collective_calls *calls)
{
	free_all(calls->list, calls->joined.list);
	*calls = (struct collective_calls){0};
}

/* Returns the index of the innermost call in a thread at a time, SIZE_MAX if there is none. */
static size_t index_at(const struct collective_calls *calls, uint32_t thread, uint64_t time_ns)
{
	const struct collective_call *list = calls->list;
	size_t low = FIRST_NOT(i, 0, calls->count,
			       list[i].thread < thread ||
				       (list[i].thread == thread &&
					list[i].begin_ns <= time_ns)); /* the first later one */

	for (size_t back = 0; back < NESTED_MAX && low-- > 0; back++) {
		if (calls->list[low].thread != thread)
			break;
		if (time_ns <= calls->list[low].end_ns)
			return low;
	}
	return SIZE_MAX;
}

/* Returns the last call before the end of a group, if all of the group are of one communicator. */
static const struct collective_call *last_of_group(const struct collective_calls *calls, size_t end)
{
	const struct collective_call *last = NULL;

	for (size_t c = end, count = 0; c-- > 0 && count < GROUP_MAX; count++) {
		const struct collective_call *call = &calls->list[c];

		if (call->thread != calls->list[end].thread || call->is_group_end)
			break;
		if (last && call->communicator != last->communicator)
			return NULL;
		last = last ? last : call;
	}
	return last;
}

void collective_calls_capture(struct collective_calls *calls, uint32_t thread, uint64_t time_ns)
{
	size_t index = index_at(calls, thread, time_ns);

	if (index != SIZE_MAX)
		calls->list[index].is_captured = true;
}

const struct collective_call *collective_calls_at(const struct collective_calls *calls,
						  uint32_t thread, uint64_t time_ns)
{
	size_t index = index_at(calls, thread, time_ns);

	if (index == SIZE_MAX)
		return NULL;
	return calls->list[index].is_group_end ? last_of_group(calls, index) : &calls->list[index];
}
