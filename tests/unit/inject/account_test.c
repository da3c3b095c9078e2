/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Account names: the tracer writes exactly those listed in xtrace/account.h, the document lists
 * them too, and losses are recognised by name.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "inject/runtime/clock.h"
#include "inject/writer/record.h"
#include "inject/writer/recorder.h"
#include "support.h"
#include "xtrace/account.h"
#include "xtrace/reader.h"

static char folder[PATH_MAX], path[PATH_MAX + 16];

static int write_log(void **unused)
{
	struct xt_log_header header = {.pid = (uint32_t)getpid(), .clock = XT_CLOCK_MONOTONIC};
	static struct recorder rec;
	struct xt_writer *writer;

	(void)unused;
	folder_make(folder);
	snprintf(path, sizeof(path), "%s/log.xtr", folder);
	assert_int_equal(xt_writer_create(path, &header, &writer), 0);
	assert_int_equal(recorder_init(&rec, writer, monotonic_ns()), 0);
	assert_true(record_account(&rec));
	assert_int_equal(recorder_flush(&rec), 0);
	recorder_free(&rec);
	return 0;
}

static int remove_log(void **unused)
{
	(void)unused;
	folder_remove(folder);
	return 0;
}

/* Names that only recovered logs, CPU logs, snapshots or logs of earlier versions have. */
static bool is_of_other_writers(const char *name)
{
	return !strncmp(name, "recovered.", 10) || !strncmp(name, "cpu.", 4) ||
	       !strcmp(name, "kernels.unfinished") || !strcmp(name, "calls.lost.killed") ||
	       !strcmp(name, "calls.lost.cut_off") || !strcmp(name, "stacks.unsampled") ||
	       !strcmp(name, "overhead.beyond_ns");
}

static void writes_only_listed_names(void **unused)
{
	struct xt_reader *log = NULL;
	const struct xt_chunk *chunk;
	size_t count = 0;

	(void)unused;
	assert_int_equal(xt_reader_open(path, &log), XT_OPEN_OK);
	while ((chunk = xt_reader_next(log, 1u << XT_KIND_ACCOUNT)))
		for (uint32_t row = 0; row < xt_chunk_rows(chunk); row++, count++) {
			struct xt_bytes name = xt_chunk_bytes(chunk, XT_ACCOUNT_NAME, row);

			if (!xt_account_meaning(name.data, name.length))
				fail_msg("%.*s is not in xtrace/account.h", (int)name.length,
					 name.data);
		}
	xt_reader_close(log);
	for (size_t i = 0; i < XT_ACCOUNTS; i++) {
		count += is_of_other_writers(xt_accounts[i].name);
		for (size_t j = 0; j < i; j++)
			assert_string_not_equal(xt_accounts[i].name, xt_accounts[j].name);
	}
	assert_int_equal(count, XT_ACCOUNTS);
}

static void documents_listed_names(void **unused)
{
	static char text[256 << 10];
	FILE *document = fopen(LOG_FORMAT_DOCUMENT, "r");

	(void)unused;
	assert_non_null(document);
	assert_in_range(fread(text, 1, sizeof(text) - 1, document), 1, sizeof(text) - 2);
	fclose(document);
	for (size_t i = 0; i < XT_ACCOUNTS; i++) {
		char quoted[80];

		snprintf(quoted, sizeof(quoted), "`%s`", xt_accounts[i].name);
		if (!strstr(text, quoted))
			fail_msg("%s is not in the document", quoted);
	}
}

static bool is_loss(const char *name)
{
	return xt_account_is_loss(name, strlen(name));
}

static void recognises_losses_by_name(void **unused)
{
	static const char *const losses[] = {
		"calls.lost.ring_full",
		"calls.lost.no_ring",
		"calls.lost.nested",
		"calls.lost.write_failed",
		"calls.lost.killed",
		"kernels.invalid",
		"kernels.lost.write_failed",
		"copies.invalid",
		"copies.lost.write_failed",
		"sets.invalid",
		"sets.lost.write_failed",
		"memory.lost.write_failed",
		"nodes.lost",
		"ranges.lost",
		"cupti.dropped",
		"buffers.discarded",
		"buffers.lost",
		"buffers.invalid",
		"apis.lost",
		"kinds.lost",
		"kinds.lost.unsafe",
		"kinds.lost.memory",
		"calls.lost.size",
		"calls.lost.leaving",
		"calls.lost.after_end",
		"calls.lost.cut_off",
		"kernels.lost.leaving",
		"copies.lost.leaving",
		"sets.lost.leaving",
		"kernels.lost.size",
		"copies.lost.size",
		"sets.lost.size",
		"memory.lost.size",
		"modules.lost",
		"names.lost",
		"stacks.mismatched",
		"stacks.lost",
		"skips.lost",
		"recovered.areas_damaged",
		"recovered.areas_unknown",
		"recovered.unfinished",
		"recovered.unnamed",
		"cpu.lost.perf",
		"cpu.lost.observations",
		"cpu.lost.processes",
		"cpu.lost.write_failed",
	};
	size_t count = 0;

	(void)unused;
	for (size_t i = 0; i < XT_ACCOUNTS; i++)
		count += is_loss(xt_accounts[i].name);
	assert_int_equal(count, sizeof(losses) / sizeof(losses[0]));
	assert_true(xt_account_is_event_loss("kernels.invalid", 15));
	assert_false(xt_account_is_event_loss("names.lost", 10));
	assert_false(xt_account_is_event_loss("calls.seen", 10));
	for (size_t i = 0; i < sizeof(losses) / sizeof(losses[0]); i++) {
		assert_true(is_loss(losses[i]));
		assert_non_null(xt_account_meaning(losses[i], strlen(losses[i])));
	}
	assert_true(is_loss("samples.lost.throttled")); /* a name of a later version */
	assert_false(is_loss("lost"));
	assert_false(is_loss(""));
	assert_null(xt_account_meaning("calls", 5));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(writes_only_listed_names),
		cmocka_unit_test(documents_listed_names),
		cmocka_unit_test(recognises_losses_by_name),
	};

	return cmocka_run_group_tests(tests, write_log, remove_log);
}
