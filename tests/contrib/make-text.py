#!/usr/bin/env python3
"""Writes text.json: strings in operators of their own, and as elements of those
that move any elements, by ONNX Runtime."""
from onnx import TensorProto

from cases import case, given, known, np, write

STRING = {0: 'string'}
WORDS = ['a b', '', 'Ünïcödé', 'nan', 'x\ty', ' lead', 'trail ', '日本語 テキスト', '1e3', 'A B']


def text(name, op, inputs, out='string', opset=21, **more):
    case('text-' + name, op, inputs, domain='', opset=opset, out_types={0: out}, **more)


def s(values, shape=None, **more):
    t = given(values, 'string', **more)
    return {**t, 'shape': shape} if shape is not None else t


words, more = s(WORDS), s(WORDS[::-1])
table = s(WORDS[:6], [2, 3])

# ---- elements are moved as they are ----
ints = lambda *v: given(list(v), 'int64', const=True)  # noqa: E731
text('identity', 'Identity', [words])
text('reshape', 'Reshape', [words, ints(2, 5)])
text('transpose', 'Transpose', [table])
text('transpose-3', 'Transpose', [s(WORDS[:8], [2, 2, 2])], attrs={'perm': [2, 0, 1]})
text('concat', 'Concat', [table, s(['q', 'r'], [2, 1])], attrs={'axis': 1})
text('gather', 'Gather', [table, given([[2, 0], [-1, 1]], 'int64')], attrs={'axis': 1})
text('gather-elements', 'GatherElements', [table, given([[2, 0, 0], [1, 1, -1]], 'int64')], attrs={'axis': 1})
text('gather-nd', 'GatherND', [table, given([[0, 2], [1, 0]], 'int64')])
text('scatter-elements', 'ScatterElements', [table, given([[1], [0]], 'int64'), s(['new', ''], [2, 1])],
     attrs={'axis': 1})
text('scatter-nd', 'ScatterND', [words, given([[4], [1]], 'int64'), s(['new', 'too'])])
text('slice', 'Slice', [words, ints(8), ints(1), ints(0), ints(-3)])
text('split', 'Split', [words, ints(3, 7)], n_out=2, attrs={'axis': 0})
text('expand', 'Expand', [s(['a', 'b'], [2, 1]), ints(2, 3)])
text('tile', 'Tile', [table, ints(2, 2)])
text('where', 'Where', [given([[True], [False]], 'bool'), table, s(['other'], [1])])
text('compress', 'Compress', [words, given([True, False] * 5, 'bool', const=True)], attrs={'axis': 0}, opset=11)
text('unsqueeze', 'Unsqueeze', [words, ints(0)])
text('one-hot', 'OneHot', [given([1, 0, 2], 'int64'), given([3], 'int64', const=True), s(['off', 'on'])], opset=11)
known('text-pad', 'Pad', [s(['a', 'b']), ints(1, 2), s(['fill'], [])],
      [np.array(['fill', 'a', 'b', 'fill', 'fill'], dtype=object)], domain='', opset=21)
text('shape', 'Shape', [table], out='int64')
text('size', 'Size', [table], out='int64')
text('unique', 'Unique', [s(['b', 'a', '', 'b', 'c', 'a'], const=True)], n_out=4, opset=11)
text('unique-unsorted', 'Unique', [s(['b', 'a', '', 'b', 'c', 'a'], const=True)], n_out=4, attrs={'sorted': 0}, opset=11)
text('unique-axis', 'Unique', [s(['b', 'a', 'c', 'b', 'b', 'a'], [3, 2], const=True)], n_out=4, attrs={'axis': 0},
     opset=11)

# ---- comparison and joining ----
text('equal', 'Equal', [words, more], out='bool')
text('equal-same', 'Equal', [words, words], out='bool')
text('equal-broadcast', 'Equal', [table, s(['a b'], [1])], out='bool')
text('equal-13', 'Equal', [words, more], out='bool', opset=13, refused='string')
text('concat-text', 'StringConcat', [words, more])
text('concat-broadcast', 'StringConcat', [s(['a', 'é', ''], [3, 1]), s(['x', '', 'ß'], [1, 3])])
text('concat-numbers', 'StringConcat', [words, given([1.0] * 10, 'float32')], refused='float32')
text('less', 'Less', [words, more], out='bool', refused='string')
text('non-zero', 'NonZero', [words], out='int64', opset=13, refused='string')

