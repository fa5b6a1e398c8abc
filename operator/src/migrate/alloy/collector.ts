// The components `otelcol.*`, which are components of the collector with arguments of other shapes. This file gives their arguments the
// collector's shape, with the lines of the Alloy file, so that the collector's mappings convert them.

import type { Draft } from '../draft.ts'
import { below, isList, isMap, itemsOf, type Place, type Tree } from '../loki/tree.ts'
import { Components, originOf } from '../otel/components.ts'
import { refusedConnectors } from '../otel/connectors.ts'
import { extensions, refusedExtension } from '../otel/extensions.ts'
import { lokiForm, withIntegers } from '../otel/forms.ts'
import { Context, findMapping, gapComment, Part, type Path, typeOf } from '../otel/mapping.ts'
import type { Refusal } from '../page.ts'
import { referenceOf } from './evaluate.ts'
import { idOf, nameOf } from './names.ts'
import type { Block } from './syntax.ts'
import { componentOf, type Found, type Lookup } from './targets.ts'

/** The part of an Alloy component in a chain of events. */
type Role = 'source' | 'step' | 'sink' | 'extension'

/** How the arguments of a component differ from the collector's. Paths are those of Alloy. */
interface Shape {
  /** Blocks whose members are options of the component itself. */
  readonly lifted?: readonly string[]
  /** Blocks that form a list, with its name; blocks and arguments with other names. */
  readonly lists?: Readonly<Record<string, string>>
  readonly renamed?: Readonly<Record<string, string>>
  /** Arguments that belong to a group. */
  readonly grouped?: Readonly<Record<string, string>>
}

const client: Shape = { lifted: ['client'], renamed: { queue: 'sending_queue' } }
const matched = (block: string) => ({
  [`${block}.attribute`]: 'attributes',
  [`${block}.resource`]: 'resources',
  [`${block}.library`]: 'libraries',
})

const shapes: Readonly<Record<string, Shape>> = {
  'processor.attributes': {
    lists: { action: 'actions', ...matched('include'), ...matched('exclude') },
    renamed: { 'include.log_severity': 'log_severity_number', 'exclude.log_severity': 'log_severity_number' },
  },
  'processor.k8sattributes': {
    lists: {
      'extract.label': 'labels',
      'extract.annotation': 'annotations',
      'filter.field': 'fields',
      'filter.label': 'labels',
      pod_association: 'pod_association',
      'pod_association.source': 'sources',
      'exclude.pod': 'pods',
    },
  },
  'processor.transform': {
    lifted: ['statements'],
    renamed: { log: 'log_statements', trace: 'trace_statements', metric: 'metric_statements' },
    lists: {
      log_statements: 'log_statements',
      trace_statements: 'trace_statements',
      metric_statements: 'metric_statements',
    },
  },
  'processor.filter': {
    lists: {
      log_conditions: 'log_conditions',
      trace_conditions: 'trace_conditions',
      metric_conditions: 'metric_conditions',
    },
  },
  'processor.memory_limiter': { renamed: { limit: 'limit_mib', spike_limit: 'spike_limit_mib' } },
  'exporter.splunkhec': {
    lifted: ['client', 'splunk'],
    renamed: {
      source_type: 'sourcetype',
      queue: 'sending_queue',
      insecure_skip_verify: 'tls.insecure_skip_verify',
      use_multi_metrics_format: 'use_multi_metric_format',
    },
  },
  'exporter.datadog': { ...client, renamed: { 'api.api_key': 'key', queue: 'sending_queue' } },
  'auth.basic': { grouped: { username: 'client_auth', password: 'client_auth' } },
  'auth.headers': { lists: { header: 'headers' } },
}

/** The collector's types of extensions. */
const extensionTypes: Readonly<Record<string, string>> = {
  'auth.basic': 'basicauth',
  'auth.bearer': 'bearertokenauth',
  'auth.headers': 'headerssetter',
  'auth.sigv4': 'sigv4auth',
  'auth.oauth2': 'oauth2client',
  'auth.google': 'googleclientauth',
  'auth.azure': 'azureauth',
  'storage.file': 'filestorage',
}

const isOne = (block: Block) => block.name.startsWith('otelcol.')
const restOf = ({ name }: Block) => name.slice('otelcol.'.length)

