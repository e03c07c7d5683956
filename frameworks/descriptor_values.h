/* Private to the reader of descriptors: what values of keys may be, and how each is read. */
#ifndef PRONY_FRAMEWORKS_DESCRIPTOR_VALUES_H
#define PRONY_FRAMEWORKS_DESCRIPTOR_VALUES_H

#include "base/yaml_file.h"
#include "frameworks/descriptor.h"

#define DESCRIPTOR_WORDS_MAX ((size_t)256)

struct reader {
	struct yaml_file yaml;
	bool of_user;
	const yaml_node_t *worker, *options, *backends; /* where they stand; NULL when not */
};

struct key {
	const char *name;
	unsigned places; /* where it stands: a bit set of the grammar's places */
	enum prony_status (*read)(struct reader *reader, const struct key *key,
				  const yaml_node_t *value, void *target, struct error *err);
	size_t offset; /* of the member in the place's struct */
	const char *needs, *example;
	bool of_tree; /* not in a user's file */
};

/* "KEY: needs ... and has ...; write ...". */
enum prony_status reader_needs(struct reader *reader, const struct key *key,
			       const yaml_node_t *value, struct error *err);
/* The text of a scalar that says something; NULL for others. */
const char *reader_word(const yaml_node_t *value);

/* Each reads the value of a key into the struct at `target`, where struct key says. */
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
VALUE_READER(read_precisions);
VALUE_READER(read_loops);
VALUE_READER(read_devices);
VALUE_READER(read_environment);
VALUE_READER(read_adapter);
VALUE_READER(read_python);
#undef VALUE_READER

#endif
