"""Caffe's Data layer on an LMDB database: prints labels and the SHA-256 of all pixels.

    caffe_reader.py FOLDER COUNT
"""
import hashlib
import json
import os
import sys
import tempfile

os.environ["GLOG_minloglevel"] = "2"

import caffe  # noqa: E402

LAYER = """layer { name: "data" type: "Data" top: "data" top: "label"
                   data_param { source: "%s" batch_size: %d backend: LMDB } }"""
with tempfile.NamedTemporaryFile("w", suffix=".prototxt") as stream:
    stream.write(LAYER % (sys.argv[1], int(sys.argv[2])))
    stream.flush()
    net = caffe.Net(stream.name, caffe.TRAIN)
net.forward()
pixels = net.blobs["data"].data.astype("uint8")
print(json.dumps({"labels": [int(label) for label in net.blobs["label"].data],
                  "pixels": hashlib.sha256(pixels.tobytes()).hexdigest()}))
