/* A file system for SQLite whose n-th write fails: sqlite.org/vfs.html. */
#ifndef PRONY_TESTS_UNIT_FAULT_VFS_H
#define PRONY_TESTS_UNIT_FAULT_VFS_H

#include <stdbool.h>

/* Becomes SQLite's default. What is written is never synchronised: the tests would wait for it. */
void fault_vfs_install(void);

/*
 * From now on writes, truncations, synchronisations, deletions and files that are made are counted
 * from 1, and that of number `at` fails with `code` (of SQLite; SQLITE_FULL after half of its
 * bytes), and all later ones too when it stays. 0: none fails.
 */
void fault_vfs_set(long at, int code, bool stays);

/* How many there were. */
long fault_vfs_count(void);

#endif
