"""Writes a MatMulInteger with constant weights as a model file: int8_models.py M K N FILE

Weights are normally distributed, as those of networks are, one scale for all of them: the largest of
K * N is 127. Activations are the input, uint8 [M, K].
"""
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


def main():
    m, k, n = (int(x) for x in sys.argv[1:4])
    w = np.random.default_rng(1).normal(size=(k, n))
    w = np.rint(w * (127 / np.abs(w).max())).astype(np.int8)
    graph = helper.make_graph([helper.make_node('MatMulInteger', ['a', 'b'], ['y'])], 'g',
                              [helper.make_tensor_value_info('a', TensorProto.UINT8, [m, k])],
                              [helper.make_tensor_value_info('y', TensorProto.INT32, [m, n])],
                              [numpy_helper.from_array(w, 'b')])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid('', 13)], ir_version=8), sys.argv[4])


main()
