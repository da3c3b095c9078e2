/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The base of the driver half: configuration, state of threads, the link to the tracer half,
 * cuInit() and fork handling, errors, and the properties of devices. Runs on the application's
 * threads.
 *
 * cuInit() loads the library that CUDA_INJECTION64_PATH names, as NVIDIA's driver does.
 *
 * A child of an initialised process cannot use the device, as with a real GPU: all its calls fail
 * with CUDA_ERROR_NOT_INITIALIZED. A child forked before cuInit() can use it.
 */
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "simgpu/sim.h"

/*
 * README.md describes the environment variables. They are read once, before main() or when the
 * library is opened.
 */
static struct sim_config config = {
	.seed = 1,
	.ranks_timeout_ns = UINT64_C(10000000000),
	.link_bytes_per_us = 100000,
};

const struct sim_config *sim_config(void)
{
	return &config;
}

static void read_kernel_range(const char *text)
{
	char *end;

	config.kernel_min_ns = strtoull(text, &end, 10);
	config.kernel_max_ns = *end == ':' ? strtoull(end + 1, &end, 10) : config.kernel_min_ns;
	if (*end || config.kernel_max_ns < config.kernel_min_ns || !config.kernel_max_ns) {
		fprintf(stderr, "xtrace simulated GPU: XTRACE_SIMGPU_KERNEL_NS=%s is not MIN:MAX\n",
			text);
		config.kernel_min_ns = config.kernel_max_ns = 0;
	}
}

/* The text of a variable, or NULL if it is not set or empty. */
static const char *variable(const char *name)
{
	const char *text = getenv(name);

	return text && *text ? text : NULL;
}

static uint64_t number(const char *name, uint64_t usual)
{
	const char *text = variable(name);

	return text ? strtoull(text, NULL, 0) : usual;
}

__attribute__((constructor(101))) static void read_environment(void)
{
	const char *kernel_range = variable("XTRACE_SIMGPU_KERNEL_NS");
	const char *ranks_timeout = variable("XTRACE_SIMGPU_RANKS_TIMEOUT");
	uint64_t link = number("XTRACE_SIMGPU_LINK", 0);

	config.seed = number("XTRACE_SIMGPU_SEED", config.seed);
	if (kernel_range)
		read_kernel_range(kernel_range);
	config.launch_ns = number("XTRACE_SIMGPU_LAUNCH_NS", 0);
	config.stack_bytes = number("XTRACE_SIMGPU_STACK_BYTES", 0);
	config.set_up_ms = number("XTRACE_SIMGPU_SET_UP_MS", 0);
	config.device_count = (int)number("XTRACE_SIMGPU_DEVICES", 1);
	if (config.device_count < 0 || config.device_count > SIM_DEVICES_MAX)
		config.device_count = SIM_DEVICES_MAX;
	config.reuses_ids = number("XTRACE_SIMGPU_REUSE_IDS", 0) == 1;
	config.reuses_names = number("XTRACE_SIMGPU_REUSE_NAMES", 0) == 1;
	config.ranks_folder = variable("XTRACE_SIMGPU_RANKS");
	if (ranks_timeout)
		config.ranks_timeout_ns = (uint64_t)(strtod(ranks_timeout, NULL) * 1e9);
	if (link)
		config.link_bytes_per_us = link;
	config.truth_path = variable("XTRACE_SIMGPU_TRUTH");
}

void *sim_alloc(size_t bytes, const char *what)
{
	void *memory = calloc(1, bytes);

	if (memory)
		return memory;
	fprintf(stderr, "xtrace simulated GPU: no memory for %s\n", what);
	abort();
}

void sim_crash(const char *why)
{
	fprintf(stderr, "xtrace simulated GPU: %s\n", why);
	raise(SIGSEGV);
	abort();
}

/*
 * The state of a thread is allocated when the thread first calls the driver, and freed when it
 * exits.
 */
