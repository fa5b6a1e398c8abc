import { createHash } from 'node:crypto'
import { readBundle } from '@penstock/agent/bundle'
import { expect, test } from 'vitest'
import type { Artifact } from '../compile/artifact.ts'
import { renderBundle, textOf } from './bundle.ts'
import { fragmentOf, fragmentsOf } from './fragment.ts'
import { digestFile, renderManifest, startSpreadOf } from './manifest.ts'
import { place } from './slots.ts'

function artifact(id: string, extra: Partial<Artifact> = {}): Artifact {
  const [namespace = '', name = ''] = id.split('/')
  return {
    id,
    kind: 'Pipeline',
    namespace,
    name,
    uid: `uid-${name}`,
    generation: 3,
    createdAt: '2026-01-01T00:00:00Z',
    labels: {},
    hash: `sha256:${name}`,
    mode: 'Node',
    hub: {
      subscriptions: [
        {
          cursor: `uid-${name}/app`,
          namespaces: [namespace],
          podSelector: 'app=web',
          excludeContainers: ['istio-proxy'],
          limits: { perContainer: { lines: 500, bytes: 1_048_576, onLimit: 'drop' } },
          out: `${id}/app`,
          options: { max_line_bytes: 65_536 },
        },
      ],
    },
    sources: {},
    // biome-ignore lint/suspicious/noTemplateCurlyInString: text of a program, not a template
    transforms: { [`${id}/parse`]: { type: 'remap', inputs: [`${id}/app`], source: '.a = "${HOME}"' } },
    sinks: { [`${id}/es`]: { type: 'http', inputs: [`${id}/parse`], auth: { password: { $secret: 'k1' } } } },
    sourceTypes: ['orchestrator_logs'],
    secretRefs: [{ key: 'k1', parts: [{ kind: 'Secret', namespace, name: 'es', key: 'password' }] }],
    diskBufferBytes: 0,
    tenancy: { restricted: true, denyCidrs: ['127.0.0.0/8'], allowHosts: [], cpuShare: 20 },
    ...extra,
  }
}

const entry = (each: Artifact) => ({ fragment: fragmentOf(each), createdAt: each.createdAt })

test('a bundle has these bytes', async () => {
  const rendered = await renderBundle([entry(artifact('shop/checkout'))])
  const expected =
    // biome-ignore lint/suspicious/noTemplateCurlyInString: text of a program, not a template
    '{"hub":{"subscriptions":[{"cursor":"uid-checkout/app","excludeContainers":["istio-proxy"],"limits":{"perContainer":{"bytes":1048576,"lines":500,"onLimit":"drop"}},"namespaces":["shop"],"options":{"max_line_bytes":65536},"out":"shop/checkout/app","podSelector":"app=web"}]},"interpolation":"none","pipelines":{"shop/checkout":{"cpuShare":20,"egress":{"deny":["127.0.0.0/8"]},"generation":3,"hash":"sha256:checkout","restricted":true,"secrets":[{"key":"k1","parts":[{"key":"password","kind":"Secret","name":"es","namespace":"shop"}]}],"uid":"uid-checkout"}},"schema":1,"sinks":{"shop/checkout/es":{"auth":{"password":{"$secret":"k1"}},"inputs":["shop/checkout/parse"],"type":"http"}},"sources":{},"transforms":{"shop/checkout/parse":{"inputs":["shop/checkout/app"],"source":".a = \\"${HOME}\\"","type":"remap"}}}'
  expect(textOf([...rendered.fragments.values()]).toString()).toBe(expected)
  expect(rendered.rev).toBe(createHash('sha256').update(expected).digest('hex'))
  expect(
    readBundle(
      rendered,
      rendered.shards.map(({ data }) => data),
    ),
  ).toEqual(JSON.parse(expected))
})

test('the same pipelines in any order result in the same bytes, also after reading them back', async () => {
  const artifacts = Array.from({ length: 50 }, (_, index) => artifact(`ns-${index % 7}/p-${index}`))
  const forward = await renderBundle(artifacts.map(entry))
  const backward = await renderBundle(artifacts.toReversed().map((each) => entry(structuredClone(each))))
  expect(backward.rev).toBe(forward.rev)
  expect(backward.shards).toEqual(forward.shards)
  const bundle = readBundle(
    forward,
    forward.shards.map(({ data }) => data),
  )
  expect(textOf([...fragmentsOf(bundle).values()])).toEqual(textOf([...forward.fragments.values()]))
})

