// Sample pods of a small shop and their logs, written like the kubelet: CRI lines in
// `<logs>/<namespace>_<pod>_<uid>/<container>/<restart>.log`, renamed when they grow too large.

import { appendFileSync, createReadStream, createWriteStream, mkdirSync, renameSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { pipeline } from 'node:stream/promises'
import type { SampleObject } from './api-server.ts'

export const sampleNode = 'laptop'

interface SamplePod {
  readonly name: string
  readonly uid: string
  readonly container: string
  readonly image: string
  readonly ip: string
  readonly labels: Readonly<Record<string, string>>
  readonly owner: { readonly kind: string; readonly name: string }
  /** Text of the next line; `turn` counts up from 0. */
  readonly line: (turn: number) => string
}

const paths = ['/cart', '/checkout', '/products/17', '/products/42', '/login', '/healthz']
const pick = <T>(items: readonly T[], turn: number, step: number): T => items[(turn * step) % items.length] as T

/** Lines vary from turn to turn but are equal in every run. */
const pods: readonly SamplePod[] = [
  {
    name: 'web-6d9f7c5b8-x2x7p',
    uid: '0b0f5a52-6a55-4f0e-9c1c-6f4f9d6f1a01',
    container: 'web',
    image: 'registry.example.com/shop/web:1.8.2',
    ip: '10.244.0.11',
    labels: { app: 'web', team: 'storefront' },
    owner: { kind: 'ReplicaSet', name: 'web-6d9f7c5b8' },
    line: (turn) =>
      JSON.stringify({
        level: turn % 17 === 16 ? 'error' : turn % 5 === 0 ? 'debug' : 'info',
        msg: turn % 17 === 16 ? 'upstream timed out' : 'request served',
        method: turn % 4 === 0 ? 'POST' : 'GET',
        path: pick(paths, turn, 7),
        status: turn % 17 === 16 ? 504 : 200,
        duration_ms: 3 + ((turn * 37) % 250),
        order: 9_007_199_254_740_000 + turn,
      }),
  },
  {
    name: 'payments-5c8d9fd7b4-9kq4z',
    uid: '5f1d7a80-3c77-4b7c-8d8b-1f3a2b9c1a02',
    container: 'payments',
    image: 'registry.example.com/shop/payments:3.1.0',
    ip: '10.244.0.12',
    labels: { app: 'payments', team: 'money' },
    owner: { kind: 'ReplicaSet', name: 'payments-5c8d9fd7b4' },
    line: (turn) =>
      turn % 9 === 8
        ? 'panic avoided: card terminal answered with an empty body'
        : JSON.stringify({
            level: turn % 3 === 0 ? 'debug' : 'info',
            msg: 'payment captured',
            amount: 10.0 + turn / 4,
            currency: 'EUR',
          }),
  },
]

/** The sample pods with the labels for selectors. */
export const samplePodNames: readonly string[] = pods.map(
  ({ name, labels }) =>
    `${name} (${Object.entries(labels)
      .map(([key, value]) => `${key}=${value}`)
      .join(', ')})`,
)

/** The containers of the sample pods, whose logs files can replace. */
export const sampleContainers: readonly string[] = pods.map(({ container }) => container)

/** API objects: the node, the namespace and the pods. */
export function sampleObjects(namespace: string): SampleObject[] {
  return [
    {
      kind: 'Node',
      apiVersion: 'v1',
      metadata: {
        name: sampleNode,
        uid: 'node-1',
        resourceVersion: '1',
        labels: { 'kubernetes.io/os': 'linux', zone: 'home' },
      },
    },
    {
      kind: 'Namespace',
      apiVersion: 'v1',
      metadata: {
        name: namespace,
        uid: 'namespace-1',
        resourceVersion: '1',
        labels: { 'kubernetes.io/metadata.name': namespace },
      },
    },
    ...pods.map(
      (pod): SampleObject => ({
        kind: 'Pod',
        apiVersion: 'v1',
        metadata: {
          name: pod.name,
          namespace,
          uid: pod.uid,
          resourceVersion: '1',
          labels: pod.labels,
          annotations: { 'example.com/sample': 'true' },
          ownerReferences: [pod.owner],
        },
        spec: { nodeName: sampleNode, containers: [{ name: pod.container, image: pod.image }] },
        status: {
          phase: 'Running',
          podIP: pod.ip,
          podIPs: [{ ip: pod.ip }],
          containerStatuses: [
            {
              name: pod.container,
              image: pod.image,
              imageID: `${pod.image}@sha256:${pod.uid.replaceAll('-', '').padEnd(64, '0')}`,
              containerID: `containerd://${pod.uid.replaceAll('-', '').padEnd(64, 'a')}`,
            },
          ],
        },
      }),
    ),
  ]
}

/** A line written by a sample pod. */
export interface SampleLine {
  readonly namespace: string
  readonly pod: string
  /** In the container runtime's format, with nine fraction digits. */
  readonly time: string
  readonly text: string
}

export interface SampleWriter {
  /** Stops writing. */
  close(): void
}

/**
 * Writes lines of every sample pod below `logsDir` until closed. @param written receives each line before it can be
 * read @param everyMs milliseconds between two lines of one pod @param maxBytes size at which a file is rotated
 */
export function writeSampleLogs(
  logsDir: string,
  namespace: string,
  written: (line: SampleLine) => void = () => {},
  everyMs = 400,
  maxBytes = 64 * 1024,
): SampleWriter {
  const folders = pods.map((pod) => folderOf(logsDir, namespace, pod))
  for (const folder of folders) mkdirSync(folder, { recursive: true })
  let count = 0
  // One pod after the other, so that their lines alternate on a screen.
  const write = () => {
    const index = count % pods.length
    const turn = Math.floor(count / pods.length)
    const pod = pods[index] as SamplePod
    const file = join(folders[index] as string, '0.log')
    const [time, text] = [now(), pod.line(turn)]
    written({ namespace, pod: pod.name, time, text })
    appendFileSync(file, `${time} ${turn % 6 === 5 ? 'stderr' : 'stdout'} F ${text}\n`)
    if (statSync(file).size > maxBytes) renameSync(file, `${file}.${now().replace(/\D/g, '').slice(0, 14)}`)
    count++
  }
  write()
  const timer = setInterval(write, everyMs / pods.length)
  return { close: () => clearInterval(timer) }
}

/** Longer lines are split into parts of this size, as in container runtimes. */
const maxPartBytes = 16 * 1024

/** The text that `kubectl logs --timestamps` adds before each line. */
const timestamped = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d)) ?(.*)$/s

