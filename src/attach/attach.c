/* SPDX-License-Identifier: Apache-2.0 */
#include "attach/attach.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/uio.h>
#include <time.h>

#include "attach/borrow.h"
#include "log/base/monotonic.h"
#include "sampler/process_read.h"
#include "sampler/remote_unwind.h"

#define NS_PER_MS	  UINT64_C(1000000)
#define BORROW_TIMEOUT_MS 5000
#define BORROW_STEP_MS	  100
#define TRIES_OF_A_ROUND  4 /* each stops a thread */
#define CANCEL_TIMEOUT_MS 3000
#define ENTRY_TIMEOUT_MS  30000
#define REASONS_SHOWN	  6

/* One attempt of this program. */
struct attempt {
	struct target *target;
	struct address_map map;
	struct code_site site;
	struct block_contents contents;
	struct candidates candidates;
	bool is_interrupted; /* no thread was chosen because of another one: *why */
	uint64_t token;
	struct borrowed borrowed; /* runs the stub */
	struct why why;
};

static int refuse_end(const struct attempt *attempt)
{
	return refuse(&attempt->why, -ESRCH, "it has ended, or has executed another program");
}

static uint64_t now_ms(void)
{
	return monotonic_ns() / NS_PER_MS;
}

static void nap_ms(unsigned ms)
{
	const struct timespec time = {0, (long)(ms * NS_PER_MS)};

	nanosleep(&time, NULL);
}

static void put(struct block_contents *contents, size_t offset, const void *from, size_t bytes)
{
	memcpy(contents->bytes + offset, from, bytes);
}

/* Appends a string with its end. False if it does not fit. */
static bool attach_append(struct block_contents *contents, const char *a, const char *b,
			  const char *c)
{
	size_t room = sizeof(contents->bytes) - contents->byte_count;
	int length =
		snprintf((char *)contents->bytes + contents->byte_count, room, "%s%s%s", a, b, c);

	if (length < 0 || (size_t)length >= room)
		return false;
	contents->byte_count += (size_t)length + 1;
	return true;
}

/* Keeps a byte free, for the end of the settings. */
static bool append_setting(struct block_contents *contents, const struct attach_setting *setting)
{
	size_t before = contents->byte_count;
	bool fits =
		!setting->value || (attach_append(contents, setting->name, "=", setting->value) &&
				    contents->byte_count < sizeof(contents->bytes));

	if (!fits && setting->is_optional)
		contents->byte_count = before;
	return fits || setting->is_optional;
}

/* Facts that all threads of the process share. */
static int fill_contents(struct attempt *attempt, const struct attach_request *request)
{
	struct block_contents *contents = &attempt->contents;
	uint64_t settings;
	bool fits;

	contents->byte_count = STUB_LIBRARY;
	if (getrandom(&attempt->token, sizeof(attempt->token), 0) != sizeof(attempt->token))
		return refuse(&attempt->why, -errno, "getrandom: %s", strerror(errno));
	put(contents, STUB_TOKEN, &attempt->token, sizeof(attempt->token));
	put(contents, STUB_ENTRY, request->entry, strlen(request->entry) + 1);
	fits = attach_append(contents, request->library, "", "");
	settings = contents->byte_count;
	put(contents, STUB_SETTINGS, &settings, sizeof(settings));
	for (size_t i = 0; i < request->setting_count; i++)
		fits &= append_setting(contents, &request->settings[i]);
	fits &= attach_append(contents, "", "", "");
	return fits ? 0
		    : refuse(&attempt->why, -E2BIG, "the settings are longer than %d bytes",
			     STUB_DATA_BYTES_MAX);
}

