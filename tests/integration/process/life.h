/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs that use the GPU and live and end in every way a process can. Each case says on stdout
 * what it sees of itself; process_test.py runs it with and without the tracer and compares.
 */
#ifndef TESTS_INTEGRATION_PROCESS_LIFE_H
#define TESTS_INTEGRATION_PROCESS_LIFE_H

#include <cuda.h>

#include <stdbool.h>
#include <sys/types.h>

/* All output goes out at once, so that nothing depends on how the process ends. */
void tell(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Starts CUDA in this process, and launches count kernels. Both end the process if it fails. */
void gpu_begin(void);
void gpu_launch(unsigned count);

/* From now on it is that kernel, of a module of its own, that is launched. */
void gpu_load(const char *kernel);

/* The launch alone, with nothing to wait for: it may come in a signal handler. */
void gpu_launch_alone(void);

/* Launches that are refused at once. */
void gpu_call_in_vain(unsigned count);

/* So many launches in a context that is made for them and destroyed; gives back the primary context;
 * resets the device. CUDA's result. */
int gpu_launch_in_new_context(unsigned count);
int gpu_release(void);
int gpu_reset(void);

/* Waits for what fork() gave, and says how it ended. In the child, ends it. */
void tell_end_of_child(pid_t child);

/* In any further thread, before it launches. */
void gpu_enter_thread(void);

/* The same with errno looked at after each call. */
void tell_errno_of_calls(void);

/* As /proc has it: 'S' waits, 'Z' has ended. For other threads. */
void wait_for_state_of_main_thread(char wanted);

/* What is open, by number. The tracer's own files (below XTRACE_DATA) are left out in the process
 * that it traces, and in no other. */
void tell_descriptors(bool traced);
void tell_environment(void);

struct life {
	const char *name;
	int (*run)(char **arguments); /* the exit status, for main() to return */
};
extern const struct life lives[], child_lives[], thread_lives[], limit_lives[];

extern const char *own_path; /* of this program, for cases that start it again */

#endif
