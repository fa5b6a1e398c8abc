import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { Pipeline } from '../api/pipeline.ts'
import { compileJob, sharedVerdict } from './job.ts'
import { CompilePool, compileLimits } from './pool.ts'
import { MemoryQuarantine, maxEntries } from './quarantine.ts'
import { resourceOf } from './resources.ts'
import { sharedPipeline } from './shared.ts'

const job = (source: string, tests: Pipeline['spec']['tests'] = []) => ({
  pipeline: {
    apiVersion: 'penstock.dev/v1alpha1',
    kind: 'Pipeline',
    metadata: {
      name: 'checkout',
      namespace: 'shop',
      uid: 'u',
      generation: 1,
      creationTimestamp: '2026-01-01T00:00:00Z',
    },
    spec: {
      sources: [{ name: 'app', type: 'orchestrator_logs' }],
      transforms: [{ name: 'parse', type: 'remap', config: { source } }],
      sinks: [{ name: 'out', type: 'blackhole' }],
      tests,
    },
  },
  resources: [],
  policy: undefined,
  keys: {},
  apiHosts: [],
  clusterName: '',
})

test('compiles in a process; equal resources give equal artifacts', async () => {
  await using pool = new CompilePool()
  const [first, second, wrong] = await Promise.all([
    pool.compile(job('.a = 1')),
    pool.compile(job('.a = 1')),
    pool.compile(job('.a = parse_json(.message)')),
  ])
  expect(first.accepted.status).toBe('True')
  expect(first.artifact).toEqual(second.artifact)
  expect(first.artifact?.hub.subscriptions).toEqual([
    {
      cursor: 'u/app',
      namespaces: ['shop'],
      podSelector: '',
      excludeContainers: [],
      out: 'shop/checkout/app',
      options: {},
    },
  ])
  expect(wrong.accepted).toEqual({
    status: 'False',
    reason: 'CompileFailed',
    message: 'transforms[parse] line 1 col 6: E103 unhandled fallible assignment',
  })
})

test.each([
  ['sources', 'orchestrator_log', 'unknown source type `orchestrator_log`', 'did you mean `orchestrator_logs`?'],
  ['sinks', 'htpp', 'unknown sink type `htpp`', 'did you mean `http`?'],
  ['sinks', 'remap', 'unknown sink type `remap`', '`remap` is a transform: move it to `transforms`'],
] as const)(
  'under a TenantPolicy, %s of type %s are reported as unknown, not as forbidden',
  async (list, type, problem, help) => {
    const { pipeline, ...rest } = job('.a = 1')
    const spec = { ...pipeline.spec, [list]: [{ name: 'x', type, config: {} }] }
    const policy = { namespaceSelector: {}, allowedSinks: ['blackhole'] }
    const { accepted } = await compileJob({ ...rest, policy, pipeline: { ...pipeline, spec } })
    expect(accepted).toMatchObject({ status: 'False', reason: 'InvalidConfig' })
    expect(accepted.message).toContain(problem)
    expect(accepted.message).toContain(help)
    expect(accepted.message).not.toContain('T9')
  },
)

test('a process that was started in advance accepts jobs before and after it is ready', {
  timeout: 60_000,
}, async () => {
  await using pool = new CompilePool()
  pool.warm()
  const [first, second] = await Promise.all([pool.compile(job('.a = 1')), pool.compile(job('.a ='))])
  expect([first.accepted.status, second.accepted.status]).toEqual(['True', 'False'])
  pool.warm()
  expect((await pool.compile(job('.b = 1'))).accepted.status).toBe('True')
})

