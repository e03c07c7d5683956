/* Private to the descriptor reader: types of values and their readers. */
#ifndef PRONY_FRAMEWORKS_DESCRIPTOR_VALUES_H
#define PRONY_FRAMEWORKS_DESCRIPTOR_VALUES_H

#include "base/yaml_file.h"
#include "frameworks/descriptor.h"

#define DESCRIPTOR_WORDS_MAX ((size_t)256)

struct reader {
	struct yaml_file yaml;
	bool of_user;
	const yaml_node_t *worker, *options, *backends; /* position in the file; NULL when absent */
};

struct key {
	const char *name;
	unsigned places; /* contexts where the key is allowed, a bit set */
	enum prony_status (*read)(struct reader *reader, const struct key *key,
				  const yaml_node_t *value, void *target, struct error *err);
	size_t offset; /* of the member in the context's struct */
	const char *needs, *example;
	bool of_tree; /* refused in a user's file */
};

/* "KEY: needs ... and has ...; write ...". */
enum prony_status reader_needs(struct reader *reader, const struct key *key,
			       const yaml_node_t *value, struct error *err);
/* The text of a non-empty scalar; NULL for other nodes. */
const char *reader_word(const yaml_node_t *value);

/* Each reads the value of a key into the struct at `target`, as described by struct key. */
#define VALUE_READER(function)                                                                     \
	enum prony_status function(struct reader *reader, const struct key *key,                   \
				   const yaml_node_t *value, void *target, struct error *err)
VALUE_READER(read_text);
VALUE_READER(read_lines);
VALUE_READER(read_flag);
VALUE_READER(read_words);
VALUE_READER(read_command);
VALUE_READER(read_variables);
VALUE_READER(read_stages);
VALUE_READER(read_lacks);
VALUE_READER(read_precisions);
VALUE_READER(read_loops);
VALUE_READER(read_devices);
VALUE_READER(read_capability);
VALUE_READER(read_environment);
VALUE_READER(read_adapter);
VALUE_READER(read_python);
#undef VALUE_READER

#endif
