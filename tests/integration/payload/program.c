/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Uses NVTX's payload extension like NCCL:
 * - registers an enum and schemas,
 * - pushes plain ranges and pops them with a payload,
 * - pushes ranges with payloads in their attributes.
 *
 * Then uses payloads that are hard to decode, and several threads at once. Launches a kernel after
 * each range.
 */
#include <cuda.h>

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "integration/attribution/nvtx_client.h"

#define STATIC_ID(n)  (XT_NVTX_SCHEMA_STATIC_FIRST + (n))
#define ENUM_ID	      STATIC_ID(20)
#define INIT_ID	      STATIC_ID(11)
#define REDUCE_ID     STATIC_ID(5)
#define POINT_ID      STATIC_ID(30)
#define MIXED_ID      STATIC_ID(31)
#define DYNAMIC_ID    STATIC_ID(32)
#define EVENT_ID      STATIC_ID(33)
#define THREADS	      4
#define THREAD_ROUNDS 50
#define FIXED	      (XT_NVTX_ARRAY_FIXED << XT_NVTX_ENTRY_ARRAY_BIT)
#define BY_INDEX      (XT_NVTX_ARRAY_LENGTH_INDEX << XT_NVTX_ENTRY_ARRAY_BIT)
#define COUNT(array)  (sizeof(array) / sizeof((array)[0]))

static const char ptx[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
			  ".visible .entry inside() { ret; }\n"
			  ".visible .entry behind() { ret; }\n";

static CUfunction inside, behind;
static void *domain;

static void require(int is_right, const char *what)
{
	if (is_right)
		return;
	fprintf(stderr, "cannot go on: %s\n", what);
	exit(1);
}

static void launch(CUfunction function)
{
	require(!cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL), "launch");
}

static void schema(uint64_t id, uint64_t kind, size_t bytes, const char *name,
		   const struct xt_nvtx_schema_entry *entries, size_t count)
{
	const struct xt_nvtx_schema attributes = {
		.fields = XT_NVTX_SCHEMA_HAS_KIND | XT_NVTX_SCHEMA_HAS_ENTRIES |
			  XT_NVTX_SCHEMA_HAS_COUNT | XT_NVTX_SCHEMA_HAS_ID |
			  (name ? XT_NVTX_SCHEMA_HAS_NAME : 0) |
			  (bytes ? XT_NVTX_SCHEMA_HAS_BYTES : 0),
		.name = name,
		.kind = kind,
		.entries = entries,
		.entry_count = count,
		.static_bytes = bytes,
		.schema_id = id,
	};

	require(nvtx_register(XT_NVTX_SCHEMA_REGISTER, domain, &attributes) == id, "schema");
}

/* The payload of NCCL's initialisation. */

struct init {
	uint64_t comm;
	int ranks, rank, device;
};

struct reduce {
	uint64_t comm;
	size_t bytes;
	int operation;
};

static void register_nccl(void)
{
	static const struct xt_nvtx_enum_value values[] = {{"Sum", 0, 0}, {"Product", 1, 0}};
	static const struct xt_nvtx_enum operations = {
		.fields = XT_NVTX_ENUM_HAS_ENTRIES | XT_NVTX_ENUM_HAS_COUNT |
			  XT_NVTX_ENUM_HAS_BYTES | XT_NVTX_ENUM_HAS_ID,
		.values = values,
		.value_count = COUNT(values),
		.bytes = sizeof(int),
		.schema_id = ENUM_ID,
	};
	const struct xt_nvtx_schema_entry init[] = {
		{.type = XT_NVTX_TYPE_UINT64, .name = "NCCL communicator ID"},
		{.type = XT_NVTX_TYPE_INT, .name = "No. of ranks", .offset = 8},
		{.type = XT_NVTX_TYPE_INT, .name = "Rank", .offset = 12},
		{.type = XT_NVTX_TYPE_INT, .name = "CUDA device", .offset = 16},
	};
	const struct xt_nvtx_schema_entry reduce[] = {
		{.type = XT_NVTX_TYPE_UINT64, .name = "NCCL communicator ID"},
		{.type = XT_NVTX_TYPE_SIZE, .name = "Message size [bytes]", .offset = 8},
		{.type = ENUM_ID, .name = "Reduction operation", .offset = 16},
	};

	require(nvtx_register(XT_NVTX_ENUM_REGISTER, domain, &operations) == ENUM_ID, "enum");
	schema(INIT_ID, XT_NVTX_SCHEMA_STATIC, sizeof(struct init), NULL, init, COUNT(init));
	schema(REDUCE_ID, XT_NVTX_SCHEMA_STATIC, sizeof(struct reduce), NULL, reduce,
	       COUNT(reduce));
}

static void push_plain(const char *text)
{
	const struct xt_nvtx_attributes attributes = {.version = 3,
						      .bytes = sizeof(attributes),
						      .message_type = XT_NVTX_MESSAGE_ASCII,
						      .message = text};

	nvtx_domain_push(domain, &attributes);
}

