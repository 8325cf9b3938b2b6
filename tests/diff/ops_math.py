"""Elementwise operators, reductions, sorting. Each function makes one node of the
operator in `op` (several share one function) or raises Skip."""
import numpy as np

from graph import BOOL, F16, F32, F64, FLOATS, I32, I64, I8, INTS, NUMERIC, SIGNED, U8, Skip, can_broadcast

OPS = {}


def op(*names):
    def register(f):
        for n in names:
            OPS[n] = f
        return f
    return register


CONSTANTS = {F32: 2e-5, F64: 2e-6, F16: 4e-3}


# ---- unary ----
# name: (range of the values, attributes, exact)
SMOOTH = {
    'Acos': (-1, 1), 'Asin': (-1, 1), 'Atanh': (-0.9, 0.9), 'Acosh': (1, 9), 'Asinh': None, 'Atan': None,
    'Cos': (-6, 6), 'Sin': (-6, 6), 'Tan': (-1.4, 1.4), 'Cosh': (-5, 5), 'Sinh': (-5, 5), 'Tanh': None,
    'Exp': (-8, 8), 'Log': (0.0625, 9), 'Sigmoid': None, 'Softplus': (-60, 60), 'Softsign': None, 'Erf': None,
    'Gelu': None, 'Mish': None, 'HardSwish': None, 'Swish': None, 'Reciprocal': (0.125, 9), 'Sqrt': (0, 16),
}


@op(*SMOOTH)
def smooth(g, name):
    r = SMOOTH[name]
    wild = g.chance(0.15) and name not in ('Gelu', 'Mish', 'Swish', 'HardSwish', 'Erf', 'Softplus')
    kw = dict(specials=True) if wild else dict(lo=r[0], hi=r[1]) if r else {}
    x = g.val((F32,) if name == 'Swish' else FLOATS, exact=wild, **kw)
    attrs = {}
    if name == 'Gelu':
        attrs['approximate'] = g.pick(['none', 'tanh', None])
    if name == 'Swish' and g.chance(0.5):
        attrs['alpha'] = float(g.pick([0.5, 1.0, 1.702]))
    # ONNX Runtime has float32 constants in these for float64 too.
    g.node(name, [x], exact=name in ('Reciprocal', 'Sqrt'), base=CONSTANTS if name in ('Gelu', 'HardSwish') else None, terms=0.25,
           **attrs)


@op('Abs', 'Neg', 'Relu', 'Identity')
def simple(g, name):
    types = NUMERIC if name in ('Abs', 'Identity') else FLOATS + SIGNED
    if name == 'Relu' and g.opset < 14:
        types = FLOATS
    if name == 'Identity':
        types = types + (BOOL,)
    # What Relu makes of NaN differs between implementations (ONNX says nothing).
    g.node(name, [g.val(types, specials=name != 'Relu')], exact=True)


@op('Sign', 'Ceil', 'Floor', 'Round', 'IsNaN', 'IsInf')
def steps(g, name):
    types = NUMERIC if name == 'Sign' else FLOATS
    attrs = {}
    if name == 'IsInf':
        types = FLOATS if g.opset >= 20 else (F32, F64)
        if g.chance(0.5):
            attrs = dict(detect_negative=g.int(0, 1), detect_positive=g.int(0, 1))
    g.node(name, [g.val(types, exact=True, specials=name != 'Sign')], exact=True, **attrs)


@op('Not')
def not_(g, name):
    g.node(name, [g.val((BOOL,))], exact=True)


@op('BitwiseNot')
def bitwise_not(g, name):
    g.node(name, [g.val(INTS)], exact=True)


@op('Celu', 'Elu', 'Selu', 'LeakyRelu', 'HardSigmoid', 'ThresholdedRelu', 'Shrink')
def activation(g, name):
    stepped = name in ('ThresholdedRelu', 'Shrink')
    types = (F32,) if name == 'Celu' and g.opset < 28 else FLOATS
    attrs = {}
    if g.chance(0.7):
        if name == 'Shrink':
            attrs = dict(lambd=float(g.pick([0.5, 1.0, 0.25])), bias=float(g.pick([0.0, 0.5, -0.25])))
        elif name == 'HardSigmoid':
            attrs = dict(alpha=float(g.pick([0.2, 0.25, 0.5])), beta=float(g.pick([0.5, 0.25, 0.0])))
        else:
            attrs = dict(alpha=float(g.pick([0.01, 0.25, 1.0, 1.5])))
            if name == 'Selu':
                attrs['gamma'] = float(g.pick([1.05, 2.0]))
    # Attributes are float32, and ONNX Runtime computes some of them so for float64.
    g.node(name, [g.val(types, exact=stepped, lo=-1e6, hi=1e6)], base=CONSTANTS, terms=1, **attrs)


