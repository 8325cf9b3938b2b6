"""Statistics of bench/peers.py, and its results as text."""
import collections
import datetime
import math
import os
import random
import subprocess

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

# ours_ns, peer_ns: nanoseconds a call, by round; scale: of them to the unit.
Row = collections.namedtuple('Row', 'case threads ours_ns peer_ns peer_name unit scale notes')
Result = collections.namedtuple('Result', 'mode threads rows notes skipped sides')


def median(v):
    v = sorted(v)
    half = len(v) // 2
    return v[half] if len(v) % 2 else (v[half - 1] + v[half]) / 2


def ratio_interval(ours, theirs):
    """theirs/ours of the medians, and its 95 % bootstrap interval over pairs of rounds
    (Efron and Tibshirani 1993, chapter 13)."""
    value = median(theirs) / median(ours)
    if len(ours) < 5:
        return value, None, None
    rng = random.Random(1)
    got = []
    for _ in range(2000):
        pick = [rng.randrange(len(ours)) for _ in ours]
        got.append(median([theirs[i] for i in pick]) / median([ours[i] for i in pick]))
    got.sort()
    return value, got[int(0.025 * len(got))], got[int(0.975 * len(got)) - 1]


def geometric_mean(v):
    return math.exp(sum(math.log(x) for x in v) / len(v)) if v else None


# ---- what is printed ----

def number(v):
    return '-' if v is None else '%.2f' % v


def figure(v):
    return '%.3g' % v if v < 1000 else '%.0f' % v


def as_json(results):
    out = []
    for result in results:
        for r in result.rows:
            value, low, high = ratio_interval(r.ours_ns, r.peer_ns)
            out.append({'case': r.case, 'threads': r.threads, 'ours': r.scale(median(r.ours_ns)),
                        'peer': r.scale(median(r.peer_ns)), 'peer_name': r.peer_name, 'unit': r.unit,
                        'ratio': value, 'low': low, 'high': high})
    return out


def mean_line(rows, what):
    mean = geometric_mean([ratio_interval(r.ours_ns, r.peer_ns)[0] for r in rows])
    return '- geometric mean%s: %s over %d cases' % (what, number(mean), len(rows))


def means(result):
    rows = result.rows
    if not rows or result.mode == 'scaling':
        return []
    least = min(rows, key=lambda r: ratio_interval(r.ours_ns, r.peer_ns)[0])
    lines = []
    for b, what in (('b=var', ', packing inside the call (b=var)'), ('b=const', ', prepacked (b=const)')):
        some = [r for r in rows if r.case.endswith(b)]
        if some:
            lines.append(mean_line(some, what))
    lines = lines or [mean_line(rows, '')]
    return lines + ['- least: %s for %s' % (number(ratio_interval(least.ours_ns, least.peer_ns)[0]), least.case)]


def bar(what, value, least):
    return '- bar, %s: %.2f of %.2f, %s' % (what, value, least, 'reached' if value >= least else 'missed')


def gemm_bars(result):
    """OpenBLAS times a factor, or 90 % of the peak where that is less; and no shape slower."""
    factor = 1.2 if result.threads == 1 else 1.1
    lines = []
    for b in ('b=var', 'b=const'):
        rows = [r for r in result.rows if r.case.endswith(b)]
        if not rows:
            continue
        reached = []
        for r in rows:
            ours, peer = (r.notes['flops'] / median(ns) * 1e9 for ns in (r.ours_ns, r.peer_ns))
            reached.append(factor * ours / min(factor * peer, 0.9 * r.notes['peak_flop_per_s']))
        lines.append(bar('%s: geometric mean over OpenBLAS, 90 %% of peak counting as %.1f' % (b, factor),
                         geometric_mean(reached), factor))
        lines.append(bar('%s: least ratio' % b, min(ratio_interval(r.ours_ns, r.peer_ns)[0] for r in rows), 1))
    lines += [bar('1024^3 prepacked, of peak', r.notes['of_peak'], 0.9) for r in result.rows
              if r.case == 'm=1024,k=1024,n=1024,b=const']
    return lines