# ---- StringSplit ----
for i, attrs in enumerate(({}, {'maxsplit': 1}, {'maxsplit': 0}, {'delimiter': ','}, {'delimiter': ',', 'maxsplit': 1},
                           {'delimiter': '--'}, {'delimiter': 'é'}, {'delimiter': ' '}, {'maxsplit': -1})):
    text('split-text-%d' % i, 'StringSplit', [s(['  a b  c ', 'x', '', ',', 'a,b', ',,a', 'a--b---c', 'caféé'], [4, 2],
                                                const=True)], n_out=2, attrs=attrs)
text('split-text-none', 'StringSplit', [s([], [0, 2])], n_out=2)
text('split-text-scalar', 'StringSplit', [s(['a b'], [], const=True)], n_out=2)
# ONNX Runtime cuts at spaces only, where the definition says white space.
known('text-split-tabs', 'StringSplit', [s(['a\tb \n c'], const=True)],
      [np.array([['a', 'b', 'c']], dtype=object), np.array([3])], domain='', opset=21)

# ---- StringNormalizer ----
letters = s(['Monday', 'tuesday', 'MONDAY', 'Äpfel', 'straße', 'ÿ', 'ЖЯ', 'Ǆǆ', 'İı', 'ſ'], const=True)
for change in ('LOWER', 'UPPER', 'NONE'):
    for sensitive in (0, 1):
        for stop in ([], ['monday', 'äPFEL'], ['MONDAY', 'ÄPFEL', 'ÿ']):
            text('normalize-%s-%d-%d' % (change, sensitive, len(stop)), 'StringNormalizer', [letters],
                 attrs={'case_change_action': change, 'is_case_sensitive': sensitive, 'locale': 'C.UTF-8',
                        **({'stopwords': stop} if stop else {})})
text('normalize-c', 'StringNormalizer', [letters], attrs={'case_change_action': 'UPPER', 'locale': 'C'})
text('normalize-none-left', 'StringNormalizer', [s(['a', 'A'], [1, 2], const=True)],
     attrs={'stopwords': ['a'], 'locale': 'C.UTF-8'})
text('normalize-empty', 'StringNormalizer', [s(['', 'a', ''], const=True)],
     attrs={'stopwords': ['b'], 'is_case_sensitive': 1, 'locale': 'C.UTF-8'})
text('normalize-rows', 'StringNormalizer', [s(['a', 'b'], [2, 1])], refused='[1, C]')
text('normalize-turkish', 'StringNormalizer', [letters], attrs={'case_change_action': 'LOWER', 'locale': 'tr_TR'},
     refused='tr_TR')

# ---- TfIdfVectorizer ----
GRAMS = {'min_gram_length': 1, 'max_gram_length': 2, 'max_skip_count': 1, 'ngram_counts': [0, 2],
         'pool_int64s': [1, 2, 1, 2, 2, 1]}
row = given([1, 2, 1, 1, 2, 2, 1], 'int64')
for mode in ('TF', 'IDF', 'TFIDF'):
    for i, (columns, weights) in enumerate((([2, 0, 1, 3], [10.0, 20.0, 30.0, 40.0]), ([5, 0, 1, 1], [1.0, 2.0, 3.0, 4.0]),
                                            ([0, 1, 2, 3], None), ([0, 0, 0, 0], [40.0, 30.0, 20.0, 10.0]))):
        text('grams-%s-%d' % (mode, i), 'TfIdfVectorizer', [row], out='float32', opset=9,
             attrs={**GRAMS, 'mode': mode, 'ngram_indexes': columns, **({'weights': weights} if weights else {})})
        text('grams-rows-%s-%d' % (mode, i), 'TfIdfVectorizer', [given([[2, 1, 2], [7, 7, 1]], 'int32')], out='float32',
             opset=9, attrs={**GRAMS, 'mode': mode, 'ngram_indexes': columns, **({'weights': weights} if weights else {})})
TEXT = {'mode': 'TF', 'min_gram_length': 1, 'max_gram_length': 3, 'max_skip_count': 2, 'ngram_counts': [0, 3, 7],
        'ngram_indexes': list(range(6)), 'pool_strings': ['a', 'b', '', 'a', 'b', 'b', 'c', 'a', 'b', 'c']}
