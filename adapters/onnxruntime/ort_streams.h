/* Threads that compute whole steps in parallel. ONNX Runtime has no streams; for throughput its
 * documentation recommends several threads that call Run on one session, which computes each call
 * on its caller ("Thread management", intra_op_num_threads 1). */
#ifndef PRONY_ADAPTERS_ONNXRUNTIME_ORT_STREAMS_H
#define PRONY_ADAPTERS_ONNXRUNTIME_ORT_STREAMS_H

#include "base/error.h"

struct ort_streams;

/* Computes a step on a slot; called on any thread, for different slots at the same time. */
typedef enum prony_status ort_stream_step(void *context, int slot, struct error *err);

/* *out is ended with ort_streams_stop. */
enum prony_status ort_streams_start(int threads, int slots, ort_stream_step *step, void *context,
				    struct ort_streams **out, struct error *err);

/* Waits until the slot's last step is done, then queues the next; does not allocate. */
enum prony_status ort_streams_issue(struct ort_streams *streams, int slot, struct error *err);

/* Waits until everything issued is done; returns the first error since the last wait. */
enum prony_status ort_streams_wait(struct ort_streams *streams, struct error *err);

/* Finishes everything issued, ends the threads and frees them; NULL is fine. */
void ort_streams_stop(struct ort_streams *streams);

#endif
