"""MXNet's ImageRecordIter on a RecordIO file, through its C interface: prints labels and the SHA-256 of
all pixels.

    mxnet_reader.py LIBRARIES FILE COUNT HEIGHT WIDTH
"""
import ctypes
import glob
import hashlib
import json
import os
import sys


def load(folder):
    for name in sorted(glob.glob(os.path.join(folder, "lib*.so.*"))):
        ctypes.CDLL(name, ctypes.RTLD_GLOBAL)
    library = ctypes.CDLL(os.path.join(folder, "libmxnet.so"))
    library.MXGetLastError.restype = ctypes.c_char_p
    return library


LIBRARY = load(sys.argv[1])
COUNT, HEIGHT, WIDTH = (int(word) for word in sys.argv[3:6])


def call(name, *arguments):
    if getattr(LIBRARY, name)(*arguments):
        raise SystemExit(LIBRARY.MXGetLastError().decode())


def creator(wanted):
    count, creators = ctypes.c_uint(), ctypes.POINTER(ctypes.c_void_p)()
    call("MXListDataIters", ctypes.byref(count), ctypes.byref(creators))
    for number in range(count.value):
        name, rest = ctypes.c_char_p(), [ctypes.c_void_p() for _ in range(5)]
        call("MXDataIterGetIterInfo", ctypes.c_void_p(creators[number]), ctypes.byref(name),
             *map(ctypes.byref, rest))
        if name.value.decode() == wanted:
            return ctypes.c_void_p(creators[number])
    raise SystemExit("no " + wanted)


def values(iterator, getter, count):
    array, out = ctypes.c_void_p(), (ctypes.c_float * count)()
    call(getter, iterator, ctypes.byref(array))
    call("MXNDArraySyncCopyToCPU", array, out, ctypes.c_size_t(count))
    return out


OPTIONS = {"path_imgrec": sys.argv[2], "data_shape": "(3,%d,%d)" % (HEIGHT, WIDTH),
           "batch_size": str(COUNT), "preprocess_threads": "1"}
KEYS, WORDS = ((ctypes.c_char_p * len(OPTIONS))(*[word.encode() for word in words])
               for words in (OPTIONS, OPTIONS.values()))
ITERATOR, MORE = ctypes.c_void_p(), ctypes.c_int()
call("MXDataIterCreateIter", creator("ImageRecordIter"), len(OPTIONS), KEYS, WORDS,
     ctypes.byref(ITERATOR))
call("MXDataIterNext", ITERATOR, ctypes.byref(MORE))
PIXELS = bytes(int(value) for value in values(ITERATOR, "MXDataIterGetData", COUNT * 3 * HEIGHT * WIDTH))
LABELS = [int(label) for label in values(ITERATOR, "MXDataIterGetLabel", COUNT)]
print(json.dumps({"labels": LABELS, "pixels": hashlib.sha256(PIXELS).hexdigest()}))