/** The role of a component of the collector; undefined for other components. */
export function roleOf(block: Block): Role | undefined {
  if (!isOne(block)) return undefined
  const [kind, type] = restOf(block).split('.')
  if (type === 'loki') return 'step'
  if (kind === 'receiver') return 'source'
  if (kind === 'processor') return 'step'
  return kind === 'exporter' || kind === 'connector' ? 'sink' : 'extension'
}

/** Blocks of Alloy's own. */
const own = ['output', 'debug_metrics']

/** The arguments of a component in the collector's shape. */
function shaped(tree: Tree, shape: Shape, above = ''): Tree {
  if (!isMap(tree)) return tree
  const made = new Map<string, Tree>()
  const put = (path: string, value: Tree): void => {
    const [name = '', ...rest] = path.split('.')
    if (rest.length === 0) {
      const before = made.get(name)
      made.set(
        name,
        isMap(before) && isMap(value) ? { ...before, value: new Map([...before.value, ...value.value]) } : value,
      )
      return
    }
    put(name, { file: value.file, line: value.line, value: new Map([[rest.join('.'), value]]) })
  }
  const visit = (members: ReadonlyMap<string, Tree>, prefix: string): void => {
    for (const [name, value] of members) {
      const path = prefix === '' ? name : `${prefix}.${name}`
      if (shape.lifted?.includes(path) === true && isMap(value)) {
        visit(value.value, prefix)
        continue
      }
      const list = shape.lists?.[path]
      if (list !== undefined) {
        const items = isList(value) ? value.value : [value]
        put(list, { ...value, value: items.map((item) => shaped(item, shape, path)) })
        continue
      }
      const group = shape.grouped?.[path]
      const renamed = shape.renamed?.[path] ?? name
      put(group === undefined ? renamed : `${group}.${name}`, shaped(value, shape, path))
    }
  }
  visit(tree.value, above)
  return { ...tree, value: made }
}

/** A dollar sign that does not begin a variable, as the collector writes it. */
const escapedDollars = (text: string) => text.replace(/\$(?!\{[A-Z_][A-Z0-9_]*(?::-?[^}]*)?\})/g, '$$$$')

function plain(tree: Tree): unknown {
  const reference = referenceOf(tree)
  if (reference !== undefined) return componentOf(reference)
  if (isList(tree)) return tree.value.map(plain)
  if (isMap(tree)) return Object.fromEntries([...tree.value].map(([name, item]) => [name, plain(item)]))
  return typeof tree.value === 'string' ? escapedDollars(tree.value) : tree.value
}

/** The place of the value at a path, or of its nearest parent. */
function placeIn(tree: Tree, path: Path): Place {
  let current = tree
  for (const key of path) {
    const next = typeof key === 'number' ? itemsOf(current)[key] : below(current, key)
    if (next === undefined) break
    current = next
  }
  return { file: current.file, line: current.line }
}

/** The references to receivers of logs in `output` of a component, and the ids of the receivers of other signals. */
export function outputsOf({ block, evaluator }: Found): {
  readonly logs: readonly Tree[]
  readonly others: readonly string[]
} {
  const output = isOne(block) ? block.blocks.find(({ name }) => name === 'output') : undefined
  if (output === undefined) return { logs: [], others: [] }
  const items = (name: string) => itemsOf(evaluator.attribute(output, name))
  const ids = [...items('traces'), ...items('metrics')].flatMap((item) => {
    const reference = referenceOf(item)
    return reference === undefined ? [] : [componentOf(reference)]
  })
  return { logs: items('logs'), others: ids }
}

/** Statements that make a record of a line of Loki, as Alloy does. */
const recordOfLine = [
  'labels = object!(.labels)',
  'attributes = labels',
  'if is_string(labels.filename) {',
  '  attributes."log.file.path" = labels.filename',
  '  attributes."log.file.name" = replace(string!(labels.filename), r\'^.*/\', "")',
  '}',
  'if !is_empty(labels) { attributes."loki.attribute.labels" = join!(keys(labels), ",") }',
  '. = { "message": .message, "timestamp": .timestamp, "observed_timestamp": now(), "attributes": attributes, "resource": { "attributes": {} } }',
].join('\n')

/** Statements that make a line of Loki of the event of `lokiForm`. */
const lineOfForm = [
  'labels = map_values(object!(.labels)) -> |value| { to_string(value) ?? encode_json(value) }',
  '. = { "message": .message, "timestamp": timestamp(.timestamp) ?? now(), "labels": labels, "metadata": {}, "extracted": labels }',
].join('\n')

export class Collector {
  readonly #draft: Draft
  readonly #context: Context
  readonly #components: Components

