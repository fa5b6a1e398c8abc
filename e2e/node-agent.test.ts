// The main use case on a real node: pods write lines, and the kubelet and containerd write them to files. The agent (a DaemonSet pod with the
// project's image) collects, enriches, transforms and filters them. The test reads both stores, and compares all fields with the API server
// and the node's log files.

import { randomUUID } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { parse, parseAllDocuments, stringify } from 'yaml'
import type { Cluster } from './cluster/cluster.ts'
import { hostAddress, missingForCluster, startCluster } from './cluster/cluster.ts'
import { until, within } from './command.ts'
import { buildImage, imageName } from './image.ts'
import { relay } from './relay.ts'
import { service } from './services/service.ts'
import type { Hit } from './stores.ts'
import { queryLoki, searchAll, searchApi } from './stores.ts'

const loki = service('loki')
const opensearch = service('opensearch')
const missing = missingForCluster(1) ?? loki.missing ?? opensearch.missing

// Unique for this run, because the stores may be shared.
const run = randomUUID()
const index = `node-agent-${run}`
const system = 'penstock-agent'

interface Pod {
  readonly metadata: {
    readonly name: string
    readonly namespace: string
    readonly uid: string
    readonly labels: Record<string, string>
    readonly annotations: Record<string, string>
    readonly ownerReferences?: readonly { readonly kind: string; readonly name: string }[]
  }
  readonly spec: { readonly nodeName: string }
  readonly status: {
    readonly phase: string
    readonly podIP: string
    readonly podIPs: readonly { readonly ip: string }[]
    readonly containerStatuses: readonly {
      readonly name: string
      readonly imageID: string
      readonly containerID: string
      readonly restartCount: number
    }[]
  }
}

interface Line {
  readonly time: string
  readonly stream: string
  readonly text: string
}

