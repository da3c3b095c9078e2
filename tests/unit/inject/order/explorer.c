/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Depth-first search over the choices of an execution: the thread that runs next, and the value
 * that a load returns. Each execution repeats the first choices of the one before, and takes the
 * next option at the last choice that has one.
 */
#include "explorer.h"

#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include "explorer_memory.h"

#define CHOICES_MAX  4096
#define STACK_BYTES  (256u << 10)
#define PAGE_BYTES   4096
#define MEMORY_BYTES (UINT64_C(2) << 30) /* address space */

void *__real_mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t offset);

/* The program's variables, which each execution finds as they were at first. */
extern char __data_start[], _end[];

struct coroutine {
	ucontext_t context; /* of its start */
	jmp_buf place;
	bool is_fresh, is_done;
	char *stack;
};

static struct explorer {
	const struct explorer_program *program;
	jmp_buf scheduler;
	struct coroutine threads[EXPLORER_THREADS_MAX];
	unsigned running;
	uint16_t chosen[CHOICES_MAX], options[CHOICES_MAX];
	unsigned choice_count, replayed;
	const char *failure;
	char *memory;
	size_t memory_used;
	char *variables, *first_page, *last_page;
	bool in_hook;
} * explorer;

unsigned explorer_thread(void)
{
	return explorer ? explorer->running : 0;
}

unsigned explorer_choose(unsigned count)
{
	unsigned at = explorer->choice_count;

	if (count < 2)
		return 0;
	if (at == CHOICES_MAX)
		explorer_fail("an execution is too long");
	if (at >= explorer->replayed) {
		explorer->chosen[at] = 0;
		explorer->options[at] = (uint16_t)count;
	}
	explorer->choice_count++;
	return explorer->chosen[at];
}

void explorer_fail(const char *why)
{
	if (!explorer->failure)
		explorer->failure = why;
	if (!explorer->running) /* set_up() or at_end() */
		return;
	_longjmp(explorer->scheduler, 1);
}

/* Unlike swapcontext(), without system calls. */
static void switch_to_scheduler(struct coroutine *thread)
{
	if (!_setjmp(thread->place))
		_longjmp(explorer->scheduler, 1);
}

void explorer_switch(void)
{
	if (explorer && explorer->running)
		switch_to_scheduler(&explorer->threads[explorer->running]);
}

void explorer_before_write(void)
{
	void (*check)(void) = explorer ? explorer->program->at_each_write : NULL;
	unsigned running;

	if (!check || !explorer->running || explorer->in_hook)
		return;
	explorer->in_hook = true;
	running = explorer->running;
	explorer->running = 0;
	check();
	explorer->running = running;
	explorer->in_hook = false;
	if (explorer->failure)
		explorer_fail(explorer->failure);
}

bool explorer_is_checking(void)
{
	return explorer && explorer->in_hook;
}

void *explorer_memory(size_t bytes)
{
	char *memory = explorer->memory + explorer->memory_used;

	explorer->memory_used += (bytes + 4095) & ~(size_t)4095;
	if (explorer->memory_used > MEMORY_BYTES)
		abort();
	return memory;
}

/* Runs the program's thread once for each execution. */
static void thread_main(void)
{
	unsigned self = explorer->running;

	for (;;) {
		explorer->program->threads[self - 1]();
		explorer->threads[self].is_done = true;
		explorer_switch();
	}
}

/* A thread that a failure has left in the middle begins again. */
static void prepare_thread(struct coroutine *thread)
{
	if (!thread->stack)
		thread->stack = malloc(STACK_BYTES);
	thread->is_fresh |= !thread->is_done;
	thread->is_done = false;
	if (!thread->is_fresh)
		return;
	getcontext(&thread->context);
	thread->context.uc_stack.ss_sp = thread->stack;
	thread->context.uc_stack.ss_size = STACK_BYTES;
	thread->context.uc_link = NULL;
	makecontext(&thread->context, thread_main, 0);
}

static void prepare_threads(void)
{
	for (unsigned t = 1; t < EXPLORER_THREADS_MAX; t++)
		if (explorer->program->threads[t - 1])
			prepare_thread(&explorer->threads[t]);
}

/* Returns when the thread switches back, has ended, or has failed. */
static void run_until_switch(struct coroutine *thread)
{
	if (_setjmp(explorer->scheduler))
		return;
	if (!thread->is_fresh)
		_longjmp(thread->place, 1);
	thread->is_fresh = false;
	setcontext(&thread->context);
}

