/* cuDNN's backend interface, loaded by dlopen: the types and functions that prony uses. */
#ifndef PRONY_ADAPTERS_NATIVE_CUDA_CUDNN_H
#define PRONY_ADAPTERS_NATIVE_CUDA_CUDNN_H

struct cudnn {
	void *library; /* of dlopen */
};

#endif
