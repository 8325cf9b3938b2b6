#!/usr/bin/env python3
"""Writes quant.json: operators on bytes, standard and com.microsoft.

Without "step" an integer output must be ONNX Runtime's bit for bit. "step": 1
stands where it computes another function than the definition by a small error
(sigmoid and softmax by polynomials and tables), or rounds a sum in another
order (QLinearAdd of a broadcast operand).

Weights of int8 stay in [-64, 63]: on CPUs without VNNI ONNX Runtime's product
of uint8 and int8 adds pairs of products in 16 bits, which saturate beyond.
"""
import numpy as np

from cases import case, given, known, rand, value_of, write

RANGE = {'uint8': (0, 255), 'int8': (-128, 127)}


def byte(*shape, dtype='uint8', weights=False, const=False):
    lo, hi = (-64, 63) if weights and dtype == 'int8' else RANGE[dtype]
    return rand(*shape, lo=lo, hi=hi, dtype=dtype, const=const)


def scale(v, const=False):
    return given(v, 'float32', const)


def zero(v, dtype='uint8', const=False):
    return given(v, dtype, const)


def params(s, z, dtype='uint8'):
    return [scale(s), zero(z, dtype)]


# ---- the standard operators ----
std = {'domain': ''}
case('dynamic-quantize', 'DynamicQuantizeLinear', [rand(3, 7, lo=-2.0, hi=5.0)], n_out=3, **std)
case('dynamic-quantize-positive', 'DynamicQuantizeLinear', [rand(9, lo=1.0, hi=2.0)], n_out=3, **std)
case('dynamic-quantize-zeros', 'DynamicQuantizeLinear', [given(np.zeros(4), 'float32')], n_out=3, **std)
case('dynamic-quantize-negative', 'DynamicQuantizeLinear', [rand(9, lo=-3.0, hi=-1.0)], n_out=3, **std)
for dtype in 'uint8', 'int8':
    case('quantize-%s' % dtype, 'QuantizeLinear', [rand(5, 9, lo=-9.0, hi=9.0), *params(0.05, 3, dtype)], **std)
    case('dequantize-%s' % dtype, 'DequantizeLinear', [byte(5, 9, dtype=dtype), *params(0.05, 3, dtype)], **std)
case('quantize-ties', 'QuantizeLinear', [given(np.arange(-20, 20) * 0.25, 'float32'), *params(0.5, 101)], **std)
for a, b in ('uint8', 'uint8'), ('uint8', 'int8'), ('int8', 'int8'):
    case('matmul-integer-%s-%s' % (a, b), 'MatMulInteger',
         [byte(2, 3, 9, dtype=a), byte(9, 70, dtype=b, weights=True), zero(7, a), zero(-5 if b == 'int8' else 100, b)],
         **std)
case('matmul-integer-columns', 'MatMulInteger',
     [byte(3, 9), byte(9, 4, dtype='int8', weights=True), zero(7), zero([1, -2, 3, 0], 'int8')], **std)
for a, b in ('uint8', 'uint8'), ('uint8', 'int8'), ('int8', 'int8'):
    case('qlinear-matmul-%s-%s' % (a, b), 'QLinearMatMul',
         [byte(2, 3, 9, dtype=a), *params(0.03, 10, a), byte(2, 9, 5, dtype=b, weights=True), *params(0.02, 4, b),
          *params(0.06, 20, a)], **std)
case('qlinear-matmul-columns', 'QLinearMatMul',
     [byte(3, 9), *params(0.03, 10), byte(9, 4, dtype='int8', weights=True),
      *params([0.02, 0.05, 0.01, 0.03], [0, 1, -2, 3], 'int8'), *params(0.06, 20)], **std)
for a, w in ('uint8', 'uint8'), ('uint8', 'int8'):
    case('conv-integer-%s-%s' % (a, w), 'ConvInteger',
         [byte(2, 4, 6, 5, dtype=a), byte(6, 2, 3, 3, dtype=w, weights=True), zero(11, a), zero(3, w)],
         attrs={'group': 2, 'pads': [1, 0, 1, 2], 'strides': [2, 1]}, **std)
for a, w in ('uint8', 'uint8'), ('uint8', 'int8'), ('int8', 'int8'):
    case('qlinear-conv-%s-%s' % (a, w), 'QLinearConv',
         [byte(2, 3, 6, 5, dtype=a), *params(0.03, 12, a), byte(4, 3, 3, 3, dtype=w, weights=True),
          *params(0.02, 0, w), *params(0.1, 17, a), rand(4, lo=-900, hi=900, dtype='int32')],
         attrs={'pads': [1, 1, 1, 1], 'dilations': [1, 2]}, **std)
