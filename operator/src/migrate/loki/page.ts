// Tables of the guide that Promtail and Alloy share.

import { mappingTables } from '../page.ts'
import { multilineStage } from './joining.ts'
import { refusedStages } from './refusals.ts'
import { ruleOptions } from './relabel.ts'
import type { Stage } from './stage.ts'
import { stages } from './stages.ts'

/**
 * @param nameOf returns the agent's name of a stage
 * @param more stages that only this agent has
 */
export function stageTables(nameOf: (name: string) => string, more: readonly Stage[] = []): string {
  const renamed = <Named extends { readonly name: string }>(all: readonly Named[]) =>
    all.map((each) => ({ ...each, name: nameOf(each.name) }))
  return mappingTables('Stages', renamed([...stages, ...more, multilineStage]), renamed(refusedStages))
}

export function ruleTable(title: string): string {
  const becomes =
    'statements of a remap transform; rules that keep or drop pods by one label become selectors of the source'
  return mappingTables('Relabelling', [{ name: title, becomes, options: ruleOptions }], [])
}
