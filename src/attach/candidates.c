/* SPDX-License-Identifier: Apache-2.0 */
#include "attach/candidates.h"

#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "attach/code_site.h"
#include "attach/stub.h"
#include "log/base/compare.h"
#include "sampler/process_read.h"
#include "sampler/remote_unwind.h"

/*
 * /proc does not show the bounds of a thread's stack: one mapping may contain several stacks and
 * guard pages, and the program may have provided a part of its own memory.
 */
#define BLOCK_BYTES	  4096	/* more than struct pthread of any glibc */
#define ABOVE_BLOCK_MAX	  16384 /* from the thread's block to the upper end of the stack */
#define STACK_BYTES_LIMIT (UINT64_C(1) << 40)

/*
 * In struct pthread of glibc 2.4 and later, these words follow each other: lowest address, size,
 * and size of the guard at the lowest address. Their place differs, but no other words fit: the
 * range contains the stack pointer and ends just above the thread's block.
 */
static bool is_stack(const uint64_t words[3], uint64_t thread_block, uint64_t stack_pointer)
{
	uint64_t start = words[0], bytes = words[1], guard_bytes = words[2];

	return start && bytes < STACK_BYTES_LIMIT && guard_bytes < bytes &&
	       start + guard_bytes <= stack_pointer && stack_pointer < thread_block &&
	       start + bytes > thread_block && start + bytes - thread_block <= ABOVE_BLOCK_MAX;
}

bool own_stack_find(pid_t pid, uint64_t thread_block, uint64_t stack_pointer, uint64_t *lowest)
{
	uint64_t words[BLOCK_BYTES / sizeof(uint64_t)];
	size_t count =
		process_memory_read_some(pid, words, thread_block, sizeof(words)) / sizeof(*words);

	for (size_t i = 0; i + 3 <= count; i++)
		if (is_stack(words + i, thread_block, stack_pointer)) {
			*lowest = words[i] + words[i + 2];
			return true;
		}
	return false;
}

/*
 * A thread in one of these may hold a lock that pthread_create() needs, or its stack is about to
 * end. Allocators of other libraries have the names of malloc, too.
 */
static const char *const unsafe_functions[] = {
	/* allocate, or wait for a lock of the C library */
	"malloc", "free", "calloc", "realloc", "reallocarray", "memalign", "posix_memalign",
	"aligned_alloc", "valloc", "pvalloc", "malloc_trim", "malloc_info", "mallopt", "_Znwm",
	"_Znam", "_ZdlPv", "_ZdaPv", "_ZdlPvm", "_ZdaPvm", "__lll_lock_wait_private",
	/* of the loader */
	"dlopen", "dlmopen", "dlclose", "dlsym", "dlvsym", "dl_iterate_phdr", "__libc_dlopen_mode",
	"__tls_get_addr",
	/* have the list of threads, or wait for all of them */
	"pthread_create", "pthread_exit", "setuid", "setgid", "seteuid", "setegid", "setreuid",
	"setregid", "setresuid", "setresgid", "setgroups", "pthread_getattr_np",
	/* the process may end or change */
	"fork", "_Fork", "vfork", "__libc_fork", "posix_spawn", "posix_spawnp", "system", "popen",
	"exit", "quick_exit", "_exit", "abort", "__cxa_finalize", "__call_tls_dtors"};

/* These wait for a lock, or may do so. That is safe, unless the caller is an allocator. */
static const char *const lock_functions[] = {
	/* surely */
	"pthread_mutex_lock", "pthread_mutex_timedlock", "pthread_mutex_clocklock",
	"pthread_rwlock_rdlock", "pthread_rwlock_wrlock",
	/* perhaps */
	"syscall", "nanosleep", "clock_nanosleep", "usleep"};
#define SURE_LOCK_FUNCTIONS 5 /* the first ones */

#define COUNT(list) (sizeof(list) / sizeof(*(list)))
static bool is_loader(const struct process_module *module)
{
	const char *name = base_name(module->path);

	return !strncmp(name, "ld-linux", 8) || !strncmp(name, "ld-2.", 5) ||
	       !strcmp(name, "ld.so");
}

/*
 * Results by file and address, because some libraries have 300,000 symbols. The stack of a stopped
 * thread was checked just before, so the second check is short.
 */
#define KNOWN_PLACES 4096 /* power of two */

