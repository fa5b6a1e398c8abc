// Global agent options in a bundle: each is refused with a hint at the flag or variable that replaces it, and these replacements take
// effect.

import { afterEach, expect, test, vi } from 'vitest'
import { globalOptions, underOperator } from '../config/globals.ts'
import { createLogger } from '../telemetry/logger.ts'
import { Metrics } from '../telemetry/metrics.ts'
import { type Bundle, bundleSchema, checkedBundle } from './format.ts'
import { BundleMode } from './mode.ts'
import { loadPart, type PipelinePart, partsOf } from './part.ts'

afterEach(() => vi.unstubAllEnvs())

const bundle: Bundle = {
  schema: bundleSchema,
  interpolation: 'none',
  pipelines: { 'shop/p': { uid: 'u', generation: 1, hash: 'h' } },
  hub: { subscriptions: [] },
  sources: { 'shop/p/in': { type: 'demo_logs', format: 'json' } },
  transforms: {},
  sinks: {
    'shop/p/out': { type: 'http', inputs: ['shop/p/in'], uri: 'http://a.example', encoding: { codec: 'json' } },
  },
}
const written = (more: object) => Buffer.from(JSON.stringify({ ...bundle, ...more }))

test.each(Object.keys(globalOptions))(
  'a bundle with `%s` is refused, and the error names the replacement',
  (option) => {
    const instead = underOperator[option as keyof typeof globalOptions]
    expect(() => checkedBundle(written({ [option]: {} }))).toThrow(`the option \`${option}\``)
    expect(() => checkedBundle(written({ [option]: {} }))).toThrow(instead)
  },
)

test('members unknown to this version are ignored', () => {
  expect(checkedBundle(written({ hints: [1] })).schema).toBe(bundleSchema)
})

/** Runs an agent with these flags, environment and bundle; returns its settings. */
async function globalsWith(flags: object, env: Readonly<Record<string, string>> = {}) {
  for (const [name, value] of Object.entries({ AGENT_SELF_NODE_NAME: 'node', ...env })) vi.stubEnv(name, value)
  const given = { bundle: '/nowhere', ...flags } as Parameters<typeof BundleMode.open>[0]
  const mode = await BundleMode.open(given, createLogger({ level: 'fatal', format: 'text' }), new Metrics())
  const { globals } = mode.config
  await mode.close()
  return globals
}

test('flags and variables that replace an option take effect', async () => {
  expect((await globalsWith({ 'data-dir': '/some/where' })).dataDir).toBe('/some/where')
  expect((await globalsWith({ 'api-address': '127.0.0.1:9' })).api).toMatchObject({
    enabled: true,
    address: '127.0.0.1:9',
  })
  expect((await globalsWith({ 'api-address': '' })).api.enabled).toBe(false)
  expect((await globalsWith({ 'metric-prefix': 'penstock_' })).api.metric_prefix).toBe('penstock_')
  await expect(globalsWith({ 'metric-prefix': '7-' })).rejects.toThrow(
    '`metric_prefix` must be a valid beginning of a metric name',
  )
  expect((await globalsWith({}, { TZ: 'Asia/Tokyo' })).timezone).toBe('Asia/Tokyo')
})

test('the proxies of the environment are those of each component', () => {
  const [part] = [...partsOf(bundle).values()] as [PipelinePart]
  const env = { HTTP_PROXY: 'http://proxy.example:3128', NO_PROXY: 'b.example' }
  const loaded = loadPart(part, { value: () => undefined, digest: () => undefined }, { dataDir: '/d', denied: [], env })
  expect(loaded.ok && [...loaded.config.sinks.values()].map(({ proxy }) => proxy)).toMatchObject([
    { http: 'http://proxy.example:3128', no_proxy: ['b.example'] },
  ])
})
