// Runs a replica of an aggregator as a process, with the arguments and the account of its pod, and with the operator's bundle in separate folders.

import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { freePort } from '@penstock/agent/testing/free-port'
import type { Cluster } from '../cluster/cluster.ts'
import { until } from '../command.ts'
import { programOf } from '../program.ts'
import { system } from './process.ts'

interface SecretLike {
  readonly metadata: { readonly name: string }
  readonly data?: Readonly<Record<string, string>>
}

export interface ReplicaOptions {
  /** The Agent, in the namespace of the operator. */
  readonly agent: string
  readonly pod: string
  /** The id of a Pipeline that the bundle must contain. */
  readonly pipeline: string
  /** A kubeconfig for the API server, possibly through a proxy. */
  readonly kubeconfig: string
}

export class Replica implements AsyncDisposable {
  readonly pod: string
  readonly #child: ChildProcess
  readonly #folder: string
  readonly #port: number
  /** Its log so far. */
  log = ''

  private constructor(pod: string, child: ChildProcess, folder: string, port: number) {
    this.pod = pod
    this.#child = child
    this.#folder = folder
    this.#port = port
    child.stderr?.setEncoding('utf8').on('data', (part: string) => {
      this.log += part
    })
  }

  static async start(cluster: Cluster, { agent, pod, pipeline, kubeconfig: way }: ReplicaOptions): Promise<Replica> {
    const kubectl = (...args: string[]) => cluster.kubectl(['-n', system, ...args])
    const folder = join(cluster.folder, `replica-${pod}`)
    for (const name of ['bundle', 'secrets', 'data']) await mkdir(join(folder, name), { recursive: true })
    // Like the mounts of the kubelet.
    const owned = `penstock.dev/agent=${agent}`
    const read = async () => {
      const secrets = JSON.parse(await kubectl('get', 'secrets', '-l', owned, '-o', 'json')).items as SecretLike[]
      const shards = secrets.flatMap(({ data = {} }) => Object.entries(data).filter(([key]) => /^r.*\.gz$/.test(key)))
      const has = shards.some(([, value]) => gunzipSync(Buffer.from(value, 'base64')).includes(`/${pipeline}/`))
      return has ? secrets : undefined
    }
    const secrets = await until(`${pipeline} in the bundle of ${agent}`, 60_000, read)
    for (const { metadata, data = {} } of secrets) {
      const to = metadata.name.includes('-cfg-') ? 'bundle' : 'secrets'
      for (const [key, value] of Object.entries(data))
        await writeFile(join(folder, to, key), Buffer.from(value, 'base64'))
    }
    const token = (await kubectl('create', 'token', `penstock-${agent}`)).trim()
    const kubeconfig = join(folder, 'kubeconfig')
    const admin = JSON.parse(await cluster.kubectl(['config', 'view', '--raw', '-o', 'json', '--kubeconfig', way]))
    const users = admin.users.map(({ name }: { name: string }) => ({ name, user: { token } }))
    await writeFile(kubeconfig, JSON.stringify({ ...admin, users }))
    const args = JSON.parse(
      await kubectl(
        'get',
        'deployment',
        `penstock-${agent}`,
        '-o',
        'jsonpath={.spec.template.spec.containers[0].args}',
      ),
    ) as string[]
    const port = await freePort()
    const given: Readonly<Record<string, string>> = {
      '--bundle': join(folder, 'bundle'),
      '--secrets': join(folder, 'secrets'),
      '--data-dir': join(folder, 'data'),
      // No operator receives reports in these tests.
      '--operator': '',
    }
    const own = args.map((value, index) => given[args[index - 1] ?? ''] ?? value)
    const more = ['--kube-config', kubeconfig, '--api-address', `127.0.0.1:${port}`, '--log-format', 'json']
    const { command, args: main, env } = programOf('agent')
    const child = spawn(command, [...main, ...own, ...more], {
      stdio: ['ignore', 'ignore', 'pipe'],
      env: { ...process.env, ...env, AGENT_SELF_NODE_NAME: 'n1', POD_NAME: pod, POD_NAMESPACE: system },
    })
    return new Replica(pod, child, folder, port)
  }

  /** The sum of a metric over all series whose labels contain these texts. */
  async metric(name: string, ...labels: readonly string[]): Promise<number> {
    const text = await (await fetch(`http://127.0.0.1:${this.#port}/metrics`)).text()
    let sum = 0
    for (const [, own = '', value] of text.matchAll(new RegExp(`^${name}(\\{.*\\})? (\\S+)$`, 'gm')))
      if (labels.every((label) => own.includes(label))) sum += Number(value)
    return sum
  }

  async end(signal: NodeJS.Signals): Promise<number | null> {
    if (this.#child.exitCode === null && this.#child.signalCode === null) {
      const ended = once(this.#child, 'close')
      this.#child.kill(signal)
      await ended
    }
    return this.#child.exitCode
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.end('SIGKILL')
    await rm(this.#folder, { recursive: true, force: true })
  }
}