static struct known_place {
	uint64_t image_id, address; /* address 0: empty */
	const char *unsafe, *lock;  /* names of the function, or NULL */
} known_places[KNOWN_PLACES];

static const struct known_place *place_at(const struct process_module *module, uint64_t address)
{
	uint64_t at = address - module->bias;
	struct known_place *known =
		&known_places[(at ^ at >> 12 ^ module->elf->id << 5) & (KNOWN_PLACES - 1)];

	if (known->address != at || known->image_id != module->elf->id)
		*known = (struct known_place){
			.image_id = module->elf->id,
			.address = at,
			.unsafe = elf_symbols_named_at(module->elf->fd, at, unsafe_functions,
						       COUNT(unsafe_functions)),
			.lock = elf_symbols_named_at(module->elf->fd, at, lock_functions,
						     COUNT(lock_functions)),
		};
	return known;
}

/* Allocators such as jemalloc wait in functions that have other names than malloc(). */
#define KNOWN_IMAGES 256 /* power of two */

static bool provides_malloc(const struct process_module *module)
{
	static struct {
		uint64_t image_id; /* 0: empty */
		bool provides;
	} known_images[KNOWN_IMAGES];
	size_t slot = module->elf->id & (KNOWN_IMAGES - 1);
	struct elf_symbol symbol = {.name = "malloc"};

	if (known_images[slot].image_id != module->elf->id) {
		elf_symbols_find(module->elf->fd, &symbol, 1);
		known_images[slot].image_id = module->elf->id;
		known_images[slot].provides = symbol.address != 0;
	}
	return known_images[slot].provides;
}

struct judgement {
	pid_t pid;
	bool may_lock, must_lock; /* what the frames of the C library do */
	bool has_caller;	  /* frames outside the C library were seen */
	bool is_in_handler;
	const struct why *why;
};

/* A program that contains an allocator is in each stack, so only its waits for locks count. */
static bool is_in_allocator(const struct judgement *judgement, const struct process_module *module,
			    bool is_innermost)
{
	if (module_is_glibc(module) || !provides_malloc(module))
		return false;
	return !module_is_program(judgement->pid, module) ||
	       (!judgement->has_caller && (is_innermost || judgement->may_lock));
}

static bool is_frame_safe(struct judgement *judgement, const struct process_modules *modules,
			  const struct native_stack *stack, uint32_t i)
{
	bool is_exact = stack->frames[i] >> XT_FRAME_KIND_SHIFT == XT_FRAME_EXACT;
	uint64_t address = (stack->frames[i] & XT_FRAME_VALUE_MASK) - !is_exact;
	const struct process_module *module = process_modules_find(modules, address);
	const struct known_place *place;
	const struct why *why = judgement->why;
	const char *where = judgement->is_in_handler ? "is in a signal handler, and " : "";
	bool is_safe = false;

	if (!module || module->path[0] != '/')
		return true; /* compiled at run time, or the kernel's */
	if (module->elf->fd < 0)
		return refuse(why, false, "%sis in '%s', which was deleted or cannot be read",
			      where, module->path);
	place = place_at(module, address);
	if (is_loader(module))
		refuse(why, 0, "%sis in the loader", where);
	else if (place->unsafe)
		refuse(why, 0, "%sis in %s()", where, place->unsafe);
	else if (is_in_allocator(judgement, module, is_exact))
		refuse(why, 0, "%smay be in the allocator of '%s'", where, module->path);
	else
		is_safe = true;
	judgement->may_lock |= place->lock != NULL;
	for (size_t n = 0; n < SURE_LOCK_FUNCTIONS; n++)
		judgement->must_lock |= place->lock == lock_functions[n];
	judgement->has_caller |= !module_is_glibc(module);
	return is_safe;
}

/* Frames from here on were interrupted anywhere, not in a call. */
static void enter_handler(struct judgement *judgement)
{
	judgement->is_in_handler = true;
	judgement->may_lock = judgement->has_caller = false;
}

