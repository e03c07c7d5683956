/* Private to base/process*.c: which children are ours because we started them. */
#ifndef PRONY_BASE_PROCESS_INTERNAL_H
#define PRONY_BASE_PROCESS_INTERNAL_H

#include <sys/types.h>

void process_note_start(pid_t pid);
/* It was reaped. */
void process_note_end(pid_t pid);

#endif
