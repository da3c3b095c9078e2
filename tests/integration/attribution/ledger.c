/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each thread writes to its own text.
 */
#include "ledger.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define DEPTH_MAX  64
#define TEXT_STEP  (64 << 10)
#define LINE_BYTES 1024

struct block {
	char *text;
	size_t used;
	size_t capacity;
	const char *frames[DEPTH_MAX];
	unsigned depth;
	struct block *next;
};

static __thread struct block *own;
static struct block *blocks; /* protected by lock */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

__attribute__((format(printf, 1, 2))) static void put(const char *format, ...)
{
	va_list arguments;

	if (own->used + LINE_BYTES > own->capacity) {
		own->capacity += TEXT_STEP;
		own->text = realloc(own->text, own->capacity);
		if (!own->text)
			abort();
	}
	va_start(arguments, format);
	own->used += (size_t)vsnprintf(own->text + own->used, LINE_BYTES, format, arguments);
	va_end(arguments);
}

static void put_path(void)
{
	for (unsigned i = 0; i < own->depth; i++)
		put("%s%s", i ? ";" : " ", own->frames[i]);
}

void ledger_begin_thread(void)
{
	char name[16] = "";

	own = calloc(1, sizeof(*own));
	if (!own)
		abort();
	pthread_mutex_lock(&lock);
	own->next = blocks;
	blocks = own;
	pthread_mutex_unlock(&lock);
	pthread_getname_np(pthread_self(), name, sizeof(name));
	put("thread %d %s\n", gettid(), name);
}

void ledger_enter(const char *function)
{
	if (own->depth == DEPTH_MAX)
		abort();
	own->frames[own->depth++] = function;
}

void ledger_leave(void)
{
	own->depth--;
}

CUresult ledger_call(const char *api, CUresult result)
{
	put("call %s %d", api, result);
	put_path();
	put("\n");
	return result;
}

uint64_t ledger_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

void ledger_range(const char *kind, uint64_t before_ns, const char *domain, const uint64_t *key,
		  const char *text)
{
	put("%s %llu %llu %s", kind, (unsigned long long)before_ns,
	    (unsigned long long)ledger_now_ns(), domain ? domain : "-");
	if (key)
		put(" %llu", (unsigned long long)*key);
	if (text) {
		put(" %s", text);
		put_path();
	}
	put("\n");
}

void ledger_write(const char *path)
{
	FILE *file = fopen(path, "w");

	if (!file) {
		perror(path);
		exit(1);
	}
	while (blocks) {
		struct block *block = blocks;

		blocks = block->next;
		fwrite(block->text, 1, block->used, file);
		free(block->text);
		free(block);
	}
	if (fclose(file)) {
		perror(path);
		exit(1);
	}
}
