"""Makes the binary tables beside this file: python make.py (NumPy, SciPy, PyArrow)."""

import datetime
import decimal
import os
import struct

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import scipy.io

os.chdir(os.path.dirname(os.path.abspath(__file__)))

NUMBERS = np.array([
    [0.1, -0.0, 1.0 / 3.0],
    [1e-300, np.nan, -123456789.125],
    [5e-324, 1.7976931348623157e308, 7.0],
    [np.nan, 2.0**53, -1e22],
])
COUNTS = np.array([[1, 2, 3], [100, 0, 127]])


def csv(path, sep, header):
    with open(path, "w") as f:
        if header:
            f.write(sep.join(["a", "b", "c"]) + "\n")
        for row in NUMBERS:
            f.write(sep.join("" if np.isnan(v) else repr(float(v)) for v in row) + "\n")


csv("numbers.csv", ",", True)
csv("numbers.tsv", "\t", False)

np.save("numbers.npy", NUMBERS)
np.save("fortran.npy", np.asfortranarray(NUMBERS))
np.save("big_endian.npy", NUMBERS.astype(">f8"))
np.savez("one.npz", Y=NUMBERS)
np.savez_compressed("two.npz", Y=NUMBERS, labels=np.array([0, 1, 2, 1]))
for kind in ["?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", ">i2", ">u4", ">i8", ">f4"]:
    np.save("counts_%s.npy" % kind.replace("?", "b1").replace(">", "be_"), COUNTS.astype(kind))
np.save("vector.npy", np.array([3, 1, 2]))
np.save("cube.npy", np.zeros((2, 3, 4)))
np.save("infinite.npy", np.array([[0.0, 1.0], [2.0, -np.inf]]))
np.save("words.npy", np.array(["setosa", "versicolor", "é", ""]))
np.save("bytes.npy", np.array([b"a", b"bc"]))
np.save("objects.npy", np.array([1, "a"], dtype=object), allow_pickle=True)

scipy.io.savemat("numbers.mat", {"Y": NUMBERS}, do_compression=False)
scipy.io.savemat("numbers_z.mat", {"Y": NUMBERS}, do_compression=True)
scipy.io.savemat(
    "several.mat",
    {
        "Y": NUMBERS,
        "cube": np.arange(24, dtype=np.uint8).reshape((2, 3, 4), order="F"),
        "cells": np.array(["ab", "c"], dtype=object),
        "record": {"x": 1.0},
        "text": "hello",
        "z": np.array([[1 + 2j]]),
        "empty": np.zeros((0, 3)),
        **{"c_" + k: COUNTS.astype(k) for k in ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8"]},
        "flags": COUNTS > 2,
    },
    do_compression=True,
)


def element(kind, data):
    return struct.pack(">II", kind, len(data)) + data + b"\0" * (-len(data) % 8)


body = (
    element(6, struct.pack(">II", 6, 0))
    + element(5, struct.pack(">ii", *NUMBERS.shape))
    + struct.pack(">HH4s", 1, 1, b"Y\0\0\0")
    + element(9, NUMBERS.T.astype(">f8").tobytes())
)
with open("big_endian.mat", "wb") as f:
    f.write(b"MATLAB 5.0 MAT-file".ljust(124) + b"\x01\x00MI" + element(14, body))
with open("hdf5.mat", "wb") as f:
    f.write(b"MATLAB 7.3 MAT-file".ljust(124) + b"\x00\x02IM" + b"\0" * 384 + b"\x89HDF\r\n\x1a\n")

table = pa.table({n: pa.array([None if np.isnan(v) else v for v in c]) for n, c in zip("abc", NUMBERS.T)})
for codec in ["none", "snappy", "gzip", "zstd"]:
    pq.write_table(table, "numbers_%s.parquet" % codec, compression=codec)
pq.write_table(
    pa.table({
        "flag": [True, None, False],
        "i8": pa.array([-1, 2, None], pa.int8()),
        "u32": pa.array([2**32 - 1, 1, None], pa.uint32()),
        "u64": pa.array([2**64 - 1, 1, None], pa.uint64()),
        "i64": pa.array([-(2**40), 1, None], pa.int64()),
        "f16": pa.array(np.array([0.5, -2.0, 1.0], np.float16)),
        "f32": pa.array([0.5, None, 1.0], pa.float32()),
        "word": ["x", None, "é"],
        "class": pa.array(["p", "q", "p"]).dictionary_encode(),
        "day": [datetime.date(2026, 11, 15), None, datetime.date(1949, 1, 1)],
        "nanos": pa.array([0, None, 10**18], pa.timestamp("ns")),
        "millis": pa.array([0, None, 10**12], pa.timestamp("ms")),
        "price": pa.array([decimal.Decimal("1.25"), None, decimal.Decimal("-3.50")], pa.decimal128(10, 2)),
    }),
    "kinds.parquet",
    row_group_size=2,
)
pq.write_table(pa.table({"x": [1.0], "list": [[1, 2]]}), "nested.parquet")
