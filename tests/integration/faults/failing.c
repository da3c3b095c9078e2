/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Preloaded before the tracer: makes one of the tracer's calls into the C library fail. The return
 * address tells whose a call is: code of the tracer, or of the libunwind that it loaded.
 * XT_FAILING=FUNCTION:SITE:TIME:HOW selects the call and the failure. All call sites and their
 * numbers of calls are stored in the file XT_FAILING_STATE, so that a test can go through all of
 * them. Any thread; no lock, no malloc.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define SITES_MAX 2048
#define ANY_TIME  0 /* every call from the first on */
#define LIBRARIES 2

#define FUNCTIONS(FUNCTION)                                                                        \
	FUNCTION(malloc)                                                                           \
	FUNCTION(calloc)                                                                           \
	FUNCTION(realloc)                                                                          \
	FUNCTION(mmap)                                                                             \
	FUNCTION(mprotect)                                                                         \
	FUNCTION(open)                                                                             \
	FUNCTION(read)                                                                             \
	FUNCTION(pread)                                                                            \
	FUNCTION(write)                                                                            \
	FUNCTION(pwrite)                                                                           \
	FUNCTION(posix_fallocate)                                                                  \
	FUNCTION(ftruncate)                                                                        \
	FUNCTION(fstat)                                                                            \
	FUNCTION(fcntl)                                                                            \
	FUNCTION(flock)                                                                            \
	FUNCTION(mkdir)                                                                            \
	FUNCTION(unlink)                                                                           \
	FUNCTION(dlopen)                                                                           \
	FUNCTION(pthread_create)                                                                   \
	FUNCTION(realpath)                                                                         \
	FUNCTION(readlink)                                                                         \
	FUNCTION(getcwd)                                                                           \
	FUNCTION(getrandom)                                                                        \
	FUNCTION(process_vm_readv)

#define MEMBER(name) F_##name,
enum function { FUNCTIONS(MEMBER) FUNCTION_COUNT };
#define NAME(name) #name,
static const char *const names[] = {FUNCTIONS(NAME)};

enum how {
	HOW_FAIL = 'f', /* fail as if the resource were used up */
	HOW_HALF = 'h', /* write half, report it, then fail */
	HOW_KILL = 'k', /* kill the process */
};

/* The file: struck_count, then the call sites. */
struct site {
	_Atomic uint64_t key; /* 1 + function + 256 × offset; 0: none */
	_Atomic uint64_t count;
};
static struct state {
	_Atomic uint64_t struck_count;
	uint64_t unused;
	struct site sites[SITES_MAX];
} * state;

static struct {
	uint64_t key;
	uint64_t time;
	enum how how;
} order;

/* The real functions. Looked up before anything else runs: later the loader's locks may be held. */
static void *next[FUNCTION_COUNT];

static struct {
	uintptr_t start, end, base;
	unsigned number;
} libraries[LIBRARIES];
static atomic_uint library_count;

static int look(struct dl_phdr_info *info, size_t bytes, void *wanted)
{
	unsigned n = atomic_load(&library_count);

	(void)bytes;
	if (!strstr(info->dlpi_name, wanted) || n == LIBRARIES)
		return 0;
	libraries[n].base = info->dlpi_addr;
	libraries[n].start = UINTPTR_MAX;
	libraries[n].number = n;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		uintptr_t start = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;

		if (info->dlpi_phdr[i].p_type != PT_LOAD)
			continue;
		if (start < libraries[n].start)
			libraries[n].start = start;
		if (start + info->dlpi_phdr[i].p_memsz > libraries[n].end)
			libraries[n].end = start + info->dlpi_phdr[i].p_memsz;
	}
	atomic_store(&library_count, n + 1);
	return 1;
}

static const char *find(char **environment, const char *name)
{
	for (; *environment; environment++)
		if (!strncmp(*environment, name, strlen(name)) &&
		    (*environment)[strlen(name)] == '=')
			return *environment + strlen(name) + 1;
	return NULL;
}

/*
 * Linked to run before the constructors of all other libraries, so that their calls are seen too.
 * getenv() does not work yet.
 */
