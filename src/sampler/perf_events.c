/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opens the events, maps their rings and reads samples. Sampler thread only. An inherited event can
 * be mapped only if it is bound to a CPU, hence one event for each CPU.
 */
#include "sampler/perf_events.h"

#include <asm/perf_regs.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "log/base/monotonic.h"
#include "sampler/process_read.h"

#define PARANOID_PATH "/proc/sys/kernel/perf_event_paranoid"
/* The highest value at which users may sample their own processes in user mode. */
#define PARANOID_MAX 2

/* A filter returns EPERM by default. The kernel returns EACCES for the sysctl. */
static void explain_denied(int error, char *why, size_t why_bytes)
{
	int paranoid = proc_file_number(PARANOID_PATH, "");
	bool seccomp = proc_file_number("/proc/self/status", "Seccomp:") > 0;

	if (paranoid > PARANOID_MAX && (error == EACCES || !seccomp))
		snprintf(why, why_bytes,
			 "perf_event_paranoid is %d; 'sysctl kernel.perf_event_paranoid=%d' "
			 "allows it",
			 paranoid, PARANOID_MAX);
	else if (seccomp)
		snprintf(why, why_bytes,
			 "the container's seccomp profile forbids perf_event_open; docker run "
			 "--cap-add PERFMON or --security-opt seccomp=PROFILE allows it");
	else
		snprintf(why, why_bytes,
			 "perf_event_open: %s; a security module or a change of user forbids it",
			 strerror(error));
}

/* Tells the sysctl, a seccomp filter and limits apart: each needs another remedy. */
void perf_refusal_explain(int error, size_t cpu_count, char *why, size_t why_bytes)
{
	switch (error) {
	case EACCES:
	case EPERM:
		explain_denied(error, why, why_bytes);
		break;
	case ENOSYS:
		snprintf(why, why_bytes,
			 "this kernel has no perf_event_open (CONFIG_PERF_EVENTS), or a sandbox "
			 "hides it");
		break;
	case EMFILE:
	case ENFILE:
		snprintf(why, why_bytes,
			 "%zu CPUs need as many open files, more than the limit; raise "
			 "'ulimit -n'",
			 cpu_count);
		break;
	case ESRCH:
		snprintf(why, why_bytes, "the process has ended");
		break;
	default:
		snprintf(why, why_bytes, "perf_event_open: %s", strerror(error));
	}
}

#define PAGE_BYTES 4096u
/*
 * Without privileges the kernel allows 516 KiB for each CPU (perf_event_mlock_kb): 128 pages and
 * the header's page. That is half a second of samples at 99 Hz.
 */
#define RING_PAGES_MAX	128u
#define RING_PAGES_MIN	8u /* three samples */
#define RINGS_BYTES_MAX (64u << 20)
#define PERIOD_NS_MIN	10000.0 /* the kernel's own limit */
#define JITTER		0.2
#define FAULT_PERIOD	2003 /* page faults for each sample: 500 in a second of nothing else */
#define CPUS_MAX	4096
#define EVENT_REGISTERS 8
/* With PERF_SAMPLE_PERIOD, the kernel would sample a software event each time it happens. */
#define EVENT_SAMPLE_TYPES                                                                         \
	(PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ID |                    \
	 PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER)

/* In the order of the kernel's numbers, which is their order in a sample. */
static const struct {
	uint32_t number;
	enum thread_register thread_register;
} registers[EVENT_REGISTERS] = {
	{PERF_REG_X86_BX, THREAD_RBX},	{PERF_REG_X86_BP, THREAD_RBP},
	{PERF_REG_X86_SP, THREAD_RSP},	{PERF_REG_X86_IP, THREAD_RIP},
	{PERF_REG_X86_R12, THREAD_R12}, {PERF_REG_X86_R13, THREAD_R13},
	{PERF_REG_X86_R14, THREAD_R14}, {PERF_REG_X86_R15, THREAD_R15},
};

struct perf_ring {
	int fd;
	int fault_fd;	   /* -1: none */
	uint64_t fault_id; /* of its samples */
	struct perf_event_mmap_page *control;
	const uint8_t *data;
};

/*
 * The CPUs that the process could ever use: a mask of all CPUs comes back without those that its
 * cpuset lacks. An affinity mask alone could be widened later.
 */
