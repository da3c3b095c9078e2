/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The suite's CUPTI client. It stores every callback and every record. Its callbacks run on any
 * thread that CUPTI chooses, and call no driver function.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "conformance.h"

#define NOTES_MAX   65536
#define BUFFERS_MAX 4096

struct cupti cupti;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* All under lock. */
static struct note notes[NOTES_MAX];
static size_t note_count;
static struct kernel_note kernels[NOTES_MAX];
static size_t kernel_count;
static struct cupti_activity_memcpy memcpys[1024];
static size_t memcpy_count;
static struct cupti_activity_memcpy_peer peer_copies[1024];
static size_t peer_copy_count;
static struct cupti_activity_memset memsets[1024];
static size_t memset_count;
static struct cupti_activity_memory memories[1024];
static size_t memory_count;
static struct cupti_activity_graph_trace graphs[1024];
static size_t graph_count;
static struct buffer_note buffers;
static uint8_t *buffers_out[BUFFERS_MAX];
static size_t buffer_bytes = 1 << 20;

/* Set between calls. */
static uint32_t gated_kind;
static bool gate_enables;

uint64_t client_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void copy_name(char *to, const char *from)
{
	snprintf(to, NAME_BYTES, "%s", from ? from : "");
}

static void note_api(struct note *note, const struct cupti_callback_data *data)
{
	note->site = data->site;
	note->correlation_id = data->correlation_id;
	note->context_id = data->context_id;
	note->has_slot = data->correlation_data != NULL;
	if (note->has_slot)
		note->slot = *data->correlation_data;
	if (note->has_slot && data->site == XT_CUPTI_API_ENTER)
		*data->correlation_data = UINT64_C(0xfeed000000000000) | data->correlation_id;
	if (data->site == XT_CUPTI_API_EXIT && data->return_value)
		note->result = *(const CUresult *)data->return_value;
	copy_name(note->function_name, data->function_name);
	copy_name(note->symbol_name, data->symbol_name);
	if (note->domain == XT_CUPTI_CB_DOMAIN_DRIVER_API &&
	    note->cbid == EXEC_KERNEL_NODE_SET_PARAMS)
		memcpy(note->arguments, data->function_params, sizeof(note->arguments));
}

static void pass_gate(const struct note *note)
{
	bool is_enter = note->site == XT_CUPTI_API_ENTER;

	if (!gated_kind ||
	    (note->cbid != INSTANTIATE_WITH_FLAGS && note->cbid != XT_CUPTI_CBID_cuGraphLaunch))
		return;
	if (is_enter == gate_enables)
		cupti.cuptiActivityEnable(gated_kind);
	else
		cupti.cuptiActivityDisable(gated_kind);
}

static void note_resource(struct note *note, const struct cupti_resource_data *data)
{
	const struct cupti_graph_data *graph = data->descriptor;

	if (note->cbid != XT_CUPTI_RESOURCE_GRAPHNODE_CREATE_STARTING &&
	    note->cbid != XT_CUPTI_RESOURCE_GRAPHNODE_CREATED &&
	    note->cbid != XT_CUPTI_RESOURCE_GRAPHNODE_CLONED)
		return;
	note->node_type = graph->node_type;
	cupti.cuptiGetGraphNodeId(graph->node, &note->node_id);
	if (note->cbid == XT_CUPTI_RESOURCE_GRAPHNODE_CLONED)
		cupti.cuptiGetGraphNodeId(graph->original_node, &note->original_node_id);
}

static void on_callback(void *userdata, uint32_t domain, uint32_t cbid, const void *data)
{
	struct note note = {
		.domain = domain,
		.cbid = cbid,
		.tid = gettid(),
		.time_ns = client_now_ns(),
	};

	(void)userdata;
	if (domain == XT_CUPTI_CB_DOMAIN_DRIVER_API) {
		note_api(&note, data);
		pass_gate(&note);
	} else if (domain == XT_CUPTI_CB_DOMAIN_RESOURCE) {
		note_resource(&note, data);
	}
	pthread_mutex_lock(&lock);
	if (note_count < NOTES_MAX)
		notes[note_count++] = note;
	pthread_mutex_unlock(&lock);
}

static void on_buffer_requested(uint8_t **buffer_out, size_t *bytes_out, size_t *max_records_out)
{
	pthread_mutex_lock(&lock);
	*bytes_out = buffer_bytes;
	*buffer_out = aligned_alloc(4096, buffer_bytes);
	*max_records_out = 0;
	buffers.request_tid = gettid();
	buffers.requested_count++;
	for (size_t i = 0; i < BUFFERS_MAX; i++) {
		if (!buffers_out[i]) {
			buffers_out[i] = *buffer_out;
			break;
		}
	}
	pthread_mutex_unlock(&lock);
}