@op('Clip')
def clip(g, name):
    types = NUMERIC if g.opset >= 12 else FLOATS if g.opset >= 11 else FLOATS
    x = g.val(types)
    if g.opset < 11:
        g.node(name, [x], exact=True, **({'min': -1.5} if g.chance(0.7) else {}), **({'max': 2.0} if g.chance(0.7) else {}))
        return
    low = 1 if x.dtype.kind == 'u' else -1.5 if x.dtype in FLOATS else -3
    lo = g.scalar(low, x.dtype) if g.chance(0.7) else None
    hi = g.scalar(4, x.dtype) if g.chance(0.7) else None
    g.node(name, [x, lo, hi], exact=True)


@op('Cast', 'CastLike')
def cast(g, name):
    x = g.val(NUMERIC + (BOOL,), specials=False)
    targets = list(NUMERIC + (BOOL,))
    if x.dtype in FLOATS:
        # To an integer: only what is the same in every implementation, and fits it.
        if not x.exact or x.max_abs() > 100 or (x.size and x.data.min() < 0):
            targets = list(FLOATS)
        if x.exact:
            targets.append(BOOL)
    to = g.pick(targets)
    if to in FLOATS and x.max_abs() > 60000:
        to = F64
    exact = x.dtype not in FLOATS or to not in FLOATS or x.exact
    if name == 'Cast':
        from onnx import helper
        attrs = {'to': helper.np_dtype_to_tensor_dtype(np.dtype(to))}
        g.node(name, [x], exact=exact, base=narrow(x.dtype, to), **attrs)
    else:
        g.node(name, [x, g.val((np.dtype(to),), specials=True)], exact=exact, base=narrow(x.dtype, to))


def narrow(a, b):
    return 2e-3 if F16 in (a, np.dtype(b)) else 1e-6


# ---- two and more ----
@op('Add', 'Sub', 'Mul', 'Div')
def arithmetic(g, name):
    types = FLOATS + (INTS if g.opset >= 14 else (I32, I64, np.dtype('uint32'), np.dtype('uint64')))
    a = g.val(types, specials=g.chance(0.3))
    special = not a.finite()
    if name == 'Div':
        if a.dtype in FLOATS:
            b = g.broadcastable(a, lo=0.25, hi=4)
        else:
            # ONNX says that integers are cut off; some implementations round down.
            if a.size and a.data.min() < 0:
                raise Skip('negative')
            b = g.broadcastable(a, lo=1, hi=5)
        if b.size and (b.data == 0).any():
            raise Skip('zero')
    else:
        b = g.broadcastable(a, specials=special)
    if g.chance(0.5) and name != 'Div':
        a, b = b, a
    g.node(name, [a, b], exact=True)


@op('Pow')
def power(g, name):
    types = FLOATS + ((I32, I64) if g.opset >= 12 else ())
    a = g.val(types, lo=0, hi=4) if g.chance(0.5) else g.val(types, lo=-3, hi=3)
    if a.dtype in FLOATS:
        b = g.broadcastable(a, lo=0, hi=3)
        if a.size and a.data.min() < 0:
            b = g.new(a.dtype, b.shape, 0, 3)
            b.data = np.asarray(np.rint(b.data)).astype(b.dtype)
            fix(g, b)
    else:
        b = g.broadcastable(a, lo=0, hi=4)
    if g.opset >= 12 and g.chance(0.2):
        t = g.pick([F32, I32, I64])
        b = g.add(np.asarray(np.rint(np.abs(b.data.astype('f8')))).clip(0, 4).astype(t))
    g.node(name, [a, b])


def fix(g, v):
    """The data of a value was changed after it was added: a Constant node has it too."""
    if v.kind == 'node':
        from onnx import helper, numpy_helper
        for i, n in enumerate(g.nodes):
            if list(n.output) == [v.name]:
                g.nodes[i] = helper.make_node('Constant', [], [v.name], value=numpy_helper.from_array(v.data))


