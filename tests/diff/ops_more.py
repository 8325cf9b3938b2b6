"""Signals, image geometry, detection, and operators of com.microsoft. See ops_math.py."""
import numpy as np

from graph import F32, F64, I32, I64, I8, U8, Skip
from ops_math import op
from ops_nn import window

MS = 'com.microsoft'


# ---- signals ----
@op('BlackmanWindow', 'HammingWindow', 'HannWindow')
def windows(g, name):
    # ONNX Runtime has float32 coefficients for float64 too.
    t = g.pick([None, 1, 11])
    g.node(name, [g.add(np.array(g.int(2, 12), g.pick([I32, I64])), const=True)], terms=1e4 if t == 11 else 1,
           periodic=g.pick([None, 0, 1]), output_datatype=t, base=1e-5)


@op('DFT')
def dft(g, name):
    real = g.chance(0.5)
    b, n, m = g.int(1, 2), g.int(2, 8), g.int(1, 3)
    x = g.new(g.pick([F32, F64]), [b, n, m, 1 if real else 2])
    inverse = g.pick([None, 0, 1]) if not real else None
    onesided = g.pick([None, 0, 1]) if real else None
    axis = g.pick([1, 2])
    length = g.ints(g.int(2, 8)) if g.chance(0.3) else None
    attrs = dict(inverse=inverse, onesided=onesided)
    # ONNX Runtime's roots of unity are float32 for float64 too.
    terms = 1e5 if x.data.dtype == F64 else 16
    if g.opset < 20:
        g.node(name, [x, length], terms=terms, axis=axis, **attrs)
    else:
        g.node(name, [x, length, g.ints(axis)], terms=terms, **attrs)


@op('STFT')
def stft(g, name):
    n, f = g.int(8, 16), g.int(2, 8)
    x = g.new(F32, [g.int(1, 2), n, 1])
    step = g.add(np.array(g.int(1, 4), I64), const=True)
    if g.chance(0.5):
        g.node(name, [x, step, g.new(F32, [f], 0, 1), g.add(np.array(f, I64), const=True)], terms=16, onesided=g.pick([None, 0, 1]))
    else:
        g.node(name, [x, step, None, g.add(np.array(f, I64), const=True)], terms=16, onesided=g.pick([None, 0, 1]))


@op('MelWeightMatrix')
def mel(g, name):
    ins = [g.add(np.array(v, t), const=True) for v, t in
           ((g.int(2, 8), I64), (g.int(16, 64), I64), (8000, I64), (float(g.int(0, 200)), F32), (float(g.int(2000, 4000)), F32))]
    g.node(name, ins, terms=1, base=1e-5)


# ---- images ----
@op('AffineGrid')
def affine_grid(g, name):
    n, c = g.int(1, 2), g.int(1, 3)
    sizes = g.dims(g.pick([2, 2, 3]), 2, 4)
    k = len(sizes)
    g.node(name, [g.new(F32, [n, k, k + 1], -2, 2), g.add(np.array([n, c] + sizes, I64), const=True)], terms=4,
           align_corners=g.pick([None, 0, 1]))


@op('CenterCropPad')
def center_crop_pad(g, name):
    x = g.val((F32, I64), min_rank=1, empty=0, max_rank=4)
    if g.chance(0.5):
        axes = [int(a) for a in g.rng.permutation(x.rank)[:g.int(1, x.rank)]]
        g.node(name, [x, g.ints(g.dims(len(axes), 1, 7))], exact=True, axes=axes)
    else:
        g.node(name, [x, g.ints(g.dims(x.rank, 1, 7))], exact=True)


@op('Col2Im')
def col2im(g, name):
    n, c, h, w = g.int(1, 2), g.int(1, 2), g.int(3, 6), g.int(3, 6)
    kh, kw = g.int(1, 3), g.int(1, 3)
    st, dil, pads = [g.int(1, 2), g.int(1, 2)], [1, 1], [0] * 4
    if g.chance(0.3):
        dil = [g.int(1, 2) if (kh - 1) * 2 < h else 1, g.int(1, 2) if (kw - 1) * 2 < w else 1]
    if g.chance(0.4):
        pads = [g.int(0, 1) for _ in range(4)]
    oh = (h + pads[0] + pads[2] - dil[0] * (kh - 1) - 1) // st[0] + 1
    ow = (w + pads[1] + pads[3] - dil[1] * (kw - 1) - 1) // st[1] + 1
    if oh < 1 or ow < 1:
        raise Skip('size')
    x = g.new(F32, [n, c * kh * kw, oh * ow])
    g.node(name, [x, g.add(np.array([h, w], I64), const=True), g.add(np.array([kh, kw], I64), const=True)], terms=8,
           strides=st, dilations=dil, pads=pads)