case('qlinear-conv-channels', 'QLinearConv',
     [byte(1, 4, 5, 5), *params(0.03, 12), byte(4, 1, 3, 3, dtype='int8', weights=True),
      *params([0.02, 0.01, 0.03, 0.05], [0, 0, 0, 0], 'int8'), *params(0.1, 17)], attrs={'group': 4}, **std)
case('contrib-qlinear-conv', 'QLinearConv',
     [byte(2, 3, 6, 5), *params(0.03, 12), byte(4, 3, 3, 3), *params(0.02, 120), *params(0.1, 17)])
case('contrib-qlinear-conv-last', 'QLinearConv',
     [byte(2, 6, 5, 3), *params(0.03, 12), byte(4, 3, 3, 3), *params(0.02, 120), *params(0.1, 17)],
     attrs={'channels_last': 1}, refused='channels_last')

# ---- com.microsoft QuantizeLinear, DequantizeLinear ----
for dtype, z in ('uint8', 100), ('int8', -7), ('uint16', 30000), ('int16', -300):
    case('contrib-quantize-%s' % dtype, 'QuantizeLinear', [rand(4, 9, lo=-9.0, hi=9.0), *params(0.05, z, dtype)])
    if dtype in RANGE:
        case('contrib-dequantize-%s' % dtype, 'DequantizeLinear', [byte(4, 9, dtype=dtype), *params(0.05, z, dtype)])
case('contrib-quantize-default', 'QuantizeLinear', [rand(4, 9, lo=-1.0, hi=9.0), scale(0.05)])
case('contrib-quantize-axis', 'QuantizeLinear',
     [rand(4, 3, lo=-9.0, hi=9.0), *params([0.1, 0.2, 0.3, 0.4], [1, 2, 3, 4])], attrs={'axis': 0})
case('contrib-dequantize-axis', 'DequantizeLinear',
     [byte(4, 3), *params([0.1, 0.2, 0.3], [1, 2, 3])], attrs={'axis': -1})
case('contrib-dequantize-int32', 'DequantizeLinear', [rand(7, lo=-99999, hi=99999, dtype='int32'), scale(0.25)])
case('contrib-quantize-no-axis', 'QuantizeLinear', [rand(4, 3), *params([0.1, 0.2, 0.3], [1, 2, 3])],
     refused='must have one element')

# ---- products ----
for b in 'uint8', 'int8':
    z = 5 if b == 'int8' else 120
    case('dynamic-matmul-' + b, 'DynamicQuantizeMatMul',
         [rand(2, 3, 9, lo=-1.0, hi=2.0), byte(9, 70, dtype=b, weights=True), *params(0.02, z, b), rand(70)])
    case('dynamic-matmul-columns-' + b, 'DynamicQuantizeMatMul',
         [rand(3, 9), byte(9, 3, dtype=b, weights=True), *params([0.02, 0.03, 0.01], [z, z + 1, z + 2], b)])
case('dynamic-matmul-no-zero', 'DynamicQuantizeMatMul',
     [rand(3, 9), byte(9, 4, dtype='int8', weights=True), scale(0.02)])
case('dynamic-matmul-nothing', 'DynamicQuantizeMatMul',
     [given(np.zeros((2, 9)), 'float32'), byte(9, 4), scale(0.02), zero(3), rand(4)])
case('dynamic-matmul-batches', 'DynamicQuantizeMatMul', [rand(2, 3, 9), byte(2, 9, 4), scale(0.02), zero(100)])
for a, b in ('uint8', 'uint8'), ('uint8', 'int8'), ('int8', 'int8'):
    case('to-float-%s-%s' % (a, b), 'MatMulIntegerToFloat',
         [byte(2, 3, 9, dtype=a), byte(9, 5, dtype=b, weights=True), scale(0.03), scale(0.02), zero(9, a), zero(4, b),
          rand(5)])
case('to-float-columns', 'MatMulIntegerToFloat',
     [byte(3, 9), byte(9, 3), scale(0.03), scale([0.02, 0.03, 0.01]), zero(9), zero([4, 5, 6])])
case('to-float-swapped', 'MatMulIntegerToFloat', [byte(3, 9), byte(9, 3), scale([0.02, 0.03, 0.01]), scale(0.03)])
case('to-float-scale-shape', 'MatMulIntegerToFloat', [byte(3, 9), byte(9, 3), scale([0.02, 0.03]), scale(0.03)],
     refused='neither one value nor a list of 3')