enum stack_safety safe_stack_check(struct process_modules *modules, pid_t pid,
				   const struct thread_registers *registers, const struct why *why)
{
	static struct native_stack stack;
	const struct stack_copy copy = {.is_live = true};
	struct judgement judgement = {.pid = pid, .why = why};
	bool is_safe = true;

	remote_unwind(&stack, modules, pid, registers, &copy);
	for (uint32_t i = 0; i < stack.frame_count; i++) {
		if (i && stack.frames[i] >> XT_FRAME_KIND_SHIFT == XT_FRAME_EXACT)
			enter_handler(&judgement);
		if (is_safe || judgement.is_in_handler)
			is_safe = is_frame_safe(&judgement, modules, &stack, i);
		if (!is_safe && judgement.is_in_handler)
			return STACK_INTERRUPTED;
	}
	if (stack.flags & XT_STACK_TRUNCATED) {
		refuse(why, 0, "has a stack that cannot be walked beyond %u frames",
		       stack.frame_count);
		return judgement.is_in_handler ? STACK_INTERRUPTED
		       : is_safe	       ? STACK_UNKNOWN
					       : STACK_UNSAFE;
	}
	if (judgement.is_in_handler && is_safe)
		refuse(why, 0, "is in a signal handler");
	if (judgement.is_in_handler || !is_safe)
		return STACK_UNSAFE;
	return judgement.must_lock ? STACK_WAITS_FOR_LOCK : STACK_SAFE;
}

/*
 * A signal may have stopped threads inside malloc, as garbage collectors do that stop the world. A
 * lock that the stub needs may be held until their handlers return.
 */
#define WHY_BYTES    128
#define SEEN_THREADS 4096 /* power of two */

/* Where a thread was blocked when its stack was walked last. */
static struct {
	pid_t tid; /* 0: empty */
	uint64_t instruction, stack_pointer;
} seen[SEEN_THREADS];

static bool was_seen(pid_t tid, const struct thread_syscall *call)
{
	size_t i = (size_t)tid & (SEEN_THREADS - 1);
	bool is_same = seen[i].tid == tid && seen[i].instruction == call->instruction &&
		       seen[i].stack_pointer == call->stack_pointer;

	seen[i].tid = tid;
	seen[i].instruction = call->instruction;
	seen[i].stack_pointer = call->stack_pointer;
	return is_same;
}

static bool is_interrupted(struct target *target, pid_t tid, const struct why *why)
{
	struct thread_files files = {.pid = target->pid, .tid = tid};
	struct thread_registers registers = {.known = 1u << THREAD_RIP | 1u << THREAD_RSP};
	struct thread_syscall call;

	thread_files_syscall(&files, &call);
	if (call.kind != SYSCALL_BLOCKED || was_seen(tid, &call))
		return false;
	registers.value[THREAD_RIP] = call.instruction;
	registers.value[THREAD_RSP] = call.stack_pointer;
	return safe_stack_check(&target->modules, target->pid, &registers, why) ==
	       STACK_INTERRUPTED;
}

bool interrupted_threads_find(struct target *target, bool is_again, const struct why *why)
{
	char reason[WHY_BYTES];
	bool is_found = false;
	DIR *folder;
	pid_t tid;

	if (!is_again)
		memset(seen, 0, sizeof(seen));
	folder = opendir(PROC_PATH("%d/task", target->pid));
	while (!is_found && (tid = proc_next_id(folder))) {
		is_found = is_interrupted(target, tid, &(struct why){reason, sizeof(reason)});
		if (is_found)
			refuse(why, 0, "thread %d %s, so it may hold a lock that xtrace needs", tid,
			       reason);
	}
	if (folder)
		closedir(folder);
	return is_found;
}

/* All zeros if the thread has ended. */
static void schedule_read(struct schedule *schedule, pid_t tid)
{
	int policy = sched_getscheduler(tid);

	memset(schedule, 0, sizeof(*schedule));
	if (policy < 0)
		return;
	schedule->policy = policy & ~SCHED_RESET_ON_FORK;
	schedule->nice = getpriority(PRIO_PROCESS, (id_t)tid);
	/* Fails on machines with more CPUs. Then the stub leaves them alone. */
	syscall(SYS_sched_getaffinity, tid, sizeof(schedule->cpus), schedule->cpus);
}

/* Adds the CPUs of another thread. */
static void schedule_add_cpus(struct schedule *schedule, const struct schedule *other)
{
	for (size_t i = 0; i < sizeof(schedule->cpus) / sizeof(*schedule->cpus); i++)
		schedule->cpus[i] |= other->cpus[i];
}

/* From the main thread's schedule: one without a fixed priority. */
static void schedule_make_usual(struct schedule *schedule)
{
	if (schedule->policy != SCHED_BATCH && schedule->policy != SCHED_IDLE)
		schedule->policy = SCHED_OTHER;
}