/* The threads that may run next. A bounded program keeps the running one once it is used up. */
static unsigned list_ready(unsigned ready[EXPLORER_THREADS_MAX], unsigned last, unsigned switches)
{
	unsigned count = 0, bound = explorer->program->switches_max;

	if (bound && switches >= bound && last && !explorer->threads[last].is_done) {
		ready[0] = last;
		return 1;
	}
	for (unsigned t = 1; t < EXPLORER_THREADS_MAX; t++)
		if (explorer->program->threads[t - 1] && !explorer->threads[t].is_done)
			ready[count++] = t;
	return count;
}

static void run_threads(void)
{
	unsigned ready[EXPLORER_THREADS_MAX], count, last = 0, switches = 0;

	while (!explorer->failure && (count = list_ready(ready, last, switches))) {
		unsigned next = ready[explorer_choose(count)];

		switches += last && next != last && !explorer->threads[last].is_done;
		explorer->running = last = next;
		run_until_switch(&explorer->threads[next]);
		explorer->running = 0;
	}
}

/* Not madvise(), which the program's code may not call (wrap.c). */
static void forget_pages(char *pages, size_t bytes)
{
	if (bytes)
		syscall(SYS_madvise, pages, bytes, MADV_DONTNEED);
}

/*
 * The variables' whole pages are a private mapping of a copy, so that only changed ones cost time.
 * The parts of pages at both ends are copied.
 */
static void restore_variables(void)
{
	size_t before = (size_t)(explorer->first_page - __data_start);
	size_t behind = (size_t)(_end - explorer->last_page);

	forget_pages(explorer->first_page, (size_t)(explorer->last_page - explorer->first_page));
	memcpy(__data_start, explorer->variables, before);
	memcpy(explorer->last_page, explorer->variables + (explorer->last_page - __data_start),
	       behind);
}

static void keep_variables(void)
{
	size_t bytes = (size_t)(_end - __data_start), page_bytes;
	int fd = memfd_create("variables", MFD_CLOEXEC);

	explorer->first_page = __data_start + (-(uintptr_t)__data_start & (PAGE_BYTES - 1));
	explorer->last_page = _end - ((uintptr_t)_end & (PAGE_BYTES - 1));
	page_bytes = (size_t)(explorer->last_page - explorer->first_page);
	explorer->variables = malloc(bytes);
	memcpy(explorer->variables, __data_start, bytes);
	if (fd < 0 || pwrite(fd, explorer->first_page, page_bytes, 0) != (ssize_t)page_bytes ||
	    __real_mmap(explorer->first_page, page_bytes, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_FIXED, fd, 0) == MAP_FAILED)
		abort();
	close(fd);
}

static void run_once(void)
{
	restore_variables();
	forget_pages(explorer->memory, explorer->memory_used);
	explorer->memory_used = 0;
	explorer->choice_count = 0;
	explorer->in_hook = false;
	memory_reset();
	explorer->program->set_up();
	memory_begin_threads();
	prepare_threads();
	run_threads();
	memory_reset();
	if (!explorer->failure && explorer->program->at_end)
		explorer->program->at_end();
}

/* False if all executions were explored. */
static bool next_execution(void)
{
	unsigned last = explorer->choice_count;

	while (last && explorer->chosen[last - 1] + 1u >= explorer->options[last - 1])
		last--;
	if (!last)
		return false;
	explorer->chosen[last - 1]++;
	explorer->replayed = last;
	return true;
}

void *explorer_allocate(size_t bytes)
{
	long pages = syscall(SYS_mmap, NULL, bytes, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0L);

	if (pages == -1)
		abort();
	return (void *)pages;
}

static void create_explorer(void)
{
	explorer = explorer_allocate(sizeof(*explorer));
	explorer->memory = explorer_allocate(MEMORY_BYTES);
	memory_reset(); /* creates its own state */
	keep_variables();
}

void explorer_weaken(enum explorer_weaken what, const void *place)
{
	if (!explorer)
		create_explorer();
	memory_weaken(what, place);
}

uint64_t explorer_run(const struct explorer_program *program, const char **why)
{
	uint64_t count = 0;

	if (!explorer)
		create_explorer();
	explorer->program = program;
	for (unsigned t = 0; t < EXPLORER_THREADS_MAX; t++)
		explorer->threads[t].is_done = false;
	explorer->failure = NULL;
	explorer->replayed = 0;
	do {
		run_once();
		count++;
	} while (!explorer->failure && next_execution());
	*why = explorer->failure;
	return explorer->failure ? 0 : count;
}