describe.skipIf(missing !== undefined)(`the agent on a node${missing === undefined ? '' : ` (${missing})`}`, () => {
  const resources = new AsyncDisposableStack()
  let cluster: Cluster
  let lokiUrl: string
  let searchUrl: string

  beforeAll(async () => {
    // Wait for all even if one fails, so that everything that has started ends with the test.
    const [image, ...servers] = await Promise.allSettled([
      buildImage('agent'),
      loki.start().then((started) => {
        lokiUrl = resources.use(started).url
      }),
      opensearch.start().then((started) => {
        searchUrl = resources.use(started).url
      }),
      startCluster({ nodes: 1, logMaxSize: '256Ki', logMaxFiles: 10 }).then((started) => {
        cluster = resources.use(started)
      }),
    ])
    for (const server of servers) if (server.status === 'rejected') throw server.reason
    if (image.status === 'rejected') throw image.reason
    await cluster.load(image.value)
    // Servers listen on loopback; pods connect to this machine through the bridge.
    const lokiRelay = resources.use(await relay(lokiUrl, { host: hostAddress }))
    const searchRelay = resources.use(await relay(searchUrl, { host: hostAddress }))

    // Names of pod and node labels would collide as index fields, so only searched fields are indexed.
    await searchApi(searchUrl, 'PUT', `/_index_template/${index}`, {
      index_patterns: [`${index}*`],
      priority: 500,
      template: {
        mappings: {
          dynamic: false,
          properties: {
            n: { type: 'long' },
            timestamp: { type: 'date_nanos' },
            orchestrator: { properties: { container_name: { type: 'keyword' }, pod_name: { type: 'keyword' } } },
          },
        },
      },
    })
    await cluster.apply(...(await agentObjects({ lokiEndpoint: lokiRelay.url, searchEndpoint: searchRelay.url })))
    await cluster
      .kubectl(['-n', system, 'rollout', 'status', 'daemonset/penstock-agent', ...within(90)])
      .catch(async (error) => {
        throw new Error(`The agent's pod is not ready.\n${await agentLog()}`, { cause: error })
      })
    await cluster.apply({
      apiVersion: 'v1',
      kind: 'Namespace',
      metadata: { name: 'shop', labels: { team: 'blue' } },
    })
    await until('the default service account', 30_000, async () =>
      cluster.kubectl(['-n', 'shop', 'get', 'serviceaccount', 'default']),
    )
  })
  afterAll(() => resources.disposeAsync())

  const agentLog = () =>
    cluster
      .kubectl(['-n', system, 'logs', 'daemonset/penstock-agent', '--tail', '60'])
      .catch((error: unknown) => String(error))

  const documents = (container: string, sortBy?: string): Promise<Hit[]> =>
    searchAll(searchUrl, index, sortBy, { term: { 'orchestrator.container_name': container } })

  const enough = (what: string, count: number, container: string, timeoutMs: number) =>
    until(what, timeoutMs, async () => {
      const hits = await documents(container)
      if (hits.length >= count) return hits
      throw new Error(`There are ${hits.length} of ${count} documents.`)
    }).catch(async (error) => {
      throw new Error(`${error}\n${error.cause}\nThe agent's log:\n${await agentLog()}`)
    })

  test('the agent logs the version of the API server without a warning', async () => {
    const { gitVersion } = JSON.parse(await cluster.kubectl(['get', '--raw', '/version']))
    const lines = (await cluster.kubectl(['-n', system, 'logs', 'daemonset/penstock-agent'])).split('\n')
    const versions = lines.filter((line) => line.includes('server_version'))
    expect(versions).toEqual([expect.stringContaining('Connected to the Kubernetes API server.')])
    expect(versions[0]).toContain(gitVersion)
  })

  test('documents in both stores have all fields, and the filter drops the right ones', {
    timeout: 180_000,
  }, async () => {
    // One write per line; containerd splits long lines into parts of 16 KiB.
    const program = `
      const say = (value) => process.stdout.write(JSON.stringify(value) + '\\n')
      say({ n: 1, level: 'info', message: 'hello Zażółć \\u{1f980}', ratio: 0.5, nested: { list: [1, 'two', null] } })
      say({ n: 2, level: 'debug', message: 'kept back by the filter' })
      process.stderr.write(JSON.stringify({ n: 3, level: 'warn', message: 'to standard error' }) + '\\n')
      say({ n: 4, level: 'info', message: 'x'.repeat(40000) })
      process.stdout.write('no JSON at all\\n')
      say({ n: 5, level: 'info', message: 'last' })
      setInterval(() => {}, 1000)
    `
    await cluster.apply({
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name: 'web', namespace: 'shop' },
      spec: {
        replicas: 1,
        selector: { matchLabels: { app: 'web' } },
        template: {
          metadata: {
            labels: { app: 'web', 'penstock.test/tier': 'front' },
            annotations: { 'penstock.test/note': 'with "quotes", and\nlines' },
          },
          spec: {
            terminationGracePeriodSeconds: 1,
            containers: [{ name: 'main', image: 'localhost/node:26', args: ['-e', program] }],
          },
        },
      },
    })

    const hits = await enough('the documents of pod web', 5, 'main', 60_000)

    const pod = await onlyPod('shop', 'app=web')
    const status = pod.status.containerStatuses[0]
    const file = `/var/log/pods/shop_${pod.metadata.name}_${pod.metadata.uid}/main/0.log`
    const written = await linesOf(pod, 'main')
    expect(written).toHaveLength(6)
    const nodeLabels = await labelsOf('node', 'node-1')
    const expected = written
      .filter((line) => !line.text.includes('"debug"'))
      .map((line) => ({
        ...(line.text.startsWith('{') ? JSON.parse(line.text) : { message: line.text, unparsed: true }),
        file,
        stream: line.stream,
        timestamp: nanoseconds(line.time),
        source_type: 'orchestrator_logs',
        orchestrator: {
          container_id: status?.containerID,
          container_image: 'localhost/node:26',
          container_image_id: status?.imageID,
          container_name: 'main',
          pod_annotations: pod.metadata.annotations,
          pod_ip: pod.status.podIP,
          pod_ips: pod.status.podIPs.map(({ ip }) => ip),
          pod_labels: pod.metadata.labels,
          pod_name: pod.metadata.name,
          pod_namespace: 'shop',
          pod_node_name: 'node-1',
          pod_owner: `ReplicaSet/${pod.metadata.ownerReferences?.[0]?.name}`,
          pod_uid: pod.metadata.uid,
          namespace_labels: { team: 'blue', 'kubernetes.io/metadata.name': 'shop' },
          node_labels: nodeLabels,
        },
      }))
    // Compare instants instead of text, because the kubelet drops trailing zeros of the fraction.
    const arrived = hits.map(({ _source }) => ({ ..._source, timestamp: nanoseconds(String(_source['timestamp'])) }))
    const byTime = (a: { timestamp: string }, b: { timestamp: string }) =>
      BigInt(a.timestamp) < BigInt(b.timestamp) ? -1 : 1
    expect(arrived.sort(byTime)).toEqual(expected.sort(byTime))

    const entries = await until('the entries in Loki', 20_000, async () => {
      const found = await queryLoki(lokiUrl, `{container="main", run="${run}"}`, run)
      return found.length >= 5 && found
    })
    const withoutTimestamp = expected.map(({ timestamp: _, ...rest }) => rest)
    expect(entries.map((entry) => JSON.parse(entry.line))).toEqual(withoutTimestamp)
    expect(entries.map((entry) => entry.at)).toEqual(expected.map((event) => event.timestamp))
    for (const [n, entry] of entries.entries()) {
      expect(entry.labels).toEqual({
        run,
        namespace: 'shop',
        pod: pod.metadata.name,
        container: 'main',
        stream: expected[n]?.stream,
        label_app: 'web',
        label_penstock_test_tier: 'front',
        label_pod_template_hash: pod.metadata.labels['pod-template-hash'],
      })
    }
  })

  test('rotation by the kubelet loses and duplicates nothing', { timeout: 600_000 }, async () => {
    const count = 24_000
    // About 300 KB/s for 20 s: the kubelet checks every 3 s, and each time the file exceeds its limit.
    const program = `
      const filler = 'abcdefghijklmnopqrstuvwxyz'.repeat(8)
      let n = 0
      const more = () => {
        let text = ''
        for (let i = 0; i < 120 && n < ${count}; i++) text += JSON.stringify({ n: n++, level: 'info', message: filler }) + '\\n'
        process.stdout.write(text)
        if (n < ${count}) setTimeout(more, 100)
        else setInterval(() => {}, 1000)
      }
      more()
    `
    await cluster.apply({
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'noisy', namespace: 'shop', labels: { app: 'noisy' } },
      spec: {
        terminationGracePeriodSeconds: 1,
        containers: [{ name: 'noisy', image: 'localhost/node:26', args: ['-e', program] }],
      },
    })

    // Timeouts are long, because other tests may keep the machine busy.
    const hits = await enough('every line of pod noisy', count, 'noisy', 150_000)

    const pod = await onlyPod('shop', 'app=noisy')
    const files = await readdir(podFolder(pod, 'noisy'))
    expect(
      files.filter((name) => /^0\.log\.\d/.test(name)).length,
      `rotated files: ${files.join(' ')}`,
    ).toBeGreaterThanOrEqual(3)
    const numbers = hits.map((hit) => Number(hit._source['n'])).sort((a, b) => a - b)
    expect(numbers.length, 'documents in the search engine').toBe(count)
    expect(
      numbers.every((n, at) => n === at),
      'each number once',
    ).toBe(true)
    const entries = await until('every line in Loki', 30_000, async () => {
      const found = await queryLoki(lokiUrl, `{container="noisy", run="${run}"}`, run)
      return found.length >= count && found
    })
    expect(new Set(entries.map((entry) => JSON.parse(entry.line).n)).size, 'entries in Loki').toBe(count)
  })

  test('lines written before a pod is deleted arrive with its metadata', { timeout: 600_000 }, async () => {
    await cluster.apply({
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'brief', namespace: 'shop', labels: { app: 'brief' } },
      spec: {
        restartPolicy: 'Never',
        terminationGracePeriodSeconds: 1,
        containers: [
          {
            name: 'brief',
            image: 'localhost/node:26',
            args: [
              '-e',
              `for (let n = 0; n < 100; n++) console.log(JSON.stringify({ n, level: 'info', message: 'brief' }))`,
            ],
          },
        ],
      },
    })
    await until('the end of pod brief', 60_000, async () =>
      (await onlyPod('shop', 'app=brief')).status.phase === 'Succeeded' ? true : undefined,
    )
    await cluster.kubectl(['-n', 'shop', 'delete', 'pod', 'brief', '--wait=false'])

    const hits = await enough('the lines of pod brief', 100, 'brief', 30_000)

    expect(hits.map((hit) => Number(hit._source['n'])).sort((a, b) => a - b)).toEqual(
      Array.from({ length: 100 }, (_, n) => n),
    )
    for (const hit of hits) {
      const { pod_name, pod_labels } = hit._source['orchestrator'] as Record<string, unknown>
      expect({ pod_name, pod_labels }).toEqual({ pod_name: 'brief', pod_labels: { app: 'brief' } })
    }
  })

  async function onlyPod(namespace: string, selector: string): Promise<Pod> {
    const list = JSON.parse(await cluster.kubectl(['-n', namespace, 'get', 'pods', '-l', selector, '-o', 'json']))
    expect(list.items).toHaveLength(1)
    return list.items[0]
  }

  async function labelsOf(kind: string, name: string): Promise<Record<string, string>> {
    return JSON.parse(await cluster.kubectl(['get', kind, name, '-o', 'json'])).metadata.labels
  }

  const podFolder = (pod: Pod, container: string) =>
    join(
      cluster.folder,
      `node-1/var/log/pods/${pod.metadata.namespace}_${pod.metadata.name}_${pod.metadata.uid}`,
      container,
    )

  /** The lines of a container as written by its runtime, including rotated files, with parts joined. */
  async function linesOf(pod: Pod, container: string): Promise<Line[]> {
    const folder = podFolder(pod, container)
    const names = (await readdir(folder)).sort((a, b) => (a === '0.log' ? 1 : b === '0.log' ? -1 : a < b ? -1 : 1))
    const found: Line[] = []
    const parts = new Map<string, Line>()
    for (const name of names) {
      const bytes = await readFile(join(folder, name))
      const text = (name.endsWith('.gz') ? gunzipSync(bytes) : bytes).toString()
      for (const raw of text.split('\n')) {
        if (raw === '') continue
        const [time = '', stream = '', flag = '', ...rest] = raw.split(' ')
        const before = parts.get(stream)
        const line =
          before === undefined
            ? { time, stream, text: rest.join(' ') }
            : { ...before, text: before.text + rest.join(' ') }
        if (flag === 'P') {
          parts.set(stream, line)
        } else {
          parts.delete(stream)
          found.push(line)
        }
      }
    }
    return found
  }
})

