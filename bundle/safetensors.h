/*
 * safetensors files and images: 8 bytes of header length (little-endian), a JSON header, the data
 * (https://huggingface.co/docs/safetensors). The one form in which tensors leave a process.
 */
#ifndef PRONY_BUNDLE_SAFETENSORS_H
#define PRONY_BUNDLE_SAFETENSORS_H

#include <stddef.h>

#include "graph/tensor.h"

/* Bytes of the image of a set; 0 when its sizes overflow. Data starts at a multiple of 64. */
size_t safetensors_image_bytes(const struct tensor_set *set);

/*
 * Writes the image's header and points every tensor of the set at its data in the image, for
 * whoever has it to write them there. What was there before is left: every element has to be
 * written. The first tensor starts at a multiple of 64 from the image's start, one of F32 at a
 * multiple of 4 where all before it are of F32 too.
 */
enum prony_status safetensors_lay_out(struct tensor_set *set, void *image, size_t bytes,
				      struct error *err);

/* Copies the set into an image in memory of at least safetensors_image_bytes(set). */
enum prony_status safetensors_write_image(const struct tensor_set *set, void *image, size_t bytes,
					  struct error *err);

/* Writes a file, atomically, straight from where the tensors lie. */
enum prony_status safetensors_write_file(const struct tensor_set *set, const char *path,
					 struct error *err);

/*
 * Reads an image without copying: the tensors point into it (data of a misaligned tensor is copied
 * into the arena). Hostile images are refused: `where` (file or "reply of worker") is in the
 * message. Order: by offset in the data.
 */
enum prony_status safetensors_read_image(const void *image, size_t bytes, const char *where,
					 struct arena *arena, struct tensor_set *out,
					 struct error *err);

struct mapped_file {
	void *bytes;
	size_t length;
};

/* Maps the file privately (copy on write) and reads it; unmap with safetensors_unmap. */
enum prony_status safetensors_map_file(const char *path, struct arena *arena,
				       struct mapped_file *map, struct tensor_set *out,
				       struct error *err);
void safetensors_unmap(struct mapped_file *map);

#endif