/** Writes the lines of a file as the log of a sample pod, with their own times if `kubectl logs --timestamps` has added them. */
export async function writeGivenLog(
  logsDir: string,
  { namespace, container, file }: { readonly namespace: string; readonly container: string; readonly file: string },
): Promise<string> {
  const pod = pods.find((each) => each.container === container)
  if (pod === undefined) throw new TypeError(`There is no sample pod \`${container}\`.`)
  const folder = folderOf(logsDir, namespace, pod)
  mkdirSync(folder, { recursive: true })
  // One character per byte: any content of the file is passed on.
  const lines = createInterface({ input: createReadStream(file, 'latin1'), crlfDelay: Number.POSITIVE_INFINITY })
  const written = async function* () {
    for await (const line of lines) {
      const [, time = now(), text = line] = timestamped.exec(line) ?? []
      let start = 0
      for (; text.length - start > maxPartBytes; start += maxPartBytes) {
        yield `${time} stdout P ${text.slice(start, start + maxPartBytes)}\n`
      }
      yield `${time} stdout F ${text.slice(start)}\n`
    }
  }
  const log = join(folder, '0.log')
  await pipeline(written, createWriteStream(log, { encoding: 'latin1', flags: 'a' }))
  return log
}

function folderOf(logsDir: string, namespace: string, pod: SamplePod): string {
  return join(logsDir, `${namespace}_${pod.name}_${pod.uid}`, pod.container)
}

/** The current time with nanoseconds, in the container runtime's format. */
function now(): string {
  const nanoseconds = process.hrtime.bigint() % 1_000_000n
  return new Date().toISOString().replace('Z', `${String(nanoseconds).padStart(6, '0')}Z`)
}
