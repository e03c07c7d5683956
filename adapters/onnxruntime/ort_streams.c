#include "adapters/onnxruntime/ort_streams.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

struct ort_streams {
	pthread_mutex_t mutex;
	pthread_cond_t issued, done;
	ort_stream_step *step;
	void *context;
	pthread_t *threads;
	int thread_count, slot_count;
	bool *busy;		    /* per slot: issued and not finished */
	int *queue, first, waiting; /* ring buffer of slots that no thread has taken yet */
	int in_flight;		    /* taken or waiting */
	bool ending;
	enum prony_status status;
	struct error error;
};

static void keep_error(struct ort_streams *s, enum prony_status status, const struct error *why)
{
	if (s->status != PRONY_OK || status == PRONY_OK)
		return;
	s->status = status;
	s->error = *why;
}

/* Called with the mutex held; releases it while the step is computed. */
static void serve(struct ort_streams *s)
{
	struct error why = ERROR_INIT;
	int slot = s->queue[s->first];

	s->first = (s->first + 1) % s->slot_count;
	s->waiting--;
	pthread_mutex_unlock(&s->mutex);
	enum prony_status status = s->step(s->context, slot, &why);
	pthread_mutex_lock(&s->mutex);
	keep_error(s, status, &why);
	s->busy[slot] = false;
	s->in_flight--;
	pthread_cond_signal(&s->done); /* only the caller waits for it */
}

static void *run(void *argument)
{
	struct ort_streams *s = argument;

	pthread_mutex_lock(&s->mutex);
	for (;;) {
		while (s->waiting == 0 && !s->ending)
			pthread_cond_wait(&s->issued, &s->mutex);
		if (s->waiting == 0)
			break;
		serve(s);
	}
	pthread_mutex_unlock(&s->mutex);
	return NULL;
}

enum prony_status ort_streams_start(int threads, int slots, ort_stream_step *step, void *context,
				    struct ort_streams **out, struct error *err)
{
	struct ort_streams *s = calloc(1, sizeof(*s));

	if (!s)
		return error_set(err, PRONY_NOMEM, "no memory for streams");
	s->threads = calloc((size_t)threads, sizeof(s->threads[0]));
	s->busy = calloc((size_t)slots, sizeof(s->busy[0]));
	s->queue = calloc((size_t)slots, sizeof(s->queue[0]));
	s->slot_count = slots;
	s->step = step;
	s->context = context;
	pthread_mutex_init(&s->mutex, NULL);
	pthread_cond_init(&s->issued, NULL);
	pthread_cond_init(&s->done, NULL);
	if (!s->threads || !s->busy || !s->queue) {
		ort_streams_stop(s);
		return error_set(err, PRONY_NOMEM, "no memory for %d streams", threads);
	}
	for (; s->thread_count < threads; s->thread_count++) {
		if (pthread_create(&s->threads[s->thread_count], NULL, run, s) != 0) {
			int started = s->thread_count;

			ort_streams_stop(s);
			return error_set(err, PRONY_INVALID,
					 "only %d of %d threads could be started", started,
					 threads);
		}
	}
	*out = s;
	return PRONY_OK;
}

enum prony_status ort_streams_issue(struct ort_streams *s, int slot, struct error *err)
{
	pthread_mutex_lock(&s->mutex);
	while (s->busy[slot])
		pthread_cond_wait(&s->done, &s->mutex);
	enum prony_status status = s->status;
	if (status == PRONY_OK) {
		s->busy[slot] = true;
		s->queue[(s->first + s->waiting) % s->slot_count] = slot;
		s->waiting++;
		s->in_flight++;
		pthread_cond_signal(&s->issued);
	} else {
		error_set(err, status, "%s", s->error.text);
	}
	pthread_mutex_unlock(&s->mutex);
	return status;
}

enum prony_status ort_streams_wait(struct ort_streams *s, struct error *err)
{
	pthread_mutex_lock(&s->mutex);
	while (s->in_flight > 0)
		pthread_cond_wait(&s->done, &s->mutex);
	enum prony_status status = s->status;
	if (status != PRONY_OK)
		error_set(err, status, "%s", s->error.text);
	s->status = PRONY_OK;
	pthread_mutex_unlock(&s->mutex);
	return status;
}

void ort_streams_stop(struct ort_streams *s)
{
	if (!s)
		return;
	pthread_mutex_lock(&s->mutex);
	s->ending = true;
	pthread_cond_broadcast(&s->issued);
	pthread_mutex_unlock(&s->mutex);
	for (int i = 0; i < s->thread_count; i++)
		pthread_join(s->threads[i], NULL);
	pthread_cond_destroy(&s->done);
	pthread_cond_destroy(&s->issued);
	pthread_mutex_destroy(&s->mutex);
	free(s->threads);
	free(s->busy);
	free(s->queue);
	free(s);
}