for a, b in ('uint8', 'uint8'), ('uint8', 'int8'), ('int8', 'int8'):
    qa, qb = [byte(3, 9, dtype=a), *params(0.03, 9, a)], [byte(9, 5, dtype=b, weights=True), *params(0.02, 4, b)]
    case('gemm-%s-%s' % (a, b), 'QGemm', qa + qb + [rand(5, lo=-999, hi=999, dtype='int32'), *params(0.07, 30, a)])
    case('gemm-float-%s-%s' % (a, b), 'QGemm', qa + qb + [rand(3, 5, lo=-999, hi=999, dtype='int32')])
case('gemm-trans', 'QGemm',
     [byte(9, 3), *params(0.03, 9), byte(5, 9, dtype='int8', weights=True),
      *params([0.02, 0.01, 0.03, 0.04, 0.05], [0, 1, 2, 3, -4], 'int8'), None, *params(0.07, 30)],
     attrs={'transA': 1, 'transB': 1, 'alpha': 0.75})
case('gemm-half-output', 'QGemm', [byte(3, 9), *params(0.03, 9), byte(9, 5), *params(0.02, 4), None, scale(0.07)],
     refused='go together')

# ---- QAttention ----


def attention(name, w='int8', columns=False, mask=None, past=False, n_out=1, **attrs):
    z = 0 if w == 'int8' else 130
    ins = [byte(2, 3, 8), byte(8, 24, dtype=w, weights=True), rand(24), scale(0.02),
           rand(24, lo=0.01, hi=0.03) if columns else scale(0.02), mask and given(mask), zero(100),
           zero([z] * 24 if columns else z, w), rand(2, 2, 2, 4, 4) if past else None]
    while ins[-1] is None:
        ins.pop()
    case('attention-' + name, 'QAttention', ins, n_out=n_out, attrs={'num_heads': 2, **attrs})


attention('plain')
attention('uint8', w='uint8')
attention('columns', columns=True)
attention('lengths', mask=[2, 3])
attention('mask', mask=[[1, 1, 0], [1, 0, 0]])
attention('causal', unidirectional=1)
attention('past', mask=[[1] * 7, [1, 0, 1, 1, 1, 1, 0]], past=True, n_out=2, unidirectional=1)
attention('scale', scale=0.3)

# ---- elementwise ----
for dtype in 'uint8', 'int8':
    lo = RANGE[dtype][0]
    z = [lo + 100, lo + 130, lo + 128]
    for name, sa, sb, sc in ('', 0.031, 0.047, 0.06), ('-ties', 0.25, 0.5, 1.0), ('-tenths', 0.1, 0.3, 0.2):
        case('add-%s%s' % (dtype, name), 'QLinearAdd',
             [byte(5, 77, dtype=dtype), *params(sa, z[0], dtype), byte(5, 77, dtype=dtype), *params(sb, z[1], dtype),
              *params(sc, z[2], dtype)])
        case('mul-%s%s' % (dtype, name), 'QLinearMul',
             [byte(5, 77, dtype=dtype), *params(sa, z[0], dtype), byte(5, 77, dtype=dtype), *params(sb, z[1], dtype),
              *params(sc * 10, z[2], dtype)])
    case('leaky-relu-' + dtype, 'QLinearLeakyRelu',
         [byte(9, 30, dtype=dtype), *params(0.05, z[0], dtype), *params(0.04, z[1], dtype)], attrs={'alpha': 0.2})
    case('sigmoid-' + dtype, 'QLinearSigmoid',
         [byte(9, 30, dtype=dtype), *params(0.05, z[0], dtype), *params(1 / 256, lo, dtype)], step=1)
    for opset, axis in (13, -1), (13, 1), (11, 1):
        case('softmax-%s-%d-axis%d' % (dtype, opset, axis), 'QLinearSoftmax',
             [byte(2, 5, 6, dtype=dtype), *params(0.05, z[0], dtype), *params(1 / 256, lo, dtype)],
             attrs={'axis': axis, 'opset': opset}, step=1)
    case('where-' + dtype, 'QLinearWhere',
         [rand(3, 1, 5, lo=0, hi=1, dtype='bool'), byte(3, 4, 5, dtype=dtype), *params(0.05, z[0], dtype),
          byte(4, 5, dtype=dtype), *params(0.04, z[1], dtype), *params(0.045, z[2], dtype)])
    case('concat-' + dtype, 'QLinearConcat',
         [*params(0.05, z[0], dtype), byte(2, 3, 4, dtype=dtype), *params(0.05, z[0], dtype),
          byte(2, 1, 4, dtype=dtype), *params(0.03, z[1], dtype), byte(2, 2, 4, dtype=dtype),
          *params(0.08, z[2], dtype)], attrs={'axis': 1})
