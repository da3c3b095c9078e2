/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cases with limits, with forbidden or removed resources, and with process state that a tracer
 * might change.
 */
#include "life.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <locale.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Process state. */

static void tell_handlers(void)
{
	sigset_t mask, pending;

	sigprocmask(SIG_SETMASK, NULL, &mask);
	sigpending(&pending);
	for (int number = 1; number < 65; number++) {
		struct sigaction action;

		if (sigaction(number, NULL, &action))
			continue;
		if (action.sa_handler != SIG_DFL || sigismember(&mask, number) ||
		    sigismember(&pending, number))
			tell("signal %d: handler %d, flags %#x, blocked %d, pending %d\n", number,
			     action.sa_handler != SIG_DFL, (unsigned)action.sa_flags,
			     sigismember(&mask, number), sigismember(&pending, number));
	}
}

static void tell_attributes(void)
{
	char folder[4096] = "", name[17] = "";
	cpu_set_t processors;
	stack_t stack;

	for (int resource = 0; resource < RLIM_NLIMITS; resource++) {
		struct rlimit limit;

		getrlimit((__rlimit_resource_t)resource, &limit);
		tell("limit %d: %lld %lld\n", resource, (long long)limit.rlim_cur,
		     (long long)limit.rlim_max);
	}
	sigaltstack(NULL, &stack);
	sched_getaffinity(0, sizeof(processors), &processors);
	prctl(PR_GET_NAME, name);
	tell("stack %d, processors %d, name %s, dumpable %d, nice %d, scheduler %d, umask %03o\n",
	     stack.ss_flags, CPU_COUNT(&processors), name, prctl(PR_GET_DUMPABLE),
	     getpriority(PRIO_PROCESS, 0), sched_getscheduler(0), umask(022));
	tell("locale %s, alarm %u, directory %s, random %ld %d\n", setlocale(LC_ALL, NULL),
	     alarm(0), getcwd(folder, sizeof(folder)), random(), rand());
	tell("strerror %s\n", strerror(ENOENT));
	tell_handlers();
}

static int look_at_attributes(char **unused)
{
	struct sigaction action = {.sa_handler = SIG_IGN};
	sigset_t mask;

	(void)unused;
	setlocale(LC_ALL, "C.UTF-8");
	srandom(4711);
	srand(4711);
	umask(027);
	sigaction(SIGUSR2, &action, NULL);
	sigemptyset(&mask);
	sigaddset(&mask, SIGURG);
	sigprocmask(SIG_BLOCK, &mask, NULL);
	raise(SIGURG);
	gpu_begin();
	gpu_launch(3);
	tell_attributes();
	return 0;
}

static unsigned count_maps(void)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	unsigned count = 0;
	int c;

	while (maps && (c = getc(maps)) != EOF)
		count += c == '\n';
	if (maps)
		fclose(maps);
	return count;
}

/*
 * The tracer maps its memory at the start. Later it maps only what the program's work requires,
 * which is little.
 */
static int look_at_maps(char **unused)
{
	unsigned before, after;

	(void)unused;
	gpu_begin();
	gpu_launch(2000);
	usleep(300000);
	before = count_maps();
	for (int i = 0; i < 20; i++)
		gpu_launch(1000);
	after = count_maps();
	tell("mappings %s\n", after <= before + 16 ? "are as they were" : "have grown");
	return 0;
}

/* Fork handlers run once each, beside the tracer's. */
static unsigned fork_handlers[3];

static void before_fork(void)
{
	fork_handlers[0]++;
}

static void in_parent(void)
{
	fork_handlers[1]++;
}

static void in_child(void)
{
	fork_handlers[2]++;
}

static void tell_fork_handlers(void)
{
	tell("before %u, parent %u, child %u\n", fork_handlers[0], fork_handlers[1],
	     fork_handlers[2]);
}

static int look_at_fork_handlers(char **unused)
{
	pid_t child;

	(void)unused;
	pthread_atfork(before_fork, in_parent, in_child);
	gpu_begin();
	gpu_launch(1);
	child = fork();
	if (!child)
		tell_fork_handlers();
	tell_end_of_child(child);
	tell_fork_handlers();
	return 0;
}

/* Limits. */

