/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs that use the GPU and run and end in every way a process can. Each case prints what it
 * can see of itself. process_test.py runs it with and without the tracer and compares the outputs.
 */
#ifndef TESTS_INTEGRATION_PROCESS_LIFE_H
#define TESTS_INTEGRATION_PROCESS_LIFE_H

#include <cuda.h>

#include <stdbool.h>
#include <sys/types.h>

/* Prints without buffering, so that the output does not depend on how the process ends. */
void tell(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Starts CUDA, or launches count kernels. Both end the process on an error. */
void gpu_begin(void);
void gpu_launch(unsigned count);

/* Loads a module; gpu_launch() launches its kernel from now on. */
void gpu_load(const char *kernel);

/* Launches without waiting. Allowed in a signal handler. */
void gpu_launch_alone(void);

/* Makes launches that CUDA rejects at once. */
void gpu_call_in_vain(unsigned count);

/*
 * Launches count kernels in a new context and destroys it; releases the primary context; resets the
 * device. Returns CUDA's result.
 */
int gpu_launch_in_new_context(unsigned count);
int gpu_release(void);
int gpu_reset(void);

/*
 * Takes the result of fork(). In the parent, waits for the child and prints how it ended. In the
 * child, ends the process.
 */
void tell_end_of_child(pid_t child);

/* Call it in each further thread before a launch. */
void gpu_enter_thread(void);

/* Launches and checks errno after each call. */
void tell_errno_of_calls(void);

/* Waits for the state in /proc: 'S' sleeps, 'Z' has ended. For other threads. */
void wait_for_state_of_main_thread(char wanted);

/*
 * Prints the open descriptors by number. In a traced process, leaves out the tracer's own files
 * (below XTRACE_DATA).
 */
void tell_descriptors(bool traced);
void tell_environment(void);

struct life {
	const char *name;
	int (*run)(char **arguments); /* returns the exit status */
};
extern const struct life lives[], child_lives[], thread_lives[], limit_lives[];

extern const char *own_path; /* of this program, for cases that run it again */

#endif
