/* Private to the fake of cuDNN: convolutions of its backend interface, planned from a table of
 * invented engines and computed by the reference's float64 kernels. Values of attributes and types
 * are those that prony uses (adapters/native/cuda/cudnn.h). */
#ifndef PRONY_TESTS_CUDA_FAKE_CUDNN_H
#define PRONY_TESTS_CUDA_FAKE_CUDNN_H

#include <stdbool.h>
#include <stdint.h>

#include "adapters/native/cuda/cudnn.h"

enum { ENTRIES_MAX = 10, ENGINES_MAX = 16, FAKE_TENSORS = 48, FAKE_OPERATIONS = 32 };

/* Attributes that only this fake and a complete caller know; values of cudnn_graph_v9.h. */
enum { CUDNN_ATTR_ENGINE_OPERATION_GRAPH = 1300, CUDNN_ATTR_DEVICEPROP_DEVICE_ID = 2700 };

enum { FAKE_VERSION = 91900, FAKE_OPERANDS = 5 };

struct fake_tensor {
	int64_t uid, alignment;
	int type;
	bool is_virtual, by_value;
	int64_t dims[4], strides[4];
};

/* A graph of any operations, computed one by one: attention and its gradients. */
struct fake_operation {
	int descriptor; /* its type */
	int mode;	/* of a function or reduction */
	int64_t axis;
	double probability; /* of a 1 */
	int in[3], out;	    /* tensors; -1: none */
};
struct fake_network {
	struct fake_tensor tensors[FAKE_TENSORS];
	struct fake_operation operations[FAKE_OPERATIONS];
	int tensor_count, operation_count;
};

enum fake_kind { FAKE_FORWARD, FAKE_GRAD_INPUT, FAKE_GRAD_WEIGHT, FAKE_KINDS };

/* A graph of operations, read from its descriptors: a convolution and what may follow it. */
struct fake_problem {
	enum fake_kind kind;
	bool has_sum, has_bias, has_relu;
	struct fake_tensor x, w, y; /* of the convolution: y or a gradient in its place */
	struct fake_tensor z;	    /* added before the bias */
	struct fake_tensor bias;
	struct fake_tensor out; /* what the graph writes */
	int64_t pre[2], post[2], strides[2], dilations[2];
	double alpha, beta;
	struct fake_network network; /* without operations: it is a convolution */
};

/* How an engine departs from float64 sums of its operands, rounded once. */
enum fake_arithmetic {
	FAKE_EXACT,
	FAKE_UNORDERED, /* in the last place, differently each time */
	FAKE_TF32,	/* operands of 11 bits */
	FAKE_BF16,	/* operands of 8 bits */
	FAKE_COARSE,	/* 3e-4 of the largest result */
	FAKE_OFF	/* 6e-4 of the largest result, as engine 17 was on an H200 */
};

struct fake_engine {
	int id;
	enum fake_arithmetic arithmetic;
	int notes[3], note_count;
	/* the plan's workspace: none; copies in the other layout where tensors are not
	 * (not) channels last; more than a card has */
	enum { WORKSPACE_NONE, WORKSPACE_IF_LAST, WORKSPACE_IF_PLANAR, WORKSPACE_HUGE } workspace;
	bool wide;	    /* for fp32, else for 16 bits */
	unsigned for_kinds; /* bits 1 << enum fake_kind */
	bool refuses;	    /* its plans are not finalised */
};

struct fake_entry {
	int attribute;
	int64_t count;
	void *data;
};

struct fake_descriptor {
	struct fake_descriptor *next; /* of all that exist */
	int type;
	bool finalized, destroyed;
	int references; /* the caller's and those of other descriptors */
	struct fake_entry entries[ENTRIES_MAX];
	int entry_count;
	struct fake_problem problem; /* graphs and all that is made of them, once finalised */
	const struct fake_engine *engine;
	int capability; /* plans, heuristics, properties: 10 * major + minor */
	char *text;	/* plans, properties */
};

struct fake_handle {
	void *stream;
};

/* fake_cudnn.c */
int fake_fail(int status, const char *why); /* returns the status */
const struct fake_entry *fake_entry(const struct fake_descriptor *d, int attribute);
/* The first element of an attribute of 4 bytes; `otherwise` if it was not set. */
int fake_word(const struct fake_descriptor *d, int attribute, int otherwise);
struct fake_descriptor *fake_child(const struct fake_descriptor *d, int attribute);

/* The pointer that a variant pack gives for a tensor; NULL if none. */
void *fake_pointer(const struct fake_descriptor *pack, int64_t uid);

/* fake_cudnn_graph.c */
bool fake_tensor_read(const struct fake_descriptor *operation, int attribute,
		      struct fake_tensor *out);
/* Checks and reads tensors, operations and graphs when they are finalised; returns a status. */
int fake_read(struct fake_descriptor *d);
/* The bytes from a tensor's first element to its last. */
int64_t fake_extent(const struct fake_tensor *tensor);
/* The tensors that a caller gives pointers for: the two that are read, z, bias, the one written
 * last. Returns how many. */
int fake_operands(const struct fake_problem *problem, const struct fake_tensor *out[FAKE_OPERANDS]);

/* fake_cudnn_plan.c */
/* Engines for the problem, in the order of the heuristics; returns how many, at most `room`. */
int fake_engines(const struct fake_problem *problem, int mode, const struct fake_engine **out,
		 int room);
int64_t fake_workspace(const struct fake_problem *problem, const struct fake_engine *engine);
/* The plan as text, owned by the caller; `capability` is 10 * major + minor. */
char *fake_plan_text(const struct fake_problem *problem, const struct fake_engine *engine,
		     int capability);
/* The reverse; false, and `why` says the reason: not such a text, another version or device. */
bool fake_plan_read(const char *text, size_t length, int capability, struct fake_problem *problem,
		    const struct fake_engine **engine, char why[128]);

/* fake_cudnn_run.c */
/* Puts the work on the handle's stream; `data` are the addresses on the device
 * in the order of fake_operands. False if the driver refuses. */
bool fake_run(const struct fake_handle *handle, const struct fake_problem *problem,
	      const struct fake_engine *engine, void *const data[FAKE_OPERANDS], void *workspace);

/* Element i of an array of that type; as the GPU rounds it. */
double fake_number_read(const void *data, int64_t i, int type);
void fake_number_write(void *data, int64_t i, int type, double value);

/* fake_cudnn_network.c */
/* Reads a graph that does not begin with a convolution; returns a status. */
int fake_network_read(const struct fake_descriptor *graph, struct fake_network *out);
/* Checks the pointers of the pack and puts the work on the handle's stream; returns a status. */
int fake_network_run(const struct fake_handle *handle, const struct fake_network *network,
		     const struct fake_descriptor *pack, void *workspace, int64_t workspace_bytes);

/* Whether the driver has a current context. */
bool fake_has_context(void);
/* Properties of the driver's device as cuDNN's text, owned by the caller. */
char *fake_device_text(int device);
/* "deviceVer" / 10 of properties; 0 if the text is not such. */
int fake_text_capability(const char *text);

#endif
