#!/usr/bin/env python3
"""judge.py DIR --faultline CMD [--jobs 1] [--only f003,h001] [--timeout 300]

Runs `CMD machines DIR/case/input [--job DIR/case/job.json] --json --quiet` on every case and compares with truth.json.
"""
import argparse, json, math, os, random, shlex, subprocess, sys, time
from concurrent.futures import ThreadPoolExecutor


def norm(x):
    return str(x).strip().lower().rstrip('.')


def who(truth, name):
    """The machine that a name of the answer means, or the name itself in angle brackets."""
    x = norm(name)
    for cand in (x, x.split(':')[0], x.split('.')[0] if not x.replace('.', '').replace(':', '').isdigit() else x):
        for m, al in truth['aliases'].items():
            if cand == norm(m) or cand in [norm(a) for a in al]:
                return m
    return '<%s>' % name


def run(case, d, cmd, timeout):
    truth = json.load(open(os.path.join(d, case, 'truth.json')))
    argv = shlex.split(cmd) + ['machines', os.path.join(d, case, 'input'), '--json', '--quiet']
    jf = os.path.join(d, case, 'job.json')
    if os.path.exists(jf):
        argv += ['--job', jf]
    t = time.time()
    err, acc, doc = None, [], {}
    try:
        p = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=timeout)
        if p.returncode not in (0, 10):
            err = 'exit %d: %s' % (p.returncode, p.stderr.decode(errors='replace').strip()[-200:])
        else:
            doc = json.loads(p.stdout)
    except subprocess.TimeoutExpired:
        err = 'timeout'
    except Exception as e:
        err = 'bad JSON: %s' % e
    for f in doc.get('faulty', []) or []:
        m = who(truth, f.get('machine'))
        if m not in [a[0] for a in acc]:
            acc.append((m, f.get('metric'), f.get('score'), f.get('since'), f.get('machine')))
    if err:
        verdict = 'error'
    elif truth['kind'] == 'healthy':
        verdict = 'healthy-accused' if acc else 'healthy-ok'
    elif not acc:
        verdict = 'nobody'
    elif acc[0][0] == truth['machine']:
        verdict = 'right'
    else:
        verdict = 'wrong'
    return dict(case=case, truth=truth, verdict=verdict, accused=acc, err=err, seconds=time.time() - t, seen=doc.get('machines'),
                extra=sum(1 for a in acc if a[0] != truth['machine']), among=any(a[0] == truth['machine'] for a in acc))


def wilson(k, n, z=1.96):
    if n == 0:
        return (float('nan'), 0.0, 1.0)
    p = k / n
    c = (p + z * z / (2 * n)) / (1 + z * z / n)
    h = z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n)) / (1 + z * z / n)
    return (p, max(0, c - h), min(1, c + h))


def prf(rs, strict=False):
    def good(r):
        return r['verdict'] == 'right' and (not strict or r['extra'] == 0)
    tp = sum(good(r) for r in rs)
    faulty = sum(r['truth']['kind'] == 'faulty' for r in rs)
    claims = sum(bool(r['accused']) for r in rs)
    return tp, claims, faulty


def f1(tp, claims, faulty):
    return 2 * tp / (claims + faulty) if claims + faulty else float('nan')


