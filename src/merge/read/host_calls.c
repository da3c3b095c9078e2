/* SPDX-License-Identifier: Apache-2.0 */
#include "merge/read/host_calls.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define NAME_BYTES_MAX 64 /* of a component; those in the tables are shorter */

/* The last two components of a C++ name: the class and its function. */
struct cpp_name {
	char class[NAME_BYTES_MAX], function[NAME_BYTES_MAX];
	bool is_of_c10d;
};

/* Names of MPI without MPI_ or PMPI_. Other functions of MPI may wait for others, too. */
static const struct {
	const char *name;
	enum collective_operation operation;
	bool needs_all;
} mpi_functions[] = {
	{"Allreduce", COLLECTIVE_ALL_REDUCE, true},
	{"Allgather", COLLECTIVE_ALL_GATHER, true},
	{"Allgatherv", COLLECTIVE_ALL_GATHER, true},
	{"Reduce_scatter", COLLECTIVE_REDUCE_SCATTER, true},
	{"Reduce_scatter_block", COLLECTIVE_REDUCE_SCATTER, true},
	{"Alltoall", COLLECTIVE_ALL_TO_ALL, true},
	{"Alltoallv", COLLECTIVE_ALL_TO_ALL, true},
	{"Alltoallw", COLLECTIVE_ALL_TO_ALL, true},
	{"Barrier", COLLECTIVE_UNKNOWN, true},
	{"Bcast", COLLECTIVE_BROADCAST, false},
	{"Reduce", COLLECTIVE_REDUCE, false},
	{"Send", COLLECTIVE_SEND_RECV, false},
	{"Recv", COLLECTIVE_SEND_RECV, false},
	{"Sendrecv", COLLECTIVE_SEND_RECV, false},
};

static void keep(char out[NAME_BYTES_MAX], const char *text, size_t length)
{
	size_t kept = length < NAME_BYTES_MAX ? length : 0;

	memcpy(out, text, kept);
	out[kept] = '\0';
}

/* Reads "_ZN4c10d16ProcessGroupGloo9allreduceE...". Returns false for any other kind of name. */
static bool read_cpp_name(const char *name, size_t length, struct cpp_name *out)
{
	const char *p = name + 3, *end = name + length;
	size_t count = 0;

	*out = (struct cpp_name){0};
	if (length < 4 || memcmp(name, "_ZN", 3))
		return false;
	while (p < end && (isdigit((unsigned char)*p) || strchr("KVrL", *p))) {
		size_t bytes = 0;

		if (!isdigit((unsigned char)*p)) {
			p++;
			continue;
		}
		while (p < end && isdigit((unsigned char)*p) && bytes <= length)
			bytes = 10 * bytes + (size_t)(*p++ - '0');
		if (bytes > (size_t)(end - p))
			return false;
		memcpy(out->class, out->function, sizeof(out->class));
		keep(out->function, p, bytes);
		if (!count++)
			out->is_of_c10d = !strcmp(out->function, "c10d");
		p += bytes;
	}
	return count > 2;
}

static bool ends_with(const char *text, const char *ending)
{
	size_t length = strlen(text), bytes = strlen(ending);

	return length >= bytes && !strcmp(text + length - bytes, ending);
}

static struct host_call mpi_call(const char *function, size_t length)
{
	struct host_call call = {.part = HOST_CALL_MPI};

	for (size_t f = 0; f < sizeof(mpi_functions) / sizeof(mpi_functions[0]); f++)
		if (length == strlen(mpi_functions[f].name) &&
		    !memcmp(function, mpi_functions[f].name, length)) {
			call.operation = (uint8_t)mpi_functions[f].operation;
			call.needs_all = mpi_functions[f].needs_all;
		}
	return call;
}

struct host_call host_call_of(const char *name, size_t length)
{
	struct host_call call = {0};
	struct cpp_name cpp;
	size_t skipped = length > 5 && name[0] == 'P' ? 1 : 0;

	if (length > 4 + skipped && !memcmp(name + skipped, "MPI_", 4))
		return mpi_call(name + skipped + 4, length - skipped - 4);
	if (!read_cpp_name(name, length, &cpp) || !cpp.is_of_c10d)
		return call;
	if (!strcmp(cpp.class, "ProcessGroupGloo")) {
		call.operation = (uint8_t)collective_operation(cpp.function, strlen(cpp.function));
		call.part = call.operation ? HOST_CALL_GLOO : HOST_CALL_NONE;
	} else if (!strncmp(cpp.class, "Async", 5) && ends_with(cpp.class, "Work") &&
		   !strcmp(cpp.function, "run")) {
		call.operation = (uint8_t)collective_operation(cpp.class, strlen(cpp.class));
		call.part = HOST_CALL_GLOO_RUN;
	}
	return call;
}

void host_calls_free(struct host_calls *calls)
{
	free(calls->list);
	*calls = (struct host_calls){0};
}