def bars(result):
    """What was promised, beside what was measured."""
    rows = result.rows
    if not rows:
        return []
    ratios = [ratio_interval(r.ours_ns, r.peer_ns)[0] for r in rows]
    if result.mode == 'gemm':
        return gemm_bars(result)
    if result.mode == 'skinny':
        return [bar('least ratio', min(ratios), 1.3)] + [
            bar('%s, of the read bandwidth' % r.case, r.notes['of_dram'], 0.9)
            for r in rows if r.case.startswith('m=1,')]
    if result.mode == 'conv':
        return [bar('geometric mean', geometric_mean(ratios), 1)]
    if result.mode == 'scaling':
        return [bar('of what the loop gains', rows[0].notes['of_loop'], 0.92)]
    return []


def extra_columns(mode):
    """Headings, and how to fill them from the notes of a row."""
    percent = lambda key: lambda n: '%.0f %%' % (100 * n[key])
    if mode == 'gemm':
        return [('ours of peak', percent('of_peak')), ('peer of peak', percent('peer_of_peak'))]
    if mode == 'skinny':
        return [('ours of peak', percent('of_peak')), ('ours of DRAM', percent('of_dram')),
                ('routine', lambda n: n['routine'])]
    if mode == 'models':
        return [('peer gains by optimising', lambda n: '%.2f' % n['peer_own_gain']),
                ('ours outside GEMM, conv, attention', percent('not_heavy')),
                ('epilogues in that', percent('epilogues'))]
    return []


def markdown(o, result):
    extra = extra_columns(result.mode)
    head = ['case', 'threads', 'ours', 'peer', 'unit', 'ratio', '[low, high]', 'fastest rounds']
    head += [e[0] for e in extra] + ['difference']
    lines = ['| ' + ' | '.join(head) + ' |', '|' + '---|' * len(head)]
    for r in result.rows:
        value, low, high = ratio_interval(r.ours_ns, r.peer_ns)
        cells = [r.case, str(r.threads), figure(r.scale(median(r.ours_ns))), figure(r.scale(median(r.peer_ns))), r.unit,
                 number(value), '[%s, %s]' % (number(low), number(high)), number(min(r.peer_ns) / min(r.ours_ns))]
        cells += [e[1](r.notes) for e in extra]
        cells.append('%.1e' % r.notes['difference'] if 'difference' in r.notes else '-')
        lines.append('| ' + ' | '.join(cells) + ' |')
    lines.append('')
    lines += means(result) + ([] if o.only else bars(result))
    lines += ['- ' + n for n in result.notes] + ['- skip: ' + s for s in result.skipped]
    return '\n'.join(lines) + '\n'


def about(o, result):
    """Date, machine, versions and method of a result, in one paragraph."""
    ridge = result.sides[0]
    who = {'gemm': 'OpenBLAS', 'skinny': 'OpenBLAS', 'conv': 'ONNX Runtime', 'models': 'ONNX Runtime',
           'int8': 'ONNX Runtime'}.get(result.mode)
    text = '%s; %s, %s; ridge %s (%s, lanes %s)' % (
        datetime.date.today().isoformat(), ridge[4], ridge[2], ridge[0], revision(), ridge[3])
    if who == 'OpenBLAS':
        text += '; %s, core %s%s' % (' '.join(result.sides[1][0].split()[:2]), result.sides[1][1],
                                     ' (asked for)' if o.openblas_core else '')
    elif who:
        text += '; %s %s' % (who, result.sides[1][0])
    text += '; %d thread%s; %d rounds of %g ms or one call; spinning %s' % (
        result.threads, '' if result.threads == 1 else 's', o.rounds, o.round_ns / 1e6,
        'as the peer has it' if o.spin else 'off')
    return text + (' (`--quick`: provisional)' if o.quick else '')


def revision():
    got = subprocess.run(['git', '-C', ROOT, 'describe', '--always', '--dirty'], stdout=subprocess.PIPE,
                         stderr=subprocess.DEVNULL, text=True)
    return got.stdout.strip() or 'no revision'


TITLES = {'gemm': 'GEMM against OpenBLAS', 'skinny': 'Skinny products against OpenBLAS',
          'conv': 'Convolutions against ONNX Runtime', 'models': 'Models against ONNX Runtime',
          'int8': 'Integers of 8 bits against ONNX Runtime',
          'scaling': 'Two threads against one'}


def section(o, result):
    threads = '' if result.mode == 'scaling' else ', %d thread%s' % (result.threads, '' if result.threads == 1 else 's')
    core = ', its core chosen' if o.openblas_core else ''
    return '### %s%s%s\n\n%s.\n\n%s' % (TITLES[result.mode], core, threads, about(o, result), markdown(o, result))


