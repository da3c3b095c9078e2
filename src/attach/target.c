/* SPDX-License-Identifier: Apache-2.0 */
#include "attach/target.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/kcmp.h>
#include <linux/seccomp.h>
#include <pwd.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "log/base/compare.h"
#include "log/base/regular_file.h"
#include "sampler/process_read.h"

int refuse(const struct why *why, int error, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(why->text, why->bytes, format, args);
	va_end(args);
	return error;
}

bool proc_status_read(struct proc_status *status, pid_t id)
{
	return proc_file_read(PROC_PATH("%d/status", id), status->text, sizeof(status->text)) > 0;
}

const char *proc_status_text(const struct proc_status *status, const char *name)
{
	size_t length = strlen(name);
	const char *line = status->text;

	while (line && (strncmp(line, name, length) != 0 || line[length] != ':')) {
		line = strchr(line, '\n');
		line += line != NULL;
	}
	return line ? line + length + 1 + strspn(line + length + 1, " \t") : NULL;
}

long proc_status_number(const struct proc_status *status, const char *name, int index)
{
	const char *at = proc_status_text(status, name);
	long number = -1;

	for (int i = 0; at && i <= index; i++) {
		char *end;

		number = strtol(at, &end, 10);
		if (end == at)
			return -1;
		at = end;
	}
	return number;
}

/* A hexadecimal field; 0 if there is none. */
static uint64_t proc_status_hex(const struct proc_status *status, const char *name)
{
	const char *text = proc_status_text(status, name);

	return text ? strtoull(text, NULL, 16) : 0;
}

uint64_t proc_status_deliverable(const struct proc_status *status)
{
	return (proc_status_hex(status, "SigPnd") | proc_status_hex(status, "ShdPnd")) &
	       ~proc_status_hex(status, "SigBlk") & ~proc_status_hex(status, "SigIgn");
}

/* Whether the process is in another namespace NAME than this one. False if that is not known. */
static bool is_other_namespace(pid_t pid, const char *name)
{
	struct stat own, other;

	if (stat(PROC_PATH("self/ns/%s", name), &own))
		return false;
	return !stat(PROC_PATH("%d/ns/%s", pid, name), &other) && other.st_ino != own.st_ino;
}

#define YAMA_PATH "/proc/sys/kernel/yama/ptrace_scope"

/* A child asks to be traced, which only a seccomp filter can refuse. */
static bool may_trace_nothing(void)
{
	int status = 0;
	pid_t child = fork();

	if (!child)
		_exit(ptrace(PTRACE_TRACEME, 0, NULL, NULL) ? 1 : 0);
	return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) &&
	       WEXITSTATUS(status);
}

void ptrace_facts_read(struct ptrace_facts *facts, pid_t pid)
{
	struct proc_status other, own;
	char text[32];
	struct stat folder;

	*facts = (struct ptrace_facts){.yama_scope = -1};
	facts->is_blocked = may_trace_nothing();
	facts->is_other_user_space = is_other_namespace(pid, "user");
	if (proc_file_read(YAMA_PATH, text, sizeof(text)) > 0)
		facts->yama_scope = atoi(text);
	if (!proc_status_read(&other, pid) || !proc_status_read(&own, getpid()))
		return;
	facts->is_capable = proc_status_hex(&own, "CapEff") >> CAP_SYS_PTRACE & 1;
	facts->extra_capabilities =
		proc_status_hex(&other, "CapPrm") & ~proc_status_hex(&own, "CapEff");
	/* Files of such a process belong to root. */
	facts->is_undumpable = !stat(PROC_PATH("%d/maps", pid), &folder) &&
			       folder.st_uid != (uid_t)proc_status_number(&other, "Uid", 1);
}

