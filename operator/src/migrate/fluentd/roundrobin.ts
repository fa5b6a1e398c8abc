// Converts the output `roundrobin`, which passes events to its stores in turn. Sinks have no common turn, so a transform draws the store of
// each event, by the weights of the stores.

import type { Step } from '../draft.ts'
import type { Context } from '../fluent-bit/plugin.ts'
import type { Described } from '../page.ts'
import { childrenOf, type Plugged, parameter } from './element.ts'
import type { Element } from './syntax.ts'

export const roundRobin: Described = {
  name: 'roundrobin',
  becomes: 'a remap transform that draws a number for each event, and a filter transform for each store',
  options: { store: 'a sink' },
}

export interface Share {
  readonly store: Element
  /** The steps that keep the events of the store. */
  readonly steps: readonly Step[]
}

/** The step that draws the number, and the stores with their parts of the numbers. */
export function sharesOf(
  section: Plugged,
  context: Context,
): { readonly draw: readonly Step[]; readonly shares: readonly Share[] } {
  const stores = childrenOf(section.element, 'store')
  if (stores.length === 0) context.gap(section, 'roundrobin', 'it has no store', 'Add sinks.')
  let sum = 0
  const shares = stores.map((store): Share => {
    const from = sum
    sum += Math.max(0, Number.parseInt(parameter(store, 'weight') ?? '1', 10) || 0)
    return {
      store,
      steps: [{ type: 'filter', text: `store = to_int(%store) ?? 0\nstore >= ${from} && store < ${sum}` }],
    }
  })
  if (shares.length < 2 || sum === 0) return { draw: [], shares: shares.map(({ store }) => ({ store, steps: [] })) }
  const reason =
    'the plugin passes groups of events on in turn; the transform draws the store of each event, with the same shares'
  const nearest = 'To send all events to one store, name the transform before it in the inputs of its sink.'
  context.replaced(section, 'roundrobin', reason, nearest)
  return { draw: [{ type: 'remap', text: `%store = random_int(0, ${sum})` }], shares }
}
