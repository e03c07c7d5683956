/* Finds the processor temperature files of this machine. */
#ifndef PRONY_SENSORS_TEMPERATURE_H
#define PRONY_SENSORS_TEMPERATURE_H

#include <stddef.h>

enum { THERMOMETERS_MAX = 64, THERMOMETER_BYTES = 96 };

/* Finds the files with package temperatures in 1/1000 degree Celsius, "/sys/class/...". Does not
 * check whether they are readable. Returns their number. */
size_t temperature_files(int root_fd, char (*out)[THERMOMETER_BYTES], size_t capacity);

#endif
