// Everything long-lived that can grow has a bound, listed here. The list contains each Map or Set that begins empty, and each other Map,
// Set, list or object to which code adds. It covers modules, objects, code that builds a component or compiles a function, and variables
// to which a returned function adds. The key of a group is the reason why data cannot make its collections grow without limit. A cache
// with keys from data is a BoundedMap, which needs no entry.

import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseAst } from 'rolldown/parseAst'
import { expect, test } from 'vitest'
import { developmentRooms, roomOf } from './testing/rooms.ts'

const bounds: Readonly<Record<string, readonly string[]>> = {
  'built-in values': [
    'bytes/kernel.ts constants',
    'bytes/key-table.ts names', // as many as the kernel supports
    'formats/charset.ts tables',
    'formats/crc.ts algorithms',
    'formats/crc.ts compiled',
    'formats/timezone.ts #abbreviations', // all offsets in the history of a zone
    'formats/timezone.ts abbreviations',
    'remap/kind.ts known',
    'remap/cipher.ts ciphers',
    'bytes/form.ts members',
    'bytes/key-table.ts #keys', // as many as the kernel supports
    'remap/splice.ts noEdits',
    'remap/words.ts nowhere',
    'remap/functions/encode_percent.ts controls',
    'telemetry/metrics.ts #families',
  ],
  'the configuration': [
    'bundle/inquiries.ts #watched', // components of one inquiry
    'bytes/byte-lines.ts #groups', // values of one chunk, by the groupings that sinks request
    'bytes/byte-lines.ts #values', // the same
    'bytes/current-keys.ts #sources', // sources that may read the same pods
    'topology/fair-share.ts #active', // pipelines
    'topology/fair-share.ts waiting', // sources of a pipeline
    'topology/run.ts failures',
    'api/tap.ts #watched',
    'bundle/heartbeat.ts #lastErrors',
    'bundle/heartbeat.ts #reported',
    'bundle/inquiries.ts #ages',
    'bundle/program-lines.ts #lines',
    'bundle/runner.ts #broken',
    'bundle/runner.ts #failures',
    'bundle/runner.ts #restricted',
    'bundle/runner.ts #running',
    'given-file.ts protectedFolders',
    'net/egress.ts #deniedNames',
    'net/egress.ts #names',
    'sinks/log_aggregator/faults.ts #unrendered',
    'sources/internal_metrics.ts constant',
    'sources/orchestrator_events/cursor.ts #cursors',
    'sources/orchestrator_events/cursor.ts opened',
    'sources/orchestrator_logs/hub.ts #keys', // sets of namespaces of running sources
    'sources/orchestrator_logs/hub.ts #limiters', // names of running sources
    'sources/orchestrator_logs/hub.ts #readers',
    'tailing/checkpoint.ts owners',
    'tailing/progress.ts left',
    'tailing/shared-discovery.ts #views',
    'tailing/shared-reads.ts shares', // pipelines with an open file
    'telemetry/component-events.ts #others',
    'telemetry/component-events.ts #outputs',
    'telemetry/logger.ts subscribers',
    'telemetry/repetition-limit.ts #windows', // the messages are constants
    'topology/build.ts outlets',
    'topology/fair-share.ts #accounts',
    'topology/fanout.ts #observers',
    'topology/shutdown.ts pending',
    'topology/run.ts #changed',
    'topology/run.ts consumers',
    'topology/run.ts #checks',
    'topology/run.ts #leaving',
    'topology/run.ts #retiring',
    'topology/run.ts #running',
    'topology/run.ts #settling',
    'topology/run.ts #sinks',
    'topology/run.ts #sources',
    'topology/run.ts #transforms',
  ],
  'one program, pattern, batch or message, whose size is bounded': [
    'bytes/byte-lines.ts #holders', // batches of the lines of one chunk
    'buffers/disk/packing/packer.ts #kinds',
    'buffers/disk/packing/packer.ts #shapes',
    'buffers/disk/packing/unpacker.ts #kinds',
    'buffers/disk/packing/unpacker.ts #shapes',
    'bytes/group-texts.ts #texts', // one for each group of a chunk
    'bytes/columns.ts ends',
    'bytes/columns.ts sizes',
    'bytes/columns.ts values',
    'bytes/form.ts newColumns',
    'bytes/plan.ts #columnPlaces',
    'bytes/plan.ts #edited',
    'bytes/plan.ts #entries',
    'buffers/disk/packing/shape-unpacker.ts last', // values of one object, until the end of the record
    'remap/lexer.ts labels',
    'remap/program.ts secrets', // of one event
    'remap/regex.ts #flags',
    'remap/regex.ts #names',
    'config/read.ts emptyDirectories',
    'config/read.ts files',
    'config/read.ts parts',
    'config/read.ts problems',
    'formats/grok.ts captures',
    'formats/json-forms.ts kinds',
    'formats/regex-cost.ts #follow',
    'formats/regex-cost.ts #loops',
    'formats/regex-cost.ts #sets',
    'formats/regex-cost.ts #spans',
    'formats/regex-syntax.ts #looks',
    'formats/regex-syntax.ts #names',
    'formats/yaml-documents.ts problems',
    'given-file.ts #pieces',
    'intake/scrape.ts metrics',
    'remap/check/context.ts errors',
    'remap/check/context.ts pending',
    'remap/check/state.ts locals',
    'remap/compile/output.ts constants',
    'remap/compile/output.ts lines',
    'remap/functions/match_any.ts patterns',
    'remap/functions/parse_groks.ts aliases',
    'remap/functions/parse_groks.ts groks',
    'remap/meter.ts weights',
    'remap/parsed-message.ts #rest',
    'remap/unused.ts #found',
    'sources/file/reader.ts #complete',
    'sources/orchestrator_logs/assembler.ts collected',
    'transforms/remap.ts #dropped',
    'transforms/remap.ts tags',
    'sinks/file/parts.ts #parts', // of one batch
    'sinks/log_aggregator/line-run.ts streams', // of as many entries
    'formats/grok.ts #fieldCounts',
    'formats/json-forms.ts #seen',
    'formats/regex-cost.ts #members',
    'formats/regex-syntax.ts #sets',
    'formats/yaml-documents.ts #anchors',
    'formats/yaml-documents.ts #around',
    'formats/yaml-documents.ts #extents',
    'remap/byte-program.ts #variables',
    'remap/byte-program.ts edits',
    'remap/check/context.ts skipped',
    'remap/compile/effects.ts changes',
    'remap/compile/generation.ts parameters',
    'remap/compile/generation.ts slots',
    'remap/compile/output.ts #constantNames',
    'remap/growth.ts #fields',
    'remap/growth.ts #variables',
    'remap/parsed-message.ts #nulls',
    'remap/parsed-message.ts #objects',
    'remap/parsed-message.ts #variables',
    'remap/statement-effects.ts #reads',
    'remap/statement-effects.ts #variables',
    'remap/statement-effects.ts #writes',
    'remap/unused.ts #assigned',
    'remap/functions/snakecase.ts excluded',
    'sinks/message_broker/wire.ts #values',
    'sinks/monitor_a_metrics/sketch.ts #counts',
  ],
  'pending work, bounded by a limit or by a full buffer': [
    'buffers/disk.ts #waiting',
    'buffers/disk/handout.ts #hotParts',
    'buffers/disk/handout.ts #openParts',
    'buffers/disk/intake.ts #origins',
    'buffers/disk/progress.ts #records',
    'buffers/disk/syncs.ts #unsynced',
    'buffers/disk/write-queue.ts #items',
    'buffers/memory.ts #queue',
    'buffers/memory.ts #waiting',
    'delivery/delivery.ts #drainers',
    'delivery/delivery.ts #queue',
    'delivery/delivery.ts #waiters',
    'delivery/endpoints.ts #waiters',
    'delivery/request.ts counts',
    'delivery/request.ts finalizers',
    'sinks/message_broker/connection.ts #unread',
    'sinks/message_broker/producer.ts #sent',
    'sinks/message_broker/producer.ts #waiting',
    'sinks/message_broker/sink.ts #waiters',
    'sources/amqp/consumer.ts #waiting',
    'sources/orchestrator_events/cursor.ts #none',
    'sources/orchestrator_events/cursor.ts #pending',
    'sources/orchestrator_logs/reader.ts carried',
    'tailing/progress.ts #pending',
    'tailing/reader.ts #delays',
    'timing/token-bucket.ts #connections', // requests of the only client, which ends them
    'timing/token-bucket.ts #others', // the same
    'timing/token-bucket.ts #results', // the same
    'bundle/election.ts #waiting',
    'bundle/inquiries.ts #serving',
    'http/client.ts #ending',
    'remap/remote.ts #waiting',
    'sinks/message_broker/connection.ts #questions',
    'sources/amqp/receiver.ts #open',
    'sources/orchestrator_events/cursor.ts #handedOn',
    'tailing/stoppable-waits.ts #abandons',
    'topology/build.ts #waiting',
    'topology/fanout.ts #waits',
  ],
  'a number and a size of its own, with a test': [
    'bytes/plan-room.ts #kept',
    'api/tap.ts #kept',
    'event/value.ts sortedLists', // 64, each with at most 4,096 characters
    'sources/orchestrator_events/cursor.ts #delivered', // 10,000
    'buffers/disk/packing/record-memory.ts spares',
    'event/spares.ts #free',
    'formats/json-forms.ts #forms',
    'formats/json-splice.ts #keys',
    'formats/json-splice.ts #nameKeys',
    'formats/json-splice.ts #names',
    'formats/json-splice.ts #set',
    'formats/json-splice.ts #sorted',
    'formats/json-splice.ts #values',
    'formats/json.ts wideIntegers', // 16
    'tailing/multiline.ts #lines',
    'tailing/slab.ts #free',
    'topology/watchdog.ts #stalls', // the stalls of the last minute
    'bundle/access.ts #kept', // 1000 digests
    'delivery/batcher.ts #open',
    'enrichment/memory-table.ts #entries',
    'http/client.ts #pools',
    'metrics/normalizer.ts #known',
    'sinks/file.ts #emptied',
    'sinks/file.ts #files',
    'sinks/message_broker/connection.ts #producers',
    'sinks/message_broker/sink.ts #producers',
    'sinks/message_broker/sink.ts #topics',
    'tailing/shared-reads.ts #chunks',
    'tailing/shared-reads.ts chunks', // the chunks of one file
    'telemetry/metrics.ts seen',
    'telemetry/metrics.ts series',
    'transforms/seen-tag-values.ts #values',
  ],
  'the few different answers of servers: status codes, error codes, brokers of a cluster': [
    'http/client.ts #byValue',
    'sinks/message_broker/cluster.ts #connections',
    'telemetry/component-events.ts #histograms',
  ],
  'pods, namespaces and nodes in the list of the API server, and their existing folders': [
    'sources/orchestrator_logs/access.ts #lookUps',
    'sources/orchestrator_logs/excluded-pods.ts #folders',
    'sources/orchestrator_logs/access.ts #reportedNamespaces',
    'sources/orchestrator_logs/access.ts #verdicts',
    'sources/orchestrator_logs/access.ts #waiting',
    'sources/orchestrator_logs/pod-cache.ts #known',
    'sources/orchestrator_logs/pod-cache.ts #written',
    'sources/orchestrator_logs/pod-metadata.ts #objects',
    'sources/orchestrator_logs/pod-metadata.ts #removals',
    'sources/orchestrator_logs/pod-shares.ts #namespaces',
    'sources/orchestrator_logs/pod-shares.ts #reduced',
    'sources/orchestrator_logs/pod-shares.ts #taken',
  ],
  'files and folders that exist, or existed a minute ago': [
    'tailing/gzip-queue.ts #queue',
    'buffers/disk/store.ts #dirty',
    'buffers/disk/store.ts #unsynced',
    'bundle/leftovers.ts #goneSince',
    'sources/file/reader.ts #waiting',
    'sources/orchestrator_logs/compressed-logs.ts #containers',
    'sources/orchestrator_logs/reader.ts #holding',
    'tailing/checkpoint.ts #entries',
    'tailing/discovery.ts #busy',
    'tailing/discovery.ts #dirty',
    'tailing/discovery.ts #folders',
    'tailing/discovery.ts #unwatchable',
    'tailing/poller.ts #busy',
    'tailing/poller.ts #polled',
    'tailing/reader.ts #held',
    'tailing/reader.ts #ready',
    'tailing/registry.ts #byDirectory',
    'tailing/registry.ts #byFingerprint',
    'tailing/registry.ts #byInode',
    'tailing/registry.ts #byPath',
    'tailing/registry.ts #doubles',
    'tailing/registry.ts #folders',
    'tailing/registry.ts #waiting',
    'tailing/shared-discovery.ts #folders',
    'tailing/shared-reads.ts #files',
  ],
  'shapes of objects, counted when they are created': [
    'event/shape.ts #wider',
    'event/shape.ts branches',
    'buffers/disk/packing/shape-unpacker.ts unpackers',
    'event/shape.ts keyTexts',
    'remap/functions/map_keys.ts others',
  ],
  'the primitive itself': ['bounded-map.ts #old', 'bounded-map.ts #young'],
}

