// The components of a Pipeline as a tree: each is followed by the components that read from it. A component that reads from several
// is placed below the first, and names the others.

import type { Pipeline } from '../api/pipeline.ts'
import { isMeant } from '../compile/inputs.ts'

type Entries = Pick<Pipeline['spec'], 'sources' | 'transforms' | 'sinks'>
type Entry = Entries['sources'][number] | NonNullable<Entries['transforms']>[number] | Entries['sinks'][number]

interface Node {
  readonly what: 'source' | 'transform' | 'sink'
  readonly entry: Entry
  readonly inputs: readonly string[]
}

export interface Branch {
  /** `├─ sink search (search_engine)`. */
  readonly line: string
  /** The text before further lines about the component. */
  readonly indent: string
  readonly name: string
}

/**
 * Components without `inputs` read from the previous entry: the first transform from the sources, sinks from the last transform.
 */
function nodesOf({ sources, transforms = [], sinks }: Entries): readonly Node[] {
  const nodes: Node[] = sources.map((entry) => ({ what: 'source', entry, inputs: [] }))
  let previous: readonly string[] = sources.map(({ name }) => name)
  const readable = [...sources, ...transforms].map(({ name }) => name)
  const add = (what: 'transform' | 'sink', entry: Entry & { readonly inputs?: readonly string[] | undefined }) => {
    const named = (entry.inputs ?? []).map((input) => input.split('.', 1)[0] ?? '')
    const meant = named.flatMap((input) => readable.filter((name) => name !== entry.name && isMeant(name, input)))
    nodes.push({ what, entry, inputs: entry.inputs === undefined ? previous : [...new Set(meant)] })
    if (what === 'transform') previous = [entry.name]
  }
  for (const entry of transforms) add('transform', entry)
  for (const entry of sinks) add('sink', entry)
  return nodes
}

/** The lines of the tree in the order of the event flow. */
export function branchesOf(spec: Entries): readonly Branch[] {
  const nodes = nodesOf(spec)
  const branches: Branch[] = []
  const drawn = new Set<string>()
  const draw = (node: Node, lead: string, fork: string, below: string) => {
    if (drawn.has(node.entry.name)) return
    drawn.add(node.entry.name)
    const ref = 'ref' in node.entry ? node.entry.ref : undefined
    const type = 'type' in node.entry ? node.entry.type : undefined
    const kind = ref === undefined ? `${type}` : `${ref.kind} ${ref.name}`
    const others = node.inputs.slice(1)
    const also = others.length === 0 ? '' : `, also from ${others.join(', ')}`
    const readers = nodes.filter(({ inputs, entry }) => inputs[0] === node.entry.name && !drawn.has(entry.name))
    const indent = `${lead}${below}`
    branches.push({
      line: `${lead}${fork}${node.what} ${node.entry.name} (${kind})${also}`,
      indent: `${indent}${readers.length > 0 ? '│  ' : '   '}`,
      name: node.entry.name,
    })
    for (const reader of readers) {
      const isLast = reader === readers.at(-1)
      draw(reader, indent, isLast ? '└─ ' : '├─ ', isLast ? '   ' : '│  ')
    }
  }
  for (const node of nodes) if (node.inputs.length === 0) draw(node, '', '', '')
  // In a Pipeline that was never accepted, a component may have no inputs, or be its own input.
  for (const node of nodes) draw(node, '', '', '')
  return branches
}
