/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A merge by a coordinator and a worker, which are threads here. Messages between them can be
 * changed on their way.
 */
#include "unit.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/command.h"
#include "merge/base/pack.h"
#include "merge/cluster.h"
#include "merge/merge_command.h"

#define MESSAGES_MAX 4096
#define ARGUMENTS    8
#define FORGED	     40 /* merges with changed results; the environment may say how many */

#define FORGED_BYTES_MAX 4 /* of one result */
#define CHECKSUM_BYTES	 8

/* One process. Messages to it wait in its inbox. */
struct endpoint {
	struct cluster cluster; /* first */
	struct endpoint *other;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct message inbox[MESSAGES_MAX];
	size_t first, count;
	void (*change)(struct message *message); /* what it sends; NULL: nothing */
	size_t result_count;			 /* that it has sent */
	int status;
};

static char output_path[2][64];
static uint64_t seed;

static uint64_t next_random(void)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return seed >> 33;
}

static void send_message(struct cluster *cluster, const struct message *message)
{
	struct endpoint *from = (struct endpoint *)cluster, *to = from->other;
	struct message sent = *message;

	if (from->change)
		from->change(&sent);
	from->result_count += sent.kind == MESSAGE_RESULT;
	sent.process = cluster->process;
	pthread_mutex_lock(&to->lock);
	assert_true(to->first + to->count < MESSAGES_MAX);
	to->inbox[to->first + to->count++] = sent;
	pthread_cond_signal(&to->changed);
	pthread_mutex_unlock(&to->lock);
}

static bool receive_message(struct cluster *cluster, bool waits, struct message *out)
{
	struct endpoint *own = (struct endpoint *)cluster;
	bool is_there;

	pthread_mutex_lock(&own->lock);
	while (waits && !own->count)
		pthread_cond_wait(&own->changed, &own->lock);
	is_there = own->count > 0;
	if (is_there) {
		*out = own->inbox[own->first++];
		own->count--;
	}
	pthread_mutex_unlock(&own->lock);
	return is_there;
}

static struct endpoint *new_endpoint(unsigned process)
{
	struct endpoint *endpoint = calloc(1, sizeof(*endpoint));

	assert_non_null(endpoint);
	endpoint->cluster = (struct cluster){.process = process,
					     .process_count = 2,
					     .send = send_message,
					     .receive = receive_message};
	pthread_mutex_init(&endpoint->lock, NULL);
	pthread_cond_init(&endpoint->changed, NULL);
	return endpoint;
}

static void free_endpoint(struct endpoint *endpoint)
{
	for (; endpoint->count; endpoint->count--)
		free(endpoint->inbox[endpoint->first++].data);
	pthread_cond_destroy(&endpoint->changed);
	pthread_mutex_destroy(&endpoint->lock);
	free(endpoint);
}

static void *run_worker(void *argument)
{
	struct endpoint *endpoint = argument;

	endpoint->status = merge_in_cluster(&endpoint->cluster);
	return NULL;
}

/* Waits until the worker has greeted, so that it gets logs. */
static void wait_for_greeting(struct endpoint *endpoint)
{
	pthread_mutex_lock(&endpoint->lock);
	while (!endpoint->count)
		pthread_cond_wait(&endpoint->changed, &endpoint->lock);
	pthread_mutex_unlock(&endpoint->lock);
}

/*
 * Merges a folder with a worker whose messages are changed. Returns the status. result_count: of
 * the logs that the worker read, may be NULL.
 */
static int merge(const char *option, const char *output, const char *folder,
		 void (*change)(struct message *message), size_t *result_count)
{
	struct endpoint *coordinator = new_endpoint(0), *worker = new_endpoint(1);
	char *argv[ARGUMENTS] = {"merge", "--quiet", (char *)option, (char *)output,
				 (char *)folder};
	pthread_t thread;
	int status;

	coordinator->other = worker;
	worker->other = coordinator;
	worker->change = change;
	coordinator->cluster.argc = 5;
	coordinator->cluster.argv = argv;
	assert_int_equal(pthread_create(&thread, NULL, run_worker, worker), 0);
	wait_for_greeting(coordinator);
	status = merge_in_cluster(&coordinator->cluster);
	assert_int_equal(pthread_join(thread, NULL), 0);
	if (result_count)
		*result_count = worker->result_count;
	free_endpoint(coordinator);
	free_endpoint(worker);
	return status;
}

static int merge_alone(const char *option, const char *output, const char *folder)
{
	char *argv[ARGUMENTS] = {"merge",	 "--quiet",	 "--jobs=1",
				 (char *)option, (char *)output, (char *)folder};

	return command_merge.run(&command_merge, 6, argv);
}

static char *read_file(const char *path, size_t *bytes)
{
	FILE *file = fopen(path, "rb");
	char *data = NULL;

	assert_non_null(file);
	assert_int_equal(fseek(file, 0, SEEK_END), 0);
	*bytes = (size_t)ftell(file);
	rewind(file);
	data = malloc(*bytes + 1);
	assert_non_null(data);
	assert_int_equal(fread(data, 1, *bytes, file), *bytes);
	fclose(file);
	return data;
}

static void gives_bytes_of_one_process(void **state)
{
	static const char *const folders[] = {SAMPLES "/sim-ranks", SAMPLES "/h200-ddp-loader"};
	static const char *const options[] = {"--folded",  "--brief", "--text",
					      "--summary", "--pprof", "--chrome"};

	(void)state;
	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
		const char *option = options[i], *folder = folders[i % 2];
		bool reads_alone = !strcmp(option, "--chrome");
		size_t bytes[2], result_count;
		char *data[2];

		assert_int_equal(merge_alone(option, output_path[0], folder), 0);
		assert_int_equal(merge(option, output_path[1], folder, NULL, &result_count), 0);
		if (reads_alone)
			assert_int_equal(result_count, 0);
		else
			assert_int_not_equal(result_count, 0);
		for (int f = 0; f < 2; f++)
			data[f] = read_file(output_path[f], &bytes[f]);
		assert_int_equal(bytes[0], bytes[1]);
		assert_memory_equal(data[0], data[1], bytes[0]);
		free(data[0]);
		free(data[1]);
	}
}

