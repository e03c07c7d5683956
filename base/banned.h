/* Functions that cannot be used safely become compile errors (after git's banned.h). */
#ifndef PRONY_BASE_BANNED_H
#define PRONY_BASE_BANNED_H

/* The C library must declare them before the names are banned. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PRONY_BANNED(name) sorry_##name##_is_banned

#undef strcpy
#define strcpy(a, b) PRONY_BANNED(strcpy)
#undef strcat
#define strcat(a, b) PRONY_BANNED(strcat)
#undef strncpy
#define strncpy(a, b, n) PRONY_BANNED(strncpy)
#undef strncat
#define strncat(a, b, n) PRONY_BANNED(strncat)
#undef sprintf
#define sprintf(...) PRONY_BANNED(sprintf)
#undef vsprintf
#define vsprintf(...) PRONY_BANNED(vsprintf)
#undef strtok
#define strtok(a, b) PRONY_BANNED(strtok)
#undef atoi
#define atoi(a) PRONY_BANNED(atoi)
#undef atof
#define atof(a) PRONY_BANNED(atof)

#endif
