#!/usr/bin/env python3
"""Writes ml.json: operators of ai.onnx.ml, by ONNX Runtime."""
from cases import case, given, rand, write


def ml(name, op, inputs, **more):
    case(name, op, inputs, domain='ai.onnx.ml', **{'domain_opset': 3, **more})


x = rand(6, 3, lo=-2, hi=2)
POSTS = ('NONE', 'LOGISTIC', 'SOFTMAX', 'SOFTMAX_ZERO')
COEF = [0.1, -0.2, 0.3, 0.4, 0.25, -0.75]

for post in POSTS:
    ml('classifier-' + post, 'LinearClassifier', [x], n_out=2,
       attrs={'coefficients': COEF, 'intercepts': [0.05, -0.1], 'classlabels_ints': [5, -7], 'post_transform': post})
    ml('regressor-' + post, 'LinearRegressor', [x], attrs={'coefficients': COEF, 'targets': 2, 'post_transform': post})
ml('classifier-one-score', 'LinearClassifier', [x], n_out=2,
   attrs={'coefficients': COEF[:3], 'intercepts': [0.05], 'classlabels_ints': [5, 7], 'post_transform': 'LOGISTIC'})
ml('classifier-one-score-none', 'LinearClassifier', [x], attrs={'coefficients': COEF[:3], 'classlabels_ints': [5, 7]},
   refused='by one score')
ml('classifier-strings', 'LinearClassifier', [x], attrs={'coefficients': COEF, 'classlabels_strings': ['a', 'b']},
   refused='strings')
ml('regressor-one', 'LinearRegressor', [x], attrs={'coefficients': COEF[:3], 'intercepts': [0.5]})
ml('regressor-row', 'LinearRegressor', [rand(3)], attrs={'coefficients': COEF[:3], 'intercepts': [0.5]})
ml('regressor-probit', 'LinearRegressor', [rand(4, 1, lo=0.05, hi=0.95)],
   attrs={'coefficients': [1.0], 'post_transform': 'PROBIT'})
ml('regressor-length', 'LinearRegressor', [x], attrs={'coefficients': COEF[:4]}, refused='do not fit')

for norm in ('MAX', 'L1', 'L2'):
    ml('normalizer-' + norm, 'Normalizer', [given([[1.0, -4.0, 2.0], [0.0, 0.0, 0.0], [-1.0, -2.0, -3.0]], 'float32')],
       attrs={'norm': norm})
ml('normalizer-row', 'Normalizer', [rand(5)], attrs={'norm': 'L2'})
ml('scaler', 'Scaler', [x], attrs={'offset': [1.0, 2.0, 3.0], 'scale': [0.5, 0.1, -1.0]})
ml('scaler-ints', 'Scaler', [rand(4, 2, lo=-9, hi=9, dtype='int64')], attrs={'offset': [1.0], 'scale': [0.5]})
ml('scaler-length', 'Scaler', [x], attrs={'offset': [1.0, 2.0], 'scale': [0.5, 0.5]}, refused='one a feature')
ml('imputer', 'Imputer', [given([[1.0, 2.0], [3.0, 1.0]], 'float32')],
   attrs={'imputed_value_floats': [7.0, 8.0], 'replaced_value_float': 1.0})
ml('imputer-ints', 'Imputer', [given([[1, 2], [3, 1]], 'int64')],
   attrs={'imputed_value_int64s': [7], 'replaced_value_int64': 1})
ml('extract', 'ArrayFeatureExtractor', [x, given([[2, 0, 2, 1]], 'int64')])
ml('extract-row', 'ArrayFeatureExtractor', [rand(6), given([[2, 0], [5, 1]], 'int64')])
ml('extract-outside', 'ArrayFeatureExtractor', [rand(6), given([-1], 'int64')], fails='outside of 6')
ml('binarizer', 'Binarizer', [x], attrs={'threshold': 0.25})
ml('vectorizer', 'FeatureVectorizer', [x, rand(6, 2)], attrs={'inputdimensions': [3, 2]})
ml('one-hot', 'OneHotEncoder', [given([[1, 2], [9, 1]], 'int64')], attrs={'cats_int64s': [1, 2, 3]})
ml('one-hot-floats', 'OneHotEncoder', [given([[1.7, 2.0]], 'float32')], attrs={'cats_int64s': [1, 2, 3]})
ml('one-hot-unknown', 'OneHotEncoder', [given([[9]], 'int64')], attrs={'cats_int64s': [1], 'zeros': 0}, fails='no category')
ml('labels', 'LabelEncoder', [given([1, 2, 3, -4], 'int64')],
   attrs={'keys_int64s': [1, 1, 2, -4], 'values_floats': [1.0, 2.0, 3.0, -0.5], 'default_float': -5.0})
ml('labels-floats', 'LabelEncoder', [given([0.0, -0.0, 2.5, 7.0], 'float32')],
   attrs={'keys_floats': [0.0, 2.5], 'values_int64s': [1, 2]})
ml('labels-length', 'LabelEncoder', [given([0], 'int64')], attrs={'keys_int64s': [0, 2], 'values_int64s': [1]},
   refused='2 keys for 1 values')