static __thread struct sim_thread *self __attribute__((tls_model("initial-exec")));
static pthread_key_t exit_key;
static pthread_once_t exit_key_once = PTHREAD_ONCE_INIT;

static void thread_exit(void *data)
{
	struct sim_thread *thread = data;

	if (thread->own_streams)
		thread->free_own_streams(thread);
	free(thread->context_stack);
	free(thread);
	self = NULL;
}

static void make_exit_key(void)
{
	if (pthread_key_create(&exit_key, thread_exit)) {
		fputs("xtrace simulated GPU: no thread key is left\n", stderr);
		abort();
	}
}

static struct sim_thread *thread_begin(void)
{
	struct sim_thread *thread = sim_alloc(sizeof(*thread), "a thread");

	pthread_once(&exit_key_once, make_exit_key);
	pthread_setspecific(exit_key, thread);
	thread->tid = (int)syscall(SYS_gettid);
	self = thread;
	return thread;
}

struct sim_thread *sim_thread(void)
{
	struct sim_thread *thread = self;

	return __builtin_expect(thread != NULL, 1) ? thread : thread_begin();
}

/*
 * The link to the tracer half: its switches, correlation ids, and the callbacks of the resource
 * domain.
 */
struct sim_switches sim_switches = {.device_graphs_bytes = SIM_DEVICE_GRAPHS_BYTES,
				    .kinds_lock = PTHREAD_MUTEX_INITIALIZER};

static _Atomic uint32_t correlation_count;

/* Only a call that is reported takes an id, as with a real CUPTI. */
uint32_t sim_correlation_id(void)
{
	struct sim_call *call = sim_thread()->call;

	if (call->correlation_id)
		return call->correlation_id;
	call->correlation_id = sim_thread()->frozen_id;
	if (!call->correlation_id)
		call->correlation_id =
			1 + atomic_fetch_add_explicit(&correlation_count, 1, memory_order_relaxed);
	return call->correlation_id;
}

void sim_restart_correlation_ids(void)
{
	atomic_store_explicit(&correlation_count, 0, memory_order_relaxed);
}

uint32_t sim_correlation_id_borrowed(void)
{
	const struct sim_call *call = sim_thread()->call;

	return call->correlation_id
		       ? call->correlation_id
		       : atomic_load_explicit(&correlation_count, memory_order_relaxed);
}

/* CUPTI before 13.0.1 holds these two in the other order when it disables kernel records. */
void sim_hold_kinds(void)
{
	if (!atomic_load(&sim_switches.deadlocks) ||
	    !atomic_load(&sim_switches.activity_enabled[SIM_SWITCH_KERNEL]))
		return;
	atomic_fetch_add(&sim_switches.kinds_waiter_count, 1);
	usleep(100);
	pthread_mutex_lock(&sim_switches.kinds_lock);
	pthread_mutex_unlock(&sim_switches.kinds_lock);
	atomic_fetch_sub(&sim_switches.kinds_waiter_count, 1);
}

void sim_resource_notify(uint32_t cbid, CUcontext context, CUstream stream, void *descriptor)
{
	const struct cupti_resource_data data = {
		.context = context,
		.stream = stream,
		.descriptor = descriptor,
	};
	struct sim_thread *thread = sim_thread();
	const struct sim_tracer *tracer;

	if (!atomic_load_explicit(&sim_switches.resource_enabled[cbid], memory_order_acquire))
		return;
	tracer = atomic_load_explicit(&sim_switches.tracer, memory_order_acquire);
	thread->is_in_callback = true;
	tracer->resource(cbid, &data);
	thread->is_in_callback = false;
}

enum state { STATE_NEW, STATE_READY, STATE_FORKED };

static _Atomic int state;
static pthread_mutex_t init_lock = PTHREAD_MUTEX_INITIALIZER;

bool sim_is_ready(void)
{
	return atomic_load_explicit(&state, memory_order_acquire) == STATE_READY;
}