static void put_functions(struct attempt *attempt)
{
	static const size_t offsets[SITE_FUNCTIONS] = {
		[SITE_CREATE] = STUB_CREATE, [SITE_DETACH] = STUB_DETACH,
		[SITE_ERRNO] = STUB_ERRNO,   [SITE_DLOPEN] = STUB_DLOPEN,
		[SITE_DLSYM] = STUB_DLSYM,   [SITE_DLERROR] = STUB_DLERROR,
		[SITE_ATTR] = STUB_ATTR,     [SITE_SIZE] = STUB_SIZE,
	};

	for (int i = 0; i < SITE_FUNCTIONS; i++)
		put(&attempt->contents, offsets[i], &attempt->site.functions[i],
		    sizeof(attempt->site.functions[i]));
	put(&attempt->contents, STUB_STACK, &attempt->site.stack_bytes,
	    sizeof(attempt->site.stack_bytes));
}
_Static_assert(sizeof(pthread_attr_t) <= STUB_ATTR_BYTES, "stub.h");

static void put_schedule(struct attempt *attempt)
{
	const struct schedule *usual = &attempt->candidates.usual;
	const int32_t policy = usual->policy, nice = usual->nice;

	put(&attempt->contents, STUB_POLICY, &policy, sizeof(policy));
	put(&attempt->contents, STUB_NICE, &nice, sizeof(nice));
	put(&attempt->contents, STUB_CPUS, usual->cpus, sizeof(usual->cpus));
}
_Static_assert(sizeof(((struct schedule *)0)->cpus) == STUB_CPU_BYTES, "stub.h");

struct round {
	struct attempt *attempt;
	int error;
};

/* The start routine of the tracer. */
static void *try_threads(void *context)
{
	struct round *round = context;
	struct attempt *attempt = round->attempt;
	struct candidates *candidates = &attempt->candidates;
	struct tracer tracer = {.pid = attempt->target->pid, .why = attempt->why};

	for (size_t i = 0; i < candidates->fit_count && i < TRIES_OF_A_ROUND; i++) {
		struct candidate *candidate = &candidates->list[i];

		round->error =
			borrow_thread(attempt->target, &tracer, candidate->tid, &attempt->site,
				      &attempt->map, &attempt->contents, &attempt->borrowed);
		if (round->error != -EAGAIN)
			break;
		candidates_refuse(candidates, candidate, attempt->why.text);
		if (tracer.is_stuck)
			break;
	}
	tracer_end(&tracer);
	return NULL;
}

/* If Ctrl-Z stopped this program now, the thread of the process would stay stopped, too. */
static void block_stops(sigset_t *mask)
{
	static const int signals[] = {SIGTSTP, SIGTTIN, SIGTTOU};
	sigset_t stops;

	sigemptyset(&stops);
	for (size_t i = 0; i < sizeof(signals) / sizeof(*signals); i++)
		sigaddset(&stops, signals[i]);
	pthread_sigmask(SIG_BLOCK, &stops, mask);
}

/* Tries the best threads of the moment. -EAGAIN: none may be borrowed now. */
static int borrow_any(struct attempt *attempt)
{
	struct round round = {attempt, -EAGAIN};
	pthread_t tracer;
	sigset_t mask;
	int error = process_modules_refresh(&attempt->target->modules, attempt->target->pid);

	if (error)
		return refuse(&attempt->why, error,
			      error == -ENOMEM ? "out of memory" : "it has ended");
	error = code_site_find(&attempt->site, attempt->target, &attempt->map, &attempt->why);
	if (error)
		return error;
	put_functions(attempt);
	attempt->is_interrupted = interrupted_threads_find(attempt->target, false, &attempt->why);
	if (attempt->is_interrupted)
		return -EAGAIN;
	candidates_find(&attempt->candidates, attempt->target);
	put_schedule(attempt);
	block_stops(&mask);
	error = pthread_create(&tracer, NULL, try_threads, &round);
	if (!error)
		pthread_join(tracer, NULL);
	pthread_sigmask(SIG_SETMASK, &mask, NULL);
	return error ? refuse(&attempt->why, -error, "cannot create a thread here: %s",
			      strerror(error))
		     : round.error;
}