@op('Mod')
def mod(g, name):
    if g.chance(0.4):
        a = g.val(FLOATS, exact=True)
        b = g.broadcastable(a, lo=0.5, hi=3)
        if not b.exact:
            raise Skip('noisy')
        g.node(name, [a, b], exact=True, fmod=1)
    else:
        a = g.val(INTS)
        b = g.broadcastable(a, lo=1, hi=7)
        if b.size and (b.data == 0).any():
            raise Skip('zero')
        g.node(name, [a, b], exact=True, fmod=g.pick([None, 0, 1]))


@op('BitShift')
def bit_shift(g, name):
    a = g.val((U8, np.dtype('uint16'), np.dtype('uint32'), np.dtype('uint64')))
    b = g.broadcastable(a, lo=0, hi=7)
    if b.size and b.data.max() > 7:
        raise Skip('shift')
    g.node(name, [a, b], exact=True, direction=g.pick(['LEFT', 'RIGHT']))


@op('BitwiseAnd', 'BitwiseOr', 'BitwiseXor', 'And', 'Or', 'Xor')
def bitwise(g, name):
    a = g.val(INTS if name.startswith('Bitwise') else (BOOL,))
    g.node(name, [a, g.broadcastable(a)], exact=True)


@op('Equal', 'Greater', 'Less', 'GreaterOrEqual', 'LessOrEqual')
def compare(g, name):
    if name == 'Equal':
        types = NUMERIC + (BOOL,) if g.opset >= 11 else (BOOL, I32, I64) if g.opset < 7 else (BOOL, I32, I64) + FLOATS
    else:
        types = NUMERIC if g.opset >= 9 else FLOATS
    a = g.val(types, exact=True, specials=True)
    b = g.broadcastable(a, exact=True, specials=True)
    if not b.exact:
        raise Skip('noisy')
    g.node(name, [a, b], exact=True)


@op('PRelu')
def prelu(g, name):
    x = g.val(FLOATS + ((I32, I64) if g.opset >= 9 else ()))
    if not x.rank:
        raise Skip('rank')
    shape = [d if g.chance(0.6) else 1 for d in x.shape]
    shape = shape[g.int(0, len(shape) - 1):]
    g.node(name, [x, g.new(x.dtype, shape)], exact=True)


@op('Max', 'Min', 'Sum', 'Mean')
def variadic(g, name):
    types = FLOATS if g.opset < 12 or name in ('Sum', 'Mean') else NUMERIC
    a = g.val(types)
    vals = [a]
    for _ in range(g.int(0, 3)):
        vals.append(g.broadcastable(a))
    for i, v in enumerate(vals):
        if any(not can_broadcast(v.shape, w.shape) for w in vals[:i]):
            raise Skip('broadcast')
    g.node(name, vals, exact=name in ('Max', 'Min'), terms=sum(v.max_abs() for v in vals))


@op('Where')
def where(g, name):
    a = g.val(NUMERIC + (BOOL,), specials=True)
    b = g.broadcastable(a, specials=True)
    shape = np.broadcast_shapes(a.shape, b.shape)
    c = g.val((BOOL,), test=lambda v: can_broadcast(v.shape, shape) and v.rank <= 5, fresh=0.3) if g.chance(0.5) else \
        g.new(BOOL, [1 if g.chance(0.2) else d for d in shape][g.int(0, len(shape)):])
    g.node(name, [c, a, b], exact=True)


# ---- reductions ----
REDUCE = ('ReduceL1', 'ReduceL2', 'ReduceLogSum', 'ReduceLogSumExp', 'ReduceMax', 'ReduceMean', 'ReduceMin',
          'ReduceProd', 'ReduceSum', 'ReduceSumSquare')