case('add-broadcast', 'QLinearAdd',
     [byte(3, 1, 5), *params(0.031, 100), byte(4, 1), *params(0.047, 130), *params(0.06, 128)], step=1)
case('mul-broadcast', 'QLinearMul',
     [byte(3, 4, 5), *params(0.031, 100), byte(1), *params(0.047, 130), *params(0.6, 128)])
# ONNX Runtime's type inference does not let them be absent, though its schema does
ins = [byte(4, 5), scale(0.03), None, byte(4, 5), scale(0.02), None, scale(0.06)]
a, b = (value_of('add-no-zeros', i, ins[i]).astype(np.float64) for i in (0, 3))
known('add-no-zeros', 'QLinearAdd', ins, [np.clip(np.rint(a * 0.5 + b / 3), 0, 255).astype(np.uint8)], step=1)
case('add-saturates', 'QLinearAdd',
     [byte(4, 50), *params(0.5, 0), byte(4, 50), *params(0.5, 255), *params(0.1, 128)])
case('concat-inputs', 'QLinearConcat', [*params(0.05, 3), byte(2, 3), *params(0.05, 3), byte(2, 3)],
     attrs={'axis': 1}, refused='threes')
case('concat-shapes', 'QLinearConcat',
     [*params(0.05, 3), byte(2, 3), *params(0.05, 3), byte(3, 3), *params(0.05, 3)], attrs={'axis': 1},
     refused='do not join')
case('add-types', 'QLinearAdd',
     [byte(4), *params(0.1, 1), byte(4, dtype='int8'), *params(0.1, 1, 'int8'), *params(0.1, 1)], refused='differ in type')
case('add-scale', 'QLinearAdd', [byte(4), scale([0.1, 0.2]), None, byte(4), scale(0.1), None, scale(0.1)],
     refused='must have one element')

# ---- pools ----
for dtype in 'uint8', 'int8':
    lo = RANGE[dtype][0]
    p = [*params(0.05, lo + 100, dtype), *params(0.03, lo + 120, dtype)]
    case('global-pool-' + dtype, 'QLinearGlobalAveragePool', [byte(2, 5, 7, 6, dtype=dtype), *p])
    case('global-pool-last-' + dtype, 'QLinearGlobalAveragePool', [byte(2, 7, 6, 5, dtype=dtype), *p],
         attrs={'channels_last': 1})
    case('average-pool-' + dtype, 'QLinearAveragePool', [byte(2, 3, 7, 6, dtype=dtype), *p],
         attrs={'kernel_shape': [3, 2], 'pads': [1, 0, 1, 1], 'strides': [2, 1]})
    case('average-pool-include-' + dtype, 'QLinearAveragePool', [byte(2, 3, 7, 6, dtype=dtype), *p],
         attrs={'kernel_shape': [3, 3], 'pads': [1, 1, 1, 1], 'strides': [2, 2], 'count_include_pad': 1})
    case('average-pool-last-' + dtype, 'QLinearAveragePool', [byte(2, 7, 6, 3, dtype=dtype), *p],
         attrs={'kernel_shape': [3, 2], 'strides': [2, 2], 'pads': [0, 1, 1, 0], 'channels_last': 1})
    case('max-pool-last-' + dtype, 'NhwcMaxPool', [byte(2, 7, 6, 3, dtype=dtype)],
         attrs={'kernel_shape': [3, 2], 'strides': [2, 2], 'pads': [1, 0, 1, 1]})
# One window that is the whole plane, with means that are ties: as a global pool.
for z in 6, 7:
    ins = [given([[[3, 4], [1, 9], [0, 7], [5, 5]]], 'uint8'), *params(0.25, 9), *params(0.25, z)]
    case('average-pool-whole-%d' % z, 'QLinearAveragePool', ins, attrs={'kernel_shape': [2]})
    case('average-pool-halves-%d' % z, 'QLinearAveragePool', [given([[[3, 4, 0, 1]]], 'uint8'), *ins[1:]],
         attrs={'kernel_shape': [2], 'strides': [2]})
case('average-pool-1d', 'QLinearAveragePool', [byte(2, 3, 9), *params(0.05, 100), *params(0.03, 120)],
     attrs={'kernel_shape': [3], 'strides': [2]})
case('average-pool-3d', 'QLinearAveragePool', [byte(1, 2, 4, 5, 3), *params(0.05, 100), *params(0.03, 120)],
     attrs={'kernel_shape': [2, 2, 2], 'ceil_mode': 1, 'strides': [2, 2, 2]})
case('max-pool-dilated', 'NhwcMaxPool', [byte(1, 7, 6, 2)], attrs={'kernel_shape': [2, 2], 'dilations': [2, 3]})

write('quant.json')
