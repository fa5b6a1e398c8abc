// Splits the components of a configuration into Pipelines of a valid size, which replace it together. If one path has too many transforms,
// neighbouring programs become one, as far as this changes nothing.

import { compileProgram } from '@penstock/agent/config'
import { maxEntries } from '../api/pipeline.ts'
import type { Component, Components, Gap, Kind } from './draft.ts'

/** The component of an output such as `name.dropped`. */
const ownerOf = (output: string) => output.replace(/\..*$/s, '')

const isTooLarge = (parts: Components) => Object.values(parts).some(({ size }) => size > maxEntries)

/**
 * Splits components into Pipelines of a valid size: by their sources, by their sinks and what these read, or by both.
 * @param kept names of transforms that must stay as they are
 * @param gaps gets a gap if a path has too many transforms
 */
export function bySize(parts: Components, kept: ReadonlySet<string>, gaps: Gap[]): readonly Components[] {
  if (!isTooLarge(parts)) return [parts]
  const split = splitOf(parts)
  if (!split.some(isTooLarge)) return split
  return splitOf(shortened(parts, kept)).map((part) => cut(part, gaps))
}

function splitOf(parts: Components): readonly Components[] {
  if (!isTooLarge(parts)) return [parts]
  const bySource = grouped([...parts.sources.keys()], (names) => downstreamOf(names, parts))
  const byRead = grouped(readsOf(parts), (reads) => upstreamOf(reads, parts))
  const [first, second] = byRead.length < bySource.length ? [byRead, bySource] : [bySource, byRead]
  if (!first.some(isTooLarge)) return first
  if (!second.some(isTooLarge)) return second
  const both = bySource.flatMap((part) => grouped(readsOf(part), (reads) => upstreamOf(reads, part)))
  return both.some(isTooLarge) ? [parts] : both
}

/** An input of a sink. */
interface Read {
  readonly sink: string
  readonly input: string
}

const readsOf = ({ sinks }: Components): readonly Read[] =>
  [...sinks].flatMap(([sink, { inputs = [] }]) => inputs.map((input) => ({ sink, input })))

/** Groups items, in order, so that the components of a group are few enough. A group of one item may have too many. */
function grouped<Item>(items: readonly Item[], of: (items: readonly Item[]) => Components): readonly Components[] {
  const groups: Item[][] = []
  for (const item of items) {
    const last = groups.at(-1)
    if (last === undefined || isTooLarge(of([...last, item]))) groups.push([item])
    else last.push(item)
  }
  return groups.map(of)
}

/** The sources, and all components that receive their events. */
export function downstreamOf(sources: readonly string[], parts: Components): Components {
  const kept: Components = { sources: new Map(), transforms: new Map(), sinks: new Map() }
  const names = new Set(sources)
  for (const name of sources) kept.sources.set(name, parts.sources.get(name) as Component)
  const reading = ({ inputs = [] }: Component) => inputs.filter((input) => input === '*' || names.has(ownerOf(input)))
  for (let size = -1; size !== names.size; ) {
    size = names.size
    for (const [name, transform] of parts.transforms) if (reading(transform).length > 0) names.add(name)
  }
  for (const kind of ['transforms', 'sinks'] as const) {
    for (const [name, component] of parts[kind]) {
      const inputs = reading(component)
      if (inputs.length > 0) kept[kind].set(name, { ...component, inputs })
    }
  }
  return kept
}

/** The sinks with these inputs, and all components that they receive events from. */
function upstreamOf(reads: readonly Read[], parts: Components): Components {
  const names = new Set<string>()
  const visit = (inputs: readonly string[] = []): void => {
    for (const input of inputs.map(ownerOf)) {
      if (input === '*') for (const kind of ['sources', 'transforms'] as const) visit([...parts[kind].keys()])
      else if (!names.has(input)) {
        names.add(input)
        visit(parts.transforms.get(input)?.inputs)
      }
    }
  }
  visit(reads.map(({ input }) => input))
  const kept = (kind: Kind) => new Map([...parts[kind]].filter(([name]) => names.has(name)))
  const sinks = [...Map.groupBy(reads, ({ sink }) => sink)].map(([sink, own]): [string, Component] => [
    sink,
    { ...(parts.sinks.get(sink) as Component), inputs: own.map(({ input }) => input) },
  ])
  return { sources: kept('sources'), transforms: kept('transforms'), sinks: new Map(sinks) }
}

