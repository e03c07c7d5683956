#include "sensors/sensor.h"

const struct sensor *const sensors[] = {
#define X(name) &sensor_##name,
	SENSORS(X)
#undef X
};
const size_t sensor_count = sizeof sensors / sizeof sensors[0];
