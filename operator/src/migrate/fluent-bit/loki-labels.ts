// Labels and structured metadata of lines for Loki, as templates.

import { fieldLiteral } from '@penstock/agent/config'
import { literalTemplate } from '../escape.ts'
import type { Context } from './plugin.ts'
import { hasTag, translated } from './record-accessor.ts'
import { entriesOf, isOn, lastValue, type Section } from './sections.ts'
import { accessor, template } from './text.ts'
import { templateOf } from './variables.ts'

/** Values by name, and lines of a program that sets what their templates refer to. */
export interface Named {
  readonly values: Readonly<Record<string, string>>
  readonly lines: readonly string[]
  /** Fields whose whole value is one of the values. */
  readonly fields: readonly (readonly string[])[]
}

/** Texts that combine fields or parts of the tag, as fields that a program sets. */
class Combined {
  readonly #made: string[] = []
  readonly #known = new Set<string>()
  readonly #kind: string

  constructor(kind: string) {
    this.#kind = kind
  }

  /** A template for a text with placeholders; undefined if a program cannot determine the value. */
  template(text: string): string | undefined {
    const found = isAccessor(text) ? translated(text) : undefined
    if (found === undefined) return undefined
    const name = `%${this.#kind}_${this.#made.length + 1}`
    this.#made.push(`${name} = ${found}`)
    return `{{ ${name} }}`
  }

  /** A template for a text without placeholders. */
  plain(text: string, context: Context): string {
    const found = templateOf(literalTemplate(text), context.readsEnvironment)
    for (const line of found.lines) this.#known.add(line)
    return found.text
  }

  get lines(): readonly string[] {
    return [...this.#known, ...this.#made]
  }
}

/** Whether Fluent Bit reads a text as a record accessor. It takes every other text as it is, also one with an accessor further on. */
const isAccessor = (text: string) => /^\$(?!\{)/.test(text)

/** A field that a template can refer to. */
const fieldOf = (text: string) => (isAccessor(text) && !hasTag(text) ? accessor(text) : undefined)

export function lokiLabels(section: Section, context: Context): Named {
  const labels: Record<string, string> = {}
  const fields: (readonly string[])[] = []
  const combined = new Combined('label')
  const nameOf = (path: readonly string[]) => path.join('_').replace(/[^A-Za-z0-9_]/g, '_')
  for (const entry of [...entriesOf(section, 'labels'), ...entriesOf(section, 'label_keys')]) {
    for (const part of entry.value.split(',').map((word) => word.trim())) {
      if (part === '') continue
      const pair = /^([A-Za-z_][A-Za-z0-9_]*)\s*=\s*(.*)$/.exec(part)
      const text = pair?.[2] ?? part
      const path = fieldOf(text)
      const whole = pair?.[1] === undefined || path !== undefined ? undefined : combined.template(text)
      if (path !== undefined) {
        labels[pair?.[1] ?? nameOf(path)] = template(path)
        fields.push(path)
      } else if (pair?.[1] !== undefined && whole !== undefined) labels[pair[1]] = whole
      else if (pair?.[1] !== undefined && !isAccessor(text)) labels[pair[1]] = combined.plain(text, context)
      else
        context.gap(
          entry,
          `loki: label ${part}`,
          'a template cannot refer to the value of the label',
          'Add the label to `labels` of the sink.',
        )
    }
  }
  // A name that ends in `*` becomes a label for each member. Like Fluent Bit, the sink replaces characters that names cannot have by `_`.
  if (isOn(lastValue(section, 'auto_kubernetes_labels'), false)) labels['*'] = '{{ kubernetes.labels }}'
  if (Object.keys(labels).length === 0) labels['job'] = 'fluent-bit'
  return { values: labels, lines: combined.lines, fields }
}

/** Structured metadata of lines: names, and the fields with their values. */
export function metadataOf(section: Section, context: Context): Named {
  const metadata: Record<string, string> = {}
  const fields: (readonly string[])[] = []
  const combined = new Combined('metadata')
  for (const entry of entriesOf(section, 'structured_metadata')) {
    for (const part of entry.value.split(',').map((word) => word.trim())) {
      const [, name, text = ''] = /^(?:([\w.-]+)\s*=\s*)?(.*)$/s.exec(part) ?? []
      const path = fieldOf(text)
      const own = name ?? path?.join('_')
      const whole = name === undefined || path !== undefined ? undefined : combined.template(text)
      if (own !== undefined && path !== undefined) {
        metadata[own] = template(path)
        fields.push(path)
      } else if (name !== undefined && whole !== undefined) metadata[name] = whole
      else if (name !== undefined && !isAccessor(text)) metadata[name] = combined.plain(text, context)
      else {
        const nearest = 'Add it to `structured_metadata` of the sink.'
        context.gap(entry, `loki: metadata ${part}`, 'a template cannot refer to the value', nearest)
      }
    }
  }
  const maps = mapsOf(section, context)
  // A name that ends in `*` becomes an entry for each member.
  const whole = maps
    .map((path) => `object(${fieldLiteral(path)}) ?? {}`)
    .reduceRight((rest, each) => `merge(${each}, ${rest})`, '{}')
  return {
    values: maps.length === 0 ? metadata : { '*': '{{ %metadata_maps }}', ...metadata },
    lines: [...combined.lines, ...(maps.length === 0 ? [] : [`%metadata_maps = ${whole}`])],
    fields: [...fields, ...maps],
  }
}

/** Objects whose members become metadata. */
function mapsOf(section: Section, context: Context): readonly (readonly string[])[] {
  return entriesOf(section, 'structured_metadata_map_keys').flatMap((entry) =>
    entry.value.split(',').flatMap((word) => {
      const path = fieldOf(word.trim())
      if (path !== undefined) return [path]
      const nearest = 'Add its members to `structured_metadata` of the sink.'
      context.gap(entry, `loki: metadata ${word.trim()}`, 'a program cannot refer to the field', nearest)
      return []
    }),
  )
}
