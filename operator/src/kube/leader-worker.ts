// The thread that takes and renews the Lease. It only relies on this process's clock and on observed changes; times in the
// record are for people. If a renewal cannot be confirmed in time, this thread ends the process, whatever the main thread is
// doing.

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

/** The last observed record, and when it last changed. */
let seen: { readonly version: string; readonly at: number } | undefined
let leader: string | undefined
/** When the claim was last confirmed: the time before the confirming request. */
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
  if (confirmedAt !== undefined) await release().catch(() => {}) // the Lease then expires
  Atomics.store(settings.confirmed, 0, 0n)
}

/** Takes or renews the Lease if it is free or belongs to this process; true if it then belongs to this process. */
async function attempt(now: number): Promise<boolean> {
  const lease = await request<Lease>('GET')
  if (lease === undefined) {
    // The holder of a deleted Lease writes until it notices, so the others wait as if it had not been renewed.
    if (confirmedAt === undefined && leader !== undefined && seen !== undefined && !isOver(now)) return false
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

/** Whether the holder has not renewed the Lease for its whole duration, as observed here. */
function isOver(now: number): boolean {
  return seen !== undefined && now - seen.at > settings.leaseMs
}

/** Time until the next attempt: an unrenewed Lease is taken exactly when it expires. */
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
  // The main thread exits gracefully; if it is stuck, this thread ends the process.
  setTimeout(() => process.kill(process.pid, 'SIGKILL'), 2_000)
}

const leaseOf = (lease: Lease | undefined) => claimed(lease, settings, settings.identity, settings.leaseMs)

async function release(): Promise<void> {
  const lease = await request<Lease>('GET')
  if (lease === undefined || holderOf(lease) !== settings.identity) return
  await request('PUT', released(lease))
}

/** Undefined if there is no Lease. A concurrent write is an error like any other: the next attempt sees it. */
async function request<T>(method: 'GET' | 'POST' | 'PUT', body?: object): Promise<T | undefined> {
  const own = leasePath(settings)
  const path = method === 'POST' ? own.slice(0, own.lastIndexOf('/')) : own
  const answer = await transport.send(access, {
    method,
    path,
    headers: { 'user-agent': 'penstock (leader-election)', 'content-type': 'application/json' },
    body: body === undefined ? undefined : JSON.stringify(body),
    // An attempt must leave time for another one within the deadline.
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
