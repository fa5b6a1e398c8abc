// Labels and structured metadata of lines for Loki, as templates.

import { literalTemplate } from '../escape.ts'
import { secret } from './connection.ts'
import type { Context } from './plugin.ts'
import { hasTag, translated } from './record-accessor.ts'
import { entriesOf, isOn, lastValue, type Section } from './sections.ts'
import { accessor, template } from './text.ts'

/** Values by name, and lines of a program that sets what their templates refer to. */
export interface Named {
  readonly values: Readonly<Record<string, string>>
  readonly lines: readonly string[]
}

/** Texts that combine fields or parts of the tag, as fields that a program sets. */
class Combined {
  readonly lines: string[] = []
  readonly #kind: string

  constructor(kind: string) {
    this.#kind = kind
  }

  /** A template for a text with placeholders; undefined if a program cannot determine the value. */
  template(text: string): string | undefined {
    const found = text.includes('$') ? translated(text) : undefined
    if (found === undefined) return undefined
    const name = `%${this.#kind}_${this.lines.length + 1}`
    this.lines.push(`${name} = ${found}`)
    return `{{ ${name} }}`
  }
}

/** A field that a template can refer to. */
const fieldOf = (text: string) => (text.startsWith('$') && !hasTag(text) ? accessor(text) : undefined)

export function lokiLabels(section: Section, context: Context): Named {
  const labels: Record<string, string> = {}
  const combined = new Combined('label')
  const nameOf = (path: readonly string[]) => path.join('_').replace(/[^A-Za-z0-9_]/g, '_')
  for (const entry of [...entriesOf(section, 'labels'), ...entriesOf(section, 'label_keys')]) {
    for (const part of entry.value.split(',').map((word) => word.trim())) {
      if (part === '') continue
      const pair = /^([A-Za-z_][A-Za-z0-9_]*)\s*=\s*(.*)$/.exec(part)
      const text = pair?.[2] ?? part
      if (pair?.[1] !== undefined && /^\$\{HOSTNAME\}$/.test(text)) {
        labels[pair[1]] = '{{ %hostname }}'
        continue
      }
      const path = fieldOf(text)
      const whole = pair?.[1] === undefined || path !== undefined ? undefined : combined.template(text)
      if (path !== undefined) labels[pair?.[1] ?? nameOf(path)] = template(path)
      else if (pair?.[1] !== undefined && whole !== undefined) labels[pair[1]] = whole
      else if (pair?.[1] !== undefined && !text.startsWith('$')) labels[pair[1]] = literalTemplate(secret(text))
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
  return { values: labels, lines: combined.lines }
}

/** Structured metadata of lines: names, and the fields with their values. */
export function metadataOf(section: Section, context: Context): Named {
  const metadata: Record<string, string> = {}
  const combined = new Combined('metadata')
  for (const entry of entriesOf(section, 'structured_metadata')) {
    for (const part of entry.value.split(',').map((word) => word.trim())) {
      const [, name, text = ''] = /^(?:([\w.-]+)\s*=\s*)?(.*)$/s.exec(part) ?? []
      const path = fieldOf(text)
      const own = name ?? path?.join('_')
      const whole = name === undefined || path !== undefined ? undefined : combined.template(text)
      if (own !== undefined && path !== undefined) metadata[own] = template(path)
      else if (name !== undefined && whole !== undefined) metadata[name] = whole
      else if (name !== undefined && !text.startsWith('$')) metadata[name] = literalTemplate(secret(text))
      else {
        const nearest = 'Add it to `structured_metadata` of the sink.'
        context.gap(entry, `loki: metadata ${part}`, 'a template cannot refer to the value', nearest)
      }
    }
  }
  return { values: metadata, lines: combined.lines }
}
