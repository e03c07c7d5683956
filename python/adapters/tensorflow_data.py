"""Batches by tf.data, as its guides have them: files read, decoded and scaled by map, in parallel, and
prefetched (docs/frameworks-python.md, "tensorflow-python")."""
import tensorflow as tf

from own_loader import CIFAR10_RECORD, HEADS

AUTOTUNE = tf.data.AUTOTUNE


def _scaled(data, image):
    """An image of bytes or floats 0 to scale, channels last, as the network takes it."""
    image = tf.cast(image, tf.float32) / data.scale
    image = (image - tf.constant(data.mean)) / tf.constant(data.deviation)
    if len(data.batch_shape) != 4:  # flat: channels first, as everywhere
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
    return _records(data).skip(data.first).take(data.count).cache(), decode


def _photographs(data):
    """As TensorFlow's own models read ImageNet: the part is decoded alone."""
    height, width = data.batch_shape[2:]
    paths, labels = zip(*data.photographs())

    def train(path, label):
        file = tf.io.read_file(path)
        begin, size, _ = tf.image.sample_distorted_bounding_box(
            tf.io.extract_jpeg_shape(file), tf.zeros([0, 0, 4]), area_range=(0.08, 1.0),
            aspect_ratio_range=(0.75, 4 / 3), use_image_if_no_bounding_boxes=True)
        window = tf.stack([begin[0], begin[1], size[0], size[1]])
        image = tf.image.resize(tf.io.decode_and_crop_jpeg(file, window, channels=3), [height, width])
        return _scaled(data, tf.image.random_flip_left_right(image)), label

    def evaluate(path, label):
        image = tf.io.decode_jpeg(tf.io.read_file(path), channels=3)
        sides = tf.shape(image)[:2]
        shorter = min(height, width) * 8 // 7
        image = tf.image.resize(image, sides * shorter // tf.reduce_min(sides) + 1)
        return _scaled(data, tf.image.resize_with_crop_or_pad(image, height, width)), label
    files = tf.data.Dataset.from_tensor_slices((list(paths), tf.constant(labels, tf.int32)))
    return files, train if data.training else evaluate


def loader(data):
    """Endless iterator over (images channels last, labels)."""
    samples, decode = _photographs(data) if data.format == "images" else _plain(data)
    if data.training:
        samples = samples.shuffle(min(data.count, 100000), seed=data.seed)
    batches = (samples.repeat().map(decode, num_parallel_calls=AUTOTUNE)
               .batch(data.batch, drop_remainder=True).prefetch(AUTOTUNE))
    options = tf.data.Options()
    options.threading.private_threadpool_size = data.threads
    return iter(batches.with_options(options))
