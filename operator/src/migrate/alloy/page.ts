// The tables of the guide for Alloy.

import { alloyStages } from '../loki/alloy-stages.ts'
import { ruleTable, stageTables } from '../loki/page.ts'
import { mappingTables } from '../page.ts'
import { components, endpoint, ownLog, refusedComponents, refusedSources, replacedBlocks } from './components.ts'
import { stageName } from './stage-list.ts'

const modules = [
  { name: 'declare', becomes: 'the components of the module, at each use' },
  { name: 'import.string', becomes: 'the modules of its text' },
  { name: 'import.file', becomes: 'the modules of the file, if it is one of the given files or beside them' },
  { name: 'foreach', becomes: 'the components of its template for each item of a literal list' },
].map((each) => ({ ...each, options: {} }))

export function alloyTables(): string {
  const replaced = Object.entries(replacedBlocks).map(([name, becomes]) => ({
    name,
    becomes: `nothing: ${becomes}`,
    options: {},
  }))
  const refusals = [...refusedSources, ownLog, ...refusedComponents].map((refusal) => ({
    ...refusal,
    name: refusal.name.endsWith('.') ? `${refusal.name}*` : refusal.name,
  }))
  return [
    mappingTables('Components', [...components, endpoint, ...modules, ...replaced], refusals),
    ruleTable('rule'),
    stageTables(stageName, alloyStages),
  ].join('\n')
}
