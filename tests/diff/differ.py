#!/usr/bin/env python3
"""Random graphs, run by ONNX Runtime and by ridge, and compared.

  differ.py --runner PROGRAM --ops FILE [--graphs N] [--seed S] [--jobs J]
            [--only NUMBER] [--op NAME] [--save FOLDER] [--lanes N] [--optimize LEVEL] [--quiet]

Graph NUMBER of a seed is the same every time (with the same versions of onnx and
ONNX Runtime and the same list of operators). Prints how many graphs ran, what
disagreed, how often each operator and element type occurred, and how many nodes
the graphs had. With --op each graph has that operator, if it can be made.
Exit status 1 when anything disagreed or crashed.
"""
import argparse
import collections
import multiprocessing
import os
import struct
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import helper, numpy_helper

import ops_math
import ops_attention  # noqa: F401  registers its operators
import ops_flow  # noqa: F401
import ops_ml  # noqa: F401
import ops_more  # noqa: F401
import ops_move  # noqa: F401
import ops_nn  # noqa: F401
import ops_quant  # noqa: F401
import ops_text  # noqa: F401
import ops_types  # noqa: F401
from graph import FLOATS, STR, Graph, Refused, Skip, onnx_version, reason, session

OPS = ops_math.OPS
BATCH = 50
OLDEST, NEWEST = 7, 28  # opsets: ONNX Runtime takes none before
# The last opset that has them; ONNX Runtime expands Swish in its own opset only.
GONE = {'Scatter': 10, 'Upsample': 9, 'Swish': 24, 'ai.onnx.ml:TreeEnsembleClassifier': 20, 'ai.onnx.ml:TreeEnsembleRegressor': 20}


# Operators that cannot be compared, and why.
RANDOM = 'its numbers are random'
NOT_THERE = 'ONNX Runtime has no CPU kernel'
TRAINING = 'ONNX Runtime has no kernel in its packages for inference'
WITHOUT = {'Bernoulli': RANDOM, 'Multinomial': RANDOM, 'RandomNormal': RANDOM, 'RandomNormalLike': RANDOM,
           'RandomUniform': RANDOM, 'RandomUniformLike': RANDOM,
           'ai.onnx.preview.training:Adagrad': TRAINING, 'ai.onnx.preview.training:Adam': TRAINING,
           'ai.onnx.preview.training:Momentum': TRAINING,
           'ai.onnx.preview:FlexAttention': 'ONNX Runtime does not know the domain ai.onnx.preview',
           'com.microsoft:BiasAdd': NOT_THERE, 'com.microsoft:BiasSoftmax': NOT_THERE, 'com.microsoft:BiasSplitGelu': NOT_THERE}


class Stats:
    def __init__(self):
        self.tried = 0
        self.refusals = collections.Counter()       # a node that ONNX Runtime did not take
        self.type_refusals = collections.Counter()  # a version or type that it does not have
        self.unimplemented = set()
        self.graph_refusals = collections.Counter()


def read_table(path):
    """NAME or DOMAIN:NAME: (first, last version that is implemented)."""
    table = {}
    for line in open(path):
        domain, name, first, last = line.split()[:4]
        table[name if domain == '-' else f'{domain}:{name}'] = (int(first), int(last))
    return table


def opset_for(rng, table, name):
    """An opset with which the operator has an implemented version."""
    first, last = table[name]
    good = [o for o in range(OLDEST, NEWEST + 1) if first <= onnx_version(name, o) <= last and o <= GONE.get(name, NEWEST)]
    if not good:
        return None
    # The ones that models have most.
    weight = [3.0 if 11 <= o <= 21 else 1.0 for o in good]
    return int(rng.choice(good, p=np.array(weight) / sum(weight)))