# Two trees; the nodes of the first are not in the order of their ids.
TREES = {
    'nodes_treeids': [4, 4, 4, 4, 4, 7, 7, 7], 'nodes_nodeids': [0, 3, 1, 4, 2, 0, 1, 2],
    'nodes_featureids': [0, 0, 1, 0, 0, 2, 0, 0],
    'nodes_modes': ['BRANCH_LEQ', 'LEAF', 'BRANCH_GT', 'LEAF', 'LEAF', 'BRANCH_LT', 'LEAF', 'LEAF'],
    'nodes_values': [0.5, 0.0, -0.25, 0.0, 0.0, 0.1, 0.0, 0.0],
    'nodes_truenodeids': [1, 0, 3, 0, 0, 1, 0, 0], 'nodes_falsenodeids': [2, 0, 4, 0, 0, 2, 0, 0],
}
LEAVES = [(4, 2), (4, 3), (4, 4), (7, 1), (7, 2)]
W = [0.3, -0.4, 0.2, 0.6, 0.1, -0.7, -0.15, 0.35, 0.8, -0.9]
POS = [abs(w) / 2 for w in W]


def votes(kind, targets, weights):
    """Every leaf votes for each of the targets: those of no votes, and several for one target, ONNX Runtime
    counts in its own way."""
    lines = [(t, n, i) for t, n in LEAVES for i in range(targets)]
    return {kind + '_treeids': [v[0] for v in lines], kind + '_nodeids': [v[1] for v in lines],
            kind + '_ids': [v[2] for v in lines], kind + '_weights': [weights[i % 10] for i in range(len(lines))]}


for how in ('SUM', 'AVERAGE', 'MIN', 'MAX'):
    ml('trees-' + how, 'TreeEnsembleRegressor', [x],
       attrs={**TREES, **votes('target', 2, W), 'n_targets': 2, 'aggregate_function': how,
              'base_values': [0.5, -1.0]})
    ml('trees-one-' + how, 'TreeEnsembleRegressor', [x],
       attrs={**TREES, **votes('target', 1, W), 'n_targets': 1, 'aggregate_function': how})
for post in POSTS:
    ml('trees-' + post, 'TreeEnsembleRegressor', [x],
       attrs={**TREES, **votes('target', 2, W), 'n_targets': 2, 'post_transform': post})
    ml('trees-classes-' + post, 'TreeEnsembleClassifier', [x], n_out=2,
       attrs={**TREES, **votes('class', 3, POS), 'classlabels_int64s': [5, -7, 9], 'post_transform': post})
for name, weights in (('signed', W), ('positive', POS)):
    for post in ('NONE', 'LOGISTIC'):
        for base in ([], [0.25]):
            ml('trees-binary-%s-%s-%d' % (name, post, len(base)), 'TreeEnsembleClassifier', [x], n_out=2,
               attrs={**TREES, **votes('class', 1, weights), 'classlabels_int64s': [5, 7], 'post_transform': post,
                      **({'base_values': base} if base else {})})
ml('trees-binary-softmax', 'TreeEnsembleClassifier', [x],
   attrs={**TREES, **votes('class', 1, W), 'classlabels_int64s': [5, 7], 'post_transform': 'SOFTMAX'},
   refused='by one score')
ml('trees-double', 'TreeEnsembleRegressor', [rand(5, 3, dtype='float64')],
   attrs={**TREES, **votes('target', 1, W), 'n_targets': 1})
ml('trees-nan', 'TreeEnsembleRegressor', [given([[float('nan')] * 3, [1.0, float('nan'), 0.0]], 'float32')],
   attrs={**TREES, **votes('target', 1, W), 'n_targets': 1,
          'nodes_missing_value_tracks_true': [1, 0, 0, 0, 0, 0, 0, 0]})
ml('trees-feature', 'TreeEnsembleRegressor', [rand(5, 2)],
   attrs={**TREES, **votes('target', 1, W), 'n_targets': 1}, refused='feature 2 of 2')
ml('trees-target', 'TreeEnsembleRegressor', [x],
   attrs={**TREES, **votes('target', 2, W), 'n_targets': 1}, refused='target 1 of 1')
ml('trees-circle', 'TreeEnsembleRegressor', [x],
   attrs={**TREES, **votes('target', 1, W), 'n_targets': 1, 'nodes_truenodeids': [0] * 8, 'nodes_falsenodeids': [0] * 8},
   fails='circle')
ml('trees-no-child', 'TreeEnsembleRegressor', [x],
   attrs={**TREES, **votes('target', 1, W), 'n_targets': 1, 'nodes_truenodeids': [9] * 8, 'nodes_falsenodeids': [9] * 8},
   fails='does not exist')
ml('trees-twice', 'TreeEnsembleRegressor', [x],
   attrs={**TREES, **votes('target', 1, W), 'n_targets': 1, 'nodes_nodeids': [0] * 8}, fails='has two nodes')
ml('trees-lengths', 'TreeEnsembleRegressor', [x],
   attrs={**TREES, **votes('target', 1, W), 'n_targets': 1, 'nodes_nodeids': [0] * 7}, refused='another length')

write('ml.json')
