/* Reads MXNet's RecordIO (dmlc-core, include/dmlc/recordio.h): records of a magic number, a word
 * with flag and length, and the bytes, padded to a multiple of four. */
#ifndef PRONY_DATASETS_RECORDIO_H
#define PRONY_DATASETS_RECORDIO_H

#define RECORDIO_MAGIC 0xced7230au

enum { RECORDIO_WHOLE, RECORDIO_FIRST, RECORDIO_MIDDLE, RECORDIO_LAST };
enum {
	RECORDIO_LENGTH_BITS = 29,
	RECORDIO_LENGTH_MAX = (1 << RECORDIO_LENGTH_BITS) - 1,
	RECORDIO_HEADER_BYTES = 24, /* IRHeader: flag, label, id, id2 */
};

#endif