def table(title, rs, key):
    print('\n' + title)
    print('  %-22s %5s %6s %6s %7s %9s | %8s %8s %6s' % ('', 'right', 'wrong', 'nobody', 'recall', '', 'healthy', 'accused', 'error'))
    for k in sorted({key(r) for r in rs if key(r) is not None}, key=lambda x: (str(type(x)), x)):
        x = [r for r in rs if key(r) == k]
        f = [r for r in x if r['truth']['kind'] == 'faulty']
        h = [r for r in x if r['truth']['kind'] == 'healthy']
        c = lambda l, v: sum(r['verdict'] == v for r in l)
        print('  %-22s %5d %6d %6d %7s %9s | %8s %8s %6d' % (k, c(f, 'right'), c(f, 'wrong'), c(f, 'nobody'), '%.2f' % (c(f, 'right') / len(f)) if f else '-', '(of %d)' % len(f),
              len(h) if h else '-', c(h, 'healthy-accused') if h else '-', c(x, 'error')))


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument('dir')
    ap.add_argument('--faultline', required=True)
    ap.add_argument('--jobs', type=int, default=1)
    ap.add_argument('--timeout', type=float, default=300)
    ap.add_argument('--only')
    ap.add_argument('--json', help='write all results into this file')
    a = ap.parse_args()
    cases = sorted(c for c in os.listdir(a.dir) if os.path.exists(os.path.join(a.dir, c, 'truth.json')))
    if a.only:
        cases = [c for c in cases if c in a.only.split(',')]
    rs = []
    with ThreadPoolExecutor(a.jobs) as ex:
        for r in ex.map(lambda c: run(c, a.dir, a.faultline, a.timeout), cases):
            rs.append(r)
            print('\r%d/%d' % (len(rs), len(cases)), end='', file=sys.stderr)
    print(file=sys.stderr)
    if not rs:
        sys.exit('no cases in ' + a.dir)
    nf = sum(r['truth']['kind'] == 'faulty' for r in rs)
    nh = len(rs) - nf
    c = lambda v: sum(r['verdict'] == v for r in rs)
    print('%d fleets: %d faulty, %d healthy; %.1f s per fleet' % (len(rs), nf, nh, sum(r['seconds'] for r in rs) / len(rs)))
    print('right %d   wrong %d   nobody %d   healthy accused %d of %d   errors %d' % (c('right'), c('wrong'), c('nobody'), c('healthy-accused'), nh, c('error')))
    print('right but others accused too: %d   true machine accused, not first: %d   innocent machines accused: %d in faulty fleets, %d in healthy fleets' % (
        sum(r['verdict'] == 'right' and r['extra'] > 0 for r in rs), sum(r['verdict'] == 'wrong' and r['among'] for r in rs),
        sum(r['extra'] for r in rs if r['truth']['kind'] == 'faulty'), sum(r['extra'] for r in rs if r['truth']['kind'] == 'healthy')))
    for strict in (False, True):
        tp, cl, fa = prf(rs, strict)
        p, r_ = wilson(tp, cl), wilson(tp, fa)
        rnd = random.Random(5)
        bs = sorted(f1(*prf([rs[rnd.randrange(len(rs))] for _ in rs], strict)) for _ in range(1000))
        bs = [b for b in bs if b == b] or [float('nan')]
        print('%-28s precision %.3f [%.3f, %.3f]   recall %.3f [%.3f, %.3f]   F1 %.3f [%.3f, %.3f]' % (
            'strict (nobody else accused)' if strict else 'first accused', *p, *r_, f1(tp, cl, fa), bs[int(0.025 * len(bs))], bs[min(len(bs) - 1, int(0.975 * len(bs)))]))
    table('by fault kind', rs, lambda r: r['truth']['fault'])
    table('by severity', rs, lambda r: r['truth']['severity'])
    table('by interval [s]', rs, lambda r: r['truth']['interval'])
    table('by deployment', rs, lambda r: r['truth']['deployment'])
    table('by format', rs, lambda r: r['truth']['format'])
    sz = lambda n: '004-007' if n < 8 else '008-015' if n < 16 else '016-031' if n < 32 else '032-063' if n < 64 else '064-'
    table('by machines of the job', rs, lambda r: sz(r['truth']['job_machines']))
    table('job.json', rs, lambda r: 'ranks' if r['truth']['job_ranks'] else 'no ranks' if r['truth']['job_json'] else 'none')
    tr = sorted({t.split(':')[0] for r in rs for t in r['truth']['traits']})
    print('\nhealthy fleets accused, by trait')
    for t in tr:
        x = [r for r in rs if r['truth']['kind'] == 'healthy' and t in [y.split(':')[0] for y in r['truth']['traits']]]
        if x:
            print('  %-22s %d of %d' % (t, sum(r['verdict'] == 'healthy-accused' for r in x), len(x)))
    off = [r for r in rs if r['seen'] is not None and r['seen'] not in (r['truth']['machines'], r['truth']['job_machines'])]
    print('\nfleets where the tool counts other machines than there are: %d' % len(off))
    print('\nfailures')
    for r in rs:
        if r['verdict'] in ('right', 'healthy-ok') and not (r['verdict'] == 'right' and r['extra']):
            continue
        t = r['truth']
        ans = r['err'] or ', '.join('%s%s (%s %s)' % (m, '' if m == t['machine'] else ' [%s]' % t['roles'][m] if m in t['roles'] else '', me, ('%.2f' % sc) if isinstance(sc, (int, float)) else sc) for m, me, sc, _, _ in r['accused'][:4]) or 'nobody'
        v = 'right+extra' if r['verdict'] == 'right' else r['verdict']
        print('  %s %-15s truth: %s | answer: %s | %s' % (r['case'], v, ('%s %s %s x%.2f shown %ds%s' % (t['machine'], t['fault'], t['severity'], t['slow_factor'], t['shown_s'], ' halts' if t['halt'] else '')) if t['kind'] == 'faulty' else 'healthy', ans,
              '%dm(%d) %ds/%ds %ds %s %s %s tau%.1f pp%d job:%s seen:%s %s' % (t['machines'], t['job_machines'], t['interval'], t['node_interval'], t['seconds'], t['deployment'], t['format'], t['fabric'], t['tau'], t['pp'],
              'ranks' if t['job_ranks'] else 'yes' if t['job_json'] else 'no', r['seen'], ' '.join('%s%s' % (x, '=' + t['cast'][x] if x in t['cast'] else '') for x in t['traits']))))
    if a.json:
        json.dump(rs, open(a.json, 'w'), indent=1, default=str)


if __name__ == '__main__':
    main()
