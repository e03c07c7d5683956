/* Streams, events, captures and graphs: what is issued is kept and runs when it is waited for. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/cuda/fake_internal.h"

/* Operations in their order; those of a recording are kept after they ran. */
struct queue {
	struct operation *operations; /* from number `gone` on */
	long count, done, gone, room;
	/* Of a recording: up to where another stream has waited for it, and how many were issued.
	 */
	long joined, issued;
};

/* What a capture has recorded: a queue for each of its streams, the first its origin's. */
struct recording {
	struct queue *queues[16];
	int queue_count, shares;
};

struct CUstream_st {
	struct queue queue;
	struct recording *recording; /* while it is captured */
	struct queue *recorded;	     /* its queue there */
	bool origin;
	struct CUstream_st *next;
};

struct CUevent_st {
	struct queue *queue; /* where it was recorded last; NULL: nowhere */
	long position;
	struct recording *recording; /* if that was a capture */
	double milliseconds;	     /* when it was reached */
};

struct CUgraph_st {
	struct recording *recording;
};
struct CUgraphExec_st {
	struct recording *recording;
};

static struct CUstream_st *streams;
static struct recording *capture; /* one at a time */
static bool spoiled;
static unsigned correlations;
static void (*watcher)(const struct fake_activity *activity);

static void drain(struct queue *queue, long to, bool keep);

static struct operation *push(struct queue *queue)
{
	if (queue->count - queue->gone == queue->room) {
		queue->room = queue->room > 0 ? 2 * queue->room : 64;
		queue->operations =
			realloc(queue->operations, (size_t)queue->room * sizeof(struct operation));
	}
	return &queue->operations[queue->count++ - queue->gone];
}

static void release(struct recording *recording)
{
	if (--recording->shares > 0)
		return;
	for (int q = 0; q < recording->queue_count; q++) {
		struct queue *queue = recording->queues[q];

		for (long i = 0; i < queue->count; i++)
			free(queue->operations[i].data);
		free(queue->operations);
		free(queue);
	}
	free(recording);
}

unsigned long long fake_cuda_clock(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return 1000000000ull * (unsigned long long)(now.tv_sec + 1000000) +
	       (unsigned long long)now.tv_nsec;
}

void fake_cuda_watch(void (*seen)(const struct fake_activity *activity))
{
	watcher = seen;
}

/* The kernel, or the file of the library that the work is of. */
static const char *name_of(const struct operation *o)
{
	static const char *const names[] = {[COPY] = "copy",
					    [FILL] = "fill",
					    [RECORD] = "record",
					    [WAIT] = "wait",
					    [GRAPH] = "graph"};
	Dl_info library;
	const char *slash;

	if (o->kind == LAUNCH)
		return o->kernel->name;
	if (o->kind != CALL)
		return names[o->kind];
	if (dladdr((void *)(uintptr_t)o->run, &library) == 0)
		return "library";
	slash = strrchr(library.dli_fname, '/');
	return slash != NULL ? slash + 1 : library.dli_fname;
}

static void tell(const struct operation *o, unsigned long long begin)
{
	struct fake_activity activity = {
		.kind = o->kind == COPY	  ? FAKE_COPY
			: o->kind == FILL ? FAKE_FILL
					  : FAKE_KERNEL,
		.name = name_of(o),
		.begin = begin,
		.end = fake_cuda_clock(),
		.bytes = o->bytes,
		.correlation = o->correlation,
	};

	watcher(&activity);
}

static void run_recording(struct recording *recording, unsigned correlation)
{
	for (int q = 0; q < recording->queue_count; q++) {
		struct queue *queue = recording->queues[q];

		queue->done = 0;
		for (long i = 0; i < queue->count; i++)
			queue->operations[i].correlation = correlation;
	}
	for (int q = 0; q < recording->queue_count; q++)
		drain(recording->queues[q], recording->queues[q]->count, true);
}

