/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A table of kernel names. A kernel that is not in it counts as compute.
 */
#include "merge/read/collectives.h"

#include <ctype.h>
#include <string.h>

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

static bool begins_with(const char *text, const char *end, const char *beginning)
{
	size_t length = strlen(beginning);

	return (size_t)(end - text) >= length && !memcmp(text, beginning, length);
}

static bool begins_like_one(const char *name, size_t length)
{
	for (size_t b = 0; b < sizeof(beginnings) / sizeof(beginnings[0]); b++)
		if (begins_with(name, name + length, beginnings[b]))
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
		if (*p == '(' && !begins_with(p, end, "(anonymous namespace)"))
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