text('grams-text', 'TfIdfVectorizer', [s(['a', 'b', 'c', '', 'a', 'x', 'b', 'b', 'c'])], out='float32', opset=9, attrs=TEXT)
text('grams-text-none', 'TfIdfVectorizer', [s([], [2, 0])], out='float32', opset=9, attrs=TEXT)
text('grams-type', 'TfIdfVectorizer', [row], out='float32', opset=9, attrs=TEXT, refused='int64')
text('grams-twice', 'TfIdfVectorizer', [row], out='float32', opset=9, refused='twice',
     attrs={**GRAMS, 'mode': 'TF', 'ngram_indexes': [0, 1, 2, 3], 'pool_int64s': [1, 1, 1, 2, 2, 1]})
text('grams-columns', 'TfIdfVectorizer', [row], out='float32', opset=9, refused='entries',
     attrs={**GRAMS, 'mode': 'TF', 'ngram_indexes': [0, 1]})
text('grams-order', 'TfIdfVectorizer', [row], out='float32', opset=9, refused='ascend',
     attrs={**GRAMS, 'mode': 'TF', 'ngram_indexes': [0, 1, 2], 'ngram_counts': [2, 0]})
text('grams-length', 'TfIdfVectorizer', [row], out='float32', opset=9, refused='length 2 to 1',
     attrs={**GRAMS, 'mode': 'TF', 'ngram_indexes': [0, 1, 2, 3], 'min_gram_length': 2, 'max_gram_length': 1})

# ---- RegexFullMatch: what each part of the syntax means ----
PROBES = ['', 'a', 'ab', 'aa', 'aaa', 'abc', 'A', 'é', 'a\n', '\n', 'a\nb', ' ', '_', '1', 'a1', '-', 'a-b', '}', 'a{', ']',
          'a.b', '^', '\t', 'AB', 'b', 'bc', 'x', 'a{,3}', '日本']
for i, pattern in enumerate((
        '', 'a', 'a.c', '.', '(?s).', 'a|bc', '(a|b)*', '[^a]', '\\w+\\d?', '\\W', '\\s', '\\S+', '\\D', 'a{2,3}', 'a{,3}',
        'a{2}', 'a{2,}', 'a{0}', 'a{', ']', '[]a]', '[^]a]', '[a-]+', '[a\\]b]', '[\\d\\-x]+', '[[:alpha:]]+',
        '[[:^alpha:]]', '^a$', 'a$', '(?m)a$\\n^b', '\\Aa\\z', '\\ba\\b-\\bb', 'a\\Bb', '(?P<x>a)(?:b)', 'a*?b??c*?',
        '(a*)*', '(|a)+', 'a||b', '\\Qa.b\\E', 'a\\.b', '\\x61\\x{2d}b', '\\141', '[é-ü]', '\\x{65e5}.', '[--a]+',
        '(?U)a+', '(?s:.)', '(?-s:.)', '((a)b?)+', '[a&&b]', '^*a')):
    text('regex-%d' % i, 'RegexFullMatch', [s(PROBES)], out='bool', attrs={'pattern': pattern})
for i, pattern in enumerate(('a**', 'a+*', '*a', '(', 'a)', '[z-a]', '[a', '[]', 'a\\', '\\1', '\\8', '\\h', '\\é', '\\Z',
                             'a{1001}', 'a{2,1}', '[a-\\d]', '[\\b]', '(?=a)a', '(?#c)a', '(?P<n', '[[:no:]]',
                             '(?:(?:a{500}){2}){2}', '\\x4', '\\x{110000}', '(?-)a')):
    text('regex-bad-%d' % i, 'RegexFullMatch', [s(PROBES)], out='bool', attrs={'pattern': pattern}, refused='not valid')
for i, pattern in enumerate(('(?i)a', '\\p{L}', '\\pN', '\\C', '[\\p{L}]')):
    text('regex-refused-%d' % i, 'RegexFullMatch', [s(PROBES)], out='bool', attrs={'pattern': pattern},
         refused='not supported')

# ---- numbers and text ----
numbers = s(['1', '-1.5', '1e3', '  2', '+INF', 'inf', '-inf', 'nan', 'NaN', '+1', '.5', '5.', '1E-2', '007'])
for dtype, code in (('float32', TensorProto.FLOAT), ('float64', TensorProto.DOUBLE), ('float16', TensorProto.FLOAT16)):
    text('to-' + dtype, 'Cast', [numbers], out=dtype, attrs={'to': code})
for dtype in ('int8', 'uint8', 'int16', 'int32', 'int64', 'uint64', 'uint32', 'bool'):
    code = getattr(TensorProto, dtype.upper())
    text('to-' + dtype, 'Cast', [s(['1', '-1' if dtype != 'uint64' else '2', '300', ' 7 ', '0', '12345678', '+5'])], out=dtype, attrs={'to': code})
    text('to-%s-bad' % dtype, 'Cast', [s(['1', 'abc'])], out=dtype, attrs={'to': code}, fails="'abc' is no number")