interface Node {
  readonly type: string
  readonly [member: string]: unknown
}

const isNode = (value: unknown): value is Node => typeof value === 'object' && value !== null && 'type' in value

function nameOf(node: Node): string | undefined {
  const named = node['id'] ?? node['key'] ?? (node['left'] as Node | undefined)?.['property']
  if (!isNode(named) || typeof named['name'] !== 'string') return undefined
  return named.type === 'PrivateIdentifier' ? `#${named['name']}` : named['name']
}

const isFunction = ({ type }: Node) =>
  /^(?:Arrow)?Function(?:Expression|Declaration)?$/.test(type) || type === 'ArrowFunctionExpression'

const childrenOf = (node: Node): Node[] => Object.values(node).flat().filter(isNode)

/**
 * Whether a node creates an empty Map or Set (`collection`), or a value that is a collection only if code adds to it (`literal`).
 */
function collectionOf(node: Node): 'collection' | 'literal' | undefined {
  if (/^TS\w+Expression$/.test(node.type)) return collectionOf(node['expression'] as Node)
  if (node.type === 'ArrayExpression' || node.type === 'ObjectExpression') return 'literal'
  const { name, property } = (node['callee'] ?? {}) as { name?: string; property?: { name?: string } }
  if (node.type === 'CallExpression') return property?.name === 'create' ? 'literal' : undefined
  if (node.type !== 'NewExpression') return undefined
  if (name === 'Array') return 'literal'
  if (name !== 'Map' && name !== 'Set') return undefined
  return (node['arguments'] as Node[]).length === 0 ? 'collection' : 'literal'
}

