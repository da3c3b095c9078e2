/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Intervals between occurrences of a place are compared by the sum of the hashes of their launches.
 * Prefix sums give that sum for any interval, so testing all candidates costs about as much as
 * reading the sequence once.
 */
#include "log/base/period.h"
#include "log/base/compare.h"
#include "log/base/grow.h"

#include <errno.h>
#include <stdlib.h>

#define SHARE_MIN 0.5  /* share of launches that equal intervals must cover */
#define SHARE_TIE 0.98 /* markers at least this close to the best are considered equal */

/* Occurrences of each place, in one array. */
struct index {
	uint32_t *
		first; /* place p occurs at positions[first[p]] up to positions[first[p + 1] - 1] */
	uint32_t *positions;
	uint64_t *sums; /* the hashes of all launches before launch i add up to sums[i] */
	uint64_t *room;
	size_t launch_count;
	uint32_t place_count;
};

static uint64_t hash(uint64_t x)
{
	x *= 0x9e3779b97f4a7c15u;
	x ^= x >> 32;
	x *= 0xd6e8feb86659fd93u;
	return x ^ x >> 32;
}

static size_t count_of(const struct index *index, uint32_t place)
{
	return index->first[place + 1] - index->first[place];
}

/* The share of launches in the most frequent kind of interval between occurrences of a place. */
static double share_alike(const struct index *index, uint32_t place)
{
	const uint32_t *at = index->positions + index->first[place];
	size_t best = 0, alike = 0, count = count_of(index, place);
	const uint64_t *sums = index->sums;
	uint64_t length = 0, *room = index->room;

	for (size_t i = 0; i + 1 < count; i++)
		room[i] = sums[at[i + 1]] - sums[at[i]];
	qsort(room, count - 1, sizeof(*room), compare_u64);
	for (size_t i = 0; i + 1 < count; i++) {
		alike = i && room[i] == room[i - 1] ? alike + 1 : 1;
		if (alike > best) {
			best = alike;
			length = room[i];
		}
	}
	for (size_t i = 0; i + 1 < count; i++)
		if (sums[at[i + 1]] - sums[at[i]] == length)
			return (double)best * (at[i + 1] - at[i]) / (double)index->launch_count;
	return 0.0;
}

static void free_index(struct index *index)
{
	free_all(index->first, index->positions, index->sums, index->room);
}

static int make_index(struct index *index, const uint32_t *places)
{
	size_t count = index->launch_count;

	index->first = calloc((size_t)index->place_count + 2, sizeof(*index->first));
	index->positions = calloc(count + 1, sizeof(*index->positions));
	index->sums = calloc(count + 1, sizeof(*index->sums));
	index->room = calloc(count + 1, sizeof(*index->room));
	if (!index->first || !index->positions || !index->sums || !index->room)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		index->first[places[i] + 2]++;
		index->sums[i + 1] = index->sums[i] + hash(places[i] + 1);
	}
	for (uint32_t p = 0; p < index->place_count; p++)
		index->first[p + 2] += index->first[p + 1];
	for (size_t i = 0; i < count; i++)
		index->positions[index->first[places[i] + 1]++] = (uint32_t)i;
	return 0;
}

/* Among markers as good as the best, prefers the most frequent, then the earliest. */
static uint32_t find_marker(const struct index *index, const double *shares, double best)
{
	uint32_t marker = XT_PERIOD_NONE;
	size_t most = 0;

	for (uint32_t p = 0; best >= SHARE_MIN && p < index->place_count; p++) {
		size_t count = count_of(index, p);

		if (count < XT_PERIOD_ITERATIONS_MIN || shares[p] < best * SHARE_TIE)
			continue;
		if (count > most ||
		    (count == most &&
		     index->positions[index->first[p]] < index->positions[index->first[marker]])) {
			most = count;
			marker = p;
		}
	}
	return marker;
}

int xt_period_find(const uint32_t *places, size_t count, uint32_t place_count, uint32_t *marker_out)
{
	struct index index = {.launch_count = count, .place_count = place_count};
	double best = 0.0, *shares = calloc((size_t)place_count + 1, sizeof(*shares));
	int error = shares ? make_index(&index, places) : -ENOMEM;

	*marker_out = XT_PERIOD_NONE;
	for (uint32_t p = 0; !error && p < place_count; p++) {
		if (count_of(&index, p) < XT_PERIOD_ITERATIONS_MIN)
			continue;
		shares[p] = share_alike(&index, p);
		best = larger(best, shares[p]);
	}
	if (!error)
		*marker_out = find_marker(&index, shares, best);
	free_index(&index);
	free(shares);
	return error;
}
