/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tells whether a sampler works for a process and a trace directory. The sampler listens on an
 * abstract socket whose name has the process's id and start time, and the directory's device and
 * inode. So the claim ends with the sampler, and is not taken for that of another process with the
 * same id. Any thread; no memory is allocated.
 */
#ifndef XT_LOG_SAMPLER_SOCKET_H
#define XT_LOG_SAMPLER_SOCKET_H

#include <stdbool.h>
#include <sys/types.h>

/*
 * Claims a process for this sampler. Returns the listening descriptor, which the caller closes, or
 * -errno. The error is -EADDRINUSE if another sampler has the process, and -ESRCH if there is no
 * such process. Other errors are those of the directory or the socket.
 */
int sampler_socket_claim(pid_t pid, const char *data_dir);

/*
 * The sampler that samples a process or one of its ancestors into this directory, run by the same
 * user. 0: none.
 */
pid_t sampler_socket_find(pid_t pid, const char *data_dir);

/* Whether only parents, and processes that a program names, may read its memory. */
bool sampler_socket_needs_permit(void);

/* How the lines begin that 'xtrace sample --background' writes to its stdout. */
#define SAMPLER_ASKS  "xtrace asks for permission to read memory"
#define SAMPLER_READY "xtrace samples the CPU" /* a note may follow */
#define SAMPLER_FAILS "xtrace cannot: "

/* A request, as the only byte of a connection: complete the logs, and end. */
#define SAMPLER_SOCKET_END 'e'

/*
 * Connects to the sampler of this process and directory, for sampler_socket_end(). Returns a
 * descriptor or -errno. timeout_ms: how long to wait for its end later.
 */
int sampler_socket_connect(pid_t pid, const char *data_dir, int timeout_ms);

/*
 * Asks the sampler to complete the logs, and waits for that. The program may forbid new connections
 * by now, so this only writes and reads. Blocks SIGPIPE before.
 */
void sampler_socket_end(int fd);

#endif
