#!/usr/bin/env python3
"""Writes fused.json: fused operators on floats, and on weights of a few bits."""
import math

import numpy as np

from cases import case, given, known, rand, uniform, value_of, write


def values(name, inputs):
    return [value_of(name, i, t) for i, t in enumerate(inputs)]


erf = np.vectorize(math.erf)


def gelu(x):
    return 0.5 * x * (1 + erf(x / np.sqrt(2)))


# ---- FusedConv ----
x, w, b, z = rand(2, 3, 6, 5), rand(4, 3, 3, 3), rand(4), rand(2, 4, 6, 5)
pads = {'pads': [1, 1, 1, 1]}
case('conv-plain', 'FusedConv', [x, w], attrs=pads)
for act, params in [('Relu', None), ('Tanh', None), ('Sigmoid', None), ('LeakyRelu', [0.1]), ('Clip', [-0.5, 0.75]),
                    ('HardSigmoid', [0.25, 0.4])]:
    attrs = {**pads, 'activation': act}
    if params:
        attrs['activation_params'] = params
    case('conv-%s' % act.lower(), 'FusedConv', [x, w, b], attrs=attrs)
case('conv-z', 'FusedConv', [x, w, b, z], attrs={**pads, 'activation': 'Relu'})
case('conv-z-no-bias', 'FusedConv', [x, w, None, z], attrs=pads)
case('conv-group-1d', 'FusedConv', [rand(1, 4, 9), rand(6, 2, 3), rand(6)],
     attrs={'group': 2, 'strides': [2], 'dilations': [2], 'pads': [2, 1], 'activation': 'Relu'})
case('conv-gelu', 'FusedConv', [x, w, b], attrs={'activation': 'Gelu'}, refused="('Gelu')")
case('conv-params-missing', 'FusedConv', [x, w, b], attrs={'activation': 'Clip', 'activation_params': [1.0]},
     refused='activation_params')
case('conv-z-shape', 'FusedConv', [x, w, b, rand(2, 4, 6, 4)], attrs=pads, refused="has shape 2x4x6x4, not 2x4x6x5")

# ---- FusedGemm ----
for act, attrs in [('Relu', {}), ('Tanh', {}), ('Sigmoid', {}), ('Softplus', {}), ('Softsign', {}),
                   ('LeakyRelu', {'activation_alpha': 0.2}), ('Elu', {'activation_alpha': 0.7}),
                   ('ThresholdedRelu', {'activation_alpha': 0.3}),
                   ('HardSigmoid', {'activation_alpha': 0.25, 'activation_beta': 0.4}),
                   ('Selu', {'activation_alpha': 1.5, 'activation_gamma': 1.25}),
                   ('ParametricSoftplus', {'activation_alpha': 0.5, 'activation_beta': 2.0}),
                   ('ScaledTanh', {'activation_alpha': 0.5, 'activation_beta': 2.0})]:
    case('gemm-%s' % act.lower(), 'FusedGemm', [rand(3, 4), rand(4, 5), rand(5)], attrs={'activation': act, **attrs})
case('gemm-trans', 'FusedGemm', [rand(4, 3), rand(5, 4), rand(3, 1)],
     attrs={'transA': 1, 'transB': 1, 'alpha': 0.5, 'beta': 2.0, 'activation': 'Relu'})
case('gemm-no-c', 'FusedGemm', [rand(3, 4), rand(4, 5)], attrs={'activation': 'Relu'})
case('gemm-unknown', 'FusedGemm', [rand(3, 4), rand(4, 5)], attrs={'activation': 'Clip'}, refused="('Clip')")

