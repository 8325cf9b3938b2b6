"""What the generators of operator cases (make-*.py) share.

A generator lists cases with `case()` and ends with `write()`: inputs are made
from the documented generator of src/base/rng.h, or given; the expected outputs
are what ONNX Runtime's CPU provider computes. run-cases.c says what the file
holds, and replays it.
"""
import json
import math
import os

import ml_dtypes
import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper

U64 = np.uint64
NP = {'float32': np.float32, 'float16': np.float16, 'float64': np.float64, 'int8': np.int8, 'uint8': np.uint8,
      'int16': np.int16, 'uint16': np.uint16, 'int32': np.int32, 'uint32': np.uint32, 'int64': np.int64,
      'uint64': np.uint64, 'bool': np.bool_, 'string': np.object_, 'int4': ml_dtypes.int4, 'uint4': ml_dtypes.uint4}
cases, failed = [], []


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


def uniform(name, dtype, shape, lo, hi):
    """Elements as run-cases.c makes them of "uniform": [lo, hi]."""
    count = int(np.prod(shape, dtype=np.int64))
    with np.errstate(over='ignore'):
        bits = mix(stream(1, name) + np.arange(1, count + 1, dtype=U64) * U64(0x9E3779B97F4A7C15))
    if np.issubdtype(NP[dtype], np.floating):
        unit = (bits >> U64(40)).astype(np.float32) * np.float32(2 ** -24)
        lo, hi = np.float32(lo), np.float32(hi)
        flat = lo + (hi - lo) * unit
    else:
        flat = lo + (bits % U64(hi - lo + 1)).astype(np.int64)
    return flat.astype(NP[dtype]).reshape(shape)


def rand(*shape, lo=-1.0, hi=1.0, dtype='float32', const=False):
    """A seeded input."""
    t = {'dtype': dtype, 'shape': list(shape), 'uniform': [lo, hi]}
    return {**t, 'const': True} if const else t


def given(values, dtype='int32', const=False):
    """An input with these values."""
    a = np.array(values, dtype=NP[dtype])
    return {**tensor(a), 'const': True} if const else tensor(a)


def number(v):
    if isinstance(v, float):
        return v if math.isfinite(v) else 'nan' if math.isnan(v) else 'inf' if v > 0 else '-inf'
    return v


def tensor(a):
    if a.dtype == np.object_:
        return {'dtype': 'string', 'shape': list(a.shape), 'values': [str(v) for v in a.reshape(-1)]}
    digits = {np.dtype(np.float32): 9, np.dtype(np.float16): 5}.get(a.dtype)
    values = [int(v) if a.dtype == np.bool_ else v for v in a.reshape(-1).tolist()]
    if digits:
        values = [float('%.*g' % (digits, v)) for v in values]
    return {'dtype': a.dtype.name, 'shape': list(a.shape), 'values': [number(v) for v in values]}


def value_of(case_name, i, t):
    if 'uniform' in t:
        return uniform('%s/%d' % (case_name, i), t['dtype'], t['shape'], *t['uniform'])
    return np.array([float(v) if isinstance(v, str) and t['dtype'] != 'string' else v for v in t['values']],
                    dtype=NP[t['dtype']]).reshape(t['shape'])


def onnx_type(dtype):
    if dtype == 'string':
        return TensorProto.STRING
    return helper.np_dtype_to_tensor_dtype(np.dtype(NP[dtype]))


def compute(c, n_out, wanted):
    """The outputs of ONNX Runtime, unoptimised."""
    feeds, inits, infos, ins = {}, [], [], []
    for i, t in enumerate(c['inputs']):
        ins.append('in%d' % i if t else '')
        if not t:
            continue
        v = value_of(c['name'], i, t)
        if t.get('const'):
            inits.append(onnx.numpy_helper.from_array(v, ins[-1]))
        else:
            infos.append(helper.make_tensor_value_info(ins[-1], onnx_type(t['dtype']), t['shape']))
            feeds[ins[-1]] = v
    outs = ['out%d' % i if wanted is None or i in wanted else '' for i in range(n_out)]
    node = helper.make_node(c['op'], ins, outs, domain=c.get('domain', 'com.microsoft'), **c.get('attrs', {}))
    # Most output types are inferred; `out_types` has those that no input decides.
    types = {'out%d' % i: onnx_type(t) for i, t in c.get('out_types', {}).items()}
    graph = helper.make_graph([node], 'g', infos, [
        helper.make_tensor_value_info(o, types[o], None) if o in types else
        helper.make_value_info(o, onnx.TypeProto()) for o in outs if o], inits)
    model = helper.make_model(graph, ir_version=10, opset_imports=[
        helper.make_opsetid('', c.get('opset', 17)), helper.make_opsetid('com.microsoft', 1),
        helper.make_opsetid('ai.onnx.ml', c.get('domain_opset', 1))])
    opt = onnxruntime.SessionOptions()
    opt.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    opt.log_severity_level = 4
    opt.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(model.SerializeToString(), opt, providers=['CPUExecutionProvider'])
    got = iter(session.run(None, feeds))
    return [tensor(next(got)) if o else None for o in outs]


def leave_open(t, indices):
    mask = np.zeros(t['shape'], bool)
    for index in indices:
        mask[index] = True
    t['values'] = [None if m else v for m, v in zip(mask.reshape(-1), t['values'])]


def case(name, op, inputs, n_out=1, wanted=None, like=None, open_values=None, **more):
    """Adds a case. `wanted`: indices of outputs that are asked for (all).
    like: changes to the case (inputs, attrs, op, ...) that ONNX Runtime computes
    in its place, where its CPU provider lacks a form that means the same.
    open_values: {output: [index, ...]}, numpy indices of what may be anything.
    more: attrs, opset, domain, rtol, atol, step; refused or fails instead of outputs."""
    c = {'name': name, 'op': op, **more, 'inputs': inputs}
    if 'refused' in more or 'fails' in more:
        cases.append(c)
        return
    try:
        c['outputs'] = compute({**c, **(like or {})}, n_out, wanted)
        for out, indices in (open_values or {}).items():
            leave_open(c['outputs'][out], indices)
    except Exception as e:  # of ONNX Runtime, which has no better type
        failed.append('%s: %s' % (name, e))
    cases.append(c)


def known(name, op, inputs, outputs, **more):
    """Adds a case whose outputs are given: for operators that ONNX Runtime's CPU
    provider has no kernel for, computed by the generator from the definition."""
    cases.append({'name': name, 'op': op, **more, 'inputs': inputs, 'outputs': [tensor(o) for o in outputs]})


def write(file):
    if failed:
        raise SystemExit('\n'.join(failed))
    names = [c['name'] for c in cases]
    assert len(set(names)) == len(names), 'two cases of one name'
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), file)
    with open(path, 'w') as f:
        f.write('{"made_by": "onnxruntime %s",\n"cases": [\n' % onnxruntime.__version__)
        f.write(',\n'.join(json.dumps(c, separators=(',', ':')) for c in cases))
        f.write('\n]}\n')
    print('%s: %d cases, %d bytes' % (file, len(cases), os.path.getsize(path)))