__attribute__((constructor)) static void begin(int argc, char **argv, char **environment)
{
	const char *path = find(environment, "XT_FAILING_STATE");
	const char *text = find(environment, "XT_FAILING");
	int fd = path ? (int)syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CREAT | O_CLOEXEC, 0600)
		      : -1;
	unsigned long site, time;
	char name[32], how;

	(void)argc, (void)argv;
	for (unsigned f = 0; f < FUNCTION_COUNT; f++)
		next[f] = dlsym(RTLD_NEXT, names[f]);
	if (fd < 0 || syscall(SYS_ftruncate, fd, sizeof(*state)))
		return;
	state = (struct state *)syscall(SYS_mmap, NULL, sizeof(*state), PROT_READ | PROT_WRITE,
					MAP_SHARED, fd, 0L);
	syscall(SYS_close, fd);
	if (text && sscanf(text, "%31[^:]:%lx:%lu:%c", name, &site, &time, &how) == 4)
		for (unsigned f = 0; f < FUNCTION_COUNT; f++)
			if (!strcmp(names[f], name)) {
				order.key = 1 + f + 256 * site;
				order.time = time;
				order.how = (enum how)how;
			}
	dl_iterate_phdr(look, "libxtrace_inject.so");
}

/* Counts the calls of this call site, including this one. */
static uint64_t count_site(uint64_t key)
{
	for (size_t i = key * 31 % SITES_MAX, n = 0; n < SITES_MAX; n++, i = (i + 1) % SITES_MAX) {
		uint64_t found = 0;

		if (atomic_compare_exchange_strong(&state->sites[i].key, &found, key) ||
		    found == key)
			return atomic_fetch_add(&state->sites[i].count, 1) + 1;
	}
	return 0;
}

static bool strikes(enum function function, const void *return_address)
{
	uintptr_t address = (uintptr_t)return_address;
	unsigned count = atomic_load(&library_count);
	uint64_t key = 0, time;

	for (unsigned i = 0; state && i < count; i++)
		if (address >= libraries[i].start && address < libraries[i].end)
			key = 1 + (uint64_t)function +
			      256 * (2 * (address - libraries[i].base) + libraries[i].number);
	if (!key)
		return false;
	time = count_site(key);
	if (key != order.key || (order.time != ANY_TIME && order.time != time))
		return false;
	atomic_fetch_add(&state->struck_count, 1);
	if (order.how == HOW_KILL)
		syscall(SYS_kill, getpid(), SIGKILL);
	return true;
}

#define STRIKES(function) strikes(F_##function, __builtin_return_address(0))
#define NEXT(name)	  ((__typeof__(&(name)))next[F_##name])
#define STAND_IN	  __attribute__((visibility("default")))

/* The C library's internal names, which dlsym() itself needs. */
void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *memory, size_t bytes);

/* Returns the error that the call returns when a resource is refused. */
#define FAIL(value, number)                                                                        \
	do {                                                                                       \
		errno = (number);                                                                  \
		return (value);                                                                    \
	} while (0)

STAND_IN void *malloc(size_t bytes)
{
	if (STRIKES(malloc))
		FAIL(NULL, ENOMEM);
	return __libc_malloc(bytes);
}

STAND_IN void *calloc(size_t count, size_t bytes)
{
	if (STRIKES(calloc))
		FAIL(NULL, ENOMEM);
	return __libc_calloc(count, bytes);
}

STAND_IN void *realloc(void *memory, size_t bytes)
{
	if (STRIKES(realloc))
		FAIL(NULL, ENOMEM);
	return __libc_realloc(memory, bytes);
}

STAND_IN void *mmap(void *where, size_t bytes, int protection, int flags, int fd, off_t offset)
{
	if (STRIKES(mmap))
		FAIL(MAP_FAILED, ENOMEM);
	return NEXT(mmap)(where, bytes, protection, flags, fd, offset);
}

STAND_IN int mprotect(void *where, size_t bytes, int protection)
{
	if (STRIKES(mprotect))
		FAIL(-1, ENOMEM);
	return NEXT(mprotect)(where, bytes, protection);
}

STAND_IN int open(const char *path, int flags, ...)
{
	mode_t mode;
	va_list args;

	va_start(args, flags);
	mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(args, mode_t) : 0;
	va_end(args);
	if (STRIKES(open))
		FAIL(-1, EMFILE);
	return NEXT(open)(path, flags, mode);
}