bool sim_is_usable(void)
{
	return atomic_load_explicit(&state, memory_order_acquire) != STATE_FORKED;
}

static void before_fork(void)
{
	pthread_mutex_lock(&init_lock);
}

static void after_fork_in_parent(void)
{
	pthread_mutex_unlock(&init_lock);
}

static void after_fork_in_child(void)
{
	if (sim_is_ready())
		atomic_store(&state, STATE_FORKED);
	pthread_mutex_init(&init_lock, NULL);
}

/* Failures are reported on stderr. NVIDIA's driver is silent. */
static void inject(void)
{
	const char *path = getenv("CUDA_INJECTION64_PATH");
	void *library;
	int (*initialize)(void);

	if (!path || !*path)
		return;
	library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!library) {
		fprintf(stderr, "xtrace simulated GPU: CUDA_INJECTION64_PATH: %s\n", dlerror());
		return;
	}
	*(void **)&initialize = dlsym(library, "InitializeInjection");
	if (!initialize) {
		fprintf(stderr, "xtrace simulated GPU: %s has no InitializeInjection\n", path);
		return;
	}
	initialize();
}

unsigned sim_set_up_begin(void)
{
	unsigned in_use = atomic_load(&sim_switches.was_used);

	atomic_fetch_add(&sim_switches.set_up_count, in_use);
	if (sim_config()->set_up_ms) /* sleeping is a cancellation point */
		usleep((useconds_t)(1000 * sim_config()->set_up_ms));
	return in_use;
}

void sim_set_up_end(unsigned begun)
{
	atomic_fetch_sub(&sim_switches.set_up_count, begun);
}

CUresult sim_init(unsigned int flags)
{
	static __thread bool is_inside; /* cuInit() called from the injected library */
	CUresult result = CUDA_SUCCESS;

	if (flags)
		return CUDA_ERROR_INVALID_VALUE;
	if (sim_is_ready() || is_inside)
		return CUDA_SUCCESS;
	if (!sim_is_usable())
		return CUDA_ERROR_NOT_INITIALIZED;
	pthread_mutex_lock(&init_lock);
	if (!sim_is_ready()) {
		if (!sim_config()->device_count) {
			result = CUDA_ERROR_NO_DEVICE;
		} else {
			is_inside = true;
			inject();
			is_inside = false;
			sim_set_up_end(sim_set_up_begin());
			pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
			atomic_store_explicit(&state, STATE_READY, memory_order_release);
			sim_resource_notify(XT_CUPTI_RESOURCE_CU_INIT_FINISHED, NULL, NULL, NULL);
		}
	}
	pthread_mutex_unlock(&init_lock);
	return result;
}

CUresult sim_driver_get_version(int *version)
{
	if (!version)
		return CUDA_ERROR_INVALID_VALUE;
	*version = CUDA_VERSION;
	return CUDA_SUCCESS;
}

