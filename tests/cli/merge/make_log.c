/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Creates and damages logs for the tests of xtrace merge.
 *
 * - "make_log SCENARIO FILE [N]" creates a log. The rows of scenario "script" come from stdin; see
 *   log_script.c. N is the id of its process.
 * - "make_log damage FILE KIND" changes a byte in the first chunk of that kind.
 */
#include <elf.h>
#include <errno.h>
#include <link.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "log_rows.h"
#include "xtrace/reader.h"

static void make_normal(struct log *log, uint64_t n)
{
	(void)n;
	for (int i = 0; i < 3; i++) {
		launch(log, 1, STACK_FORWARD, 1, 1, 1000001);
		launch(log, 1, STACK_ATTENTION, 1, 2, 20000);
		launch(log, 1, STACK_ATTENTION, 1, 3, 345);
	}
}

static void make_threads(struct log *log, uint64_t n)
{
	(void)n;
	put_thread(log, 2, 4322, "loader");
	put_thread(log, 3, 4323, "");
	put_stream(log, 2, 0, 1, 13);
	put_stream(log, 3, 1, 2, 7);
	for (uint64_t i = 0; i < 4; i++) {
		launch(log, 1, STACK_FORWARD, 1, 1, 30000 + i);
		launch(log, 2, STACK_WORKER, 2, 2, 9000);
		launch(log, 3, STACK_WORKER, 3, 2, 100);
	}
}

/* Two replays of a graph with overlapping kernels. Some kernels precede their call in the file. */
static void make_graph(struct log *log, uint64_t n)
{
	(void)n;
	launch(log, 1, STACK_FORWARD, 1, 1, 4000);
	put_kernel(log, 3, 1, 2, START_NS + 35000, 1000, 78);
	flush_kind(log, XT_KIND_KERNEL);
	for (uint64_t replay = 0; replay < 2; replay++) {
		put_call(log, 1, API_GRAPH, STACK_GRAPH, 0);
		put_kernel(log, log->correlation, 1, 1, log->now_ns + 4000, 7000, 77);
		if (!replay)
			put_kernel(log, log->correlation, 1, 2, log->now_ns + 5000, 1000, 78);
	}
}

/* The second call is lost; the third has a lost stack; the fourth has none. */
static void make_lost(struct log *log, uint64_t n)
{
	(void)n;
	launch(log, 1, STACK_FORWARD, 1, 1, 1000);
	put_kernel(log, ++log->correlation, 1, 1, log->now_ns + 20000, 200, 0);
	launch(log, 1, 999, 1, 2, 30);
	launch(log, 1, 0, 1, 2, 4);
	put_call(log, 1, API_LAUNCH, STACK_FORWARD, 700);
	put_call(log, 1, API_LAUNCH, STACK_FORWARD, 0);
	put_account(log, "calls.lost.ring_full", 1);
	put_account(log, "stacks.lost", 1);
}

static void make_empty(struct log *log, uint64_t n)
{
	(void)log;
	(void)n;
}

static void make_no_kernels(struct log *log, uint64_t n)
{
	(void)n;
	put_call(log, 1, API_LAUNCH, STACK_FORWARD, 0);
}

/*
 * Names that could break a format or a terminal; addresses without names; truncated and unusual
 * stacks.
 */
static void make_hostile(struct log *log, uint64_t n)
{
	static const int hostile[] = {CU_INTERNAL, HOSTILE, LOST, NOWHERE, MAIN, -1};
	static const int plugin[] = {PLUGIN_OLD_RUN, MAIN, -1};
	static const int none[] = {-1};

	(void)n;
	put_thread(log, 1, 4321, "\"thread\\\n\xc3\x28");
	put_shape(log, 4, "k;\"\\\x01\xe2\x82 1", 1);
	put_shape(log, 5, "", 1);
	put_shape(log, 6, "_ZN5wrongEvvvZZZ", 1);
	put_stack(log, STACK_MORE, 0, START_NS + MS, hostile);
	put_stack(log, STACK_MORE + 1, XT_STACK_TRUNCATED, START_NS + 15 * MS, plugin);
	put_stack(log, STACK_MORE + 2, XT_STACK_TRUNCATED, START_NS + 25 * MS, plugin);
	put_stack(log, STACK_MORE + 3, XT_STACK_TRUNCATED, START_NS + MS, none);
	for (uint64_t i = 0; i < 4; i++)
		launch(log, 1, STACK_MORE + i, 1, 4 + i % 3, 100);
	launch(log, 77, STACK_FORWARD, 55, 66, 5);
	put_call(log, 1, 12345, STACK_MORE, 0);
	put_kernel(log, log->correlation, 1, 1, log->now_ns, UINT32_MAX, 0);
}