# ---- FusedMatMul ----
case('matmul', 'FusedMatMul', [rand(3, 4), rand(4, 5)], attrs={'alpha': 0.125})
case('matmul-trans', 'FusedMatMul', [rand(2, 4, 3), rand(2, 5, 4)], attrs={'transA': 1, 'transB': 1, 'alpha': -2.0})
case('matmul-attention', 'FusedMatMul', [rand(2, 3, 4, 6), rand(2, 3, 5, 6)], attrs={'transB': 1, 'alpha': 0.5})
case('matmul-broadcast', 'FusedMatMul', [rand(2, 1, 4, 6), rand(3, 5, 6)], attrs={'transB': 1})
case('matmul-vector-a', 'FusedMatMul', [rand(4), rand(2, 4, 5)], attrs={'transA': 1})
case('matmul-vector-b', 'FusedMatMul', [rand(2, 5, 4), rand(4)], attrs={'transB': 1})
# ONNX Runtime folds the batches of A into its rows although A is transposed, which numpy does not
ins = [rand(2, 4, 5), rand(4)]
a, b = values('matmul-trans-vector-b', ins)
known('matmul-trans-vector-b', 'FusedMatMul', ins, [np.einsum('bki,k->bi', a, b)], attrs={'transA': 1})
case('matmul-batch-a', 'FusedMatMul', [rand(4, 2, 3, 6), rand(2, 3, 6, 5)], attrs={'transBatchA': 1})
case('matmul-batch-b', 'FusedMatMul', [rand(2, 3, 4, 6), rand(6, 2, 3, 5)], attrs={'transBatchB': 1})
case('matmul-batch-trans', 'FusedMatMul', [rand(6, 2, 3, 4), rand(5, 2, 3, 6)],
     attrs={'transA': 1, 'transBatchA': 1, 'transB': 1, 'transBatchB': 1})
case('matmul-double', 'FusedMatMul', [rand(3, 4, dtype='float64'), rand(5, 4, dtype='float64')], attrs={'transB': 1})
case('matmul-empty', 'FusedMatMul', [rand(3, 0), rand(5, 0)], attrs={'transB': 1})
case('matmul-bad', 'FusedMatMul', [rand(3, 4), rand(4, 5)], attrs={'transB': 1}, refused='do not multiply')
case('transpose-matmul', 'TransposeMatMul', [rand(2, 4, 3), rand(2, 4, 5)], attrs={'transA': 1, 'alpha': 3.0})

# ---- Gelu and its kin; FastGelu in ONNX Runtime computes tanh by a polynomial ----
wide = rand(2, 3, 8, lo=-6.0, hi=6.0)
case('gelu', 'Gelu', [wide])
case('bias-gelu', 'BiasGelu', [wide, rand(8)])
case('fast-gelu', 'FastGelu', [wide])
case('fast-gelu-bias', 'FastGelu', [wide, rand(8)])
case('quick-gelu', 'QuickGelu', [wide])
case('quick-gelu-alpha', 'QuickGelu', [wide], attrs={'alpha': -0.5})
case('bias-gelu-shape', 'BiasGelu', [wide, rand(2, 8)], refused='has shape 2x8, not 8')
ins = [rand(2, 3, 8, lo=-3.0, hi=3.0), rand(8)]
x, b = values('split-gelu', ins)
s = x.astype(np.float64) + b
known('split-gelu', 'BiasSplitGelu', ins, [(s[..., :4] * gelu(s[..., 4:])).astype(np.float32)])
ins = [rand(2, 3, 4), rand(4), rand(2, 3, 4)]
x, b, z = values('bias-add', ins)
known('bias-add', 'BiasAdd', ins, [x + b + z])
for name, bias, axis, inner in [('bias-softmax-inner', (2, 1, 1, 5), 3, 1), ('bias-softmax-outer', (4, 5), 3, 0),
                                ('bias-softmax-rows', (3, 4, 5), 2, 0)]:
    ins = [rand(2, 3, 4, 5, lo=-4.0, hi=4.0), rand(*bias, lo=-4.0, hi=4.0)]
    x, b = values(name, ins)
    rows = (x.astype(np.float64) + b).reshape(int(np.prod(x.shape[:axis])), -1)
    e = np.exp(rows - rows.max(1, keepdims=True))
    known(name, 'BiasSoftmax', ins, [(e / e.sum(1, keepdims=True)).reshape(x.shape).astype(np.float32)],
          attrs={'axis': axis, 'is_inner_broadcast': inner})

# ---- the rest ----
case('inverse', 'Inverse', [rand(2, 3, 3)], rtol=1e-3, atol=1e-4)
case('inverse-double', 'Inverse', [rand(5, 5, dtype='float64')])
case('inverse-pivot', 'Inverse', [given([[0, 2], [1, 0]], 'float32')])
case('inverse-none', 'Inverse', [given([[1, 2], [2, 4]], 'float32')], fails='has no inverse')
case('inverse-shape', 'Inverse', [rand(2, 3)], refused='not square')
case('gather-nd', 'GatherND', [rand(2, 3, 4), given([[0, 1], [-1, 2]], 'int64')])
case('gather-nd-outside', 'GatherND', [rand(2, 3), given([[2]], 'int64')], fails='outside')

