"""Element types that few operators have: strings, bfloat16, float8, 4 bits. See ops_math.py.

Operators that take any type are made with one of these now and then; Cast,
QuantizeLinear and DequantizeLinear have forms of their own."""
import numpy as np

import ops_flow  # noqa: F401  whose operators are given more types
import ops_move  # noqa: F401
import ops_nn  # noqa: F401
from graph import BF16, BOOL, F16, F32, F64, FLOAT8, I16, I32, I64, I8, INT4, STR, U16, U8, UINT4, Skip, tensor_type
from ops_math import OPS

# By operator, what ONNX Runtime's kernels take.
TYPES = {**dict.fromkeys(('Compress', 'OneHot', 'ReverseSequence', 'Scatter', 'ConcatFromSequence', 'SequenceAt', 'SequenceConstruct',
                          'SequenceEmpty', 'SequenceErase', 'SequenceInsert', 'SequenceLength', 'SplitToSequence', 'Optional',
                          'OptionalGetElement', 'OptionalHasElement', 'Unique', 'Expand', 'Tile', 'Where', 'Equal', 'Size'), (STR,)),
         **dict.fromkeys(('Concat', 'Flatten', 'Gather', 'GatherElements', 'GatherND', 'ScatterElements', 'ScatterND', 'Slice', 'Split',
                          'Squeeze', 'Unsqueeze'), (STR, BF16)),
         **dict.fromkeys(('Reshape', 'Identity', 'Shape'), (STR, BF16) + FLOAT8),
         'Transpose': (STR, BF16, INT4, UINT4) + FLOAT8, 'Pad': (BF16,), 'ConstantOfShape': (BF16,)}
# The opset from which an operator has a type, about.
SINCE = {STR: 7, BF16: 13, **dict.fromkeys(FLOAT8, 19), INT4: 21, UINT4: 21}


def now_and_then(name, make, p):
    usual = OPS[name]

    def either(g, name):
        if g.chance(p):
            make(g, name)
        else:
            usual(g, name)
    OPS[name] = either


def with_type(types, usual):
    def make(g, name):
        there = [t for t in types if g.opset >= SINCE[t]]
        g.only = g.pick(there) if there else None
        try:
            usual(g, name)
        finally:
            g.only = None
    return make


for _name, _types in TYPES.items():
    now_and_then(_name, with_type(_types, OPS[_name]), 0.2)


def cast_low(g, name):
    low = g.pick([F16] + [t for t in SINCE if g.opset >= SINCE[t]])
    if low == STR:
        cast_text(g, name)
        return
    wide = (F32, F32, F16, F64) if low not in (INT4, UINT4) else (F32, I8, U8, I32)
    if g.chance(0.5):
        # What does not fit differs: it saturates or not, wraps, is infinite.
        lo, hi = {INT4: (-8, 7), UINT4: (0, 15)}.get(low, (-200, 200))
        x = g.val(wide, exact=True, lo=lo, hi=hi, specials=False)
        if low in (INT4, UINT4) and x.dtype == F32 and x.size and (x.data != np.rint(x.data)).any():
            raise Skip('fraction')
        to = low
    else:
        x, to = g.val((low,), exact=True), g.pick(wide)
    convert(g, name, x, to)


def cast_text(g, name):
    types = (F32, I64, I32, I8, U8, BOOL)
    if g.chance(0.5):
        x = g.val(types, exact=True)
        # ONNX Runtime writes eight digits, ridge as few as read back as the same number.
        if x.dtype == F32 and x.size and (x.data * 4 != np.rint(x.data * 4)).any():
            raise Skip('digits')
        convert(g, name, x, STR)
        return
    t = g.pick([F32, F64, I64, I32, I16])
    shape = g.shape()
    words = [str(g.int(-99, 99)) if t not in (F32, F64) else g.pick(['1', '-2.5', '1e3', '.5', '7.', 'inf', '-inf', 'nan', '+1', '1E-2'])
             for _ in range(int(np.prod(shape)))]
    convert(g, name, g.add(np.array(words, dtype=object).reshape(shape)), t)


def convert(g, name, x, to):
    from onnx import helper
    if name == 'CastLike':
        g.node(name, [x, g.val((np.dtype(to),), exact=True)], exact=True)
    else:
        g.node(name, [x], exact=True, to=helper.np_dtype_to_tensor_dtype(np.dtype(to)))


now_and_then('Cast', cast_low, 0.5)
now_and_then('CastLike', cast_low, 0.5)


# ---- quantisation ----
def low_scale(g, x, block):
    """Powers of two: one, one an index of an axis, or one a block along it."""
    if not x.rank or g.chance(0.5):
        return g.add(np.array(2.0 ** g.int(-4, 0), F32), const=g.chance(0.8)), {}
    axis = g.int(0, x.rank - 1)
    attrs = dict(axis=axis - x.rank if g.chance(0.3) else axis)
    shape = [x.shape[axis]]
    if block and g.chance(0.5) and x.size:
        size = g.int(1, x.shape[axis])
        shape = list(x.shape)
        shape[axis] = -(-x.shape[axis] // size)
        attrs['block_size'] = size
    return g.add(2.0 ** g.rng.integers(-4, 1, shape).astype(F32), const=g.chance(0.8)), attrs


def quantize_low(g, name):
    t = g.pick([I16, U16] + [t for t in (INT4, UINT4) + FLOAT8 if g.opset >= SINCE[t]])
    x = g.val((F32,), exact=True, min_rank=0, lo=-100, hi=100)
    scale, attrs = low_scale(g, x, g.opset >= 21)
    zero = None
    if g.chance(0.7):
        # Of float8 the zero point must be zero.
        zero = g.add(np.zeros(scale.shape, t) if t in FLOAT8 else g.random(t, scale.shape))
    elif g.opset >= 21:
        attrs['output_dtype'] = int(tensor_type(g.val((t,), rank=0)))
    else:
        raise Skip('type')
    g.node(name, [x, scale, zero], exact=True, **attrs)


def dequantize_low(g, name):
    t = g.pick([I16, U16] + [t for t in (INT4, UINT4) + FLOAT8 if g.opset >= SINCE[t]])
    x = g.val((t,), exact=True)
    scale, attrs = low_scale(g, x, g.opset >= 21)
    zero = None
    if g.chance(0.6):
        zero = g.add(np.zeros(scale.shape, t) if t in FLOAT8 else g.random(t, scale.shape))
    g.node(name, [x, scale, zero], exact=True, **attrs)


now_and_then('QuantizeLinear', quantize_low, 0.4)
now_and_then('DequantizeLinear', dequantize_low, 0.4)
