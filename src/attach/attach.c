/* SPDX-License-Identifier: Apache-2.0 */
#include "attach/attach.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "attach/borrow.h"
#include "attach/candidates.h"
#include "attach/code_site.h"
#include "attach/proc_status.h"
#include "attach/stub.h"
#include "sampler/process_memory.h"
#include "sampler/remote_unwind.h"

#define NS_PER_MS	  UINT64_C(1000000)
#define BORROW_TIMEOUT_MS 5000
#define BORROW_STEP_MS	  100
#define TRIES_OF_A_ROUND  4 /* each stops a thread */
#define BLOCK_TIMEOUT_MS  2000
#define ENTRY_TIMEOUT_MS  30000
#define REASONS_SHOWN	  6

/* One attempt of this program. */
struct attempt {
	struct target *target;
	struct address_map map;
	struct code_site site;
	struct block_contents contents;
	struct candidates candidates;
	char *why;
	size_t why_bytes;
};

__attribute__((format(printf, 3, 4))) static int refuse(const struct attempt *attempt, int error,
							const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(attempt->why, attempt->why_bytes, format, args);
	va_end(args);
	return error;
}

static uint64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / NS_PER_MS;
}

static void nap_ms(unsigned ms)
{
	const struct timespec time = {0, (long)(ms * NS_PER_MS)};

	nanosleep(&time, NULL);
}

static bool has_ended(const struct attempt *attempt)
{
	struct proc_status status;
	const char *state;

	if (!proc_status_read(&status, attempt->target->pid))
		return true;
	state = proc_status_text(&status, "State");
	return state && (*state == 'Z' || *state == 'X');
}

static void put(struct block_contents *contents, size_t offset, const void *from, size_t bytes)
{
	memcpy(contents->bytes + offset, from, bytes);
}

/* Appends a string with its end. False if it does not fit. */
static bool append(struct block_contents *contents, const char *a, const char *b, const char *c)
{
	size_t room = sizeof(contents->bytes) - contents->byte_count;
	int length =
		snprintf((char *)contents->bytes + contents->byte_count, room, "%s%s%s", a, b, c);

	if (length < 0 || (size_t)length >= room)
		return false;
	contents->byte_count += (size_t)length + 1;
	return true;
}

/* Facts that all threads of the process share. */
static int fill_contents(struct attempt *attempt, const struct attach_request *request)
{
	struct block_contents *contents = &attempt->contents;
	uint64_t settings;
	bool fits;

	contents->byte_count = STUB_LIBRARY;
	put(contents, STUB_ENTRY, request->entry, strlen(request->entry) + 1);
	fits = append(contents, request->library, "", "");
	settings = contents->byte_count;
	put(contents, STUB_SETTINGS, &settings, sizeof(settings));
	for (size_t i = 0; i < request->setting_count; i++)
		if (request->settings[i].value)
			fits &= append(contents, request->settings[i].name, "=",
				       request->settings[i].value);
	fits &= append(contents, "", "", "");
	return fits ? 0
		    : refuse(attempt, -E2BIG, "the settings are longer than %d bytes",
			     STUB_DATA_BYTES_MAX);
}
_Static_assert(sizeof(((struct block_contents *)0)->bytes) == STUB_DATA_BYTES_MAX, "stub.h");

static void put_functions(struct attempt *attempt)
{
	static const size_t offsets[SITE_FUNCTIONS] = {
		[SITE_CREATE] = STUB_CREATE, [SITE_DETACH] = STUB_DETACH,
		[SITE_ERRNO] = STUB_ERRNO,   [SITE_DLOPEN] = STUB_DLOPEN,
		[SITE_DLSYM] = STUB_DLSYM,   [SITE_DLERROR] = STUB_DLERROR,
	};

	for (int i = 0; i < SITE_FUNCTIONS; i++)
		put(&attempt->contents, offsets[i], &attempt->site.functions[i],
		    sizeof(attempt->site.functions[i]));
}

