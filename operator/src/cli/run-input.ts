// `penstock run --input [NAME=]FILE`: files replace the origins of a Pipeline's sources. Each file becomes what its source really
// reads: the log of a sample pod, Events of the API server, the page of a web server, a log file, or messages.

import { createReadStream, createWriteStream, statSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join, resolve } from 'node:path'
import { pipeline } from 'node:stream/promises'
import type { ComponentView } from '@penstock/agent/bundle'
import {
  amqp,
  cloudQueue,
  file as fileSource,
  orchestratorEvents,
  orchestratorLogs,
  stdin,
  webserverMetrics,
} from '@penstock/agent/config'
import { closest, fileReason, PenstockError } from '@penstock/agent/errors'
import { pause } from '@penstock/agent/program'
import type { Table } from '../compile/compiled.ts'
import { standardInput } from '../compile/resources.ts'
import type { SampleObject } from './sample-cluster/api-server.ts'
import { eventsOf } from './sample-cluster/events.ts'
import { sampleContainers } from './sample-cluster/pods.ts'

/** A file on the command line. */
interface Given {
  /** A sample pod or a source; undefined: the first pod, and all sources without pods. */
  readonly name: string | undefined
  readonly file: string
}

/** The log of a sample pod. */
export interface PodInput {
  readonly namespace: string
  readonly container: string
  readonly file: string
}

const named = /^((?:[a-z0-9-]+\/)?[a-z0-9-]+)=(.+)$/s

/**
 * @param resources paths of the resources, one of which may also be standard input @throws PenstockError if a file
 * cannot be read
 */
export function givenInputs(words: readonly string[], resources: readonly string[]): readonly Given[] {
  const given = words.map((word): Given => {
    const [, name, file = word] = named.exec(word) ?? []
    return { name, file }
  })
  if ([...given.map(({ file }) => file), ...resources].filter((path) => path === standardInput).length > 1) {
    throw new PenstockError('PEN_USAGE', '`--input -` reads standard input, which can only be used once.')
  }
  for (const { file } of given) {
    if (file === standardInput) continue
    try {
      if (statSync(file).isDirectory()) throw new Error('it is a folder')
    } catch (error) {
      throw new PenstockError('PEN_USAGE', `"${file}" cannot be read: ${fileReason(error)}.`, { cause: error })
    }
  }
  return given
}

/** Everything that replaces a cluster. */
export class RunInput implements AsyncDisposable {
  /** The sources that the agent runs, by id. */
  readonly sources: Record<string, Table> = {}
  readonly pods: PodInput[] = []
  /** Events that the API server gives. */
  readonly events: SampleObject[] = []
  /** The agent's standard input. */
  stdin: string | undefined
  /** How many files are not the logs of pods. */
  others = 0
  readonly #pages: Server[] = []

  /** @param namespaces of the Pipelines @param folder for a copy of standard input */
  static async open(
    sources: Readonly<Record<string, Table>>,
    given: readonly Given[],
    namespaces: readonly string[],
    folder: string,
  ): Promise<RunInput> {
    const input = new RunInput()
    const files: Given[] = []
    for (const one of given) {
      const file = one.file === standardInput ? join(folder, 'input') : resolve(one.file)
      if (one.file === standardInput) {
        if (process.stdin.isTTY) console.error('Type lines for the input. Ctrl-D ends it.')
        await pipeline(process.stdin, createWriteStream(file))
      }
      refuseEmpty(one.file, file)
      files.push({ ...one, file })
    }
    const taken = new Set<Given>()
    if (Object.values(sources).some(isPodLogs)) {
      for (const one of files) {
        const pods = podsOf(one, namespaces)
        input.pods.push(...pods)
        if (pods.length > 0) taken.add(one)
      }
    }
    for (const [id, source] of Object.entries(sources)) {
      const name = id.slice(id.lastIndexOf('/') + 1)
      const one = files.find((each) => each.name === name) ?? files.find((each) => each.name === undefined)
      if (isPodLogs(source)) {
        // The files are complete before the source starts.
        input.sources[id] = input.pods.length === 0 ? source : { ...source, read_from: 'beginning' }
        continue
      }
      const stand = one === undefined ? undefined : await input.#standIn(name, source, one)
      input.sources[id] = stand ?? source
      if (one === undefined || stand === undefined) continue
      taken.add(one)
      input.others++
    }
    const unread = files.find((one) => !taken.has(one))
    if (unread !== undefined) throw unreadError(unread, sources)
    return input
  }

