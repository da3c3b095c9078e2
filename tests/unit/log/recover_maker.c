/* SPDX-License-Identifier: Apache-2.0 */
#include "recover_maker.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cuda_abi/cupti_record_bytes.h"
#include "log/write/writer.h"

#define KERNEL_NAME UINT64_C(0x7f0011223344)
#define LOST_NAME   UINT64_C(0x7f0055667788)
#define API	    65843u /* cuLaunchKernel */

static void pad_to(struct blob *blob, size_t multiple)
{
	static const uint8_t zeros[XT_CRASH_BUFFER_PAGE_BYTES];

	while (blob->bytes % multiple)
		blob_put(blob, zeros,
			 multiple - blob->bytes % multiple < sizeof(zeros)
				 ? multiple - blob->bytes % multiple
				 : sizeof(zeros));
}

static void put_zeros(struct blob *blob, size_t bytes)
{
	void *zeros = calloc(1, bytes);

	assert_non_null(zeros);
	blob_put(blob, zeros, bytes);
	free(zeros);
}

struct xt_crash_buffer_header *made_header(struct made_crash_buffer *crash_buffer)
{
	return (struct xt_crash_buffer_header *)crash_buffer->bytes.data;
}

struct xt_ring_header *made_ring(struct made_crash_buffer *crash_buffer, enum made_area area)
{
	return (struct xt_ring_header *)(crash_buffer->bytes.data + crash_buffer->offsets[area]);
}

struct xt_activity_header *made_buffer(struct made_crash_buffer *crash_buffer, enum made_area area)
{
	return (struct xt_activity_header *)(crash_buffer->bytes.data +
					     crash_buffer->offsets[area]);
}

static void put_call(struct blob *blob, uint32_t correlation, uint32_t slot, uint64_t enter_ns,
		     uint64_t exit_ns)
{
	const struct xt_record_call call = {
		.head = {XT_RECORD_CALL, sizeof(call)},
		.api = API,
		.correlation_id = correlation,
		.stack_slot = slot,
		.enter_ns = enter_ns,
		.exit_ns = exit_ns,
		.result = -1,
		.one_in = slot == XT_STACK_SLOT_LOST ? 2 : 0,
	};

	blob_put(blob, &call, sizeof(call));
}

static void put_module(struct blob *blob, uint32_t slot)
{
	const struct xt_record_module module = {
		.head = {XT_RECORD_MODULE, sizeof(module) + 16},
		.module_slot = slot,
		.start = 0x400000,
		.end = 0x500000,
		.bias = 0x1000,
		.build_id_bytes = 2,
		.path_bytes = 10,
	};

	blob_put(blob, &module, sizeof(module));
	blob_put(blob, "\x12\xab/lib/p.so\0\0\0\0", 16);
}

static void put_stack(struct blob *blob, uint32_t slot)
{
	const uint16_t modules[4] = {2, 1, XT_MODULE_SLOT_NONE};
	const uint64_t frames[] = {0x401000, 0x402000, 0x403000};
	const struct {
		uint32_t frame_count, code_count;
		struct xt_python_frame frames[2];
		struct xt_python_code code;
		char text[16];
	} python = {2, 1, {{12, 0, 1}, {3, 0, 3}}, {1, 5, 7}, "train/b/c.py"};
	const struct xt_record_stack stack = {
		.head = {XT_RECORD_STACK,
			 sizeof(stack) + sizeof(frames) + sizeof(modules) + sizeof(python)},
		.stack_slot = slot,
		.frame_count = 3,
		.flags = XT_STACK_TRUNCATED,
		.seen_ns = 2300,
	};

	blob_put(blob, &stack, sizeof(stack));
	blob_put(blob, frames, sizeof(frames));
	blob_put(blob, modules, sizeof(modules));
	blob_put(blob, &python, sizeof(python));
}

