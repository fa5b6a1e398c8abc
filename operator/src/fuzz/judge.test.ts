import type { Bundle } from '@penstock/agent/bundle'
import { partsOf } from '@penstock/agent/testing/operator'
import { expect, test } from 'vitest'
import { compileJob } from '../compile/job.ts'
import { textOf } from '../render/bundle.ts'
import { fragmentOf } from '../render/fragment.ts'
import { judge } from './judge.ts'
import { jobOf, object, tenant, victim, victimPipeline } from './world.ts'

type Tree = Record<string, Record<string, Record<string, unknown>>>

/** A Pipeline with all features that the judge checks. */
const spec = {
  secrets: [{ alias: 'own', secretName: 'creds' }],
  sources: [{ name: 'app', type: 'orchestrator_logs', config: { max_line_bytes: 65536 } }],
  transforms: [{ name: 'parse', type: 'remap', config: { source: '.a = 1' } }],
  sinks: [
    {
      name: 'out',
      type: 'http',
      config: {
        uri: 'http://x.example/',
        encoding: { codec: 'json' },
        request: { headers: { a: 'SECRET[own.token]', b: 'plain' } },
        batch: { max_events: 10 },
        tls: { ca_file: '-----BEGIN CERTIFICATE-----\nMA==\n-----END CERTIFICATE-----' },
      },
    },
    { name: 'store', ref: { kind: 'ClusterSink', name: 'store' } },
  ],
}

async function artifactOf(pipeline: Parameters<typeof jobOf>[0]) {
  const { artifact, problems } = await compileJob(jobOf(pipeline, [], undefined))
  if (artifact === undefined) throw new Error(JSON.stringify(problems))
  return artifact
}

const victimArtifact = await artifactOf(victimPipeline)
const artifact = await artifactOf(object('Pipeline', tenant.pipeline, spec, tenant.namespace))
const bundleOf = (artifacts: readonly (typeof artifact)[]) =>
  JSON.parse(textOf(artifacts.map(fragmentOf)).toString()) as Bundle
const alone = partsOf(bundleOf([victimArtifact])).get(victim.id)
if (alone === undefined) throw new Error('The victim has no part of its own bundle.')

const verdict = (change: (tree: Tree) => void) => {
  const bundle = bundleOf([victimArtifact, artifact])
  change(bundle as unknown as Tree)
  return judge(bundle, alone, false, '/nowhere')
}
const at = (tree: Tree, list: string, id: string) => tree[list]?.[`${tenant.id}/${id}`] as Record<string, unknown>
const victimKey = victimArtifact.secretRefs[0]?.key

test('an unchanged bundle has no problem', () => {
  expect(verdict(() => {})).toBeUndefined()
})

const changes: Readonly<Record<string, readonly [(tree: Tree) => void, string]>> = {
  "another tenant's events": [
    (tree) => Object.assign(at(tree, 'sinks', 'out'), { inputs: ['shop/checkout/app'] }),
    'input',
  ],
  'a wildcard': [(tree) => Object.assign(at(tree, 'sinks', 'out'), { inputs: ['evil/p/*'] }), 'input'],
  "another tenant's secret": [
    (tree) => Object.assign(at(tree, 'sinks', 'out'), { request: { headers: { a: { $secret: victimKey } } } }),
    'not listed',
  ],
  "a secret of the platform in the tenant's own sink": [
    (tree) => {
      const { auth } = at(tree, 'sinks', 'store') as { auth: { token: unknown } }
      Object.assign(at(tree, 'sinks', 'out'), { request: { headers: { a: auth.token } } })
    },
    'secret of the platform',
  ],
  "text of the victim's": [
    (tree) => Object.assign(at(tree, 'sinks', 'out'), { uri: 'http://victims-own.internal/' }),
    'text of',
  ],
  'another namespace': [
    (tree) => {
      const { subscriptions } = tree['hub'] as unknown as { subscriptions: { namespaces: string[] }[] }
      for (const each of subscriptions) each.namespaces = ['evil', 'shop']
    },
    "the victim's part",
  ],
  'a component of nobody': [
    (tree) => Object.assign(tree['sinks'] ?? {}, { 'evil/q/out': { type: 'blackhole' } }),
    'in no pipeline',
  ],
  'no restriction': [(tree) => delete tree['pipelines']?.[tenant.id]?.['restricted'], 'not restricted'],
  'a URL of a file': [(tree) => Object.assign(at(tree, 'sinks', 'out'), { uri: '\u0001FI\nLE:/x' }), 'a URL of a file'],
  'an address of the link': [
    (tree) => Object.assign(at(tree, 'sinks', 'out'), { uri: 'http://[64:ff9b::a9fe:a9fe]/' }),
    'a denied address',
  ],
  'this machine, by another spelling': [
    (tree) => Object.assign(at(tree, 'sinks', 'out'), { uri: 'ht\ttp:\\\\0x7f.1' }),
    'denied',
  ],
  'too many events': [(tree) => Object.assign(at(tree, 'sinks', 'out'), { batch: { max_events: 1e9 } }), 'above'],
  'another enforced tenant': [
    (tree) => Object.assign(at(tree, 'sinks', 'store'), { tenant_id: 'shop' }),
    'has the tenant',
  ],
  'another enforced label': [
    (tree) => Object.assign(at(tree, 'sinks', 'store'), { labels: { cluster: 'x' } }),
    'lacks the enforced',
  ],
  'an option that the agent does not know': [
    (tree) => Object.assign(at(tree, 'sinks', 'out'), { nope: 1 }),
    'refuses it',
  ],
  'a call of the host': [
    (tree) => Object.assign(at(tree, 'transforms', 'parse'), { source: '.a = get_hostname!()' }),
    'refuses it',
  ],
}

test.each(Object.entries(changes))('%s is a problem', (_, [change, problem]) => {
  expect(verdict(change)).toContain(problem)
})