static void note_record(const struct cupti_activity *record)
{
	const struct cupti_activity_kernel *kernel = (const void *)record;

	switch (record->kind) {
	case XT_CUPTI_ACTIVITY_CONCURRENT_KERNEL:
	case XT_CUPTI_ACTIVITY_KERNEL:
		if (kernel_count == NOTES_MAX)
			return;
		/*
		 * Records of older CUPTI versions are shorter. Their last fields are undefined
		 * here.
		 */
		kernels[kernel_count].record = *kernel;
		copy_name(kernels[kernel_count].name, kernel->name);
		kernel_count++;
		return;
	case XT_CUPTI_ACTIVITY_MEMCPY:
		if (memcpy_count < 1024)
			memcpys[memcpy_count++] = *(const struct cupti_activity_memcpy *)record;
		return;
	case XT_CUPTI_ACTIVITY_MEMCPY2:
		if (peer_copy_count < 1024)
			peer_copies[peer_copy_count++] =
				*(const struct cupti_activity_memcpy_peer *)record;
		return;
	case XT_CUPTI_ACTIVITY_MEMSET:
		if (memset_count < 1024)
			memsets[memset_count++] = *(const struct cupti_activity_memset *)record;
		return;
	case XT_CUPTI_ACTIVITY_GRAPH_TRACE:
		if (graph_count < 1024)
			graphs[graph_count++] = *(const struct cupti_activity_graph_trace *)record;
		return;
	case XT_CUPTI_ACTIVITY_MEMORY2:
		if (memory_count < 1024)
			memories[memory_count++] = *(const struct cupti_activity_memory *)record;
		return;
	}
}

static void on_buffer_completed(void *context, uint32_t stream_id, uint8_t *buffer, size_t bytes,
				size_t valid_bytes)
{
	struct cupti_activity *record = NULL;
	size_t place = 0;
	int result;

	(void)context;
	(void)stream_id;
	pthread_mutex_lock(&lock);
	buffers.completed_count++;
	while (place < BUFFERS_MAX && buffers_out[place] != buffer)
		place++;
	if (place == BUFFERS_MAX || valid_bytes > bytes)
		buffers.strange_count++;
	else
		buffers_out[place] = NULL;
	while (!(result = cupti.cuptiActivityGetNextRecord(buffer, valid_bytes, &record))) {
		if ((uintptr_t)record % 8)
			buffers.unaligned_count++;
		note_record(record);
	}
	if (result != XT_CUPTI_ERROR_MAX_LIMIT_REACHED)
		buffers.unparsed_count++;
	pthread_mutex_unlock(&lock);
	free(buffer);
}