/* Tries the best threads of the moment. -EAGAIN: none may be borrowed now. */
static int borrow_any(struct attempt *attempt)
{
	struct candidates *candidates = &attempt->candidates;
	int error = process_modules_refresh(&attempt->target->modules, attempt->target->pid);

	if (error)
		return refuse(attempt, error, error == -ENOMEM ? "out of memory" : "it has ended");
	error = code_site_find(&attempt->site, attempt->target, &attempt->map, attempt->why,
			       attempt->why_bytes);
	if (error)
		return error;
	put_functions(attempt);
	candidates_find(candidates, attempt->target);
	error = -EAGAIN;
	for (size_t i = 0; i < candidates->fit_count && i < TRIES_OF_A_ROUND && error == -EAGAIN;
	     i++) {
		struct candidate *candidate = &candidates->list[i];

		error = borrow_thread(attempt->target, candidate->tid, &attempt->site,
				      &attempt->map, &attempt->contents, attempt->why,
				      attempt->why_bytes);
		if (error == -EAGAIN)
			snprintf(candidate->why_not, sizeof(candidate->why_not), "%.*s",
				 CANDIDATE_WHY_BYTES - 1, attempt->why);
	}
	return error;
}

/* Why no thread could be borrowed in the last round. */
static int refuse_threads(const struct attempt *attempt)
{
	const struct candidates *candidates = &attempt->candidates;
	char *at = attempt->why, *end = attempt->why + attempt->why_bytes;
	size_t shown = 0;

	at += snprintf(
		at, attempt->why_bytes,
		"none of its %zu threads could be borrowed for %d s; try again when one waits",
		candidates->thread_count, BORROW_TIMEOUT_MS / 1000);
	for (size_t i = 0; i < candidates->count && shown < REASONS_SHOWN && at < end; i++)
		if (candidates->list[i].why_not[0]) {
			at += snprintf(at, (size_t)(end - at), "%s thread %d %s", shown ? "," : ":",
				       candidates->list[i].tid, candidates->list[i].why_not);
			shown++;
		}
	if (candidates->thread_count > shown && at < end)
		snprintf(at, (size_t)(end - at), ", and %zu more",
			 candidates->thread_count - shown);
	return -EBUSY;
}

static int borrow(struct attempt *attempt)
{
	uint64_t deadline_ms = now_ms() + BORROW_TIMEOUT_MS;
	int error;

	while ((error = borrow_any(attempt)) == -EAGAIN) {
		if (has_ended(attempt))
			return refuse(attempt, -ESRCH, "it has ended");
		if (now_ms() >= deadline_ms)
			return refuse_threads(attempt);
		nap_ms(BORROW_STEP_MS);
	}
	return error;
}

static uint32_t read_state(const struct attempt *attempt)
{
	uint32_t state = 0;

	process_memory_read(attempt->target->pid, &state, attempt->site.block + STUB_STATE,
			    sizeof(state));
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
	return refuse(attempt, -ENOEXEC, "%s%s", before, message);
}

static int refuse_thread_creation(const struct attempt *attempt)
{
	int error = 0;

	process_memory_read(attempt->target->pid, &error, attempt->site.block + STUB_ERROR,
			    sizeof(error));
	return refuse(attempt, -error,
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

static int wait_for_entry(const struct attempt *attempt)
{
	uint64_t start_ms = now_ms(), waited_ms = 0;
	uint32_t state;

	while ((state = read_state(attempt)) <= STUB_IS_STARTED) {
		if (has_ended(attempt))
			return refuse(attempt, -ESRCH, "it ended meanwhile");
		waited_ms = now_ms() - start_ms;
		if (!state && waited_ms > BLOCK_TIMEOUT_MS)
			return refuse(
				attempt, -ENOMEM,
				"it cannot map memory for xtrace, or does not run; is a limit "
				"of memory reached, or is it frozen?");
		if (waited_ms > ENTRY_TIMEOUT_MS)
			return refuse(
				attempt, -ETIMEDOUT,
				"xtrace's library did not start within %d s, but may still do "
				"so: see xtrace ps",
				ENTRY_TIMEOUT_MS / 1000);
		nap_ms(1);
	}
	return finish(attempt, state);
}

int attach_process(struct target *target, const struct attach_request *request, char *why,
		   size_t why_bytes)
{
	static struct attempt attempt;
	int error = remote_unwind_open(request->library_dir, why, why_bytes);

	if (error)
		return error;
	attempt = (struct attempt){.target = target, .why = why, .why_bytes = why_bytes};
	error = fill_contents(&attempt, request);
	if (!error)
		error = borrow(&attempt);
	if (!error)
		error = wait_for_entry(&attempt);
	/* Its end may look like anything. */
	if (error && has_ended(&attempt))
		error = refuse(&attempt, -ESRCH, "it has ended");
	address_map_free(&attempt.map);
	remote_unwind_close();
	return error;
}