STAND_IN ssize_t read(int fd, void *out, size_t bytes)
{
	if (STRIKES(read))
		FAIL(-1, EIO);
	return NEXT(read)(fd, out, bytes);
}

STAND_IN ssize_t pread(int fd, void *out, size_t bytes, off_t offset)
{
	if (STRIKES(pread))
		FAIL(-1, EIO);
	return NEXT(pread)(fd, out, bytes, offset);
}

STAND_IN ssize_t write(int fd, const void *data, size_t bytes)
{
	if (STRIKES(write))
		FAIL(-1, EPIPE);
	return NEXT(write)(fd, data, bytes);
}

STAND_IN ssize_t pwrite(int fd, const void *data, size_t bytes, off_t offset)
{
	static atomic_bool half_done;

	if (STRIKES(pwrite)) {
		if (order.how == HOW_HALF && bytes > 1 && !atomic_exchange(&half_done, true))
			return NEXT(pwrite)(fd, data, bytes / 2, offset);
		FAIL(-1, ENOSPC);
	}
	return NEXT(pwrite)(fd, data, bytes, offset);
}

STAND_IN int posix_fallocate(int fd, off_t offset, off_t bytes)
{
	if (STRIKES(posix_fallocate))
		return ENOSPC;
	return NEXT(posix_fallocate)(fd, offset, bytes);
}

STAND_IN int ftruncate(int fd, off_t bytes)
{
	if (STRIKES(ftruncate))
		FAIL(-1, EIO);
	return NEXT(ftruncate)(fd, bytes);
}

STAND_IN int fstat(int fd, struct stat *status)
{
	if (STRIKES(fstat))
		FAIL(-1, EIO);
	return NEXT(fstat)(fd, status);
}

STAND_IN int fcntl(int fd, int command, ...)
{
	va_list args;
	void *argument;

	va_start(args, command);
	argument = va_arg(args, void *);
	va_end(args);
	if (STRIKES(fcntl))
		FAIL(-1, EMFILE);
	return NEXT(fcntl)(fd, command, argument);
}

STAND_IN int flock(int fd, int operation)
{
	if (STRIKES(flock))
		FAIL(-1, ENOLCK);
	return NEXT(flock)(fd, operation);
}

STAND_IN int mkdir(const char *path, mode_t mode)
{
	if (STRIKES(mkdir))
		FAIL(-1, EACCES);
	return NEXT(mkdir)(path, mode);
}

STAND_IN int unlink(const char *path)
{
	if (STRIKES(unlink))
		FAIL(-1, EACCES);
	return NEXT(unlink)(path);
}

STAND_IN void *dlopen(const char *path, int flags)
{
	void *handle;

	if (STRIKES(dlopen))
		FAIL(NULL, 0);
	handle = NEXT(dlopen)(path, flags);
	if (handle && path && strstr(path, "libunwind") && atomic_load(&library_count) == 1)
		dl_iterate_phdr(look, "libunwind");
	return handle;
}

STAND_IN int pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
			    void *(*main_function)(void *), void *argument)
{
	if (STRIKES(pthread_create))
		return EAGAIN;
	return NEXT(pthread_create)(thread, attributes, main_function, argument);
}

STAND_IN char *realpath(const char *path, char *out)
{
	if (STRIKES(realpath))
		FAIL(NULL, ENOENT);
	return NEXT(realpath)(path, out);
}

STAND_IN ssize_t readlink(const char *path, char *out, size_t bytes)
{
	if (STRIKES(readlink))
		FAIL(-1, EACCES);
	return NEXT(readlink)(path, out, bytes);
}

STAND_IN char *getcwd(char *out, size_t bytes)
{
	if (STRIKES(getcwd))
		FAIL(NULL, ENOENT);
	return NEXT(getcwd)(out, bytes);
}

STAND_IN ssize_t getrandom(void *out, size_t bytes, unsigned flags)
{
	if (STRIKES(getrandom))
		FAIL(-1, ENOSYS);
	return NEXT(getrandom)(out, bytes, flags);
}

STAND_IN ssize_t process_vm_readv(pid_t pid, const struct iovec *here, unsigned long here_count,
				  const struct iovec *there, unsigned long there_count,
				  unsigned long flags)
{
	if (STRIKES(process_vm_readv))
		FAIL(-1, EPERM);
	return NEXT(process_vm_readv)(pid, here, here_count, there, there_count, flags);
}
