"""com.microsoft: operators on bytes, and weights of a few bits in blocks. See ops_math.py."""
import ml_dtypes
import numpy as np

from graph import BOOL, F16, F32, I16, I32, I64, I8, U16, U8, Skip
from ops_more import MS, ms
from ops_nn import two, weights, window


# ---- weights in blocks ----
@ms('MatMulNBits')
def ms_nbits(g, name):
    bits, block, k, n = g.pick([4, 4, 8, 2]), g.pick([16, 32]), g.int(1, 40), g.int(1, 4)
    blocks = (k + block - 1) // block
    w = g.add(g.rng.integers(0, 255, (n, blocks, block * bits // 8), dtype=U8, endpoint=True), const=True)
    s = g.new(F32, g.pick([[n * blocks], [n, blocks]]), 0.0625, 0.5, const=True)
    row = (blocks * bits + 7) // 8
    z = g.add(g.rng.integers(0, 255, g.pick([[n * row], [n, row]]), dtype=U8, endpoint=True), const=True) if g.chance(0.5) else None
    bias = g.new(F32, [n], const=True) if g.chance(0.3) else None
    a = g.new(F32, [g.rows(1, 3) for _ in range(g.int(1, 2))] + [k])
    g.node('MatMulNBits', [a, w, s, z, None, bias], domain=MS, terms=k * 2 ** bits * 0.5, base=1e-4, K=k, N=n, bits=bits, block_size=block)


@ms('MatMulBnb4')
def ms_bnb4(g, name):
    k, n, block = g.int(1, 40), g.int(1, 5), g.pick([16, 32, 64])
    count = n * k
    a = g.new(F32, [g.rows(1, 3) for _ in range(g.int(0, 2))] + [k])
    w = g.add(g.rng.integers(0, 255, (count + 1) // 2, dtype=U8, endpoint=True), const=g.chance(0.8))
    scale = g.new(F32, [(count + block - 1) // block], 0.0625, 1, const=g.chance(0.8))
    g.node('MatMulBnb4', [a, w, scale], domain=MS, terms=k * 4, base=1e-4, K=k, N=n, block_size=block, quant_type=g.int(0, 1),
           transB=g.pick([None, 1]))


@ms('GatherBlockQuantized')
def gather_blocks(g, name):
    block, rank = g.pick([16, 32]), g.int(2, 3)
    dims = [g.int(1, 4) for _ in range(rank)]
    kind = g.pick(['bytes', 'uint4', 'int4'])
    t = F16 if g.chance(0.2) else F32
    if kind == 'bytes':
        bits, gather, q = g.pick([4, 4, 8]), 0, rank - 1
    else:
        bits, gather = 4, g.int(0, rank - 1)
        q = g.pick([d for d in range(rank) if d != gather])
    dims[q] = g.int(1, 40) if kind != 'bytes' else 2 * g.int(1, 24)
    scales = list(dims)
    scales[q] = (dims[q] + block - 1) // block
    zeros, stored = list(scales), list(dims)
    if kind == 'bytes':
        stored[-1] = dims[-1] * bits // 8
        zeros[-1] = (scales[-1] * bits + 7) // 8
        data = g.random(U8, stored, 0, 255)
        zero = g.random(U8, zeros, 0, 255)
    else:
        nibble = np.dtype(getattr(ml_dtypes, kind))
        lo, hi = (0, 15) if kind == 'uint4' else (-8, 7)
        data, zero = (g.rng.integers(lo, hi, s, endpoint=True).astype(nibble) for s in (stored, zeros))
    ins = [g.add(data, const=True), g.add(g.rng.integers(0, dims[gather], g.shape(0, 2, 0.05), dtype=g.pick([I32, I64]))),
           g.new(t, scales, 0.0625, 1, const=True), g.add(zero, const=True) if g.chance(0.6) else None]
    g.node('GatherBlockQuantized', ins, domain=MS, exact=t == F32, base=2e-3 if t == F16 else None, gather_axis=gather - rank * g.int(0, 1),
           quantize_axis=q - rank * g.int(0, 1), block_size=block, bits=bits if kind == 'bytes' else None)


# ---- products ----
def columns(g, n):
    """A scale, of a tensor or of each column."""
    return g.add(2.0 ** g.rng.integers(-6, -1, n).astype(F32), const=True) if g.chance(0.3) else two(g)


@ms('DynamicQuantizeMatMul')
def ms_dynamic(g, name):
    m, k, n = g.int(1, 4), g.int(1, 6), g.int(1, 4)
    a = g.new(F32, g.dims(g.int(0, 1), 1, 2) + [m, k])
    if not a.data.any():
        raise Skip('zeros')
    b = weights(g, g.pick([I8, U8]), [k, n], const=True)
    scale = columns(g, n)
    z = g.add(g.random(b.dtype, scale.shape, -9, 9), const=True) if g.chance(0.5) else None
    bias = g.new(F32, [n]) if g.chance(0.3) else None
    g.node('DynamicQuantizeMatMul', [a, b, scale, z, bias], domain=MS, terms=k * 9 * 4, base=1e-4)


@ms('MatMulIntegerToFloat')
def ms_integer(g, name):
    k, n = g.int(1, 6), g.int(1, 4)
    t = g.pick([U8, U8, I8])
    a = g.new(t, [g.rows(1, 2) for _ in range(g.int(0, 1))] + [g.rows(1, 4), k])
    b = weights(g, I8 if t == I8 else g.pick([I8, U8]), [k, n])
    scale = columns(g, n)
    za = g.new(t, [], const=True) if g.chance(0.5) else None
    zb = g.add(g.random(b.dtype, scale.shape, -9, 9), const=True) if g.chance(0.5) else None
    bias = g.new(F32, [n]) if g.chance(0.3) else None
    g.node('MatMulIntegerToFloat', [a, b, two(g), scale, za, zb, bias], domain=MS, terms=64)


@ms('QGemm')
def ms_qgemm(g, name):
    m, k, n = g.rows(1, 4), g.int(1, 5), g.int(1, 4)
    t = g.pick([U8, U8, I8])
    ta, tb = g.pick([None, 0, 1]), g.pick([None, 0, 1])
    b = weights(g, I8 if t == I8 else g.pick([I8, U8]), [n, k] if tb else [k, n])
    scale = columns(g, n)
    zb = g.add(g.random(b.dtype, scale.shape, -9, 9), const=True)
    c = g.new(I32, g.pick([[n], [m, n], [1, n]])) if g.chance(0.4) else None
    out = [two(g), g.new(t, [], const=True)] if g.chance(0.7) else []
    g.node('QGemm', quantized(g, t, [k, m] if ta else [m, k]) + [b, scale, zb, c] + out, domain=MS, exact=True, transA=ta, transB=tb,
           alpha=g.pick([None, 0.5, 2.0]))


# ---- elementwise, pools ----
def quantized(g, t, shape):
    return [g.new(t, shape), two(g), g.new(t, [], const=True)]


@ms('QLinearAdd', 'QLinearMul')
def ms_qlinear(g, name):
    t, s = g.pick([U8, I8]), [g.rows(1, 5) for _ in range(g.int(1, 3))]
    other = [1 if g.chance(0.3) else d for d in s][g.int(0, len(s) - 1):] if g.chance(0.4) else s
    # A sum with a repeated operand ONNX Runtime rounds in another order.
    g.node(name.split(':')[1], quantized(g, t, s) + quantized(g, t, other) + [two(g), g.new(t, [], const=True)], domain=MS, exact=True,
           steps=1 if name.endswith('Add') and other != s else None)


@ms('QLinearSigmoid', 'QLinearLeakyRelu')
def ms_unary(g, name):
    t = g.pick([U8, I8])
    s = [g.rows(1, 5) for _ in range(g.int(1, 3))]
    g.node(name.split(':')[1], quantized(g, t, s) + [two(g, -8, -3), g.new(t, [], const=True)], domain=MS, exact=True,
           alpha=g.pick([None, 0.125, 0.5]) if 'Leaky' in name else None)


@ms('QLinearGlobalAveragePool')
def ms_gap(g, name):
    t, last = g.pick([U8, I8]), g.pick([None, 0, 1])
    # The mean of a power of two of elements falls where both round alike.
    n, c, s = g.rows(1, 2), g.int(1, 4), g.pick([[2, 2], [4, 1], [1, 1], [4], [2, 2, 2]])
    g.node('QLinearGlobalAveragePool', quantized(g, t, [n] + s + [c] if last else [n, c] + s) +
           [two(g, -6, -5), g.new(t, [], const=True)], domain=MS, exact=True, channels_last=last)


@ms('QLinearConcat')
def ms_concat(g, name):
    t = g.pick([U8, I8])
    a = g.dims(g.int(1, 3), 1, 4)
    axis = g.int(0, len(a) - 1)
    ins = [two(g), g.new(t, [], const=True)]
    for _ in range(g.int(1, 3)):
        ins += quantized(g, t, a[:axis] + [g.rows(1, 3)] + a[axis + 1:])
    g.node('QLinearConcat', ins, domain=MS, exact=True, axis=axis - len(a) * g.int(0, 1))


@ms('QLinearWhere')
def ms_where(g, name):
    t, s = g.pick([U8, I8]), [g.rows(1, 4) for _ in range(g.int(1, 3))]
    c, x, y = ([1 if g.chance(0.2) else d for d in s] for _ in range(3))
    g.node('QLinearWhere', [g.new(BOOL, c)] + quantized(g, t, x) + quantized(g, t, y) + [two(g), g.new(t, [], const=True)], domain=MS,
           exact=True)


@ms('NhwcMaxPool')
def ms_nhwc(g, name):
    h, w = g.int(2, 6), g.int(2, 6)
    kernel, attrs = window(g, [h, w], auto=False)
    g.node('NhwcMaxPool', [g.new(g.pick([U8, I8]), [g.rows(1, 2), h, w, g.int(1, 3)])], domain=MS, exact=True, kernel_shape=kernel,
           ceil_mode=g.pick([None, None, 1]), **attrs)


@ms('QuantizeLinear', 'DequantizeLinear')
def ms_quantize(g, name):
    t = g.pick([U8, I8, U16, I16])
    quantize = name.endswith(':QuantizeLinear')
    x = g.val((F32,), exact=True) if quantize else g.val((t,))
    axis, shape = None, []
    if x.rank and g.chance(0.4):
        a = g.int(0, x.rank - 1)
        axis, shape = g.pick([a, a - x.rank]), [x.shape[a]]
    scale = g.add(2.0 ** g.rng.integers(-6, -1, shape).astype(F32), const=True) if shape else two(g)
    g.node(name.split(':')[1], [x, scale, g.new(t, shape, const=True)], domain=MS, exact=True, axis=axis)


@ms('QLinearSoftmax')
def ms_softmax(g, name):
    t = g.pick([U8, I8])
    s = [g.rows(1, 6) for _ in range(g.int(1, 3))]
    opset = g.pick([11, 13])
    # ONNX Runtime looks exp up in a table of integers: one step off the definition.
    g.node('QLinearSoftmax', quantized(g, t, s) + [two(g, -8, -6), g.new(t, [], const=True)], domain=MS, steps=1,
           axis=g.axis(len(s)), opset=opset)


@ms('QLinearAveragePool')
def ms_average_pool(g, name):
    t, last = g.pick([U8, I8]), g.pick([None, 0, 1])
    sizes = [g.int(1, 6) for _ in range(g.pick([1, 2, 2, 3]))]
    kernel, attrs = window(g, sizes, dilate=False)
    if 'auto_pad' not in attrs and g.chance(0.3):
        attrs['ceil_mode'] = 1
    n, c = g.rows(1, 2), g.int(1, 3)
    shape = [n] + sizes + [c] if last else [n, c] + sizes
    # A sum divided by 3 may just miss a tie, by the way that it is divided.
    g.node('QLinearAveragePool', quantized(g, t, shape) + [two(g), g.new(t, [], const=True)], domain=MS, exact=True,
           steps=1 if 3 in kernel else None, kernel_shape=kernel, channels_last=last, count_include_pad=g.pick([None, 0, 1]), **attrs)


@ms('QLinearConv')
def ms_qlinear_conv(g, name):
    group = g.pick([1, 1, 1, 2])
    sizes = [g.int(2, 6) for _ in range(g.pick([1, 2, 2, 2]))]
    x = g.new(U8, [g.rows(1, 2), group * g.int(1, 3)] + sizes, 0, 255)
    kernel, attrs = window(g, sizes)
    m = group * g.int(1, 3)
    w = weights(g, g.pick([U8, I8]), [m, x.shape[1] // group] + kernel, const=True)
    if w.dtype == I8 and g.chance(0.4):  # a scale a channel
        scale = g.add(2.0 ** g.rng.integers(-6, -1, m).astype(F32), const=True)
        zw = g.add(np.zeros(m, I8), const=True)
    else:
        scale, zw = two(g), g.new(w.dtype, [], const=True)
    bias = g.new(I32, [m], const=True) if g.chance(0.4) else None
    g.node('QLinearConv', [x, two(g), g.new(U8, [], const=True), w, scale, zw, two(g), g.new(U8, [], const=True), bias], domain=MS,
           exact=True, group=group if group > 1 else g.pick([None, 1]), kernel_shape=g.pick([None, kernel]), **attrs)