/* By their numbers in linux/capability.h. */
static const char *const capability_names[] = {
	/* 0 */
	"CHOWN", "DAC_OVERRIDE", "DAC_READ_SEARCH", "FOWNER", "FSETID", "KILL", "SETGID", "SETUID",
	"SETPCAP", "LINUX_IMMUTABLE", "NET_BIND_SERVICE", "NET_BROADCAST", "NET_ADMIN", "NET_RAW",
	"IPC_LOCK", "IPC_OWNER", "SYS_MODULE", "SYS_RAWIO", "SYS_CHROOT", "SYS_PTRACE",
	/* 20 */
	"SYS_PACCT", "SYS_ADMIN", "SYS_BOOT", "SYS_NICE", "SYS_RESOURCE", "SYS_TIME",
	"SYS_TTY_CONFIG", "MKNOD", "LEASE", "AUDIT_WRITE", "AUDIT_CONTROL", "SETFCAP",
	"MAC_OVERRIDE", "MAC_ADMIN", "SYSLOG", "WAKE_ALARM", "BLOCK_SUSPEND", "AUDIT_READ",
	"PERFMON", "BPF", "CHECKPOINT_RESTORE"};

static void list_capabilities(uint64_t set, char *text, size_t text_bytes)
{
	char *at = text, *end = text + text_bytes;

	for (unsigned c = 0; c < 64 && at < end; c++)
		if (set >> c & 1)
			at += c < sizeof(capability_names) / sizeof(*capability_names)
				      ? snprintf(at, (size_t)(end - at), "%sCAP_%s",
						 at == text ? "" : ", ", capability_names[c])
				      : snprintf(at, (size_t)(end - at), "%s%u",
						 at == text ? "" : ", ", c);
}

void ptrace_refusal_explain(const struct ptrace_facts *facts, const struct why *why)
{
	char extra[512] = "";

	list_capabilities(facts->extra_capabilities, extra, sizeof(extra));
	/* Scopes 2 and 3 make the attempt for is_blocked fail, too. */
	if (facts->yama_scope >= 3)
		refuse(why, 0,
		       "kernel.yama.ptrace_scope is 3, so nothing may trace until the machine "
		       "restarts; start the program with xtrace record --armed instead");
	else if (facts->yama_scope == 2 && !facts->is_capable)
		refuse(why, 0,
		       "kernel.yama.ptrace_scope is 2, so only CAP_SYS_PTRACE may trace; 'sudo "
		       "sysctl kernel.yama.ptrace_scope=0' allows it");
	else if (facts->is_blocked)
		refuse(why, 0,
		       "a seccomp filter forbids ptrace here, as in a container; docker run "
		       "--cap-add SYS_PTRACE allows it");
	else if (facts->is_undumpable)
		refuse(why, 0,
		       "it protects its memory (prctl PR_SET_DUMPABLE, or its program is not "
		       "readable); %slet the program set PR_SET_DUMPABLE to 1",
		       facts->is_capable ? ""
					 : "run xtrace attach with CAP_SYS_PTRACE and "
					   "CAP_DAC_READ_SEARCH, or ");
	else if (facts->is_other_user_space)
		refuse(why, 0,
		       "it is in another user namespace; run xtrace attach inside its container");
	else if (facts->yama_scope == 1 && !facts->is_capable)
		refuse(why, 0,
		       "kernel.yama.ptrace_scope is 1, so only its parent may trace it; 'sudo "
		       "sysctl kernel.yama.ptrace_scope=0' allows it, or prctl(PR_SET_PTRACER, "
		       "PR_SET_PTRACER_ANY) in the program");
	else if (facts->extra_capabilities && !facts->is_capable)
		refuse(why, 0,
		       "it has capabilities that this shell lacks (%s); run xtrace attach with "
		       "CAP_SYS_PTRACE",
		       extra);
	else if (facts->is_capable)
		refuse(why, 0,
		       "a security module such as SELinux or AppArmor forbids it, or it is "
		       "outside "
		       "of this container%s%s%s",
		       *extra ? "; it has capabilities that this shell lacks (" : "", extra,
		       *extra ? ")" : "");
	else
		refuse(why, 0,
		       "a security module such as SELinux or AppArmor forbids it, or "
		       "CAP_SYS_PTRACE "
		       "is missing in this container; docker run --cap-add SYS_PTRACE allows it");
}