static void put_range(struct blob *blob)
{
	const struct xt_record_range range = {
		.head = {XT_RECORD_RANGE, sizeof(range) + 16},
		.stack_slot = XT_STACK_SLOT_NONE,
		.time_ns = 2600,
		.domain = 3,
		.operation = XT_RANGE_PUSH,
		.text_bytes = 4,
		.payload_bytes = 8,
	};

	blob_put(blob, &range, sizeof(range));
	blob_put(blob, "step\0\0\0\0payload", 16);
}

/* Created, or changed in an executable graph. */
static void put_node(struct blob *blob, uint64_t time_ns, uint32_t graph_exec)
{
	const struct xt_record_node node = {
		.head = {XT_RECORD_NODE, sizeof(node)},
		.stack_slot = 2,
		.node_id = 77,
		.time_ns = time_ns,
		.graph_exec = graph_exec,
	};

	blob_put(blob, &node, sizeof(node));
}

static void put_node_name(struct blob *blob, uint64_t time_ns)
{
	const struct xt_record_node_name name = {
		.head = {XT_RECORD_NODE_NAME, sizeof(name)},
		.node_id = 77,
		.time_ns = time_ns,
		.name = KERNEL_NAME,
	};

	blob_put(blob, &name, sizeof(name));
}

/* The first record is so late in the ring that a later one wraps. */
static void add_ring(struct made_crash_buffer *crash_buffer, enum made_area area,
		     uint32_t thread_id, const struct blob *records, uint64_t free_pos)
{
	struct xt_ring_header *ring;
	uint8_t *data;

	crash_buffer->offsets[area] = crash_buffer->bytes.bytes;
	put_zeros(&crash_buffer->bytes, XT_RING_DATA_OFFSET + MADE_RING_BYTES);
	ring = made_ring(crash_buffer, area);
	ring->thread_id = thread_id;
	ring->tid = 4700 + thread_id;
	ring->start_ns = MADE_START_NS + thread_id;
	ring->data_bytes = MADE_RING_BYTES;
	ring->free_pos = free_pos;
	ring->write_pos = free_pos + records->bytes;
	data = (uint8_t *)ring + XT_RING_DATA_OFFSET;
	for (size_t i = 0; i < records->bytes; i++)
		data[(free_pos + i) % MADE_RING_BYTES] = records->data[i];
}

static void add_rings(struct made_crash_buffer *crash_buffer)
{
	const struct xt_record pad = {XT_RECORD_PAD, 0};
	struct blob records = {0};
	struct xt_ring_header *ring;

	put_call(&records, 2, 1, 2100, 2200);
	put_module(&records, 2);
	put_stack(&records, 2);
	put_module(&records, 2); /* the stack belongs to the previous one */
	crash_buffer->free_pos = 5 * MADE_RING_BYTES - records.bytes - 16;
	blob_put(&records, &pad, sizeof(pad));
	put_zeros(&records, 16 - sizeof(pad));
	put_call(&records, 3, 2, 2400, 2450);
	put_call(&records, 4, 1, 2500, 2550);
	put_range(&records);
	put_node(&records, 2700, 0);
	put_node_name(&records, 2701);
	put_node(&records, 2710, 9);
	add_ring(crash_buffer, MADE_RING_1, 1, &records, crash_buffer->free_pos);
	crash_buffer->records_bytes = records.bytes;
	ring = made_ring(crash_buffer, MADE_RING_1);
	ring->slot_stack_id[1] = 1;
	ring->slot_module_id[1] = 1;
	ring->open_count = 1;
	ring->open_calls[0] = (struct xt_open_call){
		.api = API, .correlation_id = 5, .stack_slot = 2, .enter_ns = 2800};
	ring->counters[XT_RING_CALLS_SEEN] = 5;
	ring->counters[XT_RING_CALLS_COMMITTED] = 4;
	ring->counters[XT_RING_LOST_RING_FULL] = 1;
	blob_free(&records);

	put_call(&records, 6, XT_STACK_SLOT_LOST, 2500, 2900);
	add_ring(crash_buffer, MADE_RING_2, 2, &records, 0);
	made_ring(crash_buffer, MADE_RING_2)->counters[XT_RING_CALLS_SEEN] = 2; /* one too late */
	blob_free(&records);
}