/* A range whose attributes carry payloads. */
static void push_extended(const char *text, const struct xt_nvtx_payload *data, int count)
{
	const struct xt_nvtx_attributes attributes = {.version = 3,
						      .bytes = sizeof(attributes),
						      .payload_type = XT_NVTX_PAYLOAD_EXTENDED,
						      .reserved0 = count,
						      .payload = (uintptr_t)data,
						      .message_type = XT_NVTX_MESSAGE_ASCII,
						      .message = text};

	nvtx_domain_push(domain, &attributes);
}

static void pop_with(const struct xt_nvtx_payload *data, size_t count)
{
	nvtx_with_payload(XT_NVTX_RANGE_POP_PAYLOAD, domain, data, count);
}

static void init_communicator(void)
{
	struct init init = {.comm = UINT64_C(0xfedcba9876543210), .ranks = 2, .rank = 1};
	const struct xt_nvtx_payload data = {INIT_ID, sizeof(init), &init};

	push_plain("ncclCommInitRankConfig");
	launch(inside);
	pop_with(&data, 1);
	launch(behind);
}

static void all_reduce(size_t bytes, int operation)
{
	struct reduce reduce = {UINT64_C(0xfedcba9876543210), bytes, operation};
	const struct xt_nvtx_payload data = {REDUCE_ID, sizeof(reduce), &reduce};

	push_extended("ncclAllReduce", &data, 1);
	launch(inside);
	nvtx_domain_pop(domain);
	launch(behind);
}

/* Other payloads. */

struct point {
	float x, y;
};

struct mixed {
	const char *text, *null;
	struct point points[2];
	int8_t small;
	double real;
	char letters[8];
	uint16_t numbers[3];
	void *address;
	const char *registered;
};

static void register_mixed(void)
{
	const struct xt_nvtx_schema_entry point[] = {
		{.type = XT_NVTX_TYPE_FLOAT, .name = "x"},
		{.type = XT_NVTX_TYPE_FLOAT, .name = "y"},
	};
	/* No offsets: they follow from natural alignment. */
	const struct xt_nvtx_schema_entry mixed[] = {
		{.type = XT_NVTX_TYPE_CSTRING, .name = "text"},
		{.type = XT_NVTX_TYPE_CSTRING_UTF8, .name = "null"},
		{.type = POINT_ID, .flags = FIXED, .detail = 2, .name = "points"},
		{.type = XT_NVTX_TYPE_INT8, .name = "small"},
		{.type = XT_NVTX_TYPE_DOUBLE, .name = "real=1\nno"},
		{.type = XT_NVTX_TYPE_CHAR, .flags = FIXED, .detail = 8, .name = "letters"},
		{.type = XT_NVTX_TYPE_UINT16, .flags = FIXED, .detail = 3, .name = "numbers"},
		{.type = XT_NVTX_TYPE_ADDRESS, .name = "address"},
		{.type = XT_NVTX_TYPE_REGISTERED_STRING, .name = "registered"},
	};
	const struct xt_nvtx_schema_entry dynamic[] = {
		{.type = XT_NVTX_TYPE_UINT32, .name = "length"},
		{.type = XT_NVTX_TYPE_INT32, .flags = BY_INDEX, .detail = 0, .name = "values"},
		{.type = XT_NVTX_TYPE_UINT8, .name = "last"},
	};
	const struct xt_nvtx_schema_entry event[] = {
		{.type = XT_NVTX_TYPE_CSTRING,
		 .flags = XT_NVTX_ENTRY_EVENT_MESSAGE,
		 .name = "message"},
		{.type = XT_NVTX_TYPE_UINT64, .name = "step"},
	};

	schema(POINT_ID, XT_NVTX_SCHEMA_STATIC, sizeof(struct point), "point", point, COUNT(point));
	schema(MIXED_ID, XT_NVTX_SCHEMA_STATIC, sizeof(struct mixed), "mixed", mixed, COUNT(mixed));
	schema(DYNAMIC_ID, XT_NVTX_SCHEMA_DYNAMIC, 0, "dynamic", dynamic, COUNT(dynamic));
	schema(EVENT_ID, XT_NVTX_SCHEMA_STATIC, 16, NULL, event, COUNT(event));
}

static void mark(const struct xt_nvtx_payload *data, size_t count)
{
	nvtx_with_payload(XT_NVTX_MARK_PAYLOAD, domain, data, count);
}

static void mark_mixed(void)
{
	xt_nvtx_function keep = nvtx_core2[XT_NVTX_DOMAIN_REGISTER_STRING_A];
	const char *kept =
		keep ? ((const char *(*)(void *, const char *))keep)(domain, "kept") : NULL;
	struct mixed mixed = {.text = "a text\nof two lines",
			      .points = {{1, 2}, {-0.5f, 4}},
			      .small = -3,
			      .real = 2.25,
			      .letters = "abc",
			      .numbers = {1, 2, 65535},
			      .address = (void *)0xabc0,
			      .registered = kept};
	uint32_t dynamic[] = {3, 10, 20, (uint32_t)-30, 7};
	const struct xt_nvtx_payload data[] = {{MIXED_ID, sizeof(mixed), &mixed},
					       {DYNAMIC_ID, 17, dynamic}};

	mark(data, 2);
}

