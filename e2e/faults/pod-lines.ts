// Logs of a few pods with numbered hostile lines, and the events that an agent delivers. Two runs with the same logs, one of them on the object
// lane, must deliver the same event for each line.

import { appendFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { jsonText } from '@penstock/agent/testing/json-texts'
import { KubeApi } from '@penstock/agent/testing/kube-api'
import { Random } from '@penstock/agent/testing/random'

const podNames = ['web', 'api', 'ü-jobs']
const newline = Buffer.from('\n')

export class PodLines implements AsyncDisposable {
  readonly #folder = mkdtempSync(join(tmpdir(), 'penstock-pod-lines-'))
  readonly #random: Random
  readonly #api: KubeApi
  readonly #files: readonly string[]
  written = 0

  private constructor(api: KubeApi, seed: number) {
    this.#api = api
    this.#random = new Random(seed)
    const metadata = (name: string, uid: string) => ({
      name,
      namespace: 'shop',
      uid,
      labels: { app: name, tier: '"quoted"' },
      annotations: { owner: 'ü' },
    })
    api.set('nodes', { metadata: { name: 'node-1', uid: 'node-uid' } })
    api.set('namespaces', { metadata: { name: 'shop', uid: 'shop-uid', labels: { team: 'x' } } })
    this.#files = podNames.map((name, index) => {
      const pod = `pod-${index}`
      api.set('pods', {
        metadata: metadata(pod, `uid-${index}`),
        spec: { nodeName: 'node-1', containers: [{ name: 'app', image: `shop/${name}:1` }] },
        status: { podIP: `10.0.0.${index}`, containerStatuses: [{ name: 'app', containerID: 'containerd://1' }] },
      })
      const folder = join(this.#folder, 'pods', `shop_${pod}_uid-${index}`, 'app')
      mkdirSync(folder, { recursive: true })
      const file = join(folder, '0.log')
      writeFileSync(file, '')
      return file
    })
    writeFileSync(join(this.#folder, 'kubeconfig'), api.kubeConfig())
  }

  static async start(seed: number): Promise<PodLines> {
    return new PodLines(await KubeApi.start(), seed)
  }

  /** The source for them. */
  get source(): Record<string, unknown> {
    return {
      type: 'orchestrator_logs',
      logs_dir: join(this.#folder, 'pods'),
      kube_config_file: join(this.#folder, 'kubeconfig'),
      self_node_name: 'node-1',
      glob_minimum_cooldown_ms: 200,
    }
  }

  /** Appends lines to all logs. */
  append(count: number): void {
    for (const file of this.#files) {
      const lines = Array.from({ length: count }, () => this.#line())
      appendFileSync(file, Buffer.concat(lines.flatMap((line) => [line, newline])))
    }
  }

  /** A complete line of the runtime, or one in two parts. */
  #line(): Buffer {
    const random = this.#random
    const number = `<${String(this.written++).padStart(9, '0')}>`
    const time = () => {
      const zone = random.chance(0.95) ? 'Z' : '+02:00'
      const fraction = String(random.below(1e9)).padStart(9, '0').slice(random.below(8))
      return `2026-11-24T10:11:1${random.below(3)}.${fraction}${zone}`
    }
    const stream = random.pick(['stdout', 'stderr'])
    const message = this.#message(number)
    if (random.chance(0.97)) return Buffer.concat([Buffer.from(`${time()} ${stream} F `), message])
    const cut = number.length + 10 + random.below(Math.max(1, message.length - number.length - 10))
    return Buffer.concat([
      Buffer.from(`${time()} ${stream} P `),
      message.subarray(0, cut),
      Buffer.from(`\n${time()} ${stream} F `),
      message.subarray(cut),
    ])
  }

  #message(number: string): Buffer {
    const random = this.#random
    const kind = random.below(20)
    if (kind === 0) return Buffer.from(`${number} plain "text" ü\\ \t${'x'.repeat(random.below(400))}`)
    if (kind === 1)
      return Buffer.concat([Buffer.from(`{"id":"${number}","x":"`), Buffer.from([0xff, 0xc3, 0x22, 0x7d])])
    const level = random.pick(['debug', 'info', 'Warn', 'error'])
    if (kind < 13) {
      const deep = random.chance(0.2) ? ',"o":{"z":1.50,"a":"\\u003ca>"}' : ''
      return Buffer.from(`{"id":"${number}","level":"${level}","n":${random.below(1000)}${deep},"msg":"at /x?y=1"}`)
    }
    const rest = jsonText(random).trimStart().replaceAll('\n', '\r').replace(/^\{/, '')
    return Buffer.from(`{"id":"${number}","level":"${level}",${rest}`)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#api[Symbol.asyncDispose]()
    rmSync(this.#folder, { recursive: true, force: true })
  }
}

/** The delivered events by path and line number, without the revision that a program has added. */
export class Contents {
  readonly #events = new Map<string, Map<number, string>>()
  /** Number of repeated lines. */
  doubled = 0
  /** Number of lines that arrived again with different content. */
  readonly differing: string[] = []

  readonly take = (path: string, body: Buffer): void => {
    const events = this.#events.get(path) ?? new Map<number, string>()
    this.#events.set(path, events)
    for (const json of body.toString().split('\n')) {
      if (json === '') continue
      const number = Number(/<(\d{9})>/.exec(json)?.[1] ?? Number.NaN)
      const event = json.replace(/"rev":\d+/, '"rev":0')
      const before = events.get(number)
      if (before === undefined) events.set(number, event)
      else this.doubled++
      if (before !== undefined && before !== event) this.differing.push(`${path}: first ${before}, then ${event}`)
    }
  }

  count(path: string): number {
    return this.#events.get(path)?.size ?? 0
  }

  /** The differences from the deliveries of the other lane, including missing lines if all must have arrived. */
  problems(expected: Contents, path: string, isWhole: boolean): string[] {
    const found = this.#events.get(path) ?? new Map<number, string>()
    const right = expected.#events.get(path) ?? new Map<number, string>()
    const problems: string[] = []
    for (const [number, event] of found) {
      const other = right.get(number)
      if (other !== event) problems.push(`${path}: ${event} instead of ${other ?? 'nothing'}`)
    }
    if (isWhole)
      for (const number of right.keys()) if (!found.has(number)) problems.push(`${path}: ${number} is missing`)
    return [...this.differing, ...problems]
  }
}