bool attach_is_interrupted(void)
{
	static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
	struct sigaction action;
	sigset_t pending;

	sigpending(&pending);
	for (size_t i = 0; i < sizeof(signals) / sizeof(*signals); i++)
		if (sigismember(&pending, signals[i]) == 1 &&
		    !sigaction(signals[i], NULL, &action) && action.sa_handler != SIG_IGN)
			return true;
	return false;
}

bool module_is_program(pid_t pid, const struct process_module *module)
{
	char program[PATH_MAX];

	process_program(pid, program);
	return !strcmp(program, module->path);
}

/*
 * Processes share their memory after vfork(), or clone() with CLONE_VM. A library that is loaded
 * into one of them would appear in both, and a damaged stack would be that of both.
 */
#define CHANGES		 10
#define DUMPS_SHARED_DAX 0x100UL /* few programs have such memory */

/* Opens the filter of core dumps. It belongs to the memory, not to the process. */
static int open_filter(pid_t pid, int flags)
{
	return open(PROC_PATH("%d/coredump_filter", pid), flags | O_CLOEXEC);
}

static bool read_filter(int fd, unsigned long *out)
{
	char text[32] = "";

	if (fd < 0 || pread(fd, text, sizeof(text) - 1, 0) <= 0)
		return false;
	*out = strtoul(text, NULL, 16);
	return true;
}

/*
 * Containers often forbid kcmp(). A change of the filter appears in all processes that share the
 * memory. After fork(), each has its own filter, although addresses and counters may be the same.
 * Several changes, because another xtrace attach may change the other process meanwhile. Restores
 * the filter. False if it cannot be changed.
 */
static bool has_same_filter(pid_t pid, pid_t other)
{
	int own = open_filter(pid, O_RDWR), theirs = open_filter(other, O_RDONLY);
	unsigned long filter, seen;
	bool is_same = read_filter(own, &filter);

	for (int i = 0; i < CHANGES && is_same; i++) {
		unsigned long next = i % 2 ? filter : filter ^ DUMPS_SHARED_DAX;

		is_same = dprintf(own, "%#lx", next) > 0 && read_filter(theirs, &seen) &&
			  seen == next;
		if (!is_same)
			dprintf(own, "%#lx", filter);
	}
	if (own >= 0)
		close(own);
	if (theirs >= 0)
		close(theirs);
	return is_same;
}

static bool shares(pid_t pid, pid_t other)
{
	long order = syscall(SYS_kcmp, pid, other, KCMP_VM, 0, 0);

	/* -1 is an error: of this pair if the other process may not be looked at or has ended. */
	return !order || (order < 0 && syscall(SYS_kcmp, pid, pid, KCMP_VM, 0, 0) < 0 &&
			  has_same_filter(pid, other));
}

pid_t shared_memory_find(pid_t pid)
{
	DIR *folder = opendir("/proc");
	pid_t found = 0, other;

	while (!found && (other = proc_next_id(folder)))
		if (other != pid && shares(pid, other))
			found = other;
	if (folder)
		closedir(folder);
	return found;
}

#define DEPTH_MAX 64 /* a process can be its own descendant while ids are reused */

static bool has_cuda(pid_t pid, bool *carries_xtrace)
{
	char *line = NULL;
	bool is_found = false;
	size_t bytes = 0;
	FILE *maps;

	*carries_xtrace = false;
	maps = fopen(PROC_PATH("%d/maps", pid), "re");
	while (maps && getline(&line, &bytes, maps) > 0) {
		is_found |= strstr(line, "/libcuda.so") != NULL;
		*carries_xtrace |= strstr(line, "/libxtrace_inject.so") != NULL;
	}
	if (maps)
		fclose(maps);
	free(line);
	return is_found;
}

static pid_t find_below(pid_t pid, int depth, bool *carries_xtrace);

static pid_t find_below_thread(const char *path, int depth, bool *carries_xtrace)
{
	FILE *file = fopen(path, "re");
	pid_t found = 0, child;

	while (file && !found && fscanf(file, "%d", &child) == 1)
		found = has_cuda(child, carries_xtrace)
				? child
				: find_below(child, depth + 1, carries_xtrace);
	if (file)
		fclose(file);
	return found;
}