static void put_kernel(struct blob *blob, uint32_t correlation, uint32_t stream, uint64_t start_ns,
		       uint64_t end_ns, uint64_t name)
{
	const struct cupti_activity_kernel kernel = {
		.kind = XT_CUPTI_ACTIVITY_CONCURRENT_KERNEL,
		.registers_per_thread = 32,
		.start_ns = start_ns,
		.end_ns = end_ns,
		.context_id = 1,
		.stream_id = stream,
		.grid = {(int32_t)correlation, 1, 1},
		.block = {32, 1, 1},
		.correlation_id = correlation,
		.name = (const char *)(uintptr_t)name,
	};

	blob_put(blob, &kernel, sizeof(kernel));
}

static void put_others(struct blob *blob)
{
	const struct cupti_activity_graph_trace graph = {.kind = XT_CUPTI_ACTIVITY_GRAPH_TRACE,
							 .correlation_id = 24,
							 .start_ns = 2600,
							 .end_ns = 2700,
							 .context_id = 1,
							 .graph_id = 9,
							 .stream_id = 7};
	const struct cupti_activity_memcpy copy = {.kind = XT_CUPTI_ACTIVITY_MEMCPY,
						   .copy_kind = XT_CUPTI_COPY_HTOD,
						   .bytes = 4096,
						   .start_ns = 2000,
						   .end_ns = 2001,
						   .correlation_id = 20};
	const struct cupti_activity_memcpy_peer peer = {.kind = XT_CUPTI_ACTIVITY_MEMCPY2,
							.copy_kind = XT_CUPTI_COPY_PTOP,
							.start_ns = 2002,
							.end_ns = 2003,
							.correlation_id = 21};
	const struct cupti_activity_memset set = {.kind = XT_CUPTI_ACTIVITY_MEMSET,
						  .bytes = 64,
						  .start_ns = 2004,
						  .end_ns = 2005,
						  .correlation_id = 22,
						  .memory_kind = XT_CUPTI_MEMORY_DEVICE};
	const struct cupti_activity_memory memory = {.kind = XT_CUPTI_ACTIVITY_MEMORY2,
						     .operation = XT_CUPTI_MEMORY_ALLOC,
						     .memory_kind = XT_CUPTI_MEMORY_DEVICE,
						     .correlation_id = 23,
						     .address = 0x7f00,
						     .bytes = 256,
						     .timestamp_ns = 2006};

	blob_put(blob, &copy, sizeof(copy));
	blob_put(blob, &peer, sizeof(peer));
	blob_put(blob, &set, sizeof(set));
	blob_put(blob, &memory, sizeof(memory));
	put_zeros(blob, 128 - sizeof(memory)); /* size in CUPTI 13 */
	blob_put(blob, &graph, sizeof(graph));
}

static void add_buffer(struct made_crash_buffer *crash_buffer, enum made_area area,
		       struct blob *records, enum xt_activity_state state)
{
	struct xt_activity_header header = {
		.state = state,
		.data_bytes = 4096,
		.valid_bytes = state == XT_ACTIVITY_COMPLETED ? records->bytes : 0,
	};

	crash_buffer->offsets[area] = crash_buffer->bytes.bytes;
	blob_put(&crash_buffer->bytes, &header, sizeof(header));
	pad_to(&crash_buffer->bytes, XT_CRASH_BUFFER_PAGE_BYTES);
	blob_put(&crash_buffer->bytes, records->data, records->bytes);
	pad_to(&crash_buffer->bytes, XT_CRASH_BUFFER_PAGE_BYTES);
	blob_free(records);
}

