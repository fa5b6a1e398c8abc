// The operator as a process beside a control plane, with what its tests need of it.

import { type ChildProcess, spawn } from 'node:child_process'
import { createServer } from 'node:net'
import { resolve } from 'node:path'
import type { Cluster } from '../cluster/cluster.ts'
import { root } from '../command.ts'

export interface RunningOperator extends AsyncDisposable {
  readonly heartbeatUrl: string
  readonly process: ChildProcess
  output(): string
  /** Ends it at once, as a lost machine does. */
  kill(): Promise<void>
}

/** A condition of an object, as `kubectl get -o yaml` shows it. */
export interface Condition {
  readonly type: string
  readonly status: string
  readonly reason: string
  readonly message: string
}

export interface OperatorOptions {
  /** Port for heartbeats; a free one if not given. Agents know it, so a successor takes the same. */
  readonly port?: number
  readonly args?: readonly string[]
}

export async function startOperator(cluster: Cluster, options: OperatorOptions = {}): Promise<RunningOperator> {
  const port = options.port ?? (await freePort())
  const child = spawn(
    resolve(root, 'node_modules/.bin/node'),
    [
      '--conditions=source',
      resolve(root, 'operator/src/main.ts'),
      'operator',
      ...['--kubeconfig', cluster.kubeconfig, '--namespace', 'penstock-system', '--leader-election', 'false'],
      ...['--kube-qps', '500', '--kube-burst', '1000'],
      ...[
        '--http-address',
        '',
        '--heartbeat-address',
        `127.0.0.1:${port}`,
        '--heartbeat-url',
        `http://127.0.0.1:${port}`,
      ],
      ...(options.args ?? []),
    ],
    { cwd: root, stdio: ['ignore', 'pipe', 'pipe'] },
  )
  let output = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (part) => {
      output = (output + String(part)).slice(-400_000)
    })
  }
  const ended = new Promise<void>((done) => child.once('exit', () => done()))
  const end = async (signal: NodeJS.Signals) => {
    if (child.exitCode === null && child.signalCode === null) child.kill(signal)
    await ended
  }
  return {
    heartbeatUrl: `http://127.0.0.1:${port}`,
    process: child,
    output: () => output,
    kill: () => end('SIGKILL'),
    async [Symbol.asyncDispose]() {
      const late = setTimeout(() => child.kill('SIGKILL'), 15_000)
      await end('SIGTERM')
      clearTimeout(late)
    },
  }
}

export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await new Promise((done) => server.once('listening', done))
  const address = server.address()
  await new Promise((done) => server.close(done))
  if (typeof address !== 'object' || address === null) throw new Error('There is no free port.')
  return address.port
}

/** Waits until something holds, and fails with what it said last. */
export async function eventually<T>(look: () => Promise<T> | T, limitMs = 60_000): Promise<T> {
  const until = Date.now() + limitMs
  for (;;) {
    try {
      return await look()
    } catch (error) {
      if (Date.now() > until) throw error
      await new Promise((done) => setTimeout(done, 200))
    }
  }
}
