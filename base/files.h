/* Files and the folders where prony keeps things. */
#ifndef PRONY_BASE_FILES_H
#define PRONY_BASE_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

/* Reads a whole file of at most limit_bytes. *out ends with a 0 byte that *length does not count;
 * the caller frees *out. PRONY_BAD_INPUT when the file does not exist, cannot be opened, is a
 * directory or is too large; PRONY_IO when reading fails. */
enum prony_status file_read(const char *path, size_t limit_bytes, char **out, size_t *length,
			    struct error *err);

/* Writes to a temporary file in the same folder, syncs it and renames it, so that the file is
 * either whole or absent. An existing file keeps its permissions. Only a regular file is replaced
 * this way: a symbolic link is followed; a device or a pipe is written to directly. */
enum prony_status file_write_atomic(const char *path, const void *bytes, size_t length,
				    struct error *err);

/* file_write_atomic in pieces. The name appears only after file_writer_finish. If a piece or the
 * finish fails, the temporary file is removed and the writer is freed. file_writer_abandon does the
 * same and accepts NULL. */
struct file_writer;
enum prony_status file_writer_open(const char *path, struct file_writer **out, struct error *err);
enum prony_status file_writer_add(struct file_writer *writer, const void *bytes, size_t length,
				  struct error *err);
enum prony_status file_writer_finish(struct file_writer *writer, struct error *err);
void file_writer_abandon(struct file_writer *writer);

/* Writes all bytes, also when a signal interrupts it; false with errno. */
bool file_write_all(int fd, const void *bytes, size_t length);

/* Reads `length` bytes at an offset, fewer only at the end of the file; -1 with errno. */
ssize_t file_read_at(int fd, int64_t offset, void *out, size_t length);

/* Checks beforehand whether file_write_atomic can work, so that no result is computed in vain.
 * PRONY_IO with the reason. Writes nothing and does not block on a pipe. */
enum prony_status file_check_output(const char *path, struct error *err);

/* Whether two names refer to the same file. */
bool file_is_same(const char *a, const char *b);

/* Identifies a version of a file: it changes when the file is written or replaced. */
struct file_stamp {
	int64_t device, inode, bytes, changed_ns;
};

/* All zero when the file does not exist. */
struct file_stamp file_stamp(const char *path);
bool file_stamp_equal(const struct file_stamp *a, const struct file_stamp *b);

/* The size of the file; 0 when it does not exist. */
int64_t file_bytes(const char *path);

bool file_exists(const char *path);
bool file_is_directory(const char *path);
/* Whether the path is a non-empty regular file or a link to one. */
bool file_has_bytes(const char *path);

/* mkdir -p. */
enum prony_status directory_make(const char *path, struct error *err);

/* rm -rf. Never follows links. A path that does not exist is fine. */
enum prony_status directory_remove(const char *path, struct error *err);

/* A new private directory below $TMPDIR or /tmp; caller frees *out. */
enum prony_status directory_make_temporary(const char *prefix, char **out, struct error *err);

/* "a/b"; caller frees. */
char *path_join(const char *a, const char *b);

/* $XDG_DATA_HOME/prony, or ~/.local/share/prony; caller frees. */
char *path_data_home(void);

/* Folders with frameworks/ and data/, in search order: path_data_home(), the only one that prony
 * writes to, then those that somebody filled for all users: $PRONY_SHARED, or without it DIR/prony
 * of each DIR in $XDG_DATA_DIRS (default: /usr/local/share and /usr/share) that exists. The caller
 * frees each. */
enum { PATH_DATA_HOMES_MAX = 8 };
size_t path_data_homes(char *homes[PATH_DATA_HOMES_MAX]);

/* $XDG_CONFIG_HOME/prony, or ~/.config/prony; caller frees. */
char *path_config_home(void);

/* $XDG_CACHE_HOME/prony, or ~/.cache/prony; caller frees. */
char *path_cache_home(void);

/* The folder of shared files (suites/, python/, locks/): $PRONY_SHARE, or else found relative to
 * the executable (build tree, or PREFIX/share/prony). NULL when there is none. The caller frees it.
 */
char *path_share(void);

/* The path of the running executable (/proc/self/exe); caller frees. */
char *path_self(void);

#endif
