// The rooms of the agent, from the top floor down: `agent/src/rooms.test.ts` holds every import against them, and
// `agent/ARCHITECTURE.md` shows them.

import { type DescribedFloors, floorsOf, roomsText, tableOf } from './rooms.ts'

/** By floor, what each room holds. A room imports from the floors above its own. */
const rooms: DescribedFloors = [
  {
    event: 'log and metric events, batches and finalizers; an event has one owner',
    timing: 'backoff and token buckets',
  },
  {
    metrics: 'metric values, series and their normalisation',
    schema: 'the vocabulary of options and everything derived from it; data, without I/O',
    telemetry: 'logger, metrics of the agent, and counters of components',
  },
  { net: 'how a connection is made: TLS, proxies, denied addresses', kube: 'requests to the API server' },
  { formats: 'one parser for each grammar, for codecs and functions alike; pure and bounded' },
  { bytes: 'log lines that stay bytes: the kernel that reads and writes them, and what programs make of them' },
  { enrichment: 'tables for programs', secrets: 'backends of secrets' },
  { remap: 'the language: compiler, functions, programs without state between events' },
  { codecs: 'bytes to events and back' },
  { component: 'the contracts of sources, transforms and sinks' },
  { 'time-field': 'the time of an event, as options and the log schema name it' },
  { template: '`{{ field }}` strings, compiled once' },
  { delivery: 'batches, limits, concurrency and retries; knows no protocol' },
  { http: 'clients, servers, and sinks over HTTP' },
  { aws: 'credentials and signatures', google: 'access tokens' },
  { tailing: 'files that grow; a position moves only when lines are delivered' },
  { intake: 'parts that several sources share' },
  { sources: 'one file for each type; nothing is acknowledged before delivery' },
  { transforms: 'one file for each type; synchronous' },
  { sinks: 'one file for each type' },
  { registry: 'the list of components' },
  { config: 'configurations: read, checked with every problem at its place' },
  { buffers: 'memory and disk; every accepted event is handed out or counted' },
  { topology: 'components that run: start, fan-out, reload, stop' },
  { api: 'health, metrics, components and tap; watching never slows the agent' },
  { bundle: 'the agent with an operator: bundles, reports, elections' },
  { 'command-line': 'what the command lines of both programs share: flags, commands, completion, exit codes, screens' },
  { cli: 'the commands' },
  { face: 'the entry points of the package: everything that the operator imports' },
  { main: 'the process: arguments to a command' },
]

/** Single files that every room may import. */
const seenByAll = [
  'errors',
  'clock',
  'bounded-map',
  'counted',
  'data-dir',
  'environment',
  'given-file',
  'printable',
  'terminal',
  'version',
]

export const agentTable = tableOf(floorsOf(rooms), seenByAll)

/** For the ARCHITECTURE page. */
export function roomsPage(): string {
  const files = seenByAll.map((name) => `\`${name}.ts\``).join(', ')
  return roomsText(rooms, `Every room may import ${files}.`)
}