/*
 * The first descendant of a process that has loaded CUDA, or 0. *carries_xtrace: it also has
 * xtrace's library. Kernels without CONFIG_PROC_CHILDREN list none.
 */
static pid_t find_below(pid_t pid, int depth, bool *carries_xtrace)
{
	pid_t found = 0, tid;
	DIR *folder;

	folder = depth < DEPTH_MAX ? opendir(PROC_PATH("%d/task", pid)) : NULL;
	while (!found && (tid = proc_next_id(folder)))
		found = find_below_thread(PROC_PATH("%d/task/%d/children", pid, tid), depth,
					  carries_xtrace);
	if (folder)
		closedir(folder);
	return found;
}

#define COMPARED_BYTES	16384
#define SHARING_WAITS	20
#define SHARING_WAIT_US 25000

struct check_context {
	struct target *target;
	struct proc_status own;
	const char *library;
	struct why why;
};

bool target_is_same(const struct target *target)
{
	struct thread_stat stat;

	if (target->pidfd >= 0 && syscall(SYS_pidfd_send_signal, target->pidfd, 0, NULL, 0) &&
	    errno == ESRCH)
		return false;
	/* The stack of a program starts at a random address. */
	return !process_stat_read(target->pid, &stat) && stat.start_ticks == target->start_ticks &&
	       stat.stack_start == target->stack_start;
}

static int check_exists(struct check_context *check)
{
	pid_t pid = check->target->pid;
	const char *state;
	long group;

	if (!proc_status_read(&check->target->status, pid))
		return refuse(
			&check->why, -ESRCH,
			"there is no such process here; if it runs in a container, use the id "
			"that the process has outside, or run xtrace attach inside");
	group = proc_status_number(&check->target->status, "Tgid", 0);
	if (group != pid)
		return refuse(&check->why, -EINVAL, "it is a thread of process %ld; attach that",
			      group);
	if (pid == getpid())
		return refuse(&check->why, -EINVAL, "it is this xtrace itself");
	state = proc_status_text(&check->target->status, "State");
	if (state && *state == 'Z' && proc_status_number(&check->target->status, "Threads", 0) > 1)
		return refuse(&check->why, -ENOTSUP,
			      "its main thread has ended, but others still run; start it with "
			      "xtrace record instead");
	if (state && (*state == 'Z' || *state == 'X'))
		return refuse(&check->why, -ESRCH, "it has ended");
	if (!proc_status_text(&check->target->status, "VmSize"))
		return refuse(&check->why, -ENOTSUP, "it is a kernel thread, or it is ending");
	if (state && (*state == 'T' || *state == 't') &&
	    !proc_status_number(&check->target->status, "TracerPid", 0))
		return refuse(&check->why, -EBUSY,
			      "it is stopped by a signal; 'kill -CONT %d' continues it", pid);
	return 0;
}

static int take_identity(struct check_context *check)
{
	struct target *target = check->target;
	struct thread_stat stat;

	target->pidfd = (int)syscall(SYS_pidfd_open, target->pid, 0);
	if (process_stat_read(target->pid, &stat))
		return refuse(&check->why, -ESRCH, "it has ended");
	target->start_ticks = stat.start_ticks;
	target->stack_start = stat.stack_start;
	return 0;
}

/* The name of a user, or #NUMBER, as sudo takes it. */
static void name_user(long uid, char *name, size_t name_bytes)
{
	const struct passwd *user = getpwuid((uid_t)uid);

	if (user)
		snprintf(name, name_bytes, "%s", user->pw_name);
	else
		snprintf(name, name_bytes, "'#%ld'", uid);
}

