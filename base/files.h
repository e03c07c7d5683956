/* Files and the folders where prony keeps things. */
#ifndef PRONY_BASE_FILES_H
#define PRONY_BASE_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* Reads a whole file of at most limit_bytes; *out is terminated by a 0 that *length does not count;
 * the caller frees *out. PRONY_BAD_INPUT when it is not there, may not be read, is a directory or
 * too large; PRONY_IO when reading fails. */
enum prony_status file_read(const char *path, size_t limit_bytes, char **out, size_t *length,
			    struct error *err);

/* Writes to a temporary neighbour, syncs, renames: the file is whole or not there, and keeps its
 * rights. Only a regular file is replaced so; a link is followed, a device or a pipe written to. */
enum prony_status file_write_atomic(const char *path, const void *bytes, size_t length,
				    struct error *err);

/* The same in pieces: nothing stands under the name before it is finished. A piece or the end that
 * fails leaves nothing behind, and the writer is released by then; so it is by file_writer_abandon,
 * which takes NULL too. */
struct file_writer;
enum prony_status file_writer_open(const char *path, struct file_writer **out, struct error *err);
enum prony_status file_writer_add(struct file_writer *writer, const void *bytes, size_t length,
				  struct error *err);
enum prony_status file_writer_finish(struct file_writer *writer, struct error *err);
void file_writer_abandon(struct file_writer *writer);

/* Whether file_write_atomic may be expected to work, so that nothing is computed in vain; PRONY_IO
 * with the reason. Writes nothing and waits for no reader of a pipe. */
enum prony_status file_check_output(const char *path, struct error *err);

/* Whether two names are of one file. */
bool file_is_same(const char *a, const char *b);

/* What a file is until somebody writes to it or puts another one in its place. */
struct file_stamp {
	int64_t device, inode, bytes, changed_ns;
};

/* All zero when it is not there. */
struct file_stamp file_stamp(const char *path);
bool file_stamp_equal(const struct file_stamp *a, const struct file_stamp *b);

/* Its size; 0 when it is not there. */
int64_t file_bytes(const char *path);

bool file_exists(const char *path);
bool file_is_directory(const char *path);
/* A regular file, or a link to one, that is not empty. */
bool file_has_bytes(const char *path);

/* mkdir -p. */
enum prony_status directory_make(const char *path, struct error *err);

/* rm -rf, never following links; a path that is not there is fine. */
enum prony_status directory_remove(const char *path, struct error *err);

/* A new private directory below $TMPDIR or /tmp; caller frees *out. */
enum prony_status directory_make_temporary(const char *prefix, char **out, struct error *err);

/* "a/b"; caller frees. */
char *path_join(const char *a, const char *b);

/* $XDG_DATA_HOME/prony, or ~/.local/share/prony; caller frees. */
char *path_data_home(void);

/* $XDG_CONFIG_HOME/prony, or ~/.config/prony; caller frees. */
char *path_config_home(void);

/* $XDG_CACHE_HOME/prony, or ~/.cache/prony; caller frees. */
char *path_cache_home(void);

/*
 * The folder that holds what is installed beside the program (suites/, python/, locks/): from
 * $PRONY_SHARE, else found from the executable's own place (build tree or PREFIX/share/prony);
 * NULL when there is none. Caller frees.
 */
char *path_share(void);

/* The path of the running executable (/proc/self/exe); caller frees. */
char *path_self(void);

#endif
