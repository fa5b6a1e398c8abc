// The alerts and dashboards of the chart with a real Prometheus that scrapes a real operator and agent: the server accepts all expressions, and
// they find the series of this scenario.

import { appendFileSync, mkdirSync, readFileSync, renameSync, statfsSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort } from '@penstock/agent/testing/free-port'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { startAgent } from '../agent.ts'
import { type Cluster, missingForCluster, startCluster } from '../cluster/cluster.ts'
import { root } from '../command.ts'
import { type RunningService, service } from '../services/service.ts'
import { queryPrometheus } from '../stores.ts'
import { Api, Fleet } from './fleet.ts'
import { apiVersion, eventually, heartbeatUrl, OperatorProcess, prepare, system } from './process.ts'
import { Receiver } from './receiver.ts'

vi.setConfig({ testTimeout: 600_000, hookTimeout: 600_000 })

const prometheus = service('prometheus')
// An existing Prometheus cannot scrape targets that only this machine can reach.
const foreign = process.env['PENSTOCK_TEST_PROMETHEUS_URL']
  ? 'prometheus: the configuration of an existing server cannot be changed'
  : undefined
const missing = missingForCluster(0) ?? prometheus.missing ?? foreign

const files = join(root, 'charts/penstock/files')
const readJson = (path: string) => JSON.parse(readFileSync(join(files, path), 'utf8'))

interface Dashboard {
  readonly title: string
  readonly panels: readonly { readonly title: string; readonly targets: readonly { readonly expr: string }[] }[]
  readonly templating: { readonly list: readonly Variable[] }
}
interface Variable {
  readonly name: string
  readonly regex?: string
  readonly query: string | { readonly query: string }
}
interface Rule {
  readonly alert: string
  readonly expr: string
}
const dashboards: readonly Dashboard[] = ['agents', 'operator'].map((name) =>
  readJson(`dashboards/penstock-${name}.json`),
)
const rules: readonly Rule[] = readJson('alerts.json').groups[0].rules

/** Replaces variables as Grafana does if all values are selected. */
const withAll = (expr: string) => expr.replaceAll(/\$\w+/g, '.*')

const panels = dashboards.flatMap(({ title, panels: all }) =>
  all.flatMap((panel) => panel.targets.map(({ expr }) => [`${title} / ${panel.title}`, withAll(expr)] as const)),
)
const variables = dashboards.flatMap(({ title, templating }) =>
  templating.list.flatMap(({ name, query, regex = '' }) => {
    const [, selector = '', label = ''] =
      typeof query === 'string' ? [] : (/^label_values\((.*), (\w+)\)$/.exec(query.query) ?? [])
    return selector === '' ? [] : [{ name: `${title} $${name}`, selector: withAll(selector), label, regex }]
  }),
)

/** Alerts whose expressions match in the scenario. All others must not match. */
const holding = [
  'PenstockEventsLost',
  'PenstockLagging',
  'PenstockLogsLost',
  'PenstockSinkErrors',
  // The disk of this machine is also that of the node.
  ...(isDiskFillingUp() ? ['PenstockDiskFillingUp'] : []),
]

