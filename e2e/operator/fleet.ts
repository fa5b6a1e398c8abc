// Agents on simulated nodes: Node objects, the pods that the real DaemonSet controller creates for them, and a real agent process per pod. This
// module replaces the kubelet: it mounts Secrets by exchanging a link, requests a token for the pod, restarts an ended process, updates the
// pod's status, and stops a deleted pod.

import { type ChildProcess, spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { project } from '@penstock/agent/testing/bundle'
import type { Cluster } from '../cluster/cluster.ts'
import { programOf } from '../program.ts'

export interface ObjectLike {
  readonly metadata: {
    readonly name: string
    readonly namespace?: string
    readonly uid?: string
    readonly resourceVersion?: string
    readonly generation?: number
    readonly labels?: Readonly<Record<string, string>>
    readonly annotations?: Readonly<Record<string, string>>
  }
  readonly spec?: Readonly<Record<string, unknown>> & { readonly nodeName?: string }
  readonly status?: Readonly<Record<string, unknown>>
  readonly data?: Readonly<Record<string, string>>
}

/** The API server over plain HTTP, through `kubectl proxy`. */
export class Api implements AsyncDisposable {
  readonly #proxy: ChildProcess
  readonly url: string

  private constructor(proxy: ChildProcess, url: string) {
    this.#proxy = proxy
    this.url = url
  }

  static async start(cluster: Pick<Cluster, 'kubeconfig' | 'kubectlPath'>): Promise<Api> {
    const proxy = spawn(cluster.kubectlPath, ['proxy', '--port=0', '--reject-paths=^$'], {
      env: { ...process.env, KUBECONFIG: cluster.kubeconfig },
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    const url = await new Promise<string>((done, failed) => {
      let text = ''
      proxy.stdout?.on('data', (part) => {
        text += part
        const address = /Starting to serve on (\S+)/.exec(text)?.[1]
        if (address !== undefined) done(`http://${address}`)
      })
      proxy.once('exit', () => failed(new Error(`kubectl proxy ended: ${text}`)))
    })
    return new Api(proxy, url)
  }

  get pid(): number {
    return this.#proxy.pid as number
  }

  get running(): boolean {
    return this.#proxy.exitCode === null && this.#proxy.signalCode === null
  }

  async request<T>(
    method: string,
    path: string,
    body?: unknown,
    type = 'application/json',
    accept = 'application/json',
  ): Promise<T> {
    for (let attempt = 0; ; attempt++) {
      const answer = await fetch(this.url + path, {
        method,
        headers: { accept, ...(body === undefined ? {} : { 'content-type': type }) },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      }).catch((error: Error) => {
        const { exitCode, signalCode } = this.#proxy
        const end = this.running ? '' : `; kubectl proxy has ended with ${exitCode ?? signalCode}`
        throw new Error(`${method} ${path}: ${error.message}${end}`, { cause: error })
      })
      const text = await answer.text()
      if (answer.ok) return JSON.parse(text) as T
      if (answer.status !== 429 || attempt === 20)
        throw new Error(`${method} ${path}: ${answer.status} ${text.slice(0, 500)}`)
      await new Promise((done) => setTimeout(done, 200))
    }
  }

  get<T = ObjectLike>(path: string): Promise<T> {
    return this.request<T>('GET', path)
  }

  async list(path: string): Promise<readonly ObjectLike[]> {
    return (await this.get<{ items: readonly ObjectLike[] }>(path)).items
  }

  /** Names and versions of the objects of a list, which is much less data. */
  async metadata(path: string): Promise<readonly Pick<ObjectLike, 'metadata'>[]> {
    const accept = 'application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1'
    const list = await this.request<{ items: readonly ObjectLike[] | null }>('GET', path, undefined, undefined, accept)
    return list.items ?? []
  }

  async find(path: string): Promise<ObjectLike | undefined> {
    try {
      return await this.get(path)
    } catch (error) {
      if (/: 404 /.test(String(error))) return undefined
      throw error
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (!this.running) return
    const ended = new Promise((done) => this.#proxy.once('exit', done))
    this.#proxy.kill()
    await ended
  }
}

const namespace = 'penstock-system'
const slots = { cfg: 8, sec: 4 }

export interface FleetOptions {
  /** The name of the Agent in penstock-system. */
  readonly agent: string
  readonly nodes: number
  /** The address for reports. */
  readonly operatorUrl: string
  readonly kubeconfig: string
  /** Additional environment variables of agents. */
  readonly env?: NodeJS.ProcessEnv
  /** Further arguments. */
  readonly args?: readonly string[]
}

interface Member {
  readonly node: string
  readonly folder: string
  pod: ObjectLike | undefined
  process: ChildProcess | undefined
  restarts: number
  output: string
  shown: string
}

/** Real agents, one per simulated node. */
export class Fleet implements AsyncDisposable {
  readonly #api: Api
  readonly #options: FleetOptions
  readonly folder: string
  readonly members: Member[] = []
  readonly #ending = new AbortController()
  #work: Promise<void> | undefined
  #secrets: { readonly list: readonly ObjectLike[]; readonly mark: string } = { list: [], mark: '' }
  #beat: NodeJS.Timeout | undefined
  /** While true, volumes are not updated. */
  frozen = false

  private constructor(api: Api, options: FleetOptions) {
    this.#api = api
    this.#options = options
    this.folder = mkdtempSync(join(process.env['PENSTOCK_TEST_RUN'] ?? tmpdir(), 'fleet-'))
  }

  static async start(api: Api, options: FleetOptions): Promise<Fleet> {
    const fleet = new Fleet(api, options)
    await makeNodes(api, options.nodes)
    await renewLeases(api, options.nodes)
    for (let index = 0; index < options.nodes; index++) {
      const folder = join(fleet.folder, `node-${index}`)
      for (const name of ['bundle', 'secrets', 'data', 'logs']) mkdirSync(join(folder, name), { recursive: true })
      fleet.members.push({
        node: nodeName(index),
        folder,
        pod: undefined,
        process: undefined,
        restarts: 0,
        output: '',
        shown: '',
      })
    }
    fleet.#beat = setInterval(() => void renewLeases(api, options.nodes).catch(() => {}), 15_000)
    fleet.#work = fleet.#run()
    return fleet
  }

  member(node: string): Member {
    const found = this.members.find((member) => member.node === node)
    if (found === undefined) throw new Error(`There is no node ${node}.`)
    return found
  }

  async #run(): Promise<void> {
    while (!this.#ending.signal.aborted) {
      try {
        await this.#pass()
      } catch (error) {
        if (!this.#ending.signal.aborted) console.error('fleet:', error)
      }
      await new Promise((done) => setTimeout(done, 250))
    }
  }

  async #pass(): Promise<void> {
    const { agent } = this.#options
    const selector = encodeURIComponent(`penstock.dev/agent=${agent}`)
    const pods = await this.#api.list(`/api/v1/namespaces/${namespace}/pods?labelSelector=${selector}`)
    await this.#look(`/api/v1/namespaces/${namespace}/secrets?labelSelector=${selector}`)
    for (const member of this.members) {
      const pod = pods.find((each) => each.spec?.nodeName === member.node && !isEnding(each))
      if (pod === undefined) {
        await this.#end(member)
        member.pod = undefined
        continue
      }
      if (!this.frozen) this.#show(member)
      if (member.pod?.metadata.uid !== pod.metadata.uid) {
        await this.#end(member)
        member.pod = pod
        member.restarts = 0
        await this.#token(member)
        await this.#say(member)
      }
      if (member.process === undefined) this.#begin(member)
    }
    const running = new Set(this.members.map(({ pod }) => pod?.metadata.uid))
    for (const pod of pods) if (isEnding(pod) && !running.has(pod.metadata.uid)) await this.#remove(pod)
  }

  /** Deletes a pod after its end, as the kubelet does. A DaemonSet creates the next one only afterwards. */
  async #remove({ metadata: { name, uid }, spec }: ObjectLike): Promise<void> {
    if (!this.members.some(({ node }) => node === spec?.nodeName)) return
    const path = `/api/v1/namespaces/${namespace}/pods/${name}`
    await this.#api
      .request('DELETE', path, { gracePeriodSeconds: 0, preconditions: { uid } })
      .catch((error: unknown) => {
        if (!/: 40[49] /.test(String(error))) throw error // it is already deleted or replaced
      })
  }

  /** Reads the Secrets only if one of them has changed, because checks are frequent and Secrets contain megabytes. */
  async #look(path: string): Promise<void> {
    const markOf = (list: readonly Pick<ObjectLike, 'metadata'>[]) =>
      list.map(({ metadata }) => `${metadata.name} ${metadata.resourceVersion}`).join()
    if (this.#secrets.mark === markOf(await this.#api.metadata(path))) return
    const list = await this.#api.list(path)
    this.#secrets = { list, mark: markOf(list) }
  }

  /** Updates the volumes, each atomically. */
  #show(member: Member): void {
    const { list: secrets, mark } = this.#secrets
    if (mark === member.shown) return
    member.shown = mark
    for (const [volume, kind] of [
      ['secrets', 'sec'],
      ['bundle', 'cfg'],
    ] as const) {
      const files: Record<string, Buffer> = {}
      for (let slot = 0; slot < slots[kind]; slot++) {
        const secret = secrets.find(
          ({ metadata }) => metadata.name === `penstock-${this.#options.agent}-${kind}-${slot}`,
        )
        for (const [key, value] of Object.entries(secret?.data ?? {})) files[key] = Buffer.from(value, 'base64')
      }
      project(join(member.folder, volume), files)
    }
  }

  async #token(member: Member): Promise<void> {
    const { name = '', uid } = member.pod?.metadata ?? {}
    const account = `penstock-${this.#options.agent}`
    writeFileSync(join(member.folder, 'token'), await podToken(this.#api, account, name, uid))
  }

  #begin(member: Member): void {
    const { operatorUrl, kubeconfig, env, args = [] } = this.#options
    const { folder } = member
    const { command, args: main, env: own } = programOf('agent')
    const child = spawn(
      command,
      [
        ...main,
        ...[
          '--bundle',
          join(folder, 'bundle'),
          '--secrets',
          join(folder, 'secrets'),
          '--data-dir',
          join(folder, 'data'),
        ],
        ...['--logs-dir', join(folder, 'logs'), '--kube-config', kubeconfig, '--api-address', ''],
        ...['--operator', operatorUrl, '--operator-token', join(folder, 'token')],
        ...namespacesOf(member.pod),
        ...args,
      ],
      {
        env: {
          ...process.env,
          ...own,
          AGENT_SELF_NODE_NAME: member.node,
          POD_NAME: member.pod?.metadata.name,
          POD_NAMESPACE: namespace,
          ...env,
        },
        stdio: ['ignore', 'ignore', 'pipe'],
      },
    )
    member.process = child
    child.stderr?.on('data', (part) => {
      member.output = (member.output + String(part)).slice(-200_000)
    })
    child.once('exit', () => {
      if (member.process !== child) return
      // As a kubelet does, restart it after a short delay, and count the restart.
      member.restarts++
      setTimeout(() => {
        if (member.process === child) member.process = undefined
      }, 1000)
      void this.#say(member).catch(() => {}) // the pod may already be deleted
    })
  }

  async #say(member: Member): Promise<void> {
    const { name } = member.pod?.metadata ?? {}
    await this.#api.request(
      'PATCH',
      `/api/v1/namespaces/${namespace}/pods/${name}/status`,
      {
        status: {
          phase: 'Running',
          conditions: [{ type: 'Ready', status: 'True' }],
          containerStatuses: [
            {
              name: 'agent',
              image: 'penstock/agent',
              imageID: '',
              ready: true,
              restartCount: member.restarts,
              state: { running: { startedAt: new Date().toISOString() } },
            },
          ],
        },
      },
      'application/merge-patch+json',
    )
  }

  async #end(member: Member): Promise<void> {
    const child = member.process
    member.process = undefined
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return
    const ended = new Promise((done) => child.once('exit', done))
    child.kill('SIGTERM')
    const late = setTimeout(() => child.kill('SIGKILL'), 10_000)
    await ended
    clearTimeout(late)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#ending.abort()
    clearInterval(this.#beat)
    await this.#work
    await Promise.all(this.members.map((member) => this.#end(member)))
    rmSync(this.folder, { recursive: true, force: true })
  }
}

const isEnding = ({ metadata }: ObjectLike) => 'deletionTimestamp' in metadata

/** The security settings of a workload. */
function namespacesOf(pod: ObjectLike | undefined): string[] {
  const { containers = [] } = (pod?.spec ?? {}) as { readonly containers?: { readonly args?: string[] }[] }
  const args = containers[0]?.args ?? []
  const at = args.indexOf('--namespaces')
  return at === -1 ? [] : args.slice(at, at + 2)
}

export const nodeName = (index: number) => `node-${String(index).padStart(4, '0')}`

/** Creates nodes on which the scheduler can place pods. */
export async function makeNodes(api: Api, count: number, os = 'linux'): Promise<void> {
  const capacity = { cpu: '64', memory: '256Gi', pods: '1000' }
  for (let start = 0; start < count; start += 20) {
    await Promise.all(
      Array.from({ length: Math.min(20, count - start) }, async (_, offset) => {
        const name = nodeName(start + offset)
        if ((await api.find(`/api/v1/nodes/${name}`)) !== undefined) return
        await api.request('POST', '/api/v1/nodes', {
          apiVersion: 'v1',
          kind: 'Node',
          metadata: { name, labels: { 'kubernetes.io/os': os, 'kubernetes.io/hostname': name } },
        })
        await api.request(
          'PATCH',
          `/api/v1/nodes/${name}/status`,
          {
            status: {
              capacity,
              allocatable: capacity,
              conditions: [{ type: 'Ready', status: 'True', reason: 'Test', message: '' }],
            },
          },
          'application/merge-patch+json',
        )
      }),
    )
  }
}

/** Renews the Leases of nodes; otherwise their pods count as lost after a minute. */
export async function renewLeases(api: Api, count: number): Promise<void> {
  for (let start = 0; start < count; start += 20) {
    await Promise.all(
      Array.from({ length: Math.min(20, count - start) }, (_, offset) => {
        const name = nodeName(start + offset)
        return api.request(
          'PATCH',
          `/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/${name}?fieldManager=fleet&force=true`,
          {
            apiVersion: 'coordination.k8s.io/v1',
            kind: 'Lease',
            metadata: { name, namespace: 'kube-node-lease' },
            spec: {
              holderIdentity: name,
              leaseDurationSeconds: 40,
              renewTime: new Date().toISOString().replace('Z', '000Z'),
            },
          },
          'application/apply-patch+yaml',
        )
      }),
    )
  }
}

/** Requests a token for a pod, as the kubelet does. */
export async function podToken(api: Api, account: string, pod: string, uid: string | undefined): Promise<string> {
  const answer = await api.request<{ status: { token: string } }>(
    'POST',
    `/api/v1/namespaces/${namespace}/serviceaccounts/${account}/token`,
    {
      apiVersion: 'authentication.k8s.io/v1',
      kind: 'TokenRequest',
      spec: {
        audiences: ['penstock-operator'],
        expirationSeconds: 3600,
        boundObjectRef: { apiVersion: 'v1', kind: 'Pod', name: pod, uid },
      },
    },
  )
  return answer.status.token
}
