"""tf.data and TensorFlow's own decoders on a TFRecord file: prints labels and the SHA-256 of all pixels.

    tensorflow_reader.py FILE COUNT
"""
import hashlib
import json
import os
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import tensorflow as tf  # noqa: E402

FEATURES = {"image/encoded": tf.io.FixedLenFeature([], tf.string),
            "image/class/label": tf.io.FixedLenFeature([], tf.int64),
            "image/height": tf.io.FixedLenFeature([], tf.int64),
            "image/width": tf.io.FixedLenFeature([], tf.int64)}
digest, labels = hashlib.sha256(), []
for example in tf.data.TFRecordDataset(sys.argv[1]).take(int(sys.argv[2])):
    row = tf.io.parse_single_example(example, FEATURES)
    pixels = tf.io.decode_image(row["image/encoded"], channels=3)
    assert pixels.shape[:2] == (int(row["image/height"]), int(row["image/width"]))
    digest.update(pixels.numpy().transpose(2, 0, 1).tobytes())
    labels.append(int(row["image/class/label"]))
print(json.dumps({"labels": labels, "pixels": digest.hexdigest()}))
