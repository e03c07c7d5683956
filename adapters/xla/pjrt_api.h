/* The part of the PJRT C interface that prony calls, declared here so that building needs no
 * package. Within major version 0, functions and members are only added at the end
 * (xla/pjrt/c/pjrt_c_api.h), so positions are stable. Each structure starts with its size: a
 * library of another minor version reads the part that it knows, and missing members are zero. */
#ifndef PRONY_ADAPTERS_XLA_PJRT_API_H
#define PRONY_ADAPTERS_XLA_PJRT_API_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PJRT_MAJOR 0

struct pjrt_error; /* NULL = success; otherwise destroy it with error_destroy */
struct pjrt_event;
struct pjrt_client;
struct pjrt_device;
struct pjrt_executable; /* PJRT_LoadedExecutable */
struct pjrt_buffer;

enum pjrt_error_code { PJRT_RESOURCE_EXHAUSTED = 8, PJRT_UNIMPLEMENTED = 12 };
enum pjrt_value_type { PJRT_VALUE_STRING = 0, PJRT_VALUE_INT64 = 1 };
enum pjrt_element { PJRT_S32 = 4, PJRT_U64 = 9, PJRT_F32 = 11, PJRT_BF16 = 13 };
enum pjrt_semantics { PJRT_IMMUTABLE_ONLY_DURING_CALL = 0 };
enum pjrt_layout_type { PJRT_LAYOUT_TILED = 0 };

/* The first members of every structure. */
#define PJRT_HEAD                                                                                  \
	size_t struct_size;                                                                        \
	void *extensions

struct pjrt_version {
	PJRT_HEAD;
	int major, minor;
};

struct pjrt_named_value {
	PJRT_HEAD;
	const char *name;
	size_t name_bytes;
	enum pjrt_value_type type;
	union {
		const char *string;
		int64_t int64;
		const int64_t *int64s;
	} value;
	size_t value_count; /* for a string, its bytes */
};

/* Arguments of functions that take or return one thing. */
struct pjrt_empty_args {
	PJRT_HEAD;
};
struct pjrt_object_args {
	PJRT_HEAD;
	void *object;
};
struct pjrt_code_args {
	PJRT_HEAD;
	const struct pjrt_error *error;
	enum pjrt_error_code code; /* out */
};
/* A text owned by the object; not terminated. */
struct pjrt_text_args {
	PJRT_HEAD;
	const void *object;
	const char *text;  /* out */
	size_t text_bytes; /* out */
};
struct pjrt_attributes_args {
	PJRT_HEAD;
	const struct pjrt_named_value *attributes; /* out */
	size_t count;				   /* out */
};

struct pjrt_client_create_args {
	PJRT_HEAD;
	const struct pjrt_named_value *options;
	size_t option_count;
	void *unused[4];
	struct pjrt_client *client; /* out */
	void *unused_later[2];
};

struct pjrt_devices_args {
	PJRT_HEAD;
	struct pjrt_client *client;
	struct pjrt_device *const *devices; /* out */
	size_t count;			    /* out */
};

struct pjrt_description_args {
	PJRT_HEAD;
	struct pjrt_device *device;
	const void *description; /* out */
};

struct pjrt_id_args {
	PJRT_HEAD;
	const void *description;
	int id; /* out */
};

struct pjrt_program {
	PJRT_HEAD;
	char *code;
	size_t code_bytes;
	const char *format;
	size_t format_bytes;
};

struct pjrt_compile_args {
	PJRT_HEAD;
	struct pjrt_client *client;
	const struct pjrt_program *program;
	const char *options; /* CompileOptionsProto */
	size_t option_bytes;
	struct pjrt_executable *executable; /* out */
};

struct pjrt_loaded_args {
	PJRT_HEAD;
	struct pjrt_executable *loaded;
	void *executable; /* out: the compiled program without its devices */
};

struct pjrt_optimised_args {
	PJRT_HEAD;
	void *executable;
	struct pjrt_program *program; /* if `code` is NULL, only size and format are returned */
};

struct pjrt_layout {
	PJRT_HEAD;
	struct {
		PJRT_HEAD;
		const int64_t *minor_to_major;
		size_t minor_to_major_count;
		const int64_t *tile_dims;
		const size_t *tile_dim_sizes;
		size_t tile_count;
	} tiled;
	enum pjrt_layout_type type;
};

struct pjrt_from_host_args {
	PJRT_HEAD;
	struct pjrt_client *client;
	const void *data;
	enum pjrt_element type;
	const int64_t *dims;
	size_t rank;
	const int64_t *byte_strides; /* NULL: dense, the last dimension varies fastest */
	size_t byte_stride_count;
	enum pjrt_semantics semantics;
	struct pjrt_device *device;
	void *memory;
	struct pjrt_layout *device_layout;
	struct pjrt_event *done;    /* out: the data may be freed */
	struct pjrt_buffer *buffer; /* out */
};

struct pjrt_to_host_args {
	PJRT_HEAD;
	struct pjrt_buffer *buffer;
	struct pjrt_layout *host_layout;
	void *data;
	size_t bytes;
	struct pjrt_event *event; /* out */
};

struct pjrt_ready_args {
	PJRT_HEAD;
	struct pjrt_buffer *buffer;
	struct pjrt_event *event; /* out */
};

