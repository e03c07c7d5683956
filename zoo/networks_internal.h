/* Private to zoo/: the networks, one per file. */
#ifndef PRONY_ZOO_NETWORKS_INTERNAL_H
#define PRONY_ZOO_NETWORKS_INTERNAL_H

#include "zoo/zoo.h"

extern const struct network zoo_mlp;
extern const struct network zoo_lenet;
extern const struct network zoo_cnn;
extern const struct network zoo_irnn;
extern const struct network zoo_lstm;
extern const struct network zoo_tagger;
extern const struct network zoo_alexnet;
extern const struct network zoo_alexnet_lrn;
extern const struct network zoo_alexnet_tf;
extern const struct network zoo_vgg16;
extern const struct network zoo_googlenet;
extern const struct network zoo_googlenet_lrn;
extern const struct network zoo_inception3;
extern const struct network zoo_resnet50;
extern const struct network zoo_resnet152;
extern const struct network zoo_densenet161;
extern const struct network zoo_nasnet;
extern const struct network zoo_alexnet_cifar;
extern const struct network zoo_resnet50_cifar;
extern const struct network zoo_googlenet_cifar;
extern const struct network zoo_vgg16_cifar;
extern const struct network zoo_vit_b16;
extern const struct network zoo_vit_small;
extern const struct network zoo_unet;
extern const struct network zoo_gpt2;
extern const struct network zoo_gpt2_bytes;
extern const struct network zoo_bert_base;
extern const struct network zoo_bert_tiny;
extern const struct network zoo_llama_small;
extern const struct network zoo_llama_tiny;

#endif
