"""A random graph under construction, with the value of everything in it.

Each node is run alone in ONNX Runtime as soon as it is made, so that the next
one can be chosen by what its inputs are: shapes, ranges, whether they are
finite. A node that ONNX Runtime refuses is taken back and counted.

Every value carries how far another correct implementation may be from it:
`err` is None for values that must be the same bit by bit (inputs, and what
copying, comparing and correctly rounded arithmetic make of them), else an
array. What reaches a node as error is sent through it by running the node again
on changed inputs, so a node that magnifies errors gives a large tolerance, or is
taken back when the result would mean nothing. Operators with steps (rounding,
comparisons, sorting) are given exact values only.
"""
import re

import ml_dtypes
import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper

ort.set_default_logger_severity(4)

F32, F64, F16 = np.dtype('float32'), np.dtype('float64'), np.dtype('float16')
FLOATS = (F32, F64, F16)
INTS = tuple(np.dtype(t) for t in ('int8', 'int16', 'int32', 'int64', 'uint8', 'uint16', 'uint32', 'uint64'))
I8, I16, I32, I64, U8, U16, U32, U64 = INTS
BOOL = np.dtype('bool')
STR = np.dtype('O')  # elements are str
SIGNED = (I8, I16, I32, I64)
NUMERIC = FLOATS + INTS
ANY = NUMERIC + (BOOL,)
# numpy has them by another package, and ONNX Runtime cannot hand them over: such
# values are constants or made by nodes, and leave a model by a Cast to float32.
BF16 = np.dtype(ml_dtypes.bfloat16)
FLOAT8 = tuple(np.dtype(getattr(ml_dtypes, t)) for t in ('float8_e4m3fn', 'float8_e4m3fnuz', 'float8_e5m2', 'float8_e5m2fnuz'))
INT4, UINT4 = np.dtype(ml_dtypes.int4), np.dtype(ml_dtypes.uint4)
LOW = (BF16,) + FLOAT8 + (INT4, UINT4)

# Relative error of one result, generous enough for the polynomials that either
# side uses for exp, tanh, erf.
RTOL = {F32: 2e-5, F64: 1e-9, F16: 4e-3}
# Of the largest element: what cancellation within one node may lose.
ATOL = {F32: 4e-6, F64: 1e-11, F16: 2e-3}
SAFETY = 8       # what another correct result may be off, in changes by random signs
USELESS = 0.05   # of the largest element: an error above it leaves nothing to compare

MAX_ELEMENTS = 4096
EMPTY = 0.04     # how often a dimension is 0 that may be

# What strings are made of: letters of one to four bytes, white space, numbers, nothing.
WORDS = ['', 'a', 'b', 'ab', 'a b', 'A', 'B', 'Ab', 'ä', 'Ä', 'éa', 'ЖЯ', '日本', '🙂', '1', '-2.5', '1e3', ' lead', 'trail ', 'a,b', ',',
         'a-b--c', 'x_1', '.', 'nan']

# Correctly rounded, but ONNX Runtime computes chains of float16 in float32 and
# rounds at the end only.
ROUNDED = {'Add', 'Sub', 'Mul', 'Div', 'Sqrt', 'Reciprocal', 'Mod', 'Round', 'PRelu', 'Cast', 'CastLike',
           'ScatterElements', 'ScatterND'}


class Skip(Exception):
    """This node cannot be made here: try another."""


class Refused(Exception):
    """ONNX Runtime does not take the node or the graph."""


def reason(text):
    """What ONNX Runtime says, without names, numbers and shapes."""
    text = next(line for line in str(text).split('\n') if line.strip())
    text = re.sub(r'^\[ONNXRuntimeError\] : \d+ : ', '', text)
    text = re.sub(r"'[^']*'|\{[^}]*\}|\([^)]*\)", '', text)
    text = re.sub(r'/\S+\.(cc|h):\d+', '', text)
    text = re.sub(r'-?\d+(\.\d+)?', 'N', text)
    text = re.sub(r'\b[nv]N\b', '', text)
    return re.sub(r'\s+', ' ', text)[:110]


def session(model):
    o = ort.SessionOptions()
    o.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    o.intra_op_num_threads = o.inter_op_num_threads = 1
    o.log_severity_level = 4
    return ort.InferenceSession(model.SerializeToString(), o, providers=['CPUExecutionProvider'])


