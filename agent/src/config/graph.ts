// The graph of components: resolves inputs to outputs, and checks all connections between components.
// It accepts incomplete components, so that one invalid component does not hide problems in the others.

import type { ComponentKind } from '../component.ts'
import type { EventType } from '../event/batch.ts'
import { closest, type Problem } from '../schema/problems.ts'
import { type Located, problemAt } from './place.ts'

/** A component of the graph, which may be incomplete because of errors that have already been reported. */
export interface GraphNode {
  readonly id: string
  readonly kind: ComponentKind
  readonly located: Located
  /** The inputs as the user wrote them; undefined if they are invalid. */
  readonly inputs: readonly string[] | undefined
  /** Event types that a source emits, or that a transform or sink accepts; undefined if the component is unknown. */
  readonly types: readonly EventType[] | undefined
  /** Event types that a transform emits, if they differ from those that it accepts. */
  readonly emits?: readonly EventType[] | undefined
  /** Named outputs; undefined if they are unknown. */
  readonly ports: readonly string[] | undefined
  readonly resources: readonly string[]
}

export interface GraphOptions {
  readonly allowEmpty: boolean
  /** Whether a wildcard may match nothing. */
  readonly relaxedWildcards: boolean
  /** Resources that the agent itself claims. */
  readonly resources: readonly (readonly [owner: string, resource: string])[]
}

/** The resolved inputs of each component, by its id. */
export type Inputs = ReadonlyMap<string, readonly string[]>

/** @param root the whole configuration, for problems that concern no single component */
export function resolveGraph(
  nodes: readonly GraphNode[],
  root: Located,
  options: GraphOptions,
  problems: Problem[],
): Inputs {
  checkNames(nodes, root, options, problems)
  const producers = nodes.filter((node) => node.kind !== 'sink')
  const outputs = producers.flatMap((node) => [node.id, ...(node.ports ?? []).map((port) => `${node.id}.${port}`)])
  const inputs = new Map<string, readonly string[]>()
  for (const node of nodes) {
    if (node.kind !== 'source') inputs.set(node.id, resolveInputs(node, nodes, outputs, options, problems))
  }
  const cyclic = checkCycles(nodes, inputs, problems)
  if (!cyclic) checkTypes(nodes, inputs, problems)
  checkConsumers(producers, inputs, problems)
  checkResources(nodes, options, problems)
  return inputs
}

function checkNames(nodes: readonly GraphNode[], root: Located, options: GraphOptions, problems: Problem[]): void {
  if (!options.allowEmpty) {
    for (const kind of ['source', 'sink'] as const) {
      if (nodes.some((node) => node.kind === kind)) continue
      const title = kind === 'source' ? 'sources' : 'sinks'
      problems.push(problemAt(root, [], { message: `No ${title} defined in the config.` }))
    }
  }
  const byId = Map.groupBy(nodes, (node) => node.id)
  for (const [id, same] of byId) {
    const first = same[0] as GraphNode
    if (id.includes('.')) {
      const message = `Component name "${id}" should not contain a "."`
      problems.push(
        problemAt(first.located, [], {
          atKey: true,
          message,
          help: 'a dot separates a component from its named output',
        }),
      )
    }
    if (same.length > 1) {
      const kinds = same.map((node) => node.kind).join(', ')
      const message = `More than one component with name "${id}" (${kinds}).`
      problems.push(problemAt((same[1] as GraphNode).located, [], { atKey: true, message }))
    }
  }
}

function resolveInputs(
  node: GraphNode,
  nodes: readonly GraphNode[],
  outputs: readonly string[],
  options: GraphOptions,
  problems: Problem[],
): readonly string[] {
  const { inputs, located } = node
  if (inputs === undefined) return []
  const title = node.kind === 'sink' ? 'Sink' : 'Transform'
  if (inputs.length === 0) {
    problems.push(problemAt(located, ['inputs'], { message: `${title} "${node.id}" has no inputs` }))
    return []
  }
  for (const [input, same] of Map.groupBy(inputs.entries(), ([, text]) => text)) {
    if (same.length === 1) continue
    const message = `${title} "${node.id}" has input "${input}" duplicated ${same.length} times`
    problems.push(problemAt(located, ['inputs', (same[1] as [number, string])[0]], { message }))
  }
  const resolved = new Set<string>()
  for (const [index, input] of inputs.entries()) {
    const matched = matches(input, node, outputs)
    for (const output of matched) resolved.add(output)
    if (matched.length > 0 || (isPattern(input) && options.relaxedWildcards)) continue
    // An invalid component has unknown ports, so this input may be correct.
    const owner = nodes.find((each) => input.startsWith(`${each.id}.`))
    if (owner !== undefined && owner.kind !== 'sink' && owner.ports === undefined) continue
    problems.push(
      problemAt(located, ['inputs', index], {
        message: `Input "${input}" for ${node.kind} "${node.id}" doesn't match any components.`,
        help: inputHelp(input, node, nodes, outputs),
      }),
    )
  }
  return [...resolved]
}

function matches(input: string, node: GraphNode, outputs: readonly string[]): readonly string[] {
  if (outputs.includes(input)) return [input]
  if (!isPattern(input)) return []
  const pattern = globPattern(input)
  return outputs.filter((output) => pattern.test(output) && output !== node.id && !output.startsWith(`${node.id}.`))
}