static void add_buffers(struct made_crash_buffer *crash_buffer)
{
	struct blob records = {0};
	size_t begun_at;

	put_kernel(&records, 1, 7, 1500, 1600, KERNEL_NAME);
	put_kernel(&records, 3, 7, 2460, 2470, KERNEL_NAME);
	put_kernel(&records, 3, 8, 2460, 2480, KERNEL_NAME); /* a second one of the same launch */
	put_kernel(&records, 4, 7, 2560, 2560, LOST_NAME);
	put_kernel(&records, 9, 7, 2570, 0, KERNEL_NAME); /* never ended */
	put_others(&records);
	crash_buffer->valid_bytes = records.bytes;
	add_buffer(crash_buffer, MADE_COMPLETED, &records, XT_ACTIVITY_COMPLETED);

	put_kernel(&records, 5, 7, 2850, 2890, KERNEL_NAME);
	begun_at = records.bytes;
	put_kernel(&records, 6, 7, 0, 0, KERNEL_NAME);
	((struct cupti_activity *)(records.data + begun_at))->kind |= XT_CUPTI_RECORD_BEGUN;
	put_kernel(&records, 7, 7, UINT64_C(1700000000) << 30, (UINT64_C(1700000000) << 30) + 1,
		   KERNEL_NAME);
	put_kernel(&records, 8, 7, 2855, 2889, KERNEL_NAME);
	add_buffer(crash_buffer, MADE_AT_CUPTI, &records, XT_ACTIVITY_AT_CUPTI);
}

static void put_name(struct blob *blob, enum xt_name_of of, uint64_t key, const char *text)
{
	const struct xt_crash_buffer_name name = {key, of, (uint32_t)strlen(text)};

	blob_put(blob, &name, sizeof(name));
	blob_put(blob, text, strlen(text));
	pad_to(blob, 8);
}

static void add_names(struct made_crash_buffer *crash_buffer)
{
	struct blob names = {0};
	struct xt_names_header header = {0};

	put_name(&names, XT_NAME_KERNEL, KERNEL_NAME, "an older module's");
	put_name(&names, XT_NAME_DOMAIN, 3, "domain");
	put_name(&names, XT_NAME_KERNEL, KERNEL_NAME, "k_three");
	header.used_bytes = crash_buffer->names_bytes = names.bytes;
	crash_buffer->offsets[MADE_NAMES] = crash_buffer->bytes.bytes;
	blob_put(&crash_buffer->bytes, &header, sizeof(header));
	put_zeros(&crash_buffer->bytes, XT_NAMES_DATA_OFFSET - sizeof(header));
	blob_put(&crash_buffer->bytes, names.data, names.bytes);
	pad_to(&crash_buffer->bytes, XT_CRASH_BUFFER_PAGE_BYTES);
	blob_free(&names);
}

void make_crash_buffer(struct made_crash_buffer *crash_buffer, uint32_t cupti_version)
{
	static const uint32_t kinds[MADE_AREAS] = {
		[MADE_RING_1] = XT_AREA_RING,	     [MADE_RING_2] = XT_AREA_RING,
		[MADE_COMPLETED] = XT_AREA_ACTIVITY, [MADE_AT_CUPTI] = XT_AREA_ACTIVITY,
		[MADE_NAMES] = XT_AREA_NAMES,
	};
	struct xt_crash_buffer_header *header;

	*crash_buffer = (struct made_crash_buffer){0};
	put_zeros(&crash_buffer->bytes, sizeof(*header));
	pad_to(&crash_buffer->bytes, XT_CRASH_BUFFER_PAGE_BYTES);
	add_rings(crash_buffer);
	add_buffers(crash_buffer);
	add_names(crash_buffer);
	header = made_header(crash_buffer);
	memcpy(header->magic, XT_CRASH_BUFFER_MAGIC, sizeof(header->magic));
	header->version = XT_CRASH_BUFFER_VERSION;
	header->byte_order = XT_LOG_BYTE_ORDER;
	header->log_id = MADE_LOG_ID;
	header->pid = 4711;
	header->cupti_version = cupti_version;
	header->area_count = MADE_AREAS;
	for (int i = 0; i < MADE_AREAS; i++) {
		header->areas[i].kind = kinds[i];
		header->areas[i].offset = crash_buffer->offsets[i];
		header->areas[i].bytes = (i + 1 < MADE_AREAS ? crash_buffer->offsets[i + 1]
							     : crash_buffer->bytes.bytes) -
					 crash_buffer->offsets[i];
	}
}

