/* A SQLite file system whose n-th write fails: sqlite.org/vfs.html. */
#ifndef PRONY_TESTS_UNIT_FAULT_VFS_H
#define PRONY_TESTS_UNIT_FAULT_VFS_H

#include <stdbool.h>

/*
 * Installs itself as SQLite's default. Writes are never synchronised, which would slow the tests.
 */
void fault_vfs_install(void);

/* Starts counting writes, truncations, synchronisations, deletions and created files from 1.
 * Operation number `at` fails with `code` (of SQLite; SQLITE_FULL after half of its bytes); if
 * `stays`, all later operations fail too. 0: none fails. */
void fault_vfs_set(long at, int code, bool stays);

/* The number of operations so far. */
long fault_vfs_count(void);

#endif
