// Labels of an event, which choose its stream, and structured metadata, which is made by the same rules: names and values are
// templates, and a name that ends in `*` expands an object into one label for each of its members.

import type { AnyEvent } from '../../delivery/batcher.ts'
import { LogEvent } from '../../event/log.ts'
import type { Path } from '../../event/path.ts'
import { compileTemplate, type Template } from '../../template.ts'

export interface Labels {
  /** Fields that the templates refer to. */
  readonly paths: readonly Path[]
  /** True if every event has the same labels. */
  readonly isStatic: boolean
  /**
   * The texts from which an event's labels are made, joined: equal texts mean equal labels. `onMissing` hears of each template
   * that could not be rendered.
   */
  key(event: AnyEvent, onMissing: (option: string, template: Template) => void): string
  /** The labels that a key stands for, sorted by name. */
  fromKey(key: string): ReadonlyMap<string, string>
}

interface Label {
  readonly option: string
  readonly name: Template
  readonly value: Template
}

/** What static templates are rendered for. */
const nothing = new LogEvent({})

/** Stands in keys for what could not be rendered, and between texts; neither occurs in text that came from UTF-8. */
const absent = '\udfff'
const separator = '\udffe'

export function compileLabels(options: Readonly<Record<string, string>>, option: string, timestampKey: string): Labels {
  const labels: Label[] = Object.entries(options).map(([name, value]) => ({
    option: `${option}.${name}`,
    name: compileTemplate(name, timestampKey),
    value: compileTemplate(value, timestampKey),
  }))
  const dynamic: { readonly template: Template; readonly option: string }[] = labels.flatMap((label) =>
    [label.name, label.value]
      .filter((template) => !template.isStatic)
      .map((template) => ({ template, option: label.option })),
  )
  const single = dynamic.length === 1 ? dynamic[0] : undefined

  return {
    paths: dynamic.flatMap(({ template }) => template.paths),
    isStatic: dynamic.length === 0,
    key(event, onMissing) {
      if (single !== undefined) {
        const text = single.template.render(event)
        if (text !== undefined) return text
        onMissing(single.option, single.template)
        return absent
      }
      let key = ''
      for (let index = 0; index < dynamic.length; index++) {
        const { template, option: place } = dynamic[index] as (typeof dynamic)[number]
        const text = template.render(event)
        if (text === undefined) onMissing(place, template)
        key += index === 0 ? (text ?? absent) : separator + (text ?? absent)
      }
      return key
    },
    fromKey(key) {
      const texts = key.split(separator)
      let at = 0
      const textOf = (template: Template): string | undefined => {
        if (template.isStatic) return template.render(nothing)
        const text = texts[at++]
        return text === absent ? undefined : text
      }
      const expanded = new Map<string, string>()
      const plain = new Map<string, string>()
      for (const label of labels) {
        const name = textOf(label.name)
        const value = textOf(label.value)
        if (name === undefined || value === undefined) continue
        if (name.endsWith('*')) expand(name.slice(0, -1), value, expanded)
        else plain.set(name, value)
      }
      for (const [name, value] of plain) expanded.set(name, value)
      return new Map([...expanded].sort(([left], [right]) => (left < right ? -1 : left > right ? 1 : 0)))
    },
  }
}

/** One label for each member of a JSON object; anything else gives none. */
function expand(prefix: string, text: string, into: Map<string, string>): void {
  let parsed: unknown
  try {
    parsed = JSON.parse(text)
  } catch {
    return // not an object, so no labels
  }
  if (typeof parsed !== 'object' || parsed === null || Array.isArray(parsed)) return
  for (const [name, value] of Object.entries(parsed)) {
    if (value === null) continue
    into.set(slug(prefix + name), typeof value === 'string' ? value : JSON.stringify(value))
  }
}

function slug(name: string): string {
  return name.toLowerCase().replace(/[^0-9a-z_]/g, '_')
}

const validName = /^[a-zA-Z_][a-zA-Z0-9_]*\*?$|^\*$/

/** Whether a user may name a label so. */
export function isLabelName(name: string): boolean {
  return name.includes('{{') || validName.test(name)
}