/* Reads the build id of this program from its notes in memory. */
static int find_build_id(struct dl_phdr_info *info, size_t info_bytes, void *result)
{
	struct xt_bytes *build_id = result;

	(void)info_bytes;
	for (int p = 0; p < info->dlpi_phnum; p++) {
		const ElfW(Phdr) *header = &info->dlpi_phdr[p];
		const char *note = (const char *)(info->dlpi_addr + header->p_vaddr);
		const char *end = note + header->p_memsz;

		while (header->p_type == PT_NOTE && note < end) {
			const ElfW(Nhdr) *n = (const ElfW(Nhdr) *)note;
			const char *content = note + sizeof(*n) + ((n->n_namesz + 3) & ~3u);

			if (n->n_type == NT_GNU_BUILD_ID)
				*build_id = (struct xt_bytes){content, n->n_descsz};
			note = content + ((n->n_descsz + 3) & ~3u);
		}
	}
	return 1; /* the program is the first entry; skip libraries */
}

/* Two launches in a program that really exists: this one, in main() and own_work(). */
__attribute__((noinline)) static void own_work(struct log *log, uint64_t stack)
{
	launch(log, 1, stack, 1, 1, 1234);
}

int main(int argc, char **argv);

static void make_own(struct log *log, uint64_t n)
{
	uint64_t frames[] = {(uint64_t)(uintptr_t)own_work + 1, (uint64_t)(uintptr_t)main + 1};
	extern const char __executable_start[], _end[];
	struct xt_bytes build_id = {NULL, 0};
	struct xt_table *table = row(log, XT_KIND_MODULE);
	char path[4096];
	ssize_t length = readlink("/proc/self/exe", path, sizeof(path));

	(void)n;
	dl_iterate_phdr(find_build_id, &build_id);
	must(length < 0 ? -errno : 0);
	xt_table_put(table, XT_MODULE_ID, MODULE_COUNT);
	xt_table_put(table, XT_MODULE_LOAD_NS, START_NS);
	xt_table_put(table, XT_MODULE_START, (uint64_t)(uintptr_t)__executable_start);
	xt_table_put(table, XT_MODULE_END, (uint64_t)(uintptr_t)_end);
	xt_table_put(table, XT_MODULE_BIAS, (uint64_t)(uintptr_t)__executable_start);
	xt_table_put_bytes(table, XT_MODULE_PATH, path, (size_t)length);
	xt_table_put_bytes(table, XT_MODULE_BUILD_ID, build_id.data, build_id.length);
	xt_table_end_row(table);
	table = row(log, XT_KIND_STACK);
	xt_table_put(table, XT_STACK_ID, STACK_MORE);
	xt_table_put(table, XT_STACK_FLAGS, 0);
	xt_table_put(table, XT_STACK_SEEN_NS, START_NS + 1);
	xt_table_put_list(table, XT_STACK_FRAMES, frames, 2);
	xt_table_end_row(table);
	own_work(log, STACK_MORE);
	own_work(log, STACK_MORE);
}

/* n launches by four threads on eight streams. The kernels of a batch follow its calls. */
static void make_bench(struct log *log, uint64_t n)
{
	for (uint64_t t = 2; t <= 4; t++)
		put_thread(log, t, 4320 + t, "worker");
	for (uint64_t s = 2; s <= 8; s++)
		put_stream(log, s, 0, 1, s + 12);
	flush_all(log);
	log->noise = 1;
	for (uint64_t i = 0; i < n; i++) {
		uint64_t thread = noise(log, 4) + 1;

		if (i && i % 16384 == 0) {
			flush_kind(log, XT_KIND_CALL);
			flush_kind(log, XT_KIND_KERNEL);
		}
		launch(log, thread, i % 7 % 4 + 1, thread * 2 - i % 2, i % 3 + 1,
		       2000 + noise(log, 2048));
	}
}

/* n calls whose kernels are missing, n kernels whose calls are missing, n graph launches. */
static void make_bench_calls(struct log *log, uint64_t n)
{
	flush_all(log);
	for (uint64_t i = 0; i < n; i++)
		put_call(log, 1, API_LAUNCH, STACK_FORWARD, 0);
}

