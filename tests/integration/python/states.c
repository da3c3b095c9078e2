/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads whose thread-local variable names a Python state that is no longer theirs, or that have a
 * state without that variable. An embedding program can do this with the interpreter's API, which
 * is looked up by name. Called by states.py.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>

#define STATE_BYTES_MAX                                                                            \
	1024 /* of the interpreter's PyThreadState; larger ones are not overwritten */

typedef int launch(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
		   unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
		   void *stream, void **parameters, void **extra);

/* The native work of such a thread. */
struct native {
	launch *launch;
	void *function;
	int (*set_context)(void *context);
	void *context;
	unsigned first, count; /* numbers of its launches */
	const char *inner;     /* Python code for another thread */
};

static struct {
	void *state;
	pthread_t thread;
	sem_t standing, go;
} shared;

#define EXPORTED __attribute__((visibility("default")))

EXPORTED void states_stand(void);
EXPORTED void states_hand_over(const struct native *native);
EXPORTED void states_hand_over_in_thread(const struct native *native);
EXPORTED void states_begin_orphan(const struct native *native);
EXPORTED void states_delete(void);
EXPORTED void states_end_orphan(void);
EXPORTED void states_lend(const struct native *native);

static void *python(const char *name)
{
	void *function = dlsym(RTLD_DEFAULT, name);

	if (!function)
		abort();
	return function;
}

static void *save(void)
{
	return ((void *(*)(void))python("PyEval_SaveThread"))();
}

static void restore(void *state)
{
	((void (*)(void *))python("PyEval_RestoreThread"))(state);
}

static void run(const char *code)
{
	((int (*)(const char *, void *))python("PyRun_SimpleStringFlags"))(code, NULL);
}

static void launch_all(const struct native *native)
{
	for (unsigned i = 0; i < native->count; i++)
		native->launch(native->function, native->first + i, 1, 1, 1, 1, 1, 0, NULL, NULL,
			       NULL);
}

/* Called by Python, which waits here until the other thread has launched. */
void states_stand(void)
{
	sem_post(&shared.standing);
	sem_wait(&shared.go);
}

static void *run_inner(void *arg)
{
	const struct native *native = arg;

	native->set_context(native->context);
	restore(shared.state);
	run(native->inner);
	shared.state = save();
	return NULL;
}

/*
 * The calling thread, which holds the GIL, gives its state to another thread and launches
 * meanwhile.
 */
void states_hand_over(const struct native *native)
{
	sem_init(&shared.standing, 0, 0);
	sem_init(&shared.go, 0, 0);
	shared.state = save();
	if (pthread_create(&shared.thread, NULL, run_inner, (void *)native))
		abort();
	sem_wait(&shared.standing);
	launch_all(native);
	sem_post(&shared.go);
	pthread_join(shared.thread, NULL);
	restore(shared.state);
}

static void *hand_over(void *arg)
{
	const struct native *native = arg;
	int before;

	native->set_context(native->context);
	before = ((int (*)(void))python("PyGILState_Ensure"))();
	states_hand_over(native);
	((void (*)(int))python("PyGILState_Release"))(before);
	return NULL;
}

/* The same in a thread that runs no other Python. Called without the GIL. */
void states_hand_over_in_thread(const struct native *native)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, hand_over, (void *)native))
		abort();
	pthread_join(thread, NULL);
}

static void *be_orphan(void *arg)
{
	const struct native *native = arg;

	native->set_context(native->context);
	((int (*)(void))python("PyGILState_Ensure"))();
	run("pass");
	shared.state = save();
	sem_post(&shared.standing);
	sem_wait(&shared.go);
	launch_all(native);
	return NULL;
}

/* A thread that has run Python and continues without. Called without the GIL. */
void states_begin_orphan(const struct native *native)
{
	sem_init(&shared.standing, 0, 0);
	sem_init(&shared.go, 0, 0);
	if (pthread_create(&shared.thread, NULL, be_orphan, (void *)native))
		abort();
	sem_wait(&shared.standing);
}

/* Deletes its state, with the GIL held, and reuses the memory. */
void states_delete(void)
{
	((void (*)(void *))python("PyThreadState_Clear"))(shared.state);
	((void (*)(void *))python("PyThreadState_Delete"))(shared.state);
	for (size_t bytes = 16; bytes <= STATE_BYTES_MAX; bytes += 16)
		for (int i = 0; i < 8; i++) {
			void *memory = malloc(bytes);

			if (!memory)
				abort();
			memset(memory, 0x41, bytes);
			__asm__ volatile("" : : "r"(memory) : "memory"); /* keep the memory */
		}
}

/* Called without the GIL. */
void states_end_orphan(void)
{
	sem_post(&shared.go);
	pthread_join(shared.thread, NULL);
}

/* A thread runs Python in a state that the calling thread, which holds the GIL, has created. */
void states_lend(const struct native *native)
{
	void *interpreter = ((void *(*)(void))python("PyInterpreterState_Get"))(), *own;

	shared.state = ((void *(*)(void *))python("PyThreadState_New"))(interpreter);
	own = save();
	if (pthread_create(&shared.thread, NULL, run_inner, (void *)native))
		abort();
	pthread_join(shared.thread, NULL);
	restore(own);
}