static const struct {
	CUresult code;
	const char *name;
	const char *text;
} errors[] = {
#define ERROR(code, text)                                                                          \
	{                                                                                          \
		code, #code, text                                                                  \
	}
	ERROR(CUDA_SUCCESS, "no error"),
	ERROR(CUDA_ERROR_INVALID_VALUE, "invalid argument"),
	ERROR(CUDA_ERROR_OUT_OF_MEMORY, "out of memory"),
	ERROR(CUDA_ERROR_NOT_INITIALIZED, "the driver is not initialised"),
	ERROR(CUDA_ERROR_DEINITIALIZED, "the driver is shutting down"),
	ERROR(CUDA_ERROR_NO_DEVICE, "no device"),
	ERROR(CUDA_ERROR_INVALID_DEVICE, "no such device"),
	ERROR(CUDA_ERROR_INVALID_IMAGE, "the image is neither PTX nor a library"),
	ERROR(CUDA_ERROR_INVALID_CONTEXT, "no context is current, or it is not valid"),
	ERROR(CUDA_ERROR_NO_BINARY_FOR_GPU, "the image has no code for this device"),
	ERROR(CUDA_ERROR_INVALID_PTX, "the PTX text cannot be compiled"),
	ERROR(CUDA_ERROR_FILE_NOT_FOUND, "file not found"),
	ERROR(CUDA_ERROR_INVALID_HANDLE, "invalid handle"),
	ERROR(CUDA_ERROR_ILLEGAL_STATE, "not permitted in this state"),
	ERROR(CUDA_ERROR_NOT_FOUND, "the named symbol was not found"),
	ERROR(CUDA_ERROR_NOT_READY, "not finished yet"),
	ERROR(CUDA_ERROR_ILLEGAL_ADDRESS, "work on the device used memory that is not its own"),
	ERROR(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, "the launch needs too many resources"),
	ERROR(CUDA_ERROR_LAUNCH_TIMEOUT, "a kernel did not end in time"),
	ERROR(CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED, "the context has access already"),
	ERROR(CUDA_ERROR_PEER_ACCESS_NOT_ENABLED, "the context has no access"),
	ERROR(CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE, "the primary context is in use"),
	ERROR(CUDA_ERROR_CONTEXT_IS_DESTROYED, "the context has been destroyed"),
	ERROR(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, "host memory is registered already"),
	ERROR(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, "host memory is not registered"),
	ERROR(CUDA_ERROR_LAUNCH_FAILED, "the launch failed"),
	ERROR(CUDA_ERROR_NOT_SUPPORTED, "not supported"),
	ERROR(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "not permitted while a stream is captured"),
	ERROR(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, "an earlier error invalidated the capture"),
	ERROR(CUDA_ERROR_STREAM_CAPTURE_MERGE, "this would join two captures"),
	ERROR(CUDA_ERROR_STREAM_CAPTURE_UNMATCHED, "the capture did not begin on this stream"),
	ERROR(CUDA_ERROR_STREAM_CAPTURE_UNJOINED, "work that was forked was not joined"),
	ERROR(CUDA_ERROR_STREAM_CAPTURE_ISOLATION, "a dependency leaves the capture"),
	ERROR(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, "the legacy stream cannot be captured"),
	ERROR(CUDA_ERROR_CAPTURED_EVENT, "the event was recorded in a capture"),
	ERROR(CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD, "the capture belongs to another thread"),
	ERROR(CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, "the graph differs too much for an update"),
	ERROR(CUDA_ERROR_UNKNOWN, "unknown error"),
#undef ERROR
};

static const char *find_error(CUresult code, bool wants_name)
{
	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++)
		if (errors[i].code == code)
			return wants_name ? errors[i].name : errors[i].text;
	return NULL;
}