def make_graph(opt, number, table, stats):
    rng = np.random.default_rng([opt.seed, number])
    names = sorted(n for n in OPS if n in table)
    # Each operator in turn is sure to be tried, the others as they come.
    featured = opt.op or names[number % len(names)]
    opset = opset_for(rng, table, featured)
    if opset is None:
        featured, opset = 'Add', int(rng.integers(11, 22))
    g = Graph(rng, opset, stats)
    usable = [n for n in names if table[n][0] <= onnx_version(n, opset) <= table[n][1]]
    want = int(rng.integers(3, 13))
    at = int(rng.integers(0, min(want, 4)))
    for step in range(want * 4):
        if len(g.nodes) >= want:
            break
        # A place for the operator in turn, a few tries.
        name = featured if at <= step < at + 4 and featured not in g.ops else g.pick(usable)
        before = len(g.values), len(g.nodes), len(g.ops), g.count
        try:
            OPS[name](g, name)
        except (Skip, Refused):
            del g.values[before[0]:], g.nodes[before[1]:], g.ops[before[2]:]
            g.count = before[3]
    model, inputs, outputs = g.finish(opt.all_outputs)
    return g, model, inputs, outputs


def tensor_record(a):
    a = np.asarray(a)
    t = helper.np_dtype_to_tensor_dtype(a.dtype)
    data = b''.join(v.encode() + b'\0' for v in a.reshape(-1)) if a.dtype == STR else a.tobytes()
    return struct.pack('<II', t, a.ndim) + struct.pack(f'<{a.ndim}q', *a.shape) + struct.pack('<Q', len(data)) + data


def graph_record(model, inputs):
    m = model.SerializeToString()
    out = [b'RGIN', struct.pack('<IQ', len(inputs), len(m)), m]
    for v in inputs:
        name = v.name.encode()
        out += [struct.pack('<I', len(name)), name, tensor_record(v.data)]
    return b''.join(out)