/** Whether code in the node adds to the variable or member with that name. */
function addsTo(node: Node, name: string): boolean {
  const isIt = (value: unknown) => isNode(value) && lastName(value) === name
  const callee = node['callee']
  if (isNode(callee) && isIt(callee['object']) && /^(?:set|add|push|unshift)$/.test(lastName(callee) ?? '')) return true
  const left = node['left']
  if (node.type === 'AssignmentExpression' && isNode(left)) {
    if (left['computed'] === true && isIt(left['object'])) return true
    // `all = [...all, one]`
    if (isIt(left) && spreads(node['right'] as Node, name)) return true
  }
  return childrenOf(node).some((child) => addsTo(child, name))
}

/** Whether a value contains all members of the variable or member with that name, and others. */
function spreads(node: Node, name: string): boolean {
  const parts = childrenOf(node)
  const isOf = ({ type, argument }: Node) => type === 'SpreadElement' && lastName(argument as Node) === name
  if (parts.length > 1 && parts.some(isOf)) return true
  return parts.some((child) => !isFunction(child) && spreads(child, name))
}

/** `c` of `a.b.c`. */
function lastName(node: Node): string | undefined {
  const last = node.type === 'MemberExpression' ? (node['property'] as Node) : node
  return last.type === 'PrivateIdentifier' ? `#${last['name']}` : (last['name'] as string | undefined)
}

