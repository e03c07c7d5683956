/*
 * Threads that compute whole steps side by side. ONNX Runtime has no streams of its own: for
 * throughput its documentation has several threads call Run on one session that computes each call
 * on its caller ("Thread management", intra_op_num_threads 1).
 */
#ifndef PRONY_ADAPTERS_ONNXRUNTIME_ORT_STREAMS_H
#define PRONY_ADAPTERS_ONNXRUNTIME_ORT_STREAMS_H

#include "base/error.h"

struct ort_streams;

/* A step on a slot; called on any of the threads, for different slots at the same time. */
typedef enum prony_status ort_stream_step(void *context, int slot, struct error *err);

/* *out: ended with ort_streams_stop. */
enum prony_status ort_streams_start(int threads, int slots, ort_stream_step *step, void *context,
				    struct ort_streams **out, struct error *err);

/* Waits until the slot's last step is done, then has it computed; allocates nothing. */
enum prony_status ort_streams_issue(struct ort_streams *streams, int slot, struct error *err);

/* Until all that was issued is done; the first error of a step since the last wait. */
enum prony_status ort_streams_wait(struct ort_streams *streams, struct error *err);

/* Finishes what was issued, ends the threads and frees; NULL does nothing. */
void ort_streams_stop(struct ort_streams *streams);

#endif