/* Uses up all descriptors, before the tracer starts or after. */
static void take_descriptors(void)
{
	struct rlimit limit;

	getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = 40;
	setrlimit(RLIMIT_NOFILE, &limit);
	while (dup(STDERR_FILENO) >= 0)
		;
}

static int no_descriptors(char **unused)
{
	(void)unused;
	take_descriptors();
	gpu_begin();
	gpu_launch(3);
	tell("done\n");
	return 0;
}

static int no_more_descriptors(char **unused)
{
	(void)unused;
	gpu_begin();
	gpu_launch(3);
	take_descriptors();
	gpu_launch(300);
	usleep(300000);
	gpu_launch(3);
	tell("done\n");
	return 0;
}

/* Limits memory to its present size and more_bytes. */
static void limit_memory(size_t more_bytes)
{
	struct rlimit limit;
	long pages = 0;
	FILE *statm = fopen("/proc/self/statm", "re");

	if (!statm || fscanf(statm, "%ld", &pages) != 1)
		_exit(97);
	fclose(statm);
	getrlimit(RLIMIT_AS, &limit);
	limit.rlim_cur = (rlim_t)pages * 4096 + more_bytes;
	setrlimit(RLIMIT_AS, &limit);
}

/* limited_memory MIB: limits memory before CUDA starts. */
static int limited_memory(char **arguments)
{
	limit_memory((size_t)atoi(arguments[0]) << 20);
	gpu_begin();
	gpu_launch(300);
	usleep(300000);
	gpu_launch(3);
	tell("done\n");
	return 0;
}

static int no_more_memory(char **unused)
{
	(void)unused;
	gpu_begin();
	gpu_launch(3);
	limit_memory(1 << 20);
	gpu_launch(30000);
	usleep(300000);
	gpu_launch(3);
	tell("done\n");
	return 0;
}

/* Forbidden system calls. */

static void forbid(const int *calls, size_t count)
{
	struct sock_filter filter[64];
	struct sock_fprog program = {.filter = filter};
	unsigned short length = 0;

	filter[length++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
							offsetof(struct seccomp_data, nr));
	for (size_t i = 0; i < count; i++) {
		filter[length++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
								(unsigned)calls[i], 0, 1);
		filter[length++] =
			(struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
	}
	filter[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	program.len = length;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program))
		tell("no filter: %s\n", strerror(errno));
}

/* Calls that a sandbox may forbid and that the tracer would like to make. */
static int forbidden_calls(char **unused)
{
	static const int calls[] = {
		SYS_process_vm_readv,
		SYS_flock,
		SYS_getrandom,
		SYS_fallocate,
		SYS_uname,
		SYS_fadvise64,
		SYS_tgkill,
		SYS_readlinkat,
#if defined(__x86_64__)
		SYS_readlink,
#endif
	};

	(void)unused;
	forbid(calls, sizeof(calls) / sizeof(calls[0]));
	gpu_begin();
	gpu_launch(5);
	tell("done\n");
	return 0;
}

/* More of these, during recording. */
static int forbidden_files(char **unused)
{
	static const int calls[] = {
		SYS_openat,
		SYS_pwrite64,
		SYS_pread64,
		SYS_unlinkat,
		SYS_ftruncate,
		SYS_fallocate,
#if defined(__x86_64__)
		SYS_open,
		SYS_unlink,
#endif
	};

	(void)unused;
	gpu_begin();
	gpu_launch(5);
	usleep(100000);
	forbid(calls, sizeof(calls) / sizeof(calls[0]));
	gpu_launch(500);
	usleep(300000);
	gpu_launch(5);
	tell("done\n");
	return 0;
}

