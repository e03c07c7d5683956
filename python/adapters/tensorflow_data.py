"""Batches by tf.data, as in its guides: files are read, decoded and scaled in parallel by map, and prefetched
(docs/frameworks-python.md, "tensorflow-python")."""
import os

import tensorflow as tf

from own_loader import CIFAR10_RECORD, HEADS

AUTOTUNE = tf.data.AUTOTUNE
# Sizes of shuffle buffers: for sample numbers; for records (as in TensorFlow's own ResNet).
PATHS_SHUFFLED, RECORDS_SHUFFLED = 100000, 10000
FEATURES = {"image/encoded": tf.io.FixedLenFeature([], tf.string),
            "image/class/label": tf.io.FixedLenFeature([], tf.int64)}


def _scaled(data, image):
    """Converts an image (bytes, or floats from 0 to scale; channels last) to the network's input."""
    image = tf.cast(image, tf.float32) / data.scale
    image = (image - tf.constant(data.mean)) / tf.constant(data.deviation)
    if len(data.batch_shape) != 4:  # a flat input is channels first
        return tf.reshape(tf.transpose(image, [2, 0, 1]), data.batch_shape[1:])
    return image


def _records(data):
    """Dataset of (bytes of a sample, bytes of its label)."""
    channels, height, width = data.shape
    size = channels * height * width
    if data.format == "cifar10":
        paths = [paths[0] for paths in data.shards]
        whole = tf.data.FixedLengthRecordDataset(paths, CIFAR10_RECORD)
        return whole.map(lambda record: (tf.strings.substr(record, 1, size),
                                         tf.strings.substr(record, 0, 1)))

    def of(place, length):
        found = [paths[place] for paths in data.shards]
        kind = "GZIP" if found[0].endswith(".gz") else ""
        return tf.data.FixedLengthRecordDataset(found, length, header_bytes=HEADS["idx"][place],
                                                compression_type=kind)
    return tf.data.Dataset.zip((of(0, size), of(1, 1)))


def _plain(data):
    def decode(values, label):
        image = tf.reshape(tf.io.decode_raw(values, tf.uint8), data.shape)
        return (_scaled(data, tf.transpose(image, [1, 2, 0])),
                tf.cast(tf.io.decode_raw(label, tf.uint8)[0], tf.int32))
    samples = _records(data).skip(data.first).take(data.count).cache()
    return _shuffled(data, samples, PATHS_SHUFFLED), decode


def _random_part(file):
    """A part of a photograph. Of a JPEG only this part is decoded, as in TensorFlow's own models of
    ImageNet."""
    def part(shape):
        begin, size, _ = tf.image.sample_distorted_bounding_box(
            shape, tf.zeros([0, 0, 4]), area_range=(0.08, 1.0), aspect_ratio_range=(0.75, 4 / 3),
            use_image_if_no_bounding_boxes=True)
        return begin, size

    def of_jpeg():
        begin, size = part(tf.io.extract_jpeg_shape(file))
        window = tf.stack([begin[0], begin[1], size[0], size[1]])
        return tf.io.decode_and_crop_jpeg(file, window, channels=3)

    def of_png():
        image = tf.io.decode_png(file, channels=3)
        return tf.slice(image, *part(tf.shape(image)))
    return tf.cond(tf.io.is_jpeg(file), of_jpeg, of_png)


def _seen(data):
    """Function of (bytes of a photograph, label) that returns (cropped and resized photograph, label)."""
    height, width = data.batch_shape[2:]

    def train(file, label):
        image = tf.image.resize(_random_part(file), [height, width])
        return _scaled(data, tf.image.random_flip_left_right(image)), label

    def evaluate(file, label):
        image = tf.ensure_shape(tf.io.decode_image(file, channels=3, expand_animations=False), [None, None, 3])
        sides = tf.shape(image)[:2]
        shorter = round(min(height, width) * 8 / 7)
        image = tf.image.resize(image, sides * shorter // tf.reduce_min(sides))
        return _scaled(data, tf.image.resize_with_crop_or_pad(image, height, width)), label
    return train if data.training else evaluate


def _photographs(data):
    paths, labels = zip(*data.photographs())
    seen = _seen(data)
    files = tf.data.Dataset.from_tensor_slices((list(paths), tf.constant(labels, tf.int32)))
    return _shuffled(data, files, PATHS_SHUFFLED), lambda path, label: seen(tf.io.read_file(path), label)


def _examples(data):
    """TFRecord files of Example messages."""
    folder = data.shards[0][0]
    paths = [os.path.join(folder, name) for name in sorted(os.listdir(folder)) if name.endswith(".tfrecord")]
    examples = tf.data.TFRecordDataset(paths).skip(data.first).take(data.count)
    seen = None if data.as_stored else _seen(data)

    def decode(example):
        row = tf.io.parse_single_example(example, FEATURES)
        file, label = row["image/encoded"], tf.cast(row["image/class/label"], tf.int32)
        if seen:
            return seen(file, label)
        image = tf.io.decode_image(file, channels=data.shape[0], expand_animations=False)
        return _scaled(data, tf.ensure_shape(image, data.shape[1:] + data.shape[:1])), label
    return _shuffled(data, examples, RECORDS_SHUFFLED), decode


def _shuffled(data, samples, most):
    return samples.shuffle(min(data.count, most), seed=data.seed) if data.training else samples


def loader(data):
    """Endless iterator over (images channels last, labels)."""
    samples, decode = {"images": _photographs, "tfrecord": _examples}.get(data.format, _plain)(data)
    batches = (samples.repeat().map(decode, num_parallel_calls=AUTOTUNE)
               .batch(data.batch, drop_remainder=True).prefetch(AUTOTUNE))
    options = tf.data.Options()
    options.threading.private_threadpool_size = data.threads
    return iter(batches.with_options(options))