static int find_functions(const char *path)
{
	void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	int missing_REQUIRED = 0;
	int missing_OPTIONAL = 0;

	if (!library) {
		printf("no libcupti: %s\n", dlerror());
		return -1;
	}
#define FIND(need, name, arguments)                                                                \
	*(void **)&cupti.name = dlsym(library, #name);                                             \
	if (!cupti.name)                                                                           \
		missing_##need += printf("lacks " #name ", which is " #need "\n") > 0;
	CUPTI_FUNCTIONS(FIND)
#undef FIND
	cupti.path = path;
	if (missing_OPTIONAL)
		puts("what is optional is not checked where it is missing");
	return missing_REQUIRED ? -1 : 0;
}

void client_enable(uint32_t domain, uint32_t cbid, bool enable)
{
	int result = cupti.cuptiEnableCallback(enable, cupti.subscriber, domain, cbid);

	if (result)
		printf("  callback %u of domain %u cannot be enabled: error %d\n", cbid, domain,
		       result);
}

void client_gate(uint32_t kind, bool enable)
{
	client_enable(XT_CUPTI_CB_DOMAIN_DRIVER_API, INSTANTIATE_WITH_FLAGS, kind != 0);
	gated_kind = kind;
	gate_enables = enable;
}

int client_open(const char *path)
{
	static const uint32_t resources[] = {
		XT_CUPTI_RESOURCE_CONTEXT_CREATED,   XT_CUPTI_RESOURCE_CONTEXT_DESTROY_STARTING,
		XT_CUPTI_RESOURCE_STREAM_CREATED,    XT_CUPTI_RESOURCE_STREAM_DESTROY_STARTING,
		XT_CUPTI_RESOURCE_MODULE_LOADED,     XT_CUPTI_RESOURCE_MODULE_UNLOAD_STARTING,
		XT_CUPTI_RESOURCE_GRAPHNODE_CREATED, XT_CUPTI_RESOURCE_GRAPHNODE_CLONED,
	};
	uint8_t one = 1;
	size_t one_bytes = sizeof(one);
	int result;

	if (find_functions(path))
		return -1;
	result = cupti.cuptiSubscribe(&cupti.subscriber, on_callback, NULL);
	if (result) {
		printf("subscribing failed: error %d\n", result);
		return -1;
	}
#define ENABLE(name, cbid, class) client_enable(XT_CUPTI_CB_DOMAIN_DRIVER_API, cbid, true);
	XT_CUPTI_DRIVER_LAUNCHES(ENABLE)
#undef ENABLE
	for (size_t i = 0; i < sizeof(resources) / sizeof(resources[0]); i++)
		client_enable(XT_CUPTI_CB_DOMAIN_RESOURCE, resources[i], true);
	if (cupti.cuptiActivitySetAttribute(XT_CUPTI_ATTR_ZEROED_OUT_ACTIVITY_BUFFER, &one_bytes,
					    &one))
		puts("the zeroing attribute was refused");
	result = cupti.cuptiActivityRegisterCallbacks(on_buffer_requested, on_buffer_completed);
	if (!result)
		result = cupti.cuptiActivityRegisterTimestampCallback(client_now_ns);
	if (!result)
		result = cupti.cuptiActivityEnable(XT_CUPTI_ACTIVITY_CONCURRENT_KERNEL);
	if (result)
		printf("activity records cannot be had: error %d\n", result);
	return result ? -1 : 0;
}

void client_clear(void)
{
	client_settle();
	pthread_mutex_lock(&lock);
	note_count = kernel_count = memcpy_count = peer_copy_count = memset_count = memory_count =
		graph_count = 0;
	pthread_mutex_unlock(&lock);
}

static size_t record_count(void)
{
	size_t count;

	pthread_mutex_lock(&lock);
	count = kernel_count + memcpy_count + peer_copy_count + memset_count + memory_count +
		graph_count;
	pthread_mutex_unlock(&lock);
	return count;
}

void client_settle(void)
{
	size_t before;

	driver.cuCtxSynchronize();
	do {
		before = record_count();
		cupti.cuptiActivityFlushAll(XT_CUPTI_FLUSH_COMPLETED);
		usleep(2000);
		cupti.cuptiActivityFlushAll(XT_CUPTI_FLUSH_COMPLETED);
	} while (record_count() != before);
}

void client_take_kernels(void)
{
	cupti.cuptiActivityFlushAll(XT_CUPTI_FLUSH_COMPLETED);
}

void client_set_buffer_bytes(size_t bytes)
{
	pthread_mutex_lock(&lock);
	buffer_bytes = bytes;
	pthread_mutex_unlock(&lock);
}

size_t client_note_count(void)
{
	return note_count;
}

const struct note *client_note(size_t index)
{
	return &notes[index];
}

size_t client_kernel_count(void)
{
	return kernel_count;
}

const struct kernel_note *client_kernel(size_t index)
{
	return &kernels[index];
}

struct buffer_note client_buffers(void)
{
	struct buffer_note copy;

	pthread_mutex_lock(&lock);
	copy = buffers;
	pthread_mutex_unlock(&lock);
	return copy;
}

size_t client_memcpy_count(void)
{
	return memcpy_count;
}

const struct cupti_activity_memcpy *client_memcpy(size_t index)
{
	return &memcpys[index];
}

size_t client_peer_copy_count(void)
{
	return peer_copy_count;
}

const struct cupti_activity_memcpy_peer *client_peer_copy(size_t index)
{
	return &peer_copies[index];
}

size_t client_memset_count(void)
{
	return memset_count;
}

const struct cupti_activity_memset *client_memset(size_t index)
{
	return &memsets[index];
}

size_t client_graph_count(void)
{
	return graph_count;
}

const struct cupti_activity_graph_trace *client_graph(size_t index)
{
	return &graphs[index];
}

size_t client_memory_count(void)
{
	return memory_count;
}

const struct cupti_activity_memory *client_memory(size_t index)
{
	return &memories[index];
}

const struct note *find_note(uint32_t domain, uint32_t cbid, uint32_t site, size_t index)
{
	for (size_t i = 0; i < note_count; i++)
		if (notes[i].domain == domain && notes[i].cbid == cbid && notes[i].site == site &&
		    !index--)
			return &notes[i];
	return NULL;
}

size_t count_notes(uint32_t domain, uint32_t cbid, uint32_t site)
{
	size_t count = 0;

	while (find_note(domain, cbid, site, count))
		count++;
	return count;
}

const struct kernel_note *find_kernel(uint32_t correlation_id)
{
	const struct kernel_note *found = NULL;

	for (size_t i = 0; i < kernel_count; i++) {
		if (kernels[i].record.correlation_id != correlation_id)
			continue;
		if (found)
			return NULL;
		found = &kernels[i];
	}
	return found;
}