static size_t find_cpus(uint16_t *cpus)
{
	cpu_set_t *old = CPU_ALLOC(CPUS_MAX), *all = CPU_ALLOC(CPUS_MAX);
	size_t bytes = CPU_ALLOC_SIZE(CPUS_MAX), count = 0;

	if (old && all && !sched_getaffinity(0, bytes, old)) {
		memset(all, 0xff, bytes);
		if (sched_setaffinity(0, bytes, all) || sched_getaffinity(0, bytes, all))
			memcpy(all, old, bytes);
		sched_setaffinity(0, bytes, old);
		for (uint16_t cpu = 0; cpu < CPUS_MAX; cpu++)
			if (CPU_ISSET_S(cpu, bytes, all))
				cpus[count++] = cpu;
	}
	CPU_FREE(old);
	CPU_FREE(all);
	return count;
}

static uint64_t random_next(struct perf_events *events)
{
	events->random ^= events->random << 13;
	events->random ^= events->random >> 7;
	events->random ^= events->random << 17;
	return events->random;
}

/* The rate is uniform, not the period, so that the mean number of samples is as asked for. */
static uint64_t draw_period_ns(struct perf_events *events)
{
	double part = (double)(random_next(events) >> 11) / (double)(UINT64_C(1) << 53);
	double period_ns = 1e9 / (events->hz * (1 - JITTER + 2 * JITTER * part));

	return (uint64_t)(period_ns < PERIOD_NS_MIN ? PERIOD_NS_MIN : period_ns);
}

static int open_event(struct perf_events *events, uint64_t kind, pid_t pid, int cpu)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = kind,
		.sample_period =
			kind == PERF_COUNT_SW_PAGE_FAULTS ? FAULT_PERIOD : draw_period_ns(events),
		.sample_type = EVENT_SAMPLE_TYPES,
		.inherit = 1,
		.exclude_kernel = !events->sees_kernel,
		.exclude_hv = 1,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
		.wakeup_events = 1,
		.sample_stack_user = PERF_STACK_BYTES,
	};

	for (size_t i = 0; i < EVENT_REGISTERS; i++)
		attr.sample_regs_user |= UINT64_C(1) << registers[i].number;
	return (int)syscall(SYS_perf_event_open, &attr, pid, cpu, -1, PERF_FLAG_FD_CLOEXEC);
}

/* Falls back to user mode if the first event may not see the kernel. */
static int open_clock(struct perf_events *events, pid_t pid, int cpu)
{
	int fd = open_event(events, PERF_COUNT_SW_TASK_CLOCK, pid, cpu);

	if (fd >= 0 || !events->sees_kernel || events->ring_count ||
	    (errno != EACCES && errno != EPERM))
		return fd;
	events->sees_kernel = false;
	return open_event(events, PERF_COUNT_SW_TASK_CLOCK, pid, cpu);
}

static int open_events(struct perf_events *events, pid_t pid, const uint16_t *cpus,
		       size_t cpu_count)
{
	for (size_t i = 0; i < cpu_count; i++) {
		int fd = open_clock(events, pid, cpus[i]);

		if (fd < 0 && errno == ENODEV)
			continue; /* went offline meanwhile */
		if (fd < 0)
			return -errno;
		fcntl(fd, F_SETFL, O_NONBLOCK);
		events->rings[events->ring_count++] = (struct perf_ring){
			.fd = fd,
			/* The clock is enough if there are too few descriptors for this. */
			.fault_fd = events->sees_kernel
					    ? -1
					    : open_event(events, PERF_COUNT_SW_PAGE_FAULTS, pid,
							 cpus[i]),
		};
	}
	return events->ring_count ? 0 : -ENODEV;
}

/* Page faults go to the ring of the clock of the same CPU. */
static void join_faults(struct perf_events *events)
{
	for (size_t i = 0; i < events->ring_count; i++) {
		struct perf_ring *ring = &events->rings[i];

		if (ring->fault_fd < 0 ||
		    (!ioctl(ring->fault_fd, PERF_EVENT_IOC_ID, &ring->fault_id) &&
		     !ioctl(ring->fault_fd, PERF_EVENT_IOC_SET_OUTPUT, ring->fd)))
			continue;
		close(ring->fault_fd);
		ring->fault_fd = -1;
	}
}

static void unmap_rings(struct perf_events *events)
{
	for (size_t i = 0; i < events->ring_count; i++) {
		struct perf_ring *ring = &events->rings[i];

		if (ring->control)
			munmap(ring->control, PAGE_BYTES + events->data_bytes);
		ring->control = NULL;
	}
}