/** Functions in the result of a function. They outlive the call, and so do the variables that they use. */
function returnedBy(owner: Node): Node[] {
  const found: Node[] = []
  const visit = (node: Node, isResult: boolean): void => {
    if (!isFunction(node))
      for (const child of childrenOf(node)) visit(child, isResult || node.type === 'ReturnStatement')
    else if (isResult) found.push(node)
  }
  const body = owner['body'] as Node
  visit(body, body.type !== 'BlockStatement')
  return found
}

/**
 * Names of the collections that begin empty and outlive the call that creates them: variables of a module, members of objects, variables
 * in code that builds or compiles, and variables to which a returned function adds.
 */
function longLived(source: string, file: string): string[] {
  const found: string[] = []
  const module = parseAst(source, { lang: 'ts' }, file) as unknown as Node
  const outlives = (node: Node, name: string, isKept: boolean, owner: Node | undefined): boolean => {
    if (node.type === 'PropertyDefinition') return true
    if (node.type === 'AssignmentExpression') return (node['left'] as Node).type === 'MemberExpression'
    if (node.type === 'VariableDeclarator' && owner !== undefined && !isKept) {
      return returnedBy(owner).some((each) => addsTo(each, name))
    }
    return isKept && (node.type === 'VariableDeclarator' || node.type === 'Property')
  }
  // Variables in code that builds or compiles outlive the call. Calls of other functions leave no variables behind.
  const visit = (node: Node, method: string | undefined, isKept: boolean, owner: Node | undefined): void => {
    const name = nameOf(node) ?? ''
    const made = node['init'] ?? node['value'] ?? node['right']
    const kind = isNode(made) ? collectionOf(made) : undefined
    if (kind !== undefined && outlives(node, name, isKept, owner)) {
      if (kind === 'collection' || addsTo(module, name)) found.push(name)
    }
    const isMethod = node.type === 'Property' || node.type === 'MethodDefinition'
    const isLasting = ['build', 'compile', 'constructor'].includes(method ?? '')
    for (const child of childrenOf(node)) {
      if (isFunction(node)) visit(child, undefined, isLasting, node)
      else visit(child, isMethod ? name : method, isKept, owner)
    }
  }
  visit(module, undefined, true, undefined)
  return [...new Set(found)]
}

