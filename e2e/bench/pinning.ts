// One CPU for the agent, the others for the processes that write and receive: what they do must not be what the agent waits for.

import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'

/** Lists of CPUs as `taskset -c` reads them. */
export interface Cpus {
  readonly agent: string
  readonly others: string
}

/** Undefined on a machine with a single CPU, or without `taskset`. */
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

/** Moves this process, and with it the children that it starts from now on. Gives the way back. */
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
