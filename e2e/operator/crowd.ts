// Many simulated agents that only report: they have pods, tokens and heartbeats that report the manifest of their node, like agents that load
// immediately. By default, they see a new manifest immediately, whereas kubelets need some time. Or they request their bundle from the
// operator, which holds each request. Rejected reports are retried like real agents do: after a second, with exponential backoff.

import { Agent, request } from 'node:http'
import { gunzipSync } from 'node:zlib'
import { type BundleManifest, candidateFor, type StreamBody, type StreamHead } from '@penstock/agent/bundle'
import { inGroups, until } from '../command.ts'
import { type Api, makeNodes, nodeName, type ObjectLike, podToken, renewLeases } from './fleet.ts'

const namespace = 'penstock-system'

interface Reporter {
  readonly node: string
  readonly pod: string
  readonly token: string
  revision: string | undefined
  /** The time of the last accepted report. */
  reported: string | undefined
  /** The next time at which its node reads the Secrets. */
  looksAt: number
  dueAt: number
  /** Consecutive failed attempts, and the start of the first one. */
  failed: number
  unheardSince: number
}

const retryMs = 1000
/** A report with the first figures follows the report of a load. */
const firstFiguresMs = 5000

export interface CrowdOptions {
  readonly agent: string
  readonly nodes: number
  readonly operatorUrl: string
  /** The address of a replica that accepts reports if the first address is unreachable, as behind a Service. */
  readonly otherUrl?: string | undefined
  readonly everyMs: number
  /** The interval at which a node reads its mounted Secrets, with a different phase per node; 0 means immediately. */
  readonly lookMs?: number
  /** Whether they request their bundle. */
  readonly isStreaming?: boolean
}

/** As agents do. */
const holdMs = { min: 30_000, max: 50_000 }
const minMs = 250

export class Crowd implements AsyncDisposable {
  readonly #api: Api
  readonly #options: CrowdOptions
  readonly #connections = new Agent({ keepAlive: true, maxSockets: 50 })
  /** Connections for requests that the operator holds. */
  readonly #held = new Agent({ keepAlive: true })
  /** Bundles received, names of others received, and their bytes. */
  readonly streamed = { bundles: 0, names: 0, bytes: 0 }
  readonly reporters: Reporter[] = []
  /** Number of responses by status. */
  readonly answers = new Map<number, number>()
  /** The longest time from a rejected report until the agent was accepted. */
  longestMs = 0
  readonly #ending = new AbortController()
  readonly #tasks: Promise<void>[] = []
  #beat: NodeJS.Timeout | undefined

  private constructor(api: Api, options: CrowdOptions) {
    this.#api = api
    this.#options = options
  }

  static async start(api: Api, options: CrowdOptions): Promise<Crowd> {
    const { nodes } = options
    const crowd = new Crowd(api, options)
    // Not Linux, so that the DaemonSet ignores these nodes; its pods would wait for the scheduler one by one.
    await makeNodes(api, nodes, 'windows')
    await renewLeases(api, nodes)
    crowd.#beat = setInterval(() => void renewLeases(api, nodes).catch(() => {}), 20_000)
    const indexes = Array.from({ length: nodes }, (_, index) => index)
    await inGroups(indexes, 40, async (index) => crowd.#admit(await crowd.#pod(index)))
    crowd.#tasks.push(crowd.#follow())
    return crowd
  }

  /** Agents whose last report has not been accepted yet. */
  get unheard(): number {
    return this.reporters.filter(({ failed }) => failed > 0).length
  }

  /** Replaces the pod of an agent, like a restart of a node: new uid, new token, and nothing loaded. */
  async restart(index: number): Promise<void> {
    const path = `/api/v1/namespaces/${namespace}/pods/crowd-${index}`
    await this.#api.request('DELETE', path, { gracePeriodSeconds: 0 })
    await until('the pod to be gone', 60_000, async () => (await this.#api.find(path)) === undefined)
    const gone = this.reporters.findIndex(({ pod }) => pod === `crowd-${index}`)
    this.reporters.splice(gone, 1)
    await this.#admit(await this.#pod(index))
  }

  #pod(index: number): Promise<ObjectLike> {
    return this.#api.request('POST', `/api/v1/namespaces/${namespace}/pods`, {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: `crowd-${index}`, labels: { 'penstock.dev/agent': this.#options.agent } },
      spec: {
        nodeName: nodeName(index),
        serviceAccountName: `penstock-${this.#options.agent}`,
        automountServiceAccountToken: false,
        containers: [{ name: 'agent', image: 'penstock/agent' }],
      },
    })
  }