static bool schedule_equals(const struct schedule *a, const struct schedule *b)
{
	return a->policy == b->policy && a->nice == b->nice &&
	       !memcmp(a->cpus, b->cpus, sizeof(a->cpus));
}

/* Error numbers inside the kernel (include/linux/errno.h), which a tracer sees. */
#define ERESTARTSYS	      512
#define ERESTARTNOINTR	      513
#define ERESTARTNOHAND	      WAIT_RESTARTS_UNLESS_HANDLED
#define ERESTART_RESTARTBLOCK 516

#define NONE (-1)

/* Calls that do more than wait, such as write(), are missing: they may be done in part. */
static const struct wait_call {
	long number;
	enum wait_rank rank;  /* without a time */
	enum wait_rank timed; /* with one */
	int time_argument;    /* NONE: never has one */
	bool time_is_number;  /* of ms; negative: none. Otherwise a pointer */
	int mask_argument;    /* a signal mask for the time of the call; NONE: it has none */
	int flags_argument;   /* unfit with these flags */
	uint64_t unfit_flags;
} wait_calls[] = {
	{SYS_read, WAIT_EXACT, WAIT_EXACT, NONE, false, NONE, NONE, 0},
	{SYS_readv, WAIT_EXACT, WAIT_EXACT, NONE, false, NONE, NONE, 0},
	{SYS_recvfrom, WAIT_EXACT, WAIT_EXACT, NONE, false, NONE, 3, MSG_WAITALL},
	{SYS_recvmsg, WAIT_EXACT, WAIT_EXACT, NONE, false, NONE, 2, MSG_WAITALL},
	{SYS_accept, WAIT_EXACT, WAIT_EXACT, NONE, false, NONE, NONE, 0},
	{SYS_accept4, WAIT_EXACT, WAIT_EXACT, NONE, false, NONE, NONE, 0},
	{SYS_wait4, WAIT_EXACT, WAIT_EXACT, NONE, false, NONE, NONE, 0},
	{SYS_waitid, WAIT_EXACT, WAIT_EXACT, NONE, false, NONE, NONE, 0},
	{SYS_pause, WAIT_EXACT, WAIT_EXACT, NONE, false, NONE, NONE, 0},
	{SYS_futex, WAIT_EXACT, WAIT_REMAINING, 3, false, NONE, NONE, 0},
	{SYS_poll, WAIT_EXACT, WAIT_REMAINING, 2, true, NONE, NONE, 0},
	{SYS_nanosleep, WAIT_REMAINING, WAIT_REMAINING, NONE, false, NONE, NONE, 0},
	{SYS_clock_nanosleep, WAIT_REMAINING, WAIT_REMAINING, NONE, false, NONE, NONE, 0},
	{SYS_restart_syscall, WAIT_REMAINING, WAIT_REMAINING, NONE, false, NONE, NONE, 0},
	/* The kernel writes the time that remains into their arguments. */
	{SYS_select, WAIT_EXACT, WAIT_REMAINING, 4, false, NONE, NONE, 0},
	{SYS_pselect6, WAIT_EXACT, WAIT_REMAINING, 4, false, 5, NONE, 0},
	{SYS_ppoll, WAIT_EXACT, WAIT_REMAINING, 2, false, 3, NONE, 0},
	{SYS_epoll_wait, WAIT_EINTR, WAIT_REPEATED, 3, true, NONE, NONE, 0},
	{SYS_epoll_pwait, WAIT_EINTR, WAIT_REPEATED, 3, true, 4, NONE, 0},
	{SYS_rt_sigtimedwait, WAIT_EINTR, WAIT_REPEATED, 2, false, NONE, NONE, 0},
};

static const struct wait_call *find_wait_call(long number)
{
	for (size_t i = 0; i < sizeof(wait_calls) / sizeof(*wait_calls); i++)
		if (wait_calls[i].number == number)
			return &wait_calls[i];
	return NULL;
}

/* These wait until a fixed time, so restarting them from the beginning is exact. */
static bool is_absolute(long number, const uint64_t arguments[6])
{
	if (number == SYS_clock_nanosleep)
		return arguments[1] & TIMER_ABSTIME;
	return number == SYS_futex && (arguments[1] & FUTEX_CMD_MASK) != FUTEX_WAIT;
}

