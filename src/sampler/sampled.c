/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/sampled.h"

#include <errno.h>
#include <string.h>

#include "log/base/grow.h"

/* The index of the first process whose pid is not smaller. */
static size_t position(const struct process_table *table, pid_t pid)
{
	size_t low = 0, high = table->count;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (table->list[middle]->pid < pid)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

struct sampled_process *process_table_find(const struct process_table *table, pid_t pid)
{
	size_t at = position(table, pid);

	return at < table->count && table->list[at]->pid == pid ? table->list[at] : NULL;
}

int process_table_add(struct process_table *table, struct sampled_process *process)
{
	size_t at = position(table, process->pid);

	if (grow(&table->list, &table->capacity, table->count + 1, sizeof(*table->list)))
		return -ENOMEM;
	memmove(table->list + at + 1, table->list + at, (table->count - at) * sizeof(*table->list));
	table->list[at] = process;
	table->count++;
	return 0;
}

void process_table_remove(struct process_table *table, struct sampled_process *process)
{
	size_t at = position(table, process->pid);

	table->count--;
	memmove(table->list + at, table->list + at + 1, (table->count - at) * sizeof(*table->list));
}

struct sampled_thread *sampled_thread_find(const struct sampled_process *process, pid_t tid)
{
	size_t low = 0, high = process->thread_count;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (process->threads[middle]->tid < tid)
			low = middle + 1;
		else
			high = middle;
	}
	return low < process->thread_count && process->threads[low]->tid == tid
		       ? process->threads[low]
		       : NULL;
}

struct sampled_thread *sampled_process_main(const struct sampled_process *process)
{
	return sampled_thread_find(process, process->pid);
}
