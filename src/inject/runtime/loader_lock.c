/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lock is an atomic word instead of a pthread mutex, so that even a signal handler that
 * interrupted loader_lock() knows the holder. Two threads compete for it only when the program
 * forks.
 *
 * glibc offers no way to ask who holds its list lock. That lock is a recursive mutex in the
 * loader's exported data. It is found at start-up as the only mutex that this thread holds once
 * inside dl_iterate_phdr() and twice inside a nested call.
 *
 * glibc's load counter is found by elimination: among the words of the loader's data, those are
 * kept that equal the count both before and after it changes. At start-up.
 */
#include "inject/runtime/loader_lock.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "inject/runtime/clock.h"

#define SAMPLE_PERIOD_NS UINT64_C(2000000)

static char *put_number(char *end, unsigned number)
{
	do
		*--end = (char)('0' + number % 10);
	while (number /= 10);
	return end;
}

/* Reads the thread's state from /proc. Uses little stack. */
static bool is_sleeping(int id)
{
	static const char folder[] = "/proc/self/task/", file[] = "/stat";
	char path[48], text[64], *begin = path + sizeof(path) - sizeof(file);
	const char *state;
	long fd, bytes;

	memcpy(begin, file, sizeof(file));
	begin = put_number(begin, (unsigned)id) - (sizeof(folder) - 1);
	memcpy(begin, folder, sizeof(folder) - 1);
	fd = syscall(SYS_openat, AT_FDCWD, begin, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	bytes = syscall(SYS_read, fd, text, sizeof(text) - 1);
	syscall(SYS_close, fd);
	text[bytes > 0 ? bytes : 0] = '\0';
	state = strrchr(text, ')'); /* the name in parentheses may contain anything */
	return state && state[1] == ' ' && state[2] == 'S';
}

uint64_t deadlock_probe_blocked_ns(struct deadlock_probe *probe, int id, unsigned turn,
				   uint64_t now_ns)
{
	int saved_errno = errno;
	bool is_blocked;

	if (turn == probe->turn && now_ns - probe->sampled_ns < SAMPLE_PERIOD_NS)
		return 0;
	probe->sampled_ns = now_ns;
	is_blocked = id && turn == probe->turn && is_sleeping(id);
	errno = saved_errno;
	if (is_blocked)
		return now_ns - probe->since_ns;
	probe->turn = turn;
	probe->since_ns = now_ns;
	return 0;
}

#define RETRY_NS	100000
#define FORK_BLOCKED_NS UINT64_C(100000000)
#define FORK_TIMEOUT_NS UINT64_C(2000000000) /* if the probe sees no deadlock */

static struct {
	_Atomic(pthread_t)
		holder;	       /* 0: none. Unlike a thread id, it is the same in a forked child */
	atomic_int holder_id;  /* 0: not known yet */
	atomic_uint turn;      /* counts the times that it was taken */
	atomic_bool by_fork;   /* the holder is forking */
	atomic_bool iterating; /* the holder has the list lock or waits for it */
} lock;

static const pthread_mutex_t *list_lock; /* NULL: not found */

/*
 * Returns the loader's exported data; *bytes_out is 0 if there is none. Takes the loader's own
 * lock.
 */
static const void *loader_data(size_t *bytes_out)
{
	const ElfW(Sym) *symbol = NULL;
	const void *data = dlsym(RTLD_DEFAULT, "_rtld_global");
	Dl_info info;

	*bytes_out = 0;
	if (!data || !dladdr1(data, &info, (void **)&symbol, RTLD_DL_SYMENT) || !symbol)
		return NULL;
	*bytes_out = symbol->st_size;
	return data;
}

static int thread_id(void)
{
	return (int)syscall(SYS_gettid);
}

static bool is_held_here(const pthread_mutex_t *mutex, int id)
{
	return __atomic_load_n(&mutex->__data.__owner, __ATOMIC_RELAXED) == id;
}

struct search {
	const char *data; /* the loader's exported data */
	size_t data_bytes;
	unsigned depth, found_count;
	const pthread_mutex_t *found;
};

static int find_list_lock(struct dl_phdr_info *info, size_t info_bytes, void *out)
{
	struct search *search = out;
	int id = thread_id();

	(void)info, (void)info_bytes;
	if (!search->depth++) {
		dl_iterate_phdr(find_list_lock, search);
		return 1;
	}
	for (size_t i = 0; i + sizeof(pthread_mutex_t) <= search->data_bytes; i += sizeof(void *)) {
		const pthread_mutex_t *mutex = (const void *)(search->data + i);

		if (mutex->__data.__kind != PTHREAD_MUTEX_RECURSIVE_NP ||
		    mutex->__data.__count != search->depth || !is_held_here(mutex, id))
			continue;
		search->found = mutex;
		search->found_count++;
	}
	return 1;
}

void loader_lock_begin(void)
{
	struct search search = {0};

	search.data = loader_data(&search.data_bytes);
	dl_iterate_phdr(find_list_lock, &search);
	if (search.found_count == 1 && !is_held_here(search.found, thread_id()))
		list_lock = search.found;
}

static bool try_lock(void)
{
	pthread_t none = 0;

	if (!atomic_compare_exchange_strong(&lock.holder, &none, pthread_self()))
		return false;
	atomic_fetch_add(&lock.turn, 1);
	atomic_store(&lock.holder_id, thread_id());
	return true;
}

void loader_lock(void)
{
	while (!try_lock())
		xt_sleep_ns(RETRY_NS);
}

void loader_unlock(void)
{
	atomic_store(&lock.holder_id, 0);
	atomic_store(&lock.holder, 0);
}

int loader_iterate(int (*callback)(struct dl_phdr_info *, size_t, void *), void *data)
{
	int result;

	loader_lock();
	atomic_store(&lock.iterating, true);
	result = dl_iterate_phdr(callback, data);
	atomic_store(&lock.iterating, false);
	loader_unlock();
	return result;
}

/* Whether the holder waits for the calling thread. */
static bool is_blocking_holder(struct deadlock_probe *probe, uint64_t now_ns)
{
	if (list_lock && atomic_load(&lock.iterating) && is_held_here(list_lock, thread_id()))
		return true;
	return deadlock_probe_blocked_ns(probe, atomic_load(&lock.holder_id),
					 atomic_load(&lock.turn), now_ns) >= FORK_BLOCKED_NS;
}

void loader_lock_before_fork(void)
{
	uint64_t now_ns = monotonic_ns(), deadline_ns = now_ns + FORK_TIMEOUT_NS;
	struct deadlock_probe probe = {0};

	if (atomic_load(&lock.holder) == pthread_self())
		return;
	for (; !try_lock(); now_ns = monotonic_ns()) {
		if (now_ns >= deadline_ns || is_blocking_holder(&probe, now_ns))
			return;
		xt_sleep_ns(RETRY_NS);
	}
	atomic_store(&lock.by_fork, true);
}

static bool is_held_by_this_fork(void)
{
	return atomic_load(&lock.holder) == pthread_self() && atomic_load(&lock.by_fork);
}

void loader_lock_in_parent(void)
{
	if (!is_held_by_this_fork())
		return;
	atomic_store(&lock.by_fork, false);
	loader_unlock();
}

void loader_lock_in_child(void)
{
	bool is_kept = atomic_load(&lock.holder) == pthread_self() && !is_held_by_this_fork();

	atomic_store(&lock.by_fork, false);
	if (is_kept)
		return;
	/* The holder was a thread that the child does not have. */
	atomic_store(&lock.iterating, false);
	loader_unlock();
}

#define CANDIDATES_MAX 64

static uint64_t polled_generation;
HOT_STATE const uint64_t *loader_generation_word = &polled_generation;

static struct {
	const uint64_t *words[CANDIDATES_MAX];
	unsigned count;
	uint64_t first_adds;
	uint64_t last_adds;
	bool saw_unload; /* then the counter cannot be the number of loaded libraries */
} watch;

struct load_counts {
	uint64_t adds;
	uint64_t subs;
};

static int read_counts(struct dl_phdr_info *info, size_t info_bytes, void *out)
{
	struct load_counts *counts = out;

	if (info_bytes < offsetof(struct dl_phdr_info, dlpi_subs) + sizeof(info->dlpi_subs))
		return 1;
	counts->adds = info->dlpi_adds;
	counts->subs = info->dlpi_subs;
	return 1;
}

static struct load_counts load_counts(void)
{
	struct load_counts counts = {0, 0};

	loader_iterate(read_counts, &counts);
	return counts;
}

void loader_watch_begin(void)
{
	struct load_counts counts = load_counts();
	size_t bytes;
	const uint64_t *words = loader_data(&bytes);

	watch.count = 0;
	watch.first_adds = watch.last_adds = counts.adds;
	for (size_t i = 0; i < bytes / sizeof(*words); i++) {
		if (words[i] != counts.adds)
			continue;
		if (watch.count == CANDIDATES_MAX) {
			watch.count = 0;
			return;
		}
		watch.words[watch.count++] = &words[i];
	}
}

void loader_watch_narrow(void)
{
	struct load_counts counts = load_counts();
	unsigned kept = 0;

	for (unsigned i = 0; i < watch.count; i++)
		if (*watch.words[i] == counts.adds)
			watch.words[kept++] = watch.words[i];
	watch.count = kept;
	watch.last_adds = counts.adds;
	if (counts.subs)
		watch.saw_unload = true;
}

bool loader_watch_end(void)
{
	bool moved = watch.last_adds != watch.first_adds;

	loader_watch_poll();
	if (watch.count != 1 || !moved || !watch.saw_unload)
		return false;
	__atomic_store_n(&loader_generation_word, watch.words[0], __ATOMIC_RELAXED);
	return true;
}

uint64_t loader_watch_poll(void)
{
	struct load_counts counts;

	if (loader_generation_word != &polled_generation)
		return loader_generation();
	counts = load_counts();
	__atomic_store_n(&polled_generation, counts.adds, __ATOMIC_RELAXED);
	return counts.adds;
}
