// Converts a configuration of the OpenTelemetry collector to a Pipeline. `service.pipelines` defines the connections: the conversion
// follows the pipelines of logs in the order in which connectors join them. record.ts defines a log record here.

import { isTable } from '@penstock/agent/schema'
import { complete, type Ends } from '../complete.ts'
import type { Draft, Included, NamedText } from '../draft.ts'
import { Components, originOf } from './components.ts'
import { connectors, refusedConnectors } from './connectors.ts'
import { withoutPlaceholders } from './environment.ts'
import { serviceGaps } from './extensions.ts'
import { Context, findMapping, Part, type Path } from './mapping.ts'
import { Config } from './read.ts'

/** Reads the files of one configuration into a draft. */
export function convertOtel(files: readonly NamedText[], _included: Included, draft: Draft): void {
  const config = new Config(files, draft.gaps)
  new Conversion(config, draft).run()
}

interface Pipeline {
  readonly id: string
  readonly path: Path
  readonly receivers: readonly string[]
  readonly processors: readonly string[]
  readonly exporters: readonly string[]
}

const signalOf = (id: string) => (id.split('/')[0] ?? '').trim()

class Conversion {
  readonly #config: Config
  readonly #draft: Draft
  readonly #context: Context
  readonly #components: Components
  /** For each receiver, the transforms whose output is its records. */
  readonly #sources = new Map<string, readonly string[]>()
  /** For each exporter and connector, the components whose events it receives, in order. */
  readonly #arriving = new Map<string, string[]>()
  /** Components that pipelines name, but the configuration does not define. */
  readonly #undefined = new Set<Part>()
  /** For each connector and pipeline, the components whose events it passes on. */
  readonly #passed = new Map<string, Map<string, readonly string[]>>()

