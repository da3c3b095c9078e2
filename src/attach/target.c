/* SPDX-License-Identifier: Apache-2.0 */
#include "attach/target.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "attach/proc_status.h"
#include "attach/ptrace_refusal.h"
#include "sampler/elf_image.h"
#include "sampler/process_memory.h"
#include "sampler/thread_files.h"

#define ENVIRONMENT_BYTES_MAX (1u << 20)

struct check_context {
	struct target *target;
	struct proc_status status, own;
	const char *library;
	char *why;
	size_t why_bytes;
};

__attribute__((format(printf, 3, 4))) static int refuse(const struct check_context *check,
							int error, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(check->why, check->why_bytes, format, args);
	va_end(args);
	return error;
}

static int check_exists(struct check_context *check)
{
	pid_t pid = check->target->pid;
	const char *state;
	long group;

	if (!proc_status_read(&check->status, pid))
		return refuse(
			check, -ESRCH,
			"there is no such process here; if it runs in a container, use the id "
			"that the process has outside, or run xtrace attach inside");
	group = proc_status_number(&check->status, "Tgid", 0);
	if (group != pid)
		return refuse(check, -EINVAL, "it is a thread of process %ld; attach that", group);
	if (pid == getpid())
		return refuse(check, -EINVAL, "it is this xtrace itself");
	state = proc_status_text(&check->status, "State");
	if (state && (*state == 'Z' || *state == 'X'))
		return refuse(check, -ESRCH, "it has ended");
	if (state && (*state == 'T' || *state == 't') &&
	    !proc_status_number(&check->status, "TracerPid", 0))
		return refuse(check, -EBUSY,
			      "it is stopped by a signal; 'kill -CONT %d' continues it", pid);
	return 0;
}

static int check_user(struct check_context *check)
{
	uid_t own = geteuid();

	for (int i = 0; i < 3; i++) {
		long uid = proc_status_number(&check->status, "Uid", i);

		if (uid != (long)own)
			return refuse(check, -EPERM,
				      "it runs as user %ld, and this xtrace as user %u; run it as "
				      "that user: sudo -u '#%ld' xtrace attach …",
				      uid, own, uid);
	}
	return 0;
}

static int check_tracer(struct check_context *check)
{
	long tracer = proc_status_number(&check->status, "TracerPid", 0);
	struct proc_status status;
	const char *name = NULL;

	if (tracer <= 0)
		return 0;
	if (proc_status_read(&status, (pid_t)tracer))
		name = proc_status_text(&status, "Name");
	return refuse(check, -EBUSY, "it is traced by process %ld (%.*s) already; end that first",
		      tracer, name ? (int)strcspn(name, "\n") : 1, name ? name : "?");
}

