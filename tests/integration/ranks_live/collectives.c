/* SPDX-License-Identifier: Apache-2.0 */
#include "collectives.h"

#include <stdio.h>
#include <stdlib.h>

#include "integration/attribution/nvtx_client.h"
#include "simgpu_collective.h"

#define STATIC_ID(n)  (XT_NVTX_SCHEMA_STATIC_FIRST + (n))
#define COUNT(array)  (sizeof(array) / sizeof((array)[0]))
#define KERNEL(name)  ".visible .entry " name "(" SIMGPU_COLLECTIVE_PARAM ") { ret; }\n"
#define BLOCKS	      16
#define BLOCK_THREADS 512

enum { REDUCTIONS_ID = STATIC_ID(1), INIT_ID, PLAIN_ID, REDUCE_ID, ROOT_ID };

static const struct {
	const char *range;
	const char *kernel;
	uint64_t schema_id;
} operations[OPERATIONS] = {
	[ALL_REDUCE] = {"ncclAllReduce", "ncclDevKernel_AllReduce_Sum_f32_RING_LL", REDUCE_ID},
	[ALL_GATHER] = {"ncclAllGather", "ncclDevKernel_AllGather_RING_LL", PLAIN_ID},
	[REDUCE_SCATTER] = {"ncclReduceScatter", "ncclDevKernel_ReduceScatter_Sum_f32_RING_LL",
			    REDUCE_ID},
	[BROADCAST] = {"ncclBroadcast", "ncclDevKernel_Broadcast_RING_LL", ROOT_ID},
	[REDUCE] = {"ncclReduce", "ncclDevKernel_Reduce_Sum_f32_RING_LL", ROOT_ID},
};

const char collectives_ptx[] = ".version 7.0\n.target sm_70\n.address_size 64\n" KERNEL(
	"ncclDevKernel_AllReduce_Sum_f32_RING_LL") KERNEL("ncclDevKernel_AllGather_RING_LL")
	KERNEL("ncclDevKernel_ReduceScatter_Sum_f32_RING_LL")
		KERNEL("ncclDevKernel_Broadcast_RING_LL")
			KERNEL("ncclDevKernel_Reduce_Sum_f32_RING_LL");

struct init {
	uint64_t communicator;
	int ranks, rank, device;
};

/* All schemas begin like this. The last field is the reduction or the root, if there is one. */
struct call {
	uint64_t communicator;
	size_t bytes;
	int last;
};

static void *domain;
static CUfunction kernels[OPERATIONS];

static void schema(uint64_t id, size_t bytes, const struct xt_nvtx_schema_entry *entries,
		   size_t count)
{
	const struct xt_nvtx_schema attributes = {
		.fields = XT_NVTX_SCHEMA_HAS_KIND | XT_NVTX_SCHEMA_HAS_ENTRIES |
			  XT_NVTX_SCHEMA_HAS_COUNT | XT_NVTX_SCHEMA_HAS_ID |
			  XT_NVTX_SCHEMA_HAS_BYTES,
		.kind = XT_NVTX_SCHEMA_STATIC,
		.entries = entries,
		.entry_count = count,
		.static_bytes = bytes,
		.schema_id = id,
	};

	nvtx_register(XT_NVTX_SCHEMA_REGISTER, domain, &attributes);
}

static void register_schemas(void)
{
	static const struct xt_nvtx_enum_value values[] = {{"Sum", 0, 0}, {"Product", 1, 0}};
	static const struct xt_nvtx_enum reductions = {
		.fields = XT_NVTX_ENUM_HAS_ENTRIES | XT_NVTX_ENUM_HAS_COUNT |
			  XT_NVTX_ENUM_HAS_BYTES | XT_NVTX_ENUM_HAS_ID,
		.values = values,
		.value_count = COUNT(values),
		.bytes = sizeof(int),
		.schema_id = REDUCTIONS_ID,
	};
	const struct xt_nvtx_schema_entry init[] = {
		{.type = XT_NVTX_TYPE_UINT64, .name = "NCCL communicator ID"},
		{.type = XT_NVTX_TYPE_INT, .name = "No. of ranks", .offset = 8},
		{.type = XT_NVTX_TYPE_INT, .name = "Rank", .offset = 12},
		{.type = XT_NVTX_TYPE_INT, .name = "CUDA device", .offset = 16},
	};
	struct xt_nvtx_schema_entry call[] = {
		{.type = XT_NVTX_TYPE_UINT64, .name = "NCCL communicator ID"},
		{.type = XT_NVTX_TYPE_SIZE, .name = "Message size [bytes]", .offset = 8},
		{.type = REDUCTIONS_ID, .name = "Reduction operation", .offset = 16},
	};

	nvtx_register(XT_NVTX_ENUM_REGISTER, domain, &reductions);
	schema(INIT_ID, sizeof(struct init), init, COUNT(init));
	schema(PLAIN_ID, sizeof(struct call), call, 2);
	schema(REDUCE_ID, sizeof(struct call), call, 3);
	call[2].type = XT_NVTX_TYPE_INT;
	call[2].name = "Root";
	schema(ROOT_ID, sizeof(struct call), call, 3);
}

void collectives_start(CUmodule module)
{
	domain = nvtx_domain_create("NCCL");
	register_schemas();
	for (int i = 0; i < OPERATIONS; i++) {
		if (cuModuleGetFunction(&kernels[i], module, operations[i].kernel)) {
			fprintf(stderr, "no kernel %s\n", operations[i].kernel);
			exit(1);
		}
	}
}

static void push(const char *text, uint64_t schema_id, const void *data, size_t bytes)
{
	const struct xt_nvtx_payload payload = {schema_id, bytes, data};
	const struct xt_nvtx_attributes attributes = {.version = 3,
						      .bytes = sizeof(attributes),
						      .payload_type = XT_NVTX_PAYLOAD_EXTENDED,
						      .reserved0 = 1,
						      .payload = (uintptr_t)&payload,
						      .message_type = XT_NVTX_MESSAGE_ASCII,
						      .message = text};

	nvtx_domain_push(domain, &attributes);
}

void communicator_start(const struct communicator *communicator)
{
	const struct init init = {
		.communicator = communicator->id,
		.ranks = (int)communicator->rank_count,
		.rank = (int)communicator->rank,
	};

	push("ncclCommInitRankConfig", INIT_ID, &init, sizeof(init));
	nvtx_domain_pop(domain);
}

CUresult collective(const struct communicator *communicator, enum operation operation,
		    uint64_t bytes, uint32_t root, CUstream stream)
{
	const struct call call = {communicator->id, bytes, (int)root};
	struct simgpu_collective argument = {
		.communicator = communicator->id,
		.bytes = bytes,
		.rank_count = communicator->rank_count,
		.rank = communicator->rank,
		.root = root,
	};
	void *arguments[] = {&argument};
	CUresult result;

	push(operations[operation].range, operations[operation].schema_id, &call, sizeof(call));
	result = cuLaunchKernel(kernels[operation], BLOCKS, 1, 1, BLOCK_THREADS, 1, 1, 0, stream,
				arguments, NULL);
	nvtx_domain_pop(domain);
	return result;
}
