/* Installs several frameworks in parallel, as many as the disk has room for. */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/files.h"
#include "base/memory.h"
#include "base/parallel.h"
#include "frameworks/install_internal.h"

#define LINE_BYTES 1024

enum state { STATE_WAITING, STATE_RUNNING, STATE_ENDED };

/* One installation of several. */
struct piece {
	struct install install;
	enum state state;
	bool begun;    /* `install` is filled in */
	bool reported; /* the user was told that it waits for disk space */
	bool counted;  /* no earlier one creates the same environment */
	int64_t mb;    /* the most disk space it takes while installing */
};

struct many {
	struct install_item *items;
	struct piece *pieces; /* one per item */
	size_t count, wanted, ended;
	const struct install_sink *sink; /* the caller's sink */
	struct install_sink own;	 /* the sink passed to the installations */
	pthread_mutex_t lines;		 /* serialises output lines */
	pthread_mutex_t mutex;		 /* protects states and counts */
	pthread_cond_t changed;
};

/* Several threads install; the caller's sink receives one line at a time. */
static void pass_line(void *context, const char *text)
{
	struct many *many = context;

	pthread_mutex_lock(&many->lines);
	if (many->sink && many->sink->line)
		many->sink->line(many->sink->context, text);
	pthread_mutex_unlock(&many->lines);
}

static bool stopped(const struct many *many)
{
	return many->own.stop && *many->own.stop;
}

static bool same_folder(const struct piece *a, const struct piece *b)
{
	return strcmp(a->install.folder, b->install.folder) == 0;
}

/* -1 when it is unknown. */
static int64_t free_mb(const struct piece *piece)
{
	const char *folder = piece->install.folder;
	char *parent = memory_printf("%.*s", (int)(strrchr(folder, '/') - folder), folder);
	int64_t room = directory_make(parent, NULL) == PRONY_OK ? install_free_mb(parent) : -1;

	free(parent);
	return room;
}

/* Assume that running installations will use all their space, and require room beyond that. */
static bool has_room(const struct many *many, const struct piece *piece)
{
	int64_t room = free_mb(piece);

	for (size_t i = 0; i < many->count; i++)
		if (many->pieces[i].state == STATE_RUNNING)
			room -= many->pieces[i].mb;
	return room >= piece->mb;
}

static bool folder_is_busy(const struct many *many, const struct piece *piece)
{
	for (size_t i = 0; i < many->count; i++)
		if (many->pieces[i].state == STATE_RUNNING && same_folder(&many->pieces[i], piece))
			return true;
	return false;
}

static size_t in_state(const struct many *many, enum state state)
{
	size_t found = 0;

	for (size_t i = 0; i < many->count; i++)
		found += many->pieces[i].state == state;
	return found;
}

static void tell_of_room(struct many *many, struct piece *piece)
{
	char line[LINE_BYTES];

	snprintf(line, sizeof(line),
		 "%s: waiting for the others, because its installation needs %" PRId64 " MB",
		 piece->install.spelling, piece->mb);
	if (!piece->reported)
		pass_line(many, line);
	piece->reported = true;
}

/* The next installation that may start, with the mutex held; NULL when none is left. If nothing
 * else runs, one may always start: its size is checked again, with a message, when it installs. */
static struct piece *pick(struct many *many)
{
	while (!stopped(many) && in_state(many, STATE_WAITING) > 0) {
		bool alone = in_state(many, STATE_RUNNING) == 0;

		for (size_t i = 0; i < many->count; i++) {
			struct piece *piece = &many->pieces[i];
			if (piece->state != STATE_WAITING || folder_is_busy(many, piece))
				continue;
			if (alone || has_room(many, piece))
				return piece;
			tell_of_room(many, piece);
		}
		pthread_cond_wait(&many->changed, &many->mutex);
	}
	return NULL;
}

/* "4 of 19: jax is installed; under way: keras3:jax, paddle" */
static void tell_of_end(struct many *many, const struct piece *piece, enum prony_status status)
{
	char line[LINE_BYTES];
	int used = snprintf(line, sizeof(line), "%zu of %zu: %s %s", many->ended, many->wanted,
			    piece->install.spelling,
			    status == PRONY_OK ? "is installed" : "could not be installed");
	const char *before = "; under way: ";

	if (many->wanted < 2 || status == PRONY_INTERRUPTED)
		return;
	for (size_t i = 0; i < many->count && used < LINE_BYTES; i++) {
		if (many->pieces[i].state != STATE_RUNNING)
			continue;
		used += snprintf(line + used, sizeof(line) - (size_t)used, "%s%s", before,
				 many->pieces[i].install.spelling);
		before = ", ";
	}
	pass_line(many, line);
}