@op('DeformConv')
def deform_conv(g, name):
    n, c, h, w, m = g.int(1, 2), g.int(1, 2), g.int(3, 5), g.int(3, 5), g.int(1, 3)
    k = [g.int(1, 3), g.int(1, 3)]
    st, pads = [g.int(1, 2), g.int(1, 2)], [g.int(0, 1) for _ in range(4)]
    oh = (h + pads[0] + pads[2] - k[0]) // st[0] + 1
    ow = (w + pads[1] + pads[3] - k[1]) // st[1] + 1
    x, wt = g.new(F32, [n, c, h, w]), g.new(F32, [m, c] + k)
    off = g.new(F32, [n, 2 * k[0] * k[1], oh, ow], -1, 1)
    bias = g.new(F32, [m]) if g.chance(0.5) else None
    mask = g.new(F32, [n, k[0] * k[1], oh, ow], 0, 1) if g.chance(0.5) else None
    g.node(name, [x, wt, off, bias, mask], terms=c * 9 * x.max_abs() * wt.max_abs(), base=1e-4, strides=st, pads=pads, kernel_shape=k)


@op('NonMaxSuppression')
def nms(g, name):
    b, n, c = g.int(1, 2), g.int(1, 6), g.int(1, 3)
    lo = g.rng.uniform(0, 3, (b, n, 2))
    boxes = np.concatenate([lo, lo + g.rng.uniform(0.5, 3, (b, n, 2))], 2).astype(F32)
    center = g.pick([None, 0, 1])
    scores = g.rng.permutation(b * c * n).reshape(b, c, n).astype(F32) / 32  # no two alike
    ins = [g.add(boxes, const=True), g.add(scores, const=True), g.add(np.array(g.int(1, 4), I64), const=True),
           g.add(np.array(g.pick([0.3, 0.5, 0.7]), F32), const=True) if g.chance(0.7) else None,
           g.add(np.array(g.pick([0.1, 0.33]), F32), const=True) if g.chance(0.5) else None]
    g.node(name, ins, exact=True, center_point_box=center)


# ---- newer ones ----
@op('CumProd')
def cum_prod(g, name):
    x = g.val((F32, F64), min_rank=1, lo=-2, hi=2)
    g.node(name, [x, g.add(np.array(g.axis(x.rank), I64), const=True)], terms=1, exclusive=g.pick([None, 0, 1]), reverse=g.pick([None, 0, 1]))


@op('BitCast')
def bit_cast(g, name):
    x = g.val((F32, I32, F64, I64, U8, I8), exact=True)
    to = {4: [1, 6, 12], 8: [11, 7, 13], 1: [2, 3]}[x.dtype.itemsize]
    g.node(name, [x], exact=True, to=g.pick(to))


# ---- com.microsoft ----
def ms(*names):
    return op(*[f'{MS}:{n}' for n in names])


@ms('Gelu', 'QuickGelu', 'FastGelu', 'BiasGelu')
def ms_gelu(g, name):
    name = name.split(':')[1]
    x = g.val((F32,), min_rank=1, empty=0)
    ins, attrs = [x], {}
    if name == 'BiasGelu' or name == 'FastGelu' and g.chance(0.5):
        ins.append(g.new(F32, [x.shape[-1]]))
    if name == 'QuickGelu' and g.chance(0.5):
        attrs['alpha'] = 1.0
    g.node(name, ins, domain=MS, terms=4, base=1e-4, **attrs)