class Run:
    """A model in ONNX Runtime, whose results of the types in LOW pass as float32."""

    def __init__(self, model):
        run, self.low = session(model), {}
        for i, o in enumerate(run.get_outputs()):
            low = [t for t in LOW if o.type.removeprefix('tensor(').removesuffix(')') == ort_name(t)]
            if low:
                self.low[i] = low[0]
        for i in self.low:
            o = model.graph.output[i]
            model.graph.node.append(helper.make_node('Cast', [o.name], [o.name + '_wide'], to=TensorProto.FLOAT))
            o.CopyFrom(onnx.ValueInfoProto(name=o.name + '_wide'))
        self.session = session(model) if self.low else run

    def run(self, feeds):
        return [a.astype(self.low[i]) if i in self.low else a for i, a in enumerate(self.session.run(None, feeds))]


def ort_name(dtype):
    return dtype.name.replace('_', '')


class Val:
    def __init__(self, name, data, kind, err=None):
        self.name, self.data, self.kind, self.err = name, data, kind, err
        self.uses = 0

    dtype = property(lambda self: self.data.dtype)
    shape = property(lambda self: self.data.shape)
    rank = property(lambda self: self.data.ndim)
    size = property(lambda self: self.data.size)
    exact = property(lambda self: self.err is None)

    fed = property(lambda self: self.kind not in ('const', 'node') and self.dtype not in LOW)

    def finite(self):  # and of a size that sums and squares stay finite
        return self.dtype not in FLOATS or bool((np.abs(self.data) < 60000).all())

    def max_abs(self):
        if not self.size or self.dtype in (BOOL, STR):
            return 0.0
        a = np.abs(self.data.astype('f8'))
        a = a[np.isfinite(a)]
        return float(a.max()) if a.size else 0.0


def tensor_type(v):
    return helper.np_dtype_to_tensor_dtype(v.dtype)