/* Its threads create the files of the trace. */
static int check_user(struct check_context *check)
{
	const struct proc_status *status = &check->target->status;
	pid_t pid = check->target->pid;
	char user[64], own[64];

	name_user(geteuid(), own, sizeof(own));
	for (int i = 0; i < 3; i++) {
		long uid = proc_status_number(status, "Uid", i);

		if (uid == (long)geteuid())
			continue;
		name_user(uid, user, sizeof(user));
		return refuse(&check->why, -EPERM,
			      "it runs as user %s, and this xtrace as %s%s; run 'sudo -u %s xtrace "
			      "attach %d', or without sudo, as root, 'setpriv --reuid=%ld "
			      "--regid=%ld --clear-groups xtrace attach %d'",
			      user, own,
			      geteuid() ? ""
					: ", which cannot attach it either, because the files of "
					  "the trace must belong to that user",
			      user, pid, uid, proc_status_number(status, "Gid", i), pid);
	}
	return 0;
}

static int check_tracer(struct check_context *check)
{
	long tracer = proc_status_number(&check->target->status, "TracerPid", 0);
	struct proc_status status;
	const char *name = NULL;

	if (tracer <= 0)
		return 0;
	if (proc_status_read(&status, (pid_t)tracer))
		name = proc_status_text(&status, "Name");
	return refuse(&check->why, -EBUSY,
		      "it is traced by process %ld (%.*s) already; end that first", tracer,
		      name ? (int)strcspn(name, "\n") : 1, name ? name : "?");
}

/*
 * Works between all that see the same /proc, and saves the process a second load of the library.
 * borrow.c describes what keeps other tracers out. The kernel frees the lock when this process
 * ends.
 */
static int take_lock(struct check_context *check)
{
	struct target *target = check->target;

	target->lock = open(PROC_PATH("%d", target->pid), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (target->lock >= 0 && flock(target->lock, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK)
		return refuse(&check->why, -EBUSY,
			      "another xtrace attach works on it; try again later");
	return 0;
}

/* A child of vfork() executes a program soon, and its parent waits for that. */
static int check_shared_memory(struct check_context *check)
{
	pid_t other = shared_memory_find(check->target->pid);

	for (int i = 0; i < SHARING_WAITS && other; i++) {
		usleep(SHARING_WAIT_US);
		other = shared_memory_find(check->target->pid);
	}
	return other ? refuse(&check->why, -EBUSY,
			      "it shares its memory with process %d, as after vfork(), and would "
			      "change that, too; attach it when one of them has ended or executed "
			      "a program",
			      other)
		     : 0;
}

static int check_ptrace(struct check_context *check)
{
	pid_t pid = check->target->pid;
	struct ptrace_facts facts;
	int error = process_modules_refresh(&check->target->modules, pid);
	uint64_t address = check->target->modules.count ? check->target->modules.list[0].start : 0;

	if (error == -ENOMEM)
		return refuse(&check->why, error, "out of memory");
	if (!error && !process_memory_is_refused(pid, address))
		return 0;
	if (kill(pid, 0) && errno == ESRCH)
		return refuse(&check->why, -ESRCH, "it has ended");
	ptrace_facts_read(&facts, pid);
	ptrace_refusal_explain(&facts, &check->why);
	return -EPERM;
}

/* It tells in which system call a thread waits. Root owns it if the process is not dumpable. */
static int check_calls(struct check_context *check)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/syscall", check->target->pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return refuse(&check->why, -errno, "cannot read %s: %s%s", path, strerror(errno),
			      errno == EACCES ? "; run xtrace attach with CAP_SYS_PTRACE and "
						"CAP_DAC_READ_SEARCH"
					      : "");
	close(fd);
	return 0;
}