static void run(const struct operation *o)
{
	unsigned long long begin = fake_cuda_clock();

	/* Only for these, and until the host goes on: opening takes time, and copies do without. */
	if (o->kind == LAUNCH || o->kind == CALL)
		fake_memory_open();
	switch (o->kind) {
	case LAUNCH:
		fake_kernel_run(o->kernel, o->blocks, o->threads, o->data);
		break;
	case CALL:
		o->run(o->data);
		break;
	case COPY:
		memmove(fake_copy_place(o->to), fake_copy_place(o->from), o->bytes);
		break;
	case FILL:
		memset(fake_copy_place(o->to), o->value, o->bytes);
		break;
	case RECORD:
		o->event->milliseconds = (double)begin * 1e-6;
		break;
	case WAIT:
		drain(o->queue, o->position, o->recording != NULL);
		break;
	case GRAPH:
		run_recording(o->recording, o->correlation);
		break;
	}
	if (watcher != NULL && o->kind <= FILL)
		tell(o, begin);
}

/* Runs the queue's operations below number `to`, and first what they wait for. */
static void drain(struct queue *queue, long to, bool keep)
{
	while (queue->done < to) {
		struct operation o = queue->operations[queue->done++ - queue->gone];

		run(&o);
		if (keep)
			continue;
		free(o.data);
		if (o.kind == GRAPH)
			release(o.recording);
		if (queue->done == queue->count)
			queue->gone = queue->count;
	}
}

static int wait_for(struct queue *queue, long position)
{
	drain(queue, position, false);
	fake_memory_close();
	return CUDA_SUCCESS;
}

static bool is_stream(const struct CUstream_st *stream)
{
	const struct CUstream_st *known = streams;

	while (known != NULL && known != stream)
		known = known->next;
	return known != NULL;
}

bool fake_forbidden(const char *what)
{
	if (capture == NULL)
		return false;
	spoiled = true;
	fake_refuse(0, "%s while a stream is captured", what);
	return true;
}

bool fake_capturing(const struct CUstream_st *stream)
{
	return is_stream(stream) && stream->recording != NULL;
}

static bool swapped(long number, const struct operation *first, const struct operation *second)
{
	char names[160];

	snprintf(names, sizeof(names), "%.75s/%.75s", name_of(first), name_of(second));
	return fake_mistake("swap", number, names);
}

/* Records the operation, unless the caller is to have forgotten it. */
static void record_captured(struct queue *queue, const struct operation *operation)
{
	long number = queue->issued++;
	struct operation *last = push(queue), *before = last - 1;

	*last = *operation;
	if (fake_mistake("skip", number, name_of(operation))) {
		free(last->data);
		queue->count--;
	} else if (queue->count > 1 && swapped(number - 1, before, last)) {
		struct operation second = *before;

		*before = *last;
		*last = second;
	}
}

int fake_append(struct CUstream_st *stream, const struct operation *operation)
{
	static long copies, fills;
	struct operation added = *operation;

	if (!is_stream(stream))
		return fake_refuse(ERROR_HANDLE, "work on %p, which is no stream", (void *)stream);
	added.correlation = ++correlations;
	if (stream->recording != NULL) {
		record_captured(stream->recorded, &added);
		return CUDA_SUCCESS;
	}
	if (added.kind == COPY && fake_mistake("copy", copies++, "copy"))
		return CUDA_SUCCESS;
	if (added.kind == FILL && fake_mistake("fill", fills++, "fill"))
		added.value = 0xff;
	*push(&stream->queue) = added;
	return CUDA_SUCCESS;
}

long fake_cuda_pending(void)
{
	long pending = 0;

	for (const struct CUstream_st *s = streams; s != NULL; s = s->next)
		pending += s->queue.count - s->queue.done;
	return pending;
}

