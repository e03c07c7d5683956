/* Option tables of the commands; each is defined beside its command. */
#ifndef PRONY_CLI_COMMANDS_H
#define PRONY_CLI_COMMANDS_H

#include "base/options.h"

extern const struct option worker_option_rows[];
extern const struct option show_option_rows[];
extern const struct option report_option_rows[];
extern const struct option export_option_rows[];
extern const struct option import_option_rows[];
extern const struct option delete_option_rows[];
extern const struct option tag_option_rows[];
extern const struct option compare_option_rows[];
extern const struct option history_option_rows[];
extern const struct option profile_option_rows[];
extern const struct option log_option_rows[];
extern const struct option data_option_rows[];
extern const struct option doctor_option_rows[];
extern const struct option ceilings_option_rows[];
extern const struct option selftest_option_rows[];
extern const struct option list_option_rows[];
extern const struct option framework_option_rows[];
extern const struct option network_option_rows[];
extern const struct option worker_check_option_rows[];
extern const struct option completion_option_rows[];

#endif
