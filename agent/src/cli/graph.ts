// `graph`: prints the topology of a configuration as a diagram for Graphviz or Mermaid.

import { exitCodes } from '../command-line/exit-codes.ts'
import { type Flags, flagHelp, parseFlags } from '../command-line/flags.ts'
import { helpText } from '../command-line/help.ts'
import type { Config } from '../config/config.ts'
import { ownerOf } from '../config/graph.ts'
import { type Lane, lanesOf } from '../config/lanes.ts'
import { loadedConfig } from './loaded-config.ts'
import { configFlags } from './run-flags.ts'

export const flags = {
  ...configFlags,
  format: { type: 'string', oneOf: ['dot', 'mermaid'], help: 'Language of the diagram (dot).' },
  help: { type: 'boolean', short: 'h', help: 'Print this text.' },
} as const satisfies Flags

const about = [
  'Prints the topology of a configuration as a diagram for Graphviz or Mermaid.',
  'It also shows where the lines of pods stay bytes, which takes a fraction of the CPU, and why events are objects elsewhere: `penstock-agent explain lanes`.',
].join(' ')

export async function run(argv: readonly string[]): Promise<number> {
  const { flags: given, words } = parseFlags(argv, flags)
  if (given.help) {
    process.stdout.write(helpText(`Usage: penstock-agent graph [PATH…] [FLAGS]\n\n${about}\n\n${flagHelp(flags)}\n`))
    return exitCodes.ok
  }
  const loaded = await loadedConfig(given, words, { checkMachine: false })
  if (loaded === undefined) return exitCodes.config
  const { config } = loaded
  process.stdout.write(given.format === 'mermaid' ? mermaid(config) : dot(config))
  return exitCodes.ok
}

interface Node {
  readonly id: string
  readonly kind: 'source' | 'transform' | 'sink'
  readonly type: string
  readonly inputs: readonly string[]
  /** The form in which events pass, with the reason if they are objects. */
  readonly lane: string
}

function nodesOf(config: Config): Node[] {
  const lanes = lanesOf(config)
  const all = [...config.sources.values(), ...config.transforms.values(), ...config.sinks.values()]
  return all.map((component) => ({
    id: component.id,
    kind: component.declaration.kind,
    type: component.declaration.type,
    inputs: 'inputs' in component ? component.inputs : [],
    lane: laneText(lanes.get(component.id)),
  }))
}

function laneText(lane: Lane | undefined): string {
  if (lane === undefined) return ''
  return lane.reason === undefined ? 'lines stay bytes' : `events are objects: ${lane.reason}`
}

/** The output name at the start of an edge; undefined for the main output. */
function portOf(input: string): string | undefined {
  const owner = ownerOf(input)
  return owner === input ? undefined : input.slice(owner.length + 1)
}

const dotShapes = { source: 'trapezium', transform: 'diamond', sink: 'invtrapezium' } as const

function dot(config: Config): string {
  const quote = (text: string) => `"${text.replaceAll(/["\\]/g, '\\$&')}"`
  const lines = ['digraph {']
  for (const { id, kind, type, inputs, lane } of nodesOf(config)) {
    const label = [id, type, lane].map((text) => text.replaceAll(/["\\]/g, '\\$&')).join('\\n')
    lines.push(`  ${quote(id)} [shape="${dotShapes[kind]}" label="${label}"]`)
    for (const input of inputs) {
      const port = portOf(input)
      lines.push(`  ${quote(ownerOf(input))} -> ${quote(id)}${port === undefined ? '' : ` [label=${quote(port)}]`}`)
    }
  }
  return `${lines.join('\n')}\n}\n`
}

function mermaid(config: Config): string {
  const nodes = nodesOf(config)
  // Uses numbers, because ids may contain Mermaid syntax.
  const names = new Map(nodes.map((node, index) => [node.id, `n${index}`]))
  const text = (label: string) => label.replaceAll('"', '#quot;')
  const lines = ['flowchart TD']
  for (const { id, kind, type, lane } of nodes) {
    const label = `"${text(id)}<br>${text(type)}<br>${lane}"`
    const shape = kind === 'source' ? `[/${label}\\]` : kind === 'sink' ? `[\\${label}/]` : `{${label}}`
    lines.push(`  ${names.get(id)}${shape}`)
  }
  for (const { id, inputs } of nodes) {
    for (const input of inputs) {
      const port = portOf(input)
      const label = port === undefined ? '' : `|"${text(port)}"|`
      lines.push(`  ${names.get(ownerOf(input))} -->${label} ${names.get(id)}`)
    }
  }
  return `${lines.join('\n')}\n`
}
