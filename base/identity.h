/* Which prony this is: the commit that it was built from and the bytes of its executable. */
#ifndef PRONY_BASE_IDENTITY_H
#define PRONY_BASE_IDENTITY_H

/* main() sets the answer of `git describe`, so that a new commit rebuilds main.c alone. Borrowed.
 * Programs that do not set it, such as unit tests, have "". */
void identity_set_build(const char *build);
/* "" if it is unknown: built without git. */
const char *identity_build(void);

/* The SHA-256 of the running executable, even if its file has been replaced since; "" if it cannot
 * be read. It is computed at the first call (about 10 ms). Not for several threads. */
const char *identity_sha256(void);

#endif
