/* Private to base/process*.c: keeps track of the children that we started. */
#ifndef PRONY_BASE_PROCESS_INTERNAL_H
#define PRONY_BASE_PROCESS_INTERNAL_H

#include <sys/types.h>

void process_note_start(pid_t pid);
/* Records that this child was reaped. */
void process_note_end(pid_t pid);

#endif
