#include "datasets/crc32c.h"

#include <pthread.h>

enum { SLICES = 8 };

static uint32_t tables[SLICES][256];
static pthread_once_t made = PTHREAD_ONCE_INIT;

static void make_tables(void)
{
	for (uint32_t i = 0; i < 256; i++) {
		uint32_t value = i;

		for (int bit = 0; bit < 8; bit++)
			value = value >> 1 ^ (value & 1 ? 0x82f63b78u : 0);
		tables[0][i] = value;
	}
	for (int slice = 1; slice < SLICES; slice++)
		for (int i = 0; i < 256; i++)
			tables[slice][i] =
				tables[slice - 1][i] >> 8 ^ tables[0][tables[slice - 1][i] & 0xff];
}

/* Processes eight bytes at a time (Kounavis and Berry 2005). */
uint32_t crc32c(const void *bytes, size_t length)
{
	const uint8_t *at = bytes;
	uint32_t crc = 0xffffffffu;

	pthread_once(&made, make_tables);
	for (; length >= 8; length -= 8, at += 8) {
		crc ^= (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 |
		       (uint32_t)at[3] << 24;
		crc = tables[7][crc & 0xff] ^ tables[6][crc >> 8 & 0xff] ^
		      tables[5][crc >> 16 & 0xff] ^ tables[4][crc >> 24] ^ tables[3][at[4]] ^
		      tables[2][at[5]] ^ tables[1][at[6]] ^ tables[0][at[7]];
	}
	for (; length > 0; length--)
		crc = tables[0][(crc ^ *at++) & 0xff] ^ crc >> 8;
	return ~crc;
}

uint32_t crc32c_masked(const void *bytes, size_t length)
{
	uint32_t crc = crc32c(bytes, length);

	return (crc >> 15 | crc << 17) + 0xa282ead8u;
}
