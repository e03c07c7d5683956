/* In place of matrix.c where prony was built without oneDNN's headers. */
#include <stdio.h>

#include "ceilings/matrix.h"

void matrix_measure(const struct ceilings_settings *settings, struct ceiling *fp32,
		    struct ceiling *bf16)
{
	(void)settings;
	snprintf(fp32->absent, sizeof fp32->absent, "prony was built without oneDNN's headers");
	snprintf(bf16->absent, sizeof bf16->absent, "prony was built without oneDNN's headers");
}
