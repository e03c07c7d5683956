/* safetensors files and images: 8 bytes of header length (little-endian), a JSON header, the data
 * (https://huggingface.co/docs/safetensors). Tensors leave a process only in this form. */
#ifndef PRONY_BUNDLE_SAFETENSORS_H
#define PRONY_BUNDLE_SAFETENSORS_H

#include <stddef.h>

#include "graph/tensor.h"

/* Returns the bytes of the image of a set; 0 if its sizes overflow. Data starts at a multiple of
 * 64. */
size_t safetensors_image_bytes(const struct tensor_set *set);

/* Writes the image's header and points every tensor of the set at its data in the image; the caller
 * then writes the data. The memory is not cleared, so every element must be written. The first
 * tensor starts at a multiple of 64 from the image's start; an F32 tensor starts at a multiple of 4
 * if all before it are F32 too. */
enum prony_status safetensors_lay_out(struct tensor_set *set, void *image, size_t bytes,
				      struct error *err);

/* Copies the set into an image in memory of at least safetensors_image_bytes(set). */
enum prony_status safetensors_write_image(const struct tensor_set *set, void *image, size_t bytes,
					  struct error *err);

/* Writes a file atomically, directly from the tensors' memory. */
enum prony_status safetensors_write_file(const struct tensor_set *set, const char *path,
					 struct error *err);

/* Reads an image without copying: the tensors point into it (data of a misaligned tensor are copied
 * into the arena). Malformed and hostile images are refused; the message contains `where` (the file
 * or "reply of worker"). Order: by offset in the data. */
enum prony_status safetensors_read_image(const void *image, size_t bytes, const char *where,
					 struct arena *arena, struct tensor_set *out,
					 struct error *err);

struct mapped_file {
	void *bytes;
	size_t length;
	const char *path; /* in the arena of its tensors */
};

/* Maps the file privately (copy on write) and reads it. Unmap it with safetensors_unmap. */
enum prony_status safetensors_map_file(const char *path, struct arena *arena,
				       struct mapped_file *map, struct tensor_set *out,
				       struct error *err);
void safetensors_unmap(struct mapped_file *map);

#endif