/* System calls by name: those that xtrace needs, and those of this program. */
#ifndef SYS_readlink
#define SYS_readlink SYS_readlinkat
#define SYS_unlink   SYS_unlinkat
#endif
/* clang-format off */
#define CALL(name) {#name, SYS_##name}
static const struct {
	const char *name;
	int number;
} call_names[] = {
	CALL(clock_gettime), CALL(clock_nanosleep), CALL(close), CALL(exit), CALL(fallocate),
	CALL(fcntl), CALL(fstat), CALL(fstatfs), CALL(ftruncate), CALL(futex), CALL(getdents64),
	CALL(getpid), CALL(gettid), CALL(lseek), CALL(madvise), CALL(mmap), CALL(mprotect),
	CALL(mremap), CALL(munlock), CALL(munmap), CALL(newfstatat), CALL(openat), CALL(ppoll),
	CALL(prctl), CALL(pread64), CALL(process_vm_readv), CALL(pwrite64), CALL(read),
	CALL(readlinkat), CALL(rt_sigpending), CALL(rt_sigprocmask), CALL(rt_sigtimedwait),
	CALL(tgkill), CALL(unlinkat), CALL(write), CALL(writev),
	CALL(readlink), CALL(unlink),
	/* For the program itself. */
	CALL(brk), CALL(clone), CALL(clone3), CALL(exit_group), CALL(rseq), CALL(rt_sigaction),
	CALL(set_robust_list),
};
/* clang-format on */

static int call_number(const char *name)
{
	for (size_t i = 0; i < sizeof(call_names) / sizeof(call_names[0]); i++)
		if (!strcmp(call_names[i].name, name))
			return call_names[i].number;
	return -1;
}

/* Kills the process at all other calls. */
static int allow_only(char **names)
{
	struct sock_filter filter[2 * 64 + 2];
	struct sock_fprog program = {.filter = filter};
	unsigned short length = 0;

	filter[length++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
							offsetof(struct seccomp_data, nr));
	for (; *names && length < 2 * 64; names++) {
		if (call_number(*names) < 0)
			return -1;
		filter[length++] = (struct sock_filter)BPF_JUMP(
			BPF_JMP | BPF_JEQ | BPF_K, (unsigned)call_number(*names), 0, 1);
		filter[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	}
	filter[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
	program.len = length;
	return *names || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	       syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program);
}

static void *launch_in_thread(void *unused)
{
	gpu_enter_thread();
	gpu_launch(100);
	return unused;
}

/* The arguments are the calls that the filter allows. */
static int allowed_calls(char **names)
{
	pthread_t thread;

	gpu_begin();
	gpu_launch(5);
	usleep(50000);
	if (allow_only(names)) {
		tell("no filter\n");
		return 1;
	}
	for (int i = 0; i < 2; i++) {
		gpu_launch(50);
		if (pthread_create(&thread, NULL, launch_in_thread, NULL))
			return 2;
		pthread_join(thread, NULL);
		usleep(150000);
	}
	tell("done\n");
	return 0;
}

/* Removed files. */

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *where)
{
	(void)status, (void)type, (void)where;
	return remove(path);
}

static int deleted_output(char **unused)
{
	(void)unused;
	gpu_begin();
	gpu_launch(5);
	usleep(50000);
	if (getenv("XTRACE_DATA"))
		nftw(getenv("XTRACE_DATA"), remove_one, 8, FTW_DEPTH | FTW_PHYS);
	gpu_launch(5);
	usleep(300000);
	gpu_launch(5);
	tell("done\n");
	return 0;
}

/* new_root WHEN FOLDER: changes to an empty root, before CUDA starts or after. */
static int new_root(char **arguments)
{
	bool is_early = !strcmp(arguments[0], "early");

	if (!is_early)
		gpu_begin();
	if (chroot(arguments[1]) || chdir("/"))
		return 1;
	if (is_early)
		gpu_begin();
	gpu_launch(5);
	usleep(100000);
	gpu_launch(5);
	tell("done\n");
	return 0;
}

/* Descriptor 2 is a full pipe. It is not read before the program ends. */
static int full_stderr(char **unused)
{
	char bytes[4096] = "";
	int ends[2];

	(void)unused;
	if (pipe(ends) || dup2(ends[1], STDERR_FILENO) != STDERR_FILENO)
		return 1;
	fcntl(STDERR_FILENO, F_SETFL, O_NONBLOCK);
	for (size_t length = sizeof(bytes); length; length /= 2)
		while (write(STDERR_FILENO, bytes, length) > 0)
			;
	fcntl(STDERR_FILENO, F_SETFL, 0);
	gpu_begin();
	gpu_launch(5);
	return 5;
}

/*
 * other_stderr file PATH, log PATH or socket: descriptor 2 is a file of the program or a socket.
 * Only the program may write to it.
 */
