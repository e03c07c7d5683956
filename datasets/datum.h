/* Caffe's Datum (caffe.proto, message Datum): what an entry of its LMDB databases holds. */
#ifndef PRONY_DATASETS_DATUM_H
#define PRONY_DATASETS_DATUM_H

#include "datasets/format.h"
#include "datasets/protobuf.h"

void datum_write(const struct data_record *record, struct byte_buffer *out);

/* False where the bytes are no Datum with a label and either pixels of its shape or a picture. Name
 * and place stay as they are. */
bool datum_read(const uint8_t *bytes, size_t length, struct data_record *out);

#endif