# ---- MatMulNBits ----


def nbits(name, n, k, block, bits, rows, zeros=None, g_idx=None, bias=False, flat=False, dtype='float32', **more):
    blocks = -(-k // block)
    ins = [rand(*rows, k, dtype=dtype),
           rand(n, blocks, block * bits // 8, lo=0, hi=255, dtype='uint8', const=True),
           rand(*((n * blocks,) if flat else (n, blocks)), lo=0.02, hi=0.1, dtype=dtype, const=True),
           None, None, None]
    if zeros == 'packed':
        row = -(-blocks * bits // 8)
        ins[3] = rand(*((n * row,) if flat else (n, row)), lo=0, hi=255, dtype='uint8', const=True)
    elif zeros == 'float':
        ins[3] = rand(n, blocks, lo=2.0, hi=12.0, dtype=dtype, const=True)
    if g_idx is not None:
        ins[4] = given(g_idx, 'int32', const=True)
    if bias:
        ins[5] = rand(n, dtype=dtype, const=True)
    while ins[-1] is None:
        ins.pop()
    attrs = {'K': k, 'N': n, 'block_size': block, 'bits': bits, **more.pop('attrs', {})}
    case(name, 'MatMulNBits', ins, attrs=attrs, **more)


nbits('nbits-4', 5, 64, 32, 4, (3,))
nbits('nbits-4-zeros', 5, 96, 32, 4, (2, 3), zeros='packed')
nbits('nbits-4-one-row', 7, 128, 16, 4, (1,), zeros='packed')
nbits('nbits-4-tail', 3, 41, 16, 4, (2,), zeros='packed', bias=True)
nbits('nbits-4-flat', 3, 48, 16, 4, (2,), zeros='packed', flat=True)
nbits('nbits-4-float-zeros', 3, 64, 32, 4, (2,), zeros='float')
nbits('nbits-8', 4, 64, 32, 8, (3,))
nbits('nbits-8-zeros', 4, 80, 32, 8, (3,), zeros='packed')
nbits('nbits-2', 4, 64, 32, 2, (3,))
nbits('nbits-2-zeros', 4, 96, 16, 2, (3,), zeros='packed')
groups = [(5 * i) % 3 for i in range(48)]
nbits('nbits-g-idx', 3, 48, 16, 4, (2,), g_idx=groups)
nbits('nbits-g-idx-float-zeros', 3, 48, 16, 4, (2,), zeros='float', g_idx=groups)
# beside g_idx ONNX Runtime's CPU kernel does not read packed zero points; so by the definition
name = 'nbits-g-idx-zeros'
ins = [rand(2, 48), rand(3, 3, 8, lo=0, hi=255, dtype='uint8', const=True), rand(3, 3, const=True),
       rand(3, 2, lo=0, hi=255, dtype='uint8', const=True), given(groups, const=True)]
a, codes, scales, zeros, g = values(name, ins)
q, z = (np.stack([p & 15, p >> 4], -1).reshape(3, -1).astype(np.float32) for p in (codes, zeros))
known(name, 'MatMulNBits', ins, [(a @ ((q - z[:, g]) * scales[:, g]).T).astype(np.float32)],
      attrs={'K': 48, 'N': 3, 'block_size': 16})
nbits('nbits-half', 3, 64, 32, 4, (2,), dtype='float16', rtol=5e-3, atol=5e-3)
# int8 activations inside: what the definition says within the error of 8 bits
nbits('nbits-accuracy-4', 6, 64, 32, 4, (2,), attrs={'accuracy_level': 4}, rtol=2e-2, atol=2e-2)
nbits('nbits-bits-3', 3, 64, 32, 3, (2,), refused='bits is not 2, 4 or 8')
nbits('nbits-block', 3, 64, 24, 4, (2,), refused='block_size')
nbits('nbits-prepacked', 3, 64, 32, 4, (2,), attrs={'weight_prepacked': 1}, refused='weight_prepacked')
nbits('nbits-g-idx-outside', 3, 32, 16, 4, (2,), g_idx=[0] * 31 + [2], fails='g_idx[31] is 2')
case('nbits-b-shape', 'MatMulNBits', [rand(2, 64), rand(3, 2, 15, lo=0, hi=255, dtype='uint8'), rand(3, 2)],
     attrs={'K': 64, 'N': 3, 'block_size': 32}, refused='has shape 3x2x15, not 3x2x16')

# ---- MatMulBnb4 ----
for name, kind in [('fp4', 0), ('nf4', 1)]:
    ins = [rand(2, 3, 32), rand(80, lo=0, hi=255, dtype='uint8', const=True), rand(10, lo=0.1, hi=2.0, const=True)]
    case('bnb4-' + name, 'MatMulBnb4', ins, attrs={'K': 32, 'N': 5, 'block_size': 16, 'quant_type': kind})
case('bnb4-tail', 'MatMulBnb4', [rand(2, 21), rand(32, lo=0, hi=255, dtype='uint8', const=True),
                                 rand(4, lo=0.1, hi=2.0, const=True)],
     attrs={'K': 21, 'N': 3, 'block_size': 16, 'quant_type': 1})
# ONNX Runtime's CPU kernel multiplies by the transposed weights whatever transB says; so by the definition
FP4 = np.array([0, 0.0625, 8, 12, 4, 6, 2, 3, -0.0, -0.0625, -8, -12, -4, -6, -2, -3]) / 12
ins = [rand(2, 5), rand(80, lo=0, hi=255, dtype='uint8', const=True), rand(10, lo=0.1, hi=2.0, const=True)]
a, codes, absmax = values('bnb4-forward', ins)
w = FP4[np.stack([codes >> 4, codes & 15], -1).reshape(-1)] * np.repeat(absmax, 16)
known('bnb4-forward', 'MatMulBnb4', ins, [(a @ w.reshape(5, 32)).astype(np.float32)],
      attrs={'K': 32, 'N': 5, 'block_size': 16, 'quant_type': 0, 'transB': 0})
case('bnb4-type', 'MatMulBnb4', [rand(2, 16), rand(8, lo=0, hi=255, dtype='uint8', const=True), rand(1, const=True)],
     attrs={'K': 16, 'N': 1, 'block_size': 16, 'quant_type': 2}, refused='quant_type')

# ---- GatherBlockQuantized ----
ids = given([[0, 3], [-1, 2]], 'int64')
for bits in 2, 4, 8:
    per = 8 // bits
    base = [rand(5, 48 // per, lo=0, hi=255, dtype='uint8', const=True), ids,
            rand(5, 3, lo=0.1, hi=1.0, const=True)]
    attrs = {'bits': bits, 'block_size': 16}
    case('gather-blocks-%d' % bits, 'GatherBlockQuantized', base, attrs=attrs)
    case('gather-blocks-%d-zeros' % bits, 'GatherBlockQuantized',
         base + [rand(5, -(-3 // per), lo=0, hi=255, dtype='uint8', const=True)], attrs=attrs)
for dtype, lo in ('int4', -8), ('uint4', 0):
    def four(*shape):
        return given(uniform('%s%s' % (dtype, shape), 'int8', shape, lo, lo + 15), dtype, const=True)
    case('gather-blocks-%s' % dtype, 'GatherBlockQuantized',
         [four(3, 32, 2), given([2, -3, 1], 'int32'), rand(3, 2, 2, lo=0.1, hi=1.0, const=True)],
         attrs={'block_size': 16})
    case('gather-blocks-%s-axes' % dtype, 'GatherBlockQuantized',
         [four(20, 3, 4), given([2, 0], 'int32'), rand(2, 3, 4, lo=0.1, hi=1.0, const=True), four(2, 3, 4)],
         attrs={'block_size': 16, 'quantize_axis': 0, 'gather_axis': 2})
case('gather-blocks-outside', 'GatherBlockQuantized',
     [rand(5, 8, lo=0, hi=255, dtype='uint8', const=True), given([4, 5, -6], 'int64'), rand(5, 1, const=True)],
     attrs={'block_size': 16})
case('gather-blocks-axis', 'GatherBlockQuantized',
     [rand(5, 8, lo=0, hi=255, dtype='uint8', const=True), ids, rand(5, 1, const=True)],
     attrs={'block_size': 16, 'gather_axis': 1}, refused='first axis')

write('fused.json')
