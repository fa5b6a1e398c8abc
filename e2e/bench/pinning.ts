// Reserves one CPU for the agent, and the others for the writer and the receiver, so that the agent does not wait for them.

import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'

/** CPU lists in the syntax of `taskset -c`. */
export interface Cpus {
  readonly agent: string
  readonly others: string
}

/** Returns undefined on a machine with a single CPU, or without `taskset`. */
export function separateCpus(): Cpus | undefined {
  const numbers = allowedCpus()
  const agent = numbers.at(-1)
  try {
    execFileSync('taskset', ['--version'], { stdio: 'ignore' })
  } catch {
    return undefined
  }
  return agent === undefined || numbers.length < 2
    ? undefined
    : { agent: String(agent), others: numbers.slice(0, -1).join(',') }
}

/** Moves this process, and all children that it starts later, to other CPUs. Returns a function that undoes this. */
export function moveSelf(cpus: Cpus | undefined): Disposable {
  if (cpus === undefined) return { [Symbol.dispose]() {} }
  const before = allowedCpus().join(',')
  const move = (list: string) =>
    execFileSync('taskset', ['-a', '-c', '-p', list, String(process.pid)], { stdio: 'ignore' })
  move(cpus.others)
  return { [Symbol.dispose]: () => void move(before) }
}

function allowedCpus(): number[] {
  const list = /Cpus_allowed_list:\s+(\S+)/.exec(readFileSync('/proc/self/status', 'utf8'))?.[1] ?? ''
  return list.split(',').flatMap((range) => {
    const [from = 0, to = from] = range.split('-').map(Number)
    return Array.from({ length: to - from + 1 }, (_, index) => from + index)
  })
}