static int check_filters(struct check_context *check)
{
	struct target *target = check->target;
	long filters = proc_status_number(&target->status, "Seccomp_filters", 0);
	long own = proc_status_number(&check->own, "Seccomp_filters", 0);
	long mode = proc_status_number(&target->status, "Seccomp", 0);

	if (mode == SECCOMP_MODE_STRICT)
		return refuse(&check->why, -EPERM,
			      "it runs in seccomp's strict mode, which kills it at its next system "
			      "call; start it with xtrace record instead");
	/* Kernels before 5.9 do not count them. */
	if (filters < 0) {
		filters = mode == SECCOMP_MODE_FILTER;
		own = proc_status_number(&check->own, "Seccomp", 0) == SECCOMP_MODE_FILTER;
	}
	if (filters > own)
		return refuse(&check->why, -EPERM,
			      "it has more seccomp filters (%ld) than this xtrace (%ld), so it may "
			      "be killed for what recording needs; run xtrace attach inside its "
			      "container, or start it with xtrace record",
			      filters, own);
	/* The same number of filters does not mean the same filters. */
	if (filters > 0 &&
	    (is_other_namespace(target->pid, "mnt") || is_other_namespace(target->pid, "pid")))
		return refuse(&check->why, -EPERM,
			      "it has seccomp filters of another container, which may kill it for "
			      "what recording needs; run xtrace attach inside its container, or "
			      "start it with xtrace record");
	return 0;
}

static bool has_other_field(const struct target *target, const struct proc_status *status,
			    const char *name)
{
	const char *own = proc_status_text(&target->status, name);
	const char *other = proc_status_text(status, name);
	size_t bytes = own ? strcspn(own, "\n") + 1 : 0;

	return own && other && strncmp(own, other, bytes) != 0;
}

static bool has_other_file(const struct target *target, pid_t tid, const char *name)
{
	struct stat own, other;

	if (stat(PROC_PATH("%d/%s", target->pid, name), &own))
		return false;
	return stat(PROC_PATH("%d/%s", tid, name), &other) || own.st_dev != other.st_dev ||
	       own.st_ino != other.st_ino;
}

/* Files of xtrace would be opened there, and be written to by all threads. */
static bool has_other_descriptors(const struct target *target, pid_t tid)
{
	return syscall(SYS_kcmp, target->pid, tid, KCMP_FILES, 0, 0) > 0;
}

bool target_allows_thread(const struct target *target, const struct proc_status *status,
			  const struct why *why)
{
	static const struct {
		const char *name, *why;
	} fields[] =
		{
			{"Seccomp", "has other seccomp filters than the main thread"},
			{"Seccomp_filters", "has other seccomp filters than the main thread"},
			{"Uid", "runs as another user than the main thread"},
			{"Gid", "runs as another group than the main thread"},
			{"CapEff", "has other capabilities than the main thread"},
		},
	  files[] = {
		  {"root", "has another root directory than the main thread"},
		  {"ns/mnt", "is in another mount namespace than the main thread"},
	  };
	pid_t tid = (pid_t)proc_status_number(status, "Pid", 0);
	const char *found = NULL;

	if (proc_status_number(status, "Tgid", 0) != target->pid)
		found = "has ended";
	for (size_t i = 0; i < sizeof(fields) / sizeof(*fields) && !found; i++)
		if (has_other_field(target, status, fields[i].name))
			found = fields[i].why;
	for (size_t i = 0; i < sizeof(files) / sizeof(*files) && !found; i++)
		if (has_other_file(target, tid, files[i].name))
			found = files[i].why;
	if (!found && has_other_descriptors(target, tid))
		found = "has open files of its own";
	return !found || refuse(why, false, "%s", found);
}

/* A stack of return addresses that the stub's jumps would not match. */
static int check_shadow_stack(struct check_context *check)
{
	const char *features = proc_status_text(&check->target->status, "x86_Thread_features");
	size_t length = features ? strcspn(features, "\n") : 0;

	if (features && memmem(features, length, "shstk", 5))
		return refuse(
			&check->why, -ENOTSUP,
			"it uses a shadow stack (GLIBC_TUNABLES glibc.cpu.x86_shstk); start it "
			"with xtrace record instead");
	return 0;
}