static void truncate_result(struct message *message)
{
	if (message->kind == MESSAGE_RESULT)
		message->bytes /= 2;
}

static void flip_bit(struct message *message)
{
	if (message->kind == MESSAGE_RESULT)
		message->data[message->bytes / 2] ^= 1;
}

static void change_build(struct message *message)
{
	char *build = "another build";
	struct pack pack;

	if (message->kind != MESSAGE_HELLO)
		return;
	free(message->data);
	pack_begin(&pack);
	pack_text(&pack, &build);
	message->data = pack_end(&pack, &message->bytes);
}

static void send_nothing_known(struct message *message)
{
	if (message->kind == MESSAGE_RESULT)
		message->kind = MESSAGE_FAILED;
}

static void ends_with_an_error_if_messages_are_damaged(void **state)
{
	void (*const changes[])(struct message *) = {truncate_result, flip_bit, change_build,
						     send_nothing_known};

	(void)state;
	for (size_t c = 0; c < sizeof(changes) / sizeof(changes[0]); c++) {
		unlink(output_path[0]);
		assert_int_equal(
			merge("--text", output_path[0], SAMPLES "/sim-ranks", changes[c], NULL),
			STATUS_FAILED);
		assert_int_not_equal(access(output_path[0], F_OK), 0);
	}
}

/* Completes changed data with the right checksum. */
static void sign(struct message *message, size_t bytes)
{
	struct pack pack;

	pack_begin(&pack);
	pack_bytes(&pack, message->data, bytes);
	free(message->data);
	message->data = pack_end(&pack, &message->bytes);
	assert_non_null(message->data);
}

/* Numbers such as lengths are at small offsets, and every value may be one. */
static void forge_result(struct message *message)
{
	static const uint8_t values[] = {0, 1, 2, 0x7f, 0x80, 0xff};
	size_t bytes = message->bytes - CHECKSUM_BYTES;

	if (message->kind != MESSAGE_RESULT)
		return;
	for (uint64_t i = 0; i <= next_random() % FORGED_BYTES_MAX; i++) {
		size_t range = next_random() % 2 && bytes > 4096 ? 4096 : bytes;

		message->data[next_random() % range] =
			values[next_random() % (sizeof(values) / sizeof(values[0]))];
	}
	if (!(next_random() % 8))
		bytes -= next_random() % bytes;
	sign(message, bytes);
}

static void survives_forged_values(void **state)
{
	static const char *const options[] = {"--brief", "--summary", "--text", "--pprof"};
	const char *wanted = getenv("XT_TEST_FORGED");

	(void)state;
	for (int i = 0; i < (wanted ? atoi(wanted) : FORGED); i++) {
		seed = (uint64_t)i + 1;
		merge(options[i % 4], output_path[0], SAMPLES "/h200-ddp", forge_result, NULL);
	}
}

static void reads_what_was_written(void **state)
{
	char *text = "text", *text_read = NULL;
	uint64_t *list = calloc(3, sizeof(*list)), *list_read = NULL, number = 7, number_read = 0;
	size_t count = 3, count_read = 0, capacity = 3, capacity_read = 0, bytes;
	bool flag = true, flag_read = false;
	struct pack pack;
	uint8_t *data;

	(void)state;
	list[2] = 5;
	pack_begin(&pack);
	PACK(&pack, number);
	pack_bool(&pack, &flag);
	pack_text(&pack, &text);
	PACK_ARRAY(&pack, list, count, capacity, 3);
	data = pack_end(&pack, &bytes);
	for (size_t cut = 0; cut <= bytes; cut++) {
		count_read = 0;
		pack_open(&pack, data, bytes - cut);
		PACK(&pack, number_read);
		pack_bool(&pack, &flag_read);
		pack_text(&pack, &text_read);
		PACK_ARRAY(&pack, list_read, count_read, capacity_read, 3);
		assert_int_equal(pack.error, cut ? -EBADMSG : 0);
		if (!cut) {
			assert_int_equal(number_read, 7);
			assert_true(flag_read);
			assert_string_equal(text_read, "text");
			assert_int_equal(count_read, 3);
			assert_int_equal(list_read[2], 5);
		}
		free(text_read);
		free(list_read);
		text_read = NULL;
		list_read = NULL;
	}
	/* More elements than allowed. */
	pack_open(&pack, data, bytes);
	PACK(&pack, number_read);
	pack_bool(&pack, &flag_read);
	pack_text(&pack, &text_read);
	PACK_ARRAY(&pack, list_read, count_read, capacity_read, 2);
	assert_int_equal(pack.error, -EBADMSG);
	assert_null(list_read);
	free(text_read);
	free(data);
	free(list);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_what_was_written),
		cmocka_unit_test(gives_bytes_of_one_process),
		cmocka_unit_test(ends_with_an_error_if_messages_are_damaged),
		cmocka_unit_test(survives_forged_values),
	};
	static const struct command *const commands[] = {&command_merge};
	int status;

	for (int f = 0; f < 2; f++)
		snprintf(output_path[f], sizeof(output_path[f]), "/tmp/xtrace-cluster.%d.%d",
			 getpid(), f);
	message_set_name("test");
	commands_register(commands, 1);
	status = cmocka_run_group_tests(tests, NULL, NULL);
	unlink(output_path[0]);
	unlink(output_path[1]);
	return status;
}
