import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { parse, stringify } from 'yaml'
import { compileFiles } from '../compile/config.ts'
import { convert } from './convert.ts'

const folder = mkdtempSync(join(tmpdir(), 'penstock-convert-'))
afterAll(() => rmSync(folder, { recursive: true }))

const agentConfig = parse(`
data_dir: /var/lib/vector
sources:
  k8s_logs: { type: kubernetes_logs, glob_minimum_cooldown_ms: 2000 }
transforms:
  addTeam:
    type: remap
    inputs: [k8s_*]
    source: |
      .team = "$$5"
      .pod = .kubernetes.pod_name
      .other = .x.kubernetes
sinks:
  store:
    type: loki
    inputs: [addTeam]
    endpoint: https://loki:3100
    labels: { pod: "{{ kubernetes.pod_name }}", team: "{{ team }}" }
    encoding: { codec: json }
    auth: { strategy: basic, user: agent, password: "\${LOKI_PASSWORD}" }
tests:
  - name: adds the team
    inputs: [{ insert_at: addTeam, type: log, log_fields: { message: hi } }]
    outputs: [{ extract_from: addTeam, conditions: [{ type: vrl, source: '.team == "$$5"' }] }]
`)

test('an agent configuration becomes a Pipeline that compiles, under our own names', () => {
  const { resource, problems } = convert(agentConfig, { file: 'vector.yaml', name: 'shop-logs', namespace: 'shop' })

  expect(resource).toEqual({
    apiVersion: 'penstock.dev/v1alpha1',
    kind: 'Pipeline',
    metadata: { name: 'shop-logs', namespace: 'shop' },
    spec: {
      secrets: [{ alias: 'env', secretName: 'shop-logs-environment' }],
      sources: [{ name: 'k8s-logs', type: 'orchestrator_logs', config: { glob_minimum_cooldown_ms: 2000 } }],
      transforms: [
        {
          name: 'addteam',
          type: 'remap',
          inputs: ['k8s-*'],
          config: { source: '.team = "$5"\n.pod = .orchestrator.pod_name\n.other = .x.kubernetes\n' },
        },
      ],
      sinks: [
        {
          name: 'store',
          type: 'log_aggregator',
          inputs: ['addteam'],
          config: {
            endpoint: 'https://loki:3100',
            labels: { pod: '{{ orchestrator.pod_name }}', team: '{{ team }}' },
            encoding: { codec: 'json' },
            auth: { strategy: 'basic', user: 'agent', password: 'SECRET[env.LOKI_PASSWORD]' },
          },
        },
      ],
      tests: [
        {
          name: 'adds the team',
          insertAt: 'addteam',
          input: { log: { message: 'hi' } },
          expect: [{ at: 'addteam', assert: '.team == "$5"' }],
        },
      ],
    },
  })
  expect(problems.map(({ path, message, help }) => [path, message, help])).toEqual([
    ['data_dir', '`data_dir` is a setting of a whole agent and is left out', 'The Agent sets it: `spec.node.dataDir`.'],
    ['k8s_logs', 'Component `k8s_logs` is called `k8s-logs` in the Pipeline', undefined],
    ['addTeam', 'Component `addTeam` is called `addteam` in the Pipeline', undefined],
    [
      'spec.secrets',
      'Variables of the environment became SECRET[env.NAME]: a resource is literal text',
      'Create the Secret: kubectl create secret generic shop-logs-environment -n shop --from-literal=LOKI_PASSWORD=VALUE',
    ],
  ])

  const file = join(folder, 'pipeline.yaml')
  const secret = {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: 'shop-logs-environment', namespace: 'shop' },
    stringData: { LOKI_PASSWORD: 'x' },
  }
  writeFileSync(file, `${stringify(resource)}---\n${stringify(secret)}`)
  expect(compileFiles([file], { ownMachine: false }).problems).toEqual([])
})

test('what is no component of ours, or nothing to read from, is an error', () => {
  const { resource, problems } = convert({ sinks: { out: { type: 'carrier_pigeon' } } }, { file: 'a.toml', name: 'x' })
  expect(resource).toBeUndefined()
  expect(problems.filter(({ severity }) => severity === 'error').map(({ path, message }) => [path, message])).toEqual([
    ['sinks.out.type', '`type` must be that of a sink; found "carrier_pigeon"'],
    ['sources', 'A Pipeline needs at least one of `sources`; the configuration has none'],
  ])
})