def read_results(path):
    with open(path, 'rb') as f:
        data = f.read()
    at, results = 0, []
    while at < len(data):
        if data[at:at + 4] != b'RGUT':
            raise ValueError('not a result')
        status, length = struct.unpack_from('<II', data, at + 4)
        at += 12
        text = data[at:at + length].decode(errors='replace')
        at += length
        n, = struct.unpack_from('<I', data, at)
        at += 4
        tensors = []
        for _ in range(n):
            t, rank = struct.unpack_from('<II', data, at)
            shape = struct.unpack_from(f'<{rank}q', data, at + 8)
            at += 8 + 8 * rank
            size, = struct.unpack_from('<Q', data, at)
            dtype = helper.tensor_dtype_to_np_dtype(t)
            if dtype == STR:
                words = [w.decode(errors='surrogateescape') for w in data[at + 8:at + 8 + size].split(b'\0')[:-1]]
                tensors.append(np.array(words, dtype=object).reshape(shape))
            else:
                tensors.append(np.frombuffer(data, dtype, size // dtype.itemsize, at + 8).reshape(shape) if size or 0 in shape
                               else np.zeros(shape, dtype))
            at += 8 + size
        results.append((status, text, tensors))
    return results


def difference(got, want, err):
    """How they differ, or None."""
    if got.dtype != want.dtype:
        return f'type {got.dtype}, expected {want.dtype}'
    if got.shape != want.shape:
        return f'shape {got.shape}, expected {want.shape}'
    if want.dtype not in FLOATS and err is None:
        bad = np.asarray(got != want)
        tol = 0
    else:
        g, w = got.astype('f8'), want.astype('f8')
        with np.errstate(all='ignore'):
            bad = ~((np.abs(g - w) <= (0 if err is None else err)) | (g == w) | (np.isnan(g) & np.isnan(w)))
        tol = 0 if err is None else err
    if not bad.any():
        return None
    i = np.unravel_index(int(np.argmax(bad)), bad.shape) if bad.ndim else ()
    t = tol if np.ndim(tol) == 0 else tol[i]
    return f'{int(bad.sum())} of {bad.size} elements, first at {[int(k) for k in i]}: {got[i]!r}, expected {want[i]!r} (tolerance {t:.3g})'


def run_ridge(runner, records, lanes, level):
    with tempfile.TemporaryDirectory() as d:
        with open(f'{d}/in', 'wb') as f:
            f.write(b''.join(records))
        subprocess.run([runner, f'{d}/in', f'{d}/out', str(lanes), str(level)], check=True)
        return read_results(f'{d}/out')


def batch(args):
    """Runs graphs [first, first + count); returns what they came to."""
    opt, table, first, count = args
    stats = Stats()
    made, found = [], []
    ops, types, nodes = collections.Counter(), collections.Counter(), []
    outcome = collections.Counter()
    refused = collections.Counter()
    for number in range(first, first + count):
        try:
            g, model, inputs, outputs = make_graph(opt, number, table, stats)
        except Skip:
            outcome['not made'] += 1
            continue
        # What the nodes gave one by one must be what the whole gives.
        try:
            whole = session(model).run([v.name for v in outputs], {v.name: v.data for v in inputs})
        except Exception as e:
            stats.graph_refusals[reason(e)] += 1
            outcome['refused by ONNX Runtime'] += 1
            continue
        made.append((number, g, model, inputs, outputs, whole))
    results = run_ridge(opt.runner, [graph_record(m[2], m[3]) for m in made], opt.lanes, opt.optimize)
    if len(results) != len(made):
        raise SystemExit(f'graphs {first}+: {len(results)} results of {len(made)}')
    for (number, g, model, inputs, outputs, whole), (status, text, got) in zip(made, results):
        why = None
        if status == 1:
            outcome['refused by ridge'] += 1
            refused[reason(text.split(': ', 1)[-1])] += 1
            if opt.save_refused:
                save(opt.save, opt.seed, number, model, inputs, outputs, whole)
            continue
        if status == 2:
            why = f'error: {text}'
        elif status == 3:
            why = f'crashed: {text}'
        elif len(got) != len(outputs):
            why = f'{len(got)} outputs, expected {len(outputs)}'
        for v, a, w in zip(outputs, got, whole) if not why else ():
            d = difference(a, w, v.err)
            if d:
                made_by = next(n for n in model.graph.node if v.name in n.output)
                why = f'{v.name} ({made_by.op_type}-{onnx_version(made_by.op_type, g.opset, made_by.domain)}): {d}'
                break
        outcome['ran'] += 1
        nodes.append(len(g.nodes))
        ops.update(set(g.ops))
        types.update(g.types)
        if why:
            found.append((number, g.opset, why))
            if opt.save:
                save(opt.save, opt.seed, number, model, inputs, outputs, whole)
    return stats, outcome, refused, ops, types, nodes, found


def save(folder, seed, number, model, inputs, outputs, whole):
    """As ONNX's test data, for the conformance test's --data."""
    d = os.path.join(folder, 'node', f'graph-{seed}-{number}')
    os.makedirs(f'{d}/test_data_set_0', exist_ok=True)
    onnx.save(model, f'{d}/model.onnx')
    for kind, arrays in (('input', [v.data for v in inputs]), ('output', whole)):
        for i, a in enumerate(arrays):
            with open(f'{d}/test_data_set_0/{kind}_{i}.pb', 'wb') as f:
                f.write(numpy_helper.from_array(np.asarray(a)).SerializeToString())


def print_counts(title, counter, most=40):
    if counter:
        print(title)
        for k, n in counter.most_common(most):
            print(f'  {n:6}  {k}')
        if len(counter) > most:
            print(f'  ...     {len(counter) - most} more')


def main():
    p = argparse.ArgumentParser()
    p.add_argument('--runner', required=True)
    p.add_argument('--ops', required=True)
    p.add_argument('--graphs', type=int, default=1000)
    p.add_argument('--first', type=int, default=0)
    p.add_argument('--seed', type=int, default=1)
    p.add_argument('--jobs', type=int, default=1)
    p.add_argument('--lanes', type=int, default=1)
    p.add_argument('--optimize', type=int, default=0)
    p.add_argument('--only', type=int)
    p.add_argument('--op', help='an operator, NAME or DOMAIN:NAME')
    p.add_argument('--all-outputs', action='store_true', help='compare every value, not only outputs')
    p.add_argument('--save', help='folder for graphs that disagree')
    p.add_argument('--save-refused', action='store_true')
    p.add_argument('--quiet', action='store_true', help='no histogram')
    p.add_argument('--tap', action='store_true', help='Test Anything Protocol, a point a batch')
    opt = p.parse_args()
    table = read_table(opt.ops)
    opt.quiet = opt.quiet or opt.tap
    if opt.op and opt.op not in table:
        p.error(f'there is no operator {opt.op}')
    if opt.op and opt.op not in OPS:
        p.error(f'{opt.op} is not in the generator: {WITHOUT.get(opt.op, "it has no maker")}')

    if opt.only is not None:
        opt.first, opt.graphs = opt.only, 1
        g, model, inputs, outputs = make_graph(opt, opt.only, table, Stats())
        print(onnx.printer.to_text(model))
    jobs = [(opt, table, f, min(BATCH, opt.first + opt.graphs - f))
            for f in range(opt.first, opt.first + opt.graphs, BATCH)]
    total, nodes, found = Stats(), [], []
    outcome, refused, ops, types = (collections.Counter() for _ in range(4))
    with multiprocessing.get_context('fork').Pool(opt.jobs) if opt.jobs > 1 else _Serial() as pool:
        for k, (s, o, r, c, t, n, f) in enumerate(pool.imap(batch, jobs)):
            total.tried += s.tried
            for name in ('refusals', 'type_refusals', 'graph_refusals'):
                getattr(total, name).update(getattr(s, name))
            outcome += o
            refused += r
            ops += c
            types += t
            nodes += n
            found += f
            if opt.tap:
                print(f'{"not ok" if f else "ok"} {k + 1} - graphs {jobs[k][2]} to {jobs[k][2] + jobs[k][3] - 1}')
            for number, opset, why in f:
                print(f'{"# " if opt.tap else ""}DISAGREE graph {number} (opset {opset}): {why}', flush=True)
            if k % 20 == 19:
                print(f'... {outcome["ran"]} graphs, {len(found)} disagree', file=sys.stderr, flush=True)
    if opt.tap:
        print(f'1..{len(jobs)}')
        print(f'# diff-fuzz: {outcome["ran"]} graphs ran, {len(found)} disagree (seed {opt.seed})')
        return 1 if found or not outcome['ran'] else 0
    lost = sum(total.refusals.values())
    print_counts('nodes that ONNX Runtime refused, by reason:', total.refusals)
    print_counts('versions and types that ONNX Runtime does not have (each met once a batch):', total.type_refusals, 0 if opt.quiet else 15)
    print_counts('graphs that ONNX Runtime refused:', total.graph_refusals)
    print_counts('graphs that ridge refused:', refused)
    if not opt.quiet:
        known = sorted(n for n in OPS if n in table)
        print(f'graphs with each operator ({len(known)} operators):')
        for i in range(0, len(known), 4):
            print('  ' + '  '.join(f'{n[:26]:26}{ops[n]:6}' for n in known[i:i + 4]))
        rest = sorted(set(table) - set(OPS) - set(WITHOUT))
        print('operators that are not in the generator: ' + (' '.join(rest) or 'none'))
        for n in sorted(set(WITHOUT) & set(table)):
            print(f'  {n}: {WITHOUT[n]}')
        print('graphs with each element type:')
        print('  ' + ', '.join(f'{n.replace("object", "string")} {k}' for n, k in sorted(types.items())))
        few = [n for n in known if ops[n] < 50]
        print('in fewer than 50 graphs: ' + (' '.join(few) or 'none'))
    if opt.op:
        print(f'graphs with {opt.op}: {ops[opt.op]}')
    if nodes:
        q = np.percentile(nodes, [0, 10, 25, 50, 75, 90, 100])
        print('nodes a graph: least {:.0f}, 10 % {:.0f}, 25 % {:.0f}, median {:.0f}, 75 % {:.0f}, 90 % {:.0f}, most {:.0f}'.format(*q))
    print(f'nodes tried: {total.tried}, refused by ONNX Runtime: {lost} ({100 * lost / max(total.tried, 1):.2f} %)')
    print('graphs: ' + ', '.join(f'{n} {k}' for k, n in sorted(outcome.items())))
    print(f'diff-fuzz: {outcome["ran"]} graphs ran, {len(found)} disagree (seed {opt.seed})')
    return 1 if found or not outcome['ran'] else 0


class _Serial:
    def __enter__(self):
        return self

    def __exit__(self, *a):
        pass

    imap = staticmethod(map)


if __name__ == '__main__':
    sys.exit(main())
