// Many agents that only report: a pod and a token for each, and heartbeats that say what the manifest for their node says, as an agent that
// loads at once would. A report that is not taken is sent again as agents do: after a second, then after twice as long each time.

import { type BundleManifest, bucketOf } from '@penstock/agent/bundle'
import { inGroups, until } from '../command.ts'
import { type Api, makeNodes, nodeName, type ObjectLike, podToken, renewLeases } from './fleet.ts'

const namespace = 'penstock-system'

interface Reporter {
  readonly node: string
  readonly pod: string
  readonly token: string
  revision: string | undefined
  dueAt: number
  /** Attempts in a row that failed, and when the first of them began. */
  failed: number
  unheardSince: number
}

const retryMs = 1000

export class Crowd implements AsyncDisposable {
  readonly #api: Api
  readonly #agent: string
  readonly #operatorUrl: string
  readonly #everyMs: number
  readonly reporters: Reporter[] = []
  /** Statuses of answers, and how many of each. */
  readonly answers = new Map<number, number>()
  /** The longest time from a report that was not taken until that agent was heard. */
  longestMs = 0
  readonly #ending = new AbortController()
  readonly #tasks: Promise<void>[] = []
  #beat: NodeJS.Timeout | undefined

  private constructor(api: Api, agent: string, operatorUrl: string, everyMs: number) {
    this.#api = api
    this.#agent = agent
    this.#operatorUrl = operatorUrl
    this.#everyMs = everyMs
  }

  static async start(
    api: Api,
    options: { agent: string; nodes: number; operatorUrl: string; everyMs: number },
  ): Promise<Crowd> {
    const { agent, nodes, operatorUrl, everyMs } = options
    const crowd = new Crowd(api, agent, operatorUrl, everyMs)
    // Not for Linux, so that the DaemonSet leaves these nodes alone: its pods would wait for the scheduler one by one.
    await makeNodes(api, nodes, 'windows')
    await renewLeases(api, nodes)
    crowd.#beat = setInterval(() => void renewLeases(api, nodes).catch(() => {}), 20_000)
    const indexes = Array.from({ length: nodes }, (_, index) => index)
    await inGroups(indexes, 40, async (index) => crowd.#admit(await crowd.#pod(index)))
    crowd.#tasks.push(crowd.#follow())
    return crowd
  }

  /** Agents whose last report was not taken yet. */
  get unheard(): number {
    return this.reporters.filter(({ failed }) => failed > 0).length
  }

  /** Replaces the pod of an agent, as a restart of a node does: another uid, another token, and nothing loaded yet. */
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
      metadata: { name: `crowd-${index}`, labels: { 'penstock.dev/agent': this.#agent } },
      spec: {
        nodeName: nodeName(index),
        serviceAccountName: `penstock-${this.#agent}`,
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
    const token = await podToken(this.#api, `penstock-${this.#agent}`, name, uid)
    const node = pod.spec?.nodeName ?? ''
    // As many agents in each second of the period.
    const dueAt = performance.now() + Math.random() * this.#everyMs
    this.reporters.push({ node, pod: name, token, revision: undefined, dueAt, failed: 0, unheardSince: 0 })
  }

  async #follow(): Promise<void> {
    let last = ''
    while (!this.#ending.signal.aborted) {
      const secret = await this.#api
        .find(`/api/v1/namespaces/${namespace}/secrets/penstock-${this.#agent}-cfg-0`)
        .catch(() => undefined)
      const text = Buffer.from(secret?.data?.['manifest.json'] ?? '', 'base64').toString()
      const changed = text !== last && text !== ''
      last = text
      const manifest = text === '' ? undefined : (JSON.parse(text) as BundleManifest)
      const started = performance.now()
      const isDue = ({ dueAt, failed }: Reporter) => dueAt <= started || (changed && failed === 0)
      await inGroups(this.reporters.filter(isDue), 50, (reporter) => this.#report(reporter, manifest))
      const rest = 1000 - (performance.now() - started)
      if (rest > 0) await new Promise((done) => setTimeout(done, rest))
    }
  }

  async #report(reporter: Reporter, manifest: BundleManifest | undefined): Promise<void> {
    if (manifest !== undefined) {
      const { candidate, stable } = manifest
      const takes = candidate !== undefined && bucketOf(candidate.salt, reporter.node) < candidate.percent
      reporter.revision = takes ? candidate.rev : stable?.rev
    }
    const begun = performance.now()
    const answer = await fetch(`${this.#operatorUrl}/v1/heartbeat`, {
      method: 'POST',
      headers: { authorization: `Bearer ${reporter.token}`, 'content-type': 'application/json' },
      body: JSON.stringify({
        schema: 1,
        // A liar's claim: the operator must not believe it.
        node: 'somewhere-else',
        pod: 'somebody-else',
        namespace: 'kube-system',
        version: '0.1.0',
        startedAt: '2026-01-01T00:00:00Z',
        revision: reporter.revision,
        candidate: false,
        state: 'Loaded',
        failures: [],
        failed: [],
        pipelines: {},
      }),
    }).catch(() => undefined)
    const status = answer?.status ?? 0
    this.answers.set(status, (this.answers.get(status) ?? 0) + 1)
    await answer?.arrayBuffer()
    if (status === 200) {
      if (reporter.failed > 0) this.longestMs = Math.max(this.longestMs, performance.now() - reporter.unheardSince)
      reporter.failed = 0
      reporter.dueAt = performance.now() + this.#everyMs * (0.8 + Math.random() * 0.4)
    } else {
      if (reporter.failed === 0) reporter.unheardSince = begun
      reporter.dueAt = performance.now() + Math.min(retryMs * 2 ** reporter.failed, this.#everyMs)
      reporter.failed++
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#beat)
    this.#ending.abort()
    await Promise.all(this.#tasks)
  }
}