class Graph:
    def __init__(self, rng, opset, stats):
        self.rng, self.opset, self.stats = rng, opset, stats
        self.values, self.nodes = [], []
        self.count = 0
        self.ops = []
        self.types = set()  # names of the element types that occur
        self.only = None    # the type of what may have any type

    # ---- random choices ----
    def chance(self, p):
        return self.rng.random() < p

    def pick(self, seq):
        return seq[int(self.rng.integers(len(seq)))]

    def int(self, lo, hi):
        return int(self.rng.integers(lo, hi + 1))

    def rows(self, lo, hi):
        """A dimension that may be 0."""
        return 0 if self.chance(EMPTY) else self.int(lo, hi)

    def dims(self, rank, lo=1, hi=5):
        d = [self.int(lo, hi) for _ in range(rank)]
        if rank and lo <= 1 and self.chance(0.2):
            d[self.int(0, rank - 1)] = 1
        return d

    def shape(self, lo=0, hi=4, empty=0.03):
        s = self.dims(self.int(lo, hi))
        if s and self.chance(empty):
            s[self.int(0, len(s) - 1)] = 0
        return s

    def axis(self, rank, end=False):
        a = self.int(0, rank - 1 + end)
        return a - rank if self.chance(0.3) and a < rank and self.opset >= 11 else a

    # ---- data ----
    def random(self, dtype, shape, lo=None, hi=None, specials=False):
        shape = tuple(shape)
        rng = self.rng
        if dtype == BOOL:
            return rng.random(shape) < 0.5
        if dtype == STR:
            return np.array([self.pick(WORDS) for _ in range(int(np.prod(shape)))], dtype=object).reshape(shape)
        if dtype in INTS:
            info = np.iinfo(dtype)
            if lo is None:
                lo, hi = (info.min, info.max) if self.chance(0.1) else (max(info.min, -9), 9)
            return rng.integers(max(lo, info.min), min(hi, info.max), shape, dtype=dtype, endpoint=True)
        if dtype in (INT4, UINT4):
            info = ml_dtypes.iinfo(dtype)
            return np.asarray(rng.integers(int(info.min), int(info.max), shape, endpoint=True)).astype(dtype)
        top = float(ml_dtypes.finfo(dtype).max)
        lo, hi = (-4, 4) if lo is None else (max(lo, -top), min(hi, top))
        if self.chance(0.4):  # multiples of a quarter: ties, exact sums
            a = np.rint(rng.uniform(lo, hi, shape) * 4) / 4
            a = np.clip(a, lo, hi)
        else:
            a = rng.uniform(lo, hi, shape)
        a = np.asarray(a).astype(dtype)
        if specials and a.size and self.chance(0.25):
            info = ml_dtypes.finfo(dtype)
            some = [np.nan, np.inf, -np.inf, -0.0, 0.0, info.max, info.min, info.tiny, info.smallest_subnormal]
            for _ in range(self.int(1, 3)):
                a.reshape(-1)[self.int(0, a.size - 1)] = dtype.type(self.pick(some))
        return a

    # ---- values ----
    def add(self, data, const=None):
        """A new input, initialiser or Constant node."""
        data = np.asarray(data)
        if const is None:
            const = self.chance(0.35)
        const = const or data.dtype in LOW
        kind = 'input'
        if const:
            kind = 'node' if self.chance(0.2) and self.opset >= 9 else 'const'
        if sum(v.kind == 'input' for v in self.values) >= 30 and kind == 'input':
            kind = 'const'
        v = Val(f'v{self.count}', data, kind)
        self.count += 1
        self.values.append(v)
        if kind == 'node':
            node = helper.make_node('Constant', [], [v.name], value=numpy_helper.from_array(data))
            self.nodes.append(node)
            self.ops.append('Constant')
        return v

    def new(self, dtype, shape, lo=None, hi=None, const=None, specials=False):
        return self.add(self.random(np.dtype(dtype), shape, lo, hi, specials), const)

    def ints(self, values, dtype=I64):
        """An argument such as axes or a shape: mostly a constant."""
        return self.add(np.array(values, dtype=dtype), const=not self.chance(0.08))

    def scalar(self, value, dtype):
        value = str(value) if dtype == STR else value
        return self.add(np.array(value, dtype=dtype), const=not self.chance(0.1))

    def val(self, dtypes, rank=None, test=None, exact=False, specials=False, lo=None, hi=None, fresh=0.25, dims=None,
            min_rank=0, max_rank=5, empty=0.03):
        """An earlier value that fits, or a new one. `rank` or (min_rank, max_rank);
        lo..hi bounds the elements; `test` is asked of earlier values."""
        if rank is not None:
            min_rank = max_rank = rank
        if self.only is not None and set(ANY) <= set(dtypes):
            dtypes = (self.only,)

        def fits(v):
            return (v.dtype in dtypes and min_rank <= v.rank <= max_rank and (not exact or v.exact) and
                    (specials or v.finite()) and (empty or v.size) and
                    (lo is None or not v.size or (float(v.data.min()) >= lo and float(v.data.max()) <= hi)) and
                    (dims is None or list(v.shape) == list(dims)) and (not test or test(v)))

        if not self.chance(fresh):
            old = [v for v in self.values if fits(v)]
            # Nodes' results first, those that nobody read yet above all.
            made = [v for v in old if v.kind == 'made' and not v.uses] or [v for v in old if v.kind == 'made']
            if made and self.chance(0.85):
                return self.pick(made)
            if old:
                return self.pick(old)
        weights = np.array([3.0 if t == F32 else 1.5 if t in (F64, I64, I32) else 1.0 for t in dtypes])
        dtype = dtypes[int(self.rng.choice(len(dtypes), p=weights / weights.sum()))]
        for _ in range(20):
            shape = dims if dims is not None else self.shape(min_rank, max_rank, empty)
            v = self.random(dtype, shape, lo, hi, specials)
            if not test or test(Val('', v, 'input')):
                return self.add(v)
        raise Skip('no value fits')

    def like(self, v, **kw):
        """Another value of the same type and shape."""
        return self.val((v.dtype,), dims=list(v.shape), min_rank=v.rank, max_rank=v.rank, **kw)

    def broadcastable(self, v, **kw):
        """A value whose shape broadcasts with v's."""
        r = self.rng.random()
        if r < 0.3:
            return self.like(v, **kw)
        if r < 0.6:
            old = [w for w in self.values if w is not v and w.dtype == v.dtype and can_broadcast(v.shape, w.shape) and
                   (kw.get('specials') or w.finite()) and (not kw.get('exact') or w.exact)]
            if old and kw.get('lo') is None:
                return self.pick(old)
        shape = [1 if self.chance(0.3) else d for d in v.shape]
        cut = self.int(0, len(shape)) if self.chance(0.4) else 0
        shape = shape[cut:]
        if not cut and self.chance(0.1) and len(shape) < 5:
            shape = self.dims(1, 1, 3) + shape
        return self.new(v.dtype, shape, kw.get('lo'), kw.get('hi'), specials=kw.get('specials', False))

    # ---- nodes ----
    def node(self, op, inputs, outputs=1, domain='', exact=False, base=None, terms=0.0, wanted=None, steps=None, **attrs):
        """Makes and runs a node. `exact`: exact inputs give exact results. `base`:
        relative error of its own instead of RTOL, or such a table. `terms`: size of the terms that
        are summed, when they may cancel. `wanted[i]` False: output i is left out. `steps`: how many
        steps an integer result may be off."""
        attrs = {k: a for k, a in attrs.items() if a is not None}
        while inputs and inputs[-1] is None:
            inputs = inputs[:-1]
        wanted = wanted or [True] * outputs
        names = [f'v{self.count + i}' if w else '' for i, w in enumerate(wanted)]
        while not names[-1]:
            names.pop()
        node = helper.make_node(op, [v.name if v else '' for v in inputs], names, name=f'n{len(self.nodes)}',
                                domain=domain, **attrs)
        key = (op, domain, onnx_version(op, self.opset, domain),
               tuple(str(v.dtype) if v else '' for v in inputs) + (''.join('_o'[n != ''] for n in names),))
        out = self.several([node], [v for v in inputs if v], names, key, exact, base, terms, steps)
        return out[0] if outputs == 1 else out

    def several(self, nodes, inputs, names, key=None, exact=False, base=None, terms=0.0, steps=None, types=()):
        """Runs nodes that belong together, such as those with a sequence between
        them; `names` are the results that stay, '' for one that is left out; `types`:
        names of the element types that occur only within."""
        op = nodes[-1].op_type
        key = key or (op, '', onnx_version(op, self.opset), tuple(n.op_type for n in nodes) + tuple(str(v.dtype) for v in inputs))
        present = {v.name: v for v in inputs}
        if key in self.stats.unimplemented:
            raise Skip('not implemented')
        self.stats.tried += len(nodes)
        try:
            model = self.model(nodes, list(present.values()), [n for n in names if n])
            run = Run(model)
            feeds = {v.name: v.data for v in present.values() if v.fed}
            got = run.run(feeds)
        except Exception as e:
            text = str(e)
            if 'NOT_IMPLEMENTED' in text or 'Type Error' in text or 'INVALID_GRAPH' in text:
                self.stats.unimplemented.add(key)
                why = 'not implemented' if 'NOT_IMPLEMENTED' in text else 'type' if 'Type Error' in text else 'graph'
                self.stats.type_refusals[f'{op}-{key[2]} ({", ".join(key[3])}): {why}'] += 1
            else:
                self.stats.refusals[f'{op}: {reason(e)}'] += 1
            raise Refused(text)
        if any(not isinstance(a, np.ndarray) for a in got) or any(a.size > MAX_ELEMENTS for a in got):
            raise Skip('large')
        if any(a.dtype not in ANY + LOW + (STR,) for a in got):
            raise Skip('type')
        errs = self.errors(op, run, present, feeds, got, exact, base, terms)
        if steps is not None:
            errs = [np.full(a.shape, float(steps)) if a.dtype in INTS else e for a, e in zip(got, errs)]
        self.nodes += nodes
        self.ops += [n.op_type if not n.domain else f'{n.domain}:{n.op_type}' for n in nodes]
        self.count += len(names)
        out, k = [], 0
        for name in names:
            if not name:
                out.append(None)
                continue
            v = Val(name, got[k], 'made', errs[k])
            self.values.append(v)
            out.append(v)
            k += 1
        for v in present.values():
            v.uses += 1
        self.types |= set(types) | {str(v.dtype) for v in present.values()} | {str(a.dtype) for a in got}
        return out

    def errors(self, op, run, present, feeds, got, exact, base, terms):
        noisy = [v for v in present.values() if v.err is not None]
        if exact and not noisy and not (op in ROUNDED and any(a.dtype == F16 for a in got)):
            return [None] * len(got)
        moved = [np.zeros(a.shape) for a in got]
        # By random signs, and all of them up or down: across the edge of a domain.
        for side in (0, 0, 0, 1, -1) if noisy else ():
            changed = dict(feeds)
            for v in noisy:
                step = v.err * (side or np.where(self.rng.random(v.shape) < 0.5, -1, 1))
                with np.errstate(all='ignore'):
                    near = np.asarray(v.data.astype('f8') + step)
                    if v.dtype in INTS:
                        near = np.clip(near, np.iinfo(v.dtype).min, np.iinfo(v.dtype).max)
                    changed[v.name] = np.asarray(near.astype(v.dtype))
            other = run.run(changed)
            for i, (a, b) in enumerate(zip(got, other)):
                if a.shape != b.shape:
                    raise Skip('unstable shape')
                if a.dtype not in FLOATS:
                    if not np.array_equal(a, b):
                        raise Skip('unstable')
                    continue
                with np.errstate(all='ignore'):
                    d = np.array(np.abs(a.astype('f8') - b.astype('f8')))
                same = (a == b) | (np.isnan(a) & np.isnan(b))
                d[same] = 0
                if not np.isfinite(d).all():
                    raise Skip('unstable')
                moved[i] = np.maximum(moved[i], d)
        errs = []
        for a, m in zip(got, moved):
            if a.dtype not in FLOATS:
                errs.append(None)
                continue
            with np.errstate(all='ignore'):
                size = np.array(np.abs(a.astype('f8')))
            size[~np.isfinite(size)] = 0
            top = size.max() if size.size else 0.0
            e = m * (1 if exact else SAFETY)
            # Where one element got lucky, its neighbours tell.
            e = np.maximum(e, 0.1 * (e.max() if e.size else 0))
            if not exact:
                own = base[a.dtype] if isinstance(base, dict) else base or RTOL[a.dtype]
                absolute = own / 5 if isinstance(base, dict) else ATOL[a.dtype]
                e = np.asarray(e) + own * size + absolute * (top + terms) + float(np.finfo(a.dtype).tiny)
            elif op in ROUNDED and a.dtype == F16:
                e = np.asarray(e) + 1e-3 * size
            if e.size and e.max() > USELESS * max(top, 1e-3):
                raise Skip('ill-conditioned')
            errs.append(e if e.size and e.max() > 0 else None)
        return errs

    # ---- the model ----
    def model(self, nodes, values, outputs, types=None):
        inputs = [helper.make_tensor_value_info(v.name, tensor_type(v), list(v.shape)) for v in values if v.fed]
        # Within a whole model a Constant node makes its value.
        made = {o for n in nodes for o in n.output}
        consts = [numpy_helper.from_array(np.ascontiguousarray(v.data) if v.rank else v.data, v.name) for v in values
                  if not v.fed and v.name not in made]
        outs = [helper.make_tensor_value_info(n, *(types[n] if types else (TensorProto.UNDEFINED, None)))
                if types else onnx.ValueInfoProto(name=n) for n in outputs]
        graph = helper.make_graph(nodes, 'g', inputs, outs, consts)
        sets = [helper.make_opsetid('', self.opset)]
        for domain, version in (('com.microsoft', 1), ('ai.onnx.ml', ml_version(self.opset))):
            if any(n.domain == domain for n in nodes):
                sets.append(helper.make_opsetid(domain, version))
        m = helper.make_model(graph, opset_imports=sets, producer_name='diff')
        m.ir_version = 8 if self.opset < 19 else 9 if self.opset < 21 else 10
        return m

    def finish(self, all_outputs=False):
        """The model, its inputs in order, and its outputs as values."""
        made = [v for v in self.values if v.kind == 'made']
        read = set(names_read(self.nodes))
        outputs = [v for v in made if all_outputs or v.name not in read or self.chance(0.15)]
        if not outputs:
            raise Skip('no output')
        for i, v in enumerate(outputs):
            if v.dtype in LOW:
                self.nodes.append(helper.make_node('Cast', [v.name], [v.name + '_wide'], to=TensorProto.FLOAT))
                outputs[i] = Val(v.name + '_wide', v.data.astype(F32), 'made')
        used = [v for v in self.values if v.kind in ('input', 'const') and v.name in read]
        types = {v.name: (tensor_type(v), list(v.shape)) for v in outputs}
        m = self.model(self.nodes, used, [v.name for v in outputs], types)
        inputs = [v for v in used if v.kind == 'input']
        # Some models declare dimensions only by name.
        if self.chance(0.3):
            for vi in m.graph.input:
                for k, d in enumerate(vi.type.tensor_type.shape.dim):
                    if self.chance(0.5):
                        d.dim_param = f'{vi.name}_d{k}'
        return m, inputs, outputs


def names_read(nodes):
    """What nodes read, in their subgraphs too."""
    for n in nodes:
        yield from n.input
        for a in n.attribute:
            yield from names_read(a.g.node)


def ml_version(opset):
    """The version of ai.onnx.ml that was published with an opset."""
    return 1 if opset < 10 else 2 if opset < 16 else 3 if opset < 20 else 4 if opset < 21 else 5


_versions = {}


def onnx_version(op, opset, domain=''):
    if ':' in op:
        domain, op = op.split(':')
    if op == 'SimplifiedLayerNormalization' or domain in ('com.microsoft', 'ai.onnx.preview', 'ai.onnx.preview.training'):
        return 1
    if domain == 'ai.onnx.ml':
        opset = ml_version(opset)
    key = (op, opset, domain)
    if key not in _versions:
        try:
            _versions[key] = onnx.defs.get_schema(op, opset, domain).since_version
        except Exception:
            _versions[key] = 0
    return _versions[key]


def can_broadcast(a, b):
    return all(x == y or x == 1 or y == 1 for x, y in zip(reversed(a), reversed(b)))
