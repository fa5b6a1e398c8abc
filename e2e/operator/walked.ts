// Counts and times for walk.test.ts: numbered lines, from the files of the nodes to the destination, and durations.

import { existsSync } from 'node:fs'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import type { Cluster } from '../cluster/cluster.ts'
import { type Counted, countNumbers } from '../counted-lines.ts'

/**
 * A program that writes numbered lines, such as `node-1/web-x/KEY 42`, with a different KEY after each start.
 * @param padding number of additional characters in each line
 */
export const numberedLines = (everyMs: number, count = Number.MAX_SAFE_INTEGER, together = 1, padding = 0) => `
  const id = [process.env.NODE, require('node:os').hostname(), Date.now().toString(36)].join('/')
  const end = ${padding === 0 ? `'\\n'` : `' ' + 'x'.repeat(${padding - 1}) + '\\n'`}
  let n = 0
  const timer = setInterval(() => {
    let text = ''
    for (let i = 0; i < ${together} && n < ${count}; i++) text += id + ' ' + n++ + end
    if (text === '') clearInterval(timer)
    else process.stdout.write(text)
  }, ${everyMs})
  setInterval(() => {}, 60000)
`

/** The environment variables of the program. */
export const writerEnv = [{ name: 'NODE', valueFrom: { fieldRef: { fieldPath: 'spec.nodeName' } } }]

const line = /(\S+\/\S+\/\S+) (\d+)(?: \S+)?$/

/** @param lines may have a prefix before the writer's name, and a mark after the number */
export function countLines(lines: Iterable<string>): Counted {
  const numbered: [writer: string, n: number][] = []
  for (const text of lines) {
    const [, writer, digits] = line.exec(text) ?? []
    if (writer !== undefined) numbered.push([writer, Number(digits)])
  }
  return countNumbers(numbered)
}

/** The lines that pods of an app have written so far, from the log files of all nodes. */
export async function writtenLines(cluster: Cluster, app: string): Promise<Counted> {
  const found: string[] = []
  for (const node of (await readdir(cluster.folder)).filter((name) => name.startsWith('node-'))) {
    const pods = join(cluster.folder, node, 'var/log/pods')
    if (!existsSync(pods)) continue
    for (const pod of (await readdir(pods)).filter((name) => name.startsWith(`shop_${app}`))) {
      for (const file of await readdir(join(pods, pod), { recursive: true })) {
        if (!/\.log[^/]*$/.test(file)) continue
        const bytes = await readFile(join(pods, pod, file)).catch(() => Buffer.alloc(0)) // it has been deleted meanwhile
        const text = (file.endsWith('.gz') && bytes.length > 0 ? gunzipSync(bytes) : bytes).toString()
        // The runtime may still be writing the last line.
        for (const each of text.slice(0, text.lastIndexOf('\n') + 1).split('\n')) found.push(each)
      }
    }
  }
  return countLines(found)
}

/** Durations in order of measurement, which are printed at the end. */
export class Times {
  readonly #rows: (readonly [what: string, time: string])[] = []

  add(what: string, ms: number): void {
    this.#rows.push([what, `${(ms / 1000).toFixed(1)} s`])
  }

  /** Median and 95th percentile (nearest rank). */
  addAll(what: string, all: readonly number[]): void {
    const sorted = [...all].sort((left, right) => left - right)
    const rank = (share: number) => sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? Number.NaN
    this.#rows.push([what, `p50 ${(rank(0.5) / 1000).toFixed(1)} s, p95 ${(rank(0.95) / 1000).toFixed(1)} s`])
  }

  note(what: string, value: string): void {
    this.#rows.push([what, value])
  }

  async measure<T>(what: string, act: () => Promise<T>): Promise<T> {
    const startedAt = performance.now()
    const result = await act()
    this.add(what, performance.now() - startedAt)
    return result
  }

  table(): string {
    return ['| Step | Measured |', '|---|---|', ...this.#rows.map(([what, time]) => `| ${what} | ${time} |`)].join('\n')
  }
}
