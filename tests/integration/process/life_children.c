/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cases with child processes, and cases that change descriptors, folders or the disk.
 */
#include "life.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* Like fork(), without its handlers. aarch64 has no SYS_fork. */
static pid_t fork_directly(void)
{
	return (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
}

/* Waits for a child and prints how it ended. */
static void tell_end_of(pid_t child)
{
	int status = -1;

	if (child < 0 || waitpid(child, &status, 0) != child)
		tell("no child: %s\n", strerror(errno));
	else
		tell("child: status %#x\n", (unsigned)status);
}

void tell_end_of_child(pid_t child)
{
	if (!child)
		exit(0);
	tell_end_of(child);
}

/* A child must not keep the tracer's files of its parent. Its exit() runs the exit handlers. */
static int forks(char **unused)
{
	pid_t child;

	(void)unused;
	gpu_begin();
	gpu_launch(2);
	child = fork();
	if (!child) {
		tell_descriptors(false);
		exit(11);
	}
	tell_end_of(child);
	child = fork();
	if (!child)
		_exit(12);
	tell_end_of(child);
	gpu_launch(3);
	return 0;
}

/* fork_before [_exit]: how the child ends */
static int fork_before(char **arguments)
{
	pid_t child = fork();

	if (!child) {
		gpu_begin();
		gpu_launch(2);
		tell("the child's\n");
		if (arguments[0])
			_exit(11);
		exit(11);
	}
	tell_end_of(child);
	gpu_begin();
	gpu_launch(3);
	return 0;
}

static int fork_exec(char **unused)
{
	pid_t child;

	(void)unused;
	gpu_begin();
	gpu_launch(2);
	child = fork();
	if (!child) {
		execl(own_path, own_path, "descriptors", (char *)NULL);
		_exit(127);
	}
	tell_end_of(child);
	gpu_launch(3);
	return 0;
}

static int vfork_exec(char **unused)
{
	pid_t child;

	(void)unused;
	gpu_begin();
	gpu_launch(2);
	child = vfork();
	if (!child) {
		execl(own_path, own_path, "descriptors", (char *)NULL);
		_exit(127);
	}
	tell_end_of(child);
	child = vfork();
	if (!child)
		_exit(13);
	tell_end_of(child);
	gpu_launch(3);
	return 0;
}

/* Forks in a thread that has not launched yet. */
static void *fork_in_thread(void *unused)
{
	pid_t child = fork_directly();

	if (!child) {
		gpu_call_in_vain(10000);
		exit(16);
	}
	tell_end_of(child);
	return unused;
}

/* Children that share our memory, or that the C library does not know. They end at once. */
static int bare_children(char **unused)
{
	pthread_t thread;
	pid_t child;

	(void)unused;
	gpu_begin();
	gpu_launch(2);
	for (int i = 0; i < 50; i++) {
		errno = 4711;
		child = vfork();
		if (!child)
			_exit(13);
		if (errno != 4711)
			tell("errno %d\n", errno);
		tell_end_of(child);
	}
	/*
	 * Such a child inherits locks as they are. By now, the other threads have released theirs.
	 */
	usleep(300000);
	child = fork_directly();
	if (!child)
		_exit(14);
	tell_end_of(child);
	/* They do not touch their parent's log, whatever they call. */
	child = fork_directly();
	if (!child) {
		gpu_call_in_vain(10000);
		exit(15);
	}
	tell_end_of(child);
	pthread_create(&thread, NULL, fork_in_thread, NULL);
	pthread_join(thread, NULL);
	gpu_launch(3);
	return 0;
}

/* A child that the C library does not know, with the pid of its parent in its own namespace. */
static int same_pid(char **unused)
{
	pid_t child;

	(void)unused;
	gpu_begin();
	gpu_launch(2);
	usleep(300000);
	child = (pid_t)syscall(SYS_clone, CLONE_NEWPID | SIGCHLD, NULL, NULL, NULL, 0);
	if (!child) {
		tell("pid %d\n", (int)syscall(SYS_getpid));
		gpu_call_in_vain(10000);
		exit(14);
	}
	tell_end_of(child);
	gpu_launch(3);
	return 0;
}

static int spawn(char **unused)
{
	char *const arguments[] = {(char *)own_path, "descriptors", NULL};
	pid_t child = -1;

	(void)unused;
	gpu_begin();
	gpu_launch(2);
	if (posix_spawn(&child, own_path, NULL, NULL, arguments, environ))
		child = -1;
	tell_end_of(child);
	gpu_launch(3);
	return 0;
}

static int run_shell(char **unused)
{
	(void)unused;
	gpu_begin();
	gpu_launch(2);
	tell("system: %#x\n", (unsigned)system("ls /proc/self/fd; exit 3"));
	gpu_launch(3);
	return 0;
}

/* The process executes another program. */
static int exec_itself(char **unused)
{
	(void)unused;
	gpu_begin();
	gpu_launch(2);
	execl(own_path, own_path, "descriptors", (char *)NULL);
	return 127;
}

/* Starts a daemon: forks twice, closes all descriptors, changes the folder, then uses CUDA. */
static int daemonise(char **arguments)
{
	pid_t child = fork();
	int out;

	if (child) {
		tell_end_of(child);
		/* The daemon's pipe stays open until it ends, so that the test waits. */
		return 0;
	}
	setsid();
	if (fork())
		_exit(0);
	out = dup(STDOUT_FILENO);
	for (int fd = 0; fd < 1024; fd++)
		if (fd != out)
			close(fd);
	open("/dev/null", O_RDWR);
	dup2(out, STDOUT_FILENO);
	dup2(STDIN_FILENO, STDERR_FILENO);
	close(out);
	if (chdir("/"))
		_exit(1);
	(void)arguments;
	gpu_begin();
	gpu_launch(4);
	tell_descriptors(true);
	tell("the daemon has worked\n");
	exit(0);
}

static atomic_bool stop;

static void *launch_on(void *count_out)
{
	unsigned count = 0;

	gpu_enter_thread();
	for (; !stop; count += 10)
		gpu_launch(10);
	*(unsigned *)count_out = count;
	return NULL;
}

/* Forks while other threads launch. */
static int fork_under_load(char **unused)
{
	unsigned counts[4], failed = 0;
	pthread_t threads[4];

	(void)unused;
	gpu_begin();
	for (int i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, launch_on, &counts[i]);
	for (int i = 0; i < 50; i++) {
		pid_t child = fork();
		int status = -1;

		if (!child) {
			alarm(5);
			exit(i);
		}
		if (waitpid(child, &status, 0) != child || status != i << 8)
			failed++;
	}
	stop = true;
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	tell("%u children failed\n", failed);
	return 0;
}

/*
 * dl_iterate_phdr() holds the loader's lock during its callback. A thread beside the main thread
 * holds it for long here. The tracer's writer calls it when libraries are loaded or unloaded.
 */
static atomic_bool loader_is_slow;

static int look_slowly(struct dl_phdr_info *info, size_t bytes, void *seen)
{
	(void)info, (void)bytes;
	if (!*(bool *)seen)
		usleep(3000);
	*(bool *)seen = true;
	return 1;
}

__attribute__((visibility("default"))) int
dl_iterate_phdr(int (*callback)(struct dl_phdr_info *, size_t, void *), void *data)
{
	static int (*next)(int (*)(struct dl_phdr_info *, size_t, void *), void *);

	if (!next)
		next = (int (*)(int (*)(struct dl_phdr_info *, size_t, void *), void *))dlsym(
			RTLD_NEXT, "dl_iterate_phdr");
	if (loader_is_slow && gettid() != getpid()) {
		bool seen = false;

		next(look_slowly, &seen);
	}
	return next(callback, data);
}

static int look(struct dl_phdr_info *info, size_t bytes, void *unused)
{
	(void)info, (void)bytes, (void)unused;
	return 1;
}

/* Forks while libraries are loaded and unloaded. The child can use the loader. */
static int fork_and_load(char **arguments)
{
	unsigned failed = 0;

	gpu_begin();
	gpu_launch(1);
	loader_is_slow = true;
	for (int i = 0; i < 40; i++) {
		void *library = dlopen(arguments[0], RTLD_NOW);
		int status = -1;
		pid_t child;

		if (!library)
			return 1;
		usleep(500 + 100 * (unsigned)i % 3000);
		child = fork();
		if (!child) {
			alarm(2);
			dl_iterate_phdr(look, NULL);
			_exit(0);
		}
		if (waitpid(child, &status, 0) != child || status)
			failed++;
		dlclose(library);
		if (failed)
			break; /* each takes two seconds */
	}
	tell("%u children failed\n", failed);
	return 0;
}

static int load_and_fork(struct dl_phdr_info *info, size_t bytes, void *plugin)
{
	(void)info, (void)bytes;
	dlopen(plugin, RTLD_NOW);
	usleep(100000);
	for (int i = 0; i < 400; i++) {
		pid_t child = fork();

		if (!child)
			_exit(17);
		tell_end_of(child);
	}
	return 1;
}

/*
 * Forks in a thread that holds the loader's lock, which a query for loaded libraries needs. Repeats
 * it, so that a delay would be noticed.
 */
static int fork_in_loader(char **arguments)
{
	gpu_begin();
	gpu_launch(2);
	dl_iterate_phdr(load_and_fork, arguments[0]);
	gpu_launch(3);
	return 0;
}

/* Closes all descriptors and reuses their numbers. The tracer must not write to them. */
static int close_from(char **unused)
{
	char path[] = "/tmp/xtrace-life.XXXXXX", text[256];
	int fds[6];
	ssize_t length;

	(void)unused;
	gpu_begin();
	gpu_launch(2);
	closefrom(3);
	fds[0] = mkstemp(path);
	for (int i = 1; i < 6; i++)
		fds[i] = open(path, O_RDWR);
	for (int i = 0; i < 6; i++) {
		gpu_launch(2);
		if (write(fds[0], "precious\n", 9) != 9)
			return 1;
		usleep(100000); /* the writer flushes four times a second */
	}
	length = pread(fds[5], text, sizeof(text), 0);
	tell("%zd bytes\n%.*s", length, (int)length, text);
	unlink(path);
	return 0;
}

/* chdir BEFORE AFTER: changes the folder before CUDA starts, and again later. */
static int change_directory(char **arguments)
{
	if (chdir(arguments[0]))
		return 1;
	gpu_begin();
	gpu_launch(1);
	if (chdir(arguments[1]))
		return 1;
	gpu_launch(1);
	return 0;
}

/* Runs until the log was flushed a few times, or could not be written. */
static int full_disk(char **unused)
{
	(void)unused;
	gpu_begin();
	for (int i = 0; i < 4; i++) {
		gpu_launch(200);
		usleep(100000);
	}
	tell("done\n");
	return 0;
}

/*
 * The report goes to a file, because stdout may be closed. The program gets the first free numbers.
 */
static int closed_streams(char **arguments)
{
	int report, second;

	gpu_begin();
	gpu_launch(2);
	tell("to stdout\n");
	fprintf(stderr, "to stderr\n");
	usleep(100000); /* at start, the tracer's threads read /proc */
	report = open(arguments[0], O_WRONLY | O_CREAT | O_TRUNC, 0600);
	second = open("/dev/null", O_RDONLY);
	gpu_launch(2);
	dprintf(report, "report %d\n", report);
	if (report > 2)
		dprintf(report, "second %d\n", second > 2 ? 3 : second);
	return 0;
}

static int wait_to_be_killed(char **unused)
{
	(void)unused;
	gpu_begin();
	gpu_launch(500);
	usleep(400000);
	gpu_launch(500);
	tell("ready\n");
	for (;;)
		pause();
	return 0;
}

const struct life child_lives[] = {
	{"fork", forks},
	{"fork_before", fork_before},
	{"fork_exec", fork_exec},
	{"vfork_exec", vfork_exec},
	{"bare_children", bare_children},
	{"same_pid", same_pid},
	{"posix_spawn", spawn},
	{"system", run_shell},
	{"exec", exec_itself},
	{"daemon", daemonise},
	{"fork_under_load", fork_under_load},
	{"fork_and_load", fork_and_load},
	{"fork_in_loader", fork_in_loader},
	{"closefrom", close_from},
	{"chdir", change_directory},
	{"full_disk", full_disk},
	{"closed_streams", closed_streams},
	{"killed", wait_to_be_killed},
	{NULL, NULL},
};