/** Whether a program can fail or return early, so that it cannot share a program with its neighbour. */
const mayFail = (text: string) => /\w!\s*\(|\breturn\b/.test(text)

/** The program of a transform without other options; undefined if it must stay alone. */
function programOf({ type, config = {} }: Component): string | undefined {
  const [name, text] = Object.entries(config)[0] ?? []
  if (Object.keys(config).length !== 1 || typeof text !== 'string' || mayFail(text)) return undefined
  if (type === 'remap' && name === 'source') return text
  if (type !== 'filter' || name !== 'condition' || /\babort\b/.test(text)) return undefined
  return `if !({\n${text}\n}) { abort }`
}

/** The components with programs of neighbours joined, until a Pipeline may have that many transforms. */
function shortened(parts: Components, kept: ReadonlySet<string>): Components {
  const transforms = new Map(parts.transforms)
  for (const [name] of parts.transforms) {
    if (transforms.size <= maxEntries) break
    const readers = [...transforms, ...parts.sinks].filter(([, { inputs = [] }]) =>
      inputs.some((input) => ownerOf(input) === name || input === '*'),
    )
    const [reader] = readers
    const first = transforms.get(name) as Component
    const second = reader === undefined ? undefined : transforms.get(reader[0])
    if (reader === undefined || second === undefined || readers.length > 1 || kept.has(name)) continue
    if (second.inputs?.length !== 1 || second.inputs[0] !== name) continue
    const programs = [programOf(first), programOf(second)]
    const source = programs.join('\n')
    if (programs.includes(undefined) || !compileProgram(source).ok) continue
    transforms.delete(name)
    const comments = [...(first.comments ?? []), ...(second.comments ?? [])]
    transforms.set(reader[0], {
      ...second,
      type: 'remap',
      inputs: first.inputs ?? [],
      config: { source },
      ...(comments.length === 0 ? {} : { comments }),
    })
  }
  return { ...parts, transforms }
}

/** Leaves out the transforms of a path beyond the maximum, and reports them. Their inputs take their place. */
function cut(parts: Components, gaps: Gap[]): Components {
  if (parts.transforms.size <= maxEntries) return parts
  const all = [...parts.transforms]
  const left = new Map(all.slice(maxEntries))
  const resolved = (input: string): readonly string[] => left.get(ownerOf(input))?.inputs?.flatMap(resolved) ?? [input]
  const [[first, component]] = all.slice(maxEntries) as [[string, Component]]
  const { file = '', line = 1 } = component.origin ?? {}
  const names = [...left.keys()].map((name) => `\`${name}\``).join(', ')
  const gap: Gap = {
    file,
    line,
    subject: component.origin?.subject ?? first,
    reason: `a Pipeline may have ${maxEntries} transforms; this path has ${all.length}, so ${names} are left out`,
    nearest: 'Write several of the programs as one, and convert again.',
  }
  if (!gaps.some(({ subject, reason }) => subject === gap.subject && reason === gap.reason)) gaps.push(gap)
  const withInputs = ([name, each]: [string, Component]): [string, Component] => [
    name,
    each.inputs === undefined ? each : { ...each, inputs: [...new Set(each.inputs.flatMap(resolved))] },
  ]
  return {
    sources: parts.sources,
    transforms: new Map(all.slice(0, maxEntries).map(withInputs)),
    sinks: new Map([...parts.sinks].map(withInputs)),
  }
}