static int map_rings_of(struct perf_events *events, uint64_t page_count)
{
	events->data_bytes = page_count * PAGE_BYTES;
	for (size_t i = 0; i < events->ring_count; i++) {
		struct perf_ring *ring = &events->rings[i];
		void *memory = mmap(NULL, PAGE_BYTES + events->data_bytes, PROT_READ | PROT_WRITE,
				    MAP_SHARED, ring->fd, 0);

		if (memory == MAP_FAILED) {
			int error = -errno;

			unmap_rings(events);
			return error;
		}
		ring->control = memory;
		ring->data = (const uint8_t *)memory + PAGE_BYTES;
	}
	return 0;
}

static int map_rings(struct perf_events *events, char *why, size_t why_bytes)
{
	uint64_t page_count = RING_PAGES_MAX;
	int error;

	while (page_count > RING_PAGES_MIN &&
	       page_count * PAGE_BYTES * events->ring_count > RINGS_BYTES_MAX)
		page_count /= 2;
	do {
		error = map_rings_of(events, page_count);
		page_count /= 2;
	} while ((error == -EPERM || error == -ENOMEM) && page_count >= RING_PAGES_MIN);
	if (error)
		snprintf(why, why_bytes,
			 "cannot lock %zu KiB for the buffers of %zu CPUs: %s; raise 'ulimit -l' "
			 "or sysctl kernel.perf_event_mlock_kb",
			 events->ring_count * (RING_PAGES_MIN + 1) * PAGE_BYTES / 1024,
			 events->ring_count, strerror(-error));
	return error;
}

static int join_rings(struct perf_events *events)
{
	events->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (events->epoll_fd < 0)
		return -errno;
	for (size_t i = 0; i < events->ring_count; i++) {
		struct epoll_event event = {.events = EPOLLIN, .data.u64 = i};

		if (epoll_ctl(events->epoll_fd, EPOLL_CTL_ADD, events->rings[i].fd, &event))
			return -errno;
		events->polled_count++;
	}
	return 0;
}

static struct perf_events *create(size_t cpu_count, double hz)
{
	struct perf_events *events = calloc(1, sizeof(*events));

	if (!events)
		return NULL;
	events->epoll_fd = -1;
	events->hz = hz;
	events->random = (monotonic_ns() << 20 ^ (uint64_t)getpid()) | 1;
	events->sees_kernel = true;
	events->rings = calloc(cpu_count ? cpu_count : 1, sizeof(*events->rings));
	if (!events->rings) {
		free(events);
		return NULL;
	}
	return events;
}

int perf_events_open(struct perf_events **out, pid_t pid, double hz, char *why, size_t why_bytes)
{
	const char *setting = getenv("XTRACE_CPU_PERF");
	uint16_t cpus[CPUS_MAX];
	size_t cpu_count;
	struct perf_events *events;
	int error;

	if (setting && !strcmp(setting, "off")) {
		snprintf(why, why_bytes, "XTRACE_CPU_PERF=off");
		return -EPERM;
	}
	cpu_count = find_cpus(cpus);
	events = create(cpu_count, hz);
	if (!events) {
		snprintf(why, why_bytes, "out of memory");
		return -ENOMEM;
	}
	error = open_events(events, pid, cpus, cpu_count);
	if (error) {
		perf_refusal_explain(-error, cpu_count, why, why_bytes);
	} else {
		error = map_rings(events, why, why_bytes);
		if (!error) {
			join_faults(events);
			error = join_rings(events);
			if (error)
				snprintf(why, why_bytes, "epoll: %s", strerror(-error));
		}
	}
	if (error) {
		perf_events_close(events);
		return error;
	}
	*out = events;
	return 0;
}

int perf_events_descriptor(const struct perf_events *events)
{
	return events->polled_count ? events->epoll_fd : -1;
}

void perf_events_drop_ended(struct perf_events *events)
{
	struct epoll_event ready[64];
	int count = epoll_wait(events->epoll_fd, ready, 64, 0);

	for (int i = 0; i < count; i++)
		if (ready[i].events & (EPOLLHUP | EPOLLERR) &&
		    !epoll_ctl(events->epoll_fd, EPOLL_CTL_DEL, events->rings[ready[i].data.u64].fd,
			       NULL))
			events->polled_count--;
}

/* A place in a record; `left` is what follows it. */
struct cursor {
	const uint8_t *at;
	size_t left;
};

static const void *take(struct cursor *cursor, size_t bytes)
{
	const uint8_t *at = cursor->at;

	if (bytes > cursor->left)
		return NULL;
	cursor->at += bytes;
	cursor->left -= bytes;
	return at;
}

static uint64_t take_u64(struct cursor *cursor)
{
	const void *at = take(cursor, sizeof(uint64_t));
	uint64_t value = 0;

	if (at)
		memcpy(&value, at, sizeof(value));
	return value;
}