describe.skipIf(missing !== undefined)(`alerts and dashboards${missing === undefined ? '' : ` (${missing})`}`, () => {
  const resources = new AsyncDisposableStack()
  let server: RunningService
  let cluster: Cluster

  beforeAll(async () => {
    server = resources.use(await prometheus.start())
    cluster = resources.use(await startCluster())
    await prepare(cluster, 'shop')
    const api = resources.use(await Api.start(cluster))
    const receiver = resources.use(await Receiver.start())
    const [heartbeats, agentPort, alonePort] = [await freePort(), await freePort(), await freePort()]
    const operator = resources.use(
      OperatorProcess.start({
        kubeconfig: cluster.kubeconfig,
        heartbeats,
        args: ['--leader-election', 'false', '--webhook-address', '0.0.0.0:0'],
      }),
    )
    await operator.leading()
    const fleet = resources.use(
      await Fleet.start(api, {
        agent: 'node',
        nodes: 1,
        operatorUrl: heartbeatUrl(heartbeats),
        kubeconfig: cluster.kubeconfig,
        args: ['--api-address', `127.0.0.1:${agentPort}`, '--max-rotated-files', '1'],
      }),
    )
    resources.use(
      await startAgent({
        api: { enabled: true, address: `127.0.0.1:${alonePort}`, metric_prefix: 'penstock_' },
        sources: { in: { type: 'demo_logs', format: 'json', interval: 0.1 } },
        sinks: { out: { type: 'blackhole', inputs: ['in'] } },
      }),
    )
    const operatorPort = Number(/"port":(\d+)/.exec(operator.log)?.[1])
    await scrape(server, {
      'penstock-system/penstock-operator': operatorPort,
      'penstock-system/penstock-node': agentPort,
      'elsewhere/agent': alonePort,
    })
    await applyPipelines(cluster, receiver)
    await fillLogs(api, fleet)
    await pauseRollout(cluster)
  })
  afterAll(() => resources[Symbol.asyncDispose]())

  const ask = async (path: string, query: Record<string, string>) => {
    const answer = await fetch(`${server.url}/api/v1/${path}?${new URLSearchParams(query)}`)
    return (await answer.json()) as { status: string; error?: string; data: never }
  }
  const resultOf = async (expr: string): Promise<readonly unknown[]> => {
    const { status, error, data } = await ask('query', { query: expr })
    expect({ status, error }, expr).toEqual({ status: 'success' })
    return (data as { result: readonly unknown[] }).result
  }

  test.each(panels)('%s shows data', async (_, expr) => {
    await eventually(async () => expect(await resultOf(expr), expr).not.toEqual([]), 90_000)
  })

  test.each(variables)('$name has values', async ({ selector, label, regex }) => {
    await eventually(async () => {
      const { data } = await ask(`label/${label}/values`, { 'match[]': selector })
      const [, source = ''] = /^\/(.*)\/$/.exec(regex) ?? []
      expect((data as string[]).filter((value) => new RegExp(source).test(value))).not.toEqual([])
    })
  })

  test('Prometheus evaluates each alert', async () => {
    await eventually(async () => {
      const { data } = await ask('rules', { type: 'alert' })
      const [group] = (data as { groups: { rules: { name: string; health: string; lastError?: string }[] }[] }).groups
      expect(group?.rules.map(({ name, health, lastError }) => ({ name, health, lastError }))).toEqual(
        rules.map(({ alert }) => ({ name: alert, health: 'ok', lastError: undefined })),
      )
    })
  })

  test.each(rules)('the expression of $alert matches exactly if the scenario expects it', async (rule) => {
    if (holding.includes(rule.alert))
      await eventually(async () => expect(await resultOf(rule.expr)).not.toEqual([]), 90_000)
    else expect(await resultOf(rule.expr)).toEqual([])
  })

  test('with a prefix, metrics have other names, which alerts do not match', async () => {
    const job = 'job="elsewhere/agent"'
    const sent = await eventually(async () => {
      const found = await queryPrometheus(server.url, `penstock_component_sent_events_total{${job}}`)
      expect(found).not.toEqual([])
      return found
    })
    expect(sent.join('\n')).toContain('component_id="out"')
    expect(await resultOf(`{${job}, __name__!~"penstock_.*|up|scrape_.*"}`)).toEqual([])
  })
})

function isDiskFillingUp(): boolean {
  const { bavail, blocks } = statfsSync(tmpdir())
  return bavail / blocks < 0.15
}

/** Configures Prometheus to scrape targets on loopback by job name, and to evaluate the alerts. */
async function scrape(server: RunningService, jobs: Readonly<Record<string, number>>): Promise<void> {
  const config = server.variables['PENSTOCK_TEST_PROMETHEUS_CONFIG']
  if (config === undefined) throw new Error('The Prometheus recipe does not contain the path of its configuration.')
  writeFileSync(
    config,
    JSON.stringify({
      global: { scrape_interval: '1s', evaluation_interval: '1s' },
      rule_files: [join(files, 'alerts.json')],
      scrape_configs: Object.entries(jobs).map(([name, port]) => ({
        job_name: name,
        static_configs: [{ targets: [`127.0.0.1:${port}`], labels: { cluster: 'test', node: 'node-0000' } }],
      })),
    }),
  )
  const answer = await fetch(`${server.url}/-/reload`, { method: 'POST' })
  if (!answer.ok) throw new Error(`Prometheus rejects its configuration: ${await answer.text()}`)
}