known('text-to-int64-decimal', 'Cast', [s(['1.5', '-2.7', '1e3', '9007199254740991', '-9007199254740992'])],
      [np.array([1, -2, 1000, 2 ** 53 - 1, -2 ** 53])], domain='', opset=21, attrs={'to': TensorProto.INT64})
for i, bad in enumerate(('', ' ', '1x', '0x10', 'e5', '1e', '.', '+', '1 2', '--1', 'infinity', '1,5')):
    text('to-float-bad-%d' % i, 'Cast', [s([bad])], out='float32', attrs={'to': TensorProto.FLOAT}, fails='is no number')
text('to-int-long', 'Cast', [s(['99999999999999999999'])], out='int64', attrs={'to': TensorProto.INT64}, fails='64 bits')
text('to-complex', 'Cast', [words], out='float32', attrs={'to': TensorProto.COMPLEX64}, refused='no kernel')
for dtype, values in (('float32', [0, 1, -1, 0.1, 1e10, 123456789, float('inf'), float('-inf'), float('nan'), 3.14159274,
                                   16777216.0, -0.0, 100000, 1e7, 1e8, 2.5e9, 0.25]),
                      ('float64', [0.1, 1e22, 1e-7, 1e16, 2.5, -1e-300]), ('float16', [0.5, 65504, -2]),
                      ('int8', [1, -5]), ('uint8', [1, 255]), ('uint64', [0, 2 ** 53]),
                      ('int64', [-2 ** 63, 7]), ('bool', [True, False])):
    text('from-' + dtype, 'Cast', [given(values, dtype)], attrs={'to': TensorProto.STRING})
text('cast-same', 'Cast', [words], attrs={'to': TensorProto.STRING})
text('cast-like', 'CastLike', [given([1.5, 2], 'float32'), words], like={'op': 'Cast', 'inputs': [given([1.5, 2], 'float32')],
     'attrs': {'to': TensorProto.STRING}})
# The shortest text that reads back as the number, where ONNX Runtime has 8 digits.
known('text-from-float-shortest', 'Cast', [given([0.6048455, 1e-5, 0.3, 1 / 3], 'float32')],
      [np.array(['0.6048455', '1e-05', '0.3', '0.33333334'], dtype=object)], domain='', opset=21,
      attrs={'to': TensorProto.STRING})
known('text-from-double-shortest', 'Cast', [given([1 / 3, 123456789.123456789, 5e-324], 'float64')],
      [np.array(['0.3333333333333333', '1.2345678912345679e+08', '5e-324'], dtype=object)], domain='', opset=21,
      attrs={'to': TensorProto.STRING})

# ---- LabelEncoder ----
def labels(name, inputs, out, attrs, version=2, **more):
    case('labels-' + name, 'LabelEncoder', inputs, domain='ai.onnx.ml', domain_opset=version, out_types={0: out},
         attrs=attrs, **more)


names = s(['b', 'a', '', 'c', 'B', 'é'])
for version in (2, 4):
    labels('text-%d' % version, [names], 'int64', {'keys_strings': ['a', 'b', 'é', 'a'], 'values_int64s': [7, 8, 9, 10]},
           version)
labels('text-default', [names], 'int64', {'keys_strings': ['a', ''], 'values_int64s': [7, 8], 'default_int64': 42})
labels('text-float', [names], 'float32', {'keys_strings': ['a', 'b'], 'values_floats': [0.5, 8.0], 'default_float': 1.5})
labels('text-text', [names], 'string', {'keys_strings': ['a', 'b'], 'values_strings': ['A', ''], 'default_string': 'none'})
labels('number-text', [given([3, 1, 4], 'int64')], 'string', {'keys_int64s': [1, 3], 'values_strings': ['one', 'three']})
labels('classes', [names], 'int64', {'classes_strings': ['a', 'b', 'c']}, 1)
labels('classes-default', [names], 'int64', {'classes_strings': ['', 'b', 'c'], 'default_int64': 77}, 1)
labels('classes-back', [given([2, 0, 3, -1], 'int64')], 'string', {'classes_strings': ['a', 'b', 'c']}, 1)
labels('text-type', [given([1], 'int64')], 'int64', {'keys_strings': ['a'], 'values_int64s': [7]}, refused='int64')

write('text.json')