/* Why no thread could be borrowed in the last round. */
static int refuse_threads(const struct attempt *attempt)
{
	const struct candidates *candidates = &attempt->candidates;
	char *at = attempt->why.text, *end = at + attempt->why.bytes;
	size_t shown = 0;

	at += snprintf(at, attempt->why.bytes, "for %d s, no thread could be used (of %zu)",
		       BORROW_TIMEOUT_MS / 1000, candidates->thread_count);
	for (size_t i = 0; i < candidates->count && shown < REASONS_SHOWN && at < end; i++)
		if (candidates->list[i].why_not[0]) {
			at += snprintf(at, (size_t)(end - at), "%s thread %d %s", shown ? "," : ":",
				       candidates->list[i].tid, candidates->list[i].why_not);
			shown++;
		}
	if (candidates->thread_count > shown && at < end)
		at += snprintf(at, (size_t)(end - at), ", and %zu more",
			       candidates->thread_count - shown);
	if (at < end)
		snprintf(at, (size_t)(end - at), "; try again, or start it with xtrace record");
	return -EBUSY;
}

static int borrow(struct attempt *attempt)
{
	uint64_t deadline_ms = now_ms() + BORROW_TIMEOUT_MS;
	int error;

	while ((error = borrow_any(attempt)) == -EAGAIN) {
		if (!target_is_same(attempt->target))
			return refuse_end(attempt);
		if (attach_is_interrupted())
			return refuse(&attempt->why, -EINTR, "is unchanged");
		if (now_ms() >= deadline_ms)
			return attempt->is_interrupted ? -EBUSY : refuse_threads(attempt);
		nap_ms(BORROW_STEP_MS);
	}
	return error;
}

/* 0 as long as the block of this attempt is not there. */
static uint32_t read_state(const struct attempt *attempt)
{
	uint64_t block = attempt->site.block, token = 0;
	uint32_t state = 0;
	const struct process_memory_part parts[] = {
		{&state, block + STUB_STATE, sizeof(state)},
		{&token, block + STUB_TOKEN, sizeof(token)},
	};

	if (!process_memory_read_parts(attempt->target->pid, parts, 2) || token != attempt->token)
		return 0;
	/* The stub stored its other words before the state; they can be read now. */
	atomic_thread_fence(memory_order_acquire);
	return state;
}

static int refuse_with_message(const struct attempt *attempt, const char *before)
{
	char message[STUB_MESSAGE_BYTES] = "";

	process_memory_read_some(attempt->target->pid, message, attempt->site.block + STUB_MESSAGE,
				 sizeof(message) - 1);
	for (char *c = message; *c; c++)
		if ((unsigned char)*c < ' ' || *c == 0x7f)
			*c = ' ';
	return refuse(&attempt->why, -ENOEXEC, "%s%s", before, message);
}

static int refuse_thread_creation(const struct attempt *attempt)
{
	int error = 0;

	process_memory_read(attempt->target->pid, &error, attempt->site.block + STUB_ERROR,
			    sizeof(error));
	return refuse(&attempt->why, -error,
		      "it cannot create a thread: %s; is a limit of processes or "
		      "memory reached?",
		      strerror(error));
}

static int finish(const struct attempt *attempt, uint32_t state)
{
	switch (state) {
	case STUB_IS_DONE:
		return 0;
	case STUB_HAS_NO_THREAD:
		return refuse_thread_creation(attempt);
	case STUB_CANNOT_LOAD:
		return refuse_with_message(attempt, "it cannot load xtrace's library: ");
	default:
		return refuse_with_message(attempt, "");
	}
}

/*
 * Whether the borrowed thread is back in its call, or has ended. A signal handler of the program
 * that runs before the stub has another stack pointer.
 */
static bool has_left_stub(const struct attempt *attempt)
{
	uint64_t code = attempt->site.code, end = code + (uint64_t)(xt_stub_end - xt_stub_begin);
	struct thread_files files = {.pid = attempt->target->pid, .tid = attempt->borrowed.tid};
	struct thread_syscall call;
	struct thread_stat stat;
	bool has_ended = thread_files_is_end(thread_files_stat(&files, &stat));

	thread_files_syscall(&files, &call);
	return has_ended || (call.kind == SYSCALL_BLOCKED &&
			     call.stack_pointer == attempt->borrowed.stack_pointer &&
			     (call.instruction < code || call.instruction >= end));
}