/* The loop of a thread. */
static void work(void *context, struct parallel_items *items)
{
	struct many *many = context;
	struct piece *piece;

	(void)items; /* pick() chooses the item, because not every one may start at any time */
	pthread_mutex_lock(&many->mutex);
	while ((piece = pick(many)) != NULL) {
		struct install_item *item = &many->items[piece - many->pieces];

		piece->state = STATE_RUNNING;
		pthread_mutex_unlock(&many->mutex);
		item->status = install_carry_out(&piece->install, &item->error);
		pthread_mutex_lock(&many->mutex);
		piece->state = STATE_ENDED;
		many->ended++;
		tell_of_end(many, piece, item->status);
		pthread_cond_broadcast(&many->changed);
	}
	pthread_mutex_unlock(&many->mutex);
}

/* Finishes items that are installed already or cannot be installed. */
static void prepare(struct many *many, size_t i)
{
	struct install_item *item = &many->items[i];
	struct piece *piece = &many->pieces[i];
	bool needed = false;

	item->status = install_begin(&piece->install, item->framework, item->environment,
				     &many->own, &item->error);
	piece->begun = item->status == PRONY_OK;
	if (piece->begun)
		item->status = install_prepare(&piece->install, &needed, &item->error);
	piece->state = item->status == PRONY_OK && needed ? STATE_WAITING : STATE_ENDED;
	if (piece->state == STATE_ENDED)
		return;
	many->wanted++;
	piece->mb = install_disk_mb(&piece->install);
	piece->counted = true;
	for (size_t k = 0; k < i; k++)
		if (many->pieces[k].state == STATE_WAITING && same_folder(&many->pieces[k], piece))
			piece->counted = false;
}

/* Report sizes before starting, because the whole takes minutes to hours. */
static void tell_sizes(struct many *many, size_t jobs)
{
	int64_t download = 0, disk = 0, room = -1;
	char line[LINE_BYTES];

	for (size_t i = 0; i < many->count; i++) {
		const struct piece *piece = &many->pieces[i];
		const struct lock *lock = &piece->install.lock;
		if (piece->state != STATE_WAITING)
			continue;
		snprintf(line, sizeof(line),
			 piece->counted ? "%s %s: download %" PRId64 " MB, on disk %" PRId64 " MB"
					: "%s %s: in the same environment",
			 piece->install.spelling, lock->version, lock->download_mb, lock->disk_mb);
		pass_line(many, line);
		download += piece->counted ? lock->download_mb : 0;
		disk += piece->counted ? lock->disk_mb : 0;
		room = free_mb(piece);
	}
	snprintf(line, sizeof(line),
		 "%zu to install, at most %zu at a time: download %" PRId64 " MB, on disk %" PRId64
		 " MB; %" PRId64 " MB are free%s",
		 many->wanted, jobs, download, disk, room,
		 room >= disk ? "" : ", too little for all");
	pass_line(many, line);
}

static void tell_result(struct many *many, int64_t start_ns)
{
	char line[LINE_BYTES];
	size_t good = 0;

	for (size_t i = 0; i < many->count; i++)
		good += many->items[i].status == PRONY_OK;
	snprintf(line, sizeof(line), "%zu of %zu are installed after %.0f s%s", good, many->count,
		 (double)(clock_monotonic_ns() - start_ns) / 1e9,
		 stopped(many) ? "; interrupted: repeat the command to continue" : "");
	pass_line(many, line);
}

static enum prony_status first_failure(const struct many *many)
{
	if (stopped(many))
		return PRONY_INTERRUPTED;
	for (size_t i = 0; i < many->count; i++)
		if (many->items[i].status != PRONY_OK)
			return many->items[i].status;
	return PRONY_OK;
}

enum prony_status framework_install_many(struct install_item *items, size_t count, size_t jobs,
					 const struct install_sink *sink)
{
	struct many many = {.items = items, .count = count, .sink = sink};
	int64_t start_ns = clock_monotonic_ns();

	many.own = (struct install_sink){
		.line = pass_line, .context = &many, .stop = sink ? sink->stop : NULL};
	many.pieces = memory_alloc((count ? count : 1) * sizeof(*many.pieces));
	memset(many.pieces, 0, (count ? count : 1) * sizeof(*many.pieces));
	pthread_mutex_init(&many.lines, NULL);
	pthread_mutex_init(&many.mutex, NULL);
	pthread_cond_init(&many.changed, NULL);
	for (size_t i = 0; i < count; i++)
		many.items[i].status = PRONY_INTERRUPTED;
	for (size_t i = 0; i < count && !stopped(&many); i++)
		prepare(&many, i);
	if (many.wanted > 1)
		tell_sizes(&many, jobs);
	/* Start no threads when everything is installed already. */
	if (many.wanted > 0)
		parallel_run((int64_t)many.wanted, (int)jobs, work, &many);
	for (size_t i = 0; i < count; i++) {
		if (many.pieces[i].state == STATE_WAITING)
			many.items[i].status = PRONY_INTERRUPTED;
		if (many.pieces[i].begun)
			install_end(&many.pieces[i].install, many.items[i].status);
	}
	if (count > 1)
		tell_result(&many, start_ns);
	pthread_cond_destroy(&many.changed);
	pthread_mutex_destroy(&many.mutex);
	pthread_mutex_destroy(&many.lines);
	free(many.pieces);
	return first_failure(&many);
}
