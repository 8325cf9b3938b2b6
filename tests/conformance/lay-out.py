#!/usr/bin/env python3
"""Lays out the test data of the installed onnx package for the conformance test.

  lay-out.py FOLDER

Copies the groups node, pytorch-* and simple. Newer packages carry no node data
but the program that makes it: then it is run. The nine light models get the
input that ONNX's own runner gives them (i / n for element i of n), their
expected output is in the package.
"""
import os
import shutil
import subprocess
import sys

import numpy as np
import onnx
from onnx import numpy_helper


def save(path, array):
    with open(path, 'wb') as f:
        f.write(numpy_helper.from_array(array).SerializeToString())


def lay_out_light(source, dest):
    for file in sorted(os.listdir(source)):
        if not file.endswith('.onnx'):
            continue
        name = file[:-len('.onnx')]
        sets = os.path.join(dest, 'light', name, 'test_data_set_0')
        os.makedirs(sets)
        model = onnx.load(os.path.join(source, file))
        shutil.copy(os.path.join(source, file), os.path.join(dest, 'light', name, 'model.onnx'))
        known = {i.name for i in model.graph.initializer}
        inputs = [i for i in model.graph.input if i.name not in known]
        for k, value in enumerate(inputs):
            shape = [d.dim_value if d.HasField('dim_value') else 1 for d in value.type.tensor_type.shape.dim]
            n = int(np.prod(shape))
            save(os.path.join(sets, f'input_{k}.pb'), (np.arange(n).reshape(shape) / n).astype(np.float32))
        for k in range(len(model.graph.output)):
            shutil.copy(os.path.join(source, f'{name}_output_{k}.pb'), os.path.join(sets, f'output_{k}.pb'))


def main():
    dest = sys.argv[1]
    source = os.path.join(os.path.dirname(onnx.__file__), 'backend', 'test', 'data')
    if not os.path.isdir(os.path.join(source, 'node')):
        made = os.path.join(dest, 'made')
        subprocess.run([sys.executable, '-m', 'onnx.backend.test.cmd_tools', 'generate-data', '-o', made], check=True)
        os.rename(os.path.join(made, 'node'), os.path.join(dest, 'node'))
    for group in ('node', 'pytorch-converted', 'pytorch-operator', 'simple'):
        if os.path.isdir(os.path.join(source, group)):
            shutil.copytree(os.path.join(source, group), os.path.join(dest, group))
    if os.path.isdir(os.path.join(source, 'light')):
        lay_out_light(os.path.join(source, 'light'), dest)


if __name__ == '__main__':
    main()
