/* The table of data sets, with the scaling of their samples. */
#include <string.h>

#include "base/nearest.h"
#include "datasets/dataset.h"

#define MNIST_URL "https://ossci-datasets.s3.amazonaws.com/mnist/"

/* The four files as Yann LeCun published them in 1998 (http://yann.lecun.com/exdb/mnist). */
#define T10K_IMAGES                                                                                \
	.name = "t10k-images-idx3-ubyte.gz", .bytes = 1648877,                                     \
	.sha256 = "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",              \
	.url = MNIST_URL "t10k-images-idx3-ubyte.gz"
#define T10K_LABELS                                                                                \
	.name = "t10k-labels-idx1-ubyte.gz", .bytes = 4542,                                        \
	.sha256 = "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",              \
	.url = MNIST_URL "t10k-labels-idx1-ubyte.gz"

#define MNIST_VALUES                                                                               \
	.format = "idx", .rank = 3, .dims = {1, 28, 28}, .classes = 10, .scale = 255,              \
	.mean = {0.1307}, .deviation = {0.3081}

/* Mean and deviation of the 50,000 training images, by channel. */
#define CIFAR10_VALUES                                                                             \
	.format = "cifar10", .rank = 3, .dims = {3, 32, 32}, .classes = 10, .scale = 255,          \
	.mean = {0.4914, 0.4822, 0.4465}, .deviation = {0.2470, 0.2435, 0.2616}
#define CIFAR10_BATCH(n)                                                                           \
	{                                                                                          \
		.part = PART_TRAIN, .name = "data_batch_" #n ".bin", .bytes = 30730000             \
	}
#define CIFAR10_TEST .part = PART_EVALUATION, .name = "test_batch.bin"
#define CIFAR10_NAMES .part = PART_NAMES, .name = "batches.meta.txt"

/* ILSVRC 2012. Mean and deviation of the training pictures, as torchvision's models use them. */
#define IMAGENET_VALUES                                                                            \
	.format = "images", .rank = 3, .dims = {3, 0, 0}, .classes = 1000, .scale = 255,           \
	.mean = {0.485, 0.456, 0.406}, .deviation = {0.229, 0.224, 0.225}

