/* Private to networks/zoo/: one row for each file. */
#ifndef PRONY_NETWORKS_ZOO_NETWORKS_H
#define PRONY_NETWORKS_ZOO_NETWORKS_H

#include "networks/zoo/zoo.h"

extern const struct network zoo_mlp;
extern const struct network zoo_lenet;

#endif