/* The log. */

struct row {
	enum xt_kind kind;
	uint64_t values[XT_TABLE_COLUMNS_MAX]; /* by column; unused for texts and lists */
};

static void add_row(struct xt_writer *writer, const struct row *row, const char *text)
{
	struct xt_table table;

	assert_int_equal(xt_table_init(&table, row->kind, 4, 64), 0);
	for (unsigned c = 1; c < XT_TABLE_COLUMNS_MAX; c++) {
		uint8_t encoding = xt_kind_specs[row->kind].columns[c].encoding;

		if (encoding == XT_ENC_BYTES && text)
			xt_table_put_bytes(&table, c, text, strlen(text));
		else if (encoding == XT_ENC_LIST)
			xt_table_put_list(&table, c, (const uint64_t[]){0x400100, 0x400200}, 2);
		else if (encoding && encoding != XT_ENC_BYTES)
			xt_table_put(&table, c, row->values[c]);
	}
	xt_table_end_row(&table);
	assert_int_equal(xt_writer_add(writer, &table), 0);
	xt_table_free(&table);
}

void make_log(const char *path)
{
	static const struct {
		struct row row;
		const char *text;
	} rows[] = {
		{{XT_KIND_API, {0, API, 0, XT_API_LAUNCH}}, "cuLaunchKernel"},
		{{XT_KIND_THREAD, {0, 1, 4701, 0, MADE_START_NS}}, "main"},
		{{XT_KIND_STRING, {0, 1}}, "k_one"},
		{{XT_KIND_STREAM, {0, 1, 0, 1, 7}}, NULL},
		{{XT_KIND_SHAPE, {0, 1, 1, 1, 1, 1, 32, 1, 1}}, NULL},
		{{XT_KIND_MODULE, {0, 1, MADE_START_NS, 0x400000, 0x500000, 0}}, "/lib/q.so"},
		{{XT_KIND_STACK, {0, 1, 0, 1100}}, NULL},
		{{XT_KIND_CALL, {0, 1, API, 1, 1, 1200, 100, 0}}, NULL},
		{{XT_KIND_CALL, {0, 1, API, 2, 1, 2100, 100, 0}}, NULL},
		{{XT_KIND_KERNEL, {0, 1, 1, 1, 1500, 100, 0}}, NULL},
		{{XT_KIND_ACCOUNT, {0, 0, 3}}, "calls.seen"},
		{{XT_KIND_ACCOUNT, {0, 0, 2}}, "calls.written"},
		{{XT_KIND_ACCOUNT, {0, 0, 1}}, "calls.lost.no_ring"},
		{{XT_KIND_ACCOUNT, {0, 0, 1}}, "kernels.written"},
		{{XT_KIND_ACCOUNT, {0, 0, 1}}, "threads.seen"},
	};
	struct xt_log_header header = {.pid = 4711,
				       .start_monotonic_ns = MADE_START_NS,
				       .clock = XT_CLOCK_MONOTONIC,
				       .log_id = MADE_LOG_ID};
	struct xt_writer *writer;

	unlink(path);
	assert_int_equal(xt_writer_create(path, &header, &writer), 0);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		add_row(writer, &rows[i].row, rows[i].text);
	assert_int_equal(xt_writer_flush(writer), 0);
	xt_writer_close(writer);
}