const struct dataset dataset_table[] = {
	{
		.name = "mnist",
		.summary = "handwritten digits, 28 x 28 grey, 60,000 images to train and 10,000 to "
			   "evaluate",
		MNIST_VALUES,
		.train_count = 60000,
		.evaluation_count = 10000,
		.sample = "mnist-sample",
		.files =
			{
				{.part = PART_TRAIN,
				 .name = "train-images-idx3-ubyte.gz",
				 .bytes = 9912422,
				 .sha256 =
					 "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f2"
					 "03523609",
				 .url = MNIST_URL "train-images-idx3-ubyte.gz"},
				{.part = PART_TRAIN,
				 .name = "train-labels-idx1-ubyte.gz",
				 .bytes = 28881,
				 .sha256 =
					 "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e"
					 "8010255c",
				 .url = MNIST_URL "train-labels-idx1-ubyte.gz"},
				{T10K_IMAGES, .part = PART_EVALUATION},
				{T10K_LABELS, .part = PART_EVALUATION},
			},
	},
	{
		.name = "mnist-sample",
		.summary = "the 10,000 test images of MNIST: 8,000 to train, 2,000 to evaluate",
		MNIST_VALUES,
		.train_count = 8000,
		.evaluation_count = 2000,
		.sample = "mnist-3000",
		.files = {{T10K_IMAGES}, {T10K_LABELS}},
	},
	{
		.name = "mnist-3000",
		.summary = "the first 3,000 test images of MNIST, which come with the program: "
			   "2,400 to train, 600 to evaluate",
		MNIST_VALUES,
		.train_count = 2400,
		.evaluation_count = 600,
		.shipped = true,
		.files =
			{
				{.name = "images-idx3-ubyte.gz",
				 .bytes = 444289,
				 .sha256 = "9d661e9a93ffd8e4c907bfcd13309ec7d38a0ad0583d3ad3f4e0907"
					   "38eef5908"},
				{.name = "labels-idx1-ubyte.gz",
				 .bytes = 1441,
				 .sha256 = "7b664a9bc7e9eceb6f83af5d39090de52583b784a37f8baaf39cceb"
					   "0a07ff34e"},
			},
	},
	{
		.name = "cifar10",
		.summary = "photographs, 32 x 32 in colour, 50,000 images to train and 10,000 to "
			   "evaluate",
		CIFAR10_VALUES,
		.train_count = 50000,
		.evaluation_count = 10000,
		.sample = "cifar10-sample",
		.archive = {.folder = "cifar-10-batches-bin",
			    .file = {.name = "cifar-10-binary.tar.gz",
				     .bytes = 170052171,
				     .sha256 = "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9dd"
					       "da3db29a59bca1dd",
				     .url = "https://www.cs.toronto.edu/~kriz/"
					    "cifar-10-binary.tar.gz"}},
		.files = {CIFAR10_BATCH(1),
			  CIFAR10_BATCH(2),
			  CIFAR10_BATCH(3),
			  CIFAR10_BATCH(4),
			  CIFAR10_BATCH(5),
			  {CIFAR10_TEST, .bytes = 30730000},
			  {CIFAR10_NAMES}},
	},
	{
		.name = "cifar10-sample",
		.summary = "12,000 images of CIFAR-10 from a JPEG copy: 10,000 to train, 2,000 to "
			   "evaluate",
		CIFAR10_VALUES,
		.train_count = 10000,
		.evaluation_count = 2000,
		.files =
			{
				{.part = PART_TRAIN,
				 .name = "data_batch_1.bin",
				 .bytes = 30730000,
				 .sha256 =
					 "67249abc2590c383c1d261ca30ac6adc30278a792797a7d469ae61ee"
					 "ed24554a"},
				{CIFAR10_TEST, .bytes = 6146000,
				 .sha256 =
					 "7b9f095bf2d1f4d60e162e225012232eecd6f3e6a512821795d5a007"
					 "599e5225"},
				{CIFAR10_NAMES, .bytes = 60,
				 .sha256 =
					 "2ce042b1e0b48db4bb214408e6414ba18b2731c24af244f2d6c112fd"
					 "df31af00"},
			},
	},
	{
		.name = "imagenet",
		.summary = "photographs of any size in 1,000 classes (ILSVRC 2012), 1,281,167 to "
			   "train and 50,000 to evaluate",
		IMAGENET_VALUES,
		.train_count = 1281167,
		.evaluation_count = 50000,
		.sample = "imagenet-sample",
		.owner = "register at https://image-net.org to get ILSVRC2012_img_train.tar and "
			 "ILSVRC2012_img_val.tar",
		.files =
			{
				{.part = PART_TRAIN,
				 .name = "train",
				 .is_folder = true,
				 .as_published = "ILSVRC2012_img_train.tar",
				 .tar_bytes = 147897477120},
				{.part = PART_EVALUATION,
				 .name = "val",
				 .is_folder = true,
				 .as_published = "ILSVRC2012_img_val.tar",
				 .tar_bytes = 6744924160},
			},
	},
	{
		.name = "imagenet-sample",
		.summary = "100 photographs of ImageNet, each of another class: 80 to train, 20 to "
			   "evaluate",
		IMAGENET_VALUES,
		.train_count = 80,
		.evaluation_count = 20,
		.files = {{.name = "train",
			   .is_folder = true,
			   .bytes = 10385900,
			   .sha256 = "5256192efee8f7ddfee0102c7d1504e00c2a9fc4be565c71dac4b1d53f"
				     "2e0c50"}},
	},
	{
		.name = "jargon",
		.summary = "The Jargon File 4.4.7 (public domain), 1,418,350 bytes of text: nine "
			   "tenths to train, one to evaluate",
		.format = "text",
		.rank = 1,
		.classes = 256,
		.train_count = 1276515, /* bytes */
		.evaluation_count = 141835,
		.archive = {.folder = "usr/share/dictd",
			    .file = {.name = "dict-jargon", .bytes = 621608},
			    .is_package = true},
		.files = {{.name = "jargon.dict.dz",
			   .bytes = 587377,
			   .sha256 = "856ced964d3a3cfd79a3dc251df04365eefd848966e3ae94e58f2671d6e7"
				     "9ca5"}},
	},
	{
		.name = "synthetic",
		.summary = "random inputs (normal) and labels (uniform) in the shape that the "
			   "network needs",
	},
};

const size_t dataset_count = sizeof(dataset_table) / sizeof(dataset_table[0]);

const struct dataset *dataset_find(const char *name)
{
	for (size_t i = 0; i < dataset_count; i++)
		if (strcmp(dataset_table[i].name, name) == 0)
			return &dataset_table[i];
	return NULL;
}

const char *dataset_nearest(const char *name)
{
	const char *names[sizeof(dataset_table) / sizeof(dataset_table[0])];

	for (size_t i = 0; i < dataset_count; i++)
		names[i] = dataset_table[i].name;
	return word_nearest(name, names, dataset_count);
}

bool dataset_is_published(const struct dataset *dataset)
{
	return dataset->files[0].url || dataset->archive.file.url || dataset->archive.is_package;
}

bool dataset_is_obtainable(const struct dataset *dataset)
{
	return !dataset->format || dataset->shipped || dataset->owner ||
	       dataset_is_published(dataset);
}

const char *dataset_part(bool training)
{
	return training ? "train" : "evaluation";
}

const char *dataset_remedy(const struct dataset *dataset)
{
	if (dataset_is_published(dataset))
		return "get it again with `prony data fetch`";
	return dataset->shipped ? "install the program again"
				: "copy it there again (docs/datasets.md)";
}