test('a condition lists all forbidden options, as far as space allows', async () => {
  await using pool = new CompilePool()
  const given = job('.a = 1')
  const [source, ...sinks] = [{ name: 'app', type: 'orchestrator_log' }, ...'abcdef'].map((name) =>
    typeof name === 'string' ? { name, type: 'blackhol' } : name,
  )
  const message = async (spec: object) => {
    const { accepted } = await pool.compile({ ...given, pipeline: { ...given.pipeline, spec } as Pipeline })
    return accepted.message
  }
  const both = await message({ ...given.pipeline.spec, sources: [source], sinks: sinks.slice(0, 1) })
  expect(both).toContain('did you mean `blackhole`?')
  expect(both).toMatch(/^s.*; s/)
  expect(both).not.toMatch(/\(and \d/)
  const many = await message({ ...given.pipeline.spec, sinks })
  expect(many).toMatch(/ \(and \d more\)$/)
  expect(many.length).toBeLessThan(1100)
})

test('too slow tests only fail their own Pipeline, and the next one gets a new process', {
  timeout: 120_000,
}, async () => {
  await using pool = new CompilePool({ limits: { ...compileLimits, testsMs: 300 } })
  const loops = Array.from({ length: 100 }, (_, index) => ({
    name: `t${index}`,
    insertAt: 'parse',
    input: { raw: 'x'.repeat(1000) },
    expect: [{ at: 'parse', assert: '.n == 1' }],
  }))
  const heavy = `text = ""\n${'text = text + string!(.message) + text\n'.repeat(24)}.n = length(split(text, "x"))`
  const slow = await pool.compile(job(heavy, loops))
  expect(['TestsFailed', 'CompileFailed']).toContain(slow.accepted.reason)
  expect(slow.artifact).toBeUndefined()
  expect((await pool.compile(job('.a = 1'))).accepted.status).toBe('True')
})

test('a too large spec is not compiled at all', async () => {
  await using pool = new CompilePool()
  const result = await pool.compile(job(`.a = "${'x'.repeat(300_000)}"`))
  expect(result.accepted.message).toMatch(/^spec: it has 300\d\d\d bytes as JSON, and the limit is 262144; divide it/)
})

const exploding = new URL('../testing/exploding-worker.ts', import.meta.url)
// A long timeout, because the test is about the CPU limit, even on a busy machine.
const quick = { ...compileLimits, compileMs: 500, memoryMb: 64, patience: 200 }
const named = (name: string, namespace = 'shop', more: object = {}) => {
  const given = job('.a = 1')
  const metadata = { ...given.pipeline.metadata, name, namespace }
  return { ...given, pipeline: { ...given.pipeline, metadata, spec: { ...given.pipeline.spec, ...more } } as Pipeline }
}
const resident = () => process.memoryUsage.rss() / 1024 / 1024

test.each([
  ['buffers', /takes more than (64 MiB of memory|0.5 s of CPU time)\. The operator compiles it again when it changes/],
  ['heap', /takes more than (64 MiB of memory|0.5 s of CPU time)\. The operator compiles it again when it changes/],
  ['loop', /takes more than 0.5 s of CPU time\. The operator compiles it again when it changes/],
  ['abort', /The operator compiles it again when it changes/],
  ['exit', /The operator compiles it again when it changes/],
])('an exploding compilation (%s) only ends its own process, and happens once', async (name, message) => {
  const quarantine = new MemoryQuarantine()
  const before = resident()
  await using pool = new CompilePool({ limits: quick, file: exploding, quarantine })
  const [exploded, other] = await Promise.all([pool.compile(named(name)), pool.compile(named('fine', 'blog'))])
  expect(exploded.accepted).toMatchObject({ status: 'False', reason: 'CompileFailed' })
  expect(exploded.accepted.message).toMatch(message)
  expect(other.accepted.message).toBe('fine')
  expect(resident() - before, 'memory of this process').toBeLessThan(200)

  // It is not retried, neither by this pool nor by the one after a restart, until it changes.
  await using restarted = new CompilePool({
    limits: quick,
    file: new URL('../testing/nothing-like-it.ts', import.meta.url),
    quarantine: new MemoryQuarantine(quarantine.entries()),
  })
  for (const each of [pool, restarted]) expect((await each.compile(named(name))).accepted).toEqual(exploded.accepted)
  const changed = { ...named(name).pipeline, metadata: { ...named('fine').pipeline.metadata } }
  expect((await pool.compile({ ...named(name), pipeline: changed })).accepted.message).toBe('fine')
})

test('a fault of the compiler is reported without the content of the Pipeline', async () => {
  await using pool = new CompilePool({ limits: quick, file: exploding })
  const { accepted } = await pool.compile(named('throw'))
  expect(accepted).toMatchObject({
    status: 'False',
    reason: 'CompileFailed',
    message: expect.stringContaining('TypeError'),
  })
  expect(accepted.message).not.toContain('secret content')
  expect((await pool.compile(named('fine'))).accepted.message).toBe('fine')
})

test('a namespace with many jobs leaves the others their turns', async () => {
  await using pool = new CompilePool({ limits: quick, file: exploding })
  const order: string[] = []
  const compile = async (name: string, namespace: string) => {
    await pool.compile(named(name, namespace))
    order.push(namespace)
  }
  const evil = Array.from({ length: 60 }, (_, index) => compile(`p${index}`, 'evil'))
  await Promise.all([...evil, compile('a', 'shop'), compile('b', 'shop'), compile('c', 'blog')])
  expect(order.lastIndexOf('shop')).toBeLessThan(10)
  expect(order.indexOf('blog')).toBeLessThan(10)
  const crowd = Array.from({ length: 200 }, (_, index) => pool.compile(named(`q${index}`, 'evil')))
  const refused = (await Promise.allSettled(crowd)).filter(({ status }) => status === 'rejected')
  expect(refused.length).toBeGreaterThan(100)
})

test('compiles the Pipeline that an operator was compiling when it ended last, and does not compile it after a second time', async () => {
  const first = new MemoryQuarantine()
  await using before = new CompilePool({ limits: { ...quick, compileMs: 2_000 }, file: exploding, quarantine: first })
  // The operator stops during a long compile: only its record remains.
  const running = before.compile(named('loop', 'evil'))
  await expect.poll(() => first.entries().length, { timeout: 30_000, interval: 10 }).toBe(1)
  const left = first.entries()
  expect(left[0]?.[1]).toMatchObject({ id: 'Pipeline evil/loop', refusal: undefined })
  await running

  const second = new MemoryQuarantine(left)
  const order: string[] = []
  await using pool = new CompilePool({ limits: { ...quick, compileMs: 2_000 }, file: exploding, quarantine: second })
  const compile = async (name: string) => order.push((await pool.compile(named(name, 'evil'))).accepted.message)
  await Promise.all([compile('loop'), compile('a'), compile('b')])
  expect(order).toEqual(['a', 'b', expect.stringContaining('CPU time')])

  const third = new MemoryQuarantine(new MemoryQuarantine(left).entries())
  await using last = new CompilePool({ limits: { ...quick, compileMs: 2_000 }, file: exploding, quarantine: third })
  const { accepted } = await last.compile(named('loop', 'evil'))
  expect(accepted).toMatchObject({ status: 'False', message: expect.stringContaining('an operator has stopped twice') })
})

test('records that the API server does not store delay neither a result nor the jobs of others', async () => {
  const stored = Promise.withResolvers<void>()
  class Hanging extends MemoryQuarantine {
    protected override save = () => stored.promise
  }
  const quarantine = new Hanging()
  await using pool = new CompilePool({ limits: { ...quick, compileMs: 2_000 }, file: exploding, quarantine })
  await using _ = { [Symbol.asyncDispose]: async () => stored.resolve() }
  const running = pool.compile(named('loop', 'evil'))
  await expect.poll(() => quarantine.entries().length, { timeout: 30_000, interval: 10 }).toBe(1)
  expect((await running).accepted.message).toMatch(/CPU time/)
  expect((await pool.compile(named('fine', 'blog'))).accepted.message).toBe('fine')
})

test('a compilation only opens files of the program, for any input', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'penstock-pool-'))
  try {
    const file = join(folder, 'schema.desc')
    await writeFile(file, 'x')
    await using pool = new CompilePool()
    for (const path of [file, '/dev/zero', '/proc/self/environ']) {
      const given = job(`. = parse_proto!(string!(.message), ${JSON.stringify(path)}, "a.B")`)
      const { namespace: _, ...metadata } = given.pipeline.metadata
      // A ClusterPipeline may name files: they are on the agents, not on the operator.
      const pipeline = { ...given.pipeline, kind: 'ClusterPipeline', metadata } as Pipeline
      // The agent discovers their content; here the call is only checked by its types, whatever the path.
      const { accepted } = await pool.compile({ ...given, pipeline })
      expect(accepted.status, path).toBe('True')
    }
    expect((await pool.compile(job('.a = 1'))).accepted.status).toBe('True')
  } finally {
    await rm(folder, { recursive: true })
  }
})

test('the quarantine is bounded, and the oldest entry leaves it', () => {
  const quarantine = new MemoryQuarantine()
  const refusal = { reason: 'CompileFailed', path: 'spec', message: 'too much' } as const
  for (let index = 0; index <= maxEntries; index++) quarantine.keep(`h${index}`, `Pipeline evil/p${index}`, refusal)
  expect(quarantine.entries()).toHaveLength(maxEntries)
  expect([quarantine.refusalOf('h0'), quarantine.refusalOf(`h${maxEntries}`)]).toEqual([undefined, refusal])
})

test('a too slow Sink has its own verdict, too', async () => {
  const long = { type: 'blackhole', config: { note: 'x'.repeat(300_000) } }
  const metadata = { name: 'long', namespace: 'shop' }
  const sink = { apiVersion: 'penstock.dev/v1alpha1', kind: 'Sink', metadata, spec: long }
  const alone = { ...job('.a = 1'), pipeline: sharedPipeline(resourceOf(sink)), resources: [sink] }
  await using pool = new CompilePool()
  expect(sharedVerdict(await pool.compile(alone), sink)).toMatchObject({
    status: 'False',
    message: expect.stringMatching(/that of Sink "long": it has 300\d\d\d bytes/),
  })
})