@ms('FusedMatMul', 'TransposeMatMul')
def ms_matmul(g, name):
    name = name.split(':')[1]
    m, k, n = g.int(1, 4), g.int(1, 4), g.int(1, 4)
    ta, tb = g.pick([None, 0, 1]), g.pick([None, 0, 1])
    lead = g.dims(g.int(0, 2), 1, 3)
    more = {}
    sides = [lead + ([k, m] if ta else [m, k]), lead + ([n, k] if tb else [k, n])]
    if name == 'FusedMatMul' and lead and g.chance(0.3):
        # The rows stand in front of the batch: [m, batch, k], and [k, batch, m] transposed.
        for i, which in enumerate(('transBatchA', 'transBatchB')):
            if g.chance(0.6):
                side = sides[i]
                sides[i], more[which] = [side[-2]] + side[:-2] + side[-1:], 1
    a, b = (g.val((F32,), dims=side, min_rank=2, max_rank=5) for side in sides)
    g.node(name, [a, b], domain=MS, terms=k * a.max_abs() * b.max_abs(), transA=ta, transB=tb, alpha=g.pick([None, 0.5]), **more)


@ms('FusedGemm')
def ms_gemm(g, name):
    m, k, n = g.int(1, 5), g.int(1, 5), g.int(1, 5)
    a, b = g.new(F32, [m, k]), g.new(F32, [k, n])
    c = g.new(F32, g.pick([[m, n], [n]])) if g.chance(0.6) else None
    g.node('FusedGemm', [a, b, c], domain=MS, terms=k * a.max_abs() * b.max_abs() + 4,
           activation=g.pick(['Relu', 'Sigmoid', 'Tanh']), alpha=g.pick([None, 0.5]), beta=g.pick([None, 0.5]))


@ms('FusedConv')
def ms_conv(g, name):
    group = g.pick([1, 1, 2])
    x = g.new(F32, [g.rows(1, 2), group * g.int(1, 3)] + [g.int(2, 6) for _ in range(g.pick([1, 2, 2, 3]))])
    kernel, attrs = window(g, x.shape[2:])
    w = g.new(F32, [group * g.int(1, 3), x.shape[1] // group] + kernel)
    act = g.pick(['Relu', 'Sigmoid', 'Tanh', 'LeakyRelu', 'Clip', 'HardSigmoid'])
    if act == 'HardSigmoid':
        attrs['activation_params'] = [0.25, 0.5]
    if act == 'LeakyRelu':
        attrs['activation_params'] = [0.125]
    if act == 'Clip':
        attrs['activation_params'] = [-1.0, 2.0]
    g.node('FusedConv', [x, w, g.new(F32, [w.shape[0]]) if g.chance(0.6) else None], domain=MS,
           terms=w.size * x.max_abs() * w.max_abs(), base=1e-4, activation=act, group=group, kernel_shape=kernel, **attrs)


@ms('Inverse')
def ms_inverse(g, name):
    n = g.int(1, 3)
    a = g.random(F32, g.dims(g.int(0, 1)) + [n, n]) / 8 + np.eye(n, dtype=F32) * 2
    g.node('Inverse', [g.add(a.astype(F32))], domain=MS, terms=4, base=1e-4)


@ms('GatherND')
def ms_gather_nd(g, name):
    x = g.new(g.pick([F32, I64, I32, F64]), g.dims(g.int(1, 3), 1, 4))
    k = g.int(1, x.rank)
    at = np.stack([g.rng.integers(0, d, 3) for d in x.shape[:k]], -1)
    g.node('GatherND', [x, g.add(at.astype(g.pick([I64, I32])))], domain=MS, exact=True)


@ms('RotaryEmbedding')
def ms_rotary(g, name):
    b, s, h, d = g.rows(1, 2), g.int(1, 4), g.int(1, 3), 2 * g.int(1, 4)
    attrs, half = dict(interleaved=g.pick([None, 0, 1])), d // 2
    x = g.new(F32, [b, h, s, d] if g.chance(0.5) else [b, s, h * d])
    if x.rank == 3 and g.chance(0.4):  # a part of each head
        half = g.int(1, d // 2)
        attrs.update(num_heads=h, rotary_embedding_dim=2 * half)
    at = g.add(g.rng.integers(0, 6, [b, s], dtype=I64)) if g.chance(0.6) else g.add(np.array([g.int(0, 6)], I64))
    g.node('RotaryEmbedding', [x, at] + [g.new(F32, [10, half], -1, 1) for _ in range(2)], domain=MS, terms=4, **attrs)
