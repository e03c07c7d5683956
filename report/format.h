/* Formats numbers for people. Unknown values are "-", never 0. */
#ifndef PRONY_REPORT_FORMAT_H
#define PRONY_REPORT_FORMAT_H

#include <stddef.h>
#include <stdint.h>

#include "base/strbuf.h"
#include "report/summary.h"

#define FORMAT_BYTES 24 /* large enough for each of these texts */

/* Like format_duration of report/summary.h, with as many digits as a relative half width justifies:
 * the last digit shown is the half width's second one, or the first digit from 100 % on. NaN = 3
 * digits. The half width of the functions below can only take digits away. */
void format_duration_within(double ns, double half_width, char *out, size_t out_bytes);

/* Writes "1.23x". */
void format_ratio(double ratio, char *out, size_t out_bytes);
void format_ratio_within(double ratio, double half_width, char *out, size_t out_bytes);

/* Writes a fraction as "1.2 %". */
void format_percent(double fraction, char *out, size_t out_bytes);

/* Adds the shortest decimal that reads back as the same number; nothing if it is not finite. */
void format_real(double value, struct strbuf *out);

/* Writes "1.23 mJ". */
void format_energy(double joules, char *out, size_t out_bytes);

/* Writes "12.3 GFLOP/s". */
void format_flops(double per_second, double half_width, char *out, size_t out_bytes);

#endif
