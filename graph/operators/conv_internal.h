/* Private to graph/operators/: convolutions and their gradients, for Conv and ConvTranspose. */
#ifndef PRONY_GRAPH_OPERATORS_CONV_INTERNAL_H
#define PRONY_GRAPH_OPERATORS_CONV_INTERNAL_H

#include "graph/kernel.h"

/* The forward convolution and both gradients visit the same products y[n,o,h,w] ~ k[o,c,r,s] *
 * x[n,c,h*stride+r*dilation-pad,...]. They differ in which of the three arrays is summed; the other
 * two are read. A gradient has the shape of its value. */
struct conv {
	const struct attributes *attributes;
	const struct shape *x, *k, *y;
};

struct conv_data {
	double *x, *k, *y;
};

/* conv.c. They add to y and x; k is overwritten. */
void conv_forward(const struct conv *conv, const struct conv_data *data);
void conv_grad_input(const struct conv *conv, const struct conv_data *data);
void conv_grad_weight(const struct conv *conv, const struct conv_data *data);
/* Fills an array of images with the bias of each channel; NULL: with 0. */
void conv_fill(const struct shape *shape, double *y, const double *bias);
void conv_grad_bias(const struct shape *shape, const double *dy, double *db);

/* conv_direct.c. Compute tap by tap, for depthwise convolutions and others whose groups are too
 * small for a matrix product. They add to y, x and k respectively. */
void conv_direct(const struct conv *conv, const struct conv_data *data);
void conv_direct_grad_input(const struct conv *conv, const struct conv_data *data);
void conv_direct_grad_weight(const struct conv *conv, const struct conv_data *data);

#endif