/** An instant in nanoseconds since the epoch, as text. */
function nanoseconds(time: string): string {
  const [seconds = '', fraction = ''] = time.replace('Z', '').split('.')
  return `${Date.parse(`${seconds}Z`) / 1000}${fraction.padEnd(9, '0')}`
}

interface ManifestObject {
  readonly kind: string
}

interface ConfigMap extends ManifestObject {
  readonly data: Readonly<Record<string, string>>
}

interface DaemonSet extends ManifestObject {
  readonly spec: {
    readonly template: {
      readonly spec: {
        readonly containers: { image: string }[]
        readonly volumes: { name: string; hostPath?: { path: string } }[]
      }
    }
  }
}

/** The manifest of `examples/agent-alone` with typical changes of a user: another image, and a configuration with two stores. */
async function agentObjects(endpoints: { lokiEndpoint: string; searchEndpoint: string }): Promise<object[]> {
  const file = await readFile(join(import.meta.dirname, '../examples/agent-alone/agent.yaml'), 'utf8')
  const objects = parseAllDocuments(file).map((document) => document.toJS() as ManifestObject)
  return objects.map((object) => {
    if (object.kind === 'ConfigMap') {
      const config = changedConfig(parse((object as ConfigMap).data['agent.yaml'] ?? ''), endpoints)
      return { ...object, data: { 'agent.yaml': stringify(config) } }
    }
    if (object.kind !== 'DaemonSet') return object
    const { containers, volumes } = (object as DaemonSet).spec.template.spec
    for (const container of containers) container.image = imageName('agent')
    // A folder that is removed with the node.
    for (const { name, hostPath } of volumes) if (name === 'data' && hostPath) hostPath.path = '/run/penstock'
    return object
  })
}

interface Config {
  readonly sinks: { readonly loki: { readonly labels: object } }
}

function changedConfig(config: Config, { lokiEndpoint, searchEndpoint }: Parameters<typeof agentObjects>[0]): object {
  const { loki } = config.sinks
  return {
    ...config,
    transforms: {
      parsed: {
        type: 'remap',
        inputs: ['pods'],
        source: `
          parsed, error = parse_json(string!(.message))
          if error == null && is_object(parsed) {
            . = merge!(., parsed)
          } else {
            .unparsed = true
          }
        `,
      },
      kept: {
        type: 'filter',
        inputs: ['parsed'],
        condition: '.level != "debug" && .orchestrator.pod_namespace == "shop"',
      },
    },
    sinks: {
      store: {
        ...loki,
        inputs: ['kept'],
        endpoint: lokiEndpoint,
        tenant_id: run,
        labels: { run, ...loki.labels, stream: '{{ stream }}', 'label_*': '{{ orchestrator.pod_labels }}' },
        compression: 'gzip',
      },
      search: {
        type: 'search_engine',
        inputs: ['kept'],
        endpoints: [searchEndpoint],
        bulk: { index },
        compression: 'gzip',
      },
    },
  }
}
