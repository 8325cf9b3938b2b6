#!/usr/bin/env python3
"""Writes signal.json: Fourier transforms, geometry, Unique, NonMaxSuppression."""
from cases import case, given, rand, write

I64 = 'int64'


def std(name, op, inputs, **more):
    case(name, op, inputs, domain='', **{'opset': 20, **more})


def size(v):
    return given(v, I64, const=True)


for dtype, tol in (('float32', {'atol': 1e-5}), ('float64', {'rtol': 1e-6, 'atol': 1e-6})):
    for n, want in ((8, None), (5, None), (5, 12), (9, 4), (1, None)):
        length = size(want) if want else None
        tag = '%s-%d-%s' % (dtype, n, want)
        std('dft-complex-' + tag, 'DFT', [rand(2, n, 3, 2, dtype=dtype), length, size(1)], **tol)
        std('dft-real-' + tag, 'DFT', [rand(2, 3, n, 1, dtype=dtype), length], **tol)
        std('dft-onesided-' + tag, 'DFT', [rand(2, 3, n, 1, dtype=dtype), length], attrs={'onesided': 1}, **tol)
        std('dft-inverse-' + tag, 'DFT', [rand(2, n, 3, 2, dtype=dtype), length, size(-3)], attrs={'inverse': 1}, **tol)
        if n > 1 and not want:  # ONNX Runtime does not follow numpy.fft.irfft for other lengths
            std('dft-irfft-' + tag, 'DFT', [rand(2, n, 2, dtype=dtype), length], attrs={'inverse': 1, 'onesided': 1},
                **tol)
std('dft-17', 'DFT', [rand(3, 6, 4, 2)], opset=17, attrs={'axis': 2}, atol=1e-5)
std('dft-onesided-complex', 'DFT', [rand(1, 4, 2)], attrs={'onesided': 1}, refused='takes a real signal')
std('dft-last-axis', 'DFT', [rand(1, 4, 2), None, size(-1)], refused='no signal axis')
std('dft-no-parts', 'DFT', [rand(1, 4, 3)], refused='real')
std('dft-length-0', 'DFT', [rand(1, 4, 2), size(0)], refused='dft_length is 0')

std('stft', 'STFT', [rand(2, 40, 1), size(7), None, size(16)], atol=1e-5)
std('stft-window', 'STFT', [rand(2, 40, 1), size(8), rand(15)], atol=1e-5)
std('stft-two-sided', 'STFT', [rand(1, 40, 1), size(8), rand(16), size(16)], attrs={'onesided': 0}, atol=1e-5)
std('stft-complex', 'STFT', [rand(1, 30, 2), size(3), rand(8)], attrs={'onesided': 0}, atol=1e-5)
std('stft-step-0', 'STFT', [rand(1, 8, 1), size(0), rand(4)], refused='frame_step is 0')
std('stft-too-long', 'STFT', [rand(1, 8, 1), size(2), None, size(9)], refused='frames of 9')
std('stft-window-length', 'STFT', [rand(1, 8, 1), size(2), rand(3), size(4)], refused='a window of 3')

for op in ('HannWindow', 'HammingWindow', 'BlackmanWindow'):
    for n in (1, 2, 9):
        std('%s-%d' % (op, n), op, [size(n)], atol=2e-7)
    std(op + '-symmetric', op, [size(10)], attrs={'periodic': 0, 'output_datatype': 11}, atol=1e-6)
    std(op + '-negative', op, [size(-1)], refused='is -1')
std('mel', 'MelWeightMatrix', [size(20), size(400), given(16000, I64), given(20.0, 'float32'), given(7600.0, 'float32')])
std('mel-outside', 'MelWeightMatrix', [size(4), size(16), given(8192, I64), given(0.0, 'float32'),
                                       given(9000.0, 'float32')], fails='do not fit')

std('affine-2d', 'AffineGrid', [rand(2, 2, 3), size([2, 1, 3, 4])])
std('affine-2d-align', 'AffineGrid', [rand(2, 2, 3), size([2, 1, 3, 4])], attrs={'align_corners': 1})
std('affine-3d', 'AffineGrid', [rand(1, 3, 4), size([1, 1, 2, 3, 4])])
std('affine-3d-align', 'AffineGrid', [rand(1, 3, 4), size([1, 1, 2, 1, 4])], attrs={'align_corners': 1})
std('affine-batch', 'AffineGrid', [rand(1, 2, 3), size([2, 1, 3, 4])], refused='batch')
std('col2im', 'Col2Im', [rand(2, 12, 12), size([5, 6]), size([2, 3])], attrs={'pads': [0, 0, 0, 0], 'strides': [1, 2],
    'dilations': [2, 1]}, refused='columns')
