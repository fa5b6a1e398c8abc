// The thread that takes and renews the Lease. Only this process's clock counts, and what it saw change; times in the record are
// for people. When renewal cannot be confirmed in time the process is ended from here, whatever its main thread is doing.

import { parentPort, workerData } from 'node:worker_threads'
import {
  type Access,
  bodyText,
  claimed,
  holderOf,
  type Lease,
  leasePath,
  released,
  Transport,
} from '@penstock/agent/kube'

export interface ElectionSettings {
  readonly access: Access
  readonly namespace: string
  readonly name: string
  readonly identity: string
  readonly leaseMs: number
  readonly renewDeadlineMs: number
  readonly retryMs: number
  readonly confirmed: BigInt64Array<SharedArrayBuffer>
}

export type ElectionMessage =
  | { readonly type: 'elected' }
  | { readonly type: 'leader'; readonly leader: string | undefined }
  | { readonly type: 'failed'; readonly error: string }
  | { readonly type: 'lost'; readonly error: string }

const settings = workerData as ElectionSettings
const port = parentPort
const transport = new Transport()
let access = settings.access
let stopping = false
let wake = () => {}

port?.on('message', (message: { access?: Access; release?: boolean }) => {
  if (message.access !== undefined) access = message.access
  if (message.release === true) {
    stopping = true
    wake()
  }
})

const say = (message: ElectionMessage) => port?.postMessage(message)
const clock = () => Number(process.hrtime.bigint()) / 1e6

/** The last record seen, and when it was seen to change. */
let seen: { readonly version: string; readonly at: number } | undefined
let leader: string | undefined
/** When the claim was last confirmed: the moment before the request that confirmed it. */
let confirmedAt: number | undefined

async function main(): Promise<void> {
  while (!stopping) {
    const before = clock()
    try {
      const leads = await attempt(before)
      if (confirmedAt !== undefined && !leads) return lose('another process has taken the Lease')
    } catch (error) {
      say({ type: 'failed', error: error instanceof Error ? error.message : String(error) })
    }
    if (confirmedAt !== undefined && clock() - confirmedAt > settings.renewDeadlineMs) {
      return lose(`the Lease was not renewed for ${settings.renewDeadlineMs / 1000} s`)
    }
    await pause(restMs())
  }
  if (confirmedAt !== undefined) await release().catch(() => {}) // it ends by itself then, when its time is over
  Atomics.store(settings.confirmed, 0, 0n)
}

/** Takes or renews the Lease if it is free or ours; true if it is ours afterwards. */
async function attempt(now: number): Promise<boolean> {
  const lease = await request<Lease>('GET')
  if (lease === undefined) {
    await request('POST', leaseOf(undefined))
    return confirm(now)
  }
  const holder = holderOf(lease)
  note(lease)
  if (holder === settings.identity || holder === undefined || isOver(now)) {
    await request('PUT', leaseOf(lease))
    return confirm(now)
  }
  return false
}

function note(lease: Lease): void {
  const version = lease.metadata.resourceVersion ?? ''
  if (seen?.version !== version) seen = { version, at: clock() }
  announce(holderOf(lease))
}

function announce(now: string | undefined): void {
  if (now === leader) return
  leader = now
  say({ type: 'leader', leader })
}

/** Whether the holder has been silent, as far as we saw, for as long as a Lease lasts. */
function isOver(now: number): boolean {
  return seen !== undefined && now - seen.at > settings.leaseMs
}

/** Until the next attempt: a Lease that is not renewed is taken when it ends, and not at a look some time later. */
function restMs(): number {
  const leftMs = seen === undefined || confirmedAt !== undefined ? 0 : seen.at + settings.leaseMs - clock()
  return leftMs > 0 ? Math.min(settings.retryMs, Math.ceil(leftMs) + 1) : settings.retryMs
}

function confirm(now: number): true {
  const first = confirmedAt === undefined
  confirmedAt = now
  Atomics.store(settings.confirmed, 0, BigInt(Math.round(now * 1e6)))
  announce(settings.identity)
  if (first) say({ type: 'elected' })
  return true
}

function lose(error: string): void {
  Atomics.store(settings.confirmed, 0, 0n)
  say({ type: 'lost', error })
  // The main thread ends the process in order; if it is stuck, it is ended from here.
  setTimeout(() => process.kill(process.pid, 'SIGKILL'), 2_000)
}

const leaseOf = (lease: Lease | undefined) => claimed(lease, settings, settings.identity, settings.leaseMs)

async function release(): Promise<void> {
  const lease = await request<Lease>('GET')
  if (lease === undefined || holderOf(lease) !== settings.identity) return
  await request('PUT', released(lease))
}

/** Undefined when there is no Lease. Another's write in between is an error like any other: the next attempt sees it. */
async function request<T>(method: 'GET' | 'POST' | 'PUT', body?: object): Promise<T | undefined> {
  const own = leasePath(settings)
  const path = method === 'POST' ? own.slice(0, own.lastIndexOf('/')) : own
  const answer = await transport.send(access, {
    method,
    path,
    headers: { 'user-agent': 'penstock (leader-election)', 'content-type': 'application/json' },
    body: body === undefined ? undefined : JSON.stringify(body),
    // An attempt must leave time for another within the deadline.
    signal: AbortSignal.timeout(Math.max(500, settings.renewDeadlineMs / 2)),
  })
  const text = await bodyText(answer)
  if (answer.statusCode === 404 && method === 'GET') return undefined
  if (answer.statusCode === undefined || answer.statusCode > 299) {
    throw new Error(`${method} of Lease ${settings.namespace}/${settings.name}: ${answer.statusCode}`)
  }
  return JSON.parse(text) as T
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms)
    wake = () => {
      clearTimeout(timer)
      resolve()
    }
    if (stopping) wake()
  })
}

await main()
if (stopping) {
  transport.close()
  port?.close()
}
