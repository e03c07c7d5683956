/* CRC-32C (Castagnoli; RFC 3720, appendix B.4), with the masking of TFRecord files. */
#ifndef PRONY_DATASETS_CRC32C_H
#define PRONY_DATASETS_CRC32C_H

#include <stddef.h>
#include <stdint.h>

uint32_t crc32c(const void *bytes, size_t length);
uint32_t crc32c_masked(const void *bytes, size_t length);

#endif