  /** The source that reads the file instead; undefined if it has no file. */
  async #standIn(name: string, source: Table, { name: wanted, file }: Given): Promise<Table | undefined> {
    switch (source['type']) {
      case fileSource.type:
        return { ...source, include: [file], exclude: [], read_from: 'beginning' }
      case orchestratorEvents.type:
        this.events.push(...eventsOf(file))
        return { ...source, read_from: 'beginning' }
      case webserverMetrics.type: {
        // The server acts as a proxy, so that metrics contain the endpoints of the Pipeline; TLS would need the real ones.
        const http = await this.#serve(file)
        const endpoints = (source['endpoints'] as readonly string[]).map((endpoint) =>
          endpoint.replace(/^https:/i, 'http:'),
        )
        return { ...source, endpoints, proxy: { enabled: true, http, no_proxy: [] } }
      }
      case stdin.type:
      case amqp.type:
      case cloudQueue.type: {
        if (this.stdin !== undefined) {
          const message = `Source ${name} cannot read a file, because another source already reads messages.`
          throw new PenstockError('PEN_USAGE', message)
        }
        this.stdin = file
        // Each line is a message. Queue messages contain no host.
        const { decoding } = source
        return { type: stdin.type, host_key: '', ...(decoding === undefined ? {} : { decoding }) }
      }
      default:
        if (wanted === undefined) return undefined
        throw new PenstockError('PEN_USAGE', `Source ${name} of type ${source['type']} cannot read a file.`)
    }
  }

  /** The address of a server with a single page. */
  async #serve(file: string): Promise<string> {
    const server = createServer((_, response) => {
      response.setHeader('content-type', 'text/plain')
      pipeline(createReadStream(file), response).catch(() => response.destroy())
    })
    this.#pages.push(server)
    const { promise, resolve: opened, reject } = Promise.withResolvers<void>()
    server.once('error', reject)
    server.listen(0, '127.0.0.1', opened)
    await promise
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const page of this.#pages) {
      page.closeAllConnections()
      await new Promise((closed) => page.close(closed))
    }
  }
}

/** @throws PenstockError if there is no line: the run would wait for one in vain. */
function refuseEmpty(given: string, file: string): void {
  const stats = statSync(file)
  if (!stats.isFile() || stats.size > 0) return
  const message =
    given === standardInput
      ? 'Standard input is empty. Does the command before the `|` print lines?'
      : `"${given}" is empty, so there is nothing to run.`
  throw new PenstockError('PEN_USAGE', message)
}

export function isPodLogs(source: Table): boolean {
  return source['type'] === orchestratorLogs.type
}

/** The sample pods that get a file: `web`, `shop/web`, or the first of each namespace. */
function podsOf({ name, file }: Given, namespaces: readonly string[]): readonly PodInput[] {
  const slash = name?.indexOf('/') ?? -1
  const container = name === undefined ? sampleContainers[0] : name.slice(slash + 1)
  if (container === undefined || !sampleContainers.includes(container)) return []
  const own = slash > 0 ? [(name as string).slice(0, slash)] : namespaces
  return own.map((namespace) => ({ namespace, container, file }))
}

function unreadError({ name, file }: Given, sourcesById: Readonly<Record<string, Table>>): PenstockError {
  const nameOf = (id: string) => id.slice(id.lastIndexOf('/') + 1)
  const sources = Object.keys(sourcesById).map(nameOf).join(', ')
  const pods = sampleContainers.join(', ')
  const ofPods = Object.entries(sourcesById).find(([id, source]) => nameOf(id) === name && isPodLogs(source))
  if (ofPods !== undefined) {
    const message = `Source \`${name}\` reads the logs of pods: name the pod that wrote the file, such as \`--input ${sampleContainers[0]}=${file}\`; the pods are ${pods}.`
    return new PenstockError('PEN_USAGE', message)
  }
  if (name === undefined)
    return new PenstockError('PEN_USAGE', `No source can read "${file}"; the sources are ${sources}.`)
  const near = closest(name, [...sampleContainers, ...Object.keys(sourcesById).map(nameOf)])
  const meant = near === undefined ? '' : ` Did you mean \`${near}\`?`
  const message = `There is no sample pod and no source \`${name}\`.${meant} Pods: ${pods}; sources: ${sources}.`
  return new PenstockError('PEN_USAGE', message)
}

/** How long there must be no activity before the run ends, in addition to the sources' own wait for further lines. */
const quietMs = 1000
/** How long the sources may take to read the first line. */
const firstLineMs = 10_000

/** How long a run must be idle: no source may have an incomplete group of lines. */
export function quietLimitMs(sources: Readonly<Record<string, Table>>): number {
  const waits = Object.values(sources).map((source) =>
    Number((source['multiline'] as Table | undefined)?.['timeout_ms'] ?? 0),
  )
  return quietMs + Math.max(0, ...waits)
}

/** Waits until all events are delivered and no more follow; false if the run ends first. */
export async function allDelivered(api: string, limitMs: number, over: AbortSignal): Promise<boolean> {
  const startedAt = performance.now()
  let last = ''
  let since = startedAt
  while (!over.aborted) {
    const answer = await fetch(`http://${api}/v1/components`, { signal: over }).catch(() => undefined)
    const { components = [] } = ((await answer?.json()) ?? {}) as { readonly components?: readonly ComponentView[] }
    const now = performance.now()
    const figures = JSON.stringify(components.map(figuresOf))
    if (figures !== last) {
      last = figures
      since = now
    }
    const isRead = components.some((one) => one.component_kind === 'source' && one.sent_events_total > 0)
    const isWaiting = components.some(isUndelivered) || (!isRead && now - startedAt < firstLineMs)
    if (!isWaiting && now - since >= limitMs) return true
    await pause(100, over)
  }
  return false
}

function figuresOf(one: ComponentView): readonly number[] {
  return [one.received_bytes_total, one.received_events_total, one.sent_events_total, one.discarded_events_total]
}

function isUndelivered(one: ComponentView): boolean {
  if (one.component_kind !== 'sink') return false
  return (one.buffer_events ?? 0) > 0 || one.received_events_total > one.sent_events_total + one.discarded_events_total
}