/* Other operations wake threads, so they are never blocked for long. */
static bool is_other_futex(long number, const uint64_t arguments[6])
{
	int operation = (int)(arguments[1] & FUTEX_CMD_MASK);

	return number == SYS_futex && operation != FUTEX_WAIT && operation != FUTEX_WAIT_BITSET;
}

enum wait_rank wait_call_rank(long number, const uint64_t arguments[6])
{
	const struct wait_call *call = find_wait_call(number);
	bool is_timed;

	if (!call || is_other_futex(number, arguments))
		return WAIT_UNFIT;
	/* A signal may be allowed during this call alone, so it must not be delivered outside. */
	if (call->mask_argument != NONE && arguments[call->mask_argument])
		return WAIT_UNFIT;
	if (call->flags_argument != NONE && arguments[call->flags_argument] & call->unfit_flags)
		return WAIT_UNFIT;
	if (is_absolute(number, arguments))
		return WAIT_EXACT;
	is_timed = call->time_argument != NONE &&
		   (call->time_is_number ? (int32_t)arguments[call->time_argument] >= 0
					 : arguments[call->time_argument] != 0);
	return is_timed ? call->timed : call->rank;
}

/* Whether the first argument is a descriptor, and the time limit of a socket applies. */
static bool wait_call_reads(long number)
{
	static const long calls[] = {SYS_read,	  SYS_readv,  SYS_recvfrom,
				     SYS_recvmsg, SYS_accept, SYS_accept4};

	for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++)
		if (calls[i] == number)
			return true;
	return false;
}

/*
 * EINTR here is the effect of the stop: the caller makes sure that no signal waits for its handler.
 */
struct wait_restart wait_call_restart(long number, uint64_t result)
{
	uint64_t call = (uint64_t)number;

	switch (-(int64_t)result) {
	case ERESTARTSYS:
		return (struct wait_restart){STUB_RESTART_BY_HANDLER, call};
	case ERESTARTNOINTR:
		return (struct wait_restart){STUB_RESTART_ALWAYS, call};
	case ERESTARTNOHAND:
	case EINTR:
		return (struct wait_restart){STUB_RESTART_UNLESS_HANDLED, call};
	case ERESTART_RESTARTBLOCK:
		return (struct wait_restart){STUB_RESTART_UNLESS_HANDLED | STUB_RESTART_BLOCK,
					     SYS_restart_syscall};
	default:
		return (struct wait_restart){STUB_RESTART_NONE, result};
	}
}

bool wait_call_must_repeat(long number, uint64_t result)
{
	return find_wait_call(number) && -(int64_t)result == EINTR;
}

static void judge_stack(struct candidate *candidate, struct target *target,
			const struct thread_syscall *call, const struct why *why)
{
	struct thread_registers registers = {.known = 1u << THREAD_RIP | 1u << THREAD_RSP};
	enum stack_safety safety;

	registers.value[THREAD_RIP] = call->instruction;
	registers.value[THREAD_RSP] = call->stack_pointer;
	safety = safe_stack_check(&target->modules, target->pid, &registers, why);
	/* The walk goes further with all registers of a stopped thread. */
	candidate->is_last = safety == STACK_UNKNOWN;
	candidate->is_locked = safety == STACK_WAITS_FOR_LOCK;
	if (safety == STACK_SAFE || candidate->is_locked ||
	    (candidate->is_last && wait_call_rank(call->number, call->arguments) <= WAIT_REMAINING))
		candidate->why_not[0] = '\0';
}

/* It may have a time limit (SO_RCVTIMEO), for which the call would wait again. */
static bool is_socket(const struct target *target, int descriptor)
{
	char name[16] = "";

	return readlink(PROC_PATH("%d/fd/%d", target->pid, descriptor), name, sizeof(name) - 1) >
		       0 &&
	       !strncmp(name, "socket:", 7);
}

static enum wait_rank rank_call(const struct target *target, const struct thread_syscall *call)
{
	enum wait_rank rank = wait_call_rank(call->number, call->arguments);

	return rank == WAIT_EXACT && wait_call_reads(call->number) &&
			       is_socket(target, (int)call->arguments[0])
		       ? WAIT_REPEATED
		       : rank;
}