  constructor(config: Config, draft: Draft) {
    this.#config = config
    this.#draft = draft
    this.#context = new Context(
      draft.gaps,
      (id) => this.#find('extension', id),
      (heads, steps, wanted, part) => draft.append(heads, steps, wanted, originOf(part)),
      draft.namespace === undefined,
      (text) => JSON.stringify(config.value).includes(text),
    )
    this.#components = new Components(draft, this.#context, (part) => !this.#undefined.has(part))
  }

  run(): void {
    serviceGaps(this.#config, this.#context, (id) => this.#find('extension', id))
    const all = this.#pipelines()
    for (const pipeline of this.#ordered(all)) this.#pipeline(pipeline)
    for (const [id, heads] of this.#arriving) {
      if (this.#find('connector', id) !== undefined) continue
      this.#components.sink([...new Set(heads)], this.#part('exporter', id, this.#naming(id)))
    }
    this.#draft.removeUnread()
    complete(this.#draft, this.#config.place(['service', 'pipelines']), ends)
  }

  // --- pipelines ---

  /** The logs pipelines. Pipelines of other signals become gaps. */
  #pipelines(): readonly Pipeline[] {
    const { service } = this.#config.value
    const table = isTable(service) && isTable(service['pipelines']) ? service['pipelines'] : {}
    const list = (value: unknown) => (Array.isArray(value) ? value.map(String) : [])
    return Object.entries(table).flatMap(([id, value]) => {
      const path: Path = ['service', 'pipelines', id]
      // Chart values disable a default pipeline this way.
      if (value === null) return []
      if (signalOf(id) !== 'logs') {
        const refusal =
          signalOf(id) === 'metrics'
            ? {
                reason: 'metrics of this origin are not collected',
                nearest: 'Collect them with Prometheus or another metrics agent; Penstock collects logs.',
                // A source reads the same server, with other names of metrics.
                isHere: list(isTable(value) ? value['receivers'] : []).some((name) => signalOf(name) === 'apache'),
              }
            : {
                reason: `${signalOf(id)} are not collected`,
                nearest: `Keep a collector for ${signalOf(id)}; the Pipeline has the logs.`,
              }
        this.#context.missing(this.#config.place(path), `pipeline ${id}`, refusal, 'pipeline')
        return []
      }
      const given = isTable(value) ? value : {}
      const parts = { receivers: list(given['receivers']), processors: list(given['processors']) }
      return [{ id, path, ...parts, exporters: list(given['exporters']) }]
    })
  }

  /** Sorts pipelines so that those that feed a connector come before those that the connector feeds. */
  #ordered(pipelines: readonly Pipeline[]): readonly Pipeline[] {
    const ordered: Pipeline[] = []
    const seen = new Set<Pipeline>()
    const visit = (pipeline: Pipeline): void => {
      if (seen.has(pipeline)) return
      seen.add(pipeline)
      for (const before of pipelines) {
        const isFeeding = before.exporters.some(
          (id) => pipeline.receivers.includes(id) && this.#find('connector', id) !== undefined,
        )
        if (isFeeding) visit(before)
      }
      ordered.push(pipeline)
    }
    for (const pipeline of pipelines) visit(pipeline)
    return ordered
  }

  #pipeline(pipeline: Pipeline): void {
    let heads = pipeline.receivers.flatMap((id) => [
      ...(this.#passed.get(id)?.get(pipeline.id) ??
        (this.#find('connector', id) === undefined ? this.#source(id, pipeline) : [])),
    ])
    if (heads.length === 0) {
      this.#context.gap(
        this.#config.place(pipeline.path),
        `pipeline ${pipeline.id}`,
        'it has no receiver with a counterpart',
        'The pipeline is left out, because it receives nothing.',
      )
      return
    }
    for (const id of pipeline.processors) {
      heads = this.#append(heads, id, pipeline)
    }
    for (const id of pipeline.exporters) {
      const connector = this.#find('connector', id)
      if (connector === undefined) this.#arriving.set(id, [...(this.#arriving.get(id) ?? []), ...heads])
      else this.#connect(connector, pipeline, heads)
    }
  }

  #append(heads: readonly string[], id: string, pipeline: Pipeline): string[] {
    const part = this.#part('processor', id, [...pipeline.path, 'processors'])
    const wanted = `${pipeline.id === 'logs' ? '' : `${pipeline.id}-`}${id}`
    return this.#components.processor(heads, part, wanted)
  }

  /** Passes the events of a pipeline to the pipelines that have the connector as a receiver. */
  #connect(given: Part, pipeline: Pipeline, heads: readonly string[]): void {
    const targets = this.#pipelines()
      .filter(({ receivers: ids }) => ids.includes(given.id))
      .map(({ id }) => id)
    const mapping = findMapping(given, connectors, refusedConnectors, this.#context)
    if (mapping === undefined) return
    const part = withoutPlaceholders(given, false, this.#context)
    this.#context.reportOptions(part, mapping)
    const passed = this.#passed.get(given.id) ?? new Map<string, readonly string[]>()
    this.#passed.set(given.id, passed)
    for (const { target, steps } of mapping.build(part, this.#context)(targets)) {
      const made = this.#context.append(heads, steps, `${pipeline.id}-to-${target}`, part)
      passed.set(target, [...(passed.get(target) ?? []), ...made])
    }
  }

  // --- components ---

  #source(id: string, pipeline: Pipeline): readonly string[] {
    const known = this.#sources.get(id)
    if (known !== undefined) return known
    const heads = this.#components.source(this.#part('receiver', id, [...pipeline.path, 'receivers']))
    this.#sources.set(id, heads)
    return heads
  }

  /** The path of the first pipeline that names an exporter. */
  #naming(id: string): Path {
    const path = this.#pipelines().find((pipeline) => pipeline.exporters.includes(id))?.path
    return path === undefined ? ['service', 'pipelines'] : [...path, 'exporters']
  }

  /** A component that a pipeline names. */
  #part(kind: string, id: string, namedAt: Path): Part {
    const found = this.#find(kind, id)
    if (found !== undefined) return found
    const known = [...this.#undefined].find((part) => part.kind === kind && part.id === id)
    if (known !== undefined) return known
    const place = this.#config.place(namedAt)
    this.#context.gap(
      place,
      `${kind} ${id}`,
      `the configuration does not define the ${kind}`,
      `Define it in \`${kind}s\`, or also convert the file that defines it.`,
    )
    const part = new Part(kind, id, {}, () => place)
    this.#undefined.add(part)
    return part
  }

  #find(kind: string, id: string): Part | undefined {
    const section = `${kind}s`
    const all = this.#config.value[section]
    if (!isTable(all) || !Object.hasOwn(all, id)) return undefined
    const config = all[id]
    return new Part(kind, id, isTable(config) ? config : {}, (path) => this.#config.place([section, id, ...path]))
  }
}

const ends: Ends = {
  source: {
    subject: 'receivers',
    reason: 'no logs pipeline has a receiver',
    comment: 'the configuration has no receiver for logs.',
  },
  sink: {
    subject: 'exporters',
    reason: 'no logs pipeline has an exporter',
    comment: 'the configuration has no exporter for logs.',
  },
}