static void make_bench_kernels(struct log *log, uint64_t n)
{
	flush_all(log);
	for (uint64_t i = 0; i < n; i++)
		put_kernel(log, ++log->correlation, 1, 1, log->now_ns += 10000, 2000, 0);
}

static void make_bench_graphs(struct log *log, uint64_t n)
{
	flush_all(log);
	for (uint64_t i = 0; i < n; i++) {
		put_call(log, 1, API_GRAPH, STACK_GRAPH, 0);
		for (uint64_t k = 0; k < 2; k++)
			put_kernel(log, log->correlation, 1, 1, log->now_ns += 3000, 2000, 7 + k);
	}
}

/* n threads that compress to nearly nothing. */
static void make_expanding(struct log *log, uint64_t n)
{
	for (uint64_t i = 0; i < n; i++)
		put_thread(log, i + 2, 4321, "");
	flush_all(log);
}

static const struct scenario {
	const char *name;
	void (*make)(struct log *log, uint64_t n);
	uint32_t pid;
	uint64_t start_ns;
	const char *exe;
	const char *host;
	bool embedded;
} scenarios[] = {
	{"normal", make_normal, 4321, START_NS, "/opt/chat/chat", "one", true},
	{"unnamed", make_normal, 4321, START_NS, "/opt/chat/chat", "one", false},
	{"second", make_normal, 5432, START_NS + 500, "/opt/chat/other;worker", "one", true},
	{"far", make_normal, 4321, START_NS / 2, "/opt/chat/chat", "two", true},
	{"own", make_own, 4321, START_NS, "/opt/chat/chat", "one", false},
	{"threads", make_threads, 4321, START_NS, "/opt/chat/chat", "one", true},
	{"graph", make_graph, 4321, START_NS, "/opt/chat/chat", "one", true},
	{"lost", make_lost, 4321, START_NS, "/opt/chat/chat", "one", true},
	{"empty", make_empty, 4321, START_NS, "/opt/chat/chat", "one", true},
	{"no_kernels", make_no_kernels, 4321, START_NS, "/opt/chat/chat", "one", true},
	{"hostile", make_hostile, 4321, START_NS, "/opt/chat/ch\nat", "one", true},
	{"script", make_script, 4321, START_NS, "/opt/chat/chat", "one", true},
	{"expanding", make_expanding, 4321, START_NS, "/opt/chat/chat", "one", true},
	{"bench", make_bench, 4321, START_NS, "/opt/chat/chat", "one", true},
	{"bench_calls", make_bench_calls, 4321, START_NS, "/opt/chat/chat", "one", true},
	{"bench_kernels", make_bench_kernels, 4321, START_NS, "/opt/chat/chat", "one", true},
	{"bench_graphs", make_bench_graphs, 4321, START_NS, "/opt/chat/chat", "one", true},
};

static int damage(const char *path, unsigned long kind)
{
	struct xt_chunk_header header;
	FILE *file = fopen(path, "r+b");
	int result = 1;

	if (!file || fseek(file, sizeof(struct xt_log_header), SEEK_SET))
		return 1;
	while (result && fread(&header, sizeof(header), 1, file) == 1) {
		if (header.kind == kind) {
			uint8_t last;

			fseek(file, (long)header.stored_bytes - 1, SEEK_CUR);
			result = fread(&last, 1, 1, file) != 1;
			last ^= 0xff;
			fseek(file, -1, SEEK_CUR);
			fwrite(&last, 1, 1, file);
		}
		fseek(file, (long)header.stored_bytes, SEEK_CUR);
	}
	return fclose(file) ? 1 : result;
}

int main(int argc, char **argv)
{
	const struct scenario *scenario = NULL;
	uint64_t n = argc > 3 ? strtoull(argv[3], NULL, 10) : 0;
	struct log log;

	if (argc == 4 && !strcmp(argv[1], "damage"))
		return damage(argv[2], strtoul(argv[3], NULL, 10));
	for (size_t s = 0; argc >= 3 && s < sizeof(scenarios) / sizeof(scenarios[0]); s++)
		if (!strcmp(scenarios[s].name, argv[1]))
			scenario = &scenarios[s];
	if (!scenario) {
		fprintf(stderr, "usage: make_log SCENARIO FILE [N] | damage FILE KIND\n");
		return 2;
	}
	open_log(&log, argv[2], scenario->make == make_script && n ? (uint32_t)n : scenario->pid,
		 scenario->start_ns, scenario->exe, scenario->host);
	put_tables(&log);
	scenario->make(&log, n);
	if (scenario->embedded)
		put_symbols(&log);
	close_log(&log);
	return 0;
}