function inputHelp(
  input: string,
  node: GraphNode,
  nodes: readonly GraphNode[],
  outputs: readonly string[],
): string | undefined {
  const own = nodes.find((each) => each.id === input)
  if (own?.kind === 'sink') return `"${input}" is a sink, and sinks have no outputs`
  const near = closest(
    input,
    outputs.filter((output) => output !== node.id),
  )
  return near === undefined ? undefined : `did you mean "${near}"?`
}

export function isPattern(text: string): boolean {
  return /[*?[]/.test(text)
}

/** Compiles a glob for ids: `*` matches any text, `?` one character, `[abc]` one of these characters, `[!abc]` any other character. */
export function globPattern(glob: string): RegExp {
  let source = ''
  for (let at = 0; at < glob.length; at++) {
    const char = glob[at] as string
    const end = char === '[' ? glob.indexOf(']', at + 2) : -1
    if (char === '*') source += '[\\s\\S]*'
    else if (char === '?') source += '[\\s\\S]'
    else if (end > 0) {
      const negated = glob[at + 1] === '!' || glob[at + 1] === '^'
      const set = glob.slice(at + (negated ? 2 : 1), end).replace(/[\\\]^]/g, '\\$&')
      source += `[${negated ? '^' : ''}${set}]`
      at = end
    } else source += char.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&')
  }
  try {
    return new RegExp(`^${source}$`)
  } catch {
    // A reversed range such as `[z-a]` is not a valid pattern, so it matches itself literally.
    return new RegExp(`^${glob.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&')}$`)
  }
}

/** The id of the component that an output belongs to. Ids contain no dots. */
export function ownerOf(output: string): string {
  const dot = output.indexOf('.')
  return dot < 0 ? output : output.slice(0, dot)
}

function checkCycles(nodes: readonly GraphNode[], inputs: Inputs, problems: Problem[]): boolean {
  const done = new Set<string>()
  const byId = new Map(nodes.map((node) => [node.id, node]))
  let found = false
  const visit = (id: string, chain: readonly string[]): void => {
    const start = chain.indexOf(id)
    if (start >= 0) {
      found = true
      // `chain` follows the inputs upstream, but the message shows the direction in which events flow.
      const cycle = [...chain.slice(start), id].toReversed()
      const node = byId.get(id) as GraphNode
      const message = `Cyclic dependency detected in the chain [ ${cycle.join(' -> ')} ]`
      problems.push(problemAt(node.located, ['inputs'], { message }))
      return
    }
    if (done.has(id)) return
    for (const input of inputs.get(id) ?? []) visit(ownerOf(input), [...chain, id])
    done.add(id)
  }
  for (const node of nodes) visit(node.id, [])
  return found
}

function checkTypes(nodes: readonly GraphNode[], inputs: Inputs, problems: Problem[]): void {
  const byId = new Map(nodes.map((node) => [node.id, node]))
  const known = new Map<string, readonly EventType[] | undefined>()
  const emitted = (id: string): readonly EventType[] | undefined => {
    if (known.has(id)) return known.get(id)
    const node = byId.get(id)
    let types = node?.emits ?? node?.types
    if (node?.emits === undefined && node?.kind === 'transform' && types !== undefined) {
      const upstream = (inputs.get(id) ?? []).map((input) => emitted(ownerOf(input)))
      // A transform emits those types that it both receives and accepts.
      if (!upstream.includes(undefined)) types = types.filter((type) => upstream.some((each) => each?.includes(type)))
    }
    known.set(id, types)
    return types
  }
  for (const node of nodes) {
    for (const input of inputs.get(node.id) ?? []) {
      const from = emitted(ownerOf(input))
      if (from === undefined || node.types === undefined || from.length === 0) continue
      if (from.some((type) => node.types?.includes(type))) continue
      const message = `Data type mismatch between ${input} (${typeNames(from)}) and ${node.id} (${typeNames(node.types)})`
      const help = `"${node.id}" accepts only ${node.types.join(' and ')} events; change its inputs, or use another type of ${node.kind}.`
      problems.push(problemAt(node.located, ['inputs'], { message, help }))
    }
  }
}

function typeNames(types: readonly EventType[]): string {
  return types.map((type) => (type === 'log' ? 'Log' : 'Metric')).join(', ')
}

function checkConsumers(producers: readonly GraphNode[], inputs: Inputs, problems: Problem[]): void {
  const consumed = new Set([...inputs.values()].flat().map(ownerOf))
  for (const node of producers) {
    if (consumed.has(node.id)) continue
    const message = `${node.kind === 'source' ? 'Source' : 'Transform'} "${node.id}" has no consumers`
    problems.push(problemAt(node.located, [], { severity: 'warning', code: 'NO_CONSUMERS', atKey: true, message }))
  }
}

function checkResources(nodes: readonly GraphNode[], options: GraphOptions, problems: Problem[]): void {
  const claims = [
    ...options.resources.map(([owner, resource]) => ({ owner, resource, node: undefined })),
    ...nodes.flatMap((node) => node.resources.map((resource) => ({ owner: node.id, resource, node }))),
  ]
  for (const [resource, same] of Map.groupBy(claims, (claim) => claim.resource)) {
    if (same.length === 1) continue
    const owners = same.map((claim) => `"${claim.owner}"`).join(', ')
    const message = `Resource "${resource}" is claimed by multiple components: [${owners}]`
    const node = same.at(-1)?.node
    if (node !== undefined) problems.push(problemAt(node.located, [], { atKey: true, message }))
  }
}