test('the list contains exactly the long-lived collections, each with its bound', () => {
  const found: string[] = []
  for (const file of globSync('**/*.ts', { cwd: import.meta.dirname })) {
    if (file.endsWith('.test.ts') || roomOf(file) === 'cli' || developmentRooms.includes(roomOf(file))) continue
    const text = readFileSync(join(import.meta.dirname, file), 'utf8')
    for (const name of longLived(text, file)) found.push(`${file} ${name}`)
  }
  expect(found.sort()).toEqual(Object.values(bounds).flat().sort())
})

test.each<{ source: string; found: string[] }>([
  { source: 'const cache = new Map<string, number>()', found: ['cache'] },
  { source: 'export class A { readonly #seen = new Set<string>(); b = { c: new Map() } }', found: ['#seen', 'c'] },
  { source: 'class A { d; constructor() { this.d = new Map() } }', found: ['d'] },
  {
    source: 'define({ compile(call) { const known = new Map(); return (text) => known.get(text) } })',
    found: ['known'],
  },
  { source: 'define({ compile: () => ({ others: new Map() }) })', found: ['others'] },
  { source: 'define({ build(o) { return { run() { const gone = new Set() } } } })', found: [] },
  { source: 'function once() { const seen = new Set(); return seen.size }', found: [] },
  { source: 'function cached(f) { const kept = new Map(); return (key) => kept.set(key, f(key)) }', found: ['kept'] },
  { source: 'function queue() { const all = []; return { put(each) { all.push(each) } } }', found: ['all'] },
  {
    source: 'const byName: Record<string, X> = {}; export const put = (name, x) => { byName[name] = x }',
    found: ['byName'],
  },
  { source: 'class A { b() { this.#late ??= new Map() } #late }', found: ['#late'] },
  { source: 'class A { #items = []; put(item) { this.#items.push(item) } }', found: ['#items'] },
  { source: 'class A { none = []; options = { list: [] } }', found: [] },
  { source: "const words = new Set(['a']); const copy = new Map(words)", found: [] },
  { source: "const seen = new Set(['a']); export const see = (word) => seen.add(word)", found: ['seen'] },
  { source: 'class A { #all = []; put(one) { this.#all = [...this.#all, one] } }', found: ['#all'] },
  {
    source: 'class A { grow(one) { this.node.branches = new Map([one]); this.node.branches.set(one, 1) } }',
    found: ['branches'],
  },
  {
    source: 'const slots = new Array(64); export const keep = (hash, text) => { slots[hash & 63] = text }',
    found: ['slots'],
  },
])('$source: $found', ({ source, found }) => {
  expect(longLived(source, 'x.ts')).toEqual(found)
})
