import { expect, test } from 'vitest'
import type { Pipeline } from '../api/pipeline.ts'
import { compileJob } from './job.ts'
import { CompilePool, compileLimits } from './pool.ts'

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

test('compiles in a thread; equal resources give equal artifacts', { timeout: 60_000 }, async () => {
  await using pool = new CompilePool(1)
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
  ['sinks', 'remap', 'unknown sink type `remap`', '`remap` is a transform: it belongs below `transforms`'],
] as const)(
  'under a TenantPolicy, %s of type %s are told to be unknown before they are told to be forbidden',
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

test('a thread that was started ahead takes what comes, before it is ready and after', {
  timeout: 60_000,
}, async () => {
  await using pool = new CompilePool(1)
  pool.warm()
  const [first, second] = await Promise.all([pool.compile(job('.a = 1')), pool.compile(job('.a ='))])
  expect([first.accepted.status, second.accepted.status]).toEqual(['True', 'False'])
  pool.warm()
  expect((await pool.compile(job('.b = 1'))).accepted.status).toBe('True')
})

test('a condition tells all that is wrong with what may be done, as far as there is room', async () => {
  await using pool = new CompilePool(1)
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

test('tests that take too long cost their Pipeline alone, and the next one gets a new thread', {
  timeout: 120_000,
}, async () => {
  await using pool = new CompilePool(1, { ...compileLimits, testsMs: 300 })
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

test('a spec beyond its size is not even tried', async () => {
  await using pool = new CompilePool(1)
  const result = await pool.compile(job(`.a = "${'x'.repeat(300_000)}"`))
  expect(result.accepted.message).toMatch(/^spec: it has 300\d\d\d bytes as JSON, and may have 262144; divide it/)
})