static int refuse_late(const struct attempt *attempt, bool may_start)
{
	if (attach_is_interrupted())
		return may_start ? refuse(&attempt->why, -EINPROGRESS,
					  "interrupted, but xtrace's library may still start: see "
					  "xtrace ps")
				 : refuse(&attempt->why, -EINTR, "continues without xtrace");
	return refuse(&attempt->why, may_start ? -EINPROGRESS : -ETIMEDOUT,
		      "xtrace's library did not start within %d s%s", ENTRY_TIMEOUT_MS / 1000,
		      may_start ? ", but may still do so: see xtrace ps"
				: ", so this was given up");
}

/*
 * The worker checks the word after it has set STUB_IS_ENTERING. So if the state is an earlier one
 * after the word was set, it will not call the entry point.
 */
static int cancel(const struct attempt *attempt)
{
	uint64_t start_ms = now_ms();
	uint32_t word = 1, state;
	const struct iovec from = {&word, sizeof(word)};
	const struct iovec to = {(void *)(uintptr_t)(attempt->site.block + STUB_CANCEL),
				 sizeof(word)};
	bool is_set = process_vm_writev(attempt->target->pid, &from, 1, &to, 1, 0) == sizeof(word);

	/* Pairs with the exchange in the stub: one of both sees what the other has stored. */
	atomic_thread_fence(memory_order_seq_cst);
	while ((state = read_state(attempt)) == STUB_IS_ENTERING &&
	       now_ms() - start_ms < CANCEL_TIMEOUT_MS)
		nap_ms(1);
	if (state > STUB_IS_ENTERING && state != STUB_IS_CANCELLED)
		return finish(attempt, state);
	return refuse_late(attempt, !is_set || state == STUB_IS_ENTERING);
}

static int wait_for_block(const struct attempt *attempt)
{
	uint64_t start_ms = now_ms();

	while (!read_state(attempt)) {
		if (!target_is_same(attempt->target))
			return refuse_end(attempt);
		if (has_left_stub(attempt) && !read_state(attempt))
			return refuse(&attempt->why, -ENOMEM,
				      "it cannot map memory for xtrace; is a limit of memory "
				      "reached?");
		if (now_ms() - start_ms >
		    (attach_is_interrupted() ? CANCEL_TIMEOUT_MS : ENTRY_TIMEOUT_MS))
			return refuse_late(attempt, true);
		nap_ms(1);
	}
	return 0;
}

static int wait_for_entry(const struct attempt *attempt)
{
	uint64_t start_ms = now_ms();
	int error = wait_for_block(attempt);
	uint32_t state = 0;

	while (!error && (state = read_state(attempt)) <= STUB_IS_ENTERING) {
		if (!target_is_same(attempt->target))
			error = refuse_end(attempt);
		else if (attach_is_interrupted() || now_ms() - start_ms > ENTRY_TIMEOUT_MS)
			return cancel(attempt);
		nap_ms(1);
	}
	return error ? error : finish(attempt, state);
}

bool attach_is_supported(void)
{
	return true;
}

int attach_process(struct target *target, const struct attach_request *request,
		   const struct why *why)
{
	static struct attempt attempt;
	int error = remote_unwind_open(request->library_dir, why->text, why->bytes);

	if (error)
		return error;
	attempt = (struct attempt){.target = target, .why = *why};
	error = fill_contents(&attempt, request);
	if (!error)
		error = borrow(&attempt);
	if (!error)
		error = wait_for_entry(&attempt);
	/* Its end may look like anything. */
	if (error && !target_is_same(target))
		error = refuse_end(&attempt);
	address_map_free(&attempt.map);
	remote_unwind_close();
	return error;
}
