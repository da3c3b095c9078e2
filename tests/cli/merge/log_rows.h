/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Builds logs for the tests of xtrace merge, row by row. An error ends the program.
 *
 * Every run creates the same log. The traced program is synthetic: /opt/chat/chat, with its
 * functions embedded in the log. The output of a merge is therefore the same on every machine.
 */
#ifndef XT_TESTS_CLI_MERGE_LOG_ROWS_H
#define XT_TESTS_CLI_MERGE_LOG_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "log/write/writer.h"

#define START_NS    UINT64_C(5000000000)
#define REALTIME_NS UINT64_C(1700000000000000000)
#define MS	    UINT64_C(1000000)

#define TABLE_ROWS    32768
#define TABLE_CONTENT (1u << 18)

enum { API_LAUNCH = 1 << 16 | 307, API_GRAPH = 1 << 16 | 514, API_RUNTIME = 2 << 16 | 211 };

/* The synthetic modules, in the order of their addresses; their ELF addresses begin at 0. */
enum module_id { CHAT = 1, CUDART, CUDA, LIBC, PLUGIN_OLD, PLUGIN_NEW, MODULE_COUNT };

/* Functions of 0x100 bytes each; an address in one is its start + 0x10. */
enum function {
	MAIN,
	FORWARD,
	ATTENTION,
	WORKER,
	START,
	STUB,
	CUDA_LAUNCH,
	CUDA_INTERNAL,
	CUDA_GRAPH,
	CU_INTERNAL,
	LIBC_CALL_MAIN,
	LIBC_CLONE,
	PLUGIN_OLD_RUN,
	PLUGIN_NEW_RUN,
	HOSTILE,
	LOST,	 /* has no name */
	NOWHERE, /* in no module */
};

struct log {
	struct xt_writer *writer;
	struct xt_table tables[XT_KIND_COUNT];
	uint64_t correlation;
	uint64_t now_ns;
	uint64_t noise;			    /* 0: use round times */
	uint64_t row_counts[XT_KIND_COUNT]; /* written so far */
	uint64_t lost_calls;		    /* reported in the account */
	bool has_own_account; /* the log has its own account of calls, so close_log() adds none */
	uint64_t free_ns[9];  /* end of the last kernel of each stream */
};

/* Stacks 1 to 4 of every log. */
enum { STACK_FORWARD = 1, STACK_ATTENTION, STACK_GRAPH, STACK_WORKER, STACK_MORE };

/* Pseudo-random low digits for times, the same in every run. below: a power of two. */
uint64_t noise(struct log *log, uint64_t below);

void must(int error);

/*
 * Between open_log() and close_log(), rows are added to tables. A table is written to the file when
 * it is full, by flush_kind(), or by flush_all(), which writes definitions first.
 */
void open_log(struct log *log, const char *path, uint32_t pid, uint64_t start_ns, const char *exe,
	      const char *host);
/* The same without any rows, for other programs than the synthetic one. */
void open_log_as(struct log *log, const char *path, struct xt_log_header header,
		 uint32_t row_capacity, size_t content_capacity);
struct xt_table *row(struct log *log, enum xt_kind kind);
void flush_kind(struct log *log, enum xt_kind kind);
void flush_all(struct log *log);
/* Adds an account that matches the rows, unless the log has its own. */
void close_log(struct log *log);

/* The rows that all logs share: modules, two APIs, a stream, three shapes, four stacks. */
void put_tables(struct log *log);

/* The names of the functions above. */
void put_symbols(struct log *log);

/* The address of the function with that name in every log; 0: none. */
uint64_t known_function(const char *name);

void put_text(struct xt_table *table, unsigned column, const char *text);
void put_meta(struct log *log, const char *key, const char *value);
void put_account(struct log *log, const char *name, uint64_t value);
void put_switch(struct log *log, uint64_t time_ns, bool is_on, uint64_t why); /* XT_SWITCH_... */
void put_thread(struct log *log, uint64_t id, uint64_t tid, const char *name);
void put_api(struct log *log, uint64_t id, const char *name, uint64_t class);
void put_stream(struct log *log, uint64_t id, uint64_t device, uint64_t context, uint64_t stream);
void put_string(struct log *log, uint64_t id, const char *text);
void put_symbol(struct log *log, uint64_t module, uint64_t start, const char *name);

/* A shape with the name of that string id. */
void put_shape(struct log *log, uint64_t id, const char *name, uint64_t grid);

/* frames: innermost first, ended by a negative number. */
void put_stack(struct log *log, uint64_t id, uint64_t flags, uint64_t seen_ns, const int *frames);

/* A call 10 us after the previous one. */
void put_call(struct log *log, uint64_t thread, uint64_t api, uint64_t stack, uint64_t result);
void put_kernel(struct log *log, uint64_t correlation, uint64_t stream, uint64_t shape,
		uint64_t start_ns, uint64_t duration_ns, uint64_t graph_node);

/* A call and its kernel, which starts 5 us after the call, or later when its stream is free. */
void launch(struct log *log, uint64_t thread, uint64_t stack, uint64_t stream, uint64_t shape,
	    uint64_t duration_ns);

/* Reads rows as text from stdin; see log_script.c. */
void make_script(struct log *log, uint64_t n);

/* The address at which a module is mapped. */
uint64_t module_start(enum module_id module);

#endif
