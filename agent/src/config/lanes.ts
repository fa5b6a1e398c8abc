// Determines how events pass through each component of a configuration: as lines that stay bytes, or as objects, with the reason.
// The decision starts at the sinks, as at run time: lines can stay bytes only if no downstream component needs objects.

import type { Config, SinkConfig, SourceConfig, TransformConfig } from './config.ts'
import { ownerOf } from './graph.ts'

export interface Lane {
  /** The reason why events are objects here, as a clause; undefined: lines stay bytes. */
  readonly reason?: string
  /** Whether the reason is this component's type or options, rather than another component. */
  readonly isOwn?: boolean
}

type Component = SourceConfig | TransformConfig | SinkConfig

/** The lane of each component, by its id. */
export function lanesOf(config: Config): ReadonlyMap<string, Lane> {
  const components: readonly Component[] = [
    ...config.sources.values(),
    ...config.transforms.values(),
    ...config.sinks.values(),
  ]
  const readers = new Map<string, Component[]>(components.map(({ id }) => [id, []]))
  for (const component of components) {
    // Events from a named output are always objects.
    if ('inputs' in component) for (const input of component.inputs) readers.get(input)?.push(component)
  }
  const needs = new Map<string, string | undefined>()
  const need = (component: Component): string | undefined => {
    const { id } = component
    if (!needs.has(id)) {
      needs.set(id, undefined) // never read before the next line: graphs have no cycles
      needs.set(id, ownReason(component, config) ?? readersReason(component, readers.get(id) ?? [], need))
    }
    return needs.get(id)
  }
  const lanes = new Map<string, Lane>()
  for (const component of components) {
    const reason = need(component) ?? inputsReason(component, lanes)
    const isOwn = reason !== undefined && ownReason(component, config) === reason
    lanes.set(component.id, reason === undefined ? {} : { reason, isOwn })
  }
  return lanes
}

function ownReason(component: Component, { globals }: Config): string | undefined {
  if (globals.remap?.byte_lane === false) return '`remap.byte_lane` is false'
  const { declaration, options } = component
  if (declaration.objectsBecause === undefined) return `${declaration.type} works on objects`
  return declaration.objectsBecause(options, globals)
}

function readersReason(
  { declaration }: Component,
  readers: readonly Component[],
  need: (component: Component) => string | undefined,
): string | undefined {
  if (declaration.kind === 'sink') return undefined
  if (readers.length === 0) return 'nothing reads it'
  const reader = readers.find((each) => need(each) !== undefined)
  return reader && `${reader.id} needs objects`
}

/** Whether the inputs decide the lane. A component comes after its inputs, so their lanes are known. */
function inputsReason(component: Component, lanes: ReadonlyMap<string, Lane>): string | undefined {
  if (!('inputs' in component)) return undefined
  const inputs = component.inputs.map(ownerOf)
  const withBytes = inputs.some((input) => lanes.get(input)?.reason === undefined)
  return withBytes ? undefined : `${inputs.join(', ')} emits objects`
}
