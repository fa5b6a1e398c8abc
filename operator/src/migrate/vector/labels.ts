// Labels of Loki that expand an object: Vector writes their names in small letters, the sink keeps the letters.

import { isTable } from '@penstock/agent/schema'
import type { Step } from '../draft.ts'
import { withoutField } from './log-schema.ts'

/** A template that consists of one field. */
const ofField = /^\s*\{\{\s*([^{}]+?)\s*\}\}\s*$/

/** Lets labels read objects with names in small letters, which the transforms before the sink set in the metadata of an event. */
export function labelSteps(config: Record<string, unknown>): readonly Step[] {
  const lines: string[] = []
  for (const option of ['labels', 'structured_metadata']) {
    const labels = config[option]
    if (!isTable(labels)) continue
    const entries = Object.entries(labels).map(([name, value]) => {
      const path = name.endsWith('*') && typeof value === 'string' ? ofField.exec(value)?.[1] : undefined
      if (path === undefined || path.startsWith('%')) return [name, value]
      const at = path.startsWith('.') ? path : `.${path}`
      const field = `labels_${lines.length + 1}`
      lines.push(`%${field} = map_keys(object(${at}) ?? {}) -> |name| { downcase(name) }`)
      if (config[`remove_${option.replace(/s$/, '')}_fields`] === true) withoutField(config, path)
      return [name.includes('{{') ? name : name.toLowerCase(), `{{ %${field} }}`]
    })
    config[option] = Object.fromEntries(entries)
  }
  return lines.length === 0 ? [] : [{ type: 'remap', text: lines.join('\n') }]
}