struct pjrt_dimensions_args {
	PJRT_HEAD;
	struct pjrt_buffer *buffer;
	const int64_t *dims; /* out */
	size_t rank;	     /* out */
};

struct pjrt_execute_options {
	PJRT_HEAD;
	void *callbacks[2];
	size_t callback_counts[2];
	int launch_id;
	const int64_t *not_donated;
	size_t not_donated_count;
	void *unused_later[9]; /* with the context of HLO output callbacks, API 0.113 */
};

struct pjrt_execute_args {
	PJRT_HEAD;
	struct pjrt_executable *executable;
	struct pjrt_execute_options *options;
	struct pjrt_buffer *const *const *arguments; /* one list per device */
	size_t device_count, argument_count;
	struct pjrt_buffer **const *results; /* one list per device; the caller frees the buffers */
	struct pjrt_event **done;	     /* NULL: not requested */
	struct pjrt_device *device;
};

typedef void pjrt_unused(void);
typedef struct pjrt_error *pjrt_object_function(struct pjrt_object_args *args);
typedef struct pjrt_error *pjrt_text_function(struct pjrt_text_args *args);

/* PJRT_Api. The number after each member is its position among the functions. */
struct pjrt_api {
	PJRT_HEAD;
	struct pjrt_version version;
	void (*error_destroy)(struct pjrt_object_args *args);			    /* 0 */
	void (*error_message)(struct pjrt_text_args *args);			    /* 1 */
	struct pjrt_error *(*error_code)(struct pjrt_code_args *args);		    /* 2 */
	struct pjrt_error *(*plugin_initialize)(struct pjrt_empty_args *args);	    /* 3 */
	struct pjrt_error *(*plugin_attributes)(struct pjrt_attributes_args *args); /* 4 */
	pjrt_object_function *event_destroy;					    /* 5 */
	pjrt_unused *unused_6[2];
	pjrt_object_function *event_await; /* 8 */
	pjrt_unused *unused_9[1];
	struct pjrt_error *(*client_create)(struct pjrt_client_create_args *args); /* 10 */
	pjrt_object_function *client_destroy;					   /* 11 */
	pjrt_text_function *client_platform_name;				   /* 12 */
	pjrt_unused *unused_13[1];
	pjrt_text_function *client_platform_version; /* 14 */
	pjrt_unused *unused_15[1];
	struct pjrt_error *(*client_addressable_devices)(struct pjrt_devices_args *args); /* 16 */
	pjrt_unused *unused_17[3];
	struct pjrt_error *(*client_compile)(struct pjrt_compile_args *args); /* 20 */
	pjrt_unused *unused_21[1];
	struct pjrt_error *(*buffer_from_host)(struct pjrt_from_host_args *args); /* 22 */
	struct pjrt_error *(*description_id)(struct pjrt_id_args *args);	  /* 23 */
	pjrt_unused *unused_24[2];
	pjrt_text_function *description_kind; /* 26 */
	pjrt_unused *unused_27[2];
	struct pjrt_error *(*device_description)(struct pjrt_description_args *args); /* 29 */
	pjrt_unused *unused_30[10];
	pjrt_object_function *program_destroy; /* 40 */
	pjrt_unused *unused_41[7];
	struct pjrt_error *(*program_optimised)(struct pjrt_optimised_args *args); /* 48 */
	pjrt_unused *unused_49[1];
	pjrt_object_function *executable_destroy;				 /* 50 */
	struct pjrt_error *(*executable_program)(struct pjrt_loaded_args *args); /* 51 */
	pjrt_unused *unused_52[3];
	struct pjrt_error *(*executable_execute)(struct pjrt_execute_args *args); /* 55 */
	pjrt_unused *unused_56[2];
	pjrt_object_function *buffer_destroy; /* 58 */
	pjrt_unused *unused_59[1];
	struct pjrt_error *(*buffer_dimensions)(struct pjrt_dimensions_args *args); /* 60 */
	pjrt_unused *unused_61[9];
	struct pjrt_error *(*buffer_to_host)(struct pjrt_to_host_args *args); /* 70 */
	pjrt_unused *unused_71[1];
	struct pjrt_error *(*buffer_ready_event)(struct pjrt_ready_args *args); /* 72 */
};

#define PJRT_POSITION(member, position)                                                            \
	_Static_assert(offsetof(struct pjrt_api, member) ==                                        \
			       offsetof(struct pjrt_api, error_destroy) +                          \
				       (position) * sizeof(pjrt_unused *),                         \
		       "position of " #member " in PJRT_Api")
PJRT_POSITION(plugin_attributes, 4);
PJRT_POSITION(event_await, 8);
PJRT_POSITION(client_platform_version, 14);
PJRT_POSITION(client_addressable_devices, 16);
PJRT_POSITION(client_compile, 20);
PJRT_POSITION(buffer_from_host, 22);
PJRT_POSITION(device_description, 29);
PJRT_POSITION(program_destroy, 40);
PJRT_POSITION(program_optimised, 48);
PJRT_POSITION(executable_destroy, 50);
PJRT_POSITION(executable_execute, 55);
PJRT_POSITION(buffer_dimensions, 60);
PJRT_POSITION(buffer_to_host, 70);
PJRT_POSITION(buffer_ready_event, 72);

#endif
