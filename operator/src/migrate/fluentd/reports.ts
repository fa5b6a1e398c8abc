// Reports about the options of a plugin: variables of the environment, and fields with the name of the event's time.

import { readReport } from '../environment.ts'
import { reportOwnTime } from '../fluent-bit/own-time.ts'
import type { Context } from '../fluent-bit/plugin.ts'
import type { Entry } from '../fluent-bit/sections.ts'
import type { Described } from '../page.ts'
import type { Plugged } from './element.ts'

/** Options whose values are names of fields. */
const fieldOptions = /^(?:key_name|(?:remove|keep|whitelist)_keys|renew_time_key|target_index_key|id_key)$/

/** Reports fields of the record with the name of the event's time. */
export function reportNames(section: Plugged, context: Context): void {
  const isOf = ({ key, value }: Entry) =>
    key === 'record.timestamp' ||
    /\$\.timestamp\b|\brecord(?:\[|\.\w+[?!]?\()\s*["']timestamp["']/.test(value) ||
    (fieldOptions.test(key) && value.split(',').some((name) => name.trim() === 'timestamp'))
  for (const entry of section.entries.filter(isOf)) reportOwnTime(entry, `${section.type}: ${entry.key}`, context)
}

/** Reports variables. Sinks read them as secrets, but programs cannot. Options that are left out need no value. */
export function reportVariables(section: Plugged, plugins: readonly Described[], context: Context): void {
  const itself = plugins.find(({ name }) => name === section.type)?.itself ?? {}
  for (const entry of section.entries) {
    if (typeof itself[entry.key] === 'string') continue
    for (const [whole, name = ''] of entry.value.matchAll(/\$\{([A-Z][A-Z0-9_]*)\}/g)) {
      if (entry.key.startsWith('record.') && context.readsEnvironment) {
        const { reason, nearest } = readReport(name)
        context.replaced(entry, whole, reason, nearest)
        continue
      }
      context.gap(
        entry,
        whole,
        `a resource is literal text, and the variable \`${name}\` has no value here`,
        'Replace it with its value, or set the field from `.kubernetes`.',
      )
    }
  }
}