/** Text that compresses poorly. */
const noise = (seed: number, length: number) => {
  let text = ''
  for (let index = 0; text.length < length; index++) {
    text += createHash('sha512').update(`${seed}-${index}`).digest('base64')
  }
  return text.slice(0, length)
}

test('a large bundle has several shards, and the youngest Pipelines are excluded first, then by name', async () => {
  const limits = { shardBytes: 8_000, maxShards: 3 }
  const large = (id: string, seed: number, createdAt: string) =>
    artifact(id, {
      createdAt,
      transforms: { [`${id}/parse`]: { type: 'remap', inputs: [`${id}/app`], source: noise(seed, 8_000) } },
    })
  const artifacts = [
    large('a/old', 1, '2026-01-01T00:00:00Z'),
    large('a/young', 2, '2026-01-03T00:00:00Z'),
    large('b/middle', 3, '2026-01-02T00:00:00Z'),
    large('a/middle', 4, '2026-01-02T00:00:00Z'),
    large('c/young', 5, '2026-01-03T00:00:00Z'),
  ]
  const rendered = await renderBundle(artifacts.map(entry), limits)
  expect(rendered.shards.length).toBeGreaterThan(1)
  expect(rendered.evicted).toEqual(['a/young', 'c/young'])
  expect([...rendered.fragments.keys()].sort()).toEqual(['a/middle', 'a/old', 'b/middle'])
  for (const { data } of rendered.shards) expect(data.length).toBeLessThanOrEqual(8_000)
  const again = await renderBundle(artifacts.toReversed().map(entry), limits)
  expect(again.rev).toBe(rendered.rev)
})

test('keys stay in their Secret, and new ones use free space', () => {
  const item = (key: string, bytes: number) => ({ key, data: Buffer.alloc(bytes) })
  const current = new Map([
    ['b', 1],
    ['gone', 0],
  ])
  const { slots, left } = place(2, current, [
    item('a', 600_000),
    item('b', 600_000),
    item('c', 300_000),
    item('d', 300_000),
    item('e', 300_000),
  ])
  expect(slots.map((slot) => [...slot.keys()])).toEqual([
    ['a', 'c'],
    ['b', 'd'],
  ])
  expect(left).toEqual(['e'])
})

test('a manifest names revisions, shards and the age of the secrets', () => {
  const digests = digestFile(new Map([['k1', Buffer.from('secret')]]))
  const shard = { key: 'r1-0.json.gz', sha256: 'aa', bytes: 7 }
  const text = renderManifest(
    { rev: 'r1', shards: [shard] },
    { rev: 'r2', shards: [], percent: 30, salt: 's' },
    digests,
    { later: [{ rev: 'r3', shards: [shard], percent: 5, salt: 's', also: ['n'] }] },
  ).toString()
  expect(JSON.parse(text)).toEqual({
    schema: 1,
    stable: { rev: 'r1', shards: [shard] },
    candidate: { rev: 'r2', shards: [], percent: 30, salt: 's' },
    later: [{ rev: 'r3', shards: [shard], percent: 5, salt: 's', also: ['n'] }],
    secrets: { key: digests.file.key, sha256: digests.file.sha256, bytes: digests.file.bytes },
    secretsEpoch: digests.epoch,
    minAgentVersion: '0.1.0',
  })
  expect(text).not.toContain('secret"')
  expect(digestFile(new Map([['k1', Buffer.from('other')]])).epoch).not.toBe(digests.epoch)
})

test('agents may wait longer at their start with more nodes; a number near a step does not cause repeated writes', () => {
  const digests = digestFile(new Map())
  const manifest = (startSpreadMs: number) =>
    JSON.parse(renderManifest(undefined, undefined, digests, { startSpreadMs }).toString())
  const seen: number[] = []
  let spread = 0
  for (const nodes of [0, 1, 50, 51, 99, 100, 99, 81, 100, 79, 499, 500, 5000, 401, 399, 41, 40]) {
    spread = startSpreadOf(nodes, spread)
    seen.push(manifest(spread).startSpreadMs ?? 0)
  }
  expect(seen).toEqual([
    ...[0, 0, 0, 1000, 1000, 2000, 2000, 2000, 2000, 1000, 8000, 10_000, 10_000, 10_000, 8000, 1000, 0],
  ])
  expect(manifest(0)).not.toHaveProperty('startSpreadMs')
})