std('col2im-strides', 'Col2Im', [rand(2, 12, 6), size([5, 6]), size([2, 3])], attrs={'strides': [1, 2], 'dilations': [2, 1]})
std('col2im-pads', 'Col2Im', [rand(1, 6, 30), size([4, 6]), size([2, 3])], attrs={'pads': [1, 2, 1, 0]})
std('col2im-1d', 'Col2Im', [rand(1, 6, 4), size([6]), size([3])])
std('col2im-too-large', 'Col2Im', [rand(1, 6, 1), size([1, 2]), size([2, 3])], refused='does not fit')
deform = [rand(1, 4, 5, 6), rand(6, 2, 3, 2), rand(1, 24, 3, 5, lo=-2, hi=2), rand(6), rand(1, 12, 3, 5)]
std('deform-conv', 'DeformConv', deform, opset=19, attrs={'group': 2, 'offset_group': 2}, atol=1e-4)
std('deform-conv-pads', 'DeformConv', [rand(2, 2, 5, 6), rand(3, 2, 2, 2), rand(2, 8, 3, 3, lo=-3, hi=3)], opset=19,
    attrs={'pads': [1, 0, 1, 1], 'strides': [2, 2], 'dilations': [2, 1]}, atol=1e-4)
std('deform-conv-offsets', 'DeformConv', [rand(1, 2, 5, 6), rand(3, 2, 2, 2), rand(1, 6, 4, 5)], opset=19, refused='shape')

for dtype in ('float32', 'int64', 'int32', 'uint8'):
    for name, dims, attrs in (('flat', [40], {}), ('flat-unsorted', [5, 8], {'sorted': 0}), ('axis', [12, 2], {'axis': 0}),
                              ('axis-unsorted', [2, 12, 1], {'axis': -2, 'sorted': 0})):
        if dtype in ('int32', 'uint8'):
            continue  # no kernel in ONNX Runtime
        lo, hi = (0, 4) if dtype == 'int64' else (0, 1)
        data = rand(*dims, dtype=dtype, lo=lo, hi=hi, const=True)
        if dtype == 'float32':
            count = 1
            for d in dims:
                count *= d
            data = given([(7 * i * i % 5) / 2 - 1 for i in range(count)], dtype, const=True)
            data['shape'] = dims
        std('unique-%s-%s' % (name, dtype), 'Unique', [data], n_out=4, attrs=attrs)
std('unique-wanted', 'Unique', [given([3, 1, 3, -2], I64, const=True)], n_out=4, wanted=[0, 3])
std('unique-empty', 'Unique', [given([], I64, const=True)], n_out=4)
std('unique-scalar', 'Unique', [given(3.5, 'float32', const=True)], n_out=4)
std('unique-zeros', 'Unique', [given([0.0, -0.0, 1.0], 'float32', const=True)], n_out=4)

boxes, scores = rand(2, 30, 4, lo=0, hi=1, const=True), rand(2, 3, 30, lo=0, hi=1, const=True)
for name, rest, attrs in (
        ('corners', [size([30]), given([0.3], 'float32', const=True)], {}),
        ('most', [size([2]), given([0.3], 'float32', const=True), given([0.2], 'float32', const=True)], {}),
        ('floor', [size([30]), None, given([0.6], 'float32', const=True)], {}),
        ('centre', [size([30]), given([0.1], 'float32', const=True)], {'center_point_box': 1}),
        ('none', [], {}), ('negative', [size([-1])], {})):
    std('nms-' + name, 'NonMaxSuppression', [boxes, scores] + rest, attrs=attrs, opset=11)
std('nms-input', 'NonMaxSuppression', [rand(2, 30, 4, lo=0, hi=1), rand(2, 3, 30, lo=0, hi=1), size([30]),
                                      given([0.3], 'float32')], opset=11)
std('unique-input', 'Unique', [rand(40, dtype=I64, lo=0, hi=4)], n_out=4)
std('nms-threshold', 'NonMaxSuppression', [boxes, scores, size([1]), given([1.5], 'float32', const=True)],
    refused='not in [0, 1]')
std('nms-shape', 'NonMaxSuppression', [boxes, rand(2, 3, 29, const=True)], refused='boxes must be')

write('signal.json')