  constructor(draft: Draft, lookup: Lookup) {
    this.#draft = draft
    const extension = (id: string) => {
      const found = lookup(id)
      return found === undefined ? undefined : this.#part(found)
    }
    this.#context = new Context(
      draft.gaps,
      extension,
      (heads, steps, wanted, part) => draft.append(heads, steps, wanted, originOf(part)),
      draft.namespace === undefined,
    )
    this.#components = new Components(draft, this.#context)
  }

  #part({ block, evaluator }: Found): Part {
    const leaves = block.blocks.map(({ name }) => name).filter((name) => own.includes(name))
    const rest = restOf(block)
    const shape = shapes[rest] ?? (rest.startsWith('exporter.') ? client : {})
    const tree = withAuthenticator(shaped(evaluator.tree(block, leaves), shape))
    const config = plain(tree) as Readonly<Record<string, unknown>>
    const id = idOf(block)
    return new Part('component', id, config, (path) => placeIn(tree, path), {
      type: extensionTypes[rest] ?? typeOf(rest.split('.')[1] ?? ''),
      name: nameOf(block),
      title: id,
    })
  }

  /** The transforms whose output is the records of a receiver. */
  source(found: Found): readonly string[] {
    return this.#components.source(this.#part(found))
  }

  /** The transforms of a processor, or of a bridge between lines of Loki and records. */
  step(found: Found, heads: readonly string[]): readonly string[] {
    const part = this.#part(found)
    if (part.type !== 'loki') return this.#components.processor(heads, part, part.name)
    const isReceiver = restOf(found.block).startsWith('receiver.')
    const byDefault = { exporter: true, job: true, instance: true, level: true }
    const steps = isReceiver
      ? [{ type: 'remap' as const, text: recordOfLine, comments: ['The line as a record of the collector.'] }]
      : [...withIntegers(this.#context, lokiForm(byDefault)), { type: 'remap' as const, text: lineOfForm }]
    const options: Record<string, string> = isReceiver ? {} : { forward_to: '' }
    this.#context.reportOptions(part, { name: 'loki', options })
    return this.#context.append(heads, steps, part.name, part)
  }

  sink(found: Found, heads: readonly string[]): void {
    const part = this.#part(found)
    if (!restOf(found.block).startsWith('connector.')) {
      this.#components.sink(heads, part)
      return
    }
    findMapping(part, [], refusedConnectors, this.#context)
    const comments = [gapComment(part, 'This sink discards its events.')]
    this.#draft.add('sinks', part.name, { type: 'blackhole', inputs: heads, comments })
  }

  /** Reports a component that others use and that has no events. */
  extension(found: Found): void {
    const part = this.#part(found)
    const known = extensions.find(({ name }) => typeOf(name) === part.type)
    if (part.type === 'filestorage')
      this.#context.reportOptions(part, { name: part.type, options: {}, itself: storageItself })
    if (known !== undefined) this.#context.replaced(part.place(), part.title, known.reason, known.nearest)
    else this.#context.missing(part.place(), part.title, refusedExtension(part.type), part.kind)
  }

  /** Reports a component that no logs reach. */
  unreached(found: Found, hasOthers: boolean): void {
    const part = this.#part(found)
    if (hasOthers) this.#context.missing(part.place(), part.title, others, part.kind)
    else {
      const nearest = 'The component is left out.'
      this.#context.gap(part.place(), part.title, 'no component forwards to it', nearest)
    }
  }
}

const checkpoints = 'the agent keeps its own checkpoints'
/** Options of `otelcol.storage.file`. */
const storageItself = {
  ...Object.fromEntries(['directory', 'timeout', 'fsync', 'create_directory'].map((name) => [name, checkpoints])),
  directory_permissions: checkpoints,
  compaction: checkpoints,
}

/** Traces and metrics beside logs. */
const others: Omit<Refusal, 'name'> = {
  reason: 'it receives or passes on traces or metrics, which Penstock does not collect from other programs',
  nearest: 'Keep Alloy for them.',
}

/** The extension that an exporter names, as the collector writes it. */
function withAuthenticator(tree: Tree): Tree {
  const auth = below(tree, 'auth')
  if (!isMap(tree) || auth === undefined || referenceOf(auth) === undefined) return tree
  const named = { ...auth, value: new Map([['authenticator', auth]]) }
  return { ...tree, value: new Map([...tree.value, ['auth', named]]) }
}