static int other_stderr(char **arguments)
{
	struct sockaddr_in peer = {.sin_family = AF_INET};
	socklen_t peer_bytes = sizeof(peer);
	char text[256];
	ssize_t length;
	int fd;

	peer.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (!strcmp(arguments[0], "socket"))
		fd = socket(AF_INET, SOCK_DGRAM, 0);
	else if (!strcmp(arguments[0], "file"))
		fd = open(arguments[1], O_RDWR | O_CREAT | O_TRUNC, 0600);
	else
		fd = open(arguments[1], O_WRONLY | O_CREAT | O_TRUNC, 0600);
	if (dup2(fd, STDERR_FILENO) != STDERR_FILENO)
		return 1;
	if (!strcmp(arguments[0], "socket") &&
	    (bind(fd, (struct sockaddr *)&peer, sizeof(peer)) ||
	     getsockname(fd, (struct sockaddr *)&peer, &peer_bytes) ||
	     connect(fd, (struct sockaddr *)&peer, peer_bytes)))
		tell("no network");
	gpu_begin();
	gpu_launch(5);
	if (arguments[1])
		fd = open(arguments[1], O_RDONLY);
	fcntl(fd, F_SETFL, O_NONBLOCK);
	length = read(fd, text, sizeof(text));
	tell("%.*s\n", (int)(length < 0 ? 0 : length), text);
	return 5;
}

/* Changes the wall clock back and forth, as when it is set. */
static volatile bool clock_is_unsteady;

__attribute__((visibility("default"))) int clock_gettime(clockid_t clock, struct timespec *out)
{
	static unsigned asked;
	int rc = (int)syscall(SYS_clock_gettime, clock, out);

	if (!rc && clock == CLOCK_REALTIME && clock_is_unsteady)
		out->tv_sec += asked++ % 2 ? 7200 : -7200;
	return rc;
}

static int clock_steps(char **unused)
{
	(void)unused;
	clock_is_unsteady = true;
	gpu_begin();
	for (int i = 0; i < 5; i++) {
		gpu_launch(5);
		usleep(300000);
	}
	tell("done\n");
	return 0;
}

static void limit_files(rlim_t bytes)
{
	struct rlimit limit;

	getrlimit(RLIMIT_FSIZE, &limit);
	limit.rlim_cur = bytes < limit.rlim_max ? bytes : limit.rlim_max;
	setrlimit(RLIMIT_FSIZE, &limit);
}

/* full_for_a_while LAUNCHES: for 0.6 s in the middle, files cannot grow. */
static int full_for_a_while(char **arguments)
{
	unsigned count = (unsigned)atoi(arguments[0]);

	gpu_begin();
	gpu_launch(count);
	usleep(100000);
	limit_files(1);
	gpu_launch(count);
	usleep(600000);
	limit_files(RLIM_INFINITY);
	usleep(300000);
	gpu_launch(count);
	return 3;
}

/*
 * full_to_the_end LAUNCHES: after the start, files cannot grow. By then the writer has stored the
 * kernel's name, which it does every 50 ms.
 */
static int full_to_the_end(char **arguments)
{
	gpu_begin();
	gpu_launch(10);
	usleep(400000);
	limit_files(1);
	usleep(300000); /* the writer flushes four times a second */
	gpu_launch((unsigned)atoi(arguments[0]));
	return 3;
}

const struct life limit_lives[] = {
	{"attributes", look_at_attributes},
	{"maps", look_at_maps},
	{"fork_handlers", look_at_fork_handlers},
	{"no_descriptors", no_descriptors},
	{"no_more_descriptors", no_more_descriptors},
	{"limited_memory", limited_memory},
	{"no_more_memory", no_more_memory},
	{"forbidden_calls", forbidden_calls},
	{"forbidden_files", forbidden_files},
	{"allowed_calls", allowed_calls},
	{"deleted_output", deleted_output},
	{"new_root", new_root},
	{"full_stderr", full_stderr},
	{"other_stderr", other_stderr},
	{"clock_steps", clock_steps},
	{"full_for_a_while", full_for_a_while},
	{"full_to_the_end", full_to_the_end},
	{NULL, NULL},
};
