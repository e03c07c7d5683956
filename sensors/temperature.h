/* Where this machine shows the temperature of its processors. */
#ifndef PRONY_SENSORS_TEMPERATURE_H
#define PRONY_SENSORS_TEMPERATURE_H

#include <stddef.h>

enum { THERMOMETERS_MAX = 64, THERMOMETER_BYTES = 96 };

/* The files of the processor packages' temperatures in 1/1000 of a degree Celsius,
 * "/sys/class/..."; whether they can be read is not tried. Returns how many. */
size_t temperature_files(int root_fd, char (*out)[THERMOMETER_BYTES], size_t capacity);

#endif