int fake_cuda_enqueue(void *stream, void (*call)(void *data), const void *data, size_t bytes)
{
	struct operation operation = {.kind = CALL, .run = call};
	int status;

	operation.data = malloc(bytes > 0 ? bytes : 1);
	memcpy(operation.data, data, bytes);
	status = fake_append(stream, &operation);
	if (status != CUDA_SUCCESS)
		free(operation.data);
	return status;
}

FAKE_EXPORT int cuStreamCreate(struct CUstream_st **stream, unsigned flags)
{
	if (flags != CU_STREAM_NON_BLOCKING)
		return fake_refuse(ERROR_UNSUPPORTED, "a stream that the default stream blocks");
	*stream = calloc(1, sizeof(**stream));
	(*stream)->next = streams;
	streams = *stream;
	return CUDA_SUCCESS;
}

/* The stream's work runs before, as nobody could wait for it later. */
FAKE_EXPORT int cuStreamDestroy_v2(struct CUstream_st *stream)
{
	struct CUstream_st **place = &streams;

	if (!is_stream(stream))
		return ERROR_HANDLE;
	if (fake_forbidden("cuStreamDestroy"))
		return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	wait_for(&stream->queue, stream->queue.count);
	while (*place != stream)
		place = &(*place)->next;
	*place = stream->next;
	free(stream->queue.operations);
	free(stream);
	return CUDA_SUCCESS;
}

FAKE_EXPORT int cuStreamSynchronize(struct CUstream_st *stream)
{
	static long waits;

	if (!is_stream(stream))
		return ERROR_HANDLE;
	if (fake_forbidden("cuStreamSynchronize"))
		return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	if (fake_mistake("wait", waits++, "cuStreamSynchronize"))
		return CUDA_SUCCESS;
	return wait_for(&stream->queue, stream->queue.count);
}

static struct queue *new_recorded(struct recording *recording)
{
	struct queue *queue = calloc(1, sizeof(*queue));

	if (recording->queue_count == 16)
		fake_abort("a capture of more than 16 streams");
	recording->queues[recording->queue_count++] = queue;
	return queue;
}

/* The stream waits for an event of the capture: it belongs to it from here on. */
static void join_capture(struct CUstream_st *stream)
{
	stream->recording = capture;
	stream->recorded = new_recorded(capture);
}

FAKE_EXPORT int cuStreamWaitEvent(struct CUstream_st *stream, struct CUevent_st *event,
				  unsigned flags)
{
	struct operation o = {.kind = WAIT, .queue = event->queue, .position = event->position};

	(void)flags;
	if (!is_stream(stream))
		return ERROR_HANDLE;
	if (event->recording != NULL && event->recording == capture && stream->recording == NULL)
		join_capture(stream);
	if (event->recording != stream->recording) {
		spoiled = true;
		return fake_refuse(ERROR_ISOLATION, "a wait for an event outside the capture");
	}
	if (event->queue == NULL)
		return CUDA_SUCCESS;
	o.recording = stream->recording;
	if (o.recording != NULL && event->position > event->queue->joined)
		event->queue->joined = event->position;
	return fake_append(stream, &o);
}

FAKE_EXPORT int cuStreamBeginCapture_v2(struct CUstream_st *stream, int mode)
{
	(void)mode; /* the strictest for all */
	if (!is_stream(stream))
		return ERROR_HANDLE;
	if (fake_forbidden("cuStreamBeginCapture"))
		return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	capture = calloc(1, sizeof(*capture));
	capture->shares = 1;
	spoiled = false;
	join_capture(stream);
	stream->origin = true;
	return CUDA_SUCCESS;
}

