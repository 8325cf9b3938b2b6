#!/usr/bin/env python3
"""Writes cast-hashes.h: what numpy and ml_dtypes make of casts between all types.

For each target one FNV-1a over the results of all sources in order; cast.c
computes the same from the kernels. Sources of up to 16 bits are complete, wider
ones are 65,536 codes spread over all exponents. Results that ONNX leaves
undefined (a float out of an integer's range, a negative float8e8m0) count as 0;
a NaN of 16 bits and more counts as the code of all ones.
"""
import sys
import warnings

import ml_dtypes
import numpy as np
from onnx import numpy_helper

warnings.simplefilter("ignore")
np.seterr(all="ignore")
NAMES = {
    "RG_F32": np.float32, "RG_U8": np.uint8, "RG_I8": np.int8, "RG_U16": np.uint16, "RG_I16": np.int16,
    "RG_I32": np.int32, "RG_I64": np.int64, "RG_BOOL": np.bool_, "RG_F16": np.float16, "RG_F64": np.float64,
    "RG_U32": np.uint32, "RG_U64": np.uint64, "RG_BF16": ml_dtypes.bfloat16,
    "RG_F8E4M3FN": ml_dtypes.float8_e4m3fn, "RG_F8E4M3FNUZ": ml_dtypes.float8_e4m3fnuz,
    "RG_F8E5M2": ml_dtypes.float8_e5m2, "RG_F8E5M2FNUZ": ml_dtypes.float8_e5m2fnuz,
    "RG_U4": ml_dtypes.uint4, "RG_I4": ml_dtypes.int4, "RG_F4E2M1": ml_dtypes.float4_e2m1fn,
    "RG_F8E8M0": ml_dtypes.float8_e8m0fnu, "RG_U2": ml_dtypes.uint2, "RG_I2": ml_dtypes.int2,
}
BITS = {"RG_U4": 4, "RG_I4": 4, "RG_F4E2M1": 4, "RG_U2": 2, "RG_I2": 2, "RG_BOOL": 1}
F8 = [n for n in NAMES if n.startswith("RG_F8E") and n != "RG_F8E8M0"]
WIDE_INTS = ["RG_U8", "RG_I8", "RG_U16", "RG_I16", "RG_I32", "RG_I64", "RG_U32", "RG_U64"]


def is_float(name):
    return name.startswith("RG_F") or name == "RG_BF16"


def bits(name):
    return BITS.get(name, np.dtype(NAMES[name]).itemsize * 8)


def codes(name):
    b = bits(name)
    if b <= 16:
        return np.arange(1 << b, dtype=np.uint16 if b == 16 else np.uint8)
    i = np.arange(65536, dtype=np.uint64)
    if b == 32:
        return ((i << np.uint64(16)) | (i * np.uint64(40503) & np.uint64(0xFFFF))).astype(np.uint32)
    return (i << np.uint64(48)) | (i * np.uint64(0x5851F42D4C95) & np.uint64(0xFFFFFFFFFFFF))


def values(name):
    c = codes(name)
    if name in ("RG_I4", "RG_I2"):
        half = 1 << (bits(name) - 1)
        return ((c.astype(np.int8) ^ half) - half).astype(NAMES[name])
    if name in ("RG_U4", "RG_U2"):
        return c.astype(NAMES[name])
    return c.view(NAMES[name])


def cast(x, source, target, saturate, mode):
    """The codes of x in the target type."""
    t = NAMES[target]
    if bits(source) <= 8:  # exact; there is no direct way between most of these
        x = x.astype(np.float32 if is_float(source) else np.int64)
    defined = np.ones(x.shape, bool)
    if target == "RG_F8E8M0":
        wide = x.astype(np.float64)
        defined = (wide >= 2.0 ** -126) & np.isfinite(x.astype(np.float32)) & (wide < 2.0 ** 127)
        # only what float32 holds, to which the function converts first
        defined &= x.astype(np.float32).astype(np.float64) == wide
        y = numpy_helper.to_float8e8m0(x.astype(np.float32), True, mode)
    elif source == target:  # a copy
        y = values(source)
    elif target in F8 and saturate:
        y = numpy_helper.saturate_cast(x if is_float(source) else x.astype(np.float64), np.dtype(t))
    else:
        if is_float(source) and target in WIDE_INTS:
            info = np.iinfo(t)
            wide = np.trunc(x.astype(np.float64))
            defined = (wide >= float(info.min)) & (wide < float(info.max) + (1 if bits(target) < 64 else 0))
            x = np.where(defined, wide, 0)
        if is_float(source) and target in ("RG_U4", "RG_I4", "RG_U2", "RG_I2"):
            wide = x.astype(np.float64)
            defined = np.abs(wide) < 2.0 ** 31
            x = np.where(defined, np.trunc(wide), 0).astype(np.int64)
        y = x.astype(t)
    c = np.ascontiguousarray(y).view({1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}[np.dtype(t).itemsize])
    c = c.astype(np.uint64) & np.uint64((1 << bits(target)) - 1 if bits(target) < 64 else 0xFFFFFFFFFFFFFFFF)
    if is_float(target) and bits(target) >= 16:
        c = np.where(np.isnan(y), np.uint64((1 << bits(target)) - 1), c)
    return np.where(defined, c, np.uint64(0))


def fnv(h, c):
    for v in c.tolist():
        h = ((h ^ v) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return h


def main():
    out = open(sys.argv[1] if len(sys.argv) > 1 else "tests/kernels/cast-hashes.h", "w")
    print("/* Written by make-cast-hashes.py. */", file=out)
    print("/* target, saturate, round_mode, hash over the results of all sources */", file=out)
    for target in NAMES:
        modes = ["up", "down", "nearest"] if target == "RG_F8E8M0" else ["up"]
        for saturate in ([1, 0] if target in F8 else [1]):
            for mode in modes:
                h = 0xCBF29CE484222325
                for source in NAMES:
                    h = fnv(h, cast(values(source), source, target, saturate, mode))
                    if "-v" in sys.argv:
                        print(target, saturate, mode, source, hex(h))
                print(f'{{ {target}, {saturate}, "{mode}", 0x{h:016x}u }},', file=out)


main()