/* Ranges whose names are also in their payloads. */
static void push_named(uint64_t step)
{
	struct {
		const char *message;
		uint64_t step;
	} event = {"named by payload", step};
	const struct xt_nvtx_payload data = {EVENT_ID, sizeof(event), &event};
	uint64_t id;

	nvtx_with_payload(XT_NVTX_RANGE_PUSH_PAYLOAD, domain, &data, 1);
	launch(inside);
	nvtx_domain_pop(domain);
	id = nvtx_with_payload(XT_NVTX_RANGE_START_PAYLOAD, domain, &data, 1);
	launch(inside);
	event.step++;
	nvtx_end_with_payload(domain, id, &data, 1);
	launch(behind);
}

/* None of these may do harm, and every range must end. */
static void hostile(void)
{
	const size_t huge = (size_t)4 << 30;
	uint8_t *memory =
		mmap(NULL, huge, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	struct reduce reduce = {1, 2, 77};
	uint32_t too_long[] = {UINT32_MAX, 1};
	const struct xt_nvtx_payload data[] = {
		{REDUCE_ID, huge, memory},
		{XT_NVTX_SCHEMA_RAW, huge, memory},
		{STATIC_ID(999), 24, &reduce},
		{STATIC_ID(998), SIZE_MAX, &reduce},
		{DYNAMIC_ID, SIZE_MAX, too_long},
		{REDUCE_ID, 24, NULL},
		{REDUCE_ID, 4, &reduce},
		{MIXED_ID, 0, NULL},
		{DYNAMIC_ID, sizeof(too_long), too_long},
		{REDUCE_ID, SIZE_MAX, &reduce},
		{XT_NVTX_TYPE_CSTRING, SIZE_MAX, "plain text"},
		{XT_NVTX_TYPE_INT32, SIZE_MAX, &reduce.operation},
		{DYNAMIC_ID, huge, memory},
	};
	static char long_text[5000];
	struct mixed mixed = {.text = memset(long_text, 'x', sizeof(long_text) - 1)};
	struct xt_nvtx_payload many[40];

	require(memory != MAP_FAILED, "mmap");
	for (size_t i = 0; i < COUNT(data); i++) {
		push_extended("hostile", &data[i], 1);
		pop_with(&data[i], 1);
	}
	for (size_t i = 0; i < COUNT(many); i++)
		many[i] = data[9];
	push_extended("many", many, COUNT(many));
	pop_with(many, SIZE_MAX >> 8);
	for (size_t i = 0; i < COUNT(many); i++)
		many[i] = (struct xt_nvtx_payload){MIXED_ID, sizeof(mixed), &mixed};
	push_extended("texts", many, COUNT(many));
	pop_with(many, COUNT(many));
	push_extended("none", NULL, 1);
	pop_with(NULL, 5);
	push_extended("negative", data, -1);
	pop_with(data, 0);
	require(!nvtx_register(XT_NVTX_SCHEMA_REGISTER, domain, NULL), "no attributes");
	for (int i = 0; i < 5000; i++) { /* more than the limit */
		const struct xt_nvtx_schema_entry entry = {.type = XT_NVTX_TYPE_INT, .name = "i"};

		schema(STATIC_ID(1000 + i % 3000), XT_NVTX_SCHEMA_STATIC, 4, NULL, &entry, 1);
	}
	munmap(memory, huge);
	launch(behind);
}

static void *run_thread(void *argument)
{
	size_t number = (size_t)(uintptr_t)argument;

	cuCtxSetCurrent(NULL);
	for (int round = 0; round < THREAD_ROUNDS; round++) {
		struct reduce reduce = {number, number * 1000, 1};
		const struct xt_nvtx_payload data = {REDUCE_ID, sizeof(reduce), &reduce};

		push_plain("threaded");
		pop_with(&data, 1);
	}
	return NULL;
}

int main(void)
{
	pthread_t threads[THREADS];
	CUcontext context;
	CUmodule module;

	nvtx_start();
	domain = nvtx_domain_create("NCCL");
	require(nvtx_start_payloads(), "the tool does not know the payload extension");
	require(!cuInit(0) && !cuDevicePrimaryCtxRetain(&context, 0) && !cuCtxSetCurrent(context) &&
			!cuModuleLoadData(&module, ptx) &&
			!cuModuleGetFunction(&inside, module, "inside") &&
			!cuModuleGetFunction(&behind, module, "behind"),
		"CUDA");
	register_nccl();
	register_nccl();
	register_mixed();
	init_communicator();
	all_reduce(4096, 0);
	all_reduce(1 << 20, 1);
	mark_mixed();
	push_named(41);
	for (uintptr_t i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, run_thread, (void *)(i + 1));
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	hostile();
	require(!cuCtxSynchronize(), "synchronize");
	return 0;
}