FAKE_EXPORT int cuStreamEndCapture(struct CUstream_st *stream, struct CUgraph_st **graph)
{
	struct recording *recording = capture;
	int status = spoiled ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : CUDA_SUCCESS;

	*graph = NULL;
	if (!fake_capturing(stream) || !stream->origin)
		return fake_refuse(CUDA_ERROR_INVALID_VALUE, "the end of a capture of no stream");
	for (int q = 1; q < recording->queue_count && status == CUDA_SUCCESS; q++)
		if (recording->queues[q]->joined < recording->queues[q]->count)
			status = fake_refuse(ERROR_UNJOINED, "the captured stream does not wait "
							     "for another that works for it");
	for (struct CUstream_st *s = streams; s != NULL; s = s->next) {
		s->recording = NULL;
		s->origin = false;
	}
	capture = NULL;
	if (status != CUDA_SUCCESS) {
		release(recording);
		return status;
	}
	*graph = malloc(sizeof(**graph));
	(*graph)->recording = recording;
	return CUDA_SUCCESS;
}

FAKE_EXPORT int cuGraphInstantiateWithFlags(struct CUgraphExec_st **ready, struct CUgraph_st *graph,
					    unsigned long long flags)
{
	(void)flags;
	if (fake_forbidden("cuGraphInstantiate"))
		return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	*ready = malloc(sizeof(**ready));
	(*ready)->recording = graph->recording;
	graph->recording->shares++;
	return CUDA_SUCCESS;
}

FAKE_EXPORT int cuGraphLaunch(struct CUgraphExec_st *ready, struct CUstream_st *stream)
{
	struct operation o = {.kind = GRAPH, .recording = ready->recording};
	int status;

	if (fake_forbidden("cuGraphLaunch"))
		return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	status = fake_append(stream, &o);
	if (status == CUDA_SUCCESS)
		ready->recording->shares++;
	return status;
}

FAKE_EXPORT int cuGraphDestroy(struct CUgraph_st *graph)
{
	release(graph->recording);
	free(graph);
	return CUDA_SUCCESS;
}

FAKE_EXPORT int cuGraphExecDestroy(struct CUgraphExec_st *ready)
{
	release(ready->recording);
	free(ready);
	return CUDA_SUCCESS;
}

FAKE_EXPORT int cuEventCreate(struct CUevent_st **event, unsigned flags)
{
	(void)flags;
	*event = calloc(1, sizeof(**event));
	return CUDA_SUCCESS;
}

FAKE_EXPORT int cuEventDestroy_v2(struct CUevent_st *event)
{
	if (event->queue != NULL && event->recording == NULL &&
	    event->queue->done < event->position)
		return fake_refuse(ERROR_NOT_READY, "an event is destroyed before it is reached");
	free(event);
	return CUDA_SUCCESS;
}

FAKE_EXPORT int cuEventRecord(struct CUevent_st *event, struct CUstream_st *stream)
{
	struct operation o = {.kind = RECORD, .event = event};
	int status = fake_append(stream, &o);

	if (status != CUDA_SUCCESS)
		return status;
	event->recording = stream->recording;
	event->queue = stream->recording != NULL ? stream->recorded : &stream->queue;
	event->position = event->queue->count;
	return CUDA_SUCCESS;
}

FAKE_EXPORT int cuEventSynchronize(struct CUevent_st *event)
{
	if (fake_forbidden("cuEventSynchronize"))
		return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	if (event->recording != NULL)
		return fake_refuse(ERROR_CAPTURED_EVENT, "a wait for an event of a capture");
	return event->queue != NULL ? wait_for(event->queue, event->position) : CUDA_SUCCESS;
}

static bool reached(const struct CUevent_st *event)
{
	return event->queue != NULL && event->recording == NULL &&
	       event->queue->done >= event->position;
}

FAKE_EXPORT int cuEventElapsedTime(float *milliseconds, struct CUevent_st *start,
				   struct CUevent_st *end)
{
	if (fake_forbidden("cuEventElapsedTime"))
		return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	if (!reached(start) || !reached(end))
		return fake_refuse(ERROR_NOT_READY, "the time of an event that is not reached");
	*milliseconds = (float)(end->milliseconds - start->milliseconds);
	return CUDA_SUCCESS;
}