static void judge_candidate(struct candidate *candidate, struct target *target)
{
	const struct why why = {candidate->why_not, sizeof(candidate->why_not)};
	struct thread_files files = {.pid = target->pid, .tid = candidate->tid};
	struct proc_status status;
	struct thread_syscall call;
	struct thread_stat stat;

	candidate->rank = WAIT_UNFIT;
	thread_files_syscall(&files, &call);
	if (thread_files_stat(&files, &stat) || !proc_status_read(&status, candidate->tid))
		refuse(&why, 0, "has ended");
	else if (!target_allows_thread(target, &status, &why))
		candidate->rank = WAIT_UNFIT;
	else if (call.kind != SYSCALL_BLOCKED || stat.state != 'S')
		refuse(&why, 0, "%s",
		       stat.state == 'D'   ? "waits for the kernel and cannot be stopped"
		       : stat.state == 'R' ? "is running, not waiting in a system call"
					   : "is not blocked in a system call");
	else
		candidate->rank = rank_call(target, &call);
	if (candidate->why_not[0])
		return;
	if (candidate->rank == WAIT_UNFIT)
		refuse(&why, 0, "is blocked in system call %ld, which cannot be repeated exactly",
		       call.number);
	else
		judge_stack(candidate, target, &call, &why);
}

/* Stopping a thread with an unusual schedule may delay others. */
static int cost_of(const struct candidate *candidate)
{
	int rank = (int)candidate->rank * 2;

	if (candidate->is_locked)
		return WAIT_UNFIT * 2;
	if (!candidate->is_unusual)
		return rank;
	return rank < WAIT_REMAINING * 2 ? WAIT_REMAINING * 2 + 1 : rank + 1;
}

static int compare_candidates(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;
	const int differences[] = {
		!!x->why_not[0] - !!y->why_not[0],
		x->is_refused - y->is_refused,
		x->is_last - y->is_last,
		cost_of(x) - cost_of(y),
	};

	for (size_t i = 0; i < sizeof(differences) / sizeof(*differences); i++)
		if (differences[i])
			return differences[i];
	return x->tid - y->tid;
}

/* If the list is full, a thread replaces the worst one. */
static void add_candidate(struct candidates *candidates, const struct candidate *next)
{
	struct candidate *worst = candidates->list;

	if (candidates->count < CANDIDATES_MAX) {
		candidates->list[candidates->count++] = *next;
		return;
	}
	for (size_t i = 1; i < CANDIDATES_MAX; i++)
		if (compare_candidates(&candidates->list[i], worst) > 0)
			worst = &candidates->list[i];
	if (compare_candidates(next, worst) < 0)
		*worst = *next;
}

static bool was_refused(const struct candidates *candidates, pid_t tid)
{
	size_t count = smaller(candidates->refused_count, CANDIDATES_REFUSED_MAX);

	for (size_t i = 0; i < count; i++)
		if (candidates->refused[i] == tid)
			return true;
	return false;
}

void candidates_refuse(struct candidates *candidates, struct candidate *candidate, const char *why)
{
	snprintf(candidate->why_not, sizeof(candidate->why_not), "%.*s", CANDIDATE_WHY_BYTES - 1,
		 why);
	candidates->refused[candidates->refused_count++ % CANDIDATES_REFUSED_MAX] = candidate->tid;
}

static void sort_candidates(struct candidates *candidates)
{
	for (size_t i = 0; i < candidates->count; i++)
		candidates->list[i].is_unusual =
			!schedule_equals(&candidates->list[i].schedule, &candidates->usual);
	qsort(candidates->list, candidates->count, sizeof(*candidates->list), compare_candidates);
	while (candidates->fit_count < candidates->count &&
	       !candidates->list[candidates->fit_count].why_not[0])
		candidates->fit_count++;
	/* All were tried, so the next round starts again. */
	if (candidates->list[0].is_refused)
		candidates->refused_count = 0;
}

void candidates_find(struct candidates *candidates, struct target *target)
{
	struct candidate next;
	DIR *folder;
	pid_t tid;

	candidates->count = candidates->fit_count = candidates->thread_count = 0;
	schedule_read(&candidates->usual, target->pid);
	schedule_make_usual(&candidates->usual);
	folder = opendir(PROC_PATH("%d/task", target->pid));
	while ((tid = proc_next_id(folder))) {
		candidates->thread_count++;
		next = (struct candidate){.tid = tid, .is_refused = was_refused(candidates, tid)};
		schedule_read(&next.schedule, tid);
		schedule_add_cpus(&candidates->usual, &next.schedule);
		judge_candidate(&next, target);
		add_candidate(candidates, &next);
	}
	if (folder)
		closedir(folder);
	sort_candidates(candidates);
}