/* The fields are in the order of perf_event_open(2), section PERF_RECORD_SAMPLE. */
static bool read_sample(const struct perf_ring *ring, struct perf_sample *sample,
			struct cursor cursor)
{
	uint64_t tids, stack_bytes;
	const uint8_t *stack;

	take_u64(&cursor); /* IP, which is among the registers too */
	tids = take_u64(&cursor);
	sample->pid = (pid_t)(uint32_t)tids;
	sample->tid = (pid_t)(tids >> 32);
	sample->time_ns = take_u64(&cursor);
	sample->is_fault = take_u64(&cursor) == ring->fault_id && ring->fault_fd >= 0;
	if (take_u64(&cursor) != PERF_SAMPLE_REGS_ABI_64)
		return false;
	for (size_t i = 0; i < EVENT_REGISTERS; i++) {
		sample->registers.value[registers[i].thread_register] = take_u64(&cursor);
		sample->registers.known |= 1u << registers[i].thread_register;
	}
	stack_bytes = take_u64(&cursor);
	if (!stack_bytes)
		return sample->pid > 0;
	stack = take(&cursor, stack_bytes);
	if (!stack || cursor.left < sizeof(uint64_t))
		return false;
	sample->stack = stack;
	sample->stack_bytes = take_u64(&cursor); /* what the kernel could copy */
	if (sample->stack_bytes > stack_bytes)
		sample->stack_bytes = stack_bytes;
	return sample->pid > 0 && sample->tid > 0;
}

static void take_record(struct perf_events *events, const struct perf_ring *ring,
			const uint8_t *record, size_t record_bytes,
			void (*taken)(void *context, const struct perf_sample *sample),
			void *context)
{
	struct perf_event_header header;
	struct cursor cursor = {record + sizeof(header), record_bytes - sizeof(header)};
	struct perf_sample sample = {0};

	memcpy(&header, record, sizeof(header));
	sample.is_in_kernel =
		(header.misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_KERNEL;
	if (header.type == PERF_RECORD_LOST) {
		take_u64(&cursor); /* the event's id */
		events->lost_count += take_u64(&cursor);
	} else if (header.type == PERF_RECORD_SAMPLE && read_sample(ring, &sample, cursor)) {
		taken(context, &sample);
	}
}

static void drain_ring(struct perf_events *events, struct perf_ring *ring,
		       void (*taken)(void *context, const struct perf_sample *sample),
		       void *context)
{
	/* Pairs with the kernel's release of data_head, see linux/perf_event.h. */
	uint64_t head = __atomic_load_n(&ring->control->data_head, __ATOMIC_ACQUIRE);
	uint64_t tail = ring->control->data_tail;

	while (tail < head) {
		uint64_t place = tail & (events->data_bytes - 1);
		const uint8_t *record = ring->data + place;
		struct perf_event_header header;

		/* Records are aligned to 8 bytes, so that a header never wraps. */
		memcpy(&header, record, sizeof(header));
		if (header.size < sizeof(header))
			break;
		if (place + header.size > events->data_bytes) {
			size_t first = events->data_bytes - place;

			memcpy(events->record, record, first);
			memcpy(events->record + first, ring->data, header.size - first);
			record = events->record;
		}
		take_record(events, ring, record, header.size, taken, context);
		tail += header.size;
		/* Pairs with the kernel's read of data_tail before it writes again. */
		__atomic_store_n(&ring->control->data_tail, tail, __ATOMIC_RELEASE);
	}
}

void perf_events_drain(struct perf_events *events,
		       void (*taken)(void *context, const struct perf_sample *sample),
		       void *context)
{
	for (size_t i = 0; i < events->ring_count; i++)
		drain_ring(events, &events->rings[i], taken, context);
}

/*
 * The kernel changes the period of the process's first thread and of threads that start later.
 * Threads that already inherited the event keep the period that was valid at their start.
 */
void perf_events_jitter(struct perf_events *events)
{
	for (size_t i = 0; i < events->ring_count; i++) {
		uint64_t period_ns = draw_period_ns(events);

		ioctl(events->rings[i].fd, PERF_EVENT_IOC_PERIOD, &period_ns);
	}
}

void perf_events_close(struct perf_events *events)
{
	if (!events)
		return;
	unmap_rings(events);
	for (size_t i = 0; i < events->ring_count; i++) {
		close(events->rings[i].fd);
		if (events->rings[i].fault_fd >= 0)
			close(events->rings[i].fault_fd);
	}
	if (events->epoll_fd >= 0)
		close(events->epoll_fd);
	free(events->rings);
	free(events);
}