CUresult sim_get_error_string(CUresult code, const char **text)
{
	if (!text)
		return CUDA_ERROR_INVALID_VALUE;
	*text = find_error(code, false);
	return *text ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult sim_get_error_name(CUresult code, const char **name)
{
	if (!name)
		return CUDA_ERROR_INVALID_VALUE;
	*name = find_error(code, true);
	return *name ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* All devices are alike, about as large as a data centre GPU. */
static const struct sim_device_facts device_facts = {
	.name = "xtrace simulated GPU",
	.multiprocessor_count = 132,
	.capability_major = 9,
	.capability_minor = 0,
	.memory_bytes = UINT64_C(80) << 30,
};

static const struct {
	CUdevice_attribute attribute;
	int value;
} attributes[] = {
	{CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1024},
	{CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, 1024},
	{CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, 1024},
	{CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, 64},
	{CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, 2147483647},
	{CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, 65535},
	{CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, 65535},
	{CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, 49152},
	{CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY, 65536},
	{CU_DEVICE_ATTRIBUTE_WARP_SIZE, 32},
	{CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK, 65536},
	{CU_DEVICE_ATTRIBUTE_CLOCK_RATE, 1980000},
	{CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 132},
	{CU_DEVICE_ATTRIBUTE_INTEGRATED, 0},
	{CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY, 1},
	{CU_DEVICE_ATTRIBUTE_COMPUTE_MODE, 0},
	{CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS, 1},
	{CU_DEVICE_ATTRIBUTE_ECC_ENABLED, 1},
	{CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID, 0},
	{CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, 2619000},
	{CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, 5120},
	{CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, 52428800},
	{CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 2048},
	{CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT, 3},
	{CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, 1},
	{CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID, 0},
	{CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 9},
	{CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0},
	{CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED, 1},
	{CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, 233472},
	{CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR, 65536},
	{CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, 1},
	{CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH, 1},
	{CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 232448},
	{CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR, 32},
	{CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK, 1024},
	{CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, 1},
};

int sim_device_total(void)
{
	return sim_config()->device_count;
}

const struct sim_device_facts *sim_device_facts(int device)
{
	return device >= 0 && device < sim_device_total() ? &device_facts : NULL;
}

CUresult sim_device_get(CUdevice *device, int ordinal)
{
	if (!device)
		return CUDA_ERROR_INVALID_VALUE;
	if (!sim_device_facts(ordinal))
		return CUDA_ERROR_INVALID_DEVICE;
	*device = ordinal;
	return CUDA_SUCCESS;
}

CUresult sim_device_get_count(int *count)
{
	if (!count)
		return CUDA_ERROR_INVALID_VALUE;
	*count = sim_device_total();
	return CUDA_SUCCESS;
}

CUresult sim_device_get_name(char *name, int length, CUdevice device)
{
	if (!name || length <= 0)
		return CUDA_ERROR_INVALID_VALUE;
	if (!sim_device_facts(device))
		return CUDA_ERROR_INVALID_DEVICE;
	snprintf(name, length, "%s", device_facts.name);
	return CUDA_SUCCESS;
}

CUresult sim_device_get_uuid(CUuuid *uuid, CUdevice device)
{
	if (!uuid)
		return CUDA_ERROR_INVALID_VALUE;
	if (!sim_device_facts(device))
		return CUDA_ERROR_INVALID_DEVICE;
	memset(uuid->bytes, 0, sizeof(uuid->bytes));
	memcpy(uuid->bytes, "simulated", 9);
	uuid->bytes[15] = (char)device;
	return CUDA_SUCCESS;
}

CUresult sim_device_total_mem(size_t *bytes, CUdevice device)
{
	if (!bytes)
		return CUDA_ERROR_INVALID_VALUE;
	if (!sim_device_facts(device))
		return CUDA_ERROR_INVALID_DEVICE;
	*bytes = device_facts.memory_bytes;
	return CUDA_SUCCESS;
}

CUresult sim_device_get_attribute(int *value, CUdevice_attribute attribute, CUdevice device)
{
	if (!value)
		return CUDA_ERROR_INVALID_VALUE;
	if (!sim_device_facts(device))
		return CUDA_ERROR_INVALID_DEVICE;
	*value = 0; /* a feature that the table lacks is one that the device lacks */
	if (attribute == CU_DEVICE_ATTRIBUTE_PCI_BUS_ID)
		*value = device + 1;
	for (size_t i = 0; i < sizeof(attributes) / sizeof(attributes[0]); i++)
		if (attributes[i].attribute == attribute)
			*value = attributes[i].value;
	return CUDA_SUCCESS;
}

CUresult sim_device_get_pci_bus_id(char *text, int length, CUdevice device)
{
	if (!text || length <= 0)
		return CUDA_ERROR_INVALID_VALUE;
	if (!sim_device_facts(device))
		return CUDA_ERROR_INVALID_DEVICE;
	snprintf(text, length, "0000:%02X:00.0", device + 1);
	return CUDA_SUCCESS;
}
