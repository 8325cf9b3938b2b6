#!/usr/bin/env python3
"""Writes the golden outputs of the fetched models, computed by ONNX Runtime.

Run by hand, with numpy, onnx and onnxruntime installed, after scripts/fetch-models:

    tests/golden/make-golden.py            every model of CASES
    tests/golden/make-golden.py NAME...    some of them

Inputs follow the documented generator of src/base/rng.h: a float input is
uniform in [0, 1) from stream (seed 1, input name), row-major. Of each output
the file keeps type, shape, statistics over all elements, and a seeded sample
of elements: every one where there are at most SAMPLE, otherwise SAMPLE indices
from stream (seed 1, "sample:" + output name), integer(0, count - 1), sorted,
each once.

On noise a detector answers almost 0 everywhere, which nearly any mistake would
answer too. So inner values are kept as well ("inner": true): what the last
operator before each output reads, and a few on the way there.
"""
import json
import os
import re
import sys

import numpy as np
import onnx
import onnxruntime

SEED = 1
SAMPLE = 256
ON_THE_WAY = 4

# name: (file under models/fetched, {input: shape})
CASES = {
    'ppocr-v4-det': ('rapidocr-onnxruntime/ch_PP-OCRv4_det_infer.onnx', {'x': [1, 3, 640, 640]}),
    'ppocr-v4-rec': ('rapidocr-onnxruntime/ch_PP-OCRv4_rec_infer.onnx', {'x': [1, 3, 48, 320]}),
    'ppocr-v2-cls': ('rapidocr-onnxruntime/ch_ppocr_mobile_v2.0_cls_infer.onnx', {'x': [1, 3, 48, 192]}),
}

U64 = np.uint64


def mix(z):
    z = (z ^ (z >> U64(30))) * U64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> U64(27))) * U64(0x94D049BB133111EB)
    return z ^ (z >> U64(31))


def stream(seed, name):
    h = 0xCBF29CE484222325
    for byte in name.encode():
        h = ((h ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    with np.errstate(over='ignore'):
        return mix(np.array([U64(seed) ^ U64(h)]))[0]


def u64(s, count):
    with np.errstate(over='ignore'):
        i = np.arange(1, count + 1, dtype=U64)
        return mix(s + i * U64(0x9E3779B97F4A7C15))


def unit(s, count):
    return (u64(s, count) >> U64(40)).astype(np.float32) * np.float32(2.0 ** -24)


def sample_indices(name, count):
    if count <= SAMPLE:
        return list(range(count))
    r = u64(stream(SEED, 'sample:' + name), SAMPLE) % U64(count)
    return sorted({int(i) for i in r})


def describe(name, value, inner):
    flat = value.astype(np.float64).ravel()
    indices = sample_indices(name, flat.size)
    return {
        'name': name,
        'inner': inner,
        'dtype': str(value.dtype),
        'shape': list(value.shape),
        'min': float(flat.min()),
        'max': float(flat.max()),
        'mean': float(flat.mean()),
        'rms': float(np.sqrt((flat ** 2).mean())),
        'indices': indices,
        # Nine digits bring a float back exactly.
        'values': [float('%.9g' % flat[i]) for i in indices],
    }


def inner_values(model):
    """Names of float values inside the graph that are worth comparing."""
    outputs = {o.name for o in model.graph.output}
    constants = {i.name for i in model.graph.initializer}
    nodes = [n for n in model.graph.node if n.op_type != 'Constant']
    produced = {o for n in nodes for o in n.output}
    last = [i for n in nodes if outputs & set(n.output) for i in n.input[:1]]
    compute = [n.output[0] for n in nodes if n.op_type in ('Conv', 'MatMul', 'Gemm', 'BatchNormalization', 'Add')]
    way = [compute[len(compute) * (i + 1) // (ON_THE_WAY + 1)] for i in range(ON_THE_WAY)]
    names = []
    for n in way + last:
        if n in produced and n not in outputs and n not in constants and n not in names:
            names.append(n)
    return names


def compact(golden):
    """JSON with one key a line, and lists of numbers on one line."""
    text = json.dumps(golden, indent=1)
    return re.sub(r'\[\s+([^\[\]{}"]*?)\s+\]', lambda m: '[' + re.sub(r'\s+', ' ', m.group(1)) + ']', text)


def make(name, root, out):
    file, shapes = CASES[name]
    model = onnx.load(os.path.join(root, 'models', 'fetched', file))
    names = [o.name for o in model.graph.output]
    inner = inner_values(model)
    for n in inner:
        model.graph.output.append(onnx.helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, None))
    options = onnxruntime.SessionOptions()
    # As the file says: what a fusion would skip could not be compared.
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model.SerializeToString(), options,
                                           providers=['CPUExecutionProvider'])
    feeds, inputs = {}, []
    for i in session.get_inputs():
        assert i.type == 'tensor(float)', (name, i.name, i.type)
        shape = shapes[i.name]
        feeds[i.name] = unit(stream(SEED, i.name), int(np.prod(shape))).reshape(shape)
        inputs.append({'name': i.name, 'dtype': 'float32', 'shape': shape})
    values = session.run(names + inner, feeds)
    golden = {
        'model': file,
        'made_by': 'onnxruntime ' + onnxruntime.__version__,
        'seed': SEED,
        'inputs': inputs,
        'outputs': [describe(n, v, n in inner) for n, v in zip(names + inner, values)],
    }
    path = os.path.join(out, name + '.json')
    with open(path, 'w', encoding='utf-8') as f:
        f.write(compact(golden) + '\n')
    for o in golden['outputs']:
        print(name, o['name'], o['shape'], 'inner' if o['inner'] else 'output', 'rms %.4g' % o['rms'])


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    for name in sys.argv[1:] or CASES:
        make(name, os.path.join(here, '..', '..'), here)


if __name__ == '__main__':
    main()
