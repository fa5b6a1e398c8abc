// Installs the chart as a user would, on real nodes, with images from the project's Dockerfiles: setup and checks for tests.

import type { Cluster, ClusterOptions } from './cluster/cluster.ts'
import { startCluster } from './cluster/cluster.ts'
import { command, patience, until, within } from './command.ts'
import { helm, prepareHelm } from './helm.ts'
import { buildImage, imageName } from './image.ts'

export const system = 'penstock-system'
/** A second address of this machine on the nodes' bridge, because Pipelines may not send to the address of the API server. */
export const destination = '10.77.0.2'

const image = (repository: string) => ({ repository: repository.split(':')[0], tag: repository.split(':')[1] })

/** Chart values: the images of this checkout, small resource requests, and faster reports and rollouts than the defaults. */
export const values = {
  image: image(imageName('operator')),
  agentImage: image(imageName('agent')),
  tenantAgents: { enabled: true },
  resources: { requests: { cpu: '20m', memory: '128Mi' } },
  heartbeatPeriod: '5s',
  agents: [
    {
      name: 'node',
      spec: {
        mode: 'Node',
        pipelines: { namespaceSelector: {}, clusterPipelines: { selector: {} } },
        resources: { requests: { cpu: '20m', memory: '64Mi' }, limits: { memory: '256Mi' } },
        // One node first, then all.
        rollout: { canary: { percent: 1, minNodes: 1, bake: '5s' }, step: { percent: 100, bake: '1s' } },
      },
    },
  ],
}

/** Starts a cluster with the images, and other resources of a test in parallel; `resources` stops all of them. */
export async function startInstallable(
  resources: AsyncDisposableStack,
  options: ClusterOptions,
  ...parallel: readonly Promise<unknown>[]
): Promise<{ readonly cluster: Cluster; readonly archives: readonly string[] }> {
  // Wait for all even if one fails, so that everything that has started ends with the test.
  const [images, cluster, ...others] = await Promise.allSettled([
    buildImage('operator').then(async (operator) => [operator, await buildImage('agent')]),
    startCluster(options).then((running) => resources.use(running)),
    prepareHelm(),
    ...parallel,
  ])
  if (images.status === 'rejected') throw images.reason
  if (cluster.status === 'rejected') throw cluster.reason
  for (const other of others) if (other.status === 'rejected') throw other.reason
  for (const archive of images.value) await cluster.value.load(archive)
  await command('ip', ['addr', 'add', `${destination}/24`, 'dev', 'penstock0'])
  return { cluster: cluster.value, archives: images.value }
}

interface AgentPod {
  readonly metadata: { readonly name: string; readonly uid: string }
  readonly spec: { readonly nodeName: string }
  readonly status: { readonly containerStatuses: readonly { readonly restartCount: number }[] }
}

/** Actions on a cluster with the chart. */
export function userOf(clusterNow: () => Cluster) {
  const kubectl = (...args: string[]) => clusterNow().kubectl(args)
  const helmHere = (args: readonly string[], input = '') =>
    helm(args, { input, env: { KUBECONFIG: clusterNow().kubeconfig }, timeoutMs: patience * 300_000 })

  /** State for diagnosis if something does not arrive. */
  async function scene(): Promise<string> {
    const look = (...args: string[]) => kubectl(...args).catch((error: unknown) => String(error))
    return [
      await look('get', 'pods,plagent,pl', '-A', '-o', 'wide'),
      await look('-n', system, 'logs', '-l', 'app.kubernetes.io/name=penstock-operator', '--tail', '30', '--prefix'),
      await look('-n', system, 'logs', '-l', 'app.kubernetes.io/name=penstock-agent', '--tail', '30', '--prefix'),
      await look('get', 'pl,plagent', '-A', '-o', 'jsonpath={range .items[*]}{.metadata.name} {.status}{"\\n"}{end}'),
    ].join('\n---\n')
  }
  const withScene = async <T>(act: Promise<T>): Promise<T> =>
    act.catch(async (error: Error) => {
      throw new Error(`${error.message} ${error.cause ?? ''}\n${await scene()}`)
    })
  const waitFor = <T>(what: string, timeoutMs: number, attempt: () => Promise<T | false | undefined>) =>
    withScene(until(what, timeoutMs, attempt))
  const isReady = (kind: string, namespace: string, name: string, timeoutMs = 90_000) =>
    waitFor(`${kind} ${namespace}/${name} to be ready`, timeoutMs, async () => {
      const object = JSON.parse(await kubectl('-n', namespace, 'get', kind, name, '-o', 'json'))
      const ready = object.status?.conditions?.find((one: { type: string }) => one.type === 'Ready')
      return ready?.status === 'True' && object.status.observedGeneration === object.metadata.generation && object
    })
  const agentPods = async () => {
    const list = JSON.parse(
      await kubectl('-n', system, 'get', 'pods', '-l', 'app.kubernetes.io/instance=node', '-o', 'json'),
    )
    return (list.items as AgentPod[])
      .map((pod) => ({
        node: pod.spec.nodeName,
        name: pod.metadata.name,
        uid: pod.metadata.uid,
        restarts: pod.status.containerStatuses.map((one) => one.restartCount),
      }))
      .sort((left, right) => (left.node < right.node ? -1 : 1))
  }
  /** Nodes with an operator pod. */
  const operatorNodes = async () => {
    const list = JSON.parse(
      await kubectl('-n', system, 'get', 'pods', '-l', 'app.kubernetes.io/name=penstock-operator', '-o', 'json'),
    )
    return (list.items as AgentPod[]).map((pod) => pod.spec.nodeName)
  }
  /** Runs `helm` with values, and waits until the changes are ready. */
  const release = (
    verb: 'install' | 'upgrade',
    from: string,
    more: readonly string[] = [],
    given: object = values,
  ): Promise<string> => {
    const waiting = ['--values', '-', '--wait', ...within(240)]
    return withScene(helmHere([verb, 'penstock', from, '-n', system, ...more, ...waiting], JSON.stringify(given)))
  }
  return { kubectl, helmHere, withScene, waitFor, isReady, agentPods, operatorNodes, release }
}
