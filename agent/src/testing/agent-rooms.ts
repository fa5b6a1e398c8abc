// The rooms of the agent from the top floor down. `agent/src/rooms.test.ts` checks all imports against this table, and
// `agent/ARCHITECTURE.md` shows it.

import { type DescribedFloors, floorsOf, roomsText, tableOf } from './rooms.ts'

/** The content of each room, by floor. A room imports from the floors above its own. */
const rooms: DescribedFloors = [
  {
    event: 'log and metric events, batches and finalizers; an event has one owner',
    timing: 'backoff, token buckets, and waits for promises',
  },
  {
    metrics: 'metric values, series and their normalisation',
    schema: 'the vocabulary of options and everything derived from it; data, without I/O',
    telemetry: 'logger, metrics of the agent, and counters of components',
  },
  { net: 'connections: TLS, proxies, denied addresses', kube: 'requests to the API server' },
  { formats: 'one parser for each grammar, for both codecs and functions; pure and bounded' },
  { bytes: 'log lines that remain bytes: the kernel that reads and writes them, and the translation of programs' },
  { enrichment: 'tables for programs', secrets: 'secret backends' },
  { remap: 'the language: compiler, functions, and programs without state between events' },
  { codecs: 'conversion between bytes and events' },
  { component: 'the contracts of sources, transforms and sinks' },
  { 'time-field': 'the time field of an event, as options and the log schema define it' },
  { template: '`{{ field }}` strings, compiled once' },
  { delivery: 'batches, limits, concurrency and retries; independent of protocols' },
  { http: 'clients, servers, and sinks over HTTP' },
  { aws: 'credentials and signatures', google: 'access tokens' },
  { tailing: 'growing files; a position only advances on delivery' },
  { intake: 'shared parts of sources' },
  { sources: 'one file for each type; sources acknowledge data only after delivery' },
  { transforms: 'one file for each type; synchronous' },
  { sinks: 'one file for each type' },
  { registry: 'the list of components' },
  { config: 'reads and checks configurations, and reports every problem with its place' },
  { buffers: 'memory and disk buffers; every accepted event is delivered to the sink or counted' },
  { topology: 'running components: start, fan-out, reload, stop' },
  { api: 'health, metrics, components and tap; observers never slow down the agent' },
  { bundle: 'the agent with an operator: bundles, reports, elections' },
  { 'command-line': 'shared parts of both command lines: flags, commands, completion, exit codes, screens' },
  { cli: 'the commands' },
  { face: 'the entry points of the package: everything that the operator imports' },
  { main: 'the process: runs the command that the arguments name' },
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