/* Works between all that see the same /proc. The kernel frees it when this process ends. */
static int take_lock(struct check_context *check)
{
	struct target *target = check->target;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d", target->pid);
	target->lock = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (target->lock >= 0 && flock(target->lock, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK)
		return refuse(check, -EBUSY, "another xtrace attach works on it; try again later");
	return 0;
}

static int check_ptrace(struct check_context *check)
{
	pid_t pid = check->target->pid;
	struct ptrace_facts facts;
	int error = process_modules_refresh(&check->target->modules, pid);
	uint64_t address = check->target->modules.count ? check->target->modules.list[0].start : 0;

	if (error == -ENOMEM)
		return refuse(check, error, "out of memory");
	if (!error && !process_memory_is_refused(pid, address))
		return 0;
	if (kill(pid, 0) && errno == ESRCH)
		return refuse(check, -ESRCH, "it has ended");
	ptrace_facts_read(&facts, pid);
	ptrace_refusal_explain(&facts, check->why, check->why_bytes);
	return -EPERM;
}

static int check_filters(struct check_context *check)
{
	long filters = proc_status_number(&check->status, "Seccomp_filters", 0);
	long own = proc_status_number(&check->own, "Seccomp_filters", 0);

	if (proc_status_number(&check->status, "Seccomp", 0) == 1)
		return refuse(check, -EPERM,
			      "it runs in seccomp's strict mode, which kills it at its next system "
			      "call; start it with xtrace record instead");
	/* Kernels before 5.9 do not count them. */
	if (filters < 0) {
		filters = proc_status_number(&check->status, "Seccomp", 0) == 2;
		own = proc_status_number(&check->own, "Seccomp", 0) == 2;
	}
	if (filters > own)
		return refuse(check, -EPERM,
			      "it has %ld seccomp filters and this xtrace has %ld, so it may be "
			      "killed for what recording needs; run xtrace attach inside its "
			      "container, or start it with xtrace record",
			      filters, own);
	return 0;
}

/* A stack of return addresses that the stub's jumps would not match. */
static int check_shadow_stack(struct check_context *check)
{
	const char *features = proc_status_text(&check->status, "x86_Thread_features");
	size_t length = features ? strcspn(features, "\n") : 0;

	if (features && memmem(features, length, "shstk", 5))
		return refuse(
			check, -ENOTSUP,
			"it uses a shadow stack (GLIBC_TUNABLES glibc.cpu.x86_shstk); start it "
			"with xtrace record instead");
	return 0;
}

static int check_machine(struct check_context *check)
{
	unsigned char head[EI_NIDENT + 4] = {0};
	char path[64];
	int fd;
	uint16_t machine;

	snprintf(path, sizeof(path), "/proc/%d/exe", check->target->pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return refuse(check, -EPERM, "its program cannot be read: %s", strerror(errno));
	if (read(fd, head, sizeof(head)) != sizeof(head))
		head[0] = 0;
	close(fd);
	memcpy(&machine, head + EI_NIDENT + 2, sizeof(machine));
	if (memcmp(head, ELFMAG, SELFMAG) != 0 || head[EI_CLASS] != ELFCLASS64 ||
	    machine != EM_X86_64)
		return refuse(check, -ENOEXEC,
			      "it is no 64-bit x86 program, and xtrace records no others");
	return 0;
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
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
		return refuse(check, -ENOTSUP,
			      "it uses the C library musl, and xtrace needs glibc; CUDA does, too");
	if (!find_module(target, "libc.so.6") && !find_module(target, "libc-2."))
		return refuse(check, -ENOTSUP,
			      "it is a static binary, which cannot load a library; link it "
			      "dynamically");
	return 0;
}

static int check_cuda(struct check_context *check)
{
	struct target *target = check->target;
	const struct process_module *cuda = find_module(target, "libcuda.so");

	if (find_module(target, "libxtrace_inject.so") && !cuda)
		return refuse(check, -EEXIST,
			      "it carries xtrace already, which starts when it uses CUDA");
	if (!cuda)
		return refuse(check, -ENOENT,
			      "it has not loaded CUDA (libcuda.so); attach it after it has "
			      "initialised CUDA, or start it with xtrace record");
	snprintf(target->cuda_path, sizeof(target->cuda_path), "%s", cuda->path);
	return 0;
}

static bool is_same_content(const char *a, const char *b)
{
	bool is_same = false;
	const char *const paths[] = {a, b};
	void *bytes[2] = {MAP_FAILED, MAP_FAILED};
	size_t sizes[2] = {0, 0};

	for (int i = 0; i < 2; i++) {
		int fd = open(paths[i], O_RDONLY | O_CLOEXEC | O_NONBLOCK);
		struct stat status;

		if (fd < 0)
			continue;
		if (!fstat(fd, &status) && S_ISREG(status.st_mode) && status.st_size > 0) {
			sizes[i] = (size_t)status.st_size;
			bytes[i] = mmap(NULL, sizes[i], PROT_READ, MAP_PRIVATE, fd, 0);
		}
		close(fd);
	}
	if (bytes[0] != MAP_FAILED && bytes[1] != MAP_FAILED)
		is_same = sizes[0] == sizes[1] && !memcmp(bytes[0], bytes[1], sizes[0]);
	for (int i = 0; i < 2; i++)
		if (bytes[i] != MAP_FAILED)
			munmap(bytes[i], sizes[i]);
	return is_same;
}

bool target_sees(const struct target *target, const char *path, char *why, size_t why_bytes)
{
	char there[PATH_MAX + 64];
	struct stat own, other;

	snprintf(there, sizeof(there), "/proc/%d/root%s", target->pid, path);
	if (stat(path, &own)) {
		snprintf(why, why_bytes, "'%s': %s", path, strerror(errno));
		return false;
	}
	if (stat(there, &other)) {
		snprintf(why, why_bytes, "'%s' is not there in its mount namespace: %s", path,
			 strerror(errno));
		return false;
	}
	if (own.st_dev == other.st_dev && own.st_ino == other.st_ino)
		return true;
	if (S_ISREG(own.st_mode) && S_ISREG(other.st_mode) && is_same_content(path, there))
		return true;
	snprintf(why, why_bytes, "'%s' is another %s in its mount namespace", path,
		 S_ISDIR(own.st_mode) ? "directory" : "file");
	return false;
}

static int check_library(struct check_context *check)
{
	char there[PATH_MAX + 64], problem[ATTACH_WHY_BYTES / 2];
	struct statvfs system;

	if (!target_sees(check->target, check->library, problem, sizeof(problem)))
		return refuse(check, -ENOENT,
			      "it cannot load xtrace's library: %s; mount or copy the installation "
			      "of xtrace to the same place there, or run xtrace attach inside its "
			      "container",
			      problem);
	snprintf(there, sizeof(there), "/proc/%d/root%s", check->target->pid, check->library);
	if (!statvfs(there, &system) && system.f_flag & ST_NOEXEC)
		return refuse(
			check, -EACCES,
			"it cannot load '%s': its file system is mounted with noexec; copy the "
			"installation of xtrace to another one",
			check->library);
	return 0;
}

/* In an order in which each check may rely on those before it. */
static int (*const checks[])(struct check_context *) = {
	check_exists,	      check_user,    check_tracer,	 take_lock,
	check_ptrace,	      check_filters, check_shadow_stack, check_machine,
	check_library_loader, check_cuda,    check_library,
};

int target_open(struct target *target, pid_t pid, const char *library, char *why, size_t why_bytes)
{
	static struct check_context check;
	int error = 0;

	*target = (struct target){.pid = pid, .lock = -1};
	check = (struct check_context){
		.target = target, .library = library, .why = why, .why_bytes = why_bytes};
	proc_status_read(&check.own, getpid());
	for (size_t i = 0; i < sizeof(checks) / sizeof(*checks) && !error; i++)
		error = checks[i](&check);
	return error;
}

char *target_variable(const struct target *target, const char *name)
{
	char path[64], *text = malloc(ENVIRONMENT_BYTES_MAX), *value = NULL;
	size_t length = strlen(name);
	ssize_t bytes;

	if (!text)
		return NULL;
	snprintf(path, sizeof(path), "/proc/%d/environ", target->pid);
	bytes = proc_file_read(path, text, ENVIRONMENT_BYTES_MAX);
	for (const char *entry = text; bytes > 0 && entry < text + bytes;
	     entry += strlen(entry) + 1)
		if (!strncmp(entry, name, length) && entry[length] == '=') {
			value = strdup(entry + length + 1);
			break;
		}
	free(text);
	return value;
}

void target_close(struct target *target)
{
	process_modules_free(&target->modules);
	if (target->lock >= 0)
		close(target->lock);
	target->lock = -1;
}
