/* TensorFlow's TFRecord (core/lib/io/record_writer.h) and Example (core/example/example.proto). */
#ifndef PRONY_DATASETS_TFRECORD_H
#define PRONY_DATASETS_TFRECORD_H

/* Fields of the messages. */
enum {
	TF_EXAMPLE_FEATURES = 1,
	TF_FEATURES_MAP = 1,
	TF_MAP_KEY = 1,
	TF_MAP_VALUE = 2,
	TF_BYTES_LIST = 1,
	TF_INT64_LIST = 3,
	TF_LIST_VALUE = 1,
};

/* Features. The label counts from 0. */
#define TF_NAME_CHANNELS "image/channels"
#define TF_NAME_LABEL "image/class/label"
#define TF_NAME_ENCODED "image/encoded"
#define TF_NAME_FILE "image/filename"
#define TF_NAME_FORMAT "image/format"
#define TF_NAME_HEIGHT "image/height"
#define TF_NAME_WIDTH "image/width"

#endif