static int check_machine(struct check_context *check)
{
	unsigned char head[EI_NIDENT + 4] = {0};
	int fd;
	uint16_t machine;

	fd = open(PROC_PATH("%d/exe", check->target->pid), O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return refuse(&check->why, -EPERM, "its program cannot be read: %s",
			      strerror(errno));
	if (read(fd, head, sizeof(head)) != sizeof(head))
		head[0] = 0;
	close(fd);
	memcpy(&machine, head + EI_NIDENT + 2, sizeof(machine));
	if (memcmp(head, ELFMAG, SELFMAG) != 0 || head[EI_CLASS] != ELFCLASS64 ||
	    machine != EM_X86_64)
		return refuse(&check->why, -ENOEXEC,
			      "it is no 64-bit x86 program, and xtrace records no others");
	return 0;
}

static const struct process_module *find_module(const struct target *target, const char *beginning)
{
	for (size_t i = 0; i < target->modules.count; i++)
		if (!strncmp(base_name(target->modules.list[i].path), beginning, strlen(beginning)))
			return &target->modules.list[i];
	return NULL;
}

static int check_library_loader(struct check_context *check)
{
	const struct target *target = check->target;

	if (find_module(target, "ld-musl-") || find_module(target, "libc.musl-"))
		return refuse(&check->why, -ENOTSUP,
			      "it uses the C library musl, and xtrace needs glibc; CUDA does, too");
	if (!find_module(target, "libc.so.6") && !find_module(target, "libc-2."))
		return refuse(&check->why, -ENOTSUP,
			      "it is a static binary, which cannot load a library; link it "
			      "dynamically");
	return 0;
}

/* These follow each thread from its creation, and end the process at one that they do not know. */
static int check_sanitizers(struct check_context *check)
{
	enum { TSAN, MSAN, HWASAN, SANITIZERS, THREADS = SANITIZERS, JEMALLOC, ASAN, SYMBOLS };
	static const char *const names[SYMBOLS] = {"__tsan_init",    "__msan_init", "__hwasan_init",
						   "pthread_create", "mallctl",	    "__asan_init"};
	const struct target *target = check->target;

	for (size_t i = 0; i < target->modules.count; i++) {
		const struct process_module *module = &target->modules.list[i];
		struct elf_symbol symbols[SYMBOLS];

		for (size_t n = 0; n < SYMBOLS; n++)
			symbols[n] = (struct elf_symbol){.name = names[n]};
		elf_symbols_find(module->elf->fd, symbols, SYMBOLS);
		for (size_t n = 0; n < SANITIZERS; n++)
			if (symbols[n].address)
				return refuse(&check->why, -ENOTSUP,
					      "'%s' has a sanitizer (%s) that follows each thread; "
					      "start it with xtrace record instead",
					      module->path, names[n]);
		/* A sanitizer without symbols. Those of jemalloc and ASan may be bypassed. */
		if (module_is_program(target->pid, module) && symbols[THREADS].address &&
		    !symbols[JEMALLOC].address && !symbols[ASAN].address)
			return refuse(&check->why, -ENOTSUP,
				      "its program has a pthread_create() of its own, which xtrace "
				      "would bypass; start it with xtrace record instead");
	}
	return 0;
}

static int refuse_without_cuda(struct check_context *check)
{
	bool carries_xtrace;
	pid_t child = find_below(check->target->pid, 0, &carries_xtrace);

	if (child)
		return refuse(&check->why, -ENOENT,
			      "it has not loaded CUDA (libcuda.so), but process %d below it has: "
			      "xtrace %s %d",
			      child, carries_xtrace ? "start" : "attach", child);
	return refuse(&check->why, -ENOENT,
		      "it has not loaded CUDA (libcuda.so); attach it after it has initialised "
		      "CUDA, or start it with xtrace record");
}

static int check_cuda(struct check_context *check)
{
	struct target *target = check->target;
	const struct process_module *cuda = find_module(target, "libcuda.so");

	if (find_module(target, "libxtrace_inject.so") && !cuda)
		return refuse(&check->why, -EEXIST,
			      "it carries xtrace already, which starts when it uses CUDA");
	if (!cuda)
		return refuse_without_cuda(check);
	snprintf(target->cuda_path, sizeof(target->cuda_path), "%s", cuda->path);
	return 0;
}

static bool is_same_content(const char *a, const char *b)
{
	uint8_t blocks[2][COMPARED_BYTES];
	struct stat status[2];
	int fds[2] = {xt_regular_open(a, &status[0]), xt_regular_open(b, &status[1])};
	bool is_same = fds[0] >= 0 && fds[1] >= 0 && status[0].st_size == status[1].st_size;
	uint64_t left = is_same ? (uint64_t)status[0].st_size : 0;

	for (uint64_t at = 0; is_same && left; at += COMPARED_BYTES) {
		size_t bytes = left < COMPARED_BYTES ? (size_t)left : COMPARED_BYTES;

		is_same = !xt_read_at(fds[0], blocks[0], bytes, at) &&
			  !xt_read_at(fds[1], blocks[1], bytes, at) &&
			  !memcmp(blocks[0], blocks[1], bytes);
		left -= bytes;
	}
	for (int i = 0; i < 2; i++)
		if (fds[i] >= 0)
			close(fds[i]);
	return is_same;
}

bool target_sees(const struct target *target, const char *path, const struct why *why)
{
	char there[PATH_MAX + 64];
	struct stat own, other;

	snprintf(there, sizeof(there), "/proc/%d/root%s", target->pid, path);
	if (stat(path, &own))
		return refuse(why, false, "'%s': %s", path, strerror(errno));
	if (stat(there, &other))
		return refuse(why, false, "'%s' is not there in its mount namespace: %s", path,
			      strerror(errno));
	if (own.st_dev == other.st_dev && own.st_ino == other.st_ino)
		return true;
	if (S_ISREG(own.st_mode) && S_ISREG(other.st_mode) && is_same_content(path, there))
		return true;
	return refuse(why, false, "'%s' is another %s in its mount namespace", path,
		      S_ISDIR(own.st_mode) ? "directory" : "file");
}

static int check_library(struct check_context *check)
{
	char there[PATH_MAX + 64], problem[ATTACH_WHY_BYTES / 2];
	struct statvfs system;

	if (!target_sees(check->target, check->library, &(struct why){problem, sizeof(problem)}))
		return refuse(&check->why, -ENOENT,
			      "it cannot load xtrace's library: %s; mount or copy the installation "
			      "of xtrace to the same place there, or run xtrace attach inside its "
			      "container",
			      problem);
	snprintf(there, sizeof(there), "/proc/%d/root%s", check->target->pid, check->library);
	if (!statvfs(there, &system) && system.f_flag & ST_NOEXEC)
		return refuse(
			&check->why, -EACCES,
			"it cannot load '%s': its file system is mounted with noexec; copy the "
			"installation of xtrace to another one",
			check->library);
	return 0;
}

/* The library's files would get these numbers. */
static int check_streams(struct check_context *check)
{
	static const char *const names[] = {"input", "output", "error"};
	struct stat status;

	for (int i = 0; i <= STDERR_FILENO; i++) {
		if (lstat(PROC_PATH("%d/fd/%d", check->target->pid, i), &status) && errno == ENOENT)
			return refuse(&check->why, -EBADF,
				      "its standard %s is closed, so xtrace's files would take its "
				      "place; "
				      "start it with /dev/null there, or with xtrace record",
				      names[i]);
	}
	return 0;
}

/* In an order in which each check may rely on those before it. */
static int (*const checks[])(struct check_context *) = {
	check_exists,	     take_identity, check_user,		  check_tracer,	    take_lock,
	check_shared_memory, check_ptrace,  check_calls,	  check_streams,    check_filters,
	check_shadow_stack,  check_machine, check_library_loader, check_sanitizers, check_cuda,
	check_library,
};

int target_open(struct target *target, pid_t pid, const char *library, const struct why *why)
{
	static struct check_context check;
	int error = 0;

	*target = (struct target){.pid = pid, .lock = -1, .pidfd = -1};
	check = (struct check_context){.target = target, .library = library, .why = *why};
	proc_status_read(&check.own, getpid());
	for (size_t i = 0; i < sizeof(checks) / sizeof(*checks) && !error; i++)
		error = checks[i](&check);
	return error;
}

void target_close(struct target *target)
{
	process_modules_free(&target->modules);
	if (target->lock >= 0)
		close(target->lock);
	if (target->pidfd >= 0)
		close(target->pidfd);
	target->lock = target->pidfd = -1;
}
