// Log files of pods of several tenants. Each line has the mark of its tenant and a number, many times over, so that bytes of another tenant are
// noticed wherever they appear.

import { appendFileSync, mkdirSync, renameSync } from 'node:fs'
import { join } from 'node:path'
import type { KubeApi } from './kube-api.ts'
import type { Random } from './random.ts'

const newline = Buffer.from('\n')
const podsOfTenant = 2

interface PodLog {
  readonly path: string
  /** Bytes that are written next: the runtime may be in the middle of a line. */
  rest: Buffer
  rotations: number
}

export class TenantPods {
  readonly tenants: readonly string[]
  readonly #random: Random
  readonly #pods = new Map<string, readonly PodLog[]>()
  readonly #messages = new Map<string, string[]>()

  /** @param folder of the logs of all pods */
  constructor(folder: string, api: KubeApi, tenants: readonly string[], random: Random) {
    this.tenants = tenants
    this.#random = random
    for (const tenant of tenants) {
      api.set('namespaces', { metadata: { name: tenant } })
      this.#messages.set(tenant, [])
      this.#pods.set(
        tenant,
        Array.from({ length: podsOfTenant }, (_, index) => podOf(folder, api, tenant, `web-${index}`)),
      )
    }
  }

  /** A text that is in every line of a tenant, and in no line of another one. */
  static markOf(tenant: string): string {
    return `@${tenant}@`
  }

  /** The messages of a tenant so far, by their numbers. */
  messages(tenant: string): readonly string[] {
    return this.#messages.get(tenant) ?? []
  }

  /** Adds lines to the log of a pod, perhaps up to the middle of the last line. */
  write(tenant: string, count: number): void {
    const random = this.#random
    const pod = random.pick(this.#pods.get(tenant) ?? [])
    const lines = Array.from({ length: count }, () => this.#line(tenant))
    const bytes = Buffer.concat([pod.rest, ...lines])
    const end = random.chance(0.5) ? bytes.length : random.below(bytes.length)
    appendFileSync(pod.path, bytes.subarray(0, end))
    pod.rest = bytes.subarray(end)
  }

  /** Ends all lines that are not complete. */
  complete(): void {
    for (const pod of [...this.#pods.values()].flat()) {
      appendFileSync(pod.path, pod.rest)
      pod.rest = Buffer.alloc(0)
    }
  }

  rotate(tenant: string): void {
    const pod = this.#random.pick(this.#pods.get(tenant) ?? [])
    if (pod.rest.length > 0) return
    renameSync(pod.path, `${pod.path}.20260101-${String(pod.rotations++).padStart(6, '0')}`)
    appendFileSync(pod.path, '')
  }

  /** A line of the runtime, or the parts of one. */
  #line(tenant: string): Buffer {
    const random = this.#random
    const messages = this.#messages.get(tenant) as string[]
    const number = messages.length
    const message = this.#message(tenant, number)
    messages.push(message)
    const stream = random.pick(['stdout', 'stdout', 'stderr'])
    const begin = (tag: string) => {
      const fraction = String(number).padStart(9, '0')
      return Buffer.from(`2026-11-26T10:11:1${random.below(3)}.${fraction}Z ${stream} ${tag} `)
    }
    const bytes = Buffer.from(message)
    if (random.chance(0.97)) return Buffer.concat([begin('F'), bytes, newline])
    const cut = random.below(bytes.length)
    return Buffer.concat([begin('P'), bytes.subarray(0, cut), newline, begin('F'), bytes.subarray(cut), newline])
  }

  #message(tenant: string, number: number): string {
    const random = this.#random
    const id = `${TenantPods.markOf(tenant)}#${number}#`
    const kind = random.below(20)
    if (kind === 0) return `${id} is "plain" \\ text\t${id}`
    if (kind === 1) return `{"id":"${id}","open":"${id}`
    const text = random.pick([
      id,
      `${id}\\n`,
      `\\u003c${id}\\/`,
      `ü${id}`,
      id.repeat(random.below(kind === 2 ? 800 : 30)),
    ])
    const members = [`"id":"${id}"`, `"n":${number}`, `"level":"${random.pick(['debug', 'info', 'error'])}"`]
    if (random.chance(0.7)) members.push(`"text":"${text}"`)
    if (random.chance(0.3)) members.push(`"o":{"z":"${text}","b":1.50,"a":["${id}"]}`)
    if (random.chance(0.2)) members.push('"f":0.10000000000000000555')
    if (random.chance(0.2)) members.push(`"key-${random.below(3000)}":"${id}"`)
    return `{${members.join(random.pick([',', ', ']))}}`
  }
}

function podOf(folder: string, api: KubeApi, namespace: string, name: string): PodLog {
  const uid = `${name}-${namespace}`
  api.set('pods', {
    metadata: { name, namespace, uid, ownerReferences: [{ kind: 'Job', name: 'j' }] },
    spec: { nodeName: 'node-1', containers: [{ name: 'app', image: 'app:1' }] },
    status: { containerStatuses: [{ name: 'app', imageID: 'app@1', containerID: 'containerd://1' }] },
  })
  const container = join(folder, `${namespace}_${name}_${uid}`, 'app')
  mkdirSync(container, { recursive: true })
  const path = join(container, '0.log')
  appendFileSync(path, '')
  return { path, rest: Buffer.alloc(0), rotations: 0 }
}