  async #admit(pod: ObjectLike): Promise<void> {
    const { name, uid } = pod.metadata
    await this.#api.request(
      'PATCH',
      `/api/v1/namespaces/${namespace}/pods/${name}/status`,
      { status: { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] } },
      'application/merge-patch+json',
    )
    const token = await podToken(this.#api, `penstock-${this.#options.agent}`, name, uid)
    const node = pod.spec?.nodeName ?? ''
    // Distribute agents evenly over the period.
    const { everyMs, lookMs = 0 } = this.#options
    const dueAt = performance.now() + Math.random() * everyMs
    const looksAt = performance.now() + Math.random() * lookMs
    const reporter: Reporter = {
      node,
      pod: name,
      token,
      revision: undefined,
      reported: undefined,
      looksAt,
      dueAt,
      failed: 0,
      unheardSince: 0,
    }
    this.reporters.push(reporter)
    if (this.#options.isStreaming === true) this.#tasks.push(this.#stream(reporter))
  }

  /** Requests the bundle of an agent again and again, until its pod is replaced. */
  async #stream(reporter: Reporter): Promise<void> {
    let have: StreamBody['have']
    while (!this.#ending.signal.aborted && this.reporters.includes(reporter)) {
      const started = performance.now()
      const waitMs = Math.round(holdMs.min + Math.random() * (holdMs.max - holdMs.min))
      const body: StreamBody = { schema: 1, waitMs, busy: [], ...(have === undefined ? {} : { have }) }
      const { operatorUrl, otherUrl } = this.#options
      let answer = await this.#send(operatorUrl, reporter.token, JSON.stringify(body), '/v1/bundle')
      if (answer.status === 0 && otherUrl !== undefined && !this.#ending.signal.aborted)
        answer = await this.#send(otherUrl, reporter.token, JSON.stringify(body), '/v1/bundle')
      if (answer.status === 200) {
        const [head = '', bundle] = gunzipSync(answer.body).toString().split('\n')
        const { rev, candidate, mark } = JSON.parse(head) as StreamHead
        have = { rev, candidate, mark }
        reporter.revision = rev
        this.streamed[bundle === undefined ? 'names' : 'bundles']++
        this.streamed.bytes += answer.body.length
      }
      const isFine = answer.status === 200 || answer.status === 204
      await this.#pause((isFine ? minMs : retryMs) - (performance.now() - started))
    }
  }

  #pause(ms: number): Promise<void> {
    return new Promise((done) => setTimeout(done, Math.max(0, ms)))
  }

  async #follow(): Promise<void> {
    while (!this.#ending.signal.aborted) {
      const secret =
        this.#options.isStreaming === true
          ? undefined
          : await this.#api
              .find(`/api/v1/namespaces/${namespace}/secrets/penstock-${this.#options.agent}-cfg-0`)
              .catch(() => undefined)
      const text = Buffer.from(secret?.data?.['manifest.json'] ?? '', 'base64').toString()
      const manifest = text === '' ? undefined : (JSON.parse(text) as BundleManifest)
      const started = performance.now()
      const due = this.reporters.filter((reporter) => {
        const isNew =
          this.#options.isStreaming === true
            ? reporter.revision !== reporter.reported
            : manifest !== undefined && this.#load(reporter, manifest, started)
        return reporter.dueAt <= started || (isNew && reporter.failed === 0)
      })
      await inGroups(due, 50, (reporter) => this.#report(reporter))
      const rest = 1000 - (performance.now() - started)
      if (rest > 0) await new Promise((done) => setTimeout(done, rest))
    }
  }

  /** Loads the revision for a node if the node reads its Secrets now. Returns whether the revision has changed. */
  #load(reporter: Reporter, manifest: BundleManifest, now: number): boolean {
    if (reporter.looksAt > now) return false
    reporter.looksAt = now + (this.#options.lookMs ?? 0)
    const revision = (candidateFor(manifest, reporter.node) ?? manifest.stable)?.rev
    const isNew = revision !== reporter.revision
    reporter.revision = revision
    return isNew
  }

  async #report(reporter: Reporter): Promise<void> {
    const { operatorUrl, otherUrl, everyMs } = this.#options
    const { revision } = reporter
    const isFirst = revision !== reporter.reported
    const begun = performance.now()
    const body = JSON.stringify({
      schema: 1,
      // A false claim, which the operator must not believe.
      node: 'somewhere-else',
      pod: 'somebody-else',
      namespace: 'kube-system',
      version: '0.1.0',
      startedAt: '2026-01-01T00:00:00Z',
      revision,
      candidate: false,
      ...(this.#options.isStreaming === true ? { delivery: 'Stream' } : {}),
      state: 'Loaded',
      failures: [],
      failed: [],
      pipelines: {},
    })
    let { status } = await this.#send(operatorUrl, reporter.token, body)
    if (status === 0 && otherUrl !== undefined) status = (await this.#send(otherUrl, reporter.token, body)).status
    this.answers.set(status, (this.answers.get(status) ?? 0) + 1)
    if (status === 200) {
      reporter.reported = revision
      if (reporter.failed > 0) this.longestMs = Math.max(this.longestMs, performance.now() - reporter.unheardSince)
      reporter.failed = 0
      const next = isFirst ? firstFiguresMs : everyMs
      reporter.dueAt = performance.now() + next * (0.8 + Math.random() * 0.4)
    } else {
      if (reporter.failed === 0) reporter.unheardSince = begun
      reporter.dueAt = performance.now() + Math.min(retryMs * 2 ** reporter.failed, everyMs)
      reporter.failed++
    }
  }

  /** The response; its status is 0 if there is none. */
  #send(url: string, token: string, body: string, path = '/v1/heartbeat'): Promise<{ status: number; body: Buffer }> {
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
    const { promise, resolve } = Promise.withResolvers<{ status: number; body: Buffer }>()
    const none = () => resolve({ status: 0, body: Buffer.alloc(0) })
    const isHeld = path !== '/v1/heartbeat'
    const agent = isHeld ? this.#held : this.#connections
    const { signal } = this.#ending
    const sent = request(`${url}${path}`, { method: 'POST', headers, agent, signal }, (answer) => {
      const parts: Buffer[] = []
      answer.on('data', (part: Buffer) => parts.push(part))
      answer.on('end', () => resolve({ status: answer.statusCode ?? 0, body: Buffer.concat(parts) }))
      answer.on('error', none)
    })
    sent.on('error', none)
    sent.setTimeout(isHeld ? holdMs.max + 20_000 : 30_000, () => sent.destroy())
    sent.end(body)
    return promise
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#beat)
    this.#ending.abort()
    await Promise.all(this.#tasks)
    this.#connections.destroy()
    this.#held.destroy()
  }
}
