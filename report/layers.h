/* The table of a run of `prony layers`: a network and each of its distinct layers as a network. */
#ifndef PRONY_REPORT_LAYERS_H
#define PRONY_REPORT_LAYERS_H

#include "base/strbuf.h"
#include "report/summary.h"

/* How such a layer's network is named: the network, a number from 1, how often the network has it.
 * What it is follows. */
#define LAYER_NAME_FORMAT "%s.%02d.x%d."

/* Whether the run has layers of a network and the network. */
bool layers_known(const struct summary *summary);

/* Writes a table for each of its settings (batch, device...), with the step of each layer in each
 * framework, their sum over the network, and the network's own step. */
void layers_render(const struct summary *summary, bool colour, int width, struct strbuf *out);

#endif