/** Pipelines that deliver and filter, fail at the destination, drop because of a limit, are slow, and are invalid. */
async function applyPipelines(cluster: Cluster, receiver: Receiver): Promise<void> {
  const pipeline = (name: string, spec: object) => ({
    apiVersion,
    kind: 'Pipeline',
    metadata: { name, namespace: 'shop' },
    spec: { sources: [source(name)], sinks: [sink(name)], ...spec },
  })
  const source = (pod: string) => ({
    name: 'app',
    type: 'orchestrator_logs',
    selector: { pods: { matchLabels: { app: pod } } },
  })
  const sink = (name: string, more: object = {}) => ({
    name: 'out',
    type: 'http',
    config: {
      uri: `${receiver.url}/${name}`,
      encoding: { codec: 'json' },
      batch: { timeout_secs: 0.2 },
      healthcheck: false,
      request: { retry_initial_backoff_secs: 1, retry_max_duration_secs: 1, retry_attempts: 1 },
      ...more,
    },
  })
  receiver.down.add('/failing')
  await cluster.apply(
    pipeline('fine', {
      transforms: [{ name: 'keep', type: 'filter', config: { condition: '.message != "drop"' } }],
      sinks: [sink('fine', { buffer: { type: 'disk', max_size: 268_435_488 } })],
    }),
    pipeline('failing', {}),
    pipeline('limited', { limits: { perContainer: { linesPerSecond: 1, onLimit: 'Drop' } } }),
    pipeline('slow', {
      // A limit applies only after a whole read.
      sources: [{ ...source('slow'), config: { max_read_bytes: 1024 } }],
      limits: { perContainer: { linesPerSecond: 1, onLimit: 'Lag' } },
    }),
    pipeline('broken', { transforms: [{ name: 'parse', type: 'remap', config: { source: '.a = ' } }] }),
  )
}

/** Pods with lines for each Pipeline. The files of the slow one are rotated before they are read. */
async function fillLogs(api: Api, fleet: Fleet): Promise<void> {
  const [member] = fleet.members
  if (member === undefined) throw new Error('There is no node.')
  const files: Record<string, string> = {}
  for (const name of ['fine', 'failing', 'limited', 'slow']) {
    const made = await api.request<{ metadata: { uid: string } }>('POST', '/api/v1/namespaces/shop/pods', {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name, labels: { app: name } },
      spec: { nodeName: member.node, containers: [{ name: 'app', image: 'app' }], automountServiceAccountToken: false },
    })
    const running = { name: 'app', image: 'app', imageID: 'app@1', containerID: 'containerd://1', ready: true }
    await api.request(
      'PATCH',
      `/api/v1/namespaces/shop/pods/${name}/status`,
      { status: { phase: 'Running', containerStatuses: [{ ...running, restartCount: 0, state: { running: {} } }] } },
      'application/merge-patch+json',
    )
    const folder = join(member.folder, 'logs', `shop_${name}_${made.metadata.uid}`, 'app')
    mkdirSync(folder, { recursive: true })
    files[name] = join(folder, '0.log')
  }
  // From twenty minutes ago, so that the sources lag far behind.
  const at = new Date(Date.now() - 1_200_000).toISOString()
  const write = (name: string, texts: readonly string[]) =>
    appendFileSync(files[name] ?? '', texts.map((text) => `${at} stdout F ${text}\n`).join(''))
  // The agent identifies a file by its first line.
  const linesOf = (file: number) => Array.from({ length: 500 }, (_, line) => `${file}.${line}`)
  write('slow', linesOf(0))
  await eventually(async () => {
    for (const name of ['fine', 'failing', 'limited']) write(name, ['keep', 'drop', 'keep'])
    const { items } = await api.get<{ items: { status?: { conditions?: { type: string; status: string }[] } }[] }>(
      `/apis/${apiVersion}/namespaces/shop/pipelines`,
    )
    const programmed = items.filter(({ status }) =>
      status?.conditions?.some((each) => each.type === 'Programmed' && each.status === 'True'),
    )
    expect(programmed).toHaveLength(4)
  }, 120_000)
  for (let round = 0; round < 10; round++) {
    for (const name of ['fine', 'failing', 'limited']) write(name, ['keep', 'drop', 'keep'])
    await new Promise((done) => setTimeout(done, 500))
  }
  for (const rotation of [1, 2, 3]) {
    renameSync(files['slow'] ?? '', `${files['slow']}.20260101-00000${rotation}`)
    write('slow', linesOf(rotation))
    await new Promise((done) => setTimeout(done, 3000))
  }
}

/** A waiting rollout: a new version of a Pipeline that no agent may run yet. */
async function pauseRollout(cluster: Cluster): Promise<void> {
  const patch = (args: readonly string[], spec: object) =>
    cluster.kubectl(['patch', ...args, '--type=merge', '-p', JSON.stringify({ spec })])
  // A change reaches the only node as a canary. Its Secrets are not mounted again here, so the change stays in progress.
  await patch(['agents.penstock.dev', 'node', '-n', system], { configDelivery: 'Mounted', rollout: { paused: true } })
  await patch(['pipelines.penstock.dev', 'limited', '-n', 'shop'], { limits: { perContainer: { linesPerSecond: 2 } } })
}
