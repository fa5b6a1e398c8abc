// Many agents that only report: a pod and a token for each, and heartbeats with the manifest's content for their node, as from an agent
// that loads at once.

import { bucketOf, type Manifest } from '@penstock/agent/bundle'
import { inGroups } from '../command.ts'
import { type Api, makeNodes, nodeName, type ObjectLike, podToken, renewLeases } from './fleet.ts'

const namespace = 'penstock-system'

interface Reporter {
  readonly node: string
  readonly pod: string
  readonly token: string
  revision: string | undefined
}

export class Crowd implements AsyncDisposable {
  readonly #api: Api
  readonly #agent: string
  readonly #operatorUrl: string
  readonly reporters: Reporter[] = []
  /** Statuses of answers, and how many of each. */
  readonly answers = new Map<number, number>()
  readonly #ending = new AbortController()
  readonly #tasks: Promise<void>[] = []
  #beat: NodeJS.Timeout | undefined

  private constructor(api: Api, agent: string, operatorUrl: string) {
    this.#api = api
    this.#agent = agent
    this.#operatorUrl = operatorUrl
  }

  static async start(
    api: Api,
    options: { agent: string; nodes: number; operatorUrl: string; everyMs: number },
  ): Promise<Crowd> {
    const { agent, nodes, operatorUrl, everyMs } = options
    const crowd = new Crowd(api, agent, operatorUrl)
    // Not for Linux, so that the DaemonSet leaves these nodes alone: its pods would wait for the scheduler one by one.
    await makeNodes(api, nodes, 'windows')
    await renewLeases(api, nodes)
    crowd.#beat = setInterval(() => void renewLeases(api, nodes).catch(() => {}), 20_000)
    const indexes = Array.from({ length: nodes }, (_, index) => index)
    await inGroups(indexes, 40, async (index) => crowd.#admit(await crowd.#pod(index)))
    crowd.#tasks.push(crowd.#follow(everyMs))
    return crowd
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
    this.reporters.push({ node: pod.spec?.nodeName ?? '', pod: name, token, revision: undefined })
  }

  async #follow(everyMs: number): Promise<void> {
    let last = ''
    while (!this.#ending.signal.aborted) {
      const secret = await this.#api
        .find(`/api/v1/namespaces/${namespace}/secrets/penstock-${this.#agent}-cfg-0`)
        .catch(() => undefined)
      const text = Buffer.from(secret?.data?.['manifest.json'] ?? '', 'base64').toString()
      const changed = text !== last && text !== ''
      last = text
      const manifest = text === '' ? undefined : (JSON.parse(text) as Manifest)
      const started = performance.now()
      const due = changed ? this.reporters : this.#some(everyMs)
      await inGroups(due, 50, (reporter) => this.#report(reporter, manifest))
      const rest = 1000 - (performance.now() - started)
      if (rest > 0) await new Promise((done) => setTimeout(done, rest))
    }
  }

  #turn = 0

  /** Those whose turn it is in this second. */
  #some(everyMs: number): readonly Reporter[] {
    const turns = Math.max(1, Math.round(everyMs / 1000))
    this.#turn = (this.#turn + 1) % turns
    return this.reporters.filter((_, index) => index % turns === this.#turn)
  }

  async #report(reporter: Reporter, manifest: Manifest | undefined): Promise<void> {
    if (manifest !== undefined) {
      const { candidate, stable } = manifest
      const takes = candidate !== undefined && bucketOf(candidate.salt, reporter.node) < candidate.percent
      reporter.revision = takes ? candidate.rev : stable?.rev
    }
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
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#beat)
    this.#ending.abort()
    await Promise.all(this.#tasks)
  }
}