@op(*REDUCE)
def reduce(g, name):
    ints = (I32, I64)
    types = FLOATS + ints
    if name in ('ReduceMax', 'ReduceMin'):
        types += ((I8, U8) if g.opset >= 12 else ()) + ((BOOL,) if g.opset >= 20 else ())
    if name in ('ReduceLogSum', 'ReduceLogSumExp', 'ReduceL2', 'ReduceMean'):
        types = FLOATS  # of integers the rounding is nowhere said
    r = dict(ReduceLogSum=(0.25, 8), ReduceProd=(-2, 2), ReduceLogSumExp=(-20, 20)).get(name, (-1000, 1000))
    # ONNX does not say what an integer that overflows becomes (ONNX Runtime sums
    # int64 by way of double and saturates), so that the bounds are small.
    if name in ('ReduceMax', 'ReduceMin'):
        r = (None, None)
    x = g.val(types, lo=r[0], hi=r[1], empty=0.03 if name in ('ReduceSum', 'ReduceSumSquare', 'ReduceL1', 'ReduceProd') else 0)
    axes = None
    if x.rank and g.chance(0.8):
        axes = [int(a) for a in g.rng.permutation(x.rank)[:g.int(1, x.rank)]]
        if g.opset >= 11:
            axes = [a - x.rank if g.chance(0.3) else a for a in axes]
        else:
            axes.sort()
    as_input = g.opset >= 18 or (name == 'ReduceSum' and g.opset >= 13)
    attrs = dict(keepdims=g.pick([None, 0, 1]))
    ins = [x]
    if as_input:
        if axes is not None or g.chance(0.2):
            ins.append(g.ints(axes or []))
        if g.chance(0.3):
            attrs['noop_with_empty_axes'] = g.int(0, 1)
    else:
        attrs['axes'] = axes
    n = x.size
    g.node(name, ins, exact=x.dtype not in FLOATS or name in ('ReduceMax', 'ReduceMin'),
           terms=0 if name == 'ReduceProd' else n ** 0.5 * x.max_abs(), **attrs)


@op('Softmax', 'LogSoftmax', 'Hardmax')
def softmax(g, name):
    hard = name == 'Hardmax'
    x = g.val(FLOATS, min_rank=1, exact=hard, empty=0)
    axis = g.axis(x.rank) if g.chance(0.8) else None
    if axis is None and g.opset < 13 and x.rank < 2:
        raise Skip('axis')
    g.node(name, [x], exact=hard, terms=1, axis=axis)


@op('ArgMax', 'ArgMin')
def arg(g, name):
    x = g.val((F32, F64, I32, I64, I8, U8) if g.opset >= 13 else (F32, I32), min_rank=1, exact=True, empty=0)
    attrs = dict(keepdims=g.pick([None, 0, 1]), axis=g.axis(x.rank) if g.chance(0.8) else None)
    if g.opset >= 12 and g.chance(0.4):
        attrs['select_last_index'] = g.int(0, 1)
    g.node(name, [x], exact=True, **attrs)


@op('TopK')
def topk(g, name):
    x = g.val(FLOATS[:2] + ((I32, I64) if g.opset >= 11 else ()), min_rank=1, exact=True)
    axis = g.int(0, x.rank - 1)
    k = g.int(0 if g.opset >= 11 else 1, x.shape[axis]) if x.shape[axis] else 0
    attrs = dict(axis=axis - x.rank if g.chance(0.3) else axis)
    if g.opset < 11 and attrs['axis'] < 0 and attrs['axis'] != -1:
        attrs['axis'] = axis
    if axis == x.rank - 1 and g.chance(0.3):
        attrs = {}
    if g.opset >= 11:
        attrs.update(largest=g.pick([None, 0, 1]), sorted=g.pick([None, 1]))
    if g.opset < 10:
        g.node(name, [x], 2, exact=True, k=max(k, 1), **attrs)
    else:
        g.node(name, [x, g.ints([k])], 2, exact=True, wanted=g.pick([None, [True, True], [True, False]]), **attrs)


@op('CumSum')
def cumsum(g, name):
    x = g.val((F32, F64, I32, I64), min_rank=1)
    axis = g.add(np.array(g.axis(x.rank), dtype=g.pick([I32, I64])), const=not g.chance(0.1))
    g.node(name, [x, axis], exact=x.dtype not in FLOATS, terms=x.size * x.max_abs() / 4,
           exclusive=g.pick([None, 0, 1]), reverse=g.pick([None, 0, 1]))


@op('Det')
def det(g, name):
    n = g.int(1, 4)
    x = g.new(g.pick([F32, F64]), g.dims(g.int(0, 2)) + [n, n])
    g.node(name, [x], terms=x.max_abs() ** n)
